//! pyopencl's objects: what they are, and the objects of clgraph over the same handles.
//!
//! clgraph never imports pyopencl by itself to look at an object: if it was not imported, no object is of it.

use std::ffi::c_void;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use rust::{Buffer, Context, Device, Event, Image, Kernel, Queue, Sampler};

use crate::errors::{self, type_of, wrong_type};
use crate::gate::{Kept, Own, check};

/// The classes of pyopencl.
pub(crate) struct Classes {
    buffer: Py<PyType>,
    image: Py<PyType>,
    kernel: Py<PyType>,
    queue: Py<PyType>,
    context: Py<PyType>,
    device: Py<PyType>,
    event: Py<PyType>,
    sampler: Py<PyType>,
    local: Py<PyType>,
    /// A buffer that returns to its pool when it is dropped.
    pooled: Option<Py<PyType>>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();
static ARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// A module, if it was imported.
fn imported<'py>(py: Python<'py>, name: &str) -> Option<Bound<'py, PyAny>> {
    let modules = py.import("sys").ok()?.getattr("modules").ok()?.cast_into::<PyDict>().ok()?;
    modules.get_item(name).ok()?.filter(|module| !module.is_none())
}

fn classes(py: Python<'_>) -> Option<&Classes> {
    if let Some(classes) = CLASSES.get(py) {
        return Some(classes);
    }
    let module = imported(py, "pyopencl")?;
    let class = |name: &str| Some(module.getattr(name).ok()?.cast_into::<PyType>().ok()?.unbind());
    let classes = Classes {
        buffer: class("Buffer")?,
        image: class("Image")?,
        kernel: class("Kernel")?,
        queue: class("CommandQueue")?,
        context: class("Context")?,
        device: class("Device")?,
        event: class("Event")?,
        sampler: class("Sampler")?,
        local: class("LocalMemory")?,
        pooled: module
            .getattr("_cl")
            .and_then(|inner| inner.getattr("PooledBuffer"))
            .ok()
            .and_then(|class| class.cast_into().ok())
            .map(Bound::unbind),
    };
    Some(CLASSES.get_or_init(py, || classes))
}

fn array_class(py: Python<'_>) -> Option<&Py<PyType>> {
    if let Some(class) = ARRAY.get(py) {
        return Some(class);
    }
    let class = imported(py, "pyopencl.array")?.getattr("Array").ok()?.cast_into::<PyType>().ok()?.unbind();
    Some(ARRAY.get_or_init(py, || class))
}

/// What an object of pyopencl is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Buffer,
    Image,
    Kernel,
    Queue,
    Context,
    Device,
    Event,
    Sampler,
    Local,
    Array,
}

/// Whether a type is a class or one below it. `isinstance` would ask their metaclass, which takes long for so many classes.
fn is_of(of: &Bound<'_, PyType>, class: &Py<PyType>) -> bool {
    // SAFETY: both are types that live.
    unsafe { pyo3::ffi::PyType_IsSubtype(of.as_type_ptr(), class.as_ptr().cast()) != 0 }
}

/// Returns what an object of pyopencl is, or `None` for any other object.
pub(crate) fn kind(object: &Bound<'_, PyAny>) -> Option<Kind> {
    let py = object.py();
    let classes = classes(py)?;
    let of = object.get_type();
    let is = |class: &Py<PyType>| is_of(&of, class);
    if is(&classes.buffer) || classes.pooled.as_ref().is_some_and(is) {
        Some(Kind::Buffer)
    } else if array_class(py).is_some_and(is) {
        Some(Kind::Array)
    } else if is(&classes.kernel) {
        Some(Kind::Kernel)
    } else if is(&classes.queue) {
        Some(Kind::Queue)
    } else if is(&classes.image) {
        Some(Kind::Image)
    } else if is(&classes.event) {
        Some(Kind::Event)
    } else if is(&classes.context) {
        Some(Kind::Context)
    } else if is(&classes.device) {
        Some(Kind::Device)
    } else if is(&classes.sampler) {
        Some(Kind::Sampler)
    } else if is(&classes.local) {
        Some(Kind::Local)
    } else {
        None
    }
}

