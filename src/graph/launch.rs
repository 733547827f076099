//! Kernel launches, for graphs and queues alike: arguments, ranges, and everything that can be checked about them before a
//! driver sees them.

use std::sync::Arc;

use opencl_sys::{CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
use smallvec::SmallVec;

use super::fits::{Among, ArgUse, check_args, check_number, check_shared_images};
use super::parameter::{Cell, Value};
use super::range::{Extent, Sizes, check_bound, check_local, check_range};
use super::request::{Request, Target};
use super::tables::{Binding, Cells, Writer};
use crate::cl::buffer::Region;
use crate::cl::context::InContext;
use crate::cl::kernel::{ImageUse, Kernel, Number};
use crate::cl::mem::Mem;
use crate::cl::sampler::Sampler;
use crate::device_global::Declared;
use crate::error::{BuildCause, GlobalError, MemoryError};
use crate::ir::{Access, Arg, Mode, Op};

/// A kernel with its arguments and its range.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) kernel: Kernel,
    pub(crate) args: Vec<Given>,
    /// The by-value arguments, one behind the other.
    pub(crate) bytes: Vec<u8>,
    pub(crate) range: Option<Extent>,
    pub(crate) offset: Option<Extent>,
    pub(crate) work_group: Option<Extent>,
    /// Up to which ranges the promise holds, where it holds for others than the one given.
    pub(crate) bound: Option<Extent>,
    pub(crate) prints: bool,
    /// Memory that the kernel reaches by what it finds in memory.
    pub(crate) indirect: Vec<(Region, Mode)>,
    /// The arguments that parameters feed, in order.
    pub(crate) fed: Vec<Fed>,
    /// How it uses the device globals of its program, where that was said: those that are not here it does not.
    pub(crate) globals: Option<Vec<(Declared, Mode)>>,
    /// How many uses of nothing it has besides. See [`Arg::Unused`].
    pub(crate) unused: usize,
    /// Why an argument cannot start where it was said to.
    pub(crate) misplaced: Option<MemoryError>,
}

