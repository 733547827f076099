//! Images and samplers as arguments of kernels, as parameters, and wrapped: by all paths, on a queue, and recorded.

mod common;
#[path = "common/images.rs"]
mod images;

use clgraph::{
    Addressing, Buffer, BuildCause, Error, Event, ExecuteKernel, Filter, Finalize, FinalizeError, Graph, Image,
    ImageAccess, ImageFormat, ImageKind, Kernel, MemoryError, Parameter, ParameterError, Path, Program, ProgramBuilder,
    Queue, Sampler, SetupError, UpdateError,
};
use common::{Bench, assert_error, cause, elsewhere};
use images::{
    FORMAT, PATHS, Pixel, bench, content, image, len, mirror, mirrored, numbered, place, plain_image, run, shape,
};
use opencl3::memory::{self as plain, ClMem};

fn launch<'k>(kernel: &'k Kernel, from: &Image, into: &Image, by: u32) -> ExecuteKernel<'k> {
    let mut launch = ExecuteKernel::new(kernel);
    launch.set_arg(from).set_arg(into).set_arg(&by).set_global_work_sizes(&from.shape().region());
    launch
}

/// Rules D1, I3: each kind of image, read and written, at once and by each path.
#[test]
fn kernels_read_and_write_images_of_each_kind() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    assert!(queue.device().caps().images.unwrap().writes_3d, "no device without has been looked at");
    for kind in ImageKind::ALL {
        let kernel = mirror(&bench, kind);
        let pixels = numbered(len(kind), 1);
        let (once, twice) = (mirrored(&pixels, kind, 3), mirrored(&mirrored(&pixels, kind, 3), kind, 2));
        let [from, between, into] = [1, 2, 3].map(|seed| image(&bench, kind, seed));
        // SAFETY: a work-item writes its own pixel.
        unsafe {
            launch(&kernel, &from, &between, 3).enqueue_nd_range(queue).unwrap();
            launch(&kernel, &between, &into, 2).enqueue_nd_range_detached(queue).unwrap();
        }
        assert_eq!(content(queue, &between), once, "{kind}, at once");
        assert_eq!(content(queue, &into), twice, "{kind}, at once");
        for path in PATHS {
            for recorded in [false, true] {
                let [between, into] = [2, 3].map(|seed| image(&bench, kind, seed));
                let graph = bench.graph();
                let range = shape(kind).region();
                let nodes = if recorded {
                    // SAFETY: as above.
                    let launch = |from, into, by| unsafe { launch(&kernel, from, into, by).enqueue_nd_range(queue) };
                    let events =
                        graph.record(queue, || Ok([launch(&from, &between, 3)?, launch(&between, &into, 2)?])).unwrap();
                    events.map(|event| graph.node_of(&event).unwrap())
                } else {
                    let node = |from, into, by: u32| {
                        let node = graph.kernel(&kernel).read(from).write(into).arg(by).range(range);
                        // SAFETY: as above.
                        unsafe { node.add().unwrap() }
                    };
                    [node(&from, &between, 3), node(&between, &into, 2)]
                };
                assert_eq!(graph.predecessors(nodes[1]).unwrap(), [nodes[0]], "{kind}");
                run(&graph.finalize(Finalize::new().path(path)).unwrap(), queue);
                assert_eq!(content(queue, &between), once, "{kind}, {path}, recorded {recorded}");
                assert_eq!(content(queue, &into), twice, "{kind}, {path}, recorded {recorded}");
            }
        }
    }
}

