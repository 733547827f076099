//! Host tasks: chains, forks and joins on every path, their inputs and results, and how they fail.

mod common;

use std::panic::panic_any;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use clgraph::{
    Buffer, BuildCause, BuildError, Error, ErrorKind, Executable, Finalize, Graph, GroupError, HostTaskContext,
    MemoryError, Node, Path, Progress, RecordError, Submission, SubmitError, UpdateError,
};
use common::{Bench, UserEvent, assert_error, cause, elsewhere};
use quickcheck::{Arbitrary, Gen, QuickCheck};

const LEN: usize = 64;
const PATHS: [Path; 5] = [Path::Auto, Path::Native, Path::Replay, Path::Gated, Path::Queues];

fn each(of: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..LEN as u32).map(of).collect()
}

/// `to = from * 3 + by`
fn scale(bench: &Bench, graph: &Graph, from: &Buffer<u32>, to: &Buffer<u32>, by: u32) -> Node {
    // SAFETY: a work-item touches its own element.
    unsafe { graph.kernel(&bench.kernel("scale")).read(from).write(to).arg(by).range(LEN).add() }.unwrap()
}

/// `to = from * by + 1`, on the host. Returns the last node.
fn on_the_host(graph: &Graph, from: &Buffer<u32>, to: &Buffer<u32>, by: u32) -> Node {
    let read = graph.read(from).add().unwrap();
    let write = graph.write(to, [0; LEN]).add().unwrap();
    let task = graph.host_task(move |task| {
        let numbers: Vec<u32> = task.get(&read)?.iter().map(|n| n.wrapping_mul(by).wrapping_add(1)).collect();
        task.put(&write, numbers)
    });
    let task = task.after(read).add().unwrap();
    graph.add_edge(task, write.node()).unwrap();
    write.node()
}

#[track_caller]
fn failure(outcome: clgraph::Result<()>) -> SubmitError {
    match outcome {
        Err(Error::Submit(error)) => error,
        other => panic!("a SubmitError was expected, not {other:?}"),
    }
}

/// Counts the calls.
fn counting(count: &Arc<AtomicU32>) -> impl FnMut(&HostTaskContext<'_>) + Send + 'static + use<> {
    let count = Arc::clone(count);
    move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// A host task waits until the door is opened.
struct Door(Sender<()>, Arc<Mutex<Receiver<()>>>);

impl Door {
    fn new() -> Self {
        let (open, wait) = mpsc::channel();
        Self(open, Arc::new(Mutex::new(wait)))
    }

    fn open(&self) {
        self.0.send(()).unwrap();
    }

    fn pass(&self) -> impl FnMut() + Send + 'static + use<> {
        let wait = Arc::clone(&self.1);
        move || wait.lock().unwrap().recv_timeout(Duration::from_secs(60)).expect("nobody opened the door")
    }
}

#[track_caller]
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Rules H1, H2, S4
#[test]
fn a_chain_of_kernels_and_host_tasks_gives_what_a_loop_would() {
    for path in PATHS {
        for updatable in [false, true] {
            let bench = Bench::new();
            let (a, b) = (bench.buffer(&each(|i| i)), bench.buffer(&[0; LEN]));
            let graph = bench.graph();
            scale(&bench, &graph, &a, &b, 5);
            on_the_host(&graph, &b, &a, 2);
            scale(&bench, &graph, &a, &b, 7);
            on_the_host(&graph, &b, &a, 3);
            let options = Finalize::new().path(path).result_slots(10);
            let executable = graph.finalize(if updatable { options.updatable() } else { options }).unwrap();
            let mut expected = each(|i| i);
            let mut runs = Vec::new();
            for _ in 0..10 {
                for n in &mut expected {
                    let once = n.wrapping_mul(3).wrapping_add(5).wrapping_mul(2).wrapping_add(1);
                    *n = once.wrapping_mul(3).wrapping_add(7).wrapping_mul(3).wrapping_add(1);
                }
                // Nothing waits in between: each submission runs after the one before.
                runs.push(executable.submit(&bench.queue).unwrap());
            }
            // Later commands of the queue run after all of them.
            assert_eq!(bench.content(&a), expected, "{path:?}");
            for run in runs {
                run.wait().unwrap();
                assert_eq!(run.progress().unwrap(), Progress::Complete);
            }
        }
    }
}

/// Rules H1, H2, S4
#[test]
fn forks_and_joins_wait_for_all_that_they_are_after_and_for_nothing_else() {
    let bench = Bench::new();
    for path in PATHS {
        let graph = bench.graph();
        let log = Arc::new(Mutex::new(Vec::new()));
        let say = |what: &'static str| {
            let log = Arc::clone(&log);
            move |_: &HostTaskContext<'_>| log.lock().unwrap().push(what)
        };
        let (left, right) = (Door::new(), Door::new());
        let (mut pass_left, mut pass_right) = (left.pass(), right.pass());
        let first = graph.host_task(say("first")).add().unwrap();
        let say_left = say("left");
        let left_node = graph.host_task(move |task| {
            pass_left();
            say_left(task);
        });
        let left_node = left_node.after(first).add().unwrap();
        let say_right = say("right");
        let right_node = graph.host_task(move |task| {
            pass_right();
            say_right(task);
        });
        let right_node = right_node.after(first).add().unwrap();
        let after_right = graph.host_task(say("later right")).after(right_node).add().unwrap();
        graph.host_task(say("last")).after([left_node, after_right]).add().unwrap();
        let run = graph.finalize(Finalize::new().path(path)).unwrap().submit(&bench.queue).unwrap();
        right.open();
        eventually("later right", || log.lock().unwrap().last() == Some(&"later right"));
        assert_eq!(run.progress().unwrap(), Progress::Running);
        let limit = Duration::from_millis(5);
        assert_eq!(failure(run.wait_for(limit)), SubmitError::TimedOut(limit));
        left.open();
        run.wait().unwrap();
        assert_eq!(*log.lock().unwrap(), ["first", "right", "later right", "left", "last"]);
    }
}

