//! Memory without its element type, as graphs and commands use it: a buffer, a sub-buffer, an image or an address.

use std::ffi::c_void;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use opencl_sys::{CL_MEM_USE_HOST_PTR, cl_mem};

use crate::caps::MemoryKind;
use crate::cl::memory::allocation::Allocation;
use crate::cl::objects::context::Context;
use crate::cl::objects::handle::{Handle, MemKind};
use crate::error::MemoryError;
use crate::images::ImageInfo;

/// Memory of any kind. Clones are cheap.
#[derive(Clone, Debug)]
pub(crate) struct Mem(Arc<MemInner>);

/// A weak reference to memory.
#[derive(Clone, Debug)]
pub(crate) struct WeakMem(Weak<MemInner>);

/// A weak reference to a buffer or an allocation.
#[derive(Clone, Debug)]
pub(crate) enum WeakRoot {
    Buffer(WeakMem),
    Allocation(Weak<Allocation>),
}

impl WeakRoot {
    /// Returns whether the memory still exists.
    pub(crate) fn is_alive(&self) -> bool {
        match self {
            Self::Buffer(mem) => mem.0.strong_count() > 0,
            Self::Allocation(allocation) => allocation.strong_count() > 0,
        }
    }
}

impl GraphAllocation {
    /// Returns the number of the graph that owns the memory.
    pub(crate) fn graph(&self) -> Option<u64> {
        self.owner.get().map(|(graph, _)| *graph)
    }

    /// Returns which of the graph's allocations it is.
    pub(crate) fn alloc(&self) -> Option<u32> {
        self.owner.get().map(|(_, alloc)| *alloc)
    }

    /// Makes the memory an allocation of a graph. This happens once.
    pub(crate) fn give_to(&self, graph: u64, alloc: u32) {
        self.owner.get_or_init(|| (graph, alloc));
    }

    /// Returns the alignment of parts of the memory, in bytes.
    pub(crate) fn align(&self) -> usize {
        self.align
    }
}

impl Mem {
    /// Returns whether it is an image made of a buffer. Some drivers do not keep such an image alive while a launch
    /// waits.
    pub(crate) fn is_image_of_buffer(&self) -> bool {
        self.image().is_some_and(|info| info.of_buffer)
    }

    /// Returns whether it is an image made of this buffer or sub-buffer.
    pub(crate) fn is_made_of(&self, buffer: &Self) -> bool {
        let parent = self.0.parent.as_ref().filter(|_| self.image().is_some());
        parent.is_some_and(|parent| buffer.handle().is_ok_and(|its| its.raw() == parent.buffer.raw()))
    }
}

impl WeakMem {
    /// Returns whether it is this memory, and not newer memory with the same handle.
    pub(in crate::cl) fn is(&self, mem: &Mem) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&mem.0))
    }
}

pub(in crate::cl) struct MemInner {
    pub(in crate::cl) backing: Backing,
    pub(in crate::cl) context: Context,
    /// Identifies the memory that contains it: the buffer itself, the parent of a sub-buffer, or the start of an
    /// allocation.
    pub(in crate::cl) root: usize,
    /// Size of the root in bytes.
    pub(in crate::cl) root_size: usize,
    /// Where it starts in the root, in bytes.
    pub(in crate::cl) offset: usize,
    pub(in crate::cl) size: usize,
    /// The buffer of a sub-buffer. A sub-buffer keeps its buffer alive, but Intel's CPU runtime (2026.2) rejects the
    /// handle of the buffer if nothing else has a reference to it.
    pub(in crate::cl) parent: Option<Parent>,
    /// The shape and format of an image.
    pub(in crate::cl) image: Option<Box<ImageInfo>>,
    pub(in crate::cl) flags: u64,
}

impl Drop for MemInner {
    fn drop(&mut self) {
        let (Backing::Buffer(handle), None) = (&self.backing, &self.image) else { return };
        if self.context.must_free_late() {
            if self.parent.is_some() {
                self.context.freed().keep(handle);
            } else {
                self.context.drop_unused();
            }
        }
    }
}

/// The buffer of a sub-buffer, or of an image.
pub(in crate::cl) struct Parent {
    pub(in crate::cl) buffer: Handle<MemKind>,
    /// Where the last reference to the sub-buffer may be released only at certain times: see `freed.rs`.
    must_free_late: Option<Context>,
}

impl Parent {
    pub(in crate::cl) fn new(buffer: Handle<MemKind>, context: &Context) -> Self {
        Self { buffer, must_free_late: context.must_free_late().then(|| context.clone()) }
    }
}

impl Drop for Parent {
    /// The handle of the sub-buffer has been dropped before, because it is the first field of [`MemInner`].
    fn drop(&mut self) {
        if let Some(context) = &self.must_free_late {
            context.drop_unused();
        }
    }
}

