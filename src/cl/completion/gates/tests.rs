//! Gates: what waits for what, against a model; and that many gates cost linear time.

use super::*;

/// Gates of this test, which no other test has.
const FIRST: GateId = 1 << 60;

/// What a barrier after everything comes after is known while the driver gets it.
#[test]
fn later_commands_come_after_a_barrier_that_is_being_enqueued() {
    let gate = |number: u64| FIRST + 500_000 + number;
    let queue = QueueGates::default();
    let to_come = queue.begin_barrier();
    // Another thread is faster.
    close(gate(0), Gates::default());
    queue.add(&Gates::of(gate(0)));
    assert_eq!(queue.of_barriers(), Gates::of(gate(0)));
    assert_eq!(queue.after_all(), Gates::of(gate(0)));
    drop(to_come);
    close(gate(1), Gates::default());
    queue.add(&Gates::of(gate(1)));
    assert_eq!(queue.of_barriers(), Gates::of(gate(0)));
    let all = queue.after_all();
    assert!(all.come_after(gate(0)) && all.come_after(gate(1)) && queue.of_barriers() == all && queue.get() == all);
    open(gate(0));
    assert_eq!(queue.of_barriers(), all, "it stands for the other gate too");
    open(gate(1));
    assert!(queue.of_barriers().is_empty() && queue.get().is_empty());
}

/// Rule E3: gates that stand for others and are open are forgotten, although nobody asks for them.
#[test]
fn a_queue_that_is_never_empty_keeps_few_gates() {
    let gate = |number: u64| FIRST + 700_000 + number;
    let queue = QueueGates::default();
    for number in 0..5000 {
        close(gate(number), queue.get());
        queue.hold(gate(number));
        // Three are closed at a time.
        if number >= 3 {
            open(gate(number - 3));
        }
    }
    // Other tests have gates too.
    let stand_ins = closed().gates.values().filter(|entry| entry.stands_for.is_some()).count();
    assert!(stand_ins < 1500, "{stand_ins}");
    (4997..5000).for_each(|number| open(gate(number)));
    assert!(queue.get().is_empty());
}

/// A gate that holds a queue may open before an older one, because its submission failed.
#[test]
fn a_queue_does_not_forget_an_older_gate_for_one_that_opens_first() {
    let gate = |number: u64| FIRST + 600_000 + number;
    let queue = QueueGates::default();
    (0..3).for_each(|number| {
        close(gate(number), queue.get());
        queue.hold(gate(number));
    });
    open(gate(2));
    open(gate(1));
    assert!(queue.get().come_after(gate(0)));
    open(gate(0));
    assert!(queue.get().is_empty());
}

/// Whatever comes to a queue, its gates lead to those that are closed, and to no others.
#[test]
fn a_queue_knows_the_closed_gates_of_its_commands() {
    let gate = |number: u64| FIRST + 900_000 + number;
    let mut random = fastrand::Rng::with_seed(11);
    for round in 0..20 {
        let (queue, first) = (QueueGates::default(), round * 1000);
        // The gates of this round, which of them are closed, and after which of them all later commands come.
        let (mut there, mut closed_now, mut held) = (0, BTreeSet::new(), BTreeSet::new());
        let leads_to = |gates: &Gates| -> BTreeSet<u64> {
            (first..first + 400).filter(|at| gates.come_after(gate(*at))).collect()
        };
        let still = |closed_now: &BTreeSet<u64>, some: &BTreeSet<u64>| -> BTreeSet<u64> {
            closed_now.intersection(some).copied().collect()
        };
        for _ in 0..random.usize(..400) {
            match random.usize(..12) {
                0..6 => {
                    let new = first + there;
                    there += 1;
                    closed_now.insert(new);
                    close(gate(new), Gates::default());
                    match random.usize(..8) {
                        0 => {
                            queue.add_of_barrier(&Gates::of(gate(new)));
                            held.insert(new);
                        }
                        1 => queue.hold(gate(new)),
                        _ => queue.add(&Gates::of(gate(new))),
                    }
                }
                6..9 if !closed_now.is_empty() => {
                    // The oldest, the newest or any.
                    let at = [0, closed_now.len() - 1, random.usize(..closed_now.len())][random.usize(..3)];
                    let old = *closed_now.iter().nth(at).unwrap();
                    closed_now.remove(&old);
                    open(gate(old));
                }
                9 => {
                    queue.after_all();
                    held.extend(&closed_now);
                }
                10 => assert_eq!(still(&closed_now, &leads_to(&queue.of_barriers())), still(&closed_now, &held)),
                _ => assert_eq!(still(&closed_now, &leads_to(&queue.get())), closed_now),
            }
        }
        assert_eq!(still(&closed_now, &leads_to(&queue.get())), closed_now);
        closed_now.iter().for_each(|old| open(gate(*old)));
        assert!(queue.get().is_empty() && queue.of_barriers().is_empty() && !queue.may_be_some());
    }
}

#[test]
fn gates_are_followed_over_others_and_forgotten_when_they_open() {
    let gate = |number: u64| FIRST + number;
    close(gate(0), Gates::default());
    close(gate(1), Gates::of(gate(0)));
    close(gate(2), Gates::default());
    let both = || {
        let mut both = Gates::of(gate(1));
        both.extend(&Gates::of(gate(2)));
        both
    };
    assert!(both().come_after(gate(0)) && both().come_after(gate(2)) && !Gates::of(gate(2)).come_after(gate(0)));
    let queue = QueueGates::default();
    queue.add(&both());
    assert_eq!(queue.get(), both());
    open(gate(1));
    assert_eq!(queue.get(), Gates::of(gate(2)));
    open(gate(2));
    assert!(queue.get().is_empty() && !queue.may_be_some());
    open(gate(0));
}

