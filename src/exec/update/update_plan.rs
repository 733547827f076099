//! Update plans: for updates that come again with the same nodes, of which only values change, for example in each
//! frame.
//!
//! When a list of nodes comes a second time, an update plan records where the value of each parameter goes: to which
//! bytes of the executable, and to which argument of which command. From then on values go there directly. A list for
//! which something has changed since, or that the driver refuses, takes the full update.

use std::hash::BuildHasher;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

use crate::command::{Arg, Command};
use crate::exec::Inner;
use crate::exec::submit::executable_state::ExecutableState;
use crate::exec::update::apply::{Applied, Old};
use crate::exec::update::transaction::Touched;
use crate::exec::update::updatable::Updatable;
use crate::graph::edit::assign::Changed;
use crate::graph::{Cell, Nodes, ParameterValue, Tables};
use crate::handles::GraphId;
use crate::ir::{NodeId, Span};

/// How many update plans are kept, and how many lists that came once are remembered.
const LISTS: usize = 4;

/// After so many useless attempts in a row, an update plan is not tried any more.
const IN_VAIN: u8 = 8;

/// The lists of nodes that came again.
#[derive(Default)]
pub(in crate::exec) struct UpdatePlans {
    /// The one that was used last is the last.
    lists: Vec<UpdatePlan>,
    /// Of the last lists that came once, their hashes, and where the next goes.
    came: [u64; LISTS],
    next: usize,
}

/// A list that came again. It holds parameters, which may own what is a user's: it is dropped where no lock is held.
pub(in crate::exec) struct UpdatePlan {
    nodes: Vec<NodeId>,
    /// How many nodes of the graph had changed in more than values when it was prepared. They only become more.
    reshaped: usize,
    /// None if the list cannot be updated directly.
    ways: Option<Destinations>,
}

/// Where the values of a list go.
struct Destinations {
    /// Parameters that are no values: as long as they stay what they are.
    others: Vec<(Arc<Cell>, u64)>,
    /// In the order of steps.
    destinations: Vec<Destination>,
    /// Whether some are recorded.
    has_native: bool,
    /// How often in a row it was of no use.
    in_vain: u8,
    /// Room for one update: which destinations changed, and what was in them.
    changed: Vec<u32>,
    before: Vec<u8>,
}

/// Where the value of a parameter goes.
pub(in crate::exec) struct Destination {
    cell: Arc<Cell>,
    /// When the value that is there was set, or an earlier time.
    time: u64,
    pub(in crate::exec) bytes: Span,
    pub(in crate::exec) step: u32,
    pub(in crate::exec) arg: u16,
    is_native: bool,
}

impl UpdatePlans {
    /// Another graph has given values: what is there is not what parameters say.
    pub(in crate::exec) fn forget(&mut self) -> Vec<UpdatePlan> {
        std::mem::take(&mut self.lists)
    }

    /// Notes a list of kernels that took the full update, of which only values have ever changed; the executable has
    /// the graph's values now. `tables`: the executable's and the graph's; `reshaped`: how many nodes of the graph have
    /// changed in more. Returns lists that are of no use any more.
    pub(in crate::exec) fn came(
        &mut self,
        updatable: &Updatable,
        nodes: &[NodeId],
        tables: (&Tables, &Tables),
        reshaped: usize,
    ) -> Vec<UpdatePlan> {
        if self.lists.iter().any(|known| known.reshaped == reshaped && known.nodes == nodes) {
            return Vec::new();
        }
        let hash = FxBuildHasher.hash_one(nodes);
        if !self.came.contains(&hash) {
            self.came[self.next] = hash;
            self.next = (self.next + 1) % LISTS;
            return Vec::new();
        }
        let mut over: Vec<UpdatePlan> = self.lists.extract_if(.., |known| known.reshaped != reshaped).collect();
        if self.lists.len() == LISTS {
            over.push(self.lists.remove(0));
        }
        self.lists.push(UpdatePlan {
            nodes: nodes.to_vec(),
            reshaped,
            ways: Destinations::new(updatable, nodes, tables),
        });
        over
    }

