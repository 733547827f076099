//! From a graph to an executable.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::arena::{self, Layout, OwnMemory};
use super::lane::Lane;
use super::native::{self, Recorded, Refusal};
use super::profile::Names;
use super::remember::Remembered;
use super::report::Report;
use super::ring::Ring;
use super::tour::PartsOf;
use super::turns::TurnsOf;
use super::updatable::Updatable;
use super::update::Editing;
use super::values::{Objects, Stale, Values, set_args};
use super::{Executable, Inner, dump};
use crate::caps::Caps;
use crate::cl::context::InContext;
use crate::cl::device::Device;
use crate::cl::kernel_object::KernelObjectError;
use crate::cl::queue::{DriverQueue, QueueProperties};
use crate::cl::reentrancy;
use crate::env;
#[allow(unused_imports)] // The documentation names it.
use crate::error::SubmitError;
use crate::error::{Error, FinalizeError, ProgramError, Result, SetupError};
use crate::graph::{Detail, Flat, Graph, Node, Ports, Tables};
use crate::ir::{Ir, NodeId, Op};
use crate::plan::{self, Command, Conflicts, Options, Path, Plan, PlanError, Why};

/// How a graph is to be finalized.
///
/// ```
/// use clgraph::{Finalize, Path};
/// let options = Finalize::new().path(Path::Replay).result_slots(8);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Finalize {
    path: Path,
    result_slots: Option<usize>,
    commands_per_buffer: Option<usize>,
    measured: bool,
    updatable: bool,
    allow_conflicts: bool,
    separate_memory: bool,
    profiling: bool,
    choices: Option<PathBuf>,
}

impl Finalize {
    /// The usual options: the path is chosen automatically, and results are held as long as the program likes.
    pub const fn new() -> Self {
        Self {
            path: Path::Auto,
            result_slots: None,
            commands_per_buffer: None,
            measured: true,
            updatable: false,
            allow_conflicts: false,
            separate_memory: false,
            profiling: false,
            choices: None,
        }
    }

    /// Gives each allocation of the graph's own memory bytes of its own, also where lives do not overlap: see
    /// [`Graph::alloc`](crate::Graph::alloc).
    pub const fn separate_memory(mut self) -> Self {
        self.separate_memory = true;
        self
    }

    /// Lets submissions tell when they and their nodes ran: [`Submission::profile`](crate::Submission::profile).
    ///
    /// Each command then has an event, goes by itself (in a command buffer of its own, where [`Path::Native`] is asked for; the
    /// automatic path replays), and runs on a queue that profiles: the one submitted to, or one of the executable's. That costs
    /// time: half a microsecond a command on CPU drivers, several where the driver is slow to make events; and the gain of command
    /// buffers where they would have paid. The kernels themselves take as long as without. A submission keeps about half a
    /// kilobyte a command until its times are asked for, or its last handle is gone.
    pub const fn profiling(mut self) -> Self {
        self.profiling = true;
        self
    }

    /// Sets by which path commands get to the device; [`Path::Auto`] if not given. What cannot go that way is replayed,
    /// and the report says why. The environment variable `CLGRAPH_PATH` chooses only where this is [`Path::Auto`].
    pub const fn path(mut self, path: Path) -> Self {
        self.path = path;
        self
    }

    /// Lets the executable be updated: [`Executable::update`], [`Executable::update_from`]. It then keeps a copy of the
    /// graph's values of its own. Where the device cannot change arguments of recorded kernels, the automatic path
    /// replays those that have parameters. The graph may be dropped, unless it has sub-graphs that are to be updated.
    pub const fn updatable(mut self) -> Self {
        self.updatable = true;
        self
    }

    /// Allows nodes to use the same memory without an order between them, once parameters or updates have given them
    /// other memory than when their edges were made: what they do to it is then up to chance, and to the program.
    pub const fn allow_conflicts(mut self) -> Self {
        self.allow_conflicts = true;
        self
    }

    /// Bounds how many submissions may hold results of one host read at a time, at least 1; there is no bound if it is not given. A
    /// submission holds a slot of each host read from when it is made until its last handle, and the last
    /// [`ResultGuard`](crate::ResultGuard) of it, is dropped, whether or not anybody takes the result. When so many are held,
    /// submitting does not wait: it fails with [`SubmitError::NoSlot`]. A slot has as many bytes as the node reads; its memory
    /// is taken when no other slot is free, and given back little by little when many are.
    pub const fn result_slots(mut self, slots: usize) -> Self {
        self.result_slots = Some(slots);
        self
    }

