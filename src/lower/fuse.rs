//! Finds launches that one kernel can do one after the other, and writes a graph in which such kernels take their place.
//!
//! The nodes of a flow get an order in which launches that fit are neighbours, as far as the edges allow it. A *chain* is a run
//! of neighbours: so nothing outside it has to come after one of its nodes and before another, and the graph with the chain as one
//! node has no cycle. Nodes that only order others may be in a chain; they are part of the node too.
//!
//! There are three forms of chains ([`Order`]): launches in turn, the next after all work-items of the one before; and launches that each
//! work-item, or each work-group, does on its own, which need the promise that no work-item touches what another one writes
//! ([`elementwise`](super::elementwise)).
//!
//! Launches in turn that no edges order are in different *lanes* of their chain, which may run side by side (`fuse/lanes.rs`).
//!
//! What fits, and the fused kernels themselves, are the caller's.

mod apart;
mod lanes;
mod open;
mod together;
mod waits;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use fixedbitset::FixedBitSet;

use crate::command::{Command, Control};
use crate::ir::flows::Flows;
use crate::ir::{Access, Body, ById, Ir, NodeId, ViewId};
use crate::lower::elementwise::Uses;

pub(crate) use self::apart::Cut;
pub use self::apart::WhyApart;
#[cfg(test)]
pub(super) use self::lanes::MOST_LANES;
use self::open::Open;
pub(crate) use self::together::{BYTES, Pointer, Together, writes_otherwise};
pub(crate) use self::waits::{MOST_ROUNDS, Waiting};

/// What a launch needs to be part of a fused kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Launches with different numbers are not in one chain. Programs whose texts may be one have one number.
    pub(crate) program: usize,
    /// What the fused kernel has to be given for it, in order: its arguments, and then the sizes of its range.
    pub(crate) needs: Vec<Need>,
    /// By need: equal needs are one argument only if these are equal too. Empty if all are 0.
    pub(crate) shares: Vec<u32>,
    /// The memory that it is given.
    pub(crate) pointers: Vec<Pointer<ViewId>>,
    /// Whether it fits in turn.
    pub(crate) in_turn: bool,
    /// How many work-items it has.
    pub(crate) items: u64,
    /// If its work-items wait for each other or share local memory.
    pub(crate) waiting: Option<Waiting>,
    /// Whether, and how, each work-item or work-group may do it on its own, by the promises.
    pub(crate) each_item: Option<EachItem>,
    /// Whether a kernel may do the turns of the loop that it is in: then one launch is worth a kernel.
    pub(crate) turns: bool,
    /// Whether a kernel begins with it, because one of the launches before it, too, would be too long.
    pub(crate) begins: bool,
    /// Whether it is a launch of the program. Others, which clgraph writes, are worth a kernel only beside one.
    pub(crate) launch: bool,
}

/// What a launch needs that each work-item does on its own, or each work-group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EachItem {
    /// Launches with different numbers have different ranges, and are not in one chain.
    pub(crate) range: usize,
    pub(crate) uses: Uses,
    /// Whether this takes less time than launches in turn, where both fit.
    pub(crate) is_better: bool,
    /// Whether each work-group does it for its part of the work-items.
    pub(crate) in_groups: bool,
}

/// Which work-items of a chain's launches come before which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Order {
    /// All of a launch come before those of the next one.
    InTurn,
    /// Each work-item does its part of all launches on its own.
    EachItem,
    /// Each work-group does its part of all launches on its own, launch after launch.
    EachGroup,
}

/// An argument of a fused kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Need {
    Memory(ViewId),
    /// A value, and the number of its type.
    Value(usize, Vec<u8>),
    /// A size of a range.
    Size(u32),
    /// Local memory: how many arguments of the launch before it are local memory too, and the bytes.
    Local(u32, usize),
}

