//! Command groups of launches: several launches for one node, of which one is active. Groups of host tasks are in
//! [`task_group`](crate::graph::nodes::task_group).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cl::memory::untyped::Mem;
use crate::command::{Arg, Command, Grid};
use crate::error::{BuildCause, BuildError, GroupError, Result};
use crate::graph::edit::assign;
use crate::graph::nodes::kernel::KernelNode;
use crate::graph::nodes::launch::{Checked, Launch};
use crate::graph::nodes::request::{Request, Target};
use crate::graph::nodes::task_group::TaskGroup;
use crate::graph::tables::Tables;
use crate::graph::writer::Writer;
use crate::graph::{After, Graph, GraphRef, State, after_methods};
use crate::handles::Node;
use crate::ir::{Access, ById, Mode, NodeId, Span, View, ViewId, ViewKind};

/// Several launches, or several host tasks ([`Graph::host_task_group`]), for one node, of which one is active.
///
/// SYCL graphs call this a dynamic command group. At first the first launch is active.
/// [`set_active_index`](Self::set_active_index) chooses another one for all nodes of the group at once; executables get
/// the change when they are updated.
///
/// All launches have the same memory accesses, so that edges need not change. They may differ in kernel, in values, and
/// in the number of dimensions. One launch may have a null pointer where another has memory: nodes of the group then
/// wait as if it had that memory too. Launches may use [`Parameter`](crate::Parameter)s. [`Graph::set_nd_range`] of one
/// node changes the range of the active launch, in all nodes of the group.
///
/// A group belongs to its graph, and does not keep the graph alive. Cloning a group is cheap, and clones are the same
/// group.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// use clgraph::{Buffer, Finalize, Graph, Program, Queue};
/// let queue = Queue::new(&clgraph::best_device()?)?;
/// let source = "kernel void twice(global int *a) { a[get_global_id(0)] *= 2; }
///               kernel void minus(global int *a) { a[get_global_id(0)] -= 1; }";
/// let program = Program::from_source(&queue, source)?;
/// let numbers = Buffer::<i32>::new(&queue, 2)?;
/// let graph = Graph::new(&queue)?;
/// graph.write(&numbers, [1, 5]).add()?;
/// let (twice, minus) = (program.kernel("twice")?, program.kernel("minus")?);
/// let launches = [&twice, &minus].map(|kernel| graph.kernel(kernel).read_write(&numbers).range(2));
/// // SAFETY: a work-item of either kernel touches its own element.
/// let group = unsafe { graph.command_group(launches)? };
/// let node = graph.command_group_node(&group).add()?;
/// let result = graph.read(&numbers).add()?;
///
/// let executable = graph.finalize(Finalize::new().updatable())?;
/// for (active, expected) in [(0, [2, 10]), (1, [0, 4])] {
///     group.set_active_index(active)?;
///     executable.update(&node)?;
///     let run = executable.submit(&queue)?;
///     run.wait()?;
///     assert_eq!(*run.get(&result)?, expected);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "dynamic_command_group")]
#[must_use = "a group does nothing until a node of it is added: see `Graph::command_group_node`"]
pub struct CommandGroup {
    graph: GraphRef,
    which: Which,
}

/// Which table a group is in, and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::graph) enum Which {
    Launches(usize),
    Tasks(usize),
}

/// A group in a graph's tables.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// A number that no other group of any graph has.
    id: u64,
    pub(in crate::graph) alternatives: Vec<Alternative>,
    pub(in crate::graph) active: usize,
    pub(in crate::graph) nodes: Vec<NodeId>,
}

#[derive(Clone, Debug)]
pub(crate) struct Alternative {
    /// The launch of a kernel.
    pub(in crate::graph) command: Command<ById>,
    /// How the launch uses its buffers, in the order of its buffer arguments.
    pub(in crate::graph) uses: Vec<ArgumentUse>,
}

/// A use of the buffer that an argument names, whichever buffer that is at the moment.
#[derive(Clone, Debug)]
pub(crate) struct ArgumentUse {
    mode: Mode,
    /// In bytes from the start of the buffer or sub-buffer.
    range: Range<usize>,
}

impl ArgumentUse {
    fn of(tables: &Tables, access: &Access) -> Self {
        let start = tables.mem(access.view).map_or(0, Mem::offset_in_root);
        Self { mode: access.mode, range: access.range.start - start..access.range.end - start }
    }
}

