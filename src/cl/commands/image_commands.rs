//! Commands on images, both enqueued and recorded. As in [`enqueue`](crate::cl::commands::enqueue), the caller keeps
//! alive what they use and has checked everything before.

use std::ffi::c_void;

use crate::cl::MISSING;
use crate::cl::commands::enqueue::{To, enqueue};
use crate::cl::memory::host::{HostBytes, Slot};
use crate::cl::memory::untyped::{Address, Mem};
use crate::cl::objects::command_buffer::{CommandBufferRecorder, recorded};
use crate::cl::objects::event::DriverEvent;
use crate::command::{CopyImage, Location, Pixels};
use crate::error::{DriverError, DriverFault};
use crate::ffi::command_buffer::Tail;
use crate::images::Area;

fn raw(mem: &Mem) -> opencl_sys::cl_mem {
    match mem.address(0) {
        Address::Buffer(raw, _) => raw,
        // An image never has an address.
        Address::Pointer(..) => std::ptr::null_mut(),
    }
}

/// Returns the buffer and the offset of memory for a copy of pixels. A sub-buffer is named as its buffer with an
/// offset, because PoCL 3.1 and 6.0 crash on sub-buffers here, and rusticl copies from the start of the buffer.
fn place(at: Location<&Mem>) -> (opencl_sys::cl_mem, usize) {
    (at.mem.root_raw(), at.mem.offset_in_root() + at.offset)
}

/// Returns the size of a packed row in bytes. It is also the distance between layers of rows, because drivers ignore
/// the slice pitch there.
fn row(mem: &Mem, area: &Area) -> usize {
    area.region[0] * mem.image().map_or(1, |info| info.pixel)
}

/// Writes packed host memory to an image.
pub(crate) fn write(
    to: &To<'_>,
    image: &Mem,
    area: &Area,
    data: &HostBytes,
) -> Result<Option<DriverEvent>, DriverError> {
    // SAFETY: **host memory**.
    unsafe { write_from(to, image, area, data.as_ptr().cast(), false) }
}

/// Writes borrowed host memory to an image. It blocks until the data is written.
pub(crate) fn write_blocking(
    to: &To<'_>,
    image: &Mem,
    area: &Area,
    data: &[u8],
) -> Result<Option<DriverEvent>, DriverError> {
    // SAFETY: the data is borrowed until the call returns, and then "can be reused" (OpenCL 3.0, clEnqueueWriteImage).
    unsafe { write_from(to, image, area, data.as_ptr().cast(), true) }
}

/// # Safety
/// The host memory has as many bytes as the pixels. It stays valid and unchanged until the command is complete; if the
/// call blocks, until it returns.
unsafe fn write_from(
    to: &To<'_>,
    image: &Mem,
    area: &Area,
    data: *const c_void,
    blocking: bool,
) -> Result<Option<DriverEvent>, DriverError> {
    let (queue, mem, blocking, row) = (to.queue.raw(), raw(image), u32::from(blocking), row(image, area));
    let (origin, region) = (area.origin.as_ptr(), area.region.as_ptr());
    enqueue("clEnqueueWriteImage", to, |core, count, list, event| {
        // SAFETY: **live**, **lists**, the caller's promise; three sizes each.
        unsafe { (core.clEnqueueWriteImage)(queue, mem, blocking, origin, region, row, 0, data, count, list, event) }
    })
}

/// Reads an image into packed host memory.
pub(crate) fn read(to: &To<'_>, image: &Mem, area: &Area, slot: &Slot) -> Result<Option<DriverEvent>, DriverError> {
    // SAFETY: **host memory**.
    unsafe { read_into(to, image, area, slot.as_mut_ptr().cast(), false) }
}

/// Reads an image into borrowed host memory. It blocks until the data is read.
pub(crate) fn read_blocking(
    to: &To<'_>,
    image: &Mem,
    area: &Area,
    data: &mut [u8],
) -> Result<Option<DriverEvent>, DriverError> {
    // SAFETY: the memory is borrowed exclusively until the call returns.
    unsafe { read_into(to, image, area, data.as_mut_ptr().cast(), true) }
}

/// # Safety
/// The host memory has room for the pixels. It stays valid, and nothing else uses it, until the command is complete; if
/// the call blocks, until it returns.
unsafe fn read_into(
    to: &To<'_>,
    image: &Mem,
    area: &Area,
    data: *mut c_void,
    blocking: bool,
) -> Result<Option<DriverEvent>, DriverError> {
    let (queue, mem, blocking, row) = (to.queue.raw(), raw(image), u32::from(blocking), row(image, area));
    let (origin, region) = (area.origin.as_ptr(), area.region.as_ptr());
    enqueue("clEnqueueReadImage", to, |core, count, list, event| {
        // SAFETY: **live**, **lists**, the caller's promise; three sizes each.
        unsafe { (core.clEnqueueReadImage)(queue, mem, blocking, origin, region, row, 0, data, count, list, event) }
    })
}

