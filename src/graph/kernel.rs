//! Kernel nodes: arguments, ranges, and everything that can be checked about them before a driver sees them.

use std::sync::Arc;

use opencl_sys::{CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};

use super::argument::{BufferArg, LaunchRef, ValueArg};
use super::fits::{Among, ArgUse, check_args, check_shared_images};
use super::parameter::{Cell, Parameter, Value};
use super::range::{Extent, Sizes, check_bound, check_local, check_range};
use super::request::{Request, Target};
use super::tables::{Binding, Cells, Writer};
use super::{After, Graph, Node, after_methods};
use crate::cl::buffer::{AsRegion, Region};
use crate::cl::context::InContext;
use crate::cl::kernel::{ImageUse, Kernel};
use crate::cl::sampler::Sampler;
use crate::error::{BuildCause, Result};
use crate::ir::{Access, Arg, Mode, NodeId, Op, Warning};

impl Graph {
    /// Starts a kernel node.
    ///
    /// Arguments are given in the order of the kernel's parameters, each by the method that says what it is. How a
    /// buffer is used decides which nodes wait for which, so say `read` where a kernel only reads.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Graph, Program, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let source = "kernel void scale(global const float *in, global float *out, float by) {
    ///     out[get_global_id(0)] = in[get_global_id(0)] * by;
    /// }";
    /// let scale = Program::from_source(&queue, source)?.kernel("scale")?;
    /// let (a, b) = (Buffer::<f32>::new(&queue, 256)?, Buffer::<f32>::new(&queue, 256)?);
    /// let graph = Graph::new(&queue)?;
    /// // SAFETY: a work-item touches its own element of each buffer, and there are as many as elements.
    /// unsafe { graph.kernel(&scale).read(&a).write(&b).arg(0.5_f32).range(256).work_group(64).add()? };
    /// # Ok(()) }
    /// ```
    #[doc(alias = "clEnqueueNDRangeKernel")]
    pub fn kernel(&self, kernel: &Kernel) -> KernelNode<'_> {
        KernelNode { graph: self, after: After::default(), launch: Launch::new(kernel) }
    }
}

/// A kernel node to be added. See [`Graph::kernel`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct KernelNode<'g> {
    graph: &'g Graph,
    after: After,
    launch: Launch,
}

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
        }
    }

    /// Gives the next argument, of a parameter that is no buffer.
    pub(crate) fn parameter(&mut self, cell: &Arc<Cell>) {
        let arg = self.args.len();
        let time = cell.now(|value, time| {
            match value {
                Value::Bytes(bytes) => self.value(bytes),
                Value::Local(size) => self.args.push(Given::Local(*size)),
                Value::Buffer(_) => {}
            }
            time
        });
        self.fed.push(Fed { arg, cells: Cells::from_elem(Arc::clone(cell), 1), time });
    }

    /// Gives the next argument, of a parameter that is a buffer.
    pub(crate) fn buffer_parameter(&mut self, region: Region, mode: Option<Mode>, cell: &Arc<Cell>) {
        self.fed.push(Fed { arg: self.args.len(), cells: Cells::from_elem(Arc::clone(cell), 1), time: 0 });
        self.region(region, mode);
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
                (Some(Given::Value(range)), Value::Bytes(bytes), _) if range.len() == bytes.len() => {
                    self.bytes[range.clone()].copy_from_slice(&bytes);
                }
                (Some(Given::Local(size)), Value::Local(now), _) => *size = now,
                (Some(Given::Buffer(of, _)), _, Some(region)) => *of = region,
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
        let reads = flags & CL_MEM_READ_ONLY != 0
            || self.kernel.params().and_then(|params| params.get(self.args.len())).is_some_and(|param| param.is_const);
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
        (self.range, self.offset, self.work_group, self.bound, self.prints) = (None, None, None, None, false);
    }

    /// Gives the next argument, a value.
    pub(crate) fn value(&mut self, value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.args.push(Given::Value(start..self.bytes.len()));
    }
}

/// An argument as it was given.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    Buffer(Region, Mode),
    Null,
    Local(usize),
    /// A range of the builder's bytes.
    Value(std::ops::Range<usize>),
    Sampler(Sampler),
}

impl Given {
    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::Buffer(region, _) if region.mem.image().is_some() => "an image",
            Self::Buffer(..) => "a buffer",
            Self::Sampler(_) => "a sampler",
            Self::Null => "a null buffer",
            Self::Local(_) => "a size of local memory",
            Self::Value(_) => "a value",
        }
    }
}

