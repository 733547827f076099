//! Events: of commands that run, or standing for nodes that were recorded.

use std::fmt;

use opencl_sys::{
    CL_PROFILING_COMMAND_COMPLETE, CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_START,
    CL_PROFILING_COMMAND_SUBMIT, cl_event, cl_profiling_info,
};

use crate::cl::event::{DriverEvent, Progress};
use crate::cl::reentrancy;
use crate::error::{RecordError, Result, Status};
use crate::graph::{GraphRef, Node, Nodes};

/// What became of a command: an event of the driver, or, of a command that was recorded, the node that it became.
/// Cheap to clone: clones are the same event.
///
/// An event of a recorded command is a dependency of other work recorded into the same graph, and nothing else: there is
/// nothing to wait for or to ask, because nothing runs.
#[derive(Clone)]
pub struct Event(pub(crate) Kind);

#[derive(Clone)]
pub(crate) enum Kind {
    Driver(DriverEvent),
    /// Boxed, so that an event of the driver is not handed around with room for one of these.
    Node(Box<NodeEvent>),
}

/// A node that a recorded command became.
#[derive(Clone, Debug)]
pub(crate) struct NodeEvent {
    pub(crate) graph: GraphRef,
    pub(crate) node: Node,
}

/// Where a command has got to (`CL_EVENT_COMMAND_EXECUTION_STATUS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExecutionStatus {
    /// It is queued, or handed to the device and not started (`CL_QUEUED`, `CL_SUBMITTED`).
    Waiting,
    /// It has started (`CL_RUNNING`).
    Running,
    /// It is complete (`CL_COMPLETE`).
    Complete,
    /// It failed.
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
    /// The same event.
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Driver(one), Kind::Driver(other)) => one.raw() == other.raw(),
            (Kind::Node(one), Kind::Node(other)) => one.node == other.node,
            _ => false,
        }
    }
}

impl Eq for Event {}

impl Event {
    pub(crate) fn of_node(graph: GraphRef, node: Node) -> Self {
        Self(Kind::Node(Box::new(NodeEvent { graph, node })))
    }

    /// Wraps an `opencl3` event, which may be dropped before this one.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses to retain it.
    pub fn from_opencl3(event: &opencl3::event::Event) -> Result<Self> {
        Ok(Self(Kind::Driver(DriverEvent::from_opencl3(event)?)))
    }

    /// The same event for `opencl3`, with a reference of its own.
    ///
    /// # Errors
    /// [`RecordError::Recorded`]; [`crate::DriverError`] when the driver refuses to retain it.
    pub fn to_opencl3(&self) -> Result<opencl3::event::Event> {
        self.driver("given to opencl3")?.to_opencl3()
    }

    /// The C handle, valid while this object lives.
    ///
    /// # Errors
    /// [`RecordError::Recorded`].
    pub fn raw(&self) -> Result<cl_event> {
        Ok(self.driver("given to the driver")?.raw())
    }

    /// The node that it stands for, if it is of a recorded command. [`crate::Graph::node_of`] gives it for a graph.
    #[must_use]
    pub fn node(&self) -> Option<Node> {
        match &self.0 {
            Kind::Driver(_) => None,
            Kind::Node(event) => Some(event.node),
        }
    }

    /// Blocks until the command is complete. Its queue is flushed.
    ///
    /// # Errors
    /// [`RecordError::Recorded`]; [`SubmitError::OwnQueue`](crate::SubmitError::OwnQueue) from a host task whose submission it is
    /// behind; [`crate::DriverError`] when the command failed, or the driver does not tell.
    #[doc(alias = "clWaitForEvents")]
    pub fn wait(&self) -> Result<()> {
        self.check_wait()?;
        Ok(self.driver("waited for")?.wait_wherever()?)
    }

    /// Says no to a host task that would wait for what is behind its own submission.
    pub(super) fn check_wait(&self) -> Result<()> {
        let event = self.driver("waited for")?;
        if reentrancy::holds_a_queue() && event.may_run() {
            reentrancy::check_queue(event.queue()?)?;
        }
        Ok(())
    }

    /// Where the command has got to. It does not flush the queue: [`Queue::flush`](crate::Queue::flush) once before
    /// asking again and again.
    ///
    /// # Errors
    /// [`RecordError::Recorded`]; [`crate::DriverError`] when the driver does not tell.
    #[doc(alias = "CL_EVENT_COMMAND_EXECUTION_STATUS")]
    pub fn command_execution_status(&self) -> Result<ExecutionStatus> {
        Ok(match self.driver("asked for its status")?.progress()? {
            Progress::Waiting => ExecutionStatus::Waiting,
            Progress::Running => ExecutionStatus::Running,
            Progress::Complete => ExecutionStatus::Complete,
            Progress::Failed(status) => ExecutionStatus::Failed(status),
        })
    }

    /// When the command was enqueued, in nanoseconds of the device's clock.
    ///
    /// # Errors
    /// [`RecordError::Recorded`]; [`crate::DriverError`] with `CL_PROFILING_INFO_NOT_AVAILABLE` when the queue does not
    /// profile or the command is not complete. So for all five times.
    pub fn profiling_command_queued(&self) -> Result<u64> {
        self.time(CL_PROFILING_COMMAND_QUEUED)
    }

    /// When the command was handed to the device, in nanoseconds.
    ///
    /// # Errors
    /// As [`profiling_command_queued`](Self::profiling_command_queued).
    pub fn profiling_command_submit(&self) -> Result<u64> {
        self.time(CL_PROFILING_COMMAND_SUBMIT)
    }

    /// When the command started, in nanoseconds.
    ///
    /// # Errors
    /// As [`profiling_command_queued`](Self::profiling_command_queued).
    pub fn profiling_command_start(&self) -> Result<u64> {
        self.time(CL_PROFILING_COMMAND_START)
    }

    /// When the command ended, in nanoseconds.
    ///
    /// # Errors
    /// As [`profiling_command_queued`](Self::profiling_command_queued).
    pub fn profiling_command_end(&self) -> Result<u64> {
        self.time(CL_PROFILING_COMMAND_END)
    }

    /// When the command and what it enqueued itself ended, in nanoseconds (OpenCL 2.0).
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
            Kind::Driver(event) => Ok(event),
            Kind::Node(event) => Err(RecordError::Recorded { node: event.node, what }),
        }
    }
}

impl From<DriverEvent> for Event {
    fn from(event: DriverEvent) -> Self {
        Self(Kind::Driver(event))
    }
}

impl Nodes for Event {
    fn for_each_node(&self, each: &mut dyn FnMut(Option<Node>)) {
        each(self.node());
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Driver(event) => event.fmt(f),
            Kind::Node(event) => write!(f, "Event({})", event.node),
        }
    }
}
