//! Recording: the state of queues, what becomes a node, and in which order.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use clgraph::{
    Buffer, BuildCause, BuildError, Error, ErrorKind, Event, ExecuteKernel, ExecutionStatus, Finalize, Node, NodeKind,
    Queue, QueueState, RecordError, Result, SubmitError,
};
use common::{Bench, Reason, UserEvent, assert_error, cause, elsewhere, skip};

const BYTES: usize = 64 * 4;

struct Field {
    bench: Bench,
    a: Buffer<u32>,
    b: Buffer<u32>,
}

impl Field {
    fn new() -> Self {
        let bench = Bench::new();
        let (a, b) = (bench.buffer(&[1; 64]), bench.buffer(&[2; 64]));
        Self { bench, a, b }
    }

    fn queue(&self) -> &Queue {
        &self.bench.queue
    }

    fn stir(&self, queue: &Queue, buffer: &Buffer<u32>, waits: &[&Event]) -> Result<Event> {
        let kernel = self.bench.kernel("stir");
        let mut launch = ExecuteKernel::new(&kernel);
        launch.set_arg(buffer).set_global_work_size(64).set_event_wait_list(waits);
        // SAFETY: each work-item touches its own element.
        unsafe { launch.enqueue_nd_range(queue) }
    }

    fn fill(&self, queue: &Queue, buffer: &Buffer<u32>, waits: &[&Event]) -> Result<Event> {
        queue.enqueue_fill_buffer(buffer, &[7], 0, BYTES, waits)
    }
}

/// Checks that a call fails because of the queue's state.
#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Result<T>) -> RecordError {
    match outcome.unwrap_err() {
        Error::Record(error) => {
            assert_eq!(error.kind(), ErrorKind::Invalid);
            error
        }
        other => panic!("{other}"),
    }
}

/// Rules R1, R3
#[test]
fn what_a_recording_queue_is_given_becomes_nodes_and_does_not_run() {
    let field = Field::new();
    let queue = field.queue();
    let graph = field.bench.graph();
    assert_eq!(queue.state(), QueueState::Executing);
    assert_eq!(refused(queue.recording_graph()), RecordError::NotRecording);
    graph.begin_recording(queue).unwrap();
    assert_eq!(queue.state(), QueueState::Recording);
    assert_eq!(queue.recording_graph().unwrap(), graph);
    assert_eq!(queue.clone().state(), QueueState::Recording, "clones have the same state");
    field.stir(queue, &field.a, &[]).unwrap();
    queue.enqueue_copy_buffer(&field.a, &field.b, 0, 0, BYTES, &[]).unwrap();
    assert_eq!(graph.end_recording(queue).unwrap(), 1);
    assert_eq!(queue.state(), QueueState::Executing);
    queue.finish().unwrap();
    assert_eq!(field.bench.content(&field.b), [2; 64], "nothing ran, and later work does not wait for it");
    let kinds: Vec<_> = graph.nodes().into_iter().map(|node| graph.kind(node).unwrap()).collect();
    assert_eq!(kinds, [NodeKind::Kernel, NodeKind::Copy]);
    field.bench.run(&graph);
    let stirred: Vec<u32> = (0..64).map(|i| 5 + i).collect();
    assert_eq!(field.bench.content(&field.b), stirred);
}

/// Rules R2, R18
#[test]
fn a_recording_begins_for_all_queues_of_a_list_or_for_none() {
    let field = Field::new();
    let (first, second) = (field.queue().clone(), field.bench.another_queue(true));
    let (graph, other) = (field.bench.graph(), field.bench.graph());
    other.begin_recording(&second).unwrap();
    let already = |into| RecordError::AlreadyRecording { index: 1, into };
    assert_eq!(refused(graph.begin_recording(&[&first, &second])), already("another"));
    assert_eq!(first.state(), QueueState::Executing);
    assert_eq!(refused(other.begin_recording(&[&first, &second])), already("this"));
    assert_eq!(other.end_all_recording(), 1);
    let same = RecordError::SameQueue { first: 0, second: 2 };
    assert_eq!(refused(graph.begin_recording(&[&first, &second, &first.clone()])), same);
    let foreign = &elsewhere().queue;
    let outside = RecordError::OtherQueue { index: 1, what: "context" };
    assert_eq!(refused(graph.begin_recording(&vec![first.clone(), foreign.clone()])), outside);
    assert_eq!([&first, &second].map(Queue::state), [QueueState::Executing; 2]);
    graph.begin_recording(&[&first, &second]).unwrap();
    assert_eq!([&first, &second].map(Queue::state), [QueueState::Recording; 2]);
    assert_eq!(graph.end_recording(&[&first, &second]).unwrap(), 2);
    graph.begin_recording(&[] as &[Queue]).unwrap();
    assert!(graph.fill(&field.a, 1).add().is_ok(), "no queue records");
}

/// Rules R4, R13, R14
#[test]
fn recordings_end_for_one_for_a_list_or_for_all_and_may_begin_again() {
    let field = Field::new();
    let queues = [field.queue().clone(), field.bench.another_queue(false), field.bench.another_queue(true)];
    let (graph, other) = (field.bench.graph(), field.bench.graph());
    graph.begin_recording(&queues).unwrap();
    assert_eq!(graph.end_recording(&queues[0]).unwrap(), 1);
    assert_eq!(graph.end_recording(&queues[0]).unwrap(), 0, "it executes already");
    assert_eq!(graph.end_recording(&[&queues[0], &queues[1], &queues[1]]).unwrap(), 1);
    assert_eq!(queues[2].state(), QueueState::Recording);
    assert_eq!(refused(other.end_recording(&[&queues[0], &queues[2]])), RecordError::OtherRecording { index: 1 });
    assert_eq!(queues[2].state(), QueueState::Recording);
    assert_eq!(other.end_all_recording(), 0);
    assert_eq!(graph.end_all_recording(), 1);
    assert!(graph.ensure_recording(&queues[0]).unwrap());
    assert!(!graph.ensure_recording(&queues[0]).unwrap());
    let elsewhere = RecordError::AlreadyRecording { index: 0, into: "another" };
    assert_eq!(refused(other.ensure_recording(&queues[0])), elsewhere);
    field.fill(&queues[0], &field.a, &[]).unwrap();
    assert_eq!(graph.end_all_recording(), 1);
    graph.begin_recording(&queues[0]).unwrap();
    field.fill(&queues[0], &field.b, &[]).unwrap();
    graph.end_recording(&queues[0]).unwrap();
    assert_eq!(graph.len(), 2);
}

