//! Kernel launches, for graphs and queues: arguments, ranges, and every check that is possible before a driver sees
//! them.

use std::sync::Arc;

use opencl_sys::{CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
use smallvec::SmallVec;

use crate::cl::memory::region::Region;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::context::InContext;
use crate::cl::objects::kernel::Kernel;
use crate::cl::objects::kernel_params::{ImageUse, Number};
use crate::command::{Arg, Command, Elementwise};
use crate::device_global::Declared;
use crate::error::{BuildCause, GlobalError, MemoryError};
use crate::graph::nodes::argument_checks::{Among, ArgUse, check_args, check_number, check_shared_images};
use crate::graph::nodes::range::{Extent, Sizes, check_bound, check_local, check_range};
use crate::graph::nodes::request::{ByHandle, CommandRequest, Request, Requested, Target};
use crate::graph::parameters::{Cell, Value};
use crate::graph::tables::{Binding, Cells};
use crate::graph::writer::Writer;
use crate::ir::{Access, ById, Mode};

/// A kernel with its arguments and its range.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) kernel: Kernel,
    pub(crate) args: Vec<Arg<ByHandle>>,
    /// The bytes of the by-value arguments, one after another.
    pub(crate) bytes: Vec<u8>,
    pub(crate) range: Option<Extent>,
    pub(crate) offset: Option<Extent>,
    pub(crate) work_group: Option<Extent>,
    /// The largest range that the safety promise covers, if it covers more than the given range.
    pub(crate) bound: Option<Extent>,
    pub(crate) prints: bool,
    /// By argument, how many bytes belong to each work-item, as it was promised.
    pub(crate) elementwise: Vec<(usize, usize)>,
    /// Memory that the kernel reaches through pointers that it finds in memory.
    pub(crate) indirect: Vec<(Region, Mode)>,
    /// The arguments that are bound to parameters, in order.
    pub(crate) parameter_bound: Vec<BoundArgument>,
    /// How the kernel uses the device globals of its program, if that was declared: it does not use globals that are
    /// not here.
    pub(crate) globals: Option<Vec<(Declared, Mode)>>,
    /// The number of additional uses of no memory. See [`Arg::Unused`].
    pub(crate) unused: usize,
    /// Why an argument cannot start where the caller put it.
    pub(crate) misplaced: Option<MemoryError>,
}

/// An argument and the parameters that it is bound to.
#[derive(Clone, Debug)]
pub(crate) struct BoundArgument {
    pub(in crate::graph) arg: usize,
    cells: Cells,
    /// When the value of the argument was set.
    time: u64,
}

impl BoundArgument {
    pub(in crate::graph) fn of(arg: usize, binding: &Binding) -> Self {
        Self { arg, cells: binding.cells.clone(), time: binding.time }
    }

    /// Returns the same for another argument.
    pub(in crate::graph) fn at(self, arg: usize) -> Self {
        Self { arg, ..self }
    }
}

impl Launch {
    pub(crate) fn new(kernel: &Kernel) -> Self {
        Self {
            kernel: kernel.clone(),
            args: Vec::with_capacity(kernel.num_args() as usize),
            bytes: Vec::new(),
            range: None,
            offset: None,
            work_group: None,
            bound: None,
            prints: false,
            elementwise: Vec::new(),
            indirect: Vec::new(),
            parameter_bound: Vec::new(),
            globals: None,
            unused: 0,
            misplaced: None,
        }
    }

    /// Adds an argument that is bound to a parameter of no buffer.
    pub(crate) fn parameter(&mut self, cell: &Arc<Cell>) {
        let arg = self.args.len();
        let time = cell.now(|value, time| {
            match value {
                Value::Bytes(bytes) => self.number(bytes, cell.number()),
                Value::Local(size) => self.args.push(Arg::Local(*size)),
                Value::Sampler(sampler) => self.args.push(Arg::Sampler(sampler.clone())),
                Value::Buffer(_) | Value::Null(_) => {}
            }
            time
        });
        self.parameter_bound.push(BoundArgument { arg, cells: Cells::from_elem(Arc::clone(cell), 1), time });
    }

