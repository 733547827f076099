//! Times of a submission and of each of its nodes.
//!
//! A submission keeps the event of each command and the host's times of each host task in a [`Log`]. When the profile
//! is read, the driver reports the times of the events. The host's times are converted to the device's clock by two
//! facts: the device reports when a command was queued, which is between the host's times before and after the call;
//! and a host task began after the commands that it waits for had ended.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use opencl_sys::{CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_START};
use rustc_hash::FxHashMap;

use crate::cl::objects::device::Device;
use crate::cl::objects::event::DriverEvent;
use crate::command::{Command, Grid};
use crate::error::DriverError;
use crate::graph::{Flat, Origins};
use crate::handles::{GraphId, Node, NodeKind};
use crate::ir::flows::Flows;
use crate::ir::{Body, ById, Ir, NodeId};
use crate::plan::{Path, Plan};

/// When a submission and its nodes ran, in nanoseconds of one clock. Times of submissions to one device can be
/// compared. `Display` shows two tables.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// # use clgraph::{Buffer, Finalize, Graph, Queue};
/// # let queue = Queue::new(&clgraph::best_device()?)?;
/// let (graph, buffer) = (Graph::new(&queue)?, Buffer::<u32>::new(&queue, 1 << 16)?);
/// graph.fill(&buffer, 7).label("clear").add()?;
/// let run = graph.finalize(Finalize::new().profiling())?.submit(&queue)?;
/// run.wait()?;
/// let profile = run.profile()?;
/// for node in &profile.nodes {
///     println!("{} took {:?}, from {} ns on", node.title(), node.duration(), node.start - profile.start);
/// }
/// assert_eq!(profile.nodes[0].label.as_deref(), Some("clear"));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// Whose clock the times are of.
    pub clock: Clock,
    /// When [`Submit::submit`](crate::Submit::submit) was called, in nanoseconds, by `clock`.
    pub submit: u64,
    /// When its first node started, in nanoseconds.
    pub start: u64,
    /// When its last node ended, in nanoseconds.
    pub end: u64,
    /// The nodes that ran, in the order of their starts. Nodes that only order others, allocations and frees are not
    /// among them.
    pub nodes: Vec<NodeProfile>,
    /// The device.
    pub device: String,
    /// Distinguishes devices.
    pub(crate) device_id: usize,
    /// The executable.
    pub(crate) executable: u64,
}

/// When one node ran.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeProfile {
    /// The node of the finalized graph; for a fused kernel, the first that it does.
    pub node: Node,
    /// For a node in a sub-graph: its index, from 0, among the nodes that the sub-graph was inlined to.
    pub inside: Option<usize>,
    /// For a node in a loop: in which turn of the innermost loop it ran, from 0 on. A loop that is inside another one goes on counting
    /// in each turn of that, as [`Submission::turns`](crate::Submission::turns) does.
    pub turn: Option<u64>,
    /// The kind of the node.
    pub kind: NodeKind,
    /// The kernel's name, or what else the node does.
    pub name: String,
    /// The label that the program gave the node.
    pub label: Option<String>,
    /// Where the node ran.
    pub runner: RanOn,
    /// The number of work-items of a kernel, by dimension.
    pub range: Vec<usize>,
    /// When the command was enqueued, in nanoseconds (`CL_PROFILING_COMMAND_QUEUED`); for work of the host, when it
    /// began.
    pub queued: u64,
    /// When the node started, in nanoseconds (`CL_PROFILING_COMMAND_START`).
    pub start: u64,
    /// When the node ended, in nanoseconds (`CL_PROFILING_COMMAND_END`).
    pub end: u64,
}

/// The clock of a profile's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Clock {
    /// The device's clock. Times of the host are converted to it; they may be wrong by half of the time that the
    /// quickest enqueue took.
    Device,
    /// The host's clock, from the first profiled submission of the process on. It is used if the submission had no
    /// command for the device.
    Host,
}

