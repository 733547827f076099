//! Memory that kernels reach through pointers: unified shared memory (USM) and shared virtual memory (SVM). `Memory` is
//! one type for these and buffers, whichever the device has.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, RangeBounds};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::caps::MemoryKind;
use crate::cl::memory::allocation::{self, Allocation, Owner};
use crate::cl::memory::host::Element;
use crate::cl::memory::region::{AsDestination, AsRegion, AsSource, Region, sealed, slice_type, whole_elements};
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::buffer::{Buffer, misaligned, sub_buffer, too_large};
use crate::cl::objects::context::OnDevice;
use crate::error::{MemoryError, Result, SetupError};

/// `len` elements of type `T` in any [kind](MemoryKind) of memory. Clones are cheap and refer to the same memory.
///
/// Graphs and queues take it wherever they take a [`Buffer`]: as kernel arguments, and in copies, fills, reads and
/// writes. Nodes and submissions keep it alive. A [`slice`](Self::slice) as a kernel argument is a pointer to its first
/// element. Slices in copies, fills, reads, writes and maps can start at any element.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// use clgraph::{Finalize, Graph, Memory, Queue};
/// let queue = Queue::new(&clgraph::best_device()?)?;
/// // The best kind that the device has: `memory.kind()` returns it.
/// let memory = Memory::<u32>::new(&queue, 8)?;
/// let graph = Graph::new(&queue)?;
/// graph.fill(&memory, 1).add()?;
/// graph.fill(&memory.slice(4..)?, 2).add()?;
/// let result = graph.read(&memory).add()?;
/// let run = graph.finalize(Finalize::default())?.submit(&queue)?;
/// run.wait()?;
/// assert_eq!(*run.get(&result)?, [1, 1, 1, 1, 2, 2, 2, 2]);
/// # Ok(()) }
/// ```
pub struct Memory<T> {
    mem: Mem,
    element: PhantomData<fn() -> T>,
}

slice_type! {
    /// A range of elements of a [`Memory`]. As a kernel argument it is a pointer to its first element, if the device can
    /// address that element: see [`Memory::slice`].
    MemorySlice<T>
}

impl<T> Memory<T> {
    /// Allocates `len` elements in the best memory for the device of a queue or a graph, with undefined content: USM
    /// device memory if the device has it, else coarse-grain SVM, else a buffer. [`kind`](Self::kind) returns which.
    ///
    /// # Errors
    /// As [`with_kind`](Self::with_kind).
    pub fn new(on: &impl OnDevice, len: usize) -> Result<Self>
    where
        T: Element,
    {
        Self::with_kind(on, on.device().caps().own_memory_kind(), len)
    }

    /// Allocates `len` elements in memory that the host can also access by its address: USM shared memory if the device
    /// has it, else fine-grain SVM, else USM host memory. See [`host`](Self::host).
    ///
    /// # Errors
    /// As [`with_kind`](Self::with_kind); [`MemoryError::NotHostReachable`] if the device has none of these kinds.
    pub fn host_accessible(on: &impl OnDevice, len: usize) -> Result<Self>
    where
        T: Element,
    {
        let caps = on.device().caps();
        let kinds = [MemoryKind::UsmShared, MemoryKind::SvmFine, MemoryKind::UsmHost];
        let device = on.device();
        let none =
            || MemoryError::NotHostReachable { device: device.name().to_owned(), has: allocation::kinds(device) };
        let kind = kinds.into_iter().find(|kind| caps.has_memory(*kind)).ok_or_else(none)?;
        Self::with_kind(on, kind, len)
    }

