//! Edits of tables that can be rolled back: existing nodes get the values of other nodes. Edges never change.

use crate::graph::edit::undo::Edit;
use crate::graph::tables::{Tables, Writer};
use crate::ir::{Access, AllocId, Arg, Grid, Ir, Location, NodeId, Op, Pixels, Span, ViewId, ViewKind};

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
    pub(crate) fn settable(self, args: &[Arg]) -> impl Iterator<Item = usize> {
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
        } else if from.ir.views[view.index()].kind == ViewKind::Placed {
            to.placed_elsewhere(mem, from.ir.views[view.index()])
        } else {
            to.view(mem)
        };
        self.named(view);
        Ok(view)
    }

    fn place(&mut self, to: &mut Writer<'_>, from: &Tables, of: &Location) -> Result<Location, Mismatch> {
        Ok(Location { view: self.view(to, from, of.view)?, offset: of.offset })
    }

    fn pixels(&mut self, to: &mut Writer<'_>, from: &Tables, of: &Pixels) -> Result<Pixels, Mismatch> {
        Ok(match of {
            Pixels::Image(view, origin) => Pixels::Image(self.view(to, from, *view)?, *origin),
            Pixels::Buffer(place) => Pixels::Buffer(self.place(to, from, place)?),
        })
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
        match (to.ir.op(node), from.ir.op(source)) {
            (Op::Empty, Op::Empty) => return Ok(changed),
            (Op::Event { signals, .. }, Op::Event { signals: signals2, .. }) if signals == signals2 => {
                return Ok(changed);
            }
            // Allocations of a sub-graph were placed when the sub-graph was finalized.
            (Op::Empty, Op::Alloc(_) | Op::Free(_)) if from.placed.is_some() => return Ok(changed),
            (Op::Alloc(mine), Op::Alloc(theirs)) | (Op::Free(mine), Op::Free(theirs)) if mine == theirs => {
                let decl = |ir: &Ir, alloc: AllocId| ir.allocs.get(alloc.index()).map(|decl| (decl.size, decl.zero));
                let (Some((old, was_zero)), Some((new, zero))) = (decl(&to.ir, *mine), decl(&from.ir, *theirs)) else {
                    return Err("one of the two graphs does not have its allocation".to_owned());
                };
                if old != new {
                    return Err(format!(
                        "its allocation has {old} bytes, but the allocation given has {new}, and the size cannot change"
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
                return Ok(changed);
            }
            (
                Op::Kernel { kernel, args, .. },
                Op::Kernel { kernel: kernel2, args: args2, grid: grid2, bound: bound2, prints: prints2 },
            ) => {
                let (mut kernel, mut args, args2) = (*kernel, *args, *args2);
                if let Some((group, index, active)) = other_launch(to, node, from, source)? {
                    // The equal parts of the two launches are compared below.
                    let Op::Kernel { kernel: other, args: theirs, .. } = &active else {
                        return Err("its command group does not consist of kernels".to_owned());
                    };
                    (kernel, args) = (*other, *theirs);
                    self.op(to, node, active);
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
                let Op::Kernel { grid, bound, prints, .. } = to.ir.op(node) else { return Ok(changed) };
                if grid.dims != grid2.dims {
                    return Err(format!(
                        "the number of dimensions of its range cannot change: it is {}, and {} was given",
                        grid.dims, grid2.dims
                    ));
                }
                changed.grid = (grid != grid2).then(|| Box::new(*grid));
                if bound != bound2 || prints != prints2 {
                    let op = Op::Kernel { kernel, args, grid: *grid2, bound: bound2.clone(), prints: *prints2 };
                    self.op(to, node, op);
                } else if changed.grid.is_some() {
                    self.grid(to, node, *grid2);
                }
                self.args(to, args, from, args2, &mut changed)?;
            }
            (Op::Copy { src, dst, size }, Op::Copy { src: src2, dst: dst2, size: size2 }) => {
                let same = size == size2 && same_place(to, src, from, src2) && same_place(to, dst, from, dst2);
                if !same {
                    let op =
                        Op::Copy { src: self.place(to, from, src2)?, dst: self.place(to, from, dst2)?, size: *size2 };
                    self.op(to, node, op);
                    changed.command = true;
                }
            }
            (Op::CopyRect(rect), Op::CopyRect(rect2)) => {
                let (old, mut new) = (rect.clone(), rect2.clone());
                (new.src, new.dst) = (self.view(to, from, rect2.src)?, self.view(to, from, rect2.dst)?);
                if old != new {
                    self.op(to, node, Op::CopyRect(new));
                    changed.command = true;
                }
            }
            (Op::CopyImage(copy), Op::CopyImage(copy2)) if copy.is_alike(copy2) => {
                let (old, mut new) = (copy.clone(), copy2.clone());
                new.src = self.pixels(to, from, &copy2.src)?;
                new.dst = self.pixels(to, from, &copy2.dst)?;
                if old != new {
                    self.op(to, node, Op::CopyImage(new));
                    changed.command = true;
                }
            }
            (
                Op::Fill { dst, size, pattern, area },
                Op::Fill { dst: dst2, size: size2, pattern: pattern2, area: area2 },
            ) if area.is_some() == area2.is_some() => {
                let (pattern, new) = (*pattern, from.ir.bytes(*pattern2));
                if pattern.len() != new.len() {
                    return Err(format!(
                        "its pattern has {} bytes, but the pattern given has {}, and the size of a pattern cannot \
                         change",
                        pattern.len(),
                        new.len()
                    ));
                }
                if size != size2 || area != area2 || !same_place(to, dst, from, dst2) {
                    let dst = self.place(to, from, dst2)?;
                    let op = Op::Fill { dst, size: *size2, pattern, area: area2.clone() };
                    self.op(to, node, op);
                    changed.command = true;
                }
                if to.ir.bytes(pattern) != new {
                    self.bytes(to, pattern, new);
                    changed.command = true;
                }
            }
            (Op::Write { dst, size, data, area }, Op::Write { dst: dst2, size: size2, data: data2, area: area2 })
                if area.is_some() == area2.is_some() =>
            {
                same_size(*size, *size2)?;
                let (data, new) = (*data, &from.data[data2.index()]);
                if area != area2 || !same_place(to, dst, from, dst2) {
                    let dst = self.place(to, from, dst2)?;
                    let op = Op::Write { dst, size: *size2, data, area: area2.clone() };
                    self.op(to, node, op);
                    changed.command = true;
                }
                if !to.data[data.index()].is(new) {
                    self.data(to, data, new.clone());
                    changed.command = true;
                }
            }
            (Op::Read { src, size, result, area }, Op::Read { src: src2, size: size2, area: area2, .. })
                if area.is_some() == area2.is_some() =>
            {
                same_size(*size, *size2)?;
                let result = *result;
                if area != area2 || !same_place(to, src, from, src2) {
                    let src = self.place(to, from, src2)?;
                    let op = Op::Read { src, size: *size2, result, area: area2.clone() };
                    self.op(to, node, op);
                    changed.command = true;
                }
            }
            (Op::Task(task), Op::Task(task2)) => {
                let (task, new) = (*task, &from.tasks[task2.index()]);
                if !to.tasks[task.index()].is(new) {
                    let new = to.tasks[task.index()].replaced_by(new);
                    self.task(to, task, new);
                    changed.command = true;
                }
            }
            (Op::Native { command, form }, Op::Native { command: command2, form: form2 }) => {
                if form != form2 {
                    let why = "the native command given has other forms (enqueued, recorded), and these cannot change";
                    return Err(why.to_owned());
                }
                let (command, new) = (*command, &from.natives[command2.index()]);
                if !to.natives[command.index()].is(new) {
                    self.native(to, command, new.clone());
                    changed.command = true;
                }
            }
            (Op::Hint { of, size, hint }, Op::Hint { of: of2, size: size2, hint: hint2 }) => {
                if size != size2 || hint != hint2 || !same_place(to, of, from, of2) {
                    let op = Op::Hint { of: self.place(to, from, of2)?, size: *size2, hint: *hint2 };
                    self.op(to, node, op);
                    changed.command = true;
                }
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
        let (Op::Kernel { args, .. }, Op::Kernel { args: args2, .. }) = (to.ir.op(node), from.ir.op(source)) else {
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
                (Arg::Buffer(view), Arg::Buffer(view2)) => {
                    let differs = !same_mem(to, view, from, view2);
                    if differs {
                        let view = self.view(to, from, view2)?;
                        self.arg(to, args, index, Arg::Buffer(view));
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
                (Arg::Buffer(view), Arg::Null(view2)) if !is_image(to, view) => {
                    let view = self.view(to, from, view2)?;
                    self.arg(to, args, index, Arg::Null(view));
                    true
                }
                (Arg::Null(_), Arg::Buffer(view2)) if !is_image(from, view2) => {
                    let view = self.view(to, from, view2)?;
                    self.arg(to, args, index, Arg::Buffer(view));
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
        let count = to.ir.accesses(node).len();
        if count != from.ir.accesses(source).len() {
            return Err(format!(
                "it uses memory {count} times, but the command given uses memory {} times, and this number cannot \
                 change",
                from.ir.accesses(source).len()
            ));
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

/// The launch that a node gets, if it belongs to a command group of which another launch is active now: the group, the
/// index of the launch, and the launch.
fn other_launch(
    to: &Writer<'_>,
    node: NodeId,
    from: &Tables,
    source: NodeId,
) -> Result<Option<(usize, usize, Op)>, Mismatch> {
    let group = |tables: &Tables, node: NodeId| tables.group_of.get(&node).copied();
    match (group(to, node), group(from, source)) {
        (None, None) => Ok(None),
        (Some(mine), Some(theirs)) if to.groups[mine].is(&from.groups[theirs]) => {
            let active = from.groups[theirs].active;
            let launch = to.groups[mine].alternatives.get(active).filter(|_| to.groups[mine].active != active);
            Ok(launch.map(|launch| (mine, active, launch.op.clone())))
        }
        _ => Err("it does not belong to the same command group".to_owned()),
    }
}

/// The kind of an argument, for error texts.
fn kind(arg: Arg) -> &'static str {
    match arg {
        Arg::Value(_) => "a value",
        Arg::Buffer(_) => "a buffer or an image",
        Arg::Null(_) => "a null buffer",
        Arg::Sampler(_) => "a sampler",
        Arg::Local(_) => "local memory",
        Arg::Global(_) => "a device global",
        Arg::Indirect(_) => "memory that is accessed indirectly",
        Arg::Unused(_) => "memory that is not used",
    }
}

/// The name of a node, for error texts.
pub(in crate::graph) fn name(op: &Op) -> String {
    if let Op::CopyImage(copy) = op {
        let side = |side: &Pixels| if matches!(side, Pixels::Image(..)) { "an image" } else { "a buffer" };
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

fn same_place(to: &Writer<'_>, a: &Location, from: &Tables, b: &Location) -> bool {
    a.offset == b.offset && same_mem(to, a.view, from, b.view)
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
