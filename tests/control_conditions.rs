//! What branches and loops decide by: rules K2 and K6.

mod common;

use std::time::Duration;

use clgraph::{
    Buffer, Error, Exclusion, Executable, Finalize, FinalizeError, Graph, Loops, Memory, MemoryKind, Path, SubmitError,
    UpdateError, device_global,
};
use common::{Bench, assert_error};

const LONG: Duration = Duration::from_secs(60);

device_global! {
    static GOES_ON: u32 = 1;
}

/// A body that fills a buffer.
fn fills(bench: &Bench, buffer: &Buffer<u32>, value: u32) -> Executable {
    let graph = bench.graph();
    graph.fill(buffer, value).add().unwrap();
    graph.finalize(Finalize::new()).unwrap()
}

/// Rule K2: a loop goes round once if its body sets the number to zero, whatever memory has the number.
#[test]
fn a_condition_is_in_any_memory() {
    let bench = Bench::new();
    // Whether a loop went ahead.
    let mut ahead = Vec::new();
    /// A graph whose loop reads this memory.
    macro_rules! loops {
        ($memory:expr, $what:expr) => {{
            let memory = $memory;
            let body = bench.graph();
            body.fill(&memory, 0_u32).add().unwrap();
            let body = body.finalize(Finalize::new()).unwrap();
            let graph = bench.graph();
            graph.fill(&memory, 3_u32).add().unwrap();
            let node = graph.repeat_while(&memory, &body).at_most(9).add().unwrap();
            let none = graph.repeat_while(&memory, &body).at_most(9).add().unwrap();
            let executable = graph.finalize(Finalize::new()).unwrap();
            for _ in 0..2 {
                let run = executable.submit(&bench.queue).unwrap();
                run.wait_for(LONG).unwrap();
                assert_eq!((run.turns(&node).unwrap(), run.turns(&none).unwrap()), (1, 0), "{}", $what);
            }
            // A kernel writes it. It gets the whole buffer, so the number is the first one.
            let body = bench.graph();
            // SAFETY: the memory has an element.
            unsafe { body.kernel(&bench.kernel("count_down")).read_write(&memory).range(1).add() }.unwrap();
            let body = body.finalize(Finalize::new()).unwrap();
            let ways = [Loops::HostDecided, Loops::Ahead, Loops::Auto];
            for loops in ways.into_iter().filter(|_| $what != "the end of a buffer") {
                let graph = bench.graph();
                graph.fill(&memory, 40_u32).add().unwrap();
                let node = graph.repeat_while(&memory, &body).at_most(99).add().unwrap();
                let executable = graph.finalize(Finalize::new().loops(loops)).unwrap();
                for _ in 0..2 {
                    let run = executable.submit(&bench.queue).unwrap();
                    run.wait_for(LONG).unwrap();
                    assert_eq!(run.turns(&node).unwrap(), 40, "{}, {loops:?}", $what);
                }
                ahead.extend((loops == Loops::Ahead).then(|| executable.report().loops[0].host_decided.is_none()));
            }
        }};
    }
    loops!(bench.buffer(&[0; 4]), "a buffer");
    loops!(bench.buffer(&[0; 128]).slice(127..).unwrap(), "the end of a buffer");
    let caps = bench.queue.device().caps();
    let kinds: Vec<_> = MemoryKind::ALL.into_iter().filter(|kind| caps.has_memory(*kind)).collect();
    assert!(!kinds.is_empty());
    for kind in kinds {
        loops!(Memory::<u32>::with_kind(&bench.queue, kind, 4).unwrap(), &*kind.to_string());
    }
    loops!(GOES_ON.on(&bench.queue).unwrap(), "a device global");
    loops!(bench.buffer(&[0; 256]).sub_buffer(128..).unwrap(), "a sub-buffer");
    assert!(ahead[0] && ahead[ahead.len() - 1], "{ahead:?}");
}

/// Rule K2: memory of the graph, which a branch reads.
#[test]
fn a_condition_is_in_memory_of_the_graph() {
    let bench = Bench::new();
    let out = bench.buffer(&[0; 4]);
    let bodies = [1, 2].map(|value| fills(&bench, &out, value));
    for (number, expected) in [(0_u32, 2), (5, 1)] {
        let graph = bench.graph();
        let decision = graph.alloc::<u32>(4).add().unwrap();
        graph.fill(&decision, number).add().unwrap();
        graph.when(&decision, &bodies[0]).otherwise(&bodies[1]).add().unwrap();
        bench.run(&graph);
        assert_eq!(bench.content(&out), [expected; 4], "{number}");
    }
}

