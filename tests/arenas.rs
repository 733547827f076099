//! A graph's own memory in executables: who owns it, how much there is, and in how many buffers.

mod common;

use clgraph::{
    AllocationReport, BuildCause, Error, ErrorKind, Executable, ExecuteKernel, Finalize, FinalizeError, Graph,
    GraphMemory, HostRead, MapRead, MemoryReport, Path, Queue, UpdateError,
};
use common::{Bench, assert_error};

const LEN: usize = 256;

/// Returns a graph that stirs memory that it keeps, which is zero at first, and reads it.
fn counter(bench: &Bench) -> (Graph, HostRead<u32>) {
    let graph = bench.graph();
    let kept = graph.alloc::<u32>(LEN).zero_init().add().unwrap();
    // SAFETY: a work-item touches its own element.
    unsafe { graph.kernel(&bench.kernel("stir")).read_write(&kept).range(LEN).add().unwrap() };
    let read = graph.read(&kept).add().unwrap();
    (graph, read)
}

/// Returns the content after so many runs.
fn stirred(times: usize) -> Vec<u32> {
    let stir = |(at, value): (u32, u32)| value.wrapping_mul(5).wrapping_add(at);
    (0..times).fold(vec![0; LEN], |all, _| (0..).zip(all).map(stir).collect())
}

fn result(executable: &Executable, queue: &Queue, read: &HostRead<u32>) -> Vec<u32> {
    let run = executable.submit(queue).unwrap();
    run.wait().unwrap();
    run.get(read).unwrap().to_vec()
}

/// Rules M4, M5, M8: also while another executable of the graph exists.
#[test]
fn what_executables_of_one_graph_keep_is_apart() {
    let bench = Bench::new();
    let (graph, read) = counter(&bench);
    for path in [Path::Replay, Path::Native] {
        for options in [Finalize::new().path(path), Finalize::new().path(path).updatable()] {
            let (first, second) = (graph.finalize(options.clone()).unwrap(), graph.finalize(options.clone()).unwrap());
            for (executable, times) in [(&first, 1), (&first, 2), (&second, 1), (&first, 3), (&second, 2)] {
                assert_eq!(result(executable, &bench.queue, &read), stirred(times), "{path}");
            }
            drop(first);
            let third = graph.finalize(options.clone()).unwrap();
            assert_eq!(result(&third, &bench.queue, &read), stirred(1), "{path}");
            assert_eq!(result(&second, &bench.queue, &read), stirred(3), "{path}");
        }
    }
}

/// Rules M4, M5, N3: alone and in parents the executable uses the same memory, and no parent fills it with zeros again.
#[test]
fn a_child_has_one_memory_in_all_its_parents() {
    let bench = Bench::new();
    let (graph, read) = counter(&bench);
    for path in [Path::Replay, Path::Native] {
        let options = Finalize::new().path(path);
        let child = graph.finalize(options.clone()).unwrap();
        assert_eq!(result(&child, &bench.queue, &read), stirred(1), "{path}");
        let mut runs = 1;
        for updatable in [false, true] {
            let parent = bench.graph();
            let uses = [0, 1].map(|_| parent.sub_graph(&child).add().unwrap());
            let of_parent = parent.alloc::<u32>(LEN).zero_init().add().unwrap();
            let zeros = parent.read(&of_parent).add().unwrap();
            let options = if updatable { options.clone().updatable() } else { options.clone() };
            let executable = parent.finalize(options).unwrap();
            for _ in 0..2 {
                let run = executable.submit(&bench.queue).unwrap();
                run.wait().unwrap();
                for one in &uses {
                    runs += 1;
                    assert_eq!(*run.get(&one.read(&read).unwrap()).unwrap(), stirred(runs), "{path}");
                }
                assert_eq!(*run.get(&zeros).unwrap(), [0; LEN], "nobody writes to the parent's");
            }
            runs += 1;
            assert_eq!(result(&child, &bench.queue, &read), stirred(runs), "{path}");
        }
    }
}

/// Rule M2: if a changed node lacks an order, finalize reports it and names both nodes.
#[test]
fn a_use_without_an_order_is_named() {
    let bench = Bench::new();
    let other = bench.buffer(&[0; LEN]);
    let graph = bench.graph();
    let memory = graph.alloc::<u32>(LEN).add().unwrap();
    let moved = graph.fill(&other, 1).add().unwrap();
    let own = graph.fill(&memory, 2).add().unwrap();
    let read = graph.read(&memory).add().unwrap();
    let free = graph.free(&memory).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    graph.fill(&memory, 3).replace(moved).unwrap();
    let Err(Error::Finalize(FinalizeError::Conflict { first, second, .. })) = graph.finalize(Finalize::new()) else {
        panic!("the fill has no order to the allocation")
    };
    assert_eq!((first, second), (memory.node(), moved));
    assert!(matches!(executable.update(&moved), Err(Error::Update(UpdateError::Conflict { .. }))));
    assert_eq!(result(&executable, &bench.queue, &read), [2; LEN]);
    graph.add_edge(memory.node(), moved).unwrap();
    let Err(Error::Finalize(FinalizeError::Conflict { first, second, .. })) = graph.finalize(Finalize::new()) else {
        panic!("the two fills have no order")
    };
    assert_eq!((first, second), (moved, own));
    graph.add_edge(moved, own).unwrap();
    let ordered = graph.finalize(Finalize::new()).unwrap();
    assert_eq!(result(&ordered, &bench.queue, &read), [2; LEN]);
    assert!(graph.predecessors(free).unwrap().contains(&read.node()));
}

