//! The tables of a graph: its commands as plain data, and the objects that the ids in the data stand for.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::cl::memory::host::HostBytes;
use crate::cl::memory::untyped::{GraphAllocation, Mem, MemId, WeakRoot};
use crate::cl::objects::buffer::Region;
use crate::cl::objects::kernel::Kernel;
use crate::cl::objects::sampler::Sampler;
use crate::graph::Flat;
use crate::graph::nodes::command_group::Group;
use crate::graph::nodes::host_task::TaskFn;
use crate::graph::nodes::native_command::NativeFn;
use crate::graph::nodes::task_group::TaskGroup;
use crate::graph::parameters::Cell;
use crate::graph::ports::Ports;
use crate::handles::NodeKind;
use crate::ir::{
    Access, AllocId, Ir, KernelDecl, KernelId, Mark, Mode, NodeId, Op, RootId, SamplerId, Span, View, ViewId, ViewKind,
};

/// A graph as plain data, and its objects. Each list of objects is in the order of its ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) ir: Ir,
    /// `None` for an id that is not used any more.
    pub(crate) views: Views,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) data: Vec<HostBytes>,
    pub(crate) tasks: Vec<TaskFn>,
    pub(crate) natives: Vec<NativeFn>,
    /// `None` for an id that is not used any more.
    pub(crate) samplers: Vec<Option<Sampler>>,
    /// The size of each result, in bytes.
    pub(crate) results: Vec<usize>,
    pub(crate) children: Vec<Child>,
    /// The arguments that are bound to parameters, in the order of arguments.
    pub(crate) bindings: Vec<Binding>,
    pub(crate) groups: Vec<Group>,
    pub(crate) task_groups: Vec<TaskGroup>,
    pub(crate) group_of: FxHashMap<NodeId, usize>,
    /// The labels of nodes.
    pub(crate) labels: FxHashMap<NodeId, Arc<str>>,
    /// The nodes with arguments that are bound to parameters.
    pub(crate) parameter_bound: BTreeSet<NodeId>,
    /// Whether nodes may use other memory than when their edges were made.
    pub(crate) moved: bool,
    /// The memory that an executable has placed for the allocations of its graph, by allocation and byte. `Some` only
    /// in an executable that can be updated or whose graph owns memory; `None` in a graph.
    pub(crate) placed: Option<Arc<FxHashMap<(AllocId, usize), ViewId>>>,
}

/// The memory of each view.
///
/// Views are released in reverse order, last view first. NVIDIA's driver (580, on an H200) crashes when overlapping
/// sub-buffers were used and the older one is released first. Without updates, the reverse order releases the newest
/// first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Views(Vec<Option<Mem>>);

