//! Nodes that copy, fill, read and write images.

use std::marker::PhantomData;

use opencl_sys::{CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY};

use super::fits::check_on_device;
use super::request::{Request, Target};
use super::tables::Writer;
use super::transfer::{Copy, HostRead, HostWrite, forbid};
use super::{After, Graph, Node, after_methods};
use crate::cl::buffer::{AsRegion, Region};
use crate::cl::host::{Element, HostBytes, HostData, Slot};
use crate::cl::image::Image;
use crate::error::{BuildCause, Result};
use crate::images::{Area, Color, ImageKind};
use crate::ir::{Access, CopyImage, DataId, Mode, Op, Pixels, Place, ResultId};
use crate::known;

impl Graph {
    /// Starts a copy between images: of all pixels, or as [`from`](ImageCopyNode::from), [`to`](ImageCopyNode::to) and
    /// [`region`](ImageCopyNode::region) say. The images have the same format, and may be of different kinds.
    #[doc(alias = "clEnqueueCopyImage")]
    pub fn copy_image(&self, src: &Image, dst: &Image) -> ImageCopyNode<'_> {
        let copy = ImageCopy {
            src: PixelSide::Image(src.clone(), [0; 3]),
            dst: PixelSide::Image(dst.clone(), [0; 3]),
            region: src.shape().region(),
        };
        ImageCopyNode { graph: self, after: After::default(), copy }
    }

    /// Starts a copy of an image's pixels to a buffer, where they are packed.
    #[doc(alias = "clEnqueueCopyImageToBuffer")]
    pub fn copy_image_to_buffer<T>(&self, src: &Image, dst: &impl AsRegion<T>) -> ImageCopyNode<'_> {
        let copy = ImageCopy {
            src: PixelSide::Image(src.clone(), [0; 3]),
            dst: PixelSide::Buffer(dst.region()),
            region: src.shape().region(),
        };
        ImageCopyNode { graph: self, after: After::default(), copy }
    }

    /// Starts a copy of packed pixels from a buffer to an image.
    #[doc(alias = "clEnqueueCopyBufferToImage")]
    pub fn copy_buffer_to_image<T>(&self, src: &impl AsRegion<T>, dst: &Image) -> ImageCopyNode<'_> {
        let copy = ImageCopy {
            src: PixelSide::Buffer(src.region()),
            dst: PixelSide::Image(dst.clone(), [0; 3]),
            region: dst.shape().region(),
        };
        ImageCopyNode { graph: self, after: After::default(), copy }
    }

    /// Starts a fill of an image with one colour.
    #[doc(alias = "clEnqueueFillImage")]
    pub fn fill_image(&self, image: &Image, color: impl Into<Color>) -> ImageFillNode<'_> {
        let fill = ImageFill { image: image.clone(), area: whole(image), color: color.into() };
        ImageFillNode { graph: self, after: After::default(), fill }
    }

    /// Starts a host write of an image: packed pixels, row by row. As [`write`](Self::write).
    #[doc(alias = "clEnqueueWriteImage")]
    pub fn write_image<T: Element>(&self, image: &Image, data: impl Into<HostData<T>>) -> ImageWriteNode<'_, T> {
        let write = ImageWrite { image: image.clone(), area: whole(image), data: data.into().into_bytes() };
        ImageWriteNode { graph: self, after: After::default(), write, element: PhantomData }
    }

    /// Starts a host read of an image: packed pixels, row by row. As [`read`](Self::read).
    #[doc(alias = "clEnqueueReadImage")]
    pub fn read_image<T: Element>(&self, image: &Image) -> ImageReadNode<'_, T> {
        let read =
            ImageRead { image: image.clone(), area: whole(image), align: align_of::<T>(), element: size_of::<T>() };
        ImageReadNode { graph: self, after: After::default(), read, element: PhantomData }
    }
}

