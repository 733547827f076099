//! Images, and the formats that devices support.

use std::ffi::c_void;
use std::fmt;
use std::ops::RangeBounds;
use std::sync::Arc;

use opencl_sys::{
    CL_MEM_CONTEXT, CL_MEM_COPY_HOST_PTR, CL_MEM_FLAGS, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE, CL_MEM_TYPE,
    CL_MEM_USE_HOST_PTR, CL_MEM_WRITE_ONLY, cl_image_format, cl_mem,
};

use crate::caps::ImageCaps;
use crate::cl::check;
use crate::cl::memory::host::Element;
use crate::cl::memory::region::{AsRegion, Region, resolve};
use crate::cl::memory::untyped::{Backing, Mem, MemInner, Parent};
use crate::cl::objects::buffer::Buffer;
use crate::cl::objects::context::{Context, InContext, OnDevice};
use crate::cl::objects::device::Device;
use crate::cl::objects::handle::{Handle, MemKind};
use crate::cl::query::info::{self, ask};
use crate::error::{DriverError, DriverFault, MemoryError, Result};
use crate::ffi::core::Core;
use crate::ffi::image::ImageDesc;
use crate::images::{Area, ChannelOrder, ChannelType, ImageAccess, ImageFormat, ImageInfo, ImageKind, ImageShape};
use crate::quirks;

const CL_IMAGE_FORMAT: u32 = 0x1110;
const CL_IMAGE_ROW_PITCH: u32 = 0x1112;
const CL_IMAGE_SLICE_PITCH: u32 = 0x1113;
const CL_IMAGE_WIDTH: u32 = 0x1114;
const CL_IMAGE_HEIGHT: u32 = 0x1115;
const CL_IMAGE_DEPTH: u32 = 0x1116;
const CL_IMAGE_ARRAY_SIZE: u32 = 0x1117;
const CL_MEM_ASSOCIATED_MEMOBJECT: u32 = 0x1107;
const CL_MEM_KERNEL_READ_AND_WRITE: u64 = 1 << 12;

/// An image. Clones are cheap and refer to the same image.
///
/// Graphs and queues take it as a kernel argument, and in commands for images. Nodes and submissions keep it alive.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// use clgraph::{Finalize, Graph, Image, ImageFormat, ImageShape, Queue};
/// let queue = Queue::new(&clgraph::best_device()?)?;
/// if queue.device().caps().images.is_none() {
///     return Ok(());
/// }
/// let image = Image::new(&queue, ImageShape::image_2d(4, 2), ImageFormat::RGBA_U8)?;
/// let graph = Graph::new(&queue)?;
/// graph.fill_image(&image, [1_u32, 2, 3, 4]).add()?;
/// let pixels = graph.read_image::<[u8; 4]>(&image).add()?;
/// let run = graph.finalize(Finalize::new())?.submit(&queue)?;
/// run.wait()?;
/// assert_eq!(*run.get(&pixels)?, [[1, 2, 3, 4]; 8]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Image {
    mem: Mem,
    info: ImageInfo,
    /// The buffer that the image is made of, if it has no memory of its own.
    buffer: Option<Mem>,
}

/// Some layers of an image array, as a kernel argument. The argument is the whole image, but the kernel uses no other
/// layers, and only uses of these layers add edges. See [`Image::layers`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageLayers {
    pub(crate) region: Region,
}

impl ImageAccess {
    /// Returns the flags to make an image with.
    fn flags(self) -> u64 {
        match self {
            Self::Read => CL_MEM_READ_ONLY,
            Self::Write => CL_MEM_WRITE_ONLY,
            Self::ReadWrite | Self::ReadWriteInKernel => CL_MEM_READ_WRITE,
        }
    }

    /// Returns the flag to query formats with. It differs for `ReadWriteInKernel`, whose flag is valid only in queries.
    fn query(self) -> u64 {
        match self {
            Self::ReadWriteInKernel => CL_MEM_KERNEL_READ_AND_WRITE,
            _ => self.flags(),
        }
    }
}

