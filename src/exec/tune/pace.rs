//! How many turns of a loop are enqueued before the host looks at the condition again: what was measured decides.
//!
//! A turn that the host decides costs a wait for the device. A turn that is enqueued ahead costs the latch, and when the loop
//! has ended, turns that do nothing. Which is less depends on the driver and the body, so both are timed on the turns that the
//! program asks for.

use std::time::Instant;

/// The most turns that are enqueued ahead at once.
const MOST: u64 = 32;
/// The first turns ahead of a loop whose length nobody knows.
const FIRST: u64 = 4;
/// How many turns the host decides before others are tried. The first ones are not counted: drivers compile then.
const HOST_TURNS: u64 = 8;
const COLD: u64 = 2;
/// How many batches of turns are tried. The first is not counted.
const BATCHES: u32 = 4;
/// When so many turns were measured, old ones count half: a device that was busy or cold does not decide for ever.
const KEPT: u64 = 64;
/// One in so many runs of a loop begins the way that was slower.
const AGAIN: u64 = 32;

/// Time of turns.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    turns: u64,
    nanos: u64,
}

impl Sum {
    fn add(&mut self, turns: u64, nanos: u64) {
        if self.turns > KEPT {
            (self.turns, self.nanos) = (self.turns / 2, self.nanos / 2);
        }
        self.turns += turns;
        self.nanos = self.nanos.saturating_add(nanos);
    }

    /// Returns the nanoseconds of a turn. Turns that did nothing have cost time too.
    fn each(self) -> u64 {
        self.nanos / self.turns.max(1)
    }
}

/// What is known of the turns of a loop.
#[derive(Debug, Default)]
pub(in crate::exec) struct Pace {
    /// All turns are enqueued ahead, whatever they cost.
    always: bool,
    host: Sum,
    /// How many turns the host decided.
    turns: u64,
    ahead: Sum,
    batches: u32,
    /// How many runs of the loop have ended.
    runs: u64,
    /// How many turns the loop had last.
    last: u64,
}

impl Pace {
    pub(in crate::exec) fn new(always: bool) -> Self {
        Self { always, ..Self::default() }
    }

    /// Returns how many turns are enqueued ahead now, after `done` turns of a loop, and a batch of `batch` turns if those were
    /// enqueued ahead. 0: the host decides the next one.
    pub(in crate::exec) fn next(&self, done: u64, batch: u64) -> u64 {
        // The first turns of some runs measure again what was slower: four of the host's, or one batch.
        let again = !self.always && self.runs % AGAIN == AGAIN - 1 && done < FIRST && batch == 0;
        if self.goes_ahead() == again {
            return 0;
        }
        let expected = self.last.saturating_sub(done);
        let blind = if batch == 0 { FIRST } else { batch.saturating_mul(2) };
        // A loop has about as many turns as it had last.
        (if expected > 0 { expected } else { blind }).min(MOST).min(self.fit())
    }

    /// Returns how many turns take about as long as what is enqueued at once may take.
    fn fit(&self) -> u64 {
        let each = if self.ahead.turns > 0 { self.ahead.each() } else { self.host.each() };
        AT_ONCE.checked_div(each).map_or(u64::MAX, |turns| turns.max(1))
    }

    fn goes_ahead(&self) -> bool {
        if self.always {
            return true;
        }
        if self.turns < HOST_TURNS {
            return false;
        }
        self.batches < BATCHES || self.ahead.each() < self.host.each()
    }

    /// Returns whether turns ahead were faster. None if that is not known yet.
    pub(in crate::exec) fn is_ahead(&self) -> Option<bool> {
        (self.always || self.batches >= BATCHES).then(|| self.goes_ahead())
    }

    /// The host has decided a turn, which took so long with its decision.
    pub(in crate::exec) fn host_turn(&mut self, nanos: u64) {
        self.turns = self.turns.saturating_add(1);
        if self.turns > COLD {
            self.host.add(1, nanos);
        }
    }

