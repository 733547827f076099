//! Commands on images and on parts of them: what they wait for, their forms on queues, and how graphs run them.

mod common;
#[path = "common/images.rs"]
mod images;

use clgraph::{
    Buffer, BuildCause, ChannelOrder, ChannelType, Color, CommandKind, ErrorKind, Finalize, Graph, Image, ImageAccess,
    ImageFormat, ImageKind, MemoryError, Node, Path, PathReason, RecordError,
};
use common::{assert_error, cause};
use images::{FORMAT, PATHS, Pixel, bench, content, image, len, mirror, mirrored, numbered, run, shape};

const CL_IMAGE_ELEMENT_SIZE: u32 = 0x1111;

/// Returns into how many independent parts a kind can be divided: rows, layers or slices.
fn cut(kind: ImageKind) -> usize {
    if matches!(kind, ImageKind::Image1dArray | ImageKind::Image2d) { 1 } else { 2 }
}

/// Returns the origin and region of some of these parts.
fn parts(kind: ImageKind, start: usize, count: usize) -> ([usize; 3], [usize; 3]) {
    let (mut origin, mut region) = ([0; 3], shape(kind).region());
    (origin[cut(kind)], region[cut(kind)]) = (start, count);
    (origin, region)
}

const CUT: [ImageKind; 4] = [ImageKind::Image1dArray, ImageKind::Image2d, ImageKind::Image2dArray, ImageKind::Image3d];

/// Rules D1, D2: rows of a picture, layers of an array, slices of a block. Disjoint parts are not ordered.
#[test]
fn parts_of_an_image_are_ordered_where_they_overlap() {
    let Some(bench) = bench() else { return };
    // On an in-order queue every node would be after the one before.
    let queue = bench.another_queue(true);
    for kind in CUT {
        for recorded in [false, true] {
            let image = image(&bench, kind, 1);
            let graph = bench.graph();
            let fill = |color: u32, (origin, region): ([usize; 3], [usize; 3])| {
                if recorded {
                    let fill = || queue.enqueue_fill_image(&image, [color; 4], origin, region, &[]);
                    graph.node_of(&graph.record(&queue, fill).unwrap()).unwrap()
                } else {
                    graph.fill_image(&image, [color; 4]).area(origin, region).add().unwrap()
                }
            };
            let (first, second) = (fill(11, parts(kind, 0, 1)), fill(12, parts(kind, 2, 1)));
            let third = fill(13, parts(kind, 1, 2));
            let before = |node: Node| graph.predecessors(node).unwrap();
            assert_eq!(before(first), [], "{kind}");
            assert_eq!(before(second), [], "{kind}");
            assert_eq!(before(third), [second], "{kind}");
            // A read waits for the writers of the part; a write waits for its readers.
            let read = |(origin, region)| graph.read_image::<Pixel>(&image).area(origin, region).add().unwrap();
            let (top, rest) = (read(parts(kind, 0, 1)), read(parts(kind, 1, 2)));
            assert_eq!((before(top.node()), before(rest.node())), (vec![first], vec![third]), "{kind}");
            let again = fill(14, parts(kind, 0, 1));
            assert_eq!(before(again), [top.node()], "{kind}");
            let executable = graph.finalize(Finalize::new()).unwrap();
            let submission = executable.submit(&queue).unwrap();
            submission.wait().unwrap();
            let part = |count: usize| parts(kind, 0, count).1.iter().product::<usize>();
            let mut expected = numbered(len(kind), 1);
            expected[..part(1)].fill([14; 4]);
            expected[part(1)..part(3)].fill([13; 4]);
            assert_eq!(content(&bench.queue, &image), expected, "{kind}");
            assert_eq!(*submission.get(&top).unwrap(), vec![[11; 4]; part(1)], "{kind}");
        }
    }
}

