//! Errors of image commands are found before the driver is called, in the same way for building, executing and
//! recording.

mod common;
#[path = "common/images.rs"]
mod images;
#[cfg(target_os = "linux")]
#[path = "common/layer.rs"]
mod layer;

use clgraph::{
    Addressing, Buffer, BuildCause, ChannelOrder, ChannelType, Error, ExecuteKernel, Filter, Graph, Image, ImageAccess,
    ImageFormat, ImageKind, ImageShape, Kernel, MapMode, MapRead, MapWrite, MapWriteInvalidate, MemoryError, Program,
    Queue, RecordError, Result, Sampler,
};
use common::{Bench, assert_error, cause, elsewhere};
use images::{FORMAT, Pixel, bench, content, image, len, mirror, numbered, plain_image, shape};
use opencl3::memory as plain;

/// Origin and region.
type Part = ([usize; 3], [usize; 3]);

/// A command on a part of an image: built if there is a graph, otherwise enqueued.
type Command<'a> = (&'static str, Box<dyn Fn(Option<&Graph>, &Image, Part) -> Result<()> + 'a>);

/// All commands. `with` is another image of the kind, and the buffer has room for more pixels than the image.
fn commands<'a>(queue: &'a Queue, with: &'a Image, buffer: &'a Buffer<Pixel>) -> Vec<Command<'a>> {
    let count = |(_, region): Part| region.iter().product::<usize>();
    let start = [0; 3];
    vec![
        (
            "copy source",
            Box::new(move |graph, image, (origin, region)| match graph {
                Some(graph) => graph.copy_image(image, with).src_origin(origin).region(region).add().map(|_| ()),
                None => queue.enqueue_copy_image(image, with, origin, start, region, &[]).map(|_| ()),
            }),
        ),
        (
            "copy destination",
            Box::new(move |graph, image, (origin, region)| match graph {
                Some(graph) => graph.copy_image(with, image).dst_origin(origin).region(region).add().map(|_| ()),
                None => queue.enqueue_copy_image(with, image, start, origin, region, &[]).map(|_| ()),
            }),
        ),
        (
            "fill",
            Box::new(move |graph, image, (origin, region)| match graph {
                Some(graph) => graph.fill_image(image, [1_u32; 4]).area(origin, region).add().map(|_| ()),
                None => queue.enqueue_fill_image(image, [1_u32; 4], origin, region, &[]).map(|_| ()),
            }),
        ),
        (
            "read",
            Box::new(move |graph, image, (origin, region)| match graph {
                Some(graph) => graph.read_image::<u8>(image).area(origin, region).add().map(|_| ()),
                None => {
                    let mut pixels = vec![[0_u8; 4]; count((origin, region))];
                    queue.enqueue_read_image(image, origin, region, &mut pixels, &[]).map(|_| ())
                }
            }),
        ),
        (
            "read into memory of its own",
            Box::new(move |graph, image, (origin, region)| match graph {
                Some(graph) => graph.read_image::<Pixel>(image).area(origin, region).add().map(|_| ()),
                None => queue.enqueue_read_image_owned::<Pixel>(image, origin, region, &[]).map(|_| ()),
            }),
        ),
        (
            "write",
            Box::new(move |graph, image, (origin, region)| {
                let pixels = numbered(count((origin, region)), 3);
                match graph {
                    Some(graph) => graph.write_image(image, pixels).area(origin, region).add().map(|_| ()),
                    None => queue.enqueue_write_image(image, origin, region, &pixels, &[]).map(|_| ()),
                }
            }),
        ),
        (
            "write of owned memory",
            Box::new(move |graph, image, (origin, region)| {
                let pixels = numbered(count((origin, region)), 3);
                match graph {
                    Some(graph) => graph.write_image(image, &pixels[..]).area(origin, region).add().map(|_| ()),
                    None => queue.enqueue_write_image_owned(image, origin, region, pixels, &[]).map(|_| ()),
                }
            }),
        ),
        (
            "copy to a buffer",
            Box::new(move |graph, image, (origin, region)| match graph {
                Some(graph) => {
                    let packed = buffer.slice(..count((origin, region)))?;
                    graph.copy_image_to_buffer(image, &packed).src_origin(origin).region(region).add().map(|_| ())
                }
                None => queue.enqueue_copy_image_to_buffer(image, buffer, origin, region, 0, &[]).map(|_| ()),
            }),
        ),
        (
            "copy from a buffer",
            Box::new(move |graph, image, (origin, region)| match graph {
                Some(graph) => {
                    let packed = buffer.slice(..count((origin, region)))?;
                    graph.copy_buffer_to_image(&packed, image).dst_origin(origin).region(region).add().map(|_| ())
                }
                None => queue.enqueue_copy_buffer_to_image(buffer, image, 0, origin, region, &[]).map(|_| ()),
            }),
        ),
    ]
}

