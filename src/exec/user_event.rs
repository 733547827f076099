//! Events that the program completes.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::inside;
use super::submission::{Keep, Stage, State, Submission};
use super::submit::{Dependency, WaitFor};
use crate::cl::context::{Context, InContext};
use crate::cl::event::Gate;
use crate::cl::watch;
use crate::error::{Error, Result, SubmitError};
use crate::record::Event;

/// An event that the program completes, or a submission does for it ([`Submit::with_signal`](crate::Submit::with_signal)). Cheap
/// to clone: clones are the same event.
///
/// Submissions can wait for it ([`Submit::after`](crate::Submit::after)), nodes of them ([`Submit::with_event`](crate::Submit::with_event)), and
/// the host. When it fails, so does what waits for it; but no driver hears of that: its `cl_event` becomes complete all the same, because
/// drivers crash or hang over user events that fail. One that is dropped fails.
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
pub struct UserEvent(Arc<Inner>);

struct Inner {
    state: Arc<State>,
    /// Behind it is the driver's event. None when that is complete.
    gate: Mutex<Option<Gate>>,
    /// A submission is to complete it.
    promised: AtomicBool,
}

impl UserEvent {
    /// An event that is not complete.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver makes none.
    pub fn new(context: &impl InContext) -> Result<Self> {
        let context = context.context();
        let gate = Gate::closed(context)?;
        let (keep, event) = (Arc::new(Keep::default()), gate.event().clone());
        let state = Arc::new(State::new(context.clone(), keep, Stage::Deferred, event));
        Ok(Self(Arc::new(Inner { state, gate: Mutex::new(Some(gate)), promised: AtomicBool::new(false) })))
    }

    /// Completes it. What waits for it may run.
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
    pub fn fail(&self, error: impl fmt::Display) -> Result<()> {
        self.end(Err(SubmitError::UserEvent { text: error.to_string() }.into()))
    }

    fn end(&self, outcome: Result<()>) -> Result<()> {
        inside::check_call()?;
        if self.0.promised.load(Ordering::Relaxed) {
            return Err(SubmitError::UserEventGiven.into());
        }
        if self.0.end(outcome) { Ok(()) } else { Err(SubmitError::UserEventEnded.into()) }
    }

    fn submission(&self) -> Submission {
        Submission::new(Arc::clone(&self.0.state), None)
    }

    /// Blocks until it has ended.
    ///
    /// # Errors
    /// How it failed: [`SubmitError::UserEvent`]; the error of the submission that was to complete it;
    /// [`SubmitError::UserEventDropped`].
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
        self.0.gate.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// The driver's event, for other libraries to wait for. It shows completion and not success.
    #[must_use]
    pub fn event(&self) -> Event {
        self.0.state.event.clone().into()
    }
}

impl Inner {
    /// To the end, unless it has come to one already.
    fn end(&self, outcome: Result<()>) -> bool {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(gate) = gate else { return false };
        let state = Arc::clone(&self.state);
        let end = move || {
            state.finish(outcome);
            drop(gate);
        };
        // What waits for it may take locks that are held.
        if inside::check_call().is_ok() {
            end()
        } else {
            watch::call(end)
        }
        true
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end(Err(SubmitError::UserEventDropped.into()));
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
        if event.0.promised.swap(true, Ordering::Relaxed) {
            return Err(SubmitError::UserEventGiven);
        }
        let promised = Self(event.clone());
        if event.is_done() { Err(SubmitError::UserEventEnded) } else { Ok(promised) }
    }

    pub(super) fn end(self, outcome: Result<(), Error>) {
        self.0.0.end(outcome);
    }
}

impl Drop for Promised {
    fn drop(&mut self) {
        self.0.0.promised.store(false, Ordering::Relaxed);
    }
}

impl fmt::Debug for Promised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
