//! Host memory that transfers read and write: owned, never moved, aligned.

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::user_code::discard;

/// A type whose values may go to a device as bytes: plain data ([`bytemuck::Pod`]) that threads may share.
///
/// Integers, floats, arrays of them, and `#[repr(C)]` structs that derive `Pod`. It is implemented for all that
/// qualify.
pub trait Element: Pod + Send + Sync {}

impl<T: Pod + Send + Sync> Element for T {}

/// Host data for a write: owned or shared, kept where it is until nothing needs it.
///
/// It is made by `into` from what a program has. A `Vec`, a `Box` of a slice and an `Arc` are taken over without a
/// copy; a borrowed slice or array is copied. It is dropped when no graph, executable or command needs it any more,
/// perhaps on a thread of clgraph's own.
///
/// ```
/// use clgraph::HostData;
/// let moved: HostData<f32> = vec![1.0_f32; 1024].into();
/// let copied: HostData<u8> = b"bytes"[..].into();
/// assert_eq!((moved.len(), copied.len()), (1024, 5));
/// ```
pub struct HostData<T>(Arc<dyn AsRef<[T]> + Send + Sync>);

/// Data with an owner of the program's.
struct Shared<A: Send + Sync + 'static>(ManuallyDrop<Arc<A>>);

impl<T, A: AsRef<[T]> + Send + Sync> AsRef<[T]> for Shared<A> {
    fn as_ref(&self) -> &[T] {
        (**self.0).as_ref()
    }
}

impl<A: Send + Sync> Drop for Shared<A> {
    fn drop(&mut self) {
        // SAFETY: this is the only place that takes it, and the last use of it.
        let owner = unsafe { ManuallyDrop::take(&mut self.0) };
        // The end of the owner is the program's affair, unless somebody else has it still.
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

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        (*self.0).as_ref()
    }
}

impl<T: Element> HostData<T> {
    pub(crate) fn into_bytes(self) -> HostBytes {
        // An `AsRef` may answer differently each time; a transfer needs one answer, so it is asked once, here.
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

/// The bytes of some [`HostData`], whatever its type was.
#[derive(Clone)]
pub(crate) struct HostBytes {
    start: *const u8,
    len: usize,
    _owner: Arc<dyn Send + Sync>,
}

// SAFETY: **host memory**. It points into the owner beside it, which is `Send + Sync` and only ever read.
unsafe impl Send for HostBytes {}
// SAFETY: as above.
unsafe impl Sync for HostBytes {}

impl HostBytes {
    /// Whether it is the same memory.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.start, self.len) == (other.start, other.len)
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn as_ptr(&self) -> *const u8 {
        self.start
    }
}

impl fmt::Debug for HostBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBytes({} bytes)", self.len)
    }
}

/// As large an alignment as an OpenCL type has (`long16`).
#[derive(Clone, Copy)]
#[repr(C, align(128))]
struct Block([u8; 128]);

// SAFETY: 128 bytes, for which zeros are valid.
unsafe impl Zeroable for Block {}

/// Memory that a read node writes: one result of one submission.
///
/// The driver writes it between an enqueue and the completion of that submission; the host reads it after that and
/// before the slot is used again. Who may use it again is decided by counting references: see
/// [`Ring`](crate::exec::ring::Ring).
pub(crate) struct Slot {
    blocks: UnsafeCell<Box<[Block]>>,
    len: usize,
}

// SAFETY: **host memory**. The box is written by the driver only, and read only through `bytes`, whose caller promises
// that no write is going on.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Slot {
    /// The largest alignment of an element.
    pub(crate) const ALIGN: usize = align_of::<Block>();

    /// Zeroed memory of `len` bytes, or none when the host has none left.
    pub(crate) fn new(len: usize) -> Option<Self> {
        let blocks = bytemuck::try_zeroed_slice_box(len.div_ceil(size_of::<Block>())).ok()?;
        Some(Self { blocks: UnsafeCell::new(blocks), len })
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where the driver writes.
    pub(super) fn as_mut_ptr(&self) -> *mut u8 {
        // SAFETY: only the address is taken; the box itself is never replaced.
        unsafe { (*self.blocks.get()).as_mut_ptr().cast() }
    }

    /// The bytes, for the holder of a lease on the slot whose submission is complete.
    ///
    /// The lease is a clone of the `Arc` around the slot. A ring gives a slot to another submission only when no lease
    /// is left, so nothing writes to it while one is held and its submission is complete; [`Completed`] shows that it is.
    pub(crate) fn bytes(&self, _: &Completed) -> &[u8] {
        // SAFETY: **host memory**: no write is going on, by the argument above; the box holds at least `len` bytes.
        unsafe { std::slice::from_raw_parts((*self.blocks.get()).as_ptr().cast(), self.len) }
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({} bytes)", self.len)
    }
}

/// Shows that a submission, or a read, is complete. Only who has seen its event complete makes one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completed(());

impl Completed {
    /// To be called by the holder of a lease alone, once the event behind all commands that write the slot is complete.
    pub(crate) fn witnessed() -> Self {
        Self(())
    }
}