/// Rules D1, I3: each kind with its own memory that the device can read and write in one kernel.
#[test]
fn a_kernel_reads_and_writes_one_image_of_each_kind() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    let options = if queue.device().caps().version.major >= 3 { "-cl-std=CL3.0" } else { "-cl-std=CL2.0" };
    for kind in ImageKind::ALL.into_iter().filter(|kind| *kind != ImageKind::Image1dBuffer) {
        let has = Image::formats(queue, kind, ImageAccess::ReadWriteInKernel).unwrap();
        let made = Image::with_access(queue, shape(kind), FORMAT, ImageAccess::ReadWriteInKernel);
        assert_eq!(made.is_ok(), has.contains(&FORMAT), "{kind}: {made:?}");
        if made.is_err() {
            continue;
        }
        let place = place(kind);
        let source = format!(
            "kernel void raise(read_write {kind} image, uint by) {{
                int x = get_global_id(0);
                write_imageui(image, {place}, read_imageui(image, {place}) + by);
            }}"
        );
        let program = ProgramBuilder::new(queue).options(options).source(&source).unwrap();
        let (kernel, region) = (program.kernel("raise").unwrap(), shape(kind).region());
        for path in PATHS {
            let image = image(&bench, kind, 1);
            let launch = |by: u32| {
                let mut launch = ExecuteKernel::new(&kernel);
                launch.set_arg(&image).set_arg(&by).set_global_work_sizes(&region);
                // SAFETY: a work-item reads and writes its own pixel.
                unsafe { launch.enqueue_nd_range(queue) }
            };
            launch(1).unwrap();
            let graph = bench.graph();
            // SAFETY: as above.
            let first = unsafe { graph.kernel(&kernel).read_write(&image).arg(2_u32).range(region).add().unwrap() };
            let second = graph.node_of(&graph.record(queue, || launch(3)).unwrap()).unwrap();
            assert_eq!(graph.predecessors(second).unwrap(), [first]);
            run(&graph.finalize(Finalize::new().path(path)).unwrap(), queue);
            let raise = |pixel: Pixel, by: u8| pixel.map(|channel| channel.saturating_add(by));
            let raised = |pixel| raise(raise(raise(pixel, 1), 2), 3);
            let expected: Vec<Pixel> = numbered(len(kind), 1).into_iter().map(raised).collect();
            assert_eq!(content(queue, &image), expected, "{kind}, {path}");
        }
    }
}

/// Rules P1, P2, P4: one parameter in several recorded nodes, on each path, and the values that it refuses.
#[test]
fn a_parameter_is_the_image_of_several_recorded_nodes() {
    let Some(bench) = bench() else { return };
    let (queue, kind) = (&bench.queue, ImageKind::Image2dArray);
    let kernel = mirror(&bench, kind);
    let [a, b, c, d] = [1, 2, 3, 4].map(|seed| image(&bench, kind, seed));
    let expected = |seed: u8| [4, 9].map(|by| mirrored(&numbered(len(kind), seed), kind, by));
    let found = || [content(queue, &c), content(queue, &d)];
    for path in PATHS {
        let from = Parameter::image(&a);
        let launch = |into: &Image, by: u32| {
            let mut launch = ExecuteKernel::new(&kernel);
            launch.set_arg(&from).set_arg(into).set_arg(&by).set_global_work_sizes(&shape(kind).region());
            // SAFETY: a work-item writes its own pixel, whatever image it reads.
            unsafe { launch.enqueue_nd_range(queue) }
        };
        // Only nodes have parameters.
        assert_eq!(cause(launch(&c, 4)), BuildCause::ParameterExecuted { index: 0 });
        let graph = bench.graph();
        let events = graph.record(queue, || Ok([launch(&c, 4)?, launch(&d, 9)?])).unwrap();
        let nodes = events.map(|event| graph.node_of(&event).unwrap());
        let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
        run(&executable, queue);
        assert_eq!(found(), expected(1), "{path}");
        from.set(&b).unwrap();
        run(&executable, queue);
        assert_eq!(found(), expected(1), "{path}, before it is updated");
        executable.update(&nodes).unwrap();
        run(&executable, queue);
        assert_eq!(found(), expected(2), "{path}");
        // An image of another context: nothing changes.
        let theirs = image(elsewhere(), kind, 7);
        assert!(matches!(from.set(&theirs), Err(Error::Parameter(ParameterError::OtherContext))));
        executable.update(&nodes).unwrap();
        run(&executable, queue);
        assert_eq!(found(), expected(2), "{path}");
        run(&graph.finalize(Finalize::new().path(path)).unwrap(), queue);
        assert_eq!(found(), expected(2), "{path}");
    }
}

