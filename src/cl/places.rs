//! How the two sides of a copy are named to drivers, whether it is enqueued or recorded.

use std::ffi::c_void;

use opencl_sys::cl_mem;

use super::allocation::Api;
use super::mem::{Address, Mem};

/// Both sides of a copy.
pub(super) enum CopyPlaces {
    /// Buffers and byte offsets.
    Buffers((cl_mem, usize), (cl_mem, usize)),
    /// Source and destination.
    Pointers(*const c_void, *mut c_void, Api),
    /// One of each, for which OpenCL has no command.
    Mixed,
}

/// Both sides of a copy.
///
/// Within one buffer both are given as places in the buffer itself: OpenCL leaves it undefined to copy between a buffer and
/// its sub-buffer.
pub(super) fn of_copy(src: (&Mem, usize), dst: (&Mem, usize)) -> CopyPlaces {
    match (src.0.address(src.1), dst.0.address(dst.1)) {
        (Address::Buffer(a, a_offset), Address::Buffer(b, b_offset)) => {
            let in_root = |(mem, offset): (&Mem, usize)| (mem.root_raw(), mem.offset_in_root() + offset);
            if src.0.root() == dst.0.root() {
                CopyPlaces::Buffers(in_root(src), in_root(dst))
            } else {
                CopyPlaces::Buffers((a, a_offset), (b, b_offset))
            }
        }
        (Address::Pointer(a, from), Address::Pointer(b, into)) => {
            // What knows USM knows SVM too.
            let api = if matches!(from.api(), Api::Usm(_)) { from.api() } else { into.api() };
            CopyPlaces::Pointers(a, b, api)
        }
        _ => CopyPlaces::Mixed,
    }
}

/// A buffer, and where in it a rectangle starts: byte in a row, row in a slice, and slice.
type RectPlace = (cl_mem, [usize; 3]);

/// Buffers and origins of a copy of a rectangle.
///
/// A sub-buffer is given as its place in its buffer, because PoCL 3.1 crashes on a sub-buffer here; and origins are given
/// in whole rows and slices, because PoCL takes others for overlapping.
pub(super) fn of_copy_rect(
    (src, src_origin): (&Mem, &[usize; 3]),
    (dst, dst_origin): (&Mem, &[usize; 3]),
    region: &[usize; 3],
    pitches: &[usize; 4],
) -> (RectPlace, RectPlace) {
    let in_root = |mem: &Mem, origin: &[usize; 3], row: usize, slice: usize| {
        let offset = mem.offset_in_root() + origin[2] * slice + origin[1] * row + origin[0];
        (mem.root_raw(), rect_origin(offset, row, slice, region[2]))
    };
    (in_root(src, src_origin, pitches[0], pitches[1]), in_root(dst, dst_origin, pitches[2], pitches[3]))
}

/// A byte offset as byte in a row, row in a slice, and slice. Pitches are not zero, and the slice's is a multiple of the
/// row's. A rectangle of one slice lies in the first, whatever its pitch.
pub(crate) fn rect_origin(offset: usize, row_pitch: usize, slice_pitch: usize, slices: usize) -> [usize; 3] {
    if slices == 1 {
        [offset % row_pitch, offset / row_pitch, 0]
    } else {
        [offset % row_pitch, offset % slice_pitch / row_pitch, offset / slice_pitch]
    }
}
