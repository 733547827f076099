//! Builds the fused form of an executable in the background or at finalize, and runs fused kernels once with no launch in them: drivers
//! compile a kernel when it is first enqueued.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use crate::cl::commands::enqueue::{self, To, Waits};
use crate::cl::completion::background;
use crate::cl::completion::user_code::{catch, log_later};
use crate::cl::memory::region::AsRegion;
use crate::cl::objects::buffer::Buffer;
use crate::cl::objects::context::{Context, InContext};
use crate::cl::objects::device::Device;
use crate::cl::objects::kept_programs::KeptPrograms;
use crate::cl::objects::kernel_object::KernelObjectError;
use crate::cl::objects::queue::{DriverQueue, QueueProperties};
use crate::command::{Arg, Command};
use crate::env;
use crate::error::{Error, Result};
use crate::exec::build::finalize::events_at;
use crate::exec::build::fuse::{self, FusedGraph, FusedLaunches, How, Layout, Reports, Shares};
use crate::exec::build::loops;
use crate::exec::build::options::{Finalize, Loops};
use crate::exec::build::prepare::{ExecutableParts, Home, plain_options};
use crate::exec::executable::Inner;
use crate::exec::finalized::{Finalized, PartitionsOf};
use crate::exec::tier::{self, Built, Form, FusedPlan};
use crate::graph::{CurrentValues, Flat, Ports, Tables};
use crate::handles::GraphId;
use crate::lower::Need;
use crate::plan::{MemoryOptions, Options};
use crate::report::Report;
use crate::report::dump;
use crate::report::fused::{FusingState, NotFusedReport, WhyNotFused};

/// How the fused form of an executable is built.
#[derive(Clone)]
pub(in crate::exec) struct Way {
    /// How loops run.
    pub(in crate::exec) loops: Loops,
    /// Where fused kernels are kept for the next process.
    pub(in crate::exec) kept: Option<KeptPrograms>,
}

/// Builds the fused form of an executable in the background. The caller holds no lock.
pub(in crate::exec) fn start(executable: &Weak<Inner>, way: &Way) {
    let Some(inner) = executable.upgrade() else { return };
    let (of, way) = (Weak::clone(executable), way.clone());
    let runs = background::run(move || {
        let begun = Instant::now();
        // The executable may be dropped meanwhile.
        let Some(parts) = of.upgrade().map(|inner| Parts::of(&inner, way)) else { return };
        let built = catch(|| parts.build()).unwrap_or_else(|text| {
            log_later!(Error, "clgraph (please report this) panicked: {text}; an executable is not fused");
            Err((FusingState::Refused, Vec::new()))
        });
        let took = begun.elapsed();
        tier::build_took(took);
        if let Some(inner) = of.upgrade() {
            give(&inner, built, took);
        }
    });
    if !runs {
        let mut exec_state = inner.lock_state();
        let spent = exec_state.autotuner.spent();
        exec_state.tier.put_off(spent.saturating_add(spent / 8 + 1));
    }
}

/// Builds the fused form of an executable now.
pub(in crate::exec) fn now(inner: &Inner, way: &Way) {
    let begun = Instant::now();
    let built = Parts::of(inner, way.clone()).build();
    let took = begun.elapsed();
    tier::build_took(took);
    give(inner, built, took);
}

/// How often updates are looked for without holding up the executable.
const LOOKS: usize = 4;

fn give(inner: &Inner, mut built: Built, took: Duration) {
    let (mut unfit, mut old) = (None, Vec::new());
    // Updates may have come while it was built. All values are compared, so this is done without the lock, as long as it can be.
    if let Ok((form, base)) = &mut built
        && inner.fixed.updatable.is_some()
    {
        for _ in 0..LOOKS {
            let now = Arc::clone(&inner.lock_state().values.tables);
            if Arc::ptr_eq(&now, base) || unfit.is_some() {
                break;
            }
            unfit = form.catch_up(&inner.fixed, base, &now, &mut old).err();
            *base = now;
        }
    }
    drop(old);
    let mut exec_state = inner.lock_state();
    if !matches!(built, Err((FusingState::Nothing, _))) {
        exec_state.fuse_build = Some(took);
    }
    exec_state.has_fused_form(&inner.fixed, built, unfit);
    let leftovers = exec_state.leftovers();
    drop(exec_state);
    leftovers.run(&inner.exclusive);
}