/// Rules R5, B11
#[test]
fn an_event_of_recorded_work_stands_for_its_node_and_nothing_else() {
    let field = Field::new();
    let (queue, graph) = (field.queue(), field.bench.graph());
    graph.begin_recording(queue).unwrap();
    let event = field.fill(queue, &field.a, &[]).unwrap();
    let node = graph.node_of(&event).unwrap();
    assert_eq!((event.node(), node.index()), (Some(node), 0));
    for outcome in [
        event.wait().map(|()| 0),
        event.command_execution_status().map(|_| 0),
        event.profiling_command_end(),
        event.raw().map(|_| 0),
        event.to_opencl3().map(|_| 0),
    ] {
        let error = refused(outcome);
        assert!(matches!(error, RecordError::Recorded { .. }), "{error}");
    }
    graph.end_recording(queue).unwrap();
    // It is a node in explicit building too, even after the recording.
    let empty = graph.empty().after(&event).add().unwrap();
    assert_eq!(graph.predecessors(empty).unwrap(), [node]);
    let other = field.bench.graph();
    assert_eq!(cause(other.empty().after(&event).add()), BuildCause::OtherGraph { node });
    assert_eq!(cause(other.node_of(&event)), BuildCause::OtherGraph { node });
    let running = field.fill(queue, &field.b, &[]).unwrap();
    assert_eq!(cause(graph.node_of(&running)), BuildCause::NotANode);
    assert_eq!(cause(graph.empty().after(&running).add()), BuildCause::NotANode);
    assert_eq!(graph.len(), 2);
}

/// Rule R6
#[test]
fn recorded_work_waits_for_recorded_work_only() {
    let field = Field::new();
    let (queue, graph, other) = (field.queue(), field.bench.graph(), field.bench.graph());
    let running = field.fill(queue, &field.a, &[]).unwrap();
    let foreign = other.record(queue, || field.fill(queue, &field.a, &[])).unwrap();
    graph.begin_recording(queue).unwrap();
    let mine = field.fill(queue, &field.a, &[]).unwrap();
    let refusal = refused(field.fill(queue, &field.a, &[&mine, &running]));
    assert_eq!(refusal, RecordError::RunningEvent { index: 1 });
    let node = foreign.node().unwrap();
    assert_eq!(refused(field.stir(queue, &field.a, &[&foreign])), RecordError::OtherGraph { index: 0, node });
    assert_eq!(graph.len(), 1, "nothing was recorded");
    drop(other);
    assert_eq!(refused(field.stir(queue, &field.a, &[&foreign])), RecordError::OtherGraph { index: 0, node });
    graph.end_recording(queue).unwrap();
    assert_eq!(refused(field.stir(queue, &field.a, &[&foreign])), RecordError::OtherGraph { index: 0, node });
}

/// Rules R7, R16
#[test]
fn a_recording_queue_cannot_be_waited_for_and_can_be_flushed_and_asked() {
    let field = Field::new();
    let (queue, graph) = (field.queue(), field.bench.graph());
    let before = field.fill(queue, &field.a, &[]).unwrap();
    graph.begin_recording(queue).unwrap();
    assert_error!(queue.finish(), RecordError::NotRecordable { what: "finishing a queue", .. });
    queue.flush().unwrap();
    before.wait().unwrap();
    field.fill(queue, &field.b, &[]).unwrap();
    assert!(!queue.properties().profiling);
    assert!(field.bench.becomes_empty(queue), "recorded work does not count");
}

/// Rule R8
#[test]
fn an_in_order_queue_chains_what_it_records_over_a_pause() {
    let field = Field::new();
    let (queue, graph) = (field.queue(), field.bench.graph());
    let unordered = field.bench.another_queue(true);
    let read = |queue: &Queue| queue.enqueue_read_buffer_owned(&field.a, 0, 64, &[]);
    let first = graph.record(queue, || read(queue)).unwrap();
    let between = graph.read(&field.a).add().unwrap();
    let second = graph.record(queue, || read(queue)).unwrap();
    let (third, fourth) = graph.record(&unordered, || Ok((read(&unordered)?, read(&unordered)?))).unwrap();
    let node = |of: &clgraph::PendingRead<u32>| graph.node_of(of.event()).unwrap();
    assert_eq!(graph.predecessors(node(&second)).unwrap(), [node(&first)]);
    assert_eq!(graph.predecessors(between.node()).unwrap(), []);
    assert_eq!(graph.predecessors(node(&third)).unwrap(), []);
    assert_eq!(graph.predecessors(node(&fourth)).unwrap(), [], "two reads in no order");
    let write = graph.record(&unordered, || field.fill(&unordered, &field.a, &[])).unwrap();
    let mut all = [node(&first), between.node(), node(&second), node(&third), node(&fourth)].to_vec();
    all.sort_unstable();
    // Only the last node of the chain is a neighbour.
    let preds = graph.predecessors(graph.node_of(&write).unwrap()).unwrap();
    assert!(all[1..].iter().all(|node| preds.contains(node)), "{preds:?}: the data orders");
}

