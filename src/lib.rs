//! Command graphs for every OpenCL device: a program builds a graph of commands once, finalizes it, and submits it many
//! times.
//!
//! # From start to end
//!
//! 1. A [`Queue`] belongs to a [`Device`]. [`best_device`] finds a device, and [`Queue::from_opencl3`] wraps a queue
//!    that the program has already.
//! 2. A [`Program`] has [`Kernel`]s, and [`Buffer`]s hold memory. clgraph creates both, or wraps existing OpenCL
//!    objects.
//! 3. A [`Graph`] collects nodes: [`kernel`](Graph::kernel), [`copy`](Graph::copy), [`copy_rect`](Graph::copy_rect),
//!    [`fill`](Graph::fill), [`write`](Graph::write), [`read`](Graph::read), [`empty`](Graph::empty). Each of these
//!    functions returns a builder, and the builder's [`add`](CopyNode::add) adds the node. There are more kinds of
//!    nodes: [`host_task`](Graph::host_task), [`native_command`](Graph::native_command),
//!    [`wait_event`](Graph::wait_event) and [`signal_event`](Graph::signal_event), [`sub_graph`](Graph::sub_graph),
//!    [`alloc`](Graph::alloc), images, prefetches. Nodes that use the same memory get edges automatically;
//!    [`after`](CopyNode::after) and [`add_edge`](Graph::add_edge) add all other edges.
//! 4. [`Graph::finalize`] plans the graph, prepares its commands, and returns an [`Executable`]. The executable's
//!    [`report`](Executable::report) says what was decided and why.
//! 5. [`Executable::submit`] runs the graph, as often as the program likes. It returns a [`Submission`], which can be
//!    waited for; [`Submission::get`] returns its results.
//! 6. Between submissions, the program can set a [`Parameter`], change the range of a kernel, or replace a node by
//!    another command. [`Executable::update`] applies the changes to an executable that was finalized as
//!    [`updatable`](Finalize::updatable).
//!
//! Existing OpenCL code can be recorded into a graph: [`Graph::record`]. [`DeviceGlobal`] is a variable in device
//! memory; it works on every device. Import names one by one: a glob import would hide `Path` and `Result` of the
//! standard library behind [`Path`] and [`Result`].
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
//! # Record existing code
//!
//! A queue executes commands, or records them into a graph. The code that enqueues the commands is the same in both
//! cases. The functions of [`Queue`] have the names and arguments of those in `opencl3`, so existing code needs few
//! changes.
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
//! Four things can change: the value of a [`Parameter`], a range ([`Graph::set_nd_range`]), the active launch of a
//! [`CommandGroup`], and a whole command (`replace` of a node's builder). [`Executable::update`] applies the changes of
//! one node or of a list of nodes. It applies all of them or, if it fails, none. It never waits for submissions that
//! still run; these keep their old values.
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
//! A graph can use [`Buffer`]s and their slices, [`Memory`] that has an address (USM or SVM, whichever the device has),
//! [`Image`]s, and memory that the graph itself owns. [`Graph::alloc`] makes memory that exists from one node to
//! another; allocations that are not needed at the same time share bytes.
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
//! [`device_global!`] declares a variable in device memory. The kernels of all programs of a context can use it, on
//! every device. In OpenCL C the variable is `CLG_GLOBAL(name)`. The guide is `docs/guide/device_globals.md` in the
//! repository.
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
//! clgraph checks each call before the driver sees it. A call that returns an error has changed nothing. If a command
//! fails later, its submission fails, and [`Submission::wait`] returns the error; the executable can be submitted
//! again.
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
//! [`Finalize::path`] chooses how commands get to the device. [`Path::Auto`] times the program's own submissions and
//! keeps the fastest path; [`Path::Native`] records command buffers wherever the device can; [`Path::Replay`] enqueues
//! every command. The results are the same on every path. The [`Report`] says what was decided and why.
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
//! for segment in &executable.report().segments {
//!     println!("{segment}"); // on a device without command buffers: by replay, and why
//! }
//! # Ok(()) }
//! ```
//!
//! # The environment
//!
//! | variable | what it does |
//! |---|---|
//! | `CLGRAPH_LOOPS` | `auto`, `host-decided` or `ahead`: sets how loops run ([`Loops`]) if the program leaves it to clgraph |
//! | `CLGRAPH_FUSE` | `off`, `auto` or `now`: whether small launches are fused ([`Fuse`]), unless the program says so |
//! | `CLGRAPH_FUSE_AFTER` | with `auto`: how many milliseconds of submissions come before fused kernels are built |
//! | `CLGRAPH_CHECK_ELEMENTWISE` | `1`: submissions check what launches promise by [`KernelNode::elementwise`], which takes several times as long |
//! | `CLGRAPH_PATH` | `auto`, `native`, `replay`, `gated` or `queues`: sets the [`Path`] if the program leaves it to clgraph |
//! | `CLGRAPH_GLOBALS` | `named`, `kernel` or `argument`: sets how kernels reach device globals ([`GlobalAccess`]) if the program leaves it to clgraph |
//! | `CLGRAPH_TUNING_CACHE` | names a file that keeps what the automatic path has found, and fused kernels in a folder beside it, if the program names none ([`Finalize::tuning_cache`]) |
//! | `CLGRAPH_DUMP` | names a folder; each finalize, and each fusing after it, writes its report and its graph (DOT, and as text) there |
//! | `CLGRAPH_ASSUME` | for experts: names features that the driver has but does not report. A list, separated by commas, of `command_buffer` (the functions may be used although the device does not list `cl_khr_command_buffer`), `simultaneous_use` (a command buffer may be enqueued again while it runs) and `kernel_printf` (recorded kernels may print) |
//! | `OPENCL_DYLIB_PATH` | the OpenCL library to load, as for `opencl3` |
//!
//! # The log
//!
//! clgraph logs through the [`log`](https://docs.rs/log) crate, so the program chooses the logger. `error`: something
//! is lost for good. `warn`: something that the program or its user can correct. `info`: what was decided when a graph
//! was finalized. `debug`: where a submission deviates from the plan. An error that a call returns is not logged as
//! well.
//!
//! # Requirements
//!
//! Building needs Rust 1.88 and no OpenCL library. Running needs an OpenCL library (1.2 or newer) with a driver.
//! Programs can pass objects of [`opencl3`] 0.12 and raw handles to clgraph, and get them from it. Elements are plain
//! data: `Pod` of [`bytemuck`](https://docs.rs/bytemuck). clgraph starts threads when they are needed: one that sees
//! events complete, one that calls the program's callbacks, and one for each host task that runs.
//!
//! | feature | what it adds |
//! |---|---|
//! | `serde` | `serde::Serialize` for [`Caps`] and what is in it, [`Abi`], [`Path`], [`CommandKind`] and [`PathReason`] |
//! | `cli` | the program `clgraph`, which lists devices; and `serde` |
//!
//! # Coming from CUDA or SYCL
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
//! A *queue* records commands into a graph; *finalize* records segments of the graph into command buffers. Commands
//! that are not in a command buffer are *replayed*: clgraph enqueues them one by one at each submission. A *segment* is
//! a run of consecutive commands that take the same path. A node *after* another node waits for it. A sub-graph is
//! *inlined*: when the graph is finalized, the sub-graph's nodes take the place of its node.
//!
//! # What to rely on
//!
//! - **Safety.** The program makes promises in five places: where it adds a kernel launch or a native command
//!   ([`KernelNode::add`], [`NativeCommandNode::add`], and the functions that record, replace or group these); where it
//!   wraps raw handles or pointers; where it maps memory; where it sets a [`Parameter`] that has no bound; and where it
//!   gives the driver a program that is not source ([`Program::from_binary`], [`Program::from_il`]).
//!   Everything else is safe: executables keep alive what they use, and bounds, contexts, sizes and work-groups are
//!   checked when a node is added.
//! - **Errors.** A call that returns an [`Error`] has changed nothing. The error says what is wrong, where, and what to
//!   do. [`Error::kind`] is for code that has to choose.
//! - **Threads.** Graphs, executables, queues, buffers and submissions are `Send + Sync`; a clone is the same object.
//! - **Order.** On an in-order queue, a submission runs after everything that was enqueued before it, and before everything
//!   that is enqueued later. On an out-of-order queue only barriers and wait lists order it. Submissions of one
//!   executable never overlap.
//! - **Units.** In graphs, and wherever `slice` names memory, lengths, ranges, origins and pitches are in elements,
//!   work-items or pixels. The commands of queues follow OpenCL: their offsets, sizes, origins and pitches of buffers
//!   are in bytes; only `len` of [`Queue::enqueue_read_buffer_owned`] is in elements. These are also in bytes:
//!   `size()`; local memory ([`Parameter::local`], [`ExecuteKernel::set_arg_local_buffer`]), except that
//!   [`KernelNode::local`] takes elements; the pitch of [`Image::from_buffer_2d`]; and sizes of memory in reports and
//!   errors, except that [`MemoryError::OutOfBounds`] counts elements or layers. Times that are numbers are in
//!   nanoseconds.
//!
//! The rules are in `docs/SEMANTICS.md` of the repository. Each rule has an id, which the tests name. The names in this
//! crate are those of OpenCL. Search this documentation for the name of an OpenCL C function, or for the name in CUDA
//! graphs or SYCL graphs: these names are aliases of the items here.
#![deny(unsafe_code)] // allowed in ffi/ and cl/ only: see docs/ARCHITECTURE.md
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