    /// Sets how many commands a native command buffer holds at most, at least 1; if not given, 64, or on Intel's CPU runtime 256
    /// for an executable that is [`updatable`](Self::updatable), or what the automatic path finds to be faster.
    /// A part that is longer gets several. PoCL needs time that grows with the square of it, and stack for each; a driver that
    /// hands a command buffer to its hardware as a whole may like more.
    pub const fn commands_per_buffer(mut self, commands: usize) -> Self {
        self.commands_per_buffer = Some(commands);
        self
    }

    /// Names a file that keeps what the automatic path has found, so that the next process starts with it; the
    /// environment variable `CLGRAPH_CHOICES` names one where this does not.
    ///
    /// It is read at finalize, made or changed when something is found, on a thread of clgraph's own, and may be shared
    /// by programs and devices: an entry is of one device, driver version, and list of commands with sizes and edges.
    /// One that is damaged, or something else, is left alone, with a warning in the log; and so is a choice that the
    /// graph does not have. Its format may change with the version.
    pub fn choices(mut self, file: impl Into<PathBuf>) -> Self {
        self.choices = Some(file.into());
        self
    }

    /// Sets whether the automatic path is found by timing the first submissions, which is so if not given. Without it
    /// the executable stays with what is known to be good on the driver.
    pub const fn measured(mut self, yes: bool) -> Self {
        self.measured = yes;
        self
    }
}

impl Default for Finalize {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether command buffers of a device run on queues that profile.
pub(super) fn profiles(caps: &Caps) -> bool {
    let queues = caps.command_buffers.as_ref().and_then(|caps| caps.supported_queue);
    queues.is_none_or(|queues| queues.profiling)
}

/// How often a driver may refuse some nodes before nothing is recorded for it any more.
const ROUNDS: usize = 4;

/// What an executable is made of.
struct Prepared {
    plan: Plan,
    values: Values,
    recorded: Option<(DriverQueue, Recorded)>,
    memory: Layout,
}

impl Device {
    /// The path that kernels take on the device where the program leaves it to clgraph, and why:
    /// [`Caps::path`](crate::Caps::path), unless the environment variable `CLGRAPH_PATH` says otherwise, and only if the
    /// driver's functions can be called.
    ///
    /// # Errors
    /// [`SetupError::Environment`] for a wrong `CLGRAPH_PATH`.
    pub fn path(&self) -> Result<(Path, Why)> {
        let (path, why) = match asked_path(Path::Auto)? {
            (Path::Auto, _) => self.caps().path(),
            (path, _) => (path, Why::Environment),
        };
        if path != Path::Native {
            return Ok((path, why));
        }
        let abi = || {
            self.abi().map_err(|error| {
                log::info!("{error}");
                Why::Unusable
            })
        };
        let usable = self.caps().can_record(Command::Kernel).and_then(|()| abi());
        Ok(usable.map_or_else(|why| (Path::Replay, why), |_| (path, why)))
    }
}

/// The path that is asked for, and whether the environment asks: it does where the program leaves it to clgraph.
fn asked_path(option: Path) -> Result<(Path, bool), SetupError> {
    match env::path() {
        Some(given) if option == Path::Auto => match given.as_str() {
            "auto" => Ok((Path::Auto, false)),
            "native" => Ok((Path::Native, true)),
            "replay" => Ok((Path::Replay, true)),
            "gated" => Ok((Path::Gated, true)),
            "queues" => Ok((Path::Queues, true)),
            _ => {
                let allowed = "`auto`, `native`, `replay`, `gated` or `queues`";
                Err(SetupError::Environment { variable: "CLGRAPH_PATH", given, allowed })
            }
        },
        _ => Ok((option, false)),
    }
}

impl Graph {
    /// The graph with the values that parameters have now, and whether nodes use other memory than when their edges were
    /// made.
    fn current(&self) -> Result<(Arc<Tables>, bool)> {
        let mut state = self.lock();
        let refreshed = state.refresh_all(&self.target());
        let dropped = state.dropped();
        if let Some(tables) = Arc::get_mut(&mut state.tables) {
            tables.ir.shrink();
        }
        let tables = Arc::clone(&state.tables);
        drop(state);
        drop(dropped);
        refreshed.map_err(|(node, cause)| FinalizeError::Node { node: Node::new(self.id(), node), cause })?;
        let moved = tables.moved || tables.children.iter().any(|child| child.of.has_changed());
        Ok((tables, moved))
    }