    /// Turns were enqueued ahead, of which so many did something.
    pub(in crate::exec) fn batch(&mut self, ran: u64, nanos: u64) {
        self.batches = self.batches.saturating_add(1);
        if self.batches > 1 {
            self.ahead.add(ran, nanos);
        }
    }

    /// The loop has ended after so many turns.
    pub(in crate::exec) fn ended(&mut self, turns: u64) {
        self.runs = self.runs.wrapping_add(1);
        self.last = turns;
    }
}

/// How many turns of a loop one launch of a kernel does at most.
#[derive(Debug, Default)]
pub(in crate::exec) struct LaunchPace {
    /// Of the last launch: turns, and nanoseconds.
    last: Option<(u32, u64)>,
    /// How many launches came after it.
    untimed: u32,
}

/// The first launch has one turn, because nobody knows what a turn takes. The next ones may have so many more, and then so many times as
/// many as the one before.
const SECOND_LAUNCH: u32 = 16;
const MORE: u32 = 8;
/// The most turns of a launch. More would save little; and turns may take much longer from one to the next.
const MOST_IN_LAUNCH: u32 = 1024;
/// About how long a launch, and turns that are enqueued at once, may take, in nanoseconds. Drivers of GPUs with screens end kernels
/// after two seconds, and `cancel` waits for what is enqueued.
const AT_ONCE: u64 = 50_000_000;
/// For a launch of about so many nanoseconds nobody has to wait.
const BRIEF: u64 = AT_ONCE / 10;
/// The most launches one after the other that are not timed.
const MOST_UNTIMED: u32 = 3;

impl LaunchPace {
    /// Returns how many turns the next launch does at most.
    pub(in crate::exec) fn next(&self) -> u32 {
        let Some((turns, nanos)) = self.last else { return 1 };
        let fit = u64::from(turns).saturating_mul(AT_ONCE) / nanos.max(1);
        let more = turns.saturating_mul(MORE).clamp(SECOND_LAUNCH, MOST_IN_LAUNCH);
        u32::try_from(fit).unwrap_or(u32::MAX).clamp(1, more)
    }

    /// Returns whether so many turns are known to take so little time that nobody has to wait for them. One launch of some is timed all
    /// the same: turns may take longer later.
    pub(in crate::exec) fn is_brief(&mut self, turns: u32) -> bool {
        let is_brief = |(of, nanos): (u32, u64)| nanos.saturating_mul(u64::from(turns)) / u64::from(of.max(1)) <= BRIEF;
        let is_brief = self.last.is_some_and(is_brief) && self.untimed < MOST_UNTIMED;
        self.untimed = if is_brief { self.untimed + 1 } else { 0 };
        is_brief
    }

    /// A launch did so many turns, in so many nanoseconds. The first one of a submission has the time of what was before it too, so the
    /// next one may be too short; the one after that is not.
    pub(in crate::exec) fn launch(&mut self, turns: u32, nanos: u64) {
        if turns > 0 {
            self.last = Some((turns, nanos));
        }
    }
}

/// How many partitions the loops of a submission that have no condition enqueue before the host waits for the device.
#[derive(Debug)]
pub(in crate::exec) struct FillPace {
    most: usize,
    /// When the partitions began that the host has not waited for.
    since: Option<Instant>,
}

const FIRST_FILL: usize = 8;
/// More would save little, and a queue is not filled without end.
const MOST_FILL: usize = 64;

impl Default for FillPace {
    fn default() -> Self {
        Self { most: FIRST_FILL, since: None }
    }
}

impl FillPace {
    /// Returns whether so many partitions are enough for now.
    pub(in crate::exec) fn is_full(&mut self, partitions: usize) -> bool {
        self.since.get_or_insert_with(Instant::now);
        partitions >= self.most
    }

