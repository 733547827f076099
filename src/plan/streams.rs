//! Pass 9: which commands can run side by side, and on which of several in-order queues each goes.
//!
//! A stream is an in-order queue. Commands of one stream are ordered without events. Where an edge leads from one
//! stream to another, a command waits for an event. For each command the pass knows how far every stream has come when
//! the command starts. So a stream never waits twice for the same command, nor for one that another wait implies.

use std::ops::Range;

use super::{Edges, Step};
use crate::ir::{Ir, NodeId};

/// The largest number of streams.
pub(crate) const MOST: usize = 8;

/// Which streams the commands go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Streams {
    /// At least two.
    pub(crate) count: usize,
    /// By step.
    of: Vec<OnStream>,
    /// The steps that steps wait for: first those of the first step, then those of the next.
    waits: Vec<u32>,
    /// The last step of each stream, except the first stream, and except steps that another last step is after.
    ends: Vec<u32>,
    /// How many steps are waited for.
    pub(crate) events: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct OnStream {
    stream: u8,
    waits: Range<u32>,
    /// The number of its event, if something waits for it.
    event: Option<u32>,
}

impl Streams {
    pub(crate) fn stream(&self, step: usize) -> usize {
        usize::from(self.of[step].stream)
    }

    /// Returns the number of a step's event. None if nothing waits for it.
    pub(crate) fn event(&self, step: usize) -> Option<usize> {
        self.of[step].event.map(|event| event as usize)
    }

    /// Returns the steps of other streams that a step waits for.
    pub(crate) fn waits(&self, step: usize) -> impl Iterator<Item = usize> + '_ {
        let waits = &self.of[step].waits;
        self.waits[waits.start as usize..waits.end as usize].iter().map(|step| *step as usize)
    }

    /// Returns the steps that must be complete for all to be, besides those of the first stream.
    pub(crate) fn ends(&self) -> impl Iterator<Item = usize> + '_ {
        self.ends.iter().map(|step| *step as usize)
    }
}

#[cfg(test)]
impl Streams {
    pub(super) fn forget_waits(&mut self, step: usize) {
        self.of[step].waits = 0..0;
    }

    pub(super) fn forget_ends(&mut self) {
        self.ends.clear();
    }
}

/// How far each stream has come: the last step that matters, counted from 1. 0 if none does.
type Clock = [u32; MOST];

fn join(into: &mut Clock, other: &Clock) {
    into.iter_mut().zip(other).for_each(|(one, other)| *one = (*one).max(*other));
}

/// Finds the streams. Returns None if all commands are in one row.
pub(super) fn streams(ir: &Ir, order: &[NodeId], steps: &[Step], edges: &Edges) -> Option<Streams> {
    let mut preds: Vec<Vec<NodeId>> = Vec::new();
    preds.resize_with(ir.len(), Vec::new);
    for (from, to) in &edges.needed {
        preds[to.index()].push(*from);
    }
    // By node: what is complete before it and with it.
    let mut clocks: Vec<Clock> = vec![[0; MOST]; ir.len()];
    // By stream: what is complete before its last step and with it; and the number of its last step, from 1.
    let mut known: [Clock; MOST] = [[0; MOST]; MOST];
    let mut tails: Clock = [0; MOST];
    // Steps after which another step, which had to wait for them, went onto their stream.
    let mut continued = vec![false; steps.len()];
    let mut streams =
        Streams { count: 0, of: Vec::with_capacity(steps.len()), waits: Vec::new(), ends: Vec::new(), events: 0 };
    for node in order {
        let mut clock = [0; MOST];
        preds[node.index()].iter().for_each(|pred| join(&mut clock, &clocks[pred.index()]));
        let at = streams.of.len();
        if steps.get(at).is_some_and(|step| step.node == *node) {
            let stream = stream_for(&clock, &tails, streams.count, &continued);
            if clock[stream] > 0 {
                continued[clock[stream] as usize - 1] = true;
            }
            streams.count = streams.count.max(stream + 1);
            let start = streams.waits.len() as u32;
            let unknown = |other: &usize| *other != stream && clock[*other] > known[stream][*other];
            for other in (0..streams.count).filter(unknown) {
                // Another wait may imply this one.
                let implied = |by: usize| {
                    by != other
                        && unknown(&by)
                        && clocks[steps[clock[by] as usize - 1].node.index()][other] >= clock[other]
                };
                if !(0..streams.count).any(implied) {
                    streams.waits.push(clock[other] - 1);
                }
            }
            streams.of.push(OnStream { stream: stream as u8, waits: start..streams.waits.len() as u32, event: None });
            join(&mut known[stream], &clock);
            tails[stream] = at as u32 + 1;
            known[stream][stream] = tails[stream];
            clock = known[stream];
        }
        clocks[node.index()] = clock;
    }
    if streams.count < 2 {
        return None;
    }
    // The last step of one stream may be after that of another.
    let is_end = |stream: &usize| (0..streams.count).all(|by| by == *stream || known[by][*stream] < tails[*stream]);
    streams.ends = (1..streams.count).filter(is_end).map(|stream| tails[stream] - 1).collect();
    for step in streams.waits.iter().chain(&streams.ends) {
        let event = &mut streams.of[*step as usize].event;
        if event.is_none() {
            *event = Some(streams.events as u32);
            streams.events += 1;
        }
    }
    Some(streams)
}

/// Chooses a stream for a command: one on which it waits for nothing unnecessary, preferably the one with the newest
/// step that it waits for; otherwise a new one. If there are no more, one that no other step has continued yet, or the
/// one whose last step is oldest.
fn stream_for(clock: &Clock, tails: &Clock, count: usize, continued: &[bool]) -> usize {
    let newest = |streams: &mut dyn Iterator<Item = usize>| streams.max_by_key(|stream| clock[*stream]);
    let free = newest(&mut (0..count).filter(|stream| clock[*stream] == tails[*stream]));
    if let Some(stream) = free.or((count < MOST).then_some(count)) {
        return stream;
    }
    let next = newest(&mut (0..count).filter(|stream| clock[*stream] > 0 && !continued[clock[*stream] as usize - 1]));
    next.or_else(|| (0..count).min_by_key(|stream| tails[*stream])).unwrap_or_default()
}
