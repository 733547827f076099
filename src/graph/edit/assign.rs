//! Edits of tables that can be rolled back: existing nodes get the values of other nodes. Edges never change.

use crate::command::{Arg, Command, Grid, Pixels, Translate};
use crate::graph::edit::undo::Edit;
use crate::graph::tables::Tables;
use crate::graph::writer::Writer;
use crate::ir::{
    Access, AllocId, Body, ById, ChildId, DataId, ExternalId, Ir, KernelId, NativeId, NodeId, ResultId, Span, TaskId,
    ViewId, ViewKind,
};

/// What has changed about a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    /// The changed arguments of a kernel.
    pub(crate) args: ArgSet,
    /// The range, offset and work-group before the change, if one of them has changed.
    pub(crate) grid: Option<Box<Grid>>,
    /// Whether the kernel has changed, or anything of another command.
    pub(crate) command: bool,
    /// Whether the kernel has changed.
    pub(crate) switched: bool,
    /// Whether the memory that the node uses has changed.
    pub(crate) memory: bool,
    /// Whether it is promised anew what the work-items of a kernel touch ([`Elementwise`](crate::command::Elementwise)).
    pub(crate) promise: bool,
    /// Whether only the bytes of arguments have changed. Only [`Edit::assign_values`] sets it; otherwise it means
    /// nothing.
    pub(crate) only_values: bool,
}

/// A set of arguments of a kernel, without an allocation. The arguments from the 64th on share one bit, so the set has
/// all of them or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ArgSet(u64);

impl ArgSet {
    fn bit(index: usize) -> u64 {
        1 << index.min(63)
    }

    fn add(&mut self, index: usize) {
        self.0 |= Self::bit(index);
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The indices among `args` that are in the set and that a driver can set by their index. The others come after the
    /// kernel's own arguments.
    pub(crate) fn settable(self, args: &[Arg<ById>]) -> impl Iterator<Item = usize> {
        self.of(args.len()).filter(|at| !matches!(args[*at], Arg::Global(_) | Arg::Indirect(_) | Arg::Unused(_)))
    }

    /// The indices below `count` that are in the set.
    pub(crate) fn of(self, count: usize) -> impl Iterator<Item = usize> {
        (0..count).filter(move |index| self.0 & Self::bit(*index) != 0)
    }
}

impl Changed {
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Whether nothing has changed that commands have: then only fused kernels have to know.
    pub(crate) fn is_only_promise(&self) -> bool {
        self.promise && *self == Self { promise: true, ..Self::default() }
    }
}

/// The reason why a node cannot have the values of another node.
pub(crate) type Mismatch = String;

impl Edit {
    /// The id that memory of other tables has here.
    fn view(&mut self, to: &mut Writer<'_>, from: &Tables, view: ViewId) -> Result<ViewId, Mismatch> {
        if from.is_nothing(view) {
            return Ok(to.nothing());
        }
        let mem = from.mem(view).ok_or("its memory no longer exists")?;
        let view = if mem.graph_allocation().is_some() && to.placed.is_some() {
            to.tables.placed(mem).ok_or("it uses memory of the graph that no node of the executable used")?
        } else if matches!(from.ir.views[view.index()].kind, ViewKind::Placed { .. }) {
            to.placed_elsewhere(mem, from.ir.views[view.index()])
        } else {
            to.view(mem)
        };
        self.named(view);
        Ok(view)
    }

