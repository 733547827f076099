//! Images that are mapped for the host.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use opencl_sys::CL_SUCCESS;

use crate::cl::completion::user_code::log_later;
use crate::cl::memory::host::Element;
use crate::cl::memory::map::{Lost, MapMode, MapModeMut, MapRead, tell};
use crate::cl::memory::map_queue::MapQueue;
use crate::cl::objects::image::Image;
use crate::cl::objects::queue::DriverQueue;
use crate::error::{DriverError, DriverFault, MemoryError, Result};
use crate::images::{Area, ImageKind};

/// A mapped part of an image, as rows on the host, until it is unmapped or dropped. It behaves as
/// [`Mapped`](crate::Mapped) does.
///
/// [`row_mut`](Self::row_mut) writes, if `M` is [`MapWrite`](crate::MapWrite) or
/// [`MapWriteInvalidate`](crate::MapWriteInvalidate). An image that is mapped for reading has no such method:
///
/// ```compile_fail,E0599
/// fn clear(rows: &mut clgraph::MappedImage<u8, clgraph::MapRead>) -> clgraph::Result<()> {
///     rows.row_mut(0, 0)?.fill(0);
///     Ok(())
/// }
/// ```
///
/// [`Queue::map_image`](crate::Queue::map_image) and [`HostTaskContext::map_image`](crate::HostTaskContext::map_image) return it;
/// [`Graph::map_image`](crate::Graph::map_image) and [`Queue::enqueue_map_image`](crate::Queue::enqueue_map_image)
/// deliver it as their result.
#[must_use = "memory is unmapped when this is dropped"]
pub struct MappedImage<T, M = MapRead> {
    image: Image,
    by: MapQueue,
    region: [usize; 3],
    start: NonNull<c_void>,
    row_pitch: usize,
    slice_pitch: usize,
    is_mapped: bool,
    lost: Option<Lost>,
    element: PhantomData<T>,
    mode: PhantomData<M>,
}

// SAFETY: **threads**; the elements can be used by other threads, and the caller of the map promised that nothing else
// uses them.
unsafe impl<T: Send, M> Send for MappedImage<T, M> {}
// SAFETY: as above.
unsafe impl<T: Sync, M> Sync for MappedImage<T, M> {}

