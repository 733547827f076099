//! Submitting: order, events, failure, results.

mod common;

use std::future::IntoFuture;
use std::pin::pin;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use clgraph::{
    Buffer, Error, ErrorKind, Executable, Finalize, Graph, HostRead, Node, Path, Progress, Queue, Submission,
    SubmitError,
};
use common::{Bench, UserEvent, assert_error, elsewhere};

/// Longer than anything here takes, so that a test that hangs fails.
const LONG: Duration = Duration::from_secs(60);

/// A graph that stirs a buffer of 64 once and reads it back.
struct Stirrer {
    buffer: Buffer<u32>,
    executable: Executable,
    result: HostRead<u32>,
}

impl Stirrer {
    fn new(bench: &Bench) -> Self {
        Self::with(bench, Finalize::new())
    }

    fn with(bench: &Bench, options: Finalize) -> Self {
        let buffer = bench.buffer(&[0; 64]);
        let graph = bench.graph();
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&bench.kernel("stir")).read_write(&buffer).range(64).add() }.unwrap();
        let result = graph.read(&buffer).add().unwrap();
        let executable = graph.finalize(options).unwrap();
        Self { buffer, executable, result }
    }

    /// Returns element 1 after so many runs.
    fn expected(runs: usize) -> u32 {
        (0..runs).fold(0, |x: u32, _| x.wrapping_mul(5).wrapping_add(1))
    }
}

/// Rule S1
#[test]
fn an_executable_runs_any_number_of_times_on_any_queue_of_its_device() {
    let bench = Bench::new();
    let stirrer = Stirrer::new(&bench);
    let queues =
        [bench.queue.clone(), bench.another_queue(false), bench.another_queue(true), bench.another_queue(true)];
    let mut runs = 0;
    for round in 0..10 {
        for queue in &queues {
            runs += 1;
            let run = stirrer.executable.submit(queue).unwrap();
            if round % 3 == 0 {
                run.wait().unwrap();
                assert_eq!(run.get(&stirrer.result).unwrap()[1], Stirrer::expected(runs));
            }
        }
    }
    bench.queue.finish().unwrap();
    queues.iter().for_each(|queue| queue.finish().unwrap());
    assert_eq!(bench.content(&stirrer.buffer)[1], Stirrer::expected(runs));

    let other = stirrer.executable.submit(&elsewhere().queue).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Invalid);
    assert_error!(other, SubmitError::OtherQueue { what: "context", .. });
}

/// Rule S2
#[test]
fn a_submission_keeps_the_order_of_an_in_order_queue() {
    let bench = Bench::new();
    let stirrer = Stirrer::new(&bench);
    let plain = common::plain_queue(&bench.queue);
    let mut mem = stirrer.buffer.to_opencl3().unwrap();
    let mut seen = vec![vec![0_u32; 64]; 50];
    for round in &mut seen {
        // Set to 7, stirred by the graph, and read by plain OpenCL: all three in order without any event.
        // SAFETY: sizes fit; `round` lives until the queue has finished.
        unsafe {
            plain.enqueue_fill_buffer(&mut mem, &[7_u32], 0, 256, &[]).unwrap();
            stirrer.executable.submit_to(&bench.queue).submit_detached().unwrap();
            plain.enqueue_read_buffer(&mem, 0, 0, round, &[]).unwrap();
        }
    }
    plain.finish().unwrap();
    assert!(seen.iter().all(|round| round[0] == 35 && round[63] == 98));
}

/// Rule S2: on an out-of-order queue a barrier orders submissions, before and after it.
#[test]
fn a_submission_respects_the_barriers_of_an_out_of_order_queue() {
    let bench = Bench::new();
    let stirrer = Stirrer::new(&bench);
    let queue = bench.another_queue(true);
    let plain = common::plain_queue(&queue);
    let mut mem = stirrer.buffer.to_opencl3().unwrap();
    let mut seen = vec![vec![0_u32; 64]; 20];
    for round in &mut seen {
        // SAFETY: sizes fit; `round` lives until the queue has finished.
        unsafe {
            plain.enqueue_barrier_with_wait_list(&[]).unwrap();
            plain.enqueue_fill_buffer(&mut mem, &[7_u32], 0, 256, &[]).unwrap();
            plain.enqueue_barrier_with_wait_list(&[]).unwrap();
            stirrer.executable.submit_to(&queue).submit_detached().unwrap();
            plain.enqueue_barrier_with_wait_list(&[]).unwrap();
            plain.enqueue_read_buffer(&mem, 0, 0, round, &[]).unwrap();
        }
    }
    plain.finish().unwrap();
    assert!(seen.iter().all(|round| round[0] == 35 && round[63] == 98));
}

