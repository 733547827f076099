//! Waiting for a submission as a future.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll, Waker};

use super::submission::Submission;
use crate::error::Result;

impl IntoFuture for Submission {
    type Output = Result<()>;
    type IntoFuture = Completion;

    fn into_future(self) -> Completion {
        Completion { submission: self, waker: None }
    }
}

impl IntoFuture for &Submission {
    type Output = Result<()>;
    type IntoFuture = Completion;

    fn into_future(self) -> Completion {
        self.clone().into_future()
    }
}

/// A future that is ready when a submission has ended, with what [`Submission::wait`] would return.
///
/// ```
/// async fn run(executable: &clgraph::Executable, queue: &clgraph::Queue) -> clgraph::Result<()> {
///     executable.submit(queue)?.await
/// }
/// ```
#[derive(Debug)]
#[must_use = "futures do nothing unless they are awaited"]
pub struct Completion {
    submission: Submission,
    /// Whom to wake; another poll may bring another.
    waker: Option<Arc<Mutex<Waker>>>,
}

impl Future for Completion {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Result<()>> {
        let state = match self.submission.state("waited for") {
            Ok(state) => Arc::clone(state),
            Err(error) => return Poll::Ready(Err(error.into())),
        };
        if let Some(outcome) = state.outcome() {
            return Poll::Ready(outcome);
        }
        match &self.waker {
            Some(waker) => waker.lock().unwrap_or_else(PoisonError::into_inner).clone_from(task.waker()),
            None => {
                let waker = Arc::new(Mutex::new(task.waker().clone()));
                self.waker = Some(Arc::clone(&waker));
                state.when_over(move |_| waker.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref());
            }
        }
        // It may have ended between the look and the new waker.
        state.outcome().map_or(Poll::Pending, Poll::Ready)
    }
}
