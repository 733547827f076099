//! What a deferred submission runs, and what it holds until it has ended.

use crate::cl::objects::event::{DriverEvent, Gate};
use crate::error::Result;
use crate::exec::submit::bindings::SubmissionBindings;
use crate::exec::submit::snapshot::Snapshot;
use crate::exec::submit::submission_state::{RetainedMemory, SubmissionState};

/// What a deferred submission runs, and what it holds.
pub(in crate::exec) struct Work {
    pub(in crate::exec) snapshot: Snapshot,
    /// Complete when the caller's queue would have let the submission start.
    pub(in crate::exec) entered: DriverEvent,
    pub(in crate::exec) bindings: SubmissionBindings,
    pub(in crate::exec) retained: RetainedMemory,
    /// Opens when it is dropped.
    pub(in crate::exec) gate: Gate,
}

impl Work {
    /// Ends the submission: commands that the caller enqueued after it may run. Everything else is released only then,
    /// because that may run code of the program.
    pub(in crate::exec) fn end(self, state: &SubmissionState, outcome: Result<()>) {
        let Self { snapshot, entered, mut bindings, retained, gate } = self;
        let failure = outcome.as_ref().err().cloned();
        // Whoever waits may submit again at once, and needs the memory for results.
        bindings.slots.clear();
        // Whoever sees the failure also sees it at the events that the submission would have completed.
        if let Some(failure) = failure {
            bindings.fail_events(&failure);
        }
        state.finish(outcome, Some(gate));
        drop((snapshot, entered, bindings, retained));
    }
}
