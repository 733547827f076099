//! Building graphs: nodes, edges, queries, and all errors of building.

mod common;

use std::collections::HashSet;

use clgraph::{
    Buffer, BuildCause, ErrorKind, ExecuteKernel, Finalize, Graph, GraphProperties, Node, NodeKind, Parameter, Program,
    Queue,
};
use common::{Bench, Reason, cause, elsewhere, text};

/// Rule B1
#[test]
fn a_graph_is_made_from_a_queue_or_from_a_context_and_one_of_its_devices() {
    let bench = Bench::new();
    assert_eq!(bench.graph().device(), bench.queue.device());
    let device = bench.queue.device().clone();
    let graph = Graph::with_properties(&bench.queue, &device, GraphProperties::default()).unwrap();
    assert_eq!(graph.device(), &device);

    // A sub-device is a device of its own, outside a context that was made of its parent.
    let Some(parts) = common::sub_devices(&device) else { return common::skip(Reason::NoSubDevices) };
    // SAFETY: the sub-device has just been made and is kept in `parts`.
    let part = unsafe { clgraph::Device::from_raw(parts[0].id()) }.unwrap();
    let error = Graph::with_properties(&bench.queue, &part, GraphProperties::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("does not belong to the context"), "{error}");
    // The sub-device can have a graph in its own context.
    let queue = Queue::new(&part).unwrap();
    assert_eq!(Graph::new(&queue).unwrap().device(), &part);
}

/// Rules B2, B6: every kind of node is added by a builder, and can be asked for.
#[test]
fn every_kind_of_node_can_be_added_and_asked_for() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[0; 16]), bench.buffer(&[0; 16]));
    let graph = bench.graph();
    assert!(graph.is_empty());
    let fill = graph.fill(&a, 1_u32).add().unwrap();
    let write = graph.write(&b, [2; 16]).add().unwrap();
    // SAFETY: `stir` touches one element a work-item.
    let kernel = unsafe { graph.kernel(&bench.kernel("stir")).read_write(&a).range(16).add() }.unwrap();
    let copy = graph.copy(&a, &b).add().unwrap();
    let rect = graph.copy_rect(&a, &b).region([2, 2, 1]).src_pitch(4, 0).dst_pitch(4, 0).add().unwrap();
    let read = graph.read(&b).add().unwrap();
    let empty = graph.empty().after([fill, copy]).add().unwrap();

    let nodes = [fill, write.node(), kernel, copy, rect, read.node(), empty];
    assert_eq!(graph.nodes(), nodes);
    assert_eq!(graph.len(), 7);
    let kinds: Vec<_> = nodes.iter().map(|node| graph.kind(*node).unwrap()).collect();
    use NodeKind::{Copy, CopyRect, Empty, Fill, Kernel, Read, Write};
    assert_eq!(kinds, [Fill, Write, Kernel, Copy, CopyRect, Read, Empty]);
    assert_eq!(graph.roots(), [fill, write.node()]);
    assert_eq!(graph.predecessors(copy).unwrap(), [write.node(), kernel]);
    assert_eq!(graph.successors(fill).unwrap(), [kernel, empty]);
    assert_eq!(graph.successors(empty).unwrap(), []);
}

/// Rule B3
#[test]
fn dependencies_may_be_given_with_every_kind_of_node() {
    let bench = Bench::new();
    let buffers: Vec<_> = (0..8).map(|_| bench.buffer(&[0; 4])).collect();
    let source = include_str!("../kernels-cl/nothing.cl");
    let nothing = Program::from_source(&bench.queue, source).unwrap().kernel("nothing").unwrap();
    let graph = bench.graph();
    let first = graph.empty().add().unwrap();
    let other = graph.write(&buffers[7], [0; 4]).add().unwrap();
    let nodes = [
        graph.empty().after(first).after(other).add().unwrap(),
        graph.fill(&buffers[0], 0_u32).after([first, other.node()]).add().unwrap(),
        graph.write(&buffers[1], [0; 4]).after(&[first, other.into()][..]).add().unwrap().node(),
        graph.read(&buffers[2]).after(vec![first, other.node()]).add().unwrap().node(),
        graph.copy(&buffers[3], &buffers[4]).after([first]).after(other).add().unwrap(),
        graph.copy_rect(&buffers[5], &buffers[6]).region([1, 1, 1]).after(first).after(other).add().unwrap(),
        // SAFETY: it touches nothing.
        unsafe { graph.kernel(&nothing).range(1).after(first).after(other).add() }.unwrap(),
    ];
    for node in nodes {
        assert_eq!(graph.predecessors(node).unwrap(), [first, other.node()], "{node}");
    }
    let all = graph.empty().after_all_leaves().add().unwrap();
    assert_eq!(graph.predecessors(all).unwrap(), nodes);
}

