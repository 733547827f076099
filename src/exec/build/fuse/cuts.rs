//! Where chains are cut, as reports say it.

use rustc_hash::FxHashMap;

use crate::ir::NodeId;
use crate::lower::{Apart, Cut};
use crate::report::fused::WhyApart;

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
            let why = said(cut.why);
            all.before.insert(cut.behind, why);
            all.behind.insert(cut.before, why);
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

fn said(why: Apart) -> WhyApart {
    match why {
        Apart::Between => WhyApart::Between,
        Apart::Programs => WhyApart::Programs,
        Apart::Ranges => WhyApart::Ranges,
        Apart::Hosts => WhyApart::Hosts,
        Apart::Arguments => WhyApart::Arguments,
        Apart::Many => WhyApart::Many,
        Apart::WorkGroups => WhyApart::WorkGroups,
        Apart::Local => WhyApart::Local,
        Apart::Rounds => WhyApart::Rounds,
        Apart::Constant => WhyApart::Constant,
        Apart::Types => WhyApart::Types,
        Apart::Elements => WhyApart::Elements,
    }
}
