//! Command graphs for every OpenCL: build a graph of commands once, finalize it, submit it many times.
//!
//! # From start to end
//!
//! 1. A [`Queue`] leads to a [`Device`]: [`best_device`] finds one, [`Queue::from_opencl3`] takes yours.
//! 2. A [`Program`] gives [`Kernel`]s, and [`Buffer`]s hold memory. Both are made here or wrapped.
//! 3. A [`Graph`] collects nodes: [`kernel`](Graph::kernel), [`copy`](Graph::copy), [`copy_rect`](Graph::copy_rect),
//!    [`fill`](Graph::fill), [`write`](Graph::write), [`read`](Graph::read), [`empty`](Graph::empty). Each returns a
//!    builder, which [`add`](CopyNode::add) ends. More kinds: [`host_task`](Graph::host_task),
//!    [`native_command`](Graph::native_command), [`wait_event`](Graph::wait_event) and [`signal_event`](Graph::signal_event),
//!    [`sub_graph`](Graph::sub_graph), [`alloc`](Graph::alloc), images, prefetches. Nodes that use the same memory get edges by themselves;
//!    [`after`](CopyNode::after) and [`add_edge`](Graph::add_edge) say the rest.
//! 4. [`Graph::finalize`] plans and prepares, and gives an [`Executable`]. Its [`report`](Executable::report) says what
//!    was decided and why.
//! 5. [`Executable::submit`] runs it, as often as you like, and gives a [`Submission`] to wait for. Results are taken
//!    from it with [`Submission::get`].
//! 6. In between, a [`Parameter`] gets another value, a kernel another range, a node another command; an executable
//!    finalized as [`updatable`](Finalize::updatable) follows by [`Executable::update`].
//!
//! Programs that are there already are recorded instead: [`Graph::record`]. Variables that live on devices, on every device:
//! [`DeviceGlobal`]. Import names one by one: [`Path`] and [`Result`] would hide those of std.
//!
//! ```
//! use clgraph::{Buffer, Finalize, Graph, Program, Queue};
//!
//! # fn main() -> clgraph::Result<()> {
//! let queue = Queue::new(&clgraph::best_device()?)?;
//! let source = "kernel void square(global const int *in, global int *out) {
//!     size_t i = get_global_id(0);
//!     out[i] = in[i] * in[i];
//! }";
//! let square = Program::from_source(&queue, source)?.kernel("square")?;
//! let (a, b) = (Buffer::<i32>::new(&queue, 4)?, Buffer::<i32>::new(&queue, 4)?);
//!
//! let graph = Graph::new(&queue)?;
//! let input = graph.write(&a, [0; 4]).add()?;
//! // SAFETY: a work-item touches its own element of each buffer, and there are as many as elements.
//! unsafe { graph.kernel(&square).read(&a).write(&b).range(4).add()? };
//! let output = graph.read(&b).add()?;
//! let executable = graph.finalize(Finalize::new())?;
//!
//! for numbers in [[1, 2, 3, 4], [5, 6, 7, 8]] {
//!     let run = executable.submit_to(&queue).with(&input, numbers).submit()?;
//!     run.wait()?;
//!     assert_eq!(*run.get(&output)?, numbers.map(|n| n * n));
//! }
//! # Ok(()) }
//! ```
//!
//! # Record what is there
//!
//! A queue runs what it is given, or a graph records it. The code that enqueues does not know which, and has the names and
//! arguments of `opencl3`, so it need not be written anew.
//!
//! ```
//! # fn main() -> clgraph::Result<()> {
//! use clgraph::{Buffer, Finalize, Graph, PendingRead, Queue};
//!
//! fn existing(queue: &Queue, a: &Buffer<u32>, b: &Buffer<u32>) -> clgraph::Result<PendingRead<u32>> {
//!     queue.enqueue_fill_buffer(a, &[7], 0, 64, &[])?;
//!     queue.enqueue_copy_buffer(a, b, 0, 0, 64, &[])?;
//!     queue.enqueue_read_buffer_owned(b, 0, 16, &[])
//! }
//!
//! let queue = Queue::new(&clgraph::best_device()?)?;
//! let (a, b) = (Buffer::new(&queue, 16)?, Buffer::new(&queue, 16)?);
//! let now = existing(&queue, &a, &b)?.wait()?; // runs at once
//!
//! let graph = Graph::new(&queue)?;
//! let result = graph.record(&queue, || existing(&queue, &a, &b))?.host_read()?; // nothing runs
//! let run = graph.finalize(Finalize::new())?.submit(&queue)?;
//! run.wait()?;
//! assert_eq!(*run.get(&result)?, now[..]);
//! # Ok(()) }
//! ```
//!
//! # Update between submissions
//!
//! What changes is a [`Parameter`], a range ([`Graph::set_nd_range`]), a launch of a [`CommandGroup`], or what `replace` of a
//! node's builder puts in its place. [`Executable::update`] takes it over: one node or a list, all or nothing, and never waiting
//! for submissions under way, which keep what they have.
//!
//! ```
//! # fn main() -> clgraph::Result<()> {
//! # use clgraph::{Buffer, Finalize, Graph, Parameter, Program, Queue};
//! # let queue = Queue::new(&clgraph::best_device()?)?;
//! # let program = Program::from_source(&queue, "kernel void add(global int *d, int n) { d[get_global_id(0)] += n; }")?;
//! # let (add, data) = (program.kernel("add")?, Buffer::from_slice(&queue, &[0_i32; 4])?);
//! let graph = Graph::new(&queue)?;
//! let amount = Parameter::any(1_i32);
//! // SAFETY: a work-item touches its own element, whatever is added.
//! let node = unsafe { graph.kernel(&add).read_write(&data).arg(&amount).range(4).add()? };
//! let sums = graph.read(&data).add()?;
//! let executable = graph.finalize(Finalize::new().updatable())?;
//! for number in 1..=10 {
//!     amount.set(number)?;
//!     executable.update(&node)?;
//!     executable.submit(&queue)?;
//! }
//! amount.set(0)?;
//! executable.update(&node)?;
//! let run = executable.submit(&queue)?;
//! run.wait()?;
//! assert_eq!(*run.get(&sums)?, [55; 4]);
//! # Ok(()) }
//! ```
//!
//! # Memory
//!
//! [`Buffer`]s and their slices, [`Memory`] that has an address (USM, SVM) where the device has it, [`Image`]s, and memory
//! that a graph owns: [`Graph::alloc`] gives it from one node to another, and what is not needed at the same time shares bytes.
//!
//! ```
//! # fn main() -> clgraph::Result<()> {
//! # use clgraph::{Finalize, Graph, Memory, Queue};
//! # let queue = Queue::new(&clgraph::best_device()?)?;
//! let numbers = Memory::<f32>::new(&queue, 1024)?; // the best kind that the device has
//! let graph = Graph::new(&queue)?;
//! graph.fill(&numbers, 0.5).add()?;
//! for _ in 0..3 {
//!     let step = graph.alloc::<f32>(1024).add()?;
//!     graph.copy(&numbers, &step).add()?;
//!     graph.copy(&step, &numbers).add()?;
//!     graph.free(&step).add()?;
//! }
//! let executable = graph.finalize(Finalize::new())?;
//! assert_eq!(executable.required_memory(), 4096); // three of 4096 bytes, one after the other
//! executable.submit(&queue)?.wait()?;
//! # Ok(()) }
//! ```
//!
//! # Device globals
//!
//! A variable that lives on the device, for kernels of all programs of a context, on every device: [`device_global!`]. In
//! OpenCL C it is `CLG_GLOBAL(name)`; the guide is `docs/device_globals.md` of the repository.
//!
//! ```
//! # fn main() -> clgraph::Result<()> {
//! # use clgraph::{Finalize, Graph, ProgramBuilder, Queue};
//! clgraph::device_global! { static HITS: u32 = 100; }
//! # let queue = Queue::new(&clgraph::best_device()?)?;
//! let source = "CLG_DEVICE_GLOBAL(uint, hits);
//!               kernel void hit(CLG_ONLY_PARAMS) { atomic_inc(&CLG_GLOBAL(hits)); }";
//! let program = ProgramBuilder::new(&queue).global("hits", &HITS).source(source)?;
//! let graph = Graph::new(&queue)?;
//! // SAFETY: it touches nothing but the global.
//! unsafe { graph.kernel(&program.kernel("hit")?).range(11).add()? };
//! let hits = graph.read(&HITS.on(&queue)?).add()?;
//! let run = graph.finalize(Finalize::new())?.submit(&queue)?;
//! run.wait()?;
//! assert_eq!(*run.get(&hits)?, [111]);
//! # Ok(()) }
//! ```
//!
//! # Errors
//!
//! What is wrong is said where it is done, before a driver sees it, and nothing has changed then. What fails later fails the
//! submission, which says so when it is waited for; the executable can be submitted again.
//!
//! ```
//! # fn main() -> clgraph::Result<()> {
//! # use clgraph::{Buffer, Error, ErrorKind, Graph, Queue};
//! # let queue = Queue::new(&clgraph::best_device()?)?;
//! let (small, large) = (Buffer::<u32>::new(&queue, 4)?, Buffer::<u32>::new(&queue, 8)?);
//! let graph = Graph::new(&queue)?;
//! let error = graph.copy(&large, &small).label("too much").add().unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::Invalid); // for code that has to choose
//! println!("{error}"); // for people: what is wrong, where, and what to do
//! assert!(graph.is_empty());
//! # Ok(()) }
//! ```
//!
//! # Choosing a path
//!
//! [`Finalize::path`] says how commands run: [`Path::Auto`] times the program's own submissions and stays with the fastest;
//! [`Path::Native`] records command buffers wherever the device can; [`Path::Replay`] enqueues every command. Results are the
//! same by all of them. [`Report`] tells what was decided and why.
//!
//! ```
//! # fn main() -> clgraph::Result<()> {
//! # use clgraph::{Buffer, Finalize, Graph, Path, Queue};
//! # let queue = Queue::new(&clgraph::best_device()?)?;
//! # let data = Buffer::<u32>::new(&queue, 64)?;
//! let graph = Graph::new(&queue)?;
//! for number in 0..8 {
//!     graph.fill(&data, number).add()?;
//! }
//! let executable = graph.finalize(Finalize::new().path(Path::Native))?;
//! for part in &executable.report().segments {
//!     println!("{part}"); // on a device without command buffers: by replay, and why
//! }
//! # Ok(()) }
//! ```
//!
//! # The environment
//!
//! | variable | what it does |
//! |---|---|
//! | `CLGRAPH_PATH` | `auto`, `native`, `replay`, `gated` or `queues`: the [`Path`], where the program leaves it to clgraph |
//! | `CLGRAPH_GLOBALS` | `named`, `kernel` or `argument`: how kernels get to device globals ([`GlobalWay`]), where the program leaves it to clgraph |
//! | `CLGRAPH_CHOICES` | a file that keeps what the automatic path has found, where the program names none ([`Finalize::choices`]) |
//! | `CLGRAPH_DUMP` | a folder, into which each finalize writes its report and its graph (DOT) |
//! | `CLGRAPH_ASSUME` | for experts, what a driver has and does not tell: a list, divided by commas, of `command_buffer` (its functions may be used although it does not list `cl_khr_command_buffer`), `simultaneous_use` (a command buffer may be enqueued again while it runs) and `kernel_printf` (recorded kernels may print) |
//! | `OPENCL_DYLIB_PATH` | the OpenCL library to load, as for `opencl3` |
//!
//! # The log
//!
//! clgraph logs by the [`log`](https://docs.rs/log) crate, so a program sees it by a logger of its choice: `error`, something is
//! lost for good; `warn`, something that the program or its user can put right; `info`, what was decided when a graph was
//! finalized; `debug`, what single submissions do otherwise than planned. An error that a call returns is not logged as well.
//!
//! # What it needs
//!
//! Rust 1.88, and at run time an OpenCL library (1.2 or newer) with a driver; none to build. Programs give and take
//! objects of [`opencl3`] 0.12 and raw handles. Elements are plain data: `Pod` of
//! [`bytemuck`](https://docs.rs/bytemuck). Threads of its own start when they are needed: one that sees events
//! complete, one that calls users back, and one for each host task that runs (512 at most).
//!
//! | feature | what it adds |
//! |---|---|
//! | `serde` | `serde::Serialize` for [`Caps`] and what is in it, [`Abi`], [`Path`], [`Command`] and [`Why`] |
//! | `cli` | the program `clgraph`, which lists devices; and `serde` |
//!
//! # In other words
//!
//! | CUDA Graphs | SYCL graphs | `cl_khr_command_buffer` | here |
//! |---|---|---|---|
//! | `cudaGraph_t` | `command_graph<modifiable>` | a command buffer that is recorded | [`Graph`] |
//! | `cudaGraphAddKernelNode` | `add` | `clCommandNDRangeKernelKHR` | [`Graph::kernel`] |
//! | `cudaGraphAddDependencies` | `make_edge` | sync points | [`Graph::add_edge`], `after`, and what memory tells |
//! | `cudaStreamBeginCapture` | `begin_recording` | | [`Graph::record`] |
//! | `cudaGraphInstantiate` | `finalize` | `clFinalizeCommandBufferKHR` | [`Graph::finalize`] |
//! | `cudaGraphExec_t` | `command_graph<executable>` | a command buffer that is executable | [`Executable`] |
//! | `cudaGraphLaunch` | `ext_oneapi_graph` | `clEnqueueCommandBufferKHR` | [`Executable::submit`] |
//! | `cudaGraphExecKernelNodeSetParams` | `dynamic_parameter`, `update` | `clUpdateMutableCommandsKHR` | [`Parameter`], [`Executable::update`] |
//! | `cudaGraphExecUpdate` | `update(graph)` | | [`Executable::update_from`] |
//! | `cudaGraphAddChildGraphNode` | a graph in a graph | | [`Graph::sub_graph`] |
//! | `cudaGraphAddHostNode` | `host_task` | | [`Graph::host_task`] |
//! | `cudaGraphAddMemAllocNode` | `async_malloc` | | [`Graph::alloc`] |
//!
//! A *queue* records into a graph; *finalize* records parts of a graph into command buffers. What is not recorded there
//! is *replayed*: enqueued one by one at each submission. A *part* is a run of commands that go one way. What is
//! *behind* a node waits for it. A sub-graph is *written out*: when the graph is finalized, its nodes take the place of
//! its node.
//!
//! # What to rely on
//!
//! - **Safety.** The one promise is asked where a kernel launch or a native command is given ([`KernelNode::add`],
//!   [`NativeCommandNode::add`], and their like for recorded, replaced and grouped ones), where raw handles and pointers are wrapped, and
//!   where memory is mapped; a [`Parameter`] without a bound asks for it again when it is set. Everything else is safe: executables keep alive what
//!   they use, and bounds, contexts, sizes and work-groups are checked when a node is added.
//! - **Errors** are [`Error`]s: they say what was wrong, where, and what to do, and the call has changed nothing.
//!   [`Error::kind`] is for code that has to choose.
//! - **Threads.** Graphs, executables, queues, buffers and submissions are `Send + Sync`; a clone is the same object.
//! - **Order.** A submission keeps the order of an in-order queue and the barriers of an out-of-order one. Submissions of
//!   one executable never overlap.
//! - **Units.** In graphs, and wherever memory is named by `slice`, lengths, ranges, origins and pitches are in
//!   elements, work-items or pixels. The commands of queues are those of OpenCL: offsets, sizes, origins and pitches of
//!   buffers are in bytes there, and only `len` of [`Queue::enqueue_read_buffer_owned`] is in elements. In bytes are
//!   also `size()`, local memory ([`Parameter::local`], [`ExecuteKernel::set_arg_local_buffer`]; but
//!   [`KernelNode::local`] takes elements), the pitch of [`Image::from_buffer_2d`], and sizes of memory in reports and
//!   errors, but for [`MemoryError::OutOfBounds`], which counts elements or layers. Times are in nanoseconds where they
//!   are numbers.
//!
//! The rules, with ids that the tests name, are in `docs/SEMANTICS.md` of the repository. Names are those of OpenCL; the
//! C functions behind them, and what they are called in CUDA and SYCL graphs, are aliases in this documentation's
//! search.
#![deny(unsafe_code)] // allowed again in ffi/ and cl/ only: see docs/ARCHITECTURE.md
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

