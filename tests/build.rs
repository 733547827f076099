//! Building graphs: nodes, edges, queries, and all errors of building.

mod common;

use std::collections::HashSet;

use clgraph::{
    Buffer, BuildCause, BuildError, ErrorKind, ExecuteKernel, Extent, Finalize, FinalizeError, Graph, GraphProperties,
    MemoryError, Node, NodeKind, Parameter, Program, ProgramError, Queue, RectError, SetupError, WorkGroupError,
};
use common::{Bench, Reason, assert_error, cause, elsewhere};

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
    assert_error!(error, SetupError::DeviceOutsideContext { .. });
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
    let cycle = BuildCause::Cycle { nodes: vec![a, b, c] };
    assert_error!(
        error,
        BuildError { subject, cause, .. } if subject == "edge from node 2 to node 0" && **cause == cycle,
    );
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
    assert_error!(error, FinalizeError::Cycle { nodes } if nodes[..] == [b, a]);
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
    // The error names the node that was to be added, or both ends of the edge.
    let named = |result: clgraph::Result<()>, by: &str| {
        let other = BuildCause::OtherGraph { node: same_number };
        assert_error!(result, BuildError { subject, cause, .. } if subject == by && **cause == other);
    };
    let labelled = graph.empty().label("the end").after(same_number).add();
    named(labelled.map(drop), "empty node \"the end\" (to be node 2)");
    named(graph.empty().after(same_number).add().map(drop), "empty node (to be node 2)");
    named(graph.add_edge(same_number, graph.nodes()[0]), "edge from node 0 of another graph to node 0");
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

/// Adds one kernel node and returns what is wrong with it; the graph stays empty.
macro_rules! refused {
    ($bench:expr, $kernel:expr, $($call:tt)*) => {{
        let graph = $bench.graph();
        // SAFETY: it is refused; were it not, the test would fail before anything is submitted.
        let result = unsafe { graph.kernel(&$bench.kernel($kernel)).$($call)*.add() };
        assert!(graph.is_empty(), "a refused node leaves the graph as it was");
        assert_eq!(result.as_ref().unwrap_err().kind(), ErrorKind::Invalid);
        let of = format!("kernel `{}` (to be node 0)", $kernel);
        assert_error!(&result, BuildError { subject, .. } if *subject == of);
        result
    }};
}

/// The number, kind and size of arguments are checked before a driver sees them, because some drivers accept anything.
#[test]
fn wrong_arguments_are_refused_with_the_parameter_named() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 8]);
    assert_error!(
        refused!(bench, "scale", read(&a).write(&a).range(8)),
        BuildCause::ArgumentCount { given: 2, expected: 3, signature: Some(signature) }
            if signature == "scale(uint* in, uint* out, uint by)",
    );
    assert_error!(
        refused!(bench, "scale", read(&a).write(&a).arg(1_u64).range(8)),
        BuildCause::ArgumentSize { index: 2, name, type_name, expected: 4, given: 8 }
            if name == "by" && type_name == "uint",
    );
    let kind = |result: clgraph::Result<Node>, at: usize, parameter: [&str; 2], has: &str| {
        assert_error!(
            result,
            BuildCause::ArgumentKind { index, name, expected, given }
                if *index == at && [name, expected] == parameter && given == has,
        );
    };
    kind(
        refused!(bench, "scale", read(&a).arg(7_u64).arg(1_u32).range(8)),
        1,
        ["out", "a buffer (`uint*`)"],
        "a value",
    );
    kind(refused!(bench, "scale", read(&a).write(&a).read(&a).range(8)), 2, ["by", "a value (`uint`)"], "a buffer");
    let local = ["scratch", "local memory (`uint*`)"];
    kind(refused!(bench, "group_sum", read_write(&a).read(&a).range(8)), 1, local, "a buffer");
    let pointer = ["a", "a buffer (`uint*`)"];
    kind(refused!(bench, "stir", local::<u32>(4).range(8)), 0, pointer, "a size of local memory");
    assert_error!(
        refused!(bench, "grid", read_write(&a).arg([1_u32; 2]).arg([1_u32; 3]).range(8)),
        BuildCause::ArgumentSize { index: 2, type_name, expected: 16, given: 12, .. } if type_name == "uint4",
    );
    assert_error!(
        refused!(bench, "group_sum", read_write(&a).local::<u32>(0).range(8)),
        BuildCause::NoLocalMemory { index: 1 },
    );
    // The size of a struct is not known. A value without bytes, or with more than a device accepts, is an error.
    let limit = bench.queue.device().caps().max_parameter_size;
    for bytes in [&[][..], &[0; 1 << 16]] {
        assert_error!(
            refused!(bench, "affine", read_write(&a).bytes(bytes).range(8)),
            BuildCause::ArgumentBytes { index: 1, given, before: 0, limit: most }
                if *given == bytes.len() && *most == limit,
        );
    }
}

