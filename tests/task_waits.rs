//! Host tasks that wait. A wait that cannot end is refused, whichever threads enqueue meanwhile.

mod common;

use std::future::{Future, IntoFuture};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use clgraph::{
    Error, EventSignal, Executable, ExecutionStatus, Finalize, Graph, HostTaskContext, MapRead, Progress, Queue,
    Result, Submission, SubmissionFuture, SubmitError, UserEvent,
};
use common::{Bench, Reason, assert_error, skip};

const LEN: usize = 64;
const LONG: Duration = Duration::from_secs(60);

/// An executable that does something, on memory of its own.
fn something(bench: &Bench) -> Executable {
    let graph = bench.graph();
    graph.fill(&bench.buffer(&[0; LEN]), 1).add().unwrap();
    graph.finalize(Finalize::new()).unwrap()
}

/// Asserts that a host task failed, because a call in it would have waited for its own submission.
#[track_caller]
fn waited_for_itself(outcome: Result<()>) {
    let reason = SubmitError::OwnSubmission.to_string();
    assert_error!(outcome, SubmitError::HostTask { text, .. } if *text == reason);
}

/// A host task of one queue waits on another queue, on which another thread enqueues something that comes after the task:
/// the task was first, or its wait is refused.
fn race(
    bench: &Bench,
    wait: impl Fn(&Queue) -> Result<()> + Send + Sync + 'static,
    later: impl Fn(&Queue, &Submission) -> Result<()>,
) {
    let (own, other) = (bench.another_queue(false), bench.another_queue(false));
    let wait = Arc::new(wait);
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..200 {
        let both = Arc::new(Barrier::new(2));
        let (queue, begins, wait) = (other.clone(), Arc::clone(&both), Arc::clone(&wait));
        let (first, second) = (random.usize(..3000), random.usize(..3000));
        let task = move |_: &HostTaskContext<'_>| -> Result<()> {
            begins.wait();
            (0..first).for_each(|_| std::hint::spin_loop());
            wait(&queue)
        };
        let run = own.enqueue_host_task(task, &[]).unwrap();
        both.wait();
        (0..second).for_each(|_| std::hint::spin_loop());
        later(&other, &run).unwrap();
        other.flush().unwrap();
        let outcome = run.wait_for(LONG);
        if outcome.is_err() {
            waited_for_itself(outcome);
        }
    }
}

fn barrier(queue: &Queue, task: &Submission) -> Result<()> {
    queue.enqueue_barrier_with_wait_list(&[&task.event()?]).map(drop)
}

/// Rule H1: whatever another thread enqueues meanwhile.
#[test]
fn a_task_finishes_a_queue_while_a_barrier_comes() {
    race(&Bench::new(), Queue::finish, barrier);
}

/// Rule H1
#[test]
fn a_task_reads_while_a_barrier_comes() {
    let bench = Bench::new();
    let buffer = bench.buffer(&[0; LEN]);
    race(&bench, move |queue| queue.enqueue_read_buffer(&buffer, 0, &mut [0; LEN], &[]).map(drop), barrier);
}

/// Rule H1
#[test]
fn a_task_writes_while_a_barrier_comes() {
    let bench = Bench::new();
    let buffer = bench.buffer(&[0; LEN]);
    race(&bench, move |queue| queue.enqueue_write_buffer(&buffer, 0, &[1; LEN], &[]).map(drop), barrier);
}

/// Rule H1
#[test]
fn a_task_maps_while_a_barrier_comes() {
    let bench = Bench::new();
    let buffer = bench.buffer(&[0; LEN]);
    // SAFETY: nothing else uses the buffer.
    race(&bench, move |queue| Ok(unsafe { queue.map(&buffer, MapRead, &[])? }.unmap()?), barrier);
}

/// Rule H1
#[test]
fn a_task_waits_for_a_marker_while_a_barrier_comes() {
    race(&Bench::new(), |queue| queue.enqueue_marker_with_wait_list(&[])?.wait(), barrier);
}

/// Rule H1
#[test]
fn a_task_waits_for_a_fill_while_a_barrier_comes() {
    let bench = Bench::new();
    let buffer = bench.buffer(&[0; LEN]);
    race(&bench, move |queue| queue.enqueue_fill_buffer(&buffer, &[1], 0, 4, &[])?.wait(), barrier);
}

/// Rule H1
#[test]
fn a_task_waits_while_a_submission_comes() {
    let bench = Bench::new();
    let (inner, later) = (something(&bench), something(&bench));
    let submission = |queue: &Queue, task: &Submission| later.submit_to(queue).after(task).submit().map(drop);
    race(&bench, |queue| queue.enqueue_marker_with_wait_list(&[])?.wait(), submission);
    race(&bench, move |queue| inner.submit(queue)?.wait(), submission);
}

