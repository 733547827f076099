//! Parts a chain into lanes: launches that no edges order, and which may so run at the same time.

use std::collections::HashMap;

use crate::command::Command;
use crate::ir::{Ir, NodeId};
use crate::lower::fuse::Chain;

/// Gives each set of launches that edges connect a lane of its own. Within a lane the order stays. `order` is that of the chain's flow.
pub(super) fn part(ir: &Ir, order: &[NodeId], chain: &mut Chain) {
    let mut sets = Sets((0..chain.launches.len()).collect());
    let places: HashMap<NodeId, usize> = chain.launches.iter().copied().zip(0..).collect();
    // By node that only orders others: the launches before it.
    let mut before: HashMap<NodeId, Vec<usize>> = HashMap::new();
    for node in &order[chain.at.1.clone()] {
        if let Some(place) = places.get(node) {
            for pred in ir.topology.preds(*node) {
                if let Some(other) = places.get(&pred) {
                    sets.join(*place, *other);
                } else if let Some(launches) = before.get_mut(&pred) {
                    launches.iter().for_each(|other| sets.join(*place, *other));
                    // They are in one set now.
                    launches.truncate(1);
                }
            }
        } else if matches!(ir.command(*node), Command::Empty) {
            let preds = ir.topology.preds(*node);
            let of = |pred: NodeId| match places.get(&pred) {
                Some(place) => vec![*place],
                None => before.get(&pred).cloned().unwrap_or_default(),
            };
            let mut all: Vec<usize> = preds.flat_map(of).map(|place| sets.first(place)).collect();
            all.sort_unstable();
            all.dedup();
            before.insert(*node, all);
        }
    }
    // By first launch. Sorting is stable.
    let mut by_lane: Vec<usize> = (0..chain.launches.len()).collect();
    let lanes: Vec<usize> = by_lane.iter().map(|place| sets.first(*place)).collect();
    by_lane.sort_by_key(|place| lanes[*place]);
    chain.lane_ends = (1..by_lane.len()).filter(|at| lanes[by_lane[*at]] != lanes[by_lane[*at - 1]]).collect();
    chain.launches = by_lane.iter().map(|place| chain.launches[*place]).collect();
    chain.places = by_lane.iter().map(|place| std::mem::take(&mut chain.places[*place])).collect();
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
