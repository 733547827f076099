//! Memory that a graph owns: who shares what, and that nobody can tell.

mod common;

use clgraph::{ErrorKind, Executable, Finalize, Graph, GraphMemory, Node, NodeKind, Path, Queue};
use common::{Bench, elsewhere, text};
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
        // Something that lives before, and that the zeros must not share bytes with.
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

/// Rules M5, N3, U7: each executable has its own; they may be in other graphs, and be updated.
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
        let (first, second) = (graph.finalize(options).unwrap(), graph.finalize(options).unwrap());
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
        let parent_executable = parent.finalize(options).unwrap();
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
        error.to_string()
    };
    let late = refused(&|graph, memory| {
        graph.free(memory).add().unwrap();
        graph.copy(memory, &out).add().unwrap();
    });
    assert_eq!(late, "the allocation of node 0 is used after it is freed: by node 2, and node 1 comes before");
    let twice = refused(&|graph, memory| {
        graph.free(memory).add().unwrap();
        graph.free(memory).add().unwrap();
    });
    assert_eq!(twice, "the allocation of node 0 is freed twice: by node 2, and node 1 comes before");
    let graph = bench.graph();
    let memory = alloc(&graph);
    let other = bench.graph();
    for error in [
        text(other.copy(&memory, &out).add()),
        text(other.free(&memory).add()),
        text(other.fill(&memory.slice(..1).unwrap(), 1).add()),
    ] {
        assert!(error.contains("belongs to a graph and is used in another graph"), "{error}");
    }
    let at_once = [
        text(bench.queue.enqueue_fill_buffer(&memory, &[1], 0, 4, &[])),
        text(bench.queue.enqueue_copy_buffer(&memory, &out, 0, 0, 4, &[])),
        text(bench.queue.enqueue_read_buffer(&memory, 0, &mut [0; 4], &[])),
        text(bench.queue.enqueue_prefetch(&memory, &[])),
    ];
    for error in at_once {
        assert!(error.contains("in an ordinary submission"), "{error}");
    }
    let align = bench.queue.device().caps().sub_buffer_align;
    if align > 4 {
        let error = text(memory.slice(1..2));
        assert!(error.contains(&format!("a multiple of {align}")), "{error}");
    }
    assert!(text(memory.slice(5..5)).contains("zero bytes"));
    assert!(text(memory.slice(0..LEN + 1)).contains("outside"));
    assert!(text(graph.alloc::<u32>(0).add()).contains("zero bytes"));
    for len in [usize::MAX, usize::MAX / 4, bench.queue.device().caps().max_allocation as usize / 4 + 1] {
        let error = graph.alloc::<u32>(len).add().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    }
    assert_eq!(graph.len(), 1);
    // Elsewhere there is no such device.
    assert!(text(elsewhere().graph().copy(&memory, &out).add()).contains("context"));
}

/// Recorded commands use it as built ones do.
#[test]
fn a_queue_records_into_memory_of_the_graph() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let out = bench.buffer(&[0; LEN]);
    let graph = bench.graph();
    let temporary = alloc(&graph);
    let recorded = graph.record(queue, || {
        queue.enqueue_fill_buffer(&temporary, &[6], 0, LEN * 4, &[])?;
        queue.enqueue_copy_buffer(&temporary, &out, 0, 0, LEN * 4, &[])
    });
    recorded.unwrap();
    graph.free(&temporary).add().unwrap();
    run(&finalize(&graph, Path::Auto), queue);
    assert_eq!(bench.content(&out), [6; LEN]);
}

/// A picture that a person can look at: a rectangle for each allocation, inside of its buffer.
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
        assert!(one.offset + one.bytes <= memory.arenas[one.arena]);
        assert!(picture.contains(&format!("node {}: {} bytes at {}", one.node, one.bytes, one.offset)));
    }
    let path = std::env::temp_dir().join(format!("clgraph-memory-{}.svg", std::process::id()));
    memory.write_svg(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), picture);
    std::fs::remove_file(&path).unwrap();
    assert!(text(memory.write_svg("/nowhere/memory.svg")).contains("cannot write /nowhere/memory.svg"));
}

/// A graph of temporaries: who reads whom, by number.
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

/// Rule M3: with and without sharing, on each path, the results are those of memory that nobody shares.
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
        [options, options.path(Path::Native), options.separate_memory(), options.updatable()].into_iter().all(
            |options| {
                let executable = graph.finalize(options).unwrap();
                (0..2).all(|_| {
                    bench.queue.enqueue_fill_buffer(&sums, &[0], 0, LEN * 4, &[]).unwrap();
                    run(&executable, &bench.queue);
                    bench.content(&sums) == vec![total; LEN]
                })
            },
        )
    };
    let mut g = Gen::new(20);
    for _ in 0..40 {
        let temporaries = Temporaries::arbitrary(&mut g);
        assert!(property(temporaries.clone()), "{temporaries:?}");
    }
}
