//! Interoperation: `opencl3` objects, raw handles, every form of program, every kind of argument.

mod common;

use clgraph::{
    Buffer, BuildCause, Caps, Context, Device, Error, ErrorKind, Event, Finalize, Kernel, MemoryError, Program,
    ProgramBuilder, ProgramError, Queue, SetupError, Status, Version,
};
use common::{Bench, SOURCE, assert_error, elsewhere};
use opencl3::memory::ClMem;

/// Rule I1
#[test]
fn a_program_of_opencl3_objects_runs_as_a_graph_and_back() {
    let device = clgraph::best_device().unwrap().to_opencl3();
    let context = opencl3::context::Context::from_device(&device).unwrap();
    let queue = opencl3::command_queue::CommandQueue::create_default(&context, 0).unwrap();
    let program = opencl3::program::Program::create_and_build_from_source(&context, SOURCE, "").unwrap();
    let kernel = opencl3::kernel::Kernel::create(&program, "scale").unwrap();
    // SAFETY: no host pointer.
    let [a, b] = [(); 2]
        .map(|()| unsafe { opencl3::memory::Buffer::<u32>::create(&context, 0, 16, std::ptr::null_mut()).unwrap() });

    let (mine, graph_queue) = (Context::from_opencl3(&context).unwrap(), Queue::from_opencl3(&queue).unwrap());
    assert_eq!(graph_queue.context(), &mine);
    assert_eq!(Device::from_opencl3(&device).unwrap(), *graph_queue.device());
    let scale = Kernel::from_opencl3(&mine, &kernel).unwrap();
    let (from, into) = (Buffer::from_opencl3(&mine, &a).unwrap(), Buffer::from_opencl3(&mine, &b).unwrap());
    let graph = clgraph::Graph::new(&graph_queue).unwrap();
    graph.fill(&from, 5_u32).add().unwrap();
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&scale).read(&from).write(&into).arg(1_u32).range(16).add() }.unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit(&graph_queue).unwrap();
    // Plain OpenCL after it, waiting for the submission's event.
    let event = run.event().unwrap().to_opencl3().unwrap();
    let mut seen = [0_u32; 16];
    // SAFETY: the destination is as long as the buffer, and the call blocks.
    unsafe { queue.enqueue_read_buffer(&b, 1, 0, &mut seen, &[event.get()]) }.unwrap();
    assert_eq!(seen, [16; 16]);

    // The wrappers do not depend on the objects that they were made of, and these do not depend on the wrappers.
    drop((a, b, program, kernel, queue, context));
    assert_eq!(common::content(&graph_queue, &into), [16; 16]);
    let out = into.to_opencl3().unwrap();
    drop((from, into, graph));
    assert_eq!(out.size().unwrap(), 64);
    let again = scale.to_opencl3().unwrap();
    assert_eq!(again.function_name().unwrap(), "scale");
    assert_eq!(mine.to_opencl3().unwrap().get(), mine.raw());
}

/// Rule I1
#[test]
fn raw_handles_are_taken_and_null_or_foreign_ones_are_refused() {
    let bench = Bench::new();
    let null = std::ptr::null_mut();
    let buffer = bench.buffer(&[1; 4]);
    let stir = bench.kernel("stir");
    // SAFETY: null, or handles of objects that live here.
    unsafe {
        assert_eq!(Buffer::<u32>::from_raw(&bench.queue, buffer.raw()).unwrap(), buffer);
        assert_eq!(Queue::from_raw(bench.queue.raw()).unwrap(), bench.queue);
        assert_eq!(Context::from_raw(bench.queue.context().raw()).unwrap(), *bench.queue.context());
        assert_eq!(Device::from_raw(bench.queue.device().raw()).unwrap(), *bench.queue.device());
        assert_eq!(Program::from_raw(&bench.queue, bench.program.raw()).unwrap(), bench.program);
        let raw = stir.to_opencl3().unwrap();
        assert_eq!(Kernel::from_raw(&bench.queue, raw.get()).unwrap(), stir);

        assert_error!(Buffer::<u32>::from_raw(&bench.queue, null), SetupError::NullHandle { what: "cl_mem" });
        assert_error!(Queue::from_raw(null), SetupError::NullHandle { what: "cl_command_queue" });
        assert_error!(Context::from_raw(null), SetupError::NullHandle { what: "cl_context" });
        assert_error!(Device::from_raw(null), SetupError::NullHandle { what: "cl_device_id" });
        assert_error!(Program::from_raw(&bench.queue, null), SetupError::NullHandle { what: "cl_program" });
        assert_error!(Kernel::from_raw(&bench.queue, null), SetupError::NullHandle { what: "cl_kernel" });
        assert_error!(Event::from_raw(null), SetupError::NullHandle { what: "cl_event" });

        let other = elsewhere();
        assert_error!(Buffer::<u32>::from_raw(&other.queue, buffer.raw()), MemoryError::OtherContext);
        assert_error!(Program::from_raw(&other.queue, bench.program.raw()), ProgramError::OtherContext);
        assert_error!(Kernel::from_raw(&other.queue, raw.get()), ProgramError::OtherContext);
        let odd = Buffer::<[u32; 3]>::from_raw(&bench.queue, buffer.raw());
        assert_error!(odd, MemoryError::ElementSize { bytes: 16, element: 12 });
    }
    let context = bench.queue.context().to_opencl3().unwrap();
    let unbuilt = opencl3::program::Program::create_from_source(&context, SOURCE).unwrap();
    assert_error!(Program::from_opencl3(&bench.queue, &unbuilt), ProgramError::NotBuilt);
    assert_error!(Context::new(&[]), SetupError::NoDevices);
}

