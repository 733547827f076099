//! A graph without sub-graphs, with its objects: what is planned, submitted and reported. `lower/inline.rs` writes its
//! nodes; here are the objects that they name.
//!
//! An executable keeps its own graph in this form, so there is one level of sub-graphs to replace.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use crate::cl::memory::untyped::Mem;
use crate::cl::objects::kernel::Kernel;
use crate::command::{Arg, Command, Grid, Location};
use crate::graph::nodes::command_group::{Alternative, Group};
use crate::graph::ports::Written;
use crate::graph::tables::Tables;
use crate::graph::writer::{Index, Writer};
use crate::ir::{
    Access, DataId, ExternalId, Ir, KernelDecl, KernelId, Mode, NativeId, NodeId, ResultId, RootId, SamplerId, TaskId,
    View, ViewId, ViewKind,
};
use crate::lower::{self, Chains, Fused, Need, OWN, Origin, Output, Source, Unrolled, UnrolledAt};

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

    /// Returns whether a branch or loop is inside of a node of the graph, and not that node itself.
    pub(crate) fn is_inside(&self, node: NodeId) -> bool {
        self.0.is_some() && self.of(node).part != OWN
    }
}

impl Origins {
    /// The flat nodes of nodes that are not sub-graphs.
    pub(crate) fn of_nodes<'a>(&self, nodes: &'a BTreeSet<NodeId>) -> impl Iterator<Item = NodeId> + use<'a> {
        let written = self.written();
        nodes.iter().map(move |node| written.as_ref().map_or(*node, |written| written[node.index()].0))
    }

    /// By node of the graph: its first flat node, and the number of its flat nodes. `None` if nothing was inlined, or if nodes were
    /// fused: then those of one node are not beside each other.
    pub(crate) fn written(&self) -> Option<Vec<(NodeId, u32)>> {
        let mut written: Vec<(NodeId, u32)> = Vec::new();
        for (at, origin) in (0..).zip(self.0.as_ref()?.iter()) {
            let is_new = origin.node.index() == written.len();
            if !is_new && origin.node.index() + 1 != written.len() {
                return None;
            }
            if is_new {
                written.push((NodeId(at), 0));
            }
            if let Some((_, count)) = written.last_mut() {
                *count += 1;
            }
        }
        Some(written)
    }
}

impl Flat {
    /// Inlines all sub-graphs. Returns `None` when a table is full.
    pub(crate) fn new(tables: &Arc<Tables>) -> Option<Self> {
        let is_control = |node: NodeId| matches!(tables.ir.command(node), Command::Control(_));
        if tables.children.is_empty() && !tables.ir.ids().any(is_control) {
            return Some(Self::of(Arc::clone(tables), Origins::default()));
        }
        let children: Vec<Flat> = tables.children.iter().map(|child| child.of.flat()).collect();
        let (tables, origins) = Objects::new(tables, &children).write()?;
        Some(Self::of(Arc::new(tables), Origins(Some(origins.into()))))
    }

    /// Replaces short loops with a known number of turns by their turns, for an executable whose values do not change. Returns the
    /// graph, the loops that were replaced, with their turns, and where these are; `None` if there are none.
    pub(crate) fn unrolled(&self) -> Option<(Self, FxHashMap<NodeId, u64>, Vec<UnrolledAt>)> {
        let Unrolled { ir, origins, loops, places } = lower::unroll(&self.tables.ir)?;
        let mut tables = Tables { ir, ..(*self.tables).clone() };
        // Groups are for changes.
        (tables.groups, tables.group_of) = (Vec::new(), FxHashMap::default());
        let label = |node: &NodeId| self.tables.labels.get(node).cloned();
        let labels = (0..).map(NodeId).zip(&origins).filter_map(|(new, old)| Some((new, label(old)?)));
        tables.labels = labels.collect();
        let origins = origins.iter().map(|old| self.origins.of(*old));
        let origins = Origins(Some(origins.collect()));
        Some((Self::of(Arc::new(tables), origins), loops.into_iter().collect(), places))
    }

    /// Has the host do each launch with a promise, or `all` launches, so that it checks them. None if there are none.
    pub(crate) fn checked(&self, all: bool) -> Option<Self> {
        Some(self.with(lower::checked(&self.tables.ir, all)?))
    }

    /// Returns the graph in which the device does all launches. None if it does.
    pub(crate) fn unchecked(&self) -> Option<Self> {
        Some(self.with(lower::unchecked(&self.tables.ir)?))
    }