/// The memory of a new image.
enum Storage<'a> {
    Own(ImageAccess),
    Copied(&'a [u8]),
    Of(&'a Region),
}

impl Image {
    /// Makes an image that kernels may read and write. Its content is undefined.
    ///
    /// # Errors
    /// [`MemoryError::NoImages`]; [`MemoryError::ImageFormat`], which lists the supported formats;
    /// [`MemoryError::ImageSize`]; [`MemoryError::TooLarge`]; [`MemoryError::ImageOfBuffer`] for an `image1d_buffer_t`;
    /// [`crate::DriverError`].
    #[doc(alias = "clCreateImage")]
    pub fn new(on: &impl OnDevice, shape: ImageShape, format: ImageFormat) -> Result<Self> {
        Self::with_access(on, shape, format, ImageAccess::ReadWrite)
    }

    /// Makes an image for a declared use by kernels. Its content is undefined. For example, a device may have formats
    /// that kernels can only read. Other commands may read and write every image.
    ///
    /// # Errors
    /// Those of [`new`](Self::new). A node whose kernel uses the image in another way is refused with
    /// [`BuildCause::AccessForbidden`](crate::BuildCause::AccessForbidden).
    pub fn with_access(
        on: &impl OnDevice,
        shape: ImageShape,
        format: ImageFormat,
        access: ImageAccess,
    ) -> Result<Self> {
        let info = describe_own(on, shape, format, access)?;
        Self::create(on.context(), info, &Storage::Own(access))
    }

    /// Makes an image from packed pixels: row by row, then slice by slice or layer by layer. `data` must have as many
    /// bytes as all pixels together; its element type does not matter.
    ///
    /// # Errors
    /// [`MemoryError::PixelBytes`] if the number of bytes differs; and those of [`new`](Self::new).
    pub fn with_data<T: Element>(
        on: &impl OnDevice,
        shape: ImageShape,
        format: ImageFormat,
        data: &[T],
    ) -> Result<Self> {
        let info = describe_own(on, shape, format, ImageAccess::ReadWrite)?;
        let (given, bytes) = (size_of_val(data), info.size().unwrap_or(usize::MAX));
        if given != bytes {
            return Err(MemoryError::PixelBytes { given, bytes, shape: shape.to_string(), format }.into());
        }
        Self::create(on.context(), info, &Storage::Copied(bytemuck::cast_slice(data)))
    }

    /// Makes an `image1d_buffer_t` of a buffer or sub-buffer. The pixels are the bytes of the buffer, as many as fit.
    /// The image keeps the buffer alive.
    ///
    /// Nodes that use the image are ordered with nodes that use the buffer. A kernel that uses both and writes one of
    /// them is refused, because OpenCL does not define what it reads.
    ///
    /// # Errors
    /// [`MemoryError::ImageOfBuffer`] for a sub-buffer if the driver cannot make an image of it;
    /// [`MemoryError::OtherContext`]; and those of [`new`](Self::new).
    pub fn from_buffer<T>(on: &impl OnDevice, buffer: &Buffer<T>, format: ImageFormat) -> Result<Self> {
        let pixel = format.pixel_size().unwrap_or(1);
        let shape = ImageShape::new(ImageKind::Image1dBuffer, [buffer.size() / pixel, 1, 1]);
        let info = ImageInfo { of_buffer: true, ..describe(on, shape, format, ImageAccess::ReadWrite)? };
        Self::create(on.context(), info, &Storage::Of(&buffer.region()))
    }

    /// Makes a two-dimensional image of a buffer or sub-buffer. Its rows are `row_pitch` bytes apart, which must be a
    /// multiple of [`ImageCaps::buffer_pitch`](crate::ImageCaps::buffer_pitch) pixels. With a pitch of 0 the rows are
    /// packed, if the device supports that.
    ///
    /// As for [`from_buffer`](Self::from_buffer), uses of the image and of the buffer are ordered, and one kernel
    /// cannot use both and write one of them.
    ///
    /// # Errors
    /// [`MemoryError::ImageOfBuffer`] if the device has no such images, does not support the pitch, or the buffer is
    /// too small; [`MemoryError::OtherContext`]; those of [`new`](Self::new).
    pub fn from_buffer_2d<T>(
        on: &impl OnDevice,
        buffer: &Buffer<T>,
        (width, height): (usize, usize),
        format: ImageFormat,
        row_pitch: usize,
    ) -> Result<Self> {
        let shape = ImageShape::image_2d(width, height);
        let mut info = ImageInfo { of_buffer: true, ..describe(on, shape, format, ImageAccess::ReadWrite)? };
        let wrong = |why: String| Err(MemoryError::ImageOfBuffer { why }.into());
        let align = match on.device().caps().images.as_ref().map(|caps| caps.buffer_pitch) {
            Some(Some(pixels)) => pixels.max(1).saturating_mul(info.pixel),
            _ => {
                return wrong(format!(
                    "device `{}` does not support two-dimensional images of buffers; copy the buffer \
                                       to an image",
                    on.device().name()
                ));
            }
        };
        let row = info.row;
        info.row = if row_pitch == 0 { row } else { row_pitch };
        if info.row < row || !info.row.is_multiple_of(align) {
            let apart = info.row;
            return wrong(format!(
                "the row pitch is {apart} bytes, but a row has {row} bytes, and the pitch must be a \
                                  multiple of {align} bytes; give a larger pitch"
            ));
        }
        info.slice = info.row.saturating_mul(height);
        // The size of all rows, including the gaps between them.
        let needed = info.slice;
        if needed > buffer.size() {
            return wrong(format!(
                "the image needs {needed} bytes, but the buffer has {}; use a larger \
                                  buffer",
                buffer.size()
            ));
        }
        Self::create(on.context(), info, &Storage::Of(&buffer.region()))
    }

    fn create(context: &Context, info: ImageInfo, storage: &Storage<'_>) -> Result<Self> {
        let core = Core::get()?;
        let Some(create) = core.clCreateImage else {
            // The function is of OpenCL 1.2, like all image functions used here.
            return Err(DriverError::faulty("clCreateImage", DriverFault::Missing).into());
        };
        let [x, y, z] = info.shape.region();
        let kind = info.shape.kind();
        let mut desc = ImageDesc::new(kind.number(), x);
        match kind {
            ImageKind::Image1d | ImageKind::Image1dBuffer => {}
            ImageKind::Image1dArray => desc.layers = y,
            ImageKind::Image2d => desc.height = y,
            ImageKind::Image2dArray => (desc.height, desc.layers) = (y, z),
            ImageKind::Image3d => (desc.height, desc.depth) = (y, z),
        }
        let (mut flags, mut host) = (CL_MEM_READ_WRITE, std::ptr::null_mut::<c_void>());
        let (mut parent, mut inherited) = (None, 0);
        match storage {
            Storage::Own(access) => flags = access.flags(),
            Storage::Copied(bytes) => {
                flags |= CL_MEM_COPY_HOST_PTR;
                host = bytes.as_ptr().cast_mut().cast();
            }
            Storage::Of(region) => {
                if region.mem.context() != context {
                    return Err(MemoryError::OtherContext.into());
                }
                if region.mem.is_sub_buffer()
                    && context.devices().iter().any(|of| quirks::makes_images_of_whole_buffers(of.caps()))
                {
                    let why = "this driver supports images of whole buffers only; use a whole buffer".to_owned();
                    return Err(MemoryError::ImageOfBuffer { why }.into());
                }
                // The image inherits all flags of its buffer, but some drivers require these flags to be given again.
                flags = region.mem.flags() & (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY);
                inherited = region.mem.flags();
                if kind == ImageKind::Image2d {
                    desc.row_pitch = info.row;
                }
                let handle = region.mem.handle()?.try_clone()?;
                desc.buffer = handle.raw();
                parent = Some((handle, &region.mem));
            }
        }
        let format = cl_image_format {
            image_channel_order: info.format.order.number(),
            image_channel_data_type: info.format.channel.number(),
        };
        let mut status = 0;
        // SAFETY: **live** for context and buffer; with COPY_HOST_PTR the driver reads the packed pixels, whose size
        // was checked.
        let raw = unsafe { create(context.raw(), flags, &raw const format, &raw const desc, host, &raw mut status) };
        check("clCreateImage", status).map_err(MemoryError::from)?;
        // SAFETY: the call succeeded and gives its reference away.
        let handle = unsafe { Handle::from_owned("clCreateImage", raw) }?;
        Self::of(context, handle, info, parent, flags | inherited)
    }

    fn of(
        context: &Context,
        handle: Handle<MemKind>,
        info: ImageInfo,
        parent: Option<(Handle<MemKind>, &Mem)>,
        flags: u64,
    ) -> Result<Self> {
        let size = info.size().unwrap_or(usize::MAX);
        let buffer = parent.as_ref().map(|(_, mem)| (*mem).clone());
        let (root, root_size, offset) = match &parent {
            None => (handle.raw().addr(), size, 0),
            Some((_, mem)) => (mem.inner().root, mem.root_size(), mem.offset_in_root()),
        };
        let mem = Mem::new(MemInner {
            backing: Backing::Buffer(handle),
            context: context.clone(),
            root,
            root_size,
            offset,
            size,
            parent: parent.map(|(handle, _)| Parent::new(handle, context)),
            image: Some(Box::new(info)),
            flags,
        });
        Ok(Self { mem, info, buffer })
    }

    /// Wraps an `opencl3` image of a context. The `opencl3` image may be dropped first.
    ///
    /// # Errors
    /// [`MemoryError::NotAnImage`]; [`MemoryError::HostMemory`] if the image uses host memory, which clgraph could not
    /// keep alive; [`MemoryError::OtherContext`]; [`crate::DriverError`].
    pub fn from_opencl3(context: &impl InContext, image: &opencl3::memory::Image) -> Result<Self> {
        use opencl3::memory::ClMem;
        // SAFETY: an `opencl3` image owns a reference.
        unsafe { Self::from_raw(context, image.get()) }
    }

    /// Wraps and retains a raw image of a context.
    ///
    /// # Errors
    /// As [`from_opencl3`](Self::from_opencl3); [`SetupError::NullHandle`](crate::SetupError::NullHandle).
    ///
    /// # Safety
    /// `raw` is null or a live memory object.
    pub unsafe fn from_raw(context: &impl InContext, raw: cl_mem) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { Self::of_raw(context.context(), raw, false) }
    }

    /// # Safety
    /// `raw` is null or a live memory object. With `host_memory_lives`, memory of the host that it uses lives as long as it may be used.
    pub(in crate::cl) unsafe fn of_raw(context: &Context, raw: cl_mem, host_memory_lives: bool) -> Result<Self> {
        // SAFETY: the caller's promise.
        let handle: Handle<MemKind> = unsafe { Handle::from_borrowed(raw) }?;
        let core = Core::get()?;
        let mem =
            |raw: cl_mem, name| info::value::<usize>("clGetMemObjectInfo", ask!(core, clGetMemObjectInfo, raw, name));
        let object_type: u32 = info::value("clGetMemObjectInfo", ask!(core, clGetMemObjectInfo, raw, CL_MEM_TYPE))?;
        let kind = ImageKind::of(object_type).ok_or(MemoryError::NotAnImage { object_type })?;
        if mem(raw, CL_MEM_CONTEXT)? != context.raw().addr() {
            return Err(MemoryError::OtherContext.into());
        }
        let flags: u64 = info::value("clGetMemObjectInfo", ask!(core, clGetMemObjectInfo, raw, CL_MEM_FLAGS))?;
        let parent = mem(raw, CL_MEM_ASSOCIATED_MEMOBJECT)?;
        if flags & CL_MEM_USE_HOST_PTR != 0 && parent == 0 && !host_memory_lives {
            let (what, flag) = ("image", "CL_MEM_USE_HOST_PTR");
            let instead = "make the image without the flag, or copy it to another image";
            return Err(MemoryError::HostMemory { what, flag, instead }.into());
        }
        let size = |name| info::value::<usize>("clGetImageInfo", ask!(core, clGetImageInfo, raw, name));
        let (width, height) = (size(CL_IMAGE_WIDTH)?, size(CL_IMAGE_HEIGHT)?);
        let region = match kind {
            ImageKind::Image1d | ImageKind::Image1dBuffer => [width, 1, 1],
            ImageKind::Image1dArray => [width, size(CL_IMAGE_ARRAY_SIZE)?, 1],
            ImageKind::Image2d => [width, height, 1],
            ImageKind::Image2dArray => [width, height, size(CL_IMAGE_ARRAY_SIZE)?],
            ImageKind::Image3d => [width, height, size(CL_IMAGE_DEPTH)?],
        };
        let format: [u32; 2] = info::value("clGetImageInfo", ask!(core, clGetImageInfo, raw, CL_IMAGE_FORMAT))?;
        let format = ImageFormat::new(ChannelOrder::of(format[0]), ChannelType::of(format[1]));
        let shape = ImageShape::new(kind, region);
        let wrong = || MemoryError::UnknownFormat { format };
        let pixel = format.pixel_size().ok_or_else(wrong)?;
        let mut info = ImageInfo::packed(shape, format, pixel).ok_or_else(wrong)?;
        if parent == 0 {
            return Self::of(context, handle, info, None, flags);
        }
        let parent_raw = std::ptr::with_exposed_provenance_mut::<c_void>(parent);
        info.of_buffer = true;
        info.row = size(CL_IMAGE_ROW_PITCH)?.max(info.row);
        info.slice = size(CL_IMAGE_SLICE_PITCH)?.max(info.row * region[1]);
        // The buffer is checked as every foreign buffer: host memory is refused.
        // SAFETY: an image keeps the buffer that it is made of alive.
        let buffer = unsafe { Buffer::<u8>::from_raw(context, parent_raw) }?.region().mem;
        let parent = buffer.handle()?.try_clone()?;
        Self::of(context, handle, info, Some((parent, &buffer)), flags)
    }

    /// Returns the same image for `opencl3`, with its own reference.
    ///
    /// # Errors
    /// [`crate::DriverError`] if the driver refuses to retain it.
    pub fn to_opencl3(&self) -> Result<opencl3::memory::Image> {
        Ok(opencl3::memory::Image::new(self.mem.handle()?.retained_raw()?))
    }

    /// Returns the C handle, which is valid while this object lives.
    #[must_use]
    pub fn raw(&self) -> cl_mem {
        self.mem.handle().map_or(std::ptr::null_mut(), Handle::raw)
    }

    /// Returns the kind and the sizes.
    #[must_use]
    pub fn shape(&self) -> ImageShape {
        self.info.shape
    }

    /// Returns the format of a pixel.
    #[must_use]
    pub fn format(&self) -> ImageFormat {
        self.info.format
    }

    /// Returns the size of a pixel in bytes.
    #[must_use]
    pub fn pixel_size(&self) -> usize {
        self.info.pixel
    }

    /// Returns some layers of an image array. As a kernel argument this is the whole image, but the kernel uses only
    /// these layers.
    ///
    /// # Errors
    /// [`MemoryError::NoLayers`] for an image that is no array; [`MemoryError::OutOfBounds`], [`MemoryError::Empty`].
    pub fn layers(&self, range: impl RangeBounds<usize>) -> Result<ImageLayers> {
        let kind = self.info.shape.kind();
        if !kind.is_array() {
            return Err(MemoryError::NoLayers { kind }.into());
        }
        let dim = if kind == ImageKind::Image1dArray { 1 } else { 2 };
        let mut area = Area { origin: [0; 3], region: self.info.shape.region() };
        let (start, end) = resolve("layers", &range, area.region[dim])?;
        if start == end {
            return Err(MemoryError::Empty { what: "a range of layers" }.into());
        }
        (area.origin[dim], area.region[dim]) = (start, end - start);
        Ok(ImageLayers { region: self.part(&area) })
    }

    /// Returns the bytes of an area that is inside the image.
    pub(crate) fn part(&self, area: &Area) -> Region {
        let range = match &self.buffer {
            _ if area.is_empty() => 0..0,
            // Uses of the image and uses of its sub-buffer need an order, whatever their ranges are.
            Some(buffer) if buffer.is_sub_buffer() => 0..self.mem.size(),
            _ => self.info.range(area),
        };
        Region { mem: self.mem.clone(), offset: range.start, size: range.len() }
    }

    /// Returns an area of an `image1d_buffer_t` as a region of its buffer. Copies use the buffer, because some drivers
    /// crash on such images, copy one byte for each pixel, or do not recognize them as images.
    pub(crate) fn buffer_part(&self, area: &Area) -> Option<Region> {
        let mem = self.buffer.clone().filter(|_| self.info.shape.kind() == ImageKind::Image1dBuffer)?;
        let pixels = if area.is_empty() { 0 } else { area.region[0] };
        Some(Region { mem, offset: area.origin[0] * self.info.pixel, size: pixels * self.info.pixel })
    }

    pub(crate) fn region(&self) -> Region {
        Region { mem: self.mem.clone(), offset: 0, size: self.mem.size() }
    }

    /// Returns the formats that a device supports for images of a kind, without duplicates.
    ///
    /// # Errors
    /// [`MemoryError::NoImages`]; [`crate::DriverError`].
    #[doc(alias = "clGetSupportedImageFormats")]
    pub fn formats(on: &impl OnDevice, kind: ImageKind, access: ImageAccess) -> Result<Vec<ImageFormat>> {
        check_images(on.device())?;
        Ok(device_formats(on, kind, access)?.to_vec())
    }
}

