//! Native commands: both forms on every path and queue, what their functions get, and how they fail.

mod common;
#[path = "common/native.rs"]
mod native;

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clgraph::{
    Buffer, BuildCause, BuildError, DrawingDetail, Error, ErrorKind, Executable, Finalize, FinalizeError, Graph,
    GraphMemory, Image, ImageFormat, ImageShape, Memory, NativeCommand, NativeQueue, NativeRecording, Node, NodeKind,
    Path, PathReason, Queue, QueueProperties, RecordError, SubmitError, UpdateError,
};
use common::{Bench, UserEvent, assert_error, cause, elsewhere};
use native::{Outcome, fill, record_fill};

const LEN: usize = 64;
const PATHS: [Path; 3] = [Path::Auto, Path::Native, Path::Replay];

fn each(of: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..LEN as u32).map(of).collect()
}

/// How often the functions were called.
#[derive(Clone, Default)]
struct Calls {
    enqueued: Arc<AtomicU32>,
    recorded: Arc<AtomicU32>,
}

impl Calls {
    fn take(&self) -> (u32, u32) {
        (self.enqueued.swap(0, Ordering::Relaxed), self.recorded.swap(0, Ordering::Relaxed))
    }

    fn enqueue(&self, value: u32) -> impl FnMut(&NativeQueue<'_>) -> Outcome + Send + use<> {
        let calls = Arc::clone(&self.enqueued);
        move |to| {
            calls.fetch_add(1, Ordering::Relaxed);
            fill(to, to.memory(0), value)
        }
    }

    fn record(&self, value: u32) -> impl FnMut(&NativeRecording<'_>) -> Outcome + Send + use<> {
        let calls = Arc::clone(&self.recorded);
        move |to| {
            calls.fetch_add(1, Ordering::Relaxed);
            record_fill(to, to.memory(0), value)
        }
    }
}

fn records(bench: &Bench) -> bool {
    native::records(bench.queue.device().caps(), false)
}

fn stir(bench: &Bench, graph: &Graph, buffer: &Buffer<u32>) -> Node {
    // SAFETY: a work-item touches its own element.
    unsafe { graph.kernel(&bench.kernel("stir")).read_write(buffer).range(buffer.len()).add() }.unwrap()
}

fn add(graph: &Graph, command: NativeCommand) -> clgraph::Result<Node> {
    // SAFETY: what the tests' functions enqueue and record goes where it should, touches the memory that it names, and
    // that is kept.
    unsafe { graph.native_command(command).add() }
}

/// A stir, the command over the first half, and another stir.
fn sandwich(bench: &Bench, command: NativeCommand) -> (Graph, Buffer<u32>, Node) {
    let graph = bench.graph();
    let a = bench.buffer(&each(|i| i));
    stir(bench, &graph, &a);
    let node = add(&graph, command.writes(&a.slice(..LEN / 2).unwrap())).unwrap();
    stir(bench, &graph, &a);
    (graph, a, node)
}

/// Returns what these commands make of the buffer.
fn sandwiched(before: &[u32], value: u32) -> Vec<u32> {
    let stir = |x: u32, i: usize| x.wrapping_mul(5).wrapping_add(i as u32);
    let middle = before.iter().enumerate().map(|(i, x)| if i < LEN / 2 { value } else { stir(*x, i) });
    middle.enumerate().map(|(i, x)| stir(x, i)).collect()
}

#[track_caller]
fn check(bench: &Bench, queue: &Queue, executable: &Executable, a: &Buffer<u32>, value: u32) {
    let before = bench.content(a);
    executable.submit(queue).unwrap().wait().unwrap();
    executable.submit(queue).unwrap().wait().unwrap();
    assert_eq!(bench.content(a), sandwiched(&sandwiched(&before, value), value));
}

/// Returns the paths and reasons of a report.
fn paths(executable: &Executable) -> Vec<(Path, PathReason)> {
    executable.report().segments.iter().map(|segment| (segment.path, segment.why)).collect()
}

