//! What a submission can wait for, and the state that each of these is in.

use std::fmt;
use std::sync::Arc;

use crate::cl::objects::context::Context;
use crate::cl::objects::event::{COMMAND, CommandStatus, DriverEvent};
use crate::cl::objects::queue::DriverQueue;
use crate::error::{DriverError, Error, RecordError, Result, SubmitError};
use crate::exec::submit::blocker::{Blocker, Prerequisites};
use crate::exec::submit::submission::Submission;
use crate::exec::submit::submission_state::{Stage, SubmissionState};
use crate::exec::submit::user_event::UserEvent;
use crate::handles::Node;
use crate::record::{self, Event, NodeEvent};

/// Something that a submission can wait for: a [`Submission`], an [`Event`], a [`UserEvent`], or an
/// `opencl3` event. The trait is sealed: other crates cannot implement it.
pub trait WaitFor: sealed::WaitFor {
    /// Returns what to wait for.
    ///
    /// # Errors
    /// [`DriverError`] when the driver refuses to retain an event.
    fn dependency(&self) -> Result<Dependency>;
}

mod sealed {
    pub trait WaitFor {}
    impl WaitFor for super::Submission {}
    impl WaitFor for super::Event {}
    impl WaitFor for super::UserEvent {}
    impl WaitFor for opencl3::event::Event {}
}

/// What a submission is to wait for, as [`WaitFor`] returns it.
#[must_use]
#[derive(Clone, Debug)]
pub struct Dependency(pub(in crate::exec) Kind);

#[derive(Clone)]
pub(in crate::exec) enum Kind {
    Event(DriverEvent),
    Submission(Arc<SubmissionState>),
    /// The event of work that was recorded into a graph.
    Node(NodeEvent),
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => event.fmt(f),
            Self::Submission(state) => Submission::new(Arc::clone(state), None).fmt(f),
            Self::Node(event) => event.fmt(f),
        }
    }
}

impl Dependency {
    /// The submission, or the user event, whose end is waited for.
    pub(in crate::exec) fn state(&self) -> Option<Arc<SubmissionState>> {
        if let Kind::Submission(state) = &self.0 { Some(Arc::clone(state)) } else { None }
    }
}

impl WaitFor for Submission {
    fn dependency(&self) -> Result<Dependency> {
        Ok(Dependency(match self.parts() {
            Ok(state) => Kind::Submission(Arc::clone(state)),
            Err(node) => Kind::Node(node.clone()),
        }))
    }
}

impl WaitFor for UserEvent {
    fn dependency(&self) -> Result<Dependency> {
        Ok(Dependency(Kind::Submission(Arc::clone(self.state()))))
    }
}

impl WaitFor for Event {
    fn dependency(&self) -> Result<Dependency> {
        Ok(Dependency(match &self.0 {
            record::EventKind::Driver(event) => Kind::Event(event.clone()),
            record::EventKind::Node(node) => Kind::Node((**node).clone()),
        }))
    }
}

impl WaitFor for opencl3::event::Event {
    fn dependency(&self) -> Result<Dependency> {
        Event::from_opencl3(self)?.dependency()
    }
}

/// The state of something that a submission is to wait for.
pub(in crate::exec) enum DependencyState {
    Complete,
    Failed(Error),
    /// It belongs to another context.
    Elsewhere,
    /// A submission whose last command is this one.
    Enqueued {
        queue: DriverQueue,
        last: DriverEvent,
        state: Arc<SubmissionState>,
    },
    /// It may still fail, and so may whatever it waits for, which cannot be queried.
    Pending(Blocker),
    /// It stands for a node.
    Recorded(Node),
}

/// Finds the state of a dependency.
pub(in crate::exec) fn query(context: &Context, dependency: Dependency) -> Result<DependencyState> {
    Ok(match dependency.0 {
        Kind::Node(event) => DependencyState::Recorded(event.node),
        Kind::Event(event) => {
            if !event.is_of(context)? {
                return Ok(DependencyState::Elsewhere);
            }
            match event.status()? {
                CommandStatus::Complete => DependencyState::Complete,
                CommandStatus::Failed(status) => DependencyState::Failed(DriverError::new(COMMAND, status).into()),
                _ => {
                    // Some drivers begin nothing before a flush.
                    event.flush_queue()?;
                    DependencyState::Pending(Blocker::Event(event))
                }
            }
        }
        Kind::Submission(state) if state.context != *context => DependencyState::Elsewhere,
        Kind::Submission(state) => match state.stage()? {
            Stage::Done(Ok(())) => DependencyState::Complete,
            Stage::Done(Err(cause)) => DependencyState::Failed(cause),
            Stage::Enqueued { queue, last, .. } => DependencyState::Enqueued { queue, last, state },
            Stage::Deferred | Stage::Staged(_) => DependencyState::Pending(Blocker::Success(state)),
        },
    })
}

/// Finds the state of each event: complete events are dropped, a failed event is an error.
pub(in crate::exec) fn sort(context: &Context, dependencies: Vec<Result<Dependency>>) -> Result<Prerequisites> {
    let mut sorted = Prerequisites::NONE;
    for (index, dependency) in dependencies.into_iter().enumerate() {
        match query(context, dependency?)? {
            // The check for recording has already rejected such events.
            DependencyState::Recorded(node) => return Err(RecordError::RecordingEnded { index, node }.into()),
            DependencyState::Elsewhere => return Err(SubmitError::OtherContext { index }.into()),
            DependencyState::Failed(cause) => {
                return Err(SubmitError::EventFailed { index, cause: Box::new(cause) }.into());
            }
            DependencyState::Complete => {}
            DependencyState::Enqueued { queue, last, .. } => {
                queue.flush()?;
                sorted.waits.push(last);
            }
            DependencyState::Pending(blocker) => sorted.blockers.push(blocker),
        }
    }
    Ok(sorted)
}
