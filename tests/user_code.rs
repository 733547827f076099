//! Code of the program that clgraph calls: the `Drop` of objects that it was given, wakers, callbacks and host tasks.
//! Whatever they do, other submissions continue, and their own submission ends.

mod common;

use std::future::{Future, IntoFuture};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use clgraph::{
    Error, Event, Executable, ExecuteKernel, Finalize, Graph, HostData, HostTaskContext, HostWrite, NativeCommand,
    Path, Queue, Submission, SubmitError, UserEvent,
};
use common::{Bench, Reason, assert_error, skip};
use cpu_time::ThreadTime;

const LEN: usize = 64;
const LONG: Duration = Duration::from_secs(300);

/// A graph that takes input: it writes the input, and uses it.
fn taker(bench: &Bench, path: Path) -> (Executable, HostWrite<u32>) {
    let graph = bench.graph();
    let buffer = bench.buffer(&[0; LEN]);
    let input = graph.write(&buffer, [0; LEN]).add().unwrap();
    graph.fill(&buffer, 1).add().unwrap();
    (graph.finalize(Finalize::new().path(path)).unwrap(), input)
}

/// Wakes a thread.
struct Unparks(std::thread::Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Data whose owner does something when it is dropped.
struct Owner<F: FnMut() + Send + Sync>([u32; LEN], F);

impl<F: FnMut() + Send + Sync> AsRef<[u32]> for Owner<F> {
    fn as_ref(&self) -> &[u32] {
        &self.0
    }
}

impl<F: FnMut() + Send + Sync> Drop for Owner<F> {
    fn drop(&mut self) {
        (self.1)();
    }
}

fn owned(at_the_end: impl FnMut() + Send + Sync + 'static) -> HostData<u32> {
    HostData::shared(Arc::new(Owner([3; LEN], at_the_end)))
}

/// Something to wait for, which another thread opens.
#[derive(Clone, Default)]
struct Flag(Arc<(Mutex<bool>, Condvar)>);

impl Flag {
    fn set(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    #[track_caller]
    fn wait(&self) {
        let (is_set, changed) = &*self.0;
        let (_set, timeout) = changed.wait_timeout_while(is_set.lock().unwrap(), LONG, |set| !*set).unwrap();
        assert!(!timeout.timed_out(), "it never came");
    }
}

/// Rule S6: input whose owner, in its `Drop`, waits for work after its own submission, submits, or panics. Its submission ends,
/// and so does every other.
#[test]
fn the_drop_of_an_inputs_owner_may_do_anything() {
    let bench = Bench::new();
    for path in [Path::Auto, Path::Native, Path::Replay, Path::Gated] {
        for deferred in [false, true] {
            for what in 0..5 {
                let (executable, input) = taker(&bench, path);
                let (other, _) = taker(&bench, path);
                let (queue, flag) = (bench.queue.clone(), Flag::default());
                let (done, last) = (flag.clone(), Arc::new(OnceLock::<Event>::new()));
                let later = Arc::clone(&last);
                let at_the_end = move || {
                    match what {
                        0 => queue.finish().unwrap(),
                        1 => drop(later.get().map(|event| event.wait().unwrap())),
                        2 => other.submit(&queue).unwrap().wait().unwrap(),
                        3 => drop(other.submit(&queue).unwrap()),
                        _ => {}
                    }
                    done.set();
                    if what == 4 {
                        panic!("as a drop should not");
                    }
                };
                let go = UserEvent::new(&bench.queue).unwrap();
                let submit = executable.submit_to(&bench.queue).with(&input, owned(at_the_end));
                let run = if deferred { submit.after(&go) } else { submit }.submit().unwrap();
                let plain = bench.buffer(&[0; LEN]);
                last.set(bench.queue.enqueue_fill_buffer(&plain, &[1], 0, 4 * LEN, &[]).unwrap()).unwrap();
                let unrelated = taker(&bench, path).0.submit(&bench.another_queue(false)).unwrap();
                go.complete().unwrap();
                let ended = Flag::default();
                let end = ended.clone();
                run.on_complete(move |_| end.set());
                drop(executable);
                unrelated.wait_for(LONG).unwrap();
                ended.wait();
                run.wait_for(LONG).unwrap();
                drop(run);
                flag.wait();
                bench.queue.finish().unwrap();
            }
        }
    }
}

/// Rule S6: the same for objects that the closures of a graph own, which are dropped when its last submission has ended.
#[test]
fn the_drop_of_what_closures_own_may_do_anything() {
    struct Last<F: FnMut() + Send>(F);
    impl<F: FnMut() + Send> Drop for Last<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    let bench = Bench::new();
    for native in [false, true] {
        let graph = bench.graph();
        let (queue, flag) = (bench.queue.clone(), Flag::default());
        let done = flag.clone();
        let owned = Last(move || {
            queue.finish().unwrap();
            done.set();
            panic!("as a drop should not");
        });
        let buffer = bench.buffer(&[0; LEN]);
        if native {
            let command = NativeCommand::enqueued(move |_| {
                let _ = &owned;
                Ok::<_, clgraph::Error>(())
            });
            // SAFETY: it enqueues nothing.
            unsafe { graph.native_command(command.writes(&buffer)).add() }.unwrap();
        } else {
            let task = graph.host_task(move |_| {
                let _ = &owned;
            });
            task.writes(&buffer).add().unwrap();
        }
        let executable = graph.finalize(Finalize::new()).unwrap();
        let go = UserEvent::new(&bench.queue).unwrap();
        let run = executable.submit_to(&bench.queue).after(&go).submit().unwrap();
        drop((graph, executable));
        go.complete().unwrap();
        run.wait_for(LONG).unwrap();
        drop(run);
        flag.wait();
        taker(&bench, Path::Auto).0.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
    }
}

/// Rule S5: a function of a native command that runs for long, in a submission that had to wait, delays no other submission.
#[test]
fn the_function_of_a_native_command_holds_up_its_own_submission_only() {
    let bench = Bench::new();
    let graph = bench.graph();
    let (begun, go_on) = (Flag::default(), Flag::default());
    let (tell, wait) = (begun.clone(), go_on.clone());
    let command = NativeCommand::enqueued(move |_| {
        tell.set();
        wait.wait();
    });
    // SAFETY: it enqueues nothing.
    unsafe { graph.native_command(command).add() }.unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let go = UserEvent::new(&bench.queue).unwrap();
    let run = executable.submit_to(&bench.queue).after(&go).submit().unwrap();
    go.complete().unwrap();
    begun.wait();
    // A submission on another queue, which needs the thread that sees events.
    let also = UserEvent::new(&bench.queue).unwrap();
    let other = taker(&bench, Path::Auto).0.submit_to(&bench.another_queue(false)).after(&also).submit().unwrap();
    also.complete().unwrap();
    other.wait_for(LONG).unwrap();
    go_on.set();
    run.wait_for(LONG).unwrap();
}

struct Calls<F: Fn() + Send + Sync>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Calls<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

fn poll(future: &mut (impl Future<Output = clgraph::Result<()>> + Unpin), waker: &Waker) -> Poll<clgraph::Result<()>> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

fn pending(bench: &Bench) -> (Submission, UserEvent) {
    let go = UserEvent::new(&bench.queue).unwrap();
    (taker(bench, Path::Auto).0.submit_to(&bench.queue).after(&go).submit().unwrap(), go)
}

/// Rules S4, S6: a waker may submit, wait, poll, and panic.
#[test]
fn a_waker_may_do_anything() {
    let bench = Bench::new();
    for what in 0..4 {
        let (run, go) = pending(&bench);
        let (queue, flag) = (bench.queue.clone(), Flag::default());
        let (other, done) = (taker(&bench, Path::Auto).0, flag.clone());
        let future = Arc::new(Mutex::new(run.clone().into_future()));
        let polled = Arc::downgrade(&future);
        let waker = Waker::from(Arc::new(Calls(move || {
            match what {
                0 => queue.finish().unwrap(),
                1 => other.submit(&queue).unwrap().wait().unwrap(),
                2 => {
                    let future = polled.upgrade().unwrap();
                    assert!(poll(&mut *future.lock().unwrap(), Waker::noop()).is_ready());
                }
                _ => {}
            }
            done.set();
            if what == 3 {
                std::panic::panic_any(Owner([0; LEN], || panic!("and its payload too")));
            }
        })));
        assert!(poll(&mut *future.lock().unwrap(), &waker).is_pending());
        let unrelated = pending(&bench);
        go.complete().unwrap();
        unrelated.1.complete().unwrap();
        flag.wait();
        run.wait_for(LONG).unwrap();
        unrelated.0.wait_for(LONG).unwrap();
    }
}

/// Rule S4: a future's waker is dropped with the future.
#[test]
fn futures_that_are_dropped_leave_nothing() {
    let bench = Bench::new();
    let (run, go) = pending(&bench);
    let woken = Arc::new(AtomicUsize::new(0));
    let (count, called) = (Arc::clone(&woken), Flag::default());
    let tell = called.clone();
    let calls = Arc::new(Calls(move || {
        count.fetch_add(1, Ordering::SeqCst);
        tell.set();
    }));
    let waker = Waker::from(Arc::clone(&calls));
    for _ in 0..1000 {
        let mut future = run.clone().into_future();
        assert!(poll(&mut future, &waker).is_pending());
        assert!(poll(&mut future, &waker).is_pending());
    }
    assert_eq!(Arc::strong_count(&calls), 2, "ours, and our waker's");
    let mut last = run.clone().into_future();
    assert!(poll(&mut last, &waker).is_pending());
    go.complete().unwrap();
    run.wait_for(LONG).unwrap();
    called.wait();
    assert!(poll(&mut last, &waker).is_ready());
    assert_eq!(woken.load(Ordering::SeqCst), 1);
}

/// Rule S4: a callback that panics with a value whose `Drop` panics: later callbacks still come.
#[test]
fn a_panic_whose_payload_panics_too_takes_no_later_callback() {
    let bench = Bench::new();
    let (run, go) = pending(&bench);
    run.on_complete(|_| std::panic::panic_any(Owner([0; LEN], || panic!("at the end of the payload"))));
    let ended = Flag::default();
    let end = ended.clone();
    run.on_complete(move |_| end.set());
    go.complete().unwrap();
    ended.wait();
}

/// Rule H3: an error whose text panics, and which panics when it is dropped, fails its submission only.
#[test]
fn an_error_that_panics_in_all_it_does_fails_its_submission() {
    #[derive(Debug)]
    struct Wild;
    impl std::fmt::Display for Wild {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("no text");
        }
    }
    impl std::error::Error for Wild {}
    impl Drop for Wild {
        fn drop(&mut self) {
            panic!("no drop");
        }
    }
    let bench = Bench::new();
    let graph = bench.graph();
    graph.host_task(|_| Err::<(), _>(Wild)).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    for _ in 0..2 {
        let error = executable.submit(&bench.queue).unwrap().wait().unwrap_err();
        assert_error!(error, Error::Submit(SubmitError::HostTask { text, .. }) if text == "it panicked: no text");
    }
}

/// Whoever waits behind a submission that waits for the program sleeps. Intel's CPU runtime spins in `clWaitForEvents`.
#[test]
fn a_wait_behind_a_gate_takes_no_processor_time() {
    let bench = Bench::new();
    let queue = bench.queue.clone();
    for wait_by in ["finish", "event"] {
        let (run, go) = pending(&bench);
        let event = queue.enqueue_marker_with_wait_list(&[]).unwrap();
        let waiting = Flag::default();
        let (begun, queue) = (waiting.clone(), queue.clone());
        let waiter = std::thread::spawn(move || {
            let before = ThreadTime::now();
            begun.set();
            if wait_by == "finish" { queue.finish() } else { event.wait() }.unwrap();
            before.elapsed()
        });
        waiting.wait();
        // Long enough for a thread that spins to show.
        std::thread::sleep(Duration::from_secs(1));
        go.complete().unwrap();
        run.wait().unwrap();
        let took = waiter.join().unwrap();
        assert!(took < Duration::from_millis(100), "{wait_by}: {took:?} of a second");
    }
}

/// Rule E3: the first of many submissions that wait for each other fails. The error of each names the first cause.
#[test]
fn a_long_chain_of_failures_has_short_errors() {
    let bench = Bench::new();
    let graph = bench.graph();
    let wait = graph.wait_event().add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let first = UserEvent::new(&bench.queue).unwrap();
    let queue = bench.another_queue(true);
    let mut runs = vec![executable.submit_to(&queue).with_event(&wait, &first).submit().unwrap()];
    for _ in 0..3000 {
        let last = &runs[runs.len() - 1];
        runs.push(executable.submit_to(&queue).with_event(&wait, last).submit().unwrap());
    }
    first.fail("no input").unwrap();
    for run in &runs {
        let error = run.wait_for(LONG).unwrap_err();
        assert!(error.to_string().len() < 400, "{error}");
        let (Error::Submit(SubmitError::ExternalEvent { cause, .. })
        | Error::Submit(SubmitError::DependencyFailed { cause })) = error
        else {
            panic!("{error}")
        };
        assert_eq!(*cause, SubmitError::UserEvent { text: "no input".to_owned() }.into());
    }
}

/// Rule H1: any number of host tasks may wait for submissions with host tasks of their own. All tasks have begun before the
/// first of them submits, so none of them has a thread to spare.
#[test]
fn host_tasks_that_wait_for_host_tasks_have_no_limit() {
    const MANY: usize = 700;
    let bench = Bench::new();
    let inner = bench.graph();
    inner.host_task(|_| ()).add().unwrap();
    let inner = inner.finalize(Finalize::new()).unwrap();
    // One queue for all of them: some drivers have threads and much memory for each.
    let (queue, graph) = (bench.another_queue(true), bench.graph());
    let (begun, all) = (Arc::new(AtomicUsize::new(0)), Flag::default());
    for _ in 0..MANY {
        let (inner, queue, begun, all) = (inner.clone(), queue.clone(), Arc::clone(&begun), all.clone());
        let task = graph.host_task(move |_| -> clgraph::Result<()> {
            if begun.fetch_add(1, Ordering::SeqCst) + 1 == MANY {
                all.set();
            }
            all.wait();
            inner.submit(&queue)?.wait()
        });
        task.add().unwrap();
    }
    let run = graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
    run.wait_for(LONG).unwrap();
    assert_eq!(begun.load(Ordering::SeqCst), MANY);
}

/// Rule H1: a host task that waits for work after its own submission gets an error, and the submission ends.
#[test]
fn a_host_task_cannot_wait_for_what_is_after_its_submission() {
    let bench = Bench::new();
    let buffer = bench.buffer(&[0; LEN]);
    let (sent, came) = mpsc::channel();
    let (queue, inner) = (bench.queue.clone(), taker(&bench, Path::Auto).0);
    let also = Queue::from_opencl3(&common::plain_queue(&bench.queue)).unwrap();
    let before = inner.submit(&queue).unwrap();
    let graph = bench.graph();
    let (kernel, plain, elsewhere) = (bench.kernel("stir"), buffer.clone(), bench.another_queue(false));
    let task = graph.host_task(move |_| -> clgraph::Result<()> {
        // Everything before it has ended.
        before.wait()?;
        inner.submit(&elsewhere)?.wait()?;
        let later = inner.submit(&queue)?;
        let mut launch = ExecuteKernel::new(&kernel);
        launch.set_arg(&plain).set_global_work_size(LEN);
        // SAFETY: each work-item touches its own element.
        let event = unsafe { launch.enqueue_nd_range(&queue) }?;
        let mut place = [0_u32; LEN];
        let outcomes = [
            later.wait(),
            later.wait_for(LONG),
            event.wait(),
            queue.finish(),
            also.finish(),
            queue.enqueue_read_buffer(&plain, 0, &mut place, &[]).map(drop),
            queue.enqueue_write_buffer(&plain, 0, &place, &[]).map(drop),
            elsewhere.enqueue_read_buffer(&plain, 0, &mut place, &[&event]).map(drop),
        ];
        let _ = sent.send((outcomes, later));
        Ok(())
    });
    task.add().unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
    run.wait_for(LONG).unwrap();
    let (outcomes, later) = came.recv().unwrap();
    for (index, outcome) in outcomes.into_iter().enumerate() {
        assert_eq!(outcome, Err(SubmitError::OwnQueue.into()), "{index}");
    }
    later.wait_for(LONG).unwrap();
    bench.queue.finish().unwrap();
}

/// Rule H1: the same over other queues, other events and other submissions, on queues of both kinds, and where a future is
/// polled.
#[test]
fn a_host_task_cannot_wait_for_itself_by_way_of_others() {
    let bench = Bench::new();
    for out_of_order in [false, true] {
        let own = bench.another_queue(out_of_order);
        let [second, third, fourth] = [(); 3].map(|()| bench.another_queue(false));
        let (buffer, (inner, ..)) = (bench.buffer(&[0; LEN]), taker(&bench, Path::Auto));
        let itself = Arc::new(OnceLock::<Executable>::new());
        let (sent, came) = mpsc::channel();
        let (queue, again, mut is_first) = (own.clone(), Arc::clone(&itself), true);
        let graph = bench.graph();
        let task = graph.host_task(move |_| -> clgraph::Result<()> {
            if !std::mem::take(&mut is_first) {
                return Ok(());
            }
            let same = again.wait().submit(&second)?;
            let marker = queue.enqueue_marker_with_wait_list(&[])?;
            let filled = third.enqueue_fill_buffer(&buffer, &[1], 0, 4, &[&marker])?;
            let later = inner.submit_to(&fourth).after(&marker).submit()?;
            let mut place = [0_u32; LEN];
            // On an out-of-order queue, what comes after a barrier comes after the submission.
            queue.enqueue_barrier_with_wait_list(&[])?;
            let beyond = queue.enqueue_fill_buffer(&buffer, &[1], 0, 4, &[])?;
            let mut polls = pin!(same.clone().into_future());
            let waker = Waker::from(Arc::new(Unparks(std::thread::current())));
            let polled = loop {
                match polls.as_mut().poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(outcome) => break outcome,
                    Poll::Pending => std::thread::park(),
                }
            };
            let outcomes = [
                same.wait(),
                same.wait_for(LONG),
                polled,
                marker.wait(),
                queue.finish(),
                filled.wait(),
                third.finish(),
                third.enqueue_read_buffer(&buffer, 0, &mut place, &[]).map(drop),
                later.wait(),
                beyond.wait(),
                queue.enqueue_read_buffer(&buffer, 0, &mut place, &[]).map(drop),
            ];
            let _ = sent.send((outcomes, same, later));
            Ok(())
        });
        task.add().unwrap();
        let executable = graph.finalize(Finalize::new()).unwrap();
        let _ = itself.set(executable.clone());
        executable.submit(&own).unwrap().wait_for(LONG).unwrap();
        let (outcomes, same, later) = came.recv().unwrap();
        for (index, outcome) in outcomes.into_iter().enumerate() {
            let is_own = matches!(outcome, Err(Error::Submit(SubmitError::OwnSubmission | SubmitError::OwnQueue)));
            assert!(is_own, "{index} on an out-of-order queue {out_of_order}: {outcome:?}");
        }
        same.wait_for(LONG).unwrap();
        later.wait_for(LONG).unwrap();
    }
}

