//! Which loops have their turns done by a kernel: those whose body is one chain.

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

/// Of loops that count their turns: the most lanes of a body, and the most work-items of all its launches, for which a launch a turn costs more
/// than lanes, or the whole device, would save.
const MOST_LANES: usize = 4;
const MOST_LIGHT: u64 = 512;

impl Fusing<'_> {
    /// Leaves launches in bodies of loops as they are whose turns no kernel can do. Returns whether there were some.
    pub(super) fn leave_loops(&mut self, chains: &Chains, say: &mut impl FnMut(NodeId, WhyNotFused)) -> bool {
        let done = self.done(chains);
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

    /// Returns the bodies of loops with a known number of turns whose turns stay with the host: no kernel can do them, or a launch a turn is faster.
    pub(super) fn counted_by_host(&self, chains: &Chains) -> Vec<usize> {
        let done = self.done(chains);
        let counted = self.turning.iter().filter(|(_, condition)| condition.is_none());
        counted.map(|(flow, _)| *flow).filter(|flow| !done.contains(flow)).collect()
    }

    /// Returns the bodies of loops whose turns a kernel does.
    fn done(&self, chains: &Chains) -> BTreeSet<usize> {
        let does_turns = |chain: &&Chain| chains.is_whole(&self.tables.ir, chain) && self.can_turn(chain);
        chains.chains.iter().filter(does_turns).map(Chain::flow).collect()
    }

    /// Returns whether a kernel can do the turns of a loop whose body is a chain. If it has a condition, the kernel sees it as the chain leaves
    /// it. If the number of turns is known, this is faster than a launch a turn.
    fn can_turn(&self, chain: &Chain) -> bool {
        let Some(condition) = self.turning.get(&chain.flow()).filter(|_| chain.order == Order::InTurn) else {
            return false;
        };
        // In turns each launch comes after itself too.
        let ir = &self.tables.ir;
        let mut together = Together::default();
        let mut again = chain.launches.iter().chain(&chain.launches);
        if again.any(|node| together.takes(ir, *node, &self.pieces[node].pointers, None).is_err()) {
            return false;
        }
        let Some(Location { mem, offset }) = condition else {
            let is_long = chain.launches.len() > self.most_calls(chain);
            let items: u64 = chain.launches.iter().map(|node| self.pieces[node].items).sum();
            let is_light = chain.lane_ends.len() < MOST_LANES && items <= MOST_LIGHT;
            // Several launches of one lane are one kernel without turns, too.
            let is_chain = chain.lane_ends.is_empty() && chain.launches.len() > 1;
            return (is_chain || is_light) && self.group_for_loops(chain).is_none() && !is_long;
        };
        let is_word = |number: u32| match self.types.get(number as usize) {
            Some((None, text)) => WORDS.contains(&text.as_str()),
            _ => number == lower::BYTES,
        };
        let word = (*mem, *offset..*offset + size_of::<u32>());
        let writes_otherwise =
            |node: &NodeId| lower::writes_otherwise(ir, *node, &self.pieces[node].pointers, word.clone(), is_word);
        !chain.launches.iter().any(writes_otherwise)
    }
}

/// Returns the loops whose turns a kernel may do, by the flows of their bodies, with where their conditions are; None if the number of turns is
/// known.
pub(super) fn turning(tables: &Tables) -> BTreeMap<usize, Option<Location<ViewId>>> {
    let ir = &tables.ir;
    let place = |node: NodeId| {
        let Command::Control(control) = ir.command(node) else { return None };
        let flow = control.bodies.ends().0 as usize + 1;
        let Location { mem, offset } = match control.kind {
            ControlKind::While { .. } => control.condition.as_ref()?,
            ControlKind::Repeat { .. } => return Some((flow, None)),
            ControlKind::When | ControlKind::Switch => return None,
        };
        let is_plain = matches!(ir.views[mem.index()].kind, ViewKind::Buffer | ViewKind::Placed { .. });
        let is_plain = is_plain && tables.mem(*mem)?.flags() & CL_MEM_WRITE_ONLY == 0;
        let is_of_words = [tables.mem(*mem)?.base(), *offset].iter().all(|at| at.is_multiple_of(size_of::<u32>()));
        let is_read = is_plain && is_of_words;
        is_read.then_some((flow, Some(Location { mem: *mem, offset: *offset })))
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
