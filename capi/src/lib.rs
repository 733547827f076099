//! clgraph for C and C++: graphs of OpenCL commands that are built once and submitted often.
//!
//! The header `include/clgraph.h` is the documentation. It is generated from this crate by `cbindgen`, and
//! `tests/header.rs` checks that it is current. This crate uses the public interface of the Rust crate only.
//!
//! | file | what is there |
//! |---|---|
//! | `status.rs` | what functions return, and the last error of a thread; no panic leaves a function |
//! | `handle.rs` | handles: retained and released by count, and found wrong where they are wrong |
//! | `objects.rs` | what the program has already: queues, kernels, memory |
//! | `image.rs` | images and samplers, and the nodes of images |
//! | `parameter.rs` | parameters |
//! | `event.rs` | events, and events that the program completes |
//! | `program.rs` | device globals, and the programs that use them |
//! | `graph.rs` | graphs, edges, and what every node can have |
//! | `transfer.rs` | nodes that copy, fill, write and read memory, and begin and end its life |
//! | `launch.rs` | kernels: launches, their arguments, groups of launches |
//! | `task.rs` | host tasks, and the view that they have of their submission |
//! | `map.rs` | host tasks that get memory mapped |
//! | `native.rs` | commands of the program's own |
//! | `record.rs` | recording |
//! | `enqueue.rs` | commands of a queue, which execute or are recorded |
//! | `execute.rs` | finalizing, submitting, updates, reports, sub-graphs |
//! | `submission.rs` | submissions: waiting, results, times |
//! | `query.rs` | lists, drawings, and what devices can do |
//! | `texts.rs` | texts of errors, with the names that things have in C |
//! | `pointers.rs` | reading what C points to |
//!
//! # Safety
//!
//! - **caller**: each pointer that C gives is null, or points to as much as its documentation says, for as long as it
//!   says. OpenCL handles are null or live.
#![allow(non_camel_case_types)]

mod enqueue;
mod event;
mod execute;
mod graph;
mod handle;
mod image;
mod launch;
mod map;
mod native;
mod objects;
mod parameter;
mod pointers;
mod program;
mod query;
mod record;
mod status;
mod submission;
mod task;
mod texts;
mod transfer;

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

/// Fails if the library that was loaded is not for this header: pass CLG_VERSION_MAJOR and CLG_VERSION_MINOR, before any
/// other call. `clgraph.hpp` does so itself.
#[unsafe(no_mangle)]
pub extern "C" fn clg_check_version(major: u32, minor: u32) -> clg_status {
    status::enter(|| {
        if (major, minor) == (CLG_VERSION_MAJOR, CLG_VERSION_MINOR) {
            return Ok(());
        }
        let library = env!("CARGO_PKG_VERSION");
        Err(status::Failure::invalid(format!(
            "the program was compiled with the header of clgraph {major}.{minor}, and the library is {library}: compile it \
             again, or load the library of its version"
        )))
    })
}

/// Returns the version of the library that was loaded, for example "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn clg_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
