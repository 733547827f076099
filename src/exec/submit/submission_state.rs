//! The progress and outcome of a submission, shared by its handles and by the code that sees it end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::cl::completion::completion_time::CompletionTimer;
use crate::cl::completion::event_reaper;
use crate::cl::completion::gates::{GateId, Gates};
use crate::cl::completion::polled::TaskGuard;
use crate::cl::completion::reentrancy::{self, LaterEvents, ReentrancyGuard};
use crate::cl::completion::user_code::log_later;
use crate::cl::completion::workers::{self, WaitGuard};
use crate::cl::memory::host::HostBytes;
use crate::cl::objects::context::Context;
use crate::cl::objects::event::{self, DriverEvent, Gate};
use crate::cl::objects::queue::DriverQueue;
use crate::error::{DriverError, Result, SubmitError};
use crate::exec::submit::trampoline::run;
use crate::handles::Port;
use crate::ir::DataId;
use crate::ir::flows::Turns;
use crate::report::profile::Log;

/// What the handles of a submission and the event reaper share.
pub(in crate::exec) struct SubmissionState {
    pub(in crate::exec) context: Context,
    /// The C handle of the in-order queue that it was submitted to: later commands on this queue wait for it.
    queue: Option<usize>,
    /// The gate that opens when it has ended, if it holds back what comes after it.
    gate: Option<GateId>,
    /// The input of this submission, released when it has ended.
    inputs: RetainedMemory,
    /// An event that is complete when the submission has ended, with success or not.
    pub(in crate::exec) event: DriverEvent,
    phase: Mutex<Phase>,
    changed: Condvar,
    /// The times of the commands. None if nothing is profiled.
    log: Option<Arc<Log>>,
    /// The timer that stops at the end. None if the submission is not timed.
    timer: Option<Arc<CompletionTimer>>,
    /// Its branches and loops. None if it has none.
    control: Option<Box<ControlState>>,
}

/// The branches and loops of a submission.
pub(in crate::exec) struct ControlState {
    cancelled: AtomicBool,
    /// By flow: how many turns it had. The graph itself has one.
    turns: Vec<AtomicU64>,
    all: Arc<[(Port, Turns)]>,
}

impl ControlState {
    pub(in crate::exec) fn new(all: &Arc<[(Port, Turns)]>, flows: usize) -> Option<Box<Self>> {
        let new = || {
            let turns = std::iter::repeat_with(AtomicU64::default).take(flows).collect();
            Box::new(Self { cancelled: AtomicBool::new(false), turns, all: Arc::clone(all) })
        };
        (!all.is_empty()).then(new)
    }
}

/// Data in place of the executable's own, sorted by id. The last one for an id counts.
pub(in crate::exec) type Inputs = Vec<(DataId, HostBytes)>;

/// Host memory that a submission brings and retains until it has ended. None if it brings none.
#[derive(Clone, Default)]
pub(in crate::exec) struct RetainedMemory(Option<Arc<Mutex<Inputs>>>);

impl RetainedMemory {
    /// Makes room for these inputs.
    pub(in crate::exec) fn place_for(inputs: &Inputs) -> Self {
        Self((!inputs.is_empty()).then(Arc::default))
    }

    /// Takes the inputs, if room was made for some.
    pub(in crate::exec) fn put(&self, inputs: &mut Inputs) {
        if let Some(place) = &self.0 {
            std::mem::swap(&mut *place.lock().unwrap_or_else(PoisonError::into_inner), inputs);
        }
    }

