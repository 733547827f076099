//! Nodes that copy, fill, read and write images.

use std::marker::PhantomData;

use opencl_sys::{CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY};

use crate::cl::memory::host::{Element, HostBytes, HostData, Slot};
use crate::cl::memory::region::{AsDestination, AsSource};
use crate::cl::objects::image::Image;
use crate::command::Command;
use crate::error::{BuildCause, Result};
use crate::graph::nodes::argument_checks::check_on_device;
use crate::graph::nodes::image_copy::{ImageCopy, PixelSide};
use crate::graph::nodes::request::{CommandRequest, Request, Requested, Target};
use crate::graph::nodes::transfer::{HostRead, HostWrite, forbid};
use crate::graph::writer::Writer;
use crate::graph::{After, Graph, after_methods};
use crate::handles::Node;
use crate::images::{Area, Color, ImageKind};
use crate::ir::{Access, ById, Mode};
use crate::quirks;

impl Graph {
    /// Starts a copy between images: of all pixels, or of the part that [`src_origin`](ImageCopyNode::src_origin),
    /// [`dst_origin`](ImageCopyNode::dst_origin) and [`region`](ImageCopyNode::region) name.
    ///
    /// The images have the same format, and may be of different kinds.
    #[doc(alias = "clEnqueueCopyImage")]
    #[doc(alias = "clCommandCopyImageKHR")]
    pub fn copy_image(&self, src: &Image, dst: &Image) -> ImageCopyNode<'_> {
        let copy = ImageCopy {
            src: PixelSide::Image(src.clone(), [0; 3]),
            dst: PixelSide::Image(dst.clone(), [0; 3]),
            region: src.shape().region(),
        };
        ImageCopyNode { graph: self, after: After::default(), copy }
    }

    /// Starts a copy of an image's pixels to a buffer, packed, from its first byte on.
    ///
    /// The buffer, or the slice of it, has exactly as many bytes as the pixels. Memory with an address is refused,
    /// because OpenCL has no such command.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Image, ImageFormat, ImageShape, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// # if queue.device().caps().images.is_none() { return Ok(()) }
    /// let shape = ImageShape::image_2d(2, 2);
    /// let image = Image::with_data(&queue, shape, ImageFormat::RGBA_U8, &[[1_u8, 2, 3, 4]; 4])?;
    /// let packed = Buffer::<u8>::new(&queue, 16)?;
    /// let graph = Graph::new(&queue)?;
    /// graph.copy_image_to_buffer(&image, &packed).add()?;
    /// let bytes = graph.read(&packed).add()?;
    /// let run = graph.finalize(Finalize::new())?.submit(&queue)?;
    /// run.wait()?;
    /// assert_eq!(run.get(&bytes)?[..4], [1, 2, 3, 4]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "clEnqueueCopyImageToBuffer")]
    #[doc(alias = "clCommandCopyImageToBufferKHR")]
    pub fn copy_image_to_buffer<T>(&self, src: &Image, dst: &impl AsDestination<T>) -> ImageCopyNode<'_> {
        let copy = ImageCopy {
            src: PixelSide::Image(src.clone(), [0; 3]),
            dst: PixelSide::Buffer(dst.region()),
            region: src.shape().region(),
        };
        ImageCopyNode { graph: self, after: After::default(), copy }
    }

    /// Starts a copy of packed pixels from a buffer to an image. Otherwise as
    /// [`copy_image_to_buffer`](Self::copy_image_to_buffer).
    #[doc(alias = "clEnqueueCopyBufferToImage")]
    #[doc(alias = "clCommandCopyBufferToImageKHR")]
    pub fn copy_buffer_to_image<T>(&self, src: &impl AsSource<T>, dst: &Image) -> ImageCopyNode<'_> {
        let copy = ImageCopy {
            src: PixelSide::Buffer(src.region()),
            dst: PixelSide::Image(dst.clone(), [0; 3]),
            region: dst.shape().region(),
        };
        ImageCopyNode { graph: self, after: After::default(), copy }
    }

    /// Starts a fill of an image with one colour: red, green, blue and alpha, whatever the order of the format.
    ///
    /// The colour is `[f32; 4]` for normalized and floating-point formats, `[i32; 4]` for signed and `[u32; 4]` for
    /// unsigned formats.
    #[doc(alias = "clEnqueueFillImage")]
    #[doc(alias = "clCommandFillImageKHR")]
    pub fn fill_image(&self, image: &Image, color: impl Into<Color>) -> ImageFillNode<'_> {
        let fill = ImageFill { image: image.clone(), area: whole(image), color: color.into() };
        ImageFillNode { graph: self, after: After::default(), fill }
    }

    /// Starts a host write of an image: packed pixels, row by row, exactly as many bytes as the part has. Otherwise as
    /// [`write`](Self::write).
    #[doc(alias = "clEnqueueWriteImage")]
    pub fn write_image<T: Element>(&self, image: &Image, data: impl Into<HostData<T>>) -> ImageWriteNode<'_, T> {
        let write = ImageWrite { image: image.clone(), area: whole(image), data: data.into().into_bytes() };
        ImageWriteNode { graph: self, after: After::default(), write, element: PhantomData }
    }

    /// Starts a host read of an image: packed pixels, row by row.
    ///
    /// The part must be a whole number of elements, for example `[u8; 4]` for the pixels of
    /// [`ImageFormat::RGBA_U8`](crate::ImageFormat::RGBA_U8), or `u8` for bytes. Otherwise as [`read`](Self::read).
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

    /// Sets where the copy starts in the source image: pixel; row or layer; slice or layer.
    ///
    /// The default is `[0, 0, 0]`. It has no effect where the source is a buffer: name a part of the buffer by `slice`.
    pub fn src_origin(mut self, origin: [usize; 3]) -> Self {
        self.copy.src.set_origin(origin);
        self
    }

    /// Sets where the copy starts in the destination image: pixel; row or layer; slice or layer.
    ///
    /// The default is `[0, 0, 0]`. It has no effect where the destination is a buffer: name a part of the buffer by
    /// `slice`.
    pub fn dst_origin(mut self, origin: [usize; 3]) -> Self {
        self.copy.dst.set_origin(origin);
        self
    }

    /// Sets how much is copied: width; height, or layers of rows; depth, or layers of pictures; 1 where the image has
    /// no such dimension.
    ///
    /// The default is the whole source image, or the whole destination image where the source is a buffer.
    pub fn region(mut self, region: [usize; 3]) -> Self {
        self.copy.region = region;
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::ImageArea`], [`BuildCause::ImageFormats`], [`BuildCause::Overlap`], [`BuildCause::SizeMismatch`],
    /// [`BuildCause::OtherContext`]; [`BuildCause::NotSupported`] for copies that are known to go wrong on the driver;
    /// and those of [`EmptyNode::add`](crate::graph::EmptyNode::add).
    pub fn add(self) -> Result<Node> {
        Ok(self.graph.insert(self.copy, &self.after)?)
    }

    /// Replaces a node that copies pixels between the same kinds of memory by this copy. Edges stay, and executables
    /// get the change when they are updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and those of [`CopyNode::replace`](crate::graph::CopyNode::replace). After an error
    /// nothing has changed.
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

    /// Sets the part that is filled: where it starts, and how much it is.
    ///
    /// Both are in pixels of a row; rows, or layers of rows; slices, or layers of pictures. They are 0 and 1 where the
    /// image has no such dimension. The default is the whole image.
    pub fn area(mut self, origin: [usize; 3], region: [usize; 3]) -> Self {
        self.fill.area = Area { origin, region };
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::ImageArea`], [`BuildCause::ImageColor`], [`BuildCause::OtherContext`];
    /// [`BuildCause::NotSupported`] on a device that does not support the image, or whose driver crashes on the fill;
    /// and those of [`EmptyNode::add`](crate::graph::EmptyNode::add).
    pub fn add(self) -> Result<Node> {
        Ok(self.graph.insert(self.fill, &self.after)?)
    }

    /// Replaces a node that fills an image by this fill. Edges stay, and executables get the change when they are
    /// updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and those of [`CopyNode::replace`](crate::graph::CopyNode::replace). After an error
    /// nothing has changed.
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

    /// Sets the part that is written, as [`ImageFillNode::area`] does. The default is the whole image.
    pub fn area(mut self, origin: [usize; 3], region: [usize; 3]) -> Self {
        self.write.area = Area { origin, region };
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::ImageArea`], [`BuildCause::SizeMismatch`], [`BuildCause::AccessForbidden`],
    /// [`BuildCause::OtherContext`]; [`BuildCause::NotSupported`] on a device that does not support the image; and
    /// those of [`EmptyNode::add`](crate::graph::EmptyNode::add).
    pub fn add(self) -> Result<HostWrite<T>> {
        Ok(HostWrite::of(self.graph.insert(self.write, &self.after)?))
    }

    /// Replaces a node that writes the same number of bytes to an image by this write. Edges stay, and executables get
    /// the change when they are updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and those of [`CopyNode::replace`](crate::graph::CopyNode::replace). After an error
    /// nothing has changed.
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

    /// Sets the part that is read, as [`ImageFillNode::area`] does. The default is the whole image.
    pub fn area(mut self, origin: [usize; 3], region: [usize; 3]) -> Self {
        self.read.area = Area { origin, region };
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::ImageArea`], [`BuildCause::AccessForbidden`], [`BuildCause::OtherContext`];
    /// [`BuildCause::NotSupported`] for elements that do not match the part; and those of
    /// [`EmptyNode::add`](crate::graph::EmptyNode::add).
    pub fn add(self) -> Result<HostRead<T>> {
        Ok(HostRead::of(self.graph.insert(self.read, &self.after)?))
    }

    /// Replaces a node that reads the same number of bytes of an image by this read. Edges stay, and executables get
    /// the change when they are updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and those of [`CopyNode::replace`](crate::graph::CopyNode::replace). After an error
    /// nothing has changed.
    pub fn replace(self, output: &HostRead<T>) -> Result<()> {
        self.graph.replace(output.node(), self.read, &self.after)
    }
}

