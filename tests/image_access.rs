//! What kernels may do with images: read, write, or both.

mod common;
#[path = "common/images.rs"]
mod images;

use clgraph::{
    Addressing, BuildCause, ChannelOrder, ChannelType, ExecuteKernel, Filter, Finalize, Image, ImageAccess,
    ImageFormat, ImageKind, ImageShape, MemoryError, Path, Program, ProgramBuilder, ProgramError, Sampler,
};
use common::{assert_error, cause};
use images::{FORMAT, bench};

fn pixels() -> Vec<[u8; 4]> {
    (0..54).map(|at| [at, at + 1, at + 2, at + 3]).collect()
}

/// A kernel that reads and writes one image, if the device can; otherwise it is an error before the driver is called.
#[test]
fn one_kernel_reads_and_writes_an_image_where_the_device_can() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    let shape = ImageShape::image_2d(9, 6);
    let formats = Image::formats(queue, ImageKind::Image2d, ImageAccess::ReadWriteInKernel).unwrap();
    let image = Image::with_data(queue, shape, FORMAT, &pixels()).unwrap();
    if !formats.contains(&FORMAT) {
        // The device does not have it, even if its compiler would build this kernel.
        let source = "kernel void f(global int *a, read_only image2d_t b) { a[0] = get_image_width(b); }";
        let kernel = Program::from_source(queue, source).unwrap().kernel("f").unwrap();
        // SAFETY: an error.
        let wrong =
            unsafe { bench.graph().kernel(&kernel).write(&bench.buffer(&[0])).read_write(&image).range(1).add() };
        // What the kernel declares is compared first.
        assert_error!(
            wrong,
            BuildCause::ImageAccess { index: 1, qualifier: "read_only", declared: "read and written", .. },
        );
        assert_error!(
            Image::with_access(queue, shape, FORMAT, ImageAccess::ReadWriteInKernel),
            MemoryError::ImageFormat { format: FORMAT, access: ImageAccess::ReadWriteInKernel, .. },
        );
        return;
    }
    let source = "kernel void raise(read_write image2d_t image, uint by) {
        int2 at = (int2)(get_global_id(0), get_global_id(1));
        write_imageui(image, at, read_imageui(image, at) + by);
    }";
    let options = if queue.device().caps().version.major >= 3 { "-cl-std=CL3.0" } else { "-cl-std=CL2.0" };
    let program = ProgramBuilder::new(queue).options(options).source(source).unwrap();
    let kernel = program.kernel("raise").unwrap();
    let image = Image::with_access(queue, shape, FORMAT, ImageAccess::ReadWriteInKernel).unwrap();
    for path in [Path::Replay, Path::Native, Path::Auto] {
        let graph = bench.graph();
        graph.write_image(&image, pixels()).add().unwrap();
        for by in [1_u32, 2] {
            // SAFETY: a work-item reads and writes its own pixel.
            unsafe { graph.kernel(&kernel).read_write(&image).arg(by).range([9, 6]).add() }.unwrap();
        }
        let read = graph.read_image::<[u8; 4]>(&image).add().unwrap();
        let run = graph.finalize(Finalize::new().path(path)).unwrap().submit(queue).unwrap();
        run.wait().unwrap();
        let expected: Vec<_> = pixels().iter().map(|pixel| pixel.map(|channel| channel + 3)).collect();
        assert_eq!(*run.get(&read).unwrap(), expected, "{path}");
    }
    // An image that was made for one direction.
    for access in [ImageAccess::Read, ImageAccess::Write] {
        let image = Image::with_access(queue, shape, FORMAT, access).unwrap();
        let graph = bench.graph();
        let mut launch = ExecuteKernel::new(&kernel);
        launch.set_arg(&image).set_arg(&1_u32).set_global_work_sizes(&[9, 6]);
        // SAFETY: errors.
        let wrong = unsafe {
            [
                cause(graph.kernel(&kernel).read_write(&image).arg(1_u32).range([9, 6]).add()),
                cause(graph.kernel(&kernel).read(&image).arg(1_u32).range([9, 6]).add()),
                cause(launch.enqueue_nd_range(queue)),
            ]
        };
        assert!(wrong.iter().all(|cause| matches!(cause, BuildCause::AccessForbidden { .. })), "{wrong:?}");
    }
    // A format that kernels can have only in one direction at a time, if there is one.
    let all = Image::formats(queue, ImageKind::Image2d, ImageAccess::ReadWrite).unwrap();
    if let Some(format) = all.iter().find(|format| !formats.contains(format) && format.pixel_size().is_some()) {
        let image = Image::new(queue, shape, *format).unwrap();
        // SAFETY: an error.
        let wrong = unsafe { bench.graph().kernel(&kernel).read_write(&image).arg(1_u32).range([9, 6]).add() };
        // The type of an image with depth is another one.
        if format.order == ChannelOrder::Depth {
            assert_error!(
                wrong,
                BuildCause::ArgumentKind { index: 0, given, .. } if given == "an image2d_depth_t",
                "{format}",
            );
        } else {
            assert_error!(
                wrong,
                BuildCause::NotSupported { what, why }
                    if what.contains("that one kernel reads and writes")
                        && why.starts_with("the device supports this for"),
                "{format}",
            );
        }
    }
}