    fn take(&self) -> Inputs {
        let take = |place: &Arc<Mutex<_>>| std::mem::take(&mut *place.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.as_ref().map(take).unwrap_or_default()
    }

    /// Leaks the memory, because it cannot be known when the driver has stopped using it.
    pub(in crate::exec) fn leak(&self, error: &DriverError) {
        let inputs = self.take();
        if !inputs.is_empty() {
            event_reaper::leak(error, inputs);
        }
    }

    /// Releases the memory. The caller must hold no lock: the memory's owner may be a type of the program with a `Drop`
    /// of its own.
    pub(in crate::exec) fn release(&self) {
        if self.0.is_some() {
            drop(self.take());
        }
    }
}

struct Phase {
    stage: Stage,
    listeners: Vec<Listener>,
    /// The wakers of futures that await the end, by the number of the future.
    wakers: BTreeMap<u64, Waker>,
    reaps: bool,
    /// Threads that sleep until the stage changes.
    sleepers: usize,
}

enum Listener {
    /// Internal: called where the end is seen.
    Internal(Box<dyn FnOnce(Result<()>) + Send>),
    /// The program's: called on the callback thread.
    User(Box<dyn FnOnce(Result<()>) + Send>),
}

/// The stages follow each other in this order. `Deferred` may be left out, and may be followed by `Done` directly.
#[derive(Clone)]
pub(in crate::exec) enum Stage {
    /// Nothing is enqueued yet: the submission waits for something that may still fail.
    Deferred,
    /// Some of its commands are enqueued. Holds the event of the first command, if that has one.
    Staged(Option<DriverEvent>),
    Enqueued {
        queue: DriverQueue,
        first: Option<DriverEvent>,
        last: DriverEvent,
        /// The ends of queues besides the one of the last command, which is after them.
        other_ends: Vec<DriverEvent>,
    },
    Done(Result<()>),
}

impl SubmissionState {
    #[allow(clippy::too_many_arguments)]
    pub(in crate::exec) fn new(
        context: Context,
        queue: Option<&DriverQueue>,
        inputs: RetainedMemory,
        stage: Stage,
        event: DriverEvent,
        log: Option<Arc<Log>>,
        timer: Option<Arc<CompletionTimer>>,
        gate: Option<GateId>,
        control: Option<Box<ControlState>>,
    ) -> Self {
        let (listeners, wakers) = (Vec::new(), BTreeMap::new());
        let phase = Mutex::new(Phase { stage, listeners, wakers, reaps: false, sleepers: 0 });
        let in_order = queue.filter(|queue| !queue.properties().out_of_order);
        let queue = in_order.map(|queue| queue.raw().addr());
        Self { context, queue, gate, inputs, event, phase, changed: Condvar::new(), log, timer, control }
    }

    /// Ends the submission at its next decision.
    pub(in crate::exec) fn cancel(&self) {
        if let Some(control) = &self.control {
            control.cancelled.store(true, Ordering::Relaxed);
        }
    }

    pub(in crate::exec) fn is_cancelled(&self) -> bool {
        self.control.as_ref().is_some_and(|control| control.cancelled.load(Ordering::Relaxed))
    }

    /// Returns the error of a submission that was cancelled before it began. The way of its loops does not matter then.
    pub(in crate::exec) fn cancelled_before(&self) -> Result<()> {
        let control = self.control.as_ref().filter(|control| control.cancelled.load(Ordering::Relaxed));
        let first = control.and_then(|control| control.all.first());
        let cancelled = |node| SubmitError::Cancelled { node, what: "branch or loop".to_owned(), turns: 0 };
        first.map_or(Ok(()), |(port, _)| Err(cancelled(port.node).into()))
    }

    /// Notes that turns of a flow begin.
    pub(in crate::exec) fn turn(&self, flow: usize, count: u64) {
        if let Some(turns) = self.control.as_ref().and_then(|control| control.turns.get(flow)) {
            turns.fetch_add(count, Ordering::Relaxed);
        }
        if let Some(log) = &self.log {
            log.turn(flow, count);
        }
    }

    fn turns_of(&self, flow: usize) -> u64 {
        let turns = self.control.as_ref().and_then(|control| control.turns.get(flow));
        turns.map_or(0, |turns| turns.load(Ordering::Relaxed))
    }

    /// Returns how many turns a branch or loop had. None if there is no such branch or loop.
    pub(in crate::exec) fn turns(&self, of: Port) -> Option<u64> {
        let (_, turns) = self.control.as_ref()?.all.iter().find(|(port, _)| *port == of)?;
        Some(match turns {
            Turns::Bodies(flows) => flows.clone().map(|flow| self.turns_of(flow)).sum(),
            Turns::Each { of, turns } => self.turns_of(*of).saturating_mul(*turns),
        })
    }

