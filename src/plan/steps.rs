//! The flat list of commands.

use super::{ObjectId, Step};
use crate::ir::{Ir, NodeId};

/// Returns the steps of all flows, one flow after the other. Nodes that never do anything have none: in one stream the order alone
/// does what they are for.
pub(super) fn steps(ir: &Ir, orders: &[Vec<NodeId>], object_of: &[Option<ObjectId>], updatable: bool) -> Vec<Step> {
    let mut steps = Vec::with_capacity(orders.iter().map(Vec::len).sum());
    for order in orders {
        let is_step = |node: &&NodeId| {
            let op = ir.command(**node);
            if updatable { op.is_command() } else { !op.is_noop() && !op.is_host() }
        };
        steps.extend(order.iter().filter(is_step).map(|&node| Step { node, object: object_of[node.index()] }));
    }
    steps
}