impl Need {
    /// Returns how many bytes of arguments it takes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Memory(_) | Self::Local(..) => 8,
            Self::Value(_, bytes) => bytes.len(),
            Self::Size(_) => 4,
        }
    }

    /// Returns where it ends if it is the argument behind those that end there.
    fn end(&self, behind: usize) -> usize {
        let size = self.size();
        behind.next_multiple_of(1 << size.trailing_zeros().min(MOST_ALIGNED)) + size
    }

    /// Whether it may be in a table.
    fn is_value(&self) -> bool {
        matches!(self, Self::Value(..) | Self::Size(_))
    }
}

/// No argument has a larger alignment, as a power of two.
const MOST_ALIGNED: u32 = 7;

/// The fewest launches that work-items or work-groups do on their own, where they fit in turn too, maybe with others.
const LEAST_EACH_ITEM: usize = 4;

/// Launches that become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// In order.
    pub(crate) launches: Vec<NodeId>,
    /// What the fused kernel is given.
    pub(crate) needs: Vec<Need>,
    /// How many of these, the last ones, are in a table in memory: values and sizes that would make too many bytes of arguments.
    pub(crate) tabled: usize,
    /// By launch, and need of its piece: the place in `needs`. Launches that each work-item does on its own need no sizes.
    pub(crate) places: Vec<Vec<u32>>,
    pub(crate) order: Order,
    /// Where each lane but the last ends: no edges are between the launches of different lanes, not even over nodes that only order others.
    pub(crate) lane_ends: Vec<usize>,
    /// The flow, and the nodes in its order, with those that only order others.
    at: (usize, Range<usize>),
}

/// The chains of a graph, and the order in which they are chains.
#[derive(Clone, Debug)]
pub(crate) struct Chains {
    /// By flow.
    orders: Vec<Vec<NodeId>>,
    pub(crate) chains: Vec<Chain>,
    pub(crate) cuts: Vec<Cut>,
}

/// A graph with fused nodes.
#[derive(Clone, Debug)]
pub(crate) struct Fused {
    pub(crate) ir: Ir,
    /// By new node: the nodes that it was. Those that only order others come last.
    pub(crate) origins: Vec<Vec<NodeId>>,
}

/// What a fused kernel has at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of arguments. Where it would have many, values are in a table.
    pub(crate) bytes: usize,
    /// Launches that each work-item does on its own. All are inlined, so compilers take longer for more.
    pub(crate) each_item: usize,
}

/// Finds the chains of a flat graph without cycles. `piece` says of a launch what it needs, or None if it does not fit. If conflicts without an order are allowed, `keeps_order` keeps the order of adding.
pub(crate) fn chains<'a>(
    ir: &Ir,
    most: Limits,
    keeps_order: bool,
    piece: impl Fn(NodeId) -> Option<&'a Piece>,
) -> Chains {
    let keeps_order = keeps_order || ir.shares_bytes;
    let of = |node: NodeId, each_item: bool| Fit::of(piece(node)?, each_item);
    let found = chains_of(ir, (most, keeps_order), |node| of(node, true));
    // Launches that would be few on their own are better in turn.
    let in_turn = |node: NodeId| of(node, false).is_some_and(|fit| fit.each_item.is_none());
    let is_many = |chain: &&Chain| chain.order != Order::InTurn && chain.launches.len() >= LEAST_EACH_ITEM;
    let many = found.chains.iter().filter(is_many);
    let many: HashSet<NodeId> = many.flat_map(|chain| &chain.launches).copied().collect();
    let is_few = |node: NodeId| {
        let each_item = of(node, true).is_some_and(|fit| fit.each_item.is_some());
        each_item && in_turn(node) && !many.contains(&node)
    };
    let few: HashSet<NodeId> = ir.ids().filter(|node| is_few(*node)).collect();
    if few.is_empty() { found } else { chains_of(ir, (most, keeps_order), |node| of(node, !few.contains(&node))) }
}

/// How a launch is to be part of a chain.
#[derive(Clone, Copy)]
struct Fit<'a> {
    piece: &'a Piece,
    /// If it does not go in turn.
    each_item: Option<&'a EachItem>,
}

