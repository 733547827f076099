//! Branches and loops in graphs: rules K1 to K10.

mod common;

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clgraph::{
    Branch, Buffer, BuildCause, BuildError, ControlHandle, Error, Event, Executable, ExecuteKernel, Finalize, Graph,
    HostData, HostRead, HostTaskContext, HostWrite, Loop, LoopBounds, NativeCommand, NodeKind, Parameter, Path,
    Program, Queue, RecordError, SubmitError, Trace, UpdateError, UserEvent,
};
use common::{Bench, assert_error, cause};

const LONG: Duration = Duration::from_secs(60);

/// A body that stirs a buffer once.
fn stir(bench: &Bench, buffer: &Buffer<u32>) -> Executable {
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&bench.kernel("stir")).read_write(buffer).range(buffer.len()).add() }.unwrap();
    graph.finalize(Finalize::new()).unwrap()
}

/// A body that stirs a buffer and counts a number down.
fn stir_and_count(bench: &Bench, buffer: &Buffer<u32>, left: &Buffer<u32>) -> Executable {
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element.
    unsafe {
        graph.kernel(&bench.kernel("stir")).read_write(buffer).range(buffer.len()).add().unwrap();
        graph.kernel(&bench.kernel("count_down")).read_write(left).range(1).add().unwrap();
    }
    graph.finalize(Finalize::new()).unwrap()
}

fn stirred(start: u32, times: usize, len: usize) -> Vec<u32> {
    let stir = |i: u32| (0..times).fold(start, |value, _| value.wrapping_mul(5).wrapping_add(i));
    (0..len as u32).map(stir).collect()
}

/// The paths that every device has.
const PATHS: [Path; 4] = [Path::Auto, Path::Native, Path::Replay, Path::Queues];

/// Rules K1, K2, K9, X2
#[test]
fn a_loop_goes_on_while_its_condition_holds() {
    let bench = Bench::new();
    for path in PATHS {
        let (data, left) = (bench.buffer(&[1; 16]), bench.buffer(&[0]));
        let body = stir_and_count(&bench, &data, &left);
        let graph = bench.graph();
        let turns = graph.write(&left, [5_u32]).add().unwrap();
        let start = graph.write(&data, [1_u32; 16]).add().unwrap();
        let node = graph.repeat_while(&left, &body).add().unwrap();
        let result = graph.read(&data).add().unwrap();
        assert_eq!(graph.kind(node.node()).unwrap(), NodeKind::RepeatWhile);
        assert_eq!(graph.predecessors(node.node()).unwrap(), [turns.node(), start.node()]);
        assert_eq!(graph.predecessors(result.node()).unwrap(), [node.node()]);
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        for count in [5, 0, 1, 70] {
            let run = executable.submit_to(&bench.queue).with(&turns, [count]).submit().unwrap();
            run.wait_for(LONG).unwrap();
            assert_eq!(run.turns(&node).unwrap(), u64::from(count), "{path}");
            assert_eq!(*run.get(&result).unwrap(), stirred(1, count as usize, 16), "{path}, {count} turns");
        }
        assert_eq!(bench.content(&left), [0]);
    }
}

/// Rules K2, K4
#[test]
fn bounds_of_a_loop_are_kept() {
    let bench = Bench::new();
    let (data, left) = (bench.buffer(&[1; 4]), bench.buffer(&[0]));
    let body = stir_and_count(&bench, &data, &left);
    let graph = bench.graph();
    let turns = graph.write(&left, [5_u32]).add().unwrap();
    let once = graph.repeat_while(&left, &body).at_least_once().at_most(3).add().unwrap();
    let after = bench.buffer(&[0; 4]);
    graph.copy(&data, &after).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let mut times = 0;
    for (count, had) in [(0, 1), (1, 1), (3, 3)] {
        let run = executable.submit_to(&bench.queue).with(&turns, [count]).submit().unwrap();
        run.wait_for(LONG).unwrap();
        times += had as usize;
        assert_eq!((run.turns(&once).unwrap(), bench.content(&after)), (had, stirred(1, times, 4)), "{count}");
    }
    let run = executable.submit_to(&bench.queue).with(&turns, [4]).submit().unwrap();
    let error = run.wait_for(LONG).unwrap_err();
    assert!(
        matches!(&error, Error::Submit(SubmitError::TooManyTurns { node, turns: 3, .. }) if *node == Some(once.node())),
        "{error}"
    );
    assert_eq!(bench.content(&data), stirred(1, times + 3, 4), "as the last turn left it");
    assert_eq!(bench.content(&after), stirred(1, times, 4), "what comes after it did not run");
    assert_eq!(run.turns(&once).unwrap(), 3);
    executable.submit_to(&bench.queue).with(&turns, [1]).submit().unwrap().wait_for(LONG).unwrap();
}

/// Rules K4, K7: an error names the loop that it is about, also where that is inside of another.
#[test]
fn errors_name_the_loop_inside() {
    let bench = Bench::new();
    let (data, on) = (bench.buffer(&[1; 4]), bench.buffer(&[1]));
    let graph = bench.graph();
    graph.fill(&data, 3).add().unwrap();
    let body = graph.finalize(Finalize::new()).unwrap();
    let inner = bench.graph();
    inner.repeat_while(&on, &body).at_most(3).label("inner").add().unwrap();
    let inner = inner.finalize(Finalize::new()).unwrap();
    let graph = bench.graph();
    let outer = graph.repeat_while(&on, &inner).at_most(1000).label("outer").add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let error = executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap_err();
    assert!(
        matches!(&error, Error::Submit(SubmitError::TooManyTurns { node: Some(node), turns: 3, .. }) if *node == outer.node()),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .starts_with("node 0 (loop `repeat_while`, \"inner\", inside of it) would go on after 3 turns"),
        "{error}"
    );
    let graph = bench.graph();
    graph.repeat_while(&on, &body).at_most(2).label("alone").add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let error = executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap_err();
    assert!(
        error.to_string().starts_with("node 0 (loop `repeat_while`, \"alone\") would go on after 2 turns"),
        "{error}"
    );
}

