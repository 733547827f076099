//! Parts a chain into lanes: launches that no edges order, and which may so run at the same time.

use std::collections::HashMap;

use crate::ir::{Ir, NodeId};
use crate::lower::fuse::Chain;

/// The most lanes of a chain: more than most devices run at once. Each is a branch of the fused kernel, and the time that compilers take
/// grows faster than their number.
pub(crate) const MOST_LANES: usize = 64;

/// Parts the launches of a chain into sets that no edges connect, and these into lanes. Within a set the order stays. `order` is that of
/// the chain's flow.
pub(super) fn part(ir: &Ir, order: &[NodeId], chain: &mut Chain) {
    let nodes = &order[chain.at.1.clone()];
    let numbers: HashMap<NodeId, usize> = nodes.iter().copied().zip(0..).collect();
    let before = |at: usize| ir.topology.preds(nodes[at]).filter_map(|pred| numbers.get(&pred).copied());
    let launches: Vec<usize> = chain.launches.iter().map(|node| numbers[node]).collect();
    // What a launch waits for, over nodes that only order others too.
    let mut counts = vec![false; nodes.len()];
    launches.iter().for_each(|at| counts[*at] = true);
    for at in (0..nodes.len()).rev() {
        if counts[at] {
            before(at).for_each(|pred| counts[pred] = true);
        }
    }
    let mut sets = Sets((0..nodes.len()).collect());
    for at in (0..nodes.len()).filter(|at| counts[*at]) {
        before(at).for_each(|pred| sets.join(at, pred));
    }
    // Sorting is stable.
    let set_of: Vec<usize> = launches.iter().map(|at| sets.first(*at)).collect();
    let mut by_set: Vec<usize> = (0..launches.len()).collect();
    by_set.sort_by_key(|place| set_of[*place]);
    let starts = |at: &usize| *at > 0 && set_of[by_set[*at]] != set_of[by_set[*at - 1]];
    let starts: Vec<usize> = (0..by_set.len()).filter(starts).collect();
    // More sets than lanes: each lane has about as many launches.
    let is_few = starts.len() < MOST_LANES;
    let lane_of = |at: usize| if is_few { at } else { at * MOST_LANES / by_set.len() };
    let mut lane = 0;
    chain.lane_ends =
        starts.into_iter().filter(|at| std::mem::replace(&mut lane, lane_of(*at)) < lane_of(*at)).collect();
    chain.launches = by_set.iter().map(|place| chain.launches[*place]).collect();
    chain.places = by_set.iter().map(|place| std::mem::take(&mut chain.places[*place])).collect();
}

/// Disjoint sets of numbers. Each number has one of its set that is not larger.
struct Sets(Vec<usize>);

impl Sets {
    /// Returns the least number of a set.
    fn first(&mut self, mut of: usize) -> usize {
        while self.0[of] != of {
            self.0[of] = self.0[self.0[of]];
            of = self.0[of];
        }
        of
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.first(one), self.first(other));
        self.0[one.max(other)] = one.min(other);
    }
}
