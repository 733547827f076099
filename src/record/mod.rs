//! Queues, as users see them: a queue executes what it is given, or a graph records it.
//!
//! The program calls the methods of a [`Queue`], which have the names and argument orders of `opencl3`. Each method
//! makes a [`Request`](crate::graph::nodes::request). Then one direction: the queue asks its [`machine`] whether it
//! executes or records; the request is checked; it goes to the driver ([`execute`]) or into the graph
//! ([`Graph::record_node`](crate::Graph)). The program gets an [`Event`], which belongs to a command or stands for a
//! node.
//!
//! | file | what is there |
//! |---|---|
//! | `queue.rs` | the public `Queue`, and what it does with a request. Read it first |
//! | `machine.rs` | the state of one queue, executing or recording, and all its changes |
//! | `session.rs` | begin and end of recordings, of one queue or of several |
//! | `capture.rs` | captures: nodes of what other code enqueues on a queue |
//! | `bodies.rs` | what a thread may record while it records a body of a branch or loop |
//! | `enqueue.rs`, `image.rs`, `memory.rs` | commands of queues: on buffers, images, memory that a graph owns |
//! | `execute.rs` | a request that runs at once (`Run`) |
//! | `deferred.rs` | commands that wait for an event that may fail |
//! | `detached.rs` | the form of each command that returns no event |
//! | `pending_read.rs` | reads whose data is taken later |
//! | `execute_kernel.rs` | launches of kernels (`ExecuteKernel`) |
//! | `set_arg.rs` | one argument of a kernel node, captured or not |
//! | `event.rs` | events of commands, and events that stand for nodes |
//! | `sealed.rs` | what keeps other crates from implementing the public traits |
//!
//! Invariants: a submission to a queue is wholly recorded or wholly executed. Which nodes the order of a queue
//! puts before a recorded node is decided in `graph/recorder.rs`. Rules: R1 to R20, D6.

mod bodies;
mod capture;
mod deferred;
mod detached;
mod enqueue;
mod event;
mod execute;
mod execute_kernel;
mod image;
mod machine;
mod memory;
mod pending_read;
mod queue;
mod sealed;
mod session;
mod set_arg;

pub(crate) use bodies::RecordsBody;
pub use capture::{CaptureMode, Captured};
pub use detached::Detached;
pub use event::{Event, ExecutionStatus};
pub(crate) use event::{EventKind, NodeEvent};
pub use execute_kernel::{ExecuteKernel, KernelArg};
pub use pending_read::PendingRead;
pub use queue::{Queue, QueueState};
pub use session::Queues;
