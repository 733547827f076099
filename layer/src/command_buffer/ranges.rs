//! What buffer, image and pointer commands may touch: the checks that `clEnqueueCopyBuffer` and its like do.

use opencl_sys::{
    CL_IMAGE_FORMAT_MISMATCH, CL_INVALID_CONTEXT, CL_INVALID_IMAGE_SIZE, CL_INVALID_OPERATION, CL_INVALID_VALUE,
    CL_MEM_COPY_OVERLAP, CL_MISALIGNED_SUB_BUFFER_OFFSET,
};

use super::{Checked, ensure};

/// A place in up to three dimensions, or a size.
pub(crate) type Place = [usize; 3];

/// A memory object. Handles are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) context: usize,
    /// In bytes.
    pub(crate) size: usize,
    /// The memory object that the bytes belong to: itself, or the parent of a sub-buffer.
    pub(crate) root: usize,
    /// Of a sub-buffer: where it begins in its parent, in bytes.
    pub(crate) offset: usize,
    /// Commands must not write to it (`cl_ext_immutable_memory_objects`).
    pub(crate) is_immutable: bool,
    /// The program may read it, and write it, from its own memory.
    pub(crate) host_reads: bool,
    pub(crate) host_writes: bool,
}

/// An image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) memory: Memory,
    /// Pixels in each dimension; an array's layers are its last dimension, and what an image does not have is 1.
    pub(crate) extents: Place,
    /// Order and type of the channels.
    pub(crate) format: [u32; 2],
    /// Bytes of a pixel.
    pub(crate) pixel: usize,
    pub(crate) shape: Shape,
    /// Of a 1D image of a buffer: the buffer. 0 for others.
    pub(crate) of_buffer: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A 1D image, and one of a buffer.
    Row,
    RowOfBuffer,
    /// A 1D array: its layers are rows.
    Rows,
    /// A 2D image.
    Plane,
    /// A 2D array.
    Planes,
    /// A 3D image.
    Volume,
}

/// What a device takes. A context of several devices may have objects that are not for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// What offsets of sub-buffers are multiples of, in bytes.
    pub(crate) alignment: usize,
    /// The most pixels of images, and the most layers of arrays.
    pub(crate) row_of_buffer: usize,
    pub(crate) plane: [usize; 2],
    pub(crate) volume: Place,
    pub(crate) layers: usize,
}

impl Limits {
    fn of(&self, shape: Shape) -> Place {
        let [width, height] = self.plane;
        match shape {
            Shape::Row => [width, 1, 1],
            Shape::RowOfBuffer => [self.row_of_buffer, 1, 1],
            Shape::Rows => [width, self.layers, 1],
            Shape::Plane => [width, height, 1],
            Shape::Planes => [width, height, self.layers],
            Shape::Volume => self.volume,
        }
    }
}

/// Where commands are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) context: usize,
    /// Of a device that is not alone in its context. A device that is can take all that was made there.
    pub(crate) limits: Option<Limits>,
}

impl Target {
    fn reads(&self, memory: &Memory) -> Checked {
        ensure(memory.context == self.context, CL_INVALID_CONTEXT)
    }

    fn writes(&self, memory: &Memory) -> Checked {
        self.reads(memory)?;
        ensure(!memory.is_immutable, CL_INVALID_OPERATION)
    }

    /// Checks where a sub-buffer begins.
    pub(crate) fn is_aligned(&self, buffer: &Memory) -> Checked {
        let alignment = self.limits.map_or(1, |limits| limits.alignment.max(1));
        ensure(buffer.offset.is_multiple_of(alignment), CL_MISALIGNED_SUB_BUFFER_OFFSET)
    }

    /// Checks how large an image is.
    pub(crate) fn takes(&self, image: &Image) -> Checked {
        let is_within = |limits: Limits| image.extents.iter().zip(limits.of(image.shape)).all(|(is, most)| *is <= most);
        ensure(self.limits.is_none_or(is_within), CL_INVALID_IMAGE_SIZE)
    }
}

