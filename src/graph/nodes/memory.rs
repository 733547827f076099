//! Memory that a graph owns: nodes that begin its lifetime, and nodes that end it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use crate::caps::PoolKind;
use crate::cl::memory::host::Element;
use crate::cl::memory::region::{AsDestination, AsRegion, AsSource, Region, sealed, whole_elements};
use crate::cl::memory::typed::MemorySlice;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::buffer::too_large;
use crate::command::Command;
use crate::error::{BuildCause, BuildError, MemoryError, Result};
use crate::graph::nodes::argument::{BufferArg, LaunchRef};
use crate::graph::nodes::request::{Request, Target};
use crate::graph::writer::Writer;
use crate::graph::{After, Graph, State, after_methods};
use crate::handles::Node;
use crate::ir::{Access, AllocDecl, AllocId, ById, Mode, NodeId};

/// Memory of `len` elements of type `T` that a graph owns, for temporary data between its nodes.
///
/// Each executable has its own memory for it, and allocations whose lifetimes do not overlap share bytes: see
/// [`Executable::required_memory`](crate::Executable::required_memory). It can be used wherever a node of its graph
/// takes memory, and nowhere else. Cloning the handle is cheap, and clones are the same allocation.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// use clgraph::{Buffer, Finalize, Graph, Queue};
/// let queue = Queue::new(&clgraph::best_device()?)?;
/// let out = Buffer::<u32>::new(&queue, 1024)?;
/// let graph = Graph::new(&queue)?;
/// let mut last = graph.alloc::<u32>(1024).add()?;
/// graph.fill(&last, 7).add()?;
/// for _ in 0..10 {
///     let next = graph.alloc::<u32>(1024).add()?;
///     graph.copy(&last, &next).add()?;
///     graph.free(&last).add()?;
///     last = next;
/// }
/// graph.copy(&last, &out).add()?;
/// graph.free(&last).add()?;
/// let executable = graph.finalize(Finalize::new())?;
/// assert_eq!(executable.required_memory(), 2 * 4096, "eleven allocations, of which two live at once");
/// executable.submit(&queue)?.wait()?;
/// # Ok(()) }
/// ```
#[must_use = "without its handle no node can use the memory"]
pub struct GraphMemory<T> {
    mem: Mem,
    node: Node,
    element: PhantomData<fn() -> T>,
}

impl Graph {
    /// Starts an allocation of `len` elements, which belongs to the graph and can be used by nodes after this node.
    ///
    /// The content is undefined. Nothing is allocated now: each executable allocates its own memory when it is
    /// finalized. There, allocations start at multiples of [`Caps::sub_buffer_align`](crate::Caps::sub_buffer_align)
    /// bytes, and allocations that are not needed at the same time share bytes.
    ///
    /// Without a [`free`](Self::free) the allocation lives as long as the executable, and keeps its content from one
    /// submission to the next.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let (input, output) = (Buffer::from_slice(&queue, &[7_u32; 256])?, Buffer::<u32>::new(&queue, 256)?);
    /// let graph = Graph::new(&queue)?;
    /// let between = graph.alloc::<u32>(256).add()?;
    /// graph.copy(&input, &between).add()?;
    /// graph.copy(&between, &output).add()?;
    /// graph.free(&between).add()?; // from here on others may have its bytes
    /// graph.finalize(Finalize::new())?.submit(&queue)?.wait()?;
    /// # Ok(()) }
    /// ```
    #[doc(alias = "async_malloc")]
    #[doc(alias = "cudaGraphAddMemAllocNode")]
    pub fn alloc<T: Element>(&self, len: usize) -> AllocNode<'_, T> {
        let (size, pool) = (len.checked_mul(size_of::<T>()), MemoryPool::default());
        AllocNode { graph: self, after: After::default(), size, pool, element: PhantomData }
    }

    /// Starts the end of an allocation: no later node may use it, and other allocations may use its bytes.
    #[doc(alias = "async_free")]
    #[doc(alias = "cudaGraphAddMemFreeNode")]
    pub fn free<T>(&self, memory: &GraphMemory<T>) -> FreeNode<'_> {
        FreeNode { graph: self, after: After::default(), free: Free(memory.region()) }
    }
}

/// An allocation to be added. See [`Graph::alloc`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct AllocNode<'g, T> {
    graph: &'g Graph,
    after: After,
    /// In bytes, or `None` if the size overflows.
    size: Option<usize>,
    pool: MemoryPool,
    element: PhantomData<T>,
}