/// Rule H1: a function that two executables share runs once at a time. Where it waits for the other executable, whose task waits
/// for it, one of both is refused.
#[test]
fn a_task_that_waits_for_the_own_function_is_refused() {
    let bench = Bench::new();
    for by_update in [false, true] {
        let (graph, queue) = (bench.graph(), bench.another_queue(false));
        let other: Arc<OnceLock<Executable>> = Arc::default();
        let (slot, mut is_first) = (Arc::clone(&other), true);
        let task = move |_: &HostTaskContext<'_>| -> Result<()> {
            if std::mem::take(&mut is_first) { slot.wait().submit(&queue)?.wait() } else { Ok(()) }
        };
        graph.host_task(task).add().unwrap();
        let one = graph.finalize(Finalize::new()).unwrap();
        let two = if by_update {
            let second = Graph::new(&bench.queue).unwrap();
            second.host_task(|_| ()).add().unwrap();
            let two = second.finalize(Finalize::new().updatable()).unwrap();
            two.update_from(&graph).unwrap();
            two
        } else {
            graph.finalize(Finalize::new()).unwrap()
        };
        other.set(two).unwrap();
        let reason = SubmitError::OwnSubmission.to_string();
        assert_error!(
            one.submit(&bench.queue).unwrap().wait_for(LONG),
            SubmitError::HostTask { text, .. } if text.ends_with(&reason),
            "{by_update}",
        );
        // Both can run afterwards.
        one.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        other.wait().submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
    }
}

/// Rule H1: a submission that would complete what an earlier host task waits for already is refused; on another queue it is not.
#[test]
fn a_signal_that_comes_after_the_task_that_waits_for_it_is_refused() {
    let bench = Bench::new();
    let heard = UserEvent::new(&bench.queue).unwrap();
    let (event, (begins, begun)) = (heard.clone(), std::sync::mpsc::channel());
    let task = move |_: &HostTaskContext<'_>| -> Result<()> {
        begins.send(()).unwrap();
        event.wait()
    };
    let waits = bench.queue.enqueue_host_task(task, &[]).unwrap();
    begun.recv().unwrap();
    let graph = bench.graph();
    let signal = graph.signal_event().add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    // The task is about to wait: until it does, the submission is accepted, and then the wait is refused.
    let late = executable.submit_to(&bench.queue).with_signal(&signal, &heard).submit();
    match late {
        Ok(run) => {
            waited_for_itself(waits.wait_for(LONG));
            run.wait_for(LONG).unwrap();
        }
        Err(error) => {
            assert!(matches!(error, Error::Submit(SubmitError::UserEventAwaited)), "{error}");
            // Nothing has changed: another queue is right, and the first one goes on.
            let other = bench.another_queue(false);
            let run = executable.submit_to(&other).with_signal(&signal, &heard).submit().unwrap();
            run.wait_for(LONG).unwrap();
            waits.wait_for(LONG).unwrap();
            bench.queue.finish().unwrap();
        }
    }
}

/// An executable whose only node completes an event.
fn signaller(bench: &Bench) -> (Executable, EventSignal) {
    let graph = bench.graph();
    let signal = graph.signal_event().add().unwrap();
    (graph.finalize(Finalize::new()).unwrap(), signal)
}

