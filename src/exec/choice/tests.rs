//! The choice of a way, with made-up drivers.

use std::time::Duration;

use quickcheck::{TestResult, quickcheck};

use super::*;
use crate::plan::Path;

const REPLAY: Way = Way { path: Path::Replay, chunk: 0, queues: 0 };
const GATED: Way = Way { path: Path::Gated, chunk: 0, queues: 0 };
const LONG: Way = Way { path: Path::Native, chunk: 1024, queues: 0 };
const ALL: [Way; 3] = [REPLAY, GATED, LONG];

/// A made-up driver, that takes so many microseconds for a submission: the host's, and all.
struct Driver<F> {
    choice: Choice,
    takes: F,
    now: Instant,
    /// How each submission went.
    taken: Vec<(Way, bool)>,
}

impl<F: FnMut(Way, usize) -> (u64, u64)> Driver<F> {
    fn new(ways: &[Way], takes: F) -> Self {
        Self { choice: Choice::new(ways), takes, now: Instant::now(), taken: Vec::new() }
    }

    /// One after the other.
    fn submit(&mut self, times: usize) -> &mut Self {
        for _ in 0..times {
            let (way, stamp) = self.choice.next(true, true);
            let (host, total) = (self.takes)(way, self.taken.len());
            self.taken.push((way, stamp.is_some()));
            let (enqueued, complete) = (Duration::from_micros(host), Duration::from_micros(total));
            let begin = self.now;
            self.now += complete.max(enqueued) + Duration::from_micros(1);
            if let Some(running) = self.choice.running.pop_front() {
                self.choice.took(running.what, Some(Stamped { begin, enqueued, complete }));
            }
        }
        self
    }

    fn timed(&self) -> usize {
        self.taken.iter().filter(|(_, timed)| *timed).count()
    }
}

#[test]
fn the_fastest_is_found_and_the_first_submission_and_the_first_round_do_not_count() {
    let takes = |way: Way, at: usize| match (way, at) {
        // What a kernel's first run and a way's first run cost.
        (_, 0..=3) => (10, 1_000_000),
        (GATED, _) => (10, 80),
        (LONG, _) => (1, 200),
        _ => (20, 100),
    };
    let mut driver = Driver::new(&ALL, takes);
    driver.submit(1);
    assert_eq!((driver.choice.state(), driver.timed()), (ChoiceState::Trying, 0));
    driver.submit(120);
    assert_eq!((driver.choice.state(), driver.choice.way()), (ChoiceState::Settled, GATED));
    assert_eq!(driver.choice.found(), Some((GATED, Times { host: 10_000, total: 80_000 })));
    let of = |way| driver.taken.iter().filter(|taken| **taken == (way, true)).count();
    assert_eq!(of(LONG), 1 + 4 * 3, "what is clearly slower is left out soon, though after more rounds as it is short");
    assert_eq!(of(REPLAY), 1 + 4 * 6, "what is slower later, which leaves one");
    assert_eq!(of(GATED), 1 + 4 * 6);
    driver.submit(64);
    assert_eq!(
        driver.taken.iter().filter(|taken| **taken == (GATED, true)).count(),
        1 + 4 * 6 + 1,
        "and a look from time to time"
    );
}

#[test]
fn a_way_that_cannot_be_taken_is_not_waited_for_and_never_tried_again() {
    // Refused in a round, in the middle of others.
    let mut choice = Choice::new(&ALL);
    let mut refused = 0;
    for _ in 0..5_000 {
        let (way, stamp) = choice.next(true, true);
        if way == GATED {
            refused += 1;
            choice.cannot(way, stamp.as_ref());
            continue;
        }
        let takes = if way == REPLAY { 2_000 } else { 3_000 };
        if let Some(running) = choice.running.pop_front() {
            let now = Instant::now();
            let stamped =
                Stamped { begin: now, enqueued: Duration::from_micros(1), complete: Duration::from_micros(takes) };
            choice.last_end = None;
            choice.took(running.what, Some(stamped));
        }
    }
    assert_eq!((refused, choice.way(), choice.state()), (1, REPLAY, ChoiceState::Settled));
    // Refused where a file named it.
    let mut choice = Choice::new(&ALL);
    assert!(choice.start_with(GATED, Times { host: 1, total: 1 }));
    choice.cannot(GATED, None);
    assert_eq!(choice.way(), REPLAY);
    choice.next(true, true);
    assert_eq!(choice.state(), ChoiceState::Trying);
    // There is nothing else.
    let mut choice = Choice::new(&ALL[1..2]);
    choice.cannot(GATED, None);
    assert_eq!((choice.way(), choice.next(true, true).0), (GATED, GATED));
}