impl<T: Element> AllocNode<'_, T> {
    after_methods!();

    /// Fills the memory with zeros when the graph is finalized, but not again for each submission.
    pub fn zero_init(mut self) -> Self {
        self.pool.zero_init = true;
        self
    }

    /// Sets the properties of the memory.
    pub fn pool(mut self, pool: MemoryPool) -> Self {
        self.pool = pool;
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// In [`BuildCause::Memory`]: [`MemoryError::Empty`], [`MemoryError::TooLarge`], and
    /// [`MemoryError::PoolNotOfDevice`] for a pool of another kind of memory. Those of
    /// [`EmptyNode::add`](crate::graph::EmptyNode::add).
    pub fn add(self) -> Result<GraphMemory<T>> {
        let Self { graph, after, size, pool, .. } = self;
        let alloc = Alloc::new(&graph.target(), size, pool)?;
        let mem = alloc.mem.clone();
        Ok(GraphMemory::of(mem, graph.insert(alloc, &after)?))
    }
}

/// Common properties of allocations, known from SYCL.
///
/// A pool is a plain value: each graph has its own memory, whatever pool is named.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// # let queue = clgraph::Queue::new(&clgraph::best_device()?)?;
/// use clgraph::{Graph, MemoryPool};
/// let pool = MemoryPool::new().zero_init();
/// let graph = Graph::new(&queue)?;
/// let sums = graph.alloc::<f32>(1024).pool(pool).add()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct MemoryPool {
    /// The kind of memory. Graphs have memory of the device only.
    pub kind: PoolKind,
    /// Allocations are filled with zeros when a graph is finalized, but not again for each submission.
    pub zero_init: bool,
    /// Has no effect. The property exists because SYCL has it.
    pub read_only: bool,
    /// In bytes. Has no effect: an executable allocates as many bytes as its graph needs. The property exists because
    /// SYCL has it.
    pub initial_threshold: usize,
    /// In bytes. Has no effect: an executable allocates as many bytes as its graph needs. The property exists because
    /// SYCL has it.
    pub maximum_size: usize,
}

impl MemoryPool {
    /// Returns a pool of device memory whose content is undefined.
    pub const fn new() -> Self {
        Self { kind: PoolKind::Device, zero_init: false, read_only: false, initial_threshold: 0, maximum_size: 0 }
    }

    /// Sets [`kind`](Self#structfield.kind).
    pub const fn kind(mut self, kind: PoolKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets [`zero_init`](Self#structfield.zero_init).
    pub const fn zero_init(mut self) -> Self {
        self.zero_init = true;
        self
    }

    /// Sets [`read_only`](Self#structfield.read_only).
    pub const fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Sets [`initial_threshold`](Self#structfield.initial_threshold).
    pub const fn initial_threshold(mut self, bytes: usize) -> Self {
        self.initial_threshold = bytes;
        self
    }

    /// Sets [`maximum_size`](Self#structfield.maximum_size).
    pub const fn maximum_size(mut self, bytes: usize) -> Self {
        self.maximum_size = bytes;
        self
    }
}

/// The end of an allocation, to be added. See [`Graph::free`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct FreeNode<'g> {
    graph: &'g Graph,
    after: After,
    free: Free,
}

impl FreeNode<'_> {
    after_methods!();

    /// Adds the node. It waits for all nodes that use the memory.
    ///
    /// Finalizing checks that no later node uses the memory or frees it again.
    ///
    /// # Errors
    /// [`BuildCause::GraphMemory`] for an allocation of another graph, and those of
    /// [`EmptyNode::add`](crate::graph::EmptyNode::add).
    pub fn add(self) -> Result<Node> {
        Ok(self.graph.insert(self.free, &self.after)?)
    }
}

impl<T> GraphMemory<T> {
    pub(crate) fn of(mem: Mem, node: Node) -> Self {
        Self { mem, node, element: PhantomData }
    }

    /// Returns the node that begins the lifetime of the memory.
    #[must_use]
    pub fn node(&self) -> Node {
        self.node
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.mem.size() / size_of::<T>()
    }

    /// Returns whether there are no elements, which is never the case.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.mem.size()
    }

    /// Returns a range of elements. As a kernel argument, it is a pointer to its first element.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`], [`MemoryError::Empty`]; and [`MemoryError::Misaligned`], which reports where
    /// ranges may start on the device.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<MemorySlice<T>> {
        MemorySlice::of(self.region()).slice(range)
    }
}

