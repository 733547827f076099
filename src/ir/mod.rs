//! The vocabulary: a graph as plain data.
//!
//! No OpenCL handle, no closure and no call is in here. What a node refers to (a buffer, a kernel, host data) is an
//! index; whoever builds the graph keeps the objects in a table of its own, in the same order. One [`Op`] enum serves
//! building, planning and drawing.

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
    /// A node, counted in the order of adding.
    NodeId;
    /// Memory as it is named to OpenCL: a buffer, a sub-buffer, or an address.
    ViewId;
    /// Memory as it is: a buffer, with all its sub-buffers, or an allocation.
    RootId;
    /// A kernel function.
    KernelId;
    /// Host data of a write node.
    DataId;
    /// The result of a read node.
    ResultId;
    /// An executable in a graph.
    ChildId;
    /// Memory that belongs to the graph.
    AllocId;
    /// How kernels read images.
    SamplerId;
    /// A function of the host's.
    TaskId;
    /// The functions of a native command.
    NativeId;
    /// An event that submissions are given.
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

    /// Where it starts and ends.
    pub(crate) fn ends(self) -> (u32, u32) {
        (self.start, self.end)
    }

    /// A part of the span, counted from its start.
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
        /// Up to which ranges safe code may change it: no id reaches these, by dimension.
        bound: Option<Box<[usize; 3]>>,
        prints: bool,
    },
    Copy {
        src: Place,
        dst: Place,
        size: usize,
    },
    CopyRect(Box<CopyRect>),
    Fill {
        dst: Place,
        size: usize,
        pattern: Span,
        /// Of an image: the part, and the pattern is a colour.
        area: Option<Box<Area>>,
    },
    Write {
        dst: Place,
        size: usize,
        data: DataId,
        /// Of an image.
        area: Option<Box<Area>>,
    },
    Read {
        src: Place,
        size: usize,
        result: ResultId,
        /// Of an image.
        area: Option<Box<Area>>,
    },
    /// From image to image, or from or to one.
    CopyImage(Box<CopyImage>),
    /// The bytes of an allocation of the graph's are there from now on. Only orders.
    Alloc(AllocId),
    /// They are not needed any more. Only orders.
    Free(AllocId),
    Hint {
        of: Place,
        size: usize,
        hint: Hint,
    },
    /// A function that the host calls between commands.
    Task(TaskId),
    /// An event is waited for, or completed.
    Event {
        event: ExternalId,
        signals: bool,
    },
    /// Commands of the user's own.
    Native {
        command: NativeId,
        form: Form,
    },
    /// Written out before anything is planned.
    SubGraph(ChildId),
}

impl Op {
    /// Whether it is a command, also one that has nothing to run.
    pub(crate) fn is_command(&self) -> bool {
        !matches!(self, Self::Empty | Self::SubGraph(_) | Self::Alloc(_) | Self::Free(_)) && !self.is_host()
    }

    /// Whether the host does it, between commands.
    pub(crate) fn is_host(&self) -> bool {
        matches!(self, Self::Task(_) | Self::Event { .. })
    }

    /// Whether there is nothing to run: such a node only orders others. Drivers disagree on commands of no size.
    pub(crate) fn is_noop(&self) -> bool {
        match self {
            // The host does it: there is nothing to enqueue.
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
    /// Its function enqueues.
    Enqueued,
    /// Its function records.
    Recorded,
    /// It has a function for each.
    Either,
}

/// What a driver is told of memory, and may do nothing about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    /// It is wanted on the device.
    ToDevice,
    /// It is wanted on the host.
    ToHost,
    /// How it is going to be used, by a number of the driver's own.
    Advice(u32),
}

/// A byte offset in a buffer, a sub-buffer, or behind an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
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
    /// Row and slice of the source, row and slice of the destination.
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
    /// Whether another one is between the same kinds of memory: another command otherwise.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let is_image = |side: &Pixels| matches!(side, Pixels::Image(..));
        (is_image(&self.src), is_image(&self.dst)) == (is_image(&other.src), is_image(&other.dst))
    }
}

/// Where pixels are: from an origin on in an image, or packed in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pixels {
    Image(ViewId, [usize; 3]),
    Buffer(Place),
}

