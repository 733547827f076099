//! Device globals: variables in device memory, with every kind of access that a device has.

mod common;

use bytemuck::{Pod, Zeroable};
use clgraph::{
    Buffer, BuildCause, BuildError, DeviceGlobal, DeviceGlobalType, DriverError, Error, ErrorKind, Event,
    ExecuteKernel, Finalize, GlobalAccess, GlobalError, GlobalSlice, Graph, GroupError, HostAccess, InContext,
    InitMode, Kernel, Memory, MemoryError, MemoryKind, Parameter, Path, Program, ProgramBuilder, ProgramError, Queue,
    Status, device_global, host_access, scope,
};
use common::{Bench, Reason, UserEvent, assert_error, skip, sub_devices};

const SOURCE: &str = include_str!("../kernels-cl/globals.cl");

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
struct Counters {
    hits: u32,
    misses: u32,
    best: f32,
    last: [u32; 3],
}

impl DeviceGlobalType for Counters {
    type Element = Self;
}

device_global! {
    static TOTAL: u32 = 5;
    static STATS: Counters;
    static TABLE: [[i32; 2]; 3] = [[1, 2], [3, 4], [5, 6]];
}

/// The same names in another module.
mod other {
    clgraph::device_global! {
        pub(super) static TOTAL: u64 = 77;
    }
}

fn accesses(queue: &Queue) -> Vec<GlobalAccess> {
    queue.device().caps().global_access()
}

fn listing(on: &impl InContext, access: GlobalAccess) -> ProgramBuilder {
    let list = ProgramBuilder::new(on).global("total", &TOTAL).global("stats", &STATS).global("table", &TABLE);
    list.global_access(access)
}

fn program(on: &impl InContext, access: GlobalAccess) -> Program {
    listing(on, access).source(SOURCE).unwrap()
}

fn content<E: clgraph::Element + Default, A: host_access::Readable>(queue: &Queue, of: &GlobalSlice<E, A>) -> Vec<E> {
    let mut data = vec![E::default(); of.len()];
    queue.enqueue_read_buffer(of, 0, &mut data, &[]).unwrap();
    data
}

fn total(queue: &Queue) -> u32 {
    content(queue, &TOTAL.on(queue).unwrap())[0]
}

fn set_total(queue: &Queue, value: u32) {
    queue.enqueue_write_buffer(&TOTAL.on(queue).unwrap(), 0, &[value], &[]).unwrap();
}

/// Runs a kernel without arguments, or with one buffer: once, or once for each element.
fn run(queue: &Queue, kernel: &Kernel, buffer: Option<&Buffer<u32>>) {
    let mut launch = ExecuteKernel::new(kernel);
    if let Some(buffer) = buffer {
        launch.set_arg(buffer);
    }
    launch.set_global_work_size(buffer.map_or(1, Buffer::len));
    // SAFETY: a work-item touches its own element, and the globals that the program lists.
    unsafe { launch.enqueue_nd_range(queue).unwrap().wait().unwrap() };
}

/// Rules G1, G4, G8: structs, arrays, members, addresses, atomics, helper functions; and kernels that use none.
#[test]
fn a_kernel_does_with_a_global_what_it_does_with_a_variable_by_every_way() {
    for access in accesses(&Bench::new().queue) {
        let bench = Bench::new();
        let queue = &bench.queue;
        let program = program(queue, access);
        let all = program.globals();
        let names: Vec<_> = all.iter().map(|global| (global.c_name.as_str(), global.bytes)).collect();
        assert_eq!(names, [("total", 4), ("stats", 24), ("table", 24)]);
        assert!(
            all.iter().all(|global| global.access == access && !global.is_image_scope && !global.is_variable),
            "{all:?}"
        );
        assert_eq!(all[0].name, "device_globals::TOTAL");
        let mut kernels = program.kernel_names().unwrap();
        kernels.sort();
        assert_eq!(kernels, ["advance", "count", "load", "plain", "turn", "where"]);

        let data = Buffer::from_slice(queue, &[3, 8, 10, 4]).unwrap();
        let count = program.kernel("count").unwrap();
        assert_eq!((count.num_args(), program.kernel("turn").unwrap().num_args()), (1, 0));
        run(queue, &count, Some(&data));
        run(queue, &program.kernel("turn").unwrap(), None);
        assert_eq!(total(queue), 5 + 2 * 25, "{access}");
        let expected = Counters { hits: 3, misses: 1, best: 10.5, last: [0, 0, 10] };
        assert_eq!(content(queue, &STATS.on(queue).unwrap()), [expected], "{access}");
        assert_eq!(content(queue, &TABLE.on(queue).unwrap()), [5, 4, 3, 2, 1, 0], "{access}");

        let plain = program.kernel("plain").unwrap();
        assert_eq!(plain.num_args(), 1);
        run(queue, &plain, Some(&data));
        assert_eq!(bench.content(&data), [1, 2, 3, 4]);
    }
}