/// Where a node ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RanOn {
    /// On the device, by this path.
    Device(Path),
    /// On the host.
    Host,
}

impl NodeProfile {
    /// Returns how long the node ran.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.end.saturating_sub(self.start))
    }

    /// Returns the node's label, or its name if it has none.
    #[must_use]
    pub fn title(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.name)
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Device => "device",
            Self::Host => "host",
        })
    }
}

impl fmt::Display for RanOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(path) => path.fmt(f),
            Self::Host => f.write_str("host"),
        }
    }
}

/// The sum of all nodes with one [title](NodeProfile::title).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TitleProfile {
    /// The title.
    pub title: String,
    /// How many nodes have it.
    pub count: usize,
    /// How long all of them ran together.
    pub duration: Duration,
}

/// The sum of all times that one node ran: in a loop, once a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeSum {
    /// The node of the finalized graph.
    pub node: Node,
    /// For a node in a sub-graph or a body: as in [`NodeProfile::inside`].
    pub inside: Option<usize>,
    /// The [title](NodeProfile::title).
    pub title: String,
    /// How often the node ran.
    pub count: usize,
    /// How long it ran in all.
    pub duration: Duration,
}

impl Profile {
    /// Returns the time from the start of the first node to the end of the last.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.end.saturating_sub(self.start))
    }

    /// Sums up the nodes by [title](NodeProfile::title); the title that took longest is first.
    #[must_use]
    pub fn by_title(&self) -> Vec<TitleProfile> {
        let mut sums: Vec<TitleProfile> = Vec::new();
        let mut sorted: Vec<&NodeProfile> = self.nodes.iter().collect();
        sorted.sort_by_key(|node| node.title());
        for node in sorted {
            match sums.last_mut() {
                Some(sum) if sum.title == node.title() => {
                    sum.count += 1;
                    sum.duration += node.duration();
                }
                _ => sums.push(TitleProfile { title: node.title().to_owned(), count: 1, duration: node.duration() }),
            }
        }
        sums.sort_by_key(|sum| std::cmp::Reverse(sum.duration));
        sums
    }

    /// Sums up the times that each node ran, over the turns of the loops that it is in; the node that took longest is first.
    #[must_use]
    pub fn by_node(&self) -> Vec<NodeSum> {
        let mut sums: Vec<NodeSum> = Vec::new();
        let mut sorted: Vec<&NodeProfile> = self.nodes.iter().collect();
        sorted.sort_by_key(|node| (node.node.index(), node.inside));
        for one in sorted {
            match sums.last_mut() {
                Some(sum) if (sum.node, sum.inside) == (one.node, one.inside) => {
                    sum.count += 1;
                    sum.duration += one.duration();
                }
                _ => sums.push(NodeSum {
                    node: one.node,
                    inside: one.inside,
                    title: one.title().to_owned(),
                    count: 1,
                    duration: one.duration(),
                }),
            }
        }
        sums.sort_by_key(|sum| std::cmp::Reverse(sum.duration));
        sums
    }
}

