//! Knows which functions of users run on the current thread. Inside such a function, some calls would deadlock and are
//! refused.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cl::completion::gates::{By, Circle, GateId, Gates, Wait};
use crate::error::SubmitError;

/// The number of a call of the function of a host task. No two calls have the same.
pub(in crate::cl) type CallId = u64;

/// Returns the gates of the user events that a submission completes after a host task. It is called only if the task waits.
pub(crate) type LaterEvents = Arc<dyn Fn() -> Gates + Send + Sync>;

/// A function of the user that clgraph calls.
enum UserFunction {
    /// A host task.
    Task {
        /// The address of the submission, which identifies it.
        submission: usize,
        /// The number of this call of its function.
        call: CallId,
        /// The C handle of the in-order queue that the submission holds until it has ended.
        queue: Option<usize>,
        /// The gate that the submission opens when it has ended.
        gate: Option<GateId>,
        /// None if it completes no events.
        later: Option<LaterEvents>,
    },
    /// A function that runs once at a time, with the gate of the call.
    Function(GateId),
    /// The function of a native command. clgraph holds locks while it runs.
    Native,
}

thread_local! {
    /// The functions that run on this thread, innermost last.
    static RUNNING: RefCell<Vec<UserFunction>> = const { RefCell::new(Vec::new()) };
}

impl UserFunction {
    /// Returns the gate that opens only after the function has returned.
    fn gate(&self) -> Option<GateId> {
        match self {
            Self::Task { gate, .. } => *gate,
            Self::Function(gate) => Some(*gate),
            Self::Native => None,
        }
    }
}

/// Marks that a function of the user runs on this thread, until the guard is dropped.
pub(crate) struct ReentrancyGuard(());

impl ReentrancyGuard {
    /// Enters a host task of a submission that holds a queue.
    pub(crate) fn task(
        submission: usize,
        queue: Option<usize>,
        gate: Option<GateId>,
        later: Option<LaterEvents>,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let call = NEXT.fetch_add(1, Ordering::Relaxed);
        Self::new(UserFunction::Task { submission, call, queue, gate, later })
    }

    /// Enters a function that runs once at a time.
    pub(in crate::cl) fn function(gate: GateId) -> Self {
        Self::new(UserFunction::Function(gate))
    }

    /// Enters the function that enqueues or records a native command.
    pub(crate) fn native_command() -> Self {
        Self::new(UserFunction::Native)
    }

    fn new(within: UserFunction) -> Self {
        // A thread that is ending has no thread-local storage, so its calls are not checked.
        let _ = RUNNING.try_with(|all| all.borrow_mut().push(within));
        Self(())
    }
}

impl Drop for ReentrancyGuard {
    fn drop(&mut self) {
        let _ = RUNNING.try_with(|all| all.borrow_mut().pop());
    }
}

fn any(is_it: impl FnMut(&UserFunction) -> bool) -> bool {
    RUNNING.try_with(|all| all.borrow().iter().any(is_it)).unwrap_or(false)
}

/// Returns whether no function of a user runs on this thread, which is the usual case.
#[inline]
pub(crate) fn is_outside() -> bool {
    RUNNING.try_with(|all| all.borrow().is_empty()).unwrap_or(true)
}

/// Returns an error inside a native command, where the call would take locks that are already held.
pub(crate) fn check_call() -> Result<(), SubmitError> {
    if any(|within| matches!(within, UserFunction::Native)) { Err(SubmitError::InsideNativeCommand) } else { Ok(()) }
}

/// Returns an error inside a task of the submission that the call would wait for.
pub(crate) fn check_wait(of: usize) -> Result<(), SubmitError> {
    check_call()?;
    let is_own = any(|within| matches!(within, UserFunction::Task { submission, .. } if *submission == of));
    if is_own { Err(SubmitError::OwnSubmission) } else { Ok(()) }
}

/// Returns whether a task runs on this thread.
pub(crate) fn in_task() -> bool {
    any(|within| matches!(within, UserFunction::Task { .. }))
}

/// Returns which call of the function of a task runs on this thread, innermost, if one does.
pub(in crate::cl) fn call_of_task() -> Option<CallId> {
    let call = |within: &UserFunction| if let UserFunction::Task { call, .. } = within { Some(*call) } else { None };
    RUNNING.try_with(|all| all.borrow().iter().rev().find_map(call)).unwrap_or_default()
}

/// Returns an error inside a task if what the call would wait for comes after gates that open only after the submission
/// of that task, or after a function that runs once at a time and runs here.
pub(crate) fn check_gates(gates: &Gates) -> Result<(), SubmitError> {
    let is_own = |within: &UserFunction| within.gate().is_some_and(|gate| gates.come_after(gate));
    if !gates.is_empty() && any(is_own) { Err(SubmitError::OwnSubmission) } else { Ok(()) }
}

/// Begins a wait of the tasks of this thread for gates, until the result is dropped. Returns the circle if these gates
/// open only after the submission of such a task.
pub(in crate::cl) fn begin_wait(gates: &Gates, by: By) -> Result<Wait, Circle> {
    let own = RUNNING.try_with(|all| all.borrow().iter().filter_map(UserFunction::gate).collect());
    let later =
        |within: &UserFunction| if let UserFunction::Task { later, .. } = within { later.clone() } else { None };
    let later = RUNNING.try_with(|all| all.borrow().iter().filter_map(later).collect::<Vec<_>>());
    let mut events = Gates::default();
    later.iter().flatten().for_each(|later| events.extend(&later()));
    Wait::begin(own.unwrap_or_default(), &events, gates, by)
}

/// Returns whether a task runs on this thread whose submission holds a queue.
pub(crate) fn holds_a_queue() -> bool {
    any(|within| matches!(within, UserFunction::Task { queue: Some(_), .. }))
}

/// Returns an error inside a task whose submission holds the queue, given by its raw handle, that the call would wait
/// for. A task begins after all earlier commands of the queue have ended, so all commands that remain are after the
/// submission, and the wait would never end.
pub(crate) fn check_queue(waited: usize) -> Result<(), SubmitError> {
    let is_held = any(|within| matches!(within, UserFunction::Task { queue: Some(queue), .. } if *queue == waited));
    if is_held { Err(SubmitError::OwnQueue) } else { Ok(()) }
}
