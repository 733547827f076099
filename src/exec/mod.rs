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
//! | `sub_graph.rs` | executables as nodes of other graphs |
//! | `native_tests.rs`, `native_tests/kernels.rs` | tests of command buffers on the fake driver (`cl/fake.rs`) |
//!
//! Read this file first, then `build/finalize.rs`, then `submit/mod.rs`, which tells what happens at submit.
//!
//! Two parts of an executable change: its values (`build/values.rs`) and the state that its submissions share
//! (`submit/executable_state.rs`). Both are under one lock. No code of the program runs under this lock, except the
//! functions of native commands. Everything else is fixed at finalize.

pub(crate) mod build;
mod drawing;
#[cfg(test)]
mod native_tests;
mod sub_graph;
pub(crate) mod submit;
pub(crate) mod tune;
pub(crate) mod update;

pub use build::options::Finalize;
pub use sub_graph::{SubGraph, SubGraphNode};
pub use submit::builder::{Dependency, Submit, WaitFor};
pub use submit::completion::SubmissionFuture;
pub use submit::submission::{Progress, Submission};
pub use submit::user_event::UserEvent;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::cl::completion::reentrancy;
use crate::cl::objects::context::{Context, InContext};
use crate::cl::objects::device::Device;
use crate::error::Result;
use crate::graph::{Origins, Ports};
use crate::handles::{GraphId, Node};
use crate::ir::NodeId;
use crate::ir::topology::Topology;
use crate::plan::Plan;
use crate::record::Queue;
use crate::report::Report;
use crate::report::profile::Names;
use submit::exclusive::ExclusiveUse;
use submit::executable_state::ExecutableState;
use submit::tasks::PartsOf;
use update::updatable::Updatable;

/// A finalized graph, with everything prepared that can be prepared. Each submission runs it once.
///
/// The topology of an executable is fixed. Its values change only by [`update`](Self::update): later changes of the
/// graph do not reach it. An executable keeps alive everything that it uses, and may be dropped while it runs. The
/// functions of host tasks and native commands are shared with the graph and with the graph's other executables; they
/// are called one after another. An executable is cheap to clone: clones are the same executable. Submissions of one
/// executable never overlap: a later submission waits for the earlier ones, also on other queues and from other
/// threads.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// # use clgraph::{Buffer, Finalize, Graph, Queue};
/// # let queue = Queue::new(&clgraph::best_device()?)?;
/// let graph = Graph::new(&queue)?;
/// let buffer = Buffer::<u32>::new(&queue, 8)?;
/// graph.fill(&buffer, 7).add()?;
/// let result = graph.read(&buffer).add()?;
/// let executable = graph.finalize(Finalize::new())?;
/// for _ in 0..3 {
///     let run = executable.submit(&queue)?;
///     run.wait()?;
///     assert_eq!(*run.get(&result)?, [7; 8]);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[doc(alias = "cudaGraphExec_t")]
pub struct Executable(Arc<Inner>);

struct Inner {
    /// Distinguishes executables.
    id: u64,
    graph: GraphId,
    context: Context,
    device: Device,
    plan: Plan,
    /// The planned nodes and their edges.
    topology: Arc<Topology>,
    /// The planned nodes with external events, by id.
    events_at: Vec<NodeId>,
    /// The results of earlier searches: whether the first node is after the second.
    reachable: Mutex<FxHashMap<(NodeId, NodeId), bool>>,
    /// What the planned nodes were before sub-graphs were inlined.
    origins: Origins,
    /// The host writes and host reads, by their handles.
    ports: Arc<Ports>,
    parts_of: PartsOf,
    report: Report,
    /// None if the executable cannot be updated.
    updatable: Option<Updatable>,
    /// The names of the nodes. None if nothing is profiled.
    names: Option<Arc<Names>>,
    exec_state: Mutex<ExecutableState>,
    exclusive: ExclusiveUse,
}

