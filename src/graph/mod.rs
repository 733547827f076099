//! Graphs, as a user builds them: nodes, edges, values that can change, and questions about all of these.
//!
//! Input: *requests*, from builders (`graph.kernel(..).read(..).add()`) and from recording queues. A request is a
//! command with its operands, dependencies and label. Output: [`Tables`], which are the graph as plain data ([`Ir`])
//! and the objects that its ids stand for. Finalize takes the tables; nothing here enqueues a command.
//!
//! | folder or file | what is there |
//! |---|---|
//! | `nodes` | one file for each kind of node: its builder, its request, its checks |
//! | `edit` | changes of nodes that are already in a graph: values change, edges never do |
//! | `parameters` | kernel arguments that a program sets again after the node was added |
//! | `tables.rs`, `writer.rs` | the tables of a graph, and how a request writes into them |
//! | `recorded.rs` | the bodies of branches and loops that were recorded, which change with the graph around them |
//! | `recorder.rs` | which queues record into a graph, and which node each of them recorded last |
//! | `flat.rs` | a graph without sub-graphs, and its objects; `lower/` makes it |
//! | `ports.rs` | host writes, host reads and external events of an executable, found by their handles |
//! | `query.rs`, `drawing.rs` | questions about a graph; a graph as DOT and SVG |
//! | `sealed.rs` | what keeps other crates from implementing the public traits |
//!
//! Read this file first: `Graph::insert` adds a built node, and `Graph::record_node` a recorded node. Then
//! `nodes/request.rs`, then `nodes/hint.rs` as the smallest kind of node.
//!
//! Invariants: a request is checked completely before anything changes, and by the same code for graphs and queues.
//! Edges from data come from `ir/hazards.rs` only. Rules (here and in other files: of `docs/SEMANTICS.md`): B1 to B14,
//! D1 to D6, P1 to P9, C1 to C6, M1 to M8, N1 to N6.

mod drawing;
pub(crate) mod edit;
mod flat;
pub(crate) mod nodes;
mod parameters;
pub(crate) mod ports;
mod query;
mod recorded;
pub(crate) mod recorder;
pub(crate) mod sealed;
mod tables;
mod writer;

pub use drawing::DrawingDetail;
pub(crate) use drawing::{not_written, readable, to_dot, to_svg, write};
pub(crate) use flat::{Flat, FusedChain, Origins};
pub(crate) use nodes::after::{After, after_methods};
pub(crate) use nodes::argument::LaunchRef;
pub use nodes::argument::{BufferArg, Pixels, ValueArg};
pub(crate) use nodes::argument_checks::WritesConst;
pub use nodes::command_group::{CommandGroup, GroupNode};
pub use nodes::external_event::{EventHandle, EventNode, EventSignal, EventWait};
pub use nodes::fill::FillNode;
pub use nodes::hint::HintNode;
pub use nodes::host_task::{HostTaskContext, HostTaskNode, ResultGuard, TaskOutcome, UsedMemory};
pub use nodes::image::{ImageCopyNode, ImageFillNode, ImageReadNode, ImageWriteNode};
pub use nodes::kernel::KernelNode;
pub use nodes::memory::{AllocNode, FreeNode, GraphMemory, MemoryPool};
pub use nodes::native_command::{NativeCommand, NativeCommandNode, NativeMemory, NativeQueue, NativeRecording};
pub use nodes::range::{Extent, NdRange};
pub use nodes::rect::CopyRectNode;
use nodes::request::{Request, Target};
pub use nodes::transfer::{CopyNode, EmptyNode, HostRead, HostWrite, ReadNode, WriteNode};
pub(crate) use parameters::{Cell, Value as ParameterValue};
pub use parameters::{LocalMemory, Parameter};
pub(crate) use ports::Ports;
pub(crate) use recorded::{RecordedBody, refresh};
use recorder::{Order, Recorder, RecordingQueue};
pub(crate) use tables::{Binding, Child, CurrentValues, Tables, UseHandle};
pub(crate) use writer::{Index, Released, Writer};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use rustc_hash::FxHashMap;

use crate::cl::objects::context::{Context, InContext, OnDevice};
use crate::cl::objects::device::Device;
use crate::command::Command;
use crate::error::{BuildCause, BuildError, Result};
use crate::handles::{GraphId, Node};
use crate::ir::hazards::Hazards;
use crate::ir::{Access, Ir, NodeId};