    fn with(&self, ir: Ir) -> Self {
        let tables = Tables { ir, ..(*self.tables).clone() };
        Self::of(Arc::new(tables), self.origins.clone())
    }

    /// Writes fused kernels in the places of chains. Returns the graph, and by its nodes, which nodes each one was. `None` if there are
    /// no kernels, or if a table is full.
    pub(crate) fn fused(&self, chains: &Chains, built: Vec<Option<FusedChain>>) -> Option<(Self, Vec<Vec<NodeId>>)> {
        if built.iter().all(Option::is_none) {
            return None;
        }
        let mut tables = (*self.tables).clone();
        let mut commands = Vec::with_capacity(built.len());
        let mut labels = Vec::with_capacity(built.len());
        // Made if a kernel has memory of its own.
        let mut index = None;
        let mut own_view = |tables: &mut Tables, mem: &Mem| {
            let index = index.get_or_insert_with(|| Index::of(tables));
            Writer { tables, index }.view(mem)
        };
        for (chain, built) in chains.chains.iter().zip(built) {
            let Some(FusedChain { kernel, grid, label, table, turns }) = built else {
                commands.push(None);
                labels.push(None);
                continue;
            };
            let mut args = Vec::with_capacity(chain.needs.len());
            for need in &chain.needs[..chain.needs.len() - chain.tabled] {
                args.push(match need {
                    Need::Memory(view) => Arg::Memory(*view),
                    Need::Value(_, bytes) => Arg::Value(tables.ir.push_bytes(bytes)?),
                    Need::Size(size) => Arg::Value(tables.ir.push_bytes(&size.to_ne_bytes())?),
                    Need::Local(_, size) => Arg::Local(*size),
                });
            }
            args.extend(table.map(|table| Arg::Memory(own_view(&mut tables, &table))));
            // Whether it runs the launches.
            args.push(Arg::Value(tables.ir.push_bytes(&1_u32.to_ne_bytes())?));
            if let Some((state, condition)) = turns {
                let own = own_view(&mut tables, &state);
                // The first word of the state is how many turns a launch does, and never 0.
                let Location { mem, offset } = condition.unwrap_or(Location { mem: own, offset: 0 });
                args.extend([Arg::Memory(own), Arg::Memory(mem)]);
                let word = (offset / size_of::<u32>()) as u64;
                args.push(Arg::Value(tables.ir.push_bytes(&word.to_ne_bytes())?));
                tables.turning.insert(KernelId(tables.kernels.len() as u32), state);
            }
            let args = tables.ir.push_args(args.into_iter())?;
            let id = KernelId(tables.kernels.len() as u32);
            tables.ir.kernels.push(KernelDecl { name: kernel.shared_name(), built: true, checked: true });
            tables.kernels.push(kernel);
            commands.push(Some(Command::Kernel {
                kernel: id,
                args,
                grid,
                bound: None,
                prints: false,
                elementwise: None,
            }));
            labels.push(Some(label));
        }
        let Fused { ir, origins } = chains.write(&tables.ir, &commands)?;
        tables.ir = ir;
        let before = self.tables.kernels.len();
        let in_chains: Vec<bool> = tables.ir.ids().map(|new| tables.is_fused(new, before)).collect();
        let of_chain = |new: NodeId| in_chains[new.index()];
        let alone = |(new, of): (u32, &Vec<NodeId>)| match of.as_slice() {
            [old] if !of_chain(NodeId(new)) => Some((NodeId(new), *self.tables.group_of.get(old)?)),
            _ => None,
        };
        // A launch of a group that was fused changes in no other way than others.
        tables.group_of = if tables.groups.is_empty() {
            FxHashMap::default()
        } else {
            (0..).zip(&origins).filter_map(alone).collect()
        };
        let first = |of: &Vec<NodeId>| of.first().copied().unwrap_or(NodeId(0));
        let old = std::mem::take(&mut tables.labels);
        let first_of = chains.chains.iter().enumerate().filter_map(|(at, chain)| Some((*chain.launches.first()?, at)));
        let first_of: FxHashMap<NodeId, usize> = first_of.collect();
        for (new, of) in (0..).map(NodeId).zip(&origins) {
            let chain = of.first().filter(|_| of_chain(new)).and_then(|first| first_of.get(first).copied());
            let label = match chain {
                Some(chain) => labels[chain].clone(),
                None => old.get(&first(of)).cloned(),
            };
            tables.labels.extend(label.map(|label| (new, label)));
        }
        let here = origins.iter().map(|of| self.origins.of(first(of)));
        Some((Self::of(Arc::new(tables), Origins(Some(here.collect()))), origins))
    }

