//! Waits of host tasks by futures.
//!
//! Nobody can see whether who polls a future is going to sleep until it is ready. So a future that a host task has polled
//! counts as a wait of that task, until it is ready, is dropped, is polled elsewhere, or the function of the task returns.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cl::completion::gates::Gates;
use crate::cl::completion::reentrancy::{self, CallId, ReentrancyGuard};
use crate::cl::completion::workers::WaitGuard;
use crate::error::SubmitError;

/// The waits of futures that host tasks have polled, by the call of the task's function and the number of the wait.
static WAITS: Mutex<BTreeMap<(CallId, usize), WaitGuard>> = Mutex::new(BTreeMap::new());

/// How many have ever been. Mostly none: then nobody takes the lock.
static EVER: AtomicUsize = AtomicUsize::new(0);

fn waits() -> MutexGuard<'static, BTreeMap<(CallId, usize), WaitGuard>> {
    WAITS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The wait of a future, if it has one.
#[derive(Debug, Default)]
pub(crate) struct FutureWait(Option<(CallId, usize)>);

impl FutureWait {
    /// The future, which is not ready, is polled on this thread. Returns an error if a host task runs here and must not
    /// wait for what comes after the gates.
    pub(crate) fn polled(&mut self, gates: impl FnOnce() -> Gates) -> Result<(), SubmitError> {
        let call = reentrancy::call_of_task();
        if self.0.map(|(before, _)| before) == call {
            return Ok(());
        }
        self.end();
        if let Some(call) = call {
            let wait = WaitGuard::polled(&gates())?;
            let key = (call, EVER.fetch_add(1, Ordering::Relaxed));
            waits().insert(key, wait);
            self.0 = Some(key);
        }
        Ok(())
    }

    /// Ends the wait.
    pub(crate) fn end(&mut self) {
        if let Some(key) = self.0.take() {
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
