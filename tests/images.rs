//! Images and samplers: on queues and in graphs, by every path.

mod common;
#[path = "common/images.rs"]
mod images;

use clgraph::{
    Addressing, Buffer, BuildCause, Color, Error, ErrorKind, ExecuteKernel, Filter, Finalize, FinalizeError, Graph,
    HostRead, Image, ImageAccess, ImageFormat, ImageKind, ImageShape, Kernel, MapRead, MapWrite, MemoryError, NodeKind,
    Parameter, ParameterError, Path, PathReason, Program, Queue, RecordError, Sampler, SetupError, UpdateError,
};
use common::{Bench, Reason, UserEvent, assert_error, cause, elsewhere};
use images::{FORMAT, Pixel, content, image, numbered, run, shape};
use quickcheck::{Arbitrary, Gen};

const SOURCE: &str = include_str!("../kernels-cl/images.cl");

/// Returns a device with images and the kernels for them, or skips the test.
#[track_caller]
fn bench() -> Option<(Bench, Program)> {
    let bench = images::bench()?;
    let program = Program::from_source(&bench.queue, SOURCE).unwrap();
    Some((bench, program))
}

#[derive(Clone, Debug)]
struct Area {
    origin: [usize; 3],
    region: [usize; 3],
}

impl Area {
    /// Returns an area that is inside, made from any numbers.
    fn inside(sizes: [usize; 3], seed: [u8; 6]) -> Self {
        let origin = [0, 1, 2].map(|dim| usize::from(seed[dim]) % sizes[dim]);
        let region = [0, 1, 2].map(|dim| 1 + usize::from(seed[dim + 3]) % (sizes[dim] - origin[dim]));
        Self { origin, region }
    }

    /// Returns the same region at another place.
    fn moved(&self, sizes: [usize; 3], seed: [u8; 3]) -> Self {
        let origin = [0, 1, 2].map(|dim| usize::from(seed[dim]) % (sizes[dim] - self.region[dim] + 1));
        Self { origin, ..self.clone() }
    }

    fn len(&self) -> usize {
        self.region.iter().product()
    }

    /// Returns the indices of its pixels, in order.
    fn places(&self, [w, h, _]: [usize; 3]) -> Vec<usize> {
        let Self { origin: [x0, y0, z0], region: [x, y, z] } = *self;
        let row = |y: usize, z: usize| (0..x).map(move |x| ((z0 + z) * h + y0 + y) * w + x0 + x);
        (0..z).flat_map(|z| (0..y).flat_map(move |y| row(y, z))).collect()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(usize, Area, u8),
    Fill(usize, Area, [u8; 4]),
    Copy(usize, usize, Area, Area),
    ToBuffer(usize, Area, usize),
    FromBuffer(usize, Area, usize),
}

/// Two images and a buffer, and what is done with them.
#[derive(Clone, Debug)]
struct Script(ImageKind, Vec<Step>);

impl Arbitrary for Script {
    fn arbitrary(g: &mut Gen) -> Self {
        let kind = *g.choose(&ImageKind::ALL).unwrap();
        let sizes = shape(kind).region();
        let total: usize = sizes.iter().product();
        let step = |g: &mut Gen| {
            let bytes = |g: &mut Gen| [0; 6].map(|_: u8| u8::arbitrary(g));
            let area = Area::inside(sizes, bytes(g));
            let (which, seed) = (usize::arbitrary(g) % 2, bytes(g));
            let offset = usize::from(seed[0]) % (total - area.len() + 1);
            match u8::arbitrary(g) % 6 {
                0 => Step::Write(which, area, seed[0]),
                1 => Step::Fill(which, area, [seed[0], seed[1], seed[2], seed[3]]),
                2 => Step::ToBuffer(which, area, offset),
                3 => Step::FromBuffer(which, area, offset),
                _ => {
                    let into = area.moved(sizes, [seed[1], seed[2], seed[3]]);
                    let apart = (0..3).any(|dim| into.origin[dim].abs_diff(area.origin[dim]) >= area.region[dim]);
                    let other = if apart { usize::from(seed[4]) % 2 } else { 1 - which };
                    Step::Copy(which, other, area, into)
                }
            }
        };
        Self(kind, (0..1 + usize::arbitrary(g) % 12).map(|_| step(g)).collect())
    }
}

struct Stage {
    images: [Image; 2],
    buffer: Buffer<Pixel>,
}

impl Stage {
    fn new(bench: &Bench, kind: ImageKind) -> Self {
        let total: usize = shape(kind).region().iter().product();
        let buffer = Buffer::from_slice(&bench.queue, &numbered(total, 200)).unwrap();
        Self { images: [image(bench, kind, 1), image(bench, kind, 2)], buffer }
    }

    fn model(kind: ImageKind) -> [Vec<Pixel>; 3] {
        let total: usize = shape(kind).region().iter().product();
        [numbered(total, 1), numbered(total, 2), numbered(total, 200)]
    }

    fn content(&self, queue: &Queue) -> [Vec<Pixel>; 3] {
        let buffer = common::content(queue, &self.buffer);
        [content(queue, &self.images[0]), content(queue, &self.images[1]), buffer]
    }

    fn enqueue(&self, queue: &Queue, step: &Step) -> clgraph::Result<()> {
        let color = |channels: &[u8; 4]| Color::Uint(channels.map(u32::from));
        match step {
            Step::Write(at, Area { origin, region }, seed) => {
                let pixels = numbered(region.iter().product(), *seed);
                queue.enqueue_write_image(&self.images[*at], *origin, *region, &pixels, &[])
            }
            Step::Fill(at, Area { origin, region }, channels) => {
                queue.enqueue_fill_image(&self.images[*at], color(channels), *origin, *region, &[])
            }
            Step::Copy(from, to, area, into) => {
                let (src, dst) = (&self.images[*from], &self.images[*to]);
                queue.enqueue_copy_image(src, dst, area.origin, into.origin, area.region, &[])
            }
            Step::ToBuffer(at, Area { origin, region }, offset) => {
                queue.enqueue_copy_image_to_buffer(&self.images[*at], &self.buffer, *origin, *region, offset * 4, &[])
            }
            Step::FromBuffer(at, Area { origin, region }, offset) => {
                queue.enqueue_copy_buffer_to_image(&self.buffer, &self.images[*at], offset * 4, *origin, *region, &[])
            }
        }
        .map(|_| ())
    }

