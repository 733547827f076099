//! Which commands can run side by side, and on which of several in-order queues each goes.
//!
//! A stream is an in-order queue. Commands of one stream are ordered without events. Where an edge leads from one
//! stream to another, a command waits for an event. For each command the pass knows how far every stream has come when
//! the command starts. So a stream never waits twice for the same command, nor for one that another wait implies, nor for
//! one that a host task before it has waited for.
//!
//! Nobody knows in which order partitions run that wait for different host tasks. So a stream has only partitions that
//! follow each other: each waits for all tasks that those before it on the stream wait for. Then the order of each stream
//! is known.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::exclusions::Exclusion;
use super::partitions::{NONE, Partitions, TaskPlan};
use super::{Edges, Step};
use crate::ir::{Ir, NodeId};

/// The largest number of streams.
pub(crate) const MOST: usize = 8;

/// Which streams the commands go to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Streams {
    /// At least two.
    count: usize,
    /// By step.
    of: Vec<OnStream>,
    /// The steps that steps wait for: first those of the first step, then those of the next.
    waits: Vec<u32>,
    /// The last step of each stream, except the first stream, and except steps that another last step is after.
    ends: Vec<u32>,
    /// By host task: the steps that it waits for.
    tasks: Vec<Vec<u32>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct OnStream {
    stream: u8,
    waits: Range<u32>,
}

impl Streams {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn steps(&self) -> usize {
        self.of.len()
    }

    pub(super) fn stream(&self, step: usize) -> usize {
        usize::from(self.of[step].stream)
    }

    /// Returns the steps of other streams that a step waits for.
    pub(super) fn waits(&self, step: usize) -> impl Iterator<Item = usize> + '_ {
        let waits = &self.of[step].waits;
        self.waits[waits.start as usize..waits.end as usize].iter().map(|step| *step as usize)
    }

    /// Returns the steps that must be complete for all to be, besides those of the first stream.
    pub(super) fn ends(&self) -> impl Iterator<Item = usize> + '_ {
        self.ends.iter().map(|step| *step as usize)
    }

    /// Returns the steps that must be complete before a host task begins, besides those that tasks before it wait for.
    pub(super) fn task_waits(&self, task: usize) -> impl Iterator<Item = usize> + '_ {
        self.tasks[task].iter().map(|step| *step as usize)
    }
}

/// How far each stream has come: the last step that matters, counted from 1. 0 if none does.
pub(super) type Clock = [u32; MOST];

/// The streams, and how far they have come.
pub(super) struct Found {
    pub(super) streams: Streams,
    /// By node: what is complete when the node is. For a node without a command, what is complete before it.
    pub(super) clocks: Vec<Clock>,
}

fn join(into: &mut Clock, other: &Clock) {
    into.iter_mut().zip(other).for_each(|(one, other)| *one = (*one).max(*other));
}

/// What is known of a node.
#[derive(Clone, Copy, Default)]
struct Known {
    /// What is complete before it and with it.
    clock: Clock,
    /// What the host has seen complete before it, because host tasks before it have waited for that.
    on_host: Clock,
}