    /// Returns whether a flow had a turn.
    pub(in crate::exec) fn has_run(&self, flow: usize) -> bool {
        self.turns_of(flow) > 0
    }

    /// A host task of the submission runs on this thread. `later` tells which user events come after it.
    pub(in crate::exec) fn enter_task(self: &Arc<Self>, later: Option<LaterEvents>) -> TaskGuard {
        TaskGuard::new(ReentrancyGuard::task(Arc::as_ptr(self).addr(), self.queue, self.gate, later))
    }

    /// Returns an error if a function of the program would wait for itself.
    pub(in crate::exec) fn check_wait(self: &Arc<Self>) -> Result<(), SubmitError> {
        reentrancy::check_wait(Arc::as_ptr(self).addr())?;
        if !reentrancy::in_task() || self.is_over() {
            return Ok(());
        }
        self.queue.map_or(Ok(()), reentrancy::check_queue)?;
        reentrancy::check_gates(&self.gates())
    }

    /// Checks a wait that begins now, and registers it if a host task waits.
    #[inline]
    fn begin_wait(self: &Arc<Self>) -> Result<Option<WaitGuard>, SubmitError> {
        if reentrancy::is_outside() {
            return Ok(None);
        }
        self.check_wait()?;
        match self.known_stage() {
            Stage::Deferred | Stage::Staged(_) => WaitGuard::begin(&self.gates()).map(Some),
            // What is enqueued needs no thread for host tasks, unless it is behind a gate.
            Stage::Enqueued { last, .. } => WaitGuard::begin(&last.gates()).map(Some),
            Stage::Done(_) => Ok(None),
        }
    }

    /// Returns the gates that have to open before the submission can end.
    pub(in crate::exec) fn gates(&self) -> Gates {
        match &self.lock().stage {
            Stage::Done(_) => Gates::default(),
            Stage::Enqueued { last, .. } => last.gates(),
            // Its own, which opens after all others that it waits for.
            Stage::Deferred | Stage::Staged(_) => self.gate.map(Gates::of).unwrap_or_default(),
        }
    }

    pub(in crate::exec) fn gate(&self) -> Option<GateId> {
        self.gate
    }

    pub(in crate::exec) fn log(&self) -> Option<&Log> {
        self.log.as_deref()
    }

    fn lock(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the stage, after a query of the driver: a submission whose last command is complete is done.
    pub(in crate::exec) fn stage(&self) -> Result<Stage, DriverError> {
        let stage = self.lock().stage.clone();
        if let Stage::Enqueued { last, .. } = &stage {
            let outcome = match last.status()? {
                event::CommandStatus::Complete => Ok(()),
                event::CommandStatus::Failed(status) => Err(DriverError::new(event::COMMAND, status)),
                event::CommandStatus::Waiting | event::CommandStatus::Running => return Ok(stage),
            };
            self.end_once(ended(outcome));
            return Ok(self.lock().stage.clone());
        }
        Ok(stage)
    }

    /// Wakes the threads that sleep. This is a system call, so it is left out if no thread sleeps.
    fn wake(&self, phase: MutexGuard<'_, Phase>) {
        let sleepers = phase.sleepers;
        drop(phase);
        if sleepers > 0 {
            self.changed.notify_all();
        }
    }

    /// Sleeps until the stage may have changed, but at most for a time.
    fn sleep<'a>(&self, mut phase: MutexGuard<'a, Phase>, limit: Duration) -> MutexGuard<'a, Phase> {
        phase.sleepers += 1;
        let mut phase = self.changed.wait_timeout(phase, limit).unwrap_or_else(PoisonError::into_inner).0;
        phase.sleepers -= 1;
        phase
    }

    /// Returns the outcome if the end has been seen.
    pub(in crate::exec) fn outcome(&self) -> Option<Result<()>> {
        if let Stage::Done(outcome) = &self.lock().stage { Some(outcome.clone()) } else { None }
    }

    /// Returns whether the submission has ended, after a query of the driver.
    pub(in crate::exec) fn is_over(&self) -> bool {
        matches!(self.stage(), Ok(Stage::Done(_)))
    }

    pub(in crate::exec) fn is_deferred(&self) -> bool {
        matches!(self.lock().stage, Stage::Deferred | Stage::Staged(_))
    }

