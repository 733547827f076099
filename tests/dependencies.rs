//! Edges that are found from the memory that nodes share.

mod common;

use clgraph::{Finalize, MemoryError, Node};
use common::{Bench, assert_error};

/// Rule D1
#[test]
fn writes_and_reads_of_the_same_memory_make_edges_and_reads_alone_make_none() {
    let bench = Bench::new();
    let (a, b, c) = (bench.buffer(&[0; 8]), bench.buffer(&[0; 8]), bench.buffer(&[0; 8]));
    let (scale, add) = (bench.kernel("scale"), bench.kernel("add"));
    let graph = bench.graph();
    let before = |node: Node| graph.predecessors(node).unwrap();
    let write = graph.write(&a, [1; 8]).add().unwrap().node();
    // SAFETY: each work-item touches its own element.
    let (first, second, third) = unsafe {
        (
            graph.kernel(&scale).read(&a).write(&b).arg(1_u32).range(8).add().unwrap(),
            graph.kernel(&scale).read(&a).write(&c).arg(2_u32).range(8).add().unwrap(),
            graph.kernel(&add).read_write(&b).read(&c).range(8).add().unwrap(),
        )
    };
    assert_eq!(before(first), [write], "read after write");
    assert_eq!(before(second), [write], "two readers do not wait for each other");
    assert_eq!(before(third), [first, second], "read after write, of both arguments");
    let fill = graph.fill(&a, 0_u32).add().unwrap();
    assert_eq!(before(fill), [first, second], "write after read");
    let again = graph.fill(&a, 1_u32).add().unwrap();
    assert_eq!(before(again), [fill], "write after write");
    let read = graph.read(&b).add().unwrap().node();
    assert_eq!(before(read), [third]);
    let copy = graph.copy(&a, &b).add().unwrap();
    assert_eq!(before(copy), [again, read]);
}

/// Rule D1: a write that contradicts the kernel's own declaration is reported.
#[test]
fn a_declared_write_to_a_const_argument_is_reported() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[0; 8]), bench.buffer(&[0; 8]));
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&bench.kernel("add")).read_write(&a).read_write(&b).range(8).add() }.unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    assert_eq!(executable.report().warnings.iter().filter(|warning| warning.starts_with("node")).count(), 1);
    let report = executable.report().to_string();
    assert!(
        report
            .contains("warning    node 0 (kernel `add`): argument 1 was added as written, but is const in the kernel")
    );
}

