//! The chains of a graph and their kernels, with the texts of programs as one, or without.

use std::collections::BTreeSet;

use super::groups::TextOf;
use super::{Fusing, How};
use crate::cl::objects::kept_programs::MadeProgram;
use crate::graph::{Flat, FusedChain};
use crate::ir::NodeId;
use crate::lower::{self, Chains, Limits};
use crate::report::fused::{NotFusedReport, WhyNotFused};

/// Bytes of arguments that a kernel has besides those of its launches: whether it does them, what it needs for turns of a loop, and what
/// may be between them.
const OWN_ARGUMENTS: usize = 2 * 8 + 3 * 8;

/// The most launches that each work-item does on its own: the time that compilers take grows with them.
const MOST_EACH_ITEM: usize = 256;

/// The same where the device is no GPU. With 262 144 work-items, 256 of them take 1.2 (Intel's CPU runtime 2026.2, rusticl 26.2) to 2.3 times (PoCL
/// 3.1 to 7.1) as long for each launch as 64, and with 16 384 work-items as long.
pub(super) const MOST_EACH_ITEM_OF_CPUS: usize = 64;

/// How often chains are cut that are too long, of which parts may be too long again.
const MOST_CUTS: usize = 4;

/// The chains of a graph and their kernels.
pub(super) struct Attempt<'a> {
    pub(super) fusing: Fusing<'a>,
    pub(super) chains: Chains,
    /// None for a chain that stays as it is.
    pub(super) built: Vec<Option<FusedChain>>,
    pub(super) not_fused: Vec<NotFusedReport>,
    /// The programs that are to be kept, or were.
    pub(super) made: Vec<MadeProgram>,
}

impl<'a> Attempt<'a> {
    /// Finds chains, and builds their kernels. `joins`: launches of several programs may be in one.
    pub(super) fn new(flat: &'a Flat, how: How<'a>, joins: bool) -> Self {
        let mut by_host = BTreeSet::new();
        loop {
            let mut not_fused = Vec::new();
            let mut say = |node: NodeId, why: WhyNotFused| {
                not_fused.push(NotFusedReport { node: flat.origins.of(node).node.index(), why });
            };
            let (mut fusing, mut chains) = Self::find(flat, how, (joins, &by_host), &mut say);
            let counted = fusing.counted_by_host(&chains);
            if !counted.is_empty() {
                by_host.extend(counted);
                continue;
            }
            if fusing.leave_loops(&chains, &mut say) {
                chains = fusing.chains(flat, how);
            }
            let mut made = Vec::new();
            let built = fusing.build(&chains, &mut made, &mut say);
            return Self { fusing, chains, built, not_fused, made };
        }
    }

    /// Finds chains of which none is too long.
    fn find(
        flat: &'a Flat,
        how: How<'a>,
        which: (bool, &BTreeSet<usize>),
        say: &mut impl FnMut(NodeId, WhyNotFused),
    ) -> (Fusing<'a>, Chains) {
        let mut fusing = Fusing::new(&flat.tables, how, which, say);
        let mut chains = fusing.chains(flat, how);
        for _ in 0..MOST_CUTS {
            if !fusing.cut_long(&chains, say) {
                break;
            }
            chains = fusing.chains(flat, how);
        }
        if fusing.leave_long(&chains, say) {
            chains = fusing.chains(flat, how);
        }
        (fusing, chains)
    }

    /// Returns whether a chain stays as it is whose kernel was in a text of several programs.
    pub(super) fn joins_in_vain(&self) -> bool {
        if self.built.iter().all(Option::is_some) {
            return false;
        }
        let texts: Vec<TextOf> = self.chains.chains.iter().map(|chain| self.fusing.text(chain)).collect();
        let is_of_several = |text: &TextOf| {
            let its = (0..self.built.len()).filter(|at| texts[*at] == *text);
            let launches = its.flat_map(|at| self.chains.chains[at].launches.iter().copied());
            self.fusing.programs.of_all(launches).len() > 1
        };
        let failed = (0..self.built.len()).filter(|at| self.built[*at].is_none());
        failed.map(|at| &texts[at]).collect::<BTreeSet<_>>().into_iter().any(is_of_several)
    }
}

impl Fusing<'_> {
    /// Finds the chains of a graph.
    fn chains(&self, flat: &Flat, How { device, keeps_order, .. }: How<'_>) -> Chains {
        let caps = device.caps();
        let bytes = caps.max_parameter_size.saturating_sub(OWN_ARGUMENTS);
        let most = Limits { bytes, each_item: if caps.gpu { MOST_EACH_ITEM } else { MOST_EACH_ITEM_OF_CPUS } };
        lower::chains(&flat.tables.ir, most, keeps_order, |node| self.pieces.get(&node))
    }
}
