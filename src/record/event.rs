//! Events: of commands that run, and of commands that were recorded as nodes.

use std::fmt;

use opencl_sys::{
    CL_PROFILING_COMMAND_COMPLETE, CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_START,
    CL_PROFILING_COMMAND_SUBMIT, cl_event, cl_profiling_info,
};

use crate::cl::completion::gates::Gates;
use crate::cl::completion::reentrancy;
use crate::cl::completion::workers::WaitGuard;
use crate::cl::objects::event::{CommandStatus, DriverEvent};
use crate::error::{RecordError, Result, Status};
use crate::graph::{GraphRef, Nodes};
use crate::handles::Node;

/// The event of a command: a driver's event, or, for a recorded command, the node that the command became.
///
/// Cloning an event is cheap, and clones are the same event.
///
/// An event of a recorded command only serves as a dependency of other commands that are recorded into the same graph.
/// It cannot be waited for or queried, because nothing runs.
#[derive(Clone)]
pub struct Event(pub(crate) EventKind);

#[derive(Clone)]
pub(crate) enum EventKind {
    Driver(DriverEvent),
    /// Boxed, so that an event of the driver does not need the space of a node event.
    Node(Box<NodeEvent>),
}

/// The node that a recorded command became.
#[derive(Clone, Debug)]
pub(crate) struct NodeEvent {
    pub(crate) graph: GraphRef,
    pub(crate) node: Node,
}

/// The progress of a command (`CL_EVENT_COMMAND_EXECUTION_STATUS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExecutionStatus {
    /// The command is queued, or submitted to the device and not started (`CL_QUEUED`, `CL_SUBMITTED`).
    Waiting,
    /// The command has started (`CL_RUNNING`).
    Running,
    /// The command is complete (`CL_COMPLETE`).
    Complete,
    /// The command failed with this status.
    Failed(Status),
}

impl fmt::Display for ExecutionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting => f.write_str("waiting"),
            Self::Running => f.write_str("running"),
            Self::Complete => f.write_str("complete"),
            Self::Failed(status) => write!(f, "failed with {status}"),
        }
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (EventKind::Driver(one), EventKind::Driver(other)) => one.raw() == other.raw(),
            (EventKind::Node(one), EventKind::Node(other)) => one.node == other.node,
            _ => false,
        }
    }
}

impl Eq for Event {}

impl Event {
    pub(crate) fn of_node(graph: GraphRef, node: Node) -> Self {
        Self(EventKind::Node(Box::new(NodeEvent { graph, node })))
    }

    /// Wraps an `opencl3` event, which may be dropped before this one.
    ///
    /// It is believed that an `opencl3` event owns a reference to an event. `opencl3::event::Event::new` takes any pointer
    /// and is no `unsafe fn` (`opencl3` 0.12): give it only what a driver has returned.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses to retain it.
    pub fn from_opencl3(event: &opencl3::event::Event) -> Result<Self> {
        Ok(Self(EventKind::Driver(DriverEvent::from_opencl3(event)?)))
    }

    /// Returns the same event for `opencl3`, with a reference of its own.
    ///
    /// The event of a command that waited for an event that could fail reports to the driver's users only that the command has
    /// ended, not that it succeeded.
    ///
    /// A callback that is set on this event may run on a thread of clgraph's own, where other submissions wait for its end. As
    /// OpenCL says, it must not block.
    ///
    /// # Errors
    /// [`RecordError::Recorded`]; [`crate::DriverError`] when the driver refuses to retain it.
    pub fn to_opencl3(&self) -> Result<opencl3::event::Event> {
        self.driver("given to opencl3")?.to_opencl3()
    }

    /// Returns the C handle, which is valid while this object lives.
    ///
    /// # Errors
    /// [`RecordError::Recorded`].
    pub fn raw(&self) -> Result<cl_event> {
        Ok(self.driver("given to the driver")?.raw())
    }

    /// Returns the node of a recorded command, or `None` if the command was executed. [`crate::Graph::node_of`] checks
    /// that the node belongs to a graph.
    #[must_use]
    pub fn node(&self) -> Option<Node> {
        match &self.0 {
            EventKind::Driver(_) => None,
            EventKind::Node(event) => Some(event.node),
        }
    }

