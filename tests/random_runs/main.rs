//! Random graphs, compared with an eager run. Their nodes use several parts of memory, and buffers beside their own
//! sub-buffers, also in sub-graphs, host tasks and native commands, and wait for events and complete events. Some of the
//! memory is the graph's own. They run several times on several queues, with input whose owner calls clgraph when it is
//! dropped, wakers that submit, and events that fail. Some are timed, some are updated between submissions, and some run
//! so often that the autotuner chooses.
//! What ran gives the bytes of the eager run, what nothing can stop runs, and everything ends.
//!
//! `CLGRAPH_TEST_RANDOM` is the number of graphs.

mod case;
#[path = "../common/mod.rs"]
mod common;
mod eager;
mod graphs;
#[path = "../common/native.rs"]
mod native;
mod owners;

use std::future::{Future, IntoFuture};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Waker};
use std::time::Duration;

use case::{BUFFERS, Case, LEN, Op, Update, Wait};
use clgraph::{Error, Event, Finalize, Fuse, HostData, Path, Queue, QueueProperties, Report, Submission, SubmitError};
use common::UserEvent;
use eager::Eager;
use graphs::{Maker, Shared, Views};
use owners::{Owner, Submits};
use quickcheck::QuickCheck;

const LONG: Duration = Duration::from_secs(300);

thread_local!(static SHARED: Shared = Shared::new());

/// Whether a submission runs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Runs,
    /// It waits for an event that fails.
    Fails,
    /// It waits for the submission of this number.
    After(usize),
    /// A command before it on its queue fails, and the driver decides (rule S9).
    Unknown,
}

struct Started {
    submission: Option<Submission>,
    input: u32,
    shift: u32,
    fate: Fate,
    awaited: bool,
    signals: Vec<clgraph::UserEvent>,
}

/// Checks that an error says that the submission did not run.
fn did_not_run(error: &Error) {
    let did_not =
        matches!(error, Error::Submit(SubmitError::DependencyFailed { .. } | SubmitError::EventFailed { .. }));
    assert!(did_not, "{error:?}");
}

fn options(case: &Case) -> Finalize {
    let path = [Path::Auto, Path::Native, Path::Replay, Path::Gated, Path::Queues][usize::from(case.path) % 5];
    let mut options = Finalize::new().path(path).commands_per_buffer(3).result_slots(case.runs.len().max(8));
    if case.profiled {
        options = options.profiling();
    }
    if case.updatable {
        options = options.updatable();
    }
    // Building takes most of the time, so few are fused. (Those that profile never are.) `CLGRAPH_FUSE=now` has most of them fused.
    match (case.path, case.ops.len()) {
        (0..32, 3..) => options.fuse(Fuse::Now),
        (32..64, _) => options.fuse(Fuse::Auto).fuse_after(Duration::ZERO),
        _ => options,
    }
}

/// What had to combine, and how many graphs had it: several queues, and strategies among which the autotuner chooses.
static COMBINED: [(&str, AtomicU32); 8] = [
    ("several queues, host tasks", AtomicU32::new(0)),
    ("several queues, events", AtomicU32::new(0)),
    ("several queues, sub-graphs", AtomicU32::new(0)),
    ("several queues, memory of the graph", AtomicU32::new(0)),
    ("several queues, profiling", AtomicU32::new(0)),
    ("autotuner, host tasks", AtomicU32::new(0)),
    ("autotuner, native commands", AtomicU32::new(0)),
    ("autotuner, sub-graphs", AtomicU32::new(0)),
];

/// Counts what combines in a graph.
fn combines(case: &Case, ops: &[Op], report: &Report) {
    fn any(ops: &[Op], is: &dyn Fn(&Op) -> bool) -> bool {
        ops.iter().any(|op| is(op) || if let Op::Sub(inner) = op { any(inner, is) } else { false })
    }
    let tasks = any(ops, &|op| matches!(op, Op::Task(..)));
    let events = any(ops, &|op| matches!(op, Op::Wait | Op::Signal));
    let subs = any(ops, &|op| matches!(op, Op::Sub(_)));
    let owned = any(ops, &|op| matches!(op, Op::Alloc(..)));
    let natives = any(ops, &|op| matches!(op, Op::Native(..) | Op::NativeCopy(..)));
    let strategies = &report.tuning.strategies;
    let (queues, tuned) = (strategies.iter().any(|one| one.path == Path::Queues), strategies.len() > 1);
    let of_queues = [tasks, events, subs, owned, case.profiled].map(|has| has && queues);
    let of_tuned = [tasks, natives, subs].map(|has| has && tuned);
    for ((_, count), has) in COMBINED.iter().zip(of_queues.into_iter().chain(of_tuned)) {
        count.fetch_add(u32::from(has), Relaxed);
    }
}

