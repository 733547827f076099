//! Running a request at once, and launching kernels on queues.

use std::marker::PhantomData;

use bytemuck::Pod;

use super::event::Event;
use super::queue::Queue;
use super::sealed;
use crate::cl::buffer::{AsRegion, Buffer, BufferSlice};
use crate::cl::enqueue::{self, To};
use crate::cl::event::DriverEvent;
use crate::cl::globals::GlobalSlice;
use crate::cl::image::{Image, ImageLayers};
use crate::cl::kernel::Kernel;
use crate::cl::kernel_object::{KernelObject, KernelObjectError, SetArg};
use crate::cl::mem::Mem;
use crate::cl::memory::{Memory, MemorySlice};
use crate::cl::sampler::Sampler;
use crate::cl::watch;
use crate::device_global::{DeviceGlobal, host_access, scope};
use crate::error::{BuildCause, BuildError, DriverError, Fault, ProgramError, Result};
use crate::graph::fill::Fill;
use crate::graph::hint::Given as Hinted;
use crate::graph::launch::{Checked, Given, Launch};
use crate::graph::rect::{Laid, Rect};
use crate::graph::request::Request;
use crate::graph::transfer::{Copy, Write};
use crate::graph::{BufferArg, Extent, GraphMemory, LaunchRef, LocalMemory, Parameter, ValueArg};
use crate::ir::{Hint, Mode};

/// A request that can go to the driver at once.
pub(crate) trait Run: Request + Clone {
    /// The memory that it uses.
    fn memory(&self, each: &mut dyn FnMut(&Mem));

    /// Whether drivers keep no count of some of it.
    #[inline]
    fn is_followed(&self, _: &Self::Checked) -> bool {
        let mut is_followed = false;
        self.memory(&mut |mem| is_followed |= !mem.is_buffer());
        is_followed
    }

    /// Enqueues it. What it uses is kept alive until it is complete.
    fn run(&self, checked: &Self::Checked, to: &To<'_>) -> Result<Option<DriverEvent>>;
}

/// A command of no size: only its place in the queue, its wait list and its event count. Drivers disagree on such commands.
pub(super) fn nothing(to: &To<'_>) -> Result<Option<DriverEvent>> {
    if to.waits.is_empty() && !to.event {
        return Ok(None);
    }
    enqueue::entry(to.queue, to.waits).map(Some)
}

impl Run for Copy {
    fn memory(&self, each: &mut dyn FnMut(&Mem)) {
        each(&self.src.mem);
        each(&self.dst.mem);
    }

    fn run(&self, checked: &Self::Checked, to: &To<'_>) -> Result<Option<DriverEvent>> {
        if let Some((launch, checked)) = checked {
            return launch.run(checked, to);
        }
        let Self { src, dst } = self;
        if src.size == 0 {
            return nothing(to);
        }
        Ok(enqueue::copy(to, (&src.mem, src.offset), (&dst.mem, dst.offset), src.size)?)
    }
}

impl Run for Rect {
    fn memory(&self, each: &mut dyn FnMut(&Mem)) {
        each(&self.src.region.mem);
        each(&self.dst.region.mem);
    }

    fn run(&self, laid: &Laid, to: &To<'_>) -> Result<Option<DriverEvent>> {
        let (from, into) = match laid {
            Laid::Command(from, into) => (from, into),
            Laid::Launch(launch, checked) => return launch.run(checked, to),
        };
        let region = self.bytes();
        if region.contains(&0) {
            return nothing(to);
        }
        let pitches = [from.row, from.slice, into.row, into.slice];
        let (src, dst) = (&self.src.region.mem, &self.dst.region.mem);
        Ok(enqueue::copy_rect(to, (src, &from.origin), (dst, &into.origin), &region, &pitches)?)
    }
}

impl Run for Fill {
    fn memory(&self, each: &mut dyn FnMut(&Mem)) {
        each(&self.dst.mem);
    }

