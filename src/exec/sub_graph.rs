//! Executables in other graphs.

use std::sync::Arc;

use crate::cl::completion::reentrancy;
use crate::cl::memory::host::Element;
use crate::error::Result;
use crate::exec::executable::{Executable, Inner};
use crate::graph::nodes::control::ControlBody;
use crate::graph::nodes::sub_graph::SubGraph as Request;
use crate::graph::{
    After, Child, CurrentValues, EventHandle, EventSignal, EventWait, Flat, Graph, HostRead, HostWrite, Nodes, Ports,
    RecordedBody, after_methods, sealed,
};
use crate::handles::{Node, Port};

impl Graph {
    /// Starts a node that is a whole executable. The roots of the executable wait for the node's predecessors, and the
    /// node's successors wait for all its leaves. The node has the values that the executable has when this graph is
    /// finalized.
    ///
    /// The executable can still be submitted on its own, and it can be a node of several graphs or several nodes of one
    /// graph; its uses never overlap. Finalizing inlines the sub-graph, so that it costs no more than its nodes.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let buffer = Buffer::<u32>::new(&queue, 4)?;
    /// let child = Graph::new(&queue)?;
    /// let input = child.write(&buffer, [1, 2, 3, 4]).add()?;
    /// let output = child.read(&buffer).add()?;
    /// let child = child.finalize(Finalize::new())?;
    ///
    /// let parent = Graph::new(&queue)?;
    /// let first = parent.sub_graph(&child).add()?;
    /// let second = parent.sub_graph(&child).add()?;
    /// let executable = parent.finalize(Finalize::new())?;
    /// let run = executable.submit_to(&queue).with(&second.write(&input)?, [5, 6, 7, 8]).submit()?;
    /// run.wait()?;
    /// assert_eq!(*run.get(&first.read(&output)?)?, [1, 2, 3, 4]);
    /// assert_eq!(*run.get(&second.read(&output)?)?, [5, 6, 7, 8]);
    /// # Ok(()) }
    /// ```
    #[doc(alias("cudaGraphAddChildGraphNode", "ext_oneapi_graph"))]
    pub fn sub_graph(&self, executable: &Executable) -> SubGraphNode<'_> {
        SubGraphNode { graph: self, after: After::default(), executable: executable.clone() }
    }
}

/// Builds a node that is an executable. See [`Graph::sub_graph`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct SubGraphNode<'g> {
    graph: &'g Graph,
    after: After,
    executable: Executable,
}

