//! Rectangular copies.

use crate::cl::commands::copy_sides::rect_origin;
use crate::cl::memory::host::Element;
use crate::cl::memory::region::{AsDestination, AsSource, Region};
use crate::command::{Command, CopyRect};
use crate::error::{BuildCause, RectError, Result};
use crate::graph::nodes::copier;
use crate::graph::nodes::launch::CheckedLaunch;
use crate::graph::nodes::request::{CommandRequest, Request, Requested, Target};
use crate::graph::writer::Writer;
use crate::graph::{After, Graph, after_methods};
use crate::handles::Node;
use crate::ir::{Access, ById, Mode};

impl Graph {
    /// Starts a copy of a rectangle or a box from memory to memory.
    ///
    /// Everything is in elements, rows and slices: `region([w, h, d])` copies `d` slices of `h` rows of `w` elements.
    /// Without pitches, rows and slices lie close to each other.
    ///
    /// OpenCL has a command for it only between buffers. If one side has an address, a kernel of clgraph copies, and
    /// [`Graph::kind`] returns [`NodeKind::Kernel`](crate::NodeKind::Kernel).
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let picture = Buffer::<u8>::new(&queue, 640 * 480)?;
    /// let tile = Buffer::<u8>::new(&queue, 16 * 16)?;
    /// let graph = Graph::new(&queue)?;
    /// graph.copy_rect(&picture, &tile).region([16, 16, 1]).src_origin([100, 50, 0]).src_pitch(640, 0).add()?;
    /// # Ok(()) }
    /// ```
    #[doc(alias = "clEnqueueCopyBufferRect")]
    #[doc(alias = "clCommandCopyBufferRectKHR")]
    pub fn copy_rect<T: Element>(&self, src: &impl AsSource<T>, dst: &impl AsDestination<T>) -> CopyRectNode<'_> {
        let side = |region| RectSide { region, origin: [0; 3], row_pitch: 0, slice_pitch: 0 };
        let rect = Rect { element: size_of::<T>(), region: None, src: side(src.region()), dst: side(dst.region()) };
        CopyRectNode { graph: self, after: After::default(), rect }
    }
}

/// A rectangular copy to be added. See [`Graph::copy_rect`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct CopyRectNode<'g> {
    graph: &'g Graph,
    after: After,
    rect: Rect,
}

/// A copy of a rectangle from buffer to buffer. Sizes are in elements of `element` bytes.
#[derive(Clone, Debug)]
pub(crate) struct Rect {
    pub(crate) element: usize,
    pub(crate) region: Option<[usize; 3]>,
    pub(crate) src: RectSide,
    pub(crate) dst: RectSide,
}

/// A buffer, and where the rectangle lies in the buffer.
#[derive(Clone, Debug)]
pub(crate) struct RectSide {
    pub(crate) region: Region,
    pub(crate) origin: [usize; 3],
    pub(crate) row_pitch: usize,
    pub(crate) slice_pitch: usize,
}

/// One side of the copy, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RectLayout {
    /// Counted from the start of its memory.
    pub(crate) origin: [usize; 3],
    pub(crate) row: usize,
    pub(crate) slice: usize,
    /// The first byte of the rectangle, and one past its last, counted from the start of the region.
    start: usize,
    end: usize,
}