    fn build(&self, graph: &Graph, step: &Step) -> clgraph::Result<()> {
        match step {
            Step::Write(at, Area { origin, region }, seed) => {
                let pixels = numbered(region.iter().product(), *seed);
                graph.write_image(&self.images[*at], pixels).area(*origin, *region).add().map(|_| ())
            }
            Step::Fill(at, Area { origin, region }, channels) => {
                let color = channels.map(u32::from);
                graph.fill_image(&self.images[*at], color).area(*origin, *region).add().map(|_| ())
            }
            Step::Copy(from, to, area, into) => {
                let node = graph
                    .copy_image(&self.images[*from], &self.images[*to])
                    .src_origin(area.origin)
                    .dst_origin(into.origin);
                node.region(area.region).add().map(|_| ())
            }
            Step::ToBuffer(at, area, offset) => {
                let part = self.buffer.slice(*offset..offset + area.len())?;
                let node =
                    graph.copy_image_to_buffer(&self.images[*at], &part).src_origin(area.origin).region(area.region);
                node.add().map(|_| ())
            }
            Step::FromBuffer(at, area, offset) => {
                let part = self.buffer.slice(*offset..offset + area.len())?;
                let node =
                    graph.copy_buffer_to_image(&part, &self.images[*at]).dst_origin(area.origin).region(area.region);
                node.add().map(|_| ())
            }
        }
    }
}

/// Does a step without OpenCL.
fn simulate(model: &mut [Vec<Pixel>; 3], sizes: [usize; 3], step: &Step) {
    match step {
        Step::Write(at, area, seed) => {
            for (place, pixel) in area.places(sizes).into_iter().zip(numbered(area.len(), *seed)) {
                model[*at][place] = pixel;
            }
        }
        Step::Fill(at, area, color) => area.places(sizes).into_iter().for_each(|place| model[*at][place] = *color),
        Step::Copy(from, to, area, into) => {
            let pixels: Vec<Pixel> = area.places(sizes).into_iter().map(|place| model[*from][place]).collect();
            for (place, pixel) in into.places(sizes).into_iter().zip(pixels) {
                model[*to][place] = pixel;
            }
        }
        Step::ToBuffer(at, area, offset) => {
            for (index, place) in area.places(sizes).into_iter().enumerate() {
                model[2][offset + index] = model[*at][place];
            }
        }
        Step::FromBuffer(at, area, offset) => {
            for (index, place) in area.places(sizes).into_iter().enumerate() {
                model[*at][place] = model[2][offset + index];
            }
        }
    }
}

/// Rules B2, I3: commands have the same result on a queue, recorded and built, on each path, and in a model.
#[test]
fn random_commands_on_images_do_what_a_model_does() {
    let Some((bench, _)) = bench() else { return };
    let queue = &bench.queue;
    let mut g = Gen::new(20);
    for round in 0..120 {
        let Script(kind, mut steps) = Script::arbitrary(&mut g);
        // What goes wrong on a driver is refused in the same way everywhere.
        let scratch = (Stage::new(&bench, kind), bench.graph());
        steps.retain(|step| match scratch.0.build(&scratch.1, step) {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::FeatureNotSupported, "{kind}: {step:?}: {error}");
                assert_eq!(scratch.0.enqueue(queue, step).unwrap_err().kind(), ErrorKind::FeatureNotSupported);
                false
            }
        });
        let mut model = Stage::model(kind);
        steps.iter().for_each(|step| simulate(&mut model, shape(kind).region(), step));
        let check = |stage: &Stage, how: &str| {
            assert_eq!(stage.content(queue), model, "round {round}, {kind}, {how}: {steps:#?}");
        };
        let stage = Stage::new(&bench, kind);
        steps
            .iter()
            .for_each(|step| stage.enqueue(queue, step).unwrap_or_else(|error| panic!("{kind}: {step:?}: {error}")));
        check(&stage, "at once");
        for path in [Path::Replay, Path::Native, Path::Auto] {
            for recorded in [false, true] {
                let (stage, graph) = (Stage::new(&bench, kind), bench.graph());
                if recorded {
                    let outcome = graph.record(queue, || steps.iter().try_for_each(|step| stage.enqueue(queue, step)));
                    outcome.unwrap();
                } else {
                    steps.iter().for_each(|step| stage.build(&graph, step).unwrap());
                }
                run(&graph.finalize(Finalize::new().path(path)).unwrap(), queue);
                check(&stage, &format!("{path}, recorded {recorded}"));
            }
        }
    }
}

fn mirrored(pixels: &[Pixel], width: usize, by: u8) -> Vec<Pixel> {
    let row = |row: &[Pixel]| row.iter().rev().map(|pixel| pixel.map(|channel| channel.saturating_add(by))).collect();
    pixels.chunks(width).flat_map::<Vec<Pixel>, _>(row).collect()
}

fn launch<'k>(kernel: &'k Kernel, from: &Image, into: &Image, by: u32) -> ExecuteKernel<'k> {
    let mut launch = ExecuteKernel::new(kernel);
    launch.set_arg(from).set_arg(into).set_arg(&by).set_global_work_sizes(&from.shape().region()[..2]);
    launch
}

/// Rules D1, P1: the images of a kernel by their qualifiers, on each path, updated, and in another graph.
#[test]
fn kernels_read_and_write_images_on_each_path() {
    let Some((bench, program)) = bench() else { return };
    let (queue, mirror) = (&bench.queue, program.kernel("mirror").unwrap());
    let kind = ImageKind::Image2d;
    let width = shape(kind).region()[0];
    let source = numbered(54, 1);
    let [a, b, c] = [1, 2, 3].map(|seed| image(&bench, kind, seed));
    // SAFETY: a work-item writes its own pixel.
    unsafe { launch(&mirror, &a, &b, 3).enqueue_nd_range(queue).unwrap() };
    assert_eq!(content(queue, &b), mirrored(&source, width, 3));
    for path in [Path::Replay, Path::Native, Path::Auto] {
        let graph = bench.graph();
        // SAFETY: as above.
        let first = unsafe { graph.kernel(&mirror).read(&a).write(&b).arg(1_u32).range([9, 6]).add().unwrap() };
        // SAFETY: as above.
        let second = graph.record(queue, || unsafe { launch(&mirror, &b, &c, 1).enqueue_nd_range(queue) }).unwrap();
        let second = graph.node_of(&second).unwrap();
        assert_eq!(graph.predecessors(second).unwrap(), [first]);
        let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
        let twice = |seed: u8, by: u8| mirrored(&mirrored(&numbered(54, seed), width, by), width, 1);
        run(&executable, queue);
        assert_eq!(content(queue, &c), twice(1, 1), "{path}");
        let other = image(&bench, kind, 7);
        // SAFETY: as above.
        let launched = graph.kernel(&mirror).read(&other).write(&b).arg(5_u32).range([9, 6]);
        // SAFETY: as above.
        unsafe { launched.replace(first).unwrap() };
        executable.update(&first).unwrap();
        drop(other);
        run(&executable, queue);
        assert_eq!(content(queue, &c), twice(7, 5), "{path}");
        let parent = bench.graph();
        parent.fill_image(&c, [0_u32; 4]).add().unwrap();
        parent.sub_graph(&executable).add().unwrap();
        let parent_executable = parent.finalize(Finalize::new().path(path)).unwrap();
        drop(executable);
        run(&parent_executable, queue);
        assert_eq!(content(queue, &c), twice(7, 5), "{path}");
    }
}

/// Rule P1: an image parameter becomes other images of its shape and format, on each path.
#[test]
fn a_parameter_is_an_image() {
    let Some((bench, program)) = bench() else { return };
    let (queue, mirror) = (&bench.queue, program.kernel("mirror").unwrap());
    let [a, b, c] = [1, 2, 3].map(|seed| image(&bench, ImageKind::Image2d, seed));
    for path in [Path::Replay, Path::Native, Path::Auto] {
        let from = Parameter::image(&a);
        let graph = bench.graph();
        // SAFETY: a work-item writes its own pixel.
        let node = unsafe { graph.kernel(&mirror).read(&from).write(&c).arg(2_u32).range([9, 6]).add().unwrap() };
        let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
        run(&executable, queue);
        assert_eq!(content(queue, &c), mirrored(&numbered(54, 1), 9, 2), "{path}");
        from.set(&b).unwrap();
        executable.update(&node).unwrap();
        run(&executable, queue);
        assert_eq!(content(queue, &c), mirrored(&numbered(54, 2), 9, 2), "{path}");
        let other = Image::new(queue, ImageShape::image_2d(6, 9), FORMAT).unwrap();
        assert_error!(
            from.set(&other),
            ParameterError::Image { expected, .. }
                if expected == "image2d_t of 9 x 6 pixels of format RGBA UNSIGNED_INT8",
        );
        let floats = Image::new(queue, ImageShape::image_2d(9, 6), ImageFormat::RGBA_F32).unwrap();
        assert_error!(
            from.set(&floats),
            ParameterError::Image { given, .. } if given == "image2d_t of 9 x 6 pixels of format RGBA FLOAT",
        );
        from.set(&a).unwrap();
        executable.update(&node).unwrap();
        run(&executable, queue);
        assert_eq!(content(queue, &c), mirrored(&numbered(54, 1), 9, 2), "{path}");
    }
}