/// Rule S3
#[test]
fn submissions_of_one_executable_never_overlap_across_queues_and_threads() {
    let bench = Bench::new();
    let n = 4096;
    let buffer = bench.buffer(&vec![0; n]);
    let graph = bench.graph();
    // Many steps that read and write the same memory: if two runs overlapped, they would mix.
    for _ in 0..8 {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&bench.kernel("stir")).read_write(&buffer).range(n).add() }.unwrap();
    }
    let executable = graph.finalize(Finalize::new()).unwrap();
    let queues: Vec<Queue> = (0..4).map(|at| bench.another_queue(at % 2 == 1)).collect();
    thread::scope(|scope| {
        for queue in &queues {
            scope.spawn(|| {
                for at in 0..25 {
                    if at % 5 == 0 {
                        executable.submit_to(queue).submit_detached().unwrap();
                    } else {
                        executable.submit(queue).unwrap();
                    }
                }
                queue.finish().unwrap();
            });
        }
    });
    queues.iter().for_each(|queue| queue.finish().unwrap());
    executable.submit(&bench.queue).unwrap().wait().unwrap();
    assert_eq!(bench.content(&buffer)[1], Stirrer::expected(8 * 101));
}

/// Rule S4
#[test]
fn a_submission_can_be_waited_for_polled_awaited_and_can_call_back() {
    struct Signal(Mutex<bool>, Condvar);
    impl Wake for Signal {
        fn wake(self: Arc<Self>) {
            *self.0.lock().unwrap() = true;
            self.1.notify_all();
        }
    }
    let bench = Bench::new();
    let stirrer = Stirrer::new(&bench);
    for queue in [bench.queue.clone(), bench.another_queue(true)] {
        let run = stirrer.executable.submit(&queue).unwrap();
        run.wait_for(LONG).unwrap();
        assert_eq!(run.progress().unwrap(), Progress::Complete);
        assert!(run.is_done().unwrap());

        let polled = stirrer.executable.submit(&queue).unwrap();
        while !polled.is_done().unwrap() {
            thread::yield_now();
        }
        let _ = polled.get(&stirrer.result).unwrap();

        let (sender, receiver) = channel();
        let run = stirrer.executable.submit(&queue).unwrap();
        let here = thread::current().id();
        run.on_complete(move |outcome| sender.send((outcome, thread::current().id())).unwrap());
        let (outcome, there) = receiver.recv_timeout(LONG).unwrap();
        assert_eq!(outcome, Ok(()));
        assert_ne!(here, there, "on a thread of clgraph's own");
        // Also after it has ended.
        let (sender, receiver) = channel();
        run.on_complete(move |outcome| sender.send(outcome).unwrap());
        assert_eq!(receiver.recv_timeout(LONG).unwrap(), Ok(()));

        let run = stirrer.executable.submit(&queue).unwrap();
        let signal = Arc::new(Signal(Mutex::new(false), Condvar::new()));
        let waker = Waker::from(Arc::clone(&signal));
        let mut future = pin!((&run).into_future());
        while future.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Pending {
            let woken = signal.1.wait_timeout_while(signal.0.lock().unwrap(), LONG, |woken| !*woken).unwrap();
            assert!(!woken.1.timed_out());
        }
        assert_eq!(run.progress().unwrap(), Progress::Complete);
    }
}

