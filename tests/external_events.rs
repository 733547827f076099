//! External events: nodes that wait for an event of the submission, and nodes that complete one.

mod common;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Duration;

use clgraph::{
    Buffer, BuildCause, Error, ErrorKind, EventSignal, EventWait, Executable, Finalize, Graph, HostTaskContext,
    HostWrite, Node, NodeKind, Path, RecordError, SubmitError, UserEvent,
};
use common::{Bench, assert_error, cause, elsewhere};

const LEN: usize = 64;
const PATHS: [Path; 3] = [Path::Auto, Path::Native, Path::Replay];
const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(60);

fn event(bench: &Bench) -> UserEvent {
    UserEvent::new(&bench.queue).unwrap()
}

fn stir(bench: &Bench, graph: &Graph, buffer: &Buffer<u32>) -> Node {
    // SAFETY: a work-item touches its own element.
    unsafe { graph.kernel(&bench.kernel("stir")).read_write(buffer).range(buffer.len()).add() }.unwrap()
}

#[track_caller]
fn failure(outcome: clgraph::Result<()>) -> SubmitError {
    match outcome {
        Err(Error::Submit(error)) => error,
        other => panic!("a SubmitError was expected, not {other:?}"),
    }
}

/// A graph that fills a buffer, completes an event, waits for another, and then fills a second buffer.
struct TwoSteps {
    bench: Bench,
    first: Buffer<u32>,
    second: Buffer<u32>,
    filled: EventSignal,
    go_on: EventWait,
    graph: Graph,
}

impl TwoSteps {
    fn new() -> Self {
        let bench = Bench::new();
        let (first, second) = (bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]));
        let graph = bench.graph();
        let fill = graph.fill(&first, 1).add().unwrap();
        let filled = graph.signal_event().after(fill).add().unwrap();
        let go_on = graph.wait_event().after(filled).add().unwrap();
        graph.fill(&second, 2).after(go_on).add().unwrap();
        Self { bench, first, second, filled, go_on, graph }
    }

    fn executable(&self, path: Path) -> Executable {
        self.graph.finalize(Finalize::new().path(path)).unwrap()
    }

    fn content(&self) -> (u32, u32) {
        let of = |buffer: &Buffer<u32>| {
            let all = self.bench.content(buffer);
            assert!(all.iter().all(|x| *x == all[0]));
            all[0]
        };
        (of(&self.first), of(&self.second))
    }
}

/// Rules X1, S5
#[test]
fn host_and_device_meet_inside_a_graph() {
    for path in PATHS {
        let steps = TwoSteps::new();
        let bench = &steps.bench;
        assert_eq!(steps.graph.kind(steps.filled.node()).unwrap(), NodeKind::EventSignal);
        assert_eq!(steps.graph.kind(steps.go_on).unwrap(), NodeKind::EventWait);
        let executable = steps.executable(path);
        for queue in [bench.another_queue(false), bench.another_queue(true)] {
            bench.queue.enqueue_fill_buffer(&steps.first, &[0], 0, 4 * LEN, &[]).unwrap().wait().unwrap();
            bench.queue.enqueue_fill_buffer(&steps.second, &[0], 0, 4 * LEN, &[]).unwrap().wait().unwrap();
            let (filled, go_on) = (event(bench), event(bench));
            let run = executable.submit_to(&queue).with_signal(&steps.filled, &filled).with_event(&steps.go_on, &go_on);
            let run = run.submit().unwrap();
            filled.wait_for(LONG).unwrap();
            assert_eq!(steps.content(), (1, 0));
            assert!(matches!(failure(run.wait_for(SHORT)), SubmitError::TimedOut(_)));
            go_on.complete().unwrap();
            run.wait().unwrap();
            assert_eq!(steps.content(), (1, 2));
        }
    }
}