/// Rules D1, D2: copies and host writes go by parts too, on both sides; a kernel names its layers.
#[test]
fn commands_and_kernels_on_different_parts_are_not_ordered() {
    let Some(bench) = bench() else { return };
    for kind in CUT {
        let [a, b] = [1, 2].map(|seed| image(&bench, kind, seed));
        let part = parts(kind, 0, 1).1;
        let at = |start: usize| parts(kind, start, 1).0;
        let pixels: usize = part.iter().product();
        let buffer = Buffer::<Pixel>::new(&bench.queue, pixels).unwrap();
        let graph = bench.graph();
        let before = |node: Node| graph.predecessors(node).unwrap();
        let copy = graph.copy_image(&a, &b).src_origin(at(0)).dst_origin(at(1)).region(part).add().unwrap();
        let beside = graph.write_image(&b, numbered(pixels, 5)).area(at(0), part).add().unwrap().node();
        let over = graph.write_image(&a, numbered(pixels, 6)).area(at(0), part).add().unwrap().node();
        assert_eq!((before(beside), before(over)), (vec![], vec![copy]), "{kind}");
        // clgraph refuses this copy for some drivers: between an array of rows and a buffer.
        match graph.copy_image_to_buffer(&b, &buffer).src_origin(at(1)).region(part).add() {
            Ok(taken) => {
                assert_eq!(before(taken), [copy], "{kind}");
                let put = graph.copy_buffer_to_image(&buffer, &a).dst_origin(at(2)).region(part).add().unwrap();
                assert_eq!(before(put), [taken], "{kind}");
            }
            Err(error) => {
                assert!(matches!(cause::<()>(Err(error)), BuildCause::NotSupported { .. }));
                assert_eq!(kind, ImageKind::Image1dArray);
            }
        }
    }
    let kind = ImageKind::Image1dArray;
    let kernel = mirror(&bench, kind);
    let [from, into] = [1, 2].map(|seed| image(&bench, kind, seed));
    let graph = bench.graph();
    let node = |layer: usize| {
        let (read, written) = (from.layers(layer..=layer).unwrap(), into.layers(layer..=layer).unwrap());
        let node = graph.kernel(&kernel).read(&read).write(&written).arg(1_u32).range([9, 1]).offset([0, layer]);
        // SAFETY: a work-item writes its own pixel, of the layer at which its ids start.
        unsafe { node.add().unwrap() }
    };
    let (first, second) = (node(0), node(3));
    let read = graph.read_image::<Pixel>(&into).area([0, 2, 0], [9, 2, 1]).add().unwrap();
    assert_eq!(graph.predecessors(second).unwrap(), []);
    assert_eq!(graph.predecessors(read.node()).unwrap(), [second], "and not {first:?}");
    run(&graph.finalize(Finalize::new()).unwrap(), &bench.queue);
    let (mut expected, raised) = (numbered(36, 2), mirrored(&numbered(36, 1), kind, 1));
    for row in [0..9, 27..36] {
        expected[row.clone()].copy_from_slice(&raised[row]);
    }
    assert_eq!(content(&bench.queue, &into), expected);
}

/// Rules R3, R15, R20: host reads and writes that own their memory: executed, recorded, and without events.
#[test]
fn reads_and_writes_of_owned_memory_are_recorded() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    for kind in ImageKind::ALL {
        let region = shape(kind).region();
        let corner = region.map(|size| size.div_ceil(2));
        let pixels: usize = corner.iter().product();
        let places: Vec<usize> = (0..len(kind))
            .filter(|at| {
                let place = [at % region[0], at / region[0] % region[1], at / region[0] / region[1]];
                (0..3).all(|dim| place[dim] >= region[dim] - corner[dim])
            })
            .collect();
        let origin = [0, 1, 2].map(|dim| region[dim] - corner[dim]);
        let mut expected = numbered(len(kind), 20);
        places.iter().zip(numbered(pixels, 30)).for_each(|(place, pixel)| expected[*place] = pixel);
        let target = image(&bench, kind, 1);
        let commands = |detached: bool| {
            let (all, part) = (numbered(len(kind), 20), numbered(pixels, 30));
            if detached {
                let detached = queue.detached();
                detached.enqueue_write_image_owned(&target, [0; 3], region, all, &[])?;
                detached.enqueue_write_image(&target, origin, corner, &part, &[])?;
            } else {
                queue.enqueue_write_image_owned(&target, [0; 3], region, all, &[])?;
                queue.enqueue_write_image_owned(&target, origin, corner, part, &[])?;
            }
            Ok((
                queue.enqueue_read_image_owned::<Pixel>(&target, [0; 3], region, &[])?,
                queue.enqueue_read_image_owned::<u32>(&target, origin, corner, &[])?,
            ))
        };
        let check = |(all, part): (Vec<Pixel>, Vec<u32>), how: &str| {
            assert_eq!(all, expected, "{kind}, {how}");
            assert_eq!(part, bytemuck::cast_slice::<_, u32>(&numbered(pixels, 30)), "{kind}, {how}");
        };
        for detached in [false, true] {
            let (all, part) = commands(detached).unwrap();
            check((all.wait().unwrap(), part.wait().unwrap()), "at once");
            for path in PATHS {
                let graph = bench.graph();
                let (all, part) = graph.record(queue, || commands(detached)).unwrap();
                assert_eq!(graph.nodes().len(), 4);
                assert_error!(all.wait(), RecordError::Recorded { what: "waited for", .. });
                let (all, part) = (all.host_read().unwrap(), part.host_read().unwrap());
                queue.enqueue_write_image(&target, [0; 3], region, &numbered(len(kind), 3), &[]).unwrap();
                let executable = graph.finalize(Finalize::new().path(path)).unwrap();
                for _ in 0..2 {
                    let submission = executable.submit(queue).unwrap();
                    submission.wait().unwrap();
                    let all = submission.get(&all).unwrap().to_vec();
                    check((all, submission.get(&part).unwrap().to_vec()), &path.to_string());
                }
            }
        }
    }
}

