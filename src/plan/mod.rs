//! The brain: pure functions from a graph, a device's capabilities and options to a [`Plan`]. No OpenCL in here.
//!
//! [`plan`] is the whole pipeline, a pass a file. A plan is a flat list of steps; whoever executes it looks neither at
//! the graph nor at the reasons.

#[cfg(any(test, debug_assertions))]
mod check;
mod intern;
mod lanes;
pub(crate) mod lives;
mod order;
mod parts;
mod path;
pub(crate) mod placement;
mod reduce;
mod steps;
#[cfg(test)]
mod text;
mod ways;

pub(crate) use path::can_hold;
pub use path::{Command, Path, Why};

pub(crate) use lanes::Lanes;
pub(crate) use parts::TaskPlan;
pub(crate) use ways::{CHUNK, Way};

use lives::Lives;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::caps::Caps;
use crate::error::ErrorKind;
use crate::ir::conflicts;
use crate::ir::{AllocId, Arg, Ir, KernelId, NodeId, Span};

/// What a plan is to be made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'a> {
    pub(crate) path: Path,
    /// Whether the environment asked for the path, and not the program.
    pub(crate) from_environment: bool,
    /// Nodes that cannot be in a command buffer although the capabilities say so: a driver refused them.
    pub(crate) denied: &'a BTreeMap<NodeId, Why>,
    /// Why nothing can.
    pub(crate) no_native: Option<Why>,
    /// Commands in one command buffer, at most. None where the program does not say.
    pub(crate) chunk: Option<usize>,
    /// Whether an automatic path is found by measuring.
    pub(crate) measured: bool,
    /// Whether values may change later.
    pub(crate) updatable: bool,
    /// Whether each command is timed.
    pub(crate) profiled: bool,
    pub(crate) conflicts: Conflicts,
}

/// What is known of nodes that use the same memory without an order between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conflicts {
    /// There are none: edges were made by the memory that nodes use.
    Ruled,
    /// There may be some, and they are to be found.
    Sought,
    /// There may be some, and the program wants it so.
    Allowed,
}

/// What to do, in order.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The commands, in the order in which they are enqueued. Nodes that can never do anything have none.
    pub(crate) steps: Vec<Step>,
    /// Consecutive steps that run by the same path.
    pub(crate) segments: Vec<Segment>,
    /// The kernel objects that launches use: one for each kernel and set of argument values.
    pub(crate) objects: Vec<ObjectSpec>,
    /// Whether values may change later.
    pub(crate) updatable: bool,
    /// Whether it has commands that can only be recorded.
    pub(crate) only_recorded: bool,
    /// Where the commands go that can run side by side. None where that is not possible, or not asked for.
    pub(crate) lanes: Option<Lanes>,
    /// How submissions may be enqueued; the first is what is taken before anything is measured.
    pub(crate) ways: Vec<Way>,
    /// Whether the driver does not tell when the first command starts, so that a marker before it has to.
    pub(crate) marked: bool,
    pub(crate) edges: Edges,
    /// When the graph's own memory is needed.
    pub(crate) lives: Lives,
    /// Host tasks, each behind those that it waits for.
    pub(crate) tasks: Vec<TaskPlan>,
    /// What is enqueued together. One without host tasks.
    pub(crate) parts: Vec<Part>,
    /// With host tasks: steps and tasks in one order. Empty without.
    pub(crate) order: Vec<NodeId>,
    /// With host tasks, by node: which part it is in, or [`parts::NONE`].
    pub(crate) part_of: Vec<u32>,
    /// Whether the parts always run in their order.
    pub(crate) in_order: bool,
}

/// Steps that are enqueued together, when the host tasks have succeeded that they wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// By number.
    pub(crate) tasks: Vec<u32>,
    /// Those that wait for it.
    pub(crate) then_tasks: Vec<u32>,
    pub(crate) steps: Range<usize>,
    pub(crate) segments: Range<usize>,
}

impl Plan {
    /// Whether some of it goes into command buffers.
    pub(crate) fn is_native(&self) -> bool {
        self.segments.iter().any(|segment| segment.path == Path::Native)
    }

    /// Commands in one of the command buffers that finalize makes, at most.
    pub(crate) fn chunk(&self) -> usize {
        self.ways.iter().map(|way| way.chunk).find(|chunk| *chunk > 0).unwrap_or(CHUNK)
    }
}

/// What became of the edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edges {
    /// The edges that are left when those implied by a two-step path are gone: source and target.
    pub(crate) needed: Vec<(NodeId, NodeId)>,
    /// Edges removed because a two-step path implies them.
    pub(crate) implied_by_path: usize,
    /// Edges of `needed` that cost nothing, because both ends are in one lane, whose order implies them.
    pub(crate) implied_by_lane: usize,
}

