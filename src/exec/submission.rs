//! A submission: where it has got to, how it ended, and what it read.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::in_turn::in_turn;
use super::inside;
use super::profile::{Log, Profile};
use super::walk::{Ends, Inputs};
use super::{Executable, SubGraph, workers};
use crate::cl::context::Context;
use crate::cl::event::{self, DriverEvent};
use crate::cl::host::{Completed, Element, Slot};
use crate::cl::queue::DriverQueue;
use crate::cl::stamp::Stamp;
use crate::cl::watch;
use crate::error::{DriverError, RecordError, Result, SubmitError};
use crate::graph::{HostRead, Part, ResultGuard};
use crate::record::{self, Event, NodeEvent};

/// One run of an executable. Cheap to clone: clones are the same submission.
///
/// Dropping it does not stop the run; its results are then gone.
///
/// Until the last handle is dropped it keeps the memory for its results, of which an executable has as many as
/// [`Finalize::result_slots`](crate::Finalize::result_slots) says: drop submissions that nobody asks any more. A
/// [`ResultGuard`] may outlive it. [`Submit::submit_detached`](crate::Submit::submit_detached) holds none.
///
/// It can be waited for ([`wait`](Self::wait), [`wait_for`](Self::wait_for)), asked ([`progress`](Self::progress)),
/// awaited (it implements [`IntoFuture`]), and told to call back ([`on_complete`](Self::on_complete)). All of these look
/// at the last command, behind which the queue's order has put all others: what a driver does not report there is not
/// seen.
#[derive(Clone)]
pub struct Submission(Kind);

#[derive(Clone)]
enum Kind {
    /// With its results, which nobody else holds: they are free for other submissions when the last handle is gone.
    Run(Arc<State>, Results),
    /// The queue recorded: the executable, or a host task, is a node, and nothing runs.
    Recorded(NodeEvent, Option<Executable>),
}

/// By read, in the order of reads. None without reads.
pub(super) type Results = Option<Arc<[(Part, Arc<Slot>)]>>;

/// Where a submission has got to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Progress {
    /// Its first command has not started: it waits for events, for its queue, or for an earlier submission.
    Waiting,
    /// Its first command has started.
    Running,
    /// All its commands are complete.
    Complete,
    /// It failed; [`Submission::wait`] says how.
    Failed,
}