    fn run(&self, checked: &Self::Checked, to: &To<'_>) -> Result<Option<DriverEvent>> {
        if let Some((launch, checked)) = checked {
            return launch.run(checked, to);
        }
        let Self { dst, pattern } = self;
        if dst.size == 0 {
            return nothing(to);
        }
        Ok(enqueue::fill(to, (&dst.mem, dst.offset), pattern, dst.size)?)
    }
}

impl Run for Write {
    fn memory(&self, each: &mut dyn FnMut(&Mem)) {
        each(&self.dst.mem);
    }

    /// The data is kept until the command is complete, which takes an event.
    fn run(&self, (): &(), to: &To<'_>) -> Result<Option<DriverEvent>> {
        let Self { dst, data } = self;
        if dst.size == 0 {
            return nothing(to);
        }
        let event = enqueue::write(&To { event: true, ..*to }, (&dst.mem, dst.offset), data)?;
        match &event {
            Some(event) => watch::keep_until(event.clone(), data.clone()),
            None => watch::lose(no_event("clEnqueueWriteBuffer"), data.clone()),
        }
        Ok(event)
    }
}

impl Run for Hinted {
    fn memory(&self, each: &mut dyn FnMut(&Mem)) {
        each(&self.of.mem);
    }

    fn run(&self, (): &(), to: &To<'_>) -> Result<Option<DriverEvent>> {
        let Self { of, hint } = self;
        if of.size == 0 {
            return nothing(to);
        }
        let place = (&of.mem, of.offset);
        let taken = match hint {
            Hint::Advice(advice) => enqueue::advise(to, place, of.size, *advice)?,
            hint => enqueue::migrate(to, place, of.size, *hint == Hint::ToHost)?,
        };
        taken.map_or_else(|| nothing(to), |taken| Ok(taken.0))
    }
}

impl Run for Launch {
    fn memory(&self, each: &mut dyn FnMut(&Mem)) {
        for arg in &self.args {
            if let Given::Buffer(region, _) = arg {
                each(&region.mem);
            }
        }
        self.indirect.iter().for_each(|(region, _)| each(&region.mem));
        self.kernel.program().bound_globals().mems().for_each(each);
    }

    #[inline]
    fn is_followed(&self, checked: &Checked) -> bool {
        checked.addresses
    }

    #[inline(always)]
    fn run(&self, checked: &Checked, to: &To<'_>) -> Result<Option<DriverEvent>> {
        if checked.loose { self.launch_and_keep(checked, to) } else { self.launch(checked, to) }
    }
}

impl Launch {
    #[inline(always)]
    fn launch(&self, checked: &Checked, to: &To<'_>) -> Result<Option<DriverEvent>> {
        if let Some(index) = self.first_fed() {
            return Err(BuildError::new(self.subject(), BuildCause::ParameterExecuted { index }).into());
        }
        let Self { kernel, args, bytes, .. } = self;
        let Some(place) = checked.built else {
            let device = to.queue.device().name().to_owned();
            return Err(ProgramError::NotBuiltFor { kernel: kernel.name().to_owned(), device }.into());
        };
        let sizes = self.sizes(checked.built);
        if sizes.global.contains(&0) {
            return nothing(to);
        }
        let args = args.iter().map(|arg| match arg {
            Given::Buffer(region, _) => SetArg::Mem(&region.mem),
            Given::Null(_) => SetArg::Null,
            Given::Sampler(sampler) => SetArg::Sampler(sampler),
            Given::Local(size) => SetArg::Local(*size),
            Given::Value(range, _) => SetArg::Value(&bytes[range.clone()]),
        });
        let launch =
            |object: &KernelObject| enqueue::kernel(to, object, sizes.dims, sizes.offset, sizes.global, sizes.local);
        let launched = if self.indirect.is_empty() {
            kernel.launch(place, args, launch)
        } else {
            // What a launch reaches indirectly cannot be taken from a kernel object again.
            let indirect = self.indirect.iter().map(|(region, _)| SetArg::Indirect(&region.mem));
            kernel.with_args(to.queue.device(), args.chain(indirect)).map(|object| launch(&object))
        };
        match launched {
            Ok(event) => Ok(event?),
            Err(KernelObjectError::Create(error)) => Err(error),
            Err(KernelObjectError::Argument { index, source }) => {
                Err(ProgramError::Argument { kernel: kernel.name().to_owned(), index, source }.into())
            }
        }
    }

