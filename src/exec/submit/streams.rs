//! A submission over several in-order queues: commands that nothing orders may run side by side.
//!
//! It begins and ends on the queue that it is submitted to, so that all other commands there are before or after it.
//! The other queues are the executable's own. A queue whose commands another queue waits for is flushed, as OpenCL
//! requires, after the lock is released.

use crate::cl::commands::enqueue::{self, To, Waits};
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::queue::DriverQueue;
use crate::error::{DriverError, SubmitError};
use crate::exec::Inner;
use crate::exec::build::values::Values;
use crate::exec::submit::replay::{self, ReplayError};
use crate::exec::submit::submitter::{Ends, Stopped, SubmissionBindings};
use crate::plan::Streams;

/// Enqueues all commands after `waits` and after what the first queue holds.
pub(in crate::exec) fn enqueue(
    exec: &Inner,
    values: &Values,
    streams: &Streams,
    bindings: &SubmissionBindings,
    (first, others): (&DriverQueue, &[DriverQueue]),
    waits: &Waits,
) -> Result<Ends, Stopped> {
    let queue = |stream: usize| if stream == 0 { first } else { &others[stream - 1] };
    let steps = &exec.plan.steps;
    let stopped = |index: usize, source: DriverError| {
        let node = exec.node(exec.origins.of(steps[index.min(steps.len() - 1)].node).node);
        let error = SubmitError::Enqueue { node, commands: 1, enqueued: index, total: steps.len(), source };
        Stopped { error, under_way: true }
    };
    let begin = enqueue::barrier(first, waits)
        .map_err(|error| Stopped { error: SubmitError::Driver(error), under_way: false })?;
    let mut events: Vec<Option<DriverEvent>> = Vec::new();
    events.resize_with(streams.events, || None);
    let mut begun = vec![false; streams.count];
    begun[0] = true;
    // A driver may have returned no event for a command, although one was asked for.
    let event_of = |events: &[Option<DriverEvent>], step: usize| {
        let known = streams.event(step).and_then(|event| events[event].clone());
        known.map_or_else(|| enqueue::last_marker(queue(streams.stream(step))), Ok)
    };
    for (index, step) in steps.iter().enumerate() {
        let stream = streams.stream(index);
        let mut list = Waits::NONE;
        if !std::mem::replace(&mut begun[stream], true) {
            list.push(begin.clone());
        }
        for step in streams.waits(index) {
            list.push(event_of(&events, step).map_err(|source| stopped(index, source))?);
        }
        let wanted = streams.event(index);
        let to = To { queue: queue(stream), waits: &list, event: wanted.is_some() };
        let event = replay::enqueue(values, bindings, index, step, &to).map_err(|refused| match refused {
            ReplayError::Driver(source) => stopped(index, source),
            // Plans with several queues have no native commands.
            ReplayError::Native(text) => {
                let node = exec.node(exec.origins.of(step.node).node);
                Stopped { error: SubmitError::NativeCommand { node, text: text.into() }, under_way: true }
            }
        })?;
        if let Some(wanted) = wanted {
            events[wanted] = event;
        }
    }
    let (mut list, mut beside) = (Waits::NONE, Vec::with_capacity(streams.count));
    for step in streams.ends() {
        let end = event_of(&events, step).map_err(|source| stopped(steps.len(), source))?;
        list.push(end.clone());
        beside.push(end);
    }
    let last = enqueue::barrier(first, &list).map_err(|source| stopped(steps.len(), source))?;
    Ok(Ends { first: Some(begin), last: Some(last), beside })
}

/// Returns an event that is complete when everything is that the queues hold, after not all commands could be enqueued.
/// An error: the end cannot be known.
pub(in crate::exec) fn rest(first: &DriverQueue, others: &[DriverQueue]) -> Result<DriverEvent, DriverError> {
    let mut list = Waits::NONE;
    for queue in others {
        list.push(enqueue::last_marker(queue)?);
    }
    enqueue::barrier(first, &list).or_else(|_| enqueue::barrier(first, &list))
}