/// Rules X1, S3: many events in one graph, and in submissions that follow each other.
#[test]
fn host_and_device_alternate_many_times() {
    const TURNS: usize = 12;
    for path in PATHS {
        let bench = Bench::new();
        let a = bench.buffer(&[0; LEN]);
        let graph = bench.graph();
        let mut pairs = Vec::new();
        let mut last = stir(&bench, &graph, &a);
        for _ in 0..TURNS {
            let signal = graph.signal_event().after(last).add().unwrap();
            let wait = graph.wait_event().after(signal).add().unwrap();
            // Only the edge orders these.
            last = stir(&bench, &graph, &a);
            graph.add_edge(wait.node(), last).unwrap();
            pairs.push((signal, wait));
        }
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        let mut runs = Vec::new();
        for _ in 0..3 {
            let events: Vec<_> = pairs.iter().map(|_| (event(&bench), event(&bench))).collect();
            let mut submit = executable.submit_to(&bench.queue);
            for ((signal, wait), (signalled, go)) in pairs.iter().zip(&events) {
                submit = submit.with_signal(signal, signalled).with_event(wait, go);
            }
            runs.push((submit.submit().unwrap(), events));
        }
        for (run, events) in runs {
            for (signalled, go) in &events {
                assert!(!run.is_done().unwrap());
                signalled.wait_for(LONG).unwrap();
                go.complete().unwrap();
            }
            run.wait().unwrap();
        }
        let mut expected = [0_u32; LEN];
        for _ in 0..3 * (TURNS + 1) {
            expected.iter_mut().zip(0..).for_each(|(x, i)| *x = x.wrapping_mul(5).wrapping_add(i));
        }
        assert_eq!(bench.content(&a), expected);
    }
}

/// Rules X1, R6, S7: everything that can be waited for.
#[test]
fn a_node_waits_for_events_of_every_kind() {
    let steps = TwoSteps::new();
    let bench = &steps.bench;
    let executable = steps.executable(Path::Auto);
    let submit = || executable.submit_to(&bench.queue);
    let signalled = || (event(bench), bench.another_queue(false));
    // A submission, an event of a queue, a raw user event, and an event that is complete.
    let (filled, queue) = signalled();
    let other = bench.graph().finalize(Finalize::new()).unwrap().submit(&queue).unwrap();
    submit().with_signal(&steps.filled, &filled).with_event(&steps.go_on, &other).submit().unwrap().wait().unwrap();
    let (filled, queue) = signalled();
    let command = queue.enqueue_marker_with_wait_list(&[]).unwrap();
    queue.flush().unwrap();
    submit().with_signal(&steps.filled, &filled).with_event(&steps.go_on, &command).submit().unwrap().wait().unwrap();
    let raw = common::UserEvent::new(&bench.queue);
    let (filled, _) = signalled();
    let run = submit().with_signal(&steps.filled, &filled).with_event(&steps.go_on, &raw.0).submit().unwrap();
    assert!(!run.is_done().unwrap());
    raw.set(0);
    run.wait().unwrap();
    let done = event(bench);
    done.complete().unwrap();
    assert!(done.is_done());
    let (filled, _) = signalled();
    submit().with_signal(&steps.filled, &filled).with_event(&steps.go_on, &done).submit().unwrap().wait().unwrap();
}

/// Rule X1: one submission completes what another one waits for; on one thread, in both directions.
#[test]
fn two_graphs_call_each_other() {
    let (one, other) = (TwoSteps::new(), TwoSteps::new());
    let bench = &one.bench;
    // In one context.
    let (first, second) = (bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]));
    drop(other);
    let graph = bench.graph();
    let asked = graph.wait_event().add().unwrap();
    let copy = graph.copy(&one.first, &first).after(asked).add().unwrap();
    let answered = graph.signal_event().after(copy).add().unwrap();
    let last = graph.wait_event().after(answered).add().unwrap();
    graph.copy(&one.second, &second).after(last).add().unwrap();
    let server = graph.finalize(Finalize::new()).unwrap();
    let client = one.executable(Path::Auto);
    let queue = bench.another_queue(false);
    let (question, answer) = (event(bench), event(bench));
    let asking = client.submit_to(&bench.queue).with_signal(&one.filled, &question).with_event(&one.go_on, &answer);
    let asking = asking.submit().unwrap();
    let serving = server.submit_to(&queue).with_event(&asked, &question).with_signal(&answered, &answer);
    let serving = serving.with_event(&last, &asking).submit().unwrap();
    serving.wait().unwrap();
    assert_eq!((bench.content(&first), bench.content(&second)), (vec![1; LEN], vec![2; LEN]));
}