/// Starts a host task on a queue that waits, and returns when it does.
fn waiting(bench: &Bench, queue: &Queue, wait: impl Fn() -> Result<()> + Send + 'static) -> Submission {
    let run = queue.enqueue_host_task(move |_: &HostTaskContext<'_>| wait(), &[]).unwrap();
    while matches!(run.progress().unwrap(), Progress::Waiting) {
        std::thread::yield_now();
    }
    // It is in the function, or about to be: the tests accept both.
    bench.let_threads_run();
    run
}

/// One of the waits, or the signal that closes the circle, is refused.
fn one_is_refused(waits: &Submission, late: Result<Submission>) {
    match late {
        Ok(late) => {
            waited_for_itself(waits.wait_for(LONG));
            late.wait_for(LONG).unwrap();
        }
        Err(error) => assert!(matches!(error, Error::Submit(SubmitError::UserEventAwaited)), "{error}"),
    }
}

/// Rule H1: the same where the task waits for what waits for the event: a submission, or a command.
#[test]
fn a_signal_that_comes_after_a_task_that_waits_for_its_effect_is_refused() {
    let bench = Bench::new();
    let buffer = bench.buffer(&[0; LEN]);
    for by_command in [false, true] {
        let (own, other) = (bench.another_queue(false), bench.another_queue(false));
        let event = UserEvent::new(&bench.queue).unwrap();
        let waits = if by_command {
            let command = other.enqueue_fill_buffer(&buffer, &[1], 0, 4, &[&event.event()]).unwrap();
            waiting(&bench, &own, move || command.wait())
        } else {
            let effect = something(&bench).submit_to(&other).after(&event).submit().unwrap();
            waiting(&bench, &own, move || effect.wait())
        };
        let (late, signal) = signaller(&bench);
        let late = late.submit_to(&own).with_signal(&signal, &event).submit();
        let refused = late.is_err();
        one_is_refused(&waits, late);
        if refused {
            event.complete().unwrap();
            waits.wait_for(LONG).unwrap();
        }
    }
}

/// Rule H1: a chain: the task waits for an event that a submission completes after another event, whose signal is late.
#[test]
fn a_late_signal_at_the_end_of_a_chain_is_refused() {
    let bench = Bench::new();
    let (own, other) = (bench.another_queue(false), bench.another_queue(false));
    let (first, second) = (UserEvent::new(&bench.queue).unwrap(), UserEvent::new(&bench.queue).unwrap());
    let event = first.clone();
    let waits = waiting(&bench, &own, move || event.wait());
    let (middle, signal) = signaller(&bench);
    let middle = middle.submit_to(&other).after(&second).with_signal(&signal, &first).submit().unwrap();
    let (late, signal) = signaller(&bench);
    let late = late.submit_to(&own).with_signal(&signal, &second).submit();
    let refused = late.is_err();
    one_is_refused(&waits, late);
    if refused {
        second.complete().unwrap();
        waits.wait_for(LONG).unwrap();
    }
    middle.wait_for(LONG).unwrap();
}

/// What is before the node of a submission that completes an event: it waits for another event.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Before {
    Node,
    NodeAndTask,
    Call,
    Future,
    CallInLoop,
    FutureInLoop,
}

/// A submission that completes `second` after something in it has waited for `first`. Returns when that has begun, if
/// the submission is accepted.
fn passes_on(
    bench: &Bench,
    queue: &Queue,
    before: Before,
    first: &UserEvent,
    second: &UserEvent,
) -> Result<Submission> {
    let graph = bench.graph();
    if matches!(before, Before::Node | Before::NodeAndTask) {
        let waits = graph.wait_event().add().unwrap();
        let mut signals = graph.signal_event().after(waits);
        if before == Before::NodeAndTask {
            signals = signals.after(graph.host_task(|_| ()).after(waits).add().unwrap());
        }
        let signals = signals.add().unwrap();
        let executable = graph.finalize(Finalize::new()).unwrap();
        return executable.submit_to(queue).with_event(&waits, first).with_signal(&signals, second).submit();
    }
    let (event, effect) = (first.clone(), something(bench));
    let effect = effect.submit_to(&bench.another_queue(false)).after(first).submit().unwrap();
    let (begins, begun) = mpsc::channel();
    let task = move |_: &HostTaskContext<'_>| -> Result<()> {
        let _ = begins.send(());
        match before {
            Before::Future | Before::FutureInLoop => block_on(&effect, || ()),
            _ => event.wait(),
        }
    };
    let last = if matches!(before, Before::CallInLoop | Before::FutureInLoop) {
        let body = bench.graph();
        body.host_task(task).add().unwrap();
        graph.repeat(2, &body.finalize(Finalize::new()).unwrap()).add().unwrap().node()
    } else {
        graph.host_task(task).add().unwrap()
    };
    let signals = graph.signal_event().after(last).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let run = executable.submit_to(queue).with_signal(&signals, second).submit()?;
    begun.recv().unwrap();
    // The tests accept that its wait has begun, and that it has not.
    bench.let_threads_run();
    Ok(run)
}

/// Starts a host task that waits for an event, in one of several ways.
fn waits_for(bench: &Bench, queue: &Queue, event: &UserEvent, by_future: bool, in_loop: bool) -> Submission {
    let (event, (begins, begun)) = (event.clone(), mpsc::channel());
    let effect = something(bench).submit_to(&bench.another_queue(false)).after(&event).submit().unwrap();
    let task = move |_: &HostTaskContext<'_>| -> Result<()> {
        let _ = begins.send(());
        if by_future { block_on(&effect, || ()) } else { event.wait() }
    };
    let (graph, body) = (bench.graph(), bench.graph());
    if in_loop {
        body.host_task(task).add().unwrap();
        graph.repeat(2, &body.finalize(Finalize::new()).unwrap()).add().unwrap();
    } else {
        graph.host_task(task).add().unwrap();
    }
    let run = graph.finalize(Finalize::new()).unwrap().submit(queue).unwrap();
    begun.recv().unwrap();
    bench.let_threads_run();
    run
}

