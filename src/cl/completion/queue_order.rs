//! Markers before a blocked command, so that the end of the earlier commands of its queue can be awaited.
//!
//! No command that may fail because of its wait list is ever given to a driver (`record/deferred.rs`,
//! `exec/submit/deferred.rs`), so the order of an in-order queue always holds: a command is complete only if all
//! earlier commands of its queue are.
//!
//! A command can block its queue for any time, because an event in its wait list is not complete yet. After that, the
//! end of the earlier commands can no longer be awaited by a new marker: the marker would come after the blocked
//! command, and a host task that the blocked command waits for would deadlock if it waited for the marker. So a command
//! that may block its queue ends an *epoch* of the queue, if somebody may need the end of that epoch: a marker is
//! enqueued before the command, and its event is the *fence* of the epoch.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::queue::DriverQueue;
use crate::error::DriverError;

/// The epochs of one queue of the driver.
#[derive(Default)]
pub(in crate::cl) struct QueueOrder {
    /// The number of the current epoch, to which new commands belong.
    epoch: AtomicU64,
    /// Whether somebody may ask for the end of this epoch: see [`QueueOrder::want_end`].
    end_wanted: AtomicBool,
    /// The fences of epochs that may not have ended, oldest first.
    fences: Mutex<VecDeque<(u64, DriverEvent)>>,
}

impl QueueOrder {
    /// Locks the fences, after those that have ended were removed.
    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, DriverEvent)>> {
        let mut fences = self.fences.lock().unwrap_or_else(PoisonError::into_inner);
        while fences.front().is_some_and(|(_, fence)| !fence.may_run()) {
            fences.pop_front();
        }
        fences
    }

    /// Returns the current epoch. It does not change while [`DriverQueue::lock_order`] is held.
    pub(in crate::cl) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Records that commands of this epoch were enqueued without an event, and that somebody will call
    /// [`end_of`](Self::end_of) for this epoch. The caller holds [`DriverQueue::lock_order`], or nobody else has the
    /// queue.
    pub(in crate::cl) fn want_end(&self) {
        self.end_wanted.store(true, Ordering::Release);
    }

    pub(in crate::cl) fn is_end_wanted(&self) -> bool {
        self.end_wanted.load(Ordering::Acquire)
    }

    /// Ends the epoch, because the next command may block the queue. The caller holds [`DriverQueue::lock_order`], or
    /// nobody else has the queue.
    pub(in crate::cl) fn end_epoch(&self, queue: &DriverQueue) -> Result<(), DriverError> {
        let mut fences = self.lock();
        let fence = mark(queue)?;
        fences.push_back((self.epoch(), fence));
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.end_wanted.store(false, Ordering::Release);
        Ok(())
    }

    /// Returns an event that is complete when all commands that the epoch has so far have ended. Returns `None` if the
    /// epoch has ended.
    pub(in crate::cl) fn end_of(&self, queue: &DriverQueue, epoch: u64) -> Result<Option<DriverEvent>, DriverError> {
        let fences = self.lock();
        if epoch == self.epoch() {
            // The lock is held while the marker is enqueued, so that the marker belongs to the epoch.
            return mark(queue).map(Some);
        }
        let found = fences.binary_search_by_key(&epoch, |(of, _)| *of);
        Ok(found.ok().map(|at| fences[at].1.clone()))
    }
}

/// Enqueues a marker after all commands. It tries twice, because the driver may lack resources only for a moment.
fn mark(queue: &DriverQueue) -> Result<DriverEvent, DriverError> {
    queue.mark().or_else(|_| queue.mark())
}
