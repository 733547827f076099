//! Finalizes a graph: makes an executable of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use crate::cl::completion::reentrancy;
use crate::cl::objects::context::InContext;
use crate::cl::objects::kernel_object::KernelObjectError;
use crate::cl::objects::queue::{DriverQueue, QueueProperties};
use crate::command::Command;
use crate::env;
#[allow(unused_imports)] // Only the documentation names it.
use crate::error::SubmitError;
use crate::error::{Error, FinalizeError, ProgramError, Result};
use crate::exec::build::arena::{self, OwnMemory};
use crate::exec::build::fuse;
use crate::exec::build::guards::Guards;
use crate::exec::build::loops;
use crate::exec::build::options::{Finalize, Loops, asked_fuse, asked_loops, asked_path};
use crate::exec::build::record::{self, Recorded, Refusal};
use crate::exec::build::values::{Objects, Stale, Values, set_args};
use crate::exec::executable::{Executable, Inner};
use crate::exec::finalized::{Finalized, PartitionsOf};
use crate::exec::submit::exclusive::ExclusiveUse;
use crate::exec::submit::executable_state::ExecutableState;
use crate::exec::submit::result_slots::Ring;
use crate::exec::tune::cache::TuningCache;
use crate::exec::update::destinations::Destinations;
use crate::exec::update::editing::Editing;
use crate::exec::update::updatable::Updatable;
use crate::graph::{DrawingDetail, Flat, Graph, Ports, Tables};
use crate::handles::Node;
use crate::ir::{Ir, NodeId};
use crate::plan::{self, Conflicts, MemoryOptions, Options, Path, PathReason, Plan, PlanError};
use crate::report::dump;
use crate::report::loops::HostDecided;
use crate::report::profile::Names;
use crate::report::summary::Report;

/// How many refusals of nodes by a driver are accepted. After these, nothing is recorded for the driver.
const ROUNDS: usize = 4;

/// What an executable is made of.
struct ExecutableParts {
    plan: Plan,
    values: Values,
    recorded: Option<(DriverQueue, Recorded)>,
    /// Why the host decides loops, by the flows of their bodies.
    host_decided: Vec<(usize, HostDecided)>,
}

/// A graph as it is now.
struct Current {
    tables: Arc<Tables>,
    /// How often nodes have changed in more than values.
    reshaped: Arc<FxHashMap<NodeId, u32>>,
    /// Whether nodes use other memory than when their edges were made.
    moved: bool,
}

impl Graph {
    /// Returns the graph with the current values of parameters.
    fn current(&self) -> Result<Current> {
        let mut state = self.lock();
        let refreshed = state.refresh_all(&self.target());
        let dropped = state.dropped();
        if let Some(tables) = Arc::get_mut(&mut state.tables) {
            tables.ir.shrink();
        }
        let (tables, reshaped) = (Arc::clone(&state.tables), Arc::clone(&state.reshaped));
        drop(state);
        drop(dropped);
        refreshed.map_err(|(node, cause)| FinalizeError::Node { node: Node::new(self.id(), node), cause })?;
        let moved = tables.moved || tables.children.iter().any(|child| child.of.has_changed());
        Ok(Current { tables, reshaped, moved })
    }