/// Rules X1, N1, N4
#[test]
fn in_sub_graphs_each_use_has_events_of_its_own() {
    for path in PATHS {
        let steps = TwoSteps::new();
        let bench = &steps.bench;
        let child = steps.executable(path);
        let middle = bench.graph();
        let uses = [middle.sub_graph(&child).add().unwrap(), middle.sub_graph(&child).add().unwrap()];
        let wait = middle.wait_event().add().unwrap();
        let middle_exec = middle.finalize(Finalize::new().path(path)).unwrap();
        let outer = bench.graph();
        let inner = outer.sub_graph(&middle_exec).add().unwrap();
        let outer = outer.finalize(Finalize::new().path(path)).unwrap();
        let handles: Vec<_> = uses
            .iter()
            .map(|of| {
                let (signal, wait) = (of.signal_event(&steps.filled).unwrap(), of.wait_event(&steps.go_on).unwrap());
                (inner.signal_event(&signal).unwrap(), inner.wait_event(&wait).unwrap())
            })
            .collect();
        let own = inner.wait_event(&wait).unwrap();
        let events: Vec<_> = handles.iter().map(|_| (event(bench), event(bench))).collect();
        let last = event(bench);
        let mut submit = outer.submit_to(&bench.queue).with_event(&own, &last);
        for ((signal, wait), (signalled, go)) in handles.iter().zip(&events) {
            submit = submit.with_signal(signal, signalled).with_event(wait, go);
        }
        let run = submit.submit().unwrap();
        for (signalled, go) in &events {
            signalled.wait_for(LONG).unwrap();
            assert!(!run.is_done().unwrap());
            go.complete().unwrap();
        }
        last.complete().unwrap();
        run.wait().unwrap();
        assert_eq!(steps.content(), (1, 2));
        assert!(matches!(uses[0].wait_event(&own), Err(Error::Submit(SubmitError::NotAnEvent { .. }))));
    }
}

/// Rules X1, R1
#[test]
fn queues_record_nodes_with_external_events() {
    for out_of_order in [false, true] {
        let bench = Bench::new();
        let a = bench.buffer(&[0; LEN]);
        let queue = bench.another_queue(out_of_order);
        let graph = bench.graph();
        let (filled, go_on) = graph
            .record(&queue, || {
                let fill = queue.enqueue_fill_buffer(&a, &[1], 0, 4 * LEN, &[])?;
                let (filled, event) = queue.record_event_signal(&[&fill])?;
                let (go_on, event) = queue.record_event_wait(&[&event])?;
                queue.enqueue_fill_buffer(&a, &[2], 0, 4 * LEN, &[&event])?;
                clgraph::Result::Ok((filled, go_on))
            })
            .unwrap();
        let executable = graph.finalize(Finalize::new()).unwrap();
        let (signalled, go) = (event(&bench), event(&bench));
        let run =
            executable.submit_to(&queue).with_signal(&filled, &signalled).with_event(&go_on, &go).submit().unwrap();
        signalled.wait_for(LONG).unwrap();
        assert_eq!(bench.content(&a), [1; LEN]);
        go.complete().unwrap();
        run.wait().unwrap();
        assert_eq!(bench.content(&a), [2; LEN]);
        let not = |outcome: Result<(), Error>| assert_eq!(outcome, Err(RecordError::NotRecording.into()));
        not(queue.record_event_wait(&[]).map(drop));
        not(queue.record_event_signal(&[]).map(drop));
        // A recorded submission has no events: each submission of the recorded graph has its own.
        let error = bench
            .graph()
            .record(&queue, || executable.submit_to(&queue).with_event(&go_on, &event(&bench)).submit().map(drop));
        assert_error!(error, RecordError::NotRecordable { instead, .. } if instead.contains("SubGraph::wait_event"));
    }
}

