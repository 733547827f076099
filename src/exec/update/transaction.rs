//! Updates: apply new values to an executable, all of them or none.
//!
//! The tables are edited first, with a log that can undo the edits. Then the kernel objects are changed, here, and the
//! command buffers: see [`apply`](crate::exec::update::apply).

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::cl::completion::reentrancy;
use crate::cl::completion::user_code::log_later;
use crate::cl::objects::context::InContext;
use crate::command::{Arg, Command};
use crate::error::{Error, Result, UpdateError};
use crate::exec::build::arena::OutOfTime;
use crate::exec::build::values::{NotMade, Objects, Old, Replaced, Values, set_arg};
use crate::exec::executable::{Executable, Inner};
use crate::exec::finalized::Finalized;
use crate::exec::submit::executable_state::ExecutableState;
use crate::exec::update::conflicts::check_conflicts;
use crate::exec::update::destinations::Unused;
use crate::exec::update::editing::Touched;
use crate::exec::update::recorded::of_body;
use crate::exec::update::updatable::{Given, Inside, Updatable};
use crate::graph::edit::undo::{Edit, Owned, empty};
use crate::graph::nodes::request::Target;
use crate::graph::{self, Graph, Nodes, Released, Tables, Writer};
use crate::handles::{Node, NodeKind};
use crate::ir::{NodeId, Span};

impl Executable {
    /// Applies the current state of some nodes of the graph to the executable: values of parameters, ranges, and
    /// commands that replaced nodes. It applies all of them or, if it fails, none. If several nodes use a
    /// [`Parameter`](crate::Parameter), only the nodes that are listed get its value: list all of them, or use
    /// [`update_from`](Self::update_from) with the same graph.
    ///
    /// The update holds for later submissions, and does not wait for earlier ones. Nodes that only order others are
    /// allowed and change nothing. Edges stay the same: an update that makes two nodes conflict that no edges order is
    /// an error, unless [`Finalize::allow_conflicts`](crate::Finalize::allow_conflicts) was given.
    ///
    /// The cost depends on the nodes that change, not on the size of the graph. An update in which only by-value parameters
    /// of kernels have changed costs a third of any other. The first update that changes memory costs more, because it
    /// looks at the whole graph once. So does each update while a submission waits for events that are not complete. The short
    /// way is not for nodes of command groups, arguments with several parameters, and recorded kernels where the driver cannot change
    /// arguments.
    ///
    /// If another thread sets a parameter meanwhile, some of its nodes may get the old value and others the new one. The
    /// next update brings the new value to all of them.
    ///
    /// # Errors
    /// [`UpdateError::NotUpdatable`]; [`UpdateError::NotInExecutable`] for a node of another graph, or a node that was
    /// added later; [`UpdateError::NotANode`] for an event of work that runs; [`UpdateError::Fixed`] for an allocation
    /// or a free; [`UpdateError::Node`] for a value with which a node cannot run (local memory, an image's access);
    /// [`UpdateError::Conflict`], [`UpdateError::GraphMemory`] for memory that the order of the executable does not
    /// allow; [`UpdateError::Differs`] for a change that the node does not allow; [`UpdateError::GraphGone`] for a
    /// sub-graph whose graph was dropped; [`UpdateError::NativeCommand`], [`UpdateError::Driver`];
    /// [`SubmitError::InsideNativeCommand`](crate::SubmitError::InsideNativeCommand). After an error the executable is
    /// the same as before.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// # let buffer = Buffer::<u32>::new(&queue, 4)?;
    /// let graph = Graph::new(&queue)?;
    /// let fill = graph.fill(&buffer, 1).add()?;
    /// let result = graph.read(&buffer).add()?;
    /// let executable = graph.finalize(Finalize::new().updatable())?;
    ///
    /// graph.fill(&buffer, 2).replace(fill)?;
    /// executable.update(&fill)?;
    /// let run = executable.submit(&queue)?;
    /// run.wait()?;
    /// assert_eq!(*run.get(&result)?, [2; 4]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "clUpdateMutableCommandsKHR")]
    #[doc(alias("cudaGraphExecKernelNodeSetParams", "cudaGraphExecMemcpyNodeSetParams"))]
    pub fn update(&self, nodes: &(impl Nodes + ?Sized)) -> Result<()> {
        reentrancy::check_call()?;
        let inner = &*self.0;
        let updatable = inner.fixed.updatable.as_ref().ok_or(UpdateError::NotUpdatable)?;
        loop {
            if inner.update_values(updatable, nodes) {
                return Ok(());
            }
            let (mut ids, seen) = inner.begin_update();
            let outcome = inner.list(updatable, nodes, &mut ids);
            let outcome = outcome.and_then(|()| inner.update_nodes(updatable, &ids, true, seen));
            inner.keep_ids(ids);
            if let Some(done) = outcome? {
                return inner.release_replaced(done);
            }
        }
    }

