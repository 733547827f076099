//! Which nodes a new node has to wait for, because they use the same memory. No other code makes edges from memory.
//!
//! Memory is tracked by byte ranges. For each range there are its last writer and the readers since then. A read waits
//! for the writer. A write waits for the readers, or for the writer if there are none.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Access, Mode, NodeId, View, ViewKind};

/// What is known about all memory of a graph. Each new node updates it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hazards {
    roots: Vec<Root>,
    readers: Readers,
}

/// OpenCL does not define the result if a buffer and its own sub-buffer are used at once, unless both are only read; it
/// does not matter whether the ranges overlap. So uses of the buffer and uses of its sub-buffers are two sides: within
/// a side the ranges decide, and between the sides any write conflicts.
#[derive(Clone, Debug, Default)]
struct Root {
    direct: RangeHistories,
    through_sub_buffers: RangeHistories,
}

impl Hazards {
    /// Adds to `after` the nodes that `node` has to wait for because of an access, and notes the access. A node may be
    /// added several times.
    pub(crate) fn add(&mut self, node: NodeId, access: &Access, view: &View, after: &mut Vec<NodeId>) {
        if access.range.is_empty() || view.kind == ViewKind::Foreign {
            return;
        }
        let index = view.root.index();
        if self.roots.len() <= index {
            self.roots.resize_with(index + 1, Root::default);
        }
        let Root { direct, through_sub_buffers } = &mut self.roots[index];
        let (own, other) =
            if view.is_sub_buffer() { (through_sub_buffers, direct) } else { (direct, through_sub_buffers) };
        let mut wait_for = |other: NodeId| {
            if other != node {
                after.push(other);
            }
        };
        own.add(&mut self.readers, node, access.range.clone(), access.mode, &mut wait_for);
        other.cross(&self.readers, access.mode, &mut wait_for);
        own.forget_covered();
    }
}

/// Lists of readers, newest first. Lists share their older parts, so splitting a range does not copy them.
#[derive(Clone, Debug, Default)]
struct Readers(Vec<(NodeId, List)>);

/// The newest reader of a list, as its index in [`Readers`].
type List = u32;

const NOBODY: List = u32::MAX;

impl Readers {
    fn push(&mut self, node: NodeId, list: List) -> List {
        self.0.push((node, list));
        self.0.len() as List - 1
    }

    fn newest(&self, list: List) -> Option<NodeId> {
        self.0.get(list as usize).map(|(node, _)| *node)
    }

    /// Returns the readers from the newest of `list` to the one before `end`.
    fn until(&self, list: List, end: List) -> impl Iterator<Item = NodeId> + '_ {
        let mut at = list;
        std::iter::from_fn(move || {
            let (node, older) = *self.0.get(at as usize).filter(|_| at != end)?;
            at = older;
            Some(node)
        })
    }
}

/// Disjoint ranges in order, each with its history, by first byte.
#[derive(Clone, Debug, Default)]
struct RangeHistories {
    ranges: BTreeMap<usize, History>,
    /// Whether some range has been written.
    written: bool,
    /// Whether some range has covered readers.
    covered: bool,
}

#[derive(Clone, Copy, Debug)]
struct History {
    end: usize,
    writer: Option<NodeId>,
    /// The readers since the last write: the list from `readers` to before `forgotten`.
    readers: List,
    forgotten: List,
    /// The readers from here on are covered: a later write on the other side has waited for them.
    covered: List,
}

impl History {
    fn new(end: usize, writer: Option<NodeId>, readers: List) -> Self {
        Self { end, writer, readers, forgotten: NOBODY, covered: NOBODY }
    }

    fn conflicts(&self, readers: &Readers, mode: Mode, wait_for: &mut impl FnMut(NodeId)) {
        // Every reader waits for the writer, so a node that waits for a reader waits for the writer too.
        if mode.writes() && self.readers != self.forgotten {
            readers.until(self.readers, self.forgotten).for_each(wait_for);
        } else if let Some(writer) = self.writer {
            wait_for(writer);
        }
    }

    fn read_by(&mut self, readers: &mut Readers, node: NodeId) {
        // The node's own write on the other side has covered earlier readers, which are about to be forgotten. This
        // read must stay.
        let kept = self.readers != self.forgotten && self.readers != self.covered;
        let known = kept && readers.newest(self.readers) == Some(node);
        if !known && self.writer != Some(node) {
            self.readers = readers.push(node, self.readers);
        }
    }
}

