//! How a driver gets the source and the destination of a copy, for both enqueued and recorded copies.

use std::ffi::c_void;

use opencl_sys::cl_mem;

use crate::cl::memory::allocation::Api;
use crate::cl::memory::untyped::{Address, Mem};
use crate::command::{CopyRect, Location};

/// The source and the destination of a copy.
pub(in crate::cl) enum CopyPlaces {
    /// Two buffers with offsets in bytes.
    Buffers((cl_mem, usize), (cl_mem, usize)),
    /// The addresses of source and destination.
    Pointers(*const c_void, *mut c_void, Api),
    /// A buffer and an address. OpenCL has no command for such a copy.
    Mixed,
}

/// Returns the source and the destination of a copy.
///
/// If both are in one buffer, both are named as that buffer with an offset, because OpenCL does not define a copy
/// between a buffer and its sub-buffer.
pub(in crate::cl) fn of_copy(src: &Location<&Mem>, dst: &Location<&Mem>) -> CopyPlaces {
    match (src.mem.address(src.offset), dst.mem.address(dst.offset)) {
        (Address::Buffer(a, a_offset), Address::Buffer(b, b_offset)) => {
            let in_root = |at: &Location<&Mem>| (at.mem.root_raw(), at.mem.offset_in_root() + at.offset);
            if src.mem.root() == dst.mem.root() {
                CopyPlaces::Buffers(in_root(src), in_root(dst))
            } else {
                CopyPlaces::Buffers((a, a_offset), (b, b_offset))
            }
        }
        (Address::Pointer(a, from), Address::Pointer(b, into)) => {
            // The USM functions also accept SVM pointers.
            let api = if matches!(from.api(), Api::Usm(_)) { from.api() } else { into.api() };
            CopyPlaces::Pointers(a, b, api)
        }
        _ => CopyPlaces::Mixed,
    }
}

/// A buffer, and the origin of a rectangle in it: byte in the row, row in the slice, and slice.
type RectPlace = (cl_mem, [usize; 3]);

/// Returns the buffers and the origins of a rectangular copy.
///
/// A sub-buffer is named as its buffer with an offset, because PoCL 3.1 crashes on sub-buffers here. Origins are in
/// whole rows and slices, because PoCL treats other origins as overlapping.
pub(in crate::cl) fn of_copy_rect(rect: &CopyRect<&Mem>) -> (RectPlace, RectPlace) {
    let CopyRect { src, dst, src_origin, dst_origin, region, pitches } = rect;
    let in_root = |mem: &Mem, origin: &[usize; 3], row: usize, slice: usize| {
        let offset = mem.offset_in_root() + origin[2] * slice + origin[1] * row + origin[0];
        (mem.root_raw(), rect_origin(offset, row, slice, region[2]))
    };
    (in_root(src, src_origin, pitches[0], pitches[1]), in_root(dst, dst_origin, pitches[2], pitches[3]))
}

/// Splits a byte offset into byte in the row, row in the slice, and slice. The pitches must not be zero, and the slice
/// pitch must be a multiple of the row pitch. A rectangle of one slice starts in slice 0, whatever the slice pitch is.
pub(crate) fn rect_origin(offset: usize, row_pitch: usize, slice_pitch: usize, slices: usize) -> [usize; 3] {
    if slices == 1 {
        [offset % row_pitch, offset / row_pitch, 0]
    } else {
        [offset % row_pitch, offset % slice_pitch / row_pitch, offset / slice_pitch]
    }
}
