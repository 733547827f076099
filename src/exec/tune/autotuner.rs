//! The autotuner: finds the fastest strategy by timing the first submissions, and checks it again now and then.
//!
//! Only the program's own submissions are timed, and none of them waits for the autotuner. The first submission is not
//! timed, because drivers compile kernels when they first run. Then the strategies take turns, round after round; the
//! first round does not count. A strategy that is clearly slower is left out of later rounds, and a fused form that costs the program much
//! after the first one, too. When all rounds have ended, the fastest strategy is used. It is used until a check shows that its time has
//! changed, or until it is time for another trial. Trials become ever less frequent. Early trials include only the strategies that were about as
//! fast, because a driver often becomes faster or slower in the beginning.
//!
//! Strategies are compared round by round, because times change from one moment to the next, and then the times of all
//! strategies change together.
//!
//! The time of a submission goes from its begin, or from the end of the previous submission if that is later, to its
//! end. So it is right for a program, too, that always has several submissions in flight.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::cl::completion::completion_time::{CompletionTimer, CompletionTimes};
use crate::plan::Strategy;
use crate::report::{StrategyReport, TuningReport, TuningState};

mod tried;

use self::tried::Tried;

/// The largest number of rounds that count.
const ROUNDS: usize = 15;
/// (rounds, factor): after so many counted rounds, a strategy is left out if its best time is longer than the usual
/// time of the fastest by this factor. So a clearly slower strategy is left out early, a slightly slower one later.
const LEFT_OUT: [(usize, f64); 3] = [(3, 1.5), (6, 1.2), (9, 1.05)];
/// (nanoseconds, factor): the time of a shorter submission depends on how long the driver's threads take to wake up,
/// which varies. Such submissions need so many times the rounds.
const SHORT: (f64, usize) = (1e6, 4);
/// How much faster a strategy has to be than one before it in the list: for short submissions, and for others.
const FASTER: (f64, f64) = (1.04, 1.01);
/// Times that differ by less are equal, and the host's time decides: for short submissions, and for others.
const ALIKE: (f64, f64) = (1.02, 1.01);
/// A difference in the host's time counts from this factor on.
const LESS: f64 = 0.9;
/// One in so many submissions is timed, to see whether the time has changed.
const LOOK: u32 = 64;
/// After so many consecutive checks with a changed time, a trial begins: the first number at first, and at most the
/// second number, which is approached if trials find the same strategy again and again.
const CHECKS_BEFORE_TRIAL: (u8, u8) = (3, 96);
/// A time has changed if it differs by this factor.
const CHANGED: f64 = 1.5;
/// After how many submissions the next trial begins: the first time, and at most.
const AGAIN: (u32, u32) = (1 << 7, 1 << 16);
/// (submissions, factor): as long as there are at most so many submissions between trials, a trial has only the
/// strategies that took at most this factor of the fastest time.
const SOON: (u32, f64) = (1 << 10, 1.3);
/// A time that is missing after so many submissions is given up.
const PATIENCE: u32 = 256;
/// If there is nothing to choose, and only the time of all submissions is wanted: the first one that is timed. Earlier ones take
/// longer, because drivers compile kernels.
const FIRST_LOOK: u32 = 4;
/// (rounds, factor): after so many counted rounds, a fused form is left out if its best time is longer than the usual time of the
/// fastest by this factor. Nothing is known of it before, and one that does not fit may take a hundred times as long.
const HOPELESS: (usize, f64) = (2, 3.0);
/// A fused form that is slower may cost the program this share of the time of its submissions, or of so many nanoseconds if that is more: a hundredth
/// of a second is no cost. Where some of its submissions were short, as the work that they have may change, all of them may cost so many times that.
const MOST_LOST: (f64, f64, f64) = (1.0 / 60.0, 6e8, 3.0);

/// How long a submission took, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::exec) struct Times {
    /// Until the call returned.
    pub(in crate::exec) host: u64,
    /// Until the submission was complete.
    pub(in crate::exec) total: u64,
}

