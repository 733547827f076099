//! What may break the order of a queue, or hold it up.
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
//!
//! A segment also ends where a command may hold up all that is behind it, if somebody is to know of the end of what is before and has
//! no event yet: one that is asked for later would be behind the hold.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::enqueue::Waits;
use super::event::{COMMAND, DriverEvent, Progress};
use super::lingering;
use super::queue::DriverQueue;
use crate::error::DriverError;

/// What is known of the order of one queue of the driver's.
#[derive(Default)]
pub(super) struct QueueOrder {
    /// The number of the segment that commands go to now.
    segment: AtomicU64,
    /// The first segment since which the order holds.
    ordered: AtomicU64,
    /// Whether somebody may ask for the end of this segment: see [`QueueOrder::want_end`].
    end_wanted: AtomicBool,
    /// Whether [`Breaks`] holds something.
    unsure: AtomicBool,
    breaks: Mutex<Breaks>,
}

#[derive(Default)]
struct Breaks {
    /// Of segments that may not be over, oldest first.
    fences: VecDeque<(u64, DriverEvent)>,
    /// Commands that may still fail, oldest first, and those that did as long as PoCL 3.1 and 6.0 may look at them: they tell an event
    /// that failed of the end of all that it waited for, and keep none for that.
    commands: VecDeque<Command>,
    /// How many of them have a wait list that may fail.
    risky: usize,
    /// Some of them failed, and something from before may run.
    failed: Option<DriverError>,
}

/// A command that may fail because of its wait list, or of what is before it, and that list.
struct Command {
    event: DriverEvent,
    waits: Vec<DriverEvent>,
    risky: bool,
}

impl Breaks {
    /// Forgets what is over, from the oldest on. A command that was complete was in its place; one that failed matters as long as
    /// something from before may run.
    fn look(&mut self) {
        while self.fences.front().is_some_and(|(_, fence)| !fence.may_run()) {
            self.fences.pop_front().into_iter().for_each(|(_, fence)| lingering::release(fence));
        }
        while let Some(command) = self.commands.front() {
            match command.event.progress() {
                Ok(Progress::Complete) => {}
                Ok(Progress::Failed(status)) => {
                    self.failed.get_or_insert(DriverError::new(COMMAND, status));
                    if !self.fences.is_empty() || command.waits.iter().any(DriverEvent::may_run) {
                        break;
                    }
                }
                Ok(Progress::Waiting | Progress::Running) | Err(_) => break,
            }
            self.risky -= usize::from(command.risky);
            self.commands.pop_front().into_iter().for_each(|command| lingering::release(command.event));
        }
        if self.commands.is_empty() && self.fences.is_empty() {
            self.failed = None;
        }
    }

    fn push(&mut self, event: &DriverEvent, waits: &Waits) {
        self.risky += usize::from(waits.may_fail());
        let (waits, risky) = (waits.events().to_vec(), waits.may_fail());
        self.commands.push_back(Command { event: event.clone(), waits, risky });
    }

    fn is_sure(&self) -> bool {
        self.risky == 0 && self.failed.is_none()
    }

    fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.fences.is_empty()
    }
}

impl Drop for Breaks {
    fn drop(&mut self) {
        let commands = self.commands.drain(..).map(|command| command.event);
        commands.chain(self.fences.drain(..).map(|(_, fence)| fence)).for_each(lingering::release);
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

    /// The first segment of which all commands are before those that are enqueued now.
    pub(super) fn ordered(&self) -> u64 {
        self.ordered.load(Ordering::Acquire)
    }

    /// Commands of this segment were enqueued without an event, and somebody will ask for [`end_of`](Self::end_of) it. The caller
    /// holds [`DriverQueue::whole`], or nobody else has the queue.
    pub(super) fn want_end(&self) {
        self.end_wanted.store(true, Ordering::Release);
    }

    pub(super) fn is_end_wanted(&self) -> bool {
        self.end_wanted.load(Ordering::Acquire)
    }

    /// Ends the segment: a command is going to be enqueued that may hold up the queue, or that may fail and break the order. The
    /// caller holds [`DriverQueue::whole`], or nobody else has the queue.
    pub(super) fn end_segment(&self, queue: &DriverQueue, may_fail: bool) -> Result<(), DriverError> {
        let mut breaks = self.lock();
        breaks.look();
        let fence = mark(queue, breaks.is_sure())?;
        breaks.fences.push_back((self.segment(), fence));
        self.unsure.store(true, Ordering::Release);
        let segment = self.segment.fetch_add(1, Ordering::AcqRel) + 1;
        if may_fail {
            self.ordered.store(segment, Ordering::Release);
        }
        self.end_wanted.store(false, Ordering::Release);
        Ok(())
    }

    /// A command was enqueued that may fail, because of its wait list or of what is before it.
    pub(super) fn took(&self, event: &DriverEvent, waits: &Waits) {
        self.lock().push(event, waits);
    }

    /// An event that is over when everything is that a segment has got so far. None: it is over.
    pub(super) fn end_of(&self, queue: &DriverQueue, segment: u64) -> Result<Option<DriverEvent>, DriverError> {
        let mut breaks = self.lock();
        breaks.look();
        if segment == self.segment() {
            // Under the lock, so that it is in the segment.
            let end = mark(queue, breaks.is_sure())?;
            if !breaks.is_sure() {
                breaks.push(&end, &Waits::NONE);
            }
            return Ok(Some(end));
        }
        let found = breaks.fences.binary_search_by_key(&segment, |(of, _)| *of);
        Ok(found.ok().map(|at| breaks.fences[at].1.clone()))
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