    /// Applies the current state of all nodes of a graph to the executable. The graph is the one that was finalized, or
    /// another one that was built or recorded in the same way: nodes are paired in the order in which they were added,
    /// with the nodes that the graph had when it was finalized. It applies all of them or, if it fails, none.
    ///
    /// # Errors
    /// [`UpdateError::Differs`] with the first difference: another context or device; another number of nodes; other
    /// edges of a node; and, node by node, another kind, another kernel, another sub-graph or command group of kernels,
    /// or a size that cannot change. Functions of host tasks may differ, and so may the conditions and bounds of branches and loops:
    /// they are taken over. A recorded body takes the values of the body of another recording, unless it has memory of its own or executables
    /// of the program. The errors of [`update`](Self::update).
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// # let buffer = Buffer::<u32>::new(&queue, 4)?;
    /// let frame = |value: u32| -> clgraph::Result<Graph> {
    ///     let graph = Graph::new(&queue)?;
    ///     graph.record(&queue, || queue.enqueue_fill_buffer(&buffer, &[value], 0, 16, &[]))?;
    ///     Ok(graph)
    /// };
    /// let executable = frame(1)?.finalize(Finalize::new().updatable())?;
    /// executable.update_from(&frame(2)?)?;
    /// executable.submit(&queue)?.wait()?;
    /// # Ok(()) }
    /// ```
    #[doc(alias = "cudaGraphExecUpdate")]
    pub fn update_from(&self, graph: &Graph) -> Result<()> {
        reentrancy::check_call()?;
        let inner = &*self.0;
        let updatable = inner.fixed.updatable.as_ref().ok_or(UpdateError::NotUpdatable)?;
        let differs = |difference: String| UpdateError::Differs { difference };
        if graph.context() != &inner.fixed.context {
            return Err(differs("the graph has another context".to_owned()).into());
        }
        if graph.device() != &inner.fixed.device {
            return Err(differs("the graph has another device".to_owned()).into());
        }
        loop {
            let (mut ids, seen) = inner.begin_update();
            let mut state = graph.lock();
            let refreshed = state.refresh_all(&graph.target());
            let refreshed =
                refreshed.map_err(|(id, cause)| UpdateError::Node { node: Node::new(graph.id(), id), cause });
            let dropped = state.dropped();
            let (tables, reshaped) = (Arc::clone(&state.tables), Arc::clone(&state.reshaped));
            drop(state);
            drop(dropped);
            let inside = graph.refresh_recorded().map_err(|(id, error)| of_body(*error, Node::new(graph.id(), id)));
            let alike = refreshed.and_then(|()| updatable.check_edges(&tables).map_err(differs)).map_err(Error::from);
            let alike = alike.and(inside);
            // Kinds and kernels are compared later, when the values are assigned.
            ids.extend(tables.ir.ids());
            let own = Some(&*reshaped).filter(|_| graph.id() == inner.fixed.graph);
            let outcome = alike.map(|()| inner.take_over(updatable, &tables, own, &ids, seen));
            inner.keep_ids(ids);
            if let Some(done) = outcome? {
                return inner.release_replaced(done);
            }
        }
    }
}