    /// Gives a node the values of a node of other tables.
    pub(crate) fn assign(
        &mut self,
        to: &mut Writer<'_>,
        node: NodeId,
        from: &Tables,
        source: NodeId,
    ) -> Result<Changed, Mismatch> {
        let mut changed = Changed::default();
        match (to.ir.command(node), from.ir.command(source)) {
            (Command::Empty, Command::Empty) => return Ok(changed),
            // Allocations of a sub-graph were placed when the sub-graph was finalized.
            (Command::Empty, Command::Alloc(_) | Command::Free(_)) if from.placed.is_some() => return Ok(changed),
            (
                Command::Kernel { kernel, args, .. },
                Command::Kernel {
                    kernel: kernel2,
                    args: args2,
                    grid: grid2,
                    bound: bound2,
                    prints: prints2,
                    elementwise: elementwise2,
                },
            ) => {
                let (mut kernel, mut args, args2) = (*kernel, *args, *args2);
                if let Some((group, index, active)) = other_launch(to, node, from, source)? {
                    // The equal parts of the two launches are compared below.
                    let Command::Kernel { kernel: other, args: theirs, .. } = &active else {
                        return Err("its command group does not consist of kernels".to_owned());
                    };
                    (kernel, args) = (*other, *theirs);
                    self.command(to, node, active);
                    self.active(to, group, index);
                    changed.command = true;
                    changed.switched = true;
                }
                if to.kernels[kernel.index()] != from.kernels[kernel2.index()] {
                    let name = |tables: &Tables, kernel: usize| tables.ir.kernels[kernel].name.to_string();
                    let (old, new) = (name(to, kernel.index()), name(from, kernel2.index()));
                    return Err(if old == new {
                        format!(
                            "its kernel `{old}` is from another program than the kernel given; give a kernel of the \
                             same program"
                        )
                    } else {
                        format!("its kernel is `{old}`, but `{new}` was given, and the kernel of a node cannot change")
                    });
                }
                let Command::Kernel { grid, bound, prints, elementwise, .. } = to.ir.command(node) else {
                    return Ok(changed);
                };
                if grid.dims != grid2.dims {
                    return Err(format!(
                        "the number of dimensions of its range cannot change: it is {}, and {} was given",
                        grid.dims, grid2.dims
                    ));
                }
                changed.grid = (grid != grid2).then(|| Box::new(*grid));
                changed.promise = elementwise != elementwise2;
                if bound != bound2 || prints != prints2 || elementwise != elementwise2 {
                    let (bound, elementwise) = (bound2.clone(), elementwise2.clone());
                    let op = Command::Kernel { kernel, args, grid: *grid2, bound, prints: *prints2, elementwise };
                    self.command(to, node, op);
                } else if changed.grid.is_some() {
                    self.grid(to, node, *grid2);
                }
                self.args(to, args, from, args2, &mut changed)?;
            }
            (old, new) if old.is_alike(new) => {
                match (old, new) {
                    (Command::Write { size: old, .. }, Command::Write { size: new, .. })
                    | (Command::Read { size: old, .. }, Command::Read { size: new, .. }) => same_size(*old, *new)?,
                    (Command::Native { form: old, .. }, Command::Native { form: new, .. }) if old != new => {
                        let why =
                            "the native command given has other forms (enqueued, recorded), and these cannot change";
                        return Err(why.to_owned());
                    }
                    // Every kind is named: the compiler asks what of a new one cannot change.
                    (Command::Kernel { .. } | Command::Native { .. } | Command::Hint { .. }, _) => {}
                    (Command::Copy { .. } | Command::CopyRect(_) | Command::CopyImage(_), _) => {}
                    (Command::Fill { .. } | Command::Write { .. } | Command::Read { .. }, _) => {}
                    (Command::Empty | Command::Alloc(_) | Command::Free(_) | Command::SubGraph(_), _) => {}
                    (Command::Control(old), Command::Control(new)) => {
                        same_bodies(to, old.bodies, from, new.bodies)?;
                    }
                    (Command::Task(_) | Command::Event { .. } | Command::Control(_), _) => {}
                }
                let old = old.clone();
                // The memory of an allocation was placed at finalize.
                if !matches!(old, Command::Alloc(_) | Command::Free(_)) {
                    self.accesses(to, node, from, source, &mut changed)?;
                }
                let new =
                    new.translate(&mut Assignment { edit: self, to, from, node, old: &old, changed: &mut changed })?;
                if old != new {
                    self.command(to, node, new);
                    changed.command = true;
                }
                return Ok(changed);
            }
            (old, new) => {
                return Err(format!("it is {}, but {} was given", name(old), name(new)));
            }
        }
        self.accesses(to, node, from, source, &mut changed)?;
        Ok(changed)
    }

