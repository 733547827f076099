//! Pass 3: removes edges that a path of two others implies. Queries and drawings still show them.

use super::Edges;
use crate::ir::{Ir, NodeId};

/// A predecessor with more predecessors than this is not looked through, so that the pass stays linear where a node
/// joins thousands. An edge too many costs little; looking costs the product.
const LOOK_THROUGH: usize = 32;

pub(super) fn reduce(ir: &Ir) -> Edges {
    let topology = &ir.topology;
    let mut edges = Edges { needed: Vec::with_capacity(topology.edge_count()), ..Edges::default() };
    // For which node a predecessor was last seen to be reachable in two steps.
    let mut implied_for = vec![u32::MAX; ir.len()];
    let mut preds: Vec<NodeId> = Vec::new();
    for node in ir.ids() {
        preds.clear();
        preds.extend(topology.preds(node));
        preds.sort_unstable();
        if preds.len() > 1 {
            for &pred in &preds {
                // `take` before the look: petgraph walks a list, and its length is not known beforehand.
                let few = topology.preds(pred).take(LOOK_THROUGH + 1).count() <= LOOK_THROUGH;
                if few {
                    topology.preds(pred).for_each(|before| implied_for[before.index()] = node.0);
                }
            }
        }
        for &pred in &preds {
            if implied_for[pred.index()] == node.0 {
                edges.implied_by_path += 1;
            } else {
                edges.needed.push((pred, node));
            }
        }
    }
    edges
}
