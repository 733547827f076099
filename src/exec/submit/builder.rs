//! Submitting: what is checked, and what a submission waits for.
//!
//! Most submissions are enqueued at once, by the executable's
//! [`ExecutableState`](crate::exec::submit::executable_state::ExecutableState). A submission that waits for something
//! that may still fail (a user event, or another submission that waits for one) is deferred: see
//! [`deferred`](crate::exec::submit::deferred).

use std::sync::Arc;

use crate::cl::commands::enqueue::Waits;
use crate::cl::completion::reentrancy;
use crate::cl::completion::user_code::log_later;
use crate::cl::memory::host::{Element, HostData};
use crate::cl::objects::event::{COMMAND, CommandStatus, DriverEvent};
use crate::cl::objects::queue::DriverQueue;
use crate::error::{BuildError, DriverError, DriverFault, Error, RecordError, Result, SubmitError};
use crate::exec::submit::blocker::Blocker;
use crate::exec::submit::executable_state::Accepted;
use crate::exec::submit::external_events::{self, SuppliedEvents};
use crate::exec::submit::interpreter::{Inputs, SubmissionBindings};
use crate::exec::submit::submission::Submission;
use crate::exec::submit::submission_state::{Stage, SubmissionState};
use crate::exec::{Executable, Finalize, Inner};
use crate::graph::nodes::request::Request;
use crate::graph::recorder::Order;
use crate::graph::{After, Graph, HostWrite};
use crate::handles::{Node, Port};
use crate::record::{self, Event, NodeEvent, Queue, QueueState};
use crate::report::profile::Log;

/// Builds a submission. See [`Executable::submit_to`].
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
    pub(in crate::exec) exec: &'a Executable,
    queue: &'a Queue,
    waits: Vec<Result<Dependency>>,
    inputs: Result<Inputs>,
    pub(in crate::exec) events: Result<SuppliedEvents>,
}

/// Something that a submission can wait for: a [`Submission`], an [`Event`], a [`UserEvent`](crate::UserEvent), or an
/// `opencl3` event. The trait is sealed: other crates cannot implement it.
pub trait WaitFor: sealed::WaitFor {
    /// Returns what to wait for.
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

/// What a submission is to wait for, as [`WaitFor`] returns it.
#[must_use]
#[derive(Clone, Debug)]
pub struct Dependency(Kind);

#[derive(Clone)]
enum Kind {
    Event(DriverEvent),
    Submission(Arc<SubmissionState>),
    /// The event of work that was recorded into a graph.
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
    /// The submission, or the user event, whose end is waited for.
    pub(in crate::exec) fn state(&self) -> Option<Arc<SubmissionState>> {
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
            record::EventKind::Driver(event) => Kind::Event(event.clone()),
            record::EventKind::Node(node) => Kind::Node((**node).clone()),
        }))
    }
}

impl WaitFor for opencl3::event::Event {
    fn dependency(&self) -> Result<Dependency> {
        Event::from_opencl3(self)?.dependency()
    }
}

impl<'a> Submit<'a> {
    pub(in crate::exec) fn new(exec: &'a Executable, queue: &'a Queue) -> Self {
        Self { exec, queue, waits: Vec::new(), inputs: Ok(Vec::new()), events: Ok(Vec::new()) }
    }

    /// Adds an event or submission to wait for, besides what the queue's order says. Repeated calls add to each other:
    /// the submission waits for all of them. [`submit`](Self::submit) reports what is wrong with an event.
    ///
    /// Waiting for a [`Submission`] that is enqueued costs nothing. An event of other work that is not complete yet may
    /// still fail. Drivers then crash, hang or run the dependent commands. So clgraph waits for such an event on a
    /// thread of its own, and enqueues the commands after it has succeeded. If the event fails, the submission fails
    /// and does not run.
    ///
    /// An event may never complete if nobody flushes its queue. The caller flushes queues that clgraph did not create.
    pub fn after(mut self, event: &impl WaitFor) -> Self {
        self.waits.push(event.dependency());
        self
    }

    /// Adds several events or submissions to wait for.
    pub fn after_all<'e, E: WaitFor + 'e>(mut self, events: impl IntoIterator<Item = &'e E>) -> Self {
        self.waits.extend(events.into_iter().map(WaitFor::dependency));
        self
    }

