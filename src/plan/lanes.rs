//! Pass 7: which commands can run side by side, and on which of several in-order queues each goes.
//!
//! A lane is an in-order queue. What is on one lane is in order by itself; where an edge leads from one to another, a command waits
//! for an event. Each command knows, of every lane, how far that has come when the command starts: so a lane waits for nothing twice,
//! and for nothing that another wait implies.

use std::ops::Range;

use super::{Edges, Step};
use crate::ir::{Ir, NodeId};

/// Lanes, at most.
pub(crate) const MOST: usize = 8;

/// Where the commands go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lanes {
    /// At least two.
    pub(crate) count: usize,
    /// By step.
    of: Vec<OnLane>,
    /// The steps that steps wait for, those of one after those of the other.
    waits: Vec<u32>,
    /// The last steps of lanes, but for the first one, and for those that another last step is behind.
    ends: Vec<u32>,
    /// How many steps are waited for.
    pub(crate) events: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct OnLane {
    lane: u8,
    waits: Range<u32>,
    /// Which of the events is its own, if something waits for it.
    event: Option<u32>,
}

impl Lanes {
    pub(crate) fn lane(&self, step: usize) -> usize {
        usize::from(self.of[step].lane)
    }

    /// The event of a step, by number. None where nothing waits for it.
    pub(crate) fn event(&self, step: usize) -> Option<usize> {
        self.of[step].event.map(|event| event as usize)
    }

    /// The steps of other lanes that a step waits for.
    pub(crate) fn waits(&self, step: usize) -> impl Iterator<Item = usize> + '_ {
        let waits = &self.of[step].waits;
        self.waits[waits.start as usize..waits.end as usize].iter().map(|step| *step as usize)
    }

    /// The steps that have to be complete for all to be, besides those of the first lane.
    pub(crate) fn ends(&self) -> impl Iterator<Item = usize> + '_ {
        self.ends.iter().map(|step| *step as usize)
    }
}

#[cfg(test)]
impl Lanes {
    pub(super) fn forget_waits(&mut self, step: usize) {
        self.of[step].waits = 0..0;
    }

    pub(super) fn forget_ends(&mut self) {
        self.ends.clear();
    }
}

/// How far each lane has come: steps so far, counted from 1, the last one that matters. 0: none does.
type Clock = [u32; MOST];

fn join(into: &mut Clock, other: &Clock) {
    into.iter_mut().zip(other).for_each(|(one, other)| *one = (*one).max(*other));
}

/// Finds the lanes. None if everything is in one row.
pub(super) fn lanes(ir: &Ir, order: &[NodeId], steps: &[Step], edges: &Edges) -> Option<Lanes> {
    let mut preds: Vec<Vec<NodeId>> = Vec::new();
    preds.resize_with(ir.len(), Vec::new);
    for (from, to) in &edges.needed {
        preds[to.index()].push(*from);
    }
    // What was before a node, and with it.
    let mut clocks: Vec<Clock> = vec![[0; MOST]; ir.len()];
    // What was before and with the last step of a lane; and which step that is, from 1.
    let mut known: [Clock; MOST] = [[0; MOST]; MOST];
    let mut tails: Clock = [0; MOST];
    // Steps behind which another has gone onto their lane that had to wait for them.
    let mut continued = vec![false; steps.len()];
    let mut lanes =
        Lanes { count: 0, of: Vec::with_capacity(steps.len()), waits: Vec::new(), ends: Vec::new(), events: 0 };
    for node in order {
        let mut clock = [0; MOST];
        preds[node.index()].iter().for_each(|pred| join(&mut clock, &clocks[pred.index()]));
        let at = lanes.of.len();
        if steps.get(at).is_some_and(|step| step.node == *node) {
            let lane = lane_for(&clock, &tails, lanes.count, &continued);
            if clock[lane] > 0 {
                continued[clock[lane] as usize - 1] = true;
            }
            lanes.count = lanes.count.max(lane + 1);
            let start = lanes.waits.len() as u32;
            let unknown = |other: &usize| *other != lane && clock[*other] > known[lane][*other];
            for other in (0..lanes.count).filter(unknown) {
                // Another wait may imply this one.
                let implied = |by: usize| {
                    by != other
                        && unknown(&by)
                        && clocks[steps[clock[by] as usize - 1].node.index()][other] >= clock[other]
                };
                if !(0..lanes.count).any(implied) {
                    lanes.waits.push(clock[other] - 1);
                }
            }
            lanes.of.push(OnLane { lane: lane as u8, waits: start..lanes.waits.len() as u32, event: None });
            join(&mut known[lane], &clock);
            tails[lane] = at as u32 + 1;
            known[lane][lane] = tails[lane];
            clock = known[lane];
        }
        clocks[node.index()] = clock;
    }
    if lanes.count < 2 {
        return None;
    }
    // Behind the last step of one lane may be that of another.
    let is_end = |lane: &usize| (0..lanes.count).all(|by| by == *lane || known[by][*lane] < tails[*lane]);
    lanes.ends = (1..lanes.count).filter(is_end).map(|lane| tails[lane] - 1).collect();
    for step in lanes.waits.iter().chain(&lanes.ends) {
        let event = &mut lanes.of[*step as usize].event;
        if event.is_none() {
            *event = Some(lanes.events as u32);
            lanes.events += 1;
        }
    }
    Some(lanes)
}

/// The lane on which a command waits for nothing that it does not have to wait for, the one that it continues first; a new one
/// otherwise. When there are no more, one that nobody has continued yet, or the one that has got its last command longest ago.
fn lane_for(clock: &Clock, tails: &Clock, count: usize, continued: &[bool]) -> usize {
    let newest = |lanes: &mut dyn Iterator<Item = usize>| lanes.max_by_key(|lane| clock[*lane]);
    let free = newest(&mut (0..count).filter(|lane| clock[*lane] == tails[*lane]));
    if let Some(lane) = free.or((count < MOST).then_some(count)) {
        return lane;
    }
    let next = newest(&mut (0..count).filter(|lane| clock[*lane] > 0 && !continued[clock[*lane] as usize - 1]));
    next.or_else(|| (0..count).min_by_key(|lane| tails[*lane])).unwrap_or_default()
}
