//! numpy: types of elements, host data by the buffer protocol, and results as arrays.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use rust::{HostData, ResultGuard};

use crate::buffer::Buffer;
use crate::errors::{invalid, type_of, wrong_type};
use crate::gate::{Kept, Own};

static NUMPY: PyOnceLock<Py<PyModule>> = PyOnceLock::new();

/// The module.
pub(crate) fn numpy(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    let module = NUMPY.get_or_try_init(py, || PyResult::Ok(py.import("numpy")?.unbind()))?;
    Ok(module.bind(py))
}

/// The type of the elements of memory, and the shape of an array of them.
pub(crate) struct Layout {
    pub(crate) dtype: Py<PyAny>,
    pub(crate) shape: Vec<usize>,
    pub(crate) item: usize,
}

impl Layout {
    /// The layout of an array that has one already.
    pub(crate) fn of_array(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = array.py();
        let dtype = dtype_of(py, Some(&array.getattr("dtype")?))?;
        let item = dtype.getattr("itemsize")?.extract()?;
        Ok(Self { item, shape: array.getattr("shape")?.extract()?, dtype: dtype.unbind() })
    }

    /// The layout of so many bytes with this type and shape. Without a type they are bytes, and without a shape they
    /// are in one row. One length of the shape may be -1.
    pub(crate) fn new(
        py: Python<'_>,
        dtype: Option<&Bound<'_, PyAny>>,
        shape: Option<&Bound<'_, PyAny>>,
        bytes: usize,
    ) -> PyResult<Self> {
        let dtype = dtype_of(py, dtype)?;
        let item: usize = dtype.getattr("itemsize")?.extract()?;
        let wrong = |shape: &dyn std::fmt::Debug| {
            invalid(format!("{bytes} bytes are not an array of shape {shape:?} and dtype {dtype}"))
        };
        if item == 0 {
            return Err(invalid(format!("elements of dtype {dtype} have no bytes")));
        }
        let mut sizes: Vec<isize> = shape.map_or(Ok(vec![-1]), sizes)?;
        if sizes.iter().any(|size| *size < -1) {
            return Err(wrong(&sizes));
        }
        let known = sizes.iter().filter(|size| **size >= 0).try_fold(item, |all, size| all.checked_mul(*size as usize));
        let known = known.ok_or_else(|| wrong(&sizes))?;
        let mut free = sizes.iter_mut().filter(|size| **size < 0);
        if let Some(size) = free.next() {
            if free.next().is_some() || known == 0 || !bytes.is_multiple_of(known) {
                return Err(wrong(&sizes));
            }
            *size = (bytes / known) as isize;
        } else if known != bytes {
            return Err(wrong(&sizes));
        }
        Ok(Self { item, shape: sizes.iter().map(|size| *size as usize).collect(), dtype: dtype.unbind() })
    }

    /// The layout of memory that is made with this type and shape. Without a type elements are bytes.
    pub(crate) fn made(dtype: Bound<'_, PyAny>, shape: &Bound<'_, PyAny>) -> PyResult<Self> {
        let item: usize = dtype.getattr("itemsize")?.extract()?;
        let shape = match shape.extract::<usize>() {
            Ok(one) => vec![one],
            Err(_) => items(shape, DIMS).map_err(|_| {
                let text = format!("a shape is a number or a tuple of numbers, not {shape}");
                let is_number = |one: &Bound<'_, PyAny>| one.extract::<i64>().is_ok();
                let are_numbers =
                    shape.try_iter().is_ok_and(|all| all.take(DIMS).all(|one| one.is_ok_and(|one| is_number(&one))));
                if is_number(shape) || are_numbers { invalid(text) } else { wrong_type(text) }
            })?,
        };
        Ok(Self { dtype: dtype.unbind(), shape, item })
    }

    /// The number of bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.shape.iter().fold(self.item, |all, size| all.saturating_mul(*size))
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        Self { dtype: self.dtype.clone_ref(py), shape: self.shape.clone(), item: self.item }
    }

    /// As a text: `float32 (4, 4)`.
    pub(crate) fn show(&self, py: Python<'_>) -> String {
        let shape = match &self.shape[..] {
            [one] => format!("({one},)"),
            many => format!("({})", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
        };
        format!("{} {shape}", self.dtype.bind(py))
    }

    /// Returns an error if data that has a type has another one.
    pub(crate) fn check(&self, data: &Bound<'_, PyAny>, what: &str) -> PyResult<()> {
        let py = data.py();
        let Ok(given) = data.getattr("dtype") else { return Ok(()) };
        let expected = self.dtype.bind(py);
        if given.eq(expected)? || is_bytes(expected)? || is_bytes(&given)? {
            return Ok(());
        }
        Err(wrong_type(format!("{what} has elements of {expected}, and the data has {given}: convert it by `.astype`")))
    }
}