/// Rules P1, P2, P3, P4: one parameter is the sampler of several nodes, built and recorded, with a bound.
#[test]
fn a_parameter_is_a_sampler() {
    let Some((bench, program)) = bench() else { return };
    let (queue, sampled) = (&bench.queue, program.kernel("sampled").unwrap());
    let pixels: Vec<[f32; 4]> = (0..4).map(|at| [at as f32, 1.0, 2.0, 3.0]).collect();
    let row = Image::with_data(queue, ImageShape::image_2d(4, 1), ImageFormat::RGBA_F32, &pixels).unwrap();
    let sampler = |addressing, filter| Sampler::new(queue, false, addressing, filter).unwrap();
    let (nearest, linear) = (Filter::Nearest, Filter::Linear);
    let expected = |filter| -> Vec<f32> {
        let at = |at: u32| at as f32 * 0.5;
        (0..8).map(|i| if filter == nearest { at(i).floor() } else { (at(i) - 0.5).clamp(0.0, 3.0) }).collect()
    };
    for path in [Path::Replay, Path::Native, Path::Auto] {
        let outs = [0, 1].map(|_| Buffer::<[f32; 4]>::new(queue, 8).unwrap());
        let by = Parameter::sampler(&sampler(Addressing::ClampToEdge, nearest)).unwrap();
        let graph = bench.graph();
        let built = graph.kernel(&sampled).read(&row).arg(&by).write(&outs[0]).arg(0.5_f32).range(8);
        // SAFETY: of both: a work-item writes its own element, wherever the sampler clamps to.
        let built = unsafe { built.add() }.unwrap();
        let launch = || {
            let mut launch = ExecuteKernel::new(&sampled);
            launch.set_arg(&row).set_arg(&by).set_arg(&outs[1]).set_arg(&0.5_f32).set_global_work_size(8);
            // SAFETY: as above.
            unsafe { launch.enqueue_nd_range(queue) }
        };
        let recorded = graph.record(queue, launch).unwrap();
        let recorded = graph.node_of(&recorded).unwrap();
        assert_error!(launch(), BuildCause::ParameterExecuted { index: 1 });
        let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
        let check = |filters: [Filter; 2]| {
            run(&executable, queue);
            for (out, filter) in outs.iter().zip(filters) {
                let found: Vec<f32> = common::content(queue, out).iter().map(|pixel| pixel[0]).collect();
                let near = found.iter().zip(expected(filter)).all(|(a, b)| (a - b).abs() < 1e-3);
                assert!(near, "{path}: {filter:?} gives {found:?}");
            }
        };
        check([nearest, nearest]);
        by.set(&sampler(Addressing::ClampToEdge, linear)).unwrap();
        check([nearest, nearest]);
        executable.update(&built).unwrap();
        check([linear, nearest]);
        executable.update(&recorded).unwrap();
        check([linear, linear]);
        // Many samplers: those that nothing names any more are released.
        for _ in 0..40 {
            for filter in [nearest, linear] {
                by.set(&sampler(Addressing::ClampToEdge, filter)).unwrap();
                executable.update(&[built, recorded]).unwrap();
            }
        }
        check([linear, linear]);
        let open = sampler(Addressing::None, nearest);
        assert_error!(
            by.set(&open),
            ParameterError::OutOfBound { bound, .. }
                if bound.contains("coordinates outside of the image are undefined"),
        );
        let elsewhere = elsewhere();
        let foreign = Sampler::new(&elsewhere.queue, false, Addressing::ClampToEdge, nearest).unwrap();
        assert_error!(by.set(&foreign), ParameterError::OtherContext);
        executable.update(&[built, recorded]).unwrap();
        check([linear, linear]);
        // A parameter without a bound.
        let any = Parameter::sampler(&open).unwrap();
        any.set(&sampler(Addressing::ClampToEdge, linear)).unwrap();
        any.set(&open).unwrap();
        // A parameter of another context is refused when it is used.
        let theirs = Parameter::sampler(&foreign).unwrap();
        let refused = graph.kernel(&sampled).read(&row).arg(&theirs).write(&outs[0]).arg(0.5_f32).range(8);
        // SAFETY: an error.
        assert!(matches!(cause(unsafe { refused.add() }), BuildCause::OtherContext { .. }));
        let wrong =
            graph.kernel(&sampled).read(&row).arg(&sampler(Addressing::ClampToEdge, nearest)).also_parameter(&any);
        // SAFETY: as above.
        let wrong = unsafe { wrong.write(&outs[0]).arg(0.5_f32).range(8).add() };
        assert!(wrong.is_ok(), "one parameter more for an argument is fine");
        let number = Parameter::any(1.0_f32);
        let wrong =
            graph.kernel(&sampled).read(&row).arg(&any).write(&outs[0]).arg(0.5_f32).also_parameter(&any).range(8);
        // SAFETY: an error.
        assert!(matches!(cause(unsafe { wrong.add() }), BuildCause::Parameter { .. }));
        let wrong = graph.kernel(&sampled).read(&row).arg(&number).write(&outs[0]).arg(0.5_f32).range(8);
        // SAFETY: an error.
        assert!(matches!(cause(unsafe { wrong.add() }), BuildCause::ArgumentKind { .. }));
    }
}

/// Samplers are kept alive while launches wait; drivers do not retain them.
#[test]
fn samplers_are_arguments_and_outlive_their_launches() {
    let Some((bench, program)) = bench() else { return };
    let (queue, sampled) = (&bench.queue, program.kernel("sampled").unwrap());
    let pixels: Vec<[f32; 4]> = (0..4).map(|at| [at as f32, 1.0, 2.0, 3.0]).collect();
    let row = Image::with_data(queue, ImageShape::image_2d(4, 1), ImageFormat::RGBA_F32, &pixels).unwrap();
    let nearest: Vec<f32> = (0..8).map(|at| (at as f32 * 0.5).floor()).collect();
    let linear: Vec<f32> = (0..8).map(|at| (at as f32 * 0.5 - 0.5).clamp(0.0, 3.0)).collect();
    for (filter, expected) in [(Filter::Nearest, nearest), (Filter::Linear, linear)] {
        let new = || Sampler::new(queue, false, Addressing::ClampToEdge, filter).unwrap();
        let check = |out: &Buffer<[f32; 4]>, how: &str| {
            let found: Vec<f32> = common::content(queue, out).iter().map(|pixel| pixel[0]).collect();
            assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-3), "{filter:?}, {how}: {found:?}");
        };
        let out = Buffer::<[f32; 4]>::new(queue, 8).unwrap();
        // After an event, so that the sampler is dropped before the launch runs.
        let gate = UserEvent::new(queue);
        let held = clgraph::Event::from_opencl3(&gate.0).unwrap();
        let mut launch = ExecuteKernel::new(&sampled);
        launch.set_arg(&row).set_arg(&new()).set_arg(&out).set_arg(&0.5_f32).set_global_work_size(8);
        // SAFETY: a work-item writes its own element.
        let launched = unsafe { launch.set_wait_event(&held).enqueue_nd_range(queue).unwrap() };
        for _ in 0..20 {
            drop(Sampler::new(queue, true, Addressing::Repeat, Filter::Linear).unwrap());
        }
        gate.set(0);
        launched.wait().unwrap();
        check(&out, "at once");
        for path in [Path::Replay, Path::Native, Path::Auto] {
            let graph = bench.graph();
            let node = graph.kernel(&sampled).read(&row).arg(&new()).write(&out).arg(0.5_f32).range(8);
            // SAFETY: as above.
            let node = unsafe { node.add().unwrap() };
            let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
            let forget = || queue.enqueue_fill_buffer(&out, &[[-1.0_f32; 4]], 0, 128, &[]).unwrap().wait().unwrap();
            forget();
            run(&executable, queue);
            check(&out, &path.to_string());
            // Another sampler, and back.
            for (normalized, step) in [(true, 0.125_f32), (false, 0.5)] {
                let sampler = Sampler::new(queue, normalized, Addressing::ClampToEdge, filter).unwrap();
                let launch = graph.kernel(&sampled).read(&row).arg(&sampler).write(&out).arg(step).range(8);
                // SAFETY: as above.
                unsafe { launch.replace(node).unwrap() };
                executable.update(&node).unwrap();
                forget();
                run(&executable, queue);
                check(&out, &format!("{path}, normalized {normalized}"));
            }
            // Dropped while it runs.
            forget();
            let gate = UserEvent::new(queue);
            let running = executable.submit_to(queue).after(&gate.0).submit().unwrap();
            drop((executable, graph));
            gate.set(0);
            running.wait().unwrap();
            check(&out, "dropped");
        }
    }
}

