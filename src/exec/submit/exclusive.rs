//! Exclusive use: the uses of one executable never overlap, whether it is submitted alone or as part of another graph,
//! on any queue and from any thread.
//!
//! An executable takes the exclusive use of itself and of every executable in it. So its submission is after all
//! earlier uses of these, and later uses are after it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use crate::cl::completion::event_reaper;
use crate::cl::completion::gates::Gates;
use crate::cl::completion::reentrancy;
use crate::cl::memory::allocation::User;
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::queue::DriverQueue;
use crate::error::DriverError;
use crate::exec::submit::blocker::Blocker;
use crate::exec::submit::submission_state::{self, SubmissionState};
use crate::graph::UseHandle;

/// The uses of one executable that may not have ended.
#[derive(Default)]
pub(in crate::exec) struct ExecutableUses {
    /// Where commands were enqueued that may still run. Usually one entry.
    pub(in crate::exec) running: Vec<Running>,
    /// Uses that had ended before the next one, kept until that is enqueued: their events are then released while the
    /// device works.
    over: Vec<Running>,
    /// Whether uses have gone to more than one queue. Then every use takes an event.
    pub(in crate::exec) several_queues: bool,
    /// Whether the host may use some of the executable's memory between uses. Then every use takes an event.
    shares_memory: bool,
    /// The last deferred use. Later uses wait until it has ended.
    pub(in crate::exec) deferred: Option<Arc<SubmissionState>>,
}

/// Commands on a queue, and an event that is complete when they are. Without an event, all commands of their epoch of
/// the queue count.
#[derive(Clone)]
pub(in crate::exec) struct Running {
    pub(in crate::exec) queue: DriverQueue,
    event: Option<DriverEvent>,
    epoch: u64,
}

impl Running {
    pub(in crate::exec) fn may_run(&self) -> bool {
        match &self.event {
            Some(event) => event.may_run(),
            None if self.epoch == self.queue.epoch() => true,
            None => !matches!(self.queue.end_of(self.epoch), Ok(None)),
        }
    }

    /// Returns the closed gates that these commands come after.
    pub(in crate::exec) fn gates(&self) -> Gates {
        match &self.event {
            Some(event) => event.gates(),
            None if self.epoch == self.queue.epoch() => self.queue.gates(),
            // Later epochs may come after more gates.
            None => match self.queue.end_of(self.epoch) {
                Ok(end) => end.map(|event| event.gates()).unwrap_or_default(),
                Err(_) => self.queue.gates(),
            },
        }
    }

    /// Whether the queue's order puts commands that are enqueued there now after these.
    pub(in crate::exec) fn is_before_all_on(&self, queue: &DriverQueue) -> bool {
        self.queue == *queue
    }

    /// Returns an event that is complete when these commands are; None if they are complete.
    pub(in crate::exec) fn end(&mut self) -> Result<Option<DriverEvent>, DriverError> {
        if self.event.is_none() {
            self.event = self.queue.end_of(self.epoch)?;
        }
        Ok(self.event.clone().filter(DriverEvent::may_run))
    }

    /// Retains something until these commands are complete.
    pub(in crate::exec) fn keep<T: Send + Sync + 'static>(mut self, kept: Arc<T>) {
        match self.end() {
            Ok(None) => {}
            Ok(Some(event)) => {
                submission_state::flush(&self.queue);
                event_reaper::keep_until(event, kept);
            }
            Err(error) => event_reaper::leak(error, kept),
        }
    }
}

impl User for Mutex<ExecutableUses> {
    fn may_run(&self) -> bool {
        let mut uses = match self.try_lock() {
            Ok(uses) => uses,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread holds the lock because it submits.
            Err(TryLockError::WouldBlock) => return true,
        };
        uses.forget_finished();
        !uses.running.is_empty() || uses.unfinished_deferred().is_some()
    }
}

/// The uses of an executable up to a moment. Memory that an update has replaced asks these, and not later ones.
pub(in crate::exec) struct EarlierUses {
    running: Vec<Running>,
    deferred: Option<Arc<SubmissionState>>,
}

