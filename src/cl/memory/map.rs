//! Memory that is mapped for the host.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use opencl_sys::{CL_MAP_READ, CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION, CL_SUCCESS};

use crate::caps::MemoryKind;
use crate::cl::MISSING;
use crate::cl::completion::user_code::log_later;
use crate::cl::memory::allocation::Api;
use crate::cl::memory::host::Element;
use crate::cl::memory::map_queue::MapQueue;
use crate::cl::memory::region::Region;
use crate::cl::memory::untyped::{Address, Mem};
use crate::cl::objects::queue::DriverQueue;
use crate::error::{DriverError, DriverFault, MemoryError, Result};
use crate::quirks;

/// How the host uses mapped memory: [`MapRead`], [`MapWrite`] or [`MapWriteInvalidate`].
///
/// The mode is a type, so that [`Mapped`] and [`MappedImage`](crate::MappedImage) can be written only if they were
/// mapped to be written.
pub trait MapMode: sealed::Mode + Copy + fmt::Debug + Send + Sync + 'static {}

/// A [`MapMode`] that lets the host write: [`MapWrite`] or [`MapWriteInvalidate`].
pub trait MapModeMut: MapMode {}

/// The host reads the mapped memory (`CL_MAP_READ`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MapRead;

/// The host reads and writes the mapped memory (`CL_MAP_READ | CL_MAP_WRITE`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MapWrite;

/// The host writes the mapped memory and does not read the old content, so nothing has to be copied to the host
/// (`CL_MAP_WRITE_INVALIDATE_REGION`). Bytes that are read before they are written have any value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MapWriteInvalidate;

impl MapMode for MapRead {}
impl MapMode for MapWrite {}
impl MapMode for MapWriteInvalidate {}
impl MapModeMut for MapWrite {}
impl MapModeMut for MapWriteInvalidate {}

pub(crate) mod sealed {
    use super::{MapAccess, MapRead, MapWrite, MapWriteInvalidate};

    pub trait Mode {
        fn access(self) -> MapAccess;
    }

    impl Mode for MapRead {
        fn access(self) -> MapAccess {
            MapAccess::Read
        }
    }

    impl Mode for MapWrite {
        fn access(self) -> MapAccess {
            MapAccess::Write
        }
    }

    impl Mode for MapWriteInvalidate {
        fn access(self) -> MapAccess {
            MapAccess::WriteInvalidate
        }
    }
}

/// A [`MapMode`] as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapAccess {
    Read,
    Write,
    WriteInvalidate,
}

impl MapAccess {
    pub(in crate::cl) fn flags(self) -> u64 {
        match self {
            Self::Read => CL_MAP_READ,
            Self::Write => CL_MAP_READ | CL_MAP_WRITE,
            Self::WriteInvalidate => CL_MAP_WRITE_INVALIDATE_REGION,
        }
    }
}

/// The place for the error of an unmap that failed.
pub(crate) type Lost = Arc<OnceLock<DriverError>>;

pub(in crate::cl) fn tell(lost: &Option<Lost>, outcome: Result<(), DriverError>) -> Result<(), DriverError> {
    if let (Some(lost), Err(error)) = (lost, &outcome) {
        // Only the first error is kept.
        let _ = lost.set(*error);
    }
    outcome
}

/// Returns an error if a map cannot give the host access: only USM device memory cannot be mapped.
pub(crate) fn check_reach(mem: &Mem) -> Result<(), MemoryError> {
    match mem.allocation() {
        Some(its) if !its.kind().is_host_accessible() && !matches!(its.api(), Api::Svm) => {
            Err(MemoryError::NotHostAccessible { kind: its.kind() })
        }
        _ => Ok(()),
    }
}

/// Mapped memory as a slice on the host, until it is unmapped or dropped.
///
/// `*mapped` is a `[T]`. The host can write to it if `M` is [`MapWrite`] or [`MapWriteInvalidate`]:
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// # use clgraph::{Buffer, MapWrite, Queue};
/// # let queue = Queue::new(&clgraph::best_device()?)?;
/// let buffer = Buffer::from_slice(&queue, &[3_u32, 1, 2])?;
/// // SAFETY: nothing else uses the buffer.
/// let mut mapped = unsafe { queue.map(&buffer, MapWrite, &[])? };
/// mapped.sort_unstable();
/// mapped[0] = 9;
/// assert_eq!(*mapped, [9, 2, 3]);
/// # Ok(()) }
/// ```
///
/// A map for reading cannot be written:
///
/// ```compile_fail,E0594
/// # fn main() -> clgraph::Result<()> {
/// # use clgraph::{Buffer, MapRead, Queue};
/// # let queue = Queue::new(&clgraph::best_device()?)?;
/// # let buffer = Buffer::from_slice(&queue, &[3_u32, 1, 2])?;
/// // SAFETY: nothing else uses the buffer.
/// let mut mapped = unsafe { queue.map(&buffer, MapRead, &[])? };
/// mapped[0] = 9;
/// # Ok(()) }
/// ```
///
/// The value keeps the memory alive. Dropping it unmaps the memory, waits until the unmap is complete, and logs an
/// error of the driver. So it must not be dropped in a callback of a driver.
///
/// [`Queue::map`](crate::Queue::map) and [`HostTaskContext::map`](crate::HostTaskContext::map) return it;
/// [`Graph::map`](crate::Graph::map) and [`Queue::enqueue_map`](crate::Queue::enqueue_map) deliver it as their result.
#[must_use = "memory is unmapped when this is dropped"]
pub struct Mapped<T, M = MapRead> {
    region: Region,
    by: MapQueue,
    start: NonNull<T>,
    /// Whether a command has to unmap it.
    by_command: bool,
    lost: Option<Lost>,
    element: PhantomData<T>,
    mode: PhantomData<M>,
}