/// Rules P2, P3: a parameter of an image that is written refuses an image that kernels cannot write.
#[test]
fn a_written_parameter_does_not_become_an_image_to_be_read() {
    let Some(bench) = bench() else { return };
    let (queue, kind) = (&bench.queue, ImageKind::Image2d);
    let kernel = mirror(&bench, kind);
    let [a, b] = [1, 2].map(|seed| image(&bench, kind, seed));
    let readable = Image::with_access(queue, shape(kind), FORMAT, ImageAccess::Read).unwrap();
    for path in PATHS {
        let into = Parameter::image(&b);
        let graph = bench.graph();
        let mut launch = ExecuteKernel::new(&kernel);
        launch.set_arg(&a).set_arg(&into).set_arg(&3_u32).set_global_work_sizes(&[9, 6]);
        // SAFETY: a work-item writes its own pixel, of whatever image.
        let event = graph.record(queue, || unsafe { launch.enqueue_nd_range(queue) }).unwrap();
        let node = graph.node_of(&event).unwrap();
        let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
        into.set(&readable).unwrap();
        let refused = executable.update(&node).unwrap_err();
        let Error::Update(UpdateError::Node { node: of, cause }) = refused else { panic!("{refused}") };
        assert_eq!((of, matches!(cause, BuildCause::AccessForbidden { .. })), (node, true), "{cause}");
        assert_error!(
            graph.finalize(Finalize::new().path(path)),
            FinalizeError::Node { node: of, cause: BuildCause::AccessForbidden { flag: "CL_MEM_READ_ONLY", .. } }
                if *of == node,
        );
        queue.enqueue_fill_image(&b, [0_u32; 4], [0; 3], [9, 6, 1], &[]).unwrap();
        run(&executable, queue);
        assert_eq!(content(queue, &b), mirrored(&numbered(54, 1), kind, 3), "{path}: as it was");
        into.set(&b).unwrap();
        executable.update(&node).unwrap();
        run(&executable, queue);
    }
    // Also as the first value.
    let graph = bench.graph();
    let launched = graph.kernel(&kernel).read(&a).write(&Parameter::image(&readable)).arg(1_u32).range([9, 6]);
    // SAFETY: an error.
    let refused = unsafe { launched.add() };
    assert!(matches!(cause(refused), BuildCause::AccessForbidden { .. }) && graph.is_empty());
}

/// Rule I1: wrapped images of each kind, by both ways of wrapping; others see what graphs do to them.
#[test]
fn images_of_plain_opencl_are_wrapped_by_kind() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    for kind in ImageKind::ALL {
        // For an image that is made of a buffer there is no function that makes it from a shape.
        let shape = if kind == ImageKind::Image1dBuffer { image(&bench, kind, 0).shape() } else { shape(kind) };
        for format in [FORMAT, ImageFormat::RGBA_F32] {
            let size = format.pixel_size().unwrap();
            let mut pixels = numbered(len(kind) * size / 4, 9);
            let bytes = bytemuck::cast_slice_mut(&mut pixels);
            let (plain, buffer) = plain_image(queue, shape, format, plain::CL_MEM_READ_WRITE, bytes);
            // SAFETY: a live image.
            let again = unsafe { Image::from_raw(queue, plain.get()).unwrap() };
            let wrapped = [Image::from_opencl3(queue, &plain).unwrap(), again];
            drop((plain, buffer));
            for image in &wrapped {
                assert_eq!((image.shape(), image.format(), image.pixel_size()), (shape, format, size));
                let mut found = vec![[0; 4]; pixels.len()];
                queue.enqueue_read_image(image, [0; 3], shape.region(), &mut found, &[]).unwrap();
                assert_eq!(found, pixels, "{kind}");
                let theirs = Image::from_opencl3(&elsewhere().queue, &image.to_opencl3().unwrap());
                assert_error!(theirs, MemoryError::OtherContext);
            }
            if format != FORMAT {
                continue;
            }
            let [from, again] = wrapped;
            let (into, _buffer) =
                plain_image(queue, shape, format, plain::CL_MEM_READ_WRITE, bytemuck::cast_slice_mut(&mut pixels));
            let wrapped = Image::from_opencl3(queue, &into).unwrap();
            for path in PATHS {
                let graph = bench.graph();
                let kernel = mirror(&bench, kind);
                // Both wrappers are the same memory.
                let writes = graph.write_image(&again, numbered(len(kind), 8)).add().unwrap();
                let node = graph.kernel(&kernel).read(&from).write(&wrapped).arg(1_u32).range(shape.region());
                // SAFETY: a work-item writes its own pixel.
                let node = unsafe { node.add().unwrap() };
                assert_eq!(graph.predecessors(node).unwrap(), [writes.node()], "{kind}");
                run(&graph.finalize(Finalize::new().path(path)).unwrap(), queue);
                let mut found = vec![[0_u8; 4]; len(kind)];
                let (origin, region) = ([0; 3], shape.region());
                let (place, plain) = (found.as_mut_ptr().cast(), common::plain_queue(queue));
                // SAFETY: there is room for all pixels, and the call blocks.
                unsafe { plain.enqueue_read_image(&into, 1, origin.as_ptr(), region.as_ptr(), 0, 0, place, &[]) }
                    .unwrap();
                assert_eq!(found, mirrored(&numbered(len(kind), 8), kind, 1), "{kind}, {path}");
            }
        }
    }
}

