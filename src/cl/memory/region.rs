//! Ranges of memory: what commands are given, whatever kind of memory it is, and what all types of slices have in common.

use std::ops::{Bound, RangeBounds};

use crate::cl::memory::untyped::Mem;
use crate::command::Location;
use crate::error::MemoryError;

/// A range of bytes of memory. It keeps the memory alive.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Region {
    pub(crate) mem: Mem,
    /// Offset of the first byte from the start of `mem`.
    pub(crate) offset: usize,
    pub(crate) size: usize,
}

impl Region {
    /// Returns a range of its elements of type `T`.
    pub(in crate::cl) fn part<T>(&self, range: &impl RangeBounds<usize>) -> Result<Self, MemoryError> {
        let (start, end) = resolve("elements", range, self.size / size_of::<T>())?;
        let (offset, size) = (self.offset + start * size_of::<T>(), (end - start) * size_of::<T>());
        Ok(Self { mem: self.mem.clone(), offset, size })
    }

    /// Returns whether both are the same bytes, by whatever sub-buffer.
    pub(in crate::cl) fn is_same_bytes(&self, other: &Self) -> bool {
        let place = |of: &Self| (of.mem.root(), of.mem.offset_in_root() + of.offset, of.size);
        place(self) == place(other)
    }

    pub(crate) fn location(&self) -> Location<Mem> {
        Location { mem: self.mem.clone(), offset: self.offset }
    }
}

impl PartialEq for Region {
    /// Returns whether both are the same bytes of the same memory.
    fn eq(&self, other: &Self) -> bool {
        (self.mem.id(), self.offset, self.size) == (other.mem.id(), other.offset, other.size)
    }
}

impl Eq for Region {}

/// A type that names memory with elements of type `T`: a [`Buffer`](crate::Buffer) or a [`Memory`](crate::Memory) for
/// the whole memory, or a [`BufferSlice`](crate::BufferSlice), a [`MemorySlice`](crate::MemorySlice) or a
/// [`GlobalSlice`](crate::GlobalSlice).
///
/// Other crates cannot implement it, because graphs rely on each region being a whole number of elements.
pub trait AsRegion<T>: sealed::Sealed<T> {
    #[doc(hidden)]
    fn region(&self) -> Region;

    /// Returns why kernels cannot take the memory although other commands can: it would be a pointer to its first
    /// element, and the device has no such pointer.
    #[doc(hidden)]
    fn misplaced(&self) -> Option<MemoryError> {
        None
    }
}

/// Memory that commands may read: all memory except device globals that the host may not read.
pub trait AsSource<T>: AsRegion<T> {}

/// Memory that commands may write: all memory except device globals that the host may not write.
pub trait AsDestination<T>: AsRegion<T> {}

pub(crate) mod sealed {
    pub trait Sealed<T> {}
}

/// Converts a range of elements to start and end, or returns the error that it is out of bounds.
pub(crate) fn resolve(
    what: &'static str,
    range: &impl RangeBounds<usize>,
    len: usize,
) -> Result<(usize, usize), MemoryError> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    if start <= end && end <= len { Ok((start, end)) } else { Err(MemoryError::OutOfBounds { what, start, end, len }) }
}

/// Returns an error if bytes are no whole number of elements.
pub(crate) fn whole_elements<T>(bytes: usize) -> Result<(), MemoryError> {
    let element = size_of::<T>();
    let is_whole = element > 0 && bytes.is_multiple_of(element);
    if is_whole { Ok(()) } else { Err(MemoryError::ElementSize { bytes, element }) }
}

/// Defines a range of elements of memory, with what all types of slices have.
macro_rules! slice_type {
    ($(#[$doc:meta])* $name:ident<$element:ident $(, $more:ident = $default:ty)?>) => {
        $(#[$doc])*
        pub struct $name<$element $(, $more = $default)?> {
            region: $crate::cl::memory::region::Region,
            types: std::marker::PhantomData<fn() -> ($element, $($more)?)>,
        }

        impl<$element $(, $more)?> $name<$element $(, $more)?> {
            pub(crate) fn of(region: $crate::cl::memory::region::Region) -> Self {
                Self { region, types: std::marker::PhantomData }
            }

            /// Returns the number of elements.
            #[must_use]
            pub fn len(&self) -> usize {
                self.region.size / size_of::<$element>()
            }

            /// Returns whether there are no elements. A transfer of no elements is valid; it transfers nothing, but it
            /// still orders other commands.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.region.size == 0
            }

            /// Returns the size in bytes.
            #[must_use]
            pub fn size(&self) -> usize {
                self.region.size
            }
        }

        impl<$element $(, $more)?> Clone for $name<$element $(, $more)?> {
            fn clone(&self) -> Self {
                Self::of(self.region.clone())
            }
        }

        impl<$element $(, $more)?> PartialEq for $name<$element $(, $more)?> {
            /// Returns whether both are the same bytes of the same memory.
            fn eq(&self, other: &Self) -> bool {
                self.region.is_same_bytes(&other.region)
            }
        }

        impl<$element $(, $more)?> Eq for $name<$element $(, $more)?> {}

        impl<$element $(, $more)?> std::fmt::Debug for $name<$element $(, $more)?> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let (len, of) = (self.len(), std::any::type_name::<$element>());
                let region = &self.region;
                write!(f, "{}({len} x {of} from byte {} of {:?})", stringify!($name), region.offset, region.mem)
            }
        }

        impl<$element $(, $more)?> $crate::cl::memory::region::sealed::Sealed<$element>
            for $name<$element $(, $more)?>
        {
        }
    };
}
pub(in crate::cl) use slice_type;