impl<'a> Fit<'a> {
    /// Returns how it fits better, if need be in turn.
    fn of(piece: &'a Piece, each_item: bool) -> Option<Self> {
        let each_item = piece.each_item.as_ref().filter(|of| !piece.in_turn || (of.is_better && each_item));
        (piece.in_turn || each_item.is_some()).then_some(Self { piece, each_item })
    }

    fn order(&self) -> Order {
        match self.each_item {
            None => Order::InTurn,
            Some(of) if of.in_groups => Order::EachGroup,
            Some(_) => Order::EachItem,
        }
    }
}

/// Finds the chains of launches that fit in one way.
fn chains_of<'a>(ir: &Ir, (most, is_fixed): (Limits, bool), fit: impl Fn(NodeId) -> Option<Fit<'a>>) -> Chains {
    let flows = Flows::new(ir);
    // The begins and ends of bodies stay nodes.
    let mut ends = BTreeSet::new();
    for body in &ir.bodies {
        if let Body::Inlined { nodes, .. } = body {
            ends.extend([NodeId(nodes.start), NodeId(nodes.end)]);
        }
    }
    let mut by_flow: Vec<Vec<NodeId>> = vec![Vec::new(); flows.count()];
    ir.ids().for_each(|node| by_flow[flows.of(node)].push(node));
    let mut orders = Vec::with_capacity(by_flow.len());
    let (mut chains, mut cuts) = (Vec::new(), Vec::new());
    // Nodes that share bytes without an edge between them keep their order, which is that of adding.
    if is_fixed && ir.topology.has_backward_edges() {
        return Chains { orders: by_flow, chains, cuts };
    }
    let waits = waits_of_the_host(ir, &flows, &by_flow);
    let kinds = |node: NodeId| {
        let waits = waits.get(node.index()).copied().unwrap_or(0);
        if is_order(ir, node, &ends) {
            Kind::Order(waits)
        } else if let Some(fit) = fit(node) {
            let (program, range) = (fit.piece.program, fit.each_item.map(|of| of.range));
            let is_apart = fit.piece.waiting.as_ref().is_some_and(|waiting| waiting.is_apart);
            Kind::Fits(Group { program, order: fit.order(), range, waits, is_apart }, fit)
        } else {
            Kind::Other
        }
    };
    for (number, nodes) in by_flow.iter().enumerate() {
        let order = if is_fixed { nodes.clone() } else { order(ir, &flows, number, nodes, kinds) };
        let first = chains.len();
        divide(ir, (number, most), &order, kinds, (&mut chains, &mut cuts));
        // Nodes that keep their order are in one lane.
        if !is_fixed {
            chains[first..]
                .iter_mut()
                .filter(|chain| chain.order == Order::InTurn)
                .for_each(|chain| lanes::part(ir, &order, chain));
        }
        orders.push(order);
    }
    Chains { orders, chains, cuts }
}

/// What may be in one chain: launches of programs whose texts may be one, in one form, that wait for the same nodes of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    program: usize,
    order: Order,
    /// The number of the range, if they do not go in turn.
    range: Option<usize>,
    waits: u32,
    /// Whether its work-items wait for each other, and a kernel for it has no others.
    is_apart: bool,
}

impl Group {
    /// Returns why two launches are not in one chain.
    fn fits(&self, other: &Self) -> Result<(), WhyApart> {
        let same = |is_same: bool, why: WhyApart| if is_same { Ok(()) } else { Err(why) };
        same(self.waits == other.waits, WhyApart::Hosts)?;
        same((self.order, self.range) == (other.order, other.range), WhyApart::Ranges)?;
        same(self.is_apart == other.is_apart, WhyApart::Forms)?;
        same(self.program == other.program, WhyApart::Programs)
    }
}

/// What a node can be for a chain.
enum Kind<'a> {
    /// A node that only orders others, with the number of what it waits for.
    Order(u32),
    Fits(Group, Fit<'a>),
    Other,
}

