//! Values of kernel arguments: numpy scalars, records, and bytes.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt};

use crate::buffer::Buffer;
use crate::errors::{invalid, type_of, wrong_type};

/// A value. Numbers keep their type, so that clgraph can compare it with that of the kernel's parameter.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    I8(i8),
    U8(u8),
    I16(i16),
    U16(u16),
    I32(i32),
    U32(u32),
    I64(i64),
    U64(u64),
    F32(f32),
    F64(f64),
    Bytes(Vec<u8>),
}

/// Runs code with a value of a number type, or with bytes.
macro_rules! with_value {
    ($value:expr, |$name:ident| $number:expr, |$bytes:ident| $raw:expr) => {
        match $value {
            $crate::value::Value::I8($name) => $number,
            $crate::value::Value::U8($name) => $number,
            $crate::value::Value::I16($name) => $number,
            $crate::value::Value::U16($name) => $number,
            $crate::value::Value::I32($name) => $number,
            $crate::value::Value::U32($name) => $number,
            $crate::value::Value::I64($name) => $number,
            $crate::value::Value::U64($name) => $number,
            $crate::value::Value::F32($name) => $number,
            $crate::value::Value::F64($name) => $number,
            $crate::value::Value::Bytes($bytes) => $raw,
        }
    };
}
pub(crate) use with_value;

impl Value {
    /// The value of a numpy scalar, a record, an array without dimensions, or bytes. `None` if the object is none of
    /// these.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(bytes) = object.cast_exact::<PyBytes>() {
            return Ok(Some(Self::Bytes(bytes.as_bytes().to_vec())));
        }
        let Ok(buffer) = Buffer::get(object) else { return Ok(None) };
        if buffer.dimensions() != 0 {
            return Err(wrong_type(format!(
                "{} with dimensions is no value of a kernel argument: give a pyopencl.Buffer or a pyopencl.array.Array \
                 that it was copied to, by `In`, `Out` or `InOut`; or, for a struct or a vector, an array without \
                 dimensions or `data.tobytes()`",
                type_of(object)
            )));
        }
        let bytes = buffer.bytes(object.py()).unwrap_or_default();
        // `!` is big-endian too. A host that is big-endian has its own order as `>`.
        let foreign: &[u8] = if cfg!(target_endian = "little") { b">!" } else { b"<" };
        if bytes.len() > 1 && buffer.types().any(|letter| foreign.contains(&letter)) {
            return Err(wrong_type("the value has another byte order than this machine: convert it by `.astype`"));
        }
        let format = buffer.format();
        let format = format.strip_prefix(b"<").or(format.strip_prefix(b"=")).unwrap_or(format);
        macro_rules! number {
            ($($kinds:literal $ty:ident $variant:ident)*) => {
                $(if let (true, Ok(bytes)) = ($kinds.contains(&format[0]), bytes.try_into()) {
                    return Ok(Some(Self::$variant($ty::from_ne_bytes(bytes))));
                })*
            };
        }
        if format.len() == 1 {
            number! {
                b"bhilq" i8 I8 b"bhilq" i16 I16 b"bhilq" i32 I32 b"bhilq" i64 I64
                b"BHILQ" u8 U8 b"BHILQ" u16 U16 b"BHILQ" u32 U32 b"BHILQ" u64 U64
                b"f" f32 F32 b"d" f64 F64
            }
        }
        if buffer.has_objects() {
            return Err(wrong_type("a Python object inside a numpy scalar is no value of a kernel argument"));
        }
        Ok(Some(Self::Bytes(bytes.to_vec())))
    }

    /// A plain Python number as a value of the type of another one, if it fits.
    pub(crate) fn like(&self, number: &Bound<'_, PyAny>) -> PyResult<Self> {
        let wrong = |name: &str| invalid(format!("{number} is no {name}"));
        macro_rules! convert {
            ($($variant:ident $ty:ident $name:literal)*) => {
                match self {
                    $(Self::$variant(_) => Self::$variant(number.extract::<$ty>().map_err(|_| wrong($name))?),)*
                    Self::Bytes(_) => {
                        return Err(wrong_type("the parameter is of bytes: set it to a record or to bytes"));
                    }
                }
            };
        }
        if let (Self::F32(_), Ok(given)) = (self, number.extract::<f64>())
            && given.is_finite()
            && (given as f32).is_infinite()
        {
            return Err(wrong("float32"));
        }
        let is_int = number.is_exact_instance_of::<PyInt>();
        if !is_int && !matches!(self, Self::F32(_) | Self::F64(_)) {
            return Err(wrong_type(format!("{number} is of type {}, and the value is an integer", type_of(number))));
        }
        Ok(convert! {
            I8 i8 "int8" U8 u8 "uint8" I16 i16 "int16" U16 u16 "uint16" I32 i32 "int32" U32 u32 "uint32"
            I64 i64 "int64" U64 u64 "uint64" F32 f32 "float32" F64 f64 "float64"
        })
    }

    /// A zero of a type of OpenCL C, if it is a number.
    pub(crate) fn zero(type_name: &str) -> Option<Self> {
        Some(match type_name.trim() {
            "char" => Self::I8(0),
            "uchar" | "unsigned char" => Self::U8(0),
            "short" => Self::I16(0),
            "ushort" | "unsigned short" => Self::U16(0),
            "int" => Self::I32(0),
            "uint" | "unsigned int" | "unsigned" => Self::U32(0),
            "long" => Self::I64(0),
            "ulong" | "unsigned long" => Self::U64(0),
            "float" => Self::F32(0.0),
            "double" => Self::F64(0.0),
            _ => return None,
        })
    }

    pub(crate) fn type_name(&self) -> String {
        match self {
            Self::I8(_) => "int8".to_owned(),
            Self::U8(_) => "uint8".to_owned(),
            Self::I16(_) => "int16".to_owned(),
            Self::U16(_) => "uint16".to_owned(),
            Self::I32(_) => "int32".to_owned(),
            Self::U32(_) => "uint32".to_owned(),
            Self::I64(_) => "int64".to_owned(),
            Self::U64(_) => "uint64".to_owned(),
            Self::F32(_) => "float32".to_owned(),
            Self::F64(_) => "float64".to_owned(),
            Self::Bytes(bytes) => format!("{} bytes", bytes.len()),
        }
    }
}

/// Whether an object is a plain Python number, whose size in OpenCL C is not known.
pub(crate) fn is_plain_number(object: &Bound<'_, PyAny>) -> bool {
    object.is_exact_instance_of::<PyInt>()
        || object.is_exact_instance_of::<PyFloat>()
        || object.is_exact_instance_of::<PyBool>()
}
