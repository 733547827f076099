//! Passes 2 and 6: what can run on the device at all, and by which path each part runs.

use std::fmt;
use std::ops::Range;

use super::known::{self, Driver};
use super::{Options, PlanError, Segment, Step};
use crate::caps::{Caps, Claim, Version};
use crate::error::{DriverError, ErrorKind};
use crate::ir::{Ir, NodeId, Op, View};

/// How the commands of a graph get to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Path {
    /// clgraph chooses, and the report says what and why. The environment variable `CLGRAPH_PATH` (`native` or `replay`)
    /// chooses instead, where it is set.
    #[default]
    Auto,
    /// Commands are recorded into command buffers (`cl_khr_command_buffer`) once, at finalize, and those are enqueued at
    /// each submission. What a command buffer cannot hold is replayed, in the same graph; the report says why.
    Native,
    /// Every command is enqueued anew at each submission, with everything prepared beforehand.
    Replay,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Native => "command buffers",
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
    /// The environment variable `CLGRAPH_PATH` says so.
    Environment,
    /// The driver has command buffers, and nothing is known against them.
    Available,
    /// The driver's command buffers are known to be slower than plain enqueues.
    Slower,
    /// The driver's command buffers are known to be slower than plain enqueues, and to lose memory at each of them.
    SlowerAndLeaks,
    /// The device has no command buffers.
    NoCommandBuffers,
    /// The driver has the functions and the device does not list the extension: `CLGRAPH_ASSUME` can say that it may be
    /// used.
    NotListed,
    /// The driver lists the extension and lacks a function of it.
    MissingFunction(&'static str),
    /// Command buffers of the device run on queues with other properties only.
    Queues,
    /// Command buffers have no command for it.
    NoSuchCommand,
    /// The kernel prints, and recorded kernels cannot on the device.
    Prints,
    /// The driver refused to record it.
    Refused(DriverError),
    /// The driver's functions that record could not be called: see [`Device::abi`](crate::Device::abi).
    Unusable,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Asked => "as asked",
            Self::Environment => "as CLGRAPH_PATH says",
            Self::Available => "the driver has them",
            Self::Slower => "command buffers are slower than plain enqueues on this driver",
            Self::SlowerAndLeaks => "command buffers are slower than plain enqueues on this driver, and lose memory",
            Self::NoCommandBuffers => "the device has no command buffers",
            Self::NotListed => {
                "the device does not list cl_khr_command_buffer, whose functions are there: \
                 CLGRAPH_ASSUME=command_buffer would use them"
            }
            Self::MissingFunction(name) => {
                return write!(f, "the driver lists cl_khr_command_buffer and lacks {name}");
            }
            Self::Queues => "the device's command buffers do not run on plain in-order queues",
            Self::NoSuchCommand => "command buffers have no such command",
            Self::Prints => "recorded kernels cannot print on this device",
            Self::Refused(error) => return write!(f, "the driver refused to record it: {error}"),
            Self::Unusable => "the driver's functions that record cannot be called",
        })
    }
}

/// The commands of which a device can say by which path it takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Command {
    /// A kernel.
    Kernel,
    /// A kernel that is marked as printing.
    PrintingKernel,
    /// Bytes from buffer to buffer.
    Copy,
    /// A rectangle from buffer to buffer.
    CopyRect,
    /// A pattern over a range of a buffer.
    Fill,
    /// Host data to a buffer.
    Write,
    /// A buffer to host memory.
    Read,
}

impl Command {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Kernel, Self::PrintingKernel, Self::Copy, Self::CopyRect, Self::Fill, Self::Write, Self::Read];

    fn of(op: &Op) -> Option<Self> {
        Some(match op {
            Op::Empty => return None,
            Op::Kernel { prints: false, .. } => Self::Kernel,
            Op::Kernel { prints: true, .. } => Self::PrintingKernel,
            Op::Copy { .. } => Self::Copy,
            Op::CopyRect(_) => Self::CopyRect,
            Op::Fill { .. } => Self::Fill,
            Op::Write { .. } => Self::Write,
            Op::Read { .. } => Self::Read,
        })
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "kernel",
            Self::PrintingKernel => "kernel that prints",
            Self::Copy => "copy",
            Self::CopyRect => "rectangular copy",
            Self::Fill => "fill",
            Self::Write => "host write",
            Self::Read => "host read",
        })
    }
}

impl Caps {
    /// Whether command buffers of the device can hold a command, and if not, why. What they cannot hold is replayed.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// use clgraph::{Command, Why};
    /// let device = clgraph::best_device()?;
    /// for command in Command::ALL {
    ///     match device.caps().can_record(command) {
    ///         Ok(()) => println!("{command}: by command buffers or replay"),
    ///         Err(why) => println!("{command}: by replay only, because {why}"),
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Why not.
    pub fn can_record(&self, command: Command) -> Result<(), Why> {
        let Some(caps) = &self.command_buffers else { return Err(Why::NoCommandBuffers) };
        if caps.claim == Claim::Hidden {
            return Err(Why::NotListed);
        }
        let lacks = |name: &str| caps.missing.iter().find(|missing| **missing == name).copied();
        if let Some(name) = ESSENTIAL.into_iter().find_map(lacks) {
            return Err(Why::MissingFunction(name));
        }
        if caps.required_queue.out_of_order || caps.required_queue.profiling {
            return Err(Why::Queues);
        }
        let function = match command {
            Command::Kernel => return Ok(()),
            Command::PrintingKernel => return if caps.kernel_printf { Ok(()) } else { Err(Why::Prints) },
            Command::Copy => "clCommandCopyBufferKHR",
            Command::CopyRect => "clCommandCopyBufferRectKHR",
            Command::Fill => "clCommandFillBufferKHR",
            Command::Write | Command::Read => return Err(Why::NoSuchCommand),
        };
        lacks(function).map_or(Ok(()), |name| Err(Why::MissingFunction(name)))
    }