impl Inner {
    /// Begins an update that looks at a graph. Returns room for a list of nodes, and how many updates there were.
    pub(in crate::exec::update) fn begin_update(&self) -> (Vec<NodeId>, u64) {
        let mut exec_state = self.lock_state();
        let ids = exec_state.editing.as_mut().map(|editing| std::mem::take(&mut editing.ids));
        (ids.unwrap_or_default(), exec_state.updates)
    }

    /// Keeps the room for the next update.
    pub(in crate::exec::update) fn keep_ids(&self, mut ids: Vec<NodeId>) {
        empty(&mut ids);
        if let Some(editing) = &mut self.lock_state().editing {
            editing.ids = ids;
        }
    }

    /// Lists nodes of the finalized graph.
    fn list(&self, updatable: &Updatable, nodes: &(impl Nodes + ?Sized), ids: &mut Vec<NodeId>) -> Result<()> {
        let mut outcome = Ok(());
        nodes.for_each_node(|node| {
            let wrong = match node {
                None => UpdateError::NotANode { index: ids.len() },
                Some(node) if node.graph() != self.fixed.graph => {
                    let why = "it belongs to another graph; give nodes of the graph that was finalized";
                    UpdateError::NotInExecutable { node, why }
                }
                Some(node) if node.index() >= updatable.len() => {
                    let why = "it was added to the graph after the executable was finalized; finalize the graph again";
                    UpdateError::NotInExecutable { node, why }
                }
                Some(node) => return ids.push(node.id()),
            };
            if outcome.is_ok() {
                outcome = Err(wrong.into());
            }
        });
        outcome
    }

    /// Updates nodes, if need be with their recorded bodies. The caller [releases](Self::release_replaced) the result. None if another
    /// update came in between.
    pub(in crate::exec::update) fn update_nodes(
        &self,
        updatable: &Updatable,
        ids: &[NodeId],
        with_bodies: bool,
        seen: u64,
    ) -> Result<Option<Outcome>> {
        let target = Target { context: &self.fixed.context, device: &self.fixed.device, graph: Some(self.fixed.graph) };
        let mut state = updatable.state.lock();
        if !state.ir.allocs.is_empty()
            && let Some(&id) =
                ids.iter().find(|id| matches!(state.ir.command(**id), Command::Alloc(_) | Command::Free(_)))
        {
            let kind = NodeKind::of(state.ir.command(id));
            return Err(UpdateError::Fixed { node: self.fixed.node(id), kind }.into());
        }
        let refreshed = state.refresh_nodes(&target, ids);
        let refreshed = refreshed.map_err(|(id, cause)| UpdateError::Node { node: self.fixed.node(id), cause });
        let dropped = state.dropped();
        let (tables, reshaped) = (Arc::clone(&state.tables), Arc::clone(&state.reshaped));
        let recorded = if with_bodies { state.recorded_in(ids) } else { Vec::new() };
        drop(state);
        drop(dropped);
        refreshed?;
        let recorded = graph::refresh(recorded.iter().map(|(node, body)| (*node, body)));
        recorded.map_err(|(id, error)| of_body(*error, self.fixed.node(id)))?;
        Ok(self.take_over(updatable, &tables, Some(&reshaped), ids, seen))
    }