    /// Plans the graph for its device and prepares everything that a submission needs. The graph is unchanged and may
    /// grow and be finalized again.
    ///
    /// # Errors
    /// - the graph: [`FinalizeError::Cycle`]; [`FinalizeError::Conflict`] and [`FinalizeError::Node`] for what
    ///   parameters and replaced nodes have brought; [`FinalizeError::GraphMemoryFreed`],
    ///   [`FinalizeError::GraphMemoryNotThere`], [`FinalizeError::OwnMemory`]; [`FinalizeError::Full`];
    /// - the device: [`FinalizeError::NotRunnable`] for a node that it cannot run by any path;
    ///   [`FinalizeError::Memory`] for the graph's own memory (a driver that allocates late may refuse at the first
    ///   submission instead); [`FinalizeError::Argument`] for an argument that only the driver could check;
    ///   [`FinalizeError::Kernel`]; [`crate::DriverError`];
    /// - the options: [`FinalizeError::Option`]; [`SetupError::Environment`] for a wrong `CLGRAPH_PATH`;
    ///   [`FinalizeError::Dump`];
    /// - native commands: [`FinalizeError::NativeCommand`] for one that could not record;
    ///   [`SubmitError::InsideNativeCommand`] inside of one;
    /// - clgraph itself: [`FinalizeError::Defect`].
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Path, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let (graph, buffer) = (Graph::new(&queue)?, Buffer::<u32>::new(&queue, 4)?);
    /// graph.fill(&buffer, 1).add()?;
    /// let executable = graph.finalize(Finalize::new().path(Path::Replay))?;
    /// graph.fill(&buffer, 2).add()?; // the executable does not change: finalize again for another one
    /// assert_eq!((graph.len(), executable.report().nodes), (2, 1));
    /// executable.submit(&queue)?.wait()?;
    /// # Ok(()) }
    /// ```
    #[doc(alias("cudaGraphInstantiate", "clFinalizeCommandBufferKHR"))]
    pub fn finalize(&self, options: Finalize) -> Result<Executable> {
        reentrancy::check_call()?;
        let numbers = [
            ("result_slots", options.result_slots.unwrap_or(1)),
            ("commands_per_buffer", options.commands_per_buffer.unwrap_or(1)),
        ];
        if let Some((option, _)) = numbers.into_iter().find(|(_, number)| *number == 0) {
            let given = "0".to_owned();
            return Err(FinalizeError::Option { option, given, allowed: "at least 1" }.into());
        }
        let (path, from_environment) = asked_path(options.path)?;
        // Whoever adds meanwhile adds to a copy.
        let (graph, moved) = self.current()?;
        let full = || FinalizeError::Full { limit: Ir::MOST as u64 };
        let flat = Flat::new(&graph).ok_or_else(full)?;
        // An update would have to record their command buffers again and again.
        let mut denied = BTreeMap::new();
        if options.updatable && path == Path::Auto && !self.device().mutable().is_some_and(|fields| fields.arguments) {
            denied.extend(flat.origins.of_nodes(&graph.fed).map(|node| (node, Why::Parameters)));
        }
        let asked = Options {
            path,
            from_environment,
            denied: &denied,
            no_native: (options.profiling && !profiles(self.device().caps())).then_some(Why::NotTimed),
            chunk: if options.profiling { Some(1) } else { options.commands_per_buffer },
            measured: options.measured,
            updatable: options.updatable,
            profiled: options.profiling,
            conflicts: if options.allow_conflicts {
                Conflicts::Allowed
            } else if moved {
                Conflicts::Sought
            } else {
                Conflicts::Ruled
            },
        };
        let prepared = self.prepare(&flat, asked, !options.separate_memory)?;
        let Prepared { plan, values, recorded, memory } = prepared;
        let mut report = Report::new(self.device(), &graph, &flat, &plan);
        report.memory = memory.report(&flat);
        let tables = &flat.tables;
        let rings = tables.results.iter().map(|&size| Ring::new(options.result_slots, size)).collect();
        let ports = Arc::new(Ports::new(self.id(), &flat));
        let parts_of = PartsOf::new(&tables.ir, &plan);
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let names = options.profiling.then(|| Arc::new(Names::new(self.id(), &flat, self.device(), id, &plan)));
        let turns = TurnsOf::new(graph.children.iter().flat_map(|child| &child.turns));
        let mut values = values;
        let (mut updatable, mut editing) = (None, None);
        if options.updatable {
            let own_memory = OwnMemory::new(&plan, &values.tables);
            updatable = Some(Updatable::new(self, &graph, &flat.origins, &plan, own_memory, options.allow_conflicts));
            // Its own, so that the first update does not have to copy. Parameters are the graph's: an update asks that.
            let mut own = (*values.tables).clone();
            (own.bindings, own.fed, own.task_groups) = (Vec::new(), BTreeSet::new(), Vec::new());
            own.placed.get_or_insert_default();
            own.split_groups().ok_or_else(full)?;
            editing = Some(Editing::new(&own));
            values.tables = Arc::new(own);
        }
        let choices = options.choices.or_else(env::choices).filter(|_| plan.ways.len() > 1);
        let remembered = choices.map(|file| Remembered::new(file, self.device().caps(), &flat.tables.ir, &plan));
        let mut lane = Lane::new(values, editing, moved, rings, recorded, &plan, remembered);
        let views = Arc::clone(&lane.values);
        lane.share(&turns, views.tables.views.iter().flatten());
        let topology = Arc::clone(&flat.tables.ir.topology);
        let is_event = |node: &NodeId| matches!(flat.tables.ir.op(*node), Op::Event { .. });
        let events_at = flat.tables.ir.ids().filter(is_event).collect();
        let inner = Inner {
            topology,
            events_at,
            behind: Mutex::default(),
            id,
            graph: self.id(),
            context: self.context().clone(),
            device: self.device().clone(),
            plan,
            origins: flat.origins,
            ports,
            parts_of,
            report,
            updatable,
            names,
            lane: Mutex::new(lane),
            turns,
        };
        let dump = env::dump().map(|folder| (folder, graph.to_dot(Detail::Verbose)));
        inner.report.warnings.iter().for_each(|warning| log::warn!("{warning}"));
        inner.report.log();
        if let Some((folder, dot)) = dump {
            dump::write(&folder, &inner.report, &dot)?;
        }
        Ok(Executable(Arc::new(inner)))
    }

