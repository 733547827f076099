//! What goes on when the last of several things has ended.

use std::sync::PoisonError;

#[cfg(loom)]
use loom::sync::Mutex;
#[cfg(not(loom))]
use std::sync::Mutex;

/// Something that waits for several ends, which may come from several threads.
#[derive(Debug)]
pub(crate) struct Countdown<T, E> {
    state: Mutex<State<T, E>>,
}

#[derive(Debug)]
struct State<T, E> {
    left: usize,
    failure: Option<E>,
    then: Option<T>,
}

impl<T, E> Countdown<T, E> {
    /// `then` goes on after so many ends.
    pub(crate) fn new(count: usize, then: T) -> Self {
        Self { state: Mutex::new(State { left: count, failure: None, then: Some(then) }) }
    }

    /// One of the things has ended. The caller that reports the last end gets what goes on, and the failure that came
    /// first; all others get None.
    pub(crate) fn ended(&self, outcome: Result<(), E>) -> Option<(T, Result<(), E>)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.left = state.left.saturating_sub(1);
        let late = match outcome {
            Err(error) if state.failure.is_none() => {
                state.failure = Some(error);
                None
            }
            outcome => outcome.err(),
        };
        let last = if state.left == 0 { state.then.take() } else { None };
        let next = last.map(|then| (then, state.failure.take().map_or(Ok(()), Err)));
        drop(state);
        // An error may hold more than a number, so it is not dropped under the lock.
        drop(late);
        next
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_end_gets_what_goes_on_and_the_first_failure() {
        let countdown = Countdown::new(3, "next");
        assert_eq!(countdown.ended(Ok(())), None);
        assert_eq!(countdown.ended(Err("first")), None);
        assert_eq!(countdown.ended(Err("second")), Some(("next", Err("first"))));
        assert_eq!(countdown.ended(Ok(())), None, "it goes on once");
        assert_eq!(Countdown::<_, ()>::new(1, 7).ended(Ok(())), Some((7, Ok(()))));
    }
}

/// Every order in which threads can meet. docs/testing.md has the command.
#[cfg(all(test, loom))]
mod every_order {
    use loom::sync::Arc;

    use super::*;

    /// Whoever is last: one thread alone goes on, and it knows of the failure of another one.
    #[test]
    fn one_thread_goes_on_and_knows_the_failure() {
        loom::model(|| {
            let countdown = Arc::new(Countdown::new(3, ()));
            let ends = [Ok(()), Err("it failed")].map(|outcome| {
                let countdown = Arc::clone(&countdown);
                loom::thread::spawn(move || countdown.ended(outcome))
            });
            let mut all = vec![countdown.ended(Ok(()))];
            all.extend(ends.map(|thread| thread.join().unwrap()));
            let went_on: Vec<_> = all.into_iter().flatten().collect();
            assert_eq!(went_on, [((), Err("it failed"))]);
        });
    }
}
