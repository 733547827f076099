//! The paths, and the reasons for a path.

use std::fmt;

use strum::VariantArray;

use crate::error::DriverError;

/// How the commands of a graph get to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Path {
    /// clgraph chooses. It starts with the path that is known to be good on the driver, times the first submissions by
    /// each path that may be faster, and keeps the fastest. [`Executable::report`](crate::Executable::report) says
    /// which path is used now, and why. If the environment variable `CLGRAPH_PATH` is set (`auto`, `native`, `replay`,
    /// `gated` or `queues`), it chooses instead.
    #[default]
    Auto,
    /// Commands are recorded into command buffers (`cl_khr_command_buffer`) once, at finalize, and each submission
    /// enqueues the command buffers. Commands that a command buffer cannot hold are replayed, in the same graph; the
    /// report says why.
    Native,
    /// Each submission enqueues every command. Everything else was prepared at finalize.
    Replay,
    /// Like [`Replay`](Self::Replay), but the first command waits for a user event, which is completed when all
    /// commands are enqueued. Some drivers accept a long submission faster while none of it has begun.
    Gated,
    /// Like [`Replay`](Self::Replay), but over several in-order queues, so that commands that nothing orders may run
    /// side by side.
    ///
    /// Where an edge leads from queue to queue, a command waits for an event. The submission begins and ends on the
    /// queue that it is submitted to. Allocations of the graph share bytes only if their uses are ordered on several
    /// queues too, so it may need more memory. These are replayed on one queue alone: a graph whose commands are all in
    /// one row; a graph with a sub-graph whose branches share memory of its own; a graph with native commands, hints,
    /// branches or loops, or allowed conflicts; a graph with more independent branches between host tasks than there are queues; and every
    /// graph on drivers that cannot run several queues at once. [`Report::excluded`](crate::Report::excluded) says why.
    Queues,
}

impl Path {
    /// Returns the path with a name, as `CLGRAPH_PATH` writes it, or None if there is none.
    ///
    /// ```
    /// use clgraph::Path;
    /// assert_eq!((Path::named("replay"), Path::named("fast")), (Some(Path::Replay), None));
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::VARIANTS.iter().copied().find(|path| name == <&str>::from(path))
    }
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

/// Why a segment of a graph runs by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathReason {
    /// The options of [`Finalize`](crate::Finalize) say so.
    Asked,
    /// The environment variable `CLGRAPH_PATH` says so.
    Environment,
    /// A fused form that came while the executable was used is replayed.
    Fused,
    /// The driver has command buffers, and nothing is known against them.
    Available,
    /// The driver's command buffers are known to be slower than plain enqueues.
    Slower,
    /// The driver's command buffers are known to be slower than plain enqueues, and to leak memory at each enqueue.
    SlowerAndLeaks,
    /// The device has no command buffers.
    NoCommandBuffers,
    /// The driver has the functions but the device does not list the extension. `CLGRAPH_ASSUME` can allow their use.
    NotListed,
    /// The driver lists the extension but lacks one of its functions.
    MissingFunction(&'static str),
    /// Command buffers of the device run only on queues with other properties.
    QueueProperties,
    /// Each command is to be timed, and command buffers of the device do not run on queues with profiling.
    NoProfilingQueues,
    /// Command buffers have no such command.
    NoSuchCommand,
    /// It is a native command whose function enqueues.
    OnlyEnqueued,
    /// It is a native command whose function records.
    OnlyRecorded,
    /// The kernel prints, and recorded kernels cannot print on the device.
    Prints,
    /// It uses a buffer that is larger than the device's largest allocation. Drivers crash when they record such a
    /// command.
    TooLarge,
    /// It uses a sub-buffer that does not start at a multiple of the device's alignment. Drivers crash when they record
    /// such a command.
    Misaligned,
    /// The kernel has parameters, and the device cannot change recorded kernels: each update would record a command
    /// buffer again.
    Parameters,
    /// Each command is to be timed, and a command buffer has only one time for all its commands.
    Profiled,
    /// There are so few commands that enqueueing them is as fast as a command buffer.
    TooShort,
    /// The kernel has a sampler as an argument. The driver crashes when it records such a kernel.
    Sampler,
    /// It uses an image that is made of a buffer. The driver crashes when it records such a command.
    ImageOfBuffer,
    /// The driver refused to record it.
    Refused(DriverError),
    /// The driver's functions for recording could not be called: see [`Device::abi`](crate::Device::abi).
    Unusable,
}

impl fmt::Display for PathReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Asked => "as asked",
            Self::Environment => "as CLGRAPH_PATH says",
            Self::Fused => "what is fused in use is replayed",
            Self::Available => "the driver supports them",
            Self::Slower => "command buffers are slower than plain enqueues on this driver",
            Self::SlowerAndLeaks => "command buffers are slower than plain enqueues on this driver, and leak memory",
            Self::NoCommandBuffers => "the device has no command buffers",
            Self::NotListed => {
                "the device has the functions of cl_khr_command_buffer, but does not list the extension: \
                 CLGRAPH_ASSUME=command_buffer uses them"
            }
            Self::MissingFunction(name) => {
                return write!(f, "the driver lists cl_khr_command_buffer, but lacks {name}");
            }
            Self::QueueProperties => "the device's command buffers do not run on plain in-order queues",
            Self::NoProfilingQueues => "the device's command buffers do not run on queues that profile",
            Self::NoSuchCommand => "command buffers have no such command",
            Self::OnlyEnqueued => "a native command that enqueues",
            Self::OnlyRecorded => "a native command that can only be recorded",
            Self::Prints => "recorded kernels cannot print on this device",
            Self::TooLarge => "it uses a buffer that is larger than the device's largest allocation",
            Self::Misaligned => "it uses a sub-buffer that is not aligned as the device requires",
            Self::Parameters => "it has parameters, but recorded kernels cannot change on this device",
            Self::Profiled => "each command is timed",
            Self::TooShort => "too few commands for a command buffer",
            Self::Refused(error) => return write!(f, "the driver refused: {error}"),
            Self::Sampler => "the driver crashes when a kernel with a sampler is recorded",
            Self::ImageOfBuffer => "the driver crashes when an image that is made of a buffer is recorded",
            Self::Unusable => "the driver's functions for command buffers cannot be called",
        })
    }
}

/// Serialized as its text.
#[cfg(feature = "serde")]
impl serde::Serialize for PathReason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