/// Rules X1, E2: after an error nothing is enqueued, and no event is taken.
#[test]
fn a_submission_without_its_events_is_refused() {
    let steps = TwoSteps::new();
    let bench = &steps.bench;
    let executable = steps.executable(Path::Auto);
    let (signalled, go) = (event(bench), event(bench));
    let submit = || executable.submit_to(&bench.queue);
    let refused = |submit: clgraph::Submit<'_>| failure(submit.submit().map(drop));
    let (filled, go_on) = (steps.filled, steps.go_on);

    let error = refused(submit());
    assert_eq!(error, SubmitError::EventMissing { node: filled.node(), method: "with_signal" });
    let error = refused(submit().with_signal(&filled, &signalled));
    assert_eq!(error, SubmitError::EventMissing { node: go_on.node(), method: "with_event" });
    let twice = submit().with_signal(&filled, &signalled).with_event(&go_on, &go).with_event(&go_on, &go);
    assert_eq!(refused(twice), SubmitError::EventTwice { node: go_on.node() });
    let twice = submit().with_signal(&filled, &signalled).with_signal(&filled, &event(bench));
    assert_eq!(refused(twice), SubmitError::EventTwice { node: filled.node() });

    let other = TwoSteps::new();
    assert_eq!(refused(submit().with_event(&other.go_on, &go)), SubmitError::NotAnEvent { node: other.go_on.node() });
    let foreign = event(elsewhere());
    let elsewhere = submit().with_signal(&filled, &signalled).with_event(&go_on, &foreign);
    assert_eq!(refused(elsewhere), SubmitError::EventContext { node: go_on.node() });
    let elsewhere = submit().with_signal(&filled, &foreign).with_event(&go_on, &go);
    assert_eq!(refused(elsewhere), SubmitError::EventContext { node: filled.node() });

    let failed = event(bench);
    failed.fail("the disk is full").unwrap();
    let error = refused(submit().with_signal(&filled, &signalled).with_event(&go_on, &failed));
    let full = Box::new(SubmitError::UserEvent { text: "the disk is full".to_owned() }.into());
    assert_eq!(error, SubmitError::ExternalEvent { node: go_on.node(), cause: full });
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert_eq!(refused(submit().with_signal(&filled, &failed).with_event(&go_on, &go)), SubmitError::UserEventEnded);
    assert_eq!(failure(failed.complete()), SubmitError::UserEventEnded);

    // The refused submission holds nothing back.
    assert_eq!(steps.content(), (0, 0));
    let before = event(bench);
    let run = submit().after(&before).with_signal(&filled, &signalled).with_event(&go_on, &go).submit().unwrap();
    // Nothing else can complete the event, or be given it.
    assert_eq!(failure(signalled.complete()), SubmitError::UserEventInUse);
    assert_eq!(failure(signalled.fail("no")), SubmitError::UserEventInUse);
    assert_eq!(refused(submit().with_signal(&filled, &signalled).with_event(&go_on, &go)), SubmitError::UserEventInUse);
    before.complete().unwrap();
    go.complete().unwrap();
    run.wait().unwrap();
    assert_eq!(failure(signalled.complete()), SubmitError::UserEventEnded);
    // A graph without external events accepts none.
    let plain = bench.graph().finalize(Finalize::new()).unwrap();
    let error = plain.submit_to(&bench.queue).with_event(&go_on, &go).submit();
    assert_eq!(failure(error.map(drop)), SubmitError::NotAnEvent { node: go_on.node() });
    // A waiting node is no completing node.
    assert!(matches!(cause(steps.graph.set_nd_range(go_on.node(), 4)), BuildCause::OtherKind { .. }));
    let error = bench.graph().add_edge(go_on.node(), filled.node());
    assert!(matches!(cause(error), BuildCause::OtherGraph { .. }));
}