/// Microseconds.
fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Two tables, in microseconds: the sums by title, and the nodes in the order of their starts, relative to the first
/// start.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.duration().as_nanos().max(1) as f64;
        let share = |time: Duration| 100.0 * time.as_nanos() as f64 / all;
        writeln!(f, "device   {}, {} clock", self.device, self.clock)?;
        writeln!(
            f,
            "time     {:.1} us from the first start to the last end, {:.1} us from submit to the first start",
            us(self.end.saturating_sub(self.start)),
            us(self.start.saturating_sub(self.submit))
        )?;
        writeln!(f, "\n{:>10} {:>6} {:>7} {:>10}  title", "us", "share", "count", "us each")?;
        for TitleProfile { title, count, duration: sum } in self.by_title() {
            let (us, mean) = (us(sum.as_nanos() as u64), us(sum.as_nanos() as u64) / count as f64);
            writeln!(f, "{us:>10.1} {:>5.1}% {count:>7} {mean:>10.1}  {title}", share(sum))?;
        }
        writeln!(f, "\n{:>10} {:>10} {:>10} {:>10} {:>6}  node", "queued", "start", "end", "us", "share")?;
        // Negative for a command that was queued before the first start.
        let from_start = |time: u64| (i128::from(time) - i128::from(self.start)) as f64 / 1e3;
        for node in &self.nodes {
            let [queued, start, end] = [node.queued, node.start, node.end].map(from_start);
            let (time, share) = (us(node.end.saturating_sub(node.start)), share(node.duration()));
            write!(f, "{queued:>10.1} {start:>10.1} {end:>10.1} {time:>10.1} {share:>5.1}%  {}", node.node.index())?;
            if let Some(inside) = node.inside {
                write!(f, ".{inside}")?;
            }
            write!(f, " {}", node.name)?;
            if let Some(label) = &node.label {
                write!(f, " ({label})")?;
            }
            if !node.range.is_empty() {
                write!(f, " {:?}", node.range)?;
            }
            if let Some(turn) = node.turn {
                write!(f, " in turn {turn}")?;
            }
            writeln!(f, " by {}", node.runner)?;
        }
        Ok(())
    }
}

/// The names of an executable's planned nodes.
pub(crate) struct Names {
    device: String,
    device_id: usize,
    executable: u64,
    steps: Vec<Name>,
    tasks: Vec<Name>,
}

#[derive(Clone)]
struct Name {
    node: Node,
    inside: Option<usize>,
    /// The flow of the innermost loop.
    in_loop: Option<usize>,
    kind: NodeKind,
    label: Option<Arc<str>>,
}

impl Names {
    /// `origins`: those of the graph before launches were fused, and by node which one it was there; none if it is as it was.
    pub(crate) fn new(
        graph: GraphId,
        flat: &Flat,
        (origins, first_of): (&Origins, &[NodeId]),
        device: &Device,
        executable: u64,
        plan: &Plan,
    ) -> Self {
        let tables = &flat.tables;
        let written = origins.written();
        let flows = Flows::new(&tables.ir);
        let name = |id: NodeId| {
            let was = first_of.get(id.index()).copied().unwrap_or(id);
            let origin = origins.of(was).node;
            // The first planned node is the entry of a sub-graph, or a branch or loop itself.
            let first = written.as_ref().map(|written| written[origin.index()]);
            let first = first.filter(|(_, count)| *count > 1);
            let inside = first.and_then(|(first, _)| was.index().checked_sub(first.index())?.checked_sub(1));
            let (kind, label) = (NodeKind::of(tables.ir.command(id)), tables.label(id).cloned());
            let in_loop = in_loop(&tables.ir, &flows, id);
            Name { node: Node::new(graph, origin), inside, in_loop, kind, label }
        };
        Self {
            device: device.name().to_owned(),
            device_id: device.raw().addr(),
            executable,
            steps: plan.steps.iter().map(|step| name(step.node)).collect(),
            tasks: plan.tasks().map(|task| name(task.node)).collect(),
        }
    }
}

/// Returns the flow of the innermost loop that a node is in.
fn in_loop(ir: &Ir, flows: &Flows, node: NodeId) -> Option<usize> {
    let mut flow = flows.of(node);
    while let Some(Body::Inlined { of, .. }) = ir.bodies.get(flow.checked_sub(1)?) {
        if matches!(NodeKind::of(ir.command(*of)), NodeKind::Repeat | NodeKind::RepeatWhile) {
            return Some(flow);
        }
        flow = flows.of(*of);
    }
    None
}