/// What a build needs of an executable.
struct Parts {
    context: Context,
    device: Device,
    graph: GraphId,
    id: u64,
    flat: Flat,
    /// The values of the executable.
    base: Arc<Tables>,
    shares: Shares,
    options: Finalize,
    allow_conflicts: bool,
    ports: Arc<Ports>,
    report: Report,
    way: Way,
}

impl Parts {
    fn of(inner: &Inner, way: Way) -> Self {
        let fixed = &inner.fixed;
        let mut options = Finalize::new();
        if fixed.updatable.is_some() {
            options = options.updatable();
        }
        let flat = inner.flat();
        let base = Arc::clone(&flat.tables);
        let shares = inner.lock_state().editing.as_ref().map(|editing| editing.shares.clone()).unwrap_or_default();
        Self {
            context: fixed.context.clone(),
            device: fixed.device.clone(),
            graph: fixed.graph,
            id: fixed.id,
            flat: flat.again(),
            base,
            shares,
            options,
            allow_conflicts: fixed.allow_conflicts,
            ports: Arc::clone(&fixed.ports),
            report: fixed.report.clone(),
            way,
        }
    }

    /// Builds it.
    fn build(self) -> Built {
        let Self { context, device, graph, id, flat, base, shares, options, allow_conflicts, ports, mut report, way } =
            self;
        let Way { loops, kept } = way;
        let before = Arc::clone(&flat.tables);
        let (flat, rolled) = loops::unroll(flat, &options, loops);
        let unrolled = Arc::clone(&flat.tables);
        let how = How { device: &device, shares: &shares, keeps_order: allow_conflicts, loops, kept: kept.as_ref() };
        let FusedGraph { flat, reports, launches, layout, made, .. } = fuse::fuse(flat, how);
        if reports.fused.is_empty() {
            return Err((FusingState::Nothing, reports.not_fused));
        }
        let is_updatable = options != Finalize::new();
        let runs = warm_up(&context, &device, &launches);
        kept.iter().for_each(|kept| if runs.is_ok() { kept.keep(&made) } else { kept.forget(&made) });
        let prepared = runs.and_then(|()| {
            let (align, limit) = context.buffer_limits();
            // Conflicts were looked for when the executable was finalized, and its memory has its place.
            let asked = plain_options(MemoryOptions { align, limit, share: false });
            // Then commands without work have steps too: an update may give them some.
            let asked = Options { updatable: is_updatable, ..asked };
            Home { graph, context: &context, device: &device }.prepare(&flat, asked, loops)
        });
        let ExecutableParts { plan, mut values, .. } = match prepared {
            Ok(parts) => parts,
            Err(error) => {
                log_later!(Debug, "{error}: an executable is not fused");
                return Err((FusingState::Refused, refused(reports, &error)));
            }
        };
        (report.fused, report.not_fused) = (reports.fused, reports.not_fused);
        report.take_plan(&flat, &plan);
        if let Some(folder) = env::dump() {
            let passes = [("unroll", &unrolled.ir), ("fuse", &flat.tables.ir)];
            if let Err(error) = dump::write(&folder, &report, None, &dump::passes(&before.ir, &passes)) {
                log_later!(Warn, "{error}: what is fused is not written");
            }
        }
        let has_tasks = !plan.main().tasks.is_empty();
        let fixed = Finalized {
            is_replaceable: false,
            topology: Arc::clone(&flat.tables.ir.topology),
            events_at: events_at(&flat),
            controls: rolled.controls(graph, &flat, has_tasks).into(),
            rolled: None,
            unrolled: Vec::new(),
            fused_nodes: reports.nodes,
            reachable: Mutex::default(),
            allow_conflicts,
            id,
            graph,
            partitions_of: PartitionsOf::new(&flat.tables.ir, &plan),
            context,
            device,
            plan,
            origins: flat.origins.clone(),
            ports,
            report,
            updatable: None,
            names: None,
        };
        let mut step_of = vec![None; flat.tables.ir.len()];
        (0..).zip(&fixed.plan.steps).for_each(|(at, step)| step_of[step.node.index()] = Some(at));
        drop(flat);
        let layout = if is_updatable { layout } else { Layout::default() };
        if is_updatable {
            // An update may take memory away that only the launches before had.
            let of_chains = layout.chains.iter();
            let launches = of_chains.clone().flat_map(|chain| &chain.launches);
            let args = launches.filter_map(|launch| match base.ir.command(launch.node) {
                Command::Kernel { args, .. } => Some(*args),
                _ => None,
            });
            Arc::make_mut(&mut values.tables).ir.forget(args, of_chains.map(|chain| chain.node));
        }
        Ok((Form::new(FusedPlan { fixed, layout, step_of }, values), base))
    }
}

