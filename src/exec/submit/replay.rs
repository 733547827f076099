//! The replay path: enqueues a command from what finalize prepared.
//!
//! A command costs its own OpenCL call and nothing else: no allocation, no argument to set, and no event that nothing
//! needs.

use crate::cl::commands::enqueue::{self, To};
use crate::cl::commands::image_commands;
use crate::cl::completion::reentrancy::ReentrancyGuard;
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::queue::DriverQueue;
use crate::error::DriverError;
use crate::exec::build::values::Values;
use crate::exec::submit::submitter::SubmissionBindings;
use crate::graph::NativeQueue;
use crate::ir::{Hint, NativeId, Op};
use crate::plan::Step;

/// Why a command was not enqueued.
#[derive(Debug)]
pub(in crate::exec) enum ReplayError {
    Driver(DriverError),
    /// The error of a native command's function. Some of the commands that it enqueued may run.
    Native(Box<str>),
}

impl From<DriverError> for ReplayError {
    fn from(error: DriverError) -> Self {
        Self::Driver(error)
    }
}

/// Enqueues a launch that waits for nothing and needs no event: most steps of a submission are such launches. Returns
/// false, and does nothing, if the step is another one.
#[inline(always)]
pub(in crate::exec) fn launch(
    values: &Values,
    index: usize,
    step: &Step,
    queue: &DriverQueue,
) -> Result<bool, DriverError> {
    let Op::Kernel { grid, .. } = values.op(step) else { return Ok(false) };
    let Some(object) = values.kept(index).filter(|_| !grid.global.contains(&0)) else { return Ok(false) };
    enqueue::launch(queue, object, grid.dims, &grid.offset, &grid.global, grid.local.as_ref())?;
    Ok(true)
}

/// Enqueues the command of a step on an in-order queue.
#[inline]
pub(in crate::exec) fn enqueue(
    values: &Values,
    bindings: &SubmissionBindings,
    index: usize,
    step: &Step,
    to: &To<'_>,
) -> Result<Option<DriverEvent>, ReplayError> {
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
            let end = bindings.inputs.partition_point(|(id, _)| id <= data);
            let given = bindings.inputs[..end].last().filter(|(id, _)| id == data).map(|(_, bytes)| bytes);
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
            image_commands::read(to, values.mem(src.view)?, area, &bindings.slots[result.index()])
        }
        Op::Read { src, result, .. } => enqueue::read(to, values.at(src)?, &bindings.slots[result.index()]),
    };
    Ok(event?)
}

/// Calls the function of a native command, which enqueues. Markers before and after it wait for events and return them,
/// if needed.
#[cold]
fn native(values: &Values, command: NativeId, step: &Step, to: &To<'_>) -> Result<Option<DriverEvent>, ReplayError> {
    if !to.waits.is_empty() {
        enqueue::marker(to.queue, to.waits)?;
    }
    let tables = &*values.tables;
    let _inside = ReentrancyGuard::native_command();
    let outcome = tables.natives[command.index()].enqueue(&NativeQueue::new(to.queue, tables, step.node));
    outcome.map_err(|text| ReplayError::Native(text.into()))?;
    Ok(if to.event { Some(enqueue::last_marker(to.queue)?) } else { None })
}
