//! Reports: what was decided for an executable, and its memory.

use std::path::PathBuf;

use pyo3::prelude::*;
use rust::{DrawingDetail, MemoryReport};

use crate::errors::invalid;
use crate::memory::fail;

/// What was decided when a graph was finalized, and why. `print(report)` shows all of it.
#[pyclass(frozen, module = "clgraph")]
pub(crate) struct Report(rust::Report);

impl Report {
    pub(crate) fn new(report: rust::Report) -> Self {
        Self(report)
    }
}

#[pymethods]
impl Report {
    /// The device's name, with its platform.
    #[getter]
    fn device(&self) -> &str {
        &self.0.device
    }

    /// The number of nodes of the graph. A sub-graph counts as one.
    #[getter]
    fn nodes(&self) -> usize {
        self.0.nodes
    }

    /// The number of edges of the graph.
    #[getter]
    fn edges(&self) -> usize {
        self.0.edges
    }

    /// The number of commands of a submission, with sub-graphs inlined.
    #[getter]
    fn commands(&self) -> usize {
        self.0.commands
    }

    /// The runs of commands that take one path, each as a text: the path, and why.
    #[getter]
    fn segments(&self) -> Vec<String> {
        self.0.segments.iter().map(ToString::to_string).collect()
    }

    /// How many command buffers a submission enqueues.
    #[getter]
    fn command_buffers(&self) -> usize {
        self.0.segments.iter().map(|segment| segment.command_buffers).sum()
    }

    /// The loops, each as a text: its node, how it runs, and why.
    #[getter]
    fn loops(&self) -> Vec<String> {
        self.0.loops.iter().map(|of| format!("node {}: {of}", of.node)).collect()
    }

    /// How submissions are enqueued, and what the autotuner has found.
    #[getter]
    fn tuning(&self) -> String {
        self.0.tuning.to_string()
    }

    /// Kernels whose arguments could not be checked, because their program does not report the types. Build it with
    /// `-cl-kernel-arg-info`.
    #[getter]
    fn unchecked_kernels(&self) -> Vec<String> {
        self.0.unchecked_kernels.clone()
    }

    /// The memory that belongs to the graph.
    #[getter]
    fn memory(&self) -> MemoryMap {
        MemoryMap::new(self.0.memory.clone())
    }

    /// What is allowed but perhaps not intended.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.0.warnings.clone()
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }
}

/// The memory that belongs to a graph: where each allocation is, and when it is needed. In a notebook it shows as a
/// picture.
#[pyclass(frozen, module = "clgraph")]
pub(crate) struct MemoryMap(MemoryReport);

impl MemoryMap {
    pub(crate) fn new(memory: MemoryReport) -> Self {
        Self(memory)
    }
}

#[pymethods]
impl MemoryMap {
    /// All bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.bytes
    }

    /// How many bytes it would be if allocations shared none.
    #[getter]
    fn nbytes_apart(&self) -> usize {
        self.0.bytes_apart
    }

    /// Draws the memory as SVG.
    fn to_svg(&self) -> String {
        self.0.to_svg()
    }

    /// Writes the drawing to a file.
    fn write_svg(&self, path: PathBuf) -> PyResult<()> {
        fail(self.0.write_svg(path))
    }

    fn _repr_svg_(&self) -> String {
        self.0.to_svg()
    }

    fn __repr__(&self) -> String {
        let (count, bytes) = (self.0.allocations.len(), self.0.bytes);
        format!("MemoryMap({count} allocations in {bytes} bytes)")
    }
}

/// How much a drawing shows.
pub(crate) fn detail(name: &str) -> PyResult<DrawingDetail> {
    match name {
        "brief" => Ok(DrawingDetail::Brief),
        "full" => Ok(DrawingDetail::Full),
        "verbose" => Ok(DrawingDetail::Verbose),
        other => Err(invalid(format!("{other:?} is no detail of a drawing: \"brief\", \"full\" or \"verbose\""))),
    }
}
