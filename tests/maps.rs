//! Memory and images that nodes map for the host: every kind, on every path, built, recorded and executed.

mod common;
#[path = "common/images.rs"]
mod images;

use std::sync::mpsc;
use std::time::Duration;

use clgraph::{
    Buffer, BufferSlice, BuildCause, BuildError, Error, ErrorKind, Finalize, Graph, HostTaskContext, HostTaskNode,
    Image, ImageKind, MapMode, MapRead, MapWrite, MapWriteInvalidate, Mapped, MappedImage, Memory, MemoryError,
    MemoryKind, MemorySlice, NodeKind, Path, Queue, RecordError, SubmitError, UpdateError,
};
use common::{Bench, assert_error, cause, elsewhere};
use images::{Pixel, image, len, mirror, mirrored, numbered, shape};

/// Elements of a part. Sub-buffers may start at its multiples on every known device.
const PART: usize = 128;
const LEN: usize = 3 * PART;
const PATHS: [Path; 5] = [Path::Auto, Path::Native, Path::Replay, Path::Gated, Path::Queues];

fn each(of: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..LEN as u32).map(of).collect()
}

/// The kinds of memory that the device has and the host can map.
fn kinds(queue: &Queue) -> impl Iterator<Item = MemoryKind> + use<> {
    let caps = queue.device().caps().clone();
    MemoryKind::ALL.into_iter().filter(move |kind| *kind != MemoryKind::UsmDevice && caps.has_memory(*kind))
}

fn memory(queue: &Queue, kind: MemoryKind, data: &[u32]) -> Memory<u32> {
    let memory = Memory::with_kind(queue, kind, data.len()).unwrap();
    queue.enqueue_write_buffer(&memory, 0, data, &[]).unwrap();
    memory
}

fn content(queue: &Queue, memory: &Memory<u32>) -> Vec<u32> {
    let mut data = vec![0; memory.len()];
    queue.enqueue_read_buffer(memory, 0, &mut data, &[]).unwrap();
    data
}

/// `n * 2 + at`, on the host.
fn double(numbers: &mut [u32]) -> clgraph::Result<()> {
    numbers.iter_mut().zip(0..).for_each(|(n, at)| *n = n.wrapping_mul(2).wrapping_add(at));
    Ok(())
}

/// A node that does this.
fn doubling<'g>(graph: &'g Graph, part: &MemorySlice<u32>) -> HostTaskNode<'g> {
    // SAFETY: only this graph uses the memory.
    unsafe { graph.map(part, MapWrite, |_, numbers| double(numbers)) }
}

#[track_caller]
fn failure(outcome: clgraph::Result<()>) -> String {
    match outcome {
        Err(Error::Submit(SubmitError::HostTask { text, .. })) => text,
        other => panic!("a failed host task was expected, not {other:?}"),
    }
}

/// Rules H7, H1, R1: the host works on the memory itself, between kernels, in every submission.
#[test]
fn memory_of_every_kind_is_mapped_between_kernels() {
    let bench = Bench::new();
    let queue = &bench.queue;
    for kind in kinds(queue) {
        for (path, records) in PATHS.into_iter().flat_map(|path| [(path, false), (path, true)]) {
            let (a, b) = (memory(queue, kind, &each(|i| i)), memory(queue, kind, &each(|_| 0)));
            let part = a.slice(PART..2 * PART).unwrap();
            let graph = bench.graph();
            let kernel = bench.kernel("stir");
            if records {
                let mut stir = clgraph::ExecuteKernel::new(&kernel);
                stir.set_arg_read_write(&a).set_global_work_size(LEN);
                graph
                    .record(queue, || {
                        // SAFETY: a work-item touches its own element; only this graph uses the memory.
                        unsafe {
                            stir.enqueue_nd_range(queue)?;
                            let map = queue.enqueue_map(&part, MapWrite, |_, numbers| double(numbers), &[])?;
                            assert_eq!(graph.kind(map.event().unwrap().node().unwrap())?, NodeKind::HostTask);
                        }
                        queue.enqueue_copy_buffer(&a, &b, 0, 0, LEN * 4, &[])
                    })
                    .unwrap();
            } else {
                // SAFETY: a work-item touches its own element.
                unsafe { graph.kernel(&kernel).read_write(&a).range(LEN).add() }.unwrap();
                doubling(&graph, &part).label("double").add().unwrap();
                graph.copy(&a, &b).add().unwrap();
            }
            let executable = graph.finalize(Finalize::new().path(path)).unwrap();
            let mut expected = each(|i| i);
            for _ in 0..3 {
                for (n, i) in expected.iter_mut().zip(0..) {
                    *n = n.wrapping_mul(5).wrapping_add(i);
                }
                for (n, i) in expected[PART..2 * PART].iter_mut().zip(0..) {
                    *n = n.wrapping_mul(2).wrapping_add(i);
                }
                executable.submit(queue).unwrap();
            }
            // Later commands of the queue run after all of them.
            assert_eq!(content(queue, &b), expected, "{kind} {path:?} recorded: {records}");
        }
    }
}

