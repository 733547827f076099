//! What runs on a thread just now: users' functions, in which not everything may be called.

use std::cell::RefCell;

use crate::error::SubmitError;

/// A function of the user's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// A host task.
    Task {
        /// The submission, by an address that is its own.
        submission: usize,
        /// The in-order queue that the submission holds until it has ended, by its C handle.
        queue: Option<usize>,
    },
    /// The function of a native command: locks are held.
    Native,
}

thread_local! {
    /// The functions that run on this thread, the innermost last.
    static WITHIN: RefCell<Vec<Within>> = const { RefCell::new(Vec::new()) };
}

/// A user's function runs on this thread, as long as this lives.
pub(crate) struct Inside(());

impl Inside {
    /// A host task of a submission, which holds a queue.
    pub(crate) fn task(submission: usize, queue: Option<usize>) -> Self {
        Self::new(Within::Task { submission, queue })
    }

    /// What enqueues or records for a native command.
    pub(crate) fn native_command() -> Self {
        Self::new(Within::Native)
    }

    fn new(within: Within) -> Self {
        // A thread that is about to end has none: what is called there is not looked after.
        let _ = WITHIN.try_with(|all| all.borrow_mut().push(within));
        Self(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = WITHIN.try_with(|all| all.borrow_mut().pop());
    }
}

fn any(is_it: impl FnMut(&Within) -> bool) -> bool {
    WITHIN.try_with(|all| all.borrow().iter().any(is_it)).unwrap_or(false)
}

/// Says no to who would take locks that are held.
pub(crate) fn check_call() -> Result<(), SubmitError> {
    if any(|within| *within == Within::Native) { Err(SubmitError::InsideNativeCommand) } else { Ok(()) }
}

/// Says no to who would wait for the submission that the running task belongs to.
pub(crate) fn check_wait(of: usize) -> Result<(), SubmitError> {
    check_call()?;
    let is_own = any(|within| matches!(within, Within::Task { submission, .. } if *submission == of));
    if is_own { Err(SubmitError::OwnSubmission) } else { Ok(()) }
}

/// Whether a task runs here whose submission holds a queue.
pub(crate) fn holds_a_queue() -> bool {
    any(|within| matches!(within, Within::Task { queue: Some(_), .. }))
}

/// Says no to who would wait for what is on the queue that the running task's own submission holds: all that is not over there is
/// behind the submission, because a task begins when all before is over. A raw handle.
pub(crate) fn check_queue(waited: usize) -> Result<(), SubmitError> {
    let is_held = any(|within| matches!(within, Within::Task { queue: Some(queue), .. } if *queue == waited));
    if is_held { Err(SubmitError::OwnQueue) } else { Ok(()) }
}