/// Rule K3: turns without anything to run take no time, however many they are. A switch without cases has no turn.
#[test]
fn turns_without_commands_are_over_at_once() {
    let bench = Bench::new();
    let (data, on) = (bench.buffer(&[1; 4]), bench.buffer(&[1]));
    let nothing = bench.graph().finalize(Finalize::new()).unwrap();
    let graph = bench.graph();
    let many = graph.repeat(u64::MAX, &nothing).add().unwrap();
    let none = graph.switch(&on, []).add().unwrap();
    graph.fill(&data, 5).after(many.node()).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    for _ in 0..2 {
        let run = executable.submit(&bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        assert_eq!((run.turns(&many).unwrap(), run.turns(&none).unwrap()), (u64::MAX, 0));
        assert_eq!(bench.content(&data), [5; 4]);
    }
}

/// Rules K1, K2
#[test]
fn a_branch_runs_one_body_or_none() {
    let bench = Bench::new();
    for path in PATHS {
        let (data, flag) = (bench.buffer(&[0; 4]), bench.buffer(&[0]));
        let fill = |value: u32| {
            let graph = bench.graph();
            graph.fill(&data, value).add().unwrap();
            graph.finalize(Finalize::new()).unwrap()
        };
        let bodies = [fill(10), fill(20), fill(30)];
        let graph = bench.graph();
        let number = graph.write(&flag, [0_u32]).add().unwrap();
        graph.fill(&data, 1).add().unwrap();
        let alone = graph.when(&flag, &bodies[0]).add().unwrap();
        let first = graph.read(&data).add().unwrap();
        graph.fill(&data, 2).add().unwrap();
        let both =
            graph.when(&flag, &bodies[0]).otherwise(&bodies[2]).otherwise(&bodies[1]).label("both").add().unwrap();
        let second = graph.read(&data).add().unwrap();
        graph.fill(&data, 3).add().unwrap();
        let cases = graph.switch(&flag, &bodies).add().unwrap();
        let third = graph.read(&data).add().unwrap();
        let none = graph.switch(&flag, []).add().unwrap();
        let kinds = [&alone, &both, &cases, &none].map(|node| graph.kind(node.node()).unwrap());
        assert_eq!(kinds, [NodeKind::When, NodeKind::When, NodeKind::Switch, NodeKind::Switch]);
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        for (flag, expected, turns) in [
            (0, [1, 20, 10], [0, 1, 1]),
            (1, [10, 10, 20], [1; 3]),
            (2, [10, 10, 30], [1; 3]),
            (3, [10, 10, 3], [1, 1, 0]),
            (u32::MAX, [10, 10, 3], [1, 1, 0]),
        ] {
            let run = executable.submit_to(&bench.queue).with(&number, [flag]).submit().unwrap();
            run.wait_for(LONG).unwrap();
            let found = [&first, &second, &third].map(|read| run.get(read).unwrap()[0]);
            assert_eq!(found, expected, "{path}, {flag}");
            assert_eq!([&alone, &both, &cases].map(|node| run.turns(node).unwrap()), turns, "{path}, {flag}");
            assert_eq!(run.turns(&none).unwrap(), 0);
        }
    }
}

/// Rules K1, K2: a number of turns needs no memory.
#[test]
fn a_loop_with_a_number_goes_round_so_often() {
    let bench = Bench::new();
    for path in PATHS {
        for turns in [0, 1, 3, 200] {
            let data = bench.buffer(&[1; 16]);
            let graph = bench.graph();
            let node = graph.repeat(turns, &stir(&bench, &data)).add().unwrap();
            let result = graph.read(&data).add().unwrap();
            assert_eq!(graph.kind(node.node()).unwrap(), NodeKind::Repeat);
            let run = graph.finalize(Finalize::new().path(path)).unwrap().submit(&bench.queue).unwrap();
            run.wait_for(LONG).unwrap();
            assert_eq!(run.turns(&node).unwrap(), turns);
            assert_eq!(*run.get(&result).unwrap(), stirred(1, turns as usize, 16), "{path}, {turns}");
        }
    }
}

/// Rules K1, K5, K9: to any depth.
#[test]
fn branches_and_loops_nest() {
    let bench = Bench::new();
    let (data, outer, inner) = (bench.buffer(&[1; 8]), bench.buffer(&[0]), bench.buffer(&[0]));
    // for outer in (0..3).rev() { inner = 2; while inner { stir; inner -= 1; }; repeat 2 { stir } }
    let while_body = stir_and_count(&bench, &data, &inner);
    let graph = bench.graph();
    graph.fill(&inner, 2).add().unwrap();
    let deep = graph.repeat_while(&inner, &while_body).add().unwrap();
    let twice = graph.repeat(2, &stir(&bench, &data)).add().unwrap();
    // SAFETY: one work-item, one element.
    unsafe { graph.kernel(&bench.kernel("count_down")).read_write(&outer).range(1).add() }.unwrap();
    let middle = graph.finalize(Finalize::new()).unwrap();
    let graph = bench.graph();
    graph.fill(&outer, 3).add().unwrap();
    let rounds = graph.repeat_while(&outer, &middle).add().unwrap();
    let whole = graph.finalize(Finalize::new()).unwrap();
    let top = bench.graph();
    let sub = top.sub_graph(&whole).add().unwrap();
    let again = top.repeat(2, &whole).add().unwrap();
    let executable = top.finalize(Finalize::new()).unwrap();
    let run = executable.submit(&bench.queue).unwrap();
    run.wait_for(LONG).unwrap();
    assert_eq!(bench.content(&data), stirred(1, 3 * 3 * 4, 8));
    assert_eq!(run.turns(&sub.repeat(&rounds).unwrap()).unwrap(), 3);
    let inside = again.body().unwrap();
    assert_eq!((run.turns(&again).unwrap(), run.turns(&inside.repeat(&rounds).unwrap()).unwrap()), (2, 6));
    // The loops inside the loop are parts of the executable that is the body.
    let nested = rounds.body().unwrap();
    let own = whole.submit(&bench.queue).unwrap();
    own.wait_for(LONG).unwrap();
    let found =
        (own.turns(&nested.repeat(&deep).unwrap()).unwrap(), own.turns(&nested.repeat(&twice).unwrap()).unwrap());
    assert_eq!(found, (6, 6));
    assert_error!(own.turns(&again).unwrap_err(), SubmitError::NotAControl { node } if *node == again.node());
    assert_error!(sub.repeat(&deep).unwrap_err(), SubmitError::NotAControl { .. });
}

/// Rules K5, H1: a host task with which a turn begins runs when the turn before is over on the device, whatever queue it uses.
#[test]
fn a_task_with_which_a_turn_begins_sees_the_whole_turn_before() {
    let bench = Bench::new();
    const STIRS: usize = 20;
    let data = bench.buffer(&[1; 1 << 16]);
    for nested in [false, true] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (looks, at, queue) = (Arc::clone(&seen), data.clone(), bench.another_queue(false));
        let look = move |_: &HostTaskContext<'_>| -> Result<(), Error> {
            let start = queue.enqueue_read_buffer_owned(&at, 0, 4, &[])?.wait()?;
            looks.lock().unwrap().push(start.to_vec());
            Ok(())
        };
        let graph = bench.graph();
        graph.host_task(look).reads(&data).add().unwrap();
        let mut body = graph;
        if nested {
            // The task is the body of a loop, with which a turn begins.
            let task = body.finalize(Finalize::new()).unwrap();
            body = bench.graph();
            body.repeat(1, &task).add().unwrap();
        }
        for _ in 0..STIRS {
            // SAFETY: a work-item touches its own element.
            unsafe { body.kernel(&bench.kernel("stir")).read_write(&data).range(data.len()).add() }.unwrap();
        }
        let body = body.finalize(Finalize::new()).unwrap();
        let graph = bench.graph();
        graph.fill(&data, 1).add().unwrap();
        graph.repeat(5, &body).add().unwrap();
        graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        let expected: Vec<_> = (0..5).map(|turn| stirred(1, turn * STIRS, 4)).collect();
        assert_eq!(*seen.lock().unwrap(), expected, "nested: {nested}");
    }
}

/// Rule K5
#[test]
fn host_tasks_run_in_each_turn_and_see_the_turn_before() {
    let bench = Bench::new();
    for path in [Path::Replay, Path::Native] {
        let (data, left) = (bench.buffer(&[1; 4]), bench.buffer(&[6]));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let graph = bench.graph();
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&bench.kernel("stir")).read_write(&data).range(4).add() }.unwrap();
        let read = graph.read(&data).add().unwrap();
        let seen_by_task = Arc::clone(&seen);
        let task = graph
            .host_task(move |context| -> Result<(), Error> {
                seen_by_task.lock().unwrap().push(context.get(&read)?[1]);
                Ok(())
            })
            .after(read)
            .add()
            .unwrap();
        // SAFETY: one work-item, one element.
        unsafe { graph.kernel(&bench.kernel("count_down")).read_write(&left).range(1).after(task).add() }.unwrap();
        let body = graph.finalize(Finalize::new()).unwrap();
        let graph = bench.graph();
        let node = graph.repeat_while(&left, &body).add().unwrap();
        let run = graph.finalize(Finalize::new().path(path)).unwrap().submit(&bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        let expected: Vec<u32> = (1..=6).map(|turn| stirred(1, turn, 4)[1]).collect();
        assert_eq!((&*seen.lock().unwrap(), run.turns(&node).unwrap()), (&expected, 6));
        let result = node.body().unwrap().read(&read).unwrap();
        assert_eq!(*run.get(&result).unwrap(), stirred(1, 6, 4), "the last turn's");
    }
}

/// Rule K5
#[test]
fn inputs_are_used_in_each_turn_and_results_belong_to_bodies_that_ran() {
    let bench = Bench::new();
    let (data, sum, flag) = (bench.buffer(&[0; 4]), bench.buffer(&[0; 4]), bench.buffer(&[0]));
    let body = |start: u32| {
        let graph = bench.graph();
        let input = graph.write(&data, [start; 4]).add().unwrap();
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&bench.kernel("add")).read_write(&sum).read(&data).range(4).add() }.unwrap();
        let output = graph.read(&sum).add().unwrap();
        (graph.finalize(Finalize::new()).unwrap(), input, output)
    };
    let (bodies, graph) = ([body(1), body(100)], bench.graph());
    let number = graph.write(&flag, [0_u32]).add().unwrap();
    graph.fill(&sum, 0).add().unwrap();
    let branch = graph.when(&flag, &bodies[0].0).otherwise(&bodies[1].0).add().unwrap();
    let sides = [0, 1].map(|index| branch.body(index).unwrap());
    assert!(branch.body(2).is_none());
    let inputs = [0, 1].map(|side| sides[side].write(&bodies[side].1).unwrap());
    let outputs = [0, 1].map(|side| sides[side].read(&bodies[side].2).unwrap());
    let (asked, told) = (outputs, Arc::new(Mutex::new(Vec::new())));
    let told_by_task = Arc::clone(&told);
    let task = graph.host_task(move |context| {
        let of = |read| context.get(read).map(|result| result[0]).map_err(|error| error.to_string());
        told_by_task.lock().unwrap().push(asked.each_ref().map(of));
    });
    let task = task.after(branch.node()).add().unwrap();
    let three = graph.repeat(3, &bodies[0].0).after(task).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let (loop_in, loop_out): (HostWrite<u32>, HostRead<u32>) =
        (three.body().unwrap().write(&bodies[0].1).unwrap(), three.body().unwrap().read(&bodies[0].2).unwrap());
    for flag in [1_u32, 0] {
        let submit = executable.submit_to(&bench.queue).with(&number, [flag]);
        let submit = submit.with(&inputs[0], [2; 4]).with(&inputs[1], [200; 4]).with(&loop_in, [1000; 4]);
        let run = submit.submit().unwrap();
        run.wait_for(LONG).unwrap();
        let (ran, other, value) = if flag > 0 { (0, 1, 2) } else { (1, 0, 200) };
        assert_eq!(*run.get(&outputs[ran]).unwrap(), [value; 4]);
        let error = run.get(&outputs[other]).unwrap_err();
        let said = told.lock().unwrap().pop().unwrap();
        assert_eq!((said[ran].clone(), said[other].clone()), (Ok(value), Err(error.to_string())));
        assert_error!(error, SubmitError::NotRun { node } if *node == branch.node());
        assert_eq!(*run.get(&loop_out).unwrap(), [value + 3000; 4]);
    }
}

/// Rules K5, M4, M8
#[test]
fn memory_of_a_body_keeps_its_content_from_turn_to_turn() {
    let bench = Bench::new();
    for path in PATHS {
        let (one, out) = (bench.buffer(&[1; 4]), bench.buffer(&[0; 4]));
        let body = bench.graph();
        let sum = body.alloc::<u32>(4).zero_init().add().unwrap();
        // SAFETY: each work-item touches its own element.
        unsafe { body.kernel(&bench.kernel("add")).read_write(&sum).read(&one).range(4).add() }.unwrap();
        body.copy(&sum, &out).add().unwrap();
        let body = body.finalize(Finalize::new()).unwrap();
        let graph = bench.graph();
        graph.repeat(3, &body).add().unwrap();
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        for expected in [3, 6] {
            executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
            assert_eq!(bench.content(&out), [expected; 4], "{path}");
        }
    }
}

