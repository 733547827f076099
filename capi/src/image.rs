//! Images and samplers, and the nodes that copy, fill, write and read images.

use std::ffi::c_void;

use rust::{Color, Graph, HostRead, HostWrite, Image, ImageLayers, Sampler};

use crate::graph::{add_or_replace, clg_graph, clg_node, clg_node_options, give_node, options, with_options};
use crate::handle::{self, handled};
use crate::objects::{self, clg_range, with_slice};
use crate::opencl::{cl_context, cl_mem, cl_sampler};
use crate::pointers::{self, Release, UserData};
use crate::status::{Failure, Outcome, clg_status, enter};

/// An image, or some layers of an array of images.
#[derive(Clone)]
pub(crate) enum AnyImage {
    Whole(Image),
    Layers(ImageLayers),
}

impl AnyImage {
    /// Returns the image of a handle, which is not only some layers of it.
    pub(crate) fn whole(image: clg_image) -> Outcome<Image> {
        match handle::get::<Self>(image.addr())? {
            Self::Whole(image) => Ok(image),
            Self::Layers(_) => Err(Failure::invalid(
                "the image is some layers of another one, which only kernels use: give the whole image, and an area",
            )),
        }
    }
}

/// What a `clg_image` names.
pub struct clg_image_object {
    _private: [u8; 0],
}

/// An image of the program, or some layers of one.
pub type clg_image = *mut clg_image_object;

handled!(AnyImage, 11, "clg_image");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_image_retain(object: clg_image) -> clg_status {
    enter(|| handle::retain::<AnyImage>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_image_release(object: clg_image) -> clg_status {
    enter(|| handle::release::<AnyImage>(object.addr()))
}

/// What a `clg_sampler` names.
pub struct clg_sampler_object {
    _private: [u8; 0],
}

/// A sampler of the program.
pub type clg_sampler = *mut clg_sampler_object;

handled!(Sampler, 12, "clg_sampler");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_sampler_retain(object: clg_sampler) -> clg_status {
    enter(|| handle::retain::<Sampler>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_sampler_release(object: clg_sampler) -> clg_status {
    enter(|| handle::release::<Sampler>(object.addr()))
}

/// Wraps and retains an image (`cl_mem`) of a context.
///
/// # Safety
/// `context` is null or a live context; `image` is null or a live memory object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_image_from_cl(context: cl_context, image: cl_mem, result: *mut clg_image) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        // SAFETY: **caller**.
        let image = unsafe { Image::from_raw(&objects::context(context)?, image.cast()) }?;
        place.set(handle::new(AnyImage::Whole(image))? as clg_image);
        Ok(())
    })
}

/// Returns some layers of an array of images, as arguments of kernels: so that kernels that use different layers need
/// not wait for each other. A kernel gets the whole array.
#[unsafe(no_mangle)]
pub extern "C" fn clg_image_layers(image: clg_image, first: usize, count: usize, result: *mut clg_image) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        let end = first.checked_add(count).ok_or_else(|| Failure::invalid("there are not so many layers"))?;
        let layers = AnyImage::whole(image)?.layers(first..end)?;
        place.set(handle::new(AnyImage::Layers(layers))? as clg_image);
        Ok(())
    })
}

/// Wraps and retains a `cl_sampler` of a context.
///
/// # Safety
/// `context` is null or a live context; `sampler` is null or a live sampler.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_sampler_from_cl(
    context: cl_context,
    sampler: cl_sampler,
    result: *mut clg_sampler,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        // SAFETY: **caller**.
        let sampler = unsafe { Sampler::from_raw(&objects::context(context)?, sampler.cast()) }?;
        place.set(handle::new(sampler)? as clg_sampler);
        Ok(())
    })
}

/// A part of an image, in pixels, rows and slices or layers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_area {
    /// The image.
    pub image: clg_image,
    /// The first pixel, row and slice.
    pub origin: [usize; 3],
    /// The numbers of pixels, rows and slices. Zeros: the whole image, whatever the origin.
    pub region: [usize; 3],
}

impl clg_area {
    /// Returns the image, the origin and the region.
    pub(crate) fn parts(&self) -> Outcome<(Image, [usize; 3], [usize; 3])> {
        let image = AnyImage::whole(self.image)?;
        if self.region == [0; 3] {
            let region = image.shape().region();
            return Ok((image, [0; 3], region));
        }
        Ok((image, self.origin, self.region))
    }
}

/// Returns how many bytes the packed pixels of a region have.
pub(crate) fn packed(image: &Image, region: [usize; 3]) -> Outcome<usize> {
    let bytes = region.iter().try_fold(image.pixel_size(), |bytes, size| bytes.checked_mul(*size));
    bytes.ok_or_else(|| Failure::invalid(format!("the region {region:?} is not inside the image")))
}

