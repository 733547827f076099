//! Out-of-order queues that the program has dropped, on drivers that must not release them while they work
//! ([`quirks::must_keep_out_of_order_queues`](crate::quirks::must_keep_out_of_order_queues)). They are kept as long as
//! their context, and used again.
//!
//! On Intel's CPU runtime (2026.2) the release of an out-of-order queue can deadlock or crash while its last command
//! runs, or while the worker that ran it is not finished; the event of the command completes too early to prevent this
//! (`docs/drivers.md`). So such a queue is released with its context, or at the end of the process. Until then the next
//! queue of its properties is taken from here, once the commands have ended and nobody else has a handle. A queue that
//! clgraph did not make is kept only if nobody else has a handle, and is not used again: it may have properties that
//! clgraph does not know.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use opencl_sys::CL_QUEUE_REFERENCE_COUNT;

use crate::cl::check;
use crate::cl::completion::event_reaper;
use crate::cl::completion::threads;
use crate::cl::completion::user_code::log_later;
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::handle::{Handle, QueueKind};
use crate::cl::objects::queue::QueueProperties;
use crate::cl::query::info::{self, ask};
use crate::ffi::core::Core;

/// A reference to a queue, which is released only when the driver can end the queue.
pub(in crate::cl) struct Last {
    pub(in crate::cl) handle: Handle<QueueKind>,
    /// Whether the queue has to be finished before it is released.
    finish: bool,
    /// Whether clgraph made the queue.
    made: bool,
}

impl Last {
    pub(in crate::cl) fn new(handle: Handle<QueueKind>, finish: bool, made: bool) -> Self {
        Self { handle, finish, made }
    }

    /// Returns whether the program made the queue, and has a reference to it.
    pub(in crate::cl) fn is_foreign(&self) -> bool {
        !self.made && !self.is_only()
    }

    /// Returns whether nobody else has a reference to the queue.
    fn is_only(&self) -> bool {
        let Ok(core) = Core::get() else { return false };
        let count = ask!(core, clGetCommandQueueInfo, self.handle.raw(), CL_QUEUE_REFERENCE_COUNT);
        info::value::<u32>("clGetCommandQueueInfo", count).is_ok_and(|count| count == 1)
    }
}

impl Drop for Last {
    fn drop(&mut self) {
        if !self.finish || !self.is_only() {
            return;
        }
        let Ok(core) = Core::get() else { return };
        // Twice, because the driver may lack memory only for a moment.
        // SAFETY: **live**.
        let finish = || check("clFinish", unsafe { (core.clFinish)(self.handle.raw()) });
        if let Err(error) = finish().or_else(|_| finish()) {
            log_later!(Error, "{error}: an out-of-order queue is released while its commands may still run");
        }
    }
}

/// The out-of-order queues of a context that were dropped, by C handle.
#[derive(Default)]
pub(in crate::cl) struct RetiredQueues(Mutex<HashMap<usize, Retired>>);

struct Retired {
    /// The C handle of its device.
    device: usize,
    properties: QueueProperties,
    last: Arc<Last>,
    /// Complete when all commands have ended. None if the driver could not say.
    end: Option<DriverEvent>,
}

impl Retired {
    fn is_over(&self) -> bool {
        self.end.as_ref().is_some_and(|end| !end.may_run())
    }
}

impl RetiredQueues {
    fn lock(&self) -> MutexGuard<'_, HashMap<usize, Retired>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a queue until its context ends.
    pub(in crate::cl) fn add(
        &self,
        device: usize,
        properties: QueueProperties,
        last: Arc<Last>,
        end: Option<DriverEvent>,
    ) {
        let mut all = self.lock();
        let raw = last.handle.raw().addr();
        let replaced = all.insert(raw, Retired { device, properties, last, end });
        drop(all);
        drop(replaced);
    }

    /// Returns a queue of these properties that nobody uses any more.
    pub(in crate::cl) fn take(&self, device: usize, properties: QueueProperties) -> Option<Arc<Last>> {
        let mut all = self.lock();
        let is_free = |one: &Retired| {
            one.device == device && one.properties == properties && one.last.made && one.is_over() && one.last.is_only()
        };
        let found = *all.iter().find(|(_, one)| is_free(one))?.0;
        let taken = all.remove(&found);
        drop(all);
        Some(taken?.last)
    }

    pub(in crate::cl) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Waits for the commands of all queues until a time, and releases the queues that have ended. The others stay for
    /// ever.
    pub(in crate::cl) fn end_until(&self, deadline: Instant) {
        let all = std::mem::take(&mut *self.lock());
        for (_, one) in all {
            while !one.is_over() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            if !one.is_over() {
                std::mem::forget(one);
            }
        }
    }
}

/// How many queues are being ended.
static ENDING: AtomicUsize = AtomicUsize::new(0);

/// Returns whether queues are being ended.
pub(in crate::cl) fn some_end() -> bool {
    ENDING.load(Ordering::Acquire) > 0
}

/// Waits until no queue is being ended, but at most until a time.
pub(in crate::cl) fn wait_for_endings(deadline: Instant) {
    while some_end() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends a queue on its own thread, because other code may have enqueued a command that never ends.
struct Ending(Option<Arc<Last>>);

impl Ending {
    fn new(last: Arc<Last>) -> Self {
        ENDING.fetch_add(1, Ordering::AcqRel);
        Self(Some(last))
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let last = self.0.take();
        let end = move || {
            drop(last);
            ENDING.fetch_sub(1, Ordering::AcqRel);
        };
        if let Err(error) = threads::start("clgraph-queue", end) {
            ENDING.fetch_sub(1, Ordering::AcqRel);
            log_later!(
                Warn,
                "{error}: no thread could be started to finish an out-of-order queue, so the drop of its context waits"
            );
        }
    }
}

impl Drop for RetiredQueues {
    fn drop(&mut self) {
        let all = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (_, Retired { last, end, .. }) in all.drain() {
            let ending = Ending::new(last);
            if let Some(end) = end {
                event_reaper::keep_until(end, ending);
            }
        }
    }
}
