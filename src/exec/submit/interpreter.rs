//! The interpreter: carries out the instructions of a schedule, block by block.
//!
//! It enqueues and never waits. Streams are in-order queues: the first is the queue that the submission is enqueued on, the
//! others are the executable's own. A queue whose commands another queue waits for is flushed, as OpenCL requires, by the
//! caller, without a lock.

use std::ops::Range;
use std::time::Instant;

use crate::cl::commands::enqueue::{self, NOTHING, To, Waits};
use crate::cl::objects::command_buffer::NotEnqueued;
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::queue::DriverQueue;
use crate::command::Command;
use crate::error::{DriverError, DriverFault, SubmitError};
use crate::exec::build::guards::Guard;
use crate::exec::build::record::Chunk;
use crate::exec::finalized::Finalized;
use crate::exec::submit::bindings::SubmissionBindings;
use crate::exec::submit::replay::{self, ReplayError};
use crate::exec::submit::snapshot::Snapshot;
use crate::plan::{Flow, Instruction, Path, Schedule};

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
    pub(in crate::exec) other_ends: Vec<DriverEvent>,
}

/// An error during the enqueue.
#[derive(Debug)]
pub(in crate::exec) struct Stopped {
    pub(in crate::exec) error: SubmitError,
    /// Whether commands may have been enqueued before the error. They will run.
    pub(in crate::exec) under_way: bool,
}

/// What a submission keeps between instructions, and between blocks. Most submissions keep nothing.
#[derive(Debug)]
pub(in crate::exec) struct StreamEvents {
    /// By number.
    events: Vec<Option<DriverEvent>>,
    /// On several streams: what the next command of each waits for. Empty with one stream.
    pending: Vec<Waits>,
}

impl StreamEvents {
    /// Returns an event, if its command was enqueued.
    pub(in crate::exec) fn event(&self, number: usize) -> Option<&DriverEvent> {
        self.events.get(number)?.as_ref()
    }
}

/// A submission in the course of being carried out.
pub(in crate::exec) struct Interpreter<'a> {
    exec: &'a Finalized,
    snapshot: &'a Snapshot,
    bindings: &'a SubmissionBindings,
    flow: &'a Flow,
    schedule: &'a Schedule,
    queue: &'a DriverQueue,
    /// The steps that are enqueued together, for the first and last event and for error texts.
    steps: Range<usize>,
    want: Want,
    /// What the first command of the submission waits for, until that is enqueued.
    waits: &'a Waits,
    kept: Option<&'a mut StreamEvents>,
    /// Whether anything was enqueued.
    under_way: bool,
    ends: Ends,
    /// The loop whose turn is enqueued ahead: its commands have guards.
    guard: Option<&'a Guard>,
}

impl Snapshot {
    /// Returns the schedule of the snapshot's strategy.
    pub(in crate::exec) fn schedule<'a>(&self, exec: &'a Finalized) -> &'a Schedule {
        let on_streams = exec.plan.on_streams.as_ref().filter(|_| self.strategy.path == Path::Queues);
        on_streams.unwrap_or(&exec.plan.main().schedule)
    }

    /// Returns the schedule of a flow.
    pub(in crate::exec) fn schedule_of<'a>(&self, exec: &'a Finalized, flow: usize) -> &'a Schedule {
        if flow == 0 { self.schedule(exec) } else { &exec.plan.flows[flow].schedule }
    }

    /// Returns room for the events that a schedule keeps.
    pub(in crate::exec) fn events_of(&self, schedule: &Schedule) -> Option<Box<StreamEvents>> {
        if schedule.events == 0 {
            return None;
        }
        let (mut events, mut pending) = (Vec::new(), Vec::new());
        events.resize_with(schedule.events, || None);
        if schedule.streams > 1 {
            pending.resize_with(schedule.streams, || Waits::NONE);
        }
        Some(Box::new(StreamEvents { events, pending }))
    }
}

impl<'a> Interpreter<'a> {
    /// Prepares to enqueue a partition, or with `None` what comes before or after all partitions. The first command of
    /// the first stream waits for `waits`.
    pub(in crate::exec) fn new(
        exec: &'a Finalized,
        snapshot: &'a Snapshot,
        bindings: &'a SubmissionBindings,
        queue: &'a DriverQueue,
        waits: &'a Waits,
        want: Want,
        kept: Option<&'a mut StreamEvents>,
    ) -> Self {
        let (flow, schedule) = (exec.plan.main(), snapshot.schedule(exec));
        let (ends, steps) = (Ends::default(), flow.steps.clone());
        let (under_way, guard) = (false, None);
        Self { exec, snapshot, bindings, flow, schedule, queue, steps, want, waits, kept, under_way, ends, guard }
    }