impl Alternative {
    /// How the launch uses its memory.
    pub(in crate::graph) fn modes(&self) -> impl Iterator<Item = Mode> {
        self.uses.iter().map(|of| of.mode)
    }
}

impl Group {
    pub(in crate::graph) fn like(other: &Self, alternatives: Vec<Alternative>) -> Self {
        Self { id: other.id, alternatives, active: other.active, nodes: Vec::new() }
    }

    pub(in crate::graph) fn is(&self, other: &Self) -> bool {
        self.id == other.id && self.alternatives.len() == other.alternatives.len()
    }

    /// How the active launch uses its memory.
    pub(in crate::graph) fn modes(&self) -> impl Iterator<Item = Mode> {
        self.alternatives.get(self.active).into_iter().flat_map(Alternative::modes)
    }

    /// Changes the bytes that the active launch uses of some of its memory.
    pub(in crate::graph) fn set_use(&mut self, slot: usize, range: Range<usize>) {
        if let Some(of) = self.alternatives.get_mut(self.active).and_then(|active| active.uses.get_mut(slot)) {
            of.range = range;
        }
    }
}

/// A node of a command group to be added. See [`Graph::command_group_node`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct GroupNode<'g> {
    graph: &'g Graph,
    after: After,
    group: CommandGroup,
}

impl Graph {
    /// Makes a group of launches, which can then be added as one node or several. Launches must have no `after` or
    /// `label`: the node has them.
    ///
    /// Launches are checked in the order given.
    ///
    /// # Errors
    /// Those of [`KernelNode::add`] for each launch; the error names the launch by its number, from 0.
    /// [`GroupError::Empty`] for an empty list, [`GroupError::Options`] for a launch with `after` or `label`,
    /// and [`GroupError::Accesses`] for launches whose memory accesses differ.
    ///
    /// # Safety
    /// As [`KernelNode::add`], for every launch.
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn command_group<'g>(&self, launches: impl IntoIterator<Item = KernelNode<'g>>) -> Result<CommandGroup> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut launches: Vec<(Launch, After)> = launches
            .into_iter()
            .map(|node| {
                let (mut launch, after) = node.into_parts();
                launch.resolve();
                (launch, after)
            })
            .collect();
        let fail = |at: usize, cause| BuildError::new(format!("launch {at} of a command group"), cause);
        let what = "launch";
        if launches.is_empty() {
            return Err(BuildError::new("command group", GroupError::Empty { what }).into());
        }
        let mut checked = Vec::new();
        for (at, (launch, after)) in launches.iter().enumerate() {
            if after.waits() || after.label.is_some() {
                return Err(fail(at, GroupError::Options { what }.into()).into());
            }
            checked.push(launch.check(&self.target()).map_err(|cause| fail(at, cause))?);
        }
        as_many_uses(&mut launches, &checked);
        let mut state = self.lock();
        let State { tables, index, .. } = &mut *state;
        let tables = Arc::make_mut(tables);
        let mark = tables.ir.mark();
        let mut to = Writer { tables, index };
        let (mut alternatives, mut all) = (Vec::new(), Vec::<Vec<Access>>::new());
        let mut wrong = None;
        for (at, ((launch, _), checked)) in launches.into_iter().zip(checked).enumerate() {
            let mut accesses = Vec::new();
            let command = launch.lower(checked, &mut to, &mut accesses);
            all.push(accesses);
            let Some(command) = command else {
                wrong = Some((at, crate::graph::full()));
                break;
            };
            let uses = all[at].iter().map(|access| ArgumentUse::of(&to, access)).collect();
            alternatives.push(Alternative { command, uses });
        }
        if wrong.is_none() && !stand_in(&mut to, &mut alternatives, &all) {
            let differs = (1..all.len()).find(|at| !same_accesses(&all[0], &all[*at], &to.ir.views));
            wrong = Some((differs.unwrap_or(0), GroupError::Accesses { what }.into()));
        }
        // A group has no accesses of its own, so these are released. The views that arguments name stay.
        let views: Vec<ViewId> = all.iter().flatten().map(|access| access.view).collect();
        views.iter().for_each(|view| to.release(*view));
        if let Some((at, cause)) = wrong {
            for alternative in &alternatives {
                to.release_args(&alternative.command);
            }
            to.tables.rewind(mark);
            let dropped = state.dropped();
            drop(state);
            drop(dropped);
            return Err(fail(at, cause).into());
        }
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        to.tables.groups.push(Group { id, alternatives, active: 0, nodes: Vec::new() });
        Ok(CommandGroup::new(self.weak(), Which::Launches(to.tables.groups.len() - 1)))
    }

    /// Starts a node of a command group. A group may have several nodes, which share the active launch.
    pub fn command_group_node(&self, group: &CommandGroup) -> GroupNode<'_> {
        GroupNode { graph: self, after: After::default(), group: group.clone() }
    }
}