/// An argument and its parameters.
#[derive(Clone, Debug)]
pub(crate) struct Fed {
    arg: usize,
    cells: Cells,
    /// When the value was set that the argument has.
    time: u64,
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
            indirect: Vec::new(),
            fed: Vec::new(),
            globals: None,
            unused: 0,
            misplaced: None,
        }
    }

    /// Gives the next argument, of a parameter that is no buffer.
    pub(crate) fn parameter(&mut self, cell: &Arc<Cell>) {
        let arg = self.args.len();
        let time = cell.now(|value, time| {
            match value {
                Value::Bytes(bytes) => self.number(bytes, cell.number()),
                Value::Local(size) => self.args.push(Given::Local(*size)),
                Value::Sampler(sampler) => self.args.push(Given::Sampler(sampler.clone())),
                Value::Buffer(_) | Value::Null(_) => {}
            }
            time
        });
        self.fed.push(Fed { arg, cells: Cells::from_elem(Arc::clone(cell), 1), time });
    }

    /// Gives the next argument, of a parameter that is memory, or null.
    pub(crate) fn memory_parameter(&mut self, mode: Option<Mode>, cell: &Arc<Cell>) {
        self.fed.push(Fed { arg: self.args.len(), cells: Cells::from_elem(Arc::clone(cell), 1), time: 0 });
        match cell.snapshot().region {
            Some(region) => self.region(region, mode),
            None => self.null(mode),
        }
    }

    /// Gives the next argument, a null pointer; what it may become is used as is said, or as the kernel's parameter can be.
    pub(crate) fn null(&mut self, mode: Option<Mode>) {
        let mode = mode.unwrap_or_else(|| if self.next_is_const() { Mode::Read } else { Mode::ReadWrite });
        self.args.push(Given::Null(mode));
    }

    /// Whether the parameter of the next argument is known to point to what is only read.
    fn next_is_const(&self) -> bool {
        self.kernel.params().and_then(|params| params.get(self.args.len())).is_some_and(|param| param.is_const)
    }

    /// Gives the next argument, a buffer used as is said, or as it can be.
    pub(crate) fn region(&mut self, region: Region, mode: Option<Mode>) {
        match mode {
            Some(mode) => self.args.push(Given::Buffer(region, mode)),
            None => self.buffer(region),
        }
    }

    /// Registers a parameter with the argument that was given last.
    pub(crate) fn also(&mut self, cell: &Arc<Cell>) {
        // Without an argument it belongs to none, which the checks find.
        let arg = self.args.len().checked_sub(1).unwrap_or(usize::MAX);
        match self.fed.last_mut().filter(|fed| fed.arg == arg) {
            Some(fed) => fed.cells.push(Arc::clone(cell)),
            // Time 0: whatever the parameter is comes before what was given.
            None => self.fed.push(Fed { arg, cells: Cells::from_elem(Arc::clone(cell), 1), time: 0 }),
        }
    }

    /// Gives the arguments that parameters feed the values that these have now.
    #[inline(always)]
    pub(crate) fn resolve(&mut self) {
        if !self.fed.is_empty() {
            self.resolve_fed();
        }
    }

    fn resolve_fed(&mut self) {
        for fed in &mut self.fed {
            let Some(cell) = fed.cells.iter().max_by_key(|cell| cell.time()) else { continue };
            let now = cell.snapshot();
            fed.time = now.time;
            match (self.args.get_mut(fed.arg), now.value, now.region) {
                (Some(Given::Value(range, _)), Value::Bytes(bytes), _) if range.len() == bytes.len() => {
                    self.bytes[range.clone()].copy_from_slice(&bytes);
                }
                (Some(Given::Local(size)), Value::Local(now), _) => *size = now,
                (Some(Given::Sampler(of)), Value::Sampler(now), _) => *of = now,
                (Some(Given::Buffer(of, _)), _, Some(region)) => *of = region,
                (Some(given @ Given::Null(_)), _, Some(region)) => *given = Given::Buffer(region, given.mode()),
                (Some(given @ Given::Buffer(..)), Value::Null(_), _) => *given = Given::Null(given.mode()),
                // Found by the checks.
                _ => {}
            }
        }
    }

    /// Gives the next argument, a buffer: read or written where it can be nothing else, by its flags or because its
    /// parameter points to constant memory; otherwise read and written.
    pub(crate) fn buffer(&mut self, region: Region) {
        let flags = region.mem.flags();
        let param = self.kernel.params().and_then(|params| params.get(self.args.len()));
        match param.and_then(|param| param.access).filter(|_| region.mem.image().is_some()) {
            Some(ImageUse::ReadOnly) => return self.args.push(Given::Buffer(region, Mode::Read)),
            Some(ImageUse::WriteOnly) => return self.args.push(Given::Buffer(region, Mode::Write)),
            Some(ImageUse::ReadWrite) => return self.args.push(Given::Buffer(region, Mode::ReadWrite)),
            None => {}
        }
        if flags & CL_MEM_WRITE_ONLY != 0 {
            return self.args.push(Given::Buffer(region, Mode::Write));
        }
        let reads = flags & CL_MEM_READ_ONLY != 0 || self.next_is_const();
        self.args.push(Given::Buffer(region, if reads { Mode::Read } else { Mode::ReadWrite }));
    }

    /// Forgets all but the kernel.
    #[inline(always)] // See `ExecuteKernel::go`.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        // What has to be dropped is mostly not there.
        if !self.args.is_empty() {
            self.args.clear();
        }
        if !self.fed.is_empty() {
            self.fed.clear();
        }
        if !self.indirect.is_empty() {
            self.indirect.clear();
        }
        (self.globals, self.misplaced) = (None, None);
        (self.range, self.offset, self.work_group, self.bound, self.prints) = (None, None, None, None, false);
    }

    /// Says how it uses a device global, or none if there is none.
    pub(crate) fn uses_global(&mut self, global: Option<(Declared, Mode)>) {
        self.globals.get_or_insert_default().extend(global);
    }

    /// The memory that it uses, once for each use.
    pub(crate) fn memory<'l>(&'l self, checked: &Checked) -> impl Iterator<Item = &'l Mem> {
        let args = self.args.iter().filter_map(|arg| match arg {
            Given::Buffer(region, _) => Some(&region.mem),
            Given::Null(_) | Given::Sampler(_) | Given::Local(_) | Given::Value(..) => None,
        });
        let indirect = self.indirect.iter().map(|(region, _)| &region.mem);
        args.chain(indirect).chain(self.globals(checked).map(|(mem, _)| mem))
    }

    /// The device globals that it uses, of the device that it was checked for.
    fn globals<'l>(&'l self, checked: &Checked) -> impl Iterator<Item = (&'l Mem, Mode)> {
        self.kernel.globals_at(checked.built).filter_map(|(global, mem)| Some((mem, self.mode_of(global)?)))
    }

    /// How many uses of memory its node has.
    pub(crate) fn uses(&self, checked: &Checked) -> usize {
        self.memory(checked).count() + self.args.iter().filter(|arg| matches!(arg, Given::Null(_))).count()
    }

    /// How it uses a device global of its program.
    fn mode_of(&self, global: &Declared) -> Option<Mode> {
        let Some(said) = &self.globals else { return Some(Mode::ReadWrite) };
        let modes = said.iter().filter(|(of, _)| of.is(global)).map(|(_, mode)| *mode);
        modes.reduce(|one, other| if one == other { one } else { Mode::ReadWrite })
    }

    /// Whether the program has the globals that it is said to use.
    #[cold]
    fn check_globals(&self) -> Result<(), GlobalError> {
        let has = self.kernel.program().bound_globals().list();
        for (said, _) in self.globals.iter().flatten() {
            if !has.iter().any(|global| global.declared.is(said)) {
                let names: Vec<_> = has.iter().map(|global| format!("`{}`", global.declared.name)).collect();
                let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(GlobalError::NotListed { name: said.name, has });
            }
        }
        Ok(())
    }

    /// Gives the next argument, a value that may be anything.
    pub(crate) fn value(&mut self, value: &[u8]) {
        self.number(value, Number::Any);
    }

    /// Gives the next argument, a value of which it is known what number it is, if it is one.
    pub(crate) fn number(&mut self, value: &[u8], number: Number) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.args.push(Given::Value(start..self.bytes.len(), number));
    }
}