    /// Carries out something of another flow than that of the graph itself.
    pub(in crate::exec) fn through(mut self, flow: usize) -> Self {
        (self.flow, self.schedule) = (&self.exec.plan.flows[flow], self.snapshot.schedule_of(self.exec, flow));
        self
    }

    /// Carries out a turn of a loop that may have ended: see [`Guard`].
    pub(in crate::exec) fn guarded(mut self, guard: Option<&'a Guard>) -> Self {
        self.guard = guard;
        self
    }

    /// Carries out everything, in a schedule without host tasks.
    pub(in crate::exec) fn all(mut self) -> Result<Ends, Stopped> {
        if self.steps.is_empty() {
            // Nothing ever runs; the order of the queue and the events to wait for still count.
            let last = enqueue::marker(self.queue, self.waits)
                .map_err(|error| Stopped { error: SubmitError::Driver(error), under_way: false })?;
            return Ok(Ends { last: Some(last), ..Ends::default() });
        }
        self.mark_start()?;
        self.carry_out(0..self.schedule.instructions.len())?;
        Ok(self.ends)
    }

    /// Carries out a block, after others of the same submission.
    pub(in crate::exec) fn block(mut self, block: usize) -> Result<Ends, Stopped> {
        self.steps = self.flow.partitions[block].steps.clone();
        self.mark_start()?;
        self.carry_out(self.schedule.blocks[block].clone())?;
        Ok(self.ends)
    }

    /// Carries out what comes before all blocks.
    pub(in crate::exec) fn before_blocks(mut self) -> Result<Ends, Stopped> {
        self.carry_out(self.schedule.begin.clone())?;
        Ok(self.ends)
    }

    /// Carries out what comes after all blocks.
    pub(in crate::exec) fn after_blocks(mut self) -> Result<Ends, Stopped> {
        self.carry_out(self.schedule.end.clone())?;
        Ok(self.ends)
    }

    /// Makes an event that is complete when the first command starts, where the driver does not report that.
    #[inline]
    fn mark_start(&mut self) -> Result<(), Stopped> {
        if self.schedule.streams == 1 && self.want.first && self.exec.plan.marked {
            // It is complete when the first command may start.
            let first = enqueue::marker(self.queue, self.waits)
                .map_err(|error| Stopped { error: SubmitError::Driver(error), under_way: self.under_way })?;
            (self.ends.first, self.want.first, self.under_way, self.waits) = (Some(first), false, true, &NOTHING);
        }
        Ok(())
    }

    /// Carries out some instructions.
    #[inline]
    fn carry_out(&mut self, instructions: Range<usize>) -> Result<(), Stopped> {
        for instruction in &self.schedule.instructions[instructions] {
            match instruction {
                Instruction::Run { stream, steps, event } => self.run(*stream, steps.clone(), *event)?,
                Instruction::Native { stream, steps, event, only } => self.native(*stream, steps, *event, *only)?,
                Instruction::Wait { stream, event } => self.wait(*stream, *event)?,
                Instruction::Barrier { stream, event } => self.barrier(*stream, *event)?,
            }
        }
        Ok(())
    }

