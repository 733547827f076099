//! Memory that a graph owns: which allocations share bytes, and that results do not show it.

mod common;

use clgraph::{
    BuildCause, BuildError, Error, ErrorKind, Executable, ExecuteKernel, Finalize, FinalizeError, Graph, GraphMemory,
    MemoryError, MemoryPool, Node, NodeKind, Parameter, Path, PoolKind, Queue, RecordError, UpdateError,
};
use common::{Bench, UserEvent, assert_error, elsewhere};
use quickcheck::{Arbitrary, Gen};

const LEN: usize = 1024;

fn finalize(graph: &Graph, path: Path) -> Executable {
    graph.finalize(Finalize::new().path(path)).unwrap()
}

fn alloc(graph: &Graph) -> GraphMemory<u32> {
    graph.alloc(LEN).add().unwrap()
}

fn run(executable: &Executable, queue: &Queue) {
    executable.submit(queue).unwrap().wait().unwrap();
}

/// Rules M1, M2, M3, D1
#[test]
fn temporaries_of_a_chain_share_two_places() {
    let bench = Bench::new();
    let (input, out) = (bench.buffer(&[1; LEN]), bench.buffer(&[0; LEN]));
    let graph = bench.graph();
    let mut last = alloc(&graph);
    let first = graph.copy(&input, &last).add().unwrap();
    assert_eq!(graph.kind(last.node()).unwrap(), NodeKind::Alloc);
    assert_eq!(graph.predecessors(first).unwrap(), [last.node()]);
    let mut expected: Vec<u32> = vec![1; LEN];
    for round in 0..50 {
        let next = alloc(&graph);
        // SAFETY: a work-item touches its own element.
        let node = unsafe {
            graph.kernel(&bench.kernel("scale")).read(&last).write(&next).arg(round).range(LEN).add().unwrap()
        };
        let free = graph.free(&last).add().unwrap();
        assert_eq!(graph.kind(free).unwrap(), NodeKind::Free);
        assert!(graph.predecessors(free).unwrap().contains(&node), "a free waits for all uses");
        expected.iter_mut().for_each(|value| *value = value.wrapping_mul(3).wrapping_add(round));
        last = next;
    }
    graph.copy(&last, &out).add().unwrap();
    graph.free(&last).add().unwrap();
    for path in [Path::Replay, Path::Native, Path::Auto] {
        let executable = finalize(&graph, path);
        let place = (LEN * 4).next_multiple_of(bench.queue.device().caps().sub_buffer_align);
        assert_eq!(executable.required_memory(), 2 * place);
        let memory = &executable.report().memory;
        assert_eq!((memory.bytes_apart, memory.allocations.len()), (51 * place, 51));
        assert!(executable.report().to_string().contains("51 allocations in 1 buffer, without sharing"));
        for _ in 0..3 {
            run(&executable, &bench.queue);
            assert_eq!(bench.content(&out), expected, "{path}");
        }
        let apart = graph.finalize(Finalize::new().path(path).separate_memory()).unwrap();
        assert_eq!(apart.required_memory(), 51 * place);
        run(&apart, &bench.queue);
        assert_eq!(bench.content(&out), expected, "{path}");
    }
    assert_eq!(bench.graph().finalize(Finalize::new()).unwrap().required_memory(), 0);
}

/// Rules M4, M8
#[test]
fn what_is_not_freed_keeps_its_content_and_zeros_are_there_once() {
    let bench = Bench::new();
    let out = bench.buffer(&[9; LEN]);
    for path in [Path::Replay, Path::Native] {
        let graph = bench.graph();
        // An allocation that lives before, and with which the zeros must not share bytes.
        let before = alloc(&graph);
        graph.fill(&before, 77).add().unwrap();
        graph.copy(&before, &out).add().unwrap();
        graph.free(&before).add().unwrap();
        let counter = graph.alloc::<u32>(LEN).zero_init().add().unwrap();
        // SAFETY: a work-item touches its own element.
        unsafe { graph.kernel(&bench.kernel("stir")).read_write(&counter).range(LEN).add().unwrap() };
        graph.copy(&counter, &out).add().unwrap();
        for _ in 0..2 {
            let executable = finalize(&graph, path);
            let mut expected = vec![0_u32; LEN];
            for _ in 0..3 {
                run(&executable, &bench.queue);
                (0..).zip(&mut expected).for_each(|(at, value)| *value = value.wrapping_mul(5).wrapping_add(at));
                assert_eq!(bench.content(&out), expected, "{path}");
            }
        }
    }
}

