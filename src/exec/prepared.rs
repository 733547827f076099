//! Updates that come again: the same nodes, of which only values change, as a program makes them for each of its frames.
//!
//! When a list of nodes comes a second time, it is taken down where the value of each parameter goes: to which bytes of the
//! executable, and to which argument of which command. From then on it goes there straight. Whatever is not as it was then is
//! left to the usual way, with nothing changed.

use std::hash::BuildHasher;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashSet};

use super::Inner;
use super::follow::Old;
use super::lane::Lane;
use super::updatable::Updatable;
use super::update::Touched;
use crate::cl::kernel_object::SetArg;
use crate::graph::edit::Changed;
use crate::graph::{Cell, GraphId, Nodes, ParameterValue, Tables};
use crate::ir::{Arg, NodeId, Op, Span};

/// So many lists are prepared at a time, and so many that came once are known.
const LISTS: usize = 4;

/// The lists of nodes that are prepared.
#[derive(Default)]
pub(super) struct Prepared {
    lists: Vec<List>,
    /// Of the last lists that are not prepared, their hashes, and where the next goes.
    came: [u64; LISTS],
    next: usize,
}

struct List {
    nodes: Vec<NodeId>,
    /// How many nodes of the graph had other than their first shape, which only becomes more.
    reshaped: usize,
    /// Parameters that are no values: as long as they stay what they are.
    others: Vec<(Arc<Cell>, u64)>,
    /// In the order of steps.
    places: Vec<Place>,
    /// Whether some are recorded.
    has_native: bool,
    /// Room for one update: which places changed, and what was in them.
    changed: Vec<u32>,
    before: Vec<u8>,
}

/// Where the value of a parameter goes.
pub(super) struct Place {
    cell: Arc<Cell>,
    /// When the value was set that is there.
    time: u64,
    pub(super) bytes: Span,
    pub(super) step: u32,
    pub(super) arg: u16,
    is_native: bool,
}

impl Prepared {
    /// After something else than values may have changed.
    pub(super) fn forget(&mut self) {
        self.lists.clear();
    }

    /// A list came that is not prepared, and the executable has the values that the graph has for its nodes. `tables`: the
    /// executable's and the graph's; `theirs` and `mine`: the nodes of the graph, and of the plan, that have changed in more than
    /// values.
    pub(super) fn came(
        &mut self,
        updatable: &Updatable,
        nodes: &[NodeId],
        tables: (&Tables, &Tables),
        theirs: &FxHashSet<NodeId>,
        mine: &FxHashSet<NodeId>,
    ) {
        let hash = FxBuildHasher.hash_one(nodes);
        if !self.came.contains(&hash) {
            self.came[self.next] = hash;
            self.next = (self.next + 1) % LISTS;
            return;
        }
        if let Some(list) = List::new(updatable, nodes, tables, theirs, mine) {
            // The same nodes were prepared before, if another of the graph's has changed since.
            self.lists.retain(|known| known.nodes != list.nodes);
            if self.lists.len() == LISTS {
                self.lists.remove(0);
            }
            self.lists.push(list);
        }
    }
}

impl List {
    /// None: some nodes have more than values, or the device cannot change these in what is recorded.
    fn new(
        updatable: &Updatable,
        nodes: &[NodeId],
        (tables, from): (&Tables, &Tables),
        theirs: &FxHashSet<NodeId>,
        mine: &FxHashSet<NodeId>,
    ) -> Option<Self> {
        let (mut places, mut others) = (Vec::with_capacity(nodes.len()), Vec::new());
        let mut near = 0;
        for origin in nodes {
            let is_plain = !theirs.contains(origin) && !from.group_of.contains_key(origin);
            let node = updatable.alone(*origin).filter(|node| is_plain && !mine.contains(node))?;
            let (Op::Kernel { args, .. }, Op::Kernel { args: given, .. }) = (tables.ir.op(node), from.ir.op(*origin))
            else {
                return None;
            };
            let step = updatable.step_of[node.index()]?;
            let bindings = from.bindings_near(near, *given);
            near = bindings.end;
            for binding in &from.bindings[bindings] {
                // One that several parameters set takes the last of them.
                let [cell] = binding.cells.as_slice() else { return None };
                let index = (binding.arg - given.ends().0) as usize;
                match (tables.ir.args(*args)[index], from.ir.args(*given)[index]) {
                    (Arg::Value(bytes), Arg::Value(_)) => places.push(Place {
                        cell: Arc::clone(cell),
                        time: binding.time,
                        bytes,
                        step,
                        arg: u16::try_from(index).ok()?,
                        is_native: updatable.is_native(step as usize),
                    }),
                    _ => others.push((Arc::clone(cell), binding.time)),
                }
            }
        }
        places.sort_unstable_by_key(|place| (place.step, place.arg));
        places.dedup_by_key(|place| (place.step, place.arg));
        let has_native = places.iter().any(|place| place.is_native);
        if has_native && !updatable.mutable().is_some_and(|fields| fields.arguments) {
            return None;
        }
        let (nodes, reshaped) = (nodes.to_vec(), theirs.len());
        Some(Self { nodes, reshaped, others, places, has_native, changed: Vec::new(), before: Vec::new() })
    }

