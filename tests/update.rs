//! Updates: parameters, ranges, replaced nodes, and whole graphs.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use clgraph::{
    Buffer, BuildCause, BuildError, Error, Executable, ExecuteKernel, Finalize, FinalizeError, GlobalAccess, Graph,
    GroupError, HostData, HostRead, LocalMemory, Memory, MemoryKind, NdRange, Node, Parameter, ParameterError, Path,
    ProgramBuilder, Progress, RecordError, UpdateError, WorkGroupError, device_global,
};
use common::{Bench, UserEvent, assert_error, cause, elsewhere};

const LEN: usize = 64;
const PATHS: [Path; 3] = [Path::Auto, Path::Native, Path::Replay];

fn each(of: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..LEN as u32).map(of).collect()
}

struct Field {
    bench: Bench,
    a: Buffer<u32>,
    b: Buffer<u32>,
    c: Buffer<u32>,
}

impl Field {
    fn new() -> Self {
        let bench = Bench::new();
        let (a, b, c) = (bench.buffer(&each(|i| i)), bench.buffer(&each(|i| i * 10)), bench.buffer(&[0; LEN]));
        Self { bench, a, b, c }
    }

    /// `out = in * 3 + by`
    fn scale(&self, graph: &Graph, by: &Parameter<u32>) -> Node {
        // SAFETY: a work-item touches its own element.
        unsafe { graph.kernel(&self.bench.kernel("scale")).read(&self.a).write(&self.c).arg(by).range(LEN).add() }
            .unwrap()
    }

    fn run(&self, executable: &Executable, result: &HostRead<u32>) -> Vec<u32> {
        let run = executable.submit(&self.bench.queue).unwrap();
        run.wait().unwrap();
        run.get(result).unwrap().to_vec()
    }
}

fn updatable(path: Path) -> Finalize {
    Finalize::new().path(path).updatable()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: clgraph::Result<T>) -> UpdateError {
    match outcome {
        Err(Error::Update(error)) => error,
        other => panic!("an UpdateError was expected, not {other:?}"),
    }
}

#[track_caller]
fn unset<T: std::fmt::Debug>(outcome: clgraph::Result<T>) -> ParameterError {
    match outcome {
        Err(Error::Parameter(error)) => error,
        other => panic!("a ParameterError was expected, not {other:?}"),
    }
}

/// Rules P1, P2, U1, U2
#[test]
fn a_parameter_changes_its_nodes_at_once_and_an_executable_when_it_is_updated() {
    let field = Field::new();
    for path in PATHS {
        let graph = field.bench.graph();
        let by = Parameter::any(1_u32);
        let first = field.scale(&graph, &by);
        let result = graph.read(&field.c).add().unwrap();
        let executable = graph.finalize(updatable(path)).unwrap();
        assert_eq!(field.run(&executable, &result), each(|i| i * 3 + 1));
        by.set(7).unwrap();
        assert_eq!(by.get(), 7);
        assert_eq!(field.run(&executable, &result), each(|i| i * 3 + 1), "not updated");
        let later = graph.finalize(Finalize::new().path(path)).unwrap();
        assert_eq!(field.run(&later, &result), each(|i| i * 3 + 7), "finalized with the new value");
        executable.update(&first).unwrap();
        assert_eq!(field.run(&executable, &result), each(|i| i * 3 + 7));
        // Rule P3: the value that it has already.
        by.set(7).unwrap();
        executable.update(&[first, result.node()]).unwrap();
        assert_eq!(field.run(&executable, &result), each(|i| i * 3 + 7));
    }
}

/// Rules P1, U1, U5: a parameter's value is applied together with whatever else differs, on whichever side that was
/// changed before.
#[test]
fn a_value_comes_with_all_else_that_has_changed() {
    let field = Field::new();
    let kernel = field.bench.kernel("scale");
    let node_of = |graph: &Graph, input: &Buffer<u32>, by: &Parameter<u32>| {
        // SAFETY: a work-item touches its own element.
        let node =
            unsafe { graph.kernel(&kernel).read(input).write(&field.c).arg(by).range(LEN).range_up_to(LEN).add() };
        (node.unwrap(), graph.read(&field.c).add().unwrap())
    };
    for path in PATHS {
        let (graph, by) = (field.bench.graph(), Parameter::any(1_u32));
        let (node, result) = node_of(&graph, &field.a, &by);
        let [one, two] = [(), ()].map(|()| graph.finalize(updatable(path)).unwrap());
        let set = |to, executable: &Executable| {
            by.set(to).unwrap();
            executable.update(&node).unwrap();
            field.run(executable, &result)
        };
        assert_eq!(set(2, &one), each(|i| i * 3 + 2));
        // Another graph, with other memory.
        let other = field.bench.graph();
        node_of(&other, &field.b, &Parameter::any(100));
        one.update_from(&other).unwrap();
        assert_eq!(field.run(&one, &result), each(|i| i * 30 + 100));
        assert_eq!(set(3, &one), each(|i| i * 3 + 3), "the memory of its own graph");
        // The graph's node becomes another launch. One executable is updated later than the other.
        let launch = graph.kernel(&kernel).read(&field.b).write(&field.c).arg(&by).range(LEN).range_up_to(LEN);
        // SAFETY: a work-item touches its own element.
        unsafe { launch.replace(node) }.unwrap();
        assert_eq!(set(4, &one), each(|i| i * 30 + 4));
        assert_eq!(field.run(&two, &result), each(|i| i * 3 + 1));
        field.bench.queue.enqueue_fill_buffer(&field.c, &[9_u32], 0, LEN * 4, &[]).unwrap();
        graph.set_nd_range(node, LEN / 2).unwrap();
        let half = |by: u32| each(|i| if i < LEN as u32 / 2 { i * 30 + by } else { 9 });
        assert_eq!(set(5, &two), half(5));
        assert_eq!(set(6, &one), half(6));
        assert_eq!(set(7, &two), half(7));
    }
}

/// Rules P1, P4: one parameter in two arguments, two nodes and two graphs; buffers, sub-buffers, bytes and local
/// memory.
#[test]
fn one_parameter_serves_many_arguments_of_every_kind() {
    let field = Field::new();
    let bench = &field.bench;
    for path in PATHS {
        let input = Parameter::buffer(&field.a);
        let by = Parameter::bytes(&1_u32.to_ne_bytes());
        let scale = bench.kernel("scale");
        let build = |graph: &Graph| {
            // SAFETY: a work-item touches its own element of buffers that hold as many.
            unsafe {
                let one = graph.kernel(&scale).read(&input).write(&field.c).arg(&by).range(LEN).add().unwrap();
                let add =
                    graph.kernel(&bench.kernel("add")).read_write(&field.c).read(&input).range(LEN).add().unwrap();
                (one, add, graph.read(&field.c).add().unwrap())
            }
        };
        let (one, two) = (bench.graph(), bench.graph());
        let nodes = [build(&one), build(&two)];
        let executables = [&one, &two].map(|graph| graph.finalize(updatable(path)).unwrap());
        input.set(&field.b).unwrap();
        // SAFETY: any number may be added.
        unsafe { by.set_unchecked(&5_u32.to_ne_bytes()) }.unwrap();
        for (executable, (scale, add, result)) in executables.iter().zip(nodes) {
            assert_eq!(field.run(executable, &result), each(|i| i * 4 + 1));
            executable.update(&[scale, add]).unwrap();
            assert_eq!(field.run(executable, &result), each(|i| i * 40 + 5));
        }
        // A sub-buffer, and local memory.
        let halves = bench.buffer(&each(|i| i + 100));
        let wide = bench.buffer(&[3; 2 * LEN]);
        let sub = Parameter::buffer(&wide.slice(..LEN).unwrap());
        let local = Parameter::local_within(LEN * 4, LEN * 4..=LEN * 8).unwrap();
        let graph = bench.graph();
        // SAFETY: a work-group of so many elements has as much local memory at least.
        let sum = unsafe {
            let sum = graph.kernel(&bench.kernel("group_sum")).read_write(&sub).arg(&local).range(LEN).work_group(LEN);
            sum.add().unwrap()
        };
        let executable = graph.finalize(updatable(path)).unwrap();
        sub.set(&halves).unwrap();
        local.set(LEN * 8).unwrap();
        executable.update(&sum).unwrap();
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        assert_eq!(bench.content(&halves), [(0..LEN as u32).map(|i| i + 100).sum::<u32>(); LEN]);
        assert_eq!(bench.content(&wide), [3; 2 * LEN]);
    }
}

