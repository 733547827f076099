//! The description of an image, as in the headers of OpenCL 1.2 and later.

use std::ffi::c_void;

use opencl_sys::{cl_mem, cl_mem_object_type, cl_uint};

/// `cl_image_desc`. The crate with the constants has two types for it, and a feature selects one of them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ImageDesc {
    pub(crate) kind: cl_mem_object_type,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
    pub(crate) layers: usize,
    pub(crate) row_pitch: usize,
    pub(crate) slice_pitch: usize,
    /// Some drivers end the process if this is not 0.
    mip_levels: cl_uint,
    samples: cl_uint,
    /// The buffer of an image that is made of one.
    pub(crate) buffer: cl_mem,
}

impl ImageDesc {
    pub(crate) fn new(kind: cl_mem_object_type, width: usize) -> Self {
        Self {
            kind,
            width,
            height: 0,
            depth: 0,
            layers: 0,
            row_pitch: 0,
            slice_pitch: 0,
            mip_levels: 0,
            samples: 0,
            buffer: std::ptr::null_mut::<c_void>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_description_is_that_of_the_headers() {
        let word = size_of::<usize>();
        assert_eq!(size_of::<ImageDesc>(), if word == 8 { 72 } else { 40 });
        assert_eq!(offset_of!(ImageDesc, width), word);
        assert_eq!(offset_of!(ImageDesc, slice_pitch), 6 * word);
        assert_eq!(offset_of!(ImageDesc, mip_levels), 7 * word);
        assert_eq!(offset_of!(ImageDesc, buffer), 7 * word + 8);
    }
}
