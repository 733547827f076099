//! Memory that is mapped for the host.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use opencl_sys::{CL_MAP_READ, CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION, CL_SUCCESS};

use super::MISSING;
use super::allocation::Api;
use super::buffer::Region;
use super::host::Element;
use super::map_queue::MapQueue;
use super::mem::{Address, Mem};
use super::queue::DriverQueue;
use crate::caps::MemoryKind;
use crate::error::{DriverError, Fault, MemoryError, Result};
use crate::known;

/// What the host is going to do with mapped memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MapMode {
    /// Read it (`CL_MAP_READ`).
    Read,
    /// Read and write it (`CL_MAP_READ | CL_MAP_WRITE`).
    Write,
    /// Write it without reading what was in it, so that nothing has to be brought to the host
    /// (`CL_MAP_WRITE_INVALIDATE_REGION`). What is read before it is written is any bytes.
    WriteInvalidate,
}

impl MapMode {
    pub(super) fn flags(self) -> u64 {
        match self {
            Self::Read => CL_MAP_READ,
            Self::Write => CL_MAP_READ | CL_MAP_WRITE,
            Self::WriteInvalidate => CL_MAP_WRITE_INVALIDATE_REGION,
        }
    }
}

impl fmt::Display for MapMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "read and write",
            Self::WriteInvalidate => "write",
        })
    }
}

/// Where it is told that memory could not be unmapped.
pub(crate) type Lost = Arc<OnceLock<DriverError>>;

pub(super) fn tell(lost: &Option<Lost>, outcome: Result<(), DriverError>) -> Result<(), DriverError> {
    if let (Some(lost), Err(error)) = (lost, &outcome) {
        // The first counts.
        let _ = lost.set(*error);
    }
    outcome
}

/// Whether the host can have memory by a map: all but USM of the device.
pub(crate) fn check_reach(mem: &Mem) -> Result<(), MemoryError> {
    match mem.allocation() {
        Some(its) if !its.kind().is_host_accessible() && !matches!(its.api(), Api::Svm) => {
            Err(MemoryError::NotHostAccessible { kind: its.kind() })
        }
        _ => Ok(()),
    }
}

/// Memory as a slice of the host, until it is unmapped or dropped.
///
/// `*mapped` is `[T]`, and [`as_mut_slice`](Self::as_mut_slice) writes. It keeps the memory alive. Dropping
/// it unmaps it, waits for that, and logs what a driver says against it; so it is not to be dropped in a callback of a driver.
///
/// Made by [`Queue::map`](crate::Queue::map) and [`HostTask::map`](crate::HostTask::map), and for
/// [`Graph::map`](crate::Graph::map) and [`Queue::enqueue_map`](crate::Queue::enqueue_map).
#[must_use = "memory is unmapped when this is dropped"]
pub struct Mapped<T> {
    region: Region,
    by: MapQueue,
    mode: MapMode,
    start: NonNull<T>,
    /// Whether it is to be unmapped by a command.
    by_command: bool,
    lost: Option<Lost>,
    element: PhantomData<T>,
}

// SAFETY: **threads**; the elements may go to other threads, and whoever mapped them promised that nobody else touches them.
unsafe impl<T: Send> Send for Mapped<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Mapped<T> {}

impl<T: Element> Mapped<T> {
    /// Maps a region, which is not empty. The caller has waited for what has to be complete before.
    ///
    /// Until it is unmapped no command writes to the region, and none reads it unless the host only reads: the user promised
    /// that at [`Queue::map`](crate::Queue::map).
    pub(crate) fn new(queue: &DriverQueue, region: Region, mode: MapMode) -> Result<Self> {
        check_reach(&region.mem)?;
        let (by, flags, size) = (MapQueue::of(queue)?, mode.flags(), region.size);
        let mut pointer = std::ptr::null_mut();
        // Of what the host reaches anyway nothing has to be done: its commands are complete.
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
                    && !known::keeps_mapped_svm(allocation.device().caps());
                if by_command {
                    by.map("clEnqueueSVMMap", NonNull::new(start), |queue, core, count, list, event| {
                        let Some(map) = core.clEnqueueSVMMap else { return MISSING };
                        // SAFETY: **live**, **lists**; memory that `region` keeps.
                        unsafe { map(queue, 0, flags, start, size, count, list, event) }
                    })?
                } else {
                    Ok(())
                }
            }
        };
        // Only a buffer's address is the driver's to tell.
        let start = NonNull::new(pointer.cast::<T>());
        let start = start.ok_or(DriverError::faulty("clEnqueueMapBuffer", Fault::NoAddress))?;
        let mapped = Self { region, by, mode, start, by_command, lost: None, element: PhantomData };
        waited?;
        if !start.is_aligned() {
            // It is unmapped again.
            return Err(MemoryError::ElementAlign { align: align_of::<T>() }.into());
        }
        Ok(mapped)
    }

    /// Has somebody told of memory that cannot be unmapped, also where it is dropped.
    pub(crate) fn tell(mut self, lost: Lost) -> Self {
        self.lost = Some(lost);
        self
    }
}

impl<T> Mapped<T> {
    /// Gives the memory back, and waits for that: commands that are enqueued later, on any queue, find what was written.
    ///
    /// # Errors
    /// [`DriverError`] when the driver refuses.
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
                    // SAFETY: **live**, **lists**; what the map of this buffer gave, once.
                    unsafe { (core.clEnqueueUnmapMemObject)(queue, raw, pointer, count, list, event) }
                })
            }
            Address::Pointer(..) => {
                self.by.unmap("clEnqueueSVMUnmap", NonNull::new(pointer), |queue, core, count, list, event| {
                    let Some(unmap) = core.clEnqueueSVMUnmap else { return MISSING };
                    // SAFETY: **live**, **lists**; what was mapped, once.
                    unsafe { unmap(queue, pointer, count, list, event) }
                })
            }
        };
        tell(&self.lost, outcome)
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        if let Err(error) = self.give_back() {
            log::error!("{error}: memory stays mapped; call `unmap` to get the error");
        }
    }
}

impl<T: Element> Deref for Mapped<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: mapped for as many bytes; aligned, which was looked at; any bytes are a `T`; nobody writes to it, by the
        // promise of whoever mapped it.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.region.size / size_of::<T>()) }
    }
}

impl<T: Element> Mapped<T> {
    /// The elements, to be written.
    ///
    /// # Errors
    /// [`MemoryError::MappedToRead`] if it was mapped to be read.
    pub fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        if self.mode == MapMode::Read {
            return Err(MemoryError::MappedToRead.into());
        }
        // SAFETY: as above, and nobody else reads it.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.region.size / size_of::<T>()) })
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for Mapped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
