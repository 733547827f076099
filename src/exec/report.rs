//! What finalize decided, as data and as text.

use std::fmt;
use std::ops::Range;

use super::choice::{Choice, Times};
use crate::caps::{Caps, MutableCaps};
use crate::cl::device::Device;
use crate::cl::program_globals::GlobalBinding;
use crate::graph::{Flat, NodeKind, Tables, WritesConst};
use crate::ir::{NodeId, Op};
use crate::known::{self, Driver};
use crate::plan::{Path, Plan, Segment, Way, Why};

/// What finalize decided, and why. Shown as text by its `Display`.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// # use clgraph::{Buffer, Finalize, Graph, Path, Queue};
/// # let queue = Queue::new(&clgraph::best_device()?)?;
/// let (graph, buffer) = (Graph::new(&queue)?, Buffer::<u32>::new(&queue, 4)?);
/// graph.fill(&buffer, 7).add()?;
/// graph.read(&buffer).add()?;
/// let report = graph.finalize(Finalize::new().path(Path::Replay))?.report();
/// assert_eq!((report.nodes, report.edges, report.commands), (2, 1, 2));
/// for part in &report.segments {
///     println!("{} commands by {}: {}", part.commands, part.path, part.why);
/// }
/// println!("{report}"); // all of it
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The device's name, with its platform.
    pub device: String,
    /// Nodes of the graph, a sub-graph counted as one.
    pub nodes: usize,
    /// Edges of the graph.
    pub edges: usize,
    /// The sub-graphs, in the order of their nodes.
    pub sub_graphs: Vec<SubGraphReport>,
    /// Edges that were dropped because a path of two others implies them.
    pub edges_implied_by_path: usize,
    /// Edges that cost nothing, because an in-order queue runs one command after the other anyway.
    pub edges_implied_by_queue: usize,
    /// The other edges, of what sub-graphs were written out to as well: an event or the host keeps their order.
    pub edges_kept: usize,
    /// Commands of a submission, sub-graphs written out: enqueued one by one where they are replayed, and in command
    /// buffers elsewhere. Nodes that do nothing have none.
    pub commands: usize,
    /// The parts that run by one path each, in order.
    pub segments: Vec<SegmentReport>,
    /// The nodes that the host does: they cut a submission into parts.
    pub host_nodes: Vec<HostNodeReport>,
    /// How submissions are enqueued, and what timing them has shown.
    pub choice: ChoiceReport,
    /// How updates reach the commands. None where nothing can be updated.
    pub updates: Option<UpdateReport>,
    /// Arguments that have parameters and keep the values that they had at finalize, because nothing can be updated.
    pub fixed_parameters: usize,
    /// Kernel objects that were made: one for each kernel and set of argument values.
    pub kernel_objects: usize,
    /// Kernels whose arguments could not be checked, because their program does not tell their types.
    pub unchecked_kernels: Vec<String>,
    /// The memory that belongs to the graph.
    pub memory: MemoryReport,
    /// The device globals of all programs that have a kernel in the graph, and how kernels get to them.
    pub globals: Vec<GlobalBinding>,
    /// What is allowed and perhaps not meant.
    pub warnings: Vec<String>,
}

/// How submissions are enqueued, and what timing them has shown. That of an automatic path changes as submissions are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChoiceReport {
    /// How it stands.
    pub state: ChoiceState,
    /// The ways that there are; the first is what was taken before anything was timed.
    pub ways: Vec<WayReport>,
    /// How often all rounds of timing have ended: where others were about as fast as the one that is taken, these are timed again soon.
    pub trials: usize,
}

/// How it stands with the choice of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChoiceState {
    /// There is nothing to choose, or nothing is to be timed.
    #[default]
    Fixed,
    /// Submissions are timed.
    Trying,
    /// The fastest was found. It is tried again now and then.
    Settled,
}

impl fmt::Display for ChoiceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed => "fixed",
            Self::Trying => "being timed",
            Self::Settled => "settled",
        })
    }
}

