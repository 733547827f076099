//! How the uses of an executable follow each other: alone, in other graphs, on any queue and from any thread.
//!
//! An executable takes its own turns and those of every executable in it, so its submission is behind all uses of these, and
//! they are behind it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use super::deferred::Blocker;
use super::state::{self, State};
use crate::cl::allocation::User;
use crate::cl::event::DriverEvent;
use crate::cl::queue::DriverQueue;
use crate::cl::reentrancy;
use crate::cl::watch;
use crate::error::DriverError;
use crate::graph::Turns;

/// The uses of one executable that may not be over.
#[derive(Default)]
pub(super) struct Uses {
    /// Where commands were enqueued that may still run. Usually one entry.
    pub(super) running: Vec<Running>,
    /// Those that were over before the next use, until that is enqueued: an event is released while the device works.
    over: Vec<Running>,
    /// Whether uses have gone to more than one queue: then all of them take events.
    pub(super) several_queues: bool,
    /// The last deferred use: later ones wait until it has ended.
    pub(super) deferred: Option<Arc<State>>,
}

/// Commands on a queue, and an event that is complete when they are. Without one, all that is in their segment of the queue counts.
#[derive(Clone)]
pub(super) struct Running {
    pub(super) queue: DriverQueue,
    event: Option<DriverEvent>,
    segment: u64,
}

impl Running {
    pub(super) fn may_run(&self) -> bool {
        match &self.event {
            Some(event) => event.may_run(),
            None if self.segment == self.queue.segment() => true,
            None => !matches!(self.queue.end_of(self.segment), Ok(None)),
        }
    }

    /// Whether commands that are enqueued there now are behind these, because of the queue's order.
    pub(super) fn is_before_all_on(&self, queue: &DriverQueue) -> bool {
        self.queue == *queue && queue.is_in_order_since(self.segment)
    }

    /// An event that is over when they are. None: they are.
    pub(super) fn end(&mut self) -> Result<Option<DriverEvent>, DriverError> {
        if self.event.is_none() {
            self.event = self.queue.end_of(self.segment)?;
        }
        Ok(self.event.clone().filter(DriverEvent::may_run))
    }

    /// Keeps something until it is over.
    pub(super) fn keep<T: Send + Sync + 'static>(mut self, kept: Arc<T>) {
        match self.end() {
            Ok(None) => {}
            Ok(Some(event)) => {
                state::flush(&self.queue);
                watch::keep_until(event, kept);
            }
            Err(error) => watch::lose(error, kept),
        }
    }
}

impl User for Mutex<Uses> {
    fn may_run(&self) -> bool {
        let mut uses = match self.try_lock() {
            Ok(uses) => uses,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // A submission is being made.
            Err(TryLockError::WouldBlock) => return true,
        };
        uses.forget_finished();
        !uses.running.is_empty() || uses.unfinished_deferred().is_some()
    }
}

impl Uses {
    pub(super) fn forget_finished(&mut self) {
        self.running.retain(Running::may_run);
    }

    /// The same before a use is enqueued.
    pub(super) fn set_finished_aside(&mut self) {
        if self.running.iter().any(Running::may_run) {
            self.forget_finished();
        } else {
            std::mem::swap(&mut self.running, &mut self.over);
            self.running.clear();
        }
    }

    /// Commands were enqueued, and this event is complete when they are. The caller holds [`DriverQueue::whole`] since before, or
    /// nobody else has the queue.
    pub(super) fn runs(&mut self, queue: &DriverQueue, event: Option<&DriverEvent>) {
        let segment = queue.segment();
        let is_it = |one: &Running| one.event.is_none() && one.queue == *queue && one.segment == segment;
        let known = event.is_none() && self.running.iter().any(is_it);
        if !known {
            self.running.push(Running { queue: queue.clone(), event: event.cloned(), segment });
        }
        if event.is_none() {
            queue.want_end();
        }
        self.over.clear();
    }

    /// Whether nothing may run, as far as was looked at.
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.deferred.is_none()
    }

    fn unfinished_deferred(&mut self) -> Option<Blocker> {
        self.deferred.take_if(|state| !state.is_deferred());
        self.deferred.clone().map(Blocker::Order)
    }
}

/// The turns that an executable takes.
pub(super) struct TurnsOf {
    own: Arc<Mutex<Uses>>,
    /// All, each once, in the order in which everybody locks them.
    all: Vec<Arc<Mutex<Uses>>>,
}

/// All turns, locked.
pub(super) struct Taken<'a> {
    first: MutexGuard<'a, Uses>,
    /// Empty without sub-graphs, and then costs nothing.
    rest: Vec<MutexGuard<'a, Uses>>,
}