/// What names a gate is counted, and forgotten with the gate that has the name.
#[test]
fn gates_that_nothing_names_are_not_looked_for() {
    let gate = |number: u64| FIRST + 800_000 + number;
    let named = |number: u64| closed().named.get(&gate(number)).copied();
    close(gate(0), Gates::default());
    close(gate(1), Gates::of(gate(0)));
    close(gate(1), Gates::of(gate(0)));
    assert_eq!((named(0), named(1)), (Some(1), None));
    assert!(complete_by(&[(gate(2), Gates::of(gate(0)))], gate(1)));
    assert_eq!((named(0), named(1)), (Some(2), Some(1)));
    assert!(complete_by(&[(gate(2), Gates::default())], gate(1)), "another submission completes it");
    assert_eq!((named(0), named(1)), (Some(1), Some(1)));
    assert!(!complete_by(&[9, 0].map(|event| (gate(event), Gates::of(gate(1)))), gate(2)), "gate 1 opens after gate 0");
    assert!(!closed().gates.contains_key(&gate(9)), "all of them are completed by it, or none");
    let wait = Wait::begin(SmallVec::from_slice(&[gate(0)]), &Gates::default(), &Gates::of(gate(3)), By::Call).unwrap();
    assert_eq!(named(3), Some(1));
    assert!(!complete_by(&[(gate(3), Gates::of(gate(1)))], gate(2)), "gate 0 opens after gate 3, which is waited for");
    drop(wait);
    assert_eq!(named(3), None);
    assert!(complete_by(&[(gate(3), Gates::of(gate(1)))], gate(2)));
    (0..4).for_each(|number| open(gate(number)));
    assert!((0..4).all(|number| named(number).is_none()));
}

/// An event is completed half-way: after what is before its node, and not after the rest of its submission.
#[test]
fn events_are_completed_after_what_is_before_their_nodes() {
    let gate = |number: u64| FIRST + 850_000 + number;
    let complete = |event: u64, after: &[u64], by: u64| {
        let mut gates = Gates::default();
        after.iter().for_each(|after| gates.extend(&Gates::of(gate(*after))));
        complete_by(&[(gate(event), gates)], gate(by))
    };
    let wait = |own: u64, later: &[u64], of: u64| {
        let mut events = Gates::default();
        later.iter().for_each(|event| events.extend(&Gates::of(gate(*event))));
        Wait::begin(SmallVec::from_slice(&[gate(own)]), &events, &Gates::of(gate(of)), By::Call)
    };
    // Submission 0 has a task that waits for event 10, which submission 1 completes. Submission 1 waits for event 11.
    (0..3).for_each(|number| close(gate(number), Gates::default()));
    for is_before in [true, false] {
        let waits = wait(0, &[], 10).unwrap();
        assert!(complete(10, if is_before { &[11] } else { &[] }, 1));
        assert_eq!(complete(11, &[0], 2), !is_before, "submission 2 comes after the task");
        drop(waits);
        [10, 11].iter().for_each(|event| open(gate(*event)));
    }
    // The same where a task of submission 1 waits, before it completes the event or not.
    for is_before in [true, false] {
        let waits = wait(0, &[], 10).unwrap();
        assert!(complete(10, &[], 1));
        let other = wait(1, if is_before { &[10] } else { &[] }, 11).unwrap();
        assert_eq!(complete(11, &[0], 2), !is_before);
        drop((waits, other));
        [10, 11].iter().for_each(|event| open(gate(*event)));
    }
    // A submission whose second event comes after what comes after its first one.
    assert!(complete(11, &[10], 2));
    let both = |first: u64, second: u64| {
        let event = |event: u64, after: u64| (gate(event), Gates::of(gate(after)));
        complete_by(&[event(10, first), event(12, second)], gate(1))
    };
    assert!(!both(12, 11) && !both(11, 10) && both(0, 11));
    [10, 11, 12].iter().for_each(|event| open(gate(*event)));
    // A long chain is followed without recursion.
    let far = |number: u64| 1_000_000 + number;
    for number in 0..100_000 {
        close(gate(far(number)), Gates::default());
        assert!(complete(far(number), &[far(number + 1)], 1));
    }
    let waits = wait(0, &[], far(0)).unwrap();
    assert!(!complete(far(100_000), &[0], 2) && complete(far(100_000), &[], 2));
    drop(waits);
    (0..100_001).for_each(|number| open(gate(far(number))));
    (0..3).for_each(|number| open(gate(number)));
    assert!([0, 1, 2, 10, 11, 12].iter().all(|number| !closed().named.contains_key(&gate(*number))));
}

/// Rule E3: a long chain is followed without recursion.
#[test]
fn a_long_chain_of_gates_is_followed() {
    let gate = |number: u64| FIRST + 1000 + number;
    close(gate(0), Gates::default());
    (1..100_000).for_each(|number| close(gate(number), Gates::of(gate(number - 1))));
    assert!(Gates::of(gate(99_999)).come_after(gate(0)));
    (0..100_000).for_each(|number| open(gate(number)));
}