/// Rule S4: the stages, controlled by a user event. A raw event that was taken early shows the end too.
#[test]
fn a_submission_that_waits_says_so_and_ends_in_time() {
    let bench = Bench::new();
    let stirrer = Stirrer::new(&bench);
    let event = UserEvent::new(&bench.queue);
    let run = stirrer.executable.submit_to(&bench.queue).after(&event.0).submit().unwrap();
    assert_eq!(run.progress().unwrap(), Progress::Waiting);
    let error = run.wait_for(Duration::from_millis(20)).unwrap_err();
    assert_eq!(error, SubmitError::TimedOut(Duration::from_millis(20)).into());
    assert_error!(run.get(&stirrer.result), SubmitError::NotComplete);
    let raw = run.event().unwrap();
    event.set(0);
    raw.to_opencl3().unwrap().wait().unwrap();
    run.wait_for(LONG).unwrap();
    assert_eq!(run.get(&stirrer.result).unwrap()[1], 1);
}

/// Rule S4: a submission is running from the start of its first command, even if it has only one.
#[test]
fn a_submission_of_one_command_is_seen_running() {
    let bench = Bench::new();
    let buffer = bench.buffer(&[0; 64]);
    let graph = bench.graph();
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&bench.kernel("spin")).read_write(&buffer).arg(20_000_000_u32).range(64).add() }.unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    // The first launch compiles.
    executable.submit(&bench.queue).unwrap().wait().unwrap();
    // A busy machine may look too late, so one run of several has to be seen.
    for _ in 0..10 {
        let run = executable.submit(&bench.queue).unwrap();
        let mut seen = Vec::new();
        while seen.last() != Some(&Progress::Complete) {
            seen.push(run.progress().unwrap());
            seen.dedup();
        }
        if seen.contains(&Progress::Running) {
            return;
        }
    }
    common::skip(common::Reason::NoStartTime);
}

/// Rules S7, S9: an event that fails only because an event that it waits for fails. Some drivers abort if such an event
/// is in a wait list.
#[test]
fn an_event_that_fails_by_what_it_waits_for_fails_the_submission_and_nothing_else() {
    let bench = Bench::new();
    let stirrer = Stirrer::new(&bench);
    let (other, queue) = (bench.another_queue(false), bench.another_queue(true));
    let user = UserEvent::new(&bench.queue);
    let plain = common::plain_queue(&other);
    // SAFETY: a live event.
    let marker = unsafe { plain.enqueue_marker_with_wait_list(&[user.0.get()]) }.unwrap();
    plain.flush().unwrap();
    let run = stirrer.executable.submit_to(&queue).after(&marker).submit().unwrap();
    assert_eq!(run.progress().unwrap(), Progress::Waiting);
    user.set(-5);
    let outcome = run.wait_for(LONG);
    // On Intel's CPU runtime the marker becomes complete anyway, and then the submission runs.
    let called_complete = marker.command_execution_status().unwrap().0 == 0;
    assert_eq!(outcome.is_ok(), called_complete, "{outcome:?}");
    stirrer.executable.submit(&queue).unwrap().wait_for(LONG).unwrap();
}

/// Rule S5
#[test]
fn submitting_does_not_block() {
    let bench = Bench::new();
    let stirrer = Stirrer::new(&bench);
    let event = UserEvent::new(&bench.queue);
    // Everything after the event waits; if a submission waited for it here, this test would never end.
    let first = stirrer.executable.submit_to(&bench.queue).after(&event.0).submit().unwrap();
    let second = stirrer.executable.submit(&bench.queue).unwrap();
    let third = stirrer.executable.submit(&bench.another_queue(true)).unwrap();
    assert!(!third.is_done().unwrap());
    event.set(0);
    for run in [first, second, third] {
        run.wait_for(LONG).unwrap();
    }
    assert_eq!(bench.content(&stirrer.buffer)[1], Stirrer::expected(3));
}

/// Rule S6
#[test]
fn everything_can_be_shared_between_threads_and_clones_are_the_same_object() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<Graph>();
    shared::<Executable>();
    shared::<Queue>();
    shared::<Submission>();
    shared::<Buffer<f32>>();
    shared::<clgraph::Kernel>();
    shared::<clgraph::Program>();
    shared::<clgraph::Context>();
    shared::<clgraph::Device>();
    shared::<clgraph::Event>();
    shared::<Error>();
    shared::<Node>();
    shared::<clgraph::HostData<u8>>();

    let bench = Bench::new();
    let graph = bench.graph();
    thread::scope(|scope| {
        for _ in 0..4 {
            let graph = graph.clone();
            scope.spawn(move || {
                for _ in 0..250 {
                    graph.empty().add().unwrap();
                }
            });
        }
    });
    assert_eq!(graph.len(), 1000);
    assert_eq!(graph, graph.clone());
}