    /// Adds an argument that is bound to a parameter of memory or a null pointer.
    pub(crate) fn memory_parameter(&mut self, mode: Option<Mode>, cell: &Arc<Cell>) {
        self.parameter_bound.push(BoundArgument {
            arg: self.args.len(),
            cells: Cells::from_elem(Arc::clone(cell), 1),
            time: 0,
        });
        match cell.snapshot().region {
            Some(region) => self.region(region, mode),
            None => self.null(mode),
        }
    }

    /// Adds a null pointer. Memory in its place is used as declared, or by default as the kernel's parameter allows.
    pub(crate) fn null(&mut self, mode: Option<Mode>) {
        let mode = mode.unwrap_or_else(|| if self.next_is_const() { Mode::Read } else { Mode::ReadWrite });
        self.args.push(Arg::Null(mode));
    }

    /// Whether the parameter of the next argument is known to point to memory that is only read.
    fn next_is_const(&self) -> bool {
        self.kernel.params().and_then(|params| params.get(self.args.len())).is_some_and(|param| param.is_const)
    }

    /// Adds a buffer that is used as declared, or by default as its flags and the kernel's parameter allow.
    pub(crate) fn region(&mut self, region: Region, mode: Option<Mode>) {
        match mode {
            Some(mode) => self.args.push(Arg::Memory((region, mode))),
            None => self.buffer(region),
        }
    }

    /// Binds one more parameter to the last argument.
    pub(crate) fn also_parameter(&mut self, cell: &Arc<Cell>) {
        // Without an argument the parameter is bound to an impossible index, which the checks find.
        let arg = self.args.len().checked_sub(1).unwrap_or(usize::MAX);
        match self.parameter_bound.last_mut().filter(|parameter_bound| parameter_bound.arg == arg) {
            Some(parameter_bound) => parameter_bound.cells.push(Arc::clone(cell)),
            // Time 0: any value of the parameter counts as newer than the given value.
            None => {
                self.parameter_bound.push(BoundArgument { arg, cells: Cells::from_elem(Arc::clone(cell), 1), time: 0 })
            }
        }
    }

    /// Sets the arguments that are bound to parameters to the current values of the parameters.
    #[inline(always)]
    pub(crate) fn resolve(&mut self) {
        if !self.parameter_bound.is_empty() {
            self.resolve_bound();
        }
    }

    fn resolve_bound(&mut self) {
        for parameter_bound in &mut self.parameter_bound {
            let Some(cell) = parameter_bound.cells.iter().max_by_key(|cell| cell.time()) else { continue };
            let now = cell.snapshot();
            parameter_bound.time = now.time;
            match (self.args.get_mut(parameter_bound.arg), now.value, now.region) {
                (Some(Arg::Value((range, _))), Value::Bytes(bytes), _) if range.len() == bytes.len() => {
                    self.bytes[range.clone()].copy_from_slice(&bytes);
                }
                (Some(Arg::Local(size)), Value::Local(now), _) => *size = now,
                (Some(Arg::Sampler(of)), Value::Sampler(now), _) => *of = now,
                (Some(Arg::Memory((of, _))), _, Some(region)) => *of = region,
                (Some(given @ Arg::Null(_)), _, Some(region)) => *given = Arg::Memory((region, given.mode())),
                (Some(given @ Arg::Memory(_)), Value::Null(_), _) => *given = Arg::Null(given.mode()),
                // The checks find this.
                _ => {}
            }
        }
    }