/// Rule I1: handles that are no image or sampler, or that cannot be kept alive, are errors; flags of wrapped images
/// count.
#[test]
fn what_cannot_be_wrapped_is_an_error() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    // SAFETY: null, which is allowed.
    unsafe {
        let image = Image::from_raw(queue, std::ptr::null_mut());
        assert!(matches!(image, Err(Error::Setup(SetupError::NullHandle { .. }))), "{image:?}");
        let sampler = Sampler::from_raw(queue, std::ptr::null_mut());
        assert!(matches!(sampler, Err(Error::Setup(SetupError::NullHandle { .. }))), "{sampler:?}");
    }
    let kind = ImageKind::Image2d;
    let kernel = mirror(&bench, kind);
    let (mut pixels, other) = (numbered(len(kind), 1), image(&bench, kind, 2));
    let mut plain = |flags| plain_image(queue, shape(kind), FORMAT, flags, bytemuck::cast_slice_mut(&mut pixels));
    for (flag, name) in [(plain::CL_MEM_READ_ONLY, "CL_MEM_READ_ONLY"), (plain::CL_MEM_WRITE_ONLY, "CL_MEM_WRITE_ONLY")]
    {
        let image = Image::from_opencl3(queue, &plain(flag).0).unwrap();
        let (from, into) = if flag == plain::CL_MEM_READ_ONLY { (&other, &image) } else { (&image, &other) };
        // SAFETY: an error.
        let refused = cause(unsafe { launch(&kernel, from, into, 1).enqueue_nd_range(queue) });
        assert!(matches!(refused, BuildCause::AccessForbidden { flag, .. } if flag == name), "{refused}");
    }
}

/// Rule I1: a wrapped sampler reads like one of clgraph's own, and lives as long as the wrapper.
#[test]
fn samplers_of_plain_opencl_are_wrapped() {
    let Some(bench) = bench() else { return };
    let queue = &bench.queue;
    let context = queue.context().to_opencl3().unwrap();
    let (clamp, linear) = (opencl_sys::CL_ADDRESS_CLAMP_TO_EDGE, opencl_sys::CL_FILTER_LINEAR);
    let plain = plain::Sampler::create(&context, 0, clamp, linear).unwrap();
    let wrapped = Sampler::from_opencl3(queue, &plain).unwrap();
    // SAFETY: a live sampler.
    let again = unsafe { Sampler::from_raw(queue, plain.get()).unwrap() };
    assert!(wrapped == again && wrapped.raw() == plain.get());
    assert_error!(Sampler::from_opencl3(&elsewhere().queue, &plain), MemoryError::OtherContext);
    drop((plain, again));
    let own = Sampler::new(queue, false, Addressing::ClampToEdge, Filter::Linear).unwrap();
    let samples = Samples::new(&bench, ImageKind::Image2d);
    assert_eq!(samples.at_once(&wrapped), samples.at_once(&own));
    for path in PATHS {
        assert_eq!(samples.in_graph(&wrapped, path, false), samples.at_once(&own), "{path}");
    }
}

/// A kernel that samples an image of a kind, between its pixels and outside of it.
struct Samples {
    queue: Queue,
    kernel: Kernel,
    image: Image,
    places: Buffer<[f32; 4]>,
    out: Buffer<[f32; 4]>,
}

