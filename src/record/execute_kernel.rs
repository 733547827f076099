//! Launching kernels on queues, by an object that collects the arguments, as in `opencl3`.

use std::marker::PhantomData;

use bytemuck::Pod;

use super::event::Event;
use super::execute::no_event;
use super::queue::Queue;
use super::sealed;
use crate::cl::memory::globals::GlobalSlice;
use crate::cl::memory::region::AsRegion;
use crate::cl::memory::typed::{Memory, MemorySlice};
use crate::cl::objects::buffer::{Buffer, BufferSlice};
use crate::cl::objects::image::{Image, ImageLayers};
use crate::cl::objects::kernel::Kernel;
use crate::cl::objects::sampler::Sampler;
use crate::command::Arg;
use crate::device_global::{AnyDeviceGlobal, declaration};
use crate::error::Result;
use crate::graph::nodes::launch::Launch;
use crate::graph::recorder::Order;
use crate::graph::{BufferArg, Extent, Graph, GraphMemory, KernelNode, LaunchRef, LocalMemory, Parameter, ValueArg};
use crate::ir::Mode;

/// An argument of a kernel.
///
/// It is implemented for a [`Buffer`]; a [`BufferSlice`] (the kernel gets the whole buffer, and the slice says which
/// part it uses); a [`Memory`]; a [`MemorySlice`] (a pointer to its first element); a [`GlobalSlice`]; a
/// [`GraphMemory`]; an [`Image`] or its layers; a [`Sampler`]; a value that is plain data; and, where the queue
/// records, a [`Parameter`] of a buffer, of memory, of an image, of a value, of bytes, or of local memory. It cannot be
/// implemented outside this crate.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a kernel argument",
    note = "give a buffer, an image, a sampler, or a value that is plain data (`bytemuck::Pod`)"
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

/// A kernel launch on a queue, to be executed or recorded, with the methods of `opencl3`.
///
/// Arguments are given in the order of the kernel's parameters. How the kernel uses a buffer decides which recorded
/// nodes wait for which. A buffer counts as read and written by default. It counts as read only if its parameter points
/// to `const` or `constant` memory and the program reports its parameters. The buffer's own access flags limit both.
/// [`set_arg_read`](Self::set_arg_read), [`set_arg_write`](Self::set_arg_write) and
/// [`set_arg_read_write`](Self::set_arg_read_write) set the use explicitly.
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
    /// The launch borrows its kernel, as launches of `opencl3` do.
    kernel: PhantomData<&'k Kernel>,
}

impl<'k> ExecuteKernel<'k> {
    /// Creates a launch without arguments and without a range.
    pub fn new(kernel: &'k Kernel) -> Self {
        Self { launch: Launch::new(kernel), waits: Vec::new(), kernel: PhantomData }
    }

