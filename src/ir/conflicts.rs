//! Nodes that use the same memory and that no edges order, found by looking at the changed ones only.

use std::collections::{BTreeSet, HashSet};

use super::topology::Topology;
use super::{Access, Ir, NodeId, RootId, View};

/// The uses of each buffer, by the order of their nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conflicts {
    order: Vec<NodeId>,
    /// Of each node: where it is in the order. Nodes that are not in it use nothing.
    position: Vec<u32>,
    /// Root, position of the node, which of its accesses.
    uses: BTreeSet<(RootId, u32, u32)>,
}

impl Conflicts {
    /// For an order that the edges follow, of all nodes that use memory.
    pub(crate) fn new(ir: &Ir, order: Vec<NodeId>) -> Self {
        let mut position = vec![u32::MAX; ir.len()];
        for (at, node) in (0..).zip(&order) {
            position[node.index()] = at;
        }
        let mut conflicts = Self { order, position, uses: BTreeSet::new() };
        for at in 0..conflicts.order.len() {
            conflicts.add(ir, conflicts.order[at]);
        }
        conflicts
    }

    fn key(&self, ir: &Ir, node: NodeId, slot: usize, access: &Access) -> Option<(RootId, u32, u32)> {
        let root = ir.views[access.view.index()].root;
        (!access.range.is_empty()).then(|| (root, self.position[node.index()], slot as u32))
    }

    /// Takes the uses of a node in.
    fn add(&mut self, ir: &Ir, node: NodeId) {
        for (slot, access) in ir.accesses(node).iter().enumerate() {
            let key = self.key(ir, node, slot, access);
            self.uses.extend(key);
        }
    }

    /// A use of a node has changed, and was another one before.
    pub(crate) fn exchange(&mut self, ir: &Ir, node: NodeId, slot: usize, old: &Access) {
        if let Some(key) = self.key(ir, node, slot, old) {
            self.uses.remove(&key);
        }
        let key = self.key(ir, node, slot, &ir.accesses(node)[slot]);
        self.uses.extend(key);
    }

    /// A pair without order of which one is among these, the earlier one first. All others have to be ordered already.
    ///
    /// From each use it looks at those before and behind until one that writes all of its bytes: whatever conflicts with the
    /// use beyond that one conflicts with that one too, nearer by.
    pub(crate) fn find(&self, ir: &Ir, nodes: impl IntoIterator<Item = NodeId>) -> Option<(NodeId, NodeId)> {
        for node in nodes {
            let at = self.position[node.index()];
            for access in ir.accesses(node).iter().filter(|access| !access.range.is_empty()) {
                let root = ir.views[access.view.index()].root;
                let before = self.uses.range((root, 0, 0)..(root, at, 0)).rev();
                if let Some(other) = self.unordered(ir, access, before, |other| (other, node)) {
                    return Some((other, node));
                }
                let behind = self.uses.range((root, at.saturating_add(1), 0)..=(root, u32::MAX, u32::MAX));
                if let Some(other) = self.unordered(ir, access, behind, |other| (node, other)) {
                    return Some((node, other));
                }
            }
        }
        None
    }

    fn unordered<'a>(
        &self,
        ir: &Ir,
        access: &Access,
        uses: impl Iterator<Item = &'a (RootId, u32, u32)>,
        pair: impl Fn(NodeId) -> (NodeId, NodeId),
    ) -> Option<NodeId> {
        for (_, at, slot) in uses {
            let other = self.order[*at as usize];
            let use_of_other = &ir.accesses(other)[*slot as usize];
            if !use_of_other.conflicts_with(access, &ir.views) {
                continue;
            }
            let (first, second) = pair(other);
            if !self.is_ordered(&ir.topology, first, second) {
                return Some(other);
            }
            if covers(use_of_other, access, &ir.views) {
                break;
            }
        }
        None
    }

    /// Whether edges lead from one node to a later one. Looks at nodes between the two only.
    fn is_ordered(&self, topology: &Topology, first: NodeId, second: NodeId) -> bool {
        if topology.preds(second).any(|pred| pred == first) {
            return true;
        }
        let start = self.position[first.index()];
        let mut seen = HashSet::from([second]);
        let mut stack = vec![second];
        while let Some(node) = stack.pop() {
            for pred in topology.preds(node) {
                if pred == first {
                    return true;
                }
                // Nodes that use nothing may have no position: they are looked through.
                let at = self.position[pred.index()];
                if (at == u32::MAX || at > start) && seen.insert(pred) {
                    stack.push(pred);
                }
            }
        }
        false
    }
}

