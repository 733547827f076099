//! The identities of graphs and of their nodes, as plain data. Errors, reports and users hold a handle instead of the
//! graph or the node itself.
//!
//! A handle keeps nothing alive. Two handles are equal only if they name the same node of the same graph.

use std::fmt;

use crate::ir::NodeId;

/// The number of a graph. No other graph gets the same number, even after the first one is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct GraphId(pub(crate) u64);

impl GraphId {
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

/// A handle of one node of one graph.
///
/// A handle is a plain value. It keeps neither the graph nor the node alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    graph: GraphId,
    index: u32,
}

impl Node {
    /// Returns the position of the node in the order in which nodes were added, from 0.
    #[must_use]
    pub fn index(self) -> usize {
        self.index as usize
    }

    /// Returns the handle as numbers, for bindings to other languages.
    #[must_use]
    pub fn to_raw(self) -> RawNode {
        RawNode { graph: self.graph.0, index: self.index, part: 0 }
    }

    /// Returns the handle for numbers that [`to_raw`](Self::to_raw) returned. Calls with the handle of a node that does
    /// not exist return errors, so any numbers are safe.
    #[must_use]
    pub fn from_raw(raw: RawNode) -> Self {
        Self { graph: GraphId(raw.graph), index: raw.index }
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

/// A handle of a node as numbers, for bindings to other languages. Handles of writes, reads and events have this form
/// too; inside a sub-graph they name the sub-graph's node, and a part of it.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// # use clgraph::{Graph, Node, Queue};
/// # let graph = Graph::new(&Queue::new(&clgraph::best_device()?)?)?;
/// let node = graph.empty().add()?;
/// assert_eq!(Node::from_raw(node.to_raw()), node);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct RawNode {
    /// The number of the graph, which no other graph of the process gets.
    pub graph: u64,
    /// The position of the node in the order in which nodes were added, from 0.
    pub index: u32,
    /// Which write, read or event inside a sub-graph node; 0 for all other nodes.
    pub part: u32,
}

/// A write, a read or an external event: either the node itself, or one inside a sub-graph node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Port {
    pub(crate) node: Node,
    pub(crate) index: u32,
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.index)
    }
}

/// The kind of work that a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NodeKind {
    /// Does no work, and only orders other nodes.
    Empty,
    /// Runs a kernel over an ND-range: a kernel of the program, or a kernel of clgraph that copies or fills where
    /// OpenCL has no command.
    Kernel,
    /// Copies bytes from memory to memory.
    Copy,
    /// Copies a rectangle or a box from buffer to buffer.
    CopyRect,
    /// Copies pixels between two images, or between an image and a buffer.
    CopyImage,
    /// Fills a part of an image with a colour.
    FillImage,
    /// Writes host data to an image.
    WriteImage,
    /// Reads an image into host memory.
    ReadImage,
    /// Fills a range of a buffer with a pattern.
    Fill,
    /// Writes host data to a buffer.
    Write,
    /// Reads a buffer into host memory.
    Read,
    /// Hints to the driver that memory is needed on the device, or on the host, soon.
    Prefetch,
    /// Hints to the driver how memory is going to be used.
    Advise,
    /// Begins the lifetime of memory that the graph owns.
    Alloc,
    /// Ends the lifetime of memory that the graph owns.
    Free,
    /// Calls a function on the host.
    HostTask,
    /// Waits for an external event.
    EventWait,
    /// Completes an external event.
    EventSignal,
    /// Calls a function of the program that enqueues or records commands itself.
    NativeCommand,
    /// Runs another executable.
    SubGraph,
    /// Runs one of two executables, or none: see [`Graph::when`](crate::Graph::when).
    When,
    /// Runs one of several executables, or none: see [`Graph::switch`](crate::Graph::switch).
    Switch,
    /// Runs an executable as long as a condition holds: see [`Graph::repeat_while`](crate::Graph::repeat_while).
    RepeatWhile,
    /// Runs an executable several times: see [`Graph::repeat`](crate::Graph::repeat).
    Repeat,
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
            Self::When => "branch `when`",
            Self::Switch => "branch `switch`",
            Self::RepeatWhile => "loop `repeat_while`",
            Self::Repeat => "loop `repeat`",
        })
    }
}