/// Rule K2: a negative number is true, and the index of no case.
#[test]
fn a_condition_may_be_negative() {
    let bench = Bench::new();
    let (taken, chosen) = (bench.buffer(&[0; 4]), bench.buffer(&[0; 4]));
    let [then, otherwise] = [1, 2].map(|value| fills(&bench, &taken, value));
    let cases = [7, 8].map(|value| fills(&bench, &chosen, value));
    for (number, expected) in [(-1_i32, [1, 0]), (i32::MIN, [1, 0]), (0, [2, 7]), (1, [1, 8]), (2, [1, 0])] {
        let decision = Buffer::from_slice(&bench.queue, &[number]).unwrap();
        let graph = bench.graph();
        graph.fill(&chosen, 0).add().unwrap();
        graph.when(&decision, &then).otherwise(&otherwise).add().unwrap();
        graph.switch(&decision, &cases).add().unwrap();
        bench.run(&graph);
        assert_eq!([&taken, &chosen].map(|buffer| bench.content(buffer)[0]), expected, "{number}");
        // A queue decides alike.
        bench.queue.enqueue_fill_buffer(&chosen, &[0], 0, 16, &[]).unwrap();
        let fill = |buffer, value| {
            move |queue: &clgraph::Queue| queue.enqueue_fill_buffer(buffer, &[value], 0, 16, &[]).map(drop)
        };
        bench.queue.when_else(&decision, fill(&taken, 1), fill(&taken, 2)).unwrap();
        bench.queue.switch(&decision, 2, |queue, case| fill(&chosen, 7 + case as u32)(queue)).unwrap();
        assert_eq!([&taken, &chosen].map(|buffer| bench.content(buffer)[0]), expected, "{number} on a queue");
    }
}

