//! Executables in graphs: by building and by recording, any number of times and to any depth.

mod common;

use std::time::Duration;

use clgraph::{
    Buffer, BuildCause, BuildError, Error, Executable, Finalize, FinalizeError, Graph, HostRead, HostWrite, NodeKind,
    Path, Progress, Queue, RecordError, SubGraph, SubmitError,
};
use common::{Bench, UserEvent, assert_error, elsewhere};

const LONG: Duration = Duration::from_secs(60);

/// A graph that stirs a buffer so many times between a write and a read.
struct Child {
    executable: Executable,
    input: HostWrite<u32>,
    output: HostRead<u32>,
}

impl Child {
    fn new(bench: &Bench, buffer: &Buffer<u32>, times: usize) -> Self {
        let graph = bench.graph();
        let input = graph.write(buffer, vec![1; buffer.len()]).add().unwrap();
        stir(bench, &graph, buffer, times);
        let output = graph.read(buffer).add().unwrap();
        Self { executable: graph.finalize(Finalize::new()).unwrap(), input, output }
    }
}

fn stir(bench: &Bench, graph: &Graph, buffer: &Buffer<u32>, times: usize) {
    let kernel = bench.kernel("stir");
    for _ in 0..times {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&kernel).read_write(buffer).range(buffer.len()).add() }.unwrap();
    }
}

fn stirred(start: u32, times: usize, len: usize) -> Vec<u32> {
    let stir = |i: u32| (0..times).fold(start, |value, _| value.wrapping_mul(5).wrapping_add(i));
    (0..len as u32).map(stir).collect()
}

/// Rules N1, N2
#[test]
fn a_sub_graph_is_between_the_predecessors_and_successors_of_its_node() {
    let bench = Bench::new();
    let (a, b, c) = (bench.buffer(&[9; 16]), bench.buffer(&[0; 16]), bench.buffer(&[0; 16]));
    let child = Child::new(&bench, &a, 2);
    let parent = bench.graph();
    let before = parent.copy(&a, &b).add().unwrap();
    let first = parent.sub_graph(&child.executable).add().unwrap();
    let second = parent.sub_graph(&child.executable).add().unwrap();
    let after = parent.copy(&a, &c).add().unwrap();
    assert_eq!(parent.kind(first.node()).unwrap(), NodeKind::SubGraph);
    assert_eq!(parent.predecessors(first.node()).unwrap(), [before], "by the memory that it uses");
    assert_eq!(parent.predecessors(second.node()).unwrap(), [first.node()], "which is behind the other one");
    assert!(parent.predecessors(after).unwrap().contains(&second.node()));
    let executable = parent.finalize(Finalize::new()).unwrap();
    let report = executable.report();
    let written: Vec<_> = report.sub_graphs.iter().map(|sub| (sub.node, sub.nodes)).collect();
    assert_eq!((written, report.nodes, report.commands), (vec![(1, 4), (2, 4)], 4, 10));
    assert!(report.to_string().contains("node 1 is a sub-graph, inlined as 4 nodes"), "{report}");
    let inputs = (first.write(&child.input).unwrap(), second.write(&child.input).unwrap());
    let submit = executable.submit_to(&bench.queue).with(&inputs.0, [2; 16]).with(&inputs.1, [3; 16]);
    let run = submit.submit().unwrap();
    let alone = child.executable.submit(&bench.queue).unwrap();
    run.wait().unwrap();
    alone.wait().unwrap();
    let read = |sub: &SubGraph| run.get(&sub.read(&child.output).unwrap()).unwrap().to_vec();
    assert_eq!((read(&first), read(&second)), (stirred(2, 2, 16), stirred(3, 2, 16)));
    assert_eq!(*alone.get(&child.output).unwrap(), stirred(1, 2, 16));
    assert_eq!((bench.content(&b), bench.content(&c)), (vec![9; 16], stirred(3, 2, 16)));
    assert!(matches!(run.get(&child.output).unwrap_err(), Error::Submit(SubmitError::NotAResult { .. })));
}

