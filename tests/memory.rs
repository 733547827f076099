//! USM, SVM and buffers as one type of memory: in graphs, on queues, and from the host.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use clgraph::{
    Buffer, BuildCause, CommandKind, Error, ErrorKind, Event, ExecuteKernel, ExecutionStatus, Finalize, Graph, MapMode,
    MapRead, MapWrite, MapWriteInvalidate, Mapped, Memory, MemoryError, MemoryKind, MemorySlice, Node, NodeKind,
    Parameter, ParameterError, Path, PathReason, Program, Queue, RecordError, SetupError,
};
use common::{Bench, Reason, UserEvent, assert_error, elsewhere, skip};

/// Elements of a part: sub-buffers may start at its multiples on every known device. Buffers have four parts.
const PART: usize = 128;
const LEN: usize = 4 * PART;

/// The kinds of memory that the device has.
fn kinds(queue: &Queue) -> impl Iterator<Item = MemoryKind> + use<> {
    let caps = queue.device().caps().clone();
    MemoryKind::ALL.into_iter().filter(move |kind| caps.has_memory(*kind))
}

fn memory(bench: &Bench, kind: MemoryKind, data: &[u32]) -> Memory<u32> {
    let memory = Memory::with_kind(&bench.queue, kind, data.len()).unwrap();
    bench.queue.enqueue_write_buffer(&memory, 0, data, &[]).unwrap();
    memory
}

fn content(queue: &Queue, memory: &Memory<u32>) -> Vec<u32> {
    let mut data = vec![0; memory.len()];
    queue.enqueue_read_buffer(memory, 0, &mut data, &[]).unwrap();
    data
}

/// Returns memory that the host reaches by address.
fn shared(bench: &Bench) -> Option<Memory<u32>> {
    match Memory::host_accessible(&bench.queue, LEN) {
        Ok(memory) => Some(memory),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::FeatureNotSupported);
            skip(Reason::NoSharedMemory);
            None
        }
    }
}

fn numbers(from: u32) -> Vec<u32> {
    (from..from + LEN as u32).collect()
}

fn event_of(gate: &UserEvent) -> Event {
    Event::from_opencl3(&gate.0).unwrap()
}

/// `out[i] = in[i] * 3 + by` over a part.
fn scale(graph: &Graph, bench: &Bench, from: &Memory<u32>, into: &Memory<u32>, by: u32) -> Node {
    let (from, into) = (from.slice(PART..3 * PART).unwrap(), into.slice(PART..3 * PART).unwrap());
    // SAFETY: a work-item touches its own element of each range.
    unsafe { graph.kernel(&bench.kernel("scale")).read(&from).write(&into).arg(by).range(2 * PART).add().unwrap() }
}

/// Rules B2, D2, I3: every kind of memory in every command, on each path, built and recorded.
#[test]
fn every_kind_of_memory_works_in_every_command_on_each_path() {
    let bench = Bench::new();
    for kind in kinds(&bench.queue) {
        for path in [Path::Replay, Path::Native, Path::Auto] {
            for recorded in [false, true] {
                let (a, b) = (memory(&bench, kind, &numbers(0)), memory(&bench, kind, &[7; LEN]));
                assert_eq!((a.kind(), a.len(), a.size()), (kind, LEN, LEN * 4));
                let graph = bench.graph();
                let queue = &bench.queue;
                let result = if recorded {
                    let read = graph.record(queue, || {
                        queue.enqueue_write_buffer_owned(&a, 0, numbers(100), &[])?;
                        let kernel = bench.kernel("scale");
                        let mut launch = ExecuteKernel::new(&kernel);
                        launch.set_arg(&a.slice(PART..3 * PART)?).set_arg(&b.slice(PART..3 * PART)?).set_arg(&1_u32);
                        // SAFETY: a work-item touches its own element of each range.
                        unsafe { launch.set_global_work_size(2 * PART).enqueue_nd_range(queue)? };
                        queue.enqueue_copy_buffer(&b, &a, PART * 4, 0, PART * 4, &[])?;
                        queue.enqueue_fill_buffer(&b.slice(3 * PART..)?, &[9], 0, PART * 4, &[])?;
                        queue.enqueue_copy_buffer(&a.slice(..PART)?, &b.slice(..PART)?, 0, 0, PART * 4, &[])?;
                        queue.enqueue_read_buffer_owned(&b, 0, LEN, &[])
                    });
                    read.unwrap().host_read().unwrap()
                } else {
                    graph.write(&a, numbers(100)).add().unwrap();
                    scale(&graph, &bench, &a, &b, 1);
                    graph.copy(&b.slice(PART..2 * PART).unwrap(), &a.slice(..PART).unwrap()).add().unwrap();
                    graph.fill(&b.slice(3 * PART..).unwrap(), 9).add().unwrap();
                    graph.copy(&a.slice(..PART).unwrap(), &b.slice(..PART).unwrap()).add().unwrap();
                    graph.read(&b).add().unwrap()
                };
                let executable = graph.finalize(Finalize::new().path(path)).unwrap();
                let mut expected = vec![7; LEN];
                (PART..3 * PART).for_each(|at| expected[at] = (100 + at as u32) * 3 + 1);
                expected.copy_within(PART..2 * PART, 0);
                expected[3 * PART..].fill(9);
                for _ in 0..3 {
                    let run = executable.submit(queue).unwrap();
                    run.wait().unwrap();
                    assert_eq!(*run.get(&result).unwrap(), *expected, "{kind}, {path}, recorded: {recorded}");
                }
            }
        }
    }
}

/// The report says by which path the commands go: they are recorded if the driver's revision has the commands.
#[test]
fn copies_and_fills_of_addresses_are_recorded_where_the_driver_can() {
    let bench = Bench::new();
    let caps = bench.queue.device().caps();
    for kind in kinds(&bench.queue).filter(|kind| kind.is_pointer()) {
        let (a, b) = (memory(&bench, kind, &[1; LEN]), memory(&bench, kind, &[2; LEN]));
        let graph = bench.graph();
        graph.fill(&a, 3).add().unwrap();
        graph.copy(&a, &b).add().unwrap();
        graph.prefetch(&b).add().unwrap();
        graph.advise(&b, 0).add().unwrap();
        let executable = graph.finalize(Finalize::new().path(Path::Native)).unwrap();
        let native: usize = executable
            .report()
            .segments
            .iter()
            .filter(|part| part.path == Path::Native)
            .map(|part| part.commands)
            .sum();
        let expected =
            [CommandKind::Memcpy, CommandKind::MemFill].iter().filter(|command| caps.can_record(**command).is_ok());
        assert_eq!(native, expected.count(), "{kind}: {}", executable.report());
        // Command buffers have no hints, where there are any.
        let why = caps.can_record(CommandKind::Kernel).err().unwrap_or(PathReason::NoSuchCommand);
        assert_eq!(caps.can_record(CommandKind::Hint), Err(why));
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        assert_eq!(content(&bench.queue, &b), [3; LEN]);
    }
}

/// Rule D2
#[test]
fn ranges_of_an_allocation_conflict_where_they_overlap_and_nowhere_else() {
    let bench = Bench::new();
    for kind in kinds(&bench.queue).filter(|kind| kind.is_pointer()) {
        let memory = memory(&bench, kind, &[0; LEN]);
        let graph = bench.graph();
        let fill = |range| graph.fill(&memory.slice(range).unwrap(), 1).add().unwrap();
        let (left, right) = (fill(0..32), fill(32..64));
        assert!(graph.predecessors(right).unwrap().is_empty(), "{kind}: disjoint ranges");
        let middle = fill(31..33);
        assert_eq!(graph.predecessors(middle).unwrap(), [left, right], "{kind}");
        let all = graph.read(&memory).add().unwrap().node();
        assert!(graph.predecessors(all).unwrap().contains(&middle));
    }
}

