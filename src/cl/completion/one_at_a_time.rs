//! Functions of the program that run once at a time, although several submissions may call them.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::cl::completion::gates::{self, GateId, Gates};
use crate::cl::completion::reentrancy::ReentrancyGuard;
use crate::cl::completion::workers::WaitGuard;
use crate::error::SubmitError;

/// A function of the program, which is called once at a time.
///
/// A call is a gate for those that wait for its end. So where the function waits for a submission whose task waits for
/// the function, one of both waits is refused.
pub(crate) struct OneAtATime<F: ?Sized> {
    /// The gate of the call that runs.
    running: Mutex<Option<GateId>>,
    ended: Condvar,
    /// Nobody ever waits for this lock.
    function: Mutex<F>,
}

/// A call that runs, until this is dropped.
struct Call<'a, F: ?Sized> {
    of: &'a OneAtATime<F>,
    gate: GateId,
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<F> OneAtATime<F> {
    pub(crate) fn new(function: F) -> Self {
        Self { running: Mutex::new(None), ended: Condvar::new(), function: Mutex::new(function) }
    }
}

impl<F: ?Sized> OneAtATime<F> {
    /// Waits until nobody else calls the function, and calls it. Returns an error if another call runs that waits for the
    /// task of this thread.
    pub(crate) fn call<R>(&self, call: impl FnOnce(&mut F) -> R) -> Result<R, SubmitError> {
        let begun = self.begin()?;
        let _within = ReentrancyGuard::function(begun.gate);
        Ok(call(&mut lock(&self.function)))
    }

    fn begin(&self) -> Result<Call<'_, F>, SubmitError> {
        loop {
            let mut running = lock(&self.running);
            let Some(other) = *running else {
                let gate = gates::number();
                gates::close(gate, Gates::default());
                *running = Some(gate);
                return Ok(Call { of: self, gate });
            };
            drop(running);
            // This may take a while: the other call must be able to end meanwhile.
            let _waiting = WaitGuard::begin(&Gates::of(other))?;
            let running = lock(&self.running);
            drop(self.ended.wait_while(running, |now| *now == Some(other)).unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl<F: ?Sized> Drop for Call<'_, F> {
    fn drop(&mut self) {
        *lock(&self.of.running) = None;
        gates::open(self.gate);
        self.of.ended.notify_all();
    }
}