    /// Adds a buffer whose use was not declared. It counts as only read or only written if its flags, or a parameter
    /// that points to constant memory, allow nothing else, and as read and written otherwise.
    pub(crate) fn buffer(&mut self, region: Region) {
        let flags = region.mem.flags();
        let param = self.kernel.params().and_then(|params| params.get(self.args.len()));
        match param.and_then(|param| param.access).filter(|_| region.mem.image().is_some()) {
            Some(ImageUse::ReadOnly) => return self.args.push(Arg::Memory((region, Mode::Read))),
            Some(ImageUse::WriteOnly) => return self.args.push(Arg::Memory((region, Mode::Write))),
            Some(ImageUse::ReadWrite) => return self.args.push(Arg::Memory((region, Mode::ReadWrite))),
            None => {}
        }
        if flags & CL_MEM_WRITE_ONLY != 0 {
            return self.args.push(Arg::Memory((region, Mode::Write)));
        }
        let reads = flags & CL_MEM_READ_ONLY != 0 || self.next_is_const();
        self.args.push(Arg::Memory((region, if reads { Mode::Read } else { Mode::ReadWrite })));
    }

    /// Removes everything except the kernel.
    #[inline(always)] // See `ExecuteKernel::go`.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        // Most lists are empty, and then the test is cheaper than the drop.
        if !self.args.is_empty() {
            self.args.clear();
        }
        if !self.parameter_bound.is_empty() {
            self.parameter_bound.clear();
        }
        if !self.indirect.is_empty() {
            self.indirect.clear();
        }
        if !self.elementwise.is_empty() {
            self.elementwise.clear();
        }
        (self.globals, self.misplaced) = (None, None);
        (self.range, self.offset, self.work_group, self.bound, self.prints) = (None, None, None, None, false);
    }

    /// Declares how the kernel uses a device global, or, with `None`, that it uses no global.
    pub(crate) fn uses_global(&mut self, global: Option<(Declared, Mode)>) {
        self.globals.get_or_insert_default().extend(global);
    }

    /// Calls `each` with the memory that the launch may use on any device.
    pub(crate) fn all_memory(&self, each: &mut dyn FnMut(&Mem)) {
        for arg in &self.args {
            if let Arg::Memory((region, _)) = arg {
                each(&region.mem);
            }
        }
        self.indirect.iter().for_each(|(region, _)| each(&region.mem));
        self.kernel.program().bound_globals().mems().for_each(each);
    }

    /// The memory that the launch uses, once for each use.
    pub(crate) fn memory<'l>(&'l self, checked: &Checked) -> impl Iterator<Item = &'l Mem> {
        let args = self.args.iter().filter_map(|arg| match arg {
            Arg::Memory((region, _)) => Some(&region.mem),
            _ => None,
        });
        let indirect = self.indirect.iter().map(|(region, _)| &region.mem);
        args.chain(indirect).chain(self.globals(checked).map(|(mem, _)| mem))
    }

    /// The device globals that the launch uses, on the device that it was checked for.
    fn globals<'l>(&'l self, checked: &Checked) -> impl Iterator<Item = (&'l Mem, Mode)> {
        self.kernel.globals_at(checked.built).filter_map(|(global, mem)| Some((mem, self.mode_of(global)?)))
    }

    /// The number of uses of memory that the node of this launch has.
    pub(crate) fn uses(&self, checked: &Checked) -> usize {
        self.memory(checked).count() + self.args.iter().filter(|arg| matches!(arg, Arg::Null(_))).count()
    }

    /// How the launch uses a device global of its program.
    fn mode_of(&self, global: &Declared) -> Option<Mode> {
        let Some(listed) = &self.globals else { return Some(Mode::ReadWrite) };
        let modes = listed.iter().filter(|(of, _)| of.is(global)).map(|(_, mode)| *mode);
        modes.reduce(|one, other| if one == other { one } else { Mode::ReadWrite })
    }

    /// Checks that the program has the globals that were declared.
    #[cold]
    fn check_globals(&self) -> Result<(), GlobalError> {
        let has = self.kernel.program().bound_globals().list();
        for (listed, _) in self.globals.iter().flatten() {
            if !has.iter().any(|global| global.declared.is(listed)) {
                let names: Vec<_> = has.iter().map(|global| format!("`{}`", global.declared.name)).collect();
                let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(GlobalError::NotListed { name: listed.name, has });
            }
        }
        Ok(())
    }

    /// Adds a value whose type is unknown.
    pub(crate) fn value(&mut self, value: &[u8]) {
        self.number(value, Number::Any);
    }

    /// Adds a value whose number type is known, if it is a number.
    pub(crate) fn number(&mut self, value: &[u8], number: Number) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.args.push(Arg::Value((start..self.bytes.len(), number)));
    }
}