/// Rule D3
#[test]
fn memory_of_others_makes_no_edges_and_works() {
    let bench = Bench::new();
    for kind in kinds(&bench.queue).filter(|kind| kind.is_pointer()) {
        let owner = memory(&bench, kind, &numbers(0));
        let pointer = owner.as_ptr().unwrap();
        // SAFETY: `owner` outlives everything here, and the nodes are ordered by `after`.
        let foreign = unsafe { Memory::from_raw(&bench.queue, kind, pointer, LEN) }.unwrap();
        let graph = bench.graph();
        let first = graph.fill(&foreign, 5).add().unwrap();
        let second = graph.fill(&foreign.slice(..8).unwrap(), 6).add().unwrap();
        assert!(graph.predecessors(second).unwrap().is_empty());
        // It is not ordered with its owner's handle either.
        let third = graph.fill(&owner.slice(60..).unwrap(), 7).add().unwrap();
        assert!(graph.predecessors(third).unwrap().is_empty());
        graph.add_edge(first, second).unwrap();
        graph.add_edge(second, third).unwrap();
        for path in [Path::Replay, Path::Native] {
            graph.finalize(Finalize::new().path(path)).unwrap().submit(&bench.queue).unwrap().wait().unwrap();
            let mut expected = vec![5; LEN];
            expected[..8].fill(6);
            expected[60..].fill(7);
            assert_eq!(content(&bench.queue, &owner), expected, "{kind}");
        }
        // SAFETY: an error.
        let null = unsafe { Memory::<u32>::from_raw(&bench.queue, kind, std::ptr::null_mut(), 1) };
        assert_error!(null, SetupError::NullHandle { what: "pointer" });
        // SAFETY: as above.
        let empty = unsafe { Memory::from_raw(&bench.queue, kind, pointer, 0) };
        assert!(matches!(empty, Err(Error::Memory(MemoryError::Empty { .. }))));
        // SAFETY: as above.
        let buffer = unsafe { Memory::from_raw(&bench.queue, MemoryKind::Buffer, pointer, 1) };
        assert!(matches!(buffer, Err(Error::Memory(MemoryError::NotAPointer))));
        if matches!(kind, MemoryKind::UsmDevice | MemoryKind::UsmHost | MemoryKind::UsmShared) {
            // SAFETY: as above.
            let beyond = unsafe { Memory::from_raw(&bench.queue, kind, pointer.wrapping_add(1), LEN) };
            assert!(
                matches!(beyond, Err(Error::Memory(MemoryError::BeyondAllocation { offset: 4, .. }))),
                "{beyond:?}"
            );
            let mut here = [0_u32; 4];
            if !bench.queue.device().caps().usm.unwrap().system {
                // SAFETY: as above.
                let host = unsafe { Memory::from_raw(&bench.queue, kind, here.as_mut_ptr(), 4) };
                assert!(matches!(host, Err(Error::Memory(MemoryError::UnknownPointer))), "{host:?}");
            }
        }
        assert_error!(foreign.host(), MemoryError::NotHostAccessible { kind: of } if *of == kind);
    }
}

/// Rule I5
///
/// Also copies between kinds of memory for which OpenCL has no command.
#[test]
fn rectangles_and_copies_between_kinds_give_the_bytes_of_buffers() {
    let bench = Bench::new();
    let source: Vec<u32> = (0..4096).collect();
    let rect = |from: &Memory<u32>, into: &Memory<u32>, path| {
        let graph = bench.graph();
        let copy = graph.copy_rect(from, into).region([7, 5, 2]).src_origin([3, 2, 1]).src_pitch(24, 24 * 8);
        let node = copy.dst_origin([1, 1, 0]).dst_pitch(12, 12 * 7).add().unwrap();
        graph.copy(&from.slice(1024..2048).unwrap(), &into.slice(2048..3072).unwrap()).add().unwrap();
        graph.finalize(Finalize::new().path(path)).unwrap().submit(&bench.queue).unwrap().wait().unwrap();
        (graph.kind(node).unwrap(), content(&bench.queue, into))
    };
    let new = |kind| (memory(&bench, kind, &source), memory(&bench, kind, &[0; 4096]));
    let (from, into) = new(MemoryKind::Buffer);
    let (kind, expected) = rect(&from, &into, Path::Replay);
    assert_eq!(kind, NodeKind::CopyRect);
    for (a, b) in kinds(&bench.queue).flat_map(|a| kinds(&bench.queue).map(move |b| (a, b))) {
        let (from, into) = (new(a).0, new(b).1);
        for path in [Path::Replay, Path::Native] {
            let (kind, content) = rect(&from, &into, path);
            assert_eq!(kind == NodeKind::Kernel, a.is_pointer() || b.is_pointer());
            assert_eq!(content, expected, "{a} to {b}");
        }
        // Executed, on a queue, and in bytes that fit no larger element.
        let bytes = |memory: &Memory<u32>| memory.cast::<u8>().unwrap();
        let at_once = memory(&bench, b, &[0; 4096]);
        let region = ([13, 9, 4], [5, 3, 2], [27, 5, 2]);
        let pitches = [96, 96 * 8, 48, 48 * 7];
        for into in [&into, &at_once] {
            bench.queue.enqueue_write_buffer(into, 0, &[0; 4096], &[]).unwrap();
            let (from, into) = (bytes(&from), bytes(into));
            let copied = bench.queue.enqueue_copy_buffer_rect(
                &from,
                &into,
                region.0,
                region.1,
                region.2,
                pitches[0],
                pitches[1],
                pitches[2],
                pitches[3],
                &[],
            );
            copied.unwrap();
        }
        let mut model = vec![0_u8; 4096 * 4];
        let all: Vec<u8> = source.iter().flat_map(|value| value.to_ne_bytes()).collect();
        for (z, y, x) in (0..2).flat_map(|z| (0..5).flat_map(move |y| (0..27).map(move |x| (z, y, x)))) {
            model[(2 + z) * 336 + (3 + y) * 48 + 5 + x] = all[(4 + z) * 768 + (9 + y) * 96 + 13 + x];
        }
        let model: Vec<u32> = model.chunks(4).map(|bytes| u32::from_ne_bytes(bytes.try_into().unwrap())).collect();
        assert_eq!(content(&bench.queue, &at_once), model, "{a} to {b}");
    }
}

