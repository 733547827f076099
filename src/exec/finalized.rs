//! What finalize fixes: everything of an executable that submissions and updates read and never change.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::cl::objects::context::Context;
use crate::cl::objects::device::Device;
use crate::command::Command;
use crate::exec::build::fuse::FusedNode;
use crate::exec::submit::bindings::{HeldResult, Results, SubmissionBindings};
use crate::exec::update::updatable::Updatable;
use crate::graph::{Flat, Origins, Ports};
use crate::handles::{GraphId, Node, Port};
use crate::ir::flows::Turns;
use crate::ir::topology::Topology;
use crate::ir::{DataId, Ir, NodeId};
use crate::lower::{Origin, UnrolledAt};
use crate::plan::Plan;
use crate::report::Report;
use crate::report::profile::Names;

/// What finalize fixed.
pub(in crate::exec) struct Finalized {
    /// Distinguishes executables.
    pub(in crate::exec) id: u64,
    pub(in crate::exec) graph: GraphId,
    pub(in crate::exec) context: Context,
    pub(in crate::exec) device: Device,
    pub(in crate::exec) plan: Plan,
    /// The planned nodes and their edges.
    pub(in crate::exec) topology: Arc<Topology>,
    /// The planned nodes with external events, by id.
    pub(in crate::exec) events_at: Vec<NodeId>,
    /// The branches and loops in the order of the graph's nodes, by their handles.
    pub(in crate::exec) controls: Arc<[(Port, Turns)]>,
    /// The graph as it was built, for graphs that have the executable in them. None if it is planned as it is: no loop was unrolled,
    /// and nothing was fused.
    pub(in crate::exec) rolled: Option<Flat>,
    /// Where the turns of unrolled loops are, in the order of the planned nodes.
    pub(in crate::exec) unrolled: Vec<UnrolledAt>,
    /// What fused nodes stand for, in the order of the planned nodes.
    pub(in crate::exec) fused_nodes: Vec<FusedNode>,
    /// The results of earlier searches: whether the first node is after the second.
    pub(in crate::exec) reachable: Mutex<FxHashMap<(NodeId, NodeId), bool>>,
    /// Whether nodes may use the same memory without an order: then they have that of adding.
    pub(in crate::exec) allow_conflicts: bool,
    /// What the planned nodes were before sub-graphs were inlined.
    pub(in crate::exec) origins: Origins,
    /// The host writes and host reads, by their handles.
    pub(in crate::exec) ports: Arc<Ports>,
    pub(in crate::exec) partitions_of: PartitionsOf,
    pub(in crate::exec) report: Report,
    /// Whether it is a recorded body in whose place that of another recording may come.
    pub(in crate::exec) is_replaceable: bool,
    /// None if the executable cannot be updated.
    pub(in crate::exec) updatable: Option<Updatable>,
    /// The names of the nodes. None if nothing is profiled.
    pub(in crate::exec) names: Option<Arc<Names>>,
}

/// A flow, and a partition in it.
type Place = (u32, u32);

/// Where reads and writes are, for tasks that take results and set input.
#[derive(Debug, Default)]
pub(in crate::exec) struct PartitionsOf {
    pub(in crate::exec) reads: Vec<(NodeId, Place)>,
    pub(in crate::exec) writes: FxHashMap<DataId, (NodeId, Place)>,
}

impl PartitionsOf {
    pub(in crate::exec) fn new(ir: &Ir, plan: &Plan) -> Self {
        let mut parts = Self::default();
        if plan.main().tasks.is_empty() {
            return parts;
        }
        let mut reads = Vec::new();
        for node in ir.ids() {
            let part = (node, plan.place_of[node.index()]);
            match ir.command(node) {
                Command::Read { output, .. } => reads.push((*output, part)),
                Command::Write { data, .. } => drop(parts.writes.insert(*data, part)),
                _ => {}
            }
        }
        // By number of the result. A pass may have given reads another order.
        reads.sort_unstable_by_key(|(output, _)| *output);
        parts.reads = reads.into_iter().map(|(_, part)| part).collect();
        parts
    }
}

impl Finalized {
    /// Returns whether a planned node is after another.
    pub(in crate::exec) fn is_after(&self, node: NodeId, of: NodeId) -> bool {
        let mut reachable = self.reachable.lock().unwrap_or_else(PoisonError::into_inner);
        *reachable.entry((node, of)).or_insert_with(|| self.topology.is_after(node, of))
    }

    pub(in crate::exec) fn node(&self, id: NodeId) -> Node {
        Node::new(self.graph, id)
    }

    /// Whether command buffers of the device can be enqueued while they run.
    pub(in crate::exec) fn may_overlap(&self) -> bool {
        self.device.caps().command_buffers.as_ref().is_some_and(|caps| caps.simultaneous_use)
    }

    /// The results that a submission holds, by read.
    pub(in crate::exec) fn held_results(&self, bindings: &SubmissionBindings) -> Results {
        let part = |of: &Origin| Port { node: self.node(of.node), index: of.part };
        let flow = |at: usize| self.partitions_of.reads.get(at).map_or(0, |(_, (flow, _))| *flow);
        let results = self.ports.results().iter().zip(&bindings.slots).enumerate();
        let held =
            results.map(|(at, (of, slot))| HeldResult { port: part(of), flow: flow(at), slot: Arc::clone(slot) });
        (!bindings.slots.is_empty()).then(|| held.collect())
    }
}
