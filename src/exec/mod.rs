//! The hands: a plan with its objects becomes an [`Executable`], which is submitted.

mod arena;
mod choice;
mod completion;
mod deferred;
mod drawing;
mod dump;
mod external;
mod finalize;
mod follow;
mod frozen;
mod host_task;
mod in_turn;
mod lane;
mod memory_map;
mod native;
mod native_command;
#[cfg(test)]
mod native_tests;
mod prepared;
mod profile;
mod remember;
mod replay;
mod report;
pub(crate) mod ring;
mod shown;
mod spread;
mod state;
mod sub_graph;
mod submission;
mod submit;
mod tour;
mod trace;
mod turns;
mod updatable;
mod update;
mod user_event;
mod values;
mod walk;
mod workers;

pub use completion::Completion;
pub use finalize::Finalize;
pub use profile::{Clock, NodeProfile, Profile, Runner, TitleProfile};
pub use report::{
    AllocationReport, ChoiceReport, ChoiceState, HostNodeReport, MemoryReport, Report, SegmentReport, SubGraphReport,
    UpdateReport, WayReport,
};
pub use sub_graph::{SubGraph, SubGraphNode};
pub use submission::{Progress, Submission};
pub use submit::{Dependency, Submit, WaitFor};
pub use trace::Trace;
pub use user_event::UserEvent;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::cl::context::{Context, InContext};
use crate::cl::device::Device;
use crate::cl::reentrancy;
use crate::error::Result;
use crate::graph::{GraphId, Node, Origins, Ports};
use crate::ir::NodeId;
use crate::ir::topology::Topology;
use crate::plan::Plan;
use crate::record::Queue;
use lane::Lane;
use profile::Names;
use tour::PartsOf;
use turns::TurnsOf;
use updatable::Updatable;

/// A finalized graph: everything that can be prepared is, and each submission runs it once.
///
/// Its topology is fixed, and its values change by [`update`](Self::update) only: what is done to the graph later does not
/// reach it. It keeps alive all that it uses, and may be dropped while it runs. The functions of host tasks and native
/// commands are shared with the graph and with its other executables, which call them one after the other. Cheap to clone:
/// clones are the same executable. Submissions of one executable never overlap: a later one waits for an earlier one, also on
/// other queues and from other threads.
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
    /// Tells executables apart.
    id: u64,
    graph: GraphId,
    context: Context,
    device: Device,
    plan: Plan,
    /// The planned nodes and their edges.
    topology: Arc<Topology>,
    /// The planned nodes with external events, by id.
    events_at: Vec<NodeId>,
    /// What was found of nodes: whether the first is behind the second.
    behind: Mutex<FxHashMap<(NodeId, NodeId), bool>>,
    /// What the planned nodes were before sub-graphs were written out.
    origins: Origins,
    /// Its host writes and host reads, by their handles.
    ports: Arc<Ports>,
    parts_of: PartsOf,
    report: Report,
    /// None where nothing can be updated.
    updatable: Option<Updatable>,
    /// What its nodes are called. None where nothing is profiled.
    names: Option<Arc<Names>>,
    lane: Mutex<Lane>,
    turns: TurnsOf,
}

impl Executable {
    /// Runs the graph once on a queue of its context and device. On an in-order queue it comes behind what the queue holds
    /// already, and what the queue is given later comes behind it, as if it were one command. On an out-of-order queue only
    /// barriers and wait lists order it.
    ///
    /// It does not block. It waits for earlier submissions of this executable, on whatever queue. More to say, events to
    /// wait for and input of its own: [`submit_to`](Self::submit_to). Results: [`Submission::get`].
    ///
    /// # Errors
    /// As [`Submit::submit`].
    #[doc(alias("cudaGraphLaunch", "clEnqueueCommandBufferKHR", "ext_oneapi_graph"))]
    pub fn submit(&self, queue: &Queue) -> Result<Submission> {
        self.submit_to(queue).submit()
    }

    /// Starts a submission that waits for events or brings its own input.
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

    /// Bytes that the executable has allocated for the memory of its graph's own ([`Graph::alloc`](crate::Graph::alloc)); 0
    /// without any. The report says what lies where.
    #[must_use]
    pub fn required_memory(&self) -> usize {
        self.0.report.memory.bytes
    }

    /// What was decided at finalize, and why; and how submissions are enqueued now, which an automatic path finds by timing them. That
    /// is left out in the function of a native command.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut report = self.0.report.clone();
        if reentrancy::check_call().is_ok() {
            let mut lane = self.0.lane();
            report.choice = lane.choice();
            let leftovers = lane.leftovers();
            drop(lane);
            leftovers.settle(&self.0);
        }
        report
    }

    /// The native command buffers that finalize made, as `cl_command_buffer_khr`, in the order of the plan: for in-order queues
    /// that do not profile, or of an executable finalized for profiling for those that do. Empty where nothing was recorded;
    /// what is replayed is not among them. An automatic path may enqueue others, or none: see
    /// [`ChoiceReport`].
    ///
    /// They are valid while the executable lives and is not updated. Enqueuing them yourself passes by all that clgraph
    /// sees to: submissions are not ordered behind what you enqueue, and what the commands use must be kept alive by you,
    /// because drivers do not keep the arguments of recorded kernels. Inside the function of a native command the list is empty.
    #[must_use]
    #[doc(alias = "clEnqueueCommandBufferKHR")]
    pub fn command_buffers(&self) -> Vec<*mut std::ffi::c_void> {
        if reentrancy::check_call().is_err() { Vec::new() } else { self.0.lane().command_buffers() }
    }

    /// The device that it is for.
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
    fn lane(&self) -> MutexGuard<'_, Lane> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a planned node is behind another.
    fn is_behind(&self, node: NodeId, of: NodeId) -> bool {
        let mut behind = self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        *behind.entry((node, of)).or_insert_with(|| self.topology.is_behind(node, of))
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
        // OpenCL keeps its own objects until enqueued commands are done with them. It does not keep what a command buffer
        // uses, and host memory is ours to keep too.
        let lane = self.lane.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = lane.kept(self.turns.user()) {
            self.turns.keep_while_running(kept);
        }
    }
}
