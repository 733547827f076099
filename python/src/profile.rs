//! Times of submissions.

use std::path::PathBuf;

use pyo3::prelude::*;
use rust::Trace;

use crate::gate::check;
use crate::memory::fail;
use crate::node::Node;
use crate::submission::Submission;

/// When a submission and its nodes ran, in nanoseconds of one clock. `print(profile)` shows two tables.
#[pyclass(frozen, module = "clgraph")]
pub(crate) struct Profile(rust::Profile);

impl Profile {
    pub(crate) fn new(profile: rust::Profile) -> Self {
        Self(profile)
    }

    pub(crate) fn profile(&self) -> rust::Profile {
        self.0.clone()
    }
}

#[pymethods]
impl Profile {
    /// Whose clock the times are of: "device" or "host".
    #[getter]
    fn clock(&self) -> String {
        self.0.clock.to_string()
    }

    /// When it was submitted.
    #[getter]
    fn submit(&self) -> u64 {
        self.0.submit
    }

    /// When its first node started.
    #[getter]
    fn start(&self) -> u64 {
        self.0.start
    }

    /// When its last node ended.
    #[getter]
    fn end(&self) -> u64 {
        self.0.end
    }

    /// From `start` to `end`.
    #[getter]
    fn duration(&self) -> u64 {
        self.0.end.saturating_sub(self.0.start)
    }

    /// The device's name.
    #[getter]
    fn device(&self) -> &str {
        &self.0.device
    }

    /// The nodes that ran, in the order of their starts.
    #[getter]
    fn nodes(&self) -> Vec<NodeProfile> {
        self.0.nodes.iter().map(|node| NodeProfile(node.clone())).collect()
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}

/// When one node ran, in nanoseconds.
#[pyclass(frozen, module = "clgraph")]
pub(crate) struct NodeProfile(rust::NodeProfile);

#[pymethods]
impl NodeProfile {
    /// The node.
    #[getter]
    fn node(&self) -> Node {
        Node::of(self.0.node.to_raw(), "profiled")
    }

    /// For a node in a sub-graph or a body: its index, from 0, among the nodes that this was inlined to.
    #[getter]
    fn inside(&self) -> Option<usize> {
        self.0.inside
    }

    /// For a node in a loop: in which turn of the innermost loop it ran, from 0 on. A loop inside of another one goes on counting in
    /// each turn of that.
    #[getter]
    fn turn(&self) -> Option<u64> {
        self.0.turn
    }

    /// The label of the node or, without one, the kernel's name or what else it does.
    #[getter]
    fn title(&self) -> &str {
        self.0.title()
    }

    /// What the node does.
    #[getter]
    fn kind(&self) -> String {
        self.0.kind.to_string()
    }

    /// When its command was enqueued.
    #[getter]
    fn queued(&self) -> u64 {
        self.0.queued
    }

    /// When it started.
    #[getter]
    fn start(&self) -> u64 {
        self.0.start
    }

    /// When it ended.
    #[getter]
    fn end(&self) -> u64 {
        self.0.end
    }

    /// From `start` to `end`.
    #[getter]
    fn duration(&self) -> u64 {
        self.0.end.saturating_sub(self.0.start)
    }

    fn __repr__(&self) -> String {
        format!("NodeProfile({}, {} ns)", self.title(), self.duration())
    }
}

/// Makes a trace of profiles, and writes it.
pub(crate) fn trace_of(py: Python<'_>, profiles: &[rust::Profile], path: Option<PathBuf>) -> PyResult<String> {
    check()?;
    let mut trace = Trace::new();
    profiles.iter().for_each(|profile| {
        trace.add(profile);
    });
    py.detach(|| {
        path.map_or(Ok(()), |path| trace.write(path))?;
        Ok(trace.to_json())
    })
    .map_or_else(|error| fail(Err(error)), Ok)
}

/// Returns the times of several submissions as one trace, JSON that Perfetto and chrome://tracing show, and writes it to
/// the file `path` if one is given. The executables were finalized with `profiling`.
#[pyfunction]
#[pyo3(signature = (*runs, path=None))]
fn trace(py: Python<'_>, runs: Vec<Bound<'_, Submission>>, path: Option<PathBuf>) -> PyResult<String> {
    let profiles = runs
        .iter()
        .map(|run| {
            let run = run.get().run();
            crate::gate::call(py, || run.wait().and_then(|()| run.profile()))
        })
        .collect::<PyResult<Vec<_>>>()?;
    trace_of(py, &profiles, path)
}

/// Adds the functions of this module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(trace, module)?)
}
