//! Submitting: what is checked, and what a submission waits for.
//!
//! Most submissions are enqueued at once, by the [`Lane`](super::lane::Lane) of the executable. One that waits for
//! something that may still fail (a user event, or another submission that does) is deferred: see [`deferred`].

use std::sync::Arc;

use super::deferred::{self, Blocker};
use super::external::{self, GivenEvents};
use super::lane::Accepted;
use super::profile::Log;
use super::state::{Stage, State};
use super::submission::Submission;
use super::walk::{Hands, Inputs};
use super::{Executable, Finalize, Inner};
use crate::cl::enqueue::Waits;
use crate::cl::event::{COMMAND, DriverEvent, Progress};
use crate::cl::host::{Element, HostData};
use crate::cl::queue::DriverQueue;
use crate::cl::reentrancy;
use crate::error::{BuildError, DriverError, Error, Fault, RecordError, Result, SubmitError};
use crate::graph::request::Request;
use crate::graph::tape::Order;
use crate::graph::{After, Graph, HostWrite, Node, Part};
use crate::record::{self, Event, NodeEvent, Queue, QueueState};

/// A submission to be made. See [`Executable::submit_to`].
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// # use clgraph::{Buffer, Finalize, Graph, Queue, UserEvent};
/// # let queue = Queue::new(&clgraph::best_device()?)?;
/// let (graph, buffer) = (Graph::new(&queue)?, Buffer::<u32>::new(&queue, 4)?);
/// let input = graph.write(&buffer, [0; 4]).add()?;
/// let executable = graph.finalize(Finalize::new())?;
///
/// let ready = UserEvent::new(&queue)?;
/// let run = executable.submit_to(&queue).after(&ready).with(&input, [1, 2, 3, 4]).submit()?;
/// assert!(!run.is_done()?);
/// ready.complete()?;
/// run.wait()?;
///
/// for _ in 0..10 {
///     executable.submit_to(&queue).submit_detached()?; // no event, no results
/// }
/// queue.finish()?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "nothing is submitted until `submit` or `submit_detached` is called"]
pub struct Submit<'a> {
    pub(super) exec: &'a Executable,
    queue: &'a Queue,
    waits: Vec<Result<Dependency>>,
    inputs: Result<Inputs>,
    pub(super) events: Result<GivenEvents>,
}

/// What a submission can wait for: a [`Submission`], an [`Event`], a [`UserEvent`](crate::UserEvent), or an `opencl3` event. It
/// cannot be implemented elsewhere.
pub trait WaitFor: sealed::WaitFor {
    /// What to wait for.
    ///
    /// # Errors
    /// [`DriverError`] when the driver refuses to retain an event.
    fn dependency(&self) -> Result<Dependency>;
}

mod sealed {
    pub trait WaitFor {}
    impl WaitFor for super::Submission {}
    impl WaitFor for super::Event {}
    impl WaitFor for crate::UserEvent {}
    impl WaitFor for opencl3::event::Event {}
}

/// Something to wait for, as [`WaitFor`] gives it.
#[must_use]
#[derive(Clone, Debug)]
pub struct Dependency(Kind);

#[derive(Clone)]
enum Kind {
    Event(DriverEvent),
    Submission(Arc<State>),
    /// Of work recorded into a graph.
    Node(NodeEvent),
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Event(event) => event.fmt(f),
            Self::Submission(state) => Submission::new(Arc::clone(state), None).fmt(f),
            Self::Node(event) => event.fmt(f),
        }
    }
}

impl Dependency {
    /// The submission, or user event, whose end it is.
    pub(super) fn state(&self) -> Option<Arc<State>> {
        if let Kind::Submission(state) = &self.0 { Some(Arc::clone(state)) } else { None }
    }
}

impl WaitFor for Submission {
    fn dependency(&self) -> Result<Dependency> {
        Ok(Dependency(match self.parts() {
            Ok(state) => Kind::Submission(Arc::clone(state)),
            Err(node) => Kind::Node(node.clone()),
        }))
    }
}