/// Rule I1: a raw sub-buffer is recognised as a part of its buffer.
#[test]
fn a_sub_buffer_made_elsewhere_takes_part_in_dependencies() {
    let bench = Bench::new();
    let whole = bench.buffer(&[0; 64]);
    // SAFETY: 32 elements from element 32 on, which is aligned and inside.
    let sub = unsafe { whole.to_opencl3().unwrap().create_sub_buffer(0, 32, 32) }.unwrap();
    let sub = Buffer::from_opencl3(&bench.queue, &sub).unwrap();
    assert_eq!(sub.len(), 32);
    let graph = bench.graph();
    let fill = graph.fill(&whole, 1_u32).add().unwrap();
    let part = graph.fill(&sub, 2_u32).add().unwrap();
    assert_eq!(graph.predecessors(part).unwrap(), [fill]);
    let overlap = graph.copy(&whole.slice(30..40).unwrap(), &sub.slice(0..10).unwrap()).add();
    assert_error!(overlap, BuildCause::Overlap { .. });
    bench.run(&graph);
    let mut expected = [1; 64];
    expected[32..].fill(2);
    assert_eq!(bench.content(&whole), expected);
}

/// Rule I2
#[test]
fn a_program_from_its_own_binary_gives_the_same_bytes() {
    let bench = Bench::new();
    let binary = bench.program.binary(bench.queue.device()).unwrap();
    // SAFETY: the driver has just given it.
    let program = unsafe { Program::from_binary(&bench.queue, &binary) }.unwrap();
    let a = bench.buffer(&[1; 16]);
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&program.kernel("stir").unwrap()).read_write(&a).range(16).add() }.unwrap();
    bench.run(&graph);
    assert_eq!(bench.content(&a)[15], 20);

    // SAFETY: bytes that no driver takes for a binary.
    let broken = unsafe { Program::from_binary(&bench.queue, b"this is no binary of any driver") }.unwrap_err();
    // NVIDIA's driver looks at it only when it builds.
    assert!(
        matches!(
            broken,
            Error::Program(ProgramError::BinaryRefused { .. } | ProgramError::BuildFailed { status: Status(-42), .. })
        ),
        "{broken:?}"
    );
    // SAFETY: no driver sees it.
    let empty = unsafe { Program::from_binary(&bench.queue, &[]) };
    assert_error!(empty, ProgramError::Empty { what: "the binary" });
}