    /// Keeps the arguments until the kernel is through: PoCL does not keep samplers (6.0, 7.1), nor images
    /// that are made of buffers (3.1 to 7.1).
    #[cold]
    fn launch_and_keep(&self, checked: &Checked, to: &To<'_>) -> Result<Option<DriverEvent>> {
        let event = self.launch(checked, &To { event: true, ..*to })?;
        match &event {
            Some(event) => watch::keep_until(event.clone(), self.args.clone()),
            None => watch::lose(no_event("clEnqueueNDRangeKernel"), self.args.clone()),
        }
        Ok(event)
    }
}

/// What a kernel takes as an argument: a [`Buffer`], a [`BufferSlice`] (which says what part is used; the argument is the
/// whole buffer), a [`Memory`], a [`MemorySlice`] (a pointer to its first element), a [`GlobalSlice`], a
/// [`GraphMemory`], an [`Image`] or its layers, a [`Sampler`], a value that is plain data, or, where the queue records,
/// a [`Parameter`] of a buffer, of memory, of an image, of a value, of bytes, or of local memory. It cannot be
/// implemented elsewhere.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that a kernel can take",
    note = "arguments are buffers, images, samplers, and values that are plain data (`bytemuck::Pod`)"
)]
pub trait KernelArg: sealed::KernelArg {
    #[doc(hidden)]
    fn give(&self, to: &mut LaunchRef<'_>);
}

#[diagnostic::do_not_recommend]
impl<T: Pod> KernelArg for T {
    fn give(&self, to: &mut LaunchRef<'_>) {
        self.give_value(to);
    }
}

impl<T> KernelArg for Buffer<T> {
    fn give(&self, to: &mut LaunchRef<'_>) {
        self.give_buffer(to);
    }
}

impl<T> KernelArg for BufferSlice<T> {
    fn give(&self, to: &mut LaunchRef<'_>) {
        self.give_buffer(to);
    }
}

impl<T> KernelArg for Memory<T> {
    fn give(&self, to: &mut LaunchRef<'_>) {
        self.give_buffer(to);
    }
}

impl<T, A> KernelArg for GlobalSlice<T, A> {
    fn give(&self, to: &mut LaunchRef<'_>) {
        self.give_buffer(to);
    }
}

impl KernelArg for Image {
    fn give(&self, to: &mut LaunchRef<'_>) {
        self.give_buffer(to);
    }
}

impl KernelArg for ImageLayers {
    fn give(&self, to: &mut LaunchRef<'_>) {
        self.give_buffer(to);
    }
}

impl KernelArg for Sampler {
    fn give(&self, to: &mut LaunchRef<'_>) {
        ValueArg::give_value(&self, to);
    }
}

impl<T> KernelArg for GraphMemory<T> {
    fn give(&self, to: &mut LaunchRef<'_>) {
        self.give_buffer(to);
    }
}

impl<T> KernelArg for MemorySlice<T> {
    fn give(&self, to: &mut LaunchRef<'_>) {
        self.give_buffer(to);
    }
}

impl<T> KernelArg for Parameter<Memory<T>> {
    fn give(&self, to: &mut LaunchRef<'_>) {
        self.give_buffer(to);
    }
}

impl KernelArg for Parameter<Image> {
    fn give(&self, to: &mut LaunchRef<'_>) {
        self.give_buffer(to);
    }
}

impl<T> KernelArg for Parameter<Buffer<T>> {
    fn give(&self, to: &mut LaunchRef<'_>) {
        self.give_buffer(to);
    }
}

impl KernelArg for Parameter<Sampler> {
    fn give(&self, to: &mut LaunchRef<'_>) {
        ValueArg::give_value(&self, to);
    }
}

impl<T: Pod> KernelArg for Parameter<T> {
    fn give(&self, to: &mut LaunchRef<'_>) {
        ValueArg::give_value(&self, to);
    }
}

impl KernelArg for Parameter<[u8]> {
    fn give(&self, to: &mut LaunchRef<'_>) {
        self.give_value(to);
    }
}

impl KernelArg for Parameter<LocalMemory> {
    fn give(&self, to: &mut LaunchRef<'_>) {
        self.give_value(to);
    }
}

/// A kernel launch on a queue, to be executed or recorded: made as with `opencl3`.
///
/// Arguments are given in the order of the kernel's parameters. A buffer counts as read and written, or as read where its
/// parameter points to `const` or `constant` memory and the program tells, and never as more than a buffer's own access flags allow; [`set_arg_read`](Self::set_arg_read),
/// [`set_arg_write`](Self::set_arg_write) and [`set_arg_read_write`](Self::set_arg_read_write) say it where the program does not, or more exactly. This decides which recorded
/// nodes wait for which.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// use clgraph::{Buffer, ExecuteKernel, Program, Queue};
/// let queue = Queue::new(&clgraph::best_device()?)?;
/// let source = "kernel void scale(global float *a, float by) { a[get_global_id(0)] *= by; }";
/// let scale = Program::from_source(&queue, source)?.kernel("scale")?;
/// let a = Buffer::from_slice(&queue, &[1.0_f32, 2.0, 3.0])?;
///
/// let mut launch = ExecuteKernel::new(&scale);
/// launch.set_arg(&a).set_arg(&2.0_f32).set_global_work_size(3);
/// // SAFETY: a work-item touches its own element, and there are as many as elements.
/// let event = unsafe { launch.enqueue_nd_range(&queue)? };
/// let mut back = [0.0; 3];
/// queue.enqueue_read_buffer(&a, 0, &mut back, &[&event])?;
/// assert_eq!(back, [2.0, 4.0, 6.0]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "nothing is launched until `enqueue_nd_range` is called"]
pub struct ExecuteKernel<'k> {
    launch: Launch,
    waits: Vec<Event>,
    /// As with `opencl3`, whose launches borrow their kernel.
    kernel: PhantomData<&'k Kernel>,
}

