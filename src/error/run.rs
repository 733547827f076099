//! Errors of finalizing and submitting.

use std::time::Duration;

use super::{BuildCause, DriverError, ErrorKind, ProgramError};
use crate::graph::Node;

/// A graph that cannot be turned into an executable. The graph is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FinalizeError {
    /// Memory of the graph's own is used, or freed, behind the node that frees it.
    #[error("the allocation of {alloc} {why}: {freed} frees it, and {node} comes after that; {remedy}")]
    GraphMemoryFreed {
        /// The node that allocates it.
        alloc: Node,
        /// The node that frees it.
        freed: Node,
        /// The node that comes too late.
        node: Node,
        /// What is wrong.
        why: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Memory of the graph's own is used before the node that allocates it.
    #[error(
        "the allocation of {alloc} is used before it is there: {node} comes before {alloc}; add an edge from {alloc} to {node}"
    )]
    GraphMemoryNotThere {
        /// The node that allocates it.
        alloc: Node,
        /// The node that comes too early.
        node: Node,
    },
    /// The graph's own memory could not be allocated.
    #[error("the {bytes} bytes of the graph's own memory could not be allocated: {source}")]
    Memory {
        /// Bytes of all of it.
        bytes: usize,
        /// What the driver said, or what is too large.
        source: super::MemoryError,
    },
    /// A graph that owns more memory than `usize` counts, as happens where that has 32 bits.
    #[error(
        "the graph's own memory has more bytes than a `usize` of {} bits counts: give the graph fewer or smaller allocations",
        usize::BITS
    )]
    OwnMemory,
    /// No path can run a node on the graph's device.
    #[error("{node} ({what}) cannot run on device `{device}`: {missing}")]
    NotRunnable {
        /// The node.
        node: Node,
        /// Its kind and name.
        what: String,
        /// The device.
        device: String,
        /// What the device lacks.
        missing: String,
        /// [`ErrorKind::KernelNotSupported`] or [`ErrorKind::FeatureNotSupported`].
        kind: ErrorKind,
    },
    /// The driver refused to set a kernel argument.
    #[error("{node} (kernel `{kernel}`): argument {index} was refused: {source}")]
    Argument {
        /// The node.
        node: Node,
        /// The kernel's name.
        kernel: String,
        /// Which argument, from 0.
        index: usize,
        /// What the driver said.
        source: DriverError,
    },
    /// A kernel object could not be made.
    #[error("{node} (kernel `{kernel}`): {source}")]
    Kernel {
        /// The first node that uses the kernel.
        node: Node,
        /// The kernel's name.
        kernel: String,
        /// Why not.
        source: ProgramError,
    },
    /// Edges added without the cycle check close a cycle.
    #[error(
        "the graph has a cycle: {}; leave one of these edges out (`GraphProperties::no_cycle_check` let them in)",
        super::show_path(nodes)
    )]
    Cycle {
        /// The nodes on the cycle, in order.
        nodes: Vec<Node>,
    },
    /// clgraph found a mistake in what it prepared. It is a defect of clgraph: please report it. Most of these checks are made
    /// with debug assertions only.
    #[error("clgraph made a wrong plan ({what}): this is a defect of clgraph, please report it")]
    Defect {
        /// What is wrong with the plan.
        what: String,
    },
    /// Two nodes that use the same memory, one of them writing, and that no edges order: parameters, or what was put in the
    /// place of nodes, have given them other memory since their edges were made.
    #[error(
        "{first} ({first_use}) and {second} ({second_use}) use the same memory, and no edge orders them: add one by \
         `Graph::add_edge`, or finalize with `Finalize::allow_conflicts`"
    )]
    Conflict {
        /// The one that is enqueued first.
        first: Node,
        /// What it is, and what it does to the memory.
        first_use: String,
        /// The other.
        second: Node,
        /// What that is, and what it does.
        second_use: String,
    },
    /// A parameter has a value with which a node cannot run.
    #[error("{node}: {cause}")]
    Node {
        /// The node.
        node: Node,
        /// What is wrong.
        cause: BuildCause,
    },
    /// The report and the drawing that `CLGRAPH_DUMP` asks for could not be written.
    #[error("CLGRAPH_DUMP asks for a report, and {path} cannot be written: {error}")]
    Dump {
        /// The folder or file.
        path: String,
        /// What the system said.
        error: String,
    },
    /// With its sub-graphs written out, the graph has more nodes, edges or arguments than can be counted.
    #[error(
        "with its sub-graphs written out the graph is full: it holds at most {limit} nodes, as many edges, as many arguments, \
         and as many bytes of values"
    )]
    Full {
        /// The limit.
        limit: u64,
    },
    /// The function of a native command could not record, or panicked.
    #[error("{node} (native command) could not be recorded: {text}")]
    NativeCommand {
        /// The native command.
        node: Node,
        /// What its function said.
        text: String,
    },
    /// An option outside its range.
    #[error("{option} is {given}: it must be {allowed}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// What was given.
        given: String,
        /// What is allowed.
        allowed: &'static str,
    },
}