/// Rule S7
#[test]
fn a_submission_waits_for_none_one_or_many_events_of_either_kind() {
    let bench = Bench::new();
    let (other_queue, ooo) = (bench.another_queue(false), bench.another_queue(true));
    let plain = common::plain_queue(&other_queue);
    for queue in [&bench.queue, &ooo] {
        let (first, second) = (Stirrer::new(&bench), Stirrer::new(&bench));
        let mut mem = second.buffer.to_opencl3().unwrap();
        // SAFETY: sizes fit.
        let raw = unsafe { plain.enqueue_fill_buffer(&mut mem, &[100_u32], 0, 256, &[]) }.unwrap();
        plain.flush().unwrap();
        let before = first.executable.submit(&other_queue).unwrap();
        let event = clgraph::Event::from_opencl3(&raw).unwrap();
        let run = second.executable.submit_to(queue).after(&before).after(&raw).after_all([&event]).submit().unwrap();
        run.wait().unwrap();
        assert!(before.is_done().unwrap());
        assert_eq!(run.get(&second.result).unwrap()[1], 501);
        let none: [&clgraph::Event; 0] = [];
        second.executable.submit_to(queue).after_all(none).submit().unwrap().wait().unwrap();
    }
}

/// Rule S7
#[test]
fn a_failed_event_is_an_error_that_names_it_and_nothing_is_enqueued() {
    let bench = Bench::new();
    let stirrer = Stirrer::new(&bench);
    let (good, bad) = (UserEvent::new(&bench.queue), UserEvent::new(&bench.queue));
    good.set(0);
    bad.set(-42);
    let error = stirrer.executable.submit_to(&bench.queue).after(&good.0).after(&bad.0).submit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Driver);
    let of_command = |cause: &Error| cause.driver_error().is_some_and(|error| error.call == "a command");
    assert_error!(error, SubmitError::EventFailed { index: 1, cause } if of_command(cause));
    let foreign = UserEvent::new(&elsewhere().queue);
    let error = stirrer.executable.submit_to(&bench.queue).after(&foreign.0).submit().unwrap_err();
    assert_eq!(error, SubmitError::OtherContext { index: 0 }.into());
    let theirs = Stirrer::new(elsewhere());
    let run = theirs.executable.submit(&elsewhere().queue).unwrap();
    let error = stirrer.executable.submit_to(&bench.queue).after(&run).submit().unwrap_err();
    assert_eq!(error, SubmitError::OtherContext { index: 0 }.into());
    bench.queue.finish().unwrap();
    assert_eq!(bench.content(&stirrer.buffer), [0; 64], "nothing ran");
    stirrer.executable.submit(&bench.queue).unwrap().wait().unwrap();
}

/// Rule S8: "at once" means when the wait list and the queue's order are satisfied.
#[test]
fn an_empty_graph_completes_when_its_wait_list_and_queue_allow() {
    let bench = Bench::new();
    let empty = bench.graph().finalize(Finalize::new()).unwrap();
    for queue in [&bench.queue, &bench.another_queue(true)] {
        let event = UserEvent::new(&bench.queue);
        let waits = empty.submit_to(queue).after(&event.0).submit().unwrap();
        // On the same queue, in order after the first; it is the same executable, so on other queues too.
        let later = empty.submit(queue).unwrap();
        assert!(!waits.is_done().unwrap() && !later.is_done().unwrap());
        event.set(0);
        later.wait_for(LONG).unwrap();
        assert!(waits.is_done().unwrap());
    }
}