/// Rules M5, N3, U7: each executable has its own memory; executables may be in other graphs, and be updated.
#[test]
fn each_executable_has_memory_of_its_own_alone_and_inside_of_others() {
    let bench = Bench::new();
    let (a, b, out) = (bench.buffer(&[1; LEN]), bench.buffer(&[2; LEN]), bench.buffer(&[0; LEN]));
    for path in [Path::Replay, Path::Native] {
        let build = || {
            let graph = bench.graph();
            let (one, two) = (alloc(&graph), alloc(&graph));
            let copy = graph.copy(&a, &one).add().unwrap();
            // SAFETY: a work-item touches its own element.
            unsafe { graph.kernel(&bench.kernel("scale")).read(&one).write(&two).arg(4_u32).range(LEN).add().unwrap() };
            graph.free(&one).add().unwrap();
            let three = alloc(&graph);
            graph.copy(&two, &three).add().unwrap();
            graph.copy(&three, &out).add().unwrap();
            graph.free(&two).add().unwrap();
            graph.free(&three).add().unwrap();
            (graph, one, copy)
        };
        let (graph, one, copy) = build();
        let options = Finalize::new().path(path).updatable();
        let (first, second) = (graph.finalize(options.clone()).unwrap(), graph.finalize(options.clone()).unwrap());
        let check = |executable: &Executable, value: u32| {
            bench.queue.enqueue_fill_buffer(&out, &[0], 0, LEN * 4, &[]).unwrap();
            run(executable, &bench.queue);
            assert_eq!(bench.content(&out), [value; LEN], "{path}");
        };
        check(&first, 7);
        graph.copy(&b, &one).replace(copy).unwrap();
        first.update(&copy).unwrap();
        check(&first, 10);
        check(&second, 7);
        // A whole graph, built alike.
        first.update_from(&build().0).unwrap();
        check(&first, 7);
        let parent = bench.graph();
        parent.sub_graph(&first).add().unwrap();
        let again = parent.sub_graph(&second).add().unwrap().node();
        parent.sub_graph(&first).add().unwrap();
        let parent_executable = parent.finalize(options.clone()).unwrap();
        check(&parent_executable, 7);
        assert_eq!(parent_executable.required_memory(), 0, "its children have theirs");
        second.update_from(&graph).unwrap();
        parent_executable.update(&again).unwrap();
        check(&parent_executable, 7);
        drop((first, second));
        check(&parent_executable, 7);
    }
}