impl<'k> ExecuteKernel<'k> {
    /// A launch without arguments and range.
    pub fn new(kernel: &'k Kernel) -> Self {
        Self { launch: Launch::new(kernel), waits: Vec::new(), kernel: PhantomData }
    }

    /// Gives the next argument.
    #[doc(alias = "clSetKernelArg")]
    pub fn set_arg(&mut self, arg: &impl KernelArg) -> &mut Self {
        arg.give(&mut LaunchRef::new(&mut self.launch));
        self
    }

    /// Gives the next argument, memory that the kernel only reads. A slice says which part; of a buffer the argument is
    /// all of it.
    pub fn set_arg_read<T>(&mut self, buffer: &impl BufferArg<T>) -> &mut Self {
        buffer.give_buffer(&mut LaunchRef { launch: &mut self.launch, mode: Some(Mode::Read) });
        self
    }

    /// Gives the next argument, memory that the kernel writes without reading what was in it.
    pub fn set_arg_write<T>(&mut self, buffer: &impl BufferArg<T>) -> &mut Self {
        buffer.give_buffer(&mut LaunchRef { launch: &mut self.launch, mode: Some(Mode::Write) });
        self
    }

    /// Gives the next argument, a buffer that the kernel reads and writes.
    pub fn set_arg_read_write<T>(&mut self, buffer: &impl BufferArg<T>) -> &mut Self {
        buffer.give_buffer(&mut LaunchRef { launch: &mut self.launch, mode: Some(Mode::ReadWrite) });
        self
    }