/// The crate whose objects clgraph takes and returns, in the version that clgraph uses.
pub use opencl3;

// The layers, in the order in which a graph passes them. The head of each `mod.rs` says what comes in, what goes out, and
// which file to read first.
//
// | layer | what happens there |
// |---|---|
// | `graph`, `record` | commands become nodes: built one by one, or recorded from a queue |
// | `ir` | the graph as plain data: nodes, edges from memory, accesses |
// | `lower` | passes from graph to graph: sub-graphs are inlined |
// | `plan` | from the graph to a plan: order, paths, streams, memory; pure |
// | `exec` | from the plan to an executable; submissions, updates, the autotuner |
// | `report` | what was decided and measured: reports, profiles, traces |
// | `cl` | OpenCL's objects and commands; all unsafe code is there and in `ffi` |
// | `ffi` | OpenCL's functions and those of its extensions |
// | `drawing` | pictures of graphs |
// | `command`, `device_global`, `images`, `handles`, `caps`, `env` | plain data that several layers share |
// | `quirks` | what drivers do wrong |
// | `error` | all errors |
mod caps;
mod cl;
mod command;
mod device_global;
mod drawing;
mod env;
mod error;
mod exec;
mod ffi;
mod files;
mod graph;
mod handles;
mod images;
mod ir;
mod lower;
mod opencl_c;
mod plan;
mod quirks;
mod record;
mod report;

