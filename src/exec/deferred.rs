//! Submissions that wait for something that may still fail.
//!
//! Some drivers crash, hang, run the dependents or lose the queue when an event in a wait list fails. So the commands of
//! such a submission are enqueued by the watcher, after success, on a queue of the executable's own; the caller's queue
//! is held by a gate that always opens.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::frozen::Frozen;
use super::lane::Refused;
use super::state::{self, Keep, State};
use super::submission::{Results, Submission};
use super::tour::Tour;
use super::walk::{Hands, Want};
use super::{Inner, external, workers};
use crate::cl::enqueue::{self, Waits};
use crate::cl::event::{DriverEvent, Gate, Progress};
use crate::cl::watch;
use crate::error::{DriverError, Error, Result, SubmitError};

/// What has to be over first.
pub(super) enum Blocker {
    /// An event that must not fail.
    Event(DriverEvent),
    /// An event that must have ended, well or not.
    Through(DriverEvent),
    /// A submission that must succeed.
    Success(Arc<State>),
    /// A submission that must have ended, well or not.
    Order(Arc<State>),
}

impl Blocker {
    /// Calls back when it is over, perhaps at once: the caller holds no lock.
    pub(super) fn when_over(self, then: impl FnOnce(Result<()>) + Send + 'static) {
        match self {
            Self::Event(event) => watch::when_done(event, move |outcome| then(outcome.map_err(Error::from))),
            Self::Through(event) => watch::when_done(event, move |_| then(Ok(()))),
            Self::Success(state) => state.when_over(then),
            Self::Order(state) => state.when_over(move |_| then(Ok(()))),
        }
    }
}

impl fmt::Debug for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Event(_) => "an event",
            Self::Through(_) => "an event's end",
            Self::Success(_) => "a submission's success",
            Self::Order(_) => "a submission's end",
        })
    }
}

/// A submission that waits for its blockers.
pub(super) struct Deferred {
    state: Arc<State>,
    count: Mutex<Countdown>,
}

struct Countdown {
    left: usize,
    failure: Option<Error>,
    waiting: Option<(Arc<Inner>, Waiting)>,
}

/// What is needed once nothing blocks any more.
pub(super) struct Waiting {
    /// What it runs.
    pub(super) frozen: Frozen,
    /// Complete when the caller's queue would have let the submission start.
    pub(super) entered: DriverEvent,
    pub(super) hands: Hands,
    pub(super) keep: Keep,
    /// Opens when it is dropped.
    pub(super) gate: Gate,
}

impl Waiting {
    /// The submission has ended: what the caller enqueued behind it may run. Only then everything else goes, in which the program
    /// may have a part.
    pub(super) fn end(self, state: &State, outcome: Result<()>) {
        let Self { frozen, entered, mut hands, keep, gate } = self;
        let failure = outcome.as_ref().err().cloned();
        // Whoever waits may submit again at once, and wants the memory for results.
        hands.slots.clear();
        state.finish(outcome, Some(gate));
        if let Some(failure) = failure {
            external::fail(&mut hands.events, &failure);
        }
        drop((frozen, entered, hands, keep));
    }
}

impl Deferred {
    pub(super) fn new(state: Arc<State>, exec: Arc<Inner>, waiting: Waiting) -> Arc<Self> {
        let count = Countdown { left: 0, failure: None, waiting: Some((exec, waiting)) };
        Arc::new(Self { state, count: Mutex::new(count) })
    }

    pub(super) fn submission(&self, results: Results) -> Submission {
        Submission::new(Arc::clone(&self.state), results)
    }

    fn lock(&self) -> MutexGuard<'_, Countdown> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One blocker less. The last one launches.
    fn unblocked(self: &Arc<Self>, outcome: Result<()>) {
        let mut count = self.lock();
        count.left -= 1;
        if let Err(error) = outcome {
            count.failure.get_or_insert(error);
        }
        if count.left > 0 {
            return;
        }
        let (waiting, failure) = (count.waiting.take(), count.failure.take());
        drop(count);
        let Some((exec, waiting)) = waiting else { return };
        match failure {
            Some(cause) => self.fail(cause, waiting),
            None => self.launch_anywhere(exec, waiting),
        }
    }

