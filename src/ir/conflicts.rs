//! Conflicts: nodes that use the same memory without an order by edges. Only the changed nodes are looked at.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use super::topology::Topology;
use super::{Access, Ir, NodeId, RootId, View};

/// The uses of each buffer, in the order of their nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conflicts {
    /// Whether each node waits for the one before it. Then there is no conflict, whatever the nodes use, and nothing
    /// else is looked at.
    chain: bool,
    order: Vec<NodeId>,
    /// By node: its position in the order. Nodes that are not in the order are no commands.
    position: Vec<u32>,
    /// Writing uses and reading uses: root, position of the node, index of the access.
    writes: BTreeSet<Key>,
    reads: BTreeSet<Key>,
}

type Key = (RootId, u32, u32);
/// Usually few.
type Nodes = SmallVec<[NodeId; 4]>;

impl Conflicts {
    /// Makes it for an order that the edges follow and that has all nodes that use memory.
    pub(crate) fn new(ir: &Ir, order: Vec<NodeId>) -> Self {
        let follows = |pair: &[NodeId]| ir.topology.preds(pair[1]).any(|pred| pred == pair[0]);
        if order.windows(2).all(follows) {
            return Self { chain: true, ..Self::default() };
        }
        let mut position = vec![u32::MAX; ir.len()];
        for (at, node) in (0..).zip(&order) {
            position[node.index()] = at;
        }
        let mut conflicts = Self { order, position, ..Self::default() };
        for at in 0..conflicts.order.len() {
            let node = conflicts.order[at];
            for (slot, access) in ir.accesses(node).iter().enumerate() {
                conflicts.add(ir, node, slot, access);
            }
        }
        conflicts
    }

    fn key(&self, ir: &Ir, node: NodeId, slot: usize, access: &Access) -> Key {
        (ir.views[access.view.index()].root, self.position[node.index()], slot as u32)
    }

    fn add(&mut self, ir: &Ir, node: NodeId, slot: usize, access: &Access) {
        let key = self.key(ir, node, slot, access);
        if !access.range.is_empty() {
            (if access.mode.writes() { &mut self.writes } else { &mut self.reads }).insert(key);
        }
    }

    /// Replaces a use of a node by another.
    pub(crate) fn exchange(&mut self, ir: &Ir, node: NodeId, slot: usize, old: &Access, new: &Access) {
        if self.chain {
            return;
        }
        let key = self.key(ir, node, slot, old);
        (if old.mode.writes() { &mut self.writes } else { &mut self.reads }).remove(&key);
        self.add(ir, node, slot, new);
    }

