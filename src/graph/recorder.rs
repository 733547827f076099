//! A graph's side of recordings: which queues record into it, and the last nodes of each queue.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Weak};

use rustc_hash::FxHashMap;

use crate::graph::Graph;
use crate::handles::GraphId;
use crate::ir::NodeId;

/// A queue, as graphs use it.
pub(crate) trait RecordingQueue: Send + Sync {
    /// A number that no other queue gets, even after this one is dropped.
    fn id(&self) -> QueueId;
    /// Whether the commands of the queue run in the order in which they are enqueued.
    fn in_order(&self) -> bool;
    /// Ends the queue's recording into a graph. Returns whether the queue was recording into it.
    fn end(&self, graph: &Graph) -> bool;
    /// As [`end`](Self::end), but only if the queue has joined by an event, and no queue records into the graph that
    /// has begun explicitly.
    fn end_joined(&self, graph: &Graph);
    /// Ends the queue's recording into a graph that is gone.
    fn end_recording_into(&self, graph: GraphId);
}

/// The number of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct QueueId(pub(crate) u64);

/// The queues of a graph. The lock of the graph guards them; it is taken after the locks of queues.
#[derive(Default)]
pub(crate) struct Recorder {
    recording: Vec<OpenRecording>,
    /// They stay when a recording ends: the next recording continues after them.
    chains: FxHashMap<QueueId, Chain>,
}

struct OpenRecording {
    id: QueueId,
    queue: Weak<dyn RecordingQueue>,
    /// Whether the queue has begun to record explicitly, and not only joined by an event.
    begun: bool,
}

/// The last nodes that a queue has recorded.
#[derive(Debug, Default)]
struct Chain {
    last: Option<NodeId>,
    /// The last barrier of the queue. All later nodes of the queue come after it.
    barrier: Option<NodeId>,
    /// The nodes of the queue that have no successor among the queue's nodes.
    leaves: BTreeSet<NodeId>,
}

/// The role of a recorded command in the order of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// An ordinary command.
    Plain,
    /// A marker: without a wait list it waits for everything that the queue recorded before.
    Marker,
    /// A barrier: a marker that all later commands of the queue wait for.
    Barrier,
}

impl Recorder {
    /// Whether any queue records. A queue that was dropped meanwhile does not count.
    pub(crate) fn is_recording(&self) -> bool {
        self.recording.iter().any(|one| one.queue.strong_count() > 0)
    }

    /// Whether any queue records that has begun explicitly.
    pub(crate) fn has_begun(&self) -> bool {
        self.recording.iter().any(|one| one.begun && one.queue.strong_count() > 0)
    }

    pub(crate) fn begin(&mut self, id: QueueId, queue: Weak<dyn RecordingQueue>) {
        self.recording.push(OpenRecording { id, queue, begun: true });
    }

    pub(crate) fn join(&mut self, id: QueueId, queue: Weak<dyn RecordingQueue>) {
        self.recording.push(OpenRecording { id, queue, begun: false });
    }

    /// Makes a queue that has joined count as one that has begun explicitly.
    pub(crate) fn stay(&mut self, id: QueueId) {
        self.recording.iter_mut().filter(|one| one.id == id).for_each(|one| one.begun = true);
    }

    pub(crate) fn leave(&mut self, id: QueueId) {
        self.recording.retain(|one| one.queue.strong_count() > 0 && one.id != id);
    }

    /// The queues that record.
    pub(crate) fn queues(&self) -> Vec<Arc<dyn RecordingQueue>> {
        self.recording.iter().filter_map(|one| one.queue.upgrade()).collect()
    }

    /// Adds the predecessors from the queue's order to `waits`, which holds the explicit predecessors of the queue's
    /// next node.
    pub(in crate::graph) fn before(&self, queue: &dyn RecordingQueue, order: Order, waits: &mut Vec<NodeId>) {
        let Some(chain) = self.chains.get(&queue.id()) else { return };
        if order != Order::Plain && waits.is_empty() {
            // These cover all other nodes of the queue: each of them comes before one of these.
            waits.extend(chain.leaves.iter().copied());
        } else if queue.in_order() {
            // The last node comes after the last barrier already.
            waits.extend(chain.last);
        } else {
            waits.extend(chain.barrier);
        }
    }

    /// Registers the queue's next node, with all its predecessors.
    pub(in crate::graph) fn took(&mut self, queue: &dyn RecordingQueue, order: Order, node: NodeId, before: &[NodeId]) {
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

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} queues record, {} have", self.recording.len(), self.chains.len())
    }
}
