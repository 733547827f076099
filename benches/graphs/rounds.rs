//! How variants of doing the same thing are measured together.

use std::time::{Duration, Instant};

use crate::Failure;

/// How long to try.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Only to see that it works.
    Quick,
    /// Where a round is a process.
    Few,
    Full,
}

/// A variant is stopped after it has taken this long in all.
const ROW: Duration = Duration::from_secs(2);
/// A variant is stopped after the process has grown by this many bytes.
const GROWTH: usize = 1 << 30;
/// The smallest number of rounds for a median, however long they take.
const FEW: usize = 3;

impl Effort {
    /// Returns how long variants may take to settle, all of them together.
    fn settle(self) -> Duration {
        Duration::from_secs(if self == Self::Quick { 1 } else { 10 })
    }

    /// Returns the number of rounds for a graph of `nodes`, besides the first round, which does not count.
    fn rounds(self, nodes: usize) -> usize {
        match (self, nodes) {
            (Self::Quick, _) => 4,
            (Self::Few, _) => 20,
            (Self::Full, ..=10_000) => 200,
            (Self::Full, _) => 60,
        }
    }
}

/// The measurements of one round: the durations of the phases that the variant has.
#[derive(Clone, Copy, Default)]
pub struct Times {
    pub record: Option<Duration>,
    pub finalize: Option<Duration>,
    pub submit: Option<Duration>,
    pub update: Option<Duration>,
    pub total: Duration,
    /// By how many bytes the process has grown.
    pub resident: Option<usize>,
    /// Whether the variant has not settled yet.
    pub trying: bool,
}

/// Measures one phase.
pub fn timed<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<(T, Duration), Failure> {
    let begin = Instant::now();
    let done = work()?;
    Ok((done, begin.elapsed()))
}

/// One variant.
pub struct Variant<'a> {
    pub name: &'static str,
    pub run: Box<dyn FnMut() -> Result<Times, Failure> + 'a>,
}

/// The rounds of one variant.
pub struct Measured {
    pub variant: &'static str,
    /// The rounds of each pass, in order. All variants begin with the same round, and some may end earlier.
    passes: Vec<Vec<Times>>,
}

/// Runs the variants by turns, round by round, in an order that changes. The first round does not count. Nor do the
/// rounds before all variants have settled, or have had time to.
pub fn interleave(variants: Vec<Variant<'_>>, effort: Effort, nodes: usize) -> Result<Vec<Measured>, Failure> {
    let mut variants: Vec<_> = variants.into_iter().map(|variant| (variant, Vec::new(), Duration::ZERO, 0)).collect();
    let mut order: Vec<usize> = (0..variants.len()).collect();
    let begin = Instant::now();
    let mut trying = true;
    let mut warm = vec![(Duration::ZERO, true); variants.len()];
    while trying && begin.elapsed() < effort.settle() {
        fastrand::shuffle(&mut order);
        for &at in &order {
            let (spent, trying) = &mut warm[at];
            if *trying || *spent < ROW {
                let (times, took) = timed(&mut variants[at].0.run)?;
                (*spent, *trying) = (*spent + took, times.trying);
            }
        }
        trying = warm.iter().any(|(_, trying)| *trying);
    }
    for round in 0..=effort.rounds(nodes) {
        // Each round has another order, so that no variant always comes after the same other.
        fastrand::shuffle(&mut order);
        for &at in &order {
            let (variant, rounds, spent, grown) = &mut variants[at];
            if rounds.len() >= FEW && (*spent > ROW || *grown > GROWTH) {
                continue;
            }
            let (before, begin) = (resident(), Instant::now());
            let times = (variant.run)()?;
            *spent += begin.elapsed();
            *grown += resident().saturating_sub(before);
            if round > 0 {
                rounds.push(times);
            }
        }
    }
    Ok(variants.into_iter().map(|(variant, rounds, ..)| Measured::new(variant.name, rounds)).collect())
}

/// Returns how many bytes of memory the process has, if the system reports that.
pub fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

/// Microseconds.
fn us(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// Returns the value below which `percent` of the values are.
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

    /// The rounds of all passes.
    pub fn rounds(&self) -> impl Iterator<Item = &Times> {
        self.passes.iter().flatten()
    }

    /// Adds the rounds of another pass of the same variant.
    pub fn append(&mut self, other: Self) {
        self.passes.extend(other.passes);
    }

    /// Returns a percentile of a phase in microseconds, if the variant has the phase.
    pub fn phase(&self, percent: usize, phase: impl Fn(&Times) -> Option<Duration>) -> Option<f64> {
        percentile(self.rounds().filter_map(phase).map(us).collect(), percent)
    }

    /// Returns the median of the bytes by which the process has grown.
    pub fn resident(&self) -> Option<f64> {
        percentile(self.rounds().filter_map(|round| round.resident).map(|bytes| bytes as f64).collect(), 50)
    }

    /// Returns the median of the ratios of this variant's rounds to the same rounds of another.
    pub fn ratio_to(&self, other: &Self) -> Option<f64> {
        let pairs = self.passes.iter().zip(&other.passes).flat_map(|(mine, theirs)| mine.iter().zip(theirs));
        percentile(pairs.map(|(mine, theirs)| us(mine.total) / us(theirs.total)).collect(), 50)
    }
}
