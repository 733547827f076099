//! Finalizing: what is decided, what is kept, and what belongs to whom.

mod common;

use std::sync::Arc;

use clgraph::{
    Buffer, Device, ErrorKind, Finalize, FinalizeError, Graph, GraphProperties, HostData, MemoryError, Path,
    PathReason, Program, Queue, SubmitError,
};
use common::{Bench, Reason, SOURCE, UserEvent, assert_error, content};

/// Rule F1
#[test]
fn the_report_says_what_was_decided_and_why() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 8]);
    let stir = bench.kernel("stir");
    let graph = bench.graph();
    for _ in 0..3 {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&stir).read_write(&a).range(8).add() }.unwrap();
    }
    graph.empty().after_all_leaves().add().unwrap();
    let auto = graph.finalize(Finalize::new()).unwrap().report();
    assert_eq!((auto.nodes, auto.commands, auto.edges, auto.kernel_objects), (4, 3, 3, 1));
    assert_eq!(auto.segments.len(), 1);
    let (path, why) = bench.queue.device().path().unwrap();
    let path = if path == Path::Native { path } else { Path::Replay };
    assert_eq!((auto.segments[0].path, auto.segments[0].why), (path, why));
    let pinned = graph.finalize(Finalize::new().path(Path::Replay)).unwrap().report();
    assert_eq!((pinned.segments[0].path, pinned.segments[0].why), (Path::Replay, PathReason::Asked));
    let shown = pinned.to_string();
    assert!(shown.contains("segment 0  3 commands by replay (as asked)"), "{shown}");
    assert_error!(
        graph.finalize(Finalize::new().result_slots(0)),
        FinalizeError::Option { option: "result_slots", given, allowed: "at least 1" } if given == "0",
    );
    let none = Finalize::new().commands_per_buffer(0);
    assert_error!(
        graph.finalize(none),
        FinalizeError::Option { option: "commands_per_buffer", given, allowed: "at least 1" } if given == "0",
    );
}

/// Rule F1: the report names programs that do not report their types, because their arguments were not checked.
#[test]
fn kernels_whose_arguments_could_not_be_checked_are_reported() {
    let bench = Bench::new();
    let context = bench.queue.context().to_opencl3().unwrap();
    let plain = opencl3::program::Program::create_and_build_from_source(&context, SOURCE, "").unwrap();
    let program = Program::from_opencl3(&bench.queue, &plain).unwrap();
    let stir = program.kernel("stir").unwrap();
    let a = bench.buffer(&[0; 8]);
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&stir).read_write(&a).range(8).add() }.unwrap();
    let report = bench.run(&graph).report();
    // Some drivers always report the types.
    assert_eq!(report.unchecked_kernels.is_empty(), stir.has_arg_info());
    assert_eq!(report.to_string().contains("the arguments of `stir` were not checked"), !stir.has_arg_info());
}

/// Rule F2
#[test]
fn executables_of_one_graph_are_independent() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 4]);
    let graph = bench.graph();
    let write = graph.write(&a, [1; 4]).add().unwrap();
    let read = graph.read(&a).add().unwrap();
    let (first, second) = (graph.finalize(Finalize::new()).unwrap(), graph.finalize(Finalize::new()).unwrap());
    let one = first.submit_to(&bench.queue).with(&write, [7; 4]).submit().unwrap();
    let two = second.submit(&bench.queue).unwrap();
    drop((graph, first));
    one.wait().unwrap();
    two.wait().unwrap();
    assert_eq!((&one.get(&read).unwrap()[..], &two.get(&read).unwrap()[..]), (&[7; 4][..], &[1; 4][..]));
}

/// Rule F3
#[test]
fn an_executable_keeps_alive_what_it_uses_and_lets_it_go() {
    let bench = Bench::new();
    let out = bench.buffer(&[0; 64]);
    let (executable, tell) = {
        let graph = bench.graph();
        let (a, tell) = bench.telling_buffer(&[3; 64]);
        let sub = a.sub_buffer(..).unwrap();
        // A program, a kernel, a buffer and a sub-buffer that nobody else holds.
        let program = Program::from_source(&bench.queue, SOURCE).unwrap();
        let kernel = program.kernel("scale").unwrap();
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&kernel).read(&sub).write(&out).arg(1_u32).range(64).add() }.unwrap();
        (graph.finalize(Finalize::new()).unwrap(), tell)
    };
    for _ in 0..3 {
        executable.submit(&bench.queue).unwrap().wait().unwrap();
    }
    assert_eq!(bench.content(&out), [10; 64]);
    assert!(!tell.is_gone());
    drop(executable);
    tell.wait_until_gone();
}

