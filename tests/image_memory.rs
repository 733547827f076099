//! The memory of images, and what keeps it alive: buffers and parts of them, memory of graphs, and commands that wait.

mod common;
#[path = "common/images.rs"]
mod images;

use clgraph::{
    Buffer, BuildCause, ErrorKind, Event, Executable, ExecuteKernel, Finalize, Image, ImageAccess, ImageKind,
    ImageShape, MapWriteInvalidate, MemoryError, Parameter, Path, ProgramBuilder, Result,
};
use common::{Bench, UserEvent, assert_error};
use images::{FORMAT, PATHS, Pixel, bench, content, image, len, mirror, mirrored, numbered, plain_image, run, shape};
use opencl3::memory as plain;

/// Executed, and by these paths.
const MODES: [Option<Path>; 3] = [None, Some(Path::Replay), Some(Path::Native)];

/// Executes commands, or records them and runs the graph.
fn go(bench: &Bench, mode: Option<Path>, commands: impl Fn() -> Result<Event>) {
    let Some(path) = mode else { return commands().unwrap().wait().unwrap() };
    let graph = bench.graph();
    graph.record(&bench.queue, commands).unwrap();
    run(&graph.finalize(Finalize::new().path(path)).unwrap(), &bench.queue);
}

/// Returns whether clgraph copies between this kind of image and buffers. NVIDIA's driver refuses arrays of rows, so
/// clgraph refuses them there.
fn is_copied(bench: &Bench, kind: ImageKind) -> bool {
    let buffer = Buffer::<Pixel>::new(&bench.queue, len(kind)).unwrap();
    let copied = bench.graph().copy_image_to_buffer(&image(bench, kind, 1), &buffer).add();
    let refuses = kind == ImageKind::Image1dArray && bench.queue.device().caps().platform == "NVIDIA CUDA";
    if refuses {
        assert_error!(copied, BuildCause::NotSupported { .. });
    } else {
        copied.unwrap();
    }
    !refuses
}

/// Returns images that may get memory that other images have released.
fn others(bench: &Bench, kind: ImageKind) -> Vec<Image> {
    (0..20).map(|seed| image(bench, kind, 100 + seed)).collect()
}

/// Holds a queue: its commands wait until the event is complete.
fn hold(bench: &Bench, scratch: &Buffer<u32>) -> UserEvent {
    let gate = UserEvent::new(&bench.queue);
    let held = Event::from_opencl3(&gate.0).unwrap();
    bench.queue.enqueue_fill_buffer(scratch, &[1_u32], 0, 16, &[&held]).unwrap();
    gate
}

/// Images live as long as launches that wait. PoCL (3.1 to 7.1) does not retain an image that is made of a buffer.
#[test]
fn a_launch_keeps_its_images_until_it_has_run() {
    let Some(bench) = bench() else { return };
    let (queue, scratch) = (&bench.queue, bench.buffer(&[0; 4]));
    for kind in ImageKind::ALL {
        let (kernel, into) = (mirror(&bench, kind), image(&bench, kind, 2));
        for keeps_buffer in [false, true] {
            let buffer = Buffer::from_slice(queue, &numbered(len(kind), 1)).unwrap();
            let from = match kind {
                ImageKind::Image1dBuffer => Image::from_buffer(queue, &buffer, FORMAT).unwrap(),
                kind => image(&bench, kind, 1),
            };
            let gate = hold(&bench, &scratch);
            let mut launch = ExecuteKernel::new(&kernel);
            launch.set_arg(&from).set_arg(&into).set_arg(&1_u32).set_global_work_sizes(&shape(kind).region());
            // SAFETY: a work-item writes its own pixel.
            let launched = unsafe { launch.enqueue_nd_range(queue).unwrap() };
            queue.flush().unwrap();
            drop(from);
            let _buffer = keeps_buffer.then_some(buffer);
            let others = others(&bench, kind);
            gate.set(0);
            launched.wait().unwrap();
            drop(others);
            assert_eq!(content(queue, &into), mirrored(&numbered(len(kind), 1), kind, 1), "{kind}");
        }
    }
}