    /// Assigns the values of nodes from a graph's tables, unless there were more updates than when the look at the graph began: then the
    /// graph may have newer values, which must stay.
    fn take_over(
        &self,
        updatable: &Updatable,
        from: &Tables,
        reshaped: Option<&FxHashMap<NodeId, u32>>,
        nodes: &[NodeId],
        seen: u64,
    ) -> Option<Outcome> {
        // Done before the executable's state is locked, because a graph may contain this very executable.
        let mut children: Vec<Given> = Vec::new();
        // A graph that was dropped has no sub-graphs any more, but the executable still knows where they were.
        let has_children = !from.children.is_empty() || !updatable.children.is_empty();
        for node in nodes.iter().filter(|_| has_children) {
            for child in from.ir.executables(*node) {
                let Some(child) = from.children.get(child.index()) else {
                    let gone = UpdateError::GraphGone { node: self.fixed.node(*node) };
                    return Some((Err(gone.into()), OldObjects::default()));
                };
                children.push(Given::new(*node, &*child.of));
            }
        }
        // Those of one node stay in their order.
        children.sort_by_key(|child| child.node);
        let mut exec_state = self.lock_state();
        if exec_state.updates != seen {
            return None;
        }
        let outcome = exec_state.edit(self, updatable, &Source { tables: from, reshaped, children }, nodes);
        exec_state.updates = exec_state.updates.wrapping_add(1);
        let has_lost = exec_state.has_lost_fused_form();
        drop(exec_state);
        if has_lost {
            self.release_fused_form();
        }
        Some(outcome)
    }

    /// Releases what an update replaced, after all locks are released.
    pub(in crate::exec::update) fn release_replaced(&self, (outcome, dropped): Outcome) -> Result<()> {
        // A running write may still read host memory. Drivers retain neither the objects that recorded kernels use nor
        // memory with an address.
        let Released { mems, samplers } = &dropped.objects;
        // PoCL also does not retain samplers and images that are made of buffers.
        let loose = mems.iter().any(|mem| mem.allocation().is_some() || mem.is_image_of_buffer());
        if self.fixed.plan.is_native() || loose || !samplers.is_empty() || !dropped._data.is_empty() {
            self.exclusive.keep_until_idle(dropped);
        }
        outcome
    }
}

impl Finalized {
    pub(in crate::exec) fn update_error(&self, node: NodeId, not: impl Into<NotMade>) -> Error {
        let NotMade { argument, source } = not.into();
        UpdateError::Driver { node: self.node(node), argument, source }.into()
    }
}

/// Where the new values come from.
struct Source<'a> {
    tables: &'a Tables,
    /// The nodes of which more than values has changed since they were added. None if another graph was finalized.
    reshaped: Option<&'a FxHashMap<NodeId, u32>>,
    /// The executables in the listed nodes, in order.
    children: Vec<Given>,
}

/// How an update ended, and what it replaced.
pub(in crate::exec::update) type Outcome = (Result<()>, OldObjects);

/// What an update replaced, to be dropped where no lock is held.
#[derive(Default)]
pub(in crate::exec::update) struct OldObjects {
    _data: Vec<Owned>,
    objects: Released,
    _old: Vec<Old>,
    _unused: Unused,
}

