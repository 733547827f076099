//! Which arguments of launches are one argument of a fused kernel.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::command::Command;
use crate::graph::{Binding, Tables};
use crate::ir::NodeId;

/// Which arguments of launches get other values by themselves. Others that are equal are one argument of a fused kernel.
#[derive(Clone, Debug, Default)]
pub(in crate::exec) struct Shares {
    /// By node and need of its piece.
    of: FxHashMap<(NodeId, u32), u32>,
    last: u32,
    /// Whether updates are to come.
    pub(super) are_for_updates: bool,
}

impl Shares {
    /// Arguments of one parameter are one, and are apart from all others. `planned` says which planned node a node of the graph is.
    pub(in crate::exec) fn of_parameters(graph: &Tables, planned: impl Fn(NodeId) -> Option<NodeId>) -> Self {
        let mut this = Self { are_for_updates: true, ..Self::default() };
        let mut known: FxHashMap<usize, u32> = FxHashMap::default();
        let mut near = 0;
        for node in graph.ir.ids().filter(|_| !graph.bindings.is_empty()) {
            let Command::Kernel { args, .. } = graph.ir.command(node) else { continue };
            let bindings = graph.bindings_near(near, *args);
            near = bindings.end;
            let Some(planned) = planned(node) else { continue };
            for Binding { arg, cells, .. } in &graph.bindings[bindings] {
                let need = arg - args.ends().0;
                match cells.as_slice() {
                    [cell] => {
                        let next = this.last + 1;
                        let number = *known.entry(Arc::as_ptr(cell).addr()).or_insert(next);
                        this.last = this.last.max(number);
                        this.of.insert((planned, need), number);
                    }
                    _ => this.set_apart(planned, need),
                }
            }
        }
        this
    }

    /// Notes that an argument got another value than equal ones.
    pub(in crate::exec) fn set_apart(&mut self, node: NodeId, need: u32) {
        self.last += 1;
        self.of.insert((node, need), self.last);
    }

    pub(super) fn get(&self, node: NodeId, need: usize) -> u32 {
        self.of.get(&(node, need as u32)).copied().unwrap_or(0)
    }
}