    /// Plans the graph for its device and prepares everything that a submission needs. The graph does not change: it
    /// can grow and be finalized again.
    ///
    /// # Errors
    /// - the graph: [`FinalizeError::Cycle`]; [`FinalizeError::Conflict`] and [`FinalizeError::Node`] for changes by
    ///   parameters and replaced nodes; [`FinalizeError::GraphMemoryFreed`],
    ///   [`FinalizeError::GraphMemoryNotAllocated`], [`FinalizeError::MemoryTooLarge`]; [`FinalizeError::Full`];
    /// - the device: [`FinalizeError::NotRunnable`] for a node that the device cannot run by any path;
    ///   [`FinalizeError::Memory`] for the graph's own memory (a driver that allocates late may refuse at the first
    ///   submission instead); [`FinalizeError::Argument`] for an argument that only the driver could check;
    ///   [`FinalizeError::Kernel`]; [`crate::DriverError`];
    /// - the options: [`FinalizeError::Option`]; [`SetupError::Environment`](crate::SetupError::Environment) for a
    ///   wrong `CLGRAPH_PATH` or `CLGRAPH_LOOPS`; [`FinalizeError::Dump`];
    /// - native commands: [`FinalizeError::NativeCommand`] if one could not record;
    ///   [`SubmitError::InsideNativeCommand`] inside the function of a native command;
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
        let (asked_loops, asked_fuse) = (asked_loops(options.loops)?, asked_fuse(options.fuse)?);
        // If another thread adds nodes meanwhile, it adds them to a copy.
        let Current { tables: graph, reshaped, moved } = self.current()?;
        let full = || FinalizeError::Full { limit: Ir::MOST as u64 };
        let (flat, rolled) = loops::unroll(Flat::new(&graph).ok_or_else(full)?, &options, asked_loops);
        let unrolled = Arc::clone(&flat.tables);
        let (flat, fused) = fuse::fuse(flat, self.device(), &options, asked_fuse);
        // Otherwise each update would have to record the command buffers of these nodes again.
        let mut denied = BTreeMap::new();
        if options.updatable && path == Path::Auto && !self.device().mutable().is_some_and(|fields| fields.arguments) {
            denied.extend(flat.origins.of_nodes(&graph.parameter_bound).map(|node| (node, PathReason::Parameters)));
        }
        let (align, limit) = self.context().buffer_limits();
        let bindings = if options.updatable { flat.tables.bindings.as_slice() } else { &[] };
        let parameters: Vec<u32> = bindings.iter().map(|binding| binding.arg).collect();
        let asked = Options {
            path,
            from_environment,
            denied: &denied,
            no_native: (options.profiling && !self.device().caps().records_for_profiling())
                .then_some(PathReason::NoProfilingQueues),
            chunk: if options.profiling { Some(1) } else { options.commands_per_buffer },
            autotune: options.autotune,
            updatable: options.updatable,
            parameters: &parameters,
            profiled: options.profiling,
            conflicts: if options.allow_conflicts {
                Conflicts::Allowed
            } else if moved {
                Conflicts::ToFind
            } else {
                Conflicts::Impossible
            },
            memory: MemoryOptions { align, limit, share: !options.separate_memory },
        };
        let ExecutableParts { plan, values, recorded, host_decided } = self.prepare(&flat, asked, asked_loops)?;
        let mut report = Report::new(self.device(), &graph, &flat, &plan);
        (report.fused, report.not_fused) = (fused.fused, fused.not_fused);
        report.memory = arena::report(&plan.layout, &flat);
        report.loops = rolled.reports(&flat, &values, &host_decided);
        // The kernels of a loop that can go ahead have objects of their own.
        if report.loops.iter().any(|of| of.turns.is_none() && of.host_decided.is_none()) {
            report.kernel_objects = values.objects.count();
        }
        let tables = &flat.tables;
        let rings = tables.results.iter().map(|&size| Ring::new(options.result_slots, size)).collect();
        let ports = Arc::new(Ports::new(self.id(), rolled.flat()));
        let partitions_of = PartitionsOf::new(&tables.ir, &plan);
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let names = options.profiling.then(|| Arc::new(Names::new(self.id(), &flat, self.device(), id, &plan)));
        let exclusive = ExclusiveUse::new(graph.children.iter().flat_map(|child| &child.exclusive));
        let (placed, mut values) = (Arc::clone(&values.tables), values);
        let (mut updatable, mut editing) = (None, None);
        if options.updatable {
            let own_memory = OwnMemory::new(&plan, &values.tables);
            let keeps = Updatable::new(self, &graph, &flat.origins, &plan, own_memory, options.allow_conflicts);
            // The executable has its own tables, so that the first update does not have to copy them. Parameters stay
            // the graph's, because an update reads their values from the graph.
            let mut own = (*values.tables).clone();
            (own.bindings, own.parameter_bound, own.task_groups) = (Vec::new(), BTreeSet::new(), Vec::new());
            own.placed.get_or_insert_default();
            own.split_groups().ok_or_else(full)?;
            let destinations = Destinations::new(&keeps, &own, &graph, &reshaped);
            editing = Some(Editing::new(&own, destinations));
            updatable = Some(keeps);
            values.tables = Arc::new(own);
        }
        let tuning_cache = options.tuning_cache.or_else(env::tuning_cache).filter(|_| plan.strategies.len() > 1);
        let tuning_cache =
            tuning_cache.map(|file| TuningCache::new(file, self.device().caps(), &flat.tables.ir, &plan));
        let mut exec_state = ExecutableState::new(values, editing, moved, rings, recorded, &plan, tuning_cache);
        let views = Arc::clone(&exec_state.values);
        exec_state.share(&exclusive, views.tables.views.iter().flatten());
        let topology = Arc::clone(&flat.tables.ir.topology);
        let has_tasks = !plan.main().tasks.is_empty();
        let controls = rolled.controls(self.id(), &flat, has_tasks).into();
        let event = |node: NodeId| match flat.tables.ir.command(node) {
            Command::Event { event, .. } => Some((*event, node)),
            _ => None,
        };
        let with_events = if flat.tables.ir.externals > 0 { Some(flat.tables.ir.ids()) } else { None };
        let mut events: Vec<_> = with_events.into_iter().flatten().filter_map(event).collect();
        // A pass may have given them another order.
        events.sort_unstable_by_key(|(event, _)| *event);
        let events_at = events.into_iter().map(|(_, node)| node).collect();
        let fixed = Finalized {
            topology,
            events_at,
            controls,
            rolled: rolled.with_memory_of(&flat.tables, &exec_state.values),
            // A fused kernel may stand for nodes of several turns.
            unrolled: if Arc::ptr_eq(&unrolled, &flat.tables) { rolled.places() } else { Vec::new() },
            reachable: Mutex::default(),
            id,
            graph: self.id(),
            context: self.context().clone(),
            device: self.device().clone(),
            plan,
            origins: flat.origins,
            ports,
            partitions_of,
            report,
            updatable,
            names,
        };
        let passes = [
            ("inline", &rolled.flat().tables.ir),
            ("unroll", &unrolled.ir),
            ("fuse", &flat.tables.ir),
            ("place memory", &placed.ir),
        ];
        let dump =
            env::dump().map(|folder| (folder, graph.to_dot(DrawingDetail::Verbose), dump::passes(&graph.ir, &passes)));
        fixed.report.warnings.iter().for_each(|warning| log::warn!("{warning}"));
        fixed.report.log();
        if let Some((folder, dot, text)) = dump {
            dump::write(&folder, &fixed.report, &dot, &text)?;
        }
        Ok(Executable(Arc::new(Inner { fixed, exec_state: Mutex::new(exec_state), exclusive })))
    }

    /// Plans, makes kernel objects and command buffers, and plans again without the nodes that the driver refuses to
    /// record.
    fn prepare(&self, flat: &Flat, asked: Options<'_>, loops: Loops) -> Result<ExecutableParts> {
        let (mut denied, mut no_native) = (asked.denied.clone(), asked.no_native);
        let (mut values, mut host_decided) = (None::<Values>, Vec::new());
        let mut rounds = 0;
        loop {
            let options = Options { denied: &denied, no_native, ..asked };
            let plan = plan::plan(&flat.tables.ir, self.device().caps(), &options)
                .map_err(|error| self.plan_error(flat, error))?;
            // Memory and kernel objects depend only on the graph, so a second plan has the same ones.
            let made = match values.take() {
                Some(values) if !values.guards.fit(&plan) => {
                    return Err(FinalizeError::Defect { what: "another plan has other steps".to_owned() }.into());
                }
                Some(values) => values,
                None => {
                    let tables = arena::place(self, self.device(), &flat.tables, &plan.layout)?;
                    let mut values = self.values(tables, flat, &plan)?;
                    let Values { tables, objects, .. } = &mut values;
                    let guards = Guards::new(self, self.device(), tables, &plan, loops, asked.profiled, objects);
                    (values.guards, host_decided) = (Arc::new(guards.0), guards.1);
                    values
                }
            };
            if !plan.is_native() {
                return Ok(ExecutableParts { plan, values: made, recorded: None, host_decided });
            }
            let refusal = match self.record_buffers(&plan, &made, asked.profiled) {
                Ok(recorded) => {
                    let recorded = Some(recorded);
                    return Ok(ExecutableParts { plan, values: made, recorded, host_decided });
                }
                Err(Refusal::Function(node, text)) => {
                    let node = Node::new(self.id(), flat.origins.of(node).node);
                    return Err(FinalizeError::NativeCommand { node, text }.into());
                }
                Err(refusal) => refusal,
            };
            let reason = refusal.describe(|node| Node::new(self.id(), flat.origins.of(node).node));
            // The program can do nothing about it, so it is a warning only if the program asked for command buffers.
            let level = if asked.path == Path::Native { log::Level::Warn } else { log::Level::Info };
            log::log!(
                level,
                "device `{}` refused to record: {reason}; clgraph replays these \
                              nodes",
                self.device().name()
            );
            values = Some(made);
            rounds += 1;
            match refusal {
                Refusal::Nodes(nodes) if rounds < ROUNDS => {
                    denied.extend(nodes.into_iter().map(|(node, error)| (node, PathReason::Refused(error))));
                }
                Refusal::Nodes(nodes) => {
                    no_native =
                        Some(nodes.first().map_or(PathReason::Unusable, |(_, error)| PathReason::Refused(*error)));
                }
                Refusal::All(Error::Driver(error)) => no_native = Some(PathReason::Refused(error)),
                Refusal::All(_) | Refusal::Function(..) => no_native = Some(PathReason::Unusable),
            }
        }
    }

    fn record_buffers(&self, plan: &Plan, values: &Values, profiled: bool) -> Result<(DriverQueue, Recorded), Refusal> {
        let properties = QueueProperties::new().profiling(profiled);
        let queue = DriverQueue::with_properties(self, self.device(), properties).map_err(Refusal::All)?;
        let recorded = record::record(plan, values, &queue, plan.chunk())?;
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
        let (objects, stale, guards) = (Objects(objects.collect()), Stale::default(), Arc::default());
        Ok(Values { device: self.device().clone(), tables: Arc::clone(&tables), objects, stale, guards })
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
                // All commands of a sub-graph belong to one node.
                nodes.dedup();
                FinalizeError::Cycle { nodes }.into()
            }
            PlanError::NotRunnable { node: id, missing, kind } => {
                let what = state.describe(id);
                let device = self.device().name().to_owned();
                FinalizeError::NotRunnable { node: node(id), what, device, missing, kind }.into()
            }
            PlanError::Conflict(first, second) => {
                let (first_use, second_use) = state.describe_uses(first, second);
                FinalizeError::Conflict { first: node(first), first_use, second: node(second), second_use }.into()
            }
            PlanError::Late { alloc, freed, node: late, why } => {
                let alloc = node(state.ir.allocs[alloc.index()].node);
                let (freed, is_free) = (node(freed), matches!(state.ir.command(late), Command::Free(_)));
                let remedy = if is_free { "free it once" } else { "free it after all nodes that use it" };
                FinalizeError::GraphMemoryFreed { alloc, freed, node: node(late), why, remedy }.into()
            }
            PlanError::Early { alloc, node: early } => {
                let alloc = node(state.ir.allocs[alloc.index()].node);
                FinalizeError::GraphMemoryNotAllocated { alloc, node: node(early) }.into()
            }
            PlanError::MemoryTooLarge => FinalizeError::MemoryTooLarge.into(),
            PlanError::Defect(what) => FinalizeError::Defect { what }.into(),
        }
    }
}
