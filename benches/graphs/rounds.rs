//! How ways of doing the same thing are measured beside each other.

use std::time::{Duration, Instant};

use crate::Failure;

/// How long to try.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    Quick,
    Full,
}

/// A way is stopped when it has taken this long in all.
const ROW: Duration = Duration::from_secs(2);
/// A way is stopped when the process has grown by this many bytes.
const GROWTH: usize = 1 << 30;
/// How long ways may take to settle, all of them together.
const SETTLE: Duration = Duration::from_secs(10);
/// Rounds without which there is no median to speak of, however long they take.
const FEW: usize = 3;

impl Effort {
    /// Rounds for a graph of `nodes`, besides the first, which is not counted.
    fn rounds(self, nodes: usize) -> usize {
        match (self, nodes) {
            (Self::Quick, _) => 20,
            (Self::Full, ..=10_000) => 200,
            (Self::Full, _) => 60,
        }
    }
}

/// What was measured in one round: durations of the phases that the way has.
#[derive(Clone, Copy, Default)]
pub struct Times {
    pub record: Option<Duration>,
    pub finalize: Option<Duration>,
    pub submit: Option<Duration>,
    pub update: Option<Duration>,
    pub total: Duration,
    /// Bytes that the process has more.
    pub resident: Option<usize>,
    /// Whether the way has not settled yet.
    pub trying: bool,
}

/// Measures one phase.
pub fn timed<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<(T, Duration), Failure> {
    let begin = Instant::now();
    let done = work()?;
    Ok((done, begin.elapsed()))
}

/// One way of doing it.
pub struct Way<'a> {
    pub variant: &'static str,
    pub run: Box<dyn FnMut() -> Result<Times, Failure> + 'a>,
}

/// The rounds of one way.
pub struct Measured {
    pub variant: &'static str,
    /// Of each pass, in order. All ways begin with the same round, and one may end before others.
    passes: Vec<Vec<Times>>,
}

/// Runs the ways in turn, round by round, in an order that changes. The first round is not counted, nor are those before, until all
/// ways have settled or have had time to.
pub fn interleave(ways: Vec<Way<'_>>, effort: Effort, nodes: usize) -> Result<Vec<Measured>, Failure> {
    let mut ways: Vec<_> = ways.into_iter().map(|way| (way, Vec::new(), Duration::ZERO, 0)).collect();
    let mut order: Vec<usize> = (0..ways.len()).collect();
    let begin = Instant::now();
    let mut trying = true;
    let mut warm = vec![(Duration::ZERO, true); ways.len()];
    while trying && begin.elapsed() < SETTLE {
        fastrand::shuffle(&mut order);
        for &at in &order {
            let (spent, trying) = &mut warm[at];
            if *trying || *spent < ROW {
                let (times, took) = timed(&mut ways[at].0.run)?;
                (*spent, *trying) = (*spent + took, times.trying);
            }
        }
        trying = warm.iter().any(|(_, trying)| *trying);
    }
    for round in 0..=effort.rounds(nodes) {
        // Another order each round, so that none always comes behind the same other.
        fastrand::shuffle(&mut order);
        for &at in &order {
            let (way, rounds, spent, grown) = &mut ways[at];
            if rounds.len() >= FEW && (*spent > ROW || *grown > GROWTH) {
                continue;
            }
            let (before, begin) = (resident(), Instant::now());
            let times = (way.run)()?;
            *spent += begin.elapsed();
            *grown += resident().saturating_sub(before);
            if round > 0 {
                rounds.push(times);
            }
        }
    }
    Ok(ways.into_iter().map(|(way, rounds, ..)| Measured::new(way.variant, rounds)).collect())
}

/// Bytes of memory that the process has, where the system tells.
pub fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

/// Microseconds.
fn us(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// The value below which `percent` of the values are.
fn percentile(mut values: Vec<f64>, percent: usize) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    Some(values[last * percent / 100])
}

impl Measured {
    /// The rounds of one pass.
    pub fn new(variant: &'static str, rounds: Vec<Times>) -> Self {
        Self { variant, passes: vec![rounds] }
    }

    /// Those of all passes.
    pub fn rounds(&self) -> impl Iterator<Item = &Times> {
        self.passes.iter().flatten()
    }

    /// Takes the rounds of another pass of the same way.
    pub fn append(&mut self, other: Self) {
        self.passes.extend(other.passes);
    }

    /// A percentile of a phase in microseconds, if the way has the phase.
    pub fn phase(&self, percent: usize, phase: impl Fn(&Times) -> Option<Duration>) -> Option<f64> {
        percentile(self.rounds().filter_map(phase).map(us).collect(), percent)
    }

    /// The median of the bytes by which the process grew.
    pub fn resident(&self) -> Option<f64> {
        percentile(self.rounds().filter_map(|round| round.resident).map(|bytes| bytes as f64).collect(), 50)
    }

    /// The median of the ratios of this way's rounds to the same rounds of another.
    pub fn ratio_to(&self, other: &Self) -> Option<f64> {
        let pairs = self.passes.iter().zip(&other.passes).flat_map(|(mine, theirs)| mine.iter().zip(theirs));
        percentile(pairs.map(|(mine, theirs)| us(mine.total) / us(theirs.total)).collect(), 50)
    }
}
