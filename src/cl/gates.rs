//! When objects may be released, while commands wait at gates.
//!
//! OpenCL leaves it undefined to release objects while a command waits on a user event that is not set (OpenCL 3.0,
//! `clCreateUserEvent`). So what is dropped while gates of clgraph's own are closed is released once all those gates are
//! open. Gates that are closed later do not hold it back any longer: somebody who always has one closed loses nothing.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use opencl_sys::{CL_SUCCESS, cl_int};

use crate::error::Status;

/// Whether gates are closed, or what they held back is being released: a look without a lock for the usual case.
static HOLDING: AtomicBool = AtomicBool::new(false);

static GATES: Mutex<Gates> =
    Mutex::new(Gates { next: 0, closed: BTreeSet::new(), later: VecDeque::new(), draining: false });

struct Gates {
    /// Gates are numbered as they are closed.
    next: u64,
    closed: BTreeSet<u64>,
    /// What was dropped, oldest first.
    later: VecDeque<Dropped>,
    /// Somebody is releasing what has become free: what is dropped now goes behind it, because an order may matter.
    draining: bool,
}

struct Dropped {
    /// The newest gate that was closed then, and one more; 0 for none.
    behind: u64,
    raw: NonNull<c_void>,
    release: Release,
}

/// The C function that gives a reference back, and its name.
#[derive(Clone, Copy)]
pub(super) struct Release {
    pub(super) call: &'static str,
    pub(super) function: unsafe extern "system" fn(*mut c_void) -> cl_int,
}

impl Release {
    /// Gives a reference back. A refusal is logged: there is nobody to hand it to, and a drop must not panic.
    #[inline]
    fn now(self, raw: NonNull<c_void>) {
        // SAFETY: **live**: whoever drops a handle gives its one reference here, once, with the function of its kind.
        let status = unsafe { (self.function)(raw.as_ptr()) };
        if status != CL_SUCCESS {
            self.refused(status);
        }
    }

    #[cold]
    fn refused(self, status: cl_int) {
        // A device that is lost refuses one after the other.
        static TOLD: AtomicBool = AtomicBool::new(false);
        let level = if TOLD.swap(true, Ordering::Relaxed) { log::Level::Debug } else { log::Level::Error };
        let status = Status(status);
        log::log!(level, "{} failed with {status}: the object is not released (later ones at level debug)", self.call);
    }
}

// SAFETY: **threads**; it is a handle without its type.
unsafe impl Send for Dropped {}

fn lock() -> MutexGuard<'static, Gates> {
    GATES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives a reference back, now or when all gates are open that are closed now. It is the caller's last use of it.
#[inline]
pub(super) fn release_in_time(raw: NonNull<c_void>, release: Release) {
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
        gates.later.push_back(Dropped { behind: newest.map_or(0, |gate| gate + 1), raw, release });
        return;
    }
    drop(gates);
    release.now(raw);
}

/// A closed gate. Dropping it says that it is open.
#[derive(Debug)]
pub(super) struct Closed(u64);

impl Closed {
    pub(super) fn new() -> Self {
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

/// Ends the draining when a logger panics over a release that failed. Forgotten otherwise.
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
            // Whoever drains looks again.
            return;
        }
        gates.draining = true;
        let draining = Draining;
        loop {
            let oldest = gates.closed.first().copied().unwrap_or(u64::MAX);
            let count = gates.later.iter().take_while(|dropped| dropped.behind <= oldest).count();
            if count == 0 {
                gates.end_draining();
                std::mem::forget(draining);
                return;
            }
            let free: Vec<Dropped> = gates.later.drain(..count).collect();
            drop(gates);
            // In the order in which they were dropped, which is newest first where that matters.
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

    /// The one test of this file, because gates are the process's.
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