/// Rule I2
#[test]
fn spir_v_and_specialization_constants_work_where_the_device_takes_them() {
    const MODULE: &[u8] = include_bytes!("../kernels-cl/specialize.spv");
    let bench = Bench::new();
    let caps: &Caps = bench.queue.device().caps();
    // SAFETY: no driver sees the empty one, and the other is valid.
    let (empty, plain) = unsafe { (Program::from_il(&bench.queue, &[]), Program::from_il(&bench.queue, MODULE)) };
    assert_error!(empty, ProgramError::Empty { what: "the intermediate language" });
    if caps.il_versions.is_empty() {
        let error = plain.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FeatureNotSupported);
        let is_old = caps.version < Version::new(2, 1);
        let start = if is_old { "the device has OpenCL" } else { "the device lists no intermediate language" };
        assert_error!(
            error,
            ProgramError::FormNotSupported { form, why, .. } if form == "SPIR-V" && why.starts_with(start),
        );
    } else {
        let mut programs = vec![(plain.unwrap(), 1)];
        if caps.version >= Version::new(2, 2) {
            // SAFETY: a valid module.
            let with = unsafe { ProgramBuilder::new(&bench.queue).specialize(7, 40_u32).il(MODULE) };
            programs.push((with.unwrap(), 40));
        }
        for (program, step) in programs {
            let a = bench.buffer(&[10; 8]);
            let graph = bench.graph();
            // SAFETY: each work-item touches its own element.
            unsafe { graph.kernel(&program.kernel("step_up").unwrap()).read_write(&a).range(8).add() }.unwrap();
            bench.run(&graph);
            assert_eq!(bench.content(&a), [20 + step; 8]);
        }
    }
    let source = ProgramBuilder::new(&bench.queue).specialize(7, 1_u32).source(SOURCE).unwrap_err();
    assert_eq!(source.kind(), ErrorKind::FeatureNotSupported);
    assert_error!(
        source,
        ProgramError::FormNotSupported { form, .. } if form == "source with specialization constants",
    );
}

/// Rule I2
#[test]
fn built_in_kernels_are_what_the_device_lists() {
    let bench = Bench::new();
    let device = bench.queue.device();
    let unknown = Program::from_builtin_kernels(&bench.queue, &["no.such.kernel"]).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::FeatureNotSupported);
    assert_error!(&unknown, ProgramError::FormNotSupported { form, .. } if form == "built-in kernel `no.such.kernel`");
    assert_error!(
        Program::from_builtin_kernels(&bench.queue, &[]),
        ProgramError::Empty { what: "the list of built-in kernels" },
    );
    let context = bench.queue.context().to_opencl3().unwrap();
    for name in &device.caps().builtin_kernels {
        // clgraph can do what plain OpenCL can. (PoCL 3.1 lists four kernels for the CPU, and cannot build them.)
        // SAFETY: the device lists the kernel.
        let mut plain =
            unsafe { opencl3::program::Program::create_from_builtin_kernels(&context, &[device.raw()], name) }.unwrap();
        let works = plain.build(&[device.raw()], "").is_ok() || opencl3::kernel::Kernel::create(&plain, name).is_ok();
        match Program::from_builtin_kernels(&bench.queue, &[name.as_str()]) {
            Ok(program) => assert!(works && program.kernel(name).unwrap().num_args() > 0, "{name}"),
            Err(error) => {
                assert!(!works, "{name} works in plain OpenCL: {error}");
                assert_eq!(error.kind(), ErrorKind::KernelNotSupported, "{error}");
            }
        }
    }
}

/// Rule I2: options reach the compiler, and argument information is requested too.
#[test]
fn build_options_are_passed_on() {
    let bench = Bench::new();
    let source = "kernel void put(global uint *a) { a[get_global_id(0)] = FIRST + SECOND; }";
    let program = ProgramBuilder::new(&bench.queue).options("-DFIRST=40").options("-DSECOND=2").source(source).unwrap();
    let put = program.kernel("put").unwrap();
    assert!(put.has_arg_info());
    let a = bench.buffer(&[0; 4]);
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&put).write(&a).range(4).add() }.unwrap();
    bench.run(&graph);
    assert_eq!(bench.content(&a), [42; 4]);
    assert_error!(
        ProgramBuilder::new(&bench.queue).options("-DFIRST=nonsense -DSECOND=1").source(source),
        ProgramError::BuildFailed { options, .. }
            if options.contains("-DFIRST=nonsense -DSECOND=1 -cl-kernel-arg-info"),
    );
}

