//! Changing nodes that are in a graph: their values, and never their edges.

use std::ops::Range;
use std::sync::Arc;

use opencl_sys::{CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
use smallvec::SmallVec;

use super::edit;
use super::fits::{ArgUse, Place, check_shared_images};
use super::group::Launched;
use super::parameter::{Snapshot, Value};
use super::range::{Extent, NdRange, Sizes, check_bound, check_local, check_range};
use super::request::{Request, Target};
use super::tables::{Binding, Index, Released, Tables, Writer};
use super::transfer::forbid;
use super::undo::{Edit, Owned};
use super::{After, Graph, Node, State};
use crate::cl::buffer::Region;
use crate::cl::context::InContext;
use crate::cl::mem::Mem;
use crate::error::{BuildCause, BuildError, Result};
use crate::ir::{Arg, KernelId, Mode, NodeId, Op, Span, ViewKind};

/// What was let go, to be dropped where no lock is held.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    _objects: Released,
    _data: Vec<Owned>,
    _bindings: Vec<Binding>,
}

impl Graph {
    /// Gives a kernel node another range, offset and size of work-groups, all three; executables follow when they are
    /// updated. The number of dimensions stays, and the range stays within the bound that
    /// [`KernelNode::range_up_to`](crate::KernelNode::range_up_to) gave: without one, put another launch in the place of the
    /// node ([`KernelNode::replace`](crate::KernelNode::replace)).
    ///
    /// A range with a zero in it is valid and runs nothing. Give [`NdRange::work_group`] each time: it does not stay
    /// from before, and without it some drivers, such as PoCL, compile the kernel again for each new range.
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
    /// [`BuildCause::OtherKind`] for a node that is no kernel; [`BuildCause::RangeBound`]; [`BuildCause::Dimensions`],
    /// [`BuildCause::WorkGroup`]; [`BuildCause::OtherGraph`]. Nothing changed.
    pub fn set_nd_range(&self, node: impl Into<Node>, range: impl Into<NdRange>) -> Result<()> {
        let (node, range) = (node.into(), range.into());
        let fail = |cause| BuildError::new(format!("range of {node}"), cause);
        let mut state = self.lock();
        let id = self.resolve(&state, node).map_err(fail)?;
        let op = state.ir.op(id);
        let Op::Kernel { kernel, grid, bound, .. } = op else {
            let why = "only kernels have a range";
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
            let bound = "which is the range that it was added with: add it with `range_up_to`, or put another launch in its place \
                         by `replace`"
                .to_owned();
            let (range, offset) = (grid2.global[..dims].to_vec(), grid2.offset[..dims].to_vec());
            return Err(fail(BuildCause::RangeBound { range, offset, bound }).into());
        };
        check_bound(&grid2, Some(Extent::of(&bound[..dims]))).map_err(fail)?;
        state.set_grid(id, grid2);
        Ok(())
    }