/// A command of a random graph.
#[derive(Clone, Copy, Debug)]
struct Step {
    on_host: bool,
    from: u8,
    to: u8,
    by: u32,
}

impl Arbitrary for Step {
    fn arbitrary(g: &mut Gen) -> Self {
        Self { on_host: bool::arbitrary(g), from: u8::arbitrary(g), to: u8::arbitrary(g), by: u32::arbitrary(g) % 16 }
    }
}

/// Rules H1, H2
#[test]
fn random_graphs_with_host_tasks_give_the_bytes_of_one_step_after_the_other() {
    const BUFFERS: usize = 5;
    fn runs_as_its_model(mut steps: Vec<Step>) -> bool {
        steps.truncate(24);
        static BENCH: OnceLock<Bench> = OnceLock::new();
        let bench = BENCH.get_or_init(Bench::new);
        let start = |at: usize| each(|i| i * 7 + at as u32);
        let mut model: Vec<Vec<u32>> = (0..BUFFERS).map(start).collect();
        let at = |step: &Step| {
            let (from, to) = (usize::from(step.from) % BUFFERS, usize::from(step.to) % BUFFERS);
            (from, if from == to { (to + 1) % BUFFERS } else { to })
        };
        for _ in 0..2 {
            for step in &steps {
                let (from, to) = at(step);
                let of = |n: &u32| match step.on_host {
                    true => n.wrapping_mul(step.by).wrapping_add(1),
                    false => n.wrapping_mul(3).wrapping_add(step.by),
                };
                model[to] = model[from].iter().map(of).collect();
            }
        }
        PATHS.into_iter().all(|path| {
            let buffers: Vec<Buffer<u32>> = (0..BUFFERS).map(|at| bench.buffer(&start(at))).collect();
            let graph = bench.graph();
            for step in &steps {
                let (from, to) = at(step);
                let (from, to) = (&buffers[from], &buffers[to]);
                if step.on_host {
                    on_the_host(&graph, from, to, step.by);
                } else {
                    scale(bench, &graph, from, to, step.by);
                }
            }
            let executable = graph.finalize(Finalize::new().path(path)).unwrap();
            executable.submit(&bench.queue).unwrap();
            executable.submit(&bench.queue).unwrap().wait().unwrap();
            let content: Vec<Vec<u32>> = buffers.iter().map(|buffer| bench.content(buffer)).collect();
            content == model
        })
    }
    QuickCheck::new().tests(40).quickcheck(runs_as_its_model as fn(Vec<Step>) -> bool);
}

/// Rules S4, S5, S6
#[test]
fn submitting_returns_at_once_and_what_follows_on_the_queue_waits() {
    let bench = Bench::new();
    for path in PATHS {
        let (a, b) = (bench.buffer(&each(|i| i)), bench.buffer(&[0; LEN]));
        let graph = bench.graph();
        let door = Door::new();
        let mut pass = door.pass();
        let first = graph.read(&a).add().unwrap();
        let task = graph.host_task(move |_| pass()).after(first).add().unwrap();
        let fill = graph.fill(&b, 9_u32).after(task).add().unwrap();
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        let run = executable.submit(&bench.queue).unwrap();
        let again = executable.submit(&bench.queue).unwrap();
        let _ = fill;
        let seen = bench.queue.enqueue_read_buffer_owned(&b, 0, LEN, &[]).unwrap();
        eventually("running", || run.progress().unwrap() == Progress::Running);
        bench.let_threads_run();
        assert_eq!(run.progress().unwrap(), Progress::Running);
        assert_eq!(again.progress().unwrap(), Progress::Waiting);
        assert!(matches!(failure(run.get(&first).map(drop)), SubmitError::NotComplete));
        door.open();
        door.open();
        let seen = seen.wait().unwrap();
        assert_eq!(seen, [9; LEN]);
        assert_eq!(*run.get(&first).unwrap(), *each(|i| i));
        again.wait().unwrap();
    }
}

/// Rules S3, S4, H1
#[test]
fn a_task_that_waits_for_no_node_waits_for_the_queue_and_for_the_submission_before() {
    let bench = Bench::new();
    for out_of_order in [false, true] {
        let queue = bench.another_queue(out_of_order);
        let graph = bench.graph();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (door, steps) = (Door::new(), Arc::clone(&log));
        let mut pass = door.pass();
        graph.host_task(move |_| steps.lock().unwrap().push("task")).add().unwrap();
        let executable = graph.finalize(Finalize::new()).unwrap();
        let other = bench.graph();
        let steps = Arc::clone(&log);
        let task = other.host_task(move |_| {
            pass();
            steps.lock().unwrap().push("first");
        });
        task.add().unwrap();
        let slow = other.finalize(Finalize::new()).unwrap().submit(&queue).unwrap();
        let run = executable.submit_to(&queue).after(&slow).submit().unwrap();
        let same = executable.submit(&bench.queue).unwrap();
        // A host task after a node that is no command.
        let hollow = bench.graph();
        let (empty, steps) = (hollow.empty().add().unwrap(), Arc::clone(&log));
        hollow.host_task(move |_| steps.lock().unwrap().push("hollow")).after(empty).add().unwrap();
        let hollow = hollow.finalize(Finalize::new()).unwrap();
        let user = UserEvent::new(&queue);
        let plain = common::plain_queue(&bench.queue);
        // SAFETY: a live event.
        unsafe { plain.enqueue_barrier_with_wait_list(&[user.0.get()]) }.unwrap();
        let later = executable.submit(&bench.queue).unwrap();
        let last = hollow.submit(&bench.queue).unwrap();
        bench.let_threads_run();
        assert!(log.lock().unwrap().is_empty());
        door.open();
        run.wait().unwrap();
        same.wait().unwrap();
        bench.let_threads_run();
        assert_eq!(*log.lock().unwrap(), ["first", "task", "task"]);
        user.set(0);
        later.wait().unwrap();
        last.wait().unwrap();
        assert_eq!(*log.lock().unwrap(), ["first", "task", "task", "task", "hollow"]);
    }
}