/// Rule S9
#[test]
fn after_a_failed_submission_the_queue_goes_on_and_only_dependents_fail_with_the_same_error() {
    let bench = Bench::new();
    for queue in [bench.another_queue(false), bench.another_queue(true)] {
        let [fails, depends, unrelated] = [(); 3].map(|()| Stirrer::new(&bench));
        let event = UserEvent::new(&bench.queue);
        let failed = fails.executable.submit_to(&queue).after(&event.0).submit().unwrap();
        let dependent = depends.executable.submit_to(&queue).after(&failed).submit().unwrap();
        let chained = unrelated.executable.submit_to(&queue).after(&dependent).submit().unwrap();
        let later = Stirrer::new(&bench);
        let goes_on = later.executable.submit(&queue).unwrap();
        let same_again = fails.executable.submit(&queue).unwrap();
        event.set(-7);

        let error = failed.wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Driver);
        assert_error!(&error, SubmitError::DependencyFailed { .. });
        assert_eq!(dependent.wait().unwrap_err(), error);
        assert_eq!(chained.wait().unwrap_err(), error);
        assert_eq!(failed.progress().unwrap(), Progress::Failed);
        assert_eq!(failed.get(&fails.result).unwrap_err(), error);
        goes_on.wait_for(LONG).unwrap();
        same_again.wait_for(LONG).unwrap();
        assert_eq!(same_again.get(&fails.result).unwrap()[1], 1, "only the second run ran");
        assert_eq!(bench.content(&depends.buffer), [0; 64]);

        let late = depends.executable.submit_to(&queue).after(&failed).submit().unwrap_err();
        assert_eq!(late, SubmitError::EventFailed { index: 0, cause: Box::new(error) }.into());
        depends.executable.submit(&queue).unwrap().wait_for(LONG).unwrap();
        queue.finish().unwrap();
    }
}

/// Rule S9: plain OpenCL work after a failed submission also runs, because the gate opens.
#[test]
fn plain_work_after_a_submission_that_waits_runs_whatever_becomes_of_it() {
    let bench = Bench::new();
    for status in [0, -9] {
        let stirrer = Stirrer::new(&bench);
        let queue = bench.another_queue(false);
        let event = UserEvent::new(&bench.queue);
        let run = stirrer.executable.submit_to(&queue).after(&event.0).submit().unwrap();
        let plain = common::plain_queue(&queue);
        let mem = stirrer.buffer.to_opencl3().unwrap();
        let mut seen = vec![9_u32; 64];
        // SAFETY: sizes fit; `seen` lives until the queue has finished.
        let read = unsafe { plain.enqueue_read_buffer(&mem, 0, 0, &mut seen, &[]) }.unwrap();
        plain.flush().unwrap();
        assert_ne!(read.command_execution_status().unwrap().0, 0, "held by the gate");
        event.set(status);
        plain.finish().unwrap();
        assert_eq!(run.wait().is_ok(), status == 0);
        assert_eq!(seen[1], u32::from(status == 0), "the read came later the submission");
    }
}

/// Rule S10
#[test]
fn what_another_queue_waits_for_is_flushed() {
    let bench = Bench::new();
    let (a, b) = (Stirrer::new(&bench), Stirrer::new(&bench));
    for _ in 0..50 {
        let other = bench.another_queue(false);
        let first = a.executable.submit(&other).unwrap();
        // The test does not flush `other`; if clgraph did not, waiting for `second` could last for ever.
        let second = b.executable.submit_to(&bench.queue).after(&first).submit().unwrap();
        second.wait_for(LONG).unwrap();
        a.executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
    }
}

#[test]
fn results_belong_to_their_submission_and_a_held_one_is_not_overwritten() {
    let bench = Bench::new();
    let stirrer = Stirrer::with(&bench, Finalize::new().result_slots(4));
    let runs: Vec<_> = (0..4).map(|_| stirrer.executable.submit(&bench.queue).unwrap()).collect();
    let refused = || {
        let node = stirrer.result.node();
        assert_eq!(stirrer.executable.submit(&bench.queue).err(), Some(SubmitError::NoSlot { node, slots: 4 }.into()));
    };
    refused();
    bench.queue.finish().unwrap();
    let guards: Vec<_> = runs.iter().map(|run| run.get(&stirrer.result).unwrap()).collect();
    drop(runs);
    // The results are held still.
    refused();
    let values: Vec<u32> = guards.iter().map(|guard| guard[1]).collect();
    assert_eq!(values, [1, 2, 3, 4].map(Stirrer::expected));
    drop(guards);
    // Nobody holds these results, so any number of submissions is allowed.
    for _ in 0..100 {
        stirrer.executable.submit(&bench.queue).unwrap();
    }
    let last = stirrer.executable.submit(&bench.queue).unwrap();
    last.wait().unwrap();
    assert_eq!(last.get(&stirrer.result).unwrap()[1], Stirrer::expected(105));
    assert_eq!(format!("{:?}", &last.get(&stirrer.result).unwrap()[..1]), "[0]");
}