/// Returns the error of a command when it is built, executed and recorded, which must be the same; the graph stays
/// empty.
#[track_caller]
fn refused(bench: &Bench, (name, command): &Command<'_>, image: &Image, part: Part) -> BuildCause {
    let graph = bench.graph();
    let built = cause(command(Some(&graph), image, part));
    assert_eq!(built, cause(command(None, image, part)), "{name}: {part:?} of {image:?}, at once");
    let recorded = graph.record(&bench.queue, || command(None, image, part));
    assert_eq!(built, cause(recorded), "{name}: {part:?} of {image:?}, recorded");
    assert!(graph.is_empty());
    built
}

/// Parts that are outside: beside the image in each dimension, even those that it does not have, and too long by one.
fn beyond(sizes: [usize; 3]) -> Vec<Part> {
    let mut parts = Vec::new();
    for dim in 0..3 {
        let with = |value: usize, of: [usize; 3]| {
            let mut of = of;
            of[dim] = value;
            of
        };
        parts.push((with(sizes[dim], [0; 3]), [1; 3]));
        parts.push((with(1, [0; 3]), sizes));
        parts.push(([0; 3], with(sizes[dim] + 1, sizes)));
        parts.push((with(sizes[dim] - 1, [0; 3]), with(2, [1; 3])));
        parts.push((with(usize::MAX, [0; 3]), [1; 3]));
    }
    parts
}

/// Rules R16, I5: no command reaches beyond an image, of any kind.
#[test]
fn parts_beyond_an_image_are_errors_of_each_command() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    for kind in ImageKind::ALL {
        let [subject, with] = [1, 2].map(|seed| image(&bench, kind, seed));
        let buffer = Buffer::from_slice(queue, &numbered(3 * len(kind), 7)).unwrap();
        for command in commands(queue, &with, &buffer) {
            for part in beyond(shape(kind).region()) {
                let found = refused(&bench, &command, &subject, part);
                let BuildCause::ImageArea { origin, region, shape, .. } = &found else {
                    panic!("{}: {part:?} of an {kind}: {found}", command.0)
                };
                assert_eq!((*origin, *region), part);
                assert!(shape.starts_with(&kind.to_string()), "{shape}");
            }
        }
        assert_eq!(content(queue, &subject), numbered(len(kind), 1), "{kind}");
        assert_eq!(content(queue, &with), numbered(len(kind), 2), "{kind}");
        assert_eq!(common::content(queue, &buffer), numbered(3 * len(kind), 7), "{kind}");
    }
}

