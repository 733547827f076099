//! Applies an update to command buffers: they are changed in place where the driver can, and recorded again where it
//! cannot.

use std::ops::Range;
use std::sync::Arc;

use crate::caps::MutableCaps;
use crate::cl::completion::user_code::log_later;
use crate::cl::objects::command_buffer::{ChangedSizes, Changes};
use crate::command::{Arg, Command};
use crate::error::{DriverError, DriverFault, Error, Result, UpdateError};
use crate::exec::build::record::{self, Chunk, Recorded, Refusal};
use crate::exec::build::values::{Objects, Old, Replaced, Values, set_arg};
use crate::exec::executable::Inner;
use crate::exec::submit::exclusive::Running;
use crate::exec::submit::executable_state::ExecutableState;
use crate::exec::submit::snapshot::Set;
use crate::exec::update::destinations::Destination;
use crate::exec::update::editing::Touched;
use crate::exec::update::updatable::Updatable;
use crate::plan::can_hold;
use crate::quirks;

/// A command buffer with something to apply.
struct BufferChanges<'a> {
    /// Which set of command buffers, and which of the set.
    set: usize,
    at: usize,
    steps: Range<usize>,
    touched: &'a [(usize, &'a Touched)],
}

/// Values to apply to a command buffer: the set of command buffers, and the index in the set.
struct BufferValues<'a> {
    set: usize,
    at: usize,
    destinations: &'a [&'a Destination],
}

/// How far values were applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::exec) enum Applied {
    /// Nothing was applied: some value cannot be changed in place.
    Nothing,
    /// The driver refused some of it.
    Partly,
    All,
}

impl ExecutableState {
    /// Applies the tables to the command buffers. If that fails, the command buffers keep their old values, or the
    /// next submission records them again.
    pub(in crate::exec) fn apply_to_command_buffers(
        &mut self,
        exec: &Inner,
        touched: &[(usize, &Touched)],
        replaced: &mut Vec<Replaced>,
        old: &mut Vec<Old>,
    ) -> Result<()> {
        let changed_buffers = self.changed_buffers(touched);
        let may_change = self.may_change(exec);
        let mut made: Vec<(usize, usize, Arc<Chunk>)> = Vec::new();
        let mut in_place = Vec::new();
        for one in changed_buffers {
            let place = may_change && self.can_change(exec, &one);
            if place {
                in_place.push(one);
            } else {
                made.push((one.set, one.at, self.record(exec, &one, replaced)?));
            }
        }
        for (done, one) in in_place.iter().enumerate() {
            if let Err(error) = self.change(one) {
                // It may have changed some of its kernels, so it is of no use any more.
                log_later!(Debug, "{error}: a command buffer could not be changed in place, so it is recorded again");
                match self.record(exec, one, replaced) {
                    Ok(chunk) => made.push((one.set, one.at, chunk)),
                    Err(error) => {
                        let half = in_place[..=done].iter().map(|one| (one.set, one.at));
                        self.half_changed.extend(half);
                        return Err(error);
                    }
                }
            }
        }
        for (set, at, chunk) in made {
            if let Some(recorded) = self.recorded.get_mut(set).and_then(|set| set.recorded.as_mut()) {
                old.extend(Arc::make_mut(recorded).replace(at, chunk).map(|old| old as Old));
            }
        }
        Ok(())
    }

    /// Returns whether command buffers may be changed in place now: if the driver retains what it has enqueued, always.
    pub(in crate::exec) fn may_change(&self, exec: &Inner) -> bool {
        let may_run = || exec.exclusive.running().iter().any(Running::may_run);
        quirks::update_keeps_enqueued_values(exec.fixed.device.caps()) || !may_run()
    }

    /// Changes values in place. They are in the order of steps. `half_changed` gets the command buffers that may have
    /// changed.
    pub(in crate::exec) fn change_values(&mut self, destinations: &[&Destination]) -> Applied {
        let Self { values, recorded, half_changed, .. } = self;
        let tables = &*values.tables;
        // All are looked at before one is changed.
        let Some(parts) = by_buffer(recorded, destinations) else { return Applied::Nothing };
        for BufferValues { set, at, destinations } in parts {
            let of = recorded[set].recorded.as_mut().and_then(Arc::get_mut).and_then(|recorded| recorded.chunk_mut(at));
            let Some(Chunk { buffer: Some(buffer), handles, steps, .. }) = of else { return Applied::Partly };
            let mut changes = Changes::with_capacity(destinations.len());
            for of_one in destinations.chunk_by(|one, other| one.step == other.step) {
                let handle = handles.get(of_one[0].step as usize - steps.start).copied().flatten();
                let value = |place: &&Destination| (u32::from(place.arg), Arg::Value(place.value(tables)));
                handle.into_iter().for_each(|handle| {
                    changes.add(handle, of_one.iter().map(value), ChangedSizes::default());
                });
            }
            half_changed.push((set, at));
            if let Err(error) = buffer.update(&mut changes) {
                log_later!(
                    Debug,
                    "{error}: the fast update of a command buffer failed, so its values are compared and set \
                             one by one"
                );
                return Applied::Partly;
            }
        }
        Applied::All
    }