/// Whether a use writes all bytes of another.
fn covers(write: &Access, of: &Access, views: &[View]) -> bool {
    let class = |access: &Access| views[access.view.index()].is_sub_buffer;
    write.mode.writes()
        && class(write) == class(of)
        && write.range.start <= of.range.start
        && of.range.end <= write.range.end
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quickcheck::{Arbitrary, Gen, QuickCheck};

    use super::*;
    use crate::ir::{Mode, Op, ViewId};

    /// Nodes with one use each: view, first byte, bytes, mode; and edges to the nodes before, as bits.
    #[derive(Clone, Debug)]
    struct Uses(Vec<(u8, u8, u8, u8, u16)>, Vec<usize>);

    impl Arbitrary for Uses {
        fn arbitrary(g: &mut Gen) -> Self {
            let node = |g: &mut Gen| {
                let bits = u16::arbitrary(g) & u16::arbitrary(g);
                (u8::arbitrary(g) % 4, u8::arbitrary(g) % 8, u8::arbitrary(g) % 5, u8::arbitrary(g) % 3, bits)
            };
            let nodes: Vec<_> = (0..2 + usize::arbitrary(g) % 12).map(|_| node(g)).collect();
            let changed = (0..usize::arbitrary(g) % 4).map(|_| usize::arbitrary(g) % nodes.len()).collect();
            Self(nodes, changed)
        }

        fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
            let (nodes, changed) = (self.0.clone(), self.1.clone());
            Box::new((2..nodes.len()).map(move |len| {
                let changed = changed.iter().copied().filter(|node| *node < len).collect();
                Self(nodes[..len].to_vec(), changed)
            }))
        }
    }

    fn build(uses: &Uses) -> Ir {
        let mut ir = Ir::default();
        for view in 0..4 {
            // Two buffers, with a sub-buffer each.
            ir.views.push(View {
                root: RootId(view / 2),
                root_size: 16,
                offset: 0,
                size: 16,
                is_sub_buffer: view % 2 == 1,
            });
        }
        for (at, (view, start, len, mode, bits)) in uses.0.iter().enumerate() {
            let mode = [Mode::Read, Mode::Write, Mode::ReadWrite][usize::from(*mode)];
            let start = usize::from(*start);
            let access = Access { view: ViewId(u32::from(*view)), range: start..start + usize::from(*len), mode };
            let mut after = (0..at).filter(|pred| bits >> pred & 1 == 1).map(|pred| NodeId(pred as u32)).collect();
            ir.push_node(Op::Empty, [access].into_iter(), &mut after).unwrap();
        }
        ir
    }

    /// All pairs that conflict and that no path connects.
    fn slowly(ir: &Ir) -> Vec<(NodeId, NodeId)> {
        let mut before: Vec<HashSet<NodeId>> = Vec::new();
        for node in ir.ids() {
            let mut all = HashSet::new();
            for pred in ir.topology.preds(node) {
                all.insert(pred);
                all.extend(before[pred.index()].iter().copied());
            }
            before.push(all);
        }
        let one = |node: NodeId| &ir.accesses(node)[0];
        let pairs = ir.ids().flat_map(|b| ir.ids().take_while(move |a| *a < b).map(move |a| (a, b)));
        pairs
            .filter(|(a, b)| {
                !one(*a).range.is_empty()
                    && !one(*b).range.is_empty()
                    && one(*a).conflicts_with(one(*b), &ir.views)
                    && !before[b.index()].contains(a)
            })
            .collect()
    }

    /// Rule P6
    #[test]
    fn a_conflict_is_found_exactly_when_a_changed_node_has_one() {
        fn property(uses: Uses) -> bool {
            let ir = build(&uses);
            let conflicts = Conflicts::new(&ir, ir.ids().collect());
            let pairs = slowly(&ir);
            let all = conflicts.find(&ir, ir.ids());
            if all.is_none() != pairs.is_empty() || all.is_some_and(|pair| !pairs.contains(&pair)) {
                return false;
            }
            // Among some, if the others have none: as in an update.
            let changed: Vec<NodeId> = uses.1.iter().map(|node| NodeId(*node as u32)).collect();
            let theirs = |(a, b): &&(NodeId, NodeId)| changed.contains(a) || changed.contains(b);
            if pairs.iter().filter(theirs).count() < pairs.len() {
                return true;
            }
            conflicts.find(&ir, changed.clone()).is_none() == pairs.is_empty()
        }
        QuickCheck::new().tests(3000).quickcheck(property as fn(Uses) -> bool);
    }

    #[test]
    fn uses_are_replaced_one_node_at_a_time() {
        let uses = Uses(vec![(0, 0, 4, 1, 0), (2, 0, 4, 1, 0)], Vec::new());
        let mut ir = build(&uses);
        let mut conflicts = Conflicts::new(&ir, ir.ids().collect());
        assert_eq!(conflicts.find(&ir, ir.ids()), None);
        let old = ir.accesses(NodeId(1))[0].clone();
        ir.accesses_mut(NodeId(1))[0].view = ViewId(0);
        conflicts.exchange(&ir, NodeId(1), 0, &old);
        assert_eq!(conflicts.find(&ir, [NodeId(1)]), Some((NodeId(0), NodeId(1))));
        Arc::make_mut(&mut ir.topology).add_edge(NodeId(0), NodeId(1), false).unwrap();
        assert_eq!(conflicts.find(&ir, [NodeId(1)]), None);
    }
}