    /// The path that clgraph chooses by itself on the device, and why. A table of facts: see `docs/driver-notes.md`.
    #[must_use]
    pub fn path(&self) -> (Path, Why) {
        if let Err(why) = self.can_record(Command::Kernel) {
            return (Path::Replay, why);
        }
        match known::driver(self) {
            Driver::Pocl => (Path::Replay, Why::Slower),
            Driver::IntelCpu => (Path::Replay, Why::SlowerAndLeaks),
            Driver::Other => (Path::Native, Why::Available),
        }
    }
}

/// Functions without which there is no command buffer. `clCommandBarrierWithWaitListKHR` tells the signatures of the rest.
const ESSENTIAL: [&str; 6] = [
    "clCreateCommandBufferKHR",
    "clFinalizeCommandBufferKHR",
    "clReleaseCommandBufferKHR",
    "clEnqueueCommandBufferKHR",
    "clCommandNDRangeKernelKHR",
    "clCommandBarrierWithWaitListKHR",
];

/// Says no to a graph with a node that no path can run on the device.
pub(super) fn check_runnable(ir: &Ir, caps: &Caps) -> Result<(), PlanError> {
    // A buffer may be made for another device of its context, and some drivers crash over it when a kernel is recorded.
    let bad = |view: &View| {
        let (align, largest) = (caps.sub_buffer_align.max(1), caps.max_allocation);
        if view.is_sub_buffer && !view.offset.is_multiple_of(align) {
            return Some(format!(
                "a sub-buffer starts at byte {}, and the device wants a multiple of {align}",
                view.offset
            ));
        }
        (!view.is_sub_buffer && view.size as u64 > largest)
            .then(|| format!("a buffer has {} bytes, and the device's largest can have {largest}", view.size))
    };
    let bad: Vec<Option<String>> = ir.views.iter().map(bad).collect();
    let bad = bad.iter().any(Option::is_some).then_some(bad);
    for node in ir.ids() {
        can_run(ir, node, caps, bad.as_deref()).map_err(|(missing, kind)| PlanError::NotRunnable {
            node,
            missing,
            kind,
        })?;
    }
    Ok(())
}

fn can_run(ir: &Ir, node: NodeId, caps: &Caps, bad: Option<&[Option<String>]>) -> Result<(), (String, ErrorKind)> {
    let needs = |version: Version, what: &str| {
        if caps.version >= version {
            return Ok(());
        }
        let missing = format!("{what} needs OpenCL {version}, and the device has {}", caps.version);
        Err((missing, ErrorKind::FeatureNotSupported))
    };
    let bad_view =
        |bad: &[Option<String>]| ir.accesses(node).iter().find_map(|access| bad[access.view.index()].clone());
    if let Some(missing) = bad.and_then(bad_view) {
        return Err((missing, ErrorKind::FeatureNotSupported));
    }
    match ir.op(node) {
        Op::Kernel { kernel, .. } if !ir.kernels[kernel.index()].built => {
            Err(("its program was not built for this device".to_owned(), ErrorKind::KernelNotSupported))
        }
        Op::CopyRect(_) => needs(Version::new(1, 1), "a rectangular copy"),
        Op::Fill { .. } => needs(Version::new(1, 2), "a fill"),
        _ => Ok(()),
    }
}

/// The path for all that can take it, and why.
fn choose(caps: &Caps, options: &Options<'_>) -> (Path, Why) {
    match options.path {
        Path::Auto => caps.path(),
        path => (path, if options.from_environment { Why::Environment } else { Why::Asked }),
    }
}

/// By which path a node runs. The only place that decides it.
fn path_of(op: &Op, node: NodeId, caps: &Caps, options: &Options<'_>, choice: (Path, Why)) -> (Path, Why) {
    let (Path::Native, Some(command)) = (choice.0, Command::of(op)) else { return choice };
    let denied = options.denied.get(&node).copied().or(options.no_native);
    match denied.map_or_else(|| caps.can_record(command), Err) {
        Ok(()) => choice,
        Err(why) => (Path::Replay, why),
    }
}

/// Cuts the steps into parts that run by one path each, for one reason.
pub(super) fn partition(ir: &Ir, steps: &[Step], caps: &Caps, options: &Options<'_>) -> Vec<Segment> {
    let choice = choose(caps, options);
    let mut segments: Vec<Segment> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let (path, why) = path_of(ir.op(step.node), step.node, caps, options, choice);
        match segments.last_mut() {
            Some(last) if (last.path, last.why) == (path, why) => last.steps.end = index + 1,
            _ => segments.push(Segment { steps: index..index + 1, path, why }),
        }
    }
    segments
}

/// Commands in one command buffer, at most. See `docs/driver-notes.md`: PoCL needs time that grows with the square of the
/// commands, and stack for each.
const CHUNK: usize = 64;

impl Segment {
    /// The steps of each command buffer of a native part: as few as can be, of about the same length.
    pub(crate) fn chunks(&self) -> impl ExactSizeIterator<Item = Range<usize>> + use<> {
        let (start, len) = (self.steps.start, self.steps.len());
        let count = len.div_ceil(CHUNK);
        (0..count).map(move |at| start + len * at / count..start + len * (at + 1) / count)
    }
}