/// Whether a buffer goes back to a pool, for others to use, when the program drops it. clgraph keeps the object then.
pub(crate) fn is_pooled(object: &Bound<'_, PyAny>) -> bool {
    let pooled = classes(object.py()).and_then(|classes| classes.pooled.as_ref());
    pooled.is_some_and(|pooled| is_of(&object.get_type(), pooled))
}

/// Whether nothing but an object of pyopencl refers to its memory: nothing of clgraph does then.
pub(crate) fn is_alone(object: &Bound<'_, PyAny>) -> bool {
    let count = object.getattr(pyo3::intern!(object.py(), "reference_count"));
    count.and_then(|count| count.extract::<usize>()).is_ok_and(|count| count == 1)
}

/// The handle of an object of pyopencl, which is live as long as the object is.
pub(crate) fn handle(object: &Bound<'_, PyAny>) -> PyResult<*mut c_void> {
    check()?;
    let address: usize = object.getattr(pyo3::intern!(object.py(), "int_ptr"))?.extract()?;
    Ok(std::ptr::with_exposed_provenance_mut(address))
}

fn expect(object: &Bound<'_, PyAny>, is: Kind, what: &str, class: &str) -> PyResult<*mut c_void> {
    if kind(object) != Some(is) {
        return Err(wrong_type(format!("{what} is a pyopencl.{class}, not {}", type_of(object))));
    }
    handle(object)
}

pub(crate) fn queue(object: &Bound<'_, PyAny>) -> PyResult<Queue> {
    let raw = expect(object, Kind::Queue, "a queue", "CommandQueue or a clgraph.Queue")?;
    // SAFETY: `raw` is the live queue of `object`.
    unsafe { Queue::from_raw(raw) }.map_err(errors::of)
}

pub(crate) fn context(object: &Bound<'_, PyAny>) -> PyResult<Context> {
    let raw = expect(object, Kind::Context, "a context", "Context")?;
    // SAFETY: `raw` is the live context of `object`.
    unsafe { Context::from_raw(raw) }.map_err(errors::of)
}

pub(crate) fn device(object: &Bound<'_, PyAny>) -> PyResult<Device> {
    let raw = expect(object, Kind::Device, "a device", "Device or a clgraph.Device")?;
    // SAFETY: `raw` is the live device of `object`.
    unsafe { Device::from_raw(raw) }.map_err(errors::of)
}

pub(crate) fn event(object: &Bound<'_, PyAny>) -> PyResult<Event> {
    let raw = expect(object, Kind::Event, "an event", "Event")?;
    // SAFETY: `raw` is the live event of `object`.
    unsafe { Event::from_raw(raw) }.map_err(errors::of)
}

pub(crate) fn sampler(context: &Context, object: &Bound<'_, PyAny>) -> PyResult<Sampler> {
    let raw = expect(object, Kind::Sampler, "a sampler", "Sampler")?;
    // SAFETY: `raw` is the live sampler of `object`.
    unsafe { Sampler::from_raw(context, raw) }.map_err(errors::of)
}

/// A buffer of pyopencl. If it uses memory of a numpy array, the array is kept.
pub(crate) fn buffer(context: &Context, object: &Bound<'_, PyAny>) -> PyResult<Buffer<u8>> {
    let raw = handle(object)?;
    let host = object.getattr("hostbuf").ok().filter(|host| !host.is_none());
    let buffer = match host {
        // SAFETY: `raw` is the live buffer of `object`; `host` owns the host memory, if the buffer uses any.
        Some(host) => unsafe { Buffer::from_raw_with_owner(context, raw, Kept::new(host.unbind())) },
        // SAFETY: `raw` is the live buffer of `object`.
        None => unsafe { Buffer::from_raw(context, raw) },
    };
    buffer.map_err(errors::of)
}

pub(crate) fn image(context: &Context, object: &Bound<'_, PyAny>) -> PyResult<Image> {
    let raw = handle(object)?;
    // SAFETY: `raw` is the live image of `object`.
    unsafe { Image::from_raw(context, raw) }.map_err(errors::of)
}

