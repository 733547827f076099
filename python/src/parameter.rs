//! Parameters: arguments of kernels that change between submissions.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rust::{Image, LocalMemory, Parameter, Sampler};

use crate::arguments::Local;
use crate::errors::{type_of, wrong_type};
use crate::gate::{Own, check};
use crate::interop::{self, Kind};
use crate::memory::{self, MemoryUser, Scope, fail, with_place};
use crate::numpy;
use crate::value::{Value, is_plain_number};

/// A parameter by the type of its value.
pub(crate) enum AnyParameter {
    I8(Parameter<i8>),
    U8(Parameter<u8>),
    I16(Parameter<i16>),
    U16(Parameter<u16>),
    I32(Parameter<i32>),
    U32(Parameter<u32>),
    I64(Parameter<i64>),
    U64(Parameter<u64>),
    F32(Parameter<f32>),
    F64(Parameter<f64>),
    Bytes(Parameter<[u8]>),
    Local(Parameter<LocalMemory>),
    Memory(Parameter<rust::Memory<u8>>),
    Image(Parameter<Image>),
    Sampler(Parameter<Sampler>),
}

/// Runs code with a parameter of a value: a number or bytes, or local memory.
macro_rules! with_parameter {
    ($parameter:expr, |$name:ident| $code:expr, $($other:tt)*) => {
        match $parameter {
            $crate::parameter::AnyParameter::I8($name) => $code,
            $crate::parameter::AnyParameter::U8($name) => $code,
            $crate::parameter::AnyParameter::I16($name) => $code,
            $crate::parameter::AnyParameter::U16($name) => $code,
            $crate::parameter::AnyParameter::I32($name) => $code,
            $crate::parameter::AnyParameter::U32($name) => $code,
            $crate::parameter::AnyParameter::I64($name) => $code,
            $crate::parameter::AnyParameter::U64($name) => $code,
            $crate::parameter::AnyParameter::F32($name) => $code,
            $crate::parameter::AnyParameter::F64($name) => $code,
            $crate::parameter::AnyParameter::Bytes($name) => $code,
            $crate::parameter::AnyParameter::Local($name) => $code,
            $crate::parameter::AnyParameter::Sampler($name) => $code,
            $($other)*
        }
    };
}
pub(crate) use with_parameter;

/// An argument of kernels that can change between submissions.
///
/// `Param(numpy.int32(3))` is a value, `Param(Local(256))` a size of local memory, `Param(sampler)` a sampler, and `Param(buffer)` memory, which a
/// kernel takes by `In(param)`, `Out(param)` or `InOut(param)`. With `or_null`, memory may also become a null pointer.
///
/// `param.set(value)` sets it for all kernels that take it; `Executable.update` gives the value to later submissions.
/// A parameter keeps its type: a value its dtype, and memory the range of bytes that it was made with.
///
/// The program promises that the kernels stay inside their memory for every value that it sets.
#[pyclass(frozen, module = "clgraph")]
pub(crate) struct Param(pub(crate) Own<AnyParameter>);

/// Memory of the context that it belongs to.
fn memory_of(object: &Bound<'_, PyAny>) -> PyResult<Option<memory::Typed>> {
    let of = match interop::kind(object) {
        Some(Kind::Array) => object.getattr("base_data")?,
        Some(Kind::Buffer) => object.clone(),
        // Memory of clgraph knows its context.
        _ if object.cast::<memory::Memory>().is_ok() => {
            let memory = object.cast::<memory::Memory>()?.get();
            if memory.pooled.is_some() {
                return Err(pooled());
            }
            let layout = Some(memory.layout.clone_ref(object.py()));
            return Ok(Some(memory::Typed { place: memory.place.clone(), layout }));
        }
        _ => return Ok(None),
    };
    if interop::is_pooled(&of) {
        return Err(pooled());
    }
    let context = interop::context_of(&of)?;
    memory::find(object, Scope { context: &context, user: MemoryUser::Nobody })
}