/// Rules H7, R1
#[test]
fn parts_of_images_of_every_kind_are_mapped_between_kernels() {
    let Some(bench) = images::bench() else { return };
    let queue = &bench.queue;
    for kind in ImageKind::ALL {
        let (kernel, whole) = (mirror(&bench, kind), shape(kind).region());
        let origin = whole.map(|size| usize::from(size > 2));
        let region = [0, 1, 2].map(|dim| whole[dim] - origin[dim]);
        let paint = |rows: &mut MappedImage<Pixel, MapWrite>| -> clgraph::Result<()> {
            let [_, height, depth] = rows.region();
            for (z, y) in (0..depth).flat_map(|z| (0..height).map(move |y| (z, y))) {
                rows.row_mut(y, z)?.iter_mut().zip(1..).for_each(|(pixel, x)| pixel[0] = x + y as u8 + 10 * z as u8);
            }
            Ok(())
        };
        let mut expected = mirrored(&numbered(len(kind), 1), kind, 1);
        for (z, y) in (0..region[2]).flat_map(|z| (0..region[1]).map(move |y| (z, y))) {
            let row = ((z + origin[2]) * whole[1] + y + origin[1]) * whole[0] + origin[0];
            expected[row..row + region[0]]
                .iter_mut()
                .zip(1..)
                .for_each(|(pixel, x)| pixel[0] = x + y as u8 + 10 * z as u8);
        }
        for (path, records) in images::PATHS.into_iter().flat_map(|path| [(path, false), (path, true)]) {
            let [from, into] = [1, 2].map(|seed| image(&bench, kind, seed));
            let graph = bench.graph();
            // SAFETY: a work-item writes its own pixel.
            unsafe { graph.kernel(&kernel).read(&from).write(&into).arg(1_u32).range(whole).add() }.unwrap();
            let map = MapWrite;
            if records {
                let record = || {
                    // SAFETY: only this graph uses the image.
                    let run =
                        unsafe { queue.enqueue_map_image(&into, origin, region, map, move |_, rows| paint(rows), &[]) };
                    run.map(drop)
                };
                graph.record(queue, record).unwrap();
            } else {
                // SAFETY: as above.
                unsafe { graph.map_image(&into, origin, region, map, move |_, rows| paint(rows)) }.add().unwrap();
            }
            let executable = graph.finalize(Finalize::new().path(path)).unwrap();
            executable.submit(queue).unwrap();
            assert_eq!(images::content(queue, &into), expected, "{kind} {path:?} recorded: {records}");
        }
    }
}

/// Rules H7, R1: on a queue that executes, a map comes after earlier commands, and later commands wait for it.
#[test]
fn queues_map_for_a_function_at_once() {
    let bench = Bench::new();
    for queue in [&bench.queue, &bench.another_queue(true)] {
        for kind in kinds(queue) {
            let a = memory(queue, kind, &[0; LEN]);
            let fill = queue.enqueue_fill_buffer(&a, &[7], 0, LEN * 4, &[]).unwrap();
            // SAFETY: only these commands use the memory, in this order.
            let map = unsafe { queue.enqueue_map(&a, MapWrite, |_, numbers| double(numbers), &[&fill]) }.unwrap();
            let b = bench.buffer(&[0; LEN]);
            let copy = queue.enqueue_copy_buffer(&a, &b, 0, 0, LEN * 4, &[&map.event().unwrap()]).unwrap();
            copy.wait().unwrap();
            assert_eq!(bench.content(&b), each(|i| 14 + i), "{kind}");
            map.wait().unwrap();
        }
    }
}

/// A node that maps memory and does nothing with it.
fn map<M: MapMode>(graph: &Graph, memory: &MemorySlice<u32>, mode: M) -> clgraph::Node {
    // SAFETY: only this graph uses the memory.
    unsafe { graph.map(memory, mode, |_, _: &mut Mapped<u32, M>| ()) }.add().unwrap()
}

/// Rules H7, D1: the mode and the part decide what waits for what.
#[test]
fn the_mode_and_the_part_make_the_edges() {
    let bench = Bench::new();
    let memory = memory(&bench.queue, MemoryKind::Buffer, &[0; LEN]);
    let part = |at: usize| memory.slice(at * PART..(at + 1) * PART).unwrap();
    let graph = bench.graph();
    let fill = graph.fill(&part(0), 1).add().unwrap();
    let (one, two) = (map(&graph, &part(0), MapRead), map(&graph, &part(0), MapRead));
    let (beside, write) = (map(&graph, &part(1), MapWrite), map(&graph, &part(0), MapWriteInvalidate));
    let predecessors = graph.predecessors(write).unwrap();
    assert_eq!((graph.predecessors(one).unwrap(), graph.predecessors(two).unwrap()), (vec![fill], vec![fill]));
    assert!(graph.predecessors(beside).unwrap().is_empty());
    assert!(
        predecessors.contains(&one) && predecessors.contains(&two) && !predecessors.contains(&beside),
        "{predecessors:?}"
    );
    bench.run(&graph);
}