pub use caps::{
    Abi, Caps, CommandBufferCaps, DetectedBy, ExtensionVersion, GlobalAccess, ImageCaps, MemoryKind, MutableCaps,
    PoolKind, QueueKinds, RecordAbi, Svm, UpdateAbi, Usm, Version,
};
pub use cl::memory::globals::GlobalSlice;
pub use cl::memory::host::{Element, HostData};
pub use cl::memory::map::{MapMode, MapModeMut, MapRead, MapWrite, MapWriteInvalidate, Mapped};
pub use cl::memory::map_image::MappedImage;
pub use cl::memory::program_globals::GlobalBinding;
#[doc(hidden)]
pub use cl::memory::region::Region;
pub use cl::memory::region::{AsDestination, AsRegion, AsSource};
pub use cl::memory::typed::{HostGuard, HostGuardMut, Memory, MemorySlice};
pub use cl::objects::buffer::{Buffer, BufferSlice};
pub use cl::objects::context::{Context, InContext, OnDevice};
pub use cl::objects::device::{Device, Platform, best_device, broken_drivers, devices, platforms};
pub use cl::objects::image::{Image, ImageLayers};
pub use cl::objects::kernel::Kernel;
pub use cl::objects::program::Program;
pub use cl::objects::program_builder::ProgramBuilder;
pub use cl::objects::queue::QueueProperties;
pub use cl::objects::sampler::Sampler;
pub use device_global::{
    AnyDeviceGlobal, DeviceGlobal, DeviceGlobalType, DynamicGlobal, HostAccess, InitMode, host_access, scope,
};
pub use error::{
    BuildCause, BuildError, DriverError, DriverFault, Error, ErrorKind, FinalizeError, GlobalError, GroupError,
    MemoryError, ParameterError, ProgramError, RecordError, RectError, Result, SetupError, Status, Strayed,
    SubmitError, UpdateError, WorkGroupError,
};
pub use exec::{
    Branch, Condition, ControlHandle, Dependency, Executable, Finalize, Fuse, Loop, LoopBounds, Loops, Progress,
    RepeatNode, RepeatWhileNode, SubGraph, SubGraphNode, Submission, SubmissionFuture, Submit, SwitchNode, UserEvent,
    WaitFor, WhenNode,
};
pub use graph::{
    AllocNode, BufferArg, CommandGroup, CopyNode, CopyRectNode, DrawingDetail, EmptyNode, EventHandle, EventNode,
    EventSignal, EventWait, Extent, FillNode, FreeNode, Graph, GraphMemory, GraphProperties, GroupNode, HintNode,
    HostRead, HostTaskContext, HostTaskNode, HostWrite, ImageCopyNode, ImageFillNode, ImageReadNode, ImageWriteNode,
    KernelNode, LocalMemory, MemoryPool, NativeCommand, NativeCommandNode, NativeMemory, NativeQueue, NativeRecording,
    NdRange, Nodes, Parameter, Pixels, ReadNode, ResultGuard, TaskOutcome, UsedMemory, ValueArg, WriteNode,
};
pub use handles::{Node, NodeKind, RawNode};
pub use images::{
    Addressing, ChannelOrder, ChannelType, Color, Filter, ImageAccess, ImageFormat, ImageKind, ImageShape,
};
pub use plan::{CommandKind, Exclusion, Path, PathReason};
pub use record::{
    CaptureMode, Captured, Detached, Event, ExecuteKernel, ExecutionStatus, KernelArg, PendingRead, Queue, QueueState,
    Queues,
};
pub use report::{
    AllocationReport, Clock, ExcludedPath, FusedForm, FusedReport, FusingState, HostDecided, HostNodeReport,
    LoopReport, MemoryReport, NodeProfile, NodeSum, NotFusedReport, Profile, RanOn, Report, SegmentReport,
    StrategyReport, SubGraphReport, TitleProfile, Trace, TuningReport, TuningState, UpdateReport, WhyApart,
    WhyNotFused,
};

