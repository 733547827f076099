//! Commands on images: enqueued, and recorded. As in [`enqueue`](super::enqueue), whoever calls keeps what they use, and
//! everything was checked before.

use std::ffi::c_void;

use super::MISSING;
use super::command_buffer::{Recording, recorded};
use super::enqueue::{To, enqueue};
use super::event::DriverEvent;
use super::host::{HostBytes, Slot};
use super::mem::{Address, Mem};
use crate::error::{DriverError, Fault};
use crate::ffi::command_buffer::Tail;
use crate::images::Area;

/// Where pixels are: from an origin on in an image, or packed in a buffer from a byte on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PixelsAt<'a> {
    Image(&'a Mem, &'a [usize; 3]),
    Buffer(&'a Mem, usize),
}

fn raw(mem: &Mem) -> opencl_sys::cl_mem {
    match mem.address(0) {
        Address::Buffer(raw, _) => raw,
        // No image is one.
        Address::Pointer(..) => std::ptr::null_mut(),
    }
}

/// Bytes of a buffer as a copy of pixels names them: as a place in the buffer itself. Over a sub-buffer PoCL 3.1 and 6.0 crash
/// here, and rusticl copies from where the buffer starts.
fn place(mem: &Mem, offset: usize) -> (opencl_sys::cl_mem, usize) {
    (mem.root_raw(), mem.offset_in_root() + offset)
}

/// Bytes of a packed row. The step between layers of rows is this one too, whatever the slice pitch says.
fn row(mem: &Mem, area: &Area) -> usize {
    area.region[0] * mem.image().map_or(1, |info| info.pixel)
}

/// Packed host memory to an image.
pub(crate) fn write(
    to: &To<'_>,
    image: &Mem,
    area: &Area,
    data: &HostBytes,
) -> Result<Option<DriverEvent>, DriverError> {
    // SAFETY: **host memory**.
    unsafe { write_from(to, image, area, data.as_ptr().cast(), false) }
}

/// The same of borrowed memory. Blocks until it is there.
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
/// The host memory has as many bytes as the pixels, stays valid and as it is until the command is complete, or the call returns
/// where it blocks.
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

/// An image to packed host memory.
pub(crate) fn read(to: &To<'_>, image: &Mem, area: &Area, slot: &Slot) -> Result<Option<DriverEvent>, DriverError> {
    // SAFETY: **host memory**.
    unsafe { read_into(to, image, area, slot.as_mut_ptr().cast(), false) }
}

/// The same into borrowed memory. Blocks until it is there.
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
/// The host memory has room for the pixels, stays valid and is not touched elsewhere until the command is complete, or the call
/// returns where it blocks.
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

/// A colour, of four numbers.
pub(crate) fn fill(to: &To<'_>, image: &Mem, area: &Area, color: &[u8]) -> Result<Option<DriverEvent>, DriverError> {
    enqueue("clEnqueueFillImage", to, |core, count, list, event| {
        let Some(fill) = core.clEnqueueFillImage else { return MISSING };
        let (origin, region) = (area.origin.as_ptr(), area.region.as_ptr());
        // SAFETY: **live**, **lists**; three sizes each; a colour is 16 bytes.
        unsafe { fill(to.queue.raw(), raw(image), color.as_ptr().cast(), origin, region, count, list, event) }
    })
}

