//! The plain data of images: formats, kinds, shapes, samplers and colours.

use std::fmt;

use opencl_sys as cl;

/// Declares an enum over OpenCL's numbers, and displays each with its name in OpenCL's headers.
macro_rules! numbers {
    ($(#[$doc:meta])* $name:ident { $( $(#[$vdoc:meta])* $variant:ident = $number:ident $text:literal; )* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$vdoc])* $variant, )*
            /// Any other value, with its number.
            Other(u32),
        }

        impl $name {
            pub(crate) fn number(self) -> u32 {
                match self {
                    $( Self::$variant => cl::$number, )*
                    Self::Other(number) => number,
                }
            }

            pub(crate) fn of(number: u32) -> Self {
                match number {
                    $( cl::$number => Self::$variant, )*
                    other => Self::Other(other),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $( Self::$variant => f.write_str($text), )*
                    Self::Other(number) => write!(f, "{number:#x}"),
                }
            }
        }
    };
}

numbers! {
    /// Which channels a pixel has (`cl_channel_order`).
    ChannelOrder {
        /// Red.
        R = CL_R "R";
        /// Alpha.
        A = CL_A "A";
        /// Red and green.
        Rg = CL_RG "RG";
        /// Red and alpha.
        Ra = CL_RA "RA";
        /// Red, green and blue.
        Rgb = CL_RGB "RGB";
        /// Red, green, blue and alpha.
        Rgba = CL_RGBA "RGBA";
        /// Blue, green, red and alpha.
        Bgra = CL_BGRA "BGRA";
        /// Alpha, red, green and blue.
        Argb = CL_ARGB "ARGB";
        /// One value for all four channels.
        Intensity = CL_INTENSITY "INTENSITY";
        /// One value for red, green and blue.
        Luminance = CL_LUMINANCE "LUMINANCE";
        /// A depth value.
        Depth = CL_DEPTH "DEPTH";
        /// Red, green and blue with the sRGB curve, and alpha.
        SRgba = CL_sRGBA "sRGBA";
    }
}

numbers! {
    /// How a channel is stored (`cl_channel_type`).
    ChannelType {
        /// An 8-bit integer that stands for -1 to 1.
        SnormInt8 = CL_SNORM_INT8 "SNORM_INT8";
        /// A 16-bit integer that stands for -1 to 1.
        SnormInt16 = CL_SNORM_INT16 "SNORM_INT16";
        /// An 8-bit integer that stands for 0 to 1.
        UnormInt8 = CL_UNORM_INT8 "UNORM_INT8";
        /// A 16-bit integer that stands for 0 to 1.
        UnormInt16 = CL_UNORM_INT16 "UNORM_INT16";
        /// Three channels of 5, 6 and 5 bits in 16 bits.
        UnormShort565 = CL_UNORM_SHORT_565 "UNORM_SHORT_565";
        /// Three channels of 5 bits each in 16 bits.
        UnormShort555 = CL_UNORM_SHORT_555 "UNORM_SHORT_555";
        /// Three channels of 10 bits each in 32 bits.
        UnormInt101010 = CL_UNORM_INT_101010 "UNORM_INT_101010";
        /// `i8`.
        SignedInt8 = CL_SIGNED_INT8 "SIGNED_INT8";
        /// `i16`.
        SignedInt16 = CL_SIGNED_INT16 "SIGNED_INT16";
        /// `i32`.
        SignedInt32 = CL_SIGNED_INT32 "SIGNED_INT32";
        /// `u8`.
        UnsignedInt8 = CL_UNSIGNED_INT8 "UNSIGNED_INT8";
        /// `u16`.
        UnsignedInt16 = CL_UNSIGNED_INT16 "UNSIGNED_INT16";
        /// `u32`.
        UnsignedInt32 = CL_UNSIGNED_INT32 "UNSIGNED_INT32";
        /// 16-bit floating point.
        HalfFloat = CL_HALF_FLOAT "HALF_FLOAT";
        /// `f32`.
        Float = CL_FLOAT "FLOAT";
    }
}

/// The format of a pixel (`cl_image_format`). These two fields are all that it will ever have.
///
/// [`Image::formats`](crate::Image::formats) lists the formats that a device supports.
///
/// ```
/// use clgraph::ImageFormat;
/// assert_eq!(ImageFormat::RGBA_F32.to_string(), "RGBA FLOAT");
/// assert_eq!(ImageFormat::RGBA_F32.pixel_size(), Some(16));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImageFormat {
    /// Which channels a pixel has.
    pub order: ChannelOrder,
    /// How each channel is stored.
    pub channel: ChannelType,
}

