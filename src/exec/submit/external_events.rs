//! External events: which event a submission was given for which node.

use std::sync::Arc;

use crate::cl::objects::context::InContext;
use crate::error::{Error, RecordError, Result, SubmitError};
use crate::exec::finalized::Finalized;
use crate::exec::submit::bindings::External;
use crate::exec::submit::blocker::Blocker;
use crate::exec::submit::builder::Submit;
use crate::exec::submit::dependency::{self, Dependency, DependencyState, WaitFor};
use crate::exec::submit::submission_state::SubmissionState;
use crate::exec::submit::user_event::{ReservedUserEvent, UserEvent};
use crate::graph::nodes::external_event::ExternalEvent;
use crate::graph::recorder::Order;
use crate::graph::{EventHandle, EventSignal, EventWait};
use crate::handles::{Node, Port};
use crate::ir::ExternalId;
use crate::record::{Event, Queue};

/// What a submission is given for a node.
#[derive(Debug)]
pub(in crate::exec) enum SuppliedEvent {
    Wait(Dependency),
    Signal(UserEvent),
}

/// The events of a submission, in the order in which they were given. The first mistake is reported.
pub(in crate::exec) type SuppliedEvents = Vec<(ExternalId, Port, SuppliedEvent)>;

/// Returns an event for each node that has one, or the first mistake.
pub(in crate::exec) fn take(exec: &Finalized, given: SuppliedEvents) -> Result<Vec<External>> {
    let nodes = exec.ports.events();
    if nodes.is_empty() && given.is_empty() {
        return Ok(Vec::new());
    }
    let mut events: Vec<Option<External>> = nodes.iter().map(|_| None).collect();
    let (mut waited, mut signalled) = (Vec::new(), Vec::new());
    for (id, part, given) in given {
        let node = part.node;
        match &given {
            SuppliedEvent::Signal(event) => signalled.push((id, Arc::clone(event.state()))),
            SuppliedEvent::Wait(dependency) => waited.extend(dependency.state().map(|state| (id, state))),
        }
        let Some(place) = events.get_mut(id.index()) else { return Err(SubmitError::NotAnEvent { node }.into()) };
        if place.is_some() {
            return Err(SubmitError::EventTwice { node }.into());
        }
        *place = Some(match given {
            SuppliedEvent::Signal(event) if event.context() != &exec.context => {
                return Err(SubmitError::EventContext { node }.into());
            }
            SuppliedEvent::Signal(event) => External::Signal(Some(ReservedUserEvent::new(&event)?)),
            SuppliedEvent::Wait(dependency) => External::Wait(match dependency::query(&exec.context, dependency)? {
                DependencyState::Complete => None,
                DependencyState::Failed(cause) => {
                    return Err(SubmitError::ExternalEvent { node, cause: Box::new(cause.root()) }.into());
                }
                DependencyState::Elsewhere => return Err(SubmitError::EventContext { node }.into()),
                DependencyState::Enqueued { queue, state, .. } => {
                    queue.flush()?;
                    Some(Blocker::Success(state))
                }
                DependencyState::Pending(blocker) => Some(blocker),
                DependencyState::Recorded(node) => {
                    return Err(RecordError::Recorded { node, what: "given to a node of a submission" }.into());
                }
            }),
        });
    }
    // The node that completes an event must not be after a node that waits for the same event.
    for (wait, of) in waited {
        let is_it = |(_, event): &&(ExternalId, Arc<SubmissionState>)| Arc::ptr_eq(event, &of);
        for (signal, _) in signalled.iter().filter(is_it) {
            if exec.is_after(exec.events_at[signal.index()], exec.events_at[wait.index()]) {
                return Err(SubmitError::OwnEvent { node: exec.node(nodes[signal.index()].0.node) }.into());
            }
        }
    }
    let missing = events.iter().position(Option::is_none).and_then(|at| nodes.get(at));
    if let Some((origin, signals)) = missing {
        let method = if *signals { "with_signal" } else { "with_event" };
        return Err(SubmitError::EventMissing { node: exec.node(origin.node), method }.into());
    }
    Ok(events.into_iter().flatten().collect())
}

/// Returns the node that would complete an event that the submission waits for before it begins.
pub(in crate::exec) fn own_event(
    given: &[(ExternalId, Port, SuppliedEvent)],
    waits: &[Result<Dependency>],
) -> Option<Node> {
    let is_it = |wait: &Dependency, event: &UserEvent| wait.state().is_some_and(|of| Arc::ptr_eq(&of, event.state()));
    let is_own = |event: &UserEvent| waits.iter().flatten().any(|wait| is_it(wait, event));
    given.iter().find_map(|(_, part, given)| {
        matches!(given, SuppliedEvent::Signal(event) if is_own(event)).then_some(part.node)
    })
}

impl Submit<'_> {
    /// Sets the event that a node waits for, in this submission. Each such node must be given exactly one event.
    pub fn with_event(self, node: &EventWait, event: &impl WaitFor) -> Self {
        let given = event.dependency().map(SuppliedEvent::Wait);
        self.give(node.part(), false, given)
    }

    /// Sets the event that a node completes, in this submission. Each such node must be given exactly one event.
    ///
    /// Nothing else can complete the event then. So nothing that runs before the node, such as a host task, may wait
    /// for the event.
    pub fn with_signal(self, node: &EventSignal, event: &UserEvent) -> Self {
        let given = SuppliedEvent::Signal(event.clone());
        self.give(node.part(), true, Ok(given))
    }

    fn give(mut self, part: Port, signals: bool, given: Result<SuppliedEvent>) -> Self {
        let found = self.exec.0.fixed.ports.event(part, signals).map_err(Error::from);
        if let Ok(events) = &mut self.events {
            match found.and_then(|id| Ok((id, given?))) {
                Ok((id, given)) => events.push((id, part, given)),
                Err(error) => self.events = Err(error),
            }
        }
        self
    }
}

impl Queue {
    /// Records a node that waits for an event. Each submission of the recorded graph is given its own event:
    /// [`Graph::wait_event`](crate::Graph::wait_event).
    ///
    /// Returns the node's handle, to which submissions give the event, and an event that stands for the node in wait
    /// lists. A queue that executes waits for events through the wait lists of its commands.
    ///
    /// # Errors
    /// [`RecordError::NotRecording`]; the errors of [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait
    /// list.
    pub fn record_event_wait(&self, event_wait_list: &[&Event]) -> Result<(EventWait, Event)> {
        self.record_external(event_wait_list)
    }

    /// Records a node that completes an event. Each submission of the recorded graph is given its own event:
    /// [`Graph::signal_event`](crate::Graph::signal_event).
    ///
    /// Returns the node's handle, to which submissions give the event, and an event that stands for the node in wait
    /// lists.
    ///
    /// # Errors
    /// As [`record_event_wait`](Self::record_event_wait).
    pub fn record_event_signal(&self, event_wait_list: &[&Event]) -> Result<(EventSignal, Event)> {
        self.record_external(event_wait_list)
    }

    fn record_external<H: EventHandle>(&self, event_wait_list: &[&Event]) -> Result<(H, Event)> {
        let request = ExternalEvent { signals: H::SIGNALS };
        let event = self.record_if(&request, Order::Plain, event_wait_list)?.ok_or(RecordError::NotRecording)?;
        let node = event.node().ok_or(RecordError::NotRecording)?;
        Ok((H::of_part(node, 0), event))
    }
}
