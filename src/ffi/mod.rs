//! The only place that knows C function types: one file for each table of functions.
//!
//! Input: addresses of functions, from the OpenCL library or from a driver. Output: typed tables of functions, which
//! only `cl` calls.
//!
//! | file | functions |
//! |---|---|
//! | `core.rs` | those that the OpenCL library itself exports, loaded once at run time: read it first |
//! | `command_buffer.rs` | `cl_khr_command_buffer`, whose functions have two signatures: which one a driver has |
//! | `mutable_dispatch.rs` | `cl_khr_command_buffer_mutable_dispatch`, which has two forms as well |
//! | `usm.rs`, `global_variable.rs` | `cl_intel_unified_shared_memory`; `cl_intel_global_variable_access` |
//! | `image.rs` | the struct that describes an image |
//! | `capture.rs` | clgraph's layer: captures of queues |
//! | `process_end.rs` | `atexit` of the C library |
//! | `priority.rs` | `setpriority` of the C library |
//! | `drivers.rs` | drivers that the loader lists (ICD files) and that cannot be loaded |
//!
//! Tables of extension functions, which no library exports, are filled in `cl/query/extensions.rs`.
//!
//! # Safety
//!
//! - **headers**: a table is sound when every field has the type that the OpenCL headers give the function of that
//!   name; that is what a reader has to check.
//! - **ABI**: a function that has had two signatures is kept as an address, and called here by the one that was found
//!   for the driver. Everything else is called in `cl`.
#![allow(unsafe_code)]

pub(crate) mod capture;
pub(crate) mod command_buffer;
pub(crate) mod core;
pub(crate) mod drivers;
pub(crate) mod global_variable;
pub(crate) mod image;
pub(crate) mod mutable_dispatch;
pub(crate) mod priority;
pub(crate) mod process_end;
pub(crate) mod usm;

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

/// Returns the address of a driver's extension function by its name, or null if the driver has none.
pub(crate) type Lookup<'a> = &'a dyn Fn(&CStr) -> *mut c_void;

/// The address of a function whose signature depends on the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address(NonNull<c_void>);

// SAFETY: the address of code is the same for all threads.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Address {
    fn find(lookup: Lookup<'_>, name: &CStr) -> Option<Self> {
        NonNull::new(lookup(name)).map(Self)
    }
}
