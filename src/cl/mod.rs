//! Small safe objects over the OpenCL calls that clgraph makes, and the only callers of [`ffi`](crate::ffi).
//!
//! One file an object. Nothing here knows what a graph is.
//!
//! # Safety
//!
//! Each `unsafe` block argues from one of these invariants, by name.
//!
//! - **live**: a [`Handle`](handle::Handle) owns one reference to an object of its kind, from its making to its drop,
//!   so its raw pointer is valid for as long as the handle is borrowed.
//! - **threads**: "All OpenCL API calls are thread-safe except those that modify the state of cl_kernel objects:
//!   clSetKernelArg, clSetKernelArgSVMPointer, clSetKernelExecInfo and clCloneKernel" (OpenCL 3.0, appendix A.2).
//!   Arguments are set only while a [`KernelObject`](kernel_object::KernelObject) is being made, when nothing else has it, or
//!   under the lock of the object that a [`Kernel`](kernel::Kernel) has for launches outside of graphs; cloning a kernel
//!   holds the lock of the [`Kernel`](kernel::Kernel) that is cloned.
//! - **query**: a value read with a `clGet*Info` call is plain data of exactly the size that the same call asked for.
//! - **lists**: a list goes to a driver as its address and count, or as NULL and 0 when it is empty. Some drivers
//!   read the dangling address of an empty slice.
//! - **guard**: a guard of an allocation has made sure that no command uses it, and nothing that uses it is submitted while
//!   the guard lives; of guards that write there is one, and none beside it.
//! - **promise**: an enqueued kernel stays inside its declared arguments. The user promised it at the kernel node, for
//!   every value that safe code can give, and whoever enqueues keeps what the arguments name alive.
//! - **host memory**: memory given to a transfer that does not block stays where it is, and is not touched by the host,
//!   until the transfer's event is complete. [`HostData`](host::HostData) and [`Slot`](host::Slot) are owned by the
//!   submission or by the executable, which hand them to the [`watch`] thread when they go first.
#![allow(unsafe_code)]

pub(crate) mod allocation;
pub(crate) mod buffer;
mod capabilities;
pub(crate) mod command_buffer;
pub(crate) mod context;
pub(crate) mod copier;
pub(crate) mod device;
pub(crate) mod enqueue;
pub(crate) mod event;
pub(crate) mod extensions;
#[cfg(test)]
pub(crate) mod fake;
mod freed;
mod gates;
pub(crate) mod globals;
pub(crate) mod handle;
pub(crate) mod host;
pub(crate) mod image;
pub(crate) mod image_commands;
mod info;
pub(crate) mod kernel;
pub(crate) mod kernel_object;
mod lingering;
pub(crate) mod map;
pub(crate) mod map_image;
mod map_queue;
pub(crate) mod mem;
pub(crate) mod memory;
mod order;
pub(crate) mod places;
pub(crate) mod program;
pub(crate) mod program_builder;
pub(crate) mod program_globals;
pub(crate) mod queue;
mod raw;
pub(crate) mod reentrancy;
pub(crate) mod sampler;
pub(crate) mod stamp;
pub(crate) mod user_code;
pub(crate) mod watch;

use opencl_sys::{CL_SUCCESS, cl_int};

use crate::error::{DriverError, Fault, Status};

/// In place of a status: there is no function to call. No driver returns it.
const MISSING: cl_int = cl_int::MIN;

/// Turns a status into a result that carries the call's name.
fn check(call: &'static str, status: cl_int) -> Result<(), DriverError> {
    if status == CL_SUCCESS { Ok(()) } else { Err(refused(call, status)) }
}

#[cold]
fn refused(call: &'static str, status: cl_int) -> DriverError {
    if status == MISSING { DriverError::faulty(call, Fault::Missing) } else { DriverError::new(call, Status(status)) }
}
