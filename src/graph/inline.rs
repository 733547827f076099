//! Inlines all sub-graphs of a graph, before anything is planned. Plans, submissions and reports then contain commands
//! only, and a sub-graph costs as much as its nodes.
//!
//! An executable keeps its own graph in the inlined form, so one level of sub-graphs is all that has to be inlined
//! here.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use crate::command::{Arg, Command, Translate};
use crate::graph::nodes::command_group::{Alternative, Group};
use crate::graph::ports::Written;
use crate::graph::tables::Tables;
use crate::graph::writer::{Index, Writer};
use crate::ir::{
    Access, AllocDecl, AllocId, ById, ChildId, DataId, ExternalId, KernelId, Mode, NativeId, NodeId, ResultId, RootId,
    Span, TaskId, View, ViewId, ViewKind,
};

/// A graph without sub-graphs.
#[derive(Clone, Debug)]
pub(crate) struct Flat {
    pub(crate) tables: Arc<Tables>,
    pub(crate) origins: Origins,
    footprint: OnceLock<Vec<Access>>,
}

/// Where the nodes of a flat graph come from. `None` if nothing was inlined: then every flat node is the graph's node
/// with the same number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(Option<Arc<[Origin]>>);

impl Origins {
    /// The origin of a flat node.
    pub(crate) fn of(&self, node: NodeId) -> Origin {
        self.0.as_ref().map_or(Origin { node, part: 0 }, |origins| origins[node.index()])
    }
}

impl Origins {
    /// The flat nodes of nodes that are not sub-graphs.
    pub(crate) fn of_nodes<'a>(&self, nodes: &'a BTreeSet<NodeId>) -> impl Iterator<Item = NodeId> + use<'a> {
        let written = self.written();
        nodes.iter().map(move |node| written.as_ref().map_or(*node, |written| written[node.index()].0))
    }

    /// By node of the graph: its first flat node, and the number of its flat nodes. `None` if nothing was inlined.
    pub(crate) fn written(&self) -> Option<Vec<(NodeId, u32)>> {
        let mut written: Vec<(NodeId, u32)> = Vec::new();
        for (at, origin) in (0..).zip(self.0.as_ref()?.iter()) {
            if origin.node.index() == written.len() {
                written.push((NodeId(at), 0));
            }
            if let Some((_, count)) = written.last_mut() {
                *count += 1;
            }
        }
        Some(written)
    }
}

/// The origin of a node of a flat graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Origin {
    /// The node of the graph.
    pub(crate) node: NodeId,
    /// The index among the writes, the reads, or the external events of a sub-graph; 0 for a node that is not a
    /// sub-graph.
    pub(crate) part: u32,
}

impl Flat {
    /// Inlines all sub-graphs. Returns `None` when a table is full.
    pub(crate) fn new(tables: &Arc<Tables>) -> Option<Self> {
        if tables.children.is_empty() {
            return Some(Self::of(Arc::clone(tables), Origins::default()));
        }
        let (tables, origins) = Flattening::new(tables).run()?;
        Some(Self::of(Arc::new(tables), Origins(Some(origins.into()))))
    }

    /// Wraps tables that were inlined before.
    pub(crate) fn of(tables: Arc<Tables>, origins: Origins) -> Self {
        Self { tables, origins, footprint: OnceLock::new() }
    }

    /// The memory that the whole graph uses: the fewest ranges that cover the same bytes in the same mode.
    pub(in crate::graph) fn footprint(&self) -> &[Access] {
        self.footprint.get_or_init(|| {
            let ir = &self.tables.ir;
            // Nothing else uses memory that an executable owns, and the executable's own uses are in order already.
            let others = |access: &&Access| {
                !matches!(
                    ir.views[access.view.index()].kind,
                    ViewKind::Placed { .. } | ViewKind::Owned(_) | ViewKind::Nothing
                )
            };
            let uses = ir.ids().flat_map(|id| ir.accesses(id).iter().filter(others).cloned());
            let mut all: Vec<Access> = uses.collect();
            // Ranges that are only read and ranges that are written are merged separately.
            let order = |access: &Access| (access.view, access.mode.writes(), access.range.start);
            all.sort_unstable_by_key(order);
            let mut merged: Vec<Access> = Vec::new();
            for access in all {
                match merged.last_mut() {
                    Some(last)
                        if last.view == access.view
                            && last.mode.writes() == access.mode.writes()
                            && access.range.start <= last.range.end =>
                    {
                        last.range.end = last.range.end.max(access.range.end);
                        if last.mode != access.mode {
                            last.mode = Mode::ReadWrite;
                        }
                    }
                    _ => merged.push(access),
                }
            }
            merged
        })
    }
}