/// Rule R20: the other commands without events, executed and recorded.
#[test]
fn commands_on_images_have_forms_without_events() {
    let Some(bench) = bench() else { return };
    let (queue, kind) = (&bench.queue, ImageKind::Image2dArray);
    let (region, layer) = (shape(kind).region(), [7, 5, 1]);
    let [a, b] = [1, 2].map(|seed| image(&bench, kind, seed));
    let buffer = Buffer::<Pixel>::new(queue, 35).unwrap();
    let commands = || {
        let queue = queue.detached();
        queue.enqueue_fill_image(&a, [6_u32, 7, 8, 9], [0, 0, 1], layer, &[])?;
        queue.enqueue_copy_image(&a, &b, [0; 3], [0; 3], region, &[])?;
        queue.enqueue_copy_image_to_buffer(&b, &buffer, [0, 0, 1], layer, 0, &[])?;
        queue.enqueue_copy_buffer_to_image(&buffer, &b, 0, [0, 0, 2], layer, &[])
    };
    let mut expected = numbered(len(kind), 1);
    expected[35..].fill([6, 7, 8, 9]);
    let check = |how: &str| {
        assert_eq!(content(queue, &b), expected, "{how}");
        queue.enqueue_write_image(&b, [0; 3], region, &numbered(len(kind), 2), &[]).unwrap();
        queue.enqueue_write_image(&a, [0; 3], region, &numbered(len(kind), 1), &[]).unwrap();
    };
    commands().unwrap();
    check("at once");
    for path in PATHS {
        let graph = bench.graph();
        graph.record(queue, commands).unwrap();
        assert_eq!(graph.nodes().len(), 4);
        run(&graph.finalize(Finalize::new().path(path)).unwrap(), queue);
        check(&path.to_string());
    }
}