/// Rules D1, D2: layers of arrays, and images that are made of buffers.
#[test]
fn images_are_ordered_by_layers_and_by_the_buffers_that_they_are_made_of() {
    let Some((bench, program)) = bench() else { return };
    let queue = &bench.queue;
    let raise = program.kernel("raise").unwrap();
    let [from, into] = [1, 2].map(|seed| image(&bench, ImageKind::Image2dArray, seed));
    let graph = bench.graph();
    let node = |layer: usize| {
        let (read, written) = (from.layers(layer..=layer).unwrap(), into.layers(layer..=layer).unwrap());
        let node = graph.kernel(&raise).read(&read).write(&written).arg(layer as i32).arg(10_u32).range([7, 5]);
        // SAFETY: a work-item writes its own pixel of the layer.
        unsafe { node.add().unwrap() }
    };
    let (first, second) = (node(0), node(1));
    let fill = graph.fill_image(&from, [1_u32; 4]).area([0, 0, 1], [7, 5, 1]).add().unwrap();
    let copy = graph.copy_image(&into, &from).region([7, 5, 1]).add().unwrap();
    assert_eq!(graph.predecessors(second).unwrap(), []);
    assert_eq!(graph.predecessors(fill).unwrap(), [second]);
    assert_eq!(graph.predecessors(copy).unwrap(), [first]);
    run(&graph.finalize(Finalize::new()).unwrap(), queue);
    let raised = |pixel: &Pixel| pixel.map(|channel| channel.saturating_add(10));
    let expected: Vec<Pixel> = numbered(105, 1)[..70].iter().map(raised).collect();
    assert_eq!(content(queue, &into)[..70], expected);

    let buffer = Buffer::from_slice(queue, &numbered(16, 5)).unwrap();
    let row = Image::from_buffer(queue, &buffer, FORMAT).unwrap();
    assert_eq!((row.shape().kind(), row.shape().region()), (ImageKind::Image1dBuffer, [16, 1, 1]));
    let out = Buffer::<[u32; 4]>::new(queue, 16).unwrap();
    let of_buffer = program.kernel("of_buffer").unwrap();
    let graph = bench.graph();
    let fill = graph.fill(&buffer.slice(..8).unwrap(), [9_u8; 4]).add().unwrap();
    // SAFETY: a work-item writes its own element.
    let node = unsafe { graph.kernel(&of_buffer).read(&row).write(&out).range(16).add().unwrap() };
    assert_eq!(graph.predecessors(node).unwrap(), [fill], "the image is the buffer");
    let again = graph.fill(&buffer, [0_u8; 4]).add().unwrap();
    assert!(graph.predecessors(again).unwrap().contains(&node));
    for path in [Path::Replay, Path::Native] {
        queue.enqueue_write_buffer(&buffer, 0, &numbered(16, 5), &[]).unwrap();
        run(&graph.finalize(Finalize::new().path(path)).unwrap(), queue);
        let mut expected: Vec<[u32; 4]> = numbered(16, 5).iter().map(|pixel| pixel.map(u32::from)).collect();
        expected[..8].fill([9; 4]);
        assert_eq!(common::content(queue, &out), expected, "{path}");
    }
    // One kernel uses both, and writes one.
    let words = buffer.cast::<u32>().unwrap();
    // SAFETY: an error.
    let both = unsafe { graph.kernel(&program.kernel("both").unwrap()).read(&row).write(&words).range(1).add() };
    assert_eq!(cause(both), BuildCause::ImageShared { image: 0, other: 1 });
}

/// A 2D image over a buffer: rows with a longer pitch, hazards with the buffer, and another image.
#[test]
fn pictures_are_made_of_buffers_where_the_device_can() {
    let Some((bench, program)) = bench() else { return };
    let queue = &bench.queue;
    let (width, height) = (5, 4);
    let Some(pixels) = queue.device().caps().images.unwrap().buffer_pitch else {
        let buffer = Buffer::<u8>::new(queue, 4096).unwrap();
        let refused = Image::from_buffer_2d(queue, &buffer, (width, height), FORMAT, 0);
        assert_error!(
            refused,
            MemoryError::ImageOfBuffer { why } if why.contains("does not support two-dimensional images"),
        );
        return;
    };
    let pitch = (4 * pixels).max(4 * width).next_multiple_of(4 * pixels);
    let buffer = Buffer::from_slice(queue, &vec![1_u8; pitch * height]).unwrap();
    let picture = Image::from_buffer_2d(queue, &buffer, (width, height), FORMAT, pitch).unwrap();
    assert_eq!(picture.shape(), ImageShape::image_2d(width, height));
    let out = Image::new(queue, ImageShape::image_2d(width, height), FORMAT).unwrap();
    let parameter = Parameter::image(&out);
    for path in [Path::Replay, Path::Native] {
        let graph = bench.graph();
        let rows = graph.fill(&buffer.slice(pitch..3 * pitch).unwrap(), 7_u8).add().unwrap();
        let mirror = program.kernel("mirror").unwrap();
        // SAFETY: a work-item writes its own pixel.
        let node = unsafe { graph.kernel(&mirror).read(&picture).write(&out).arg(1_u32).range([width, height]).add() };
        let node = node.unwrap();
        assert!(graph.predecessors(node).unwrap().contains(&rows));
        let later = graph.fill_image(&picture, [3_u32; 4]).area([0, 3, 0], [width, 1, 1]).add().unwrap();
        assert!(graph.predecessors(later).unwrap().contains(&node));
        let last = graph.read(&buffer.slice(3 * pitch..3 * pitch + 4 * width).unwrap()).add().unwrap();
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        queue.enqueue_fill_buffer(&buffer, &[1_u8], 0, pitch * height, &[]).unwrap();
        let submission = executable.submit(queue).unwrap();
        submission.wait().unwrap();
        let expected: Vec<Pixel> = [2, 8, 8, 2].iter().flat_map(|row| vec![[*row; 4]; width]).collect();
        assert_eq!(content(queue, &out), expected, "{path}");
        assert_eq!(*submission.get(&last).unwrap(), vec![3_u8; 4 * width]);
    }
    // A parameter of packed pixels gets an image with a longer row pitch.
    parameter.set(&picture).unwrap();
    // SAFETY: a live image.
    let wrapped = unsafe { Image::from_raw(queue, picture.raw()).unwrap() };
    assert_eq!(content(queue, &wrapped), content(queue, &picture));
    let graph = bench.graph();
    assert_error!(
        graph.copy_image_to_buffer(&picture, &buffer.slice(..4 * width * height).unwrap()).add(),
        BuildCause::Overlap { .. },
    );
    // Not overlapping, but in one buffer.
    let long = Buffer::<u8>::new(queue, 2 * pitch * height).unwrap();
    let picture_of_long = Image::from_buffer_2d(queue, &long, (width, height), FORMAT, pitch).unwrap();
    let rest = long.slice(pitch * height..pitch * height + 4 * width * height).unwrap();
    assert_error!(
        graph.copy_image_to_buffer(&picture_of_long, &rest).add(),
        BuildCause::NotSupported { what, .. } if what.contains("an image and the buffer that it is made of"),
    );
    assert_error!(
        Image::from_buffer_2d(queue, &buffer, (width, height), FORMAT, 4),
        MemoryError::ImageOfBuffer { why } if why.contains("give a larger pitch"),
    );
    // Rows can be packed only if the device allows that.
    let packed = Image::from_buffer_2d(queue, &buffer, (width, height), FORMAT, 0);
    match (4 * width).is_multiple_of(4 * pixels) {
        true => assert_eq!(packed.unwrap().shape(), picture.shape()),
        false => assert_error!(
            packed,
            MemoryError::ImageOfBuffer { why } if why.contains(&format!("must be a multiple of {} bytes", 4 * pixels)),
        ),
    }
    // A command group with this parameter knows the row pitch.
    let small = Image::new(queue, ImageShape::image_2d(width, height), FORMAT).unwrap();
    let parameter = Parameter::image(&small);
    let mirror = program.kernel("mirror").unwrap();
    let launch = graph.kernel(&mirror).read(&parameter).write(&out).arg(1_u32).range([width, height]);
    // SAFETY: a work-item writes its own pixel.
    let group = unsafe { graph.command_group([launch]) }.unwrap();
    parameter.set(&picture).unwrap();
    let node = graph.command_group_node(&group).add().unwrap();
    let rows = graph.fill(&buffer.slice((height - 1) * pitch..).unwrap(), 7_u8).add().unwrap();
    assert_eq!(graph.predecessors(rows).unwrap(), [node]);
    let short = Buffer::<u8>::new(queue, pitch * height - 1).unwrap();
    assert_error!(
        Image::from_buffer_2d(queue, &short, (width, height), FORMAT, pitch),
        MemoryError::ImageOfBuffer { why } if why.contains("the buffer has"),
    );
}

