//! How submissions are enqueued, and what the autotuner has found.

use std::fmt;

use crate::plan::Path;
use crate::report::summary::count;

/// How submissions are enqueued, and what timing has shown. For an automatic path it changes as submissions are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TuningReport {
    /// The state of the autotuner.
    pub state: TuningState,
    /// The strategies to choose from. The first is used before anything was timed. The last may be one with fused kernels that was timed, and
    /// given up because it was not faster ([`FusingState::NotFaster`](crate::FusingState::NotFaster)).
    pub strategies: Vec<StrategyReport>,
    /// How many trials have ended. If other strategies were about as fast as the chosen one, these are timed again
    /// soon.
    pub trials: usize,
}

/// The state of the autotuner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TuningState {
    /// There is only one strategy, or nothing is to be timed.
    #[default]
    Fixed,
    /// Submissions are being timed.
    Trying,
    /// The fastest strategy was found. It is checked now and then.
    Settled,
}

impl fmt::Display for TuningState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed => "fixed",
            Self::Trying => "being timed",
            Self::Settled => "settled",
        })
    }
}

/// One strategy for enqueueing submissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StrategyReport {
    /// The path. With [`Path::Native`], commands that are in no command buffer are replayed.
    pub path: Path,
    /// The largest number of commands in one command buffer. None if the path has no command buffers.
    pub commands_per_buffer: Option<usize>,
    /// The number of queues. None if there is only one.
    pub queues: Option<usize>,
    /// Whether small launches are fused in it ([`Fuse::Auto`](crate::Fuse::Auto)).
    pub fused: bool,
    /// Whether submissions use this strategy now, except those that are timed.
    pub taken: bool,
    /// How many timed submissions count.
    pub timed: usize,
    /// How long the host took for one submission, in nanoseconds (median).
    pub host_nanos: Option<u64>,
    /// How long one submission took, in nanoseconds (median): from its begin, or from the end of the one before, to its
    /// end.
    pub total_nanos: Option<u64>,
}

impl fmt::Display for StrategyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)?;
        if self.fused {
            f.write_str(", fused")?;
        }
        if let Some(queues) = self.queues {
            write!(f, " ({queues})")?;
        }
        if let Some(most) = self.commands_per_buffer {
            write!(f, " of up to {}", count(most, "command"))?;
        }
        let micros = |nanos: u64| nanos as f64 / 1e3;
        match (self.total_nanos, self.host_nanos) {
            (Some(total), Some(host)) => {
                // Each is the median of its own.
                let (total, host) = (micros(total), micros(host.min(total)));
                write!(f, ": {total:.1} us, of which {host:.1} us on the host ({} timed)", self.timed)
            }
            _ => Ok(()),
        }
    }
}

impl TuningReport {
    /// Returns how long a submission takes with fused kernels, and without, in nanoseconds. None if it is not known of both.
    pub(super) fn fused_and_unfused(&self) -> Option<[u64; 2]> {
        let least = |fused: bool| {
            let those = self.strategies.iter().filter(|strategy| strategy.fused == fused);
            those.filter_map(|strategy| strategy.total_nanos).min()
        };
        Some([least(true)?, least(false)?])
    }
}

impl fmt::Display for TuningReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.strategies.iter().filter(|strategy| strategy.taken);
        let text = match self.state {
            TuningState::Fixed => {
                // The segments say the rest.
                for strategy in taken.filter(|strategy| matches!(strategy.path, Path::Gated | Path::Queues)) {
                    writeln!(f, "tuning     {strategy}")?;
                }
                return Ok(());
            }
            TuningState::Trying => "being timed",
            TuningState::Settled => "the fastest when timed",
        };
        for strategy in taken {
            writeln!(f, "tuning     {strategy}: {text}")?;
        }
        for strategy in self.strategies.iter().filter(|strategy| !strategy.taken) {
            writeln!(f, "           {strategy}")?;
        }
        Ok(())
    }
}