/// Rule R16: images of another context, in each command on both sides, as arguments, mapped, and made of buffers.
#[test]
fn images_of_another_context_are_errors_wherever_they_are_given() {
    let Some(bench) = bench() else { return };
    let (queue, far) = (&bench.queue, elsewhere());
    for kind in ImageKind::ALL {
        let (own, theirs) = (image(&bench, kind, 1), image(far, kind, 2));
        let buffer = Buffer::<Pixel>::new(queue, len(kind)).unwrap();
        let all = ([0; 3], shape(kind).region());
        for command in commands(queue, &own, &buffer) {
            let found = refused(&bench, &command, &theirs, all);
            assert!(matches!(found, BuildCause::OtherContext { .. }), "{}, {kind}: {found}", command.0);
        }
        // Also the buffer that pixels come from or go to.
        let away = Buffer::<Pixel>::new(&far.queue, len(kind)).unwrap();
        for command in commands(queue, &own, &away).into_iter().filter(|command| command.0.contains("a buffer")) {
            let found = refused(&bench, &command, &own, all);
            assert!(matches!(found, BuildCause::OtherContext { .. }), "{}, {kind}: {found}", command.0);
        }
        let kernel = mirror(&bench, kind);
        for (from, into, index) in [(&theirs, &own, 0), (&own, &theirs, 1)] {
            let launch = || {
                let mut launch = ExecuteKernel::new(&kernel);
                launch.set_arg(from).set_arg(into).set_arg(&1_u32).set_global_work_sizes(&all.1);
                // SAFETY: an error.
                unsafe { launch.enqueue_nd_range(queue) }
            };
            let graph = bench.graph();
            // SAFETY: an error.
            let built = cause(unsafe { graph.kernel(&kernel).read(from).write(into).arg(1_u32).range(all.1).add() });
            assert_eq!(built, BuildCause::OtherContext { what: format!("argument {index}") });
            assert_eq!((cause(launch()), cause(graph.record(queue, launch))), (built.clone(), built));
            assert!(graph.is_empty());
        }
        // SAFETY: an error.
        let mapped = unsafe { queue.map_image::<u8, _>(&theirs, all.0, all.1, MapRead, &[]) };
        assert!(matches!(cause(mapped), BuildCause::OtherContext { .. }));
    }
    let source = "kernel void sampled(read_only image2d_t in, sampler_t sampler, global float4 *out) {
        out[get_global_id(0)] = read_imagef(in, sampler, (float2)(get_global_id(0), 0));
    }";
    let sampled = Program::from_source(queue, source).unwrap().kernel("sampled").unwrap();
    let floats = Image::new(queue, ImageShape::image_2d(4, 1), ImageFormat::RGBA_F32).unwrap();
    let (sampler, out) =
        (Sampler::new(&far.queue, false, Addressing::Clamp, Filter::Nearest).unwrap(), bench.buffer(&[0; 16]));
    let found = refused_launch(&bench, &sampled, |launch| _ = launch.set_arg(&floats).set_arg(&sampler).set_arg(&out));
    assert_eq!(found, BuildCause::OtherContext { what: "argument 1".to_owned() });
    let away = Buffer::<u8>::new(&far.queue, 1 << 16).unwrap();
    let made = Image::from_buffer(queue, &away, FORMAT);
    assert!(matches!(made, Err(Error::Memory(MemoryError::OtherContext))), "{made:?}");
    if let Some(pixels) = queue.device().caps().images.unwrap().buffer_pitch {
        let row = 16_usize.next_multiple_of(4 * pixels);
        let made = Image::from_buffer_2d(queue, &away, (4, 4), FORMAT, row);
        assert!(matches!(made, Err(Error::Memory(MemoryError::OtherContext))), "{made:?}");
    }
}