    /// The host has waited for so many partitions.
    pub(in crate::exec) fn waited(&mut self, partitions: usize) {
        // Loops with a condition alone wait in each turn.
        let Some(since) = self.since else { return };
        let now = Instant::now();
        self.since = Some(now);
        self.took(partitions, now.saturating_duration_since(since).as_nanos().try_into().unwrap_or(u64::MAX));
    }

    fn took(&mut self, partitions: usize, nanos: u64) {
        let fit = (partitions as u64).saturating_mul(AT_ONCE) / nanos.max(1);
        let more = self.most.saturating_mul(2).min(MOST_FILL);
        self.most = usize::try_from(fit).unwrap_or(usize::MAX).clamp(1, more);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        AGAIN, AT_ONCE, BATCHES, BRIEF, FIRST, FillPace, HOST_TURNS, LaunchPace, MORE, MOST, MOST_IN_LAUNCH, Pace,
        SECOND_LAUNCH,
    };

    /// Runs a loop, and returns the batches: 0 is a turn of the host's.
    fn run(pace: &mut Pace, turns: u64, host: u64, ahead: u64) -> Vec<u64> {
        let (mut done, mut batch, mut all) = (0, 0, Vec::new());
        loop {
            let next = pace.next(done, batch);
            if next == 0 && done == turns {
                break;
            }
            all.push(next);
            if next == 0 {
                pace.host_turn(host);
                done += 1;
            } else {
                let ran = next.min(turns - done);
                pace.batch(ran, ahead * next);
                done += ran;
                if done == turns {
                    break;
                }
            }
            batch = next;
        }
        pace.ended(done);
        all
    }

    #[test]
    fn both_are_tried_and_the_faster_one_stays() {
        let mut pace = Pace::new(false);
        let first = run(&mut pace, 1000, 100, 10);
        assert_eq!(first[..HOST_TURNS as usize], [0; HOST_TURNS as usize]);
        assert_eq!(first[HOST_TURNS as usize..][..4], [FIRST, 2 * FIRST, 4 * FIRST, MOST]);
        assert_eq!(pace.is_ahead(), Some(true));
        assert!(run(&mut pace, 1000, 100, 10).iter().all(|batch| (1..=MOST).contains(batch)));

        let mut pace = Pace::new(false);
        let tried = run(&mut pace, 1000, 10, 100).iter().filter(|batch| **batch > 0).count();
        assert_eq!((tried, pace.is_ahead()), (BATCHES as usize, Some(false)));
        assert!(run(&mut pace, 1000, 10, 100).iter().all(|batch| *batch == 0));
    }

    #[test]
    fn a_loop_that_is_as_long_as_before_has_no_turn_for_nothing() {
        let mut pace = Pace::new(true);
        assert_eq!(run(&mut pace, 10, 100, 10), [4, 8]);
        assert_eq!(run(&mut pace, 10, 100, 10), [10]);
        assert_eq!(run(&mut pace, 70, 100, 10), [10, 20, 32, 32]);
        assert_eq!(run(&mut pace, 70, 100, 10), [32, 32, 6]);
        assert_eq!(run(&mut pace, 0, 100, 10), [32]);
    }

    #[test]
    fn most_launches_of_few_turns_are_not_timed() {
        let mut pace = LaunchPace::default();
        assert!(!pace.is_brief(1), "nothing is known");
        pace.launch(10, 10 * 1_000);
        let found: Vec<bool> = (0..9).map(|_| pace.is_brief(100)).collect();
        assert_eq!(found, [true, true, true, false, true, true, true, false, true]);
        assert!(!pace.is_brief(1 + (BRIEF / 1_000) as u32));
        pace.launch(10, 10 * 1_000_000);
        assert!(!pace.is_brief(100), "turns take longer now");
    }