/// Rules N1, N4, R12
#[test]
fn sub_graphs_nest_and_are_recorded_and_are_the_same_as_their_nodes() {
    const DEPTH: usize = 40;
    let bench = Bench::new();
    let flat = {
        let buffer = bench.buffer(&[1; 8]);
        let graph = bench.graph();
        stir(&bench, &graph, &buffer, DEPTH);
        bench.run(&graph);
        bench.content(&buffer)
    };
    for path in [Path::Auto, Path::Native, Path::Replay] {
        for recorded in [false, true] {
            let buffer = bench.buffer(&[1; 8]);
            let mut executable: Option<Executable> = None;
            for _ in 0..DEPTH {
                let graph = bench.graph();
                if let Some(inner) = &executable {
                    if recorded {
                        let run = graph.record(&bench.queue, || inner.submit(&bench.queue)).unwrap();
                        assert_eq!(run.event().unwrap().node(), run.sub_graph().map(|sub| sub.node()));
                    } else {
                        graph.sub_graph(inner).add().unwrap();
                    }
                }
                stir(&bench, &graph, &buffer, 1);
                executable = Some(graph.finalize(Finalize::new().path(path)).unwrap());
            }
            let executable = executable.unwrap();
            assert_eq!(executable.report().commands, DEPTH);
            executable.submit(&bench.queue).unwrap().wait().unwrap();
            assert_eq!(bench.content(&buffer), flat, "{path:?}, recorded: {recorded}");
        }
    }
}

/// Rules R5, R6, R12
#[test]
fn a_recorded_submission_stands_for_a_node() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 16]);
    let child = Child::new(&bench, &a, 1);
    let graph = bench.graph();
    let running = child.executable.submit(&bench.queue).unwrap();
    graph.begin_recording(&bench.queue).unwrap();
    let first = child.executable.submit(&bench.queue).unwrap();
    let second = child.executable.submit_to(&bench.queue).after(&first).submit().unwrap();
    child.executable.submit_to(&bench.queue).submit_detached().unwrap();
    let outcome = child.executable.submit_to(&bench.queue).after(&running).submit();
    assert!(matches!(outcome.unwrap_err(), Error::Record(RecordError::RunningEvent { index: 0 })));
    let outcome = child.executable.submit_to(&bench.queue).with(&child.input, [4; 16]).submit();
    assert_error!(
        outcome,
        RecordError::NotRecordable { what: "input for one submission", instead }
            if instead.contains("with `SubGraph::write`"),
    );
    for outcome in
        [first.wait(), first.wait_for(LONG), first.progress().map(|_| ()), first.get(&child.output).map(|_| ())]
    {
        assert_error!(outcome, RecordError::Recorded { node, .. } if *node == graph.nodes()[0]);
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    first.on_complete(move |outcome| sender.send(outcome).unwrap());
    assert_error!(
        receiver.recv_timeout(LONG).unwrap(),
        RecordError::Recorded { node, what: "waited for" } if *node == graph.nodes()[0],
    );
    graph.end_recording(&bench.queue).unwrap();
    assert_eq!(graph.len(), 3);
    assert_eq!(graph.predecessors(second.event().unwrap().node().unwrap()).unwrap().len(), 1);
    // Another queue joins through such a submission.
    let other = bench.another_queue(true);
    graph.begin_recording(&bench.queue).unwrap();
    let joined = child.executable.submit_to(&other).after(&first).submit().unwrap();
    assert_eq!(other.recording_graph().unwrap(), graph);
    graph.end_all_recording();
    let run = graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
    run.wait().unwrap();
    let read = joined.sub_graph().unwrap().read(&child.output).unwrap();
    assert_eq!(*run.get(&read).unwrap(), stirred(1, 1, 16));
}