    /// Sets the data of a host write for this submission only: as many elements as the node writes. If a write is given
    /// data twice, the last data count. [`submit`](Self::submit) reports what is wrong with the data.
    pub fn with<T: Element>(mut self, input: &HostWrite<T>, data: impl Into<HostData<T>>) -> Self {
        let (inner, node) = (&*self.exec.0, input.node());
        let bytes = data.into().into_bytes();
        let given = bytes.len();
        let checked = match inner.ports.input(Port { node, index: input.part() }) {
            Ok((_, expected)) if expected != given => Err(SubmitError::InputSize { node, expected, given }),
            Ok((id, _)) => Ok(id),
            Err(error) => Err(error),
        };
        // The first mistake is reported.
        if let Ok(inputs) = &mut self.inputs {
            match checked {
                Ok(id) => inputs.push((id, bytes)),
                Err(error) => self.inputs = Err(error.into()),
            }
        }
        self
    }

    /// Returns how many bytes the data of a host write has. Other languages ask before they copy data of the program.
    #[doc(hidden)]
    pub fn input_size<T>(&self, input: &HostWrite<T>) -> Result<usize> {
        let (_, expected) = self.exec.0.ports.input(Port { node: input.node(), index: input.part() })?;
        Ok(expected)
    }

    /// Submits the executable. Does not block.
    ///
    /// While the queue records, the executable becomes a sub-graph of the recorded graph, and the submission stands for
    /// the sub-graph's node: [`Submission::sub_graph`].
    ///
    /// # Errors
    /// With these errors nothing was enqueued:
    /// - the queue: [`SubmitError::OtherQueue`]; while it records, [`RecordError::NotRecordable`] for input or events
    ///   of one submission, and the errors of recording at [`Queue::enqueue_copy_buffer`];
    /// - the events to wait for: [`SubmitError::OtherContext`], [`SubmitError::EventFailed`];
    /// - input and results: [`SubmitError::NotAnInput`], [`SubmitError::InputSize`], [`SubmitError::NoSlot`],
    ///   [`SubmitError::HostMemory`]; [`MemoryError::HeldByHost`](crate::MemoryError::HeldByHost) while the host uses
    ///   some of the executable's memory;
    /// - external events: [`SubmitError::EventMissing`], [`SubmitError::EventTwice`], [`SubmitError::NotAnEvent`],
    ///   [`SubmitError::EventContext`], [`SubmitError::ExternalEvent`], [`SubmitError::UserEventInUse`],
    ///   [`SubmitError::UserEventEnded`], [`SubmitError::UserEventAwaited`], [`SubmitError::OwnEvent`];
    /// - [`SubmitError::InsideNativeCommand`]; [`SubmitError::Driver`], [`DriverError`].
    ///
    /// With [`SubmitError::Enqueue`] and [`SubmitError::NativeCommand`] some commands were enqueued. These will run,
    /// and later submissions wait for them.
    pub fn submit(self) -> Result<Submission> {
        let submission = self.go(true)?;
        Ok(submission.ok_or(DriverError::faulty("clEnqueueMarkerWithWaitList", DriverFault::NoEvent))?)
    }