/// Rules X1, S9, H3: an event fails by the program, and when it is dropped.
#[test]
fn an_event_that_fails_stops_what_waits_for_it_and_nothing_else() {
    for path in PATHS {
        let bench = Bench::new();
        let (a, b, c) = (bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]));
        let graph = bench.graph();
        let wait = graph.wait_event().add().unwrap();
        let later = graph.fill(&a, 1).after(wait).add().unwrap();
        let ran = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&ran);
        let count = move || count.fetch_add(1, Ordering::Relaxed);
        graph.host_task(move |_| assert_eq!(count(), 0)).after(later).add().unwrap();
        let never = graph.signal_event().after(later).add().unwrap();
        let beside = graph.fill(&b, 2).add().unwrap();
        let signal = graph.signal_event().after(beside).add().unwrap();
        graph.fill(&c, 3).after(signal).add().unwrap();
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        let paper = SubmitError::UserEvent { text: "no more paper".to_owned() };
        let fails: [(&dyn Fn(UserEvent), SubmitError); 2] =
            [(&|event| event.fail("no more paper").unwrap(), paper), (&drop, SubmitError::UserEventDropped)];
        for (fail, why) in fails {
            let (waited, dead, alive) = (event(&bench), event(&bench), event(&bench));
            let run = executable.submit_to(&bench.queue).with_event(&wait, &waited).with_signal(&never, &dead);
            let run = run.with_signal(&signal, &alive).submit().unwrap();
            let later = executable.submit_to(&bench.queue).after(&run).with_event(&wait, &alive);
            let later =
                later.with_signal(&never, &event(&bench)).with_signal(&signal, &event(&bench)).submit().unwrap();
            fail(waited);
            let error = failure(run.wait());
            let cause = Box::new(why.into());
            assert_eq!(error, SubmitError::ExternalEvent { node: wait.node(), cause });
            alive.wait_for(LONG).unwrap();
            assert_eq!(failure(dead.wait_for(LONG)), error);
            let cause = Box::new(Error::from(error));
            assert_eq!(failure(later.wait()), SubmitError::DependencyFailed { cause });
            let content = [&a, &b, &c].map(|buffer| bench.content(buffer)[0]);
            assert_eq!(content, [0, 2, 3]);
            assert_eq!(ran.load(Ordering::Relaxed), 0);
        }
        // The executable can be submitted again.
        let go = event(&bench);
        go.complete().unwrap();
        let run = executable.submit_to(&bench.queue).with_event(&wait, &go).with_signal(&never, &event(&bench));
        run.with_signal(&signal, &event(&bench)).submit().unwrap().wait().unwrap();
        assert_eq!((bench.content(&a)[0], ran.load(Ordering::Relaxed)), (1, 1));
    }
}

/// Rule X1: an event that will never be completed fails at once, not only when the submission has ended.
#[test]
fn a_signal_that_cannot_come_fails_while_the_rest_goes_on() {
    let bench = Bench::new();
    let graph = bench.graph();
    let task = graph.host_task(|_| Err("it broke")).add().unwrap();
    let signal = graph.signal_event().after(task).add().unwrap();
    let wait = graph.wait_event().add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let (promised, awaited) = (event(&bench), event(&bench));
    let run = executable.submit_to(&bench.queue).with_signal(&signal, &promised).with_event(&wait, &awaited);
    let run = run.submit().unwrap();
    // The other branch waits until the failure was reported.
    let broke = SubmitError::HostTask { node: task, what: "host task".to_owned(), text: "it broke".to_owned() };
    assert_eq!(failure(promised.wait_for(LONG)), broke);
    assert!(!run.is_done().unwrap());
    awaited.complete().unwrap();
    assert_eq!(failure(run.wait()), broke);
}