fn is_within(offset: usize, size: usize, all: usize) -> Checked {
    ensure(offset.checked_add(size).is_some_and(|end| end <= all), CL_INVALID_VALUE)
}

fn overlap(from: usize, to: usize, size: usize) -> bool {
    size > 0 && from.abs_diff(to) < size
}

pub(crate) fn copy(
    at: &Target,
    (from, from_offset): (&Memory, usize),
    (to, to_offset): (&Memory, usize),
    size: usize,
) -> Checked {
    at.reads(from)?;
    at.writes(to)?;
    is_within(from_offset, size, from.size)?;
    is_within(to_offset, size, to.size)?;
    at.is_aligned(from)?;
    at.is_aligned(to)?;
    let overlaps = from.root == to.root && overlap(from.offset + from_offset, to.offset + to_offset, size);
    ensure(!overlaps, CL_MEM_COPY_OVERLAP)
}

/// Bytes that come from the program's own memory.
pub(crate) fn write(at: &Target, memory: &Memory, offset: usize, size: usize) -> Checked {
    at.writes(memory)?;
    ensure(memory.host_writes, CL_INVALID_OPERATION)?;
    is_within(offset, size, memory.size)?;
    at.is_aligned(memory)
}

/// Bytes that go to the program's own memory.
pub(crate) fn read(at: &Target, memory: &Memory, offset: usize, size: usize) -> Checked {
    at.reads(memory)?;
    ensure(memory.host_reads, CL_INVALID_OPERATION)?;
    is_within(offset, size, memory.size)?;
    at.is_aligned(memory)
}

/// The program's own memory, as one side of a copy: nothing is known of its size.
pub(crate) fn host(at: &Target) -> Memory {
    Memory {
        context: at.context,
        size: usize::MAX,
        root: 0,
        offset: 0,
        is_immutable: false,
        host_reads: true,
        host_writes: true,
    }
}

/// One side of a copy of a rectangle: where it begins, and the bytes from row to row and from slice to slice, or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) origin: Place,
    pub(crate) row: usize,
    pub(crate) slice: usize,
}

impl Side {
    /// Puts the bytes from row to row and from slice to slice in place of 0.
    pub(crate) fn with_pitches(mut self, region: &Place) -> Checked<Self> {
        if self.row == 0 {
            self.row = region[0];
        }
        ensure(self.row >= region[0], CL_INVALID_VALUE)?;
        let rows = self.row.checked_mul(region[1]).ok_or(CL_INVALID_VALUE)?;
        if self.slice == 0 {
            self.slice = rows;
        }
        ensure(self.slice >= rows && self.slice.is_multiple_of(self.row), CL_INVALID_VALUE)?;
        Ok(self)
    }

    /// Returns the place of a byte, counted from the beginning of the memory.
    pub(crate) fn place(&self, [x, y, z]: Place) -> Option<usize> {
        z.checked_mul(self.slice)?.checked_add(y.checked_mul(self.row)?)?.checked_add(x)
    }

    /// Leaves out the pitches that a region does not need: some drivers compare them all the same.
    pub(crate) fn needed(self, region: &Place) -> Self {
        let (one_row, one_slice) = (region[1] == 1, region[2] == 1);
        let (x, y, z) = (self.origin[0], self.origin[1], self.origin[2]);
        // The pitches say where the origin is, too.
        let row = if one_row && one_slice && y == 0 && z == 0 { 0 } else { self.row };
        let slice = if one_slice && z == 0 { 0 } else { self.slice };
        Self { origin: [x, y, z], row, slice }
    }