/// Whether a type is plain bytes, which go with every other type.
fn is_bytes(dtype: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind: String = dtype.getattr("char")?.extract()?;
    Ok(match kind.as_str() {
        "B" | "S" => true,
        // Records have names.
        "V" => dtype.getattr("names")?.is_none(),
        _ => false,
    })
}

/// How many dimensions an array of numpy has at most.
const DIMS: usize = 64;

/// The items of a sequence, at most `most`. What the sequence says of its length is not believed: PyO3 allocates for it, and
/// the length may be one that no memory has.
pub(crate) fn items<T>(object: &Bound<'_, PyAny>, most: usize) -> PyResult<Vec<T>>
where
    T: for<'py> FromPyObjectOwned<'py>,
{
    // SAFETY: **view**: it is an object, and only looked at.
    if unsafe { ffi::PySequence_Check(object.as_ptr()) } == 0 {
        return Err(wrong_type(format!("{} is no sequence", type_of(object))));
    }
    let mut all = Vec::new();
    for item in object.try_iter()? {
        if all.len() == most {
            return Err(invalid(format!("at most {most} items")));
        }
        all.push(item?.extract::<T>().map_err(Into::into)?);
    }
    Ok(all)
}

/// A shape: a number, or several.
fn sizes(shape: &Bound<'_, PyAny>) -> PyResult<Vec<isize>> {
    if let Ok(one) = shape.extract::<isize>() {
        return Ok(vec![one]);
    }
    items(shape, DIMS).map_err(|_| wrong_type(format!("a shape is a number or a tuple of numbers, not {shape}")))
}

/// The dtype of what `numpy.dtype` takes.
pub(crate) fn dtype_of<'py>(py: Python<'py>, dtype: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let numpy = numpy(py)?;
    let dtype = match dtype {
        Some(dtype) => numpy.getattr("dtype")?.call1((dtype,))?,
        None => numpy.getattr("dtype")?.call1(("uint8",))?,
    };
    if dtype.getattr("hasobject")?.is_truthy()? {
        return Err(wrong_type(format!("memory holds plain data, and no Python objects (dtype {dtype})")));
    }
    Ok(dtype)
}

/// Bytes of Python that are used where they are.
struct Lent {
    data: *const u8,
    size: usize,
    /// Keeps the object alive, and has it refuse to move its bytes.
    _buffer: Kept<Buffer>,
}

// SAFETY: the bytes stay where they are while the buffer is held, and the program promised not to change them.
unsafe impl Send for Lent {}
// SAFETY: as above.
unsafe impl Sync for Lent {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        if self.size == 0 {
            return &[];
        }
        // SAFETY: `data` is the start of a contiguous buffer of that many bytes, which is held.
        unsafe { std::slice::from_raw_parts(self.data, self.size) }
    }
}

/// The buffer of an object, which must be contiguous.
pub(crate) fn buffer(data: &Bound<'_, PyAny>, what: &str) -> PyResult<Buffer> {
    let buffer = Buffer::get(data).map_err(|error| {
        wrong_type(format!(
            "{what} takes a numpy array or another object with the buffer protocol, not {}: {}",
            type_of(data),
            error.value(data.py())
        ))
    })?;
    if !buffer.is_contiguous() {
        return Err(invalid(format!(
            "{what} takes a contiguous array, and this one has gaps or another order: give `numpy.ascontiguousarray(data)`"
        )));
    }
    if buffer.has_objects() {
        return Err(wrong_type(format!("{what} takes plain data, not an array of Python objects")));
    }
    Ok(buffer)
}

/// Data for a write: a copy, or the bytes of the object themselves.
pub(crate) fn host_data(data: &Bound<'_, PyAny>, copy: bool, what: &str) -> PyResult<HostData<u8>> {
    let buffer = buffer(data, what)?;
    let (start, size) = (buffer.start().cast::<u8>().cast_const(), buffer.size());
    if copy || size == 0 {
        return Ok(HostData::from(buffer.bytes(data.py()).unwrap_or_default().to_vec()));
    }
    Ok(HostData::shared(Arc::new(Lent { data: start, size, _buffer: Kept::new(buffer) })))
}