/// Rules G1, G2, G12: programs are built and dropped, with other options; the content and the address stay.
#[test]
fn all_programs_of_a_context_have_the_same_variable_as_long_as_the_context_lives() {
    let other = "
        CLG_DEVICE_GLOBAL(uint, t);
        kernel void where(global ulong *out CLG_PARAMS) { out[0] = (ulong)&CLG_GLOBAL(t); }
        kernel void scale(CLG_ONLY_PARAMS) { CLG_GLOBAL(t) *= BY; }";
    for access in accesses(&Bench::new().queue) {
        let bench = Bench::new();
        let queue = &bench.queue;
        let place = Buffer::<u64>::new(queue, 1).unwrap();
        let address = |program: &Program| {
            let kernel = program.kernel("where").unwrap();
            let mut launch = ExecuteKernel::new(&kernel);
            launch.set_arg(&place).set_global_work_size(1);
            // SAFETY: it writes one element.
            unsafe { launch.enqueue_nd_range(queue).unwrap() };
            let mut found = [0];
            queue.enqueue_read_buffer(&place, 0, &mut found, &[]).unwrap();
            found[0]
        };
        let first = program(queue, access);
        let data = Buffer::from_slice(queue, &[1, 2, 3]).unwrap();
        run(queue, &first.kernel("count").unwrap(), Some(&data));
        let before = address(&first);
        drop(first);
        for by in [3, 4] {
            let list =
                ProgramBuilder::new(queue).options(&format!("-DBY={by}")).global("t", &TOTAL).global_access(access);
            let second = list.source(other).unwrap();
            run(queue, &second.kernel("scale").unwrap(), None);
            assert_eq!(address(&second), before, "{access}");
        }
        assert_eq!(total(queue), (5 + 12) * 12, "{access}");
        assert_eq!(address(&program(queue, access)), before);

        // Another wrapper of the same context, and another context.
        let again = Queue::from_opencl3(&queue.to_opencl3().unwrap()).unwrap();
        assert_eq!(total(&again), (5 + 12) * 12);
        assert_eq!(total(&Bench::new().queue), 5);
    }
}

/// Rule G1: each device of a context has its own variable.
#[test]
fn each_device_of_a_context_has_its_own_variable() {
    let device = clgraph::best_device().unwrap();
    let Some(parts) = sub_devices(&device) else { return skip(Reason::NoSubDevices) };
    let ids: Vec<_> = parts.iter().map(opencl3::device::SubDevice::id).collect();
    // SAFETY: `parts` keeps them.
    let devices: Vec<_> = ids.iter().map(|id| unsafe { clgraph::Device::from_raw(*id).unwrap() }).collect();
    for access in device.caps().global_access() {
        let context = clgraph::Context::new(&devices).unwrap();
        let built = listing(&context, access).source(SOURCE);
        if access != GlobalAccess::Argument && device.caps().platform.starts_with("Portable") {
            assert_error!(
                built,
                GlobalError::Access { why, .. }
                    if why.contains("share variables of a program, so the only access is by a hidden argument"),
            );
            continue;
        }
        let queue = |at: usize| Queue::with_properties(&context, &devices[at], Default::default()).unwrap();
        let (a, b) = (queue(0), queue(1));
        let count = built.unwrap().kernel("count").unwrap();
        let data = Buffer::from_slice(&context, &[10]).unwrap();
        // By turns, so that the kernel's own object has to know its device.
        run(&a, &count, Some(&data));
        run(&b, &count, Some(&data));
        run(&a, &count, Some(&data));
        assert_eq!((total(&a), total(&b)), (45, 25), "{access}");
        for (queue, expected) in [(&a, 65), (&b, 45)] {
            let graph = Graph::new(queue).unwrap();
            // SAFETY: a work-item reads its own element, and uses the globals that the program lists.
            unsafe { graph.kernel(&count).read(&data).range(1).add().unwrap() };
            graph.finalize(Finalize::new()).unwrap().submit(queue).unwrap().wait().unwrap();
            assert_eq!(total(queue), expected, "{access}");
        }
    }
}

/// Rule G1: the initial value is there before the first use, whatever kind of use that is.
#[test]
fn the_first_use_finds_the_initial_value() {
    for access in accesses(&Bench::new().queue) {
        // A kernel.
        let bench = Bench::new();
        let data = bench.buffer(&[0; 2]);
        run(&bench.queue, &program(&bench.queue, access).kernel("load").unwrap(), Some(&data));
        assert_eq!(bench.content(&data), [5, 5], "{access}");
        // A kernel of a graph.
        let bench = Bench::new();
        let data = bench.buffer(&[0; 2]);
        let (graph, load) = (bench.graph(), program(&bench.queue, access).kernel("load").unwrap());
        // SAFETY: a work-item writes its own element.
        unsafe { graph.kernel(&load).write(&data).range(2).add().unwrap() };
        graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap().wait().unwrap();
        assert_eq!(bench.content(&data), [5, 5], "{access}");
    }
    // A copy when there is no program at all; a struct that starts as zero.
    let bench = Bench::new();
    assert_eq!(content(&bench.queue, &TABLE.on(&bench.queue).unwrap()), [1, 2, 3, 4, 5, 6]);
    assert_eq!(content(&bench.queue, &STATS.on(&bench.queue).unwrap()), [Counters::default()]);
    // A node.
    let graph = bench.graph();
    let read = graph.read(&TOTAL.on(&graph).unwrap()).add().unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
    run.wait().unwrap();
    assert_eq!(*run.get(&read).unwrap(), [5]);
}