    fn is_within(&self, region: &Place, size: usize) -> Checked<usize> {
        let last = region.map(|extent| extent - 1);
        let begin = self.place(self.origin).ok_or(CL_INVALID_VALUE)?;
        let span = self.place(last).ok_or(CL_INVALID_VALUE)?;
        is_within(begin, span.checked_add(1).ok_or(CL_INVALID_VALUE)?, size)?;
        Ok(begin)
    }
}

pub(crate) fn copy_rect(
    at: &Target,
    (from, from_side): (&Memory, Side),
    (to, to_side): (&Memory, Side),
    region: &Place,
) -> Checked {
    at.reads(from)?;
    at.writes(to)?;
    ensure(region.iter().all(|extent| *extent > 0), CL_INVALID_VALUE)?;
    let (from_side, to_side) = (from_side.with_pitches(region)?, to_side.with_pitches(region)?);
    let from_begin = from_side.is_within(region, from.size)?;
    let to_begin = to_side.is_within(region, to.size)?;
    at.is_aligned(from)?;
    at.is_aligned(to)?;
    if from.root != to.root {
        return Ok(());
    }
    let is_same_form = (from_side.row, from_side.slice) == (to_side.row, to_side.slice);
    let both_differ = from_side.row != to_side.row && from_side.slice != to_side.slice;
    ensure(!both_differ || from.offset != to.offset || from.size != to.size, CL_INVALID_VALUE)?;
    let overlaps = if is_same_form {
        rects_overlap(&from_side, from.offset + from_begin, to.offset + to_begin, region)
    } else {
        // In different forms the bytes between are counted, too.
        let span = |side: &Side| side.place(region.map(|extent| extent - 1)).map_or(usize::MAX, |last| last + 1);
        let (from_at, to_at) = (from.offset + from_begin, to.offset + to_begin);
        from_at < to_at.saturating_add(span(&to_side)) && to_at < from_at.saturating_add(span(&from_side))
    };
    ensure(!overlaps, CL_MEM_COPY_OVERLAP)
}

/// The appendix "Checking for Memory Copy Overlap" of the specification.
fn rects_overlap(side: &Side, from: usize, to: usize, region: &Place) -> bool {
    let rows = (region[1] - 1) * side.row + region[0];
    let all = (region[2] - 1) * side.slice + rows;
    if from.abs_diff(to) >= all {
        return false;
    }
    // One lies in the gaps of the other: between rows, or between slices.
    let beside = |from: usize, to: usize, size: usize, pitch: usize| {
        let fits = |first: usize, second: usize| second >= first + size && second + size <= first + pitch;
        fits(from, to) || fits(to, from)
    };
    let in_rows = beside(from % side.row, to % side.row, region[0], side.row);
    let in_slices = beside(from % side.slice, to % side.slice, rows, side.slice);
    !in_rows && !in_slices
}

/// `size` is in bytes; the pattern, too.
pub(crate) fn fill(at: &Target, memory: &Memory, pattern: usize, offset: usize, size: usize) -> Checked {
    at.writes(memory)?;
    is_pattern(pattern)?;
    ensure(offset.is_multiple_of(pattern) && size.is_multiple_of(pattern), CL_INVALID_VALUE)?;
    is_within(offset, size, memory.size)?;
    at.is_aligned(memory)
}

fn is_pattern(size: usize) -> Checked {
    ensure(size.is_power_of_two() && size <= 128, CL_INVALID_VALUE)
}

/// An area of an image.
fn area(at: &Target, image: &Image, origin: &Place, region: &Place) -> Checked {
    at.takes(image)?;
    for dimension in 0..3 {
        ensure(region[dimension] > 0, CL_INVALID_VALUE)?;
        is_within(origin[dimension], region[dimension], image.extents[dimension])?;
    }
    Ok(())
}