impl CopyRectNode<'_> {
    after_methods!();

    /// Sets how much is copied: elements of a row, rows of a slice, slices.
    pub fn region(mut self, region: [usize; 3]) -> Self {
        self.rect.region = Some(region);
        self
    }

    /// Sets where the rectangle starts in the source: element, row, slice.
    pub fn src_origin(mut self, origin: [usize; 3]) -> Self {
        self.rect.src.origin = origin;
        self
    }

    /// Sets where the rectangle starts in the destination: element, row, slice.
    pub fn dst_origin(mut self, origin: [usize; 3]) -> Self {
        self.rect.dst.origin = origin;
        self
    }

    /// Sets the distances in the source from row to row and from slice to slice, in elements; 0 means that they lie
    /// close to each other.
    pub fn src_pitch(mut self, row: usize, slice: usize) -> Self {
        (self.rect.src.row_pitch, self.rect.src.slice_pitch) = (row, slice);
        self
    }

    /// Sets the distances in the destination from row to row and from slice to slice, in elements; 0 means that they
    /// lie close to each other.
    pub fn dst_pitch(mut self, row: usize, slice: usize) -> Self {
        (self.rect.dst.row_pitch, self.rect.dst.slice_pitch) = (row, slice);
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::NoRegion`]; [`BuildCause::OutOfBounds`]; [`RectError::TooLarge`]; [`RectError::RowPitch`],
    /// [`RectError::SlicePitch`] and [`RectError::SlicePitchRows`] for pitches that are smaller than the region or
    /// that OpenCL does not accept; [`RectError::PitchesDiffer`], [`RectError::Wraps`] and
    /// [`BuildCause::Overlap`] for copies within one buffer; `BuildCause::CopyKernel` where a kernel has to copy; and
    /// those of [`EmptyNode::add`](crate::graph::EmptyNode::add).
    pub fn add(self) -> Result<Node> {
        Ok(self.graph.insert(self.rect, &self.after)?)
    }

    /// Replaces a node that copies a rectangle by this copy. Edges stay, and executables get the change when they are
    /// updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and those of [`CopyNode::replace`](crate::graph::CopyNode::replace). After an error
    /// nothing has changed.
    pub fn replace(self, node: Node) -> Result<()> {
        self.graph.replace(node, self.rect, &self.after)
    }
}

impl Rect {
    /// The size of the rectangle: bytes of a row, rows, slices.
    pub(crate) fn bytes(&self) -> [usize; 3] {
        let size = self.region.unwrap_or_default();
        [size[0].saturating_mul(self.element), size[1], size[2]]
    }
}

/// The result of the checks: the layout of both sides, or the launch that copies where OpenCL has no command.
#[derive(Clone, Debug)]
pub(crate) enum Laid {
    Command(RectLayout, RectLayout),
    Launch(Box<CheckedLaunch>),
}

/// The bytes that a rectangle touches.
fn part(side: &RectSide, layout: &RectLayout) -> Region {
    let offset = side.region.offset + layout.start;
    Region { mem: side.region.mem.clone(), offset, size: layout.end - layout.start }
}

impl Request for Rect {
    type Checked = Laid;

    fn subject(&self) -> String {
        "rectangular copy".to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<Self::Checked, BuildCause> {
        let Self { element, region, src, dst } = self;
        let region = region.ok_or(BuildCause::NoRegion)?;
        target.check_context(&src.region, "the source")?;
        target.check_context(&dst.region, "the destination")?;
        let from = layout("source", src, region, *element)?;
        let into = layout("destination", dst, region, *element)?;
        check_apart(src, &from, dst, &into, region, *element)?;
        let size = self.bytes();
        if !copier::is_needed(&src.region, &dst.region, true) {
            return Ok(Laid::Command(from, into));
        }
        let side = |side: &RectSide, of: &RectLayout| copier::CopySide {
            region: part(side, of),
            row: of.row,
            slice: of.slice,
        };
        let launch = copier::launch(target, &side(src, &from), &side(dst, &into), size)?;
        Ok(Laid::Launch(Box::new(launch.checked(target)?)))
    }

    fn lower(self, checked: Self::Checked, to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        self.command(checked).lower(to, accesses)
    }
}

impl CommandRequest for Rect {
    fn command(self, laid: Laid) -> Requested {
        let (from, into) = match laid {
            Laid::Command(from, into) => (from, into),
            Laid::Launch(launch) => return Requested::launch(launch),
        };
        let region = self.bytes();
        let Self { src, dst, .. } = self;
        let uses = [(part(&src, &from), Mode::Read), (part(&dst, &into), Mode::Write)];
        let command = Command::CopyRect(CopyRect {
            src: src.region.mem,
            dst: dst.region.mem,
            src_origin: from.origin,
            dst_origin: into.origin,
            region,
            pitches: [from.row, from.slice, into.row, into.slice],
        });
        Requested::new(command, uses)
    }
}

/// The layout of a side in bytes, checked against OpenCL's rules for pitches and against the side's buffer.
fn layout(what: &'static str, side: &RectSide, region: [usize; 3], element: usize) -> Result<RectLayout, BuildCause> {
    let bytes = |elements: usize| elements.checked_mul(element).ok_or(RectError::TooLarge { what });
    let width = bytes(region[0])?;
    let row = if side.row_pitch == 0 { width } else { bytes(side.row_pitch)? };
    if row < width {
        return Err(RectError::RowPitch { what, given: side.row_pitch, row: region[0] }.into());
    }
    let slice_size = row.checked_mul(region[1]).ok_or(RectError::TooLarge { what })?;
    let slice = if side.slice_pitch == 0 { slice_size } else { bytes(side.slice_pitch)? };
    if slice < slice_size {
        let least = slice_size / element.max(1);
        return Err(RectError::SlicePitch { what, given: side.slice_pitch, rows: region[1], least }.into());
    }
    if row > 0 && slice % row != 0 {
        return Err(RectError::SlicePitchRows { what, slice: slice / element, row: row / element }.into());
    }
    let origin = [bytes(side.origin[0])?, side.origin[1], side.origin[2]];
    let offset = |at: [usize; 3]| {
        let z = at[2].checked_mul(slice)?;
        let y = at[1].checked_mul(row)?;
        z.checked_add(y)?.checked_add(at[0])
    };
    let empty = region.contains(&0);
    let length = if empty { Some(0) } else { offset([width, region[1] - 1, region[2] - 1]) };
    let len = side.region.size as u64;
    let outside = |offset, end| BuildCause::OutOfBounds { what, offset, end, len };
    let start = offset(origin).ok_or_else(|| outside(u64::MAX, u64::MAX))?;
    let end = length
        .and_then(|length| start.checked_add(length))
        .filter(|end| *end <= side.region.size)
        .ok_or_else(|| outside(start as u64, (start as u64).saturating_add(length.unwrap_or(usize::MAX) as u64)))?;
    let origin = [origin[0] + side.region.offset, origin[1], origin[2]];
    Ok(RectLayout { origin, row, slice, start, end })
}

/// Where a side's region starts in its buffer or allocation.
fn in_root(side: &RectSide) -> usize {
    side.region.mem.offset_in_root() + side.region.offset
}

/// Refuses a copy within one buffer whose two rectangles share bytes, or which OpenCL does not accept.
fn check_apart(
    src: &RectSide,
    from: &RectLayout,
    dst: &RectSide,
    into: &RectLayout,
    region: [usize; 3],
    element: usize,
) -> Result<(), BuildCause> {
    if src.region.mem.root() != dst.region.mem.root() || region.contains(&0) {
        return Ok(());
    }
    let (a, b) =
        (in_root(src) + from.start..in_root(src) + from.end, in_root(dst) + into.start..in_root(dst) + into.end);
    if src.region.mem.kind().is_pointer() && (a.end <= b.start || b.end <= a.start) {
        // A kernel copies here, and has no such rules.
        return Ok(());
    }
    if (from.row, from.slice) != (into.row, into.slice) {
        // "CL_INVALID_VALUE if src_buffer and dst_buffer are the same buffer object and src_slice_pitch is not equal
        // to dst_slice_pitch or src_row_pitch is not equal to dst_row_pitch" (OpenCL 3.0, clEnqueueCopyBufferRect).
        return Err(RectError::PitchesDiffer { src: [from.row, from.slice], dst: [into.row, into.slice] }.into());
    }
    let (row, slice) = (from.row, from.slice);
    let boxed = |what: &'static str, side: &RectSide, layout: &RectLayout| {
        let at = rect_origin(in_root(side) + layout.start, row, slice, region[2]);
        let size = [region[0] * element, region[1], region[2]];
        // Drivers find overlaps by comparing the corners of boxes, which works only if a row of the box does not wrap
        // around.
        if at[0] + size[0] > row || (size[2] > 1 && at[1] + size[1] > slice / row) {
            return Err(RectError::Wraps { what, bytes: size[0], start: at[0], row });
        }
        Ok((at, size))
    };
    let ((a, size), (b, _)) = (boxed("source", src, from)?, boxed("destination", dst, into)?);
    let overlap = (0..3).all(|dim| a[dim] < b[dim] + size[dim] && b[dim] < a[dim] + size[dim]);
    if overlap {
        let show = |side: &RectSide, layout: &RectLayout| {
            let base = in_root(side);
            format!("bytes {:?}", base + layout.start..base + layout.end)
        };
        return Err(BuildCause::Overlap { src: show(src, from), dst: show(dst, into) });
    }
    Ok(())
}
