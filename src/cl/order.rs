//! What may break the order of a queue.
//!
//! A command whose wait list fails is over at once, while earlier commands of its queue still run. On PoCL (3.1 to 7.1) the
//! commands behind it fail at once too, or start at once, so that nothing on the queue is behind what came before any more; on
//! Intel's CPU runtime (2026.2) only the command itself is over early (`docs/drivers.md`). So the end of a later command says
//! nothing about an earlier one when a command that may fail was put between them.
//!
//! Such commands divide a queue into *segments*. Before each of them a marker is put, the *fence* of the segment that ends
//! there. Within a segment the order of the queue holds: whatever the command before the segment has come to, those in it were
//! enqueued one behind the other. So what is behind a command in its own segment is behind it in fact, and a segment is over when
//! its fence is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::enqueue::Waits;
use super::event::DriverEvent;
use super::queue::DriverQueue;
use crate::error::DriverError;

/// What is known of the order of one queue of the driver's.
#[derive(Default)]
pub(super) struct QueueOrder {
    /// The number of the segment that commands go to now.
    segment: AtomicU64,
    /// Whether [`Breaks`] holds something.
    unsure: AtomicBool,
    breaks: Mutex<Breaks>,
}

#[derive(Default)]
struct Breaks {
    /// Of segments that may not be over, oldest first.
    fences: Vec<(u64, DriverEvent)>,
    /// Commands that may still fail, and those that did as long as PoCL 3.1 may look at them: it tells an event that failed of
    /// the end of all that it waited for, and keeps none for that.
    commands: Vec<Command>,
    /// Some of them failed, and something from before may run.
    failed: Option<DriverError>,
    /// The last of those that could fail. PoCL 3.1 puts the next command of the queue behind it without keeping it, and aborts
    /// when it is gone, which only happens to those that failed.
    last: Option<DriverEvent>,
}

/// A command with a wait list that may fail, and that list.
struct Command {
    event: DriverEvent,
    waits: Vec<DriverEvent>,
}

impl Breaks {
    /// Forgets what is over. A command that was complete was in its place; one that failed matters as long as something from
    /// before may run.
    fn look(&mut self) {
        self.fences.retain(|(_, fence)| fence.may_run());
        let is_rest_over = self.fences.is_empty();
        let failed = &mut self.failed;
        self.commands.retain(|command| match command.event.failure() {
            Some(failure) => {
                failed.get_or_insert(failure);
                !is_rest_over || command.waits.iter().any(DriverEvent::may_run)
            }
            None => command.event.may_run(),
        });
        if self.commands.is_empty() && is_rest_over {
            self.failed = None;
        }
    }

    fn is_sure(&self) -> bool {
        self.commands.is_empty() && self.failed.is_none()
    }

    fn is_empty(&self) -> bool {
        self.is_sure() && self.fences.is_empty()
    }
}

impl QueueOrder {
    fn lock(&self) -> MutexGuard<'_, Breaks> {
        self.breaks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The segment that commands go to now. It stays while [`DriverQueue::whole`] is held.
    pub(super) fn segment(&self) -> u64 {
        self.segment.load(Ordering::Acquire)
    }

    /// Whether everything on the queue comes in its order, whatever other commands come to.
    #[inline]
    pub(super) fn is_sure(&self) -> bool {
        !self.unsure.load(Ordering::Acquire) || self.look()
    }

    #[cold]
    fn look(&self) -> bool {
        let mut breaks = self.lock();
        breaks.look();
        self.unsure.store(!breaks.is_empty(), Ordering::Release);
        breaks.is_sure()
    }

    /// Ends the segment: a command that may fail is going to be enqueued. The caller holds [`DriverQueue::whole`].
    pub(super) fn end_segment(&self, queue: &DriverQueue) -> Result<(), DriverError> {
        let mut breaks = self.lock();
        breaks.look();
        let fence = mark(queue, breaks.is_sure())?;
        breaks.fences.push((self.segment(), fence));
        self.unsure.store(true, Ordering::Release);
        self.segment.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// A command was enqueued that may fail, because of its wait list or of what is before it.
    pub(super) fn took(&self, event: &DriverEvent, waits: &Waits) {
        let mut breaks = self.lock();
        if waits.may_fail() {
            breaks.commands.push(Command { event: event.clone(), waits: waits.events().to_vec() });
        }
        breaks.last = Some(event.clone());
    }

    /// An event that is over when everything is that a segment has got so far. None: it is over.
    pub(super) fn end_of(&self, queue: &DriverQueue, segment: u64) -> Result<Option<DriverEvent>, DriverError> {
        let mut breaks = self.lock();
        breaks.look();
        if segment == self.segment() {
            // Under the lock, so that it is in the segment.
            let end = mark(queue, breaks.is_sure())?;
            if !breaks.is_sure() {
                breaks.last = Some(end.clone());
            }
            return Ok(Some(end));
        }
        Ok(breaks.fences.iter().find(|(of, _)| *of == segment).map(|(_, fence)| fence.clone()))
    }

    /// The fences of segments that may not be over, and how a command failed that was to be between them.
    pub(super) fn fences(&self) -> (Vec<DriverEvent>, Option<DriverError>) {
        if !self.unsure.load(Ordering::Acquire) {
            return (Vec::new(), None);
        }
        let breaks = self.lock();
        let fences = breaks.fences.iter().map(|(_, fence)| fence.clone()).collect();
        let failed = breaks.failed.or_else(|| breaks.commands.iter().find_map(|command| command.event.failure()));
        (fences, failed)
    }
}

/// A marker behind everything. A refusal may be a moment without resources.
fn mark(queue: &DriverQueue, sure: bool) -> Result<DriverEvent, DriverError> {
    queue.mark(sure).or_else(|_| queue.mark(sure))
}