/// Rules I3, P9: memory that a kernel reaches through pointers in other memory.
#[test]
fn a_kernel_reaches_memory_indirectly_with_its_hazards() {
    let bench = Bench::new();
    let source = "kernel void through(global const ulong *table, global uint *out) {
        global const uint *found = (global const uint *)table[0];
        out[get_global_id(0)] = found[get_global_id(0)] + 1;
    }";
    let through = Program::from_source(&bench.queue, source).unwrap().kernel("through").unwrap();
    for kind in kinds(&bench.queue).filter(|kind| kind.is_pointer()) {
        let (hidden, other) = (memory(&bench, kind, &numbers(5)), memory(&bench, kind, &numbers(50)));
        let address = |memory: &Memory<u32>| memory.as_ptr().unwrap().expose_provenance() as u64;
        let table = Memory::<u64>::with_kind(&bench.queue, kind, 1).unwrap();
        let out = Buffer::<u32>::new(&bench.queue, LEN).unwrap();
        for path in [Path::Replay, Path::Native] {
            let graph = bench.graph();
            let write = graph.write(&table, [address(&hidden)]).add().unwrap();
            let fill = graph.fill(&hidden.slice(..4).unwrap(), 1).add().unwrap();
            let launch =
                |hidden: &Memory<u32>| graph.kernel(&through).read(&table).write(&out).indirect_read(hidden).range(LEN);
            // SAFETY: a work-item touches its own element of each; the table holds the address of what is declared.
            let node = unsafe { launch(&hidden).add().unwrap() };
            assert!(graph.predecessors(node).unwrap().contains(&fill), "an indirect read waits for the write");
            let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
            executable.submit(&bench.queue).unwrap().wait().unwrap();
            let mut expected = numbers(6);
            expected[..4].fill(2);
            assert_eq!(bench.content(&out), expected, "{kind}");
            // SAFETY: as above.
            unsafe { launch(&other).replace(node).unwrap() };
            graph.write(&table, [address(&other)]).replace(&write).unwrap();
            executable.update(&[write.node(), node]).unwrap();
            executable.submit(&bench.queue).unwrap().wait().unwrap();
            assert_eq!(bench.content(&out), numbers(51), "{kind}");
        }
        // Executed, on a queue.
        bench.queue.enqueue_write_buffer(&table, 0, &[address(&other)], &[]).unwrap();
        let mut launch = ExecuteKernel::new(&through);
        launch.set_arg(&table).set_arg(&out).set_indirect(&other).set_global_work_size(LEN);
        // SAFETY: as above.
        unsafe { launch.enqueue_nd_range(&bench.queue).unwrap().wait().unwrap() };
        assert_eq!(bench.content(&out), numbers(51), "{kind}");
        // Recorded: what is declared as read and written decides the order.
        let graph = bench.graph();
        let fill = graph.fill(&hidden, 3).add().unwrap();
        let queue = bench.another_queue(true);
        let waits = graph.record(&queue, || {
            let mut launch = ExecuteKernel::new(&through);
            let mut node = |write: bool| {
                launch.set_arg(&table).set_arg_read(&out).set_global_work_size(LEN);
                let launch = if write { launch.set_indirect_write(&hidden) } else { launch.set_indirect_read(&hidden) };
                // SAFETY: it never runs.
                graph.node_of(&unsafe { launch.enqueue_nd_range(&queue)? })
            };
            Ok([node(false)?, node(false)?, node(true)?])
        });
        let [first, second, third] = waits.unwrap();
        assert_eq!(graph.predecessors(first).unwrap(), [fill], "{kind}");
        assert_eq!(graph.predecessors(second).unwrap(), [fill], "{kind}");
        assert_eq!(graph.predecessors(third).unwrap(), [first, second], "{kind}");
        // SAFETY: an error.
        let wrong = unsafe { bench.graph().kernel(&through).read(&table).write(&out).indirect(&out).range(1).add() };
        assert_error!(wrong, BuildCause::NotSupported { what, .. } if what == "indirect access to a buffer");
    }
}

/// Rule P1
#[test]
fn a_parameter_of_memory_changes_on_each_path() {
    let bench = Bench::new();
    for kind in kinds(&bench.queue) {
        let sources = [memory(&bench, kind, &numbers(0)), memory(&bench, kind, &numbers(1000))];
        let out = memory(&bench, kind, &[0; LEN]);
        for path in [Path::Replay, Path::Native, Path::Auto] {
            let from = Parameter::memory(&sources[0].slice(..PART).unwrap());
            let graph = bench.graph();
            let into = out.slice(..PART).unwrap();
            // SAFETY: a work-item touches its own element of each.
            let node = unsafe {
                graph.kernel(&bench.kernel("scale")).read(&from).write(&into).arg(0_u32).range(PART).add().unwrap()
            };
            let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
            let check = |first: u32| {
                executable.submit(&bench.queue).unwrap().wait().unwrap();
                let expected: Vec<u32> = (first..first + PART as u32).map(|value| value * 3).collect();
                assert_eq!(content(&bench.queue, &out)[..PART], expected, "{kind}, {path}");
            };
            check(0);
            from.set(&sources[1]).unwrap();
            executable.update(&node).unwrap();
            check(1000);
            from.set(&sources[1].slice(2 * PART..).unwrap()).unwrap();
            executable.update(&node).unwrap();
            check(1000 + 2 * PART as u32);
            let short = sources[0].cast::<u8>().unwrap().slice(..PART).unwrap();
            assert_error!(
                Parameter::memory(&sources[0].cast::<u8>().unwrap()).set(&short),
                ParameterError::TooSmall { needed: 2048, given: 128 },
            );
            check(1000 + 2 * PART as u32);
        }
    }
}

/// The host accesses memory through a guard: no submission while a guard exists, and no guard while a use is pending.
#[test]
fn guards_of_the_host_and_commands_exclude_each_other() {
    let bench = Bench::new();
    let Some(memory) = shared(&bench) else { return };
    memory.host_mut().unwrap().copy_from_slice(&numbers(0));
    let graph = bench.graph();
    graph.fill(&memory.slice(..4).unwrap(), 9).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let parent = bench.graph();
    parent.sub_graph(&executable).add().unwrap();
    let parent = parent.finalize(Finalize::new()).unwrap();
    let queue = &bench.queue;
    let write = || queue.enqueue_fill_buffer(&memory, &[1], 0, 4, &[]);
    {
        let (one, _two) = (memory.host().unwrap(), memory.host().unwrap());
        assert_eq!(*one, *numbers(0));
        for refused in [executable.submit(queue).map(drop), parent.submit(queue).map(drop), write().map(drop)] {
            assert_error!(refused, MemoryError::HeldByHost { .. });
        }
        let mut back = [0; LEN];
        assert_error!(queue.enqueue_read_buffer(&memory, 0, &mut back, &[]), MemoryError::HeldByHost { .. });
        assert_error!(memory.host_mut(), MemoryError::Busy { why, .. } if why.contains("another guard"));
    }
    {
        let _only = memory.host_mut().unwrap();
        assert_error!(memory.host(), MemoryError::Busy { why, .. } if why.contains("another guard"));
        assert_error!(executable.submit(queue), MemoryError::HeldByHost { .. });
    }
    for executable in [&executable, &parent] {
        executable.submit(queue).unwrap().wait().unwrap();
        assert_eq!(memory.host().unwrap()[..5], [9, 9, 9, 9, 4]);
    }
    // Pending uses: enqueued, deferred, and of a queue.
    let gate = UserEvent::new(&bench.queue);
    queue.enqueue_barrier_with_wait_list(&[&event_of(&gate)]).unwrap();
    let run = executable.submit(queue).unwrap();
    assert_error!(memory.host(), MemoryError::Busy { why, .. } if why.contains("a submission uses it"));
    gate.set(0);
    run.wait().unwrap();
    assert_eq!(memory.host_mut().unwrap()[0], 9);
    let gate = UserEvent::new(&bench.queue);
    let run = executable.submit_to(queue).after(&event_of(&gate)).submit().unwrap();
    assert_error!(
        memory.host(),
        MemoryError::Busy { why, .. } if why.contains("a submission uses it"),
        "a deferred one",
    );
    gate.set(0);
    run.wait().unwrap();
    drop(memory.host().unwrap());
    let gate = UserEvent::new(&bench.queue);
    let event = queue.enqueue_fill_buffer(&memory, &[3], 0, 4, &[&event_of(&gate)]).unwrap();
    assert_error!(memory.host(), MemoryError::Busy { why, .. } if why.contains("a command of a queue uses it"));
    gate.set(0);
    event.wait().unwrap();
    assert_eq!(memory.host().unwrap()[..2], [3, 9]);
    // Memory that an update brings follows the same rule.
    let other = Memory::<u32>::host_accessible(queue, LEN).unwrap();
    let graph = bench.graph();
    let node = graph.fill(&bench.buffer(&[0; LEN]), 1).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    graph.fill(&other, 1).replace(node).unwrap();
    executable.update(&node).unwrap();
    let guard = other.host().unwrap();
    assert_error!(executable.submit(queue), MemoryError::HeldByHost { .. });
    drop(guard);
    executable.submit(queue).unwrap().wait().unwrap();
    assert_eq!(*other.host().unwrap(), [1; LEN]);
}

