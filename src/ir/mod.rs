//! The intermediate representation: a graph as plain data, which building, planning and drawing share.
//!
//! No OpenCL handle, no closure and no call is in here. What a node refers to (a buffer, a kernel, host data) is an
//! index. The objects stand in tables beside it, in the same order (`graph/tables.rs`). `graph` writes, `plan` reads.
//!
//! | file | what is there |
//! |---|---|
//! | `mod.rs` | ids, how commands refer to things by them ([`ById`]), accesses, and [`Ir`]. Read it first, after `command.rs` |
//! | `flows.rs` | which nodes run together: the graph itself, and the bodies of branches and loops |
//! | `topology.rs` | nodes and edges, without what they mean; finds cycles |
//! | `hazards.rs` | which earlier nodes a new node waits for, because of the memory that they share |
//! | `text.rs` | a graph as text |
//! | `conflicts.rs` | nodes that use the same memory without an order, after values have changed |
//!
//! Invariants: `hazards.rs` is the only maker of edges from data. Nothing recurses over a graph. Rules: B4, D1 to
//! D5, E3, P6.

pub(crate) mod conflicts;
pub(crate) mod flows;
pub(crate) mod hazards;
mod text;
pub(crate) mod topology;

use std::ops::Range;
use std::sync::Arc;

use topology::Topology;

use crate::command::{Arg, ArgRefs, Command, Grid, Refs};

macro_rules! ids {
    ($( $(#[$doc:meta])* $name:ident; )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub(crate) struct $name(pub(crate) u32);

            impl $name {
                pub(crate) fn index(self) -> usize {
                    self.0 as usize
                }
            }
        )*
    };
}

ids! {
    /// A node, numbered in the order of adding.
    NodeId;
    /// Memory as OpenCL calls name it: a buffer, a sub-buffer, or an address.
    ViewId;
    /// The memory itself: a buffer with all its sub-buffers, or an allocation.
    RootId;
    /// A kernel function.
    KernelId;
    /// Host data of a write node.
    DataId;
    /// The result of a read node.
    ResultId;
    /// A sub-graph: an executable in the graph.
    ChildId;
    /// Memory that belongs to the graph.
    AllocId;
    /// A sampler: how kernels read images.
    SamplerId;
    /// A host task.
    TaskId;
    /// The functions of a native command.
    NativeId;
    /// An external event, which submissions are given.
    ExternalId;
    /// Memory in which an executable has placed allocations.
    ArenaId;
}

/// A range of one of the graph's side tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(crate) fn of<T>(self, table: &[T]) -> &[T] {
        &table[self.start as usize..self.end as usize]
    }

    pub(crate) fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Returns where it starts and ends.
    pub(crate) fn ends(self) -> (u32, u32) {
        (self.start, self.end)
    }

    /// Returns a part of the span; the range counts from the span's start.
    pub(crate) fn part(self, range: Range<usize>) -> Self {
        Self { start: self.start + range.start as u32, end: self.start + range.end as u32 }
    }
}

/// Commands and arguments that refer to everything by the numbers of a graph's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ById {}

impl Refs for ById {
    type Mem = ViewId;
    type Kernel = KernelId;
    type Args = Span;
    type Bytes = Span;
    type Data = DataId;
    type Output = ResultId;
    type Task = TaskId;
    type Event = ExternalId;
    type Native = NativeId;
    type Executable = ChildId;
    type Bodies = Span;
    type Alloc = AllocId;
}

/// Null pointers have a use like memory, because an update may bring memory: a use of [nothing](ViewKind::Nothing), or, in
/// a command group, of the memory that other launches use.
impl ArgRefs for ById {
    type Mem = ViewId;
    type NoMem = ViewId;
    /// Bytes in [`Ir::bytes`].
    type Value = Span;
    type Sampler = SamplerId;
}

impl Arg<ById> {
    /// Returns the memory for which the node has a use.
    pub(crate) fn view(self) -> Option<ViewId> {
        match self {
            Self::Memory(view) | Self::Indirect(view) | Self::Global(view) | Self::Unused(view) | Self::Null(view) => {
                Some(view)
            }
            Self::Local(_) | Self::Value(_) | Self::Sampler(_) => None,
        }
    }
}

