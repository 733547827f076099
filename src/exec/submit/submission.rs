//! A submission: its progress, its outcome, and its results.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::cl::completion::event_reaper;
use crate::cl::memory::host::{Completed, Element};
use crate::cl::objects::event;
use crate::error::{RecordError, Result, SubmitError};
use crate::exec::control_node::{self, ControlHandle};
use crate::exec::executable::Executable;
use crate::exec::sub_graph::SubGraph;
use crate::exec::submit::bindings::{HeldResult, Results};
use crate::exec::submit::submission_state::{self, Stage, SubmissionState};
use crate::graph::{HostRead, ResultGuard};
use crate::handles::Port;
use crate::record::{self, Event, NodeEvent};
use crate::report::profile::Profile;

/// One run of an executable. Cheap to clone: clones are the same submission.
///
/// Dropping a submission does not stop the run; its results are then lost.
///
/// A submission keeps the memory for its results until its last handle is dropped, so drop submissions that are no
/// longer needed. [`Finalize::result_slots`](crate::Finalize::result_slots) sets a bound. A [`ResultGuard`] may outlive
/// its submission. [`Submit::submit_detached`](crate::Submit::submit_detached) makes a submission that holds no
/// results.
///
/// A program can block until a submission has ended ([`wait`](Self::wait), [`wait_for`](Self::wait_for)), query it
/// ([`progress`](Self::progress)), await it (it implements [`IntoFuture`]), or register a callback
/// ([`on_complete`](Self::on_complete)). All of these look at the last command only, because the queue's order has put
/// all other commands before it. If a driver does not report a failure of an earlier command there, clgraph does not
/// see the failure.
#[derive(Clone)]
pub struct Submission(Kind);

#[derive(Clone)]
enum Kind {
    /// With its results. When the last handle is dropped, their slots are free for other submissions.
    Run(Arc<SubmissionState>, Results),
    /// The queue recorded: the executable, or a host task, is a node, and nothing runs.
    Recorded(NodeEvent, Option<Executable>),
}

/// The progress of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Progress {
    /// Its first command has not started: it waits for events, for its queue, or for an earlier submission.
    Waiting,
    /// Its first command has started.
    Running,
    /// All its commands are complete.
    Complete,
    /// The submission failed; [`Submission::wait`] returns the error.
    Failed,
}

impl Submission {
    pub(in crate::exec) fn new(state: Arc<SubmissionState>, results: Results) -> Self {
        Self(Kind::Run(state, results))
    }

    /// Makes a submission that stands for a recorded node.
    pub(in crate::exec) fn recorded(event: NodeEvent, executable: Option<Executable>) -> Self {
        Self(Kind::Recorded(event, executable))
    }

    /// The run, or the node that the submission stands for.
    pub(in crate::exec) fn parts(&self) -> Result<&Arc<SubmissionState>, &NodeEvent> {
        match &self.0 {
            Kind::Run(state, _) => Ok(state),
            Kind::Recorded(event, _) => Err(event),
        }
    }

    pub(in crate::exec) fn state(&self, what: &'static str) -> Result<&Arc<SubmissionState>, RecordError> {
        self.parts().map_err(|event| RecordError::Recorded { node: event.node, what })
    }

    /// Returns the sub-graph that the submission stands for, if the queue recorded an executable. The sub-graph's reads
    /// and writes belong to submissions of the recorded graph.
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
    /// If the submission failed:
    /// - [`SubmitError::CommandFailed`] with the error that the driver reported;
    /// - [`SubmitError::DependencyFailed`] if an event that it waited for failed, so that it did not run;
    /// - [`SubmitError::Enqueue`] if it had to wait before it could be enqueued, and then enqueueing failed;
    /// - [`SubmitError::HostTask`], [`SubmitError::NativeCommand`], [`SubmitError::ExternalEvent`];
    /// - [`SubmitError::TooManyTurns`] of a loop with a bound, and [`SubmitError::Cancelled`].
    ///
    /// If it cannot be waited for:
    /// - [`RecordError::Recorded`] if the queue recorded;
    /// - [`SubmitError::OwnSubmission`] from a host task of the same submission;
    /// - [`SubmitError::OwnQueue`] from a host task of an earlier submission to the same in-order queue;
    /// - [`SubmitError::InsideNativeCommand`] from a native command;
    /// - [`SubmitError::Driver`] if the driver refuses the wait; the commands may still run.
    #[doc(alias = "clWaitForEvents")]
    pub fn wait(&self) -> Result<()> {
        self.state("waited for")?.wait()
    }