/// Rule H7: tasks side by side map the same bytes for reading. PoCL takes one thread's unmap for that of another.
#[test]
fn several_tasks_map_the_same_memory_at_once() {
    const TASKS: usize = 8;
    let bench = Bench::new();
    let images = bench.queue.device().caps().images.is_some();
    for kind in kinds(&bench.queue) {
        let memory = memory(&bench.queue, kind, &each(|i| i));
        let image = (images && kind == MemoryKind::Buffer).then(|| image(&bench, ImageKind::Image2d, 1));
        let graph = bench.graph();
        for _ in 0..TASKS {
            // SAFETY: of both: nothing writes.
            unsafe {
                graph.map(&memory, MapRead, |_, numbers| {
                    if **numbers == *each(|i| i) { Ok(()) } else { Err(format!("{:?}...", &numbers[..4])) }
                })
            }
            .add()
            .unwrap();
            let Some(image) = &image else { continue };
            let size = image.shape().region();
            // SAFETY: as above.
            unsafe {
                graph.map_image(image, [0; 3], size, MapRead, move |_, rows: &mut MappedImage<Pixel>| {
                    let row = rows.row(size[1] - 1, 0).unwrap_or_default();
                    if numbered(len(ImageKind::Image2d), 1).ends_with(row) { Ok(()) } else { Err("another row") }
                })
            }
            .add()
            .unwrap();
        }
        let executable = graph.finalize(Finalize::new()).unwrap();
        for _ in 0..20 {
            executable.submit(&bench.queue).unwrap().wait().unwrap();
        }
    }
}

/// Rule H7: memory is mapped while other branches have not even begun.
#[test]
fn a_map_waits_for_nothing_that_it_is_not_after() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[1; LEN]), bench.buffer(&[2; LEN]));
    let graph = bench.graph();
    let (open, door) = mpsc::channel();
    let held = graph.host_task(move |_| door.recv_timeout(Duration::from_secs(60)).expect("nobody opened the door"));
    let held = held.add().unwrap();
    graph.fill(&b, 5).after(held).add().unwrap();
    let (sender, receiver) = mpsc::channel();
    // SAFETY: only this graph uses the buffer.
    let map = unsafe { graph.map(&a, MapRead, move |_, numbers| sender.send(numbers[LEN - 1])) };
    map.add().unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
    assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok(1));
    open.send(()).unwrap();
    run.wait().unwrap();
    assert_eq!(bench.content(&b), [5; LEN]);
}

/// Rule H7: several memories in one function.
#[test]
fn a_task_maps_as_much_as_it_likes() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let of = elsewhere().buffer(&[0; 4]);
    for kind in kinds(queue) {
        let [a, b] = [memory(queue, kind, &each(|i| i)), memory(queue, kind, &[0; LEN])];
        let (from, into, of) = (a.clone(), b.clone(), of.clone());
        let graph = bench.graph();
        graph.fill(&a.slice(..PART).unwrap(), 9).add().unwrap();
        let task = graph.host_task(move |task| -> clgraph::Result<()> {
            // SAFETY: of all here: only this graph uses the memory, and the node says that it does.
            let (from, mut into) = unsafe { (task.map(&from, MapRead)?, task.map(&into, MapWriteInvalidate)?) };
            into.copy_from_slice(&from);
            into.unmap()?;
            // SAFETY: an error.
            let other = unsafe { task.map(&of, MapRead) };
            assert_error!(other, BuildCause::OtherContext { .. });
            Ok(())
        });
        task.reads(&a).writes(&b).add().unwrap();
        graph.copy(&b.slice(..PART).unwrap(), &b.slice(PART..2 * PART).unwrap()).add().unwrap();
        graph.finalize(Finalize::new()).unwrap().submit(queue).unwrap();
        assert_eq!(content(queue, &b), each(|i| if (i as usize) < 2 * PART { 9 } else { i }), "{kind}");
    }
    let Some(bench) = images::bench() else { return };
    let [a, b] = [1, 2].map(|seed| image(&bench, ImageKind::Image2d, seed));
    let (from, into, size) = (a.clone(), b.clone(), a.shape().region());
    let graph = bench.graph();
    let task = graph.host_task(move |task| -> clgraph::Result<()> {
        // SAFETY: as above.
        let from = unsafe { task.map_image::<Pixel, _>(&from, [0; 3], size, MapRead)? };
        // SAFETY: as above.
        let mut into = unsafe { task.map_image::<Pixel, _>(&into, [0; 3], size, MapWriteInvalidate)? };
        for y in 0..size[1] {
            into.row_mut(y, 0)?.copy_from_slice(from.row(size[1] - 1 - y, 0).unwrap());
        }
        Ok(())
    });
    task.reads(&a).writes(&b).add().unwrap();
    bench.run(&graph);
    let rows: Vec<Vec<Pixel>> = numbered(len(ImageKind::Image2d), 1).chunks(size[0]).rev().map(<[_]>::to_vec).collect();
    assert_eq!(images::content(&bench.queue, &b), rows.concat());
}