/// A way to enqueue submissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WayReport {
    /// By which path. Of [`Path::Native`] the parts that run beside command buffers are replayed.
    pub path: Path,
    /// Commands in one command buffer, at most, where there are some.
    pub commands_per_buffer: Option<usize>,
    /// Over how many queues, where there are several.
    pub queues: Option<usize>,
    /// Whether submissions go this way now, but for those that are timed.
    pub taken: bool,
    /// Submissions that were timed and count.
    pub timed: usize,
    /// How long the host took for one, in nanoseconds: their median.
    pub host_nanos: Option<u64>,
    /// How long one took from its begin, or from the end of the one before, to its end, in nanoseconds: their median.
    pub total_nanos: Option<u64>,
}

impl ChoiceReport {
    pub(super) fn new(choice: &Choice) -> Self {
        let way = |(way, taken, timed, times): (Way, bool, usize, Option<Times>)| WayReport {
            path: way.path,
            commands_per_buffer: Some(way.chunk).filter(|chunk| *chunk > 0),
            queues: Some(way.queues).filter(|queues| *queues > 0),
            taken,
            timed,
            host_nanos: times.map(|times| times.host),
            total_nanos: times.map(|times| times.total),
        };
        Self { state: choice.state(), ways: choice.ways().map(way).collect(), trials: choice.settled() }
    }
}

impl fmt::Display for WayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)?;
        if let Some(queues) = self.queues {
            write!(f, " ({queues})")?;
        }
        if let Some(most) = self.commands_per_buffer {
            write!(f, " of up to {}", count(most, "command"))?;
        }
        let micros = |nanos: u64| nanos as f64 / 1e3;
        match (self.total_nanos, self.host_nanos) {
            (Some(total), Some(host)) => {
                let (total, host) = (micros(total), micros(host));
                write!(f, ": {total:.1} us, {host:.1} us of the host's ({} timed)", self.timed)
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for ChoiceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.ways.iter().filter(|way| way.taken);
        let said = match self.state {
            ChoiceState::Fixed => {
                // What the parts say is not said again.
                for way in taken.filter(|way| matches!(way.path, Path::Gated | Path::Queues)) {
                    writeln!(f, "choice   {way}")?;
                }
                return Ok(());
            }
            ChoiceState::Trying => "being timed",
            ChoiceState::Settled => "the fastest, when it was timed",
        };
        for way in taken {
            writeln!(f, "choice   {way}: {said}")?;
        }
        for way in self.ways.iter().filter(|way| !way.taken) {
            writeln!(f, "         {way}")?;
        }
        Ok(())
    }
}

/// The memory of an executable whose graph has some of its own ([`Graph::alloc`](crate::Graph::alloc)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryReport {
    /// Bytes of all of it.
    pub bytes: usize,
    /// Bytes that it would be if no two allocations shared any.
    pub bytes_apart: usize,
    /// Bytes of each of the OpenCL buffers that hold it.
    pub buffers: Vec<usize>,
    /// The allocations that some node uses, or may use after an update, in the order of adding.
    pub allocations: Vec<AllocationReport>,
}

/// An allocation, and where and when it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocationReport {
    /// The number of its node.
    pub node: usize,
    /// Its bytes.
    pub bytes: usize,
    /// Which of the [buffers](MemoryReport::buffers) it is in, from 0.
    pub buffer: usize,
    /// Where it starts there, in bytes.
    pub offset: usize,
    /// The first place in the planned order that needs its bytes, counted from 0, sub-graphs written out. These are not numbers
    /// of nodes.
    pub first: usize,
    /// The last such place. None if it keeps its bytes from one submission to the next.
    pub last: Option<usize>,
}

/// A node that the host does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostNodeReport {
    /// The number of the node.
    pub node: usize,
    /// What it is.
    pub kind: NodeKind,
    /// What it is called.
    pub label: Option<String>,
}

