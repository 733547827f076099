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
//! [`DeviceGlobal`].
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
//! - **Units.** Lengths, ranges and origins are in elements and work-items; sizes in reports and errors are in bytes.
//!
//! The rules, with ids that the tests name, are in `docs/SEMANTICS.md` of the repository. Names are those of OpenCL; the
//! C functions are aliases in this documentation's search.
#![deny(unsafe_code)] // allowed again in ffi/ and cl/ only: see docs/ARCHITECTURE.md
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

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
pub use cl::buffer::{AsDestination, AsRegion, AsSource, Buffer, BufferSlice, Region};
pub use cl::context::{Context, InContext, OnDevice};
pub use cl::device::{Device, Platform, best_device, devices, platforms};
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
    BuildCause, BuildError, DriverError, Error, ErrorKind, FinalizeError, GlobalError, MemoryError, ParameterError,
    ProgramError, RecordError, Result, SetupError, Status, SubmitError, UpdateError,
};
pub use exec::{
    AllocationReport, ChoiceReport, ChoiceState, Clock, Completion, Dependency, Executable, Finalize, MemoryReport,
    NodeProfile, Profile, Progress, Report, Runner, SegmentReport, SubGraph, SubGraphNode, SubGraphReport, Submission,
    Submit, Trace, UpdateReport, UserEvent, WaitFor, WayReport,
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

/// So is the one of the guide to porting.
#[cfg(doctest)]
#[doc = include_str!("../docs/porting.md")]
struct Porting;
