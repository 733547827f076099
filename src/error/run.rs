//! Errors of finalizing and submitting.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use super::{BuildCause, DriverError, ErrorKind, ProgramError};
use crate::handles::Node;

/// Says where an edge between two nodes can be added.
pub(super) fn edge(first: &Node, second: &Node) -> &'static str {
    if first == second { "add an edge in the graph that this node runs" } else { "add an edge with `Graph::add_edge`" }
}

/// How work-items of a launch touched bytes that are not theirs: see [`SubmitError::BrokenPromise`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strayed {
    /// The argument of the promise, from 0.
    pub argument: usize,
    /// How many bytes of its memory belong to a work-item, by the promise.
    pub bytes: usize,
    /// The linear indices of the work-items that ran alone.
    pub items: Range<u64>,
    /// Whether they wrote bytes of others. Otherwise they read some.
    pub wrote: bool,
    /// The argument whose bytes show it: with `wrote` that of the promise, and otherwise one that the work-items wrote.
    pub changed: usize,
    /// The first such byte.
    pub byte: usize,
}

impl fmt::Display for Strayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { argument, bytes, items, wrote, changed, byte } = self;
        write!(f, "`elementwise({argument}, {bytes})`: when only ")?;
        match items.end.saturating_sub(1) {
            last if last == items.start => write!(f, "work-item {last}")?,
            last => write!(f, "work-items {} to {last}", items.start)?,
        }
        if *wrote {
            return write!(f, " ran, byte {byte} of argument {argument}, which belongs to none of them, was written");
        }
        write!(
            f,
            " ran, byte {byte} of argument {changed} depended on bytes of argument {argument} that belong to none of them, so \
             they were read"
        )
    }
}

