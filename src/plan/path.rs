//! Passes 2 and 6: what can run on the device at all, and by which path each part runs.

use std::fmt;

use super::{Options, PlanError, Segment, Step};
use crate::caps::{Caps, Version};
use crate::error::ErrorKind;
use crate::ir::{Ir, Op};

/// How the commands of a graph get to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Path {
    /// clgraph chooses, and the report says what and why.
    #[default]
    Auto,
    /// Every command is enqueued anew at each submission, with everything prepared beforehand.
    Replay,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Replay => "replay",
        })
    }
}

/// Why a part of a graph runs by the path that it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// The option of [`Finalize`](crate::Finalize) says so.
    Asked,
    /// No other path exists for it.
    OnlyPath,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Asked => "as asked",
            Self::OnlyPath => "the only path there is",
        })
    }
}

/// Says no to a graph with a node that no path can run on the device.
pub(super) fn check_runnable(ir: &Ir, caps: &Caps) -> Result<(), PlanError> {
    for node in ir.ids() {
        can_run(ir.op(node), ir, caps).map_err(|(missing, kind)| PlanError::NotRunnable { node, missing, kind })?;
    }
    Ok(())
}

fn can_run(op: &Op, ir: &Ir, caps: &Caps) -> Result<(), (String, ErrorKind)> {
    let needs = |version: Version, what: &str| {
        if caps.version >= version {
            return Ok(());
        }
        let missing = format!("{what} needs OpenCL {version}, and the device has {}", caps.version);
        Err((missing, ErrorKind::FeatureNotSupported))
    };
    match op {
        Op::Kernel { kernel, .. } if !ir.kernels[kernel.index()].built => {
            Err(("its program was not built for this device".to_owned(), ErrorKind::KernelNotSupported))
        }
        Op::CopyRect(_) => needs(Version::new(1, 1), "a rectangular copy"),
        Op::Fill { .. } => needs(Version::new(1, 2), "a fill"),
        _ => Ok(()),
    }
}

/// Cuts the steps into parts that run by one path each.
pub(super) fn partition(steps: &[Step], options: Options) -> Vec<Segment> {
    if steps.is_empty() {
        return Vec::new();
    }
    let why = if options.path == Path::Replay { Why::Asked } else { Why::OnlyPath };
    vec![Segment { steps: 0..steps.len(), path: Path::Replay, why }]
}
