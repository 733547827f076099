//! clgraph for C and C++: graphs of OpenCL commands that are built once and submitted often.
//!
//! The header `include/clgraph.h` is the documentation. It is generated from this crate by `cbindgen`, and
//! `tests/header.rs` checks that it is current. This crate uses the public interface of the Rust crate only.
//!
//! | file | what is there |
//! |---|---|
//! | `status.rs` | what functions return, and the last error of a thread; no panic leaves a function |
//! | `handle.rs` | handles: retained and released by count, and found wrong where they are wrong |
//! | `objects.rs` | what the program has already: queues, kernels, memory; parameters and user events |
//! | `graph.rs` | graphs, and the nodes other than kernels and host tasks |
//! | `launch.rs` | kernel nodes and their arguments |
//! | `task.rs` | host tasks, and the view that they have of their submission |
//! | `execute.rs` | finalizing, submitting, results, updates, reports |
//! | `pointers.rs` | reading what C points to |
//!
//! # Safety
//!
//! - **caller**: each pointer that C gives is null, or points to as much as its documentation says, for as long as it
//!   says. OpenCL handles are null or live.
#![allow(non_camel_case_types)]

mod execute;
mod graph;
mod handle;
mod launch;
mod objects;
mod pointers;
mod status;
mod task;

use std::ffi::c_char;

pub use status::clg_status;

/// The version of the header, which the version of the library must have the same major and minor number as.
pub const CLG_VERSION_MAJOR: u32 = 0;
/// The minor number of the version.
pub const CLG_VERSION_MINOR: u32 = 1;
/// The third number of the version.
pub const CLG_VERSION_PATCH: u32 = 0;

/// Returns how many objects of the process have handles: 0 when a program has released all that it made.
#[unsafe(no_mangle)]
pub extern "C" fn clg_live_objects() -> usize {
    handle::LIVE.load(std::sync::atomic::Ordering::Relaxed)
}

/// Returns the version of the library that was loaded, for example "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn clg_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
