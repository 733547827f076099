//! What an updatable executable keeps of the graph that it was made of.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::caps::MutableCaps;
use crate::command::Command;
use crate::exec::build::arena::OwnMemory;
use crate::graph::{CurrentValues, Flat, Graph, Origins, StateRef, Tables};
use crate::ir::topology::Topology;
use crate::ir::{ChildId, NodeId};
use crate::plan::{Path, Plan};

/// An executable inside a node.
pub(in crate::exec) struct Inside {
    /// Its number.
    pub(in crate::exec) id: u64,
    /// The first of its planned nodes.
    pub(in crate::exec) first: NodeId,
    /// The edges in it, if the body of another recording may take its place.
    replaceable: Option<Arc<Topology>>,
}

impl Inside {
    /// Checks that the values of an executable can be those of this one.
    pub(in crate::exec) fn check(&self, given: &Given, is_control: bool) -> Result<(), String> {
        if given.id == self.id {
            return Ok(());
        }
        match &self.replaceable {
            Some(topology) if given.is_replaceable => {
                check_edges(topology, &given.flat.tables).map_err(|why| format!("in a body of it, {why}"))
            }
            _ if is_control => Err("its bodies are other executables".to_owned()),
            _ => Err("it is a sub-graph of another executable".to_owned()),
        }
    }
}

/// An executable in a node of the graph that an update comes from.
pub(in crate::exec) struct Given {
    pub(in crate::exec) node: NodeId,
    id: u64,
    is_replaceable: bool,
    /// Its values.
    pub(in crate::exec) flat: Flat,
}

impl Given {
    pub(in crate::exec) fn new(node: NodeId, of: &dyn CurrentValues) -> Self {
        Self { node, id: of.id(), is_replaceable: of.is_replaceable(), flat: of.flat() }
    }
}

/// What an executable keeps if it is updatable.
pub(in crate::exec) struct Updatable {
    /// The current state of the graph's nodes.
    pub(in crate::exec) state: StateRef,
    /// The edges that the executable was finalized with.
    topology: Arc<Topology>,
    /// By node: its first planned node, and to how many planned nodes it was inlined.
    written: Option<Vec<(NodeId, u32)>>,
    /// By node of the graph: the executables inside it.
    pub(in crate::exec) children: FxHashMap<NodeId, Vec<Inside>>,
    /// The branches and loops of the graph.
    controls: BTreeSet<NodeId>,
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
        let mut children: FxHashMap<NodeId, Vec<Inside>> = FxHashMap::default();
        for node in tables.ir.ids() {
            let Some((first, _)) = written.as_ref().and_then(|written| written.get(node.index())) else { continue };
            let of = |child: ChildId| tables.children.get(child.index()).map(|child| &child.of);
            // A sub-graph begins with its entry; a branch or loop with its own node and the entry of its first body.
            let mut next = first.0 + u32::from(matches!(tables.ir.command(node), Command::Control(_)));
            for child in tables.ir.executables(node).filter_map(of) {
                let replaceable = child.is_replaceable().then(|| Arc::clone(&child.flat().tables.ir.topology));
                children.entry(node).or_default().push(Inside { id: child.id(), first: NodeId(next + 1), replaceable });
                next += child.nodes() as u32 + 1;
            }
        }
        Self {
            state: graph.state(),
            topology: Arc::clone(&tables.ir.topology),
            written,
            controls: tables.ir.ids().filter(|node| matches!(tables.ir.command(*node), Command::Control(_))).collect(),
            children,
            step_of,
            native,
            mutable: graph.device().mutable(),
            own_memory,
            allow_conflicts,
        }
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

    /// Returns the planned node of a node, unless the node is a sub-graph, which is no more than the nodes inside it.
    pub(in crate::exec) fn own(&self, node: NodeId) -> Option<NodeId> {
        let is_sub_graph = self.children.contains_key(&node) && !self.controls.contains(&node);
        match &self.written {
            _ if is_sub_graph => None,
            None => Some(node),
            Some(written) => written.get(node.index()).map(|(first, _)| *first),
        }
    }

    /// Returns the executables inside a node, in order.
    pub(in crate::exec) fn children(&self, node: NodeId) -> &[Inside] {
        self.children.get(&node).map_or(&[], Vec::as_slice)
    }

    pub(in crate::exec) fn mutable(&self) -> Option<MutableCaps> {
        self.mutable
    }

    /// Checks that a graph has the same number of nodes and the same edges.
    pub(in crate::exec) fn check_edges(&self, tables: &Tables) -> Result<(), String> {
        check_edges(&self.topology, tables)
    }
}

/// Checks that tables have as many nodes as an executable, and the same edges.
fn check_edges(here: &Topology, tables: &Tables) -> Result<(), String> {
    let there = &*tables.ir.topology;
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
