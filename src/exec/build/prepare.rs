//! What comes after the passes: plans a flat graph, makes its memory, kernel objects and command buffers, and words the errors of
//! that.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cl::completion::user_code::log_later;
use crate::cl::objects::context::{Context, InContext};
use crate::cl::objects::device::Device;
use crate::cl::objects::kernel_object::KernelObjectError;
use crate::cl::objects::queue::{DriverQueue, QueueProperties};
use crate::command::Command;
use crate::error::{Error, FinalizeError, ProgramError, Result};
use crate::exec::build::arena;
use crate::exec::build::guards::Guards;
use crate::exec::build::options::Loops;
use crate::exec::build::record::{self, Recorded, Refusal};
use crate::exec::build::values::{Objects, Stale, Values, set_args};
use crate::graph::{Flat, Tables};
use crate::handles::{GraphId, Node};
use crate::ir::NodeId;
use crate::plan::{self, Conflicts, MemoryOptions, Options, Path, PathReason, Plan, PlanError};
use crate::report::MemoryReport;
use crate::report::loops::HostDecided;

/// How many refusals of nodes by a driver are accepted. After these, nothing is recorded for the driver.
const ROUNDS: usize = 4;

/// What an executable is made of.
pub(in crate::exec) struct ExecutableParts {
    pub(in crate::exec) plan: Plan,
    pub(in crate::exec) values: Values,
    pub(in crate::exec) recorded: Option<(DriverQueue, Recorded)>,
    /// Why the host decides loops, by the flows of their bodies.
    pub(in crate::exec) host_decided: Vec<(usize, HostDecided)>,
}

/// The graph that something is prepared for.
pub(in crate::exec) struct Home<'a> {
    pub(in crate::exec) graph: GraphId,
    pub(in crate::exec) context: &'a Context,
    pub(in crate::exec) device: &'a Device,
}

impl InContext for Home<'_> {
    fn context(&self) -> &Context {
        self.context
    }
}

impl Home<'_> {
    /// Plans, makes kernel objects and command buffers, and plans again without the nodes that the driver refuses to
    /// record.
    pub(in crate::exec) fn prepare(&self, flat: &Flat, asked: Options<'_>, loops: Loops) -> Result<ExecutableParts> {
        let (mut denied, mut no_native) = (asked.denied.clone(), asked.no_native);
        let (mut values, mut host_decided) = (None::<Values>, Vec::new());
        let mut rounds = 0;
        loop {
            let options = Options { denied: &denied, no_native, ..asked };
            let plan = plan::plan(&flat.tables.ir, self.device.caps(), &options)
                .map_err(|error| self.plan_error(flat, error))?;
            // Memory and kernel objects depend only on the graph, so a second plan has the same ones.
            let made = match values.take() {
                Some(values) if !values.guards.fit(&plan) => {
                    return Err(FinalizeError::Defect { what: "another plan has other steps".to_owned() }.into());
                }
                Some(values) => values,
                None => {
                    let tables = arena::place(self, self.device, &flat.tables, &plan.layout)?;
                    let mut values = self.values(tables, flat, &plan)?;
                    let Values { tables, objects, .. } = &mut values;
                    let guards = Guards::new(self, self.device, tables, &plan, loops, asked.profiled, objects);
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
                    let node = Node::new(self.graph, flat.origins.of(node).node);
                    return Err(FinalizeError::NativeCommand { node, text }.into());
                }
                Err(refusal) => refusal,
            };
            let reason = refusal.describe(|node| Node::new(self.graph, flat.origins.of(node).node));
            // The program can do nothing about it, so it is a warning only if the program asked for command buffers.
            let level = if asked.path == Path::Native { log::Level::Warn } else { log::Level::Info };
            log_later!(
                level => "device `{}` refused to record: {reason}; clgraph replays these \
                              nodes",
                self.device.name()
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

    /// Places the memory of a graph's own before launches are fused: a fused kernel needs the memory of all its launches at once, which
    /// may be many times what they need one after another. Returns the graph with its memory, and where that is.
    pub(in crate::exec) fn place_memory(&self, flat: &Flat, memory: MemoryOptions) -> Result<(Flat, MemoryReport)> {
        let asked = plain_options(memory);
        let plan =
            plan::plan(&flat.tables.ir, self.device.caps(), &asked).map_err(|error| self.plan_error(flat, error))?;
        let tables = arena::place(self, self.device, &flat.tables, &plan.layout)?;
        Ok((Flat::of(tables, flat.origins.clone()).again(), arena::report(&plan.layout, flat)))
    }

    /// Finds nodes that conflict and that no edges order, before launches are fused: the order of a fused kernel would hide them.
    pub(in crate::exec) fn find_conflicts(&self, flat: &Flat, memory: MemoryOptions) -> Result<()> {
        let asked = Options { conflicts: Conflicts::ToFind, ..plain_options(memory) };
        plan::plan(&flat.tables.ir, self.device.caps(), &asked).map_err(|error| self.plan_error(flat, error)).map(drop)
    }

    fn record_buffers(&self, plan: &Plan, values: &Values, profiled: bool) -> Result<(DriverQueue, Recorded), Refusal> {
        let properties = QueueProperties::new().profiling(profiled);
        let queue = DriverQueue::with_properties(self, self.device, properties).map_err(Refusal::All)?;
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
                .with_args(self.device, set_args(state, spec.args))
                .map_err(|error| self.object_error(flat.origins.of(spec.first).node, kernel.name().to_owned(), error));
            made.0.push(Some(Arc::new(object?)));
        }
        let objects = plan.steps.iter().map(|step| step.object.and_then(|object| made.0[object.index()].clone()));
        let (objects, stale, guards) = (Objects(objects.collect()), Stale::default(), Arc::default());
        Ok(Values { device: self.device.clone(), tables: Arc::clone(&tables), objects, stale, guards })
    }

    fn object_error(&self, first: NodeId, kernel: String, error: KernelObjectError) -> Error {
        let node = Node::new(self.graph, first);
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
        let node = |id| Node::new(self.graph, flat.origins.of(id).node);
        match error {
            PlanError::Cycle(nodes) => {
                let mut nodes: Vec<Node> = nodes.into_iter().map(node).collect();
                // All commands of a sub-graph belong to one node.
                nodes.dedup();
                FinalizeError::Cycle { nodes }.into()
            }
            PlanError::NotRunnable { node: id, missing, kind } => {
                let what = state.describe(id);
                let device = self.device.name().to_owned();
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

/// The options of a plan for one queue, without command buffers.
pub(in crate::exec) fn plain_options(memory: MemoryOptions) -> Options<'static> {
    static NONE: BTreeMap<NodeId, PathReason> = BTreeMap::new();
    Options {
        path: Path::Replay,
        from_environment: false,
        denied: &NONE,
        no_native: None,
        chunk: None,
        autotune: false,
        updatable: false,
        parameters: &[],
        profiled: false,
        conflicts: Conflicts::Allowed,
        memory,
    }
}