/// Rule D1: warnings are about the current nodes, and each node has its own.
#[test]
fn a_write_to_a_const_argument_is_reported_of_replaced_nodes_and_groups_too() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[0; 8]), bench.buffer(&[0; 8]));
    let kernel = bench.kernel("add");
    let graph = bench.graph();
    let warnings = || {
        let report = graph.finalize(Finalize::new()).unwrap().report();
        let of_nodes = report.warnings.iter().filter(|warning| warning.starts_with("node"));
        of_nodes.map(|warning| warning.split(" was added").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let right = || graph.kernel(&kernel).read_write(&a).read(&b).range(8);
    let wrong = || graph.kernel(&kernel).read_write(&a).write(&b).range(8);
    graph.empty().add().unwrap();
    // SAFETY: each work-item touches its own element; what is declared beyond that makes edges only.
    let node = unsafe { right().add() }.unwrap();
    assert!(warnings().is_empty());
    // SAFETY: as above.
    unsafe { wrong().replace(node) }.unwrap();
    assert_eq!(warnings(), ["node 1 (kernel `add`): argument 1"]);
    // SAFETY: as above.
    unsafe { right().replace(node) }.unwrap();
    assert!(warnings().is_empty(), "it is mended");

    // SAFETY: as above.
    let group = unsafe { graph.command_group([wrong(), wrong()]) }.unwrap();
    assert!(warnings().is_empty(), "the group has no node yet");
    graph.empty().add().unwrap();
    graph.command_group_node(&group).add().unwrap();
    let both = ["node 3 (kernel `add`): argument 1", "node 3 (launch 1 of its group, kernel `add`): argument 1"];
    assert_eq!(warnings(), both);
}

/// Rule D2
#[test]
fn byte_ranges_decide_and_sub_buffers_are_ranges_of_their_buffer() {
    let bench = Bench::new();
    let whole = bench.buffer(&[0; 512]);
    let (low, high) = (whole.sub_buffer(..256).unwrap(), whole.sub_buffer(256..).unwrap());
    let overlapping = whole.sub_buffer(128..384).unwrap();
    let graph = bench.graph();
    let before = |node: Node| graph.predecessors(node).unwrap();
    let fill_low = graph.fill(&low, 1_u32).add().unwrap();
    let fill_high = graph.fill(&high, 2_u32).add().unwrap();
    assert_eq!(before(fill_high), [], "disjoint");
    let middle = graph.fill(&overlapping, 3_u32).add().unwrap();
    assert_eq!(before(middle), [fill_low, fill_high], "two sub-buffers that share bytes");
    let head = graph.fill(&low.slice(..128).unwrap(), 4_u32).add().unwrap();
    assert_eq!(before(head), [fill_low], "a slice of a sub-buffer");
    // The buffer itself with its sub-buffers: any write conflicts, even on disjoint ranges.
    let tail = graph.fill(&whole.slice(480..).unwrap(), 5_u32).add().unwrap();
    assert_eq!(before(tail), [fill_high, middle, head], "all of the first fill has been written over");
    let after = graph.fill(&low.slice(..1).unwrap(), 6_u32).add().unwrap();
    assert_eq!(before(after), [head, tail]);
}

/// Rule D2: the bytes are right for all ranges.
#[test]
fn ranges_and_sub_buffers_give_the_bytes_of_an_eager_run() {
    let bench = Bench::new();
    let whole = bench.buffer(&[0; 256]);
    let (low, high) = (whole.sub_buffer(..128).unwrap(), whole.sub_buffer(128..).unwrap());
    let graph = bench.graph();
    graph.fill(&whole, 1_u32).add().unwrap();
    // SAFETY: each work-item touches its own element.
    unsafe {
        graph.kernel(&bench.kernel("stir")).read_write(&high).range(128).add().unwrap();
        graph.kernel(&bench.kernel("scale")).read(&high).write(&low).arg(7_u32).range(128).add().unwrap();
    }
    graph.copy(&whole.slice(..64).unwrap(), &whole.slice(192..).unwrap()).add().unwrap();
    bench.run(&graph);
    let stirred = |i: u32| 5 + i;
    let mut expected: Vec<u32> = (0..128).map(|i| stirred(i) * 3 + 7).collect();
    expected.extend((0..64).map(stirred));
    expected.extend_from_within(..64);
    assert_eq!(bench.content(&whole), expected);
}

/// Rules D1, D2: a node reads through a sub-buffer, writes elsewhere in the buffer, and reads again. A later write of
/// the buffer waits for the node. So it is for a host task, a kernel, and a sub-graph, which has the uses of all its
/// nodes.
#[test]
fn a_node_that_reads_twice_around_a_write_of_its_own_is_waited_for() {
    let bench = Bench::new();
    let whole = bench.buffer(&[0; 512]);
    let low = whole.sub_buffer(..256).unwrap();
    let later = whole.slice(50..60).unwrap();

    let graph = bench.graph();
    let task = graph.host_task(|_| ()).reads(&low).writes(&whole.slice(300..310).unwrap());
    let task = task.reads(&low.slice(..100).unwrap()).add().unwrap();
    let fill = graph.fill(&later, 1).add().unwrap();
    assert_eq!(graph.predecessors(fill).unwrap(), [task]);

    let source =
        "kernel void three(global const uint *a, global uint *b, global const uint *c) { b[0] = a[0] + c[1]; }";
    let three = clgraph::Program::from_source(&bench.queue, source).unwrap().kernel("three").unwrap();
    let inner = bench.graph();
    let written = whole.slice(300..301).unwrap();
    // SAFETY: the kernel reads two elements of the sub-buffer. (It is not run: its pointer is to the start of the
    // buffer.)
    unsafe { inner.kernel(&three).read(&low).write(&written).read(&low).range(1).add() }.unwrap();
    let kernel = inner.nodes()[0];
    let fill = inner.fill(&later, 1).add().unwrap();
    assert_eq!(inner.predecessors(fill).unwrap(), [kernel]);

    let child = bench.graph();
    child.copy(&low.slice(..100).unwrap(), &bench.buffer(&[0; 100])).add().unwrap();
    child.fill(&whole.slice(300..310).unwrap(), 2).add().unwrap();
    child.copy(&low.slice(..100).unwrap(), &bench.buffer(&[0; 100])).add().unwrap();
    let child = child.finalize(Finalize::new()).unwrap();
    let parent = bench.graph();
    let sub = parent.sub_graph(&child).add().unwrap();
    let fill = parent.fill(&later, 1).add().unwrap();
    assert_eq!(parent.predecessors(fill).unwrap(), [sub.node()]);
}

/// A null argument is no memory, and neither are values: clgraph makes no edge for memory that it does not know.
#[test]
fn arguments_without_memory_make_no_edges() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[1; 8]), bench.buffer(&[2; 8]));
    let kernel = bench.kernel("add_or_one");
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element, and the kernel looks before it reads `b`.
    let (x, y) = unsafe {
        (
            graph.kernel(&kernel).read_write(&a).null().range(8).add().unwrap(),
            graph.kernel(&kernel).read_write(&b).null().range(8).add().unwrap(),
        )
    };
    assert_eq!(graph.predecessors(y).unwrap(), []);
    graph.add_edge(x, y).unwrap();
    bench.run(&graph);
    assert_eq!((bench.content(&a), bench.content(&b)), (vec![2; 8], vec![3; 8]));
}

