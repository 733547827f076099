//! The only place that knows C function types: one file a function table.
//!
//! `core` holds the functions that the OpenCL library itself exports. Tables of extension functions, which no
//! library exports, have a file each beside it.
//!
//! # Safety
//!
//! - **headers**: a table is sound when every field has the type that the OpenCL headers give the function of that name;
//!   that is what a reader has to check.
//! - **ABI**: a function that has had two signatures is kept as an address, and called here by the one that was found
//!   for the driver. Everything else is called in `cl`.
#![allow(unsafe_code)]

pub(crate) mod command_buffer;
pub(crate) mod core;
pub(crate) mod drivers;
pub(crate) mod global_variable;
pub(crate) mod image;
pub(crate) mod mutable_dispatch;
pub(crate) mod usm;

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

/// Where a driver's extension function is, by name. Null where it has none.
pub(crate) type Lookup<'a> = &'a dyn Fn(&CStr) -> *mut c_void;

/// The address of a function whose signature differs by driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address(NonNull<c_void>);

// SAFETY: the address of code, which is the same for all threads.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Address {
    fn find(lookup: Lookup<'_>, name: &CStr) -> Option<Self> {
        NonNull::new(lookup(name)).map(Self)
    }
}
