//! Finalizes a graph: makes an executable of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use rustc_hash::FxHashMap;

use crate::cl::completion::reentrancy;
use crate::cl::completion::user_code::log_later;
use crate::cl::objects::context::InContext;
use crate::cl::objects::kept_programs::KeptPrograms;
use crate::command::Command;
use crate::env;
#[allow(unused_imports)] // Only the documentation names it.
use crate::error::SubmitError;
use crate::error::{Error, FinalizeError, Result, UpdateError};
use crate::exec::build::arena::{self, OwnMemory};
use crate::exec::build::fuse::{self, FusedGraph, How, Reports, Shares};
use crate::exec::build::fused_tier;
use crate::exec::build::loops;
use crate::exec::build::options::{Finalize, Fuse, Loops, asked_fuse, asked_fuse_after, asked_loops, asked_path};
use crate::exec::build::prepare::{ExecutableParts, Home};
use crate::exec::executable::{Executable, Inner};
use crate::exec::finalized::{Finalized, PartitionsOf};
use crate::exec::submit::exclusive::ExclusiveUse;
use crate::exec::submit::executable_state::ExecutableState;
use crate::exec::submit::result_slots::Ring;
use crate::exec::tier::{FUSED, Tier, Waiting};
use crate::exec::tune::cache::TuningCache;
use crate::exec::update::destinations::Destinations;
use crate::exec::update::editing::Editing;
use crate::exec::update::updatable::Updatable;
use crate::graph::{DrawingDetail, Flat, Graph, Ports, Tables};
use crate::handles::Node;
use crate::ir::{Ir, NodeId};
use crate::plan::{Conflicts, MemoryOptions, Options, Path, PathReason, Strategy};
use crate::report::dump;
use crate::report::fused::WhyNotFused;
use crate::report::loops::LoopReport;
use crate::report::profile::Names;
use crate::report::summary::Report;

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
        self.refresh_recorded().map_err(|(node, error)| match *error {
            Error::Update(UpdateError::Node { cause, .. }) => {
                FinalizeError::Node { node: Node::new(self.id(), node), cause }.into()
            }
            other => other,
        })?;
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
    ///   wrong `CLGRAPH_PATH`, `CLGRAPH_LOOPS` or another variable; [`FinalizeError::Dump`];
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
        let (asked_loops, asked_fuse, fuse_after) = (
            asked_loops(options.loops)?,
            asked_fuse(options.fuse, self.device().caps())?,
            asked_fuse_after(options.fuse_after)?,
        );
        let checks = env::check_elementwise()?;
        let tuning_cache = options.tuning_cache.clone().or_else(env::tuning_cache);
        let kept = tuning_cache.as_deref().and_then(KeptPrograms::beside);
        // If another thread adds nodes meanwhile, it adds them to a copy.
        let Current { tables: graph, reshaped, moved } = self.current()?;
        let full = || FinalizeError::Full { limit: Ir::MOST as u64 };
        let (flat, rolled) = loops::unroll(Flat::new(&graph).ok_or_else(full)?, &options, asked_loops);
        let unchecked = Arc::clone(&flat.tables);
        let checked = if checks { checked(&flat, &options) } else { None };
        // A fused form would have the launches without the host, and which node is one changes with updates.
        let is_checked = checked.is_some() && !options.allow_conflicts;
        let asked_fuse = if is_checked { Fuse::Off } else { asked_fuse };
        let flat = checked.unwrap_or(flat);
        let unrolled = Arc::clone(&flat.tables);
        let home = Home { graph: self.id(), context: self.context(), device: self.device() };
        let (align, limit) = self.context().buffer_limits();
        // The host does a launch as soon as its edges allow it: no order of commands keeps it from others that would share its bytes. This
        // executable may be a part of another one, in which the host does its launches.
        let memory = MemoryOptions { align, limit, share: !options.separate_memory && !checks };
        // The environment may ask for fused kernels where a program wants the times of its launches.
        let is_asked = !options.profiling || options.fuse == Some(Fuse::Now);
        let fuses_now = asked_fuse == Fuse::Now && !options.updatable && is_asked;
        if fuses_now && moved && !options.allow_conflicts {
            home.find_conflicts(&flat, memory)?;
        }
        let placed = fuses_now && !flat.tables.ir.allocs.is_empty();
        let placed = if placed { Some(home.place_memory(&flat, memory)?) } else { None };
        let before = placed.as_ref().map_or(&flat, |(placed, _)| placed).clone();
        let is_replayed = matches!(path, Path::Auto | Path::Replay | Path::Gated);
        // A profile says where in a sub-graph a node is, fused or not.
        let (origins, mut first_of, mut fuse_build) = (flat.origins.clone(), Vec::new(), None);
        let (now_fused, fused) = if fuses_now {
            let how = How {
                device: self.device(),
                shares: &Shares::default(),
                keeps_order: options.allow_conflicts,
                // Each turn is timed.
                loops: if options.profiling { Loops::HostDecided } else { asked_loops },
                kept: kept.as_ref(),
            };
            let begun = Instant::now();
            let fused = fuse::fuse(before, how);
            let FusedGraph { flat, reports, launches, made, .. } = fused;
            first_of = fused.first_of;
            let runs = fused_tier::warm_up(self.context(), self.device(), &launches);
            fuse_build = Some(begun.elapsed()).filter(|_| !launches.is_empty());
            match runs {
                Ok(()) => {
                    kept.iter().for_each(|kept| kept.keep(&made));
                    (flat, reports)
                }
                Err(error) => {
                    log_later!(Debug, "{error}: an executable is not fused");
                    kept.iter().for_each(|kept| kept.forget(&made));
                    let not_fused = fused_tier::refused(reports, &error);
                    (flat, Reports { not_fused, ..Reports::default() })
                }
            }
        } else {
            let why = match asked_fuse {
                _ if is_checked => Some(WhyNotFused::Checked),
                Fuse::Now if options.profiling => Some(WhyNotFused::Profiled),
                Fuse::Now if !is_replayed => Some(WhyNotFused::Updatable),
                Fuse::Now | Fuse::Auto | Fuse::Off => None,
            };
            let not_fused = why.map(|why| fuse::none(&before, &why)).unwrap_or_default();
            (before, Reports { not_fused, ..Reports::default() })
        };
        // Without a fused kernel the memory has its place by the plan that is carried out.
        let is_fused = !fused.fused.is_empty();
        let with_memory = placed.as_ref().filter(|_| is_fused).map(|(placed, _)| Arc::clone(&placed.tables));
        let placed = placed.filter(|_| is_fused).map(|(_, report)| report);
        let flat = if is_fused {
            now_fused
        } else {
            // There may be no room for the memory twice.
            drop(now_fused);
            first_of.clear();
            flat
        };
        // Otherwise each update would have to record the command buffers of these nodes again.
        let mut denied = BTreeMap::new();
        if options.updatable && path == Path::Auto && !self.device().mutable().is_some_and(|fields| fields.arguments) {
            denied.extend(flat.origins.of_nodes(&graph.parameter_bound).map(|node| (node, PathReason::Parameters)));
        }
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
            memory,
        };
        let ExecutableParts { plan, values, recorded, host_decided } = home.prepare(&flat, asked, asked_loops)?;
        let mut report = Report::new(self.device(), &graph, &flat, &plan);
        (report.fused, report.not_fused, report.fuse_build) = (fused.fused, fused.not_fused, fuse_build);
        if asked_fuse == Fuse::Now && options.updatable && is_replayed && plan.only_recorded {
            report.not_fused = fuse::none(&flat, &WhyNotFused::Updatable);
        }
        report.memory = placed.unwrap_or_else(|| arena::report(&plan.layout, &flat));
        report.loops = rolled.reports(&flat, &values, &host_decided);
        // The kernels of a loop that can go ahead have objects of their own.
        if report.loops.iter().any(|of| of.turns.is_none() && of.host_decided.is_none() && !of.on_device) {
            report.kernel_objects = values.objects.count();
        }
        let tables = &flat.tables;
        let rings = tables.results.iter().map(|&size| Ring::new(options.result_slots, size)).collect();
        let ports = Arc::new(Ports::new(self.id(), rolled.flat()));
        let partitions_of = PartitionsOf::new(&tables.ir, &plan);
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let names = options
            .profiling
            .then(|| Arc::new(Names::new(self.id(), &flat, (&origins, &first_of), self.device(), id, &plan)));
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
            let may_fuse = asked_fuse != Fuse::Off && !options.profiling;
            let shares =
                if may_fuse { Shares::of_parameters(&graph, |node| keeps.alone(node)) } else { Shares::default() };
            editing = Some(Editing::new(&own, destinations, shares));
            updatable = Some(keeps);
            values.tables = Arc::new(own);
        }
        let tuning_cache = tuning_cache.filter(|_| plan.strategies.len() > 1);
        let tuning_cache =
            tuning_cache.map(|file| TuningCache::new(file, self.device().caps(), &flat.tables.ir, &plan));
        let mut exec_state = ExecutableState::new(values, editing, moved, rings, recorded, &plan, tuning_cache);
        let views = Arc::clone(&exec_state.values);
        exec_state.share(&exclusive, views.tables.views.iter().flatten());
        let topology = Arc::clone(&flat.tables.ir.topology);
        let has_tasks = !plan.main().tasks.is_empty();
        let controls = rolled.controls(self.id(), &flat, has_tasks).into();
        let fixed = Finalized {
            topology,
            events_at: events_at(&flat),
            controls,
            rolled: rolled.with_memory_of(&flat.tables, &exec_state.values),
            fused_nodes: fused.nodes,
            // A fused kernel may stand for nodes of several turns.
            unrolled: if Arc::ptr_eq(&unrolled, &flat.tables) { rolled.places() } else { Vec::new() },
            reachable: Mutex::default(),
            allow_conflicts: options.allow_conflicts,
            id,
            graph: self.id(),
            context: self.context().clone(),
            device: self.device().clone(),
            plan,
            origins: flat.origins,
            ports,
            partitions_of,
            report,
            is_replaceable: self.is_body()
                && graph.ir.allocs.is_empty()
                && graph.children.iter().all(|child| child.of.is_replaceable()),
            updatable,
            names,
        };
        let mut passes = vec![("inline", &rolled.flat().tables.ir), ("unroll", &unchecked.ir)];
        passes.extend(is_checked.then_some(("check", &unrolled.ir)));
        // What is fused at once has its memory before.
        passes.extend(with_memory.iter().map(|placed| ("place memory", &placed.ir)));
        passes.push(("fuse", &flat.tables.ir));
        if with_memory.is_none() {
            passes.push(("place memory", &placed.ir));
        }
        let dump =
            env::dump().map(|folder| (folder, graph.to_dot(DrawingDetail::Verbose), dump::passes(&graph.ir, &passes)));
        fixed.report.warnings.iter().for_each(|warning| log::warn!("{warning}"));
        fixed.report.log();
        if let Some((folder, dot, text)) = dump {
            dump::write(&folder, &fixed.report, Some(&dot), &text)?;
        }
        // Fewer launches have nothing to gain, unless a loop launches them again and again; and what is fixed is not changed.
        let launches = fixed.plan.steps.iter().filter(|step| step.object.is_some()).take(2).count();
        let is_unrolled = |of: &LoopReport| of.turns.is_some() && of.host_decided.is_none();
        let is_small = launches < 2 && fixed.report.loops.iter().all(is_unrolled);
        let may_fuse = !options.profiling && !fixed.plan.only_recorded;
        let is_tiered = may_fuse && asked_fuse == Fuse::Auto && path == Path::Auto && options.autotune && !is_small;
        let is_pinned = may_fuse && asked_fuse == Fuse::Now && options.updatable && is_replayed;
        let way = fused_tier::Way { loops: asked_loops, kept };
        let inner = Arc::new_cyclic(|this: &Weak<Inner>| {
            let this = Weak::clone(this);
            let way = way.clone();
            let build = move || fused_tier::start(&this, &way);
            if is_tiered {
                exec_state.may_fuse(Waiting::new(fuse_after, None, Arc::new(build)));
            } else if is_pinned {
                let is_gated = path == Path::Gated && fixed.plan.strategies.iter().any(|one| one.path == path);
                let pinned = Strategy { path: if is_gated { Path::Gated } else { Path::Replay }, ..FUSED };
                exec_state.tier = Tier::Building(Waiting::new(None, Some(pinned), Arc::new(build)));
            }
            Inner { fixed, exec_state: Mutex::new(exec_state), exclusive }
        });
        if is_pinned {
            fused_tier::now(&inner, &way);
        }
        Ok(Executable(inner))
    }
}

/// Returns the graph in which the host does the launches that are checked; if they cannot be, in which the device does those of sub-graphs
/// too. None if nothing changes.
fn checked(flat: &Flat, options: &Finalize) -> Option<Flat> {
    // An update may bring a promise to any launch.
    let checked = flat.checked(options.updatable)?;
    if options.allow_conflicts {
        log::warn!(
            "an executable is not checked, although CLGRAPH_CHECK_ELEMENTWISE says so: it has \
             `Finalize::allow_conflicts`, and launches without an order would run in another one"
        );
        return flat.unchecked();
    }
    Some(checked)
}

/// Returns the nodes with external events, by event.
pub(in crate::exec) fn events_at(flat: &Flat) -> Vec<NodeId> {
    let ir = &flat.tables.ir;
    let event = |node: NodeId| match ir.command(node) {
        Command::Event { event, .. } => Some((*event, node)),
        _ => None,
    };
    let with_events = if ir.externals > 0 { Some(ir.ids()) } else { None };
    let mut events: Vec<_> = with_events.into_iter().flatten().filter_map(event).collect();
    // A pass may have given them another order.
    events.sort_unstable_by_key(|(event, _)| *event);
    events.into_iter().map(|(_, node)| node).collect()
}