/// Rules H7, H3, E2: the device gets the memory back, however the function ends.
#[test]
fn a_function_that_fails_leaves_the_memory_unmapped() {
    let bench = Bench::new();
    let queue = &bench.queue;
    for kind in kinds(queue) {
        let a = memory(queue, kind, &[0; LEN]);
        let graph = bench.graph();
        let mut turn = 0;
        // SAFETY: only this graph uses the memory.
        let map = unsafe {
            graph.map(&a, MapWrite, move |_, numbers| {
                turn += 1;
                numbers[0] += turn;
                match turn {
                    1 => Err("no more today"),
                    2 => panic!("out of paint"),
                    _ => Ok(()),
                }
            })
        };
        map.add().unwrap();
        graph.fill(&a.slice(PART..).unwrap(), 3).add().unwrap();
        let executable = graph.finalize(Finalize::new()).unwrap();
        assert_eq!(failure(executable.submit(queue).unwrap().wait()), "no more today");
        assert_eq!(failure(executable.submit(queue).unwrap().wait()), "it panicked: out of paint");
        executable.submit(queue).unwrap().wait().unwrap();
        assert_eq!((content(queue, &a)[0], content(queue, &a)[PART]), (6, 3), "{kind}");
    }
}

/// Rules H7, H4, U2, C1, N1: a map can be updated, be part of a command group, and be in sub-graphs, like every host
/// task.
#[test]
fn maps_are_updated_and_used_as_host_tasks_are() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let (a, b) = (memory(queue, MemoryKind::Buffer, &[1; LEN]), memory(queue, MemoryKind::Buffer, &[1; LEN]));
    let graph = bench.graph();
    // SAFETY: of all maps here: only these graphs use the memory, one after the other.
    let adding = |to: &Memory<u32>, by: u32| unsafe {
        graph.map(to, MapWrite, move |_, numbers| numbers.iter_mut().for_each(|n| *n += by))
    };
    let node = adding(&a, 10).add().unwrap();
    let group = graph.host_task_group([adding(&b, 100), adding(&b, 200)]).unwrap();
    let either = graph.command_group_node(&group).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    let go = || {
        executable.submit(queue).unwrap().wait().unwrap();
        (content(queue, &a)[LEN - 1], content(queue, &b)[LEN - 1])
    };
    assert_eq!(go(), (11, 101));
    adding(&a, 1000).replace(node).unwrap();
    group.set_active_index(1).unwrap();
    assert_eq!(go(), (21, 201));
    executable.update(&[node, either]).unwrap();
    assert_eq!(go(), (1021, 401));
    // Other memory.
    adding(&b, 5).replace(node).unwrap();
    assert_error!(
        executable.update(&node),
        UpdateError::Conflict { first, second, .. } if [*first, *second] == [node, either],
        "nothing orders the two",
    );
    let parent = bench.graph();
    // SAFETY: nothing else runs.
    parent.sub_graph(&executable).add().unwrap();
    parent.fill(&a.slice(..PART).unwrap(), 4).add().unwrap();
    bench.run(&parent);
    assert_eq!((content(queue, &a)[0], content(queue, &a)[LEN - 1], content(queue, &b)[0]), (4, 2021, 601));
}