    /// Returns two nodes without an order of which one has one of these uses, the earlier node first. All other uses
    /// must be ordered already.
    ///
    /// From each use, the search goes to earlier and later uses until one writes all of its bytes: anything farther
    /// away that conflicts with the use conflicts with that one too, which is nearer. For reads, only writes are
    /// searched.
    pub(crate) fn find(&self, ir: &Ir, uses: impl IntoIterator<Item = (NodeId, usize)>) -> Option<(NodeId, NodeId)> {
        if self.chain {
            return None;
        }
        for (node, slot) in uses {
            let access = &ir.accesses(node)[slot];
            if access.range.is_empty() {
                continue;
            }
            let (root, at) = (ir.views[access.view.index()].root, self.position[node.index()]);
            // Writes first, because they limit how far the search goes.
            let (before, first) = self.nearest(ir, access, self.writes.range((root, 0, 0)..(root, at, 0)).rev());
            let end = (root, u32::MAX, u32::MAX);
            let (after, last) = self.nearest(ir, access, self.writes.range((root, at.saturating_add(1), 0)..=end));
            let reads = |range: std::ops::Range<Key>| {
                let those = if access.mode.writes() { Some(self.reads.range(range)) } else { None };
                self.nearest(ir, access, those.into_iter().flatten()).0
            };
            let reads_before = reads((root, first.unwrap_or(0), 0)..(root, at, 0));
            let reads_after = reads((root, at.saturating_add(1), 0)..(root, last.unwrap_or(u32::MAX), u32::MAX));
            let unordered = |pair: &(NodeId, NodeId)| !self.is_ordered(&ir.topology, pair.0, pair.1);
            let before = before.into_iter().chain(reads_before).map(|other| (other, node));
            let after = after.into_iter().chain(reads_after).map(|other| (node, other));
            let found = before.chain(after).find(unordered);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Returns the nodes whose uses conflict with an access, up to one that writes all of its bytes, and where that is.
    fn nearest<'a>(&self, ir: &Ir, access: &Access, uses: impl Iterator<Item = &'a Key>) -> (Nodes, Option<u32>) {
        let mut nodes = Nodes::new();
        for (_, at, slot) in uses {
            let other = self.order[*at as usize];
            let of = &ir.accesses(other)[*slot as usize];
            if of.conflicts_with(access, &ir.views) {
                nodes.push(other);
            }
            if covers(of, access, &ir.views) {
                return (nodes, Some(*at));
            }
        }
        (nodes, None)
    }

    /// Returns whether edges lead from one node to a later one. Looks only at nodes between the two.
    fn is_ordered(&self, topology: &Topology, first: NodeId, second: NodeId) -> bool {
        if topology.preds(second).any(|pred| pred == first) {
            return true;
        }
        let start = self.position[first.index()];
        let mut seen = FxHashSet::from_iter([second]);
        let mut stack = vec![second];
        while let Some(node) = stack.pop() {
            for pred in topology.preds(node) {
                if pred == first {
                    return true;
                }
                // A node that uses no memory may have no position. The search goes through it.
                let at = self.position[pred.index()];
                if (at == u32::MAX || at > start) && seen.insert(pred) {
                    stack.push(pred);
                }
            }
        }
        false
    }
}

/// Returns every use of every node.
pub(crate) fn all_uses(ir: &Ir) -> impl Iterator<Item = (NodeId, usize)> {
    ir.ids().flat_map(|node| (0..ir.accesses(node).len()).map(move |slot| (node, slot)))
}

/// Returns whether a use writes all bytes of another.
fn covers(write: &Access, of: &Access, views: &[View]) -> bool {
    let class = |access: &Access| views[access.view.index()].is_sub_buffer();
    write.mode.writes()
        && class(write) == class(of)
        && write.range.start <= of.range.start
        && of.range.end <= write.range.end
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use quickcheck::{Arbitrary, Gen, QuickCheck};

    use super::*;
    use crate::command::Command;
    use crate::ir::{Mode, ViewId, ViewKind};

    /// Nodes with one use each: view, first byte, bytes, mode; and edges to earlier nodes, as bits.
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
            // Two buffers, each with a sub-buffer.
            ir.views.push(View {
                root: RootId(view / 2),
                root_size: 16,
                offset: 0,
                size: 16,
                kind: if view % 2 == 1 { ViewKind::SubBuffer } else { ViewKind::Buffer },
            });
        }
        for (at, (view, start, len, mode, bits)) in uses.0.iter().enumerate() {
            let mode = [Mode::Read, Mode::Write, Mode::ReadWrite][usize::from(*mode)];
            let start = usize::from(*start);
            let access = Access { view: ViewId(u32::from(*view)), range: start..start + usize::from(*len), mode };
            let mut after = (0..at).filter(|pred| bits >> pred & 1 == 1).map(|pred| NodeId(pred as u32)).collect();
            ir.push_node(Command::Empty, [access].into_iter(), &mut after).unwrap();
        }
        ir
    }

    /// Returns all pairs that conflict and that no path connects.
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
            let all = conflicts.find(&ir, all_uses(&ir));
            if all.is_none() != pairs.is_empty() || all.is_some_and(|pair| !pairs.contains(&pair)) {
                return false;
            }
            // Only some uses are new, and the others have no conflicts, as in an update.
            let changed: Vec<NodeId> = uses.1.iter().map(|node| NodeId(*node as u32)).collect();
            let theirs = |(a, b): &&(NodeId, NodeId)| changed.contains(a) || changed.contains(b);
            if pairs.iter().filter(theirs).count() < pairs.len() {
                return true;
            }
            conflicts.find(&ir, changed.iter().map(|node| (*node, 0))).is_none() == pairs.is_empty()
        }
        QuickCheck::new().tests(3000).quickcheck(property as fn(Uses) -> bool);
    }

    #[test]
    fn uses_are_replaced_one_node_at_a_time() {
        let uses = Uses(vec![(0, 0, 4, 1, 0), (2, 0, 4, 1, 0)], Vec::new());
        let mut ir = build(&uses);
        let mut conflicts = Conflicts::new(&ir, ir.ids().collect());
        assert_eq!(conflicts.find(&ir, all_uses(&ir)), None);
        let old = ir.accesses(NodeId(1))[0].clone();
        ir.accesses_mut(NodeId(1))[0].view = ViewId(0);
        conflicts.exchange(&ir, NodeId(1), 0, &old, &ir.accesses(NodeId(1))[0]);
        assert_eq!(conflicts.find(&ir, [(NodeId(1), 0)]), Some((NodeId(0), NodeId(1))));
        Arc::make_mut(&mut ir.topology).add_edge(NodeId(0), NodeId(1), false).unwrap();
        assert_eq!(conflicts.find(&ir, [(NodeId(1), 0)]), None);
    }
}