/// Rule N6
#[test]
fn uses_of_an_executable_follow_each_other_alone_and_inside_parents() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 16]);
    let child = Child::new(&bench, &a, 1);
    let wrap = |inner: &Executable| {
        let graph = bench.graph();
        let sub = graph.sub_graph(inner).add().unwrap();
        (graph.finalize(Finalize::new()).unwrap(), sub)
    };
    let (parent, sub) = wrap(&child.executable);
    let (grand, grand_sub) = wrap(&parent);
    let output = grand_sub.read(&sub.read(&child.output).unwrap()).unwrap();
    let input = grand_sub.write(&sub.write(&child.input).unwrap()).unwrap();
    let queues: Vec<Queue> = (0..3).map(|_| bench.another_queue(false)).collect();
    // A use of the child that waits holds back the uses in parents, on other queues, and the reverse.
    let gate = UserEvent::new(&bench.queue);
    let alone = child.executable.submit_to(&queues[0]).after(&gate.0).submit().unwrap();
    let inside = grand.submit_to(&queues[1]).with(&input, [7; 16]).submit().unwrap();
    let again = parent.submit(&queues[2]).unwrap();
    bench.let_threads_run();
    assert_eq!([&alone, &inside, &again].map(|run| run.progress().unwrap()), [Progress::Waiting; 3]);
    gate.set(0);
    for run in [&alone, &inside, &again] {
        run.wait_for(LONG).unwrap();
    }
    assert_eq!(*inside.get(&output).unwrap(), stirred(7, 1, 16));
    // The threads get their result slots.
    drop((alone, inside, again));
    // From many threads: each run reads what it wrote itself. If two runs overlapped, it would not.
    std::thread::scope(|scope| {
        for (index, queue) in queues.iter().enumerate() {
            let (child, parent, grand, sub, output, input) = (&child, &parent, &grand, &sub, &output, &input);
            scope.spawn(move || {
                for round in 0..60 {
                    let start = (index * 100 + round) as u32;
                    let seen = match (index + round) % 3 {
                        0 => {
                            let run =
                                child.executable.submit_to(queue).with(&child.input, [start; 16]).submit().unwrap();
                            run.wait_for(LONG).unwrap();
                            run.get(&child.output).unwrap().to_vec()
                        }
                        1 => {
                            let write = sub.write(&child.input).unwrap();
                            let run = parent.submit_to(queue).with(&write, [start; 16]).submit().unwrap();
                            run.wait_for(LONG).unwrap();
                            run.get(&sub.read(&child.output).unwrap()).unwrap().to_vec()
                        }
                        _ => {
                            let run = grand.submit_to(queue).with(input, [start; 16]).submit().unwrap();
                            run.wait_for(LONG).unwrap();
                            run.get(output).unwrap().to_vec()
                        }
                    };
                    assert_eq!(seen, stirred(start, 1, 16));
                }
            });
        }
    });
}

/// Rule N6: two uses in one graph that share no memory, so that only the executable orders them.
#[test]
fn uses_in_one_graph_are_ordered_through_other_executables() {
    let bench = Bench::new();
    let empty = bench.graph().finalize(Finalize::new()).unwrap();
    let around = {
        let graph = bench.graph();
        graph.sub_graph(&empty).add().unwrap();
        graph.finalize(Finalize::new()).unwrap()
    };
    let graph = bench.graph();
    let first = graph.sub_graph(&empty).add().unwrap();
    let other = graph.empty().add().unwrap();
    let second = graph.sub_graph(&around).add().unwrap();
    assert_eq!(graph.predecessors(second.node()).unwrap(), [first.node()]);
    assert_eq!(graph.predecessors(other).unwrap(), []);
    let run = graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
    run.wait().unwrap();
}

/// Rule N5: sub-graphs whose values can change, whose child was dropped, and whose graph grew.
#[test]
fn a_parent_keeps_what_its_child_was() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 16]);
    let graph = bench.graph();
    graph.fill(&a, 1).add().unwrap();
    let child = graph.finalize(Finalize::new()).unwrap();
    let parent = bench.graph();
    parent.sub_graph(&child).add().unwrap();
    graph.fill(&a, 2).add().unwrap();
    drop((graph, child));
    let parent = parent.finalize(Finalize::new()).unwrap();
    parent.submit(&bench.queue).unwrap().wait().unwrap();
    assert_eq!(bench.content(&a), [1; 16]);
}

