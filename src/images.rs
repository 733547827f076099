//! What images are made of, as plain data: formats, kinds and shapes, samplers, colours.

use std::fmt;

use opencl_sys as cl;

/// Declares an enum over OpenCL's numbers, with the names of the headers.
macro_rules! numbers {
    ($(#[$doc:meta])* $name:ident { $( $(#[$vdoc:meta])* $variant:ident = $number:ident $text:literal; )* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$vdoc])* $variant, )*
            /// Another one, by its number.
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
        /// Blue first.
        Bgra = CL_BGRA "BGRA";
        /// Alpha first.
        Argb = CL_ARGB "ARGB";
        /// One number for all four.
        Intensity = CL_INTENSITY "INTENSITY";
        /// One number for red, green and blue.
        Luminance = CL_LUMINANCE "LUMINANCE";
        /// A depth.
        Depth = CL_DEPTH "DEPTH";
        /// Red, green and blue with the curve of sRGB, and alpha.
        SRgba = CL_sRGBA "sRGBA";
    }
}

numbers! {
    /// How a channel is stored (`cl_channel_type`).
    ChannelType {
        /// 8 bits for -1 to 1.
        SnormInt8 = CL_SNORM_INT8 "SNORM_INT8";
        /// 16 bits for -1 to 1.
        SnormInt16 = CL_SNORM_INT16 "SNORM_INT16";
        /// 8 bits for 0 to 1.
        UnormInt8 = CL_UNORM_INT8 "UNORM_INT8";
        /// 16 bits for 0 to 1.
        UnormInt16 = CL_UNORM_INT16 "UNORM_INT16";
        /// 5, 6 and 5 bits in 16.
        UnormShort565 = CL_UNORM_SHORT_565 "UNORM_SHORT_565";
        /// 5, 5 and 5 bits in 16.
        UnormShort555 = CL_UNORM_SHORT_555 "UNORM_SHORT_555";
        /// 10, 10 and 10 bits in 32.
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

/// What a pixel is. Which formats a device has, [`Image::formats`](crate::Image::formats) tells. Its two fields are all that
/// OpenCL has (`cl_image_format`).
///
/// ```
/// use clgraph::ImageFormat;
/// assert_eq!(ImageFormat::RGBA_F32.to_string(), "RGBA FLOAT");
/// assert_eq!(ImageFormat::RGBA_F32.pixel_size(), Some(16));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImageFormat {
    /// Its channels.
    pub order: ChannelOrder,
    /// How each is stored.
    pub channel: ChannelType,
}

impl ImageFormat {
    /// Four bytes for 0 to 1.
    pub const RGBA_U8_NORM: Self = Self::new(ChannelOrder::Rgba, ChannelType::UnormInt8);
    /// Four bytes for 0 to 1, blue first.
    pub const BGRA_U8_NORM: Self = Self::new(ChannelOrder::Bgra, ChannelType::UnormInt8);
    /// Four `u8`.
    pub const RGBA_U8: Self = Self::new(ChannelOrder::Rgba, ChannelType::UnsignedInt8);
    /// Four `u32`.
    pub const RGBA_U32: Self = Self::new(ChannelOrder::Rgba, ChannelType::UnsignedInt32);
    /// Four `i32`.
    pub const RGBA_I32: Self = Self::new(ChannelOrder::Rgba, ChannelType::SignedInt32);
    /// Four `f32`.
    pub const RGBA_F32: Self = Self::new(ChannelOrder::Rgba, ChannelType::Float);
    /// One byte for 0 to 1.
    pub const R_U8_NORM: Self = Self::new(ChannelOrder::R, ChannelType::UnormInt8);
    /// One `f32`.
    pub const R_F32: Self = Self::new(ChannelOrder::R, ChannelType::Float);

    /// A format of these channels, each stored so, whether or not a device has it.
    #[must_use]
    pub const fn new(order: ChannelOrder, channel: ChannelType) -> Self {
        Self { order, channel }
    }

    /// Bytes of a pixel, where the format is one that this version knows.
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

    /// Which of the kinds of [`Color`] it has.
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

/// The kinds of images, as OpenCL C has types for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ImageKind {
    /// `image1d_t`
    Image1d,
    /// `image1d_buffer_t`: the pixels of a buffer.
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
    /// All of them.
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

    /// Whether the last of its sizes counts layers.
    #[must_use]
    pub fn is_array(self) -> bool {
        matches!(self, Self::Image1dArray | Self::Image2dArray)
    }

    /// The type of OpenCL C for it, in a format.
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

/// A kind of image and its sizes, in pixels and layers.
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

    /// An `image1d_t`: a row of `width` pixels.
    #[must_use]
    pub fn image_1d(width: usize) -> Self {
        Self::new(ImageKind::Image1d, [width, 1, 1])
    }

    /// An `image1d_array_t`: `layers` rows of `width` pixels, which have nothing to do with each other.
    #[must_use]
    pub fn array_1d(width: usize, layers: usize) -> Self {
        Self::new(ImageKind::Image1dArray, [width, layers, 1])
    }

    /// An `image2d_t`: a picture of `width` x `height` pixels.
    #[must_use]
    pub fn image_2d(width: usize, height: usize) -> Self {
        Self::new(ImageKind::Image2d, [width, height, 1])
    }

    /// An `image2d_array_t`: `layers` pictures of `width` x `height` pixels, which have nothing to do with each other.
    #[must_use]
    pub fn array_2d(width: usize, height: usize, layers: usize) -> Self {
        Self::new(ImageKind::Image2dArray, [width, height, layers])
    }

    /// An `image3d_t`: a block of `width` x `height` x `depth` pixels.
    #[must_use]
    pub fn image_3d(width: usize, height: usize, depth: usize) -> Self {
        Self::new(ImageKind::Image3d, [width, height, depth])
    }

    /// Its kind: dimensions, and whether it is an array.
    #[must_use]
    pub fn kind(self) -> ImageKind {
        self.kind
    }

    /// All of it, as commands take regions: width; height, or layers of rows; depth, or layers of pictures. 1 where it has
    /// no such dimension.
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

/// Four channels of a pixel, to fill an image with. It has to be of the kind of numbers that the format has: normalized
/// formats have floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Color {
    /// Of floating-point and normalized formats.
    Float([f32; 4]),
    /// Of signed formats.
    Int([i32; 4]),
    /// Of unsigned formats.
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

/// What a sampler reads beside an image (`cl_addressing_mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Addressing {
    /// Undefined: the program does not read there (`CL_ADDRESS_NONE`).
    None,
    /// The nearest pixel of the image (`CL_ADDRESS_CLAMP_TO_EDGE`).
    #[default]
    ClampToEdge,
    /// The border colour: zeros, and one for alpha where the format has no alpha (`CL_ADDRESS_CLAMP`).
    Clamp,
    /// The image again and again (`CL_ADDRESS_REPEAT`). With normalized coordinates only.
    Repeat,
    /// The image, and its mirror image, in turn (`CL_ADDRESS_MIRRORED_REPEAT`). With normalized coordinates only.
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

/// What a sampler reads between pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Filter {
    /// The nearest pixel (`CL_FILTER_NEAREST`).
    #[default]
    Nearest,
    /// The mean of the nearest ones, by distance (`CL_FILTER_LINEAR`).
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

/// A part of an image: of arrays the last size that they have counts layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) origin: [usize; 3],
    pub(crate) region: [usize; 3],
}

impl Area {
    pub(crate) fn is_empty(&self) -> bool {
        self.region.contains(&0)
    }

    /// Pixels.
    pub(crate) fn len(&self) -> Option<usize> {
        self.region.iter().try_fold(1_usize, |all, size| all.checked_mul(*size))
    }
}

/// What an image is, and how its pixels lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageInfo {
    pub(crate) shape: ImageShape,
    pub(crate) format: ImageFormat,
    pub(crate) pixel: usize,
    /// Bytes from row to row, and from slice or layer to layer: of one that has memory of its own, as if it were packed.
    pub(crate) row: usize,
    pub(crate) slice: usize,
    /// Whether its pixels are those of a buffer.
    pub(crate) of_buffer: bool,
}

impl ImageInfo {
    /// One with memory of its own.
    pub(crate) fn packed(shape: ImageShape, format: ImageFormat, pixel: usize) -> Option<Self> {
        let [x, y, _] = shape.region;
        let row = x.checked_mul(pixel)?;
        Some(Self { shape, format, pixel, row, slice: row.checked_mul(y)?, of_buffer: false })
    }

    /// Bytes of all of it.
    pub(crate) fn size(&self) -> Option<usize> {
        self.end(&Area { origin: [0; 3], region: self.shape.region })
    }

    /// The bytes of a part that lies inside and is not empty: from its first to its last.
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
