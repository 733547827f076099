//! What an executable that can be updated knows of the graph that it was made of.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::arena::OwnMemory;
use crate::caps::MutableCaps;
use crate::graph::{Graph, Origins, StateRef, Tables};
use crate::ir::topology::Topology;
use crate::ir::{NodeId, Op};
use crate::plan::{Path, Plan};

/// What an executable that can be updated knows besides.
pub(super) struct Updatable {
    /// What the nodes of its graph are now.
    pub(super) state: StateRef,
    /// The edges that it was finalized with.
    topology: Arc<Topology>,
    /// By node: its first planned node, and how many it was written out to.
    written: Option<Vec<(NodeId, u32)>>,
    /// Which executables its sub-graphs are.
    pub(super) children: HashMap<NodeId, u64>,
    /// By planned node.
    pub(super) step_of: Vec<Option<u32>>,
    /// The parts in command buffers, in order.
    native: Vec<Range<usize>>,
    /// What the driver can change of recorded kernels.
    mutable: Option<MutableCaps>,
    pub(super) own_memory: OwnMemory,
    pub(super) allow_conflicts: bool,
}

impl Updatable {
    pub(super) fn new(
        graph: &Graph,
        tables: &Tables,
        origins: &Origins,
        plan: &Plan,
        own_memory: OwnMemory,
        allow_conflicts: bool,
    ) -> Self {
        let written = origins.written();
        let planned = written.as_ref().and_then(|written| written.last());
        let planned = planned.map_or(tables.ir.len(), |(first, count)| (first.0 + count) as usize);
        let mut step_of = vec![None; planned];
        for (at, step) in (0..).zip(&plan.steps) {
            step_of[step.node.index()] = Some(at);
        }
        let native = plan.segments.iter().filter(|segment| segment.path == Path::Native);
        let native = native.map(|segment| segment.steps.clone()).collect();
        let child = |id: NodeId| match tables.ir.op(id) {
            Op::SubGraph(child) => Some((id, tables.children[child.index()].of.id())),
            _ => None,
        };
        Self {
            state: graph.state(),
            topology: Arc::clone(&tables.ir.topology),
            written,
            children: tables.ir.ids().filter_map(child).collect(),
            step_of,
            native,
            mutable: graph.device().mutable(),
            own_memory,
            allow_conflicts,
        }
    }

    pub(super) fn is_native(&self, step: usize) -> bool {
        // What is replayed lies between command buffers.
        let at = self.native.partition_point(|part| part.end <= step);
        self.native.get(at).is_some_and(|part| part.start <= step)
    }

    pub(super) fn len(&self) -> usize {
        self.topology.len()
    }

    /// The planned node of a node that is no sub-graph.
    pub(super) fn alone(&self, node: NodeId) -> Option<NodeId> {
        match &self.written {
            None => Some(node),
            Some(written) => written.get(node.index()).filter(|(_, count)| *count == 1).map(|(first, _)| *first),
        }
    }

    /// The planned nodes of a node, in order: one, or those of a sub-graph between its entry and its exit.
    pub(super) fn planned(&self, node: NodeId) -> Range<u32> {
        match &self.written {
            None => node.0..node.0 + 1,
            Some(written) => {
                let (first, count) = written[node.index()];
                if count == 1 { first.0..first.0 + 1 } else { first.0 + 1..first.0 + count - 1 }
            }
        }
    }

    pub(super) fn mutable(&self) -> Option<MutableCaps> {
        self.mutable
    }

    /// Whether a graph has as many nodes and the same edges.
    pub(super) fn check_edges(&self, tables: &Tables) -> Result<(), String> {
        let (here, there) = (&*self.topology, &*tables.ir.topology);
        if here.len() != there.len() {
            return Err(format!("it has {} nodes, and the executable has {}", there.len(), here.len()));
        }
        if std::ptr::eq(here, there) {
            return Ok(());
        }
        let sorted = |topology: &Topology, node: NodeId, list: &mut Vec<NodeId>| {
            list.clear();
            list.extend(topology.preds(node));
            list.sort_unstable();
        };
        let (mut mine, mut theirs) = (Vec::new(), Vec::new());
        for node in tables.ir.ids() {
            sorted(here, node, &mut mine);
            sorted(there, node, &mut theirs);
            if mine != theirs {
                let show = |list: &[NodeId]| {
                    let list: Vec<_> = list.iter().map(|node| node.0.to_string()).collect();
                    if list.is_empty() { "no node".to_owned() } else { format!("nodes {}", list.join(", ")) }
                };
                return Err(format!(
                    "node {} waits for {}, and in the executable for {}",
                    node.0,
                    show(&theirs),
                    show(&mine)
                ));
            }
        }
        Ok(())
    }
}
