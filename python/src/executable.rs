//! Executables: submitting and updating.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rust::{Event, EventSignal, EventWait, Fuse, HostWrite, Loops, Path, Submit};

use crate::device::Device;
use crate::errors::{invalid, type_of, wrong_type};
use crate::event;
use crate::gate::{Own, call, check};
use crate::graph::Graph;
use crate::held::{ExecutableHeld, Holder};
use crate::interop::{self, Kind};
use crate::node::{self, Write};
use crate::numpy;
use crate::queue::Queue;
use crate::report::{MemoryMap, Report};
use crate::submission::Submission;

/// A finalized graph, which can be submitted as often as the program likes.
#[pyclass(frozen, module = "clgraph", weakref)]
pub(crate) struct Executable {
    pub(crate) executable: Own<rust::Executable>,
    /// The queue of the graph.
    queue: Option<Own<rust::Queue>>,
    held: ExecutableHeld,
}

/// The path with a name.
pub(crate) fn path(name: &str) -> PyResult<Path> {
    Path::named(name).ok_or_else(|| {
        invalid(format!("{name:?} is no path: \"auto\", \"native\", \"replay\", \"gated\" or \"queues\""))
    })
}

/// The way of loops with a name.
fn loops(name: &str) -> PyResult<Loops> {
    Loops::named(name)
        .ok_or_else(|| invalid(format!("{name:?} is no way of loops: \"auto\", \"host-decided\" or \"ahead\"")))
}

/// Whether launches are fused, by name.
fn fuse(name: &str) -> PyResult<Fuse> {
    Fuse::named(name).ok_or_else(|| invalid(format!("{name:?} says nothing of fusing: \"off\", \"auto\" or \"now\"")))
}

/// What `Graph.finalize` is asked for.
pub(crate) struct Asked<'a> {
    pub(crate) updatable: bool,
    pub(crate) profiling: bool,
    pub(crate) path: Option<&'a str>,
    pub(crate) result_slots: Option<usize>,
    pub(crate) commands_per_buffer: Option<usize>,
    pub(crate) tuning_cache: Option<std::path::PathBuf>,
    pub(crate) autotune: bool,
    pub(crate) allow_conflicts: bool,
    pub(crate) separate_memory: bool,
    pub(crate) loops: Option<&'a str>,
    pub(crate) fuse: Option<&'a str>,
}

impl Asked<'_> {
    /// Finalizes a graph.
    pub(crate) fn finalize(
        self,
        py: Python<'_>,
        graph: &rust::Graph,
        queue: Option<&rust::Queue>,
        held: &Py<Holder>,
    ) -> PyResult<Executable> {
        let mut options = rust::Finalize::new().path(path(self.path.unwrap_or("auto"))?).autotune(self.autotune);
        options = options.loops(loops(self.loops.unwrap_or("auto"))?);
        if let Some(name) = self.fuse {
            options = options.fuse(fuse(name)?);
        }
        if self.updatable {
            options = options.updatable();
        }
        if self.profiling {
            options = options.profiling();
        }
        if self.allow_conflicts {
            options = options.allow_conflicts();
        }
        if self.separate_memory {
            options = options.separate_memory();
        }
        if let Some(slots) = self.result_slots {
            options = options.result_slots(slots);
        }
        if let Some(commands) = self.commands_per_buffer {
            options = options.commands_per_buffer(commands);
        }
        if let Some(file) = self.tuning_cache {
            options = options.tuning_cache(file);
        }
        let executable = call(py, || graph.finalize(options))?;
        let (executable, queue) = (Own::new(executable), queue.cloned().map(Own::new));
        Ok(Executable { executable, queue, held: ExecutableHeld::new(py, held.clone_ref(py))? })
    }
}

/// What a submission waits for.
enum Before {
    Event(Event),
    User(rust::UserEvent),
    Run(rust::Submission),
}

impl Before {
    fn find(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(run) = object.cast::<Submission>() {
            return Ok(Some(Self::Run(run.get().run().clone())));
        }
        if let Ok(event) = object.cast::<event::UserEvent>() {
            return Ok(Some(Self::User(event.get().event.clone())));
        }
        if let Ok(event) = object.cast::<event::Event>() {
            return Ok(Some(Self::Event(event.get().0.clone())));
        }
        match interop::kind(object) {
            Some(Kind::Event) => Ok(Some(Self::Event(interop::event(object)?))),
            _ => Ok(None),
        }
    }