/// Pixels from image to image, or from or to one.
pub(crate) fn copy(
    to: &To<'_>,
    src: PixelsAt<'_>,
    dst: PixelsAt<'_>,
    region: &[usize; 3],
) -> Result<Option<DriverEvent>, DriverError> {
    let (queue, region) = (to.queue.raw(), region.as_ptr());
    match (src, dst) {
        (PixelsAt::Image(src, from), PixelsAt::Image(dst, into)) => {
            enqueue("clEnqueueCopyImage", to, |core, count, list, event| {
                let (src, dst, from, into) = (raw(src), raw(dst), from.as_ptr(), into.as_ptr());
                // SAFETY: **live**, **lists**; three sizes each.
                unsafe { (core.clEnqueueCopyImage)(queue, src, dst, from, into, region, count, list, event) }
            })
        }
        (PixelsAt::Image(src, from), PixelsAt::Buffer(dst, offset)) => {
            enqueue("clEnqueueCopyImageToBuffer", to, |core, count, list, event| {
                let (src, (dst, offset), from) = (raw(src), place(dst, offset), from.as_ptr());
                // SAFETY: **live**, **lists**; three sizes each.
                unsafe { (core.clEnqueueCopyImageToBuffer)(queue, src, dst, from, region, offset, count, list, event) }
            })
        }
        (PixelsAt::Buffer(src, offset), PixelsAt::Image(dst, into)) => {
            enqueue("clEnqueueCopyBufferToImage", to, |core, count, list, event| {
                let ((src, offset), dst, into) = (place(src, offset), raw(dst), into.as_ptr());
                // SAFETY: **live**, **lists**; three sizes each.
                unsafe { (core.clEnqueueCopyBufferToImage)(queue, src, dst, offset, into, region, count, list, event) }
            })
        }
        // Such a copy is one of buffers, and none comes here.
        (PixelsAt::Buffer(..), PixelsAt::Buffer(..)) => Err(DriverError::faulty("clEnqueueCopyImage", Fault::Defect)),
    }
}

impl Recording {
    /// A colour, of four numbers.
    pub(crate) fn fill_image(&mut self, image: &Mem, area: &Area, color: &[u8]) -> Result<(), DriverError> {
        let (fns, abi, buffer) = self.parts();
        let (origin, region) = (area.origin.as_ptr(), area.region.as_ptr());
        // SAFETY: **live**, **lists**; three sizes each; a colour is 16 bytes.
        let status =
            unsafe { fns.fill_image(abi, buffer, raw(image), color.as_ptr().cast(), origin, region, Tail::NONE) };
        recorded("clCommandFillImageKHR", status)
    }

    /// Pixels from image to image, or from or to one.
    pub(crate) fn copy_image(
        &mut self,
        src: PixelsAt<'_>,
        dst: PixelsAt<'_>,
        region: &[usize; 3],
    ) -> Result<(), DriverError> {
        let (fns, abi, buffer) = self.parts();
        let region = region.as_ptr();
        match (src, dst) {
            (PixelsAt::Image(src, from), PixelsAt::Image(dst, into)) => {
                let (src, dst, from, into) = (raw(src), raw(dst), from.as_ptr(), into.as_ptr());
                // SAFETY: **live**, **lists**; three sizes each.
                let status = unsafe { fns.copy_image(abi, buffer, src, dst, from, into, region, Tail::NONE) };
                recorded("clCommandCopyImageKHR", status)
            }
            (PixelsAt::Image(src, from), PixelsAt::Buffer(dst, offset)) => {
                let (src, (dst, offset), from) = (raw(src), place(dst, offset), from.as_ptr());
                // SAFETY: as above.
                let status = unsafe { fns.image_to_buffer(abi, buffer, src, dst, from, region, offset, Tail::NONE) };
                recorded("clCommandCopyImageToBufferKHR", status)
            }
            (PixelsAt::Buffer(src, offset), PixelsAt::Image(dst, into)) => {
                let ((src, offset), dst, into) = (place(src, offset), raw(dst), into.as_ptr());
                // SAFETY: as above.
                let status = unsafe { fns.buffer_to_image(abi, buffer, src, dst, offset, into, region, Tail::NONE) };
                recorded("clCommandCopyBufferToImageKHR", status)
            }
            (PixelsAt::Buffer(..), PixelsAt::Buffer(..)) => {
                Err(DriverError::faulty("clCommandCopyImageKHR", Fault::Defect))
            }
        }
    }
}