/// Returns the error of a launch when it executes and when it is recorded, which must be the same; nothing is added.
#[track_caller]
fn refused_launch(bench: &Bench, kernel: &Kernel, give: impl Fn(&mut ExecuteKernel<'_>)) -> BuildCause {
    let launch = || {
        let mut launch = ExecuteKernel::new(kernel);
        give(&mut launch);
        launch.set_global_work_size(1);
        // SAFETY: an error.
        unsafe { launch.enqueue_nd_range(&bench.queue) }
    };
    let (executed, graph) = (cause(launch()), bench.graph());
    assert_eq!(cause(graph.record(&bench.queue, launch)), executed, "recorded");
    assert!(graph.is_empty());
    executed
}

/// Rules R16, D1: OpenCL does not define what such a kernel reads, so clgraph refuses it.
#[test]
fn writing_an_image_and_reading_its_buffer_in_one_kernel_is_refused() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    let source = "kernel void back(write_only image1d_buffer_t image, global uint *words) {
        write_imageui(image, get_global_id(0), (uint4)(words[get_global_id(0)]));
    }
    kernel void both(read_only image1d_buffer_t image, global uint *words) {
        words[get_global_id(0)] = read_imageui(image, get_global_id(0)).x;
    }
    kernel void seen(read_only image1d_buffer_t image, global const uint *words, global uint *out) {
        out[get_global_id(0)] = read_imageui(image, get_global_id(0)).x + words[get_global_id(0)];
    }
    kernel void twice(read_only image1d_buffer_t from, write_only image1d_buffer_t into) {
        write_imageui(into, get_global_id(0), read_imageui(from, get_global_id(0)));
    }";
    let program = Program::from_source(queue, source).unwrap();
    let buffer = Buffer::from_slice(queue, &numbered(16, 1)).unwrap();
    let row = Image::from_buffer(queue, &buffer, FORMAT).unwrap();
    let again = Image::from_buffer(queue, &buffer, FORMAT).unwrap();
    let words = buffer.cast::<u32>().unwrap();
    // Also for a part of the buffer: OpenCL does not say that parts are separate.
    let part = words.slice(8..).unwrap();
    let graph = bench.graph();
    let shared = BuildCause::ImageShared { image: 0, other: 1 };
    let [back, both, twice] = ["back", "both", "twice"].map(|name| program.kernel(name).unwrap());
    // SAFETY: errors.
    let built = unsafe {
        [
            graph.kernel(&back).write(&row).read(&words).range(16).add(),
            graph.kernel(&back).write(&row).read(&part).range(8).add(),
            graph.kernel(&both).read(&row).write(&words).range(16).add(),
            graph.kernel(&twice).read(&row).write(&again).range(16).add(),
            graph.kernel(&twice).read(&row).write(&row).range(16).add(),
        ]
    };
    assert!(graph.is_empty());
    built.into_iter().for_each(|built| assert_eq!(cause(built), shared));
    let found = [
        refused_launch(&bench, &back, |launch| _ = launch.set_arg(&row).set_arg_read(&words)),
        refused_launch(&bench, &back, |launch| _ = launch.set_arg(&row).set_arg_read(&part)),
        refused_launch(&bench, &back, |launch| _ = launch.set_arg_write(&row).set_arg(&words)),
        refused_launch(&bench, &both, |launch| _ = launch.set_arg(&row).set_arg(&words)),
        refused_launch(&bench, &twice, |launch| _ = launch.set_arg(&row).set_arg(&again)),
    ];
    assert!(found.iter().all(|found| *found == shared), "{found:?}");
    assert_eq!(common::content(queue, &buffer), numbered(16, 1));
    // Nor are layers of one image separate.
    let kind = ImageKind::Image2dArray;
    let (layered, array) = (mirror(&bench, kind), image(&bench, kind, 1));
    let [top, bottom] = [0, 2].map(|layer| array.layers(layer..=layer).unwrap());
    let layers = refused_launch(&bench, &layered, |launch| _ = launch.set_arg(&top).set_arg(&bottom).set_arg(&1_u32));
    assert_eq!(layers, shared);
    // Both may be read.
    let (seen, out) = (program.kernel("seen").unwrap(), bench.buffer(&[0; 16]));
    // SAFETY: a work-item writes its own element.
    unsafe { graph.kernel(&seen).read(&row).read(&words).write(&out).range(16).add().unwrap() };
    bench.run(&graph);
    let sum = |pixel: &Pixel| u32::from_ne_bytes(*pixel) + u32::from(pixel[0]);
    assert_eq!(bench.content(&out), numbered(16, 1).iter().map(sum).collect::<Vec<_>>());
}