/// Asserts that of what closes a circle something was refused, and that all of it ends when that one is not there.
fn ends_without_what_is_refused(what: &str, all: [Result<Submission>; 3], of_refused: &UserEvent) {
    let is_refused = |outcome: &Result<Submission>| match outcome {
        Err(Error::Submit(SubmitError::UserEventAwaited)) => true,
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => false,
    };
    let was_refused = all.iter().any(is_refused);
    if was_refused {
        of_refused.complete().unwrap();
    }
    let outcomes = all.into_iter().flatten().map(|run| run.wait_for(LONG));
    let failed: Vec<String> = outcomes.filter_map(|outcome| outcome.err().map(|error| error.to_string())).collect();
    let reason = SubmitError::OwnSubmission.to_string();
    // Either is enough, and one failure may make others fail.
    assert_eq!(failed.is_empty(), was_refused, "{what}: {failed:?}");
    assert!(failed.iter().all(|text| text.contains(&reason)), "{what}: {failed:?}");
}

/// Rule H1: a task waits for an event that a submission completes after it has waited for another one, half-way. What would
/// complete the other one after the task is refused, whatever comes last.
#[test]
fn a_circle_over_what_is_before_a_signal_is_refused() {
    use Before::{Call, CallInLoop, Future, FutureInLoop, Node, NodeAndTask};
    let bench = Bench::new();
    let ways = [(false, false), (true, false), (false, true), (true, true)];
    // Refused futures take their time, so all are tried at once.
    std::thread::scope(|scope| {
        for before in [Node, NodeAndTask, Call, Future, CallInLoop, FutureInLoop] {
            for (by_future, in_loop) in ways {
                let bench = &bench;
                scope.spawn(move || {
                    for signal_first in [false, true] {
                        circle(bench, before, by_future, in_loop, signal_first);
                    }
                });
            }
        }
    });
}

/// A circle of three: a host task that waits, what completes its event after another one, and what completes that after the task.
fn circle(bench: &Bench, before: Before, by_future: bool, in_loop: bool, signal_first: bool) {
    let what = format!("{before:?}, by future: {by_future}, in a loop: {in_loop}, signal first: {signal_first}");
    let (own, other) = (bench.another_queue(false), bench.another_queue(false));
    let (first, second) = (UserEvent::new(&bench.queue).unwrap(), UserEvent::new(&bench.queue).unwrap());
    let (late, signal) = signaller(bench);
    let late = || late.submit_to(&own).with_signal(&signal, &first).submit();
    if signal_first {
        let waits = waits_for(bench, &own, &second, by_future, in_loop);
        let late = late();
        let passes = passes_on(bench, &other, before, &first, &second);
        ends_without_what_is_refused(&what, [Ok(waits), late, passes], &second);
    } else {
        let passes = passes_on(bench, &other, before, &first, &second);
        let waits = waits_for(bench, &own, &second, by_future, in_loop);
        ends_without_what_is_refused(&what, [passes, Ok(waits), late()], &first);
    }
}

/// Rule H1: a submission that completes one event beside its wait for another, and a third one after it. What completes the
/// other one after the first closes no circle, whichever comes first.
#[test]
fn a_signal_beside_a_wait_of_its_submission_is_not_refused() {
    let bench = Bench::new();
    for late_first in [false, true] {
        let (own, other) = (bench.another_queue(false), bench.another_queue(false));
        let [first, second, third] = [(); 3].map(|()| UserEvent::new(&bench.queue).unwrap());
        let graph = bench.graph();
        let beside = graph.signal_event().add().unwrap();
        let waits = graph.wait_event().add().unwrap();
        let after = graph.signal_event().after(waits).add().unwrap();
        let executable = graph.finalize(Finalize::new()).unwrap();
        let run = || {
            let run = executable.submit_to(&own).with_event(&waits, &first);
            run.with_signal(&beside, &second).with_signal(&after, &third).submit().unwrap()
        };
        let late = || passes_on(&bench, &other, Before::NodeAndTask, &second, &first).unwrap();
        let all = if late_first { [late(), run()] } else { [run(), late()] };
        all.iter().for_each(|run| run.wait_for(LONG).unwrap());
        third.wait().unwrap();
    }
}

/// Rule H1: events that two submissions complete for each other, half-way: nothing is refused.
#[test]
fn signals_half_way_are_not_refused() {
    let bench = Bench::new();
    let (own, other) = (bench.another_queue(false), bench.another_queue(false));
    let (first, second) = (UserEvent::new(&bench.queue).unwrap(), UserEvent::new(&bench.queue).unwrap());
    // The one completes an event, and has a task that waits for the answer, beside.
    let graph = bench.graph();
    let asks = graph.signal_event().add().unwrap();
    let answered = graph.wait_event().after(asks).add().unwrap();
    let run = graph.finalize(Finalize::new()).unwrap();
    let run = run.submit_to(&own).with_signal(&asks, &first).with_event(&answered, &second).submit().unwrap();
    let graph = bench.graph();
    let asked = graph.wait_event().add().unwrap();
    let answers = graph.signal_event().after(asked).add().unwrap();
    let other_run = graph.finalize(Finalize::new()).unwrap();
    let other_run =
        other_run.submit_to(&other).with_event(&asked, &first).with_signal(&answers, &second).submit().unwrap();
    run.wait_for(LONG).unwrap();
    other_run.wait_for(LONG).unwrap();
}

