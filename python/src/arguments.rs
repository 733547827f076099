//! Arguments of kernels: what Python gives, and what a launch of clgraph gets.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use rust::{DynamicGlobal, ExecuteKernel, Image, KernelNode, Sampler};

use crate::errors::{self, invalid, type_of, wrong_type};
use crate::interop::{self, Kind};
use crate::memory::{self, Place, Scope, with_place};
use crate::parameter::{AnyParameter, Param, with_parameter};
use crate::program::DeviceGlobal;
use crate::value::{Value, is_plain_number, with_value};

/// How a kernel uses memory.
#[derive(Clone, Copy)]
enum Mode {
    In,
    Out,
    InOut,
}

macro_rules! modes {
    ($($(#[$doc:meta])* $name:ident)*) => {
        $(
            $(#[$doc])*
            #[pyclass(frozen, module = "clgraph")]
            pub(crate) struct $name(Py<PyAny>);

            #[pymethods]
            impl $name {
                #[new]
                fn new(memory: Py<PyAny>) -> Self {
                    Self(memory)
                }

                /// The memory.
                #[getter]
                fn memory(&self, py: Python<'_>) -> Py<PyAny> {
                    self.0.clone_ref(py)
                }

                fn __repr__(&self, py: Python<'_>) -> String {
                    format!("{}({})", stringify!($name), type_of(self.0.bind(py)))
                }

                // As a tuple, it does not change: what it is in a cycle with gives it up.
                fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
                    visit.call(&self.0)
                }
            }
        )*

        /// The memory of an argument, and how the kernel uses it.
        fn mode<'py>(object: &Bound<'py, PyAny>) -> Option<(Bound<'py, PyAny>, Mode)> {
            $(if let Ok(argument) = object.cast_exact::<$name>() {
                return Some((argument.get().0.bind(object.py()).clone(), Mode::$name));
            })*
            None
        }
    };
}

modes! {
    /// Memory that a kernel only reads: `In(x)`, where `x` is a pyopencl.Buffer, a pyopencl.array.Array, a
    /// pyopencl.Image, a clgraph.Memory, or a Param of one of them. `globals=In(x)` says it of a DeviceGlobal.
    In
    /// Memory that a kernel writes without reading its old content. Bytes that it does not write keep their values.
    Out
    /// Memory that a kernel reads and writes.
    InOut
}

/// Local memory of a kernel argument: so many bytes for each work-group.
#[pyclass(frozen, module = "clgraph")]
pub(crate) struct Local {
    nbytes: usize,
}

#[pymethods]
impl Local {
    #[new]
    fn new(nbytes: usize) -> Self {
        Self { nbytes }
    }

    /// The number of bytes for each work-group.
    #[getter]
    fn nbytes(&self) -> usize {
        self.nbytes
    }

    fn __repr__(&self) -> String {
        format!("Local({})", self.nbytes)
    }
}

impl Local {
    pub(crate) fn of(nbytes: usize) -> Self {
        Self { nbytes }
    }

    /// The size of local memory, of clgraph or of pyopencl.
    pub(crate) fn bytes(object: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        if let Ok(local) = object.cast_exact::<Self>() {
            return Ok(Some(local.get().nbytes));
        }
        match interop::kind(object) {
            Some(Kind::Local) => Ok(Some(object.getattr("size")?.extract()?)),
            _ => Ok(None),
        }
    }
}

/// An argument of a launch.
pub(crate) enum Argument<'py> {
    Memory(Place, Used),
    Image(Image, Used),
    Value(Value),
    Local(usize),
    Null,
    Sampler(Sampler),
    Param(Bound<'py, Param>, Option<Used>),
}

/// How an argument is used.
#[derive(Clone, Copy)]
pub(crate) struct Used(Mode);

/// Reads the arguments of a kernel.
pub(crate) fn read<'py>(
    kernel: &Bound<'py, PyAny>,
    args: &Bound<'py, PyTuple>,
    scope: Scope<'_>,
) -> PyResult<Vec<Argument<'py>>> {
    args.iter().enumerate().map(|(index, object)| one(kernel, index, &object, scope)).collect()
}

/// Reads one argument for a kernel that pyopencl does not know.
pub(crate) fn given_to<'py>(
    py: Python<'py>,
    kernel: &rust::Kernel,
    index: usize,
    object: &Bound<'py, PyAny>,
    scope: Scope<'_>,
) -> PyResult<Argument<'py>> {
    let made = kernel.to_opencl3().map_err(errors::of)?;
    // SAFETY: **live**: `made` owns it, and pyopencl takes a reference of its own.
    let kernel = unsafe { interop::wrap(py, "Kernel", made.get(), "`set_arg`") }?;
    one(&kernel, index, object, scope)
}