    /// How many lists can be updated directly.
    #[cfg(test)]
    pub(in crate::exec) fn count(&self) -> usize {
        self.lists.iter().filter(|list| list.ways.is_some()).count()
    }
}

impl UpdatePlan {
    /// Whether these are its nodes.
    fn is(&self, graph: GraphId, nodes: &(impl Nodes + ?Sized)) -> bool {
        let (mut is, mut rest) = (true, self.nodes.iter());
        nodes.for_each_node(&mut |node| {
            is = is && node.is_some_and(|node| node.graph() == graph && rest.next() == Some(&node.id()));
        });
        is && rest.next().is_none()
    }
}

impl Destinations {
    /// None if an argument has several parameters, of which the last that was set counts, or if the device cannot
    /// change values of recorded kernels.
    fn new(updatable: &Updatable, nodes: &[NodeId], (tables, from): (&Tables, &Tables)) -> Option<Self> {
        let may_be_native = updatable.mutable().is_some_and(|fields| fields.arguments);
        let (mut destinations, mut others) = (Vec::with_capacity(nodes.len()), Vec::new());
        let mut near = 0;
        for origin in nodes {
            let node = updatable.alone(*origin)?;
            let (Command::Kernel { args, .. }, Command::Kernel { args: given, .. }) =
                (tables.ir.command(node), from.ir.command(*origin))
            else {
                return None;
            };
            let step = updatable.step_of[node.index()]?;
            let is_native = updatable.is_native(step as usize);
            if is_native && !may_be_native {
                return None;
            }
            let bindings = from.bindings_near(near, *given);
            near = bindings.end;
            for binding in &from.bindings[bindings] {
                let [cell] = binding.cells.as_slice() else { return None };
                let (cell, time) = (Arc::clone(cell), binding.time);
                let index = (binding.arg - given.ends().0) as usize;
                match (tables.ir.args(*args)[index], from.ir.args(*given)[index]) {
                    (Arg::Value(bytes), Arg::Value(_)) => {
                        let arg = u16::try_from(index).ok()?;
                        destinations.push(Destination { cell, time, bytes, step, arg, is_native });
                    }
                    _ => others.push((cell, time)),
                }
            }
        }
        destinations.sort_unstable_by_key(|place| (place.step, place.arg));
        destinations.dedup_by_key(|place| (place.step, place.arg));
        let has_native = destinations.iter().any(|place| place.is_native);
        Some(Self { others, destinations, has_native, in_vain: 0, changed: Vec::new(), before: Vec::new() })
    }

