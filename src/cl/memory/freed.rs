//! Frees memory: at once, or later where a driver needs that.
//!
//! PoCL 7.1 still uses the memory of a command for a moment after the event of the command is complete, and its threads
//! are not synchronized then. If memory with an address is freed at that moment, and an allocation gets the same
//! address, the process ends ("Overlapping BDA pointer"). So on PoCL 7.1 freed memory is kept for half a second, and
//! nothing else gets its address meanwhile. The next allocation or free after that time really frees it. A lack of
//! memory, or the end of the context, frees it earlier.
//!
//! PoCL 7.1 also iterates over the sub-buffers of a buffer, for a command on that buffer, without holding references to
//! them. If a driver thread releases the last reference to a sub-buffer meanwhile, after the last command that used it,
//! the process ends ("PTHREAD ERROR in pocl_create_migration_commands"). So on PoCL 7.1 clgraph keeps a reference to
//! each sub-buffer. When memory is allocated or freed later by a thread of the program, it drops the references that
//! are the last ones, unless a thread of clgraph enqueues a command at that moment, or a gate is closed: then the thread
//! that opens the gate would release them.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use opencl_sys::{CL_MEM_REFERENCE_COUNT, CL_SUCCESS, cl_context};

use crate::cl::completion::user_code::log_later;
use crate::cl::memory::allocation::Api;
use crate::cl::objects::handle::{Handle, MemKind};
use crate::cl::query::info::{self, ask};
use crate::error::Status;
use crate::ffi::core::Core;

/// Longer than a driver thread needs to end a command, also on a busy machine.
const A_WHILE: Duration = Duration::from_millis(500);

/// Memory of a context that is still to be freed. Its lock is held while memory with an address is allocated or freed,
/// so that no two threads do this at once.
#[derive(Default)]
pub(in crate::cl) struct Freed {
    /// The oldest first.
    addresses: VecDeque<(Instant, Memory)>,
    sub_buffers: Vec<Handle<MemKind>>,
}

/// Memory with an address that nothing uses any more.
pub(in crate::cl) struct Memory {
    pointer: NonNull<c_void>,
    api: Api,
}

// SAFETY: **threads**; nothing else has the address any more.
unsafe impl Send for Memory {}

impl Memory {
    /// # Safety
    /// The memory came from an allocation by these functions, no command uses it, and only this value frees it.
    pub(in crate::cl) unsafe fn new(pointer: NonNull<c_void>, api: Api) -> Self {
        Self { pointer, api }
    }

    /// # Safety
    /// The memory was allocated in this context.
    pub(in crate::cl) unsafe fn give_back(self, context: cl_context) {
        let pointer = self.pointer.as_ptr();
        match self.api {
            Api::Svm => {
                let Ok(core) = Core::get() else { return };
                if let Some(free) = core.clSVMFree {
                    // SAFETY: **live**; by the promises of `new` and of this function.
                    unsafe { free(context, pointer) };
                }
            }
            Api::Usm(fns) => {
                // SAFETY: as above.
                let status = unsafe { (fns.free)(context, pointer) };
                if status != CL_SUCCESS {
                    log_later!(Error, "clMemFreeINTEL failed with {}: the memory is not freed", Status(status));
                }
            }
        }
    }
}

impl Freed {
    /// Frees memory after a while, and frees now what was added a while ago.
    ///
    /// # Safety
    /// The memory was allocated in this context, and this `Freed` belongs to the same context.
    pub(in crate::cl) unsafe fn add(&mut self, memory: Memory, context: cl_context) {
        self.addresses.push_back((Instant::now(), memory));
        // SAFETY: the caller's promise.
        unsafe { self.free_ready(false, context) };
    }

    /// Keeps a reference to a sub-buffer until nothing else, for example a command, has one. Call this before another
    /// reference is released.
    pub(in crate::cl) fn keep(&mut self, sub_buffer: &Handle<MemKind>) {
        if self.sub_buffers.contains(sub_buffer) {
            return;
        }
        match sub_buffer.try_clone() {
            Ok(kept) => self.sub_buffers.push(kept),
            Err(error) => log_later!(Debug, "{error}: a sub-buffer is released while commands may still use it"),
        }
    }

    /// Removes the sub-buffers to which nothing else has a reference. The caller drops them where it holds no lock,
    /// because a driver may then call code of users.
    pub(in crate::cl) fn unused(&mut self) -> Vec<Handle<MemKind>> {
        self.sub_buffers.extract_if(.., |kept| !has_others(kept)).collect()
    }

    /// Frees the memory that has waited long enough, or all of it. Returns whether it freed anything.
    ///
    /// # Safety
    /// This `Freed` belongs to the context.
    pub(in crate::cl) unsafe fn free_ready(&mut self, all: bool, context: cl_context) -> bool {
        let count = self.addresses.iter().take_while(|(since, _)| all || since.elapsed() >= A_WHILE).count();
        for (_, memory) in self.addresses.drain(..count) {
            // SAFETY: the caller's promise.
            unsafe { memory.give_back(context) };
        }
        count > 0
    }
}

/// Returns whether there are references to the object other than this one.
pub(in crate::cl) fn has_others(handle: &Handle<MemKind>) -> bool {
    let Ok(core) = Core::get() else { return false };
    let count = ask!(core, clGetMemObjectInfo, handle.raw(), CL_MEM_REFERENCE_COUNT);
    info::value::<u32>("clGetMemObjectInfo", count).is_ok_and(|count| count > 1)
}