/// Rule H1: a host task that waits for a user event which its own submission completes, or one that comes after it, is refused.
#[test]
fn a_host_task_cannot_wait_for_an_event_of_a_submission_after_its_own() {
    let bench = Bench::new();
    let signals = bench.graph();
    let signal = signals.signal_event().add().unwrap();
    let signals = signals.finalize(Finalize::new()).unwrap();
    let [own, later, elsewhere] = [(); 3].map(|()| UserEvent::new(&bench.queue).unwrap());
    let (sent, came) = mpsc::channel();
    let graph = bench.graph();
    let (queue, other, events) =
        (bench.queue.clone(), bench.another_queue(false), [own.clone(), later.clone(), elsewhere.clone()]);
    let task = graph.host_task(move |_| -> clgraph::Result<()> {
        let [own, later, elsewhere] = &events;
        let after = signals.submit_to(&queue).with_signal(&signal, later).submit()?;
        signals.submit_to(&other).with_signal(&signal, elsewhere).after(&after).submit_detached()?;
        let all = [own, later, elsewhere].map(|event| [event.wait(), event.wait_for(LONG), event.event().wait()]);
        let _ = sent.send(all);
        Ok(())
    });
    let task = task.add().unwrap();
    let last = graph.signal_event().after(task).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    executable.submit_to(&bench.queue).with_signal(&last, &own).submit().unwrap().wait_for(LONG).unwrap();
    for (index, outcomes) in came.recv().unwrap().into_iter().enumerate() {
        for outcome in outcomes {
            assert!(matches!(outcome, Err(Error::Submit(SubmitError::OwnSubmission))), "{index}: {outcome:?}");
        }
    }
    [own, later, elsewhere].iter().for_each(|event| event.wait_for(LONG).unwrap());
}

