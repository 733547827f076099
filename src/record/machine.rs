//! The state machine of a queue: it either executes commands or records them into a graph.

use std::sync::PoisonError;

#[cfg(loom)]
use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};
#[cfg(not(loom))]
use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

/// What a queue can record into: a graph.
pub(crate) trait Goal: Clone + PartialEq {
    /// Whether nobody holds the graph any more, which ends the recording into it.
    fn is_gone(&self) -> bool;
}

/// The state of one queue. A submission checks the state first; the methods that begin or end a recording change it.
#[derive(Debug)]
pub(crate) struct Machine<G> {
    /// Can be read without the lock, so that a queue that never records pays only for this load.
    recording: AtomicBool,
    goal: Mutex<Option<G>>,
}

/// A locked machine. Nobody else can change or read the state, so that a submission is recorded as a whole or executed
/// as a whole.
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
    /// Whether the queue may record. `false`: it was executing a moment ago. `true`: ask again under the lock.
    pub(crate) fn may_record(&self) -> bool {
        self.recording.load(Ordering::Acquire)
    }

    pub(crate) fn lock(&self) -> Locked<'_, G> {
        Locked { recording: &self.recording, goal: self.goal.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}

impl<G: Goal> Locked<'_, G> {
    /// The graph that the queue records into, or `None` while it executes.
    pub(crate) fn goal(&self) -> Option<&G> {
        self.goal.as_ref().filter(|goal| !goal.is_gone())
    }

    /// Changes the state from executing to recording. The caller has checked that the queue executes.
    pub(crate) fn begin(&mut self, goal: G) {
        debug_assert!(self.goal().is_none(), "one recording at a time");
        *self.goal = Some(goal);
        self.recording.store(true, Ordering::Release);
    }

    /// Changes the state from recording into `goal` to executing. Returns whether the state changed.
    pub(crate) fn end(&mut self, goal: &G) -> bool {
        self.end_if(|of| of == goal)
    }

    /// As [`end`](Self::end), for a goal that may be gone.
    pub(crate) fn end_if(&mut self, is_it: impl FnOnce(&G) -> bool) -> bool {
        let ends = self.goal.as_ref().is_some_and(is_it);
        if ends {
            *self.goal = None;
            self.recording.store(false, Ordering::Release);
        }
        ends
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::{Arc, Weak};

    use super::*;

    #[derive(Clone, Debug)]
    struct TestGraph(u32, Weak<()>);

    impl PartialEq for TestGraph {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }

    impl Goal for TestGraph {
        fn is_gone(&self) -> bool {
            self.1.strong_count() == 0
        }
    }

    #[test]
    fn a_machine_records_into_one_goal_until_that_ends() {
        let (alive, machine) = (Arc::new(()), Machine::default());
        let [one, two] = [1, 2].map(|id| TestGraph(id, Arc::downgrade(&alive)));
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
        machine.lock().begin(TestGraph(1, Arc::downgrade(&alive)));
        drop(alive);
        assert!(machine.lock().goal().is_none());
        let alive = Arc::new(());
        machine.lock().begin(TestGraph(2, Arc::downgrade(&alive)));
        assert_eq!(machine.lock().goal().map(|graph| graph.0), Some(2));
    }

    /// Each step of a thread is counted by the state that it found. No step is counted twice, and no step is lost.
    #[test]
    fn steps_race_with_begin_and_end_and_each_is_on_one_side() {
        const STEPS: usize = 20_000;
        let (alive, machine) = (Arc::new(()), Machine::default());
        let graph = TestGraph(1, Arc::downgrade(&alive));
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
                    machine.lock().begin(graph.clone());
                    assert!(machine.lock().end(&graph));
                }
            });
        });
        assert_eq!(recorded.into_inner() + executed.into_inner(), 3 * STEPS);
        assert!(!machine.may_record());
    }
}

/// Every order in which threads can meet. docs/testing.md has the command.
#[cfg(all(test, loom))]
mod every_order {
    use loom::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, PartialEq)]
    struct TestGraph;

    impl Goal for TestGraph {
        fn is_gone(&self) -> bool {
            false
        }
    }

    /// Does what a queue does: a check without the lock, and then one under the lock.
    fn submit(machine: &Machine<TestGraph>, recorded: &Mutex<u32>, executed: &Mutex<u32>) {
        let mut count = executed;
        let machine = machine.may_record().then(|| machine.lock());
        if machine.as_ref().is_some_and(|machine| machine.goal().is_some()) {
            count = recorded;
        }
        *count.lock().unwrap() += 1;
    }

    /// After the end nothing is recorded any more, and each submission is recorded or executed.
    #[test]
    fn a_submission_is_recorded_before_the_end_or_executed() {
        loom::model(|| {
            let machine = Arc::new(Machine::default());
            let counts = Arc::new((Mutex::new(0), Mutex::new(0)));
            machine.lock().begin(TestGraph);
            let submitter = {
                let (machine, counts) = (Arc::clone(&machine), Arc::clone(&counts));
                loom::thread::spawn(move || {
                    submit(&machine, &counts.0, &counts.1);
                    submit(&machine, &counts.0, &counts.1);
                })
            };
            assert!(machine.lock().end(&TestGraph));
            let at_the_end = *counts.0.lock().unwrap();
            submitter.join().unwrap();
            assert_eq!(*counts.0.lock().unwrap(), at_the_end);
            assert_eq!(at_the_end + *counts.1.lock().unwrap(), 2);
        });
    }

    /// A submission that has seen the recording begin is recorded.
    #[test]
    fn a_submission_behind_the_begin_is_recorded() {
        loom::model(|| {
            let machine = Arc::new(Machine::default());
            let counts = Arc::new((Mutex::new(0), Mutex::new(0)));
            let beginner = {
                let machine = Arc::clone(&machine);
                loom::thread::spawn(move || machine.lock().begin(TestGraph))
            };
            submit(&machine, &counts.0, &counts.1);
            beginner.join().unwrap();
            submit(&machine, &counts.0, &counts.1);
            assert!(*counts.0.lock().unwrap() >= 1);
        });
    }
}
