//! Launches whose promises `elementwise` are checked (`CLGRAPH_CHECK_ELEMENTWISE`). The host does them, between commands: so whatever
//! comes before is complete, updates have brought their values, and nothing after it has begun.
//!
//! The launch runs as it is. The check runs a kernel that does the same for some work-items only, on copies of the memory from before the
//! launch: once all of them, and then range by range. For a range all bytes of promised memory are changed that do not belong to its
//! work-items. They must stay as they are, and the bytes that belong to the range must become what they become when all run.
//!
//! Nothing but the launch writes memory of the program. So other nodes may read that memory meanwhile.

mod parts;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::cl::commands::enqueue::{self, NOTHING, To};
use crate::cl::completion::user_code::log_later;
use crate::cl::memory::region::AsRegion;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::buffer::Buffer;
use crate::cl::objects::fused;
use crate::cl::objects::kernel::Kernel;
use crate::cl::objects::kernel_object::{KernelObject, KernelObjectError};
use crate::cl::objects::queue::{DriverQueue, QueueProperties};
use crate::command::{Arg, Command, Elementwise, Grid, Location};
use crate::error::{Error, Result, Strayed, SubmitError};
use crate::exec::build::values::{set_arg, set_args};
use crate::exec::finalized::Finalized;
use crate::exec::submit::deferred::waited;
use crate::graph::Tables;
use crate::ir::{ById, NodeId, ViewKind};
use crate::opencl_c::fused::{Callee, FusedArg, FusedKernel, FusedLaunch, FusedParam, ValueType, Way};
use crate::opencl_c::source::ParamKind;

/// Runs a launch, waits for it, and checks what it promises.
pub(super) fn launch(exec: &Finalized, tables: &Tables, node: NodeId) -> Result<()> {
    let Command::Kernel { kernel, args, grid, elementwise, .. } = tables.ir.command(node) else { return Ok(()) };
    if grid.is_empty() {
        return Ok(());
    }
    let (kernel, args) = (&tables.kernels[kernel.index()], *args);
    let at = exec.node(exec.origins.of(node).node);
    let refused = |source| {
        Error::from(SubmitError::Enqueue { node: at, commands: 1, fused: false, enqueued: 0, total: 1, source })
    };
    let not_checked = |why: String| {
        say(format!(
            "{at} (kernel `{}`) is not checked, although CLGRAPH_CHECK_ELEMENTWISE says so: {why}",
            kernel.name()
        ));
    };
    let queue = DriverQueue::with_properties(&exec.context, &exec.device, QueueProperties::default())?;
    let check =
        elementwise.as_deref().map(|promise| Launch { exec, tables, node, kernel, grid, queue: &queue }.check(promise));
    let check = check.transpose().map(Option::flatten).unwrap_or_else(|why| {
        not_checked(why);
        None
    });
    let object = kernel.with_args(&exec.device, set_args(tables, args)).map_err(|error| match error {
        KernelObjectError::Argument { source, .. } | KernelObjectError::Create(Error::Driver(source)) => {
            refused(source)
        }
        KernelObjectError::Create(error) => error,
    })?;
    let to = To { queue: &queue, waits: &NOTHING, event: false };
    enqueue_launch(&to, &object, grid).map_err(refused)?;
    waited(enqueue::last_marker(&queue).map_err(refused)?.wait_surely())?;
    match check.map(|check| check.broken()).transpose() {
        Ok(broken) => broken.flatten().map_or(Ok(()), |strayed| {
            let (kernel, strayed) = (kernel.name().to_owned(), Box::new(strayed));
            Err(SubmitError::BrokenPromise { node: at, kernel, strayed }.into())
        }),
        Err(why) => {
            not_checked(why);
            Ok(())
        }
    }
}

fn enqueue_launch(to: &To<'_>, object: &KernelObject, grid: &Grid) -> Result<(), crate::DriverError> {
    enqueue::kernel(to, object, grid.dims, &grid.offset, &grid.global, grid.local.as_ref()).map(drop)
}

/// Logs a line, once in the process: launches run again and again.
fn say(line: String) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(line.clone()) {
        log_later!(Warn, "{line}");
    }
}

/// Why a launch is not checked.
type Unchecked = String;

/// A launch that is to run.
struct Launch<'a> {
    exec: &'a Finalized,
    tables: &'a Tables,
    node: NodeId,
    kernel: &'a Kernel,
    grid: &'a Grid,
    queue: &'a DriverQueue,
}