/// Drivers accept any bytes: as a `float`, `2` would be 2.8e-45.
#[test]
fn a_float_for_an_integer_or_an_integer_for_a_float_is_refused() {
    let bench = Bench::new();
    let source =
        "kernel void f(global uint *a, float x, int n, uchar c, ulong l, float2 v) { a[0] = x + n + c + l + v.x; }";
    let kernel = Program::from_source(&bench.queue, source).unwrap().kernel("f").unwrap();
    let (a, graph) = (bench.buffer(&[0; 8]), bench.graph());
    macro_rules! add {
        // SAFETY: it is refused, and where it is not it never runs.
        ($($arg:expr),*) => { unsafe { graph.kernel(&kernel).write(&a)$(.arg($arg))*.range(1).add() } };
    }
    let refused = |result: clgraph::Result<Node>, at: usize, parameter: [&str; 2], has: &str, fits: &str| {
        assert_eq!(result.as_ref().unwrap_err().kind(), ErrorKind::Invalid);
        assert_error!(
            result,
            BuildCause::ArgumentType { index, name, type_name, given, expected }
                if *index == at && [name, type_name] == parameter && given == has && *expected == fits,
        );
    };
    let (v, x) = ([1.0_f32; 2], ["x", "float"]);
    refused(add!(2, 1, 1_u8, 1_u64, v), 1, x, "an `i32`", "an `f32`");
    refused(add!(2.0_f32, 1.0_f32, 1_u8, 1_u64, v), 2, ["n", "int"], "an `f32`", "an `i32`");
    refused(add!(2.0_f32, 1, 1.0_f64, 1_u64, v), 3, ["c", "uchar"], "an `f64`", "a `u8`");
    refused(add!(2_usize, 1, 1_u8, 1_u64, v), 1, x, "a `usize`", "an `f32`");
    // Through parameters too; a second parameter of the same argument is checked as well.
    let (right, wrong) = (Parameter::any(2.0_f32), Parameter::within(2_u32, 0..9).unwrap());
    refused(add!(&wrong, 1, 1_u8, 1_u64, v), 1, x, "a `u32`", "an `f32`");
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
    refused(also, 1, x, "a `u32`", "an `f32`");
    assert!(graph.is_empty());
    // On a queue too.
    let mut launch = ExecuteKernel::new(&kernel);
    launch.set_arg_write(&a).set_arg(&2).set_arg(&1).set_arg(&1_u8).set_arg(&1_u64).set_arg(&v).set_global_work_size(1);
    // SAFETY: as above.
    let enqueued = unsafe { launch.enqueue_nd_range(&bench.queue) };
    assert_error!(&enqueued, BuildError { subject, .. } if subject == "kernel `f`");
    refused(enqueued.map(|_| graph.nodes()[0]), 1, x, "an `i32`", "an `f32`");
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
    assert_error!(
        result,
        BuildCause::ArgumentKind { index: 0, name, expected, given }
            if name == "image" && expected == "an image (`image2d_t`)" && given == "a buffer",
    );
}