/// What a submission records for its profile.
pub(crate) struct Log {
    names: Arc<Names>,
    submit: Instant,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    commands: Vec<Timed>,
    host: Vec<HostWork>,
    /// By flow of a loop: how many turns have begun.
    turns: FxHashMap<usize, u64>,
    /// The profile, once somebody has asked for it: the events are released then.
    read: Option<Arc<Profile>>,
    /// The command that is being enqueued: when the call began, and a marker before it if it is more than one command.
    begun: Option<(Instant, Option<Marker>)>,
}

/// An event, and when the host began and ended to enqueue it.
type Marker = (DriverEvent, (Instant, Instant));

struct HostWork {
    task: usize,
    turn: Option<u64>,
    /// The event that it waited for.
    after: Option<DriverEvent>,
    begin: Instant,
    end: Instant,
}

struct Timed {
    step: usize,
    turn: Option<u64>,
    path: Path,
    /// A kernel's name and range, kept here because an update may change them.
    launch: Option<(Arc<str>, Grid)>,
    /// An event that is complete when the command starts, if the command's own event does not report that.
    before: Option<Marker>,
    event: DriverEvent,
    /// False for a native command, whose event is that of a marker.
    is_one: bool,
    /// The host's times before and after the enqueue.
    enqueued: (Instant, Instant),
}

impl Entries {
    fn turn_of(&self, name: &Name) -> Option<u64> {
        self.turns.get(&name.in_loop?)?.checked_sub(1)
    }
}