/// An image for one direction is used in that direction, and devices have more formats for reading.
#[test]
fn images_for_one_direction_are_not_used_in_the_other() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    let source = "kernel void copy(read_only image2d_t in, write_only image2d_t out) {
        int2 at = (int2)(get_global_id(0), get_global_id(1));
        write_imageui(out, at, read_imageui(in, at));
    }";
    let kernel = Program::from_source(queue, source).unwrap().kernel("copy").unwrap();
    let shape = ImageShape::image_2d(9, 6);
    let make = |access| Image::with_access(queue, shape, FORMAT, access).unwrap();
    let (from, into) = (make(ImageAccess::Read), make(ImageAccess::Write));
    let graph = bench.graph();
    for (a, b) in [(&into, &make(ImageAccess::Write)), (&from, &make(ImageAccess::Read))] {
        // SAFETY: an error.
        let wrong = unsafe { graph.kernel(&kernel).read(a).write(b).range([9, 6]).add() };
        assert!(matches!(cause(wrong), BuildCause::AccessForbidden { .. }));
    }
    assert!(graph.is_empty());
    graph.write_image(&from, pixels()).add().unwrap();
    // SAFETY: a work-item writes its own pixel.
    unsafe { graph.kernel(&kernel).read(&from).write(&into).range([9, 6]).add() }.unwrap();
    let read = graph.read_image::<[u8; 4]>(&into).add().unwrap();
    for path in [Path::Replay, Path::Native] {
        let run = graph.finalize(Finalize::new().path(path)).unwrap().submit(queue).unwrap();
        run.wait().unwrap();
        assert_eq!(*run.get(&read).unwrap(), pixels(), "{path}");
    }
    // Formats that kernels can only read need `with_access`.
    let list = |access| Image::formats(queue, ImageKind::Image2d, access).unwrap();
    let (readable, all) = (list(ImageAccess::Read), list(ImageAccess::ReadWrite));
    for format in readable.into_iter().filter(|format| !all.contains(format) && format.pixel_size().is_some()) {
        assert_error!(
            Image::new(queue, shape, format),
            MemoryError::ImageFormat { format: refused, access: ImageAccess::ReadWrite, .. } if *refused == format,
        );
        assert!(Image::with_access(queue, shape, format, ImageAccess::Read).is_ok(), "{format}");
    }
    let unknown = ImageFormat::new(ChannelOrder::Rgb, ChannelType::UnormInt8);
    assert_error!(
        Image::with_access(queue, shape, unknown, ImageAccess::Read),
        MemoryError::ImageFormat { format, access: ImageAccess::Read, .. } if *format == unknown,
    );
}

