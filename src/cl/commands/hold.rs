//! Holding a queue: its later commands wait for a gate, while the host waits for something that a driver must not.

use super::enqueue::{self, Waits};
use crate::cl::completion::gates::{GateId, Gates};
use crate::cl::objects::context::InContext;
use crate::cl::objects::event::{DriverEvent, Gate};
use crate::cl::objects::queue::DriverQueue;
use crate::error::Result;

/// A queue that is held.
pub(crate) struct HeldQueue {
    /// Complete when the queue and the wait list would have let a command start.
    pub(crate) entered: DriverEvent,
    /// Holds the queue until it is dropped.
    pub(crate) gate: Gate,
    /// The gate's number, if a host task may come before it.
    pub(crate) id: Option<GateId>,
    /// Complete when the gate is open.
    pub(crate) after_gate: DriverEvent,
}

/// How much of a queue is held. All of an in-order queue always is. On an out-of-order queue that the driver runs in order,
/// a command behind the gate would hold up all later ones, so the queue gets none: see [`DriverQueue::is_held_apart`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// What waits for the event after the gate.
    Event,
    /// All later commands.
    Barrier,
}

/// Holds a queue. The gate opens after some others; `has_tasks` says whether host tasks run before it does.
pub(crate) fn hold(
    queue: &DriverQueue,
    waits: &Waits,
    mut after: Gates,
    has_tasks: bool,
    hold: Hold,
) -> Result<HeldQueue> {
    let entered = enqueue::entry(queue, waits)?;
    after.extend(&entered.gates());
    let (mut gate, id) = Gate::holding(queue.context(), after, has_tasks)?;
    if hold == Hold::Event && queue.is_held_apart() {
        // Whoever has the handle can set its status.
        let after_gate = gate.hold_apart(queue)?.foreign();
        return Ok(HeldQueue { entered, gate, id, after_gate });
    }
    let mut closed = Waits::NONE;
    closed.push(gate.event().clone());
    let after_gate = if queue.properties().out_of_order && hold == Hold::Event {
        enqueue::entry(queue, &closed)?
    } else {
        enqueue::barrier(queue, &closed)?
    };
    if let Some(id) = id {
        queue.held_by(id);
    }
    Ok(HeldQueue { entered, gate, id, after_gate })
}
