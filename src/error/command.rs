//! Errors of parts of commands: work-group sizes, rectangles and command groups.

/// A work-group size that the kernel or the device forbids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkGroupError {
    /// A work-group size is not the one that the kernel requires.
    #[error(
        "the work-group size is {given:?}, but the kernel has reqd_work_group_size {required:?}: leave `work_group` \
         out, or give that size"
    )]
    Required {
        /// The work-group size given. Dimensions that the range does not have are 1.
        given: [usize; 3],
        /// The work-group size that the kernel requires.
        required: [usize; 3],
    },
    /// A range has fewer dimensions than the work-group size that the kernel requires.
    #[error(
        "the range has {given} dimensions, but the kernel has reqd_work_group_size {required:?}, which needs more: \
         give a range with more dimensions"
    )]
    RequiredDimensions {
        /// The number of dimensions of the range.
        given: u32,
        /// The work-group size that the kernel requires.
        required: [usize; 3],
    },
    /// A work-group has no work-items.
    #[error(
        "the work-group size {given:?} has a zero: give at least 1 in each dimension, or leave `work_group` out, so \
         that the driver chooses"
    )]
    Empty {
        /// The work-group size given. Dimensions that the range does not have are 1.
        given: [usize; 3],
    },
    /// A work-group is larger in one dimension than the device allows.
    #[error(
        "the work-group size in dimension {dimension} is {given}, but the device allows at most {limit} \
         (CL_DEVICE_MAX_WORK_ITEM_SIZES): make it smaller, or leave `work_group` out, so that the driver chooses"
    )]
    ItemSize {
        /// Which dimension, from 0.
        dimension: usize,
        /// The work-group size given in this dimension.
        given: usize,
        /// The device's limit in this dimension.
        limit: usize,
    },
    /// A work-group has more work-items than this kernel can have on the device.
    #[error(
        "the work-group size {given:?} has too many work-items, because this kernel can have at most {limit} on the \
         device (CL_KERNEL_WORK_GROUP_SIZE): make it smaller, or leave `work_group` out, so that the driver chooses"
    )]
    TooLarge {
        /// The work-group size given. Dimensions that the range does not have are 1.
        given: [usize; 3],
        /// The largest number of work-items in a work-group.
        limit: usize,
    },
    /// A range has more work-groups than the driver can count.
    #[error(
        "the range can have {groups} work-groups, but the driver counts at most {limit}: give a larger `work_group`, \
         or launch the range in parts with offsets"
    )]
    TooMany {
        /// Work-groups of the range. If `work_group` is left out, this is the number of work-items, because the driver
        /// may choose work-groups of one work-item.
        groups: u64,
        /// The largest number of work-groups.
        limit: u64,
    },
    /// A range is not a multiple of the work-group size, and the device or the program takes only full work-groups.
    #[error(
        "the range in dimension {dimension} is {range}, which is not a multiple of the work-group size {work_group}, \
         and the device or the program's OpenCL C version takes only full work-groups: round the range up to {}",
        range.div_ceil(*work_group).saturating_mul(*work_group)
    )]
    Uneven {
        /// Which dimension, from 0.
        dimension: usize,
        /// Work-items of the range in this dimension.
        range: usize,
        /// Work-items of a work-group in this dimension. Never 0.
        work_group: usize,
    },
}

/// A rectangle of a copy that OpenCL forbids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RectError {
    /// The bytes of a rectangle cannot be counted.
    #[error("{what}: the bytes of the rectangle do not fit a size_t: use a smaller region, origin and pitch")]
    TooLarge {
        /// `source` or `destination`.
        what: &'static str,
    },
    /// A row pitch is smaller than a row of the region.
    #[error(
        "{what}: the row pitch of {given} elements is less than a row, which has {row} elements: give at least {row}, \
         or 0 for rows without gaps"
    )]
    RowPitch {
        /// `source` or `destination`.
        what: &'static str,
        /// The row pitch given, in elements.
        given: usize,
        /// The size of a row of the region, in elements.
        row: usize,
    },
    /// A slice pitch is smaller than the rows of a slice.
    #[error(
        "{what}: the slice pitch of {given} elements is less than the {rows} rows of a slice, which have {least} \
         elements: give at least {least}, or 0 for slices without gaps"
    )]
    SlicePitch {
        /// `source` or `destination`.
        what: &'static str,
        /// The slice pitch given, in elements.
        given: usize,
        /// The number of rows in a slice of the region.
        rows: usize,
        /// The smallest slice pitch possible, in elements: rows times row pitch.
        least: usize,
    },
    /// A slice pitch is not a multiple of the row pitch.
    #[error(
        "{what}: the slice pitch of {slice} elements is not a multiple of the row pitch of {row} elements: give a \
         multiple, as OpenCL requires"
    )]
    SlicePitchRows {
        /// `source` or `destination`.
        what: &'static str,
        /// The slice pitch, in elements.
        slice: usize,
        /// The row pitch, in elements.
        row: usize,
    },
    /// The two sides of a rectangular copy within one buffer have different pitches.
    #[error(
        "the row and slice pitches of the source are {src:?} bytes and those of the destination are {dst:?} bytes, but \
         within one buffer OpenCL requires equal pitches: give both sides the same pitches, or copy through another \
         buffer"
    )]
    PitchesDiffer {
        /// The row pitch and the slice pitch of the source, in bytes.
        src: [usize; 2],
        /// The row pitch and the slice pitch of the destination, in bytes.
        dst: [usize; 2],
    },
    /// A rectangle of a copy within one buffer goes over the end of a row or of a slice, counted from the start of the
    /// buffer.
    #[error(
        "{what}: rows of {bytes} bytes that start at byte {start} of a row go over the end of a row of {row} bytes, or \
         over the end of their slice, and within one buffer OpenCL counts rows from the start of the buffer: copy \
         through another buffer"
    )]
    Wraps {
        /// `source` or `destination`.
        what: &'static str,
        /// The bytes of each row of the region.
        bytes: usize,
        /// Where they start in a row, counted from the start of the buffer.
        start: usize,
        /// The row pitch in bytes.
        row: usize,
    },
}

/// A command group cannot be made or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// A command group has nothing to choose from.
    #[error("the command group is empty: give at least one {what}")]
    Empty {
        /// `launch` or `host task`.
        what: &'static str,
    },
    /// A launch or a host task of a command group has edges or a label of its own.
    #[error(
        "a {what} of a command group cannot have `after` or `label`: give them to the node, because they hold for the \
         whole group"
    )]
    Options {
        /// `launch` or `host task`.
        what: &'static str,
    },
    /// A launch or a host task of a command group uses other memory than the first one.
    #[error(
        "the {what} does not have the same memory accesses as the first of the group: give all of a group the same \
         memory and modes (a launch may have null where another has memory)"
    )]
    Accesses {
        /// `launch` or `host task`.
        what: &'static str,
    },
    /// A command group has no launch or host task of this number.
    #[error("the command group has no {what} {index}: it has {count}, counted from 0")]
    Index {
        /// `launch` or `host task`.
        what: &'static str,
        /// The number given, from 0.
        index: usize,
        /// How many launches or host tasks the group has.
        count: usize,
    },
    /// A command group belongs to another graph.
    #[error(
        "the command group belongs to another graph, or to a graph that was dropped: use a command group of this graph"
    )]
    OtherGraph,
    /// The graph of a command group was dropped.
    #[error("the graph of the command group was dropped: keep the graph as long as you change the group")]
    GraphGone,
}