impl ImageFormat {
    /// Four bytes, each for 0 to 1.
    pub const RGBA_U8_NORM: Self = Self::new(ChannelOrder::Rgba, ChannelType::UnormInt8);
    /// Four bytes, each for 0 to 1, in the order blue, green, red, alpha.
    pub const BGRA_U8_NORM: Self = Self::new(ChannelOrder::Bgra, ChannelType::UnormInt8);
    /// Four `u8`.
    pub const RGBA_U8: Self = Self::new(ChannelOrder::Rgba, ChannelType::UnsignedInt8);
    /// Four `u32`.
    pub const RGBA_U32: Self = Self::new(ChannelOrder::Rgba, ChannelType::UnsignedInt32);
    /// Four `i32`.
    pub const RGBA_I32: Self = Self::new(ChannelOrder::Rgba, ChannelType::SignedInt32);
    /// Four `f32`.
    pub const RGBA_F32: Self = Self::new(ChannelOrder::Rgba, ChannelType::Float);
    /// One byte, for 0 to 1.
    pub const R_U8_NORM: Self = Self::new(ChannelOrder::R, ChannelType::UnormInt8);
    /// One `f32`.
    pub const R_F32: Self = Self::new(ChannelOrder::R, ChannelType::Float);

    /// Makes a format from its channels and the way each channel is stored. A device need not support it.
    #[must_use]
    pub const fn new(order: ChannelOrder, channel: ChannelType) -> Self {
        Self { order, channel }
    }

    /// Returns the size of a pixel in bytes, or `None` if this version of clgraph does not know the format.
    #[must_use]
    pub fn pixel_size(self) -> Option<usize> {
        let channels = match self.order {
            ChannelOrder::R
            | ChannelOrder::A
            | ChannelOrder::Intensity
            | ChannelOrder::Luminance
            | ChannelOrder::Depth => 1,
            ChannelOrder::Rg | ChannelOrder::Ra => 2,
            ChannelOrder::Rgb => 3,
            ChannelOrder::Rgba | ChannelOrder::Bgra | ChannelOrder::Argb | ChannelOrder::SRgba => 4,
            ChannelOrder::Other(_) => return None,
        };
        Some(match self.channel {
            ChannelType::SnormInt8 | ChannelType::UnormInt8 | ChannelType::SignedInt8 | ChannelType::UnsignedInt8 => {
                channels
            }
            ChannelType::SnormInt16
            | ChannelType::UnormInt16
            | ChannelType::SignedInt16
            | ChannelType::UnsignedInt16
            | ChannelType::HalfFloat => 2 * channels,
            ChannelType::SignedInt32 | ChannelType::UnsignedInt32 | ChannelType::Float => 4 * channels,
            ChannelType::UnormShort565 | ChannelType::UnormShort555 => 2,
            ChannelType::UnormInt101010 => 4,
            ChannelType::Other(_) => return None,
        })
    }

    /// Returns which kind of [`Color`] this format takes.
    pub(crate) fn class(self) -> &'static str {
        match self.channel {
            ChannelType::SignedInt8 | ChannelType::SignedInt16 | ChannelType::SignedInt32 => "signed integers",
            ChannelType::UnsignedInt8 | ChannelType::UnsignedInt16 | ChannelType::UnsignedInt32 => "unsigned integers",
            _ => "floating-point numbers",
        }
    }
}

impl fmt::Display for ImageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.order, self.channel)
    }
}

/// The kinds of images, as in the image types of OpenCL C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ImageKind {
    /// `image1d_t`
    Image1d,
    /// `image1d_buffer_t`: an image whose pixels are the content of a buffer.
    Image1dBuffer,
    /// `image1d_array_t`
    Image1dArray,
    /// `image2d_t`
    Image2d,
    /// `image2d_array_t`
    Image2dArray,
    /// `image3d_t`
    Image3d,
}

impl ImageKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Image1d, Self::Image1dBuffer, Self::Image1dArray, Self::Image2d, Self::Image2dArray, Self::Image3d];

    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Image1d => cl::CL_MEM_OBJECT_IMAGE1D,
            Self::Image1dBuffer => cl::CL_MEM_OBJECT_IMAGE1D_BUFFER,
            Self::Image1dArray => cl::CL_MEM_OBJECT_IMAGE1D_ARRAY,
            Self::Image2d => cl::CL_MEM_OBJECT_IMAGE2D,
            Self::Image2dArray => cl::CL_MEM_OBJECT_IMAGE2D_ARRAY,
            Self::Image3d => cl::CL_MEM_OBJECT_IMAGE3D,
        }
    }

    pub(crate) fn of(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Returns whether the last size of this kind is a number of layers.
    #[must_use]
    pub fn is_array(self) -> bool {
        matches!(self, Self::Image1dArray | Self::Image2dArray)
    }

    /// Returns the name of the type in OpenCL C for this kind and a format.
    pub(crate) fn type_name(self, format: ImageFormat) -> &'static str {
        match (self, format.order) {
            (Self::Image2d, ChannelOrder::Depth) => "image2d_depth_t",
            (Self::Image2dArray, ChannelOrder::Depth) => "image2d_array_depth_t",
            (kind, _) => kind.c_name(),
        }
    }

    fn c_name(self) -> &'static str {
        match self {
            Self::Image1d => "image1d_t",
            Self::Image1dBuffer => "image1d_buffer_t",
            Self::Image1dArray => "image1d_array_t",
            Self::Image2d => "image2d_t",
            Self::Image2dArray => "image2d_array_t",
            Self::Image3d => "image3d_t",
        }
    }
}

