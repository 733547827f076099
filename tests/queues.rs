//! Submissions over several queues: independent commands run side by side, and nothing else does.

mod common;

use std::time::Duration;

use clgraph::{Event, Exclusion, Executable, Finalize, Parameter, Path, Program};
use common::{Bench, UserEvent};

const LEN: usize = 1 << 10;
const BRANCHES: usize = 4;

fn path(executable: &Executable) -> Path {
    executable.report().tuning.strategies[0].path
}

/// Returns whether the path is fixed: the environment has set it, or the driver cannot run several queues.
fn is_pinned() -> bool {
    let platform = clgraph::best_device().unwrap().caps().platform.clone();
    platform == "rusticl" || std::env::var_os("CLGRAPH_PATH").is_some_and(|path| path != "auto")
}

/// Rules S2, S6: if two threads submit to one queue, each submission is ordered like one command. One submission
/// multiplies and the other adds, so all branches have the same result only if they see the submissions in the same
/// order.
#[test]
fn submissions_of_two_threads_to_one_queue_do_not_mix() {
    const SUBMISSIONS: usize = 400;
    let bench = Bench::new();
    let one = bench.buffer(&[1; LEN]);
    for given in [Path::Replay, Path::Gated, Path::Native, Path::Queues] {
        let sums: Vec<_> = (0..BRANCHES).map(|_| bench.buffer(&[0; LEN])).collect();
        let executable = |adds: bool| {
            let graph = bench.graph();
            for sum in &sums {
                let (stir, add) = (bench.kernel("stir"), bench.kernel("add"));
                let node = if adds {
                    graph.kernel(&add).read_write(sum).read(&one).range(LEN)
                } else {
                    graph.kernel(&stir).read_write(sum).range(LEN)
                };
                // SAFETY: a work-item touches its own element.
                unsafe { node.add() }.unwrap();
            }
            graph.finalize(Finalize::new().path(given)).unwrap()
        };
        let executables = [executable(false), executable(true)];
        assert!(given != Path::Queues || is_pinned() || executables.iter().all(|one| path(one) == given));
        std::thread::scope(|scope| {
            for executable in &executables {
                scope.spawn(|| {
                    for _ in 0..SUBMISSIONS {
                        executable.submit_to(&bench.queue).submit_detached().unwrap();
                    }
                });
            }
        });
        let first = bench.content(&sums[0]);
        assert!(sums.iter().all(|sum| bench.content(sum) == first), "{given}");
    }
}

/// Rules M3, M5, N3: with several queues, branches share no bytes. A sub-graph whose branches share bytes, because it is
/// made for one queue, keeps everything on one queue.
#[test]
fn branches_with_memory_of_a_graph_or_a_sub_graph_run_side_by_side_if_they_share_no_bytes() {
    let bench = Bench::new();
    let outs: Vec<_> = (0..BRANCHES).map(|_| bench.buffer(&[0; LEN])).collect();
    let graph = bench.graph();
    for (value, out) in (1_u32..).zip(&outs) {
        let memory = graph.alloc::<u32>(LEN).add().unwrap();
        graph.fill(&memory, value).add().unwrap();
        graph.copy(&memory, out).add().unwrap();
        graph.free(&memory).add().unwrap();
    }
    let queues = Finalize::new().path(Path::Queues);
    let (apart, shared) = (graph.finalize(queues.clone()).unwrap(), graph.finalize(Finalize::new()).unwrap());
    let spreads = |executable: &Executable| path(executable) == Path::Queues;
    if !is_pinned() {
        assert!(spreads(&apart) && !spreads(&shared));
        let excluded: Vec<_> = shared.report().excluded.iter().map(|one| (one.path, one.why)).collect();
        assert!(excluded.contains(&(Path::Queues, Exclusion::GraphMemory)), "{excluded:?}");
        assert_eq!(apart.report().memory.bytes, BRANCHES * shared.report().memory.bytes);
    }
    for (child, is_apart) in [(&apart, true), (&shared, false)] {
        // In a graph, and in a graph within a graph.
        let around = bench.graph();
        around.sub_graph(child).add().unwrap();
        let inner = around.finalize(queues.clone()).unwrap();
        let outer = bench.graph();
        outer.sub_graph(&inner).add().unwrap();
        let outer_queues = outer.finalize(queues.clone()).unwrap();
        let updatable = outer.finalize(queues.clone().updatable()).unwrap();
        for (executable, is_apart) in
            [(child, is_apart), (&inner, is_apart), (&outer_queues, is_apart), (&updatable, false)]
        {
            assert!(spreads(executable) == is_apart || is_pinned(), "{}", executable.report());
            for out in &outs {
                bench.queue.enqueue_fill_buffer(out, &[0], 0, LEN * 4, &[]).unwrap();
            }
            executable.submit(&bench.queue).unwrap().wait().unwrap();
            for (value, out) in (1..).zip(&outs) {
                assert_eq!(bench.content(out), [value; LEN]);
            }
        }
    }
}