    /// Says that the kernel reads and writes memory which it reaches by addresses that it finds in memory, and not by an
    /// argument. It has an address: USM or SVM.
    #[doc(alias = "clSetKernelExecInfo")]
    pub fn set_indirect<T>(&mut self, memory: &impl AsRegion<T>) -> &mut Self {
        self.launch.indirect.push((memory.region(), Mode::ReadWrite));
        self
    }

    /// The same, memory that the kernel only reads.
    pub fn set_indirect_read<T>(&mut self, memory: &impl AsRegion<T>) -> &mut Self {
        self.launch.indirect.push((memory.region(), Mode::Read));
        self
    }

    /// The same, memory that the kernel writes without reading what was in it.
    pub fn set_indirect_write<T>(&mut self, memory: &impl AsRegion<T>) -> &mut Self {
        self.launch.indirect.push((memory.region(), Mode::Write));
        self
    }

    /// Says that the kernel only reads a [`DeviceGlobal`] of its program: see [`KernelNode::global_read`](crate::KernelNode::global_read).
    pub fn set_global_read<T: Pod, A: host_access::Property, S: scope::Property>(
        &mut self,
        global: &'static DeviceGlobal<T, A, S>,
    ) -> &mut Self {
        self.launch.uses_global(Some((global.declared(), Mode::Read)));
        self
    }

    /// The same, one that the kernel writes without reading what was in it.
    pub fn set_global_write<T: Pod, A: host_access::Property, S: scope::Property>(
        &mut self,
        global: &'static DeviceGlobal<T, A, S>,
    ) -> &mut Self {
        self.launch.uses_global(Some((global.declared(), Mode::Write)));
        self
    }

    /// The same, one that the kernel reads and writes.
    pub fn set_global_read_write<T: Pod, A: host_access::Property, S: scope::Property>(
        &mut self,
        global: &'static DeviceGlobal<T, A, S>,
    ) -> &mut Self {
        self.launch.uses_global(Some((global.declared(), Mode::ReadWrite)));
        self
    }

    /// Says that the kernel uses no device global.
    pub fn set_no_globals(&mut self) -> &mut Self {
        self.launch.uses_global(None);
        self
    }

    /// Gives the next argument, a null pointer where a buffer belongs.
    pub fn set_arg_null(&mut self) -> &mut Self {
        self.launch.null(None);
        self
    }

    /// Gives the next argument, local memory of so many bytes a work-group.
    pub fn set_arg_local_buffer(&mut self, bytes: usize) -> &mut Self {
        self.launch.args.push(Given::Local(bytes));
        self
    }

    /// Adds a dimension to the offset of global ids.
    pub fn set_global_work_offset(&mut self, offset: usize) -> &mut Self {
        Extent::add_to(&mut self.launch.offset, offset);
        self
    }

    /// Sets the offset of global ids, by dimension.
    pub fn set_global_work_offsets(&mut self, offsets: &[usize]) -> &mut Self {
        self.launch.offset = Some(Extent::of(offsets));
        self
    }

    /// Adds a dimension to the range, in work-items.
    pub fn set_global_work_size(&mut self, size: usize) -> &mut Self {
        Extent::add_to(&mut self.launch.range, size);
        self
    }

    /// Sets the range, in work-items by dimension.
    pub fn set_global_work_sizes(&mut self, sizes: &[usize]) -> &mut Self {
        self.launch.range = Some(Extent::of(sizes));
        self
    }

    /// Up to which ranges the promise holds: see [`KernelNode::range_up_to`](crate::KernelNode::range_up_to). It means
    /// nothing on a queue that executes.
    pub fn set_global_work_size_bound(&mut self, bound: &[usize]) -> &mut Self {
        self.launch.bound = Some(Extent::of(bound));
        self
    }

