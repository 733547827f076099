//! Kernel nodes: building them.

use bytemuck::Pod;

use super::argument::{BufferArg, LaunchRef, ValueArg};
use super::launch::{Given, Launch};
use super::parameter::Parameter;
use super::range::Extent;
use super::{After, Graph, Node, after_methods};
use crate::cl::buffer::{AsRegion, Region};
use crate::cl::kernel::Kernel;
use crate::device_global::{Declared, DeviceGlobal, host_access, scope};
use crate::error::Result;
#[allow(unused_imports)] // The documentation names them.
use crate::error::{BuildCause, GlobalError};
use crate::ir::Mode;

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
    #[doc(alias("cudaGraphAddKernelNode", "clCommandNDRangeKernelKHR"))]
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

impl KernelNode<'_> {
    after_methods!();

    /// Gives a buffer, or a parameter that is one, that the kernel only reads. A slice says which part; the argument is the
    /// whole buffer.
    pub fn read<T>(self, buffer: &impl BufferArg<T>) -> Self {
        self.used(buffer, Mode::Read)
    }

    /// Gives a buffer that the kernel writes without reading what was in it. [`Report::warnings`](crate::Report::warnings) names
    /// arguments that are given so, or as read and written, and are `const` in the kernel.
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

    /// Says that the kernel only reads a [`DeviceGlobal`] of its program. Of those about which nothing is said it then uses none;
    /// without a word about any it counts as reading and writing all that its program lists.
    pub fn global_read<T: Pod, A: host_access::Property, S: scope::Property>(
        self,
        global: &'static DeviceGlobal<T, A, S>,
    ) -> Self {
        self.global(Some((global.declared(), Mode::Read)))
    }

    /// As [`global_read`](Self::global_read), for one that the kernel writes without reading what was in it.
    pub fn global_write<T: Pod, A: host_access::Property, S: scope::Property>(
        self,
        global: &'static DeviceGlobal<T, A, S>,
    ) -> Self {
        self.global(Some((global.declared(), Mode::Write)))
    }

    /// As [`global_read`](Self::global_read), for one that the kernel reads and writes.
    pub fn global_read_write<T: Pod, A: host_access::Property, S: scope::Property>(
        self,
        global: &'static DeviceGlobal<T, A, S>,
    ) -> Self {
        self.global(Some((global.declared(), Mode::ReadWrite)))
    }

    /// Says that the kernel uses no device global.
    pub fn no_globals(self) -> Self {
        self.global(None)
    }

    fn global(mut self, global: Option<(Declared, Mode)>) -> Self {
        self.launch.uses_global(global);
        self
    }

    /// Gives a null pointer where a buffer belongs. It may become memory later, and memory null: see
    /// [`replace`](Self::replace) and [`Parameter::set_null`].
    pub fn null(mut self) -> Self {
        self.launch.null(None);
        self
    }

    /// Gives local memory for `len` elements of type `T` a work-group.
    pub fn local<T>(self, len: usize) -> Self {
        self.given(Given::Local(len.saturating_mul(size_of::<T>())))
    }

    /// Gives a value: a scalar, an array for a vector, or a `#[repr(C)]` struct that derives `bytemuck::Pod`. A vector of
    /// three elements has the size of four in OpenCL C: give `[f32; 4]` for a `float3`. Or a [`Parameter`] of a value, of
    /// bytes, or of local memory.
    ///
    /// Its size is checked where the parameter has a type of OpenCL C's own and the program tells it
    /// ([`Kernel::has_arg_info`]); of structs, and where it does not tell, a driver may find a wrong size at finalize.
    /// So is whether a number is a whole one: an `i32` for a `float` is refused ([`crate::BuildCause::ArgumentType`]). Whether it
    /// has a sign is not: a `u32` for an `int` is taken. Numbers without a suffix are `i32` and `f64`: write `2.0_f32`.
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

    /// The range: how many work-items, by dimension, as `get_global_id` counts these. A range with a zero in it is
    /// valid and runs nothing, but orders. It need not be a multiple of the work-group where device and program allow
    /// that.
    ///
    /// Without a [`work_group`](Self::work_group) some drivers, such as PoCL, compile the kernel again for each new
    /// range.
    #[doc(alias = "global_work_size")]
    pub fn range(mut self, range: impl Into<Extent>) -> Self {
        self.launch.range = Some(range.into());
        self
    }

    /// Up to which ranges the promise of [`add`](Self::add) holds: every range of as many dimensions whose offset and
    /// size together are at most this in each, and every size of work-groups. Within it [`Graph::set_nd_range`] changes
    /// the range; without it, it cannot. An example is there.
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
    /// - arguments: [`BuildCause::ArgumentCount`]; where the program tells its parameters [`BuildCause::ArgumentKind`],
    ///   [`BuildCause::ArgumentSize`]; [`BuildCause::ArgumentBytes`], [`BuildCause::LocalMemory`],
    ///   [`BuildCause::NoLocalMemory`]; [`BuildCause::Parameter`] for one that does not fit its argument
    ///   ([`also`](Self::also));
    /// - range: [`BuildCause::NoRange`], [`BuildCause::Dimensions`], [`BuildCause::WorkGroup`];
    ///   [`BuildCause::RangeBound`] when it is beyond [`range_up_to`](Self::range_up_to);
    /// - memory: [`BuildCause::OtherContext`], of the kernel and of samplers too; [`BuildCause::AccessForbidden`];
    ///   [`BuildCause::ImageAccess`], [`BuildCause::ImageShared`]; [`GlobalError::NotListed`], in
    ///   [`BuildCause::Global`];
    /// - [`BuildCause::NotSupported`] for a kernel that takes pipes, for a buffer that is to be reached indirectly, and
    ///   for images that the device cannot have, cannot have read and written by one kernel, or does not see;
    /// - those of [`EmptyNode::add`](super::EmptyNode::add).
    ///
    /// # Safety
    /// With these arguments and this range, and whatever it finds in memory:
    /// - the kernel touches no memory outside the ranges that are declared for it here: all of what was given, or the
    ///   part that a slice names. What is given as [`read`](Self::read) it does not write, what is given as
    ///   [`write`](Self::write) it does not read before it has written it, and what it reaches by pointers is named by
    ///   [`indirect`](Self::indirect) and its like;
    /// - every value has the type that the kernel expects;
    /// - it does nothing that OpenCL C leaves undefined: no data races between work-items, no barrier that only some
    ///   reach.
    ///
    /// That holds for every value, buffer and range that safe code can give it later: what its [`Parameter`]s can
    /// become, and what [`range_up_to`](Self::range_up_to) allows. This is the only promise that is asked for:
    /// finalizing, updating and submitting are safe.
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
    /// Each argument keeps its kind, a value its size; a buffer may become a [null](Self::null) pointer, and that a buffer.
    /// [`prints`](Self::prints) has to be said again: what is not said counts for
    /// the next finalize. An executable that is updated keeps the path that it chose for the node. `after` must not be given.
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
