//! The tables of a graph: its commands as plain data, and the objects that the ids in the data stand for.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::cl::memory::host::HostBytes;
use crate::cl::memory::region::Region;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::kernel::Kernel;
use crate::cl::objects::sampler::Sampler;
use crate::command::Command;
use crate::graph::Flat;
use crate::graph::nodes::command_group::Group;
use crate::graph::nodes::host_task::TaskFn;
use crate::graph::nodes::native_command::NativeFn;
use crate::graph::nodes::task_group::TaskGroup;
use crate::graph::parameters::Cell;
use crate::graph::ports::Ports;
use crate::handles::NodeKind;
use crate::ir::{Access, AllocId, Ir, KernelId, Mark, Mode, NodeId, SamplerId, Span, ViewId, ViewKind};

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
    /// Whether some launch was declared to write an argument that is `const`. It may be gone.
    pub(crate) has_written_const: bool,
    /// The kernels that do the turns of the loop whose body they are, and their states.
    pub(crate) turning: FxHashMap<KernelId, Mem>,
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

    /// Whether a node is a fused kernel, in a graph that had so many kernels before.
    pub(crate) fn is_fused(&self, node: NodeId, before: usize) -> bool {
        matches!(self.ir.command(node), Command::Kernel { kernel, .. } if kernel.index() >= before)
    }

    /// The memory of a view. Every view that a node names has memory, except the view of null pointers.
    pub(crate) fn mem(&self, view: ViewId) -> Option<&Mem> {
        self.views.get(view.index())?.as_ref()
    }

    /// Whether a node declares a use of all of these bytes. A use of the buffer counts for bytes of the buffer, and a
    /// use of a sub-buffer or of an image made of the buffer counts for bytes of the same sub-buffer or image.
    pub(crate) fn declares(&self, node: NodeId, region: &Region, mode: Mode) -> bool {
        let start = region.mem.offset_in_root() + region.offset;
        let is_part =
            matches!(crate::graph::writer::view_kind(&region.mem), ViewKind::SubBuffer | ViewKind::ImageOfBuffer);
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
        self.labels.get(&node).or_else(|| match self.ir.command(node) {
            Command::Task(task) => self.tasks[task.index()].label(),
            _ => None,
        })
    }

    /// The kind and the label of a node, for error texts.
    pub(crate) fn describe(&self, node: NodeId) -> String {
        let what = match self.ir.command(node) {
            Command::Kernel { kernel, .. } => format!("kernel `{}`", self.ir.kernels[kernel.index()].name),
            op => NodeKind::of(op).to_string(),
        };
        match self.label(node) {
            Some(label) => format!("{what}, \"{label}\""),
            None => what,
        }
    }

    /// The descriptions of two nodes that conflict, with the bytes of the shared memory that they use.
    pub(crate) fn describe_uses(&self, first: NodeId, second: NodeId) -> (String, String) {
        let (ir, describe) = (&self.ir, |node| self.describe(node));
        let pairs = ir.accesses(first).iter().flat_map(|a| ir.accesses(second).iter().map(move |b| (a, b)));
        let Some((a, b)) = pairs.into_iter().find(|(a, b)| a.conflicts_with(b, &ir.views)) else {
            return (describe(first), describe(second));
        };
        let describe_use = |node, of: &Access| {
            let verb = if of.mode.writes() { "writes" } else { "reads" };
            match self.mem(of.view).and_then(Mem::image) {
                Some(image) => format!("{} {verb} an {}", describe(node), image.shape.kind()),
                None => format!("{} {verb} bytes {:?}", describe(node), of.range),
            }
        };
        (describe_use(first, a), describe_use(second, b))
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

    /// Whether it was made of a recorded body, and the body of another recording may take its place: it has no memory of its own, and
    /// no executables of the program, whose uses never overlap.
    fn is_replaceable(&self) -> bool;

    /// Whether its values can change.
    fn can_change(&self) -> bool;

    /// Gives a recorded body what its graph has now. The caller holds no lock.
    fn refresh(&self) -> crate::error::Result<()>;
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
