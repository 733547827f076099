//! What can go wrong: one enum a phase, one [`Error`] over them all.
//!
//! Every message says what was wrong, where, and what to do. Code that has to choose what to do matches
//! [`Error::kind`] or the enum of the phase; all of them are non-exhaustive, and their variants may get more fields: end
//! patterns by `..`.

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
/// Code that has to choose what to do matches [`kind`](Self::kind), or the enum of the phase. All of them are non-exhaustive,
/// and their variants may get more fields: end patterns by `..`.
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
    /// What came first: how something failed that others waited for, without those who passed it on. So a chain of submissions has
    /// short errors, however long it is.
    pub(crate) fn root(self) -> Self {
        let mut error = self;
        loop {
            match error {
                Self::Submit(
                    SubmitError::DependencyFailed { cause }
                    | SubmitError::ExternalEvent { cause, .. }
                    | SubmitError::EventFailed { cause, .. },
                ) => error = *cause,
                root => return root,
            }
        }
    }

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
    /// It cannot be now, and may come: what is waited for is not complete, or something is held that will be let go.
    NotReady,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "invalid",
            Self::FeatureNotSupported => "feature not supported",
            Self::KernelNotSupported => "kernel not supported",
            Self::OutOfMemory => "out of memory",
            Self::Driver => "driver",
            Self::Failed => "failed",
            Self::NotReady => "not ready",
        })
    }
}

/// A failed OpenCL call: its name and the status that it returned, or what else was wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{call} {}", self.told())]
#[non_exhaustive]
pub struct DriverError {
    /// The name of the C function, for example `clEnqueueNDRangeKernel`; or `a command` for a command that failed while it
    /// ran.
    pub call: &'static str,
    /// What it returned. With a [`fault`](Self::fault) no driver returned it: `CL_SUCCESS` where the call succeeded, and
    /// `CL_INVALID_OPERATION` where there was none.
    pub status: Status,
    /// What was wrong, where it was no status.
    pub fault: Option<Fault>,
}

/// What can be wrong with an OpenCL call that did not fail by a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// It succeeded and gave no event, although it was asked for one.
    NoEvent,
    /// It succeeded and gave no object.
    NoObject,
    /// It succeeded and gave no address.
    NoAddress,
    /// It succeeded and gave pitches that are less than what is to lie between them.
    Pitch,
    /// The loader or the driver does not have the function.
    Missing,
    /// clgraph could not make the call, by a defect of its own.
    Defect,
}

impl DriverError {
    /// A failure of a call.
    #[must_use]
    pub const fn new(call: &'static str, status: Status) -> Self {
        Self { call, status, fault: None }
    }

    /// A call that did not fail by a status.
    pub(crate) const fn faulty(call: &'static str, fault: Fault) -> Self {
        let status = match fault {
            Fault::Missing | Fault::Defect => opencl_sys::CL_INVALID_OPERATION,
            _ => opencl_sys::CL_SUCCESS,
        };
        Self { call, status: Status(status), fault: Some(fault) }
    }

    fn told(&self) -> String {
        match self.fault {
            None => format!("failed with {}", self.status),
            Some(fault) => match fault {
                Fault::NoEvent => "succeeded and gave no event: a fault of the driver",
                Fault::NoObject => "succeeded and gave no object: a fault of the driver",
                Fault::NoAddress => "succeeded and gave no address: a fault of the driver",
                Fault::Pitch => "succeeded and gave pitches that are too small: a fault of the driver",
                Fault::Missing => "is missing: the loader or the driver does not have it",
                Fault::Defect => "could not be called: this is a defect of clgraph, please report it",
            }
            .to_owned(),
        }
    }

    /// [`ErrorKind::OutOfMemory`] for `CL_MEM_OBJECT_ALLOCATION_FAILURE`, `CL_OUT_OF_RESOURCES` and
    /// `CL_OUT_OF_HOST_MEMORY`, [`ErrorKind::FeatureNotSupported`] for a function that is missing, otherwise
    /// [`ErrorKind::Driver`].
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        if self.fault == Some(Fault::Missing) {
            return ErrorKind::FeatureNotSupported;
        }
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
/// A newtype and not an enum, because a driver may return a number that no header lists. There is nothing else in it.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rules E1, E4: what no driver has returned is not shown as if one had.
    #[test]
    fn a_call_that_did_not_fail_by_a_status_shows_none() {
        let faults = [
            (Fault::NoEvent, "succeeded and gave no event: a fault of the driver", ErrorKind::Driver),
            (Fault::NoObject, "succeeded and gave no object: a fault of the driver", ErrorKind::Driver),
            (Fault::NoAddress, "succeeded and gave no address: a fault of the driver", ErrorKind::Driver),
            (Fault::Pitch, "succeeded and gave pitches that are too small: a fault of the driver", ErrorKind::Driver),
            (Fault::Missing, "is missing: the loader or the driver does not have it", ErrorKind::FeatureNotSupported),
            (Fault::Defect, "could not be called: this is a defect of clgraph, please report it", ErrorKind::Driver),
        ];
        for (fault, told, kind) in faults {
            let error = DriverError::faulty("clEnqueueFillBuffer", fault);
            assert_eq!(error.to_string(), format!("clEnqueueFillBuffer {told}"));
            assert_eq!((error.kind(), error.fault), (kind, Some(fault)));
        }
        // What is compared on the way to the device stays as small as it was: the fault lies where padding would.
        #[cfg(target_pointer_width = "64")]
        assert_eq!(size_of::<DriverError>(), size_of::<(&'static str, Status)>());
    }
}
