//! Copies of pixels: from image to image, or between images and buffers, and what drivers get wrong about them.

use crate::cl::memory::region::Region;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::image::Image;
use crate::command::{Command, CopyImage, Pixels};
use crate::error::BuildCause;
use crate::graph::nodes::image::check_area;
use crate::graph::nodes::request::{CommandRequest, Request, Requested, Target};
use crate::graph::nodes::transfer::Copy;
use crate::graph::writer::Writer;
use crate::images::{Area, ImageKind};
use crate::ir::{Access, ById, Mode};
use crate::quirks;

/// One side of a copy of pixels.
#[derive(Clone, Debug)]
pub(crate) enum PixelSide {
    Image(Image, [usize; 3]),
    Buffer(Region),
}

impl PixelSide {
    pub(in crate::graph) fn set_origin(&mut self, to: [usize; 3]) {
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
                if !buffer.mem.is_buffer() && buffer.mem.graph_allocation().is_none() {
                    return Err(BuildCause::NotSupported {
                        what: "a copy between an image and USM or SVM".to_owned(),
                        why: "OpenCL has no such command; copy through a buffer".to_owned(),
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

    /// The bytes of this side, if it is a buffer or a part of an image that lies contiguously in a buffer.
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

    fn pixels(self) -> Pixels<Mem> {
        match self {
            Self::Image(image, origin) => Pixels::Image(image.region().mem, origin),
            Self::Buffer(buffer) => Pixels::Buffer(buffer.location()),
        }
    }
}

/// A copy of pixels between two images, or between an image and a buffer, as a request.
#[derive(Clone, Debug)]
pub(crate) struct ImageCopy {
    pub(crate) src: PixelSide,
    pub(crate) dst: PixelSide,
    pub(crate) region: [usize; 3],
}

impl ImageCopy {
    /// The equivalent copy of bytes, if both sides are bytes of buffers.
    pub(crate) fn as_buffers(&self) -> Option<Copy> {
        Some(Copy { src: self.src.as_buffer(self.region)?, dst: self.dst.as_buffer(self.region)? })
    }

    /// Both sides, with a buffer in place of each image part that lies contiguously in a buffer.
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
            Err(BuildCause::NotSupported { what: what.to_owned(), why: format!("{why}; copy through a buffer") })
        };
        if src == dst {
            let apart = |dim: usize, size: usize| from[dim].abs_diff(into[dim]) >= size;
            if !(apart(0, x) || apart(1, y) || apart(2, z)) {
                let pixels = |origin: &[usize; 3]| format!("pixels (region {:?} at origin {origin:?})", self.region);
                return Err(BuildCause::Overlap { src: pixels(from), dst: pixels(into) });
            }
            let layer = if src.shape().kind() == ImageKind::Image1dArray { 1 } else { 2 };
            let is_moved = src.shape().kind().is_array() && from[layer] != into[layer];
            if is_moved && quirks::mishandles_layer_copies(caps) {
                return wrong(
                    "a copy between layers of one image",
                    "the driver reports an overlap, or copies wrong pixels",
                );
            }
        }
        let of_array = src.shape().kind() == ImageKind::Image1dArray && dst.shape().kind() != ImageKind::Image1dArray;
        if of_array && quirks::miscopies_1d_arrays(caps) {
            return wrong(
                "a copy from an image1d_array_t to an image of another kind",
                "the driver copies wrong pixels",
            );
        }
        Ok(())
    }

    fn check_pictures(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        let is_picture = |side: &PixelSide| match side {
            PixelSide::Image(of, _) => of.shape().kind() == ImageKind::Image2d && of.region().mem.is_image_of_buffer(),
            PixelSide::Buffer(_) => false,
        };
        let (src, dst) = self.sides();
        let picture = is_picture(&dst) || (is_picture(&src) && !matches!(dst, PixelSide::Buffer(_)));
        if picture && self.region[1] > 1 && quirks::miscopies_images_of_buffers(target.device.caps()) {
            return Err(BuildCause::NotSupported {
                what: "a copy of several rows to an image2d_t that is made of a buffer, or from one to an image"
                    .to_owned(),
                why: "the driver copies wrong pixels; copy the buffer of the image, or copy row by row".to_owned(),
            });
        }
        Ok(())
    }

    fn check_rows(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        let is_rows =
            |side: &PixelSide| matches!(side, PixelSide::Image(of, _) if of.shape().kind() == ImageKind::Image1dArray);
        let (src, dst) = self.sides();
        let of_buffer = matches!(src, PixelSide::Buffer(_)) || matches!(dst, PixelSide::Buffer(_));
        if of_buffer && (is_rows(&src) || is_rows(&dst)) && quirks::rejects_1d_array_layers(target.device.caps()) {
            return Err(BuildCause::NotSupported {
                what: "a copy between an image1d_array_t and a buffer".to_owned(),
                why: "the driver refuses the layers of the image; copy through an image2d_t".to_owned(),
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
        // Copies between an image and the buffer that the image is made of are undefined, whatever the ranges.
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
                    why: "OpenCL leaves the result undefined; copy through another buffer".to_owned(),
                });
            }
        }
        self.as_buffers().map(|copy| copy.check(target)).transpose()
    }

    fn lower(self, checked: Self::Checked, to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        self.command(checked).lower(to, accesses)
    }
}

impl CommandRequest for ImageCopy {
    fn command(self, checked: Self::Checked) -> Requested {
        if let Some((copy, checked)) = self.as_buffers().zip(checked) {
            return copy.command(checked);
        }
        let (src, dst) = self.sides();
        let uses = [(src.part(self.region), Mode::Read), (dst.part(self.region), Mode::Write)];
        let copy = CopyImage { src: src.pixels(), dst: dst.pixels(), region: self.region };
        Requested::new(Command::CopyImage(copy), uses)
    }
}