/// Rules B4, B12
#[test]
fn edges_are_added_once_and_never_close_a_cycle() {
    let bench = Bench::new();
    let graph = bench.graph();
    let [a, b, c] = [(); 3].map(|()| graph.empty().add().unwrap());
    graph.add_edge(a, b).unwrap();
    graph.add_edge(a, b).unwrap();
    graph.add_edge(b, c).unwrap();
    assert_eq!(graph.successors(a).unwrap(), [b]);

    assert_eq!(cause(graph.add_edge(a, a)), BuildCause::SameNode { node: a });
    let error = graph.add_edge(c, a).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(
        error.to_string(),
        "edge from node 2 to node 0: the edge would close a cycle: node 0 -> node 1 -> node 2 -> node 0; leave out \
         this edge, or another edge of the cycle"
    );
    assert_eq!(cause(graph.add_edge(c, a)), BuildCause::Cycle { nodes: vec![a, b, c] });
    let other = bench.graph().empty().add().unwrap();
    assert_eq!(cause(graph.add_edge(a, other)), BuildCause::OtherGraph { node: other });
    // Nothing changed.
    assert_eq!(graph.predecessors(a).unwrap(), []);
    assert_eq!(graph.successors(c).unwrap(), []);
    bench.run(&graph);
}

/// Rule B4
#[test]
fn without_the_cycle_check_finalize_names_the_cycle() {
    let bench = Bench::new();
    let properties = GraphProperties::new().no_cycle_check().assume_buffer_outlives_graph();
    let graph = Graph::with_properties(&bench.queue, bench.queue.device(), properties).unwrap();
    let [a, b] = [(); 2].map(|()| graph.empty().add().unwrap());
    graph.add_edge(a, b).unwrap();
    graph.add_edge(b, a).unwrap();
    let error = graph.finalize(Finalize::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().starts_with("the graph has a cycle: node"), "{error}");
}

/// Rule B12
#[test]
fn nodes_are_equal_when_they_are_the_same_and_mean_nothing_elsewhere() {
    let bench = Bench::new();
    let (graph, other) = (bench.graph(), bench.graph());
    let node = graph.empty().add().unwrap();
    let same_number = other.empty().add().unwrap();
    assert_eq!(node, graph.nodes()[0]);
    assert_ne!(node, same_number);
    let twice = graph.empty().after([node, node]).after(node).add().unwrap();
    assert_eq!(graph.predecessors(twice).unwrap(), [node]);

    drop(other);
    for error in [
        cause(graph.empty().after(same_number).add()),
        cause(graph.kind(same_number)),
        cause(graph.predecessors(same_number)),
        cause(graph.successors(same_number)),
    ] {
        assert_eq!(error, BuildCause::OtherGraph { node: same_number });
    }
    let labelled = text(graph.empty().label("the end").after(same_number).add());
    assert!(labelled.starts_with("empty node \"the end\" (to be node 2): "), "{labelled}");
    let message = text(graph.empty().after(same_number).add());
    assert_eq!(
        message,
        "empty node (to be node 2): node 0 belongs to another graph, or to a graph that was dropped: use a node of \
         this graph"
    );
    // The error names the end of the edge.
    let edge = text(graph.add_edge(same_number, graph.nodes()[0]));
    assert!(edge.starts_with("edge from node 0 of another graph to node 0: node 0 belongs to another graph"), "{edge}");
    assert_eq!(graph.len(), 2);
}

/// Rule B7
#[test]
fn an_empty_graph_finalizes_and_its_submission_completes() {
    let bench = Bench::new();
    let executable = bench.run(&bench.graph());
    assert_eq!(executable.report().commands, 0);
    let ooo = bench.another_queue(true);
    executable.submit(&ooo).unwrap().wait().unwrap();
}

