//! Handles of nodes.

use pyo3::prelude::*;
use pyo3::types::PyString;
use rust::RawNode;

use crate::control::{Branch, Loop};
use crate::errors::{invalid, type_of, wrong_type};
use crate::event::Event;
use crate::gate::call;
use crate::memory::Memory;
use crate::numpy::Layout;
use crate::submission::Submission;
use crate::task::read_of;

/// A node of a graph. It is a plain value, and keeps neither the graph nor the node alive.
#[pyclass(frozen, subclass, eq, hash, module = "clgraph", from_py_object)]
#[derive(Clone, Copy)]
pub(crate) struct Node {
    pub(crate) raw: RawNode,
    pub(crate) kind: &'static str,
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl std::hash::Hash for Node {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}

impl Node {
    pub(crate) fn of(raw: RawNode, kind: &'static str) -> Self {
        Self { raw, kind }
    }

    pub(crate) fn node(&self) -> rust::Node {
        rust::Node::from_raw(self.raw)
    }
}

#[pymethods]
impl Node {
    /// The position of the node in the order in which nodes were added, from 0.
    #[getter]
    fn index(&self) -> u32 {
        self.raw.index
    }

    /// What the node does: "kernel", "copy", "fill", ...
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn __repr__(&self) -> String {
        format!("Node({}, {})", self.raw.index, self.kind)
    }
}

/// A write of host data. It is also the name of the input: `executable.submit(inputs={write: data})`.
#[pyclass(frozen, extends = Node, module = "clgraph")]
pub(crate) struct Write {
    pub(crate) layout: Option<Layout>,
}

impl Write {
    pub(crate) fn make(py: Python<'_>, raw: RawNode, layout: Option<Layout>) -> PyResult<Py<Self>> {
        Py::new(py, PyClassInitializer::from(Node::of(raw, "write")).add_subclass(Self { layout }))
    }
}

#[pymethods]
impl Write {
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let index = slf.as_super().get().raw.index;
        Ok(match &slf.get().layout {
            Some(layout) => format!("Write({index}, {})", layout.show(slf.py())),
            None => format!("Write({index})"),
        })
    }
}

/// A read into host memory. It is also the name of the result: `run[read]` is a numpy array.
#[pyclass(frozen, extends = Node, module = "clgraph")]
pub(crate) struct Read {
    pub(crate) layout: Layout,
}

impl Read {
    pub(crate) fn make(py: Python<'_>, raw: RawNode, layout: Layout) -> PyResult<Py<Self>> {
        Py::new(py, PyClassInitializer::from(Node::of(raw, "read")).add_subclass(Self { layout }))
    }
}

#[pymethods]
impl Read {
    fn __repr__(slf: &Bound<'_, Self>) -> String {
        format!("Read({}, {})", slf.as_super().get().raw.index, slf.get().layout.show(slf.py()))
    }
}

/// A sub-graph: all nodes of an executable as one node. `sub.input(write)` and `sub.result(read)` name the executable's
/// inputs and results in this graph.
#[pyclass(frozen, extends = Node, module = "clgraph")]
pub(crate) struct SubGraph {
    of: crate::gate::Own<rust::SubGraph>,
}

impl SubGraph {
    pub(crate) fn make(py: Python<'_>, of: rust::SubGraph) -> PyResult<Py<Self>> {
        Self::of(py, of, "sub-graph")
    }

    /// A sub-graph, or a body of a node of another kind.
    pub(crate) fn of(py: Python<'_>, of: rust::SubGraph, kind: &'static str) -> PyResult<Py<Self>> {
        let node = Node::of(of.node().to_raw(), kind);
        Py::new(py, PyClassInitializer::from(node).add_subclass(Self { of: crate::gate::Own::new(of) }))
    }
}

#[pymethods]
impl SubGraph {
    /// Returns the input of a write of the executable's graph, as an input of this graph.
    fn input(&self, write: &Bound<'_, PyAny>) -> PyResult<Py<Write>> {
        let (py, inner) = (write.py(), rust::HostWrite::<u8>::from_raw(raw(write)?));
        let outer = crate::memory::fail(self.of.write(&inner))?;
        let layout = write.cast::<Write>().ok().and_then(|write| write.get().layout.as_ref());
        Write::make(py, outer.to_raw(), layout.map(|layout| layout.clone_ref(py)))
    }

    /// Returns the result of a read of the executable's graph, as a result of this graph.
    fn result(&self, read: &Bound<'_, PyAny>) -> PyResult<Py<Read>> {
        let (raw, layout) = read_of(read)?;
        let outer = crate::memory::fail(self.of.read(&rust::HostRead::<u8>::from_raw(raw)))?;
        Read::make(read.py(), outer.to_raw(), layout)
    }

    /// Returns a branch of the executable's graph, as one of this graph.
    fn branch(&self, branch: &Bound<'_, Branch>) -> PyResult<Py<Branch>> {
        Branch::within(branch, crate::memory::fail(self.of.branch(&branch.get().of))?)
    }

