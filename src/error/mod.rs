//! What can go wrong: one enum for each phase, and one [`Error`] over all of them.
//!
//! | file | phase |
//! |---|---|
//! | `setup.rs` | before there is a graph: the library, devices, queues, memory, programs |
//! | `global.rs` | device globals |
//! | `build.rs` | building: which node is wrong, and why |
//! | `command.rs` | work-group sizes, rectangles and command groups |
//! | `record.rs` | recording: the state of queues, and events that stand for nodes |
//! | `run.rs` | finalizing and submitting |
//! | `update.rs` | parameters, and updating executables |
//! | `foreign.rs` | which parts of messages are not clgraph's words, for other languages |
//!
//! Every message says what is wrong, where, and what to do, in that order. Code that has to decide matches
//! [`Error::kind`] or the enum of the phase. All of them are non-exhaustive, and their variants may get more fields:
//! end patterns with `..`. An error names nodes by plain handles (`handles.rs`) and keeps nothing alive. Rules: E1, E4.

mod build;
mod command;
mod foreign;
mod global;
mod record;
mod run;
mod setup;
mod update;

pub use build::{BuildCause, BuildError};
pub use command::{GroupError, RectError, WorkGroupError};
pub use global::GlobalError;
pub use record::RecordError;
pub use run::{FinalizeError, Strayed, SubmitError};
pub use setup::{MemoryError, ProgramError, SetupError};
pub use update::{ParameterError, UpdateError};

use std::fmt;

use crate::handles::Node;