/// Rules F1, F4: the report says why a command on an image is replayed; the result is the same.
#[test]
fn the_report_says_why_a_command_on_an_image_is_replayed() {
    let Some(bench) = bench() else { return };
    let (queue, caps) = (&bench.queue, bench.queue.device().caps());
    let records = caps.can_record(CommandKind::Kernel).is_ok() && queue.device().abi().is_ok_and(|abi| abi.is_some());
    let only = |graph: &Graph| {
        let executable = graph.finalize(Finalize::new().path(Path::Native)).unwrap();
        run(&executable, queue);
        let [part] = &executable.report().segments[..] else { panic!("{}", executable.report()) };
        assert!(executable.report().to_string().contains(&part.why.to_string()));
        (part.path, part.why)
    };
    let [a, b] = [1, 2].map(|seed| image(&bench, ImageKind::Image1d, seed));
    let graph = bench.graph();
    graph.write_image(&a, numbered(23, 5)).add().unwrap();
    graph.read_image::<Pixel>(&a).add().unwrap();
    assert_eq!(only(&graph), (Path::Replay, caps.can_record(CommandKind::Read).unwrap_err()));
    assert_eq!(only(&graph).1 == PathReason::NoSuchCommand, caps.can_record(CommandKind::Kernel).is_ok());

    // PoCL crashes over a recorded image that is made of a buffer. Copies name the buffer, and are recorded.
    let buffer = Buffer::from_slice(queue, &numbered(23, 7)).unwrap();
    let row = Image::from_buffer(queue, &buffer, FORMAT).unwrap();
    let out = Buffer::<Pixel>::new(queue, 23).unwrap();
    let is_pocl = caps.platform == "Portable Computing Language";
    let recorded = if records { Path::Native } else { Path::Replay };
    let graph = bench.graph();
    graph.copy_image_to_buffer(&row, &out).add().unwrap();
    assert_eq!(only(&graph).0, recorded);
    assert_eq!(common::content(queue, &out), numbered(23, 7));
    let graph = bench.graph();
    graph.copy_image(&row, &b).add().unwrap();
    assert_eq!(only(&graph).0, recorded);
    assert_eq!(content(queue, &b), numbered(23, 7));
    let graph = bench.graph();
    let kernel = mirror(&bench, ImageKind::Image1dBuffer);
    let other = image(&bench, ImageKind::Image1dBuffer, 8);
    // SAFETY: a work-item writes its own pixel.
    unsafe { graph.kernel(&kernel).read(&row).write(&other).arg(1_u32).range(23).add().unwrap() };
    let found = only(&graph);
    if records && is_pocl {
        assert_eq!(found, (Path::Replay, PathReason::ImageOfBuffer));
    } else {
        assert_eq!(found.0, recorded);
    }
    assert_eq!(content(queue, &other), mirrored(&numbered(23, 7), ImageKind::Image1dBuffer, 1));

    let Some(pitch) = caps.images.unwrap().buffer_pitch else {
        let refused = Image::from_buffer_2d(queue, &buffer, (2, 2), FORMAT, 0);
        assert_error!(
            refused,
            MemoryError::ImageOfBuffer { why } if why.contains("does not support two-dimensional images"),
        );
        return;
    };
    let row_pitch = (4 * pitch).max(36).next_multiple_of(4 * pitch);
    let bytes = Buffer::from_slice(queue, &vec![9_u8; row_pitch * 6]).unwrap();
    let picture = Image::from_buffer_2d(queue, &bytes, (9, 6), FORMAT, row_pitch).unwrap();
    let out = Buffer::<Pixel>::new(queue, 54).unwrap();
    let graph = bench.graph();
    graph.copy_image_to_buffer(&picture, &out).add().unwrap();
    let found = only(&graph);
    if records && is_pocl {
        assert_eq!(found, (Path::Replay, PathReason::ImageOfBuffer));
    } else {
        assert_eq!(found.0, recorded);
    }
    assert_eq!(common::content(queue, &out), [[9; 4]; 54]);
}

/// Rule I3: every format that the device has and clgraph knows, in each kind: what is written is read, and a graph
/// fills like a queue, bit for bit.
#[test]
fn each_format_is_filled_as_by_an_eager_run() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    let mut known = 0;
    for kind in ImageKind::ALL {
        let region = shape(kind).region();
        for format in Image::formats(queue, kind, ImageAccess::ReadWrite).unwrap() {
            let Some(size) = format.pixel_size() else { continue };
            known += 1;
            let bytes: Vec<u8> = (0..len(kind) * size).map(|at| (at % 61) as u8).collect();
            let image = if kind == ImageKind::Image1dBuffer {
                Image::from_buffer(queue, &Buffer::from_slice(queue, &bytes).unwrap(), format).unwrap()
            } else {
                Image::with_data(queue, shape(kind), format, &bytes).unwrap()
            };
            let reported: usize = opencl3::memory::get_image_info(image.raw(), CL_IMAGE_ELEMENT_SIZE).unwrap().into();
            assert_eq!(reported, size, "{kind} of {format}");
            let found = || {
                let mut found = vec![0_u8; bytes.len()];
                queue.enqueue_read_image(&image, [0; 3], region, &mut found, &[]).unwrap();
                found
            };
            assert_eq!(found(), bytes, "{kind} of {format}");
            // The kind of numbers that the format has.
            let colors = [Color::Float([0.25, 0.5, 0.75, 1.0]), Color::Int([-3, 4, -5, 6]), Color::Uint([3, 4, 5, 6])];
            let fills =
                |color: &Color| bench.graph().fill_image(&image, *color).add().map_err(|error| cause::<()>(Err(error)));
            let outcomes = colors.map(|color| fills(&color).err());
            let wrong =
                outcomes.iter().filter(|outcome| matches!(outcome, Some(BuildCause::ImageColor { .. }))).count();
            assert_eq!(wrong, 2, "{kind} of {format}: {outcomes:?}");
            let Some(at) = outcomes.iter().position(Option::is_none) else {
                // PoCL 3.1 crashes over it.
                let refused = |outcome: &Option<BuildCause>| matches!(outcome, Some(BuildCause::NotSupported { .. }));
                assert!(kind == ImageKind::Image1dBuffer && outcomes.iter().any(refused), "{outcomes:?}");
                continue;
            };
            queue.enqueue_fill_image(&image, colors[at], [0; 3], region, &[]).unwrap();
            let filled = found();
            assert!(filled != bytes && filled.chunks(size).all(|pixel| *pixel == filled[..size]), "{kind} of {format}");
            for path in [Path::Replay, Path::Native] {
                let graph = bench.graph();
                graph.write_image(&image, &bytes[..]).add().unwrap();
                graph.fill_image(&image, colors[at]).add().unwrap();
                run(&graph.finalize(Finalize::new().path(path)).unwrap(), queue);
                assert_eq!(found(), filled, "{kind} of {format}, {path}");
            }
        }
    }
    assert!(known > 6 * 3, "every device has more formats than that");
}