    /// Registers one more parameter with the argument that was given last: see
    /// [`KernelNode::also`](crate::KernelNode::also).
    pub fn set_arg_also<T: ?Sized>(&mut self, parameter: &Parameter<T>) -> &mut Self {
        self.launch.also(parameter.cell());
        self
    }

    /// Adds a dimension to the size of a work-group, in work-items.
    pub fn set_local_work_size(&mut self, size: usize) -> &mut Self {
        Extent::add_to(&mut self.launch.work_group, size);
        self
    }

    /// Sets the size of a work-group, in work-items by dimension.
    pub fn set_local_work_sizes(&mut self, sizes: &[usize]) -> &mut Self {
        self.launch.work_group = Some(Extent::of(sizes));
        self
    }

    /// Says that the kernel calls `printf`: see [`KernelNode::prints`](crate::KernelNode::prints).
    pub fn set_prints(&mut self) -> &mut Self {
        self.launch.prints = true;
        self
    }

    /// Adds an event to wait for.
    pub fn set_wait_event(&mut self, event: &Event) -> &mut Self {
        self.waits.push(event.clone());
        self
    }

    /// Adds events to wait for.
    pub fn set_event_wait_list(&mut self, events: &[&Event]) -> &mut Self {
        self.waits.extend(events.iter().map(|event| (*event).clone()));
        self
    }

    /// Launches the kernel, or has it recorded. Afterwards arguments, range, wait list and all else are forgotten, and
    /// the launch can be filled again, as with `opencl3`; after an error it is as it was.
    ///
    /// # Errors
    /// Those of [`KernelNode::add`](crate::KernelNode::add) for arguments and range;
    /// [`ProgramError::NotBuiltFor`] and [`ProgramError::Argument`] on an executing queue; and those of
    /// [`Queue::enqueue_copy_buffer`] for the queue and the wait list.
    ///
    /// # Safety
    /// As for [`KernelNode::add`](crate::KernelNode::add): with these arguments and this range, and whatever it finds in
    /// memory, the kernel touches nothing outside the ranges that are declared for it, uses them as declared, and every
    /// value has the type that the kernel expects. Recorded, that holds for everything that parameters and the bound of the
    /// range allow later.
    #[doc(alias = "clEnqueueNDRangeKernel")]
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn enqueue_nd_range(&mut self, queue: &Queue) -> Result<Event> {
        let event = self.go(queue, true)?;
        Ok(event.ok_or_else(|| no_event("clEnqueueNDRangeKernel"))?)
    }

    /// The same without an event, which is cheaper.
    ///
    /// # Errors
    /// As [`enqueue_nd_range`](Self::enqueue_nd_range).
    ///
    /// # Safety
    /// As [`enqueue_nd_range`](Self::enqueue_nd_range).
    #[allow(unsafe_code)] // As above.
    pub unsafe fn enqueue_nd_range_detached(&mut self, queue: &Queue) -> Result<()> {
        self.go(queue, false).map(|_| ())
    }

    /// All of the way from here to the driver is one function, because what is checked on it costs less than calls and results
    /// that are handed on: a launch is to cost what a plain one costs.
    #[inline(always)]
    fn go(&mut self, queue: &Queue, want: bool) -> Result<Option<Event>> {
        self.launch.resolve();
        let outcome = if self.waits.is_empty() {
            queue.submit(&self.launch, &[], want)
        } else {
            queue.submit(&self.launch, &self.waits.iter().collect::<Vec<_>>(), want)
        };
        if outcome.is_ok() {
            self.launch.clear();
            if !self.waits.is_empty() {
                self.waits.clear();
            }
        }
        outcome
    }
}

/// The driver said success, and gave no event.
pub(super) fn no_event(call: &'static str) -> DriverError {
    DriverError::faulty(call, Fault::NoEvent)
}
