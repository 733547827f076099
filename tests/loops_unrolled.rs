//! Loops with a known number of turns whose turns are commands of the graph: rule K7. Whatever the way, memory, results, counts
//! and errors are the same.

mod common;

use std::time::Duration;

use clgraph::{
    Buffer, Executable, Finalize, HostDecided, Kernel, Loop, LoopReport, Loops, NodeKind, Parameter, Path, Program,
    SubmitError, UserEvent,
};
use common::{Bench, Failure};

const LONG: Duration = Duration::from_secs(60);

const SOURCE: &str = "
    kernel void add(global uint *to, uint by) { to[get_global_id(0)] = to[get_global_id(0)] * 3 + by; }
    kernel void count_down(global uint *left) { *left -= 1; }
";

const LEN: usize = 16;

fn kernel(bench: &Bench, name: &str) -> Kernel {
    Program::from_source(&bench.queue, SOURCE).unwrap().kernel(name).unwrap()
}

/// A body that changes each element, and has a host task if `with_task`.
fn body(bench: &Bench, data: &Buffer<u32>, by: u32, with_task: bool) -> Executable {
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&kernel(bench, "add")).read_write(data).arg(by).range(LEN).add() }.unwrap();
    if with_task {
        graph.host_task(|_| ()).reads_and_writes(data).add().unwrap();
    }
    graph.finalize(Finalize::new()).unwrap()
}

fn added(start: u32, by: &[u32]) -> u32 {
    by.iter().fold(start, |value, by| value.wrapping_mul(3).wrapping_add(*by))
}

fn ways(executable: &Executable) -> Vec<(Option<u64>, Option<HostDecided>)> {
    executable.report().loops.into_iter().map(|LoopReport { turns, host_decided, .. }| (turns, host_decided)).collect()
}

/// Rules K7, K9: on each path, and as the host begins each turn.
#[test]
fn turns_are_commands_like_others() {
    let bench = Bench::new();
    for path in [Path::Auto, Path::Replay, Path::Gated, Path::Native, Path::Queues] {
        for loops in [Loops::Auto, Loops::Ahead, Loops::HostDecided] {
            let data = bench.buffer(&[1; LEN]);
            let (graph, inner) = (bench.graph(), bench.graph());
            let first = inner.repeat(3, &body(&bench, &data, 5, false)).add().unwrap();
            let none = inner.repeat(0, &body(&bench, &data, 6, false)).add().unwrap();
            let inner = inner.finalize(Finalize::new().loops(loops)).unwrap();
            let begin = graph.write(&data, [1_u32; LEN]).add().unwrap();
            let outer = graph.repeat(2, &inner).add().unwrap();
            let alone = graph.repeat(4, &body(&bench, &data, 7, false)).label("seven").add().unwrap();
            let sub_graph = graph.sub_graph(&inner).add().unwrap();
            let read = graph.read(&data).add().unwrap();
            let executable = graph.finalize(Finalize::new().path(path).loops(loops)).unwrap();
            for start in [1, 9] {
                let run = executable.submit_to(&bench.queue).with(&begin, [start; LEN]).submit().unwrap();
                run.wait_for(LONG).unwrap();
                let by = [[5; 6].as_slice(), &[7; 4], &[5; 3]].concat();
                assert_eq!(*run.get(&read).unwrap(), [added(start, &by); LEN], "{path} {loops:?}");
                let turns = |of: &Loop| run.turns(of).unwrap();
                let within = |of: &Loop| outer.body().unwrap().repeat(of).unwrap();
                assert_eq!([turns(&outer), turns(&alone)], [2, 4], "{path} {loops:?}");
                assert_eq!([turns(&within(&first)), turns(&within(&none))], [6, 0], "{path} {loops:?}");
                let within = |of: &Loop| sub_graph.repeat(of).unwrap();
                assert_eq!([turns(&within(&first)), turns(&within(&none))], [3, 0], "{path} {loops:?}");
            }
            let why = (loops == Loops::HostDecided).then_some(HostDecided::Asked);
            let expected = [2, 3, 0, 4, 3, 0].map(|turns| (Some(turns), why.clone()));
            assert_eq!(ways(&executable), expected);
            let report = executable.report().to_string();
            let line = if why.is_none() {
                "its 4 turns are unrolled"
            } else {
                "the host begins each of its 4 turns: as asked"
            };
            assert!(report.contains(line), "{report}");
            // The inner executable alone.
            let run = inner.submit(&bench.queue).unwrap();
            run.wait_for(LONG).unwrap();
            assert_eq!(run.turns(&first).unwrap(), 3);
        }
    }
}