/// How a node uses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write,
    ReadWrite,
}

impl Mode {
    pub(crate) fn reads(self) -> bool {
        self != Self::Write
    }

    pub(crate) fn writes(self) -> bool {
        self != Self::Read
    }
}

/// A use of a range of bytes, counted from the start of the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) view: ViewId,
    pub(crate) range: Range<usize>,
    pub(crate) mode: Mode,
}

impl Access {
    /// Returns whether two uses need an order between them.
    pub(crate) fn conflicts_with(&self, other: &Self, views: &[View]) -> bool {
        let (a, b) = (&views[self.view.index()], &views[other.view.index()]);
        a.root == b.root
            && a.kind != ViewKind::Foreign
            && b.kind != ViewKind::Foreign
            && (self.mode.writes() || other.mode.writes())
            // "Concurrent reading from, writing to and copying between both a buffer object and its sub-buffer
            // object(s) is undefined" (OpenCL 3.0, clCreateSubBuffer).
            && (a.is_sub_buffer() != b.is_sub_buffer()
                || (self.range.start < other.range.end && other.range.start < self.range.end))
    }
}

/// The kind of memory that a view names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewKind {
    Buffer,
    SubBuffer,
    /// An image with memory of its own.
    Image,
    /// An image whose pixels are those of a buffer.
    ImageOfBuffer,
    /// An address in an allocation.
    Pointer,
    /// A range of memory that belongs to the graph.
    Owned(AllocId),
    /// The same, after an executable has put its memory in the place: `start` is the byte of the arena where the
    /// allocation begins.
    Placed {
        arena: ArenaId,
        start: usize,
    },
    /// An address in an allocation of the program, whose uses are not ordered here.
    Foreign,
    /// No memory: the view of null pointers.
    Nothing,
}

/// Memory as OpenCL calls name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) root: RootId,
    /// The size of the root, in bytes.
    pub(crate) root_size: usize,
    /// Where it starts in the root, in bytes.
    pub(crate) offset: usize,
    pub(crate) size: usize,
    pub(crate) kind: ViewKind,
}

impl View {
    /// Returns whether it is not the buffer itself, but something else over the same bytes.
    pub(crate) fn is_sub_buffer(&self) -> bool {
        matches!(self.kind, ViewKind::SubBuffer | ViewKind::ImageOfBuffer)
    }

    pub(crate) fn is_pointer(&self) -> bool {
        matches!(self.kind, ViewKind::Pointer | ViewKind::Foreign)
    }
}

/// A body of a branch or loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// An executable, in a graph as it was built.
    Executable(ChildId),
    /// The nodes that it was inlined to. Bodies that are inside it are parts of the range.
    Inlined {
        /// The branch or loop.
        of: NodeId,
        nodes: Range<u32>,
    },
}

/// Memory that belongs to a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllocDecl {
    /// Bytes.
    pub(crate) size: usize,
    /// Whether it is filled with zeros when the graph is finalized.
    pub(crate) zero: bool,
    /// The node that makes it.
    pub(crate) node: NodeId,
}

/// A kernel function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelDecl {
    pub(crate) name: Arc<str>,
    /// Whether its program was built for the graph's device.
    pub(crate) built: bool,
    /// Whether its arguments could be checked when they were given.
    pub(crate) checked: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct NodeData {
    pub(crate) command: Command<ById>,
    accesses: Span,
}

/// A graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ir {
    pub(crate) nodes: Vec<NodeData>,
    /// Shared by copies of the graph that differ only in values.
    pub(crate) topology: Arc<Topology>,
    pub(crate) views: Vec<View>,
    pub(crate) kernels: Vec<KernelDecl>,
    pub(crate) allocs: Vec<AllocDecl>,
    /// The bodies of branches and loops. A span of these belongs to a node.
    pub(crate) bodies: Vec<Body>,
    /// Whether sub-graphs have memory of their own. Then nodes without an edge may share bytes, because the order of
    /// the steps puts one after the other.
    pub(crate) shares_bytes: bool,
    accesses: Vec<Access>,
    args: Vec<Arg<ById>>,
    bytes: Vec<u8>,
    pub(crate) data: u32,
    pub(crate) results: u32,
    pub(crate) tasks: u32,
    pub(crate) natives: u32,
    pub(crate) externals: u32,
}

