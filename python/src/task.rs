//! Host tasks: Python functions that run between commands.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use rust::{HostTaskContext, HostWrite, MapRead, MapWrite, MapWriteInvalidate, Mapped};

use crate::adding::options;
use crate::errors::{self, describe, invalid, type_of, wrong_type};
use crate::gate::{Kept, attach};
use crate::graph::Graph;
use crate::held::Function;
use crate::memory::{self, Place, with_place};
use crate::node::{self, Node, Read, Write};
use crate::numpy::{self, Layout};
use crate::raised;
use crate::texts::in_python;
use crate::transfer::result_layout;
use crate::uses::{uses, with_uses};

/// A function of Python that a host task calls.
pub(crate) struct TaskFunction {
    function: Arc<Function>,
    /// Whether it takes the task.
    takes_task: bool,
}

impl TaskFunction {
    /// Also returns the function, for what keeps it.
    pub(crate) fn new(function: &Bound<'_, PyAny>) -> PyResult<(Self, Arc<Function>)> {
        check_function(function, "a host task")?;
        let takes_task = takes(function, 1);
        let function = Function::new(function);
        Ok((Self { function: Arc::clone(&function), takes_task }, function))
    }

    /// Runs the function as a host task.
    pub(crate) fn run(&self, context: &HostTaskContext<'_>) -> Result<(), String> {
        let outcome = attach(|py| {
            let task =
                Bound::new(py, Task(Mutex::new(Some(Context::of(context))))).map_err(|error| describe(py, &error))?;
            let function = self.function.get(py);
            let call = |function: Bound<'_, PyAny>| {
                let outcome = if self.takes_task { function.call1((&task,)) } else { function.call0() };
                outcome.map(|_| ())
            };
            let outcome = function.and_then(call);
            task.get().end();
            outcome.map_err(|error| raised::text(py, &error))
        });
        outcome.unwrap_or_else(|| Err("the Python interpreter has ended, so the function was not called".to_owned()))
    }

    /// Runs the function with mapped memory. The interpreter's lock is not held while the driver maps and unmaps.
    pub(crate) fn run_mapped(
        &self,
        context: &HostTaskContext<'_>,
        place: &Place,
        layout: &Kept<Layout>,
        mode: MapAs,
    ) -> Result<(), String> {
        // It is unmapped out here, whatever happens in there: an unmap waits for the driver.
        let mut mapped = Some(map(context, place, mode).map_err(|error| error.translated(in_python))?);
        let outcome = attach(|py| {
            let window = Bound::new(py, Window { mapped: Mutex::new(None), views: AtomicUsize::new(0) });
            let window = window.map_err(|error| describe(py, &error))?;
            let lock = || window.get().mapped.lock().unwrap_or_else(PoisonError::into_inner);
            *lock() = mapped.take();
            let outcome = numpy::viewing_array(window.as_any(), layout)
                .and_then(|array| self.function.get(py)?.call1((array,)).map(|_| ()));
            let outcome = outcome.map_err(|error| {
                // It holds the frames that it left, and these hold the array.
                if let Some(trace) = error.traceback(py) {
                    let _ = py.import("traceback").and_then(|module| module.call_method1("clear_frames", (trace,)));
                }
                let is_kept = window.get().views.load(Ordering::Acquire) > 0;
                if is_kept { describe(py, &error) } else { raised::text(py, &error) }
            });
            mapped = lock().take();
            if window.get().views.load(Ordering::Acquire) > 0 {
                std::mem::forget(mapped.take());
                let kept = "the function has kept its array of mapped memory: keep a copy, `array.copy()`";
                return Err(outcome.err().unwrap_or_else(|| kept.to_owned()));
            }
            outcome
        });
        let unmapped = mapped.map_or(Ok(()), AnyMapped::unmap);
        match outcome {
            Some(Ok(())) => unmapped.map_err(|error| rust::Error::from(error).translated(in_python)),
            Some(Err(text)) => Err(text),
            None => Err("the Python interpreter has ended, so the function was not called".to_owned()),
        }
    }
}

/// Returns an error for what cannot be called, and for functions that do nothing when they are called: `async def`, and
/// generators.
pub(crate) fn check_function(function: &Bound<'_, PyAny>, what: &str) -> PyResult<()> {
    if !function.is_callable() {
        return Err(wrong_type(format!("{what} is a function, not {}", type_of(function))));
    }
    let inspect = function.py().import("inspect")?;
    let call = function.get_type().getattr("__call__").ok();
    for kind in ["iscoroutinefunction", "isgeneratorfunction", "isasyncgenfunction"] {
        let is_kind = inspect.getattr(kind)?;
        let is_one = |object: &Bound<'_, PyAny>| is_kind.call1((object,))?.is_truthy();
        if is_one(function)? || call.as_ref().map_or(Ok(false), is_one)? {
            return Err(wrong_type(format!(
                "{what} is a plain function: a call of an `async def` or of a generator runs nothing of it. To wait for \
                 work of asyncio, give a function that calls `asyncio.run_coroutine_threadsafe(...).result()`"
            )));
        }
    }
    Ok(())
}