impl User for EarlierUses {
    fn may_run(&self) -> bool {
        self.running.iter().any(Running::may_run) || self.deferred.as_ref().is_some_and(|state| !state.is_over())
    }
}

impl ExecutableUses {
    pub(in crate::exec) fn forget_finished(&mut self) {
        self.running.retain(Running::may_run);
    }

    /// Like [`forget_finished`](Self::forget_finished), before a use is enqueued.
    pub(in crate::exec) fn set_finished_aside(&mut self) {
        if self.running.iter().any(Running::may_run) {
            self.forget_finished();
        } else {
            std::mem::swap(&mut self.running, &mut self.over);
            self.running.clear();
        }
    }

    /// Notes that commands were enqueued, and the event that is complete when they are. The caller has held
    /// [`DriverQueue::lock_order`] since before the commands were enqueued, or is the only one that uses the queue.
    pub(in crate::exec) fn runs(&mut self, queue: &DriverQueue, event: Option<&DriverEvent>) {
        let epoch = queue.epoch();
        let is_it = |one: &Running| one.event.is_none() && one.queue == *queue && one.epoch == epoch;
        let known = event.is_none() && self.running.iter().any(is_it);
        if !known {
            self.running.push(Running { queue: queue.clone(), event: event.cloned(), epoch });
        }
        if event.is_none() {
            queue.want_end();
        }
        self.over.clear();
    }

    /// Like [`runs`](Self::runs), for commands that are after all others: those before them on the same queue are forgotten.
    #[inline]
    pub(in crate::exec) fn follows(&mut self, queue: &DriverQueue, event: Option<&DriverEvent>) {
        if !self.running.is_empty() {
            self.running.retain(|running| !running.is_before_all_on(queue));
        }
        self.runs(queue, event);
    }

    /// Whether nothing may run, according to the last look.
    pub(in crate::exec) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.deferred.is_none()
    }

    fn unfinished_deferred(&mut self) -> Option<Blocker> {
        self.deferred.take_if(|state| !state.is_deferred());
        self.deferred.clone().map(Blocker::Order)
    }
}

/// The exclusive use of an executable and of those in it.
pub(in crate::exec) struct ExclusiveUse {
    own: Arc<Mutex<ExecutableUses>>,
    /// All of them, each once, in the order in which every thread locks them.
    all: Vec<Arc<Mutex<ExecutableUses>>>,
}

/// The exclusive use, taken.
pub(in crate::exec) struct ExclusiveUseGuard<'a> {
    first: MutexGuard<'a, ExecutableUses>,
    /// Empty without sub-graphs, so it costs nothing then.
    rest: Vec<MutexGuard<'a, ExecutableUses>>,
}

