//! Submitting: what is checked, and what a submission waits for.
//!
//! Most submissions are enqueued at once, by the executable's
//! [`ExecutableState`](crate::exec::submit::executable_state::ExecutableState). A submission that waits for something
//! that may still fail (a user event, or another submission that waits for one) is deferred: see
//! [`deferred`](crate::exec::submit::deferred).

use std::sync::Arc;

use crate::cl::completion::reentrancy;
use crate::cl::completion::user_code::log_later;
use crate::cl::memory::host::{Element, HostData};
use crate::error::{BuildError, DriverError, DriverFault, RecordError, Result, SubmitError};
use crate::exec::build::options::Finalize;
use crate::exec::executable::Executable;
use crate::exec::submit::bindings::SubmissionBindings;
use crate::exec::submit::blocker::Prerequisites;
use crate::exec::submit::deferred::Deferred;
use crate::exec::submit::dependency::{self, Dependency, Kind, WaitFor};
use crate::exec::submit::executable_state::Accepted;
use crate::exec::submit::external_events::{self, SuppliedEvents};
use crate::exec::submit::submission::Submission;
use crate::exec::submit::submission_state::Inputs;
use crate::graph::nodes::request::Request;
use crate::graph::recorder::Order;
use crate::graph::{After, Graph, HostWrite};
use crate::handles::Port;
use crate::record::{self, Event, Queue, QueueState};
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

impl Executable {
    /// Runs the graph once, on a queue of the executable's context and device.
    ///
    /// On an in-order queue the submission behaves like one command: it runs after everything that the queue holds
    /// already, and commands that are enqueued later run after it. On an out-of-order queue only barriers and wait
    /// lists order it.
    ///
    /// The call does not block. The submission waits for earlier submissions of this executable on all queues.
    /// [`submit_to`](Self::submit_to) makes a submission that waits for events or brings its own input.
    /// [`Submission::get`] returns the results.
    ///
    /// # Errors
    /// As [`Submit::submit`].
    #[doc(alias("cudaGraphLaunch", "clEnqueueCommandBufferKHR", "ext_oneapi_graph"))]
    pub fn submit(&self, queue: &Queue) -> Result<Submission> {
        self.submit_to(queue).submit()
    }

    /// Starts a submission that can wait for events and bring its own input.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let graph = Graph::new(&queue)?;
    /// let buffer = Buffer::<f32>::new(&queue, 2)?;
    /// let input = graph.write(&buffer, [0.0, 0.0]).add()?;
    /// let output = graph.read(&buffer).add()?;
    /// let executable = graph.finalize(Finalize::new())?;
    ///
    /// let first = executable.submit(&queue)?;
    /// let second = executable.submit_to(&queue).after(&first).with(&input, [1.0, 2.0]).submit()?;
    /// second.wait()?;
    /// assert_eq!(*first.get(&output)?, [0.0, 0.0]);
    /// assert_eq!(*second.get(&output)?, [1.0, 2.0]);
    /// # Ok(()) }
    /// ```
    pub fn submit_to<'a>(&'a self, queue: &'a Queue) -> Submit<'a> {
        Submit::new(self, queue)
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
        let (inner, node) = (&self.exec.0.fixed, input.node());
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
        let (_, expected) = self.exec.0.fixed.ports.input(Port { node: input.node(), index: input.part() })?;
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
        let log = self.exec.0.fixed.names.as_ref().filter(|_| observed).map(|names| Arc::new(Log::new(names)));
        let (inner, exec) = (&self.exec.0, &self.exec.0.fixed);
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
        let prerequisites = match self.waits.is_empty() {
            true => Prerequisites::NONE,
            false => dependency::sort(&exec.context, self.waits)?,
        };
        let events = external_events::take(exec, self.events?)?;
        let bindings = SubmissionBindings { slots: Vec::new(), inputs, events, log };
        let mut exec_state = inner.lock_state();
        let accepted =
            exec_state.accept(exec, &inner.exclusive, self.queue.driver(), prerequisites, bindings, observed);
        let leftovers = exec_state.leftovers();
        drop(exec_state);
        leftovers.run(&inner.exclusive);
        match accepted? {
            Accepted::Enqueued(submission) => Ok(submission.map(|(state, results)| Submission::new(state, results))),
            Accepted::Deferred { state, own, work, results, blockers } => {
                let submission = Submission::new(Arc::clone(&state), results);
                Deferred::new(Arc::clone(inner), state, own, blockers.len(), work).wait_for(blockers);
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