/// The object that provides the memory.
pub(in crate::cl) enum Backing {
    Buffer(Handle<MemKind>),
    Pointer(Arc<Allocation>),
    /// Memory of a graph. Each executable replaces it with its own memory.
    GraphAllocation(Arc<GraphAllocation>),
}

/// Memory that belongs to a graph.
#[derive(Debug)]
pub(crate) struct GraphAllocation {
    /// The graph's number and the number of the allocation. They are set when the allocation node is added to the
    /// graph.
    owner: OnceLock<(u64, u32)>,
    /// A unique number.
    number: usize,
    /// The alignment of parts, in bytes.
    align: usize,
}

/// How drivers name a byte of memory.
pub(in crate::cl) enum Address<'a> {
    /// A buffer and an offset in bytes.
    Buffer(cl_mem, usize),
    Pointer(*mut c_void, &'a Allocation),
}

/// Identifies memory while it exists: by a C handle, or by an allocation and an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct MemId(Whose, usize, usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Whose {
    Driver,
    Own,
    Foreign,
    Graph,
}

impl fmt::Debug for MemInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = self.offset..self.offset + self.size;
        match &self.backing {
            Backing::Buffer(handle) => write!(f, "{handle:?} bytes {range:?}"),
            Backing::Pointer(allocation) => write!(f, "{:p} bytes {range:?}", allocation.at(0)),
            Backing::GraphAllocation(allocation) => {
                write!(f, "allocation {:?} bytes {range:?}", allocation.owner.get())
            }
        }
    }
}

/// The form in drawings.
impl fmt::Display for Mem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(alloc) = self.graph_allocation().and_then(GraphAllocation::alloc) {
            return write!(f, "allocation {alloc}");
        }
        match self.address(0) {
            Address::Buffer(raw, _) => write!(f, "cl_mem {raw:p}"),
            Address::Pointer(pointer, _) => write!(f, "{} {pointer:p}", self.kind()),
        }
    }
}

impl Mem {
    pub(in crate::cl) fn new(inner: MemInner) -> Self {
        Self(Arc::new(inner))
    }

    pub(in crate::cl) fn inner(&self) -> &MemInner {
        &self.0
    }

    pub(crate) fn downgrade(&self) -> WeakMem {
        WeakMem(Arc::downgrade(&self.0))
    }

