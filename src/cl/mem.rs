//! Memory without its element type, as graphs and commands know it: a buffer, a sub-buffer, or an address.

use std::ffi::c_void;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use opencl_sys::{CL_MEM_USE_HOST_PTR, cl_mem};

use super::allocation::Allocation;
use super::context::Context;
use super::handle::{Handle, MemKind};
use crate::caps::MemoryKind;
use crate::error::MemoryError;
use crate::images::ImageInfo;

/// Memory of any kind. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Mem(Arc<MemInner>);

/// Memory that may be gone.
#[derive(Clone, Debug)]
pub(crate) struct WeakMem(Weak<MemInner>);

/// A buffer or an allocation that may be gone.
#[derive(Clone, Debug)]
pub(crate) enum WeakRoot {
    Buffer(WeakMem),
    Allocation(Weak<Allocation>),
}

impl WeakRoot {
    /// Whether somebody has it still.
    pub(crate) fn is_alive(&self) -> bool {
        match self {
            Self::Buffer(mem) => mem.0.strong_count() > 0,
            Self::Allocation(allocation) => allocation.strong_count() > 0,
        }
    }
}

impl Promise {
    /// The number of the graph that has it.
    pub(crate) fn graph(&self) -> Option<u64> {
        self.owner.get().map(|(graph, _)| *graph)
    }

    /// Which of the graph's allocations it is.
    pub(crate) fn alloc(&self) -> Option<u32> {
        self.owner.get().map(|(_, alloc)| *alloc)
    }

    /// It becomes an allocation of a graph, once.
    pub(crate) fn give_to(&self, graph: u64, alloc: u32) {
        self.owner.get_or_init(|| (graph, alloc));
    }

    /// Where parts of it may start, in bytes.
    pub(crate) fn align(&self) -> usize {
        self.align
    }
}

impl Mem {
    /// Whether it is an image whose pixels are those of a buffer. Drivers are known that do not keep it while a launch waits.
    pub(crate) fn is_image_of_buffer(&self) -> bool {
        self.image().is_some_and(|info| info.of_buffer)
    }

    /// Whether it is an image whose pixels are those of this buffer or sub-buffer.
    pub(crate) fn is_made_of(&self, buffer: &Self) -> bool {
        let parent = self.0.parent.as_ref().filter(|_| self.image().is_some());
        parent.is_some_and(|parent| buffer.handle().is_ok_and(|its| its.raw() == parent.raw()))
    }
}

impl WeakMem {
    /// Whether it is this one, and not one that came later.
    pub(super) fn is(&self, mem: &Mem) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&mem.0))
    }
}

pub(super) struct MemInner {
    pub(super) backing: Backing,
    pub(super) context: Context,
    /// The buffer whose memory it is: itself, or the parent of a sub-buffer. Or where its allocation starts.
    pub(super) root: usize,
    /// Bytes of that.
    pub(super) root_size: usize,
    /// Where it starts in the root, in bytes.
    pub(super) offset: usize,
    pub(super) size: usize,
    /// Of a sub-buffer, the buffer. It keeps that alive by itself, but Intel's CPU runtime (2026.2) knows its handle no more
    /// when nobody else has it.
    pub(super) parent: Option<Handle<MemKind>>,
    /// Of an image, what it is.
    pub(super) image: Option<Box<ImageInfo>>,
    pub(super) flags: u64,
}

impl Drop for MemInner {
    fn drop(&mut self) {
        let (Backing::Buffer(handle), None) = (&self.backing, &self.image) else { return };
        if self.context.frees_late() {
            if self.parent.is_some() {
                self.context.freed().keep_used(handle);
            }
            self.context.drop_unused();
        }
    }
}

/// What is behind memory.
pub(super) enum Backing {
    Buffer(Handle<MemKind>),
    Pointer(Arc<Allocation>),
    /// Each executable puts memory of its own in the place.
    Promised(Arc<Promise>),
}