/// Rules M2, M6, M9
#[test]
fn wrong_uses_name_both_nodes_and_nothing_is_made() {
    let bench = Bench::new();
    let out = bench.buffer(&[0; LEN]);
    let refused = |build: &dyn Fn(&Graph, &GraphMemory<u32>)| {
        let graph = bench.graph();
        let memory = alloc(&graph);
        build(&graph, &memory);
        let error = graph.finalize(Finalize::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        (graph.nodes(), error)
    };
    let (nodes, late) = refused(&|graph, memory| {
        graph.free(memory).add().unwrap();
        graph.copy(memory, &out).add().unwrap();
    });
    assert_error!(
        late,
        FinalizeError::GraphMemoryFreed { alloc, freed, node, why: "is used after it is freed", .. }
            if [*alloc, *freed, *node] == nodes[..],
    );
    let (nodes, twice) = refused(&|graph, memory| {
        graph.free(memory).add().unwrap();
        graph.free(memory).add().unwrap();
    });
    assert_error!(
        twice,
        FinalizeError::GraphMemoryFreed { alloc, freed, node, why: "is freed twice", .. }
            if [*alloc, *freed, *node] == nodes[..],
    );
    let graph = bench.graph();
    let memory = alloc(&graph);
    let other = bench.graph();
    for error in
        [other.copy(&memory, &out).add(), other.free(&memory).add(), other.fill(&memory.slice(..1).unwrap(), 1).add()]
    {
        assert_error!(error, BuildCause::GraphMemory { by: "in another graph", .. });
    }
    let queue = &bench.queue;
    let at_once = [
        queue.enqueue_fill_buffer(&memory, &[1], 0, 4, &[]).map(drop),
        queue.enqueue_copy_buffer(&memory, &out, 0, 0, 4, &[]).map(drop),
        queue.enqueue_read_buffer(&memory, 0, &mut [0; 4], &[]).map(drop),
        queue.enqueue_prefetch(&memory, &[]).map(drop),
    ];
    for error in at_once {
        assert_error!(error, BuildCause::GraphMemory { by: "by a queue that executes", .. });
    }
    let align = bench.queue.device().caps().sub_buffer_align;
    if align > 4 {
        assert_error!(memory.slice(1..2), MemoryError::Misaligned { offset: 4, align: to } if *to == align);
    }
    assert_error!(memory.slice(5..5), MemoryError::Empty { what: "a range" });
    assert_error!(
        memory.slice(0..LEN + 1),
        MemoryError::OutOfBounds { what: "elements", start: 0, end: 1025, len: LEN },
    );
    assert_error!(graph.alloc::<u32>(0).add(), BuildCause::Memory(MemoryError::Empty { what: "an allocation" }));
    for len in [usize::MAX, usize::MAX / 4, bench.queue.device().caps().max_allocation as usize / 4 + 1] {
        let error = graph.alloc::<u32>(len).add().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    }
    assert_eq!(graph.len(), 1);
    // Elsewhere there is no such device.
    assert_error!(elsewhere().graph().copy(&memory, &out).add(), BuildCause::OtherContext { .. });
}

/// Rules M1, M7: recorded allocations are the same as built ones, on in-order and out-of-order queues and from several
/// threads.
#[test]
fn recorded_allocations_are_what_built_ones_are() {
    let bench = Bench::new();
    let out = bench.buffer(&[0; LEN]);
    let scale = bench.kernel("scale");
    let bytes = LEN * 4;
    for queue in [bench.queue.clone(), bench.another_queue(true)] {
        let graph = bench.graph();
        let (allocs, frees) = graph
            .record(&queue, || {
                let mut last = queue.enqueue_alloc::<u32>(LEN, &[])?;
                queue.enqueue_fill_buffer(&last, &[1], 0, bytes, &[])?;
                let (mut allocs, mut frees) = (vec![last.node()], Vec::new());
                for round in 0..20_u32 {
                    let next = queue.enqueue_alloc::<u32>(LEN, &[])?;
                    let mut launch = ExecuteKernel::new(&scale);
                    launch.set_arg(&last).set_arg_write(&next).set_arg(&round).set_global_work_size(LEN);
                    // SAFETY: a work-item touches its own element.
                    unsafe { launch.enqueue_nd_range(&queue)? };
                    frees.push(graph.node_of(&queue.enqueue_free(&last, &[])?)?);
                    allocs.push(next.node());
                    last = next;
                }
                queue.enqueue_copy_buffer(&last, &out, 0, 0, bytes, &[])?;
                frees.push(graph.node_of(&queue.enqueue_free(&last, &[])?)?);
                Ok((allocs, frees))
            })
            .unwrap();
        assert!(allocs.iter().all(|node| graph.kind(*node).unwrap() == NodeKind::Alloc));
        assert!(frees.iter().all(|node| graph.kind(*node).unwrap() == NodeKind::Free));
        let expected = (0..20_u32).fold(1, |value: u32, round| value.wrapping_mul(3).wrapping_add(round));
        let place = bytes.next_multiple_of(queue.device().caps().sub_buffer_align);
        for path in [Path::Replay, Path::Native, Path::Auto] {
            let executable = finalize(&graph, path);
            assert_eq!(executable.required_memory(), 2 * place, "{path}");
            for _ in 0..2 {
                queue.enqueue_fill_buffer(&out, &[0], 0, bytes, &[]).unwrap().wait().unwrap();
                run(&executable, &queue);
                assert_eq!(bench.content(&out), [expected; LEN], "{path}");
            }
        }
    }
}

/// Rules M6, M7: errors of a queue, after which nothing was recorded.
#[test]
fn allocations_are_recorded_and_never_executed() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let graph = bench.graph();
    let memory = alloc(&graph);
    assert_error!(queue.enqueue_alloc::<u32>(4, &[]), RecordError::NotRecording);
    assert_error!(queue.enqueue_free(&memory, &[]), RecordError::NotRecording);
    let other = bench.graph();
    let outcome = other.record(queue, || {
        assert_error!(queue.enqueue_free(&memory, &[]), BuildCause::GraphMemory { by: "in another graph", .. });
        assert_error!(
            queue.enqueue_alloc::<u32>(0, &[]),
            BuildCause::Memory(MemoryError::Empty { what: "an allocation" }),
        );
        let error = queue.enqueue_alloc::<u32>(usize::MAX, &[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        for kind in [PoolKind::Host, PoolKind::Shared] {
            assert_error!(
                queue.enqueue_alloc_from_pool::<u32>(MemoryPool::new().kind(kind), 4, &[]),
                BuildCause::Memory(MemoryError::PoolNotOfDevice { kind: given }) if *given == kind,
            );
        }
        Ok(())
    });
    outcome.unwrap();
    assert!(other.is_empty());
    assert_error!(
        graph.alloc::<u32>(4).pool(MemoryPool::new().kind(PoolKind::Host)).add(),
        BuildError { subject, cause, .. }
            if subject.starts_with("allocation")
                && **cause == BuildCause::Memory(MemoryError::PoolNotOfDevice { kind: PoolKind::Host }),
    );
}

/// Rule M7: a pool's settings are applied, except those without effect.
#[test]
fn pools_say_what_is_in_an_allocation() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let (built, recorded) = (bench.buffer(&[9; LEN]), bench.buffer(&[9; LEN]));
    let pool = MemoryPool::new().zero_init().read_only().initial_threshold(1).maximum_size(1);
    let graph = bench.graph();
    let zeros = graph.alloc::<u32>(LEN).pool(pool).add().unwrap();
    graph.copy(&zeros, &built).add().unwrap();
    let outcome = graph.record(queue, || {
        let zeros = queue.enqueue_alloc_from_pool::<u32>(pool, LEN, &[])?;
        queue.enqueue_copy_buffer(&zeros, &recorded, 0, 0, LEN * 4, &[])
    });
    outcome.unwrap();
    run(&finalize(&graph, Path::Auto), queue);
    assert_eq!(bench.content(&built), [0; LEN]);
    assert_eq!(bench.content(&recorded), [0; LEN]);
}

/// Rules U7, P6, M2: an update uses an allocation only while it exists, because at other times its bytes belong to
/// others.
#[test]
fn updates_use_memory_only_while_it_is_there() {
    let bench = Bench::new();
    let (other, out, seen) = (bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]));
    for path in [Path::Replay, Path::Native] {
        // Before, between and after: a fill that an update turns into a fill of `a`.
        let build = |moved: Option<usize>| {
            let graph = bench.graph();
            let target = |at: usize, a: &GraphMemory<u32>| match moved == Some(at) {
                true => graph.fill(a, 9),
                false => graph.fill(&other, 1),
            };
            let before = graph.fill(&other, 1).add().unwrap();
            let a = graph.alloc::<u32>(LEN).after(before).add().unwrap();
            let first = graph.fill(&a, 3).add().unwrap();
            let between = target(1, &a).after([before, first]).add().unwrap();
            let copy = graph.copy(&a, &seen).after([first, between]).add().unwrap();
            let free = graph.free(&a).after([first, between, copy]).add().unwrap();
            let b = graph.alloc::<u32>(LEN).after(free).add().unwrap();
            graph.fill(&b, 7).add().unwrap();
            let later = graph.fill(&other, 1).after([before, between, free]).add().unwrap();
            graph.copy(&b, &out).after(later).add().unwrap();
            (graph, a, [before, between, later])
        };
        let (graph, a, nodes) = build(None);
        let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
        let check = |first: u32| {
            run(&executable, &bench.queue);
            assert_eq!(bench.content(&seen), [first; LEN], "{path}");
            assert_eq!(bench.content(&out), [7; LEN], "{path}");
        };
        check(3);
        for (node, why) in [(nodes[0], "before it is allocated"), (nodes[2], "after it is freed")] {
            graph.fill(&a, 9).replace(node).unwrap();
            let expected = Error::from(UpdateError::GraphMemory { node, alloc: a.node(), why });
            assert_eq!(executable.update(&node), Err(expected.clone()));
            assert_eq!(executable.update_from(&graph), Err(expected));
            check(3);
            graph.fill(&other, 1).replace(node).unwrap();
        }
        let finalized = |node: Node| {
            graph.fill(&a, 9).replace(node).unwrap();
            let finalized = graph.finalize(Finalize::new());
            graph.fill(&other, 1).replace(node).unwrap();
            finalized
        };
        assert_error!(
            finalized(nodes[0]),
            FinalizeError::GraphMemoryNotAllocated { alloc, node } if (*alloc, *node) == (a.node(), nodes[0]),
        );
        assert_error!(
            finalized(nodes[2]),
            FinalizeError::GraphMemoryFreed { alloc, node, why: "is used after it is freed", .. }
                if (*alloc, *node) == (a.node(), nodes[2]),
        );
        // Between the two nodes it is allowed.
        graph.fill(&a, 9).replace(nodes[1]).unwrap();
        executable.update(&nodes[1]).unwrap();
        check(9);
        executable.update_from(&build(None).0).unwrap();
        check(3);
        executable.update_from(&build(Some(1)).0).unwrap();
        check(9);
    }
}

