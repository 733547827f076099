//! Executing a request at once.

use super::queue::Queue;
use crate::cl::commands::enqueue::{self, To};
use crate::cl::completion::event_reaper;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::kernel_object::{KernelObject, KernelObjectError, SetArg};
use crate::error::{BuildCause, BuildError, DriverError, DriverFault, ProgramError, Result};
use crate::graph::nodes::fill::Fill;
use crate::graph::nodes::hint::HintRequest;
use crate::graph::nodes::launch::{Checked, GivenArgument, Launch};
use crate::graph::nodes::rect::{Laid, Rect};
use crate::graph::nodes::request::Request;
use crate::graph::nodes::transfer::{Copy, Write};
use crate::ir::Hint;

/// A request that can be enqueued at once.
pub(crate) trait Run: Request<Checked: Send + 'static> + Clone + Send + 'static {
    /// Calls `each` with the memory that the request uses.
    fn memory(&self, each: &mut dyn FnMut(&Mem));

    /// Whether the request uses memory that drivers keep no reference to: memory with an address. This crate then has
    /// to keep it alive.
    #[inline]
    fn needs_tracking(&self, _: &Self::Checked) -> bool {
        let mut needs_tracking = false;
        self.memory(&mut |mem| needs_tracking |= !mem.is_buffer());
        needs_tracking
    }

    /// Checks what [`run`](Self::run) would check, for a request that runs later.
    fn check_now(&self, _: &Self::Checked, _: &Queue) -> Result<()> {
        Ok(())
    }

    /// Enqueues the request. The objects that it uses are kept alive until the command is complete.
    fn run(&self, checked: &Self::Checked, to: &To<'_>) -> Result<Option<DriverEvent>>;
}

/// Enqueues a command of size zero as a marker: only its place in the queue's order, its wait list and its event
/// matter. Drivers disagree on commands of size zero.
pub(super) fn nothing(to: &To<'_>) -> Result<Option<DriverEvent>> {
    if to.waits.is_empty() && !to.event {
        return Ok(None);
    }
    enqueue::entry(to.queue, to.waits).map(Some)
}

impl Run for Copy {
    fn memory(&self, each: &mut dyn FnMut(&Mem)) {
        each(&self.src.mem);
        each(&self.dst.mem);
    }

    fn run(&self, checked: &Self::Checked, to: &To<'_>) -> Result<Option<DriverEvent>> {
        if let Some((launch, checked)) = checked {
            return launch.run(checked, to);
        }
        let Self { src, dst } = self;
        if src.size == 0 {
            return nothing(to);
        }
        Ok(enqueue::copy(to, (&src.mem, src.offset), (&dst.mem, dst.offset), src.size)?)
    }
}

impl Run for Rect {
    fn memory(&self, each: &mut dyn FnMut(&Mem)) {
        each(&self.src.region.mem);
        each(&self.dst.region.mem);
    }

    fn run(&self, laid: &Laid, to: &To<'_>) -> Result<Option<DriverEvent>> {
        let (from, into) = match laid {
            Laid::Command(from, into) => (from, into),
            Laid::Launch(launch, checked) => return launch.run(checked, to),
        };
        let region = self.bytes();
        if region.contains(&0) {
            return nothing(to);
        }
        let pitches = [from.row, from.slice, into.row, into.slice];
        let (src, dst) = (&self.src.region.mem, &self.dst.region.mem);
        Ok(enqueue::copy_rect(to, (src, &from.origin), (dst, &into.origin), &region, &pitches)?)
    }
}

impl Run for Fill {
    fn memory(&self, each: &mut dyn FnMut(&Mem)) {
        each(&self.dst.mem);
    }

    fn run(&self, checked: &Self::Checked, to: &To<'_>) -> Result<Option<DriverEvent>> {
        if let Some((launch, checked)) = checked {
            return launch.run(checked, to);
        }
        let Self { dst, pattern } = self;
        if dst.size == 0 {
            return nothing(to);
        }
        Ok(enqueue::fill(to, (&dst.mem, dst.offset), pattern, dst.size)?)
    }
}

impl Run for Write {
    fn memory(&self, each: &mut dyn FnMut(&Mem)) {
        each(&self.dst.mem);
    }

    /// The data is kept until the command is complete, so the command needs an event.
    fn run(&self, (): &(), to: &To<'_>) -> Result<Option<DriverEvent>> {
        let Self { dst, data } = self;
        if dst.size == 0 {
            return nothing(to);
        }
        let event = enqueue::write(&To { event: true, ..*to }, (&dst.mem, dst.offset), data)?;
        match &event {
            Some(event) => event_reaper::keep_until(event.clone(), data.clone()),
            None => event_reaper::leak(no_event("clEnqueueWriteBuffer"), data.clone()),
        }
        Ok(event)
    }
}

impl Run for HintRequest {
    fn memory(&self, each: &mut dyn FnMut(&Mem)) {
        each(&self.of.mem);
    }

    fn run(&self, (): &(), to: &To<'_>) -> Result<Option<DriverEvent>> {
        let Self { of, hint } = self;
        if of.size == 0 {
            return nothing(to);
        }
        let place = (&of.mem, of.offset);
        let taken = match hint {
            Hint::Advice(advice) => enqueue::advise(to, place, of.size, *advice)?,
            hint => enqueue::migrate(to, place, of.size, *hint == Hint::ToHost)?,
        };
        taken.map_or_else(|| nothing(to), |taken| Ok(taken.0))
    }
}

impl Run for Launch {
    fn memory(&self, each: &mut dyn FnMut(&Mem)) {
        for arg in &self.args {
            if let GivenArgument::Buffer(region, _) = arg {
                each(&region.mem);
            }
        }
        self.indirect.iter().for_each(|(region, _)| each(&region.mem));
        self.kernel.program().bound_globals().mems().for_each(each);
    }

    #[inline]
    fn needs_tracking(&self, checked: &Checked) -> bool {
        checked.addresses
    }

    fn check_now(&self, checked: &Checked, queue: &Queue) -> Result<()> {
        if let Some(index) = self.first_bound() {
            return Err(BuildError::new(self.subject(), BuildCause::ParameterExecuted { index }).into());
        }
        if checked.built.is_none() {
            let device = queue.device().name().to_owned();
            return Err(ProgramError::NotBuiltFor { kernel: self.kernel.name().to_owned(), device }.into());
        }
        Ok(())
    }

    #[inline(always)]
    fn run(&self, checked: &Checked, to: &To<'_>) -> Result<Option<DriverEvent>> {
        if checked.loose { self.launch_and_keep(checked, to) } else { self.launch(checked, to) }
    }
}

impl Launch {
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
        if sizes.global.contains(&0) {
            return nothing(to);
        }
        let args = args.iter().map(|arg| match arg {
            GivenArgument::Buffer(region, _) => SetArg::Mem(&region.mem),
            GivenArgument::Null(_) => SetArg::Null,
            GivenArgument::Sampler(sampler) => SetArg::Sampler(sampler),
            GivenArgument::Local(size) => SetArg::Local(*size),
            GivenArgument::Value(range, _) => SetArg::Value(&bytes[range.clone()]),
        });
        let launch =
            |object: &KernelObject| enqueue::kernel(to, object, sizes.dims, sizes.offset, sizes.global, sizes.local);
        let launched = if self.indirect.is_empty() {
            kernel.launch(place, args, launch)
        } else {
            // A kernel object cannot be told to forget memory that it reaches indirectly, so this launch gets a kernel
            // object of its own.
            let indirect = self.indirect.iter().map(|(region, _)| SetArg::Indirect(&region.mem));
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