    /// Gives a kernel the values that parameters have in a node of other tables, which differs from it in nothing else.
    /// Returns `None` if the node is not a kernel.
    pub(crate) fn assign_values(
        &mut self,
        to: &mut Writer<'_>,
        node: NodeId,
        from: &Tables,
        source: NodeId,
        near: &mut usize,
    ) -> Option<Changed> {
        let (Command::Kernel { args, .. }, Command::Kernel { args: args2, .. }) =
            (to.ir.command(node), from.ir.command(source))
        else {
            return None;
        };
        let (args, args2) = (*args, *args2);
        let bindings = from.bindings_near(*near, args2);
        *near = bindings.end;
        let mut changed = Changed::default();
        for binding in &from.bindings[bindings] {
            let index = (binding.arg - args2.ends().0) as usize;
            let (Arg::Value(old), Arg::Value(new)) = (to.ir.args(args)[index], from.ir.args(args2)[index]) else {
                continue;
            };
            let new = from.ir.bytes(new);
            if to.ir.bytes(old) != new {
                self.bytes(to, old, new);
                changed.args.add(index);
            }
        }
        changed.only_values = !changed.args.is_empty();
        Some(changed)
    }

    /// Gives an argument that is memory the memory that an argument of other tables names. Returns whether it has changed.
    pub(crate) fn assign_memory(
        &mut self,
        to: &mut Writer<'_>,
        (args, index): (Span, usize),
        from: &Tables,
        view: ViewId,
    ) -> Result<bool, Mismatch> {
        let Arg::Memory(old) = to.ir.args(args)[index] else { return Err(OTHER_KIND.to_owned()) };
        let differs = !same_mem(to, old, from, view);
        if differs {
            let view = self.view(to, from, view)?;
            self.arg(to, args, index, Arg::Memory(view));
        }
        Ok(differs)
    }

    fn args(
        &mut self,
        to: &mut Writer<'_>,
        args: Span,
        from: &Tables,
        args2: Span,
        changed: &mut Changed,
    ) -> Result<(), Mismatch> {
        if args.len() != args2.len() {
            return Err(format!(
                "it has {} arguments, device globals and indirect allocations together, but the launch given has {}",
                args.len(),
                args2.len()
            ));
        }
        for index in 0..args.len() {
            let (old, new) = (to.ir.args(args)[index], from.ir.args(args2)[index]);
            let differs = match (old, new) {
                (Arg::Value(span), Arg::Value(span2)) => {
                    if span.len() != span2.len() {
                        let (old, new) = (span.len(), span2.len());
                        return Err(format!(
                            "argument {index} has {old} bytes, but the value given has {new}, and the size of a value \
                             cannot change"
                        ));
                    }
                    let differs = to.ir.bytes(span) != from.ir.bytes(span2);
                    if differs {
                        self.bytes(to, span, from.ir.bytes(span2));
                    }
                    differs
                }
                (Arg::Memory(view), Arg::Memory(view2)) => {
                    let differs = !same_mem(to, view, from, view2);
                    if differs {
                        let view = self.view(to, from, view2)?;
                        self.arg(to, args, index, Arg::Memory(view));
                    }
                    differs
                }
                (Arg::Global(view), Arg::Global(view2)) => {
                    if !same_mem(to, view, from, view2) {
                        return Err("the launch given uses other device globals".to_owned());
                    }
                    false
                }
                (Arg::Indirect(view), Arg::Indirect(view2)) => {
                    let differs = !same_mem(to, view, from, view2);
                    if differs {
                        let view = self.view(to, from, view2)?;
                        self.arg(to, args, index, Arg::Indirect(view));
                    }
                    differs
                }
                (Arg::Local(old), Arg::Local(new)) => {
                    if old != new {
                        self.arg(to, args, index, Arg::Local(new));
                    }
                    old != new
                }
                (Arg::Null(view), Arg::Null(view2)) => {
                    if !same_mem(to, view, from, view2) {
                        let view = self.view(to, from, view2)?;
                        self.arg(to, args, index, Arg::Null(view));
                    }
                    false
                }
                (Arg::Memory(view), Arg::Null(view2)) if !is_image(to, view) => {
                    let view = self.view(to, from, view2)?;
                    self.arg(to, args, index, Arg::Null(view));
                    true
                }
                (Arg::Null(_), Arg::Memory(view2)) if !is_image(from, view2) => {
                    let view = self.view(to, from, view2)?;
                    self.arg(to, args, index, Arg::Memory(view));
                    true
                }
                (Arg::Unused(_), Arg::Unused(_)) => false,
                (Arg::Sampler(old), Arg::Sampler(new)) => {
                    let (old, new) = (to.sampler_of(old), from.sampler_of(new));
                    let new = new.ok_or("its sampler no longer exists")?;
                    let differs = old != Some(new);
                    if differs {
                        let id = to.sampler(new).ok_or("the graph has too many samplers")?;
                        self.arg(to, args, index, Arg::Sampler(id));
                    }
                    differs
                }
                (old, new) => return Err(format!("argument {index} is {}, but {} was given", kind(old), kind(new))),
            };
            if differs {
                changed.args.add(index);
            }
        }
        Ok(())
    }