/// Rule I4
#[test]
fn a_command_that_enqueues_runs_between_two_kernels_on_every_path_and_queue() {
    for path in PATHS {
        for options in [Finalize::new(), Finalize::new().updatable()] {
            let bench = Bench::new();
            let calls = Calls::default();
            let (graph, a, node) = sandwich(&bench, NativeCommand::enqueued(calls.enqueue(9)));
            assert_eq!(graph.kind(node).unwrap(), NodeKind::NativeCommand);
            let executable = graph.finalize(options.path(path)).unwrap();
            for queue in [bench.another_queue(false), bench.another_queue(true)] {
                check(&bench, &queue, &executable, &a, 9);
                assert_eq!(calls.take(), (2, 0));
            }
            if path == Path::Native && records(&bench) {
                let (native, replay) = ((Path::Native, PathReason::Asked), (Path::Replay, PathReason::OnlyEnqueued));
                assert_eq!(paths(&executable), [native, replay, native]);
            }
        }
    }
}

/// Rules I4, F5
#[test]
fn a_command_that_records_is_in_a_command_buffer_whatever_path_is_asked_for() {
    for path in PATHS {
        for options in [Finalize::new(), Finalize::new().updatable()] {
            let bench = Bench::new();
            let calls = Calls::default();
            let (graph, a, node) = sandwich(&bench, NativeCommand::recorded(calls.record(8)));
            let finalized = graph.finalize(options.path(path));
            if !records(&bench) {
                let Err(Error::Finalize(FinalizeError::NotRunnable { node: which, what, missing, kind, .. })) =
                    finalized
                else {
                    panic!("{finalized:?}")
                };
                assert_eq!((which, &*what, kind), (node, "native command", ErrorKind::FeatureNotSupported));
                assert!(missing.starts_with("it can only be recorded, but "), "{missing}");
                continue;
            }
            let executable = finalized.unwrap();
            assert_eq!(calls.take(), (0, 1));
            assert!(paths(&executable).contains(&(Path::Native, PathReason::OnlyRecorded)), "{}", executable.report());
            for queue in [bench.another_queue(false), bench.another_queue(true)] {
                check(&bench, &queue, &executable, &a, 8);
            }
            assert_eq!(calls.take(), (0, 0));
        }
    }
}

/// Rule I4: a queue with other properties needs command buffers of its own.
#[test]
fn a_command_is_recorded_again_for_queues_of_another_kind() {
    let bench = Bench::new();
    let calls = Calls::default();
    let (graph, a, _) = sandwich(&bench, NativeCommand::enqueued(calls.enqueue(8)).or_recorded(calls.record(8)));
    let executable = graph.finalize(Finalize::new().path(Path::Native)).unwrap();
    assert_eq!(calls.take(), (0, u32::from(records(&bench))));
    let properties = QueueProperties::new().profiling(true);
    let queue = Queue::with_properties(&bench.queue, bench.queue.device(), properties).unwrap();
    check(&bench, &queue, &executable, &a, 8);
    let (enqueued, recorded) = calls.take();
    let records = native::records(queue.device().caps(), true);
    assert_eq!((enqueued, recorded), if records { (0, 1) } else { (2, 0) });
}

/// Rule I4
#[test]
fn a_command_with_both_forms_goes_with_its_part() {
    for (path, native) in [(Path::Native, true), (Path::Replay, false)] {
        let bench = Bench::new();
        let native = native && records(&bench);
        let calls = Calls::default();
        let both = NativeCommand::enqueued(calls.enqueue(4)).or_recorded(calls.record(4));
        let (graph, a, _) = sandwich(&bench, both);
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        check(&bench, &bench.queue, &executable, &a, 4);
        assert_eq!(calls.take(), if native { (0, 1) } else { (2, 0) });
        // One segment: the command does not divide it.
        assert_eq!(executable.report().segments.len(), 1);
    }
}