/// Rules P1, P3
#[test]
fn a_parameter_takes_what_lies_within_its_bound_and_nothing_else() {
    let field = Field::new();
    let within = Parameter::within(3, 1..=9).unwrap();
    within.set(9).unwrap();
    assert_error!(within.set(10), ParameterError::OutOfBound { given, bound } if given == "10" && bound == "1..=9");
    assert_eq!(within.get(), 9);
    assert!(matches!(unset(Parameter::within(0.5_f32, 1.0..2.0)), ParameterError::OutOfBound { .. }));
    let power = Parameter::checked(4_u32, "a power of two", |value| value.is_power_of_two()).unwrap();
    assert_error!(power.set(5), ParameterError::OutOfBound { bound, .. } if bound == "a power of two");
    power.set(8).unwrap();
    let unbounded = Parameter::new(1_u8);
    assert_eq!(unset(unbounded.set(2)), ParameterError::Unbounded);
    // SAFETY: nothing uses it.
    unsafe { unbounded.set_unchecked(2) };
    assert_eq!(unbounded.get(), 2);
    let bytes = Parameter::any_bytes(&[1, 2, 3]);
    assert_eq!(unset(bytes.set(&[1])), ParameterError::Size { size: 3, given: 1 });
    bytes.set(&[4, 5, 6]).unwrap();
    assert_eq!(*bytes.get(), [4, 5, 6]);
    assert_eq!(unset(Parameter::<[u8]>::bytes(&[1]).set(&[2])), ParameterError::Unbounded);
    assert_eq!(unset(Parameter::<LocalMemory>::local(64).set(128)), ParameterError::Unbounded);
    assert!(matches!(unset(Parameter::local_within(64, 128..)), ParameterError::OutOfBound { .. }));
    let buffer = Parameter::buffer(&field.a.slice(32..).unwrap());
    let small = field.bench.buffer(&[0; LEN - 1]);
    assert_eq!(unset(buffer.set(&small)), ParameterError::TooSmall { needed: 256, given: 252 });
    assert_eq!(unset(buffer.set(&elsewhere().buffer(&[0; LEN]))), ParameterError::OtherContext);
    buffer.set(&field.b).unwrap();
}

/// Rule P4
#[test]
fn a_parameter_is_for_graphs_by_building_and_by_recording() {
    let field = Field::new();
    let queue = &field.bench.queue;
    let (by, input) = (Parameter::any(2_u32), Parameter::buffer(&field.a));
    let scale = field.bench.kernel("scale");
    let launch = || {
        let mut launch = ExecuteKernel::new(&scale);
        launch.set_arg_read(&input).set_arg_write(&field.c).set_arg(&by).set_global_work_size(LEN);
        // SAFETY: a work-item touches its own element.
        unsafe { launch.enqueue_nd_range(queue) }
    };
    assert_error!(
        launch(),
        BuildError { subject, cause, .. }
            if subject == "kernel `scale`" && matches!(&**cause, BuildCause::ParameterExecuted { index: 0 }),
    );
    let graph = field.bench.graph();
    let (event, result) =
        graph.record(queue, || Ok((launch()?, queue.enqueue_read_buffer_owned(&field.c, 0, LEN, &[])?))).unwrap();
    let result = result.host_read().unwrap();
    for path in PATHS {
        let executable = graph.finalize(updatable(path)).unwrap();
        let was = by.get();
        input.set(&field.b).unwrap();
        by.set(was + 1).unwrap();
        executable.update(&event).unwrap();
        assert_eq!(field.run(&executable, &result), each(|i| i * 30 + was + 1));
    }
}

/// Rule P5
#[test]
fn a_range_changes_within_its_bound() {
    let field = Field::new();
    let bench = &field.bench;
    for path in PATHS {
        let graph = bench.graph();
        let a = bench.buffer(&[1; LEN]);
        let (stir, free) = (bench.kernel("stir"), bench.buffer(&[1; LEN]));
        // SAFETY: a work-item touches its own element, and there are as many as the bound says.
        let node = unsafe { graph.kernel(&stir).read_write(&a).range(8).range_up_to(LEN).add() }.unwrap();
        // SAFETY: as above.
        let fixed = unsafe { graph.kernel(&stir).read_write(&free).range(8).add() }.unwrap();
        let executable = graph.finalize(updatable(path)).unwrap();
        let stirred = |of: std::ops::Range<u32>| {
            executable.update(&node).unwrap();
            executable.submit(&bench.queue).unwrap().wait().unwrap();
            let now = bench.content(&a);
            assert_eq!(now, each(|i| if of.contains(&i) { 5 + i } else { 1 }), "{path:?} {of:?}");
            bench.queue.enqueue_fill_buffer(&a, &[1_u32], 0, LEN * 4, &[]).unwrap().wait().unwrap();
        };
        stirred(0..8);
        graph.set_nd_range(node, LEN).unwrap();
        stirred(0..64);
        graph.set_nd_range(node, NdRange::new(16).offset(32).work_group(8)).unwrap();
        stirred(32..48);
        graph.set_nd_range(node, 0).unwrap();
        stirred(0..0);
        graph.set_nd_range(node, [40]).unwrap();
        stirred(0..40);
        // Values that are refused.
        let wrong = cause(graph.set_nd_range(node, 65));
        assert!(matches!(wrong, BuildCause::RangeBound { .. }), "{wrong:?}");
        let wrong = cause(graph.set_nd_range(node, NdRange::new(60).offset(5)));
        assert!(matches!(wrong, BuildCause::RangeBound { .. }), "{wrong:?}");
        assert!(matches!(cause(graph.set_nd_range(node, [8, 2])), BuildCause::Dimensions { .. }));
        assert_eq!(cause(graph.set_nd_range(fixed, 4)), BuildCause::RangeFixed);
        let empty = graph.empty().add().unwrap();
        assert!(matches!(cause(graph.set_nd_range(empty, 4)), BuildCause::OtherKind { .. }));
        assert!(matches!(
            cause(graph.set_nd_range(node, NdRange::new(8).work_group(0))),
            BuildCause::WorkGroup(WorkGroupError::Empty { .. })
        ));
        assert!(matches!(cause(bench.graph().set_nd_range(node, 4)), BuildCause::OtherGraph { .. }));
        stirred(0..40);
        // Another launch in its place is refused too.
        // SAFETY: as above.
        let wrong = unsafe { graph.kernel(&stir).read_write(&free).range([8, 8]).replace(fixed) };
        assert_error!(
            wrong,
            BuildCause::Replace { node, why }
                if *node == fixed
                    && why.starts_with("the number of dimensions of its range cannot change: it is 1, and 2"),
        );
        // Without a bound, with a promise.
        // SAFETY: as above.
        unsafe { graph.kernel(&stir).read_write(&free).range(16).replace(fixed) }.unwrap();
        executable.update(&fixed).unwrap();
        let before = bench.content(&free);
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        let after = bench.content(&free);
        assert_eq!(after[15], before[15].wrapping_mul(5).wrapping_add(15));
        assert_eq!(after[16], before[16]);
    }
}

/// Rule P7
#[test]
fn transfers_take_the_place_of_transfers() {
    let field = Field::new();
    let bench = &field.bench;
    for path in PATHS {
        let (a, b, c) = (bench.buffer(&[1; LEN]), bench.buffer(&[2; LEN]), bench.buffer(&[3; LEN]));
        let graph = bench.graph();
        let write = graph.write(&a, vec![10_u32; LEN]).add().unwrap();
        let fill = graph.fill(&b.slice(..8).unwrap(), 20_u32).add().unwrap();
        let copy = graph.copy(&a.slice(..4).unwrap(), &c.slice(4..8).unwrap()).add().unwrap();
        let rect = graph.copy_rect(&b, &c).region([4, 2, 1]).add();
        let rect = rect.unwrap_or_else(|error| panic!("{error}"));
        let read = graph.read(&c).add().unwrap();
        let executable = graph.finalize(updatable(path)).unwrap();
        field.run(&executable, &read);
        graph.write(&a, vec![11_u32; LEN]).replace(&write).unwrap();
        graph.fill(&b.slice(8..16).unwrap(), 21_u32).replace(fill).unwrap();
        graph.copy(&a.slice(8..32).unwrap(), &c.slice(32..56).unwrap()).replace(copy).unwrap();
        graph.copy_rect(&b, &c).region([8, 2, 1]).replace(rect).unwrap();
        graph.read(&c).replace(&read).unwrap();
        executable.update(&[write.node(), fill, copy, rect, read.node()]).unwrap();
        let seen = field.run(&executable, &read);
        let expected: Vec<u32> = (0..LEN)
            .map(|i| match i {
                0..8 => 20,
                8..16 => 21,
                32..56 => 11,
                _ => 3,
            })
            .collect();
        assert_eq!(seen, expected, "{path:?}");
        // Other memory: the target of the write, and the source of the read.
        let (other, whole) = (bench.buffer(&[4; LEN]), bench.buffer(&[5; LEN]));
        graph.write(&other, vec![12_u32; LEN]).replace(&write).unwrap();
        graph.read(&whole).replace(&read).unwrap();
        executable.update(&[write.node(), read.node()]).unwrap();
        assert_eq!(field.run(&executable, &read), [5; LEN], "{path:?}");
        assert_eq!(bench.content(&other), [12; LEN], "{path:?}");
        graph.write(&a, vec![11_u32; LEN]).replace(&write).unwrap();
        graph.read(&c).replace(&read).unwrap();
        executable.update(&[write.node(), read.node()]).unwrap();
        // An empty copy, and a copy of something again.
        graph.copy(&a.slice(..0).unwrap(), &c.slice(..0).unwrap()).replace(copy).unwrap();
        executable.update(&copy).unwrap();
        graph.copy(&a.slice(..1).unwrap(), &c.slice(63..).unwrap()).replace(copy).unwrap();
        executable.update(&copy).unwrap();
        assert_eq!(field.run(&executable, &read)[63], 11);
        // Sizes that do not fit.
        let wrong = [
            graph.copy(&a, &c).replace(fill),
            graph.fill(&Buffer::<u8>::new(&bench.queue, 4).unwrap(), 1).replace(fill),
            graph.write(&a.slice(..4).unwrap(), vec![1_u32; 4]).replace(&write),
            graph.read(&c.slice(..4).unwrap()).replace(&read),
            graph.fill(&b, 1_u32).after(copy).replace(fill),
        ];
        let expected = [
            "it is a fill, but a copy was given",
            "its pattern has 4 bytes, but the pattern given has 1",
            "it transfers 256 bytes, but the transfer given has 16 bytes",
            "it transfers 256 bytes, but the transfer given has 16 bytes",
            "a replacement keeps the edges",
        ];
        for (wrong, expected) in wrong.into_iter().zip(expected) {
            assert_error!(wrong, BuildCause::Replace { why, .. } if why.contains(expected));
        }
        let (stir, add) = (bench.kernel("stir"), bench.kernel("add"));
        // SAFETY: a work-item touches its own element.
        unsafe {
            let node = graph.kernel(&stir).read_write(&a).range(LEN).add().unwrap();
            assert_error!(
                graph.kernel(&add).read_write(&a).read(&b).range(LEN).replace(node),
                BuildCause::Replace { why, .. } if why.contains("its kernel is `stir`, but `add` was given"),
            );
        }
        assert_eq!(field.run(&executable, &read)[63], 11, "as before");
    }
}

