//! A submission's way to the queue: part by part, each by its path.

use std::ops::Range;
use std::sync::Arc;

use super::native::Recorded;
use super::{Inner, replay};
use crate::cl::command_buffer::NotEnqueued;
use crate::cl::enqueue::{self, To, Waits};
use crate::cl::event::Event;
use crate::cl::host::{HostBytes, Slot};
use crate::cl::queue::Queue;
use crate::error::{DriverError, SubmitError};
use crate::ir::DataId;
use crate::plan::Path;

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

/// The events of the first and of the last command or command buffer. With one in all they are the same.
#[derive(Debug, Default)]
pub(super) struct Ends {
    pub(super) first: Option<Event>,
    pub(super) last: Option<Event>,
}

/// A walk that came to an error.
#[derive(Debug)]
pub(super) struct Stopped {
    pub(super) error: SubmitError,
    /// Whether commands may have been enqueued before. They will run.
    pub(super) under_way: bool,
}

/// Where commands go, and the events that the walk has gathered.
struct Walk<'a> {
    exec: &'a Inner,
    hands: &'a Hands,
    queue: &'a Queue,
    waits: &'a Waits,
    want: Want,
    ends: Ends,
}

/// Enqueues everything on an in-order queue, the first command behind `waits`. What is native goes by the command buffers
/// given, or by replay without them.
pub(super) fn enqueue(
    exec: &Inner,
    recorded: Option<&Recorded>,
    hands: &Hands,
    queue: &Queue,
    waits: &Waits,
    want: Want,
) -> Result<Ends, Stopped> {
    if exec.plan.steps.is_empty() {
        // Nothing to run; the order of the queue and the events to wait for still count.
        let last = enqueue::marker(queue, waits)
            .map_err(|error| Stopped { error: SubmitError::Driver(error), under_way: false })?;
        return Ok(Ends { first: None, last: Some(last) });
    }
    let mut walk = Walk { exec, hands, queue, waits, want, ends: Ends::default() };
    let mut buffers = recorded.map(|recorded| recorded.buffers().iter());
    for segment in &exec.plan.segments {
        match (segment.path, recorded, &mut buffers) {
            (Path::Native, Some(recorded), Some(buffers)) => {
                for (chunk, buffer) in segment.chunks().zip(buffers) {
                    let not_now = walk.command(chunk.clone(), |to| match buffer.enqueue(to) {
                        Ok(event) => Ok((event, None)),
                        Err(NotEnqueued::NotNow(error)) => Ok((None, Some(error))),
                        Err(NotEnqueued::Failed(error)) => Err(error),
                    })?;
                    if let Some(error) = not_now {
                        recorded.tell_once(&error);
                        walk.replay(chunk)?;
                    }
                }
            }
            _ => walk.replay(segment.steps.clone())?,
        }
    }
    Ok(walk.ends)
}

impl Walk<'_> {
    /// Enqueues steps one by one.
    #[inline]
    fn replay(&mut self, steps: Range<usize>) -> Result<(), Stopped> {
        let (exec, hands) = (self.exec, self.hands);
        for index in steps {
            let action = &exec.plan.steps[index].action;
            self.command(index..index + 1, |to| Ok((replay::enqueue(exec, hands, action, to)?, ())))?;
        }
        Ok(())
    }

    /// Enqueues one thing that does some steps, and keeps its event if it is wanted.
    #[inline]
    fn command<T>(
        &mut self,
        steps: Range<usize>,
        enqueue: impl FnOnce(&To<'_>) -> Result<(Option<Event>, T), DriverError>,
    ) -> Result<T, Stopped> {
        let all = &self.exec.plan.steps;
        let (is_first, is_last) = (steps.start == 0, steps.end == all.len());
        let waits = if is_first { self.waits } else { &Waits::NONE };
        let event = (is_last && self.want.last) || (is_first && self.want.first && !is_last);
        match enqueue(&To { queue: self.queue, waits, event }) {
            Ok((event, rest)) => {
                if is_last {
                    self.ends.last = event;
                } else if event.is_some() {
                    self.ends.first = event;
                }
                Ok(rest)
            }
            Err(source) => {
                let (node, enqueued, total) = (self.exec.node(all[steps.start].node), steps.start, all.len());
                let error = SubmitError::Enqueue { node, enqueued, total, source };
                // A command buffer that failed may have enqueued some of its commands.
                Err(Stopped { error, under_way: !is_first || steps.len() > 1 })
            }
        }
    }
}
