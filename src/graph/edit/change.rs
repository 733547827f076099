//! Changes of nodes that are in a graph: their values, and never their edges.

use std::ops::Range;
use std::sync::Arc;

use opencl_sys::{CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
use smallvec::SmallVec;

use crate::cl::memory::region::Region;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::context::InContext;
use crate::command::{Arg, Command};
use crate::error::{BuildCause, BuildError, Result};
use crate::graph::edit::assign;
use crate::graph::edit::undo::{Edit, Owned};
use crate::graph::nodes::argument_checks::{ArgUse, ArgumentName, check_shared_images};
use crate::graph::nodes::command_group::Launched;
use crate::graph::nodes::range::{Extent, NdRange, Sizes, check_bound, check_local, check_range};
use crate::graph::nodes::request::{Request, Target};
use crate::graph::nodes::transfer::forbid;
use crate::graph::parameters::{Value, ValueSnapshot};
use crate::graph::tables::{Binding, Tables};
use crate::graph::writer::{Index, Released, Writer};
use crate::graph::{After, Graph, State};
use crate::handles::Node;
use crate::ir::{ById, KernelId, Mode, NodeId, Span, ViewKind};

/// Released objects and data, to be dropped where no lock is held.
#[derive(Debug, Default)]
pub(crate) struct Discarded {
    _objects: Released,
    _data: Vec<Owned>,
    _bindings: Vec<Binding>,
}

impl Graph {
    /// Gives a kernel node another range, offset and size of work-groups. Executables get the change when they are
    /// updated.
    ///
    /// The number of dimensions stays, and the range stays within the bound that
    /// [`KernelNode::range_up_to`](crate::KernelNode::range_up_to) has set. Without such a bound, replace the launch of
    /// the node instead ([`KernelNode::replace`](crate::KernelNode::replace)).
    ///
    /// A range with a zero in it is valid and runs nothing. Set [`NdRange::work_group`] each time, because the previous
    /// size is not kept: without it some drivers, such as PoCL, compile the kernel again for each new range.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, NdRange, Program, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let source = "kernel void twice(global int *a) { a[get_global_id(0)] *= 2; }";
    /// let twice = Program::from_source(&queue, source)?.kernel("twice")?;
    /// let numbers = Buffer::from_slice(&queue, &[1_i32, 2, 3, 4])?;
    /// let graph = Graph::new(&queue)?;
    /// // SAFETY: a work-item touches its own element, and ids stay below their number.
    /// let node = unsafe { graph.kernel(&twice).read_write(&numbers).range(4).work_group(2).range_up_to(4).add()? };
    /// let result = graph.read(&numbers).add()?;
    /// let executable = graph.finalize(Finalize::new().updatable())?;
    ///
    /// graph.set_nd_range(node, NdRange::new(2).work_group(2))?;
    /// assert!(graph.set_nd_range(node, 5).is_err()); // the promise does not cover it
    /// executable.update(&node)?;
    /// let run = executable.submit(&queue)?;
    /// run.wait()?;
    /// assert_eq!(*run.get(&result)?, [2, 4, 3, 4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`BuildCause::OtherKind`] for a node that is not a kernel; [`BuildCause::RangeFixed`] without a bound, and
    /// [`BuildCause::RangeBound`] beyond it; those of [`KernelNode::add`](crate::KernelNode::add) for range and
    /// work-group; [`BuildCause::OtherGraph`]. After an error nothing has changed.
    pub fn set_nd_range(&self, node: impl Into<Node>, range: impl Into<NdRange>) -> Result<()> {
        let (node, range) = (node.into(), range.into());
        let fail = |cause| BuildError::new(format!("range of {node}"), cause);
        let mut state = self.lock();
        let id = self.resolve(&state, node).map_err(fail)?;
        let op = state.ir.command(id);
        let Command::Kernel { kernel, grid, bound, .. } = op else {
            let why = "only kernel nodes have a range";
            return Err(fail(other_kind(node, op, "another range", why)).into());
        };
        let facts = state.kernels[kernel.index()].facts(self.device());
        let NdRange { range, offset, work_group } = &range;
        let (range, offset, work_group) = (Some(range), offset.as_ref(), work_group.as_ref());
        check_range(range, offset, work_group, facts, self.device().caps()).map_err(fail)?;
        let grid2 = Sizes::of(range, offset, work_group, facts).grid();
        if grid2.dims != grid.dims {
            return Err(fail(BuildCause::Dimensions {
                what: "new range",
                given: grid2.dims,
                of: "the node's range",
                range: grid.dims,
            })
            .into());
        }
        if grid2 == *grid {
            return Ok(());
        }
        let dims = grid.dims as usize;
        let Some(bound) = bound else {
            return Err(fail(BuildCause::RangeFixed).into());
        };
        check_bound(&grid2, Some(Extent::of(&bound[..dims]))).map_err(fail)?;
        state.set_grid(id, grid2);
        Ok(())
    }

    /// Replaces a node by a request of the same kind: the same node with other values.
    pub(crate) fn replace<R: Request>(&self, node: Node, request: R, after: &After) -> Result<()> {
        let subject = format!("{} in place of {node}", request.subject());
        self.replace_by(node, after, subject, |_, _| Ok(request))
    }

    /// Replaces a node by the request that `make` returns for it.
    pub(in crate::graph) fn replace_by<R: Request>(
        &self,
        node: Node,
        after: &After,
        subject: String,
        make: impl FnOnce(&State, NodeId) -> Result<R, BuildCause>,
    ) -> Result<()> {
        let fail = |cause| BuildError::new(subject.clone(), cause);
        let mut state = self.lock();
        let why = || "a replacement keeps the edges of the node, so leave `after` out".to_owned();
        let known = match after.waits() {
            true => Err(BuildCause::Replace { node, why: why() }),
            false => self.resolve(&state, node),
        };
        let known = known.and_then(|id| state.check_no_group(node).map(|()| id));
        let made = known.and_then(|id| Ok((id, make(&state, id)?)));
        let checked = made.and_then(|(id, request)| {
            let checked = request.check(&self.target())?;
            Ok((id, request, checked))
        });
        let (id, request, checked) = checked.map_err(fail)?;
        let (mut tables, mut index) = (Tables::default(), Index::default());
        let mut accesses = Vec::new();
        let op = request.lower(checked, &mut Writer { tables: &mut tables, index: &mut index }, &mut accesses);
        let full = || BuildCause::Full { limit: crate::ir::Ir::MOST as u64 };
        let op = op.ok_or_else(full).map_err(fail)?;
        tables.ir.push_node(op, accesses.into_iter(), &mut Vec::new()).ok_or_else(full).map_err(fail)?;
        let (outcome, dropped) = state.assign(id, &tables, NodeId(0));
        if outcome.is_ok() {
            state.give_label(id, after.label.as_ref());
        }
        drop(state);
        drop(dropped);
        match outcome {
            Ok(()) => Ok(()),
            Err(why) => Err(fail(BuildCause::Replace { node, why }).into()),
        }
    }
}

pub(in crate::graph) fn other_kind(node: Node, op: &Command<ById>, given: &str, why: &'static str) -> BuildCause {
    BuildCause::OtherKind { node, is: assign::name(op), given: given.to_owned(), why }
}

/// The bindings to parameters that are not plain values, and their current values: usually few.
type Late = SmallVec<[(usize, ValueSnapshot); 2]>;

impl State {
    /// Gives a node the values of a node of other tables, and its parameters.
    fn assign(&mut self, node: NodeId, from: &Tables, source: NodeId) -> (Result<(), String>, Discarded) {
        let Self { tables, index, .. } = self;
        let tables = Arc::make_mut(tables);
        let mut edit = Edit::default();
        let mut to = Writer { tables, index };
        let outcome = edit.assign(&mut to, node, from, source);
        let data = if outcome.is_ok() { edit.commit(&mut to) } else { edit.roll_back(&mut to) };
        let mut dropped = Discarded { _objects: index.released(tables), _data: data, _bindings: Vec::new() };
        let changed = match outcome {
            Ok(changed) => changed,
            Err(why) => return (Err(why), dropped),
        };
        if changed.memory {
            tables.moved = true;
        }
        tables.has_written_const |= from.has_written_const;
        *Arc::make_mut(&mut self.reshaped).entry(node).or_default() += 1;
        if let (Command::Kernel { args, .. }, Command::Kernel { args: args2, .. }) =
            (tables.ir.command(node), from.ir.command(source))
        {
            let (place, place2) = (args.ends().0, args2.ends().0);
            let here = tables.bindings(*args);
            let new = from.bindings[from.bindings(*args2)].iter().cloned().map(|mut binding| {
                binding.arg = binding.arg - place2 + place;
                binding
            });
            let new: Vec<Binding> = new.collect();
            if new.is_empty() {
                tables.parameter_bound.remove(&node);
            } else {
                tables.parameter_bound.insert(node);
            }
            dropped._bindings = tables.bindings.splice(here, new).collect();
        }
        (Ok(()), dropped)
    }

    /// Copies the values of parameters into nodes.
    pub(crate) fn refresh_nodes(
        &mut self,
        target: &Target<'_>,
        mut nodes: &[NodeId],
    ) -> Result<(), (NodeId, BuildCause)> {
        while !nodes.is_empty() {
            let tables = Arc::make_mut(&mut self.tables);
            let near = &mut self.next_binding;
            let done = nodes.iter().take_while(|node| tables.refresh_values(**node, near)).count();
            let Some((&node, rest)) = nodes[done..].split_first() else { break };
            self.refresh(target, node).map_err(|cause| (node, cause))?;
            nodes = rest;
        }
        Ok(())
    }

    /// Copies the values of parameters into a node.
    fn refresh(&mut self, target: &Target<'_>, node: NodeId) -> Result<(), BuildCause> {
        if let Some(group) = self.group_of.get(&node).copied() {
            self.refresh_group(target, group)?;
            self.sync_group(node);
            return Ok(());
        }
        let Command::Kernel { kernel, args, .. } = self.ir.command(node) else { return Ok(()) };
        self.refresh_args(target, Launched::ByNode(node), *kernel, *args)
    }

    /// Copies the values of parameters into the arguments of a launch.
    pub(in crate::graph) fn refresh_args(
        &mut self,
        target: &Target<'_>,
        by: Launched,
        kernel: KernelId,
        args: Span,
    ) -> Result<(), BuildCause> {
        let bindings = self.bindings(args);
        // Plain values cannot fail. The values that can fail come first, so that an error changes nothing.
        let mut late = Late::new();
        for at in bindings.clone() {
            let binding = &self.bindings[at];
            let Some(cell) = binding.news() else { continue };
            if !matches!(self.ir.args(args)[(binding.arg - args.ends().0) as usize], Arg::Value(_)) {
                late.push((at, cell.snapshot()));
            }
        }
        if !late.is_empty() {
            self.refresh_late(target, by, (kernel, args), late)?;
        }
        Arc::make_mut(&mut self.tables).refresh_values_of(args, bindings);
        Ok(())
    }

    /// Checks that a kernel does not share images with itself after some arguments become other memory.
    fn check_late_images(
        &self,
        args: Span,
        modes: &[Mode],
        late: impl Fn(usize) -> Option<Option<Region>>,
    ) -> Result<(), BuildCause> {
        let is_image = |arg: &Arg<ById>| {
            let kind = arg.view().map(|view| self.ir.views[view.index()].kind);
            matches!(kind, Some(ViewKind::Image | ViewKind::ImageOfBuffer))
        };
        if !self.ir.args(args).iter().any(is_image) {
            return Ok(());
        }
        let used = |(_, arg): &(usize, &Arg<ById>)| !matches!(arg, Arg::Unused(_));
        let used = self.ir.args(args).iter().enumerate().filter(used);
        let memory = used.filter_map(|(index, arg)| Some((index, arg.view()?)));
        let uses = memory.zip(modes).filter_map(|((index, view), mode)| {
            let whole = |mem: &Mem| Region { mem: mem.clone(), offset: 0, size: mem.size() };
            let now = || self.mem(view).filter(|_| !matches!(self.ir.args(args)[index], Arg::Null(_))).map(whole);
            let region = late(index).unwrap_or_else(now)?;
            Some(ArgUse { index, region, mode: *mode })
        });
        check_shared_images(&uses.collect::<Vec<_>>())
    }

    /// Copies the values of parameters that are not plain values: memory and null pointers, local memory and samplers.
    fn refresh_late(
        &mut self,
        target: &Target<'_>,
        by: Launched,
        (kernel, args): (KernelId, Span),
        late: Late,
    ) -> Result<(), BuildCause> {
        // All checks come before the first change.
        let index_of = |state: &Self, at: usize| (state.bindings[at].arg - args.ends().0) as usize;
        let slot_of = |tables: &Tables, index: usize| {
            tables.ir.args(args)[..index].iter().filter(|arg| arg.view().is_some()).count()
        };
        let modes: SmallVec<[Mode; 8]> = match by {
            Launched::ByNode(node) => self.ir.accesses(node).iter().map(|access| access.mode).collect(),
            Launched::ByGroup(group) => self.groups[group].modes().collect(),
        };
        let mut locals: SmallVec<[(usize, usize); 2]> = SmallVec::new();
        for (at, now) in &late {
            let index = index_of(self, *at);
            if let Some(region) = &now.region {
                let what = &ArgumentName("the parameter of argument", index);
                target.check_context(region, what)?;
                let mode = modes.get(slot_of(self, index)).copied();
                if mode.is_some_and(Mode::writes) {
                    forbid(region, what, CL_MEM_READ_ONLY, "CL_MEM_READ_ONLY", "writing by kernels")?;
                }
                if mode.is_some_and(|mode| mode != Mode::Write) {
                    forbid(region, what, CL_MEM_WRITE_ONLY, "CL_MEM_WRITE_ONLY", "reading by kernels")?;
                }
            }
            match &now.value {
                Value::Local(size) => locals.push((index, *size)),
                Value::Sampler(sampler) if sampler.context() != target.context => {
                    return Err(BuildCause::OtherContext { what: format!("the parameter of argument {index}") });
                }
                _ => {}
            }
        }
        self.check_late_images(args, &modes, |index| {
            late.iter().find(|(at, _)| index_of(self, *at) == index).map(|(_, now)| now.region.clone())
        })?;
        if let Some((index, _)) = locals.iter().find(|(_, size)| *size == 0) {
            return Err(BuildCause::NoLocalMemory { index: *index });
        }
        if !locals.is_empty() {
            let sizes = self.ir.args(args).iter().enumerate().filter_map(|(index, arg)| match arg {
                Arg::Local(size) => Some(locals.iter().find(|(of, _)| *of == index).map_or(*size, |(_, new)| *new)),
                _ => None,
            });
            let facts = self.kernels[kernel.index()].facts(target.device);
            let sum = sizes.fold(0, |sum: u64, size| sum.saturating_add(size as u64));
            check_local(sum, facts, target.device.caps())?;
        }
        if let Launched::ByNode(node) = by {
            *Arc::make_mut(&mut self.reshaped).entry(node).or_default() += 1;
        }
        let Self { tables, index: known, .. } = self;
        let mut to = Writer { tables: Arc::make_mut(tables), index: known };
        for (at, now) in late {
            let index = (to.bindings[at].arg - args.ends().0) as usize;
            let slot = slot_of(to.tables, index);
            let is_memory = matches!(now.value, Value::Buffer(_) | Value::Null(_));
            if let (true, Some(mode)) = (is_memory, modes.get(slot)) {
                // Both the argument and the access of the node name the memory.
                let (access, arg) = match &now.region {
                    Some(region) => {
                        let access = to.access(region, *mode);
                        let arg = Arg::Memory(access.view);
                        (access, arg)
                    }
                    None => {
                        let access = to.no_access(*mode);
                        to.keep(access.view);
                        let arg = Arg::Null(access.view);
                        (access, arg)
                    }
                };
                let old = std::mem::replace(&mut to.tables.ir.args_mut(args)[index], arg);
                if let Some(view) = old.view() {
                    to.release(view);
                }
                match by {
                    Launched::ByNode(node) => {
                        to.keep(access.view);
                        let old = std::mem::replace(&mut to.tables.ir.accesses_mut(node)[slot], access);
                        to.release(old.view);
                        to.tables.moved = true;
                    }
                    Launched::ByGroup(group) => {
                        let bytes = now.region.as_ref().map(|region| region.offset..region.offset + region.size);
                        to.tables.groups[group].set_use(slot, bytes.unwrap_or(0..0));
                    }
                }
            }
            match &now.value {
                Value::Local(size) => to.tables.ir.args_mut(args)[index] = Arg::Local(*size),
                Value::Sampler(sampler) => {
                    // The table of samplers is full only with four billion samplers.
                    if let Some(id) = to.sampler(sampler) {
                        to.tables.ir.args_mut(args)[index] = Arg::Sampler(id);
                    }
                }
                _ => {}
            }
            to.tables.bindings[at].time = now.time;
        }
        Ok(())
    }

    /// Copies the values of parameters into all nodes.
    pub(crate) fn refresh_all(&mut self, target: &Target<'_>) -> Result<(), (NodeId, BuildCause)> {
        let parameter_bound: Vec<NodeId> = self.parameter_bound.iter().copied().collect();
        self.refresh_nodes(target, &parameter_bound)
    }

    /// Copies the values of by-value parameters into all nodes except those of command groups. This cannot fail.
    pub(in crate::graph) fn refresh_values(&mut self) {
        let parameter_bound: Vec<NodeId> = self.parameter_bound.iter().copied().collect();
        if parameter_bound.is_empty() {
            return;
        }
        let tables = Arc::make_mut(&mut self.tables);
        let mut near = 0;
        parameter_bound.iter().for_each(|node| {
            tables.refresh_values(*node, &mut near);
        });
    }

    /// The objects that changes have released.
    pub(crate) fn dropped(&mut self) -> Discarded {
        Discarded { _objects: self.index.released_of(&mut self.tables), ..Discarded::default() }
    }
}

impl Tables {
    /// Copies by-value parameters into a launch. Returns whether the node needs no more work.
    fn refresh_values(&mut self, node: NodeId, near: &mut usize) -> bool {
        let Command::Kernel { args, .. } = *self.ir.command(node) else { return true };
        let bindings = self.bindings_near(*near, args);
        *near = bindings.end;
        // The parameters of a group are bound to the launches of the group.
        self.refresh_values_of(args, bindings) && !self.group_of.contains_key(&node)
    }

    /// Copies by-value parameters into arguments. Returns whether no other parameter has a new value.
    fn refresh_values_of(&mut self, args: Span, bindings: Range<usize>) -> bool {
        let mut all = true;
        for binding in &mut self.bindings[bindings] {
            let Some(cell) = binding.news() else { continue };
            let index = (binding.arg - args.ends().0) as usize;
            let Arg::Value(span) = self.ir.args(args)[index] else {
                all = false;
                continue;
            };
            let place = self.ir.bytes_mut(span);
            binding.time = cell.now(|value, time| {
                if let Value::Bytes(bytes) = value
                    && bytes.len() == place.len()
                {
                    place.copy_from_slice(bytes);
                }
                time
            });
        }
        all
    }
}