impl ExecutableState {
    fn edit(
        &mut self,
        exec: &Inner,
        updatable: &Updatable,
        from: &Source<'_>,
        nodes: &[NodeId],
    ) -> (Result<()>, OldObjects) {
        let mut dropped = OldObjects::default();
        let Some(mut editing) = self.editing.take() else {
            return (Err(UpdateError::NotUpdatable.into()), dropped);
        };
        let (mut edit, mut touched) = (std::mem::take(&mut editing.edit), std::mem::take(&mut editing.touched));
        // A deferred submission that has these values keeps them: then they are copied here.
        let values = Arc::make_mut(&mut self.values);
        let tables = Arc::make_mut(&mut values.tables);
        let mut to = Writer { tables, index: &mut editing.index };
        let mut settled = Vec::new();
        let reshaped = (&mut editing.reshaped, &mut settled);
        let assigned = assign(updatable, from, nodes, &mut edit, &mut to, reshaped, &mut touched);
        let mut outcome = assigned;
        let moves = touched.iter().any(|one| one.changed.memory);
        if outcome.is_ok() && moves {
            outcome = touched.iter().filter(|one| one.changed.memory).try_for_each(|one| {
                updatable.own_memory.check(to.tables, one.node).map_err(|OutOfTime { alloc, why }| {
                    let alloc = exec.fixed.node(exec.fixed.origins.of(to.tables.ir.allocs[alloc.index()].node).node);
                    UpdateError::GraphMemory { node: exec.fixed.node(one.origin), alloc, why }.into()
                })
            });
        }
        let mut sought = false;
        if outcome.is_ok() && !updatable.allow_conflicts && moves {
            outcome = check_conflicts(exec, &mut editing.conflicts, &edit, to.tables);
            sought = true;
        }
        let mut replaced = Vec::new();
        if outcome.is_ok() {
            outcome = self.apply(exec, updatable, &touched, &mut replaced, &mut dropped);
        }
        let values = Arc::make_mut(&mut self.values);
        let mut to = Writer { tables: Arc::make_mut(&mut values.tables), index: &mut editing.index };
        if let Some(conflicts) = editing.conflicts.as_mut().filter(|_| sought && outcome.is_err()) {
            let ir = &to.tables.ir;
            edit.old_accesses().for_each(|(node, slot, old)| {
                conflicts.exchange(ir, node, slot, &ir.accesses(node)[slot], old);
            });
        }
        dropped._data = if outcome.is_ok() { edit.commit(&mut to) } else { edit.roll_back(&mut to) };
        dropped.objects = to.index.released(to.tables);
        if outcome.is_err() {
            // The values are the old ones again.
            editing.reshaped.extend(settled);
            self.take_back(exec, updatable, &touched, &mut replaced, &mut dropped._old);
            self.restore(exec, &mut dropped._old);
        }
        self.keep_spare(exec, updatable, &touched, replaced, outcome.is_ok(), &mut dropped._old);
        match (from.reshaped, &outcome) {
            (Some(reshaped), Ok(())) => {
                dropped._unused = editing.destinations.assigned(nodes, reshaped);
            }
            (Some(_), Err(_)) => {}
            (None, _) => editing.destinations.forget(),
        }
        self.unshare(&exec.exclusive, dropped.objects.mems.iter().filter(|mem| !editing.index.has(mem)));
        if outcome.is_ok() && moves {
            let values = Arc::clone(&self.values);
            let moved = touched.iter().filter(|one| one.changed.memory);
            let accesses = moved.flat_map(|one| values.tables.ir.accesses(one.node));
            self.share(&exec.exclusive, accesses.filter_map(|access| values.tables.mem(access.view)));
        }
        (editing.edit, editing.touched) = (edit, Vec::new());
        self.editing = Some(editing);
        if outcome.is_ok() {
            self.follow(&exec.fixed, &touched, &mut dropped._old);
        }
        empty(&mut touched);
        if let Some(editing) = &mut self.editing {
            editing.touched = touched;
        }
        self.changed |= outcome.is_ok();
        (outcome, dropped)
    }

    /// Applies the tables to the kernel objects and command buffers.
    fn apply(
        &mut self,
        exec: &Inner,
        updatable: &Updatable,
        touched: &[Touched],
        replaced: &mut Vec<Replaced>,
        dropped: &mut OldObjects,
    ) -> Result<()> {
        let values = Arc::make_mut(&mut self.values);
        let mut native: Vec<(usize, &Touched)> = Vec::new();
        for one in touched {
            let Some(step) = updatable.step_of[one.node.index()].map(|step| step as usize) else { continue };
            let changed = &one.changed;
            if changed.is_only_promise() {
                continue;
            }
            let recorded = updatable.is_native(step);
            if recorded {
                native.push((step, one));
            }
            if recorded && !changed.switched {
                values.stale.add(step);
            } else if changed.switched || !changed.args.is_empty() {
                apply_to_object(values, step, one, replaced).map_err(|not| exec.fixed.update_error(one.origin, not))?;
            }
        }
        native.sort_unstable_by_key(|(step, _)| *step);
        self.apply_to_command_buffers(exec, &native, replaced, &mut dropped._old)
    }

