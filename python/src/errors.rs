//! Exceptions: the errors of clgraph as the classes of `clgraph/_errors.py`, with texts that name things of Python.

use std::sync::Arc;

use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use rust::{Error, ErrorKind, FinalizeError, GlobalError, SubmitError, UpdateError};

use crate::raised::{self, Raised};
use crate::texts::in_python;

static CLASSES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// The module with the classes.
fn classes(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    let module = CLASSES.get_or_try_init(py, || PyResult::Ok(py.import("clgraph._errors")?.unbind()))?;
    Ok(module.bind(py))
}

/// Finds the classes when the package is imported: an error is no moment for an import, which runs code and may fail.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    classes(module.py()).map(drop)
}

/// Makes an exception of a class of `_errors.py`.
fn make(class: &'static str, text: String, cl_status: Option<i32>) -> PyErr {
    Python::attach(|py| {
        let make = || -> PyResult<PyErr> {
            let class = classes(py)?.getattr(class)?.cast_into::<PyType>()?;
            let error = class.call1((text,))?;
            if let Some(status) = cl_status {
                error.setattr("cl_status", status)?;
            }
            Ok(PyErr::from_value(error))
        };
        make().unwrap_or_else(|error| error)
    })
}

/// The exception of an error of clgraph.
pub(crate) fn of(error: Error) -> PyErr {
    of_submission(error, None)
}

/// The exception of the error of a submission, which owns the exception that a function of the program has raised.
pub(crate) fn of_submission(error: Error, raised: Option<&Arc<Raised>>) -> PyErr {
    let class = match error.kind() {
        _ if matches!(&error, Error::Submit(SubmitError::TimedOut(_))) => "TimedOutError",
        ErrorKind::Invalid => "InvalidError",
        ErrorKind::FeatureNotSupported => "NotSupportedError",
        ErrorKind::KernelNotSupported => "KernelNotSupportedError",
        ErrorKind::OutOfMemory => "OutOfMemoryError",
        ErrorKind::Failed => "FailedError",
        ErrorKind::NotReady => "NotReadyError",
        // Driver, and kinds to come.
        _ => "DriverError",
    };
    let cl_status = error.driver_error().map(|driver| driver.status.0);
    let text = match &error {
        // It says where the two are in Rust.
        Error::Global(GlobalError::NameClash { name, .. }) => {
            format!("two device globals are named {name:?}: keep the first one, or give the other a name of its own")
        }
        error => error.translated(in_python),
    };
    let (text, numbers) = raised::split(text);
    let made = make(class, text, cl_status);
    if numbers.is_empty() {
        return made;
    }
    // What cannot be enqueued or recorded has no submission that could own it.
    let is_at_once = raised.is_none()
        && matches!(
            &error,
            Error::Submit(SubmitError::NativeCommand { .. })
                | Error::Finalize(FinalizeError::NativeCommand { .. })
                | Error::Update(UpdateError::NativeCommand { .. })
        );
    let end = Python::attach(|py| {
        let cause = raised::find(py, &numbers, raised).map(|cause| PyErr::from_value(cause.into_bound(py)));
        // Ctrl-C and `sys.exit` end what the program does, as they do where no call of clgraph is between.
        if let Some(cause) = cause.as_ref().filter(|cause| is_at_once && !cause.is_instance_of::<PyException>(py)) {
            return Some(cause.clone_ref(py));
        }
        made.set_cause(py, cause);
        None
    });
    if is_at_once {
        raised::forget(&numbers);
    }
    end.unwrap_or(made)
}

/// An `InvalidError`, which is also a `ValueError`.
pub(crate) fn invalid(text: impl Into<String>) -> PyErr {
    make("InvalidError", text.into(), None)
}

/// A `TypeError`.
pub(crate) fn wrong_type(text: impl Into<String>) -> PyErr {
    PyTypeError::new_err(text.into())
}

/// The same exception, with a text that says where it is from.
pub(crate) fn within(py: Python<'_>, error: PyErr, place: &str) -> PyErr {
    let value = error.value(py);
    let text = format!("{place}: {value}");
    // Exceptions with more than a text stay as they are.
    if value.setattr("args", (text,)).is_err() { error } else { PyErr::from_value(value.clone().into_any()) }
}

/// The name of the type of an object, for texts.
pub(crate) fn type_of(object: &Bound<'_, PyAny>) -> String {
    let of = object.get_type();
    let name = of.fully_qualified_name().map(|name| name.to_string());
    let name = name.unwrap_or_else(|_| "an object".to_owned());
    name.replace("pyopencl._cl.", "pyopencl.")
}

/// What an exception says, for the text of a submission that fails by it: its type, its text, and where it was raised.
pub(crate) fn describe(py: Python<'_>, error: &PyErr) -> String {
    let mut text = error.to_string();
    if let Some(mut trace) = error.traceback(py).map(|trace| trace.into_any()) {
        while let Ok(next) = trace.getattr("tb_next") {
            if next.is_none() {
                break;
            }
            trace = next;
        }
        let place = || -> PyResult<(String, usize)> {
            let file = trace.getattr("tb_frame")?.getattr("f_code")?.getattr("co_filename")?.extract()?;
            Ok((file, trace.getattr("tb_lineno")?.extract()?))
        };
        if let Ok((file, line)) = place() {
            text.push_str(&format!(" (raised in {file}, line {line})"));
        }
    }
    text
}