/// A larger table is not made: then nothing that waits for the host is in a chain.
const MOST_BITS: usize = 1 << 28;

/// Returns for each node the number of the set of host tasks, events, branches and loops that it waits for, within its flow. A node
/// for two others waits for what each of them waits for: so nodes with other sets may not become one, or something of the host could
/// wait for itself. Empty if nothing waits for the host.
fn waits_of_the_host(ir: &Ir, flows: &Flows, by_flow: &[Vec<NodeId>]) -> Vec<u32> {
    let is_host = |node: &NodeId| ir.command(*node).is_host();
    if !ir.ids().any(|node| is_host(&node)) {
        return Vec::new();
    }
    let mut all = vec![0; ir.len()];
    let mut next = 1;
    for (number, nodes) in by_flow.iter().enumerate() {
        let hosts: HashMap<NodeId, usize> = nodes.iter().copied().filter(is_host).zip(0..).collect();
        if hosts.is_empty() {
            continue;
        }
        let inside = |node: &NodeId| flows.of(*node) == number;
        if nodes.len().saturating_mul(hosts.len()) > MOST_BITS || ir.topology.has_backward_edges() {
            // Each has a number of its own.
            nodes.iter().for_each(|node| all[node.index()] = next + node.0);
            next += ir.len() as u32;
            continue;
        }
        let mut sets: HashMap<NodeId, FixedBitSet> = HashMap::new();
        let mut known: HashMap<FixedBitSet, u32> = HashMap::from([(FixedBitSet::with_capacity(hosts.len()), 0)]);
        for node in nodes {
            let mut set = FixedBitSet::with_capacity(hosts.len());
            for pred in ir.topology.preds(*node).filter(inside) {
                sets.get(&pred).into_iter().for_each(|of| set.union_with(of));
                hosts.get(&pred).into_iter().for_each(|host| set.insert(*host));
            }
            all[node.index()] = *known.entry(set.clone()).or_insert_with(|| {
                next += 1;
                next - 1
            });
            sets.insert(*node, set);
        }
    }
    all
}

/// Returns whether a node only orders others, and can be part of a chain.
fn is_order(ir: &Ir, node: NodeId, ends: &BTreeSet<NodeId>) -> bool {
    matches!(ir.command(node), Command::Empty) && !ends.contains(&node)
}

/// Orders the nodes of a flow: what fits comes next to what fits with it.
fn order<'a>(
    ir: &Ir,
    flows: &Flows,
    number: usize,
    nodes: &[NodeId],
    kinds: impl Fn(NodeId) -> Kind<'a>,
) -> Vec<NodeId> {
    let inside = |node: &NodeId| flows.of(*node) == number;
    // Fills and copies come early: so they do not divide launches that each work-item does on its own.
    let is_launch = |node: NodeId| !matches!(kinds(node), Kind::Fits(_, fit) if !fit.piece.launch);
    let first = nodes.first().map_or(0, |node| node.index());
    let mut blocked = vec![0_usize; nodes.last().map_or(0, |node| node.index() + 1 - first)];
    let (mut others, mut fitting, mut ordering) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut order = Vec::with_capacity(nodes.len());
    let mut group: Option<Group> = None;
    let mut ready = Vec::new();
    for node in nodes {
        let waits = ir.topology.preds(*node).filter(inside).count();
        blocked[node.index() - first] = waits;
        if waits == 0 {
            ready.push(*node);
        }
    }
    loop {
        for node in ready.drain(..) {
            match kinds(node) {
                Kind::Order(waits) => drop(ordering.insert((waits, node))),
                Kind::Fits(group, _) => drop(fitting.insert((group, node))),
                Kind::Other => drop(others.insert(node)),
            }
        }
        // What fits as long as there is some, and what only orders, because more may fit behind it; then all that does not fit,
        // because more may fit behind that too.
        let all = NodeId(0)..=NodeId(u32::MAX);
        let same = group.and_then(|now| fitting.range((now, *all.start())..=(now, *all.end())).next().copied());
        let only_orders = match group {
            Some(Group { waits, .. }) => ordering.range((waits, *all.start())..=(waits, *all.end())).next().copied(),
            None => ordering.first().copied(),
        };
        let next = match (only_orders, same) {
            (Some(found), same) if same.is_none_or(|(_, other)| found.1 < other) => {
                ordering.remove(&found);
                found.1
            }
            (_, Some(found)) => {
                fitting.remove(&found);
                found.1
            }
            _ => {
                group = None;
                if let Some(node) = others.pop_first() {
                    node
                } else if let Some((_, node)) = ordering.pop_first() {
                    node
                } else if let Some(found) = fitting.iter().min_by_key(|(_, node)| (is_launch(*node), *node)).copied() {
                    fitting.remove(&found);
                    group = Some(found.0);
                    found.1
                } else {
                    break;
                }
            }
        };
        let mut now = Some(next);
        while let Some(node) = now.take() {
            order.push(node);
            for after in ir.topology.succs(node).filter(inside) {
                let waits = &mut blocked[after.index() - first];
                *waits = waits.saturating_sub(1);
                if *waits == 0 {
                    ready.push(after);
                }
            }
            // The end of a branch or loop comes right after it, and its bodies between them.
            if let Command::Control(control) = ir.command(node)
                && let Some(Body::Inlined { nodes, .. }) = control.bodies.of(&ir.bodies).last()
            {
                let exit = NodeId(nodes.end);
                ready.retain(|node| *node != exit);
                now = Some(exit);
            }
        }
    }
    order
}