impl<T: Element, M: MapMode> MappedImage<T, M> {
    /// Maps an area that is inside the image and not empty, and whose rows are whole numbers of elements. The caller
    /// has waited for all commands that have to be complete before.
    ///
    /// Until it is unmapped, no command writes to the area, and commands read it only if the host only reads: the user
    /// promised that at [`Queue::map_image`](crate::Queue::map_image).
    pub(crate) fn new(queue: &DriverQueue, image: &Image, area: &Area, mode: M) -> Result<Self> {
        let by = MapQueue::of(queue)?;
        // PoCL does not write the pitches of an `image1d_buffer_t`, and other drivers write 0 if there is only one row.
        let (mut row_pitch, mut slice_pitch) = (0, 0);
        let mut pointer = std::ptr::null_mut();
        let waited = by.map("clEnqueueMapImage", None, |queue, core, count, list, event| {
            let mut status = CL_SUCCESS;
            // SAFETY: **live**, **lists**; three sizes each, and valid pointers for two pitches.
            pointer = unsafe {
                (core.clEnqueueMapImage)(
                    queue,
                    image.raw(),
                    0,
                    mode.access().flags(),
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
        let start = NonNull::new(pointer).ok_or(DriverError::faulty("clEnqueueMapImage", DriverFault::NoAddress))?;
        // The distance between the layers of an `image1d_array_t` is the slice pitch; between rows of all other images
        // it is the row pitch.
        if image.shape().kind() == ImageKind::Image1dArray && slice_pitch != 0 {
            row_pitch = slice_pitch;
        }
        let mapped = Self {
            image: image.clone(),
            by,
            region: area.region,
            start,
            row_pitch,
            slice_pitch,
            is_mapped: true,
            lost: None,
            element: PhantomData,
            mode: PhantomData,
        };
        waited?;
        let align = align_of::<T>();
        let (rows, slices) = (area.region[1] > 1, area.region[2] > 1);
        let steps = [start.as_ptr().addr(), if rows { row_pitch } else { 0 }, if slices { slice_pitch } else { 0 }];
        let row_bytes = mapped.row_bytes();
        let rows_fit = !rows || row_pitch >= row_bytes;
        let slices_fit = !slices || slice_pitch >= row_pitch.saturating_mul(area.region[1]).max(row_bytes);
        if !rows_fit || !slices_fit {
            // Dropping the value unmaps the image again.
            return Err(DriverError::faulty("clEnqueueMapImage", DriverFault::Pitch).into());
        }
        if !steps.iter().all(|step| step.is_multiple_of(align)) {
            return Err(MemoryError::ElementAlign { align }.into());
        }
        Ok(mapped)
    }
}

impl<T, M> MappedImage<T, M> {
    /// Unmaps the image and waits until that is complete. Commands that are enqueued later, on any queue, see what was
    /// written.
    ///
    /// # Errors
    /// [`DriverError`] if the driver refuses.
    #[doc(alias = "clEnqueueUnmapMemObject")]
    pub fn unmap(mut self) -> Result<(), DriverError> {
        self.give_back()
    }

    /// Returns the size of the mapped area: pixels of a row, rows, and slices or layers.
    #[must_use]
    pub fn region(&self) -> [usize; 3] {
        self.region
    }

    fn row_bytes(&self) -> usize {
        self.region[0] * self.image.pixel_size()
    }

    /// Returns the start of a row. The indices count from the origin of the area.
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
            // SAFETY: **live**, **lists**; the pointer is the result of the map of this image, and is unmapped once.
            unsafe { (core.clEnqueueUnmapMemObject)(queue, raw, pointer, count, list, event) }
        });
        tell(&self.lost, outcome)
    }

    /// Stores the error of a failed unmap in `lost`, also if this value is only dropped.
    pub(crate) fn tell(mut self, lost: Lost) -> Self {
        self.lost = Some(lost);
        self
    }
}

impl<T: Element, M> MappedImage<T, M> {
    /// Returns row `y` of slice or layer `z`, or `None` if there is no such row. In an `image1d_array_t`, `y` is the
    /// layer.
    #[must_use]
    pub fn row(&self, y: usize, z: usize) -> Option<&[T]> {
        let start = self.row_start(y, z)?;
        // SAFETY: the row is inside the mapped area, by the pitches that the driver reported; the alignment was
        // checked; any bytes are a valid `T`; nothing writes to the memory, by the promise of the caller of the map.
        Some(unsafe { std::slice::from_raw_parts(start, self.row_bytes() / size_of::<T>()) })
    }
}

impl<T: Element, M: MapModeMut> MappedImage<T, M> {
    /// Returns a row as [`row`](Self::row) does, as a slice to write.
    ///
    /// # Errors
    /// [`MemoryError::OutOfBounds`] if there is no such row.
    pub fn row_mut(&mut self, y: usize, z: usize) -> Result<&mut [T]> {
        let (at, dim) = if y < self.region[1] { (z, 2) } else { (y, 1) };
        let (what, len) = (if dim == 1 { "rows" } else { "slices" }, self.region[dim]);
        let outside = MemoryError::OutOfBounds { what, start: at, end: at.saturating_add(1), len };
        let start = self.row_start(y, z).ok_or(outside)?;
        // SAFETY: as above, and nothing else reads the memory; rows do not overlap.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, self.row_bytes() / size_of::<T>()) })
    }
}

impl<T, M> Drop for MappedImage<T, M> {
    fn drop(&mut self) {
        if let Err(error) = self.give_back() {
            log_later!(
                Error,
                "{error}: an image stays mapped; call `unmap` instead of dropping the map to get this error"
            );
        }
    }
}

impl<T, M> fmt::Debug for MappedImage<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MappedImage({:?} of {:?})", self.region, self.image)
    }
}