/// The ends of a graph's tables, to go back to if adding a node fails half-way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    args: usize,
    bytes: usize,
    allocs: usize,
    bodies: usize,
}

impl Mark {
    /// Returns how many arguments there were.
    pub(crate) fn args(self) -> usize {
        self.args
    }
}

impl Ir {
    /// Frees unused capacity. Tables that grow have up to twice the capacity that they need.
    pub(crate) fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
        self.accesses.shrink_to_fit();
        self.args.shrink_to_fit();
        self.bytes.shrink_to_fit();
        if let Some(topology) = Arc::get_mut(&mut self.topology) {
            topology.shrink();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn command(&self, node: NodeId) -> &Command<ById> {
        &self.nodes[node.index()].command
    }

    pub(crate) fn accesses(&self, node: NodeId) -> &[Access] {
        self.nodes[node.index()].accesses.of(&self.accesses)
    }

    pub(crate) fn accesses_mut(&mut self, node: NodeId) -> &mut [Access] {
        let span = self.nodes[node.index()].accesses;
        &mut self.accesses[span.start as usize..span.end as usize]
    }

    pub(crate) fn command_mut(&mut self, node: NodeId) -> &mut Command<ById> {
        &mut self.nodes[node.index()].command
    }

    /// Makes a node one that only orders others.
    pub(crate) fn clear(&mut self, node: NodeId) {
        self.nodes[node.index()] = NodeData { command: Command::Empty, accesses: Span::default() };
    }

    /// Forgets arguments that no command has any more, and the uses of memory of some nodes, and of no nodes.
    pub(crate) fn forget(&mut self, args: impl Iterator<Item = Span>, nodes: impl Iterator<Item = NodeId>) {
        args.for_each(|span| self.args_mut(span).fill(Arg::Local(0)));
        nodes.for_each(|node| self.nodes[node.index()].accesses = Span::default());
        let all = std::mem::take(&mut self.accesses);
        for node in &mut self.nodes {
            let start = self.accesses.len() as u32;
            self.accesses.extend_from_slice(node.accesses.of(&all));
            node.accesses = Span { start, end: self.accesses.len() as u32 };
        }
    }

    /// Returns the range of a kernel.
    pub(crate) fn grid_mut(&mut self, node: NodeId) -> Option<&mut Grid> {
        match self.command_mut(node) {
            Command::Kernel { grid, .. } => Some(grid),
            _ => None,
        }
    }

    pub(crate) fn args_mut(&mut self, span: Span) -> &mut [Arg<ById>] {
        &mut self.args[span.start as usize..span.end as usize]
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self, span: Span) -> &mut [u8] {
        &mut self.bytes[span.start as usize..span.end as usize]
    }

    pub(crate) fn args(&self, span: Span) -> &[Arg<ById>] {
        span.of(&self.args)
    }

    pub(crate) fn bytes(&self, span: Span) -> &[u8] {
        span.of(&self.bytes)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    pub(crate) fn mark(&self) -> Mark {
        let (args, bytes, allocs) = (self.args.len(), self.bytes.len(), self.allocs.len());
        Mark { args, bytes, allocs, bodies: self.bodies.len() }
    }

    pub(crate) fn rewind(&mut self, mark: Mark) {
        self.args.truncate(mark.args);
        self.bytes.truncate(mark.bytes);
        self.allocs.truncate(mark.allocs);
        self.bodies.truncate(mark.bodies);
    }

    /// Returns what arguments and accesses name, each as often as it is named.
    pub(crate) fn all_views(&self) -> impl Iterator<Item = ViewId> {
        let args = self.args.iter().filter_map(|arg| arg.view());
        args.chain(self.accesses.iter().map(|access| access.view))
    }

    /// Returns the samplers of all arguments that are samplers.
    pub(crate) fn all_samplers(&self) -> impl Iterator<Item = SamplerId> {
        self.args.iter().filter_map(|arg| if let Arg::Sampler(id) = arg { Some(*id) } else { None })
    }

    /// Stores bytes and returns where. None if the table is full.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) -> Option<Span> {
        push(&mut self.bytes, bytes.iter().copied())
    }

    /// Stores arguments and returns where. None if the table is full.
    pub(crate) fn push_args(&mut self, args: impl ExactSizeIterator<Item = Arg<ById>>) -> Option<Span> {
        push(&mut self.args, args)
    }

    /// Returns the executables in a node of a graph as it was built, in order.
    pub(crate) fn executables(&self, node: NodeId) -> impl Iterator<Item = ChildId> + '_ {
        let (sub_graph, bodies) = match self.command(node) {
            Command::SubGraph(child) => (Some(*child), Span::default()),
            Command::Control(control) => (None, control.bodies),
            // Every kind is named: what is inside a new one would not be inlined.
            Command::Empty | Command::Kernel { .. } | Command::Native { .. } | Command::Hint { .. } => {
                Default::default()
            }
            Command::Copy { .. } | Command::CopyRect(_) | Command::CopyImage(_) => Default::default(),
            Command::Fill { .. } | Command::Write { .. } | Command::Read { .. } => Default::default(),
            Command::Task(_) | Command::Event { .. } | Command::Alloc(_) | Command::Free(_) => Default::default(),
        };
        let bodies = bodies.of(&self.bodies).iter().filter_map(|body| match body {
            Body::Executable(child) => Some(*child),
            Body::Inlined { .. } => None,
        });
        sub_graph.into_iter().chain(bodies)
    }

