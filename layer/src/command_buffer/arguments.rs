//! Arguments of kernels: which values they have, and which they take.
//!
//! Some drivers take any value, so updates are checked here.

use std::sync::Arc;

use opencl_sys::{
    CL_INVALID_ARG_SIZE, CL_INVALID_ARG_VALUE, CL_INVALID_SAMPLER, CL_INVALID_VALUE,
    CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, CL_KERNEL_EXEC_INFO_SVM_PTRS, cl_bool, cl_uint,
};

use super::ranges::Shape;
use super::{Checked, ensure};

/// What an argument takes, as far as the program's source says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A buffer, or nothing.
    Buffer,
    Image(Access, Option<Shape>),
    Sampler,
    /// So many bytes of a work-group's own memory.
    Local,
    /// A value of so many bytes.
    Value(usize),
    /// A value of a type of the program's.
    Own,
    /// A memory object or a sampler, or nothing; or a number that is the handle of one by chance.
    Object,
    /// As many bytes as a handle: a number, a handle or an address.
    Word,
    /// It is not known.
    Any,
}

/// What a kernel does with an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Reads,
    Writes,
    /// Both, or it is not known.
    Any,
}

/// Where a kernel argument points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    Local,
    Private,
}

impl Kind {
    /// By the address space of an argument, the name of its type, and what the kernel does with it if it is an image.
    pub(crate) fn of(space: Space, name: &str, access: Access) -> Self {
        let name = name.trim();
        match space {
            // Images are in the global space, and are no pointers. A type of the program's may be called `image_t`.
            _ if ["image1d_", "image2d_", "image3d_"].iter().any(|image| name.starts_with(image))
                && name.ends_with("_t") =>
            {
                Self::Image(access, shape_of_type(name))
            }
            Space::Private if name == "sampler_t" => Self::Sampler,
            Space::Local => Self::Local,
            Space::Global if name.ends_with('*') => Self::Buffer,
            Space::Private => size_of_type(name).map_or(Self::Own, Self::Value),
            Space::Global => Self::Any,
        }
    }

    /// Where the source says nothing: returns what the value tells that the argument has. Eight bytes may be a number or a handle, and
    /// eight bytes of nothing a work-group's own memory or no buffer.
    pub(crate) fn or_as<O>(self, has: Option<&Value<O>>) -> Self {
        let (Self::Any | Self::Own, Some(has)) = (self, has) else { return self };
        match has {
            Value::Bytes(bytes) if self == Self::Own => Self::Value(bytes.len()),
            _ if self == Self::Own => self,
            Value::Bytes(bytes) if bytes.len() != size_of::<usize>() => Self::Value(bytes.len()),
            Value::Bytes(_) | Value::Pointer(_) | Value::IntelPointer(_) => Self::Word,
            Value::Object(_) => Self::Object,
            Value::Nothing(bytes) if *bytes != size_of::<usize>() => Self::Local,
            Value::Nothing(_) | Value::Missing | Value::Unknown => self,
        }
    }

    /// Checks the size of a value, in bytes, and whether there is one.
    pub(crate) fn check(self, size: usize, has_value: bool) -> Checked {
        let (right, needs_value) = match self {
            Self::Buffer | Self::Object | Self::Word => (size == size_of::<usize>(), false),
            Self::Image(..) => (size == size_of::<usize>(), true),
            Self::Sampler => {
                ensure(has_value, CL_INVALID_SAMPLER)?;
                (size == size_of::<usize>(), true)
            }
            Self::Local => {
                ensure(!has_value, CL_INVALID_ARG_VALUE)?;
                (size > 0, false)
            }
            Self::Value(of) => (size == of, true),
            Self::Own | Self::Any => return Ok(()),
        };
        ensure(right, CL_INVALID_ARG_SIZE)?;
        ensure(has_value || !needs_value, CL_INVALID_ARG_VALUE)
    }

    /// Checks that an address of shared virtual memory may be the value.
    pub(crate) fn check_address(self) -> Checked {
        let takes = matches!(self, Self::Buffer | Self::Object | Self::Word | Self::Any);
        ensure(takes, CL_INVALID_ARG_VALUE)
    }
}

/// Checks what `clSetKernelExecInfo` is given. Names that came later than OpenCL's own two are the driver's to know.
pub(crate) fn exec_info(name: cl_uint, size: usize) -> Checked {
    let is_right = match name {
        CL_KERNEL_EXEC_INFO_SVM_PTRS => size > 0 && size.is_multiple_of(size_of::<usize>()),
        CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM => size == size_of::<cl_bool>(),
        _ => name > CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM,
    };
    ensure(is_right, CL_INVALID_VALUE)
}

/// Returns the shape of an image of this type.
fn shape_of_type(name: &str) -> Option<Shape> {
    Some(match name {
        "image1d_t" => Shape::Row,
        "image1d_buffer_t" => Shape::RowOfBuffer,
        "image1d_array_t" => Shape::Rows,
        "image2d_t" | "image2d_depth_t" => Shape::Plane,
        "image2d_array_t" | "image2d_array_depth_t" => Shape::Planes,
        "image3d_t" => Shape::Volume,
        _ => return None,
    })
}