/// A command: a node, whose [`Op`](crate::ir::Op) says what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) node: NodeId,
    /// Of a launch.
    pub(crate) object: Option<ObjectId>,
}

/// Which kernel object a launch uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectId(pub(crate) u32);

impl ObjectId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A kernel with argument values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectSpec {
    pub(crate) kernel: KernelId,
    pub(crate) args: Span,
    /// The first node that uses it, for error texts.
    pub(crate) first: NodeId,
}

/// Consecutive steps that run by one path, and why by that one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) steps: Range<usize>,
    pub(crate) path: Path,
    pub(crate) why: Why,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlanError {
    /// The nodes on a cycle, in order.
    Cycle(Vec<NodeId>),
    /// A node that no path can run on the device.
    NotRunnable { node: NodeId, missing: String, kind: ErrorKind },
    /// Two nodes that use the same memory, and that nothing orders.
    Conflict(NodeId, NodeId),
    /// Memory of the graph's own that a node uses behind the one that frees it.
    Late { alloc: AllocId, freed: NodeId, node: NodeId, why: &'static str },
    /// Memory of the graph's own that a node uses before it is there.
    Early { alloc: AllocId, node: NodeId },
    /// The checker found the plan wrong. A defect of clgraph.
    Defect(String),
}

/// Plans a graph for a device.
pub(crate) fn plan(ir: &Ir, caps: &Caps, options: &Options<'_>) -> Result<Plan, PlanError> {
    let mut order = order::order(ir)?;
    let parts::Parts { tasks, parts, of: part_of, in_order } = parts::parts(ir, &mut order)?;
    path::check_runnable(ir, caps, options)?;
    if options.conflicts == Conflicts::Sought
        && let Some((first, second)) = conflicts::Conflicts::new(ir, order.clone()).find(ir, conflicts::all_uses(ir))
    {
        return Err(PlanError::Conflict(first, second));
    }
    let lives = lives::lives(ir, &order, options.updatable)?;
    let mut edges = reduce::reduce(ir);
    let (objects, object_of) = intern::intern(ir, &order, options.updatable);
    let steps = steps::steps(ir, &order, &object_of, options.updatable);
    let mut segments = Vec::new();
    let parts = place(&order, &steps, &parts, |steps_of| {
        let start = segments.len();
        segments.extend(path::partition(ir, &steps, steps_of, caps, options));
        start..segments.len()
    });
    // On the in-order queue that the executable runs on, if it does not go side by side.
    let is_host = |node: &NodeId| ir.op(*node).is_host();
    edges.implied_by_lane = edges.needed.iter().filter(|(from, to)| !is_host(from) && !is_host(to)).count();
    let may_spread = tasks.is_empty() && path::may_spread(ir, &steps, caps, options);
    let lanes = if may_spread { lanes::lanes(ir, &order, &steps, &edges) } else { None };
    let ways = ways::ways(ir, &steps, &segments, !tasks.is_empty(), lanes.as_ref(), caps, options);
    let marked = path::marked(ir, &steps, &segments, caps);
    let only_recorded = segments.iter().any(|segment: &Segment| segment.why == Why::OnlyRecorded);
    let updatable = options.updatable;
    let order_with_tasks = if tasks.is_empty() { Vec::new() } else { order.clone() };
    let plan = Plan {
        order: order_with_tasks,
        steps,
        segments,
        objects,
        updatable,
        only_recorded,
        lanes,
        ways,
        marked,
        edges,
        lives,
        tasks,
        parts,
        part_of,
        in_order,
    };
    #[cfg(any(test, debug_assertions))]
    check::check(ir, &order, &plan, options).map_err(PlanError::Defect)?;
    Ok(plan)
}

/// Where the parts are among the steps, which stand in the order of nodes.
fn place(
    order: &[NodeId],
    steps: &[Step],
    parts: &[parts::Part],
    mut cut: impl FnMut(Range<usize>) -> Range<usize>,
) -> Vec<Part> {
    let mut step = 0;
    let part = |part: &parts::Part| {
        let start = step;
        for node in &order[part.nodes.clone()] {
            step += usize::from(steps.get(step).is_some_and(|step| step.node == *node));
        }
        let (tasks, then_tasks) = (part.tasks.clone(), part.then_tasks.clone());
        Part { tasks, then_tasks, steps: start..step, segments: cut(start..step) }
    };
    parts.iter().map(part).collect()
}

/// Whether two nodes' arguments are equal, by value.
fn same_args(ir: &Ir, a: Span, b: Span) -> bool {
    let (a, b) = (ir.args(a), ir.args(b));
    a.len() == b.len()
        && a.iter().zip(b).all(|pair| match pair {
            (Arg::Value(a), Arg::Value(b)) => ir.bytes(*a) == ir.bytes(*b),
            (a, b) => a == b,
        })
}
