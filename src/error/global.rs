//! Errors of device globals.

use super::{DriverError, ErrorKind};
use crate::caps::GlobalAccess;

/// Declaring, listing or using a [`DeviceGlobal`](crate::DeviceGlobal) failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GlobalError {
    /// Two device globals have the same name.
    #[error(
        "two device globals are named `{name}`: a {first_type} at {first} and a {second_type} at {second}; rename one \
         of them, or move it into a module of its own"
    )]
    NameClash {
        /// The name.
        name: &'static str,
        /// The file and line of the global that was used first.
        first: &'static str,
        /// The Rust type of that global.
        first_type: &'static str,
        /// The file and line of the other global.
        second: &'static str,
        /// The Rust type of the other global.
        second_type: &'static str,
    },
    /// A device global that is declared at run time has no bytes.
    #[error("device global `{name}` has 0 bytes: give it at least one")]
    Empty {
        /// The global.
        name: String,
    },
    /// The initial value of a device global that is declared at run time has another size than the device global.
    #[error(
        "device global `{name}` has {size} bytes, and its initial value {given}: give an initial value of {size} bytes, or none"
    )]
    InitialSize {
        /// The global.
        name: String,
        /// Its size in bytes.
        size: usize,
        /// The size of the initial value in bytes.
        given: usize,
    },
    /// A name is not an identifier of OpenCL C.
    #[error(
        "`{c_name}` cannot be the name of device global `{name}` in OpenCL C: use letters, digits and `_` only, and no \
         digit first"
    )]
    NotAName {
        /// The name given for OpenCL C.
        c_name: String,
        /// The global.
        name: &'static str,
    },
    /// One program lists two globals with the same name in OpenCL C, or one global twice.
    #[error(
        "the program lists device global `{second}` as `{c_name}`, but {for_what}: list each global once, with a name \
         of its own"
    )]
    ListedTwice {
        /// The name in OpenCL C.
        c_name: String,
        /// The global that was listed last.
        second: &'static str,
        /// How this clashes with what was listed before, as a clause.
        for_what: String,
    },
    /// The source does not declare a global that the program lists.
    #[error(
        "the program lists device global `{name}` as `{c_name}`, but the source does not declare it: write \
         `CLG_DEVICE_GLOBAL(type, {c_name});` before its first use. The compiler reports:\n{log}"
    )]
    NotDeclared {
        /// The name in OpenCL C.
        c_name: String,
        /// The global.
        name: &'static str,
        /// The build log.
        log: String,
    },
    /// A global has another size in OpenCL C than in Rust.
    #[error(
        "device global `{name}` has {size} bytes as {type_name} in Rust, but `{c_name}` has {in_c} bytes in OpenCL C: \
         give both types the same layout"
    )]
    Size {
        /// The global.
        name: &'static str,
        /// Its type in Rust.
        type_name: &'static str,
        /// Its size in Rust, in bytes.
        size: usize,
        /// Its name in OpenCL C.
        c_name: String,
        /// Its size in OpenCL C, in bytes.
        in_c: usize,
    },
    /// The device, or the program with its options, does not support the asked kind of access to device globals.
    #[error("device globals cannot be accessed by {access}: {why}")]
    Access {
        /// The kind of access that was asked for.
        access: GlobalAccess,
        /// Why not, and what is supported.
        why: String,
    },
    /// A function uses a global, but has no hidden parameter for it.
    #[error(
        "a function uses device global `{name}` (`{c_name}`), or calls a function that does, but does not have \
         CLG_PARAMS: write CLG_PARAMS at the end of its parameters. The compiler reports:\n{log}"
    )]
    NoParameter {
        /// The name in OpenCL C.
        c_name: String,
        /// The global.
        name: &'static str,
        /// The build log.
        log: String,
    },
    /// A binary or SPIR-V was made with other globals, or for another kind of access.
    #[error(
        "the binary or SPIR-V was not made with exactly the device globals {names} for access by {access}: list the \
         globals that it was made with, or make it again from the text that `ProgramBuilder::source_text` returns"
    )]
    NotInProgram {
        /// The names in OpenCL C of the globals that were listed, each in backquotes.
        names: String,
        /// The kind of access.
        access: GlobalAccess,
    },
    /// A raw program was built with globals, but no `Program` of clgraph has the memory of these globals.
    #[error(
        "the program was built with device globals, but no `Program` with their memory exists: keep the `Program` that \
         built it, or load the binary with `ProgramBuilder`"
    )]
    ProgramGone,
    /// The driver does not report the parameters of a kernel, and some of them may be hidden.
    #[error(
        "kernel `{kernel}` may have hidden arguments for device globals, but the driver does not report the names of \
         its parameters ({source}): build the program from source"
    )]
    HiddenArguments {
        /// The kernel.
        kernel: String,
        /// The error of the query.
        source: DriverError,
    },
    /// The hidden arguments of a kernel do not belong to the globals that the program lists.
    #[error(
        "kernel `{kernel}` has the parameter `{name}` in a place for device globals, but the program lists no such \
         global: list the globals that the program was built with, and write CLG_PARAMS after all other parameters"
    )]
    OtherArguments {
        /// The kernel.
        kernel: String,
        /// The name of the parameter.
        name: String,
    },
    /// A global with `device_image_scope` belongs to another program.
    #[error(
        "device global `{name}` has `device_image_scope` and belongs to another program of this context: drop that \
         program and its kernels first, or declare the global without the property"
    )]
    OtherProgram {
        /// The global.
        name: &'static str,
    },
    /// No program has the memory of a global with `device_image_scope`.
    #[error(
        "device global `{name}` has `device_image_scope`, but {why}: build a program that lists the global and has a \
         kernel that uses it, and keep the program"
    )]
    NoProgram {
        /// The global.
        name: &'static str,
        /// What is missing, as a clause.
        why: &'static str,
    },
    /// A launch declares the use of a global that its program does not list.
    #[error(
        "the launch declares a use of device global `{name}`, but its program lists {has}: list the global with \
         `ProgramBuilder::global`, or do not declare its use here"
    )]
    NotListed {
        /// The global.
        name: &'static str,
        /// The globals that the program lists.
        has: String,
    },
}

impl GlobalError {
    /// Returns the sort of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::HiddenArguments { source, .. } if source.kind() == ErrorKind::OutOfMemory => source.kind(),
            Self::NoProgram { .. } | Self::HiddenArguments { .. } | Self::NotInProgram { .. } | Self::ProgramGone => {
                ErrorKind::KernelNotSupported
            }
            Self::Access { .. } => ErrorKind::FeatureNotSupported,
            _ => ErrorKind::Invalid,
        }
    }
}
