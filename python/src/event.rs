//! Events of commands of queues, and user events.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyBaseException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use rust::{ExecutionStatus, PendingRead};

use crate::errors::{type_of, wrong_type};
use crate::gate::{Own, call, check};
use crate::interop::{self, Kind};
use crate::numpy::{self, Layout};
use crate::raised::Raised;
use crate::submission::Submission;

/// How long a wait with a time limit sleeps before it looks for Ctrl-C.
const SLICE: Duration = Duration::from_millis(100);

/// The event of a command of a Queue. If the queue recorded the command, it stands for a node.
#[pyclass(frozen, subclass, module = "clgraph")]
pub(crate) struct Event(pub(crate) Own<rust::Event>);

impl Event {
    pub(crate) fn of(event: rust::Event) -> Self {
        Self(Own::new(event))
    }

    pub(crate) fn node(&self) -> Option<rust::Node> {
        self.0.node()
    }
}

#[pymethods]
impl Event {
    /// Waits until the command is complete. Other Python threads run meanwhile.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || self.0.wait())
    }

    /// Whether the command has ended.
    #[getter]
    fn done(&self, py: Python<'_>) -> PyResult<bool> {
        let status = call(py, || self.0.command_execution_status())?;
        Ok(!matches!(status, ExecutionStatus::Waiting | ExecutionStatus::Running))
    }

    /// The same event as a pyopencl.Event. A recorded command has none.
    #[getter]
    fn event<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        check()?;
        interop::event_of(py, &self.0, "`Event.event`")
    }

    /// The node that the queue recorded, or None if it executed.
    #[getter(node)]
    fn py_node(&self) -> Option<crate::node::Node> {
        self.node().map(|node| crate::node::Node::of(node.to_raw(), "recorded"))
    }

    fn __repr__(&self) -> String {
        match self.node() {
            Some(node) => format!("Event({node})"),
            None => "Event()".to_owned(),
        }
    }
}

/// The event of a read of a Queue, and its result. If the queue recorded the read, it names the result of each
/// submission: `run[pending]`.
#[pyclass(frozen, extends = Event, module = "clgraph")]
pub(crate) struct Pending {
    read: Own<PendingRead<u8>>,
    pub(crate) layout: Layout,
}

impl Pending {
    pub(crate) fn make(py: Python<'_>, read: PendingRead<u8>, layout: Layout) -> PyResult<Py<Self>> {
        let event = Event::of(read.event().clone());
        Py::new(py, PyClassInitializer::from(event).add_subclass(Self { read: Own::new(read), layout }))
    }
}

#[pymethods]
impl Pending {
    /// Waits until the read is complete, and returns a numpy array that cannot be written.
    fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = call(py, || self.read.wait())?;
        numpy::bytes_array(py, bytes, &self.layout)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        match self.read.event().node() {
            Some(node) => format!("Pending({node}, {})", self.layout.show(py)),
            None => format!("Pending({})", self.layout.show(py)),
        }
    }
}

/// An event that the program completes: `UserEvent(queue)` or `UserEvent(context)`.
///
/// A submission waits for it (`submit(wait_for=[event])`), a node waits for it (`Graph.wait_event`) or completes it
/// (`Graph.signal_event`). An event that is dropped before it was completed fails.
#[pyclass(frozen, module = "clgraph")]
pub(crate) struct UserEvent {
    pub(crate) event: Own<rust::UserEvent>,
    /// The exception by which it failed.
    raised: Arc<Raised>,
}

#[pymethods]
impl UserEvent {
    #[new]
    fn new(py: Python<'_>, queue: &Bound<'_, PyAny>) -> PyResult<Self> {
        check()?;
        let context = interop::context_or_queue(queue)?;
        Ok(Self { event: Own::new(call(py, || rust::UserEvent::new(&context))?), raised: Arc::default() })
    }

    /// Completes the event: what waits for it runs.
    fn complete(&self, py: Python<'_>) -> PyResult<()> {
        call(py, || self.event.complete())
    }

