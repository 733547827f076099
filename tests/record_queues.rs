//! Recording with several queues at once, with queues that profile, of other devices, and with mapped memory.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use clgraph::{
    Buffer, BuildCause, Device, Error, Event, ExecuteKernel, Finalize, Graph, GraphProperties, Image, ImageFormat,
    ImageShape, MapRead, MapWrite, ProgramError, Queue, QueueProperties, QueueState, RecordError, Result, UpdateError,
};
use common::{Bench, Reason, SOURCE, assert_error, cause, skip, sub_devices};

const LEN: usize = 64;
const BYTES: usize = LEN * 4;

fn fill(queue: &Queue, buffer: &Buffer<u32>, value: u32, waits: &[&Event]) -> Result<Event> {
    queue.enqueue_fill_buffer(buffer, &[value], 0, BYTES, waits)
}

fn states(queues: &[&Queue]) -> Vec<QueueState> {
    queues.iter().map(|queue| queue.state()).collect()
}

/// Rules R2, R9, R10: the end of a scope ends all its queues, and those that joined, however the scope is left.
#[test]
fn a_scope_records_several_queues_and_ends_them_all() {
    let bench = Bench::new();
    let (a, b) = (bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]));
    let (first, second, third) = (bench.queue.clone(), bench.another_queue(true), bench.another_queue(false));
    let all = [&first, &second, &third];
    let graph = bench.graph();
    let work = || {
        assert_eq!(states(&all)[..2], [QueueState::Recording; 2]);
        let event = fill(&first, &a, 3, &[])?;
        let event = second.enqueue_copy_buffer(&a, &b, 0, 0, BYTES, &[&event])?;
        // It joins through the event.
        let last = fill(&third, &a, 4, &[&event])?;
        assert_eq!(third.state(), QueueState::Recording);
        Ok(last)
    };
    let last = graph.record(&[&first, &second], work).unwrap();
    assert_eq!((states(&all), graph.len()), (vec![QueueState::Executing; 3], 3));
    assert!(last.node().is_some());
    let failed = graph.record(&[&first, &second], || {
        work()?;
        first.enqueue_fill_buffer(&a, &[1], 0, BYTES + 4, &[])
    });
    assert!(matches!(cause(failed), BuildCause::OutOfBounds { .. }));
    assert_eq!((states(&all), graph.len()), (vec![QueueState::Executing; 3], 6), "what was recorded stays");
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _ = graph.record(&[&first, &second], || -> Result<()> {
            work()?;
            panic!("in the recorded code");
        });
    }));
    assert!(panicked.is_err());
    assert_eq!((states(&all), graph.len()), (vec![QueueState::Executing; 3], 9));
    bench.run(&graph);
    assert_eq!((bench.content(&a), bench.content(&b)), (vec![4; LEN], vec![3; LEN]));
}

/// An event of a queue with profiling reports the times of the driver's clock.
#[test]
fn an_executing_queue_profiles_if_it_was_made_so() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; LEN]);
    let profiling = QueueProperties::new().profiling(true);
    let queue = Queue::with_properties(&bench.queue, bench.queue.device(), profiling).unwrap();
    let event = fill(&queue, &a, 5, &[]).unwrap();
    event.wait().unwrap();
    let times = [
        event.profiling_command_queued().unwrap(),
        event.profiling_command_submit().unwrap(),
        event.profiling_command_start().unwrap(),
        event.profiling_command_end().unwrap(),
    ];
    assert!(times.is_sorted() && times[3] > 0, "{times:?}");
    let plain = fill(&bench.queue, &a, 6, &[]).unwrap();
    plain.wait().unwrap();
    let untimed = plain.profiling_command_end().unwrap_err().driver_error();
    assert_eq!(untimed.map(|error| error.call), Some("clGetEventProfilingInfo"));
}

/// Rules R5, B11: for a submission a recorded event is nothing that runs, neither during the recording nor afterwards.
#[test]
fn a_submission_does_not_wait_for_a_recorded_event() {
    let bench = Bench::new();
    let a = bench.buffer(&[0; LEN]);
    let graph = bench.graph();
    let event = graph.record(&bench.queue, || fill(&bench.queue, &a, 5, &[])).unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let refused = executable.submit_to(&bench.queue).after(&event).submit();
    let node = event.node().unwrap();
    assert!(matches!(refused, Err(Error::Record(RecordError::RecordingEnded { index: 0, node: of })) if of == node));
    executable.submit(&bench.queue).unwrap().wait().unwrap();
    assert_eq!(bench.content(&a), [5; LEN]);
}

