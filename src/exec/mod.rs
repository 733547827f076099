//! Executables: what a graph becomes when it is finalized, and everything that is done with it afterwards.
//!
//! Input: a [`Graph`](crate::Graph) with options. Output: an [`Executable`], then submissions, results and reports.
//! The planner decides what runs where and in which order; this folder never does. It binds the plan to OpenCL objects.
//!
//! | folder or file | what happens there |
//! |---|---|
//! | `build` | finalize: graph to plan, memory, kernel objects, command buffers |
//! | `submit` | one submission from `submit()` to its end: checks, waits, enqueuing, host tasks, results |
//! | `update` | new values for an executable, all of them or none |
//! | `tune` | the automatic path: timing of strategies, and the file that keeps the result |
//! | `drawing.rs` | an executable as SVG: what runs where, and how long |
//! | `executable.rs`, `finalized.rs` | an executable: what finalize fixed, and what changes |
//! | `tier.rs` | the fused form of an executable, which comes while the executable is used |
//! | `sub_graph.rs` | executables as nodes of other graphs |
//! | `control_node.rs` | executables as bodies of branches and loops |
//! | `queue_control.rs` | branches and loops on queues |
//! | `native_tests.rs`, `native_tests/kernels.rs` | tests of command buffers on the fake driver (`cl/fake.rs`) |
//!
//! Read `executable.rs` first, then `build/finalize.rs`, then `submit/mod.rs`, which tells what happens at submit.
//!
//! Two parts of an executable change: its values (`build/values.rs`) and the state that its submissions share
//! (`submit/executable_state.rs`). Both are under one lock. No code of the program runs under this lock, except the
//! functions of native commands. `finalized.rs` has everything else, which finalize fixes.

pub(crate) mod build;
mod control_node;
mod drawing;
pub(crate) mod executable;
pub(in crate::exec) mod finalized;
#[cfg(test)]
mod native_tests;
mod queue_control;
mod sub_graph;
pub(crate) mod submit;
pub(in crate::exec) mod tier;
pub(crate) mod tune;
pub(crate) mod update;

pub use build::options::{Finalize, Fuse, Loops};
pub use control_node::{
    Branch, Condition, ControlHandle, Loop, LoopBounds, RepeatNode, RepeatWhileNode, SwitchNode, WhenNode,
};
pub use executable::Executable;
pub use sub_graph::{SubGraph, SubGraphNode};
pub use submit::builder::Submit;
pub use submit::completion::SubmissionFuture;
pub use submit::dependency::{Dependency, WaitFor};
pub use submit::submission::{Progress, Submission};
pub use submit::user_event::UserEvent;