impl Log {
    pub(crate) fn new(names: &Arc<Names>) -> Self {
        // The host's clock starts before the first time.
        epoch();
        Self { names: Arc::clone(names), submit: Instant::now(), entries: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a command is about to be enqueued, after a marker if it is more than one command.
    pub(crate) fn begin(&self, before: Option<Marker>) {
        self.lock().begun = Some((Instant::now(), before));
    }

    /// Notes that the command was enqueued.
    pub(crate) fn took(&self, ir: &Ir, plan: &Plan, step: usize, op: &Command<ById>, event: &DriverEvent) {
        let now = Instant::now();
        let mut entries = self.lock();
        let Some((begin, before)) = entries.begun.take() else { return };
        if op.is_noop() {
            return;
        }
        let launch = match op {
            Command::Kernel { kernel, grid, .. } => Some((Arc::clone(&ir.kernels[kernel.index()].name), *grid)),
            _ => None,
        };
        let segment = plan.segments.partition_point(|segment| segment.steps.end <= step);
        let path = plan.segments.get(segment).map_or(Path::Replay, |segment| segment.path);
        let enqueued = (begin, now);
        let is_one = !matches!(op, Command::Native { .. });
        let turn = entries.turn_of(&self.names.steps[step]);
        entries.commands.push(Timed { step, turn, path, launch, before, event: event.clone(), is_one, enqueued });
    }

    /// Notes that the host has worked after an event, from `begin` until now.
    pub(crate) fn host(&self, task: usize, after: Option<DriverEvent>, begin: Instant) {
        let end = Instant::now();
        let mut entries = self.lock();
        let turn = entries.turn_of(&self.names.tasks[task]);
        entries.host.push(HostWork { task, turn, after, begin, end });
    }

    /// Notes that turns of a flow begin.
    pub(crate) fn turn(&self, flow: usize, count: u64) {
        *self.lock().turns.entry(flow).or_default() += count;
    }

    /// Returns the nanoseconds since the submission was made; negative for earlier times.
    fn since_submit(&self, instant: Instant) -> i128 {
        let later = instant.saturating_duration_since(self.submit).as_nanos() as i128;
        later - self.submit.saturating_duration_since(instant).as_nanos() as i128
    }

    /// Returns when the submission was made by the device's clock. None without a command that reports a time.
    fn submit_by_device(&self, entries: &Entries) -> Result<Option<i128>, DriverError> {
        let (mut least, mut most) = (i128::MIN, i128::MAX);
        for command in &entries.commands {
            let own = command.is_one.then_some((&command.event, command.enqueued));
            let marker = command.before.as_ref().map(|(event, enqueued)| (event, *enqueued));
            for (event, (before, after)) in own.into_iter().chain(marker) {
                let queued = i128::from(event.time(CL_PROFILING_COMMAND_QUEUED)?);
                least = least.max(queued - self.since_submit(after));
                most = most.min(queued - self.since_submit(before));
            }
        }
        if most == i128::MAX {
            return Ok(None);
        }
        for work in &entries.host {
            let Some(after) = &work.after else { continue };
            least = least.max(i128::from(after.time(CL_PROFILING_COMMAND_END)?) - self.since_submit(work.begin));
        }
        // A driver's times may be slightly wrong. Then the order that must hold decides.
        Ok(Some(if least <= most { (least + most) / 2 } else { least }))
    }

    /// Reads the times from the driver.
    pub(crate) fn read(&self) -> Result<Profile, DriverError> {
        let mut entries = self.lock();
        if let Some(read) = &entries.read {
            return Ok(Profile::clone(read));
        }
        let by_device = self.submit_by_device(&entries)?;
        let clock = if by_device.is_some() { Clock::Device } else { Clock::Host };
        let submit = by_device.unwrap_or_else(|| -self.since_submit(epoch()));
        let time = |instant: Instant| u64::try_from(submit + self.since_submit(instant)).unwrap_or_default();
        let mut nodes = Vec::with_capacity(entries.commands.len() + entries.host.len());
        for command in &entries.commands {
            let first = command.before.as_ref().map_or(&command.event, |(marker, _)| marker);
            let start = if command.before.is_some() { CL_PROFILING_COMMAND_END } else { CL_PROFILING_COMMAND_START };
            let (queued, mut start) = (first.time(CL_PROFILING_COMMAND_QUEUED)?, first.time(start)?);
            if command.is_one {
                // The marker may have been complete before the command was queued.
                start = start.max(command.event.time(CL_PROFILING_COMMAND_QUEUED)?);
            }
            let end = command.event.time(CL_PROFILING_COMMAND_END)?;
            let name = &self.names.steps[command.step];
            let mut node = name.profile(RanOn::Device(command.path), queued, start, end);
            node.turn = command.turn;
            if let Some((kernel, grid)) = &command.launch {
                node.name = kernel.to_string();
                node.range = grid.global[..grid.dims as usize].to_vec();
            }
            nodes.push(node);
        }
        for HostWork { task, turn, begin, end, .. } in &entries.host {
            let begin = time(*begin);
            let node = self.names.tasks[*task].profile(RanOn::Host, begin, begin, time(*end));
            nodes.push(NodeProfile { turn: *turn, ..node });
        }
        nodes.sort_by_key(|node| (node.start, node.end, node.node));
        let submit = time(self.submit);
        let start = nodes.first().map_or(submit, |node| node.start);
        let end = nodes.iter().map(|node| node.end).max().unwrap_or(submit);
        let Names { device, device_id, executable, .. } = &*self.names;
        let (device, device_id, executable) = (device.clone(), *device_id, *executable);
        let profile = Profile { clock, submit, start, end, nodes, device, device_id, executable };
        entries.read = Some(Arc::new(profile.clone()));
        (entries.commands, entries.host) = (Vec::new(), Vec::new());
        Ok(profile)
    }
}

/// Returns when the host's clock starts.
fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

impl Name {
    fn profile(&self, runner: RanOn, queued: u64, start: u64, end: u64) -> NodeProfile {
        let Self { node, inside, kind, label, .. } = self;
        NodeProfile {
            node: *node,
            inside: *inside,
            turn: None,
            kind: *kind,
            name: kind.to_string(),
            label: label.as_ref().map(|label| label.to_string()),
            runner,
            range: Vec::new(),
            queued,
            start,
            end,
        }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Log({} commands)", self.lock().commands.len())
    }
}