/// The state of one inlining.
struct Flattening<'a> {
    from: &'a Tables,
    /// The inlined graphs of the sub-graphs, as they are now.
    children: Vec<Flat>,
    tables: Tables,
    index: Index,
    origins: Vec<Origin>,
    /// The first and the last flat node of each node.
    ends: Vec<(NodeId, NodeId)>,
}

/// The ids that the objects of one source graph have in the flat tables, as far as they are assigned.
#[derive(Default)]
struct Ids {
    views: FxHashMap<ViewId, ViewId>,
    /// Roots of memory that executables have placed. Allocations may share bytes, and still have to stay different
    /// memory here.
    roots: FxHashMap<RootId, RootId>,
    /// Where the ports of the sub-graph are. `None` for the outer graph.
    written: Option<Written>,
    kernels: FxHashMap<KernelId, KernelId>,
}

impl<'a> Flattening<'a> {
    fn new(from: &'a Tables) -> Self {
        let children: Vec<Flat> = from.children.iter().map(|child| child.of.flat()).collect();
        let mut ends = Vec::with_capacity(from.ir.len());
        let mut next = 0_u32;
        for id in from.ir.ids() {
            let size = match from.ir.command(id) {
                // An entry and an exit node: they do nothing, and replace one edge from each leaf to each root.
                Command::SubGraph(child) => children[child.index()].tables.ir.len() as u32 + 2,
                _ => 1,
            };
            let end = next.saturating_add(size);
            ends.push((NodeId(next), NodeId(end.saturating_sub(1))));
            next = end;
        }
        Self { from, children, tables: Tables::default(), index: Index::default(), origins: Vec::new(), ends }
    }

    fn run(mut self) -> Option<(Tables, Vec<Origin>)> {
        let from = self.from;
        let mut ids = Ids::default();
        let ends = &self.ends;
        let alloc = |alloc: &AllocDecl| AllocDecl { node: ends[alloc.node.index()].0, ..*alloc };
        self.tables.ir.allocs = from.ir.allocs.iter().map(alloc).collect();
        // Host writes and reads are numbered in the order of the flat nodes, over all sources.
        for id in from.ir.ids() {
            let mut waits: Vec<NodeId> =
                from.ir.topology.preds(id).filter(|pred| *pred < id).map(|pred| self.ends[pred.index()].1).collect();
            match from.ir.command(id) {
                Command::SubGraph(child) => self.child(id, *child, waits)?,
                op => {
                    self.copy(from, id, op, &mut ids, &mut waits, Origin { node: id, part: 0 })?;
                }
            }
        }
        let ends = self.ends.clone();
        let label = |(node, label): (&NodeId, &Arc<str>)| (ends[node.index()].0, Arc::clone(label));
        self.tables.labels.extend(from.labels.iter().map(label));
        self.groups(from, &mut ids, |node| ends[node.index()].0)?;
        for id in from.ir.ids() {
            let later: Vec<NodeId> = from.ir.topology.preds(id).filter(|pred| *pred >= id).collect();
            for pred in later {
                // A cycle is found when the graph is planned.
                let _ = Arc::make_mut(&mut self.tables.ir.topology).add_edge(
                    self.ends[pred.index()].1,
                    self.ends[id.index()].0,
                    false,
                );
            }
        }
        Some((self.tables, self.origins))
    }

