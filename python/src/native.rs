//! Native commands: Python functions that enqueue OpenCL commands of their own.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rust::{NativeCommand, NativeQueue};

use crate::adding::options;
use crate::gate::attach;
use crate::graph::Graph;
use crate::held::Function;
use crate::interop;
use crate::memory::Scope;
use crate::node::{self, Node};
use crate::raised;
use crate::task::{check_function, takes};
use crate::uses::{self, with_uses};

/// Memory that a native command declares, as its function gets it.
///
/// `buffer` is a pyopencl.Buffer, of which `nbytes` bytes from `offset` on are meant. Memory that is no buffer has an
/// `address`, or is an `image`. Use it before the function returns, and do not keep it.
#[pyclass(frozen, module = "clgraph")]
pub(crate) struct NativeMemory {
    buffer: Option<Py<PyAny>>,
    image: Option<Py<PyAny>>,
    address: Option<usize>,
    offset: usize,
    nbytes: usize,
}

impl NativeMemory {
    fn new(py: Python<'_>, memory: rust::NativeMemory<'_>, is_image: bool) -> PyResult<Self> {
        let what = "the memory of a native command";
        let object = |class| {
            // SAFETY: **live**: clgraph keeps the memory of a native command while its function runs.
            let object = unsafe { interop::wrap(py, class, memory.pointer(), what) };
            object.map(|object| Some(object.unbind()))
        };
        let (buffer, image) = match (memory.is_object(), is_image) {
            (true, true) => (None, object("Image")?),
            (true, false) => (object("Buffer")?, None),
            (false, _) => (None, None),
        };
        let address = (!memory.is_object()).then(|| memory.pointer().addr());
        Ok(Self { buffer, image, address, offset: memory.offset(), nbytes: memory.size() })
    }
}

#[pymethods]
impl NativeMemory {
    /// The whole buffer, as a pyopencl.Buffer, or None.
    #[getter]
    fn buffer(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.buffer.as_ref().map(|buffer| buffer.clone_ref(py))
    }

    /// The image, as a pyopencl.Image, or None.
    #[getter]
    fn image(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.image.as_ref().map(|image| image.clone_ref(py))
    }

    /// The address of the first byte, if the memory is no buffer and no image but has an address on the device (SVM or
    /// USM), or None.
    #[getter]
    fn address(&self) -> Option<usize> {
        self.address
    }

    /// The first byte in the buffer; 0 for an address, which is that of the first byte itself.
    #[getter]
    fn offset(&self) -> usize {
        self.offset
    }

    /// The number of bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.nbytes
    }

    fn __repr__(&self) -> String {
        let of = match (&self.buffer, &self.image) {
            (Some(_), _) => format!("of a buffer from {} on", self.offset),
            (_, Some(_)) => "of an image".to_owned(),
            _ => "at an address".to_owned(),
        };
        format!("NativeMemory({} bytes {of})", self.nbytes)
    }
}

/// A function of Python that enqueues.
struct NativeFunction {
    function: Arc<Function>,
    /// For each memory that it gets, whether it is an image.
    images: Vec<bool>,
}

impl NativeFunction {
    /// Calls the function. It runs while clgraph holds locks, and takes the interpreter's: see `gate::Own`.
    fn run(&self, to: &NativeQueue<'_>) -> Result<(), String> {
        let call = |py: Python<'_>| -> PyResult<()> {
            // SAFETY: **live**: clgraph keeps the queue while the function runs.
            let queue = unsafe { interop::wrap(py, "CommandQueue", to.raw(), "the queue of a native command") }?;
            let mut args = vec![queue];
            for (index, is_image) in self.images.iter().enumerate() {
                args.push(Bound::new(py, NativeMemory::new(py, to.memory(index), *is_image)?)?.into_any());
            }
            self.function.get(py)?.call1(PyTuple::new(py, args)?).map(|_| ())
        };
        let outcome = attach(|py| call(py).map_err(|error| raised::text(py, &error)));
        outcome.unwrap_or_else(|| Err("the Python interpreter has ended, so the function was not called".to_owned()))
    }
}

/// A native command of a function and the memory that it uses; and the function, for what keeps it.
pub(crate) fn command(
    function: &Bound<'_, PyAny>,
    reads: Option<&Bound<'_, PyAny>>,
    writes: Option<&Bound<'_, PyAny>>,
    scope: Scope<'_>,
) -> PyResult<(NativeCommand, Arc<Function>)> {
    check_function(function, "a native command")?;
    let uses = uses::uses(reads, writes, scope, "a native command")?;
    let mut images: Vec<bool> = uses.iter().map(uses::Use::is_image).collect();
    if !takes(function, 1 + images.len()) {
        images.clear();
    }
    let function = Function::new(function);
    let run = NativeFunction { function: Arc::clone(&function), images };
    Ok((with_uses!(NativeCommand::enqueued(move |to: &NativeQueue<'_>| run.run(to)), uses), function))
}

/// Adds a native command to a graph.
pub(crate) fn command_node(
    graph: &Graph,
    function: &Bound<'_, PyAny>,
    reads: Option<&Bound<'_, PyAny>>,
    writes: Option<&Bound<'_, PyAny>>,
    label: Option<&str>,
    after: Option<&Bound<'_, PyAny>>,
) -> PyResult<Node> {
    let (command, kept) = command(function, reads, writes, graph.scope())?;
    let command = options!(graph.graph.native_command(command), label, node::after(after)?);
    // SAFETY: **native**: the program promises it.
    let node = graph.add(function.py(), || unsafe { command.add() })?;
    graph.keep(function.py(), &kept)?;
    Ok(Node::of(node.to_raw(), "native command"))
}
