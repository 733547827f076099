//! Where a submission has got to, which its owner and those who see it end share.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::in_turn::in_turn;
use super::profile::Log;
use super::walk::{Ends, Inputs};
use super::workers;
use crate::cl::context::Context;
use crate::cl::event::{self, DriverEvent, Gate};
use crate::cl::queue::DriverQueue;
use crate::cl::reentrancy::{self, Inside};
use crate::cl::stamp::Stamp;
use crate::cl::user_code::guarded;
use crate::cl::watch;
use crate::error::{DriverError, Result, SubmitError};

/// What a submission's owner and the watcher share.
pub(super) struct State {
    pub(super) context: Context,
    /// The in-order queue that it was submitted to, by its C handle: what comes there later is behind it.
    queue: Option<usize>,
    /// Input of this submission, gone when it has ended.
    inputs: Keep,
    /// An event that is complete when the submission is, whatever becomes of it.
    pub(super) event: DriverEvent,
    phase: Mutex<Phase>,
    changed: Condvar,
    /// When what ran. None where nothing is profiled.
    log: Option<Arc<Log>>,
    /// To stop at the end. None where nothing is timed.
    stamp: Option<Arc<Stamp>>,
}

/// Host memory that a submission brings, until it has ended. None where it brings none.
#[derive(Clone, Default)]
pub(super) struct Keep(Option<Arc<Mutex<Inputs>>>);

impl Keep {
    /// A place for these.
    pub(super) fn place_for(inputs: &Inputs) -> Self {
        Self((!inputs.is_empty()).then(Arc::default))
    }

    /// Puts into the place what it is for.
    pub(super) fn put(&self, inputs: Inputs) {
        if let Some(place) = &self.0 {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = inputs;
        }
    }

    fn take(&self) -> Inputs {
        let take = |place: &Arc<Mutex<_>>| std::mem::take(&mut *place.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.as_ref().map(take).unwrap_or_default()
    }

    /// Gives the memory up without giving it back: nobody can tell when the driver is done with it.
    pub(super) fn lose(&self, error: &DriverError) {
        let inputs = self.take();
        if !inputs.is_empty() {
            watch::lose(error, inputs);
        }
    }

    /// Gives the memory back. The caller holds no lock: its owner may be a user's, with a `Drop` of its own.
    pub(super) fn let_go(&self) {
        drop(self.take());
    }
}

struct Phase {
    stage: Stage,
    listeners: Vec<Listener>,
    /// Whom to wake of those who await the end, by the number of the future.
    wakers: BTreeMap<u64, Waker>,
    watched: bool,
    /// Threads that sleep until the stage changes.
    sleepers: usize,
}

enum Listener {
    /// Of clgraph's own: called where the end is seen.
    Inside(Box<dyn FnOnce(Result<()>) + Send>),
    /// A user's: called on the callback thread.
    User(Box<dyn FnOnce(Result<()>) + Send>),
}

/// The stages follow each other in this order; `Deferred` may be left out, and may go straight to `Done`.
#[derive(Clone)]
pub(super) enum Stage {
    /// Nothing is enqueued yet: it waits for something that may still fail.
    Deferred,
    /// It has host tasks or external events, and some of it is under way. The event of its first command, if that has one.
    Staged(Option<DriverEvent>),
    Enqueued {
        queue: DriverQueue,
        first: Option<DriverEvent>,
        last: DriverEvent,
        /// See [`Ends`].
        beside: Vec<DriverEvent>,
    },
    Done(Result<()>),
}

impl State {
    pub(super) fn new(
        context: Context,
        queue: Option<&DriverQueue>,
        inputs: Keep,
        stage: Stage,
        event: DriverEvent,
        log: Option<Arc<Log>>,
        stamp: Option<Arc<Stamp>>,
    ) -> Self {
        let (listeners, wakers) = (Vec::new(), BTreeMap::new());
        let phase = Mutex::new(Phase { stage, listeners, wakers, watched: false, sleepers: 0 });
        let in_order = queue.filter(|queue| !queue.properties().out_of_order);
        let queue = in_order.map(|queue| queue.raw().addr());
        Self { context, queue, inputs, event, phase, changed: Condvar::new(), log, stamp }
    }

    /// A host task of the submission runs on this thread.
    pub(super) fn enter_task(self: &Arc<Self>) -> Inside {
        Inside::task(Arc::as_ptr(self).addr(), self.queue)
    }

    /// Says no to a function of the program's that would wait for itself.
    fn check_wait(self: &Arc<Self>) -> Result<(), SubmitError> {
        reentrancy::check_wait(Arc::as_ptr(self).addr())?;
        match self.queue {
            Some(queue) if reentrancy::holds_a_queue() && !self.is_over() => reentrancy::check_queue(queue),
            _ => Ok(()),
        }
    }

