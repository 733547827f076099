//! Which way is fastest: found by timing the first submissions, and looked at again now and then.
//!
//! There are no submissions but the program's, and nobody waits here. The first is not timed, because drivers compile kernels when
//! they first run. Then the ways take turns, a round after the other, of which the first does not count. A way that is clearly slower
//! is left out of the rounds that follow. When all rounds are over the fastest stays, until a look shows that its time is no longer
//! what it was, or until it is time to try again, which comes ever less often: soon after the first trial only with the ways that were
//! about as fast, as a driver is at first not what it is later.
//!
//! Ways are compared round by round: times change from one moment to the next, and those of all ways together.
//!
//! The time of a submission is from its begin, or from the end of the one before if that was later, to its end: also for who always
//! has several under way it is what a submission takes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::report::ChoiceState;
use crate::cl::stamp::{Stamp, Stamped};
use crate::plan::Way;

/// Rounds that count, at most.
const ROUNDS: usize = 15;
/// After so many rounds that count a way is left out whose best time is so much the usual one of the best: what is clearly slower
/// soon, what is a little slower later.
const LEFT_OUT: [(usize, f64); 3] = [(3, 1.5), (6, 1.2), (9, 1.05)];
/// Submissions that are shorter, in nanoseconds, are as long as the threads of the driver take to wake up, now this and now that: so
/// many times the rounds tell them apart.
const SHORT: (f64, usize) = (1e6, 4);
/// By so much a way has to be faster than one that comes before it: of short submissions, and of others.
const FASTER: (f64, f64) = (1.04, 1.01);
/// Times that differ by less are alike, and the host's decides.
const ALIKE: (f64, f64) = (1.02, 1.01);
/// So much less of the host's time makes a difference.
const LESS: f64 = 0.9;
/// Every so many submissions one is timed, to see whether times are what they were.
const LOOK: u32 = 64;
/// So many looks in a row that show another time have everything tried again: at first, and, where that finds the same way again
/// and again, at most.
const STRIKES: (u8, u8) = (3, 96);
/// It is another time from this factor on.
const CHANGED: f64 = 1.5;
/// Submissions until ways are tried again: the first time, and the most.
const AGAIN: (u32, u32) = (1 << 7, 1 << 16);
/// Until submissions are so many between two trials, only ways that took at most so many times what the fastest did are tried again.
const SOON: (u32, f64) = (1 << 10, 1.3);
/// A time that has not come after so many submissions is given up.
const PATIENCE: u32 = 256;

/// What a submission took, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// Until the host was through.
    pub(super) host: u64,
    /// Until it was complete.
    pub(super) total: u64,
}

#[derive(Debug)]
pub(super) struct Choice {
    ways: Vec<Tried>,
    /// The one that is taken where nothing is tried.
    now: usize,
    phase: Phase,
    /// Stopwatches that run, oldest first.
    running: VecDeque<Running>,
    /// Whether the submission before was timed.
    linked: bool,
    /// When the last one ended that was timed.
    last_end: Option<Instant>,
    /// Submissions until ways are tried again, the next time.
    again: u32,
    /// How often it has settled.
    settled: usize,
    /// Submissions so far. It may wrap.
    submissions: u32,
    /// So many looks in a row that show another time have everything tried again.
    strikes: u8,
    /// The way before a trial that such looks have begun.
    struck: Option<usize>,
}

#[derive(Debug)]
struct Tried {
    way: Way,
    /// The driver could not do it.
    barred: bool,
    /// Of the rounds of the last trial that count, with their numbers.
    times: Vec<(usize, Times)>,
}

#[derive(Debug)]
enum Phase {
    /// Nothing is timed.
    Fixed,
    /// Nothing has run yet.
    New,
    Trying {
        /// Those that are in the round still, the next one last.
        rest: Vec<usize>,
        /// Rounds begun, the first of which does not count.
        round: usize,
        /// Those that may be the fastest.
        left: Vec<usize>,
    },
    Settled {
        look: u32,
        again: u32,
        strikes: u8,
    },
}

