//! Nodes and edges, without what the nodes do. Each operation costs no more than the edges that it looks at.

use petgraph::Direction::{self, Incoming, Outgoing};
use petgraph::graph::{DiGraph, NodeIndex};
use std::collections::HashSet;

use super::NodeId;

/// A directed graph that has no cycle, unless an edge was added without the check.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topology {
    graph: DiGraph<(), ()>,
    /// Nodes without successors, in no order, and by node its index among them.
    leaves: Vec<NodeId>,
    leaf_at: Vec<u32>,
    /// Whether some edge leads from a later node to an earlier one. If there is none, the order of adding is a
    /// topological order, and no edge that leads forward can close a cycle.
    backward: bool,
    /// Scratch space of [`Topology::path`]: by node, the last search that saw it, and from where.
    seen: Vec<(u32, NodeId)>,
    searches: u32,
}

const NO_LEAF: u32 = u32::MAX;

/// The nodes on the cycle that an edge would close, from its target to its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WouldCycle(pub(crate) Vec<NodeId>);

impl Topology {
    pub(crate) fn shrink(&mut self) {
        self.graph.shrink_to_fit();
        self.leaves.shrink_to_fit();
        self.leaf_at.shrink_to_fit();
    }

    pub(crate) fn len(&self) -> usize {
        self.graph.node_count()
    }

    pub(crate) fn edge_count(&self) -> usize {
        self.graph.edge_count()
    }

    pub(crate) fn has_backward_edges(&self) -> bool {
        self.backward
    }

    /// Adds a node after `after`, which may hold a node twice. Sorts the list and removes repetitions.
    pub(crate) fn push_node(&mut self, after: &mut Vec<NodeId>) -> NodeId {
        let node = NodeId(self.graph.add_node(()).index() as u32);
        after.sort_unstable();
        after.dedup();
        for &pred in after.iter() {
            self.graph.add_edge(index(pred), index(node), ());
            self.no_leaf(pred);
        }
        self.leaf_at.push(self.leaves.len() as u32);
        self.leaves.push(node);
        node
    }

    /// Adds an edge between two different nodes. Returns whether the edge is new.
    pub(crate) fn add_edge(&mut self, from: NodeId, to: NodeId, check_cycle: bool) -> Result<bool, WouldCycle> {
        if self.has_edge(from, to) {
            return Ok(false);
        }
        if check_cycle
            && (self.backward || from > to)
            && let Some(path) = self.path(to, from)
        {
            return Err(WouldCycle(path));
        }
        self.backward |= from > to;
        self.graph.add_edge(index(from), index(to), ());
        self.no_leaf(from);
        Ok(true)
    }

    fn no_leaf(&mut self, node: NodeId) {
        let at = std::mem::replace(&mut self.leaf_at[node.index()], NO_LEAF);
        if at != NO_LEAF {
            self.leaves.swap_remove(at as usize);
            if let Some(moved) = self.leaves.get(at as usize) {
                self.leaf_at[moved.index()] = at;
            }
        }
    }

    /// Looks from both ends at once, so that a node with very many edges costs no more than the other node.
    fn has_edge(&self, from: NodeId, to: NodeId) -> bool {
        let mut forward = self.succs(from);
        let mut backward = self.preds(to);
        loop {
            match (forward.next(), backward.next()) {
                (Some(node), _) if node == to => return true,
                (_, Some(node)) if node == from => return true,
                (Some(_), Some(_)) => {}
                _ => return false,
            }
        }
    }

    /// Returns the nodes on a shortest path, including both ends. Costs at most the nodes that `from` reaches.
    fn path(&mut self, from: NodeId, to: NodeId) -> Option<Vec<NodeId>> {
        self.searches = self.searches.checked_add(1).unwrap_or_else(|| {
            self.seen.clear();
            1
        });
        let search = self.searches;
        let mut seen = std::mem::take(&mut self.seen);
        seen.resize(self.len(), (0, from));
        seen[from.index()] = (search, from);
        let mut queue = std::collections::VecDeque::from([from]);
        let mut path = None;
        while let Some(node) = queue.pop_front() {
            if node == to {
                let mut nodes = vec![node];
                while let Some(&last) = nodes.last().filter(|last| **last != from) {
                    nodes.push(seen[last.index()].1);
                }
                nodes.reverse();
                path = Some(nodes);
                break;
            }
            for next in self.succs(node) {
                if seen[next.index()].0 != search {
                    seen[next.index()] = (search, node);
                    queue.push_back(next);
                }
            }
        }
        self.seen = seen;
        path
    }