/// Rules H7, R15, R16: errors are reported when the node is added, and name what can be recorded instead.
#[test]
fn what_cannot_be_mapped_is_refused_before_it_is_a_node() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let graph = bench.graph();
    let buffer = bench.buffer(&[0; LEN]);
    // SAFETY: of all here: errors, and nothing runs.
    let map = |buffer: &Buffer<u32>| unsafe { graph.map(buffer, MapRead, |_, _: &mut Mapped<u32>| ()) }.add();
    // SAFETY: as above.
    let enqueue = |buffer: &Buffer<u32>| unsafe {
        queue.enqueue_map(buffer, MapRead, |_, _: &mut Mapped<u32>| (), &[]).map(drop)
    };
    let foreign = elsewhere().buffer(&[0; 4]);
    let of_context = |result: clgraph::Result<()>, by: &str| {
        assert_error!(
            result,
            BuildError { subject, cause, .. } if subject == by && matches!(**cause, BuildCause::OtherContext { .. }),
        );
    };
    of_context(map(&foreign).map(drop), "map (to be node 0)");
    of_context(enqueue(&foreign).map(drop), "map");
    // SAFETY: as above.
    let empty = unsafe { graph.map(&buffer.slice(1..1).unwrap(), MapRead, |_, _: &mut Mapped<u32>| ()) };
    assert_error!(empty.add(), BuildCause::Memory(MemoryError::Empty { what: "a map" }));
    if queue.device().caps().has_memory(MemoryKind::UsmDevice) {
        let of_device = memory(queue, MemoryKind::UsmDevice, &[0; 4]);
        let refused = cause(doubling(&graph, &of_device.slice(..).unwrap()).add());
        assert!(
            matches!(refused, BuildCause::Memory(MemoryError::NotHostAccessible { kind: MemoryKind::UsmDevice })),
            "{refused:?}"
        );
    }
    let owned = graph.alloc::<u32>(LEN).add().unwrap();
    // SAFETY: as above.
    let refused = unsafe { graph.map(&owned, MapRead, |_, _: &mut Mapped<u32>| ()) };
    assert_error!(
        refused.add(),
        BuildCause::NotSupported { why, .. } if why.contains("use a host read or a host write"),
    );
    // SAFETY: as above.
    let at_once = unsafe { queue.enqueue_map(&owned, MapRead, |_, _: &mut Mapped<u32>| (), &[]) };
    assert_error!(
        at_once,
        BuildCause::NotSupported { what, .. } if what == "mapping memory that a graph owns",
    );
    assert_eq!(graph.nodes().len(), 1, "no node came of it");

    let recording = graph.record(queue, || {
        // SAFETY: as above.
        unsafe { queue.map(&buffer, MapRead, &[]) }.map(drop)
    });
    assert_error!(
        recording,
        RecordError::NotRecordable { what: "mapping memory", instead } if instead.contains("use `enqueue_map`"),
    );

    let Some(bench) = images::bench() else { return };
    let (graph, image) = (bench.graph(), image(&bench, ImageKind::Image2d, 1));
    let part = |origin, region| {
        // SAFETY: as above.
        unsafe { graph.map_image(&image, origin, region, MapRead, |_, _: &mut MappedImage<Pixel>| ()) }.add()
    };
    assert!(matches!(cause(part([5, 0, 0], [5, 1, 1])), BuildCause::ImageArea { .. }));
    assert_error!(part([0; 3], [0, 1, 1]), BuildCause::Memory(MemoryError::Empty { what: "a map" }));
    // SAFETY: as above.
    let odd = unsafe { graph.map_image(&image, [0; 3], [1, 1, 1], MapRead, |_, _: &mut MappedImage<[u8; 3]>| ()) };
    assert_eq!(odd.add().unwrap_err().kind(), ErrorKind::FeatureNotSupported);
    let recording = graph.record(&bench.queue, || {
        // SAFETY: as above.
        unsafe { bench.queue.map_image::<Pixel, _>(&image, [0; 3], [1, 1, 1], MapRead, &[]) }.map(drop)
    });
    assert_error!(
        recording,
        RecordError::NotRecordable { what: "mapping an image", instead } if instead.contains("use `enqueue_map_image`"),
    );
    assert!(graph.nodes().is_empty());
}

/// Four threads with a queue each.
fn four_threads(bench: &Bench, each: impl Fn(&Queue, usize) + Sync) {
    std::thread::scope(|scope| {
        for at in 0..4 {
            let each = &each;
            scope.spawn(move || each(&bench.another_queue(false), at));
        }
    });
}

/// Rule H7: maps of the same bytes by several queues, executables and calls at once. PoCL takes one map for another,
/// and Intel's runtime refuses unmaps of overlapping parts at the same time.
#[test]
fn several_queues_map_the_same_memory_at_once() {
    const ROUNDS: usize = 50;
    let bench = Bench::new();
    let a = bench.buffer(&[5; LEN]);
    let image = bench.queue.device().caps().images.is_some().then(|| image(&bench, ImageKind::Image2d, 1));
    let parts = [0..LEN, 0..PART, PART..2 * PART, 0..64].map(|part| a.slice(part).unwrap());
    let fives = |numbers: &[u32]| if numbers.iter().all(|n| *n == 5) { Ok(()) } else { Err("other numbers") };
    four_threads(&bench, |queue, at| {
        let graph = bench.graph();
        // SAFETY: of all maps here: nothing writes.
        unsafe { graph.map(&a, MapRead, move |_, numbers| fives(numbers)) }.add().unwrap();
        for part in &parts {
            // SAFETY: as above.
            unsafe { graph.map(part, MapRead, move |_, numbers| fives(numbers)) }.add().unwrap();
        }
        let executable = graph.finalize(Finalize::new()).unwrap();
        for _ in 0..ROUNDS {
            executable.submit(queue).unwrap().wait().unwrap();
            // SAFETY: as above.
            let run = unsafe { queue.enqueue_map(&parts[at], MapRead, move |_, numbers| fives(numbers), &[]) };
            // SAFETY: as above.
            let mapped = unsafe { queue.map(&parts[at], MapRead, &[]) }.unwrap();
            fives(&mapped).unwrap();
            run.unwrap().wait().unwrap();
            mapped.unmap().unwrap();
            let Some(image) = &image else { continue };
            let size = image.shape().region();
            // SAFETY: as above.
            let mapped = unsafe { queue.map_image::<Pixel, _>(image, [0; 3], size, MapRead, &[]) }.unwrap();
            assert_eq!(mapped.row(0, 0).unwrap()[1], numbered(2, 1)[1]);
        }
    });
}