fn whole(image: &Image) -> Area {
    Area { origin: [0; 3], region: image.shape().region() }
}

/// A copy of pixels to be added. See [`Graph::copy_image`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct ImageCopyNode<'g> {
    graph: &'g Graph,
    after: After,
    copy: ImageCopy,
}

impl ImageCopyNode<'_> {
    after_methods!();

    /// Where in the source image it starts, in pixels and layers.
    pub fn from(mut self, origin: [usize; 3]) -> Self {
        self.copy.src.set_origin(origin);
        self
    }

    /// Where in the destination image it starts.
    pub fn to(mut self, origin: [usize; 3]) -> Self {
        self.copy.dst.set_origin(origin);
        self
    }

    /// How much: width; height, or layers of rows; depth, or layers of pictures; 1 where the image has no such dimension.
    pub fn region(mut self, region: [usize; 3]) -> Self {
        self.copy.region = region;
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::ImageArea`], [`BuildCause::ImageFormats`], [`BuildCause::Overlap`], [`BuildCause::SizeMismatch`],
    /// [`BuildCause::OtherContext`]; [`BuildCause::NotSupported`] for what is known to go wrong on a driver; and those of
    /// [`EmptyNode::add`](super::EmptyNode::add).
    pub fn add(self) -> Result<Node> {
        Ok(self.graph.insert(self.copy, &self.after)?)
    }

    /// Puts the copy in the place of one that copies pixels between the same kinds of memory. Edges stay, and executables follow
    /// when they are updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and [`BuildCause::Replace`]: nothing changed.
    pub fn replace(self, node: Node) -> Result<()> {
        self.graph.replace(node, self.copy, &self.after)
    }
}

/// A fill of an image to be added. See [`Graph::fill_image`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct ImageFillNode<'g> {
    graph: &'g Graph,
    after: After,
    fill: ImageFill,
}

impl ImageFillNode<'_> {
    after_methods!();

    /// Which part.
    pub fn area(mut self, origin: [usize; 3], region: [usize; 3]) -> Self {
        self.fill.area = Area { origin, region };
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::ImageArea`], [`BuildCause::ImageColor`], [`BuildCause::OtherContext`]; [`BuildCause::NotSupported`] on a
    /// device that cannot have the image, or crashes over the fill; and those of [`EmptyNode::add`](super::EmptyNode::add).
    pub fn add(self) -> Result<Node> {
        Ok(self.graph.insert(self.fill, &self.after)?)
    }

    /// Puts the fill in the place of a fill of an image. Edges stay, and executables follow when they are updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and [`BuildCause::Replace`]: nothing changed.
    pub fn replace(self, node: Node) -> Result<()> {
        self.graph.replace(node, self.fill, &self.after)
    }
}

/// A host write of an image to be added. See [`Graph::write_image`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct ImageWriteNode<'g, T> {
    graph: &'g Graph,
    after: After,
    write: ImageWrite,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> ImageWriteNode<'_, T> {
    after_methods!();

    /// Which part.
    pub fn area(mut self, origin: [usize; 3], region: [usize; 3]) -> Self {
        self.write.area = Area { origin, region };
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::ImageArea`], [`BuildCause::SizeMismatch`], [`BuildCause::AccessForbidden`],
    /// [`BuildCause::OtherContext`], [`BuildCause::NotSupported`] on a device that cannot have the image, and those of [`EmptyNode::add`](super::EmptyNode::add).
    pub fn add(self) -> Result<HostWrite<T>> {
        Ok(HostWrite::of(self.graph.insert(self.write, &self.after)?))
    }

    /// Puts the write in the place of a write of as many bytes to an image. Edges stay, and executables follow when they are
    /// updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and [`BuildCause::Replace`]: nothing changed.
    pub fn replace(self, input: &HostWrite<T>) -> Result<()> {
        self.graph.replace(input.node(), self.write, &self.after)
    }
}

/// A host read of an image to be added. See [`Graph::read_image`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct ImageReadNode<'g, T> {
    graph: &'g Graph,
    after: After,
    read: ImageRead,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> ImageReadNode<'_, T> {
    after_methods!();

    /// Which part.
    pub fn area(mut self, origin: [usize; 3], region: [usize; 3]) -> Self {
        self.read.area = Area { origin, region };
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::ImageArea`], [`BuildCause::AccessForbidden`], [`BuildCause::OtherContext`];
    /// [`BuildCause::NotSupported`] for elements that do not fit; and those of [`EmptyNode::add`](super::EmptyNode::add).
    pub fn add(self) -> Result<HostRead<T>> {
        Ok(HostRead::of(self.graph.insert(self.read, &self.after)?))
    }

    /// Puts the read in the place of a read of as many bytes of an image. Edges stay, and executables follow when they are
    /// updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and [`BuildCause::Replace`]: nothing changed.
    pub fn replace(self, output: &HostRead<T>) -> Result<()> {
        self.graph.replace(output.node(), self.read, &self.after)
    }
}