/// Rule F3: kernel objects too, which OpenCL counts as references to their program.
#[test]
fn kernel_objects_are_released_with_their_executable() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 8]);
    let affine = bench.kernel("affine");
    let plain = |raw| opencl3::program::get_program_info(raw, opencl3::program::CL_PROGRAM_REFERENCE_COUNT).unwrap();
    let count = || u32::from(plain(bench.program.raw()));
    // A thread of the driver may still hold a reference.
    let before = count();
    let graph = bench.graph();
    for value in 0..100_u32 {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&affine).read_write(&a).arg([value; 4]).range(8).add() }.unwrap();
    }
    let executable = graph.finalize(Finalize::new()).unwrap();
    assert_eq!(executable.report().kernel_objects, 100);
    // Intel's CPU runtime does not count kernels there; PoCL does.
    let platform = &bench.queue.device().caps().platform;
    assert!(count() > before || platform != "Portable Computing Language", "the driver counts kernels");
    executable.submit(&bench.queue).unwrap().wait().unwrap();
    drop((graph, executable));
    let begin = std::time::Instant::now();
    while count() > before {
        assert!(begin.elapsed() < std::time::Duration::from_secs(60), "{} references, {before} before", count());
        std::thread::yield_now();
    }
}

/// Rule F3
#[test]
fn dropping_an_executable_while_it_runs_is_safe() {
    let bench = Bench::new();
    let n = 1 << 14;
    let (a, b) = (Buffer::<u32>::new(&bench.queue, n).unwrap(), Buffer::<u32>::new(&bench.queue, n).unwrap());
    for _ in 0..20 {
        let graph = bench.graph();
        let data: Vec<u32> = (0..n as u32).collect();
        graph.write(&a, data.clone()).add().unwrap();
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&bench.kernel("spin")).read_write(&a).arg(200_u32).range(n).add() }.unwrap();
        graph.write(&b, data).add().unwrap();
        let read = graph.read(&a).add().unwrap();
        let executable = graph.finalize(Finalize::new()).unwrap();
        let run = executable.submit(&bench.queue).unwrap();
        let gone = executable.submit_to(&bench.queue).submit_detached();
        drop((executable, graph));
        gone.unwrap();
        run.wait().unwrap();
        let expected = (0..200).fold(12_345_u32, |x, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        assert_eq!(run.get(&read).unwrap()[12_345], expected);
    }
    bench.queue.finish().unwrap();
}

/// Rule F5: a program of another device of the context.
#[test]
fn a_node_that_no_path_can_run_is_named_at_finalize() {
    let whole = clgraph::best_device().unwrap();
    let Some(parts) = common::sub_devices(&whole) else { return common::skip(Reason::NoSubDevices) };
    // SAFETY: the sub-devices are kept in `parts`.
    let devices: Vec<Device> =
        parts.iter().take(2).map(|part| unsafe { Device::from_raw(part.id()) }.unwrap()).collect();
    let context = clgraph::Context::new(&devices).unwrap();
    let raw = context.to_opencl3().unwrap();
    let mut plain = opencl3::program::Program::create_from_source(&raw, SOURCE).unwrap();
    plain.build(&[devices[0].raw()], "").unwrap();
    let program = Program::from_opencl3(&context, &plain).unwrap();
    let stir = program.kernel("stir").unwrap();
    let a = Buffer::<u32>::from_slice(&context, &[1; 8]).unwrap();

    let stirred = |times: u32| (0..8).map(|i| (0..times).fold(1, |x, _| x * 5 + i)).collect::<Vec<u32>>();
    let on = |device: &Device| {
        let graph = Graph::with_properties(&context, device, GraphProperties::default()).unwrap();
        graph.empty().add().unwrap();
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&stir).read_write(&a).range(8).add() }.unwrap();
        graph.finalize(Finalize::new())
    };
    // PoCL reports a program as built for all parts of a device once it is built for one, and it is.
    let built = plain.get_build_status(devices[1].raw()).unwrap() == 0;
    match on(&devices[1]) {
        Ok(executable) => {
            assert!(built, "the driver says that the program was not built for the second part");
            let queue = Queue::with_properties(&context, &devices[1], clgraph::QueueProperties::default()).unwrap();
            executable.submit(&queue).unwrap().wait().unwrap();
        }
        Err(error) => {
            assert!(!built, "the driver says that the program was built for the second part: {error}");
            assert_eq!(error.kind(), ErrorKind::KernelNotSupported);
            assert_error!(
                error,
                FinalizeError::NotRunnable { node, what, device, missing, .. }
                    if node.to_string() == "node 1"
                        && what == "kernel `stir`"
                        && device == devices[1].name()
                        && missing.contains("its program was not built for this device"),
            );
        }
    }

    let queue = Queue::with_properties(&context, &devices[0], clgraph::QueueProperties::default()).unwrap();
    on(&devices[0]).unwrap().submit(&queue).unwrap().wait().unwrap();
    assert_eq!(content(&queue, &a), stirred(1 + u32::from(built)));
    // An executable of one device refuses the queue of another.
    let other = Queue::with_properties(&context, &devices[1], clgraph::QueueProperties::default()).unwrap();
    assert_error!(on(&devices[0]).unwrap().submit(&other), SubmitError::OtherQueue { what: "device", .. });
}