/// Rule U7: updates of single nodes.
#[test]
fn allocations_and_frees_are_not_updated() {
    let bench = Bench::new();
    let graph = bench.graph();
    let memory = graph.alloc::<u32>(LEN).add().unwrap();
    graph.fill(&memory, 2).add().unwrap();
    let read = graph.read(&memory).add().unwrap();
    let free = graph.free(&memory).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    for node in [memory.node(), free] {
        let error = executable.update(&node).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_error!(&error, UpdateError::Fixed { node: fixed, .. } if *fixed == node);
        assert_eq!(result(&executable, &bench.queue, &read), [2; LEN]);
    }
}

/// Rule M6: launches and maps of a queue cannot use it, and it has no address.
#[test]
fn a_graphs_memory_is_for_its_nodes_only() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let (graph, other) = (bench.graph(), bench.graph());
    let memory = graph.alloc::<u32>(LEN).add().unwrap();
    let stir = bench.kernel("stir");
    let launch = || {
        let mut launch = ExecuteKernel::new(&stir);
        launch.set_arg(&memory).set_global_work_size(LEN);
        // SAFETY: errors.
        unsafe { launch.enqueue_nd_range(queue) }
    };
    assert_error!(launch(), BuildCause::GraphMemory { by: "by a queue that executes", .. });
    // SAFETY: an error.
    let mapped = unsafe { queue.map(&memory, MapRead, &[]) };
    assert_error!(
        mapped,
        BuildCause::NotSupported { what, .. } if what == "mapping memory that a graph owns",
    );
    assert_error!(other.record(queue, || launch().map(|_| ())), BuildCause::GraphMemory { by: "in another graph", .. });
    assert!(other.is_empty());
    assert!(memory.slice(..LEN / 2).unwrap().as_ptr().is_none());
    // A graph that contains the graph's executable cannot use it either.
    graph.fill(&memory, 1).add().unwrap();
    let parent = bench.graph();
    parent.sub_graph(&graph.finalize(Finalize::new()).unwrap()).add().unwrap();
    assert_error!(parent.fill(&memory, 1).add(), BuildCause::GraphMemory { by: "in another graph", .. });
    assert_eq!(parent.len(), 1);
    // SAFETY: an error.
    let built = unsafe { other.kernel(&stir).read_write(&memory).range(LEN).add() };
    assert_error!(built, BuildCause::GraphMemory { by: "in another graph", .. });
}

/// Rule M9: all allocations together are larger than the device's largest allocation, and each is at its place.
#[test]
fn what_is_too_much_for_one_buffer_is_in_several() {
    let bench = Bench::new();
    let most = bench.queue.device().caps().max_allocation as usize / 4;
    let graph = bench.graph();
    let step = bench.queue.device().caps().sub_buffer_align.div_ceil(4);
    let ends = |memory: &GraphMemory<u32>| [memory.slice(..1).unwrap(), memory.slice(memory.len() - step..).unwrap()];
    let len = (most / 5 * 3).next_multiple_of(4096);
    let (a, b) = (graph.alloc::<u32>(len).add().unwrap(), graph.alloc::<u32>(len).add().unwrap());
    let mut at = 0;
    for memory in [&a, &b] {
        for end in ends(memory) {
            at += 1;
            graph.fill(&end, at).add().unwrap();
        }
    }
    let sources = [&a, &b].map(ends);
    let reads: Vec<_> = sources.iter().flatten().map(|end| graph.read(end).add().unwrap()).collect();
    for path in [Path::Replay, Path::Native] {
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        let memory = &executable.report().memory;
        assert_eq!(memory.buffers.len(), 2);
        assert!(memory.bytes > most * 4 && memory.buffers.iter().all(|bytes| *bytes <= most * 4));
        assert!(executable.report().to_string().contains("2 allocations in 2 buffers"), "{}", executable.report());
        let run = executable.submit(&bench.queue).unwrap();
        run.wait().unwrap();
        let found: Vec<u32> = reads.iter().map(|read| run.get(read).unwrap()[0]).collect();
        assert_eq!(found, [1, 2, 3, 4], "{path}");
    }
}

