//! Enqueues a submission: partition by partition, each segment by its path.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use crate::cl::commands::enqueue::{self, NOTHING, To, Waits};
use crate::cl::memory::host::{HostBytes, Slot};
use crate::cl::objects::command_buffer::NotEnqueued;
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::queue::DriverQueue;
use crate::command::Command;
use crate::error::{DriverError, SubmitError};
use crate::exec::Inner;
use crate::exec::build::record::{Chunk, Recorded};
use crate::exec::build::values::Values;
use crate::exec::report::profile::Log;
use crate::exec::submit::external_events::External;
use crate::exec::submit::replay::{self, ReplayError};
use crate::ir::DataId;
use crate::plan::{Partition, Path, PathReason};

/// What a submission brings of its own: slots, events, inputs.
#[derive(Debug, Default)]
pub(in crate::exec) struct SubmissionBindings {
    /// By result.
    pub(in crate::exec) slots: Vec<Arc<Slot>>,
    pub(in crate::exec) inputs: Inputs,
    /// The external events, by node.
    pub(in crate::exec) events: Vec<External>,
    /// Where times are recorded. None if nothing is profiled.
    pub(in crate::exec) log: Option<Arc<Log>>,
}

/// Data in place of the executable's own, sorted by id. The last one for an id counts.
pub(in crate::exec) type Inputs = Vec<(DataId, HostBytes)>;

/// Which events are wanted.
#[derive(Clone, Copy, Debug)]
pub(in crate::exec) struct Want {
    pub(in crate::exec) first: bool,
    pub(in crate::exec) last: bool,
}

/// The events of the first and of the last command or command buffer. With one in all they are the same.
#[derive(Debug, Default)]
pub(in crate::exec) struct Ends {
    pub(in crate::exec) first: Option<DriverEvent>,
    pub(in crate::exec) last: Option<DriverEvent>,
    /// The ends of queues besides the one of the last command, which is after them.
    pub(in crate::exec) beside: Vec<DriverEvent>,
}

/// An error during the enqueue.
#[derive(Debug)]
pub(in crate::exec) struct Stopped {
    pub(in crate::exec) error: SubmitError,
    /// Whether commands may have been enqueued before the error. They will run.
    pub(in crate::exec) under_way: bool,
}

/// The queue that commands go to, and the events that were collected.
struct Submitter<'a> {
    exec: &'a Inner,
    values: &'a Values,
    bindings: &'a SubmissionBindings,
    queue: &'a DriverQueue,
    waits: &'a Waits,
    want: Want,
    /// The steps that are enqueued.
    partition: &'a Partition,
    ends: Ends,
}

/// Enqueues a partition on an in-order queue, its first command after `waits`. Native segments use the command buffers
/// that are given; without these they are replayed.
#[allow(clippy::too_many_arguments)]
pub(in crate::exec) fn enqueue(
    exec: &Inner,
    values: &Values,
    recorded: Option<&Recorded>,
    bindings: &SubmissionBindings,
    queue: &DriverQueue,
    waits: &Waits,
    want: Want,
    partition: &Partition,
) -> Result<Ends, Stopped> {
    if partition.steps.is_empty() {
        // Nothing ever runs; the order of the queue and the events to wait for still count.
        let last = enqueue::marker(queue, waits)
            .map_err(|error| Stopped { error: SubmitError::Driver(error), under_way: false })?;
        return Ok(Ends { last: Some(last), ..Ends::default() });
    }
    let mut submitter = Submitter { exec, values, bindings, queue, waits, want, partition, ends: Ends::default() };
    if want.first && exec.plan.marked {
        // The driver does not report when the first command starts: a marker before it is complete then.
        submitter.mark_start()?;
    }
    for segment in &exec.plan.segments[partition.segments.clone()] {
        match (segment.path, recorded) {
            (Path::Native, Some(recorded)) => {
                for chunk in recorded.of(&segment.steps) {
                    let steps = chunk.steps.clone();
                    if chunk.replayed {
                        submitter.replay(steps)?;
                    } else if let Some(not_now) = submitter.chunk(steps.clone(), chunk)? {
                        if segment.why == PathReason::OnlyRecorded {
                            let under_way = steps.start > partition.steps.start;
                            return Err(submitter.stopped(steps, not_now, under_way));
                        }
                        recorded.log_once(&not_now);
                        submitter.replay(steps)?;
                    }
                }
            }
            _ => submitter.replay(segment.steps.clone())?,
        }
    }
    Ok(submitter.ends)
}