/// Rule H1: a deferred submission that fails leaves the queue as it was: held by the task before it.
#[test]
fn a_submission_that_fails_opens_no_gate_but_its_own() {
    let bench = Bench::new();
    let (own, other) = (bench.another_queue(false), bench.another_queue(false));
    let (executable, buffer) = (something(&bench), bench.buffer(&[0; LEN]));
    let (queue, context) = (own.clone(), bench.queue.clone());
    let task = move |_: &HostTaskContext<'_>| -> Result<()> {
        let event = UserEvent::new(&context)?;
        let failed = executable.submit_to(&queue).after(&event).submit()?;
        event.fail("no input")?;
        while !failed.is_done()? {
            std::thread::yield_now();
        }
        // They come after the task's own submission, by way of another queue.
        let first = queue.enqueue_fill_buffer(&buffer, &[1], 0, 4, &[])?;
        other.enqueue_fill_buffer(&buffer, &[2], 0, 4, &[&first])?.wait()
    };
    let run = own.enqueue_host_task(task, &[]).unwrap();
    waited_for_itself(run.wait_for(LONG));
}

/// Rules F2, H1: many executables with one function, on many queues: the calls never overlap, and all end.
#[test]
fn a_function_of_many_executables_runs_once_at_a_time() {
    let bench = Bench::new();
    let graph = bench.graph();
    let (inside, calls) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (within, count) = (Arc::clone(&inside), Arc::clone(&calls));
    let task = move |_: &HostTaskContext<'_>| {
        assert_eq!(within.fetch_add(1, Ordering::SeqCst), 0);
        std::thread::yield_now();
        count.fetch_add(1, Ordering::SeqCst);
        within.fetch_sub(1, Ordering::SeqCst);
    };
    graph.host_task(task).add().unwrap();
    let all: Vec<(Executable, Queue)> =
        (0..16).map(|_| (graph.finalize(Finalize::new()).unwrap(), bench.another_queue(false))).collect();
    let runs: Vec<Submission> =
        (0..20).flat_map(|_| all.iter().map(|(executable, queue)| executable.submit(queue).unwrap())).collect();
    runs.iter().for_each(|run| run.wait_for(LONG).unwrap());
    assert_eq!(calls.load(Ordering::SeqCst), 320);
}

/// Wakes a thread.
struct Unparks(std::thread::Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks until a submission has ended, as executors do. `pending` is called when it has begun to wait.
fn block_on(run: impl IntoFuture<IntoFuture = SubmissionFuture>, pending: impl FnOnce()) -> Result<()> {
    let (mut future, mut pending) = (pin!(run.into_future()), Some(pending));
    let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
    loop {
        if let std::task::Poll::Ready(outcome) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return outcome;
        }
        pending.take().into_iter().for_each(|pending| pending());
        std::thread::park();
    }
}

/// Asserts that a task failed, because it or a task that it waited for would have waited for its own submission.
#[track_caller]
fn closed_a_circle(outcome: Result<()>) {
    let reason = SubmitError::OwnSubmission.to_string();
    assert_error!(outcome, SubmitError::HostTask { text, .. } if text.ends_with(&reason));
}

/// Rule H1: a future that a task awaits is a wait as others are: a task that is awaited cannot wait for the one that awaits.
#[test]
fn a_task_that_is_awaited_cannot_wait_for_the_one_that_awaits() {
    let bench = Bench::new();
    for back in 0..3 {
        let (own, other) = (bench.another_queue(false), bench.another_queue(false));
        let outer: Arc<OnceLock<Submission>> = Arc::default();
        let (slot, queue) = (Arc::clone(&outer), own.clone());
        let task = move |_: &HostTaskContext<'_>| -> Result<()> {
            let (slot, queue) = (Arc::clone(&slot), queue.clone());
            let awaited = Arc::new(Barrier::new(2));
            let is_awaited = Arc::clone(&awaited);
            let inner = move |_: &HostTaskContext<'_>| -> Result<()> {
                is_awaited.wait();
                match back {
                    0 => slot.wait().wait(),
                    1 => queue.finish(),
                    _ => block_on(slot.wait(), || ()),
                }
            };
            block_on(other.enqueue_host_task(inner, &[])?, || {
                awaited.wait();
            })
        };
        let run = own.enqueue_host_task(task, &[]).unwrap();
        outer.set(run.clone()).unwrap();
        closed_a_circle(run.wait_for(LONG));
    }
}