    /// Keeps replaced kernel objects of recorded steps for the next update, which will need other objects again. The
    /// rest goes to `old`.
    fn keep_spare(
        &mut self,
        exec: &Inner,
        updatable: &Updatable,
        touched: &[Touched],
        replaced: Vec<Replaced>,
        is_done: bool,
        old: &mut Vec<Old>,
    ) {
        let step_of = |one: &Touched| updatable.step_of[one.node.index()].map(|step| step as usize);
        let mut switched: Vec<usize> = touched.iter().filter(|one| one.changed.switched).filter_map(step_of).collect();
        switched.sort_unstable();
        // A spare object may be of the kernel that was switched.
        let spare = |step: &usize| self.spare.0.get_mut(*step).map(Option::take);
        let mut over: Vec<_> = switched.iter().filter_map(spare).collect();
        let ir = &self.values.tables.ir;
        let keeps = |step: usize| {
            // Indirectly reached memory cannot be removed from a kernel object.
            let reaches = |args: Span| ir.args(args).iter().any(|arg| matches!(arg, Arg::Indirect(_)));
            let reaches =
                matches!(*ir.command(exec.fixed.plan.steps[step].node), Command::Kernel { args, .. } if reaches(args));
            updatable.is_native(step) && !reaches && switched.binary_search(&step).is_err()
        };
        let in_place = updatable.mutable().is_some_and(|fields| fields.arguments);
        for (step, object) in replaced {
            let Some(object) = object else { continue };
            over.push(if is_done && !in_place && keeps(step) { self.spare.keep(step, object) } else { Some(object) });
        }
        if over.iter().any(Option::is_some) {
            old.push(Arc::new(Objects(over)));
        }
    }

    /// Restores the kernel objects, after the tables were restored.
    pub(in crate::exec) fn take_back(
        &mut self,
        exec: &Inner,
        updatable: &Updatable,
        touched: &[Touched],
        replaced: &mut [Replaced],
        old: &mut Vec<Old>,
    ) {
        let values = Arc::make_mut(&mut self.values);
        for (step, before) in replaced.iter_mut().rev() {
            if let Some(object) = values.objects.0.get_mut(*step) {
                std::mem::swap(object, before);
            }
            // The object may have been stale before the update.
            values.stale.add(*step);
        }
        let mut slower = None;
        for one in touched {
            let Some(step) = updatable.step_of[one.node.index()].map(|step| step as usize) else { continue };
            values.stale.add(step);
            if updatable.is_native(step) {
                continue;
            }
            // Tried twice, because a refusal may be a short lack of memory.
            let mut again = || values.sync_arguments(&exec.fixed.plan, step..step + 1, old);
            if let Err(error) = again().or_else(|_| again()) {
                slower = slower.or(Some((error, one.origin)));
            }
        }
        if let Some((error, node)) = slower {
            let node = exec.fixed.node(node);
            log_later!(
                Debug,
                "{error}: an update failed, so that {node} and perhaps other nodes are slower to submit from \
                         now on"
            );
        }
    }
}