/// A program's own name for the sampler type, about which drivers report nothing.
#[test]
fn samplers_have_types_of_the_programs_own_names() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    let source = "typedef sampler_t edge;
    kernel void copy(read_only image2d_t in, edge how, write_only image2d_t out) {
        int2 at = (int2)(get_global_id(0), get_global_id(1));
        write_imageui(out, at, read_imageui(in, how, at));
    }";
    let kernel = Program::from_source(queue, source).unwrap().kernel("copy").unwrap();
    let shape = ImageShape::image_2d(9, 6);
    let from = Image::with_data(queue, shape, FORMAT, &pixels()).unwrap();
    let into = Image::with_data(queue, shape, FORMAT, &[0_u8; 216]).unwrap();
    let edge = Sampler::new(queue, false, Addressing::ClampToEdge, Filter::Nearest).unwrap();
    // PoCL crashes over it.
    if queue.device().caps().platform == "Portable Computing Language" {
        // SAFETY: an error.
        let wrong = unsafe { bench.graph().kernel(&kernel).read(&from).arg(&edge).write(&into).range([9, 6]).add() };
        assert_error!(
            wrong,
            BuildCause::NotSupported { what, .. } if what == "argument 1 `how`, a sampler of type `edge`",
        );
        return;
    }
    for path in [Path::Replay, Path::Native] {
        let graph = bench.graph();
        graph.fill_image(&into, [0_u32; 4]).add().unwrap();
        // SAFETY: a work-item writes its own pixel.
        unsafe { graph.kernel(&kernel).read(&from).arg(&edge).write(&into).range([9, 6]).add() }.unwrap();
        let read = graph.read_image::<[u8; 4]>(&into).add().unwrap();
        let run = graph.finalize(Finalize::new().path(path)).unwrap().submit(queue).unwrap();
        run.wait().unwrap();
        assert_eq!(*run.get(&read).unwrap(), pixels(), "{path}");
    }
}

/// A program's own name for an image type, for which drivers report a name that says nothing.
#[test]
fn images_have_types_of_the_programs_own_names() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    let source = "typedef read_only image2d_t source;
    typedef write_only image2d_t target;
    kernel void copy(source in, target out) {
        int2 at = (int2)(get_global_id(0), get_global_id(1));
        write_imageui(out, at, read_imageui(in, at));
    }";
    // NVIDIA's compiler does not accept such an image for writing.
    if queue.device().caps().platform == "NVIDIA CUDA" {
        assert_error!(Program::from_source(queue, source), ProgramError::BuildFailed { .. });
        return;
    }
    let kernel = Program::from_source(queue, source).unwrap().kernel("copy").unwrap();
    let shape = ImageShape::image_2d(9, 6);
    let (from, into) = (
        Image::with_data(queue, shape, FORMAT, &pixels()).unwrap(),
        Image::with_data(queue, shape, FORMAT, &[0_u8; 216]).unwrap(),
    );
    let graph = bench.graph();
    // SAFETY: errors.
    unsafe {
        let wrong = graph.kernel(&kernel).read(&bench.buffer(&[0])).write(&into).range([9, 6]).add();
        assert_error!(
            wrong,
            BuildCause::ArgumentKind { index: 0, expected, given, .. }
                if expected.starts_with("an image") && given == "a buffer",
        );
        // PoCL does not recognise the image, runs the kernel, and changes nothing; so it does in plain C.
        if queue.device().caps().platform == "Portable Computing Language" {
            let wrong = graph.kernel(&kernel).read(&from).write(&into).range([9, 6]).add();
            assert_error!(
                wrong,
                BuildCause::NotSupported { what, .. } if what == "argument 0 `in`, an image of type `source`",
            );
            return;
        }
        let wrong = graph.kernel(&kernel).write(&from).write(&into).range([9, 6]).add();
        assert_error!(wrong, BuildCause::ImageAccess { index: 0, qualifier: "read_only", declared: "written", .. });
    }
    // SAFETY: a work-item writes its own pixel.
    unsafe { graph.kernel(&kernel).read(&from).write(&into).range([9, 6]).add() }.unwrap();
    let read = graph.read_image::<[u8; 4]>(&into).add().unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit(queue).unwrap();
    run.wait().unwrap();
    assert_eq!(*run.get(&read).unwrap(), pixels());
}
