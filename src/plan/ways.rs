//! Pass 9: in which ways a submission may be enqueued, of which the fastest is found by measuring.

use std::fmt;

use super::lanes::Lanes;
use super::{Options, Path, Segment, Step};
use crate::caps::Caps;
use crate::ir::{Ir, Op};
use crate::known;

/// Commands in one command buffer, at most, if the program does not say.
pub(crate) const CHUNK: usize = 64;

/// The same for what is updated, on drivers that change few long ones faster than many short ones.
const UPDATED_CHUNK: usize = 256;

/// The same for drivers that like long ones.
const LONG_CHUNK: usize = 1024;

/// Commands from which on a gate is taken for faster without measuring, on drivers where it is known to pay.
const GATED: usize = 100;

/// How the commands of a submission are enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Way {
    /// Never [`Path::Auto`].
    pub(crate) path: Path,
    /// Commands in one command buffer, at most. 0 where there are none.
    pub(crate) chunk: usize,
    /// Queues, where there are several; 0 elsewhere.
    pub(crate) queues: usize,
}

impl Way {
    pub(crate) fn by(path: Path) -> Self {
        Self { path, chunk: 0, queues: 0 }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)?;
        match (self.chunk, self.queues) {
            (0, 0) => Ok(()),
            (0, queues) => write!(f, " ({queues})"),
            (chunk, _) => write!(f, " of {chunk}"),
        }
    }
}

/// The ways; the first is what is taken before anything is measured. One where there is nothing to choose.
pub(super) fn ways(
    ir: &Ir,
    steps: &[Step],
    segments: &[Segment],
    has_tasks: bool,
    lanes: Option<&Lanes>,
    caps: &Caps,
    options: &Options<'_>,
) -> Vec<Way> {
    let longest = segments.iter().filter(|part| part.path == Path::Native).map(|part| part.steps.len()).max();
    let usual = if options.updatable && known::updates_long_buffers_faster(caps) { UPDATED_CHUNK } else { CHUNK };
    let base = match longest {
        Some(_) => Way { chunk: options.chunk.unwrap_or(usual).max(1), ..Way::by(Path::Native) },
        None => Way::by(Path::Replay),
    };
    // What a native command calls may wait for the queue, and some have no other way. Between host tasks each part goes alone.
    let native_command = || steps.iter().any(|step| matches!(ir.op(step.node), Op::Native { .. }));
    if has_tasks || options.profiled || native_command() {
        return vec![base];
    }
    let side_by_side = lanes.map(|lanes| Way { queues: lanes.count, ..Way::by(Path::Queues) });
    // A command alone waits for nothing.
    let may_gate = steps.len() > 1;
    match options.path {
        Path::Gated if may_gate => return vec![Way::by(Path::Gated)],
        Path::Queues if side_by_side.is_some() => return side_by_side.into_iter().collect(),
        Path::Auto => {}
        _ => return vec![base],
    }
    let mut ways = Vec::new();
    if may_gate && steps.len() >= GATED && known::gate_pays(caps) {
        ways.push(Way::by(Path::Gated));
    }
    ways.push(base);
    if !options.measured {
        ways.truncate(1);
        return ways;
    }
    if longest.is_some_and(|longest| longest > usual) && options.chunk.is_none() {
        ways.push(Way { chunk: LONG_CHUNK, ..Way::by(Path::Native) });
    }
    ways.extend(side_by_side);
    // A driver may hold the thread that hands it the host's bytes until what is before them has run: here, until that very thread
    // opens the gate.
    let of_host = |step: &Step| matches!(ir.op(step.node), Op::Write { .. } | Op::Read { .. });
    let may_gate = may_gate && (known::takes_bytes_behind_gates(caps) || !steps.iter().any(of_host));
    for path in [Path::Replay, Path::Gated] {
        if (path == Path::Replay || may_gate) && !ways.contains(&Way::by(path)) {
            ways.push(Way::by(path));
        }
    }
    ways
}