impl RangeHistories {
    fn add(
        &mut self,
        readers: &mut Readers,
        node: NodeId,
        range: Range<usize>,
        mode: Mode,
        wait_for: &mut impl FnMut(NodeId),
    ) {
        self.written |= mode.writes();
        // The usual case: the same range as before.
        if let Some(history) = self.ranges.get_mut(&range.start)
            && history.end == range.end
        {
            history.conflicts(readers, mode, wait_for);
            if mode.writes() {
                *history = History::new(range.end, Some(node), NOBODY);
            } else {
                history.read_by(readers, node);
            }
            return;
        }
        self.split(range.start);
        self.split(range.end);
        if mode.writes() {
            let mut covered = self.ranges.split_off(&range.start);
            let mut rest = covered.split_off(&range.end);
            covered.values().for_each(|history| history.conflicts(readers, mode, wait_for));
            self.ranges.insert(range.start, History::new(range.end, Some(node), NOBODY));
            self.ranges.append(&mut rest);
        } else {
            let mut gaps = Vec::new();
            let mut next = range.start;
            for (&start, history) in self.ranges.range_mut(range.clone()) {
                history.conflicts(readers, mode, wait_for);
                history.read_by(readers, node);
                if next < start {
                    gaps.push(next..start);
                }
                next = history.end;
            }
            if next < range.end {
                gaps.push(next..range.end);
            }
            for gap in gaps {
                self.ranges.insert(gap.start, History::new(gap.end, None, readers.push(node, NOBODY)));
            }
        }
    }

    /// Makes `at` a border between ranges.
    fn split(&mut self, at: usize) {
        if let Some((_, left)) = self.ranges.range_mut(..at).next_back()
            && left.end > at
        {
            let right = *left;
            left.end = at;
            self.ranges.insert(at, right);
        }
    }

    /// Notes a use on the other side, which conflicts with every range.
    fn cross(&mut self, readers: &Readers, mode: Mode, wait_for: &mut impl FnMut(NodeId)) {
        if self.ranges.is_empty() || (!mode.writes() && !self.written) {
            return;
        }
        for history in self.ranges.values_mut() {
            history.conflicts(readers, mode, wait_for);
            if mode.writes() {
                history.covered = history.readers;
            }
        }
        self.covered |= mode.writes();
    }

