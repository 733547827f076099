//! Replaces short loops with a known number of turns by so many copies of their bodies. What comes after lowering sees plain
//! commands then, which can be in one command buffer, on several queues, or in the body of a loop that goes ahead.
//!
//! A loop becomes an empty node, the entry and the nodes of its body for each turn, and its exit. A turn begins behind all of the
//! turn before. Loops inside loops are replaced first.

use std::ops::Range;

use super::inline::add_edges;
use crate::command::{Command, Control, ControlKind};
use crate::ir::flows::Flows;
use crate::ir::{Body, ById, Ir, NodeId, Span, ViewId};

/// The most nodes that a loop becomes. The entry of the body counts in each turn.
const MOST: u64 = 512;

/// A graph with fewer loops.
#[derive(Clone, Debug)]
pub(crate) struct Unrolled {
    pub(crate) ir: Ir,
    /// By new node: the node that it was.
    pub(crate) origins: Vec<NodeId>,
    /// The loops that were replaced, and their turns.
    pub(crate) loops: Vec<(NodeId, u64)>,
    /// Where the turns are, in the order of the new nodes. A loop in a loop has a place in each turn of it.
    pub(crate) places: Vec<UnrolledAt>,
}

/// The place of a loop that was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnrolledAt {
    /// The empty node before the turns. The entry of the first turn follows it.
    pub(crate) begin: NodeId,
    /// The exit.
    pub(crate) end: NodeId,
    pub(crate) turns: u64,
}

/// Why a loop with a known number of turns stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stays {
    /// This node in it is not a plain command.
    Node(NodeId),
    /// It would become too many nodes.
    Long,
    /// This node beside it runs on the host, and may fail before the loop begins.
    Beside(NodeId),
}

/// Replaces the short loops of a flat graph. None if there are none, or if a table is full.
pub(crate) fn unroll(ir: &Ir) -> Option<Unrolled> {
    let mut done: Option<Unrolled> = None;
    loop {
        let now = done.as_ref().map_or(ir, |done| &done.ir);
        let short = repeats(now).into_iter().filter(|of| of.stays.is_none());
        let short: Vec<(NodeId, u64)> = short.map(|of| (of.node, of.turns)).collect();
        if short.is_empty() {
            return done;
        }
        let mut next = copy(now, &short)?;
        if let Some(before) = done {
            // Loops of which nothing is left to replace are copied as they are.
            for (new, old) in (0..).zip(&next.origins) {
                if let Ok(at) = before.places.binary_search_by_key(old, |place| place.begin) {
                    let place = before.places[at];
                    let end = NodeId(new + place.end.0 - place.begin.0);
                    next.places.push(UnrolledAt { begin: NodeId(new), end, ..place });
                }
            }
            next.places.sort_unstable_by_key(|place| place.begin);
            let origin = |node: &mut NodeId| *node = before.origins[node.index()];
            next.origins.iter_mut().for_each(origin);
            next.loops.iter_mut().for_each(|(node, _)| origin(node));
            next.loops.extend(before.loops);
        }
        done = Some(next);
    }
}

/// A loop with a known number of turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeat {
    pub(crate) node: NodeId,
    pub(crate) turns: u64,
    /// None if its turns can replace it.
    pub(crate) stays: Option<Stays>,
}

/// Returns the loops with a known number of turns.
pub(crate) fn repeats(ir: &Ir) -> Vec<Repeat> {
    let repeat = |node: NodeId| match ir.command(node) {
        Command::Control(control) => match control.kind {
            ControlKind::Repeat { turns } => Some(Repeat { node, turns, stays: stays(ir, node, control, turns) }),
            ControlKind::When | ControlKind::Switch | ControlKind::While { .. } => None,
        },
        _ => None,
    };
    let mut all: Vec<Repeat> = ir.ids().filter_map(repeat).collect();
    if all.iter().any(|of| of.stays.is_none()) {
        let flows = Flows::new(ir);
        let mut on_host = vec![None; flows.count()];
        let at = |node: &NodeId| all.binary_search_by_key(node, |of| of.node);
        let is_replaced = |node: NodeId| at(&node).is_ok_and(|at| all[at].stays.is_none());
        for node in ir.ids().filter(|node| ir.command(*node).is_host() && !is_replaced(*node)) {
            on_host[flows.of(node)].get_or_insert(node);
        }
        for of in &mut all {
            of.stays = of.stays.or_else(|| on_host[flows.of(of.node)].map(Stays::Beside));
        }
    }
    all
}

/// Returns why a loop stays, as far as it is the affair of its body.
fn stays(ir: &Ir, of: NodeId, control: &Control<ViewId, Span>, turns: u64) -> Option<Stays> {
    let Some(body) = body(ir, control) else { return Some(Stays::Node(of)) };
    let special = body.clone().map(NodeId).find(|node| !is_plain(ir.command(*node)));
    let all = turns.saturating_mul(body.len() as u64);
    special.map(Stays::Node).or_else(|| (all > MOST).then_some(Stays::Long))
}

/// Returns whether a turn can have a copy of a command.
fn is_plain(command: &Command<ById>) -> bool {
    match command {
        Command::Empty
        | Command::Kernel { .. }
        | Command::Copy { .. }
        | Command::CopyRect(_)
        | Command::CopyImage(_)
        | Command::Fill { .. }
        | Command::Hint { .. } => true,
        // All turns use one input and one result, and call one function.
        Command::Write { .. } | Command::Read { .. } | Command::Native { .. } | Command::Task(_) => false,
        Command::Event { .. } | Command::Alloc(_) | Command::Free(_) => false,
        Command::SubGraph(_) | Command::Control(_) => false,
    }
}

