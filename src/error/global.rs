//! Errors of device globals.

use super::{DriverError, ErrorKind};
use crate::GlobalWay;

/// Declaring, listing or using a [`DeviceGlobal`](crate::DeviceGlobal).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GlobalError {
    /// Two variables with one name.
    #[error(
        "two device globals are called `{name}`: a {first_type} at {first} and a {second_type} at {second}; give one another \
         name, or put it into a module of its own"
    )]
    NameClash {
        /// The name.
        name: &'static str,
        /// File and line of the one that was used first.
        first: &'static str,
        /// Its type.
        first_type: &'static str,
        /// File and line of the other.
        second: &'static str,
        /// Its type.
        second_type: &'static str,
    },
    /// A name that OpenCL C cannot have.
    #[error("`{c_name}` cannot be the name of device global `{name}` in OpenCL C: letters, digits and `_` make a name")]
    NotAName {
        /// The name given.
        c_name: String,
        /// The global.
        name: &'static str,
    },
    /// Two globals of one name in OpenCL C, or one global twice, in one program.
    #[error(
        "the program lists `{c_name}` for device global `{second}`, and {for_what}: give each a name of its own, and list it once"
    )]
    ListedTwice {
        /// The name in OpenCL C.
        c_name: String,
        /// The global listed last.
        second: &'static str,
        /// What was listed before.
        for_what: String,
    },
    /// A global that the source does not declare.
    #[error(
        "the program lists device global `{name}` as `{c_name}`, and the source does not declare that: write \
         `CLG_DEVICE_GLOBAL(type, {c_name});` before its first use. The compiler says:\n{log}"
    )]
    NotDeclared {
        /// The name in OpenCL C.
        c_name: String,
        /// The global.
        name: &'static str,
        /// The build log.
        log: String,
    },
    /// A global whose type in OpenCL C has another size.
    #[error(
        "device global `{name}` has {size} bytes as {type_name} in Rust, and `{c_name}` has {in_c} bytes in OpenCL C: both \
         have to be laid out alike"
    )]
    Size {
        /// The global.
        name: &'static str,
        /// Its type in Rust.
        type_name: &'static str,
        /// Its bytes in Rust.
        size: usize,
        /// The name in OpenCL C.
        c_name: String,
        /// Its bytes there.
        in_c: usize,
    },
    /// A way to get to globals that a device does not have, or a program not with its options.
    #[error("device globals cannot be reached by {way}: {why}")]
    Way {
        /// The way asked for.
        way: GlobalWay,
        /// Why not, and what there is.
        why: String,
    },
    /// A function that uses a global and has no hidden parameter for it.
    #[error(
        "a function uses device global `{name}` (`{c_name}`), or calls one that does, and does not have CLG_PARAMS at the end of its \
         parameters. The compiler says:\n{log}"
    )]
    NoParameter {
        /// The name in OpenCL C.
        c_name: String,
        /// The global.
        name: &'static str,
        /// The build log.
        log: String,
    },
    /// A binary or SPIR-V that was not made for these globals.
    #[error(
        "the program was not made with the device globals {names}, neither more nor less, for {way}: list those that it was made \
         with, or make it of the text that `ProgramBuilder::source_text` gives"
    )]
    NotInProgram {
        /// Their names in OpenCL C.
        names: String,
        /// The way.
        way: GlobalWay,
    },
    /// A raw program that was built with globals, by clgraph or by its text, and is not known as such.
    #[error(
        "the program was built with device globals, and the `Program` that has their memory is gone, or there never was one: keep \
         it, or load the binary with `ProgramBuilder`"
    )]
    ProgramGone,
    /// A program that does not tell its parameters, some of which are hidden.
    #[error(
        "kernel `{kernel}` may have hidden arguments for device globals, and the driver does not tell the names of its \
         parameters ({source}): build the program from source"
    )]
    HiddenArguments {
        /// The kernel.
        kernel: String,
        /// What the driver says instead.
        source: DriverError,
    },
    /// A kernel whose hidden arguments are not those of the globals that are listed.
    #[error(
        "kernel `{kernel}` has the parameter `{name}` where only those of the device globals listed for the program can be: list \
         what it was built with, and write CLG_PARAMS behind all other parameters"
    )]
    OtherArguments {
        /// The kernel.
        kernel: String,
        /// Its parameter.
        name: String,
    },
    /// A second program with a global that belongs to one.
    #[error(
        "device global `{name}` has `device_image_scope` and belongs to another program of this context: drop that first, with \
         its kernels, or declare it without the property"
    )]
    OtherProgram {
        /// The global.
        name: &'static str,
    },
    /// A global that belongs to a program, when there is none, or none with kernels.
    #[error(
        "device global `{name}` has `device_image_scope`, and {why}: build a program that lists it and has a kernel that uses it, \
         and keep the program"
    )]
    NoProgram {
        /// The global.
        name: &'static str,
        /// What is missing.
        why: &'static str,
    },
    /// A launch that says how it uses a global which its program does not list.
    #[error(
        "it is said to use device global `{name}`, and its program lists {has}: list it by `ProgramBuilder::global`, or leave it \
         out here"
    )]
    NotListed {
        /// The global.
        name: &'static str,
        /// What the program lists.
        has: String,
    },
}

impl GlobalError {
    /// What sort of error this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::HiddenArguments { source, .. } if source.kind() == ErrorKind::OutOfMemory => source.kind(),
            Self::NoProgram { .. } | Self::HiddenArguments { .. } | Self::NotInProgram { .. } | Self::ProgramGone => {
                ErrorKind::KernelNotSupported
            }
            Self::Way { .. } => ErrorKind::FeatureNotSupported,
            _ => ErrorKind::Invalid,
        }
    }
}