/// Memory that the launch is given, in one argument or several.
struct Block<'a> {
    mem: &'a Mem,
    /// The first argument.
    argument: usize,
    /// How many bytes belong to each work-item, if that is promised.
    bytes: Option<usize>,
    is_written: bool,
    /// What it was before the launch, and memory in its place. None if the check may read the memory itself.
    copy: Option<(Vec<u8>, Mem)>,
}

impl Block<'_> {
    fn range(&self) -> Range<usize> {
        let start = self.mem.offset_in_root();
        start..start + self.mem.size()
    }

    fn overlaps(&self, other: &Self) -> bool {
        let (one, other_range) = (self.range(), other.range());
        self.mem.root() == other.mem.root() && one.start < other_range.end && other_range.start < one.end
    }

    /// Returns its bytes from before the launch, and which of them belong to work-items, if that is promised.
    fn promised(&self, items: &Range<u64>) -> Option<(&[u8], Range<usize>)> {
        let (saved, _) = self.copy.as_ref()?;
        Some((saved, parts::own(items, self.bytes?, saved.len())))
    }
}

/// What the check gives an argument of the kernel.
#[derive(Clone, Copy)]
enum Given {
    /// What the launch gives it.
    Same(Arg<ById>),
    /// The copy of a block.
    Copy(usize),
}

