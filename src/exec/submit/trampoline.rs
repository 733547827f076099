//! Runs calls one after another, where each call may add the next. So a long chain of submissions does not recurse.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::cl::completion::user_code::guarded;

type Call = Box<dyn FnOnce()>;

thread_local! {
    /// Calls that wait until the current call on this thread returns. None if no call runs.
    static CALLS: RefCell<Option<VecDeque<Call>>> = const { RefCell::new(None) };
}

/// Runs a call after those that run on this thread. If the end of one submission ends the next one, and so on, nothing
/// recurses.
pub(in crate::exec) fn run(call: Call) {
    let mut call = Some(call);
    let queued = CALLS.try_with(|calls| match &mut *calls.borrow_mut() {
        Some(waiting) => waiting.extend(call.take()),
        none => *none = Some(VecDeque::new()),
    });
    let Some(first) = call else { return };
    guarded(WHAT, first);
    // A thread that is about to end has no queue of calls.
    while queued.is_ok() {
        let next = CALLS.try_with(|calls| {
            let mut calls = calls.borrow_mut();
            let next = calls.as_mut().and_then(VecDeque::pop_front);
            if next.is_none() {
                *calls = None;
            }
            next
        });
        let Ok(Some(next)) = next else { return };
        guarded(WHAT, next);
    }
}

/// The calls that still wait must run, even if one of them panics.
const WHAT: &str = "clgraph (please report this)";