/// A graph of OpenCL commands for one device of one context. Nodes can be added at any time.
///
/// [`finalize`](Graph::finalize) turns the graph into an [`Executable`](crate::Executable), which can be submitted.
/// Cloning a graph is cheap, and clones are the same graph. Several threads may build one graph; nodes are numbered in
/// the order in which they were added.
///
/// A graph keeps the objects that its nodes use alive. Executables do not need the graph any more. Dropping the last
/// handle of a graph ends the recordings into it.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// use clgraph::{Buffer, Finalize, Graph, Program, Queue};
///
/// let queue = Queue::new(&clgraph::best_device()?)?;
/// let program = Program::from_source(&queue, "kernel void twice(global int *a) { a[get_global_id(0)] *= 2; }")?;
/// let twice = program.kernel("twice")?;
/// let numbers = Buffer::<i32>::new(&queue, 4)?;
///
/// let graph = Graph::new(&queue)?;
/// graph.write(&numbers, [1, 2, 3, 4]).add()?;
/// // SAFETY: `twice` touches one element a work-item, and the range is as long as the buffer.
/// unsafe { graph.kernel(&twice).read_write(&numbers).range(4).add()? };
/// let result = graph.read(&numbers).add()?;
///
/// let executable = graph.finalize(Finalize::new())?;
/// let run = executable.submit(&queue)?;
/// run.wait()?;
/// assert_eq!(*run.get(&result)?, [2, 4, 6, 8]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[doc(alias("cudaGraph_t", "command_graph", "cl_command_buffer_khr"))]
pub struct Graph(Arc<Shared>);

struct Shared {
    id: GraphId,
    context: Context,
    device: Device,
    properties: GraphProperties,
    /// Whether it is made for the body of a recorded branch or loop.
    is_body: bool,
    state: StateRef,
}

/// The state of a graph. It outlives the last handle of the graph, because executables that can be updated read it.
#[derive(Clone, Default)]
pub(crate) struct StateRef(Arc<Mutex<State>>);

impl StateRef {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state, unless another thread has locked it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.0.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// Options of a new graph.
///
/// ```
/// let properties = clgraph::GraphProperties::new().no_cycle_check();
/// assert!(properties.no_cycle_check);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct GraphProperties {
    /// [`Graph::add_edge`] does not look for cycles. [`Graph::finalize`] still does, and its error names the nodes of a
    /// cycle.
    pub no_cycle_check: bool,
    /// Has no effect: nodes always keep the objects that they use alive. The option exists because SYCL graphs have it.
    pub assume_buffer_outlives_graph: bool,
}

impl GraphProperties {
    /// Returns the default options: none is set.
    pub const fn new() -> Self {
        Self { no_cycle_check: false, assume_buffer_outlives_graph: false }
    }

    /// Sets [`no_cycle_check`](Self#structfield.no_cycle_check).
    pub const fn no_cycle_check(mut self) -> Self {
        self.no_cycle_check = true;
        self
    }

    /// Sets [`assume_buffer_outlives_graph`](Self#structfield.assume_buffer_outlives_graph).
    pub const fn assume_buffer_outlives_graph(mut self) -> Self {
        self.assume_buffer_outlives_graph = true;
        self
    }
}

/// A graph while it is being built.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Shared with the executables that were made of this graph. Adding a node while they share it copies the tables
    /// first.
    pub(crate) tables: Arc<Tables>,
    pub(crate) recorder: Recorder,
    index: Index,
    hazards: Hazards,
    /// The last node that uses each executable, by the address of that executable's exclusive use.
    last_use: FxHashMap<usize, NodeId>,
    /// Where in the bindings the next update is likely to look first.
    next_binding: usize,
    /// How often nodes have changed since they were added by more than the bytes of their values.
    pub(crate) reshaped: Arc<FxHashMap<NodeId, u32>>,
    /// By node: the recorded bodies in it that can change, inner ones before those around them.
    recorded: BTreeMap<NodeId, Vec<RecordedBody>>,
    /// A scratch list for the accesses of the node that is being added. It is empty between two nodes.
    accesses: Vec<Access>,
}