/// Rules K4, K10
#[test]
fn a_loop_that_never_ends_can_be_cancelled_and_holds_nobody_up() {
    let bench = Bench::new();
    let (data, on) = (bench.buffer(&[1; 4]), bench.buffer(&[1]));
    let graph = bench.graph();
    let node = graph.repeat_while(&on, &stir(&bench, &data)).add().unwrap();
    let after = bench.buffer(&[0]);
    graph.copy(&data.slice(0..1).unwrap(), &after).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let run = executable.submit(&bench.queue).unwrap();
    let later = bench.queue.enqueue_fill_buffer(&bench.buffer(&[0]), &[3], 0, 4, &[]).unwrap();
    let canceller = run.clone();
    let thread = std::thread::spawn(move || {
        while canceller.turns(&node).unwrap() < 20 {
            std::thread::yield_now();
        }
        canceller.cancel().unwrap();
        node
    });
    assert_error!(run.wait_for(LONG).unwrap_err(), SubmitError::Cancelled { turns, .. } if *turns >= 20);
    let node = thread.join().unwrap();
    later.wait().unwrap();
    let turns = run.turns(&node).unwrap();
    assert_eq!(bench.content(&data), stirred(1, turns as usize, 4), "as the last whole turn left it");
    assert_eq!(bench.content(&after), [0]);
    // Dropped handles wait for nobody; the loop goes on until the flag is off.
    let elsewhere = bench.another_queue(false);
    drop(executable.submit(&elsewhere).unwrap());
    drop(executable);
    bench.queue.enqueue_write_buffer(&on, 0, &[0_u32], &[]).unwrap().wait().unwrap();
    elsewhere.finish().unwrap();
}

/// Rules K3, K5: what cannot be a branch or loop says so, and changes nothing.
#[test]
fn bad_conditions_and_bodies_are_refused() {
    let bench = Bench::new();
    let (data, flag) = (bench.buffer(&[1; 4]), bench.buffer(&[1]));
    let body = stir(&bench, &data);
    let graph = bench.graph();
    let refused = |error: Error, expected: fn(&BuildCause) -> bool| match &error {
        Error::Build(BuildError { cause, .. }) => assert!(expected(cause), "{error}"),
        _ => panic!("{error}"),
    };
    let empty = flag.slice(0..0).unwrap();
    refused(graph.when(&empty, &body).add().unwrap_err(), |cause| matches!(cause, BuildCause::ConditionEmpty));
    let bytes = Buffer::<u8>::new(&bench.queue, 8).unwrap();
    let misplaced = bytes.slice(2..6).unwrap().cast::<u32>().unwrap();
    // A queue names the same call as a graph.
    let queue = &bench.queue;
    for (what, error) in [
        ("when", graph.when(&misplaced, &body).add().unwrap_err()),
        ("when", queue.when(&misplaced, |_| Ok(())).unwrap_err()),
        ("switch", queue.switch(&misplaced, 2, |_, _| Ok(())).unwrap_err()),
        ("repeat_while", queue.repeat_while(&misplaced, |_| Ok(())).unwrap_err()),
    ] {
        assert!(error.to_string().contains(&format!("`{what}`")), "{error}");
        refused(error, |cause| matches!(cause, BuildCause::ConditionMisaligned { offset: 2 }));
    }
    let other = Bench::new();
    let foreign = other.buffer(&[1]);
    refused(
        graph.repeat_while(&foreign, &body).add().unwrap_err(),
        |cause| matches!(cause, BuildCause::OtherContext { what } if what == "the condition"),
    );
    let foreign = stir(&other, &other.buffer(&[1; 4]));
    refused(
        graph.repeat(2, &foreign).add().unwrap_err(),
        |cause| matches!(cause, BuildCause::OtherContext { what } if what == "body 0"),
    );
    let events = bench.graph();
    events.wait_event().add().unwrap();
    let events = events.finalize(Finalize::new()).unwrap();
    refused(graph.switch(&flag, [&body, &events]).add().unwrap_err(), |cause| {
        matches!(cause, BuildCause::EventInBody { body: 1 })
    });
    assert!(graph.is_empty());
}

/// Rule K6
#[test]
fn conditions_bounds_and_bodies_are_updated() {
    let bench = Bench::new();
    let (data, flags) = (bench.buffer(&[1; 4]), [bench.buffer(&[0]), bench.buffer(&[1])]);
    let child = bench.graph();
    let value = child.fill(&data, 7).add().unwrap();
    let child_run = child.finalize(Finalize::new().updatable()).unwrap();
    let graph = bench.graph();
    let branch = graph.when(&flags[0], &child_run).add().unwrap();
    let other = bench.buffer(&[1; 4]);
    let turns = graph.repeat(2, &stir(&bench, &other)).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    let run = || {
        let run = executable.submit(&bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        (run.turns(&branch).unwrap(), run.turns(&turns).unwrap(), bench.content(&data)[0])
    };
    assert_eq!(run(), (0, 2, 1));
    graph.when(&flags[1], &child_run).replace(&branch).unwrap();
    assert_eq!(run(), (0, 2, 1), "not before the update");
    executable.update(&branch).unwrap();
    assert_eq!(run(), (1, 2, 7));
    child.fill(&data, 9).replace(value).unwrap();
    child_run.update(&value).unwrap();
    executable.update(&branch).unwrap();
    assert_eq!(run(), (1, 2, 9));
    // A handle from numbers is the same, without the bodies.
    let again = Loop::from_raw(turns.to_raw());
    assert!(again == turns && again.body().is_none() && Branch::from_raw(branch.to_raw()) == branch);
    assert!(Loop::from_raw(branch.to_raw()) != turns);
    let same = stir(&bench, &other);
    // Another executable, although of the same kind.
    assert_error!(graph.repeat(5, &same).replace(&turns).unwrap_err(), BuildCause::Replace { .. });
    let fewer = graph.when(&flags[1], &child_run).otherwise(&child_run).replace(&branch).unwrap_err();
    assert!(
        fewer.to_string().contains("its number of bodies is 1, but 2 were given, and this number cannot change"),
        "{fewer}"
    );
    assert_eq!(turns.body().unwrap().node(), turns.node());
    assert_error!(graph.repeat_while(&flags[0], &child_run).replace(&turns).unwrap_err(), BuildCause::Replace { .. });
}

/// Rule K8: a program decides on the host, or becomes a graph that decides.
#[test]
fn a_queue_decides_or_records() {
    let bench = Bench::new();
    for out_of_order in [false, true] {
        let queue = bench.another_queue(out_of_order);
        let (data, left) = (bench.buffer(&[1; 4]), bench.buffer(&[0]));
        let [stir, count_down] = ["stir", "count_down"].map(|name| bench.kernel(name));
        // An out-of-order queue needs events or barriers; a barrier is recorded too.
        let order = |queue: &Queue| queue.enqueue_barrier_with_wait_list(&[]).map(drop);
        // SAFETY: each work-item touches its own element.
        let stirs = |queue: &Queue| unsafe {
            ExecuteKernel::new(&stir).set_arg_read_write(&data).set_global_work_size(4).enqueue_nd_range(queue)?;
            order(queue)
        };
        let program = |queue: &Queue, turns: u32| -> Result<_, Error> {
            queue.enqueue_fill_buffer(&data, &[1], 0, 16, &[])?;
            queue.enqueue_fill_buffer(&left, &[turns], 0, 4, &[])?;
            order(queue)?;
            let node = queue.repeat_while(&left, |queue| {
                stirs(queue)?;
                queue.repeat(2, stirs)?;
                // SAFETY: one work-item touches one element.
                unsafe {
                    ExecuteKernel::new(&count_down)
                        .set_arg_read_write(&left)
                        .set_global_work_size(1)
                        .enqueue_nd_range(queue)
                }?;
                order(queue)
            })?;
            queue.when(&left, |queue| queue.enqueue_fill_buffer(&data, &[9], 0, 16, &[]).map(drop))?;
            order(queue)?;
            queue.when_else(&left, |_| Ok(()), stirs)?;
            let branch = queue.switch(&left, 2, |queue, case| if case == 0 { stirs(queue) } else { Ok(()) })?;
            order(queue)?;
            Ok((node, branch))
        };
        assert_eq!(program(&queue, 3).unwrap(), (None, None));
        queue.finish().unwrap();
        assert_eq!(bench.content(&data), stirred(1, 3 * 3 + 2, 4));
        let graph = bench.graph();
        let (node, branch) = graph.record(&queue, || program(&queue, 5)).unwrap();
        bench.queue.enqueue_fill_buffer(&data, &[0], 0, 16, &[]).unwrap().wait().unwrap();
        let run = graph.finalize(Finalize::new()).unwrap().submit(&queue).unwrap();
        run.wait_for(LONG).unwrap();
        assert_eq!(bench.content(&data), stirred(1, 5 * 3 + 2, 4), "out of order: {out_of_order}");
        assert_eq!((run.turns(&node.unwrap()).unwrap(), run.turns(&branch.unwrap()).unwrap()), (5, 1));
        // An index beyond the cases runs nothing, a negative one too.
        for index in [2, 7, u32::MAX] {
            queue.enqueue_fill_buffer(&left, &[index], 0, 4, &[]).unwrap();
            order(&queue).unwrap();
            queue.switch(&left, 2, |_, case| panic!("case {case} of index {index}")).unwrap();
        }
        // A body that fails is not recorded, and the recording goes on.
        let graph = bench.graph();
        let failed = graph.record(&queue, || {
            assert_error!(queue.repeat(2, |_| Err(SubmitError::NotComplete.into())), SubmitError::NotComplete);
            queue.enqueue_fill_buffer(&data, &[4], 0, 16, &[]).map(drop)
        });
        failed.unwrap();
        assert_eq!(graph.len(), 1);
    }
}

/// Rules K1, K9: a body is an executable as it was when the node was added. So a graph may have its own executable as a body, and that
/// executable takes nothing over from the graph that has it.
#[test]
fn a_body_of_the_own_graph_is_what_that_was() {
    let bench = Bench::new();
    let data = bench.buffer(&[1; 4]);
    let graph = bench.graph();
    let stir = bench.kernel("stir");
    // SAFETY: each work-item touches its own element.
    let node = unsafe { graph.kernel(&stir).read_write(&data).range(4).add().unwrap() };
    let first = graph.finalize(Finalize::new().updatable()).unwrap();
    let twice = graph.repeat(2, &first).add().unwrap();
    let second = graph.finalize(Finalize::new().updatable()).unwrap();
    let run = second.submit(&bench.queue).unwrap();
    run.wait_for(LONG).unwrap();
    assert_eq!((run.turns(&twice).unwrap(), bench.content(&data)), (2, stirred(1, 3, 4)));
    assert_error!(first.update_from(&graph), UpdateError::Differs { .. });
    first.update(&node).unwrap();
    second.update_from(&graph).unwrap();
    // The graph takes the executable of all of it as its body: it is another one than the node has.
    assert_error!(graph.repeat(2, &second).replace(&twice), BuildCause::Replace { .. });
    let all = graph.repeat(1, &second).add().unwrap();
    assert_error!(second.update_from(&graph), UpdateError::Differs { .. });
    let third = graph.finalize(Finalize::new()).unwrap();
    let run = third.submit(&bench.queue).unwrap();
    run.wait_for(LONG).unwrap();
    assert_eq!((run.turns(&all).unwrap(), bench.content(&data)), (1, stirred(1, 9, 4)));
}

/// Rules K4, K8: bounds hold where a queue executes and where it records.
#[test]
fn loops_of_queues_have_bounds() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let [flag, count] = [(); 2].map(|()| bench.buffer(&[0]));
    let add = bench.kernel("count_down");
    // Sets the flag, and counts down from there.
    let program = |queue: &Queue, left: u32, bounds: LoopBounds| {
        queue.enqueue_fill_buffer(&flag, &[left], 0, 4, &[])?;
        queue.enqueue_fill_buffer(&count, &[100], 0, 4, &[])?;
        queue.repeat_while_with(&flag, bounds, |queue| {
            for of in [&flag, &count] {
                // SAFETY: one work-item touches one element.
                unsafe {
                    ExecuteKernel::new(&add).set_arg_read_write(of).set_global_work_size(1).enqueue_nd_range(queue)
                }?;
            }
            Ok(())
        })
    };
    let new = LoopBounds::new;
    let too_many = |error: &Error| match error {
        Error::Submit(SubmitError::TooManyTurns { node, turns, .. }) => (node.is_some(), *turns),
        error => panic!("{error}"),
    };
    for (left, bounds, turns, fails) in [
        (0, new(), 0, false),
        (2, new().at_most(2), 2, false),
        (3, new().at_most(2), 2, true),
        (1, new().at_most(0), 0, true),
        (0, new().at_most(0), 0, false),
        (1, new().at_least_once(), 1, false),
        (0, new().at_least_once().at_most(3), 1, false),
        (5, new().at_least_once().at_most(3), 3, true),
        (0, new().at_least_once().at_most(0), 0, true),
        (4, new().at_least_once().at_most(9), 4, false),
    ] {
        let executed = program(queue, left, bounds);
        queue.finish().unwrap();
        assert_eq!(bench.content(&count), [100 - turns], "{left} {bounds:?}");
        assert_eq!(executed.err().as_ref().map(too_many), fails.then_some((false, u64::from(turns))));
        let graph = bench.graph();
        let node = graph.record(queue, || program(queue, left, bounds)).unwrap().unwrap();
        let run = graph.finalize(Finalize::new()).unwrap().submit(queue).unwrap();
        let outcome = run.wait_for(LONG);
        assert_eq!(run.turns(&node).unwrap(), u64::from(turns), "{left} {bounds:?}");
        assert_eq!(bench.content(&count), [100 - turns], "{left} {bounds:?}");
        assert_eq!(outcome.err().as_ref().map(too_many), fails.then_some((true, u64::from(turns))));
    }
    // A condition is checked before the first turn.
    let none = flag.slice(0..0).unwrap();
    let empty = queue.repeat_while_with(&none, new().at_least_once(), |_| unreachable!());
    assert!(matches!(cause(empty), BuildCause::ConditionEmpty));
}