/// Rule H1: the same where the way to its own submission leads over another executable's use, a queue that was wrapped
/// anew, or an event that was.
#[test]
fn a_host_task_cannot_wait_for_itself_by_way_of_what_others_know() {
    let bench = Bench::new();
    for out_of_order in [false, true] {
        let own = bench.another_queue(out_of_order);
        let (second, third) = (bench.another_queue(false), bench.another_queue(out_of_order));
        let (inner, _) = taker(&bench, Path::Auto);
        let outer = bench.graph();
        outer.sub_graph(&inner).add().unwrap();
        outer.host_task(|_| ()).add().unwrap();
        let outer = outer.finalize(Finalize::new()).unwrap();
        let (sent, came) = mpsc::channel();
        let graph = bench.graph();
        let (queue, mut third) = (own.clone(), Some(third));
        let task = graph.host_task(move |_| -> clgraph::Result<()> {
            // The marker comes after the task's own submission.
            let marker = queue.enqueue_marker_with_wait_list(&[])?;
            let first = inner.submit_to(&queue).after(&marker).submit()?;
            let last = outer.submit(&second)?;
            let third = third.take().unwrap();
            third.enqueue_marker_with_wait_list(&[&marker])?;
            let plain = third.to_opencl3()?;
            drop(third);
            let outcomes = [
                first.wait(),
                last.wait(),
                Queue::from_opencl3(&plain)?.finish(),
                Event::from_opencl3(&marker.to_opencl3()?)?.wait(),
            ];
            let _ = sent.send((outcomes, last));
            Ok(())
        });
        task.add().unwrap();
        let executable = graph.finalize(Finalize::new()).unwrap();
        executable.submit(&own).unwrap().wait_for(LONG).unwrap();
        let (outcomes, last) = came.recv().unwrap();
        for (index, outcome) in outcomes.into_iter().enumerate() {
            let is_own = matches!(outcome, Err(Error::Submit(SubmitError::OwnSubmission | SubmitError::OwnQueue)));
            assert!(is_own, "{index} on an out-of-order queue {out_of_order}: {outcome:?}");
        }
        last.wait_for(LONG).unwrap();
    }
}