/// Gives all launches the same number of uses of memory, because the number of uses of a node cannot change. Uses of
/// foreign memory may differ between launches.
fn as_many_uses(launches: &mut [(Launch, After)], checked: &[Checked]) {
    let both = || launches.iter().zip(checked);
    let uses: Vec<usize> = both().map(|((launch, _), checked)| launch.uses(checked)).collect();
    let most = uses.iter().max().copied().unwrap_or(0);
    for ((launch, _), uses) in launches.iter_mut().zip(&uses) {
        launch.unused = most - uses;
    }
}

/// Gives the null pointers of a launch the uses that other launches have there, so that all launches have the same
/// uses, whichever is active. Returns whether all have the same.
fn stand_in(to: &mut Writer<'_>, alternatives: &mut [Alternative], all: &[Vec<Access>]) -> bool {
    let key = |access: &Access| (access.view, access.range.start, access.range.end, access.mode as u8);
    let with_edges = |of: &[Access]| {
        let makes_edges = |access: &&Access| makes_edges(access, &to.ir.views);
        let mut all: Vec<Access> = of.iter().filter(makes_edges).cloned().collect();
        all.sort_unstable_by_key(key);
        all
    };
    // The accesses of one list that are not in the other. Both lists are sorted, and each access counts as often as it
    // is there.
    let lacks = |of: &[Access], has: &[Access]| {
        let mut has = has.iter().peekable();
        let is_missing = |access: &&Access| {
            while has.next_if(|one| key(one) < key(access)).is_some() {}
            has.next_if(|one| key(one) == key(access)).is_none()
        };
        of.iter().filter(is_missing).cloned().collect::<Vec<_>>()
    };
    let uses: Vec<Vec<Access>> = all.iter().map(|of| with_edges(of)).collect();
    let mut every = Vec::new();
    for of in &uses {
        every.extend(lacks(of, &every));
        every.sort_unstable_by_key(key);
    }
    for (alternative, uses) in alternatives.iter_mut().zip(&uses) {
        let Command::Kernel { args, .. } = &alternative.command else { continue };
        let mut missing = lacks(&every, uses).into_iter();
        let with_use = to.ir.args(*args).to_vec().into_iter().enumerate().filter(|(_, arg)| arg.view().is_some());
        for (slot, (index, arg)) in with_use.enumerate() {
            let Some(access) = matches!(arg, Arg::Null(_)).then(|| missing.next()).flatten() else { continue };
            to.keep(access.view);
            to.tables.ir.args_mut(*args)[index] = Arg::Null(access.view);
            if let Some(of) = alternative.uses.get_mut(slot) {
                *of = ArgumentUse::of(to, &access);
            }
        }
        if missing.next().is_some() {
            return false;
        }
    }
    true
}

/// The owner of a launch.
#[derive(Clone, Copy, Debug)]
pub(in crate::graph) enum Launched {
    ByNode(NodeId),
    /// The active launch of a group, for all nodes of the group.
    ByGroup(usize),
}

/// Whether the use makes edges. Foreign memory and no memory do not.
fn makes_edges(access: &Access, views: &[View]) -> bool {
    !matches!(views[access.view.index()].kind, ViewKind::Foreign | ViewKind::Nothing)
}

/// Whether both lists use the same bytes in the same way, in any order. Foreign memory makes no edges, so it may
/// differ.
pub(in crate::graph) fn same_accesses(a: &[Access], b: &[Access], views: &[View]) -> bool {
    let sorted = |accesses: &[Access]| {
        let mut keys: Vec<_> = accesses
            .iter()
            .filter(|access| makes_edges(access, views))
            .map(|access| (access.view, access.range.start, access.range.end, access.mode as u8))
            .collect();
        keys.sort_unstable();
        keys
    };
    sorted(a) == sorted(b)
}

impl GroupNode<'_> {
    after_methods!();

    /// Adds the node.
    ///
    /// # Errors
    /// [`GroupError::OtherGraph`] for a group of another graph; the errors of the values that its parameters have by
    /// now; and those of [`EmptyNode::add`](crate::graph::EmptyNode::add).
    pub fn add(self) -> Result<Node> {
        Ok(self.graph.insert(Member(self.group), &self.after)?)
    }
}