/// Rule P8
#[test]
fn an_argument_of_several_parameters_has_the_value_that_was_set_last() {
    let field = Field::new();
    let graph = field.bench.graph();
    let (one, two) = (Parameter::any(1_u32), Parameter::any(2_u32));
    let scale = field.bench.kernel("scale");
    let launch = |value: u32| {
        let kernel = graph.kernel(&scale).read(&field.a).write(&field.c);
        if value == 0 { kernel.arg(&one).also_parameter(&two).range(LEN) } else { kernel.arg(value).range(LEN) }
    };
    // SAFETY: a work-item touches its own element.
    let (node, plain) = unsafe { (launch(0).add().unwrap(), launch(1).add().unwrap()) };
    let result = graph.read(&field.c).after(node).add().unwrap();
    let graph2 = field.bench.graph();
    // SAFETY: as above.
    let alone = unsafe {
        graph2.kernel(&scale).read(&field.a).write(&field.c).arg(&one).also_parameter(&two).range(LEN).add().unwrap()
    };
    let result2 = graph2.read(&field.c).add().unwrap();
    let executables = [graph.finalize(updatable(Path::Auto)).unwrap(), graph2.finalize(updatable(Path::Auto)).unwrap()];
    for (parameter, value) in [(&one, 5), (&two, 6), (&one, 5), (&two, 1)] {
        parameter.set(value).unwrap();
        executables[0].update(&[node, plain]).unwrap();
        executables[1].update(&alone).unwrap();
        assert_eq!(field.run(&executables[0], &result), each(|i| i * 3 + 1), "what is not registered never changes");
        assert_eq!(field.run(&executables[1], &result2), each(|i| i * 3 + value));
    }
    // SAFETY: as above.
    let wrong = cause(unsafe {
        graph
            .kernel(&scale)
            .read(&field.a)
            .write(&field.c)
            .arg(1_u32)
            .also_parameter(&Parameter::any(1_u8))
            .range(1)
            .add()
    });
    assert!(matches!(wrong, BuildCause::Parameter { index: 2, .. }), "{wrong:?}");
}

/// Rule P6
#[test]
fn an_update_that_makes_nodes_conflict_is_refused_and_changes_nothing() {
    let field = Field::new();
    let bench = &field.bench;
    let stir = bench.kernel("stir");
    for path in PATHS {
        let (one, two) = (Parameter::buffer(&field.a), Parameter::buffer(&field.b));
        let graph = bench.graph();
        // SAFETY: a work-item touches its own element.
        let node =
            |of: &Parameter<Buffer<u32>>| unsafe { graph.kernel(&stir).read_write(of).range(LEN).add().unwrap() };
        let (first, second) = (node(&one), node(&two));
        let executable = graph.finalize(updatable(path)).unwrap();
        let risky = graph.finalize(updatable(path).allow_conflicts()).unwrap();
        two.set(&field.a).unwrap();
        let wrong = refused(executable.update(&[first, second]));
        let uses = || "kernel `stir` writes bytes 0..256".to_owned();
        assert_eq!(wrong, UpdateError::Conflict { first, first_use: uses(), second, second_use: uses() });
        assert!(matches!(graph.finalize(Finalize::new()), Err(Error::Finalize(FinalizeError::Conflict { .. }))));
        graph.finalize(Finalize::new().allow_conflicts()).unwrap();
        risky.update(&second).unwrap();
        let before = bench.content(&field.b);
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        assert_ne!(bench.content(&field.b), before, "as it was");
        // Both nodes exchange their places at once, and so do they one after the other in a list.
        one.set(&field.b).unwrap();
        executable.update(&[first, second]).unwrap();
        one.set(&field.a).unwrap();
        two.set(&field.b).unwrap();
        executable.update(&[second, first]).unwrap();
        // An edge makes it valid.
        two.set(&field.a).unwrap();
        graph.add_edge(first, second).unwrap();
        let ordered = graph.finalize(updatable(path)).unwrap();
        ordered.update(&[first, second]).unwrap();
        // Edges of nodes that are added later follow the current values.
        let third = node(&two);
        assert_eq!(graph.predecessors(third).unwrap(), [first]);
    }
}

/// Rules U1, U9
#[test]
fn what_is_not_in_an_executable_cannot_be_updated() {
    let field = Field::new();
    let graph = field.bench.graph();
    let by = Parameter::any(1_u32);
    let node = field.scale(&graph, &by);
    let fixed = graph.finalize(Finalize::new()).unwrap();
    assert_eq!(refused(fixed.update(&node)), UpdateError::NotUpdatable);
    assert_eq!(refused(fixed.update_from(&graph)), UpdateError::NotUpdatable);
    let executable = graph.finalize(updatable(Path::Auto)).unwrap();
    let late = field.scale(&graph, &by);
    // All or nothing: the first node of the list has another value.
    by.set(2).unwrap();
    let absent = refused(executable.update(&[node, late]));
    let added = "it was added to the graph after the executable was finalized; finalize the graph again";
    assert_eq!(absent, UpdateError::NotInExecutable { node: late, why: added });
    executable.submit(&field.bench.queue).unwrap().wait().unwrap();
    assert_eq!(field.bench.content(&field.c), each(|i| i * 3 + 1));
    let other = field.bench.graph();
    let foreign = field.scale(&other, &by);
    let absent = refused(executable.update(&foreign));
    let of_another = "it belongs to another graph; give nodes of the graph that was finalized";
    assert_eq!(absent, UpdateError::NotInExecutable { node: foreign, why: of_another });
    let event = field.bench.queue.enqueue_marker_with_wait_list(&[]).unwrap();
    assert_eq!(refused(executable.update(&event)), UpdateError::NotANode { index: 0 });
    executable.update(&Vec::<Node>::new()).unwrap();
    // Parameters do not need the graph.
    drop(graph);
    by.set(8).unwrap();
    executable.update(&node).unwrap();
    executable.submit(&field.bench.queue).unwrap().wait().unwrap();
    assert_eq!(field.bench.content(&field.c), each(|i| i * 3 + 8));
}

/// Rules F3, N5: a graph that contains its own executable is dropped with its last handle.
#[test]
fn an_executable_in_its_own_graph_does_not_keep_it() {
    // By replay, because Intel's CPU runtime retains buffers that recorded fills name.
    let field = Field::new();
    let graph = field.bench.graph();
    let (buffer, tell) = field.bench.telling_buffer(&[1; LEN]);
    let fill = graph.fill(&buffer, 2).add().unwrap();
    drop(buffer);
    let executable = graph.finalize(updatable(Path::Replay)).unwrap();
    let inside = graph.sub_graph(&executable).add().unwrap();
    let both = graph.finalize(updatable(Path::Replay)).unwrap();
    both.update(&[fill, inside.node()]).unwrap();
    both.submit(&field.bench.queue).unwrap().wait().unwrap();
    let node = inside.node();
    drop((graph, inside));
    both.update(&fill).unwrap();
    assert_eq!(refused(both.update(&node)), UpdateError::GraphGone { node });
    drop((executable, both));
    tell.wait_until_gone();
}

/// Rules U1, U8: empty nodes do nothing.
#[test]
fn nodes_that_only_order_others_may_stand_in_a_list() {
    let field = Field::new();
    let (graph, queue) = (field.bench.graph(), &field.bench.queue);
    let by = Parameter::any(1_u32);
    let empty = graph.empty().add().unwrap();
    let barrier = graph.record(queue, || queue.enqueue_barrier_with_wait_list(&[])).unwrap();
    let node = field.scale(&graph, &by);
    let result = graph.read(&field.c).add().unwrap();
    let executable = graph.finalize(updatable(Path::Auto)).unwrap();
    by.set(4).unwrap();
    executable.update(&[empty, barrier.node().unwrap(), node, empty, node]).unwrap();
    assert_eq!(field.run(&executable, &result), each(|i| i * 3 + 4));
}