impl<'a> Launch<'a> {
    /// Prepares a check, before the launch runs. Returns None if nothing is promised of memory.
    fn check(&self, promise: &Elementwise) -> Result<Option<Check<'a>>, Unchecked> {
        let Command::Kernel { args, .. } = self.tables.ir.command(self.node) else { return Ok(None) };
        if promise.list().is_empty() {
            return Ok(None);
        }
        let args = self.tables.ir.args(*args);
        let args: Vec<Arg<ById>> = args.iter().filter(|arg| !matches!(arg, Arg::Unused(_))).copied().collect();
        let (mut blocks, mut given) = self.blocks(promise, &args)?;
        if !blocks.iter().any(|block| block.bytes.is_some()) {
            return Ok(None);
        }
        let object = self.kernel_of_range(&args)?;
        for block in &mut blocks {
            if block.bytes.is_some() || block.is_written {
                block.copy = Some(self.copy(block.mem)?);
            }
        }
        for given in &mut given {
            if let Given::Copy(at) = *given
                && blocks[at].copy.is_none()
            {
                *given = Given::Same(args[blocks[at].argument]);
            }
        }
        let items = self.grid.global.iter().try_fold(1_u64, |all, size| all.checked_mul(*size as u64));
        let items = items.ok_or("it has too many work-items")?;
        let (exec, tables, grid, queue) = (self.exec, self.tables, self.grid, self.queue);
        Ok(Some(Check { exec, tables, grid, queue, kernel: object, blocks, given, items }))
    }

    /// Returns the memory that the launch is given, and which arguments get it.
    fn blocks(&self, promise: &Elementwise, args: &[Arg<ById>]) -> Result<(Vec<Block<'a>>, Vec<Given>), Unchecked> {
        let (tables, mut blocks) = (self.tables, Vec::<Block<'a>>::new());
        let mut given = Vec::with_capacity(args.len());
        for (argument, arg) in args.iter().enumerate() {
            let view = match arg {
                Arg::Memory(view) => *view,
                Arg::Indirect(_) => return Err("it reaches memory through pointers in other memory".to_owned()),
                Arg::Global(_) => return Err("its program has device globals".to_owned()),
                Arg::Null(_) | Arg::Value(_) | Arg::Local(_) | Arg::Sampler(_) | Arg::Unused(_) => {
                    given.push(Given::Same(*arg));
                    continue;
                }
            };
            let mem = tables.mem(view).ok_or_else(|| format!("the memory of argument {argument} is gone"))?;
            if tables.ir.views[view.index()].kind == ViewKind::Foreign {
                return Err(format!("clgraph does not know what shares bytes with the memory of argument {argument}"));
            }
            let (bytes, accesses) = (promise.bytes(argument), tables.ir.accesses(self.node));
            let is_written = accesses.iter().any(|access| access.view == view && access.mode.writes());
            let place = |mem: &Mem| (mem.root(), mem.offset_in_root());
            match blocks.iter().position(|block| place(block.mem) == place(mem)) {
                Some(at) => {
                    let block = &mut blocks[at];
                    if block.bytes != bytes {
                        let (one, other) = (block.argument, argument);
                        return Err(format!("arguments {one} and {other} are the same memory with different promises"));
                    }
                    block.is_written |= is_written;
                    block.mem = if mem.size() > block.mem.size() { mem } else { block.mem };
                    given.push(Given::Copy(at));
                }
                None => {
                    given.push(Given::Copy(blocks.len()));
                    blocks.push(Block { mem, argument, bytes, is_written, copy: None });
                }
            }
        }
        for (at, block) in blocks.iter().enumerate() {
            let meets = |other: &&Block<'_>| (block.is_written || other.is_written) && block.overlaps(other);
            if let Some(other) = blocks[..at].iter().find(meets) {
                let (one, other) = (other.argument, block.argument);
                return Err(format!("the memory of arguments {one} and {other} overlaps, and one of them is written"));
            }
        }
        Ok((blocks, given))
    }

    /// Returns a kernel that does what the launch does, for the work-items of a range alone.
    fn kernel_of_range(&self, args: &[Arg<ById>]) -> Result<Kernel, Unchecked> {
        let item = self.kernel.item(&self.exec.device).map_err(|why| why.to_string())?;
        if item.is_group {
            return Err("its work-items wait for each other, or share local memory".to_owned());
        }
        if !item.is_own {
            return Err(
                "it has a loop, and the driver's compiler leaves out what some work-items do before it".to_owned()
            );
        }
        if self.grid.local.is_none() && item.may_see_groups {
            return Err("it asks how its range is divided into work-groups, and the driver divides it".to_owned());
        }
        if args.len() != item.text.each().len() {
            return Err(format!("it has {} arguments, and {} in its source", args.len(), item.text.each().len()));
        }
        let mut params = Vec::with_capacity(args.len() + 2);
        for (argument, (arg, param)) in args.iter().zip(item.text.each()).enumerate() {
            params.push(match (arg, param.kind) {
                (Arg::Memory(_) | Arg::Null(_), ParamKind::Global { .. }) => FusedParam::Memory,
                (Arg::Value(bytes), ParamKind::Value) => {
                    FusedParam::Value(ValueType::Of(0, param.type_text.clone()), bytes.len())
                }
                _ => return Err(format!("argument {argument} is neither a value nor plain global memory")),
            });
        }
        params.extend(vec![FusedParam::Value(ValueType::Plain("const ulong".to_owned()), size_of::<u64>()); 2]);
        let args = (0..args.len()).map(FusedArg::Param).collect();
        // The driver tells the kernel its range.
        let kernel = Callee { unit: 0, kernel: self.kernel.name().to_owned() };
        let range = [[FusedArg::Number(1); 3]; 3];
        let launches = vec![FusedLaunch { kernel, args, dims: 1, range }];
        let kernel = FusedKernel { params, launches, tabled: 0, lane_ends: Vec::new(), group: None, turns: false };
        let made = fused::fuse(&[self.kernel.program()], (Way::EachItem { in_range: true }, None), &[kernel], None);
        let (made, _) = made.map_err(|why| why.to_string())?;
        made.into_iter().next().ok_or_else(|| "no kernel was made".to_owned())
    }

    /// Returns what is in memory now, and memory that can take its place.
    fn copy(&self, mem: &Mem) -> Result<(Vec<u8>, Mem), Unchecked> {
        let size = mem.size();
        let copy = Buffer::<u8>::new(&self.exec.context, size.max(1)).map_err(|error| error.to_string())?.region().mem;
        let mut saved = parts::zeros(size)?;
        let to = To { queue: self.queue, waits: &NOTHING, event: false };
        let (from, into) = (Location { mem, offset: 0 }, Location { mem: &copy, offset: 0 });
        // A buffer may forbid that the host reads it, but not that the device copies it.
        let done = if mem.is_buffer() {
            enqueue::copy(&to, &from, &into, size).and_then(|_| enqueue::read_blocking(&to, &into, &mut saved))
        } else {
            enqueue::read_blocking(&to, &from, &mut saved)
        };
        done.map_err(|error| error.to_string())?;
        Ok((saved, copy))
    }
}

/// A check of a launch.
struct Check<'a> {
    exec: &'a Finalized,
    tables: &'a Tables,
    grid: &'a Grid,
    queue: &'a DriverQueue,
    /// Does what the launch does, for the work-items of a range.
    kernel: Kernel,
    blocks: Vec<Block<'a>>,
    /// By argument.
    given: Vec<Given>,
    items: u64,
}