    /// Stores bodies and returns where. None if the table is full.
    pub(crate) fn push_bodies(&mut self, bodies: impl ExactSizeIterator<Item = Body>) -> Option<Span> {
        push(&mut self.bodies, bodies)
    }

    /// The largest number of nodes, of edges, of accesses, of arguments, and of bytes of values in a graph.
    pub(crate) const MOST: usize = u32::MAX as usize - (1 << 24);

    /// Returns whether another node fits, with everything that one node can need, except arguments and bytes: their
    /// tables report that themselves.
    pub(crate) fn has_room(&self) -> bool {
        [self.nodes.len(), self.accesses.len(), self.topology.edge_count()].into_iter().all(|len| len < Self::MOST)
    }

    /// Returns a graph with the same tables and without nodes, bodies and edges.
    pub(crate) fn without_nodes(&self) -> Self {
        Self {
            nodes: Vec::new(),
            topology: Arc::default(),
            views: self.views.clone(),
            kernels: self.kernels.clone(),
            allocs: self.allocs.clone(),
            bodies: Vec::new(),
            accesses: self.accesses.clone(),
            args: self.args.clone(),
            bytes: self.bytes.clone(),
            ..*self
        }
    }

    /// Adds a node that has the uses of a node of the graph whose tables this one has.
    pub(crate) fn push_again(&mut self, from: &Self, node: NodeId, command: Command<ById>, after: &mut Vec<NodeId>) {
        // Only commands use memory.
        let accesses = if command == Command::Empty { Span::default() } else { from.nodes[node.index()].accesses };
        self.nodes.push(NodeData { command, accesses });
        Arc::make_mut(&mut self.topology).push_node(after);
    }

    /// Adds a node after others. Returns None if a table is full.
    ///
    /// `after` may hold a node twice; it is used as scratch space.
    pub(crate) fn push_node(
        &mut self,
        command: Command<ById>,
        accesses: impl ExactSizeIterator<Item = Access>,
        after: &mut Vec<NodeId>,
    ) -> Option<NodeId> {
        let accesses = push(&mut self.accesses, accesses)?;
        self.nodes.push(NodeData { command, accesses });
        Some(Arc::make_mut(&mut self.topology).push_node(after))
    }
}

fn push<T>(table: &mut Vec<T>, items: impl ExactSizeIterator<Item = T>) -> Option<Span> {
    let start = u32::try_from(table.len()).ok()?;
    let end = u32::try_from(table.len().checked_add(items.len())?).ok()?;
    table.extend(items);
    Some(Span { start, end })
}