/// Rule R9
#[test]
fn a_queue_joins_the_recording_of_an_event_that_it_waits_for() {
    let field = Field::new();
    let (first, second, graph) = (field.queue(), field.bench.another_queue(false), field.bench.graph());
    graph.begin_recording(first).unwrap();
    let event = field.fill(first, &field.a, &[]).unwrap();
    assert_eq!(second.state(), QueueState::Executing);
    let wrong = second.enqueue_copy_buffer(&field.a, &field.b, 4, 0, BYTES, &[&event]);
    assert_error!(wrong, BuildCause::OutOfBounds { what: "source", offset: 4, end: 260, len: 256 });
    assert_eq!(second.state(), QueueState::Executing, "a wrong command changes nothing");
    let joined = second.enqueue_copy_buffer(&field.a, &field.b, 0, 0, BYTES, &[&event]).unwrap();
    assert_eq!(second.recording_graph().unwrap(), graph);
    assert_eq!(graph.predecessors(joined.node().unwrap()).unwrap(), [event.node().unwrap()]);
    // It continues to record without such an event, and also after the first one has ended.
    assert_eq!(graph.end_recording(first).unwrap(), 1);
    assert!(field.fill(&second, &field.b, &[]).unwrap().node().is_some());
    assert_eq!(graph.end_recording(&second).unwrap(), 1);
    // Nothing records any more, so there is nothing to join.
    let node = event.node().unwrap();
    assert_eq!(refused(field.fill(&second, &field.b, &[&event])), RecordError::RecordingEnded { index: 0, node });
    assert_eq!(graph.len(), 3);
    // A queue whose recording was ended may join again.
    graph.begin_recording(first).unwrap();
    assert!(field.fill(&second, &field.b, &[&event]).unwrap().node().is_some());
    assert_eq!(graph.end_all_recording(), 2);
    let foreign = elsewhere();
    let cannot = RecordError::CannotJoin { index: 0, node, what: "context" };
    let theirs = foreign.buffer(&[0; 64]);
    graph.begin_recording(first).unwrap();
    assert_eq!(refused(foreign.queue.enqueue_fill_buffer(&theirs, &[1], 0, BYTES, &[&event])), cannot);
    assert_eq!(foreign.queue.state(), QueueState::Executing);
}

/// Rule R9: the end of a scope ends the queues that joined it.
#[test]
fn a_queue_that_joined_a_scope_ends_with_it() {
    let field = Field::new();
    let (first, second, graph) = (field.queue(), field.bench.another_queue(true), field.bench.graph());
    let scope = || {
        let event = field.fill(first, &field.a, &[])?;
        field.fill(&second, &field.b, &[&event])
    };
    let event = graph.record(first, scope).unwrap();
    assert!(event.node().is_some());
    assert_eq!(second.state(), QueueState::Executing);
    // Unless another recording into the same graph continues.
    let third = field.bench.another_queue(true);
    graph.begin_recording(&third).unwrap();
    graph.record(first, scope).unwrap();
    assert_eq!((first.state(), second.state()), (QueueState::Executing, QueueState::Recording));
    assert_eq!(graph.end_all_recording(), 2);
}

/// Rule R10
#[test]
fn a_recording_ends_with_its_graph_and_with_its_scope_however_that_is_left() {
    let field = Field::new();
    let (queue, graph) = (field.queue(), field.bench.graph());
    let copy = graph.clone();
    graph.begin_recording(queue).unwrap();
    let event = field.fill(queue, &field.a, &[]).unwrap();
    drop(graph);
    assert_eq!(queue.state(), QueueState::Recording, "a clone is the graph too");
    drop(copy);
    assert_eq!(queue.state(), QueueState::Executing);
    assert_eq!(refused(queue.recording_graph()), RecordError::NotRecording);
    let node = event.node().unwrap();
    assert_eq!(refused(field.fill(queue, &field.a, &[&event])), RecordError::OtherGraph { index: 0, node });

    let graph = field.bench.graph();
    let out_of_bounds = graph.record(queue, || {
        field.fill(queue, &field.a, &[])?;
        queue.enqueue_fill_buffer(&field.a, &[1], 0, BYTES + 4, &[])
    });
    assert_error!(out_of_bounds, BuildCause::OutOfBounds { what: "destination", offset: 0, end: 260, len: 256 });
    assert_eq!((queue.state(), graph.len()), (QueueState::Executing, 1), "what was recorded stays");
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _ = graph.record(queue, || -> Result<()> {
            field.fill(queue, &field.a, &[])?;
            panic!("in the recorded code");
        });
    }));
    assert!(panicked.is_err());
    assert_eq!((queue.state(), graph.len()), (QueueState::Executing, 2));
    field.bench.run(&graph);
    assert_eq!(field.bench.content(&field.a), [7; 64]);
}

/// Rules R11, B2
#[test]
fn a_barrier_orders_later_work_of_its_queue_and_a_marker_does_not() {
    let field = Field::new();
    let (queue, graph) = (field.bench.another_queue(true), field.bench.graph());
    let other = field.bench.another_queue(true);
    graph.begin_recording(&[&queue, &other]).unwrap();
    let read = |queue: &Queue, waits: &[&Event]| {
        queue.enqueue_read_buffer_owned(&field.a, 0, 64, waits).unwrap().event().clone()
    };
    let preds = |event: &Event| graph.predecessors(event.node().unwrap()).unwrap();
    let node = |event: &Event| event.node().unwrap();
    let (one, two) = (read(&queue, &[]), read(&queue, &[]));
    let three = read(&queue, &[&one]);
    let marker = queue.enqueue_marker_with_wait_list(&[]).unwrap();
    assert_eq!(preds(&marker), [node(&two), node(&three)], "the leaves of the queue");
    assert_eq!(preds(&read(&queue, &[])), [], "nothing waits for a marker");
    let theirs = read(&other, &[]);
    let barrier = queue.enqueue_barrier_with_wait_list(&[]).unwrap();
    assert_eq!(graph.kind(node(&barrier)).unwrap(), NodeKind::Empty);
    assert!(!preds(&barrier).contains(&node(&theirs)), "other queues are none of its business");
    assert_eq!(preds(&barrier).len(), 2, "the marker, and what came after it");
    assert_eq!(preds(&read(&queue, &[])), [node(&barrier)]);
    assert_eq!(preds(&read(&other, &[])), []);
    let listed = queue.enqueue_barrier_with_wait_list(&[&one, &theirs]).unwrap();
    assert_eq!(preds(&listed), [node(&one), node(&theirs), node(&barrier)]);
    assert_eq!(preds(&read(&queue, &[])), [node(&listed)], "the later barrier is later the earlier");
    graph.end_all_recording();
    graph.finalize(Finalize::new()).unwrap();
}