/// Whether a part lies in an image, of the context.
pub(crate) fn check_area(
    target: &Target<'_>,
    what: &'static str,
    image: &Image,
    area: &Area,
) -> Result<(), BuildCause> {
    target.check_context(&image.region(), what)?;
    check_on_device(target, image.shape())?;
    let sizes = image.shape().region();
    let inside = (0..3).all(|dim| area.origin[dim].checked_add(area.region[dim]).is_some_and(|end| end <= sizes[dim]));
    if inside {
        return Ok(());
    }
    Err(BuildCause::ImageArea { what, origin: area.origin, region: area.region, shape: image.shape().to_string() })
}

/// Packed bytes of a part that lies inside.
fn packed(image: &Image, area: &Area) -> usize {
    area.len().unwrap_or(0).saturating_mul(image.pixel_size())
}

/// One side of a copy of pixels.
#[derive(Clone, Debug)]
pub(crate) enum PixelSide {
    Image(Image, [usize; 3]),
    Buffer(Region),
}

impl PixelSide {
    fn set_origin(&mut self, to: [usize; 3]) {
        if let Self::Image(_, origin) = self {
            *origin = to;
        }
    }

    fn check(
        &self,
        target: &Target<'_>,
        what: &'static str,
        region: [usize; 3],
        bytes: usize,
    ) -> Result<(), BuildCause> {
        match self {
            Self::Image(image, origin) => check_area(target, what, image, &Area { origin: *origin, region }),
            Self::Buffer(buffer) => {
                target.check_context(buffer, what)?;
                if !buffer.mem.is_buffer() && buffer.mem.promise().is_none() {
                    return Err(BuildCause::NotSupported {
                        what: "a copy between an image and memory with an address".to_owned(),
                        why: "OpenCL has no such command: copy through a buffer".to_owned(),
                    });
                }
                if buffer.size != bytes {
                    let (left, right) = ("the pixels", "the buffer");
                    let (left_bytes, right_bytes) = (bytes as u64, buffer.size as u64);
                    return Err(BuildCause::SizeMismatch { left, left_bytes, right, right_bytes });
                }
                Ok(())
            }
        }
    }

    /// The bytes, where it is a buffer after all.
    fn as_buffer(&self, region: [usize; 3]) -> Option<Region> {
        match self {
            Self::Image(image, origin) => image.buffer_part(&Area { origin: *origin, region }),
            Self::Buffer(buffer) => Some(buffer.clone()),
        }
    }

    fn part(&self, region: [usize; 3]) -> Region {
        match self {
            Self::Image(image, origin) => image.part(&Area { origin: *origin, region }),
            Self::Buffer(buffer) => buffer.clone(),
        }
    }

