//! The report: what finalize decided, as data and as text.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::caps::{Caps, MutableCaps};
use crate::cl::memory::program_globals::GlobalBinding;
use crate::cl::objects::device::Device;
use crate::command::Command;
use crate::graph::{Flat, Tables, WritesConst};
use crate::handles::NodeKind;
use crate::ir::NodeId;
use crate::plan::{Exclusion, Path, PathReason, Plan, Segment};
use crate::quirks::{self, Driver};
use crate::report::fused::{FusedReport, FusingState, Nodes, NotFusedReport, WhyNotFused};
use crate::report::loops::LoopReport;
use crate::report::tuning::TuningReport;

/// What finalize decided, and why. `Display` shows it as text.
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
/// for segment in &report.segments {
///     println!("{} commands by {}: {}", segment.commands, segment.path, segment.why);
/// }
/// println!("{report}"); // all of it
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The device's name, with its platform.
    pub device: String,
    /// Number of nodes of the graph. A sub-graph counts as one.
    pub nodes: usize,
    /// Number of edges of the graph.
    pub edges: usize,
    /// The sub-graphs, in the order of their nodes.
    pub sub_graphs: Vec<SubGraphReport>,
    /// Edges that were dropped because a path of two other edges implies them.
    pub edges_implied_by_path: usize,
    /// Edges that cost nothing, because an in-order queue runs commands one after another anyway.
    pub edges_implied_by_queue: usize,
    /// All other edges, including those of inlined sub-graphs: an event or the host keeps their order.
    pub edges_kept: usize,
    /// Number of commands of a submission, with sub-graphs inlined. Replayed commands are enqueued one by one; the
    /// others are in command buffers. Nodes that do nothing have no command.
    pub commands: usize,
    /// The segments of the plan, in order. Each runs by one path.
    pub segments: Vec<SegmentReport>,
    /// The nodes that run on the host. They divide a submission into partitions.
    pub host_nodes: Vec<HostNodeReport>,
    /// The loops, also those inside bodies and sub-graphs, and how they run.
    pub loops: Vec<LoopReport>,
    /// The launches, fills and copies that one kernel does together, and how ([`Finalize::fuse`](crate::Finalize::fuse)).
    pub fused: Vec<FusedReport>,
    /// The launches that are not fused although the program asks for it, and why.
    pub not_fused: Vec<NotFusedReport>,
    /// What has become of the fused form, with [`Fuse::Auto`](crate::Fuse::Auto).
    pub fusing: FusingState,
    /// How long the last build of fused kernels took, with looking for what fits together, and running them once without their
    /// work; None if nothing was built. With [`Fuse::Auto`](crate::Fuse::Auto) it was on a thread in the background, beside submissions.
    pub fuse_build: Option<Duration>,
    /// How submissions are enqueued, and what the autotuner has found.
    pub tuning: TuningReport,
    /// The paths that submissions never take, although they were asked for or might be faster.
    pub excluded: Vec<ExcludedPath>,
    /// How updates reach the commands. None if the executable cannot be updated.
    pub updates: Option<UpdateReport>,
    /// How many arguments have parameters but keep their values of finalize, because the executable cannot be updated.
    pub fixed_parameters: usize,
    /// How many kernel objects were made: one for each kernel and set of argument values.
    pub kernel_objects: usize,
    /// Kernels whose arguments could not be checked, because their program does not report the types.
    pub unchecked_kernels: Vec<String>,
    /// The memory that belongs to the graph.
    pub memory: MemoryReport,
    /// The device globals of all programs that have a kernel in the graph, and how kernels reach them.
    pub globals: Vec<GlobalBinding>,
    /// What is allowed but perhaps not intended.
    pub warnings: Vec<String>,
}

/// A path that was asked for, or that might be faster, and that submissions of the executable never take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExcludedPath {
    /// The path.
    pub path: Path,
    /// Why it is excluded.
    pub why: Exclusion,
}

impl fmt::Display for ExcludedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no {}: {}", self.path, self.why)
    }
}

/// The memory of an executable whose graph has its own ([`Graph::alloc`](crate::Graph::alloc)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryReport {
    /// All bytes.
    pub bytes: usize,
    /// How many bytes it would be if allocations shared none.
    pub bytes_apart: usize,
    /// The bytes of each OpenCL buffer that holds the memory.
    pub buffers: Vec<usize>,
    /// The allocations that some node uses, or may use after an update, in the order in which they were added.
    pub allocations: Vec<AllocationReport>,
}

