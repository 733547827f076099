//! What can go wrong: one enum a phase, one [`Error`] over them all.
//!
//! Every message says what was wrong, where, and what to do. Code that has to choose what to do matches
//! [`Error::kind`] or the enum of the phase; all of them are non-exhaustive.

mod build;
mod global;
mod record;
mod run;
mod setup;
mod update;

pub use build::{BuildCause, BuildError};
pub use global::GlobalError;
pub use record::RecordError;
pub use run::{FinalizeError, SubmitError};
pub use setup::{MemoryError, ProgramError, SetupError};
pub use update::{ParameterError, UpdateError};

use std::fmt;

use crate::graph::Node;

/// The result of every fallible function of the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any error of the crate.
///
/// A call that returns one has changed nothing, unless its documentation says otherwise.
///
/// ```
/// use clgraph::{Error, ErrorKind, SetupError};
/// let error = Error::from(SetupError::NoPlatform);
/// assert_eq!(error.kind(), ErrorKind::FeatureNotSupported);
/// assert!(error.to_string().contains("install"));
/// ```
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Finding OpenCL, a platform, a device, a context or a queue.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// Making or wrapping a buffer, or naming a part of one.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Making a program or a kernel.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// Declaring, listing or using a device global.
    #[error(transparent)]
    Global(#[from] GlobalError),
    /// Adding a node or an edge to a graph, or asking a graph about one.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Turning a graph into an executable.
    #[error(transparent)]
    Finalize(#[from] FinalizeError),
    /// Recording queues, and events that stand for nodes.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Submitting an executable, or how a submission ended.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// Setting a parameter.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// Updating an executable.
    #[error(transparent)]
    Update(#[from] UpdateError),
    /// An OpenCL call failed for a reason that clgraph cannot know beforehand.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// As its text, because this is what `main` and `unwrap` print.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// What sort of error this is, for code that has to choose what to do next.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Setup(error) => error.kind(),
            Self::Memory(error) => error.kind(),
            Self::Program(error) => error.kind(),
            Self::Global(error) => error.kind(),
            Self::Build(error) => error.kind(),
            Self::Finalize(error) => error.kind(),
            Self::Record(error) => error.kind(),
            Self::Submit(error) => error.kind(),
            Self::Parameter(error) => error.kind(),
            Self::Update(error) => error.kind(),
            Self::Driver(error) => error.kind(),
        }
    }
}

/// The sorts of error, across all phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller asked for something that the rules forbid. Nothing changed.
    Invalid,
    /// The driver, platform or device lacks what was asked for.
    FeatureNotSupported,
    /// A kernel or program cannot be used on this device.
    KernelNotSupported,
    /// The host or the device is out of memory or of resources.
    OutOfMemory,
    /// An OpenCL call failed for another reason, or work failed while it ran.
    Driver,
    /// What the program brought has failed: the function of a host task or a native command, or a user event.
    Failed,
    /// It is not there yet, and may come.
    NotReady,
}

/// A failed OpenCL call: its name and the status that it returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed with {status}")]
#[non_exhaustive]
pub struct DriverError {
    /// The name of the C function, for example `clEnqueueNDRangeKernel`; or `command` for a command that failed while it
    /// ran.
    pub call: &'static str,
    /// What it returned.
    pub status: Status,
}

impl DriverError {
    /// A failure of a call.
    #[must_use]
    pub const fn new(call: &'static str, status: Status) -> Self {
        Self { call, status }
    }

    /// [`ErrorKind::OutOfMemory`] for the three statuses that mean it, otherwise [`ErrorKind::Driver`].
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self.status.0 {
            opencl_sys::CL_MEM_OBJECT_ALLOCATION_FAILURE
            | opencl_sys::CL_OUT_OF_RESOURCES
            | opencl_sys::CL_OUT_OF_HOST_MEMORY => ErrorKind::OutOfMemory,
            _ => ErrorKind::Driver,
        }
    }
}

/// An OpenCL status code, shown with its name: `CL_OUT_OF_RESOURCES (-5)`.
///
/// A newtype and not an enum, because a driver may return a number that no header lists.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub i32);

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", opencl3::error_codes::error_text(self.0), self.0)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The nodes on a cycle: the first ones, and the first once more.
fn show_path(nodes: &[Node]) -> String {
    const SHOWN: usize = 16;
    let mut text = nodes.iter().take(SHOWN).map(|node| format!("{node} -> ")).collect::<String>();
    if nodes.len() > SHOWN {
        text.push_str(&format!("... ({} more) -> ", nodes.len() - SHOWN));
    }
    if let Some(first) = nodes.first() {
        text.push_str(&first.to_string());
    }
    text
}
