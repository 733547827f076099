//! The flat list of commands.

use super::{ObjectId, Step};
use crate::ir::{Ir, NodeId};

/// Returns the steps. Nodes that never do anything have none: in one stream the order alone does what they are for.
pub(super) fn steps<'a>(
    ir: &Ir,
    order: impl Iterator<Item = &'a NodeId>,
    object_of: &[Option<ObjectId>],
    updatable: bool,
) -> Vec<Step> {
    order
        .filter(|node| {
            let op = ir.command(**node);
            if updatable { op.is_command() } else { !op.is_noop() }
        })
        .map(|&node| Step { node, object: object_of[node.index()] })
        .collect()
}
