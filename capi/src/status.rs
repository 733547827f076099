//! What every function returns, the text of the last error of a thread, and what functions of the program say went wrong.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use rust::{Error, ErrorKind, GlobalError};

use crate::{pointers, texts};

/// The result of a call: what kind of error it was, or success.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum clg_status {
    /// The call succeeded.
    CLG_SUCCESS = 0,
    /// The call breaks a rule of clgraph or of OpenCL, or a handle or a pointer is wrong. Nothing changed.
    CLG_INVALID = 1,
    /// The driver, the platform or the device does not support what was asked for.
    CLG_FEATURE_NOT_SUPPORTED = 2,
    /// A kernel or a program cannot be used on this device.
    CLG_KERNEL_NOT_SUPPORTED = 3,
    /// The host or the device is out of memory or of other resources.
    CLG_OUT_OF_MEMORY = 4,
    /// An OpenCL call failed for another reason, or a command failed while it ran.
    CLG_DRIVER = 5,
    /// The program's own code reported a failure: a host task, or a user event.
    CLG_FAILED = 6,
    /// The call is not possible now, but can be later.
    CLG_NOT_READY = 7,
    /// A defect of clgraph. Please report it.
    CLG_DEFECT = 8,
}
use clg_status::{
    CLG_DEFECT, CLG_DRIVER, CLG_FAILED, CLG_FEATURE_NOT_SUPPORTED, CLG_INVALID, CLG_KERNEL_NOT_SUPPORTED,
    CLG_NOT_READY, CLG_OUT_OF_MEMORY, CLG_SUCCESS,
};

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    status: clg_status,
    text: String,
    /// The status of the OpenCL call that failed, or 0.
    cl_status: c_int,
}

pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self { status: CLG_INVALID, text: text.into(), cl_status: 0 }
    }

    /// The failure of a function of the program.
    pub(crate) fn failed(text: String) -> Self {
        Self { status: CLG_FAILED, text, cl_status: 0 }
    }

    pub(crate) fn out_of_memory(text: impl Into<String>) -> Self {
        Self { status: CLG_OUT_OF_MEMORY, text: text.into(), cl_status: 0 }
    }

    /// Says in which part of a call something is wrong.
    pub(crate) fn within(mut self, part: String) -> Self {
        self.text = format!("{part}: {}", self.text);
        self
    }

    pub(crate) fn c_text(&self) -> CString {
        CString::new(self.text.replace('\0', "\u{fffd}")).unwrap_or_default()
    }

    /// Keeps it as the last error of the thread, and returns its status.
    pub(crate) fn keep(self) -> clg_status {
        let (text, Self { status, cl_status, .. }) = (self.c_text(), self);
        // A thread that ends has no last error.
        let _ = LAST.try_with(|last| *last.borrow_mut() = Some(Last { text, status, cl_status }));
        status
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::invalid(format!("the pointer `{what}` is null"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            ErrorKind::Invalid => CLG_INVALID,
            ErrorKind::FeatureNotSupported => CLG_FEATURE_NOT_SUPPORTED,
            ErrorKind::KernelNotSupported => CLG_KERNEL_NOT_SUPPORTED,
            ErrorKind::OutOfMemory => CLG_OUT_OF_MEMORY,
            ErrorKind::Failed => CLG_FAILED,
            ErrorKind::NotReady => CLG_NOT_READY,
            // Driver, and kinds to come.
            _ => CLG_DRIVER,
        };
        let cl_status = error.driver_error().map_or(0, |driver| driver.status.0);
        let text = match &error {
            // It says where the two are in Rust.
            Error::Global(GlobalError::NameClash { name, .. }) => {
                format!(
                    "two device globals are named {name:?}: keep the first one, or give the other a name of its own"
                )
            }
            error => error.translated(texts::in_c),
        };
        Self { status, text, cl_status }
    }
}

impl From<rust::DriverError> for Failure {
    fn from(error: rust::DriverError) -> Self {
        Error::from(error).into()
    }
}

struct Last {
    text: CString,
    status: clg_status,
    cl_status: c_int,
}

thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
}

/// Whether this process is the child of one that has used clgraph: its threads, and the driver's, are not there.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

#[cfg(unix)]
fn watch_forks() {
    use std::sync::Once;

    type Handler = Option<extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
    }
    extern "C" fn in_child() {
        IS_FORKED.store(true, Ordering::Relaxed);
    }
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        // SAFETY: the handler only sets a flag, which is allowed in a child. Without memory for it forks are not seen.
        unsafe { pthread_atfork(None, None, Some(in_child)) };
    });
}

#[cfg(not(unix))]
fn watch_forks() {}