impl std::ops::Deref for State {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        &self.tables
    }
}

/// Names one or several nodes of a graph.
///
/// It is implemented for a [`Node`]; for the handles of writes, reads, events and sub-graphs; for an
/// [`Event`](crate::Event) of a recorded command; and for slices, arrays and `Vec`s of these. It cannot be implemented
/// outside this crate.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not stand for nodes of a graph",
    note = "give what `add` returned, events of recorded commands, or slices, arrays and `Vec`s of these"
)]
pub trait Nodes: sealed::Nodes {
    /// Calls `each` with every node, or with `None` for an event that stands for no node because its command was
    /// executed.
    fn for_each_node(&self, each: impl FnMut(Option<Node>));
}

impl Nodes for Node {
    fn for_each_node(&self, mut each: impl FnMut(Option<Node>)) {
        each(Some(*self));
    }
}

impl<N: Nodes + ?Sized> Nodes for &N {
    fn for_each_node(&self, each: impl FnMut(Option<Node>)) {
        (**self).for_each_node(each);
    }
}

impl<N: Nodes> Nodes for [N] {
    fn for_each_node(&self, mut each: impl FnMut(Option<Node>)) {
        self.iter().for_each(|node| node.for_each_node(&mut each));
    }
}

impl<N: Nodes, const LEN: usize> Nodes for [N; LEN] {
    fn for_each_node(&self, each: impl FnMut(Option<Node>)) {
        self[..].for_each_node(each);
    }
}

impl<N: Nodes> Nodes for Vec<N> {
    fn for_each_node(&self, each: impl FnMut(Option<Node>)) {
        self[..].for_each_node(each);
    }
}

impl Graph {
    /// Creates an empty graph for a device of a context.
    ///
    /// # Errors
    /// [`SetupError::DeviceOutsideContext`](crate::SetupError::DeviceOutsideContext).
    pub fn with_properties(context: &impl InContext, device: &Device, properties: GraphProperties) -> Result<Self> {
        Self::made(context, device, properties, false)
    }

    /// Creates a graph for the body of a branch or loop that is recorded.
    pub(crate) fn for_body(queue: &impl OnDevice) -> Result<Self> {
        Self::made(queue, queue.device(), GraphProperties::new(), true)
    }

    pub(crate) fn is_body(&self) -> bool {
        self.0.is_body
    }

