//! Memory that is mapped for the host.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use opencl_sys::{CL_INVALID_OPERATION, CL_MAP_READ, CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION, CL_SUCCESS};

use super::allocation::Api;
use super::buffer::Region;
use super::enqueue::{self, To, Waits};
use super::event::DriverEvent;
use super::host::Element;
use super::mem::Address;
use super::queue::DriverQueue;
use crate::caps::MemoryKind;
use crate::error::{DriverError, MemoryError, Result, Status};
use crate::known;

/// What the host is going to do with mapped memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MapMode {
    /// Read it.
    Read,
    /// Read and write it.
    Write,
    /// Write it without reading what was in it, so that nothing has to be brought to the host.
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

/// Memory as a slice of the host, until it is unmapped or dropped.
///
/// Made by [`Queue::map`](crate::Queue::map).
pub struct Mapped<T> {
    region: Region,
    queue: DriverQueue,
    mode: MapMode,
    start: NonNull<T>,
    /// Whether it is to be unmapped by a command.
    by_command: bool,
    element: PhantomData<T>,
}

// SAFETY: **threads**; the elements may go to other threads, and whoever mapped them promised that nobody else touches them.
unsafe impl<T: Send> Send for Mapped<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Mapped<T> {}

impl<T: Element> Mapped<T> {
    /// Maps a region, which is not empty, when what is on an in-order queue before is complete. Blocks until then.
    ///
    /// Until it is unmapped no command writes to the region, and none reads it unless the host only reads: the user promised
    /// that at [`Queue::map`](crate::Queue::map).
    pub(crate) fn new(queue: &DriverQueue, region: Region, mode: MapMode) -> Result<Self> {
        let flags = mode.flags();
        let to = To { queue, waits: &Waits::NONE, event: true };
        let (size, mut by_command) = (region.size, true);
        let mut pointer = std::ptr::null_mut();
        let event = match region.mem.address(region.offset) {
            Address::Buffer(raw, offset) => enqueue::enqueue("clEnqueueMapBuffer", &to, |core, count, list, event| {
                let mut status = CL_SUCCESS;
                // SAFETY: **live**, **lists**.
                pointer = unsafe {
                    (core.clEnqueueMapBuffer)(
                        queue.raw(),
                        raw,
                        1,
                        flags,
                        offset,
                        size,
                        count,
                        list,
                        event,
                        &raw mut status,
                    )
                };
                status
            })?,
            Address::Pointer(start, allocation) => {
                pointer = start;
                match (allocation.kind(), allocation.api()) {
                    (MemoryKind::SvmCoarse, Api::Svm) if !known::keeps_mapped_svm(allocation.device().caps()) => {
                        enqueue::enqueue("clEnqueueSVMMap", &to, |core, count, list, event| {
                            let Some(map) = core.clEnqueueSVMMap else { return CL_INVALID_OPERATION };
                            // SAFETY: **live**, **lists**; memory that `region` keeps.
                            unsafe { map(queue.raw(), 1, flags, start, size, count, list, event) }
                        })?
                    }
                    (kind, api) if kind.is_host_accessible() || matches!(api, Api::Svm) => {
                        by_command = false;
                        Some(enqueue::marker(queue, &Waits::NONE)?)
                    }
                    (kind, _) => return Err(MemoryError::NotHostAccessible { kind }.into()),
                }
            }
        };
        let null = DriverError::new("clEnqueueMapBuffer", Status(opencl_sys::CL_MAP_FAILURE));
        let start = NonNull::new(pointer.cast::<T>()).ok_or(null)?;
        let mapped = Self { region, queue: queue.clone(), mode, start, by_command, element: PhantomData };
        if let Some(event) = event {
            event.wait_wherever()?;
        }
        if !start.is_aligned() {
            // It is unmapped again.
            return Err(MemoryError::ElementAlign { align: align_of::<T>() }.into());
        }
        Ok(mapped)
    }
}

impl<T> Mapped<T> {
    /// Gives the memory back: later commands of an in-order queue find what was written.
    ///
    /// # Errors
    /// [`DriverError`] when the driver refuses.
    #[doc(alias = "clEnqueueUnmapMemObject")]
    #[doc(alias = "clEnqueueSVMUnmap")]
    pub fn unmap(mut self) -> Result<(), DriverError> {
        self.give_back()?;
        Ok(())
    }

    fn give_back(&mut self) -> Result<Option<DriverEvent>, DriverError> {
        if !std::mem::take(&mut self.by_command) {
            return Ok(None);
        }
        let queue = self.queue.raw();
        let pointer: *mut c_void = self.start.as_ptr().cast();
        let to = To { queue: &self.queue, waits: &Waits::NONE, event: false };
        match self.region.mem.address(self.region.offset) {
            Address::Buffer(raw, _) => enqueue::enqueue("clEnqueueUnmapMemObject", &to, |core, count, list, event| {
                // SAFETY: **live**, **lists**; what the map of this buffer gave, once.
                unsafe { (core.clEnqueueUnmapMemObject)(queue, raw, pointer, count, list, event) }
            }),
            Address::Pointer(..) => enqueue::enqueue("clEnqueueSVMUnmap", &to, |core, count, list, event| {
                let Some(unmap) = core.clEnqueueSVMUnmap else { return CL_INVALID_OPERATION };
                // SAFETY: **live**, **lists**; what was mapped, once.
                unsafe { unmap(queue, pointer, count, list, event) }
            }),
        }
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        if let Err(error) = self.give_back() {
            log::error!("{error}: memory stays mapped");
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