    /// Makes memory that a graph will provide: `size` bytes, whose parts start at multiples of `align`.
    pub(crate) fn of_graph(context: &Context, size: usize, align: usize) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let allocation = GraphAllocation { owner: OnceLock::new(), number, align };
        Self::whole(Backing::GraphAllocation(Arc::new(allocation)), context.clone(), number, size)
    }

    /// Returns whether it is a buffer, which drivers count references of.
    #[inline]
    pub(crate) fn is_buffer(&self) -> bool {
        matches!(self.0.backing, Backing::Buffer(_))
    }

    /// Returns the graph allocation, if it is memory of a graph.
    pub(crate) fn graph_allocation(&self) -> Option<&GraphAllocation> {
        match &self.0.backing {
            Backing::GraphAllocation(allocation) => Some(allocation),
            Backing::Buffer(_) | Backing::Pointer(_) => None,
        }
    }

    /// Makes memory from a whole allocation.
    pub(in crate::cl) fn of_allocation(allocation: Arc<Allocation>) -> Self {
        let (root, size, context) = (allocation.address(), allocation.size(), allocation.context().clone());
        Self::whole(Backing::Pointer(allocation), context, root, size)
    }

    /// Makes memory that is not a `cl_mem`, from its first byte to its last.
    fn whole(backing: Backing, context: Context, root: usize, size: usize) -> Self {
        let (parent, image) = (None, None);
        Self::new(MemInner { backing, context, root, root_size: size, offset: 0, size, parent, image, flags: 0 })
    }

    /// Returns the part of an allocation from an offset to the end.
    pub(crate) fn part(&self, offset: usize) -> Self {
        let backing = match &self.0.backing {
            Backing::Pointer(allocation) => Backing::Pointer(Arc::clone(allocation)),
            Backing::GraphAllocation(allocation) => Backing::GraphAllocation(Arc::clone(allocation)),
            Backing::Buffer(_) => return self.clone(),
        };
        let MemInner { context, root, root_size, flags, .. } = &*self.0;
        Self(Arc::new(MemInner {
            backing,
            context: context.clone(),
            root: *root,
            root_size: *root_size,
            offset: self.0.offset + offset,
            size: self.0.size.saturating_sub(offset),
            parent: None,
            image: None,
            flags: *flags,
        }))
    }

    /// Identifies the memory among all memory, while this object lives.
    pub(crate) fn id(&self) -> MemId {
        match &self.0.backing {
            Backing::Buffer(handle) => MemId(Whose::Driver, handle.raw().addr(), 0),
            Backing::Pointer(allocation) => id_of(allocation, self.0.offset),
            Backing::GraphAllocation(allocation) => MemId(Whose::Graph, allocation.number, self.0.offset),
        }
    }

    /// Returns how drivers name a byte of the memory.
    pub(in crate::cl) fn address(&self, offset: usize) -> Address<'_> {
        match &self.0.backing {
            Backing::Buffer(handle) => Address::Buffer(handle.raw(), offset),
            Backing::Pointer(allocation) => Address::Pointer(allocation.at(self.0.offset + offset), allocation),
            // The checks admit such memory only in graphs, and executables have replaced it with their own memory.
            Backing::GraphAllocation(_) => Address::Buffer(std::ptr::null_mut(), offset),
        }
    }

    /// Returns a byte for code that calls OpenCL itself: an object and an offset, or an address and 0; and whether it
    /// is an object.
    pub(crate) fn native(&self, offset: usize) -> (*mut c_void, usize, bool) {
        match self.address(offset) {
            Address::Buffer(raw, offset) => (raw, offset, true),
            Address::Pointer(pointer, _) => (pointer, 0, false),
        }
    }

    /// Returns a number with the known alignment of the first byte: the address, or an offset that is as good.
    pub(crate) fn base(&self) -> usize {
        match &self.0.backing {
            Backing::Pointer(allocation) => allocation.at(self.0.offset).addr(),
            // Memory of the host, whose alignment is unknown.
            Backing::Buffer(_) if self.0.flags & CL_MEM_USE_HOST_PTR != 0 => 1,
            Backing::Buffer(_) | Backing::GraphAllocation(_) => self.0.offset,
        }
    }

    /// Returns a weak reference that stays valid after all names of the memory are gone.
    pub(crate) fn weak_root(&self) -> WeakRoot {
        match &self.0.backing {
            Backing::Buffer(_) | Backing::GraphAllocation(_) => WeakRoot::Buffer(self.downgrade()),
            Backing::Pointer(allocation) => WeakRoot::Allocation(Arc::downgrade(allocation)),
        }
    }

    /// Returns the allocation, if the memory has an address.
    pub(crate) fn allocation(&self) -> Option<&Arc<Allocation>> {
        match &self.0.backing {
            Backing::Buffer(_) | Backing::GraphAllocation(_) => None,
            Backing::Pointer(allocation) => Some(allocation),
        }
    }

    pub(crate) fn kind(&self) -> MemoryKind {
        self.allocation().map_or(MemoryKind::Buffer, |allocation| allocation.kind())
    }

    pub(crate) fn context(&self) -> &Context {
        &self.0.context
    }

    /// Identifies the underlying buffer or allocation, while this object lives.
    pub(crate) fn root(&self) -> MemId {
        match &self.0.backing {
            Backing::Buffer(_) => MemId(Whose::Driver, self.0.root, 0),
            Backing::Pointer(allocation) => id_of(allocation, 0),
            Backing::GraphAllocation(allocation) => MemId(Whose::Graph, allocation.number, 0),
        }
    }

    /// Returns the C handle of the underlying buffer, which this object keeps alive. The memory must be a
    /// buffer.
    pub(in crate::cl) fn root_raw(&self) -> cl_mem {
        std::ptr::with_exposed_provenance_mut(self.0.root)
    }

    pub(crate) fn offset_in_root(&self) -> usize {
        self.0.offset
    }

    pub(crate) fn size(&self) -> usize {
        self.0.size
    }

    /// Returns the size of the underlying buffer in bytes.
    pub(crate) fn root_size(&self) -> usize {
        self.0.root_size
    }

    pub(crate) fn is_sub_buffer(&self) -> bool {
        self.0.parent.is_some()
    }

    /// Returns the shape and format, if it is an image.
    pub(crate) fn image(&self) -> Option<&ImageInfo> {
        self.0.image.as_deref()
    }

    /// Returns the handle of a buffer or an image.
    pub(in crate::cl) fn handle(&self) -> Result<&Handle<MemKind>, MemoryError> {
        match &self.0.backing {
            Backing::Buffer(handle) => Ok(handle),
            Backing::Pointer(allocation) => Err(MemoryError::NoHandle { what: allocation.kind().to_string() }),
            Backing::GraphAllocation(_) => Err(MemoryError::NoHandle { what: "memory of a graph".to_owned() }),
        }
    }

    pub(crate) fn flags(&self) -> u64 {
        self.0.flags
    }
}

/// Foreign allocations are identified by their wrapper, because clgraph does not know how they overlap.
fn id_of(allocation: &Arc<Allocation>, offset: usize) -> MemId {
    if allocation.is_foreign() {
        MemId(Whose::Foreign, Arc::as_ptr(allocation).addr(), offset)
    } else {
        MemId(Whose::Own, allocation.address(), offset)
    }
}