/// Rules G3, G11: by elements and by bytes, typed and raw, from the host and from every kind of memory, after events.
#[test]
fn copies_go_by_elements_and_by_bytes() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let table = TABLE.on(queue).unwrap();
    assert_eq!((table.len(), table.size(), table.is_empty()), (6, 24, false));
    // Elements: a count and where to start.
    queue.enqueue_write_buffer(&table.slice(4..).unwrap(), 0, &[50, 60], &[]).unwrap();
    assert_eq!(content(queue, &table), [1, 2, 3, 4, 50, 60]);
    assert_eq!(content(queue, &table.slice(1..3).unwrap()), [2, 3]);
    // Bytes: a size and an offset.
    let bytes = table.bytes();
    assert_eq!(bytes.len(), 24);
    queue.enqueue_write_buffer(&bytes.slice(4..8).unwrap(), 0, &7_u32.to_ne_bytes(), &[]).unwrap();
    queue.enqueue_write_buffer(&table, 8, &[8], &[]).unwrap();
    assert_eq!(content(queue, &table), [1, 7, 8, 4, 50, 60]);
    // As a whole, and as another type.
    assert_eq!(content(queue, &TABLE.on_whole(queue).unwrap()), [[[1, 7], [8, 4], [50, 60]]]);
    assert_eq!(content(queue, &table.slice(2..).unwrap().cast::<u64>().unwrap()).len(), 2);
    queue.enqueue_fill_buffer(&table, &[9], 4, 8, &[]).unwrap();
    assert_eq!(content(queue, &table), [1, 9, 9, 4, 50, 60]);
    // From and to memory of every kind, without blocking, after a gate and after each other.
    for kind in MemoryKind::ALL.into_iter().filter(|kind| queue.device().caps().has_memory(*kind)) {
        let memory = Memory::<i32>::with_kind(queue, kind, 6).unwrap();
        queue.enqueue_write_buffer(&memory, 0, &[10, 20, 30, 40, 50, 60], &[]).unwrap();
        let cleared = queue.enqueue_fill_buffer(&table, &[0], 0, 24, &[]).unwrap();
        let gate = UserEvent::new(queue);
        let opened = Event::from_opencl3(&gate.0).unwrap();
        let out = bench.another_queue(true);
        let into = out.enqueue_copy_buffer(&memory, &table, 4, 8, 12, &[&opened, &cleared]).unwrap();
        let back = out.enqueue_copy_buffer(&table, &memory, 8, 0, 8, &[&into, &opened]).unwrap();
        gate.set(0);
        back.wait().unwrap();
        assert_eq!(content(queue, &table), [0, 0, 20, 30, 40, 0], "{kind}");
        let mut now = [0; 6];
        queue.enqueue_read_buffer(&memory, 0, &mut now, &[]).unwrap();
        assert_eq!(now, [20, 30, 30, 40, 50, 60], "{kind}");
    }
    // Nothing.
    let none = table.slice(6..).unwrap();
    assert!(none.is_empty() && table.slice(2..2).unwrap().is_empty());
    queue.enqueue_copy_buffer(&none, &table.slice(1..1).unwrap(), 0, 0, 0, &[]).unwrap().wait().unwrap();
    queue.enqueue_write_buffer(&none, 0, &[], &[]).unwrap();
    let graph = bench.graph();
    graph.copy(&none, &table.slice(3..3).unwrap()).add().unwrap();
    graph.finalize(Finalize::new()).unwrap().submit(queue).unwrap().wait().unwrap();
    assert_eq!(content(queue, &table), [0, 0, 20, 30, 40, 0]);
}

/// Rule G3: beyond the end by count, by start, and by a sum that overflows.
#[test]
fn a_copy_beyond_the_end_is_invalid_and_touches_nothing() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let table = TABLE.on(queue).unwrap();
    // The length that the error tells: elements of a slice, bytes of a command.
    let outside = |error: Error| match error {
        Error::Memory(MemoryError::OutOfBounds { len, .. }) => len as u64,
        Error::Build(error) => match *error.cause {
            BuildCause::OutOfBounds { len, .. } => len,
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    };
    for range in [0..7, 6..7, 7..7, 5..usize::MAX, usize::MAX - 1..usize::MAX] {
        assert_eq!(outside(table.slice(range).unwrap_err()), 6);
    }
    assert_eq!(outside(table.slice(0..=usize::MAX).unwrap_err()), 6);
    assert_eq!(outside(table.bytes().slice(24..25).unwrap_err()), 24);
    for (offset, data) in [(0, vec![1; 7]), (4, vec![1; 6]), (24, vec![1]), (usize::MAX - 3, vec![1])] {
        assert_eq!(outside(queue.enqueue_write_buffer(&table, offset, &data, &[]).unwrap_err()), 24);
        assert_eq!(outside(queue.enqueue_write_buffer_owned(&table, offset, data.clone(), &[]).unwrap_err()), 24);
        assert_eq!(outside(queue.enqueue_read_buffer(&table, offset, &mut data.clone(), &[]).unwrap_err()), 24);
        assert_eq!(outside(queue.enqueue_read_buffer_owned(&table, offset, data.len(), &[]).unwrap_err()), 24);
    }
    let memory = Memory::<i32>::new(queue, 6).unwrap();
    for (from, to, size) in [(0, 4, 24), (4, 0, 24), (0, usize::MAX, 4), (0, 24, 1), (8, 8, usize::MAX)] {
        assert_eq!(outside(queue.enqueue_copy_buffer(&memory, &table, from, to, size, &[]).unwrap_err()), 24);
        assert_eq!(outside(queue.enqueue_copy_buffer(&table, &memory, from, to, size, &[]).unwrap_err()), 24);
    }
    assert_eq!(outside(queue.enqueue_fill_buffer(&table, &[1], 8, 20, &[]).unwrap_err()), 24);
    let graph = bench.graph();
    assert_error!(
        graph.write(&table, vec![0; 7]).add(),
        BuildCause::SizeMismatch { left: "the data", left_bytes: 28, right: "the destination", right_bytes: 24 },
    );
    assert_eq!(graph.nodes().len(), 0);
    assert!(matches!(table.cast::<[u8; 5]>(), Err(Error::Memory(MemoryError::ElementSize { .. }))));
    let odd = table.bytes().slice(1..5).unwrap();
    assert!(matches!(odd.cast::<u32>(), Err(Error::Memory(MemoryError::ElementAlign { .. }))));
    assert_eq!(content(queue, &table), [1, 2, 3, 4, 5, 6]);
}