impl Samples {
    fn new(bench: &Bench, kind: ImageKind) -> Self {
        let queue = bench.queue.clone();
        let place = match kind {
            ImageKind::Image1d => "x",
            ImageKind::Image1dArray | ImageKind::Image2d => "xy",
            _ => "xyzw",
        };
        let source = format!(
            "kernel void sampled(read_only {kind} in, sampler_t sampler, global const float4 *places, global float4 *out) {{
                size_t at = get_global_id(0);
                out[at] = read_imagef(in, sampler, places[at].{place});
            }}"
        );
        let kernel = Program::from_source(&queue, &source).unwrap().kernel("sampled").unwrap();
        let pixels: Vec<[f32; 4]> = (0..len(kind)).map(|at| [at as f32, 0.3, 1.0 / (at + 1) as f32, -7.7]).collect();
        let image = Image::with_data(&queue, shape(kind), ImageFormat::RGBA_F32, &pixels).unwrap();
        // From before the first pixel to after the last, in pixels or in fractions of the image.
        let steps = |normalized: bool| {
            let sizes = shape(kind).region().map(|size| if normalized { 1.0 } else { size as f32 });
            (-3..40).map(move |at| {
                let part = at as f32 / 37.0;
                [part * sizes[0], (1.0 - part) * sizes[1], part * part * sizes[2], 0.0]
            })
        };
        let places: Vec<[f32; 4]> = steps(false).chain(steps(true)).collect();
        let out = Buffer::new(&queue, places.len()).unwrap();
        let places = Buffer::from_slice(&queue, &places).unwrap();
        Self { queue, kernel, image, places, out }
    }

    fn launch(&self, sampler: &Sampler) -> Event {
        let mut launch = ExecuteKernel::new(&self.kernel);
        launch.set_arg(&self.image).set_arg(sampler).set_arg(&self.places).set_arg_write(&self.out);
        launch.set_global_work_size(self.places.len());
        // SAFETY: a work-item writes its own element.
        unsafe { launch.enqueue_nd_range(&self.queue).unwrap() }
    }

    /// Returns the samples, bit by bit.
    fn taken(&self) -> Vec<[u32; 4]> {
        let found = common::content(&self.queue, &self.out).into_iter().map(|pixel| pixel.map(f32::to_bits)).collect();
        self.queue.enqueue_fill_buffer(&self.out, &[[0.0; 4]], 0, self.out.size(), &[]).unwrap();
        found
    }

    fn at_once(&self, sampler: &Sampler) -> Vec<[u32; 4]> {
        self.launch(sampler).wait().unwrap();
        self.taken()
    }

    fn in_graph(&self, sampler: &Sampler, path: Path, recorded: bool) -> Vec<[u32; 4]> {
        let graph = Graph::new(&self.queue).unwrap();
        if recorded {
            graph.record(&self.queue, || Ok(self.launch(sampler))).unwrap();
        } else {
            let node = graph.kernel(&self.kernel).read(&self.image).arg(sampler).read(&self.places).write(&self.out);
            // SAFETY: as above.
            unsafe { node.range(self.places.len()).add().unwrap() };
        }
        run(&graph.finalize(Finalize::new().path(path)).unwrap(), &self.queue);
        self.taken()
    }
}

/// Rule I3: samples between and outside of pixels are the same on a queue and on each path, bit for bit.
#[test]
fn sampling_gives_the_bits_of_an_eager_run() {
    let Some(bench) = bench() else { return };
    let kinds =
        [ImageKind::Image1d, ImageKind::Image1dArray, ImageKind::Image2d, ImageKind::Image2dArray, ImageKind::Image3d];
    for kind in kinds {
        let samples = Samples::new(&bench, kind);
        for filter in [Filter::Linear, Filter::Nearest] {
            for (normalized, addressing) in [
                (false, Addressing::ClampToEdge),
                (false, Addressing::Clamp),
                (true, Addressing::Clamp),
                (true, Addressing::Repeat),
                (true, Addressing::MirroredRepeat),
            ] {
                let sampler = Sampler::new(&bench.queue, normalized, addressing, filter).unwrap();
                let expected = samples.at_once(&sampler);
                assert!(expected.iter().any(|pixel| *pixel != expected[0]), "{kind}: the samples differ");
                for path in PATHS {
                    for recorded in [false, true] {
                        let found = samples.in_graph(&sampler, path, recorded);
                        assert!(
                            found == expected,
                            "{kind}, {filter:?}, {addressing:?}, {normalized}, {path}, {recorded}"
                        );
                    }
                }
            }
        }
    }
}

/// Rule P2: two nodes that come to use one image, one of them writing, need an edge; a parameter does not make one.
#[test]
fn a_parameter_does_not_become_an_image_that_another_node_writes() {
    let Some(bench) = bench() else { return };
    let (queue, kind) = (&bench.queue, ImageKind::Image3d);
    let kernel = mirror(&bench, kind);
    let [a, b, c] = [1, 2, 3].map(|seed| image(&bench, kind, seed));
    let from = Parameter::image(&a);
    let graph = bench.graph();
    let node = graph.kernel(&kernel).read(&from).write(&c).arg(1_u32).range(shape(kind).region());
    // SAFETY: a work-item writes its own pixel, whatever image it reads.
    let node = unsafe { node.add().unwrap() };
    let slice = graph.fill_image(&b, [1_u32; 4]).area([0, 0, 3], [7, 5, 1]).add().unwrap();
    assert_eq!(graph.predecessors(slice).unwrap(), []);
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    from.set(&b).unwrap();
    let refused = executable.update(&node);
    assert!(matches!(refused, Err(Error::Update(UpdateError::Conflict { .. }))), "{refused:?}");
    assert_error!(graph.finalize(Finalize::new()), FinalizeError::Conflict { .. });
    run(&executable, queue);
    assert_eq!(content(queue, &c), mirrored(&numbered(len(kind), 1), kind, 1));
}
