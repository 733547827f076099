//! Numbers whose type C names: clgraph compares it with that of the kernel's parameter, as it does in other languages.

use std::ffi::c_void;
use std::sync::Arc;

use rust::{ExecuteKernel, Parameter};

use crate::parameter::{AnyParameter, clg_parameter, new_parameter};
use crate::status::{Failure, Outcome, clg_status};

/// Of which type a value is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum clg_value_type {
    /// A vector, a struct, or any other bytes: only their number is compared with the kernel's parameter.
    CLG_TYPE_UNKNOWN = 0,
    /// `cl_char`
    CLG_TYPE_CHAR = 1,
    /// `cl_uchar`
    CLG_TYPE_UCHAR = 2,
    /// `cl_short`
    CLG_TYPE_SHORT = 3,
    /// `cl_ushort`
    CLG_TYPE_USHORT = 4,
    /// `cl_int`
    CLG_TYPE_INT = 5,
    /// `cl_uint`
    CLG_TYPE_UINT = 6,
    /// `cl_long`
    CLG_TYPE_LONG = 7,
    /// `cl_ulong`
    CLG_TYPE_ULONG = 8,
    /// `cl_float`
    CLG_TYPE_FLOAT = 9,
    /// `cl_double`
    CLG_TYPE_DOUBLE = 10,
}
use clg_value_type::{
    CLG_TYPE_CHAR, CLG_TYPE_DOUBLE, CLG_TYPE_FLOAT, CLG_TYPE_INT, CLG_TYPE_LONG, CLG_TYPE_SHORT, CLG_TYPE_UCHAR,
    CLG_TYPE_UINT, CLG_TYPE_ULONG, CLG_TYPE_UNKNOWN, CLG_TYPE_USHORT,
};

macro_rules! numbers {
    ($($variant:ident $ty:ident $tag:ident)*) => {
        /// A parameter of a number.
        #[derive(Clone)]
        pub(crate) enum NumberParameter {
            $($variant(Arc<Parameter<$ty>>),)*
        }

        impl NumberParameter {
            /// Makes one of the numbers that pointers point to: its value, and the least and the most that it may become.
            ///
            /// # Safety
            /// **caller**: null, or a number of the type.
            unsafe fn new(of: i32, [value, least, most]: [*const c_void; 3]) -> Outcome<Self> {
                match of {
                    $(of if of == $tag as i32 => {
                        let read = |from: *const c_void| {
                            // SAFETY: **caller**. C need not have aligned it.
                            (!from.is_null()).then(|| unsafe { from.cast::<$ty>().read_unaligned() })
                        };
                        let (least, most) = (read(least), read(most));
                        let value = read(value).ok_or_else(|| Failure::null("value"))?;
                        let bound = match (least, most) {
                            (None, None) => return Ok(Self::$variant(Arc::new(Parameter::any(value)))),
                            (Some(least), Some(most)) => format!("{least}..={most}"),
                            (Some(least), None) => format!("{least}.."),
                            (None, Some(most)) => format!("..={most}"),
                        };
                        let fits = move |value: &$ty| {
                            least.is_none_or(|least| least <= *value) && most.is_none_or(|most| *value <= most)
                        };
                        Ok(Self::$variant(Arc::new(Parameter::checked(value, bound, fits)?)))
                    })*
                    other => Err(wrong_type(other)),
                }
            }

            /// Sets the number, of as many bytes as it has.
            pub(crate) fn set(&self, value: &[u8]) -> Outcome<()> {
                match self {
                    $(Self::$variant(parameter) => {
                        let (size, given) = (size_of::<$ty>(), value.len());
                        let wrong = |_| {
                            Failure::invalid(format!("the parameter has {size} bytes, but {given} bytes were given"))
                        };
                        Ok(parameter.set($ty::from_ne_bytes(value.try_into().map_err(wrong)?))?)
                    })*
                }
            }

            pub(crate) fn get(&self) -> Vec<u8> {
                match self {
                    $(Self::$variant(parameter) => parameter.get().to_ne_bytes().to_vec(),)*
                }
            }

            pub(crate) fn give(&self, to: &mut ExecuteKernel<'_>) {
                match self {
                    $(Self::$variant(parameter) => _ = to.set_arg(&**parameter),)*
                }
            }

            pub(crate) fn also(&self, to: &mut ExecuteKernel<'_>) {
                match self {
                    $(Self::$variant(parameter) => _ = to.set_arg_also(&**parameter),)*
                }
            }
        }

        /// Gives a launch a value of a type.
        pub(crate) fn give_value(to: &mut ExecuteKernel<'_>, of: i32, value: &[u8]) -> Outcome<()> {
            match of {
                of if of == CLG_TYPE_UNKNOWN as i32 => _ = to.set_arg_bytes(value),
                $(of if of == $tag as i32 => {
                    let wrong = |_| {
                        let (name, size) = (stringify!($tag), size_of::<$ty>());
                        Failure::invalid(format!("a value of type {name} has {size} bytes, and {} were given", value.len()))
                    };
                    to.set_arg(&$ty::from_ne_bytes(value.try_into().map_err(wrong)?));
                })*
                other => return Err(wrong_type(other)),
            }
            Ok(())
        }
    };
}

numbers! {
    I8 i8 CLG_TYPE_CHAR U8 u8 CLG_TYPE_UCHAR I16 i16 CLG_TYPE_SHORT U16 u16 CLG_TYPE_USHORT I32 i32 CLG_TYPE_INT
    U32 u32 CLG_TYPE_UINT I64 i64 CLG_TYPE_LONG U64 u64 CLG_TYPE_ULONG F32 f32 CLG_TYPE_FLOAT F64 f64 CLG_TYPE_DOUBLE
}

fn wrong_type(of: i32) -> Failure {
    Failure::invalid(format!("{of} is no type of a number (clg_value_type)"))
}

/// Makes a parameter of a number: of a `clg_value_type`, which is compared with the type of the kernel's parameter.
/// `least` and `most` point to the smallest and the largest value that it may become; null is no bound. A value outside
/// of them is refused by `clg_parameter_set`.
///
/// The program promises that every value within the bounds is fine for the kernels that use it.
///
/// # Safety
/// `value`, `least` and `most` are null or point to a number of the type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_parameter_create_number(
    value_type: i32,
    value: *const c_void,
    least: *const c_void,
    most: *const c_void,
    result: *mut clg_parameter,
) -> clg_status {
    new_parameter(result, || {
        // SAFETY: **caller**.
        let number = unsafe { NumberParameter::new(value_type, [value, least, most]) }?;
        Ok(AnyParameter::Number(number))
    })
}