/// A read can be taken after the last handle of its queue is gone.
#[test]
fn a_read_outlives_its_queue() {
    let bench = Bench::new();
    for out_of_order in [false, true] {
        for deferred in [false, true] {
            let (queue, buffer) = (bench.another_queue(out_of_order), bench.buffer(&[5; LEN]));
            let go = UserEvent::new(&bench.queue).unwrap();
            let event = go.event();
            let waits = if deferred { vec![&event] } else { Vec::new() };
            let read = queue.enqueue_read_buffer_owned(&buffer, 0, LEN, &waits).unwrap();
            queue.flush().unwrap();
            drop(queue);
            go.complete().unwrap();
            // Not a race: whether it has ended by then decides which way the wait takes.
            bench.let_threads_run();
            assert_eq!(read.wait().unwrap(), [5; LEN], "{out_of_order}, {deferred}");
            read.event().wait().unwrap();
        }
    }
}

/// Out-of-order queues that are made, used, wrapped anew and dropped do what the model does.
#[test]
fn dropped_out_of_order_queues_are_used_again() {
    let bench = Bench::new();
    let buffer = bench.buffer(&[0; LEN]);
    for round in 0..60_u32 {
        let mut queue = bench.another_queue(true);
        if round % 3 == 1 {
            let plain = queue.to_opencl3().unwrap();
            drop(queue);
            queue = Queue::from_opencl3(&plain).unwrap();
        }
        for value in 0..10 {
            queue.enqueue_barrier_with_wait_list(&[]).unwrap();
            queue.enqueue_fill_buffer(&buffer, &[round * 10 + value], 0, 4 * LEN, &[]).unwrap();
        }
        queue.enqueue_barrier_with_wait_list(&[]).unwrap();
        let mut place = [0; LEN];
        queue.enqueue_read_buffer(&buffer, 0, &mut place, &[]).unwrap();
        assert_eq!(place, [round * 10 + 9; LEN]);
    }
}

