//! Memory: buffers and arrays of pyopencl, memory of graphs, and slices of all of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PySlice;
use rust::{Buffer, BufferSlice, Context, GlobalSlice, GraphMemory, Image, MemorySlice};

use crate::adding::options;
use crate::errors::{self, invalid, type_of, wrong_type};
use crate::gate::{Own, call, check};
use crate::graph::Graph;
use crate::held::Held;
use crate::interop::{self, Kind};
use crate::node::{self, Node};
use crate::numpy::{self, Layout};
use crate::program::DeviceGlobal;

/// A range of bytes of memory. As an argument of a kernel it is a pointer to the first of them.
#[derive(Clone)]
pub(crate) enum Place {
    Buffer(Buffer<u8>),
    /// The first bytes of a buffer, and the buffer.
    Part(BufferSlice<u8>, Buffer<u8>),
    Slice(MemorySlice<u8>),
    Graph(GraphMemory<u8>),
    /// A device global on one device.
    Global(GlobalSlice<u8>),
}

/// Runs code with memory of any type.
macro_rules! with_place {
    ($place:expr, |$name:ident| $code:expr) => {
        match $place {
            $crate::memory::Place::Buffer($name) => $code,
            $crate::memory::Place::Part($name, _) => $code,
            $crate::memory::Place::Slice($name) => $code,
            $crate::memory::Place::Graph($name) => $code,
            $crate::memory::Place::Global($name) => $code,
        }
    };
}
pub(crate) use with_place;

impl Place {
    pub(crate) fn size(&self) -> usize {
        with_place!(self, |memory| memory.size())
    }

    /// Returns a range of its bytes.
    fn slice(&self, start: usize, end: usize) -> rust::Result<Self> {
        Ok(match self {
            Self::Buffer(buffer) | Self::Part(_, buffer) if start == 0 => {
                Self::Part(buffer.slice(..end)?, buffer.clone())
            }
            Self::Buffer(buffer) | Self::Part(_, buffer) => {
                Self::Slice(rust::Memory::from(buffer.clone()).slice(start..end)?)
            }
            Self::Slice(slice) => Self::Slice(slice.slice(start..end)?),
            Self::Graph(memory) => Self::Slice(memory.slice(start..end)?),
            Self::Global(global) => Self::Global(global.slice(start..end)?),
        })
    }
}

/// Objects of clgraph over the handles that nodes of a graph use: making one asks the driver several questions. The
/// objects retain their handles, so no other object gets the same handle.
///
/// It has what nodes use, and nothing else: what failed calls and replaced nodes were given is released.
#[derive(Default)]
pub(crate) struct Cache {
    buffers: HashMap<usize, Buffer<u8>>,
    images: HashMap<usize, Image>,
}

impl Cache {
    /// Notes memory that a node uses.
    pub(crate) fn note(&mut self, place: &Place) {
        if let Place::Buffer(buffer) | Place::Part(_, buffer) = place {
            self.buffers.entry(buffer.raw().addr()).or_insert_with(|| buffer.clone());
        }
    }

    /// Notes an image that a node uses.
    pub(crate) fn note_image(&mut self, image: &Image) {
        self.images.entry(image.raw().addr()).or_insert_with(|| image.clone());
    }
}

/// Where memory is used: a context, and what is known and kept of its objects.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) context: &'a Context,
    pub(crate) user: MemoryUser<'a>,
}

/// What uses memory.
#[derive(Clone, Copy)]
pub(crate) enum MemoryUser<'a> {
    /// Nodes of a graph.
    Graph(&'a Mutex<Cache>, &'a Held),
    /// Commands of a queue, which run at once or are recorded.
    Queue(&'a rust::Queue),
    /// Nobody yet.
    Nobody,
}