    /// After an update that failed: command buffers that it has changed in part are recorded again, from the values of
    /// before. Sets for which even that fails are not used any more: the next submission records them again.
    pub(in crate::exec) fn restore(&mut self, exec: &Inner, old: &mut Vec<Old>) {
        let mut is_given_up = false;
        for (set, at) in std::mem::take(&mut self.half_changed) {
            let chunk = self.recorded.get(set).and_then(|set| set.recorded.as_ref()?.chunks().get(at));
            let Some(steps) = chunk.map(|chunk| chunk.steps.clone()) else { continue };
            let one = BufferChanges { set, at, steps, touched: &[] };
            let mut replaced = Vec::new();
            let again = self.record(exec, &one, &mut replaced).or_else(|_| self.record(exec, &one, &mut replaced));
            old.push(Arc::new(Objects(replaced.into_iter().map(|(_, object)| object).collect())));
            match again {
                Ok(chunk) => {
                    if let Some(recorded) = self.recorded.get_mut(set).and_then(|set| set.recorded.as_mut()) {
                        old.extend(Arc::make_mut(recorded).replace(at, chunk).map(|old| old as Old));
                    }
                }
                Err(error) => {
                    let Some(recorded) = self.recorded.get_mut(set).and_then(|set| set.recorded.take()) else {
                        continue;
                    };
                    log_later!(
                        Warn,
                        "{error}: an update failed and the command buffers of an executable could not be restored, so \
                         the next submission records them again"
                    );
                    old.push(recorded as Old);
                    is_given_up = true;
                }
            }
        }
        if is_given_up {
            // The sets that the driver refused before are tried again too.
            self.recorded.retain(|set| set.recorded.is_some());
        }
    }