    /// Inlines a sub-graph after `waits`.
    fn child(&mut self, id: NodeId, child: ChildId, mut waits: Vec<NodeId>) -> Option<()> {
        let source = Arc::clone(&self.children[child.index()].tables);
        let (entry, exit) = self.ends[id.index()];
        let here = |node: NodeId| NodeId(entry.0 + 1 + node.0);
        let source = &*source;
        self.push(Command::Empty, Vec::new(), &mut waits, Origin { node: id, part: 0 })?;
        let ports = Arc::clone(self.from.children[child.index()].of.ports());
        let written = Written { ports, data: self.tables.ir.data, results: self.tables.ir.results };
        let mut ids = Ids { written: Some(written), ..Ids::default() };
        for node in source.ir.ids() {
            let preds = source.ir.topology.preds(node);
            let mut waits: Vec<NodeId> = preds.filter(|pred| *pred < node).map(here).collect();
            if source.ir.topology.preds(node).next().is_none() {
                waits.push(entry);
            }
            let op = source.ir.command(node);
            let part = match op {
                Command::Write { data, .. } => data.0,
                Command::Read { output, .. } => output.0,
                Command::Event { event, .. } => event.0,
                _ => 0,
            };
            self.copy(source, node, op, &mut ids, &mut waits, Origin { node: id, part })?;
        }
        self.tables.labels.extend(source.labels.iter().map(|(node, label)| (here(*node), Arc::clone(label))));
        self.groups(source, &mut ids, here)?;
        for node in source.ir.ids() {
            let later: Vec<NodeId> = source.ir.topology.preds(node).filter(|pred| *pred >= node).collect();
            for pred in later {
                let _ = Arc::make_mut(&mut self.tables.ir.topology).add_edge(here(pred), here(node), false);
            }
        }
        let mut leaves: Vec<NodeId> = source.ir.topology.leaves().iter().copied().map(here).collect();
        leaves.push(entry);
        let node = self.push(Command::Empty, Vec::new(), &mut leaves, Origin { node: id, part: 0 })?;
        debug_assert_eq!(node, exit, "as many nodes as were counted");
        Some(())
    }

    /// Copies the command groups of a source. `here` maps the nodes of the source to flat nodes.
    fn groups(&mut self, source: &Tables, ids: &mut Ids, here: impl Fn(NodeId) -> NodeId) -> Option<()> {
        for group in &source.groups {
            let mut alternatives = Vec::with_capacity(group.alternatives.len());
            for alternative in &group.alternatives {
                let mut to = Writer { tables: &mut self.tables, index: &mut self.index };
                let command = ids.command(source, &alternative.command, &mut to)?;
                alternatives.push(Alternative { command, uses: alternative.uses.clone() });
            }
            let mut copied = Group::like(group, alternatives);
            copied.nodes = group.nodes.iter().copied().map(&here).collect();
            let index = self.tables.groups.len();
            for node in &copied.nodes {
                self.tables.group_of.insert(*node, index);
                // The op of a node is its active launch, whose arguments are copied with the launches of the group.
                if let Some(alternative) = copied.alternatives.get(group.active) {
                    *self.tables.ir.command_mut(*node) = alternative.command.clone();
                }
            }
            self.tables.groups.push(copied);
        }
        Some(())
    }

    fn push(
        &mut self,
        op: Command<ById>,
        accesses: Vec<Access>,
        waits: &mut Vec<NodeId>,
        origin: Origin,
    ) -> Option<NodeId> {
        if !self.tables.ir.has_room() {
            return None;
        }
        self.origins.push(origin);
        self.tables.ir.push_node(op, accesses.into_iter(), waits)
    }

    /// Copies a node of a source, with the ids of the flat tables.
    fn copy(
        &mut self,
        source: &Tables,
        node: NodeId,
        op: &Command<ById>,
        ids: &mut Ids,
        waits: &mut Vec<NodeId>,
        origin: Origin,
    ) -> Option<()> {
        let mut to = Writer { tables: &mut self.tables, index: &mut self.index };
        // A node of a group gets its launch when the group is copied.
        let op = if source.group_of.contains_key(&node) { Command::Empty } else { ids.command(source, op, &mut to)? };
        // Allocations of a sub-graph were placed when the sub-graph was finalized.
        let is_done = ids.written.is_some() && matches!(source.ir.command(node), Command::Alloc(_) | Command::Free(_));
        to.tables.ir.shares_bytes |= is_done || source.ir.shares_bytes;
        let accesses = source.ir.accesses(node).iter().filter(|_| !is_done);
        let accesses = accesses.map(|access| ids.access(source, access, &mut to)).collect::<Option<_>>()?;
        self.push(op, accesses, waits, origin).map(|_| ())
    }
}

impl Ids {
    fn view(&mut self, source: &Tables, of: ViewId, to: &mut Writer<'_>) -> Option<ViewId> {
        if let Some(known) = self.views.get(&of) {
            return Some(*known);
        }
        if source.is_nothing(of) {
            return Some(to.nothing());
        }
        let described = source.ir.views[of.index()];
        let view = if let ViewKind::Placed { start, .. } = described.kind {
            let mem = source.mem(of)?;
            let root = *self.roots.entry(described.root).or_insert_with(|| to.new_root());
            let kind = ViewKind::Placed { arena: to.arena(mem), start };
            to.placed(mem, View { root, kind, ..described })
        } else {
            to.view(source.mem(of)?)
        };
        self.views.insert(of, view);
        Some(view)
    }