impl Deref for Views {
    type Target = Vec<Option<Mem>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Views {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Drop for Views {
    fn drop(&mut self) {
        while let Some(mem) = self.0.pop() {
            drop(mem);
        }
    }
}

impl Tables {
    /// Whether a view stands for no memory.
    pub(crate) fn is_nothing(&self, view: ViewId) -> bool {
        self.ir.views[view.index()].kind == ViewKind::Nothing
    }

    /// The memory of a view. Every view that a node names has memory, except the view of null pointers.
    pub(crate) fn mem(&self, view: ViewId) -> Option<&Mem> {
        self.views.get(view.index())?.as_ref()
    }

    /// Whether a node declares a use of all of these bytes. A use of the buffer counts for bytes of the buffer, and a
    /// use of a sub-buffer or of an image made of the buffer counts for bytes of the same sub-buffer or image.
    pub(crate) fn declares(&self, node: NodeId, region: &Region, mode: Mode) -> bool {
        let start = region.mem.offset_in_root() + region.offset;
        let is_part = matches!(view_kind(&region.mem), ViewKind::SubBuffer | ViewKind::ImageOfBuffer);
        let mut uses: SmallVec<[&Access; 8]> = self.ir.accesses(node).iter().collect();
        uses.retain(|access| {
            let is_same = self.mem(access.view).is_some_and(|mem| mem.root() == region.mem.root());
            is_same && self.ir.views[access.view.index()].is_sub_buffer() == is_part
        });
        uses.sort_unstable_by_key(|access| access.range.start);
        let covers = |is_meant: fn(Mode) -> bool| {
            let mut known = start;
            for access in uses.iter().filter(|access| is_meant(access.mode)) {
                if access.range.start <= known {
                    known = known.max(access.range.end);
                }
            }
            known >= start + region.size
        };
        (!mode.reads() || covers(Mode::reads)) && (!mode.writes() || covers(Mode::writes))
    }

    /// A sampler. Every id that a node names has a sampler.
    pub(crate) fn sampler_of(&self, id: SamplerId) -> Option<&Sampler> {
        self.samplers.get(id.index())?.as_ref()
    }

    /// The label of a node: the given label, or the default label of a node that maps.
    pub(crate) fn label(&self, node: NodeId) -> Option<&Arc<str>> {
        self.labels.get(&node).or_else(|| match self.ir.op(node) {
            Op::Task(task) => self.tasks[task.index()].label(),
            _ => None,
        })
    }

    /// The kind and the label of a node, for error texts.
    pub(crate) fn describe(&self, node: NodeId) -> String {
        let what = match self.ir.op(node) {
            Op::Kernel { kernel, .. } => format!("kernel `{}`", self.ir.kernels[kernel.index()].name),
            op => NodeKind::of(op).to_string(),
        };
        match self.label(node) {
            Some(label) => format!("{what}, \"{label}\""),
            None => what,
        }
    }

    /// The descriptions of two nodes that conflict, with the bytes of the shared memory that they use.
    pub(crate) fn describe_uses(&self, first: NodeId, second: NodeId) -> (String, String) {
        let (ir, told) = (&self.ir, |node| self.describe(node));
        let pairs = ir.accesses(first).iter().flat_map(|a| ir.accesses(second).iter().map(move |b| (a, b)));
        let Some((a, b)) = pairs.into_iter().find(|(a, b)| a.conflicts_with(b, &ir.views)) else {
            return (told(first), told(second));
        };
        let told = |node, of: &Access| {
            let verb = if of.mode.writes() { "writes" } else { "reads" };
            match self.mem(of.view).and_then(Mem::image) {
                Some(image) => format!("{} {verb} an {}", told(node), image.shape.kind()),
                None => format!("{} {verb} bytes {:?}", told(node), of.range),
            }
        };
        (told(first, a), told(second, b))
    }

    /// The memory that an executable has placed for memory that a graph owns, or `None`.
    pub(crate) fn placed(&self, mem: &Mem) -> Option<ViewId> {
        let alloc = AllocId(mem.graph_allocation()?.alloc()?);
        self.placed.as_ref()?.get(&(alloc, mem.offset_in_root())).copied()
    }

    /// Truncates the tables to an earlier state.
    pub(crate) fn rewind(&mut self, mark: Mark) {
        // The node that was not added may have joined a group already.
        let next = NodeId(self.ir.len() as u32);
        if let Some(group) = self.group_of.remove(&next).and_then(|group| self.groups.get_mut(group)) {
            group.nodes.retain(|node| *node != next);
        }
        for group in &mut self.task_groups {
            group.nodes.retain(|node| *node != next);
        }
        self.bindings.truncate(self.bindings.partition_point(|binding| (binding.arg as usize) < mark.args()));
        self.ir.rewind(mark);
    }

    /// The bindings of some arguments.
    pub(crate) fn bindings(&self, args: Span) -> Range<usize> {
        let start = self.bindings.partition_point(|binding| binding.arg < args.ends().0);
        self.bindings_at(start, args)
    }

    /// The bindings of some arguments, searched from the index `at` on first, because nodes are mostly visited in
    /// order.
    pub(crate) fn bindings_near(&self, at: usize, args: Span) -> Range<usize> {
        /// Comparing this many entries costs less than a search among all.
        const NEAR: usize = 8;
        let start = args.ends().0;
        let is_before = |binding: &Binding| binding.arg < start;
        if at == 0 || self.bindings.get(at - 1).is_some_and(is_before) {
            let ahead = self.bindings.iter().skip(at).take(NEAR);
            let first = at + ahead.take_while(|binding| is_before(binding)).count();
            if first < at + NEAR {
                return self.bindings_at(first, args);
            }
        }
        self.bindings(args)
    }

    /// The bindings of some arguments, the first of which is at `start`.
    fn bindings_at(&self, start: usize, args: Span) -> Range<usize> {
        let count = self.bindings[start..].iter().take_while(|binding| binding.arg < args.ends().1).count();
        start..start + count
    }
}

/// The parameters of an argument: usually one.
pub(crate) type Cells = SmallVec<[Arc<Cell>; 1]>;

/// An argument and the parameters that it is bound to. Its value is that of the parameter that was set last.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    /// The index in the table of arguments.
    pub(crate) arg: u32,
    pub(crate) cells: Cells,
    /// When the current value of the argument was set.
    pub(crate) time: u64,
}

impl Binding {
    /// The parameter that was set last, if it was set after the argument got its value.
    pub(crate) fn news(&self) -> Option<&Arc<Cell>> {
        let latest = match self.cells.as_slice() {
            [cell] => cell,
            cells => cells.iter().max_by_key(|cell| cell.time())?,
        };
        (latest.time() > self.time).then_some(latest)
    }
}

/// An executable as a node of a graph.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    pub(crate) of: Arc<dyn CurrentValues>,
    /// The exclusive use of the executable, and those of the executables in it.
    pub(crate) exclusive: Vec<UseHandle>,
}