/// Finds the streams. An error says why there is only one.
pub(super) fn streams(
    ir: &Ir,
    order: &[NodeId],
    steps: &[Step],
    edges: &Edges,
    partitions: &Partitions,
    tasks: &[TaskPlan],
) -> Result<Found, Exclusion> {
    let mut preds: Vec<Vec<NodeId>> = Vec::new();
    preds.resize_with(ir.len(), Vec::new);
    for (from, to) in &edges.needed {
        preds[to.index()].push(*from);
    }
    let mut known = vec![Known::default(); ir.len()];
    let mut rows = Rows::default();
    let mut task_waits: FxHashMap<NodeId, Vec<u32>> = FxHashMap::default();
    // Steps after which another step, which had to wait for them, went onto their stream.
    let mut continued = vec![false; steps.len()];
    let mut streams = Streams { of: Vec::with_capacity(steps.len()), ..Streams::default() };
    for node in order {
        let mut now = Known::default();
        for pred in &preds[node.index()] {
            let before = &known[pred.index()];
            join(&mut now.clock, &before.clock);
            join(&mut now.on_host, if ir.command(*pred).is_host() { &before.clock } else { &before.on_host });
        }
        let at = streams.of.len();
        let clock_of = |step: u32| &known[steps[step as usize - 1].node.index()].clock;
        if ir.command(*node).is_host() {
            let needed = needed(&now.clock, streams.count, |other| now.clock[other] > now.on_host[other], clock_of);
            task_waits.insert(*node, needed.map(|other| now.clock[other] - 1).collect());
        } else if steps.get(at).is_some_and(|step| step.node == *node) {
            let partition = partitions.of.get(node.index()).copied().filter(|partition| *partition != NONE);
            let follows = |stream: usize| {
                let last = rows.tails[stream].checked_sub(1).map(|step| steps[step as usize].node);
                let last = last.and_then(|last| partitions.of.get(last.index()).copied());
                partition.zip(last).is_none_or(|(this, last)| partitions.follows(this, last))
            };
            let stream = stream_for(&now.clock, &rows.tails, streams.count, &continued, follows);
            let stream = stream.ok_or(Exclusion::ManyBranches)?;
            if now.clock[stream] > 0 {
                continued[now.clock[stream] as usize - 1] = true;
            }
            streams.count = streams.count.max(stream + 1);
            let start = streams.waits.len() as u32;
            let row = &mut rows.known[stream];
            let unknown = |other: usize| other != stream && now.clock[other] > row[other].max(now.on_host[other]);
            streams
                .waits
                .extend(needed(&now.clock, streams.count, unknown, clock_of).map(|other| now.clock[other] - 1));
            streams.of.push(OnStream { stream: stream as u8, waits: start..streams.waits.len() as u32 });
            join(row, &now.clock);
            rows.tails[stream] = at as u32 + 1;
            row[stream] = rows.tails[stream];
            now.clock = *row;
        }
        known[node.index()] = now;
    }
    if streams.count < 2 {
        return Err(Exclusion::OneChain);
    }
    // Partitions have another order of tasks.
    streams.tasks = tasks.iter().map(|task| task_waits.remove(&task.node).unwrap_or_default()).collect();
    // The last step of one stream may be after that of another.
    let is_end =
        |stream: &usize| (0..streams.count).all(|by| by == *stream || rows.known[by][*stream] < rows.tails[*stream]);
    streams.ends = (1..streams.count).filter(is_end).map(|stream| rows.tails[stream] - 1).collect();
    Ok(Found { streams, clocks: known.into_iter().map(|known| known.clock).collect() })
}

/// What is known of the streams.
#[derive(Default)]
struct Rows {
    /// By stream: what is complete before its last step and with it.
    known: [Clock; MOST],
    /// By stream: the number of its last step, from 1 on.
    tails: Clock,
}

/// Returns the streams whose steps have to be waited for: those that are unknown and that no other such wait implies.
fn needed<'k>(
    clock: &Clock,
    count: usize,
    unknown: impl Fn(usize) -> bool,
    clock_of: impl Fn(u32) -> &'k Clock,
) -> impl Iterator<Item = usize> {
    let implied = |other: usize| {
        let implies = |by: usize| by != other && unknown(by) && clock_of(clock[by])[other] >= clock[other];
        (0..count).any(implies)
    };
    let needed: Vec<usize> = (0..count).filter(|other| unknown(*other) && !implied(*other)).collect();
    needed.into_iter()
}

/// Chooses a stream for a command, of those whose last command it may follow: one on which it waits for nothing
/// unnecessary, preferably the one with the newest step that it waits for; otherwise a new one. If there are no more, one
/// that no other step has continued yet, or the one whose last step is oldest.
fn stream_for(
    clock: &Clock,
    tails: &Clock,
    count: usize,
    continued: &[bool],
    follows: impl Fn(usize) -> bool,
) -> Option<usize> {
    let newest = |streams: &mut dyn Iterator<Item = usize>| streams.max_by_key(|stream| clock[*stream]);
    let able = || (0..count).filter(|stream| follows(*stream));
    let free = newest(&mut able().filter(|stream| clock[*stream] == tails[*stream]));
    if let Some(stream) = free.or((count < MOST).then_some(count)) {
        return Some(stream);
    }
    let next = newest(&mut able().filter(|stream| clock[*stream] > 0 && !continued[clock[*stream] as usize - 1]));
    next.or_else(|| able().min_by_key(|stream| tails[*stream]))
}