/// The bytes of a contiguous object.
pub(crate) fn bytes_of(data: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<u8>> {
    let buffer = buffer(data, what)?;
    Ok(buffer.bytes(data.py()).unwrap_or_default().to_vec())
}

/// The memory of a result, which arrays look at.
#[pyclass(frozen, module = "clgraph")]
pub(crate) struct ResultMemory(Own<Bytes>);

enum Bytes {
    Result(ResultGuard<u8>),
    Vec(Vec<u8>),
}

impl ResultMemory {
    fn bytes(&self) -> &[u8] {
        match &*self.0 {
            Bytes::Result(result) => result,
            Bytes::Vec(bytes) => bytes,
        }
    }
}

/// Fills in a view of memory that does not change.
///
/// # Safety
/// **view**: `view` and `flags` come from the interpreter; the bytes live as long as `object`.
pub(crate) unsafe fn fill_view(
    object: Bound<'_, PyAny>,
    view: *mut ffi::Py_buffer,
    flags: c_int,
    (start, len): (*mut u8, usize),
    readonly: bool,
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("no view was given"));
    }
    // SAFETY: **view**; the function checks the flags, and takes a reference of the object.
    let status = unsafe {
        ffi::PyBuffer_FillInfo(
            view,
            object.as_ptr(),
            start.cast::<c_void>(),
            len as isize,
            c_int::from(readonly),
            flags,
        )
    };
    if status == 0 { Ok(()) } else { Err(PyErr::fetch(object.py())) }
}

#[pymethods]
impl ResultMemory {
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let bytes = slf.get().bytes();
        let place = (bytes.as_ptr().cast_mut(), bytes.len());
        // SAFETY: **view**: the interpreter calls this; a result never moves.
        unsafe { fill_view(slf.into_any(), view, flags, place, true) }
    }
}

fn view<'py>(py: Python<'py>, bytes: Bytes, layout: &Layout) -> PyResult<Bound<'py, PyAny>> {
    let memory = Bound::new(py, ResultMemory(Own::new(bytes)))?;
    array_of(memory.as_any(), layout)
}

/// An array over the memory of a result. Nothing is copied, so it cannot be written.
pub(crate) fn result_array<'py>(
    py: Python<'py>,
    result: ResultGuard<u8>,
    layout: &Layout,
) -> PyResult<Bound<'py, PyAny>> {
    view(py, Bytes::Result(result), layout)
}

/// An array over bytes.
pub(crate) fn bytes_array<'py>(py: Python<'py>, bytes: Vec<u8>, layout: &Layout) -> PyResult<Bound<'py, PyAny>> {
    view(py, Bytes::Vec(bytes), layout)
}

/// An array that holds a view of an object while it lives, as do all arrays that are made of it.
pub(crate) fn viewing_array<'py>(memory: &Bound<'py, PyAny>, layout: &Layout) -> PyResult<Bound<'py, PyAny>> {
    let py = memory.py();
    // `numpy.ndarray(buffer=...)` releases its view at once, and one of a memoryview does not.
    let view = pyo3::types::PyMemoryView::from(memory)?;
    let bytes = numpy(py)?.call_method1("asarray", (view,))?;
    let array = bytes.call_method1("view", (layout.dtype.bind(py),))?;
    array.call_method1("reshape", (PyTuple::new(py, &layout.shape)?,))
}

/// An array over an object with the buffer protocol.
fn array_of<'py>(memory: &Bound<'py, PyAny>, layout: &Layout) -> PyResult<Bound<'py, PyAny>> {
    let py = memory.py();
    let shape = PyTuple::new(py, &layout.shape)?;
    let options = PyDict::new(py);
    options.set_item("buffer", memory)?;
    options.set_item("dtype", layout.dtype.bind(py))?;
    numpy(py)?.getattr("ndarray")?.call((shape,), Some(&options))
}

/// Copies bytes into an array of the program.
pub(crate) fn copy_into(bytes: &[u8], array: &Bound<'_, PyAny>) -> PyResult<()> {
    let into = buffer(array, "`out`")?;
    if into.readonly() {
        return Err(invalid("`out` cannot be written"));
    }
    if into.size() != bytes.len() {
        let text = format!("the result has {} bytes, and `out` has {}", bytes.len(), into.size());
        return Err(invalid(text));
    }
    if !bytes.is_empty() {
        // SAFETY: the buffer is contiguous, has that many bytes, can be written and is held; a result is memory of
        // clgraph, so they do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), into.start().cast(), bytes.len()) };
    }
    Ok(())
}
