//! Writing into the tables of a graph: objects get ids, each object once, and are released when nothing names them.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::cl::memory::host::HostBytes;
use crate::cl::memory::region::Region;
use crate::cl::memory::untyped::{GraphAllocation, Mem, MemId, WeakRoot};
use crate::cl::objects::kernel::Kernel;
use crate::cl::objects::sampler::Sampler;
use crate::command::Command;
use crate::graph::nodes::host_task::TaskFn;
use crate::graph::nodes::native_command::NativeFn;
use crate::graph::tables::{Child, Tables};
use crate::ir::{
    Access, AllocId, ArenaId, ById, ChildId, DataId, ExternalId, KernelDecl, KernelId, Mode, NativeId, ResultId,
    RootId, SamplerId, TaskId, View, ViewId, ViewKind,
};

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
    /// The memory in which executables have placed allocations.
    arena_of: FxHashMap<MemId, ArenaId>,
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

pub(in crate::graph) fn view_kind(mem: &Mem) -> ViewKind {
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

impl Tables {
    /// Gives a view memory of the same kind and size in place of its own, which is returned. Only the fused kernel that has it knows it.
    pub(crate) fn renew(&mut self, index: Option<&mut Index>, view: ViewId, mem: Mem) -> Option<Mem> {
        let place = self.views.get_mut(view.index())?;
        let old = place.replace(mem);
        if let (Some(index), Some(old)) = (index, &old) {
            index.view_of.remove(&old.id());
            index.root_of.remove(&old.root());
        }
        old
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

    /// The number of the arena in which an executable has placed some memory.
    pub(in crate::graph) fn arena(&mut self, mem: &Mem) -> ArenaId {
        let next = ArenaId(self.index.arena_of.len() as u32);
        *self.index.arena_of.entry(mem.root()).or_insert(next)
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
        // Another view of the same memory may have its place in the index.
        if index.view_of.get(&mem.id()) == Some(&view) {
            index.view_of.remove(&mem.id());
        }
        if let Some(root) = index.root_of.get_mut(&mem.root()) {
            root.views -= 1;
            root.last = Some(mem.weak_root());
        }
        index.free.push(view);
        index.released.mems.push(mem);
    }

    /// Releases everything that the arguments of a launch name.
    pub(in crate::graph) fn release_args(&mut self, op: &Command<ById>) {
        let Command::Kernel { args, .. } = op else { return };
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

    /// Adds the host data of a write. Returns `None` when a table is full, as the next functions do.
    pub(in crate::graph) fn data(&mut self, data: HostBytes) -> Option<DataId> {
        let id = DataId(self.ir.data);
        self.ir.data = id.0.checked_add(1)?;
        self.tables.data.push(data);
        Some(id)
    }

    /// Adds a result of so many bytes.
    pub(in crate::graph) fn output(&mut self, size: usize) -> Option<ResultId> {
        let id = ResultId(self.ir.results);
        self.ir.results = id.0.checked_add(1)?;
        self.results.push(size);
        Some(id)
    }

    /// Adds the function of a host task.
    pub(in crate::graph) fn task(&mut self, task: TaskFn) -> Option<TaskId> {
        let id = TaskId(self.ir.tasks);
        self.ir.tasks = id.0.checked_add(1)?;
        self.tasks.push(task);
        Some(id)
    }

    /// Adds an external event.
    pub(in crate::graph) fn external(&mut self) -> Option<ExternalId> {
        let id = ExternalId(self.ir.externals);
        self.ir.externals = id.0.checked_add(1)?;
        Some(id)
    }

    /// Adds the functions of a native command.
    pub(in crate::graph) fn native(&mut self, functions: NativeFn) -> Option<NativeId> {
        let id = NativeId(self.ir.natives);
        self.ir.natives = id.0.checked_add(1)?;
        self.natives.push(functions);
        Some(id)
    }

    /// Adds an executable.
    pub(in crate::graph) fn child(&mut self, child: Child) -> Option<ChildId> {
        let id = ChildId(u32::try_from(self.children.len()).ok()?);
        self.children.push(child);
        Some(id)
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