/// Rule B8
#[test]
fn a_graph_grows_after_finalize_and_earlier_executables_do_not_change() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[0; 4]), bench.buffer(&[0; 4]));
    let graph = bench.graph();
    graph.fill(&a, 1_u32).add().unwrap();
    let first = graph.finalize(Finalize::new()).unwrap();
    graph.fill(&a, 2_u32).add().unwrap();
    graph.fill(&b, 3_u32).add().unwrap();
    let second = graph.finalize(Finalize::new()).unwrap();

    first.submit(&bench.queue).unwrap().wait().unwrap();
    assert_eq!((bench.content(&a), bench.content(&b)), (vec![1; 4], vec![0; 4]));
    second.submit(&bench.queue).unwrap().wait().unwrap();
    assert_eq!((bench.content(&a), bench.content(&b)), (vec![2; 4], vec![3; 4]));
    first.submit(&bench.queue).unwrap().wait().unwrap();
    assert_eq!((bench.content(&a), bench.content(&b)), (vec![1; 4], vec![3; 4]));
}

/// Rule B10: OpenCL's explicit barrier has no node of its own; this node does the same.
#[test]
fn an_empty_node_after_all_leaves_orders_like_a_barrier() {
    let bench = Bench::new();
    let buffers: Vec<_> = (0..3).map(|_| bench.buffer(&[0; 4])).collect();
    let graph = bench.graph();
    let before: Vec<_> = buffers.iter().map(|buffer| graph.fill(buffer, 1_u32).add().unwrap()).collect();
    let barrier = graph.empty().after_all_leaves().add().unwrap();
    let after = graph.empty().after_all_leaves().add().unwrap();
    assert_eq!(graph.predecessors(barrier).unwrap(), before);
    assert_eq!(graph.predecessors(after).unwrap(), [barrier]);
}

/// Rule B11: nodes so far; events of recorded submissions come with recording.
#[test]
fn dependencies_are_nodes_of_the_same_graph() {
    let bench = Bench::new();
    let graph = bench.graph();
    let buffer = bench.buffer(&[0; 4]);
    let write = graph.write(&buffer, [1; 4]).add().unwrap();
    let read = graph.read(&buffer).add().unwrap();
    let node = graph.empty().after(write).after([&read]).add().unwrap();
    assert_eq!(graph.predecessors(node).unwrap(), [write.node(), read.node()]);
    let foreign = bench.graph().empty().add().unwrap();
    assert_eq!(cause(graph.fill(&buffer, 0_u32).after(foreign).add()), BuildCause::OtherGraph { node: foreign });
}

/// Adds one kernel node and returns the text of the error; the graph stays empty.
macro_rules! refused {
    ($bench:expr, $kernel:expr, $($call:tt)*) => {{
        let graph = $bench.graph();
        // SAFETY: it is refused; were it not, the test would fail before anything is submitted.
        let result = unsafe { graph.kernel(&$bench.kernel($kernel)).$($call)*.add() };
        assert!(graph.is_empty(), "a refused node leaves the graph as it was");
        assert_eq!(result.as_ref().unwrap_err().kind(), ErrorKind::Invalid);
        text(result)
    }};
}

