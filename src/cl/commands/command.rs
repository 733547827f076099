//! The two things that happen to a command: it is enqueued, or it is recorded into a command buffer. Each of the two
//! functions lists all kinds of commands; the head of `command.rs` says who else does. Callers run native commands
//! themselves, and launches where that saves work. Loops ahead make kernels of fills and copies (`exec/build/guards.rs`).

use std::convert::Infallible;

use crate::cl::commands::enqueue::{self, To, nothing};
use crate::cl::commands::image_commands;
use crate::cl::memory::host::{HostBytes, Slot};
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::command_buffer::{CommandBufferRecorder, Handle};
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::kernel_object::KernelObject;
use crate::cl::objects::sampler::Sampler;
use crate::command::{ArgRefs, Command, Hint, Refs};
use crate::error::{DriverError, DriverFault};

/// Commands and arguments that refer to objects by references, for the duration of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByRef<'a>(Infallible, std::marker::PhantomData<&'a ()>);

impl<'a> Refs for ByRef<'a> {
    type Mem = &'a Mem;
    /// With its arguments set.
    type Kernel = &'a KernelObject;
    type Args = ();
    type Bytes = &'a [u8];
    type Data = &'a HostBytes;
    type Output = &'a Slot;
    // The host does these, between OpenCL calls, or the program's function does, or nobody.
    type Task = Infallible;
    type Event = Infallible;
    type Native = Infallible;
    type Executable = Infallible;
    type Bodies = Infallible;
    type Alloc = Infallible;
}

impl<'a> ArgRefs for ByRef<'a> {
    type Mem = &'a Mem;
    type NoMem = ();
    type Value = &'a [u8];
    type Sampler = &'a Sampler;
}

/// Enqueues a command. The caller keeps alive what it refers to until it is complete.
#[inline]
pub(crate) fn enqueue(to: &To<'_>, command: &Command<ByRef<'_>>) -> Result<Option<DriverEvent>, DriverError> {
    if command.is_noop() {
        return nothing(to);
    }
    match command {
        Command::Empty => nothing(to),
        Command::Kernel { kernel, grid, .. } => {
            enqueue::kernel(to, kernel, grid.dims, &grid.offset, &grid.global, grid.local.as_ref())
        }
        Command::Copy { src, dst, size } => enqueue::copy(to, src, dst, *size),
        Command::CopyRect(rect) => enqueue::copy_rect(to, rect),
        Command::CopyImage(copy) => image_commands::copy(to, copy),
        Command::Fill { dst, pattern, area: Some(area), .. } => image_commands::fill(to, dst.mem, area, pattern),
        Command::Fill { dst, size, pattern, area: None } => enqueue::fill(to, dst, pattern, *size),
        Command::Write { dst, data, area: Some(area), .. } => image_commands::write(to, dst.mem, area, data),
        Command::Write { dst, data, area: None, .. } => enqueue::write(to, dst, data),
        Command::Read { src, output, area: Some(area), .. } => image_commands::read(to, src.mem, area, output),
        Command::Read { src, output, area: None, .. } => enqueue::read(to, src, output),
        Command::Hint { of, size, hint } => {
            let taken = match hint {
                Hint::Advice(advice) => enqueue::advise(to, of, *size, *advice)?,
                hint => enqueue::migrate(to, of, *size, *hint == Hint::ToHost)?,
            };
            taken.map_or_else(|| nothing(to), |taken| Ok(taken.0))
        }
        Command::Native { functions: never, .. }
        | Command::Task(never)
        | Command::Event { event: never, .. }
        | Command::Alloc(never)
        | Command::Free(never)
        | Command::SubGraph(never) => match *never {},
        Command::Control(control) => match control.bodies {},
    }
}

/// Records a command. Returns the handle for changes in place, if the driver gives one.
///
/// The caller keeps alive what the command refers to while the command buffer exists.
pub(crate) fn record(
    recording: &mut CommandBufferRecorder,
    command: &Command<ByRef<'_>>,
) -> Result<Option<Handle>, DriverError> {
    match command {
        _ if command.is_noop() => {}
        Command::Kernel { kernel, grid, .. } => {
            return recording.kernel(kernel, grid.dims, &grid.offset, &grid.global, grid.local.as_ref());
        }
        Command::Copy { src, dst, size } => recording.copy(src, dst, *size)?,
        Command::CopyRect(rect) => recording.copy_rect(rect)?,
        Command::CopyImage(copy) => recording.copy_image(copy)?,
        Command::Fill { dst, pattern, area: Some(area), .. } => recording.fill_image(dst.mem, area, pattern)?,
        Command::Fill { dst, size, pattern, area: None } => recording.fill(dst, pattern, *size)?,
        // OpenCL has no such command: the planner asks for none, and its checker checks that.
        Command::Empty | Command::Write { .. } | Command::Read { .. } | Command::Hint { .. } => {
            return Err(DriverError::faulty("the recording of a host transfer or a hint", DriverFault::Defect));
        }
        Command::Native { functions: never, .. }
        | Command::Task(never)
        | Command::Event { event: never, .. }
        | Command::Alloc(never)
        | Command::Free(never)
        | Command::SubGraph(never) => match *never {},
        Command::Control(control) => match control.bodies {},
    }
    Ok(None)
}
