//! Submissions that wait for something that may still fail.
//!
//! Some drivers crash, hang, run the dependents or lose the queue when an event in a wait list fails. So the event
//! reaper enqueues the commands of such a submission after the event has succeeded, on a queue of the executable's own.
//! A gate, which always opens, holds the caller's queue.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cl::commands::enqueue::{self, Waits};
use crate::cl::completion::event_reaper;
use crate::cl::completion::gates::Gates;
use crate::cl::completion::workers;
use crate::cl::objects::event::{CommandStatus, DriverEvent, Gate};
use crate::error::{DriverError, Error, Result, SubmitError};
use crate::exec::Inner;
use crate::exec::submit::executable_state::PartlyEnqueued;
use crate::exec::submit::external_events;
use crate::exec::submit::interpreter::{SubmissionBindings, Want};
use crate::exec::submit::snapshot::Snapshot;
use crate::exec::submit::submission::{Results, Submission};
use crate::exec::submit::submission_state::{self, RetainedMemory, SubmissionState};
use crate::exec::submit::task_scheduler::TaskScheduler;

/// What has to be over first.
pub(in crate::exec) enum Blocker {
    /// An event that must not fail.
    Event(DriverEvent),
    /// An event that must have ended, well or not.
    Through(DriverEvent),
    /// A submission that must succeed.
    Success(Arc<SubmissionState>),
    /// A submission that must have ended, well or not.
    Order(Arc<SubmissionState>),
}

impl Blocker {
    /// Calls back when it is over, perhaps at once: the caller holds no lock.
    pub(in crate::exec) fn when_over(self, then: impl FnOnce(Result<()>) + Send + 'static) {
        match self {
            Self::Event(event) => event_reaper::when_done(event, move |outcome| then(outcome.map_err(Error::from))),
            Self::Through(event) => event_reaper::when_done(event, move |_| then(Ok(()))),
            Self::Success(state) => state.when_over(then),
            Self::Order(state) => state.when_over(move |_| then(Ok(()))),
        }
    }
}

