//! The planner: pure functions from a graph, a device's capabilities and options to a [`Plan`]. No OpenCL in here.
//!
//! Input: the tables of a graph, and what the device can do. Output: a plan, which is a flat list of steps with ranges
//! into this list. [`plan`] calls the passes; each pass has a file. The code that executes a plan needs neither the
//! graph nor the reasons of the planner.
//!
//! | file | pass, or what is there |
//! |---|---|
//! | `order.rs` | an order in which every node comes after its predecessors |
//! | `partitions.rs` | what can be enqueued together, in a graph with host tasks or external events |
//! | `runnable.rs` | whether the device can run every node by any path |
//! | `lifetimes.rs`, `graph_memory.rs`, `placement.rs` | when memory that the graph owns is needed; where it lies in arenas |
//! | `reduce.rs` | edges that a path of two other edges implies are left out |
//! | `intern.rs` | which launches share a kernel object |
//! | `steps.rs` | the flat list of commands |
//! | `segments.rs`, `path.rs` | runs of commands that take one path, and why |
//! | `command_kind.rs` | the kinds of commands, and which a command buffer can hold |
//! | `streams.rs` | which of several in-order queues each command goes to |
//! | `schedule.rs` | the schedule: what a submission does, as instructions over one or several queues |
//! | `exclusions.rs` | what cannot be combined with several queues or a gate, and why |
//! | `strategies.rs` | how a submission may be enqueued; the autotuner finds the fastest |
//! | `check.rs`, `check/segments.rs` | the independent checker, in tests and debug builds |
//! | `text` | graphs and plans as text: the tests of all passes, without a device |
//!
//! Read [`plan`] first, then `text/mod.rs` for examples. What is known of a driver comes from `quirks.rs`.
//!
//! Invariants: no pass changes the graph, and each plan is checked by code that shares nothing with the passes.
//! Rules: B7, D4, D5, F4, F5, M3.

#[cfg(any(test, debug_assertions))]
mod check;
mod command_kind;
mod exclusions;
mod graph_memory;
mod intern;
mod lifetimes;
mod order;
mod partitions;
mod path;
mod placement;
mod reduce;
mod runnable;
mod schedule;
mod segments;
mod steps;
mod strategies;
mod streams;
#[cfg(test)]
mod text;

pub use command_kind::CommandKind;
pub use exclusions::Exclusion;
pub use path::{Path, PathReason};
pub(crate) use segments::can_hold;

pub(crate) use graph_memory::{MemoryLayout, MemoryOptions};
pub(crate) use partitions::TaskPlan;
pub(crate) use placement::{Life, Spot};
pub(crate) use schedule::{Instruction, Schedule};
pub(crate) use strategies::{CHUNK, Strategy};

use exclusions::Facts;
use lifetimes::Lifetimes;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::caps::Caps;
use crate::command::Arg;
use crate::error::ErrorKind;
use crate::ir::conflicts;
use crate::ir::flows::{self, Flows};
use crate::ir::{AllocId, Ir, KernelId, NodeId, Span};

/// What a plan is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'a> {
    pub(crate) path: Path,
    /// Whether the environment, not the program, asked for the path.
    pub(crate) from_environment: bool,
    /// Nodes that the driver refused to record, although the capabilities allow it, and why.
    pub(crate) denied: &'a BTreeMap<NodeId, PathReason>,
    /// Why nothing can be recorded. None if it can.
    pub(crate) no_native: Option<PathReason>,
    /// The largest number of commands in one command buffer. None if the program does not say.
    pub(crate) chunk: Option<usize>,
    /// Whether an automatic path is found by measuring.
    pub(crate) autotune: bool,
    /// Whether values may change later.
    pub(crate) updatable: bool,
    /// The arguments of kernels that parameters give, in the order of the table of arguments. Empty if no value may change.
    pub(crate) parameters: &'a [u32],
    /// Whether each command is timed.
    pub(crate) profiled: bool,
    pub(crate) conflicts: Conflicts,
    pub(crate) memory: MemoryOptions,
}

/// What is known about conflicts: nodes that use the same memory without an order between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conflicts {
    /// There are none, because edges were made from the memory that nodes use.
    Impossible,
    /// There may be some, and the planner has to find them.
    ToFind,
    /// There may be some, and the program allows them.
    Allowed,
}