/// Whether the channels of a colour are floating-point numbers, signed or unsigned integers.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum clg_color_kind {
    /// `cl_float`, for floating-point and normalized formats.
    CLG_COLOR_FLOAT = 0,
    /// `cl_int`, for signed integer formats.
    CLG_COLOR_INT = 1,
    /// `cl_uint`, for unsigned integer formats.
    CLG_COLOR_UINT = 2,
}

/// Reads a colour from C: 16 bytes, four channels.
///
/// # Safety
/// **caller**.
pub(crate) unsafe fn color(kind: i32, color: *const c_void) -> Outcome<Color> {
    // SAFETY: **caller**.
    let bytes: &[u8] = unsafe { pointers::list("color", color.cast::<u8>(), 16) }?;
    let channel = |index: usize| [bytes[4 * index], bytes[4 * index + 1], bytes[4 * index + 2], bytes[4 * index + 3]];
    let channels = [channel(0), channel(1), channel(2), channel(3)];
    let is = |of: clg_color_kind| kind == of as i32;
    Ok(if is(clg_color_kind::CLG_COLOR_FLOAT) {
        channels.map(f32::from_ne_bytes).into()
    } else if is(clg_color_kind::CLG_COLOR_INT) {
        channels.map(i32::from_ne_bytes).into()
    } else if is(clg_color_kind::CLG_COLOR_UINT) {
        channels.map(u32::from_ne_bytes).into()
    } else {
        return Err(Failure::invalid(format!("{kind} is no kind of colour (clg_color_kind)")));
    })
}

/// Adds a copy of pixels between images of one format. The area of `to` counts only by its image and origin.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_copy_image(
    graph: clg_graph,
    from: clg_area,
    to: clg_area,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let ((src, src_origin, region), dst) = (from.parts()?, AnyImage::whole(to.image)?);
        let copy = graph.copy_image(&src, &dst).src_origin(src_origin).dst_origin(to.origin).region(region);
        add_or_replace!(copy, options, node, |old| old.node())
    })
}

/// Adds a copy of pixels of an image to memory, where they are packed.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_copy_image_to_buffer(
    graph: clg_graph,
    from: clg_area,
    to: clg_range,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let ((src, origin, region), to) = (from.parts()?, to.slice()?);
        let copy = with_slice!(to, |to| graph.copy_image_to_buffer(&src, to)).src_origin(origin).region(region);
        add_or_replace!(copy, options, node, |old| old.node())
    })
}

/// Adds a copy of packed pixels in memory to an image.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_copy_buffer_to_image(
    graph: clg_graph,
    from: clg_range,
    to: clg_area,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let ((dst, origin, region), from) = (to.parts()?, from.slice()?);
        let copy = with_slice!(from, |from| graph.copy_buffer_to_image(from, &dst)).dst_origin(origin).region(region);
        add_or_replace!(copy, options, node, |old| old.node())
    })
}

/// Adds a fill of an image with one colour: four channels of the kind `color_kind`, a `clg_color_kind`.
///
/// # Safety
/// `color` points to 16 bytes; the other pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_fill_image(
    graph: clg_graph,
    to: clg_area,
    color_kind: i32,
    color: *const c_void,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let (options, color) = unsafe { (self::options(options)?, self::color(color_kind, color)?) };
        let (image, origin, region) = to.parts()?;
        add_or_replace!(graph.fill_image(&image, color).area(origin, region), options, node, |old| old.node())
    })
}

/// Adds a write of packed pixels of the host to an image. As `clg_graph_write` otherwise.
///
/// # Safety
/// `data` points to `data_size` bytes; the other pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_write_image(
    graph: clg_graph,
    to: clg_area,
    data: *const c_void,
    data_size: usize,
    release: Option<extern "C" fn(user: *mut c_void)>,
    user: *mut c_void,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        let user = UserData::new(user, release as Release);
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let (image, origin, region) = to.parts()?;
        // SAFETY: **caller**.
        let data = unsafe { pointers::data(data, data_size, packed(&image, region)?, user) }?;
        let write = graph.write_image(&image, data).area(origin, region);
        add_or_replace!(write, options, node, |old| &HostWrite::<u8>::from_raw(old.raw()))
    })
}

/// Adds a read of an image into host memory, where the pixels are packed. As `clg_graph_read` otherwise.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_read_image(
    graph: clg_graph,
    from: clg_area,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let (image, origin, region) = from.parts()?;
        let read = graph.read_image::<u8>(&image).area(origin, region);
        add_or_replace!(read, options, node, |old| &HostRead::<u8>::from_raw(old.raw()))
    })
}
