//! Memory with an address that is given back: at once, or later where a driver needs that.
//!
//! PoCL 7.1 lets go of a command's memory after its event says complete, and does not keep its threads apart then: memory that is
//! freed at that moment ends the process ("Overlapping BDA pointer", "refcount > 0"), when something else gets its address or is
//! enqueued meanwhile. There what is freed waits: for the first that is allocated or freed half a second later, for a lack of
//! memory, or for the end of the context. Until then nothing gets its address.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use opencl_sys::{CL_SUCCESS, cl_context};

use super::allocation::Api;
use crate::error::Status;
use crate::ffi::core::Core;

/// Longer than a thread of the driver needs to end a command, also on a busy machine.
const A_WHILE: Duration = Duration::from_millis(500);

/// What a context has yet to give back, oldest first. Its lock is held while memory is allocated or given back, so that no two
/// threads do so at once.
#[derive(Default)]
pub(super) struct Freed(VecDeque<(Instant, Memory)>);

/// Memory that nobody uses any more.
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
                    log::error!("clMemFreeINTEL failed with {}", Status(status));
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
        self.0.push_back((Instant::now(), memory));
        // SAFETY: the caller's promise.
        unsafe { self.settle(false, context) };
    }

    /// Gives back what has waited long enough, or all of it. Says whether that was anything.
    ///
    /// # Safety
    /// The context is the one that has these.
    pub(super) unsafe fn settle(&mut self, all: bool, context: cl_context) -> bool {
        let count = self.0.iter().take_while(|(since, _)| all || since.elapsed() >= A_WHILE).count();
        for (_, memory) in self.0.drain(..count) {
            // SAFETY: the caller's promise.
            unsafe { memory.give_back(context) };
        }
        count > 0
    }
}