/// Rules G6, G7, G14: as constants, and as types.
#[test]
fn properties_are_known_at_compile_time() {
    device_global! {
        #[host_access(read)]
        static READ: u32 = 1;
        /// With documentation.
        #[host_access(write)]
        #[init_mode(reprogram)]
        static WRITE: u32;
        #[allow(dead_code)]
        #[implement_in_csr]
        #[host_access(none)]
        static NONE: u32;
        #[device_image_scope]
        #[init_mode(reset)]
        #[implement_in_csr(false)]
        #[host_access(read_write)]
        static OWN: [u64; 2] = [1, 2];
        static LIKE: u32 = READ.initial();
    }
    const ACCESS: HostAccess = READ.host_access();
    const _: () = assert!(OWN.is_device_image_scope() && !READ.is_device_image_scope());
    assert_eq!(ACCESS, HostAccess::Read);
    assert_eq!((WRITE.host_access(), NONE.host_access()), (HostAccess::Write, HostAccess::None));
    assert_eq!((OWN.host_access(), TOTAL.host_access()), (HostAccess::ReadWrite, HostAccess::ReadWrite));
    assert_eq!((WRITE.init_mode(), OWN.init_mode()), (Some(InitMode::Reprogram), Some(InitMode::Reset)));
    assert_eq!((READ.init_mode(), READ.implement_in_csr()), (None, None));
    assert_eq!((NONE.implement_in_csr(), OWN.implement_in_csr()), (Some(true), Some(false)));
    assert_eq!((LIKE.initial(), LIKE.size(), OWN.size()), (1, 4, 16));
    let _: &DeviceGlobal<[u64; 2], host_access::ReadWrite, scope::DeviceImage> = &OWN;
    assert_eq!(format!("{READ:?}"), "DeviceGlobal(device_globals::READ: u32)");

    // What each allows.
    let bench = Bench::new();
    let (read, write) = (READ.on(&bench.queue).unwrap(), WRITE.on(&bench.queue).unwrap());
    bench.queue.enqueue_copy_buffer(&read, &write, 0, 0, 4, &[]).unwrap();
    assert_eq!(content(&bench.queue, &read), [1]);
    // The device may do both.
    let source = "CLG_DEVICE_GLOBAL(uint, a); CLG_DEVICE_GLOBAL(uint, b);
        kernel void f(CLG_ONLY_PARAMS) { CLG_GLOBAL(a) += CLG_GLOBAL(b) + 1; }";
    let list = ProgramBuilder::new(&bench.queue).global("a", &READ).global("b", &WRITE);
    run(&bench.queue, &list.source(source).unwrap().kernel("f").unwrap(), None);
    assert_eq!(content(&bench.queue, &read), [3]);
}

/// Rules G9, D1: built and recorded, on each path, ordered with the kernels by the data.
#[test]
fn copies_of_globals_are_nodes_and_the_data_orders_them() {
    for access in accesses(&Bench::new().queue) {
        for path in [Path::Replay, Path::Native, Path::Auto] {
            for recorded in [false, true] {
                let bench = Bench::new();
                let queue = &bench.queue;
                let program = program(queue, access);
                let (step, load) = (program.kernel("advance").unwrap(), program.kernel("load").unwrap());
                let data = bench.buffer(&[4]);
                let (out, graph) = (bench.buffer(&[0; 3]), bench.graph());
                let place = TOTAL.on(&graph).unwrap();
                // total = 10; total = total * 3 + 4; out = total; total -> data; total = 7; the result is total.
                let result = if recorded {
                    let recorder = bench.another_queue(true);
                    let pending = graph.record(&recorder, || {
                        recorder.enqueue_write_buffer_owned(&place, 0, vec![10], &[])?;
                        // SAFETY: one work-item, one element.
                        unsafe {
                            let mut launch = ExecuteKernel::new(&step);
                            launch
                                .set_arg(&data)
                                .set_arg(&3_u32)
                                .set_global_work_size(1)
                                .enqueue_nd_range(&recorder)?;
                            let mut launch = ExecuteKernel::new(&load);
                            launch.set_arg(&out).set_global_work_size(3).enqueue_nd_range(&recorder)?;
                        }
                        recorder.enqueue_copy_buffer(&place, &data, 0, 0, 4, &[])?;
                        recorder.enqueue_fill_buffer(&place, &[7], 0, 4, &[])?;
                        recorder.enqueue_read_buffer_owned(&place, 0, 1, &[])
                    });
                    pending.unwrap().host_read().unwrap()
                } else {
                    graph.write(&place, [10]).add().unwrap();
                    // SAFETY: as above.
                    unsafe {
                        graph.kernel(&step).read(&data).arg(3_u32).range(1).add().unwrap();
                        graph.kernel(&load).write(&out).range(3).add().unwrap();
                    }
                    graph.copy(&place, &data).add().unwrap();
                    graph.fill(&place, 7).add().unwrap();
                    graph.read(&place).add().unwrap()
                };
                let nodes = graph.nodes();
                let before = |node: usize| graph.predecessors(nodes[node]).unwrap();
                assert_eq!(before(1), [nodes[0]]);
                assert_eq!(before(2), [nodes[1]]);
                assert!(before(3).contains(&nodes[2]) && before(4).contains(&nodes[3]), "{access}");
                let executable = graph.finalize(Finalize::new().path(path)).unwrap();
                for _ in 0..3 {
                    queue.enqueue_write_buffer(&data, 0, &[4], &[]).unwrap();
                    let run = executable.submit(queue).unwrap();
                    run.wait().unwrap();
                    assert_eq!(*run.get(&result).unwrap(), [7], "{access} {path}");
                    assert_eq!((bench.content(&out), bench.content(&data)), (vec![34; 3], vec![34]), "{access} {path}");
                }
            }
        }
    }
}

