//! What an update must not do: make nodes use the same memory that nothing orders.

use crate::error::{Result, UpdateError};
use crate::exec::executable::Inner;
use crate::graph::Tables;
use crate::graph::edit::undo::Edit;
use crate::ir::conflicts::Conflicts;

/// Looks for two nodes that use the same memory without an order, where an edit has changed the memory of one of them.
pub(in crate::exec) fn check_conflicts(
    exec: &Inner,
    conflicts: &mut Option<Conflicts>,
    edit: &Edit,
    tables: &Tables,
) -> Result<()> {
    let ir = &tables.ir;
    let conflicts = match conflicts {
        Some(conflicts) => {
            edit.old_accesses().for_each(|(node, slot, old)| {
                conflicts.exchange(ir, node, slot, old, &ir.accesses(node)[slot]);
            });
            conflicts
        }
        none => {
            let plan = &exec.fixed.plan;
            let steps = || plan.steps.iter().map(|step| step.node).collect();
            none.insert(Conflicts::new(ir, if plan.order.is_empty() { steps() } else { plan.order.clone() }))
        }
    };
    match conflicts.find(ir, edit.old_accesses().map(|(node, slot, _)| (node, slot))) {
        None => Ok(()),
        Some((first, second)) => {
            let node = |node| exec.fixed.node(exec.fixed.origins.of(node).node);
            let (first_use, second_use) = tables.describe_uses(first, second);
            let (first, second) = (node(first), node(second));
            Err(UpdateError::Conflict { first, first_use, second, second_use }.into())
        }
    }
}
