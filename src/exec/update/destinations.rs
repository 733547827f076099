//! Where the values of parameters go: for updates that change nothing but values, which most updates are.
//!
//! Finalize finds, for each kernel node, to which bytes of the executable and to which argument of which command the value of
//! each parameter goes. An update of such nodes writes values there directly. A node that has changed in anything else since
//! takes the full update (`transaction.rs`), which finds its destinations again. So does each node for which the driver, or a
//! submission that has not been enqueued yet, does not allow the direct way.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::command::{Arg, Command};
use crate::exec::update::updatable::Updatable;
use crate::graph::{Binding, Cell, Nodes, ParameterValue, State, Tables};
use crate::handles::GraphId;
use crate::ir::{NodeId, Span};

/// Where the values of all nodes go.
#[derive(Default)]
pub(in crate::exec) struct Destinations {
    /// By node of the graph.
    nodes: Vec<OfNode>,
    /// Those of all nodes, and some that are not used any more.
    list: Vec<Destination>,
    /// How many of the list are not used any more.
    unused: usize,
    /// Of how many nodes the destinations have to be found again.
    unknown: usize,
    /// Whether some are of recorded kernels.
    pub(in crate::exec) has_native: bool,
    /// How often another graph has given values.
    epoch: u32,
    /// How many direct updates there were.
    #[cfg(test)]
    pub(in crate::exec) direct: usize,
    pub(in crate::exec) dropped: Unused,
    /// Room for one update: the nodes, what changed, and what was there.
    ids: Vec<NodeId>,
    changed: Vec<u32>,
    before: Vec<u8>,
}

/// The parameters of a node.
#[derive(Clone, Copy)]
struct OfNode {
    /// Where they are in the list.
    start: u32,
    /// [`NOT_DIRECT`] if the node cannot be updated directly.
    count: u32,
    /// How often the node had been changed in more than values when the executable got its values.
    reshaped: u32,
    /// The number of the epoch in which the executable got the node's values.
    epoch: u32,
    /// Whether the place in the list is right.
    is_known: bool,
}

const NOT_DIRECT: u32 = u32::MAX;

impl OfNode {
    fn range(self) -> Range<usize> {
        let count = if self.count == NOT_DIRECT { 0 } else { self.count };
        self.start as usize..(self.start + count) as usize
    }
}

/// Where the value of a parameter goes.
pub(in crate::exec) struct Destination {
    /// None if it is not used any more.
    cell: Option<Arc<Cell>>,
    /// When the value that is there was set, or an earlier time.
    time: u64,
    /// None if it is no plain value: then the node can be updated directly only while the parameter stays what it is.
    bytes: Option<Span>,
    pub(in crate::exec) step: u32,
    pub(in crate::exec) arg: u16,
    pub(in crate::exec) is_native: bool,
}

impl Destination {
    /// Returns the value that the executable has.
    pub(in crate::exec) fn value<'a>(&self, tables: &'a Tables) -> &'a [u8] {
        self.bytes.map_or(&[], |bytes| tables.ir.bytes(bytes))
    }

    /// Whether the parameter was set since.
    fn is_set(&self) -> bool {
        self.cell.as_ref().is_some_and(|cell| cell.time() != self.time)
    }
}

/// Parameters that are not used any more. They may own what is a user's, so they are dropped where no lock is held.
pub(in crate::exec) type Unused = Vec<Arc<Cell>>;

impl Destinations {
    /// Finds the destinations of all nodes. `tables`: the executable's; `from`: the graph's, which the executable was just
    /// made of; `reshaped`: how often its nodes have changed in more than values.
    pub(in crate::exec) fn new(
        updatable: &Updatable,
        tables: &Tables,
        from: &Tables,
        reshaped: &FxHashMap<NodeId, u32>,
    ) -> Self {
        let mut this = Self::default();
        this.nodes.reserve_exact(from.ir.len());
        let (mut near, mut found) = (0, Found::new());
        for node in from.ir.ids() {
            found.clear();
            let (start, is_direct) =
                (this.list.len() as u32, find(updatable, node, (tables, from), &mut near, &mut found));
            let count = if is_direct { found.len() as u32 } else { NOT_DIRECT };
            if is_direct {
                this.has_native |= found.iter().any(|one| one.is_native);
                this.list.extend(found.drain(..).map(Destination::from));
            }
            let reshaped = reshaped.get(&node).copied().unwrap_or(0);
            this.nodes.push(OfNode { start, count, reshaped, epoch: 0, is_known: true });
        }
        this.list.shrink_to_fit();
        this
    }

    /// Another graph has given values: what is there is not what the own graph's nodes say.
    pub(in crate::exec) fn forget(&mut self) {
        self.epoch += 1;
    }