impl<T> GraphMemory<T> {
    /// Returns the same allocation with another element type.
    ///
    /// # Errors
    /// [`MemoryError::ElementSize`] when the bytes are not a whole number of `U`.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let graph = Graph::new(&queue)?;
    /// let bytes = graph.alloc::<u8>(1024).add()?;
    /// graph.fill(&bytes.cast::<f32>()?, 0.5).add()?;
    /// # Ok(()) }
    /// ```
    pub fn cast<U: Element>(&self) -> Result<GraphMemory<U>> {
        whole_elements::<U>(self.size())?;
        Ok(GraphMemory::of(self.mem.clone(), self.node))
    }
}

impl<T> Clone for GraphMemory<T> {
    fn clone(&self) -> Self {
        Self { mem: self.mem.clone(), node: self.node, element: PhantomData }
    }
}

impl<T> PartialEq for GraphMemory<T> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

impl<T> Eq for GraphMemory<T> {}

impl<T> fmt::Debug for GraphMemory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GraphMemory({} x {}, {})", self.len(), std::any::type_name::<T>(), self.node)
    }
}

impl<T> sealed::Sealed<T> for GraphMemory<T> {}

impl<T> AsSource<T> for GraphMemory<T> {}
impl<T> AsDestination<T> for GraphMemory<T> {}

impl<T> AsRegion<T> for GraphMemory<T> {
    fn region(&self) -> Region {
        Region { mem: self.mem.clone(), offset: 0, size: self.mem.size() }
    }
}

impl<T> BufferArg<T> for GraphMemory<T> {
    fn give_buffer(&self, to: &mut LaunchRef<'_>) {
        to.launch.region(self.region(), to.mode);
    }
}

/// An allocation, as a request.
#[derive(Clone, Debug)]
pub(crate) struct Alloc {
    pub(crate) mem: Mem,
    zero: bool,
}

impl Alloc {
    /// An allocation of so many bytes that is not in a graph yet. `size` is `None` if it overflows.
    pub(crate) fn new(target: &Target<'_>, size: Option<usize>, pool: MemoryPool) -> Result<Self, BuildError> {
        let (align, limit) = target.context.buffer_limits();
        let wrong = |cause: MemoryError| Err(BuildError::new("allocation", BuildCause::Memory(cause)));
        let asked = size.map_or(u64::MAX, |size| size as u64);
        if asked == 0 {
            return wrong(MemoryError::Empty { what: "an allocation" });
        }
        if pool.kind != PoolKind::Device {
            return wrong(MemoryError::PoolNotOfDevice { kind: pool.kind });
        }
        let Some(size) = size.filter(|size| *size <= limit) else {
            return wrong(too_large(asked, target.context));
        };
        let mem = Mem::of_graph(target.context, size, align);
        Ok(Self { mem, zero: pool.zero_init })
    }
}

impl Request for Alloc {
    type Checked = ();

    fn subject(&self) -> String {
        "allocation".to_owned()
    }

    fn check(&self, _: &Target<'_>) -> Result<(), BuildCause> {
        Ok(())
    }

    /// The number of the allocation is known only under the lock of the graph.
    fn prepare(&self, graph: &Graph, state: &mut State) -> Result<(), BuildCause> {
        if let Some(allocation) = self.mem.graph_allocation() {
            allocation.give_to(graph.id().number(), state.ir.allocs.len() as u32);
        }
        Ok(())
    }

    fn lower(self, (): (), state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        let Self { mem, zero } = self;
        let size = mem.size();
        let alloc = AllocId(u32::try_from(state.ir.allocs.len()).ok()?);
        let node = NodeId(state.ir.len() as u32);
        state.ir.allocs.push(AllocDecl { size, zero, node });
        accesses.push(state.access(&Region { mem, offset: 0, size }, Mode::Write));
        Some(Command::Alloc(alloc))
    }
}

/// The end of an allocation, as a request.
#[derive(Clone, Debug)]
pub(crate) struct Free(pub(crate) Region);

impl Request for Free {
    type Checked = ();

    fn subject(&self) -> String {
        "free".to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        target.check_context(&self.0, "the memory")
    }

    fn lower(self, (): (), state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        let alloc = AllocId(self.0.mem.graph_allocation()?.alloc()?);
        accesses.push(state.access(&self.0, Mode::Write));
        Some(Command::Free(alloc))
    }
}