/// Rule I4: alone, first and last, with events on both sides.
#[test]
fn a_command_may_be_all_there_is_and_wait_for_events() {
    let bench = Bench::new();
    let calls = Calls::default();
    let a = bench.buffer(&[0; LEN]);
    let graph = bench.graph();
    add(&graph, NativeCommand::enqueued(calls.enqueue(3)).writes(&a)).unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let other = bench.another_queue(false);
    let gate = UserEvent::new(&bench.queue);
    let run = executable.submit_to(&other).after(&gate.0).submit().unwrap();
    let later = executable.submit_to(&bench.queue).after(&run).submit().unwrap();
    assert!(!later.is_done().unwrap());
    gate.set(0);
    later.wait().unwrap();
    assert_eq!(calls.take(), (2, 0));
    assert_eq!(bench.content(&a), [3; LEN]);
}

/// Rules D1, I4
#[test]
fn memory_that_it_names_orders_it() {
    let bench = Bench::new();
    let (a, b, c) = (bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]));
    let graph = bench.graph();
    let before = graph.fill(&a, 1).add().unwrap();
    let beside = graph.fill(&c, 1).add().unwrap();
    let node = add(&graph, NativeCommand::enqueued(|_| ()).reads(&a).writes(&b)).unwrap();
    let reader = graph.read(&a).add().unwrap();
    let after = graph.read(&b).add().unwrap();
    assert_eq!(graph.predecessors(node).unwrap(), [before]);
    assert_eq!(graph.successors(node).unwrap(), [after.node()]);
    assert_eq!(graph.predecessors(reader.node()).unwrap(), [before]);
    assert!(graph.successors(beside).unwrap().is_empty());
}

/// Rules I4, M5
#[test]
fn it_finds_memory_of_every_kind_where_it_is() {
    let bench = Bench::new();
    let graph = bench.graph();
    let a = bench.buffer(&[0; LEN]);
    // After another allocation in the same buffer.
    let _before: GraphMemory<u32> = graph.alloc(LEN).add().unwrap();
    graph.fill(&_before, 1).add().unwrap();
    let first: GraphMemory<u32> = graph.alloc(LEN).add().unwrap();
    let (calls, seen) = (Calls::default(), Arc::new(OnceLock::new()));
    add(&graph, NativeCommand::enqueued(calls.enqueue(6)).writes(&first.slice(..).unwrap())).unwrap();
    graph.copy(&first.slice(..).unwrap(), &a).add().unwrap();
    let image = Image::new(&bench.queue, ImageShape::image_2d(8, 4), ImageFormat::RGBA_U8).ok();
    let usm = Memory::<u32>::new(&bench.queue, LEN).ok().filter(|memory| memory.as_ptr().is_some());
    let sets = Arc::clone(&seen);
    let look = NativeCommand::enqueued(move |to: &NativeQueue<'_>| {
        let all: Vec<_> = (0..4)
            .map(|at| to.memory(at))
            .map(|of| (of.pointer().addr(), of.offset(), of.size(), of.is_object()))
            .collect();
        let _ = sets.set((all, to.raw().addr()));
    });
    let look = look.reads(&a.slice(8..24).unwrap());
    let look = match (&image, &usm) {
        (Some(image), None) => look.reads(image),
        (None, Some(usm)) => look.reads(&usm.slice(4..).unwrap()),
        (Some(image), Some(usm)) => look.reads(image).reads(&usm.slice(4..).unwrap()),
        (None, None) => look,
    };
    add(&graph, look).unwrap();
    let result = graph.read(&a).add().unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
    run.wait().unwrap();
    assert_eq!(*run.get(&result).unwrap(), [6; LEN]);
    let (all, queue) = seen.get().unwrap();
    assert_eq!(*queue, bench.queue.raw().addr());
    let mut expected = vec![(a.raw().addr(), 32, 64, true)];
    expected.extend(image.iter().map(|image| (image.raw().addr(), 0, 8 * 4 * 4, true)));
    expected.extend(usm.iter().map(|usm| (usm.as_ptr().unwrap().addr() + 16, 0, 4 * (LEN - 4), false)));
    expected.resize(4, (0, 0, 0, false));
    assert_eq!(*all, expected);
}