/// An executable, as graphs use it: an object whose values may change.
pub(crate) trait CurrentValues: Send + Sync {
    /// The graph that the executable is made of, as it is now.
    fn flat(&self) -> Flat;

    /// A number that no other executable has.
    fn id(&self) -> u64;
    /// The number of its nodes. Takes no lock.
    fn nodes(&self) -> usize;
    /// Its host writes, host reads and external events.
    fn ports(&self) -> &Arc<Ports>;

    /// Whether its nodes may use other memory than when their edges were made.
    fn has_changed(&self) -> bool;
}

impl fmt::Debug for dyn CurrentValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an executable of {} nodes", self.nodes())
    }
}

/// The exclusive use of an executable, across submissions and graphs. Only `exec` knows the type behind it.
#[derive(Clone)]
pub(crate) struct UseHandle(pub(crate) Arc<dyn Any + Send + Sync>);

impl UseHandle {
    /// Distinguishes exclusive uses while they live.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>().addr()
    }
}

impl fmt::Debug for UseHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UseHandle({:#x})", self.address())
    }
}

/// Finds objects that are in the tables already.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// The keys are unique while `views` keeps the memory alive.
    view_of: FxHashMap<MemId, ViewId>,
    root_of: FxHashMap<MemId, Root>,
    roots: u32,
    kernel_of: FxHashMap<KernelKey, KernelId>,
    /// By view: the number of arguments and accesses that name it.
    uses: Vec<u32>,
    free: Vec<ViewId>,
    /// The view of null pointers.
    nothing: Option<ViewId>,
    /// By C handle. The keys are unique while `samplers` keeps the samplers alive.
    sampler_of: FxHashMap<usize, SamplerId>,
    free_samplers: Vec<SamplerId>,
    /// The number of samplers above which unused ones are searched.
    many_samplers: usize,
    released: Released,
}

/// Objects that nothing names any more, to be dropped where no lock is held.
#[derive(Debug, Default)]
pub(crate) struct Released {
    pub(crate) mems: Vec<Mem>,
    pub(crate) samplers: Vec<Sampler>,
}

/// A buffer. Its number stays while nodes use the buffer, or while somebody holds it who may give it to a node again.
#[derive(Debug)]
struct Root {
    id: RootId,
    views: u32,
    /// The view that nodes used last.
    last: Option<WeakRoot>,
}

impl Root {
    fn is_known(&self) -> bool {
        self.views > 0 || self.last.as_ref().is_some_and(WeakRoot::is_alive)
    }
}

fn view_kind(mem: &Mem) -> ViewKind {
    if let Some(alloc) = mem.graph_allocation().and_then(GraphAllocation::alloc) {
        return ViewKind::Owned(AllocId(alloc));
    }
    match mem.allocation() {
        Some(allocation) if allocation.is_foreign() => ViewKind::Foreign,
        Some(_) => ViewKind::Pointer,
        None if mem.image().is_some_and(|info| info.of_buffer) => ViewKind::ImageOfBuffer,
        None if mem.image().is_some() => ViewKind::Image,
        None if mem.is_sub_buffer() => ViewKind::SubBuffer,
        None => ViewKind::Buffer,
    }
}

/// The C handle of a program, and the name of the function.
type KernelKey = (usize, Arc<str>);

/// The tables and their index, to write to.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) tables: &'a mut Tables,
    pub(crate) index: &'a mut Index,
}

impl Deref for Writer<'_> {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        self.tables
    }
}

impl DerefMut for Writer<'_> {
    fn deref_mut(&mut self) -> &mut Tables {
        self.tables
    }
}

