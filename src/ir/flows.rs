//! Which nodes run together: those of the graph itself, or those of one body of a branch or loop.
//!
//! A *flow* is what a submission goes through from a begin to an end: the graph itself, or one turn of a body. Edges between
//! flows say only that a branch or loop as a whole is after or before others (`lower/inline.rs`).

use std::ops::Range;

use super::{Body, Ir, NodeId};
use crate::command::Command;

/// The flows of a flat graph. Flow 0 is the graph itself, and flow `n + 1` is body `n`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flows {
    /// By node. Empty if there is one flow.
    of: Vec<u32>,
    count: usize,
}

impl Flows {
    pub(crate) fn new(ir: &Ir) -> Self {
        let inlined = ir.bodies.iter().filter(|body| matches!(body, Body::Inlined { .. })).count();
        if inlined == 0 {
            return Self { of: Vec::new(), count: 1 };
        }
        let mut of = vec![0; ir.len()];
        // A body comes before the bodies inside it.
        for (number, body) in (1..).zip(&ir.bodies) {
            if let Body::Inlined { nodes, .. } = body {
                of[nodes.start as usize..nodes.end as usize].fill(number);
            }
        }
        Self { of, count: ir.bodies.len() + 1 }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the flow of a node.
    pub(crate) fn of(&self, node: NodeId) -> usize {
        self.of.get(node.index()).map_or(0, |flow| *flow as usize)
    }

    /// Returns whether two nodes are in one flow.
    pub(crate) fn are_one(&self, a: NodeId, b: NodeId) -> bool {
        self.of(a) == self.of(b)
    }

    /// Divides nodes by their flows, and keeps their order.
    pub(crate) fn divide(&self, nodes: Vec<NodeId>) -> Vec<Vec<NodeId>> {
        if self.count == 1 {
            return vec![nodes];
        }
        let mut divided = vec![Vec::new(); self.count];
        nodes.into_iter().for_each(|node| divided[self.of(node)].push(node));
        divided
    }
}

/// How the turns of a branch or loop are counted.
#[derive(Clone, Debug)]
pub(crate) enum Turns {
    /// They are those of the flows of its bodies.
    Bodies(Range<usize>),
    /// The loop is unrolled: so many for each turn of the flow that it is in.
    Each { of: usize, turns: u64 },
}

/// Returns the nodes of all flows in one order, in which the bodies of a branch or loop come right after its node.
pub(crate) fn nested(ir: &Ir, flows: &[Vec<NodeId>]) -> Vec<NodeId> {
    let [main, bodies @ ..] = flows else { return Vec::new() };
    if bodies.is_empty() {
        return main.clone();
    }
    let mut all = Vec::with_capacity(ir.len());
    let mut ahead = vec![main.iter()];
    while let Some(nodes) = ahead.last_mut() {
        let Some(node) = nodes.next() else {
            ahead.pop();
            continue;
        };
        all.push(*node);
        if let Command::Control(control) = ir.command(*node) {
            let (start, end) = control.bodies.ends();
            let inside = bodies.get(start as usize..end as usize).unwrap_or_default();
            ahead.extend(inside.iter().rev().map(|body| body.iter()));
        }
    }
    all
}