/// Rules H7, S4: a map for the caller waits for a submission that maps the same memory, and neither unmaps the other's.
#[test]
fn a_queue_maps_what_a_task_of_it_has_mapped() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let a = bench.buffer(&[0; LEN]);
    let graph = bench.graph();
    // SAFETY: of both: the queue is in order, and only it uses the buffer.
    let map = unsafe {
        graph.map(&a, MapWrite, |_, numbers| {
            std::thread::sleep(Duration::from_millis(5));
            numbers[0] += 1;
        })
    };
    map.add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    for turn in 1..=10 {
        let run = executable.submit(queue).unwrap();
        // SAFETY: as above.
        let mapped = unsafe { queue.map(&a, MapRead, &[]) }.unwrap();
        assert_eq!(mapped[0], turn);
        mapped.unmap().unwrap();
        run.wait().unwrap();
    }
}

/// Rule H7: a function maps one memory several times, and unmaps in any order.
#[test]
fn a_function_maps_one_memory_several_times() {
    let bench = Bench::new();
    let a = bench.buffer(&[5; LEN]);
    for order in [[0, 1, 2], [1, 0, 2], [2, 1, 0], [1, 2, 0]] {
        let (graph, of) = (bench.graph(), a.clone());
        let task = graph.host_task(move |task| -> clgraph::Result<()> {
            let parts = [0..LEN, 0..10, PART..LEN];
            // SAFETY: nothing writes.
            let map = |part| unsafe { task.map(&of.slice(part)?, MapRead) }.map(Some);
            let [one, two, three] = parts.map(map);
            let mut mapped = [one?, two?, three?];
            for at in order {
                assert!(mapped.iter().flatten().all(|mapped| mapped.iter().all(|n| *n == 5)));
                mapped[at].take().map_or(Ok(()), Mapped::unmap)?;
            }
            Ok(())
        });
        task.reads(&a).add().unwrap();
        let executable = graph.finalize(Finalize::new()).unwrap();
        for _ in 0..20 {
            executable.submit(&bench.queue).unwrap().wait().unwrap();
        }
    }
}

/// Rules H7, D1: tasks can map what their node declares, in the declared mode.
#[test]
fn a_task_maps_nothing_that_its_node_does_not_name() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]));
    let graph = bench.graph();
    let owned = graph.alloc::<u32>(LEN).add().unwrap();
    let (of, other, graphs) = (a.clone(), b.clone(), owned.clone());
    let (c, d) = (bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]));
    let (halves, both) = (c.clone(), d.clone());
    let task = graph.host_task(move |task| {
        fn map(task: &HostTaskContext<'_>, memory: &BufferSlice<u32>, mode: impl MapMode) -> clgraph::Result<()> {
            // SAFETY: of all here: nothing else runs.
            unsafe { task.map(memory, mode) }.map(drop)
        }
        let part = |range: std::ops::Range<usize>| of.slice(range).unwrap();
        map(task, &part(0..PART), MapRead).unwrap();
        map(task, &part(0..PART), MapWrite).unwrap_err();
        map(task, &part(PART..LEN), MapWriteInvalidate).unwrap();
        map(task, &part(0..LEN), MapRead).unwrap_err();
        let refused = map(task, &other.slice(..).unwrap(), MapRead);
        assert!(matches!(cause(refused), BuildCause::Undeclared { access: "reads", by: "reads" }));
        let refused = map(task, &other.slice(..).unwrap(), MapWrite).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert_error!(refused, BuildCause::Undeclared { access: "reads and writes", by: "reads_and_writes" });
        // Several declarations of one memory count together.
        map(task, &halves.slice(..).unwrap(), MapRead).unwrap();
        map(task, &halves.slice(..).unwrap(), MapWriteInvalidate).unwrap_err();
        map(task, &both.slice(..).unwrap(), MapWrite).unwrap();
        // SAFETY: as above.
        let of_graph = unsafe { task.map(&graphs, MapRead) };
        assert_error!(
            of_graph,
            BuildCause::NotSupported { why, .. } if why.contains("use a host read or a host write"),
        );
    });
    let task = task.reads(&c.slice(PART..).unwrap()).reads(&c.slice(..PART).unwrap()).reads(&d).writes(&d);
    task.reads(&a.slice(..PART).unwrap()).writes(&a.slice(PART..).unwrap()).reads(&owned).add().unwrap();
    bench.run(&graph);
}