/// Rules P1, P3, P5, C2, U4, U9
#[test]
fn what_is_refused_leaves_graph_and_executable_as_they_were() {
    let field = Field::new();
    let bench = &field.bench;
    let (scale, stir) = (bench.kernel("scale"), bench.kernel("stir"));
    let far = elsewhere().buffer(&[0; LEN]);
    let small = bench.buffer(&[0; LEN - 1]);
    for path in PATHS {
        let graph = bench.graph();
        let by = Parameter::within(2_u32, 1..9).unwrap();
        let input = Parameter::buffer(&field.a);
        let launch =
            |input: &Parameter<Buffer<u32>>| graph.kernel(&scale).read(input).write(&field.c).arg(&by).range(LEN);
        // SAFETY: a work-item touches its own element, and there are as many as the bound says.
        let node = unsafe { launch(&input).range_up_to(LEN).add() }.unwrap();
        let launches = [8, LEN].map(|range| graph.kernel(&stir).read_write(&field.c).range(range));
        // SAFETY: as above.
        let group = unsafe { graph.command_group(launches) }.unwrap();
        let member = graph.command_group_node(&group).add().unwrap();
        let result = graph.read(&field.c).add().unwrap();
        let executable = graph.finalize(updatable(path)).unwrap();
        let fixed = graph.finalize(Finalize::new().path(path)).unwrap();
        let (nodes, foreign) = ([node, member, result.node()], Parameter::buffer(&far));
        let ordinary = || {
            let mut launch = ExecuteKernel::new(&scale);
            launch.set_arg_read(&input).set_arg_write(&field.c).set_arg(&by).set_global_work_size(LEN);
            // SAFETY: a work-item touches its own element.
            unsafe { launch.enqueue_nd_range(&bench.queue) }.map(drop)
        };
        let copy = || graph.copy(&field.a, &field.b).replace(result.node());
        macro_rules! is {
            ($pattern:pat $(if $guard:expr)?) => {
                &|result: clgraph::Result<()>| assert_error!(result, $pattern $(if $guard)?)
            };
        }
        type Attempt<'a> = (&'a dyn Fn() -> clgraph::Result<()>, &'a dyn Fn(clgraph::Result<()>));
        let wrong: [Attempt<'_>; 12] = [
            (&|| by.set(10), is!(ParameterError::OutOfBound { given, .. } if given == "10")),
            (&|| input.set(&small), is!(ParameterError::TooSmall { given: 252, .. })),
            (&|| input.set(&far), is!(ParameterError::OtherContext)),
            // SAFETY: as above.
            (&|| unsafe { launch(&foreign).replace(node) }, is!(BuildCause::OtherContext { .. })),
            (&copy, is!(BuildCause::Replace { why, .. } if why.contains("it is a host read, but a copy"))),
            (&|| graph.set_nd_range(node, LEN + 1), is!(BuildCause::RangeBound { .. })),
            (&|| graph.set_nd_range(node, [8, 8]), is!(BuildCause::Dimensions { given: 2, range: 1, .. })),
            (&|| graph.set_nd_range(result.node(), 8), is!(BuildCause::OtherKind { is, .. } if is == "a host read")),
            (&|| group.set_active_index(2), is!(BuildCause::Group(GroupError::Index { index: 2, count: 2, .. }))),
            (&ordinary, is!(BuildCause::ParameterExecuted { index: 0 })),
            (&|| fixed.update(&node), is!(UpdateError::NotUpdatable)),
            (&|| fixed.update_from(&graph), is!(UpdateError::NotUpdatable)),
        ];
        let expected = each(|i| if i < 8 { (i * 3 + 2) * 5 + i } else { i * 3 + 2 });
        for (at, (attempt, check)) in wrong.into_iter().enumerate() {
            check(attempt());
            executable.update(&nodes).unwrap();
            for run in [&executable, &fixed, &graph.finalize(Finalize::new().path(path)).unwrap()] {
                assert_eq!(field.run(run, &result), expected, "{path:?}, after attempt {at}");
            }
        }
    }
}

/// Rule U3: while work is in flight, which a user event on the queue holds, or which waits for a user event itself.
#[test]
fn an_update_does_not_wait_for_what_is_in_flight_and_does_not_change_it() {
    let field = Field::new();
    let bench = &field.bench;
    for path in PATHS {
        for deferred in [false, true] {
            let graph = bench.graph();
            let by = Parameter::any(1_u32);
            let node = field.scale(&graph, &by);
            let result = graph.read(&field.c).add().unwrap();
            let executable = graph.finalize(updatable(path)).unwrap();
            let gate = UserEvent::new(&bench.queue);
            let event = clgraph::Event::from_opencl3(&gate.0).unwrap();
            let first = if deferred {
                executable.submit_to(&bench.queue).after(&event).submit().unwrap()
            } else {
                bench.queue.enqueue_barrier_with_wait_list(&[&event]).unwrap();
                executable.submit(&bench.queue).unwrap()
            };
            by.set(2).unwrap();
            let begin = Instant::now();
            executable.update(&node).unwrap();
            let second = executable.submit(&bench.queue).unwrap();
            by.set(3).unwrap();
            executable.update(&node).unwrap();
            assert!(begin.elapsed() < Duration::from_secs(20), "it waited");
            assert_eq!(first.progress().unwrap(), Progress::Waiting, "the gate is closed");
            gate.set(0);
            bench.queue.flush().unwrap();
            for (run, by) in [(&first, 1), (&second, 2)] {
                run.wait().unwrap();
                assert_eq!(*run.get(&result).unwrap(), *each(|i| i * 3 + by), "{path:?}, deferred: {deferred}");
            }
            assert_eq!(field.run(&executable, &result), each(|i| i * 3 + 3));
        }
    }
}

/// Rule U4
#[test]
fn a_list_is_updated_as_a_whole_or_not_at_all() {
    let field = Field::new();
    let bench = &field.bench;
    for path in PATHS {
        let graph = bench.graph();
        let by = Parameter::any(1_u32);
        let local = Parameter::local_within(256, 1..).unwrap();
        let node = field.scale(&graph, &by);
        // SAFETY: there is local memory for as many as a work-group has, at first.
        let sum = unsafe {
            let sum = graph.kernel(&bench.kernel("group_sum")).read_write(&field.b).arg(&local);
            sum.range(LEN).work_group(LEN).add().unwrap()
        };
        let result = graph.read(&field.c).add().unwrap();
        let executable = graph.finalize(updatable(path)).unwrap();
        by.set(9).unwrap();
        local.set(1 << 40).unwrap();
        match refused(executable.update(&[node, sum])) {
            UpdateError::Node { node, cause: BuildCause::LocalMemory { .. } } => assert_eq!(node, sum),
            other => panic!("{other:?}"),
        }
        assert!(matches!(graph.finalize(Finalize::new()), Err(Error::Finalize(FinalizeError::Node { .. }))));
        assert_eq!(field.run(&executable, &result), each(|i| i * 3 + 1), "{path:?}");
        local.set(512).unwrap();
        executable.update(&[node, sum]).unwrap();
        assert_eq!(field.run(&executable, &result), each(|i| i * 3 + 9), "{path:?}");
    }
}