/// Returns why no launch is fused, if the driver refused the form that has these launches fused.
pub(in crate::exec) fn refused(reports: Reports, error: &Error) -> Vec<NotFusedReport> {
    let Reports { fused, mut not_fused, .. } = reports;
    let error = error.to_string();
    // Several launches may be of one sub-graph or body.
    let nodes: BTreeSet<usize> = fused.into_iter().flat_map(|of| of.nodes).collect();
    let why = |node| NotFusedReport { node, why: WhyNotFused::Refused { error: error.clone() } };
    not_fused.extend(nodes.into_iter().map(why));
    not_fused.sort_by_key(|of| of.node);
    not_fused
}

/// Runs fused kernels without their launches, on memory that nothing else uses: drivers compile kernels when they first run.
pub(in crate::exec) fn warm_up(context: &impl InContext, device: &Device, launches: &[FusedLaunches]) -> Result<()> {
    if launches.is_empty() {
        return Ok(());
    }
    let scratch = Buffer::<u64>::new(context, 1)?;
    let mem = scratch.region().mem;
    let queue = DriverQueue::with_properties(context, device, QueueProperties::default())?;
    let longest = launches.iter().flat_map(|launch| &launch.needs).map(Need::size).max().unwrap_or(0);
    let zeros = vec![0; longest.max(size_of::<u64>())];
    for FusedLaunches { kernel, grid, needs, tabled, turns } in launches {
        let arg = |need: &Need| match need {
            Need::Memory(_) => Arg::Memory(&mem),
            Need::Local(_, size) => Arg::Local(*size),
            need => Arg::Value(&zeros[..need.size()]),
        };
        let needs = &needs[..needs.len() - tabled];
        let table = Some(Arg::Memory(&mem)).filter(|_| *tabled > 0);
        let none = table.into_iter().chain([Arg::Value(&zeros[..4])]);
        // State, condition, and its index.
        let of_turns = [Arg::Memory(&mem), Arg::Memory(&mem), Arg::Value(&zeros[..8])];
        let of_turns = of_turns.into_iter().filter(|_| *turns);
        let object =
            kernel.with_args(device, needs.iter().map(arg).chain(none).chain(of_turns)).map_err(
                |error| match error {
                    KernelObjectError::Create(error) => error,
                    KernelObjectError::Argument { source, .. } => Error::from(source),
                },
            )?;
        let to = To { queue: &queue, waits: &Waits::NONE, event: false };
        enqueue::kernel(&to, &object, grid.dims, &grid.offset, &grid.global, grid.local.as_ref())?;
    }
    queue.finish()
}