    fn access(&mut self, source: &Tables, of: &Access, to: &mut Writer<'_>) -> Option<Access> {
        Some(Access { view: self.view(source, of.view, to)?, ..of.clone() })
    }

    /// Copies the command of a node.
    fn command(&mut self, source: &Tables, of: &Command<ById>, to: &mut Writer<'_>) -> Option<Command<ById>> {
        match of {
            // Allocations of a sub-graph have their memory already.
            Command::Alloc(_) | Command::Free(_) if self.written.is_some() => Some(Command::Empty),
            Command::SubGraph(_) => Some(Command::Empty),
            of => of.translate(&mut Copier { ids: self, source, to }).ok(),
        }
    }

    /// Copies the arguments of a kernel.
    fn args(&mut self, source: &Tables, args: Span, to: &mut Writer<'_>) -> Option<Span> {
        let mut copied = Vec::with_capacity(args.len());
        for arg in source.ir.args(args) {
            copied.push(match arg {
                Arg::Memory(of) => Arg::Memory(self.view(source, *of, to)?),
                Arg::Indirect(of) => Arg::Indirect(self.view(source, *of, to)?),
                Arg::Global(of) => Arg::Global(self.view(source, *of, to)?),
                Arg::Unused(of) => Arg::Unused(self.view(source, *of, to)?),
                Arg::Null(of) => Arg::Null(self.view(source, *of, to)?),
                Arg::Sampler(of) => Arg::Sampler(to.sampler(source.sampler_of(*of)?)?),
                Arg::Local(size) => Arg::Local(*size),
                Arg::Value(span) => Arg::Value(to.ir.push_bytes(source.ir.bytes(*span))?),
            });
        }
        to.ir.push_args(copied.into_iter())
    }
}

/// Copies what a command refers to into other tables. An error means that a table is full.
struct Copier<'c, 'w> {
    ids: &'c mut Ids,
    source: &'c Tables,
    to: &'c mut Writer<'w>,
}

/// A table is full.
struct Full;

impl<'a> Translate<'a, ById, ById> for Copier<'_, '_> {
    type Error = Full;

    fn mem(&mut self, mem: &'a ViewId) -> Result<ViewId, Full> {
        self.ids.view(self.source, *mem, self.to).ok_or(Full)
    }

    fn kernel(&mut self, kernel: &'a KernelId, args: &'a Span) -> Result<(KernelId, Span), Full> {
        let args = self.ids.args(self.source, *args, self.to).ok_or(Full)?;
        let decl = &self.source.ir.kernels[kernel.index()];
        let object = &self.source.kernels[kernel.index()];
        let kernel = *self.ids.kernels.entry(*kernel).or_insert_with(|| self.to.kernel(object, decl.built));
        Ok((kernel, args))
    }

    fn bytes(&mut self, bytes: &'a Span) -> Result<Span, Full> {
        self.to.ir.push_bytes(self.source.ir.bytes(*bytes)).ok_or(Full)
    }

    fn data(&mut self, data: &'a DataId, _: usize) -> Result<DataId, Full> {
        self.to.data(self.source.data[data.index()].clone()).ok_or(Full)
    }

    fn output(&mut self, output: &'a ResultId, _: usize) -> Result<ResultId, Full> {
        self.to.output(self.source.results[output.index()]).ok_or(Full)
    }

    fn task(&mut self, task: &'a TaskId) -> Result<TaskId, Full> {
        let function = &self.source.tasks[task.index()];
        let within = |written| function.within(written);
        self.to.task(self.ids.written.as_ref().map_or_else(|| function.clone(), within)).ok_or(Full)
    }

    fn event(&mut self, _: &'a ExternalId) -> Result<ExternalId, Full> {
        self.to.external().ok_or(Full)
    }

    fn native(&mut self, functions: &'a NativeId) -> Result<NativeId, Full> {
        self.to.native(self.source.natives[functions.index()].clone()).ok_or(Full)
    }

    fn executable(&mut self, executable: &'a ChildId) -> Result<ChildId, Full> {
        Ok(*executable)
    }

    fn alloc(&mut self, alloc: &'a AllocId) -> Result<AllocId, Full> {
        Ok(*alloc)
    }
}