    /// Notes that the executable just got the values of nodes from its own graph. Their destinations are found again when
    /// they are next needed: the update after this one may be as large. Returns parameters that the nodes may not have any
    /// more.
    pub(in crate::exec) fn assigned(&mut self, nodes: &[NodeId], reshaped: &FxHashMap<NodeId, u32>) -> Unused {
        let mut unused = Unused::new();
        for node in nodes {
            let Some(of) = self.nodes.get_mut(node.index()) else { continue };
            let now = reshaped.get(node).copied().unwrap_or(0);
            let is_same = |one: &Destination| one.bytes.is_some() || !one.is_set();
            if of.epoch != self.epoch || of.reshaped != now || !self.list[of.range()].iter().all(is_same) {
                self.unknown += usize::from(of.is_known);
                (of.epoch, of.reshaped, of.is_known) = (self.epoch, now, false);
                unused.extend(self.list[of.range()].iter_mut().filter_map(|old| old.cell.take()));
            }
        }
        unused
    }

    /// Finds the destinations of a node again. Values are looked at again whenever their parameters were set.
    #[cold]
    fn find_again(&mut self, updatable: &Updatable, node: NodeId, tables: (&Tables, &Tables)) {
        let Some(of) = self.nodes.get(node.index()).copied() else { return };
        self.unknown -= 1;
        let mut found = Found::new();
        let is_direct = find(updatable, node, tables, &mut 0, &mut found);
        // Another executable's update may have brought newer values to the graph than this executable has.
        found.iter_mut().filter(|one| one.bytes.is_some()).for_each(|one| one.time = 0);
        self.has_native |= found.iter().any(|one| one.is_native);
        let (range, mut place) = (of.range(), OfNode { is_known: true, ..of });
        if is_direct && found.len() == range.len() {
            // The new ones take the place of the old ones.
            place.count = range.len() as u32;
            let replaced = self.list[range].iter_mut().zip(found).filter_map(|(old, new)| new.replace(old));
            self.dropped.extend(replaced);
        } else {
            self.unused += range.len();
            self.dropped.extend(self.list[range].iter_mut().filter_map(|old| old.cell.take()));
            (place.start, place.count) = (self.list.len() as u32, NOT_DIRECT);
            if is_direct {
                place.count = found.len() as u32;
                self.list.extend(found.into_iter().map(Destination::from));
            }
        }
        self.nodes[node.index()] = place;
    }

    /// Removes what is not used any more, once it is more than the rest.
    pub(in crate::exec) fn shrink(&mut self) {
        if self.unused <= 64 + self.list.len() / 2 {
            return;
        }
        let mut old: Vec<Option<Destination>> = std::mem::take(&mut self.list).into_iter().map(Some).collect();
        for of in &mut self.nodes {
            let range = of.range();
            of.start = self.list.len() as u32;
            self.list.extend(old[range].iter_mut().filter_map(Option::take));
        }
        self.unused = 0;
    }

    /// Writes the values of the nodes that were set since, and keeps what was there. Returns false if one of the nodes cannot
    /// be updated directly: then some values may be written.
    pub(in crate::exec) fn write(
        &mut self,
        (updatable, from): (&Updatable, &State),
        graph: GraphId,
        nodes: &(impl Nodes + ?Sized),
        tables: &mut Tables,
    ) -> bool {
        let Self { ids, .. } = self;
        ids.clear();
        let mut all_are_here = true;
        nodes.for_each_node(|node| match node {
            Some(node) if node.graph() == graph => ids.push(node.id()),
            _ => all_are_here = false,
        });
        if !all_are_here {
            return false;
        }
        let ids = std::mem::take(ids);
        let direct = self.write_to((updatable, from), &ids, tables);
        self.ids = ids;
        direct
    }

    fn write_to(&mut self, (updatable, from): (&Updatable, &State), ids: &[NodeId], tables: &mut Tables) -> bool {
        self.changed.clear();
        self.before.clear();
        let is_plain = from.reshaped.is_empty();
        let reshaped_now = |node: &NodeId| if is_plain { 0 } else { from.reshaped.get(node).copied().unwrap_or(0) };
        let may_be_unknown = if self.unknown > 0 { ids } else { &[] };
        for node in may_be_unknown {
            let of = self.nodes.get(node.index()).filter(|of| !of.is_known && of.epoch == self.epoch);
            if of.is_some_and(|of| of.reshaped == reshaped_now(node)) {
                self.find_again(updatable, *node, (tables, from));
            }
        }
        let Self { nodes: all, list, epoch, changed, before, .. } = self;
        for node in ids {
            let Some(of) = all.get(node.index()) else { return false };
            let is_usable = of.is_known && of.epoch == *epoch && of.count != NOT_DIRECT;
            let is_current = || if is_plain { of.reshaped == 0 } else { of.reshaped == reshaped_now(node) };
            if !is_usable || !is_current() {
                return false;
            }
            let (start, count) = (of.start as usize, of.count as usize);
            for (at, one) in (of.start..).zip(&mut list[start..start + count]) {
                let Some(cell) = one.cell.as_ref().filter(|cell| cell.time() != one.time) else { continue };
                let Some(bytes) = one.bytes else { return false };
                let bytes = tables.ir.bytes_mut(bytes);
                one.time = cell.now(|value, time| {
                    if let ParameterValue::Bytes(new) = value
                        && replace(bytes, new, before)
                    {
                        changed.push(at);
                    }
                    time
                });
            }
        }
        true
    }