/// What a submission's owner and the watcher share.
pub(super) struct State {
    pub(super) context: Context,
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
        inputs: Keep,
        stage: Stage,
        event: DriverEvent,
        log: Option<Arc<Log>>,
        stamp: Option<Arc<Stamp>>,
    ) -> Self {
        let phase = Mutex::new(Phase { stage, listeners: Vec::new(), watched: false, sleepers: 0 });
        Self { context, inputs, event, phase, changed: Condvar::new(), log, stamp }
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
        let watch = !phase.listeners.is_empty();
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

    /// To the end, and calls the listeners.
    pub(super) fn finish(&self, outcome: Result<()>) {
        self.settle(outcome);
        self.tell();
    }

    /// Calls the listeners of a submission that has ended.
    fn tell(&self) {
        let mut phase = self.lock();
        let Stage::Done(outcome) = phase.stage.clone() else { return };
        let listeners = std::mem::take(&mut phase.listeners);
        drop(phase);
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
        if !self.lock().listeners.is_empty() {
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
            state.finish(ended(outcome));
        });
    }

    /// Calls back on the thread that sees the submission end, which holds no lock.
    pub(super) fn when_over(self: &Arc<Self>, listener: impl FnOnce(Result<()>) + Send + 'static) {
        self.listen(Listener::Inside(Box::new(listener)));
    }

    fn listen(self: &Arc<Self>, listener: Listener) {
        self.lock().listeners.push(listener);
        // Also when it has ended already, and whoever ended it is not looking any more.
        self.watch();
        if inside::check_call().is_ok() {
            return self.tell();
        }
        // Listeners may take locks that are held.
        let state = Arc::clone(self);
        watch::call(move || state.tell());
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

impl Submission {
    pub(super) fn new(state: Arc<State>, results: Results) -> Self {
        Self(Kind::Run(state, results))
    }

    /// One that stands for a node.
    pub(super) fn recorded(event: NodeEvent, executable: Option<Executable>) -> Self {
        Self(Kind::Recorded(event, executable))
    }

    /// The run, or the node that it stands for.
    pub(super) fn parts(&self) -> Result<&Arc<State>, &NodeEvent> {
        match &self.0 {
            Kind::Run(state, _) => Ok(state),
            Kind::Recorded(event, _) => Err(event),
        }
    }

    pub(super) fn state(&self, what: &'static str) -> Result<&Arc<State>, RecordError> {
        self.parts().map_err(|event| RecordError::Recorded { node: event.node, what })
    }

    /// The sub-graph that it stands for, if the queue recorded an executable: its reads and writes are those of the recorded graph's
    /// submissions.
    #[must_use]
    pub fn sub_graph(&self) -> Option<SubGraph> {
        match &self.0 {
            Kind::Run(..) => None,
            Kind::Recorded(event, executable) => Some(SubGraph::new(event.node, executable.clone()?)),
        }
    }

    /// Blocks until the submission has ended.
    ///
    /// # Errors
    /// How it ended: [`SubmitError::Failed`] with what the driver reported; [`SubmitError::DependencyFailed`] when an
    /// event that it waited for failed, so that it did not run; [`SubmitError::Enqueue`] when it had to wait before it
    /// could be enqueued, and then could not be; [`SubmitError::HostTask`], [`SubmitError::NativeCommand`],
    /// [`SubmitError::ExternalEvent`].
    ///
    /// Why it could not be waited for: [`RecordError::Recorded`] of a submission to a queue that records;
    /// [`SubmitError::OwnSubmission`] from a host task of its own; [`SubmitError::InsideNativeCommand`] from a native
    /// command; [`SubmitError::Driver`] when the driver refuses the wait, and the commands may run still.
    #[doc(alias = "clWaitForEvents")]
    pub fn wait(&self) -> Result<()> {
        let state = self.state("waited for")?;
        inside::check_wait(state)?;
        let mut phase = state.lock();
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
                        outcome => state.settle(ended(outcome)),
                    }
                    phase = state.lock();
                }
                Stage::Deferred | Stage::Staged(_) => phase = state.sleep(phase, Duration::MAX),
            }
        }
    }

    /// Blocks until the submission has ended, or for a time at most.
    ///
    /// # Errors
    /// [`SubmitError::TimedOut`] when it has not ended by then, which does not stop it; otherwise as
    /// [`wait`](Self::wait).
    pub fn wait_for(&self, limit: Duration) -> Result<()> {
        let state = self.state("waited for")?;
        inside::check_wait(state)?;
        let until = Instant::now().checked_add(limit);
        let Some(until) = until else { return self.wait() };
        if let Stage::Done(outcome) = state.stage().map_err(SubmitError::from)? {
            return outcome;
        }
        // Somebody to be woken by. One that is deferred is watched by itself.
        state.watch();
        let mut phase = state.lock();
        loop {
            if let Stage::Done(outcome) = &phase.stage {
                return outcome.clone();
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(SubmitError::TimedOut(limit).into());
            }
            phase = state.sleep(phase, left);
        }
    }

    /// Where the submission has got to, without waiting.
    ///
    /// # Errors
    /// [`RecordError::Recorded`] of a submission to a queue that records; [`DriverError`] when the driver refuses to
    /// tell.
    pub fn progress(&self) -> Result<Progress> {
        Ok(match self.state("asked for its progress")?.stage()? {
            Stage::Deferred => Progress::Waiting,
            Stage::Staged(None) => Progress::Running,
            Stage::Staged(Some(first)) => match first.progress()? {
                event::Progress::Waiting => Progress::Waiting,
                _ => Progress::Running,
            },
            Stage::Done(Ok(())) => Progress::Complete,
            Stage::Done(Err(_)) => Progress::Failed,
            Stage::Enqueued { queue, first, last, .. } => {
                // Whoever asks again and again expects that it gets on.
                flush(&queue);
                match first.unwrap_or(last).progress()? {
                    event::Progress::Waiting => Progress::Waiting,
                    _ => Progress::Running,
                }
            }
        })
    }

    /// Whether the submission has ended, well or not.
    ///
    /// # Errors
    /// [`RecordError::Recorded`] of a submission to a queue that records; [`DriverError`] when the driver refuses to
    /// tell.
    pub fn is_done(&self) -> Result<bool> {
        Ok(matches!(self.progress()?, Progress::Complete | Progress::Failed))
    }

    /// Calls back once, when the submission has ended, with what [`wait`](Self::wait) would return.
    ///
    /// The callback runs on a thread of clgraph's own, never on the caller's or a driver's. It should be short: other
    /// callbacks wait for it, so one that waits for another callback waits for ever. It may submit, and wait for
    /// submissions.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let executable = Graph::new(&queue)?.finalize(Finalize::new())?;
    /// let (say, said) = std::sync::mpsc::channel();
    /// executable.submit(&queue)?.on_complete(move |outcome| say.send(outcome.is_ok()).unwrap());
    /// assert_eq!(said.recv(), Ok(true));
    /// # Ok(()) }
    /// ```
    #[doc(alias = "clSetEventCallback")]
    pub fn on_complete(&self, callback: impl FnOnce(Result<()>) + Send + 'static) {
        match self.state("waited for") {
            Ok(state) => state.listen(Listener::User(Box::new(callback))),
            Err(error) => watch::call(move || callback(Err(error.into()))),
        }
    }

    /// What a host read read, once the submission is complete: as many elements as the node reads. May be asked for
    /// again.
    ///
    /// The guard keeps the memory out of use for other submissions
    /// ([`Finalize::result_slots`](crate::Finalize::result_slots)), and may outlive the submission and the executable:
    /// drop it when done with it.
    ///
    /// # Errors
    /// [`SubmitError::NotComplete`]; [`SubmitError::NotAResult`]; how the submission failed; [`RecordError::Recorded`];
    /// [`DriverError`] when the driver refuses to tell.
    pub fn get<T: Element>(&self, read: &HostRead<T>) -> Result<ResultGuard<T>> {
        let node = read.node();
        let part = Part { node, index: read.part() };
        let state = self.state("asked for results")?;
        let results = if let Kind::Run(_, Some(results)) = &self.0 { &**results } else { &[] };
        let found = results.binary_search_by_key(&part, |(of, _)| *of);
        let (_, slot) = &results[found.map_err(|_| SubmitError::NotAResult { node })?];
        match state.stage()? {
            Stage::Done(outcome) => outcome?,
            Stage::Deferred | Stage::Staged(_) | Stage::Enqueued { .. } => {
                return Err(SubmitError::NotComplete.into());
            }
        }
        Ok(ResultGuard::new(Arc::clone(slot), Completed::witnessed()))
    }

    /// When the submission and its nodes ran. Asked again it gives the same. An example is at [`Profile`].
    ///
    /// # Errors
    /// [`SubmitError::NotProfiled`] where the executable was finalized without [`Finalize::profiling`](crate::Finalize::profiling);
    /// [`SubmitError::NotComplete`]; how the submission failed; [`RecordError::Recorded`]; [`DriverError`] when the
    /// driver does not tell.
    #[doc(alias = "clGetEventProfilingInfo")]
    pub fn profile(&self) -> Result<Profile> {
        let state = self.state("asked for its profile")?;
        let log = state.log.as_ref().ok_or(SubmitError::NotProfiled)?;
        match state.stage()? {
            Stage::Done(outcome) => outcome?,
            _ => return Err(SubmitError::NotComplete.into()),
        }
        Ok(log.read()?)
    }

    /// A driver's event that is complete when the submission has ended, for other libraries to wait for; or the event of a
    /// recorded command, where the queue recorded.
    ///
    /// It shows completion and not success: a submission that failed because of what it waited for ends with a
    /// complete event. Nobody flushes for it but its taker.
    ///
    /// # Errors
    /// [`DriverError`] when the driver refuses to flush the queue.
    pub fn event(&self) -> Result<Event> {
        let state = match self.parts() {
            Ok(state) => state,
            Err(node) => return Ok(Event(record::Kind::Node(Box::new(node.clone())))),
        };
        if let Stage::Enqueued { queue, .. } = state.stage()? {
            queue.flush()?;
        }
        Ok(state.event.clone().into())
    }
}

impl fmt::Debug for Submission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.parts() {
            Ok(state) => state,
            Err(event) => return write!(f, "Submission({})", event.node),
        };
        let stage = match &state.lock().stage {
            Stage::Deferred => "deferred".to_owned(),
            Stage::Staged(_) => "under way".to_owned(),
            Stage::Enqueued { .. } => "enqueued".to_owned(),
            Stage::Done(outcome) => format!("done: {outcome:?}"),
        };
        write!(f, "Submission({stage})")
    }
}