/// A graph cannot be finalized into an executable. The graph is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FinalizeError {
    /// A node uses or frees memory of the graph after another node has freed it.
    #[error("the allocation of {alloc} {why}: {freed} frees it, and {node} comes after {freed}; {remedy}")]
    GraphMemoryFreed {
        /// The node that allocates the memory.
        alloc: Node,
        /// The node that frees the memory.
        freed: Node,
        /// The node that uses or frees the memory after that.
        node: Node,
        /// What is wrong.
        why: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A node uses memory of the graph before the memory is allocated.
    #[error(
        "the allocation of {alloc} is used before it is made: {node} comes before {alloc}; add an edge from {alloc} to \
         {node}"
    )]
    GraphMemoryNotAllocated {
        /// The node that allocates the memory.
        alloc: Node,
        /// The node that uses the memory before that.
        node: Node,
    },
    /// The memory of the graph could not be allocated.
    #[error("the {bytes} bytes of memory that the graph owns could not be allocated: {source}")]
    Memory {
        /// The bytes of all of this memory.
        bytes: usize,
        /// The error of the driver, or the limit that is exceeded.
        source: super::MemoryError,
    },
    /// The graph owns more bytes of memory than a `usize` can count, which happens where `usize` has 32 bits.
    #[error(
        "the graph owns more bytes of memory than a `usize` of {} bits can count: give the graph fewer or smaller \
         allocations",
        usize::BITS
    )]
    MemoryTooLarge,
    /// A node cannot run on the graph's device by any path.
    #[error(
        "{node} ({what}) cannot run on device `{device}`: {missing}: use a device that has this, or another command"
    )]
    NotRunnable {
        /// The node.
        node: Node,
        /// Its kind and name.
        what: String,
        /// The device.
        device: String,
        /// What the device does not support.
        missing: String,
        /// [`ErrorKind::KernelNotSupported`] or [`ErrorKind::FeatureNotSupported`]; that of the driver's error if the
        /// driver refused to record a native command that can only be recorded.
        kind: ErrorKind,
    },
    /// The driver refused a kernel argument.
    #[error("{node} (kernel `{kernel}`): the driver refused argument {index}: {source}")]
    Argument {
        /// The node.
        node: Node,
        /// The name of the kernel.
        kernel: String,
        /// Which argument, from 0.
        index: usize,
        /// The error of the driver.
        source: DriverError,
    },
    /// A kernel object could not be made.
    #[error("{node} (kernel `{kernel}`): {source}")]
    Kernel {
        /// The first node that uses the kernel.
        node: Node,
        /// The name of the kernel.
        kernel: String,
        /// Why not.
        source: ProgramError,
    },
    /// Edges that were added without the cycle check form a cycle.
    #[error(
        "the graph has a cycle: {}; leave out one of these edges (`GraphProperties::no_cycle_check` accepted them \
         unchecked)",
        super::show_path(nodes)
    )]
    Cycle {
        /// The nodes of the cycle, in order.
        nodes: Vec<Node>,
    },
    /// clgraph found a mistake in its own plan. This is a defect of clgraph: please report it. Most of these checks are
    /// active with debug assertions only.
    #[error("clgraph made a wrong plan ({what}): this is a defect of clgraph, please report it")]
    Defect {
        /// What is wrong with the plan.
        what: String,
    },
    /// Two nodes use the same memory, at least one of them writes to it, and no edge orders them. This happens when
    /// parameters or replacements give nodes other memory after their edges were made.
    #[error(
        "{first} ({first_use}) and {second} ({second_use}) use the same memory, but no edge orders them: {}, or finalize \
         with `Finalize::allow_conflicts`",
        edge(first, second)
    )]
    Conflict {
        /// The node that is enqueued first.
        first: Node,
        /// Its kind, and its use of the memory.
        first_use: String,
        /// The other node.
        second: Node,
        /// Its kind, and its use of the memory.
        second_use: String,
    },
    /// A node cannot run with the value of a parameter.
    #[error("{node}: {cause}")]
    Node {
        /// The node.
        node: Node,
        /// What is wrong.
        cause: BuildCause,
    },
    /// The report and the drawing for `CLGRAPH_DUMP` could not be written.
    #[error(
        "CLGRAPH_DUMP asks for a report, but {path} cannot be written ({error}): set it to a folder that can be \
         written, or unset it"
    )]
    Dump {
        /// The folder or file.
        path: String,
        /// The error of the operating system.
        error: String,
    },
    /// With its sub-graphs inlined, the graph has more nodes, edges or arguments than clgraph can count.
    #[error(
        "the graph is full with its sub-graphs inlined: it can have at most {limit} nodes, edges, arguments and bytes \
         of values each"
    )]
    Full {
        /// The limit of each.
        limit: u64,
    },
    /// The function of a native command returned an error or panicked while it recorded.
    #[error("{node} (native command) could not be recorded: {text}")]
    NativeCommand {
        /// The native command.
        node: Node,
        /// The error of its function.
        text: String,
    },
    /// An option is outside its range.
    #[error("{option} is {given}: it must be {allowed}")]
    Option {
        /// The name of the option.
        option: &'static str,
        /// The value given.
        given: String,
        /// The values allowed.
        allowed: &'static str,
    },
}

impl FinalizeError {
    /// Returns the sort of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotRunnable { kind, .. } => *kind,
            Self::Memory { source, .. } => source.kind(),
            Self::MemoryTooLarge => ErrorKind::OutOfMemory,
            Self::Node { cause, .. } => cause.kind(),
            Self::Argument { source, .. } => source.kind(),
            Self::Kernel { source, .. } => source.kind(),
            Self::NativeCommand { .. } => ErrorKind::Failed,
            _ => ErrorKind::Invalid,
        }
    }
}