#[test]
fn what_was_left_out_does_not_win_by_what_it_took_before() {
    // Everything becomes slower while it is tried; the third way is left out before that.
    let mut driver = Driver::new(&ALL, |way, at| {
        let slower = if at < 22 { 10 } else { 13 };
        let takes = match way {
            LONG => 250,
            GATED => 205,
            _ => 200,
        };
        (10, slower * takes)
    });
    driver.submit(100);
    assert_eq!((driver.choice.state(), driver.choice.way()), (ChoiceState::Settled, REPLAY));
}

#[test]
fn of_ways_that_take_as_long_the_one_stays_or_the_one_that_leaves_the_host_more_time() {
    let mut same = Driver::new(&ALL[..2], |_, at| (20, 1_100 + at as u64 % 2));
    assert_eq!(same.submit(100).choice.way(), REPLAY);
    let mut less = Driver::new(&ALL[..2], |way, at| (if way == GATED { 10 } else { 20 }, 1_100 + at as u64 % 2));
    assert_eq!(less.submit(90).choice.way(), GATED);
    assert_eq!(less.timed(), 2 * (1 + ROUNDS), "all rounds");
}

#[test]
fn one_way_is_never_timed() {
    let mut one = Driver::new(&ALL[..1], |_, _| (1, 1));
    one.submit(5_000);
    assert_eq!((one.timed(), one.choice.state()), (0, ChoiceState::Fixed));
}

#[test]
fn times_that_change_have_everything_tried_again() {
    let later = |way: Way, at: usize| match way {
        GATED => (10, 80_000),
        _ if at < 500 => (20, 100_000),
        _ => (20, 50_000),
    };
    let mut driver = Driver::new(&ALL[..2], later);
    assert_eq!(driver.submit(100).choice.way(), GATED);
    driver.submit(1_200);
    assert_eq!(driver.choice.way(), REPLAY, "after a while the others are tried again");
    let mut slow = Driver::new(&ALL[..2], |way, at| match way {
        GATED if at > 200 => (10, 300_000),
        GATED => (10, 80_000),
        _ => (20, 100_000),
    });
    assert_eq!(slow.submit(100).choice.way(), GATED);
    slow.submit(6 * LOOK as usize);
    assert_eq!(slow.choice.way(), REPLAY, "sooner where what is taken has got slower");
}

#[test]
fn ways_that_were_about_as_fast_are_tried_again_soon_and_the_others_later() {
    let mut driver = Driver::new(&ALL, |way, at| match way {
        // The driver is not yet what it will be.
        REPLAY if at < 70 => (10, 9_700),
        REPLAY => (10, 13_000),
        GATED => (10, 10_000),
        _ => (10, 15_000),
    });
    driver.submit(70);
    assert_eq!((driver.choice.state(), driver.choice.way()), (ChoiceState::Settled, REPLAY));
    let trials = driver.choice.settled;
    driver.submit(170);
    assert_eq!((driver.choice.way(), driver.choice.settled), (GATED, trials + 1));
    let before = driver.taken.len();
    driver.submit(750);
    assert!(driver.taken[70..].iter().all(|(way, _)| *way != LONG), "the slow one is not tried again soon");
    assert!(driver.choice.ways().all(|(_, _, timed, _)| timed > 0), "its times are known");
    driver.submit(1_200);
    assert!(driver.taken[before..].iter().any(|(way, _)| *way == LONG));
    // Nothing was near.
    let mut alone = Driver::new(&ALL, |way, _| if way == GATED { (10, 10_000) } else { (10, 30_000) });
    alone.submit(100);
    let timed = alone.timed();
    alone.submit(128);
    assert_eq!((alone.choice.settled, alone.timed()), (1, timed + 2), "two looks");
}

#[test]
fn ways_are_compared_round_by_round() {
    // The machine is now fast and now slow, and the way that is slower in one round of five is so when it is in the middle.
    let mut driver = Driver::new(&ALL[..2], |way, at| {
        let machine = [2, 3, 4, 5, 6][at.div_ceil(2) % 5];
        let way = match (way, machine) {
            (GATED, 4) => 1_050,
            (GATED, _) => 900,
            _ => 1_000,
        };
        (10, machine * way)
    });
    driver.submit(40);
    assert_eq!((driver.choice.state(), driver.choice.way()), (ChoiceState::Settled, GATED));
}

