//! Builders of kernel nodes.

use crate::cl::memory::region::{AsRegion, Region};
use crate::cl::objects::kernel::Kernel;
use crate::command::Arg;
use crate::device_global::{AnyDeviceGlobal, Declared, declaration};
use crate::error::Result;
#[allow(unused_imports)] // The documentation names them.
use crate::error::{BuildCause, GlobalError};
use crate::graph::nodes::argument::{BufferArg, LaunchRef, ValueArg};
use crate::graph::nodes::launch::Launch;
use crate::graph::nodes::range::Extent;
use crate::graph::nodes::request::ByHandle;
use crate::graph::parameters::Parameter;
use crate::graph::{After, Graph, after_methods};
use crate::handles::Node;
use crate::ir::Mode;

impl Graph {
    /// Starts a kernel node.
    ///
    /// Arguments are given in the order of the kernel's parameters, each by the method for its kind. How a kernel uses
    /// a buffer decides which nodes wait for which, so use `read` where a kernel only reads.
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
        self.launch_node(Launch::new(kernel))
    }

    pub(crate) fn launch_node(&self, launch: Launch) -> KernelNode<'_> {
        KernelNode { graph: self, after: After::default(), launch }
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

    /// Sets the next argument to a buffer, or to a parameter of a buffer, that the kernel only reads.
    ///
    /// A slice says which part the kernel uses; the argument is still the whole buffer.
    pub fn read<T>(self, buffer: &impl BufferArg<T>) -> Self {
        self.used(buffer, Mode::Read)
    }

    /// Sets the next argument to a buffer that the kernel writes without reading its old content.
    ///
    /// [`Report::warnings`](crate::Report::warnings) names arguments that are declared as written, or as read and
    /// written, but are `const` in the kernel.
    pub fn write<T>(self, buffer: &impl BufferArg<T>) -> Self {
        self.used(buffer, Mode::Write)
    }

    /// Sets the next argument to a buffer that the kernel reads and writes, or whose use is unknown.
    pub fn read_write<T>(self, buffer: &impl BufferArg<T>) -> Self {
        self.used(buffer, Mode::ReadWrite)
    }

    fn used<T>(mut self, buffer: &impl BufferArg<T>, mode: Mode) -> Self {
        buffer.give_buffer(&mut LaunchRef { launch: &mut self.launch, mode: Some(mode) });
        self
    }

    /// Declares memory that the kernel reads through pointers that it finds in memory, not through an argument
    /// (`clSetKernelExecInfo`).
    ///
    /// [`Parameter`]s cannot change this memory; [`replace`](Self::replace) can.
    #[doc(alias = "clSetKernelExecInfo")]
    pub fn indirect_read<T>(self, memory: &impl AsRegion<T>) -> Self {
        self.reached(memory.region(), Mode::Read)
    }

    /// Declares memory that the kernel writes, without reading its old content, through pointers that it finds in
    /// memory. Otherwise as [`indirect_read`](Self::indirect_read).
    pub fn indirect_write<T>(self, memory: &impl AsRegion<T>) -> Self {
        self.reached(memory.region(), Mode::Write)
    }

    /// Declares memory that the kernel reads and writes, or whose use is unknown, through pointers that it finds in
    /// memory. Otherwise as [`indirect_read`](Self::indirect_read).
    pub fn indirect<T>(self, memory: &impl AsRegion<T>) -> Self {
        self.reached(memory.region(), Mode::ReadWrite)
    }

    fn reached(mut self, region: Region, mode: Mode) -> Self {
        self.launch.indirect.push((region, mode));
        self
    }

    /// Declares that the kernel only reads a [`DeviceGlobal`](crate::DeviceGlobal) of its program.
    ///
    /// After the first such declaration, the kernel counts as not using the globals that it does not declare. Without
    /// any declaration it counts as reading and writing all globals that its program lists.
    pub fn global_read(self, global: impl AnyDeviceGlobal) -> Self {
        self.global(Some((declaration(&global), Mode::Read)))
    }

    /// Declares that the kernel writes a device global without reading its old content. Otherwise as
    /// [`global_read`](Self::global_read).
    pub fn global_write(self, global: impl AnyDeviceGlobal) -> Self {
        self.global(Some((declaration(&global), Mode::Write)))
    }

    /// Declares that the kernel reads and writes a device global. Otherwise as [`global_read`](Self::global_read).
    pub fn global_read_write(self, global: impl AnyDeviceGlobal) -> Self {
        self.global(Some((declaration(&global), Mode::ReadWrite)))
    }

    /// Declares that the kernel uses no device global.
    pub fn no_globals(self) -> Self {
        self.global(None)
    }

    fn global(mut self, global: Option<(Declared, Mode)>) -> Self {
        self.launch.uses_global(global);
        self
    }

    /// Sets the next argument to a null pointer in place of a buffer.
    ///
    /// It may become memory later, and memory may become a null pointer: see [`replace`](Self::replace) and
    /// [`Parameter::set_null`].
    pub fn null(mut self) -> Self {
        self.launch.null(None);
        self
    }

    /// Sets the next argument to local memory for `len` elements of type `T` for each work-group.
    pub fn local<T>(self, len: usize) -> Self {
        self.given(Arg::Local(len.saturating_mul(size_of::<T>())))
    }

    /// Sets the next argument to a value: a scalar, an array for a vector, or a `#[repr(C)]` struct that derives
    /// `bytemuck::Pod`; or to a [`Parameter`] of a value, of bytes, or of local memory.
    ///
    /// A vector of three elements has the size of four in OpenCL C: give `[f32; 4]` for a `float3`. Numbers without a
    /// suffix are `i32` and `f64`: write `2.0_f32`.
    ///
    /// The size is checked if the kernel's parameter has a built-in type of OpenCL C and the program reports its
    /// parameters ([`Kernel::has_arg_info`]). Otherwise a driver may find a wrong size at finalize. The check also
    /// refuses an integer for a floating-point number and the reverse, such as an `i32` for a `float`
    /// ([`crate::BuildCause::ArgumentType`]). It does not compare signs: a `u32` for an `int` is accepted.
    pub fn arg(mut self, value: impl ValueArg) -> Self {
        value.give_value(&mut LaunchRef::new(&mut self.launch));
        self
    }

    /// Registers one more parameter with the last argument. The argument then has the value of the parameter that was
    /// set last.
    pub fn also_parameter<T: ?Sized>(mut self, parameter: &Parameter<T>) -> Self {
        self.launch.also_parameter(parameter.cell());
        self
    }

    /// Sets the next argument to a value of raw bytes.
    pub fn bytes(mut self, value: &[u8]) -> Self {
        self.launch.value(value);
        self
    }

    fn given(mut self, arg: Arg<ByHandle>) -> Self {
        self.launch.args.push(arg);
        self
    }

    /// Sets the range: the number of work-items for each dimension, as `get_global_id` counts them.
    ///
    /// A range with a zero in it is valid and runs nothing, but the node still orders other nodes. The range need not
    /// be a multiple of the work-group where device and program allow that. Without a [`work_group`](Self::work_group)
    /// some drivers, such as PoCL, compile the kernel again for each new range.
    #[doc(alias = "global_work_size")]
    pub fn range(mut self, range: impl Into<Extent>) -> Self {
        self.launch.range = Some(range.into());
        self
    }

    /// Sets the largest range that the safety promise of [`add`](Self::add) covers.
    ///
    /// The promise then covers every range with the same number of dimensions whose offset plus size is at most this in
    /// each dimension, and every size of work-groups. [`Graph::set_nd_range`], which has an example, can change the
    /// range up to this bound; without a bound it cannot change the range.
    pub fn range_up_to(mut self, bound: impl Into<Extent>) -> Self {
        self.launch.bound = Some(bound.into());
        self
    }

    /// Sets where global ids start, for each dimension. The default is zero.
    #[doc(alias = "global_work_offset")]
    pub fn offset(mut self, offset: impl Into<Extent>) -> Self {
        self.launch.offset = Some(offset.into());
        self
    }

    /// Sets the number of work-items in a work-group, for each dimension. By default the kernel's
    /// `reqd_work_group_size` holds, or else the driver chooses.
    #[doc(alias = "local_work_size")]
    pub fn work_group(mut self, size: impl Into<Extent>) -> Self {
        self.launch.work_group = Some(size.into());
        self
    }

    /// Declares that the kernel calls `printf`.
    ///
    /// OpenCL does not report this, and on some devices a recorded kernel cannot print: there the node is replayed
    /// instead.
    pub fn prints(mut self) -> Self {
        self.launch.prints = true;
        self
    }

    /// Promises that each work-item touches its own bytes of an argument's memory only. `argument` counts from 0, and `bytes` is how many
    /// belong to a work-item: the one with `get_global_linear_id() == i`, which counts from 0 with an [`offset`](Self::offset) too, reads
    /// and writes of that memory only the bytes from `i * bytes` up to `(i + 1) * bytes`, counted from the address that the kernel gets.
    ///
    /// It is part of the promise of [`add`](Self::add), and is for fusing ([`Fuse`](crate::Fuse)): launches over the same range, in which
    /// all memory that one of them writes is promised with the same start and the same number, become one launch, whatever the number
    /// of work-items. Each work-item then does what it did in each launch. Memory that all of them only read needs no promise.
    ///
    /// If the environment variable `CLGRAPH_CHECK_ELEMENTWISE` is `1` when the graph is finalized, submissions check the promise:
    /// [`SubmitError::BrokenPromise`](crate::SubmitError::BrokenPromise) says how it was broken. A launch that cannot be checked is
    /// named in the log.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Fuse, Graph, Program, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let source = "kernel void blend(global float *x, global const float *y) {
    ///     const size_t i = get_global_id(0);
    ///     x[i] = 0.5f * x[i] + y[i + 1];
    /// }";
    /// let blend = Program::from_source(&queue, source)?.kernel("blend")?;
    /// let (x, y) = (Buffer::from_slice(&queue, &[1.0_f32; 100_000])?, Buffer::from_slice(&queue, &[2.0_f32; 100_001])?);
    /// let graph = Graph::new(&queue)?;
    /// for _ in 0..4 {
    ///     // SAFETY: each work-item touches its own element of `x`, of four bytes, and reads inside `y`.
    ///     unsafe { graph.kernel(&blend).read_write(&x).read(&y).elementwise(0, 4).range(100_000).add()? };
    /// }
    /// let executable = graph.finalize(Finalize::new().fuse(Fuse::Now))?;
    /// assert_eq!(executable.report().fused[0].nodes, [0, 1, 2, 3]);
    /// executable.submit(&queue)?.wait()?;
    /// # let mut found = vec![0.0_f32; 100_000];
    /// # queue.enqueue_read_buffer(&x, 0, &mut found, &[])?.wait()?;
    /// # assert!(found.iter().all(|x| *x == 3.8125));
    /// # Ok(()) }
    /// ```
    pub fn elementwise(mut self, argument: usize, bytes: usize) -> Self {
        self.launch.elementwise.push((argument, bytes));
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// - arguments: [`BuildCause::ArgumentCount`]; where the program reports its parameters
    ///   [`BuildCause::ArgumentKind`], [`BuildCause::ArgumentSize`]; [`BuildCause::ArgumentBytes`],
    ///   [`BuildCause::LocalMemory`], [`BuildCause::NoLocalMemory`]; [`BuildCause::Parameter`] for a parameter that
    ///   does not match its argument ([`also_parameter`](Self::also_parameter)); [`BuildCause::Elementwise`];
    /// - range: [`BuildCause::NoRange`], [`BuildCause::RangeDimensions`], [`BuildCause::Dimensions`],
    ///   [`BuildCause::RangeTooLarge`]; [`BuildCause::RangeBound`] when it is beyond
    ///   [`range_up_to`](Self::range_up_to);
    /// - work-group: those of [`WorkGroupError`](crate::WorkGroupError), in [`BuildCause::WorkGroup`];
    /// - memory: [`BuildCause::OtherContext`], also of the kernel and of samplers; [`BuildCause::AccessForbidden`];
    ///   [`BuildCause::ImageAccess`], [`BuildCause::ImageShared`]; [`GlobalError::NotListed`], in
    ///   [`BuildCause::Global`];
    /// - [`BuildCause::NotSupported`] for a kernel with pipe parameters, for a buffer that is declared as reached
    ///   indirectly, and for images that the device does not support, cannot read and write in one kernel, or does not
    ///   recognise;
    /// - those of [`EmptyNode::add`](crate::graph::EmptyNode::add).
    ///
    /// # Safety
    /// With these arguments and this range, and whatever the kernel finds in memory:
    /// - the kernel touches no memory outside the ranges that are declared for it here: all of the given memory, or the
    ///   part that a slice names. It does not write memory that is declared by [`read`](Self::read). It does not read
    ///   memory that is declared by [`write`](Self::write) before it has written it. Memory that it reaches through
    ///   pointers is declared by [`indirect`](Self::indirect) and its variants;
    /// - each work-item touches only its own bytes of memory that [`elementwise`](Self::elementwise) names;
    /// - every value has the type that the kernel expects;
    /// - the kernel does nothing that OpenCL C leaves undefined: no data races between work-items, and no barrier that
    ///   only some work-items reach.
    ///
    /// This holds for every value, buffer and range that safe code can set later: everything that its [`Parameter`]s
    /// can become, and everything that [`range_up_to`](Self::range_up_to) allows. No other promise is needed:
    /// finalizing, updating and submitting are safe.
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn add(mut self) -> Result<Node> {
        self.launch.resolve();
        Ok(self.graph.insert(self.launch, &self.after)?)
    }

    pub(in crate::graph) fn into_parts(self) -> (Launch, After) {
        (self.launch, self.after)
    }

    /// Replaces a kernel node of the same kernel by this launch: its arguments, range, offset, work-groups, bound and
    /// parameters. Edges stay, and executables get the change when they are updated.
    ///
    /// Each argument keeps its kind, and a value keeps its size; a buffer may become a [null](Self::null) pointer, and
    /// a null pointer a buffer. [`prints`](Self::prints) and [`elementwise`](Self::elementwise) have to be declared again, and
    /// leaving them out takes effect at the next finalize. An updated executable keeps the path that it chose for the node. `after` must not be given.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and [`BuildCause::Replace`]. After an error nothing has changed.
    ///
    /// # Safety
    /// As [`add`](Self::add).
    #[allow(unsafe_code)] // As above.
    pub unsafe fn replace(mut self, node: Node) -> Result<()> {
        self.launch.resolve();
        self.graph.replace(node, self.launch, &self.after)
    }

    /// Gives a kernel node the one argument of this launch in the place of its argument `index`, which counts from 0.
    /// [`Graph::set_arg`] does it for memory that is used as the memory before.
    ///
    /// # Errors
    /// Those of [`Graph::set_arg`]; [`BuildCause::Replace`] if this launch does not have one argument.
    ///
    /// # Safety
    /// As [`add`](Self::add), for the launch of the node with the new argument.
    #[allow(unsafe_code)] // As above.
    pub unsafe fn replace_arg(mut self, node: impl Into<Node>, index: usize) -> Result<()> {
        self.launch.resolve();
        self.graph.put_arg(node.into(), index, (self.launch, 0, false), &self.after)
    }
}
