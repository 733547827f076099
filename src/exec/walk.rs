//! A submission's way to the queue: part by part, each by its path.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::Inner;
use super::external::External;
use super::native::{Chunk, Recorded};
use super::profile::Log;
use super::replay::{self, Refused};
use super::values::Values;
use crate::cl::command_buffer::NotEnqueued;
use crate::cl::enqueue::{self, NOTHING, To, Waits};
use crate::cl::event::DriverEvent;
use crate::cl::host::{HostBytes, Slot};
use crate::cl::queue::DriverQueue;
use crate::error::{DriverError, SubmitError};
use crate::ir::{DataId, Op};
use crate::plan::{Part, Path, Why};

/// What a submission brings of its own.
#[derive(Debug, Default)]
pub(super) struct Hands {
    /// By result.
    pub(super) slots: Vec<Arc<Slot>>,
    pub(super) inputs: Inputs,
    /// The external events, by node.
    pub(super) events: Vec<External>,
    /// Where times are taken down. None where nothing is profiled.
    pub(super) log: Option<Arc<Log>>,
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
    pub(super) first: Option<DriverEvent>,
    pub(super) last: Option<DriverEvent>,
    /// The ends of queues beside the one of the last command, which is behind them.
    pub(super) beside: Vec<DriverEvent>,
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
    values: &'a Values,
    hands: &'a Hands,
    queue: &'a DriverQueue,
    waits: &'a Waits,
    want: Want,
    /// The steps that are enqueued.
    part: &'a Part,
    ends: Ends,
}

/// Enqueues a part on an in-order queue, its first command behind `waits`. What is native goes by the command buffers given, or
/// by replay without them.
#[allow(clippy::too_many_arguments)]
pub(super) fn enqueue(
    exec: &Inner,
    values: &Values,
    recorded: Option<&Recorded>,
    hands: &Hands,
    queue: &DriverQueue,
    waits: &Waits,
    want: Want,
    part: &Part,
) -> Result<Ends, Stopped> {
    if part.steps.is_empty() {
        // Nothing ever runs; the order of the queue and the events to wait for still count.
        let last = enqueue::marker(queue, waits)
            .map_err(|error| Stopped { error: SubmitError::Driver(error), under_way: false })?;
        return Ok(Ends { last: Some(last), ..Ends::default() });
    }
    let mut walk = Walk { exec, values, hands, queue, waits, want, part, ends: Ends::default() };
    if want.first && exec.plan.marked {
        // The driver does not tell when the first command starts: a marker before it is complete then.
        walk.mark_start()?;
    }
    for segment in &exec.plan.segments[part.segments.clone()] {
        match (segment.path, recorded) {
            (Path::Native, Some(recorded)) => {
                for chunk in recorded.of(&segment.steps) {
                    let steps = chunk.steps.clone();
                    if chunk.replayed {
                        walk.replay(steps)?;
                    } else if let Some(not_now) = walk.chunk(steps.clone(), chunk)? {
                        if segment.why == Why::OnlyRecorded {
                            let under_way = steps.start > part.steps.start;
                            return Err(walk.stopped(steps, not_now, under_way));
                        }
                        recorded.tell_once(&not_now);
                        walk.replay(steps)?;
                    }
                }
            }
            _ => walk.replay(segment.steps.clone())?,
        }
    }
    Ok(walk.ends)
}

impl Walk<'_> {
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
        let inner = self.part.steps.start + 1..self.part.steps.end.saturating_sub(1);
        let is_quiet = self.hands.log.is_none();
        for index in steps {
            if is_quiet && inner.contains(&index) {
                match replay::launch(values, index, &plan.steps[index], self.queue) {
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(source) => return Err(self.stopped(index..index + 1, source, true)),
                }
            }
            if self.hands.log.is_some() {
                let is_native = matches!(self.values.op(&self.exec.plan.steps[index]), Op::Native { .. });
                self.prepare(index, is_native)?;
            }
            let to = self.to(index..index + 1);
            match replay::enqueue(self.values, self.hands, index, &self.exec.plan.steps[index], &to) {
                Ok(event) => self.took(index..index + 1, event),
                Err(Refused::Driver(source)) => {
                    return Err(self.stopped(index..index + 1, source, index > self.part.steps.start));
                }
                Err(Refused::Native(text)) => {
                    let origin = self.exec.origins.of(self.exec.plan.steps[index].node);
                    let error = SubmitError::NativeCommand { node: self.exec.node(origin.node), text: text.into() };
                    return Err(Stopped { error, under_way: true });
                }
            }
        }
        Ok(())
    }

    /// Takes down when a step is about to be enqueued, behind a marker where its event will not tell when it starts: what a native
    /// command enqueues is between two markers, and the event of a command buffer tells its end only (PoCL 3.1 to 6.0, Intel's CPU
    /// runtime).
    #[cold]
    fn prepare(&mut self, index: usize, marked: bool) -> Result<(), Stopped> {
        let Some(log) = &self.hands.log else { return Ok(()) };
        let (mut start, before) = (None, Instant::now());
        if marked {
            let is_first = index == self.part.steps.start;
            let marker = enqueue::marker(self.queue, if is_first { self.waits } else { &NOTHING });
            let marker = marker.map_err(|source| self.stopped(index..index + 1, source, !is_first))?;
            start = Some((marker, (before, Instant::now())));
            self.waits = &NOTHING;
        }
        log.begin(start);
        Ok(())
    }

    /// Enqueues the command buffer of some steps, or tells why it cannot run now: then nothing was enqueued.
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
            // Some of its commands may be under way.
            Err(NotEnqueued::Failed(source)) => Err(self.stopped(steps, source, true)),
        }
    }

    fn to(&self, steps: Range<usize>) -> To<'_> {
        let (is_first, is_last) = (steps.start == self.part.steps.start, steps.end == self.part.steps.end);
        let event =
            (is_last && self.want.last) || (is_first && self.want.first && !is_last) || self.hands.log.is_some();
        To { queue: self.queue, waits: if is_first { self.waits } else { &NOTHING }, event }
    }

    fn took(&mut self, steps: Range<usize>, event: Option<DriverEvent>) {
        if let (Some(log), Some(event)) = (&self.hands.log, &event) {
            log.took(self.values, &self.exec.plan, steps.start, event);
        }
        if steps.end == self.part.steps.end {
            self.ends.last = event;
        } else if steps.start == self.part.steps.start && event.is_some() && self.want.first {
            self.ends.first = event;
        }
    }

    fn stopped(&self, steps: Range<usize>, source: DriverError, under_way: bool) -> Stopped {
        let (all, own) = (&self.exec.plan.steps, &self.part.steps);
        let origin = self.exec.origins.of(all[steps.start].node);
        let (node, commands) = (self.exec.node(origin.node), steps.len());
        let error =
            SubmitError::Enqueue { node, commands, enqueued: steps.start - own.start, total: own.len(), source };
        Stopped { error, under_way: under_way || self.ends.first.is_some() }
    }
}