/// Rule U5
#[test]
fn a_whole_graph_is_taken_over_or_the_first_difference_named() {
    let field = Field::new();
    let bench = &field.bench;
    let (scale, stir) = (bench.kernel("scale"), bench.kernel("stir"));
    let build = |bench: &Bench, input: &Buffer<u32>, out: &Buffer<u32>, by: u32| {
        let graph = bench.graph();
        // SAFETY: a work-item touches its own element.
        unsafe {
            let (scale, stir) = (bench.kernel("scale"), bench.kernel("stir"));
            graph.kernel(&scale).read(input).write(out).arg(by).range(LEN).add().unwrap();
            graph.kernel(&stir).read_write(out).range(LEN).add().unwrap();
        }
        let result = graph.read(out).add().unwrap();
        (graph, result)
    };
    // A function of the same program, so that the kernels are the same.
    let same = |input: &Buffer<u32>, by: u32, range: usize| {
        let graph = bench.graph();
        // SAFETY: as above.
        unsafe {
            graph.kernel(&scale).read(input).write(&field.c).arg(by).range(LEN).add().unwrap();
            graph.kernel(&stir).read_write(&field.c).range(range).add().unwrap();
        }
        let result = graph.read(&field.c).add().unwrap();
        (graph, result)
    };
    for path in PATHS {
        let (graph, result) = same(&field.a, 1, LEN);
        let executable = graph.finalize(updatable(path)).unwrap();
        let expect = |factor: u32, by: u32, range: u32| {
            let of = |i: u32| {
                (i * factor * 3 + by).wrapping_mul(if i < range { 5 } else { 1 }) + if i < range { i } else { 0 }
            };
            assert_eq!(field.run(&executable, &result), each(of), "{path:?}");
        };
        expect(1, 1, 64);
        executable.update_from(&same(&field.b, 2, 32).0).unwrap();
        expect(10, 2, 32);
        executable.update_from(&graph).unwrap();
        expect(1, 1, 64);
        // Recorded, with its own parameters.
        let (queue, by) = (&bench.queue, Parameter::any(6_u32));
        let recorded = bench.graph();
        let _ = recorded
            .record(queue, || {
                let mut launch = ExecuteKernel::new(&scale);
                launch.set_arg_read(&field.b).set_arg_write(&field.c).set_arg(&by).set_global_work_size(LEN);
                // SAFETY: as above.
                unsafe { launch.enqueue_nd_range(queue)? };
                let mut launch = ExecuteKernel::new(&stir);
                launch.set_arg(&field.c).set_global_work_size(16);
                // SAFETY: as above.
                unsafe { launch.enqueue_nd_range(queue)? };
                queue.enqueue_read_buffer_owned(&field.c, 0, LEN, &[])
            })
            .unwrap();
        by.set(7).unwrap();
        executable.update_from(&recorded).unwrap();
        expect(10, 7, 16);

        let differs = |graph: &Graph, difference: &str| {
            let wrong = refused(executable.update_from(graph));
            assert_eq!(wrong, UpdateError::Differs { difference: difference.to_owned() });
            expect(10, 7, 16);
        };
        let there = elsewhere();
        let (x, y) = (there.buffer(&[0; LEN]), there.buffer(&[0; LEN]));
        differs(&build(there, &x, &y, 1).0, "the graph has another context");
        let (more, _) = same(&field.a, 1, LEN);
        more.empty().add().unwrap();
        differs(&more, "the graph has 4 nodes, but the executable has 3");
        let loose = bench.graph();
        // SAFETY: as above.
        unsafe {
            loose.kernel(&scale).read(&field.a).write(&field.b).arg(1_u32).range(LEN).add().unwrap();
            loose.kernel(&stir).read_write(&field.c).range(LEN).add().unwrap();
        }
        loose.read(&field.c).add().unwrap();
        differs(&loose, "node 1 waits for no node, but in the executable it waits for nodes 0");
        let kind = bench.graph();
        // SAFETY: as above.
        unsafe { kind.kernel(&scale).read(&field.a).write(&field.c).arg(1_u32).range(LEN).add().unwrap() };
        kind.fill(&field.c, 1).add().unwrap();
        kind.read(&field.c).add().unwrap();
        differs(&kind, "node 1: it is a kernel, but a fill was given");
        let kernel = bench.graph();
        // SAFETY: as above.
        unsafe {
            kernel.kernel(&scale).read(&field.a).write(&field.c).arg(1_u32).range(LEN).add().unwrap();
            kernel.kernel(&bench.kernel("add")).read_write(&field.c).read(&field.a).range(LEN).add().unwrap();
        }
        kernel.read(&field.c).add().unwrap();
        differs(&kernel, "node 1: its kernel is `stir`, but `add` was given, and the kernel of a node cannot change");
        let plane = bench.graph();
        // SAFETY: as above.
        unsafe {
            plane.kernel(&scale).read(&field.a).write(&field.c).arg(1_u32).range([8, 8]).add().unwrap();
            plane.kernel(&stir).read_write(&field.c).range(LEN).add().unwrap();
        }
        plane.read(&field.c).add().unwrap();
        let dimensions = "the number of dimensions of its range cannot change: it is 1, and 2 was given";
        differs(&plane, &format!("node 0: {dimensions}"));
        let other = Bench {
            program: clgraph::Program::from_source(queue, "kernel void stir(global uint *a) {}").unwrap(),
            queue: queue.clone(),
        };
        let program = bench.graph();
        // SAFETY: as above.
        unsafe {
            program.kernel(&scale).read(&field.a).write(&field.c).arg(1_u32).range(LEN).add().unwrap();
            program.kernel(&other.kernel("stir")).read_write(&field.c).range(LEN).add().unwrap();
        }
        program.read(&field.c).add().unwrap();
        differs(
            &program,
            "node 1: its kernel `stir` is from another program than the kernel given; give a kernel of the same \
             program",
        );
        let short = bench.graph();
        // SAFETY: as above.
        unsafe {
            short.kernel(&scale).read(&field.a).write(&field.c).arg(1_u32).range(LEN).add().unwrap();
            short.kernel(&stir).read_write(&field.c).range(LEN).add().unwrap();
        }
        short.read(&field.c.slice(..4).unwrap()).add().unwrap();
        differs(
            &short,
            "node 2: it transfers 256 bytes, but the transfer given has 16 bytes, and the size of a result or an input \
             cannot change",
        );
    }
}

/// Rules U5, U8: edges are a set, in whatever order they were named; barriers and rectangles are compared like the
/// rest.
#[test]
fn a_whole_graph_with_joins_barriers_and_rectangles_is_taken_over() {
    let field = Field::new();
    let (bench, d) = (&field.bench, field.bench.buffer(&[0; LEN]));
    let build = |by: u32, is_turned: bool| {
        let graph = bench.graph();
        let mut before = [field.scale(&graph, &Parameter::any(by)), graph.fill(&d, by).add().unwrap()];
        if is_turned {
            before.reverse();
        }
        let join = graph.empty().after(before).add().unwrap();
        graph.copy_rect(&field.c, &d).region([by as usize, 2, 1]).src_pitch(8, 0).after(join).add().unwrap();
        let result = graph.read(&d).add().unwrap();
        (graph, result)
    };
    let recorded = |by: u32| {
        let graph = bench.graph();
        let recorded = graph.record(&bench.queue, || {
            bench.queue.enqueue_fill_buffer(&field.b, &[by], 0, LEN * 4, &[])?;
            bench.queue.enqueue_barrier_with_wait_list(&[])?;
            bench.queue.enqueue_copy_buffer(&field.b, &d, 0, 0, LEN * 4, &[])
        });
        recorded.unwrap();
        graph
    };
    for path in PATHS {
        let (graph, result) = build(3, false);
        let executable = graph.finalize(updatable(path)).unwrap();
        for (by, is_turned) in [(3, false), (4, true), (2, true), (1, false)] {
            executable.update_from(&build(by, is_turned).0).unwrap();
            // Rows of as many elements, one after another.
            let of = |i: u32| if i < 2 * by { (i / by * 8 + i % by) * 3 + by } else { by };
            assert_eq!(field.run(&executable, &result), each(of), "{path:?} {by}");
        }
        let executable = recorded(1).finalize(updatable(path)).unwrap();
        executable.update_from(&recorded(5)).unwrap();
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        assert_eq!(bench.content(&d), [5; LEN], "{path:?}");
    }
}

/// Rules N5, U8
#[test]
fn a_sub_graph_has_the_values_of_its_finalizing_until_its_node_is_updated() {
    let field = Field::new();
    for path in PATHS {
        let child_graph = field.bench.graph();
        let by = Parameter::any(1_u32);
        let inner = field.scale(&child_graph, &by);
        let child = child_graph.finalize(updatable(path)).unwrap();
        by.set(2).unwrap();
        let parent = field.bench.graph();
        parent.empty().add().unwrap();
        let node = parent.sub_graph(&child).add().unwrap();
        let result = parent.read(&field.c).add().unwrap();
        child.update(&inner).unwrap();
        let executable = parent.finalize(updatable(path)).unwrap();
        assert_eq!(field.run(&executable, &result), each(|i| i * 3 + 2), "the values at finalize");
        by.set(3).unwrap();
        child.update(&inner).unwrap();
        assert_eq!(field.run(&executable, &result), each(|i| i * 3 + 2));
        executable.update(&node.node()).unwrap();
        assert_eq!(field.run(&executable, &result), each(|i| i * 3 + 3));
        by.set(4).unwrap();
        child.update(&inner).unwrap();
        executable.update_from(&parent).unwrap();
        assert_eq!(field.run(&executable, &result), each(|i| i * 3 + 4));
        // A graph in the place of itself, and one with another sub-graph.
        let other = field.bench.graph();
        other.empty().add().unwrap();
        other.sub_graph(&executable).add().unwrap();
        other.read(&field.c).add().unwrap();
        assert_error!(
            executable.update_from(&other),
            UpdateError::Differs { difference } if difference == "node 1: it is a sub-graph of another executable",
        );
        let none = field.bench.graph();
        none.empty().add().unwrap();
        field.scale(&none, &by);
        none.read(&field.c).add().unwrap();
        assert_error!(
            executable.update_from(&none),
            UpdateError::Differs { difference } if difference.starts_with("node 1: it is not a sub-graph"),
        );
    }
}

/// Rule F6: what an update replaces is released, even if nothing else happens.
#[test]
fn what_an_update_replaces_is_released() {
    let field = Field::new();
    let bench = &field.bench;
    for path in PATHS {
        let graph = bench.graph();
        let (first, tell) = bench.telling_buffer(&[1; LEN]);
        let parameter = Parameter::buffer(&first);
        // SAFETY: a work-item touches its own element.
        let node = unsafe {
            graph.kernel(&bench.kernel("scale")).read(&parameter).write(&field.c).arg(1_u32).range(LEN).add().unwrap()
        };
        let executable = graph.finalize(updatable(path)).unwrap();
        let run = executable.submit(&bench.queue).unwrap();
        drop(first);
        let mut last = tell;
        for round in 0..20 {
            let (next, tell) = bench.telling_buffer(&[round; LEN]);
            parameter.set(&next).unwrap();
            drop(next);
            executable.update(&node).unwrap();
            run.wait().unwrap();
            let again = executable.submit(&bench.queue).unwrap();
            again.wait().unwrap();
            last.wait_until_gone();
            last = tell;
        }
        assert_eq!(bench.content(&field.c), [19 * 3 + 1; LEN]);
        assert!(!last.is_gone());
    }
}