    /// Returns the graph with the memory that an executable has placed for its allocations, whose tables have the same views.
    pub(crate) fn with_memory_of(&self, placed: &Tables) -> Self {
        if placed.placed.is_none() {
            return self.clone();
        }
        let mut tables = (*self.tables).clone();
        tables.ir.views.clone_from(&placed.ir.views);
        (tables.views, tables.placed) = (placed.views.clone(), placed.placed.clone());
        Self::of(Arc::new(tables), self.origins.clone())
    }

    /// Returns the graph of an executable that has placed its memory, to be planned once more with the same memory.
    pub(crate) fn again(&self) -> Self {
        if self.tables.ir.allocs.is_empty() {
            return self.clone();
        }
        let mut tables = (*self.tables).clone();
        let is_done = |node: &NodeId| matches!(tables.ir.command(*node), Command::Alloc(_) | Command::Free(_));
        let done: Vec<NodeId> = tables.ir.ids().filter(is_done).collect();
        done.into_iter().for_each(|node| tables.ir.clear(node));
        tables.ir.allocs.clear();
        // Allocations that share bytes are in order by edges that conflicts alone do not ask for.
        tables.ir.shares_bytes = true;
        Self::of(Arc::new(tables), self.origins.clone())
    }

    /// Wraps tables that were inlined before.
    pub(crate) fn of(tables: Arc<Tables>, origins: Origins) -> Self {
        Self { tables, origins, footprint: OnceLock::new() }
    }

