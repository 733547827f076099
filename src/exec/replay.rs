//! The replay path: every command enqueued anew, on an in-order queue, from what finalize prepared.
//!
//! A command costs its own OpenCL call and nothing else: no allocation, no argument to set, and no event but for the
//! first and the last command, where somebody wants to know.

use std::sync::Arc;

use super::Inner;
use crate::cl::buffer::Mem;
use crate::cl::enqueue::{self, To, Waits};
use crate::cl::event::Event;
use crate::cl::host::{HostBytes, Slot};
use crate::cl::queue::Queue;
use crate::error::{DriverError, SubmitError};
use crate::ir::{DataId, Place};
use crate::plan::Action;

/// What a submission brings of its own.
#[derive(Debug, Default)]
pub(super) struct Hands {
    /// By result.
    pub(super) slots: Vec<Arc<Slot>>,
    pub(super) inputs: Inputs,
}

/// Data in place of the executable's own, sorted by id. The last one for an id counts.
pub(super) type Inputs = Vec<(DataId, HostBytes)>;

/// Which events are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want {
    pub(super) first: bool,
    pub(super) last: bool,
}

/// The events of the first and of the last command. With one command they are the same.
#[derive(Debug, Default)]
pub(super) struct Ends {
    pub(super) first: Option<Event>,
    pub(super) last: Option<Event>,
}

/// Enqueues every step on an in-order queue, the first behind `waits`.
///
/// On an error the steps before it are enqueued and will run.
pub(super) fn enqueue(
    exec: &Inner,
    hands: &Hands,
    queue: &Queue,
    waits: &Waits,
    want: Want,
) -> Result<Ends, SubmitError> {
    let steps = &exec.plan.steps;
    let Some(end) = steps.len().checked_sub(1) else {
        // Nothing to run; the order of the queue and the events to wait for still count.
        let last = enqueue::marker(queue, waits)?;
        return Ok(Ends { first: None, last: Some(last) });
    };
    let mut ends = Ends::default();
    for index in exec.plan.segments.iter().flat_map(|segment| segment.steps.clone()) {
        let step = &steps[index];
        let waits = if index == 0 { waits } else { &Waits::NONE };
        let event = (index == end && want.last) || (index == 0 && want.first && end > 0);
        let done = run(exec, hands, &step.action, &To { queue, waits, event }).map_err(|source| {
            SubmitError::Enqueue { node: exec.node(step.node), enqueued: index, total: steps.len(), source }
        })?;
        if index == end {
            ends.last = done;
        } else if done.is_some() {
            ends.first = done;
        }
    }
    Ok(ends)
}

#[inline]
fn run(exec: &Inner, hands: &Hands, action: &Action, to: &To<'_>) -> Result<Option<Event>, DriverError> {
    let at = |place: &Place| -> (&Mem, usize) { (&exec.views[place.view.index()], place.offset) };
    match action {
        Action::Launch { object, grid } => {
            let object = &exec.objects[object.index()];
            enqueue::kernel(to, object, grid.dims, &grid.offset, &grid.global, grid.local.as_ref())
        }
        Action::Copy { src, dst, size } => enqueue::copy(to, at(src), at(dst), *size),
        Action::CopyRect(rect) => enqueue::copy_rect(
            to,
            (&exec.views[rect.src.index()], &rect.src_origin),
            (&exec.views[rect.dst.index()], &rect.dst_origin),
            &rect.region,
            &rect.pitches,
        ),
        Action::Fill { dst, size, pattern } => enqueue::fill(to, at(dst), &exec.plan.patterns[pattern.clone()], *size),
        Action::Write { dst, data } => {
            let end = hands.inputs.partition_point(|(id, _)| id <= data);
            let given = hands.inputs[..end].last().filter(|(id, _)| id == data).map(|(_, bytes)| bytes);
            enqueue::write(to, at(dst), given.unwrap_or(&exec.data[data.index()]))
        }
        Action::Read { src, result } => enqueue::read(to, at(src), &hands.slots[result.index()]),
    }
}