impl fmt::Display for ImageAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "kernels that read it",
            Self::Write => "kernels that write it",
            Self::ReadWrite => "kernels that read it and kernels that write it",
            Self::ReadWriteInKernel => "one kernel that reads and writes it",
        })
    }
}

/// Lists the formats that clgraph knows, for error texts.
pub(crate) fn names(formats: &[ImageFormat]) -> String {
    let known = formats.iter().filter(|format| format.pixel_size().is_some());
    let names: Vec<_> = known.map(ToString::to_string).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn device_formats(on: &impl OnDevice, kind: ImageKind, access: ImageAccess) -> Result<Formats, DriverError> {
    // OpenCL 2.0 introduced this query. Devices without such images may answer it with a list that is not empty.
    let none = on.device().caps().images.is_none_or(|caps| caps.max_read_write == 0);
    if access == ImageAccess::ReadWriteInKernel && none {
        return Ok(Formats::default());
    }
    formats(on.context(), kind, access)
}

/// The answer of a driver, which is asked once for each context.
pub(crate) type Formats = Arc<[ImageFormat]>;

pub(crate) fn formats(context: &Context, kind: ImageKind, access: ImageAccess) -> Result<Formats, DriverError> {
    let call = "clGetSupportedImageFormats";
    let Ok(core) = Core::get() else { return Ok(Formats::default()) };
    if let Some(known) = context.image_formats().get(&(kind, access)) {
        return Ok(Arc::clone(known));
    }
    let mut count = 0;
    let ask = |room: u32, formats: *mut cl_image_format, count: *mut u32| {
        // SAFETY: **live**; there is room for as many formats as the call may write.
        check(call, unsafe {
            (core.clGetSupportedImageFormats)(context.raw(), access.query(), kind.number(), room, formats, count)
        })
    };
    ask(0, std::ptr::null_mut(), &raw mut count)?;
    let mut list = vec![cl_image_format { image_channel_order: 0, image_channel_data_type: 0 }; count as usize];
    if count > 0 {
        ask(count, list.as_mut_ptr(), std::ptr::null_mut())?;
    }
    let format = |of: cl_image_format| {
        ImageFormat::new(ChannelOrder::of(of.image_channel_order), ChannelType::of(of.image_channel_data_type))
    };
    let mut formats: Vec<ImageFormat> = Vec::with_capacity(list.len());
    for format in list.into_iter().map(format) {
        // Some drivers list a format several times.
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    let formats = Formats::from(formats);
    context.image_formats().insert((kind, access), Arc::clone(&formats));
    Ok(formats)
}

fn check_images(device: &Device) -> Result<(), MemoryError> {
    match device.caps().images {
        Some(_) => Ok(()),
        None => Err(MemoryError::NoImages { device: device.name().to_owned() }),
    }
}

/// Returns the largest sizes of a kind of image.
pub(crate) fn limits(caps: &ImageCaps, kind: ImageKind) -> [usize; 3] {
    match kind {
        ImageKind::Image1d => [caps.max_2d[0], 1, 1],
        ImageKind::Image1dBuffer => [caps.max_buffer, 1, 1],
        ImageKind::Image1dArray => [caps.max_2d[0], caps.max_layers, 1],
        ImageKind::Image2d => [caps.max_2d[0], caps.max_2d[1], 1],
        ImageKind::Image2dArray => [caps.max_2d[0], caps.max_2d[1], caps.max_layers],
        ImageKind::Image3d => caps.max_3d,
    }
}

/// Checks and describes a new image that has its own memory.
fn describe_own(on: &impl OnDevice, shape: ImageShape, format: ImageFormat, access: ImageAccess) -> Result<ImageInfo> {
    if shape.kind() == ImageKind::Image1dBuffer {
        let why = "an image1d_buffer_t has no memory of its own; use `Image::from_buffer`".to_owned();
        return Err(MemoryError::ImageOfBuffer { why }.into());
    }
    describe(on, shape, format, access)
}

/// Describes a new image, if the device supports it. This is checked here, because some drivers end the process when
/// they make an unsupported image.
fn describe(on: &impl OnDevice, shape: ImageShape, format: ImageFormat, access: ImageAccess) -> Result<ImageInfo> {
    let device = on.device();
    check_images(device)?;
    let Some(caps) = &device.caps().images else { return Err(MemoryError::Empty { what: "an image" }.into()) };
    let kind = shape.kind();
    let sizes = shape.region();
    let limits = limits(caps, kind);
    if sizes.iter().zip(&limits).any(|(size, limit)| *size == 0 || size > limit) {
        let device = device.name().to_owned();
        return Err(MemoryError::ImageSize { shape: shape.to_string(), limits, device }.into());
    }
    let has = device_formats(on, kind, access)?;
    let Some(pixel) = format.pixel_size().filter(|_| has.contains(&format)) else {
        let (device, has) = (device.name().to_owned(), names(&has));
        return Err(MemoryError::ImageFormat { format, kind, access, device, has }.into());
    };
    let info = ImageInfo::packed(shape, format, pixel);
    let size = info.and_then(|info| info.size());
    let (_, limit) = on.context().buffer_limits();
    match info.zip(size) {
        Some((info, size)) if size <= limit => Ok(info),
        _ => Err(crate::cl::objects::buffer::too_large(size.map_or(u64::MAX, |size| size as u64), on.context()).into()),
    }
}

impl PartialEq for Image {
    /// Returns whether both are the same image.
    fn eq(&self, other: &Self) -> bool {
        self.mem.id() == other.mem.id()
    }
}

impl Eq for Image {}

impl std::hash::Hash for Image {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.mem.id().hash(state);
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({}, {}, {:p})", self.info.shape, self.info.format, self.raw())
    }
}
