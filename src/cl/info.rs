//! The `clGet*Info` queries, all of one shape.

use std::ffi::c_void;

use bytemuck::Pod;
use opencl_sys::cl_int;

use super::check;
use crate::error::DriverError;

/// Asks for the size of a value and then for the value.
///
/// `query` is one of the `clGet*Info` functions with its object and parameter already given; it gets the size, the
/// address and the place for the size that are the last three parameters of them all.
pub(super) fn bytes(
    call: &'static str,
    query: impl Fn(usize, *mut c_void, *mut usize) -> cl_int,
) -> Result<Vec<u8>, DriverError> {
    let mut size = 0;
    check(call, query(0, std::ptr::null_mut(), &raw mut size))?;
    let mut value = vec![0_u8; size];
    if size > 0 {
        check(call, query(size, value.as_mut_ptr().cast(), std::ptr::null_mut()))?;
    }
    Ok(value)
}

/// A value of a size known beforehand, asked for in one call.
pub(super) fn value<T: Pod>(
    call: &'static str,
    query: impl Fn(usize, *mut c_void, *mut usize) -> cl_int,
) -> Result<T, DriverError> {
    let mut value = T::zeroed();
    check(call, query(size_of::<T>(), (&raw mut value).cast(), std::ptr::null_mut()))?;
    Ok(value)
}

/// An array of values.
pub(super) fn values<T: Pod>(
    call: &'static str,
    query: impl Fn(usize, *mut c_void, *mut usize) -> cl_int,
) -> Result<Vec<T>, DriverError> {
    let bytes = bytes(call, query)?;
    Ok(bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect())
}

/// A text, without the zero at its end.
pub(super) fn text(
    call: &'static str,
    query: impl Fn(usize, *mut c_void, *mut usize) -> cl_int,
) -> Result<String, DriverError> {
    let mut bytes = bytes(call, query)?;
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// A closure for the functions above: calls `$function` of the table with the object and parameter given.
macro_rules! ask {
    ($core:expr, $function:ident, $($arg:expr),+) => {{
        let core = $core;
        // SAFETY: **live** for the object, **query** for the value: its size and address belong together.
        move |size, value, size_ret| unsafe { (core.$function)($($arg),+, size, value, size_ret) }
    }};
}
pub(super) use ask;