/// An ND-range: work-items in all, where they start, and how many make a work-group. Unused dimensions are 1 (offset 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) dims: u32,
    pub(crate) offset: [usize; 3],
    pub(crate) global: [usize; 3],
    /// `None`: the driver chooses.
    pub(crate) local: Option<[usize; 3]>,
}

/// The value of a kernel argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arg {
    Buffer(ViewId),
    /// Memory that the kernel reaches by what it finds in memory. These stand behind the kernel's own arguments.
    Indirect(ViewId),
    /// Memory of a device global of the kernel's program. These stand behind those, and nobody has to set them.
    Global(ViewId),
    /// No argument of the kernel's: it makes the launches of a command group have as many uses. These stand behind all others.
    Unused(ViewId),
    /// A null pointer where memory belongs. It has a use as memory would, which may come later: of [nothing](ViewKind::Nothing), or,
    /// in a command group, of what other launches use.
    Null(ViewId),
    /// Bytes of local memory.
    Local(usize),
    /// Bytes in [`Ir::bytes`].
    Value(Span),
    Sampler(SamplerId),
}

impl Arg {
    /// The memory of which the node has a use for it.
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

/// A use of a range of bytes, counted in the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) view: ViewId,
    pub(crate) range: Range<usize>,
    pub(crate) mode: Mode,
}

impl Access {
    /// Whether two uses need an order between them.
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

/// What memory is behind a name.
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
    /// A part of what belongs to the graph.
    Owned(AllocId),
    /// The same, where an executable has put memory in its place.
    Placed,
    /// An address in an allocation that somebody else has made, and whose uses nobody orders here.
    Foreign,
    /// No memory: what null pointers use.
    Nothing,
}

/// Memory as it is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) root: RootId,
    /// Bytes of the root.
    pub(crate) root_size: usize,
    /// Where it starts in the root, in bytes.
    pub(crate) offset: usize,
    pub(crate) size: usize,
    pub(crate) kind: ViewKind,
}

impl View {
    /// Whether it is something else than the buffer itself, over the same bytes.
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
    /// Whether it is zero when the graph is finalized.
    pub(crate) zero: bool,
    /// Where it was added.
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
    /// Shared by copies of the graph whose values differ.
    pub(crate) topology: Arc<Topology>,
    pub(crate) views: Vec<View>,
    pub(crate) kernels: Vec<KernelDecl>,
    pub(crate) allocs: Vec<AllocDecl>,
    /// Whether sub-graphs have memory of their own: nodes without an edge may share bytes of it, because one comes after the other in
    /// the order of the steps.
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

/// Where a graph's tables ended, to go back to when adding a node fails half-way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    args: usize,
    bytes: usize,
    allocs: usize,
}

impl Mark {
    /// Arguments, of which there were so many.
    pub(crate) fn args(self) -> usize {
        self.args
    }
}

impl Ir {
    /// Gives back the room for nodes that are not there: tables that grow have up to twice what they need.
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

    /// The range of a kernel.
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

    /// What arguments and accesses name, each as often as it is named.
    pub(crate) fn all_views(&self) -> impl Iterator<Item = ViewId> {
        let args = self.args.iter().filter_map(|arg| arg.view());
        args.chain(self.accesses.iter().map(|access| access.view))
    }

    /// The sampler of each argument that is one.
    pub(crate) fn all_samplers(&self) -> impl Iterator<Item = SamplerId> {
        self.args.iter().filter_map(|arg| if let Arg::Sampler(id) = arg { Some(*id) } else { None })
    }

    /// Keeps bytes and says where. `None` when the table is full.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) -> Option<Span> {
        push(&mut self.bytes, bytes.iter().copied())
    }

    /// Keeps arguments and says where. `None` when the table is full.
    pub(crate) fn push_args(&mut self, args: impl ExactSizeIterator<Item = Arg>) -> Option<Span> {
        push(&mut self.args, args)
    }

    /// As many nodes, edges, accesses, arguments and bytes of values as a graph can hold, of each.
    pub(crate) const MOST: usize = u32::MAX as usize - (1 << 24);

    /// Whether another node fits, with all that one node can need besides arguments and bytes, whose own tables tell.
    pub(crate) fn has_room(&self) -> bool {
        [self.nodes.len(), self.accesses.len(), self.topology.edge_count()].into_iter().all(|len| len < Self::MOST)
    }

    /// Adds a node behind others. `None` when a table is full.
    ///
    /// `after` may hold any node twice; it is used as scratch space.
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