    fn lower(&self, state: &mut Writer<'_>) -> Pixels {
        match self {
            Self::Image(image, origin) => Pixels::Image(state.view(&image.region().mem), *origin),
            Self::Buffer(buffer) => Pixels::Buffer(Place { view: state.view(&buffer.mem), offset: buffer.offset }),
        }
    }
}

/// Pixels from image to image, or from or to one.
#[derive(Clone, Debug)]
pub(crate) struct ImageCopy {
    pub(crate) src: PixelSide,
    pub(crate) dst: PixelSide,
    pub(crate) region: [usize; 3],
}

impl ImageCopy {
    /// The copy that it is where both sides are bytes of buffers.
    pub(crate) fn as_buffers(&self) -> Option<Copy> {
        Some(Copy { src: self.src.as_buffer(self.region)?, dst: self.dst.as_buffer(self.region)? })
    }

    /// The same with what is a buffer after all as a buffer.
    pub(crate) fn sides(&self) -> (PixelSide, PixelSide) {
        let side = |side: &PixelSide| side.as_buffer(self.region).map_or_else(|| side.clone(), PixelSide::Buffer);
        (side(&self.src), side(&self.dst))
    }

    fn check_pair(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        self.check_rows(target)?;
        self.check_pictures(target)?;
        let (PixelSide::Image(src, from), PixelSide::Image(dst, into)) = (&self.src, &self.dst) else { return Ok(()) };
        if src.format() != dst.format() {
            return Err(BuildCause::ImageFormats { src: src.format(), dst: dst.format() });
        }
        let caps = target.device.caps();
        let [x, y, z] = self.region;
        let wrong = |what: &str, why: &str| {
            Err(BuildCause::NotSupported { what: what.to_owned(), why: format!("{why}: copy through a buffer") })
        };
        if src == dst {
            let apart = |dim: usize, size: usize| from[dim].abs_diff(into[dim]) >= size;
            if !(apart(0, x) || apart(1, y) || apart(2, z)) {
                let pixels = |origin: &[usize; 3]| format!("{:?} pixels from {origin:?} on", self.region);
                return Err(BuildCause::Overlap { src: pixels(from), dst: pixels(into) });
            }
            let layer = if src.shape().kind() == ImageKind::Image1dArray { 1 } else { 2 };
            let is_moved = src.shape().kind().is_array() && from[layer] != into[layer];
            if is_moved && known::mistakes_layers(caps) {
                return wrong(
                    "a copy between layers of one image",
                    "the driver takes it for an overlap, or copies other pixels",
                );
            }
        }
        let of_array = src.shape().kind() == ImageKind::Image1dArray && dst.shape().kind() != ImageKind::Image1dArray;
        if of_array && known::miscopies_1d_arrays(caps) {
            return wrong(
                "a copy from an image1d_array_t to an image of another kind",
                "the driver copies other pixels",
            );
        }
        Ok(())
    }

    fn check_pictures(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        let is_picture = |side: &PixelSide| matches!(side, PixelSide::Image(of, _) if of.shape().kind() == ImageKind::Image2d && of.is_of_buffer());
        let to_buffer = matches!(self.dst, PixelSide::Buffer(_));
        let picture = (is_picture(&self.src) && !to_buffer) || is_picture(&self.dst);
        if picture && self.region[1] > 1 && known::miscopies_pictures(target.device.caps()) {
            return Err(BuildCause::NotSupported {
                what: "a copy of several rows between an image2d_t that is made of a buffer and an image".to_owned(),
                why: "the driver copies other pixels: copy its buffer, or row by row".to_owned(),
            });
        }
        Ok(())
    }