impl fmt::Display for ImageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.c_name())
    }
}

/// The kind of an image and its sizes in pixels and layers.
///
/// ```
/// use clgraph::{ImageKind, ImageShape};
/// let shape = ImageShape::array_2d(640, 480, 3);
/// assert_eq!((shape.kind(), shape.region()), (ImageKind::Image2dArray, [640, 480, 3]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageShape {
    kind: ImageKind,
    region: [usize; 3],
}

impl ImageShape {
    pub(crate) fn new(kind: ImageKind, region: [usize; 3]) -> Self {
        Self { kind, region }
    }

    /// Returns the shape of an `image1d_t`: a row of `width` pixels.
    #[must_use]
    pub fn image_1d(width: usize) -> Self {
        Self::new(ImageKind::Image1d, [width, 1, 1])
    }

    /// Returns the shape of an `image1d_array_t`: `layers` independent rows of `width` pixels.
    #[must_use]
    pub fn array_1d(width: usize, layers: usize) -> Self {
        Self::new(ImageKind::Image1dArray, [width, layers, 1])
    }

    /// Returns the shape of an `image2d_t`: `width` x `height` pixels.
    #[must_use]
    pub fn image_2d(width: usize, height: usize) -> Self {
        Self::new(ImageKind::Image2d, [width, height, 1])
    }

    /// Returns the shape of an `image2d_array_t`: `layers` independent images of `width` x `height` pixels.
    #[must_use]
    pub fn array_2d(width: usize, height: usize, layers: usize) -> Self {
        Self::new(ImageKind::Image2dArray, [width, height, layers])
    }

    /// Returns the shape of an `image3d_t`: `width` x `height` x `depth` pixels.
    #[must_use]
    pub fn image_3d(width: usize, height: usize, depth: usize) -> Self {
        Self::new(ImageKind::Image3d, [width, height, depth])
    }

    /// Returns the kind: the number of dimensions, and whether it is an array.
    #[must_use]
    pub fn kind(self) -> ImageKind {
        self.kind
    }

    /// Returns the region of the whole image, in the order in which commands take regions: the width; the height, or
    /// the number of layers of a one-dimensional array; the depth, or the number of layers of a two-dimensional array.
    /// A dimension that the image does not have is 1.
    #[must_use]
    pub fn region(self) -> [usize; 3] {
        self.region
    }
}

impl fmt::Display for ImageShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.region;
        match self.kind {
            ImageKind::Image1d | ImageKind::Image1dBuffer => write!(f, "{} of {x} pixels", self.kind),
            ImageKind::Image1dArray => write!(f, "{} of {y} layers of {x} pixels", self.kind),
            ImageKind::Image2d => write!(f, "{} of {x} x {y} pixels", self.kind),
            ImageKind::Image2dArray => write!(f, "{} of {z} layers of {x} x {y} pixels", self.kind),
            ImageKind::Image3d => write!(f, "{} of {x} x {y} x {z} pixels", self.kind),
        }
    }
}

/// A colour of four channels, with which an image is filled. The variant must match the format of the image; normalized
/// formats take floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Color {
    /// For floating-point and normalized formats.
    Float([f32; 4]),
    /// For signed integer formats.
    Int([i32; 4]),
    /// For unsigned integer formats.
    Uint([u32; 4]),
}

impl Color {
    pub(crate) fn bytes(self) -> [u8; 16] {
        match self {
            Self::Float(channels) => bytemuck::cast(channels),
            Self::Int(channels) => bytemuck::cast(channels),
            Self::Uint(channels) => bytemuck::cast(channels),
        }
    }

    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Float(_) => "floating-point numbers",
            Self::Int(_) => "signed integers",
            Self::Uint(_) => "unsigned integers",
        }
    }
}

impl From<[f32; 4]> for Color {
    fn from(channels: [f32; 4]) -> Self {
        Self::Float(channels)
    }
}

impl From<[i32; 4]> for Color {
    fn from(channels: [i32; 4]) -> Self {
        Self::Int(channels)
    }
}

impl From<[u32; 4]> for Color {
    fn from(channels: [u32; 4]) -> Self {
        Self::Uint(channels)
    }
}