/// A copy without pixels does nothing, whatever its memory is.
#[test]
fn copies_of_no_pixels_do_nothing() {
    let Some((bench, _)) = bench() else { return };
    let queue = &bench.queue;
    let bytes = Buffer::<u8>::new(queue, 64).unwrap();
    for from in ImageKind::ALL {
        for into in ImageKind::ALL {
            let (a, b) = (image(&bench, from, 1), image(&bench, into, 2));
            let graph = bench.graph();
            let Ok(node) = graph.copy_image(&a, &b).region([4, 0, 1]).add() else {
                // What goes wrong on the driver is refused with any size.
                assert!(matches!(
                    cause(graph.copy_image(&a, &b).region([4, 1, 1]).add()),
                    BuildCause::NotSupported { .. }
                ));
                continue;
            };
            // It uses no memory, so nothing waits for it.
            let next = graph.copy_image(&b, &a).region([4, 1, 0]).add();
            match next {
                Ok(next) => assert_eq!(graph.predecessors(next).unwrap(), [], "{from}, {into}, {node}"),
                // As above, for the other direction.
                Err(error) => {
                    let whole = cause(graph.copy_image(&b, &a).region([4, 1, 1]).add());
                    assert_eq!(cause::<()>(Err(error)), whole, "{into} to {from}");
                    assert!(matches!(whole, BuildCause::NotSupported { .. }), "{into} to {from}: {whole}");
                }
            }
            let before = content(queue, &b);
            queue.enqueue_copy_image(&a, &b, [0; 3], [0; 3], [4, 0, 1], &[]).unwrap().wait().unwrap();
            run(&graph.finalize(Finalize::new()).unwrap(), queue);
            assert_eq!(content(queue, &b), before, "{from} to {into}");
        }
        let a = image(&bench, from, 1);
        let copy = |rows| queue.enqueue_copy_image_to_buffer(&a, &bytes, [0; 3], [4, rows, 1], 0, &[]);
        match (copy(0), copy(1)) {
            (Ok(none), Ok(row)) => {
                none.wait().unwrap();
                row.wait().unwrap();
            }
            // As above.
            (Err(none), Err(row)) => {
                let row = cause::<()>(Err(row));
                assert_eq!(cause::<()>(Err(none)), row, "{from}");
                assert!(matches!(row, BuildCause::NotSupported { .. }), "{from}: {row}");
            }
            (none, row) => panic!("{from}: {none:?} and {row:?}"),
        }
    }
}

/// Graphs and executables release samplers that updates have replaced.
#[test]
fn samplers_that_were_replaced_are_released() {
    let Some((bench, program)) = bench() else { return };
    let (queue, sampled) = (&bench.queue, program.kernel("sampled").unwrap());
    let row = Image::with_data(queue, ImageShape::image_2d(4, 1), ImageFormat::RGBA_F32, &[[1.0_f32; 4]; 4]).unwrap();
    let out = Buffer::<[f32; 4]>::new(queue, 8).unwrap();
    let graph = bench.graph();
    let new = || Sampler::new(queue, false, Addressing::ClampToEdge, Filter::Nearest).unwrap();
    let launch = |sampler: &Sampler| graph.kernel(&sampled).read(&row).arg(sampler).write(&out).arg(0.5_f32).range(8);
    // SAFETY: a work-item writes its own element.
    let node = unsafe { launch(&new()).add().unwrap() };
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    // This driver may keep samplers for ever.
    if queue.device().caps().platform == "NVIDIA CUDA" {
        return common::skip(Reason::KeepsSamplers);
    }
    // One reference each, which shows how many exist.
    let mut watched = Vec::new();
    for _ in 0..100 {
        let sampler = new();
        watched.push(sampler.to_opencl3().unwrap());
        // SAFETY: as above.
        unsafe { launch(&sampler).replace(node).unwrap() };
        executable.update(&node).unwrap();
        run(&executable, queue);
    }
    // Those of some changes are released at once.
    let held = watched.iter().filter(|sampler| sampler.reference_count().unwrap() > 1).count();
    assert!((1..50).contains(&held), "{held}");
}

/// Copies between all pairs of kinds: some pixels of a row, in a format that both can have.
#[test]
fn images_of_any_kind_are_copied_to_any_other() {
    let Some((bench, _)) = bench() else { return };
    let queue = &bench.queue;
    let mut refused = Vec::new();
    for from in ImageKind::ALL {
        for into in ImageKind::ALL {
            let (a, b) = (image(&bench, from, 1), image(&bench, into, 2));
            // The last place of the image.
            let at = |image: &Image| {
                let [x, y, z] = image.shape().region();
                [x - 4, y - 1, z - 1]
            };
            let (src, dst) = (at(&a), at(&b));
            let [width, height, depth] = b.shape().region();
            let area = Area { origin: dst, region: [3, 1, 1] };
            let taken = Area { origin: src, region: [3, 1, 1] }.places(a.shape().region());
            let (pixels, mut expected) = (content(queue, &a), numbered(width * height * depth, 2));
            for (from, into) in taken.iter().zip(area.places(b.shape().region())) {
                expected[into] = pixels[*from];
            }
            let copied = queue.enqueue_copy_image(&a, &b, src, dst, [3, 1, 1], &[]);
            if let Err(error) = copied {
                assert!(matches!(cause::<()>(Err(error)), BuildCause::NotSupported { .. }));
                refused.push((from, into));
                continue;
            }
            assert!(content(queue, &b) == expected, "{from} to {into}, by the queue");
            for path in [Path::Replay, Path::Native] {
                let graph = bench.graph();
                graph.write_image(&b, vec![[0_u8; 4]; expected.len()]).add().unwrap();
                graph.copy_image(&a, &b).src_origin(src).dst_origin(dst).region([3, 1, 1]).add().unwrap();
                run(&graph.finalize(Finalize::new().path(path)).unwrap(), queue);
                let mut expected = vec![[0; 4]; expected.len()];
                for (from, into) in taken.iter().zip(area.places(b.shape().region())) {
                    expected[into] = pixels[*from];
                }
                assert!(content(queue, &b) == expected, "{from} to {into}, {path}");
            }
        }
    }
    // Drivers on which these copies have wrong results.
    let (rows, row) = (ImageKind::Image1dArray, ImageKind::Image1dBuffer);
    let expected = match queue.device().caps().platform.as_str() {
        "rusticl" => ImageKind::ALL.into_iter().filter(|kind| *kind != rows).map(|kind| (rows, kind)).collect(),
        "NVIDIA CUDA" => vec![(row, rows), (rows, row)],
        _ => Vec::new(),
    };
    refused.sort_by_key(|(from, into)| (*from as u32, *into as u32));
    assert_eq!(refused, expected);
}

