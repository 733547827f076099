//! The OpenCL objects, one file each: safe to hold, counted, and released in time.
//!
//! Input: raw C handles, objects of `opencl3` and options. Output: wrapped objects, which the other folders of `cl`
//! enqueue, map and query. Wrapping asks the driver once for everything that later checks need: size, flags, parent,
//! context.
//!
//! Read `handle.rs` first: every other object holds one of its handles.
//!
//! | file | object |
//! |---|---|
//! | `handle.rs` | a counted reference to any OpenCL object, and how it is released |
//! | `raw.rs` | the `unsafe` constructors of the public `Queue` and `Event` from C handles |
//! | `device.rs`, `context.rs` | platforms and devices; contexts, and what is kept once for each context |
//! | `queue.rs` | `DriverQueue`, an OpenCL command queue: all wrappers of one `cl_command_queue` share one |
//! | `retired_queues.rs` | out-of-order queues that were dropped, and are used again |
//! | `event.rs` | `DriverEvent`, an event of the driver; `Gate`, a user event that always completes |
//! | `buffer.rs`, `image.rs`, `sampler.rs` | buffers, their slices and sub-buffers; images; samplers |
//! | `program.rs`, `program_builder.rs` | programs from every form that OpenCL knows; building them |
//! | `kernel.rs`, `kernel_params.rs` | a kernel function; what a program says of its parameters |
//! | `kernel_object.rs` | a `cl_kernel` with its arguments set |
//! | `fused.rs` | programs with fused kernels, built from their text and shared |
//! | `kept_programs.rs` | the binaries of such programs, in files for the next process |
//! | `guarded.rs` | the same program with kernels that run only if a number in memory is not zero |
//! | `command_buffer.rs` | command buffers: recorded once, enqueued often, changed in place where the driver can |
//!
//! Invariants: **live** and **threads** of `cl/mod.rs`. The arguments of a kernel object change only where nobody
//! else has the object. A gate is set to complete in `Drop` at the latest, and no event is ever set to a failure (rule
//! H5).

pub(crate) mod buffer;
pub(crate) mod command_buffer;
pub(crate) mod context;
pub(crate) mod device;
pub(crate) mod event;
pub(crate) mod fused;
pub(crate) mod guarded;
pub(crate) mod handle;
pub(crate) mod image;
pub(crate) mod kept_programs;
pub(crate) mod kernel;
pub(crate) mod kernel_object;
pub(crate) mod kernel_params;
pub(crate) mod program;
pub(crate) mod program_builder;
pub(crate) mod program_source;
pub(crate) mod queue;
pub(in crate::cl) mod raw;
pub(in crate::cl) mod retired_queues;
pub(crate) mod sampler;