    fn made(context: &impl InContext, device: &Device, properties: GraphProperties, is_body: bool) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let context = context.context();
        context.check_device(device)?;
        Ok(Self(Arc::new(Shared {
            id: GraphId(NEXT.fetch_add(1, Ordering::Relaxed)),
            context: context.clone(),
            device: device.clone(),
            properties,
            is_body,
            state: StateRef::default(),
        })))
    }

    /// Returns the device that the graph is for.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Adds an edge: `after` runs when `before` is complete.
    ///
    /// Both are nodes or handles of nodes. Adding an edge that exists already changes nothing.
    ///
    /// # Errors
    /// [`BuildCause::OtherGraph`], [`BuildCause::SameNode`], [`BuildCause::Recording`], and [`BuildCause::Cycle`] with
    /// the nodes of the cycle.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # let queue = clgraph::Queue::new(&clgraph::best_device()?)?;
    /// let graph = clgraph::Graph::new(&queue)?;
    /// let (a, b) = (graph.empty().add()?, graph.empty().add()?);
    /// graph.add_edge(a, b)?;
    /// let error = graph.add_edge(b, a).unwrap_err();
    /// assert!(error.to_string().contains("would close a cycle: node 0 -> node 1 -> node 0"));
    /// # Ok(()) }
    /// ```
    #[doc(alias("cudaGraphAddDependencies", "make_edge"))]
    pub fn add_edge(&self, before: impl Into<Node>, after: impl Into<Node>) -> Result<()> {
        let (before, after) = (before.into(), after.into());
        // Nodes of different graphs may have the same number.
        let named =
            |node: Node| if node.graph() == self.id() { node.to_string() } else { format!("{node} of another graph") };
        let subject = || format!("edge from {} to {}", named(before), named(after));
        let mut state = self.lock();
        self.check_not_recording(&state).map_err(|cause| BuildError::new(subject(), cause))?;
        let from = self.resolve(&state, before).map_err(|cause| BuildError::new(subject(), cause))?;
        let to = self.resolve(&state, after).map_err(|cause| BuildError::new(subject(), cause))?;
        if from == to {
            return Err(BuildError::new(subject(), BuildCause::SameNode { node: before }).into());
        }
        let check = !self.0.properties.no_cycle_check;
        let tables = Arc::make_mut(&mut state.tables);
        match Arc::make_mut(&mut tables.ir.topology).add_edge(from, to, check) {
            Ok(_) => Ok(()),
            Err(would) => {
                let nodes = would.0.into_iter().map(|node| Node::new(self.id(), node)).collect();
                Err(BuildError::new(subject(), BuildCause::Cycle { nodes }).into())
            }
        }
    }

    pub(crate) fn id(&self) -> GraphId {
        self.0.id
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    fn resolve(&self, state: &State, node: Node) -> Result<NodeId, BuildCause> {
        if node.graph() == self.id() && node.index() < state.ir.len() {
            Ok(node.id())
        } else {
            Err(BuildCause::OtherGraph { node })
        }
    }

    pub(crate) fn target(&self) -> Target<'_> {
        Target { context: &self.0.context, device: &self.0.device, graph: Some(self.id()) }
    }

    fn check_not_recording(&self, state: &State) -> Result<(), BuildCause> {
        if state.recorder.is_recording() { Err(BuildCause::Recording) } else { Ok(()) }
    }

    /// Adds a node through its builder. All checks come before the first change.
    pub(crate) fn insert<R: Request>(&self, request: R, after: &After) -> Result<Node, BuildError> {
        let state = &mut *self.lock();
        let fail = |state: &State, subject: String, cause| {
            let label = after.label.as_ref().map_or_else(String::new, |label| format!(" \"{label}\""));
            BuildError::new(format!("{subject}{label} (to be node {})", state.ir.len()), cause)
        };
        let mut waits = Vec::new();
        let known = self.check_not_recording(state).and_then(|()| {
            for node in &after.nodes {
                waits.push(self.resolve(state, node.ok_or(BuildCause::NotANode)?)?);
            }
            Ok(())
        });
        known.map_err(|cause| fail(state, request.subject(), cause))?;
        if after.all_leaves {
            waits.extend_from_slice(state.ir.topology.leaves());
        }
        let prepared = request.prepare(self, state);
        let checked = prepared.and_then(|()| request.check(&self.target()));
        let checked = checked.map_err(|cause| fail(state, request.subject(), cause))?;
        let node = state.push(request, checked, &mut waits).map_err(|cause| fail(state, ONE_MORE.to_owned(), cause))?;
        state.give_label(node, after.label.as_ref());
        Ok(Node::new(self.id(), node))
    }

    /// Adds a node by recording: after the nodes in `after`, and after the nodes that the queue's order puts before it.
    pub(crate) fn record_node<R: Request>(
        &self,
        state: &mut State,
        queue: &dyn RecordingQueue,
        order: Order,
        request: R,
        after: &[Node],
    ) -> Result<Node, BuildError> {
        let fail = |cause| BuildError::new(request.subject(), cause);
        let mut waits = Vec::new();
        for node in after {
            waits.push(self.resolve(state, *node).map_err(fail)?);
        }
        let prepared = request.prepare(self, state);
        let checked = prepared.and_then(|()| request.check(&self.target())).map_err(fail)?;
        state.recorder.before(queue, order, &mut waits);
        let pushed = state.push(request, checked, &mut waits);
        let node = pushed.map_err(|cause| BuildError::new(ONE_MORE, cause))?;
        state.recorder.took(queue, order, node, &waits);
        Ok(Node::new(self.id(), node))
    }

    /// Returns whether what its nodes do can change after they were added.
    pub(crate) fn can_change(&self) -> bool {
        let state = self.lock();
        let has_groups = !state.groups.is_empty() || !state.task_groups.is_empty();
        // Another handle is the program's, which can replace nodes by it.
        let is_kept = Arc::strong_count(&self.0) > 1;
        let children = state.children.iter().any(|child| child.of.can_change());
        is_kept || has_groups || children || !state.parameter_bound.is_empty()
    }

    /// The state of the graph, for holders that do not keep the graph alive.
    pub(crate) fn state(&self) -> StateRef {
        self.0.state.clone()
    }

    /// A reference that does not keep the graph alive.
    pub(crate) fn weak(&self) -> GraphRef {
        GraphRef { id: self.id(), graph: Arc::downgrade(&self.0) }
    }
}