/// Returns the bytes of a type of OpenCL C that is built in.
fn size_of_type(name: &str) -> Option<usize> {
    let name = name.strip_prefix("unsigned ").unwrap_or(name);
    let digits = name.find(|letter: char| letter.is_ascii_digit()).unwrap_or(name.len());
    let (scalar, width) = name.split_at(digits);
    let bytes = match scalar {
        "char" | "uchar" => 1,
        "short" | "ushort" | "half" => 2,
        "int" | "uint" | "float" => 4,
        "long" | "ulong" | "double" => 8,
        _ => return None,
    };
    let count = match width {
        "" => 1,
        "2" => 2,
        // A vector of three takes the room of four.
        "3" | "4" => 4,
        "8" => 8,
        "16" => 16,
        _ => return None,
    };
    Some(bytes * count)
}

/// What an argument has. `O` stands for a memory object or a sampler: its handle, or a reference to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value<O> {
    /// It was not set.
    Missing,
    /// It was not seen.
    Unknown,
    /// So many bytes of a work-group's own memory, or no buffer.
    Nothing(usize),
    Object(O),
    /// An address of shared virtual memory.
    Pointer(usize),
    /// An address of Intel's unified shared memory.
    IntelPointer(usize),
    Bytes(Arc<[u8]>),
}

/// The arguments of a kernel, by their numbers from 0. Those of a kernel that was not seen are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Values<O>(Vec<Value<O>>);

impl<O> Default for Values<O> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<O> Values<O> {
    /// None of `count` arguments has a value.
    pub(crate) fn none_of(count: u32) -> Self {
        Self((0..count).map(|_| Value::Missing).collect())
    }

    /// An argument has got a value. It is one of the kernel's, as a driver has taken it.
    pub(crate) fn set(&mut self, argument: u32, value: Value<O>) {
        let argument = argument as usize;
        while self.0.len() <= argument {
            self.0.push(Value::Unknown);
        }
        self.0[argument] = value;
    }

    /// Whether no argument lacks a value, as far as it was seen.
    pub(crate) fn are_whole(&self) -> bool {
        !self.0.iter().any(|value| matches!(value, Value::Missing))
    }

    /// Those that are known up to an argument; the others are not known.
    pub(crate) fn list(&self) -> &[Value<O>] {
        &self.0
    }

    /// The arguments without a value that a driver got, with their bytes.
    pub(crate) fn nothings(&self) -> impl Iterator<Item = (u32, usize)> {
        (0..).zip(&self.0).filter_map(|(argument, value)| match value {
            Value::Nothing(bytes) => Some((argument, *bytes)),
            _ => None,
        })
    }

