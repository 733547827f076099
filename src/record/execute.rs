//! Executing a command at once.

use std::convert::Infallible;

use super::queue::Queue;
use crate::cl::commands::command::{self, ByRef};
use crate::cl::commands::enqueue::{self, To};
use crate::cl::completion::event_reaper;
use crate::cl::memory::host::{HostBytes, Slot};
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::kernel_object::{KernelObject, KernelObjectError};
use crate::command::{Arg, Command, Translate, is_empty_range};
use crate::error::{BuildCause, BuildError, DriverError, DriverFault, ProgramError, Result};
use crate::graph::Child;
use crate::graph::nodes::host_task::TaskFn;
use crate::graph::nodes::launch::{Checked, CheckedLaunch, Launch};
use crate::graph::nodes::native_command::NativeFn;
use crate::graph::nodes::request::{ByHandle, Request, Requested};

/// Enqueues a command. What it refers to is kept alive until it is complete. A read fills the slot, which the caller
/// keeps.
pub(super) fn run(command: &Command<ByHandle>, slot: Option<&Slot>, to: &To<'_>) -> Result<Option<DriverEvent>> {
    if let Command::Kernel { kernel, .. } = command {
        return kernel.launch.run(&kernel.checked, to);
    }
    let by_ref = command.translate(&mut Borrow { slot })?;
    let Command::Write { data, .. } = command else { return Ok(command::enqueue(to, &by_ref)?) };
    if command.is_noop() {
        return Ok(command::enqueue(to, &by_ref)?);
    }
    // The data is kept until the command is complete, so the command needs an event.
    let event = command::enqueue(&To { event: true, ..*to }, &by_ref)?;
    match &event {
        Some(event) => event_reaper::keep_until(event.clone(), data.clone()),
        None => event_reaper::leak(no_event("a host write"), data.clone()),
    }
    Ok(event)
}

/// Whether a command uses memory that drivers keep no reference to: memory with an address. This crate then has to keep it
/// alive.
pub(super) fn needs_tracking(requested: &Requested) -> bool {
    match &requested.command {
        Command::Kernel { kernel, .. } => kernel.checked.addresses,
        _ => requested.uses.iter().any(|(region, _)| !region.mem.is_buffer()),
    }
}

/// Checks what [`run`] would check, for a command that runs later.
pub(super) fn check_now(command: &Command<ByHandle>, queue: &Queue) -> Result<()> {
    let Command::Kernel { kernel, .. } = command else { return Ok(()) };
    let CheckedLaunch { launch, checked } = &**kernel;
    if let Some(index) = launch.first_bound() {
        return Err(BuildError::new(launch.subject(), BuildCause::ParameterExecuted { index }).into());
    }
    if checked.built.is_none() {
        let device = queue.device().name().to_owned();
        return Err(ProgramError::NotBuiltFor { kernel: launch.kernel.name().to_owned(), device }.into());
    }
    Ok(())
}

/// Borrows the handles of a command.
struct Borrow<'a> {
    slot: Option<&'a Slot>,
}

/// Queues execute no other commands.
const NO_COMMAND: DriverError = DriverError::faulty("a command that no queue executes", DriverFault::Defect);

impl<'a> Translate<'a, ByHandle, ByRef<'a>> for Borrow<'a> {
    type Error = DriverError;