/// Memory that belongs to a graph.
#[derive(Debug)]
pub(crate) struct Promise {
    /// The graph's number, and which of its allocations: known when the node of the allocation is in the graph.
    owner: OnceLock<(u64, u32)>,
    /// Tells it apart from all others.
    number: usize,
    /// Where parts of it may start.
    align: usize,
}

/// How drivers are told of a byte of memory.
pub(super) enum Address<'a> {
    /// A buffer, and an offset in bytes.
    Buffer(cl_mem, usize),
    Pointer(*mut c_void, &'a Allocation),
}

/// Tells memory apart that is alive: a C handle, or an allocation of clgraph's own or of others and an offset.
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
            Backing::Promised(promise) => write!(f, "allocation {:?} bytes {range:?}", promise.owner.get()),
        }
    }
}

/// As drawings show it.
impl fmt::Display for Mem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(alloc) = self.promise().and_then(Promise::alloc) {
            return write!(f, "allocation {alloc}");
        }
        match self.address(0) {
            Address::Buffer(raw, _) => write!(f, "cl_mem {raw:p}"),
            Address::Pointer(pointer, _) => write!(f, "{} {pointer:p}", self.kind()),
        }
    }
}

impl Mem {
    pub(super) fn new(inner: MemInner) -> Self {
        Self(Arc::new(inner))
    }

    pub(super) fn inner(&self) -> &MemInner {
        &self.0
    }

    pub(crate) fn downgrade(&self) -> WeakMem {
        WeakMem(Arc::downgrade(&self.0))
    }