/// How updates reach the commands of an executable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpdateReport {
    /// Commands that are replayed: their kernel objects get the new arguments.
    pub replayed: usize,
    /// Commands in command buffers.
    pub recorded: usize,
    /// What of a recorded kernel is changed in place (`clUpdateMutableCommandsKHR`), which is what the driver can change but for
    /// the memory that a kernel reaches indirectly. For everything else the command buffer that holds the command is recorded
    /// again, and so it is while it may run, where the driver is not known to keep what it has enqueued.
    pub in_place: Vec<&'static str>,
}

impl UpdateReport {
    fn new(device: &Device, plan: &Plan) -> Self {
        let native = |segment: &&Segment| segment.path == Path::Native;
        let recorded = plan.segments.iter().filter(native).map(|segment| segment.steps.len()).sum();
        // Lists of what is reached indirectly are set before a kernel is recorded, and then stay.
        let fields = device.mutable().map(|fields| MutableCaps { exec_info: false, ..fields }.fields());
        let in_place = if recorded == 0 { Vec::new() } else { fields.unwrap_or_default() };
        Self { replayed: plan.steps.len() - recorded, recorded, in_place }
    }
}

impl fmt::Display for UpdateReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replayed, recorded, in_place } = self;
        match (replayed, recorded) {
            (_, 0) => return write!(f, "through kernel objects"),
            (0, _) => {}
            _ => write!(f, "{} through kernel objects, ", count(*replayed, "command"))?,
        }
        write!(f, "{} in command buffers: ", count(*recorded, "command"))?;
        match in_place.as_slice() {
            [] => f.write_str("recorded again"),
            fields => write!(f, "{} in place, the rest recorded again", fields.join(", ")),
        }
    }
}

/// An executable in a graph. It is always written out: its commands are planned with the others, as if they had been added
/// one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubGraphReport {
    /// The number of its node.
    pub node: usize,
    /// Nodes that it was written out to.
    pub nodes: usize,
}

fn sub_graphs(state: &Tables) -> Vec<SubGraphReport> {
    let of = |id: NodeId| match state.ir.op(id) {
        Op::SubGraph(child) => {
            Some(SubGraphReport { node: id.index(), nodes: state.children[child.index()].of.nodes() })
        }
        _ => None,
    };
    state.ir.ids().filter_map(of).collect()
}

/// Consecutive commands that run by one path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentReport {
    /// The path.
    pub path: Path,
    /// Why this one.
    pub why: Why,
    /// How many commands.
    pub commands: usize,
    /// In how many command buffers they are: none if they are replayed.
    pub command_buffers: usize,
    /// The numbers of their nodes, by ranges, in the order in which they are enqueued.
    pub nodes: Vec<Range<usize>>,
    /// What its node is and is called, where there is only one.
    pub only: Option<String>,
}

impl SegmentReport {
    fn new(flat: &Flat, plan: &Plan, segment: &Segment) -> Self {
        let steps = &plan.steps[segment.steps.clone()];
        let mut nodes: Vec<Range<usize>> = Vec::new();
        for step in steps {
            let node = flat.origins.of(step.node).node.index();
            match nodes.last_mut() {
                // The commands of a sub-graph are of one node.
                Some(last) if last.end == node || last.end == node + 1 => last.end = node + 1,
                _ => nodes.push(node..node + 1),
            }
        }
        Self {
            path: segment.path,
            why: segment.why,
            commands: steps.len(),
            command_buffers: segment.command_buffers(plan.chunk()),
            nodes,
            only: if let [step] = steps { Some(flat.tables.told(step.node)) } else { None },
        }
    }
}

impl Report {
    /// What was decided, in one line.
    pub(super) fn log(&self) {
        if log::log_enabled!(log::Level::Info) {
            let shown = self.segments.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join("; ");
            let rest = if self.segments.len() > SHOWN { "; ..." } else { "" };
            log::info!("a graph of {} for {}: {shown}{rest}", count(self.nodes, "node"), self.device);
        }
    }