#[test]
fn timing_becomes_rare() {
    let mut driver = Driver::new(&ALL, |way, _| if way == GATED { (10, 8_000) } else { (20, 12_000) });
    driver.submit(200_000);
    let share = driver.timed() as f64 / 200_000.0;
    assert!(share < 0.017, "{share}");
    let slow = driver.taken[100..].iter().filter(|(way, _)| *way != GATED).count();
    assert!(slow < 150, "{slow}");
}

#[test]
fn submissions_that_follow_each_other_are_timed_from_the_end_of_the_one_before() {
    let mut choice = Choice::new(&ALL[..2]);
    let begin = Instant::now();
    let at = |begin: Instant, end: u64| Stamped {
        begin,
        enqueued: Duration::from_micros(5),
        complete: Duration::from_micros(end),
    };
    assert_eq!(choice.times(at(begin, 100)).total, 100_000);
    assert_eq!(choice.times(at(begin + Duration::from_micros(10), 140)).total, 50_000, "it waited for the first");
    assert_eq!(choice.times(at(begin + Duration::from_micros(500), 60)).total, 60_000);
}

#[test]
fn what_runs_behind_others_is_timed_behind_one_that_is() {
    let mut choice = Choice::new(&ALL[..2]);
    assert!(choice.next(true, true).1.is_none(), "the first is not timed");
    let (way, stamp) = choice.next(false, true);
    assert_eq!((way, stamp.is_some()), (REPLAY, true), "something runs, and nobody knows until when");
    assert_eq!(choice.running.back().unwrap().what, For::Link);
    choice.next(false, true);
    assert_eq!(choice.running.back().unwrap().what, For::Round { way: 0, round: 1 });
    assert!(choice.next(false, false).1.is_none(), "it waits for something else");
    choice.next(false, true);
    assert_eq!(choice.running.back().unwrap().what, For::Link);
    choice.next(false, true);
    assert_eq!(choice.running.back().unwrap().what, For::Round { way: 1, round: 1 });
}

#[test]
fn times_that_never_come_are_given_up() {
    let mut choice = Choice::new(&ALL[..2]);
    for _ in 0..50 * PATIENCE {
        choice.next(true, true);
        choice.collect();
    }
    assert_eq!((choice.settled > 0, choice.way(), choice.found()), (true, REPLAY, None), "nothing was found");
    assert!(choice.running.len() < 10, "{}", choice.running.len());
}

#[test]
fn what_was_found_before_is_started_with() {
    let times = Times { host: 1, total: 2 };
    let mut choice = Choice::new(&ALL);
    assert!(choice.start_with(LONG, times));
    assert_eq!(choice.found(), Some((LONG, times)));
    assert!(!Choice::new(&ALL[..2]).start_with(LONG, times), "there is no such way");
    let mut driver = Driver::new(&ALL, |way, _| if way == GATED { (10, 8_000) } else { (10, 10_000) });
    assert!(driver.choice.start_with(REPLAY, Times { host: 10_000, total: 10_000_000 }));
    driver.submit(1_000);
    assert_eq!((driver.choice.way(), driver.choice.settled), (REPLAY, 0), "it counts as having been tried for long");
    driver.submit(100);
    assert_eq!((driver.choice.way(), driver.choice.settled), (GATED, 1));
    let mut fixed = Choice::new(&ALL[..1]);
    assert!(fixed.start_with(REPLAY, times));
    assert_eq!(fixed.state(), ChoiceState::Fixed, "with one way there is nothing to find");
}

quickcheck! {
    /// With noise of up to a quarter, a way that takes twice as long is not chosen.
    fn noise_does_not_make_the_slow_fast(noise: Vec<u8>) -> TestResult {
        if noise.is_empty() {
            return TestResult::discard();
        }
        let takes = |way: Way, at: usize| {
            let usual = if way == GATED { 400 } else { 800 };
            (10, usual + u64::from(noise[at % noise.len()]) * usual / 1024)
        };
        let mut driver = Driver::new(&ALL, takes);
        driver.submit(200);
        TestResult::from_bool(driver.choice.way() == GATED)
    }
}
