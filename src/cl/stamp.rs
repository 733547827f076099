//! When a command was complete, without waiting for it.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use opencl_sys::{CL_COMPLETE, cl_event, cl_int};

use super::event::DriverEvent;
use crate::error::Status;
use crate::ffi::core::Core;

/// A stopwatch, which the driver stops, or who sees the end before it says so: some drivers say it late. It never is where nobody looks
/// and the driver does not call back, which some do not for commands that fail.
#[derive(Debug)]
pub(crate) struct Stamp {
    begin: Instant,
    /// Nanoseconds since the begin, and 1 more. 0: not yet.
    enqueued: AtomicU64,
    complete: AtomicU64,
}

/// What a stopwatch shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamped {
    pub(crate) begin: Instant,
    pub(crate) enqueued: Duration,
    pub(crate) complete: Duration,
}

impl Stamp {
    /// It runs from now on.
    pub(crate) fn new() -> Self {
        Self { begin: Instant::now(), enqueued: AtomicU64::new(0), complete: AtomicU64::new(0) }
    }

    fn stop(&self, hand: &AtomicU64) {
        let nanos = u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX - 1);
        // The first one counts.
        let _ = hand.compare_exchange(0, nanos + 1, Ordering::Release, Ordering::Relaxed);
    }

    /// The command is seen to be complete.
    pub(crate) fn complete(&self) {
        self.stop(&self.complete);
    }

    /// The host is through with it.
    pub(crate) fn enqueued(&self) {
        self.stop(&self.enqueued);
    }

    /// What it shows, when it has stopped.
    pub(crate) fn read(&self) -> Option<Stamped> {
        let hand = |hand: &AtomicU64| hand.load(Ordering::Acquire).checked_sub(1).map(Duration::from_nanos);
        Some(Stamped { begin: self.begin, enqueued: hand(&self.enqueued)?, complete: hand(&self.complete)? })
    }
}

impl DriverEvent {
    /// Has the driver stop a stopwatch when the command is complete.
    pub(crate) fn stamp(&self, stamp: &Arc<Stamp>) {
        let Ok(core) = Core::get() else { return };
        let data = Arc::into_raw(Arc::clone(stamp)).cast_mut().cast::<c_void>();
        // SAFETY: **live**; `stop` has the type of the headers, and is the only one that is given this reference.
        let status = unsafe { (core.clSetEventCallback)(self.raw(), CL_COMPLETE, Some(stop), data) };
        if status != 0 {
            log::debug!("clSetEventCallback failed with {}: a submission is not timed", Status(status));
            // SAFETY: the driver has refused, so the reference is here still.
            drop(unsafe { Arc::from_raw(data.cast_const().cast::<Stamp>()) });
        }
    }
}

/// May run on any thread, at once or late; a failed command stops no stopwatch.
unsafe extern "system" fn stop(_: cl_event, status: cl_int, stamp: *mut c_void) {
    // SAFETY: the reference that `DriverEvent::stamp` gave, which the driver passes on once.
    let stamp = unsafe { Arc::from_raw(stamp.cast_const().cast::<Stamp>()) };
    if status == CL_COMPLETE {
        stamp.complete();
    }
}