/// Fills an area with a colour of four numbers.
pub(crate) fn fill(to: &To<'_>, image: &Mem, area: &Area, color: &[u8]) -> Result<Option<DriverEvent>, DriverError> {
    enqueue("clEnqueueFillImage", to, |core, count, list, event| {
        let Some(fill) = core.clEnqueueFillImage else { return MISSING };
        let (origin, region) = (area.origin.as_ptr(), area.region.as_ptr());
        // SAFETY: **live**, **lists**; three sizes each; a colour is 16 bytes.
        unsafe { fill(to.queue.raw(), raw(image), color.as_ptr().cast(), origin, region, count, list, event) }
    })
}

/// Copies pixels between two images, or between an image and a buffer.
pub(crate) fn copy(to: &To<'_>, copy: &CopyImage<&Mem>) -> Result<Option<DriverEvent>, DriverError> {
    let (queue, region) = (to.queue.raw(), copy.region.as_ptr());
    match (copy.src, copy.dst) {
        (Pixels::Image(src, from), Pixels::Image(dst, into)) => {
            enqueue("clEnqueueCopyImage", to, |core, count, list, event| {
                let (src, dst, from, into) = (raw(src), raw(dst), from.as_ptr(), into.as_ptr());
                // SAFETY: **live**, **lists**; three sizes each.
                unsafe { (core.clEnqueueCopyImage)(queue, src, dst, from, into, region, count, list, event) }
            })
        }
        (Pixels::Image(src, from), Pixels::Buffer(dst)) => {
            enqueue("clEnqueueCopyImageToBuffer", to, |core, count, list, event| {
                let (src, (dst, offset), from) = (raw(src), place(dst), from.as_ptr());
                // SAFETY: **live**, **lists**; three sizes each.
                unsafe { (core.clEnqueueCopyImageToBuffer)(queue, src, dst, from, region, offset, count, list, event) }
            })
        }
        (Pixels::Buffer(src), Pixels::Image(dst, into)) => {
            enqueue("clEnqueueCopyBufferToImage", to, |core, count, list, event| {
                let ((src, offset), dst, into) = (place(src), raw(dst), into.as_ptr());
                // SAFETY: **live**, **lists**; three sizes each.
                unsafe { (core.clEnqueueCopyBufferToImage)(queue, src, dst, offset, into, region, count, list, event) }
            })
        }
        // A copy between two buffers is a buffer copy and never comes here.
        (Pixels::Buffer(..), Pixels::Buffer(..)) => Err(DriverError::faulty("clEnqueueCopyImage", DriverFault::Defect)),
    }
}

impl CommandBufferRecorder {
    /// Records a fill of an area with a colour of four numbers.
    pub(crate) fn fill_image(&mut self, image: &Mem, area: &Area, color: &[u8]) -> Result<(), DriverError> {
        let (fns, abi, buffer) = self.parts();
        let (origin, region) = (area.origin.as_ptr(), area.region.as_ptr());
        // SAFETY: **live**, **lists**; three sizes each; a colour is 16 bytes.
        let status =
            unsafe { fns.fill_image(abi, buffer, raw(image), color.as_ptr().cast(), origin, region, Tail::NONE) };
        recorded("clCommandFillImageKHR", status)
    }

    /// Records a copy of pixels between two images, or between an image and a buffer.
    pub(crate) fn copy_image(&mut self, copy: &CopyImage<&Mem>) -> Result<(), DriverError> {
        let (fns, abi, buffer) = self.parts();
        let region = copy.region.as_ptr();
        match (copy.src, copy.dst) {
            (Pixels::Image(src, from), Pixels::Image(dst, into)) => {
                let (src, dst, from, into) = (raw(src), raw(dst), from.as_ptr(), into.as_ptr());
                // SAFETY: **live**, **lists**; three sizes each.
                let status = unsafe { fns.copy_image(abi, buffer, src, dst, from, into, region, Tail::NONE) };
                recorded("clCommandCopyImageKHR", status)
            }
            (Pixels::Image(src, from), Pixels::Buffer(dst)) => {
                let (src, (dst, offset), from) = (raw(src), place(dst), from.as_ptr());
                // SAFETY: as above.
                let status = unsafe { fns.image_to_buffer(abi, buffer, src, dst, from, region, offset, Tail::NONE) };
                recorded("clCommandCopyImageToBufferKHR", status)
            }
            (Pixels::Buffer(src), Pixels::Image(dst, into)) => {
                let ((src, offset), dst, into) = (place(src), raw(dst), into.as_ptr());
                // SAFETY: as above.
                let status = unsafe { fns.buffer_to_image(abi, buffer, src, dst, offset, into, region, Tail::NONE) };
                recorded("clCommandCopyBufferToImageKHR", status)
            }
            (Pixels::Buffer(..), Pixels::Buffer(..)) => {
                Err(DriverError::faulty("clCommandCopyImageKHR", DriverFault::Defect))
            }
        }
    }
}