/// Rule S9
#[test]
fn a_failing_event_that_it_waits_for_ends_it_before_any_task_runs() {
    let bench = Bench::new();
    let graph = bench.graph();
    let count = Arc::new(AtomicU32::new(0));
    graph.host_task(counting(&count)).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let event = UserEvent::new(&bench.queue);
    let run = executable.submit_to(&bench.queue).after(&event.0).submit().unwrap();
    bench.let_threads_run();
    assert_eq!((run.progress().unwrap(), count.load(Ordering::Relaxed)), (Progress::Waiting, 0));
    event.set(-1);
    assert!(matches!(failure(run.wait()), SubmitError::DependencyFailed { .. }));
    executable.submit(&bench.queue).unwrap().wait().unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

/// Rules H3, H5, E2
#[test]
fn an_error_or_a_panic_fails_the_submission_with_its_text_and_the_rest_goes_on() {
    let bench = Bench::new();
    let panics: [(fn(), &str); 4] = [
        (|| panic!("no more frames"), "it panicked: no more frames"),
        (|| panic!("frame {}", 7), "it panicked: frame 7"),
        (|| panic_any(7_u32), "it panicked: with something that is no text"),
        (|| {}, "the file is gone"),
    ];
    for path in PATHS {
        for (panics, says) in panics {
            let (a, b) = (bench.buffer(&each(|i| i)), bench.buffer(&[0; LEN]));
            let (c, d) = (bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]));
            let graph = bench.graph();
            scale(&bench, &graph, &a, &b, 5);
            let fails = Arc::new(Mutex::new(true));
            let still = Arc::clone(&fails);
            let fail = graph.host_task(move |_| {
                if std::mem::take(&mut *still.lock().unwrap()) {
                    panics();
                    return Err("the file is gone");
                }
                Ok(())
            });
            let fail = fail.reads(&b).add().unwrap();
            // What waits for the task does not run, tasks included.
            let never = graph.fill(&c, 1_u32).after(fail).add().unwrap();
            let count = Arc::new(AtomicU32::new(0));
            graph.host_task(counting(&count)).after(never).add().unwrap();
            // Another branch.
            let other = graph.host_task(|_| ()).add().unwrap();
            graph.fill(&d, 2_u32).after(other).add().unwrap();
            let executable = graph.finalize(Finalize::new().path(path)).unwrap();

            let run = executable.submit(&bench.queue).unwrap();
            let error = failure(run.wait());
            assert_eq!(error.kind(), ErrorKind::Failed);
            let (what, text) = ("host task".to_owned(), says.to_owned());
            assert_eq!(error, SubmitError::HostTask { node: fail, what, text });
            assert_eq!(run.progress().unwrap(), Progress::Failed);
            assert_eq!(bench.content(&b), each(|i| i * 3 + 5));
            assert_eq!((bench.content(&c), bench.content(&d)), (vec![0; LEN], vec![2; LEN]));
            assert_eq!(count.load(Ordering::Relaxed), 0);

            executable.submit(&bench.queue).unwrap().wait().unwrap();
            assert_eq!((bench.content(&c), count.load(Ordering::Relaxed)), (vec![1; LEN], 1));
        }
    }
}

/// Rules H4, U2
#[test]
fn another_function_comes_with_an_update_and_submissions_in_flight_keep_theirs() {
    let bench = Bench::new();
    let graph = bench.graph();
    let (door, log) = (Door::new(), Arc::new(Mutex::new(Vec::new())));
    let mut pass = door.pass();
    let first = Arc::clone(&log);
    let wait = graph.host_task(move |_| pass()).add().unwrap();
    let task = graph.host_task(move |_| first.lock().unwrap().push(1)).after(wait).add().unwrap();
    let fixed = graph.finalize(Finalize::new()).unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    let before = executable.submit(&bench.queue).unwrap();
    let second = Arc::clone(&log);
    graph.host_task(move |_| second.lock().unwrap().push(2)).replace(task).unwrap();
    executable.update(&task).unwrap();
    assert_eq!(fixed.update(&task), Err(UpdateError::NotUpdatable.into()));
    let after = executable.submit(&bench.queue).unwrap();
    door.open();
    before.wait().unwrap();
    assert_eq!(*log.lock().unwrap(), [1]);
    door.open();
    after.wait().unwrap();
    assert_eq!(*log.lock().unwrap(), [1, 2]);

    // A whole graph, whose function knows its own graph's nodes by their handles; and then a graph that does not match.
    let other = bench.graph();
    let third = Arc::clone(&log);
    let nothing = other.host_task(|_| ()).add().unwrap();
    other.host_task(move |_| third.lock().unwrap().push(3)).after(nothing).add().unwrap();
    executable.update_from(&other).unwrap();
    executable.submit(&bench.queue).unwrap().wait().unwrap();
    assert_eq!(*log.lock().unwrap(), [1, 2, 3]);
    let unlike = bench.graph();
    let a = bench.buffer(&[0; LEN]);
    let nothing = unlike.host_task(|_| ()).add().unwrap();
    unlike.fill(&a, 1_u32).after(nothing).add().unwrap();
    assert_error!(
        executable.update_from(&unlike),
        UpdateError::Differs { difference } if difference.contains("host task"),
    );
    let not_a_task = unlike.fill(&a, 2_u32).add().unwrap();
    assert!(matches!(cause(unlike.host_task(|_| ()).replace(not_a_task)), BuildCause::Replace { .. }));
}