    /// Blocks until the submission has ended, but at most for a time. With a limit of more than a day it is
    /// [`wait`](Self::wait).
    ///
    /// # Errors
    /// [`SubmitError::TimedOut`] if the submission has not ended by then, which does not stop it; otherwise as
    /// [`wait`](Self::wait).
    pub fn wait_for(&self, limit: Duration) -> Result<()> {
        self.state("waited for")?.wait_for(limit)
    }

    /// Returns the progress of the submission, without waiting.
    ///
    /// # Errors
    /// [`RecordError::Recorded`] if the queue recorded; [`crate::DriverError`] if the driver refuses the query.
    pub fn progress(&self) -> Result<Progress> {
        Ok(match self.state("asked for its progress")?.stage()? {
            Stage::Deferred => Progress::Waiting,
            Stage::Staged(None) => Progress::Running,
            Stage::Staged(Some(first)) => match first.status()? {
                event::CommandStatus::Waiting => Progress::Waiting,
                _ => Progress::Running,
            },
            Stage::Done(Ok(())) => Progress::Complete,
            Stage::Done(Err(_)) => Progress::Failed,
            Stage::Enqueued { queue, first, last, .. } => {
                // A program that polls expects progress, so the queue must be flushed.
                submission_state::flush(&queue);
                match first.unwrap_or(last).status()? {
                    event::CommandStatus::Waiting => Progress::Waiting,
                    _ => Progress::Running,
                }
            }
        })
    }

    /// Returns whether the submission has ended, with success or not.
    ///
    /// # Errors
    /// [`RecordError::Recorded`] if the queue recorded; [`crate::DriverError`] if the driver refuses the query.
    pub fn is_done(&self) -> Result<bool> {
        Ok(matches!(self.progress()?, Progress::Complete | Progress::Failed))
    }

    /// Registers a callback. It is called once, when the submission has ended, with what [`wait`](Self::wait) would
    /// return.
    ///
    /// The callback runs on one of clgraph's threads, never on the caller's or a driver's. It should be short, because
    /// all other callbacks wait for it; a callback that waits for another callback waits for ever. It may submit, and
    /// may wait for submissions.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let executable = Graph::new(&queue)?.finalize(Finalize::new())?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// executable.submit(&queue)?.on_complete(move |outcome| sender.send(outcome.is_ok()).unwrap());
    /// assert_eq!(receiver.recv(), Ok(true));
    /// # Ok(()) }
    /// ```
    #[doc(alias = "clSetEventCallback")]
    pub fn on_complete(&self, callback: impl FnOnce(Result<()>) + Send + 'static) {
        match self.state("waited for") {
            Ok(state) => state.call_back(callback),
            Err(error) => event_reaper::call(move || callback(Err(error.into()))),
        }
    }

    /// Returns the data of a host read once the submission is complete: as many elements as the node reads. It can be
    /// called again.
    ///
    /// While the guard exists, no other submission uses its memory
    /// ([`Finalize::result_slots`](crate::Finalize::result_slots)). The guard may outlive the submission and the
    /// executable. Drop it when the data are no longer needed.
    ///
    /// # Errors
    /// [`SubmitError::NotComplete`]; [`SubmitError::NotAResult`]; [`SubmitError::NotRun`] for a read in a body of a branch
    /// or loop that had no turn; the error of the submission if it failed; [`RecordError::Recorded`];
    /// [`crate::DriverError`] if the driver refuses the query.
    pub fn get<T: Element>(&self, read: &HostRead<T>) -> Result<ResultGuard<T>> {
        let node = read.node();
        let part = Port { node, index: read.part() };
        let state = self.state("asked for results")?;
        let results = if let Kind::Run(_, Some(results)) = &self.0 { &**results } else { &[] };
        let found = results.binary_search_by_key(&part, |held| held.port);
        let HeldResult { flow, slot, .. } = &results[found.map_err(|_| SubmitError::NotAResult { node })?];
        match state.stage()? {
            Stage::Done(outcome) => outcome?,
            Stage::Deferred | Stage::Staged(_) | Stage::Enqueued { .. } => {
                return Err(SubmitError::NotComplete.into());
            }
        }
        if *flow > 0 && !state.has_run(*flow as usize) {
            return Err(SubmitError::NotRun { node }.into());
        }
        Ok(ResultGuard::new(Arc::clone(slot), Completed::witnessed()))
    }

