//! Recorded commands, and how each is enqueued.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use opencl_sys::{
    CL_COMMAND_BARRIER, CL_COMMAND_COPY_BUFFER, CL_COMMAND_COPY_BUFFER_RECT, CL_COMMAND_COPY_BUFFER_TO_IMAGE,
    CL_COMMAND_COPY_IMAGE, CL_COMMAND_COPY_IMAGE_TO_BUFFER, CL_COMMAND_FILL_BUFFER, CL_COMMAND_FILL_IMAGE,
    CL_COMMAND_MARKER, CL_COMMAND_NDRANGE_KERNEL, CL_COMMAND_READ_BUFFER, CL_COMMAND_READ_BUFFER_RECT,
    CL_COMMAND_READ_IMAGE, CL_COMMAND_SVM_MEMCPY, CL_COMMAND_SVM_MEMFILL, CL_FALSE, cl_command_queue, cl_event, cl_int,
    cl_uint,
};

use super::calls;
use super::owned::Memory;
use super::prepared::Prepared;
use crate::command_buffer::launch::Range;
use crate::command_buffer::order::Role;
use crate::command_buffer::properties::{self, List};
use crate::command_buffer::ranges::{Place, Side};

/// Addresses of shared virtual memory, as the program gave them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address(pub(super) *mut c_void);

// SAFETY: a number until a driver gets it; what it points to is the program's to keep, as the specification says.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

/// Bytes of a pattern or of a colour, at an address that suits any type.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
pub(super) struct Pattern(pub(super) [u8; 128]);

/// What a command does.
#[derive(Debug)]
pub(super) enum Command {
    Barrier,
    /// As a barrier, but it holds nothing back.
    Marker,
    CopyBuffer {
        from: Memory,
        to: Memory,
        from_offset: usize,
        to_offset: usize,
        size: usize,
    },
    CopyBufferRect {
        from: Memory,
        to: Memory,
        from_side: Side,
        to_side: Side,
        region: Place,
    },
    FillBuffer {
        memory: Memory,
        pattern: Box<Pattern>,
        pattern_size: usize,
        offset: usize,
        size: usize,
    },
    FillImage {
        image: Memory,
        colour: Box<Pattern>,
        origin: Place,
        region: Place,
    },
    CopyImage {
        from: Memory,
        to: Memory,
        from_origin: Place,
        to_origin: Place,
        region: Place,
    },
    CopyImageToBuffer {
        from: Memory,
        to: Memory,
        origin: Place,
        region: Place,
        offset: usize,
    },
    CopyBufferToImage {
        from: Memory,
        to: Memory,
        offset: usize,
        origin: Place,
        region: Place,
    },
    CopyAddresses {
        from: Address,
        to: Address,
        size: usize,
    },
    FillAddresses {
        to: Address,
        pattern: Box<Pattern>,
        pattern_size: usize,
        size: usize,
    },
    /// Only captured calls read: record functions have no such command.
    ReadBuffer {
        from: Memory,
        offset: usize,
        size: usize,
        to: Address,
    },
    ReadBufferRect {
        from: Memory,
        from_side: Side,
        to_side: Side,
        region: Place,
        to: Address,
    },
    ReadImage {
        from: Memory,
        origin: Place,
        region: Place,
        row: usize,
        slice: usize,
        to: Address,
    },
    Launch(Box<Launch>),
}

/// A launch of a kernel.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) prepared: Arc<Prepared>,
    pub(super) range: Range,
    pub(super) properties: properties::Launch,
    pub(super) given: List,
}

impl Command {
    /// The command's type, as events have it.
    pub(super) fn kind(&self) -> cl_uint {
        match self {
            Self::Barrier => CL_COMMAND_BARRIER,
            Self::Marker => CL_COMMAND_MARKER,
            Self::ReadBuffer { .. } => CL_COMMAND_READ_BUFFER,
            Self::ReadBufferRect { .. } => CL_COMMAND_READ_BUFFER_RECT,
            Self::ReadImage { .. } => CL_COMMAND_READ_IMAGE,
            Self::CopyBuffer { .. } => CL_COMMAND_COPY_BUFFER,
            Self::CopyBufferRect { .. } => CL_COMMAND_COPY_BUFFER_RECT,
            Self::FillBuffer { .. } => CL_COMMAND_FILL_BUFFER,
            Self::FillImage { .. } => CL_COMMAND_FILL_IMAGE,
            Self::CopyImage { .. } => CL_COMMAND_COPY_IMAGE,
            Self::CopyImageToBuffer { .. } => CL_COMMAND_COPY_IMAGE_TO_BUFFER,
            Self::CopyBufferToImage { .. } => CL_COMMAND_COPY_BUFFER_TO_IMAGE,
            Self::CopyAddresses { .. } => CL_COMMAND_SVM_MEMCPY,
            Self::FillAddresses { .. } => CL_COMMAND_SVM_MEMFILL,
            Self::Launch(_) => CL_COMMAND_NDRANGE_KERNEL,
        }
    }

    pub(super) fn role(&self) -> Role {
        match self {
            Self::Barrier => Role::Barrier,
            Self::Marker => Role::Marker,
            _ => Role::Work,
        }
    }

    /// Whether there is something for a device to do. Barriers, and commands without bytes or work-items, only order others.
    pub(super) fn is_work(&self) -> bool {
        match self {
            Self::Barrier | Self::Marker => false,
            Self::CopyBuffer { size, .. }
            | Self::FillBuffer { size, .. }
            | Self::ReadBuffer { size, .. }
            | Self::CopyAddresses { size, .. }
            | Self::FillAddresses { size, .. } => *size > 0,
            Self::Launch(launch) => !launch.range.is_empty(),
            _ => true,
        }
    }

