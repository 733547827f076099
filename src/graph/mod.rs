//! Graphs, as a user builds them.
//!
//! Each kind of node has a builder: a method of [`Graph`] starts it, `after` says what it waits for besides what its
//! memory tells, and `add` adds it or says what is wrong.

mod after;
mod argument;
mod change;
mod copier;
mod dot;
pub(crate) mod edit;
pub(crate) mod external;
pub(crate) mod fill;
mod fits;
mod flatten;
pub(crate) mod group;
pub(crate) mod hint;
pub(crate) mod host_task;
pub(crate) mod image;
pub(crate) mod image_copy;
pub(crate) mod kernel;
pub(crate) mod launch;
pub(crate) mod map;
pub(crate) mod memory;
pub(crate) mod native_command;
mod parameter;
pub(crate) mod ports;
mod query;
mod range;
pub(crate) mod rect;
pub(crate) mod request;
pub(crate) mod sealed;
pub(crate) mod sub_graph;
mod tables;
pub(crate) mod tape;
mod task_group;
pub(crate) mod transfer;
pub(crate) mod undo;

pub(crate) use after::{After, after_methods};
pub(crate) use argument::LaunchRef;
pub use argument::{BufferArg, Pixels, ValueArg};
pub use dot::Detail;
pub(crate) use dot::{not_written, to_dot, to_svg, write};
pub use external::{EventHandle, EventNode, EventSignal, EventWait};
pub use fill::FillNode;
pub(crate) use fits::WritesConst;
pub(crate) use flatten::{Flat, Origin, Origins};
pub use group::{CommandGroup, GroupNode};
pub use hint::HintNode;
pub use host_task::{HostTask, HostTaskNode, ResultGuard, TaskOutcome, UsedMemory};
pub use image::{ImageCopyNode, ImageFillNode, ImageReadNode, ImageWriteNode};
pub use kernel::KernelNode;
pub use memory::{AllocNode, FreeNode, GraphMemory, MemoryPool, PoolKind};
pub use native_command::{NativeCommand, NativeCommandNode, NativeMemory, NativeQueue, NativeRecording};
pub(crate) use parameter::{Cell, Value as ParameterValue};
pub use parameter::{LocalMemory, Parameter};
pub(crate) use ports::Ports;
pub use query::NodeKind;
pub use range::{Extent, NdRange};
pub use rect::CopyRectNode;
use request::{Request, Target};
pub(crate) use tables::{Child, CurrentValues, Tables, Turns};
pub(crate) use tables::{Index, Released, Writer};
use tape::{Order, Recorder, Tape};
pub use transfer::{CopyNode, EmptyNode, HostRead, HostWrite, ReadNode, WriteNode};

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::cl::context::{Context, InContext, OnDevice};
use crate::cl::device::Device;
use crate::error::{BuildCause, BuildError, Result};
use crate::ir::hazards::Hazards;
use crate::ir::{Access, Ir, NodeId, Op};

/// A graph of OpenCL commands for one device of one context, to which nodes can be added at any time.
///
/// [`finalize`](Graph::finalize) turns it into an [`Executable`](crate::Executable), which is submitted. Cheap to
/// clone: clones are the same graph. A graph may be built from several threads; nodes are numbered in the order in
/// which they were added. It keeps alive what its nodes use. Executables do not need it; dropping its last handle ends
/// the recordings into it.
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
    state: StateRef,
}

/// What a graph is, also when its last handle has gone: executables that can be updated look at it.
#[derive(Clone, Default)]
pub(crate) struct StateRef(Arc<Mutex<State>>);