/// The result of each function of the crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any error of the crate.
///
/// A call that returns an error has changed nothing, unless its documentation says otherwise.
///
/// Programs match [`kind`](Self::kind) or the enum of a phase, and not the words of a message. All enums are
/// non-exhaustive, and their variants may get more fields: end patterns with `..`.
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
    /// Finding OpenCL, a platform or a device, or making a context or a queue.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// Making, wrapping, slicing or mapping memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Making a program or a kernel.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// Declaring, listing or using a device global.
    #[error(transparent)]
    Global(#[from] GlobalError),
    /// Adding a node or an edge to a graph, asking a graph about a node, or enqueueing a command.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Finalizing a graph into an executable.
    #[error(transparent)]
    Finalize(#[from] FinalizeError),
    /// Recording a queue, or using an event of a recorded command.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Submitting an executable, or the failure of a submission.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// Setting a parameter.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// Updating an executable.
    #[error(transparent)]
    Update(#[from] UpdateError),
    /// An OpenCL call failed for a reason that clgraph could not check before the call.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// The message, because `main` and `unwrap` print the debug form.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the failed call at the end of a chain of causes.
fn deepest(first: &(dyn std::error::Error + 'static)) -> Option<DriverError> {
    let mut next = Some(first);
    let mut found = None;
    while let Some(error) = next {
        found = call_of(error).or(found);
        next = error.source();
    }
    found
}

/// Returns the failed call that an error is or passes on. One that it passes on is not in the chain of causes.
fn call_of(error: &(dyn std::error::Error + 'static)) -> Option<DriverError> {
    if let Some(call) = error.downcast_ref::<DriverError>() {
        return Some(*call);
    }
    if let Some(BuildError { cause, .. }) = error.downcast_ref() {
        return call_of(&**cause);
    }
    if let Some(FinalizeError::Node { cause, .. }) = error.downcast_ref() {
        return call_of(cause);
    }
    if let Some(UpdateError::Node { cause, .. }) = error.downcast_ref() {
        return call_of(cause);
    }
    match error.downcast_ref() {
        Some(BuildCause::Driver(call)) => return Some(*call),
        Some(BuildCause::Memory(error)) => return call_of(error),
        Some(BuildCause::Global(error)) => return deepest(error),
        _ => {}
    }
    if let Some(MemoryError::Driver(call)) = error.downcast_ref() {
        return Some(*call);
    }
    if let Some(ProgramError::Driver(call)) = error.downcast_ref() {
        return Some(*call);
    }
    match error.downcast_ref() {
        Some(SubmitError::Driver(call) | SubmitError::CommandFailed(call)) => Some(*call),
        _ => None,
    }
}

impl Error {
    /// Returns the first failure of a chain: of a submission that did not run because another one failed, the error of
    /// that other submission. So errors stay short, however long a chain of submissions is.
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

    /// Returns the failure of the OpenCL call, or of the command, that this error is about, if it is about one: also
    /// where a submission, or something that it waited for, failed because of it.
    ///
    /// ```
    /// # use clgraph::{Error, DriverError, Status};
    /// let error = Error::from(DriverError::new("clEnqueueFillBuffer", Status(-5)));
    /// assert_eq!(error.driver_error().map(|driver| driver.status.0), Some(-5));
    /// ```
    #[must_use]
    pub fn driver_error(&self) -> Option<DriverError> {
        let mut error = self;
        loop {
            match error {
                Self::Driver(driver) | Self::Submit(SubmitError::CommandFailed(driver)) => return Some(*driver),
                Self::Submit(
                    SubmitError::DependencyFailed { cause }
                    | SubmitError::ExternalEvent { cause, .. }
                    | SubmitError::EventFailed { cause, .. },
                ) => error = cause,
                // The errors of phases pass the texts of causes on, and stand for them in a chain of causes.
                Self::Setup(of) => return deepest(of),
                Self::Memory(of) => return deepest(of),
                Self::Program(of) => return deepest(of),
                Self::Global(of) => return deepest(of),
                Self::Build(of) => return deepest(of),
                Self::Finalize(of) => return deepest(of),
                Self::Record(of) => return deepest(of),
                Self::Submit(of) => return deepest(of),
                Self::Parameter(of) => return deepest(of),
                Self::Update(of) => return deepest(of),
            }
        }
    }

    /// Returns the sort of this error, for programs that choose what to do next.
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

/// The sorts of errors, across all phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call breaks a rule of clgraph or of OpenCL. Nothing changed.
    Invalid,
    /// The driver, the platform or the device does not support what was asked for.
    FeatureNotSupported,
    /// A kernel or a program cannot be used on this device.
    KernelNotSupported,
    /// The host or the device is out of memory or of other resources.
    OutOfMemory,
    /// An OpenCL call failed for another reason, or a command failed while it ran.
    Driver,
    /// The program's own code reported a failure: the function of a host task or of a native command, or a user event.
    Failed,
    /// The call is not possible now, but can be later: something is not complete yet, or is in use.
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

/// An OpenCL call that failed: its name, and the status that it returned or what else was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{call} {}", self.outcome())]
#[non_exhaustive]
pub struct DriverError {
    /// The name of the C function, for example `clEnqueueNDRangeKernel`. For a command that failed while it ran: `a
    /// command`.
    pub call: &'static str,
    /// The status that the call returned. With a [`fault`](Self::fault) this is `CL_SUCCESS` if the call succeeded, and
    /// `CL_INVALID_OPERATION` if there was no call.
    pub status: Status,
    /// What was wrong, if the call did not fail by a status.
    pub fault: Option<DriverFault>,
}

/// What was wrong with an OpenCL call that did not fail by a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DriverFault {
    /// The call succeeded, but the driver returned no event, although clgraph asked for one.
    NoEvent,
    /// The call succeeded, but the driver returned no object.
    NoObject,
    /// The call succeeded, but the driver returned no address.
    NoAddress,
    /// The call succeeded, but the driver returned pitches that are smaller than a row or a slice.
    Pitch,
    /// The loader or the driver does not have the function.
    Missing,
    /// clgraph could not make the call, because of a defect in clgraph.
    Defect,
}

impl DriverError {
    /// Makes an error of a call that returned this status.
    #[must_use]
    pub const fn new(call: &'static str, status: Status) -> Self {
        Self { call, status, fault: None }
    }

    /// Makes an error of a call that did not fail by a status.
    pub(crate) const fn faulty(call: &'static str, fault: DriverFault) -> Self {
        let status = match fault {
            DriverFault::Missing | DriverFault::Defect => opencl_sys::CL_INVALID_OPERATION,
            _ => opencl_sys::CL_SUCCESS,
        };
        Self { call, status: Status(status), fault: Some(fault) }
    }

    fn outcome(&self) -> String {
        match self.fault {
            None => format!("failed with {}", self.status),
            Some(fault) => match fault {
                DriverFault::NoEvent => "succeeded, but returned no event: this is a defect of the driver",
                DriverFault::NoObject => "succeeded, but returned no object: this is a defect of the driver",
                DriverFault::NoAddress => "succeeded, but returned no address: this is a defect of the driver",
                DriverFault::Pitch => {
                    "succeeded, but returned pitches that are too small: this is a defect of the driver"
                }
                DriverFault::Missing => "is missing: the loader or the driver does not have this function",
                DriverFault::Defect => "could not be called: this is a defect of clgraph, please report it",
            }
            .to_owned(),
        }
    }

    /// Returns [`ErrorKind::OutOfMemory`] for `CL_MEM_OBJECT_ALLOCATION_FAILURE`, `CL_OUT_OF_RESOURCES` and
    /// `CL_OUT_OF_HOST_MEMORY`, [`ErrorKind::FeatureNotSupported`] for a function that is missing, and otherwise
    /// [`ErrorKind::Driver`].
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        if self.fault == Some(DriverFault::Missing) {
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

/// An OpenCL status code, displayed with its name: `CL_OUT_OF_RESOURCES (-5)`.
///
/// This is a newtype and not an enum, because a driver may return a number that no header lists.
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

/// Shows the nodes of a cycle: at most 16 of them, and at the end the first one again.
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

    /// Rule E1: wherever a failed call is in an error, it is found.
    #[test]
    fn the_failed_call_is_found_in_each_phase() {
        let call = DriverError::new("clCreateBuffer", Status(-61));
        let node = || crate::handles::Node::from_raw(crate::handles::RawNode { graph: 1, index: 2, part: 0 });
        let build = |cause: BuildCause| Error::from(BuildError::new("fill", cause));
        let errors = [
            Error::Driver(call),
            MemoryError::Driver(call).into(),
            ProgramError::Driver(call).into(),
            ProgramError::Argument { kernel: "f".to_owned(), index: 1, source: call }.into(),
            SubmitError::Driver(call).into(),
            SubmitError::CommandFailed(call).into(),
            SubmitError::DependencyFailed { cause: Box::new(SubmitError::CommandFailed(call).into()) }.into(),
            FinalizeError::Memory { bytes: 8, source: MemoryError::Driver(call) }.into(),
            FinalizeError::Kernel { node: node(), kernel: "f".to_owned(), source: ProgramError::Driver(call) }.into(),
            FinalizeError::Node { node: node(), cause: BuildCause::Driver(call) }.into(),
            build(BuildCause::Driver(call)),
            build(BuildCause::Memory(MemoryError::Driver(call))),
        ];
        for error in errors {
            assert_eq!(error.driver_error(), Some(call), "{error}");
        }
        assert_eq!(build(BuildCause::NoRange).driver_error(), None);
        assert_eq!(Error::from(SetupError::DeviceQueue).driver_error(), None);
    }

    /// Rules E1, E4: the message of a fault names no status, because the driver returned none.
    #[test]
    fn a_call_that_did_not_fail_by_a_status_shows_none() {
        let of_driver = "this is a defect of the driver";
        let faults = [
            (DriverFault::NoEvent, "returned no event", of_driver, ErrorKind::Driver),
            (DriverFault::NoObject, "returned no object", of_driver, ErrorKind::Driver),
            (DriverFault::NoAddress, "returned no address", of_driver, ErrorKind::Driver),
            (DriverFault::Pitch, "returned pitches that are too small", of_driver, ErrorKind::Driver),
            (DriverFault::Missing, "is missing", "does not have this function", ErrorKind::FeatureNotSupported),
            (DriverFault::Defect, "could not be called", "please report it", ErrorKind::Driver),
        ];
        for (fault, what, why, kind) in faults {
            let error = DriverError::faulty("clEnqueueFillBuffer", fault);
            let message = error.to_string();
            assert!(message.starts_with("clEnqueueFillBuffer ") && !message.contains("CL_"), "{message}");
            assert!(message.contains(what) && message.ends_with(why), "{message}");
            assert_eq!((error.kind(), error.fault), (kind, Some(fault)));
        }
        // Results of the calls on the way to the device must stay small: the fault takes the place of padding.
        #[cfg(target_pointer_width = "64")]
        assert_eq!(size_of::<DriverError>(), size_of::<(&'static str, Status)>());
    }
}