/// The number, kind and size of arguments are checked before a driver sees them, because some drivers accept anything.
#[test]
fn wrong_arguments_are_refused_with_the_parameter_named() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 8]);
    assert_eq!(
        refused!(bench, "scale", read(&a).write(&a).range(8)),
        "kernel `scale` (to be node 0): the number of arguments is 2, but the kernel has 3 parameters (`scale(uint* \
         in, uint* out, uint by)`): give one argument for each parameter, in the order of the parameters"
    );
    assert_eq!(
        refused!(bench, "scale", read(&a).write(&a).arg(1_u64).range(8)),
        "kernel `scale` (to be node 0): argument 2 `by` is `uint` of 4 bytes, but the value given has 8 bytes: give a \
         value of that size"
    );
    assert_eq!(
        refused!(bench, "scale", read(&a).arg(7_u64).arg(1_u32).range(8)),
        "kernel `scale` (to be node 0): argument 1 `out` is a buffer (`uint*`), but a value was given: \
         give what the kernel declares"
    );
    assert_eq!(
        refused!(bench, "scale", read(&a).write(&a).read(&a).range(8)),
        "kernel `scale` (to be node 0): argument 2 `by` is a value (`uint`), but a buffer was given: \
         give what the kernel declares"
    );
    assert_eq!(
        refused!(bench, "group_sum", read_write(&a).read(&a).range(8)),
        "kernel `group_sum` (to be node 0): argument 1 `scratch` is local memory (`uint*`), but a buffer was given: \
         give what the kernel declares"
    );
    assert_eq!(
        refused!(bench, "stir", local::<u32>(4).range(8)),
        "kernel `stir` (to be node 0): argument 0 `a` is a buffer (`uint*`), but a size of local memory was given: \
         give what the kernel declares"
    );
    assert!(
        refused!(bench, "grid", read_write(&a).arg([1_u32; 2]).arg([1_u32; 3]).range(8))
            .contains("`uint4` of 16 bytes")
    );
    let empty = refused!(bench, "group_sum", read_write(&a).local::<u32>(0).range(8));
    assert!(empty.contains("argument 1 asks for no bytes of local memory"), "{empty}");
    // The size of a struct is not known. A value without bytes, or with more than a device accepts, is an error.
    let nothing = refused!(bench, "affine", read_write(&a).bytes(&[]).range(8));
    assert!(
        nothing
            .contains("argument 1 has 0 bytes, after 0 bytes of earlier values: each value must have at least 1 byte"),
        "{nothing}"
    );
    let much = refused!(bench, "affine", read_write(&a).bytes(&[0; 1 << 16]).range(8));
    assert!(much.contains("CL_DEVICE_MAX_PARAMETER_SIZE"), "{much}");
}

/// Drivers accept any bytes: as a `float`, `2` would be 2.8e-45.
#[test]
fn a_float_for_an_integer_or_an_integer_for_a_float_is_refused() {
    let bench = Bench::new();
    let source =
        "kernel void f(global uint *a, float x, int n, uchar c, ulong l, float2 v) { a[0] = x + n + c + l + v.x; }";
    let kernel = Program::from_source(&bench.queue, source).unwrap().kernel("f").unwrap();
    let (a, graph) = (bench.buffer(&[0; 8]), bench.graph());
    let refused = |result: clgraph::Result<Node>| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let text = error.to_string();
        text.strip_prefix("kernel `f` (to be node 0): ").unwrap().to_owned()
    };
    macro_rules! add {
        // SAFETY: it is refused, and where it is not it never runs.
        ($($arg:expr),*) => { unsafe { graph.kernel(&kernel).write(&a)$(.arg($arg))*.range(1).add() } };
    }
    let v = [1.0_f32; 2];
    assert_eq!(
        refused(add!(2, 1, 1_u8, 1_u64, v)),
        "argument 1 `x` is `float`, but an `i32` was given: give an `f32`, or the bytes of the value as an array"
    );
    assert_eq!(
        refused(add!(2.0_f32, 1.0_f32, 1_u8, 1_u64, v)),
        "argument 2 `n` is `int`, but an `f32` was given: give an `i32`, or the bytes of the value as an array"
    );
    assert_eq!(
        refused(add!(2.0_f32, 1, 1.0_f64, 1_u64, v)),
        "argument 3 `c` is `uchar`, but an `f64` was given: give a `u8`, or the bytes of the value as an array"
    );
    assert_eq!(
        refused(add!(2_usize, 1, 1_u8, 1_u64, v)),
        "argument 1 `x` is `float`, but a `usize` was given: give an `f32`, or the bytes of the value as an array"
    );
    // Through parameters too; a second parameter of the same argument is checked as well.
    let (right, wrong) = (Parameter::any(2.0_f32), Parameter::within(2_u32, 0..9).unwrap());
    assert_eq!(
        refused(add!(&wrong, 1, 1_u8, 1_u64, v)),
        "argument 1 `x` is `float`, but a `u32` was given: give an `f32`, or the bytes of the value as an array"
    );
    // SAFETY: it is refused.
    let also = unsafe {
        graph
            .kernel(&kernel)
            .write(&a)
            .arg(&right)
            .also_parameter(&wrong)
            .arg(1)
            .arg(1_u8)
            .arg(1_u64)
            .arg(v)
            .range(1)
            .add()
    };
    assert!(refused(also).contains("a `u32` was given"));
    assert!(graph.is_empty());
    // On a queue too.
    let mut launch = ExecuteKernel::new(&kernel);
    launch.set_arg_write(&a).set_arg(&2).set_arg(&1).set_arg(&1_u8).set_arg(&1_u64).set_arg(&v).set_global_work_size(1);
    // SAFETY: as above.
    let error = unsafe { launch.enqueue_nd_range(&bench.queue) }.unwrap_err().to_string();
    assert_eq!(
        error,
        "kernel `f`: argument 1 `x` is `float`, but an `i32` was given: give an `f32`, or the bytes of the value as an \
         array"
    );
    // Signedness is not checked, and a value that is no Rust number is taken as it is.
    add!(2.0_f32, 1_u32, 1_i8, 1_usize as u64, v).unwrap();
    add!(2_u32.to_ne_bytes(), [1.0_f32], 1_u8, 1_i64, 1_u64).unwrap();
    add!(&Parameter::bytes(&[0; 4]), 1, 1_u8, 1_u64, v).unwrap();
}