/// Rules C1, C3, C6
#[test]
fn a_group_has_one_active_launch_and_executables_follow_when_updated() {
    let field = Field::new();
    let bench = &field.bench;
    let (stir, eight) = (bench.kernel("stir"), bench.kernel("by_eight"));
    for path in PATHS {
        let graph = bench.graph();
        let a = bench.buffer(&[1; LEN]);
        let launches = [&stir, &eight].map(|kernel| graph.kernel(kernel).read_write(&a).range(LEN));
        // SAFETY: a work-item touches its own element.
        let group = unsafe { graph.command_group(launches) }.unwrap();
        let write = graph.write(&a, vec![1; LEN]).add().unwrap();
        let node = graph.command_group_node(&group).add().unwrap();
        assert_eq!(graph.predecessors(node).unwrap(), [write.node()], "edges by the memory that it uses");
        let result = graph.read(&a).add().unwrap();
        let executable = graph.finalize(updatable(path)).unwrap();
        assert_eq!(group.active_index().unwrap(), 0);
        assert_eq!(field.run(&executable, &result), each(|i| 5 + i));
        group.set_active_index(1).unwrap();
        assert_eq!(group.active_index().unwrap(), 1);
        assert_eq!(field.run(&executable, &result), each(|i| 5 + i), "not updated");
        executable.update(&node).unwrap();
        assert_eq!(field.run(&executable, &result), [8; LEN]);
        let again = graph.finalize(Finalize::new().path(path)).unwrap();
        assert_eq!(field.run(&again, &result), [8; LEN]);
        group.set_active_index(0).unwrap();
        group.set_active_index(0).unwrap();
        executable.update(&[node, node]).unwrap();
        assert_eq!(field.run(&executable, &result), each(|i| 5 + i));
        assert!(matches!(
            cause(group.set_active_index(2)),
            BuildCause::Group(GroupError::Index { index: 2, count: 2, .. })
        ));
        assert_eq!(group.active_index().unwrap(), 0);
    }
}

/// Rules C1, C2, C6
#[test]
fn a_group_that_cannot_be_is_refused() {
    let field = Field::new();
    let bench = &field.bench;
    let (graph, other) = (bench.graph(), bench.graph());
    let (stir, add, scale) = (bench.kernel("stir"), bench.kernel("add"), bench.kernel("scale"));
    let launch = |buffer: &Buffer<u32>| graph.kernel(&stir).read_write(buffer).range(LEN);
    // SAFETY: a work-item touches its own element.
    unsafe {
        assert_eq!(cause(graph.command_group([])), BuildCause::Group(GroupError::Empty { what: "launch" }));
        assert_error!(
            graph.command_group([launch(&field.a), launch(&field.b)]),
            BuildError { subject, cause, .. }
                if subject == "launch 1 of a command group"
                    && matches!(&**cause, BuildCause::Group(GroupError::Accesses { what: "launch" })),
        );
        assert_error!(
            graph.command_group([launch(&field.a), graph.kernel(&stir).read(&field.a).range(LEN)]),
            BuildCause::Group(GroupError::Accesses { what: "launch" }),
        );
        assert_error!(
            graph.command_group([launch(&field.a), graph.kernel(&stir).range(1)]),
            BuildCause::ArgumentCount { expected: 1, given: 0, .. },
        );
        let empty = graph.empty().add().unwrap();
        let wrong = graph.command_group([launch(&field.a).after(empty)]);
        assert_eq!(cause(wrong), BuildCause::Group(GroupError::Options { what: "launch" }));
        // The same accesses in another order.
        let one = graph.kernel(&add).read_write(&field.a).read(&field.b).range(LEN);
        let two = graph.kernel(&scale).read(&field.b).read_write(&field.a).arg(3_u32).range(LEN);
        let group = graph.command_group([one, two]).unwrap();
        assert_eq!(cause(other.command_group_node(&group).add()), BuildCause::Group(GroupError::OtherGraph));
        let queue = &bench.queue;
        assert_error!(queue.enqueue_command_group(&group, &[]), RecordError::NotRecording);
        assert_error!(
            other.record(queue, || queue.enqueue_command_group(&group, &[])),
            BuildCause::Group(GroupError::OtherGraph),
        );
        let node = graph.command_group_node(&group).add().unwrap();
        assert_error!(
            graph.kernel(&stir).read_write(&field.a).range(1).replace(node),
            BuildCause::OtherKind { why, .. } if why.contains("`CommandGroup::set_active_index`"),
        );
        drop(graph);
        assert_eq!(cause(group.set_active_index(0)), BuildCause::Group(GroupError::GraphGone));
    }
}

/// Rules C4, C5, C6, U2, U5: ranges, parameters and several nodes, built, recorded, and in sub-graphs.
#[test]
fn launches_of_a_group_have_parameters_and_keep_their_ranges() {
    let field = Field::new();
    let bench = &field.bench;
    let (scale, stir) = (bench.kernel("scale"), bench.kernel("stir"));
    for path in PATHS {
        let graph = bench.graph();
        let (input, by) = (Parameter::buffer(&field.a), Parameter::any(1_u32));
        let c = bench.buffer(&[0; LEN]);
        // SAFETY: a work-item touches its own element.
        let group = unsafe {
            let one = graph.kernel(&scale).read(&input).read_write(&c).arg(&by).range(LEN).range_up_to(LEN);
            let two = graph.kernel(&bench.kernel("add")).read_write(&c).read(&input).range(LEN).range_up_to(LEN);
            graph.command_group([one, two]).unwrap()
        };
        let _ = &stir;
        let write = graph.write(&c, vec![0; LEN]).add().unwrap();
        let built = graph.command_group_node(&group).add().unwrap();
        let queue = &bench.queue;
        let event = graph.record(queue, || queue.enqueue_command_group(&group, &[])).unwrap();
        let recorded = graph.node_of(&event).unwrap();
        let result = graph.read(&c).add().unwrap();
        let executable = graph.finalize(updatable(path)).unwrap();
        let parent = bench.graph();
        let sub = parent.sub_graph(&executable).add().unwrap();
        let outer = parent.finalize(updatable(path)).unwrap();
        let expect = |of: &dyn Fn(u32) -> u32| {
            executable.update(&[built, recorded]).unwrap();
            assert_eq!(field.run(&executable, &result), each(of), "{path:?}");
            outer.update(&sub.node()).unwrap();
            let run = outer.submit(queue).unwrap();
            run.wait().unwrap();
            assert_eq!(*run.get(&sub.read(&result).unwrap()).unwrap(), *each(of), "{path:?}, as a sub-graph");
        };
        expect(&|i| i * 3 + 1);
        by.set(4).unwrap();
        expect(&|i| i * 3 + 4);
        // Set while another launch is active; used when this one is active again.
        group.set_active_index(1).unwrap();
        by.set(5).unwrap();
        expect(&|i| i * 2);
        input.set(&field.b).unwrap();
        expect(&|i| i * 20);
        // The range of the active launch, in both nodes.
        graph.set_nd_range(built, 8).unwrap();
        expect(&|i| if i < 8 { i * 20 } else { 0 });
        group.set_active_index(0).unwrap();
        expect(&|i| i * 30 + 5);
        group.set_active_index(1).unwrap();
        expect(&|i| if i < 8 { i * 20 } else { 0 });
        // One node only: the other keeps its launch.
        group.set_active_index(0).unwrap();
        executable.update(&built).unwrap();
        assert_eq!(field.run(&executable, &result), each(|i| i * 30 + 5 + if i < 8 { i * 10 } else { 0 }));
        // Whole graphs: its own graph, and none with another group.
        executable.update_from(&graph).unwrap();
        assert_eq!(field.run(&executable, &result), each(|i| i * 30 + 5));
        let other = bench.graph();
        other.write(&c, vec![0; LEN]).add().unwrap();
        for _ in 0..2 {
            // SAFETY: as above.
            unsafe { other.kernel(&scale).read(&field.b).read_write(&c).arg(5_u32).range(LEN).add().unwrap() };
        }
        other.read(&c).add().unwrap();
        assert_error!(
            executable.update_from(&other),
            UpdateError::Differs { difference } if difference == "node 1: it does not belong to the same command group",
        );
        let _ = write;
    }
}

/// Rule C4: launches with different numbers of dimensions, each with its range.
#[test]
fn launches_of_a_group_have_dimensions_of_their_own() {
    let field = Field::new();
    let bench = &field.bench;
    let source = "kernel void line(global uint *a) { a[get_global_id(0)] += 1; }
    kernel void plane(global uint *a) { a[get_global_id(1) * 8 + get_global_id(0)] += 10; }";
    let program = clgraph::Program::from_source(&bench.queue, source).unwrap();
    let (line, plane) = (program.kernel("line").unwrap(), program.kernel("plane").unwrap());
    for path in PATHS {
        let c = bench.buffer(&[0; LEN]);
        let graph = bench.graph();
        graph.fill(&c, 0_u32).add().unwrap();
        // SAFETY: a work-item touches its own element.
        let group = unsafe {
            let one = graph.kernel(&line).read_write(&c).range(LEN).range_up_to(LEN);
            let two = graph.kernel(&plane).read_write(&c).range([8, 8]).range_up_to([8, 8]);
            graph.command_group([one, two]).unwrap()
        };
        let node = graph.command_group_node(&group).add().unwrap();
        let read = graph.read(&c).add().unwrap();
        let executable = graph.finalize(updatable(path)).unwrap();
        assert_eq!(field.run(&executable, &read), [1; LEN], "{path:?}");
        group.set_active_index(1).unwrap();
        assert_error!(
            graph.set_nd_range(node, 4),
            BuildCause::Dimensions { what: "new range", given: 1, of: "the node's range", range: 2 },
        );
        graph.set_nd_range(node, [4, 2]).unwrap();
        executable.update(&node).unwrap();
        let some = |i: u32| if i % 8 < 4 && i < 16 { 10 } else { 0 };
        assert_eq!(field.run(&executable, &read), each(some), "{path:?}");
        group.set_active_index(0).unwrap();
        executable.update(&node).unwrap();
        assert_eq!(field.run(&executable, &read), [1; LEN], "{path:?}, the range that it had");
        group.set_active_index(1).unwrap();
        executable.update(&node).unwrap();
        assert_eq!(field.run(&executable, &read), each(some), "{path:?}");
    }
}