/// Rule K8: a recording that ends in a body records nothing more; one that goes on again does.
#[test]
fn a_recording_that_ends_in_a_body_is_an_error() {
    let bench = Bench::new();
    let (queue, data) = (&bench.queue, bench.buffer(&[1; 4]));
    let fill = |queue: &Queue| queue.enqueue_fill_buffer(&data, &[5], 0, 16, &[]).map(drop);
    for again in [false, true] {
        let graph = bench.graph();
        graph.begin_recording(queue).unwrap();
        let recorded = queue.repeat(2, |inner| {
            fill(inner)?;
            assert_eq!(graph.end_recording(queue)?, 1);
            graph.fill(&data, 4).add()?;
            if again { graph.begin_recording(queue) } else { Ok(()) }
        });
        if again {
            recorded.unwrap().unwrap();
            graph.end_recording(queue).unwrap();
        } else {
            assert_error!(recorded, RecordError::EndedInBody);
        }
        assert_eq!(graph.len(), if again { 2 } else { 1 });
        fill(queue).unwrap();
        queue.finish().unwrap();
    }
    // The recording of the body itself: what comes behind it has run.
    let graph = bench.graph();
    let recorded = graph.record(queue, || {
        queue.repeat(2, |inner| {
            inner.recording_graph()?.end_recording(inner)?;
            fill(inner)
        })?;
        Ok(())
    });
    assert_error!(recorded, RecordError::EndedInBody);
    assert!(graph.is_empty());
}

/// Rule K8: while a body is recorded, the graph around it takes nothing from the thread: it would run once, before the loop.
#[test]
fn a_body_has_a_queue_of_its_own() {
    let bench = Bench::new();
    let outer = bench.queue.clone();
    let properties = outer.properties();
    let [second, third] = [(); 2].map(|()| Queue::with_properties(&outer, outer.device(), properties).unwrap());
    let (flag, data) = (bench.buffer(&[1]), bench.buffer(&[1; 4]));
    let fill = |queue: &Queue, value: u32| queue.enqueue_fill_buffer(&data, &[value], 0, 16, &[]);
    let graph = bench.graph();
    let (bare, sub_graph) = (bench.graph(), bench.graph());
    sub_graph.fill(&data, 3_u32).add().unwrap();
    let executable = sub_graph.finalize(Finalize::new()).unwrap();
    let node = graph.record(&[&outer, &second], || {
        let before = fill(&outer, 2)?;
        let calls = Cell::new(0);
        let node = outer.repeat(3, |queue| {
            calls.set(calls.get() + 1);
            assert_error!(fill(&outer, 4), RecordError::AroundBody);
            assert_error!(fill(&second, 4), RecordError::AroundBody);
            let joins = third.enqueue_fill_buffer(&data, &[4], 0, 16, &[&before]);
            assert_error!(joins, RecordError::AroundBody);
            assert_error!(executable.submit(&outer), RecordError::AroundBody);
            assert_error!(outer.enqueue_host_task(|_| (), &[]), RecordError::AroundBody);
            assert_error!(outer.repeat(0, |_| unreachable!()), RecordError::AroundBody);
            assert_error!(outer.when(&flag, |_| unreachable!()), RecordError::AroundBody);
            assert_error!(outer.switch(&flag, 0, |_, _| unreachable!()), RecordError::AroundBody);
            assert_error!(bare.end_recording(&outer), RecordError::OtherRecording { .. });
            assert_eq!(bare.end_recording(&third)?, 0);
            fill(queue, 5)?;
            queue.repeat(2, |inner| {
                assert_error!(fill(&outer, 4), RecordError::AroundBody);
                assert_error!(fill(queue, 4), RecordError::AroundBody);
                fill(inner, 6).map(drop)
            })?;
            // Another thread has an order of its own, and a queue that executes runs what it gets.
            std::thread::scope(|scope| scope.spawn(|| fill(&second, 7).map(drop)).join().unwrap())?;
            fill(&third, 8)?.wait()?;
            assert_eq!(common::content(&third, &data), [8; 4]);
            fill(queue, 9).map(drop)
        })?;
        assert_eq!(calls.get(), 1);
        fill(&outer, 10)?;
        Ok(node)
    });
    let node = node.unwrap().unwrap();
    assert_eq!(graph.len(), 4);
    let run = graph.finalize(Finalize::new()).unwrap().submit(&outer).unwrap();
    run.wait_for(LONG).unwrap();
    assert_eq!((run.turns(&node).unwrap(), bench.content(&data)), (3, vec![10; 4]));
}

/// A body that makes a device work for a while, and then fills a buffer. Returns it with a read of the buffer.
fn slow_fill(bench: &Bench, buffer: &Buffer<u32>, rounds: u32, value: u32) -> (Executable, HostRead<u32>) {
    let graph = bench.graph();
    let spin = bench.kernel("spin");
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&spin).read_write(buffer).arg(rounds).range(buffer.len()).add() }.unwrap();
    graph.fill(buffer, value).add().unwrap();
    let read = graph.read(buffer).add().unwrap();
    (graph.finalize(Finalize::new()).unwrap(), read)
}

