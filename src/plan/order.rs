//! An order in which every node is after its predecessors.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::PlanError;
use crate::ir::{Ir, NodeId};

/// Returns the order of adding wherever the edges allow it. The user wrote the nodes in this order, and recently
/// written data is likely to be in a cache.
pub(super) fn order(ir: &Ir) -> Result<Vec<NodeId>, PlanError> {
    let topology = &ir.topology;
    if !topology.has_backward_edges() {
        return Ok(ir.ids().collect());
    }
    let mut blocked: Vec<usize> = ir.ids().map(|node| topology.preds(node).count()).collect();
    let mut free: BinaryHeap<Reverse<NodeId>> =
        ir.ids().filter(|node| blocked[node.index()] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(ir.len());
    while let Some(Reverse(node)) = free.pop() {
        order.push(node);
        for next in topology.succs(node) {
            blocked[next.index()] -= 1;
            if blocked[next.index()] == 0 {
                free.push(Reverse(next));
            }
        }
    }
    if order.len() < ir.len() {
        return Err(PlanError::Cycle(topology.find_cycle().unwrap_or_default()));
    }
    Ok(order)
}