impl Submitter<'_> {
    /// Takes an event that is complete when the first command may start.
    fn mark_start(&mut self) -> Result<(), Stopped> {
        let first = enqueue::marker(self.queue, self.waits)
            .map_err(|error| Stopped { error: SubmitError::Driver(error), under_way: false })?;
        self.ends.first = Some(first);
        self.want.first = false;
        self.waits = &NOTHING;
        Ok(())
    }

    /// Enqueues steps one by one.
    #[inline]
    fn replay(&mut self, steps: Range<usize>) -> Result<(), Stopped> {
        let (values, plan) = (self.values, &self.exec.plan);
        let inner = self.partition.steps.start + 1..self.partition.steps.end.saturating_sub(1);
        let is_quiet = self.bindings.log.is_none();
        for index in steps {
            if is_quiet && inner.contains(&index) {
                match replay::launch(values, index, &plan.steps[index], self.queue) {
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(source) => return Err(self.stopped(index..index + 1, source, true)),
                }
            }
            if self.bindings.log.is_some() {
                let is_native = matches!(self.values.command(&self.exec.plan.steps[index]), Command::Native { .. });
                self.prepare(index, is_native)?;
            }
            let to = self.to(index..index + 1);
            match replay::enqueue(self.values, self.bindings, index, &self.exec.plan.steps[index], &to) {
                Ok(event) => self.took(index..index + 1, event),
                Err(ReplayError::Driver(source)) => {
                    return Err(self.stopped(index..index + 1, source, index > self.partition.steps.start));
                }
                Err(ReplayError::Native(text)) => {
                    let origin = self.exec.origins.of(self.exec.plan.steps[index].node);
                    let error = SubmitError::NativeCommand { node: self.exec.node(origin.node), text: text.into() };
                    return Err(Stopped { error, under_way: true });
                }
            }
        }
        Ok(())
    }

    /// Records that a step is about to be enqueued, after a marker if its event will not report when it starts. That is
    /// so for a native command, which may enqueue several commands, and for a command buffer, whose event reports only
    /// the end (PoCL 3.1 to 6.0, Intel's CPU runtime).
    #[cold]
    fn prepare(&mut self, index: usize, marked: bool) -> Result<(), Stopped> {
        let Some(log) = &self.bindings.log else { return Ok(()) };
        let (mut start, before) = (None, Instant::now());
        if marked {
            let is_first = index == self.partition.steps.start;
            let marker = enqueue::marker(self.queue, if is_first { self.waits } else { &NOTHING });
            let marker = marker.map_err(|source| self.stopped(index..index + 1, source, !is_first))?;
            start = Some((marker, (before, Instant::now())));
            self.waits = &NOTHING;
        }
        log.begin(start);
        Ok(())
    }

    /// Enqueues the command buffer of some steps. Returns an error if it cannot run now: then nothing was enqueued.
    fn chunk(&mut self, steps: Range<usize>, chunk: &Chunk) -> Result<Option<DriverError>, Stopped> {
        self.prepare(steps.start, chunk.buffer.is_some())?;
        let to = self.to(steps.clone());
        let outcome = match &chunk.buffer {
            Some(buffer) => buffer.enqueue(&to),
            None => enqueue::nothing(&to).map_err(NotEnqueued::Failed),
        };
        match outcome {
            Ok(event) => {
                self.took(steps, event);
                Ok(None)
            }
            Err(NotEnqueued::NotNow(error)) => Ok(Some(error)),
            // Some of its commands may run.
            Err(NotEnqueued::Failed(source)) => Err(self.stopped(steps, source, true)),
        }
    }

    fn to(&self, steps: Range<usize>) -> To<'_> {
        let (is_first, is_last) = (steps.start == self.partition.steps.start, steps.end == self.partition.steps.end);
        let event =
            (is_last && self.want.last) || (is_first && self.want.first && !is_last) || self.bindings.log.is_some();
        To { queue: self.queue, waits: if is_first { self.waits } else { &NOTHING }, event }
    }

    fn took(&mut self, steps: Range<usize>, event: Option<DriverEvent>) {
        if let (Some(log), Some(event)) = (&self.bindings.log, &event) {
            log.took(self.values, &self.exec.plan, steps.start, event);
        }
        if steps.end == self.partition.steps.end {
            self.ends.last = event;
        } else if steps.start == self.partition.steps.start && event.is_some() && self.want.first {
            self.ends.first = event;
        }
    }

    fn stopped(&self, steps: Range<usize>, source: DriverError, under_way: bool) -> Stopped {
        let (all, own) = (&self.exec.plan.steps, &self.partition.steps);
        let origin = self.exec.origins.of(all[steps.start].node);
        let (node, commands) = (self.exec.node(origin.node), steps.len());
        let error =
            SubmitError::Enqueue { node, commands, enqueued: steps.start - own.start, total: own.len(), source };
        Stopped { error, under_way: under_way || self.ends.first.is_some() }
    }
}