/// Rules X1, S7: if an event that the submission itself waits for fails, the events that it completes fail too.
#[test]
fn a_submission_that_never_runs_fails_its_signals() {
    let steps = TwoSteps::new();
    let bench = &steps.bench;
    let executable = steps.executable(Path::Auto);
    let (before, signalled, go) = (event(bench), event(bench), event(bench));
    let run = executable.submit_to(&bench.queue).after(&before).with_signal(&steps.filled, &signalled);
    let run = run.with_event(&steps.go_on, &go).submit().unwrap();
    before.fail("never mind").unwrap();
    let error = failure(run.wait());
    let cause = Box::new(SubmitError::UserEvent { text: "never mind".to_owned() }.into());
    assert_eq!(error, SubmitError::DependencyFailed { cause });
    assert_eq!(failure(signalled.wait_for(LONG)), error);
    assert_eq!(steps.content(), (0, 0));
}

/// Rules X1, F3, S5: other work goes on, and dropping never waits.
#[test]
fn an_event_that_never_comes_holds_nobody_else() {
    let steps = TwoSteps::new();
    let bench = &steps.bench;
    let executable = steps.executable(Path::Auto);
    let (signalled, go) = (event(bench), event(bench));
    let queue = bench.another_queue(false);
    let run = executable
        .submit_to(&queue)
        .with_signal(&steps.filled, &signalled)
        .with_event(&steps.go_on, &go)
        .submit()
        .unwrap();
    drop(executable);
    let other = bench.graph();
    other.fill(&bench.buffer(&[0; LEN]), 1).add().unwrap();
    bench.run(&other);
    assert!(!run.is_done().unwrap());
    go.complete().unwrap();
    run.wait().unwrap();
    assert_eq!(steps.content(), (1, 2));
}

/// Rules X1, E3: a refused submission is dropped while no lock is held, even if that ends the event.
#[test]
fn a_refused_signal_whose_last_handle_it_was_hangs_nobody() {
    let steps = TwoSteps::new();
    let bench = &steps.bench;
    let read = steps.graph.read(&steps.second).after_all_leaves().add().unwrap();
    let executable = steps.graph.finalize(Finalize::new().result_slots(3)).unwrap();
    let submit = || executable.submit_to(&bench.queue);
    let ended = || {
        let go = event(bench);
        go.complete().unwrap();
        go
    };
    let last = event(bench);
    let first =
        submit().after(&last).with_signal(&steps.filled, &event(bench)).with_event(&steps.go_on, &ended()).submit();
    let first = first.unwrap();
    let second =
        submit().with_signal(&steps.filled, &event(bench)).with_event(&steps.go_on, &ended()).submit().unwrap();
    let third = submit().with_signal(&steps.filled, &event(bench)).with_event(&steps.go_on, &ended()).submit().unwrap();
    let refused = submit().with_signal(&steps.filled, &last).with_event(&steps.go_on, &ended());
    drop(last);
    // Another submission waits for the event that ends here, and needs the same locks.
    assert!(matches!(failure(refused.submit().map(drop)), SubmitError::NoSlot { .. }));
    let error = failure(first.wait_for(LONG));
    assert_eq!(error, SubmitError::DependencyFailed { cause: Box::new(SubmitError::UserEventDropped.into()) });
    second.wait_for(LONG).unwrap();
    third.wait_for(LONG).unwrap();
    assert_eq!(third.get(&read).unwrap()[0], 2);
}

/// Rule E3: a chain of failing submissions does not recurse.
#[test]
fn thousands_of_deferred_submissions_fail_one_after_the_other() {
    let bench = Bench::new();
    let graph = bench.graph();
    graph.fill(&bench.buffer(&[0; LEN]), 1).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let fails: [fn(UserEvent); 2] = [|event| event.fail("enough").unwrap(), drop];
    for fail in fails {
        let first = event(&bench);
        let mut last = executable.submit_to(&bench.queue).after(&first).submit().unwrap();
        for _ in 0..800 {
            last = executable.submit_to(&bench.queue).after(&last).submit().unwrap();
        }
        fail(first);
        assert!(matches!(failure(last.wait_for(LONG)), SubmitError::DependencyFailed { .. }));
    }
}