/// The crate whose objects clgraph takes and gives, in the version that it takes and gives them in.
pub use opencl3;

mod caps;
mod cl;
mod device_global;
mod drawing;
mod env;
mod error;
mod exec;
mod ffi;
mod graph;
mod images;
mod ir;
mod known;
mod plan;
mod record;

pub use caps::{
    Abi, Caps, Claim, CommandBufferCaps, ExtensionVersion, GlobalWay, ImageCaps, MemoryKind, MutableCaps, QueueKinds,
    RecordAbi, Svm, UpdateAbi, Usm, Version,
};
#[doc(hidden)]
pub use cl::buffer::Region;
pub use cl::buffer::{AsDestination, AsRegion, AsSource, Buffer, BufferSlice};
pub use cl::context::{Context, InContext, OnDevice};
pub use cl::device::{Device, Platform, best_device, broken_drivers, devices, platforms};
pub use cl::globals::GlobalSlice;
pub use cl::host::{Element, HostData};
pub use cl::image::{Image, ImageAccess, ImageLayers};
pub use cl::kernel::Kernel;
pub use cl::map::{MapMode, Mapped};
pub use cl::map_image::MappedImage;
pub use cl::memory::{HostGuard, HostGuardMut, Memory, MemorySlice};
pub use cl::program::Program;
pub use cl::program_builder::ProgramBuilder;
pub use cl::program_globals::GlobalBinding;
pub use cl::queue::QueueProperties;
pub use cl::sampler::Sampler;
pub use device_global::{DeviceGlobal, Elements, HostAccess, InitMode, host_access, scope};
pub use error::{
    BuildCause, BuildError, DriverError, Error, ErrorKind, Fault, FinalizeError, GlobalError, MemoryError,
    ParameterError, ProgramError, RecordError, Result, SetupError, Status, SubmitError, UpdateError,
};
pub use exec::{
    AllocationReport, ChoiceReport, ChoiceState, Clock, Completion, Dependency, Executable, Finalize, HostNodeReport,
    MemoryReport, NodeProfile, Profile, Progress, Report, Runner, SegmentReport, SubGraph, SubGraphNode,
    SubGraphReport, Submission, Submit, TitleProfile, Trace, UpdateReport, UserEvent, WaitFor, WayReport,
};
pub use graph::{
    AllocNode, BufferArg, CommandGroup, CopyNode, CopyRectNode, Detail, EmptyNode, EventHandle, EventNode, EventSignal,
    EventWait, Extent, FillNode, FreeNode, Graph, GraphMemory, GraphProperties, GroupNode, HintNode, HostRead,
    HostTask, HostTaskNode, HostWrite, ImageCopyNode, ImageFillNode, ImageReadNode, ImageWriteNode, KernelNode,
    LocalMemory, MemoryPool, NativeCommand, NativeCommandNode, NativeMemory, NativeQueue, NativeRecording, NdRange,
    Node, NodeKind, Nodes, Parameter, Pixels, PoolKind, ReadNode, ResultGuard, TaskOutcome, UsedMemory, ValueArg,
    WriteNode,
};
pub use images::{Addressing, ChannelOrder, ChannelType, Color, Filter, ImageFormat, ImageKind, ImageShape};
pub use plan::{Command, Path, Why};
pub use record::{Detached, Event, ExecuteKernel, ExecutionStatus, KernelArg, PendingRead, Queue, QueueState, Queues};

/// The README's program is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// So are those of the guide to device globals.
#[cfg(doctest)]
#[doc = include_str!("../docs/device_globals.md")]
struct DeviceGlobals;

/// So are those of the guides to porting.
#[cfg(doctest)]
#[doc = include_str!("../docs/porting.md")]
struct Porting;

/// From CUDA Graphs and SYCL graphs.
#[cfg(doctest)]
#[doc = include_str!("../docs/porting_graphs.md")]
struct PortingGraphs;