    /// Plans, makes kernel objects and command buffers, and plans again without what the driver refuses to record.
    fn prepare(&self, flat: &Flat, asked: Options<'_>, share: bool) -> Result<Prepared> {
        let (mut denied, mut no_native) = (asked.denied.clone(), asked.no_native);
        let (mut values, mut memory) = (None, Layout::default());
        let mut rounds = 0;
        loop {
            let options = Options { denied: &denied, no_native, ..asked };
            let plan = plan::plan(&flat.tables.ir, self.device().caps(), &options)
                .map_err(|error| self.plan_error(flat, error))?;
            // They depend on the graph only, so a second plan has the same.
            let made = match values.take() {
                Some(values) => values,
                None => {
                    // What runs in another order each time cannot have the bytes of what comes before.
                    let share = share && plan.in_order;
                    let (tables, layout) = arena::place(self, self.device(), &flat.tables, &plan, share)?;
                    memory = layout;
                    self.values(tables, flat, &plan)?
                }
            };
            if !plan.is_native() {
                return Ok(Prepared { plan, values: made, recorded: None, memory });
            }
            let refusal = match self.record_buffers(&plan, &made, asked.profiled) {
                Ok(recorded) => return Ok(Prepared { plan, values: made, recorded: Some(recorded), memory }),
                Err(Refusal::Function(node, text)) => {
                    let node = Node::new(self.id(), flat.origins.of(node).node);
                    return Err(FinalizeError::NativeCommand { node, text }.into());
                }
                Err(refusal) => refusal,
            };
            let told = refusal.told(|node| Node::new(self.id(), flat.origins.of(node).node));
            // Nothing to act on, but for who has asked for them.
            let level = if asked.path == Path::Native { log::Level::Warn } else { log::Level::Info };
            log::log!(level, "device `{}` refused to record: {told}; that is replayed", self.device().name());
            values = Some(made);
            rounds += 1;
            match refusal {
                Refusal::Nodes(nodes) if rounds < ROUNDS => {
                    denied.extend(nodes.into_iter().map(|(node, error)| (node, Why::Refused(error))));
                }
                Refusal::Nodes(nodes) => {
                    no_native = Some(nodes.first().map_or(Why::Unusable, |(_, error)| Why::Refused(*error)));
                }
                Refusal::All(Error::Driver(error)) => no_native = Some(Why::Refused(error)),
                Refusal::All(_) | Refusal::Function(..) => no_native = Some(Why::Unusable),
            }
        }
    }

