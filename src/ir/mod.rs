//! The intermediate representation: a graph as plain data, which building, planning and drawing share.
//!
//! No OpenCL handle, no closure and no call is in here. What a node refers to (a buffer, a kernel, host data) is an
//! index. The objects stand in tables beside it, in the same order (`graph/tables.rs`). `graph` writes, `plan` reads.
//!
//! | file | what is there |
//! |---|---|
//! | `mod.rs` | ids, [`Op`] (one variant for each kind of command), arguments, accesses, and [`Ir`]. Read it first |
//! | `topology.rs` | nodes and edges, without what they mean; finds cycles |
//! | `hazards.rs` | which earlier nodes a new node waits for, because of the memory that they share |
//! | `conflicts.rs` | nodes that use the same memory without an order, after values have changed |
//!
//! Invariants: `hazards.rs` is the only maker of edges from data. Nothing recurses over a graph. Rules: B4, D1 to
//! D5, E3, P6.

pub(crate) mod conflicts;
pub(crate) mod hazards;
pub(crate) mod topology;

use std::ops::Range;
use std::sync::Arc;

use topology::Topology;

use crate::images::Area;

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

/// What a node does.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    Empty,
    Kernel {
        kernel: KernelId,
        args: Span,
        grid: Grid,
        /// The largest range to which safe code may change it, by dimension. None if safe code may not.
        bound: Option<Box<[usize; 3]>>,
        prints: bool,
    },
    Copy {
        src: Location,
        dst: Location,
        size: usize,
    },
    CopyRect(Box<CopyRect>),
    Fill {
        dst: Location,
        size: usize,
        pattern: Span,
        /// For an image: the area, and the pattern is a colour.
        area: Option<Box<Area>>,
    },
    Write {
        dst: Location,
        size: usize,
        data: DataId,
        /// For an image.
        area: Option<Box<Area>>,
    },
    Read {
        src: Location,
        size: usize,
        result: ResultId,
        /// For an image.
        area: Option<Box<Area>>,
    },
    /// From image to image, from a buffer to an image, or from an image to a buffer.
    CopyImage(Box<CopyImage>),
    /// From here on the bytes of an allocation of the graph exist. Only orders other nodes.
    Alloc(AllocId),
    /// From here on the bytes of an allocation are not needed. Only orders other nodes.
    Free(AllocId),
    Hint {
        of: Location,
        size: usize,
        hint: Hint,
    },
    /// A host task: a function that the host calls between commands.
    Task(TaskId),
    /// Waits for an external event, or completes it.
    Event {
        event: ExternalId,
        signals: bool,
    },
    /// A native command: the program's function enqueues or records.
    Native {
        command: NativeId,
        form: Form,
    },
    /// An executable. It is inlined before anything is planned.
    SubGraph(ChildId),
}

impl Op {
    /// Returns whether it is a command, even one that has nothing to run.
    pub(crate) fn is_command(&self) -> bool {
        !matches!(self, Self::Empty | Self::SubGraph(_) | Self::Alloc(_) | Self::Free(_)) && !self.is_host()
    }

    /// Returns whether the host does it, between commands.
    pub(crate) fn is_host(&self) -> bool {
        matches!(self, Self::Task(_) | Self::Event { .. })
    }

    /// Returns whether there is nothing to run: such a node only orders others. Drivers disagree about commands of size
    /// zero.
    pub(crate) fn is_noop(&self) -> bool {
        match self {
            // The host does these, or nobody: there is nothing to enqueue.
            Self::Empty | Self::Alloc(_) | Self::Free(_) | Self::Task(_) | Self::Event { .. } => true,
            Self::SubGraph(_) | Self::Native { .. } => false,
            Self::Kernel { grid, .. } => grid.global.contains(&0),
            Self::CopyRect(rect) => rect.region.contains(&0),
            Self::CopyImage(copy) => copy.region.contains(&0),
            Self::Copy { size, .. }
            | Self::Fill { size, .. }
            | Self::Write { size, .. }
            | Self::Read { size, .. }
            | Self::Hint { size, .. } => *size == 0,
        }
    }
}

/// How a native command gets to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Its function enqueues commands.
    Enqueued,
    /// Its function records commands.
    Recorded,
    /// It has a function for each.
    Either,
}

/// What a hint tells the driver about memory. The driver may ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// The memory is needed on the device.
    ToDevice,
    /// The memory is needed on the host.
    ToHost,
    /// How the memory is going to be used, as a number that the driver defines.
    Advice(u32),
}

/// A byte offset in a buffer, in a sub-buffer, or from an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) view: ViewId,
    pub(crate) offset: usize,
}

/// A copy of a rectangle: origins and region in bytes, rows and slices; pitches in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyRect {
    pub(crate) src: ViewId,
    pub(crate) dst: ViewId,
    pub(crate) src_origin: [usize; 3],
    pub(crate) dst_origin: [usize; 3],
    pub(crate) region: [usize; 3],
    /// The pitches of a row and a slice of the source, and those of the destination.
    pub(crate) pitches: [usize; 4],
}

/// A copy of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyImage {
    pub(crate) src: Pixels,
    pub(crate) dst: Pixels,
    pub(crate) region: [usize; 3],
}

