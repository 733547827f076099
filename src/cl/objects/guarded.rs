//! Programs with guarded kernels: see [`crate::opencl_c::guard`].
//!
//! A program has one such twin, made when it is first needed from the source that the driver has. Whatever keeps a twin from being
//! made is no error: it is a reason for the report.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use crate::cl::commands::command::ByRef;
use crate::cl::completion::user_code::log_later;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::context::InContext;
use crate::cl::objects::device::Device;
use crate::cl::objects::kernel::Kernel;
use crate::cl::objects::kernel_object::{KernelObject, KernelObjectError};
use crate::cl::objects::program::Program;
use crate::cl::objects::program_builder::ProgramBuilder;
use crate::cl::objects::program_source::{NotRewritten, ProgramSource};
use crate::command::Arg;
use crate::error::{DriverError, Error, ProgramError};
use crate::opencl_c::guard::{self, PREFIX};
use crate::opencl_c::source::Effects;
use crate::opencl_c::unreadable::Unreadable;
use crate::quirks;

/// Why a kernel has no guarded twin.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NotGuarded {
    Program(NotRewritten),
    Unreadable(Unreadable),
    /// The driver compiles calls of kernels with barriers wrongly.
    Waits,
    /// The driver loses vectors of three components on their way to functions.
    Threes,
    /// The driver's compiler does not survive calls of functions with so many parameters.
    Arguments(usize),
    /// The driver refused something that a guard needs, or says something else about the kernel with a guard.
    Driver,
    /// The compiler does not build the twin.
    NotBuilt,
}

pub(super) const THREES: &str = "it or a function that it calls may take or return a vector of three components, and the driver does not pass these rightly";

impl fmt::Display for NotGuarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(why) => why.fmt(f),
            Self::Unreadable(why) => write!(f, "clgraph cannot read the program: {why}"),
            Self::Waits => {
                f.write_str("it has barriers or local memory, and the driver compiles calls of such kernels wrongly")
            }
            Self::Threes => f.write_str(THREES),
            Self::Arguments(count) => {
                write!(f, "the driver's compiler crashes on calls of functions with its {count} arguments")
            }
            Self::NotBuilt => f.write_str("the driver's compiler does not build the program with guards"),
            Self::Driver => f.write_str("the driver refused something that the guard needs"),
        }
    }
}

/// The twin of a program.
pub(in crate::cl) struct GuardedProgram {
    program: Program,
    /// By name: what the kernels may do and their twins, or why they have none.
    kernels: BTreeMap<String, Result<Twin, NotGuarded>>,
}

/// What is known of a kernel that can be read.
struct Twin {
    effects: Effects,
    /// Made when it is first needed.
    kernel: OnceLock<Kernel>,
}

impl GuardedProgram {
    /// Builds the twin of a program.
    pub(in crate::cl) fn build(of: &Program) -> Result<Self, NotGuarded> {
        let of_program = of.source().map_err(|why| NotGuarded::Program(why.clone()))?;
        let ProgramSource { text, options, source } = &**of_program;
        let names = of.kernel_names().map_err(|_| NotGuarded::Driver)?;
        let devices = of.context().devices().iter();
        let most = devices.filter_map(|device| quirks::most_arguments_of_functions(device.caps())).min();
        let count = |name: &str| source.kernel(name).map_or(0, |kernel| kernel.each().len());
        let (many, few): (Vec<&str>, Vec<&str>) =
            names.iter().map(String::as_str).partition(|name| most.is_some_and(|most| count(name) > most));
        let (text, outcomes) = guard::guarded(text, source, few);
        let twin = |name: &str| Twin { effects: source.effects(name), kernel: OnceLock::new() };
        let mut kernels: BTreeMap<String, Result<Twin, NotGuarded>> =
            many.into_iter().map(|name| (name.to_owned(), Err(NotGuarded::Arguments(count(name))))).collect();
        kernels.extend(
            outcomes
                .into_iter()
                .map(|(name, outcome)| (name.to_owned(), outcome.map(|()| twin(name)).map_err(NotGuarded::Unreadable))),
        );
        let built = ProgramBuilder::new(of).options(options).source(&text).map_err(|error| {
            log_later!(Debug, "a program with guarded kernels cannot be built: {error}");
            match error {
                Error::Program(ProgramError::BuildFailed { .. }) => NotGuarded::NotBuilt,
                _ => NotGuarded::Driver,
            }
        });
        Ok(Self { program: built?, kernels })
    }
}