/// Rule K3: what a loop inside a loop has enqueued belongs to both.
#[test]
fn host_tasks_and_events_come_after_all_that_loops_in_loops_do() {
    let bench = Bench::new();
    for path in PATHS {
        let data = bench.buffer(&[1; 64]);
        let (inner, read) = slow_fill(&bench, &data, 3_000_000, 7);
        let graph = bench.graph();
        let inner_loop = graph.repeat(1, &inner).add().unwrap();
        let middle = graph.finalize(Finalize::new()).unwrap();
        let graph = bench.graph();
        let outer_loop = graph.repeat(1, &middle).add().unwrap();
        let read = inner_loop.body().unwrap().read(&read).unwrap();
        let read = outer_loop.body().unwrap().read(&read).unwrap();
        let (seen, signal) = (Arc::new(AtomicUsize::new(0)), graph.signal_event().after(&outer_loop).add().unwrap());
        let seen_by_task = Arc::clone(&seen);
        let task = move |context: &HostTaskContext<'_>| -> Result<(), Error> {
            seen_by_task.store(context.get(&read)?[0] as usize, Ordering::SeqCst);
            Ok(())
        };
        graph.host_task(task).after(&outer_loop).add().unwrap();
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        let event = UserEvent::new(&bench.queue).unwrap();
        let run = executable.submit_to(&bench.queue).with_signal(&signal, &event).submit().unwrap();
        event.wait_for(LONG).unwrap();
        assert_eq!(bench.content(&data)[0], 7, "{path}");
        run.wait_for(LONG).unwrap();
        assert_eq!(seen.load(Ordering::SeqCst), 7, "{path}");
    }
}

/// Rule K4: however loops nest, only so much is enqueued ahead that a submission ends soon after it is cancelled.
#[test]
fn loops_in_loops_do_not_fill_the_queue_without_end() {
    let bench = Bench::new();
    let data = bench.buffer(&[1; 64]);
    let (mut body, _) = slow_fill(&bench, &data, 100_000, 1);
    for _ in 0..2 {
        let graph = bench.graph();
        graph.repeat(3, &body).add().unwrap();
        body = graph.finalize(Finalize::new()).unwrap();
    }
    let graph = bench.graph();
    let node = graph.repeat(u64::MAX, &body).add().unwrap();
    // Nothing runs before this event, so all turns that begin are enqueued ahead.
    let held = common::UserEvent::new(&bench.queue);
    let before = Event::from_opencl3(&held.0).unwrap();
    bench.queue.enqueue_barrier_with_wait_list(&[&before]).unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
    let mut turns = 0;
    let mut as_before = 0;
    while as_before < 20 {
        let now = run.turns(&node).unwrap();
        as_before = if now == turns { as_before + 1 } else { 0 };
        turns = now;
        assert!(turns < 1000, "{turns}");
        std::thread::sleep(Duration::from_millis(10));
    }
    run.cancel().unwrap();
    held.set(0);
    assert_error!(run.wait_for(LONG).unwrap_err(), SubmitError::Cancelled { .. });
}

/// Rule K4: a loop with a number has few turns that take long in the queue, so a cancellation is seen soon.
#[test]
fn a_loop_with_a_number_is_cancelled_after_few_turns() {
    let bench = Bench::new();
    let data = bench.buffer(&[1; 64]);
    let (mut rounds, mut took) = (1 << 16, Duration::ZERO);
    let mut body = None;
    while took < Duration::from_millis(60) && rounds < u32::MAX / 2 {
        rounds *= 2;
        let slow = slow_fill(&bench, &data, rounds, 1).0;
        let begun = std::time::Instant::now();
        slow.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        (took, body) = (begun.elapsed(), Some(slow));
    }
    let graph = bench.graph();
    let node = graph.repeat(10_000, &body.unwrap()).add().unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
    while run.turns(&node).unwrap() < 12 {
        std::thread::yield_now();
    }
    run.cancel().unwrap();
    assert_error!(run.wait_for(LONG).unwrap_err(), SubmitError::Cancelled { .. });
    let turns = run.turns(&node).unwrap();
    assert!(turns < 32, "{turns} turns, of which each takes {took:?}");
}

/// Rule K5: what a host task keeps of a turn is not changed by a later turn.
#[test]
fn a_result_that_a_task_keeps_stays_as_it_was() {
    let bench = Bench::new();
    let data = bench.buffer(&[1; 4]);
    let kept = Arc::new(Mutex::new(Vec::new()));
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&bench.kernel("stir")).read_write(&data).range(4).add() }.unwrap();
    let read = graph.read(&data).add().unwrap();
    let kept_by_task = Arc::clone(&kept);
    let task = move |context: &HostTaskContext<'_>| -> Result<(), Error> {
        kept_by_task.lock().unwrap().push(context.get(&read)?);
        Ok(())
    };
    graph.host_task(task).after(read).add().unwrap();
    let body = graph.finalize(Finalize::new()).unwrap();
    let graph = bench.graph();
    graph.repeat(5, &body).add().unwrap();
    graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
    let kept: Vec<Vec<u32>> = kept.lock().unwrap().iter().map(|of| of.to_vec()).collect();
    assert_eq!(kept, (1..=5).map(|turn| stirred(1, turn, 4)).collect::<Vec<_>>());
}

/// Data of a host task, which says when it is dropped.
struct Counted(Vec<u32>, Arc<AtomicUsize>);

impl AsRef<[u32]> for Counted {
    fn as_ref(&self) -> &[u32] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Rule K5: the data that host tasks give to the writes of a body are not kept for ever.
#[test]
fn data_of_earlier_turns_are_dropped() {
    let bench = Bench::new();
    for has_condition in [false, true] {
        let (data, left) = (bench.buffer(&[0; 4]), bench.buffer(&[2000]));
        let alive = Arc::new(AtomicUsize::new(0));
        let graph = bench.graph();
        let input = graph.write(&data, [0_u32; 4]).add().unwrap();
        let alive_in_task = Arc::clone(&alive);
        let task = move |context: &HostTaskContext<'_>| {
            // A thread of clgraph's own drops them, while the loop goes on.
            let begin = Instant::now();
            while alive_in_task.load(Ordering::SeqCst) > 100 {
                assert!(begin.elapsed() < LONG, "nothing of earlier turns is dropped");
                std::thread::yield_now();
            }
            alive_in_task.fetch_add(1, Ordering::SeqCst);
            context.put(&input, HostData::shared(Arc::new(Counted(vec![3; 4], Arc::clone(&alive_in_task)))))
        };
        let task = graph.host_task(task).add().unwrap();
        graph.add_edge(task, input.node()).unwrap();
        // SAFETY: one work-item, one element.
        unsafe { graph.kernel(&bench.kernel("count_down")).read_write(&left).range(1).add() }.unwrap();
        let body = graph.finalize(Finalize::new()).unwrap();
        let graph = bench.graph();
        if has_condition {
            graph.repeat_while(&left, &body).add().unwrap();
        } else {
            graph.repeat(2000, &body).add().unwrap();
        }
        graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        assert_eq!(bench.content(&data), [3; 4]);
        while alive.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
        }
    }
}

/// Rule K5: a queue that takes no more commands ends loops that have nothing to do with what failed.
#[test]
fn a_failed_native_command_ends_a_loop_beside_it() {
    let bench = Bench::new();
    let (data, on, other) = (bench.buffer(&[1; 4]), bench.buffer(&[1]), bench.buffer(&[0]));
    let graph = bench.graph();
    let node = graph.repeat_while(&on, &stir(&bench, &data)).add().unwrap();
    let (begins, began) = std::sync::mpsc::channel::<()>();
    let task = move |_: &HostTaskContext<'_>| _ = began.recv_timeout(LONG);
    let task = graph.host_task(task).add().unwrap();
    let failing = NativeCommand::enqueued(|_| -> Result<(), &str> { Err("it does not") });
    // SAFETY: it does nothing.
    unsafe { graph.native_command(failing.writes(&other)).after(task).add() }.unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
    while run.turns(&node).unwrap() == 0 {
        std::thread::yield_now();
    }
    begins.send(()).unwrap();
    assert_error!(run.wait_for(LONG).unwrap_err(), SubmitError::NativeCommand { .. });
    assert!(run.turns(&node).unwrap() > 0);
}

/// Rule K9: a profile has each turn of what is in a body.
#[test]
fn turns_are_profiled() {
    let bench = Bench::new();
    let (data, flag) = (bench.buffer(&[1; 4]), bench.buffer(&[1]));
    let graph = bench.graph();
    let node = graph.repeat(3, &stir(&bench, &data)).add().unwrap();
    graph.when(&flag, &stir(&bench, &data)).add().unwrap();
    let run = graph.finalize(Finalize::new().profiling()).unwrap().submit(&bench.queue).unwrap();
    run.wait_for(LONG).unwrap();
    let profile = run.profile().unwrap();
    let of = profile.nodes.iter().filter(|of| of.node == node.node() && of.name == "stir" && of.inside == Some(1));
    assert_eq!((of.count(), profile.nodes.len()), (3, 4));
    let sums = profile.by_node();
    let of_loop = sums.iter().find(|sum| sum.node == node.node()).unwrap();
    let turns = profile.nodes.iter().filter(|of| of.node == node.node());
    assert_eq!((sums.len(), of_loop.count, of_loop.inside, &*of_loop.title), (2, 3, Some(1), "stir"));
    assert_eq!(of_loop.duration, turns.map(|turn| turn.duration()).sum());
}

/// The other half of the test below: the process ends while loops run.
#[test]
fn the_child_ends_while_loops_run() {
    if std::env::var_os("CLGRAPH_TEST_CHILD").is_none() {
        return;
    }
    let bench = Bench::new();
    let (data, other, on) = (bench.buffer(&[1; 4]), bench.buffer(&[1; 4]), bench.buffer(&[1]));
    let graph = bench.graph();
    let node = graph.repeat_while(&on, &stir(&bench, &data)).add().unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
    let graph = bench.graph();
    graph.repeat(u64::MAX, &stir(&bench, &other)).add().unwrap();
    std::mem::forget(graph.finalize(Finalize::new()).unwrap().submit(&bench.another_queue(false)).unwrap());
    while run.turns(&node).unwrap() < 100 {
        std::thread::yield_now();
    }
    println!("{GOES_ROUND}");
}