#[derive(Debug)]
struct Running {
    stamp: Arc<Stamp>,
    what: For,
    /// As which submission it began.
    at: u32,
}

/// What a time is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    /// To know when the next one can begin.
    Link,
    Round {
        way: usize,
        round: usize,
    },
    Look,
}

impl Choice {
    /// Among ways of which the first is taken before anything is known; with one, nothing is timed.
    pub(super) fn new(ways: &[Way]) -> Self {
        let phase = if ways.len() > 1 { Phase::New } else { Phase::Fixed };
        Self {
            ways: ways.iter().map(|way| Tried { way: *way, barred: false, times: Vec::new() }).collect(),
            now: 0,
            phase,
            running: VecDeque::new(),
            linked: false,
            last_end: None,
            again: AGAIN.0,
            settled: 0,
            submissions: 0,
            strikes: STRIKES.0,
            struck: None,
        }
    }

    /// Starts with a way that was found before. Whether it is one of the ways.
    pub(super) fn start_with(&mut self, way: Way, times: Times) -> bool {
        let Some(at) = self.ways.iter().position(|tried| tried.way == way) else { return false };
        if self.ways.len() > 1 {
            self.now = at;
            self.ways[at].times = vec![(0, times)];
            // Nobody knows which of the others are near.
            self.again = 2 * SOON.0;
            self.phase = Phase::Settled { look: LOOK, again: SOON.0, strikes: 0 };
        }
        true
    }

    /// The way to take for a submission that is not timed.
    pub(super) fn way(&self) -> Way {
        self.ways[self.now].way
    }

    /// The way to take for the next submission, and a stopwatch if it is to be timed. `idle`: nothing of the executable runs.
    /// `ready`: it waits for nothing else.
    pub(super) fn next(&mut self, idle: bool, ready: bool) -> (Way, Option<Arc<Stamp>>) {
        if matches!(self.phase, Phase::Fixed) {
            return (self.way(), None);
        }
        self.submissions = self.submissions.wrapping_add(1);
        let wanted = match &mut self.phase {
            Phase::Fixed => None,
            Phase::New => {
                self.begin_trial();
                None
            }
            Phase::Trying { rest, round, .. } => rest.last().map(|way| For::Round { way: *way, round: *round }),
            Phase::Settled { look, again, .. } => {
                (*look, *again) = (look.saturating_sub(1), again.saturating_sub(1));
                let looks = *look == 0;
                if *again == 0 && self.begin_trial() { None } else { looks.then_some(For::Look) }
            }
        };
        let what = match wanted {
            Some(what) if ready && (idle || self.linked) => what,
            Some(_) if ready => For::Link,
            _ => {
                self.linked = false;
                return (self.way(), None);
            }
        };
        let way = match (what, &mut self.phase) {
            (For::Round { way, .. }, Phase::Trying { rest, .. }) => {
                rest.pop();
                way
            }
            (For::Look, Phase::Settled { look, .. }) => {
                *look = LOOK;
                self.now
            }
            _ => self.now,
        };
        let stamp = Arc::new(Stamp::new());
        self.running.push_back(Running { stamp: Arc::clone(&stamp), what, at: self.submissions });
        self.linked = true;
        (self.ways[way].way, Some(stamp))
    }

    /// A way cannot be taken, and never is again if there are others. `stamp`: of the submission that was to take it.
    pub(super) fn cannot(&mut self, way: Way, stamp: Option<&Arc<Stamp>>) {
        self.running.retain(|running| !stamp.is_some_and(|stamp| Arc::ptr_eq(stamp, &running.stamp)));
        self.linked = false;
        let Some(at) = self.ways.iter().position(|tried| tried.way == way) else { return };
        self.ways[at].barred = true;
        let Some(other) = self.ways.iter().position(|tried| !tried.barred) else { return };
        if self.now == at {
            self.now = other;
        }
        match &mut self.phase {
            Phase::Trying { rest, left, .. } => {
                rest.retain(|way| *way != at);
                left.retain(|way| *way != at);
                if left.is_empty() {
                    self.phase = Phase::Fixed;
                }
            }
            Phase::Settled { again, .. } => *again = 1,
            Phase::Fixed | Phase::New => {}
        }
        self.next_round();
    }