/// Rule H1: two tasks that await what comes after the other.
#[test]
fn of_tasks_that_await_each_other_one_is_refused() {
    let bench = Bench::new();
    let queues = [bench.another_queue(false), bench.another_queue(false)];
    let later: [Arc<OnceLock<Submission>>; 2] = Default::default();
    let executables = [something(&bench), something(&bench)];
    let runs = [0, 1].map(|at: usize| {
        let awaited = Arc::clone(&later[1 - at]);
        let task = move |_: &HostTaskContext<'_>| block_on(awaited.wait(), || ());
        queues[at].enqueue_host_task(task, &[]).unwrap()
    });
    for at in 0..2 {
        later[at].set(executables[at].submit_to(&queues[at]).after(&runs[at]).submit().unwrap()).unwrap();
    }
    let outcomes = runs.map(|run| run.wait_for(LONG));
    let reason = SubmitError::OwnSubmission.to_string();
    let is_refused = |outcome: &Result<()>| matches!(outcome, Err(Error::Submit(SubmitError::HostTask { text, .. })) if *text == reason);
    assert!(outcomes.iter().all(Result::is_err) && outcomes.iter().any(is_refused), "{outcomes:?}");
}

/// Rule H1: a function that two executables share, which awaits the other executable, whose task waits for the function.
#[test]
fn a_task_that_awaits_the_own_function_is_refused() {
    let bench = Bench::new();
    for limited in [false, true] {
        let (graph, queue) = (bench.graph(), bench.another_queue(false));
        let other: Arc<OnceLock<Executable>> = Arc::default();
        let (slot, mut is_first) = (Arc::clone(&other), true);
        let task = move |_: &HostTaskContext<'_>| -> Result<()> {
            if !std::mem::take(&mut is_first) {
                return Ok(());
            }
            let run = slot.wait().submit(&queue)?;
            if !limited {
                return block_on(run, || ());
            }
            // Its task waits for this function, or is about to: so this is refused, or takes its time.
            while matches!(run.progress()?, Progress::Waiting) {
                std::thread::yield_now();
            }
            let outcome = run.wait_for(Duration::from_millis(100));
            assert!(matches!(outcome, Err(Error::Submit(SubmitError::OwnSubmission | SubmitError::TimedOut(_)))));
            outcome
        };
        graph.host_task(task).add().unwrap();
        let one = graph.finalize(Finalize::new()).unwrap();
        other.set(graph.finalize(Finalize::new()).unwrap()).unwrap();
        let outcome = one.submit(&bench.queue).unwrap().wait_for(LONG);
        if limited {
            assert!(outcome.is_err())
        } else {
            closed_a_circle(outcome)
        }
        one.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        other.wait().submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
    }
}

/// Rule H1: a submission that would complete what an earlier host task awaits is refused, or the task is.
#[test]
fn a_signal_that_comes_after_a_task_that_awaits_its_effect_is_refused() {
    let bench = Bench::new();
    let (own, other) = (bench.another_queue(false), bench.another_queue(false));
    let event = UserEvent::new(&bench.queue).unwrap();
    let effect = something(&bench).submit_to(&other).after(&event).submit().unwrap();
    let (awaits, awaited) = mpsc::channel();
    let task = move |_: &HostTaskContext<'_>| block_on(&effect, || awaits.send(()).unwrap());
    let waits = own.enqueue_host_task(task, &[]).unwrap();
    awaited.recv().unwrap();
    let (late, signal) = signaller(&bench);
    let late = late.submit_to(&own).with_signal(&signal, &event).submit();
    assert!(matches!(late, Err(Error::Submit(SubmitError::UserEventAwaited))), "{late:?}");
    event.complete().unwrap();
    waits.wait_for(LONG).unwrap();
}

/// Rule H1: a future that a task has polled and does not await: it drops it, hands it to another thread, or keeps it
/// while the next task of its submission runs. Then what the future stands for may wait for that submission.
#[test]
fn a_future_that_is_polled_and_not_awaited_refuses_no_wait() {
    let bench = Bench::new();
    for what in 0..3 {
        let (own, other) = (bench.another_queue(false), bench.another_queue(false));
        let outer: Arc<OnceLock<Submission>> = Arc::default();
        let (slot, begun) = (Arc::clone(&outer), Arc::new(Barrier::new(2)));
        let inner: Arc<OnceLock<Submission>> = Arc::default();
        let kept: Arc<Mutex<Option<SubmissionFuture>>> = Arc::default();
        let graph = bench.graph();
        let (first, keeps, begins) = (Arc::clone(&inner), Arc::clone(&kept), Arc::clone(&begun));
        let task = move |_: &HostTaskContext<'_>| -> Result<()> {
            let (slot, begins) = (Arc::clone(&slot), Arc::clone(&begins));
            let waits = move |_: &HostTaskContext<'_>| -> Result<()> {
                begins.wait();
                slot.wait().wait()
            };
            let run = other.enqueue_host_task(waits, &[])?;
            let mut future = (&run).into_future();
            assert!(Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop())).is_pending());
            match what {
                0 => drop(future),
                1 => drop(std::thread::spawn(move || block_on(future, || ()))),
                _ => *keeps.lock().unwrap() = Some(future),
            }
            first.set(run).unwrap();
            Ok(())
        };
        let first = graph.host_task(task).add().unwrap();
        let let_run = move |_: &HostTaskContext<'_>| {
            begun.wait();
        };
        graph.host_task(let_run).after(first).add().unwrap();
        let run = graph.finalize(Finalize::new()).unwrap().submit(&own).unwrap();
        outer.set(run.clone()).unwrap();
        run.wait_for(LONG).unwrap();
        inner.wait().wait_for(LONG).unwrap();
        if let Some(future) = kept.lock().unwrap().take() {
            block_on(future, || ()).unwrap();
        }
    }
}