impl SubGraphNode<'_> {
    after_methods!();

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::OtherContext`](crate::BuildCause::OtherContext) and
    /// [`BuildCause::OtherDevice`](crate::BuildCause::OtherDevice) for the executable, and those of
    /// [`EmptyNode::add`](crate::EmptyNode::add);
    /// [`SubmitError::InsideNativeCommand`](crate::SubmitError::InsideNativeCommand).
    pub fn add(self) -> Result<SubGraph> {
        reentrancy::check_call()?;
        let node = self.graph.insert(self.executable.as_request(), &self.after)?;
        Ok(SubGraph::new(node, self.executable))
    }
}

impl CurrentValues for Inner {
    fn flat(&self) -> Flat {
        // Nothing changes the values of an executable with unrolled loops or fused nodes.
        let rolled = self.fixed.rolled.clone();
        rolled.unwrap_or_else(|| Flat::of(Arc::clone(&self.lock_state().values.tables), self.fixed.origins.clone()))
    }

    fn id(&self) -> u64 {
        self.fixed.id
    }

    fn nodes(&self) -> usize {
        self.fixed.rolled.as_ref().map_or(self.fixed.topology.len(), |rolled| rolled.tables.ir.len())
    }

    fn ports(&self) -> &Arc<Ports> {
        &self.fixed.ports
    }

    fn has_changed(&self) -> bool {
        self.lock_state().changed
    }

    fn is_replaceable(&self) -> bool {
        self.fixed.is_replaceable
    }

    fn can_change(&self) -> bool {
        self.fixed.updatable.is_some()
    }

    fn refresh(&self) -> Result<()> {
        self.update_recorded()
    }
}

impl Executable {
    /// Returns the executable as a body of a branch or loop.
    pub(in crate::exec) fn as_body(&self) -> ControlBody {
        let Request { context, device, flat, child } = self.as_request();
        ControlBody { context, device, child, flat }
    }

    /// Returns a recorded body that was finalized from a graph, as the graph around it keeps it.
    pub(in crate::exec) fn as_recorded(&self, graph: &Graph) -> RecordedBody {
        let of = Arc::clone(&self.0) as Arc<dyn CurrentValues>;
        RecordedBody { of, _graph: graph.clone() }
    }

    /// Returns the executable as a request that a graph can add.
    pub(in crate::exec) fn as_request(&self) -> Request {
        Request {
            context: self.0.fixed.context.clone(),
            device: self.0.fixed.device.clone(),
            flat: self.0.flat(),
            child: Child {
                of: Arc::clone(&self.0) as Arc<dyn CurrentValues>,
                exclusive: self.0.exclusive.for_parents(),
            },
        }
    }
}

/// A sub-graph in a graph. It stands for the sub-graph's node, and finds the executable's writes, reads and events as
/// those of the outer graph.
///
/// Other handles of nodes are `Copy`; this one is only `Clone`. It keeps the [`Executable`], because the executable
/// knows which handles are its own, and [`write`](Self::write), [`read`](Self::read),
/// [`wait_event`](Self::wait_event) and [`signal_event`](Self::signal_event) refuse all others. A clone costs one
/// reference count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubGraph {
    node: Node,
    executable: Executable,
    /// How many of each the executables before it in its node have.
    base: Base,
}

/// How many inputs, results, and branches and loops come before those of an executable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::exec) struct Base {
    data: u32,
    results: u32,
    pub(in crate::exec) controls: u32,
}

impl SubGraph {
    pub(in crate::exec) fn new(node: Node, executable: Executable) -> Self {
        Self { node, executable, base: Base::default() }
    }

    /// Returns one of several executables of a node.
    pub(in crate::exec) fn nth(node: Node, executables: &[Executable], nth: usize) -> Option<Self> {
        let executable = executables.get(nth)?.clone();
        let mut base = Base::default();
        for before in &executables[..nth] {
            let fixed = &before.0.fixed;
            let (inputs, results) = fixed.ports.counts();
            base.data += inputs as u32;
            base.results += results as u32;
            base.controls += fixed.controls.len() as u32;
        }
        Some(Self { node, executable, base })
    }

    pub(in crate::exec) fn executable(&self) -> &Executable {
        &self.executable
    }

    pub(in crate::exec) fn base(&self) -> Base {
        self.base
    }

    /// Returns the node of the sub-graph.
    #[must_use]
    pub fn node(&self) -> Node {
        self.node
    }

    /// Returns a host write of the executable as an input of the outer graph.
    ///
    /// # Errors
    /// [`SubmitError::NotAnInput`](crate::SubmitError::NotAnInput).
    pub fn write<T: Element>(&self, write: &HostWrite<T>) -> Result<HostWrite<T>> {
        let (data, _) = self.executable.0.fixed.ports.input(Port { node: write.node(), index: write.part() })?;
        Ok(HostWrite::of_part(self.node, self.base.data + data.0))
    }

    /// Returns a host read of the executable as a result of the outer graph.
    ///
    /// # Errors
    /// [`SubmitError::NotAResult`](crate::SubmitError::NotAResult).
    pub fn read<T: Element>(&self, read: &HostRead<T>) -> Result<HostRead<T>> {
        let result = self.executable.0.fixed.ports.result(Port { node: read.node(), index: read.part() })?;
        Ok(HostRead::of_part(self.node, self.base.results + result.0))
    }

    /// Returns a node of the executable that waits for an event, as a node of the outer graph.
    ///
    /// # Errors
    /// [`SubmitError::NotAnEvent`](crate::SubmitError::NotAnEvent).
    pub fn wait_event(&self, wait: &EventWait) -> Result<EventWait> {
        self.event(wait.part())
    }

    /// Returns a node of the executable that completes an event, as a node of the outer graph.
    ///
    /// # Errors
    /// [`SubmitError::NotAnEvent`](crate::SubmitError::NotAnEvent).
    pub fn signal_event(&self, signal: &EventSignal) -> Result<EventSignal> {
        self.event(signal.part())
    }

    fn event<H: EventHandle>(&self, part: Port) -> Result<H> {
        let event = self.executable.0.fixed.ports.event(part, H::SIGNALS)?;
        Ok(H::of_part(self.node, event.0))
    }
}

impl sealed::Nodes for SubGraph {}

impl Nodes for SubGraph {
    fn for_each_node(&self, mut each: impl FnMut(Option<Node>)) {
        each(Some(self.node));
    }
}

impl From<SubGraph> for Node {
    fn from(handle: SubGraph) -> Self {
        handle.node
    }
}