/// Rule E3: also at the end of a thread, when its thread-local variables are dropped.
#[test]
fn an_event_in_a_variable_of_a_thread_is_dropped_with_it() {
    thread_local! {
        static EVENT: std::cell::RefCell<Option<UserEvent>> = const { std::cell::RefCell::new(None) };
    }
    let bench = Bench::new();
    let graph = bench.graph();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let waiting = std::thread::spawn({
        let queue = bench.queue.clone();
        move || {
            // Stored first, so that it is dropped last.
            EVENT.with_borrow_mut(|event| *event = Some(UserEvent::new(&queue).unwrap()));
            EVENT.with_borrow(|event| executable.submit_to(&queue).after(event.as_ref().unwrap()).submit()).unwrap()
        }
    });
    let error = failure(waiting.join().unwrap().wait_for(LONG));
    assert_eq!(error, SubmitError::DependencyFailed { cause: Box::new(SubmitError::UserEventDropped.into()) });
}

/// Rule F3: an event that no driver has seen delays no release.
#[test]
fn a_pending_user_event_holds_no_memory() {
    let bench = Bench::new();
    let pending = event(&bench);
    let (buffer, tell) = bench.telling_buffer(&[1; LEN]);
    drop(buffer);
    tell.wait_until_gone();
    // An event that a driver may wait for delays releases until it has ended.
    let seen = pending.event();
    let (buffer, tell) = bench.telling_buffer(&[1; LEN]);
    drop(buffer);
    bench.let_threads_run();
    assert!(!tell.is_gone());
    pending.complete().unwrap();
    tell.wait_until_gone();
    drop(seen);
}

/// Rule X1: such a submission would never begin.
#[test]
fn a_submission_that_waits_for_its_own_signal_is_refused() {
    let steps = TwoSteps::new();
    let bench = &steps.bench;
    let (own, go) = (event(bench), event(bench));
    let submit = steps.executable(Path::Auto);
    let submit =
        submit.submit_to(&bench.queue).after(&own).with_signal(&steps.filled, &own).with_event(&steps.go_on, &go);
    assert_eq!(failure(submit.submit().map(drop)), SubmitError::OwnEvent { node: steps.filled.node() });
    // The node that completes an event must not be after the node that waits for it. The reverse is allowed.
    let executable = steps.executable(Path::Auto);
    let graph = bench.graph();
    let wait = graph.wait_event().add().unwrap();
    let signal = graph.signal_event().after(wait).add().unwrap();
    let beside = graph.signal_event().add().unwrap();
    let circle = graph.finalize(Finalize::new()).unwrap();
    let submit = circle.submit_to(&bench.queue).with_event(&wait, &own).with_signal(&signal, &own);
    let submit = submit.with_signal(&beside, &event(bench)).submit();
    assert_eq!(failure(submit.map(drop)), SubmitError::OwnEvent { node: signal.node() });
    let submit = circle.submit_to(&bench.queue).with_event(&wait, &own).with_signal(&beside, &own);
    submit.with_signal(&signal, &event(bench)).submit().unwrap().wait().unwrap();
    let (own, go) = (event(bench), event(bench));
    go.complete().unwrap();
    let again = executable.submit_to(&bench.queue).with_signal(&steps.filled, &own).with_event(&steps.go_on, &own);
    again.submit().unwrap().wait().unwrap();
}