impl Index {
    /// Makes the index of tables that were filled without one.
    pub(crate) fn of(tables: &Tables) -> Self {
        let mut index = Self { uses: vec![0; tables.views.len()], ..Self::default() };
        for (at, mem) in (0..).zip(tables.views.iter()) {
            let Some(mem) = mem else {
                match tables.ir.views[at as usize].kind {
                    ViewKind::Nothing => index.nothing = Some(ViewId(at)),
                    _ => index.free.push(ViewId(at)),
                }
                continue;
            };
            let root = tables.ir.views[at as usize].root;
            index.roots = index.roots.max(root.0 + 1);
            index.root_of.entry(mem.root()).or_insert(Root { id: root, views: 0, last: None }).views += 1;
            index.view_of.insert(mem.id(), ViewId(at));
        }
        for (at, sampler) in (0..).zip(&tables.samplers) {
            match sampler {
                Some(sampler) => drop(index.sampler_of.insert(sampler.raw().addr(), SamplerId(at))),
                None => index.free_samplers.push(SamplerId(at)),
            }
        }
        // Placed memory stays, even if nothing uses it.
        for view in tables.ir.all_views().chain(tables.placed.iter().flat_map(|placed| placed.values().copied())) {
            index.uses[view.index()] += 1;
        }
        index
    }

    /// Whether any part of the same memory is named.
    pub(crate) fn has(&self, mem: &Mem) -> bool {
        self.root_of.get(&mem.root()).is_some_and(|root| root.views > 0)
    }

    /// Takes the objects that nothing names any more. To be called between changes only: a change under way may have
    /// samplers that no argument names yet.
    pub(crate) fn released(&mut self, tables: &mut Tables) -> Released {
        if self.sampler_of.len() > self.many_samplers.max(16) {
            self.release_samplers(tables);
        }
        std::mem::take(&mut self.released)
    }

    /// As [`released`](Self::released), but does not copy shared tables that have nothing to release.
    pub(crate) fn released_of(&mut self, tables: &mut Arc<Tables>) -> Released {
        if self.sampler_of.len() > self.many_samplers.max(16) {
            return self.released(Arc::make_mut(tables));
        }
        std::mem::take(&mut self.released)
    }

    fn release_samplers(&mut self, tables: &mut Tables) {
        let mut named = vec![false; tables.samplers.len()];
        tables.ir.all_samplers().for_each(|sampler| named[sampler.index()] = true);
        for (at, sampler) in (0..).zip(&mut tables.samplers) {
            let Some(sampler) = sampler.take_if(|_| !named[at as usize]) else { continue };
            self.sampler_of.remove(&sampler.raw().addr());
            self.free_samplers.push(SamplerId(at));
            self.released.samplers.push(sampler);
        }
        self.many_samplers = 2 * self.sampler_of.len();
    }

    /// The id of a buffer that gets one more view.
    fn root(&mut self, mem: &Mem) -> RootId {
        if self.root_of.len() > 2 * self.view_of.len() + 64 {
            self.root_of.retain(|_, root| root.is_known());
        }
        let next = RootId(self.roots);
        let root = self.root_of.entry(mem.root()).or_insert(Root { id: next, views: 0, last: None });
        if !root.is_known() {
            // The buffer is new, or has the handle of a buffer that is gone.
            (root.id, self.roots) = (next, self.roots + 1);
        }
        root.views += 1;
        root.id
    }
}

