//! Submissions: waiting, results, times.

use std::sync::Arc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use rust::{HostRead, Progress, ResultGuard, SubmitError};

use crate::control;
use crate::errors;
use crate::event;
use crate::gate::{self, Kept, Own, attach, call, check};
use crate::interop;
use crate::node::SubGraph;
use crate::numpy;
use crate::profile::{self, Profile};
use crate::raised::{self, Raised, Running};
use crate::task::{check_function, read_of};

/// One run of an executable, or a host task of a Queue.
///
/// `run.wait()` waits for it, and `await run` does in asyncio. `run[read]` is a result.
#[pyclass(frozen, module = "clgraph")]
pub(crate) struct Submission {
    run: Own<rust::Submission>,
    raised: Arc<Raised>,
}

impl Submission {
    pub(crate) fn new(run: rust::Submission) -> Self {
        Self { run: Own::new(run), raised: Arc::default() }
    }

    /// Keeps something until the submission has ended, and then has it own the exception by which it failed.
    pub(crate) fn ends_with<T: Send + 'static>(&self, py: Python<'_>, kept: Kept<T>, running: Running) -> PyResult<()> {
        let raised = Arc::downgrade(&self.raised);
        self.call(py, || {
            self.run.on_complete(move |outcome| {
                if let Err(error) = outcome {
                    let numbers = raised::split(error.to_string()).1;
                    attach(|py| {
                        match raised.upgrade() {
                            Some(raised) => drop(raised::find(py, &numbers, Some(&raised))),
                            None => raised::forget(&numbers),
                        }
                        raised::ended(running);
                    });
                }
                drop(kept);
            });
            Ok(())
        })
    }

    /// As `gate::call`: the submission owns the exception by which it failed.
    fn call<R: Send>(&self, py: Python<'_>, code: impl FnOnce() -> rust::Result<R> + Send) -> PyResult<R> {
        check()?;
        py.detach(code).map_err(|error| errors::of_submission(error, Some(&self.raised)))
    }

    pub(crate) fn run(&self) -> &rust::Submission {
        &self.run
    }

    /// The node, if a queue recorded the submission.
    pub(crate) fn recorded(&self, py: Python<'_>) -> Option<rust::Node> {
        py.detach(|| self.run.event()).ok().and_then(|event| event.node())
    }

    /// Whether a queue recorded the submission of an executable.
    pub(crate) fn is_recorded(&self) -> bool {
        self.run.sub_graph().is_some()
    }

    /// Waits for the submission, and returns a result.
    fn result(&self, py: Python<'_>, read: &HostRead<u8>) -> PyResult<ResultGuard<u8>> {
        self.call(py, || match self.run.get(read) {
            Err(rust::Error::Submit(SubmitError::NotComplete)) => {
                self.run.wait()?;
                self.run.get(read)
            }
            result => result,
        })
    }
}

