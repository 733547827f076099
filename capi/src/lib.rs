//! clgraph for C and C++: graphs of OpenCL commands that are built once and submitted often.
//!
//! The header `include/clgraph.h` is the documentation. It is generated from this crate by `cbindgen`, and
//! `tests/header.rs` checks that it is current. This crate uses the public interface of the Rust crate only.
//!
//! | file | what is there |
//! |---|---|
//! | `version.rs` | which version the header and the library are, and what is still alive |
//! | `status.rs` | what functions return, and the last error of a thread; no panic leaves a function |
//! | `handle.rs` | handles: retained and released by count, and found wrong where they are wrong |
//! | `opencl.rs` | OpenCL's own handles, as `CL/cl.h` declares them |
//! | `objects.rs` | what the program has already: queues, kernels, memory |
//! | `image.rs` | images and samplers, and the nodes of images |
//! | `parameter.rs`, `number.rs` | parameters, and numbers whose type is named |
//! | `event.rs` | events, and events that the program completes |
//! | `program.rs` | device globals, and the programs that use them |
//! | `graph.rs` | graphs, edges, and what every node can have |
//! | `transfer.rs` | nodes that copy, fill, write and read memory, and begin and end its life |
//! | `launch.rs` | kernels: launches, and their arguments |
//! | `group.rs` | groups of launches or of host tasks |
//! | `task.rs` | host tasks, and the view that they have of their submission |
//! | `map.rs` | host tasks that get memory mapped |
//! | `native.rs` | commands of the program's own |
//! | `record.rs` | recording |
//! | `enqueue.rs` | commands of a queue, which execute or are recorded |
//! | `execute.rs` | finalizing, submitting, updates, reports, sub-graphs |
//! | `control.rs` | branches and loops |
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

mod control;
mod enqueue;
mod event;
mod execute;
mod graph;
mod group;
mod handle;
mod image;
mod launch;
mod map;
mod native;
mod number;
mod objects;
mod opencl;
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
mod version;

pub use status::clg_status;
pub use version::{CLG_VERSION_MAJOR, CLG_VERSION_MINOR, CLG_VERSION_PATCH};
