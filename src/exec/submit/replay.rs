//! The replay path: enqueues a command from what finalize prepared.
//!
//! A command costs its own OpenCL call and nothing else: no allocation, no argument to set, and no event that nothing
//! needs.

use std::ops::Range;

use crate::cl::commands::command;
use crate::cl::commands::enqueue::{self, To};
use crate::cl::completion::reentrancy::ReentrancyGuard;
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::queue::DriverQueue;
use crate::command::Command;
use crate::error::DriverError;
use crate::exec::build::values::{Resolver, Values};
use crate::exec::submit::bindings::SubmissionBindings;
use crate::graph::NativeQueue;
use crate::ir::NativeId;
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

/// Enqueues launches that wait for nothing and need no event: most steps of a submission are such launches. Returns the first step
/// that is another one, or the end. An error comes with the step that the driver refused.
// A function of its own: what the loop needs stays in registers.
#[inline(never)]
pub(in crate::exec) fn launches(
    values: &Values,
    steps: &[Step],
    range: Range<usize>,
    queue: &DriverQueue,
) -> Result<usize, (usize, DriverError)> {
    let plain = enqueue::Plain::on(queue).map_err(|error| (range.start, error))?;
    for index in range.clone() {
        let Command::Kernel { grid, .. } = values.command(&steps[index]) else { return Ok(index) };
        let Some(object) = values.kernel_object(index).filter(|_| !grid.is_empty()) else { return Ok(index) };
        let launched = plain.launch(object, grid.dims, &grid.offset, &grid.global, grid.local.as_ref());
        launched.map_err(|error| (index, error))?;
    }
    Ok(range.end)
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
    match values.command(step) {
        Command::Native { functions, .. } => native(values, *functions, step, to),
        // As `command::enqueue`, without a copy of the range.
        Command::Kernel { grid, .. } if grid.is_empty() => Ok(enqueue::nothing(to)?),
        Command::Kernel { kernel, args, grid, .. } => {
            let object = values.object(index, *kernel, *args)?;
            Ok(enqueue::kernel(to, &object, grid.dims, &grid.offset, &grid.global, grid.local.as_ref())?)
        }
        other => Ok(command::enqueue(to, &other.translate(&mut Resolver { values, bindings: Some(bindings) })?)?),
    }
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