impl WaitFor for Event {
    fn dependency(&self) -> Result<Dependency> {
        Ok(Dependency(match &self.0 {
            record::Kind::Driver(event) => Kind::Event(event.clone()),
            record::Kind::Node(node) => Kind::Node((**node).clone()),
        }))
    }
}

impl WaitFor for opencl3::event::Event {
    fn dependency(&self) -> Result<Dependency> {
        Event::from_opencl3(self)?.dependency()
    }
}

impl<'a> Submit<'a> {
    pub(super) fn new(exec: &'a Executable, queue: &'a Queue) -> Self {
        Self { exec, queue, waits: Vec::new(), inputs: Ok(Vec::new()), events: Ok(Vec::new()) }
    }

    /// Lets the submission wait for something, besides what the order of its queue says. May be called repeatedly: it waits
    /// for all. What is wrong with an event is told by [`submit`](Self::submit).
    ///
    /// A [`Submission`] that is enqueued costs nothing to wait for. An event of other work that is not complete yet may
    /// still fail, and drivers crash, hang or run the dependents then: so clgraph waits for it on a thread of its own,
    /// and enqueues the commands after success. If it fails, the submission fails and does not run.
    ///
    /// An event of a queue that nobody flushes may never complete: flushing queues of one's own is the caller's part.
    pub fn after(mut self, event: &impl WaitFor) -> Self {
        self.waits.push(event.dependency());
        self
    }

    /// Lets the submission wait for several.
    pub fn after_all<'e, E: WaitFor + 'e>(mut self, events: impl IntoIterator<Item = &'e E>) -> Self {
        self.waits.extend(events.into_iter().map(WaitFor::dependency));
        self
    }

    /// Gives a host write other data, for this submission only: as many elements as the node writes. Given twice, the
    /// last one counts. What is wrong with it is told by [`submit`](Self::submit).
    pub fn with<T: Element>(mut self, input: &HostWrite<T>, data: impl Into<HostData<T>>) -> Self {
        let (inner, node) = (&*self.exec.0, input.node());
        let bytes = data.into().into_bytes();
        let given = bytes.len();
        let checked = match inner.ports.input(Part { node, index: input.part() }) {
            Ok((_, expected)) if expected != given => Err(SubmitError::InputSize { node, expected, given }),
            Ok((id, _)) => Ok(id),
            Err(error) => Err(error),
        };
        // The first mistake is the one that is told.
        if let Ok(inputs) = &mut self.inputs {
            match checked {
                Ok(id) => inputs.push((id, bytes)),
                Err(error) => self.inputs = Err(error.into()),
            }
        }
        self
    }

    /// Submits. Does not block.
    ///
    /// While the queue records, the executable becomes a sub-graph of the graph, and the submission stands for its node:
    /// [`Submission::sub_graph`].
    ///
    /// # Errors
    /// Nothing was enqueued:
    /// - the queue: [`SubmitError::OtherQueue`]; while it records [`RecordError::NotRecordable`] with input or events
    ///   of one submission, and what [`Queue::enqueue_copy_buffer`] says about recording;
    /// - what is waited for: [`SubmitError::OtherContext`], [`SubmitError::EventFailed`];
    /// - input and results: [`SubmitError::NotAnInput`], [`SubmitError::InputSize`], [`SubmitError::NoSlot`],
    ///   [`SubmitError::HostMemory`]; [`MemoryError::HostHasIt`](crate::MemoryError::HostHasIt) while the host has some
    ///   of its memory;
    /// - external events: [`SubmitError::EventMissing`], [`SubmitError::EventTwice`], [`SubmitError::NotAnEvent`],
    ///   [`SubmitError::EventContext`], [`SubmitError::ExternalEvent`], [`SubmitError::UserEventGiven`],
    ///   [`SubmitError::UserEventEnded`], [`SubmitError::OwnEvent`];
    /// - [`SubmitError::InsideNativeCommand`]; [`SubmitError::Driver`], [`DriverError`].
    ///
    /// Something was: [`SubmitError::Enqueue`], [`SubmitError::NativeCommand`]. What was enqueued before will run, and
    /// later submissions wait for it.
    pub fn submit(self) -> Result<Submission> {
        let submission = self.go(true)?;
        Ok(submission.ok_or(DriverError::faulty("clEnqueueMarkerWithWaitList", Fault::NoEvent))?)
    }