    /// Puts a request in the place of a node of its kind: the same node with other values.
    pub(super) fn replace<R: Request>(&self, node: Node, request: R, after: &After) -> Result<()> {
        let subject = || format!("{} in place of {node}", request.subject());
        let mut state = self.lock();
        let why = || "edges stay as they are: leave `after` out".to_owned();
        let known = match after.waits() {
            true => Err(BuildCause::Replace { node, why: why() }),
            false => self.resolve(&state, node),
        };
        let known = known.and_then(|id| state.check_no_group(node).map(|()| id));
        let checked = known.and_then(|id| Ok((id, request.check(&self.target())?)));
        let (id, checked) = checked.map_err(|cause| BuildError::new(subject(), cause))?;
        let subject = subject();
        let fail = |cause| BuildError::new(subject.clone(), cause);
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

pub(super) fn other_kind(node: Node, op: &Op, given: &str, why: &'static str) -> BuildCause {
    BuildCause::OtherKind { node, is: edit::name(op), given: given.to_owned(), why }
}

/// Places of parameters that do not hold plain values, and what they are now: mostly few.
type Late = SmallVec<[(usize, Snapshot); 2]>;

impl State {
    /// Gives a node the values of a node of other tables, and its parameters.
    fn assign(&mut self, node: NodeId, from: &Tables, source: NodeId) -> (Result<(), String>, Dropped) {
        let Self { tables, index, .. } = self;
        let tables = Arc::make_mut(tables);
        let mut edit = Edit::default();
        let mut to = Writer { tables, index };
        let outcome = edit.assign(&mut to, node, from, source);
        let data = if outcome.is_ok() { edit.commit(&mut to) } else { edit.roll_back(&mut to) };
        let mut dropped = Dropped { _objects: index.released(tables), _data: data, _bindings: Vec::new() };
        let changed = match outcome {
            Ok(changed) => changed,
            Err(why) => return (Err(why), dropped),
        };
        if changed.memory {
            tables.moved = true;
        }
        self.reshaped.insert(node);
        if let (Op::Kernel { args, .. }, Op::Kernel { args: args2, .. }) = (tables.ir.op(node), from.ir.op(source)) {
            let (place, place2) = (args.ends().0, args2.ends().0);
            let here = tables.bindings(*args);
            let new = from.bindings[from.bindings(*args2)].iter().cloned().map(|mut binding| {
                binding.arg = binding.arg - place2 + place;
                binding
            });
            let new: Vec<Binding> = new.collect();
            if new.is_empty() {
                tables.fed.remove(&node);
            } else {
                tables.fed.insert(node);
            }
            dropped._bindings = tables.bindings.splice(here, new).collect();
        }
        (Ok(()), dropped)
    }

    /// Brings the values of parameters into nodes.
    pub(crate) fn refresh_nodes(
        &mut self,
        target: &Target<'_>,
        mut nodes: &[NodeId],
    ) -> Result<(), (NodeId, BuildCause)> {
        while !nodes.is_empty() {
            let tables = Arc::make_mut(&mut self.tables);
            let near = &mut self.next_binding;
            let done = nodes.iter().take_while(|node| tables.refresh_values(**node, near)).count();
            let Some((&node, behind)) = nodes[done..].split_first() else { break };
            self.refresh(target, node).map_err(|cause| (node, cause))?;
            nodes = behind;
        }
        Ok(())
    }

    /// Brings the values of parameters into a node.
    fn refresh(&mut self, target: &Target<'_>, node: NodeId) -> Result<(), BuildCause> {
        if let Some(group) = self.group_of.get(&node).copied() {
            self.refresh_group(target, group)?;
            self.follow_group(node);
            return Ok(());
        }
        let Op::Kernel { kernel, args, .. } = self.ir.op(node) else { return Ok(()) };
        self.refresh_args(target, Launched::ByNode(node), *kernel, *args)
    }

    /// Brings them into the arguments of a launch.
    pub(super) fn refresh_args(
        &mut self,
        target: &Target<'_>,
        by: Launched,
        kernel: KernelId,
        args: Span,
    ) -> Result<(), BuildCause> {
        let bindings = self.bindings(args);
        // Values cannot be wrong. What can be comes first.
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

    /// Whether a kernel would share images with itself, if some arguments became other memory.
    fn check_late_images(
        &self,
        args: Span,
        modes: &[Mode],
        late: impl Fn(usize) -> Option<Option<Region>>,
    ) -> Result<(), BuildCause> {
        let is_image = |arg: &Arg| {
            let kind = arg.view().map(|view| self.ir.views[view.index()].kind);
            matches!(kind, Some(ViewKind::Image | ViewKind::ImageOfBuffer))
        };
        if !self.ir.args(args).iter().any(is_image) {
            return Ok(());
        }
        let used = |(_, arg): &(usize, &Arg)| !matches!(arg, Arg::Unused(_));
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

    /// Memory and null, local memory and samplers.
    fn refresh_late(
        &mut self,
        target: &Target<'_>,
        by: Launched,
        (kernel, args): (KernelId, Span),
        late: Late,
    ) -> Result<(), BuildCause> {
        // Everything is looked at before anything changes.
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
                let what = &Place("the parameter of argument", index);
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
            self.reshaped.insert(node);
        }
        let Self { tables, index: known, .. } = self;
        let mut to = Writer { tables: Arc::make_mut(tables), index: known };
        for (at, now) in late {
            let index = (to.bindings[at].arg - args.ends().0) as usize;
            let slot = slot_of(to.tables, index);
            let is_memory = matches!(now.value, Value::Buffer(_) | Value::Null(_));
            if let (true, Some(mode)) = (is_memory, modes.get(slot)) {
                // The argument names it, and so does the node's access.
                let (access, arg) = match &now.region {
                    Some(region) => {
                        let access = to.access(region, *mode);
                        let arg = Arg::Buffer(access.view);
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
                    // It has no number only where there are four billion others.
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

    /// Brings the values of parameters into all nodes.
    pub(crate) fn refresh_all(&mut self, target: &Target<'_>) -> Result<(), (NodeId, BuildCause)> {
        let fed: Vec<NodeId> = self.fed.iter().copied().collect();
        self.refresh_nodes(target, &fed)
    }

    /// Brings what by-value parameters are into all nodes but those of command groups, which cannot fail.
    pub(super) fn refresh_values(&mut self) {
        let fed: Vec<NodeId> = self.fed.iter().copied().collect();
        if fed.is_empty() {
            return;
        }
        let tables = Arc::make_mut(&mut self.tables);
        let mut near = 0;
        fed.iter().for_each(|node| {
            tables.refresh_values(*node, &mut near);
        });
    }

    /// What changes have let go.
    pub(crate) fn dropped(&mut self) -> Dropped {
        Dropped { _objects: self.index.released_of(&mut self.tables), ..Dropped::default() }
    }
}

impl Tables {
    /// Brings values of parameters into a launch. Says whether that was all there is to be done.
    fn refresh_values(&mut self, node: NodeId, near: &mut usize) -> bool {
        let Op::Kernel { args, .. } = *self.ir.op(node) else { return true };
        let bindings = self.bindings_near(*near, args);
        *near = bindings.end;
        // A group's launches have the parameters.
        self.refresh_values_of(args, bindings) && !self.group_of.contains_key(&node)
    }

    /// Brings values into arguments. Says whether parameters of other kinds have nothing new.
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