/// Rule R15: a blocking transfer on an out-of-order queue waits for its own wait list and for barriers, and for no other command.
#[test]
fn a_blocking_transfer_on_an_out_of_order_queue_waits_for_no_other_command() {
    let bench = Bench::new();
    if ["rusticl", "NVIDIA CUDA"].contains(&bench.queue.device().caps().platform.as_str()) {
        return skip(Reason::RunsInOrder);
    }
    let queue = bench.another_queue(true);
    let (buffer, other) = (bench.buffer(&[7; LEN]), bench.buffer(&[0; LEN]));
    let go = UserEvent::new(&bench.queue).unwrap();
    let filled = queue.enqueue_fill_buffer(&other, &[1], 0, 4 * LEN, &[&go.event()]).unwrap();
    let mut place = [0_u32; LEN];
    queue.enqueue_read_buffer(&buffer, 0, &mut place, &[]).unwrap();
    assert_eq!(place, [7; LEN]);
    queue.enqueue_write_buffer(&buffer, 0, &[8; LEN], &[]).unwrap();
    queue.enqueue_read_buffer(&buffer, 4, &mut place[1..], &[]).unwrap();
    assert_eq!((place[0], &place[1..]), (7, &[8; LEN - 1][..]));
    assert!(!go.is_done());
    go.complete().unwrap();
    filled.wait().unwrap();
    assert_eq!(bench.content(&other), [1; LEN]);
}

