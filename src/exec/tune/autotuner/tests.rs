//! The autotuner with fake drivers.

use std::time::Duration;

use quickcheck::{TestResult, quickcheck};

use super::*;
use crate::plan::Path;

const REPLAY: Strategy = Strategy { path: Path::Replay, chunk: 0, queues: 0, fused: false };
const GATED: Strategy = Strategy { path: Path::Gated, chunk: 0, queues: 0, fused: false };
const LONG: Strategy = Strategy { path: Path::Native, chunk: 1024, queues: 0, fused: false };
const ALL: [Strategy; 3] = [REPLAY, GATED, LONG];

/// A fake driver. A function gives the microseconds of each submission: the host's, and all.
struct Driver<F> {
    autotuner: Autotuner,
    takes: F,
    now: Instant,
    /// How each submission was enqueued: the strategy, and whether it was timed.
    taken: Vec<(Strategy, bool)>,
}

impl<F: FnMut(Strategy, usize) -> (u64, u64)> Driver<F> {
    fn new(strategies: &[Strategy], takes: F) -> Self {
        Self { autotuner: Autotuner::new(strategies), takes, now: Instant::now(), taken: Vec::new() }
    }

    /// Submits one after another.
    fn submit(&mut self, times: usize) -> &mut Self {
        for _ in 0..times {
            let (strategy, timer) = self.autotuner.next(true, true);
            let (host, total) = (self.takes)(strategy, self.taken.len());
            self.taken.push((strategy, timer.is_some()));
            let (enqueued, complete) = (Duration::from_micros(host), Duration::from_micros(total));
            let begin = self.now;
            self.now += complete.max(enqueued) + Duration::from_micros(1);
            if let Some(running) = self.autotuner.running.pop_front() {
                self.autotuner.took(running.what, Some(CompletionTimes { begin, enqueued, complete }));
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
    let takes = |strategy: Strategy, at: usize| match (strategy, at) {
        // The costs of a kernel's first run and of a strategy's first run.
        (_, 0..=3) => (10, 1_000_000),
        (GATED, _) => (10, 80),
        (LONG, _) => (1, 200),
        _ => (20, 100),
    };
    let mut driver = Driver::new(&ALL, takes);
    driver.submit(1);
    assert_eq!((driver.autotuner.state(), driver.timed()), (TuningState::Trying, 0));
    driver.submit(120);
    assert_eq!((driver.autotuner.state(), driver.autotuner.strategy()), (TuningState::Settled, GATED));
    assert_eq!(driver.autotuner.found(), Some((GATED, Times { host: 10_000, total: 80_000 })));
    let of = |strategy| driver.taken.iter().filter(|taken| **taken == (strategy, true)).count();
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
fn a_strategy_that_cannot_be_used_is_not_waited_for_and_never_tried_again() {
    // Refused during a round, between others.
    let mut autotuner = Autotuner::new(&ALL);
    let mut refused = 0;
    for _ in 0..5_000 {
        let (strategy, timer) = autotuner.next(true, true);
        if strategy == GATED {
            refused += 1;
            autotuner.cannot(strategy, timer.as_ref());
            continue;
        }
        let takes = if strategy == REPLAY { 2_000 } else { 3_000 };
        if let Some(running) = autotuner.running.pop_front() {
            let now = Instant::now();
            let times = CompletionTimes {
                begin: now,
                enqueued: Duration::from_micros(1),
                complete: Duration::from_micros(takes),
            };
            autotuner.last_end = None;
            autotuner.took(running.what, Some(times));
        }
    }
    assert_eq!((refused, autotuner.strategy(), autotuner.state()), (1, REPLAY, TuningState::Settled));
    // Refused although the file named it.
    let mut autotuner = Autotuner::new(&ALL);
    assert!(autotuner.start_with(GATED, Times { host: 1, total: 1 }));
    autotuner.cannot(GATED, None);
    assert_eq!(autotuner.strategy(), REPLAY);
    autotuner.next(true, true);
    assert_eq!(autotuner.state(), TuningState::Trying);
    // There is no other strategy.
    let mut autotuner = Autotuner::new(&ALL[1..2]);
    autotuner.cannot(GATED, None);
    assert_eq!((autotuner.strategy(), autotuner.next(true, true).0), (GATED, GATED));
}

#[test]
fn what_was_left_out_does_not_win_by_what_it_took_before() {
    // Everything becomes slower during the trial; the third strategy is left out before that.
    let mut driver = Driver::new(&ALL, |strategy, at| {
        let slower = if at < 22 { 10 } else { 13 };
        let takes = match strategy {
            LONG => 250,
            GATED => 205,
            _ => 200,
        };
        (10, slower * takes)
    });
    driver.submit(100);
    assert_eq!((driver.autotuner.state(), driver.autotuner.strategy()), (TuningState::Settled, REPLAY));
}

#[test]
fn among_strategies_that_take_as_long_the_current_one_stays_or_the_one_that_leaves_the_host_more_time() {
    let mut same = Driver::new(&ALL[..2], |_, at| (20, 1_100 + at as u64 % 2));
    assert_eq!(same.submit(100).autotuner.strategy(), REPLAY);
    let mut less =
        Driver::new(&ALL[..2], |strategy, at| (if strategy == GATED { 10 } else { 20 }, 1_100 + at as u64 % 2));
    assert_eq!(less.submit(90).autotuner.strategy(), GATED);
    assert_eq!(less.timed(), 2 * (1 + ROUNDS), "all rounds");
}

#[test]
fn a_single_strategy_is_never_timed() {
    let mut one = Driver::new(&ALL[..1], |_, _| (1, 1));
    one.submit(5_000);
    assert_eq!((one.timed(), one.autotuner.state()), (0, TuningState::Fixed));
}

#[test]
fn times_that_change_have_everything_tried_again() {
    let later = |strategy: Strategy, at: usize| match strategy {
        GATED => (10, 80_000),
        _ if at < 500 => (20, 100_000),
        _ => (20, 50_000),
    };
    let mut driver = Driver::new(&ALL[..2], later);
    assert_eq!(driver.submit(100).autotuner.strategy(), GATED);
    driver.submit(1_200);
    assert_eq!(driver.autotuner.strategy(), REPLAY, "after a while the others are tried again");
    let mut slow = Driver::new(&ALL[..2], |strategy, at| match strategy {
        GATED if at > 200 => (10, 300_000),
        GATED => (10, 80_000),
        _ => (20, 100_000),
    });
    assert_eq!(slow.submit(100).autotuner.strategy(), GATED);
    slow.submit(6 * LOOK as usize);
    assert_eq!(slow.autotuner.strategy(), REPLAY, "sooner where what is taken has got slower");
}

#[test]
fn strategies_that_were_about_as_fast_are_tried_again_soon_and_the_others_later() {
    let mut driver = Driver::new(&ALL, |strategy, at| match strategy {
        // The driver is slower in the beginning than later.
        REPLAY if at < 70 => (10, 9_700),
        REPLAY => (10, 13_000),
        GATED => (10, 10_000),
        _ => (10, 15_000),
    });
    driver.submit(70);
    assert_eq!((driver.autotuner.state(), driver.autotuner.strategy()), (TuningState::Settled, REPLAY));
    let trials = driver.autotuner.settled;
    driver.submit(170);
    assert_eq!((driver.autotuner.strategy(), driver.autotuner.settled), (GATED, trials + 1));
    let before = driver.taken.len();
    driver.submit(750);
    assert!(driver.taken[70..].iter().all(|(strategy, _)| *strategy != LONG), "the slow one is not tried again soon");
    assert!(driver.autotuner.report().strategies.iter().all(|strategy| strategy.timed > 0), "its times are known");
    driver.submit(1_200);
    assert!(driver.taken[before..].iter().any(|(strategy, _)| *strategy == LONG));
    // No other strategy was near.
    let mut alone = Driver::new(&ALL, |strategy, _| if strategy == GATED { (10, 10_000) } else { (10, 30_000) });
    alone.submit(100);
    let timed = alone.timed();
    alone.submit(128);
    assert_eq!((alone.autotuner.settled, alone.timed()), (1, timed + 2), "two looks");
}

#[test]
fn strategies_are_compared_round_by_round() {
    // The machine's speed changes from round to round. In one round of five, at the middle speed, the gated strategy is
    // the slower one.
    let mut driver = Driver::new(&ALL[..2], |strategy, at| {
        let machine = [2, 3, 4, 5, 6][at.div_ceil(2) % 5];
        let strategy = match (strategy, machine) {
            (GATED, 4) => 1_050,
            (GATED, _) => 900,
            _ => 1_000,
        };
        (10, machine * strategy)
    });
    driver.submit(40);
    assert_eq!((driver.autotuner.state(), driver.autotuner.strategy()), (TuningState::Settled, GATED));
}

#[test]
fn timing_becomes_rare() {
    let mut driver = Driver::new(&ALL, |strategy, _| if strategy == GATED { (10, 8_000) } else { (20, 12_000) });
    driver.submit(200_000);
    let share = driver.timed() as f64 / 200_000.0;
    assert!(share < 0.017, "{share}");
    let slow = driver.taken[100..].iter().filter(|(strategy, _)| *strategy != GATED).count();
    assert!(slow < 150, "{slow}");
}

#[test]
fn submissions_that_follow_each_other_are_timed_from_the_end_of_the_one_before() {
    let mut autotuner = Autotuner::new(&ALL[..2]);
    let begin = Instant::now();
    let at = |begin: Instant, end: u64| CompletionTimes {
        begin,
        enqueued: Duration::from_micros(5),
        complete: Duration::from_micros(end),
    };
    assert_eq!(autotuner.times(at(begin, 100)).total, 100_000);
    assert_eq!(autotuner.times(at(begin + Duration::from_micros(10), 140)).total, 50_000, "it waited for the first");
    assert_eq!(autotuner.times(at(begin + Duration::from_micros(500), 60)).total, 60_000);
}

#[test]
fn what_runs_after_others_is_timed_after_one_that_is() {
    let mut autotuner = Autotuner::new(&ALL[..2]);
    assert!(autotuner.next(true, true).1.is_none(), "the first is not timed");
    let (strategy, timer) = autotuner.next(false, true);
    assert_eq!((strategy, timer.is_some()), (REPLAY, true), "something runs, and nobody knows until when");
    assert_eq!(autotuner.running.back().unwrap().what, For::Link);
    autotuner.next(false, true);
    assert_eq!(autotuner.running.back().unwrap().what, For::Round { strategy: 0, round: 1 });
    assert!(autotuner.next(false, false).1.is_none(), "it waits for something else");
    autotuner.next(false, true);
    assert_eq!(autotuner.running.back().unwrap().what, For::Link);
    autotuner.next(false, true);
    assert_eq!(autotuner.running.back().unwrap().what, For::Round { strategy: 1, round: 1 });
}

#[test]
fn times_that_never_come_are_given_up() {
    let mut autotuner = Autotuner::new(&ALL[..2]);
    for _ in 0..50 * PATIENCE {
        autotuner.next(true, true);
        autotuner.collect();
    }
    assert_eq!(
        (autotuner.settled > 0, autotuner.strategy(), autotuner.found()),
        (true, REPLAY, None),
        "nothing was found"
    );
    assert!(autotuner.running.len() < 10, "{}", autotuner.running.len());
}

#[test]
fn what_was_found_before_is_started_with() {
    let times = Times { host: 1, total: 2 };
    let mut autotuner = Autotuner::new(&ALL);
    assert!(autotuner.start_with(LONG, times));
    assert_eq!(autotuner.found(), Some((LONG, times)));
    assert!(!Autotuner::new(&ALL[..2]).start_with(LONG, times), "there is no such strategy");
    let mut driver = Driver::new(&ALL, |strategy, _| if strategy == GATED { (10, 8_000) } else { (10, 10_000) });
    assert!(driver.autotuner.start_with(REPLAY, Times { host: 10_000, total: 10_000_000 }));
    driver.submit(1_000);
    assert_eq!(
        (driver.autotuner.strategy(), driver.autotuner.settled),
        (REPLAY, 0),
        "it counts as having been tried for long"
    );
    driver.submit(100);
    assert_eq!((driver.autotuner.strategy(), driver.autotuner.settled), (GATED, 1));
    let mut fixed = Autotuner::new(&ALL[..1]);
    assert!(fixed.start_with(REPLAY, times));
    assert_eq!(fixed.state(), TuningState::Fixed, "with one strategy there is nothing to find");
}

quickcheck! {
    /// With noise of up to a quarter, a strategy that takes twice as long is not chosen.
    fn noise_does_not_make_the_slow_fast(noise: Vec<u8>) -> TestResult {
        if noise.is_empty() {
            return TestResult::discard();
        }
        let takes = |strategy: Strategy, at: usize| {
            let usual = if strategy == GATED { 400 } else { 800 };
            (10, usual + u64::from(noise[at % noise.len()]) * usual / 1024)
        };
        let mut driver = Driver::new(&ALL, takes);
        driver.submit(200);
        TestResult::from_bool(driver.autotuner.strategy() == GATED)
    }
}

const FUSED: Strategy = Strategy { fused: true, ..REPLAY };

#[test]
fn without_a_choice_submissions_are_timed_only_as_long_as_somebody_wants_to_know() {
    let mut driver = Driver::new(&[REPLAY], |_, at| (1, if at == 0 { 1_000_000 } else { 100 }));
    driver.submit(500);
    assert_eq!((driver.timed(), driver.autotuner.spent()), (0, 0));
    driver.autotuner.watch();
    driver.submit(1);
    let before = driver.taken.len();
    driver.submit(1000);
    let timed = driver.timed();
    assert!((10..=40).contains(&timed), "{timed}");
    let spent = driver.autotuner.spent() / 100_000;
    assert!((900..=1000).contains(&spent), "{spent}");
    assert_eq!((driver.autotuner.state(), before), (TuningState::Fixed, 501));
    // Nothing is to be had: as before.
    assert!(driver.autotuner.withdraw_unless_taken());
    driver.submit(1000);
    assert_eq!(driver.timed(), timed);
}

#[test]
fn an_offer_is_tried_and_taken_or_withdrawn() {
    for (fused, is_taken, most_tried) in [(50, true, 100), (99, false, 100), (120, false, 100), (2000, false, 4)] {
        for strategies in [&ALL[..1], &ALL[..]] {
            let takes = move |strategy: Strategy, _| match strategy {
                FUSED => (10, fused),
                REPLAY => (10, 100),
                _ => (10, 300),
            };
            let mut driver = Driver::new(strategies, takes);
            driver.autotuner.watch();
            driver.submit(300);
            driver.autotuner.offer(FUSED);
            let before = driver.autotuner.settled;
            while driver.autotuner.settled == before {
                driver.submit(1);
            }
            assert_eq!(driver.autotuner.withdraw_unless_taken(), !is_taken, "{fused} {}", strategies.len());
            let tried = driver.taken.iter().filter(|(strategy, _)| strategy.fused).count();
            assert!(tried <= most_tried, "{tried} of {fused}");
            driver.submit(20);
            assert_eq!(driver.taken.last().unwrap().0, if is_taken { FUSED } else { REPLAY });
            let timed = driver.timed();
            driver.submit(1000);
            // With one strategy left, nothing is timed any more.
            assert_eq!(driver.timed() == timed, !is_taken && strategies.len() == 1);
        }
    }
}

/// Rule Z2: what a trial costs is a small share of the time that submissions took, however long each of them takes.
#[test]
fn a_slower_offer_costs_little_of_what_submissions_took() {
    // Some 4 % slower, twice as slow, and a hundred times, for submissions of 100 us to a second.
    for slower in [104, 130, 200, 290, 1_000, 3_000, 10_000] {
        for (usual, before) in
            [(100_u64, 6_000_000_u64), (100, 600_000), (10_000, 600_000), (100_000, 6_000_000), (1_000_000, 6_000_000)]
        {
            let takes = move |strategy: Strategy, _| (10, if strategy == FUSED { usual * slower / 100 } else { usual });
            let mut driver = Driver::new(&[REPLAY], takes);
            driver.autotuner.watch();
            // As long as a program runs before a form is built.
            driver.submit((before / usual) as usize + 70);
            driver.autotuner.offer(FUSED);
            while driver.autotuner.settled == 0 {
                driver.submit(1);
            }
            assert!(driver.autotuner.withdraw_unless_taken());
            let tried = driver.taken.iter().filter(|(strategy, _)| strategy.fused).count() as u64;
            let (once, spent) = (
                usual * (slower - 100) / 100,
                driver.taken.len() as u64 * usual + tried * usual * (slower - 100) / 100,
            );
            let lost = tried * once;
            // The first time tells only if it is very long, the second one always; each is known when it is over.
            let is_known_at_once = slower > 300 && once > spent.max(600_000) / 20;
            let most = if is_known_at_once { once } else { spent.max(600_000) / 60 + 2 * once };
            assert!(lost <= most, "{lost} of {spent}: {slower} % of {usual}, {tried} times");
            let report = driver.autotuner.report();
            assert!(report.strategies.iter().all(|of| of.total_nanos.is_some()), "{report:?}");
            assert_eq!(report.strategies.len(), 2, "{report:?}");
        }
    }
}

/// Rule Z2: also if one submission of four has little to do, whatever its form is.
#[test]
fn a_slower_offer_costs_little_where_some_submissions_are_short() {
    for short in 0..4 {
        let takes = move |strategy: Strategy, at| match strategy {
            _ if at % 4 == short => (10, 100),
            FUSED => (10, 100_000),
            _ => (10, 1_000),
        };
        let mut driver = Driver::new(&[REPLAY], takes);
        driver.autotuner.watch();
        driver.submit(8_000);
        driver.autotuner.offer(FUSED);
        while driver.autotuner.settled == 0 {
            driver.submit(1);
        }
        assert!(driver.autotuner.withdraw_unless_taken());
        let long = |(at, (strategy, _)): (usize, &(Strategy, bool))| strategy.fused && at % 4 != short;
        let tried = driver.taken.iter().enumerate().filter(|of| long(*of)).count();
        assert!(tried <= 5, "{short}: {tried} long submissions");
    }
}

/// Another program that takes half of the processor for two submissions does not make a form lose that takes four fifths.
#[test]
fn two_long_submissions_do_not_make_the_fastest_lose() {
    for burst in 0..60 {
        for strategies in [&ALL[..1], &ALL[..]] {
            let offered = 100;
            let takes = move |strategy: Strategy, at| {
                let usual = if strategy == FUSED { 80_000 } else { 100_000 };
                (10, if (offered + burst..offered + burst + 2).contains(&at) { 2 * usual } else { usual })
            };
            let mut driver = Driver::new(strategies, takes);
            driver.autotuner.watch();
            driver.submit(offered);
            driver.autotuner.offer(FUSED);
            driver.submit(200);
            assert_eq!(driver.autotuner.strategy(), FUSED, "{burst}: {:?}", driver.autotuner.report());
        }
    }
}

/// What a first run takes, with compiling, says nothing of the others: an offer that comes then does not leave a strategy out.
#[test]
fn an_offer_in_the_first_round_has_every_strategy_tried() {
    for after in 1..6 {
        let takes = |strategy: Strategy, at| match strategy {
            GATED if at < 6 => (10, 50_000),
            GATED => (10, 50),
            FUSED => (10, 90),
            _ => (10, 100),
        };
        let mut driver = Driver::new(&ALL, takes);
        driver.submit(after);
        driver.autotuner.offer(FUSED);
        driver.submit(400);
        assert_eq!(driver.autotuner.strategy(), GATED, "{after}: {:?}", driver.autotuner.report());
    }
}

#[test]
fn a_pinned_strategy_is_taken_until_it_is_withdrawn() {
    for strategies in [&ALL[..1], &ALL[..]] {
        let takes = |strategy: Strategy, _| if strategy == GATED { (10, 50) } else { (10, 100) };
        let mut driver = Driver::new(strategies, takes);
        driver.autotuner.pin(FUSED);
        driver.submit(500);
        assert!(driver.taken.iter().all(|taken| *taken == (FUSED, false)), "nothing is timed");
        assert_eq!(driver.autotuner.state(), TuningState::Fixed);
        driver.autotuner.withdraw();
        driver.autotuner.watch();
        driver.submit(400);
        let expected = if strategies.len() == 1 { REPLAY } else { GATED };
        assert_eq!(driver.taken.last().unwrap().0, expected);
        assert!(driver.taken[500..].iter().all(|(strategy, _)| !strategy.fused));
        assert!(driver.autotuner.spent() > 0, "so it is known when a build is worth its time");
        driver.autotuner.pin(FUSED);
        driver.submit(1);
        assert_eq!(driver.taken.last().unwrap(), &(FUSED, false));
    }
}

/// An update may take a fused form away at any time: while it is tried, when it is taken, and before anything has run.
#[test]
fn a_fused_form_can_be_withdrawn_at_any_time() {
    for after in [0, 1, 2, 20, 1000] {
        for strategies in [&ALL[..1], &ALL[..]] {
            let takes = |strategy: Strategy, _| match strategy {
                FUSED => (10, 50),
                GATED => (10, 80),
                _ => (10, 100),
            };
            let mut driver = Driver::new(strategies, takes);
            driver.submit(if after == 0 { 0 } else { 300 });
            driver.autotuner.offer(FUSED);
            driver.submit(after);
            driver.autotuner.withdraw();
            let submitted = driver.taken.len();
            driver.submit(500);
            assert!(driver.taken[submitted..].iter().all(|(strategy, _)| !strategy.fused), "{after}");
            let expected = if strategies.len() == 1 { REPLAY } else { GATED };
            assert_eq!(driver.taken.last().unwrap().0, expected, "{after}");
            driver.autotuner.offer(FUSED);
            driver.submit(500);
            assert!(!driver.autotuner.withdraw_unless_taken(), "{after}");
        }
    }
}

#[test]
fn an_offer_that_is_never_built_leaves_nothing() {
    let mut driver = Driver::new(&ALL, |_, _| (10, 100));
    driver.autotuner.watch();
    driver.submit(5);
    assert!(driver.autotuner.withdraw_unless_taken());
    driver.submit(1000);
    assert_eq!(driver.autotuner.state(), TuningState::Settled);
    assert_eq!(driver.autotuner.strategies.len(), 3);
}