/// Rule K6: how often a loop goes round, and its bound.
#[test]
fn the_number_of_turns_and_the_bound_are_updated() {
    let bench = Bench::new();
    let (data, on) = (bench.buffer(&[0]), bench.buffer(&[1]));
    let body = fills(&bench, &data, 1);
    let graph = bench.graph();
    let times = graph.repeat(2, &body).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    let turns = || {
        let run = executable.submit(&bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        run.turns(&times).unwrap()
    };
    assert_eq!(turns(), 2);
    for number in [5, 0, 3] {
        let before = turns();
        graph.repeat(number, &body).replace(&times).unwrap();
        assert_eq!(turns(), before, "not before the update");
        executable.update(&times).unwrap();
        assert_eq!(turns(), number);
    }

    let graph = bench.graph();
    let bounded = graph.repeat_while(&on, &body).at_most(2).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    let fails_after = |most: u64| {
        let run = executable.submit(&bench.queue).unwrap();
        let error = run.wait_for(LONG).unwrap_err();
        let Error::Submit(SubmitError::TooManyTurns { node, turns, .. }) = &error else { panic!("{error}") };
        assert_eq!((*node, *turns, run.turns(&bounded).unwrap()), (Some(bounded.node()), most, most), "{error}");
    };
    fails_after(2);
    graph.repeat_while(&on, &body).at_most(4).replace(&bounded).unwrap();
    executable.update(&bounded).unwrap();
    fails_after(4);
    // The condition and the bound together: without a bound, and with nothing to do.
    let off = bench.buffer(&[0]);
    graph.repeat_while(&off, &body).at_least_once().replace(&bounded).unwrap();
    executable.update(&bounded).unwrap();
    let run = executable.submit(&bench.queue).unwrap();
    run.wait_for(LONG).unwrap();
    assert_eq!(run.turns(&bounded).unwrap(), 1);
}

/// Rules K6, U8: a graph that was built in the same way brings its condition, bounds and number of turns.
#[test]
fn a_like_graph_brings_other_conditions_and_bounds() {
    let bench = Bench::new();
    let (data, off, on) = (bench.buffer(&[0; 4]), bench.buffer(&[0]), bench.buffer(&[1]));
    let (body, then, otherwise) = (fills(&bench, &data, 1), fills(&bench, &data, 2), fills(&bench, &data, 3));
    let build = |flag: &Buffer<u32>, turns: u64, most: u64, body: &Executable| {
        let graph = bench.graph();
        let branch = graph.when(flag, &then).otherwise(&otherwise).add().unwrap();
        let repeat = graph.repeat(turns, body).add().unwrap();
        let loops = graph.repeat_while(flag, body).at_most(most).add().unwrap();
        (graph, branch, repeat, loops)
    };
    let (first, branch, repeat, loops) = build(&off, 2, 3, &body);
    let executable = first.finalize(Finalize::new().updatable()).unwrap();
    let run = || {
        let run = executable.submit(&bench.queue).unwrap();
        let outcome = run.wait_for(LONG).err();
        let most = match &outcome {
            Some(Error::Submit(SubmitError::TooManyTurns { node, turns, .. })) if *node == Some(loops.node()) => {
                Some(*turns)
            }
            None => None,
            Some(error) => panic!("{error}"),
        };
        ([run.turns(&branch).unwrap(), run.turns(&repeat).unwrap(), run.turns(&loops).unwrap()], most)
    };
    assert_eq!(run(), ([1, 2, 0], None));
    executable.update_from(&build(&on, 5, 4, &body).0).unwrap();
    assert_eq!(run(), ([1, 5, 4], Some(4)));
    executable.update_from(&build(&off, 0, 7, &body).0).unwrap();
    assert_eq!(run(), ([1, 0, 0], None));
    // The bodies are the same executables, and the kinds are the same.
    let other = build(&on, 5, 4, &fills(&bench, &data, 1));
    let refused = executable.update_from(&other.0);
    assert_error!(refused, UpdateError::Differs { difference } if difference == "node 1: its bodies are other executables");
    let unlike = |add: &dyn Fn(&Graph)| {
        let graph = bench.graph();
        add(&graph);
        graph.repeat(9, &body).add().unwrap();
        graph.repeat_while(&on, &body).add().unwrap();
        executable.update_from(&graph)
    };
    type Add<'a> = &'a dyn Fn(&Graph);
    let kinds: [(Add<'_>, &str); 3] = [
        (&|graph| _ = graph.fill(&data, 1).add().unwrap(), "it is not a branch or loop, but in the executable it is"),
        (
            &|graph| _ = graph.sub_graph(&then).add().unwrap(),
            "it is a sub-graph, but in the executable it is a branch or loop",
        ),
        (
            &|graph| _ = graph.switch(&off, [&then, &otherwise]).add().unwrap(),
            "it is a branch `when`, but a branch `switch` was given",
        ),
    ];
    for (add, words) in kinds {
        let refused = unlike(add).unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
    }
    assert_eq!(run(), ([1, 0, 0], None));
}

/// Rules K3, K6: an update of a body, or of a condition, must not make a branch or loop conflict with what runs beside it.
#[test]
fn an_update_may_not_make_a_loop_conflict() {
    let bench = Bench::new();
    let [data, beside, off, flag] = [(); 4].map(|()| bench.buffer(&[0; 4]));
    let child = bench.graph();
    let value = child.fill(&data, 7_u32).add().unwrap();
    let body = child.finalize(Finalize::new().updatable()).unwrap();
    let graph = bench.graph();
    graph.fill(&beside, 5_u32).add().unwrap();
    graph.fill(&flag, 0_u32).add().unwrap();
    let branch = graph.when(&off.slice(..1).unwrap(), &body).otherwise(&body).add().unwrap();
    let repeat = graph.repeat(2, &body).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    let check = || {
        let run = executable.submit(&bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        assert_eq!((run.turns(&branch).unwrap(), run.turns(&repeat).unwrap()), (1, 2));
        assert_eq!([&data, &beside].map(|buffer| bench.content(buffer)[0]), [7, 5]);
    };
    check();
    // The body would write what a node beside the loop writes.
    child.fill(&beside, 7_u32).replace(value).unwrap();
    body.update(&value).unwrap();
    for node in [branch.node(), repeat.node()] {
        assert_error!(executable.update(&node), UpdateError::Conflict { .. });
    }
    assert_error!(executable.update_from(&graph), UpdateError::Conflict { .. });
    check();
    child.fill(&data, 7_u32).replace(value).unwrap();
    body.update(&value).unwrap();
    executable.update(&branch).unwrap();
    check();
    // The branch would read what a node beside it writes.
    graph.when(&flag.slice(..1).unwrap(), &body).otherwise(&body).replace(&branch).unwrap();
    assert_error!(executable.update(&branch), UpdateError::Conflict { .. });
    check();
}

/// Rules K2, M5: memory of a graph decides nothing before it is allocated, and after it is freed.
#[test]
fn a_condition_is_not_in_freed_memory() {
    let bench = Bench::new();
    let (data, flag) = (bench.buffer(&[0; 4]), bench.buffer(&[1]));
    let body = fills(&bench, &data, 1);
    let graph = bench.graph();
    let memory = graph.alloc::<u32>(4).add().unwrap();
    graph.fill(&memory, 0_u32).add().unwrap();
    let early = graph.repeat_while(&memory, &body).add().unwrap();
    let freed = graph.free(&memory).add().unwrap();
    let late = graph.when(&flag, &body).after(freed).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    graph.when(&memory, &body).replace(&late).unwrap();
    let gone = || graph.finalize(Finalize::new());
    assert_error!(gone(), FinalizeError::GraphMemoryFreed { .. });
    for refused in [executable.update(&late), executable.update_from(&graph)] {
        assert_error!(refused, UpdateError::GraphMemory { why: "after it is freed", .. });
    }
    let run = executable.submit(&bench.queue).unwrap();
    run.wait_for(LONG).unwrap();
    assert_eq!((run.turns(&early).unwrap(), run.turns(&late).unwrap()), (0, 1));
    graph.when(&flag, &body).replace(&late).unwrap();
    gone().unwrap();
    graph.switch(&memory, [&body]).after(&late).add().unwrap();
    assert_error!(gone(), FinalizeError::GraphMemoryFreed { .. });
}

/// Rule F1: a branch or loop is decided on one queue, and a gate would hold back what the host waits for. The report says so.
#[test]
fn the_report_says_which_paths_a_loop_excludes() {
    let bench = Bench::new();
    let data = bench.buffer(&[0; 4]);
    let body = fills(&bench, &data, 1);
    let graph = bench.graph();
    graph.repeat(2, &body).add().unwrap();
    graph.fill(&bench.buffer(&[0; 4]), 2).add().unwrap();
    for (path, why) in [(Path::Queues, Exclusion::Control), (Path::Gated, Exclusion::HostNode)] {
        let options = Finalize::new().path(path).loops(Loops::HostDecided);
        let report = graph.finalize(options).unwrap().report();
        let excluded: Vec<_> = report.excluded.iter().map(|of| (of.path, of.why)).collect();
        let unsafe_overlap = path == Path::Queues && excluded == [(path, Exclusion::UnsafeOverlap)];
        assert!(
            excluded == [(path, why)] || unsafe_overlap && bench.queue.device().caps().platform == "rusticl",
            "{report}"
        );
    }
}

/// Rules K2, K9: a branch without cases runs nothing, and is a branch of its executable.
#[test]
fn a_switch_without_cases_runs_nothing() {
    let bench = Bench::new();
    let index = bench.buffer(&[0]);
    let graph = bench.graph();
    let node = graph.switch(&index, std::iter::empty::<&Executable>()).add().unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
    run.wait_for(LONG).unwrap();
    assert_eq!(run.turns(&node).unwrap(), 0);
}

/// A loop that the host decides waits for a device that is busy for a second: clgraph's threads sleep meanwhile, where a thread that
/// waits by hand sleeps too.
#[cfg(target_os = "linux")]
#[test]
fn a_loop_sleeps_while_the_device_works() {
    let bench = Bench::new();
    let (kernel, buffer, left) = (bench.kernel("spin"), bench.buffer(&[1]), bench.buffer(&[0]));
    let spin = |rounds: u32, times: u32| {
        let (body, graph) = (bench.graph(), bench.graph());
        // SAFETY: one work-item, and elements that are there.
        unsafe {
            body.kernel(&kernel).read_write(&buffer).arg(rounds).range(1).add().unwrap();
            body.kernel(&bench.kernel("count_down")).read_write(&left).range(1).add().unwrap();
        }
        let body = body.finalize(Finalize::new()).unwrap();
        graph.write(&left, [times]).add().unwrap();
        graph.repeat_while(&left, &body).add().unwrap();
        let executable = graph.finalize(Finalize::new().loops(Loops::HostDecided)).unwrap();
        let (begin, before) = (std::time::Instant::now(), common::ran("clgraph"));
        executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        (begin.elapsed(), Duration::from_nanos(common::ran("clgraph") - before))
    };
    // The first one compiles, too.
    let (mut rounds, mut turn) = (1 << 16, spin(1 << 16, 1).0);
    while turn < Duration::from_millis(500) && rounds < u32::MAX / 2 {
        rounds *= 2;
        turn = spin(rounds, 1).0;
    }
    // By hand: a thread that reads behind the kernel.
    let by_hand = || {
        std::thread::scope(|scope| {
            let wait = || {
                let graph = bench.graph();
                // SAFETY: one work-item, and an element that is there.
                unsafe { graph.kernel(&kernel).read_write(&buffer).arg(rounds).range(1).add() }.unwrap();
                let run = graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
                let before = common::ran("by-hand");
                bench.content(&buffer);
                run.wait_for(LONG).unwrap();
                common::ran("by-hand") - before
            };
            std::thread::Builder::new().name("by-hand".to_owned()).spawn_scoped(scope, wait).unwrap().join().unwrap()
        })
    };
    // Some drivers let a thread that waits run the kernel now and then: such a time says nothing of clgraph. On a machine that has
    // much to do, a thread that waits by hand runs for some milliseconds too.
    let (mut works_in_waits, mut measured) = (false, Vec::new());
    for _ in 0..5 {
        let ((took, ran), hand) = (spin(rounds, 2), Duration::from_nanos(by_hand()));
        if ran < took / 100 + 4 * hand.min(turn / 20) {
            return;
        }
        measured.push((ran, took, hand));
        works_in_waits |= hand > turn / 100;
    }
    if works_in_waits {
        return common::skip(common::Reason::WorksInWaits);
    }
    panic!("clgraph's threads ran too long, in five tries: {measured:?}");
}