impl Scope<'_> {
    /// Holds a buffer of a pool as long as a graph uses it. The caller has an object of clgraph over it: see
    /// `Held::let_go`.
    fn keep(&self, object: &Bound<'_, PyAny>) {
        match self.user {
            MemoryUser::Graph(_, held) => held.keep(object),
            MemoryUser::Queue(queue) => Held::of_recordings(queue).iter().for_each(|held| held.keep(object)),
            MemoryUser::Nobody => {}
        }
    }

    fn buffer(&self, object: &Bound<'_, PyAny>) -> PyResult<Buffer<u8>> {
        let known = match self.user {
            MemoryUser::Graph(cache, _) => {
                let raw = interop::handle(object)?.addr();
                cache.lock().unwrap_or_else(PoisonError::into_inner).buffers.get(&raw).cloned()
            }
            MemoryUser::Queue(_) | MemoryUser::Nobody => None,
        };
        let buffer = known.map_or_else(|| interop::buffer(self.context, object), Ok)?;
        // Also one that is known: by another object, which is of no pool.
        if interop::is_pooled(object) {
            self.keep(object);
        }
        Ok(buffer)
    }

    pub(crate) fn image(&self, object: &Bound<'_, PyAny>) -> PyResult<Image> {
        let MemoryUser::Graph(cache, _) = self.user else { return interop::image(self.context, object) };
        let raw = interop::handle(object)?.addr();
        let known = cache.lock().unwrap_or_else(PoisonError::into_inner).images.get(&raw).cloned();
        known.map_or_else(|| interop::image(self.context, object), Ok)
    }
}

/// Memory with the type and the shape of its elements, if they are known.
pub(crate) struct Typed {
    pub(crate) place: Place,
    pub(crate) layout: Option<Layout>,
}

impl Typed {
    /// The size of an element: 1 if the type is not known.
    pub(crate) fn item(&self) -> usize {
        self.layout.as_ref().map_or(1, |layout| layout.item)
    }
}

/// Returns the memory that an object of Python is, or `None` if it is none.
pub(crate) fn find(object: &Bound<'_, PyAny>, scope: Scope<'_>) -> PyResult<Option<Typed>> {
    if let Ok(memory) = object.cast::<Memory>() {
        let memory = memory.get();
        if let Some(pooled) = &memory.pooled {
            scope.keep(pooled.bind(object.py()));
        }
        return Ok(Some(Typed { place: memory.place.clone(), layout: Some(memory.layout.clone_ref(object.py())) }));
    }
    match interop::kind(object) {
        Some(Kind::Buffer) => Ok(Some(Typed { place: Place::Buffer(scope.buffer(object)?), layout: None })),
        Some(Kind::Array) => Ok(Some(array(object, scope)?)),
        _ => Ok(None),
    }
}

/// The memory of an array of pyopencl, from its offset on.
fn array(object: &Bound<'_, PyAny>, scope: Scope<'_>) -> PyResult<Typed> {
    let layout = Layout::of_array(object)?;
    if !object.getattr("flags")?.getattr("c_contiguous")?.is_truthy()? {
        return Err(invalid(
            "a pyopencl array has gaps or another order of its elements, and clgraph takes contiguous arrays: use \
             `array.copy()`, or copy a part of a picture by `copy_rect`",
        ));
    }
    let (offset, bytes): (usize, usize) = (object.getattr("offset")?.extract()?, object.getattr("nbytes")?.extract()?);
    if bytes == 0 {
        return Err(invalid("a pyopencl array has no elements, and OpenCL has no memory without bytes"));
    }
    let data = object.getattr("base_data")?;
    if interop::kind(&data) != Some(Kind::Buffer) {
        let text = format!("the memory of a pyopencl array is {}; clgraph takes arrays over buffers", type_of(&data));
        return Err(wrong_type(text));
    }
    let buffer = Place::Buffer(scope.buffer(&data)?);
    let place = if offset == 0 && bytes == buffer.size() {
        buffer
    } else {
        call(object.py(), || buffer.slice(offset, offset + bytes))?
    };
    Ok(Typed { place, layout: Some(layout) })
}