    /// Whether these are its nodes.
    fn is(&self, graph: GraphId, nodes: &(impl Nodes + ?Sized)) -> bool {
        let (mut is, mut rest) = (true, self.nodes.iter());
        nodes.for_each_node(&mut |node| {
            is = is && node.is_some_and(|node| node.graph() == graph && rest.next() == Some(&node.id()));
        });
        is && rest.next().is_none()
    }

    /// Writes new values to their places, and takes down what was there.
    fn write(&mut self, tables: &mut Tables) {
        let Self { places, changed, before, .. } = self;
        changed.clear();
        before.clear();
        for (at, place) in (0..).zip(places) {
            if place.cell.time() == place.time {
                continue;
            }
            let bytes = tables.ir.bytes_mut(place.bytes);
            place.time = place.cell.now(|value, time| {
                if let ParameterValue::Bytes(new) = value
                    && new.len() == bytes.len()
                    && **new != *bytes
                {
                    before.extend_from_slice(bytes);
                    bytes.copy_from_slice(new);
                    changed.push(at);
                }
                time
            });
        }
    }

    /// Those whose values have changed.
    fn changed(&self) -> impl Iterator<Item = &Place> {
        self.changed.iter().map(|at| &self.places[*at as usize])
    }

    /// Takes back what was written.
    fn take_back(&mut self, tables: &mut Tables) {
        let mut before = &*self.before;
        for at in &self.changed {
            let place = &mut self.places[*at as usize];
            let (was, rest) = before.split_at(place.bytes.len());
            tables.ir.bytes_mut(place.bytes).copy_from_slice(was);
            before = rest;
            // Never: it is looked at again.
            place.time = 0;
        }
    }
}

impl Inner {
    /// Makes an update if it is prepared. If not, or if something is in its way, nothing has changed.
    pub(super) fn update_prepared(&self, updatable: &Updatable, nodes: &(impl Nodes + ?Sized)) -> bool {
        if !self.lane().has_prepared() {
            return false;
        }
        let reshaped = updatable.state.lock().reshaped.len();
        let mut old = Vec::new();
        let done = self.lane().update_prepared(self, updatable, nodes, reshaped, &mut old);
        if !old.is_empty() {
            self.turns.keep_until_idle(old);
        }
        done
    }
}

impl Lane {
    fn has_prepared(&self) -> bool {
        self.editing.as_ref().is_some_and(|editing| !editing.prepared.lists.is_empty())
    }

    fn update_prepared(
        &mut self,
        exec: &Inner,
        updatable: &Updatable,
        nodes: &(impl Nodes + ?Sized),
        reshaped: usize,
        old: &mut Vec<Old>,
    ) -> bool {
        let Some(lists) = self.editing.as_mut().map(|editing| &mut editing.prepared.lists) else { return false };
        let is_it = |list: &List| list.reshaped == reshaped && list.is(exec.graph, nodes);
        let Some(at) = lists.iter().position(is_it) else { return false };
        if lists[at].others.iter().any(|(cell, time)| cell.time() != *time) {
            return false;
        }
        let mut list = lists.swap_remove(at);
        let done = self.bring(exec, updatable, &mut list, old);
        if let Some(editing) = &mut self.editing {
            editing.prepared.lists.push(list);
        }
        done
    }

    /// Brings the values of a list to their places, if nobody else needs those before.
    fn bring(&mut self, exec: &Inner, updatable: &Updatable, list: &mut List, old: &mut Vec<Old>) -> bool {
        if list.has_native && !self.may_change(exec) {
            return false;
        }
        // A submission that is not enqueued yet keeps the values that it has.
        let Some(values) = Arc::get_mut(&mut self.values) else { return false };
        let Some(tables) = Arc::get_mut(&mut values.tables) else { return false };
        list.write(tables);
        if list.changed.is_empty() || self.follow_values(list) {
            return true;
        }
        let values = Arc::make_mut(&mut self.values);
        list.take_back(Arc::make_mut(&mut values.tables));
        let touched = list.changed().map(|place| {
            let node = exec.plan.steps[place.step as usize].node;
            Touched { node, origin: exec.origins.of(node).node, changed: Changed::default() }
        });
        let touched: Vec<Touched> = touched.collect();
        Lane::take_back(self, exec, updatable, &touched, &mut [], old);
        self.restore(exec, old);
        false
    }

    /// Makes kernel objects and command buffers follow. Not all of them if one is shared, or if the driver refuses.
    fn follow_values(&mut self, list: &List) -> bool {
        let values = Arc::make_mut(&mut self.values);
        for place in list.changed() {
            let step = place.step as usize;
            if place.is_native {
                values.stale.add(step);
                continue;
            }
            let object = values.objects.0.get_mut(step).and_then(Option::as_mut).and_then(Arc::get_mut);
            let Some(object) = object else { return false };
            // Enqueued launches have taken their arguments with them (OpenCL 3.0, clSetKernelArg).
            let value = SetArg::Value(values.tables.ir.bytes(place.bytes));
            if object.set(usize::from(place.arg), value).is_err() {
                return false;
            }
        }
        if !list.has_native {
            return true;
        }
        let native = list.changed().filter(|place| place.is_native);
        self.change_values(&native.collect::<Vec<_>>())
    }
}