    fn accesses(
        &mut self,
        to: &mut Writer<'_>,
        node: NodeId,
        from: &Tables,
        source: NodeId,
        changed: &mut Changed,
    ) -> Result<(), Mismatch> {
        let (mut count, given) = (to.ir.accesses(node).len(), from.ir.accesses(source).len());
        if count != given {
            // Where bodies are nodes, or may use other memory than before, a branch or loop itself reads its condition.
            let (Command::Control(of), Command::Control(other)) = (to.ir.command(node), from.ir.command(source)) else {
                return Err(format!(
                    "it uses memory {count} times, but the command given uses memory {given} times, and this number cannot \
                     change"
                ));
            };
            count = usize::from(of.condition.is_some() && other.condition.is_some());
        }
        for slot in 0..count {
            let (old, new) = (&to.ir.accesses(node)[slot], &from.ir.accesses(source)[slot]);
            let same_range = old.range == new.range && old.mode == new.mode;
            if same_range && same_mem(to, old.view, from, new.view) {
                continue;
            }
            let access = Access { view: self.view(to, from, new.view)?, ..new.clone() };
            self.access(to, node, slot, access);
            changed.memory = true;
        }
        Ok(())
    }
}

/// Gives what a command refers to the values of a command of other tables. Memory gets the id that it has here; everything
/// else keeps its id, and what the id stands for changes.
struct Assignment<'a, 'w> {
    edit: &'a mut Edit,
    to: &'a mut Writer<'w>,
    from: &'a Tables,
    node: NodeId,
    /// The command that is changed, of the same kind.
    old: &'a Command<ById>,
    changed: &'a mut Changed,
}

/// The error if a command does not have what commands of its kind have, which cannot be.
const OTHER_KIND: &str = "it is of another kind";

impl<'a> Translate<'a, ById, ById> for Assignment<'_, '_> {
    type Error = Mismatch;

    fn mem(&mut self, mem: &'a ViewId) -> Result<ViewId, Mismatch> {
        // An executable that is in a graph twice has two views of its memory. A command names the one that the node's
        // accesses name: only these are counted, so another one may be released.
        let mut own = self.to.ir.accesses(self.node).iter().map(|access| access.view);
        match own.find(|view| same_mem(self.to, *view, self.from, *mem)) {
            Some(view) => Ok(view),
            None => self.edit.view(self.to, self.from, *mem),
        }
    }

    fn kernel(&mut self, _: &'a KernelId, _: &'a Span) -> Result<(KernelId, Span), Mismatch> {
        // The arguments of kernels are compared one by one: see `Edit::assign`.
        Err(OTHER_KIND.to_owned())
    }