/// A guard waits for a submission whose executable was dropped, in each way that this can happen.
#[test]
fn a_guard_knows_of_submissions_whose_executable_is_dropped() {
    let bench = Bench::new();
    let Some(memory) = shared(&bench) else { return };
    let queue = &bench.queue;
    for path in [Path::Replay, Path::Native] {
        for deferred in [false, true] {
            for before in ["nothing", "in a parent", "updated"] {
                let graph = bench.graph();
                let fill = graph.fill(&memory, 5).add().unwrap();
                let mut executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
                if before == "in a parent" {
                    let parent = bench.graph();
                    parent.sub_graph(&executable).add().unwrap();
                    executable = parent.finalize(Finalize::new().path(path)).unwrap();
                }
                let gate = UserEvent::new(queue);
                let run = if deferred {
                    executable.submit_to(queue).after(&event_of(&gate)).submit().unwrap()
                } else {
                    queue.enqueue_barrier_with_wait_list(&[&event_of(&gate)]).unwrap();
                    executable.submit(queue).unwrap()
                };
                // Only the submission still uses the memory then.
                if before == "updated" {
                    graph.fill(&bench.buffer(&[0; 4]), 8).replace(fill).unwrap();
                    executable.update(&fill).unwrap();
                }
                drop((graph, executable));
                assert_error!(
                    memory.host_mut(),
                    MemoryError::Busy { why, .. } if why.contains("a submission uses it"),
                    "{path}, {deferred}, {before}",
                );
                gate.set(0);
                run.wait().unwrap();
                queue.finish().unwrap();
                // A thread of clgraph's releases what the run has left.
                let free = (0..1000).any(|_| {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                    memory.host_mut().is_ok()
                });
                assert!(free, "{path}, {deferred}, {before}");
            }
        }
    }
}

/// A thread that asks for a guard again and again, and gets none, does not disturb submissions.
#[test]
fn guards_that_are_refused_refuse_no_submission() {
    let bench = Bench::new();
    let Some(memory) = shared(&bench) else { return };
    let queue = &bench.queue;
    let graph = bench.graph();
    graph.fill(&memory, 5).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let gate = UserEvent::new(queue);
    queue.enqueue_barrier_with_wait_list(&[&event_of(&gate)]).unwrap();
    executable.submit(queue).unwrap();
    let (done, asked) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                assert!(matches!(memory.host(), Err(clgraph::Error::Memory(MemoryError::Busy { .. }))));
                asked.fetch_add(1, Ordering::SeqCst);
            }
        });
        let mut submitted = 0;
        while submitted < 300 || asked.load(Ordering::SeqCst) < 100 {
            let outcome = executable.submit(queue).map(|_| ());
            let outcome = outcome.and_then(|()| queue.enqueue_fill_buffer(&memory, &[1], 0, 4, &[]).map(|_| ()));
            if outcome.is_err() || submitted > 100_000 {
                done.store(true, Ordering::SeqCst);
            }
            outcome.unwrap();
            submitted += 1;
            std::thread::yield_now();
        }
        done.store(true, Ordering::SeqCst);
    });
    gate.set(0);
    queue.finish().unwrap();
    assert_eq!(memory.host().unwrap()[..2], [1, 5]);
}

/// Memory that an update has removed or brought is free when its runs have ended, with and without their events.
#[test]
fn a_guard_is_to_be_had_when_runs_without_events_are_over() {
    let bench = Bench::new();
    let Some(memory) = shared(&bench) else { return };
    let queue = &bench.queue;
    let (graph, buffer) = (bench.graph(), bench.buffer(&[0; LEN]));
    let node = graph.fill(&buffer, 1).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    let detached = || executable.submit_to(queue).submit_detached().unwrap();
    detached();
    graph.fill(&memory, 2).replace(node).unwrap();
    executable.update(&node).unwrap();
    queue.finish().unwrap();
    drop(memory.host().unwrap());
    detached();
    queue.finish().unwrap();
    assert_eq!(memory.host().unwrap()[0], 2);
    graph.fill(&buffer, 3).replace(node).unwrap();
    executable.update(&node).unwrap();
    for _ in 0..3 {
        detached();
        queue.finish().unwrap();
        drop(memory.host_mut().unwrap());
    }
}

/// Maps memory that nothing else uses.
fn map<M: MapMode>(queue: &Queue, memory: &MemorySlice<u32>, mode: M) -> clgraph::Result<Mapped<u32, M>> {
    // SAFETY: as above.
    unsafe { queue.map(memory, mode, &[]) }
}

/// Memory as a slice of the host, until it is unmapped.
#[test]
fn memory_is_mapped_to_be_read_and_written() {
    let bench = Bench::new();
    let queue = &bench.queue;
    for kind in kinds(queue) {
        let memory = memory(&bench, kind, &numbers(0));
        let part = memory.slice(PART..3 * PART).unwrap();
        if kind == MemoryKind::UsmDevice {
            assert_error!(map(queue, &part, MapRead), MemoryError::NotHostAccessible { kind: MemoryKind::UsmDevice });
            continue;
        }
        let gate = UserEvent::new(queue);
        let late = queue.enqueue_fill_buffer(&memory, &[7], 0, PART * 8, &[&event_of(&gate)]).unwrap();
        let setter = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            gate.set(0);
        });
        let mapped = map(queue, &part, MapRead).unwrap();
        assert_eq!(late.command_execution_status().unwrap(), ExecutionStatus::Complete, "{kind}");
        setter.join().unwrap();
        assert_eq!((mapped.len(), mapped[0], mapped[PART]), (2 * PART, 7, 2 * PART as u32), "{kind}");
        mapped.unmap().unwrap();
        let mut mapped = map(queue, &part, MapWrite).unwrap();
        mapped[1] = 70;
        // Everything that changes a slice is there.
        mapped[1..].rotate_left(1);
        mapped[1..].rotate_right(1);
        drop(mapped);
        assert_eq!(content(queue, &memory)[PART..PART + 3], [7, 70, 7], "{kind}");
        let mut mapped = map(queue, &part, MapWriteInvalidate).unwrap();
        mapped.fill(4);
        mapped.unmap().unwrap();
        assert_eq!(content(queue, &memory)[PART..3 * PART], [4; 2 * PART], "{kind}");
        let graph = bench.graph();
        let refused = graph.record(queue, || map(queue, &part, MapRead).map(|_| ()));
        assert_error!(refused, RecordError::NotRecordable { what: "mapping memory", .. });
    }
    let theirs = elsewhere().buffer(&[0; 4]);
    let empty = bench.buffer(&[0; 4]).slice(1..1).unwrap();
    // SAFETY: errors.
    let (of_others, of_nothing) = unsafe { (queue.map(&theirs, MapRead, &[]), queue.map(&empty, MapRead, &[])) };
    assert_error!(of_others, BuildCause::OtherContext { .. });
    assert_error!(of_nothing, MemoryError::Empty { what: "a map" });
}