/// Rules I4, N1
#[test]
fn in_a_sub_graph_it_does_what_it_does_alone() {
    let bench = Bench::new();
    let calls = Calls::default();
    let both = NativeCommand::enqueued(calls.enqueue(2)).or_recorded(calls.record(2));
    let (child, a, _) = sandwich(&bench, both);
    let child = child.finalize(Finalize::new()).unwrap();
    for path in PATHS {
        let graph = bench.graph();
        graph.sub_graph(&child).add().unwrap();
        check(&bench, &bench.queue, &graph.finalize(Finalize::new().path(path)).unwrap(), &a, 2);
    }
}

/// Rules I4, H2: on the executable's own queue, partition by partition.
#[test]
fn beside_host_tasks_it_does_what_it_does_without() {
    for path in PATHS {
        let bench = Bench::new();
        let calls = Calls::default();
        let (graph, a, _) = sandwich(&bench, NativeCommand::enqueued(calls.enqueue(7)));
        graph.host_task(|_| ()).reads(&a).add().unwrap();
        let bad = NativeCommand::enqueued(|_| Err("no luck"));
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        check(&bench, &bench.queue, &executable, &a, 7);
        let node = add(&graph, bad.reads(&a)).unwrap();
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        let error = executable.submit(&bench.queue).unwrap().wait();
        let expected = SubmitError::NativeCommand { node, text: "no luck".to_owned() };
        assert_eq!(error, Err(expected.into()));
    }
}

/// Rules F2, I4: its two functions are called one at a time, also where one thread submits and another one finalizes.
#[test]
fn its_functions_are_called_one_at_a_time() {
    let bench = Bench::new();
    let (buffer, busy) = (bench.buffer(&[0; LEN]), Arc::new(AtomicBool::new(false)));
    let alone = |busy: &Arc<AtomicBool>| {
        let busy = Arc::clone(busy);
        move || {
            assert!(!busy.swap(true, Ordering::SeqCst), "the other one is at work");
            // So long that the other thread comes.
            std::thread::sleep(Duration::from_millis(1));
            busy.store(false, Ordering::SeqCst);
        }
    };
    let (enqueues, records) = (alone(&busy), alone(&busy));
    let command = NativeCommand::enqueued(move |_| enqueues()).or_recorded(move |_| records());
    let graph = bench.graph();
    graph.fill(&buffer, 1).add().unwrap();
    // SAFETY: it does nothing.
    unsafe { graph.native_command(command.reads_and_writes(&buffer)).after_all_leaves().add().unwrap() };
    let executable = graph.finalize(Finalize::new().path(Path::Replay)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..50).for_each(|_| executable.submit(&bench.queue).unwrap().wait().unwrap()));
        scope.spawn(|| (0..50).for_each(|_| drop(graph.finalize(Finalize::new().path(Path::Native)).unwrap())));
    });
}