    fn bytes(&mut self, bytes: &'a Span) -> Result<Span, Mismatch> {
        let Command::Fill { pattern, .. } = self.old else { return Err(OTHER_KIND.to_owned()) };
        let (pattern, new) = (*pattern, self.from.ir.bytes(*bytes));
        if pattern.len() != new.len() {
            return Err(format!(
                "its pattern has {} bytes, but the pattern given has {}, and the size of a pattern cannot change",
                pattern.len(),
                new.len()
            ));
        }
        if self.to.ir.bytes(pattern) != new {
            self.edit.bytes(self.to, pattern, new);
            self.changed.command = true;
        }
        Ok(pattern)
    }

    fn data(&mut self, data: &'a DataId, _: usize) -> Result<DataId, Mismatch> {
        let Command::Write { data: old, .. } = self.old else { return Err(OTHER_KIND.to_owned()) };
        let new = &self.from.data[data.index()];
        if !self.to.data[old.index()].is(new) {
            self.edit.data(self.to, *old, new.clone());
            self.changed.command = true;
        }
        Ok(*old)
    }

    fn output(&mut self, _: &'a ResultId, _: usize) -> Result<ResultId, Mismatch> {
        let Command::Read { output, .. } = self.old else { return Err(OTHER_KIND.to_owned()) };
        Ok(*output)
    }

    fn task(&mut self, task: &'a TaskId) -> Result<TaskId, Mismatch> {
        let Command::Task(old) = self.old else { return Err(OTHER_KIND.to_owned()) };
        let (mine, new) = (&self.to.tasks[old.index()], &self.from.tasks[task.index()]);
        if !mine.is(new) {
            let new = mine.replaced_by(new);
            self.edit.task(self.to, *old, new);
            self.changed.command = true;
        }
        Ok(*old)
    }

    fn event(&mut self, _: &'a ExternalId) -> Result<ExternalId, Mismatch> {
        let Command::Event { event, .. } = self.old else { return Err(OTHER_KIND.to_owned()) };
        Ok(*event)
    }

    fn native(&mut self, functions: &'a NativeId) -> Result<NativeId, Mismatch> {
        let Command::Native { functions: old, .. } = self.old else { return Err(OTHER_KIND.to_owned()) };
        let new = &self.from.natives[functions.index()];
        if !self.to.natives[old.index()].is(new) {
            self.edit.native(self.to, *old, new.clone());
            self.changed.command = true;
        }
        Ok(*old)
    }

    fn executable(&mut self, _: &'a ChildId) -> Result<ChildId, Mismatch> {
        Err(OTHER_KIND.to_owned())
    }

    /// The bodies stay, and their nodes get their values one by one.
    fn bodies(&mut self, _: &'a Span) -> Result<Span, Mismatch> {
        let Command::Control(old) = self.old else { return Err(OTHER_KIND.to_owned()) };
        Ok(old.bodies)
    }