    /// Allocates `len` elements in one kind of memory, with undefined content.
    ///
    /// # Errors
    /// [`MemoryError::NoSuchMemory`], which names the kinds that the device has; [`MemoryError::Empty`],
    /// [`MemoryError::TooLarge`]; [`crate::DriverError`].
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// use clgraph::{Memory, MemoryKind, Queue};
    /// let queue = Queue::new(&clgraph::best_device()?)?;
    /// for kind in MemoryKind::ALL.into_iter().filter(|kind| queue.device().caps().has_memory(*kind)) {
    ///     let memory = Memory::<f32>::with_kind(&queue, kind, 100)?;
    ///     assert_eq!((memory.kind(), memory.len()), (kind, 100));
    /// }
    /// # Ok(()) }
    /// ```
    #[doc(alias = "clSVMAlloc")]
    #[doc(alias = "clDeviceMemAllocINTEL")]
    #[doc(alias = "clHostMemAllocINTEL")]
    #[doc(alias = "clSharedMemAllocINTEL")]
    pub fn with_kind(on: &impl OnDevice, kind: MemoryKind, len: usize) -> Result<Self>
    where
        T: Element,
    {
        if kind == MemoryKind::Buffer {
            return Ok(Buffer::new(on, len)?.into());
        }
        let (context, device) = (on.context(), on.device());
        let size = len.checked_mul(size_of::<T>()).ok_or_else(|| too_large(usize::MAX as u64, context))?;
        if size == 0 {
            return Err(MemoryError::Empty { what: "an allocation" }.into());
        }
        let allocation = Allocation::new(context, device, kind, size)?;
        Ok(Self { mem: Mem::of_allocation(Arc::new(allocation)), element: PhantomData })
    }

    /// Wraps a pointer to `len` elements that other code has allocated.
    ///
    /// clgraph does not free this memory, and adds no edges to graphs for it. Nodes that use it are ordered by
    /// [`after`](crate::KernelNode::after), or by the queue that is recorded.
    ///
    /// # Errors
    /// [`MemoryError::NoSuchMemory`] if the device has no memory of that kind; [`MemoryError::NotAPointer`] for
    /// [`MemoryKind::Buffer`]; [`MemoryError::UnknownPointer`] and [`MemoryError::BeyondAllocation`] if USM can report
    /// them; [`MemoryError::Empty`]; [`SetupError::NullHandle`].
    ///
    /// # Safety
    /// The pointer points to `len` elements of USM or SVM of this kind in the queue's context, or to host memory if the
    /// device can use host memory. It stays valid until nothing uses it any more: no handle to it, no graph, no
    /// executable and no command. The caller orders all uses of the memory, here and elsewhere.
    #[doc(alias = "clGetMemAllocInfoINTEL")]
    pub unsafe fn from_raw(on: &impl OnDevice, kind: MemoryKind, pointer: *mut T, len: usize) -> Result<Self>
    where
        T: Element,
    {
        if kind == MemoryKind::Buffer {
            return Err(MemoryError::NotAPointer.into());
        }
        let pointer = NonNull::new(pointer.cast::<c_void>()).ok_or(SetupError::NullHandle { what: "pointer" })?;
        let size = len.saturating_mul(size_of::<T>());
        if size == 0 {
            return Err(MemoryError::Empty { what: "memory" }.into());
        }
        let device = on.device();
        allocation::check_kind(device, kind)?;
        let api = allocation::api(device, kind)?;
        allocation::check_pointer(on.context(), device, api, pointer, size)?;
        let allocation = Allocation::of(on.context(), device, kind, api, pointer, size, Owner::Foreign);
        Ok(Self { mem: Mem::of_allocation(Arc::new(allocation)), element: PhantomData })
    }