#[test]
fn a_buffer_where_an_image_belongs_is_refused() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 8]);
    let graph = bench.graph();
    // SAFETY: it is refused.
    let result = unsafe { graph.kernel(&bench.kernel("takes_an_image")).read(&a).write(&a).range(1).add() };
    assert_eq!(result.as_ref().unwrap_err().kind(), ErrorKind::Invalid);
    assert!(text(result).contains(
        "argument 0 `image` is an image (`image2d_t`), but a buffer was given: \
         give what the kernel declares"
    ));
}

#[test]
fn ranges_and_work_groups_that_the_device_or_kernel_forbids_are_refused() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 64]);
    assert!(
        refused!(bench, "stir", read_write(&a))
            .ends_with("the kernel node has no range: give the global work size with `range`")
    );
    assert!(
        refused!(bench, "stir", read_write(&a).range([8, 8]).work_group(8))
            .contains("the work-group size has 1 dimensions, but the range has 2: ")
    );
    assert!(
        refused!(bench, "stir", read_write(&a).range(8).offset([1, 1]))
            .contains("the global offset has 2 dimensions, but the range has 1: ")
    );
    let large = refused!(bench, "stir", read_write(&a).range(1 << 20).work_group(1 << 20));
    assert!(large.contains("CL_DEVICE_MAX_WORK_ITEM_SIZES"), "{large}");
    let limit = bench.queue.device().caps().max_work_group_size;
    let many = refused!(bench, "stir", read_write(&a).range([limit, 2]).work_group([limit, 2]));
    assert!(many.contains("CL_KERNEL_WORK_GROUP_SIZE"), "{many}");
    let zero = refused!(bench, "stir", read_write(&a).range(8).work_group(0));
    assert!(zero.contains("leave `work_group` out, so that the driver chooses"), "{zero}");
    let required = refused!(bench, "by_eight", write(&a).range(64).work_group(4));
    assert!(required.contains("reqd_work_group_size [8, 1, 1]"), "{required}");
    let dims = refused!(bench, "by_rows", write(&a).range(64));
    assert!(dims.contains("the range has 1 dimensions, but the kernel has reqd_work_group_size [2, 4, 1]"), "{dims}");
    let uneven = refused!(bench, "by_eight", write(&a).range(60));
    assert!(uneven.contains("round the range up to 64"), "{uneven}");
    let far = refused!(bench, "stir", read_write(&a).range(8).offset(usize::MAX - 3));
    assert!(far.contains("must fit the device's size_t"), "{far}");
    let local = refused!(bench, "group_sum", read_write(&a).local::<u64>(1 << 40).range(8));
    assert!(local.contains("bytes of local memory"), "{local}");
}

#[test]
fn objects_of_another_context_are_refused() {
    let (bench, other) = (Bench::new(), elsewhere());
    let (mine, theirs) = (bench.buffer(&[0; 8]), other.buffer(&[0; 8]));
    let graph = bench.graph();
    let is_other = |result: clgraph::Result<clgraph::Node>, what: &str| {
        assert_eq!(cause(result), BuildCause::OtherContext { what: what.to_owned() });
    };
    is_other(graph.fill(&theirs, 0_u32).add(), "the destination");
    is_other(graph.copy(&theirs, &mine).add(), "the source");
    is_other(graph.copy(&mine, &theirs).add(), "the destination");
    is_other(graph.copy_rect(&mine, &theirs).region([1, 1, 1]).add(), "the destination");
    is_other(graph.write(&theirs, [0; 8]).add().map(|write| write.node()), "the destination");
    is_other(graph.read(&theirs).add().map(|read| read.node()), "the source");
    // SAFETY: both are refused.
    unsafe {
        is_other(graph.kernel(&bench.kernel("stir")).read_write(&theirs).range(8).add(), "argument 0");
        is_other(graph.kernel(&other.kernel("stir")).read_write(&mine).range(8).add(), "the kernel's program");
    }
    assert!(graph.is_empty());
}

