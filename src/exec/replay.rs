//! The replay path: a command enqueued anew, from what finalize prepared.
//!
//! A command costs its own OpenCL call and nothing else: no allocation, no argument to set, and no event that nobody asks
//! for.

use super::Inner;
use super::walk::Hands;
use crate::cl::buffer::Mem;
use crate::cl::enqueue::{self, To};
use crate::cl::event::DriverEvent;
use crate::error::DriverError;
use crate::ir::Place;
use crate::plan::Action;

/// Enqueues one command.
#[inline]
pub(super) fn enqueue(
    exec: &Inner,
    hands: &Hands,
    action: &Action,
    to: &To<'_>,
) -> Result<Option<DriverEvent>, DriverError> {
    let tables = &*exec.flat.tables;
    let at = |place: &Place| -> (&Mem, usize) { (&tables.views[place.view.index()], place.offset) };
    match action {
        Action::Launch { object, grid } => {
            let object = &exec.objects.get(*object);
            enqueue::kernel(to, object, grid.dims, &grid.offset, &grid.global, grid.local.as_ref())
        }
        Action::Copy { src, dst, size } => enqueue::copy(to, at(src), at(dst), *size),
        Action::CopyRect(rect) => enqueue::copy_rect(
            to,
            (&tables.views[rect.src.index()], &rect.src_origin),
            (&tables.views[rect.dst.index()], &rect.dst_origin),
            &rect.region,
            &rect.pitches,
        ),
        Action::Fill { dst, size, pattern } => enqueue::fill(to, at(dst), &exec.plan.patterns[pattern.clone()], *size),
        Action::Write { dst, data } => {
            let end = hands.inputs.partition_point(|(id, _)| id <= data);
            let given = hands.inputs[..end].last().filter(|(id, _)| id == data).map(|(_, bytes)| bytes);
            enqueue::write(to, at(dst), given.unwrap_or(&tables.data[data.index()]))
        }
        Action::Read { src, result } => enqueue::read(to, at(src), &hands.slots[result.index()]),
    }
}