impl Blocker {
    /// Returns the gates that have to open before it can be over.
    pub(in crate::exec) fn gates(&self) -> Gates {
        match self {
            Self::Event(event) | Self::Through(event) => event.gates(),
            Self::Success(state) | Self::Order(state) => state.gates(),
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
pub(in crate::exec) struct Deferred {
    state: Arc<SubmissionState>,
    count: Mutex<Countdown>,
}

struct Countdown {
    left: usize,
    failure: Option<Error>,
    waiting: Option<(Arc<Inner>, Waiting)>,
}

/// What is needed once nothing blocks any more.
pub(in crate::exec) struct Waiting {
    /// What it runs.
    pub(in crate::exec) snapshot: Snapshot,
    /// Complete when the caller's queue would have let the submission start.
    pub(in crate::exec) entered: DriverEvent,
    pub(in crate::exec) bindings: SubmissionBindings,
    pub(in crate::exec) retained: RetainedMemory,
    /// Opens when it is dropped.
    pub(in crate::exec) gate: Gate,
}

impl Waiting {
    /// Ends the submission: commands that the caller enqueued after it may run. Everything else is released only then,
    /// because that may run code of the program.
    pub(in crate::exec) fn end(self, state: &SubmissionState, outcome: Result<()>) {
        let Self { snapshot, entered, mut bindings, retained, gate } = self;
        let failure = outcome.as_ref().err().cloned();
        // Whoever waits may submit again at once, and needs the memory for results.
        bindings.slots.clear();
        // Whoever sees the failure also sees it at the events that the submission would have completed.
        if let Some(failure) = failure {
            external_events::fail(&mut bindings.events, &failure);
        }
        state.finish(outcome, Some(gate));
        drop((snapshot, entered, bindings, retained));
    }
}

impl Deferred {
    pub(in crate::exec) fn new(state: Arc<SubmissionState>, exec: Arc<Inner>, waiting: Waiting) -> Arc<Self> {
        let count = Countdown { left: 0, failure: None, waiting: Some((exec, waiting)) };
        Arc::new(Self { state, count: Mutex::new(count) })
    }

    pub(in crate::exec) fn submission(&self, results: Results) -> Submission {
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
            // Nobody sees the outcome any more.
            None if event_reaper::process_ends() => drop(waiting),
            Some(cause) => self.fail(cause, waiting),
            None => self.launch_anywhere(exec, waiting),
        }
    }

    /// Launches it, on another thread if that calls functions of the program: others wait for this thread.
    fn launch_anywhere(self: &Arc<Self>, exec: Arc<Inner>, waiting: Waiting) {
        if waiting.snapshot.values.tables.natives.is_empty() {
            return self.launch(&exec, waiting);
        }
        let this = Arc::clone(self);
        workers::run(move || this.launch(&exec, waiting));
    }

    /// Something that the submission waited for failed.
    fn fail(&self, cause: Error, waiting: Waiting) {
        // Dependents get the cause itself, not a chain of errors that passed it on.
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

    /// A graph with host tasks: it is enqueued partition by partition.
    fn scheduler(&self, exec: &Arc<Inner>, mut waits: Waits, waiting: Waiting) {
        let elsewhere = exec.context.enqueue_elsewhere();
        let mut exec_state = exec.lock_state();
        let own = exec_state.own_queue(exec).and_then(|own| {
            let mut exclusive = exec.exclusive.take();
            exec_state.wait_for_others(&mut exclusive, &own, &mut waits)?;
            // The queue is in order: later commands wait for this too. Tasks that wait for no command wait for it
            // alone.
            let entered = if waits.is_empty() { None } else { Some(enqueue::marker(&own, &waits)?) };
            Ok((own, entered))
        });
        let leftovers = exec_state.leftovers();
        drop(exec_state);
        drop(elsewhere);
        leftovers.settle(exec);
        match own {
            Ok((own, entered)) => TaskScheduler::start(exec, &self.state, own, entered, waiting),
            Err(error) => self.end(Err(error), waiting),
        }
    }

    fn launch(&self, exec: &Arc<Inner>, mut waiting: Waiting) {
        let mut waits = Waits::NONE;
        match waiting.entered.status() {
            Ok(CommandStatus::Complete) => {}
            // A command after an event that has failed never completes on PoCL 3.1 and 6.0.
            Ok(CommandStatus::Failed(status)) => {
                return self.fail(DriverError::new("an event of the wait list", status).into(), waiting);
            }
            _ => waits.push(waiting.entered.clone()),
        }
        if !exec.plan.tasks.is_empty() {
            return self.scheduler(exec, waits, waiting);
        }
        let (bindings, retained) = (std::mem::take(&mut waiting.bindings), waiting.retained.clone());
        let elsewhere = exec.context.enqueue_elsewhere();
        let mut exec_state = exec.lock_state();
        let enqueued = exec_state.own_queue(exec).map_err(PartlyEnqueued::from).and_then(|own| {
            let mut exclusive = exec.exclusive.take();
            let want = Want { first: true, last: true };
            let ends =
                exec_state.enqueue(exec, &mut exclusive, &waiting.snapshot, &own, waits, bindings, &retained, want)?;
            Ok((own, ends))
        });
        let leftovers = exec_state.leftovers();
        drop(exec_state);
        drop(elsewhere);
        leftovers.settle(exec);
        match enqueued {
            Ok((own, mut ends)) => {
                // A graph without commands, or a driver without events: a marker ends after everything.
                let last = match ends.last.take().map_or_else(|| enqueue::last_marker(&own), Ok) {
                    Ok(last) => last,
                    Err(error) => {
                        waiting.retained.leak(&error);
                        exec.exclusive.take().each().for_each(|uses| uses.runs(&own, None));
                        return self.end(Err(error.into()), waiting);
                    }
                };
                submission_state::flush(&own);
                self.state.enqueued(own, last.clone(), ends);
                let state = Arc::clone(&self.state);
                event_reaper::when_done(last, move |outcome| {
                    if let Err(error) = &outcome
                        && !event_reaper::is_over(&outcome)
                    {
                        waiting.retained.leak(error);
                    }
                    waiting.end(&state, outcome.map_err(|error| SubmitError::Failed(error).into()));
                });
            }
            Err(PartlyEnqueued { error, rest: None }) => self.end(Err(*error), waiting),
            Err(PartlyEnqueued { error, rest: Some(rest) }) => {
                // The commands that were enqueued belong to the submission: it ends, and its gate opens, after them.
                let state = Arc::clone(&self.state);
                event_reaper::when_done(rest, move |_| {
                    waiting.end(&state, Err(*error));
                });
            }
        }
    }

    fn end(&self, outcome: Result<()>, waiting: Waiting) {
        waiting.end(&self.state, outcome);
    }
}

/// Registers the blockers with the event reaper. The caller holds no lock: a blocker that has ended already calls back
/// at once.
pub(in crate::exec) fn wait_for(deferred: &Arc<Deferred>, blockers: Vec<Blocker>) {
    if blockers.is_empty() {
        return deferred.unblocked_already();
    }
    deferred.lock().left = blockers.len();
    for blocker in blockers {
        let this = Arc::clone(deferred);
        blocker.when_over(move |outcome| this.unblocked(outcome));
    }
}
