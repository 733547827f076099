//! Device globals, and the programs whose kernels use them.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use rust::{DynamicGlobal, GlobalAccess, ProgramBuilder};

use crate::buffer::Buffer;
use crate::errors::{invalid, type_of, wrong_type};
use crate::gate::{Own, call, check};
use crate::graph::Graph;
use crate::interop;
use crate::memory::{Memory, Place, fail};
use crate::numpy::{self, Layout, items, numpy};
use crate::queue::Queue;
use crate::value::is_plain_number;

/// A variable in device memory, which the kernels of several programs use without having it as an argument.
///
/// `DeviceGlobal(name, numpy.uint32(100))` has an initial value: a numpy scalar, a record, an array or bytes. With a
/// `dtype` the value may also be a plain number or a list, and fills the `shape`, if there is one. Without a value the
/// variable is zero: `DeviceGlobal(name, dtype=numpy.float32, shape=(4, 16))`.
///
/// Each device of each context has one instance, which keeps what is written as long as anything of clgraph lives in the
/// context. With `of_program` it belongs to one program, and ends with it. A declaration is never freed: declare each
/// variable once. `name` is for errors and reports; two variables of one name clash where a context sees both.
///
/// `Program` gives its kernels access to it; `global.on(queue)` is its memory, for everything that takes memory.
#[pyclass(frozen, module = "clgraph")]
pub(crate) struct DeviceGlobal {
    pub(crate) global: DynamicGlobal,
    layout: Layout,
}

/// The bytes and the layout of an initial value.
fn initial_value(
    value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    shape: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Vec<u8>, Layout)> {
    let (py, numpy) = (value.py(), numpy(value.py())?);
    let array = if let Some(dtype) = dtype {
        numpy.call_method1("asarray", (value, numpy::dtype_of(py, Some(dtype))?))?
    } else if is_plain_number(value) {
        return Err(wrong_type(format!(
            "{value} is a plain Python number, and OpenCL C has several types for it: write numpy.int32({value}) or \
             numpy.float32({value}), or give a dtype"
        )));
    } else if value.is_instance_of::<PyBytes>() {
        numpy.call_method1("frombuffer", (value, "uint8"))?
    } else if Buffer::get(value).is_ok() || value.hasattr("__array_interface__")? {
        numpy.call_method1("asarray", (value,))?
    } else {
        let text =
            "an initial value is a numpy scalar, a record, an array or bytes; with a dtype also a number or a list";
        return Err(wrong_type(format!("{text}, not {}", type_of(value))));
    };
    numpy::dtype_of(py, Some(&array.getattr("dtype")?))?;
    if !array.getattr("dtype")?.getattr("isnative")?.is_truthy()? {
        return Err(wrong_type("the value has another byte order than this machine: convert it by `.astype`"));
    }
    let array = match shape {
        Some(shape) => numpy.call_method1("broadcast_to", (array, shape))?,
        None => array,
    };
    let bytes: Vec<u8> = array.call_method0("tobytes")?.extract()?;
    Ok((bytes, Layout::of_array(&array)?))
}

#[pymethods]
impl DeviceGlobal {
    #[new]
    #[pyo3(signature = (name, initial=None, dtype=None, shape=None, *, of_program=false))]
    fn new(
        py: Python<'_>,
        name: &str,
        initial: Option<&Bound<'_, PyAny>>,
        dtype: Option<&Bound<'_, PyAny>>,
        shape: Option<&Bound<'_, PyAny>>,
        of_program: bool,
    ) -> PyResult<Self> {
        check()?;
        let (initial, layout) = match initial {
            Some(value) => {
                let (bytes, layout) = initial_value(value, dtype, shape)?;
                (Some(bytes), layout)
            }
            None if dtype.is_none() && shape.is_none() => {
                return Err(wrong_type("a device global has an initial value or a dtype"));
            }
            None => {
                let one = PyTuple::empty(py).into_any();
                (None, Layout::made(numpy::dtype_of(py, dtype)?, shape.unwrap_or(&one))?)
            }
        };
        let declare = if of_program { DynamicGlobal::of_program } else { DynamicGlobal::new };
        Ok(Self { global: fail(declare(name, layout.bytes(), initial.as_deref()))?, layout })
    }