/// Rules G3, G9, I5: from and to memory of every kind, in parts, by rectangles, and as raw bytes; and ranges beyond the
/// end.
#[test]
fn every_copy_of_a_global_can_be_a_node() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let table = TABLE.on(queue).unwrap();
    for kind in MemoryKind::ALL.into_iter().filter(|kind| queue.device().caps().has_memory(*kind)) {
        for path in [Path::Replay, Path::Native] {
            let memory = Memory::<i32>::with_kind(queue, kind, 6).unwrap();
            let graph = bench.graph();
            graph.write(&memory, vec![10, 20, 30, 40, 50, 60]).add().unwrap();
            graph.fill(&table, 0).add().unwrap();
            graph.copy(&memory, &table).add().unwrap();
            graph.fill(&table.slice(1..3).unwrap(), 7).add().unwrap();
            graph.write(&table.bytes().slice(20..).unwrap(), 8_i32.to_ne_bytes()).add().unwrap();
            let whole = graph.read(&table).add().unwrap();
            // The second column becomes the first.
            let rect = graph.copy_rect(&table, &memory).region([1, 3, 1]).src_origin([1, 0, 0]);
            rect.src_pitch(2, 0).dst_pitch(2, 0).add().unwrap();
            let back = graph.read(&memory).add().unwrap();
            let run = graph.finalize(Finalize::new().path(path)).unwrap().submit(queue).unwrap();
            run.wait().unwrap();
            assert_eq!(*run.get(&whole).unwrap(), [10, 7, 7, 40, 50, 8], "{kind} {path}");
            assert_eq!(*run.get(&back).unwrap(), [7, 20, 40, 40, 8, 60], "{kind} {path}");
        }
    }
    let (memory, graph) = (Memory::<i32>::new(queue, 5).unwrap(), bench.graph());
    for refused in [
        graph.copy(&memory, &table).add().map(drop),
        graph.copy(&table, &memory).add().map(drop),
        graph.copy_rect(&table, &memory).region([6, 2, 1]).add().map(drop),
        graph.write(&table.slice(1..).unwrap(), vec![0; 6]).add().map(drop),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }
    assert_eq!(graph.nodes().len(), 0);
}

/// Rule G16
#[test]
fn a_node_may_say_which_globals_it_uses_and_how() {
    for access in accesses(&Bench::new().queue) {
        let bench = Bench::new();
        let queue = &bench.queue;
        let program = program(queue, access);
        let (load, plain) = (program.kernel("load").unwrap(), program.kernel("plain").unwrap());
        let graph = bench.graph();
        let edges = |a, b| graph.successors(a).unwrap().contains(&b);
        let out: Vec<_> = (0..6).map(|_| bench.buffer(&[0; 2])).collect();
        // SAFETY: a work-item writes its own element; `load` reads TOTAL, and `plain` uses no global.
        let (all, reads, too, none, table) = unsafe {
            let all = graph.kernel(&load).write(&out[0]).range(2).add().unwrap();
            let reads = graph.kernel(&load).write(&out[1]).global_read(&TOTAL).range(2).add().unwrap();
            let too = graph.kernel(&load).write(&out[2]).global_read(&TOTAL).range(2).add().unwrap();
            let none = graph.kernel(&plain).write(&out[3]).no_globals().range(2).add().unwrap();
            let table = graph.kernel(&plain).write(&out[4]).global_write(&TABLE).range(2).add().unwrap();
            (all, reads, too, none, table)
        };
        let total = graph.fill(&TOTAL.on(queue).unwrap(), 9).add().unwrap();
        let cells = graph.fill(&TABLE.on(queue).unwrap().slice(2..).unwrap(), 9).add().unwrap();
        assert!(edges(all, reads) && edges(all, too) && !edges(reads, too), "unstated is read and write");
        assert_eq!((graph.predecessors(none).unwrap().len(), graph.successors(none).unwrap().len()), (0, 0));
        assert!(edges(all, table) && !edges(reads, table));
        assert!(edges(reads, total) && edges(too, total) && !edges(table, total));
        assert!(edges(table, cells) && !edges(reads, cells));
        // Recorded.
        let recorder = bench.another_queue(true);
        let (a, b) = graph
            .record(&recorder, || {
                // SAFETY: as above.
                unsafe {
                    let mut launch = ExecuteKernel::new(&load);
                    let a = launch
                        .set_arg(&out[5])
                        .set_global_read(&TOTAL)
                        .set_global_work_size(2)
                        .enqueue_nd_range(&recorder)?;
                    let mut launch = ExecuteKernel::new(&plain);
                    let b =
                        launch.set_arg(&out[3]).set_no_globals().set_global_work_size(2).enqueue_nd_range(&recorder)?;
                    Ok((graph.node_of(&a)?, graph.node_of(&b)?))
                }
            })
            .unwrap();
        assert!(edges(total, a) && !edges(cells, a) && edges(none, b) && !edges(a, b));
        graph.finalize(Finalize::new()).unwrap().submit(queue).unwrap().wait().unwrap();
        assert_eq!((bench.content(&out[1]), bench.content(&out[5])), (vec![5; 2], vec![9; 2]));

        // A global that its program does not list.
        let has = "`device_globals::TOTAL`, `device_globals::STATS`, `device_globals::TABLE`".to_owned();
        let not_listed = BuildCause::Global(GlobalError::NotListed { name: "device_globals::other::TOTAL", has });
        // SAFETY: it is refused.
        let error = unsafe { graph.kernel(&load).write(&out[0]).global_read(&other::TOTAL).range(2).add() };
        assert_error!(
            error,
            BuildError { subject, cause, .. } if subject == "kernel `load` (to be node 9)" && **cause == not_listed,
        );
        let kernel = bench.kernel("scale");
        let mut launch = ExecuteKernel::new(&kernel);
        launch.set_arg(&out[0]).set_arg(&out[1]).set_arg(&1_u32).set_global_read_write(&TOTAL).set_global_work_size(1);
        // SAFETY: as above.
        let launched = unsafe { launch.enqueue_nd_range(queue) };
        assert_error!(
            launched,
            BuildCause::Global(GlobalError::NotListed { name: "device_globals::TOTAL", has }) if has == "none",
        );
    }
}

