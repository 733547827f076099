//! Where chains are cut whose kernels would be too long for the driver's compiler.

use rustc_hash::FxHashSet;

use super::{Fusing, KernelLoops};
use crate::ir::NodeId;
use crate::lower::{Chain, Chains, Order, WhyApart};
use crate::opencl_c::fused::{Form, FusedKernel, calls};
use crate::quirks;
use crate::report::fused::WhyNotFused;

/// The most kernels of a chain with barriers, where the compiler takes so long for each call that a kernel has few of them.
const MOST_OF_GROUPS: usize = 2;

impl Fusing<'_> {
    /// Notes before which launches chains are cut. Returns whether there are any. A part may have other loops than the whole chain, and more
    /// calls for it.
    pub(super) fn cut_long(&mut self, chains: &Chains, say: &mut impl FnMut(NodeId, WhyNotFused)) -> bool {
        // Then chains are other ones.
        if self.leave_long(chains, say) {
            return true;
        }
        // The body of a loop whose turns a kernel does stays whole: in parts, the host would decide its turns.
        let may_be_long = |chain: &&Chain| {
            let is_long = chain.order != Order::EachItem && chain.launches.len() > self.most_calls(chain);
            is_long && !self.turning.contains_key(&chain.flow())
        };
        let long = chains.chains.iter().filter(may_be_long);
        let begins: FxHashSet<NodeId> = long.flat_map(|chain| self.parts_of_long(chains, chain)).collect();
        for node in &begins {
            self.pieces.entry(*node).and_modify(|piece| piece.begins = true);
        }
        !begins.is_empty()
    }

    /// Has one work-item do chains that would be many kernels of a work-group, and leaves those as they are that a work-item cannot do. Returns
    /// whether there are any.
    pub(super) fn leave_long(&mut self, chains: &Chains, say: &mut impl FnMut(NodeId, WhyNotFused)) -> bool {
        if !quirks::copies_behind_loops(self.device.caps()) {
            return false;
        }
        let is_long = |chain: &&Chain| {
            let most = MOST_OF_GROUPS * self.most_calls(chain);
            chain.launches.len() > most && self.form(chain) == Form::OneGroup && {
                let kernel = self.kernel(chain, &self.programs.of_all(chain.launches.iter().copied()));
                calls(&kernel).iter().map(|(_, calls)| calls).sum::<usize>() > most
            }
        };
        let long: Vec<&Chain> = chains.chains.iter().filter(is_long).collect();
        for chain in &long {
            let waits = self.group_of(chain).is_some();
            for node in &chain.launches {
                self.loops.insert(*node, KernelLoops::Others);
                if waits && self.pieces.remove(node).is_some() {
                    say(*node, WhyNotFused::Apart { why: WhyApart::Calls });
                }
            }
        }
        !long.is_empty()
    }

    /// Returns the launches with which the second part of a chain, and each later one, begins.
    fn parts_of_long(&self, chains: &Chains, chain: &Chain) -> Vec<NodeId> {
        let units = self.programs.of_all(chain.launches.iter().copied());
        let kernel = self.kernel(chain, &units);
        let in_order = chains.in_order(chain);
        let has_lanes = !chain.lane_ends.is_empty();
        parts(&kernel, has_lanes, self.most_calls(chain))
            .into_iter()
            .filter_map(|at| in_order.get(at).copied())
            .collect()
    }
}

/// Returns at which launches a kernel is cut, so that each part has at most so many calls, and about as many as the others. One with lanes is
/// cut after as many launches each time: then the numbers are those in the order of the graph.
fn parts(kernel: &FusedKernel, has_lanes: bool, most: usize) -> Vec<usize> {
    let calls = calls(kernel);
    let all: usize = calls.iter().map(|(_, calls)| calls).sum();
    let parts = all.div_ceil(most);
    if has_lanes {
        return (1..parts).map(|part| part * kernel.launches.len() / parts).collect();
    }
    let (mut begins, mut of_part, most) = (Vec::new(), 0, all.div_ceil(parts.max(1)));
    for (at, calls) in calls {
        if of_part > 0 && of_part + calls > most {
            begins.push(at);
            of_part = 0;
        }
        of_part += calls;
    }
    begins
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opencl_c::fused::{Callee, FusedArg, FusedLaunch, FusedParam};

    /// Launches of kernels with these names, each with other memory.
    fn kernel(names: &str, lane_ends: &[usize]) -> FusedKernel {
        let launch = |(at, name): (usize, char)| FusedLaunch {
            kernel: Callee { unit: 0, kernel: name.to_string() },
            args: vec![FusedArg::Param(at * at % 7)],
            dims: 1,
            range: [[FusedArg::Number(1); 3]; 3],
        };
        let launches = names.chars().enumerate().map(launch).collect();
        let (params, lane_ends) = (vec![FusedParam::Memory; 7], lane_ends.to_vec());
        FusedKernel { params, launches, tabled: 0, lane_ends, group: None, turns: false }
    }

    #[test]
    fn a_part_has_as_many_calls_as_a_kernel_may_have() {
        assert_eq!(parts(&kernel("abcabdacbd", &[]), false, 10), [0; 0]);
        assert_eq!(parts(&kernel("abcabdacbd", &[]), false, 4), [4, 8]);
        assert_eq!(parts(&kernel("abcabdacbd", &[]), false, 1), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        // Six turns of two calls are no more than two.
        assert_eq!(parts(&kernel("cdabababababab", &[]), false, 4), [0; 0]);
        assert_eq!(parts(&kernel("cdabababababab", &[]), false, 3), [2]);
        // A turn is never divided.
        assert_eq!(parts(&kernel("cabcabcabcabcd", &[]), false, 2), [12]);
        assert_eq!(parts(&kernel("abcabdacbd", &[3, 6]), true, 5), [5]);
        assert_eq!(parts(&kernel("abcabdacbd", &[3, 6]), true, 4), [3, 6]);
        assert_eq!(parts(&kernel("aaaaaaaaaabbbbbbbbbb", &[10]), true, 2), [0; 0]);
    }
}
