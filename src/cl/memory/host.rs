//! Host memory that transfers read and write. It is owned, aligned, and never moves.

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use crate::cl::completion::user_code::discard;

/// A type whose values can be copied to and from a device as bytes: plain data ([`bytemuck::Pod`]) that threads can
/// share.
///
/// Integers, floats, arrays of them, and `#[repr(C)]` structs that derive `Pod` qualify. All types that qualify
/// implement it.
pub trait Element: Pod + Send + Sync {}

impl<T: Pod + Send + Sync> Element for T {}

/// The data of a write, in host memory. It is owned or shared, and stays in its place until nothing needs it any more.
///
/// Make it with `into`. A `Vec`, a boxed slice and an `Arc` are moved, without a copy; a borrowed slice or array is
/// copied. The data is dropped when no graph, executable or command needs it any more, perhaps on a thread of clgraph.
///
/// ```
/// use clgraph::HostData;
/// let moved: HostData<f32> = vec![1.0_f32; 1024].into();
/// let copied: HostData<u8> = b"bytes"[..].into();
/// assert_eq!((moved.len(), copied.len()), (1024, 5));
/// ```
pub struct HostData<T>(Arc<dyn AsRef<[T]> + Send + Sync>);

/// Data whose owner is a value of the program.
struct Shared<A: Send + Sync + 'static>(ManuallyDrop<Arc<A>>);

impl<T, A: AsRef<[T]> + Send + Sync> AsRef<[T]> for Shared<A> {
    fn as_ref(&self) -> &[T] {
        (**self.0).as_ref()
    }
}

impl<A: Send + Sync> Drop for Shared<A> {
    fn drop(&mut self) {
        // SAFETY: only this call takes the value, and nothing uses it afterwards.
        let owner = unsafe { ManuallyDrop::take(&mut self.0) };
        // The drop of the owner is code of the program. It runs only if nothing else shares the owner.
        if let Some(owner) = Arc::into_inner(owner) {
            discard(owner);
        }
    }
}

impl<T> HostData<T> {
    /// Shares data that several graphs or threads use.
    #[must_use]
    pub fn shared(data: Arc<impl AsRef<[T]> + Send + Sync + 'static>) -> Self {
        Self(Arc::new(Shared(ManuallyDrop::new(data))))
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the elements.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        (*self.0).as_ref()
    }
}

impl<T: Element> HostData<T> {
    pub(crate) fn into_bytes(self) -> HostBytes {
        // An `AsRef` may return another slice each time. A transfer needs one slice, so it is asked only once, here.
        let bytes = bytemuck::cast_slice::<T, u8>((*self.0).as_ref());
        let (start, len) = (bytes.as_ptr(), bytes.len());
        HostBytes { start, len, _owner: Arc::new(self) }
    }
}

impl<T> Clone for HostData<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for HostData<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostData({} elements)", self.len())
    }
}

impl<T: Element> From<Vec<T>> for HostData<T> {
    fn from(data: Vec<T>) -> Self {
        Self(Arc::new(data))
    }
}

impl<T: Element> From<Box<[T]>> for HostData<T> {
    fn from(data: Box<[T]>) -> Self {
        Self(Arc::new(data))
    }
}

impl<T: Element> From<Arc<[T]>> for HostData<T> {
    fn from(data: Arc<[T]>) -> Self {
        Self(Arc::new(data))
    }
}

impl<T: Element> From<Arc<Vec<T>>> for HostData<T> {
    fn from(data: Arc<Vec<T>>) -> Self {
        Self(data)
    }
}

impl<T: Element> From<&[T]> for HostData<T> {
    fn from(data: &[T]) -> Self {
        data.to_vec().into()
    }
}

impl<T: Element> From<&Vec<T>> for HostData<T> {
    fn from(data: &Vec<T>) -> Self {
        data.clone().into()
    }
}

impl<T: Element, const N: usize> From<[T; N]> for HostData<T> {
    fn from(data: [T; N]) -> Self {
        Vec::from(data).into()
    }
}