/// The programs of the README and of the guide, as tests. `tests/documents.rs` checks that every page is here.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    struct Readme;

    #[doc = include_str!("../docs/guide/building.md")]
    struct Building;

    #[doc = include_str!("../docs/guide/control_flow.md")]
    struct ControlFlow;

    #[doc = include_str!("../docs/guide/costs.md")]
    struct Costs;

    #[doc = include_str!("../docs/guide/device_globals.md")]
    struct DeviceGlobals;

    #[doc = include_str!("../docs/guide/errors.md")]
    struct Errors;

    #[doc = include_str!("../docs/guide/from_c.md")]
    struct FromC;

    #[doc = include_str!("../docs/guide/from_cpp.md")]
    struct FromCpp;

    #[doc = include_str!("../docs/guide/from_cuda_and_sycl.md")]
    struct FromCudaAndSycl;

    #[doc = include_str!("../docs/guide/from_opencl3.md")]
    struct FromOpencl3;

    #[doc = include_str!("../docs/guide/from_python.md")]
    struct FromPython;

    #[doc = include_str!("../docs/guide/fusion.md")]
    struct Fusion;

    #[doc = include_str!("../docs/guide/host_tasks.md")]
    struct HostTasks;

    #[doc = include_str!("../docs/guide/memory.md")]
    struct Memory;

    #[doc = include_str!("../docs/guide/native_commands.md")]
    struct NativeCommands;

    #[doc = include_str!("../docs/guide/paths.md")]
    struct Paths;

    #[doc = include_str!("../docs/guide/profiling.md")]
    struct Profiling;

    #[doc = include_str!("../docs/guide/recording.md")]
    struct Recording;

    #[doc = include_str!("../docs/guide/reports.md")]
    struct Reports;

    #[doc = include_str!("../docs/guide/updating.md")]
    struct Updating;
}
