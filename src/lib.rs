#![doc = include_str!("../README.md")]
#![deny(unsafe_code)] // allowed again in ffi/ and cl/ only: see docs/ARCHITECTURE.md
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod caps;
mod cl;
mod error;
mod exec;
mod ffi;
mod graph;
mod ir;
mod plan;

pub use caps::{Caps, Version};
pub use cl::buffer::{AsRegion, Buffer, BufferSlice, Region};
pub use cl::context::{Context, InContext};
pub use cl::device::{Device, best_device, devices};
pub use cl::event::Event;
pub use cl::host::{Element, HostData};
pub use cl::kernel::Kernel;
pub use cl::program::{Program, ProgramBuilder};
pub use cl::queue::{Queue, QueueProperties};
pub use error::{
    BuildCause, BuildError, DriverError, Error, ErrorKind, FinalizeError, MemoryError, ProgramError, Result,
    SetupError, Status, SubmitError,
};
pub use exec::{
    Completion, Executable, Finalize, Progress, Report, ResultGuard, SegmentReport, Submission, Submit, WaitFor,
};
pub use graph::{
    CopyNode, CopyRectNode, Detail, EmptyNode, Extent, FillNode, Graph, GraphProperties, HostRead, HostWrite,
    KernelNode, Node, NodeKind, Nodes, ReadNode, WriteNode,
};
pub use plan::{Path, Why};