    fn get(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::find(object)?.ok_or_else(|| {
            wrong_type(format!(
                "a submission waits for a pyopencl.Event, a clgraph.Submission, a clgraph.UserEvent or a clgraph.Event, \
                 not {}",
                type_of(object)
            ))
        })
    }

    fn list(object: &Bound<'_, PyAny>) -> PyResult<Vec<Self>> {
        if let Some(one) = Self::find(object)? {
            return Ok(vec![one]);
        }
        let Ok(list) = object.try_iter() else { return Self::get(object).map(|one| vec![one]) };
        list.map(|one| Self::get(&one?)).collect()
    }

    fn give<'a>(&self, submit: Submit<'a>) -> Submit<'a> {
        match self {
            Self::Event(event) => submit.after(event),
            Self::User(event) => submit.after(event),
            Self::Run(run) => submit.after(run),
        }
    }

    fn give_node<'a>(&self, submit: Submit<'a>, node: &EventWait) -> Submit<'a> {
        match self {
            Self::Event(event) => submit.with_event(node, event),
            Self::User(event) => submit.with_event(node, event),
            Self::Run(run) => submit.with_event(node, run),
        }
    }
}

impl Executable {
    pub(crate) fn held(&self) -> &ExecutableHeld {
        &self.held
    }

    /// Reads what a submission is given.
    fn with_submit<R>(
        &self,
        queue: Option<&Bound<'_, PyAny>>,
        inputs: Option<&Bound<'_, PyDict>>,
        wait_for: Option<&Bound<'_, PyAny>>,
        events: Option<&Bound<'_, PyDict>>,
        signals: Option<&Bound<'_, PyDict>>,
        copy: bool,
        submit_by: impl FnOnce(&rust::Queue, Submit<'_>) -> PyResult<R>,
    ) -> PyResult<R> {
        check()?;
        let given;
        let queue = match (queue, &self.queue) {
            (Some(queue), _) => {
                given = Queue::find(queue)?;
                &given
            }
            (None, Some(queue)) => &**queue,
            (None, None) => return Err(wrong_type("a graph of a context and a device has no queue: submit(queue)")),
        };
        let mut submit = self.executable.submit_to(queue);
        for (write, data) in pairs(inputs) {
            let raw = node::raw(&write)?;
            if let Ok(write) = write.cast::<Write>()
                && let Some(layout) = &write.get().layout
            {
                layout.check(&data, "the input")?;
            }
            submit = submit.with(&HostWrite::<u8>::from_raw(raw), numpy::host_data(&data, copy, "an input")?);
        }
        if let Some(before) = wait_for {
            submit = Before::list(before)?.iter().fold(submit, |submit, one| one.give(submit));
        }
        for (node, event) in pairs(events) {
            submit = Before::get(&event)?.give_node(submit, &EventWait::from_raw(node::raw(&node)?));
        }
        for (node, event) in pairs(signals) {
            let Ok(event) = event.cast::<event::UserEvent>() else {
                return Err(wrong_type(format!("a node signals a clgraph.UserEvent, not {}", type_of(&event))));
            };
            submit = submit.with_signal(&EventSignal::from_raw(node::raw(&node)?), &event.get().event);
        }
        submit_by(queue, submit)
    }
}

/// What is in a dictionary now: code of the program that runs meanwhile may change it.
fn pairs<'py>(of: Option<&Bound<'py, PyDict>>) -> Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    of.iter().flat_map(|of| of.iter()).collect()
}

#[pymethods]
impl Executable {
    /// Submits the executable, and returns its Submission without waiting.
    ///
    /// `queue` is a pyopencl.CommandQueue or a clgraph.Queue; None is the queue of the graph. `inputs` gives writes
    /// other data for this submission: `{write: array}`; the data is copied, or, with `copy=False`, used where it is, and
    /// then the program promises not to change it until the submission has ended. `wait_for` is what the submission
    /// waits for: an event of pyopencl, a Submission, a UserEvent, or a list of them. `events` and `signals` give the
    /// nodes of `wait_event` and `signal_event` their events: `{node: event}`, `{node: user_event}`.
    ///
    /// A submission keeps the order of an in-order queue. Submissions of one executable never overlap.
    #[pyo3(signature = (queue=None, *, inputs=None, wait_for=None, events=None, signals=None, copy=true))]
    fn submit(
        &self,
        py: Python<'_>,
        queue: Option<&Bound<'_, PyAny>>,
        inputs: Option<&Bound<'_, PyDict>>,
        wait_for: Option<&Bound<'_, PyAny>>,
        events: Option<&Bound<'_, PyDict>>,
        signals: Option<&Bound<'_, PyDict>>,
        copy: bool,
    ) -> PyResult<Submission> {
        self.with_submit(queue, inputs, wait_for, events, signals, copy, |queue, submit| {
            self.held.submit(py, queue, || submit.submit())
        })
    }