impl TurnsOf {
    /// With those of the executables in it.
    pub(super) fn new<'a>(inside: impl Iterator<Item = &'a Turns>) -> Self {
        let own = Arc::<Mutex<Uses>>::default();
        let others = inside.filter_map(|turns| Arc::clone(&turns.0).downcast::<Mutex<Uses>>().ok());
        let mut all: Vec<_> = others.chain([Arc::clone(&own)]).collect();
        all.sort_unstable_by_key(|turns| Arc::as_ptr(turns).addr());
        all.dedup_by_key(|turns| Arc::as_ptr(turns).addr());
        Self { own, all }
    }

    /// For a graph that takes the executable in.
    pub(super) fn for_parents(&self) -> Vec<Turns> {
        self.all.iter().map(|turns| Turns(Arc::clone(turns) as Arc<_>)).collect()
    }

    /// Nobody else begins a use meanwhile.
    pub(super) fn take(&self) -> Taken<'_> {
        match &*self.all {
            [] | [_] => Taken { first: lock(&self.own), rest: Vec::new() },
            [first, rest @ ..] => Taken { first: lock(first), rest: rest.iter().map(lock).collect() },
        }
    }

    /// Keeps something until all that runs now is over.
    pub(super) fn keep_until_idle<T: Send + Sync + 'static>(&self, kept: T) {
        let running = self.running();
        if running.is_empty() {
            return;
        }
        let kept = Arc::new(kept);
        for one in running.into_iter().filter(Running::may_run) {
            one.keep(Arc::clone(&kept));
        }
    }

    /// Keeps what an executable leaves behind until what runs of it is over.
    pub(super) fn keep_while_running<T: Send + Sync + 'static>(&self, kept: T) {
        let (own, kept) = (Arc::clone(&self.own), Arc::new(kept));
        let keep = move || {
            let running = lock(&own).running.clone();
            running.into_iter().for_each(|one| one.keep(Arc::clone(&kept)));
        };
        // The function of a native command, of a graph that it is in, may have dropped the last handle: its turns are taken.
        if reentrancy::check_call().is_ok() { keep() } else { watch::call(keep) }
    }

    /// As memory knows who uses it.
    pub(super) fn as_user(&self) -> Weak<dyn User> {
        Arc::downgrade(&self.own) as _
    }

    /// What memory asks, to be kept as long as something runs.
    pub(super) fn user(&self) -> Arc<dyn User> {
        Arc::clone(&self.own) as _
    }

    /// Gives everything that runs an event, for who has to know when it is over.
    pub(super) fn mark(&self) -> Result<(), DriverError> {
        for running in lock(&self.own).running.iter_mut().filter(|running| running.event.is_none()) {
            running.end()?;
            running.queue.flush()?;
        }
        Ok(())
    }

    /// What of the executable itself may run.
    pub(super) fn running(&self) -> Vec<Running> {
        lock(&self.own).running.clone()
    }
}

fn lock(turns: &Arc<Mutex<Uses>>) -> MutexGuard<'_, Uses> {
    turns.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Taken<'_> {
    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut Uses> {
        std::iter::once(&mut *self.first).chain(self.rest.iter_mut().map(|uses| &mut **uses))
    }

    pub(super) fn on_several_queues(&mut self) -> bool {
        self.each().any(|uses| uses.several_queues)
    }

    /// The end of everything that runs.
    pub(super) fn through(&mut self) -> Result<Vec<Blocker>, DriverError> {
        let mut all = Vec::new();
        for running in self.each().flat_map(|uses| &mut uses.running) {
            Self::push_end(running, &mut all)?;
        }
        Ok(all)
    }

    /// The ends of what runs that neither the order of this queue nor a wait list puts before what is enqueued there now: events
    /// that may fail are no good in a wait list, and the order of the queue may be broken.
    pub(super) fn out_of_reach(&mut self, queue: &DriverQueue) -> Result<Vec<Blocker>, DriverError> {
        let mut all = Vec::new();
        for running in self.each().flat_map(|uses| &mut uses.running) {
            let is_sure = running.event.as_ref().map_or_else(|| running.queue.is_sure(), DriverEvent::is_sure);
            let in_reach = if running.queue == *queue { running.is_before_all_on(queue) } else { is_sure };
            if !in_reach {
                Self::push_end(running, &mut all)?;
            }
        }
        Ok(all)
    }

    fn push_end(running: &mut Running, to: &mut Vec<Blocker>) -> Result<(), DriverError> {
        if let Some(event) = running.end()? {
            running.queue.flush()?;
            to.push(Blocker::Through(event));
        }
        Ok(())
    }

    /// Adds the deferred uses that a new one has to wait for.
    pub(super) fn behind_deferred(&mut self, blockers: &mut Vec<Blocker>) {
        for uses in self.each().filter(|uses| uses.deferred.is_some()) {
            blockers.extend(uses.unfinished_deferred());
        }
    }
}