/// Sub-buffers are copied through their buffer's handle, which must exist even if nothing else holds the buffer.
#[test]
fn sub_buffers_keep_their_buffer() {
    let bench = Bench::new();
    for path in [Path::Replay, Path::Native] {
        let whole = bench.buffer(&numbers(0));
        let (a, b) = (whole.sub_buffer(..PART).unwrap(), whole.sub_buffer(PART..2 * PART).unwrap());
        // SAFETY: a live buffer.
        let wrapped = unsafe { Buffer::<u32>::from_raw(&bench.queue, b.raw()) }.unwrap();
        drop((whole, b));
        let graph = bench.graph();
        graph.copy(&a, &wrapped).add().unwrap();
        graph.copy_rect(&a, &wrapped).region([4, 2, 1]).src_pitch(8, 0).dst_pitch(8, 0).add().unwrap();
        let result = graph.read(&wrapped).add().unwrap();
        let run = graph.finalize(Finalize::new().path(path)).unwrap().submit(&bench.queue).unwrap();
        run.wait().unwrap();
        assert_eq!(*run.get(&result).unwrap(), numbers(0)[..PART]);
    }
}

/// PoCL 7.1 crashes when a sub-buffer is released with its last command while a command on its buffer is enqueued.
#[test]
fn sub_buffers_may_go_while_their_commands_run() {
    let bench = Bench::new();
    let whole = bench.buffer(&[0; LEN]);
    for round in 1..=300 {
        let part = whole.sub_buffer(PART..2 * PART).unwrap();
        let gate = UserEvent::new(&bench.queue);
        let waits = [&event_of(&gate)];
        let waits = if round % 100 == 0 { &waits[..] } else { &[] };
        bench.queue.enqueue_fill_buffer(&part, &[round], 0, PART * 4, waits).unwrap();
        drop(part);
        gate.set(0);
        let mut content = [0; LEN];
        bench.queue.enqueue_read_buffer(&whole, 0, &mut content, &[]).unwrap();
        assert_eq!((content[PART - 1], content[PART], content[2 * PART - 1]), (0, round, round));
    }
}

/// Even if somebody else wraps a sub-buffer, no reference to it is left over.
#[test]
fn a_sub_buffer_with_several_wrappers_is_given_back() {
    use opencl3::memory::{CL_MEM_REFERENCE_COUNT, get_mem_object_info};
    let bench = Bench::new();
    let whole = bench.buffer(&[0; LEN]);
    let count = || u32::from(get_mem_object_info(whole.raw(), CL_MEM_REFERENCE_COUNT).unwrap());
    let before = count();
    for _ in 0..3 {
        let part = whole.sub_buffer(..PART).unwrap();
        let plain = part.to_opencl3().unwrap();
        // SAFETY: a live buffer.
        let again = unsafe { Buffer::<u32>::from_raw(&bench.queue, part.raw()) }.unwrap();
        bench.queue.enqueue_fill_buffer(&part, &[1], 0, PART * 4, &[]).unwrap();
        drop(part);
        drop(plain);
        drop(again);
    }
    bench.queue.finish().unwrap();
    let begin = std::time::Instant::now();
    while count() != before {
        assert!(begin.elapsed() < std::time::Duration::from_secs(10), "{} references, {before} before", count());
        std::thread::sleep(std::time::Duration::from_millis(1));
        // Drivers that release sub-buffers late do so when something is created.
        drop(bench.buffer(&[0]));
    }
}

/// Rule U6: a command that command buffers cannot hold is replayed, also if an update brings it; and the reverse.
#[test]
fn an_update_may_change_the_kind_of_memory() {
    let bench = Bench::new();
    let queue = &bench.queue;
    for kind in kinds(queue) {
        let (memory, buffer) = (memory(&bench, kind, &[0; LEN]), bench.buffer(&[0; LEN]));
        for path in [Path::Replay, Path::Native, Path::Auto] {
            let graph = bench.graph();
            let fill = graph.fill(&buffer, 1).add().unwrap();
            // SAFETY: a work-item touches its own element.
            unsafe { graph.kernel(&bench.kernel("stir")).read_write(&buffer).range(LEN).add().unwrap() };
            let executable = graph.finalize(Finalize::new().path(path).updatable().allow_conflicts()).unwrap();
            let run = || executable.submit(queue).unwrap().wait().unwrap();
            run();
            for round in 2..5 {
                graph.fill(&memory, round).replace(fill).unwrap();
                executable.update(&fill).unwrap();
                run();
                assert_eq!(content(queue, &memory), [round; LEN], "{kind}, {path}");
                graph.fill(&buffer, round).replace(fill).unwrap();
                executable.update(&fill).unwrap();
                run();
                let expected: Vec<u32> = (0..LEN as u32).map(|at| round * 5 + at).collect();
                assert_eq!(bench.content(&buffer), expected, "{kind}, {path}");
            }
        }
    }
}

/// Slices, offsets in them, and foreign addresses, which may have any alignment.
#[test]
fn copies_by_kernel_start_where_they_should() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let buffer = bench.buffer(&[0; 64]);
    for kind in kinds(queue).filter(|kind| kind.is_pointer()) {
        let memory = memory(&bench, kind, &numbers(0));
        for (slice, offset, len) in [(0, 0, 64), (2, 2, 16), (1, 3, 16), (4, 4, 16), (3, 0, 5), (6, 1, 1)] {
            queue.enqueue_fill_buffer(&buffer, &[9], 0, 256, &[]).unwrap();
            let part = memory.slice(slice..).unwrap();
            queue.enqueue_copy_buffer(&part, &buffer, offset * 4, 0, len * 4, &[]).unwrap();
            let first = (slice + offset) as u32;
            let mut expected = vec![9; 64];
            (0..len).for_each(|at| expected[at] = first + at as u32);
            assert_eq!(bench.content(&buffer), expected, "{kind}: {slice}, {offset}, {len}");
            let graph = bench.graph();
            let rect = graph.copy_rect(&part, &buffer).region([len, 1, 1]).src_origin([offset, 0, 0]);
            rect.dst_origin([0; 3]).add().unwrap();
            queue.enqueue_fill_buffer(&buffer, &[9], 0, 256, &[]).unwrap();
            bench.run(&graph);
            assert_eq!(bench.content(&buffer), expected, "{kind}: {slice}, {offset}, {len}");
            let pointer = memory.as_ptr().unwrap().wrapping_add(slice);
            // SAFETY: `memory` outlives it, and the queue is in order.
            let foreign = unsafe { Memory::from_raw(queue, kind, pointer, LEN - slice) }.unwrap();
            queue.enqueue_fill_buffer(&buffer, &[9], 0, 256, &[]).unwrap();
            queue.enqueue_copy_buffer(&foreign, &buffer, offset * 4, 0, len * 4, &[]).unwrap();
            assert_eq!(bench.content(&buffer), expected, "{kind}: {slice}, {offset}, {len}");
        }
        // A copy that gets another alignment, and one that becomes empty.
        let graph = bench.graph();
        let out = Buffer::<u32>::new(queue, 4).unwrap();
        let node = graph.copy(&memory.slice(0..4).unwrap(), &out).add().unwrap();
        let executable = graph.finalize(Finalize::new().updatable()).unwrap();
        for from in [1, 2, 4] {
            graph.copy(&memory.slice(from..from + 4).unwrap(), &out).replace(node).unwrap();
            executable.update(&node).unwrap();
            executable.submit(queue).unwrap().wait().unwrap();
            assert_eq!(bench.content(&out)[0], from as u32, "{kind}");
        }
        // Within an allocation, kernels have no alignment rules.
        let graph = bench.graph();
        let rect = graph.copy_rect(&memory, &memory).region([4, 4, 1]).src_pitch(8, 0).dst_pitch(4, 0);
        rect.dst_origin([256, 0, 0]).add().unwrap();
        bench.run(&graph);
        assert_eq!(content(queue, &memory)[256..264], [0, 1, 2, 3, 8, 9, 10, 11], "{kind}");
    }
}