/// What a sampler returns for coordinates outside the image (`cl_addressing_mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Addressing {
    /// Undefined: the program must not read there (`CL_ADDRESS_NONE`).
    None,
    /// The nearest pixel of the image (`CL_ADDRESS_CLAMP_TO_EDGE`).
    #[default]
    ClampToEdge,
    /// The border colour (`CL_ADDRESS_CLAMP`): zero in all channels, with an alpha of one if the format has no alpha.
    Clamp,
    /// The image is repeated (`CL_ADDRESS_REPEAT`). Only with normalized coordinates.
    Repeat,
    /// The image and its mirror image alternate (`CL_ADDRESS_MIRRORED_REPEAT`). Only with normalized coordinates.
    MirroredRepeat,
}

impl Addressing {
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::None => cl::CL_ADDRESS_NONE,
            Self::ClampToEdge => cl::CL_ADDRESS_CLAMP_TO_EDGE,
            Self::Clamp => cl::CL_ADDRESS_CLAMP,
            Self::Repeat => cl::CL_ADDRESS_REPEAT,
            Self::MirroredRepeat => cl::CL_ADDRESS_MIRRORED_REPEAT,
        }
    }
}

impl fmt::Display for Addressing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::ClampToEdge => "clamp to edge",
            Self::Clamp => "clamp",
            Self::Repeat => "repeat",
            Self::MirroredRepeat => "mirrored repeat",
        })
    }
}

/// What a sampler returns for coordinates between pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Filter {
    /// The nearest pixel (`CL_FILTER_NEAREST`).
    #[default]
    Nearest,
    /// The mean of the nearest pixels, weighted by distance (`CL_FILTER_LINEAR`).
    Linear,
}

impl Filter {
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Nearest => cl::CL_FILTER_NEAREST,
            Self::Linear => cl::CL_FILTER_LINEAR,
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nearest => "nearest",
            Self::Linear => "linear",
        })
    }
}

/// A region of an image. The last size of an image array counts layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) origin: [usize; 3],
    pub(crate) region: [usize; 3],
}

impl Area {
    pub(crate) fn is_empty(&self) -> bool {
        self.region.contains(&0)
    }

    /// Returns the number of pixels, or `None` if it overflows.
    pub(crate) fn len(&self) -> Option<usize> {
        self.region.iter().try_fold(1_usize, |all, size| all.checked_mul(*size))
    }
}

/// The shape and format of an image, and the layout of its pixels in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageInfo {
    pub(crate) shape: ImageShape,
    pub(crate) format: ImageFormat,
    pub(crate) pixel: usize,
    /// Bytes from row to row, and from slice or layer to layer. For an image with its own memory, both are those of
    /// packed pixels.
    pub(crate) row: usize,
    pub(crate) slice: usize,
    /// Whether the image is made of a buffer.
    pub(crate) of_buffer: bool,
}

impl ImageInfo {
    /// Returns the layout of an image that has its own memory.
    pub(crate) fn packed(shape: ImageShape, format: ImageFormat, pixel: usize) -> Option<Self> {
        let [x, y, _] = shape.region;
        let row = x.checked_mul(pixel)?;
        Some(Self { shape, format, pixel, row, slice: row.checked_mul(y)?, of_buffer: false })
    }

    /// Returns the size of the whole image in bytes.
    pub(crate) fn size(&self) -> Option<usize> {
        self.end(&Area { origin: [0; 3], region: self.shape.region })
    }

    /// Returns the range of bytes from the first to the last pixel of an area, which must lie inside and not be empty.
    pub(crate) fn range(&self, area: &Area) -> std::ops::Range<usize> {
        let [x, y, z] = area.origin;
        x * self.pixel + y * self.row + z * self.slice..self.end(area).unwrap_or(usize::MAX)
    }

    fn end(&self, area: &Area) -> Option<usize> {
        let last = |dim: usize| Some(area.origin[dim].checked_add(area.region[dim])?.saturating_sub(1));
        let start = last(1)?.checked_mul(self.row)?.checked_add(last(2)?.checked_mul(self.slice)?)?;
        start.checked_add(last(0)?.checked_add(1)?.checked_mul(self.pixel)?)
    }
}

/// How kernels use an image. The formats that a device supports depend on this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImageAccess {
    /// Kernels only read the image (`read_only`, `CL_MEM_READ_ONLY`).
    Read,
    /// Kernels only write the image (`write_only`, `CL_MEM_WRITE_ONLY`).
    Write,
    /// Some kernels read the image, and other kernels write it (`CL_MEM_READ_WRITE`).
    ReadWrite,
    /// One kernel both reads and writes the image (`read_write`, `CL_MEM_KERNEL_READ_AND_WRITE`).
    ReadWriteInKernel,
}