impl Check<'_> {
    /// Returns how the launch breaks a promise, if it does.
    fn broken(&self) -> Result<Option<Strayed>, Unchecked> {
        let expected = self.run(&(0..self.items), |_| false)?;
        let mut read = None;
        for items in parts::ranges(self.items) {
            let found = self.run(&items, |_| true)?;
            for (at, found) in found.iter().enumerate() {
                if let Some((saved, own)) = self.blocks[at].promised(&items)
                    && let Some(byte) = parts::stray(found, saved, &own)
                {
                    return Ok(self.found(at, at, items, byte));
                }
            }
            // What others wrote there when all ran is no sign that something was read: that may show in a later range.
            read = read.or_else(|| self.differs(&found, &expected, &items).map(|of| (items, of)));
        }
        let Some((items, (changed, byte))) = read else { return Ok(None) };
        for at in (0..self.blocks.len()).filter(|at| self.blocks[*at].bytes.is_some()) {
            let found = self.run(&items, |of| of == at)?;
            if let Some((changed, byte)) = self.differs(&found, &expected, &items) {
                let broken = self.found(at, changed, items, byte);
                return Ok(broken.map(|of| Strayed { wrote: false, ..of }));
            }
        }
        Ok(self.found(changed, changed, items, byte).map(|of| Strayed { wrote: false, ..of }))
    }

    fn found(&self, at: usize, changed: usize, items: Range<u64>, byte: usize) -> Option<Strayed> {
        let Block { argument, bytes, .. } = self.blocks[at];
        Some(Strayed { argument, bytes: bytes?, items, wrote: true, changed: self.blocks[changed].argument, byte })
    }

    /// Returns the block in which bytes of some work-items are others than expected, and the first such byte.
    fn differs(&self, found: &[Vec<u8>], expected: &[Vec<u8>], items: &Range<u64>) -> Option<(usize, usize)> {
        found.iter().zip(expected).zip(&self.blocks).enumerate().find_map(|(at, ((found, expected), block))| {
            let (_, own) = block.promised(items)?;
            Some((at, parts::differs(found, expected, &own)?))
        })
    }

    /// Runs some work-items on copies of the memory. Of the blocks that `is_changed` names, the promised bytes of others are changed.
    /// Returns what is in the promised blocks then, and nothing for others.
    fn run(&self, items: &Range<u64>, is_changed: impl Fn(usize) -> bool) -> Result<Vec<Vec<u8>>, Unchecked> {
        let to = To { queue: self.queue, waits: &NOTHING, event: false };
        let text = |error: crate::DriverError| error.to_string();
        for (at, block) in self.blocks.iter().enumerate() {
            let Some((saved, copy)) = &block.copy else { continue };
            let into = Location { mem: copy, offset: 0 };
            match block.promised(items).filter(|_| is_changed(at)) {
                Some((_, own)) => enqueue::write_blocking(&to, &into, &parts::changed(saved, &own)?),
                None => enqueue::write_blocking(&to, &into, saved),
            }
            .map_err(text)?;
        }
        let ([first, end], runs) = ([items.start, items.end].map(u64::to_ne_bytes), 1_u32.to_ne_bytes());
        let given = self.given.iter().map(|given| match given {
            Given::Same(arg) => set_arg(self.tables, arg),
            Given::Copy(at) => self.blocks[*at].copy.as_ref().map_or(Arg::Null(()), |(_, copy)| Arg::Memory(copy)),
        });
        let own = [&first[..], &end[..], &runs[..]].map(Arg::Value);
        let object = self.kernel.with_args(&self.exec.device, given.chain(own)).map_err(|error| match error {
            KernelObjectError::Argument { source, .. } => source.to_string(),
            KernelObjectError::Create(error) => error.to_string(),
        })?;
        enqueue_launch(&to, &object, self.grid).map_err(text)?;
        let mut found = Vec::with_capacity(self.blocks.len());
        for block in &self.blocks {
            let mut bytes = Vec::new();
            if let (Some(_), Some((saved, copy))) = (block.bytes, &block.copy) {
                bytes = parts::zeros(saved.len())?;
                enqueue::read_blocking(&to, &Location { mem: copy, offset: 0 }, &mut bytes).map_err(text)?;
            }
            found.push(bytes);
        }
        Ok(found)
    }
}