/// Rule I3
#[test]
fn null_local_value_and_sub_buffer_arguments_reach_the_kernel() {
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Affine {
        scale: u32,
        shift: u32,
        pad: [u32; 2],
    }
    // SAFETY: four words without padding, for which every pattern is a value.
    unsafe impl bytemuck::Zeroable for Affine {}
    // SAFETY: as above.
    unsafe impl bytemuck::Pod for Affine {}

    let bench = Bench::new();
    let a = bench.buffer(&[2; 256]);
    let (low, high) = (a.sub_buffer(..128).unwrap(), a.sub_buffer(128..).unwrap());
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element; the local memory has an element for each of a group of 16.
    unsafe {
        graph.kernel(&bench.kernel("add_or_one")).read_write(&low).null().range(128).add().unwrap();
        graph.kernel(&bench.kernel("add_or_one")).read_write(&high).read(&low).range(128).add().unwrap();
        graph
            .kernel(&bench.kernel("group_sum"))
            .read_write(&high)
            .local::<u32>(16)
            .range(128)
            .work_group(16)
            .add()
            .unwrap();
        let affine = Affine { scale: 10, shift: 3, pad: [0, 4] };
        graph.kernel(&bench.kernel("affine")).read_write(&high).arg(affine).range(64).add().unwrap();
        let affine = bytemuck::bytes_of(&affine);
        graph.kernel(&bench.kernel("affine")).read_write(&high).bytes(affine).range(64).offset(64).add().unwrap();
    }
    bench.run(&graph);
    let mut expected = [3; 256];
    expected[128..].fill((2 + 3) * 16 * 10 + 3 + 4);
    assert_eq!(bench.content(&a), expected);
}

/// Rule I3: vectors, two dimensions, offsets, and a required work-group size, which is used if none is given.
#[test]
fn vectors_ranges_offsets_and_required_work_groups_reach_the_kernel() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[0; 64]), bench.buffer(&[0; 64]));
    let graph = bench.graph();
    let grid = bench.kernel("grid");
    // SAFETY: the kernel stays inside the size that it gets.
    unsafe {
        graph
            .kernel(&grid)
            .write(&a)
            .arg([8_u32, 8])
            .arg([1_u32, 10, 100, 1000])
            .range([4, 6])
            .offset([2, 1])
            .add()
            .unwrap();
        graph.kernel(&bench.kernel("by_eight")).write(&b).range(64).add().unwrap();
    }
    bench.run(&graph);
    let inside = |x: u32, y: u32| (2..6).contains(&x) && (1..7).contains(&y);
    let expected: Vec<u32> =
        (0..64).map(|i| (i % 8, i / 8)).map(|(x, y)| if inside(x, y) { x + 10 * y + 1100 } else { 0 }).collect();
    assert_eq!(bench.content(&a), expected);
    assert_eq!(bench.content(&b), [8; 64]);
}

/// Rule I5: a box from a volume to another volume with other pitches.
#[test]
fn boxes_are_copied_between_volumes() {
    let bench = Bench::new();
    let volume: Vec<u32> = (0..6 * 5 * 4).collect();
    let (a, b) = (bench.buffer(&volume), bench.buffer(&[0; 4 * 4 * 3]));
    let graph = bench.graph();
    let copy = graph.copy_rect(&a, &b).region([3, 2, 2]).src_origin([2, 1, 1]).src_pitch(6, 30);
    copy.dst_origin([1, 2, 1]).dst_pitch(4, 16).add().unwrap();
    bench.run(&graph);
    let mut expected = [0; 4 * 4 * 3];
    for (z, y, x) in (0..2).flat_map(|z| (0..2).flat_map(move |y| (0..3).map(move |x| (z, y, x)))) {
        expected[(z + 1) * 16 + (y + 2) * 4 + x + 1] = volume[(z + 1) * 30 + (y + 1) * 6 + x + 2];
    }
    assert_eq!(bench.content(&b), expected);
}

/// Rule I3: a kernel that prints runs in a graph as it does outside of one.
#[test]
fn kernels_may_print() {
    let bench = Bench::new();
    let a = bench.buffer(&[7; 1]);
    let graph = bench.graph();
    // SAFETY: it reads the first element.
    unsafe { graph.kernel(&bench.kernel("print")).read(&a).range(1).add() }.unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let run = executable.submit(&bench.queue).unwrap();
    run.wait().unwrap();
    assert_eq!(executable.report().commands, 1);
}

#[test]
fn a_platform_leads_to_that_of_opencl3() {
    let raws: Vec<_> = clgraph::platforms().unwrap().iter().map(clgraph::Platform::raw).collect();
    let theirs: Vec<_> =
        opencl3::platform::get_platforms().unwrap().iter().map(opencl3::platform::Platform::id).collect();
    assert_eq!(raws, theirs);
}