    /// Submits, and gives nothing to wait for: the cheapest form, which needs no event of the driver,
    /// but where it is timed for the automatic path or goes over several queues.
    ///
    /// The queue orders it, and it orders later submissions; [`Queue::finish`] waits for it. Results are lost, and so
    /// is failure, but for that of one that had to wait before it could be enqueued, for an event or the host, which is
    /// logged. When the executable is first submitted to another queue afterwards, it waits for all that this queue
    /// holds then; from then on events are taken here too.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_detached(self) -> Result<()> {
        self.go(false).map(|_| ())
    }

    /// Has a recording queue, or one that joins a recording, take the executable down.
    fn record_if(&self) -> Result<Option<Submission>> {
        let node = |wait: &Result<Dependency>| matches!(wait, Ok(Dependency(Kind::Node(_))));
        if self.queue.state() == QueueState::Executing && !self.waits.iter().any(node) {
            return Ok(None);
        }
        let events = self.waits.iter().map(|wait| match &wait.as_ref().map_err(Clone::clone)?.0 {
            Kind::Event(event) => Ok(event.clone().into()),
            Kind::Submission(state) => Ok(state.event.clone().into()),
            Kind::Node(event) => Ok(Event(record::Kind::Node(Box::new(event.clone())))),
        });
        let events: Vec<Event> = events.collect::<Result<_>>()?;
        let not = |what, instead| Err(RecordError::NotRecordable { what, instead }.into());
        if !self.inputs.as_ref().map_err(Clone::clone)?.is_empty() {
            let instead = "a recording runs any number of times: give it to the submission of the recorded graph, by \
                           `SubGraph::write`";
            return not("input for one submission", instead);
        }
        if !self.events.as_ref().map_err(Clone::clone)?.is_empty() {
            let instead = "a recording runs any number of times: give them to the submission of the recorded graph, by \
                           `SubGraph::wait_event` and `signal_event`";
            return not("events for nodes of one submission", instead);
        }
        let events: Vec<&Event> = events.iter().collect();
        let event = self.queue.record_if(&self.exec.as_request(), Order::Plain, &events)?;
        Ok(event.and_then(|event| match event.0 {
            record::Kind::Node(node) => Some(Submission::recorded(*node, Some(self.exec.clone()))),
            record::Kind::Driver(_) => None,
        }))
    }

    fn go(self, observed: bool) -> Result<Option<Submission>> {
        reentrancy::check_call()?;
        let log = self.exec.0.names.as_ref().filter(|_| observed).map(|names| Arc::new(Log::new(names)));
        let exec = &self.exec.0;
        let other = |what| SubmitError::OtherQueue { what, device: exec.device.name().to_owned() };
        if self.queue.context() != &exec.context {
            return Err(other("context").into());
        }
        if self.queue.device() != &exec.device {
            return Err(other("device").into());
        }
        if let Some(recorded) = self.record_if()? {
            return Ok(Some(recorded));
        }
        let mut inputs = self.inputs?;
        // Stable, so that the last one for a node stays behind the others.
        inputs.sort_by_key(|(id, _)| *id);
        let own = external::own_event(self.events.as_deref().unwrap_or_default(), &self.waits);
        own.map_or(Ok(()), |node| Err(SubmitError::OwnEvent { node }))?;
        let Sorted { waits, blockers } = sort(exec, self.waits)?;
        let events = external::take(exec, self.events?)?;
        let mut lane = exec.lane();
        let accepted = lane.accept(
            exec,
            self.queue.driver(),
            waits,
            blockers,
            Hands { slots: Vec::new(), inputs, events, log },
            observed,
        );
        let leftovers = lane.leftovers();
        drop(lane);
        leftovers.settle(exec);
        match accepted? {
            Accepted::Enqueued(submission) => Ok(submission),
            Accepted::Deferred { deferred, results, blockers } => {
                let submission = deferred.submission(results);
                deferred::wait_for(&deferred, blockers);
                if !observed {
                    let device = exec.device.clone();
                    submission.on_complete(move |outcome| {
                        if let Err(error) = outcome {
                            log::error!("a detached submission to device `{}` failed: {error}", device.name());
                        }
                    });
                }
                Ok(Some(submission))
            }
        }
    }
}