/// Runs a call. A panic does not cross the border to C.
pub(crate) fn enter(call: impl FnOnce() -> Outcome<()>) -> clg_status {
    watch_forks();
    let call = || {
        if IS_FORKED.load(Ordering::Relaxed) {
            return Err(Failure::invalid(
                "this process was forked from one that has used clgraph, and OpenCL does not survive that: call exec first",
            ));
        }
        call()
    };
    let failure = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => return CLG_SUCCESS,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = format!("clgraph panicked (please report this): {}", text_of(&*panic));
            // Its drop may panic too.
            std::mem::forget(panic);
            Failure { status: CLG_DEFECT, text, cl_status: 0 }
        }
    };
    failure.keep()
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a text")
}

thread_local! {
    /// For each function of the program that runs on this thread, the inner ones last: why it fails. A thread that ends
    /// has none any more: what a function says there is lost, and what it returns counts.
    static REASONS: RefCell<Vec<Option<String>>> = const { RefCell::new(Vec::new()) };
}

/// Called after each function of the program: ends this process if it is the child of a fork that the function has made and
/// left. What clgraph does is the parent's to go on with, and this thread is the only one in the child.
pub(crate) fn end_child(status: c_int) {
    unsafe extern "C" {
        safe fn _exit(status: c_int) -> !;
    }
    if IS_FORKED.load(Ordering::Relaxed) {
        _exit(c_int::from(status != 0))
    }
}

/// Calls a function of the program whose submission, or call of a queue, fails if it returns anything but 0, or says `clg_fail`.
pub(crate) fn call_program(function: impl FnOnce() -> c_int) -> Result<(), String> {
    let _ = REASONS.try_with(|reasons| reasons.borrow_mut().push(None));
    let status = function();
    end_child(status);
    let reason = REASONS.try_with(|reasons| reasons.borrow_mut().pop());
    match (status, reason.ok().flatten().flatten()) {
        (0, None) => Ok(()),
        (_, Some(text)) => Err(text),
        (status, None) => Err(format!("the function returned {status}")),
    }
}

/// Says why the function of the program that runs on this thread fails: the function of a host task, of mapped memory,
/// of a native command, or of a branch or loop of a queue. Its submission, or the call of the queue, fails with this text
/// when the function returns, whatever it returns.
///
/// # Safety
/// `text` is null or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_fail(text: *const c_char) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let text = unsafe { pointers::reason(text) }.unwrap_or_else(|| "the function failed".to_owned());
        let is_said = REASONS.try_with(|reasons| {
            let mut reasons = reasons.borrow_mut();
            let reason = reasons.last_mut();
            reason.map(|reason| *reason = Some(text)).is_some()
        });
        if is_said.unwrap_or(false) {
            return Ok(());
        }
        Err(Failure::invalid(
            "no function of a host task, of mapped memory, of a native command, or of a branch or loop runs on this thread",
        ))
    })
}

/// Returns what was wrong with the last call of this thread that failed, and what to do, as UTF-8. Never null: the text
/// is empty if no call has failed. The text is valid until the next call of this thread fails. In destructors of the
/// data of a thread that ends (`pthread_key_create`, `tss_create`) it may be empty after a failure too, and then the
/// status of `clg_last_status` is CLG_SUCCESS: use what the call returned.
#[unsafe(no_mangle)]
pub extern "C" fn clg_last_error() -> *const c_char {
    let text = LAST.try_with(|last| last.borrow().as_ref().map(|last| last.text.as_ptr()));
    text.ok().flatten().unwrap_or(c"".as_ptr())
}

/// Returns the status of the last call of this thread that failed, or CLG_SUCCESS if none has.
#[unsafe(no_mangle)]
pub extern "C" fn clg_last_status() -> clg_status {
    let status = LAST.try_with(|last| last.borrow().as_ref().map(|last| last.status));
    status.ok().flatten().unwrap_or(CLG_SUCCESS)
}

/// Returns the status of the OpenCL call that made the last call of this thread fail, or 0 if none did.
#[unsafe(no_mangle)]
pub extern "C" fn clg_last_cl_status() -> c_int {
    let status = LAST.try_with(|last| last.borrow().as_ref().map(|last| last.cl_status));
    status.ok().flatten().unwrap_or(0)
}

/// Returns the name of a status, for example "CLG_INVALID". Never null.
#[unsafe(no_mangle)]
pub extern "C" fn clg_status_name(status: c_int) -> *const c_char {
    match status {
        0 => c"CLG_SUCCESS",
        1 => c"CLG_INVALID",
        2 => c"CLG_FEATURE_NOT_SUPPORTED",
        3 => c"CLG_KERNEL_NOT_SUPPORTED",
        4 => c"CLG_OUT_OF_MEMORY",
        5 => c"CLG_DRIVER",
        6 => c"CLG_FAILED",
        7 => c"CLG_NOT_READY",
        8 => c"CLG_DEFECT",
        _ => c"unknown status",
    }
    .as_ptr()
}
