//! Replaces short loops with a known number of turns by so many copies of their bodies. What comes after lowering sees plain
//! commands then, which can be in one command buffer, on several queues, or in the body of a loop that goes ahead.
//!
//! A loop becomes an empty node, the entry and the nodes of its body for each turn, and its exit. A turn begins behind all of the
//! turn before. A loop inside a loop is replaced in each turn of that. The whole graph is copied once.

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
    let flows = Flows::new(ir);
    let loops = short(ir, &flows);
    if loops.is_empty() { None } else { copy(ir, &flows, loops) }
}

/// What the nodes of a flow are, after the loops in it were replaced.
#[derive(Clone, Copy, Debug, Default)]
struct Content {
    nodes: u64,
    /// Whether something in it runs on the host, so that its loops stay.
    has_host: bool,
    /// Whether something in it is no plain command, so that a loop around it stays.
    has_other: bool,
}

/// Returns the loops that their turns can replace, and their turns. A loop in a loop is replaced in each turn of that.
fn short(ir: &Ir, flows: &Flows) -> Vec<(NodeId, u64)> {
    let mut content = vec![Content::default(); flows.count()];
    let mut loops = Vec::new();
    // The nodes of a body come after its loop.
    for node in (0..ir.len() as u32).rev().map(NodeId) {
        let flow = flows.of(node);
        content[flow].nodes += 1;
        let command = ir.command(node);
        if let Command::Control(control) = command
            && let ControlKind::Repeat { turns } = control.kind
            && let Some(nodes) = body(ir, control)
        {
            let inside = content[flows.of(NodeId(nodes.start))];
            let all = turns.saturating_mul(inside.nodes);
            if !inside.has_host && !inside.has_other && all <= MOST {
                content[flow].nodes += all;
                loops.push((node, turns));
                continue;
            }
        }
        content[flow].has_host |= command.is_host();
        content[flow].has_other |= !is_plain(command);
    }
    loops.retain(|(node, _)| !content[flows.of(*node)].has_host);
    loops.reverse();
    loops
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

/// Writes a graph in which loops are replaced. None if a table is full.
fn copy(from: &Ir, flows: &Flows, loops: Vec<(NodeId, u64)>) -> Option<Unrolled> {
    let (origins, places, later) = (Vec::new(), vec![None; from.len()], Vec::new());
    let mut copy = Copy { from, to: from.without_nodes(), origins, places, later };
    let (mut open, mut done): (Vec<Turns>, Vec<UnrolledAt>) = (Vec::new(), Vec::new());
    let mut at = 0;
    loop {
        if let Some(turns) = open.last_mut()
            && turns.body.end == at
        {
            copy.end_turn(flows, turns);
            turns.left -= 1;
            if turns.left > 0 {
                at = turns.body.start;
            } else {
                // The exit comes next.
                let UnrolledAt { begin, turns, .. } = turns.is;
                done.push(UnrolledAt { begin, end: copy.next(), turns });
                open.pop();
            }
        }
        if at >= from.len() as u32 {
            break;
        }
        let node = NodeId(at);
        let waits = copy.waits(node, open.last_mut());
        let replaced = loops.binary_search_by_key(&node, |(of, _)| *of).ok().map(|found| loops[found].1);
        match (from.command(node), replaced) {
            (Command::Control(control), Some(turns)) => {
                let (body, begin) = (body(from, control)?, copy.next());
                copy.push(node, Command::Empty, waits)?;
                let is = UnrolledAt { begin, end: copy.next(), turns };
                if turns > 0 {
                    at = body.start;
                    open.push(Turns { body, left: turns, before: vec![begin], is });
                } else {
                    at = body.end;
                    done.push(is);
                }
            }
            (command, _) => {
                at += 1;
                copy.node(node, command, waits)?;
            }
        }
    }
    done.sort_unstable_by_key(|place| place.begin);
    Some(copy.finish(loops, done))
}

/// A loop whose turns are written.
struct Turns {
    body: Range<u32>,
    left: u64,
    /// New nodes that the next turn begins behind.
    before: Vec<NodeId>,
    is: UnrolledAt,
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
    /// Returns the number of the next new node.
    fn next(&self) -> NodeId {
        NodeId(self.origins.len() as u32)
    }

    /// Writes a node that is no loop that is replaced.
    fn node(&mut self, node: NodeId, command: &Command<ById>, waits: Vec<NodeId>) -> Option<()> {
        let command = match command {
            Command::Control(control) => {
                let bodies = control.bodies.of(&self.from.bodies).iter().cloned();
                let bodies = self.to.push_bodies(bodies)?;
                Command::Control(Box::new(Control { bodies, ..(**control).clone() }))
            }
            command => command.clone(),
        };
        self.push(node, command, waits)
    }

    /// Returns what a node waits for, in the innermost turn that is written. Of a loop that was replaced this is the last turn; of one
    /// without a turn nothing.
    fn waits(&mut self, node: NodeId, turns: Option<&mut Turns>) -> Vec<NodeId> {
        let preds = self.from.topology.preds(node);
        let Some(turns) = turns else {
            let (before, back): (Vec<NodeId>, Vec<NodeId>) = preds.partition(|pred| *pred < node);
            self.later.extend(back.into_iter().map(|pred| (pred, node)));
            return before.into_iter().filter_map(|pred| self.places[pred.index()]).collect();
        };
        // The entry of the body, behind the turn before.
        let mut waits = if node.0 == turns.body.start { std::mem::take(&mut turns.before) } else { Vec::new() };
        let inside = preds.filter(|pred| turns.body.contains(&pred.0) && *pred < node);
        waits.extend(inside.filter_map(|pred| self.places[pred.index()]));
        waits
    }

    /// Adds the edges to earlier nodes of a turn, and notes what the next turn begins behind.
    fn end_turn(&mut self, flows: &Flows, turns: &mut Turns) {
        let (from, places) = (self.from, &self.places);
        let inside = |node: NodeId| from.topology.preds(node).filter(|pred| turns.body.contains(&pred.0));
        if from.topology.has_backward_edges() {
            let flow = flows.of(NodeId(turns.body.start));
            let own = turns.body.clone().map(NodeId).filter(|node| flows.of(*node) == flow);
            let back =
                own.flat_map(|node| inside(node).filter(move |pred| *pred >= node).map(move |pred| (pred, node)));
            let back: Vec<_> = back.filter_map(|(pred, node)| places[pred.index()].zip(places[node.index()])).collect();
            add_edges(&mut self.to, &back);
        }
        // The exit waits for all last nodes of the body.
        turns.before = inside(NodeId(turns.body.end)).filter_map(|pred| places[pred.index()]).collect();
    }

    fn push(&mut self, node: NodeId, command: Command<ById>, mut waits: Vec<NodeId>) -> Option<()> {
        if !self.to.has_room() {
            return None;
        }
        self.places[node.index()] = Some(self.next());
        self.origins.push(node);
        self.to.push_again(self.from, node, command, &mut waits);
        Some(())
    }

    fn finish(mut self, loops: Vec<(NodeId, u64)>, places: Vec<UnrolledAt>) -> Unrolled {
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
        Unrolled { ir: self.to, origins: self.origins, loops, places }
    }
}