/// Rule F6
#[test]
fn host_data_is_copied_only_when_it_is_borrowed_and_released_with_its_last_user() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 4]);
    let graph = bench.graph();
    let shared = Arc::new(vec![5_u32; 4]);
    graph.write(&a, Arc::clone(&shared)).add().unwrap();
    assert_eq!(Arc::strong_count(&shared), 2, "shared, not copied");
    let mut borrowed = vec![6_u32; 4];
    graph.write(&a, &borrowed).add().unwrap();
    borrowed.fill(0);
    let executable = graph.finalize(Finalize::new()).unwrap();
    drop(graph);
    executable.submit(&bench.queue).unwrap().wait().unwrap();
    assert_eq!(bench.content(&a), [6; 4], "the copy was made when the node was added");
    drop(executable);
    assert_eq!(Arc::strong_count(&shared), 1, "released");
    let any = HostData::shared(Arc::new([1_u32, 2].to_vec()));
    assert_eq!(any.as_slice(), [1, 2]);
}

/// Rule F6: memory that clgraph cannot keep alive is recognised.
#[test]
fn buffers_over_host_memory_need_an_owner() {
    use opencl3::memory::{self, ClMem};
    let bench = Bench::new();
    let context = bench.queue.context().to_opencl3().unwrap();
    let mut memory = vec![1_u32; 64].into_boxed_slice();
    let place = memory.as_mut_ptr().cast();
    // SAFETY: `memory` lives longer than the buffer: it goes to the wrapper as its owner.
    let plain = unsafe { memory::Buffer::<u32>::create(&context, memory::CL_MEM_USE_HOST_PTR, 64, place) }.unwrap();
    let refused = Buffer::from_opencl3(&bench.queue, &plain).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert_error!(refused, MemoryError::HostMemory { what: "buffer", flag: "CL_MEM_USE_HOST_PTR", .. });
    // SAFETY: the owner is the buffer's memory, and nobody else touches it.
    let buffer = unsafe { Buffer::from_raw_with_owner(&bench.queue, plain.get(), memory) }.unwrap();
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&bench.kernel("stir")).read_write(&buffer).range(64).add() }.unwrap();
    bench.run(&graph);
    assert_eq!(bench.content(&buffer)[..3], [5, 6, 7]);
}

/// Rules F3, F6: the owner of a buffer's host memory stays as long as a command uses the memory, whatever is dropped.
#[test]
fn the_owner_of_host_memory_outlives_the_commands_that_use_it() {
    let bench = Bench::new();
    let (buffer, tell) = bench.telling_buffer(&[1; 64]);
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&bench.kernel("spin")).read_write(&buffer).arg(1000_u32).range(64).add() }.unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    // Plain OpenCL holds the queue, so that the commands cannot have ended yet.
    let event = UserEvent::new(&bench.queue);
    // SAFETY: a live event.
    unsafe { common::plain_queue(&bench.queue).enqueue_marker_with_wait_list(&[event.0.get()]) }.unwrap();
    let run = executable.submit(&bench.queue).unwrap();
    bench.queue.flush().unwrap();
    drop((buffer, graph, executable));
    for _ in 0..1000 {
        assert!(!tell.is_gone(), "the owner went before the kernel ran");
        std::thread::yield_now();
    }
    event.set(0);
    run.wait().unwrap();
    tell.wait_until_gone();
}