    /// Stops the submission at the next decision of a branch or loop: it fails with [`SubmitError::Cancelled`]. If it still
    /// waits on the host, for an event that may fail or for a submission that is not enqueued yet, it never begins, and ends
    /// when that wait ends. Behind work of the device, what comes before its first decision is enqueued already.
    ///
    /// What is enqueued already still runs, so memory is as the last whole turn left it, of the loop that stops; loops
    /// around it end within their turn. A submission that has no branch or loop, or that makes no decision any more, is not
    /// stopped, and ends as it would have. A loop whose turns are unrolled makes none once it is enqueued. May be called from
    /// any thread, and again.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Error, Finalize, Graph, Queue, SubmitError};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let (on, rounds) = (Buffer::from_slice(&queue, &[1_u32])?, Buffer::<u32>::new(&queue, 1)?);
    /// let body = Graph::new(&queue)?;
    /// body.fill(&rounds, 7).add()?;
    /// let graph = Graph::new(&queue)?;
    /// graph.repeat_while(&on, &body.finalize(Finalize::new())?).add()?; // for ever
    /// let run = graph.finalize(Finalize::new())?.submit(&queue)?;
    /// run.cancel()?;
    /// assert!(matches!(run.wait(), Err(Error::Submit(SubmitError::Cancelled { .. }))));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`RecordError::Recorded`] if the queue recorded.
    pub fn cancel(&self) -> Result<()> {
        self.state("cancelled")?.cancel();
        Ok(())
    }

    /// Returns how many turns a loop has begun so far; for a branch, how often it began a body. Nothing is waited for.
    ///
    /// A loop that is in a body of another one has all turns together.
    ///
    /// # Errors
    /// [`SubmitError::NotAControl`] if the executable of the submission has no such branch or loop;
    /// [`RecordError::Recorded`] if the queue recorded.
    pub fn turns(&self, of: &impl ControlHandle) -> Result<u64> {
        let port = control_node::port(of);
        let turns = self.state("asked for its turns")?.turns(port);
        Ok(turns.ok_or(SubmitError::NotAControl { node: port.node })?)
    }

    /// Returns when the submission and its nodes ran. Further calls return the same times. [`Profile`] has an example.
    ///
    /// # Errors
    /// [`SubmitError::NotProfiled`] if the executable was finalized without
    /// [`Finalize::profiling`](crate::Finalize::profiling); [`SubmitError::NotComplete`]; the error of the submission
    /// if it failed; [`RecordError::Recorded`]; [`crate::DriverError`] if the driver does not report the times.
    #[doc(alias = "clGetEventProfilingInfo")]
    pub fn profile(&self) -> Result<Profile> {
        let state = self.state("asked for its profile")?;
        let log = state.log().ok_or(SubmitError::NotProfiled)?;
        match state.stage()? {
            Stage::Done(outcome) => outcome?,
            _ => return Err(SubmitError::NotComplete.into()),
        }
        Ok(log.read()?)
    }

    /// Returns a driver's event that is complete when the submission has ended, for other libraries to wait for. If the
    /// queue recorded, it is the event of a recorded command.
    ///
    /// The event shows that the submission has ended, not that it succeeded: if the submission failed because of
    /// something that it waited for, the event still becomes complete. clgraph flushes the queue now; whoever waits for
    /// the event flushes later.
    ///
    /// # Errors
    /// [`crate::DriverError`] if the driver refuses to flush the queue.
    pub fn event(&self) -> Result<Event> {
        let state = match self.parts() {
            Ok(state) => state,
            Err(node) => return Ok(Event(record::EventKind::Node(Box::new(node.clone())))),
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
        let stage = match state.known_stage() {
            Stage::Deferred => "deferred".to_owned(),
            Stage::Staged(_) => "running".to_owned(),
            Stage::Enqueued { .. } => "enqueued".to_owned(),
            Stage::Done(outcome) => format!("done: {outcome:?}"),
        };
        write!(f, "Submission({stage})")
    }
}