#[test]
fn transfers_out_of_bounds_or_of_unequal_size_are_refused() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[0; 16]), bench.buffer(&[0; 8]));
    let graph = bench.graph();
    assert_eq!(
        text(graph.copy(&a, &b).add()),
        "copy (to be node 0): the source has 64 bytes and the destination has 32 bytes: give both the same size"
    );
    assert!(text(graph.write(&a, [0; 8]).add()).contains("the data has 32 bytes and the destination has 64 bytes"));
    assert!(text(a.slice(8..17)).contains("elements 8..17 are outside 0..16: a range"));
    assert!(text(a.slice(3..=16)).contains("elements 3..17 are outside"));
    #[allow(clippy::reversed_empty_ranges)]
    let reversed = a.slice(5..3);
    assert!(text(reversed).contains("elements 5..3 are outside"));
    graph.copy(&a.slice(8..).unwrap(), &b).add().unwrap();
}

#[test]
fn overlapping_copies_within_one_buffer_are_refused() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 256]);
    let sub = a.sub_buffer(128..256).unwrap();
    let graph = bench.graph();
    let overlap = text(graph.copy(&a.slice(0..8).unwrap(), &a.slice(4..12).unwrap()).add());
    assert!(
        overlap.contains("source bytes 0..32 and destination bytes 16..48 of one buffer or image overlap"),
        "{overlap}"
    );
    let through = text(graph.copy(&a.slice(124..132).unwrap(), &sub.slice(0..8).unwrap()).add());
    assert!(through.contains("source bytes 496..528 and destination bytes 512..544"), "{through}");
    // Interleaved columns share no byte, although their ranges overlap. One column further they do.
    let columns =
        |x| graph.copy_rect(&a, &a).region([2, 4, 1]).src_pitch(8, 0).dst_pitch(8, 0).dst_origin([x, 0, 0]).add();
    // Rows are counted continuously, whatever the slice pitch would be.
    let down = graph.copy_rect(&a, &a).region([8, 3, 1]).src_origin([0, 5, 0]).dst_origin([0, 6, 0]).add();
    assert!(text(down).contains("overlap"));
    columns(2).unwrap();
    assert!(text(columns(1)).contains("overlap"));
    // One row down and two columns left is beside the first rectangle; one column less overlaps it.
    let diagonal = |x| {
        graph
            .copy_rect(&a, &a)
            .region([2, 2, 1])
            .src_origin([2, 0, 0])
            .dst_origin([x, 1, 0])
            .src_pitch(8, 0)
            .dst_pitch(8, 0)
            .add()
    };
    diagonal(0).unwrap();
    assert!(text(diagonal(1)).contains("overlap"));
    let pitches =
        text(graph.copy_rect(&a, &a).region([1, 2, 1]).src_pitch(8, 0).dst_pitch(4, 0).dst_origin([64, 0, 0]).add());
    assert!(pitches.contains("source are [32, 64] bytes and those of the destination are [16, 32] bytes"), "{pitches}");
}

#[test]
fn rectangles_that_do_not_fit_are_refused() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[0; 64]), bench.buffer(&[0; 64]));
    let graph = bench.graph();
    let rect = || graph.copy_rect(&a, &b).region([4, 4, 2]);
    assert!(
        text(rect().src_pitch(3, 0).add())
            .contains("source: the row pitch of 3 elements is less than a row, which has 4 elements: give at least 4")
    );
    assert!(text(rect().dst_pitch(4, 8).add()).contains(
        "destination: the slice pitch of 8 elements is less than the 4 rows of a slice, which have 16 \
                       elements"
    ));
    assert!(text(rect().src_pitch(4, 18).add()).contains("not a multiple of the row pitch"));
    assert!(text(rect().src_origin([0, 0, 1]).src_pitch(8, 32).add()).contains("source bytes 128..368 are outside"));
    assert!(text(rect().dst_origin([usize::MAX, 0, 0]).add()).contains("do not fit a size_t"));
    assert!(text(rect().dst_origin([0, usize::MAX / 8, 0]).add()).contains("outside the buffer"));
    let none = text(graph.copy_rect(&a, &b).add());
    assert!(none.contains("the copy has no region"), "{none}");
    assert!(graph.is_empty());
    rect().add().unwrap();
}

