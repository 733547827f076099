//! What tests of images share: an image of each kind, and a kernel for it.
#![allow(dead_code)] // Each test file uses its own part of this one.

use clgraph::{Buffer, Executable, Image, ImageFormat, ImageKind, ImageShape, Kernel, Path, Program, Queue};
use opencl3::memory::{self as plain, ClMem};

use crate::common::{Bench, Reason, skip};

pub const FORMAT: ImageFormat = ImageFormat::RGBA_U8;
pub const PATHS: [Path; 3] = [Path::Replay, Path::Native, Path::Auto];

pub type Pixel = [u8; 4];

/// Returns a device with images, or skips the test.
#[track_caller]
pub fn bench() -> Option<Bench> {
    let bench = Bench::new();
    if bench.queue.device().caps().images.is_none() {
        skip(Reason::NoImages);
        return None;
    }
    Some(bench)
}

pub fn run(executable: &Executable, queue: &Queue) {
    executable.submit(queue).unwrap().wait().unwrap();
}

pub fn numbered(count: usize, seed: u8) -> Vec<Pixel> {
    (0..count).map(|at| [at as u8, (at >> 8) as u8, seed, seed ^ at as u8]).collect()
}

/// Returns a small image of a kind, with all sizes different.
pub fn shape(kind: ImageKind) -> ImageShape {
    match kind {
        ImageKind::Image1dArray => ImageShape::array_1d(9, 4),
        ImageKind::Image2d => ImageShape::image_2d(9, 6),
        ImageKind::Image2dArray => ImageShape::array_2d(7, 5, 3),
        ImageKind::Image3d => ImageShape::image_3d(7, 5, 4),
        _ => ImageShape::image_1d(23),
    }
}

pub fn len(kind: ImageKind) -> usize {
    shape(kind).region().iter().product()
}

pub fn image(bench: &Bench, kind: ImageKind, seed: u8) -> Image {
    let pixels = numbered(len(kind), seed);
    if kind == ImageKind::Image1dBuffer {
        let buffer = Buffer::from_slice(&bench.queue, &pixels).unwrap();
        return Image::from_buffer(&bench.queue, &buffer, FORMAT).unwrap();
    }
    Image::with_data(&bench.queue, shape(kind), FORMAT, &pixels).unwrap()
}

pub fn content(queue: &Queue, image: &Image) -> Vec<Pixel> {
    let region = image.shape().region();
    let mut pixels = vec![[0; 4]; region.iter().product()];
    queue.enqueue_read_image(image, [0; 3], region, &mut pixels, &[]).unwrap();
    pixels
}

/// Returns, in OpenCL C, the coordinate of a work-item's pixel, for a kernel over a kind of image.
pub fn place(kind: ImageKind) -> &'static str {
    match kind {
        ImageKind::Image1dArray | ImageKind::Image2d => "(int2)(x, get_global_id(1))",
        ImageKind::Image2dArray | ImageKind::Image3d => "(int4)(x, get_global_id(1), get_global_id(2), 0)",
        _ => "x",
    }
}

/// Builds `mirror(in, out, by)` for a kind: it reverses each row, and adds `by` to each channel. Its range is the size
/// of the image, because PoCL 3.1 has no `get_image_width` for an `image1d_buffer_t`, and crashes over it.
pub fn mirror(bench: &Bench, kind: ImageKind) -> Kernel {
    let place = place(kind);
    let blocks =
        if kind == ImageKind::Image3d { "#pragma OPENCL EXTENSION cl_khr_3d_image_writes : enable" } else { "" };
    let source = format!(
        "{blocks}
        #define AT(x) {place}
        kernel void mirror(read_only {kind} in, write_only {kind} out, uint by) {{
            int x = get_global_id(0), width = get_global_size(0);
            write_imageui(out, AT(x), read_imageui(in, AT((width - 1 - x))) + by);
        }}"
    );
    Program::from_source(&bench.queue, &source).unwrap().kernel("mirror").unwrap()
}

/// Computes what the kernel does.
pub fn mirrored(pixels: &[Pixel], kind: ImageKind, by: u8) -> Vec<Pixel> {
    let row = |row: &[Pixel]| row.iter().rev().map(|pixel| pixel.map(|channel| channel.saturating_add(by))).collect();
    pixels.chunks(shape(kind).region()[0]).flat_map::<Vec<Pixel>, _>(row).collect()
}

/// Makes a plain OpenCL image with these pixels, of format [`FORMAT`] or `RGBA FLOAT`, and returns the buffer that it
/// is made of too: on Intel's CPU runtime (2026.2) the buffer cannot be queried after its release, although the image
/// keeps it.
pub fn plain_image(
    queue: &Queue,
    shape: ImageShape,
    format: ImageFormat,
    flags: u64,
    pixels: &mut [u8],
) -> (plain::Image, Option<plain::Buffer<u8>>) {
    use opencl_sys as cl;
    let context = queue.context().to_opencl3().unwrap();
    let [x, y, z] = shape.region();
    let (number, [height, depth, layers]) = match shape.kind() {
        ImageKind::Image1d => (cl::CL_MEM_OBJECT_IMAGE1D, [0; 3]),
        ImageKind::Image1dBuffer => (cl::CL_MEM_OBJECT_IMAGE1D_BUFFER, [0; 3]),
        ImageKind::Image1dArray => (cl::CL_MEM_OBJECT_IMAGE1D_ARRAY, [0, 0, y]),
        ImageKind::Image2d => (cl::CL_MEM_OBJECT_IMAGE2D, [y, 0, 0]),
        ImageKind::Image2dArray => (cl::CL_MEM_OBJECT_IMAGE2D_ARRAY, [y, 0, z]),
        _ => (cl::CL_MEM_OBJECT_IMAGE3D, [y, z, 0]),
    };
    let channel = if format == FORMAT { cl::CL_UNSIGNED_INT8 } else { cl::CL_FLOAT };
    let format = cl::cl_image_format { image_channel_order: cl::CL_RGBA, image_channel_data_type: channel };
    let (place, copied) = (pixels.as_mut_ptr().cast(), plain::CL_MEM_COPY_HOST_PTR);
    let is_buffer = shape.kind() == ImageKind::Image1dBuffer;
    // SAFETY: the memory is copied, and is as long as the pixels; the buffer lives.
    unsafe {
        let make = || plain::Buffer::<u8>::create(&context, flags | copied, pixels.len(), place).unwrap();
        let buffer = is_buffer.then(make);
        let desc = cl::cl_image_desc {
            image_type: number,
            image_width: x,
            image_height: height,
            image_depth: depth,
            image_array_size: layers,
            image_row_pitch: 0,
            image_slice_pitch: 0,
            num_mip_levels: 0,
            num_samples: 0,
            buffer: buffer.as_ref().map_or(std::ptr::null_mut(), ClMem::get),
        };
        let (flags, place) = if is_buffer { (flags, std::ptr::null_mut()) } else { (flags | copied, place) };
        (plain::Image::create(&context, flags, &raw const format, &raw const desc, place).unwrap(), buffer)
    }
}