    /// Submits the executable and returns nothing to wait for. This is the cheapest form: it needs no driver event,
    /// unless the submission is timed for the automatic path or uses several queues.
    ///
    /// The queue orders the submission, and the submission orders later ones; [`Queue::finish`] waits for it. Its
    /// results are lost, and so are its failures. Only if it had to wait for an event or the host before it could be
    /// enqueued, a failure is logged. The first later submission of the executable to another queue waits for
    /// everything that this queue holds then; from then on, submissions to this queue take events too.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_detached(self) -> Result<()> {
        self.go(false).map(|_| ())
    }

    /// If the queue records, or joins a recording, records the executable.
    fn record_if(&self) -> Result<Option<Submission>> {
        let node = |wait: &Result<Dependency>| matches!(wait, Ok(Dependency(Kind::Node(_))));
        if self.queue.state() == QueueState::Executing && !self.waits.iter().any(node) {
            return Ok(None);
        }
        let events = self.waits.iter().map(|wait| match &wait.as_ref().map_err(Clone::clone)?.0 {
            Kind::Event(event) => Ok(event.clone().into()),
            Kind::Submission(state) => Ok(state.event.clone().into()),
            Kind::Node(event) => Ok(Event(record::EventKind::Node(Box::new(event.clone())))),
        });
        let events: Vec<Event> = events.collect::<Result<_>>()?;
        let not = |what, instead| Err(RecordError::NotRecordable { what, instead }.into());
        if !self.inputs.as_ref().map_err(Clone::clone)?.is_empty() {
            let instead = "a recording can run any number of times; give the input to each submission of the recorded \
                           graph, with `SubGraph::write`";
            return not("input for one submission", instead);
        }
        if !self.events.as_ref().map_err(Clone::clone)?.is_empty() {
            let instead = "a recording can run any number of times; give the events to each submission of the recorded \
                           graph, with `SubGraph::wait_event` and `SubGraph::signal_event`";
            return not("events for nodes of one submission", instead);
        }
        let events: Vec<&Event> = events.iter().collect();
        let event = self.queue.record_if(&self.exec.as_request(), Order::Plain, &events)?;
        Ok(event.and_then(|event| match event.0 {
            record::EventKind::Node(node) => Some(Submission::recorded(*node, Some(self.exec.clone()))),
            record::EventKind::Driver(_) => None,
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
        // A stable sort keeps the last input of a node after the others.
        inputs.sort_by_key(|(id, _)| *id);
        let own = external_events::own_event(self.events.as_deref().unwrap_or_default(), &self.waits);
        own.map_or(Ok(()), |node| Err(SubmitError::OwnEvent { node }))?;
        let Sorted { waits, blockers } = sort(exec, self.waits)?;
        let events = external_events::take(exec, self.events?)?;
        let mut exec_state = exec.lock_state();
        let accepted = exec_state.accept(
            exec,
            self.queue.driver(),
            waits,
            blockers,
            SubmissionBindings { slots: Vec::new(), inputs, events, log },
            observed,
        );
        let leftovers = exec_state.leftovers();
        drop(exec_state);
        leftovers.settle(exec);
        match accepted? {
            Accepted::Enqueued(submission) => Ok(submission),
            Accepted::Deferred { deferred, results, blockers } => {
                let submission = deferred.submission(results);
                deferred.wait_for(blockers);
                if !observed {
                    let device = exec.device.clone();
                    submission.on_complete(move |outcome| {
                        if let Err(error) = outcome {
                            log_later!(Error, "a detached submission to device `{}` failed: {error}", device.name());
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
    /// By the event reaper.
    blockers: Vec<Blocker>,
}

/// The state of something that a submission is to wait for.
pub(in crate::exec) enum Standing {
    Complete,
    Failed(Error),
    /// It belongs to another context.
    Elsewhere,
    /// A submission whose last command is this one.
    Enqueued {
        queue: DriverQueue,
        last: DriverEvent,
        state: Arc<SubmissionState>,
    },
    /// It may still fail, and so may whatever it waits for, which cannot be queried.
    Pending(Blocker),
    /// It stands for a node.
    Recorded(Node),
}

/// Finds the state of a dependency.
pub(in crate::exec) fn look(exec: &Inner, dependency: Dependency) -> Result<Standing> {
    Ok(match dependency.0 {
        Kind::Node(event) => Standing::Recorded(event.node),
        Kind::Event(event) => {
            if !event.is_of(&exec.context)? {
                return Ok(Standing::Elsewhere);
            }
            match event.status()? {
                CommandStatus::Complete => Standing::Complete,
                CommandStatus::Failed(status) => Standing::Failed(DriverError::new(COMMAND, status).into()),
                _ => {
                    // Some drivers begin nothing before a flush.
                    event.flush_queue()?;
                    Standing::Pending(Blocker::Event(event))
                }
            }
        }
        Kind::Submission(state) if state.context != exec.context => Standing::Elsewhere,
        Kind::Submission(state) => match state.stage()? {
            Stage::Done(Ok(())) => Standing::Complete,
            Stage::Done(Err(cause)) => Standing::Failed(cause),
            Stage::Enqueued { queue, last, .. } => Standing::Enqueued { queue, last, state },
            Stage::Deferred | Stage::Staged(_) => Standing::Pending(Blocker::Success(state)),
        },
    })
}

/// Finds the state of each event: complete events are dropped, a failed event is an error.
fn sort(exec: &Inner, dependencies: Vec<Result<Dependency>>) -> Result<Sorted> {
    let mut sorted = Sorted { waits: Waits::NONE, blockers: Vec::new() };
    if dependencies.is_empty() {
        return Ok(sorted);
    }
    for (index, dependency) in dependencies.into_iter().enumerate() {
        match look(exec, dependency?)? {
            // The check for recording has already rejected such events.
            Standing::Recorded(node) => return Err(RecordError::RecordingEnded { index, node }.into()),
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

/// Lets the queue record a node for a request; a queue that executes submits a graph of this one node.
pub(in crate::exec) fn submit_alone<R: Request + Clone>(
    queue: &Queue,
    request: R,
    waits: &[&Event],
) -> Result<Submission> {
    let event = queue.record_if(&request, Order::Plain, waits)?;
    if let Some(record::EventKind::Node(node)) = event.map(|event| event.0) {
        return Ok(Submission::recorded(*node, None));
    }
    let graph = Graph::new(queue)?;
    // The caller gave a command to the queue and knows of no node.
    request.check(&graph.target()).map_err(|cause| BuildError::new(request.subject(), cause))?;
    graph.insert(request, &After::default())?;
    let executable = graph.finalize(Finalize::new())?;
    executable.submit_to(queue).after_all(waits.iter().copied()).submit()
}