// SAFETY: **threads**; the elements can be used by other threads, and the caller of the map promised that nothing else
// uses them.
unsafe impl<T: Send, M> Send for Mapped<T, M> {}
// SAFETY: as above.
unsafe impl<T: Sync, M> Sync for Mapped<T, M> {}

impl<T: Element, M: MapMode> Mapped<T, M> {
    /// Maps a region that is not empty. The caller has waited for all commands that have to be complete before.
    ///
    /// Until it is unmapped, no command writes to the region, and commands read it only if the host only reads: the
    /// user promised that at [`Queue::map`](crate::Queue::map).
    pub(crate) fn new(queue: &DriverQueue, region: Region, mode: M) -> Result<Self> {
        check_reach(&region.mem)?;
        let (by, flags, size) = (MapQueue::of(queue)?, mode.access().flags(), region.size);
        let mut pointer = std::ptr::null_mut();
        // Memory that the host can access by its address needs no command: the commands that use it are complete.
        let mut by_command = true;
        let waited = match region.mem.address(region.offset) {
            Address::Buffer(raw, offset) => by.map("clEnqueueMapBuffer", None, |queue, core, count, list, event| {
                let mut status = CL_SUCCESS;
                // SAFETY: **live**, **lists**.
                pointer = unsafe {
                    (core.clEnqueueMapBuffer)(queue, raw, 0, flags, offset, size, count, list, event, &raw mut status)
                };
                status
            })?,
            Address::Pointer(start, allocation) => {
                pointer = start;
                by_command = matches!((allocation.kind(), allocation.api()), (MemoryKind::SvmCoarse, Api::Svm))
                    && !quirks::keeps_mapped_svm(allocation.device().caps());
                if by_command {
                    by.map("clEnqueueSVMMap", NonNull::new(start), |queue, core, count, list, event| {
                        let Some(map) = core.clEnqueueSVMMap else { return MISSING };
                        // SAFETY: **live**, **lists**; `region` keeps the memory alive.
                        unsafe { map(queue, 0, flags, start, size, count, list, event) }
                    })?
                } else {
                    Ok(())
                }
            }
        };
        // Only the address of a buffer comes from the driver, so only that can be null.
        let start = NonNull::new(pointer.cast::<T>());
        let start = start.ok_or(DriverError::faulty("clEnqueueMapBuffer", DriverFault::NoAddress))?;
        let mapped = Self { region, by, start, by_command, lost: None, element: PhantomData, mode: PhantomData };
        waited?;
        if !start.is_aligned() {
            // Dropping `mapped` unmaps it again.
            return Err(MemoryError::ElementAlign { align: align_of::<T>() }.into());
        }
        Ok(mapped)
    }

    /// Stores the error of a failed unmap in `lost`, also if this value is only dropped.
    pub(crate) fn tell(mut self, lost: Lost) -> Self {
        self.lost = Some(lost);
        self
    }
}

impl<T, M> Mapped<T, M> {
    /// Unmaps the memory and waits until that is complete. Commands that are enqueued later, on any queue, see what was
    /// written.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses.
    #[doc(alias = "clEnqueueUnmapMemObject")]
    #[doc(alias = "clEnqueueSVMUnmap")]
    pub fn unmap(mut self) -> Result<(), DriverError> {
        self.give_back()
    }

    fn give_back(&mut self) -> Result<(), DriverError> {
        if !std::mem::take(&mut self.by_command) {
            return Ok(());
        }
        let pointer: *mut c_void = self.start.as_ptr().cast();
        let outcome = match self.region.mem.address(self.region.offset) {
            Address::Buffer(raw, _) => {
                self.by.unmap("clEnqueueUnmapMemObject", None, |queue, core, count, list, event| {
                    // SAFETY: **live**, **lists**; the pointer is the result of the map of this buffer, and is unmapped
                    // once.
                    unsafe { (core.clEnqueueUnmapMemObject)(queue, raw, pointer, count, list, event) }
                })
            }
            Address::Pointer(..) => {
                self.by.unmap("clEnqueueSVMUnmap", NonNull::new(pointer), |queue, core, count, list, event| {
                    let Some(unmap) = core.clEnqueueSVMUnmap else { return MISSING };
                    // SAFETY: **live**, **lists**; the memory was mapped, and is unmapped once.
                    unsafe { unmap(queue, pointer, count, list, event) }
                })
            }
        };
        tell(&self.lost, outcome)
    }
}

impl<T, M> Drop for Mapped<T, M> {
    fn drop(&mut self) {
        if let Err(error) = self.give_back() {
            log_later!(
                Error,
                "{error}: memory stays mapped; call `unmap` instead of dropping the map to get this error"
            );
        }
    }
}

impl<T: Element, M> Deref for Mapped<T, M> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: this many bytes are mapped; the alignment was checked; any bytes are a valid `T`; nothing writes to
        // the memory, by the promise of the caller of the map.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.region.size / size_of::<T>()) }
    }
}

impl<T: Element, M: MapModeMut> DerefMut for Mapped<T, M> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and nothing else reads the memory.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.region.size / size_of::<T>()) }
    }
}

impl<T: Element + fmt::Debug, M> fmt::Debug for Mapped<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