/// The pixels of a sub-buffer are where the sub-buffer is, and are ordered with other uses of its buffer.
#[test]
fn images_are_made_of_sub_buffers() {
    let Some((bench, program)) = bench() else { return };
    let queue = &bench.queue;
    let align = queue.device().caps().sub_buffer_align.max(4);
    let buffer = Buffer::<u8>::new(queue, 3 * align).unwrap();
    let [beside, part] = [0, align].map(|start| buffer.sub_buffer(start..start + align).unwrap());
    if queue.device().caps().platform == "Portable Computing Language" {
        assert_error!(
            Image::from_buffer(queue, &part, FORMAT),
            MemoryError::ImageOfBuffer { why } if why.contains("of whole buffers only"),
        );
        return;
    }
    let row = Image::from_buffer(queue, &part, FORMAT).unwrap();
    assert_eq!(row.shape().region(), [align / 4, 1, 1]);
    for path in [Path::Replay, Path::Native] {
        queue.enqueue_fill_buffer(&buffer, &[1_u8], 0, 3 * align, &[]).unwrap();
        let graph = bench.graph();
        graph.fill(&beside, 5_u8).add().unwrap();
        let under = graph.fill(&part, 6_u8).add().unwrap();
        let pixel = graph.fill_image(&row, [9_u32; 4]).area([1, 0, 0], [1, 1, 1]).add().unwrap();
        assert_eq!(graph.predecessors(pixel).unwrap(), [under]);
        // Other bytes of the sub-buffer, but the image is made of all of it.
        let tail = bench.graph();
        let last = tail.fill(&part.slice(align - 4..).unwrap(), 6_u8).add().unwrap();
        let pixel = tail.fill_image(&row, [9_u32; 4]).area([1, 0, 0], [1, 1, 1]).add().unwrap();
        assert_eq!(tail.predecessors(pixel).unwrap(), [last]);
        let all = graph.read(&buffer).add().unwrap();
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        let run = executable.submit(queue).unwrap();
        run.wait().unwrap();
        let mut expected = [[5; 1], [6; 1], [1; 1]].map(|byte| byte.repeat(align)).concat();
        expected[align + 4..align + 8].fill(9);
        assert_eq!(*run.get(&all).unwrap(), expected, "{path}");
    }
    // One kernel that uses the image and bytes beside it.
    let raise = program.kernel("both").unwrap();
    let words = buffer.cast::<u32>().unwrap();
    let slice = |range: std::ops::Range<usize>| words.slice(range.start / 4..range.end / 4).unwrap();
    let graph = bench.graph();
    // SAFETY: of both: a work-item writes its own element; the second is an error.
    unsafe {
        graph.kernel(&raise).read(&row).write(&slice(0..align)).range(1).add().unwrap();
        let same = graph.kernel(&raise).read(&row).write(&slice(align..2 * align)).range(1).add();
        assert_eq!(cause(same), BuildCause::ImageShared { image: 0, other: 1 });
    }
}

/// A value of a parameter is checked like the first value.
#[test]
fn parameters_do_not_bring_what_nodes_cannot_have() {
    let Some((bench, program)) = bench() else { return };
    let [a, b, c] = [1, 2, 3].map(|seed| image(&bench, ImageKind::Image2d, seed));
    let from = Parameter::image(&a);
    let graph = bench.graph();
    let mirror = program.kernel("mirror").unwrap();
    // SAFETY: a work-item writes its own pixel.
    let node = unsafe { graph.kernel(&mirror).read(&from).write(&c).arg(2_u32).range([9, 6]).add().unwrap() };
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    from.set(&c).unwrap();
    let shared = BuildCause::ImageShared { image: 0, other: 1 };
    assert_error!(executable.update(&node), UpdateError::Node { node: of, cause } if (*of, cause) == (node, &shared));
    let finalized = graph.finalize(Finalize::new());
    assert_error!(finalized, FinalizeError::Node { node: of, cause } if (*of, cause) == (node, &shared));
    from.set(&b).unwrap();
    executable.update(&node).unwrap();
    run(&executable, &bench.queue);
    assert_eq!(content(&bench.queue, &c), mirrored(&numbered(54, 2), 9, 2));
    // Another parameter of an argument must have its kind.
    let bytes = Buffer::<Pixel>::new(&bench.queue, 54).unwrap();
    let (buffer, block) = (Parameter::buffer(&bytes), Parameter::image(&image(&bench, ImageKind::Image3d, 1)));
    let launch = || graph.kernel(&mirror).read(&a);
    let wrong = [launch().also_parameter(&buffer), launch().also_parameter(&block)].map(|launch| {
        // SAFETY: errors.
        unsafe { launch.write(&c).arg(2_u32).range([9, 6]).add() }
    });
    for (wrong, is) in wrong.into_iter().zip(["a buffer", "an image3d_t"]) {
        assert_error!(
            wrong,
            BuildCause::ArgumentKind { index: 0, expected, given, .. }
                if expected == "an image (`image2d_t`)" && given == is,
        );
    }
}

/// What the device can record is recorded; for the rest the report says why not.
#[test]
fn the_report_tells_how_commands_on_images_run() {
    let Some((bench, program)) = bench() else { return };
    let [a, b] = [1, 2].map(|seed| image(&bench, ImageKind::Image2d, seed));
    let buffer = Buffer::<Pixel>::new(&bench.queue, 54).unwrap();
    let graph = bench.graph();
    let nodes = [
        graph.fill_image(&a, [1_u32; 4]).add().unwrap(),
        graph.copy_image(&a, &b).add().unwrap(),
        graph.copy_image_to_buffer(&b, &buffer).add().unwrap(),
        graph.copy_buffer_to_image(&buffer, &a).add().unwrap(),
    ];
    let kinds = nodes.map(|node| graph.kind(node).unwrap());
    assert_eq!(kinds, [NodeKind::FillImage, NodeKind::CopyImage, NodeKind::CopyImage, NodeKind::CopyImage]);
    let caps = bench.queue.device().caps();
    let records = clgraph::CommandKind::ALL.into_iter().filter(|one| caps.can_record(*one).is_ok()).count() > 4;
    let native = |graph: &Graph| graph.finalize(Finalize::new().path(Path::Native)).unwrap();
    let executable = native(&graph);
    let usable = bench.queue.device().abi().is_ok_and(|abi| abi.is_some());
    assert_eq!(executable.report().segments.iter().all(|part| part.path == Path::Native), records && usable);
    run(&executable, &bench.queue);
    assert_eq!(content(&bench.queue, &a), [[1; 4]; 54]);
    if records && usable && caps.platform == "Portable Computing Language" {
        let sampler = Sampler::new(&bench.queue, false, Addressing::Clamp, Filter::Nearest).unwrap();
        let row = Image::new(&bench.queue, ImageShape::image_2d(4, 1), ImageFormat::RGBA_F32).unwrap();
        let out = Buffer::<[f32; 4]>::new(&bench.queue, 1).unwrap();
        let graph = bench.graph();
        let kernel = program.kernel("sampled").unwrap();
        // SAFETY: a work-item writes its own element.
        unsafe { graph.kernel(&kernel).read(&row).arg(&sampler).write(&out).arg(0.5_f32).range(1).add().unwrap() };
        assert_eq!(native(&graph).report().segments[0].why, PathReason::Sampler);
    }
}

fn read_back(graph: &Graph, image: &Image) -> HostRead<Pixel> {
    graph.read_image(image).add().unwrap()
}