    /// The command buffers that hold steps that were touched, which are in order.
    fn changed_buffers<'a>(&self, touched: &'a [(usize, &'a Touched)]) -> Vec<BufferChanges<'a>> {
        let mut changed_buffers = Vec::new();
        for (set, of) in self.recorded.iter().enumerate() {
            let chunks = of.recorded.as_ref().map_or(&[][..], |recorded| recorded.chunks());
            let mut rest = touched;
            while let Some((step, _)) = rest.first() {
                // What is replayed lies between command buffers.
                let at = chunks.partition_point(|chunk| chunk.steps.end <= *step);
                let Some(Chunk { steps, .. }) = chunks.get(at).map(|chunk| &**chunk) else { break };
                let first = rest.partition_point(|(step, _)| *step < steps.start);
                let end = rest.partition_point(|(step, _)| *step < steps.end);
                if first < end {
                    changed_buffers.push(BufferChanges { set, at, steps: steps.clone(), touched: &rest[first..end] });
                }
                rest = &rest[end..];
            }
        }
        changed_buffers
    }

    fn recorded(&self, one: &BufferChanges<'_>) -> Option<&Recorded> {
        self.recorded.get(one.set).and_then(|set| set.recorded.as_deref())
    }

    fn can_change(&self, exec: &Inner, one: &BufferChanges<'_>) -> bool {
        let Some(fields) = exec.fixed.updatable.as_ref().and_then(Updatable::mutable) else { return false };
        let Some(recorded) = self.recorded.get(one.set).and_then(|set| set.recorded.as_ref()) else { return false };
        let Some(chunk) = recorded.chunks().get(one.at) else { return false };
        // A submission that is not enqueued yet has it too.
        if Arc::strong_count(recorded) > 1 || Arc::strong_count(chunk) > 1 {
            return false;
        }
        one.touched.iter().all(|(step, touched)| {
            let handle = chunk.handles.get(step - one.steps.start).copied().flatten();
            // What must not be recorded must not come into what is recorded either.
            let may_hold = || can_hold(&self.values.tables.ir, touched.node, exec.fixed.device.caps());
            let only_values = touched.changed.only_values && fields.arguments;
            handle.is_some() && (only_values || may_hold() && can_change(&self.values, touched, fields))
        })
    }

    fn change(&mut self, one: &BufferChanges<'_>) -> Result<(), DriverError> {
        let gone = DriverError::faulty("clUpdateMutableCommandsKHR", DriverFault::Defect);
        let Self { values, recorded, .. } = self;
        let recorded = recorded.get_mut(one.set).and_then(|set| set.recorded.as_mut()).ok_or(gone)?;
        let chunk = Arc::make_mut(recorded).chunk_mut(one.at).ok_or(gone)?;
        let tables = &*values.tables;
        let mut changes = Changes::with_capacity(one.touched.len());
        for (step, touched) in one.touched {
            let kernel = chunk.handles.get(step - one.steps.start).copied().flatten().ok_or(gone)?;
            let Command::Kernel { args, grid, .. } = tables.ir.command(touched.node) else { continue };
            let (args, changed) = (tables.ir.args(*args), &touched.changed);
            let args = changed.args.settable(args).map(|index| (index as u32, set_arg(tables, &args[index])));
            let old = changed.grid.as_deref().unwrap_or(grid);
            let sizes = ChangedSizes {
                offset: Some(&grid.offset).filter(|offset| old.offset != **offset),
                global: Some(&grid.global).filter(|global| old.global != **global),
                local: grid.local.as_ref().filter(|local| old.local != Some(**local)),
            };
            changes.add(kernel, args, sizes);
        }
        chunk.buffer.as_mut().ok_or(gone)?.update(&mut changes)
    }

    fn record(&mut self, exec: &Inner, one: &BufferChanges<'_>, replaced: &mut Vec<Replaced>) -> Result<Arc<Chunk>> {
        let step = one.touched.first().map_or(one.steps.start, |(step, _)| *step);
        let fail =
            |source| exec.fixed.update_error(exec.fixed.origins.of(exec.fixed.plan.steps[step].node).node, source);
        let gone = || fail(DriverError::faulty("clCreateCommandBufferKHR", DriverFault::Defect));
        let values = Arc::make_mut(&mut self.values);
        values.replace_objects(&exec.fixed.plan, one.steps.clone(), &mut self.spare, replaced).map_err(fail)?;
        let recorded = self.recorded(one).ok_or_else(gone)?;
        match record::chunk(&exec.fixed.plan, &self.values, recorded.queue(), one.steps.clone()) {
            Ok(chunk) => Ok(Arc::new(chunk)),
            Err(Refusal::Nodes(nodes)) => Err(match nodes.first() {
                Some((node, source)) => exec.fixed.update_error(exec.fixed.origins.of(*node).node, *source),
                None => gone(),
            }),
            Err(Refusal::Function(node, text)) => {
                Err(UpdateError::NativeCommand { node: exec.fixed.node(exec.fixed.origins.of(node).node), text }.into())
            }
            Err(Refusal::All(Error::Driver(source))) => Err(fail(source)),
            Err(Refusal::All(error)) => Err(error),
        }
    }
}

/// Which of some values, in the order of steps, each command buffer holds. None if one cannot be changed in place now.
fn by_buffer<'a>(sets: &mut [Set], destinations: &'a [&'a Destination]) -> Option<Vec<BufferValues<'a>>> {
    let mut parts = Vec::new();
    for (set, of) in sets.iter_mut().enumerate() {
        let Some(recorded) = &mut of.recorded else { continue };
        // A submission that is not enqueued yet has them too.
        let recorded = Arc::get_mut(recorded)?;
        let mut rest = destinations;
        while let Some(first) = rest.first() {
            // What is replayed lies between command buffers.
            let at = recorded.chunks().partition_point(|chunk| chunk.steps.end <= first.step as usize);
            let Some(Range { start, end }) = recorded.chunks().get(at).map(|chunk| chunk.steps.clone()) else { break };
            let until = |step| rest.iter().take_while(|place| (place.step as usize) < step).count();
            let mine = &rest[until(start)..until(end)];
            rest = &rest[until(end)..];
            if mine.is_empty() {
                continue;
            }
            let chunk = recorded.chunk_mut(at).filter(|chunk| chunk.buffer.is_some())?;
            let can_change =
                |place: &&Destination| chunk.handles.get(place.step as usize - start).is_some_and(Option::is_some);
            if !mine.iter().all(can_change) {
                return None;
            }
            parts.push(BufferValues { set, at, destinations: mine });
        }
    }
    Some(parts)
}

/// Whether the device can change in a recorded kernel what an update has changed.
fn can_change(values: &Values, touched: &Touched, fields: MutableCaps) -> bool {
    let changed = &touched.changed;
    if changed.command || (!changed.args.is_empty() && !fields.arguments) {
        return false;
    }
    let Command::Kernel { grid: new, args, .. } = values.tables.ir.command(touched.node) else { return false };
    let args = values.tables.ir.args(*args);
    if changed.args.of(args.len()).any(|index| matches!(args[index], Arg::Indirect(_))) {
        return false;
    }
    let old = changed.grid.as_deref().unwrap_or(new);
    // A kernel of no size is not recorded.
    !old.is_empty()
        && !new.is_empty()
        && (old.offset == new.offset || fields.global_offset)
        && (old.global == new.global || fields.global_size)
        && (old.local == new.local || (fields.local_size && old.local.is_some() && new.local.is_some()))
}
