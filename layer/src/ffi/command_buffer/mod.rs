//! `cl_khr_command_buffer` and `cl_khr_command_buffer_mutable_dispatch` for drivers without them.
//!
//! A command buffer is a list of commands with the order in which they run. It is enqueued as the commands that it has, one
//! after another, with events where the queue does not order them. What is right is decided in [`crate::command_buffer`], before
//! a driver is called; here are the calls.
//!
//! - [`buffer`]: command buffers. [`record`] adds commands to them, [`enqueue`] runs them, [`update`] changes them.
//! - [`alone`]: nothing comes between the commands of one that runs.
//! - [`hold`]: what holds back a long command buffer until all of it is enqueued.
//! - [`make`]: commands of what programs give. [`command`]: what a command is, and the call that enqueues it.
//! - [`capture`]: a queue whose commands become those of a command buffer. [`captured`]: the calls that this concerns.
//! - [`visit`]: what was captured, for libraries that make commands of their own of it.
//! - [`events`]: events that [`enqueue`] has returned are those of the last command, and answer for all.
//! - [`kernels`]: which arguments the program's kernels have. [`prepared`]: kernels with their arguments, as launches have them.
//! - [`extensions`]: what programs read and ask for, so that they find all this.
//! - [`calls`], [`query`], [`owned`]: the loader's functions, what drivers say, references that are held.
//!
//! These rules are beside those of [`super`]:
//!
//! - **H (handles)**: a handle of a command buffer or of a command is looked up, and never looked into. Handles of drivers' objects
//!   are theirs: nothing stands in their place, so libraries and other layers may have them.
//! - **W (whole)**: a call that fails has changed nothing. What is wrong is found before a driver is called to run something.
//! - **K (kernels)**: a command has a kernel object of its own, whose arguments are set before another thread can see it, and never
//!   again. An update makes a new one. So submissions need no lock, and keep what they were enqueued with.

mod alone;
mod buffer;
mod calls;
mod capture;
mod captured;
mod command;
mod enqueue;
mod events;
mod extensions;
mod hold;
mod kernels;
mod make;
mod owned;
mod prepared;
mod query;
mod record;
mod update;
mod visit;

use std::ffi::c_void;

use opencl_sys::{CL_OUT_OF_HOST_MEMORY, CL_SUCCESS, cl_int};

use super::quietly;
use crate::command_buffer::Checked;

pub(super) use extensions::begin;

/// Returns all wrappers, with their places in the table.
pub(super) fn wrappers() -> Vec<(usize, *mut c_void)> {
    let mut all = extensions::wrappers();
    all.extend(events::wrappers());
    all.extend(kernels::wrappers());
    all.extend(captured::wrappers());
    all
}

/// Does the work of a function that programs call. Nothing unwinds: rule U.
fn enter(work: impl FnOnce() -> Checked) -> cl_int {
    match quietly(work) {
        Some(Ok(())) => CL_SUCCESS,
        Some(Err(status)) => status,
        None => CL_OUT_OF_HOST_MEMORY,
    }
}