    /// Submits the executable as `submit` does, and returns nothing to wait for, which costs less: no event is made.
    ///
    /// Results and failures are lost. The queue orders the submission, and `Queue.finish` waits for it. An executable
    /// with functions, or with memory of a pool, needs an event all the same, to keep them until it has ended.
    #[pyo3(signature = (queue=None, *, inputs=None, wait_for=None, events=None, signals=None, copy=true))]
    fn submit_detached(
        &self,
        py: Python<'_>,
        queue: Option<&Bound<'_, PyAny>>,
        inputs: Option<&Bound<'_, PyDict>>,
        wait_for: Option<&Bound<'_, PyAny>>,
        events: Option<&Bound<'_, PyDict>>,
        signals: Option<&Bound<'_, PyDict>>,
        copy: bool,
    ) -> PyResult<()> {
        self.with_submit(queue, inputs, wait_for, events, signals, copy, |queue, submit| {
            if self.held.has_nothing(queue) {
                return call(py, || submit.submit_detached());
            }
            self.held.submit(py, queue, || submit.submit()).map(drop)
        })
    }

    /// Applies the current values of nodes to later submissions: values of Params, ranges, and launches that replaced
    /// others. It applies all of them or, if it raises an exception, none. It never waits for submissions.
    #[pyo3(signature = (*nodes))]
    fn update(&self, py: Python<'_>, nodes: &Bound<'_, PyTuple>) -> PyResult<()> {
        if nodes.len() == 1 {
            let one = nodes.get_item(0)?;
            if let Ok(node) = one.cast::<node::Node>() {
                let node = node.get().node();
                call(py, || self.executable.update(&node))?;
            } else {
                let list = node::nodes(Some(&one))?;
                call(py, || self.executable.update(&list))?;
            }
        } else {
            let list =
                nodes.iter().map(|node| Ok(rust::Node::from_raw(node::raw(&node)?))).collect::<PyResult<Vec<_>>>()?;
            call(py, || self.executable.update(&list))?;
        }
        self.held.let_go(py);
        Ok(())
    }

    /// Applies the current values of all nodes of a graph that was built in the same way, or of the graph itself.
    fn update_from(&self, py: Python<'_>, graph: &Graph) -> PyResult<()> {
        self.held.update_from(py, graph.held(), || call(py, || self.executable.update_from(&graph.graph)))
    }

    /// What was decided when the graph was finalized, and why.
    #[getter]
    fn report(&self, py: Python<'_>) -> PyResult<Report> {
        Ok(Report::new(call(py, || Ok(self.executable.report()))?))
    }

    /// The memory that belongs to the graph, and what shares bytes. In a notebook it shows as a picture.
    #[getter]
    fn memory_map(&self, py: Python<'_>) -> PyResult<MemoryMap> {
        Ok(MemoryMap::new(call(py, || Ok(self.executable.report()))?.memory))
    }

    /// The number of bytes of the memory that belongs to the graph.
    #[getter]
    fn required_memory(&self) -> usize {
        self.executable.required_memory()
    }

    /// The command buffers that the executable made, as numbers: each a `cl_command_buffer_khr`. They are valid while the
    /// executable exists and is not updated.
    #[getter]
    fn command_buffers(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        call(py, || {
            Ok(self.executable.command_buffers().into_iter().map(|buffer| buffer.expose_provenance()).collect())
        })
    }

    /// The device.
    #[getter]
    fn device(&self) -> Device {
        Device::new(self.executable.device().clone())
    }

    /// Draws the executable as SVG, with the times of a submission that was profiled if one is given. `detail` is
    /// "brief", "full" (every node) or "verbose" (with arguments).
    #[pyo3(signature = (run=None, detail="brief"))]
    fn to_svg(&self, py: Python<'_>, run: Option<&Submission>, detail: &str) -> PyResult<String> {
        let detail = crate::report::detail(detail)?;
        call(py, || {
            let profile = run.map(|run| run.run().wait().and_then(|()| run.run().profile())).transpose()?;
            self.executable.to_svg(detail, profile.as_ref())
        })
    }

    fn _repr_svg_(&self, py: Python<'_>) -> PyResult<String> {
        self.to_svg(py, None, "brief")
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.held.traverse(&visit)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Executable\n{}", call(py, || Ok(self.executable.report()))?))
    }
}
