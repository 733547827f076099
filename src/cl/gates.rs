//! When objects may be released, while commands wait at gates.
//!
//! OpenCL leaves it undefined to release objects while a command waits on a user event that is not set (OpenCL 3.0,
//! `clCreateUserEvent`). So what is dropped while gates of clgraph's own are closed is released once all those gates are
//! open. Gates that are closed later do not hold it back any longer: somebody who always has one closed loses nothing.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many gates are closed: a look without a lock for the usual case of none.
static CLOSED: AtomicUsize = AtomicUsize::new(0);

static GATES: Mutex<Gates> = Mutex::new(Gates { next: 0, closed: BTreeSet::new(), later: VecDeque::new() });

struct Gates {
    /// Gates are numbered as they are closed.
    next: u64,
    closed: BTreeSet<u64>,
    /// What was dropped, oldest first.
    later: VecDeque<Dropped>,
}

struct Dropped {
    /// The newest gate that was closed then.
    behind: u64,
    raw: NonNull<c_void>,
    release: fn(*mut c_void),
}

// SAFETY: **threads**; it is a handle without its type.
unsafe impl Send for Dropped {}

fn lock() -> MutexGuard<'static, Gates> {
    GATES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `release` with the object, now or when all gates are open that are closed now.
pub(super) fn release_in_time(raw: NonNull<c_void>, release: fn(*mut c_void)) {
    if CLOSED.load(Ordering::Acquire) > 0 {
        let mut gates = lock();
        if let Some(&behind) = gates.closed.last() {
            gates.later.push_back(Dropped { behind, raw, release });
            return;
        }
    }
    release(raw.as_ptr());
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
        CLOSED.store(gates.closed.len(), Ordering::Release);
        Self(number)
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        let mut gates = lock();
        gates.closed.remove(&self.0);
        CLOSED.store(gates.closed.len(), Ordering::Release);
        let oldest = gates.closed.first().copied().unwrap_or(u64::MAX);
        let count = gates.later.iter().take_while(|dropped| dropped.behind < oldest).count();
        let free: Vec<Dropped> = gates.later.drain(..count).collect();
        drop(gates);
        // In the order in which they were dropped, which is newest first where that matters.
        for dropped in free {
            (dropped.release)(dropped.raw.as_ptr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static RELEASED: AtomicUsize = AtomicUsize::new(0);

    /// The one test of this file, because gates are the process's.
    #[test]
    fn what_is_dropped_waits_for_the_gates_closed_then_and_not_for_later_ones() {
        let release: fn(*mut c_void) = |_| {
            RELEASED.fetch_add(1, Ordering::SeqCst);
        };
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
    }
}