    fn check_rows(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        let is_rows =
            |side: &PixelSide| matches!(side, PixelSide::Image(of, _) if of.shape().kind() == ImageKind::Image1dArray);
        let (src, dst) = self.sides();
        let of_buffer = matches!(src, PixelSide::Buffer(_)) || matches!(dst, PixelSide::Buffer(_));
        if of_buffer && (is_rows(&src) || is_rows(&dst)) && known::refuses_rows(target.device.caps()) {
            return Err(BuildCause::NotSupported {
                what: "a copy between an image1d_array_t and a buffer".to_owned(),
                why: "the driver refuses its layers: copy through an image2d_t".to_owned(),
            });
        }
        Ok(())
    }
}

impl Request for ImageCopy {
    type Checked = Option<<Copy as Request>::Checked>;

    fn subject(&self) -> String {
        "copy of pixels".to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<Self::Checked, BuildCause> {
        let pixel = match (&self.src, &self.dst) {
            (PixelSide::Image(image, _), _) | (_, PixelSide::Image(image, _)) => image.pixel_size(),
            (PixelSide::Buffer(_), PixelSide::Buffer(_)) => 1,
        };
        let pixels = Area { origin: [0; 3], region: self.region }.len();
        let bytes = pixels.and_then(|pixels| pixels.checked_mul(pixel)).unwrap_or(usize::MAX);
        self.src.check(target, "the source", self.region, bytes)?;
        self.dst.check(target, "the destination", self.region, bytes)?;
        self.check_pair(target)?;
        let (src, dst) = (self.src.part(self.region), self.dst.part(self.region));
        let (a, b) = (src.mem.offset_in_root() + src.offset, dst.mem.offset_in_root() + dst.offset);
        let is_one_image = matches!((&self.src, &self.dst), (PixelSide::Image(a, _), PixelSide::Image(b, _)) if a == b);
        // Between an image and the buffer that it is made of copies are undefined, whatever the ranges.
        let (from, into) = self.sides();
        let is_image = |side: &PixelSide| matches!(side, PixelSide::Image(..));
        let crosses = is_image(&from) != is_image(&into);
        if !is_one_image && src.mem.root() == dst.mem.root() {
            if a < b + dst.size && b < a + src.size {
                let range = |start: usize, of: &Region| format!("bytes {:?}", start..start + of.size);
                return Err(BuildCause::Overlap { src: range(a, &src), dst: range(b, &dst) });
            }
            if crosses {
                return Err(BuildCause::NotSupported {
                    what: "a copy between an image and the buffer that it is made of".to_owned(),
                    why: "OpenCL leaves it undefined: copy through another buffer".to_owned(),
                });
            }
        }
        self.as_buffers().map(|copy| copy.check(target)).transpose()
    }

    fn lower(self, checked: Self::Checked, state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        if let Some((copy, checked)) = self.as_buffers().zip(checked) {
            return copy.lower(checked, state, accesses);
        }
        let (src, dst) = self.sides();
        accesses.push(state.access(&src.part(self.region), Mode::Read));
        accesses.push(state.access(&dst.part(self.region), Mode::Write));
        let (src, dst) = (src.lower(state), dst.lower(state));
        Some(Op::CopyImage(Box::new(CopyImage { src, dst, region: self.region })))
    }
}

/// One colour.
#[derive(Clone, Debug)]
pub(crate) struct ImageFill {
    pub(crate) image: Image,
    pub(crate) area: Area,
    pub(crate) color: Color,
}

impl Request for ImageFill {
    type Checked = ();

    fn subject(&self) -> String {
        "fill of an image".to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        let Self { image, area, color } = self;
        check_area(target, "the destination", image, area)?;
        if image.format().class() != color.class() {
            return Err(BuildCause::ImageColor {
                format: image.format(),
                has: image.format().class(),
                given: color.class(),
            });
        }
        if image.shape().kind() == ImageKind::Image1dBuffer && known::dies_of_buffer_fills(target.device.caps()) {
            return Err(BuildCause::NotSupported {
                what: "a fill of an image1d_buffer_t".to_owned(),
                why: "this version of PoCL crashes over it: fill the buffer".to_owned(),
            });
        }
        Ok(())
    }