    /// Nothing else uses memory that an executable owns, and the executable's own uses are in order already.
    fn uses(&self) -> impl Iterator<Item = Access> + '_ {
        let ir = &self.tables.ir;
        let is_of_others = |access: &&Access| {
            let kind = &ir.views[access.view.index()].kind;
            !matches!(kind, ViewKind::Placed { .. } | ViewKind::Owned(_) | ViewKind::Nothing)
        };
        // A branch or loop reads its condition. What its bodies use is with their own nodes, which are here too.
        let own = |id| match ir.command(id) {
            Command::Control(control) => &ir.accesses(id)[..usize::from(control.condition.is_some())],
            _ => ir.accesses(id),
        };
        ir.ids().flat_map(move |id| own(id).iter().filter(is_of_others).cloned())
    }

    /// The memory that the whole graph uses: the fewest ranges that cover the same bytes in the same mode.
    pub(in crate::graph) fn footprint(&self) -> &[Access] {
        self.footprint.get_or_init(|| {
            let mut all: Vec<Access> = self.uses().collect();
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

/// A fused kernel, and how it is launched.
pub(crate) struct FusedChain {
    pub(crate) kernel: Kernel,
    pub(crate) grid: Grid,
    pub(crate) label: Arc<str>,
    /// The memory of its table, if it has one.
    pub(crate) table: Option<Mem>,
    /// If it does the turns of the loop whose body the chain is: its state, and where the condition is; None if the number of turns is known.
    pub(crate) turns: Option<(Mem, Option<Location<ViewId>>)>,
}

/// The tables of a flat graph while they are written: gives the objects of the sources their numbers.
struct Objects<'a> {
    from: &'a Tables,
    /// The inlined graphs of the sub-graphs, as they are now.
    children: &'a [Flat],
    tables: Tables,
    index: Index,
    ids: FxHashMap<Source, Ids>,
}

/// The numbers that the objects of one source have in the flat tables, as far as they have any.
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

impl<'a> Objects<'a> {
    fn new(from: &'a Tables, children: &'a [Flat]) -> Self {
        let (tables, index) = (Tables::default(), Index::default());
        Self { from, children, tables, index, ids: FxHashMap::default() }
    }

    /// Writes the flat graph. Returns `None` when a table is full.
    fn write(mut self) -> Option<(Tables, Vec<Origin>)> {
        let (from, children) = (self.from, self.children);
        let inlined = lower::inline(&from.ir, |child| &children[child.index()].tables.ir, &mut self)?;
        for of in [Source::Graph].into_iter().chain(inlined.children().iter().copied()) {
            let source = self.source(of);
            let label = |(node, label): (&NodeId, &Arc<str>)| (inlined.place(of, *node), Arc::clone(label));
            self.tables.labels.extend(source.labels.iter().map(label));
            self.groups(of, source, |node| inlined.place(of, node))?;
        }
        Some((self.tables, inlined.origins))
    }

    fn source(&self, of: Source) -> &'a Tables {
        match of {
            Source::Graph => self.from,
            Source::Child { child, .. } => &self.children[child.index()].tables,
        }
    }

    /// Returns a source, the numbers of its objects, and what writes others.
    fn of(&mut self, of: Source) -> (&'a Tables, &mut Ids, Writer<'_>) {
        let source = self.source(of);
        let Self { from, tables, index, ids, .. } = self;
        let ids = ids.entry(of).or_insert_with(|| {
            // The first object that a source asks for: all inputs and results of sources before it are there.
            let child = match of {
                Source::Graph => None,
                Source::Child { child, .. } => from.children.get(child.index()),
            };
            let (data, results) = (tables.ir.data, tables.ir.results);
            let written = child.map(|child| Written { ports: Arc::clone(child.of.ports()), data, results });
            Ids { written, ..Ids::default() }
        });
        (source, ids, Writer { tables, index })
    }

    /// Copies the command groups of a source. `here` maps the nodes of the source to flat nodes.
    fn groups(&mut self, of: Source, source: &Tables, here: impl Fn(NodeId) -> NodeId) -> Option<()> {
        for group in &source.groups {
            let mut alternatives = Vec::with_capacity(group.alternatives.len());
            for alternative in &group.alternatives {
                let command = lower::translate(of, &source.ir, NodeId(0), &alternative.command, self)?;
                alternatives.push(Alternative { command, uses: alternative.uses.clone() });
            }
            let mut copied = Group::like(group, alternatives);
            copied.nodes = group.nodes.iter().copied().map(&here).collect();
            let index = self.tables.groups.len();
            for node in &copied.nodes {
                self.tables.group_of.insert(*node, index);
                // The command of a node is its active launch, whose arguments are copied with the launches of the group.
                if let Some(alternative) = copied.alternatives.get(group.active) {
                    *self.tables.ir.command_mut(*node) = alternative.command.clone();
                }
            }
            self.tables.groups.push(copied);
        }
        Some(())
    }
}

impl Output for Objects<'_> {
    fn ir(&mut self) -> &mut Ir {
        &mut self.tables.ir
    }

    fn view(&mut self, of: Source, view: ViewId) -> Option<ViewId> {
        let (source, ids, mut to) = self.of(of);
        if let Some(known) = ids.views.get(&view) {
            return Some(*known);
        }
        if source.is_nothing(view) {
            return Some(to.nothing());
        }
        let (described, mem) = (source.ir.views[view.index()], source.mem(view)?);
        let new = if let ViewKind::Placed { start, .. } = described.kind {
            let root = *ids.roots.entry(described.root).or_insert_with(|| to.new_root());
            let kind = ViewKind::Placed { arena: to.arena(mem), start };
            to.placed(mem, View { root, kind, ..described })
        } else {
            to.view(mem)
        };
        ids.views.insert(view, new);
        Some(new)
    }

    fn kernel(&mut self, of: Source, kernel: KernelId) -> Option<KernelId> {
        let (source, ids, mut to) = self.of(of);
        let (object, built) = (&source.kernels[kernel.index()], source.ir.kernels[kernel.index()].built);
        Some(*ids.kernels.entry(kernel).or_insert_with(|| to.kernel(object, built)))
    }

    fn sampler(&mut self, of: Source, sampler: SamplerId) -> Option<SamplerId> {
        let (source, _, mut to) = self.of(of);
        to.sampler(source.sampler_of(sampler)?)
    }

    fn data(&mut self, of: Source, data: DataId) -> Option<DataId> {
        let (source, _, mut to) = self.of(of);
        to.data(source.data[data.index()].clone())
    }

    fn result(&mut self, of: Source, result: ResultId) -> Option<ResultId> {
        let (source, _, mut to) = self.of(of);
        to.output(source.results[result.index()])
    }

    fn task(&mut self, of: Source, task: TaskId) -> Option<TaskId> {
        let (source, ids, mut to) = self.of(of);
        let function = &source.tasks[task.index()];
        to.task(ids.written.as_ref().map_or_else(|| function.clone(), |written| function.within(written)))
    }

    fn native(&mut self, of: Source, functions: NativeId) -> Option<NativeId> {
        let (source, _, mut to) = self.of(of);
        to.native(source.natives[functions.index()].clone())
    }

    fn external(&mut self) -> Option<ExternalId> {
        Writer { tables: &mut self.tables, index: &mut self.index }.external()
    }

    /// A node of a group gets its launch when the group is copied.
    fn sets_command(&self, of: Source, node: NodeId) -> bool {
        self.source(of).group_of.contains_key(&node)
    }
}