/// Returns the entry and the nodes of the body of a loop.
fn body(ir: &Ir, control: &Control<ViewId, Span>) -> Option<Range<u32>> {
    match control.bodies.of(&ir.bodies) {
        [Body::Inlined { nodes, .. }] => Some(nodes.clone()),
        _ => None,
    }
}

/// Writes a graph in which loops are replaced that have no others in them. None if a table is full.
fn copy(from: &Ir, loops: &[(NodeId, u64)]) -> Option<Unrolled> {
    let places = vec![None; from.len()];
    let mut copy = Copy { from, to: from.without_nodes(), origins: Vec::new(), places, later: Vec::new() };
    let mut ahead = loops.iter().peekable();
    let mut at = 0;
    while at < from.len() as u32 {
        let node = NodeId(at);
        match (from.command(node), ahead.next_if(|(of, _)| *of == node)) {
            (Command::Control(control), Some((_, turns))) => {
                let nodes = body(from, control)?;
                at = nodes.end;
                copy.turns(node, nodes, *turns)?;
            }
            (command, _) => {
                at += 1;
                copy.node(node, command)?;
            }
        }
    }
    Some(copy.finish(loops))
}

/// The new graph while it is written.
struct Copy<'a> {
    from: &'a Ir,
    to: Ir,
    origins: Vec<NodeId>,
    /// By old node: the new one, for a node in a loop that of the last turn. None if it has none.
    places: Vec<Option<NodeId>>,
    /// Old edges to earlier nodes.
    later: Vec<(NodeId, NodeId)>,
}

impl Copy<'_> {
    /// Writes a node that is in no loop that is replaced.
    fn node(&mut self, node: NodeId, command: &Command<ById>) -> Option<()> {
        let command = match command {
            Command::Control(control) => {
                let bodies = control.bodies.of(&self.from.bodies).iter().cloned();
                let bodies = self.to.push_bodies(bodies)?;
                Command::Control(Box::new(Control { bodies, ..(**control).clone() }))
            }
            command => command.clone(),
        };
        let waits = self.waits(node);
        self.push(node, command, waits)
    }

    /// Writes the turns of a loop.
    fn turns(&mut self, of: NodeId, body: Range<u32>, turns: u64) -> Option<()> {
        let from = self.from;
        let waits = self.waits(of);
        self.push(of, Command::Empty, waits)?;
        let preds = |node: NodeId| from.topology.preds(node).filter(|pred| body.contains(&pred.0));
        let mut before: Vec<NodeId> = self.places[of.index()].into_iter().collect();
        for _ in 0..turns {
            let start = self.origins.len() as u32;
            let here = |node: NodeId| NodeId(start + node.0 - body.start);
            for node in body.clone().map(NodeId) {
                let mut waits = if node.0 == body.start { std::mem::take(&mut before) } else { Vec::new() };
                waits.extend(preds(node).filter(|pred| *pred < node).map(here));
                self.push(node, from.command(node).clone(), waits)?;
            }
            for node in body.clone().map(NodeId) {
                let back: Vec<_> =
                    preds(node).filter(|pred| *pred >= node).map(|pred| (here(pred), here(node))).collect();
                add_edges(&mut self.to, &back);
            }
            // The exit waits for all last nodes of the body.
            before = preds(NodeId(body.end)).map(here).collect();
        }
        Some(())
    }

    /// Returns what a node waits for. Of a loop that was replaced this is the last turn; of one without a turn nothing.
    fn waits(&mut self, node: NodeId) -> Vec<NodeId> {
        let preds = self.from.topology.preds(node);
        let (before, back): (Vec<NodeId>, Vec<NodeId>) = preds.partition(|pred| *pred < node);
        self.later.extend(back.into_iter().map(|pred| (pred, node)));
        before.into_iter().filter_map(|pred| self.places[pred.index()]).collect()
    }

    fn push(&mut self, node: NodeId, command: Command<ById>, mut waits: Vec<NodeId>) -> Option<()> {
        if !self.to.has_room() {
            return None;
        }
        self.places[node.index()] = Some(NodeId(self.origins.len() as u32));
        self.origins.push(node);
        self.to.push_again(self.from, node, command, &mut waits);
        Some(())
    }

    fn finish(mut self, loops: &[(NodeId, u64)]) -> Unrolled {
        let place = |node: NodeId| self.places[node.index()].unwrap_or(node);
        for body in &mut self.to.bodies {
            if let Body::Inlined { of, nodes } = body {
                *of = place(*of);
                *nodes = place(NodeId(nodes.start)).0..place(NodeId(nodes.end)).0;
            }
        }
        self.to.allocs.iter_mut().for_each(|alloc| alloc.node = place(alloc.node));
        let later: Vec<_> = self.later.iter().map(|(from, to)| (place(*from), place(*to))).collect();
        add_edges(&mut self.to, &later);
        let places = loops.iter().filter_map(|(node, turns)| {
            let Command::Control(control) = self.from.command(*node) else { return None };
            let end = NodeId(body(self.from, control)?.end);
            Some(UnrolledAt { begin: place(*node), end: place(end), turns: *turns })
        });
        let places = places.collect();
        Unrolled { ir: self.to, origins: self.origins, loops: loops.to_vec(), places }
    }
}