#[test]
fn ranges_and_work_groups_that_the_device_or_kernel_forbids_are_refused() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 64]);
    let caps = bench.queue.device().caps();
    assert_error!(refused!(bench, "stir", read_write(&a)), BuildCause::NoRange);
    assert_error!(
        refused!(bench, "stir", read_write(&a).range([8, 8]).work_group(8)),
        BuildCause::Dimensions { what: "work-group size", given: 1, of: "the range", range: 2 },
    );
    assert_error!(
        refused!(bench, "stir", read_write(&a).range(8).offset([1, 1])),
        BuildCause::Dimensions { what: "global offset", given: 2, of: "the range", range: 1 },
    );
    assert_error!(
        refused!(bench, "stir", read_write(&a).range(1 << 20).work_group(1 << 20)),
        BuildCause::WorkGroup(WorkGroupError::ItemSize { dimension: 0, given: 0x10_0000, limit })
            if *limit == caps.max_work_item_sizes[0],
    );
    let most = caps.max_work_group_size;
    assert_error!(
        refused!(bench, "stir", read_write(&a).range([most, 2]).work_group([most, 2])),
        BuildCause::WorkGroup(WorkGroupError::TooLarge { given, limit }) if *given == [most, 2, 1] && *limit <= most,
    );
    assert_error!(
        refused!(bench, "stir", read_write(&a).range(8).work_group(0)),
        BuildCause::WorkGroup(WorkGroupError::Empty { given: [0, 1, 1] }),
    );
    assert_error!(
        refused!(bench, "by_eight", write(&a).range(64).work_group(4)),
        BuildCause::WorkGroup(WorkGroupError::Required { given: [4, 1, 1], required: [8, 1, 1] }),
    );
    assert_error!(
        refused!(bench, "by_rows", write(&a).range(64)),
        BuildCause::WorkGroup(WorkGroupError::RequiredDimensions { given: 1, required: [2, 4, 1] }),
    );
    assert_error!(
        refused!(bench, "by_eight", write(&a).range(60)),
        BuildCause::WorkGroup(WorkGroupError::Uneven { dimension: 0, range: 60, work_group: 8 }),
    );
    assert_error!(
        refused!(bench, "stir", read_write(&a).range(8).offset(usize::MAX - 3)),
        BuildCause::RangeTooLarge { range, offset } if range[..] == [8] && offset[..] == [usize::MAX - 3],
    );
    assert_error!(
        refused!(bench, "group_sum", read_write(&a).local::<u64>(1 << 40).range(8)),
        BuildCause::LocalMemory { needed, own, limit } if *needed == (8 << 40) + *own && *limit == caps.local_memory,
    );
}

/// PoCL counts work-groups in 32 bits. Without a work-group size it may choose work-groups of one work-item.
#[test]
fn more_work_groups_than_the_driver_counts_are_refused() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 8]);
    let most = 1_usize << 32;
    if bench.queue.device().caps().platform == "Portable Computing Language" {
        assert_error!(
            refused!(bench, "stir", read_write(&a).range(most)),
            BuildCause::WorkGroup(WorkGroupError::TooMany { groups: 0x1_0000_0000, limit: 0xffff_ffff }),
        );
        assert_error!(
            refused!(bench, "stir", read_write(&a).range([most / 2, 6]).work_group([1, 2])),
            BuildCause::WorkGroup(WorkGroupError::TooMany { groups: 0x1_8000_0000, limit: 0xffff_ffff }),
        );
    } else {
        // SAFETY: it is not submitted.
        unsafe { bench.graph().kernel(&bench.kernel("stir")).read_write(&a).range(most).add() }.unwrap();
    }
    // SAFETY: none is submitted.
    let add = |range: Extent, work_group: Extent| unsafe {
        bench.graph().kernel(&bench.kernel("stir")).read_write(&a).range(range).work_group(work_group).add()
    };
    add(most.into(), 2_usize.into()).unwrap();
    add([most / 2, 6, 0].into(), [1, 1, 1_usize].into()).unwrap();
}