    fn record_buffers(&self, plan: &Plan, values: &Values, profiled: bool) -> Result<(DriverQueue, Recorded), Refusal> {
        let properties = QueueProperties::new().profiling(profiled);
        let queue = DriverQueue::with_properties(self, self.device(), properties).map_err(Refusal::All)?;
        let recorded = native::record(plan, values, &queue, plan.chunk())?;
        Ok((queue, recorded))
    }

    /// Makes the kernel objects.
    fn values(&self, tables: Arc<Tables>, flat: &Flat, plan: &Plan) -> Result<Values> {
        let state = &*tables;
        let mut made = Objects(Vec::with_capacity(plan.objects.len()));
        for spec in &plan.objects {
            let kernel = &state.kernels[spec.kernel.index()];
            let object = kernel
                .with_args(self.device(), set_args(state, spec.args))
                .map_err(|error| self.object_error(flat.origins.of(spec.first).node, kernel.name().to_owned(), error));
            made.0.push(Some(Arc::new(object?)));
        }
        let objects = plan.steps.iter().map(|step| step.object.and_then(|object| made.0[object.index()].clone()));
        let (objects, stale) = (Objects(objects.collect()), Stale::default());
        Ok(Values { device: self.device().clone(), tables: Arc::clone(&tables), objects, stale })
    }

    fn object_error(&self, first: NodeId, kernel: String, error: KernelObjectError) -> Error {
        let node = Node::new(self.id(), first);
        match error {
            KernelObjectError::Argument { index, source } => {
                FinalizeError::Argument { node, kernel, index, source }.into()
            }
            KernelObjectError::Create(Error::Driver(source)) => {
                FinalizeError::Kernel { node, kernel, source: ProgramError::Driver(source) }.into()
            }
            KernelObjectError::Create(error) => error,
        }
    }

    fn plan_error(&self, flat: &Flat, error: PlanError) -> Error {
        let state = &*flat.tables;
        let node = |id| Node::new(self.id(), flat.origins.of(id).node);
        match error {
            PlanError::Cycle(nodes) => {
                let mut nodes: Vec<Node> = nodes.into_iter().map(node).collect();
                // Those of one sub-graph are one node.
                nodes.dedup();
                FinalizeError::Cycle { nodes }.into()
            }
            PlanError::NotRunnable { node: id, missing, kind } => {
                let what = state.told(id);
                let device = self.device().name().to_owned();
                FinalizeError::NotRunnable { node: node(id), what, device, missing, kind }.into()
            }
            PlanError::Conflict(first, second) => {
                let (first_use, second_use) = state.told_uses(first, second);
                FinalizeError::Conflict { first: node(first), first_use, second: node(second), second_use }.into()
            }
            PlanError::Late { alloc, freed, node: late, why } => {
                let alloc = node(state.ir.allocs[alloc.index()].node);
                let (freed, is_free) = (node(freed), matches!(state.ir.op(late), Op::Free(_)));
                let remedy = if is_free { "free it once" } else { "free it later, behind all that use it" };
                FinalizeError::GraphMemoryFreed { alloc, freed, node: node(late), why, remedy }.into()
            }
            PlanError::Early { alloc, node: early } => {
                let alloc = node(state.ir.allocs[alloc.index()].node);
                FinalizeError::GraphMemoryNotThere { alloc, node: node(early) }.into()
            }
            PlanError::Defect(what) => FinalizeError::Defect { what }.into(),
        }
    }
}