/// Rules I4, E2
#[test]
fn an_error_or_a_panic_of_a_function_that_enqueues_fails_the_submission_and_no_more() {
    for path in PATHS {
        let bench = Bench::new();
        let fails = Arc::new(AtomicU32::new(0));
        let when = Arc::clone(&fails);
        let command = NativeCommand::enqueued(move |to: &NativeQueue<'_>| -> Outcome {
            match when.load(Ordering::Relaxed) {
                0 => fill(to, to.memory(0), 5),
                1 => Err("there is no such thing".into()),
                2 => panic!("out of cheese"),
                _ => std::panic::panic_any(17),
            }
        });
        let (graph, a, node) = sandwich(&bench, command);
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        check(&bench, &bench.queue, &executable, &a, 5);
        for (how, reason) in [
            (1, "there is no such thing"),
            (2, "it panicked: out of cheese"),
            (3, "it panicked: with something that is no text"),
        ] {
            fails.store(how, Ordering::Relaxed);
            let before = bench.content(&a);
            let error = executable.submit(&bench.queue).unwrap_err();
            assert_eq!(error, SubmitError::NativeCommand { node, text: reason.to_owned() }.into());
            assert_eq!(error.kind(), ErrorKind::Failed);
            // Earlier commands have run, and later ones have not.
            let stirred: Vec<u32> = before.iter().zip(0..).map(|(x, i)| x.wrapping_mul(5).wrapping_add(i)).collect();
            assert_eq!(bench.content(&a), stirred);
            fails.store(0, Ordering::Relaxed);
            check(&bench, &bench.queue, &executable, &a, 5);
        }
        // A deferred submission reports the error itself.
        fails.store(1, Ordering::Relaxed);
        let gate = UserEvent::new(&bench.queue);
        let run = executable.submit_to(&bench.queue).after(&gate.0).submit().unwrap();
        gate.set(0);
        let text = "there is no such thing".to_owned();
        assert_eq!(run.wait(), Err(SubmitError::NativeCommand { node, text }.into()));
        fails.store(0, Ordering::Relaxed);
        check(&bench, &bench.queue, &executable, &a, 5);
    }
}

/// Rules I4, E2
#[test]
fn an_error_or_a_panic_of_a_function_that_records_fails_finalize() {
    let bench = Bench::new();
    let fails: [fn(&NativeRecording<'_>) -> Outcome; 2] = [|_| Err("no room".into()), |_| panic!("at the disco")];
    for (function, reason) in fails.into_iter().zip(["no room", "it panicked: at the disco"]) {
        let (graph, _, node) = sandwich(&bench, NativeCommand::recorded(function));
        let error = graph.finalize(Finalize::new()).unwrap_err();
        assert_eq!(graph.len(), 3);
        if !records(&bench) {
            assert!(matches!(error, Error::Finalize(FinalizeError::NotRunnable { .. })), "{error}");
            continue;
        }
        assert_eq!(error, FinalizeError::NativeCommand { node, text: reason.to_owned() }.into());
    }
}

/// Rules U1, U3, I4
#[test]
fn an_update_brings_other_functions_and_records_again() {
    for path in PATHS {
        let bench = Bench::new();
        let calls = Calls::default();
        let both = |value| NativeCommand::enqueued(calls.enqueue(value)).or_recorded(calls.record(value));
        let (graph, a, node) = sandwich(&bench, both(2));
        let half = a.slice(..LEN / 2).unwrap();
        let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
        let native = paths(&executable).iter().any(|(path, _)| *path == Path::Native);
        assert!(path != Path::Native || native == records(&bench));
        check(&bench, &bench.queue, &executable, &a, 2);
        calls.take();
        // SAFETY: as of the other.
        unsafe { graph.native_command(both(3).writes(&half)).replace(node) }.unwrap();
        check(&bench, &bench.queue, &executable, &a, 2);
        calls.take();
        executable.update(&node).unwrap();
        assert_eq!(calls.take(), (0, u32::from(native)));
        check(&bench, &bench.queue, &executable, &a, 3);
        if native {
            let bad = NativeCommand::enqueued(calls.enqueue(4)).or_recorded(|_| Err("not today"));
            // SAFETY: as of the other.
            unsafe { graph.native_command(bad.writes(&half)).replace(node) }.unwrap();
            let expected = UpdateError::NativeCommand { node, text: "not today".to_owned() };
            assert_eq!(executable.update(&node), Err(expected.into()));
            check(&bench, &bench.queue, &executable, &a, 3);
        }
        // It names another buffer, which its functions get.
        let (other, b, _) = sandwich(&bench, both(6));
        executable.update_from(&other).unwrap();
        let before = bench.content(&a);
        check(&bench, &bench.queue, &executable, &b, 6);
        assert_eq!(bench.content(&a), before);
        // SAFETY: as of the others.
        let error = unsafe { graph.native_command(NativeCommand::enqueued(|_| ()).writes(&half)).replace(node) };
        assert!(matches!(cause(error), BuildCause::Replace { why, .. } if why.contains("has other forms")));
        // SAFETY: as of the others.
        let error = unsafe { graph.native_command(both(1)).replace(node) };
        assert!(matches!(cause(error), BuildCause::Replace { why, .. } if why.contains("it uses memory")));
    }
}

/// The functions look at their graph, while others update and grow it: nobody waits for ever.
#[test]
fn functions_may_look_at_their_graph() {
    let bench = Bench::new();
    for path in PATHS {
        let (graph, a, calls) = (bench.graph(), bench.buffer(&[0; LEN]), Calls::default());
        let looks = {
            let graph = graph.clone();
            move || {
                let nodes = graph.nodes();
                assert!(
                    graph.len() == 2 && graph.kind(nodes[0]).is_ok() && !graph.to_dot(DrawingDetail::Full).is_empty()
                );
            }
        };
        let (look, mut enqueue, mut record) = (looks.clone(), calls.enqueue(2), calls.record(2));
        let enqueued = NativeCommand::enqueued(move |to: &NativeQueue<'_>| {
            look();
            enqueue(to)
        });
        let both = enqueued.or_recorded(move |to: &NativeRecording<'_>| {
            looks();
            record(to)
        });
        let node = add(&graph, both.writes(&a)).unwrap();
        let changes = stir(&bench, &graph, &a);
        let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for _ in 0..50 {
                    executable.update(&[changes, node]).unwrap();
                    executable.update_from(&graph).unwrap();
                }
            });
            threads.spawn(|| (0..50).for_each(|_| drop(bench.graph().sub_graph(&executable).add().unwrap())));
            for _ in 0..50 {
                executable.submit(&bench.queue).unwrap().wait().unwrap();
            }
        });
    }
}

