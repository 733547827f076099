//! Queries on a graph: its nodes, their kinds, labels, neighbours and handles.

use crate::cl::memory::host::{Element, Slot};
use crate::command::{Command, ControlKind, Hint};
use crate::error::{BuildError, MemoryError, Result};
use crate::graph::Graph;
use crate::graph::edit::change::other_kind;
use crate::graph::nodes::transfer::HostRead;
use crate::handles::{Node, NodeKind};
use crate::ir::{ById, NodeId};

impl NodeKind {
    pub(crate) fn of(op: &Command<ById>) -> Self {
        match op {
            Command::Empty => Self::Empty,
            Command::Kernel { .. } => Self::Kernel,
            Command::Copy { .. } => Self::Copy,
            Command::CopyRect(_) => Self::CopyRect,
            Command::CopyImage(_) => Self::CopyImage,
            Command::Fill { area: Some(_), .. } => Self::FillImage,
            Command::Write { area: Some(_), .. } => Self::WriteImage,
            Command::Read { area: Some(_), .. } => Self::ReadImage,
            Command::Fill { .. } => Self::Fill,
            Command::Write { .. } => Self::Write,
            Command::Read { .. } => Self::Read,
            Command::Hint { hint: Hint::Advice(_), .. } => Self::Advise,
            Command::Hint { .. } => Self::Prefetch,
            Command::Alloc(_) => Self::Alloc,
            Command::Free(_) => Self::Free,
            Command::Task(_) => Self::HostTask,
            Command::Event { signals: false, .. } => Self::EventWait,
            Command::Event { signals: true, .. } => Self::EventSignal,
            Command::Native { .. } => Self::NativeCommand,
            Command::SubGraph(_) => Self::SubGraph,
            Command::Control(control) => match control.kind {
                ControlKind::When => Self::When,
                ControlKind::Switch => Self::Switch,
                ControlKind::While { .. } => Self::RepeatWhile,
                ControlKind::Repeat { .. } => Self::Repeat,
            },
        }
    }
}

impl Graph {
    /// Returns the number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().ir.len()
    }

    /// Returns whether the graph has no nodes yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all nodes, in the order in which they were added.
    #[must_use]
    #[doc(alias = "cudaGraphGetNodes")]
    pub fn nodes(&self) -> Vec<Node> {
        self.lock().ir.ids().map(|id| Node::new(self.id(), id)).collect()
    }

    /// Returns the nodes without predecessors, in the order in which they were added.
    #[must_use]
    #[doc(alias = "cudaGraphGetRootNodes")]
    pub fn roots(&self) -> Vec<Node> {
        self.lock().ir.topology.roots().map(|id| Node::new(self.id(), id)).collect()
    }

    /// Returns the kind of a node.
    ///
    /// # Errors
    /// [`BuildCause::OtherGraph`](crate::BuildCause::OtherGraph).
    pub fn kind(&self, node: impl Into<Node>) -> Result<NodeKind> {
        let node = node.into();
        let state = self.lock();
        let id = self.resolve(&state, node).map_err(|cause| BuildError::new("kind of a node", cause))?;
        Ok(NodeKind::of(state.ir.command(id)))
    }

    /// Gives a node a label, for drawings, profiles and traces.
    ///
    /// An empty text removes the label. Labels may also be set while queues record: [`Graph::node_of`] returns the node
    /// of an event. Executables show the labels that the nodes had when the executable was finalized. A
    /// [`map`](Graph::map) node without a label is an exception: its label in drawings and errors follows its function.
    ///
    /// # Errors
    /// [`BuildCause::OtherGraph`](crate::BuildCause::OtherGraph).
    pub fn set_label(&self, node: impl Into<Node>, label: impl Into<String>) -> Result<()> {
        // Conversions are code of the program, so they come before the lock.
        let (node, label) = (node.into(), label.into().into());
        let mut state = self.lock();
        let id = self.resolve(&state, node).map_err(|cause| BuildError::new("label of a node", cause))?;
        state.give_label(id, Some(&label));
        Ok(())
    }

    /// Returns the label of a node, or `None` if the node has none.
    ///
    /// # Errors
    /// [`BuildCause::OtherGraph`](crate::BuildCause::OtherGraph).
    pub fn label(&self, node: impl Into<Node>) -> Result<Option<String>> {
        let node = node.into();
        let state = self.lock();
        let id = self.resolve(&state, node).map_err(|cause| BuildError::new("label of a node", cause))?;
        Ok(state.label(id).map(|label| label.to_string()))
    }

    #[doc(alias = "cudaGraphNodeGetDependencies")]
    /// Returns the nodes that a node waits for, in the order in which they were added: both explicit dependencies and
    /// those found from memory accesses.
    ///
    /// # Errors
    /// [`BuildCause::OtherGraph`](crate::BuildCause::OtherGraph).
    pub fn predecessors(&self, node: impl Into<Node>) -> Result<Vec<Node>> {
        let node = node.into();
        let state = self.lock();
        let id = self.resolve(&state, node).map_err(|cause| BuildError::new("predecessors of a node", cause))?;
        Ok(self.in_order(state.ir.topology.preds(id)))
    }

    #[doc(alias = "cudaGraphNodeGetDependentNodes")]
    /// Returns the nodes that wait for a node, in the order in which they were added.
    ///
    /// # Errors
    /// [`BuildCause::OtherGraph`](crate::BuildCause::OtherGraph).
    pub fn successors(&self, node: impl Into<Node>) -> Result<Vec<Node>> {
        let node = node.into();
        let state = self.lock();
        let id = self.resolve(&state, node).map_err(|cause| BuildError::new("successors of a node", cause))?;
        Ok(self.in_order(state.ir.topology.succs(id)))
    }

    fn in_order(&self, ids: impl Iterator<Item = NodeId>) -> Vec<Node> {
        let mut nodes: Vec<Node> = ids.map(|id| Node::new(self.id(), id)).collect();
        nodes.sort_unstable();
        nodes
    }
}

impl Graph {
    /// Returns the handle of a host read, found by its node.
    ///
    /// [`host_write`](Self::host_write) does the same for writes. For a read that was recorded just now,
    /// [`PendingRead::host_read`](crate::PendingRead::host_read) is shorter.
    ///
    /// # Errors
    /// [`BuildCause::OtherGraph`](crate::BuildCause::OtherGraph);
    /// [`BuildCause::OtherKind`](crate::BuildCause::OtherKind) for a node that is not a host read; in
    /// [`BuildCause::Memory`](crate::BuildCause::Memory) [`MemoryError::ElementSize`] when its bytes are not a whole
    /// number of `T`, and [`MemoryError::ElementAlign`] for an alignment above 128 bytes.
    pub fn host_read<T: Element>(&self, node: impl Into<Node>) -> Result<HostRead<T>> {
        let (node, state) = (node.into(), self.lock());
        let fail = |cause| BuildError::new("handle of a host read", cause);
        let id = self.resolve(&state, node).map_err(fail)?;
        let wrong = match state.ir.command(id) {
            Command::Read { .. } if align_of::<T>() > Slot::ALIGN => {
                MemoryError::ElementAlign { align: align_of::<T>() }.into()
            }
            Command::Read { size, .. } if size_of::<T>() > 0 && size.is_multiple_of(size_of::<T>()) => {
                return Ok(HostRead::of(node));
            }
            Command::Read { size, .. } => MemoryError::ElementSize { bytes: *size, element: size_of::<T>() }.into(),
            op => other_kind(node, op, "a handle of a host read", "only a host read has such a handle"),
        };
        Err(fail(wrong).into())
    }
}

impl std::hash::Hash for Graph {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}