    /// Fails the event: what waits for it in clgraph does not run, and fails with this text or exception.
    fn fail(&self, py: Python<'_>, reason: &Bound<'_, PyAny>) -> PyResult<()> {
        // What has no text of its own fails the event all the same: somebody may wait for it.
        let mut text =
            reason.str().map_or_else(|_| format!("{}, which has no text", type_of(reason)), |text| text.to_string());
        if reason.is_instance_of::<PyBaseException>() {
            text.push_str(&self.raised.own(reason.clone().unbind()));
        }
        call(py, || self.event.fail(text))
    }

    /// Waits until the event has ended, at most for a time in seconds.
    ///
    /// Without a time, Ctrl-C is looked at after the wait; with one, during the wait. Raises TimedOutError.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        wait(py, timeout, None, || self.event.wait(), |limit| self.event.wait_for(limit))
    }

    /// Whether the event has ended.
    #[getter]
    fn done(&self, py: Python<'_>) -> PyResult<bool> {
        call(py, || Ok(self.event.is_done()))
    }

    /// The same event as a pyopencl.Event. It becomes complete also if the event fails.
    #[getter]
    fn event<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        check()?;
        let event = py.detach(|| self.event.event());
        interop::event_of(py, &event, "`UserEvent.event`")
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.raised.traverse(&visit)
    }

    fn __clear__(&self) {
        self.raised.clear();
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(if self.done(py)? { "UserEvent(done)" } else { "UserEvent(pending)" })
    }
}

/// Waits for something with or without a time limit in seconds. A submission owns the exception by which it failed.
pub(crate) fn wait(
    py: Python<'_>,
    timeout: Option<f64>,
    raised: Option<&Arc<Raised>>,
    always: impl FnOnce() -> rust::Result<()> + Send,
    at_most: impl Fn(Duration) -> rust::Result<()> + Sync,
) -> PyResult<()> {
    let fail = |error| crate::errors::of_submission(error, raised);
    let Some(timeout) = timeout else {
        check()?;
        return py.detach(always).map_err(fail);
    };
    let limit = Duration::try_from_secs_f64(timeout)
        .map_err(|_| crate::errors::invalid(format!("{timeout:?} is no time in seconds")))?;
    let begun = std::time::Instant::now();
    loop {
        let left = limit.saturating_sub(begun.elapsed());
        check()?;
        match py.detach(|| at_most(left.min(SLICE))) {
            Err(rust::Error::Submit(rust::SubmitError::TimedOut(_))) if left > SLICE => py.check_signals()?,
            Err(rust::Error::Submit(rust::SubmitError::TimedOut(_))) => {
                return Err(crate::errors::of(rust::SubmitError::TimedOut(limit).into()));
            }
            other => return other.map_err(fail),
        }
    }
}

/// The events that commands of a queue wait for: one, or an iterable of them.
pub(crate) fn wait_list(object: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<rust::Event>> {
    let Some(object) = object else { return Ok(Vec::new()) };
    if let Some(event) = find(object)? {
        return Ok(vec![event]);
    }
    let Ok(list) = object.try_iter() else { return Err(no_event(object)) };
    list.map(|event| {
        let event = event?;
        find(&event)?.ok_or_else(|| no_event(&event))
    })
    .collect()
}

fn no_event(object: &Bound<'_, PyAny>) -> PyErr {
    wrong_type(format!(
        "a command of a queue waits for a clgraph.Event, a pyopencl.Event, a clgraph.UserEvent or a clgraph.Submission, \
         not {}",
        type_of(object)
    ))
}

fn find(object: &Bound<'_, PyAny>) -> PyResult<Option<rust::Event>> {
    if let Ok(event) = object.cast::<Event>() {
        return Ok(Some(event.get().0.clone()));
    }
    if let Ok(event) = object.cast::<UserEvent>() {
        let event = event.get();
        return Ok(Some(call(object.py(), || Ok(event.event.event()))?));
    }
    if let Ok(run) = object.cast::<Submission>() {
        let run = run.get();
        return Ok(Some(call(object.py(), || run.run().event())?));
    }
    match interop::kind(object) {
        Some(Kind::Event) => Ok(Some(interop::event(object)?)),
        _ => Ok(None),
    }
}