/// What the child says.
const GOES_ROUND: &str = "the loop has gone round 100 times";

/// A program ends although a loop goes on for ever.
#[test]
fn main_returns_while_loops_run() {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "the_child_ends_while_loops_run", "--nocapture"]).env("CLGRAPH_TEST_CHILD", "1");
    let mut child = child.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let begin = std::time::Instant::now();
    loop {
        match child.try_wait().unwrap() {
            Some(_) => break,
            None if begin.elapsed() > LONG => {
                child.kill().unwrap();
                panic!("the program never ended");
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    assert!(String::from_utf8_lossy(&output.stdout).contains(GOES_ROUND), "the child did nothing");
}

/// Rule K5: what fails in a turn fails the submission, and nothing after it runs.
#[test]
fn a_failure_in_a_turn_ends_the_submission() {
    let bench = Bench::new();
    let (data, on) = (bench.buffer(&[1; 4]), bench.buffer(&[1]));
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&bench.kernel("stir")).read_write(&data).range(4).add() }.unwrap();
    let mut calls = 0;
    let task = move |_: &HostTaskContext<'_>| {
        calls += 1;
        if calls < 3 { Ok(()) } else { Err("enough") }
    };
    graph.host_task(task).reads(&data).add().unwrap();
    let body = graph.finalize(Finalize::new()).unwrap();
    let graph = bench.graph();
    let node: Loop = graph.repeat_while(&on, &body).add().unwrap();
    let after = bench.buffer(&[0; 4]);
    graph.copy(&data, &after).add().unwrap();
    let beside = bench.buffer(&[0]);
    graph.fill(&beside, 1).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let run = executable.submit(&bench.queue).unwrap();
    assert_error!(run.wait_for(LONG).unwrap_err(), SubmitError::HostTask { node: of, text, .. } if *of == node.node() && text == "enough");
    assert_eq!(run.turns(&node).unwrap(), 3);
    assert_eq!(
        (bench.content(&data), bench.content(&after), bench.content(&beside)),
        (stirred(1, 3, 4), vec![0; 4], vec![1])
    );
}