/// Rules F3, U3: images live as long as running submissions, even if the executable is dropped or updated.
#[test]
fn a_submission_keeps_its_images_until_it_has_run() {
    let Some(bench) = bench() else { return };
    let (queue, scratch) = (&bench.queue, bench.buffer(&[0; 4]));
    for kind in ImageKind::ALL {
        let (kernel, into, next) = (mirror(&bench, kind), image(&bench, kind, 2), image(&bench, kind, 3));
        for path in PATHS {
            for is_updated in [false, true] {
                let from = Parameter::image(&image(&bench, kind, 1));
                let graph = bench.graph();
                let node = graph.kernel(&kernel).read(&from).write(&into).arg(1_u32).range(shape(kind).region());
                // SAFETY: a work-item writes its own pixel, whatever image it reads.
                let node = unsafe { node.add().unwrap() };
                let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
                let gate = hold(&bench, &scratch);
                let submission = executable.submit(queue).unwrap();
                queue.flush().unwrap();
                from.set(&next).unwrap();
                let executable: Option<Executable> = is_updated.then(|| {
                    executable.update(&node).unwrap();
                    executable
                });
                drop((graph, from));
                let others = others(&bench, kind);
                gate.set(0);
                submission.wait().unwrap();
                drop((others, executable));
                let expected = mirrored(&numbered(len(kind), 1), kind, 1);
                assert_eq!(content(queue, &into), expected, "{kind}, {path}, updated {is_updated}");
            }
        }
    }
}

/// Rules B2, M1: a sub-buffer, and memory of a graph, which is a sub-buffer. PoCL 3.1 and 6.0 crash over such a copy,
/// and rusticl copies from the start of the buffer.
#[test]
fn pixels_are_copied_to_and_from_parts_of_buffers() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    let align = queue.device().caps().sub_buffer_align.max(4);
    for kind in ImageKind::ALL.into_iter().filter(|kind| is_copied(&bench, *kind)) {
        let (region, bytes) = (shape(kind).region(), 4 * len(kind));
        let from = image(&bench, kind, 1);
        for mode in MODES {
            for start in [0, align] {
                let into = image(&bench, kind, 2);
                let buffer = Buffer::from_slice(queue, &vec![0xEE_u8; 2 * align + bytes]).unwrap();
                let part = buffer.sub_buffer(start..start + bytes).unwrap();
                go(&bench, mode, || {
                    queue.enqueue_copy_image_to_buffer(&from, &part, [0; 3], region, 0, &[])?;
                    queue.enqueue_copy_buffer_to_image(&part, &into, 0, [0; 3], region, &[])
                });
                let found = common::content(queue, &buffer);
                assert!(
                    found[start..start + bytes] == *bytemuck::cast_slice::<_, u8>(&numbered(len(kind), 1)),
                    "{kind}"
                );
                assert_eq!(content(queue, &into), numbered(len(kind), 1), "{kind}, {mode:?}, from byte {start}");
            }
        }
        for path in PATHS {
            let into = image(&bench, kind, 2);
            let graph = bench.graph();
            let memory = graph.alloc::<Pixel>(len(kind)).add().unwrap();
            let taken = graph.copy_image_to_buffer(&from, &memory).add().unwrap();
            let put = graph.copy_buffer_to_image(&memory, &into).add().unwrap();
            assert_eq!(graph.predecessors(put).unwrap(), [taken]);
            graph.free(&memory).add().unwrap();
            run(&graph.finalize(Finalize::new().path(path)).unwrap(), queue);
            assert_eq!(content(queue, &into), numbered(len(kind), 1), "{kind}, {path}");
        }
    }
}