/// A bound exists only if the program asks for one.
#[test]
fn any_number_of_submissions_may_hold_results() {
    let bench = Bench::new();
    for path in [Path::Auto, Path::Native, Path::Gated, Path::Queues] {
        let stirrer = Stirrer::with(&bench, Finalize::new().path(path));
        let runs: Vec<_> = (0..200).map(|_| stirrer.executable.submit(&bench.queue).unwrap()).collect();
        for (run, times) in runs.iter().zip(1..) {
            run.wait().unwrap();
            assert_eq!(run.get(&stirrer.result).unwrap()[1], Stirrer::expected(times), "{path}");
        }
    }
}

#[test]
fn input_for_one_submission_is_checked_and_does_not_stay() {
    let bench = Bench::new();
    let buffer = bench.buffer(&[0; 4]);
    let graph = bench.graph();
    let write = graph.write(&buffer, [1_u32; 4]).add().unwrap();
    let read = graph.read(&buffer).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let values = |run: Submission| {
        run.wait().unwrap();
        run.get(&read).unwrap().to_vec()
    };
    assert_eq!(
        values(executable.submit_to(&bench.queue).with(&write, [8; 4]).with(&write, [9; 4]).submit().unwrap()),
        [9; 4]
    );
    assert_eq!(values(executable.submit(&bench.queue).unwrap()), [1; 4]);
    let short = executable.submit_to(&bench.queue).with(&write, [8; 3]).submit();
    assert_eq!(short.err(), Some(SubmitError::InputSize { node: write.node(), expected: 16, given: 12 }.into()));
    let other = bench.graph();
    let foreign = other.write(&buffer, [2_u32; 4]).add().unwrap();
    let wrong = executable.submit_to(&bench.queue).with(&foreign, [2; 4]).submit();
    assert_eq!(wrong.err(), Some(SubmitError::NotAnInput { node: foreign.node() }.into()));
    let foreign = other.read(&buffer).add().unwrap();
    let run = executable.submit(&bench.queue).unwrap();
    run.wait().unwrap();
    assert_eq!(run.get(&foreign).err(), Some(SubmitError::NotAResult { node: foreign.node() }.into()));
    // Many in flight, each with its own memory, which is released when the submission has ended.
    for round in 0..200_u32 {
        executable.submit_to(&bench.queue).with(&write, vec![round; 4]).submit_detached().unwrap();
    }
    bench.queue.finish().unwrap();
    assert_eq!(bench.content(&buffer), [199; 4]);
}

/// A callback that panics does not affect others.
#[test]
fn a_callback_that_panics_is_caught() {
    let bench = Bench::new();
    let stirrer = Stirrer::new(&bench);
    let run = stirrer.executable.submit(&bench.queue).unwrap();
    run.on_complete(|_| panic!("a user's mistake"));
    let (sender, receiver) = channel();
    run.on_complete(move |outcome| sender.send(outcome).unwrap());
    assert_eq!(receiver.recv_timeout(LONG).unwrap(), Ok(()));
    stirrer.executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
}

/// A fact of docs/drivers.md: on Intel's runtime, releasing a queue as soon as its last event is complete kills the
/// thread that ran the command, within the first ten of these queues.
#[test]
fn out_of_order_queues_come_and_go_and_the_device_goes_on() {
    let bench = Bench::new();
    let buffer = bench.buffer(&[0; 1024]);
    let graph = bench.graph();
    graph.fill(&buffer, 7).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    for round in 0..200 {
        let queue = bench.another_queue(true);
        let run = executable.submit(&queue).unwrap();
        if round % 2 == 0 {
            run.wait_for(LONG).unwrap();
        }
    }
    executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
    assert_eq!(bench.content(&buffer), [7; 1024]);
}