#[pymethods]
impl Submission {
    /// Waits until the submission has ended, at most for a time in seconds. Other Python threads run meanwhile.
    ///
    /// If it failed, its error is raised; if it has not ended in time, TimedOutError, and it goes on. Without a time,
    /// Ctrl-C is looked at after the wait; with one, during the wait.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        event::wait(py, timeout, Some(&self.raised), || self.run.wait(), |limit| self.run.wait_for(limit))
    }

    /// How far it is: "waiting" for what comes before, "running", "complete" or "failed".
    #[getter]
    fn progress(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(match call(py, || self.run.progress())? {
            Progress::Waiting => "waiting",
            Progress::Running => "running",
            Progress::Complete => "complete",
            // Failed, and kinds to come.
            _ => "failed",
        })
    }

    /// Whether the submission has ended, well or not.
    #[getter]
    fn done(&self, py: Python<'_>) -> PyResult<bool> {
        call(py, || self.run.is_done())
    }

    /// A pyopencl.Event that is complete when the submission has ended, well or not.
    #[getter]
    fn event<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let event = call(py, || self.run.event())?;
        interop::event_of(py, &event, "`Submission.event`")
    }

    /// Waits for the submission, and returns the result of a read as a numpy array.
    ///
    /// The array looks at the result itself, so it cannot be written, and it keeps the result alive: `array.copy()` is
    /// an array of its own. It may outlive the submission.
    fn __getitem__<'py>(&self, read: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (raw, layout) = read_of(read)?;
        let result = self.result(read.py(), &HostRead::from_raw(raw))?;
        numpy::result_array(read.py(), result, &layout)
    }

    /// Waits for the submission, and copies the result of a read into a contiguous array of the program.
    fn read_into(&self, read: &Bound<'_, PyAny>, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let (raw, layout) = read_of(read)?;
        layout.check(out, "the result")?;
        let result = self.result(read.py(), &HostRead::from_raw(raw))?;
        numpy::copy_into(&result, out)
    }

    /// Calls a function when the submission has ended: with None, or with the exception that `wait` would raise.
    ///
    /// The function runs on a thread of clgraph, one such function after the other. An exception that it raises goes to
    /// `sys.unraisablehook`.
    fn on_complete(&self, py: Python<'_>, function: &Bound<'_, PyAny>) -> PyResult<()> {
        check_function(function, "what `on_complete` takes")?;
        let (function, raised) = (Kept::new(function.clone().unbind()), Arc::clone(&self.raised));
        call(py, || {
            self.run.on_complete(move |outcome| {
                attach(|py| {
                    let error = outcome.err().map(|error| errors::of_submission(error, Some(&raised)).into_value(py));
                    if let Err(error) = function.call1(py, (error,)) {
                        gate::end_child(py, Some(&error));
                        error.write_unraisable(py, Some(function.bind(py)));
                    }
                });
            });
            Ok(())
        })
    }

    /// Waits in asyncio: `await run`. It raises what `wait` raises.
    fn __await__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        check()?;
        let running = py.import("asyncio")?.call_method0("get_running_loop")?;
        let future = running.call_method0("create_future")?;
        let finish = py.import("clgraph._clgraph")?.getattr("_finish")?;
        let parts = Kept::new((running.unbind(), finish.unbind(), future.clone().unbind()));
        let raised = Arc::clone(&self.raised);
        call(py, || {
            self.run.on_complete(move |outcome| {
                attach(|py| {
                    let (running, finish, future) = &*parts;
                    let error = outcome.err().map(|error| errors::of_submission(error, Some(&raised)).into_value(py));
                    let called = running.call_method1(py, "call_soon_threadsafe", (finish, future, error));
                    if let Err(error) = called
                        && !error.is_instance_of::<PyRuntimeError>(py)
                    {
                        // A RuntimeError says that the loop is closed: then nobody waits.
                        error.write_unraisable(py, None);
                    }
                });
            });
            Ok(())
        })?;
        future.call_method0("__await__")
    }

    /// Returns how many turns a loop had so far; for a branch, how often it ran a body. Nothing is waited for. A loop that
    /// is in a body of another one has all turns together.
    fn turns(&self, node: &Bound<'_, PyAny>) -> PyResult<u64> {
        control::turns(&self.run, node)
    }

    /// Ends the submission at its next decision: before a branch, or before a turn of a loop. Then it fails. One without
    /// branches and loops goes on.
    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || self.run.cancel())
    }

    /// Waits for the submission, and returns the times of its nodes. The executable was finalized with `profiling`.
    fn profile(&self, py: Python<'_>) -> PyResult<Profile> {
        let profile = self.call(py, || {
            self.run.wait()?;
            self.run.profile()
        })?;
        Ok(Profile::new(profile))
    }

    /// Returns the times of the submission as a trace, JSON that Perfetto and chrome://tracing show, and writes it to
    /// the file `path` if one is given. `clgraph.trace` makes one of several submissions.
    #[pyo3(signature = (path=None))]
    fn trace(&self, py: Python<'_>, path: Option<std::path::PathBuf>) -> PyResult<String> {
        profile::trace_of(py, &[self.profile(py)?.profile()], path)
    }

    /// The sub-graph, if a queue recorded the submission of an executable.
    #[getter]
    fn sub_graph(&self, py: Python<'_>) -> PyResult<Option<Py<SubGraph>>> {
        check()?;
        self.run.sub_graph().map(|sub| SubGraph::make(py, sub)).transpose()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        call(py, || Ok(raised::split(format!("{:?}", &*self.run)).0))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.raised.traverse(&visit)
    }

    fn __clear__(&self) {
        self.raised.clear();
    }
}

/// Ends a future of asyncio, on the thread of its loop.
#[pyfunction]
fn _finish(future: &Bound<'_, PyAny>, error: &Bound<'_, PyAny>) -> PyResult<()> {
    if future.call_method0("done")?.is_truthy()? {
        return Ok(());
    }
    if error.is_none() {
        future.call_method1("set_result", (error,))?;
    } else {
        future.call_method1("set_exception", (error,))?;
    }
    Ok(())
}

/// Adds what Python calls back.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(_finish, module)?)
}
