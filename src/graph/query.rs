//! Questions about a graph.

use std::fmt;

use super::change::other_kind;
use super::transfer::HostRead;
use super::{Graph, Node};
use crate::cl::host::{Element, Slot};
use crate::error::{BuildError, MemoryError, Result};
use crate::ir::{Hint, NodeId, Op};

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NodeKind {
    /// Nothing but order.
    Empty,
    /// A kernel over an ND-range: one of the program's, or one of clgraph's own that copies where OpenCL has no command.
    Kernel,
    /// Bytes from memory to memory.
    Copy,
    /// A rectangle from buffer to buffer.
    CopyRect,
    /// Pixels from image to image, or from or to one.
    CopyImage,
    /// A colour over a part of an image.
    FillImage,
    /// Host data to an image.
    WriteImage,
    /// An image to host memory.
    ReadImage,
    /// A pattern over a range of a buffer.
    Fill,
    /// Host data to a buffer.
    Write,
    /// A buffer to host memory.
    Read,
    /// Memory that is wanted on the device, or on the host: a hint.
    Prefetch,
    /// How memory is going to be used: a hint.
    Advise,
    /// Memory of the graph's own, from here on.
    Alloc,
    /// It is not needed any more.
    Free,
    /// A function of the host's.
    HostTask,
    /// An event is waited for.
    EventWait,
    /// An event is completed.
    EventSignal,
    /// Commands of the program's own.
    NativeCommand,
    /// An executable.
    SubGraph,
}

impl NodeKind {
    pub(crate) fn of(op: &Op) -> Self {
        match op {
            Op::Empty => Self::Empty,
            Op::Kernel { .. } => Self::Kernel,
            Op::Copy { .. } => Self::Copy,
            Op::CopyRect(_) => Self::CopyRect,
            Op::CopyImage(_) => Self::CopyImage,
            Op::Fill { area: Some(_), .. } => Self::FillImage,
            Op::Write { area: Some(_), .. } => Self::WriteImage,
            Op::Read { area: Some(_), .. } => Self::ReadImage,
            Op::Fill { .. } => Self::Fill,
            Op::Write { .. } => Self::Write,
            Op::Read { .. } => Self::Read,
            Op::Hint { hint: Hint::Advice(_), .. } => Self::Advise,
            Op::Hint { .. } => Self::Prefetch,
            Op::Alloc(_) => Self::Alloc,
            Op::Free(_) => Self::Free,
            Op::Task(_) => Self::HostTask,
            Op::Event { signals: false, .. } => Self::EventWait,
            Op::Event { signals: true, .. } => Self::EventSignal,
            Op::Native { .. } => Self::NativeCommand,
            Op::SubGraph(_) => Self::SubGraph,
        }
    }
}

impl fmt::Display for NodeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "empty node",
            Self::Kernel => "kernel",
            Self::Copy => "copy",
            Self::CopyRect => "rectangular copy",
            Self::CopyImage => "copy of pixels",
            Self::FillImage => "fill of an image",
            Self::WriteImage => "host write of an image",
            Self::ReadImage => "host read of an image",
            Self::Fill => "fill",
            Self::Write => "host write",
            Self::Read => "host read",
            Self::Prefetch => "prefetch",
            Self::Advise => "advice",
            Self::Alloc => "allocation",
            Self::Free => "free",
            Self::HostTask => "host task",
            Self::EventWait => "event wait",
            Self::EventSignal => "event signal",
            Self::NativeCommand => "native command",
            Self::SubGraph => "sub-graph",
        })
    }
}

impl Graph {
    /// Number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().ir.len()
    }

    /// Whether there are no nodes yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All nodes, in the order of adding.
    #[must_use]
    #[doc(alias = "cudaGraphGetNodes")]
    pub fn nodes(&self) -> Vec<Node> {
        self.lock().ir.ids().map(|id| Node::new(self.id(), id)).collect()
    }

    /// The nodes without predecessors, in the order of adding.
    #[must_use]
    #[doc(alias = "cudaGraphGetRootNodes")]
    pub fn roots(&self) -> Vec<Node> {
        self.lock().ir.topology.roots().map(|id| Node::new(self.id(), id)).collect()
    }

    /// What a node does.
    ///
    /// # Errors
    /// [`BuildCause::OtherGraph`](crate::BuildCause::OtherGraph).
    pub fn kind(&self, node: impl Into<Node>) -> Result<NodeKind> {
        let node = node.into();
        let state = self.lock();
        let id = self.resolve(&state, node).map_err(|cause| BuildError::new("kind of a node", cause))?;
        Ok(NodeKind::of(state.ir.op(id)))
    }

    /// Gives a node a label, for drawings, profiles and traces. An empty text takes the label away. It may also be done
    /// while queues record: [`Graph::node_of`] finds the node of an event. Executables show the labels that there were
    /// when they were finalized; that of a [`map`](Graph::map) without one follows its function in drawings and errors.
    ///
    /// # Errors
    /// [`BuildCause::OtherGraph`](crate::BuildCause::OtherGraph).
    pub fn set_label(&self, node: impl Into<Node>, label: impl Into<String>) -> Result<()> {
        let node = node.into();
        let mut state = self.lock();
        let id = self.resolve(&state, node).map_err(|cause| BuildError::new("label of a node", cause))?;
        state.give_label(id, Some(&label.into().into()));
        Ok(())
    }

    /// What a node is called, if anything.
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
    /// The nodes that a node waits for, in the order of adding: given ones and those found from memory.
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
    /// The nodes that wait for a node, in the order of adding.
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
    /// The handle of a host read, found by its node: as [`host_write`](Self::host_write). Of a read that was recorded just now it
    /// is [`PendingRead::host_read`](crate::PendingRead::host_read).
    ///
    /// # Errors
    /// [`BuildCause::OtherGraph`](crate::BuildCause::OtherGraph); [`BuildCause::OtherKind`](crate::BuildCause::OtherKind) for a
    /// node that is no host read; in [`BuildCause::Memory`](crate::BuildCause::Memory) [`MemoryError::ElementSize`] when its bytes
    /// are no whole number of `T`, and [`MemoryError::ElementAlign`] for an alignment above 128 bytes.
    pub fn host_read<T: Element>(&self, node: impl Into<Node>) -> Result<HostRead<T>> {
        let (node, state) = (node.into(), self.lock());
        let fail = |cause| BuildError::new("handle of a host read", cause);
        let id = self.resolve(&state, node).map_err(fail)?;
        let wrong = match state.ir.op(id) {
            Op::Read { .. } if align_of::<T>() > Slot::ALIGN => {
                MemoryError::ElementAlign { align: align_of::<T>() }.into()
            }
            Op::Read { size, .. } if size_of::<T>() > 0 && size.is_multiple_of(size_of::<T>()) => {
                return Ok(HostRead::of(node));
            }
            Op::Read { size, .. } => MemoryError::ElementSize { bytes: *size, element: size_of::<T>() }.into(),
            op => other_kind(node, op, "a handle of a host read", "only host reads have one"),
        };
        Err(fail(wrong).into())
    }
}

impl std::hash::Hash for Graph {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}
