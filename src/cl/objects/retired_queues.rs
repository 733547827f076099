//! Out-of-order queues that the program has dropped. They are kept as long as their context, and used again.
//!
//! On Intel's CPU runtime (2026.2) the release of an out-of-order queue can deadlock or crash while its last command
//! runs, or while the worker that ran it is not finished; the event of the command completes too early to prevent this.
//! On PoCL 6.0 a program that wraps the same queue again, while clgraph finishes it in order to release it, ends the
//! process (`docs/drivers.md`). So such a queue is released with its context only. Until then the next program that
//! wants a queue like it gets it, once its commands have ended and nobody else has a handle of it.

use std::sync::{Arc, Mutex, PoisonError};

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
    out_of_order: bool,
}

impl Last {
    pub(in crate::cl) fn new(handle: Handle<QueueKind>, out_of_order: bool) -> Self {
        Self { handle, out_of_order }
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
        if !self.out_of_order || !self.is_only() {
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

/// The out-of-order queues of a context that were dropped.
#[derive(Default)]
pub(in crate::cl) struct RetiredQueues(Mutex<Vec<Retired>>);

struct Retired {
    /// The C handle of its device.
    device: usize,
    properties: QueueProperties,
    last: Arc<Last>,
    /// Complete when all commands have ended. None if the driver could not say.
    end: Option<DriverEvent>,
}

impl RetiredQueues {
    /// Keeps a queue until its context ends.
    pub(in crate::cl) fn add(
        &self,
        device: usize,
        properties: QueueProperties,
        last: Arc<Last>,
        end: Option<DriverEvent>,
    ) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = all.iter_mut().find(|one| one.last.handle.raw() == last.handle.raw());
        let replaced = match same {
            Some(one) => Some((std::mem::replace(&mut one.end, end), last)),
            None => {
                all.push(Retired { device, properties, last, end });
                None
            }
        };
        drop(all);
        drop(replaced);
    }

    /// Returns a queue of these properties that nobody uses any more.
    pub(in crate::cl) fn take(&self, device: usize, properties: QueueProperties) -> Option<Arc<Last>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = |one: &Retired| {
            one.device == device
                && one.properties == properties
                && one.end.as_ref().is_some_and(|end| !end.may_run())
                && one.last.is_only()
        };
        let found = all.iter().position(is_free)?;
        let taken = all.swap_remove(found);
        drop(all);
        Some(taken.last)
    }
}

/// Ends a queue on its own thread, because other code may have enqueued a command that never ends.
struct Ending(Option<Arc<Last>>);

impl Drop for Ending {
    fn drop(&mut self) {
        let last = self.0.take();
        if let Err(error) = threads::start("clgraph-queue", move || drop(last)) {
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
        for Retired { last, end, .. } in all.drain(..) {
            let ending = Ending(Some(last));
            if let Some(end) = end {
                event_reaper::keep_until(end, ending);
            }
        }
    }
}