/// Returns the memory that an object of Python is.
pub(crate) fn memory(object: &Bound<'_, PyAny>, scope: Scope<'_>, what: &str) -> PyResult<Typed> {
    find(object, scope)?.ok_or_else(|| {
        let hint = if object.getattr("__array_interface__").is_ok() {
            ": a numpy array is memory of the host, which `write` and `read` copy from and to"
        } else if object.cast::<DeviceGlobal>().is_ok() {
            ": its memory is `global.on(queue)`"
        } else if type_of(object).strip_prefix("pyopencl.").is_some_and(|name| name.contains("SVM")) {
            ": memory with an address is not for graphs from Python, so copy it to a buffer"
        } else {
            ""
        };
        wrong_type(format!(
            "{what} is a pyopencl.Buffer, a pyopencl.array.Array or a clgraph.Memory, not {}{hint}",
            type_of(object)
        ))
    })
}

/// Memory with elements: memory of a graph (`Graph.alloc`), a buffer or an array of pyopencl, or a device global
/// (`DeviceGlobal.on`).
///
/// `Memory(buffer, dtype=None, shape=None)` looks at a pyopencl.Buffer as elements, so that `memory[a:b]` names a part
/// of it. A slice keeps the memory alive, and copies nothing. As an argument of a kernel it is a pointer to its first
/// element; for that, a slice of a buffer has to start at a multiple of the device's alignment.
#[pyclass(frozen, module = "clgraph", weakref)]
pub(crate) struct Memory {
    pub(crate) place: Own<Place>,
    pub(crate) layout: Layout,
    /// The node that allocates it, for memory of a graph.
    pub(crate) node: Option<rust::Node>,
    /// The buffer, if it is one of a pool.
    pub(crate) pooled: Option<Py<PyAny>>,
}

impl Memory {
    pub(crate) fn of(place: Place, layout: Layout, node: Option<rust::Node>) -> Self {
        Self { place: Own::new(place), layout, node, pooled: None }
    }

    /// The same memory, or a part of it, with another layout.
    fn again(&self, py: Python<'_>, place: Place, layout: Layout) -> Self {
        let pooled = self.pooled.as_ref().map(|pooled| pooled.clone_ref(py));
        Self { place: Own::new(place), layout, node: self.node, pooled }
    }
}

#[pymethods]
impl Memory {
    #[new]
    #[pyo3(signature = (buffer, dtype=None, shape=None))]
    fn new(
        buffer: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        shape: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = buffer.py();
        let of = match interop::kind(buffer) {
            Some(Kind::Array) => buffer.getattr("base_data")?,
            _ => buffer.clone(),
        };
        if interop::kind(&of) != Some(Kind::Buffer) {
            let text = format!("a Memory is made of a pyopencl.Buffer or a pyopencl.array.Array, not {}", type_of(&of));
            return Err(wrong_type(text));
        }
        let context = interop::context_of(&of)?;
        let Typed { place, layout } =
            memory(buffer, Scope { context: &context, user: MemoryUser::Nobody }, "a Memory")?;
        let layout = match layout {
            Some(layout) if dtype.is_none() && shape.is_none() => layout,
            Some(layout) => Layout::new(py, Some(dtype.unwrap_or(layout.dtype.bind(py))), shape, place.size())?,
            None => Layout::new(py, dtype, shape, place.size())?,
        };
        let pooled = interop::is_pooled(&of).then(|| of.unbind());
        Ok(Self { pooled, ..Self::of(place, layout, None) })
    }

