//! Passes 2 and 6: what can run on the device at all, and by which path each part runs.

use std::fmt;
use std::ops::Range;

use super::{Options, PlanError, Segment, Step};
use crate::caps::{Caps, Claim, Version};
use crate::error::{DriverError, ErrorKind};
use crate::ir::{Access, Arg, Form, Ir, NodeId, Op, Pixels, Place, View, ViewKind};
use crate::known::{self, Driver};

/// How the commands of a graph get to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Path {
    /// clgraph chooses: it starts with what is known to be good on the driver, times the first submissions by each path that
    /// may pay, and stays with the fastest. [`Executable::report`](crate::Executable::report) says what is taken now, and why. The
    /// environment variable `CLGRAPH_PATH` (`auto`, `native`, `replay`, `gated` or `queues`) chooses instead, where it is set.
    #[default]
    Auto,
    /// Commands are recorded into command buffers (`cl_khr_command_buffer`) once, at finalize, and those are enqueued at
    /// each submission. What a command buffer cannot hold is replayed, in the same graph; the report says why.
    Native,
    /// Every command is enqueued anew at each submission, with everything prepared beforehand.
    Replay,
    /// The same, where the first command waits for a user event that is completed when all are enqueued: some drivers take a
    /// long submission faster when none of it has begun.
    Gated,
    /// The same over several in-order queues, so that what nothing orders may run side by side: commands wait for events where an
    /// edge leads from queue to queue, and the submission begins and ends on the queue that it is submitted to. What is in one row
    /// is replayed on that, and so is a graph with memory of its own or of a sub-graph, with host tasks, external events or native
    /// commands, with hints or with allowed conflicts; and everything on drivers that cannot run several queues at once.
    Queues,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Native => "command buffers",
            Self::Replay => "replay",
            Self::Gated => "gated replay",
            Self::Queues => "replay over several queues",
        })
    }
}

/// Why a part of a graph runs by the path that it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// Each command is to be timed, and command buffers of the device do not run on queues that profile.
    NotTimed,
    /// Command buffers have no command for it.
    NoSuchCommand,
    /// A native command whose function enqueues.
    OnlyEnqueued,
    /// A native command whose function records.
    OnlyRecorded,
    /// The kernel prints, and recorded kernels cannot on the device.
    Prints,
    /// It uses a buffer that is larger than the device's largest allocation, over which drivers crash when they record.
    TooLarge,
    /// It uses a sub-buffer that starts where the device wants none to start, over which drivers crash as well.
    Misaligned,
    /// It has parameters, and recorded kernels cannot change on the device: each update would record a command buffer again.
    Parameters,
    /// Each command is timed, and command buffers tell the time of all that they hold.
    Profiled,
    /// So few commands are enqueued as fast as a command buffer would be.
    TooShort,
    /// A kernel with a sampler as an argument, over which the driver crashes when it is recorded.
    Sampler,
    /// It uses an image that is made of a buffer, over which the driver crashes when it is recorded.
    ImageOfBuffer,
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
            Self::NotTimed => "the device's command buffers do not run on queues that profile",
            Self::NoSuchCommand => "command buffers have no such command",
            Self::OnlyEnqueued => "a native command that enqueues",
            Self::OnlyRecorded => "a native command that can only be recorded",
            Self::Prints => "recorded kernels cannot print on this device",
            Self::TooLarge => "a buffer of it is larger than the device's largest allocation",
            Self::Misaligned => "a sub-buffer of it is not aligned as the device wants it",
            Self::Parameters => "it has parameters, and recorded kernels cannot change on this device",
            Self::Profiled => "each command is timed",
            Self::TooShort => "too few for a command buffer to pay",
            Self::Refused(error) => return write!(f, "the driver refused: {error}"),
            Self::Sampler => "the driver crashes when a kernel with a sampler is recorded",
            Self::ImageOfBuffer => "the driver crashes when an image that is made of a buffer is recorded",
            Self::Unusable => "the driver's functions that record cannot be called",
        })
    }
}

/// Written as its text.
#[cfg(feature = "serde")]
impl serde::Serialize for Why {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The commands of which a device can say by which path it takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
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
    /// Bytes from address to address: USM or SVM.
    Memcpy,
    /// A pattern over a range behind an address.
    MemFill,
    /// Pixels from image to image.
    CopyImage,
    /// Pixels from an image to a buffer.
    CopyImageToBuffer,
    /// Pixels from a buffer to an image.
    CopyBufferToImage,
    /// A colour over a part of an image.
    FillImage,
    /// A prefetch, or advice on the use of memory.
    Hint,
    /// Host data to a buffer.
    Write,
    /// A buffer to host memory.
    Read,
}