/// Rule U6
#[test]
fn the_report_says_how_updates_are_made_and_command_buffers_stay_where_the_driver_changes_them() {
    let field = Field::new();
    let graph = field.bench.graph();
    let by = Parameter::any(1_u32);
    let node = field.scale(&graph, &by);
    let fixed = graph.finalize(Finalize::new()).unwrap().report();
    assert_eq!((fixed.updates.is_none(), fixed.fixed_parameters), (true, 1));
    assert!(fixed.to_string().contains("note       1 argument of parameters cannot be updated"), "{fixed}");
    let replayed = graph.finalize(updatable(Path::Replay)).unwrap();
    assert!(replayed.report().to_string().contains("updates    through kernel objects"), "{}", replayed.report());
    assert_eq!(replayed.report().fixed_parameters, 0);
    let executable = graph.finalize(updatable(Path::Native)).unwrap();
    let updates = executable.report().updates.clone().unwrap();
    let before = executable.command_buffers();
    assert_eq!(before.len(), updates.recorded);
    by.set(2).unwrap();
    executable.update(&node).unwrap();
    let after = executable.command_buffers();
    if updates.in_place.contains(&"arguments") {
        assert_eq!(before, after, "changed in place: {updates:?}");
    } else if !before.is_empty() {
        assert_ne!(before, after, "recorded again: {updates:?}");
    }
    executable.submit(&field.bench.queue).unwrap().wait().unwrap();
    assert_eq!(field.bench.content(&field.c), each(|i| i * 3 + 2));
}

/// Host data that look at their graph when they are dropped, and are overwritten.
struct Owner(Vec<u32>, Graph);

impl AsRef<[u32]> for Owner {
    fn as_ref(&self) -> &[u32] {
        &self.0
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.fill(777);
        assert!(!self.1.is_empty());
    }
}

/// Rules F6, U3: data that a running write reads stay, and are dropped where no lock is held.
#[test]
fn host_data_stays_until_the_submission_that_reads_it_is_over() {
    let bench = Bench::new();
    for path in PATHS {
        let b = bench.buffer(&[0; LEN]);
        let graph = bench.graph();
        let owner = Arc::new(Owner(vec![5; LEN], graph.clone()));
        let alive = Arc::downgrade(&owner);
        let write = graph.write(&b, HostData::shared(owner)).add().unwrap();
        let read = graph.read(&b).add().unwrap();
        let executable = graph.finalize(updatable(path)).unwrap();
        let gate = UserEvent::new(&bench.queue);
        let event = clgraph::Event::from_opencl3(&gate.0).unwrap();
        bench.queue.enqueue_barrier_with_wait_list(&[&event]).unwrap();
        let run = executable.submit(&bench.queue).unwrap();
        graph.write(&b, vec![6_u32; LEN]).replace(&write).unwrap();
        executable.update(&write).unwrap();
        assert!(alive.strong_count() > 0, "it is read still");
        gate.set(0);
        run.wait().unwrap();
        assert_eq!(*run.get(&read).unwrap(), [5; LEN]);
        let begin = Instant::now();
        while alive.strong_count() > 0 {
            assert!(begin.elapsed() < Duration::from_secs(60), "it is never released");
            std::thread::yield_now();
        }
        let run = executable.submit(&bench.queue).unwrap();
        run.wait().unwrap();
        assert_eq!(*run.get(&read).unwrap(), [6; LEN]);
    }
}

/// Rule F6: what users own is dropped where no lock is held.
#[test]
fn users_code_runs_where_no_lock_is_held() {
    let field = Field::new();
    let (bench, graph) = (&field.bench, field.bench.graph());
    let empty = graph.empty().add().unwrap();
    let owner = Owner(Vec::new(), graph.clone());
    let by = Parameter::checked(1_u32, "anything", move |_| owner.0.is_empty()).unwrap();
    let node = field.scale(&graph, &by);
    drop(by);
    // The condition is dropped with the last use of its parameter, and locks the graph.
    // SAFETY: a work-item touches its own element.
    unsafe { graph.kernel(&bench.kernel("scale")).read(&field.a).write(&field.c).arg(3_u32).range(LEN).replace(node) }
        .unwrap();
    // So are host data that an update releases.
    let data = Arc::new(Owner(vec![5; LEN], graph.clone()));
    let write = graph.write(&field.b, HostData::shared(data)).after(empty).add().unwrap();
    let executable = graph.finalize(updatable(Path::Replay)).unwrap();
    graph.write(&field.b, vec![6_u32; LEN]).replace(&write).unwrap();
    executable.update(&write).unwrap();
}

/// Rules C5, P6, F6: a group whose parameter got another buffer: its edges, a parent graph, and what is kept alive.
#[test]
fn a_group_follows_the_buffer_of_its_parameter() {
    let field = Field::new();
    let bench = &field.bench;
    let (add, stir) = (bench.kernel("add"), bench.kernel("stir"));
    for flat in [false, true] {
        let graph = bench.graph();
        if flat {
            let child = bench.graph();
            child.empty().add().unwrap();
            graph.sub_graph(&child.finalize(Finalize::new()).unwrap()).add().unwrap();
        }
        let (first, tell) = bench.telling_buffer(&[1; LEN]);
        let parameter = Parameter::buffer(&first);
        drop(first);
        let launch = || graph.kernel(&add).read_write(&field.c).read(&parameter).range(LEN);
        // SAFETY: a work-item touches its own element.
        let group = unsafe { graph.command_group([launch(), launch()]) }.unwrap();
        let node = graph.command_group_node(&group).add().unwrap();
        let executable = graph.finalize(updatable(Path::Auto)).unwrap();
        parameter.set(&field.b).unwrap();
        executable.update(&node).unwrap();
        group.set_active_index(1).unwrap();
        executable.update(&node).unwrap();
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        tell.wait_until_gone();
        let parent = bench.graph();
        parent.fill(&field.c, 1).add().unwrap();
        parent.sub_graph(&executable).add().unwrap();
        let read = parent.read(&field.c).add().unwrap();
        let outer = parent.finalize(Finalize::new()).unwrap();
        assert_eq!(field.run(&outer, &read), each(|i| i * 10 + 1));
        // A node that is added later waits according to the current values.
        let write = graph.write(&field.a, vec![0; LEN]).add().unwrap();
        parameter.set(&field.a).unwrap();
        let later = graph.command_group_node(&group).add().unwrap();
        assert!(graph.predecessors(later).unwrap().contains(&write.node()));
    }
    // The memory that a refused group named is released.
    let graph = bench.graph();
    let (other, tell) = bench.telling_buffer(&[1; LEN]);
    // SAFETY: as above.
    let wrong = unsafe {
        graph.command_group([&field.a, &other].map(|buffer| graph.kernel(&stir).read_write(buffer).range(LEN)))
    };
    assert!(matches!(cause(wrong), BuildCause::Group(GroupError::Accesses { .. })));
    drop(other);
    tell.wait_until_gone();
}

/// Rule P6: conflicts of a child are conflicts of its parent, which allows them or not.
#[test]
fn conflicts_that_a_child_allows_are_sought_in_its_parent() {
    let field = Field::new();
    let graph = field.bench.graph();
    let parameters = [&field.a, &field.b].map(Parameter::buffer);
    for parameter in &parameters {
        // SAFETY: a work-item touches its own element.
        unsafe { graph.kernel(&field.bench.kernel("stir")).read_write(parameter).range(LEN).add() }.unwrap();
    }
    parameters[1].set(&field.a).unwrap();
    let child = graph.finalize(Finalize::new().allow_conflicts()).unwrap();
    let parent = field.bench.graph();
    parent.sub_graph(&child).add().unwrap();
    assert!(matches!(parent.finalize(Finalize::new()), Err(Error::Finalize(FinalizeError::Conflict { .. }))));
    parent.finalize(Finalize::new().allow_conflicts()).unwrap();
}

/// Rules P3, P8: wrong requests are refused, and a request for what is there already is accepted.
#[test]
fn a_parameter_needs_an_argument_and_a_range_may_stay() {
    let field = Field::new();
    let graph = field.bench.graph();
    let (x, y) = (Parameter::any(1_u32), Parameter::any(2_u32));
    let (scale, stir) = (field.bench.kernel("scale"), field.bench.kernel("stir"));
    // SAFETY: a work-item touches its own element.
    unsafe {
        let early = graph.kernel(&scale).also_parameter(&x).read(&field.a).write(&field.c).arg(&y).range(LEN).add();
        assert_error!(
            early,
            BuildCause::Parameter { index: 0, argument, .. }
                if argument == "not given yet (call `also_parameter` after the argument that it belongs to)",
        );
        let node = graph.kernel(&stir).read_write(&field.a).range(8).add().unwrap();
        graph.set_nd_range(node, 8).unwrap();
    }
}

