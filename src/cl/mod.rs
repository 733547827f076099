//! Small safe objects over the OpenCL calls that clgraph makes. Only this folder calls [`ffi`](crate::ffi).
//!
//! The layers above give it checked values: handles, byte ranges, wait lists. It makes the OpenCL call, and returns an
//! object, an event, or a [`DriverError`] with the name of the call and of the status. Nothing here knows what a graph
//! is.
//!
//! | folder or file | what is there |
//! |---|---|
//! | `objects` | one file for each OpenCL object: queue, program, kernel, buffer, image, event, command buffer |
//! | `memory` | memory as commands name it, host memory of transfers, maps, device globals, and when memory is freed |
//! | `commands` | one function for each command that can be enqueued |
//! | `completion` | what happens when commands end: events, order of queues, releases, callbacks, user code |
//! | `query` | what a device can do, extension functions, and the `clGet*Info` calls |
//! | `fake.rs`, `fake/launch.rs` | the fake driver of command buffers, for tests only |
//!
//! Read `objects/handle.rs` first, then `objects/queue.rs` and `commands/enqueue.rs`.
//!
//! A workaround for a driver's fault stands at the OpenCL call that needs it, in this folder, with driver and version.
//! If it depends on which driver it is, the question goes to `quirks.rs`. Each fault has a line in `docs/drivers.md`.
//!
//! # Safety
//!
//! Each `unsafe` block argues from one of these invariants, by name.
//!
//! - **live**: a [`Handle`](objects::handle::Handle) owns one reference to an object of its kind, from its making to
//!   its drop, so its raw pointer is valid for as long as the handle is borrowed.
//! - **threads**: "All OpenCL API calls are thread-safe except those that modify the state of cl_kernel objects:
//!   clSetKernelArg, clSetKernelArgSVMPointer, clSetKernelExecInfo and clCloneKernel" (OpenCL 3.0, appendix A.2).
//!   Arguments are set only while a [`KernelObject`](objects::kernel_object::KernelObject) is being made, when nothing
//!   else has it, or under the lock of the object that a [`Kernel`](objects::kernel::Kernel) has for launches outside
//!   of graphs; cloning a kernel holds the lock of the [`Kernel`](objects::kernel::Kernel) that is cloned.
//! - **query**: a value read with a `clGet*Info` call is plain data of exactly the size that the same call asked for.
//! - **lists**: a list goes to a driver as its address and count, or as NULL and 0 when it is empty. Some drivers read
//!   the dangling address of an empty slice.
//! - **guard**: the code that makes a host guard of an allocation has checked that no command uses the allocation.
//!   While the guard lives, no command that uses the allocation is submitted. An allocation has either one guard that
//!   writes, or any number of guards that read.
//! - **promise**: an enqueued kernel stays inside its declared arguments. The user promised it at the kernel node, for
//!   every value that safe code can give, and whoever enqueues keeps what the arguments name alive.
//! - **host memory**: memory given to a transfer that does not block stays where it is, and is not touched by the host,
//!   until the transfer's event is complete. [`HostData`](memory::host::HostData) and [`Slot`](memory::host::Slot) are
//!   owned by the submission or by the executable. When the owner goes before the transfer is complete, it hands them
//!   to the thread of the [`event_reaper`](completion::event_reaper).
#![allow(unsafe_code)]

pub(crate) mod commands;
pub(crate) mod completion;
#[cfg(test)]
pub(crate) mod fake;
pub(crate) mod memory;
pub(crate) mod objects;
pub(crate) mod query;

use opencl_sys::{CL_SUCCESS, cl_int};

use crate::error::{DriverError, DriverFault, Status};

/// Stands for a missing function, in place of a status. No driver returns this value.
const MISSING: cl_int = cl_int::MIN;

/// Turns a status into a result that carries the call's name.
fn check(call: &'static str, status: cl_int) -> Result<(), DriverError> {
    if status == CL_SUCCESS { Ok(()) } else { Err(refused(call, status)) }
}

#[cold]
fn refused(call: &'static str, status: cl_int) -> DriverError {
    if status == MISSING {
        DriverError::faulty(call, DriverFault::Missing)
    } else {
        DriverError::new(call, Status(status))
    }
}