/// What to do, in order.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The commands, in the order in which they are enqueued. A node that can never do anything has none.
    pub(crate) steps: Vec<Step>,
    /// Consecutive steps that run by the same path.
    pub(crate) segments: Vec<Segment>,
    /// The kernel objects that launches use: one for each kernel and set of argument values.
    pub(crate) objects: Vec<ObjectSpec>,
    /// Whether values may change later.
    pub(crate) updatable: bool,
    /// Whether it has commands that can only be recorded.
    pub(crate) only_recorded: bool,
    /// What runs together: first the graph itself, then the bodies of branches and loops.
    pub(crate) flows: Vec<Flow>,
    /// What it does on several queues, where commands can run side by side. None if that is not possible, or not asked
    /// for.
    pub(crate) on_streams: Option<Schedule>,
    /// Paths that were asked for, or may be faster, and that the graph or the driver excludes.
    pub(crate) excluded: Vec<(Path, Exclusion)>,
    /// How submissions may be enqueued. The first strategy is used before anything is measured.
    pub(crate) strategies: Vec<Strategy>,
    /// Whether the driver does not report when the first command starts, so that a marker before it has to.
    pub(crate) marked: bool,
    pub(crate) edges: Edges,
    /// When the graph's own memory is needed.
    pub(crate) lifetimes: Lifetimes,
    /// Where it lies.
    pub(crate) layout: MemoryLayout,
    /// With host tasks: steps and tasks in one order, in which bodies come after their branch or loop. Empty without.
    pub(crate) order: Vec<NodeId>,
    /// With host tasks, by node: its flow, and its partition there, or [`partitions::NONE`]. Empty without.
    pub(crate) place_of: Vec<(u32, u32)>,
}

/// What runs together: the graph itself, or one turn of a body of a branch or loop. Numbers of tasks and partitions count
/// within it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) steps: Range<usize>,
    /// How many host tasks, branches and loops the flows before it have.
    pub(crate) first_task: usize,
    /// Host tasks, branches and loops, each after those that it waits for.
    pub(crate) tasks: Vec<TaskPlan>,
    /// Which commands are enqueued together. One partition without host tasks.
    pub(crate) partitions: Vec<Partition>,
    /// What a submission does on one queue.
    pub(crate) schedule: Schedule,
}

/// Steps that are enqueued together, after the host tasks that they wait for have succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Partition {
    /// The numbers of the tasks that it waits for.
    pub(crate) tasks: Vec<u32>,
    /// The tasks that wait for it.
    pub(crate) then_tasks: Vec<u32>,
    pub(crate) steps: Range<usize>,
    pub(crate) segments: Range<usize>,
}

impl Plan {
    /// The flow of the graph itself.
    #[inline]
    pub(crate) fn main(&self) -> &Flow {
        &self.flows[0]
    }

    /// The host tasks, branches and loops of all flows.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = &TaskPlan> {
        self.flows.iter().flat_map(|flow| &flow.tasks)
    }

    /// Whether some of its steps are in command buffers.
    pub(crate) fn is_native(&self) -> bool {
        self.segments.iter().any(|segment| segment.path == Path::Native)
    }

    /// Returns the largest number of commands in one of the command buffers that finalize makes.
    pub(crate) fn chunk(&self) -> usize {
        self.strategies.iter().map(|strategy| strategy.chunk).find(|chunk| *chunk > 0).unwrap_or(CHUNK)
    }
}

/// What became of the edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edges {
    /// The edges that are left without those that a two-step path implies: source and target.
    pub(crate) needed: Vec<(NodeId, NodeId)>,
    /// The number of edges that were removed because a two-step path implies them.
    pub(crate) implied_by_path: usize,
    /// The number of edges of `needed` that cost nothing, because both ends are on one queue, whose order implies them.
    pub(crate) implied_by_queue: usize,
}

/// A command: a node, whose [`Command`](crate::command::Command) says what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) node: NodeId,
    /// The kernel object of a launch.
    pub(crate) object: Option<ObjectId>,
}

/// Which kernel object a launch uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    pub(crate) why: PathReason,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlanError {
    /// The nodes on a cycle, in order.
    Cycle(Vec<NodeId>),
    /// A node that no path can run on the device.
    NotRunnable { node: NodeId, missing: String, kind: ErrorKind },
    /// Two nodes that use the same memory without an order between them.
    Conflict(NodeId, NodeId),
    /// Memory of the graph's own that a node uses after the node that frees it.
    Late { alloc: AllocId, freed: NodeId, node: NodeId, why: &'static str },
    /// Memory of the graph's own that a node uses before it exists.
    Early { alloc: AllocId, node: NodeId },
    /// `usize` cannot count the bytes of the graph's own memory.
    MemoryTooLarge,
    /// The checker found the plan wrong: a defect of clgraph.
    Defect(String),
}