/// The program's own memory as the other side of an image: pixels one after another in rows, rows in slices. `row` and `slice` are bytes
/// from one to the next, or 0. Returns the side and the bytes of the region.
pub(crate) fn pixels(image: &Image, region: &Place, row: usize, slice: usize) -> Checked<(Side, Place)> {
    let bytes = region[0].checked_mul(image.pixel).ok_or(CL_INVALID_VALUE)?;
    let region = [bytes, region[1], region[2]];
    ensure(region.iter().all(|extent| *extent > 0), CL_INVALID_VALUE)?;
    let row = if row == 0 { bytes } else { row };
    ensure(row >= bytes, CL_INVALID_VALUE)?;
    let side = match image.shape {
        Shape::Row | Shape::RowOfBuffer | Shape::Plane => {
            ensure(slice == 0, CL_INVALID_VALUE)?;
            Side { origin: [0; 3], row, slice: row.checked_mul(region[1]).ok_or(CL_INVALID_VALUE)? }
        }
        // The rows of a 1D array are its layers. Drivers go from one to the next by the row pitch, whatever the slice pitch is.
        Shape::Rows => {
            ensure(slice == 0 || slice >= row, CL_INVALID_VALUE)?;
            Side { origin: [0; 3], row, slice: row.checked_mul(region[1]).ok_or(CL_INVALID_VALUE)? }
        }
        Shape::Planes | Shape::Volume => {
            let rows = row.checked_mul(region[1]).ok_or(CL_INVALID_VALUE)?;
            let slice = if slice == 0 { rows } else { slice };
            ensure(slice >= rows, CL_INVALID_VALUE)?;
            Side { origin: [0; 3], row, slice }
        }
    };
    ensure(side.place([bytes - 1, region[1] - 1, region[2] - 1]).is_some(), CL_INVALID_VALUE)?;
    Ok((side, region))
}

pub(crate) fn read_image(at: &Target, image: &Image, origin: &Place, region: &Place) -> Checked {
    at.reads(&image.memory)?;
    ensure(image.memory.host_reads, CL_INVALID_OPERATION)?;
    area(at, image, origin, region)
}

/// What comes from the program's own memory.
pub(crate) fn write_image(at: &Target, image: &Image, origin: &Place, region: &Place) -> Checked {
    ensure(image.memory.host_writes, CL_INVALID_OPERATION)?;
    fill_image(at, image, origin, region)
}

pub(crate) fn fill_image(at: &Target, image: &Image, origin: &Place, region: &Place) -> Checked {
    at.writes(&image.memory)?;
    area(at, image, origin, region)
}

pub(crate) fn copy_image(
    at: &Target,
    (from, from_origin): (&Image, &Place),
    (to, to_origin): (&Image, &Place),
    region: &Place,
) -> Checked {
    at.reads(&from.memory)?;
    at.writes(&to.memory)?;
    ensure(from.format == to.format, CL_IMAGE_FORMAT_MISMATCH)?;
    area(at, from, from_origin, region)?;
    area(at, to, to_origin, region)?;
    let is_near = |dimension: usize| overlap(from_origin[dimension], to_origin[dimension], region[dimension]);
    let overlaps = from.memory.root == to.memory.root && (0..3).all(is_near);
    ensure(!overlaps, CL_MEM_COPY_OVERLAP)
}

/// The bytes that an area of an image has in a buffer.
fn bytes(image: &Image, region: &Place) -> Checked<usize> {
    region.iter().try_fold(image.pixel, |bytes, extent| bytes.checked_mul(*extent)).ok_or(CL_INVALID_VALUE)
}

pub(crate) fn image_to_buffer(
    at: &Target,
    (from, origin): (&Image, &Place),
    (to, offset): (&Memory, usize),
    region: &Place,
) -> Checked {
    at.reads(&from.memory)?;
    at.writes(to)?;
    area(at, from, origin, region)?;
    is_within(offset, bytes(from, region)?, to.size)?;
    at.is_aligned(to)
}

pub(crate) fn buffer_to_image(
    at: &Target,
    (from, offset): (&Memory, usize),
    (to, origin): (&Image, &Place),
    region: &Place,
) -> Checked {
    at.reads(from)?;
    at.writes(&to.memory)?;
    area(at, to, origin, region)?;
    is_within(offset, bytes(to, region)?, from.size)?;
    at.is_aligned(from)
}