/// The context of an object of pyopencl that belongs to one.
pub(crate) fn context_of(object: &Bound<'_, PyAny>) -> PyResult<Context> {
    let of = object.getattr("context")?;
    context(&of)
}

/// A kernel of clgraph, which a kernel of pyopencl keeps as an attribute: wrapping asks the driver much.
#[pyclass(frozen, module = "clgraph")]
struct KernelHandle(Own<Kernel>);

const INVALID_PROGRAM: i32 = -44; // CL_INVALID_PROGRAM

pub(crate) fn kernel(context: &Context, object: &Bound<'_, PyAny>) -> PyResult<Kernel> {
    let name = pyo3::intern!(object.py(), "_clgraph_kernel");
    if let Ok(known) = object.getattr(name)
        && let Ok(known) = known.cast::<KernelHandle>()
    {
        check()?;
        return Ok(known.get().0.clone());
    }
    let raw = expect(object, Kind::Kernel, "a kernel", "Kernel")?;
    // SAFETY: `raw` is the live kernel of `object`; a program of pyopencl is not built again.
    let kernel = unsafe { Kernel::from_raw(context, raw) }.map_err(|error| match error {
        // Intel's CPU runtime (2026.2): the handle of a program is dead when only its kernels keep it.
        rust::Error::Driver(driver) if driver.status.0 == INVALID_PROGRAM => errors::invalid(
            "the driver has given up the program of a kernel, because only the kernel is left of it: keep the \
             pyopencl.Program until a graph or a clgraph.Queue has got the kernel",
        ),
        error => errors::of(error),
    })?;
    keep_kernel(object, &kernel);
    Ok(kernel)
}

/// Has a kernel of pyopencl keep the kernel of clgraph.
fn keep_kernel(object: &Bound<'_, PyAny>, kernel: &Kernel) {
    // Older versions of pyopencl may take no attributes.
    let _ = object.setattr(pyo3::intern!(object.py(), "_clgraph_kernel"), KernelHandle(Own::new(kernel.clone())));
}

/// A kernel of clgraph as one of pyopencl, which keeps it: its program, and the device globals that it reaches.
pub(crate) fn kernel_of<'py>(py: Python<'py>, kernel: &Kernel, what: &str) -> PyResult<Bound<'py, PyAny>> {
    let object = crate::gate::call(py, || kernel.to_opencl3())?;
    // SAFETY: **live**: `object` owns it.
    let object = unsafe { wrap(py, "Kernel", object.get(), what) }?;
    keep_kernel(&object, kernel);
    Ok(object)
}

/// The context of a pyopencl.Context, or of a queue.
pub(crate) fn context_or_queue(object: &Bound<'_, PyAny>) -> PyResult<Context> {
    match kind(object) {
        Some(Kind::Context) => context(object),
        _ => Ok(rust::InContext::context(&crate::queue::Queue::find(object)?).clone()),
    }
}

/// Imports pyopencl, for what gives objects of it.
fn import<'py>(py: Python<'py>, what: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import("pyopencl").map_err(|error| {
        let text = format!("{what} is an object of pyopencl, which is not installed: `pip install pyopencl`");
        let wrong = PyImportError::new_err(text);
        wrong.set_cause(py, Some(error));
        wrong
    })
}

/// Makes an object of pyopencl over a handle, with a reference of its own.
///
/// # Safety
/// **live**: `raw` is a live object of the class.
pub(crate) unsafe fn wrap<'py>(
    py: Python<'py>,
    class: &str,
    raw: *mut c_void,
    what: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let module = import(py, what)?;
    let class = module.getattr(class)?;
    if module.getattr("Device").is_ok_and(|device| device.is(&class)) {
        return class.call_method1("from_int_ptr", (raw.expose_provenance(),));
    }
    class.call_method1("from_int_ptr", (raw.expose_provenance(), true))
}

/// An event of clgraph as one of pyopencl.
pub(crate) fn event_of<'py>(py: Python<'py>, event: &Event, what: &str) -> PyResult<Bound<'py, PyAny>> {
    let raw = event.raw().map_err(errors::of)?;
    // SAFETY: **live**: `event` owns it.
    unsafe { wrap(py, "Event", raw, what) }
}