/// Rule K7: a loop inside the body of a loop with a condition is part of its turns, so these can go ahead.
#[test]
fn a_loop_in_a_loop_that_goes_ahead() {
    let bench = Bench::new();
    let (data, left) = (bench.buffer(&[1; LEN]), bench.buffer(&[5_u32]));
    let graph = bench.graph();
    let inner = graph.repeat(3, &body(&bench, &data, 2, false)).add().unwrap();
    // SAFETY: one work-item, and one element.
    unsafe { graph.kernel(&kernel(&bench, "count_down")).read_write(&left).range(1).add() }.unwrap();
    let turn = graph.finalize(Finalize::new()).unwrap();
    let graph = bench.graph();
    let outer = graph.repeat_while(&left, &turn).add().unwrap();
    let executable = graph.finalize(Finalize::new().loops(Loops::Ahead)).unwrap();
    let run = executable.submit(&bench.queue).unwrap();
    run.wait_for(LONG).unwrap();
    assert_eq!(bench.content(&data), [added(1, &[2; 15]); LEN]);
    let inner = outer.body().unwrap().repeat(&inner).unwrap();
    assert_eq!((run.turns(&outer).unwrap(), run.turns(&inner).unwrap()), (5, 15));
    assert_eq!(ways(&executable)[1], (Some(3), None));
}