#[test]
fn a_wrong_executable_or_handle_is_refused() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 16]);
    let child = Child::new(&bench, &a, 1);
    let theirs = elsewhere();
    let foreign = Child::new(theirs, &theirs.buffer(&[0; 16]), 1);
    let graph = bench.graph();
    assert_error!(
        graph.sub_graph(&foreign.executable).add(),
        BuildError { subject, cause, .. }
            if subject == "sub-graph (to be node 0)"
                && matches!(&**cause, BuildCause::OtherContext { what } if what == "the executable"),
    );
    let sub = graph.sub_graph(&child.executable).add().unwrap();
    assert_error!(sub.read(&foreign.output), SubmitError::NotAResult { node } if *node == foreign.output.node());
    assert_error!(sub.write(&foreign.input), SubmitError::NotAnInput { node } if *node == foreign.input.node());
    assert_error!(
        graph.record(&bench.queue, || foreign.executable.submit(&bench.queue)),
        SubmitError::OtherQueue { what: "context", .. },
    );
    assert_eq!(graph.len(), 1);
    // A cycle through a sub-graph names nodes of the graph.
    let loose =
        Graph::with_properties(&bench.queue, bench.queue.device(), clgraph::GraphProperties::new().no_cycle_check())
            .unwrap();
    let before = loose.empty().add().unwrap();
    let sub = loose.sub_graph(&child.executable).after(before).add().unwrap();
    loose.add_edge(sub.node(), before).unwrap();
    assert_error!(loose.finalize(Finalize::new()), FinalizeError::Cycle { nodes } if nodes[..] == [sub.node(), before]);
}

/// Rule D1: a declaration against a kernel's `const` is reported beside a sub-graph, and not inside of it.
#[test]
fn warnings_are_those_of_the_graph_itself() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[0; 16]), bench.buffer(&[0; 16]));
    let child = Child::new(&bench, &a, 1);
    let graph = bench.graph();
    graph.sub_graph(&child.executable).add().unwrap();
    // SAFETY: it is not run.
    unsafe { graph.kernel(&bench.kernel("scale")).read_write(&a).write(&b).arg(1_u32).range(16).add() }.unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    assert!(executable.report().warnings[0].starts_with("node 1 (kernel `scale`): argument 0 was added as written"));
    let around = bench.graph();
    around.sub_graph(&executable).add().unwrap();
    assert_eq!(
        around.finalize(Finalize::new()).unwrap().report().warnings.len(),
        executable.report().warnings.len() - 1
    );
}

/// Rule U4: an executable with memory of its own is in a graph twice. Updates that change nothing, and updates of the second
/// use, do not lead commands of the first use to other memory.
#[test]
fn uses_of_one_executable_keep_their_own_memory() {
    const LEN: usize = 256;
    let bench = Bench::new();
    for (path, all) in [Path::Auto, Path::Native, Path::Replay, Path::Gated, Path::Queues]
        .into_iter()
        .flat_map(|path| [(path, false), (path, true)])
    {
        let [a, b, c] = [(); 3].map(|()| bench.buffer(&[0; LEN]));
        let inner = bench.graph();
        let own = inner.alloc::<u32>(LEN).add().unwrap();
        inner.fill(&own, 1).add().unwrap();
        let fill = inner.fill(&own.slice(128..256).unwrap(), 2).add().unwrap();
        inner.copy(&own, &a).add().unwrap();
        let child = inner.finalize(Finalize::new().updatable()).unwrap();
        let graph = bench.graph();
        let [first, second] = [(); 2].map(|()| graph.sub_graph(&child).add().unwrap().node());
        let parent = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
        // Nothing has changed.
        if all {
            parent.update_from(&graph).unwrap()
        } else {
            parent.update(&first).unwrap()
        }
        for to in [&b, &c] {
            inner.fill(&to.slice(128..256).unwrap(), 3).replace(fill).unwrap();
            child.update(&fill).unwrap();
            parent.update(&second).unwrap();
        }
        parent.submit(&bench.queue).unwrap().wait().unwrap();
        let filled = [vec![0; 128], vec![3; 128]].concat();
        assert_eq!((bench.content(&b), bench.content(&c)), (vec![0; LEN], filled), "{path} {all}");
    }
}