/// Reads and writes of graphs: input and result of each submission, parts, and updates.
#[test]
fn submissions_bring_pixels_and_take_results() {
    let Some((bench, _)) = bench() else { return };
    let (queue, a) = (&bench.queue, image(&bench, ImageKind::Image2d, 1));
    for path in [Path::Replay, Path::Native] {
        let graph = bench.graph();
        let input = graph.write_image(&a, numbered(54, 10)).add().unwrap();
        let part = graph.write_image(&a, vec![[7_u8; 4]; 4]).area([2, 1, 0], [2, 2, 1]).add().unwrap();
        let (all, corner) =
            (read_back(&graph, &a), graph.read_image::<u32>(&a).area([2, 1, 0], [1, 1, 1]).add().unwrap());
        let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
        let submission = executable.submit(queue).unwrap();
        submission.wait().unwrap();
        let mut expected = numbered(54, 10);
        [11, 12, 20, 21].into_iter().for_each(|at| expected[at] = [7; 4]);
        assert_eq!(*submission.get(&all).unwrap(), expected);
        assert_eq!(*submission.get(&corner).unwrap(), [0x0707_0707]);
        let submission = executable.submit_to(queue).with(&input, numbered(54, 30)).submit().unwrap();
        submission.wait().unwrap();
        let mut expected = numbered(54, 30);
        [11, 12, 20, 21].into_iter().for_each(|at| expected[at] = [7; 4]);
        assert_eq!(*submission.get(&all).unwrap(), expected);
        graph.write_image(&a, vec![[8_u8; 4]; 4]).area([0, 0, 0], [4, 1, 1]).replace(&part).unwrap();
        executable.update(&part).unwrap();
        let submission = executable.submit(queue).unwrap();
        submission.wait().unwrap();
        let mut expected = numbered(54, 10);
        expected[..4].fill([8; 4]);
        assert_eq!(*submission.get(&all).unwrap(), expected, "{path}");
        let fill = graph.fill_image(&a, [0_u32; 4]).add().unwrap();
        assert_error!(
            graph.fill(&bench.buffer(&[0; 4]), 0_u32).replace(fill),
            BuildCause::Replace { why, .. } if why == "it is a fill of an image, but a fill was given",
        );
    }
}

/// Rows that the host maps, of each kind of image and of a part of it.
#[test]
fn images_are_mapped_as_rows() {
    let Some((bench, _)) = bench() else { return };
    let queue = &bench.queue;
    for kind in ImageKind::ALL {
        let (image, sizes) = (image(&bench, kind, 4), shape(kind).region());
        let total: usize = sizes.iter().product();
        let area = Area { origin: sizes.map(|size| size / 4), region: sizes.map(|size| (size / 2).max(1)) };
        let mut expected = numbered(total, 4);
        // SAFETY: nothing else uses the image.
        let mut mapped =
            unsafe { queue.map_image::<Pixel, _>(&image, area.origin, area.region, MapWrite, &[]).unwrap() };
        let places = area.places(sizes);
        let mut rows = places.chunks(area.region[0]);
        for z in 0..area.region[2] {
            for y in 0..area.region[1] {
                let row = rows.next().unwrap();
                let found = mapped.row_mut(y, z).unwrap();
                assert_eq!(*found, row.iter().map(|at| expected[*at]).collect::<Vec<_>>(), "{kind}");
                found.iter_mut().for_each(|pixel| pixel[3] ^= 0x55);
            }
        }
        assert!(mapped.row(area.region[1], 0).is_none() && mapped.row(usize::MAX, usize::MAX).is_none());
        let at = area.region[2];
        let beyond = mapped.row_mut(0, at).map(drop).unwrap_err();
        assert_eq!(beyond, MemoryError::OutOfBounds { what: "slices", start: at, end: at + 1, len: at }.into());
        mapped.unmap().unwrap();
        places.iter().for_each(|at| expected[*at][3] ^= 0x55);
        assert_eq!(content(queue, &image), expected, "{kind}");
        // SAFETY: as above; errors.
        unsafe {
            let read = queue.map_image::<u8, _>(&image, [0; 3], sizes, MapRead, &[]).unwrap();
            assert_eq!(read.row(0, 0).unwrap().len(), 4 * sizes[0]);
            drop(read);
            assert_error!(
                queue.map_image::<[u8; 5], _>(&image, [0; 3], [1; 3], MapRead, &[]),
                BuildCause::NotSupported { why, .. } if why.contains("whole number"),
            );
            let beyond = [sizes[0] + 1, 1, 1];
            assert_error!(
                queue.map_image::<u8, _>(&image, [0; 3], beyond, MapRead, &[]),
                BuildCause::ImageArea { what: "the part", origin: [0, 0, 0], .. },
            );
        }
    }
}