    /// Takes down the times that have come. Whether it has settled now.
    pub(super) fn collect(&mut self) -> bool {
        let before = self.settled;
        while let Some(first) = self.running.front() {
            let (what, stamped) = (first.what, first.stamp.read());
            if stamped.is_none() && self.submissions.wrapping_sub(first.at) <= PATIENCE {
                break;
            }
            self.running.pop_front();
            self.took(what, stamped);
        }
        self.settled > before
    }

    /// A time has come, or never will.
    fn took(&mut self, what: For, stamped: Option<Stamped>) {
        let times = stamped.map(|stamped| self.times(stamped));
        match (what, times) {
            (For::Round { way, round }, Some(times)) if round > 1 => self.ways[way].times.push((round, times)),
            (For::Look, Some(times)) => self.looked(times),
            _ => {}
        }
        self.next_round();
    }

    /// Ends the round if it is through.
    fn next_round(&mut self) {
        let is_round = |running: &Running| matches!(running.what, For::Round { .. });
        if let Phase::Trying { rest, .. } = &self.phase
            && rest.is_empty()
            && !self.running.iter().any(is_round)
        {
            self.end_round();
        }
    }

    /// What a submission took, of which the one before may have run still when it began.
    fn times(&mut self, Stamped { begin, enqueued, complete }: Stamped) -> Times {
        let end = begin + complete;
        let from = self.last_end.map_or(begin, |last| last.max(begin));
        self.last_end = Some(end);
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Times { host: nanos(enqueued), total: nanos(end.saturating_duration_since(from)) }
    }

    fn looked(&mut self, times: Times) {
        let usual = self.ways[self.now].total();
        let Phase::Settled { strikes, again, .. } = &mut self.phase else { return };
        let is = times.total as f64;
        *strikes = match usual {
            Some(usual) if is > usual * CHANGED || is * CHANGED < usual => *strikes + 1,
            _ => 0,
        };
        if *strikes == self.strikes {
            // The next submission begins a trial.
            *again = 1;
            self.struck = Some(self.now);
        }
    }

    /// Whether there is anything to try now.
    fn begin_trial(&mut self) -> bool {
        let usual = self.ways[self.now].total().filter(|_| self.struck.is_none() && self.again <= SOON.0);
        let is_near = |tried: &Tried| usual.is_none_or(|usual| tried.total().is_some_and(|is| is <= usual * SOON.1));
        let left = (0..self.ways.len()).filter(|way| !self.ways[*way].barred && is_near(&self.ways[*way]));
        let left: Vec<usize> = left.collect();
        if left.len() == 1 && usual.is_some() {
            // Nothing to try.
            if let Phase::Settled { again, .. } = &mut self.phase {
                *again = self.again;
            }
            self.again = (self.again * 2).min(AGAIN.1);
            return false;
        }
        left.iter().for_each(|way| self.ways[*way].times.clear());
        self.phase = Phase::Trying { rest: left.iter().rev().copied().collect(), round: 1, left };
        true
    }