/// Rules R1, I4
#[test]
fn queues_record_it_and_run_it() {
    let bench = Bench::new();
    let calls = Calls::default();
    let a = bench.buffer(&[1; LEN]);
    for queue in [bench.another_queue(false), bench.another_queue(true)] {
        let first = queue.enqueue_fill_buffer(&a, &[2], 0, 4 * LEN, &[]).unwrap();
        let command = NativeCommand::enqueued(calls.enqueue(8)).writes(&a.slice(..LEN / 2).unwrap());
        // SAFETY: what it enqueues touches what it names.
        let run = unsafe { queue.enqueue_native_command(command.clone(), &[&first]) }.unwrap();
        run.wait().unwrap();
        assert_eq!(bench.content(&a), each(|i| if i < LEN as u32 / 2 { 8 } else { 2 }));
        assert_eq!(calls.take(), (1, 0));

        let graph = bench.graph();
        let recorded = graph
            .record(&queue, || {
                let first = queue.enqueue_fill_buffer(&a, &[3], 0, 4 * LEN, &[])?;
                // SAFETY: as above.
                unsafe { queue.enqueue_native_command(command, &[&first]) }
            })
            .unwrap();
        assert_eq!(calls.take(), (0, 0));
        assert_error!(recorded.wait(), RecordError::Recorded { what: "waited for", .. });
        graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap().wait().unwrap();
        assert_eq!(calls.take(), (1, 0));
        assert_eq!(bench.content(&a), each(|i| if i < LEN as u32 / 2 { 8 } else { 3 }));
    }
}

