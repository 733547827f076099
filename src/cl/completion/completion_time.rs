//! Finds out when a command completed, without waiting for it.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use opencl_sys::{CL_COMPLETE, cl_event, cl_int};

use crate::cl::completion::user_code::log_later;
use crate::cl::objects::event::DriverEvent;
use crate::error::Status;
use crate::ffi::core::Core;

/// Measures when a command was enqueued and when it completed.
///
/// The driver's callback stops the timer, or any code that sees the completion earlier, because some drivers call back
/// late. The timer never stops if neither happens: some drivers do not call back for a command that failed.
#[derive(Debug)]
pub(crate) struct CompletionTimer {
    begin: Instant,
    /// Nanoseconds since `begin`, plus 1. 0 means not yet.
    enqueued: AtomicU64,
    complete: AtomicU64,
    /// The command failed, so there will be no time.
    is_void: AtomicBool,
}

/// The times of a timer that has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompletionTimes {
    pub(crate) begin: Instant,
    pub(crate) enqueued: Duration,
    pub(crate) complete: Duration,
}

impl CompletionTimer {
    /// Starts the timer.
    pub(crate) fn new() -> Self {
        Self {
            begin: Instant::now(),
            enqueued: AtomicU64::new(0),
            complete: AtomicU64::new(0),
            is_void: AtomicBool::new(false),
        }
    }

    fn stop(&self, time: &AtomicU64) {
        let nanos = u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX - 1);
        // Only the first stop counts.
        let _ = time.compare_exchange(0, nanos + 1, Ordering::Release, Ordering::Relaxed);
    }

    /// Records that the command was seen to be complete.
    pub(crate) fn complete(&self) {
        self.stop(&self.complete);
    }

    /// Records that the command failed: the timer will never stop.
    pub(crate) fn give_up(&self) {
        self.is_void.store(true, Ordering::Release);
    }

    /// Returns whether the timer will never stop.
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_void.load(Ordering::Acquire)
    }

    /// Records that the host has enqueued the command.
    pub(crate) fn enqueued(&self) {
        self.stop(&self.enqueued);
    }

    /// Returns the times, or `None` if one of them is still missing.
    pub(crate) fn read(&self) -> Option<CompletionTimes> {
        let read = |time: &AtomicU64| time.load(Ordering::Acquire).checked_sub(1).map(Duration::from_nanos);
        Some(CompletionTimes { begin: self.begin, enqueued: read(&self.enqueued)?, complete: read(&self.complete)? })
    }
}

impl DriverEvent {
    /// Asks the driver to stop the timer when the command is complete.
    pub(crate) fn stop_when_complete(&self, timer: &Arc<CompletionTimer>) {
        let Ok(core) = Core::get() else { return };
        let data = Arc::into_raw(Arc::clone(timer)).cast_mut().cast::<c_void>();
        // SAFETY: **live**; `stop` has the type of the headers, and only `stop` gets this reference.
        let status = unsafe { (core.clSetEventCallback)(self.raw(), CL_COMPLETE, Some(stop), data) };
        if status != 0 {
            log_later!(Debug, "clSetEventCallback failed with {}: clgraph does not time a submission", Status(status));
            // SAFETY: the driver refused the callback, so the reference is still here.
            drop(unsafe { Arc::from_raw(data.cast_const().cast::<CompletionTimer>()) });
        }
    }
}

/// The driver may call this on any thread, at once or late. A failed command does not stop the timer.
unsafe extern "system" fn stop(_: cl_event, status: cl_int, timer: *mut c_void) {
    // SAFETY: this is the reference from `DriverEvent::stop_when_complete`, which the driver passes on once.
    let timer = unsafe { Arc::from_raw(timer.cast_const().cast::<CompletionTimer>()) };
    if status == CL_COMPLETE {
        timer.complete();
    }
}