/// Rules R16, I3: PoCL accepts anything as an image, so every kind is tried in place of every other.
#[test]
fn an_image_of_another_kind_is_an_error() {
    let Some(bench) = bench() else { return };
    for expected in ImageKind::ALL {
        let (kernel, right) = (mirror(&bench, expected), image(&bench, expected, 1));
        for given in ImageKind::ALL.into_iter().filter(|given| *given != expected) {
            let wrong = image(&bench, given, 2);
            for (from, into, index) in [(&wrong, &right, 0), (&right, &wrong, 1)] {
                let found = refused_launch(&bench, &kernel, |launch| {
                    launch.set_arg(from).set_arg(into).set_arg(&1_u32);
                });
                let BuildCause::ArgumentKind { index: at, expected: wanted, given: has, .. } = &found else {
                    panic!("{found}")
                };
                let words = (format!("an image (`{expected}`)"), format!("an {given}"));
                assert_eq!((*at, wanted, has), (index, &words.0, &words.1));
                let graph = bench.graph();
                // SAFETY: an error.
                let built = unsafe { graph.kernel(&kernel).read(from).write(into).arg(1_u32).range([1, 1]).add() };
                assert_eq!(cause(built), found);
                assert!(graph.is_empty());
            }
        }
    }
}

/// Rules R16, I3: images, samplers, buffers and values in place of each other, and qualifiers that contradict.
#[test]
fn what_belongs_elsewhere_is_an_error_of_a_launch() {
    let Some(bench) = bench() else { return };
    let (queue, kind) = (&bench.queue, ImageKind::Image2d);
    let mirror = mirror(&bench, kind);
    let source = "kernel void sampled(read_only image2d_t in, sampler_t sampler, global float4 *out) {
        out[get_global_id(0)] = read_imagef(in, sampler, (float2)(get_global_id(0), 0));
    }";
    let sampled = Program::from_source(queue, source).unwrap().kernel("sampled").unwrap();
    let [a, b] = [1, 2].map(|seed| image(&bench, kind, seed));
    let floats = Image::new(queue, shape(kind), ImageFormat::RGBA_F32).unwrap();
    let sampler = Sampler::new(queue, false, Addressing::Clamp, Filter::Nearest).unwrap();
    let buffer = Buffer::<Pixel>::new(queue, 54).unwrap();
    let by = 1_u32;
    type Give<'a> = Box<dyn Fn(&mut ExecuteKernel<'_>) + 'a>;
    let cases: Vec<(&Kernel, Give<'_>, usize, &str)> = vec![
        (&mirror, Box::new(|to| _ = to.set_arg(&sampler).set_arg(&b).set_arg(&by)), 0, "a sampler"),
        (&mirror, Box::new(|to| _ = to.set_arg(&buffer).set_arg(&b).set_arg(&by)), 0, "a buffer"),
        (&mirror, Box::new(|to| _ = to.set_arg(&by).set_arg(&b).set_arg(&by)), 0, "a value"),
        (&mirror, Box::new(|to| _ = to.set_arg_null().set_arg(&b).set_arg(&by)), 0, "a null buffer"),
        (&mirror, Box::new(|to| _ = to.set_arg_local_buffer(8).set_arg(&b).set_arg(&by)), 0, "a size of local memory"),
        (&mirror, Box::new(|to| _ = to.set_arg(&a).set_arg(&sampler).set_arg(&by)), 1, "a sampler"),
        (&mirror, Box::new(|to| _ = to.set_arg(&a).set_arg(&buffer).set_arg(&by)), 1, "a buffer"),
        (&mirror, Box::new(|to| _ = to.set_arg(&a).set_arg(&b).set_arg(&a)), 2, "an image"),
        (&mirror, Box::new(|to| _ = to.set_arg(&a).set_arg(&b).set_arg(&sampler)), 2, "a sampler"),
        (&mirror, Box::new(|to| _ = to.set_arg_write(&a).set_arg(&b).set_arg(&by)), 0, "written"),
        (&mirror, Box::new(|to| _ = to.set_arg(&a).set_arg_read(&b).set_arg(&by)), 1, "read"),
        (&sampled, Box::new(|to| _ = to.set_arg(&floats).set_arg(&a).set_arg(&buffer)), 1, "an image"),
        (&sampled, Box::new(|to| _ = to.set_arg(&floats).set_arg(&buffer).set_arg(&buffer)), 1, "a buffer"),
        (&sampled, Box::new(|to| _ = to.set_arg(&floats).set_arg(&by).set_arg(&buffer)), 1, "a value"),
        (&sampled, Box::new(|to| _ = to.set_arg(&floats).set_arg_null().set_arg(&buffer)), 1, "a null buffer"),
        (&sampled, Box::new(|to| _ = to.set_arg(&sampler).set_arg(&sampler).set_arg(&buffer)), 0, "a sampler"),
        (&sampled, Box::new(|to| _ = to.set_arg(&floats).set_arg(&sampler).set_arg(&a)), 2, "an image"),
        (&sampled, Box::new(|to| _ = to.set_arg(&floats).set_arg(&sampler).set_arg(&sampler)), 2, "a sampler"),
    ];
    for (kernel, give, index, is) in cases {
        let (at, given) = match refused_launch(&bench, kernel, give) {
            BuildCause::ArgumentKind { index, given, .. } => (index, given),
            BuildCause::ImageAccess { index, declared, .. } => (index, declared.to_owned()),
            other => panic!("{is}: {other}"),
        };
        assert_eq!((at, &*given), (index, is));
    }
    assert_eq!(content(queue, &b), numbered(54, 2));
}