/// Rules B2, I3: pixels of each size and a part of each kind: from image to image, and through a buffer at an odd byte
/// offset.
#[test]
fn pixels_of_each_size_are_copied() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    let paths = [None, Some(Path::Replay), Some(Path::Native)];
    let formats = [ImageFormat::R_U8_NORM, FORMAT, ImageFormat::RGBA_U32, ImageFormat::RGBA_F32];
    for kind in ImageKind::ALL {
        let has = Image::formats(queue, kind, ImageAccess::ReadWrite).unwrap();
        let half = ImageFormat::new(ChannelOrder::Rgba, ChannelType::HalfFloat);
        for (format, path) in
            formats.into_iter().chain([half]).filter(|of| has.contains(of)).flat_map(|of| paths.map(|path| (of, path)))
        {
            let (size, region) = (format.pixel_size().unwrap(), shape(kind).region());
            let make = |seed: u8| {
                let bytes: Vec<u8> = (0..len(kind) * size).map(|at| (at % 61) as u8 + seed).collect();
                let image = if kind == ImageKind::Image1dBuffer {
                    Image::from_buffer(queue, &Buffer::from_slice(queue, &bytes).unwrap(), format).unwrap()
                } else {
                    Image::with_data(queue, shape(kind), format, &bytes).unwrap()
                };
                (image, bytes)
            };
            let ((from, pixels), (into, mut expected), (through, _)) = (make(1), make(2), make(2));
            let part = region.map(|size| size.div_ceil(2));
            let origin = [0, 1, 2].map(|dim| region[dim] - part[dim]);
            let place = |[x, y, z]: [usize; 3]| ((z * region[1] + y) * region[0] + x) * size;
            for (z, y) in (0..part[2]).flat_map(|z| (0..part[1]).map(move |y| (z, y))) {
                let (at, row) = (place([0, y, z]), part[0] * size);
                let taken = place([origin[0], origin[1] + y, origin[2] + z]);
                expected[at..at + row].copy_from_slice(&pixels[taken..taken + row]);
            }
            let bytes = Buffer::from_slice(queue, &vec![0xEE_u8; len(kind) * size + 9]).unwrap();
            let commands = || {
                queue.enqueue_copy_image(&from, &into, origin, [0; 3], part, &[])?;
                let taken = queue.enqueue_copy_image_to_buffer(&from, &bytes, origin, part, 5, &[]);
                if kind == ImageKind::Image1dArray
                    && matches!(&taken, Err(error) if error.kind() == ErrorKind::FeatureNotSupported)
                {
                    // clgraph refuses this on a driver that refuses it.
                    return queue.enqueue_copy_image(&into, &through, [0; 3], [0; 3], part, &[]);
                }
                queue.enqueue_copy_buffer_to_image(&bytes, &through, 5, [0; 3], part, &[])
            };
            match path {
                None => _ = commands().unwrap(),
                Some(path) => {
                    let graph = bench.graph();
                    graph.record(queue, commands).unwrap();
                    run(&graph.finalize(Finalize::new().path(path)).unwrap(), queue);
                }
            }
            for image in [&into, &through] {
                let mut found = vec![0_u8; expected.len()];
                queue.enqueue_read_image(image, [0; 3], region, &mut found, &[]).unwrap();
                assert!(found == expected, "{kind} of {format}, {path:?}");
            }
            let around = common::content(queue, &bytes);
            let end = 5 + part.iter().product::<usize>() * size;
            assert!(around[..5] == [0xEE; 5] && around[end..].iter().all(|byte| *byte == 0xEE), "{kind} of {format}");
        }
    }
}
