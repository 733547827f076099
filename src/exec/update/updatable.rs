//! What an updatable executable keeps of the graph that it was made of.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::caps::MutableCaps;
use crate::command::Command;
use crate::exec::build::arena::OwnMemory;
use crate::graph::{Graph, Origins, StateRef, Tables};
use crate::ir::NodeId;
use crate::ir::topology::Topology;
use crate::plan::{Path, Plan};

/// What an executable keeps if it is updatable.
pub(in crate::exec) struct Updatable {
    /// The current state of the graph's nodes.
    pub(in crate::exec) state: StateRef,
    /// See [`Updatable::turn`].
    turn: Mutex<()>,
    /// The edges that the executable was finalized with.
    topology: Arc<Topology>,
    /// By node: its first planned node, and to how many planned nodes it was inlined.
    written: Option<Vec<(NodeId, u32)>>,
    /// By sub-graph node: the number of its executable.
    pub(in crate::exec) children: HashMap<NodeId, u64>,
    /// By planned node: its step.
    pub(in crate::exec) step_of: Vec<Option<u32>>,
    /// The native segments, in order.
    native: Vec<Range<usize>>,
    /// What the driver can change in recorded kernels.
    mutable: Option<MutableCaps>,
    pub(in crate::exec) own_memory: OwnMemory,
    pub(in crate::exec) allow_conflicts: bool,
}

impl Updatable {
    pub(in crate::exec) fn new(
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
        let child = |id: NodeId| match tables.ir.command(id) {
            Command::SubGraph(child) => Some((id, tables.children[child.index()].of.id())),
            _ => None,
        };
        Self {
            state: graph.state(),
            turn: Mutex::new(()),
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

    /// Locks out other updates of the executable, from the look at the graph to the last change. No other lock is held
    /// meanwhile: the function of a native command uses graphs while the executable's state is locked.
    pub(in crate::exec) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::exec) fn is_native(&self, step: usize) -> bool {
        // Replayed steps are between the native segments.
        let at = self.native.partition_point(|part| part.end <= step);
        self.native.get(at).is_some_and(|part| part.start <= step)
    }

    pub(in crate::exec) fn len(&self) -> usize {
        self.topology.len()
    }

    /// Returns the planned node of a node that is no sub-graph.
    pub(in crate::exec) fn alone(&self, node: NodeId) -> Option<NodeId> {
        match &self.written {
            None => Some(node),
            Some(written) => written.get(node.index()).filter(|(_, count)| *count == 1).map(|(first, _)| *first),
        }
    }

    /// Returns the planned nodes of a node, in order: one node, or those of a sub-graph between its entry and its exit.
    pub(in crate::exec) fn planned(&self, node: NodeId) -> Range<u32> {
        match &self.written {
            None => node.0..node.0 + 1,
            Some(written) => {
                let (first, count) = written[node.index()];
                if count == 1 { first.0..first.0 + 1 } else { first.0 + 1..first.0 + count - 1 }
            }
        }
    }

    pub(in crate::exec) fn mutable(&self) -> Option<MutableCaps> {
        self.mutable
    }

    /// Checks that a graph has the same number of nodes and the same edges.
    pub(in crate::exec) fn check_edges(&self, tables: &Tables) -> Result<(), String> {
        let (here, there) = (&*self.topology, &*tables.ir.topology);
        if here.len() != there.len() {
            return Err(format!("the graph has {} nodes, but the executable has {}", there.len(), here.len()));
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
                    "node {} waits for {}, but in the executable it waits for {}",
                    node.0,
                    show(&theirs),
                    show(&mine)
                ));
            }
        }
        Ok(())
    }
}