/// Rule M3: sharing memory makes no node wait, and the report says which allocations share bytes.
#[test]
fn packing_adds_no_edges_and_the_report_tells_who_shares_bytes() {
    let bench = Bench::new();
    let out = [0, 1].map(|_| bench.buffer(&[0; LEN]));
    let graph = bench.graph();
    // Two independent chains.
    for (chain, out) in (0..).zip(&out) {
        let mut last = graph.alloc::<u32>(LEN).add().unwrap();
        graph.fill(&last, chain).add().unwrap();
        for _ in 0..4 {
            let next = graph.alloc::<u32>(LEN).add().unwrap();
            graph.copy(&last, &next).add().unwrap();
            graph.free(&last).add().unwrap();
            last = next;
        }
        graph.copy(&last, out).add().unwrap();
        graph.free(&last).add().unwrap();
    }
    for path in [Path::Replay, Path::Native] {
        let options = Finalize::new().path(path);
        let (packed, apart) =
            (graph.finalize(options.clone()).unwrap(), graph.finalize(options.separate_memory()).unwrap());
        assert_eq!(packed.report().edges, apart.report().edges, "{path}");
        let memory = &packed.report().memory;
        let (mut shared, mut at_once) = (0, 0);
        for (at, one) in memory.allocations.iter().enumerate() {
            for other in &memory.allocations[..at] {
                let meet = |a: (usize, usize), b: (usize, usize)| a.0 < b.1 && b.0 < a.1;
                let bytes = |one: &AllocationReport| (one.offset, one.offset + one.bytes);
                let life = |one: &AllocationReport| (one.first, one.last.unwrap() + 1);
                let same_bytes = one.buffer == other.buffer && meet(bytes(one), bytes(other));
                shared += usize::from(same_bytes);
                at_once += usize::from(same_bytes && meet(life(one), life(other)));
            }
        }
        assert!(shared > 10 && at_once == 0, "{shared} pairs share bytes, {at_once} at the same time");
        assert!(apart.report().memory.bytes > 2 * memory.bytes);
        for executable in [&packed, &apart] {
            executable.submit(&bench.queue).unwrap().wait().unwrap();
            let found = [0, 1].map(|chain| bench.content(&out[chain]));
            assert_eq!(found, [vec![0; LEN], vec![1; LEN]], "{path}");
        }
    }
}

/// Returns the most bytes that live at once, each allocation rounded up to where the next may start.
fn peak(memory: &MemoryReport, align: usize) -> usize {
    let mut changes: Vec<(usize, isize)> = Vec::new();
    for one in &memory.allocations {
        let bytes = one.bytes.next_multiple_of(align) as isize;
        changes.extend([(one.first, bytes), (one.last.unwrap() + 1, -bytes)]);
    }
    changes.sort_unstable();
    let live = changes.iter().scan(0, |live, (_, change)| {
        *live += change;
        Some(*live)
    });
    live.max().unwrap() as usize
}

/// Rule M3: random graphs, in which every node reads some of the nodes before it.
#[test]
fn random_graphs_are_packed_near_their_peak() {
    let bench = Bench::new();
    let align = bench.queue.device().caps().sub_buffer_align;
    for (seed, count, reach) in [(1, 300, 8), (2, 1000, 20), (3, 1000, 60)] {
        let mut random = fastrand::Rng::with_seed(seed);
        let graph = bench.graph();
        let lens: Vec<usize> = (0..count).map(|_| random.usize(1..=1 << 14)).collect();
        let reads: Vec<Vec<usize>> = (0..count)
            .map(|at| (0..random.usize(0..3)).map(|_| at - random.usize(0..=reach.min(at))).collect())
            .collect();
        let mut last: Vec<usize> = (0..count).collect();
        for (at, sources) in reads.iter().enumerate() {
            sources.iter().for_each(|of| last[*of] = at);
        }
        let mut made: Vec<GraphMemory<u32>> = Vec::new();
        for at in 0..count {
            made.push(graph.alloc::<u32>(lens[at]).add().unwrap());
            let first = |of: usize| made[of].slice(..1).unwrap();
            graph.fill(&first(at), at as u32).add().unwrap();
            for of in reads[at].iter().filter(|of| **of != at) {
                graph.copy(&first(*of), &first(at)).add().unwrap();
            }
            for of in (0..=at).filter(|of| last[*of] == at) {
                graph.free(&made[of]).add().unwrap();
            }
        }
        let executable = graph.finalize(Finalize::new()).unwrap();
        let memory = &executable.report().memory;
        let (bytes, peak) = (memory.bytes, peak(memory, align));
        assert_eq!(memory.allocations.len(), count);
        // After the last allocation there is nothing to align.
        assert!(
            bytes + align > peak && bytes as f64 <= 1.1 * peak as f64,
            "{bytes} bytes, {peak} at once, seed {seed}"
        );
    }
}