    fn queue(&self, stream: usize) -> &'a DriverQueue {
        let snapshot = self.snapshot;
        if stream == 0 { self.queue } else { &snapshot.others[stream - 1] }
    }

    /// Returns what the next command of a stream waits for. `own` keeps the list.
    #[inline]
    fn take_waits<'w>(&mut self, stream: usize, own: &'w mut Waits) -> &'w Waits
    where
        'a: 'w,
    {
        match self.kept.as_mut().and_then(|kept| kept.pending.get_mut(stream)) {
            // What the first command waits for is in the barrier at the begin.
            Some(pending) => {
                *own = std::mem::take(pending);
                own
            }
            None => std::mem::replace(&mut self.waits, &NOTHING),
        }
    }

    /// The next command of a stream waits for an event.
    fn wait(&mut self, stream: usize, event: usize) -> Result<(), Stopped> {
        // What a block waits for is enqueued before the block: see `Partitions::follows`.
        let missing = || DriverError::faulty("a wait for a command that was not enqueued", DriverFault::Defect);
        let event = self.kept.as_ref().and_then(|kept| kept.event(event)).cloned();
        let event = event.ok_or_else(|| self.stopped(self.steps.end..self.steps.end, missing()))?;
        if let Some(pending) = self.kept.as_mut().and_then(|kept| kept.pending.get_mut(stream)) {
            pending.push(event);
        }
        Ok(())
    }

    fn barrier(&mut self, stream: usize, event: Option<usize>) -> Result<(), Stopped> {
        let mut own = Waits::NONE;
        let waits = match event {
            Some(_) => self.waits,
            None => self.take_waits(stream, &mut own),
        };
        let barrier = enqueue::barrier(self.queue(stream), waits);
        let barrier = barrier.map_err(|source| match self.under_way {
            true => self.stopped(self.steps.end..self.steps.end, source),
            false => Stopped { error: SubmitError::Driver(source), under_way: false },
        })?;
        match event {
            Some(event) => {
                self.ends.first.get_or_insert_with(|| barrier.clone());
                self.keep(event, barrier);
            }
            None => (self.ends.last, self.ends.other_ends) = (Some(barrier), own.into_events()),
        }
        self.under_way = true;
        Ok(())
    }

    fn keep(&mut self, number: usize, event: DriverEvent) {
        if let Some(place) = self.kept.as_mut().and_then(|kept| kept.events.get_mut(number)) {
            *place = Some(event);
        }
    }

    /// Enqueues steps one by one.
    #[inline]
    fn run(&mut self, stream: usize, steps: Range<usize>, event: Option<usize>) -> Result<(), Stopped> {
        let (values, plan, queue) = (&*self.snapshot.values, &self.exec.plan, self.queue(stream));
        // Steps that wait for nothing, and whose end nobody asks for.
        let inner = match self.bindings.log {
            None => steps.start + 1..steps.end.saturating_sub(1),
            Some(_) => 0..0,
        };
        let mut next = steps.start;
        while next < steps.end {
            if inner.contains(&next) {
                next = replay::launches(values, &plan.steps, next..inner.end, queue)
                    .map_err(|(index, source)| self.stopped(index..index + 1, source))?;
            }
            let index = next;
            next += 1;
            if self.bindings.log.is_some() {
                let is_native = matches!(values.command(&plan.steps[index]), Command::Native { .. });
                self.log_begin(stream, index, is_native)?;
            }
            let event = event.filter(|_| index + 1 == steps.end);
            let mut own = Waits::NONE;
            let waits = self.take_waits(stream, &mut own);
            let to = To { queue, waits, event: self.wants_event(stream, index..index + 1, event) };
            let step = &plan.steps[index];
            let guarded = self.guard.and_then(|guard| guard.enqueue(values, index, values.command(step), &to));
            let taken = match guarded {
                Some(taken) => taken.map_err(ReplayError::Driver),
                None => replay::enqueue(values, self.bindings, index, step, &to),
            };
            match taken {
                Ok(taken) => self.took(stream, index..index + 1, event, taken)?,
                Err(ReplayError::Driver(source)) => return Err(self.stopped(index..index + 1, source)),
                Err(ReplayError::Native(text)) => {
                    let origin = self.exec.origins.of(plan.steps[index].node);
                    let error = SubmitError::NativeCommand { node: self.exec.node(origin.node), text: text.into() };
                    return Err(Stopped { error, under_way: true });
                }
            }
        }
        Ok(())
    }

    /// Enqueues the command buffers of steps, or the steps one by one where there are none, unless they can `only` be
    /// recorded.
    fn native(&mut self, stream: usize, steps: &Range<usize>, event: Option<usize>, only: bool) -> Result<(), Stopped> {
        // What is recorded has no guards, beside kernels.
        let Some(recorded) = self.snapshot.recorded.as_ref().filter(|_| self.guard.is_none()) else {
            return self.run(stream, steps.clone(), event);
        };
        for chunk in recorded.of(steps) {
            let event = event.filter(|_| chunk.steps.end == steps.end);
            if chunk.replayed {
                self.run(stream, chunk.steps.clone(), event)?;
            } else if let Some(not_now) = self.chunk(stream, chunk, event)? {
                if only {
                    return Err(self.stopped(chunk.steps.clone(), not_now));
                }
                recorded.log_once(&not_now);
                self.run(stream, chunk.steps.clone(), event)?;
            }
        }
        Ok(())
    }

    /// Enqueues a command buffer. Returns an error if it cannot run now: then nothing was enqueued.
    fn chunk(&mut self, stream: usize, chunk: &Chunk, event: Option<usize>) -> Result<Option<DriverError>, Stopped> {
        let steps = chunk.steps.clone();
        self.log_begin(stream, steps.start, chunk.buffer.is_some())?;
        let (first, mut own) = (self.waits, Waits::NONE);
        let waits = self.take_waits(stream, &mut own);
        let to = To { queue: self.queue(stream), waits, event: self.wants_event(stream, steps.clone(), event) };
        let outcome = match &chunk.buffer {
            Some(buffer) => buffer.enqueue(&to),
            None => enqueue::nothing(&to).map_err(NotEnqueued::Failed),
        };
        match outcome {
            Ok(taken) => {
                self.took(stream, steps, event, taken)?;
                Ok(None)
            }
            Err(NotEnqueued::NotNow(error)) => {
                match self.kept.as_mut().and_then(|kept| kept.pending.get_mut(stream)) {
                    Some(pending) => *pending = own,
                    None => self.waits = first,
                }
                Ok(Some(error))
            }
            // Some of its commands may run.
            Err(NotEnqueued::Failed(source)) => {
                self.under_way = true;
                Err(self.stopped(steps, source))
            }
        }
    }

    /// Records that a step is about to be enqueued, after a marker if its event will not report when it starts. That is
    /// so for a native command, which may enqueue several commands, and for a command buffer, whose event reports only
    /// the end (PoCL 3.1 to 6.0, Intel's CPU runtime).
    #[cold]
    fn log_begin(&mut self, stream: usize, index: usize, marked: bool) -> Result<(), Stopped> {
        let Some(log) = &self.bindings.log else { return Ok(()) };
        let (mut start, before) = (None, Instant::now());
        if marked {
            let mut own = Waits::NONE;
            let waits = self.take_waits(stream, &mut own);
            let marker = enqueue::marker(self.queue(stream), waits);
            let marker = marker.map_err(|source| self.stopped(index..index + 1, source))?;
            start = Some((marker, (before, Instant::now())));
            self.under_way = true;
        }
        log.begin(start);
        Ok(())
    }

    /// Returns whether a command needs an event.
    #[inline]
    fn wants_event(&self, stream: usize, steps: Range<usize>, kept: Option<usize>) -> bool {
        let (is_first, is_last) = (steps.start == self.steps.start, steps.end == self.steps.end);
        let end = stream == 0 && self.schedule.streams == 1 && is_last && self.want.last;
        let first = is_first && self.want.first && self.ends.first.is_none() && !is_last;
        kept.is_some() || end || first || self.bindings.log.is_some()
    }

    #[inline(always)]
    fn took(
        &mut self,
        stream: usize,
        steps: Range<usize>,
        kept: Option<usize>,
        mut event: Option<DriverEvent>,
    ) -> Result<(), Stopped> {
        self.under_way = true;
        if let (Some(log), Some(event)) = (&self.bindings.log, &event) {
            let (plan, values) = (&self.exec.plan, &self.snapshot.values);
            log.took(&values.tables.ir, plan, steps.start, values.command(&plan.steps[steps.start]), event);
        }
        if let Some(kept) = kept {
            if event.is_none() {
                // The driver returned no event, although one was asked for. A marker is after the command.
                let marker = enqueue::last_marker(self.queue(stream));
                event = Some(marker.map_err(|source| self.stopped(steps.clone(), source))?);
            }
            event.iter().for_each(|event| self.keep(kept, event.clone()));
        }
        if self.schedule.streams > 1 {
            return Ok(());
        }
        if steps.end == self.steps.end {
            self.ends.last = event;
        } else if steps.start == self.steps.start && event.is_some() && self.want.first {
            self.ends.first = event;
        }
        Ok(())
    }

    #[cold]
    fn stopped(&self, steps: Range<usize>, source: DriverError) -> Stopped {
        let (all, own) = (&self.exec.plan.steps, &self.steps);
        let Some(step) = all.get(steps.start.min(all.len().saturating_sub(1))) else {
            return Stopped { error: SubmitError::Driver(source), under_way: self.under_way };
        };
        let node = self.exec.node(self.exec.origins.of(step.node).node);
        let of_fused = || self.exec.fused_nodes.binary_search_by_key(&step.node, |of| of.at);
        // An empty range is a wait in front of the step.
        let fused = if steps.len() == 1 { of_fused().ok() } else { None };
        let commands = fused.map_or(steps.len().max(1), |at| self.exec.fused_nodes[at].commands.len());
        let (fused, enqueued) = (fused.is_some(), steps.start - own.start);
        let error = SubmitError::Enqueue { node, commands, fused, enqueued, total: own.len(), source };
        Stopped { error, under_way: self.under_way || steps.start > own.start }
    }
}

/// Returns an event that is complete when everything on the queues is, after not all commands could be enqueued. An error
/// means that no such event can be made.
pub(in crate::exec) fn rest(first: &DriverQueue, others: &[DriverQueue]) -> Result<DriverEvent, DriverError> {
    if others.is_empty() {
        return enqueue::last_marker(first);
    }
    let mut list = Waits::NONE;
    for queue in others {
        list.push(enqueue::last_marker(queue)?);
    }
    enqueue::barrier(first, &list).or_else(|_| enqueue::barrier(first, &list))
}