/// Rule H1: inputs and results of a task.
#[test]
fn what_a_task_asks_for_too_early_or_gives_too_late_is_an_error() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&each(|i| i)), bench.buffer(&[0; LEN]));
    let graph = bench.graph();
    let elsewhere = bench.graph();
    let (foreign, foreign_write) = (elsewhere.read(&a).add().unwrap(), elsewhere.write(&a, [0; LEN]).add().unwrap());
    let before = graph.write(&a, each(|i| i + 1)).add().unwrap();
    let early = graph.read(&a).add().unwrap();
    let late = graph.write(&b, [0; LEN]).add().unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let (results, numbers, put) = (Arc::clone(&log), early, late);
    let afterwards = graph.read(&b).add().unwrap();
    let result = afterwards;
    let task = graph.host_task(move |task| {
        *results.lock().unwrap() = vec![
            task.get(&numbers).map(drop),
            task.get(&result).map(drop),
            task.get(&foreign).map(drop),
            task.put(&before, vec![0; LEN]),
            task.put(&foreign_write, vec![0; LEN]),
            task.put(&put, vec![0; LEN - 1]),
            task.put(&put, vec![3; LEN]),
            // The last data count.
            task.put(&put, vec![4; LEN]),
        ];
    });
    let task = task.after(early).add().unwrap();
    graph.add_edge(task, late.node()).unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let run = executable.submit(&bench.queue).unwrap();
    run.wait().unwrap();
    assert_eq!(*run.get(&early).unwrap(), *each(|i| i + 1));
    assert_eq!(*run.get(&afterwards).unwrap(), [4; LEN]);
    let refused = |error: SubmitError| Err(Error::from(error));
    let expected = [
        Ok(()),
        refused(SubmitError::NotAfterRead { task, read: afterwards.node() }),
        refused(SubmitError::NotAResult { node: foreign.node() }),
        refused(SubmitError::InputTaken { node: before.node() }),
        refused(SubmitError::NotAnInput { node: foreign_write.node() }),
        refused(SubmitError::InputSize { node: late.node(), expected: 256, given: 252 }),
        Ok(()),
        Ok(()),
    ];
    assert_eq!(*log.lock().unwrap(), expected);

    let foreign = elsewhere_buffer();
    assert_error!(graph.host_task(|_| ()).reads(&foreign).add(), BuildCause::OtherContext { .. }, "its memory");
    let _ = cause(graph.host_task(|_| ()).writes(&foreign).add());
}

fn elsewhere_buffer() -> Buffer<u32> {
    elsewhere().buffer(&[0; LEN])
}

/// Rule H1
#[test]
fn a_task_after_an_empty_node_waits_for_what_that_is_after() {
    let bench = Bench::new();
    let a = bench.buffer(&each(|i| i));
    let graph = bench.graph();
    // SAFETY: a work-item touches its own element.
    unsafe { graph.kernel(&bench.kernel("spin")).read_write(&a).arg(2_000_000_u32).range(LEN).add() }.unwrap();
    let read = graph.read(&a).add().unwrap();
    graph.host_task(|_| ()).after(read).add().unwrap();
    let empty = graph.empty().after(read).add().unwrap();
    graph.host_task(move |task| task.get(&read).map(drop)).after(empty).add().unwrap();
    graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap().wait().unwrap();
}

/// A task waits for its own submission, for others, and for graphs that tasks submit.
#[test]
fn a_task_may_submit_and_wait_but_not_for_itself() {
    let bench = Bench::new();
    let b = bench.buffer(&[0; LEN]);
    let inner = bench.graph();
    inner.fill(&b, 5_u32).add().unwrap();
    let inner = inner.finalize(Finalize::new()).unwrap();
    let graph = bench.graph();
    let own: Arc<OnceLock<Submission>> = Arc::default();
    let (sent, came) = mpsc::channel();
    let (this, queue) = (Arc::clone(&own), bench.another_queue(false));
    let door = Door::new();
    let mut pass = door.pass();
    graph
        .host_task(move |_| -> clgraph::Result<()> {
            pass();
            inner.submit(&queue)?.wait()?;
            let own = this.get().unwrap();
            let _ = sent.send([failure(own.wait()), failure(own.wait_for(Duration::from_secs(1)))]);
            // An error of clgraph is the error of the task.
            own.wait()
        })
        .writes(&b)
        .add()
        .unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
    own.set(run.clone()).unwrap();
    door.open();
    let SubmitError::HostTask { text, .. } = failure(run.wait()) else { panic!("it is the task's failure") };
    assert_eq!(text, SubmitError::OwnSubmission.to_string());
    assert!(came.recv().unwrap().iter().all(|error| matches!(error, SubmitError::OwnSubmission)));
    assert_eq!(bench.content(&b), [5; LEN]);
}

