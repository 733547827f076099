//! Fills with patterns of any size: by OpenCL's command if it can, and by a kernel.

mod common;

use clgraph::{
    Buffer, BuildCause, Element, Error, Executable, Finalize, Graph, Memory, MemoryKind, NodeKind, Path, Queue,
};
use common::Bench;

const PATHS: [Path; 4] = [Path::Auto, Path::Native, Path::Replay, Path::Queues];

/// Returns the old content with a fill of elements applied.
fn expected<T: Element>(len: usize, range: std::ops::Range<usize>, value: T) -> Vec<u8> {
    let mut bytes = vec![0xaa; len * size_of::<T>()];
    for at in range {
        bytes[at * size_of::<T>()..(at + 1) * size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
    }
    bytes
}

fn content(queue: &Queue, memory: &impl clgraph::AsSource<u8>, len: usize) -> Vec<u8> {
    queue.enqueue_read_buffer_owned(memory, 0, len, &[]).unwrap().wait().unwrap()
}

fn run(graph: &Graph, queue: &Queue, path: Path) -> Executable {
    let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
    executable.submit(queue).unwrap().wait().unwrap();
    executable
}

/// Checks a fill of some elements by every path.
fn check<T: Element>(bench: &Bench, one: T, other: T) {
    const LEN: usize = 40;
    let (queue, bytes) = (&bench.queue, LEN * size_of::<T>());
    let buffer = Buffer::<u8>::new(queue, bytes).unwrap();
    let (elements, clear) =
        (buffer.cast::<T>().unwrap(), || queue.enqueue_fill_buffer(&buffer, &[0xaa_u8], 0, bytes, &[]));
    let part = elements.slice(3..LEN - 1).unwrap();
    let is_command = size_of::<T>().is_power_of_two() && size_of::<T>() <= 128;
    let what = std::any::type_name::<T>();

    for path in PATHS {
        clear().unwrap();
        let graph = bench.graph();
        let node = graph.fill(&part, one).add().unwrap();
        let kind = if is_command { NodeKind::Fill } else { NodeKind::Kernel };
        assert_eq!(graph.kind(node).unwrap(), kind, "{what}");
        let executable = run(&graph, queue, path);
        assert_eq!(content(queue, &buffer, bytes), expected(LEN, 3..LEN - 1, one), "{what}, {path}");
        // It has the edges of a fill, and it can be replaced.
        let read = graph.read(&elements.slice(..4).unwrap()).add().unwrap();
        assert_eq!(graph.predecessors(read.node()).unwrap(), [node], "{what}");
        graph.fill(&part, other).replace(node).unwrap();
        executable.update(&node).unwrap();
        executable.submit(queue).unwrap().wait().unwrap();
        assert_eq!(content(queue, &buffer, bytes), expected(LEN, 3..LEN - 1, other), "{what}, {path}, replaced");
    }

    // At once, and recorded.
    let (offset, size) = (3 * size_of::<T>(), (LEN - 4) * size_of::<T>());
    let fill = || queue.enqueue_fill_buffer(&elements, &[one], offset, size, &[]).map(drop);
    clear().unwrap();
    fill().unwrap();
    assert_eq!(content(queue, &buffer, bytes), expected(LEN, 3..LEN - 1, one), "{what}, at once");
    clear().unwrap();
    let graph = bench.graph();
    graph.record(queue, fill).unwrap();
    for path in PATHS {
        clear().unwrap();
        run(&graph, queue, path);
        assert_eq!(content(queue, &buffer, bytes), expected(LEN, 3..LEN - 1, one), "{what}, {path}, recorded");
    }

    // Memory of every kind that the device has, and of a graph.
    for kind in MemoryKind::ALL.into_iter().filter(|kind| queue.device().caps().has_memory(*kind)) {
        let memory = Memory::<T>::with_kind(queue, kind, LEN).unwrap();
        let graph = bench.graph();
        graph.fill(&memory, other).add().unwrap();
        let out = Buffer::<T>::new(queue, LEN).unwrap();
        graph.copy(&memory, &out).add().unwrap();
        run(&graph, queue, Path::Auto);
        assert_eq!(content(queue, &out.cast::<u8>().unwrap(), bytes), expected(LEN, 0..LEN, other), "{what}, {kind}");
    }
    let graph = bench.graph();
    let own = graph.alloc::<T>(LEN).add().unwrap();
    graph.fill(&own, one).add().unwrap();
    graph.copy(&own, &elements).add().unwrap();
    run(&graph, queue, Path::Auto);
    assert_eq!(content(queue, &buffer, bytes), expected(LEN, 0..LEN, one), "{what}, the graph's own");
}

/// Rule B14
#[test]
fn a_pattern_may_be_of_any_plain_type() {
    let bench = Bench::new();
    check(&bench, 7_u8, 9);
    check(&bench, [1.0_f32, 2.0, 3.0], [4.0, 5.0, 6.0]);
    check(&bench, [1_u8, 2, 3], [4, 5, 6]);
    check(&bench, [7_u16; 3], [1, 2, 3]);
    check(&bench, [1_u32, 2, 3, 4], [5, 6, 7, 8]);
    check(&bench, [0.5_f64; 9], [0.25; 9]);
    check(&bench, [3_u32; 64], [4; 64]);
    let long: [u8; 512] = std::array::from_fn(|at| at as u8);
    check(&bench, long, [1; 512]);
}

/// Rule B14: errors of patterns.
#[test]
fn a_range_is_a_whole_number_of_patterns() {
    let bench = Bench::new();
    let (queue, buffer, graph) = (&bench.queue, bench.buffer(&[0; 64]), bench.graph());
    let cause = |outcome: clgraph::Result<()>| match outcome.unwrap_err() {
        Error::Build(error) => *error.cause,
        error => panic!("{error}"),
    };
    let fill = |pattern: &[u32], size| cause(queue.enqueue_fill_buffer(&buffer, pattern, 0, size, &[]).map(drop));
    assert_eq!(fill(&[1, 2, 3], 16), BuildCause::PatternRange { len: 16, pattern: 12 });
    assert_eq!(fill(&[1], 6), BuildCause::PatternRange { len: 6, pattern: 4 });
    assert_eq!(fill(&[], 8), BuildCause::EmptyPattern);
    // A pattern of several elements, and a fill that does not start at a multiple of its pattern.
    queue.enqueue_fill_buffer(&buffer, &[1, 2, 3], 4, 24, &[]).unwrap();
    queue.enqueue_fill_buffer(&buffer, &[8, 9], 28, 16, &[]).unwrap();
    assert_eq!(bench.content(&buffer)[..12], [0, 1, 2, 3, 1, 2, 3, 8, 9, 8, 9, 0]);
    // A fill of an empty range.
    let empty = graph.fill(&buffer.slice(3..3).unwrap(), 5).add().unwrap();
    assert_eq!(graph.kind(empty).unwrap(), NodeKind::Fill);
    queue.enqueue_fill_buffer(&buffer, &[1, 2, 3], 8, 0, &[]).unwrap();
    bench.run(&graph);
}
