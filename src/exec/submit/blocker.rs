//! What has to be over before a submission goes on.

use std::fmt;
use std::sync::Arc;

use crate::cl::commands::enqueue::Waits;
use crate::cl::completion::event_reaper;
use crate::cl::completion::gates::Gates;
use crate::cl::objects::event::DriverEvent;
use crate::error::{Error, Result};
use crate::exec::submit::submission_state::SubmissionState;

/// What has to be over first.
pub(in crate::exec) enum Blocker {
    /// An event that must not fail.
    Event(DriverEvent),
    /// An event that must have ended, well or not.
    Through(DriverEvent),
    /// A submission that must succeed.
    Success(Arc<SubmissionState>),
    /// A submission that must have ended, well or not.
    Order(Arc<SubmissionState>),
}

/// What a submission waits for, by how it is waited for.
pub(in crate::exec) struct Prerequisites {
    /// In the driver's wait list.
    pub(in crate::exec) waits: Waits,
    /// By the event reaper.
    pub(in crate::exec) blockers: Vec<Blocker>,
}

impl Prerequisites {
    pub(in crate::exec) const NONE: Self = Self { waits: Waits::NONE, blockers: Vec::new() };
}

impl Blocker {
    /// Calls back when it is over, perhaps at once: the caller holds no lock.
    pub(in crate::exec) fn when_over(self, then: impl FnOnce(Result<()>) + Send + 'static) {
        match self {
            Self::Event(event) => event_reaper::when_done(event, move |outcome| then(outcome.map_err(Error::from))),
            Self::Through(event) => event_reaper::when_done(event, move |_| then(Ok(()))),
            Self::Success(state) => state.when_over(then),
            Self::Order(state) => state.when_over(move |_| then(Ok(()))),
        }
    }

    /// Returns the gates that have to open before it can be over.
    pub(in crate::exec) fn gates(&self) -> Gates {
        match self {
            Self::Event(event) | Self::Through(event) => event.gates(),
            Self::Success(state) | Self::Order(state) => state.gates(),
        }
    }
}

impl fmt::Debug for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Event(_) => "an event",
            Self::Through(_) => "an event's end",
            Self::Success(_) => "a submission's success",
            Self::Order(_) => "a submission's end",
        })
    }
}