/// Whether a function takes so many arguments: it has parameters for them without a default, or takes any number. (A
/// parameter with a default is often a value of the loop in which the function is made.) One without a signature takes
/// them.
pub(crate) fn takes(function: &Bound<'_, PyAny>, count: usize) -> bool {
    let bind = || -> PyResult<bool> {
        let inspect = function.py().import("inspect")?;
        let signature = inspect.call_method1("signature", (function,))?;
        let (class, mut wanted, mut any) = (inspect.getattr("Parameter")?, 0, false);
        let (only, or_keyword) = (class.getattr("POSITIONAL_ONLY")?, class.getattr("POSITIONAL_OR_KEYWORD")?);
        for parameter in signature.getattr("parameters")?.call_method0("values")?.try_iter()? {
            let parameter = parameter?;
            let kind = parameter.getattr("kind")?;
            any |= kind.eq(class.getattr("VAR_POSITIONAL")?)?;
            let is_positional = kind.eq(&only)? || kind.eq(&or_keyword)?;
            wanted += usize::from(is_positional && parameter.getattr("default")?.is(&class.getattr("empty")?));
        }
        if wanted < count && !any {
            return Ok(false);
        }
        let args = pyo3::types::PyTuple::new(
            function.py(),
            std::iter::repeat_n((), count).map(|()| function.py().None()).collect::<Vec<_>>(),
        )?;
        Ok(signature.call_method1("bind", args).is_ok())
    };
    bind().unwrap_or(true)
}