/// What a driver takes by hand it takes in a graph: NVIDIA's (580) takes more work-items in a group than it says.
#[test]
fn work_groups_that_the_driver_takes_are_taken() {
    let bench = Bench::new();
    let (plain, kernel) = (common::plain_queue(&bench.queue), bench.kernel("stir"));
    let object = kernel.to_opencl3().unwrap();
    let most = bench.queue.device().caps().max_work_group_size;
    let memory = bench.buffer(&vec![0; most]);
    // SAFETY: the memory is the kernel's argument.
    unsafe { object.set_arg(0, &memory.raw()) }.unwrap();
    for items in (0..=most.ilog2()).map(|power| 1 << power) {
        // SAFETY: each work-item touches its own element.
        let by_hand = unsafe {
            let (null, size) = (std::ptr::null(), &raw const items);
            plain.enqueue_nd_range_kernel(object.get(), 1, null, size, size, &[])
        };
        let graph = bench.graph();
        // SAFETY: as above.
        let in_graph = unsafe { graph.kernel(&kernel).read_write(&memory).range(items).work_group(items).add() };
        assert_eq!(in_graph.is_ok(), by_hand.is_ok(), "{items} of {most}: {by_hand:?}");
        if in_graph.is_ok() {
            graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap().wait().unwrap();
        }
    }
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
    let (left, right) = ("the source", "the destination");
    let mismatch = BuildCause::SizeMismatch { left, left_bytes: 64, right, right_bytes: 32 };
    assert_error!(
        graph.copy(&a, &b).add(),
        BuildError { subject, cause, .. } if subject == "copy (to be node 0)" && **cause == mismatch,
    );
    assert_error!(
        graph.write(&a, [0; 8]).add(),
        BuildCause::SizeMismatch { left: "the data", left_bytes: 32, right: "the destination", right_bytes: 64 },
    );
    assert_error!(a.slice(8..17), MemoryError::OutOfBounds { what: "elements", start: 8, end: 17, len: 16 });
    assert_error!(a.slice(3..=16), MemoryError::OutOfBounds { what: "elements", start: 3, end: 17, len: 16 });
    #[allow(clippy::reversed_empty_ranges)]
    let reversed = a.slice(5..3);
    assert_error!(reversed, MemoryError::OutOfBounds { what: "elements", start: 5, end: 3, len: 16 });
    graph.copy(&a.slice(8..).unwrap(), &b).add().unwrap();
}

#[test]
fn overlapping_copies_within_one_buffer_are_refused() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 256]);
    let sub = a.sub_buffer(128..256).unwrap();
    let graph = bench.graph();
    assert_error!(
        graph.copy(&a.slice(0..8).unwrap(), &a.slice(4..12).unwrap()).add(),
        BuildCause::Overlap { src, dst } if src == "bytes 0..32" && dst == "bytes 16..48",
    );
    assert_error!(
        graph.copy(&a.slice(124..132).unwrap(), &sub.slice(0..8).unwrap()).add(),
        BuildCause::Overlap { src, dst } if src == "bytes 496..528" && dst == "bytes 512..544",
    );
    // Interleaved columns share no byte, although their ranges overlap. One column further they do.
    let columns =
        |x| graph.copy_rect(&a, &a).region([2, 4, 1]).src_pitch(8, 0).dst_pitch(8, 0).dst_origin([x, 0, 0]).add();
    // Rows are counted continuously, whatever the slice pitch would be.
    let down = graph.copy_rect(&a, &a).region([8, 3, 1]).src_origin([0, 5, 0]).dst_origin([0, 6, 0]).add();
    assert_error!(down, BuildCause::Overlap { .. });
    columns(2).unwrap();
    assert_error!(columns(1), BuildCause::Overlap { .. });
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
    assert_error!(diagonal(1), BuildCause::Overlap { .. });
    assert_error!(
        graph.copy_rect(&a, &a).region([1, 2, 1]).src_pitch(8, 0).dst_pitch(4, 0).dst_origin([64, 0, 0]).add(),
        BuildCause::Rect(RectError::PitchesDiffer { src: [32, 64], dst: [16, 32] }),
    );
}