/// Rule R11: an earlier barrier is named only if it is itself a leaf.
#[test]
fn a_second_barrier_waits_for_leaves_and_not_for_the_barrier_before_it() {
    let field = Field::new();
    let graph = field.bench.graph();
    let (loose, strict) = (field.bench.another_queue(true), field.bench.another_queue(false));
    graph.begin_recording(&[&loose, &strict]).unwrap();
    let read = |queue: &Queue| queue.enqueue_read_buffer_owned(&field.a, 0, 64, &[]).unwrap().event().clone();
    let preds = |event: &Event| graph.predecessors(event.node().unwrap()).unwrap();
    let node = |event: &Event| event.node().unwrap();

    let before = read(&loose);
    let first = loose.enqueue_barrier_with_wait_list(&[]).unwrap();
    assert_eq!(preds(&first), [node(&before)]);
    let (one, two) = (read(&loose), read(&loose));
    let marker = loose.enqueue_marker_with_wait_list(&[]).unwrap();
    assert_eq!(preds(&marker), [node(&one), node(&two)], "the barrier is before both of them");
    let second = loose.enqueue_barrier_with_wait_list(&[]).unwrap();
    assert_eq!(preds(&second), [node(&marker)]);
    let third = loose.enqueue_barrier_with_wait_list(&[]).unwrap();
    assert_eq!(preds(&third), [node(&second)], "here the earlier barrier is the leaf");
    assert_eq!(preds(&read(&loose)), [node(&third)]);

    // On an in-order queue, everything is before the last node.
    let begin = strict.enqueue_barrier_with_wait_list(&[]).unwrap();
    assert_eq!(preds(&begin), []);
    let (next, later) = (read(&strict), read(&strict));
    assert_eq!((preds(&next), preds(&later)), (vec![node(&begin)], vec![node(&next)]));
    assert_eq!(preds(&strict.enqueue_barrier_with_wait_list(&[]).unwrap()), [node(&later)]);
    graph.end_all_recording();
    graph.finalize(Finalize::new()).unwrap();
}

/// Rules R15, R16
#[test]
fn what_cannot_be_recorded_names_the_form_that_can_and_wrong_arguments_are_the_same_error() {
    let field = Field::new();
    let (queue, graph) = (field.queue(), field.bench.graph());
    let mut back = vec![0; 64];
    let wrong = || {
        let kernel = field.bench.kernel("stir");
        let mut too_few = ExecuteKernel::new(&kernel);
        too_few.set_global_work_size(64);
        let mut no_range = ExecuteKernel::new(&kernel);
        no_range.set_arg(&field.a);
        let mut flat = ExecuteKernel::new(&kernel);
        flat.set_arg(&field.a).set_global_work_sizes(&[1, 1, 1, 1]);
        // SAFETY: none of them is launched.
        let launches = unsafe {
            [too_few.enqueue_nd_range(queue), no_range.enqueue_nd_range(queue), flat.enqueue_nd_range(queue)]
        };
        let theirs = elsewhere().buffer(&[0; 64]);
        let mut back = vec![0; 65];
        let others = [
            queue.enqueue_fill_buffer(&field.a, &[1, 2, 3], 0, BYTES, &[]),
            queue.enqueue_fill_buffer(&field.a, &[1], 0, 6, &[]),
            queue.enqueue_fill_buffer(&theirs, &[1], 0, 4, &[]),
            queue.enqueue_copy_buffer(&field.a, &field.a, 0, 4, 8, &[]),
            queue.enqueue_copy_buffer(&field.a, &field.b, usize::MAX, 0, 8, &[]),
            queue.enqueue_copy_buffer_rect(&field.a, &field.b, [0; 3], [0; 3], [8, 2, 1], 4, 0, 0, 0, &[]),
            queue.enqueue_write_buffer(&field.a, 4, &[1; 64], &[]),
            queue.enqueue_write_buffer_owned(&field.a, 4, vec![1; 64], &[]),
            queue.enqueue_read_buffer(&field.a, 0, &mut back, &[]),
            queue.enqueue_read_buffer_owned(&field.a, 8, 63, &[]).map(|read| read.event().clone()),
        ];
        launches.into_iter().chain(others).map(Result::unwrap_err).collect::<Vec<_>>()
    };
    let executing = wrong();
    graph.begin_recording(queue).unwrap();
    assert_eq!(wrong(), executing);
    assert!(graph.is_empty());
    assert_error!(
        queue.enqueue_read_buffer(&field.a, 0, &mut back, &[]),
        RecordError::NotRecordable { instead, .. } if instead.contains("use `enqueue_read_buffer_owned`"),
    );
    // A borrowed slice is copied.
    let mut data = vec![5; 64];
    queue.enqueue_write_buffer(&field.a, 0, &data, &[]).unwrap();
    data.fill(6);
    let result = queue.enqueue_read_buffer_owned(&field.a, 0, 64, &[]).unwrap();
    assert!(matches!(refused(result.wait()), RecordError::Recorded { .. }));
    graph.end_recording(queue).unwrap();
    let run = graph.finalize(Finalize::new()).unwrap().submit(queue).unwrap();
    run.wait().unwrap();
    assert_eq!(*run.get(&result.host_read().unwrap()).unwrap(), [5; 64]);
}