/// Rule H6
#[test]
fn a_task_may_drop_the_last_handle_of_its_executable_and_of_all_else() {
    let bench = Bench::new();
    let graph = bench.graph();
    let handles: Arc<Mutex<Option<(Executable, Graph)>>> = Arc::default();
    let (this, door) = (Arc::clone(&handles), Door::new());
    let mut pass = door.pass();
    let task = graph.host_task(move |_| {
        pass();
        drop(this.lock().unwrap().take());
    });
    let task = task.add().unwrap();
    let (b, tell) = bench.telling_buffer(&[0; LEN]);
    graph.fill(&b, 3_u32).after(task).add().unwrap();
    // By replay, because Intel's CPU runtime retains buffers that recorded fills name.
    let executable = graph.finalize(Finalize::new().path(Path::Replay)).unwrap();
    let run = executable.submit(&bench.queue).unwrap();
    *handles.lock().unwrap() = Some((executable, graph));
    door.open();
    run.wait().unwrap();
    assert_eq!(bench.content(&b), [3; LEN]);
    drop((b, run));
    tell.wait_until_gone();
}

/// Rule S5: other work goes on, and dropping never waits.
#[test]
fn a_task_that_does_not_return_holds_up_nothing_but_what_waits_for_it() {
    let bench = Bench::new();
    let graph = bench.graph();
    let (a, b) = (bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]));
    let door = Door::new();
    let mut pass = door.pass();
    let task = graph.host_task(move |_| pass()).add().unwrap();
    graph.fill(&a, 1_u32).after(task).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let stuck = executable.submit(&bench.queue).unwrap();
    drop((executable, graph));
    let free = Bench { queue: bench.another_queue(false), program: bench.program.clone() };
    let other = free.graph();
    let count = Arc::new(AtomicU32::new(0));
    let task = other.host_task(counting(&count)).add().unwrap();
    other.fill(&b, 2_u32).after(task).add().unwrap();
    free.run(&other);
    assert_eq!((free.content(&b), count.load(Ordering::Relaxed)), (vec![2; LEN], 1));
    eventually("running", || stuck.progress().unwrap() == Progress::Running);
    door.open();
    stuck.wait().unwrap();
    assert_eq!(bench.content(&a), [1; LEN]);
}

/// The other half of the test below: the process ends while a task runs that never returns.
#[test]
fn the_child_ends_while_a_task_runs() {
    let is_child = std::env::var_os("CLGRAPH_TEST_CHILD").is_some();
    let bench = Bench::new();
    let graph = bench.graph();
    let (say, came) = mpsc::channel();
    graph
        .host_task(move |_| {
            let _ = say.send(());
            if is_child {
                loop {
                    std::thread::park();
                }
            }
        })
        .add()
        .unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
    came.recv().unwrap();
    if is_child {
        println!("RESULT running: {:?}", run.progress().unwrap());
    } else {
        run.wait().unwrap();
    }
}

/// A program ends although a host task never returns.
#[test]
fn main_returns_while_a_task_runs() {
    let this = std::env::current_exe().unwrap();
    let mut child = std::process::Command::new(this);
    child.args(["--exact", "the_child_ends_while_a_task_runs", "--nocapture"]).env("CLGRAPH_TEST_CHILD", "1");
    child.stdout(std::process::Stdio::piped());
    let mut child = child.spawn().unwrap();
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if begin.elapsed() > Duration::from_secs(60) => {
                child.kill().unwrap();
                panic!("the program never ended");
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("RESULT running: Running"), "{text}");
    assert!(status.success(), "{status}: {text}");
}

/// Rules N1, H1
#[test]
fn sub_graphs_have_host_tasks() {
    let bench = Bench::new();
    for path in PATHS {
        let (a, b) = (bench.buffer(&each(|i| i)), bench.buffer(&[0; LEN]));
        let child = bench.graph();
        let count = Arc::new(AtomicU32::new(0));
        scale(&bench, &child, &a, &b, 1);
        child.host_task(counting(&count)).reads(&b).add().unwrap();
        scale(&bench, &child, &b, &a, 2);
        let child = child.finalize(Finalize::new().path(path)).unwrap();
        let graph = bench.graph();
        graph.sub_graph(&child).add().unwrap();
        graph.sub_graph(&child).add().unwrap();
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        child.submit(&bench.queue).unwrap().wait().unwrap();
        assert_eq!(count.load(Ordering::Relaxed), 3);
        let once = |n: u32| (n * 3 + 1) * 3 + 2;
        assert_eq!(bench.content(&a), each(|i| once(once(once(i)))));
    }
}

/// Rules N1, H1
#[test]
fn a_task_inside_of_sub_graphs_knows_the_writes_and_reads_of_its_own_graph() {
    let bench = Bench::new();
    for path in PATHS {
        let (a, b) = (bench.buffer(&each(|i| i)), bench.buffer(&[0; LEN]));
        let child = bench.graph();
        on_the_host(&child, &a, &b, 2);
        on_the_host(&child, &b, &a, 3);
        let child = child.finalize(Finalize::new().path(path)).unwrap();
        let middle = bench.graph();
        // Nodes of its own before, between and after.
        on_the_host(&middle, &a, &b, 5);
        middle.sub_graph(&child).add().unwrap();
        middle.sub_graph(&child).add().unwrap();
        on_the_host(&middle, &a, &b, 7);
        let middle = middle.finalize(Finalize::new().path(path)).unwrap();
        let graph = bench.graph();
        on_the_host(&graph, &b, &a, 11);
        graph.sub_graph(&middle).add().unwrap();
        graph.sub_graph(&child).add().unwrap();
        on_the_host(&graph, &a, &b, 13);
        let executable = graph.finalize(Finalize::new().path(path)).unwrap();
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        let on_host = |n: u32, by: u32| n.wrapping_mul(by).wrapping_add(1);
        let child = |a: u32| on_host(on_host(a, 2), 3);
        let all = (0..LEN).map(|_| {
            let a = on_host(0, 11);
            let a = child(child(child(a)));
            (a, on_host(a, 13))
        });
        let (expected_a, expected_b): (Vec<u32>, Vec<u32>) = all.unzip();
        assert_eq!((bench.content(&a), bench.content(&b)), (expected_a, expected_b), "{path:?}");
    }
}