impl Writer<'_> {
    /// The id of some memory, new or existing. Nothing uses it yet.
    pub(in crate::graph) fn view(&mut self, mem: &Mem) -> ViewId {
        if let Some(&view) = self.index.view_of.get(&mem.id()) {
            return view;
        }
        let root = self.index.root(mem);
        let described = View {
            root,
            root_size: mem.root_size(),
            offset: mem.offset_in_root(),
            size: mem.size(),
            kind: view_kind(mem),
        };
        let view = self.placed(mem, described);
        self.index.view_of.insert(mem.id(), view);
        view
    }

    /// A number for memory that is separate from all other memory.
    pub(in crate::graph) fn new_root(&mut self) -> RootId {
        self.index.roots += 1;
        RootId(self.index.roots - 1)
    }

    /// An id for memory that is described already.
    pub(in crate::graph) fn placed(&mut self, mem: &Mem, described: View) -> ViewId {
        let Self { tables, index } = self;
        if let Some(view) = index.free.pop() {
            (tables.ir.views[view.index()], tables.views[view.index()]) = (described, Some(mem.clone()));
            return view;
        }
        tables.ir.views.push(described);
        tables.views.push(Some(mem.clone()));
        index.uses.push(0);
        ViewId(tables.views.len() as u32 - 1)
    }

    /// The id of memory that a sub-graph has placed. It counts as separate from all other memory, because the
    /// sub-graph's own uses are in order already.
    pub(in crate::graph) fn placed_elsewhere(&mut self, mem: &Mem, described: View) -> ViewId {
        if let Some(&view) = self.index.view_of.get(&mem.id()) {
            return view;
        }
        let root = self.new_root();
        let view = self.placed(mem, View { root, ..described });
        self.index.root_of.entry(mem.root()).or_insert(Root { id: root, views: 0, last: None }).views += 1;
        self.index.view_of.insert(mem.id(), view);
        view
    }

    /// Notes that an argument or an access names the view.
    pub(crate) fn keep(&mut self, view: ViewId) {
        self.index.uses[view.index()] += 1;
    }

    /// Notes that an argument or an access does not name the view any more.
    pub(crate) fn release(&mut self, view: ViewId) {
        let uses = &mut self.index.uses[view.index()];
        *uses = uses.saturating_sub(1);
        self.release_unused(view);
    }

    /// Releases memory that nothing names.
    pub(crate) fn release_unused(&mut self, view: ViewId) {
        let Self { tables, index } = self;
        if index.uses[view.index()] > 0 {
            return;
        }
        let Some(mem) = tables.views[view.index()].take() else { return };
        index.view_of.remove(&mem.id());
        if let Some(root) = index.root_of.get_mut(&mem.root()) {
            root.views -= 1;
            root.last = Some(mem.weak_root());
        }
        index.free.push(view);
        index.released.mems.push(mem);
    }

    /// Releases everything that the arguments of a launch name.
    pub(in crate::graph) fn release_args(&mut self, op: &Op) {
        let Op::Kernel { args, .. } = op else { return };
        for arg in self.ir.args(*args).to_vec() {
            if let Some(view) = arg.view() {
                self.release(view);
            }
        }
    }

    /// The id of a sampler, new or existing.
    pub(crate) fn sampler(&mut self, sampler: &Sampler) -> Option<SamplerId> {
        let Self { tables, index } = self;
        let handle = sampler.raw().addr();
        if let Some(known) = index.sampler_of.get(&handle) {
            return Some(*known);
        }
        let id = match index.free_samplers.pop() {
            Some(id) => id,
            None => {
                tables.samplers.push(None);
                SamplerId(u32::try_from(tables.samplers.len() - 1).ok()?)
            }
        };
        tables.samplers[id.index()] = Some(sampler.clone());
        index.sampler_of.insert(handle, id);
        Some(id)
    }

    /// The id of a region's memory, and the access to its bytes.
    pub(in crate::graph) fn access(&mut self, region: &Region, mode: Mode) -> Access {
        let view = self.view(&region.mem);
        self.keep(view);
        let start = region.mem.offset_in_root() + region.offset;
        Access { view, range: start..start + region.size, mode }
    }

    /// The id of no memory. It is never released.
    pub(in crate::graph) fn nothing(&mut self) -> ViewId {
        if let Some(view) = self.index.nothing {
            return view;
        }
        let root = self.new_root();
        let Self { tables, index } = self;
        tables.ir.views.push(View { root, root_size: 0, offset: 0, size: 0, kind: ViewKind::Nothing });
        tables.views.push(None);
        index.uses.push(0);
        let view = ViewId(tables.views.len() as u32 - 1);
        index.nothing = Some(view);
        view
    }

    /// The access to no memory.
    pub(in crate::graph) fn no_access(&mut self, mode: Mode) -> Access {
        Access { view: self.nothing(), range: 0..0, mode }
    }

    /// The id of a kernel function, new or existing.
    pub(in crate::graph) fn kernel(&mut self, kernel: &Kernel, built: bool) -> KernelId {
        let Self { tables, index } = self;
        let name: Arc<str> = kernel.shared_name();
        if let Some(&id) = index.kernel_of.get(&(kernel.program().raw().addr(), Arc::clone(&name))) {
            return id;
        }
        let id = KernelId(tables.kernels.len() as u32);
        tables.ir.kernels.push(KernelDecl { name: Arc::clone(&name), built, checked: kernel.has_arg_info() });
        index.kernel_of.insert((kernel.program().raw().addr(), name), id);
        tables.kernels.push(kernel.clone());
        id
    }
}