/// Assigns the values of a graph's nodes to planned nodes.
fn assign<'a>(
    updatable: &'a Updatable,
    from: &'a Source<'_>,
    nodes: &[NodeId],
    edit: &mut Edit,
    to: &mut Writer<'_>,
    (reshaped, settled): (&mut FxHashSet<NodeId>, &mut Vec<NodeId>),
    touched: &mut Vec<Touched>,
) -> Result<()> {
    let mut near = 0;
    for &origin in nodes {
        // Most updates change only values, so that is tried first.
        let is_plain = from.reshaped.is_some_and(|reshaped| !reshaped.contains_key(&origin))
            && !from.tables.group_of.contains_key(&origin);
        let node = updatable.alone(origin).filter(|node| is_plain && !reshaped.contains(node));
        if let Some(node) = node
            && let Some(changed) = edit.assign_values(to, node, from.tables, origin, &mut near)
        {
            if changed.only_values {
                touched.push(Touched { node, origin, changed });
            }
            continue;
        }
        let differs =
            |why: String| Error::from(UpdateError::Differs { difference: format!("node {}: {why}", origin.0) });
        let first = from.children.partition_point(|child| child.node < origin);
        let count = from.children[first..].iter().take_while(|child| child.node == origin).count();
        let (children, inside) = (&from.children[first..first + count], updatable.children(origin));
        let name = |is_control: bool| if is_control { "a branch or loop" } else { "a sub-graph" };
        let given = || name(matches!(from.tables.ir.command(origin), Command::Control(_)));
        let is_control = updatable.own(origin).is_some();
        let mine = || name(is_control);
        match (children.is_empty(), inside.is_empty()) {
            (false, true) => return Err(differs(format!("it is {}, but in the executable it is not", given()))),
            (true, false) => return Err(differs(format!("it is not {}, but in the executable it is", mine()))),
            (false, false) if given() != mine() => {
                return Err(differs(format!("it is {}, but in the executable it is {}", given(), mine())));
            }
            _ if children.len() != inside.len() => {
                let (new, old) = (children.len(), inside.len());
                return Err(differs(format!("it has {new} bodies, but in the executable it has {old}")));
            }
            _ => {}
        }
        let pairs = || children.iter().zip(inside);
        pairs().try_for_each(|(child, inside)| inside.check(child, is_control)).map_err(differs)?;
        // The node itself, unless it is no more than an executable; and what is inside it.
        let own = updatable.own(origin).map(|node| (node, from.tables, origin));
        let child = |(Given { flat, .. }, is): (&'a Given, &'a Inside)| {
            (0..flat.tables.ir.len() as u32).map(move |at| (NodeId(is.first.0 + at), &*flat.tables, NodeId(at)))
        };
        for (node, source, at) in own.into_iter().chain(pairs().flat_map(child)) {
            let changed = edit.assign(to, node, source, at).map_err(differs)?;
            if is_plain && children.is_empty() {
                // The node is the graph's again, whatever another graph had assigned before.
                if reshaped.remove(&node) {
                    settled.push(node);
                }
            } else if matches!(to.ir.command(node), Command::Kernel { .. }) {
                reshaped.insert(node);
            }
            if !changed.is_nothing() {
                touched.push(Touched { node, origin, changed });
            }
        }
    }
    Ok(())
}

/// Gives the kernel object of a step the arguments of the tables.
pub(in crate::exec) fn apply_to_object(
    values: &mut Values,
    step: usize,
    touched: &Touched,
    replaced: &mut Vec<Replaced>,
) -> Result<(), NotMade> {
    let (node, changed) = (touched.node, &touched.changed);
    let tables = &*values.tables;
    let Command::Kernel { kernel, args, .. } = *tables.ir.command(node) else { return Ok(()) };
    let given = tables.ir.args(args);
    // Indirectly reached memory cannot be removed from a kernel object.
    let anew = changed.switched || changed.args.of(given.len()).any(|at| matches!(given[at], Arg::Indirect(_)));
    let object = values.objects.0.get_mut(step).and_then(Option::as_mut).and_then(Arc::get_mut);
    let Some(object) = object.filter(|_| !anew) else {
        // A new object is needed: it is another kernel, or the object has other holders (steps with equal values, or a
        // submission that is not enqueued yet).
        replaced.push((step, values.replace(step, kernel, args)?));
        return Ok(());
    };
    // OpenCL copies the arguments of enqueued launches (OpenCL 3.0, clSetKernelArg), so the object can be changed.
    changed.args.settable(given).try_for_each(|index| {
        let set = object.set(index, set_arg(tables, &given[index]));
        set.map_err(|source| NotMade { argument: Some(index), source })
    })
}