/// Rules H7, D1: an image and the buffer that it is made of are different memory, and so are layers.
#[test]
fn a_task_maps_images_that_its_node_names() {
    let Some(bench) = images::bench() else { return };
    let graph = bench.graph();
    let buffer = Buffer::from_slice(&bench.queue, &[[1_u8; 4]; LEN]).unwrap();
    let row = Image::from_buffer(&bench.queue, &buffer, images::FORMAT).unwrap();
    let layers = image(&bench, ImageKind::Image2dArray, 1);
    let size = layers.shape().region();
    let (of, over, stack) = (buffer.clone(), row.clone(), layers.clone());
    let by_buffer = graph.host_task(move |task| {
        // SAFETY: of all here: nothing else runs.
        let refused = unsafe { task.map_image::<Pixel, _>(&over, [0; 3], [PART, 1, 1], MapRead) }.map(drop);
        assert!(matches!(cause(refused), BuildCause::Undeclared { .. }), "it is ordered as the buffer is");
        // SAFETY: as above.
        drop(unsafe { task.map(&of, MapRead) }.unwrap());
    });
    let by_buffer = by_buffer.reads(&buffer).add().unwrap();
    let over = row.clone();
    let by_image = graph.host_task(move |task| {
        // SAFETY: as above.
        drop(unsafe { task.map_image::<Pixel, _>(&over, [0; 3], [PART, 1, 1], MapWrite) }.unwrap());
        // SAFETY: as above.
        let layer = |z| unsafe { task.map_image::<Pixel, _>(&stack, [0, 0, z], [size[0], size[1], 1], MapRead) };
        assert_eq!(layer(1).unwrap().row(0, 0).unwrap().len(), size[0]);
        assert!(matches!(cause(layer(0).map(drop)), BuildCause::Undeclared { .. }));
    });
    let by_image = by_image.reads_and_writes(&row).reads(&layers.layers(1..2).unwrap()).add().unwrap();
    let beside = graph.fill(&buffer.slice(2 * PART..).unwrap(), [3; 4]).add().unwrap();
    assert_eq!(graph.predecessors(by_image).unwrap(), [by_buffer]);
    assert!(graph.predecessors(beside).unwrap().contains(&by_image));
    bench.run(&graph);
}

/// Rule H7: nodes that map are called `map` if they have no label.
#[test]
fn maps_are_called_by_what_they_are() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; LEN]);
    let graph = bench.graph();
    // SAFETY: nothing runs.
    let map = || unsafe { graph.map(&a, MapWrite, |_, _| ()) };
    let plain = || graph.host_task(|_| ()).reads_and_writes(&a);
    let called = |node| graph.label(node).unwrap();
    let node = map().add().unwrap();
    assert_eq!(called(node).as_deref(), Some("map"));
    plain().replace(node).unwrap();
    assert_eq!(called(node), None);
    map().replace(node).unwrap();
    assert_eq!(called(node).as_deref(), Some("map"));
    map().label("sort").replace(node).unwrap();
    plain().replace(node).unwrap();
    assert_eq!(called(node).as_deref(), Some("sort"));
    // Without a label it has its own name again; a label stays, whatever it says.
    graph.set_label(node, "").unwrap();
    assert_eq!(called(node), None);
    graph.set_label(node, "map").unwrap();
    plain().replace(node).unwrap();
    assert_eq!(called(node).as_deref(), Some("map"));
    let group = graph.host_task_group([map(), plain()]).unwrap();
    let node = graph.command_group_node(&group).add().unwrap();
    assert_eq!(called(node).as_deref(), Some("map"));
    group.set_active_index(1).unwrap();
    assert_eq!(called(node), None);
    // SAFETY: nothing else uses the buffer.
    let run = unsafe { bench.queue.enqueue_map(&a, MapRead, |_, _: &mut Mapped<u32>| Err("no"), &[]) };
    assert_error!(
        run.unwrap().wait(),
        SubmitError::HostTask { what, text, .. } if what == "host task, \"map\"" && text == "no",
    );
}

/// Returns whether something holds each time, while kernels run on another queue over other memory.
fn beside_kernels(bench: &Bench, holds: impl Fn(u32) -> clgraph::Result<bool>) -> clgraph::Result<bool> {
    let a = bench.buffer(&[1; LEN]);
    let graph = bench.graph();
    for _ in 0..20 {
        // SAFETY: a work-item touches its own element.
        unsafe { graph.kernel(&bench.kernel("stir")).read_write(&a).range(LEN).add() }.unwrap();
    }
    let executable = graph.finalize(Finalize::new()).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                executable.submit(&bench.queue).unwrap().wait().unwrap();
            }
        });
        let outcome = (0..500).map(&holds).find(|outcome| !matches!(outcome, Ok(true)));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        outcome.unwrap_or(Ok(true))
    })
}

/// Rule H7: kernels that run on another queue over other memory do not disturb maps, nor maps the kernels.
#[test]
fn maps_go_on_beside_kernels() {
    let bench = Bench::new();
    let (b, queue) = (bench.buffer(&[0; LEN]), bench.another_queue(false));
    let outcome = beside_kernels(&bench, |turn| {
        // SAFETY: only these maps use the buffer.
        let mut mapped = unsafe { queue.map(&b, MapWriteInvalidate, &[])? };
        mapped.fill(turn);
        mapped.unmap()?;
        // SAFETY: as above.
        let mapped = unsafe { queue.map(&b, MapRead, &[])? };
        Ok(mapped.iter().all(|n| *n == turn))
    });
    assert!(outcome.unwrap());
}