/// Rules B2, I3: pixels of a 2D image that is made of a buffer, if the device has such images, with a row pitch longer
/// than a row. rusticl copies other pixels, even outside of the part.
#[test]
fn parts_of_pictures_that_are_made_of_buffers_are_copied() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    let (width, height) = (9, 6);
    let Some(pitch) = queue.device().caps().images.unwrap().buffer_pitch else {
        let refused = Image::from_buffer_2d(queue, &bench.buffer(&[0; 54]), (width, height), FORMAT, 0);
        assert_error!(
            refused,
            MemoryError::ImageOfBuffer { why } if why.contains("does not support two-dimensional images"),
        );
        return;
    };
    let row = (4 * pitch).max(4 * width).next_multiple_of(4 * pitch);
    for (row, mode) in [row, row + 4 * pitch].into_iter().flat_map(|row| MODES.map(|mode| (row, mode))) {
        let picture = |seed: u8| {
            let buffer = Buffer::from_slice(queue, &vec![0xEE_u8; row * height]).unwrap();
            let image = Image::from_buffer_2d(queue, &buffer, (width, height), FORMAT, row).unwrap();
            queue.enqueue_write_image(&image, [0; 3], [width, height, 1], &numbered(54, seed), &[]).unwrap();
            (image, buffer)
        };
        let check = |what: &str, (image, buffer): &(Image, Buffer<u8>), taken: &dyn Fn(usize, usize) -> Pixel| {
            let mut expected = numbered(54, 1);
            (2..5).flat_map(|x| (1..4).map(move |y| (x, y))).for_each(|(x, y)| expected[y * width + x] = taken(x, y));
            assert_eq!(content(queue, image), expected, "{what}, rows of {row} bytes, {mode:?}");
            let bytes = common::content(queue, buffer);
            let between = |row: &[u8]| row[4 * width..].iter().all(|byte| *byte == 0xEE);
            assert!(bytes.chunks(row).all(between), "{what}, rows of {row} bytes, {mode:?}: beside the picture");
        };
        let (other, part) = (image(&bench, ImageKind::Image2d, 3), [3, 3, 1]);
        let from = |x: usize, y: usize| numbered(54, 3)[(y + 2) * width + x + 4];

        let filled = picture(1);
        go(&bench, mode, || queue.enqueue_fill_image(&filled.0, [7_u32; 4], [2, 1, 0], part, &[]));
        check("a fill", &filled, &|_, _| [7; 4]);
        let written = picture(1);
        go(&bench, mode, || queue.enqueue_write_image(&written.0, [2, 1, 0], part, &numbered(9, 8), &[]));
        check("a write", &written, &|x, y| numbered(9, 8)[(y - 1) * 3 + x - 2]);
        let packed = Buffer::<Pixel>::new(queue, 9).unwrap();
        let (source, target) = (picture(3), image(&bench, ImageKind::Image2d, 1));
        go(&bench, mode, || queue.enqueue_copy_image_to_buffer(&source.0, &packed, [6, 3, 0], part, 0, &[]));
        let taken: Vec<Pixel> = (1..4).flat_map(|y| (2..5).map(move |x| (x, y))).map(|(x, y)| from(x, y)).collect();
        assert_eq!(common::content(queue, &packed), taken, "a copy to a buffer, rows of {row} bytes, {mode:?}");
        // On rusticl, which would copy other pixels, clgraph copies only single rows.
        if queue.device().caps().platform == "rusticl" {
            let refused = [
                queue.enqueue_copy_image(&other, &source.0, [6, 3, 0], [2, 1, 0], part, &[]),
                queue.enqueue_copy_image(&source.0, &target, [6, 3, 0], [2, 1, 0], part, &[]),
                queue.enqueue_copy_buffer_to_image(&packed, &source.0, 0, [2, 1, 0], part, &[]),
            ];
            for refused in refused {
                assert_error!(refused, BuildCause::NotSupported { why, .. } if why.contains("or copy row by row"));
            }
            let copied = picture(1);
            (0..3).for_each(|y| {
                let line = || queue.enqueue_copy_image(&other, &copied.0, [6, 3 + y, 0], [2, 1 + y, 0], [3, 1, 1], &[]);
                go(&bench, mode, line);
            });
            check("a copy of rows", &copied, &from);
            continue;
        }
        let copied = picture(1);
        go(&bench, mode, || queue.enqueue_copy_image(&other, &copied.0, [6, 3, 0], [2, 1, 0], part, &[]));
        check("a copy", &copied, &from);
        let put = picture(1);
        go(&bench, mode, || {
            queue.enqueue_copy_image_to_buffer(&other, &packed, [6, 3, 0], part, 0, &[])?;
            queue.enqueue_copy_buffer_to_image(&packed, &put.0, 0, [2, 1, 0], part, &[])
        });
        check("a copy from a buffer", &put, &from);
        go(&bench, mode, || queue.enqueue_copy_image(&source.0, &target, [6, 3, 0], [2, 1, 0], part, &[]));
        let mut expected = numbered(54, 1);
        (2..5).flat_map(|x| (1..4).map(move |y| (x, y))).for_each(|(x, y)| expected[y * width + x] = from(x, y));
        assert_eq!(content(queue, &target), expected, "a copy to another image, rows of {row} bytes, {mode:?}");
    }
}