/// Rules U5, U7: what is added to a graph later is not in its executables.
#[test]
fn updates_do_not_bring_allocations_that_an_executable_does_not_have() {
    let bench = Bench::new();
    let x = bench.buffer(&[0; LEN]);
    let memory = Parameter::memory(&x);
    let graph = bench.graph();
    // SAFETY: a work-item touches its own element.
    let node = unsafe { graph.kernel(&bench.kernel("stir")).read_write(&memory).range(LEN).add().unwrap() };
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    let late = alloc(&graph);
    memory.set(&late).unwrap();
    assert_error!(
        executable.update(&node),
        UpdateError::Differs { difference }
            if difference.contains("memory of the graph that no node of the executable used"),
    );
    run(&executable, &bench.queue);

    let executable = |build: &dyn Fn(&Graph)| {
        let graph = bench.graph();
        build(&graph);
        (graph.finalize(Finalize::new().updatable()).unwrap(), graph)
    };
    let empty = executable(&|graph| {
        let first = graph.empty().add().unwrap();
        graph.fill(&x, 1).after(first).add().unwrap();
    });
    let plain = executable(&|graph| {
        graph.fill(&alloc(graph), 1).add().unwrap();
    });
    let zeroed = executable(&|graph| {
        graph.fill(&graph.alloc(LEN).zero_init().add().unwrap(), 1_u32).add().unwrap();
    });
    let longer = executable(&|graph| {
        graph.fill(&graph.alloc(2 * LEN).add().unwrap().slice(..LEN).unwrap(), 1_u32).add().unwrap();
    });
    for (to, from, why) in [
        (&empty, &plain, "it is an empty node, but an allocation was given"),
        (&plain, &zeroed, "its allocation is undefined at finalize, but the allocation given is filled with zeros"),
        (&plain, &longer, "its allocation has 4096 bytes, but the allocation given has 8192"),
    ] {
        assert_error!(to.0.update_from(&from.1), UpdateError::Differs { difference } if difference.contains(why));
        run(&to.0, &bench.queue);
    }
}