/// Rule H1: an executor may poll for others in a host task: a future that would wait for that task, or for what comes after
/// it. That is no error, if the one who awaits it polls it later.
#[test]
fn a_future_that_a_task_polls_for_another_one_is_not_refused() {
    let bench = Bench::new();
    for after in [false, true] {
        let (own, other, third) = (bench.another_queue(false), bench.another_queue(false), bench.another_queue(false));
        let slot: Arc<OnceLock<Submission>> = Arc::default();
        let awaited = Arc::clone(&slot);
        let (hands_over, handed) = mpsc::channel();
        let task = move |_: &HostTaskContext<'_>| {
            let mut future = awaited.wait().into_future();
            for _ in 0..3 {
                let polled = Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()));
                assert!(polled.is_pending(), "{polled:?}");
            }
            hands_over.send(future).unwrap();
        };
        let run = own.enqueue_host_task(task, &[]).unwrap();
        let awaits = move |_: &HostTaskContext<'_>| block_on(handed.recv().unwrap(), || ());
        let awaits = other.enqueue_host_task(awaits, &[]).unwrap();
        slot.set(if after { something(&bench).submit_to(&third).after(&run).submit().unwrap() } else { run.clone() })
            .unwrap();
        run.wait_for(LONG).unwrap();
        awaits.wait_for(LONG).unwrap();
    }
}

/// Rule H1: who polls in vain is woken for the poll that is refused, once for a future, however often it was polled.
#[test]
fn a_future_that_closes_a_circle_is_refused_when_it_is_polled_again() {
    let bench = Bench::new();
    let own = bench.another_queue(false);
    let slot: Arc<OnceLock<Submission>> = Arc::default();
    let itself = Arc::clone(&slot);
    let task = move |_: &HostTaskContext<'_>| {
        let mut futures = [(); 50].map(|()| itself.wait().into_future());
        let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
        loop {
            let polls = futures.iter_mut().map(|one| Pin::new(one).poll(&mut Context::from_waker(&waker)));
            let ready: Vec<Result<()>> = polls
                .filter_map(|poll| if let std::task::Poll::Ready(outcome) = poll { Some(outcome) } else { None })
                .collect();
            if let Some(outcome) = ready.into_iter().next() {
                return outcome;
            }
            std::thread::park();
        }
    };
    let run = own.enqueue_host_task(task, &[]).unwrap();
    slot.set(run.clone()).unwrap();
    waited_for_itself(run.wait_for(LONG));
}

/// Rule H1: a task that awaits the first of several things. A wait that would close a circle if the task awaited this one only
/// is not refused while the other may still come.
#[test]
fn a_task_that_awaits_the_first_of_several_refuses_no_wait_at_once() {
    let bench = Bench::new();
    let (own, other) = (bench.another_queue(false), bench.another_queue(false));
    let outer: Arc<OnceLock<Submission>> = Arc::default();
    let slot = Arc::clone(&outer);
    let (waits, inner) = (Arc::new(Barrier::new(2)), Arc::new(OnceLock::<Submission>::new()));
    let awaited = Arc::clone(&inner);
    let context = bench.queue.clone();
    let task = move |_: &HostTaskContext<'_>| -> Result<()> {
        let (slot, begins) = (Arc::clone(&slot), Arc::clone(&waits));
        let inner = move |_: &HostTaskContext<'_>| -> Result<()> {
            begins.wait();
            slot.wait().wait()
        };
        awaited.set(other.enqueue_host_task(inner, &[])?).unwrap();
        let sooner = Graph::new(&context)?.finalize(Finalize::new())?.submit(&context)?;
        let mut both = [awaited.wait(), &sooner].map(IntoFuture::into_future);
        let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
        let mut is_ready =
            || both.iter_mut().any(|one| Pin::new(one).poll(&mut Context::from_waker(&waker)).is_ready());
        let mut ready = is_ready();
        waits.wait();
        while !ready {
            std::thread::park();
            ready = is_ready();
        }
        Ok(())
    };
    let run = own.enqueue_host_task(task, &[]).unwrap();
    outer.set(run.clone()).unwrap();
    run.wait_for(LONG).unwrap();
    inner.wait().wait_for(LONG).unwrap();
}

