//! Delays the release of objects while commands wait at gates.
//!
//! OpenCL does not define what happens if an object is released while a command waits for a user event that is not set
//! (OpenCL 3.0, `clCreateUserEvent`), events excepted. So an object that is dropped while gates of clgraph are closed is
//! released after all those gates have opened. Gates that close later do not delay it, so a program that always has a
//! closed gate leaks nothing. But one gate that never opens, because the program never completes the event before it,
//! delays everything that is dropped later, in all contexts: the specification makes no difference between contexts.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use opencl_sys::{CL_SUCCESS, cl_int};

use crate::cl::completion::user_code::log_later;
use crate::error::Status;

/// Whether gates are closed, or objects are being released. The usual case needs no lock.
static HOLDING: AtomicBool = AtomicBool::new(false);

static GATES: Mutex<Gates> =
    Mutex::new(Gates { next: 0, closed: BTreeSet::new(), later: VecDeque::new(), draining: false });

struct Gates {
    /// Each gate gets the next number when it is closed.
    next: u64,
    closed: BTreeSet<u64>,
    /// The dropped objects, oldest first.
    later: VecDeque<LaterRelease>,
    /// A thread is releasing objects that no gate delays any more. Objects that are dropped meanwhile queue up, because
    /// the order of releases can matter.
    draining: bool,
}

struct LaterRelease {
    /// The number of the newest gate that was closed at the drop, plus 1; 0 if there was none.
    after: u64,
    raw: NonNull<c_void>,
    release: Release,
}

/// The C function that releases a reference, and its name.
#[derive(Clone, Copy)]
pub(in crate::cl) struct Release {
    pub(in crate::cl) call: &'static str,
    pub(in crate::cl) function: unsafe extern "system" fn(*mut c_void) -> cl_int,
}

impl Release {
    /// Releases a reference. A failure is logged, because a drop has no caller to report to and must not panic.
    #[inline]
    pub(in crate::cl) fn now(self, raw: NonNull<c_void>) {
        // SAFETY: **live**: the caller drops a handle and gives its one reference here, once, with the function of its
        // kind.
        let status = unsafe { (self.function)(raw.as_ptr()) };
        if status != CL_SUCCESS {
            self.refused(status);
        }
    }

    #[cold]
    fn refused(self, status: cl_int) {
        // A lost device refuses every release, so only the first failure is logged as an error.
        static LOGGED: AtomicBool = AtomicBool::new(false);
        let level = if LOGGED.swap(true, Ordering::Relaxed) { log::Level::Debug } else { log::Level::Error };
        let status = Status(status);
        log_later!(
            level =>
            "{} failed with {status}: the object is not released (further failures are logged at level debug)",
            self.call
        );
    }
}

// SAFETY: **threads**; the value is a handle without its type.
unsafe impl Send for LaterRelease {}

/// Returns whether what is dropped now would be released later.
pub(in crate::cl) fn holds() -> bool {
    HOLDING.load(Ordering::Acquire)
}

fn lock() -> MutexGuard<'static, Gates> {
    GATES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Releases a reference now, or when all gates that are closed now have opened. The caller must not use it any more.
#[inline]
pub(in crate::cl) fn release_in_time(raw: NonNull<c_void>, release: Release) {
    if HOLDING.load(Ordering::Acquire) {
        release_later(raw, release);
    } else {
        release.now(raw);
    }
}

fn release_later(raw: NonNull<c_void>, release: Release) {
    let mut gates = lock();
    let newest = gates.closed.last().copied();
    if newest.is_some() || gates.draining {
        gates.later.push_back(LaterRelease { after: newest.map_or(0, |gate| gate + 1), raw, release });
        return;
    }
    drop(gates);
    release.now(raw);
}

/// A closed gate. Dropping it marks the gate as open.
#[derive(Debug)]
pub(in crate::cl) struct Closed(u64);

impl Closed {
    pub(in crate::cl) fn new() -> Self {
        let mut gates = lock();
        let number = gates.next;
        gates.next += 1;
        gates.closed.insert(number);
        HOLDING.store(true, Ordering::Release);
        Self(number)
    }
}

impl Gates {
    fn end_draining(&mut self) {
        self.draining = false;
        HOLDING.store(!self.closed.is_empty(), Ordering::Release);
    }
}

/// Ends the draining when a logger panics because a release failed. It is forgotten otherwise.
struct Draining;

impl Drop for Draining {
    fn drop(&mut self) {
        lock().end_draining();
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        let mut gates = lock();
        gates.closed.remove(&self.0);
        if gates.draining {
            // The thread that drains will look again.
            return;
        }
        gates.draining = true;
        let draining = Draining;
        loop {
            let oldest = gates.closed.first().copied().unwrap_or(u64::MAX);
            let count = gates.later.iter().take_while(|dropped| dropped.after <= oldest).count();
            if count == 0 {
                gates.end_draining();
                std::mem::forget(draining);
                return;
            }
            let free: Vec<LaterRelease> = gates.later.drain(..count).collect();
            drop(gates);
            // In the order of the drops, which is newest first where that matters.
            for dropped in free {
                dropped.release.now(dropped.raw);
            }
            gates = lock();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    static RELEASED: AtomicUsize = AtomicUsize::new(0);

    /// This is the only test of this file, because gates belong to the whole process.
    #[test]
    fn what_is_dropped_waits_for_the_gates_closed_then_and_not_for_later_ones() {
        unsafe extern "system" fn count(_: *mut c_void) -> cl_int {
            RELEASED.fetch_add(1, Ordering::SeqCst);
            CL_SUCCESS
        }
        let release = Release { call: "count", function: count };
        let released = || RELEASED.load(Ordering::SeqCst);
        let (first, second) = (Closed::new(), Closed::new());
        release_in_time(NonNull::dangling(), release);
        let third = Closed::new();
        release_in_time(NonNull::dangling(), release);
        drop(second);
        assert_eq!(released(), 0, "the first gate is closed still");
        drop(first);
        assert_eq!(released(), 1, "the third was closed after the first drop");
        drop(third);
        assert_eq!(released(), 2);
        release_in_time(NonNull::dangling(), release);
        assert_eq!(released(), 3, "no gate, no wait");

        let fourth = Closed::new();
        release_in_time(NonNull::dangling(), release);
        let unwound = std::panic::catch_unwind(move || {
            let _open_in_the_end = fourth;
            std::panic::resume_unwind(Box::new("a program's panic"));
        });
        assert_eq!((unwound.is_err(), released()), (true, 4), "a gate opens while its thread panics");
    }
}