/// Rule K9: in a profile and a trace each node in a loop has its turn: that of the innermost loop, in order, also if it is in a branch.
#[test]
fn profiles_say_in_which_turn_a_node_ran() {
    let bench = Bench::new();
    let [data, left, odd] = [4, 1, 1].map(|len| bench.buffer(&vec![1; len]));
    let labelled = |label: &str, add: &dyn Fn(&Graph)| {
        let graph = bench.graph();
        graph.fill(&data, 1).label(label).add().unwrap();
        add(&graph);
        graph.finalize(Finalize::new()).unwrap()
    };
    let counts = |name: &str, of: &Buffer<u32>, graph: &Graph| {
        // SAFETY: one work-item touches one element.
        unsafe { graph.kernel(&bench.kernel(name)).read_write(of).range(1).add() }.unwrap();
    };
    let then = labelled("then", &|_| ());
    let inner = labelled("inner", &|graph| {
        graph.when(&odd, &then).add().unwrap();
        counts("count_down", &left, graph);
        counts("count_down", &odd, graph);
        graph.host_task(|_| ()).reads(&left).label("task").add().unwrap();
    });
    let outer = labelled("outer", &|graph| {
        graph.fill(&left, 3).add().unwrap();
        graph.fill(&odd, 2).add().unwrap();
        graph.repeat_while(&left, &inner).add().unwrap();
    });
    let graph = bench.graph();
    graph.fill(&data, 1).label("before").add().unwrap();
    graph.repeat(2, &outer).add().unwrap();
    for path in PATHS {
        let run = graph.finalize(Finalize::new().path(path).profiling()).unwrap().submit(&bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        let profile = run.profile().unwrap();
        let turns = |label: &str| {
            let mut all: Vec<_> =
                profile.nodes.iter().filter(|node| node.title() == label).map(|node| node.turn).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(turns("before"), [None]);
        assert_eq!(turns("outer"), [0, 1].map(Some));
        for label in ["inner", "task"] {
            assert_eq!(turns(label), [0, 1, 2, 3, 4, 5].map(Some), "{label}: {profile}");
        }
        // In two of three turns.
        assert_eq!(turns("then"), [0, 1, 3, 4].map(Some), "{profile}");
        assert!(profile.to_string().contains("(then) in turn 4 by"), "{profile}");
        let json = Trace::new().add(&profile).to_json();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let events = json["traceEvents"].as_array().unwrap_or_else(|| json.as_array().unwrap());
        let last = events.iter().filter_map(|event| event["args"]["turn"].as_u64()).max();
        assert_eq!(last, Some(5), "{json}");
    }
}

/// Rule K2: who waits for a turn sleeps. Two turns of a second each take clgraph's threads less than one hundredth of a core, in a process
/// that does nothing else. What a driver's threads do meanwhile is the driver's.
#[cfg(target_os = "linux")]
#[test]
fn a_loop_whose_body_takes_long_takes_no_processor_time() {
    const CHILD: &str = "CLGRAPH_TEST_CHILD";
    if std::env::var_os(CHILD).is_none() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let output = child.args(["--exact", "a_loop_whose_body_takes_long_takes_no_processor_time"]).env(CHILD, "1");
        let output = output.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let bench = Bench::new();
    let (data, left, pause) = (bench.buffer(&[1; 4]), bench.buffer(&[0]), Arc::new(Mutex::new(Duration::ZERO)));
    let body = bench.graph();
    let sleeps = Arc::clone(&pause);
    let task = body.host_task(move |_: &HostTaskContext<'_>| std::thread::sleep(*sleeps.lock().unwrap()));
    task.reads(&data).add().unwrap();
    // SAFETY: each work-item touches its own element.
    unsafe {
        body.kernel(&bench.kernel("stir")).read_write(&data).range(4).add().unwrap();
        body.kernel(&bench.kernel("count_down")).read_write(&left).range(1).add().unwrap();
    }
    let body = body.finalize(Finalize::new()).unwrap();
    let graph = bench.graph();
    graph.write(&left, [2_u32]).add().unwrap();
    graph.repeat_while(&left, &body).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let run = || executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
    // Kernels are compiled, and threads begin.
    run();
    *pause.lock().unwrap() = Duration::from_secs(1);
    let before = common::ran("clgraph");
    run();
    let took = Duration::from_nanos(common::ran("clgraph") - before);
    assert!(took < Duration::from_millis(20), "{took:?} of 2 s");
}

/// Records a loop of a loop whose launches add parameters.
fn recorded_loops(bench: &Bench, data: &Buffer<u32>, by: &Parameter<u32>, inner: &Parameter<u32>) -> (Graph, Loop) {
    let graph = bench.graph();
    let add = |queue: &Queue, by: &Parameter<u32>| {
        // SAFETY: each work-item touches its own element.
        unsafe {
            ExecuteKernel::new(&bench.kernel("scale"))
                .set_arg_read_write(data)
                .set_arg_read_write(data)
                .set_arg(by)
                .set_global_work_size(4)
                .enqueue_nd_range(queue)
        }
        .map(drop)
    };
    let mut node = None;
    let record = || {
        node = bench.queue.repeat(2, |queue| {
            add(queue, by)?;
            queue.repeat(3, |queue| add(queue, inner)).map(drop)
        })?;
        Ok::<_, Error>(())
    };
    graph.record(&bench.queue, record).unwrap();
    (graph, node.unwrap())
}

/// Rule K6: updates reach parameters in recorded bodies, in bodies in bodies too, by the node and by another recording.
#[test]
fn updates_reach_into_recorded_bodies() {
    let bench = Bench::new();
    let data = bench.buffer(&[1; 4]);
    let (by, inner) = (Parameter::any(2_u32), Parameter::any(1_u32));
    let (graph, node) = recorded_loops(&bench, &data, &by, &inner);
    // Set after the recording, and before finalize.
    inner.set(3).unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    let mut expected = 1_u32;
    let mut runs = |executable: &Executable, by: u32, inner: u32| {
        executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        for _ in 0..2 {
            for by in [by, inner, inner, inner] {
                expected = expected.wrapping_mul(3).wrapping_add(by);
            }
        }
        assert_eq!(bench.content(&data), [expected; 4], "{by}, {inner}");
    };
    runs(&executable, 2, 3);
    inner.set(5).unwrap();
    runs(&executable, 2, 3);
    executable.update(&node).unwrap();
    runs(&executable, 2, 5);
    by.set(7).unwrap();
    executable.update_from(&graph).unwrap();
    runs(&executable, 7, 5);
    // Another recording of the same, and the first one again.
    let (others_by, others_inner) = (Parameter::any(9_u32), Parameter::any(11_u32));
    let (other, _) = recorded_loops(&bench, &data, &others_by, &others_inner);
    executable.update_from(&other).unwrap();
    runs(&executable, 9, 11);
    others_inner.set(13).unwrap();
    executable.update_from(&other).unwrap();
    runs(&executable, 9, 13);
    executable.update(&node).unwrap();
    runs(&executable, 7, 5);
    // A recording with one launch more is another graph.
    let different = bench.graph();
    let record = || {
        bench.queue.repeat(2, |queue| {
            queue.enqueue_fill_buffer(&data, &[1], 0, 16, &[])?;
            queue.repeat(3, |_| Ok(())).map(drop)
        })
    };
    different.record(&bench.queue, record).unwrap();
    let error = executable.update_from(&different).unwrap_err();
    assert!(error.to_string().contains("in a body of it, the graph has 4 nodes, but the executable has 5"), "{error}");
    runs(&executable, 7, 5);
    // An executable that cannot be updated has the values of its finalize.
    by.set(1).unwrap();
    runs(&graph.finalize(Finalize::new()).unwrap(), 1, 5);
    // A body that somebody else has is not paired by what is in it.
    let body = bench.graph();
    body.fill(&data, 1_u32).add().unwrap();
    let graphs: Vec<_> = (0..2)
        .map(|_| {
            let graph = bench.graph();
            graph.repeat(2, &body.finalize(Finalize::new()).unwrap()).add().unwrap();
            graph
        })
        .collect();
    let executable = graphs[0].finalize(Finalize::new().updatable()).unwrap();
    let error = executable.update_from(&graphs[1]).unwrap_err();
    assert!(error.to_string().contains("its bodies are other executables"), "{error}");
}

/// Rules K1, E3: bodies are nested to any depth. Nothing recurses over it: all of it happens on a small stack.
#[test]
fn bodies_are_nested_deep() {
    const DEPTH: usize = 200;
    let small = std::thread::Builder::new().stack_size(256 << 10).spawn(|| {
        let bench = Bench::new();
        let (data, on) = (bench.buffer(&[1; 4]), bench.buffer(&[1]));
        let (mut body, empty) = (stir(&bench, &data), bench.graph().finalize(Finalize::new()).unwrap());
        for level in 0..DEPTH {
            let graph = bench.graph();
            match level % 3 {
                0 => _ = graph.repeat(1, &body).add().unwrap(),
                1 => _ = graph.when(&on, &body).add().unwrap(),
                _ => _ = graph.switch(&on, [&empty, &body]).add().unwrap(),
            }
            body = graph.finalize(Finalize::new()).unwrap();
        }
        body.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        assert_eq!(bench.content(&data), stirred(1, 1, 4));
    });
    small.unwrap().join().unwrap();
}

/// Rule K6: what else of a recorded body can change: executables in it, groups of tasks, nodes that a program replaces or adds by the
/// body's graph. What does not fit names the node around it.
#[test]
fn all_that_changes_in_recorded_bodies_is_reached() {
    let bench = Bench::new();
    let data = bench.buffer(&[0; 4]);
    // An executable of the program in a body that has no parameter.
    let (inner, by) = (bench.graph(), Parameter::any(2_u32));
    let launch = {
        let kernel = bench.kernel("scale");
        // SAFETY: each work-item touches its own element.
        unsafe { inner.kernel(&kernel).read_write(&data).read_write(&data).arg(&by).range(4).add() }.unwrap()
    };
    let child = inner.finalize(Finalize::new().updatable()).unwrap();
    let (graph, mut node, mut kept) = (bench.graph(), None, None);
    let record = || {
        node = bench.queue.repeat(1, |queue| {
            queue.enqueue_fill_buffer(&data, &[0], 0, 16, &[])?;
            child.submit(queue).map(drop)
        })?;
        bench.queue.repeat(1, |queue| {
            let body = queue.recording_graph()?;
            let fill = queue.enqueue_fill_buffer(&data.slice(1..2).unwrap(), &[5], 0, 4, &[])?;
            kept = Some((body.node_of(&fill)?, body));
            Ok(())
        })
    };
    let second = graph.record(&bench.queue, record).unwrap().unwrap();
    let (fill, body) = kept.unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    let content = || {
        executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        bench.content(&data)
    };
    assert_eq!(content(), [2, 5, 2, 2]);
    by.set(7).unwrap();
    child.update(&launch).unwrap();
    executable.update(&node.unwrap()).unwrap();
    assert_eq!(content(), [7, 5, 7, 7]);
    // The program has the graph of the second body. What it adds is not in the executable.
    body.fill(&data.slice(1..2).unwrap(), 9_u32).replace(fill).unwrap();
    let more = bench.kernel("scale");
    // SAFETY: as above.
    unsafe { body.kernel(&more).read_write(&data).read_write(&data).arg(&by).range(4).add() }.unwrap();
    executable.update(&second).unwrap();
    assert_eq!(content(), [7, 9, 7, 7]);
}

/// Rules K6, M5: a recorded body with memory of its own is not replaced by that of another recording, because two executables would
/// use that memory at once.
#[test]
fn a_recorded_body_keeps_its_own_memory() {
    let bench = Bench::new();
    let data = bench.buffer(&[0; 4]);
    let record = || {
        let graph = bench.graph();
        let body = || {
            bench.queue.repeat(2, |queue| {
                let memory = queue.enqueue_alloc::<u32>(4, &[])?;
                queue.enqueue_fill_buffer(&memory, &[1], 0, 16, &[])?;
                queue.enqueue_copy_buffer(&memory, &data, 0, 0, 16, &[])?;
                queue.enqueue_free(&memory, &[]).map(drop)
            })
        };
        graph.record(&bench.queue, body).unwrap();
        graph
    };
    let executable = record().finalize(Finalize::new().updatable()).unwrap();
    let error = executable.update_from(&record()).unwrap_err();
    assert!(error.to_string().contains("its bodies are other executables"), "{error}");
}

/// Rules K6, P6: two nodes of a recorded body come to use one buffer. The graph around decides whether that is allowed, and its node is
/// named.
#[test]
fn conflicts_in_recorded_bodies_are_the_affair_of_the_graph() {
    let bench = Bench::new();
    let (one, other) = (bench.buffer(&[1; 4]), bench.buffer(&[1; 4]));
    let parameters = [Parameter::buffer(&one), Parameter::buffer(&other)];
    let (graph, queue) = (bench.graph(), bench.another_queue(true));
    let record = || {
        queue.repeat(1, |queue| {
            parameters.iter().try_for_each(|memory| {
                let kernel = bench.kernel("stir");
                // SAFETY: each work-item touches its own element.
                let launch = unsafe {
                    ExecuteKernel::new(&kernel)
                        .set_arg_read_write(memory)
                        .set_global_work_size(4)
                        .enqueue_nd_range(queue)
                };
                launch.map(drop)
            })
        })
    };
    let node = graph.record(&queue, record).unwrap().unwrap();
    let (strict, free) = (Finalize::new().updatable(), Finalize::new().updatable().allow_conflicts());
    let (strict, free) = (graph.finalize(strict).unwrap(), graph.finalize(free).unwrap());
    parameters[1].set(&one).unwrap();
    assert_error!(strict.update(&node).unwrap_err(), UpdateError::Conflict { .. });
    strict.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
    assert_eq!([bench.content(&one), bench.content(&other)], [stirred(1, 1, 4), stirred(1, 1, 4)]);
    free.update(&node).unwrap();
    free.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
    assert_eq!([bench.content(&one), bench.content(&other)], [stirred(1, 3, 4), stirred(1, 1, 4)]);
    assert_error!(graph.finalize(Finalize::new()).unwrap_err(), clgraph::FinalizeError::Conflict { .. });
}

/// Rule K6: a group of host tasks, and one of launches, in a recorded body: the node of the loop brings the choice.
#[test]
fn groups_in_recorded_bodies_are_updated() {
    let bench = Bench::new();
    let (data, log) = (bench.buffer(&[1; 4]), Arc::new(Mutex::new(Vec::new())));
    let (graph, mut groups) = (bench.graph(), None);
    let record = || {
        bench.queue.repeat(2, |queue| {
            let body = queue.recording_graph()?;
            let say = |what: &'static str| {
                let log = Arc::clone(&log);
                body.host_task(move |_: &HostTaskContext<'_>| log.lock().unwrap().push(what)).reads(&data)
            };
            let tasks = body.host_task_group([say("one"), say("two")])?;
            let kernel = bench.kernel("scale");
            let launch = |by: u32| body.kernel(&kernel).read_write(&data).read_write(&data).arg(by).range(4);
            // SAFETY: each work-item touches its own element.
            let launches = unsafe { body.command_group([launch(1), launch(2)])? };
            queue.enqueue_command_group(&launches, &[])?;
            queue.enqueue_command_group(&tasks, &[])?;
            groups = Some((tasks, launches));
            Ok(())
        })
    };
    let node = graph.record(&bench.queue, record).unwrap().unwrap();
    let (tasks, launches) = groups.unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    let mut expected = 1_u32;
    let mut runs = |by: u32, said: &'static str| {
        executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        assert_eq!(std::mem::take(&mut *log.lock().unwrap()), [said; 2]);
        for _ in 0..2 {
            expected = expected.wrapping_mul(3).wrapping_add(by);
        }
        assert_eq!(bench.content(&data), [expected; 4]);
    };
    runs(1, "one");
    tasks.set_active_index(1).unwrap();
    runs(1, "one");
    executable.update(&node).unwrap();
    runs(1, "two");
    launches.set_active_index(1).unwrap();
    tasks.set_active_index(0).unwrap();
    executable.update_from(&graph).unwrap();
    runs(2, "one");
    // Finalized anew it has the same.
    assert_error!(tasks.set_active_index(2).unwrap_err(), BuildCause::Group(clgraph::GroupError::Index { .. }));
    runs(2, "one");
}

/// Rule K5: external events and signals happen once, so no body has them: not as a node, not in a sub-graph or body in it, and not
/// while it is recorded.
#[test]
fn bodies_have_no_external_events_at_any_depth() {
    let bench = Bench::new();
    let (data, flag) = (bench.buffer(&[1; 4]), bench.buffer(&[1]));
    let refused = |error: Error| assert_error!(error, BuildCause::EventInBody { body: 0 });
    let (waits, signals) = (bench.graph(), bench.graph());
    waits.wait_event().add().unwrap();
    signals.signal_event().add().unwrap();
    for events in [waits, signals] {
        let events = events.finalize(Finalize::new()).unwrap();
        let around = bench.graph();
        around.fill(&data, 3_u32).add().unwrap();
        around.sub_graph(&events).add().unwrap();
        let around = around.finalize(Finalize::new()).unwrap();
        for body in [&events, &around] {
            let graph = bench.graph();
            refused(graph.when(&flag, body).add().unwrap_err());
            refused(graph.switch(&flag, [body]).add().unwrap_err());
            refused(graph.repeat_while(&flag, body).add().unwrap_err());
            refused(graph.repeat(2, body).add().unwrap_err());
            // A queue submits the executable into a body that it records, and adds a node to its graph.
            let recorded = graph.record(&bench.queue, || bench.queue.repeat(2, |queue| body.submit(queue).map(drop)));
            refused(recorded.unwrap_err());
            let add = |queue: &Queue| queue.recording_graph()?.signal_event().add().map(drop);
            assert_error!(
                graph.record(&bench.queue, || bench.queue.repeat(2, add)).unwrap_err(),
                BuildCause::Recording
            );
            assert!(graph.is_empty());
        }
    }
    bench.queue.finish().unwrap();
}

/// Rules P2, K6: the program has the graph of a body. What it finalizes or updates from it has what is set, in the bodies in it too.
#[test]
fn the_graph_of_a_body_reaches_the_bodies_in_it() {
    let bench = Bench::new();
    let (queue, graph) = (&bench.queue, bench.graph());
    let (from, data, by) = (bench.buffer(&[1]), bench.buffer(&[0]), Parameter::any(5_u32));
    let (scale, on) = (bench.kernel("scale"), bench.buffer(&[1]));
    let mut kept = None;
    let record = || {
        queue.repeat(1, |queue| {
            kept = Some(queue.recording_graph()?);
            queue.when(&on, |queue| {
                // SAFETY: one work-item, and elements that are there.
                unsafe {
                    ExecuteKernel::new(&scale)
                        .set_arg_read(&from)
                        .set_arg_read_write(&data)
                        .set_arg(&by)
                        .set_global_work_size(1)
                        .enqueue_nd_range(queue)
                        .map(drop)
                }
            })?;
            Ok(())
        })
    };
    graph.record(queue, record).unwrap();
    let body = kept.unwrap();
    let early = body.finalize(Finalize::new().updatable()).unwrap();
    let run = |executable: &Executable| {
        executable.submit(queue).unwrap().wait_for(LONG).unwrap();
        bench.content(&data)[0]
    };
    let first = run(&early);
    by.set(9).unwrap();
    assert_eq!(run(&early), first, "not before an update");
    let late = run(&body.finalize(Finalize::new()).unwrap());
    assert_eq!(late, first + 4);
    early.update_from(&body).unwrap();
    assert_eq!(run(&early), late);
    by.set(11).unwrap();
    early.update(&body.nodes()).unwrap();
    assert_eq!(run(&early), first + 6);
    assert_eq!(run(&graph.finalize(Finalize::new()).unwrap()), first + 6);
    // The graph around it ends first.
    drop(graph);
    by.set(5).unwrap();
    assert_eq!(run(&body.finalize(Finalize::new()).unwrap()), first);
}

/// Rule E3: graphs of bodies that the program keeps end in any order, on a small stack.
#[test]
fn kept_graphs_of_deep_bodies_end_in_any_order() {
    const DEPTH: usize = 60;
    fn nest(
        queue: &Queue,
        depth: usize,
        by: &Parameter<u32>,
        data: &Buffer<u32>,
        kept: &mut Vec<Graph>,
    ) -> Result<(), Error> {
        kept.push(queue.recording_graph()?);
        if depth == 0 {
            let kernel =
                Program::from_source(queue, "kernel void set(global uint *a, uint by) { *a = by; }")?.kernel("set")?;
            // SAFETY: one work-item, and an element that is there.
            return unsafe {
                ExecuteKernel::new(&kernel)
                    .set_arg_read_write(data)
                    .set_arg(by)
                    .set_global_work_size(1)
                    .enqueue_nd_range(queue)
                    .map(drop)
            };
        }
        queue.repeat(1, |queue| nest(queue, depth - 1, by, data, kept)).map(drop)
    }
    let bench = Bench::new();
    for backward in [false, true] {
        let (graph, data, by) = (bench.graph(), bench.buffer(&[0]), Parameter::any(5_u32));
        let mut kept = Vec::new();
        graph.record(&bench.queue, || nest(&bench.queue, DEPTH, &by, &data, &mut kept)).unwrap();
        by.set(6).unwrap();
        kept[1].finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        assert_eq!(bench.content(&data), [6]);
        let end = move || {
            if backward {
                kept.reverse();
            }
            drop(graph);
            drop(kept);
        };
        std::thread::Builder::new().stack_size(64 << 10).spawn(end).unwrap().join().unwrap();
    }
}

/// Rules K6, U5: another recording is like this one, however many buffers its bodies use.
#[test]
fn bodies_of_other_recordings_may_use_one_buffer_twice() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[1; 4]), bench.buffer(&[1; 4]));
    let fills = |queue: &Queue, second: &Buffer<u32>| {
        queue.enqueue_fill_buffer(&a, &[5], 0, 4, &[])?;
        queue.enqueue_fill_buffer(second, &[6], 0, 4, &[]).map(drop)
    };
    let record = |second: &Buffer<u32>| {
        let graph = bench.graph();
        let body = || bench.queue.repeat(1, |queue| queue.repeat(2, |queue| fills(queue, second)).map(drop)).map(drop);
        graph.record(&bench.queue, body).unwrap();
        graph
    };
    for (first, then, expected) in [(&b, &a, [6, 1]), (&a, &b, [5, 6])] {
        let executable = record(first).finalize(Finalize::new().updatable()).unwrap();
        executable.update_from(&record(then)).unwrap();
        executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        assert_eq!([bench.content(&a)[0], bench.content(&b)[0]], expected);
    }
}