    /// Memory that a graph will have: `size` bytes, of which parts start at multiples of `align`.
    pub(crate) fn promised(context: &Context, size: usize, align: usize) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let promise = Promise { owner: OnceLock::new(), number, align };
        Self::whole(Backing::Promised(Arc::new(promise)), context.clone(), number, size)
    }

    /// Whether it is a buffer, of which drivers keep count.
    #[inline]
    pub(crate) fn is_buffer(&self) -> bool {
        matches!(self.0.backing, Backing::Buffer(_))
    }

    /// What it is promised by.
    pub(crate) fn promise(&self) -> Option<&Promise> {
        match &self.0.backing {
            Backing::Promised(promise) => Some(promise),
            Backing::Buffer(_) | Backing::Pointer(_) => None,
        }
    }

    /// An allocation as a whole.
    pub(super) fn of_allocation(allocation: Arc<Allocation>) -> Self {
        let (root, size, context) = (allocation.address(), allocation.size(), allocation.context().clone());
        Self::whole(Backing::Pointer(allocation), context, root, size)
    }

    /// Memory that is no `cl_mem`, from its first byte to its last.
    fn whole(backing: Backing, context: Context, root: usize, size: usize) -> Self {
        let (parent, image) = (None, None);
        Self::new(MemInner { backing, context, root, root_size: size, offset: 0, size, parent, image, flags: 0 })
    }

    /// What is behind an address of an allocation.
    pub(crate) fn part(&self, offset: usize) -> Self {
        let backing = match &self.0.backing {
            Backing::Pointer(allocation) => Backing::Pointer(Arc::clone(allocation)),
            Backing::Promised(promise) => Backing::Promised(Arc::clone(promise)),
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

    /// Tells it apart from other memory, as long as this object lives.
    pub(crate) fn id(&self) -> MemId {
        match &self.0.backing {
            Backing::Buffer(handle) => MemId(Whose::Driver, handle.raw().addr(), 0),
            Backing::Pointer(allocation) => id_of(allocation, self.0.offset),
            Backing::Promised(promise) => MemId(Whose::Graph, promise.number, self.0.offset),
        }
    }

    /// What drivers are told of a byte of it.
    pub(super) fn address(&self, offset: usize) -> Address<'_> {
        match &self.0.backing {
            Backing::Buffer(handle) => Address::Buffer(handle.raw(), offset),
            Backing::Pointer(allocation) => Address::Pointer(allocation.at(self.0.offset + offset), allocation),
            // The checks let it go to graphs only, and executables have put their own in the place.
            Backing::Promised(_) => Address::Buffer(std::ptr::null_mut(), offset),
        }
    }

    /// A byte of it for who calls OpenCL himself: object and offset, or address and 0; and whether it is an object.
    pub(crate) fn native(&self, offset: usize) -> (*mut c_void, usize, bool) {
        match self.address(offset) {
            Address::Buffer(raw, offset) => (raw, offset, true),
            Address::Pointer(pointer, _) => (pointer, 0, false),
        }
    }

    /// What its first byte's address is a multiple of, as far as that is known: the address, or an offset that will do.
    pub(crate) fn base(&self) -> usize {
        match &self.0.backing {
            Backing::Pointer(allocation) => allocation.at(self.0.offset).addr(),
            // Memory of the host, of which nothing is known.
            Backing::Buffer(_) if self.0.flags & CL_MEM_USE_HOST_PTR != 0 => 1,
            Backing::Buffer(_) | Backing::Promised(_) => self.0.offset,
        }
    }

    /// What outlives all names of the memory.
    pub(crate) fn weak_root(&self) -> WeakRoot {
        match &self.0.backing {
            Backing::Buffer(_) | Backing::Promised(_) => WeakRoot::Buffer(self.downgrade()),
            Backing::Pointer(allocation) => WeakRoot::Allocation(Arc::downgrade(allocation)),
        }
    }

    /// The allocation behind a pointer.
    pub(crate) fn allocation(&self) -> Option<&Arc<Allocation>> {
        match &self.0.backing {
            Backing::Buffer(_) | Backing::Promised(_) => None,
            Backing::Pointer(allocation) => Some(allocation),
        }
    }

    pub(crate) fn kind(&self) -> MemoryKind {
        self.allocation().map_or(MemoryKind::Buffer, |allocation| allocation.kind())
    }

    pub(crate) fn context(&self) -> &Context {
        &self.0.context
    }

    /// Identifies the underlying buffer or allocation, as long as this object lives.
    pub(crate) fn root(&self) -> MemId {
        match &self.0.backing {
            Backing::Buffer(_) => MemId(Whose::Driver, self.0.root, 0),
            Backing::Pointer(allocation) => id_of(allocation, 0),
            Backing::Promised(promise) => MemId(Whose::Graph, promise.number, 0),
        }
    }

    /// The C handle of the underlying buffer, which this object keeps alive. Of memory that is no buffer there is none.
    pub(super) fn root_raw(&self) -> cl_mem {
        std::ptr::with_exposed_provenance_mut(self.0.root)
    }

    pub(crate) fn offset_in_root(&self) -> usize {
        self.0.offset
    }

    pub(crate) fn size(&self) -> usize {
        self.0.size
    }

    /// Bytes of the underlying buffer.
    pub(crate) fn root_size(&self) -> usize {
        self.0.root_size
    }

    pub(crate) fn is_sub_buffer(&self) -> bool {
        self.0.parent.is_some()
    }

    /// What it is, if it is an image.
    pub(crate) fn image(&self) -> Option<&ImageInfo> {
        self.0.image.as_deref()
    }

    /// The handle of a buffer or an image.
    pub(super) fn handle(&self) -> Result<&Handle<MemKind>, MemoryError> {
        match &self.0.backing {
            Backing::Buffer(handle) => Ok(handle),
            Backing::Pointer(allocation) => Err(MemoryError::NoHandle { what: allocation.kind().to_string() }),
            Backing::Promised(_) => Err(MemoryError::NoHandle { what: "memory of a graph".to_owned() }),
        }
    }

    pub(crate) fn flags(&self) -> u64 {
        self.0.flags
    }
}

/// Allocations of others are told apart by who wraps them: nobody knows how they lie in each other.
fn id_of(allocation: &Arc<Allocation>, offset: usize) -> MemId {
    if allocation.is_foreign() {
        MemId(Whose::Foreign, Arc::as_ptr(allocation).addr(), offset)
    } else {
        MemId(Whose::Own, allocation.address(), offset)
    }
}
