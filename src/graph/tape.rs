//! A graph's side of recordings: which queues record into it, and how far each of them has got.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Weak};

use rustc_hash::FxHashMap;

use super::{Graph, GraphId};
use crate::ir::NodeId;

/// A queue, as graphs see it.
pub(crate) trait Recorder: Send + Sync {
    /// Tells queues apart, also after they are gone.
    fn id(&self) -> RecorderId;
    /// Whether its commands run in the order in which they come.
    fn in_order(&self) -> bool;
    /// Ends its recording into a graph. Whether that changed anything.
    fn end(&self, graph: &Graph) -> bool;
    /// The same if it only joined, and nobody records into the graph that has begun to.
    fn end_joined(&self, graph: &Graph);
    /// Ends its recording into a graph that is gone.
    fn let_go(&self, graph: GraphId);
}

/// A queue's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecorderId(pub(crate) u64);

/// The queues of a graph. Guarded by the graph's lock, which is taken after those of queues.
#[derive(Default)]
pub(crate) struct Tape {
    recording: Vec<Recording>,
    /// They stay when a recording ends: what is recorded next goes on from there.
    chains: FxHashMap<RecorderId, Chain>,
}

struct Recording {
    id: RecorderId,
    queue: Weak<dyn Recorder>,
    /// It was begun, and has not joined by an event.
    begun: bool,
}

/// How far a queue has got.
#[derive(Debug, Default)]
struct Chain {
    last: Option<NodeId>,
    /// Its last barrier: all its later nodes are behind it.
    barrier: Option<NodeId>,
    /// Its nodes with no successor among its nodes.
    leaves: BTreeSet<NodeId>,
}

/// What a recorded command has to do with the order of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// A command like most.
    Plain,
    /// Without a wait list it depends on all that the queue recorded before.
    Marker,
    /// The same, and all later commands of the queue wait for it.
    Barrier,
}

impl Tape {
    /// Whether any queue records. One that was dropped meanwhile does not.
    pub(crate) fn is_recording(&self) -> bool {
        self.recording.iter().any(|one| one.queue.strong_count() > 0)
    }

    /// Whether a queue records that did not only join.
    pub(crate) fn has_begun(&self) -> bool {
        self.recording.iter().any(|one| one.begun && one.queue.strong_count() > 0)
    }

    pub(crate) fn begin(&mut self, id: RecorderId, queue: Weak<dyn Recorder>) {
        self.recording.push(Recording { id, queue, begun: true });
    }

    pub(crate) fn join(&mut self, id: RecorderId, queue: Weak<dyn Recorder>) {
        self.recording.push(Recording { id, queue, begun: false });
    }

    /// A queue that has joined is recorded for its own sake from now on.
    pub(crate) fn stay(&mut self, id: RecorderId) {
        self.recording.iter_mut().filter(|one| one.id == id).for_each(|one| one.begun = true);
    }

    pub(crate) fn leave(&mut self, id: RecorderId) {
        self.recording.retain(|one| one.queue.strong_count() > 0 && one.id != id);
    }

    /// The queues that record.
    pub(crate) fn queues(&self) -> Vec<Arc<dyn Recorder>> {
        self.recording.iter().filter_map(|one| one.queue.upgrade()).collect()
    }

    /// Adds to `waits`, which holds what a queue's next node is given to wait for, what the queue's order puts before it.
    pub(super) fn before(&self, queue: &dyn Recorder, order: Order, waits: &mut Vec<NodeId>) {
        let Some(chain) = self.chains.get(&queue.id()) else { return };
        if order != Order::Plain && waits.is_empty() {
            // Whatever else the queue recorded is before one of them: its last node, and its last barrier.
            waits.extend(chain.leaves.iter().copied());
        } else if queue.in_order() {
            // The last barrier is before it.
            waits.extend(chain.last);
        } else {
            waits.extend(chain.barrier);
        }
    }

    /// Notes a queue's next node, with all its predecessors.
    pub(super) fn took(&mut self, queue: &dyn Recorder, order: Order, node: NodeId, before: &[NodeId]) {
        let chain = self.chains.entry(queue.id()).or_default();
        before.iter().for_each(|node| {
            chain.leaves.remove(node);
        });
        chain.leaves.insert(node);
        chain.last = Some(node);
        if order == Order::Barrier {
            chain.barrier = Some(node);
        }
    }
}

impl fmt::Debug for Tape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} queues record, {} have", self.recording.len(), self.chains.len())
    }
}
