//! Which loops with a condition have their turns done by a kernel: those whose body is one chain.

use std::collections::{BTreeMap, BTreeSet};

use opencl_sys::CL_MEM_WRITE_ONLY;
use rustc_hash::FxHashSet;

use super::Fusing;
use crate::command::{Command, ControlKind, Location};
use crate::graph::Tables;
use crate::ir::{Body, NodeId, ViewId, ViewKind};
use crate::lower::{self, Chain, Chains, Order, Together};
use crate::report::fused::WhyNotFused;

/// The types by which a kernel may write the condition of its loop.
const WORDS: [&str; 4] = ["uint", "int", "unsigned int", "unsigned"];

impl Fusing<'_> {
    /// Leaves launches in bodies of loops as they are whose turns no kernel can do. Returns whether there were some.
    pub(super) fn leave_loops(&mut self, chains: &Chains, say: &mut impl FnMut(NodeId, WhyNotFused)) -> bool {
        let does_turns = |chain: &Chain| chains.is_whole(&self.tables.ir, chain) && self.can_turn(chain);
        let done: BTreeSet<usize> = chains.chains.iter().filter(|chain| does_turns(chain)).map(Chain::flow).collect();
        self.turning.retain(|flow, _| done.contains(flow));
        let in_loops = in_loops(self.tables);
        let (flows, turning) = (&self.flows, &self.turning);
        let is_left = |node: &NodeId| in_loops.contains(node) && !turning.contains_key(&flows.of(*node));
        let left: Vec<NodeId> = self.pieces.keys().filter(|node| is_left(node)).copied().collect();
        for node in &left {
            if self.pieces.remove(node).is_some_and(|piece| piece.launch) {
                say(*node, WhyNotFused::InLoop);
            }
        }
        !left.is_empty()
    }

    /// Returns whether the kernel of a chain that is the body of a loop sees the condition as the chain leaves it.
    fn can_turn(&self, chain: &Chain) -> bool {
        let Some(Location { mem, offset }) = self.turning.get(&chain.flow()).filter(|_| chain.order == Order::InTurn)
        else {
            return false;
        };
        let is_word = |number: u32| match self.types.get(number as usize) {
            Some((None, text)) => WORDS.contains(&text.as_str()),
            _ => number == lower::BYTES,
        };
        let word = (*mem, *offset..*offset + size_of::<u32>());
        let ir = &self.tables.ir;
        let writes_otherwise =
            |node: &NodeId| lower::writes_otherwise(ir, *node, &self.pieces[node].pointers, word.clone(), is_word);
        // In turns each launch comes after itself too.
        let mut together = Together::default();
        let mut again = chain.launches.iter().chain(&chain.launches);
        let is_one = again.all(|node| together.takes(ir, *node, &self.pieces[node].pointers, None).is_ok());
        is_one && !chain.launches.iter().any(writes_otherwise)
    }
}

/// Returns where the conditions of loops are that a kernel can read, by the flows of the bodies.
pub(super) fn turning(tables: &Tables) -> BTreeMap<usize, Location<ViewId>> {
    let ir = &tables.ir;
    let place = |node: NodeId| {
        let Command::Control(control) = ir.command(node) else { return None };
        let ControlKind::While { .. } = control.kind else { return None };
        let Location { mem, offset } = control.condition.as_ref()?;
        let is_plain = matches!(ir.views[mem.index()].kind, ViewKind::Buffer | ViewKind::Placed { .. });
        let is_plain = is_plain && tables.mem(*mem)?.flags() & CL_MEM_WRITE_ONLY == 0;
        let is_of_words = [tables.mem(*mem)?.base(), *offset].iter().all(|at| at.is_multiple_of(size_of::<u32>()));
        let is_read = is_plain && is_of_words;
        is_read.then_some((control.bodies.ends().0 as usize + 1, Location { mem: *mem, offset: *offset }))
    };
    ir.ids().filter_map(place).collect()
}

/// Returns the nodes in bodies of loops that a condition ends. Their turns can go ahead of the condition, which takes less time, or a
/// kernel does them.
pub(super) fn in_loops(tables: &Tables) -> FxHashSet<NodeId> {
    let ir = &tables.ir;
    let mut all = FxHashSet::default();
    for node in ir.ids() {
        if let Command::Control(control) = ir.command(node)
            && matches!(control.kind, ControlKind::While { .. })
        {
            for body in control.bodies.of(&ir.bodies) {
                if let Body::Inlined { nodes, .. } = body {
                    all.extend(nodes.clone().map(NodeId));
                }
            }
        }
    }
    all
}
