//! Memory that a graph owns: nodes from which on it is there, and nodes after which it is not needed.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use super::argument::{BufferArg, LaunchRef};
use super::request::{Request, Target};
use super::tables::Writer;
use super::{After, Graph, Node, after_methods};
use crate::cl::buffer::{AsRegion, Region, resolve, sealed};
use crate::cl::context::InContext;
use crate::cl::host::Element;
use crate::cl::mem::Mem;
use crate::cl::memory::MemorySlice;
use crate::error::{BuildCause, BuildError, MemoryError, Result};
use crate::ir::{Access, AllocDecl, AllocId, Mode, NodeId, Op};

/// `len` elements of type `T` that belong to a graph: temporaries between its nodes.
///
/// Each executable has memory of its own for it, and allocations whose lives do not overlap share it: see
/// [`Executable::required_memory`](crate::Executable::required_memory). It goes wherever a node of its graph takes memory,
/// and nowhere else. Cheap to clone: clones are the same allocation.
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
pub struct GraphMemory<T> {
    mem: Mem,
    node: Node,
    element: PhantomData<fn() -> T>,
}

impl Graph {
    /// Starts an allocation of `len` elements, which belongs to the graph. What is in it is undefined.
    ///
    /// Without a [`free`](Self::free) it lives as long as the executable, and keeps its content from one submission to the
    /// next.
    #[doc(alias = "async_malloc")]
    #[doc(alias = "cudaGraphAddMemAllocNode")]
    pub fn alloc<T: Element>(&self, len: usize) -> AllocNode<'_, T> {
        let size = len.checked_mul(size_of::<T>());
        AllocNode { graph: self, after: After::default(), size, zero: false, element: PhantomData }
    }

    /// Starts the end of an allocation: no later node may use it, and others may have its bytes.
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
    /// Bytes, if they can be counted.
    size: Option<usize>,
    zero: bool,
    element: PhantomData<T>,
}

impl<T: Element> AllocNode<'_, T> {
    after_methods!();

    /// It is zero when the graph is finalized, and not again for each submission.
    pub fn zero_init(mut self) -> Self {
        self.zero = true;
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// [`MemoryError::Empty`], [`MemoryError::TooLarge`], in a [`BuildError`], and those of
    /// [`EmptyNode::add`](super::EmptyNode::add).
    pub fn add(self) -> Result<GraphMemory<T>> {
        let Self { graph, after, size, zero, .. } = self;
        let caps = graph.device().caps();
        let wrong = |cause: MemoryError| BuildError::new("allocation", BuildCause::Memory(cause));
        let asked = size.map_or(u64::MAX, |size| size as u64);
        if asked == 0 {
            return Err(wrong(MemoryError::Empty { what: "an allocation" }).into());
        }
        let Some(size) = size.filter(|_| asked <= caps.max_allocation) else {
            let (limit, device) = (caps.max_allocation, graph.device().name().to_owned());
            return Err(wrong(MemoryError::TooLarge { asked, limit, device }).into());
        };
        // Its number is known when it is the graph's turn.
        let align = caps.sub_buffer_align.max(1);
        let made = |alloc| Mem::promised(graph.context(), graph.id().number(), alloc, size, align);
        let (node, mem) = graph.insert_alloc(&after, |alloc| Alloc { mem: made(alloc), size, zero })?;
        Ok(GraphMemory { mem, node, element: PhantomData })
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
    /// That nothing uses the memory afterwards, or frees it again, is looked at when the graph is finalized.
    ///
    /// # Errors
    /// [`BuildCause::GraphMemory`] for an allocation of another graph, and those of
    /// [`EmptyNode::add`](super::EmptyNode::add).
    pub fn add(self) -> Result<Node> {
        Ok(self.graph.insert(self.free, &self.after)?)
    }
}

impl<T> GraphMemory<T> {
    /// The node from which on it is there.
    #[must_use]
    pub fn node(&self) -> Node {
        self.node
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.mem.size() / size_of::<T>()
    }

    /// Whether it has no elements, which none has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A range of elements: as a kernel argument, one that starts at its first element.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`], [`MemoryError::Empty`]; [`MemoryError::Misaligned`], which says where ranges may start
    /// on the device.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<MemorySlice<T>> {
        let (start, end) = resolve(&range, self.len())?;
        if start == end {
            return Err(MemoryError::Empty { what: "a range" }.into());
        }
        let (offset, align) = (start * size_of::<T>(), self.mem.promise().map_or(1, |promise| promise.align()));
        if !offset.is_multiple_of(align) {
            return Err(MemoryError::Misaligned { offset, align }.into());
        }
        Ok(MemorySlice::of(self.mem.part(offset), (end - start) * size_of::<T>()))
    }
}

impl<T> Clone for GraphMemory<T> {
    fn clone(&self) -> Self {
        Self { mem: self.mem.clone(), node: self.node, element: PhantomData }
    }
}

impl<T> fmt::Debug for GraphMemory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GraphMemory({} x {}, {})", self.len(), std::any::type_name::<T>(), self.node)
    }
}

impl<T> sealed::Sealed<T> for GraphMemory<T> {}

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

/// An allocation.
#[derive(Clone, Debug)]
pub(crate) struct Alloc {
    pub(crate) mem: Mem,
    size: usize,
    zero: bool,
}

impl Request for Alloc {
    type Checked = ();

    fn subject(&self) -> String {
        "allocation".to_owned()
    }

    fn check(&self, _: &Target<'_>) -> Result<(), BuildCause> {
        Ok(())
    }

    fn lower(self, (): (), state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        let Self { mem, size, zero } = self;
        let alloc = AllocId(u32::try_from(state.ir.allocs.len()).ok()?);
        let node = NodeId(state.ir.len() as u32);
        state.ir.allocs.push(AllocDecl { size, zero, node });
        accesses.push(state.access(&Region { mem, offset: 0, size }, Mode::Write));
        Some(Op::Alloc(alloc))
    }
}

/// The end of one.
#[derive(Clone, Debug)]
pub(crate) struct Free(Region);

impl Request for Free {
    type Checked = ();

    fn subject(&self) -> String {
        "free".to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        target.check_context(&self.0, "the memory")
    }

    fn lower(self, (): (), state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        let alloc = AllocId(self.0.mem.promise()?.alloc);
        accesses.push(state.access(&self.0, Mode::Write));
        Some(Op::Free(alloc))
    }
}