/// A submission was not accepted, or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The queue has another context or device than the executable.
    #[error("the queue has another {what} than the executable: submit to a queue of `{device}` in the graph's context")]
    OtherQueue {
        /// `context` or `device`.
        what: &'static str,
        /// The device of the executable.
        device: String,
    },
    /// An event of the wait list belongs to another context.
    #[error(
        "event {index} of the wait list belongs to another OpenCL context: wait for events of the context that the \
         command runs in"
    )]
    OtherContext {
        /// Which event of the list, from 0.
        index: usize,
    },
    /// An event of the wait list has already failed.
    #[error("event {index} of the wait list has failed: {cause}")]
    EventFailed {
        /// Which event of the list, from 0.
        index: usize,
        /// How it failed.
        cause: Box<super::Error>,
    },
    /// All slots for results of a read node are in use, and [`Finalize::result_slots`](crate::Finalize::result_slots)
    /// allows no more.
    #[error(
        "all {slots} result slots of {node} are in use by submissions or results that still exist: drop one of them, \
         or finalize with a larger `result_slots` or without this bound"
    )]
    NoSlot {
        /// The read node.
        node: Node,
        /// The number of slots.
        slots: usize,
    },
    /// The host has no memory for a result.
    #[error(
        "the host has no memory for the {bytes} bytes of a result of {node}: drop results that you no longer need, or \
         read less"
    )]
    HostMemory {
        /// The read node.
        node: Node,
        /// The size of the result in bytes.
        bytes: usize,
    },
    /// Data was given for a node that is no host write of this executable.
    #[error("{node} is no host write of this executable: give the handle that adding the host write returned")]
    NotAnInput {
        /// The node given.
        node: Node,
    },
    /// Data was given that does not have the size that the node writes.
    #[error("{node} writes {expected} bytes, but {given} bytes were given: give exactly {expected} bytes")]
    InputSize {
        /// The write node.
        node: Node,
        /// The bytes that the node writes.
        expected: usize,
        /// The bytes given.
        given: usize,
    },
    /// A result was asked of a node that is no host read of the executable of this submission.
    #[error("{node} is no host read of this submission: give the handle that adding the host read returned")]
    NotAResult {
        /// The node given.
        node: Node,
    },
    /// A result was asked of a read in a body of a branch or loop that did not run.
    #[error(
        "{node} has no result, because the body with the read did not run in this submission: ask `Submission::turns` \
         whether it did"
    )]
    NotRun {
        /// The node given.
        node: Node,
    },
    /// A branch or loop was asked for that is none of the executable of this submission.
    #[error("{node} is no branch or loop of this executable: give the handle that adding the node returned")]
    NotAControl {
        /// The node given.
        node: Node,
    },
    /// A loop would have gone on after the number of turns that [`at_most`](crate::RepeatWhileNode::at_most) allows.
    #[error(
        "{} would go on after {turns} turns, which `at_most` does not allow: give it a larger bound, or find out why its \
         condition still holds",
        node.map_or_else(|| what.clone(), |node| format!("{node} ({what})"))
    )]
    TooManyTurns {
        /// The loop, or the node that it is inside. None for a loop of a queue that executes.
        node: Option<Node>,
        /// The loop and its label, and whether it is inside of the node.
        what: String,
        /// The bound.
        turns: u64,
    },
    /// The program has cancelled the submission.
    #[error("the submission was cancelled by the program: {node} ({what}) stopped after {turns} turns")]
    Cancelled {
        /// The branch or loop that met it, or the node that it is inside.
        node: Node,
        /// The branch or loop and its label, and whether it is inside of the node.
        what: String,
        /// How many turns that branch or loop had, since it began last.
        turns: u64,
    },
    /// The submission is not complete, so its results are not available yet.
    #[error("the submission is not complete: call `wait` first")]
    NotComplete,
    /// The submission has no times, because its executable does not measure them.
    #[error("the executable measures no times: finalize the graph with `Finalize::profiling`")]
    NotProfiled,
    /// A host task asks for a result of a read that it does not wait for.
    #[error(
        "{task} (host task) asks for the result of {read}, but does not wait for this node: add an edge from {read} to \
         {task} with `after`"
    )]
    NotAfterRead {
        /// The host task.
        task: Node,
        /// The read.
        read: Node,
    },
    /// A wait reached its time limit. The submission continues.
    #[error("the submission is not complete after {0:?}: it continues to run, so wait for it again later")]
    TimedOut(Duration),
    /// A node could not be enqueued. The commands enqueued before it will still run.
    #[error("{} could not be enqueued, after {enqueued} of {total} commands: {source}", named(*node, *commands, *fused))]
    Enqueue {
        /// The node, or the first node of a command buffer or of a fused kernel.
        node: Node,
        /// The number of commands that were to be enqueued together: 1, or those of a command buffer, or those that a fused kernel does.
        commands: usize,
        /// Whether they are one [fused](crate::Fuse) kernel.
        fused: bool,
        /// The number of commands that had been enqueued.
        enqueued: usize,
        /// The number of all commands. A fused kernel is one.
        total: usize,
        /// The error of the driver.
        source: DriverError,
    },
    /// The driver reported a failure while the submission ran.
    #[error("the submission failed while it ran: {0}")]
    CommandFailed(DriverError),
    /// The submission did not run, because an event that it waited for failed.
    #[error("the submission did not run, because an event that it waited for failed: {cause}")]
    DependencyFailed {
        /// How the event failed.
        cause: Box<super::Error>,
    },
    /// A host task returned an error or panicked. The nodes that wait for it did not run; all other nodes did.
    #[error("{node} ({what}) failed: {text}")]
    HostTask {
        /// The host task.
        node: Node,
        /// `host task`, and its label.
        what: String,
        /// The error of its function.
        text: String,
    },
    /// A launch broke its promise [`elementwise`](crate::KernelNode::elementwise). Submissions look only if the environment variable
    /// `CLGRAPH_CHECK_ELEMENTWISE` says so. The launch ran, and the nodes that wait for it did not; all other nodes did.
    #[error(
        "{node} (kernel `{kernel}`) breaks its promise {strayed}: correct the kernel or the number of bytes, or take the promise back"
    )]
    BrokenPromise {
        /// The launch.
        node: Node,
        /// The name of the kernel.
        kernel: String,
        /// Which promise, and what happened.
        strayed: Box<Strayed>,
    },
    /// The function of a native command returned an error or panicked while it enqueued. The commands enqueued before
    /// it will still run.
    #[error("{node} (native command) could not be enqueued: {text}")]
    NativeCommand {
        /// The native command.
        node: Node,
        /// The error of its function.
        text: String,
    },
    /// A node with an external event got no event from the submission.
    #[error("{node} needs an event, but the submission gives none: give it an event with `Submit::{method}`")]
    EventMissing {
        /// The node.
        node: Node,
        /// `with_event` or `with_signal`.
        method: &'static str,
    },
    /// A node with an external event got two events from the submission.
    #[error("the submission gives two events for {node}: give one event")]
    EventTwice {
        /// The node.
        node: Node,
    },
    /// An event was given for a node that has no external event in this executable.
    #[error(
        "{node} has no external event of this kind in the executable: give the handle that adding the node returned, \
         to `Submit::with_event` for an event wait and to `Submit::with_signal` for an event signal"
    )]
    NotAnEvent {
        /// The node given.
        node: Node,
    },
    /// The event for a node belongs to another context.
    #[error(
        "the event for {node} belongs to another OpenCL context than the executable: give an event of the graph's \
         context"
    )]
    EventContext {
        /// The node.
        node: Node,
    },
    /// A node would complete an event that the submission, or a node before it, waits for.
    #[error(
        "{node} completes an event that the submission, or a node before {node}, waits for, so the submission would \
         wait for itself for ever: give another event"
    )]
    OwnEvent {
        /// The node.
        node: Node,
    },
    /// The event that a node waits for failed. The nodes after it did not run; all other nodes did, unless the
    /// submission was not accepted.
    #[error("the event that {node} waits for has failed: {cause}")]
    ExternalEvent {
        /// The node.
        node: Node,
        /// How the event failed.
        cause: Box<super::Error>,
    },
    /// The program reported the failure of a user event, with [`UserEvent::fail`](crate::UserEvent::fail).
    #[error("a user event failed: {text}")]
    UserEvent {
        /// The text given to `fail`.
        text: String,
    },
    /// A user event was dropped before it was completed.
    #[error("a user event was dropped before it was completed: keep it until you call `complete` or `fail`")]
    UserEventDropped,
    /// A user event was already completed, or has already failed.
    #[error("the user event has already ended: make a new one")]
    UserEventEnded,
    /// A user event was given to a submission with `with_signal`, so only that submission can complete it.
    #[error(
        "the user event was given to a submission with `Submit::with_signal`, and only that submission can complete \
         it: make a new user event"
    )]
    UserEventInUse,
    /// Something waits for a user event, or for what comes after it, and this submission completes the event only after
    /// that: because it begins after it, or because its node waits for something that comes after it.
    #[error(
        "what this submission comes after waits for a user event that only this submission would complete: a host task, \
         a command on its queue, or an earlier submission of the executable. Let something complete the event that does \
         not come after the wait, such as a submission to another queue, or submit before the wait begins"
    )]
    UserEventAwaited,
    /// The function of a native command made a call that is forbidden there.
    #[error(
        "the function of a native command cannot submit, update, finalize, wait for submissions or complete user \
         events, because clgraph holds its locks meanwhile: let the function only enqueue or record, and make this \
         call after it returns"
    )]
    InsideNativeCommand,
    /// A host task waited for the submission that it is part of.
    #[error(
        "a host task cannot wait for its own submission, directly or through another task, because the submission ends \
         only after the task: wait after the task has returned"
    )]
    OwnSubmission,
    /// A host task waited for work on the queue of its own submission, and that work starts only after the submission.
    #[error(
        "a host task cannot wait for work that was enqueued after its own submission, because that work waits for the \
         submission: wait after the task has returned, or use another queue"
    )]
    OwnQueue,
    /// All threads for host tasks wait for submissions whose host tasks have no thread, and the system gives no more
    /// threads.
    #[error(
        "a host task cannot wait for a submission, because all {threads} threads for host tasks wait, and no other \
         thread could be started for the tasks that they wait for: let fewer host tasks wait at the same time"
    )]
    NoThread {
        /// How many threads there are.
        threads: usize,
    },
    /// A host task gave data to a host write that does not wait for the task, and may already have begun.
    #[error(
        "the host task gives data to {node}, but {node} does not wait for the task: make the host write wait for the \
         task, with `after`"
    )]
    InputTaken {
        /// The host write.
        node: Node,
    },
    /// The driver refused a call that belongs to no node.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