/// Rules H1, R1
#[test]
fn queues_take_host_tasks_whether_they_record_or_not() {
    let bench = Bench::new();
    for out_of_order in [false, true] {
        let queue = bench.another_queue(out_of_order);
        let a = bench.buffer(&[0; LEN]);
        let log = Arc::new(Mutex::new(Vec::new()));
        let say = |what: &'static str| {
            let log = Arc::clone(&log);
            move |_: &HostTaskContext<'_>| log.lock().unwrap().push(what)
        };
        let enqueue = || -> clgraph::Result<Submission> {
            let first = queue.enqueue_host_task(say("first"), &[])?;
            let fill = queue.enqueue_fill_buffer(&a, &[7], 0, LEN * 4, &[&first.event()?])?;
            let second = queue.enqueue_host_task(say("second"), &[&fill])?;
            queue.enqueue_host_task(say("third"), &[&second.event()?])
        };
        let executed = enqueue().unwrap();
        assert!(executed.sub_graph().is_none());
        executed.wait().unwrap();
        assert_eq!(std::mem::take(&mut *log.lock().unwrap()), ["first", "second", "third"]);
        assert_eq!(bench.content(&a), [7; LEN]);

        let graph = bench.graph();
        let recorded = graph.record(&queue, enqueue).unwrap();
        assert_eq!(graph.nodes().len(), 4);
        assert!(recorded.event().unwrap().node().is_some() && recorded.sub_graph().is_none());
        assert_error!(recorded.wait(), RecordError::Recorded { what: "waited for", .. });
        assert!(log.lock().unwrap().is_empty());
        let executable = graph.finalize(Finalize::new()).unwrap();
        for _ in 0..2 {
            executable.submit(&queue).unwrap().wait().unwrap();
            assert_eq!(std::mem::take(&mut *log.lock().unwrap()), ["first", "second", "third"]);
        }

        let fails = queue.enqueue_host_task(|_| Err::<(), _>("no more frames"), &[]).unwrap();
        assert_error!(
            fails.wait(),
            SubmitError::HostTask { what, text, .. } if what == "host task" && text == "no more frames",
        );
        let event = UserEvent::new(&queue);
        event.set(-1);
        let failed = clgraph::Event::from_opencl3(&event.0).unwrap();
        assert_error!(queue.enqueue_host_task(|_| (), &[&failed]), SubmitError::EventFailed { index: 0, .. });
    }
}

/// Rules H4, U5, N5
#[test]
fn functions_that_updates_bring_know_the_nodes_that_theirs_stand_for() {
    let bench = Bench::new();
    for path in PATHS {
        let (a, b) = (bench.buffer(&each(|i| i)), bench.buffer(&[0; LEN]));
        let updatable = || Finalize::new().path(path).updatable();
        let of = |by: u32| {
            let graph = bench.graph();
            on_the_host(&graph, &a, &b, by);
            on_the_host(&graph, &b, &a, by);
            graph
        };
        let twice = |n: u32, by: u32| (n * by + 1) * by + 1;
        // A whole graph.
        let executable = of(2).finalize(updatable()).unwrap();
        executable.update_from(&of(3)).unwrap();
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        assert_eq!(bench.content(&a), each(|i| twice(i, 3)), "{path:?}");
        // A sub-graph that was updated, used twice, at two depths.
        let child = of(1).finalize(updatable()).unwrap();
        let middle = bench.graph();
        on_the_host(&middle, &b, &b, 1);
        let inner = middle.sub_graph(&child).add().unwrap();
        let middle_executable = middle.finalize(updatable()).unwrap();
        let outer = bench.graph();
        on_the_host(&outer, &b, &b, 1);
        let first = outer.sub_graph(&child).add().unwrap();
        let second = outer.sub_graph(&middle_executable).add().unwrap();
        let outer = outer.finalize(updatable()).unwrap();
        child.update_from(&of(2)).unwrap();
        middle_executable.update(&inner).unwrap();
        outer.update(&[first.node(), second.node()]).unwrap();
        outer.submit(&bench.queue).unwrap().wait().unwrap();
        assert_eq!(bench.content(&a), each(|i| twice(twice(twice(i, 3), 2), 2)), "{path:?}");
    }
}