    /// Returns the kind of the memory.
    #[must_use]
    pub fn kind(&self) -> MemoryKind {
        self.mem.kind()
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

    /// Returns the address, or `None` for a buffer. clgraph does not see other uses of the address: it adds no edges
    /// for them, and the caller has to order them.
    #[must_use]
    pub fn as_ptr(&self) -> Option<*mut T> {
        self.mem.allocation().map(|allocation| allocation.at(0).cast())
    }

    /// Returns the buffer, or `None` if the memory has another kind.
    #[must_use]
    pub fn as_buffer(&self) -> Option<Buffer<T>> {
        (!self.kind().is_pointer()).then(|| Buffer::of(self.mem.clone()))
    }

    /// Returns a range of elements. As a kernel argument it is a pointer to the first element of the range.
    ///
    /// A range of a buffer is a sub-buffer if it starts at a multiple of
    /// [`Caps::sub_buffer_align`](crate::Caps::sub_buffer_align) bytes. A range that starts elsewhere works in all
    /// commands except kernels: adding or launching a kernel with it returns an error that names the allowed starts.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`], [`MemoryError::Empty`]; for a buffer also [`crate::DriverError`].
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Memory, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let memory = Memory::<u32>::new(&queue, 8)?;
    /// queue.enqueue_fill_buffer(&memory, &[0], 0, 32, &[])?;
    /// queue.enqueue_fill_buffer(&memory.slice(3..5)?, &[7], 0, 8, &[])?;
    /// let numbers = queue.enqueue_read_buffer_owned(&memory, 0, 8, &[])?.wait()?;
    /// assert_eq!(numbers, [0, 0, 0, 7, 7, 0, 0, 0]);
    /// # Ok(()) }
    /// ```
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<MemorySlice<T>> {
        MemorySlice::of(self.region()).slice(range)
    }

    /// Returns the same memory with elements of another type.
    ///
    /// # Errors
    /// [`MemoryError::ElementSize`] if the size is no multiple of the size of `U`.
    pub fn cast<U: Element>(&self) -> Result<Memory<U>> {
        whole_elements::<U>(self.size())?;
        Ok(Memory { mem: self.mem.clone(), element: PhantomData })
    }

    /// Gives the host access to read the memory as a slice, while the guard lives. Meanwhile, submitting a command that
    /// uses the memory returns an error.
    ///
    /// Neither this call nor such a submission waits. Wait for submissions and events first
    /// ([`Submission::wait`](crate::Submission::wait), [`Queue::finish`](crate::Queue::finish)).
    ///
    /// # Errors
    /// [`MemoryError::Busy`] while a command that uses the memory is not complete, or a guard that writes lives;
    /// [`MemoryError::NotHostAccessible`] for memory that the host cannot access, or that other code has allocated;
    /// [`MemoryError::ElementAlign`].
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// use clgraph::{Memory, Queue};
    /// let queue = Queue::new(&clgraph::best_device()?)?;
    /// let Ok(memory) = Memory::<u32>::host_accessible(&queue, 4) else { return Ok(()) };
    /// memory.host_mut()?.copy_from_slice(&[1, 2, 3, 4]);
    /// queue.enqueue_fill_buffer(&memory, &[7], 0, 8, &[])?.wait()?;
    /// assert_eq!(*memory.host()?, [7, 7, 3, 4]);
    /// # Ok(()) }
    /// ```
    pub fn host(&self) -> Result<HostGuard<T>>
    where
        T: Element,
    {
        let allocation = self.for_host()?;
        allocation.guard(false)?;
        Ok(HostGuard { allocation, element: PhantomData })
    }

    /// Gives the host access to read and write the memory, while the guard lives. It behaves as [`host`](Self::host),
    /// but such a guard excludes all other guards.
    ///
    /// # Errors
    /// As [`host`](Self::host); [`MemoryError::Busy`] also while any other guard lives.
    pub fn host_mut(&self) -> Result<HostGuardMut<T>>
    where
        T: Element,
    {
        let allocation = self.for_host()?;
        allocation.guard(true)?;
        Ok(HostGuardMut { allocation, element: PhantomData })
    }

    fn for_host(&self) -> Result<Arc<Allocation>, MemoryError> {
        let allocation = self.mem.allocation().filter(|its| its.may_have_guards());
        let allocation = allocation.ok_or(MemoryError::NotHostAccessible { kind: self.kind() })?;
        if !allocation.address().is_multiple_of(align_of::<T>()) {
            return Err(MemoryError::ElementAlign { align: align_of::<T>() });
        }
        Ok(Arc::clone(allocation))
    }
}

impl<T> From<Buffer<T>> for Memory<T> {
    fn from(buffer: Buffer<T>) -> Self {
        Self { mem: buffer.region().mem, element: PhantomData }
    }
}

impl<T> Clone for Memory<T> {
    fn clone(&self) -> Self {
        Self { mem: self.mem.clone(), element: PhantomData }
    }
}

impl<T> PartialEq for Memory<T> {
    /// Returns whether both are the same memory.
    fn eq(&self, other: &Self) -> bool {
        self.mem.id() == other.mem.id()
    }
}

impl<T> Eq for Memory<T> {}

impl<T> fmt::Debug for Memory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({} x {}, {}, {:?})", self.len(), std::any::type_name::<T>(), self.kind(), self.mem)
    }
}

impl<T> MemorySlice<T> {
    /// Returns the kind of the memory.
    #[must_use]
    pub fn kind(&self) -> MemoryKind {
        self.region.mem.kind()
    }

