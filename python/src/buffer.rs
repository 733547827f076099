//! The buffer protocol. PyO3's own buffer refuses what has no dimensions, as numpy's scalars.

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;

use pyo3::ffi;
use pyo3::prelude::*;

/// A view of the bytes of an object, which keeps the object alive and has it keep its bytes in place.
pub(crate) struct Buffer(Box<ffi::Py_buffer>);

// SAFETY: the view is plain data; the object is used with the interpreter's lock only.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    pub(crate) fn get(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut view = Box::<ffi::Py_buffer>::new_uninit();
        let place: *mut MaybeUninit<ffi::Py_buffer> = &mut *view;
        // SAFETY: `object` is alive, and `place` has room for a view. A view may point into itself, so it stays in the
        // box.
        let status = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), place.cast(), ffi::PyBUF_FULL_RO) };
        if status != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: the call succeeded, so it has filled the view in.
        Ok(Self(unsafe { view.assume_init() }))
    }

    /// The first byte.
    pub(crate) fn start(&self) -> *mut c_void {
        self.0.buf
    }

    /// The number of bytes.
    pub(crate) fn size(&self) -> usize {
        self.0.len as usize
    }

    pub(crate) fn dimensions(&self) -> usize {
        self.0.ndim as usize
    }

    pub(crate) fn readonly(&self) -> bool {
        self.0.readonly != 0
    }

    /// The type of the elements, as Python's `struct` writes it.
    pub(crate) fn format(&self) -> &[u8] {
        if self.0.format.is_null() {
            return b"B";
        }
        // SAFETY: the view was asked for with its format, which is a text and lives as long as the view.
        unsafe { CStr::from_ptr(self.0.format) }.to_bytes()
    }

    /// The letters of the format: without the names of fields, `:name:`, which may have any letters. A name has no `:`.
    pub(crate) fn types(&self) -> impl Iterator<Item = u8> + '_ {
        self.format().split(|letter| *letter == b':').step_by(2).flatten().copied()
    }

    /// Whether there is a Python object in an element.
    pub(crate) fn has_objects(&self) -> bool {
        self.types().any(|letter| letter == b'O')
    }

    /// Whether the elements lie one after the other in C's order.
    pub(crate) fn is_contiguous(&self) -> bool {
        // SAFETY: the view is filled in; the function only looks at it.
        unsafe { ffi::PyBuffer_IsContiguous(&*self.0, b'C' as std::ffi::c_char) != 0 }
    }

    /// The bytes, if they are contiguous. The interpreter's lock is held meanwhile, so no Python code changes them.
    pub(crate) fn bytes<'a>(&'a self, _py: Python<'a>) -> Option<&'a [u8]> {
        if !self.is_contiguous() {
            return None;
        }
        if self.size() == 0 {
            return Some(&[]);
        }
        // SAFETY: a contiguous view has that many bytes, and it is held.
        Some(unsafe { std::slice::from_raw_parts(self.0.buf.cast::<u8>().cast_const(), self.size()) })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // Where it may be dropped without the lock, it is in a `Kept`; so this attaches to what is attached already.
        crate::gate::attach(|_| {
            // SAFETY: the view is filled in, and is released once; the interpreter's lock is held.
            unsafe { ffi::PyBuffer_Release(&mut *self.0) };
        });
    }
}