/// Checks that a part lies inside an image, and that the image belongs to the context.
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

/// The packed bytes of a part that lies inside the image.
fn packed(image: &Image, area: &Area) -> usize {
    area.len().unwrap_or(0).saturating_mul(image.pixel_size())
}

/// A fill of a part of an image with one colour, as a request.
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
        if image.shape().kind() == ImageKind::Image1dBuffer
            && quirks::crashes_filling_buffer_images(target.device.caps())
        {
            return Err(BuildCause::NotSupported {
                what: "a fill of an image1d_buffer_t".to_owned(),
                why: "this version of PoCL crashes; fill the buffer of the image".to_owned(),
            });
        }
        Ok(())
    }

    fn lower(self, checked: Self::Checked, to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        self.command(checked).lower(to, accesses)
    }
}

impl CommandRequest for ImageFill {
    fn command(self, (): ()) -> Requested {
        let Self { image, area, color } = self;
        let (dst, size, pattern) = (image.region().location(), packed(&image, &area), color.bytes().to_vec());
        let command = Command::Fill { dst, size, pattern, area: Some(area) };
        Requested::new(command, [(image.part(&area), Mode::Write)])
    }
}

/// A write of host data to an image, as a request.
#[derive(Clone, Debug)]
pub(crate) struct ImageWrite {
    pub(crate) image: Image,
    pub(crate) area: Area,
    pub(crate) data: HostBytes,
}