/// A node of a group, as a request.
#[derive(Clone, Debug)]
pub(crate) struct Member(pub(crate) CommandGroup);

impl Request for Member {
    type Checked = ();

    fn subject(&self) -> String {
        "command group".to_owned()
    }

    fn check(&self, _: &Target<'_>) -> Result<(), BuildCause> {
        Ok(())
    }

    fn prepare(&self, graph: &Graph, state: &mut State) -> Result<(), BuildCause> {
        if self.0.graph.is_of(graph.id()) {
            return match self.0.which {
                Which::Launches(group) => state.refresh_group(&graph.target(), group),
                Which::Tasks(_) => Ok(()),
            };
        }
        Err(GroupError::OtherGraph.into())
    }

    fn lower(self, (): (), state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        let index = match self.0.which {
            Which::Launches(index) => index,
            Which::Tasks(index) => return Self::lower_task(index, state, accesses),
        };
        let node = NodeId(state.ir.len() as u32);
        let group = state.groups.get_mut(index)?;
        group.nodes.push(node);
        let active = group.alternatives.get(group.active)?.clone();
        state.group_of.insert(node, index);
        let now = state.accesses_of(&active);
        now.iter().for_each(|access| state.keep(access.view));
        accesses.extend(now);
        Some(active.command)
    }
}

impl CommandGroup {
    pub(in crate::graph) fn new(graph: GraphRef, which: Which) -> Self {
        Self { graph, which }
    }

    fn graph(&self) -> Result<Graph, BuildError> {
        self.graph.upgrade().ok_or_else(|| BuildError::new("command group", GroupError::GraphGone))
    }

    /// Makes another launch, or host task, the active one, in all nodes of the group. Choosing the active one again is
    /// allowed.
    ///
    /// # Errors
    /// [`GroupError::Index`] for an index that is out of range, and [`GroupError::GraphGone`] when the graph is
    /// gone. After an error nothing has changed.
    pub fn set_active_index(&self, index: usize) -> Result<()> {
        let graph = self.graph()?;
        let mut state = graph.lock();
        let (what, count) = match self.which {
            Which::Launches(group) => ("launch", state.groups.get(group).map_or(0, |group| group.alternatives.len())),
            Which::Tasks(group) => ("host task", state.task_groups.get(group).map_or(0, TaskGroup::len)),
        };
        if index >= count {
            return Err(BuildError::new("command group", GroupError::Index { what, index, count }).into());
        }
        match self.which {
            Which::Launches(group) => state.activate(group, index),
            Which::Tasks(group) => Arc::make_mut(&mut state.tables).activate_task(group, index),
        }
        let dropped = state.dropped();
        drop(state);
        drop(dropped);
        Ok(())
    }

    /// Returns the index of the active launch, or host task.
    ///
    /// # Errors
    /// [`GroupError::GraphGone`] when the graph is gone.
    pub fn active_index(&self) -> Result<usize> {
        let graph = self.graph()?;
        let state = graph.lock();
        Ok(match self.which {
            Which::Launches(group) => state.groups.get(group).map_or(0, |group| group.active),
            Which::Tasks(group) => state.task_groups.get(group).map_or(0, |group| group.active),
        })
    }
}

impl PartialEq for CommandGroup {
    fn eq(&self, other: &Self) -> bool {
        self.graph == other.graph && self.which == other.which
    }
}

impl Eq for CommandGroup {}

impl State {
    /// Copies the values of parameters into the active launch of a group.
    pub(in crate::graph) fn refresh_group(&mut self, target: &Target<'_>, group: usize) -> Result<(), BuildCause> {
        let of = self.groups.get(group);
        let active = of.and_then(|of| of.alternatives.get(of.active)).map(|active| &active.command);
        let Some(Command::Kernel { kernel, args, .. }) = active else { return Ok(()) };
        self.refresh_args(target, Launched::ByGroup(group), *kernel, *args)
    }

    fn activate(&mut self, group: usize, active: usize) {
        let Self { tables, index, .. } = self;
        let mut to = Writer { tables: Arc::make_mut(tables), index };
        let Some(of) = to.groups.get_mut(group).filter(|of| of.active != active) else { return };
        of.active = active;
        let Some(alternative) = of.alternatives.get(active).cloned() else { return };
        let nodes = of.nodes.clone();
        let now = to.accesses_of(&alternative);
        for node in nodes {
            *to.tables.ir.command_mut(node) = alternative.command.clone();
            for (slot, access) in now.iter().enumerate() {
                to.keep(access.view);
                let old = std::mem::replace(&mut to.tables.ir.accesses_mut(node)[slot], access.clone());
                to.release(old.view);
            }
        }
    }