    /// Returns the same with other names for the objects. One for which there is none is not known.
    pub(crate) fn map<P>(&self, mut object: impl FnMut(&O) -> Option<P>) -> Values<P> {
        Values(
            self.0
                .iter()
                .map(|value| match value {
                    Value::Missing => Value::Missing,
                    Value::Unknown => Value::Unknown,
                    Value::Nothing(bytes) => Value::Nothing(*bytes),
                    Value::Object(of) => object(of).map_or(Value::Unknown, Value::Object),
                    Value::Pointer(address) => Value::Pointer(*address),
                    Value::IntelPointer(address) => Value::IntelPointer(*address),
                    Value::Bytes(bytes) => Value::Bytes(Arc::clone(bytes)),
                })
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_those_of_the_source() {
        let of = |space, name| Kind::of(space, name, Access::Reads);
        let private = |name| of(Space::Private, name);
        assert_eq!(["uint", "unsigned int", "float3", "double16"].map(private), [4, 4, 16, 128].map(Kind::Value));
        assert_eq!(["struct pair", "my_type", "float5", "image_t"].map(private), [Kind::Own; 4]);
        assert_eq!(private("sampler_t"), Kind::Sampler);
        assert_eq!(of(Space::Global, "float*"), Kind::Buffer);
        assert_eq!(of(Space::Global, "image2d_t"), Kind::Image(Access::Reads, Some(Shape::Plane)));
        assert_eq!(private("image1d_buffer_t"), Kind::Image(Access::Reads, Some(Shape::RowOfBuffer)));
        assert_eq!(private("image2d_msaa_t"), Kind::Image(Access::Reads, None));
        assert_eq!(of(Space::Local, "int*"), Kind::Local);
        assert_eq!(of(Space::Global, "pipe int"), Kind::Any);
    }

    #[test]
    fn values_are_checked() {
        let handle = size_of::<usize>();
        for (kind, size, has_value) in [
            (Kind::Buffer, handle, true),
            (Kind::Buffer, handle, false),
            (Kind::Image(Access::Any, None), handle, true),
            (Kind::Sampler, handle, true),
            (Kind::Local, 100, false),
            (Kind::Value(4), 4, true),
            (Kind::Object, handle, false),
            (Kind::Word, handle, true),
            (Kind::Any, 7, false),
        ] {
            assert_eq!(kind.check(size, has_value), Ok(()), "{kind:?}");
        }
        for (kind, size) in [
            (Kind::Buffer, 4),
            (Kind::Image(Access::Any, None), 4),
            (Kind::Sampler, 4),
            (Kind::Object, 4),
            (Kind::Word, 16),
            (Kind::Value(4), 3),
            (Kind::Value(4), 8),
        ] {
            assert_eq!(kind.check(size, true), Err(CL_INVALID_ARG_SIZE), "{kind:?}");
        }
        assert_eq!(Kind::Local.check(0, false), Err(CL_INVALID_ARG_SIZE));
        assert_eq!(Kind::Local.check(4, true), Err(CL_INVALID_ARG_VALUE));
        assert_eq!(Kind::Value(4).check(4, false), Err(CL_INVALID_ARG_VALUE));
        assert_eq!(Kind::Image(Access::Any, None).check(handle, false), Err(CL_INVALID_ARG_VALUE));
        assert_eq!(Kind::Sampler.check(handle, false), Err(CL_INVALID_SAMPLER));
    }

    #[test]
    fn addresses_are_for_pointers() {
        for kind in [Kind::Buffer, Kind::Object, Kind::Word, Kind::Any] {
            assert_eq!(kind.check_address(), Ok(()));
        }
        for kind in [Kind::Image(Access::Any, None), Kind::Sampler, Kind::Local, Kind::Value(8), Kind::Own] {
            assert_eq!(kind.check_address(), Err(CL_INVALID_ARG_VALUE));
        }
    }

    #[test]
    fn what_an_argument_has_tells_its_kind_where_the_source_does_not() {
        let bytes = |count: usize| Value::<u8>::Bytes(vec![1; count].into());
        assert_eq!(Kind::Any.or_as(Some(&bytes(3))), Kind::Value(3));
        assert_eq!(
            [Kind::Own.or_as(Some(&bytes(8))), Kind::Own.or_as(Some(&Value::Object(1)))],
            [Kind::Value(8), Kind::Own]
        );
        for word in [bytes(8), Value::Pointer(1), Value::IntelPointer(1)] {
            assert_eq!(Kind::Any.or_as(Some(&word)), Kind::Word, "{word:?}");
        }
        assert_eq!(Kind::Any.or_as(Some(&Value::<u8>::Nothing(64))), Kind::Local);
        assert_eq!(Kind::Any.or_as(Some(&Value::Object(1))), Kind::Object);
        for none in [Value::<u8>::Missing, Value::Unknown, Value::Nothing(8)] {
            assert_eq!(Kind::Any.or_as(Some(&none)), Kind::Any, "{none:?}");
        }
        assert_eq!(Kind::Buffer.or_as(Some(&bytes(3))), Kind::Buffer);
    }

    #[test]
    fn execution_information_is_checked() {
        let word = size_of::<usize>();
        for (name, size) in [
            (CL_KERNEL_EXEC_INFO_SVM_PTRS, word),
            (CL_KERNEL_EXEC_INFO_SVM_PTRS, 3 * word),
            (CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, 4),
            // For indirect access: Khronos's, to shared virtual memory, and Intel's, to memory of the host.
            (0x11BB, 4),
            (0x4200, 4),
        ] {
            assert_eq!(exec_info(name, size), Ok(()), "{name:#x}");
        }
        for (name, size) in [
            (CL_KERNEL_EXEC_INFO_SVM_PTRS, 0),
            (CL_KERNEL_EXEC_INFO_SVM_PTRS, 3),
            (CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, 8),
            (0x11B5, 4),
        ] {
            assert_eq!(exec_info(name, size), Err(CL_INVALID_VALUE), "{name:#x}");
        }
    }

    #[test]
    fn arguments_are_missing_until_they_are_set() {
        assert!(Values::<u8>::default().are_whole() && Values::<u8>::none_of(0).are_whole());
        let mut values = Values::none_of(3);
        for argument in [2, 0, 1] {
            assert!(!values.are_whole(), "{argument}");
            values.set(argument, Value::Object(argument));
        }
        assert!(values.are_whole());
        values.set(1, Value::Nothing(64));
        assert_eq!(values.nothings().collect::<Vec<_>>(), [(1, 64)]);
        let some = values.map(|object| (*object == 2).then_some("two"));
        assert_eq!(some.list(), [Value::Unknown, Value::Nothing(64), Value::Object("two")]);
    }

    #[test]
    fn arguments_of_a_kernel_that_was_not_seen_are_not_known() {
        let mut values = Values::<u8>::default();
        values.set(2, Value::Bytes([1, 2].into()));
        assert_eq!(values.list(), [Value::Unknown, Value::Unknown, Value::Bytes([1, 2].into())]);
        assert!(values.are_whole());
    }
}
