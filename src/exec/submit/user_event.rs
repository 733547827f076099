//! User events: events that the program completes.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::cl::completion::gates::{self, GateId};
use crate::cl::completion::reentrancy;
use crate::cl::objects::context::{Context, InContext};
use crate::cl::objects::event::Gate;
use crate::error::{Error, Result, SubmitError};
use crate::exec::submit::submission_state::{RetainedMemory, Stage, SubmissionState};
use crate::record::Event;

/// An event that the program completes, or that a submission completes for it
/// ([`Submit::with_signal`](crate::Submit::with_signal)). Cheap to clone: clones are the same event.
///
/// Submissions can wait for a user event ([`Submit::after`](crate::Submit::after)), and so can nodes of submissions
/// ([`Submit::with_event`](crate::Submit::with_event)) and the host. If the event fails, everything that waits for it
/// fails too. The driver is not told about the failure: the `cl_event` becomes complete, because drivers crash or hang
/// after user events that fail. If the last clone is dropped before the event has ended, the event fails with
/// [`SubmitError::UserEventDropped`]. A submission that is to complete the event keeps a clone.
///
/// A user event has no callback and is no future. For these, submit an empty graph that waits for the event.
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
    state: Arc<SubmissionState>,
    pending: Mutex<Pending>,
}

struct Pending {
    /// The gate, which owns the driver's event. None after the event is complete.
    gate: Option<Gate>,
    /// Whether a submission is to complete the event.
    reserved: bool,
}

impl UserEvent {
    /// Makes an event that is not complete.
    ///
    /// # Errors
    /// [`crate::DriverError`] if the driver cannot make an event.
    pub fn new(context: &impl InContext) -> Result<Self> {
        let context = context.context();
        let (gate, id) = Gate::of_program(context)?;
        let event = gate.event().clone();
        let state = Arc::new(SubmissionState::new(
            context.clone(),
            None,
            RetainedMemory::default(),
            Stage::Deferred,
            event,
            None,
            None,
            Some(id),
            None,
        ));
        let pending = Mutex::new(Pending { gate: Some(gate), reserved: false });
        Ok(Self(Arc::new(Inner { state, pending })))
    }

    /// Completes the event. The submissions that wait for it are enqueued on a thread of clgraph's own.
    ///
    /// # Errors
    /// [`SubmitError::UserEventEnded`] if the event has ended already; [`SubmitError::UserEventInUse`] if a submission
    /// is to complete it; [`SubmitError::InsideNativeCommand`].
    #[doc(alias = "clSetUserEventStatus")]
    pub fn complete(&self) -> Result<()> {
        self.end(Ok(()))
    }

    /// Fails the event. The submissions that wait for it do not run, and fail with this error.
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

    /// Returns the state that is notified when the event ends.
    pub(in crate::exec) fn state(&self) -> &Arc<SubmissionState> {
        &self.0.state
    }

    /// Blocks until the event has ended.
    ///
    /// For a host task that begins to wait, a submission counts as completing its events at its end, although it may
    /// complete them earlier: so a host task must not wait for an event of a submission of which another part waits for
    /// that task. What would close a circle after the wait has begun is refused if the event were completed too late:
    /// [`SubmitError::UserEventAwaited`].
    ///
    /// # Errors
    /// [`SubmitError::UserEvent`] if the event failed; the error of the submission that was to complete it;
    /// [`SubmitError::UserEventDropped`]; [`SubmitError::InsideNativeCommand`] from a native command. Inside a host task also
    /// [`SubmitError::OwnSubmission`], if the event is to be completed by the task's own submission or by one that comes
    /// after it.
    pub fn wait(&self) -> Result<()> {
        self.0.state.wait()
    }

    /// Blocks until the event has ended, but at most for a time. With a limit of more than a day it is [`wait`](Self::wait).
    ///
    /// # Errors
    /// [`SubmitError::TimedOut`]; otherwise as [`wait`](Self::wait).
    pub fn wait_for(&self, limit: Duration) -> Result<()> {
        self.0.state.wait_for(limit)
    }

    /// Returns whether the event has ended, with success or not.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.pending().gate.is_none()
    }

    /// Returns the driver's event, for other libraries to wait for. The event shows that the user event has ended, not
    /// that it succeeded.
    ///
    /// OpenCL objects that are dropped from now on are released only after the event has ended. Foreign commands may
    /// wait for it, and OpenCL does not define what the release of an object does while a user event is incomplete.
    #[must_use]
    pub fn event(&self) -> Event {
        if let Some(gate) = &mut self.0.pending().gate {
            gate.register();
        }
        // Whoever has the handle can set its status.
        self.0.state.event.foreign().into()
    }
}

impl Inner {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the event. If a submission has reserved it, only that submission may end it (`as_reserved`).
    fn end(&self, outcome: Result<()>, as_reserved: bool) -> Result<(), SubmitError> {
        let mut pending = self.pending();
        if pending.reserved != as_reserved {
            return Err(SubmitError::UserEventInUse);
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
        // An event that has ended already stays as it is.
        let _ = self.end(Err(SubmitError::UserEventDropped.into()), false);
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

/// A user event that only one submission may complete. If this is dropped before, the program may complete the event
/// again.
pub(in crate::exec) struct ReservedUserEvent(UserEvent);

impl ReservedUserEvent {
    /// Returns an error if the event has ended, or if another submission is to complete it.
    pub(in crate::exec) fn new(event: &UserEvent) -> Result<Self, SubmitError> {
        let mut pending = event.0.pending();
        if pending.reserved {
            return Err(SubmitError::UserEventInUse);
        }
        if pending.gate.is_none() {
            return Err(SubmitError::UserEventEnded);
        }
        pending.reserved = true;
        Ok(Self(event.clone()))
    }

    pub(in crate::exec) fn gate(&self) -> Option<GateId> {
        self.0.0.state.gate()
    }

    pub(in crate::exec) fn end(self, outcome: Result<(), Error>) {
        // No other code may end the event, so there is no error to report.
        let _ = self.0.0.end(outcome, true);
    }
}

impl Drop for ReservedUserEvent {
    fn drop(&mut self) {
        // In one step: the next submission that completes the event may register it at once.
        let mut pending = self.0.0.pending();
        pending.reserved = false;
        self.0.0.state.gate().into_iter().for_each(gates::open);
    }
}

impl fmt::Debug for ReservedUserEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