    /// Forgets covered readers, after a use of this side that waited for every writer of the other side. Later nodes
    /// need not wait for a covered reader, because they wait for this use or for a writer that waited for the reader.
    /// Without this, reading a buffer and writing its sub-buffers by turns would make a number of edges that grows with
    /// the square of the number of turns.
    fn forget_covered(&mut self) {
        if std::mem::take(&mut self.covered) {
            for history in self.ranges.values_mut() {
                // The covered readers are the older part of the list, and the ones forgotten earlier are older still.
                history.forgotten = history.covered;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RootId, ViewId};
    use super::*;

    fn kind(sub: bool) -> ViewKind {
        if sub { ViewKind::SubBuffer } else { ViewKind::Buffer }
    }

    /// Range, mode, and whether it is a use of a sub-buffer.
    type Use = (Range<usize>, Mode, bool);

    /// What each node waits for. Each node has one use.
    fn run(uses: &[Use]) -> Vec<Vec<u32>> {
        run_nodes(&uses.iter().map(|one| vec![one.clone()]).collect::<Vec<_>>())
    }

    /// What each node waits for. Each node has several uses, in their order.
    fn run_nodes(nodes: &[Vec<Use>]) -> Vec<Vec<u32>> {
        let mut hazards = Hazards::default();
        let waits = |(node, uses): (usize, &Vec<Use>)| {
            let mut after = Vec::new();
            for (range, mode, sub) in uses {
                let view = View { root: RootId(0), root_size: 400, offset: 0, size: 400, kind: kind(*sub) };
                let access = Access { view: ViewId(0), range: range.clone(), mode: *mode };
                hazards.add(NodeId(node as u32), &access, &view, &mut after);
            }
            after.sort();
            after.dedup();
            after.into_iter().map(|node| node.0).collect()
        };
        nodes.iter().enumerate().map(waits).collect()
    }

    use Mode::{Read, ReadWrite, Write};

    #[test]
    fn reads_wait_for_the_writer_and_writes_for_the_readers() {
        let uses = [(0..10, Write, false), (0..10, Read, false), (0..10, Read, false), (0..10, ReadWrite, false)];
        assert_eq!(run(&uses), [vec![], vec![0], vec![0], vec![1, 2]]);
    }

    #[test]
    fn ranges_that_do_not_overlap_do_not_wait() {
        let uses = [(0..10, Write, false), (10..20, Write, false), (5..15, Read, false), (0..5, Write, false)];
        assert_eq!(run(&uses), [vec![], vec![], vec![0, 1], vec![0]]);
    }

    #[test]
    fn a_read_across_gaps_is_remembered_in_the_gaps() {
        let uses = [(10..20, Write, false), (0..30, Read, false), (25..28, Write, false), (0..5, Write, false)];
        assert_eq!(run(&uses), [vec![], vec![0], vec![1], vec![1]]);
    }

    #[test]
    fn a_buffer_and_its_sub_buffer_conflict_on_any_write() {
        let uses = [
            (0..10, Write, true),
            (50..60, Write, true),
            (90..95, Read, false),
            (20..30, Read, true),
            (90..95, Write, false),
            (20..30, Read, true),
        ];
        assert_eq!(run(&uses), [vec![], vec![], vec![0, 1], vec![], vec![0, 1, 2, 3], vec![4]]);
    }

    /// 20 000 readers of everything, and then a reader of each byte: copying the readers at each split would need
    /// gigabytes.
    #[test]
    fn splitting_a_range_does_not_copy_its_readers() {
        let whole = (0..20_000).map(|_| (0..20_000, Read, false));
        let parts = (0..20_000).map(|at| (at..at + 1, Read, false));
        let uses: Vec<_> = whole.chain(parts).chain([(7..8, Write, false)]).collect();
        let waits = run(&uses);
        assert_eq!(waits[40_000].len(), 20_001);
        assert!(waits[..40_000].iter().all(Vec::is_empty));
    }

    #[test]
    fn reading_a_buffer_and_writing_its_sub_buffers_by_turns_makes_few_edges() {
        let turn = [(0..100, Read, false), (0..50, Write, true), (50..100, Write, true)];
        let uses: Vec<_> = turn.iter().cycle().take(300).cloned().collect();
        let edges: usize = run(&uses).iter().map(Vec::len).sum();
        assert!(edges < 5 * uses.len(), "{edges} edges for {} uses", uses.len());
    }

    /// Rule D2: the second read waits for nothing new, but the node's own write in between has covered the first read.
    #[test]
    fn a_read_is_kept_where_the_node_has_written_the_other_side_since() {
        let node = vec![(0..100, Read, true), (300..310, Write, false), (0..100, Read, true)];
        assert_eq!(run_nodes(&[node, vec![(50..60, Write, false)]]), [vec![], vec![0]]);
        let part = vec![(0..100, Read, true), (300..310, Write, false), (20..30, Read, true)];
        assert_eq!(
            run_nodes(&[part, vec![(20..30, Write, false)], vec![(50..60, Write, true)]]),
            [vec![], vec![0], vec![0, 1]]
        );
    }

    /// Edges order every pair that conflicts by definition, directly or through other nodes. Nodes have several uses,
    /// of both sides, as kernels, host tasks and sub-graphs have.
    #[test]
    fn random_uses_are_ordered_wherever_they_conflict() {
        fn property(raw: Vec<Vec<(u8, u8, u8, bool)>>) -> bool {
            let of_node = |uses: &Vec<(u8, u8, u8, bool)>| -> Vec<Use> {
                let of = |&(start, len, mode, sub): &(u8, u8, u8, bool)| {
                    let start = usize::from(start % 40);
                    // Most uses read, so that lists of readers grow.
                    let mode = [Read, Read, Write, ReadWrite][usize::from(mode % 4)];
                    (start..start + usize::from(len % 12), mode, sub)
                };
                uses.iter().take(5).map(of).collect()
            };
            let nodes: Vec<_> = raw.iter().map(of_node).collect();
            let waits = run_nodes(&nodes);
            let mut reaches = vec![vec![false; nodes.len()]; nodes.len()];
            for node in 0..nodes.len() {
                for &pred in &waits[node] {
                    let pred = pred as usize;
                    let before = reaches[pred].clone();
                    reaches[node].iter_mut().zip(before).for_each(|(mine, theirs)| *mine |= theirs);
                    reaches[node][pred] = true;
                }
            }
            let views = [false, true].map(|sub| View {
                root: RootId(0),
                root_size: 400,
                offset: 0,
                size: 400,
                kind: kind(sub),
            });
            let access =
                |(range, mode, sub): &Use| Access { view: ViewId(u32::from(*sub)), range: range.clone(), mode: *mode };
            let conflict =
                |a: &Use, b: &Use| !a.0.is_empty() && !b.0.is_empty() && access(a).conflicts_with(&access(b), &views);
            (0..nodes.len()).all(|later| {
                (0..later).all(|earlier| {
                    let any = nodes[earlier].iter().any(|a| nodes[later].iter().any(|b| conflict(a, b)));
                    !any || reaches[later][earlier]
                })
            })
        }
        let count = std::env::var("CLGRAPH_TEST_RANDOM").ok().and_then(|count| count.parse().ok()).unwrap_or(2000);
        quickcheck::QuickCheck::new()
            .tests(count)
            .max_tests(count)
            .quickcheck(property as fn(Vec<Vec<(u8, u8, u8, bool)>>) -> bool);
    }
}