/// Rules X1, U3: an update while a node waits does not change the submission.
#[test]
fn an_update_while_a_node_waits_is_for_the_next_submission() {
    for path in PATHS {
        let steps = TwoSteps::new();
        let bench = &steps.bench;
        let fill = steps.graph.nodes()[3];
        let executable = steps.graph.finalize(Finalize::new().path(path).updatable()).unwrap();
        let go = event(bench);
        let submit = |go: &UserEvent| {
            let signalled = event(bench);
            let run =
                executable.submit_to(&bench.queue).with_signal(&steps.filled, &signalled).with_event(&steps.go_on, go);
            let run = run.submit().unwrap();
            signalled.wait_for(LONG).unwrap();
            run
        };
        let first = submit(&go);
        steps.graph.fill(&steps.second, 9).replace(fill).unwrap();
        executable.update(&fill).unwrap();
        go.complete().unwrap();
        first.wait().unwrap();
        assert_eq!(steps.content(), (1, 2));
        submit(&go).wait().unwrap();
        assert_eq!(steps.content(), (1, 9));
    }
}

/// Rule X1: on queues and for the host it is an event like any other.
#[test]
fn a_user_event_is_an_event_like_others() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; LEN]);
    let go = event(&bench);
    let filled = bench.queue.enqueue_fill_buffer(&a, &[1], 0, 4 * LEN, &[&go.event()]).unwrap();
    bench.queue.flush().unwrap();
    let graph = bench.graph();
    graph.fill(&a, 2).add().unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit_to(&bench.queue).after(&go).submit().unwrap();
    assert!(matches!(failure(go.wait_for(SHORT)), SubmitError::TimedOut(_)));
    assert!(!go.is_done() && !run.is_done().unwrap());
    let clone = go.clone();
    assert_eq!(clone, go);
    drop(go);
    std::thread::spawn(move || clone.complete()).join().unwrap().unwrap();
    filled.wait().unwrap();
    run.wait().unwrap();
    assert_eq!(bench.content(&a), [2; LEN]);
    assert!(format!("{:?}", event(&bench)).contains("pending"));
}

/// Rules X1, H3: a host task may give data to a write that will never run because an event failed. What waits for the task
/// alone runs.
#[test]
fn a_task_may_set_the_input_of_a_write_that_was_given_up() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[0; 4]), bench.buffer(&[0; 4]));
    let graph = bench.graph();
    let wait = graph.wait_event().add().unwrap();
    let (handle, failed) = (Arc::new(OnceLock::<HostWrite<u32>>::new()), Arc::new(Barrier::new(2)));
    let (write, has_failed) = (Arc::clone(&handle), Arc::clone(&failed));
    let give = move |task: &HostTaskContext<'_>| {
        has_failed.wait();
        task.put(write.wait(), [5; 4])
    };
    let task = graph.host_task(give).add().unwrap();
    let write = graph.write(&a, [0; 4]).after(task).after(wait).add().unwrap();
    handle.set(write).unwrap();
    graph.fill(&b, 9).after(task).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let event = UserEvent::new(&bench.queue).unwrap();
    let run = executable.submit_to(&bench.queue).with_event(&wait, &event).submit().unwrap();
    event.fail("planned").unwrap();
    // The failure of the event arrives on another thread.
    std::thread::sleep(Duration::from_millis(50));
    failed.wait();
    let cause = Box::new(SubmitError::UserEvent { text: "planned".to_owned() }.into());
    assert_eq!(failure(run.wait()), SubmitError::ExternalEvent { node: wait.node(), cause });
    assert_eq!(bench.content(&b), [9; 4]);
}

/// Rule X1: who has seen a submission fail sees that the events that it would have completed have failed.
#[test]
fn signals_have_failed_when_the_wait_returns() {
    let bench = Bench::new();
    let graph = bench.graph();
    graph.fill(&bench.buffer(&[0; 4]), 1).add().unwrap();
    let signal = graph.signal_event().add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    for _ in 0..200 {
        let [first, event] = [(); 2].map(|()| UserEvent::new(&bench.queue).unwrap());
        let run = executable.submit_to(&bench.queue).after(&first).with_signal(&signal, &event).submit().unwrap();
        first.fail("planned").unwrap();
        run.wait().unwrap_err();
        assert!(event.is_done());
    }
}