/// Rules C1, C2, C3, H4
#[test]
fn groups_of_tasks_change_what_runs_when_an_executable_is_updated() {
    let bench = Bench::new();
    let queue = bench.another_queue(false);
    let (a, b) = (bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]));
    let graph = bench.graph();
    let read = graph.read(&a).add().unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let say = |what: &'static str| {
        let log = Arc::clone(&log);
        graph.host_task(move |task| task.get(&read).map(|_| log.lock().unwrap().push(what))).reads(&a).writes(&b)
    };
    let group = graph.host_task_group([say("one"), say("two"), say("three")]).unwrap();
    let first = graph.command_group_node(&group).after(read).add().unwrap();
    // Another node of it, which is recorded.
    graph.begin_recording(&queue).unwrap();
    let event = queue.enqueue_command_group(&group, &[]).unwrap();
    let second = event.node().unwrap();
    graph.end_recording(&queue).unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    let texts = |executable: &Executable| {
        executable.submit(&queue).unwrap().wait().unwrap();
        std::mem::take(&mut *log.lock().unwrap())
    };
    assert_eq!(texts(&executable), ["one", "one"]);
    group.set_active_index(2).unwrap();
    assert_eq!(group.active_index().unwrap(), 2);
    assert_eq!(texts(&executable), ["one", "one"], "not before an update");
    executable.update(&second).unwrap();
    assert_eq!(texts(&executable), ["one", "three"]);
    executable.update(&first).unwrap();
    assert_eq!(texts(&executable), ["three", "three"]);
    group.set_active_index(1).unwrap();
    assert_eq!(texts(&graph.finalize(Finalize::new()).unwrap()), ["two", "two"]);

    assert!(matches!(
        cause(group.set_active_index(3)),
        BuildCause::Group(GroupError::Index { index: 3, count: 3, .. })
    ));
    assert_error!(say("four").replace(first), BuildCause::OtherKind { why, .. } if why.contains("set_active_index"));
    assert!(matches!(cause(graph.host_task_group([])), BuildCause::Group(GroupError::Empty { .. })));
    let other = graph.host_task(|_| ()).reads(&b);
    assert_error!(
        graph.host_task_group([say("one"), other]),
        BuildError { subject, cause, .. }
            if subject == "host task 1 of a command group"
                && matches!(&**cause, BuildCause::Group(GroupError::Accesses { what: "host task" })),
    );
    let after = say("one").after(first);
    assert!(matches!(cause(graph.host_task_group([after])), BuildCause::Group(GroupError::Options { .. })));
    let foreign = graph.host_task(|_| ()).reads(&elsewhere_buffer());
    assert_error!(graph.host_task_group([foreign]), BuildCause::OtherContext { .. });
    let unlike = bench.graph();
    assert_error!(unlike.command_group_node(&group).add(), BuildCause::Group(GroupError::OtherGraph));
    assert_eq!(texts(&executable), ["three", "three"]);
}

/// Rules D1, U6, H4
#[test]
fn conflicts_of_tasks_are_seen_by_updates() {
    let bench = Bench::new();
    let (a, b, c) = (bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]));
    let graph = bench.graph();
    let fill = graph.fill(&a, 1_u32).add().unwrap();
    let task = graph.host_task(|_| ()).writes(&b).add().unwrap();
    let later = graph.fill(&c, 2_u32).after(task).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    // Nothing orders the two.
    graph.fill(&b, 3_u32).replace(fill).unwrap();
    let of_both = |refused: clgraph::Result<()>| {
        assert_error!(
            refused,
            UpdateError::Conflict { first, second, .. } if [*first, *second] == [task, fill],
        );
    };
    of_both(executable.update(&fill));
    graph.fill(&a, 1_u32).replace(fill).unwrap();
    executable.update(&fill).unwrap();
    // An edge orders these.
    graph.fill(&b, 4_u32).replace(later).unwrap();
    executable.update(&later).unwrap();
    graph.host_task(|_| ()).writes(&c).replace(task).unwrap();
    executable.update(&task).unwrap();
    graph.host_task(|_| ()).writes(&a).replace(task).unwrap();
    of_both(executable.update(&task));
    executable.submit(&bench.queue).unwrap().wait().unwrap();
    assert_eq!((bench.content(&a), bench.content(&b)), (vec![1; LEN], vec![4; LEN]));
}

/// 95 layers of 59 launches, with a host task after each, 20 times.
#[test]
fn many_tasks_between_many_launches_end_in_the_right_sum() {
    const LAYERS: usize = 95;
    const WIDTH: usize = 59;
    const PASSES: usize = 20;
    let bench = Bench::new();
    let a = bench.buffer(&[0; 1]);
    let graph = bench.graph();
    let stir = bench.kernel("add");
    let one = bench.buffer(&[1; 1]);
    let count = Arc::new(AtomicU32::new(0));
    for _ in 0..LAYERS {
        for _ in 0..WIDTH {
            // SAFETY: a work-item touches its own element.
            unsafe { graph.kernel(&stir).read_write(&a).read(&one).range(1).add() }.unwrap();
        }
        let task = graph.host_task(counting(&count));
        task.reads_and_writes(&a).add().unwrap();
    }
    let executable = graph.finalize(Finalize::new()).unwrap();
    let runs: Vec<Submission> = (0..PASSES).map(|_| executable.submit(&bench.queue).unwrap()).collect();
    for run in runs {
        run.wait().unwrap();
    }
    assert_eq!(bench.content(&a), [(LAYERS * WIDTH * PASSES) as u32]);
    assert_eq!(count.load(Ordering::Relaxed), (LAYERS * PASSES) as u32);
}

/// Returns the processor time that this process has used, in seconds. The system reports it in files.
#[cfg(target_os = "linux")]
fn processor_time() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
    let times = tasks.map(|task| of(task.unwrap()).split(' ').next().and_then(|time| time.parse::<f64>().ok()));
    times.map(Option::unwrap_or_default).sum::<f64>() / 1e9
}