/// Rules N3, M5: the allocations of a parent and of its children are independent, used or not.
#[test]
fn parents_and_children_have_allocations_of_their_own() {
    let bench = Bench::new();
    let (child_out, out) = (bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]));
    let unused = [false, true];
    for (first, second, updatable) in
        unused.iter().flat_map(|a| unused.iter().flat_map(move |b| unused.map(|c| (a, b, c))))
    {
        let child = bench.graph();
        if *first {
            let nobodys = child.alloc::<u32>(3 * LEN).add().unwrap();
            child.free(&nobodys).add().unwrap();
        }
        let used = alloc(&child);
        child.fill(&used, 4).add().unwrap();
        child.copy(&used, &child_out).add().unwrap();
        child.free(&used).add().unwrap();
        if *second {
            let _ = alloc(&child);
        }
        let options = if updatable { Finalize::new().updatable() } else { Finalize::new() };
        let child = child.finalize(options.clone()).unwrap();
        let parent = bench.graph();
        let early = parent.sub_graph(&child).add().unwrap().node();
        let a = alloc(&parent);
        parent.fill(&a, 5).add().unwrap();
        parent.sub_graph(&child).add().unwrap();
        parent.copy(&a, &out).add().unwrap();
        let free = parent.free(&a).add().unwrap();
        let b = parent.alloc::<u32>(LEN).after(free).add().unwrap();
        parent.fill(&b, 6).add().unwrap();
        let late = parent.sub_graph(&child).add().unwrap().node();
        for path in [Path::Replay, Path::Native] {
            let executable = parent.finalize(options.clone().path(path)).unwrap();
            run(&executable, &bench.queue);
            assert_eq!(bench.content(&out), [5; LEN]);
            assert_eq!(bench.content(&child_out), [4; LEN]);
            if updatable {
                executable.update(&[early, late]).unwrap();
                executable.update_from(&parent).unwrap();
            }
            bench.queue.enqueue_fill_buffer(&child_out, &[0], 0, LEN * 4, &[]).unwrap();
            run(&executable, &bench.queue);
            assert_eq!(bench.content(&child_out), [4; LEN]);
        }
    }
}

