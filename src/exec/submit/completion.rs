//! Waiting for a submission as a future.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context as TaskContext, Poll};

use crate::cl::completion::polled::{self, FutureWait};
use crate::cl::completion::user_code::guarded;
use crate::error::Result;
use crate::exec::submit::submission::Submission;

impl IntoFuture for Submission {
    type Output = Result<()>;
    type IntoFuture = SubmissionFuture;

    fn into_future(self) -> SubmissionFuture {
        SubmissionFuture { submission: self, number: None, wait: FutureWait::default() }
    }
}

impl IntoFuture for &Submission {
    type Output = Result<()>;
    type IntoFuture = SubmissionFuture;

    fn into_future(self) -> SubmissionFuture {
        self.clone().into_future()
    }
}

/// A future that completes when a submission has ended, with what [`Submission::wait`] would return.
///
/// In a host task, a poll counts as a wait, with the same errors. It counts until the future is ready or dropped, is polled
/// elsewhere, or the function of the task returns; meanwhile other tasks cannot wait for this one if it waits for them. So a
/// task that needs only the first of several futures counts as waiting for all of them: drop those that it does not need any
/// more, or use [`Submission::wait_for`], for which nobody is refused.
///
/// A poll that would close a circle is no error at once, because an executor may poll for others: the future wakes who polls it 2 s
/// later, and a poll that finds the circle then is ready with [`SubmitError::OwnSubmission`](crate::SubmitError::OwnSubmission) or
/// [`SubmitError::OwnQueue`](crate::SubmitError::OwnQueue).
///
/// Wakers are called on threads of clgraph's own, so they may block. There are up to 2 048 such threads: if as many wakers
/// block, others are called when one returns. A warning says so, once for a process.
///
/// ```
/// async fn run(executable: &clgraph::Executable, queue: &clgraph::Queue) -> clgraph::Result<()> {
///     executable.submit(queue)?.await
/// }
/// ```
#[must_use = "futures do nothing unless they are awaited"]
pub struct SubmissionFuture {
    submission: Submission,
    /// The number under which the submission keeps the future's waker. None before the first poll.
    number: Option<u64>,
    /// The wait of the host task that polled it last.
    wait: FutureWait,
}

impl Future for SubmissionFuture {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Result<()>> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let state = match self.submission.state("waited for") {
            Ok(state) => Arc::clone(state),
            Err(error) => return Poll::Ready(Err(error.into())),
        };
        if let Some(outcome) = state.outcome() {
            self.wait.end();
            return Poll::Ready(outcome);
        }
        // Whoever polls in a host task is going to wait.
        let begun = state.check_wait().and_then(|()| self.wait.polled(|| state.gates()));
        let is_circle = match begun.map_or_else(|error| self.wait.refused(error), |()| Ok(false)) {
            Ok(is_new) => is_new,
            Err(error) => return Poll::Ready(Err(error.into())),
        };
        let number = *self.number.get_or_insert_with(|| NEXT.fetch_add(1, Ordering::Relaxed));
        state.awaken(number, task.waker());
        if is_circle {
            let state = Arc::downgrade(&state);
            polled::soon(move || state.upgrade().into_iter().for_each(|state| state.rouse(number)));
        }
        // The submission may have ended between the query and the new waker.
        let Some(outcome) = state.outcome() else { return Poll::Pending };
        self.wait.end();
        Poll::Ready(outcome)
    }
}

impl Drop for SubmissionFuture {
    fn drop(&mut self) {
        if let (Some(number), Ok(state)) = (self.number, self.submission.state("waited for")) {
            // A waker of the program may panic in its own drop.
            guarded("the drop of a waker", || state.forget_waker(number));
        }
    }
}

impl fmt::Debug for SubmissionFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SubmissionFuture").field(&self.submission).finish()
    }
}