/// Plans a graph for a device.
pub(crate) fn plan(ir: &Ir, caps: &Caps, options: &Options<'_>) -> Result<Plan, PlanError> {
    let flows = Flows::new(ir);
    let mut divided = Vec::with_capacity(flows.count());
    let mut orders = flows.divide(order::order(ir)?);
    for order in &mut orders {
        divided.push(partitions::partitions(ir, order, &flows)?);
    }
    let order = flows::nested(ir, &orders);
    runnable::check_runnable(ir, caps, options)?;
    if options.conflicts == Conflicts::ToFind
        && let Some((first, second)) = conflicts::Conflicts::new(ir, order.clone()).find(ir, conflicts::all_uses(ir))
    {
        return Err(PlanError::Conflict(first, second));
    }
    let lifetimes = lifetimes::lifetimes(ir, &order, options.updatable)?;
    let mut layout = graph_memory::layout(ir, &lifetimes, &options.memory, divided[0].in_order)?;
    let mut edges = reduce::reduce(ir);
    let (objects, object_of) = intern::intern(ir, &order, options);
    let steps = steps::steps(ir, &orders, &object_of, options.updatable);
    let (mut segments, mut planned) = (Vec::new(), Vec::with_capacity(orders.len()));
    let (mut placed, mut next_task) = (0, 0);
    for (order, divided) in orders.iter().zip(&mut divided) {
        let first = placed;
        let partitions = place(order, &steps, &mut placed, &divided.partitions, |steps_of| {
            let start = segments.len();
            segments.extend(segments::segments(ir, &steps, steps_of, caps, options));
            start..segments.len()
        });
        divided.only_commands(ir, order, &flows, |partition| !partitions[partition].steps.is_empty());
        let schedule = Schedule::on_one_stream(&segments, &partitions, &divided.tasks);
        let tasks = std::mem::take(&mut divided.tasks);
        let first_task = next_task;
        next_task += tasks.len();
        planned.push(Flow { steps: first..placed, first_task, tasks, partitions, schedule });
    }
    // An edge between two commands costs nothing, because the in-order queue keeps their order; unless commands run
    // side by side.
    let is_host = |node: &NodeId| ir.command(*node).is_host();
    edges.implied_by_queue = edges.needed.iter().filter(|(from, to)| !is_host(from) && !is_host(to)).count();
    let has_tasks = !planned[0].tasks.is_empty();
    let facts = Facts { ir, steps: &steps, has_tasks, caps, options };
    let streams = match facts.no_queues() {
        Some(why) => Err(why),
        // Finding the streams takes long.
        None if !facts.wants(Path::Queues) => Err(Exclusion::OneChain),
        None => streams::streams(ir, &order, &steps, &edges, &divided[0], &planned[0].tasks),
    };
    let streams = streams.and_then(|found| {
        graph_memory::on_streams(ir, &steps, &found, &lifetimes, options, &mut layout)?;
        Ok(found.streams)
    });
    let main = &planned[0];
    let on_streams = streams.map(|streams| Schedule::on_streams(&streams, &main.partitions, main.tasks.len()));
    let queues = on_streams.as_ref().map(|schedule| schedule.streams).map_err(|why| *why);
    let mut excluded = Vec::new();
    let strategies = strategies::strategies(&facts, &segments, queues, &mut excluded);
    let on_streams = on_streams.ok();
    let marked = segments::marked(ir, &steps, &segments, caps);
    let only_recorded = segments.iter().any(|segment: &Segment| segment.why == PathReason::OnlyRecorded);
    let updatable = options.updatable;
    let order_with_tasks = if has_tasks { order.clone() } else { Vec::new() };
    let place_of = |node: NodeId| {
        let flow = flows.of(node);
        (flow as u32, divided[flow].of.get(node.index()).copied().unwrap_or(0))
    };
    let place_of = if has_tasks { ir.ids().map(place_of).collect() } else { Vec::new() };
    let plan = Plan {
        order: order_with_tasks,
        steps,
        segments,
        objects,
        updatable,
        only_recorded,
        flows: planned,
        on_streams,
        excluded,
        strategies,
        marked,
        edges,
        lifetimes,
        layout,
        place_of,
    };
    #[cfg(any(test, debug_assertions))]
    check::check(ir, &order, &plan, options).map_err(PlanError::Defect)?;
    Ok(plan)
}

/// Returns where the partitions of a flow are among the steps, which are in the order of nodes: from `next` on.
fn place(
    order: &[NodeId],
    steps: &[Step],
    next: &mut usize,
    partitions: &[partitions::NodePartition],
    mut cut: impl FnMut(Range<usize>) -> Range<usize>,
) -> Vec<Partition> {
    let partition = |partition: &partitions::NodePartition| {
        let start = *next;
        for node in &order[partition.nodes.clone()] {
            *next += usize::from(steps.get(*next).is_some_and(|step| step.node == *node));
        }
        let (tasks, then_tasks) = (partition.tasks.clone(), partition.then_tasks.clone());
        Partition { tasks, then_tasks, steps: start..*next, segments: cut(start..*next) }
    };
    partitions.iter().map(partition).collect()
}

/// Returns whether two nodes' arguments are equal, by value.
fn same_args(ir: &Ir, a: Span, b: Span) -> bool {
    let (a, b) = (ir.args(a), ir.args(b));
    a.len() == b.len()
        && a.iter().zip(b).all(|pair| match pair {
            (Arg::Value(a), Arg::Value(b)) => ir.bytes(*a) == ir.bytes(*b),
            (a, b) => a == b,
        })
}
