//! Whether a queue runs what it is given, or a graph takes it down: the whole of that state, and its changes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a queue can record into.
pub(crate) trait Goal: Clone + PartialEq {
    /// Nobody has it any more, which ends the recording into it.
    fn is_gone(&self) -> bool;
}

/// The state of one queue. Whoever submits looks at it first; whoever begins or ends a recording changes it.
#[derive(Debug)]
pub(crate) struct Machine<G> {
    /// A look without the lock, for the queue that only ever executes.
    recording: AtomicBool,
    goal: Mutex<Option<G>>,
}

/// A machine that nobody else can change or ask, so that a submission is wholly recorded or wholly executed.
#[derive(Debug)]
pub(crate) struct Locked<'a, G> {
    recording: &'a AtomicBool,
    goal: MutexGuard<'a, Option<G>>,
}

impl<G> Default for Machine<G> {
    fn default() -> Self {
        Self { recording: AtomicBool::new(false), goal: Mutex::new(None) }
    }
}

impl<G: Goal> Machine<G> {
    /// `false`: it executed a moment ago. `true`: ask under the lock.
    pub(crate) fn may_record(&self) -> bool {
        self.recording.load(Ordering::Acquire)
    }

    pub(crate) fn lock(&self) -> Locked<'_, G> {
        Locked { recording: &self.recording, goal: self.goal.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}

impl<G: Goal> Locked<'_, G> {
    /// What it records into, or `None` while it executes.
    pub(crate) fn goal(&self) -> Option<&G> {
        self.goal.as_ref().filter(|goal| !goal.is_gone())
    }

    /// From executing to recording. The caller has asked that it executes.
    pub(crate) fn begin(&mut self, goal: G) {
        debug_assert!(self.goal().is_none(), "one recording at a time");
        *self.goal = Some(goal);
        self.recording.store(true, Ordering::Release);
    }

    /// From recording into `goal` to executing. Whether that changed anything.
    pub(crate) fn end(&mut self, goal: &G) -> bool {
        self.end_if(|of| of == goal)
    }

    /// The same for a goal that may be gone.
    pub(crate) fn end_if(&mut self, is_it: impl FnOnce(&G) -> bool) -> bool {
        let ends = self.goal.as_ref().is_some_and(is_it);
        if ends {
            *self.goal = None;
            self.recording.store(false, Ordering::Release);
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::{Arc, Weak};

    use super::*;

    #[derive(Clone, Debug)]
    struct Tape(u32, Weak<()>);

    impl PartialEq for Tape {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }

    impl Goal for Tape {
        fn is_gone(&self) -> bool {
            self.1.strong_count() == 0
        }
    }

    #[test]
    fn a_machine_records_into_one_goal_until_that_ends() {
        let (alive, machine) = (Arc::new(()), Machine::default());
        let [one, two] = [1, 2].map(|id| Tape(id, Arc::downgrade(&alive)));
        assert!(!machine.may_record() && machine.lock().goal().is_none());
        machine.lock().begin(one.clone());
        assert!(machine.may_record());
        assert_eq!(machine.lock().goal(), Some(&one));
        assert!(!machine.lock().end(&two), "another recording is not its own");
        assert_eq!(machine.lock().goal(), Some(&one));
        assert!(machine.lock().end(&one));
        assert!(!machine.lock().end(&one), "it executes already");
        assert!(!machine.may_record());
        machine.lock().begin(two.clone());
        assert_eq!(machine.lock().goal(), Some(&two), "again, and elsewhere");
    }

    #[test]
    fn a_goal_that_is_gone_leaves_an_executing_machine() {
        let (alive, machine) = (Arc::new(()), Machine::default());
        machine.lock().begin(Tape(1, Arc::downgrade(&alive)));
        drop(alive);
        assert!(machine.lock().goal().is_none());
        let alive = Arc::new(());
        machine.lock().begin(Tape(2, Arc::downgrade(&alive)));
        assert_eq!(machine.lock().goal().map(|tape| tape.0), Some(2));
    }

    /// Each step of a thread is counted by what it found; nothing is counted twice and nothing is lost.
    #[test]
    fn steps_race_with_begin_and_end_and_each_is_on_one_side() {
        const STEPS: usize = 20_000;
        let (alive, machine) = (Arc::new(()), Machine::default());
        let tape = Tape(1, Arc::downgrade(&alive));
        let (recorded, executed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..STEPS {
                        let locked = machine.lock();
                        let count = if locked.goal().is_some() { &recorded } else { &executed };
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            scope.spawn(|| {
                for _ in 0..STEPS {
                    machine.lock().begin(tape.clone());
                    assert!(machine.lock().end(&tape));
                }
            });
        });
        assert_eq!(recorded.into_inner() + executed.into_inner(), 3 * STEPS);
        assert!(!machine.may_record());
    }
}
