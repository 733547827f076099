//! The ends of the interpreter and of the process, and forks.
//!
//! Threads of clgraph call Python functions and drop Python objects. Until the interpreter ends they do so by
//! [`attach`]; from then on nothing of Python is touched. A function that is inside Python when the interpreter is
//! about to end is waited for.
//!
//! A forked child has no threads of clgraph and locks that nobody opens. So there every call is refused, and what it
//! inherited is leaked.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::{PyImportError, PySystemExit};
use pyo3::ffi;
use pyo3::prelude::*;

use crate::errors;

static FORKED: AtomicBool = AtomicBool::new(false);
static USED: AtomicBool = AtomicBool::new(false);
static DOOR: Mutex<Door> = Mutex::new(Door { closed: false, inside: 0 });
static LEFT: Condvar = Condvar::new();

struct Door {
    closed: bool,
    inside: usize,
}

fn door() -> MutexGuard<'static, Door> {
    DOOR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Leaves the door, also by a panic.
struct Inside;

impl Drop for Inside {
    fn drop(&mut self) {
        door().inside -= 1;
        LEFT.notify_all();
    }
}

/// Runs code with the interpreter on any thread, or returns `None` if the interpreter has ended or is about to.
pub(crate) fn attach<R>(code: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    if FORKED.load(Ordering::Relaxed) {
        return None;
    }
    {
        let mut door = door();
        if door.closed {
            return None;
        }
        door.inside += 1;
    }
    let _inside = Inside;
    Python::try_attach(|py| {
        let outcome = code(py);
        end_child(py, None);
        outcome
    })
}

/// Ends this process if it is the child of a fork that a function of the program has made, and which the function leaves:
/// as Python ends one, by `sys.exit` or with a traceback. clgraph's part of the submission is the parent's to do.
pub(crate) fn end_child(py: Python<'_>, error: Option<&PyErr>) {
    if !FORKED.load(Ordering::Relaxed) {
        return;
    }
    let end = || -> PyResult<()> {
        let status = match error {
            None => 0,
            Some(error) if error.is_instance_of::<PySystemExit>(py) => {
                let code = error.value(py).getattr("code")?;
                let status = if code.is_none() { Ok(0) } else { code.extract() };
                status.unwrap_or_else(|_| {
                    eprintln!("{code}");
                    1
                })
            }
            Some(error) => {
                error.print(py);
                1
            }
        };
        let sys = py.import("sys")?;
        for stream in ["stdout", "stderr"] {
            let _ = sys.getattr(stream).and_then(|stream| stream.call_method0("flush"));
        }
        py.import("os")?.call_method1("_exit", (status,)).map(drop)
    };
    let _ = end();
    std::process::abort();
}

/// Closes the door, and waits until no thread of clgraph is inside Python. `atexit` calls it.
#[pyfunction]
fn _close(py: Python<'_>) -> PyResult<()> {
    if FORKED.load(Ordering::Relaxed) {
        return Ok(());
    }
    loop {
        let empty = py.detach(|| {
            let mut door = door();
            door.closed = true;
            if door.inside == 0 {
                return true;
            }
            let waited = LEFT.wait_timeout(door, Duration::from_millis(100));
            waited.unwrap_or_else(PoisonError::into_inner).0.inside == 0
        });
        if empty {
            return Ok(());
        }
        py.check_signals()?;
    }
}

/// Runs in the child after a fork.
#[pyfunction]
fn _forked() {
    if USED.load(Ordering::Relaxed) {
        FORKED.store(true, Ordering::Relaxed);
    }
}

/// Returns an error in the child of a fork.
pub(crate) fn check() -> PyResult<()> {
    if FORKED.load(Ordering::Relaxed) {
        return Err(errors::invalid(
            "this process was forked from one that used clgraph, and OpenCL does not survive a fork; start processes \
             by multiprocessing's \"spawn\" instead",
        ));
    }
    USED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Runs a call of clgraph without the interpreter's lock. Every call that may take a lock of clgraph, block, or take
/// long is made in this way, so that no thread waits for one lock while it holds the other.
pub(crate) fn call<R: Send>(py: Python<'_>, code: impl FnOnce() -> rust::Result<R> + Send) -> PyResult<R> {
    check()?;
    py.detach(code).map_err(errors::of)
}

/// What a Python object owns of clgraph. In the child of a fork it is leaked, because OpenCL may hang there. It is
/// dropped without the interpreter's lock: the drop may take locks of clgraph, and who holds these may be inside the
/// function of a native command, which waits for the interpreter's.
pub(crate) struct Own<T: Send>(ManuallyDrop<T>);

impl<T: Send> Own<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T: Send> Deref for Own<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send> Drop for Own<T> {
    fn drop(&mut self) {
        if FORKED.load(Ordering::Relaxed) {
            return;
        }
        // SAFETY: only this call takes the value, and nothing uses it afterwards.
        let mut value = Some(unsafe { ManuallyDrop::take(&mut self.0) });
        // Python attaches nobody while it ends: then the value is dropped here.
        Python::try_attach(|py| py.detach(|| drop(value.take())));
        drop(value);
    }
}

/// What clgraph owns of Python. After the end of the interpreter it is leaked.
pub(crate) struct Kept<T: Send>(ManuallyDrop<T>);

impl<T: Send> Kept<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T: Send> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: only this call takes the value, and nothing uses it afterwards.
        attach(|_| unsafe { ManuallyDrop::drop(&mut self.0) });
    }
}

/// Returns an error in an interpreter that is not the main one: what is static here has the classes of one interpreter,
/// and threads of clgraph attach to the main one.
pub(crate) fn check_interpreter(py: Python<'_>) -> PyResult<()> {
    // SAFETY: **view**: an interpreter runs on this thread, which has its lock.
    let number = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    match number {
        0 => Ok(()),
        _ if PyErr::occurred(py) => Err(PyErr::fetch(py)),
        _ => Err(PyImportError::new_err(
            "clgraph can be imported in the main interpreter only: start a process instead of a subinterpreter",
        )),
    }
}

/// Has Python call the functions of this module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let (close, forked) = (wrap_pyfunction!(_close, module)?, wrap_pyfunction!(_forked, module)?);
    py.import("atexit")?.call_method1("register", (close,))?;
    let os = py.import("os")?;
    if os.hasattr("register_at_fork")? {
        let options = pyo3::types::PyDict::new(py);
        options.set_item("after_in_child", forked)?;
        os.call_method("register_at_fork", (), Some(&options))?;
    }
    Ok(())
}