    fn end_round(&mut self) {
        let fastest = self.fastest();
        let usual = self.ways[fastest].total().unwrap_or(f64::INFINITY);
        let Phase::Trying { rest, round, left } = &mut self.phase else { return };
        let times = if usual < SHORT.0 { SHORT.1 } else { 1 };
        let slower = LEFT_OUT.iter().rev().find(|(rounds, _)| *round > *rounds * times);
        if let Some((_, slower)) = slower {
            left.retain(|way| *way == fastest || self.ways[*way].best().is_some_and(|best| best <= usual * slower));
        }
        if *round > ROUNDS * times || left.len() == 1 {
            // Somebody whose times change by themselves is not asked all the time.
            self.strikes = match self.struck.take() {
                Some(before) if before == fastest => (self.strikes * 2).min(STRIKES.1),
                _ => STRIKES.0,
            };
            self.now = fastest;
            self.phase = Phase::Settled { look: LOOK, again: self.again, strikes: 0 };
            self.again = (self.again * 2).min(AGAIN.1);
            self.settled += 1;
            return;
        }
        // Each goes first in turn.
        let first = *round % left.len();
        rest.extend(left[first..].iter().chain(&left[..first]).rev());
        *round += 1;
    }

    /// The fastest way of those that were timed: the first, unless another is better.
    ///
    /// What was left out of the trial was timed before the others were, and does not come back.
    fn fastest(&self) -> usize {
        let Phase::Trying { left, .. } = &self.phase else { return self.now };
        left.iter().fold(left.first().copied().unwrap_or(self.now), |best, way| {
            if self.is_better(*way, best) { *way } else { best }
        })
    }

    fn is_better(&self, way: usize, than: usize) -> bool {
        let (way, than) = (&self.ways[way], &self.ways[than]);
        let Some(other) = than.total() else { return way.total().is_some() };
        let (faster, alike) = if other < SHORT.0 { (FASTER.0, ALIKE.0) } else { (FASTER.1, ALIKE.1) };
        let ratio = |of: fn(&Times) -> u64| way.ratio_to(than, of);
        let is_better = |(total, host): (f64, f64)| total * faster < 1.0 || (total <= alike && host < LESS);
        ratio(|times| times.total).zip(ratio(|times| times.host)).is_some_and(is_better)
    }

    /// How often it has settled.
    pub(super) fn settled(&self) -> usize {
        self.settled
    }

    pub(super) fn state(&self) -> ChoiceState {
        match self.phase {
            Phase::Fixed => ChoiceState::Fixed,
            Phase::New | Phase::Trying { .. } => ChoiceState::Trying,
            Phase::Settled { .. } => ChoiceState::Settled,
        }
    }

    /// The ways, which is taken, and of how many submissions the usual times are.
    pub(super) fn ways(&self) -> impl Iterator<Item = (Way, bool, usize, Option<Times>)> {
        self.ways.iter().enumerate().map(|(at, tried)| (tried.way, at == self.now, tried.times.len(), tried.usual()))
    }

    /// The way that is taken and its usual times, once it has settled.
    pub(super) fn found(&self) -> Option<(Way, Times)> {
        Some((self.way(), self.ways[self.now].usual()?)).filter(|_| self.state() == ChoiceState::Settled)
    }
}

impl Tried {
    fn median(&self, of: fn(&Times) -> u64) -> Option<u64> {
        let mut all: Vec<u64> = self.times.iter().map(|(_, times)| of(times)).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }

    /// The median of its times divided by another's of the same round.
    fn ratio_to(&self, other: &Self, of: fn(&Times) -> u64) -> Option<f64> {
        let same = |round: &usize| other.times.binary_search_by_key(round, |(round, _)| *round).ok();
        let pairs = self.times.iter().filter_map(|(round, times)| Some((times, &other.times[same(round)?].1)));
        let mut all: Vec<f64> = pairs.map(|(mine, theirs)| of(mine) as f64 / of(theirs).max(1) as f64).collect();
        all.sort_unstable_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    }

    fn usual(&self) -> Option<Times> {
        Some(Times { host: self.median(|times| times.host)?, total: self.median(|times| times.total)? })
    }

    fn total(&self) -> Option<f64> {
        self.median(|times| times.total).map(|total| total as f64)
    }

    fn best(&self) -> Option<f64> {
        self.times.iter().map(|(_, times)| times.total).min().map(|total| total as f64)
    }
}

#[cfg(test)]
mod tests;