    pub(super) fn log(&self) -> Option<&Log> {
        self.log.as_deref()
    }

    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stage, after a look at the driver: a submission whose last command is complete is done.
    pub(super) fn stage(&self) -> Result<Stage, DriverError> {
        let stage = self.lock().stage.clone();
        if let Stage::Enqueued { last, .. } = &stage {
            let outcome = match last.progress()? {
                event::Progress::Complete => Ok(()),
                event::Progress::Failed(status) => Err(DriverError::new(event::COMMAND, status)),
                event::Progress::Waiting | event::Progress::Running => return Ok(stage),
            };
            self.settle(ended(outcome));
            return Ok(self.lock().stage.clone());
        }
        Ok(stage)
    }

    /// Wakes those who sleep. It costs a call of the system, so not where nobody does.
    fn wake(&self, phase: MutexGuard<'_, Phase>) {
        let sleepers = phase.sleepers;
        drop(phase);
        if sleepers > 0 {
            self.changed.notify_all();
        }
    }

    /// Sleeps until the stage may have changed, or for a time at most.
    fn sleep<'a>(&self, mut phase: MutexGuard<'a, Phase>, limit: Duration) -> MutexGuard<'a, Phase> {
        phase.sleepers += 1;
        let mut phase = self.changed.wait_timeout(phase, limit).unwrap_or_else(PoisonError::into_inner).0;
        phase.sleepers -= 1;
        phase
    }

    /// How it has ended, if it has been seen to end.
    pub(super) fn outcome(&self) -> Option<Result<()>> {
        if let Stage::Done(outcome) = &self.lock().stage { Some(outcome.clone()) } else { None }
    }

    /// Whether it has ended, after a look at the driver.
    fn is_over(&self) -> bool {
        matches!(self.stage(), Ok(Stage::Done(_)))
    }

    pub(super) fn is_deferred(&self) -> bool {
        matches!(self.lock().stage, Stage::Deferred | Stage::Staged(_))
    }

    /// The first part of a submission with host tasks is under way.
    pub(super) fn staged(&self, first: Option<DriverEvent>) {
        let mut phase = self.lock();
        if matches!(phase.stage, Stage::Deferred) {
            phase.stage = Stage::Staged(first);
        }
    }

    /// From deferred to enqueued.
    pub(super) fn enqueued(self: &Arc<Self>, queue: DriverQueue, last: DriverEvent, ends: Ends) {
        let mut phase = self.lock();
        phase.stage = Stage::Enqueued { queue, first: ends.first, last, beside: ends.beside };
        let watch = !phase.listeners.is_empty() || !phase.wakers.is_empty();
        self.wake(phase);
        if watch {
            self.watch();
        }
    }

    /// To the end, unless it has come to one already. Leaves the listeners to the watcher.
    fn settle(&self, outcome: Result<()>) {
        if let (Some(stamp), Ok(())) = (&self.stamp, &outcome) {
            stamp.complete();
        }
        let mut phase = self.lock();
        if !matches!(phase.stage, Stage::Done(_)) {
            phase.stage = Stage::Done(outcome);
        }
        self.wake(phase);
        self.inputs.let_go();
    }

    /// To the end: opens the gate that holds the caller's queue, and then calls the listeners, who may have to do with what comes
    /// behind it.
    pub(super) fn finish(&self, outcome: Result<()>, gate: Option<Gate>) {
        self.settle(outcome);
        drop(gate);
        self.tell();
    }

    /// Calls the listeners of a submission that has ended.
    fn tell(&self) {
        let mut phase = self.lock();
        let Stage::Done(outcome) = phase.stage.clone() else { return };
        let listeners = std::mem::take(&mut phase.listeners);
        let wakers = std::mem::take(&mut phase.wakers);
        drop(phase);
        if !wakers.is_empty() {
            watch::call(move || wakers.into_values().for_each(|waker| guarded("a waker", || waker.wake())));
        }
        for listener in listeners {
            let outcome = outcome.clone();
            match listener {
                Listener::Inside(listener) => in_turn(Box::new(move || listener(outcome))),
                Listener::User(listener) => watch::call(move || listener(outcome)),
            }
        }
    }

    /// To the end, for who may hold locks of his own: listeners are called elsewhere.
    pub(super) fn finish_elsewhere(self: &Arc<Self>, outcome: Result<()>) {
        self.settle(outcome);
        let phase = self.lock();
        let is_awaited = !phase.listeners.is_empty() || !phase.wakers.is_empty();
        drop(phase);
        if is_awaited {
            let state = Arc::clone(self);
            workers::run(move || state.tell());
        }
    }

    /// Has the watcher look at the last event, if there is one and it does not already.
    fn watch(self: &Arc<Self>) {
        let mut phase = self.lock();
        if phase.watched {
            return;
        }
        let (queue, last) = match &phase.stage {
            Stage::Deferred | Stage::Staged(_) => return,
            Stage::Enqueued { queue, last, .. } => (queue.clone(), last.clone()),
            // It ended between the listener's coming and this look.
            Stage::Done(_) => {
                drop(phase);
                return self.tell();
            }
        };
        phase.watched = true;
        drop(phase);
        flush(&queue);
        let state = Arc::clone(self);
        watch::when_done(last, move |outcome| {
            if let Err(error) = &outcome
                && !watch::is_over(&outcome)
            {
                state.inputs.lose(error);
            }
            state.finish(ended(outcome), None);
        });
    }

    /// Has a waker called at the end, in place of the one that the future has given before.
    pub(super) fn awaken(self: &Arc<Self>, future: u64, waker: &Waker) {
        // What wakers do is the program's, so nothing of it happens under the lock.
        let waker = waker.clone();
        let before = self.lock().wakers.insert(future, waker);
        drop(before);
        self.watch();
    }

    /// The future awaits the end no longer.
    pub(super) fn forget_waker(&self, future: u64) {
        let waker = self.lock().wakers.remove(&future);
        drop(waker);
    }

    /// Calls back on the thread that sees the submission end, which holds no lock, and for which others wait.
    pub(super) fn when_over(self: &Arc<Self>, listener: impl FnOnce(Result<()>) + Send + 'static) {
        self.listen(Listener::Inside(Box::new(listener)));
    }

    /// Blocks until it has ended.
    pub(super) fn wait(self: &Arc<Self>) -> Result<()> {
        self.check_wait()?;
        let mut phase = self.lock();
        loop {
            match &phase.stage {
                Stage::Done(outcome) => return outcome.clone(),
                Stage::Enqueued { last, beside, .. } => {
                    let (last, beside) = (last.clone(), beside.clone());
                    drop(phase);
                    // The last event tells how all ended. But on Intel's CPU runtime a thread that waits helps the queue of
                    // the event that it waits for, and no other: on two cores kernels take twice the time without it.
                    for end in beside {
                        let _ = end.wait();
                    }
                    match last.wait() {
                        // The wait failed, and not the commands: they may run still.
                        Err(error) if !watch::is_over(&Err(error)) => return Err(SubmitError::Driver(error).into()),
                        outcome => self.settle(ended(outcome)),
                    }
                    phase = self.lock();
                }
                Stage::Deferred | Stage::Staged(_) => phase = self.sleep(phase, Duration::MAX),
            }
        }
    }

    /// The same, for a time at most.
    pub(super) fn wait_for(self: &Arc<Self>, limit: Duration) -> Result<()> {
        self.check_wait()?;
        let until = Instant::now().checked_add(limit);
        let Some(until) = until else { return self.wait() };
        if let Stage::Done(outcome) = self.stage().map_err(SubmitError::from)? {
            return outcome;
        }
        // Somebody to be woken by. One that is deferred is watched by itself.
        self.watch();
        let mut phase = self.lock();
        loop {
            if let Stage::Done(outcome) = &phase.stage {
                return outcome.clone();
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(SubmitError::TimedOut(limit).into());
            }
            phase = self.sleep(phase, left);
        }
    }

    /// Calls a function of the program's when it has ended.
    pub(super) fn call_back(self: &Arc<Self>, callback: impl FnOnce(Result<()>) + Send + 'static) {
        self.listen(Listener::User(Box::new(callback)));
    }

    /// The stage, without a look at the driver.
    pub(super) fn known_stage(&self) -> Stage {
        self.lock().stage.clone()
    }

    fn listen(self: &Arc<Self>, listener: Listener) {
        self.lock().listeners.push(listener);
        // Also when it has ended already, and whoever ended it is not looking any more.
        self.watch();
        if reentrancy::check_call().is_ok() {
            return self.tell();
        }
        // Listeners may take locks that are held.
        let state = Arc::clone(self);
        workers::run(move || state.tell());
    }
}

/// Has the driver begin what is enqueued. A refusal may be a moment without memory, and rusticl begins nothing before; nobody can
/// be told of a second one but the log.
pub(super) fn flush(queue: &DriverQueue) {
    if let Err(error) = queue.flush().or_else(|_| queue.flush()) {
        log::warn!("{error}: commands may not start until the queue is flushed by something else");
    }
}

/// How a submission ended whose last event ended so.
fn ended(outcome: Result<(), DriverError>) -> Result<()> {
    outcome.map_err(|error| SubmitError::Failed(error).into())
}
