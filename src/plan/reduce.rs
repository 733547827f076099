//! Removes edges that a path of two other edges implies. Queries and drawings still show them.

use super::Edges;
use crate::ir::{Ir, NodeId};

/// The pass does not look through a predecessor with more predecessors than this, so that it stays linear where a node
/// joins thousands. An unnecessary edge costs little; looking would cost the product.
const LOOK_THROUGH: usize = 32;

pub(super) fn reduce(ir: &Ir) -> Edges {
    let topology = &ir.topology;
    let mut edges = Edges { needed: Vec::with_capacity(topology.edge_count()), ..Edges::default() };
    // By node: for which node it was last seen to be reachable in two steps.
    let mut implied_for = vec![u32::MAX; ir.len()];
    let mut preds: Vec<NodeId> = Vec::new();
    for node in ir.ids() {
        preds.clear();
        preds.extend(topology.preds(node));
        preds.sort_unstable();
        if preds.len() > 1 {
            for &pred in &preds {
                // `take` comes before the count: petgraph walks a list whose length is not known beforehand.
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