/// The kernels of clgraph's own that a loop needs whose turns are enqueued ahead.
#[derive(Debug)]
pub(crate) struct LoopKernels {
    pub(crate) latch: Kernel,
    pub(crate) fill: Kernel,
    pub(crate) fill_words: Kernel,
    pub(crate) copy: Kernel,
    pub(crate) copy_words: Kernel,
}

impl Kernel {
    /// Returns the twin that runs only if a number is not zero, which is its last argument.
    pub(crate) fn guarded(&self, device: &Device) -> Result<Self, NotGuarded> {
        let of = self.program().guarded()?;
        let known = of.kernels.get(self.name()).ok_or(NotGuarded::Unreadable(Unreadable::NoKernel))?;
        let known = known.as_ref().map_err(Clone::clone)?;
        if known.effects.may_wait && !quirks::calls_barriers_under_conditions(device.caps()) {
            return Err(NotGuarded::Waits);
        }
        if known.effects.may_pass_threes && quirks::loses_vectors_of_three(device.caps()) {
            return Err(NotGuarded::Threes);
        }
        let twin = match known.kernel.get() {
            Some(twin) => twin.clone(),
            // A driver that refuses it now may make it later.
            None => {
                let made = of.program.kernel(&format!("{PREFIX}{}", self.name())).map_err(|_| NotGuarded::Driver)?;
                known.kernel.get_or_init(|| made).clone()
            }
        };
        let (own, its) = (self.facts(device), twin.facts(device));
        let (Some(own), Some(its)) = (own, its) else { return Err(NotGuarded::Driver) };
        let same = its.max_work_group >= own.max_work_group && its.required_work_group == own.required_work_group;
        if !same || twin.num_args() != self.num_args() + 1 { Err(NotGuarded::Driver) } else { Ok(twin) }
    }

    /// Returns whether results of the kernel may depend on how the driver divides a range that it may divide.
    pub(crate) fn may_see_groups(&self) -> bool {
        let known = self.program().guarded().ok().and_then(|of| of.kernels.get(self.name())?.as_ref().ok());
        known.is_none_or(|known| known.effects.may_see_groups)
    }

    /// Returns whether the kernel may have loops.
    pub(crate) fn may_loop(&self) -> bool {
        let known = self.program().guarded().ok().and_then(|of| of.kernels.get(self.name())?.as_ref().ok());
        known.is_none_or(|known| known.effects.may_loop)
    }

    /// Returns clgraph's own kernels for loops, which the twin of the kernel's program has.
    pub(crate) fn loop_kernels(&self) -> Result<LoopKernels, NotGuarded> {
        let program = &self.program().guarded()?.program;
        let kernel = |name: &str| program.kernel(name).map_err(|_| NotGuarded::Driver);
        Ok(LoopKernels {
            latch: kernel(guard::LATCH)?,
            fill: kernel(guard::FILL)?,
            fill_words: kernel(guard::FILL_WORDS)?,
            copy: kernel(guard::COPY)?,
            copy_words: kernel(guard::COPY_WORDS)?,
        })
    }

    /// Makes a kernel object of a twin, as [`with_args`](Self::with_args) does. `args` are those of the kernel itself, and `state`
    /// begins with the number.
    pub(crate) fn guarded_with_args<'a>(
        &'a self,
        device: &'a Device,
        args: impl Iterator<Item = Arg<ByRef<'a>>>,
        state: &'a Mem,
    ) -> Result<KernelObject, KernelObjectError> {
        let mut object = self.with_args(device, args)?;
        let index = self.num_args() as usize - 1;
        let set: Result<(), DriverError> = object.set(index, Arg::Memory(state));
        set.map_err(|source| KernelObjectError::Argument { index, source })?;
        Ok(object.guarded())
    }
}
