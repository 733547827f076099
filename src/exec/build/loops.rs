//! The branches and loops of an executable: which loops are unrolled, how the others run, and how turns are counted.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::command::{Command, ControlKind};
use crate::exec::build::options::{Finalize, Loops};
use crate::exec::build::values::Values;
use crate::graph::{Flat, Tables};
use crate::handles::{GraphId, Node, NodeKind, Port};
use crate::ir::flows::{Flows, Turns};
use crate::ir::{Body, Ir, NodeId};
use crate::lower::{self, Origin, Stays, UnrolledAt};
use crate::report::loops::{HostDecided, LoopReport};

/// A graph before its loops were unrolled.
pub(in crate::exec) struct Rolled {
    flat: Flat,
    /// Why no loop is unrolled. None if loops may be.
    why: Option<HostDecided>,
    /// The loops that were unrolled, and their turns.
    unrolled: FxHashMap<NodeId, u64>,
    /// Where their turns are, as long as nothing is fused.
    places: Vec<UnrolledAt>,
}

/// Unrolls the loops that can be. Returns the graph to plan, and the one with its loops.
pub(in crate::exec) fn unroll(flat: Flat, options: &Finalize, asked: Loops) -> (Flat, Rolled) {
    let why = match asked {
        Loops::HostDecided => Some(HostDecided::Asked),
        Loops::Auto | Loops::Ahead if options.updatable => Some(HostDecided::Updatable),
        Loops::Auto | Loops::Ahead => options.profiling.then_some(HostDecided::Profiled),
    };
    let may = why.is_none() && !flat.tables.ir.bodies.is_empty();
    let unrolled = if may { flat.unrolled() } else { None };
    let (planned, unrolled, places) = unrolled.unwrap_or_else(|| (flat.clone(), FxHashMap::default(), Vec::new()));
    (planned, Rolled { flat, why, unrolled, places })
}

impl Rolled {
    /// Returns the graph as it was before its loops were unrolled.
    pub(in crate::exec) fn flat(&self) -> &Flat {
        &self.flat
    }

    /// Returns where the turns of unrolled loops are, in the order of the nodes.
    pub(in crate::exec) fn places(&self) -> Vec<UnrolledAt> {
        self.places.clone()
    }

    /// Returns the branches and loops that are planned, by where they come from: their nodes, and the flows of their bodies.
    fn kept(planned: &Flat) -> FxHashMap<Origin, (NodeId, Range<usize>)> {
        let ir = &planned.tables.ir;
        let kept = ir.ids().filter_map(|node| Some((planned.origins.of(node), (node, flows_of(ir, node)?))));
        kept.collect()
    }

    /// Returns the graph as it was built, with the memory of an executable. None if it is planned as it is.
    pub(in crate::exec) fn with_memory_of(&self, planned: &Tables, values: &Values) -> Option<Flat> {
        let is_other = !Arc::ptr_eq(&planned.ir.topology, &self.flat.tables.ir.topology);
        is_other.then(|| self.flat.with_memory_of(&values.tables))
    }

    /// Returns the branches and loops by their handles, and how their turns are counted. `has_tasks`: whether the plan has host
    /// nodes.
    pub(in crate::exec) fn controls(&self, graph: GraphId, planned: &Flat, has_tasks: bool) -> Vec<(Port, Turns)> {
        let ir = &self.flat.tables.ir;
        // A branch without cases has no body, but it is a host node.
        if ir.bodies.is_empty() && !has_tasks {
            return Vec::new();
        }
        let kept = Self::kept(planned);
        let (mut all, mut now) = (Vec::new(), FxHashMap::default());
        for node in ir.ids() {
            let Some(before) = flows_of(ir, node) else { continue };
            let origin = self.flat.origins.of(node);
            let port = Port { node: Node::new(graph, origin.node), index: origin.part };
            if let Some(turns) = self.unrolled.get(&node) {
                all.push((port, Turns::Each { of: 0, turns: *turns }, node));
            } else if let Some((_, flows)) = kept.get(&origin).cloned() {
                now.extend(before.zip(flows.clone()));
                all.push((port, Turns::Bodies(flows), node));
            }
        }
        if !self.unrolled.is_empty() {
            let before = Flows::new(ir);
            for (_, turns, node) in &mut all {
                if let Turns::Each { of, turns } = turns {
                    let mut flow = before.of(*node);
                    while let Some(Body::Inlined { of: around, .. }) =
                        flow.checked_sub(1).and_then(|at| ir.bodies.get(at))
                        && let Some(times) = self.unrolled.get(around)
                    {
                        *turns = turns.saturating_mul(*times);
                        flow = before.of(*around);
                    }
                    *of = now.get(&flow).copied().unwrap_or(0);
                }
            }
        }
        all.into_iter().map(|(port, turns, _)| (port, turns)).collect()
    }

    /// Reports how loops run, in the order of the graph's nodes. `host_decided`: why the host decides a loop with a condition, in
    /// the order of the flows of their bodies.
    pub(in crate::exec) fn reports(
        &self,
        planned: &Flat,
        values: &Values,
        host_decided: &[(usize, HostDecided)],
    ) -> Vec<LoopReport> {
        if self.flat.tables.ir.bodies.is_empty() {
            return Vec::new();
        }
        let (ir, new) = (&self.flat.tables.ir, &planned.tables.ir);
        let repeats = lower::repeats(new);
        let kept = Self::kept(planned);
        let mut all = Vec::new();
        for node in ir.ids() {
            let Command::Control(control) = ir.command(node) else { continue };
            let at = self.flat.origins.of(node).node.index();
            let mut report = LoopReport::new(at);
            if let Some(turns) = self.unrolled.get(&node) {
                all.push(LoopReport { turns: Some(*turns), ..report });
                continue;
            }
            let Some((place, flows)) = kept.get(&self.flat.origins.of(node)).cloned() else { continue };
            report.flow = flows.start;
            match control.kind {
                ControlKind::When | ControlKind::Switch => continue,
                ControlKind::While { .. } => {
                    let why = host_decided.binary_search_by_key(&flows.start, |(of, _)| *of);
                    report.host_decided = why.ok().map(|at| host_decided[at].1.clone());
                    report.on_device = values.guards.on_device(flows.start).is_some();
                    let is_ahead = values.guards.of_flow(flows.start).is_some();
                    if report.host_decided.is_none() && !is_ahead && !report.on_device {
                        continue;
                    }
                }
                ControlKind::Repeat { turns } => {
                    let stays =
                        repeats.binary_search_by_key(&place, |of| of.node).ok().and_then(|at| repeats[at].stays);
                    let kind = |node: NodeId| NodeKind::of(new.command(node));
                    let why = stays.map(|stays| match stays {
                        Stays::Node(node) => HostDecided::Node(kind(node)),
                        Stays::Beside(node) => HostDecided::Beside(kind(node)),
                        Stays::Long => HostDecided::Long,
                    });
                    report.on_device = values.guards.on_device(flows.start).is_some();
                    report.turns = Some(turns);
                    report.host_decided = self.why.clone().or(why).filter(|_| !report.on_device);
                }
            }
            all.push(report);
        }
        all
    }
}

/// Returns the flows of the bodies of a branch or loop.
fn flows_of(ir: &Ir, node: NodeId) -> Option<Range<usize>> {
    let Command::Control(control) = ir.command(node) else { return None };
    let (first, end) = control.bodies.ends();
    Some(first as usize + 1..end as usize + 1)
}
