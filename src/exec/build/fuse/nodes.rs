//! What fused nodes stand for, for drawings.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::command::Command;
use crate::graph::Flat;
use crate::handles::NodeKind;
use crate::ir::NodeId;
use crate::lower::Chain;
use crate::report::fused::FusedReport;

/// A planned node that stands for several.
pub(in crate::exec) struct FusedNode {
    pub(in crate::exec) at: NodeId,
    pub(in crate::exec) title: String,
    /// Lane by lane, in the order in which the kernel does them.
    pub(in crate::exec) commands: Vec<FusedCommand>,
    /// Where each lane but the last ends.
    pub(in crate::exec) lane_ends: Vec<usize>,
}

/// A command that a fused kernel does.
pub(in crate::exec) struct FusedCommand {
    /// The index of its node in the graph.
    pub(in crate::exec) node: u32,
    /// Its label, or what is launched.
    pub(in crate::exec) title: Arc<str>,
    pub(in crate::exec) kind: NodeKind,
}

/// Returns the nodes of chains that were fused, in order. `fused`: these chains, with where their lanes end; `origins`: by planned node, which
/// nodes it was.
pub(super) fn of<'a>(
    flat: &Flat,
    fused: impl Iterator<Item = (&'a Chain, Vec<usize>, &'a FusedReport)>,
    origins: &[Vec<NodeId>],
) -> Vec<FusedNode> {
    let mut by_first: FxHashMap<NodeId, _> = fused.map(|of| (of.0.launches[0], of)).collect();
    let tables = &flat.tables;
    let command = |node: &NodeId| {
        let command = tables.ir.command(*node);
        let kind = NodeKind::of(command);
        let title = match (tables.labels.get(node), command) {
            (Some(label), _) => Arc::clone(label),
            (None, Command::Kernel { kernel, .. }) => tables.kernels[kernel.index()].shared_name(),
            (None, _) => kind.to_string().into(),
        };
        FusedCommand { node: flat.origins.of(*node).node.index() as u32, title, kind }
    };
    let node = |(at, of): (u32, &Vec<NodeId>)| {
        let (chain, lane_ends, report) = of.iter().find_map(|node| by_first.remove(node))?;
        let commands = chain.launches.iter().map(command).collect();
        Some(FusedNode { at: NodeId(at), title: format!("fused: {}", report.title()), commands, lane_ends })
    };
    (0..).zip(origins).filter_map(node).collect()
}