impl Executable {
    /// Runs the graph once, on a queue of the executable's context and device.
    ///
    /// On an in-order queue the submission behaves like one command: it runs after everything that the queue holds
    /// already, and commands that are enqueued later run after it. On an out-of-order queue only barriers and wait
    /// lists order it.
    ///
    /// The call does not block. The submission waits for earlier submissions of this executable on all queues.
    /// [`submit_to`](Self::submit_to) makes a submission that waits for events or brings its own input.
    /// [`Submission::get`] returns the results.
    ///
    /// # Errors
    /// As [`Submit::submit`].
    #[doc(alias("cudaGraphLaunch", "clEnqueueCommandBufferKHR", "ext_oneapi_graph"))]
    pub fn submit(&self, queue: &Queue) -> Result<Submission> {
        self.submit_to(queue).submit()
    }

    /// Starts a submission that can wait for events and bring its own input.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let graph = Graph::new(&queue)?;
    /// let buffer = Buffer::<f32>::new(&queue, 2)?;
    /// let input = graph.write(&buffer, [0.0, 0.0]).add()?;
    /// let output = graph.read(&buffer).add()?;
    /// let executable = graph.finalize(Finalize::new())?;
    ///
    /// let first = executable.submit(&queue)?;
    /// let second = executable.submit_to(&queue).after(&first).with(&input, [1.0, 2.0]).submit()?;
    /// second.wait()?;
    /// assert_eq!(*first.get(&output)?, [0.0, 0.0]);
    /// assert_eq!(*second.get(&output)?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    pub fn submit_to<'a>(&'a self, queue: &'a Queue) -> Submit<'a> {
        Submit::new(self, queue)
    }

    /// Returns how many bytes the executable has allocated for its graph's own memory
    /// ([`Graph::alloc`](crate::Graph::alloc)); 0 if the graph has none. [`report`](Self::report) says which allocation
    /// is where.
    #[must_use]
    pub fn required_memory(&self) -> usize {
        self.0.report.memory.bytes
    }

    /// Returns what finalize decided, and why. It also says how submissions are enqueued now, which an automatic path
    /// finds by timing them; this part is empty inside the function of a native command.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut report = self.0.report.clone();
        if reentrancy::check_call().is_ok() {
            let mut exec_state = self.0.lock_state();
            report.tuning = exec_state.tuning_report();
            let leftovers = exec_state.leftovers();
            drop(exec_state);
            leftovers.settle(&self.0);
        }
        report
    }

    /// Returns the native command buffers that finalize made, as `cl_command_buffer_khr`, in the order of the plan.
    ///
    /// They are for in-order queues without profiling; if the executable was finalized for profiling, they are for
    /// in-order queues with profiling. The list is empty if nothing was recorded, and inside the function of a native
    /// command. Replayed commands are in no command buffer. An automatic path may enqueue other command buffers, or
    /// none: see [`TuningReport`].
    ///
    /// The handles are valid while the executable exists and is not updated. If you enqueue a command buffer yourself,
    /// clgraph does not know it: submissions are not ordered after it, and you must keep alive the memory and kernels
    /// that its commands use, because drivers do not keep the arguments of recorded kernels.
    #[must_use]
    #[doc(alias = "clEnqueueCommandBufferKHR")]
    pub fn command_buffers(&self) -> Vec<*mut std::ffi::c_void> {
        if reentrancy::check_call().is_err() { Vec::new() } else { self.0.lock_state().command_buffers() }
    }

    /// Returns the device of the executable.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }
}

impl InContext for Executable {
    fn context(&self) -> &Context {
        &self.0.context
    }
}

impl Inner {
    fn lock_state(&self) -> MutexGuard<'_, ExecutableState> {
        self.exec_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a planned node is after another.
    fn is_after(&self, node: NodeId, of: NodeId) -> bool {
        let mut reachable = self.reachable.lock().unwrap_or_else(PoisonError::into_inner);
        *reachable.entry((node, of)).or_insert_with(|| self.topology.is_after(node, of))
    }

    fn node(&self, id: NodeId) -> Node {
        Node::new(self.graph, id)
    }
}

impl PartialEq for Executable {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Executable {}

impl std::hash::Hash for Executable {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executable")
            .field("device", &self.0.device)
            .field("commands", &self.0.plan.steps.len())
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // OpenCL keeps its own objects until the enqueued commands that use them are complete. It does not keep the
        // objects that a command buffer uses, nor host memory: this must.
        let exec_state = self.exec_state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = exec_state.kept(self.exclusive.user()) {
            self.exclusive.keep_while_running(kept);
        }
    }
}
