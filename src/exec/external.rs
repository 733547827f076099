//! The external events of a submission: what it was given for which node.

use std::sync::Arc;

use super::deferred::Blocker;
use super::state::State;
use super::submit::{self, Dependency, Standing};
use super::user_event::{Promised, UserEvent};
use super::{Inner, Submit, WaitFor};
use crate::cl::context::InContext;
use crate::error::{Error, RecordError, Result, SubmitError};
use crate::graph::external::ExternalEvent;
use crate::graph::tape::Order;
use crate::graph::{EventHandle, EventSignal, EventWait, Node, Part};
use crate::ir::ExternalId;
use crate::record::{Event, Queue};

/// What a submission is given for a node.
#[derive(Debug)]
pub(super) enum Given {
    Wait(Dependency),
    Signal(UserEvent),
}

/// The events of a submission, in the order of giving. The first mistake is the one that is told.
pub(super) type GivenEvents = Vec<(ExternalId, Part, Given)>;

/// The event of a node, in a submission.
#[derive(Debug)]
pub(super) enum External {
    /// To be waited for. None once somebody does, or when it is complete.
    Wait(Option<Blocker>),
    /// To be completed. None when it is.
    Signal(Option<Promised>),
}

/// An event for each node that has one, or what is wrong.
pub(super) fn take(exec: &Inner, given: GivenEvents) -> Result<Vec<External>> {
    let nodes = exec.ports.events();
    if nodes.is_empty() && given.is_empty() {
        return Ok(Vec::new());
    }
    let mut events: Vec<Option<External>> = nodes.iter().map(|_| None).collect();
    let (mut waited, mut signalled) = (Vec::new(), Vec::new());
    for (id, part, given) in given {
        let node = part.node;
        match &given {
            Given::Signal(event) => signalled.push((id, Arc::clone(event.state()))),
            Given::Wait(dependency) => waited.extend(dependency.state().map(|state| (id, state))),
        }
        let Some(place) = events.get_mut(id.index()) else { return Err(SubmitError::NotAnEvent { node }.into()) };
        if place.is_some() {
            return Err(SubmitError::EventTwice { node }.into());
        }
        *place = Some(match given {
            Given::Signal(event) if event.context() != &exec.context => {
                return Err(SubmitError::EventContext { node }.into());
            }
            Given::Signal(event) => External::Signal(Some(Promised::new(&event)?)),
            Given::Wait(dependency) => External::Wait(match submit::look(exec, dependency)? {
                Standing::Complete => None,
                Standing::Failed(cause) => {
                    return Err(SubmitError::ExternalEvent { node, cause: Box::new(cause.root()) }.into());
                }
                Standing::Elsewhere => return Err(SubmitError::EventContext { node }.into()),
                Standing::Enqueued { queue, state, .. } => {
                    queue.flush()?;
                    Some(Blocker::Success(state))
                }
                Standing::Pending(blocker) => Some(blocker),
                Standing::Recorded(node) => {
                    return Err(RecordError::Recorded { node, what: "given to a node of a submission" }.into());
                }
            }),
        });
    }
    // What completes an event must not be behind what waits for it.
    for (wait, of) in waited {
        let is_it = |(_, event): &&(ExternalId, Arc<State>)| Arc::ptr_eq(event, &of);
        for (signal, _) in signalled.iter().filter(is_it) {
            if exec.is_behind(exec.events_at[signal.index()], exec.events_at[wait.index()]) {
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

/// The node that is to complete what the submission waits for before it begins.
pub(super) fn own_event(given: &[(ExternalId, Part, Given)], waits: &[Result<Dependency>]) -> Option<Node> {
    let is_it = |wait: &Dependency, event: &UserEvent| wait.state().is_some_and(|of| Arc::ptr_eq(&of, event.state()));
    let is_own = |event: &UserEvent| waits.iter().flatten().any(|wait| is_it(wait, event));
    given
        .iter()
        .find_map(|(_, part, given)| matches!(given, Given::Signal(event) if is_own(event)).then_some(part.node))
}

/// Those events fail that are not complete yet.
pub(super) fn fail(events: &mut Vec<External>, error: &Error) {
    for event in events.drain(..) {
        if let External::Signal(Some(promised)) = event {
            promised.end(Err(error.clone()));
        }
    }
}

impl Submit<'_> {
    /// Gives a node the event that it waits for, in this submission. Each such node is given one, once.
    pub fn with_event(self, node: &EventWait, event: &impl WaitFor) -> Self {
        let given = event.dependency().map(Given::Wait);
        self.give(node.part(), false, given)
    }

    /// Gives a node the event that it completes, in this submission. Each such node is given one, once; and nobody else can complete
    /// the event then, so what the node waits for must not wait for it, nor must a host task before it.
    pub fn with_signal(self, node: &EventSignal, event: &UserEvent) -> Self {
        let given = Given::Signal(event.clone());
        self.give(node.part(), true, Ok(given))
    }

    fn give(mut self, part: Part, signals: bool, given: Result<Given>) -> Self {
        let found = self.exec.0.ports.event(part, signals).map_err(Error::from);
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
    /// Records a node that waits for an event, which each submission of the recorded graph is given: [`Graph::wait_event`](crate::Graph::wait_event).
    /// Gives the handle for that, and the event that stands for the node. A queue that executes waits for events by the wait lists
    /// of its commands.
    ///
    /// # Errors
    /// [`RecordError::NotRecording`]; those of [`enqueue_copy_buffer`](Self::enqueue_copy_buffer) for the wait list.
    pub fn record_event_wait(&self, event_wait_list: &[&Event]) -> Result<(EventWait, Event)> {
        self.record_external(event_wait_list)
    }

    /// Records a node that completes an event, which each submission of the recorded graph is given:
    /// [`Graph::signal_event`](crate::Graph::signal_event). Gives the handle for that, and the event that stands for the node.
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
