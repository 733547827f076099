//! Images that are mapped for the host.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use opencl_sys::CL_SUCCESS;

use super::host::Element;
use super::image::Image;
use super::map::{Lost, MapMode, tell};
use super::map_queue::MapQueue;
use super::queue::DriverQueue;
use crate::error::{DriverError, Fault, MemoryError, Result};
use crate::images::{Area, ImageKind};

/// A part of an image as rows of the host, until it is unmapped or dropped, which is as for [`Mapped`](crate::Mapped).
///
/// Made by [`Queue::map_image`](crate::Queue::map_image) and [`HostTask::map_image`](crate::HostTask::map_image), and for
/// [`Graph::map_image`](crate::Graph::map_image) and [`Queue::enqueue_map_image`](crate::Queue::enqueue_map_image).
#[must_use = "memory is unmapped when this is dropped"]
pub struct MappedImage<T> {
    image: Image,
    by: MapQueue,
    mode: MapMode,
    region: [usize; 3],
    start: NonNull<c_void>,
    row_pitch: usize,
    slice_pitch: usize,
    is_mapped: bool,
    lost: Option<Lost>,
    element: PhantomData<T>,
}

// SAFETY: **threads**; the elements may go to other threads, and whoever mapped them promised that nobody else touches them.
unsafe impl<T: Send> Send for MappedImage<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for MappedImage<T> {}

impl<T: Element> MappedImage<T> {
    /// Maps a part that lies inside and is not empty, whose rows are whole numbers of elements. The caller has waited for what has
    /// to be complete before.
    ///
    /// Until it is unmapped no command writes to the part, and none reads it unless the host only reads: the user promised that
    /// at [`Queue::map_image`](crate::Queue::map_image).
    pub(crate) fn new(queue: &DriverQueue, image: &Image, area: &Area, mode: MapMode) -> Result<Self> {
        let by = MapQueue::of(queue)?;
        // PoCL does not write the pitches of an `image1d_buffer_t`, and other drivers tell 0 where there is one row.
        let (mut row_pitch, mut slice_pitch) = (0, 0);
        let mut pointer = std::ptr::null_mut();
        let waited = by.map("clEnqueueMapImage", None, |queue, core, count, list, event| {
            let mut status = CL_SUCCESS;
            // SAFETY: **live**, **lists**; three sizes each, and places for two pitches.
            pointer = unsafe {
                (core.clEnqueueMapImage)(
                    queue,
                    image.raw(),
                    0,
                    mode.flags(),
                    area.origin.as_ptr(),
                    area.region.as_ptr(),
                    &raw mut row_pitch,
                    &raw mut slice_pitch,
                    count,
                    list,
                    event,
                    &raw mut status,
                )
            };
            status
        })?;
        let start = NonNull::new(pointer).ok_or(DriverError::faulty("clEnqueueMapImage", Fault::NoAddress))?;
        // Of an array of rows the layers are as far apart as the slice pitch says; the rows of everything else by the other.
        if image.shape().kind() == ImageKind::Image1dArray && slice_pitch != 0 {
            row_pitch = slice_pitch;
        }
        let mapped = Self {
            image: image.clone(),
            by,
            mode,
            region: area.region,
            start,
            row_pitch,
            slice_pitch,
            is_mapped: true,
            lost: None,
            element: PhantomData,
        };
        waited?;
        let align = align_of::<T>();
        let (rows, slices) = (area.region[1] > 1, area.region[2] > 1);
        let steps = [start.as_ptr().addr(), if rows { row_pitch } else { 0 }, if slices { slice_pitch } else { 0 }];
        let row_bytes = mapped.row_bytes();
        let rows_fit = !rows || row_pitch >= row_bytes;
        let slices_fit = !slices || slice_pitch >= row_pitch.saturating_mul(area.region[1]).max(row_bytes);
        if !rows_fit || !slices_fit {
            // It is unmapped again.
            return Err(DriverError::faulty("clEnqueueMapImage", Fault::Pitch).into());
        }
        if !steps.iter().all(|step| step.is_multiple_of(align)) {
            return Err(MemoryError::ElementAlign { align }.into());
        }
        Ok(mapped)
    }
}

impl<T> MappedImage<T> {
    /// Gives the image back, and waits for that: commands that are enqueued later, on any queue, find what was written.
    ///
    /// # Errors
    /// [`DriverError`] when the driver refuses.
    #[doc(alias = "clEnqueueUnmapMemObject")]
    pub fn unmap(mut self) -> Result<(), DriverError> {
        self.give_back()
    }

    /// How much is mapped: pixels of a row, rows, slices; or layers.
    #[must_use]
    pub fn region(&self) -> [usize; 3] {
        self.region
    }

    fn row_bytes(&self) -> usize {
        self.region[0] * self.image.pixel_size()
    }

    /// Where a row starts, counted from the region's origin.
    fn row_start(&self, y: usize, z: usize) -> Option<*mut T> {
        let is_inside = y < self.region[1] && z < self.region[2];
        is_inside.then(|| self.start.as_ptr().wrapping_byte_add(y * self.row_pitch + z * self.slice_pitch).cast())
    }

    fn give_back(&mut self) -> Result<(), DriverError> {
        if !std::mem::take(&mut self.is_mapped) {
            return Ok(());
        }
        let (raw, pointer) = (self.image.raw(), self.start.as_ptr());
        let outcome = self.by.unmap("clEnqueueUnmapMemObject", None, |queue, core, count, list, event| {
            // SAFETY: **live**, **lists**; what the map of this image gave, once.
            unsafe { (core.clEnqueueUnmapMemObject)(queue, raw, pointer, count, list, event) }
        });
        tell(&self.lost, outcome)
    }

    /// Has somebody told of an image that cannot be unmapped, also where it is dropped.
    pub(crate) fn tell(mut self, lost: Lost) -> Self {
        self.lost = Some(lost);
        self
    }
}

impl<T: Element> MappedImage<T> {
    /// A row of a slice or layer: of an array of rows, a layer. None if there is no such row.
    #[must_use]
    pub fn row(&self, y: usize, z: usize) -> Option<&[T]> {
        let start = self.row_start(y, z)?;
        // SAFETY: inside of what was mapped, by the pitches that the driver told; aligned, which was looked at; any bytes are a
        // `T`; nobody writes to it, by the promise of whoever mapped it.
        Some(unsafe { std::slice::from_raw_parts(start, self.row_bytes() / size_of::<T>()) })
    }

    /// The same, to be written.
    ///
    /// # Errors
    /// [`MemoryError::MappedToRead`] if it was mapped to be read; [`MemoryError::OutOfBounds`] if there is no such row.
    pub fn row_mut(&mut self, y: usize, z: usize) -> Result<&mut [T]> {
        if self.mode == MapMode::Read {
            return Err(MemoryError::MappedToRead.into());
        }
        let (at, dim) = if y < self.region[1] { (z, 2) } else { (y, 1) };
        let (what, len) = (if dim == 1 { "rows" } else { "slices" }, self.region[dim]);
        let outside = MemoryError::OutOfBounds { what, start: at, end: at.saturating_add(1), len };
        let start = self.row_start(y, z).ok_or(outside)?;
        // SAFETY: as above, and nobody else reads it; rows do not overlap.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, self.row_bytes() / size_of::<T>()) })
    }
}

impl<T> Drop for MappedImage<T> {
    fn drop(&mut self) {
        if let Err(error) = self.give_back() {
            log::error!("{error}: an image stays mapped; call `unmap` to get the error");
        }
    }
}

impl<T> fmt::Debug for MappedImage<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MappedImage({:?} of {:?})", self.region, self.image)
    }
}