/// Rule P6: both sides of a conflict are in one body. The error says where an edge can be.
#[test]
fn a_conflict_in_one_body_says_where_to_mend_it() {
    let bench = Bench::new();
    let (one, other) = (bench.buffer(&[1; 4]), bench.buffer(&[1; 4]));
    let (inner, graph) = (bench.graph(), bench.graph());
    let memory = Parameter::buffer(&other);
    // SAFETY: each work-item touches its own element.
    unsafe { inner.kernel(&bench.kernel("stir")).read_write(&memory).range(4).add() }.unwrap();
    inner.fill(&one, 5_u32).add().unwrap();
    memory.set(&one).unwrap();
    let free = inner.finalize(Finalize::new().allow_conflicts()).unwrap();
    graph.repeat(1, &free).add().unwrap();
    let error = graph.finalize(Finalize::new()).unwrap_err();
    assert!(error.to_string().contains("add an edge in the graph that this node runs, or"), "{error}");
}

/// Rules K3, P6, U6: a body goes to other memory, and what stands beside the loop to the memory that the body had: nothing conflicts.
#[test]
fn memory_that_a_body_has_left_is_free() {
    let bench = Bench::new();
    let (a, b, queue) = (bench.buffer(&[1; 4]), bench.buffer(&[1; 4]), bench.another_queue(true));
    let (in_body, beside) = (Parameter::buffer(&a), Parameter::buffer(&b));
    let stir = bench.kernel("stir");
    let launch = |queue: &Queue, memory: &Parameter<Buffer<u32>>| {
        // SAFETY: each work-item touches its own element.
        unsafe {
            ExecuteKernel::new(&stir)
                .set_arg_read_write(memory)
                .set_global_work_size(4)
                .enqueue_nd_range(queue)
                .map(drop)
        }
    };
    let graph = bench.graph();
    let record = || {
        queue.repeat(2, |queue| launch(queue, &in_body))?;
        launch(&queue, &beside)
    };
    graph.record(&queue, record).unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    in_body.set(&b).unwrap();
    beside.set(&a).unwrap();
    executable.update_from(&graph).unwrap();
    for (executable, times) in [(&executable, [1, 2]), (&graph.finalize(Finalize::new()).unwrap(), [2, 4])] {
        executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        assert_eq!([bench.content(&a), bench.content(&b)], times.map(|times| stirred(1, times, 4)));
    }
    // Where both go to one buffer, there is a conflict.
    beside.set(&b).unwrap();
    assert_error!(executable.update_from(&graph).unwrap_err(), UpdateError::Conflict { .. });
}

/// Rules K6, P3: a launch in a body gets memory where it had a null pointer, and the other way round, by another recording.
#[test]
fn null_pointers_in_bodies_are_updated_by_other_recordings() {
    let bench = Bench::new();
    // `by ? *by : 9` ends the process on rusticl: Mesa 26.2.6 reads before it asks.
    let source = "kernel void set(global uint *to, global uint *by) {
        global const uint *from = by ? by : to;
        *to = *from + (by ? 1 : 9);
    }";
    let set = Program::from_source(&bench.queue, source).unwrap().kernel("set").unwrap();
    let (to, by) = (bench.buffer(&[0]), bench.buffer(&[4]));
    let record = |has_memory: bool| {
        let graph = bench.graph();
        let body = |queue: &Queue| {
            let mut launch = ExecuteKernel::new(&set);
            launch.set_arg_read_write(&to);
            if has_memory {
                launch.set_arg_read(&by)
            } else {
                launch.set_arg_null()
            };
            // SAFETY: one work-item, and elements that are there.
            unsafe { launch.set_global_work_size(1).enqueue_nd_range(queue) }.map(drop)
        };
        graph.record(&bench.queue, || bench.queue.repeat(2, body).map(drop)).unwrap();
        graph
    };
    for (first, then, expected) in [(true, false, 18), (false, true, 5)] {
        let executable = record(first).finalize(Finalize::new().updatable()).unwrap();
        executable.update_from(&record(then)).unwrap();
        bench.queue.enqueue_fill_buffer(&to, &[0], 0, 4, &[]).unwrap();
        executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        assert_eq!(bench.content(&to), [expected]);
    }
}