    /// Launches it, elsewhere if functions of the program's are called for it: others wait for this thread.
    fn launch_anywhere(self: &Arc<Self>, exec: Arc<Inner>, waiting: Waiting) {
        if waiting.frozen.values.tables.natives.is_empty() {
            return self.launch(&exec, waiting);
        }
        let this = Arc::clone(self);
        workers::run(move || this.launch(&exec, waiting));
    }

    /// Something that the submission waited for failed.
    fn fail(&self, cause: Error, waiting: Waiting) {
        // What depends on it hears the cause itself, not a chain of those who passed it on.
        let error = match cause {
            Error::Submit(SubmitError::DependencyFailed { .. }) => cause,
            cause => SubmitError::DependencyFailed { cause: Box::new(cause) }.into(),
        };
        self.end(Err(error), waiting);
    }

    /// Nothing blocks it from the start.
    fn unblocked_already(&self) {
        let waiting = self.lock().waiting.take();
        if let Some((exec, waiting)) = waiting {
            self.launch(&exec, waiting);
        }
    }

    /// A graph with host tasks: it goes part by part.
    fn tour(&self, exec: &Arc<Inner>, mut waits: Waits, waiting: Waiting) {
        let mut lane = exec.lane();
        let own = lane.own_queue(exec).and_then(|own| {
            let mut turns = exec.turns.take();
            lane.behind_others(&mut turns, &own, &mut waits)?;
            // The queue is in order: what comes later waits for this too. Tasks that wait for no command wait for it alone.
            let entered = if waits.is_empty() { None } else { Some(enqueue::marker(&own, &waits)?) };
            Ok((own, entered))
        });
        let leftovers = lane.leftovers();
        drop(lane);
        leftovers.settle(exec);
        match own {
            Ok((own, entered)) => Tour::start(exec, &self.state, own, entered, waiting),
            Err(error) => self.end(Err(error), waiting),
        }
    }

    fn launch(&self, exec: &Arc<Inner>, mut waiting: Waiting) {
        let mut waits = Waits::NONE;
        match waiting.entered.progress() {
            Ok(Progress::Complete) => {}
            // A command behind an event that has failed never completes on PoCL 3.1 and 6.0.
            Ok(Progress::Failed(status)) => {
                return self.fail(DriverError::new("an event of the wait list", status).into(), waiting);
            }
            _ => waits.push(waiting.entered.clone()),
        }
        if !exec.plan.tasks.is_empty() {
            return self.tour(exec, waits, waiting);
        }
        let (hands, keep) = (std::mem::take(&mut waiting.hands), waiting.keep.clone());
        let mut lane = exec.lane();
        let enqueued = lane.own_queue(exec).map_err(Refused::from).and_then(|own| {
            let mut turns = exec.turns.take();
            let want = Want { first: true, last: true };
            let ends = lane.enqueue(exec, &mut turns, &waiting.frozen, &own, waits, hands, &keep, want)?;
            Ok((own, ends))
        });
        let leftovers = lane.leftovers();
        drop(lane);
        leftovers.settle(exec);
        match enqueued {
            Ok((own, mut ends)) => {
                let Some(last) = ends.last.take() else { return self.end(Ok(()), waiting) };
                state::flush(&own);
                self.state.enqueued(own, last.clone(), ends);
                let state = Arc::clone(&self.state);
                watch::when_done(last, move |outcome| {
                    if let Err(error) = &outcome
                        && !watch::is_over(&outcome)
                    {
                        waiting.keep.lose(error);
                    }
                    waiting.end(&state, outcome.map_err(|error| SubmitError::Failed(error).into()));
                });
            }
            Err(Refused { error, rest: None }) => self.end(Err(*error), waiting),
            Err(Refused { error, rest: Some(rest) }) => {
                // The commands that were enqueued belong to the submission: it ends, and its gate opens, behind them.
                let state = Arc::clone(&self.state);
                watch::when_done(rest, move |_| {
                    waiting.end(&state, Err(*error));
                });
            }
        }
    }

    fn end(&self, outcome: Result<()>, waiting: Waiting) {
        waiting.end(&self.state, outcome);
    }
}

/// Has the watcher look after the blockers. The caller holds no lock: one that is over already calls back at once.
pub(super) fn wait_for(deferred: &Arc<Deferred>, blockers: Vec<Blocker>) {
    if blockers.is_empty() {
        return deferred.unblocked_already();
    }
    deferred.lock().left = blockers.len();
    for blocker in blockers {
        let this = Arc::clone(deferred);
        blocker.when_over(move |outcome| this.unblocked(outcome));
    }
}
