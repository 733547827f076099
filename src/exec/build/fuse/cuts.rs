//! Where chains are cut, as reports say it.

use rustc_hash::FxHashMap;

use crate::ir::NodeId;
use crate::lower::{Cut, WhyApart};

/// By launch: why the one before it, and why the one behind it, is not in one chain with it.
#[derive(Default)]
pub(super) struct Cuts {
    before: FxHashMap<NodeId, WhyApart>,
    behind: FxHashMap<NodeId, WhyApart>,
}

impl Cuts {
    pub(super) fn of(cuts: &[Cut]) -> Self {
        let mut all = Self::default();
        for cut in cuts {
            all.before.insert(cut.behind, cut.why);
            all.behind.insert(cut.before, cut.why);
        }
        all
    }

    pub(super) fn behind(&self, node: NodeId) -> Option<WhyApart> {
        self.behind.get(&node).copied()
    }

    /// Returns why a launch that is in no chain is not in that of the launch before or behind it.
    pub(super) fn beside(&self, node: NodeId) -> Option<WhyApart> {
        self.before.get(&node).copied().or_else(|| self.behind(node))
    }
}