    /// Notes that the first partition of a deferred submission is enqueued.
    pub(in crate::exec) fn staged(&self, first: Option<DriverEvent>) {
        let mut phase = self.lock();
        if matches!(phase.stage, Stage::Deferred) {
            phase.stage = Stage::Staged(first);
        }
    }

    /// Notes that everything is enqueued, after [`staged`](Self::staged).
    pub(in crate::exec) fn enqueued(
        self: &Arc<Self>,
        queue: DriverQueue,
        last: DriverEvent,
        other_ends: Vec<DriverEvent>,
    ) {
        let mut phase = self.lock();
        let first = if let Stage::Staged(first) = &mut phase.stage { first.take() } else { None };
        phase.stage = Stage::Enqueued { queue, first, last, other_ends };
        self.turn(0, 1);
        let heard = !phase.listeners.is_empty() || !phase.wakers.is_empty();
        self.wake(phase);
        if heard {
            self.reap();
        }
    }

    /// Ends the submission, unless it has ended already. The caller or the event reaper calls the listeners.
    fn end_once(&self, outcome: Result<()>) {
        if let Some(timer) = &self.timer {
            if outcome.is_ok() { timer.complete() } else { timer.give_up() }
        }
        let mut phase = self.lock();
        if !matches!(phase.stage, Stage::Done(_)) {
            phase.stage = Stage::Done(outcome);
        }
        self.wake(phase);
        self.inputs.release();
    }