/// Foreign addresses are distinguished by their wrapper, and may overlap.
#[test]
fn wrapped_addresses_that_overlap_are_not_mixed_up() {
    let bench = Bench::new();
    let stir = bench.kernel("stir");
    for kind in kinds(&bench.queue).filter(|kind| kind.is_pointer()) {
        let owner = memory(&bench, kind, &[0; LEN]);
        let at = |offset: usize| {
            // SAFETY: `owner` outlives everything here, and a submission runs one command.
            unsafe { Memory::from_raw(&bench.queue, kind, owner.as_ptr().unwrap().wrapping_add(offset), 100) }.unwrap()
        };
        let (low, high) = (at(0), at(100));
        let graph = bench.graph();
        graph.fill(&at(0).slice(50..).unwrap(), 1).add().unwrap();
        let launch = |memory: &Memory<u32>| graph.kernel(&stir).read_write(memory).range(100);
        // SAFETY: a work-item touches its own element.
        let group = unsafe { graph.command_group([launch(&high), launch(&low)]) }.unwrap();
        graph.command_group_node(&group).add().unwrap();
        bench.run(&graph);
        let expected: Vec<u32> = (0..100).collect();
        assert_eq!(content(&bench.queue, &owner)[100..200], expected, "{kind}");
    }
}

/// Rule C2: launches of a group may use different foreign memory, also a different number of them.
#[test]
fn launches_of_a_group_use_as_much_memory_of_others_as_they_like() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let (stir, add) = (bench.kernel("stir"), bench.kernel("add"));
    for kind in kinds(queue).filter(|kind| kind.is_pointer()) {
        let numbers = bench.buffer(&[1; LEN]);
        let owner = memory(&bench, kind, &[5; LEN]);
        // SAFETY: `owner` outlives everything here, and a submission runs one command.
        let foreign = unsafe { Memory::from_raw(queue, kind, owner.as_ptr().unwrap(), LEN) }.unwrap();
        for few_first in [true, false] {
            for path in [Path::Replay, Path::Native] {
                queue.enqueue_write_buffer(&numbers, 0, &[1; LEN], &[]).unwrap();
                let graph = bench.graph();
                let few = || graph.kernel(&stir).read_write(&numbers).range(LEN);
                let more = || graph.kernel(&add).read_write(&numbers).read(&foreign).range(LEN);
                let launches = if few_first { [few(), more()] } else { [more(), few()] };
                // SAFETY: a work-item of either kernel touches its own elements.
                let group = unsafe { graph.command_group(launches) }.unwrap();
                let node = graph.command_group_node(&group).add().unwrap();
                let after = graph.fill(&numbers.slice(0..1).unwrap(), 7).add().unwrap();
                let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
                let mut expected = vec![1_u32; LEN];
                for active in [0, 1, 0, 1, 1, 0] {
                    group.set_active_index(active).unwrap();
                    assert_eq!(graph.predecessors(after).unwrap(), [node]);
                    executable.update(&node).unwrap();
                    let now = graph.finalize(Finalize::new().path(path)).unwrap();
                    let parent = bench.graph();
                    parent.sub_graph(&now).add().unwrap();
                    let within = parent.finalize(Finalize::new().path(path)).unwrap();
                    for run in [&executable, &now, &within] {
                        run.submit(queue).unwrap().wait().unwrap();
                        expected.iter_mut().zip(0..).for_each(|(number, at)| {
                            *number = if (active == 0) == few_first {
                                number.wrapping_mul(5).wrapping_add(at)
                            } else {
                                number.wrapping_add(5)
                            };
                        });
                        expected[0] = 7;
                        assert_eq!(bench.content(&numbers), expected, "{kind} {path} {active}");
                    }
                }
            }
        }
    }
}