    /// Returns a loop of the executable's graph, as one of this graph.
    fn r#loop(&self, node: &Bound<'_, Loop>) -> PyResult<Py<Loop>> {
        Loop::within(node, crate::memory::fail(self.of.repeat(&node.get().of))?)
    }

    /// Returns a node of `wait_event` or `signal_event` of the executable's graph, as one of this graph. It may be the
    /// Event of a queue that recorded it.
    fn event(&self, node: &Bound<'_, PyAny>) -> PyResult<Node> {
        let inner = raw(node)?;
        let wait = || self.of.wait_event(&rust::EventWait::from_raw(inner)).map(|node| (node.to_raw(), "wait event"));
        let signal =
            || self.of.signal_event(&rust::EventSignal::from_raw(inner)).map(|node| (node.to_raw(), "signal event"));
        let outer = match node.cast::<Node>() {
            Ok(node) if node.get().kind == "signal event" => signal(),
            Ok(_) => wait(),
            // Which of both was recorded, its event does not say.
            Err(_) => wait().or_else(|error| signal().map_err(|_| error)),
        };
        let (raw, kind) = crate::memory::fail(outer)?;
        Ok(Node::of(raw, kind))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        format!("SubGraph({})", slf.as_super().get().raw.index)
    }
}

/// What a node of a graph does.
pub(crate) fn kind_of(graph: &rust::Graph, node: rust::Node) -> rust::Result<&'static str> {
    use rust::NodeKind as Of;
    Ok(match graph.kind(node)? {
        Of::Empty => "empty",
        Of::Kernel => "kernel",
        Of::Copy => "copy",
        Of::CopyRect => "copy of a rectangle",
        Of::CopyImage => "copy of pixels",
        Of::FillImage => "fill of an image",
        Of::Fill => "fill",
        Of::Write | Of::WriteImage => "write",
        Of::Read | Of::ReadImage => "read",
        Of::Alloc => "alloc",
        Of::Free => "free",
        Of::HostTask => "host task",
        Of::EventWait => "wait event",
        Of::EventSignal => "signal event",
        Of::SubGraph => "sub-graph",
        Of::NativeCommand => "native command",
        Of::When => "when",
        Of::Switch => "switch",
        Of::RepeatWhile => "repeat_while",
        Of::Repeat => "repeat",
        _ => "node",
    })
}

/// Nodes of a graph, as it lists them.
pub(crate) fn list(
    py: Python<'_>,
    graph: &rust::Graph,
    of: impl FnOnce(&rust::Graph) -> rust::Result<Vec<rust::Node>> + Send,
) -> PyResult<Vec<Node>> {
    call(py, || of(graph)?.into_iter().map(|node| Ok(Node::of(node.to_raw(), kind_of(graph, node)?))).collect())
}

/// The node that an object names: a node, the event of a recorded command, memory of a graph.
pub(crate) fn raw(object: &Bound<'_, PyAny>) -> PyResult<RawNode> {
    if let Ok(node) = object.cast::<Node>() {
        return Ok(node.get().raw);
    }
    let recorded = if let Ok(event) = object.cast::<Event>() {
        Some(event.get().node())
    } else if let Ok(memory) = object.cast::<Memory>() {
        Some(memory.get().node)
    } else if let Ok(run) = object.cast::<Submission>() {
        Some(run.get().recorded(object.py()))
    } else {
        None
    };
    match recorded {
        Some(Some(node)) => Ok(node.to_raw()),
        Some(None) => Err(wrong_type(format!("{} stands for no node of a graph", object.repr()?))),
        None => Err(wrong_type(format!("a node is a clgraph.Node, not {}", type_of(object)))),
    }
}

/// What a node waits for.
pub(crate) struct After {
    pub(crate) nodes: Vec<rust::Node>,
    /// Also every node that no other node waits for now.
    pub(crate) all_leaves: bool,
}

/// What `after=` says: a node, an iterable of nodes, or `"leaves"`.
pub(crate) fn after(object: Option<&Bound<'_, PyAny>>) -> PyResult<After> {
    match object.and_then(|object| object.cast::<PyString>().ok()) {
        None => Ok(After { nodes: nodes(object)?, all_leaves: false }),
        Some(text) if text == "leaves" => Ok(After { nodes: Vec::new(), all_leaves: true }),
        Some(text) => Err(invalid(format!(
            "`after` is a node, a list of nodes, or \"leaves\" for every node that no other node waits for, not {text:?}"
        ))),
    }
}

/// The nodes that an object names: one, or an iterable of them.
pub(crate) fn nodes(object: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<rust::Node>> {
    let Some(object) = object else { return Ok(Vec::new()) };
    if object.cast::<pyo3::types::PyTuple>().is_ok_and(|tuple| tuple.is_empty()) {
        return Ok(Vec::new());
    }
    match raw(object) {
        Ok(raw) => Ok(vec![rust::Node::from_raw(raw)]),
        Err(error) => {
            let Ok(list) = object.try_iter() else { return Err(error) };
            list.map(|node| Ok(rust::Node::from_raw(raw(&node?)?))).collect()
        }
    }
}