fn check(case: &Case, shared: &Shared) -> bool {
    let (bench, mut events) = (&shared.bench, Vec::new());
    // A queue on which something fails may be unusable afterwards.
    let times = Queue::with_properties(&bench.queue, bench.queue.device(), QueueProperties::new().profiling(true));
    let queues = [bench.another_queue(false), bench.another_queue(false), bench.another_queue(true), times.unwrap()];
    let start: Vec<Vec<u32>> = (0..BUFFERS).map(|at| (0..LEN as u32).map(|i| i * 7 + at as u32).collect()).collect();
    let views: Views = start
        .iter()
        .map(|data| {
            let whole = bench.buffer(data);
            let (low, high) = (whole.sub_buffer(..LEN / 2).unwrap(), whole.sub_buffer(LEN / 2..).unwrap());
            [whole, low, high]
        })
        .collect();
    let (graph, ops) = (bench.graph(), case::valid(&case.ops));
    let mut maker =
        Maker::new(shared, &views, native::records(bench.queue.device().caps(), case.profiled), case.updatable);
    maker.add_all(&graph, &ops, true).unwrap();
    let executable = graph.finalize(options(case)).unwrap();
    combines(case, &ops, &executable.report());
    let mut shift = 0;
    let scratch = bench.buffer(&[0; LEN]);
    let mut runs: Vec<Started> = Vec::new();
    let mut broken = [false; 4];
    let mut external: Vec<clgraph::UserEvent> = Vec::new();
    let mut late: Vec<(UserEvent, UserEvent)> = Vec::new();
    for run in &case.runs {
        let at = usize::from(run.queue) % queues.len();
        let queue = &queues[at];
        if let (Some((how, by)), true) = (run.update, case.updatable) {
            shift = by;
            let nodes = maker.change(&graph, shift).unwrap();
            match how {
                Update::Nodes => executable.update(&nodes[..]).unwrap(),
                Update::Graph => executable.update_from(&graph).unwrap(),
            }
        }
        if let (Some(at_once), false) = (run.failing, queue.properties().out_of_order) {
            let (held, user) = (UserEvent::new(&bench.queue), UserEvent::new(&bench.queue));
            if run.held {
                queue.enqueue_marker_with_wait_list(&[&Event::from_opencl3(&held.0).unwrap()]).unwrap();
            }
            let event = Event::from_opencl3(&user.0).unwrap();
            broken[at] = true;
            queue.enqueue_fill_buffer(&scratch, &[1], 0, 4 * LEN, &[&event]).unwrap();
            queue.flush().unwrap();
            if at_once {
                user.set(-5);
                held.set(0);
            } else {
                late.push((held, user));
            }
        }
        let event = UserEvent::new(&bench.queue);
        let mut submit = executable.submit_to(queue);
        for (input, part) in &maker.inputs {
            let owner = Owner {
                data: vec![run.input; part.range().1],
                what: run.owner,
                queue: queues[usize::from(run.owner) / 4 % queues.len()].clone(),
                other: shared.other.clone(),
            };
            submit = submit.with(input, HostData::shared(Arc::new(owner)));
        }
        for wait in &maker.waits {
            let event = clgraph::UserEvent::new(&bench.queue).unwrap();
            if run.early {
                event.complete().unwrap();
            } else {
                external.push(event.clone());
            }
            submit = submit.with_event(wait, &event);
        }
        let promised: Vec<_> = maker.signals.iter().map(|_| clgraph::UserEvent::new(&bench.queue).unwrap()).collect();
        for (signal, event) in maker.signals.iter().zip(&promised) {
            submit = submit.with_signal(signal, event);
        }
        let before = runs.iter().rposition(|run| run.submission.is_some());
        let mut fate = if broken[at] { Fate::Unknown } else { Fate::Runs };
        match (run.wait, before) {
            (Wait::Completes, _) => submit = submit.after(&event.0),
            (Wait::Fails, _) => {
                submit = submit.after(&event.0);
                fate = Fate::Fails;
            }
            (Wait::Before, Some(before)) => {
                submit = submit.after(runs[before].submission.as_ref().unwrap());
                if fate == Fate::Runs {
                    fate = Fate::After(before);
                }
            }
            _ => {}
        }
        // Without a handle it is unknown whether it ran, so this is only done if nothing can fail.
        let is_plain =
            case.runs.iter().all(|run| run.failing.is_none()) && !matches!(run.wait, Wait::Fails | Wait::Before);
        let started =
            Started { submission: None, input: run.input, shift, fate, awaited: run.awaited, signals: promised };
        if run.detached && is_plain && maker.reads.is_empty() {
            submit.submit_detached().unwrap();
            runs.push(Started { awaited: false, ..started });
        } else {
            match submit.submit() {
                Ok(submission) => runs.push(Started { submission: Some(submission), ..started }),
                // The event that it was to wait for has failed already.
                Err(error) => {
                    assert!(matches!(fate, Fate::After(_) | Fate::Unknown), "{fate:?}: {error}");
                    did_not_run(&error);
                }
            }
        }
        events.push((event, if matches!(run.wait, Wait::Fails) { -5 } else { 0 }));
        if run.alone {
            queue.finish().unwrap();
        }
    }
    let mut awaited = Vec::new();
    for run in &runs {
        if let (true, Some(submission)) = (run.awaited, &run.submission) {
            let queue = &queues[0];
            let waker = Arc::new(Submits(shared.other.clone(), queue.clone(), AtomicU32::new(0)));
            awaited.push((submission.clone().into_future(), waker));
        }
    }
    for (future, waker) in &mut awaited {
        let waker = Waker::from(Arc::clone(waker));
        let _ = pin!(future).poll(&mut Context::from_waker(&waker));
    }
    late.iter().for_each(|(_, user)| user.set(-5));
    late.iter().for_each(|(held, _)| held.set(0));
    events.iter().for_each(|(event, status)| event.set(*status));
    external.iter().for_each(|event| event.complete().unwrap());
    drop((graph, executable));
    let (mut content, mut well) = (start, true);
    let (mut ran, mut timed) = (Vec::new(), None);
    for Started { submission, input, shift, fate, signals, .. } in &runs {
        let outcome = submission.as_ref().map_or(Ok(()), |submission| submission.wait_for(LONG));
        let expected = match fate {
            Fate::Runs => Some(true),
            Fate::Fails => Some(false),
            Fate::After(before) => Some(ran[*before]),
            Fate::Unknown => None,
        };
        assert!(expected.is_none_or(|expected| expected == outcome.is_ok()), "{fate:?}, {ran:?}: {outcome:?}");
        // What was promised ends, and as the submission does.
        for event in signals {
            assert_eq!(event.wait_for(LONG).is_ok(), outcome.is_ok(), "{fate:?}: {outcome:?}");
        }
        ran.push(outcome.is_ok());
        if let Err(error) = outcome {
            did_not_run(&error);
            continue;
        }
        let mut eager = Eager::new(&mut content, *input, *shift);
        ops.iter().for_each(|op| eager.run(op, true));
        if let Some(submission) = submission {
            let results = maker.reads.iter().map(|read| submission.get(read).unwrap().to_vec());
            well &= results.eq(eager.reads.iter().cloned());
            if case.profiled {
                // Each run times the same nodes.
                let nodes = submission.profile().unwrap().nodes.len();
                assert_eq!(*timed.get_or_insert(nodes), nodes);
            }
        }
    }
    // A driver may refuse a queue on which something failed.
    let _ = queues.iter().try_for_each(Queue::finish);
    well && views.iter().zip(&content).all(|([whole, ..], content)| bench.content(whole) == *content)
}

/// Rules D1, D2, S3, S7, S9, F1, F4, X1, I4, M2, M8, U2, U3, Q2
#[test]
fn random_graphs_and_runs_give_the_bytes_of_an_eager_run_whatever_fails_beside_them() {
    fn property(case: Case) -> bool {
        SHARED.with(|shared| check(&case, shared))
    }
    let count = std::env::var("CLGRAPH_TEST_RANDOM").ok().and_then(|count| count.parse().ok()).unwrap_or(150);
    let platform = SHARED.with(|shared| shared.bench.queue.device().caps().platform.clone());
    // Kernels of two queues corrupt rusticl's memory, so there is one. Few drivers leave a choice where there are native commands.
    let is_free = std::env::var_os("CLGRAPH_PATH").is_none() && platform != "rusticl";
    let missing = || {
        COMBINED
            .iter()
            .filter(|(what, _)| *what != "autotuner, native commands")
            .find(|(_, count)| count.load(Relaxed) == 0)
    };
    for _ in 0..10 {
        QuickCheck::new().tests(count).max_tests(count).quickcheck(property as fn(Case) -> bool);
        if count < 150 || !is_free || missing().is_none() {
            return;
        }
    }
    panic!("never {}", missing().map_or("again", |(what, _)| what));
}