#[derive(Debug)]
pub(in crate::exec) struct Autotuner {
    strategies: Vec<Tried>,
    /// The strategy that is used if nothing is tried.
    now: usize,
    phase: Phase,
    /// Timers that run, oldest first.
    running: VecDeque<Running>,
    /// Whether the previous submission was timed.
    linked: bool,
    /// When the last timed submission ended.
    last_end: Option<Instant>,
    /// After how many submissions the next trial begins.
    again: u32,
    /// How many trials have ended.
    settled: usize,
    /// The number of submissions. It may wrap.
    submissions: u32,
    /// After so many consecutive checks with a changed time, a trial begins.
    strikes: u8,
    /// The strategy before a trial that such checks have begun.
    before_trial: Option<usize>,
    /// How long all submissions took, in nanoseconds, as far as is known from those that were timed.
    spent: u64,
    /// Whether `spent` is wanted: submissions are timed although there is nothing to choose.
    watches: bool,
    /// The number of the submission that was looked at last.
    looked_at: u32,
    /// Whether an earlier process has found that a fused form is the fastest.
    expects_fused: bool,
    /// What was found of a fused form that was not faster, and is gone.
    given_up: Vec<StrategyReport>,
}

#[derive(Debug)]
enum Phase {
    /// Nothing is timed.
    Fixed,
    /// Nothing has run yet.
    New,
    Trying {
        /// Strategies that are still to be used in this round, the next one last.
        rest: Vec<usize>,
        /// The number of rounds begun. The first does not count.
        round: usize,
        /// Strategies that may be the fastest.
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
    timer: Arc<CompletionTimer>,
    what: For,
    /// The number of the submission.
    at: u32,
}

/// What a time is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    /// To know when the next submission can begin.
    Link,
    Round {
        strategy: usize,
        round: usize,
    },
    /// It stands for so many submissions.
    Look {
        for_: u32,
    },
}

impl Autotuner {
    /// Takes a list of strategies. The first is used before anything is known. If there is only one, nothing is timed.
    pub(in crate::exec) fn new(strategies: &[Strategy]) -> Self {
        let phase = if strategies.len() > 1 { Phase::New } else { Phase::Fixed };
        Self {
            strategies: strategies.iter().map(|strategy| Tried::new(*strategy)).collect(),
            now: 0,
            phase,
            running: VecDeque::new(),
            linked: false,
            last_end: None,
            again: AGAIN.0,
            settled: 0,
            submissions: 0,
            strikes: CHECKS_BEFORE_TRIAL.0,
            before_trial: None,
            spent: 0,
            watches: false,
            looked_at: 0,
            expects_fused: false,
            given_up: Vec::new(),
        }
    }

    /// Times some submissions although there is nothing to choose, because [`spent`](Self::spent) is wanted.
    pub(in crate::exec) fn watch(&mut self) {
        self.watches = true;
        if matches!(self.phase, Phase::Fixed) {
            self.phase = Phase::Settled { look: FIRST_LOOK, again: u32::MAX, strikes: 0 };
        }
    }

    /// Returns how long all submissions took, in nanoseconds, as far as is known from those that were timed.
    pub(in crate::exec) fn spent(&self) -> u64 {
        self.spent
    }

    /// Notes that an earlier process has found that a fused form is the fastest. Returns true.
    pub(in crate::exec) fn expect_fused(&mut self) -> bool {
        self.expects_fused = true;
        true
    }

    pub(in crate::exec) fn expects_fused(&self) -> bool {
        self.expects_fused
    }

    /// Adds a strategy, which is tried soon.
    pub(in crate::exec) fn offer(&mut self, strategy: Strategy) {
        self.watches = false;
        self.given_up.clear();
        self.strategies.push(Tried::new(strategy));
        match &mut self.phase {
            // The first submission of the executable begins a trial.
            Phase::New => {}
            Phase::Settled { again, .. } => *again = 1,
            // What is timed now is of no use any more.
            Phase::Fixed | Phase::Trying { .. } => {
                self.running.clear();
                self.phase = Phase::Settled { look: LOOK, again: 1, strikes: 0 };
            }
        }
    }

    /// Adds a strategy, and takes it without a trial.
    pub(in crate::exec) fn pin(&mut self, strategy: Strategy) {
        self.watches = false;
        self.strategies.push(Tried::new(strategy));
        (self.now, self.phase, self.linked) = (self.strategies.len() - 1, Phase::Fixed, false);
        self.running.clear();
    }