/// How many threads for host tasks there are.
#[cfg(target_os = "linux")]
fn task_threads() -> usize {
    let all = std::fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok);
    all.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok())
        .filter(|name| name.trim() == "clgraph-task")
        .count()
}

/// Rule H1: host tasks behind commands that wait for the program take few threads: a task that lets them go on may need one.
#[test]
#[cfg(target_os = "linux")]
fn host_tasks_behind_the_device_take_few_threads() {
    let bench = Bench::new();
    let held = common::UserEvent::new(&bench.queue);
    let event = Event::from_opencl3(&held.0).unwrap();
    let before = task_threads();
    let runs = [(); 120].map(|()| {
        let queue = bench.another_queue(false);
        queue.enqueue_barrier_with_wait_list(&[&event]).unwrap();
        queue.enqueue_host_task(|_| (), &[]).unwrap()
    });
    // Threads that have nothing to do end after five seconds, and other tests of this process start some.
    let mut now = task_threads();
    for _ in 0..60 {
        if now < before + 96 {
            break;
        }
        std::thread::sleep(Duration::from_secs(1));
        now = task_threads();
    }
    assert!(now < before + 96, "{before} threads, and {now} with 120 tasks later the device");
    held.set(0);
    runs.iter().for_each(|run| run.wait_for(LONG).unwrap());
}

