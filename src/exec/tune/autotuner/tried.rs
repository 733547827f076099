//! What is known of one strategy.

use super::{HOPELESS, MOST_LOST, Times};
use crate::plan::Strategy;
use crate::report::StrategyReport;

#[derive(Debug)]
pub(super) struct Tried {
    pub(super) strategy: Strategy,
    /// Whether the driver could not use it.
    pub(super) unusable: bool,
    /// What it took in the first round of the last trial. It counts only for what a fused form has cost.
    first: Option<Times>,
    /// The counted rounds of the last trial, with their numbers.
    pub(super) times: Vec<(usize, Times)>,
}

impl Tried {
    pub(super) fn new(strategy: Strategy) -> Self {
        Self { strategy, unusable: false, first: None, times: Vec::new() }
    }

    /// Begins a trial.
    pub(super) fn begin(&mut self) {
        self.first = None;
        self.times.clear();
    }

    pub(super) fn took(&mut self, round: usize, times: Times) {
        match round {
            1 => self.first = Some(times),
            _ => self.times.push((round, times)),
        }
    }

    pub(super) fn report(&self, taken: bool) -> StrategyReport {
        // What was left out after one submission is known by that.
        let (strategy, times) = (self.strategy, self.usual().or(self.first));
        StrategyReport {
            path: strategy.path,
            commands_per_buffer: Some(strategy.chunk).filter(|chunk| *chunk > 0),
            queues: Some(strategy.queues).filter(|queues| *queues > 0),
            fused: strategy.fused,
            taken,
            timed: if self.times.is_empty() { usize::from(self.first.is_some()) } else { self.times.len() },
            host_nanos: times.map(|times| times.host),
            total_nanos: times.map(|times| times.total),
        }
    }

    fn median(&self, of: fn(&Times) -> u64) -> Option<u64> {
        let mut all: Vec<u64> = self.times.iter().map(|(_, times)| of(times)).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }

    /// Returns the median of the ratios of this strategy's times to another's in the same rounds.
    pub(super) fn ratio_to(&self, other: &Self, of: fn(&Times) -> u64) -> Option<f64> {
        let same = |round: &usize| other.times.binary_search_by_key(round, |(round, _)| *round).ok();
        let pairs = self.times.iter().filter_map(|(round, times)| Some((times, &other.times[same(round)?].1)));
        let mut all: Vec<f64> = pairs.map(|(mine, theirs)| of(mine) as f64 / of(theirs).max(1) as f64).collect();
        all.sort_unstable_by(f64::total_cmp);
        all.get(all.len() / 2).copied()
    }

    pub(super) fn usual(&self) -> Option<Times> {
        Some(Times { host: self.median(|times| times.host)?, total: self.median(|times| times.total)? })
    }

    pub(super) fn total(&self) -> Option<f64> {
        self.median(|times| times.total).map(|total| total as f64)
    }

    /// Returns what the round took that does not count.
    pub(super) fn first(&self) -> Option<f64> {
        self.first.map(|first| first.total as f64)
    }

    /// Whether all rounds, also the one that does not count, took longer than `usual` by more than a share of the program's time.
    pub(super) fn costs_too_much(&self, usual: f64, share: f64) -> bool {
        let all = || self.times.iter().map(|(_, times)| times.total as f64).chain(self.first());
        let Some(shortest) = all().min_by(f64::total_cmp) else { return false };
        let count = all().count() as f64;
        let lost = all().sum::<f64>() - usual * count;
        // Other programs may make one submission long, and less work one short.
        match self.times.is_empty() {
            true => shortest > usual * HOPELESS.1 && lost > share * MOST_LOST.2,
            false => (shortest - usual) * count > share || lost > share * MOST_LOST.2,
        }
    }

    pub(super) fn best(&self) -> Option<f64> {
        self.times.iter().map(|(_, times)| times.total).min().map(|total| total as f64)
    }
}