    /// Returns the launch as a node of a graph, to be added. Other languages collect the arguments of both in one way, and
    /// a node is large: it would be moved for each argument.
    #[doc(hidden)]
    pub fn into_node(self, graph: &Graph) -> KernelNode<'_> {
        graph.launch_node(self.launch)
    }

    /// Sets the next argument.
    #[doc(alias = "clSetKernelArg")]
    pub fn set_arg(&mut self, arg: &impl KernelArg) -> &mut Self {
        arg.give(&mut LaunchRef::new(&mut self.launch));
        self
    }

    /// Sets the next argument to memory that the kernel only reads. A slice says which part the kernel uses.
    pub fn set_arg_read<T>(&mut self, buffer: &impl BufferArg<T>) -> &mut Self {
        buffer.give_buffer(&mut LaunchRef { launch: &mut self.launch, mode: Some(Mode::Read) });
        self
    }

    /// Sets the next argument to memory that the kernel writes without reading its old content.
    pub fn set_arg_write<T>(&mut self, buffer: &impl BufferArg<T>) -> &mut Self {
        buffer.give_buffer(&mut LaunchRef { launch: &mut self.launch, mode: Some(Mode::Write) });
        self
    }

    /// Sets the next argument to memory that the kernel reads and writes.
    pub fn set_arg_read_write<T>(&mut self, buffer: &impl BufferArg<T>) -> &mut Self {
        buffer.give_buffer(&mut LaunchRef { launch: &mut self.launch, mode: Some(Mode::ReadWrite) });
        self
    }

    /// Declares USM or SVM that the kernel reads and writes through pointers that it finds in memory.
    #[doc(alias = "clSetKernelExecInfo")]
    pub fn set_indirect<T>(&mut self, memory: &impl AsRegion<T>) -> &mut Self {
        self.launch.indirect.push((memory.region(), Mode::ReadWrite));
        self
    }

    /// Declares USM or SVM that the kernel only reads through pointers that it finds in memory.
    pub fn set_indirect_read<T>(&mut self, memory: &impl AsRegion<T>) -> &mut Self {
        self.launch.indirect.push((memory.region(), Mode::Read));
        self
    }

    /// Declares USM or SVM that the kernel writes, without reading its old content, through such pointers.
    pub fn set_indirect_write<T>(&mut self, memory: &impl AsRegion<T>) -> &mut Self {
        self.launch.indirect.push((memory.region(), Mode::Write));
        self
    }

    /// Declares that the kernel only reads a device global: see
    /// [`KernelNode::global_read`](crate::KernelNode::global_read).
    pub fn set_global_read(&mut self, global: impl AnyDeviceGlobal) -> &mut Self {
        self.launch.uses_global(Some((declaration(&global), Mode::Read)));
        self
    }

    /// Declares that the kernel writes a [`DeviceGlobal`](crate::DeviceGlobal) without reading its old content.
    pub fn set_global_write(&mut self, global: impl AnyDeviceGlobal) -> &mut Self {
        self.launch.uses_global(Some((declaration(&global), Mode::Write)));
        self
    }

    /// Declares that the kernel reads and writes a [`DeviceGlobal`](crate::DeviceGlobal).
    pub fn set_global_read_write(&mut self, global: impl AnyDeviceGlobal) -> &mut Self {
        self.launch.uses_global(Some((declaration(&global), Mode::ReadWrite)));
        self
    }

    /// Declares that the kernel uses no device global.
    pub fn set_no_globals(&mut self) -> &mut Self {
        self.launch.uses_global(None);
        self
    }

    /// Sets the next argument to a value of raw bytes.
    pub fn set_arg_bytes(&mut self, value: &[u8]) -> &mut Self {
        self.launch.value(value);
        self
    }

    /// Sets the next argument to a null pointer in place of a buffer.
    pub fn set_arg_null(&mut self) -> &mut Self {
        self.launch.null(None);
        self
    }

    /// Sets the next argument to local memory of `bytes` bytes for each work-group.
    pub fn set_arg_local_buffer(&mut self, bytes: usize) -> &mut Self {
        self.launch.args.push(Arg::Local(bytes));
        self
    }

    /// Adds a dimension to the offset of global ids.
    pub fn set_global_work_offset(&mut self, offset: usize) -> &mut Self {
        Extent::add_to(&mut self.launch.offset, offset);
        self
    }

    /// Sets the offset of global ids for each dimension.
    pub fn set_global_work_offsets(&mut self, offsets: &[usize]) -> &mut Self {
        self.launch.offset = Some(Extent::of(offsets));
        self
    }

    /// Adds a dimension to the range, in work-items.
    pub fn set_global_work_size(&mut self, size: usize) -> &mut Self {
        Extent::add_to(&mut self.launch.range, size);
        self
    }

    /// Sets the range, in work-items for each dimension.
    pub fn set_global_work_sizes(&mut self, sizes: &[usize]) -> &mut Self {
        self.launch.range = Some(Extent::of(sizes));
        self
    }

    /// Sets the largest range that the safety promise of a recorded launch covers: see
    /// [`KernelNode::range_up_to`](crate::KernelNode::range_up_to).
    pub fn set_global_work_size_bound(&mut self, bound: &[usize]) -> &mut Self {
        self.launch.bound = Some(Extent::of(bound));
        self
    }

    /// Registers one more parameter with the last argument. See [`KernelNode::also`](crate::KernelNode::also_parameter).
    pub fn set_arg_also<T: ?Sized>(&mut self, parameter: &Parameter<T>) -> &mut Self {
        self.launch.also_parameter(parameter.cell());
        self
    }

    /// Adds a dimension to the size of a work-group, in work-items.
    pub fn set_local_work_size(&mut self, size: usize) -> &mut Self {
        Extent::add_to(&mut self.launch.work_group, size);
        self
    }

    /// Sets the size of a work-group, in work-items for each dimension.
    pub fn set_local_work_sizes(&mut self, sizes: &[usize]) -> &mut Self {
        self.launch.work_group = Some(Extent::of(sizes));
        self
    }

    /// Declares that the kernel calls `printf`. See [`KernelNode::prints`](crate::KernelNode::prints).
    pub fn set_prints(&mut self) -> &mut Self {
        self.launch.prints = true;
        self
    }

    /// Promises that each work-item touches its own bytes of an argument's memory only. See
    /// [`KernelNode::elementwise`](crate::KernelNode::elementwise). It is for launches that are recorded.
    pub fn set_elementwise(&mut self, argument: usize, bytes: usize) -> &mut Self {
        self.launch.elementwise.push((argument, bytes));
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

    /// Enqueues or records the kernel launch.
    ///
    /// Afterwards the launch is empty and can be filled again, as with `opencl3`. After an error it is unchanged.
    ///
    /// # Errors
    /// Those of [`KernelNode::add`](crate::KernelNode::add) and, for the wait list, of [`Queue::enqueue_copy_buffer`];
    /// on an executing queue also [`ProgramError::NotBuiltFor`](crate::ProgramError::NotBuiltFor) and [`ProgramError::Argument`](crate::ProgramError::Argument).
    ///
    /// # Safety
    /// As for [`KernelNode::add`](crate::KernelNode::add): whatever the kernel finds in memory, it touches nothing
    /// outside the ranges that are declared for it, it uses them as declared, and every value has the type that it
    /// expects. If the launch is recorded, this holds for all that parameters and the bound of the range allow later.
    #[doc(alias = "clEnqueueNDRangeKernel")]
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn enqueue_nd_range(&mut self, queue: &Queue) -> Result<Event> {
        let event = self.go(queue, true)?;
        Ok(event.ok_or_else(|| no_event("clEnqueueNDRangeKernel"))?)
    }

    /// Enqueues or records the kernel launch without returning an event, which is cheaper.
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

    /// The whole path from here to the driver is inlined into one function, because the checks on it cost less than
    /// calls and results that are passed on. A launch must not cost more than a plain `clEnqueueNDRangeKernel`.
    #[inline(always)]
    fn go(&mut self, queue: &Queue, want: bool) -> Result<Option<Event>> {
        self.launch.resolve();
        let list: Vec<&Event>;
        let waits = if self.waits.is_empty() {
            &[][..]
        } else {
            list = self.waits.iter().collect();
            &list
        };
        let outcome = match queue.record_if(&self.launch, Order::Plain, waits) {
            Ok(None) => queue.execute_launch(&self.launch, waits, want),
            recorded => recorded,
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