    /// Ends the submission: opens the gate that holds the caller's queue, and then calls the listeners. The gate opens
    /// first, because a listener may wait for commands that the gate holds back.
    pub(in crate::exec) fn finish(&self, outcome: Result<()>, gate: Option<Gate>) {
        self.end_once(outcome);
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
            for waker in wakers.into_values() {
                workers::wake(waker);
            }
        }
        for listener in listeners {
            let outcome = outcome.clone();
            match listener {
                Listener::Internal(listener) => run(Box::new(move || listener(outcome))),
                Listener::User(listener) => event_reaper::call(move || listener(outcome)),
            }
        }
    }

    /// Ends the submission for a caller that may hold locks: the listeners are called on another thread.
    pub(in crate::exec) fn finish_elsewhere(self: &Arc<Self>, outcome: Result<()>) {
        self.end_once(outcome);
        let phase = self.lock();
        let is_awaited = !phase.listeners.is_empty() || !phase.wakers.is_empty();
        drop(phase);
        if is_awaited {
            let state = Arc::clone(self);
            workers::run(move || state.tell());
        }
    }

    /// Registers the last event with the event reaper, if there is one and it is not registered yet.
    fn reap(self: &Arc<Self>) {
        let mut phase = self.lock();
        if phase.reaps {
            return;
        }
        let (queue, last) = match &phase.stage {
            Stage::Deferred | Stage::Staged(_) => return,
            Stage::Enqueued { queue, last, .. } => (queue.clone(), last.clone()),
            // The submission ended after the listener was added and before this look.
            Stage::Done(_) => {
                drop(phase);
                return self.tell();
            }
        };
        phase.reaps = true;
        drop(phase);
        flush(&queue);
        let state = Arc::clone(self);
        event_reaper::when_done(last, move |outcome| {
            if let Err(error) = &outcome
                && !event_reaper::is_over(&outcome)
            {
                state.inputs.leak(error);
            }
            state.finish(ended(outcome), None);
        });
    }

    /// Stores a waker to be called at the end. It replaces the future's earlier waker.
    pub(in crate::exec) fn awaken(self: &Arc<Self>, future: u64, waker: &Waker) {
        workers::expect_wakers();
        // Wakers run code of the program, so the lock is not held here.
        let waker = waker.clone();
        let before = self.lock().wakers.insert(future, waker);
        drop(before);
        self.reap();
    }

    /// Forgets the waker of a future that no longer awaits the end.
    pub(in crate::exec) fn forget_waker(&self, future: u64) {
        let waker = self.lock().wakers.remove(&future);
        drop(waker);
    }

    /// Wakes who polls a future, although the submission has not ended.
    pub(in crate::exec) fn rouse(&self, future: u64) {
        let waker = self.lock().wakers.remove(&future);
        waker.into_iter().for_each(workers::wake);
    }

    /// Calls back on the thread that sees the submission end. That thread holds no lock; the listener must be short,
    /// because others wait for the thread.
    pub(in crate::exec) fn when_over(self: &Arc<Self>, listener: impl FnOnce(Result<()>) + Send + 'static) {
        self.listen(Listener::Internal(Box::new(listener)));
    }

    /// Blocks until the submission has ended.
    pub(in crate::exec) fn wait(self: &Arc<Self>) -> Result<()> {
        let _waiting = self.begin_wait()?;
        let mut phase = self.lock();
        loop {
            match &phase.stage {
                Stage::Done(outcome) => return outcome.clone(),
                Stage::Enqueued { last, other_ends, .. } => {
                    let last = last.clone();
                    // Few submissions have some: an empty list is not copied.
                    let other_ends = if other_ends.is_empty() { Vec::new() } else { other_ends.clone() };
                    drop(phase);
                    // The last event alone says how the submission ended. But on Intel's CPU runtime a waiting thread
                    // helps only the queue of the event that it waits for: without these waits, kernels on two cores
                    // take twice the time.
                    for end in &other_ends {
                        let _ = end.wait();
                    }
                    match last.wait() {
                        // The wait failed, not the commands: they may still run.
                        Err(error) if !event_reaper::is_over(&Err(error)) => {
                            return Err(SubmitError::Driver(error).into());
                        }
                        outcome => self.end_once(ended(outcome)),
                    }
                    phase = self.lock();
                }
                Stage::Deferred | Stage::Staged(_) => phase = self.sleep(phase, Duration::MAX),
            }
        }
    }

    /// Blocks until the submission has ended, but at most for a time.
    pub(in crate::exec) fn wait_for(self: &Arc<Self>, limit: Duration) -> Result<()> {
        self.check_wait()?;
        // A wait with a limit ends by itself, so it closes no circle. Nobody waits for the end of a longer one.
        const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let until = Instant::now().checked_add(limit).filter(|_| limit <= A_DAY);
        let Some(until) = until else { return self.wait() };
        // Nothing of this wait is in the way of the submission's own gate for ever, but it takes a thread meanwhile.
        let _waiting = match self.stage().map_err(SubmitError::from)? {
            Stage::Done(outcome) => return outcome,
            Stage::Deferred | Stage::Staged(_) => Some(WaitGuard::begin(&Gates::default())?),
            Stage::Enqueued { .. } => None,
        };
        // Something has to wake this thread. A deferred submission wakes it without the event reaper.
        self.reap();
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

    /// Calls a function of the program when the submission has ended.
    pub(in crate::exec) fn call_back(self: &Arc<Self>, callback: impl FnOnce(Result<()>) + Send + 'static) {
        self.listen(Listener::User(Box::new(callback)));
    }

    /// Returns the stage without a query of the driver.
    pub(in crate::exec) fn known_stage(&self) -> Stage {
        self.lock().stage.clone()
    }

    fn listen(self: &Arc<Self>, listener: Listener) {
        self.lock().listeners.push(listener);
        // Also needed if the submission has ended already, because whoever ended it has called the listeners before
        // this one was added.
        self.reap();
        if reentrancy::check_call().is_ok() {
            return self.tell();
        }
        // Listeners may take locks that the caller holds, so they are called on another thread.
        let state = Arc::clone(self);
        workers::run(move || state.tell());
    }
}

/// Flushes a queue. A refusal may be a short lack of memory, so the flush is tried twice: rusticl begins nothing before
/// a flush. Only the log can report a second refusal.
pub(in crate::exec) fn flush(queue: &DriverQueue) {
    if let Err(error) = queue.flush().or_else(|_| queue.flush()) {
        log_later!(
            Warn,
            "{error}: the queue could not be flushed, so commands may not start until another call flushes it"
        );
    }
}

/// Returns the outcome of a submission from the outcome of its last event.
fn ended(outcome: Result<(), DriverError>) -> Result<()> {
    outcome.map_err(|error| SubmitError::CommandFailed(error).into())
}