/// Rule D4
#[test]
fn edges_are_not_doubled_and_queries_show_also_those_that_finalize_drops() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 8]);
    let graph = bench.graph();
    let first = graph.fill(&a, 1_u32).add().unwrap();
    let second = graph.fill(&a, 2_u32).after([first, first]).add().unwrap();
    let third = graph.fill(&a, 3_u32).after(first).add().unwrap();
    assert_eq!(graph.predecessors(second).unwrap(), [first]);
    assert_eq!(graph.predecessors(third).unwrap(), [first, second]);
    let report = graph.finalize(Finalize::new()).unwrap().report();
    assert_eq!((report.edges, report.edges_implied_by_path, report.edges_implied_by_queue), (3, 1, 2));
    assert_eq!(graph.predecessors(third).unwrap(), [first, second]);
}

/// An empty range makes no edges. It is refused only if it is outside the buffer.
#[test]
fn empty_slices_use_no_memory() {
    let bench = Bench::new();
    let a = bench.buffer(&[9; 8]);
    let graph = bench.graph();
    graph.fill(&a, 1_u32).add().unwrap();
    let nothing = graph.fill(&a.slice(4..4).unwrap(), 2_u32).add().unwrap();
    assert_eq!(graph.predecessors(nothing).unwrap(), []);
    assert_error!(a.slice(9..9), MemoryError::OutOfBounds { what: "elements", start: 9, end: 9, len: 8 });
    let read = graph.read(&a.slice(8..).unwrap()).add().unwrap();
    let executable = bench.run(&graph);
    let run = executable.submit(&bench.queue).unwrap();
    run.wait().unwrap();
    assert_eq!(run.get(&read).unwrap().len(), 0);
    assert_eq!(bench.content(&a), [1; 8]);
}
