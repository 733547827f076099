//! What is known about the parameters of kernels.

use std::any::TypeId;

use opencl_sys::{
    CL_KERNEL_ARG_ACCESS_QUALIFIER, CL_KERNEL_ARG_ACCESS_READ_ONLY, CL_KERNEL_ARG_ACCESS_READ_WRITE,
    CL_KERNEL_ARG_ACCESS_WRITE_ONLY, CL_KERNEL_ARG_ADDRESS_CONSTANT, CL_KERNEL_ARG_ADDRESS_GLOBAL,
    CL_KERNEL_ARG_ADDRESS_LOCAL, CL_KERNEL_ARG_ADDRESS_QUALIFIER, CL_KERNEL_ARG_NAME, CL_KERNEL_ARG_TYPE_CONST,
    CL_KERNEL_ARG_TYPE_NAME, CL_KERNEL_ARG_TYPE_PIPE, CL_KERNEL_ARG_TYPE_QUALIFIER,
};

use crate::cl::objects::handle::{Handle, KernelKind};
use crate::cl::query::info::{self, ask};
use crate::error::DriverError;
use crate::ffi::core::Core;

/// A parameter of a kernel, as far as the program reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Param {
    pub(crate) space: Space,
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) is_const: bool,
    /// How the kernel may use an image.
    pub(crate) access: Option<ImageUse>,
    /// Size in bytes of a by-value parameter whose type is a scalar or vector of OpenCL C.
    pub(crate) value_size: Option<usize>,
    /// The kind of number, if the type is a scalar of OpenCL C.
    pub(crate) class: Class,
}

/// Kinds of numbers. The same bytes mean different values in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Not a number, or unknown.
    Unknown,
    Integer,
    Float,
}

impl Class {
    /// Returns whether one of the two is an integer kind and the other is not.
    #[inline(always)]
    pub(crate) fn clashes(self, other: Self) -> bool {
        matches!((self, other), (Self::Integer, Self::Float) | (Self::Float, Self::Integer))
    }

    /// Returns the kind of a type of OpenCL C, by the name of the type.
    fn of_type(name: &str) -> Self {
        match name.strip_prefix("unsigned ").unwrap_or(name) {
            "float" | "double" => Self::Float,
            "char" | "uchar" | "short" | "ushort" | "int" | "uint" | "long" | "ulong" => Self::Integer,
            _ => Self::Unknown,
        }
    }
}

macro_rules! numbers {
    ($($name:ident $number:ident $class:ident;)*) => {
        /// A number type of Rust. It has one byte, so that arguments do not become larger.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Number {
            /// Not a number, or unknown.
            Any,
            $($name,)*
        }

        impl Number {
            /// Returns the number type of a Rust type. The compiler evaluates this.
            #[inline(always)]
            pub(crate) fn of<T: 'static>() -> Self {
                $(if TypeId::of::<T>() == TypeId::of::<$number>() {
                    return Self::$name;
                })*
                Self::Any
            }

            #[inline(always)]
            pub(crate) fn class(self) -> Class {
                match self {
                    Self::Any => Class::Unknown,
                    $(Self::$name => Class::$class,)*
                }
            }

            /// Returns the name of the type.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    Self::Any => "",
                    $(Self::$name => stringify!($number),)*
                }
            }
        }
    };
}

numbers! {
    F32 f32 Float;
    F64 f64 Float;
    I8 i8 Integer;
    I16 i16 Integer;
    I32 i32 Integer;
    I64 i64 Integer;
    Isize isize Integer;
    U8 u8 Integer;
    U16 u16 Integer;
    U32 u32 Integer;
    U64 u64 Integer;
    Usize usize Integer;
}

/// The access qualifier of an image parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImageUse {
    ReadOnly,
    WriteOnly,
    ReadWrite,
}

/// The kind of argument that a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// A pointer to global or constant memory.
    Buffer,
    Local,
    Value,
    Image,
    Sampler,
    Pipe,
}