/// Rules M3, M4: memory that is to be zero shares no bytes with earlier allocations, even if it is freed.
#[test]
fn zeros_are_not_where_something_was_before() {
    let bench = Bench::new();
    let out = bench.buffer(&[9; LEN]);
    for options in [Finalize::new(), Finalize::new().updatable()] {
        let graph = bench.graph();
        let before = alloc(&graph);
        graph.fill(&before, 77).add().unwrap();
        let free = graph.free(&before).add().unwrap();
        let zeros = graph.alloc::<u32>(LEN).zero_init().after(free).add().unwrap();
        graph.copy(&zeros, &out).add().unwrap();
        let freed = graph.free(&zeros).add().unwrap();
        // After the zeros, an allocation may have their bytes.
        let later = graph.alloc::<u32>(LEN).after(freed).add().unwrap();
        graph.fill(&later, 78).add().unwrap();
        graph.free(&later).add().unwrap();
        let executable = graph.finalize(options).unwrap();
        assert_eq!(executable.required_memory(), 2 * LEN * 4);
        run(&executable, &bench.queue);
        assert_eq!(bench.content(&out), [0; LEN]);
    }
}

/// The memory is released when nothing uses it any more, and not before.
#[test]
fn an_executable_may_be_dropped_while_it_runs() {
    let bench = Bench::new();
    let out = bench.buffer(&[0; LEN]);
    for path in [Path::Replay, Path::Native] {
        let gate = UserEvent::new(&bench.queue);
        let graph = bench.graph();
        let memory = alloc(&graph);
        graph.fill(&memory, 8).add().unwrap();
        graph.copy(&memory, &out).add().unwrap();
        graph.free(&memory).add().unwrap();
        let run = finalize(&graph, path).submit_to(&bench.queue).after(&gate.0).submit().unwrap();
        drop((graph, memory));
        gate.set(0);
        run.wait().unwrap();
        assert_eq!(bench.content(&out), [8; LEN], "{path}");
    }
}