    /// Returns the nodes of some cycle in order, each once. None if there is no cycle.
    pub(crate) fn find_cycle(&self) -> Option<Vec<NodeId>> {
        // After removing, again and again, every node without predecessors, only nodes are left that lie on a cycle or
        // after one. Going backwards among these must come to a node twice.
        let mut blocked: Vec<u32> =
            (0..self.len() as u32).map(|node| self.preds(NodeId(node)).count() as u32).collect();
        let mut free: Vec<NodeId> =
            (0..self.len() as u32).map(NodeId).filter(|node| blocked[node.index()] == 0).collect();
        while let Some(node) = free.pop() {
            for next in self.succs(node) {
                blocked[next.index()] -= 1;
                if blocked[next.index()] == 0 {
                    free.push(next);
                }
            }
        }
        let start = blocked.iter().position(|&count| count > 0)?;
        let mut seen_at = vec![usize::MAX; self.len()];
        let mut path = vec![NodeId(start as u32)];
        loop {
            let &node = path.last()?;
            if seen_at[node.index()] != usize::MAX {
                let mut cycle = path.split_off(seen_at[node.index()]);
                cycle.pop();
                cycle.reverse();
                return Some(cycle);
            }
            seen_at[node.index()] = path.len() - 1;
            path.push(self.preds(node).find(|pred| blocked[pred.index()] > 0)?);
        }
    }

    /// Returns whether a node is after another.
    pub(crate) fn is_after(&self, node: NodeId, of: NodeId) -> bool {
        let (mut seen, mut todo) = (HashSet::new(), vec![node]);
        while let Some(node) = todo.pop() {
            for pred in self.preds(node) {
                if pred == of {
                    return true;
                }
                // Without edges that lead backwards, a node that was added earlier cannot be after it.
                if (pred > of || self.has_backward_edges()) && seen.insert(pred) {
                    todo.push(pred);
                }
            }
        }
        false
    }

    pub(crate) fn preds(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.neighbours(node, Incoming)
    }

    pub(crate) fn succs(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        self.neighbours(node, Outgoing)
    }

    fn neighbours(&self, node: NodeId, direction: Direction) -> impl Iterator<Item = NodeId> + '_ {
        self.graph.neighbors_directed(index(node), direction).map(|found| NodeId(found.index() as u32))
    }

    /// Returns the nodes without predecessors, in the order of adding.
    pub(crate) fn roots(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.graph.externals(Incoming).map(|found| NodeId(found.index() as u32))
    }

    /// Returns the nodes without successors, in no order.
    pub(crate) fn leaves(&self) -> &[NodeId] {
        &self.leaves
    }

    /// Returns the graph for drawing.
    pub(crate) fn petgraph(&self) -> &DiGraph<(), ()> {
        &self.graph
    }
}

fn index(node: NodeId) -> NodeIndex {
    NodeIndex::new(node.index())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(n: u32) -> Topology {
        let mut topology = Topology::default();
        for node in 0..n {
            let mut after = if node == 0 { vec![] } else { vec![NodeId(node - 1)] };
            topology.push_node(&mut after);
        }
        topology
    }

    #[test]
    fn leaves_follow_every_edge() {
        let mut topology = chain(3);
        assert_eq!(topology.leaves(), [NodeId(2)]);
        topology.push_node(&mut vec![NodeId(0), NodeId(0)]);
        assert_eq!(topology.edge_count(), 3);
        assert_eq!(topology.leaves(), [NodeId(2), NodeId(3)]);
        assert_eq!(topology.add_edge(NodeId(2), NodeId(3), true), Ok(true));
        assert_eq!(topology.leaves(), [NodeId(3)]);
    }

    #[test]
    fn an_edge_that_exists_is_not_added_again() {
        let mut topology = chain(3);
        assert_eq!(topology.add_edge(NodeId(0), NodeId(1), true), Ok(false));
        assert_eq!(topology.edge_count(), 2);
    }

    #[test]
    fn a_cycle_is_named_by_its_nodes_and_changes_nothing() {
        let mut topology = chain(4);
        let error = topology.add_edge(NodeId(3), NodeId(1), true);
        assert_eq!(error, Err(WouldCycle(vec![NodeId(1), NodeId(2), NodeId(3)])));
        assert_eq!(topology.edge_count(), 3);
        assert_eq!(topology.find_cycle(), None);
        assert!(!topology.has_backward_edges());
    }

    #[test]
    fn a_backward_edge_without_a_cycle_is_fine_and_forward_edges_are_checked_from_then_on() {
        let mut topology = Topology::default();
        for _ in 0..3 {
            topology.push_node(&mut vec![]);
        }
        assert_eq!(topology.add_edge(NodeId(2), NodeId(0), true), Ok(true));
        assert_eq!(topology.add_edge(NodeId(0), NodeId(1), true), Ok(true));
        assert_eq!(
            topology.add_edge(NodeId(1), NodeId(2), true),
            Err(WouldCycle(vec![NodeId(2), NodeId(0), NodeId(1)]))
        );
    }

    #[test]
    fn an_unchecked_cycle_is_found_later() {
        let mut topology = chain(5);
        assert_eq!(topology.add_edge(NodeId(3), NodeId(1), false), Ok(true));
        let cycle = topology.find_cycle().unwrap();
        let mut sorted = cycle.clone();
        sorted.sort();
        assert_eq!(sorted, [NodeId(1), NodeId(2), NodeId(3)]);
        for pair in cycle.windows(2) {
            assert!(topology.succs(pair[0]).any(|next| next == pair[1]), "{cycle:?} is in order");
        }
    }
}