/// Rule R15: a map that only writes, on a queue that executes.
#[test]
fn a_map_that_invalidates_replaces_what_is_mapped() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    for kind in ImageKind::ALL {
        let (image, sizes) = (image(&bench, kind, 1), shape(kind).region());
        let mut expected = numbered(len(kind), 1);
        let (mut origin, mut region) = ([0; 3], sizes);
        for rest in 0..2 {
            // The whole image, and then all but the first of each dimension.
            if rest == 1 {
                origin = sizes.map(|size| usize::from(size > 1));
                region = [0, 1, 2].map(|dim| sizes[dim] - origin[dim]);
            }
            // SAFETY: nothing else uses the image.
            let mapped = unsafe { queue.map_image::<Pixel, _>(&image, origin, region, MapWriteInvalidate, &[]) };
            let mut mapped = mapped.unwrap();
            assert_eq!(mapped.region(), region);
            for z in 0..region[2] {
                for y in 0..region[1] {
                    let row = numbered(region[0], (40 + 10 * z + y + rest) as u8);
                    mapped.row_mut(y, z).unwrap().copy_from_slice(&row);
                    let start = ((origin[2] + z) * sizes[1] + origin[1] + y) * sizes[0] + origin[0];
                    expected[start..start + region[0]].copy_from_slice(&row);
                }
            }
            mapped.unmap().unwrap();
            assert_eq!(content(queue, &image), expected, "{kind}");
        }
        let graph = bench.graph();
        let recorded = graph.record(queue, || {
            let refused = |mapped: Result<()>| {
                assert!(matches!(mapped, Err(Error::Record(RecordError::NotRecordable { .. }))), "{mapped:?}");
            };
            refused(map(queue, &image, ([0; 3], sizes), MapRead));
            refused(map(queue, &image, ([0; 3], sizes), MapWrite));
            refused(map(queue, &image, ([0; 3], sizes), MapWriteInvalidate));
            Ok(())
        });
        recorded.unwrap();
        assert!(graph.is_empty());
    }
}