/// What a submission waits for, by how it is waited for.
struct Sorted {
    /// In the driver's wait list.
    waits: Waits,
    /// By the watcher.
    blockers: Vec<Blocker>,
}

/// How something stands that a submission is to wait for.
pub(super) enum Standing {
    Complete,
    Failed(Error),
    /// It is of another context.
    Elsewhere,
    /// A submission whose last command is this one.
    Enqueued {
        queue: DriverQueue,
        last: DriverEvent,
        state: Arc<State>,
    },
    /// It may still fail, and so may what it waits for, of which nothing can be asked.
    Pending(Blocker),
    /// It stands for a node.
    Recorded(Node),
}

/// Asks how a dependency stands.
pub(super) fn look(exec: &Inner, dependency: Dependency) -> Result<Standing> {
    Ok(match dependency.0 {
        Kind::Node(event) => Standing::Recorded(event.node),
        Kind::Event(event) => {
            if !event.is_of(&exec.context)? {
                return Ok(Standing::Elsewhere);
            }
            match event.progress()? {
                Progress::Complete => Standing::Complete,
                Progress::Failed(status) => Standing::Failed(DriverError::new(COMMAND, status).into()),
                _ => Standing::Pending(Blocker::Event(event)),
            }
        }
        Kind::Submission(state) if state.context != exec.context => Standing::Elsewhere,
        Kind::Submission(state) => match state.stage()? {
            Stage::Done(Ok(())) => Standing::Complete,
            Stage::Done(Err(cause)) => Standing::Failed(cause),
            Stage::Enqueued { queue, last, .. } if last.is_sure() => Standing::Enqueued { queue, last, state },
            Stage::Enqueued { .. } => Standing::Pending(Blocker::Success(state)),
            Stage::Deferred | Stage::Staged(_) => Standing::Pending(Blocker::Success(state)),
        },
    })
}

/// Asks each event how it stands: what is complete is dropped, what has failed is an error.
fn sort(exec: &Inner, dependencies: Vec<Result<Dependency>>) -> Result<Sorted> {
    let mut sorted = Sorted { waits: Waits::NONE, blockers: Vec::new() };
    if dependencies.is_empty() {
        return Ok(sorted);
    }
    for (index, dependency) in dependencies.into_iter().enumerate() {
        match look(exec, dependency?)? {
            // Seen before, by whoever asked whether to record.
            Standing::Recorded(node) => return Err(RecordError::Ended { index, node }.into()),
            Standing::Elsewhere => return Err(SubmitError::OtherContext { index }.into()),
            Standing::Failed(cause) => {
                return Err(SubmitError::EventFailed { index, cause: Box::new(cause) }.into());
            }
            Standing::Complete => {}
            Standing::Enqueued { queue, last, .. } => {
                queue.flush()?;
                sorted.waits.push(last);
            }
            Standing::Pending(blocker) => sorted.blockers.push(blocker),
        }
    }
    Ok(sorted)
}

/// Has a queue take down a node of its own, or submits it as a graph of one.
pub(super) fn submit_alone<R: Request + Clone>(queue: &Queue, request: R, waits: &[&Event]) -> Result<Submission> {
    let event = queue.record_if(&request, Order::Plain, waits)?;
    if let Some(record::Kind::Node(node)) = event.map(|event| event.0) {
        return Ok(Submission::recorded(*node, None));
    }
    let graph = Graph::new(queue)?;
    // Whoever gave it to the queue knows of no node.
    request.check(&graph.target()).map_err(|cause| BuildError::new(request.subject(), cause))?;
    graph.insert(request, &After::default())?;
    let executable = graph.finalize(Finalize::new())?;
    executable.submit_to(queue).after_all(waits.iter().copied()).submit()
}
