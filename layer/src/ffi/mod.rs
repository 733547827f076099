//! What loaders call, and what programs call through them. All unsafe code of the layer is here.
//!
//! The process is a stranger's. These rules keep it as it is:
//!
//! - **T (table)**: a place of [`targets`] has the loader's function of that place in `struct _cl_icd_dispatch` (CL/cl_icd.h),
//!   or null. A wrapper stands only where the loader has a function, so a wrapper finds one. Nothing is read beyond the entries
//!   that the loader has.
//! - **A (after)**: what the program passed is read after the driver has accepted the call, so it was valid, and the program
//!   still has it. A call that the driver refuses is looked at no further: what a driver answers with an error never ends here.
//!   The layer's own functions, and captured calls, which no driver sees, are checked before anything is read.
//! - **V (verbatim)**: a wrapper calls the loader's function once, with the arguments of the program, and returns what it
//!   returns. Nothing that goes wrong here changes that. What is captured is not called: it is kept for later.
//! - **U (unwind)**: no panic leaves a function: [`quietly`].
//! - **L (locks)**: no lock is held while a function of the loader runs, because it may call functions of the program that come
//!   back here. One is, and a thread that comes back does not wait for it: that of the queue to which a program with
//!   command buffers enqueues. An update holds one that only updates of the same command buffer take.
//! - No thread is started, and initialization calls nothing of the loader. Only command buffers hold references to objects.

mod command_buffer;
mod entries;
mod observe;
mod process;
mod targets;
mod watch;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Does work of the layer's own. Returns nothing if it panics: rule U.
fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