/// Maps and unmaps a part of an image that nothing else uses.
fn map(queue: &Queue, image: &Image, (origin, region): ([usize; 3], [usize; 3]), mode: impl MapMode) -> Result<()> {
    // SAFETY: as above.
    unsafe { queue.map_image::<Pixel, _>(image, origin, region, mode, &[]) }.and_then(|mapped| Ok(mapped.unmap()?))
}

/// Rule I1: images that others made for the device alone, or for one direction, are refused to the host.
#[test]
fn the_host_does_not_reach_images_that_forbid_it() {
    let Some(bench) = bench() else { return };
    let (queue, kind) = (&bench.queue, ImageKind::Image2d);
    let all = ([0; 3], shape(kind).region());
    let other = image(&bench, kind, 2);
    let buffer = Buffer::<Pixel>::new(queue, 54).unwrap();
    for (flag, name, reads, writes) in [
        (plain::CL_MEM_HOST_NO_ACCESS, "CL_MEM_HOST_NO_ACCESS", false, false),
        (plain::CL_MEM_HOST_READ_ONLY, "CL_MEM_HOST_READ_ONLY", true, false),
        (plain::CL_MEM_HOST_WRITE_ONLY, "CL_MEM_HOST_WRITE_ONLY", false, true),
    ] {
        let mut pixels = numbered(54, 1);
        let flags = plain::CL_MEM_READ_WRITE | flag;
        let (plain, _) = plain_image(queue, shape(kind), FORMAT, flags, bytemuck::cast_slice_mut(&mut pixels));
        let image = Image::from_opencl3(queue, &plain).unwrap();
        for command in commands(queue, &other, &buffer) {
            let forbidden = match command.0 {
                name if name.contains("read") => !reads,
                name if name.contains("write") => !writes,
                // The flags for the device.
                _ => false,
            };
            if forbidden {
                let found = refused(&bench, &command, &image, all);
                assert!(matches!(found, BuildCause::AccessForbidden { flag, .. } if flag == name), "{found}");
            } else {
                command.1(Some(&bench.graph()), &image, all).unwrap();
            }
        }
        let (read, write) = (map(queue, &image, all, MapRead), map(queue, &image, all, MapWrite));
        for (mode, mapped, allowed) in [("read", read, reads), ("write", write, reads && writes)] {
            assert_eq!(mapped.is_ok(), allowed, "{name}, {mode}: {mapped:?}");
            if !allowed {
                let found = cause(mapped);
                assert!(matches!(found, BuildCause::AccessForbidden { .. }), "{name}, {mode}: {found}");
            }
        }
        // The device can use it.
        let graph = bench.graph();
        graph.fill_image(&image, [5_u32; 4]).add().unwrap();
        graph.copy_image(&image, &other).add().unwrap();
        bench.run(&graph);
        assert_eq!(content(queue, &other), [[5; 4]; 54], "{name}");
    }
}

