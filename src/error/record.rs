//! Errors of recording: the state of queues, and events that stand for nodes.

use super::ErrorKind;
use crate::graph::Node;

/// A recording that cannot be begun or ended, or a use of a queue or an event that its state forbids. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A queue that records already.
    #[error("queue {index} records already, into {into} graph: end that recording first")]
    AlreadyRecording {
        /// Which queue of those given, from 0.
        index: usize,
        /// `this` or `another`.
        into: &'static str,
    },
    /// The same queue twice in one list.
    #[error("queues {first} and {second} are the same: name each queue once")]
    SameQueue {
        /// The first of the two, from 0.
        first: usize,
        /// The second of the two.
        second: usize,
    },
    /// A queue of another context or device than the graph's.
    #[error("queue {index} has another {what} than the graph: record queues of the graph's context and device")]
    OtherQueue {
        /// Which queue of those given, from 0.
        index: usize,
        /// `context` or `device`.
        what: &'static str,
    },
    /// Ending the recording of a queue that records into another graph.
    #[error("queue {index} records into another graph: end its recording there")]
    Elsewhere {
        /// Which queue of those given, from 0.
        index: usize,
    },
    /// A queue that executes was asked for its graph, or given what can only be recorded.
    #[error("the queue executes, and records into no graph: begin a recording first")]
    NotRecording,
    /// What has no form that can be recorded, or not in this form.
    #[error("{what} cannot be recorded: {instead}")]
    NotRecordable {
        /// What was asked for.
        what: &'static str,
        /// The form that can be recorded.
        instead: &'static str,
    },
    /// A recorded event is asked for what only running work has.
    #[error(
        "the event stands for {node}, which was recorded and does not run by itself: it cannot be {what}; end the \
             recording, submit the finalized graph, and use that submission"
    )]
    Recorded {
        /// The node.
        node: Node,
        /// What was asked for.
        what: &'static str,
    },
    /// An event of running work in the wait list of recorded work.
    #[error(
        "event {index} of the wait list is of work that runs, and the command is recorded: it waits for work recorded \
             into the same graph only; give the event to the submission of the executable instead, or record a node for it by \
             `Queue::record_event_wait`"
    )]
    Ordinary {
        /// Which event, from 0.
        index: usize,
    },
    /// A recorded event of another graph, or of one that is gone.
    #[error(
        "event {index} of the wait list stands for {node} of another graph, or of one that is gone: wait for events of work that \
             is recorded into the same graph"
    )]
    OtherGraph {
        /// Which event, from 0.
        index: usize,
        /// The node.
        node: Node,
    },
    /// A recorded event on an executing queue, after all recording into its graph has ended.
    #[error(
        "event {index} of the wait list stands for {node}, and nothing records into its graph any more: an executing \
             queue cannot wait for it; submit the finalized graph and wait for that"
    )]
    Ended {
        /// Which event, from 0.
        index: usize,
        /// The node.
        node: Node,
    },
    /// A queue that cannot join a recording, because it has another context or device than the graph.
    #[error(
        "event {index} of the wait list stands for {node}, and the queue cannot record into its graph, as it has another \
             {what}: use a queue of the graph's context and device"
    )]
    CannotJoin {
        /// Which event, from 0.
        index: usize,
        /// The node.
        node: Node,
        /// `context` or `device`.
        what: &'static str,
    },
}

impl RecordError {
    /// What sort of error this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
}
