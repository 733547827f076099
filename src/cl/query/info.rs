//! The `clGet*Info` queries, which all have the same form.

use std::ffi::c_void;

use bytemuck::Pod;
use opencl_sys::cl_int;

use crate::cl::check;
use crate::error::DriverError;

/// Queries the size of a value, then the value.
///
/// `query` is one of the `clGet*Info` functions with its object and parameter already bound. It takes the last three
/// parameters that all of them have: the size, the address, and the address for the returned size.
pub(in crate::cl) fn bytes(
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

/// Queries a value of known size in one call.
pub(in crate::cl) fn value<T: Pod>(
    call: &'static str,
    query: impl Fn(usize, *mut c_void, *mut usize) -> cl_int,
) -> Result<T, DriverError> {
    let mut value = T::zeroed();
    check(call, query(size_of::<T>(), (&raw mut value).cast(), std::ptr::null_mut()))?;
    Ok(value)
}

/// Queries an array of values.
pub(in crate::cl) fn values<T: Pod>(
    call: &'static str,
    query: impl Fn(usize, *mut c_void, *mut usize) -> cl_int,
) -> Result<Vec<T>, DriverError> {
    let bytes = bytes(call, query)?;
    Ok(bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect())
}

/// Queries a text, and removes the zero at its end, and blanks at both ends.
pub(in crate::cl) fn text(
    call: &'static str,
    query: impl Fn(usize, *mut c_void, *mut usize) -> cl_int,
) -> Result<String, DriverError> {
    whole_text(call, query).map(|text| text.trim().to_owned())
}

/// Queries a text in which blanks and empty lines mean something, and removes the zero at its end.
pub(in crate::cl) fn whole_text(
    call: &'static str,
    query: impl Fn(usize, *mut c_void, *mut usize) -> cl_int,
) -> Result<String, DriverError> {
    let mut bytes = bytes(call, query)?;
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Makes a closure for the functions above: it calls `$function` of the table with the given object and parameter.
macro_rules! ask {
    ($core:expr, $function:ident, $($arg:expr),+) => {{
        let core = $core;
        // SAFETY: **live** for the object, **query** for the value: its size and address belong together.
        move |size, value, size_ret| unsafe { (core.$function)($($arg),+, size, value, size_ret) }
    }};
}
pub(in crate::cl) use ask;
