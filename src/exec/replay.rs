//! The replay path: a command enqueued anew, from what finalize prepared.
//!
//! A command costs its own OpenCL call and nothing else: no allocation, no argument to set, and no event that nobody asks
//! for.

use super::values::Values;
use super::walk::Hands;
use crate::cl::enqueue::{self, To};
use crate::cl::event::DriverEvent;
use crate::cl::image_commands;
use crate::cl::queue::DriverQueue;
use crate::cl::reentrancy::Inside;
use crate::error::DriverError;
use crate::graph::NativeQueue;
use crate::ir::{Hint, NativeId, Op};
use crate::plan::Step;

/// Why a command was not enqueued.
#[derive(Debug)]
pub(super) enum Refused {
    Driver(DriverError),
    /// What the function of a native command said. Some of what it enqueues may be under way.
    Native(Box<str>),
}

impl From<DriverError> for Refused {
    fn from(error: DriverError) -> Self {
        Self::Driver(error)
    }
}

/// Enqueues a launch that waits for nothing and whose event nobody wants, which is what most of a submission is. Whether the step
/// is one.
#[inline(always)]
pub(super) fn launch(values: &Values, index: usize, step: &Step, queue: &DriverQueue) -> Result<bool, DriverError> {
    let Op::Kernel { grid, .. } = values.op(step) else { return Ok(false) };
    let Some(object) = values.kept(index).filter(|_| !grid.global.contains(&0)) else { return Ok(false) };
    enqueue::launch(queue, object, grid.dims, &grid.offset, &grid.global, grid.local.as_ref())?;
    Ok(true)
}

/// Enqueues the command of a step, on an in-order queue.
#[inline]
pub(super) fn enqueue(
    values: &Values,
    hands: &Hands,
    index: usize,
    step: &Step,
    to: &To<'_>,
) -> Result<Option<DriverEvent>, Refused> {
    let op = values.op(step);
    if op.is_noop() {
        return Ok(enqueue::nothing(to)?);
    }
    let event = match op {
        Op::Empty | Op::SubGraph(_) | Op::Alloc(_) | Op::Free(_) | Op::Task(_) | Op::Event { .. } => {
            enqueue::nothing(to)
        }
        Op::Kernel { kernel, args, grid, .. } => {
            let object = values.object(index, *kernel, *args)?;
            enqueue::kernel(to, &object, grid.dims, &grid.offset, &grid.global, grid.local.as_ref())
        }
        Op::Native { command, .. } => return native(values, *command, step, to),
        Op::Copy { src, dst, size } => enqueue::copy(to, values.at(src)?, values.at(dst)?, *size),
        Op::CopyRect(rect) => enqueue::copy_rect(
            to,
            (values.mem(rect.src)?, &rect.src_origin),
            (values.mem(rect.dst)?, &rect.dst_origin),
            &rect.region,
            &rect.pitches,
        ),
        Op::CopyImage(copy) => {
            image_commands::copy(to, values.pixels(&copy.src)?, values.pixels(&copy.dst)?, &copy.region)
        }
        Op::Fill { dst, pattern, area: Some(area), .. } => {
            image_commands::fill(to, values.mem(dst.view)?, area, values.bytes(*pattern))
        }
        Op::Fill { dst, size, pattern, area: None } => {
            enqueue::fill(to, values.at(dst)?, values.bytes(*pattern), *size)
        }
        Op::Write { dst, data, area, .. } => {
            let end = hands.inputs.partition_point(|(id, _)| id <= data);
            let given = hands.inputs[..end].last().filter(|(id, _)| id == data).map(|(_, bytes)| bytes);
            let data = given.unwrap_or_else(|| values.data(*data));
            match area {
                Some(area) => image_commands::write(to, values.mem(dst.view)?, area, data),
                None => enqueue::write(to, values.at(dst)?, data),
            }
        }
        Op::Hint { of, size, hint } => {
            let taken = match hint {
                Hint::Advice(advice) => enqueue::advise(to, values.at(of)?, *size, *advice)?,
                hint => enqueue::migrate(to, values.at(of)?, *size, *hint == Hint::ToHost)?,
            };
            taken.map_or_else(|| enqueue::nothing(to), |taken| Ok(taken.0))
        }
        Op::Read { src, result, area: Some(area), .. } => {
            image_commands::read(to, values.mem(src.view)?, area, &hands.slots[result.index()])
        }
        Op::Read { src, result, .. } => enqueue::read(to, values.at(src)?, &hands.slots[result.index()]),
    };
    Ok(event?)
}

/// Has the function of a native command enqueue, between markers where events are waited for or wanted.
#[cold]
fn native(values: &Values, command: NativeId, step: &Step, to: &To<'_>) -> Result<Option<DriverEvent>, Refused> {
    if !to.waits.is_empty() {
        enqueue::marker(to.queue, to.waits)?;
    }
    let tables = &*values.tables;
    let _inside = Inside::native_command();
    let said = tables.natives[command.index()].enqueue(&NativeQueue::new(to.queue, tables, step.node));
    said.map_err(|text| Refused::Native(text.into()))?;
    Ok(if to.event { Some(enqueue::last_marker(to.queue)?) } else { None })
}
