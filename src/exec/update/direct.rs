//! The short way of an update: nothing but values of parameters has changed, and each goes directly to its destination.

use std::sync::Arc;

use crate::command::Arg;
use crate::exec::build::values::{Old, Values};
use crate::exec::executable::Inner;
use crate::exec::submit::executable_state::ExecutableState;
use crate::exec::tier::Tier;
use crate::exec::update::apply::Applied;
use crate::exec::update::destinations::{Destination, Destinations};
use crate::exec::update::editing::Touched;
use crate::exec::update::updatable::Updatable;
use crate::graph::edit::assign::Changed;
use crate::graph::{Nodes, State};

impl Inner {
    /// Makes an update if only values have changed in its nodes. If not, or if something prevents it, all values are what
    /// they were.
    pub(in crate::exec) fn update_values(&self, updatable: &Updatable, nodes: &(impl Nodes + ?Sized)) -> bool {
        let mut exec_state = self.lock_state();
        // Nobody changes the graph meanwhile: what is at a place is what its parameter was then. The lock is only
        // tried: the function of a native command uses the graph while the executable's state is locked.
        let Some(state) = updatable.state.try_lock() else { return false };
        let Some(editing) = &mut exec_state.editing else { return false };
        let mut destinations = std::mem::take(&mut editing.destinations);
        let mut old = Vec::new();
        let done = exec_state.bring(self, updatable, &mut destinations, (nodes, &state), &mut old);
        destinations.shrink();
        let dropped = std::mem::take(&mut destinations.dropped);
        if let Some(editing) = &mut exec_state.editing {
            editing.destinations = destinations;
        }
        exec_state.updates = exec_state.updates.wrapping_add(u64::from(done));
        let has_lost = exec_state.has_lost_fused_form();
        drop(state);
        drop(exec_state);
        drop(dropped);
        if has_lost {
            self.release_fused_form();
        }
        if !old.is_empty() {
            self.exclusive.keep_until_idle(old);
        }
        done
    }
}

impl ExecutableState {
    /// Brings values to their destinations, if nothing else needs the old values.
    fn bring(
        &mut self,
        exec: &Inner,
        updatable: &Updatable,
        destinations: &mut Destinations,
        (nodes, state): (&(impl Nodes + ?Sized), &State),
        old: &mut Vec<Old>,
    ) -> bool {
        if destinations.has_native && !self.may_change(exec) {
            return false;
        }
        // A submission that is not enqueued yet keeps the values that it has.
        let Some(values) = Arc::get_mut(&mut self.values) else { return false };
        let Some(tables) = Arc::get_mut(&mut values.tables) else { return false };
        if !destinations.write((updatable, state), exec.fixed.graph, nodes, tables) {
            destinations.take_back(tables);
            return false;
        }
        if destinations.changed().next().is_none() {
            return true;
        }
        let has_form = matches!(self.tier, Tier::Ready { .. });
        let applied = if has_form && self.needs_no_objects(exec, destinations) {
            Applied::All
        } else {
            self.apply_values(destinations)
        };
        if applied == Applied::All {
            if has_form {
                self.follow_values(&exec.fixed, destinations, old);
            }
            self.half_changed.clear();
            #[cfg(test)]
            {
                destinations.direct += 1;
            }
            return true;
        }
        let values = Arc::make_mut(&mut self.values);
        destinations.take_back(Arc::make_mut(&mut values.tables));
        if applied == Applied::Partly {
            let touched = destinations.changed().map(|one| {
                let node = exec.fixed.plan.steps[one.step as usize].node;
                Touched { node, origin: exec.fixed.origins.of(node).node, changed: Changed::default() }
            });
            let touched: Vec<Touched> = touched.collect();
            self.take_back(exec, updatable, &touched, &mut [], old);
            self.restore(exec, old);
        }
        false
    }

    /// Where submissions take the fused form: notes that the kernel objects of launches have other arguments. They get them when a
    /// submission needs them, which is when the form is gone. Returns whether it has done so.
    fn needs_no_objects(&mut self, exec: &Inner, destinations: &Destinations) -> bool {
        let is_all = !destinations.has_native && !exec.fixed.plan.is_native() && self.autotuner.strategy().fused;
        if is_all {
            let values = Arc::make_mut(&mut self.values);
            destinations.changed().for_each(|one| values.stale.add(one.step as usize));
        }
        is_all
    }

    /// Applies the values to kernel objects and command buffers.
    fn apply_values(&mut self, destinations: &Destinations) -> Applied {
        if destinations.has_native {
            let of_native = destinations.changed().filter(|one| one.is_native);
            let mut native: Vec<&Destination> = of_native.collect();
            native.sort_unstable_by_key(|one| (one.step, one.arg));
            let changes = if native.is_empty() { Applied::All } else { self.change_values(&native) };
            if changes != Applied::All {
                return changes;
            }
            let values = Arc::make_mut(&mut self.values);
            native.iter().for_each(|one| values.stale.add(one.step as usize));
        }
        let Values { objects, tables, .. } = Arc::make_mut(&mut self.values);
        for (done, one) in destinations.changed().enumerate() {
            if one.is_native {
                continue;
            }
            // Steps with the same values have one object. The full update gives this one an object of its own.
            let object = objects.0.get_mut(one.step as usize).and_then(Option::as_mut).and_then(Arc::get_mut);
            // Enqueued launches have taken their arguments with them (OpenCL 3.0, clSetKernelArg).
            let value = Arg::Value(one.value(tables));
            let Some(object) = object else {
                let nothing = done == 0 && !destinations.has_native;
                return if nothing { Applied::Nothing } else { Applied::Partly };
            };
            if object.set(usize::from(one.arg), value).is_err() {
                return Applied::Partly;
            }
        }
        Applied::All
    }
}
