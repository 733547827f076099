//! Calls one after the other, where each may bring the next: no recursion over a chain of submissions.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
    guarded(first);
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
        guarded(next);
    }
}

/// Those that wait must be called, whatever one of them does: a waker is users' code.
fn guarded(call: Call) {
    if catch_unwind(AssertUnwindSafe(call)).is_err() {
        log::error!("a waker panicked at the end of a submission; the submission itself is unaffected");
    }
}