/// One allocation: where it is, and when it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AllocationReport {
    /// The number of the allocation's node.
    pub node: usize,
    /// The label of that node.
    pub label: Option<Arc<str>>,
    /// The size in bytes.
    pub bytes: usize,
    /// The index of the [buffer](MemoryReport::buffers) that holds it, from 0.
    pub buffer: usize,
    /// The offset in that buffer, in bytes.
    pub offset: usize,
    /// The first step in the planned order that needs the bytes, counted from 0, with sub-graphs inlined. Steps are not
    /// numbers of nodes.
    pub first: usize,
    /// The last such step. None if the allocation keeps its bytes from one submission to the next.
    pub last: Option<usize>,
}

/// A node that runs on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostNodeReport {
    /// The number of the node.
    pub node: usize,
    /// The kind of the node.
    pub kind: NodeKind,
    /// The label of the node.
    pub label: Option<String>,
}

/// How updates reach the commands of an executable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpdateReport {
    /// How many commands are replayed: updates change the arguments of their kernel objects.
    pub replayed: usize,
    /// How many commands are in command buffers.
    pub recorded: usize,
    /// What an update changes in place in a recorded kernel (`clUpdateMutableCommandsKHR`): everything that the driver
    /// can change, except memory that a kernel reaches indirectly. For everything else, the command buffer that holds
    /// the command is recorded again. It is also recorded again while it may run, unless the driver is known to keep
    /// what it has enqueued.
    pub in_place: Vec<&'static str>,
}

