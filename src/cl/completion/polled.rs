//! Waits of host tasks by futures.
//!
//! Nobody can see whether who polls a future is going to sleep until it is ready. So a future that a host task has polled
//! counts as a wait of that task, until it is ready, is dropped, is polled elsewhere, or the function of the task returns.
//!
//! Nor can anybody see for whom a future is polled: an executor may poll those of other tasks too. So a poll that would close
//! a circle counts as no wait at first, and is an error if the circle is there when the future is polled again later.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use crate::cl::completion::gates::Gates;
use crate::cl::completion::reentrancy::{self, CallId, ReentrancyGuard};
use crate::cl::completion::workers::{self, GRACE, WaitGuard};
use crate::error::SubmitError;

/// The waits of futures that host tasks have polled, by the call of the task's function and the number of the wait.
static WAITS: Mutex<BTreeMap<(CallId, usize), WaitGuard>> = Mutex::new(BTreeMap::new());

/// How many have ever been. Mostly none: then nobody takes the lock.
static EVER: AtomicUsize = AtomicUsize::new(0);

fn waits() -> MutexGuard<'static, BTreeMap<(CallId, usize), WaitGuard>> {
    WAITS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The wait of a future.
#[derive(Debug, Default)]
pub(crate) struct FutureWait {
    /// The key of the wait, if it has one.
    key: Option<(CallId, usize)>,
    /// Since when each poll would have closed a circle.
    circle: Option<Instant>,
}

impl FutureWait {
    /// The future, which is not ready, is polled on this thread. Returns an error if a host task runs here and must not
    /// wait for what comes after the gates.
    pub(crate) fn polled(&mut self, gates: impl FnOnce() -> Gates) -> Result<(), SubmitError> {
        let call = reentrancy::call_of_task();
        if self.key.map(|(before, _)| before) == call {
            self.circle = None;
            return Ok(());
        }
        self.end();
        if let Some(call) = call {
            let wait = WaitGuard::polled(&gates())?;
            let key = (call, EVER.fetch_add(1, Ordering::Relaxed));
            waits().insert(key, wait);
            self.key = Some(key);
        }
        self.circle = None;
        Ok(())
    }

    /// A poll must not wait. Returns the error if that is final. Otherwise the future is to be polled again: returns whether
    /// this is new, so that the caller sees to it that [`soon`] wakes who polls.
    pub(crate) fn refused(&mut self, error: SubmitError) -> Result<bool, SubmitError> {
        self.end();
        if !matches!(error, SubmitError::OwnSubmission | SubmitError::OwnQueue) {
            return Err(error);
        }
        match self.circle {
            Some(since) if since.elapsed() >= GRACE => Err(error),
            Some(_) => Ok(false),
            None => {
                self.circle = Some(Instant::now());
                Ok(true)
            }
        }
    }

    /// Ends the wait.
    pub(crate) fn end(&mut self) {
        if let Some(key) = self.key.take() {
            // Dropped without the lock.
            let wait = waits().remove(&key);
            drop(wait);
        }
    }
}

impl Drop for FutureWait {
    fn drop(&mut self) {
        self.end();
    }
}

type Run = Box<dyn FnOnce() + Send>;

/// What is done soon, and when. Each waits for the same time, so the first is due first.
static SOON: Mutex<VecDeque<(Instant, Run)>> = Mutex::new(VecDeque::new());

/// Does something short after [`GRACE`], on a thread of clgraph's own: a poll that is refused for now is refused for good
/// then.
pub(crate) fn soon(then: impl FnOnce() + Send + 'static) {
    let lock = || SOON.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = lock();
    all.push_back((Instant::now() + GRACE, Box::new(then)));
    let is_only = all.len() == 1;
    drop(all);
    if !is_only {
        // A thread waits for those before.
        return;
    }
    workers::run(move || {
        loop {
            let mut all = lock();
            let Some((until, _)) = all.front() else { return };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let next = all.pop_front();
                drop(all);
                next.into_iter().for_each(|(_, then)| then());
            } else {
                drop(all);
                thread::sleep(left);
            }
        }
    });
}

/// The function of a host task runs on this thread, until this is dropped.
pub(crate) struct TaskGuard {
    _inside: ReentrancyGuard,
}

impl TaskGuard {
    pub(crate) fn new(inside: ReentrancyGuard) -> Self {
        Self { _inside: inside }
    }
}

impl Drop for TaskGuard {
    /// Futures that the function has polled, and that still are, do not hold it up any more.
    fn drop(&mut self) {
        if EVER.load(Ordering::Relaxed) > 0
            && let Some(call) = reentrancy::call_of_task()
        {
            let mut waits = waits();
            let keys: Vec<_> = waits.range((call, 0)..(call + 1, 0)).map(|(key, _)| *key).collect();
            let ended: Vec<_> = keys.iter().filter_map(|key| waits.remove(key)).collect();
            drop(waits);
            drop(ended);
        }
    }
}
