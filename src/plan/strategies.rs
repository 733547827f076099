//! The strategies for enqueueing a submission. The autotuner finds the fastest of them.

use std::fmt;

use super::exclusions::{Exclusion, Facts};
use super::{Path, PathReason, Segment};
use crate::quirks;

/// The largest number of commands in one command buffer if the program does not say.
pub(crate) const CHUNK: usize = 64;

/// The same for updatable executables, on drivers that change few long command buffers faster than many short ones.
const UPDATED_CHUNK: usize = 256;

/// The same for drivers on which long command buffers may be faster.
const LONG_CHUNK: usize = 1024;

/// From this number of commands on, a gate is assumed to be faster before anything is measured, on drivers where it is
/// known to pay.
const GATED: usize = 100;

/// How the commands of a submission are enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Strategy {
    /// Never [`Path::Auto`].
    pub(crate) path: Path,
    /// The largest number of commands in one command buffer. 0 if there are no command buffers.
    pub(crate) chunk: usize,
    /// The number of queues if there are several; otherwise 0.
    pub(crate) queues: usize,
    /// Whether it enqueues the graph with its small launches fused. No plan has such a strategy: it comes when the fused kernels are
    /// built.
    pub(crate) fused: bool,
}

impl Strategy {
    pub(crate) fn by(path: Path) -> Self {
        Self { path, chunk: 0, queues: 0, fused: false }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)?;
        if self.fused {
            f.write_str(", fused")?;
        }
        match (self.chunk, self.queues) {
            (0, 0) => Ok(()),
            (0, queues) => write!(f, " ({queues})"),
            (chunk, _) => write!(f, " of {chunk}"),
        }
    }
}

/// Returns the strategies. The first one is used before anything is measured. There is only one if there is nothing to
/// choose. `excluded` gets the paths that were wanted and are excluded; a graph that cannot use several queues has none
/// here.
pub(super) fn strategies(
    facts: &Facts<'_>,
    segments: &[Segment],
    queues: Result<usize, Exclusion>,
    excluded: &mut Vec<(Path, Exclusion)>,
) -> Vec<Strategy> {
    let Facts { steps, caps, options, .. } = *facts;
    let longest =
        segments.iter().filter(|segment| segment.path == Path::Native).map(|segment| segment.steps.len()).max();
    let usual = if options.updatable && quirks::updates_long_buffers_faster(caps) { UPDATED_CHUNK } else { CHUNK };
    let base = match longest {
        Some(_) => Strategy { chunk: options.chunk.unwrap_or(usual).max(1), ..Strategy::by(Path::Native) },
        None => Strategy::by(Path::Replay),
    };
    let gated = facts.no_gate().map_or(Ok(Strategy::by(Path::Gated)), Err);
    let queues = queues.map(|queues| Strategy { queues, ..Strategy::by(Path::Queues) });
    for (path, strategy) in [(Path::Queues, &queues), (Path::Gated, &gated)] {
        excluded.extend(strategy.as_ref().err().filter(|_| facts.wants(path)).map(|why| (path, *why)));
    }
    match options.path {
        Path::Gated => return vec![gated.unwrap_or(base)],
        Path::Queues => return vec![queues.unwrap_or(base)],
        Path::Auto => {}
        Path::Native | Path::Replay => return vec![base],
    }
    let mut strategies = Vec::new();
    strategies.extend(gated.ok().filter(|_| steps.len() >= GATED && quirks::gate_pays(caps)));
    strategies.push(base);
    if !options.autotune {
        strategies.truncate(1);
        return strategies;
    }
    if longest.is_some_and(|longest| longest > usual) && options.chunk.is_none() {
        strategies.push(Strategy { chunk: LONG_CHUNK, ..Strategy::by(Path::Native) });
    }
    strategies.extend(queues.ok());
    let may_replay = !segments.iter().any(|segment| segment.why == PathReason::OnlyRecorded);
    if !may_replay {
        excluded.push((Path::Replay, Exclusion::OnlyRecorded));
    }
    for strategy in may_replay.then_some(Strategy::by(Path::Replay)).into_iter().chain(gated.ok()) {
        if !strategies.contains(&strategy) {
            strategies.push(strategy);
        }
    }
    strategies
}