/// The picture has a rectangle for each allocation, inside its buffer.
#[test]
fn the_drawing_has_every_allocation_in_its_buffer() {
    let bench = Bench::new();
    let graph = bench.graph();
    let weights = alloc(&graph);
    graph.fill(&weights, 1).add().unwrap();
    let mut last = alloc(&graph);
    graph.fill(&last, 1).add().unwrap();
    for layer in 0..6 {
        let [wide, sum] = [4, 1].map(|times| graph.alloc::<u32>(LEN * times).add().unwrap());
        graph.copy(&last, &wide.slice(..LEN).unwrap()).add().unwrap();
        graph.fill(&wide.slice(LEN..).unwrap(), layer).add().unwrap();
        graph.copy(&wide.slice(LEN..2 * LEN).unwrap(), &sum).add().unwrap();
        graph.free(&wide).add().unwrap();
        graph.free(&last).add().unwrap();
        last = sum;
    }
    let executable = graph.finalize(Finalize::new()).unwrap();
    let memory = &executable.report().memory;
    let picture = memory.to_svg();
    assert_eq!(picture.matches("<title>").count(), 14);
    assert_eq!(picture.matches("for ever").count(), 2, "what is not freed");
    for one in &memory.allocations {
        assert!(one.offset + one.bytes <= memory.buffers[one.buffer]);
        assert!(picture.contains(&format!("node {}: {} bytes at {}", one.node, one.bytes, one.offset)));
    }
    let path = std::env::temp_dir().join(format!("clgraph-memory-{}.svg", std::process::id()));
    memory.write_svg(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), picture);
    std::fs::remove_file(&path).unwrap();
    let file = "/nowhere/memory.svg";
    assert_error!(memory.write_svg(file), BuildCause::File { path, .. } if path.ends_with(&file[1..]));
}

/// A graph of temporaries: which node reads which, by number.
#[derive(Clone, Debug)]
struct Temporaries(Vec<(u8, u8, bool)>);

impl Arbitrary for Temporaries {
    fn arbitrary(g: &mut Gen) -> Self {
        let count = 1 + usize::arbitrary(g) % 30;
        Self((0..count).map(|_| Arbitrary::arbitrary(g)).collect())
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        Box::new(self.0.shrink().filter(|all| !all.is_empty()).map(Self))
    }
}

/// Rule M3: with and without sharing, on each path, the results are the same as with separate memory.
#[test]
fn random_temporaries_compute_what_buffers_compute() {
    let bench = Bench::new();
    let (scale, add) = (bench.kernel("scale"), bench.kernel("add"));
    let property = |temporaries: Temporaries| {
        let count = temporaries.0.len();
        let graph = bench.graph();
        let sums = bench.buffer(&vec![0; LEN]);
        let mut made: Vec<(GraphMemory<u32>, u32)> = Vec::new();
        let mut last_use = vec![0; count];
        for (at, (from, _, _)) in temporaries.0.iter().enumerate() {
            last_use[at] = at;
            if at > 0 {
                last_use[usize::from(*from) % at] = at;
            }
        }
        let mut total = 0_u32;
        let mut freed: Vec<Node> = Vec::new();
        for (at, (from, by, keep)) in temporaries.0.iter().enumerate() {
            let memory = alloc(&graph);
            let value = if at == 0 {
                graph.fill(&memory, u32::from(*by)).add().unwrap();
                u32::from(*by)
            } else {
                let (source, value) = &made[usize::from(*from) % at];
                // SAFETY: a work-item touches its own element.
                unsafe {
                    graph.kernel(&scale).read(source).write(&memory).arg(u32::from(*by)).range(LEN).add().unwrap()
                };
                value.wrapping_mul(3).wrapping_add(u32::from(*by))
            };
            // SAFETY: as above.
            unsafe { graph.kernel(&add).read_write(&sums).read(&memory).range(LEN).add().unwrap() };
            total = total.wrapping_add(value);
            made.push((memory, value));
            let over = (0..=at).filter(|old| last_use[*old] == at && !(*old == at && *keep));
            freed.extend(over.map(|old| graph.free(&made[old].0).add().unwrap()));
        }
        let options = Finalize::new();
        let queues = options.clone().path(Path::Queues);
        [
            options.clone(),
            options.clone().path(Path::Native),
            options.clone().separate_memory(),
            options.updatable(),
            queues.clone(),
            queues.updatable(),
        ]
        .into_iter()
        .all(|options| {
            let executable = graph.finalize(options).unwrap();
            (0..2).all(|_| {
                bench.queue.enqueue_fill_buffer(&sums, &[0], 0, LEN * 4, &[]).unwrap();
                run(&executable, &bench.queue);
                bench.content(&sums) == vec![total; LEN]
            })
        })
    };
    let mut g = Gen::new(20);
    for _ in 0..40 {
        let temporaries = Temporaries::arbitrary(&mut g);
        assert!(property(temporaries.clone()), "{temporaries:?}");
    }
}