/// Rules G10, G15: two variables with one name in different modules, in one program.
#[test]
fn names_in_modules_and_names_in_c_are_apart() {
    let source = "CLG_DEVICE_GLOBAL(uint, small); CLG_DEVICE_GLOBAL(ulong, large);
        kernel void f(CLG_ONLY_PARAMS) { CLG_GLOBAL(large) += CLG_GLOBAL(small)++; }";
    for access in accesses(&Bench::new().queue) {
        let bench = Bench::new();
        let list = ProgramBuilder::new(&bench.queue).global("small", &TOTAL).global("large", &other::TOTAL);
        let program = list.global_access(access).source(source).unwrap();
        run(&bench.queue, &program.kernel("f").unwrap(), None);
        assert_eq!(total(&bench.queue), 6);
        assert_eq!(content(&bench.queue, &other::TOTAL.on(&bench.queue).unwrap()), [82]);
    }
}

/// Rule G13
#[test]
fn a_global_may_be_declared_in_several_sources_of_a_program() {
    let first = "CLG_DEVICE_GLOBAL(uint, total);
        void bump(uint by CLG_PARAMS) { CLG_GLOBAL(total) += by; }";
    let second = "CLG_DEVICE_GLOBAL(uint, total);
        void bump(uint by CLG_PARAMS);
        kernel void twice(CLG_ONLY_PARAMS) { bump(CLG_GLOBAL(total) CLG_ARGS); }";
    for access in accesses(&Bench::new().queue) {
        let bench = Bench::new();
        let list = || ProgramBuilder::new(&bench.queue).global("total", &TOTAL).global_access(access);
        let program = list().sources(&[first, second]).unwrap();
        run(&bench.queue, &program.kernel("twice").unwrap(), None);
        assert_eq!(total(&bench.queue), 10, "{access}");
        let built = list().sources(&[first, "kernel void f() {\n  nothing;\n}"]);
        assert_error!(built, ProgramError::BuildFailed { log, .. } if log.contains("nothing"));
    }
}

/// Rule G12: a kernel reads what another kernel has stored.
#[test]
fn an_address_that_a_kernel_stores_serves_others_that_list_no_global() {
    let source = "kernel void follow(global const ulong *at, global uint *out) {
        out[0] = *(global uint *)at[0]; *(global uint *)at[0] = 99; }";
    for access in accesses(&Bench::new().queue) {
        for path in [Path::Replay, Path::Auto] {
            let bench = Bench::new();
            let queue = &bench.queue;
            let (program, graph) = (program(queue, access), bench.graph());
            let follow = Program::from_source(queue, source).unwrap().kernel("follow").unwrap();
            let (at, out) = (Buffer::<u64>::new(queue, 1).unwrap(), bench.buffer(&[0]));
            let place = TOTAL.on(queue).unwrap();
            if !place.kind().is_pointer() {
                continue;
            }
            // SAFETY: each writes its one element, and follows the address of the global.
            unsafe {
                graph.kernel(&program.kernel("where").unwrap()).write(&at).range(1).add().unwrap();
                graph.kernel(&follow).read(&at).write(&out).indirect(&place).range(1).add().unwrap();
            }
            graph.finalize(Finalize::new().path(path)).unwrap().submit(queue).unwrap().wait().unwrap();
            assert_eq!((bench.content(&out), total(queue)), (vec![5], 99), "{access}");
            // A global can also be given where a kernel takes a pointer.
            // SAFETY: a work-item of its own for each of the two elements.
            unsafe {
                let graph = bench.graph();
                let table = TABLE.on(queue).unwrap().slice(2..4).unwrap().cast::<u32>().unwrap();
                graph.kernel(&program.kernel("plain").unwrap()).write(&table).no_globals().range(2).add().unwrap();
                graph.finalize(Finalize::new().path(path)).unwrap().submit(queue).unwrap().wait().unwrap();
            }
            assert_eq!(content(queue, &TABLE.on(queue).unwrap()), [1, 2, 1, 2, 5, 6], "{access}");
        }
    }
}

/// Rules U2, P1: hidden arguments and pointers stay when others change.
#[test]
fn updates_leave_the_globals_of_a_kernel_as_they_are() {
    for access in accesses(&Bench::new().queue) {
        for path in [Path::Replay, Path::Native, Path::Auto] {
            let bench = Bench::new();
            let queue = &bench.queue;
            let (program, graph) = (program(queue, access), bench.graph());
            let by = Parameter::within(2_u32, 1..=9).unwrap();
            let (one, other) = (bench.buffer(&[1]), bench.buffer(&[50]));
            let data = Parameter::buffer(&one);
            let step = program.kernel("advance").unwrap();
            // SAFETY: one work-item reads one element, and uses the global.
            let node = unsafe { graph.kernel(&step).read(&data).arg(&by).range(1).range_up_to(1).add().unwrap() };
            let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
            let go = || {
                set_total(queue, 10);
                executable.submit(queue).unwrap().wait().unwrap();
                total(queue)
            };
            assert_eq!(go(), 21);
            by.set(4).unwrap();
            executable.update(&[node]).unwrap();
            assert_eq!(go(), 41, "{access} {path}");
            data.set(&other).unwrap();
            executable.update(&[node]).unwrap();
            assert_eq!(go(), 90, "{access} {path}");
            // From a graph of another program, and of the same one.
            let from = |program: &Program| {
                let graph = bench.graph();
                let step = program.kernel("advance").unwrap();
                // SAFETY: as above.
                unsafe { graph.kernel(&step).read(&other).arg(7_u32).range(1).add().unwrap() };
                graph
            };
            executable.update_from(&from(&program)).unwrap();
            assert_eq!(go(), 120, "{access} {path}");
            executable.update_from(&from(&self::program(queue, access))).unwrap_err();
            assert_eq!(go(), 120, "{access} {path}");
        }
    }
}

