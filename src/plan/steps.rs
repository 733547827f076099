//! Pass 5: the flat list of commands.

use super::{Action, ObjectId, Step};
use crate::ir::{Ir, NodeId, Op};

/// The steps, and the bytes of their fill patterns. Nodes that do nothing have no step: in one lane the order alone
/// does what they are for.
pub(super) fn steps(ir: &Ir, order: &[NodeId], object_of: &[Option<ObjectId>]) -> (Vec<Step>, Vec<u8>) {
    let mut steps = Vec::with_capacity(order.len());
    let mut patterns = Vec::new();
    for &node in order {
        let op = ir.op(node);
        if op.is_noop() {
            continue;
        }
        let action = match op {
            // Sub-graphs were written out before.
            Op::Empty | Op::SubGraph(_) => continue,
            Op::Kernel { grid, .. } => {
                let Some(object) = object_of[node.index()] else { continue };
                Action::Launch { object, grid: *grid }
            }
            Op::Copy { src, dst, size } => Action::Copy { src: *src, dst: *dst, size: *size },
            Op::CopyRect(rect) => Action::CopyRect(rect.clone()),
            Op::Fill { dst, size, pattern } => {
                let start = patterns.len();
                patterns.extend_from_slice(ir.bytes(*pattern));
                Action::Fill { dst: *dst, size: *size, pattern: start..patterns.len() }
            }
            Op::Write { dst, data, .. } => Action::Write { dst: *dst, data: *data },
            Op::Read { src, result, .. } => Action::Read { src: *src, result: *result },
        };
        steps.push(Step { node, action });
    }
    (steps, patterns)
}