/// An argument as it was given.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    Buffer(Region, Mode),
    /// A null pointer, and how memory in its place is used.
    Null(Mode),
    Local(usize),
    /// A range of the builder's bytes.
    Value(std::ops::Range<usize>, Number),
    Sampler(Sampler),
}

impl Given {
    /// How it uses memory.
    fn mode(&self) -> Mode {
        match self {
            Self::Buffer(_, mode) | Self::Null(mode) => *mode,
            Self::Local(_) | Self::Value(..) | Self::Sampler(_) => Mode::Read,
        }
    }

    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::Buffer(region, _) if region.mem.image().is_some() => "an image",
            Self::Buffer(..) => "a buffer",
            Self::Sampler(_) => "a sampler",
            Self::Null(_) => "a null buffer",
            Self::Local(_) => "a size of local memory",
            Self::Value(..) => "a value",
        }
    }
}

impl Launch {
    /// The first argument that a parameter feeds.
    pub(crate) fn first_fed(&self) -> Option<usize> {
        self.fed.first().map(|fed| fed.arg)
    }

    #[cold]
    fn check_images(&self) -> Result<(), BuildCause> {
        let uses = self.args.iter().enumerate().filter_map(|(index, arg)| match arg {
            Given::Buffer(region, mode) => Some(ArgUse { index, region: region.clone(), mode: *mode }),
            _ => None,
        });
        check_shared_images(&uses.collect::<Vec<_>>())
    }