/// Divides the order of a flow into chains.
fn divide<'a>(
    ir: &Ir,
    (number, most): (usize, Limits),
    order: &[NodeId],
    kinds: impl Fn(NodeId) -> Kind<'a>,
    (chains, cuts): (&mut Vec<Chain>, &mut Vec<Cut>),
) {
    let mut open: Option<Open> = None;
    // The last launch of a chain that something else has ended.
    let mut ended: Option<(NodeId, Group)> = None;
    for (at, node) in order.iter().enumerate() {
        let (group, fit) = match kinds(*node) {
            Kind::Order(waits) if open.as_ref().is_none_or(|open| open.group.waits == waits) => continue,
            Kind::Fits(group, fit) => (group, fit),
            Kind::Order(_) | Kind::Other => {
                if let Some(open) = open.take() {
                    ended = open.last().map(|last| (last, open.group));
                    chains.extend(open.close(ir, (number, most)));
                }
                continue;
            }
        };
        if let Some(open) = &mut open {
            match open.takes(ir, most, at, *node, group, fit) {
                Ok(()) => continue,
                Err(why) => cuts.extend(open.last().map(|before| Cut { before, behind: *node, why })),
            }
        } else if let Some((before, of)) = ended {
            let why = of.fits(&group).err().unwrap_or(WhyApart::Between);
            cuts.push(Cut { before, behind: *node, why });
        }
        ended = None;
        chains.extend(open.take().and_then(|open| open.close(ir, (number, most))));
        let mut new = Open::new(group, at);
        // One launch alone fits, unless there is no room for its local memory and a fused kernel's own.
        open = match new.takes(ir, most, at, *node, group, fit) {
            Ok(()) => Some(new),
            Err(why) => {
                cuts.push(Cut { before: *node, behind: *node, why });
                ended = Some((*node, group));
                None
            }
        };
    }
    chains.extend(open.and_then(|open| open.close(ir, (number, most))));
}

impl Chain {
    /// Returns the flow that it is in.
    pub(crate) fn flow(&self) -> usize {
        self.at.0
    }
}

impl Chains {
    /// Returns whether a chain has all that its flow does.
    pub(crate) fn is_whole(&self, ir: &Ir, chain: &Chain) -> bool {
        let nodes = &self.orders[chain.flow()];
        nodes.iter().filter(|node| !matches!(ir.command(**node), Command::Empty)).count() == chain.launches.len()
    }