impl UpdateReport {
    fn new(device: &Device, plan: &Plan) -> Self {
        let native = |segment: &&Segment| segment.path == Path::Native;
        let recorded = plan.segments.iter().filter(native).map(|segment| segment.steps.len()).sum();
        // Lists of indirectly reached memory are set before a kernel is recorded, and do not change afterwards.
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

/// An executable in a graph. It is always inlined: its commands are planned with the others, as if they had been added
/// one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubGraphReport {
    /// The number of the sub-graph's node.
    pub node: usize,
    /// How many nodes the sub-graph was inlined to.
    pub nodes: usize,
}

fn sub_graphs(state: &Tables) -> Vec<SubGraphReport> {
    let of = |id: NodeId| match state.ir.command(id) {
        Command::SubGraph(child) => {
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
    /// Why the commands take this path.
    pub why: PathReason,
    /// The number of commands.
    pub commands: usize,
    /// The number of command buffers that hold them: 0 if they are replayed.
    pub command_buffers: usize,
    /// The numbers of their nodes, as ranges, in the order in which the commands are enqueued.
    pub nodes: Vec<Range<usize>>,
    /// The kind and label of the node, if there is only one.
    pub only: Option<String>,
}

impl SegmentReport {
    fn new(flat: &Flat, plan: &Plan, segment: &Segment) -> Self {
        let steps = &plan.steps[segment.steps.clone()];
        let mut nodes: Vec<Range<usize>> = Vec::new();
        for step in steps {
            let node = flat.origins.of(step.node).node.index();
            match nodes.last_mut() {
                // All commands of a sub-graph belong to one node.
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
            only: if let [step] = steps { Some(flat.tables.describe(step.node)) } else { None },
        }
    }
}

impl Report {
    /// Logs the decisions in one line.
    pub(crate) fn log(&self) {
        if log::log_enabled!(log::Level::Info) {
            let listed = self.segments.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join("; ");
            let rest = if self.segments.len() > SHOWN { "; ..." } else { "" };
            log::info!("a graph of {} for {}: {listed}{rest}", count(self.nodes, "node"), self.device);
        }
    }

    /// Reports the plan of a fused form of the same graph.
    pub(crate) fn take_plan(&mut self, flat: &Flat, plan: &Plan) {
        self.edges_implied_by_path = plan.edges.implied_by_path;
        self.edges_implied_by_queue = plan.edges.implied_by_queue;
        self.edges_kept = plan.edges.needed.len().saturating_sub(plan.edges.implied_by_queue);
        self.commands = plan.steps.len();
        self.kernel_objects = plan.objects.len();
        let fused = |segment| SegmentReport { why: PathReason::Fused, ..SegmentReport::new(flat, plan, segment) };
        self.segments = plan.segments.iter().map(fused).collect();
    }

    pub(crate) fn new(device: &Device, tables: &Tables, flat: &Flat, plan: &Plan) -> Self {
        let caps = device.caps();
        let ir = &flat.tables.ir;
        let unchecked = ir.kernels.iter().filter(|kernel| !kernel.checked).map(|kernel| kernel.name.to_string());
        // Warnings of sub-graphs were logged when those were finalized.
        let warnings = tables.writes_to_const().into_iter().map(|WritesConst { node, launch, kernel, arg }| {
            let what = match launch {
                Some(launch) => {
                    format!("launch {launch} of its group, kernel `{}`", tables.ir.kernels[kernel.index()].name)
                }
                None => tables.describe(node),
            };
            let text = "was added as written, but is const in the kernel: add it with `read` to get fewer edges";
            format!("node {} ({what}): argument {arg} {text}", node.0)
        });
        Self {
            device: format!("{} ({})", caps.name, caps.platform),
            nodes: tables.ir.len(),
            edges: tables.ir.topology.edge_count(),
            sub_graphs: sub_graphs(tables),
            edges_implied_by_path: plan.edges.implied_by_path,
            edges_implied_by_queue: plan.edges.implied_by_queue,
            edges_kept: plan.edges.needed.len().saturating_sub(plan.edges.implied_by_queue),
            commands: plan.steps.len(),
            segments: plan.segments.iter().map(|segment| SegmentReport::new(flat, plan, segment)).collect(),
            host_nodes: plan
                .tasks()
                .map(|task| HostNodeReport {
                    node: flat.origins.of(task.node).node.index(),
                    kind: NodeKind::of(ir.command(task.node)),
                    label: flat.tables.label(task.node).map(|label| label.to_string()),
                })
                .collect(),
            loops: Vec::new(),
            fused: Vec::new(),
            not_fused: Vec::new(),
            fusing: FusingState::Off,
            fuse_build: None,
            tuning: TuningReport::default(),
            excluded: plan.excluded.iter().map(|(path, why)| ExcludedPath { path: *path, why: *why }).collect(),
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

/// The device globals of the programs. Each is reported once for each way in which kernels reach it.
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

/// Warnings about command buffers, if the plan has some.
fn native_warnings(caps: &Caps, plan: &Plan) -> Vec<String> {
    let mut warnings = Vec::new();
    if !plan.is_native() {
        return warnings;
    }
    if quirks::driver(caps) == Driver::IntelCpu {
        warnings.push(
            "Intel's CPU runtime (seen in 2026.2) leaks about 1.9 KB for each command at each enqueue of a command \
             buffer: replay does not leak and is faster"
                .to_owned(),
        );
    }
    let assumed = caps.command_buffers.as_ref().map(|caps| caps.assumed.join(", ")).unwrap_or_default();
    if !assumed.is_empty() {
        warnings.push(format!(
            "CLGRAPH_ASSUME enables command buffers ({assumed}), although the driver does not report \
                               these features"
        ));
    }
    warnings
}

/// How many ranges of a segment's nodes are shown.
const RANGES: usize = 4;
/// How many segments are shown one by one.
const SHOWN: usize = 12;

/// Formats a number of things, in the singular or plural.
pub(in crate::report) fn count(number: usize, what: &str) -> String {
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
        writeln!(f, "device     {}", self.device)?;
        writeln!(f, "nodes      {}, as {}", self.nodes, count(self.commands, "command"))?;
        writeln!(
            f,
            "edges      {}: {} implied by a path of two others, {} by the order of the queue, {} by an event or the \
             host",
            self.edges, self.edges_implied_by_path, self.edges_implied_by_queue, self.edges_kept
        )?;
        for sub in self.sub_graphs.iter().take(SHOWN) {
            writeln!(f, "graph      node {} is a sub-graph, inlined as {}", sub.node, count(sub.nodes, "node"))?;
        }
        if let Some(rest) = self.sub_graphs.get(SHOWN..).filter(|rest| !rest.is_empty()) {
            let nodes = rest.iter().map(|sub| sub.nodes).sum();
            writeln!(f, "           and {} more, inlined as {}", rest.len(), count(nodes, "node"))?;
        }
        if !self.host_nodes.is_empty() {
            let listed = self.host_nodes.iter().take(SHOWN).map(|HostNodeReport { node, kind, label }| match label {
                Some(label) => format!("{node} ({kind}, {label:?})"),
                None => format!("{node} ({kind})"),
            });
            let rest = if self.host_nodes.len() > SHOWN { ", ..." } else { "" };
            let listed = listed.collect::<Vec<_>>().join(", ");
            writeln!(
                f,
                "host       {} on the host, between the segments: {listed}{rest}",
                count(self.host_nodes.len(), "node")
            )?;
        }
        for of in self.loops.iter().take(SHOWN) {
            writeln!(f, "loop       node {}: {of}", of.node)?;
        }
        if self.fusing != FusingState::Off {
            let is_timed = matches!(self.fusing, FusingState::Taken | FusingState::NotFaster);
            write!(f, "fusing     {}", self.fusing)?;
            if let Some(times) = self.tuning.fused_and_unfused().filter(|_| is_timed) {
                let [fused, unfused] = times.map(|nanos| nanos as f64 / 1e3);
                write!(f, ": a submission takes {fused:.1} us, and without {unfused:.1} us")?;
            }
            if let Some(took) = self.fuse_build {
                write!(f, "; the last build took {:.1} ms", took.as_secs_f64() * 1e3)?;
            }
            writeln!(f)?;
        }
        for of in self.fused.iter().take(SHOWN) {
            write!(f, "fused      {of}")?;
            match of.ends {
                Some(why) => writeln!(f, " (the next launch is apart: {why})")?,
                None => writeln!(f)?,
            }
        }
        if let Some(rest) = self.fused.get(SHOWN..).filter(|rest| !rest.is_empty()) {
            let launches = rest.iter().map(|of| of.nodes.len()).sum();
            writeln!(f, "           and {} more, of {}", rest.len(), count(launches, "launch"))?;
        }
        // One line a reason.
        let (mut reasons, mut known) = (Vec::<(&WhyNotFused, Vec<usize>)>::new(), HashMap::new());
        for NotFusedReport { node, why } in &self.not_fused {
            let at = *known.entry(why).or_insert(reasons.len());
            match reasons.get_mut(at) {
                Some((_, nodes)) => nodes.push(*node),
                None => reasons.push((why, vec![*node])),
            }
        }
        for (why, nodes) in reasons.iter().take(SHOWN) {
            writeln!(f, "not fused  {}: {why}", Nodes(nodes))?;
        }
        if let Some(rest) = reasons.get(SHOWN..).filter(|rest| !rest.is_empty()) {
            let launches: usize = rest.iter().map(|(_, nodes)| nodes.len()).sum();
            writeln!(f, "           and {launches} more, for {}", count(rest.len(), "other reason"))?;
        }
        writeln!(f, "kernels    {} with arguments set", count(self.kernel_objects, "object"))?;
        for (index, segment) in self.segments.iter().take(SHOWN).enumerate() {
            writeln!(f, "segment {index:<2} {segment}")?;
        }
        if let Some(rest) = self.segments.get(SHOWN..).filter(|rest| !rest.is_empty()) {
            let sum = |of: fn(&SegmentReport) -> usize| rest.iter().map(of).sum::<usize>();
            let buffers = sum(|part| part.command_buffers);
            writeln!(
                f,
                "           and {} more segments: {} in {}",
                rest.len(),
                count(sum(|part| part.commands), "command"),
                count(buffers, "command buffer")
            )?;
        }
        let MemoryReport { bytes, bytes_apart, buffers, allocations } = &self.memory;
        if !allocations.is_empty() {
            let (all, buffers) = (count(allocations.len(), "allocation"), count(buffers.len(), "buffer"));
            writeln!(f, "memory     {bytes} bytes for {all} in {buffers}, without sharing {bytes_apart}")?;
        }
        for global in self.globals.iter().take(SHOWN) {
            writeln!(f, "global     {global}")?;
        }
        if let Some(rest) = self.globals.get(SHOWN..).filter(|rest| !rest.is_empty()) {
            writeln!(f, "           and {} more", rest.len())?;
        }
        self.tuning.fmt(f)?;
        for excluded in &self.excluded {
            writeln!(f, "excluded   {excluded}")?;
        }
        if let Some(updates) = &self.updates {
            writeln!(f, "updates    {updates}")?;
        }
        if self.fixed_parameters > 0 {
            let stay = count(self.fixed_parameters, "argument");
            writeln!(
                f,
                "note       {stay} of parameters cannot be updated: finalize with `Finalize::updatable` to \
                         update them"
            )?;
        }
        for kernel in &self.unchecked_kernels {
            writeln!(
                f,
                "note       the arguments of `{kernel}` were not checked, because its program has no argument \
                 information"
            )?;
        }
        for warning in &self.warnings {
            writeln!(f, "warning    {warning}")?;
        }
        Ok(())
    }
}
