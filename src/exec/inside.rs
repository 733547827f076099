//! What runs on a thread just now: users' functions, in which not everything may be called.

use std::cell::RefCell;
use std::sync::Arc;

use super::submission::State;
use crate::error::SubmitError;

/// A function of the user's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// A host task, of the submission with this address.
    Task(usize),
    /// The function of a native command: locks are held.
    Native,
}

thread_local! {
    /// The functions that run on this thread, the innermost last.
    static WITHIN: RefCell<Vec<Within>> = const { RefCell::new(Vec::new()) };
}

/// A user's function runs on this thread, as long as this lives.
pub(super) struct Inside(());

impl Inside {
    /// A host task of a submission.
    pub(super) fn task(state: &Arc<State>) -> Self {
        Self::new(Within::Task(Arc::as_ptr(state).addr()))
    }

    /// What enqueues or records for a native command.
    pub(super) fn native_command() -> Self {
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

fn is_within(what: Within) -> bool {
    WITHIN.try_with(|all| all.borrow().contains(&what)).unwrap_or(false)
}

/// Says no to who would take locks that are held.
pub(super) fn check_call() -> Result<(), SubmitError> {
    let is_native = is_within(Within::Native);
    if is_native { Err(SubmitError::InsideNativeCommand) } else { Ok(()) }
}

/// Says no to who would wait for himself, or with locks held.
pub(super) fn check_wait(state: &Arc<State>) -> Result<(), SubmitError> {
    check_call()?;
    let is_own = is_within(Within::Task(Arc::as_ptr(state).addr()));
    if is_own { Err(SubmitError::OwnSubmission) } else { Ok(()) }
}
