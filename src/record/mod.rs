//! The user's code runs once: queues that execute what they are given, or have a graph take it down.
//!
//! One direction: a [`Queue`] asks its [`machine`] whether it executes or records; then a [`Request`](crate::graph::request)
//! is checked, and goes to the driver ([`execute`]) or into the graph ([`Graph::take_down`](crate::Graph)).

mod detached;
mod enqueue;
mod event;
mod execute;
mod image;
mod machine;
mod memory;
mod queue;
mod sealed;
mod session;

pub use detached::Detached;
pub use enqueue::PendingRead;
pub use event::{Event, ExecutionStatus};
pub(crate) use event::{Kind, NodeEvent};
pub use execute::{ExecuteKernel, KernelArg};
pub use queue::{Queue, QueueState};
pub use session::Queues;