/// Rules B2, I3: pixels of an image that is made of a sub-buffer are copied from where the sub-buffer is.
#[test]
fn the_pixels_of_a_sub_buffer_are_copied() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    let pixels = queue.device().caps().sub_buffer_align.max(4) / 4;
    if queue.device().caps().platform == "Portable Computing Language" {
        let buffer = Buffer::<Pixel>::new(queue, 2 * pixels).unwrap();
        let refused = Image::from_buffer(queue, &buffer.sub_buffer(pixels..).unwrap(), FORMAT);
        assert_error!(refused, MemoryError::ImageOfBuffer { why } if why.contains("of whole buffers only"));
        return;
    }
    for mode in MODES {
        let buffer = Buffer::from_slice(queue, &numbered(3 * pixels, 1)).unwrap();
        let part = buffer.sub_buffer(pixels..2 * pixels).unwrap();
        let row = Image::from_buffer(queue, &part, FORMAT).unwrap();
        let into = Image::with_data(queue, ImageShape::image_1d(pixels), FORMAT, &numbered(pixels, 2)).unwrap();
        go(&bench, mode, || queue.enqueue_copy_image(&row, &into, [0; 3], [0; 3], [pixels, 1, 1], &[]));
        assert_eq!(content(queue, &into), numbered(3 * pixels, 1)[pixels..2 * pixels], "{mode:?}");
        let put = Image::with_data(queue, ImageShape::image_1d(pixels), FORMAT, &numbered(pixels, 9)).unwrap();
        go(&bench, mode, || queue.enqueue_copy_image(&put, &row, [0; 3], [2, 0, 0], [3, 1, 1], &[]));
        let mut expected = numbered(3 * pixels, 1);
        expected[pixels + 2..pixels + 5].copy_from_slice(&numbered(pixels, 9)[..3]);
        assert_eq!(common::content(queue, &buffer), expected, "{mode:?}");
    }
}

/// Rule R16: a part without pixels is nothing to do, whichever of its sizes is zero.
#[test]
fn a_part_of_no_pixels_changes_nothing() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    for kind in ImageKind::ALL.into_iter().filter(|kind| is_copied(&bench, *kind)) {
        let [a, b] = [1, 2].map(|seed| image(&bench, kind, seed));
        let buffer = Buffer::<Pixel>::new(queue, len(kind)).unwrap();
        for (dim, mode) in (0..3).flat_map(|dim| MODES.map(|mode| (dim, mode))) {
            let mut region = shape(kind).region();
            region[dim] = 0;
            go(&bench, mode, || queue.enqueue_copy_image(&a, &b, [0; 3], [0; 3], region, &[]));
            assert_eq!(content(queue, &b), numbered(len(kind), 2), "{kind}, {region:?}, {mode:?}");
            go(&bench, mode, || queue.enqueue_copy_image_to_buffer(&a, &buffer, [0; 3], region, 0, &[]));
            go(&bench, mode, || queue.enqueue_copy_buffer_to_image(&buffer, &a, 0, [0; 3], region, &[]));
            assert_eq!(content(queue, &a), numbered(len(kind), 1), "{kind}, {region:?}, {mode:?}");
        }
    }
}