    /// So `cancel` finds a decision soon.
    #[test]
    fn few_turns_that_take_long_go_ahead() {
        let mut pace = Pace::new(false);
        let all = run(&mut pace, 100, AT_ONCE / 2, AT_ONCE / 5);
        assert_eq!(all[HOST_TURNS as usize..][..4], [2, 2, 4, 5]);
        assert!(all[12..].iter().all(|batch| *batch <= 5), "{all:?}");
        let mut pace = Pace::new(true);
        assert_eq!(run(&mut pace, 20, 0, 9 * AT_ONCE), [4, 8, 1, 1, 1, 1, 1, 1, 1, 1]);
    }

    /// What was slower is measured again now and then, so a wrong choice does not last.
    #[test]
    fn the_choice_follows_the_times() {
        let mut pace = Pace::new(false);
        run(&mut pace, 100, 100, 10);
        assert_eq!(pace.is_ahead(), Some(true));
        // Now the host is faster.
        let all: Vec<Vec<u64>> = (0..6 * AGAIN).map(|_| run(&mut pace, 100, 5, 50)).collect();
        assert_eq!(pace.is_ahead(), Some(false));
        let tried = all[all.len() - AGAIN as usize..].iter().flatten().filter(|batch| **batch > 0).count();
        assert_eq!(tried, 1);
        for _ in 0..6 * AGAIN {
            run(&mut pace, 100, 50, 5);
        }
        assert_eq!(pace.is_ahead(), Some(true));
    }

    /// The first turns, in which drivers compile, decide nothing.
    #[test]
    fn a_cold_begin_decides_nothing() {
        let mut pace = Pace::new(false);
        run(&mut pace, 1, 1_000_000, 100);
        run(&mut pace, 1, 1_000_000, 100);
        (0..8).for_each(|_| drop(run(&mut pace, 10, 10, 100)));
        assert_eq!(pace.is_ahead(), Some(false));
    }

    /// Turns that did nothing count against turns ahead.
    #[test]
    fn short_loops_stay_with_the_host() {
        let mut pace = Pace::new(false);
        for turns in [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1] {
            run(&mut pace, turns, 30, 40);
        }
        assert_eq!(pace.is_ahead(), Some(false));
    }

    /// Launches grow up to a bound, and shrink at once when turns take more time.
    #[test]
    fn launches_have_as_many_turns_as_fit_their_time() {
        let mut pace = LaunchPace::default();
        let mut run = |nanos: u64, most_done: u32| {
            let next = pace.next();
            let done = next.min(most_done);
            pace.launch(done, u64::from(done) * nanos);
            next
        };
        assert_eq!(run(100, u32::MAX), 1);
        assert_eq!(run(100, u32::MAX), SECOND_LAUNCH);
        assert_eq!(run(100, u32::MAX), SECOND_LAUNCH * MORE);
        assert_eq!(run(100, u32::MAX), MOST_IN_LAUNCH);
        assert_eq!(run(100, 0), MOST_IN_LAUNCH);
        // A short loop says how long turns take now.
        assert_eq!(run(AT_ONCE / 10, 5), MOST_IN_LAUNCH);
        assert_eq!(run(2 * AT_ONCE, 1), 10);
        // One turn takes more than the time of a launch.
        assert_eq!(run(2 * AT_ONCE, 1), 1);
        assert_eq!(run(100, u32::MAX), 1);
        assert_eq!(run(100, u32::MAX), SECOND_LAUNCH);
    }

    /// A queue has few partitions that take long, and many that do not.
    #[test]
    fn a_queue_is_filled_for_some_time() {
        let mut pace = FillPace::default();
        let mut run = |nanos: u64| {
            let full = (0..).find(|partitions| pace.is_full(*partitions)).unwrap();
            pace.took(full, nanos * full as u64);
            full
        };
        assert_eq!([(); 5].map(|()| run(1000)), [8, 16, 32, 64, 64]);
        assert_eq!([(); 3].map(|()| run(AT_ONCE / 10)), [64, 10, 10]);
        assert_eq!([(); 3].map(|()| run(3 * AT_ONCE)), [10, 1, 1]);
        assert_eq!([(); 3].map(|()| run(1000)), [1, 2, 4]);
    }
}