    pub(super) fn new(device: &Device, tables: &Tables, flat: &Flat, plan: &Plan) -> Self {
        let caps = device.caps();
        let ir = &flat.tables.ir;
        let unchecked = ir.kernels.iter().filter(|kernel| !kernel.checked).map(|kernel| kernel.name.to_string());
        // Those of sub-graphs were told when they were finalized.
        let warnings = tables.writes_to_const().into_iter().map(|WritesConst { node, launch, kernel, arg }| {
            let what = match launch {
                Some(launch) => {
                    format!("launch {launch} of its group, kernel `{}`", tables.ir.kernels[kernel.index()].name)
                }
                None => tables.told(node),
            };
            let said = "is given as written, and is const in the kernel: `read` would make fewer edges";
            format!("node {} ({what}): argument {arg} {said}", node.0)
        });
        Self {
            device: format!("{} ({})", caps.name, caps.platform),
            nodes: tables.ir.len(),
            edges: tables.ir.topology.edge_count(),
            sub_graphs: sub_graphs(tables),
            edges_implied_by_path: plan.edges.implied_by_path,
            edges_implied_by_queue: plan.edges.implied_by_lane,
            edges_kept: plan.edges.needed.len().saturating_sub(plan.edges.implied_by_lane),
            commands: plan.steps.len(),
            segments: plan.segments.iter().map(|segment| SegmentReport::new(flat, plan, segment)).collect(),
            host_nodes: plan
                .tasks
                .iter()
                .map(|task| HostNodeReport {
                    node: flat.origins.of(task.node).node.index(),
                    kind: NodeKind::of(ir.op(task.node)),
                    label: flat.tables.label(task.node).map(|label| label.to_string()),
                })
                .collect(),
            choice: ChoiceReport::default(),
            updates: plan.updatable.then(|| UpdateReport::new(device, plan)),
            fixed_parameters: if plan.updatable { 0 } else { flat.tables.bindings.len() },
            kernel_objects: plan.objects.len(),
            unchecked_kernels: unchecked.collect(),
            memory: MemoryReport::default(),
            globals: globals(device, &flat.tables),
            warnings: warnings.chain(native_warnings(caps, plan)).collect(),
        }
    }
}

/// The device globals of programs, each of which is told once for each way.
fn globals(device: &Device, tables: &Tables) -> Vec<GlobalBinding> {
    let mut all = Vec::new();
    for kernel in &tables.kernels {
        for global in kernel.program().bound_globals().bindings(Some(device)) {
            if !all.contains(&global) {
                all.push(global);
            }
        }
    }
    all
}

/// What is to be said of command buffers, where there are some.
fn native_warnings(caps: &Caps, plan: &Plan) -> Vec<String> {
    let mut warnings = Vec::new();
    if !plan.is_native() {
        return warnings;
    }
    if known::driver(caps) == Driver::IntelCpu {
        warnings.push(
            "Intel's CPU runtime (seen in 2026.2) never gives back about 1.9 KB for each command at each enqueue of a command \
             buffer: replay loses nothing and is faster"
                .to_owned(),
        );
    }
    let assumed = caps.command_buffers.as_ref().map(|caps| caps.assumed.join(", ")).unwrap_or_default();
    if !assumed.is_empty() {
        warnings.push(format!("command buffers rest on CLGRAPH_ASSUME ({assumed}): the driver does not say so itself"));
    }
    warnings
}

/// Ranges of nodes of a part that are shown.
const RANGES: usize = 4;
/// Parts that are shown one by one.
const SHOWN: usize = 12;

/// A number of things, in the singular or the plural.
fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