    /// The number of bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.place.size()
    }

    /// The type of the elements, a numpy.dtype.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> Py<PyAny> {
        self.layout.dtype.clone_ref(py)
    }

    /// The number of elements in each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, &self.layout.shape)
    }

    /// The node that allocates memory of a graph, or None.
    #[getter]
    fn node(&self, py: Python<'_>) -> PyResult<Option<Py<Node>>> {
        self.node.map(|node| Py::new(py, Node::of(node.to_raw(), "alloc"))).transpose()
    }

    /// The buffer, as a pyopencl.Buffer: the whole one, of which this may be a part. None for memory of a graph, for a
    /// device global, and for a part that does not start where the buffer does. Memory of a pool is the object itself.
    #[getter]
    fn buffer<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        check()?;
        let (Place::Buffer(buffer) | Place::Part(_, buffer)) = &*self.place else { return Ok(None) };
        // Another object over the same memory would not keep it from going back to its pool.
        if let Some(pooled) = &self.pooled {
            return Ok(Some(pooled.bind(py).clone()));
        }
        // SAFETY: **live**: `self` keeps it alive.
        unsafe { interop::wrap(py, "Buffer", buffer.raw(), "`Memory.buffer`") }.map(Some)
    }

    fn __len__(&self) -> usize {
        self.layout.shape.first().copied().unwrap_or(1)
    }

    /// Returns a part of the memory along its first dimension: `memory[a:b]`.
    fn __getitem__(&self, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = index.py();
        let Ok(slice) = index.cast::<PySlice>() else {
            return Err(PyTypeError::new_err("memory is sliced, `memory[a:b]`, along its first dimension"));
        };
        let Some((first, rest)) = self.layout.shape.split_first() else {
            return Err(PyIndexError::new_err("memory without dimensions has no slices"));
        };
        let at = slice.indices(*first as isize)?;
        if at.step != 1 {
            return Err(PyIndexError::new_err("a slice of memory has no step: it is contiguous"));
        }
        let row = self.layout.item * rest.iter().product::<usize>();
        let (start, len) = (at.start as usize, at.slicelength);
        if len == 0 {
            return Err(invalid("a slice of memory has no elements, and OpenCL has no memory without bytes"));
        }
        let mut layout = self.layout.clone_ref(py);
        layout.shape[0] = len;
        let (place, whole) = (&*self.place, (0, *first));
        if (start, len) == whole {
            return Ok(self.again(py, place.clone(), layout));
        }
        let place = call(py, || place.slice(start * row, (start + len) * row))?;
        Ok(self.again(py, place, layout))
    }

    /// Returns the same memory with elements of another type or in another shape. One length may be -1.
    #[pyo3(signature = (dtype=None, shape=None))]
    fn view(
        &self,
        py: Python<'_>,
        dtype: Option<&Bound<'_, PyAny>>,
        shape: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let dtype = dtype.unwrap_or(self.layout.dtype.bind(py));
        let layout = Layout::new(py, Some(dtype), shape, self.place.size())?;
        Ok(self.again(py, self.place.clone(), layout))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let of = match &*self.place {
            Place::Graph(_) => format!(", of {}", self.node.map_or_else(String::new, |node| node.to_string())),
            _ => String::new(),
        };
        format!("Memory({}{of})", self.layout.show(py))
    }
}

/// Adds an allocation to a graph.
pub(crate) fn alloc(
    graph: &Graph,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    zeroed: bool,
    label: Option<&str>,
    after: Option<&Bound<'_, PyAny>>,
) -> PyResult<Memory> {
    let (py, nodes) = (shape.py(), node::after(after)?);
    let layout = Layout::made(numpy::dtype_of(py, dtype)?, shape)?;
    let alloc = options!(graph.graph.alloc::<u8>(layout.bytes()), label, nodes);
    let memory = graph.add(py, || if zeroed { alloc.zero_init().add() } else { alloc.add() })?;
    let node = memory.node();
    Ok(Memory::of(Place::Graph(memory), layout, Some(node)))
}

/// Adds the end of the life of memory of a graph.
pub(crate) fn free(
    py: Python<'_>,
    graph: &Graph,
    memory: &Memory,
    label: Option<&str>,
    after: Option<&Bound<'_, PyAny>>,
) -> PyResult<Node> {
    let Place::Graph(of) = &*memory.place else {
        return Err(wrong_type("only memory that `Graph.alloc` returned, as a whole, can be freed by a node"));
    };
    let free = options!(graph.graph.free(of), label, node::after(after)?);
    Ok(Node::of(graph.add(py, || free.add())?.to_raw(), "free"))
}

/// Whether an object is an image of pyopencl.
pub(crate) fn is_image(object: &Bound<'_, PyAny>) -> bool {
    interop::kind(object) == Some(Kind::Image)
}

/// Converts an error of clgraph.
pub(crate) fn fail<T>(result: rust::Result<T>) -> PyResult<T> {
    result.map_err(errors::of)
}