/// Rules M3, U7: an update brings memory of the graph to nodes that no edge orders with it, and these run beside others.
/// Nothing else has its bytes meanwhile.
#[test]
fn memory_of_the_graph_that_an_update_brings_is_nobody_elses() {
    const SOURCE: &str = "kernel void set(global uint *to, uint by) {
        volatile global uint *place = to + get_global_id(0);
        for (uint round = 0; round < 50; round++) *place = by;
    }";
    let bench = Bench::new();
    let kernel = Program::from_source(&bench.queue, SOURCE).unwrap().kernel("set").unwrap();
    let outs: Vec<_> = (0..10).map(|_| bench.buffer(&[0; LEN])).collect();
    let graph = bench.graph();
    let memory = Parameter::memory(&bench.buffer(&[0; LEN]));
    let early = graph.alloc::<u32>(LEN).add().unwrap();
    let add = || {
        // SAFETY: a work-item touches its own element.
        unsafe { graph.kernel(&kernel).write(&memory).arg(9_u32).range(LEN).add().unwrap() }
    };
    let nodes: Vec<_> = (0..10).map(|_| add()).collect();
    graph.free(&early).add().unwrap();
    let late = graph.alloc::<u32>(LEN).add().unwrap();
    for out in &outs {
        graph.fill(&late, 7).add().unwrap();
        graph.copy(&late, out).add().unwrap();
    }
    graph.free(&late).add().unwrap();
    let executable = graph.finalize(Finalize::new().path(Path::Queues).updatable()).unwrap();
    assert!(path(&executable) == Path::Queues || is_pinned());
    memory.set(&early).unwrap();
    executable.update(&nodes[..]).unwrap();
    for _ in 0..10 {
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        assert!(outs.iter().all(|out| bench.content(out) == [7; LEN]));
    }
}

/// Rules M3, S3: one executable twice in a graph has the same memory twice.
#[test]
fn an_executable_that_is_twice_in_a_graph_has_its_memory_one_after_the_other() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]));
    let inner = bench.graph();
    let memory = inner.alloc::<u32>(LEN).add().unwrap();
    inner.fill(&memory, 7_u32).add().unwrap();
    inner.copy(&memory, &a).add().unwrap();
    inner.copy(&memory, &b).add().unwrap();
    let child = inner.finalize(Finalize::new()).unwrap();
    let graph = bench.graph();
    graph.sub_graph(&child).add().unwrap();
    graph.sub_graph(&child).add().unwrap();
    let executable = graph.finalize(Finalize::new().path(Path::Queues)).unwrap();
    executable.submit(&bench.queue).unwrap().wait().unwrap();
    assert_eq!((bench.content(&a), bench.content(&b)), (vec![7; LEN], vec![7; LEN]));
}

/// Rules S3, S5: a submission waits for the executable's submission before, and for nothing else; in particular not for
/// what holds the queue of the submission before, if that was enqueued after it.
#[test]
fn what_holds_a_queue_later_holds_nobody_who_waits_for_what_is_before_it() {
    const LONG: Duration = Duration::from_secs(300);
    let bench = Bench::new();
    let data = bench.buffer(&[0; LEN]);
    for path in [Path::Auto, Path::Replay, Path::Gated, Path::Native, Path::Queues] {
        let graph = bench.graph();
        // SAFETY: a work-item touches its own element.
        unsafe { graph.kernel(&bench.kernel("stir")).read_write(&data).range(LEN).add() }.unwrap();
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        let other = graph.finalize(Finalize::new().path(path)).unwrap();

        // The same queue: the gate of a submission that waits for an event is after the submission before.
        let (queue, user) = (bench.another_queue(false), UserEvent::new(&bench.queue));
        executable.submit_to(&queue).submit_detached().unwrap();
        let later = executable.submit_to(&queue).after(&user.0).submit().unwrap();
        user.set(0);
        later.wait_for(LONG).unwrap();

        // Another queue: the first queue is held by a command, by a command after one of a third queue, or by a
        // submission.
        for holder in 0..3 {
            let (queue, third) = (bench.another_queue(false), bench.another_queue(false));
            let user = UserEvent::new(&bench.queue);
            let event = Event::from_opencl3(&user.0).unwrap();
            executable.submit_to(&queue).submit_detached().unwrap();
            match holder {
                0 => drop(queue.enqueue_marker_with_wait_list(&[&event]).unwrap()),
                1 => {
                    let marker = third.enqueue_marker_with_wait_list(&[&event]).unwrap();
                    third.flush().unwrap();
                    drop(queue.enqueue_marker_with_wait_list(&[&marker]).unwrap());
                }
                _ => other.submit_to(&queue).after(&user.0).submit_detached().unwrap(),
            }
            queue.flush().unwrap();
            // It ends while the first queue is held.
            let run = executable.submit(&bench.queue).unwrap();
            run.wait_for(LONG).unwrap();
            user.set(0);
            queue.finish().unwrap();
        }
    }
}

/// A command of size zero has its place in the order of an in-order queue: later commands come after what it waits for.
#[test]
fn a_command_of_size_zero_holds_back_later_ones() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[1; LEN]), bench.buffer(&[0; LEN]));
    let other = bench.another_queue(false);
    let stir = bench.kernel("stir");
    for _ in 0..20 {
        let mut last = None;
        for _ in 0..40 {
            let mut launch = clgraph::ExecuteKernel::new(&stir);
            launch.set_arg(&a).set_global_work_size(LEN);
            // SAFETY: a work-item touches its own element.
            last = Some(unsafe { launch.enqueue_nd_range(&other) }.unwrap());
        }
        bench.queue.enqueue_fill_buffer(&b, &[0], 0, 0, &[last.as_ref().unwrap()]).unwrap();
        bench.queue.enqueue_copy_buffer(&a, &b, 0, 0, 4 * LEN, &[]).unwrap();
        other.flush().unwrap();
        assert!(bench.content(&b) == bench.content(&a));
    }
}