/// Memory that only an inactive launch names is released when that launch changes.
#[test]
fn a_group_lets_go_of_memory_that_no_launch_has_any_more() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let (Some(first), Some(second)) = (shared(&bench), shared(&bench)) else { return };
    let (graph, out, scale) = (bench.graph(), bench.buffer(&[0; LEN]), bench.kernel("scale"));
    let input = Parameter::memory(&first);
    let launches = [1_u32, 2].map(|by| graph.kernel(&scale).read(&input).write(&out).arg(by).range(LEN));
    // SAFETY: a work-item touches its own element.
    let group = unsafe { graph.command_group(launches) }.unwrap();
    let node = graph.command_group_node(&group).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    let is_used = |memory: &Memory<u32>| {
        queue.finish().unwrap();
        let _guard = memory.host().unwrap();
        match executable.submit(queue) {
            Ok(run) => run.wait().map(|()| false).unwrap(),
            Err(clgraph::Error::Memory(MemoryError::HeldByHost { .. })) => true,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(is_used(&first) && !is_used(&second));
    input.set(&second).unwrap();
    executable.update(&node).unwrap();
    assert!(is_used(&first) && is_used(&second), "the other launch has the first");
    group.set_active_index(1).unwrap();
    executable.update(&node).unwrap();
    assert!(!is_used(&first) && is_used(&second));
    input.set(&first).unwrap();
    group.set_active_index(0).unwrap();
    executable.update(&node).unwrap();
    assert!(is_used(&first) && is_used(&second));
}

/// Rule F1: what commands use outlives them, whatever is dropped first.
#[test]
fn memory_outlives_the_commands_that_use_it() {
    let bench = Bench::new();
    let queue = &bench.queue;
    for kind in kinds(queue) {
        let out = memory(&bench, kind, &[0; LEN]);
        for path in [Path::Replay, Path::Native] {
            for round in 0..20 {
                let gate = UserEvent::new(&bench.queue);
                queue.enqueue_barrier_with_wait_list(&[&event_of(&gate)]).unwrap();
                let passing = memory_later(&bench, kind);
                let graph = bench.graph();
                graph.fill(&passing, round).add().unwrap();
                graph.copy(&passing, &out).add().unwrap();
                graph.finalize(Finalize::new().path(path)).unwrap().submit(queue).unwrap();
                let last = memory_later(&bench, kind);
                queue.detached().enqueue_copy_buffer(&out, &last, 0, 0, LEN * 4, &[]).unwrap();
                let event = queue.enqueue_copy_buffer(&last, &out, 0, 0, LEN * 4, &[]).unwrap();
                drop((graph, passing, last));
                // Memory that was freed too early would be allocated again here, and the waiting commands would write
                // to it.
                let others: Vec<_> = (0..8).map(|_| memory_later(&bench, kind)).collect();
                let elsewhere = bench.another_queue(false);
                for other in &others {
                    elsewhere.enqueue_write_buffer(other, 0, &[77; LEN], &[]).unwrap();
                }
                gate.set(0);
                event.wait().unwrap();
                assert_eq!(content(queue, &out), [round; LEN], "{kind}");
                for other in &others {
                    assert_eq!(content(queue, other), [77; LEN], "{kind}");
                }
            }
        }
    }
}

fn memory_later(bench: &Bench, kind: MemoryKind) -> Memory<u32> {
    Memory::with_kind(&bench.queue, kind, LEN).unwrap()
}

#[test]
fn the_portable_call_says_what_it_found() {
    let bench = Bench::new();
    let caps = bench.queue.device().caps();
    let memory = Memory::<u32>::new(&bench.queue, LEN).unwrap();
    let best = [MemoryKind::UsmDevice, MemoryKind::SvmCoarse, MemoryKind::Buffer];
    assert_eq!(Some(memory.kind()), best.into_iter().find(|kind| caps.has_memory(*kind)));
    assert_eq!(memory.as_ptr().is_some(), memory.kind().is_pointer());
    assert_eq!(memory.as_buffer().is_some(), !memory.kind().is_pointer());
    let buffer = bench.buffer(&[4; LEN]);
    let memory = Memory::from(buffer.clone());
    assert_eq!((memory.kind(), memory.as_buffer()), (MemoryKind::Buffer, Some(buffer)));
    assert_eq!(content(&bench.queue, &memory), [4; LEN]);
    assert_eq!(memory.cast::<u8>().unwrap().len(), LEN * 4);
    let uneven = MemoryError::ElementSize { bytes: LEN * 4, element: 3 };
    assert_eq!(memory.cast::<[u8; 3]>().map(drop), Err(uneven.into()));
    if let Some(memory) = shared(&bench) {
        assert!(memory.kind().is_host_accessible());
    }
    let queue = &bench.queue;
    for memory in kinds(queue).map(|kind| memory_later(&bench, kind)) {
        for queue in [queue, &bench.another_queue(true)] {
            queue.enqueue_prefetch(&memory, &[]).unwrap().wait().unwrap();
            queue.enqueue_prefetch_to_host(&memory, &[]).unwrap().wait().unwrap();
            queue.enqueue_advise(&memory, 0, &[]).unwrap().wait().unwrap();
        }
    }
    queue.enqueue_prefetch(&memory, &[]).unwrap().wait().unwrap();
    queue.enqueue_prefetch_to_host(&memory, &[]).unwrap().wait().unwrap();
    queue.enqueue_advise(&memory, 0, &[]).unwrap().wait().unwrap();
    let graph = bench.graph();
    let hints = [graph.prefetch(&memory).add(), graph.prefetch_to_host(&memory).add(), graph.advise(&memory, 0).add()];
    let kinds = hints.map(|node| graph.kind(node.unwrap()).unwrap());
    assert_eq!(kinds, [NodeKind::Prefetch, NodeKind::Prefetch, NodeKind::Advise]);
}

#[test]
fn wrong_sizes_ranges_and_kinds_are_clear_errors() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let caps = queue.device().caps();
    for kind in MemoryKind::ALL {
        if !caps.has_memory(kind) {
            let error = Memory::<u32>::with_kind(queue, kind, LEN).unwrap_err();
            assert!(matches!(&error, Error::Memory(MemoryError::NoSuchMemory { has, .. }) if has.contains("buffer")));
            assert_eq!(error.kind(), ErrorKind::FeatureNotSupported);
            continue;
        }
        assert!(matches!(Memory::<u32>::with_kind(queue, kind, 0), Err(Error::Memory(MemoryError::Empty { .. }))));
        let most = usize::try_from(caps.max_allocation).unwrap();
        for len in [most / 4 + 1, usize::MAX / 4, usize::MAX] {
            let error = Memory::<u32>::with_kind(queue, kind, len).unwrap_err();
            assert!(matches!(error, Error::Memory(MemoryError::TooLarge { .. })), "{kind}: {error}");
            assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        }
        let memory = memory(&bench, kind, &[1; LEN]);
        assert!(matches!(
            memory.slice(LEN - 1..LEN + 1),
            Err(Error::Memory(MemoryError::OutOfBounds { len: LEN, .. }))
        ));
        assert!(matches!(memory.slice(5..5), Err(Error::Memory(MemoryError::Empty { .. }))));
        let part = memory.slice(PART..3 * PART).unwrap();
        assert!(part == memory.slice(PART..3 * PART).unwrap() && part != memory.slice(PART..2 * PART).unwrap());
        assert_eq!(part.cast::<u8>().unwrap().len(), 8 * PART);
        assert!(matches!(part.cast::<[u8; 3]>(), Err(Error::Memory(MemoryError::ElementSize { .. }))));
        assert!(part.slice(PART..).unwrap() == memory.slice(2 * PART..3 * PART).unwrap());
        assert!(matches!(part.slice(PART..2 * PART + 1), Err(Error::Memory(MemoryError::OutOfBounds { .. }))));
        let offset = Buffer::<u32>::new(queue, LEN).unwrap().slice(PART..).unwrap();
        assert_error!(Parameter::memory(&memory).set(&offset), ParameterError::Offset { offset: 512 });
        if !kind.is_host_accessible() {
            for error in [memory.host().map(drop), memory.host_mut().map(drop)] {
                assert_error!(error, MemoryError::NotHostAccessible { kind: of } if *of == kind);
            }
        }
        let graph = bench.graph();
        let small = memory.slice(..PART).unwrap();
        let mismatch = graph.copy(&small, &memory).add();
        assert_error!(
            mismatch,
            BuildCause::SizeMismatch {
                left: "the source",
                left_bytes: 512,
                right: "the destination",
                right_bytes: 2048
            },
        );
        let overlap = graph.copy(&small, &memory.slice(..PART).unwrap()).add();
        assert_error!(overlap, BuildCause::Overlap { .. });
        let elsewhere = elsewhere();
        let theirs = Memory::<u32>::with_kind(&elsewhere.queue, kind, LEN).unwrap();
        assert_error!(graph.copy(&theirs, &memory).add(), BuildCause::OtherContext { .. });
        assert_error!(graph.prefetch(&theirs).add(), BuildCause::OtherContext { .. });
        assert_error!(queue.enqueue_fill_buffer(&theirs, &[1], 0, 4, &[]), BuildCause::OtherContext { .. });
        let beyond = queue.enqueue_fill_buffer(&memory.slice(3 * PART..).unwrap(), &[1], 0, (PART + 1) * 4, &[]);
        assert_error!(beyond, BuildCause::OutOfBounds { what: "destination", offset: 0, end: 516, len: 512 });
        assert!(graph.is_empty());
    }
}