    /// The name.
    #[getter]
    fn name(&self) -> &'static str {
        self.global.name()
    }

    /// The number of bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.global.size()
    }

    /// The type of the elements, a numpy.dtype.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> Py<PyAny> {
        self.layout.dtype.clone_ref(py)
    }

    /// The number of elements in each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.layout.shape)
    }

    /// Returns the memory of the variable on the device of a queue or of a graph. Copies, fills, reads and writes take
    /// it, and kernels, as an argument. Nodes that use it are ordered with kernels that reach it by its name.
    fn on(&self, queue: &Bound<'_, PyAny>) -> PyResult<Memory> {
        let py = queue.py();
        let place = if let Ok(graph) = queue.cast::<Graph>() {
            let graph = &*graph.get().graph;
            call(py, || self.global.on(graph))?
        } else {
            let queue = Queue::find(queue)?;
            call(py, || self.global.on(&queue))?
        };
        Ok(Memory::of(Place::Global(place), self.layout.clone_ref(py), None))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("DeviceGlobal({:?}, {})", self.name(), self.layout.show(py))
    }
}

/// A program whose kernels use device globals, built from OpenCL C for all devices of a context.
///
/// `context` is a pyopencl.Context, or a queue. `source` is a text or a list of texts, which are joined. `globals` has
/// the variables by their names in the source: `{"hits": hits}`. There `CLG_DEVICE_GLOBAL(uint, hits);` declares one, or
/// `CLG_DEVICE_GLOBAL_ARRAY(float, weights, [4][16]);`, and `CLG_GLOBAL(hits)` is the variable. Kernels and functions
/// that use one have `CLG_PARAMS` at the end of their parameters, without a comma, or `CLG_ONLY_PARAMS` if they have no
/// others. The guide is docs/guide/device_globals.md. `options` are those of the compiler: a text or a list of texts.
///
/// `global_access` is how the kernels reach the variables, instead of the best way of the device: "named", "kernel" or
/// "argument", as in the guide.
///
/// Programs without device globals may as well be of pyopencl.
#[pyclass(frozen, module = "clgraph")]
pub(crate) struct Program(Own<rust::Program>);

/// A text, or several.
fn texts(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<String>> {
    if let Ok(one) = object.cast::<PyString>() {
        return Ok(vec![one.extract()?]);
    }
    items(object, usize::MAX)
        .map_err(|_| wrong_type(format!("`{what}` is a text or a list of texts, not {}", type_of(object))))
}

#[pymethods]
impl Program {
    #[new]
    #[pyo3(signature = (context, source, globals=None, *, options=None, global_access=None))]
    fn new(
        context: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        globals: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyAny>>,
        global_access: Option<&str>,
    ) -> PyResult<Self> {
        check()?;
        let py = context.py();
        let mut builder = ProgramBuilder::new(&interop::context_or_queue(context)?);
        builder = match global_access {
            None => builder,
            Some("named") => builder.global_access(GlobalAccess::NamedWrite),
            Some("kernel") => builder.global_access(GlobalAccess::Kernel),
            Some("argument") => builder.global_access(GlobalAccess::Argument),
            Some(other) => {
                let names = "\"named\", \"kernel\" or \"argument\"";
                return Err(invalid(format!("{other:?} is no way to reach device globals: {names}")));
            }
        };
        let sources = texts(source, "source")?;
        for option in options.map_or(Ok(Vec::new()), |options| texts(options, "options"))? {
            builder = builder.options(&option);
        }
        if let Some(globals) = globals {
            let wrong =
                || wrong_type("`globals` is a dictionary: the names in OpenCL C, and a clgraph.DeviceGlobal for each");
            for (name, global) in globals.cast::<PyDict>().map_err(|_| wrong())?.iter() {
                let name: String = name.extract().map_err(|_| wrong())?;
                let global = global.cast::<DeviceGlobal>().map_err(|_| wrong())?;
                builder = builder.global(&name, &global.get().global);
            }
        }
        let program = call(py, || {
            let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
            builder.sources(&sources)
        })?;
        Ok(Self(Own::new(program)))
    }

    /// Returns a kernel, as a pyopencl.Kernel that keeps the program. `Graph.kernel` and `Queue.kernel` take it. To
    /// pyopencl it may have more arguments than in the source: clgraph sets these.
    fn kernel<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let kernel = call(py, || self.0.kernel(name))?;
        interop::kernel_of(py, &kernel, "`Program.kernel`")
    }

    /// The names of the kernels.
    #[getter]
    fn kernel_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        call(py, || self.0.kernel_names())
    }

    /// How the kernels reach each device global, a line for each.
    #[getter]
    fn globals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let all = call(py, || Ok(self.0.globals()))?;
        PyList::new(py, all.iter().map(ToString::to_string))
    }

    /// The same program as a pyopencl.Program. clgraph uses its kernels while this Program lives.
    #[getter]
    fn program<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        check()?;
        // SAFETY: **live**: `self` owns it.
        unsafe { interop::wrap(py, "Program", self.0.raw(), "`Program.program`") }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Program({})", self.kernel_names(py)?.join(", ")))
    }
}