/// Reads all parameters. Many programs do not report them (CL_KERNEL_ARG_INFO_NOT_AVAILABLE).
pub(super) fn read_params(
    core: &'static Core,
    kernel: &Handle<KernelKind>,
    num_args: u32,
) -> Result<Vec<Param>, DriverError> {
    const CALL: &str = "clGetKernelArgInfo";
    let raw = kernel.raw();
    (0..num_args)
        .map(|index| {
            let number = |name| info::value::<u32>(CALL, ask!(core, clGetKernelArgInfo, raw, index, name));
            let text = |name| info::text(CALL, ask!(core, clGetKernelArgInfo, raw, index, name));
            // The qualifier is a cl_bitfield of 64 bits, although `opencl_sys` declares it differently.
            let qualifier =
                info::value::<u64>(CALL, ask!(core, clGetKernelArgInfo, raw, index, CL_KERNEL_ARG_TYPE_QUALIFIER))?;
            let type_name = text(CL_KERNEL_ARG_TYPE_NAME)?;
            let access = match number(CL_KERNEL_ARG_ACCESS_QUALIFIER) {
                Ok(CL_KERNEL_ARG_ACCESS_READ_ONLY) => Some(ImageUse::ReadOnly),
                Ok(CL_KERNEL_ARG_ACCESS_WRITE_ONLY) => Some(ImageUse::WriteOnly),
                Ok(CL_KERNEL_ARG_ACCESS_READ_WRITE) => Some(ImageUse::ReadWrite),
                _ => None,
            };
            let address = number(CL_KERNEL_ARG_ADDRESS_QUALIFIER)?;
            let space = match address {
                _ if qualifier & u64::from(CL_KERNEL_ARG_TYPE_PIPE) != 0 => Space::Pipe,
                // Only images have an access qualifier. A program may give image types its own names.
                _ if is_image(&type_name) || access.is_some() => Space::Image,
                _ if type_name == "sampler_t" => Space::Sampler,
                CL_KERNEL_ARG_ADDRESS_GLOBAL | CL_KERNEL_ARG_ADDRESS_CONSTANT => Space::Buffer,
                CL_KERNEL_ARG_ADDRESS_LOCAL => Space::Local,
                _ => Space::Value,
            };
            Ok(Param {
                access,
                space,
                name: text(CL_KERNEL_ARG_NAME)?,
                // Some drivers do not report constant memory as const.
                is_const: qualifier & u64::from(CL_KERNEL_ARG_TYPE_CONST) != 0
                    || address == CL_KERNEL_ARG_ADDRESS_CONSTANT,
                value_size: if space == Space::Value { size_of_type(&type_name) } else { None },
                class: if space == Space::Value { Class::of_type(&type_name) } else { Class::Unknown },
                type_name,
            })
        })
        .collect()
}

/// Returns whether a type is an image type of OpenCL C, for example `image2d_array_t`.
pub(crate) fn is_image(type_name: &str) -> bool {
    ["image1d", "image2d", "image3d"].iter().any(|kind| type_name.starts_with(kind)) && type_name.ends_with("_t")
}

/// Returns the size in bytes of a scalar or vector type of OpenCL C, by its name. Returns `None` for structs and for
/// types whose size depends on the device.
fn size_of_type(name: &str) -> Option<usize> {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (base, lanes) = name.split_at(name.len() - digits);
    let lanes = match lanes {
        "" => 1,
        "2" => 2,
        // "The size and alignment of a 3-component vector is that of a 4-component one" (OpenCL C, 6.1.5).
        "3" | "4" => 4,
        "8" => 8,
        "16" => 16,
        _ => return None,
    };
    let base = match base {
        "char" | "uchar" | "unsigned char" => 1,
        "short" | "ushort" | "unsigned short" | "half" => 2,
        "int" | "uint" | "unsigned int" | "float" => 4,
        "long" | "ulong" | "unsigned long" | "double" => 8,
        _ => return None,
    };
    Some(base * lanes)
}

#[cfg(test)]
mod tests {
    use super::{Class, Number, is_image, size_of_type};

    #[test]
    fn images_are_known_by_their_names_and_others_are_none() {
        assert!(is_image("image2d_t") && is_image("image1d_buffer_t") && is_image("image2d_array_msaa_depth_t"));
        assert!(!is_image("image_size") && !is_image("image2d_size*") && !is_image("imagery_t"));
    }

    /// The argument checks depend on these sizes: a wrong size would reject a correct argument.
    #[test]
    fn sizes_of_types_are_known_by_name_and_unknown_ones_are_left_alone() {
        assert_eq!(size_of_type("int"), Some(4));
        assert_eq!(size_of_type("float3"), Some(16));
        assert_eq!(size_of_type("uchar16"), Some(16));
        assert_eq!(size_of_type("half"), Some(2));
        assert_eq!(size_of_type("ulong2"), Some(16));
        assert_eq!(size_of_type("struct point"), None);
        assert_eq!(size_of_type("point3"), None);
        assert_eq!(size_of_type("int5"), None);
        assert_eq!(size_of_type("size_t"), None);
        assert_eq!(size_of_type(""), None);
    }

    /// The argument checks reject a wrong kind, so a kind must be known for certain.
    #[test]
    fn kinds_of_numbers_are_known_by_name_and_others_are_none() {
        for name in ["float", "double"] {
            assert_eq!(Class::of_type(name), Class::Float, "{name}");
        }
        for name in ["char", "uchar", "short", "unsigned short", "int", "unsigned int", "uint", "long", "ulong"] {
            assert_eq!(Class::of_type(name), Class::Integer, "{name}");
        }
        for name in ["half", "float2", "int4", "size_t", "real", "struct point", "enum mode", ""] {
            assert_eq!(Class::of_type(name), Class::Unknown, "{name}");
        }
        assert_eq!((Number::of::<f64>().class(), Number::of::<f64>().name()), (Class::Float, "f64"));
        assert_eq!((Number::of::<usize>().class(), Number::of::<usize>().name()), (Class::Integer, "usize"));
        assert_eq!(Number::of::<[f32; 1]>(), Number::Any);
        assert!(!Class::Unknown.clashes(Class::Float) && !Class::Integer.clashes(Class::Integer));
        assert!(Class::Integer.clashes(Class::Float) && Class::Float.clashes(Class::Integer));
    }
}