/// Copies, fills, reads, writes and maps accept a range of a buffer that starts anywhere. As an argument of a kernel it
/// is a pointer to its first element. If the device cannot address that, everything that would give it to a kernel
/// returns an error, and nothing changes.
#[test]
fn slices_of_buffers_start_anywhere_for_commands_and_are_refused_as_arguments() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let align = queue.device().caps().sub_buffer_align;
    let start = align / 4 * (40 * 4 / align + 1);
    let len = start + 32;
    let memory = Memory::<u32>::with_kind(queue, MemoryKind::Buffer, len).unwrap();
    queue.enqueue_fill_buffer(&memory, &[0], 0, 4 * len, &[]).unwrap();
    let (odd, even) = (memory.slice(1..33).unwrap(), memory.slice(start..).unwrap());

    // Commands of the queue, and of a graph.
    queue.enqueue_write_buffer(&odd, 0, &[5; 32], &[]).unwrap();
    let inner = odd.slice(2..4).unwrap();
    queue.enqueue_fill_buffer(&inner, &[6], 0, 8, &[]).unwrap();
    let mut bytes = odd.slice(31..).unwrap().cast::<u8>().unwrap();
    assert_eq!((bytes.len(), bytes == memory.slice(32..33).unwrap().cast::<u8>().unwrap()), (4, true));
    bytes = bytes.slice(1..2).unwrap();
    queue.enqueue_fill_buffer(&bytes, &[1_u8], 0, 1, &[]).unwrap();
    let graph = bench.graph();
    graph.copy(&odd, &even).add().unwrap();
    let read = graph.read(&odd).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let run = executable.submit(queue).unwrap();
    run.wait().unwrap();
    let mut expected = vec![5; 32];
    (expected[2], expected[3], expected[31]) = (6, 6, 0x105);
    assert_eq!(*run.get(&read).unwrap(), *expected);
    // SAFETY: nothing else uses the memory.
    let mapped = unsafe { queue.map(&odd, clgraph::MapRead, &[]) }.unwrap();
    assert_eq!(mapped.to_vec(), expected);
    drop(mapped);
    assert_eq!(queue.enqueue_read_buffer_owned(&even, 0, 32, &[]).unwrap().wait().unwrap(), expected);

    // Kernels: by everything that sets an argument.
    assert!(align > 4, "{align}: a device that takes parts from anywhere on wants a test of its own");
    let (scale, out) = (bench.kernel("scale"), bench.buffer(&[0; 32]));
    let graph = bench.graph();
    let launch = |from: &clgraph::MemorySlice<u32>| graph.kernel(&scale).read(from).write(&out).arg(3_u32).range(32);
    // SAFETY: a work-item touches its own element.
    let node = unsafe { launch(&even).add() }.unwrap();
    // SAFETY: as above.
    let group = unsafe { graph.command_group([launch(&even)]) }.unwrap();
    let nodes = graph.len();
    let mut at_once = ExecuteKernel::new(&scale);
    at_once.set_arg(&odd).set_arg(&out).set_arg(&3_u32).set_global_work_size(32);
    let parameter = Parameter::memory(&even);
    let misplaced = Parameter::memory(&odd);
    // SAFETY: none of it runs.
    let refused = unsafe {
        [
            launch(&odd).add().map(drop),
            launch(&inner).replace(node).map(drop),
            graph.command_group([launch(&even), launch(&odd)]).map(drop),
            at_once.enqueue_nd_range(queue).map(drop),
            graph.record(queue, || at_once.enqueue_nd_range(queue)).map(drop),
            graph.kernel(&scale).read(&misplaced).write(&out).arg(3_u32).range(32).add().map(drop),
        ]
    };
    for refused in refused {
        assert_error!(refused, BuildCause::Memory(MemoryError::Misaligned { align: to, .. }) if *to == align);
    }
    let set = parameter.set(&odd).unwrap_err();
    assert_error!(set, ParameterError::Offset { offset: 4 });
    assert_eq!(graph.len(), nodes);
    drop(group);
    // The kernel object and the launch can still be used with another argument.
    bench.run(&graph);
    let scaled: Vec<u32> = expected.iter().map(|x| x.wrapping_mul(3).wrapping_add(3)).collect();
    assert_eq!(bench.content(&out), scaled);
}

/// A parameter of a buffer takes a part of a buffer; kernels use exactly that part.
#[test]
fn a_parameter_of_a_buffer_is_set_to_parts() {
    let bench = Bench::new();
    let (a, b, out) = (bench.buffer(&[1; 64]), bench.buffer(&[2; 64]), bench.buffer(&[0; 64]));
    let parameter = Parameter::<Buffer<u32>>::buffer(&a.slice(..48).unwrap());
    let graph = bench.graph();
    let (scale, by) = (bench.kernel("scale"), 0_u32);
    // SAFETY: a work-item touches its own element, of the first 48.
    let node = unsafe { graph.kernel(&scale).read(&parameter).write(&out).arg(by).range(48).add() }.unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    parameter.set(&b.slice(..48).unwrap()).unwrap();
    executable.update(&node).unwrap();
    executable.submit(&bench.queue).unwrap().wait().unwrap();
    assert_eq!(bench.content(&out)[..48], [6; 48]);
    let short = parameter.set(&b.slice(..47).unwrap()).unwrap_err();
    assert!(
        matches!(short, clgraph::Error::Parameter(clgraph::ParameterError::TooSmall { needed: 192, given: 188 })),
        "{short}"
    );
    let late = parameter.set(&b.slice(1..).unwrap()).unwrap_err();
    assert!(matches!(late, clgraph::Error::Parameter(clgraph::ParameterError::Offset { offset: 4 })), "{late}");
    assert_eq!(b.slice(8..16).unwrap().cast::<u8>().unwrap().size(), 32);
    let own = graph.alloc::<u32>(9).add().unwrap();
    assert_eq!(own.cast::<u8>().unwrap().len(), 36);
    assert!(matches!(
        own.cast::<u64>(),
        Err(clgraph::Error::Memory(MemoryError::ElementSize { bytes: 36, element: 8 }))
    ));
}

/// Rules M2, U2: memory that an update has replaced is the host's when the submissions that use it have ended, whatever the executable
/// does with other memory.
#[test]
fn memory_that_an_update_replaced_is_the_hosts_while_the_executable_runs_on() {
    let bench = Bench::new();
    let (Some(a), Some(b)) = (shared(&bench), shared(&bench)) else { return };
    let graph = bench.graph();
    let given = Parameter::memory(&a);
    // SAFETY: a work-item touches its own element.
    let node = unsafe { graph.kernel(&bench.kernel("stir")).read_write(&given).range(LEN).add() }.unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    let submit = |memory: &Memory<u32>| {
        given.set(memory).unwrap();
        executable.update(&node).unwrap();
        let gate = UserEvent::new(&bench.queue);
        (executable.submit_to(&bench.queue).after(&gate.0).submit().unwrap(), gate)
    };
    let busy = |memory: &Memory<u32>| assert_error!(memory.host_mut(), MemoryError::Busy { .. });
    let (mut before, mut its) = (submit(&a), &a);
    for at in 0..6 {
        let next = if at % 2 == 0 { &b } else { &a };
        let after = submit(next);
        busy(its);
        before.1.set(0);
        before.0.wait().unwrap();
        drop(its.host_mut().unwrap());
        busy(next);
        (before, its) = (after, next);
    }
    before.1.set(0);
    before.0.wait().unwrap();
    drop((a.host_mut().unwrap(), b.host_mut().unwrap()));
}

/// Rule M2: the host gets memory back although a parent was submitted that has a child which uses the memory since an
/// update. The parent has its own values (rule N5).
#[test]
fn memory_of_an_updated_child_is_the_hosts_after_a_submission_of_its_parent() {
    let bench = Bench::new();
    let Some(host) = shared(&bench) else { return };
    let other = |kind: &MemoryKind| matches!(kind, MemoryKind::UsmDevice | MemoryKind::SvmCoarse | MemoryKind::SvmFine);
    let device = memory(&bench, kinds(&bench.queue).find(other).unwrap(), &[0; LEN]);
    let (parameter, graph) = (Parameter::memory(&device), bench.graph());
    let stir = bench.kernel("stir");
    // SAFETY: a work-item touches its own element.
    let node = unsafe { graph.kernel(&stir).read_write(&parameter).range(LEN).add() }.unwrap();
    let child = graph.finalize(Finalize::new().updatable()).unwrap();
    let outer = bench.graph();
    outer.sub_graph(&child).add().unwrap();
    let parent = outer.finalize(Finalize::new()).unwrap();
    parameter.set(&host).unwrap();
    child.update(&node).unwrap();
    drop(host.host_mut().unwrap());
    for _ in 0..3 {
        parent.submit_to(&bench.queue).submit_detached().unwrap();
        bench.queue.finish().unwrap();
        assert!(host.host_mut().is_ok());
    }
}

/// Rule S10: what was enqueued on a queue runs although the queue is dropped and an executable that ran there is not.
#[test]
fn a_submission_runs_although_its_queue_is_dropped() {
    let bench = Bench::new();
    let Some(memory) = shared(&bench) else { return };
    memory.host_mut().unwrap().fill(0);
    let graph = bench.graph();
    graph.fill(&memory, 5).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    executable.submit_to(&bench.another_queue(false)).submit_detached().unwrap();
    let begin = std::time::Instant::now();
    while memory.host_mut().is_err() {
        assert!(begin.elapsed() < std::time::Duration::from_secs(60), "the submission never ran");
        std::thread::yield_now();
    }
    assert_eq!(memory.host_mut().unwrap()[0], 5);
}
