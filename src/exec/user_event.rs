//! Events that the program completes.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::state::{Keep, Stage, State};
use super::submission::Submission;
use super::submit::{Dependency, WaitFor};
use crate::cl::context::{Context, InContext};
use crate::cl::event::Gate;
use crate::cl::reentrancy;
use crate::error::{Error, Result, SubmitError};
use crate::record::Event;

/// An event that the program completes, or a submission does for it ([`Submit::with_signal`](crate::Submit::with_signal)). Cheap
/// to clone: clones are the same event.
///
/// Submissions can wait for it ([`Submit::after`](crate::Submit::after)), nodes of them ([`Submit::with_event`](crate::Submit::with_event)), and
/// the host. When it fails, so does what waits for it; but no driver hears of that: its `cl_event` becomes complete all the same, because
/// drivers crash or hang over user events that fail. When its last clone is dropped before it has ended, it fails with
/// [`SubmitError::UserEventDropped`]; one that a submission is to complete is kept by that.
///
/// It has no callback and is no future: submit an empty graph behind it for that.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// # use clgraph::{Buffer, Queue, UserEvent, Finalize, Graph};
/// # let queue = Queue::new(&clgraph::best_device()?)?;
/// # let graph = Graph::new(&queue)?;
/// # let executable = graph.finalize(Finalize::new())?;
/// let ready = UserEvent::new(&queue)?;
/// let run = executable.submit_to(&queue).after(&ready).submit()?;
/// std::thread::spawn(move || ready.complete());
/// run.wait()?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[doc(alias = "clCreateUserEvent")]
#[must_use = "a user event that is dropped fails what waits for it"]
pub struct UserEvent(Arc<Inner>);

struct Inner {
    state: Arc<State>,
    pending: Mutex<Pending>,
}

struct Pending {
    /// Behind it is the driver's event. None when that is complete.
    gate: Option<Gate>,
    /// A submission is to complete it.
    promised: bool,
}

impl UserEvent {
    /// An event that is not complete.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver makes none.
    pub fn new(context: &impl InContext) -> Result<Self> {
        let context = context.context();
        let gate = Gate::unseen(context)?;
        let event = gate.event().clone();
        let state = Arc::new(State::new(context.clone(), None, Keep::default(), Stage::Deferred, event, None, None));
        let pending = Mutex::new(Pending { gate: Some(gate), promised: false });
        Ok(Self(Arc::new(Inner { state, pending })))
    }

    /// Completes it. What waits for it may run, and is enqueued on a thread of clgraph's own.
    ///
    /// # Errors
    /// [`SubmitError::UserEventEnded`] when it has ended already; [`SubmitError::UserEventGiven`] when a submission is to complete it;
    /// [`SubmitError::InsideNativeCommand`].
    #[doc(alias = "clSetUserEventStatus")]
    pub fn complete(&self) -> Result<()> {
        self.end(Ok(()))
    }

    /// Has it fail. What waits for it does not run, and fails with this error.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Finalize, Graph, Queue, UserEvent};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// # let executable = Graph::new(&queue)?.finalize(Finalize::new())?;
    /// let ready = UserEvent::new(&queue)?;
    /// let run = executable.submit_to(&queue).after(&ready).submit()?;
    /// ready.fail("no input")?;
    /// assert!(run.wait().unwrap_err().to_string().contains("no input"));
    /// # Ok(()) }
    /// ```
    pub fn fail(&self, error: impl fmt::Display) -> Result<()> {
        self.end(Err(SubmitError::UserEvent { text: error.to_string() }.into()))
    }

    fn end(&self, outcome: Result<()>) -> Result<()> {
        reentrancy::check_call()?;
        Ok(self.0.end(outcome, false)?)
    }

    /// What is told when it ends.
    pub(super) fn state(&self) -> &Arc<State> {
        &self.0.state
    }

    fn submission(&self) -> Submission {
        Submission::new(Arc::clone(&self.0.state), None)
    }

    /// Blocks until it has ended.
    ///
    /// # Errors
    /// How it failed: [`SubmitError::UserEvent`]; the error of the submission that was to complete it;
    /// [`SubmitError::UserEventDropped`]. [`SubmitError::InsideNativeCommand`] from a native command. A host task must
    /// not wait for one that its own submission is to complete: both would wait for ever.
    pub fn wait(&self) -> Result<()> {
        self.submission().wait()
    }

    /// Blocks until it has ended, or for a time at most.
    ///
    /// # Errors
    /// [`SubmitError::TimedOut`]; otherwise as [`wait`](Self::wait).
    pub fn wait_for(&self, limit: Duration) -> Result<()> {
        self.submission().wait_for(limit)
    }

    /// Whether it has ended, well or not.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.pending().gate.is_none()
    }

    /// The driver's event, for other libraries to wait for. It shows completion and not success.
    ///
    /// OpenCL objects that are dropped from now on are released when it has ended: commands may wait for it, and OpenCL leaves
    /// undefined what a release does then.
    #[must_use]
    pub fn event(&self) -> Event {
        if let Some(gate) = &mut self.0.pending().gate {
            gate.be_seen();
        }
        self.0.state.event.clone().into()
    }
}

impl Inner {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To the end, by whoever may: a submission that is to complete it, or nobody if there is one.
    fn end(&self, outcome: Result<()>, as_promised: bool) -> Result<(), SubmitError> {
        let mut pending = self.pending();
        if pending.promised != as_promised {
            return Err(SubmitError::UserEventGiven);
        }
        let gate = pending.gate.take().ok_or(SubmitError::UserEventEnded)?;
        drop(pending);
        self.state.finish_elsewhere(outcome);
        drop(gate);
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Unless it has ended.
        let _ = self.end(Err(SubmitError::UserEventDropped.into()), false);
    }
}

impl WaitFor for UserEvent {
    fn dependency(&self) -> Result<Dependency> {
        self.submission().dependency()
    }
}

impl InContext for UserEvent {
    fn context(&self) -> &Context {
        &self.0.state.context
    }
}

impl PartialEq for UserEvent {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for UserEvent {}

impl fmt::Debug for UserEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_done() { "UserEvent(done)" } else { "UserEvent(pending)" })
    }
}

/// A user event that a submission is to complete: nobody else does. One that is dropped before is the program's again.
pub(super) struct Promised(UserEvent);

impl Promised {
    /// Says no to one that has ended, or that is promised already.
    pub(super) fn new(event: &UserEvent) -> Result<Self, SubmitError> {
        let mut pending = event.0.pending();
        if pending.promised {
            return Err(SubmitError::UserEventGiven);
        }
        if pending.gate.is_none() {
            return Err(SubmitError::UserEventEnded);
        }
        pending.promised = true;
        Ok(Self(event.clone()))
    }

    pub(super) fn end(self, outcome: Result<(), Error>) {
        // Nobody else may.
        let _ = self.0.0.end(outcome, true);
    }
}

impl Drop for Promised {
    fn drop(&mut self) {
        self.0.0.pending().promised = false;
    }
}

impl fmt::Debug for Promised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