#[test]
fn rectangles_that_do_not_fit_are_refused() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[0; 64]), bench.buffer(&[0; 64]));
    let graph = bench.graph();
    let rect = || graph.copy_rect(&a, &b).region([4, 4, 2]);
    assert_error!(
        rect().src_pitch(3, 0).add(),
        BuildCause::Rect(RectError::RowPitch { what: "source", given: 3, row: 4 }),
    );
    assert_error!(
        rect().dst_pitch(4, 8).add(),
        BuildCause::Rect(RectError::SlicePitch { what: "destination", given: 8, rows: 4, least: 16 }),
    );
    assert_error!(
        rect().src_pitch(4, 18).add(),
        BuildCause::Rect(RectError::SlicePitchRows { what: "source", slice: 18, row: 4 }),
    );
    assert_error!(
        rect().src_origin([0, 0, 1]).src_pitch(8, 32).add(),
        BuildCause::OutOfBounds { what: "source", offset: 128, end: 368, len: 256 },
    );
    assert_error!(
        rect().dst_origin([usize::MAX, 0, 0]).add(),
        BuildCause::Rect(RectError::TooLarge { what: "destination" }),
    );
    assert_error!(
        rect().dst_origin([0, usize::MAX / 8, 0]).add(),
        BuildCause::OutOfBounds { what: "destination", len: 256, .. },
    );
    assert_error!(graph.copy_rect(&a, &b).add(), BuildCause::NoRegion);
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
    assert_error!(bytes.cast::<[u8; 64]>(), MemoryError::ElementSize { bytes: 96, element: 64 });
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
        assert_error!(
            written,
            BuildCause::AccessForbidden { what, flag: "CL_MEM_READ_ONLY", access: "writing by kernels" }
                if what == "argument 0",
        );
        let read = graph.kernel(&bench.kernel("scale")).read(&write_only).write(&write_only).arg(1_u32).range(8).add();
        assert_error!(
            read,
            BuildCause::AccessForbidden { what, flag: "CL_MEM_WRITE_ONLY", access: "reading by kernels" }
                if what == "argument 0",
        );
    }
    assert_error!(
        graph.write(&no_host, [0; 8]).add(),
        BuildCause::AccessForbidden { flag: "CL_MEM_HOST_NO_ACCESS", access: "a host write", .. },
    );
    assert_error!(
        graph.read(&no_host).add(),
        BuildCause::AccessForbidden { flag: "CL_MEM_HOST_NO_ACCESS", access: "a host read", .. },
    );
    assert_error!(
        graph.write(&host_reads, [0; 8]).add(),
        BuildCause::AccessForbidden { flag: "CL_MEM_HOST_READ_ONLY", access: "a host write", .. },
    );
    assert_error!(
        graph.read(&host_writes).add(),
        BuildCause::AccessForbidden { flag: "CL_MEM_HOST_WRITE_ONLY", access: "a host read", .. },
    );
    assert!(graph.is_empty());
    graph.read(&host_reads).add().unwrap();
    graph.write(&host_writes, [0; 8]).add().unwrap();
}

#[test]
fn buffers_that_cannot_be_are_refused() {
    let bench = Bench::new();
    assert_error!(Buffer::<u32>::new(&bench.queue, 0), MemoryError::Empty { what: "a buffer" });
    let limit = bench.queue.device().caps().max_allocation;
    let large = Buffer::<u8>::new(&bench.queue, usize::try_from(limit).unwrap() + 1).unwrap_err();
    assert_eq!(large.kind(), ErrorKind::OutOfMemory);
    assert_error!(large, MemoryError::TooLarge { asked, limit: most, .. } if *asked == limit + 1 && *most == limit);
    assert_error!(Buffer::<u64>::new(&bench.queue, usize::MAX), MemoryError::TooLarge { asked: u64::MAX, .. });
    let buffer = bench.buffer(&[0; 256]);
    let boundary = bench.queue.device().caps().sub_buffer_align;
    assert_error!(buffer.sub_buffer(4..8), MemoryError::Misaligned { offset: 16, align } if *align == boundary);
    assert_error!(buffer.sub_buffer(128..128), MemoryError::Empty { what: "a sub-buffer" });
    assert_error!(
        buffer.sub_buffer(120..257),
        MemoryError::OutOfBounds { what: "elements", start: 120, end: 257, len: 256 },
    );
    let sub = buffer.sub_buffer(128..).unwrap();
    assert_error!(sub.sub_buffer(..8), MemoryError::SubBufferOfSubBuffer);
    assert_error!(buffer.cast::<[u32; 3]>(), MemoryError::ElementSize { bytes: 1024, element: 12 });
}

#[test]
fn a_program_that_does_not_build_gives_its_log_and_kernels_are_found_by_name() {
    let bench = Bench::new();
    let error = Program::from_source(&bench.queue, "kernel void f(global int *a) { a[0] = nonsense; }").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    // The compiler's own words are in it.
    assert_error!(error, ProgramError::BuildFailed { log, .. } if log.contains("nonsense"));
    assert_error!(Program::from_source(&bench.queue, ""), ProgramError::Empty { what: "the source" });
    assert_error!(
        Program::from_source(&bench.queue, "kernel\0"),
        ProgramError::ZeroByte { what: "the source", position: 6 },
    );
    assert_error!(
        bench.program.kernel("no_such"),
        ProgramError::NoSuchKernel { name, has } if name == "no_such" && has.contains("`scale`"),
    );
    assert_error!(bench.program.kernel("a\0b"), ProgramError::ZeroByte { what: "the kernel's name", position: 1 });
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
    assert_error!(beyond, MemoryError::OutOfBounds { .. });
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