    /// Takes back the strategy of a fused form that is no more.
    pub(in crate::exec) fn withdraw(&mut self) {
        let now = self.strategies[self.now].strategy;
        self.strategies.retain(|tried| !tried.strategy.fused);
        // What is timed now is of no use any more.
        self.running.clear();
        (self.linked, self.before_trial) = (false, None);
        let usable = |at: &usize| !self.strategies[*at].unusable;
        let known = |at: usize| Some((self.strategies[at].total()?, at));
        let timed = (0..self.strategies.len()).filter(usable).filter_map(known);
        let fastest = timed.min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, at)| at);
        let is_now = |tried: &Tried| tried.strategy == now;
        let other = || fastest.or_else(|| (0..self.strategies.len()).find(usable)).unwrap_or(0);
        self.now = self.strategies.iter().position(is_now).unwrap_or_else(other);
        self.phase = match (self.strategies.len(), fastest) {
            (1, _) => Phase::Fixed,
            (_, None) => Phase::New,
            (_, Some(_)) => Phase::Settled { look: LOOK, again: self.again, strikes: 0 },
        };
    }

    /// Takes back the strategy that was [offered](Self::offer) if it was not the fastest in the trial that has ended now, or if it
    /// is never to come. Returns whether it is gone.
    pub(in crate::exec) fn withdraw_unless_taken(&mut self) -> bool {
        self.watches = false;
        if self.strategies[self.now].strategy.fused {
            return false;
        }
        self.given_up =
            self.strategies.iter().filter(|tried| tried.strategy.fused).map(|tried| tried.report(false)).collect();
        self.strategies.retain(|tried| !tried.strategy.fused);
        if self.strategies.len() == 1 {
            (self.phase, self.linked) = (Phase::Fixed, false);
            self.running.clear();
        }
        true
    }

    /// Starts with a strategy that was found earlier. Returns whether the list has this strategy.
    pub(in crate::exec) fn start_with(&mut self, strategy: Strategy, times: Times) -> bool {
        let Some(at) = self.strategies.iter().position(|tried| tried.strategy == strategy) else { return false };
        if self.strategies.len() > 1 {
            self.now = at;
            self.strategies[at].times = vec![(0, times)];
            // The times of the other strategies are unknown, so the next trial has all of them.
            self.again = 2 * SOON.0;
            self.phase = Phase::Settled { look: LOOK, again: SOON.0, strikes: 0 };
        }
        true
    }

    /// Returns the strategy for a submission that is not timed.
    pub(in crate::exec) fn strategy(&self) -> Strategy {
        self.strategies[self.now].strategy
    }

    /// Returns the strategy for the next submission, and a timer if the submission is to be timed. `idle`: nothing of
    /// the executable runs. `ready`: the submission waits for nothing else.
    pub(in crate::exec) fn next(&mut self, idle: bool, ready: bool) -> (Strategy, Option<Arc<CompletionTimer>>) {
        if matches!(self.phase, Phase::Fixed) {
            return (self.strategy(), None);
        }
        self.submissions = self.submissions.wrapping_add(1);
        let wanted = match &mut self.phase {
            Phase::Fixed => None,
            Phase::New => {
                self.begin_trial();
                None
            }
            Phase::Trying { rest, round, .. } => {
                rest.last().map(|strategy| For::Round { strategy: *strategy, round: *round })
            }
            Phase::Settled { look, again, .. } => {
                (*look, *again) = (look.saturating_sub(1), again.saturating_sub(1));
                let looks = *look == 0;
                let for_ = self.submissions.wrapping_sub(self.looked_at);
                if *again == 0 && self.begin_trial() { None } else { looks.then_some(For::Look { for_ }) }
            }
        };
        let what = match wanted {
            Some(what) if ready && (idle || self.linked) => what,
            Some(_) if ready => For::Link,
            _ => {
                self.linked = false;
                return (self.strategy(), None);
            }
        };
        let strategy = match (what, &mut self.phase) {
            (For::Round { strategy, .. }, Phase::Trying { rest, .. }) => {
                rest.pop();
                strategy
            }
            (For::Look { .. }, Phase::Settled { look, .. }) => {
                *look = LOOK;
                self.looked_at = self.submissions;
                self.now
            }
            _ => self.now,
        };
        let timer = Arc::new(CompletionTimer::new());
        self.running.push_back(Running { timer: Arc::clone(&timer), what, at: self.submissions });
        self.linked = true;
        (self.strategies[strategy].strategy, Some(timer))
    }

    /// Notes that a strategy cannot be used. It is never used again, unless there is no other. `timer`: that of the
    /// submission that was to use it.
    pub(in crate::exec) fn cannot(&mut self, strategy: Strategy, timer: Option<&Arc<CompletionTimer>>) {
        self.running.retain(|running| !timer.is_some_and(|timer| Arc::ptr_eq(timer, &running.timer)));
        self.linked = false;
        let Some(at) = self.strategies.iter().position(|tried| tried.strategy == strategy) else { return };
        self.strategies[at].unusable = true;
        let Some(other) = self.strategies.iter().position(|tried| !tried.unusable) else { return };
        if self.now == at {
            self.now = other;
        }
        match &mut self.phase {
            Phase::Trying { rest, left, .. } => {
                rest.retain(|strategy| *strategy != at);
                left.retain(|strategy| *strategy != at);
                if left.is_empty() {
                    self.phase = Phase::Fixed;
                }
            }
            Phase::Settled { again, .. } => *again = 1,
            Phase::Fixed | Phase::New => {}
        }
        self.next_round();
    }

    /// Collects the times that are complete. Returns whether a trial has ended now.
    pub(in crate::exec) fn collect(&mut self) -> bool {
        let before = self.settled;
        while let Some(first) = self.running.front() {
            let (what, times) = (first.what, first.timer.read());
            let may_come = !first.timer.is_given_up();
            if times.is_none() && may_come && self.submissions.wrapping_sub(first.at) <= PATIENCE {
                break;
            }
            self.running.pop_front();
            self.took(what, times);
        }
        self.settled > before
    }

    /// Notes a time, or that it will never come.
    fn took(&mut self, what: For, times: Option<CompletionTimes>) {
        let times = times.map(|times| self.times(times));
        if let Some(times) = times {
            let for_ = if let For::Look { for_ } = what { u64::from(for_) } else { 1 };
            self.spent = self.spent.saturating_add(times.total.saturating_mul(for_));
        }
        match (what, times) {
            (For::Round { strategy, round }, Some(times)) => self.strategies[strategy].took(round, times),
            (For::Look { .. }, Some(times)) => self.looked(times),
            _ => {}
        }
        self.next_round();
    }

    /// Ends the round if all its submissions have ended.
    fn next_round(&mut self) {
        let is_round = |running: &Running| matches!(running.what, For::Round { .. });
        if let Phase::Trying { rest, .. } = &self.phase
            && rest.is_empty()
            && !self.running.iter().any(is_round)
        {
            self.end_round();
        }
    }

    /// Returns how long a submission took. The previous submission may still have run when it began.
    fn times(&mut self, CompletionTimes { begin, enqueued, complete }: CompletionTimes) -> Times {
        let end = begin + complete;
        let from = self.last_end.map_or(begin, |last| last.max(begin));
        self.last_end = Some(end);
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Times { host: nanos(enqueued), total: nanos(end.saturating_duration_since(from)) }
    }

    fn looked(&mut self, times: Times) {
        let usual = self.strategies[self.now].total();
        let Phase::Settled { strikes, again, .. } = &mut self.phase else { return };
        let is = times.total as f64;
        // A fused form may cost many times as much with other data, and a launch does not.
        if self.strategies[self.now].strategy.fused && usual.is_some_and(|usual| is > usual * HOPELESS.1) {
            *strikes = self.strikes - 1;
        }
        *strikes = match usual {
            Some(usual) if is > usual * CHANGED || is * CHANGED < usual => *strikes + 1,
            _ => 0,
        };
        if *strikes == self.strikes {
            // The next submission begins a trial.
            *again = 1;
            self.before_trial = Some(self.now);
        }
    }

    /// Begins a trial, and returns whether there is anything to try.
    fn begin_trial(&mut self) -> bool {
        let usual = self.strategies[self.now].total().filter(|_| self.before_trial.is_none() && self.again <= SOON.0);
        // What was never timed is tried.
        let is_near = |tried: &Tried| usual.is_none_or(|usual| tried.total().is_none_or(|is| is <= usual * SOON.1));
        let left = (0..self.strategies.len())
            .filter(|strategy| !self.strategies[*strategy].unusable && is_near(&self.strategies[*strategy]));
        let left: Vec<usize> = left.collect();
        if left.len() == 1 && usual.is_some() {
            // There is only one candidate.
            if let Phase::Settled { again, .. } = &mut self.phase {
                *again = self.again;
            }
            self.again = (self.again * 2).min(AGAIN.1);
            return false;
        }
        left.iter().for_each(|strategy| self.strategies[*strategy].begin());
        self.phase = Phase::Trying { rest: left.iter().rev().copied().collect(), round: 1, left };
        true
    }

    fn end_round(&mut self) {
        let fastest = self.fastest();
        let usual = self.strategies[fastest].total().unwrap_or(f64::INFINITY);
        let Phase::Trying { rest, round, left } = &mut self.phase else { return };
        let times = if usual < SHORT.0 { SHORT.1 } else { 1 };
        let slower = LEFT_OUT.iter().rev().find(|(rounds, _)| *round > *rounds * times);
        let hopeless = (*round > HOPELESS.0).then_some(HOPELESS.1);
        let share = (self.spent as f64).max(MOST_LOST.1) * MOST_LOST.0;
        // Nothing counts yet after the first round.
        let firsts = || left.iter().filter_map(|strategy| self.strategies[*strategy].first()).min_by(f64::total_cmp);
        let without = if *round == 1 { firsts().unwrap_or(f64::INFINITY) } else { usual };
        left.retain(|strategy| {
            let tried = &self.strategies[*strategy];
            let costs = tried.strategy.fused && tried.costs_too_much(without, share);
            if *strategy != fastest && costs {
                return false;
            }
            let slower = slower.map(|(_, slower)| *slower).or(hopeless.filter(|_| tried.strategy.fused));
            *strategy == fastest || slower.is_none_or(|slower| tried.best().is_some_and(|best| best <= usual * slower))
        });
        if *round > ROUNDS * times || left.len() == 1 {
            // If times change without a change of the fastest strategy, trials become rarer.
            self.strikes = match self.before_trial.take() {
                Some(before) if before == fastest => (self.strikes * 2).min(CHECKS_BEFORE_TRIAL.1),
                _ => CHECKS_BEFORE_TRIAL.0,
            };
            self.now = fastest;
            self.phase = Phase::Settled { look: LOOK, again: self.again, strikes: 0 };
            self.again = (self.again * 2).min(AGAIN.1);
            self.settled += 1;
            return;
        }
        // The strategies take turns to go first.
        let first = (*round - 1) % left.len();
        rest.extend(left[first..].iter().chain(&left[..first]).rev());
        *round += 1;
    }

    /// Returns the fastest strategy of those that were timed: the first, unless another is better.
    ///
    /// A strategy that was left out of the trial was timed before the others were, so it is not considered.
    fn fastest(&self) -> usize {
        let Phase::Trying { left, .. } = &self.phase else { return self.now };
        left.iter().fold(left.first().copied().unwrap_or(self.now), |best, strategy| {
            if self.is_better(*strategy, best) { *strategy } else { best }
        })
    }

    fn is_better(&self, strategy: usize, than: usize) -> bool {
        let (strategy, than) = (&self.strategies[strategy], &self.strategies[than]);
        let Some(other) = than.total() else { return strategy.total().is_some() };
        let (faster, alike) = if other < SHORT.0 { (FASTER.0, ALIKE.0) } else { (FASTER.1, ALIKE.1) };
        let ratio = |of: fn(&Times) -> u64| strategy.ratio_to(than, of);
        let is_better = |(total, host): (f64, f64)| total * faster < 1.0 || (total <= alike && host < LESS);
        ratio(|times| times.total).zip(ratio(|times| times.host)).is_some_and(is_better)
    }

    pub(in crate::exec) fn state(&self) -> TuningState {
        match self.phase {
            _ if self.strategies.len() == 1 => TuningState::Fixed,
            Phase::Fixed => TuningState::Fixed,
            Phase::New | Phase::Trying { .. } => TuningState::Trying,
            Phase::Settled { .. } => TuningState::Settled,
        }
    }

    /// Reports the strategies, their times, and which of them is used.
    pub(in crate::exec) fn report(&self) -> TuningReport {
        let strategies = self.strategies.iter().enumerate().map(|(at, tried)| tried.report(at == self.now));
        TuningReport {
            state: self.state(),
            strategies: strategies.chain(self.given_up.iter().cloned()).collect(),
            trials: self.settled,
        }
    }

    /// Returns the strategy that is used and its usual times, after a trial has ended.
    pub(in crate::exec) fn found(&self) -> Option<(Strategy, Times)> {
        Some((self.strategy(), self.strategies[self.now].usual()?)).filter(|_| self.state() == TuningState::Settled)
    }
}

#[cfg(test)]
mod tests;
