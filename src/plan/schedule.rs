//! The schedule, which is what a submission does as flat data.
//!
//! A schedule is a list of instructions over one or several *streams*, which are in-order queues. Host tasks divide it into
//! *blocks*, one for each partition: a block is carried out without a pause, once all of its tasks have succeeded. So a
//! position at which a submission goes on is the start of a block. The interpreter (`exec/submit/interpreter.rs`) carries
//! instructions out, and decides nothing.

use std::ops::Range;

use super::streams::Streams;
use super::{Partition, Path, PathReason, Segment, TaskPlan};

/// What a submission does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    pub(crate) instructions: Vec<Instruction>,
    /// What comes before all blocks. Empty with one stream.
    pub(crate) begin: Range<usize>,
    /// By partition.
    pub(crate) blocks: Vec<Range<usize>>,
    /// What comes after all blocks. Empty with one stream.
    pub(crate) end: Range<usize>,
    pub(crate) streams: usize,
    /// The number of events that are kept.
    pub(crate) events: usize,
    /// By host task: the events that must be complete.
    pub(crate) tasks: Vec<Vec<u32>>,
}

/// One step of a submission. Streams and events are numbers from 0 on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Instruction {
    /// Enqueues steps one by one. If there is an event, it is the last step's.
    Run { stream: usize, steps: Range<usize>, event: Option<usize> },
    /// Enqueues the command buffers of some steps. Where there are none, and where one cannot run now, it enqueues the
    /// steps one by one, unless they can `only` be recorded.
    Native { stream: usize, steps: Range<usize>, event: Option<usize>, only: bool },
    /// The next command of the stream waits for an event of another stream.
    Wait { stream: usize, event: usize },
    /// Enqueues a barrier: nothing after it on the stream begins before what it waits for is complete.
    Barrier { stream: usize, event: Option<usize> },
}

impl Schedule {
    /// The schedule with one stream: its order is that of all edges.
    pub(super) fn on_one_stream(segments: &[Segment], partitions: &[Partition], tasks: &[TaskPlan]) -> Self {
        let (mut instructions, mut blocks) = (Vec::new(), Vec::with_capacity(partitions.len()));
        // With host tasks each block has an event.
        let event_of = |partition: usize| (!tasks.is_empty()).then_some(partition);
        for (at, partition) in partitions.iter().enumerate() {
            let start = instructions.len();
            for segment in &segments[partition.segments.clone()] {
                let (stream, steps) = (0, segment.steps.clone());
                let event = event_of(at).filter(|_| steps.end == partition.steps.end);
                instructions.push(match segment.path {
                    Path::Native => {
                        let only = segment.why == PathReason::OnlyRecorded;
                        Instruction::Native { stream, steps, event, only }
                    }
                    _ => Instruction::Run { stream, steps, event },
                });
            }
            blocks.push(start..instructions.len());
        }
        let events = if tasks.is_empty() { 0 } else { partitions.len() };
        let tasks = tasks.iter().map(|task| task.commands.clone()).collect();
        Self { instructions, begin: 0..0, blocks, end: 0..0, streams: 1, events, tasks }
    }

    /// The schedule with several streams.
    pub(super) fn on_streams(streams: &Streams, partitions: &[Partition], tasks: usize) -> Self {
        const BEGIN: usize = 0;
        let mut numbers = vec![None; streams.steps()];
        let mut events = BEGIN + 1;
        let waited = (0..streams.steps()).flat_map(|step| streams.waits(step)).chain(streams.ends());
        for step in waited.chain((0..tasks).flat_map(|task| streams.task_waits(task))) {
            if numbers[step].is_none() {
                numbers[step] = Some(events);
                events += 1;
            }
        }
        let event_of = |step: usize| numbers[step].unwrap_or(BEGIN);
        let mut instructions = vec![Instruction::Barrier { stream: 0, event: Some(BEGIN) }];
        let mut blocks = Vec::with_capacity(partitions.len());
        let mut begun = vec![false; streams.count()];
        begun[0] = true;
        for partition in partitions {
            let start = instructions.len();
            for step in partition.steps.clone() {
                let stream = streams.stream(step);
                if !std::mem::replace(&mut begun[stream], true) {
                    instructions.push(Instruction::Wait { stream, event: BEGIN });
                }
                instructions.extend(streams.waits(step).map(|of| Instruction::Wait { stream, event: event_of(of) }));
                match instructions[start..].last_mut() {
                    Some(Instruction::Run { stream: same, steps, event: event @ None }) if *same == stream => {
                        (steps.end, *event) = (step + 1, numbers[step]);
                    }
                    _ => instructions.push(Instruction::Run { stream, steps: step..step + 1, event: numbers[step] }),
                }
            }
            blocks.push(start..instructions.len());
        }
        let start = instructions.len();
        instructions.extend(streams.ends().map(|step| Instruction::Wait { stream: 0, event: event_of(step) }));
        instructions.push(Instruction::Barrier { stream: 0, event: None });
        let tasks =
            (0..tasks).map(|task| streams.task_waits(task).map(|step| event_of(step) as u32).collect()).collect();
        let end = start..instructions.len();
        Self { instructions, begin: 0..1, blocks, end, streams: streams.count(), events, tasks }
    }
}