impl Command {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Kernel,
        Self::PrintingKernel,
        Self::Copy,
        Self::CopyRect,
        Self::Fill,
        Self::Memcpy,
        Self::MemFill,
        Self::CopyImage,
        Self::CopyImageToBuffer,
        Self::CopyBufferToImage,
        Self::FillImage,
        Self::Hint,
        Self::Write,
        Self::Read,
    ];

    fn of(op: &Op, views: &[View]) -> Option<Self> {
        let is_pointer = |place: &Place| views[place.view.index()].is_pointer();
        Some(match op {
            Op::Empty
            | Op::SubGraph(_)
            | Op::Alloc(_)
            | Op::Free(_)
            | Op::Task(_)
            | Op::Event { .. }
            | Op::Native { .. } => return None,
            Op::Kernel { prints: false, .. } => Self::Kernel,
            Op::Kernel { prints: true, .. } => Self::PrintingKernel,
            Op::Copy { dst, .. } if is_pointer(dst) => Self::Memcpy,
            Op::Copy { .. } => Self::Copy,
            Op::CopyRect(_) => Self::CopyRect,
            Op::CopyImage(copy) => match (copy.src, copy.dst) {
                (Pixels::Buffer(_), _) => Self::CopyBufferToImage,
                (_, Pixels::Buffer(_)) => Self::CopyImageToBuffer,
                _ => Self::CopyImage,
            },
            Op::Fill { area: Some(_), .. } => Self::FillImage,
            Op::Fill { dst, .. } if is_pointer(dst) => Self::MemFill,
            Op::Fill { .. } => Self::Fill,
            Op::Hint { .. } => Self::Hint,
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
            Self::Memcpy => "copy of USM or SVM",
            Self::MemFill => "fill of USM or SVM",
            Self::CopyImage => "copy of an image",
            Self::CopyImageToBuffer => "copy of an image to a buffer",
            Self::CopyBufferToImage => "copy of a buffer to an image",
            Self::FillImage => "fill of an image",
            Self::Hint => "prefetch or advice",
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
        if let Some(name) = caps.missing.first() {
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
            Command::Memcpy => "clCommandSVMMemcpyKHR",
            Command::MemFill => "clCommandSVMMemFillKHR",
            Command::CopyImage => "clCommandCopyImageKHR",
            Command::CopyImageToBuffer => "clCommandCopyImageToBufferKHR",
            Command::CopyBufferToImage => "clCommandCopyBufferToImageKHR",
            Command::FillImage => "clCommandFillImageKHR",
            Command::Write | Command::Read | Command::Hint => return Err(Why::NoSuchCommand),
        };
        if caps.missing_commands.contains(&function) { Err(Why::MissingFunction(function)) } else { Ok(()) }
    }

    /// The path that clgraph chooses by itself on the device, and why. It rests on what was measured on drivers.
    /// [`Device::path`](crate::Device::path) also looks at the environment and at the driver's functions.
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

/// Says no to a graph with a node that no path can run on the device.
pub(super) fn check_runnable(ir: &Ir, caps: &Caps, options: &Options<'_>) -> Result<(), PlanError> {
    for node in ir.ids() {
        can_run(node, ir, caps, options).map_err(|(missing, kind)| PlanError::NotRunnable { node, missing, kind })?;
    }
    Ok(())
}

fn can_run(node: NodeId, ir: &Ir, caps: &Caps, options: &Options<'_>) -> Result<(), (String, ErrorKind)> {
    let needs = |version: Version, what: &str| {
        if caps.version >= version {
            return Ok(());
        }
        let missing = format!("{what} needs OpenCL {version}, and the device has {}", caps.version);
        Err((missing, ErrorKind::FeatureNotSupported))
    };
    match ir.op(node) {
        Op::Native { form: Form::Recorded, .. } => {
            let why_not = options.denied.get(&node).copied().or(options.no_native);
            match why_not.or_else(|| caps.can_record(Command::Kernel).err()) {
                Some(why) => Err((format!("it can only be recorded, and {why}"), ErrorKind::FeatureNotSupported)),
                None => Ok(()),
            }
        }
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
        Path::Auto if options.profiled => (Path::Replay, Why::Profiled),
        Path::Auto => caps.path(),
        path => {
            let path = if path == Path::Native { path } else { Path::Replay };
            (path, if options.from_environment { Why::Environment } else { Why::Asked })
        }
    }
}

/// Whether command buffers of the device can hold what a node does now, which an update may have changed.
pub(crate) fn can_hold(ir: &Ir, node: NodeId, caps: &Caps) -> bool {
    matches!(ir.op(node), Op::Native { .. })
        || Command::of(ir.op(node), &ir.views).is_none_or(|command| caps.can_record(command).is_ok())
            && crashes(ir, node, caps).is_none()
}

/// Why a driver is not asked to record what is known to end the process.
fn crashes(ir: &Ir, node: NodeId, caps: &Caps) -> Option<Why> {
    if !known::dies_of_recording(caps) {
        return None;
    }
    let of_buffer = |access: &Access| ir.views[access.view.index()].kind == ViewKind::ImageOfBuffer;
    if ir.accesses(node).iter().any(of_buffer) {
        return Some(Why::ImageOfBuffer);
    }
    let Op::Kernel { args, .. } = ir.op(node) else { return None };
    ir.args(*args).iter().any(|arg| matches!(arg, Arg::Sampler(_))).then_some(Why::Sampler)
}

/// By which path a node runs. The only place that decides it.
fn path_of(ir: &Ir, node: NodeId, caps: &Caps, options: &Options<'_>, choice: (Path, Why)) -> (Path, Why) {
    match ir.op(node) {
        Op::Native { form: Form::Recorded, .. } => return (Path::Native, Why::OnlyRecorded),
        Op::Native { form: Form::Enqueued, .. } if choice.0 == Path::Native => {
            return (Path::Replay, Why::OnlyEnqueued);
        }
        _ => {}
    }
    let command = match ir.op(node) {
        // Of what it records nothing more is known.
        Op::Native { .. } => Some(Command::Kernel),
        op => Command::of(op, &ir.views),
    };
    let (Path::Native, Some(command)) = (choice.0, command) else { return choice };
    // Buffers may be made for other devices of a context, and drivers are known that crash when they refuse to record.
    let view = |access: &Access| ir.views[access.view.index()];
    let too_large = |access: &Access| view(access).root_size as u64 > caps.max_allocation;
    let align = caps.sub_buffer_align.max(1);
    let misaligned = |access: &Access| view(access).is_sub_buffer() && !view(access).offset.is_multiple_of(align);
    let why_not = match options.denied.get(&node).copied().or(options.no_native) {
        Some(why) => Some(why),
        None if ir.accesses(node).iter().any(too_large) => Some(Why::TooLarge),
        None if ir.accesses(node).iter().any(misaligned) => Some(Why::Misaligned),
        None => caps.can_record(command).err().or_else(|| crashes(ir, node, caps)),
    };
    why_not.map_or(choice, |why| (Path::Replay, why))
}

/// An automatic choice records no fewer commands in a row than this.
const SHORT: usize = 4;

/// Cuts the steps into parts that run by one path each, for one reason.
pub(super) fn partition(
    ir: &Ir,
    steps: &[Step],
    range: Range<usize>,
    caps: &Caps,
    options: &Options<'_>,
) -> Vec<Segment> {
    let choice = choose(caps, options);
    let segment = |steps, (path, why)| Segment { steps, path, why };
    let mut segments: Vec<Segment> = Vec::new();
    for index in range {
        let node = steps[index].node;
        push(&mut segments, segment(index..index + 1, path_of(ir, node, caps, options, choice)));
    }
    if choice != (Path::Native, Why::Available) {
        return segments;
    }
    let mut long = Vec::new();
    for part in segments {
        let short = (part.path, part.why) == choice && part.steps.len() < SHORT;
        push(&mut long, if short { segment(part.steps, (Path::Replay, Why::TooShort)) } else { part });
    }
    long
}

/// Adds a part, to the last one if that is of its kind.
fn push(segments: &mut Vec<Segment>, part: Segment) {
    match segments.last_mut() {
        Some(last) if (last.path, last.why) == (part.path, part.why) => last.steps.end = part.steps.end,
        _ => segments.push(part),
    }
}

impl Segment {
    /// How many command buffers of so many commands at most the part needs.
    pub(crate) fn command_buffers(&self, most: usize) -> usize {
        if self.path == Path::Native { self.chunks(most).len() } else { 0 }
    }

    /// The steps of each command buffer of a native part: as few as can be, of about the same length.
    pub(crate) fn chunks(&self, most: usize) -> impl ExactSizeIterator<Item = Range<usize>> + use<> {
        let (start, len) = (self.steps.start, self.steps.len());
        let count = len.div_ceil(most.max(1));
        (0..count).map(move |at| start + len * at / count..start + len * (at + 1) / count)
    }
}

/// Whether a marker has to tell when the first command starts: no driver tells it of a command buffer, and nobody of a
/// native command.
pub(super) fn marked(ir: &Ir, steps: &[Step], segments: &[Segment], caps: &Caps) -> bool {
    segments.first().is_some_and(|first| first.path == Path::Native)
        || steps.first().is_some_and(|first| matches!(ir.op(first.node), Op::Native { .. }))
        || !known::tells_start(caps)
}

/// Whether commands may run side by side, as far as they are concerned.
pub(super) fn may_spread(ir: &Ir, steps: &[Step], caps: &Caps, options: &Options<'_>) -> bool {
    let wanted = match options.path {
        Path::Auto => options.measured && !options.profiled,
        path => path == Path::Queues && !options.profiled,
    };
    // Memory of the graph's own is shared by what comes one after the other in the order of the steps. What conflicts
    // has no other order than that either. Native commands have the one queue, and a hint may turn out to be no command.
    let in_one_row = |step: &Step| matches!(ir.op(step.node), Op::Native { .. } | Op::Hint { .. });
    let shares_bytes = ir.shares_bytes || !ir.allocs.is_empty();
    let wanted = wanted && known::runs_queues_at_once(caps);
    wanted && !shares_bytes && options.conflicts != super::Conflicts::Allowed && !steps.iter().any(in_one_row)
}