impl<T: Element, const N: usize> From<&[T; N]> for HostData<T> {
    fn from(data: &[T; N]) -> Self {
        data[..].into()
    }
}

impl<T: Element> From<&HostData<T>> for HostData<T> {
    fn from(data: &HostData<T>) -> Self {
        data.clone()
    }
}

/// The bytes of some [`HostData`] of any element type.
#[derive(Clone)]
pub(crate) struct HostBytes {
    start: *const u8,
    len: usize,
    _owner: Arc<dyn Send + Sync>,
}

// SAFETY: **host memory**. It points into its owner, which is `Send + Sync` and is only read.
unsafe impl Send for HostBytes {}
// SAFETY: as above.
unsafe impl Sync for HostBytes {}

impl HostBytes {
    /// Returns whether both are the same memory.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.start, self.len) == (other.start, other.len)
    }

    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(in crate::cl) fn as_ptr(&self) -> *const u8 {
        self.start
    }
}

impl fmt::Debug for HostBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBytes({} bytes)", self.len)
    }
}

/// A block with the largest alignment that an OpenCL type has (`long16`).
#[derive(Clone, Copy)]
#[repr(C, align(128))]
struct Block([u8; 128]);

// SAFETY: the block is 128 bytes, and zeros are valid for bytes.
unsafe impl Zeroable for Block {}

/// Memory that a read node writes: one result of one submission.
///
/// The driver writes it between the enqueue and the completion of that submission. The host reads it afterwards, until
/// the slot is used again. A slot can be used again when nothing else has a reference to it: see
/// [`Ring`](crate::exec::submit::result_slots::Ring).
pub(crate) struct Slot {
    blocks: UnsafeCell<Box<[Block]>>,
    len: usize,
}

// SAFETY: **host memory**. Only the driver writes the box. It is read only through `bytes`, whose caller promises that
// no write is running.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Slot {
    /// The largest alignment of an element.
    pub(crate) const ALIGN: usize = align_of::<Block>();

    /// Allocates `len` zero bytes, or returns `None` if the host has not enough memory.
    pub(crate) fn new(len: usize) -> Option<Self> {
        let blocks = bytemuck::try_zeroed_slice_box(len.div_ceil(size_of::<Block>())).ok()?;
        Some(Self { blocks: UnsafeCell::new(blocks), len })
    }

    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns a copy, or `None` if the host has not enough memory. The caller promises what it does for
    /// [`bytes`](Self::bytes).
    pub(crate) fn copied(&self, done: &Completed) -> Option<Self> {
        let copy = Self::new(self.len)?;
        // SAFETY: the copy has as many bytes, and nobody else has it yet.
        unsafe { copy.as_mut_ptr().copy_from_nonoverlapping(self.bytes(done).as_ptr(), self.len) };
        Some(copy)
    }

    /// Returns the address to which the driver writes.
    pub(in crate::cl) fn as_mut_ptr(&self) -> *mut u8 {
        // SAFETY: this only takes the address; the box itself is never replaced.
        unsafe { (*self.blocks.get()).as_mut_ptr().cast() }
    }

    /// Returns the bytes. The caller holds a lease on the slot, and the submission of the slot is complete.
    ///
    /// A lease is a clone of the `Arc` around the slot. A ring gives the slot to another submission only when no lease
    /// is left. So nothing writes to the slot while a lease is held and its submission is complete; [`Completed`]
    /// proves the completion.
    pub(crate) fn bytes(&self, _: &Completed) -> &[u8] {
        // SAFETY: **host memory**: no write is running, by the argument above; the box holds at least `len` bytes.
        unsafe { std::slice::from_raw_parts((*self.blocks.get()).as_ptr().cast(), self.len) }
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({} bytes)", self.len)
    }
}

/// Proves that a submission or a read is complete. Only code that has seen its event complete makes this value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completed(());

impl Completed {
    /// Makes the proof. Only the holder of a lease may call this, after the event that follows all writes to the slot
    /// is complete.
    pub(crate) fn witnessed() -> Self {
        Self(())
    }
}
