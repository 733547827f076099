//! Pass 10: the strategies for enqueueing a submission. The autotuner finds the fastest of them.

use std::fmt;

use super::streams::Streams;
use super::{Options, Path, Segment, Step};
use crate::caps::Caps;
use crate::command::Command;
use crate::ir::Ir;
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
}

impl Strategy {
    pub(crate) fn by(path: Path) -> Self {
        Self { path, chunk: 0, queues: 0 }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)?;
        match (self.chunk, self.queues) {
            (0, 0) => Ok(()),
            (0, queues) => write!(f, " ({queues})"),
            (chunk, _) => write!(f, " of {chunk}"),
        }
    }
}

/// Returns the strategies. The first one is used before anything is measured. There is only one if there is nothing to
/// choose.
pub(super) fn strategies(
    ir: &Ir,
    steps: &[Step],
    segments: &[Segment],
    has_tasks: bool,
    streams: Option<&Streams>,
    caps: &Caps,
    options: &Options<'_>,
) -> Vec<Strategy> {
    let longest =
        segments.iter().filter(|segment| segment.path == Path::Native).map(|segment| segment.steps.len()).max();
    let usual = if options.updatable && quirks::updates_long_buffers_faster(caps) { UPDATED_CHUNK } else { CHUNK };
    let base = match longest {
        Some(_) => Strategy { chunk: options.chunk.unwrap_or(usual).max(1), ..Strategy::by(Path::Native) },
        None => Strategy::by(Path::Replay),
    };
    // The function of a native command may wait for the queue, and some native commands can only be recorded. Between
    // host tasks each partition is enqueued alone.
    let native_command = || steps.iter().any(|step| matches!(ir.command(step.node), Command::Native { .. }));
    if has_tasks || options.profiled || native_command() {
        return vec![base];
    }
    let side_by_side = streams.map(|streams| Strategy { queues: streams.count, ..Strategy::by(Path::Queues) });
    // A gate pays only if several commands wait for it.
    let may_gate = steps.len() > 1;
    match options.path {
        Path::Gated if may_gate => return vec![Strategy::by(Path::Gated)],
        Path::Queues if side_by_side.is_some() => return side_by_side.into_iter().collect(),
        Path::Auto => {}
        _ => return vec![base],
    }
    let mut strategies = Vec::new();
    if may_gate && steps.len() >= GATED && quirks::gate_pays(caps) {
        strategies.push(Strategy::by(Path::Gated));
    }
    strategies.push(base);
    if !options.autotune {
        strategies.truncate(1);
        return strategies;
    }
    if longest.is_some_and(|longest| longest > usual) && options.chunk.is_none() {
        strategies.push(Strategy { chunk: LONG_CHUNK, ..Strategy::by(Path::Native) });
    }
    strategies.extend(side_by_side);
    // A driver may block the thread that enqueues a transfer of host bytes until all earlier commands have run. This
    // same thread has to open the gate, so it would wait for ever.
    let of_host = |step: &Step| matches!(ir.command(step.node), Command::Write { .. } | Command::Read { .. });
    let may_gate = may_gate && (quirks::gated_transfers_do_not_block(caps) || !steps.iter().any(of_host));
    for path in [Path::Replay, Path::Gated] {
        if (path == Path::Replay || may_gate) && !strategies.contains(&Strategy::by(path)) {
            strategies.push(Strategy::by(path));
        }
    }
    strategies
}