/// Rule H7: the same for maps of images, which drivers may copy.
#[test]
fn maps_of_images_go_on_beside_kernels() {
    let Some(bench) = images::bench() else { return };
    let image = image(&bench, ImageKind::Image2d, 1);
    let (size, queue) = (image.shape().region(), bench.another_queue(false));
    let outcome = beside_kernels(&bench, |turn| {
        let pixel: Pixel = turn.to_le_bytes();
        // SAFETY: only these maps use the image.
        let mut mapped = unsafe { queue.map_image::<Pixel, _>(&image, [0; 3], size, MapWriteInvalidate, &[])? };
        for row in 0..size[1] {
            mapped.row_mut(row, 0)?.fill(pixel);
        }
        mapped.unmap()?;
        // SAFETY: as above.
        let mapped = unsafe { queue.map_image::<Pixel, _>(&image, [0; 3], size, MapRead, &[])? };
        Ok((0..size[1]).all(|row| mapped.row(row, 0).is_some_and(|row| row.iter().all(|n| *n == pixel))))
    });
    assert!(outcome.unwrap());
}

/// Rule H7: every queue sees what was written as soon as it is unmapped.
#[test]
fn other_queues_find_what_was_unmapped() {
    const MANY: usize = 1 << 16;
    let bench = Bench::new();
    let (one, other) = (bench.another_queue(true), bench.another_queue(false));
    let a = bench.buffer(&vec![0; MANY]);
    let graph = bench.graph();
    let result = graph.read(&a).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    for turn in (2..60).step_by(2) {
        for (number, explicit) in [(turn, true), (turn + 1, false)] {
            // SAFETY: nothing else uses the buffer meanwhile.
            let mut mapped = unsafe { one.map(&a, MapWriteInvalidate, &[]) }.unwrap();
            mapped.fill(number);
            if explicit {
                mapped.unmap().unwrap()
            } else {
                drop(mapped)
            }
            let mut data = vec![0; MANY];
            other.enqueue_read_buffer(&a, 0, &mut data, &[]).unwrap();
            assert!(data.iter().all(|n| *n == number), "{number}: {} {}", data[0], data[MANY - 1]);
        }
        let run = executable.submit(&other).unwrap();
        run.wait().unwrap();
        assert!(run.get(&result).unwrap().iter().all(|n| *n == turn + 1));
    }
}

/// Rules H7, D1: images by the part that is mapped, by layers, and beside their buffer.
#[test]
fn parts_of_images_make_the_edges() {
    let Some(bench) = images::bench() else { return };
    let graph = bench.graph();
    fn map<M: MapMode>(graph: &Graph, image: &Image, origin: [usize; 3], region: [usize; 3], mode: M) -> clgraph::Node {
        // SAFETY: only this graph uses the images.
        unsafe { graph.map_image(image, origin, region, mode, |_, _: &mut MappedImage<Pixel, M>| ()) }.add().unwrap()
    }
    let layers = image(&bench, ImageKind::Image2dArray, 1);
    let size = layers.shape().region();
    let first = map(&graph, &layers, [0; 3], [size[0], size[1], 1], MapWrite);
    let second = map(&graph, &layers, [0, 0, 1], [size[0], size[1], 1], MapWrite);
    let both = map(&graph, &layers, [0; 3], [size[0], size[1], 2], MapRead);
    assert!(graph.predecessors(second).unwrap().is_empty());
    let predecessors = graph.predecessors(both).unwrap();
    assert!(predecessors.contains(&first) && predecessors.contains(&second), "{predecessors:?}");
    let buffer = Buffer::from_slice(&bench.queue, &[[1_u8; 4]; LEN]).unwrap();
    let row = Image::from_buffer(&bench.queue, &buffer, images::FORMAT).unwrap();
    let fill = graph.fill(&buffer.slice(..PART).unwrap(), [2; 4]).add().unwrap();
    let over = map(&graph, &row, [PART / 2, 0, 0], [PART, 1, 1], MapWrite);
    let beside = map(&graph, &row, [2 * PART, 0, 0], [PART, 1, 1], MapWrite);
    // A use of a buffer is ordered against every use of its image (D1); uses of the image are ordered by their parts.
    assert_eq!((graph.predecessors(over).unwrap(), graph.predecessors(beside).unwrap()), (vec![fill], vec![fill]));
    assert_eq!(graph.label(over).unwrap().as_deref(), Some("map of an image"));
    let executable = bench.run(&graph);
    assert!(executable.report().to_string().contains("map of an image"), "{}", executable.report());
    let foreign = images::image(elsewhere(), ImageKind::Image2d, 1);
    // SAFETY: errors.
    let refused = unsafe { graph.map_image(&foreign, [0; 3], [1, 1, 1], MapRead, |_, _: &mut MappedImage<Pixel>| ()) };
    assert!(matches!(cause(refused.add()), BuildCause::OtherContext { .. }));
}