#[test]
fn bytes_are_filled_as_elements_of_any_type_that_divides_them() {
    let bench = Bench::new();
    let bytes = Buffer::<u8>::new(&bench.queue, 96).unwrap();
    let graph = bench.graph();
    let three = graph.fill(&bytes.cast::<[u8; 3]>().unwrap(), [1, 2, 3]).add().unwrap();
    assert_eq!(graph.kind(three).unwrap(), clgraph::NodeKind::Kernel, "OpenCL has no command for it");
    assert!(text(bytes.cast::<[u8; 64]>()).contains("96 bytes are not a whole number of elements of 64 bytes"));
    graph.fill(&bytes.cast::<u64>().unwrap().slice(1..5).unwrap(), 1).add().unwrap();
}

#[test]
fn accesses_that_a_buffer_was_created_without_are_refused() {
    use opencl3::memory;
    let bench = Bench::new();
    let graph = bench.graph();
    let context = clgraph::InContext::context(&bench.queue).to_opencl3().unwrap();
    let buffer = |flags| {
        // SAFETY: no host pointer.
        let plain = unsafe { memory::Buffer::<u32>::create(&context, flags, 8, std::ptr::null_mut()) }.unwrap();
        Buffer::from_opencl3(&bench.queue, &plain).unwrap()
    };
    let read_only = buffer(memory::CL_MEM_READ_ONLY);
    let write_only = buffer(memory::CL_MEM_WRITE_ONLY);
    let no_host = buffer(memory::CL_MEM_HOST_NO_ACCESS);
    let host_reads = buffer(memory::CL_MEM_HOST_READ_ONLY);
    let host_writes = buffer(memory::CL_MEM_HOST_WRITE_ONLY);
    // SAFETY: all are refused.
    unsafe {
        let written = graph.kernel(&bench.kernel("stir")).read_write(&read_only).range(8).add();
        assert!(
            text(written).contains("argument 0 was created with CL_MEM_READ_ONLY, which forbids writing by kernels")
        );
        let read = graph.kernel(&bench.kernel("scale")).read(&write_only).write(&write_only).arg(1_u32).range(8).add();
        assert!(text(read).contains("argument 0 was created with CL_MEM_WRITE_ONLY, which forbids reading by kernels"));
    }
    assert!(text(graph.write(&no_host, [0; 8]).add()).contains("CL_MEM_HOST_NO_ACCESS"));
    assert!(text(graph.read(&no_host).add()).contains("CL_MEM_HOST_NO_ACCESS"));
    assert!(text(graph.write(&host_reads, [0; 8]).add()).contains("CL_MEM_HOST_READ_ONLY"));
    assert!(text(graph.read(&host_writes).add()).contains("CL_MEM_HOST_WRITE_ONLY"));
    assert!(graph.is_empty());
    graph.read(&host_reads).add().unwrap();
    graph.write(&host_writes, [0; 8]).add().unwrap();
}

#[test]
fn buffers_that_cannot_be_are_refused() {
    let bench = Bench::new();
    assert!(text(Buffer::<u32>::new(&bench.queue, 0)).contains("zero bytes"));
    let limit = bench.queue.device().caps().max_allocation;
    let large = Buffer::<u8>::new(&bench.queue, usize::try_from(limit).unwrap() + 1).unwrap_err();
    assert_eq!(large.kind(), ErrorKind::OutOfMemory);
    assert!(large.to_string().contains("more than the largest allocation"), "{large}");
    assert!(text(Buffer::<u64>::new(&bench.queue, usize::MAX)).contains("more than the largest allocation"));
    let buffer = bench.buffer(&[0; 256]);
    let odd = text(buffer.sub_buffer(4..8));
    assert!(odd.contains("CL_DEVICE_MEM_BASE_ADDR_ALIGN") && odd.contains("by `Buffer::slice`"), "{odd}");
    assert!(text(buffer.sub_buffer(128..128)).contains("a sub-buffer of zero bytes"));
    assert!(text(buffer.sub_buffer(120..257)).contains("elements 120..257 are outside"));
    let sub = buffer.sub_buffer(128..).unwrap();
    assert!(text(sub.sub_buffer(..8)).contains("a sub-buffer of a sub-buffer"));
    assert!(text(buffer.cast::<[u32; 3]>()).contains("not a whole number"));
}