impl StateRef {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells graphs apart, also after they are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GraphId(u64);

impl GraphId {
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

/// How a graph is to be built.
///
/// ```
/// let properties = clgraph::GraphProperties::new().no_cycle_check();
/// assert!(properties.no_cycle_check);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct GraphProperties {
    /// [`Graph::add_edge`] does not look for cycles. [`Graph::finalize`] does, and names the nodes of one.
    pub no_cycle_check: bool,
    /// Known from SYCL graphs. It has no effect: nodes keep alive what they use.
    pub assume_buffer_outlives_graph: bool,
}

impl GraphProperties {
    /// The usual ones: none.
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

/// A graph while it is built.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Shared with the executables that were made of it: what is added later is added to a copy.
    pub(crate) tables: Arc<Tables>,
    pub(crate) tape: Tape,
    index: Index,
    hazards: Hazards,
    /// The last use of an executable in this graph, by where its order lives.
    last_use: FxHashMap<usize, NodeId>,
    /// Where in the bindings the next update is likely to look.
    next_binding: usize,
    /// Nodes of which more has changed than the bytes of values since they were added.
    pub(crate) reshaped: FxHashSet<NodeId>,
    /// Room for the uses of a node, empty between two.
    accesses: Vec<Access>,
}

impl std::ops::Deref for State {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        &self.tables
    }
}

/// A node of a graph. A plain value: it keeps nothing alive, and is equal to itself only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    graph: GraphId,
    index: u32,
}

impl Node {
    /// The position of the node in the order of adding, from 0.
    #[must_use]
    pub fn index(self) -> usize {
        self.index as usize
    }

    pub(crate) fn new(graph: GraphId, id: NodeId) -> Self {
        Self { graph, index: id.0 }
    }

    pub(crate) fn id(self) -> NodeId {
        NodeId(self.index)
    }

    pub(crate) fn graph(self) -> GraphId {
        self.graph
    }
}

/// A write or a read: a node, or one inside of a sub-graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Part {
    pub(crate) node: Node,
    pub(crate) index: u32,
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.index)
    }
}

/// What names one or several nodes: a [`Node`]; a handle of one (of a write, a read, an event or a sub-graph); an
/// [`Event`](crate::Event) of a recorded command; a slice, an array or a `Vec` of these. It cannot be
/// implemented elsewhere.
#[diagnostic::on_unimplemented(
    message = "`{Self}` names no nodes of a graph",
    note = "nodes are named by what `add` returns, by events of recorded commands, and by slices, arrays and `Vec`s of them"
)]
pub trait Nodes: sealed::Nodes {
    /// Calls `each` with every node, or with `None` for an event of work that runs.
    fn for_each_node(&self, each: &mut dyn FnMut(Option<Node>));
}

impl Nodes for Node {
    fn for_each_node(&self, each: &mut dyn FnMut(Option<Node>)) {
        each(Some(*self));
    }
}

impl<N: Nodes + ?Sized> Nodes for &N {
    fn for_each_node(&self, each: &mut dyn FnMut(Option<Node>)) {
        (**self).for_each_node(each);
    }
}

impl<N: Nodes> Nodes for [N] {
    fn for_each_node(&self, each: &mut dyn FnMut(Option<Node>)) {
        self.iter().for_each(|node| node.for_each_node(each));
    }
}

impl<N: Nodes, const LEN: usize> Nodes for [N; LEN] {
    fn for_each_node(&self, each: &mut dyn FnMut(Option<Node>)) {
        self[..].for_each_node(each);
    }
}

impl<N: Nodes> Nodes for Vec<N> {
    fn for_each_node(&self, each: &mut dyn FnMut(Option<Node>)) {
        self[..].for_each_node(each);
    }
}