    /// Those whose values have changed.
    pub(in crate::exec) fn changed(&self) -> impl Iterator<Item = &Destination> + Clone {
        self.changed.iter().map(|at| &self.list[*at as usize])
    }

    /// Takes back what was written.
    pub(in crate::exec) fn take_back(&mut self, tables: &mut Tables) {
        let mut before = &*self.before;
        for at in &self.changed {
            let one = &mut self.list[*at as usize];
            let Some(bytes) = one.bytes else { continue };
            let (was, rest) = before.split_at(bytes.len());
            tables.ir.bytes_mut(bytes).copy_from_slice(was);
            before = rest;
            // Never: it is looked at again.
            one.time = 0;
        }
    }
}

/// Writes a value of the same size, if it is another one. Returns whether it is, and keeps what was there.
#[inline]
fn replace(bytes: &mut [u8], new: &[u8], before: &mut Vec<u8>) -> bool {
    /// For sizes that nearly all values have: without calls of functions.
    #[inline]
    fn sized<const N: usize>(bytes: &mut [u8], new: &[u8], before: &mut Vec<u8>) -> Option<bool> {
        let (bytes, new): (&mut [u8; N], &[u8; N]) = (bytes.try_into().ok()?, new.try_into().ok()?);
        let differs = bytes != new;
        if differs {
            before.extend_from_slice(bytes);
            *bytes = *new;
        }
        Some(differs)
    }
    if let Some(differs) = sized::<4>(bytes, new, before).or_else(|| sized::<8>(bytes, new, before)) {
        return differs;
    }
    let differs = bytes.len() == new.len() && bytes != new;
    if differs {
        before.extend_from_slice(bytes);
        bytes.copy_from_slice(new);
    }
    differs
}

/// What was found of one node.
type Found<'a> = SmallVec<[New<'a>; 8]>;

/// A destination that was found.
struct New<'a> {
    cell: &'a Arc<Cell>,
    time: u64,
    bytes: Option<Span>,
    step: u32,
    arg: u16,
    is_native: bool,
}

impl New<'_> {
    /// Takes the place of another destination. Returns what was there and is not used any more.
    fn replace(self, old: &mut Destination) -> Option<Arc<Cell>> {
        let unused = match &old.cell {
            Some(cell) if Arc::ptr_eq(cell, self.cell) => None,
            _ => old.cell.replace(Arc::clone(self.cell)),
        };
        (old.time, old.bytes, old.step) = (self.time, self.bytes, self.step);
        (old.arg, old.is_native) = (self.arg, self.is_native);
        unused
    }
}

impl From<New<'_>> for Destination {
    fn from(new: New<'_>) -> Self {
        let New { cell, time, bytes, step, arg, is_native } = new;
        Self { cell: Some(Arc::clone(cell)), time, bytes, step, arg, is_native }
    }
}

/// Finds the destinations of a node. Returns false if it is no kernel of its own, if an argument has several parameters, of
/// which the last that was set counts, or if the device cannot change values of recorded kernels.
fn find<'a>(
    updatable: &Updatable,
    origin: NodeId,
    (tables, from): (&Tables, &'a Tables),
    near: &mut usize,
    found: &mut Found<'a>,
) -> bool {
    let Some(node) = updatable.alone(origin) else { return false };
    let (Command::Kernel { args, .. }, Command::Kernel { args: given, .. }) =
        (tables.ir.command(node), from.ir.command(origin))
    else {
        return false;
    };
    if !from.group_of.is_empty() && from.group_of.contains_key(&origin) {
        return false;
    }
    let bindings = from.bindings_near(*near, *given);
    *near = bindings.end;
    if bindings.is_empty() {
        return true;
    }
    let Some(step) = updatable.step_of[node.index()] else { return false };
    let is_native = updatable.is_native(step as usize);
    if is_native && !updatable.mutable().is_some_and(|fields| fields.arguments) {
        return false;
    }
    for Binding { arg, cells, time } in &from.bindings[bindings] {
        let index = (arg - given.ends().0) as usize;
        let (Ok(arg), [cell]) = (u16::try_from(index), cells.as_slice()) else { return false };
        let bytes = match (tables.ir.args(*args)[index], from.ir.args(*given)[index]) {
            (Arg::Value(bytes), Arg::Value(_)) => Some(bytes),
            _ => None,
        };
        found.push(New { cell, time: *time, bytes, step, arg, is_native });
    }
    true
}