impl ExclusiveUse {
    /// Includes the executables in this one.
    pub(in crate::exec) fn new<'a>(inside: impl Iterator<Item = &'a UseHandle>) -> Self {
        let own = Arc::<Mutex<ExecutableUses>>::default();
        let others = inside.filter_map(|exclusive| Arc::clone(&exclusive.0).downcast::<Mutex<ExecutableUses>>().ok());
        let mut all: Vec<_> = others.chain([Arc::clone(&own)]).collect();
        all.sort_unstable_by_key(|exclusive| Arc::as_ptr(exclusive).addr());
        all.dedup_by_key(|exclusive| Arc::as_ptr(exclusive).addr());
        Self { own, all }
    }

    /// Returns the handles for a graph that contains the executable.
    pub(in crate::exec) fn for_parents(&self) -> Vec<UseHandle> {
        self.all.iter().map(|exclusive| UseHandle(Arc::clone(exclusive) as Arc<_>)).collect()
    }

    /// Takes the exclusive use: no other thread begins a use until the guard is dropped.
    pub(in crate::exec) fn take(&self) -> ExclusiveUseGuard<'_> {
        match &*self.all {
            [] | [_] => ExclusiveUseGuard { first: lock(&self.own), rest: Vec::new() },
            [first, rest @ ..] => ExclusiveUseGuard { first: lock(first), rest: rest.iter().map(lock).collect() },
        }
    }

    /// Retains something until everything that runs now has ended.
    pub(in crate::exec) fn keep_until_idle<T: Send + Sync + 'static>(&self, kept: T) {
        let running = self.running();
        if running.is_empty() {
            return;
        }
        let kept = Arc::new(kept);
        for one in running.into_iter().filter(Running::may_run) {
            one.keep(Arc::clone(&kept));
        }
    }

    /// Retains what a dropped executable leaves until its running commands have ended.
    pub(in crate::exec) fn keep_while_running<T: Send + Sync + 'static>(&self, kept: T) {
        let (own, kept) = (Arc::clone(&self.own), Arc::new(kept));
        let keep = move || {
            let running = lock(&own).running.clone();
            running.into_iter().for_each(|one| one.keep(Arc::clone(&kept)));
        };
        // The last handle may have been dropped in the function of a native command of a graph that contains this
        // executable. Then this thread already holds the exclusive use, so another thread has to do it.
        if reentrancy::check_call().is_ok() { keep() } else { event_reaper::call(keep) }
    }

    /// Returns the executable as a user that memory can ask whether it is in use.
    pub(in crate::exec) fn as_user(&self) -> Weak<dyn User> {
        Arc::downgrade(&self.own) as _
    }

    /// Returns the same, to be kept as long as something runs.
    pub(in crate::exec) fn user(&self) -> Arc<dyn User> {
        Arc::clone(&self.own) as _
    }

    /// Notes that the host may use memory of the executable between uses. Gives every running use an event, so that its
    /// end can be seen.
    pub(in crate::exec) fn share_memory(&self) -> Result<(), DriverError> {
        let mut own = lock(&self.own);
        own.shares_memory = true;
        for running in own.running.iter_mut().filter(|running| running.event.is_none()) {
            running.end()?;
            running.queue.flush()?;
        }
        Ok(())
    }

    /// Returns the uses of the executable itself so far.
    pub(in crate::exec) fn so_far(&self) -> EarlierUses {
        let own = lock(&self.own);
        EarlierUses { running: own.running.clone(), deferred: own.deferred.clone() }
    }

    /// Returns the uses of the executable itself that may run.
    pub(in crate::exec) fn running(&self) -> Vec<Running> {
        lock(&self.own).running.clone()
    }
}

fn lock(exclusive: &Arc<Mutex<ExecutableUses>>) -> MutexGuard<'_, ExecutableUses> {
    exclusive.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ExclusiveUseGuard<'_> {
    pub(in crate::exec) fn each(&mut self) -> impl Iterator<Item = &mut ExecutableUses> {
        std::iter::once(&mut *self.first).chain(self.rest.iter_mut().map(|uses| &mut **uses))
    }

    /// Whether a use needs an event: somebody asks whether the use has ended, for one of the executables.
    pub(in crate::exec) fn wants_event(&mut self) -> bool {
        self.each().any(|uses| uses.several_queues || uses.shares_memory)
    }

    /// Returns the ends of everything that runs, and adds the queues that the caller flushes after it has released all
    /// locks.
    pub(in crate::exec) fn through(&mut self, flush: &mut Vec<DriverQueue>) -> Result<Vec<Blocker>, DriverError> {
        let mut all = Vec::new();
        for running in self.each().flat_map(|uses| &mut uses.running) {
            if let Some(event) = running.end()? {
                flush.push(running.queue.clone());
                all.push(Blocker::Through(event));
            }
        }
        Ok(all)
    }

    /// Adds the deferred uses that a new use has to wait for.
    pub(in crate::exec) fn wait_for_deferred(&mut self, blockers: &mut Vec<Blocker>) {
        for uses in self.each().filter(|uses| uses.deferred.is_some()) {
            blockers.extend(uses.unfinished_deferred());
        }
    }
}