/// An argument as the caller gave it.
impl Arg<ByHandle> {
    /// How the argument uses memory.
    fn mode(&self) -> Mode {
        match self {
            Self::Memory((_, mode)) | Self::Null(mode) => *mode,
            _ => Mode::Read,
        }
    }

    pub(in crate::graph) fn what(&self) -> &'static str {
        match self {
            Self::Memory((region, _)) if region.mem.image().is_some() => "an image",
            Self::Memory(_) => "a buffer",
            Self::Sampler(_) => "a sampler",
            Self::Null(_) => "a null buffer",
            Self::Local(_) => "a size of local memory",
            Self::Value(_) => "a value",
            Self::Indirect(_) => "memory that is accessed indirectly",
            Self::Global(_) => "a device global",
            Self::Unused(_) => "memory that is not used",
        }
    }
}

impl Launch {
    /// The first argument that is bound to a parameter.
    pub(crate) fn first_bound(&self) -> Option<usize> {
        self.parameter_bound.first().map(|parameter_bound| parameter_bound.arg)
    }

    #[cold]
    fn check_images(&self) -> Result<(), BuildCause> {
        let uses = self.args.iter().enumerate().filter_map(|(index, arg)| match arg {
            Arg::Memory((region, mode)) => Some(ArgUse { index, region: region.clone(), mode: *mode }),
            _ => None,
        });
        check_shared_images(&uses.collect::<Vec<_>>())
    }

