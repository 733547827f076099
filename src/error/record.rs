//! Errors of recording queues, and of events that stand for recorded commands.

use super::ErrorKind;
use crate::handles::Node;

/// A recording cannot begin or end, or the state of a queue or an event forbids its use. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A queue records already.
    #[error("queue {index} already records into {into} graph: end that recording first")]
    AlreadyRecording {
        /// Which queue of the list, from 0.
        index: usize,
        /// `this` or `another`.
        into: &'static str,
    },
    /// A list has the same queue twice.
    #[error("queues {first} and {second} of the list are the same queue: list each queue once")]
    SameQueue {
        /// The first of the two, from 0.
        first: usize,
        /// The second of the two, from 0.
        second: usize,
    },
    /// A queue has another context or device than the graph.
    #[error("queue {index} has another {what} than the graph: record queues of the context and device of the graph")]
    OtherQueue {
        /// Which queue of the list, from 0.
        index: usize,
        /// `context` or `device`.
        what: &'static str,
    },
    /// A recording was to end at a graph that the queue does not record into.
    #[error("queue {index} records into another graph: call `end_recording` on that graph first")]
    OtherRecording {
        /// Which queue of the list, from 0.
        index: usize,
    },
    /// A call needs a queue that records, but the queue executes.
    #[error("the queue executes commands and does not record into a graph: begin a recording first")]
    NotRecording,
    /// While a body of a branch or loop is recorded, a queue is used that records into the graph around it.
    #[error(
        "the queue records into the graph around a branch or loop whose body is being recorded: use the queue that the \
         function of the body is given"
    )]
    AroundBody,
    /// The recording of a queue ended while it recorded a body of a branch or loop.
    #[error(
        "the recording ended while a body of a branch or loop was recorded, and nothing was recorded: end it behind the \
         call that records the body"
    )]
    EndedInBody,
    /// A command has no recorded form, or not this form.
    #[error("{what} cannot be recorded: {instead}")]
    NotRecordable {
        /// The command.
        what: &'static str,
        /// Why not, and what to do instead.
        instead: &'static str,
    },
    /// A call needs a running command, but the event stands for a recorded one.
    #[error(
        "the event stands for {node}, which was recorded and does not run by itself, so the event cannot be {what}: \
         end the recording, finalize and submit the graph, and use the submission instead of the event"
    )]
    Recorded {
        /// The node.
        node: Node,
        /// What was asked for, as a participle: `waited for`.
        what: &'static str,
    },
    /// The wait list of a recorded command has an event of a running command.
    #[error(
        "event {index} of the wait list belongs to a running command, but a recorded command can wait only for \
         commands recorded into the same graph: give the event to the submission of the executable instead, or record \
         a node for it with `Queue::record_event_wait`"
    )]
    RunningEvent {
        /// Which event of the list, from 0.
        index: usize,
    },
    /// The wait list of a recorded command has an event of another graph, or of a graph that was dropped.
    #[error(
        "event {index} of the wait list stands for {node} of another graph, or of a graph that was dropped: wait for \
         events of commands that are recorded into the same graph"
    )]
    OtherGraph {
        /// Which event of the list, from 0.
        index: usize,
        /// The node.
        node: Node,
    },
    /// A command on an executing queue waits for a recorded command, but no queue records into the graph of that
    /// command any more.
    #[error(
        "event {index} of the wait list stands for {node}, but the recording of its graph has ended, and an executing \
         queue cannot wait for a recorded command: submit the finalized graph, and wait for the submission"
    )]
    RecordingEnded {
        /// Which event of the list, from 0.
        index: usize,
        /// The node.
        node: Node,
    },
    /// Captures need clgraph's layer.
    #[error(
        "the platform `{platform}` has no captures, because clgraph's layer is not loaded or leaves the platform to its \
         driver: start the program with OPENCL_LAYERS=libclgraph_layer.so, and also with CLGRAPH_LAYER=always if the driver \
         has command buffers of its own (docs/layer.md)"
    )]
    NoLayer {
        /// The platform of the queue.
        platform: String,
    },
    /// A queue is captured already.
    #[error("the queue is captured already: end that capture first")]
    AlreadyCaptured,
    /// A capture was to end, and there is none.
    #[error("the queue is not captured: begin a capture first")]
    NotCaptured,
    /// A call cannot be captured, and so nothing was.
    #[error(
        "{call} spoilt the capture, because it waits or cannot be captured, and the graph has not changed: warm the library up \
         before the capture, use its calls that do not block, or capture in relaxed mode where it waits without a need"
    )]
    CaptureSpoilt {
        /// The first such call.
        call: String,
    },
    /// A captured command cannot be a node.
    #[error("command {place} of the capture, {what}, cannot be a node, and the graph has not changed: {why}")]
    NotCapturable {
        /// Which command, from 0, in the order of the calls.
        place: usize,
        /// What it is.
        what: &'static str,
        /// Why it cannot.
        why: String,
    },
    /// A queue cannot join a recording, because it has another context or device than the graph.
    #[error(
        "event {index} of the wait list stands for {node}, but the queue cannot record into the graph of that node, \
         because it has another {what}: use a queue of the context and device of the graph"
    )]
    CannotJoin {
        /// Which event of the list, from 0.
        index: usize,
        /// The node.
        node: Node,
        /// `context` or `device`.
        what: &'static str,
    },
}

impl RecordError {
    /// Returns the sort of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoLayer { .. } => ErrorKind::FeatureNotSupported,
            _ => ErrorKind::Invalid,
        }
    }
}
