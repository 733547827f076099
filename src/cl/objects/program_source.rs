//! The source that a program was built from, where clgraph can write it anew with more kernels in it.

use std::fmt;

use opencl_sys::{CL_PROGRAM_BUILD_OPTIONS, CL_PROGRAM_SOURCE};

use crate::cl::completion::user_code::log_later;
use crate::cl::objects::context::InContext;
use crate::cl::objects::program::Program;
use crate::cl::objects::program_builder::ProgramBuilder;
use crate::cl::query::info::{self, ask};
use crate::ffi::core::Core;
use crate::opencl_c::plain::Plain;
use crate::opencl_c::source::Source;
use crate::opencl_c::unreadable::Unreadable;

/// Why a program cannot be written anew.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NotRewritten {
    /// The driver has no source of the program: it was made from a binary, SPIR-V, built-in kernels, or by linking.
    NoSource,
    /// The program has device globals.
    Globals,
    /// It is built with an option that lets results differ between two programs.
    FastMath(&'static str),
    /// It is built with other options for another device.
    Options,
    Unreadable(Unreadable),
    /// OpenCL is not there any more.
    Driver,
}

impl fmt::Display for NotRewritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSource => f.write_str("the driver has no source of the program"),
            Self::Globals => f.write_str("the program has device globals"),
            Self::FastMath(option) => write!(f, "the program is built with {option}"),
            Self::Options => f.write_str("the program is built with other options for another device"),
            Self::Unreadable(why) => write!(f, "clgraph cannot read the program: {why}"),
            Self::Driver => f.write_str("the driver refused a query"),
        }
    }
}

/// Options by which two programs with one kernel may compute different bits.
///
/// `-cl-mad-enable` is not among them, although a compiler that may fuse `a * b + c` could do so in one of two programs. Many programs
/// have it, and kernel and guarded kernel gave the same bits on five drivers for CPUs (PoCL 3.1, 6.0 and 7.1, Intel's runtime,
/// rusticl) and on NVIDIA's.
///
/// `-cl-no-signed-zeros` is: `-(x - 1)` becomes `1 - x` where both are in one kernel, and a zero gets another sign.
const FAST_MATH: [&str; 4] =
    ["-cl-fast-relaxed-math", "-cl-unsafe-math-optimizations", "-cl-finite-math-only", "-cl-no-signed-zeros"];

/// The source of a program, as the driver has it, or without conditions and with its macros written out.
pub(in crate::cl) struct ProgramSource {
    pub(in crate::cl) text: String,
    pub(in crate::cl) options: String,
    pub(in crate::cl) source: Source,
}

impl ProgramSource {
    /// Returns whether both mean the same.
    pub(in crate::cl) fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || (self.text == other.text && self.options == other.options)
    }

    pub(in crate::cl) fn read(of: &Program) -> Result<Self, NotRewritten> {
        if !of.bound_globals().list().is_empty() {
            return Err(NotRewritten::Globals);
        }
        let core = Core::get().map_err(|_| NotRewritten::Driver)?;
        // Lines count from the first one, also from an empty one.
        let source = info::whole_text("clGetProgramInfo", ask!(core, clGetProgramInfo, of.raw(), CL_PROGRAM_SOURCE));
        let text = source
            .ok()
            .filter(|text| !text.trim().is_empty() && !text.contains(char::REPLACEMENT_CHARACTER))
            .ok_or(NotRewritten::NoSource)?;
        let mut options = None;
        for device in of.context().devices().iter().filter(|device| of.is_built_for(device).unwrap_or(false)) {
            let its = ask!(core, clGetProgramBuildInfo, of.raw(), device.raw(), CL_PROGRAM_BUILD_OPTIONS);
            let its = info::text("clGetProgramBuildInfo", its).map_err(|_| NotRewritten::NoSource)?;
            if options.get_or_insert_with(|| its.clone()) != &its {
                return Err(NotRewritten::Options);
            }
        }
        let options = options.ok_or(NotRewritten::NoSource)?;
        if let Some(option) = FAST_MATH.into_iter().find(|option| options.contains(option)) {
            return Err(NotRewritten::FastMath(option));
        }
        let kernels = |text: &str, options: &str| kernels(of, text, options);
        let Plain { text, source } = Plain::read(text, &options, kernels).map_err(NotRewritten::Unreadable)?;
        Ok(Self { text, options, source })
    }
}

/// Returns the names of the kernels of another program that is built for a program's device. None if there are several, of which each may have
/// others.
fn kernels(of: &Program, text: &str, options: &str) -> Option<Vec<String>> {
    let [_] = of.context().devices() else { return None };
    let program = ProgramBuilder::new(of).options(options).source(text);
    if let Err(error) = &program {
        log_later!(Debug, "a program that asks for macros of the compiler's cannot be built: {error}");
    }
    program.ok()?.all_kernel_names().ok()
}