/// A weak reference to a graph, for queues and events: only `Graph` handles keep a graph alive.
#[derive(Clone)]
pub(crate) struct GraphRef {
    id: GraphId,
    graph: Weak<Shared>,
}

impl GraphRef {
    pub(crate) fn upgrade(&self) -> Option<Graph> {
        self.graph.upgrade().map(Graph)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.graph.strong_count() == 0
    }

    pub(crate) fn is_of(&self, id: GraphId) -> bool {
        self.id == id
    }
}

impl PartialEq for GraphRef {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl fmt::Debug for GraphRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.id)
    }
}

impl Drop for Shared {
    /// The last handle ends all recordings. It also drops the executables that are nodes of the graph, because an
    /// executable that was made of this graph keeps the graph's state alive, and the state would keep the executable.
    fn drop(&mut self) {
        let mut state = self.state.lock();
        let queues = state.recorder.queues();
        let children = if state.children.is_empty() {
            Vec::new()
        } else {
            std::mem::take(&mut Arc::make_mut(&mut state.tables).children)
        };
        let recorded = std::mem::take(&mut state.recorded);
        drop(state);
        drop(children);
        recorded::drop_all(recorded.into_values().flatten());
        for queue in queues {
            queue.end_recording_into(self.id);
        }
    }
}

impl State {
    /// Sets the label of a node, if one was given. An empty label removes the old one.
    fn give_label(&mut self, node: NodeId, label: Option<&Arc<str>>) {
        let Some(label) = label else { return };
        let labels = &mut Arc::make_mut(&mut self.tables).labels;
        if label.is_empty() {
            labels.remove(&node);
        } else {
            labels.insert(node, Arc::clone(label));
        }
    }

    /// Adds a checked command after the nodes in `waits` and after the nodes that its memory accesses conflict with.
    /// Nothing changes when a table is full.
    fn push<R: Request>(
        &mut self,
        request: R,
        checked: R::Checked,
        waits: &mut Vec<NodeId>,
    ) -> Result<NodeId, BuildCause> {
        let uses: Vec<usize> = request.uses().iter().map(UseHandle::address).collect();
        let Self { tables, index, hazards, last_use, accesses, .. } = self;
        let tables = Arc::make_mut(tables);
        let mark = tables.ir.mark();
        let room = tables.ir.has_room();
        let op = if room { request.lower(checked, &mut Writer { tables, index }, accesses) } else { None };
        let id = NodeId(tables.ir.len() as u32);
        let node = op.and_then(|op| {
            for access in accesses.iter() {
                hazards.add(id, access, &tables.ir.views[access.view.index()], waits);
            }
            // Uses of one executable run one after another.
            waits.extend(uses.iter().filter_map(|one| last_use.get(one)));
            tables.ir.push_node(op, accesses.drain(..), waits)
        });
        accesses.clear();
        if let Some(node) = node {
            if let Command::Kernel { args, .. } = tables.ir.command(node)
                && (!tables.bindings(*args).is_empty() || tables.group_of.contains_key(&node))
            {
                tables.parameter_bound.insert(node);
            }
            last_use.extend(uses.into_iter().map(|one| (one, node)));
        }
        node.ok_or_else(|| {
            tables.rewind(mark);
            full()
        })
    }
}

/// The subject of the error for a full table, the only error that is possible after the checks.
const ONE_MORE: &str = "one more command";

fn full() -> BuildCause {
    BuildCause::Full { limit: Ir::MOST as u64 }
}

impl OnDevice for Graph {
    fn device(&self) -> &Device {
        Self::device(self)
    }
}

impl InContext for Graph {
    fn context(&self) -> &Context {
        &self.0.context
    }
}

impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for Graph {}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Graph")
            .field("device", &self.0.device)
            .field("nodes", &state.ir.len())
            .field("edges", &state.ir.topology.edge_count())
            .finish()
    }
}