    fn mem(&mut self, mem: &'a Mem) -> Result<&'a Mem, DriverError> {
        Ok(mem)
    }

    fn kernel(&mut self, _: &'a Box<CheckedLaunch>, (): &'a ()) -> Result<(&'a KernelObject, ()), DriverError> {
        // A launch sets arguments first: see `Launch::run`.
        Err(NO_COMMAND)
    }

    fn bytes(&mut self, bytes: &'a Vec<u8>) -> Result<&'a [u8], DriverError> {
        Ok(bytes)
    }

    fn data(&mut self, data: &'a HostBytes, _: usize) -> Result<&'a HostBytes, DriverError> {
        Ok(data)
    }

    fn output(&mut self, (): &'a (), _: usize) -> Result<&'a Slot, DriverError> {
        self.slot.ok_or(NO_COMMAND)
    }

    fn task(&mut self, _: &'a TaskFn) -> Result<Infallible, DriverError> {
        Err(NO_COMMAND)
    }

    fn event(&mut self, (): &'a ()) -> Result<Infallible, DriverError> {
        Err(NO_COMMAND)
    }

    fn native(&mut self, _: &'a NativeFn) -> Result<Infallible, DriverError> {
        Err(NO_COMMAND)
    }

    fn executable(&mut self, _: &'a Child) -> Result<Infallible, DriverError> {
        Err(NO_COMMAND)
    }

    fn bodies(&mut self, never: &'a Infallible) -> Result<Infallible, DriverError> {
        match *never {}
    }

    fn alloc(&mut self, never: &'a Infallible) -> Result<Infallible, DriverError> {
        match *never {}
    }
}

impl Launch {
    #[inline(always)]
    pub(super) fn run(&self, checked: &Checked, to: &To<'_>) -> Result<Option<DriverEvent>> {
        if checked.loose { self.launch_and_keep(checked, to) } else { self.launch(checked, to) }
    }

    #[inline(always)]
    fn launch(&self, checked: &Checked, to: &To<'_>) -> Result<Option<DriverEvent>> {
        if let Some(index) = self.first_bound() {
            return Err(BuildError::new(self.subject(), BuildCause::ParameterExecuted { index }).into());
        }
        let Self { kernel, args, bytes, .. } = self;
        let Some(place) = checked.built else {
            let device = to.queue.device().name().to_owned();
            return Err(ProgramError::NotBuiltFor { kernel: kernel.name().to_owned(), device }.into());
        };
        let sizes = self.sizes(checked.built);
        if is_empty_range(sizes.global) {
            return Ok(enqueue::nothing(to)?);
        }
        let args = args.iter().map(|arg| match arg {
            Arg::Memory((region, _)) => Arg::Memory(&region.mem),
            Arg::Null(_) => Arg::Null(()),
            Arg::Sampler(sampler) => Arg::Sampler(sampler),
            Arg::Local(size) => Arg::Local(*size),
            Arg::Value((range, _)) => Arg::Value(&bytes[range.clone()]),
            // These have lists of their own.
            Arg::Indirect(_) | Arg::Global(_) | Arg::Unused(_) => Arg::Unused(()),
        });
        let launch =
            |object: &KernelObject| enqueue::kernel(to, object, sizes.dims, sizes.offset, sizes.global, sizes.local);
        let launched = if self.indirect.is_empty() {
            kernel.launch(place, args, launch)
        } else {
            // A kernel object cannot be told to forget memory that it reaches indirectly, so this launch gets a kernel
            // object of its own.
            let indirect = self.indirect.iter().map(|(region, _)| Arg::Indirect(&region.mem));
            kernel.with_args(to.queue.device(), args.chain(indirect)).map(|object| launch(&object))
        };
        match launched {
            Ok(event) => Ok(event?),
            Err(KernelObjectError::Create(error)) => Err(error),
            Err(KernelObjectError::Argument { index, source }) => {
                Err(ProgramError::Argument { kernel: kernel.name().to_owned(), index, source }.into())
            }
        }
    }

    /// Keeps the arguments alive until the kernel is complete: PoCL keeps neither samplers (6.0, 7.1) nor images that
    /// are made of buffers (3.1 to 7.1).
    #[cold]
    fn launch_and_keep(&self, checked: &Checked, to: &To<'_>) -> Result<Option<DriverEvent>> {
        let event = self.launch(checked, &To { event: true, ..*to })?;
        match &event {
            Some(event) => event_reaper::keep_until(event.clone(), self.args.clone()),
            None => event_reaper::leak(no_event("clEnqueueNDRangeKernel"), self.args.clone()),
        }
        Ok(event)
    }
}

/// The driver reported success, but returned no event.
pub(super) fn no_event(call: &'static str) -> DriverError {
    DriverError::faulty(call, DriverFault::NoEvent)
}