#[test]
fn a_program_that_does_not_build_gives_its_log_and_kernels_are_found_by_name() {
    let bench = Bench::new();
    let error = Program::from_source(&bench.queue, "kernel void f(global int *a) { a[0] = nonsense; }").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let message = error.to_string();
    assert!(message.contains("does not build for device"), "{message}");
    assert!(message.contains("nonsense"), "the compiler's own words are in it: {message}");
    assert!(text(Program::from_source(&bench.queue, "")).contains("the source is empty"));
    assert!(text(Program::from_source(&bench.queue, "kernel\0")).contains("zero byte at position 6"));
    let unknown = text(bench.program.kernel("no_such"));
    assert!(unknown.contains("no kernel `no_such`") && unknown.contains("scale"), "{unknown}");
    assert!(text(bench.program.kernel("a\0b")).contains("zero byte"));
}

#[test]
fn a_host_read_is_found_by_its_node() {
    let bench = Bench::new();
    let (a, graph) = (bench.buffer(&[5; 8]), bench.graph());
    let read = graph.read(&a).add().unwrap();
    assert_eq!(graph.kind(read).unwrap(), NodeKind::Read);
    let found = graph.host_read::<u32>(read).unwrap();
    assert_eq!(found, read);
    let run = graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
    run.wait().unwrap();
    assert_eq!(*run.get(&found).unwrap(), [5; 8]);
    assert_eq!(*run.get(&graph.host_read::<[u32; 4]>(read).unwrap()).unwrap(), [[5; 4]; 2]);
    let fill = graph.fill(&a, 1).add().unwrap();
    assert!(matches!(cause(graph.host_read::<u32>(fill)), BuildCause::OtherKind { .. }));
    assert!(matches!(cause(graph.host_read::<[u8; 5]>(read)), BuildCause::Memory(_)));
    assert!(matches!(cause(bench.graph().host_read::<u32>(read)), BuildCause::OtherGraph { .. }));
}

#[test]
fn handles_are_equal_where_they_stand_for_the_same() {
    let bench = Bench::new();
    let (a, b, graph) = (bench.buffer(&[0; 8]), bench.buffer(&[0; 8]), bench.graph());
    assert!(a == a.clone() && a != b);
    let part = a.slice(2..6).unwrap();
    assert_eq!(part.slice(1..3).unwrap(), a.slice(3..5).unwrap());
    assert!(part != b.slice(2..6).unwrap() && part != a.slice(2..5).unwrap());
    assert_eq!((part.size(), part.slice(4..).unwrap().len()), (16, 0));
    let beyond = part.slice(..5).unwrap_err();
    assert!(matches!(beyond, clgraph::Error::Memory(clgraph::MemoryError::OutOfBounds { .. })), "{beyond}");
    let (one, other) = (graph.alloc::<u32>(8).add().unwrap(), graph.alloc::<u32>(8).add().unwrap());
    assert!(one == one.clone() && one != other && one.size() == 32);
    let executable = graph.finalize(Finalize::new()).unwrap();
    let run = executable.submit(&bench.queue).unwrap();
    assert!(run == run.clone() && run != executable.submit(&bench.queue).unwrap());
    let event = bench.queue.enqueue_fill_buffer(&a, &[1_u32], 0, 32, &[]).unwrap();
    assert!(event == event.clone() && event != bench.queue.enqueue_fill_buffer(&a, &[1_u32], 0, 32, &[]).unwrap());
    assert_eq!(HashSet::from([graph.clone(), graph.clone(), bench.graph()]).len(), 2);
    assert_eq!(HashSet::from([bench.queue.clone(), bench.queue.clone()]).len(), 1);
    assert_eq!(HashSet::from([bench.kernel("scale"), bench.kernel("scale"), bench.kernel("stir")]).len(), 2);
    assert_eq!(HashSet::from([executable.clone(), executable]).len(), 1);
}
