//! What a submission brings of its own: result slots, inputs, external events, and a log.

use std::sync::Arc;

use crate::cl::completion::gates::{self, GateId, Gates};
use crate::cl::memory::host::Slot;
use crate::error::{Error, SubmitError};
use crate::exec::submit::blocker::Blocker;
use crate::exec::submit::submission_state::Inputs;
use crate::exec::submit::user_event::ReservedUserEvent;
use crate::handles::Port;
use crate::report::profile::Log;

/// What a submission brings of its own: slots, events, inputs.
#[derive(Debug, Default)]
pub(in crate::exec) struct SubmissionBindings {
    /// By result.
    pub(in crate::exec) slots: Vec<Arc<Slot>>,
    pub(in crate::exec) inputs: Inputs,
    /// The external events, by node.
    pub(in crate::exec) events: Vec<External>,
    /// Where times are recorded. None if nothing is profiled.
    pub(in crate::exec) log: Option<Arc<Log>>,
}

/// By read, in the order of reads. None if there are no reads.
pub(in crate::exec) type Results = Option<Arc<[HeldResult]>>;

/// The memory of a read's result.
pub(in crate::exec) struct HeldResult {
    pub(in crate::exec) port: Port,
    /// The flow of the read: 0, or that of the body that it is in.
    pub(in crate::exec) flow: u32,
    pub(in crate::exec) slot: Arc<Slot>,
}

/// The event of a node in a submission.
#[derive(Debug)]
pub(in crate::exec) enum External {
    /// The event to wait for. None if something waits for it already, or if it is complete.
    Wait(Option<Blocker>),
    /// The event to complete. None after it was completed.
    Signal(Option<ReservedUserEvent>),
}

impl External {
    /// Returns the event that the node completes.
    pub(in crate::exec) fn signal(&self) -> Option<&ReservedUserEvent> {
        if let Self::Signal(event) = self { event.as_ref() } else { None }
    }

    /// Returns what the node waits for.
    pub(in crate::exec) fn blocker(&self) -> Option<&Blocker> {
        if let Self::Wait(blocker) = self { blocker.as_ref() } else { None }
    }
}

impl SubmissionBindings {
    /// Returns the gates of the events that the submission completes, with the numbers of their nodes.
    pub(in crate::exec) fn signals(&self) -> impl Iterator<Item = (usize, GateId)> {
        self.events.iter().enumerate().filter_map(|(at, event)| Some((at, event.signal()?.gate()?)))
    }

    /// A submission with this gate is to complete its events: what waits for one of them waits for the submission. It begins
    /// after some gates, and `is_after` says whether the first of two nodes is after the second. Returns an error if a
    /// host task waits for an event that is completed only after that task.
    pub(in crate::exec) fn complete_by(
        &self,
        submission: Option<GateId>,
        begin: &Gates,
        is_after: impl Fn(usize, usize) -> bool,
    ) -> Result<(), SubmitError> {
        let Some(submission) = submission else { return Ok(()) };
        let mut events: Vec<(usize, GateId, Gates)> =
            self.signals().map(|(at, gate)| (at, gate, begin.clone())).collect();
        if events.is_empty() {
            return Ok(());
        }
        let waits = self.events.iter().enumerate().filter_map(|(at, event)| Some((at, event.blocker()?.gates())));
        for (wait, gates) in waits.filter(|(_, gates)| !gates.is_empty()) {
            let later = events.iter_mut().filter(|(signal, ..)| is_after(*signal, wait));
            later.for_each(|(.., after)| after.extend(&gates));
        }
        let events: Vec<(GateId, Gates)> = events.into_iter().map(|(_, gate, after)| (gate, after)).collect();
        if gates::complete_by(&events, submission) { Ok(()) } else { Err(SubmitError::UserEventAwaited) }
    }

    /// Fails the events that are not complete yet.
    pub(in crate::exec) fn fail_events(&mut self, error: &Error) {
        for event in self.events.drain(..) {
            if let External::Signal(Some(reserved)) = event {
                reserved.end(Err(error.clone()));
            }
        }
    }
}