    /// Returns the launches of a chain in the order of its flow. Those of lanes are not next to each other there.
    pub(crate) fn in_order(&self, chain: &Chain) -> Vec<NodeId> {
        let launches: HashSet<&NodeId> = chain.launches.iter().collect();
        let (flow, nodes) = &chain.at;
        self.orders[*flow][nodes.clone()].iter().filter(|node| launches.contains(node)).copied().collect()
    }

    /// Writes the graph in which commands take the places of chains. `kernels` has the command of each chain, or None for one
    /// that stays as it is. Returns None if a table is full.
    pub(crate) fn write(&self, from: &Ir, kernels: &[Option<Command<ById>>]) -> Option<Fused> {
        let mut to = from.without_nodes();
        let mut origins = Vec::new();
        let mut places: Vec<Option<NodeId>> = vec![None; from.len()];
        // By flow and place: where a chain begins.
        let begins: HashMap<(usize, usize), usize> = (0..self.chains.len())
            .filter(|at| kernels.get(*at).is_some_and(Option::is_some))
            .map(|at| ((self.chains[at].at.0, self.chains[at].at.1.start), at))
            .collect();
        let mut ahead: Vec<(usize, usize)> = vec![(0, 0)];
        while let Some((flow, at)) = ahead.pop() {
            let Some(node) = self.orders[flow].get(at) else { continue };
            if !to.has_room() {
                return None;
            }
            let chain = begins.get(&(flow, at)).map(|chain| (&self.chains[*chain], &kernels[*chain]));
            if let Some((chain, Some(command))) = chain {
                let nodes = &self.orders[flow][chain.at.1.clone()];
                write_chain(from, &mut to, nodes, command, &mut places)?;
                let others = nodes.iter().filter(|node| matches!(from.command(**node), Command::Empty));
                origins.push(chain.launches.iter().chain(others).copied().collect());
                ahead.push((flow, chain.at.1.end));
                continue;
            }
            let mut waits: Vec<NodeId> = from.topology.preds(*node).filter_map(|pred| places[pred.index()]).collect();
            let command = from.command(*node);
            places[node.index()] = Some(NodeId(origins.len() as u32));
            origins.push(vec![*node]);
            ahead.push((flow, at + 1));
            if let Command::Control(control) = command {
                let (start, end) = control.bodies.ends();
                ahead.extend((start..end).rev().map(|body| (body as usize + 1, 0)));
                let bodies = to.push_bodies(control.bodies.of(&from.bodies).iter().cloned())?;
                let command = Command::Control(Box::new(Control { bodies, ..(**control).clone() }));
                to.push_again(from, *node, command, &mut waits);
            } else {
                to.push_again(from, *node, command.clone(), &mut waits);
            }
        }
        let place = |node: NodeId| places[node.index()].unwrap_or(node);
        for body in &mut to.bodies {
            if let Body::Inlined { of, nodes } = body {
                *of = place(*of);
                *nodes = place(NodeId(nodes.start)).0..place(NodeId(nodes.end)).0;
            }
        }
        to.allocs.iter_mut().for_each(|alloc| alloc.node = place(alloc.node));
        Some(Fused { ir: to, origins })
    }
}

/// Writes one node for the nodes of a chain.
fn write_chain(
    from: &Ir,
    to: &mut Ir,
    nodes: &[NodeId],
    command: &Command<ById>,
    places: &mut [Option<NodeId>],
) -> Option<()> {
    let mut waits: Vec<NodeId> = Vec::new();
    for node in nodes {
        waits.extend(from.topology.preds(*node).filter_map(|pred| places[pred.index()]));
    }
    let mut accesses: Vec<Access> = Vec::new();
    for access in nodes.iter().flat_map(|node| from.accesses(*node)) {
        if !accesses.contains(access) {
            accesses.push(access.clone());
        }
    }
    let new = to.push_node(command.clone(), accesses.into_iter(), &mut waits)?;
    nodes.iter().for_each(|node| places[node.index()] = Some(new));
    Some(())
}