/// The other half of the test below, in a process of its own.
#[cfg(target_os = "linux")]
#[test]
fn the_child_says_what_a_graph_that_waits_costs() {
    let bench = Bench::new();
    let graph = bench.graph();
    let (a, door) = (bench.buffer(&[0; LEN]), Door::new());
    let mut pass = door.pass();
    let task = graph.host_task(move |_| pass()).add().unwrap();
    let event = graph.wait_event().add().unwrap();
    graph.fill(&a, 1_u32).after(task).after(event).add().unwrap();
    let go = clgraph::UserEvent::new(&bench.queue).unwrap();
    let run =
        graph.finalize(Finalize::new()).unwrap().submit_to(&bench.queue).with_event(&event, &go).submit().unwrap();
    let waiter = std::thread::spawn({
        let run = run.clone();
        move || run.wait()
    });
    eventually("running", || run.progress().unwrap() == Progress::Running);
    if std::env::var_os("CLGRAPH_TEST_CHILD").is_some() {
        std::thread::sleep(Duration::from_millis(500));
        let (before, begin) = (processor_time(), Instant::now());
        std::thread::sleep(Duration::from_secs(2));
        println!("RESULT {}", (processor_time() - before) / begin.elapsed().as_secs_f64());
    }
    door.open();
    go.complete().unwrap();
    waiter.join().unwrap().unwrap();
}

/// A graph that waits for a host task and an external event uses under 1 % of a core.
#[cfg(target_os = "linux")]
#[test]
fn a_graph_that_waits_for_a_task_does_not_keep_a_processor_busy() {
    let this = std::env::current_exe().unwrap();
    let mut child = std::process::Command::new(this);
    child.args(["--exact", "the_child_says_what_a_graph_that_waits_costs", "--nocapture"]);
    let output = child.env("CLGRAPH_TEST_CHILD", "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let share =
        text.lines().find_map(|line| line.split_once("RESULT ")).and_then(|(_, share)| share.parse::<f64>().ok());
    assert!(share.is_some_and(|share| share < 0.01), "{share:?} of a core: {text}");
}

/// Rules H1, R1: a recorded task takes the result of a recorded read, and sets the data of a recorded write.
#[test]
fn a_recorded_task_knows_recorded_reads_and_writes() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[4; LEN]), bench.buffer(&[0; LEN]));
    let (graph, later) = (bench.graph(), Arc::new(OnceLock::new()));
    let queue = &bench.queue;
    let into = Arc::clone(&later);
    let result = graph.record(queue, || {
        let read = queue.enqueue_read_buffer_owned(&a, 0, LEN, &[])?.host_read()?;
        queue.enqueue_host_task(
            move |task| task.put(into.get().unwrap(), task.get(&read)?.iter().map(|n| n * 10).collect::<Vec<u32>>()),
            &[],
        )?;
        let write = queue.enqueue_write_buffer(&b, 0, &[0; LEN], &[])?;
        later.set(graph.host_write(graph.node_of(&write)?)?).unwrap();
        queue.enqueue_read_buffer_owned(&b, 0, LEN, &[])?.host_read()
    });
    let result = result.unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit(queue).unwrap();
    run.wait().unwrap();
    assert_eq!(*run.get(&result).unwrap(), [40; LEN]);
    // There is no write handle of the read, and no handle for elements that do not fit.
    assert_error!(
        graph.host_write::<u32>(graph.nodes()[0]),
        BuildCause::OtherKind { is, given, .. } if is == "a host read" && given == "a handle of a host write",
    );
    assert_error!(
        graph.host_write::<[u8; 3]>(graph.nodes()[2]),
        BuildCause::Memory(MemoryError::ElementSize { bytes: 256, element: 3 }),
    );
}

/// Rule H1: a task must wait for the reads that it takes, and the writes that it sets must wait for it, even if
/// everything happens to be complete.
#[test]
fn a_task_that_forgot_an_edge_gets_an_error_every_time() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[4; LEN]), bench.buffer(&[0; LEN]));
    let graph = bench.graph();
    let read = graph.read(&a).add().unwrap();
    let write = graph.write(&b, [0; LEN]).add().unwrap();
    // The test waits for the first event, and completes the second after it. No edge leads from the read to the task.
    let complete = graph.signal_event().after([read.node(), write.node()]).add().unwrap();
    let go_on = graph.wait_event().add().unwrap();
    let (send, results) = mpsc::channel();
    let task = graph.host_task(move |task| {
        send.send((task.get(&read).map(drop), task.put(&write, [1; LEN]))).unwrap();
    });
    let task = task.after(go_on).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    for _ in 0..10 {
        let [end, begin] = [(); 2].map(|()| clgraph::UserEvent::new(&bench.queue).unwrap());
        let run = executable.submit_to(&bench.queue).with_signal(&complete, &end).with_event(&go_on, &begin);
        let run = run.submit().unwrap();
        end.wait_for(Duration::from_secs(60)).unwrap();
        begin.complete().unwrap();
        run.wait().unwrap();
        let (got, put) = results.recv().unwrap();
        assert_eq!(failure(got), SubmitError::NotAfterRead { task, read: read.node() });
        assert_eq!(failure(put), SubmitError::InputTaken { node: write.node() });
    }
}

/// Rule S4: a result's memory is free for the next submission as soon as the last handle is dropped, even if clgraph's
/// threads still handle the submission before.
#[test]
fn one_result_slot_is_enough_for_who_waits_and_lets_go() {
    let bench = Bench::new();
    let graph = bench.graph();
    let a = bench.buffer(&[7; LEN]);
    let read = graph.read(&a).add().unwrap();
    graph.host_task(|_| ()).after(read).add().unwrap();
    let executable = graph.finalize(Finalize::new().result_slots(1)).unwrap();
    for _ in 0..300 {
        let run = executable.submit(&bench.queue).unwrap();
        run.wait().unwrap();
        assert_eq!(run.get(&read).unwrap()[0], 7);
    }
    let held = executable.submit(&bench.queue).unwrap();
    assert!(matches!(failure(executable.submit(&bench.queue).map(drop)), SubmitError::NoSlot { slots: 1, .. }));
    held.wait().unwrap();
}