/// Rule H1: host tasks that wait behind others have no thread yet: a thread that waits could be missed by those that it waits
/// for.
#[test]
#[cfg(target_os = "linux")]
fn host_tasks_behind_others_take_no_threads() {
    let bench = Bench::new();
    // Other tests of this process start threads too, so it is tried until they leave it alone.
    for attempt in 0.. {
        let go = UserEvent::new(&bench.queue).unwrap();
        let (began, stop) = (Flag::default(), Flag::default());
        let (begins, stopped) = (began.clone(), stop.clone());
        let task = move |_: &HostTaskContext<'_>| {
            begins.set();
            stopped.wait();
        };
        let first = bench.queue.enqueue_host_task(task, &[&go.event()]).unwrap();
        let before = task_threads();
        let later: Vec<Submission> = (0..64).map(|_| bench.queue.enqueue_host_task(|_| (), &[]).unwrap()).collect();
        let queued = task_threads();
        go.complete().unwrap();
        began.wait();
        let held = task_threads();
        stop.set();
        first.wait_for(LONG).unwrap();
        later.iter().for_each(|run| run.wait_for(LONG).unwrap());
        if queued.max(held) < before + 32 {
            break;
        }
        assert!(attempt < 60, "{before} threads, {queued} with 64 tasks later a gate, {held} with 64 later a task");
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Rule S4: a callback may await another submission: its waker does not need the thread of the callback.
#[test]
fn a_callback_may_await() {
    let bench = Bench::new();
    let (first, second) = (taker(&bench, Path::Auto).0, taker(&bench, Path::Auto).0);
    let gate = UserEvent::new(&bench.queue).unwrap();
    let other = second.submit_to(&bench.another_queue(false)).after(&gate).submit().unwrap();
    let (sent, came) = mpsc::channel();
    let run = first.submit(&bench.queue).unwrap();
    run.on_complete(move |_| {
        let woken = Flag::default();
        struct Wakes(Flag);
        impl Wake for Wakes {
            fn wake(self: Arc<Self>) {
                self.0.set();
            }
        }
        let waker = Waker::from(Arc::new(Wakes(woken.clone())));
        let mut future = pin!(other.into_future());
        let mut polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        gate.complete().unwrap();
        if polled.is_pending() {
            woken.wait();
            polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        }
        let _ = sent.send(matches!(polled, Poll::Ready(Ok(()))));
    });
    assert_eq!(came.recv_timeout(LONG), Ok(true));
}

/// Rule H1: a task that waits for its own submission by way of another task is refused, whoever of the two waits first.
#[test]
fn tasks_that_wait_for_each_other_are_refused() {
    let bench = Bench::new();
    // The task may have it from a task that it waits for.
    let reason = SubmitError::OwnSubmission.to_string();
    // The outer task waits for the inner one, which waits for the outer task: by its submission, its queue or an event.
    for case in 0..3 {
        let (own, other) = (bench.another_queue(false), bench.another_queue(false));
        let outer: Arc<OnceLock<Submission>> = Arc::default();
        let (slot, queue) = (Arc::clone(&outer), own.clone());
        let run = own.enqueue_host_task(
            move |_: &HostTaskContext<'_>| -> clgraph::Result<()> {
                let (slot, queue) = (Arc::clone(&slot), queue.clone());
                let inner = move |_: &HostTaskContext<'_>| -> clgraph::Result<()> {
                    match case {
                        0 => slot.wait().wait(),
                        1 => queue.finish(),
                        _ => queue.enqueue_marker_with_wait_list(&[])?.wait(),
                    }
                };
                other.enqueue_host_task(inner, &[])?.wait()
            },
            &[],
        );
        let run = run.unwrap();
        outer.set(run.clone()).unwrap();
        assert_error!(
            run.wait_for(LONG),
            SubmitError::HostTask { text, .. } if text.ends_with(&reason),
            "{case}",
        );
    }
    // Two tasks wait for what comes after the other.
    for out_of_order in [false, true] {
        let queues = [bench.another_queue(out_of_order), bench.another_queue(out_of_order)];
        let later: [Arc<OnceLock<Submission>>; 2] = Default::default();
        let empty = Graph::new(&bench.queue).unwrap().finalize(Finalize::new()).unwrap();
        let also = Graph::new(&bench.queue).unwrap().finalize(Finalize::new()).unwrap();
        let runs = [0, 1].map(|at: usize| {
            let waited = Arc::clone(&later[1 - at]);
            queues[at].enqueue_host_task(move |_: &HostTaskContext<'_>| waited.wait().wait(), &[]).unwrap()
        });
        for ((queue, run), (executable, slot)) in queues.iter().zip(&runs).zip([&empty, &also].into_iter().zip(&later))
        {
            slot.set(executable.submit_to(queue).after(run).submit().unwrap()).unwrap();
        }
        let outcomes = runs.map(|run| run.wait_for(LONG));
        let is_refused = |outcome: &clgraph::Result<()>| match outcome {
            Err(Error::Submit(SubmitError::HostTask { text, .. })) => *text == reason,
            _ => false,
        };
        assert!(outcomes.iter().all(Result::is_err) && outcomes.iter().any(is_refused), "{outcomes:?}");
    }
}