fn one<'py>(
    kernel: &Bound<'py, PyAny>,
    index: usize,
    object: &Bound<'py, PyAny>,
    scope: Scope<'_>,
) -> PyResult<Argument<'py>> {
    if let Some((memory, mode)) = mode(object) {
        let used = Used(mode);
        if let Ok(param) = memory.cast_exact::<Param>() {
            return match &*param.get().0 {
                AnyParameter::Memory(_) | AnyParameter::Image(_) => Ok(Argument::Param(param.clone(), Some(used))),
                _ => Err(wrong_type(format!("argument {index}: the parameter is no memory, so it has no In or Out"))),
            };
        }
        if memory::is_image(&memory) {
            return Ok(Argument::Image(scope.image(&memory)?, used));
        }
        let what = format!("argument {index}: what a kernel reads or writes");
        return Ok(Argument::Memory(memory::memory(&memory, scope, &what)?.place, used));
    }
    if let Ok(param) = object.cast_exact::<Param>() {
        return match &*param.get().0 {
            AnyParameter::Memory(_) | AnyParameter::Image(_) => Err(bare(index, object)),
            _ => Ok(Argument::Param(param.clone(), None)),
        };
    }
    if object.is_none() {
        return Ok(Argument::Null);
    }
    if is_plain_number(object) {
        return Ok(Argument::Value(number(kernel, index, object)?));
    }
    match interop::kind(object) {
        Some(Kind::Sampler) => return Ok(Argument::Sampler(interop::sampler(scope.context, object)?)),
        Some(Kind::Buffer | Kind::Array | Kind::Image) => return Err(bare(index, object)),
        Some(Kind::Local) => return Ok(Argument::Local(object.getattr("size")?.extract()?)),
        _ => {}
    }
    if let Ok(local) = object.cast_exact::<Local>() {
        return Ok(Argument::Local(local.get().nbytes));
    }
    if object.cast_exact::<memory::Memory>().is_ok() {
        return Err(bare(index, object));
    }
    if object.cast_exact::<DeviceGlobal>().is_ok() {
        return Err(wrong_type(format!(
            "argument {index}: a kernel reaches a DeviceGlobal by its name, and has no argument for it; its memory, \
             `global.on(queue)`, can be one"
        )));
    }
    let value =
        Value::of(object).map_err(|error| wrong_type(format!("argument {index}: {}", error.value(object.py()))))?;
    value.map(Argument::Value).ok_or_else(|| {
        wrong_type(format!(
            "argument {index}: {} is no argument of a kernel; it takes In, Out or InOut of memory, a numpy scalar, a \
             record, bytes, a Param, a Local, a pyopencl.Sampler, or None for a null pointer",
            type_of(object)
        ))
    })
}

fn bare(index: usize, object: &Bound<'_, PyAny>) -> PyErr {
    wrong_type(format!(
        "argument {index}: {} says how the kernel uses its memory by In(x), Out(x) or InOut(x): the edges of the graph \
         come from that",
        type_of(object)
    ))
}

/// A plain Python number as a value, if the kernel's program reports the type of the parameter.
fn number(kernel: &Bound<'_, PyAny>, index: usize, number: &Bound<'_, PyAny>) -> PyResult<Value> {
    const TYPE_NAME: u32 = 0x1198; // CL_KERNEL_ARG_TYPE_NAME
    let reported = kernel.call_method1("get_arg_info", (index, TYPE_NAME)).and_then(|name| name.extract::<String>());
    let Some(zero) = reported.ok().and_then(|name| Value::zero(&name)) else {
        return Err(wrong_type(format!(
            "argument {index}: {number} is a plain Python number, and OpenCL C has several types for it: write \
             numpy.int32({number}) or numpy.float32({number}), or build the program with `-cl-kernel-arg-info`, so \
             that clgraph can look the type up"
        )));
    };
    zero.like(number).map_err(|error| {
        let (py, text) = (number.py(), format!("argument {index}: {}", error.value(number.py())));
        if error.is_instance_of::<pyo3::exceptions::PyTypeError>(py) { wrong_type(text) } else { invalid(text) }
    })
}