/// The address of a `HostTaskContext` while its function runs.
struct Context(*const HostTaskContext<'static>);

// SAFETY: it is used under a lock only, and taken away under that lock before the context ends. What it leads to is used
// through `&self`.
unsafe impl Send for Context {}

impl Context {
    fn of(context: &HostTaskContext<'_>) -> Self {
        Self(std::ptr::from_ref(context).cast())
    }
}

/// The view that a host task has of its submission, while its function runs.
///
/// `task[read]` is the result of a read before the task, as a numpy array; `task[write] = data` sets the data of a
/// write after it.
#[pyclass(frozen, module = "clgraph", name = "HostTask")]
pub(crate) struct Task(Mutex<Option<Context>>);

impl Task {
    fn end(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn with<R>(&self, call: impl FnOnce(&HostTaskContext<'_>) -> rust::Result<R>) -> PyResult<R> {
        let context = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let context = context.as_ref().ok_or_else(|| invalid("the host task has returned"))?;
        // SAFETY: the context lives until `end` takes it, under the lock that is held here.
        call(unsafe { &*context.0 }).map_err(errors::of)
    }
}

#[pymethods]
impl Task {
    /// Returns the result of a read that comes before the task, as a numpy array that cannot be written.
    fn __getitem__<'py>(&self, read: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = read.py();
        let (raw, layout) = read_of(read)?;
        let result = self.with(|context| context.get(&rust::HostRead::<u8>::from_raw(raw)))?;
        numpy::result_array(py, result, &layout)
    }

    /// Sets the data of a write that comes after the task, for this submission. The data is copied.
    fn __setitem__(&self, write: &Bound<'_, PyAny>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let raw = node::raw(write)?;
        if let Ok(write) = write.cast::<Write>()
            && let Some(layout) = &write.get().layout
        {
            layout.check(data, "the write")?;
        }
        let data = numpy::host_data(data, true, "the data of a write")?;
        self.with(|context| context.put(&HostWrite::<u8>::from_raw(raw), data))
    }

    fn __repr__(&self) -> &'static str {
        "HostTask()"
    }
}

/// The read that an object names, and the layout of its result.
pub(crate) fn read_of(object: &Bound<'_, PyAny>) -> PyResult<(rust::RawNode, Layout)> {
    let py = object.py();
    if let Ok(read) = object.cast::<Read>() {
        return Ok((read.as_super().get().raw, read.get().layout.clone_ref(py)));
    }
    if let Ok(pending) = object.cast::<crate::event::Pending>() {
        return Ok((node::raw(object)?, pending.get().layout.clone_ref(py)));
    }
    Err(wrong_type(format!("a result belongs to a read of the graph, not to {}", type_of(object))))
}

/// How a function uses mapped memory.
#[derive(Clone, Copy)]
pub(crate) enum MapAs {
    Read,
    Write,
    Discard,
}

impl MapAs {
    pub(crate) fn named(mode: &str) -> PyResult<Self> {
        match mode {
            "read" => Ok(Self::Read),
            "write" => Ok(Self::Write),
            "discard" => Ok(Self::Discard),
            other => Err(invalid(format!("{other:?} is no mode of a map: \"read\", \"write\" or \"discard\""))),
        }
    }
}

enum AnyMapped {
    Read(Mapped<u8, MapRead>),
    Write(Mapped<u8, MapWrite>),
    Discard(Mapped<u8, MapWriteInvalidate>),
}

// SAFETY: it is used under a lock, on the thread of the task that made it.
unsafe impl Send for AnyMapped {}

/// Mapped memory that arrays look at, while the function of a task runs.
#[pyclass(frozen, module = "clgraph")]
struct Window {
    /// None after the function has returned.
    mapped: Mutex<Option<AnyMapped>>,
    views: AtomicUsize,
}

fn map(context: &HostTaskContext<'_>, place: &Place, mode: MapAs) -> rust::Result<AnyMapped> {
    // SAFETY: the node declares what it uses, so that other nodes wait; the program promised the rest at `map`. The
    // memory is unmapped before the task returns, or stays mapped for ever.
    with_place!(place, |memory| unsafe {
        match mode {
            MapAs::Read => context.map(memory, MapRead).map(AnyMapped::Read),
            MapAs::Write => context.map(memory, MapWrite).map(AnyMapped::Write),
            MapAs::Discard => context.map(memory, MapWriteInvalidate).map(AnyMapped::Discard),
        }
    })
}

impl AnyMapped {
    fn unmap(self) -> Result<(), rust::DriverError> {
        match self {
            Self::Read(mapped) => mapped.unmap(),
            Self::Write(mapped) => mapped.unmap(),
            Self::Discard(mapped) => mapped.unmap(),
        }
    }
}

#[pymethods]
impl Window {
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let mut mapped = slf.get().mapped.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, len, readonly) = match mapped.as_mut() {
            Some(AnyMapped::Read(mapped)) => (mapped.as_ptr().cast_mut(), mapped.len(), true),
            Some(AnyMapped::Write(mapped)) => (mapped.as_mut_ptr(), mapped.len(), false),
            Some(AnyMapped::Discard(mapped)) => (mapped.as_mut_ptr(), mapped.len(), false),
            None => return Err(PyBufferError::new_err("the memory is no longer mapped")),
        };
        drop(mapped);
        // SAFETY: **view**: the interpreter calls this; the memory stays mapped while a view exists, as `run_mapped` sees to.
        unsafe { numpy::fill_view(slf.clone().into_any(), view, flags, (start, len), readonly)? };
        slf.get().views.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.views.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Adds a host task.
pub(crate) fn task_node(
    graph: &Graph,
    function: &Bound<'_, PyAny>,
    reads: Option<&Bound<'_, PyAny>>,
    writes: Option<&Bound<'_, PyAny>>,
    label: Option<&str>,
    after: Option<&Bound<'_, PyAny>>,
) -> PyResult<Node> {
    let (py, nodes) = (function.py(), node::after(after)?);
    let (run, function) = TaskFunction::new(function)?;
    let uses = uses(reads, writes, graph.scope(), "a host task")?;
    let task = with_uses!(graph.graph.host_task(move |context| run.run(context)), uses);
    let task = options!(task, label, nodes);
    let node = graph.add(py, || task.add())?;
    graph.keep(py, &function)?;
    Ok(Node::of(node.to_raw(), "host task"))
}

/// Adds a host task on mapped memory.
pub(crate) fn map_node(
    graph: &Graph,
    memory: &Bound<'_, PyAny>,
    function: &Bound<'_, PyAny>,
    mode: &str,
    (dtype, shape): (Option<&Bound<'_, PyAny>>, Option<&Bound<'_, PyAny>>),
    label: Option<&str>,
    after: Option<&Bound<'_, PyAny>>,
) -> PyResult<Node> {
    let (py, nodes, mode) = (memory.py(), node::after(after)?, MapAs::named(mode)?);
    let memory = memory::memory(memory, graph.scope(), "mapped memory")?;
    if matches!(memory.place, Place::Global(_)) {
        // As it is on some devices: no program should work on the others only.
        return Err(invalid(
            "a device global is in memory of the device, which the host cannot map: read and write it",
        ));
    }
    let layout = Kept::new(result_layout(py, &memory, dtype, shape)?);
    let ((run, function), place) = (TaskFunction::new(function)?, memory.place.clone());
    let task = graph.graph.host_task(move |context| run.run_mapped(context, &place, &layout, mode));
    let task = with_place!(&memory.place, |memory| match mode {
        MapAs::Read => task.reads(memory),
        MapAs::Write => task.reads_and_writes(memory),
        MapAs::Discard => task.writes(memory),
    });
    let task = options!(task, label, nodes);
    let node = graph.add(py, || task.add())?;
    graph.keep(py, &function)?;
    Ok(Node::of(node.to_raw(), "map"))
}
