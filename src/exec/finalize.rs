//! From a graph to an executable.

use std::sync::Mutex;

use super::lane::Lane;
use super::report::Report;
use super::ring::Ring;
use super::{Executable, Inner};
use crate::cl::context::InContext;
use crate::cl::kernel::{KernelObject, KernelObjectError, SetArg};
use crate::error::{Error, FinalizeError, ProgramError, Result};
use crate::graph::{Graph, Node, NodeKind, State};
use crate::ir::{Arg, NodeId, Op};
use crate::plan::{self, Options, Path, Plan, PlanError};

/// How a graph is to be finalized.
///
/// ```
/// use clgraph::{Finalize, Path};
/// let options = Finalize::new().path(Path::Replay).result_slots(8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Finalize {
    path: Path,
    result_slots: usize,
}

impl Finalize {
    /// The usual options: the path is chosen automatically, and each host read has four slots for results.
    pub const fn new() -> Self {
        Self { path: Path::Auto, result_slots: 4 }
    }

    /// By which path commands get to the device.
    pub const fn path(mut self, path: Path) -> Self {
        self.path = path;
        self
    }

    /// How many submissions may hold results of one host read at a time, at least 1. Memory for a slot is taken when it
    /// is first needed.
    pub const fn result_slots(mut self, slots: usize) -> Self {
        self.result_slots = slots;
        self
    }
}

impl Default for Finalize {
    fn default() -> Self {
        Self::new()
    }
}

impl Graph {
    /// Plans the graph for its device and prepares everything that a submission needs. The graph is unchanged and may
    /// grow and be finalized again.
    ///
    /// # Errors
    /// [`FinalizeError::NotRunnable`] for a node that the device cannot run, [`FinalizeError::Cycle`],
    /// [`FinalizeError::Argument`] for an argument that only the driver could check, [`FinalizeError::Kernel`],
    /// [`FinalizeError::Option`]; [`crate::DriverError`].
    pub fn finalize(&self, options: Finalize) -> Result<Executable> {
        if options.result_slots == 0 {
            let (option, given) = ("result_slots", "0".to_owned());
            return Err(FinalizeError::Option { option, given, allowed: "at least 1" }.into());
        }
        let state = self.lock();
        let plan = plan::plan(&state.ir, self.device().caps(), Options { path: options.path })
            .map_err(|error| self.plan_error(&state, error))?;
        let objects = self.kernel_objects(&state, &plan)?;
        let report = Report::new(self.device(), &state, &plan);
        report.warnings.iter().for_each(|warning| log::warn!("{warning}"));
        let rings = state.results.iter().map(|&size| Ring::new(options.result_slots, size)).collect();
        let inputs = state.ir.ids().filter_map(|id| match state.ir.op(id) {
            Op::Write { data, .. } => Some((id, *data)),
            _ => None,
        });
        let result_nodes = state.ir.ids().filter(|id| matches!(state.ir.op(*id), Op::Read { .. }));
        Ok(Executable(std::sync::Arc::new(Inner {
            graph: self.id(),
            context: self.context().clone(),
            device: self.device().clone(),
            plan,
            views: state.views.clone(),
            objects,
            data: state.data.clone(),
            inputs: inputs.collect(),
            result_nodes: result_nodes.collect(),
            report,
            lane: Mutex::new(Lane::new(rings)),
        })))
    }

    fn kernel_objects(&self, state: &State, plan: &Plan) -> Result<Vec<KernelObject>> {
        let mut objects = Vec::with_capacity(plan.objects.len());
        for spec in &plan.objects {
            let kernel = &state.kernels[spec.kernel.index()];
            let args = state.ir.args(spec.args).iter().map(|arg| match arg {
                Arg::Buffer(view) => SetArg::Mem(&state.views[view.index()]),
                Arg::Null => SetArg::Null,
                Arg::Local(size) => SetArg::Local(*size),
                Arg::Value(span) => SetArg::Value(state.ir.bytes(*span)),
            });
            match kernel.with_args(args) {
                Ok(object) => objects.push(object),
                Err(error) => {
                    // Newest first, as everywhere: see `Inner::drop`.
                    while let Some(object) = objects.pop() {
                        drop(object);
                    }
                    return Err(self.object_error(spec.first, kernel.name().to_owned(), error));
                }
            }
        }
        Ok(objects)
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

    fn plan_error(&self, state: &State, error: PlanError) -> Error {
        let node = |id| Node::new(self.id(), id);
        match error {
            PlanError::Cycle(nodes) => FinalizeError::Cycle { nodes: nodes.into_iter().map(node).collect() }.into(),
            PlanError::NotRunnable { node: id, missing, kind } => {
                let op = state.ir.op(id);
                let what = match op {
                    Op::Kernel { kernel, .. } => format!("kernel `{}`", state.ir.kernels[kernel.index()].name),
                    op => NodeKind::of(op).to_string(),
                };
                let device = self.device().name().to_owned();
                FinalizeError::NotRunnable { node: node(id), what, device, missing, kind }.into()
            }
            PlanError::Defect(what) => FinalizeError::Defect { what }.into(),
        }
    }
}