/// Rules K6, K7: what keeps a loop as it is.
#[test]
fn the_report_says_why_a_loop_is_not_unrolled() {
    let bench = Bench::new();
    let data = bench.buffer(&[1; LEN]);
    let plain = body(&bench, &data, 2, false);
    let way = |turns: u64, of: &Executable, options: Finalize, with_task: bool| {
        let graph = bench.graph();
        let node = graph.repeat(turns, of).add().unwrap();
        if with_task {
            graph.host_task(|_| ()).reads_and_writes(&data).add().unwrap();
        }
        let executable = graph.finalize(options).unwrap();
        let before = bench.content(&data)[0];
        let run = executable.submit(&bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        assert_eq!(run.turns(&node).unwrap(), turns);
        assert_eq!(bench.content(&data), [added(before, &vec![2; turns as usize]); LEN]);
        let ways = ways(&executable);
        assert_eq!((ways.len(), ways[0].0), (1, Some(turns)));
        ways[0].1.clone()
    };
    let new = Finalize::new;
    assert_eq!(way(256, &plain, new(), false), None);
    assert_eq!(way(257, &plain, new(), false), Some(HostDecided::Long));
    assert_eq!(way(2, &plain, new().updatable(), false), Some(HostDecided::Updatable));
    assert_eq!(way(2, &plain, new().profiling(), false), Some(HostDecided::Profiled));
    assert_eq!(way(2, &plain, new(), true), Some(HostDecided::Beside(NodeKind::HostTask)));
    let with_task = body(&bench, &data, 2, true);
    assert_eq!(way(2, &with_task, new(), false), Some(HostDecided::Node(NodeKind::HostTask)));
}

/// Rules K6, N3: an executable with unrolled loops has the loops and its own memory in graphs that it is part of; there the
/// number of turns can be changed.
#[test]
fn an_executable_with_unrolled_loops_is_a_part_with_loops() {
    let bench = Bench::new();
    let out = bench.buffer(&[0; LEN]);
    let graph = bench.graph();
    let memory = graph.alloc::<u32>(LEN).zero_init().add().unwrap();
    let add = Parameter::any(1_u32);
    let inside = bench.graph();
    // SAFETY: each work-item touches its own element.
    unsafe { inside.kernel(&kernel(&bench, "add")).read_write(&out).arg(&add).range(LEN).add() }.unwrap();
    let inside = inside.finalize(Finalize::new()).unwrap();
    graph.copy(&out, &memory).add().unwrap();
    graph.fill(&out, 0).add().unwrap();
    let inner = graph.repeat(3, &inside).add().unwrap();
    graph.copy(&memory, &out).add().unwrap();
    let small = graph.finalize(Finalize::new()).unwrap();
    assert_eq!(ways(&small), [(Some(3), None)]);
    let graph = bench.graph();
    let part = graph.sub_graph(&small).add().unwrap();
    let outer = graph.repeat(2, &inside).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    assert_eq!(ways(&executable), [(Some(3), Some(HostDecided::Updatable)), (Some(2), Some(HostDecided::Updatable))]);
    graph.repeat(5, &inside).replace(&outer).unwrap();
    executable.update(&outer).unwrap();
    bench.queue.enqueue_fill_buffer(&out, &[7], 0, 4 * LEN, &[]).unwrap().wait().unwrap();
    let run = executable.submit(&bench.queue).unwrap();
    run.wait_for(LONG).unwrap();
    assert_eq!(bench.content(&out), [added(7, &[1; 5]); LEN]);
    assert_eq!((run.turns(&part.repeat(&inner).unwrap()).unwrap(), run.turns(&outer).unwrap()), (3, 5));
    drop(executable);
    small.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
    assert_eq!(bench.content(&out), [added(7, &[1; 5]); LEN]);
}

/// Rules K4, K7: a submission that is cancelled before it begins never begins, whatever the way of its loops.
#[test]
fn what_is_cancelled_before_it_begins_never_begins() {
    let bench = Bench::new();
    let data = bench.buffer(&[1; LEN]);
    let flag = bench.buffer(&[0]);
    let body = body(&bench, &data, 2, false);
    for loops in [Loops::Auto, Loops::HostDecided, Loops::Ahead] {
        for with_condition in [false, true] {
            let graph = bench.graph();
            graph.fill(&data, 5_u32).add().unwrap();
            let node = if with_condition {
                graph.repeat_while(&flag, &body).add().unwrap()
            } else {
                graph.repeat(3, &body).add().unwrap()
            };
            let executable = graph.finalize(Finalize::new().loops(loops)).unwrap();
            let event = UserEvent::new(&bench.queue).unwrap();
            let run = executable.submit_to(&bench.queue).after(&event).submit().unwrap();
            let next = executable.submit(&bench.queue).unwrap();
            run.cancel().unwrap();
            event.complete().unwrap();
            let error = run.wait_for(LONG).failure();
            let of = node.node();
            let is_it =
                matches!(&error, clgraph::Error::Submit(SubmitError::Cancelled { node, turns: 0, .. }) if *node == of);
            assert!(is_it, "{loops:?}: {error}");
            assert_eq!(run.turns(&node).unwrap(), 0);
            // The executable goes on working.
            next.wait_for(LONG).unwrap();
            assert_eq!(next.turns(&node).unwrap(), if with_condition { 0 } else { 3 });
        }
    }
    // Without a branch or loop nothing is cancelled.
    let event = UserEvent::new(&bench.queue).unwrap();
    let run = body.submit_to(&bench.queue).after(&event).submit().unwrap();
    run.cancel().unwrap();
    event.complete().unwrap();
    run.wait_for(LONG).unwrap();
}

/// Rules K4, K9: a submission that never begins has no turns, and cancelling one changes nothing that has begun.
#[test]
fn turns_count_when_they_begin() {
    let bench = Bench::new();
    let data = bench.buffer(&[1; LEN]);
    let graph = bench.graph();
    let node = graph.repeat(3, &body(&bench, &data, 2, false)).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    for fails in [true, false] {
        let event = UserEvent::new(&bench.queue).unwrap();
        let run = executable.submit_to(&bench.queue).after(&event).submit().unwrap();
        assert_eq!(run.turns(&node).unwrap(), 0);
        if fails {
            event.fail("planned").unwrap();
            assert!(matches!(run.wait_for(LONG), Err(clgraph::Error::Submit(SubmitError::DependencyFailed { .. }))));
            assert_eq!(run.turns(&node).unwrap(), 0);
        } else {
            event.complete().unwrap();
            run.wait_for(LONG).unwrap();
            run.cancel().unwrap();
            assert_eq!(run.turns(&node).unwrap(), 3);
        }
    }
    assert_eq!(bench.content(&data), [added(1, &[2; 3]); LEN]);
}