    fn alloc(&mut self, alloc: &'a AllocId) -> Result<AllocId, Mismatch> {
        let (Command::Alloc(old) | Command::Free(old)) = self.old else { return Err(OTHER_KIND.to_owned()) };
        let decl = |ir: &Ir, alloc: AllocId| ir.allocs.get(alloc.index()).map(|decl| (decl.size, decl.zero));
        if old != alloc {
            return Err(format!("it is allocation {} of the graph, but allocation {} was given", old.0, alloc.0));
        }
        let decls = decl(&self.to.ir, *old).zip(decl(&self.from.ir, *alloc));
        let ((old_size, was_zero), (size, zero)) = decls.ok_or("one of the two graphs does not have its allocation")?;
        if old_size != size {
            return Err(format!(
                "its allocation has {old_size} bytes, but the allocation given has {size}, and the size cannot change"
            ));
        }
        if was_zero != zero {
            let content = |zero| if zero { "filled with zeros" } else { "undefined" };
            return Err(format!(
                "its allocation is {} at finalize, but the allocation given is {}, and this cannot change",
                content(was_zero),
                content(zero)
            ));
        }
        Ok(*old)
    }
}

/// The launch that a node gets, if it belongs to a command group of which another launch is active now: the group, the
/// index of the launch, and the launch.
fn other_launch(
    to: &Writer<'_>,
    node: NodeId,
    from: &Tables,
    source: NodeId,
) -> Result<Option<(usize, usize, Command<ById>)>, Mismatch> {
    let group = |tables: &Tables, node: NodeId| tables.group_of.get(&node).copied();
    match (group(to, node), group(from, source)) {
        (None, None) => Ok(None),
        (Some(mine), Some(theirs)) if to.groups[mine].is(&from.groups[theirs]) => {
            let active = from.groups[theirs].active;
            let launch = to.groups[mine].alternatives.get(active).filter(|_| to.groups[mine].active != active);
            Ok(launch.map(|launch| (mine, active, launch.command.clone())))
        }
        _ => Err("it does not belong to the same command group".to_owned()),
    }
}

/// The kind of an argument, for error texts.
fn kind(arg: Arg<ById>) -> &'static str {
    match arg {
        Arg::Value(_) => "a value",
        Arg::Memory(_) => "a buffer or an image",
        Arg::Null(_) => "a null buffer",
        Arg::Sampler(_) => "a sampler",
        Arg::Local(_) => "local memory",
        Arg::Global(_) => "a device global",
        Arg::Indirect(_) => "memory that is accessed indirectly",
        Arg::Unused(_) => "memory that is not used",
    }
}

/// The name of a node, for error texts.
pub(in crate::graph) fn name(op: &Command<ById>) -> String {
    if let Command::CopyImage(copy) = op {
        let side = |side: &Pixels<_>| if matches!(side, Pixels::Image(..)) { "an image" } else { "a buffer" };
        return format!("a copy of pixels from {} to {}", side(&copy.src), side(&copy.dst));
    }
    let kind = crate::handles::NodeKind::of(op).to_string();
    format!("{} {kind}", if kind.starts_with(['a', 'e']) { "an" } else { "a" })
}

fn same_mem(to: &Tables, a: ViewId, from: &Tables, b: ViewId) -> bool {
    let (Some(mine), Some(theirs)) = (to.mem(a), from.mem(b)) else { return to.is_nothing(a) && from.is_nothing(b) };
    // Memory that a graph owns is different memory in each executable.
    if theirs.graph_allocation().is_some() && to.placed.is_some() {
        return to.placed(theirs) == Some(a);
    }
    mine.id() == theirs.id()
}

fn is_image(tables: &Tables, view: ViewId) -> bool {
    matches!(tables.ir.views[view.index()].kind, ViewKind::Image | ViewKind::ImageOfBuffer)
}

/// Bodies stay, and their nodes get their values one by one.
fn same_bodies(to: &Tables, old: Span, from: &Tables, new: Span) -> Result<(), Mismatch> {
    let (mine, new) = (old.of(&to.ir.bodies), new.of(&from.ir.bodies));
    if mine.len() != new.len() {
        let (mine, new) = (mine.len(), new.len());
        return Err(format!("its number of bodies is {mine}, but {new} were given, and this number cannot change"));
    }
    let id = |tables: &Tables, child: ChildId| tables.children.get(child.index()).map(|child| child.of.id());
    for (index, pair) in mine.iter().zip(new).enumerate() {
        let (Body::Executable(mine), Body::Executable(new)) = pair else { continue };
        if id(to, *mine) != id(from, *new) {
            return Err(format!(
                "body {index} is another executable: give the same executable, whose values may have changed"
            ));
        }
    }
    Ok(())
}

fn same_size(old: usize, new: usize) -> Result<(), Mismatch> {
    if old == new {
        return Ok(());
    }
    Err(format!(
        "it transfers {old} bytes, but the transfer given has {new} bytes, and the size of a result or an input cannot \
         change"
    ))
}