    /// Updates the accesses of a node to those of its active launch, whose arguments may have got other memory through
    /// another node of the group.
    pub(in crate::graph) fn sync_group(&mut self, node: NodeId) {
        let Some(group) = self.group_of.get(&node).and_then(|group| self.groups.get(*group)) else { return };
        let Some(alternative) = group.alternatives.get(group.active) else { return };
        let now = self.accesses_of(alternative);
        if now == self.ir.accesses(node) {
            return;
        }
        let Self { tables, index, .. } = self;
        let mut to = Writer { tables: Arc::make_mut(tables), index };
        for (slot, access) in now.into_iter().enumerate() {
            to.keep(access.view);
            let old = std::mem::replace(&mut to.tables.ir.accesses_mut(node)[slot], access);
            to.release(old.view);
        }
        to.tables.moved = true;
    }

    /// Gives a kernel another range. If its node has a group, the active launch and all nodes of the group get the
    /// range.
    pub(in crate::graph) fn set_grid(&mut self, node: NodeId, new: Grid) {
        *Arc::make_mut(&mut self.reshaped).entry(node).or_default() += 1;
        let Tables { ir, groups, group_of, .. } = Arc::make_mut(&mut self.tables);
        let group = group_of.get(&node).and_then(|group| groups.get_mut(*group));
        let nodes = match group {
            Some(group) => {
                let active = group.active;
                if let Some(Command::Kernel { grid, .. }) = group.alternatives.get_mut(active).map(|of| &mut of.command)
                {
                    *grid = new;
                }
                group.nodes.as_slice()
            }
            None => &[node],
        };
        for node in nodes {
            if let Some(grid) = ir.grid_mut(*node) {
                *grid = new;
            }
        }
    }

    /// Checks that a node is not a node of a group.
    pub(in crate::graph) fn check_no_group(&self, node: Node) -> Result<(), BuildCause> {
        if !self.group_of.contains_key(&node.id()) && !self.is_in_task_group(node.id()) {
            return Ok(());
        }
        let is = format!("{} of a command group", assign::name(self.ir.command(node.id())));
        let why = "choose the active command of the group by `CommandGroup::set_active_index` instead";
        Err(BuildCause::OtherKind { node, is, given: "another command".to_owned(), why })
    }
}

impl Tables {
    /// Gives each node of a group a group of its own, so that it can be updated alone. Returns `None` when a table is
    /// full.
    pub(crate) fn split_groups(&mut self) -> Option<()> {
        for at in 0..self.groups.len() {
            let own = &mut self.groups[at].nodes;
            let nodes = own.split_off(own.len().min(1));
            for node in nodes {
                let mut alternatives = self.groups[at].alternatives.clone();
                for alternative in &mut alternatives {
                    if let Command::Kernel { args, .. } = &mut alternative.command {
                        *args = self.copy_args(*args)?;
                    }
                }
                let mut group = Group::like(&self.groups[at], alternatives);
                group.nodes.push(node);
                if let Some(active) = group.alternatives.get(group.active) {
                    *self.ir.command_mut(node) = active.command.clone();
                }
                self.group_of.insert(node, self.groups.len());
                self.groups.push(group);
            }
        }
        Some(())
    }

    fn copy_args(&mut self, args: Span) -> Option<Span> {
        let mut copied = self.ir.args(args).to_vec();
        for arg in &mut copied {
            if let Arg::Value(span) = arg {
                let bytes = self.ir.bytes(*span).to_vec();
                *span = self.ir.push_bytes(&bytes)?;
            }
        }
        self.ir.push_args(copied.into_iter())
    }

    /// The accesses of a launch, with the memory that its arguments name now.
    pub(in crate::graph) fn accesses_of(&self, alternative: &Alternative) -> Vec<Access> {
        let Command::Kernel { args, .. } = &alternative.command else { return Vec::new() };
        let views = self.ir.args(*args).iter().filter_map(|arg| arg.view());
        let access = |(of, view): (&ArgumentUse, ViewId)| {
            let start = self.mem(view).map_or(0, Mem::offset_in_root);
            Access { view, range: start + of.range.start..start + of.range.end, mode: of.mode }
        };
        alternative.uses.iter().zip(views).map(access).collect()
    }
}