/// Addresses of shared virtual memory.
pub(crate) fn copy_addresses(from: usize, to: usize, size: usize) -> Checked {
    ensure(from != 0 && to != 0, CL_INVALID_VALUE)?;
    ensure(!overlap(from, to, size), CL_MEM_COPY_OVERLAP)
}

pub(crate) fn fill_addresses(to: usize, pattern: usize, size: usize) -> Checked {
    ensure(to != 0, CL_INVALID_VALUE)?;
    is_pattern(pattern)?;
    ensure(to.is_multiple_of(pattern) && size.is_multiple_of(pattern), CL_INVALID_VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { alignment: 16, row_of_buffer: 20, plane: [8, 9], volume: [4, 5, 6], layers: 3 };
    const AT: Target = Target { context: 1, limits: Some(LIMITS) };
    /// Its device is the only one of its context.
    const ALONE: Target = Target { context: 1, limits: None };
    const BUFFER: Memory =
        Memory { context: 1, size: 256, root: 10, offset: 0, is_immutable: false, host_reads: true, host_writes: true };
    const OTHER: Memory = Memory { root: 11, ..BUFFER };

    #[test]
    fn copies_stay_within_and_apart() {
        assert_eq!(copy(&AT, (&BUFFER, 0), (&OTHER, 128), 128), Ok(()));
        assert_eq!(copy(&AT, (&BUFFER, 0), (&OTHER, 129), 128), Err(CL_INVALID_VALUE));
        assert_eq!(copy(&AT, (&BUFFER, usize::MAX), (&OTHER, 0), 2), Err(CL_INVALID_VALUE));
        assert_eq!(copy(&AT, (&BUFFER, 0), (&BUFFER, 128), 128), Ok(()));
        assert_eq!(copy(&AT, (&BUFFER, 0), (&BUFFER, 127), 128), Err(CL_MEM_COPY_OVERLAP));
        assert_eq!(copy(&AT, (&BUFFER, 127), (&BUFFER, 0), 128), Err(CL_MEM_COPY_OVERLAP));
        assert_eq!(copy(&AT, (&BUFFER, 5), (&BUFFER, 5), 0), Ok(()));
        // By a sub-buffer.
        let sub = Memory { offset: 64, size: 64, ..BUFFER };
        assert_eq!(copy(&AT, (&sub, 0), (&BUFFER, 0), 64), Ok(()));
        assert_eq!(copy(&AT, (&sub, 0), (&BUFFER, 1), 64), Err(CL_MEM_COPY_OVERLAP));
        let crooked = Memory { offset: 8, size: 64, ..BUFFER };
        assert_eq!(copy(&AT, (&crooked, 0), (&OTHER, 0), 4), Err(CL_MISALIGNED_SUB_BUFFER_OFFSET));
        assert_eq!(copy(&ALONE, (&crooked, 0), (&OTHER, 0), 4), Ok(()));
        let immutable = Memory { is_immutable: true, ..OTHER };
        assert_eq!(copy(&AT, (&BUFFER, 0), (&immutable, 0), 4), Err(CL_INVALID_OPERATION));
        assert_eq!(copy(&AT, (&immutable, 0), (&BUFFER, 0), 4), Ok(()));
        let foreign = Memory { context: 2, ..OTHER };
        assert_eq!(copy(&AT, (&foreign, 0), (&BUFFER, 0), 4), Err(CL_INVALID_CONTEXT));
        assert_eq!(copy(&AT, (&BUFFER, 0), (&foreign, 0), 4), Err(CL_INVALID_CONTEXT));
    }

    /// Bytes are written one by one: a rectangle overlaps if it has a byte of the other, or lies around it.
    #[test]
    fn rectangles_stay_within_and_apart() {
        let side = |origin, row, slice| Side { origin, row, slice };
        let rect = |from, to, region| copy_rect(&AT, (&BUFFER, from), (&BUFFER, to), &region);
        let other = |from, to, region| copy_rect(&AT, (&BUFFER, from), (&OTHER, to), &region);
        assert_eq!(other(side([0; 3], 0, 0), side([0; 3], 0, 0), [16, 16, 1]), Ok(()));
        assert_eq!(other(side([0; 3], 0, 0), side([0; 3], 0, 0), [16, 17, 1]), Err(CL_INVALID_VALUE));
        assert_eq!(other(side([0; 3], 0, 0), side([0; 3], 0, 0), [16, 0, 1]), Err(CL_INVALID_VALUE));
        assert_eq!(other(side([0; 3], 15, 0), side([0; 3], 0, 0), [16, 1, 1]), Err(CL_INVALID_VALUE));
        assert_eq!(other(side([0; 3], 16, 24), side([0; 3], 0, 0), [8, 1, 2]), Err(CL_INVALID_VALUE));
        assert_eq!(other(side([0; 3], 16, 16), side([0; 3], 0, 0), [8, 2, 2]), Err(CL_INVALID_VALUE));
        assert_eq!(other(side([usize::MAX, 1, 1], 16, 0), side([0; 3], 0, 0), [8, 1, 1]), Err(CL_INVALID_VALUE));
        // The last byte of a rectangle is that of its last row.
        assert_eq!(other(side([8, 15, 0], 16, 0), side([0; 3], 0, 0), [8, 1, 1]), Ok(()));
        assert_eq!(other(side([9, 15, 0], 16, 0), side([0; 3], 0, 0), [8, 1, 1]), Err(CL_INVALID_VALUE));
        // Beside each other in the same rows; then one byte too far.
        assert_eq!(rect(side([0; 3], 16, 0), side([8, 0, 0], 16, 0), [8, 16, 1]), Ok(()));
        assert_eq!(rect(side([0; 3], 16, 0), side([7, 0, 0], 16, 0), [8, 16, 1]), Err(CL_MEM_COPY_OVERLAP));
        // In the gaps between slices.
        assert_eq!(rect(side([0; 3], 16, 64), side([0, 2, 0], 16, 64), [16, 2, 4]), Ok(()));
        assert_eq!(rect(side([0; 3], 16, 64), side([0, 1, 0], 16, 64), [16, 2, 4]), Err(CL_MEM_COPY_OVERLAP));
        // In two forms: one pitch may differ, and the bytes between are counted, too.
        assert_eq!(rect(side([0; 3], 16, 64), side([0, 0, 1], 32, 64), [4, 2, 1]), Ok(()));
        assert_eq!(rect(side([0; 3], 16, 64), side([4, 0, 0], 32, 64), [4, 2, 1]), Err(CL_MEM_COPY_OVERLAP));
        assert_eq!(rect(side([0; 3], 16, 64), side([0, 0, 1], 32, 96), [4, 2, 1]), Err(CL_INVALID_VALUE));
    }

    #[test]
    fn pitches_that_a_region_does_not_need_are_left_out() {
        let needed = |origin, row, slice, region| {
            let Side { row, slice, .. } = Side { origin, row, slice }.needed(&region);
            (row, slice)
        };
        assert_eq!(needed([3, 0, 0], 16, 64, [4, 1, 1]), (0, 0));
        assert_eq!(needed([3, 0, 0], 16, 64, [4, 2, 1]), (16, 0));
        assert_eq!(needed([3, 2, 0], 16, 64, [4, 1, 1]), (16, 0));
        assert_eq!(needed([3, 0, 2], 16, 64, [4, 1, 1]), (16, 64));
        assert_eq!(needed([3, 0, 0], 16, 64, [4, 1, 2]), (16, 64));
    }

    #[test]
    fn overlap_of_rectangles_is_that_of_their_bytes() {
        // With all pitches equal, the appendix's test says no only where no byte is shared.
        let side = Side { origin: [0; 3], row: 6, slice: 18 };
        for region in [[2, 1, 1], [2, 2, 1], [3, 2, 2], [6, 1, 2], [1, 3, 2]] {
            let bytes = |begin: usize| {
                let mut all = Vec::new();
                for z in 0..region[2] {
                    for y in 0..region[1] {
                        all.extend((0..region[0]).map(|x| begin + z * 18 + y * 6 + x));
                    }
                }
                all
            };
            for from in 0..40 {
                for to in 0..40 {
                    let shared = bytes(from).iter().any(|byte| bytes(to).contains(byte));
                    let told = rects_overlap(&side, from, to, &region);
                    assert!(told || !shared, "{region:?} {from} {to}");
                }
            }
        }
    }

    #[test]
    fn fills_are_made_of_whole_patterns() {
        for pattern in [1, 2, 4, 8, 16, 32, 64, 128] {
            assert_eq!(fill(&AT, &BUFFER, pattern, pattern, 256 - pattern), Ok(()));
            assert_eq!(fill(&AT, &BUFFER, pattern, 0, 256 + pattern), Err(CL_INVALID_VALUE));
        }
        for pattern in [0, 3, 12, 256] {
            assert_eq!(fill(&AT, &BUFFER, pattern, 0, 0), Err(CL_INVALID_VALUE));
        }
        assert_eq!(fill(&AT, &BUFFER, 4, 2, 4), Err(CL_INVALID_VALUE));
        assert_eq!(fill(&AT, &BUFFER, 4, 4, 6), Err(CL_INVALID_VALUE));
        assert_eq!(fill(&AT, &Memory { is_immutable: true, ..BUFFER }, 4, 0, 4), Err(CL_INVALID_OPERATION));
    }

    #[test]
    fn images_are_no_larger_than_the_device_takes() {
        let takes = |shape, extents| {
            let image = Image { memory: BUFFER, extents, format: [1, 2], pixel: 4, shape, of_buffer: 0 };
            assert_eq!(fill_image(&ALONE, &image, &[0; 3], &[1; 3]), Ok(()));
            fill_image(&AT, &image, &[0; 3], &[1; 3])
        };
        for (shape, most) in [
            (Shape::Row, [8, 1, 1]),
            (Shape::RowOfBuffer, [20, 1, 1]),
            (Shape::Rows, [8, 3, 1]),
            (Shape::Plane, [8, 9, 1]),
            (Shape::Planes, [8, 9, 3]),
            (Shape::Volume, [4, 5, 6]),
        ] {
            assert_eq!(takes(shape, most), Ok(()));
            for dimension in 0..3 {
                let mut more = most;
                more[dimension] += 1;
                assert_eq!(takes(shape, more), Err(CL_INVALID_IMAGE_SIZE), "{shape:?} {more:?}");
            }
        }
    }

    #[test]
    fn images_are_touched_within_their_extents() {
        let image =
            Image { memory: BUFFER, extents: [4, 8, 1], format: [1, 2], pixel: 4, shape: Shape::Plane, of_buffer: 0 };
        let other = Image { memory: OTHER, ..image };
        assert_eq!(fill_image(&AT, &image, &[0; 3], &[4, 8, 1]), Ok(()));
        for (origin, region) in
            [([1, 0, 0], [4, 8, 1]), ([0; 3], [4, 8, 2]), ([0, 0, 1], [1, 1, 1]), ([0; 3], [4, 0, 1])]
        {
            assert_eq!(fill_image(&AT, &image, &origin, &region), Err(CL_INVALID_VALUE));
        }
        let copied =
            |from, to, to_origin: Place, region: Place| copy_image(&AT, (from, &[0; 3]), (to, &to_origin), &region);
        assert_eq!(copied(&image, &other, [0; 3], [4, 8, 1]), Ok(()));
        assert_eq!(copied(&image, &other, [0, 1, 0], [4, 8, 1]), Err(CL_INVALID_VALUE));
        assert_eq!(copied(&image, &image, [0, 4, 0], [4, 4, 1]), Ok(()));
        assert_eq!(copied(&image, &image, [0, 3, 0], [4, 4, 1]), Err(CL_MEM_COPY_OVERLAP));
        let float = Image { format: [1, 3], ..other };
        assert_eq!(copied(&image, &float, [0; 3], [1, 1, 1]), Err(CL_IMAGE_FORMAT_MISMATCH));
        assert_eq!(image_to_buffer(&AT, (&image, &[0; 3]), (&OTHER, 128), &[4, 8, 1]), Ok(()));
        assert_eq!(image_to_buffer(&AT, (&image, &[0; 3]), (&OTHER, 129), &[4, 8, 1]), Err(CL_INVALID_VALUE));
        assert_eq!(buffer_to_image(&AT, (&OTHER, 128), (&image, &[0; 3]), &[4, 8, 1]), Ok(()));
        assert_eq!(buffer_to_image(&AT, (&OTHER, 129), (&image, &[0; 3]), &[4, 8, 1]), Err(CL_INVALID_VALUE));
    }

    #[test]
    fn pixels_of_the_program_lie_in_rows_and_slices() {
        let image = |shape| Image { memory: BUFFER, extents: [4, 8, 2], format: [1, 2], pixel: 4, shape, of_buffer: 0 };
        let side =
            |shape, row, slice| pixels(&image(shape), &[4, 8, 2], row, slice).map(|(side, _)| (side.row, side.slice));
        assert_eq!(side(Shape::Planes, 0, 0), Ok((16, 128)));
        assert_eq!(side(Shape::Volume, 20, 161), Ok((20, 161)));
        assert_eq!(side(Shape::Volume, 20, 159), Err(CL_INVALID_VALUE));
        assert_eq!(side(Shape::Volume, 15, 0), Err(CL_INVALID_VALUE));
        assert_eq!(side(Shape::Rows, 0, 0), Ok((16, 128)));
        assert_eq!(side(Shape::Rows, 20, 24), Ok((20, 160)));
        assert_eq!(side(Shape::Rows, 20, 19), Err(CL_INVALID_VALUE));
        assert_eq!(side(Shape::Plane, 20, 0), Ok((20, 160)));
        assert_eq!(side(Shape::Plane, 0, 16), Err(CL_INVALID_VALUE));
    }

    #[test]
    fn the_program_reads_and_writes_what_it_may() {
        let silent = Memory { host_reads: false, host_writes: false, ..BUFFER };
        assert_eq!(read(&AT, &BUFFER, 0, 256).and(write(&AT, &BUFFER, 0, 256)), Ok(()));
        assert_eq!([read(&AT, &silent, 0, 4), write(&AT, &silent, 0, 4)], [Err(CL_INVALID_OPERATION); 2]);
        assert_eq!([read(&AT, &BUFFER, 0, 257), write(&AT, &BUFFER, 1, 256)], [Err(CL_INVALID_VALUE); 2]);
    }

    #[test]
    fn addresses() {
        assert_eq!(copy_addresses(100, 200, 100), Ok(()));
        assert_eq!(copy_addresses(100, 199, 100), Err(CL_MEM_COPY_OVERLAP));
        assert_eq!(copy_addresses(0, 200, 100), Err(CL_INVALID_VALUE));
        assert_eq!(fill_addresses(64, 4, 8), Ok(()));
        for (to, pattern, size) in [(0, 4, 8), (2, 4, 8), (64, 4, 6), (64, 3, 6)] {
            assert_eq!(fill_addresses(to, pattern, size), Err(CL_INVALID_VALUE));
        }
    }
}