impl fmt::Display for SegmentReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, why, commands, command_buffers, nodes, only } = self;
        let by = if *command_buffers == 0 { path.to_string() } else { count(*command_buffers, "command buffer") };
        write!(f, "{} by {by} ({why}): ", count(*commands, "command"))?;
        let one = nodes.len() == 1 && nodes.iter().all(|range| range.len() == 1);
        f.write_str(if one { "node " } else { "nodes " })?;
        for (at, range) in nodes.iter().take(RANGES).enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            match range.len() {
                1 => write!(f, "{comma}{}", range.start)?,
                _ => write!(f, "{comma}{} to {}", range.start, range.end - 1)?,
            }
        }
        match only {
            Some(only) => write!(f, ", {only}"),
            None if nodes.len() > RANGES => f.write_str(", ..."),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "device   {}", self.device)?;
        writeln!(f, "nodes    {}, as {}", self.nodes, count(self.commands, "command"))?;
        writeln!(
            f,
            "edges    {}: {} implied by a path of two others, {} by the order of the queue, {} by an event or the host",
            self.edges, self.edges_implied_by_path, self.edges_implied_by_queue, self.edges_kept
        )?;
        for sub in self.sub_graphs.iter().take(SHOWN) {
            writeln!(f, "graph    node {} is a sub-graph, written out to {}", sub.node, count(sub.nodes, "node"))?;
        }
        if let Some(rest) = self.sub_graphs.get(SHOWN..).filter(|rest| !rest.is_empty()) {
            let nodes = rest.iter().map(|sub| sub.nodes).sum();
            writeln!(f, "         and {} more, written out to {}", rest.len(), count(nodes, "node"))?;
        }
        if !self.host_nodes.is_empty() {
            let shown = self.host_nodes.iter().take(SHOWN).map(|HostNodeReport { node, kind, label }| match label {
                Some(label) => format!("{node} ({kind}, {label:?})"),
                None => format!("{node} ({kind})"),
            });
            let rest = if self.host_nodes.len() > SHOWN { ", ..." } else { "" };
            let shown = shown.collect::<Vec<_>>().join(", ");
            writeln!(
                f,
                "host     {} of the host's between the parts: {shown}{rest}",
                count(self.host_nodes.len(), "node")
            )?;
        }
        writeln!(f, "kernels  {} with arguments set", count(self.kernel_objects, "object"))?;
        for (index, segment) in self.segments.iter().take(SHOWN).enumerate() {
            writeln!(f, "part {index:<3} {segment}")?;
        }
        if let Some(rest) = self.segments.get(SHOWN..).filter(|rest| !rest.is_empty()) {
            let sum = |of: fn(&SegmentReport) -> usize| rest.iter().map(of).sum::<usize>();
            let buffers = sum(|part| part.command_buffers);
            writeln!(
                f,
                "         and {} more parts: {} in {}",
                rest.len(),
                count(sum(|part| part.commands), "command"),
                count(buffers, "command buffer")
            )?;
        }
        let MemoryReport { bytes, bytes_apart, buffers, allocations } = &self.memory;
        if !allocations.is_empty() {
            let (all, buffers) = (count(allocations.len(), "allocation"), count(buffers.len(), "buffer"));
            writeln!(f, "memory   {bytes} bytes for {all} in {buffers}, without sharing {bytes_apart}")?;
        }
        for global in self.globals.iter().take(SHOWN) {
            writeln!(f, "global   {global}")?;
        }
        if let Some(rest) = self.globals.get(SHOWN..).filter(|rest| !rest.is_empty()) {
            writeln!(f, "         and {} more", rest.len())?;
        }
        self.choice.fmt(f)?;
        if let Some(updates) = &self.updates {
            writeln!(f, "updates  {updates}")?;
        }
        if self.fixed_parameters > 0 {
            let stay = count(self.fixed_parameters, "argument");
            writeln!(f, "note     {stay} of parameters will not follow them: give `Finalize::updatable` for that")?;
        }
        for kernel in &self.unchecked_kernels {
            writeln!(
                f,
                "note     the arguments of `{kernel}` were not checked: its program does not tell their types"
            )?;
        }
        for warning in &self.warnings {
            writeln!(f, "warning  {warning}")?;
        }
        Ok(())
    }
}