    /// The checked range in the form that drivers take.
    #[inline]
    pub(crate) fn sizes(&self, built: Option<usize>) -> Sizes<'_> {
        let facts = self.kernel.facts_at(built);
        Sizes::of(self.range.as_ref(), self.offset.as_ref(), self.work_group.as_ref(), facts)
    }

    /// Checks that memory which is reached indirectly has an address.
    fn check_indirect(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        for (region, _) in &self.indirect {
            target.check_context(region, "memory that is accessed indirectly")?;
            if !region.mem.kind().is_pointer() {
                return Err(BuildCause::NotSupported {
                    what: "indirect access to a buffer".to_owned(),
                    why: "a buffer has no address; use USM or SVM (`Memory::with_kind`)".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Checks that bytes of work-items are promised of memory, and once.
    #[cold]
    fn check_elementwise(&self) -> Result<(), BuildCause> {
        for (at, (argument, bytes)) in self.elementwise.iter().enumerate() {
            let is_memory = match self.args.get(*argument) {
                Some(Arg::Memory((region, _))) => region.mem.image().is_none(),
                Some(Arg::Null(_)) => true,
                _ => false,
            };
            let other = self.elementwise[..at].iter().find(|(of, other)| of == argument && other != bytes);
            let why = match (is_memory, bytes, other) {
                (false, ..) if *argument >= self.args.len() => {
                    format!("the launch has {} arguments", self.args.len())
                }
                (false, ..) => format!("it is {}, not memory", self.args[*argument].what()),
                (true, 0, _) => "no bytes would belong to a work-item: give the size of an element".to_owned(),
                (true, _, Some((_, other))) => format!("it was promised of {other} bytes and of {bytes}"),
                (true, _, None) => continue,
            };
            return Err(BuildCause::Elementwise { index: *argument, why });
        }
        Ok(())
    }

    /// What is promised of each work-item, for the command.
    pub(in crate::graph) fn elementwise(&self) -> Option<Box<Elementwise>> {
        if self.elementwise.is_empty() { None } else { Elementwise::of(self.elementwise.clone()) }
    }

    /// Checks that parameters match the arguments that they are bound to.
    fn check_bound(&self) -> Result<(), BuildCause> {
        for BoundArgument { arg, cells, .. } in &self.parameter_bound {
            let index = *arg;
            let Some(given) = self.args.get(index) else {
                let parameter = cells.first().map_or_else(String::new, |cell| cell.what());
                let argument = "not given yet (call `also_parameter` after the argument that it belongs to)".to_owned();
                return Err(BuildCause::Parameter { index: 0, parameter, argument });
            };
            for cell in cells {
                if let Some(error) = cell.misplaced() {
                    return Err(error.clone().into());
                }
                if let Some(param) = self.kernel.params().map(|params| &params[index]) {
                    check_number(index, cell.number(), param)?;
                }
                let now = cell.snapshot();
                let fits = match (given, &now.value, &now.region) {
                    (Arg::Value((range, _)), Value::Bytes(bytes), _) => range.len() == bytes.len(),
                    (Arg::Local(_), Value::Local(_), _) | (Arg::Sampler(_), Value::Sampler(_), _) => true,
                    (Arg::Memory((of, _)), _, Some(region)) => match (of.mem.image(), region.mem.image()) {
                        (None, None) => (region.offset, region.size) == (of.offset, of.size),
                        (Some(one), Some(other)) => (one.shape, one.format) == (other.shape, other.format),
                        _ => false,
                    },
                    (Arg::Memory((of, _)), Value::Null(_), _) => {
                        of.mem.image().is_none() && cell.range() == Some(of.offset..of.offset + of.size)
                    }
                    (Arg::Null(_), Value::Null(_), _) => true,
                    (Arg::Null(_), _, Some(region)) => region.mem.image().is_none(),
                    _ => false,
                };
                if !fits {
                    let argument = match given {
                        Arg::Value((range, _)) => format!("a value of {} bytes", range.len()),
                        Arg::Memory((of, _)) if of.mem.image().is_some() => given.what().to_owned(),
                        Arg::Memory((of, _)) => {
                            format!("bytes {}..{} of a buffer", of.offset, of.offset + of.size)
                        }
                        given => given.what().to_owned(),
                    };
                    return Err(BuildCause::Parameter { index, parameter: cell.what(), argument });
                }
            }
        }
        Ok(())
    }
}

impl Request for Launch {
    type Checked = Checked;

    fn subject(&self) -> String {
        format!("kernel `{}`", self.kernel.name())
    }

    #[inline(always)] // See `ExecuteKernel::go`.
    fn check(&self, target: &Target<'_>) -> Result<Checked, BuildCause> {
        if self.kernel.program().context() != target.context {
            return Err(BuildCause::OtherContext { what: "the kernel's program".to_owned() });
        }
        let caps = target.device.caps();
        let Among { local, images, loose, addresses } = check_args(target, &self.kernel, &self.args, caps)?;
        if !self.indirect.is_empty() {
            self.check_indirect(target)?;
        }
        if self.globals.is_some() {
            self.check_globals()?;
        }
        let built = self.kernel.place_of(target.device);
        let facts = self.kernel.facts_at(built);
        check_range(self.range.as_ref(), self.offset.as_ref(), self.work_group.as_ref(), facts, caps)?;
        check_local(local, facts, caps)?;
        if images {
            self.check_images()?;
        }
        if !self.parameter_bound.is_empty() {
            self.check_bound()?;
        }
        if !self.elementwise.is_empty() {
            self.check_elementwise()?;
        }
        if self.bound.is_some() {
            check_bound(&self.sizes(built).grid(), self.bound)?;
        }
        if let Some(error) = &self.misplaced {
            return Err(error.clone().into());
        }
        let addresses = addresses || !self.indirect.is_empty() || self.kernel.has_globals();
        Ok(Checked { built, loose, addresses })
    }

    fn lower(self, checked: Checked, state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        let (grid, elementwise) = (self.sizes(checked.built).grid(), self.elementwise());
        let globals: SmallVec<[_; 4]> = self.globals(&checked).map(|(mem, mode)| (mem.clone(), mode)).collect();
        let Self { kernel, args, bytes, prints, parameter_bound, bound, indirect, unused, .. } = self;
        let id = state.kernel(&kernel, checked.built.is_some());
        let base = state.ir.push_bytes(&bytes)?;
        let mut lowered = SmallVec::<[Arg<ById>; 8]>::with_capacity(args.len());
        let is_written = |arg: &Arg<ByHandle>| matches!(arg, Arg::Memory((_, mode)) | Arg::Null(mode) if mode.writes());
        let params = kernel.params().unwrap_or_default();
        state.has_written_const |= params.iter().zip(&args).any(|(param, arg)| param.is_const && is_written(arg));
        for arg in args {
            lowered.push(match arg {
                Arg::Memory((region, mode)) => {
                    let access = state.access(&region, mode);
                    let view = access.view;
                    state.keep(view);
                    accesses.push(access);
                    Arg::Memory(view)
                }
                Arg::Null(mode) => {
                    let access = state.no_access(mode);
                    let view = access.view;
                    accesses.push(access);
                    Arg::Null(view)
                }
                Arg::Sampler(sampler) => Arg::Sampler(state.sampler(&sampler)?),
                Arg::Local(size) => Arg::Local(size),
                Arg::Value((range, _)) => Arg::Value(base.part(range)),
                // These have lists of their own.
                Arg::Indirect(_) | Arg::Global(_) | Arg::Unused(_) => continue,
            });
        }
        for (region, mode) in indirect {
            let access = state.access(&region, mode);
            state.keep(access.view);
            lowered.push(Arg::Indirect(access.view));
            accesses.push(access);
        }
        for (mem, mode) in globals {
            let size = mem.size();
            let access = state.access(&Region { mem, offset: 0, size }, mode);
            state.keep(access.view);
            lowered.push(Arg::Global(access.view));
            accesses.push(access);
        }
        for _ in 0..unused {
            let access = state.no_access(Mode::Read);
            lowered.push(Arg::Unused(access.view));
            accesses.push(access);
        }
        let args = state.ir.push_args(lowered.into_iter())?;
        let place = |arg: usize| args.ends().0 + arg as u32;
        state.bindings.extend(parameter_bound.into_iter().map(|BoundArgument { arg, cells, time }| Binding {
            arg: place(arg),
            cells,
            time,
        }));
        let bound = bound.map(|bound| Box::new(bound.sizes));
        Some(Command::Kernel { kernel: id, args, grid, bound, prints, elementwise })
    }
}

impl CommandRequest for Launch {
    fn command(self, checked: Checked) -> Requested {
        Requested::launch(Box::new(CheckedLaunch { launch: self, checked }))
    }
}

impl Launch {
    /// Checks a launch that stands for another command.
    pub(in crate::graph) fn checked(self, target: &Target<'_>) -> Result<CheckedLaunch, BuildCause> {
        let checked = self.check(target)?;
        Ok(CheckedLaunch { launch: self, checked })
    }
}

/// A launch and the results of its checks.
#[derive(Clone, Debug)]
pub(crate) struct CheckedLaunch {
    pub(crate) launch: Launch,
    pub(crate) checked: Checked,
}

/// The results of the checks of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked {
    /// The index of the target device among the devices that the program was built for, if it is one of them.
    pub(crate) built: Option<usize>,
    /// Whether the launch uses objects that some drivers do not keep alive while the launch waits.
    pub(crate) loose: bool,
    /// Whether the launch uses memory with an address.
    pub(crate) addresses: bool,
}