/// Rules B5, B9, B13
#[test]
fn building_and_recording_alternate_and_finalizing_takes_the_nodes_so_far() {
    let field = Field::new();
    let (queue, graph) = (field.queue(), field.bench.graph());
    let built = graph.fill(&field.a, 3).add().unwrap();
    graph.begin_recording(queue).unwrap();
    let stirred = field.stir(queue, &field.a, &[]).unwrap();
    for refused in [
        graph.fill(&field.b, 1).add().map(|_| ()),
        graph.empty().add().map(|_| ()),
        graph.add_edge(built, stirred.node().unwrap()),
    ] {
        match refused.unwrap_err() {
            Error::Build(error) => assert_eq!(*error.cause, BuildCause::Recording),
            other => panic!("{other}"),
        }
    }
    let part = graph.finalize(Finalize::new()).unwrap();
    queue.enqueue_copy_buffer(&field.a, &field.b, 0, 0, BYTES, &[]).unwrap();
    graph.end_recording(queue).unwrap();
    graph.fill(&field.a.slice(..1).unwrap(), 9).add().unwrap();
    part.submit(queue).unwrap().wait().unwrap();
    let stirred: Vec<u32> = (0..64).map(|i| 15 + i).collect();
    assert_eq!((field.bench.content(&field.a), field.bench.content(&field.b)), (stirred.clone(), vec![2; 64]));
    field.bench.run(&graph);
    assert_eq!(field.bench.content(&field.b), stirred);
    assert_eq!(field.bench.content(&field.a)[0], 9);
}

/// Rule R17: no node is lost, none is added twice, and nothing deadlocks.
#[test]
fn threads_record_and_execute_and_begin_and_end_at_once() {
    const EACH: usize = 200;
    let field = Field::new();
    let graph = field.bench.graph();
    let queues: Vec<Queue> = (0..4).map(|index| field.bench.another_queue(index % 2 == 1)).collect();
    let other = field.bench.graph();
    other.fill(&field.b, 4).add().unwrap();
    let busy = other.finalize(Finalize::new()).unwrap();
    let (recorded, executed) = std::thread::scope(|scope| {
        let workers: Vec<_> = queues
            .iter()
            .map(|queue| {
                let field = &field;
                scope.spawn(move || {
                    let own = field.bench.buffer(&[0; 64]);
                    let kinds = (0..EACH).map(|_| field.fill(queue, &own, &[]).unwrap().node().is_some());
                    let recorded = kinds.filter(|recorded| *recorded).count();
                    (recorded, EACH - recorded)
                })
            })
            .collect();
        scope.spawn(|| {
            for _ in 0..EACH {
                graph.begin_recording(&queues).unwrap();
                std::thread::yield_now();
                graph.end_recording(&queues).unwrap();
            }
        });
        scope.spawn(|| {
            for _ in 0..EACH {
                busy.submit(field.queue()).unwrap();
                let _ = graph.finalize(Finalize::new()).unwrap();
            }
        });
        workers.into_iter().map(|worker| worker.join().unwrap()).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    });
    assert_eq!(recorded + executed, 4 * EACH);
    assert_eq!(graph.len(), recorded);
    assert!(queues.iter().all(|queue| queue.state() == QueueState::Executing));
    queues.iter().for_each(|queue| queue.finish().unwrap());
    field.bench.run(&graph);
}

/// Rule S7
#[test]
fn an_executing_queue_asks_each_event_before_it_waits_for_it() {
    let field = Field::new();
    let queue = field.queue();
    let (good, bad, foreign) = (UserEvent::new(queue), UserEvent::new(queue), UserEvent::new(&elsewhere().queue));
    let [good_event, bad_event, foreign_event] =
        [&good, &bad, &foreign].map(|event| Event::from_opencl3(&event.0).unwrap());
    good.set(0);
    bad.set(-42);
    let of_command = |cause: &Error| cause.driver_error().is_some_and(|error| error.call == "a command");
    assert_error!(
        field.fill(queue, &field.a, &[&good_event, &bad_event]),
        SubmitError::EventFailed { index: 1, cause } if of_command(cause),
    );
    assert_error!(field.fill(queue, &field.a, &[&foreign_event]), SubmitError::OtherContext { index: 0 });
    field.fill(queue, &field.a, &[&good_event]).unwrap().wait().unwrap();
    assert_eq!(field.bench.content(&field.a), [7; 64]);
}

/// Rule D6: commands of an executing queue that share memory get no edge, so one does not wait for the other's event.
/// (A device may still run them in order.)
#[test]
fn an_executing_out_of_order_queue_orders_by_events_only() {
    let field = Field::new();
    let queue = field.bench.another_queue(true);
    let gate = UserEvent::new(&queue);
    let gate_event = Event::from_opencl3(&gate.0).unwrap();
    let first = field.fill(&queue, &field.a, &[&gate_event]).unwrap();
    let second = field.stir(&queue, &field.a, &[]).unwrap();
    let third = field.stir(&queue, &field.a, &[&first, &second]).unwrap();
    queue.flush().unwrap();
    let patience = Instant::now();
    while second.command_execution_status().unwrap() != ExecutionStatus::Complete
        && patience.elapsed() < Duration::from_secs(5)
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    let overtaken = second.command_execution_status().unwrap() == ExecutionStatus::Complete;
    assert_ne!(
        third.command_execution_status().unwrap(),
        ExecutionStatus::Complete,
        "it waits for the first, which waits for the gate"
    );
    gate.set(0);
    third.wait().unwrap();
    let stir = |value: u32, i: u32| value * 5 + i;
    let each = |of: &dyn Fn(u32) -> u32| (0..64).map(of).collect::<Vec<_>>();
    if !overtaken {
        // The driver may have done this: the second came after the first.
        assert_eq!(field.bench.content(&field.a), each(&|i| stir(stir(7, i), i)));
        return skip(Reason::RunsInOrder);
    }
    assert_eq!(field.bench.content(&field.a), each(&|i| stir(7, i)));
}

