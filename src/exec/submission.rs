//! A submission: where it has got to, how it ended, and what it read.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::profile::Profile;
use super::state::{self, Stage, State};
use super::{Executable, SubGraph};
use crate::cl::event;
use crate::cl::host::{Completed, Element, Slot};
use crate::cl::watch;
use crate::error::{RecordError, Result, SubmitError};
use crate::graph::{HostRead, Part, ResultGuard};
use crate::record::{self, Event, NodeEvent};

/// One run of an executable. Cheap to clone: clones are the same submission.
///
/// Dropping it does not stop the run; its results are then gone.
///
/// Until the last handle is dropped it keeps the memory for its results: drop submissions that nobody asks any more.
/// [`Finalize::result_slots`](crate::Finalize::result_slots) sets a bound. A [`ResultGuard`] may outlive it.
/// [`Submit::submit_detached`](crate::Submit::submit_detached) holds none.
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
    /// [`SubmitError::OwnSubmission`] from a host task of its own; [`SubmitError::OwnQueue`] from one of a submission that it
    /// is behind; [`SubmitError::InsideNativeCommand`] from a native
    /// command; [`SubmitError::Driver`] when the driver refuses the wait, and the commands may run still.
    #[doc(alias = "clWaitForEvents")]
    pub fn wait(&self) -> Result<()> {
        self.state("waited for")?.wait()
    }

    /// Blocks until the submission has ended, or for a time at most.
    ///
    /// # Errors
    /// [`SubmitError::TimedOut`] when it has not ended by then, which does not stop it; otherwise as
    /// [`wait`](Self::wait).
    pub fn wait_for(&self, limit: Duration) -> Result<()> {
        self.state("waited for")?.wait_for(limit)
    }

    /// Where the submission has got to, without waiting.
    ///
    /// # Errors
    /// [`RecordError::Recorded`] of a submission to a queue that records; [`crate::DriverError`] when the driver refuses to
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
                state::flush(&queue);
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
    /// [`RecordError::Recorded`] of a submission to a queue that records; [`crate::DriverError`] when the driver refuses to
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
            Ok(state) => state.call_back(callback),
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
    /// [`crate::DriverError`] when the driver refuses to tell.
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
    /// [`SubmitError::NotComplete`]; how the submission failed; [`RecordError::Recorded`]; [`crate::DriverError`] when the
    /// driver does not tell.
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

    /// A driver's event that is complete when the submission has ended, for other libraries to wait for; or the event of a
    /// recorded command, where the queue recorded.
    ///
    /// It shows completion and not success: a submission that failed because of what it waited for ends with a
    /// complete event. Nobody flushes for it but its taker.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses to flush the queue.
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
        let stage = match state.known_stage() {
            Stage::Deferred => "deferred".to_owned(),
            Stage::Staged(_) => "under way".to_owned(),
            Stage::Enqueued { .. } => "enqueued".to_owned(),
            Stage::Done(outcome) => format!("done: {outcome:?}"),
        };
        write!(f, "Submission({stage})")
    }
}