/// Rule R15: a map for the caller is no node, and earlier maps are unmapped at once.
#[test]
fn what_is_mapped_when_a_recording_begins_is_unmapped_at_once() {
    let bench = Bench::new();
    let queue = &bench.queue;
    let a = bench.buffer(&[1; LEN]);
    // SAFETY: nothing else uses the buffer until it is unmapped.
    let mut mapped = unsafe { queue.map(&a, MapWrite, &[]).unwrap() };
    mapped[7] = 9;
    let graph = bench.graph();
    graph.begin_recording(queue).unwrap();
    mapped.unmap().unwrap();
    if queue.device().caps().images.is_some() {
        let image = Image::new(queue, ImageShape::image_2d(4, 4), ImageFormat::RGBA_U8).unwrap();
        // SAFETY: an error.
        let refused = unsafe { queue.map_image::<u8, _>(&image, [0; 3], [4, 4, 1], MapRead, &[]) };
        assert_error!(
            refused,
            RecordError::NotRecordable { what: "mapping an image", instead }
                if instead.starts_with("use `enqueue_map_image`"),
        );
    }
    assert!(graph.is_empty());
    graph.end_recording(queue).unwrap();
    assert_eq!(bench.content(&a)[6..9], [1, 9, 1]);
}

/// Rules R2, R9, R16, U5: queues, graphs and programs of another device of one context.
#[test]
fn another_device_of_the_context_is_another_device() {
    let whole = clgraph::best_device().unwrap();
    let Some(parts) = sub_devices(&whole) else { return skip(Reason::NoSubDevices) };
    // SAFETY: the sub-devices are kept in `parts`.
    let devices: Vec<Device> =
        parts.iter().take(2).map(|part| unsafe { Device::from_raw(part.id()) }.unwrap()).collect();
    let context = clgraph::Context::new(&devices).unwrap();
    let queue = |device| Queue::with_properties(&context, device, QueueProperties::default()).unwrap();
    let graph = |device| Graph::with_properties(&context, device, GraphProperties::default()).unwrap();
    let (mine, theirs) = (queue(&devices[0]), queue(&devices[1]));
    let a = Buffer::<u32>::from_slice(&context, &[1; LEN]).unwrap();
    let here = graph(&devices[0]);
    let refused = here.begin_recording(&[&mine, &theirs]);
    assert!(matches!(refused, Err(Error::Record(RecordError::OtherQueue { index: 1, what: "device" }))), "{refused:?}");
    assert_eq!(states(&[&mine, &theirs]), [QueueState::Executing; 2]);
    here.begin_recording(&mine).unwrap();
    let event = fill(&mine, &a, 2, &[]).unwrap();
    let refused = fill(&theirs, &a, 3, &[&event]);
    assert!(
        matches!(refused, Err(Error::Record(RecordError::CannotJoin { index: 0, what: "device", .. }))),
        "{refused:?}"
    );
    here.end_recording(&mine).unwrap();
    let executable = here.finalize(Finalize::new().updatable()).unwrap();
    let there = graph(&devices[1]);
    there.fill(&a, 4).add().unwrap();
    let refused = executable.update_from(&there);
    let Err(Error::Update(UpdateError::Differs { difference })) = &refused else { panic!("{refused:?}") };
    assert_eq!(difference, "the graph has another device");
    executable.submit(&mine).unwrap().wait().unwrap();
    assert_eq!(common::content(&mine, &a), [2; LEN]);

    // A program that is built for one of them.
    let raw = context.to_opencl3().unwrap();
    let mut plain = opencl3::program::Program::create_from_source(&raw, SOURCE).unwrap();
    plain.build(&[devices[0].raw()], "").unwrap();
    let program = clgraph::Program::from_opencl3(&context, &plain).unwrap();
    let stir = program.kernel("stir").unwrap();
    // PoCL reports a program as built for all parts of a device once it is built for one, and it is.
    let built = plain.get_build_status(devices[1].raw()).unwrap() == 0;
    let mut launch = ExecuteKernel::new(&stir);
    launch.set_arg(&a).set_global_work_size(LEN);
    // SAFETY: a work-item touches its own element.
    match unsafe { launch.enqueue_nd_range(&theirs) } {
        Ok(event) => {
            assert!(built);
            event.wait().unwrap();
        }
        Err(error) => {
            let of = matches!(&error, Error::Program(ProgramError::NotBuiltFor { kernel, .. }) if kernel == "stir");
            assert!(of && !built, "{error}");
        }
    }
}