    /// Flushes the queue of the command, and blocks until the command is complete.
    ///
    /// # Errors
    /// [`RecordError::Recorded`]; [`SubmitError::OwnQueue`](crate::SubmitError::OwnQueue) from a host task, if the
    /// command comes after the submission of that task; [`crate::DriverError`] when the command failed, or when the
    /// driver does not report its status.
    #[doc(alias = "clWaitForEvents")]
    pub fn wait(&self) -> Result<()> {
        let event = self.driver("waited for")?;
        let _waiting = self.begin_wait()?;
        Ok(event.wait_on_any_queue()?)
    }

    /// Checks a wait that begins now. A host task must not wait for a command that comes after its own submission.
    pub(super) fn begin_wait(&self) -> Result<WaitGuard> {
        let event = self.driver("waited for")?;
        if !reentrancy::in_task() || !event.may_run() {
            return Ok(WaitGuard::begin(&Gates::default())?);
        }
        if reentrancy::holds_a_queue() {
            reentrancy::check_queue(event.queue()?)?;
        }
        Ok(WaitGuard::begin(&event.gates())?)
    }

    /// Returns the progress of the command.
    ///
    /// It does not flush the queue. Call [`Queue::flush`](crate::Queue::flush) once before polling.
    ///
    /// # Errors
    /// [`RecordError::Recorded`]; [`crate::DriverError`] when the driver does not report the status.
    #[doc(alias = "CL_EVENT_COMMAND_EXECUTION_STATUS")]
    pub fn command_execution_status(&self) -> Result<ExecutionStatus> {
        Ok(match self.driver("asked for its status")?.status()? {
            CommandStatus::Waiting => ExecutionStatus::Waiting,
            CommandStatus::Running => ExecutionStatus::Running,
            CommandStatus::Complete => ExecutionStatus::Complete,
            CommandStatus::Failed(status) => ExecutionStatus::Failed(status),
        })
    }

    /// Returns when the command was enqueued, in nanoseconds of the device's clock.
    ///
    /// # Errors
    /// [`RecordError::Recorded`]; [`crate::DriverError`] with `CL_PROFILING_INFO_NOT_AVAILABLE` when the queue does not
    /// profile or the command is not complete. The other four methods for times return the same errors.
    pub fn profiling_command_queued(&self) -> Result<u64> {
        self.time(CL_PROFILING_COMMAND_QUEUED)
    }

    /// Returns when the command was submitted to the device, in nanoseconds.
    ///
    /// # Errors
    /// As [`profiling_command_queued`](Self::profiling_command_queued).
    pub fn profiling_command_submit(&self) -> Result<u64> {
        self.time(CL_PROFILING_COMMAND_SUBMIT)
    }

    /// Returns when the command started, in nanoseconds.
    ///
    /// # Errors
    /// As [`profiling_command_queued`](Self::profiling_command_queued).
    pub fn profiling_command_start(&self) -> Result<u64> {
        self.time(CL_PROFILING_COMMAND_START)
    }

    /// Returns when the command ended, in nanoseconds.
    ///
    /// # Errors
    /// As [`profiling_command_queued`](Self::profiling_command_queued).
    pub fn profiling_command_end(&self) -> Result<u64> {
        self.time(CL_PROFILING_COMMAND_END)
    }

    /// Returns when the command and the commands that it enqueued itself ended, in nanoseconds (OpenCL 2.0).
    ///
    /// # Errors
    /// As [`profiling_command_queued`](Self::profiling_command_queued).
    pub fn profiling_command_complete(&self) -> Result<u64> {
        self.time(CL_PROFILING_COMMAND_COMPLETE)
    }

    fn time(&self, which: cl_profiling_info) -> Result<u64> {
        Ok(self.driver("asked for its times")?.time(which)?)
    }

    pub(crate) fn driver(&self, what: &'static str) -> Result<&DriverEvent, RecordError> {
        match &self.0 {
            EventKind::Driver(event) => Ok(event),
            EventKind::Node(event) => Err(RecordError::Recorded { node: event.node, what }),
        }
    }
}

impl From<DriverEvent> for Event {
    fn from(event: DriverEvent) -> Self {
        Self(EventKind::Driver(event))
    }
}

impl Nodes for Event {
    fn for_each_node(&self, mut each: impl FnMut(Option<Node>)) {
        each(self.node());
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            EventKind::Driver(event) => event.fmt(f),
            EventKind::Node(event) => write!(f, "Event({})", event.node),
        }
    }
}
