//! Arguments of kernels: which have a value, and what values they take.
//!
//! Some drivers take any value, so updates are checked here.

use opencl_sys::{CL_INVALID_ARG_SIZE, CL_INVALID_ARG_VALUE};

use super::{Checked, ensure};

/// What an argument takes, as far as the program's source says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A buffer, or nothing.
    Buffer,
    Image,
    /// So many bytes of a work-group's own memory.
    Local,
    /// A value of so many bytes.
    Value(usize),
    /// It is not known.
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
    /// By the address space of an argument and the name of its type.
    pub(crate) fn of(space: Space, name: &str) -> Self {
        let name = name.trim();
        match space {
            // Images are in the global space, and are no pointers. A type of the program's may be called `image_t`.
            _ if ["image1d_", "image2d_", "image3d_"].iter().any(|image| name.starts_with(image))
                && name.ends_with("_t") =>
            {
                Self::Image
            }
            Space::Local => Self::Local,
            Space::Global if name.ends_with('*') => Self::Buffer,
            Space::Private => size_of_type(name).map_or(Self::Any, Self::Value),
            Space::Global => Self::Any,
        }
    }

    /// Checks the size of a value, in bytes, and whether there is one.
    pub(crate) fn check(self, size: usize, has_value: bool) -> Checked {
        let (right, needs_value) = match self {
            Self::Buffer => (size == size_of::<usize>(), false),
            Self::Image => (size == size_of::<usize>(), true),
            Self::Local => {
                ensure(!has_value, CL_INVALID_ARG_VALUE)?;
                (size > 0, false)
            }
            Self::Value(of) => (size == of, true),
            Self::Any => return Ok(()),
        };
        ensure(right, CL_INVALID_ARG_SIZE)?;
        ensure(has_value || !needs_value, CL_INVALID_ARG_VALUE)
    }
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

/// The arguments without a value, by their numbers from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing(Vec<u64>);

impl Missing {
    /// None of `count` arguments has a value.
    pub(crate) fn all(count: u32) -> Self {
        let words = (count as usize).div_ceil(64);
        let last = count % 64;
        let mut bits = vec![u64::MAX; words];
        if last != 0 {
            bits[words - 1] = (1 << last) - 1;
        }
        Self(bits)
    }

    /// An argument has got a value.
    pub(crate) fn set(&mut self, argument: u32) {
        if let Some(word) = self.0.get_mut(argument as usize / 64) {
            *word &= !(1 << (argument % 64));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_those_of_the_source() {
        let private = |name| Kind::of(Space::Private, name);
        assert_eq!(["uint", "unsigned int", "float3", "double16"].map(private), [4, 4, 16, 128].map(Kind::Value));
        assert_eq!(["struct pair", "my_type", "float5", "sampler_t", "image_t"].map(private), [Kind::Any; 5]);
        assert_eq!(Kind::of(Space::Global, "float*"), Kind::Buffer);
        assert_eq!(Kind::of(Space::Global, "image2d_t"), Kind::Image);
        assert_eq!(Kind::of(Space::Private, "image1d_buffer_t"), Kind::Image);
        assert_eq!(Kind::of(Space::Local, "int*"), Kind::Local);
        assert_eq!(Kind::of(Space::Global, "pipe int"), Kind::Any);
    }

    #[test]
    fn values_are_checked() {
        let handle = size_of::<usize>();
        for (kind, size, has_value) in [
            (Kind::Buffer, handle, true),
            (Kind::Buffer, handle, false),
            (Kind::Image, handle, true),
            (Kind::Local, 100, false),
            (Kind::Value(4), 4, true),
            (Kind::Any, 7, false),
        ] {
            assert_eq!(kind.check(size, has_value), Ok(()), "{kind:?}");
        }
        for (kind, size) in [(Kind::Buffer, 4), (Kind::Image, 4), (Kind::Value(4), 3), (Kind::Value(4), 8)] {
            assert_eq!(kind.check(size, true), Err(CL_INVALID_ARG_SIZE), "{kind:?}");
        }
        assert_eq!(Kind::Local.check(0, false), Err(CL_INVALID_ARG_SIZE));
        assert_eq!(Kind::Local.check(4, true), Err(CL_INVALID_ARG_VALUE));
        assert_eq!(Kind::Value(4).check(4, false), Err(CL_INVALID_ARG_VALUE));
        assert_eq!(Kind::Image.check(handle, false), Err(CL_INVALID_ARG_VALUE));
    }

    #[test]
    fn arguments_are_missing_until_they_are_set() {
        assert!(Missing::default().is_empty() && Missing::all(0).is_empty());
        for count in [1, 3, 63, 64, 65, 128, 200] {
            let mut missing = Missing::all(count);
            for argument in 0..count {
                assert!(!missing.is_empty(), "{argument} of {count}");
                missing.set(argument);
            }
            missing.set(count);
            missing.set(u32::MAX);
            assert!(missing.is_empty(), "{count}");
        }
    }
}
