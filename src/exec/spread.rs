//! A submission over several in-order queues: what nothing orders may run side by side.
//!
//! It begins and ends on the queue that it is submitted to, so that all else there is before or behind it. The other queues are the
//! executable's own. A queue that commands of another one wait for is flushed, as OpenCL wants it, by whoever gives back the lock.

use super::Inner;
use super::replay::{self, Refused};
use super::values::Values;
use super::walk::{Ends, Hands, Stopped};
use crate::cl::enqueue::{self, To, Waits};
use crate::cl::event::DriverEvent;
use crate::cl::queue::DriverQueue;
use crate::error::{DriverError, SubmitError};
use crate::plan::Lanes;

/// Enqueues all commands behind `waits` and behind what the first queue holds.
pub(super) fn enqueue(
    exec: &Inner,
    values: &Values,
    lanes: &Lanes,
    hands: &Hands,
    (first, others): (&DriverQueue, &[DriverQueue]),
    waits: &Waits,
) -> Result<Ends, Stopped> {
    let queue = |lane: usize| if lane == 0 { first } else { &others[lane - 1] };
    let steps = &exec.plan.steps;
    let stopped = |index: usize, source: DriverError| {
        let node = exec.node(exec.origins.of(steps[index.min(steps.len() - 1)].node).node);
        let error = SubmitError::Enqueue { node, commands: 1, enqueued: index, total: steps.len(), source };
        Stopped { error, under_way: true }
    };
    let begin = enqueue::barrier(first, waits)
        .map_err(|error| Stopped { error: SubmitError::Driver(error), under_way: false })?;
    let mut events: Vec<Option<DriverEvent>> = Vec::new();
    events.resize_with(lanes.events, || None);
    let mut begun = vec![false; lanes.count];
    begun[0] = true;
    // A driver may have given no event for a command, although it was asked for one.
    let event_of = |events: &[Option<DriverEvent>], step: usize| {
        let known = lanes.event(step).and_then(|event| events[event].clone());
        known.map_or_else(|| enqueue::last_marker(queue(lanes.lane(step))), Ok)
    };
    for (index, step) in steps.iter().enumerate() {
        let lane = lanes.lane(index);
        let mut list = Waits::NONE;
        if !std::mem::replace(&mut begun[lane], true) {
            list.push(begin.clone());
        }
        for step in lanes.waits(index) {
            list.push(event_of(&events, step).map_err(|source| stopped(index, source))?);
        }
        let wanted = lanes.event(index);
        let to = To { queue: queue(lane), waits: &list, event: wanted.is_some() };
        let event = replay::enqueue(values, hands, index, step, &to).map_err(|refused| match refused {
            Refused::Driver(source) => stopped(index, source),
            // There are none here.
            Refused::Native(text) => {
                let node = exec.node(exec.origins.of(step.node).node);
                Stopped { error: SubmitError::NativeCommand { node, text: text.into() }, under_way: true }
            }
        })?;
        if let Some(wanted) = wanted {
            events[wanted] = event;
        }
    }
    let (mut list, mut beside) = (Waits::NONE, Vec::with_capacity(lanes.count));
    for step in lanes.ends() {
        let end = event_of(&events, step).map_err(|source| stopped(steps.len(), source))?;
        list.push(end.clone());
        beside.push(end);
    }
    let last = enqueue::barrier(first, &list).map_err(|source| stopped(steps.len(), source))?;
    Ok(Ends { first: Some(begin), last: Some(last), beside })
}

/// An event that is complete when everything is that the queues hold: for who could not enqueue all. An error: nobody can tell.
pub(super) fn rest(first: &DriverQueue, others: &[DriverQueue]) -> Result<DriverEvent, DriverError> {
    let mut list = Waits::NONE;
    for queue in others {
        list.push(enqueue::last_marker(queue)?);
    }
    enqueue::barrier(first, &list).or_else(|_| enqueue::barrier(first, &list))
}