    /// Enqueues a command that [is work](Self::is_work). `event` is null or has room.
    ///
    /// # Safety
    /// A queue of the objects' context, and live events of it.
    pub(super) unsafe fn enqueue(&self, queue: cl_command_queue, waits: &[cl_event], event: *mut cl_event) -> cl_int {
        let count = waits.len() as cl_uint;
        let list = if waits.is_empty() { ptr::null() } else { waits.as_ptr() };
        // SAFETY: live objects that are held here, ranges that were checked, and the caller's promise.
        unsafe {
            match self {
                Self::Barrier | Self::Marker => calls::clEnqueueMarkerWithWaitList(queue, count, list, event),
                Self::CopyBuffer { from, to, from_offset, to_offset, size } => calls::clEnqueueCopyBuffer(
                    queue,
                    from.raw(),
                    to.raw(),
                    *from_offset,
                    *to_offset,
                    *size,
                    count,
                    list,
                    event,
                ),
                Self::CopyBufferRect { from, to, from_side, to_side, region } => calls::clEnqueueCopyBufferRect(
                    queue,
                    from.raw(),
                    to.raw(),
                    from_side.origin.as_ptr(),
                    to_side.origin.as_ptr(),
                    region.as_ptr(),
                    from_side.row,
                    from_side.slice,
                    to_side.row,
                    to_side.slice,
                    count,
                    list,
                    event,
                ),
                Self::FillBuffer { memory, pattern, pattern_size, offset, size } => calls::clEnqueueFillBuffer(
                    queue,
                    memory.raw(),
                    pattern.0.as_ptr().cast(),
                    *pattern_size,
                    *offset,
                    *size,
                    count,
                    list,
                    event,
                ),
                Self::FillImage { image, colour, origin, region } => calls::clEnqueueFillImage(
                    queue,
                    image.raw(),
                    colour.0.as_ptr().cast(),
                    origin.as_ptr(),
                    region.as_ptr(),
                    count,
                    list,
                    event,
                ),
                Self::CopyImage { from, to, from_origin, to_origin, region } => calls::clEnqueueCopyImage(
                    queue,
                    from.raw(),
                    to.raw(),
                    from_origin.as_ptr(),
                    to_origin.as_ptr(),
                    region.as_ptr(),
                    count,
                    list,
                    event,
                ),
                Self::CopyImageToBuffer { from, to, origin, region, offset } => calls::clEnqueueCopyImageToBuffer(
                    queue,
                    from.raw(),
                    to.raw(),
                    origin.as_ptr(),
                    region.as_ptr(),
                    *offset,
                    count,
                    list,
                    event,
                ),
                Self::CopyBufferToImage { from, to, offset, origin, region } => calls::clEnqueueCopyBufferToImage(
                    queue,
                    from.raw(),
                    to.raw(),
                    *offset,
                    origin.as_ptr(),
                    region.as_ptr(),
                    count,
                    list,
                    event,
                ),
                Self::CopyAddresses { from, to, size } => {
                    calls::clEnqueueSVMMemcpy(queue, CL_FALSE, to.0, from.0, *size, count, list, event)
                }
                Self::FillAddresses { to, pattern, pattern_size, size } => calls::clEnqueueSVMMemFill(
                    queue,
                    to.0,
                    pattern.0.as_ptr().cast(),
                    *pattern_size,
                    *size,
                    count,
                    list,
                    event,
                ),
                Self::ReadBuffer { from, offset, size, to } => {
                    calls::clEnqueueReadBuffer(queue, from.raw(), CL_FALSE, *offset, *size, to.0, count, list, event)
                }
                Self::ReadBufferRect { from, from_side, to_side, region, to } => calls::clEnqueueReadBufferRect(
                    queue,
                    from.raw(),
                    CL_FALSE,
                    from_side.origin.as_ptr(),
                    to_side.origin.as_ptr(),
                    region.as_ptr(),
                    from_side.row,
                    from_side.slice,
                    to_side.row,
                    to_side.slice,
                    to.0,
                    count,
                    list,
                    event,
                ),
                Self::ReadImage { from, origin, region, row, slice, to } => calls::clEnqueueReadImage(
                    queue,
                    from.raw(),
                    CL_FALSE,
                    origin.as_ptr(),
                    region.as_ptr(),
                    *row,
                    *slice,
                    to.0,
                    count,
                    list,
                    event,
                ),
                Self::Launch(launch) => launch.enqueue(queue, count, list, event),
            }
        }
    }
}

impl Launch {
    /// # Safety
    /// As for [`Command::enqueue`].
    unsafe fn enqueue(
        &self,
        queue: cl_command_queue,
        count: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let Range { dimensions, offset, global, .. } = &self.range;
        let group = self.range.group(&self.prepared.facts);
        let group = group.as_ref().map_or(ptr::null(), |group| group.as_ptr());
        // Some drivers are slower with an offset of nothing.
        let offset = if *offset == [0; 3] { ptr::null() } else { offset.as_ptr() };
        let dimensions = *dimensions as cl_uint;
        // SAFETY: the caller's promise; sizes that were checked.
        unsafe {
            calls::clEnqueueNDRangeKernel(
                queue,
                self.prepared.kernel.raw(),
                dimensions,
                offset,
                global.as_ptr(),
                group,
                count,
                list,
                event,
            )
        }
    }
}