/// Rule D6: a command that has nothing to do keeps its place after a barrier.
#[test]
fn a_command_of_no_size_on_an_out_of_order_queue_stays_after_barriers() {
    let field = Field::new();
    let queue = field.bench.another_queue(true);
    let gate = UserEvent::new(&queue);
    field.fill(&queue, &field.a, &[&Event::from_opencl3(&gate.0).unwrap()]).unwrap();
    queue.enqueue_barrier_with_wait_list(&[]).unwrap();
    let alone = queue.enqueue_copy_buffer(&field.a, &field.b, 0, 0, 0, &[]).unwrap();
    let other = field.bench.queue.enqueue_marker_with_wait_list(&[]).unwrap();
    other.wait().unwrap();
    let later = queue.enqueue_fill_buffer(&field.b, &[7], 0, 0, &[&other]).unwrap();
    queue.flush().unwrap();
    field.bench.let_threads_run();
    for event in [&alone, &later] {
        assert_ne!(event.command_execution_status().unwrap(), ExecutionStatus::Complete);
    }
    gate.set(0);
    alone.wait().unwrap();
    later.wait().unwrap();
    assert_eq!(field.bench.content(&field.a), [7; 64]);
}

/// Rules R19, R20
#[test]
fn plain_enqueues_are_not_recorded_and_commands_without_events_are() {
    let field = Field::new();
    let (queue, graph) = (field.queue(), field.bench.graph());
    let plain = common::plain_queue(queue);
    let mut b = field.b.to_opencl3().unwrap();
    graph.begin_recording(queue).unwrap();
    // SAFETY: a live buffer, and a pattern that fits.
    unsafe { plain.enqueue_fill_buffer(&mut b, &[9_u32], 0, BYTES, &[]) }.unwrap();
    plain.finish().unwrap();
    assert!(graph.is_empty());
    let kernel = field.bench.kernel("stir");
    let work = || -> Result<()> {
        let detached = queue.detached();
        detached.enqueue_fill_buffer(&field.a, &[1], 0, BYTES, &[])?;
        detached.enqueue_write_buffer(&field.b, 0, &[4; 32], &[])?;
        detached.enqueue_write_buffer_owned(&field.b, 128, vec![4; 32], &[])?;
        detached.enqueue_copy_buffer(&field.b, &field.a, 0, 128, 128, &[])?;
        detached.enqueue_copy_buffer_rect(&field.b, &field.a, [0; 3], [0; 3], [8, 2, 1], 16, 0, 16, 0, &[])?;
        let mut launch = ExecuteKernel::new(&kernel);
        launch.set_arg(&field.a).set_global_work_size(64);
        // SAFETY: each work-item touches its own element.
        unsafe { launch.enqueue_nd_range_detached(queue) }
    };
    work().unwrap();
    assert_eq!((graph.len(), field.bench.queue.state()), (6, QueueState::Recording));
    graph.end_recording(queue).unwrap();
    work().unwrap();
    queue.finish().unwrap();
    let executed = field.bench.content(&field.a);
    field.bench.run(&graph);
    assert_eq!(field.bench.content(&field.a), executed);
    assert_eq!((executed[0], executed[3], executed[63]), (20, 8, 83));
}

/// Rules R9, R17: scopes on several threads do not end each other.
#[test]
fn scopes_on_several_threads_are_their_own() {
    let field = Field::new();
    let graph = field.bench.graph();
    let queues: Vec<Queue> = (0..4).map(|index| field.bench.another_queue(index % 2 == 1)).collect();
    std::thread::scope(|scope| {
        for queue in &queues {
            let (graph, field) = (&graph, &field);
            scope.spawn(move || {
                for _ in 0..2000 {
                    let outcome = graph.record(queue, || {
                        assert_eq!(queue.state(), QueueState::Recording);
                        queue.enqueue_marker_with_wait_list(&[])
                    });
                    assert!(outcome.unwrap().node().is_some());
                    assert_eq!(queue.state(), QueueState::Executing);
                }
                field.bench.queue.flush().unwrap();
            });
        }
    });
    assert_eq!(graph.len(), 4 * 2000);
}

/// Rules R9, R17: an executing queue joins by an event, or gets an error that it is too late; nothing in between
/// happens.
#[test]
fn queues_join_a_recording_while_another_thread_ends_it() {
    const ROUNDS: usize = 400;
    let field = Field::new();
    let graph = field.bench.graph();
    let joiners: Vec<Queue> = (0..3).map(|index| field.bench.another_queue(index % 2 == 1)).collect();
    let own: Vec<_> = joiners.iter().map(|_| field.bench.buffer(&[0; 64])).collect();
    let first = field.queue();
    let mut joined = 0;
    for round in 0..ROUNDS {
        graph.begin_recording(first).unwrap();
        let event = field.fill(first, &field.a, &[]).unwrap();
        let start = Barrier::new(joiners.len() + 1);
        joined += std::thread::scope(|scope| {
            let threads: Vec<_> = joiners
                .iter()
                .zip(&own)
                .map(|(queue, buffer)| {
                    let (field, event, start) = (&field, &event, &start);
                    scope.spawn(move || {
                        start.wait();
                        match field.fill(queue, buffer, &[event]) {
                            Ok(event) => {
                                assert!(event.node().is_some(), "what follows a recorded event is never executed");
                                true
                            }
                            Err(Error::Record(RecordError::RecordingEnded { .. })) => false,
                            Err(error) => panic!("{error}"),
                        }
                    })
                })
                .collect();
            start.wait();
            for _ in 0..round % 8 {
                std::thread::yield_now();
            }
            // All of them, or those that may have joined by now.
            if round % 2 == 0 {
                graph.end_all_recording();
            } else {
                graph.end_recording(first).unwrap();
                graph.end_recording(&joiners).unwrap();
            }
            let joined = threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum::<usize>();
            // A queue that joined through a joined queue continues to record.
            graph.end_all_recording();
            joined
        });
        assert!(joiners.iter().all(|queue| queue.state() == QueueState::Executing), "round {round}");
        assert_eq!(graph.len(), round + 1 + joined, "round {round}");
    }
    assert!(joined > 0 && joined < ROUNDS * joiners.len(), "{joined} is all or nothing: they never met");
    field.bench.run(&graph);
    joiners.iter().for_each(|queue| queue.finish().unwrap());
}

