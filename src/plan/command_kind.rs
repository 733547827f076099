//! The kinds of commands, and which of them a device can record.

use std::fmt;

use super::{Path, PathReason};
use crate::caps::{Caps, DetectedBy};
use crate::command::{Command, Location, Pixels};
use crate::ir::{ById, View, ViewId};
use crate::quirks::{self, Driver};

/// The kinds of commands for which a device can say whether command buffers hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum CommandKind {
    /// A kernel.
    Kernel,
    /// A kernel that is marked as printing.
    PrintingKernel,
    /// A copy of bytes from buffer to buffer.
    Copy,
    /// A copy of a rectangle from buffer to buffer.
    CopyRect,
    /// A pattern over a range of a buffer.
    Fill,
    /// A copy of bytes from address to address: USM or SVM.
    Memcpy,
    /// A pattern over a range of memory with an address.
    MemFill,
    /// A copy of pixels from image to image.
    CopyImage,
    /// A copy of pixels from an image to a buffer.
    CopyImageToBuffer,
    /// A copy of pixels from a buffer to an image.
    CopyBufferToImage,
    /// A colour over a part of an image.
    FillImage,
    /// A prefetch, or advice on the use of memory.
    Hint,
    /// A write of host data to a buffer.
    Write,
    /// A read of a buffer to host memory.
    Read,
}

impl CommandKind {
    /// All kinds.
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

    pub(super) fn of(command: &Command<ById>, views: &[View]) -> Option<Self> {
        let is_pointer = |at: &Location<ViewId>| views[at.mem.index()].is_pointer();
        Some(match command {
            Command::Empty
            | Command::SubGraph(_)
            | Command::Alloc(_)
            | Command::Free(_)
            | Command::Task(_)
            | Command::Event { .. }
            | Command::Control(_)
            | Command::Native { .. } => return None,
            Command::Kernel { prints: false, .. } => Self::Kernel,
            Command::Kernel { prints: true, .. } => Self::PrintingKernel,
            Command::Copy { dst, .. } if is_pointer(dst) => Self::Memcpy,
            Command::Copy { .. } => Self::Copy,
            Command::CopyRect(_) => Self::CopyRect,
            Command::CopyImage(copy) => match (copy.src, copy.dst) {
                (Pixels::Buffer(_), _) => Self::CopyBufferToImage,
                (_, Pixels::Buffer(_)) => Self::CopyImageToBuffer,
                _ => Self::CopyImage,
            },
            Command::Fill { area: Some(_), .. } => Self::FillImage,
            Command::Fill { dst, .. } if is_pointer(dst) => Self::MemFill,
            Command::Fill { .. } => Self::Fill,
            Command::Hint { .. } => Self::Hint,
            Command::Write { .. } => Self::Write,
            Command::Read { .. } => Self::Read,
        })
    }
}

impl fmt::Display for CommandKind {
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
    /// Returns whether command buffers of the device can hold a command. Commands that they cannot hold are replayed.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// use clgraph::{CommandKind, PathReason};
    /// let device = clgraph::best_device()?;
    /// for command in CommandKind::ALL {
    ///     match device.caps().can_record(command) {
    ///         Ok(()) => println!("{command}: by command buffers or replay"),
    ///         Err(why) => println!("{command}: by replay only, because {why}"),
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The reason, if they cannot.
    pub fn can_record(&self, command: CommandKind) -> Result<(), PathReason> {
        let Some(caps) = &self.command_buffers else { return Err(PathReason::NoCommandBuffers) };
        if caps.detected_by == DetectedBy::Hidden {
            return Err(PathReason::NotListed);
        }
        if let Some(name) = caps.missing.first() {
            return Err(PathReason::MissingFunction(name));
        }
        if caps.required_queue.out_of_order || caps.required_queue.profiling {
            return Err(PathReason::QueueProperties);
        }
        let function = match command {
            CommandKind::Kernel => return Ok(()),
            CommandKind::PrintingKernel => return if caps.kernel_printf { Ok(()) } else { Err(PathReason::Prints) },
            CommandKind::Copy => "clCommandCopyBufferKHR",
            CommandKind::CopyRect => "clCommandCopyBufferRectKHR",
            CommandKind::Fill => "clCommandFillBufferKHR",
            CommandKind::Memcpy => "clCommandSVMMemcpyKHR",
            CommandKind::MemFill => "clCommandSVMMemFillKHR",
            CommandKind::CopyImage => "clCommandCopyImageKHR",
            CommandKind::CopyImageToBuffer => "clCommandCopyImageToBufferKHR",
            CommandKind::CopyBufferToImage => "clCommandCopyBufferToImageKHR",
            CommandKind::FillImage => "clCommandFillImageKHR",
            CommandKind::Write | CommandKind::Read | CommandKind::Hint => return Err(PathReason::NoSuchCommand),
        };
        if caps.missing_commands.contains(&function) { Err(PathReason::MissingFunction(function)) } else { Ok(()) }
    }

    /// Returns the path that clgraph chooses by itself on the device, and why. The choice is based on measurements on
    /// drivers. [`Device::path`](crate::Device::path) also considers the environment and the driver's functions.
    #[must_use]
    pub fn path(&self) -> (Path, PathReason) {
        if let Err(why) = self.can_record(CommandKind::Kernel) {
            return (Path::Replay, why);
        }
        match quirks::driver(self) {
            Driver::Pocl => (Path::Replay, PathReason::Slower),
            Driver::IntelCpu => (Path::Replay, PathReason::SlowerAndLeaks),
            Driver::Other => (Path::Native, PathReason::Available),
        }
    }
}