/// Rule E4: an error names what a device does not have, and says what it has.
#[test]
fn sizes_and_formats_that_a_device_lacks_are_reported_with_those_that_it_has() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    let caps = queue.device().caps().images.unwrap();
    let ([x, y], block, layers) = (caps.max_2d, caps.max_3d, caps.max_layers);
    for (shape, limits) in [
        (ImageShape::image_1d(x + 1), [x, 1, 1]),
        (ImageShape::image_1d(0), [x, 1, 1]),
        (ImageShape::array_1d(x + 1, 2), [x, layers, 1]),
        (ImageShape::array_1d(4, layers + 1), [x, layers, 1]),
        (ImageShape::image_2d(x + 1, 1), [x, y, 1]),
        (ImageShape::image_2d(1, y + 1), [x, y, 1]),
        (ImageShape::array_2d(1, y + 1, 1), [x, y, layers]),
        (ImageShape::array_2d(1, 1, layers + 1), [x, y, layers]),
        (ImageShape::array_2d(1, 1, 0), [x, y, layers]),
        (ImageShape::image_3d(block[0] + 1, 1, 1), block),
        (ImageShape::image_3d(1, block[1] + 1, 1), block),
        (ImageShape::image_3d(1, 1, block[2] + 1), block),
        (ImageShape::image_2d(usize::MAX, usize::MAX), [x, y, 1]),
    ] {
        let mut made = vec![Image::new(queue, shape, FORMAT), Image::with_data(queue, shape, FORMAT, &[0_u8; 4])];
        made.push(Image::with_access(queue, shape, FORMAT, ImageAccess::Write));
        for made in made {
            assert_error!(
                made,
                MemoryError::ImageSize { shape: of, limits: most, device }
                    if *of == shape.to_string() && *most == limits && device == queue.device().name(),
            );
        }
    }
    let none = Buffer::<u8>::new(queue, 3).unwrap();
    assert_error!(
        Image::from_buffer(queue, &none, FORMAT),
        MemoryError::ImageSize { limits, .. } if *limits == [caps.max_buffer, 1, 1],
    );
    for kind in ImageKind::ALL {
        let has = Image::formats(queue, kind, ImageAccess::ReadWrite).unwrap();
        let odd = [
            ImageFormat::new(ChannelOrder::Rgb, ChannelType::UnormInt8),
            ImageFormat::new(ChannelOrder::Other(7), ChannelType::Other(9)),
        ];
        for format in odd.into_iter().filter(|format| !has.contains(format)) {
            let buffer = Buffer::<u8>::new(queue, 48).unwrap();
            let made = match kind {
                ImageKind::Image1dBuffer => Image::from_buffer(queue, &buffer, format),
                kind => Image::new(queue, shape(kind), format),
            };
            // The formats that clgraph knows.
            let known: Vec<_> = has.iter().filter(|format| format.pixel_size().is_some()).collect();
            assert_error!(
                made,
                MemoryError::ImageFormat { format: refused, kind: of, access: ImageAccess::ReadWrite, has, .. }
                    if (*refused, *of) == (format, kind)
                        && known.iter().all(|format| has.contains(&format.to_string())),
            );
        }
    }
}

/// A device without images is reported. A test is skipped if it is listed for the driver; the others fail.
#[cfg(target_os = "linux")]
#[test]
fn a_device_without_images_has_a_clear_error_for_each() {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "the_child_has_no_images", "--nocapture"]).env("CLGRAPH_LAYER_HIDES_IMAGES", "1");
    let output = child.env("OPENCL_LAYERS", layer::layer_file()).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("ALL ARE REFUSED"), "{text}");
}

/// The other half of the test above.
#[test]
fn the_child_has_no_images() {
    if std::env::var_os("CLGRAPH_LAYER_HIDES_IMAGES").is_none() {
        return;
    }
    let bench = Bench::new();
    let queue = &bench.queue;
    assert!(queue.device().caps().images.is_none(), "OPENCL_LAYERS does not name the layer");
    let refused = [
        Image::new(queue, ImageShape::image_2d(4, 4), FORMAT).map(drop),
        Image::with_data(queue, ImageShape::image_1d(1), FORMAT, &[[0_u8; 4]]).map(drop),
        Image::from_buffer(queue, &Buffer::<Pixel>::new(queue, 4).unwrap(), FORMAT).map(drop),
        Image::formats(queue, ImageKind::Image2d, ImageAccess::Read).map(drop),
        Sampler::new(queue, false, Addressing::ClampToEdge, Filter::Nearest).map(drop),
    ];
    for refused in refused {
        assert_error!(refused, MemoryError::NoImages { .. });
    }
    // No driver is listed as having none.
    let skipped = std::panic::catch_unwind(images::bench).err().unwrap();
    assert!(skipped.downcast_ref::<String>().is_some_and(|text| text.contains("(no-images)")));
    println!("ALL ARE REFUSED");
}
