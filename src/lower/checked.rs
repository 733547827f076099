//! Has the host do launches with promises, between commands, because it looks then whether they keep them. Nodes and edges stay.

use crate::command::{Command, Elementwise};
use crate::ir::Ir;

/// Returns the graph in which the host does each launch with a promise, or `all` launches: updates may bring promises. None if there are
/// none.
pub(crate) fn checked(ir: &Ir, all: bool) -> Option<Ir> {
    let mut to: Option<Ir> = None;
    for node in ir.ids() {
        let Command::Kernel { elementwise, .. } = ir.command(node) else { continue };
        if elementwise.is_none() && !all {
            continue;
        }
        let done = Elementwise::checked(elementwise.as_deref());
        if let Command::Kernel { elementwise, .. } = to.get_or_insert_with(|| ir.clone()).command_mut(node) {
            *elementwise = Some(done);
        }
    }
    to
}

/// Returns the graph in which the device does all launches, also those of sub-graphs that are checked. None if it does.
pub(crate) fn unchecked(ir: &Ir) -> Option<Ir> {
    let mut to: Option<Ir> = None;
    for node in ir.ids() {
        let Command::Kernel { elementwise: Some(of), .. } = ir.command(node) else { continue };
        let Some(done) = of.unchecked() else { continue };
        if let Command::Kernel { elementwise, .. } = to.get_or_insert_with(|| ir.clone()).command_mut(node) {
            *elementwise = done;
        }
    }
    to
}
