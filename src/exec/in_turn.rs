//! Calls one after the other, where each may bring the next: no recursion over a chain of submissions.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::cl::user_code::guarded;

type Call = Box<dyn FnOnce()>;

thread_local! {
    /// Calls that wait for one on this thread to return. None where there is none.
    static CALLS: RefCell<Option<VecDeque<Call>>> = const { RefCell::new(None) };
}

/// Calls, behind those that are under way on this thread: where one submission's end is that of the next, and so on, nothing
/// recurses.
pub(super) fn in_turn(call: Call) {
    let mut call = Some(call);
    let queued = CALLS.try_with(|calls| match &mut *calls.borrow_mut() {
        Some(waiting) => waiting.extend(call.take()),
        none => *none = Some(VecDeque::new()),
    });
    let Some(first) = call else { return };
    guarded(WHAT, first);
    // A thread that is about to end has nowhere to queue.
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

/// Those that wait must be called, whatever one of them does.
const WHAT: &str = "clgraph (please report it)";
