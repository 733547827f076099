//! Memory that is given back: at once, or later where a driver needs that.
//!
//! PoCL 7.1 lets go of a command's memory after its event says complete, and does not keep its threads apart then: memory with an
//! address that is freed at that moment ends the process ("Overlapping BDA pointer"), when something else gets its address
//! meanwhile. There what is freed waits: for the first that is allocated or freed half a second later, for a lack of memory, or
//! for the end of the context. Until then nothing gets its address.
//!
//! Nor does it keep a sub-buffer while it goes through those of a buffer, for a command on that: one that a thread of the driver
//! gives back then, with the last command that had it, ends the process ("PTHREAD ERROR in pocl_create_migration_commands"). There
//! a sub-buffer that commands have is kept until a later look finds it with nobody else, when memory is made or given back.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use opencl_sys::{CL_MEM_REFERENCE_COUNT, CL_SUCCESS, cl_context};

use super::allocation::Api;
use super::handle::{Handle, MemKind};
use super::info::{self, ask};
use crate::error::Status;
use crate::ffi::core::Core;

/// Longer than a thread of the driver needs to end a command, also on a busy machine.
const A_WHILE: Duration = Duration::from_millis(500);

/// What a context has yet to give back. Its lock is held while memory with an address is allocated or given back, so that no two
/// threads do so at once.
#[derive(Default)]
pub(super) struct Freed {
    /// Oldest first.
    addresses: VecDeque<(Instant, Memory)>,
    sub_buffers: Vec<Handle<MemKind>>,
}

/// Memory with an address that nobody uses any more.
pub(super) struct Memory {
    pointer: NonNull<c_void>,
    api: Api,
}

// SAFETY: **threads**; nobody else has the address any more.
unsafe impl Send for Memory {}

impl Memory {
    /// # Safety
    /// It came from an allocation by these functions, no command uses it, and it is given back only by this.
    pub(super) unsafe fn new(pointer: NonNull<c_void>, api: Api) -> Self {
        Self { pointer, api }
    }

    /// # Safety
    /// The context is the one that it was allocated in.
    pub(super) unsafe fn give_back(self, context: cl_context) {
        let pointer = self.pointer.as_ptr();
        match self.api {
            Api::Svm => {
                let Ok(core) = Core::get() else { return };
                if let Some(free) = core.clSVMFree {
                    // SAFETY: **live**; by the promises of `new` and of this.
                    unsafe { free(context, pointer) };
                }
            }
            Api::Usm(fns) => {
                // SAFETY: as above.
                let status = unsafe { (fns.free)(context, pointer) };
                if status != CL_SUCCESS {
                    log::error!("clMemFreeINTEL failed with {}: the memory is not freed", Status(status));
                }
            }
        }
    }
}

impl Freed {
    /// Gives memory back in a while, and what was added a while ago now.
    ///
    /// # Safety
    /// The context is the one that it was allocated in, which is the one that has these.
    pub(super) unsafe fn add(&mut self, memory: Memory, context: cl_context) {
        self.addresses.push_back((Instant::now(), memory));
        // SAFETY: the caller's promise.
        unsafe { self.settle(false, context) };
    }

    /// Before a reference to a sub-buffer goes: keeps one for as long as somebody else has it, who may be a command.
    pub(super) fn keep_used(&mut self, sub_buffer: &Handle<MemKind>) {
        if self.sub_buffers.contains(sub_buffer) || !has_others(sub_buffer) {
            return;
        }
        match sub_buffer.try_clone() {
            Ok(kept) => self.sub_buffers.push(kept),
            Err(error) => log::debug!("{error}: a sub-buffer goes while commands may have it"),
        }
    }

    /// The sub-buffers that nobody else has any more. To be dropped where no lock is held: a driver may call users' code then.
    pub(super) fn unused(&mut self) -> Vec<Handle<MemKind>> {
        self.sub_buffers.extract_if(.., |kept| !has_others(kept)).collect()
    }

    /// Gives back what has waited long enough, or all memory with an address. Says whether that was anything.
    ///
    /// # Safety
    /// The context is the one that has these.
    pub(super) unsafe fn settle(&mut self, all: bool, context: cl_context) -> bool {
        let count = self.addresses.iter().take_while(|(since, _)| all || since.elapsed() >= A_WHILE).count();
        for (_, memory) in self.addresses.drain(..count) {
            // SAFETY: the caller's promise.
            unsafe { memory.give_back(context) };
        }
        count > 0
    }
}

/// Whether there are other references to it than this one.
fn has_others(handle: &Handle<MemKind>) -> bool {
    let Ok(core) = Core::get() else { return false };
    let count = ask!(core, clGetMemObjectInfo, handle.raw(), CL_MEM_REFERENCE_COUNT);
    info::value::<u32>("clGetMemObjectInfo", count).is_ok_and(|count| count > 1)
}