impl CopyImage {
    /// Returns whether both copies are between the same kinds of memory. Otherwise they are different OpenCL commands.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let is_image = |side: &Pixels| matches!(side, Pixels::Image(..));
        (is_image(&self.src), is_image(&self.dst)) == (is_image(&other.src), is_image(&other.dst))
    }
}

/// Where pixels are: from an origin on in an image, or packed in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pixels {
    Image(ViewId, [usize; 3]),
    Buffer(Location),
}

/// An ND-range: the number of work-items, their offset, and the size of a work-group. Unused dimensions are 1 (their
/// offset is 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) dims: u32,
    pub(crate) offset: [usize; 3],
    pub(crate) global: [usize; 3],
    /// None if the driver chooses.
    pub(crate) local: Option<[usize; 3]>,
}

/// The value of a kernel argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arg {
    Buffer(ViewId),
    /// Memory that the kernel reaches through pointers in other memory. These come after the kernel's own arguments.
    Indirect(ViewId),
    /// Memory of a device global of the kernel's program. These come after the indirect ones; the program does not set
    /// them.
    Global(ViewId),
    /// No argument of the kernel: it gives all launches of a command group the same number of uses. These come after
    /// all others.
    Unused(ViewId),
    /// A null pointer for an argument that takes memory. It has a use like memory, because an update may bring memory:
    /// a use of [nothing](ViewKind::Nothing), or, in a command group, of the memory that other launches use.
    Null(ViewId),
    /// Bytes of local memory.
    Local(usize),
    /// Bytes in [`Ir::bytes`].
    Value(Span),
    Sampler(SamplerId),
}

impl Arg {
    /// Returns the memory for which the node has a use.
    pub(crate) fn view(self) -> Option<ViewId> {
        match self {
            Self::Buffer(view) | Self::Indirect(view) | Self::Global(view) | Self::Unused(view) | Self::Null(view) => {
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
    /// The same, after an executable has put its memory in the place.
    Placed,
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
    pub(crate) op: Op,
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
    /// Whether sub-graphs have memory of their own. Then nodes without an edge may share bytes, because the order of
    /// the steps puts one after the other.
    pub(crate) shares_bytes: bool,
    accesses: Vec<Access>,
    args: Vec<Arg>,
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

    pub(crate) fn op(&self, node: NodeId) -> &Op {
        &self.nodes[node.index()].op
    }

    pub(crate) fn accesses(&self, node: NodeId) -> &[Access] {
        self.nodes[node.index()].accesses.of(&self.accesses)
    }

    pub(crate) fn accesses_mut(&mut self, node: NodeId) -> &mut [Access] {
        let span = self.nodes[node.index()].accesses;
        &mut self.accesses[span.start as usize..span.end as usize]
    }

    pub(crate) fn op_mut(&mut self, node: NodeId) -> &mut Op {
        &mut self.nodes[node.index()].op
    }

    /// Returns the range of a kernel.
    pub(crate) fn grid_mut(&mut self, node: NodeId) -> Option<&mut Grid> {
        match self.op_mut(node) {
            Op::Kernel { grid, .. } => Some(grid),
            _ => None,
        }
    }

    pub(crate) fn args_mut(&mut self, span: Span) -> &mut [Arg] {
        &mut self.args[span.start as usize..span.end as usize]
    }

    pub(crate) fn bytes_mut(&mut self, span: Span) -> &mut [u8] {
        &mut self.bytes[span.start as usize..span.end as usize]
    }

    pub(crate) fn args(&self, span: Span) -> &[Arg] {
        span.of(&self.args)
    }

    pub(crate) fn bytes(&self, span: Span) -> &[u8] {
        span.of(&self.bytes)
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { args: self.args.len(), bytes: self.bytes.len(), allocs: self.allocs.len() }
    }

    pub(crate) fn rewind(&mut self, mark: Mark) {
        self.args.truncate(mark.args);
        self.bytes.truncate(mark.bytes);
        self.allocs.truncate(mark.allocs);
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
    pub(crate) fn push_args(&mut self, args: impl ExactSizeIterator<Item = Arg>) -> Option<Span> {
        push(&mut self.args, args)
    }

    /// The largest number of nodes, of edges, of accesses, of arguments, and of bytes of values in a graph.
    pub(crate) const MOST: usize = u32::MAX as usize - (1 << 24);

    /// Returns whether another node fits, with everything that one node can need, except arguments and bytes: their
    /// tables report that themselves.
    pub(crate) fn has_room(&self) -> bool {
        [self.nodes.len(), self.accesses.len(), self.topology.edge_count()].into_iter().all(|len| len < Self::MOST)
    }

    /// Adds a node after others. Returns None if a table is full.
    ///
    /// `after` may hold a node twice; it is used as scratch space.
    pub(crate) fn push_node(
        &mut self,
        op: Op,
        accesses: impl ExactSizeIterator<Item = Access>,
        after: &mut Vec<NodeId>,
    ) -> Option<NodeId> {
        let accesses = push(&mut self.accesses, accesses)?;
        self.nodes.push(NodeData { op, accesses });
        Some(Arc::make_mut(&mut self.topology).push_node(after))
    }
}

fn push<T>(table: &mut Vec<T>, items: impl ExactSizeIterator<Item = T>) -> Option<Span> {
    let start = u32::try_from(table.len()).ok()?;
    let end = u32::try_from(table.len().checked_add(items.len())?).ok()?;
    table.extend(items);
    Some(Span { start, end })
}