impl KernelNode<'_> {
    after_methods!();

    /// Gives a buffer, or a parameter that is one, that the kernel only reads. A slice says which part; the argument is the
    /// whole buffer.
    pub fn read<T>(self, buffer: &impl BufferArg<T>) -> Self {
        self.used(buffer, Mode::Read)
    }

    /// Gives a buffer that the kernel writes without reading what was in it.
    pub fn write<T>(self, buffer: &impl BufferArg<T>) -> Self {
        self.used(buffer, Mode::Write)
    }

    /// Gives a buffer that the kernel reads and writes, or of which it is not known how it is used.
    pub fn read_write<T>(self, buffer: &impl BufferArg<T>) -> Self {
        self.used(buffer, Mode::ReadWrite)
    }

    fn used<T>(mut self, buffer: &impl BufferArg<T>, mode: Mode) -> Self {
        buffer.give_buffer(&mut LaunchRef { launch: &mut self.launch, mode: Some(mode) });
        self
    }

    /// Says that the kernel reads memory which it reaches by addresses that it finds in memory, and not by an argument
    /// (`clSetKernelExecInfo`). [`Parameter`]s do not reach it; [`replace`](Self::replace) does.
    #[doc(alias = "clSetKernelExecInfo")]
    pub fn indirect_read<T>(self, memory: &impl AsRegion<T>) -> Self {
        self.reached(memory.region(), Mode::Read)
    }

    /// As [`indirect_read`](Self::indirect_read), for memory that the kernel writes without reading what was in it.
    pub fn indirect_write<T>(self, memory: &impl AsRegion<T>) -> Self {
        self.reached(memory.region(), Mode::Write)
    }

    /// As [`indirect_read`](Self::indirect_read), for memory that the kernel reads and writes, or of which it is not known how
    /// it is used.
    pub fn indirect<T>(self, memory: &impl AsRegion<T>) -> Self {
        self.reached(memory.region(), Mode::ReadWrite)
    }

    fn reached(mut self, region: Region, mode: Mode) -> Self {
        self.launch.indirect.push((region, mode));
        self
    }

    /// Gives a null pointer where a buffer belongs.
    pub fn null(self) -> Self {
        self.given(Given::Null)
    }

    /// Gives local memory for `len` elements of type `T` a work-group.
    pub fn local<T>(self, len: usize) -> Self {
        self.given(Given::Local(len.saturating_mul(size_of::<T>())))
    }

    /// Gives a value: a scalar, an array for a vector, or a `#[repr(C)]` struct that derives `bytemuck::Pod`. A vector of
    /// three elements has the size of four in OpenCL C: give `[f32; 4]` for a `float3`. Or a [`Parameter`] of a value, of
    /// bytes, or of local memory.
    pub fn arg(mut self, value: impl ValueArg) -> Self {
        value.give_value(&mut LaunchRef::new(&mut self.launch));
        self
    }

    /// Registers one more parameter with the argument that was given last. The argument then has the value of the one that
    /// was set last.
    pub fn also<T: ?Sized>(mut self, parameter: &Parameter<T>) -> Self {
        self.launch.also(parameter.cell());
        self
    }

    /// Gives a value as raw bytes.
    pub fn bytes(mut self, value: &[u8]) -> Self {
        self.launch.value(value);
        self
    }

    fn given(mut self, arg: Given) -> Self {
        self.launch.args.push(arg);
        self
    }

    /// The range: how many work-items, by dimension. A range with a zero in it is valid and runs nothing.
    #[doc(alias = "global_work_size")]
    pub fn range(mut self, range: impl Into<Extent>) -> Self {
        self.launch.range = Some(range.into());
        self
    }

    /// Up to which ranges the promise of [`add`](Self::add) holds: every range and offset whose ids stay below these, and
    /// every size of work-groups. Within it [`Graph::set_nd_range`] changes the range; without it, it cannot.
    pub fn range_up_to(mut self, bound: impl Into<Extent>) -> Self {
        self.launch.bound = Some(bound.into());
        self
    }

    /// Where global ids start, by dimension. Zero if not given.
    #[doc(alias = "global_work_offset")]
    pub fn offset(mut self, offset: impl Into<Extent>) -> Self {
        self.launch.offset = Some(offset.into());
        self
    }

    /// How many work-items make a work-group, by dimension. The driver chooses if not given, or the kernel's
    /// `reqd_work_group_size` holds.
    #[doc(alias = "local_work_size")]
    pub fn work_group(mut self, size: impl Into<Extent>) -> Self {
        self.launch.work_group = Some(size.into());
        self
    }

    /// Says that the kernel calls `printf`. OpenCL cannot tell, and some devices let no recorded kernel print: there the
    /// node is replayed.
    pub fn prints(mut self) -> Self {
        self.launch.prints = true;
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::ArgumentCount`]; [`BuildCause::ArgumentKind`] and [`BuildCause::ArgumentSize`] where the program
    /// tells its parameters; [`BuildCause::ArgumentBytes`], [`BuildCause::LocalMemory`],
    /// [`BuildCause::NoLocalMemory`]; [`BuildCause::NoRange`],
    /// [`BuildCause::Dimensions`], [`BuildCause::WorkGroup`]; [`BuildCause::AccessForbidden`];
    /// [`BuildCause::OtherContext`] for the kernel, a buffer, an image or a sampler; [`BuildCause::ImageAccess`] and
    /// [`BuildCause::ImageShared`] for images; [`BuildCause::NotSupported`] for a kernel that takes pipes, and for images that the
    /// device cannot have, cannot have read and written by one kernel, or does not see; and those of [`EmptyNode::add`](super::EmptyNode::add).
    ///
    /// # Safety
    /// With these arguments and this range, and whatever it finds in memory, the kernel touches nothing outside the
    /// ranges that are declared for it here, uses them as declared, and every value has the type that the kernel
    /// expects. That holds for every value, buffer and range that safe code can give it later: what its [`Parameter`]s can
    /// become, and what [`range_up_to`](Self::range_up_to) allows. This is the only promise that is asked for: finalizing,
    /// updating and submitting are safe.
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn add(mut self) -> Result<Node> {
        self.launch.resolve();
        Ok(self.graph.insert(self.launch, &self.after)?)
    }

    pub(super) fn into_parts(self) -> (Launch, After) {
        (self.launch, self.after)
    }

    /// Puts the launch in the place of a kernel node of the same kernel: its arguments, range, offset, work-groups, bound and
    /// parameters. Edges stay, and executables follow when they are updated.
    ///
    /// Each argument keeps its kind, a value its size; `printf` is not asked for anew.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and [`BuildCause::Replace`]: nothing changed.
    ///
    /// # Safety
    /// As [`add`](Self::add).
    #[allow(unsafe_code)] // As above.
    pub unsafe fn replace(mut self, node: Node) -> Result<()> {
        self.launch.resolve();
        self.graph.replace(node, self.launch, &self.after)
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
                    why: "it has no address: use memory of another kind (`Memory::with_kind`)".to_owned(),
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
                let (parameter, argument) =
                    (cells.first().map_or_else(String::new, |cell| cell.what()), "not given yet");
                return Err(BuildCause::Parameter { index: 0, parameter, argument: argument.to_owned() });
            };
            for cell in cells {
                let now = cell.snapshot();
                let fits = match (given, &now.value, &now.region) {
                    (Given::Value(range), Value::Bytes(bytes), _) => range.len() == bytes.len(),
                    (Given::Local(_), Value::Local(_), _) => true,
                    (Given::Buffer(of, _), _, Some(region)) => match (of.mem.image(), region.mem.image()) {
                        (None, None) => (region.offset, region.size) == (of.offset, of.size),
                        (Some(one), Some(other)) => (one.shape, one.format) == (other.shape, other.format),
                        _ => false,
                    },
                    _ => false,
                };
                if !fits {
                    let argument = match given {
                        Given::Value(range) => format!("a value of {} bytes", range.len()),
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
        Ok(Checked { built, loose, addresses: addresses || !self.indirect.is_empty() })
    }

    fn lower(self, checked: Checked, state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        let grid = self.sizes(checked.built).grid();
        let Self { kernel, args, bytes, prints, fed, bound, indirect, .. } = self;
        let id = state.kernel(&kernel, checked.built.is_some());
        let base = state.ir.push_bytes(&bytes)?;
        let node = NodeId(state.ir.len() as u32);
        let mut lowered = Vec::with_capacity(args.len());
        for (index, arg) in args.into_iter().enumerate() {
            lowered.push(match arg {
                Given::Buffer(region, mode) => {
                    let access = state.access(&region, mode);
                    let view = access.view;
                    state.keep(view);
                    accesses.push(access);
                    if mode.writes() && kernel.params().is_some_and(|params| params[index].is_const) {
                        state.ir.warnings.push(Warning::WritesConst { node, index });
                    }
                    Arg::Buffer(view)
                }
                Given::Null => Arg::Null,
                Given::Sampler(sampler) => Arg::Sampler(state.sampler(&sampler)?),
                Given::Local(size) => Arg::Local(size),
                Given::Value(range) => Arg::Value(base.part(range)),
            });
        }
        for (region, mode) in indirect {
            let access = state.access(&region, mode);
            state.keep(access.view);
            lowered.push(Arg::Indirect(access.view));
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