    /// Returns the address of the first element, or `None` for a buffer. See [`Memory::as_ptr`].
    #[must_use]
    pub fn as_ptr(&self) -> Option<*mut T> {
        let Region { mem, .. } = &self.region;
        mem.allocation().map(|allocation| allocation.at(mem.offset_in_root()).cast())
    }

    /// Returns a range of its elements, as [`Memory::slice`] does.
    ///
    /// # Errors
    /// As [`Memory::slice`]; [`MemoryError::Misaligned`] for memory of a graph if the device cannot address the start
    /// of the range.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Self> {
        let part = self.region.part::<T>(&range)?;
        let Region { mem, offset, size } = &part;
        if *size == 0 {
            return Err(MemoryError::Empty { what: "a range" }.into());
        }
        // A part begins in memory of its own, so that kernels get a pointer to it: if the device has such a pointer.
        let mem = if !mem.is_buffer() {
            if let Some(allocation) = mem.graph_allocation()
                && !offset.is_multiple_of(allocation.align())
            {
                return Err(MemoryError::Misaligned { offset: *offset, align: allocation.align() }.into());
            }
            mem.part(*offset)
        } else if misaligned(mem, *offset).is_none() {
            sub_buffer(mem, *offset, *size)?
        } else {
            return Ok(Self::of(part));
        };
        Ok(Self::of(Region { mem, offset: 0, size: *size }))
    }

    /// Returns the same bytes as elements of another type.
    ///
    /// # Errors
    /// [`MemoryError::ElementSize`] if the size is no multiple of the size of `U`; [`MemoryError::ElementAlign`] if the
    /// start is not aligned for `U`, because kernels would get a misaligned pointer.
    pub fn cast<U: Element>(&self) -> Result<MemorySlice<U>> {
        if self.as_ptr().is_some_and(|start| !start.addr().is_multiple_of(align_of::<U>())) {
            return Err(MemoryError::ElementAlign { align: align_of::<U>() }.into());
        }
        whole_elements::<U>(self.size())?;
        Ok(MemorySlice::of(self.region.clone()))
    }
}

impl<T> sealed::Sealed<T> for Memory<T> {}

impl<T> AsRegion<T> for Memory<T> {
    fn region(&self) -> Region {
        Region { mem: self.mem.clone(), offset: 0, size: self.mem.size() }
    }
}

impl<T> AsSource<T> for Memory<T> {}
impl<T> AsDestination<T> for Memory<T> {}
impl<T> AsSource<T> for MemorySlice<T> {}
impl<T> AsDestination<T> for MemorySlice<T> {}

impl<T> AsRegion<T> for MemorySlice<T> {
    fn region(&self) -> Region {
        self.region.clone()
    }

    fn misplaced(&self) -> Option<MemoryError> {
        let Region { mem, offset, .. } = &self.region;
        if *offset == 0 { None } else { misaligned(mem, *offset) }
    }
}

/// Access of the host to read memory. See [`Memory::host`].
#[must_use = "the host has the memory while this lives"]
pub struct HostGuard<T> {
    allocation: Arc<Allocation>,
    element: PhantomData<T>,
}

/// Access of the host to read and write memory. See [`Memory::host_mut`].
#[must_use = "the host has the memory while this lives"]
pub struct HostGuardMut<T> {
    allocation: Arc<Allocation>,
    element: PhantomData<T>,
}

/// Returns the address and the number of elements of an allocation.
fn parts<T>(allocation: &Allocation) -> (*mut T, usize) {
    (allocation.at(0).cast(), allocation.size() / size_of::<T>())
}

impl<T: Element> Deref for HostGuard<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let (start, len) = parts(&self.allocation);
        // SAFETY: **guard**; the alignment for `T` was checked, and any bytes are a valid `T`.
        unsafe { std::slice::from_raw_parts(start, len) }
    }
}

impl<T: Element> Deref for HostGuardMut<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let (start, len) = parts(&self.allocation);
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(start, len) }
    }
}

impl<T: Element> DerefMut for HostGuardMut<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let (start, len) = parts(&self.allocation);
        // SAFETY: **guard**; this is the only guard.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }
}

impl<T> Drop for HostGuard<T> {
    fn drop(&mut self) {
        self.allocation.unguard(false);
    }
}

impl<T> Drop for HostGuardMut<T> {
    fn drop(&mut self) {
        self.allocation.unguard(true);
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for HostGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for HostGuardMut<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