/// Rules I4, E2: the error has the function's text, and a second attempt may succeed.
#[test]
fn a_record_function_that_fails_for_another_kind_of_queue_fails_the_submission() {
    let bench = Bench::new();
    let calls = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&calls);
    let command = NativeCommand::recorded(move |to: &NativeRecording<'_>| -> Outcome {
        if count.fetch_add(1, Ordering::Relaxed) == 1 {
            return Err("not this time".into());
        }
        record_fill(to, to.memory(0), 7)
    });
    let (graph, a, node) = sandwich(&bench, command);
    let Ok(executable) = graph.finalize(Finalize::new()) else {
        return assert!(!records(&bench));
    };
    let properties = QueueProperties::new().profiling(true);
    let queue = Queue::with_properties(&bench.queue, bench.queue.device(), properties).unwrap();
    let command_buffers = queue.device().caps().command_buffers.as_ref();
    if command_buffers.and_then(|caps| caps.supported_queue).is_some_and(|queues| !queues.profiling) {
        // They run on the executable's own queue then, for which they are recorded already.
        check(&bench, &queue, &executable, &a, 7);
        return assert_eq!(calls.load(Ordering::Relaxed), 1);
    }
    let expected = SubmitError::NativeCommand { node, text: "not this time".to_owned() };
    assert_eq!(executable.submit(&queue).unwrap_err(), expected.into());
    check(&bench, &queue, &executable, &a, 7);
    check(&bench, &bench.queue, &executable, &a, 7);
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

/// Rules I4, S3: several submissions in flight.
#[test]
fn a_command_that_records_is_submitted_again_without_waiting() {
    let bench = Bench::new();
    let calls = Calls::default();
    let (graph, a, _) = sandwich(&bench, NativeCommand::recorded(calls.record(8)));
    let Ok(executable) = graph.finalize(Finalize::new()) else {
        return assert!(!records(&bench));
    };
    let before = bench.content(&a);
    let runs: Vec<_> = (0..5).map(|_| executable.submit(&bench.queue).unwrap()).collect();
    runs.iter().for_each(|run| run.wait().unwrap());
    assert_eq!(bench.content(&a), (0..5).fold(before, |before, _| sandwiched(&before, 8)));
}

/// Rules I4, N1, E3: dropping something in a function never waits.
#[test]
fn a_function_may_drop_the_last_handle_of_an_executable_in_its_graph() {
    let bench = Bench::new();
    let child = bench.graph();
    child.fill(&bench.buffer(&[0; LEN]), 1).add().unwrap();
    let child = child.finalize(Finalize::new()).unwrap();
    let (graph, held) = (bench.graph(), Arc::new(std::sync::Mutex::new(Some(child.clone()))));
    graph.sub_graph(&child).add().unwrap();
    let drops = Arc::clone(&held);
    add(&graph, NativeCommand::enqueued(move |_| drop(drops.lock().unwrap().take()))).unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    drop((child, graph));
    executable.submit(&bench.queue).unwrap().wait().unwrap();
    assert!(held.lock().unwrap().is_none());
}