/// A blocking write is complete when it returns, on every queue: Intel's CPU runtime returns before.
#[test]
fn a_blocking_write_is_complete_when_it_returns() {
    let field = Field::new();
    let other = field.bench.another_queue(false);
    for round in 0..200_u32 {
        field.stir(field.queue(), &field.a, &[]).unwrap();
        let event = field.queue().enqueue_write_buffer(&field.a, 0, &[round; 64], &[]).unwrap();
        assert_eq!(event.command_execution_status().unwrap(), ExecutionStatus::Complete, "round {round}");
        field.queue().detached().enqueue_write_buffer(&field.b, 0, &[round; 64], &[]).unwrap();
        let mut back = [0; 64];
        other.enqueue_read_buffer(&field.b, 0, &mut back, &[]).unwrap();
        assert_eq!(back, [round; 64]);
    }
}

/// Rule R17: what each thread recorded is what its part of the graph does, even if the graph is dropped while others
/// record.
#[test]
fn each_thread_finds_what_it_recorded_in_its_order() {
    let field = Field::new();
    let (graph, gone) = (field.bench.graph(), field.bench.graph());
    let queues: Vec<Queue> = (0..4).map(|index| field.bench.another_queue(index % 2 == 1)).collect();
    let buffers: Vec<Buffer<u32>> = queues.iter().map(|_| field.bench.buffer(&[0; 64])).collect();
    let shared = &field.a;
    let ended: Vec<(u32, Vec<Node>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = queues
            .iter()
            .zip(&buffers)
            .map(|(queue, buffer)| {
                scope.spawn(move || {
                    let (mut last, mut nodes) = (0, Vec::new());
                    for value in 1..=300 {
                        let event = queue.enqueue_fill_buffer(buffer, &[value], 0, BYTES, &[]).unwrap();
                        if value % 50 == 0 {
                            queue.enqueue_barrier_with_wait_list(&[]).unwrap();
                        }
                        last = if event.node().is_some() { value } else { last };
                        // All read this memory, so only their queue orders them.
                        let read = queue.enqueue_read_buffer_owned(shared, 0, 64, &[]).unwrap();
                        nodes.extend(read.event().node());
                    }
                    (last, nodes)
                })
            })
            .collect();
        scope.spawn(|| {
            for _ in 0..100 {
                graph.begin_recording(&queues).unwrap();
                std::thread::yield_now();
                graph.end_all_recording();
            }
        });
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    queues.iter().for_each(|queue| queue.finish().unwrap());
    for (queue, (_, nodes)) in queues.iter().zip(&ended) {
        // Each waits for what its queue recorded before, unless the queue is out of order.
        let chained = nodes.iter().filter(|node| !graph.predecessors(**node).unwrap().is_empty()).count();
        let in_order = !queue.properties().out_of_order;
        assert!(!in_order || chained + 1 >= nodes.len(), "{chained} of {}", nodes.len());
        assert!(nodes.is_sorted(), "in the order of enqueuing");
    }
    let zeros = vec![0; 64];
    buffers.iter().for_each(|buffer| queues[0].enqueue_write_buffer(buffer, 0, &zeros, &[]).map(|_| ()).unwrap());
    field.bench.run(&graph);
    for (buffer, (last, _)) in buffers.iter().zip(ended) {
        assert_eq!(field.bench.content(buffer), [last; 64]);
    }
    // One thread drops the last handle while others submit.
    gone.begin_recording(&queues).unwrap();
    std::thread::scope(|scope| {
        for (queue, buffer) in queues.iter().zip(&buffers) {
            scope.spawn(move || {
                for value in 0..300 {
                    queue.enqueue_fill_buffer(buffer, &[value], 0, BYTES, &[]).unwrap();
                }
            });
        }
        scope.spawn(move || drop(gone));
    });
    assert!(queues.iter().all(|queue| queue.state() == QueueState::Executing));
    queues.iter().for_each(|queue| queue.finish().unwrap());
}

/// Rule R15: a driver reports success for a blocking transfer after an event that fails.
#[test]
fn a_blocking_transfer_after_an_event_that_fails_is_an_error_and_moves_nothing() {
    let field = Field::new();
    let queue = field.queue();
    for status in [0, -7] {
        let user = UserEvent::new(queue);
        let event = Event::from_opencl3(&user.0).unwrap();
        let mut back = vec![42; 64];
        let outcomes = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(30));
                user.set(status);
            });
            let read = queue.enqueue_read_buffer(&field.a, 0, &mut back, &[&event]);
            [read, queue.enqueue_write_buffer(&field.b, 0, &[9; 64], &[&event])]
        });
        for outcome in outcomes {
            assert_eq!(outcome.is_ok(), status == 0, "{outcome:?}");
            if status != 0 {
                assert_error!(outcome, SubmitError::EventFailed { index: 0, .. });
            }
        }
        assert_eq!(back, if status == 0 { [1; 64] } else { [42; 64] });
        assert_eq!(field.bench.content(&field.b), [9; 64]);
    }
}