fn pooled() -> PyErr {
    crate::errors::invalid(
        "memory of a pool of pyopencl cannot be a parameter, because it goes back to the pool when its array is dropped: \
         make the array without an allocator",
    )
}

fn image_of(object: &Bound<'_, PyAny>) -> PyResult<Image> {
    interop::image(&interop::context_of(object)?, object)
}

fn sampler_of(object: &Bound<'_, PyAny>) -> PyResult<Sampler> {
    interop::sampler(&interop::context_of(object)?, object)
}

impl AnyParameter {
    fn of(value: &Bound<'_, PyAny>, or_null: bool) -> PyResult<Self> {
        if let Some(memory) = memory_of(value)? {
            return Ok(with_place!(&memory.place, |place| Self::Memory(if or_null {
                Parameter::memory_or_null(place)
            } else {
                Parameter::memory(place)
            })));
        }
        if or_null {
            return Err(wrong_type("only a parameter of memory can be a null pointer (`or_null`)"));
        }
        if memory::is_image(value) {
            return Ok(Self::Image(Parameter::image(&image_of(value)?)));
        }
        if interop::kind(value) == Some(Kind::Sampler) {
            return Ok(Self::Sampler(fail(Parameter::sampler(&sampler_of(value)?))?));
        }
        if let Some(bytes) = Local::bytes(value)? {
            let bound = Parameter::local_within(bytes, 1..);
            return Ok(Self::Local(fail(bound)?));
        }
        if is_plain_number(value) {
            return Err(wrong_type(format!(
                "{value} is a plain Python number, and OpenCL C has several types for it: write numpy.int32({value}) or \
                 numpy.float32({value})"
            )));
        }
        let Some(value) = Value::of(value)? else {
            let text = "a parameter is a numpy scalar, a record, bytes, a Local, memory, an image or a sampler";
            return Err(wrong_type(format!("{text}, not {}", type_of(value))));
        };
        Ok(match value {
            Value::I8(value) => Self::I8(Parameter::any(value)),
            Value::U8(value) => Self::U8(Parameter::any(value)),
            Value::I16(value) => Self::I16(Parameter::any(value)),
            Value::U16(value) => Self::U16(Parameter::any(value)),
            Value::I32(value) => Self::I32(Parameter::any(value)),
            Value::U32(value) => Self::U32(Parameter::any(value)),
            Value::I64(value) => Self::I64(Parameter::any(value)),
            Value::U64(value) => Self::U64(Parameter::any(value)),
            Value::F32(value) => Self::F32(Parameter::any(value)),
            Value::F64(value) => Self::F64(Parameter::any(value)),
            Value::Bytes(bytes) => Self::Bytes(Parameter::any_bytes(&bytes)),
        })
    }

    /// The value now, if it is a value.
    fn value(&self) -> Option<Value> {
        Some(match self {
            Self::I8(parameter) => Value::I8(parameter.get()),
            Self::U8(parameter) => Value::U8(parameter.get()),
            Self::I16(parameter) => Value::I16(parameter.get()),
            Self::U16(parameter) => Value::U16(parameter.get()),
            Self::I32(parameter) => Value::I32(parameter.get()),
            Self::U32(parameter) => Value::U32(parameter.get()),
            Self::I64(parameter) => Value::I64(parameter.get()),
            Self::U64(parameter) => Value::U64(parameter.get()),
            Self::F32(parameter) => Value::F32(parameter.get()),
            Self::F64(parameter) => Value::F64(parameter.get()),
            Self::Bytes(parameter) => Value::Bytes(parameter.get().into()),
            Self::Local(_) | Self::Memory(_) | Self::Image(_) | Self::Sampler(_) => return None,
        })
    }