/// Rule H1: a task waits for its executable's earlier use on a queue that, since then, comes after the task itself.
#[test]
fn a_use_before_a_gate_does_not_come_after_it() {
    let bench = Bench::new();
    let (own, other, third) = (bench.another_queue(false), bench.another_queue(false), bench.another_queue(false));
    let (buffer, spin) = (bench.buffer(&[1; LEN]), bench.kernel("spin"));
    let graph = Graph::new(&bench.queue).unwrap();
    // SAFETY: the work-item touches the first element.
    unsafe { graph.kernel(&spin).read_write(&buffer).arg(1_u32 << 26).range(1).add().unwrap() };
    let executable = graph.finalize(Finalize::new().path(Path::Replay)).unwrap();
    let queue = own.clone();
    let task = move |_: &HostTaskContext<'_>| -> clgraph::Result<()> {
        executable.submit_to(&other).submit_detached()?;
        other.flush()?;
        let after_task = queue.enqueue_marker_with_wait_list(&[])?;
        other.enqueue_barrier_with_wait_list(&[&after_task])?;
        let go = UserEvent::new(&third)?;
        let deferred = executable.submit_to(&third).after(&go).submit()?;
        go.complete()?;
        deferred.wait()
    };
    own.enqueue_host_task(task, &[]).unwrap().wait().unwrap();
}

/// Rule Q2: the conversion of a label is code of the program: it may ask the graph that the label is for.
#[test]
fn a_label_that_asks_its_graph_is_converted() {
    struct Label(Graph);
    impl From<Label> for String {
        fn from(Label(graph): Label) -> Self {
            format!("one of {}", graph.len())
        }
    }
    let graph = Bench::new().graph();
    let node = graph.empty().label(Label(graph.clone())).add().unwrap();
    assert_eq!(graph.label(node).unwrap().as_deref(), Some("one of 0"));
    graph.set_label(node, Label(graph.clone())).unwrap();
    assert_eq!(graph.label(node).unwrap().as_deref(), Some("one of 1"));
}