impl FinalizeError {
    /// What sort of error this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotRunnable { kind, .. } => *kind,
            Self::Memory { source, .. } => source.kind(),
            Self::OwnMemory => ErrorKind::OutOfMemory,
            Self::Node { cause, .. } => cause.kind(),
            Self::Argument { source, .. } => source.kind(),
            Self::Kernel { source, .. } => source.kind(),
            Self::NativeCommand { .. } => ErrorKind::Failed,
            _ => ErrorKind::Invalid,
        }
    }
}

/// A submission that was not accepted, or how it ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// A queue of another context or device.
    #[error("the queue has another {what} than the executable: submit to a queue of `{device}` in the graph's context")]
    OtherQueue {
        /// `context` or `device`.
        what: &'static str,
        /// The executable's device.
        device: String,
    },
    /// An event of another context.
    #[error(
        "event {index} of the wait list belongs to another OpenCL context: wait for events of the context that the command \
         runs in"
    )]
    OtherContext {
        /// Which event, in the order given, from 0.
        index: usize,
    },
    /// An event to wait for has already failed.
    #[error("event {index} of the wait list has failed: {cause}")]
    EventFailed {
        /// Which event, in the order given, from 0.
        index: usize,
        /// How it failed.
        cause: Box<super::Error>,
    },
    /// Every slot for the results of a read node is held, of those that [`Finalize::result_slots`](crate::Finalize::result_slots)
    /// allows.
    #[error(
        "all {slots} result slots of {node} are held by submissions or results still alive: drop one, or finalize with \
         more `result_slots`, or without a bound"
    )]
    NoSlot {
        /// The read node.
        node: Node,
        /// How many slots there are.
        slots: usize,
    },
    /// The host has no memory for a result.
    #[error("no host memory for the {bytes} bytes of a result of {node}")]
    HostMemory {
        /// The read node.
        node: Node,
        /// Bytes of the result.
        bytes: usize,
    },
    /// Data for a node that is no host write of this executable.
    #[error("{node} is no host write of this executable: give the handle that adding the host write returned")]
    NotAnInput {
        /// The node given.
        node: Node,
    },
    /// Data of another size than the node writes.
    #[error("{node} writes {expected} bytes, and what was given has {given}")]
    InputSize {
        /// The write node.
        node: Node,
        /// Bytes that the node writes.
        expected: usize,
        /// Bytes given.
        given: usize,
    },
    /// A result of a node that is no host read of this submission's executable.
    #[error("{node} is no host read of this submission: give the handle that adding the host read returned")]
    NotAResult {
        /// The node given.
        node: Node,
    },
    /// A result that is not there yet.
    #[error("the submission is not complete: call `wait` first")]
    NotComplete,
    /// The times of a submission whose executable takes none.
    #[error("the executable takes no times: finalize the graph with `Finalize::profiling`")]
    NotProfiled,
    /// A result that a host task does not wait for.
    #[error("{task} (host task) does not wait for {read}, whose result it asks for: add the edge, by `after`")]
    NotBehind {
        /// The host task.
        task: Node,
        /// The read.
        read: Node,
    },
    /// A wait that ended by its time limit. The submission goes on.
    #[error("the submission is not complete after {0:?}: it goes on, wait again or do something else")]
    TimedOut(Duration),
    /// A node could not be enqueued. What was enqueued before it will still run.
    #[error("{} could not be enqueued, after {enqueued} of {total} commands: {source}", named(*node, *commands))]
    Enqueue {
        /// The node, or the first of those in the command buffer.
        node: Node,
        /// Commands that were to be enqueued at once: 1, or those of a command buffer.
        commands: usize,
        /// Commands that had been enqueued.
        enqueued: usize,
        /// Commands in all.
        total: usize,
        /// What the driver said.
        source: DriverError,
    },
    /// The driver reported failure while the submission ran.
    #[error("the submission failed while it ran: {0}")]
    Failed(DriverError),
    /// An event that the submission waited for failed, so that it did not run.
    #[error("the submission did not run, because what it waited for failed: {cause}")]
    DependencyFailed {
        /// How it failed.
        cause: Box<super::Error>,
    },
    /// A host task returned an error, or panicked. What waits for it did not run; everything else did.
    #[error("{node} ({what}) failed: {text}")]
    HostTask {
        /// The host task.
        node: Node,
        /// `host task`, and its label.
        what: String,
        /// What it said.
        text: String,
    },
    /// The function of a native command could not enqueue, or panicked. What was enqueued before will still run.
    #[error("{node} (native command) could not be enqueued: {text}")]
    NativeCommand {
        /// The native command.
        node: Node,
        /// What its function said.
        text: String,
    },
    /// A node with an external event, for which the submission was given none.
    #[error("{node} needs an event, and the submission was given none: give it one by `Submit::{method}`")]
    EventMissing {
        /// The node.
        node: Node,
        /// `with_event` or `with_signal`.
        method: &'static str,
    },
    /// A node with an external event, for which the submission was given two.
    #[error("the submission was given two events for {node}: give it one")]
    EventTwice {
        /// The node.
        node: Node,
    },
    /// An event for a node that has no external event in this executable.
    #[error(
        "the executable has no external event at {node} for this handle: give the one that adding the node to its graph returned, \
         to `Submit::with_event` for a wait and to `Submit::with_signal` for a signal"
    )]
    NotAnEvent {
        /// The node given.
        node: Node,
    },
    /// An event of another context, for a node.
    #[error(
        "the event for {node} belongs to another OpenCL context than the executable: give one of the graph's context"
    )]
    EventContext {
        /// The node.
        node: Node,
    },
    /// An event that a node of the submission is to complete, and that the submission, or what comes before the node, waits for.
    #[error(
        "{node} completes an event that the submission, or a node before it, waits for: it would wait for itself for ever; give \
         another event"
    )]
    OwnEvent {
        /// The node.
        node: Node,
    },
    /// The event failed that a node waits for. What waits for the node did not run; everything else did, unless the submission was not accepted.
    #[error("the event that {node} waits for has failed: {cause}")]
    ExternalEvent {
        /// The node.
        node: Node,
        /// How it failed.
        cause: Box<super::Error>,
    },
    /// The program said that a user event has failed.
    #[error("a user event failed: {text}")]
    UserEvent {
        /// What the program said.
        text: String,
    },
    /// A user event was dropped before it had ended.
    #[error("a user event was dropped before it was completed: keep it until `complete` or `fail`")]
    UserEventDropped,
    /// A user event that is complete, or has failed, already.
    #[error("the user event has ended already: make another one")]
    UserEventEnded,
    /// A user event that a submission is to complete, and nobody else.
    #[error("a submission is to complete the user event, and nobody else can: make another one")]
    UserEventGiven,
    /// The function of a native command called what it may not.
    #[error(
        "the function of a native command cannot submit, update, finalize, wait for submissions or complete user events, because clgraph's locks are held: it may enqueue \
         or record, and return"
    )]
    InsideNativeCommand,
    /// A host task waited for the submission that it is part of.
    #[error("a host task cannot wait for its own submission, which waits for the task: return first")]
    OwnSubmission,
    /// A host task waited for work on the queue that its own submission holds until the task is over.
    #[error(
        "a host task cannot wait for work that was given to the queue of its own submission, because that work waits for the \
         submission: wait after the task, or use another queue"
    )]
    OwnQueue,
    /// A host task gave data to a host write that may have begun.
    #[error(
        "the host task gives data to {node}, which does not wait for it: make the host write wait for the task, by `after`"
    )]
    InputTaken {
        /// The host write.
        node: Node,
    },
    /// The driver refused a call that belongs to no node.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

fn named(node: Node, commands: usize) -> String {
    if commands == 1 {
        return node.to_string();
    }
    format!("the command buffer of {node} and {} more", commands - 1)
}

impl SubmitError {
    /// What sort of error this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::HostMemory { .. } => ErrorKind::OutOfMemory,
            Self::Enqueue { source, .. } => source.kind(),
            Self::Failed(error) | Self::Driver(error) => error.kind(),
            Self::EventFailed { cause, .. } | Self::DependencyFailed { cause } | Self::ExternalEvent { cause, .. } => {
                cause.kind()
            }
            Self::UserEvent { .. } | Self::UserEventDropped | Self::HostTask { .. } | Self::NativeCommand { .. } => {
                ErrorKind::Failed
            }
            Self::NoSlot { .. } | Self::NotComplete | Self::TimedOut(_) => ErrorKind::NotReady,
            _ => ErrorKind::Invalid,
        }
    }
}