/// Rules C2, N1: in command groups and sub-graphs.
#[test]
fn globals_count_in_groups_and_sub_graphs() {
    for access in accesses(&Bench::new().queue) {
        let bench = Bench::new();
        let queue = &bench.queue;
        let (program, graph) = (program(queue, access), bench.graph());
        let step = program.kernel("advance").unwrap();
        let data = bench.buffer(&[1]);
        // SAFETY: one work-item reads one element, and uses the global.
        let group = unsafe {
            let launch = |by: u32| graph.kernel(&step).read(&data).arg(by).global_read_write(&TOTAL).range(1);
            let error = graph.command_group([launch(2), launch(3).global_read(&TABLE)]).unwrap_err();
            assert_error!(&error, BuildCause::Group(GroupError::Accesses { what: "launch" }));
            graph.command_group([launch(2), launch(3)]).unwrap()
        };
        let before = graph.write(&TOTAL.on(queue).unwrap(), [10]).add().unwrap();
        let node = graph.command_group_node(&group).add().unwrap();
        let after = graph.read(&TOTAL.on(queue).unwrap()).add().unwrap();
        assert_eq!(graph.predecessors(node).unwrap(), [before.node()]);
        assert_eq!(graph.predecessors(after.node()).unwrap(), [node]);
        let executable = graph.finalize(Finalize::new().updatable()).unwrap();
        let parent = bench.graph();
        let (first, second) = (parent.sub_graph(&executable).add().unwrap(), parent.empty().add().unwrap());
        let outside = parent.fill(&TOTAL.on(queue).unwrap(), 3).add().unwrap();
        assert_eq!(parent.predecessors(outside).unwrap(), [first.node()]);
        assert!(parent.predecessors(second).unwrap().is_empty());
        parent.finalize(Finalize::new()).unwrap().submit(queue).unwrap().wait().unwrap();
        assert_eq!(total(queue), 3);
        group.set_active_index(1).unwrap();
        executable.update(&[node]).unwrap();
        let run = executable.submit(queue).unwrap();
        run.wait().unwrap();
        assert_eq!(*run.get(&after).unwrap(), [31], "{access}");
    }
}

/// Rule G8: the report and the drawing name the access.
#[test]
fn the_report_tells_how_kernels_get_to_globals() {
    let bench = Bench::new();
    for access in accesses(&bench.queue) {
        let (program, graph) = (program(&bench.queue, access), bench.graph());
        let data = bench.buffer(&[1]);
        // SAFETY: one work-item reads one element, and uses the global.
        unsafe { graph.kernel(&program.kernel("advance").unwrap()).read(&data).arg(2_u32).range(1).add().unwrap() };
        let executable = graph.finalize(Finalize::new()).unwrap();
        let report = executable.report();
        assert_eq!(report.globals, program.globals());
        let kind = bench.queue.device().caps();
        let kind = [MemoryKind::UsmDevice, MemoryKind::SvmCoarse].into_iter().find(|its| kind.has_memory(*its));
        let line = format!(
            "global     `total` is device_globals::TOTAL (4 bytes): {}, by {access}\n",
            kind.unwrap_or(MemoryKind::Buffer)
        );
        assert!(report.to_string().contains(&line), "{report}");
        let drawing = graph.to_dot(clgraph::DrawingDetail::Verbose);
        assert!(drawing.contains("device global read-write "), "{drawing}");
    }
}

/// Rule I2: a binary of a program can be loaded again, or the error says why not.
#[test]
fn binaries_work_where_an_access_exists_and_are_refused_clearly_elsewhere() {
    for access in accesses(&Bench::new().queue) {
        let bench = Bench::new();
        let queue = &bench.queue;
        let binary = program(queue, access).binary(queue.device()).unwrap();
        // In another order.
        let list = ProgramBuilder::new(queue).global("table", &TABLE).global("total", &TOTAL).global("stats", &STATS);
        // SAFETY: this binary and those below are the driver's own.
        let loaded = unsafe { list.global_access(access).binary(&binary) }.unwrap();
        match loaded.kernel("count") {
            Ok(count) => {
                assert_eq!(count.num_args(), 1);
                let data = bench.buffer(&[1, 2]);
                run(queue, &count, Some(&data));
                assert_eq!(total(queue), 5 + 6, "{access}");
            }
            Err(error) => {
                assert_eq!((access, error.kind()), (GlobalAccess::Argument, ErrorKind::KernelNotSupported));
                assert_error!(
                    error,
                    GlobalError::HiddenArguments { kernel, source }
                        if kernel == "count" && *source == DriverError::new("clGetKernelArgInfo", Status(-19)),
                );
            }
        }
        // A binary without globals, and a binary with other globals.
        let plain = bench.program.binary(queue.device()).unwrap();
        let less = ProgramBuilder::new(queue).global("total", &TOTAL).global_access(access);
        // SAFETY: as above.
        for loaded in unsafe { [listing(queue, access).binary(&plain), less.binary(&binary)] } {
            assert_eq!(loaded.as_ref().unwrap_err().kind(), ErrorKind::KernelNotSupported);
            assert_error!(
                loaded,
                GlobalError::NotInProgram { names, access: given } if names.starts_with("`total`") && *given == access,
            );
        }
        // A binary for another access: a pointer would never be set.
        for other in accesses(queue).into_iter().filter(|other| *other != access) {
            // SAFETY: as above.
            let loaded = unsafe { listing(queue, other).binary(&binary) };
            let alike = access != GlobalAccess::Argument && other != GlobalAccess::Argument;
            assert_eq!(loaded.is_ok(), alike, "{access}, {other}");
        }
    }
}