device_global! {
    static SEVEN: u32 = 7;
}

/// Rules P1, P9: the last of more than 64 arguments, which are followed by a device global and indirectly reached
/// memory.
#[test]
fn the_last_of_many_arguments_changes() {
    const MANY: u32 = 70;
    let bench = Bench::new();
    let values: String = (0..MANY).map(|at| format!(", uint v{at}")).collect();
    let source = format!(
        "CLG_DEVICE_GLOBAL(uint, seven);
        kernel void many(global uint *out{values} CLG_PARAMS) {{ out[0] = v0 + v{} + CLG_GLOBAL(seven); }}",
        MANY - 1
    );
    let caps = bench.queue.device().caps();
    let kind = MemoryKind::ALL.into_iter().find(|kind| kind.is_pointer() && caps.has_memory(*kind));
    let hidden = kind.map(|kind| Memory::<u32>::with_kind(&bench.queue, kind, LEN).unwrap());
    let program = ProgramBuilder::new(&bench.queue).global("seven", &SEVEN).global_access(GlobalAccess::Argument);
    let kernel = program.source(&source).unwrap().kernel("many").unwrap();
    for (path, hidden) in PATHS.into_iter().flat_map(|path| [(path, None), (path, hidden.as_ref())]) {
        let (graph, last, out) = (bench.graph(), Parameter::any(0_u32), bench.buffer(&[0; 1]));
        let mut launch = graph.kernel(&kernel).write(&out);
        for at in 0..MANY - 1 {
            launch = launch.arg(at + 100);
        }
        launch = launch.arg(&last);
        if let Some(hidden) = hidden {
            launch = launch.indirect(hidden);
        }
        // SAFETY: its one work-item writes the only element.
        let node = unsafe { launch.range(1).add() }.unwrap();
        let result = graph.read(&out).add().unwrap();
        let executable = graph.finalize(updatable(path)).unwrap();
        for value in [1, 5] {
            last.set(value).unwrap();
            executable.update(&node).unwrap();
            let run = executable.submit(&bench.queue).unwrap();
            run.wait().unwrap();
            assert_eq!(*run.get(&result).unwrap(), [100 + value + 7], "{path}");
        }
    }
}

/// Rules P3, U2, U5, C2, N5: memory becomes null, and null becomes memory, by everything that changes an argument, on
/// every path.
#[test]
fn memory_becomes_null_and_null_memory() {
    let field = Field::new();
    let Field { a, b, .. } = &field;
    let kernel = field.bench.kernel("add_or_one");
    let (with_b, with_null) = (each(|i| i + i * 10), each(|i| i + 1));
    for path in [Path::Auto, Path::Native, Path::Replay, Path::Gated, Path::Queues] {
        let start = |graph: &Graph| graph.write(a, each(|i| i)).add().unwrap();
        // By a parameter, and through a list that comes again.
        let (graph, by) = (field.bench.graph(), Parameter::buffer_or_null(b));
        start(&graph);
        // SAFETY: here and below, a work-item touches its own elements, and looks whether there is a second buffer.
        let node = unsafe { graph.kernel(&kernel).read_write(a).read(&by).range(LEN).add() }.unwrap();
        let result = graph.read(a).add().unwrap();
        let executable = graph.finalize(updatable(path)).unwrap();
        assert_eq!(field.run(&executable, &result), with_b);
        for _ in 0..4 {
            by.set_null().unwrap();
            by.set_null().unwrap();
            assert_eq!(field.run(&executable, &result), with_b, "not updated");
            executable.update(&node).unwrap();
            assert_eq!(field.run(&executable, &result), with_null);
            by.set(b).unwrap();
            executable.update(&node).unwrap();
            assert_eq!(field.run(&executable, &result), with_b);
        }
        // A graph that is finalized with null, and a node that is replaced by another launch.
        by.set_null().unwrap();
        let later = graph.finalize(updatable(path)).unwrap();
        assert_eq!(field.run(&later, &result), with_null);
        // SAFETY: as above.
        unsafe { graph.kernel(&kernel).read_write(a).read(b).range(LEN).replace(node) }.unwrap();
        later.update(&node).unwrap();
        assert_eq!(field.run(&later, &result), with_b);
        // SAFETY: as above.
        unsafe { graph.kernel(&kernel).read_write(a).null().range(LEN).replace(node) }.unwrap();
        later.update(&node).unwrap();
        executable.update(&node).unwrap();
        assert_eq!(field.run(&later, &result), with_null);
        assert_eq!(field.run(&executable, &result), with_null);
        // By another graph, and in a parent.
        let other = field.bench.graph();
        start(&other);
        // SAFETY: as above.
        unsafe { other.kernel(&kernel).read_write(a).read(b).range(LEN).add() }.unwrap();
        other.read(a).add().unwrap();
        let parent = field.bench.graph();
        let child = parent.sub_graph(&executable).add().unwrap();
        let content = parent.read(a).add().unwrap();
        let whole = parent.finalize(updatable(path)).unwrap();
        assert_eq!(field.run(&whole, &content), with_null);
        executable.update_from(&other).unwrap();
        assert_eq!(field.run(&executable, &result), with_b);
        assert_eq!(field.run(&whole, &content), with_null);
        whole.update(&child).unwrap();
        assert_eq!(field.run(&whole, &content), with_b);
        executable.update_from(&graph).unwrap();
        whole.update(&child).unwrap();
        assert_eq!(field.run(&whole, &content), with_null);
    }
}

/// Rules C1, C2: launches of a group, one with memory and one with null: the node waits as if both had the memory.
#[test]
fn a_launch_of_a_group_may_have_null_where_another_has_memory() {
    let field = Field::new();
    let Field { a, b, c, .. } = &field;
    let kernel = field.bench.kernel("add_or_one");
    for (path, null_first) in PATHS.into_iter().flat_map(|path| [(path, true), (path, false)]) {
        let graph = field.bench.graph();
        graph.write(a, each(|i| i)).add().unwrap();
        let fill = graph.fill(b, 5_u32).add().unwrap();
        let launch = |null: bool| {
            let launch = graph.kernel(&kernel).read_write(a);
            if null { launch.null() } else { launch.read(b) }.range(LEN)
        };
        // SAFETY: a work-item touches its own elements, and looks whether there is a second buffer.
        let group = unsafe { graph.command_group([launch(null_first), launch(!null_first)]) }.unwrap();
        let node = graph.command_group_node(&group).add().unwrap();
        assert!(graph.predecessors(node).unwrap().contains(&fill));
        let result = graph.read(a).add().unwrap();
        let executable = graph.finalize(updatable(path)).unwrap();
        for active in [0, 1, 0, 1] {
            group.set_active_index(active).unwrap();
            executable.update(&node).unwrap();
            let expected = each(|i| if (active == 0) == null_first { i + 1 } else { i + 5 });
            assert_eq!(field.run(&executable, &result), expected);
        }
    }
    let graph = field.bench.graph();
    let launch = |second: &Buffer<u32>| graph.kernel(&kernel).read_write(a).read(second).range(LEN);
    let null = || graph.kernel(&kernel).read_write(a).null().range(LEN);
    // SAFETY: as above.
    let wrong = unsafe { graph.command_group([null(), launch(b), launch(c)]) };
    assert!(matches!(cause(wrong), BuildCause::Group(GroupError::Accesses { .. })));
}

/// Rules P3, P6: only arguments that were made for it become null, and memory in the place of null is a use like any
/// other.
#[test]
fn null_is_asked_for_and_memory_in_its_place_may_conflict() {
    let field = Field::new();
    let Field { a, b, c, .. } = &field;
    assert_eq!(unset(Parameter::buffer(a).set_null()), ParameterError::NeverNull);
    let kernel = field.bench.kernel("add_or_one");
    let (graph, by) = (field.bench.graph(), Parameter::buffer_or_null(b));
    by.set_null().unwrap();
    assert!(matches!(unset(by.set(&elsewhere().buffer(&each(|i| i)))), ParameterError::OtherContext));
    assert!(matches!(unset(by.set(&field.bench.buffer(&[1]))), ParameterError::TooSmall { .. }));
    // SAFETY: a work-item touches its own elements, and looks whether there is a second buffer.
    let node = unsafe { graph.kernel(&kernel).read_write(a).read(&by).range(LEN).add() }.unwrap();
    let fill = graph.fill(c, 3_u32).add().unwrap();
    assert!(graph.predecessors(fill).unwrap().is_empty());
    let executable = graph.finalize(updatable(Path::Auto)).unwrap();
    by.set(c).unwrap();
    assert!(matches!(refused(executable.update(&node)), UpdateError::Conflict { .. }));
    assert!(matches!(graph.finalize(Finalize::new()), Err(Error::Finalize(FinalizeError::Conflict { .. }))));
    by.set_null().unwrap();
    executable.update(&node).unwrap();
    by.set(b).unwrap();
    executable.update(&node).unwrap();
    by.set(c).unwrap();
    graph.add_edge(node, fill).unwrap();
    let result = graph.read(a).add().unwrap();
    let ordered = graph.finalize(updatable(Path::Auto)).unwrap();
    field.bench.queue.enqueue_fill_buffer(c, &[7_u32], 0, LEN * 4, &[]).unwrap();
    assert_eq!(field.run(&ordered, &result), each(|i| i + 7));
}