/// Errors are found before the driver is called, and nothing has changed.
#[test]
fn wrong_images_and_arguments_are_clear_errors() {
    let Some((bench, program)) = bench() else { return };
    let queue = &bench.queue;
    let caps = queue.device().caps().images.unwrap();
    let memory = |error: Error| match error {
        Error::Memory(error) => error,
        other => panic!("{other}"),
    };
    for shape in [
        ImageShape::image_2d(0, 4),
        ImageShape::image_2d(caps.max_2d[0] + 1, 4),
        ImageShape::array_2d(4, 4, caps.max_layers + 1),
        ImageShape::image_3d(4, 4, caps.max_3d[2] + 1),
        ImageShape::array_1d(4, 0),
    ] {
        let error = memory(Image::new(queue, shape, FORMAT).unwrap_err());
        assert!(matches!(error, MemoryError::ImageSize { .. }), "{shape}: {error}");
    }
    let rgb = ImageFormat::new(clgraph::ChannelOrder::Rgb, clgraph::ChannelType::UnormInt8);
    assert_error!(
        Image::new(queue, ImageShape::image_2d(4, 4), rgb),
        MemoryError::ImageFormat { format, kind: ImageKind::Image2d, access: ImageAccess::ReadWrite, has, .. }
            if *format == rgb && has.contains("RGBA UNSIGNED_INT8"),
    );
    let formats = Image::formats(queue, ImageKind::Image2d, ImageAccess::ReadWrite).unwrap();
    assert!(formats.contains(&FORMAT) && !formats.contains(&rgb));
    let row = Image::from_buffer(queue, &Buffer::<u8>::new(queue, 64).unwrap(), FORMAT).unwrap();
    assert_error!(
        Image::new(queue, row.shape(), FORMAT),
        MemoryError::ImageOfBuffer { why } if why.contains("use `Image::from_buffer`"),
    );
    let error = memory(Image::with_data(queue, ImageShape::image_1d(4), FORMAT, &[0_u8; 15]).unwrap_err());
    assert!(matches!(error, MemoryError::PixelBytes { given: 15, bytes: 16, .. }), "{error}");
    let small = Buffer::<u8>::new(queue, 64).unwrap();
    let (row, why_not) = match caps.buffer_pitch {
        Some(pixels) => (16_usize.next_multiple_of(4 * pixels), "the buffer has"),
        None => (0, "does not support two-dimensional images"),
    };
    let wrong = Image::from_buffer_2d(queue, &small, (4, 100), FORMAT, row);
    assert_error!(wrong, MemoryError::ImageOfBuffer { why } if why.contains(why_not));
    assert_error!(Sampler::new(queue, false, Addressing::Repeat, Filter::Nearest), MemoryError::Sampler);

    let (plane, block) = (image(&bench, ImageKind::Image2d, 1), image(&bench, ImageKind::Image3d, 2));
    let floats = Image::new(queue, ImageShape::image_2d(9, 6), ImageFormat::RGBA_F32).unwrap();
    assert_error!(plane.layers(0..1), MemoryError::NoLayers { kind: ImageKind::Image2d });
    let layers = image(&bench, ImageKind::Image2dArray, 1);
    assert_error!(layers.layers(2..4), MemoryError::OutOfBounds { what: "layers", start: 2, end: 4, len: 3 });
    assert_error!(layers.layers(1..1), MemoryError::Empty { what: "a range of layers" });
    let graph = bench.graph();
    let area = |origin, region| cause(graph.fill_image(&plane, [0_u32; 4]).area(origin, region).add());
    for (origin, region) in [
        ([0, 0, 0], [10, 6, 1]),
        ([9, 0, 0], [1, 1, 1]),
        ([0, 0, 1], [1, 1, 1]),
        ([0, 0, 0], [9, 6, 2]),
        ([usize::MAX, 0, 0], [2, 1, 1]),
    ] {
        assert!(matches!(area(origin, region), BuildCause::ImageArea { .. }), "{origin:?} {region:?}");
        let at_once = queue.enqueue_fill_image(&plane, [0_u32; 4], origin, region, &[]);
        assert!(matches!(cause(at_once), BuildCause::ImageArea { .. }));
        assert_error!(
            queue.enqueue_read_image(&plane, origin, region, &mut [0_u8; 4], &[]),
            BuildCause::ImageArea { what: "the source", .. },
        );
    }
    assert!(matches!(cause(graph.copy_image(&plane, &floats).add()), BuildCause::ImageFormats { .. }));
    assert!(matches!(
        cause(graph.copy_image(&plane, &plane).dst_origin([1, 0, 0]).region([3, 3, 1]).add()),
        BuildCause::Overlap { .. }
    ));
    assert!(matches!(cause(graph.fill_image(&plane, [0.5_f32; 4]).add()), BuildCause::ImageColor { .. }));
    assert!(matches!(cause(graph.copy_image_to_buffer(&plane, &small).add()), BuildCause::SizeMismatch { .. }));
    assert!(matches!(cause(graph.write_image(&plane, [0_u8; 4]).add()), BuildCause::SizeMismatch { .. }));
    let beyond = queue.enqueue_copy_image_to_buffer(&plane, &small, [0; 3], [4, 4, 1], 4, &[]);
    assert!(matches!(cause(beyond), BuildCause::OutOfBounds { .. }));
    assert!(matches!(cause(graph.read_image::<[u8; 5]>(&plane).add()), BuildCause::NotSupported { .. }));

    let (mirror, sampled) = (program.kernel("mirror").unwrap(), program.kernel("sampled").unwrap());
    let sampler = Sampler::new(queue, false, Addressing::Clamp, Filter::Nearest).unwrap();
    let buffer = bench.buffer(&[0; 64]);
    let other = image(&bench, ImageKind::Image2d, 2);
    let node = || graph.kernel(&mirror);
    let sized = |kernel: clgraph::KernelNode<'_>| {
        // SAFETY: errors.
        unsafe { kernel.range([1, 1]).add() }
    };
    let (an_image, a_sampler) = ("an image (`image2d_t`)", "a sampler (`sampler_t`)");
    let pixels = program.kernel("pixels").unwrap();
    for (error, at, wanted, is) in [
        (sized(node().read(&buffer).write(&other).arg(1_u32)), 0, an_image, "a buffer"),
        (sized(node().read(&block).write(&other).arg(1_u32)), 0, an_image, "an image3d_t"),
        (sized(node().arg(&sampler).write(&other).arg(1_u32)), 0, an_image, "a sampler"),
        (sized(node().null().write(&other).arg(1_u32)), 0, an_image, "a null buffer"),
        (sized(node().read(&plane).write(&other).arg(&sampler)), 2, "a value (`uint`)", "a sampler"),
        (sized(graph.kernel(&sampled).read(&floats).read(&plane).write(&buffer).arg(1_f32)), 1, a_sampler, "an image"),
        (sized(graph.kernel(&sampled).read(&floats).arg(1_u32).write(&buffer).arg(1_f32)), 1, a_sampler, "a value"),
        (sized(graph.kernel(&pixels).read_write(&plane)), 0, "a buffer (`uint*`)", "an image"),
    ] {
        assert_error!(
            error,
            BuildCause::ArgumentKind { index, expected, given, .. }
                if (*index, &**expected, &**given) == (at, wanted, is),
        );
    }
    assert_error!(
        sized(node().write(&plane).write(&other).arg(1_u32)),
        BuildCause::ImageAccess { index: 0, qualifier: "read_only", declared: "written", .. },
    );
    assert_error!(
        sized(node().read(&plane).read_write(&other).arg(1_u32)),
        BuildCause::ImageAccess { index: 1, qualifier: "write_only", declared: "read and written", .. },
    );
    // SAFETY: an error.
    let twice = unsafe { node().read(&plane).write(&plane).arg(1_u32).range([1, 1]).add() };
    assert_eq!(cause(twice), BuildCause::ImageShared { image: 0, other: 1 });
    // Elsewhere there is no such device.
    let far = elsewhere();
    assert_error!(far.graph().fill_image(&plane, [0_u32; 4]).add(), BuildCause::OtherContext { .. });
    assert_error!(
        far.queue.enqueue_fill_image(&plane, [0_u32; 4], [0; 3], [1; 3], &[]),
        BuildCause::OtherContext { .. },
    );
    let theirs = Sampler::new(&far.queue, false, Addressing::Clamp, Filter::Nearest).unwrap();
    assert_error!(
        sized(graph.kernel(&sampled).read(&floats).arg(&theirs).write(&buffer).arg(1_f32)),
        BuildCause::OtherContext { what } if what == "argument 1",
    );
    let recorded = graph.record(queue, || {
        assert_error!(
            queue.enqueue_read_image(&plane, [0; 3], [9, 6, 1], &mut [[0_u8; 4]; 54], &[]),
            RecordError::NotRecordable { what: "a read into a borrowed slice", instead }
                if instead.contains("enqueue_read_image_owned"),
        );
        Ok(())
    });
    recorded.unwrap();
    assert!(graph.is_empty());
    assert_eq!(content(queue, &plane), numbered(54, 1));
}

/// Rule I3: wrapped handles, and handles for others.
#[test]
fn images_and_samplers_come_from_opencl3_and_from_raw_handles() {
    use opencl3::memory::ClMem;
    let Some((bench, _)) = bench() else { return };
    let (queue, plane) = (&bench.queue, image(&bench, ImageKind::Image2dArray, 3));
    let again = Image::from_opencl3(queue, &plane.to_opencl3().unwrap()).unwrap();
    assert!(again == plane && again.shape() == plane.shape() && again.format() == plane.format());
    assert_eq!(plane.to_opencl3().unwrap().get(), plane.raw());
    let buffer = Buffer::from_slice(queue, &numbered(16, 5)).unwrap();
    let row = Image::from_buffer(queue, &buffer, FORMAT).unwrap();
    // SAFETY: a live image.
    let wrapped = unsafe { Image::from_raw(queue, row.raw()).unwrap() };
    assert_eq!(wrapped.shape(), row.shape());
    let graph = bench.graph();
    let fill = graph.fill(&buffer, [1_u8; 4]).add().unwrap();
    let copy = graph.copy_image_to_buffer(&wrapped, &Buffer::<Pixel>::new(queue, 16).unwrap()).add().unwrap();
    assert_eq!(graph.predecessors(copy).unwrap(), [fill], "the wrapper knows the buffer");
    // SAFETY: live objects, and errors.
    unsafe {
        assert!(matches!(
            Image::from_raw(queue, buffer.raw()),
            Err(Error::Memory(MemoryError::NotAnImage { object_type: 0x10F0 }))
        ));
        assert_error!(Image::from_raw(queue, std::ptr::null_mut()), SetupError::NullHandle { what: "cl_mem" });
        assert_error!(Buffer::<u8>::from_raw(queue, plane.raw()), MemoryError::NotABuffer { object_type: 0x10F3 });
        assert_error!(Image::from_raw(&elsewhere().queue, plane.raw()), MemoryError::OtherContext);
    }
    let sampler = Sampler::new(queue, true, Addressing::MirroredRepeat, Filter::Linear).unwrap();
    // SAFETY: a live sampler.
    let again = unsafe { Sampler::from_raw(queue, sampler.raw()).unwrap() };
    assert!(again == sampler && Sampler::from_opencl3(queue, &again.to_opencl3().unwrap()).unwrap() == sampler);
    // Host memory that nothing here keeps alive.
    let (telling, _) = bench.telling_buffer(&[0; 16]);
    let row = Image::from_buffer(queue, &telling, FORMAT).unwrap();
    // SAFETY: a live image, and an error.
    let raw = unsafe { Image::from_raw(queue, row.raw()) };
    assert_error!(raw, MemoryError::HostMemory { what: "buffer", flag: "CL_MEM_USE_HOST_PTR", .. });
    // SAFETY: an error.
    assert_error!(unsafe { Sampler::from_raw(&elsewhere().queue, sampler.raw()) }, MemoryError::OtherContext);
}