    /// Its range as drivers take it, once it was checked.
    #[inline]
    pub(crate) fn sizes(&self, built: Option<usize>) -> Sizes<'_> {
        let facts = self.kernel.facts_at(built);
        Sizes::of(self.range.as_ref(), self.offset.as_ref(), self.work_group.as_ref(), facts)
    }

    /// Whether what is reached indirectly has addresses.
    fn check_indirect(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        for (region, _) in &self.indirect {
            target.check_context(region, "memory that is reached indirectly")?;
            if !region.mem.kind().is_pointer() {
                return Err(BuildCause::NotSupported {
                    what: "reaching a buffer indirectly".to_owned(),
                    why: "it has no address: use USM or SVM (`Memory::with_kind`)".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Whether parameters fit the arguments that they are registered with.
    fn check_fed(&self) -> Result<(), BuildCause> {
        for Fed { arg, cells, .. } in &self.fed {
            let index = *arg;
            let Some(given) = self.args.get(index) else {
                let parameter = cells.first().map_or_else(String::new, |cell| cell.what());
                let argument = "not given before `also`: put `also` behind the argument that it is for".to_owned();
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
                    (Given::Value(range, _), Value::Bytes(bytes), _) => range.len() == bytes.len(),
                    (Given::Local(_), Value::Local(_), _) | (Given::Sampler(_), Value::Sampler(_), _) => true,
                    (Given::Buffer(of, _), _, Some(region)) => match (of.mem.image(), region.mem.image()) {
                        (None, None) => (region.offset, region.size) == (of.offset, of.size),
                        (Some(one), Some(other)) => (one.shape, one.format) == (other.shape, other.format),
                        _ => false,
                    },
                    (Given::Buffer(of, _), Value::Null(_), _) => {
                        of.mem.image().is_none() && cell.range() == Some(of.offset..of.offset + of.size)
                    }
                    (Given::Null(_), Value::Null(_), _) => true,
                    (Given::Null(_), _, Some(region)) => region.mem.image().is_none(),
                    _ => false,
                };
                if !fits {
                    let argument = match given {
                        Given::Value(range, _) => format!("a value of {} bytes", range.len()),
                        Given::Buffer(of, _) if of.mem.image().is_some() => given.what().to_owned(),
                        Given::Buffer(of, _) => format!("bytes {}..{} of a buffer", of.offset, of.offset + of.size),
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
        if !self.fed.is_empty() {
            self.check_fed()?;
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

    fn lower(self, checked: Checked, state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        let grid = self.sizes(checked.built).grid();
        let globals: SmallVec<[_; 4]> = self.globals(&checked).map(|(mem, mode)| (mem.clone(), mode)).collect();
        let Self { kernel, args, bytes, prints, fed, bound, indirect, unused, .. } = self;
        let id = state.kernel(&kernel, checked.built.is_some());
        let base = state.ir.push_bytes(&bytes)?;
        let mut lowered = SmallVec::<[Arg; 8]>::with_capacity(args.len());
        for arg in args {
            lowered.push(match arg {
                Given::Buffer(region, mode) => {
                    let access = state.access(&region, mode);
                    let view = access.view;
                    state.keep(view);
                    accesses.push(access);
                    Arg::Buffer(view)
                }
                Given::Null(mode) => {
                    let access = state.no_access(mode);
                    let view = access.view;
                    accesses.push(access);
                    Arg::Null(view)
                }
                Given::Sampler(sampler) => Arg::Sampler(state.sampler(&sampler)?),
                Given::Local(size) => Arg::Local(size),
                Given::Value(range, _) => Arg::Value(base.part(range)),
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
        state.bindings.extend(fed.into_iter().map(|Fed { arg, cells, time }| Binding { arg: place(arg), cells, time }));
        let bound = bound.map(|bound| Box::new(bound.sizes));
        Some(Op::Kernel { kernel: id, args, grid, bound, prints })
    }
}

/// What the checks of a launch found out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked {
    /// Which of the devices that the program was built for it is, if it is one.
    pub(crate) built: Option<usize>,
    /// Whether it uses what drivers are known not to keep while it waits.
    pub(crate) loose: bool,
    /// Whether it uses memory with addresses.
    pub(crate) addresses: bool,
}