/// Rule I1: raw handles of a program with globals are that program.
#[test]
fn a_raw_handle_is_the_program_that_it_was_taken_from() {
    for access in accesses(&Bench::new().queue) {
        let bench = Bench::new();
        let queue = &bench.queue;
        let program = program(queue, access);
        let object = program.kernel("advance").unwrap().to_opencl3().unwrap();
        // SAFETY: a live program.
        let again = unsafe { Program::from_raw(queue, program.raw()).unwrap() };
        assert_eq!(again.globals(), program.globals());
        // Both in one graph, in either order.
        let (graph, data) = (bench.graph(), bench.buffer(&[1]));
        let kernel = Kernel::from_opencl3(queue, &object).unwrap();
        assert_eq!((kernel.num_args(), &kernel), (2, &again.kernel("advance").unwrap()));
        // SAFETY: one work-item reads one element, and uses the global.
        unsafe {
            graph.kernel(&kernel).read(&data).arg(2_u32).range(1).add().unwrap();
            graph.kernel(&program.kernel("advance").unwrap()).read(&data).arg(3_u32).range(1).add().unwrap();
        }
        graph.finalize(Finalize::new()).unwrap().submit(queue).unwrap().wait().unwrap();
        assert_eq!(total(queue), 34, "{access}");
        // A plain launch of the object.
        let plain = common::plain_queue(queue);
        let (buffer, size, null) = (data.raw(), 1_usize, std::ptr::null());
        // SAFETY: as above; the program lives.
        unsafe {
            object.set_arg(0, &buffer).unwrap();
            object.set_arg(1, &10_u32).unwrap();
            plain.enqueue_nd_range_kernel(object.get(), 1, null, &raw const size, null, &[]).unwrap();
        }
        plain.finish().unwrap();
        assert_eq!(total(queue), 341, "{access}");
        // After the program is gone, its variables are gone.
        let raw = program.raw();
        // SAFETY: a live program, which the object keeps.
        let raw = unsafe {
            drop((graph, kernel, again, program));
            Program::from_raw(queue, raw)
        };
        // Intel's CPU runtime no longer knows a program that only kernels keep.
        if queue.device().caps().platform == "Intel(R) OpenCL" {
            assert_eq!(raw.unwrap_err().driver_error().map(|error| error.status), Some(Status(-44)));
        } else {
            assert_error!(raw, GlobalError::ProgramGone);
        }
    }
}

/// Rules G2, I2: SPIR-V that was made of the same source elsewhere, with and without a specialization constant.
#[test]
fn spir_v_works_where_it_is_accepted_and_has_what_the_access_needs() {
    const POINTER: &[u8] = include_bytes!("../kernels-cl/ticks_pointer.spv");
    const ARGUMENT: &[u8] = include_bytes!("../kernels-cl/ticks_argument.spv");
    let takes = !Bench::new().queue.device().caps().il_versions.is_empty();
    for access in accesses(&Bench::new().queue) {
        let bench = Bench::new();
        let queue = &bench.queue;
        let list = || ProgramBuilder::new(queue).global("total", &TOTAL).global_access(access);
        let (right, wrong) = if access == GlobalAccess::Argument { (ARGUMENT, POINTER) } else { (POINTER, ARGUMENT) };
        // SAFETY: all of these are valid modules.
        let loaded = unsafe { list().il(right) };
        if !takes {
            assert_eq!(loaded.unwrap_err().kind(), ErrorKind::FeatureNotSupported);
            continue;
        }
        match loaded.unwrap().kernel("tick") {
            Ok(tick) => {
                assert_eq!(tick.num_args(), 2);
                let (out, graph) = (bench.buffer(&[0]), bench.graph());
                // SAFETY: one work-item writes one element, and uses the global.
                unsafe { graph.kernel(&tick).write(&out).arg(3_u32).range(1).add().unwrap() };
                let executable = graph.finalize(Finalize::new()).unwrap();
                executable.submit(queue).unwrap().wait().unwrap();
                executable.submit(queue).unwrap().wait().unwrap();
                assert_eq!((bench.content(&out), total(queue)), (vec![11], 11), "{access}");
                // Another specialization constant is another program, with the same variable.
                let device = queue.device().caps();
                if access != GlobalAccess::Argument && device.version >= clgraph::Version::new(2, 2) {
                    // SAFETY: as above.
                    let program = unsafe { list().specialize(7, 10_u32).il(right) }.unwrap();
                    let tick = program.kernel("tick").unwrap();
                    let mut launch = ExecuteKernel::new(&tick);
                    launch.set_arg(&out).set_arg(&3_u32).set_global_work_size(1);
                    // SAFETY: as above.
                    unsafe { launch.enqueue_nd_range(queue).unwrap() };
                    assert_eq!((bench.content(&out), total(queue)), (vec![41], 41), "{access}");
                }
            }
            Err(error) => {
                assert_eq!((access, error.kind()), (GlobalAccess::Argument, ErrorKind::KernelNotSupported), "{error}");
            }
        }
        // Made for another access. (A compiler may refuse variables altogether.)
        // SAFETY: as above.
        match unsafe { list().il(wrong) } {
            Err(Error::Program(ProgramError::BuildFailed { .. })) => assert_eq!(access, GlobalAccess::Argument),
            refused => assert_eq!(refused.unwrap_err().kind(), ErrorKind::KernelNotSupported, "{access}"),
        }
    }
}