/// Rule I4: calls that would take locks which are held are refused.
#[test]
fn a_function_may_not_submit_update_finalize_or_wait() {
    let bench = Bench::new();
    let other = bench.graph();
    let a = bench.buffer(&[0; LEN]);
    let fill = other.fill(&a, 1).add().unwrap();
    let executable = other.finalize(Finalize::new().updatable()).unwrap();
    let run = executable.submit(&bench.queue).unwrap();
    run.wait().unwrap();
    let (results, own) = (Arc::new(OnceLock::new()), Arc::new(OnceLock::<Executable>::new()));
    let (sets, queue, mine) = (Arc::clone(&results), bench.queue.clone(), Arc::clone(&own));
    let of_parent = Arc::new(OnceLock::<Graph>::new());
    let parent = Arc::clone(&of_parent);
    let command = NativeCommand::enqueued(move |_| {
        let error = |outcome: clgraph::Result<()>| outcome.err();
        let own = mine.get().unwrap();
        let (sender, called) = std::sync::mpsc::channel();
        run.on_complete(move |_| sender.send(()).unwrap());
        called.recv().unwrap();
        let _ = sets.set((
            [
                error(own.submit(&queue).map(drop)),
                error(executable.submit_to(&queue).submit_detached()),
                error(executable.update(&fill)),
                error(executable.update_from(&other)),
                error(other.finalize(Finalize::new()).map(drop)),
                error(run.wait()),
                error(run.wait_for(std::time::Duration::ZERO)),
            ],
            own.command_buffers().len(),
            run.is_done(),
        ));
        // Drawing takes only the graph's lock.
        assert!(parent.get().unwrap().to_dot(clgraph::DrawingDetail::Verbose).contains("nodes"));
        // Only the test keeps it alive.
        drop(Arc::clone(&mine));
    });
    let graph = bench.graph();
    add(&graph, command).unwrap();
    stir(&bench, &graph, &a);
    own.set(graph.finalize(Finalize::new().path(Path::Native)).unwrap()).unwrap();
    let of_it = bench.graph();
    of_it.sub_graph(own.get().unwrap()).add().unwrap();
    of_parent.set(of_it).unwrap();
    own.get().unwrap().submit(&bench.queue).unwrap().wait().unwrap();
    let (errors, buffers, done) = results.get().unwrap();
    assert!(errors.iter().all(|error| *error == Some(SubmitError::InsideNativeCommand.into())), "{errors:?}");
    assert_eq!((*buffers, done.clone()), (0, Ok(true)));
}

/// Rule F3: what a function owns lives until its commands are complete.
#[test]
fn what_functions_own_outlives_the_commands() {
    let bench = Bench::new();
    let (inside, tell) = bench.telling_buffer(&[1; LEN]);
    let a = bench.buffer(&[0; LEN]);
    let graph = bench.graph();
    let owned = Arc::new(());
    let (held, weak) = (Arc::clone(&owned), Arc::downgrade(&owned));
    drop(owned);
    let command = NativeCommand::enqueued(move |to: &NativeQueue<'_>| {
        let _ = &held;
        // A buffer of the function's own, which no node names.
        let own = inside.raw();
        // SAFETY: live objects; the function's buffer is its own.
        let event = unsafe {
            opencl3::command_queue::enqueue_copy_buffer(
                to.raw(),
                own,
                to.memory(0).pointer(),
                0,
                0,
                4 * LEN,
                0,
                ptr::null(),
            )
        };
        event.map(|event| drop(opencl3::event::Event::new(event))).map_err(|error| error.to_string())
    });
    add(&graph, command.writes(&a)).unwrap();
    let executable = graph.finalize(Finalize::new().path(Path::Replay)).unwrap();
    drop(graph);
    let gate = UserEvent::new(&bench.queue);
    let event = opencl3::event::Event::new(gate.0.get());
    // The queue waits, and so does what the function enqueues.
    let raw = common::plain_queue(&bench.queue);
    // SAFETY: a live event, given once.
    unsafe { raw.enqueue_barrier_with_wait_list(&[event.get()]) }.unwrap();
    std::mem::forget(event);
    executable.submit_to(&bench.queue).submit_detached().unwrap();
    drop(executable);
    assert!(weak.upgrade().is_some() && !tell.is_gone());
    gate.set(0);
    tell.wait_until_gone();
    assert_eq!(bench.content(&a), [1; LEN]);
}

/// Rules B1, E1
#[test]
fn memory_of_another_context_is_refused() {
    let bench = Bench::new();
    let foreign = elsewhere().buffer(&[0; LEN]);
    let graph = bench.graph();
    let error = add(&graph, NativeCommand::enqueued(|_| ()).reads(&foreign));
    assert_error!(
        error,
        BuildError { subject, cause, .. }
            if subject == "native command (to be node 0)"
                && matches!(&**cause, BuildCause::OtherContext { what } if what == "memory that a native command uses"),
    );
    assert!(graph.is_empty());
}