/// Checks that the host may write so many bytes to a part of an image.
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
    forbid(&region, &"the image", CL_MEM_HOST_NO_ACCESS, "CL_MEM_HOST_NO_ACCESS", "a host write")?;
    forbid(&region, &"the image", CL_MEM_HOST_READ_ONLY, "CL_MEM_HOST_READ_ONLY", "a host write")
}

impl Request for ImageWrite {
    type Checked = ();

    fn subject(&self) -> String {
        "host write of an image".to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        check_image_write(target, &self.image, &self.area, self.data.len())
    }

    fn lower(self, checked: Self::Checked, to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        self.command(checked).lower(to, accesses)
    }
}

impl CommandRequest for ImageWrite {
    fn command(self, (): ()) -> Requested {
        let Self { image, area, data } = self;
        let (dst, size) = (image.region().location(), data.len());
        let command = Command::Write { dst, size, data, area: Some(area) };
        Requested::new(command, [(image.part(&area), Mode::Write)])
    }
}

/// A read of an image into host memory, as a request.
#[derive(Clone, Debug)]
pub(crate) struct ImageRead {
    pub(crate) image: Image,
    pub(crate) area: Area,
    /// The alignment and the size of the elements.
    pub(crate) align: usize,
    pub(crate) element: usize,
}

impl ImageRead {
    /// The size of the result in bytes.
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
                what: format!(
                    "reading {bytes} bytes as elements of {element} bytes with an alignment of {align} \
                               bytes"
                ),
                why: format!(
                    "a result has a whole number of elements, with an alignment of at most {} bytes; read bytes (`u8`)",
                    Slot::ALIGN
                ),
            });
        }
        let region = image.region();
        forbid(&region, &"the image", CL_MEM_HOST_NO_ACCESS, "CL_MEM_HOST_NO_ACCESS", "a host read")?;
        forbid(&region, &"the image", CL_MEM_HOST_WRITE_ONLY, "CL_MEM_HOST_WRITE_ONLY", "a host read")
    }

    fn lower(self, checked: Self::Checked, to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        self.command(checked).lower(to, accesses)
    }
}

impl CommandRequest for ImageRead {
    fn command(self, (): ()) -> Requested {
        let size = self.size();
        let Self { image, area, .. } = self;
        let command = Command::Read { src: image.region().location(), size, output: (), area: Some(area) };
        Requested::new(command, [(image.part(&area), Mode::Read)])
    }
}