/// Rule R11: an executed marker is after the events of its list and, on an in-order queue, after everything before it.
#[test]
fn a_marker_with_a_list_of_complete_events_keeps_its_place() {
    let field = Field::new();
    let queue = field.queue();
    let done = field.fill(queue, &field.a, &[]).unwrap();
    done.wait().unwrap();
    let gate = UserEvent::new(queue);
    let gate_event = Event::from_opencl3(&gate.0).unwrap();
    let held = field.fill(queue, &field.a, &[&gate_event]).unwrap();
    let marker = queue.enqueue_marker_with_wait_list(&[&done]).unwrap();
    let barrier = queue.enqueue_barrier_with_wait_list(&[&done]).unwrap();
    let empty = queue.enqueue_copy_buffer(&field.a, &field.b, 0, 0, 0, &[]).unwrap();
    queue.flush().unwrap();
    field.bench.let_threads_run();
    for event in [&held, &marker, &barrier, &empty] {
        assert_ne!(event.command_execution_status().unwrap(), clgraph::ExecutionStatus::Complete);
    }
    gate.set(0);
    barrier.wait().unwrap();
}

/// A program with such buffers runs in OpenCL, so it must run here.
#[test]
fn buffers_with_access_flags_are_used_as_they_can_be() {
    let field = Field::new();
    let context = field.queue().context().to_opencl3().unwrap();
    // SAFETY: no host pointers. CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY.
    let [from, into] = [4, 2].map(|flags| unsafe {
        opencl3::memory::Buffer::<u32>::create(&context, flags, 64, std::ptr::null_mut()).unwrap()
    });
    let queue = field.queue();
    let (from, into) = (Buffer::from_opencl3(queue, &from).unwrap(), Buffer::from_opencl3(queue, &into).unwrap());
    queue.enqueue_fill_buffer(&from, &[2], 0, BYTES, &[]).unwrap();
    let kernel = field.bench.kernel("scale");
    let graph = field.bench.graph();
    for _ in 0..2 {
        let mut launch = ExecuteKernel::new(&kernel);
        launch.set_arg(&from).set_arg(&into).set_arg(&1_u32).set_global_work_size(64);
        // SAFETY: each work-item touches its own elements.
        unsafe { launch.enqueue_nd_range(queue) }.unwrap();
        graph.ensure_recording(queue).unwrap();
    }
    assert_eq!(graph.len(), 1);
    graph.end_all_recording();
    assert_eq!(field.bench.content(&into), [7; 64]);
}

/// Each mistake has an error of its own.
#[test]
fn each_mistake_of_a_recording_has_its_error() {
    let field = Field::new();
    let (queue, graph, other) = (field.queue(), field.bench.graph(), field.bench.graph());
    let second = field.bench.another_queue(false);
    assert_eq!(refused(queue.recording_graph()), RecordError::NotRecording);
    assert_eq!(refused(graph.begin_recording(&[queue, queue])), RecordError::SameQueue { first: 0, second: 1 });
    let foreign = &elsewhere().queue;
    assert_eq!(refused(graph.begin_recording(foreign)), RecordError::OtherQueue { index: 0, what: "context" });
    let event = graph.record(queue, || field.fill(queue, &field.a, &[])).unwrap();
    let node = event.node().unwrap();
    assert_eq!(refused(field.fill(queue, &field.a, &[&event])), RecordError::RecordingEnded { index: 0, node });
    graph.begin_recording(queue).unwrap();
    assert_eq!(refused(graph.begin_recording(queue)), RecordError::AlreadyRecording { index: 0, into: "this" });
    assert_eq!(refused(other.begin_recording(queue)), RecordError::AlreadyRecording { index: 0, into: "another" });
    assert_eq!(refused(other.end_recording(queue)), RecordError::OtherRecording { index: 0 });
    assert_error!(
        graph.fill(&field.a, 1).add(),
        BuildError { subject, cause, .. } if subject == "fill (to be node 1)" && **cause == BuildCause::Recording,
    );
    let theirs = elsewhere().buffer(&[0; 64]);
    let join = foreign.enqueue_fill_buffer(&theirs, &[1], 0, BYTES, &[&event]);
    assert_eq!(refused(join), RecordError::CannotJoin { index: 0, node, what: "context" });
    other.begin_recording(&second).unwrap();
    assert_eq!(refused(field.fill(&second, &field.a, &[&event])), RecordError::OtherGraph { index: 0, node });
    // The recording was not ended: the executable is recorded, and waiting for it returns an error.
    let run = graph.finalize(Finalize::new()).unwrap().submit(queue).unwrap();
    let node = graph.nodes()[1];
    assert_eq!(refused(run.wait()), RecordError::Recorded { node, what: "waited for" });
    assert!(matches!(graph.ensure_recording(&second), Err(Error::Record(RecordError::AlreadyRecording { .. }))));
    assert_eq!((graph.end_all_recording(), other.end_all_recording()), (1, 1));
}

/// Rule R14: a queue that joined and then begins to record itself continues when the scope that it joined ends.
#[test]
fn a_queue_that_joined_may_stay() {
    let field = Field::new();
    let (first, second, graph) = (field.queue(), field.bench.another_queue(false), field.bench.graph());
    let scope = || {
        let event = field.fill(first, &field.a, &[])?;
        field.fill(&second, &field.b, &[&event])?;
        assert!(!graph.ensure_recording(&second)?);
        Ok(())
    };
    graph.record(first, scope).unwrap();
    assert_eq!((first.state(), second.state()), (QueueState::Executing, QueueState::Recording));
    assert_eq!(graph.end_all_recording(), 1);
}
