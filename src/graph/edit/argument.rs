//! One argument of a kernel node becomes another one.

use crate::cl::memory::region::Region;
use crate::cl::objects::device::Device;
use crate::cl::objects::kernel::Kernel;
use crate::command::{Arg, Command, Elementwise};
use crate::error::{BuildCause, BuildError, Result};
use crate::graph::edit::change::other_kind;
use crate::graph::nodes::launch::{BoundArgument, Launch};
use crate::graph::nodes::range::Extent;
use crate::graph::nodes::request::ByHandle;
use crate::graph::tables::Tables;
use crate::graph::{After, Graph};
use crate::handles::Node;
use crate::ir::NodeId;

impl Graph {
    /// Returns the kernel of a kernel node.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Graph, Program, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// # let zero = Program::from_source(&queue, "kernel void zero(global int *a) { a[get_global_id(0)] = 0; }")?.kernel("zero")?;
    /// # let (graph, numbers) = (Graph::new(&queue)?, Buffer::<i32>::new(&queue, 4)?);
    /// // SAFETY: a work-item touches its own element.
    /// let node = unsafe { graph.kernel(&zero).write(&numbers).range(4).add()? };
    /// assert_eq!(graph.kernel_of(node)?.name(), "zero");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`BuildCause::OtherKind`] for a node that is not a kernel; [`BuildCause::OtherGraph`].
    pub fn kernel_of(&self, node: impl Into<Node>) -> Result<Kernel> {
        let (node, state) = (node.into(), self.lock());
        let fail = |cause| BuildError::new(format!("kernel of {node}"), cause);
        let id = self.resolve(&state, node).map_err(fail)?;
        match state.ir.command(id) {
            Command::Kernel { kernel, .. } => Ok(state.kernels[kernel.index()].clone()),
            op => Err(fail(other_kind(node, op, "its kernel", "only kernel nodes have one")).into()),
        }
    }

    /// Gives a kernel node the argument at `from` of a launch. Memory is used as the launch says, or, with `as_before`, as the memory
    /// before.
    pub(crate) fn put_arg(
        &self,
        node: Node,
        index: usize,
        (given, from, as_before): (Launch, usize, bool),
        after: &After,
    ) -> Result<()> {
        self.replace_by(node, after, format!("argument {index} of {node}"), |state, id| {
            let Some(mut launch) = Launch::of_node(&state.tables, self.device(), id) else {
                let why = "only kernel nodes have arguments";
                return Err(other_kind(node, state.ir.command(id), "another argument", why));
            };
            let count = launch.args.len();
            if index >= count {
                return Err(BuildCause::ArgumentIndex { index, count });
            }
            if given.args.len() != from + 1 {
                let why = format!("{} arguments were given: give the one that is to be replaced", given.args.len());
                return Err(BuildCause::Replace { node, why });
            }
            let is_image = |arg: &Arg<ByHandle>| match arg {
                Arg::Memory((region, _)) => region.mem.image().is_some(),
                _ => false,
            };
            if is_image(&launch.args[index]) != is_image(&given.args[from]) {
                let (old, new) = (launch.args[index].what(), given.args[from].what());
                return Err(BuildCause::Replace {
                    node,
                    why: format!("its argument {index} is {old}, but {new} was given"),
                });
            }
            launch.change(index, given, as_before);
            Ok(launch)
        })
    }
}

impl Launch {
    /// Returns the launch of a node that is a kernel.
    fn of_node(tables: &Tables, device: &Device, node: NodeId) -> Option<Self> {
        let Command::Kernel { kernel, args, grid, bound, prints, elementwise } = tables.ir.command(node) else {
            return None;
        };
        let mut launch = Self::new(tables.kernels.get(kernel.index())?);
        let extent = |sizes: &[usize; 3]| Extent::of(&sizes[..grid.dims as usize]);
        launch.range = Some(extent(&grid.global));
        launch.offset = (grid.offset != [0; 3]).then(|| extent(&grid.offset));
        launch.work_group = grid.local.as_ref().map(extent);
        launch.bound = bound.as_deref().map(extent);
        launch.prints = *prints;
        launch.elementwise = elementwise.as_deref().map(Elementwise::list).unwrap_or_default();
        let mut uses = tables.ir.accesses(node).iter();
        for arg in tables.ir.args(*args) {
            let used = if arg.view().is_some() { uses.next() } else { None };
            let region = || {
                let mem = tables.mem(used?.view)?.clone();
                let (offset, size) = (used?.range.start - mem.offset_in_root(), used?.range.len());
                Some((Region { mem, offset, size }, used?.mode))
            };
            match arg {
                Arg::Memory(_) => launch.args.push(Arg::Memory(region()?)),
                Arg::Indirect(_) => launch.indirect.push(region()?),
                Arg::Null(_) => launch.args.push(Arg::Null(used?.mode)),
                Arg::Unused(_) => launch.unused += 1,
                Arg::Local(size) => launch.args.push(Arg::Local(*size)),
                Arg::Sampler(sampler) => launch.args.push(Arg::Sampler(tables.sampler_of(*sampler)?.clone())),
                Arg::Value(span) => launch.value(tables.ir.bytes(*span)),
                Arg::Global(view) => {
                    let mem = tables.mem(*view)?;
                    let built = launch.kernel.place_of(device);
                    let of = launch.kernel.globals_at(built).find(|(_, of)| of.id() == mem.id());
                    let of = of.map(|(global, _)| *global);
                    launch.uses_global(of.zip(used.map(|used| used.mode)));
                }
            }
        }
        if launch.kernel.has_globals() {
            // Those that are not listed are not used.
            launch.uses_global(None);
        }
        for binding in &tables.bindings[tables.bindings(*args)] {
            let arg = (binding.arg - args.ends().0) as usize;
            launch.parameter_bound.push(BoundArgument::of(arg, binding));
        }
        Some(launch)
    }

    /// Gives the launch the last argument of another one.
    fn change(&mut self, index: usize, given: Self, as_before: bool) {
        let Some(from) = given.args.len().checked_sub(1) else { return };
        let before = match &self.args[index] {
            Arg::Memory((_, mode)) | Arg::Null(mode) => Some(*mode),
            _ => None,
        };
        self.args[index] = match given.args.into_iter().next_back() {
            Some(Arg::Value((range, number))) => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(&given.bytes[range]);
                Arg::Value((start..self.bytes.len(), number))
            }
            Some(Arg::Memory((region, mode))) => Arg::Memory((region, before.filter(|_| as_before).unwrap_or(mode))),
            Some(Arg::Null(mode)) => Arg::Null(before.unwrap_or(mode)),
            Some(other) => other,
            None => return,
        };
        self.parameter_bound.retain(|bound| bound.arg != index);
        let bound = given.parameter_bound.into_iter().filter(|bound| bound.arg == from);
        self.parameter_bound.extend(bound.map(|bound| bound.at(index)));
        self.parameter_bound.sort_by_key(|bound| bound.arg);
        if let Some((_, bytes)) = given.elementwise.iter().find(|(of, _)| *of == from) {
            self.elementwise.retain(|(of, _)| *of != index);
            self.elementwise.push((index, *bytes));
        }
        self.misplaced = given.misplaced;
    }
}