impl Graph {
    /// An empty graph for a device of a context.
    ///
    /// # Errors
    /// [`SetupError::DeviceOutsideContext`](crate::SetupError::DeviceOutsideContext).
    pub fn with_properties(context: &impl InContext, device: &Device, properties: GraphProperties) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let context = context.context();
        context.check_device(device)?;
        Ok(Self(Arc::new(Shared {
            id: GraphId(NEXT.fetch_add(1, Ordering::Relaxed)),
            context: context.clone(),
            device: device.clone(),
            properties,
            state: StateRef::default(),
        })))
    }

    /// The device that the graph is for.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Adds an edge: `after` runs when `before` is complete. Both are nodes, or handles of nodes. An edge that is there already is left
    /// as it is.
    ///
    /// # Errors
    /// [`BuildCause::OtherGraph`], [`BuildCause::SameNode`], [`BuildCause::Recording`], and [`BuildCause::Cycle`] with the
    /// nodes on it.
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
            |node: Node| if node.graph == self.id() { node.to_string() } else { format!("{node} of another graph") };
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
        if node.graph == self.id() && node.index() < state.ir.len() {
            Ok(node.id())
        } else {
            Err(BuildCause::OtherGraph { node })
        }
    }

    pub(crate) fn target(&self) -> Target<'_> {
        Target { context: &self.0.context, device: &self.0.device, graph: Some(self.id()) }
    }

    fn check_not_recording(&self, state: &State) -> Result<(), BuildCause> {
        if state.tape.is_recording() { Err(BuildCause::Recording) } else { Ok(()) }
    }

    /// Adds a node by building. Everything is checked before anything changes.
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

    /// Adds a node by recording: behind `after`, and behind what the order of the queue says.
    pub(crate) fn take_down<R: Request>(
        &self,
        state: &mut State,
        queue: &dyn Recorder,
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
        state.tape.before(queue, order, &mut waits);
        let pushed = state.push(request, checked, &mut waits);
        let node = pushed.map_err(|cause| BuildError::new(ONE_MORE, cause))?;
        state.tape.took(queue, order, node, &waits);
        Ok(Node::new(self.id(), node))
    }

    /// What it is, for who does not keep the graph alive.
    pub(crate) fn state(&self) -> StateRef {
        self.0.state.clone()
    }

    /// A reference that does not keep the graph alive.
    pub(crate) fn weak(&self) -> GraphRef {
        GraphRef { id: self.id(), graph: Arc::downgrade(&self.0) }
    }
}

/// A graph, as queues and events know it: only `Graph` handles keep a graph alive.
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
    /// The last handle ends all recordings, and lets go of the executables in the graph: they may be made of it.
    fn drop(&mut self) {
        let mut state = self.state.lock();
        let queues = state.tape.queues();
        let children = if state.children.is_empty() {
            Vec::new()
        } else {
            std::mem::take(&mut Arc::make_mut(&mut state.tables).children)
        };
        drop(state);
        drop(children);
        for queue in queues {
            queue.let_go(self.id);
        }
    }
}

impl State {
    /// Gives a node a label, if there is one. An empty one takes it away.
    fn give_label(&mut self, node: NodeId, label: Option<&Arc<str>>) {
        let Some(label) = label else { return };
        let labels = &mut Arc::make_mut(&mut self.tables).labels;
        if label.is_empty() {
            labels.remove(&node);
        } else {
            labels.insert(node, Arc::clone(label));
        }
    }

    /// Adds a checked command behind others and behind those that its memory tells. Nothing changes when a table is full.
    fn push<R: Request>(
        &mut self,
        request: R,
        checked: R::Checked,
        waits: &mut Vec<NodeId>,
    ) -> Result<NodeId, BuildCause> {
        let uses: Vec<usize> = request.uses().iter().map(Turns::address).collect();
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
            // Uses of one executable follow each other.
            waits.extend(uses.iter().filter_map(|one| last_use.get(one)));
            tables.ir.push_node(op, accesses.drain(..), waits)
        });
        accesses.clear();
        if let Some(node) = node {
            if let Op::Kernel { args, .. } = tables.ir.op(node)
                && (!tables.bindings(*args).is_empty() || tables.group_of.contains_key(&node))
            {
                tables.fed.insert(node);
            }
            last_use.extend(uses.into_iter().map(|one| (one, node)));
        }
        node.ok_or_else(|| {
            tables.rewind(mark);
            full()
        })
    }
}

/// A command that is written down already, for the one error that is left.
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