/// Rule R16: a map that invalidates reads nothing. So an image that the host may only write can be mapped with it, like
/// a buffer.
#[test]
fn an_image_that_the_host_only_writes_is_mapped_to_be_written() {
    let Some(bench) = bench() else { return };
    let (queue, kind) = (&bench.queue, ImageKind::Image2d);
    let (mut pixels, region) = (numbered(54, 1), shape(kind).region());
    let flags = plain::CL_MEM_READ_WRITE | plain::CL_MEM_HOST_WRITE_ONLY;
    let (plain, _) = plain_image(queue, shape(kind), FORMAT, flags, bytemuck::cast_slice_mut(&mut pixels));
    let image = Image::from_opencl3(queue, &plain).unwrap();
    // SAFETY: nothing else uses the image.
    let mapped = unsafe { queue.map_image::<Pixel, _>(&image, [0; 3], region, MapWriteInvalidate, &[]) };
    let mut mapped = mapped.unwrap();
    (0..region[1]).for_each(|y| mapped.row_mut(y, 0).unwrap().fill([y as u8; 4]));
    mapped.unmap().unwrap();
    let out = Buffer::<Pixel>::new(queue, 54).unwrap();
    queue.enqueue_copy_image_to_buffer(&image, &out, [0; 3], region, 0, &[]).unwrap();
    let rows = (0..6).flat_map(|y| [[y; 4]; 9]).collect::<Vec<Pixel>>();
    assert_eq!(common::content(queue, &out), rows);
}

/// Rules D1, I3: a kernel that reads and writes the pixels of a buffer. PoCL 3.1 and 6.0 crash over it.
#[test]
fn a_kernel_reads_and_writes_the_pixels_of_a_buffer_or_is_refused() {
    let Some(bench) = bench() else { return };
    let (queue, kind) = (&bench.queue, ImageKind::Image1dBuffer);
    let options = if queue.device().caps().version.major >= 3 { "-cl-std=CL3.0" } else { "-cl-std=CL2.0" };
    let source = "kernel void raise(read_write image1d_buffer_t image) {
        int at = get_global_id(0);
        write_imageui(image, at, read_imageui(image, at) + 1);
    }";
    let has = Image::formats(queue, kind, ImageAccess::ReadWriteInKernel).unwrap().contains(&FORMAT);
    let built = ProgramBuilder::new(queue).options(options).source(source).and_then(|program| program.kernel("raise"));
    let Ok(kernel) = built else { return assert!(!has, "{built:?}") };
    for mode in MODES {
        let row = image(&bench, kind, 1);
        let launch = || {
            let mut launch = ExecuteKernel::new(&kernel);
            launch.set_arg(&row).set_global_work_size(23);
            // SAFETY: a work-item reads and writes its own pixel.
            unsafe { launch.enqueue_nd_range(queue) }
        };
        let graph = bench.graph();
        if let Err(error) = graph.record(queue, launch) {
            assert!(error.kind() == ErrorKind::FeatureNotSupported && graph.is_empty(), "{error}");
            assert_eq!(launch().unwrap_err().kind(), ErrorKind::FeatureNotSupported);
            return;
        }
        go(&bench, mode, launch);
        let raised = |pixel: Pixel| pixel.map(|channel| channel.saturating_add(1));
        let expected: Vec<Pixel> = numbered(23, 1).into_iter().map(raised).collect();
        assert_eq!(content(queue, &row), expected, "{mode:?}");
    }
}