    fn set_value(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let given = if is_plain_number(value) {
            match self.value() {
                Some(now) => Some(now.like(value)?),
                None => None,
            }
        } else {
            Value::of(value)?
        };
        fail(match (self, given) {
            (Self::I8(parameter), Some(Value::I8(value))) => parameter.set(value),
            (Self::U8(parameter), Some(Value::U8(value))) => parameter.set(value),
            (Self::I16(parameter), Some(Value::I16(value))) => parameter.set(value),
            (Self::U16(parameter), Some(Value::U16(value))) => parameter.set(value),
            (Self::I32(parameter), Some(Value::I32(value))) => parameter.set(value),
            (Self::U32(parameter), Some(Value::U32(value))) => parameter.set(value),
            (Self::I64(parameter), Some(Value::I64(value))) => parameter.set(value),
            (Self::U64(parameter), Some(Value::U64(value))) => parameter.set(value),
            (Self::F32(parameter), Some(Value::F32(value))) => parameter.set(value),
            (Self::F64(parameter), Some(Value::F64(value))) => parameter.set(value),
            (Self::Bytes(parameter), Some(Value::Bytes(bytes))) => parameter.set(&bytes),
            (_, given) => {
                let given = given.map_or_else(|| type_of(value), |given| given.type_name());
                return Err(wrong_type(format!("the parameter is of {}, not of {given}", self.what())));
            }
        })
    }

    fn what(&self) -> String {
        match self {
            Self::Local(_) => "a size of local memory".to_owned(),
            Self::Memory(_) => "memory".to_owned(),
            Self::Image(_) => "an image".to_owned(),
            Self::Sampler(_) => "a sampler".to_owned(),
            _ => self.value().map_or_else(String::new, |value| value.type_name()),
        }
    }
}

#[pymethods]
impl Param {
    #[new]
    #[pyo3(signature = (value, *, or_null=false))]
    fn new(value: &Bound<'_, PyAny>, or_null: bool) -> PyResult<Self> {
        check()?;
        Ok(Self(Own::new(AnyParameter::of(value, or_null)?)))
    }

    /// Sets the value for later updates (`Executable.update`, `Graph.finalize`).
    ///
    /// A plain Python number is converted to the parameter's type, if it fits. None sets memory to a null pointer, if
    /// the parameter was made with `or_null`.
    fn set(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        check()?;
        match &*self.0 {
            AnyParameter::Memory(parameter) if value.is_none() => fail(parameter.set_null()),
            AnyParameter::Memory(parameter) => match memory_of(value)? {
                Some(memory) => fail(with_place!(&memory.place, |place| parameter.set(place))),
                None => Err(wrong_type(format!("the parameter is of memory, not of {}", type_of(value)))),
            },
            AnyParameter::Sampler(parameter) if interop::kind(value) == Some(Kind::Sampler) => {
                fail(parameter.set(&sampler_of(value)?))
            }
            AnyParameter::Image(parameter) if memory::is_image(value) => fail(parameter.set(&image_of(value)?)),
            AnyParameter::Local(parameter) => match Local::bytes(value)? {
                Some(bytes) => fail(parameter.set(bytes)),
                None => Err(wrong_type(format!("the parameter is of local memory, not of {}", type_of(value)))),
            },
            values => values.set_value(value),
        }
    }

    /// Returns the value that was set last: a numpy scalar, bytes (also for a record), or a Local. None for memory, an
    /// image or a sampler.
    fn get<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        check()?;
        if let AnyParameter::Local(parameter) = &*self.0 {
            return Ok(Some(Bound::new(py, Local::of(parameter.get()))?.into_any()));
        }
        let Some(value) = self.0.value() else { return Ok(None) };
        crate::value::with_value!(
            &value,
            |number| numpy::numpy(py)?.getattr(value.type_name())?.call1((*number,)),
            |bytes| Ok(PyBytes::new(py, bytes).into_any())
        )
        .map(Some)
    }

    fn __repr__(&self) -> String {
        match self.0.value() {
            Some(Value::Bytes(bytes)) => format!("Param({} bytes)", bytes.len()),
            Some(value) => crate::value::with_value!(
                &value,
                |number| format!("Param({}: {number})", value.type_name()),
                |bytes| format!("Param({} bytes)", bytes.len())
            ),
            None => format!("Param({})", self.0.what()),
        }
    }
}