    fn lower(self, (): (), state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        let Self { image, area, color } = self;
        accesses.push(state.access(&image.part(&area), Mode::Write));
        let pattern = state.ir.push_bytes(&color.bytes())?;
        let dst = Place { view: state.view(&image.region().mem), offset: 0 };
        Some(Op::Fill { dst, size: packed(&image, &area), pattern, area: Some(Box::new(area)) })
    }
}

/// Host data to an image.
#[derive(Clone, Debug)]
pub(crate) struct ImageWrite {
    pub(crate) image: Image,
    pub(crate) area: Area,
    pub(crate) data: HostBytes,
}

/// Whether so many bytes from the host may go into a part of an image.
pub(crate) fn check_image_write(
    target: &Target<'_>,
    image: &Image,
    area: &Area,
    bytes: usize,
) -> Result<(), BuildCause> {
    check_area(target, "the destination", image, area)?;
    let pixels = packed(image, area);
    if pixels != bytes {
        let (left, right) = ("the data", "the destination");
        return Err(BuildCause::SizeMismatch { left, left_bytes: bytes as u64, right, right_bytes: pixels as u64 });
    }
    let region = image.region();
    forbid(&region, CL_MEM_HOST_NO_ACCESS, "CL_MEM_HOST_NO_ACCESS", "a host write")?;
    forbid(&region, CL_MEM_HOST_READ_ONLY, "CL_MEM_HOST_READ_ONLY", "a host write")
}

impl Request for ImageWrite {
    type Checked = ();

    fn subject(&self) -> String {
        "host write of an image".to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        check_image_write(target, &self.image, &self.area, self.data.len())
    }

    fn lower(self, (): (), state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        let Self { image, area, data } = self;
        accesses.push(state.access(&image.part(&area), Mode::Write));
        let (dst, id) = (Place { view: state.view(&image.region().mem), offset: 0 }, DataId(state.ir.data));
        let size = data.len();
        state.ir.data = id.0.checked_add(1)?;
        state.data.push(data);
        Some(Op::Write { dst, size, data: id, area: Some(Box::new(area)) })
    }
}

/// An image to host memory.
#[derive(Clone, Debug)]
pub(crate) struct ImageRead {
    pub(crate) image: Image,
    pub(crate) area: Area,
    /// Of the elements: alignment and size.
    pub(crate) align: usize,
    pub(crate) element: usize,
}

impl ImageRead {
    /// Bytes of the result.
    pub(crate) fn size(&self) -> usize {
        packed(&self.image, &self.area)
    }
}

impl Request for ImageRead {
    type Checked = ();

    fn subject(&self) -> String {
        "host read of an image".to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        let Self { image, area, align, element } = self;
        check_area(target, "the source", image, area)?;
        let bytes = self.size();
        if *align > Slot::ALIGN || *element == 0 || !bytes.is_multiple_of(*element) {
            return Err(BuildCause::NotSupported {
                what: format!("reading {bytes} bytes as elements of {element}, aligned to {align}"),
                why: format!("a whole number of elements is read, aligned to {} at most: read bytes", Slot::ALIGN),
            });
        }
        let region = image.region();
        forbid(&region, CL_MEM_HOST_NO_ACCESS, "CL_MEM_HOST_NO_ACCESS", "a host read")?;
        forbid(&region, CL_MEM_HOST_WRITE_ONLY, "CL_MEM_HOST_WRITE_ONLY", "a host read")
    }

    fn lower(self, (): (), state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        let size = self.size();
        let Self { image, area, .. } = self;
        accesses.push(state.access(&image.part(&area), Mode::Read));
        let (src, id) = (Place { view: state.view(&image.region().mem), offset: 0 }, ResultId(state.ir.results));
        state.ir.results = id.0.checked_add(1)?;
        state.results.push(size);
        Some(Op::Read { src, size, result: id, area: Some(Box::new(area)) })
    }
}