impl Argument<'_> {
    /// Gives the argument to a node of a graph.
    pub(crate) fn give_node<'g>(&self, node: KernelNode<'g>) -> KernelNode<'g> {
        macro_rules! used {
            ($memory:expr, $used:expr) => {
                match $used.0 {
                    Mode::In => node.read($memory),
                    Mode::Out => node.write($memory),
                    Mode::InOut => node.read_write($memory),
                }
            };
        }
        match self {
            Self::Memory(place, used) => with_place!(place, |memory| used!(memory, used)),
            Self::Image(image, used) => used!(image, used),
            Self::Value(value) => with_value!(value, |number| node.arg(*number), |bytes| node.bytes(bytes)),
            Self::Local(bytes) => node.local::<u8>(*bytes),
            Self::Null => node.null(),
            Self::Sampler(sampler) => node.arg(sampler),
            Self::Param(param, used) => {
                let used = used.unwrap_or(Used(Mode::InOut));
                with_parameter!(&*param.get().0, |value| node.arg(value),
                    AnyParameter::Memory(memory) => used!(memory, used),
                    AnyParameter::Image(image) => used!(image, used),
                )
            }
        }
    }

    /// Gives the argument to a launch on a queue.
    pub(crate) fn give_launch(&self, launch: &mut ExecuteKernel<'_>) {
        macro_rules! used {
            ($memory:expr, $used:expr) => {
                match $used.0 {
                    Mode::In => launch.set_arg_read($memory),
                    Mode::Out => launch.set_arg_write($memory),
                    Mode::InOut => launch.set_arg_read_write($memory),
                }
            };
        }
        match self {
            Self::Memory(place, used) => with_place!(place, |memory| used!(memory, used)),
            Self::Image(image, used) => used!(image, used),
            Self::Value(value) => {
                with_value!(value, |number| launch.set_arg(number), |bytes| launch.set_arg_bytes(bytes))
            }
            Self::Local(bytes) => launch.set_arg_local_buffer(*bytes),
            Self::Null => launch.set_arg_null(),
            Self::Sampler(sampler) => launch.set_arg(sampler),
            Self::Param(param, used) => {
                let used = used.unwrap_or(Used(Mode::InOut));
                with_parameter!(&*param.get().0, |value| launch.set_arg(value),
                    AnyParameter::Memory(memory) => used!(memory, used),
                    AnyParameter::Image(image) => used!(image, used),
                )
            }
        };
    }
}

/// The device globals that a kernel uses, and how.
pub(crate) struct Globals(Vec<(DynamicGlobal, Used)>);

/// Reads which device globals a kernel uses: None for all of its program, one use, or several.
pub(crate) fn globals(object: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Globals>> {
    let Some(object) = object else { return Ok(None) };
    let one = |object: &Bound<'_, PyAny>| {
        let (global, how) = mode(object)?;
        Some((global.cast_exact::<DeviceGlobal>().ok()?.get().global, Used(how)))
    };
    if let Some(one) = one(object) {
        return Ok(Some(Globals(vec![one])));
    }
    let wrong = |object: &Bound<'_, PyAny>| {
        wrong_type(format!(
            "`globals` is In, Out or InOut of a clgraph.DeviceGlobal, or a list of these, not {}",
            type_of(object)
        ))
    };
    let list = object.try_iter().map_err(|_| wrong(object))?;
    let list = list.map(|object| object.and_then(|object| one(&object).ok_or_else(|| wrong(&object))));
    Ok(Some(Globals(list.collect::<PyResult<_>>()?)))
}

impl Globals {
    /// Declares the uses to a node of a graph.
    pub(crate) fn give_node<'g>(&self, node: KernelNode<'g>) -> KernelNode<'g> {
        if self.0.is_empty() {
            return node.no_globals();
        }
        self.0.iter().fold(node, |node, (global, used)| match used.0 {
            Mode::In => node.global_read(global),
            Mode::Out => node.global_write(global),
            Mode::InOut => node.global_read_write(global),
        })
    }

    /// Declares the uses to a launch on a queue.
    pub(crate) fn give_launch(&self, launch: &mut ExecuteKernel<'_>) {
        if self.0.is_empty() {
            launch.set_no_globals();
        }
        for (global, used) in &self.0 {
            match used.0 {
                Mode::In => launch.set_global_read(global),
                Mode::Out => launch.set_global_write(global),
                Mode::InOut => launch.set_global_read_write(global),
            };
        }
    }
}