/// Rules S2, H1: on an out-of-order queue, what waits for an event of the program holds up nothing that comes later: not even
/// the host task that completes the event. Where the driver runs such queues in order too.
#[test]
fn what_waits_on_an_out_of_order_queue_holds_up_no_later_task() {
    let bench = Bench::new();
    if bench.queue.device().caps().platform == "NVIDIA CUDA" {
        return skip(Reason::RunsInOrder);
    }
    for way in 0..3 {
        let queue = bench.another_queue(true);
        let (event, buffer) = (UserEvent::new(&queue).unwrap(), bench.buffer(&[0; LEN]));
        let late = something(&bench);
        let submit = || late.submit_to(&queue).after(&event).submit().unwrap();
        let waits = match way {
            0 => submit().event().unwrap(),
            1 => queue.enqueue_fill_buffer(&buffer, &[1], 0, 4, &[&event.event()]).unwrap(),
            // A marker after everything waits for the submission, and holds up nothing either.
            _ => {
                let run = submit();
                let marker = queue.enqueue_marker_with_wait_list(&[]).unwrap();
                let completes = event.clone();
                let over = queue.enqueue_host_task(move |_| completes.complete(), &[]).unwrap();
                over.wait_for(LONG).unwrap();
                marker.wait().unwrap();
                assert!(run.is_done().unwrap());
                continue;
            }
        };
        let completes = event.clone();
        queue.enqueue_host_task(move |_| completes.complete(), &[]).unwrap().wait_for(LONG).unwrap();
        waits.wait().unwrap();
        queue.finish().unwrap();
        assert!(bench.becomes_empty(&queue));
    }
}

/// Rule S2: what comes after a barrier of an out-of-order queue, and who waits for the queue, waits for what waited before.
#[test]
fn what_waits_on_an_out_of_order_queue_is_before_a_barrier() {
    let bench = Bench::new();
    for finishes in [false, true] {
        let queue = bench.another_queue(true);
        let (event, buffer) = (UserEvent::new(&queue).unwrap(), bench.buffer(&[0; LEN]));
        let graph = bench.graph();
        graph.fill(&buffer, 1).add().unwrap();
        let run = graph.finalize(Finalize::new()).unwrap().submit_to(&queue).after(&event).submit().unwrap();
        let after = [1, 2].map(|value| {
            let command = queue.enqueue_fill_buffer(&buffer, &[value], 0, 4, &[&event.event()]).unwrap();
            queue.enqueue_barrier_with_wait_list(&[]).unwrap();
            command
        });
        let last = queue.enqueue_fill_buffer(&buffer, &[3_u32], 0, 4, &[]).unwrap();
        assert!(!queue.is_empty().unwrap());
        bench.let_threads_run();
        assert!(
            !run.is_done().unwrap() && matches!(last.command_execution_status().unwrap(), ExecutionStatus::Waiting)
        );
        event.complete().unwrap();
        if finishes {
            queue.finish().unwrap();
            assert!(run.is_done().unwrap());
        }
        last.wait().unwrap();
        assert!(run.is_done().unwrap());
        after.iter().for_each(|command| command.wait().unwrap());
        let mut content = [0; LEN];
        queue.enqueue_read_buffer(&buffer, 0, &mut content, &[]).unwrap();
        assert_eq!((content[0], content[1]), (3, 1));
    }
}

/// Rule H1: a limit of years ends no circle, so the wait counts as one without a limit.
#[test]
fn tasks_that_wait_for_each_other_with_limits_of_years_are_refused() {
    const YEARS: Duration = Duration::from_secs(1 << 33);
    let bench = Bench::new();
    let queues = [bench.another_queue(false), bench.another_queue(false)];
    let runs = Arc::new([OnceLock::<Submission>::new(), OnceLock::new()]);
    let both = Arc::new(Barrier::new(3));
    for at in 0..2 {
        let (others, both) = (Arc::clone(&runs), Arc::clone(&both));
        let task = move |_: &HostTaskContext<'_>| -> Result<()> {
            both.wait();
            others[1 - at].wait().wait_for(YEARS)
        };
        runs[at].set(queues[at].enqueue_host_task(task, &[]).unwrap()).unwrap();
    }
    both.wait();
    let outcomes = [0, 1].map(|at| runs[at].wait().wait_for(LONG));
    // One is refused, and the other one gets its failure.
    for outcome in outcomes {
        assert!(outcome.unwrap_err().to_string().contains(&SubmitError::OwnSubmission.to_string()));
    }
}
