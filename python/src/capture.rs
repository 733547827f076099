//! Captures: what other code enqueues on a pyopencl queue becomes nodes of a graph.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::gate::{Own, call, check};
use crate::graph::Graph;
use crate::node::{self, Node};
use crate::queue::Queue;

/// A capture of a queue, as a context manager whose value is the graph: `with graph.capture(queue):` or `with
/// clgraph.capture(queue) as graph:`.
///
/// Inside the block, what any code enqueues on the queue with OpenCL, such as pyopencl or a library, becomes nodes of the
/// graph, and does not run. The calls are seen by clgraph's layer: start the program with
/// `OPENCL_LAYERS=libclgraph_layer.so`, and with `CLGRAPH_LAYER=always` where the driver has command buffers of its own.
/// docs/layer.md says which calls can be captured. Those that wait cannot: warm libraries up before, and pass
/// `is_blocking=False` to pyopencl's copies, whose events wait when they are dropped, so keep them until the block has ended.
/// With `relaxed=True`, `finish` and waits for captured events do not wait for captured commands. Memory and kernels are known if they were
/// made after `import clgraph`.
///
/// If a call has spoilt the capture, the end of the block raises InvalidError that names the call. An exception ends the
/// capture, and adds nothing.
///
/// The program promises that captured kernels stay inside the memory that they were given, and that the arrays which
/// captured reads write to live as long as the graph.
#[pyclass(frozen, module = "clgraph")]
pub(crate) struct Capture {
    graph: Py<Graph>,
    queue: Own<rust::Queue>,
    mode: rust::CaptureMode,
    nodes: Mutex<Option<Vec<rust::Node>>>,
}

impl Capture {
    pub(crate) fn new(graph: Py<Graph>, queue: rust::Queue, relaxed: bool) -> Self {
        let mode = if relaxed { rust::CaptureMode::Relaxed } else { rust::CaptureMode::Strict };
        Self { graph, queue: Own::new(queue), mode, nodes: Mutex::default() }
    }

    fn of<R: Send>(
        &self,
        py: Python<'_>,
        code: impl FnOnce(&rust::Graph, &rust::Queue) -> rust::Result<R> + Send,
    ) -> PyResult<R> {
        let graph = self.graph.get();
        call(py, || code(&graph.graph, &self.queue))
    }
}

#[pymethods]
impl Capture {
    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<Graph>> {
        self.of(py, |graph, queue| graph.begin_capture(queue, self.mode))?;
        Ok(self.graph.clone_ref(py))
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        if exception.get_item(0).is_ok_and(|kind| !kind.is_none()) {
            // A call that was refused raises an exception of its own: the reason says more.
            return match self.of(py, |_, queue| queue.drop_capture()) {
                Err(error) => {
                    error.set_cause(py, exception.get_item(1).ok().map(PyErr::from_value));
                    Err(error)
                }
                Ok(()) => Ok(()),
            };
        }
        // SAFETY: **kernel**: the program promises it, as with pyopencl.
        let nodes = self.of(py, |graph, queue| unsafe { graph.end_capture(queue) })?;
        *self.nodes.lock().unwrap_or_else(PoisonError::into_inner) = Some(nodes);
        Ok(())
    }

    /// The nodes, one for each command, in the order of the calls.
    #[getter]
    fn nodes(&self, py: Python<'_>) -> PyResult<Vec<Node>> {
        check()?;
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(nodes) = nodes else {
            return Err(PyRuntimeError::new_err("the capture has no nodes: its block has not ended well"));
        };
        node::list(py, &self.graph.get().graph, |_| Ok(nodes))
    }
}

/// Captures a queue into a new graph: `with clgraph.capture(queue) as graph:`. See Capture.
#[pyfunction]
#[pyo3(signature = (queue, *, relaxed=false))]
pub(crate) fn capture(py: Python<'_>, queue: &Bound<'_, PyAny>, relaxed: bool) -> PyResult<Capture> {
    check()?;
    let raw = Queue::find(queue)?;
    let graph = Py::new(py, Graph::new(py, queue, None)?)?;
    Ok(Capture::new(graph, raw, relaxed))
}