    /// Writes new values to their destinations, and keeps what was there.
    fn write(&mut self, tables: &mut Tables) {
        let Self { destinations, changed, before, .. } = self;
        changed.clear();
        before.clear();
        for (at, place) in (0..).zip(destinations) {
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
    fn changed(&self) -> impl Iterator<Item = &Destination> {
        self.changed.iter().map(|at| &self.destinations[*at as usize])
    }

    /// Takes back what was written.
    fn take_back(&mut self, tables: &mut Tables) {
        let mut before = &*self.before;
        for at in &self.changed {
            let place = &mut self.destinations[*at as usize];
            let (was, rest) = before.split_at(place.bytes.len());
            tables.ir.bytes_mut(place.bytes).copy_from_slice(was);
            before = rest;
            // Never: it is looked at again.
            place.time = 0;
        }
    }
}

impl Inner {
    /// Makes an update if its list can be updated directly. If not, or if something prevents it, all values are what
    /// they were.
    pub(in crate::exec) fn update_prepared(&self, updatable: &Updatable, nodes: &(impl Nodes + ?Sized)) -> bool {
        let mut exec_state = self.lock_state();
        if exec_state.editing.as_ref().is_none_or(|editing| editing.update_plans.lists.is_empty()) {
            return false;
        }
        // Nobody changes the graph meanwhile: what is at a place is what its parameter was then. The lock is only
        // tried: the function of a native command uses the graph while the executable's state is locked.
        let Some(state) = updatable.state.try_lock() else { return false };
        let mut old = Vec::new();
        let done = exec_state.update_prepared(self, updatable, nodes, state.reshaped.len(), &mut old);
        drop(state);
        drop(exec_state);
        if !old.is_empty() {
            self.exclusive.keep_until_idle(old);
        }
        done
    }
}

impl ExecutableState {
    fn update_prepared(
        &mut self,
        exec: &Inner,
        updatable: &Updatable,
        nodes: &(impl Nodes + ?Sized),
        reshaped: usize,
        old: &mut Vec<Old>,
    ) -> bool {
        let Some(lists) = self.editing.as_mut().map(|editing| &mut editing.update_plans.lists) else { return false };
        let is_it = |list: &UpdatePlan| list.reshaped == reshaped && list.is(exec.graph, nodes);
        let Some(at) = lists.iter().position(is_it) else { return false };
        let mut list = lists.remove(at);
        let done = list.ways.as_mut().is_some_and(|ways| self.bring(exec, updatable, ways, old));
        if let Some(editing) = &mut self.editing {
            editing.update_plans.lists.push(list);
        }
        done
    }

    /// Brings values to their destinations, if nothing else needs the old values.
    fn bring(&mut self, exec: &Inner, updatable: &Updatable, ways: &mut Destinations, old: &mut Vec<Old>) -> bool {
        if ways.in_vain == IN_VAIN || ways.others.iter().any(|(cell, time)| cell.time() != *time) {
            return false;
        }
        if ways.has_native && !self.may_change(exec) {
            return false;
        }
        // A submission that is not enqueued yet keeps the values that it has.
        let Some(values) = Arc::get_mut(&mut self.values) else { return false };
        let Some(tables) = Arc::get_mut(&mut values.tables) else { return false };
        ways.write(tables);
        if ways.changed.is_empty() {
            return true;
        }
        let followed = self.apply_values(ways);
        if followed == Applied::All {
            self.half_changed.clear();
            ways.in_vain = 0;
            return true;
        }
        ways.in_vain += 1;
        let values = Arc::make_mut(&mut self.values);
        ways.take_back(Arc::make_mut(&mut values.tables));
        if followed == Applied::Partly {
            let touched = ways.changed().map(|place| {
                let node = exec.plan.steps[place.step as usize].node;
                Touched { node, origin: exec.origins.of(node).node, changed: Changed::default() }
            });
            let touched: Vec<Touched> = touched.collect();
            self.take_back(exec, updatable, &touched, &mut [], old);
            self.restore(exec, old);
        }
        false
    }

    /// Applies the values to kernel objects and command buffers.
    fn apply_values(&mut self, ways: &Destinations) -> Applied {
        let native: Vec<&Destination> = ways.changed().filter(|place| place.is_native).collect();
        let values = Arc::make_mut(&mut self.values);
        let replayed = || ways.changed().filter(|place| !place.is_native);
        // Others have it too: steps with the same values.
        let shared = |place: &Destination| {
            let object = values.objects.0.get_mut(place.step as usize).and_then(Option::as_mut);
            object.and_then(Arc::get_mut).is_none()
        };
        if replayed().any(shared) {
            return Applied::Nothing;
        }
        let changes = if native.is_empty() { Applied::All } else { self.change_values(&native) };
        if changes != Applied::All {
            return changes;
        }
        let values = Arc::make_mut(&mut self.values);
        native.iter().for_each(|place| values.stale.add(place.step as usize));
        for place in replayed() {
            let object = values.objects.0.get_mut(place.step as usize).and_then(Option::as_mut).and_then(Arc::get_mut);
            // Enqueued launches have taken their arguments with them (OpenCL 3.0, clSetKernelArg).
            let value = Arg::Value(values.tables.ir.bytes(place.bytes));
            if object.is_none_or(|object| object.set(usize::from(place.arg), value).is_err()) {
                return Applied::Partly;
            }
        }
        Applied::All
    }
}