fn named(node: Node, commands: usize, fused: bool) -> String {
    let [what, of] = if fused { ["fused kernel", "command"] } else { ["command buffer", "node"] };
    match commands {
        0 | 1 if fused => format!("the {what} of {node}"),
        0 | 1 => node.to_string(),
        2 => format!("the {what} of {node} and 1 more {of}"),
        more => format!("the {what} of {node} and {} more {of}s", more - 1),
    }
}

impl SubmitError {
    /// Returns the sort of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::HostMemory { .. } => ErrorKind::OutOfMemory,
            Self::Enqueue { source, .. } => source.kind(),
            Self::CommandFailed(error) | Self::Driver(error) => error.kind(),
            Self::EventFailed { cause, .. } | Self::DependencyFailed { cause } | Self::ExternalEvent { cause, .. } => {
                cause.kind()
            }
            Self::UserEvent { .. } | Self::UserEventDropped | Self::HostTask { .. } | Self::NativeCommand { .. } => {
                ErrorKind::Failed
            }
            Self::TooManyTurns { .. } | Self::Cancelled { .. } => ErrorKind::Failed,
            Self::NoSlot { .. } | Self::NotComplete | Self::TimedOut(_) => ErrorKind::NotReady,
            _ => ErrorKind::Invalid,
        }
    }
}
