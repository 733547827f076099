//! The native path on a fake driver that wraps the real device.

mod kernels;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use opencl_sys::{CL_INVALID_OPERATION, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES};

use crate::caps::{Caps, CommandBufferCaps, DetectedBy, ExtensionVersion, QueueKinds, RecordAbi, Version};
use crate::cl::fake::{Barrier, Fake, inside, telling_buffer};
use crate::cl::objects::buffer::Buffer;
use crate::cl::objects::context::Context;
use crate::cl::objects::device::{Device, best_device};
use crate::cl::objects::queue::QueueProperties;
use crate::error::{DriverError, Error, ErrorKind, FinalizeError, SetupError, Status, SubmitError};
use crate::exec::{Executable, Finalize};
use crate::graph::{Graph, HostRead, NativeCommand, NativeCommandNode};
use crate::plan::{Path, PathReason};
use crate::record::Queue;

use RecordAbi::{WithProperties, WithoutProperties};

const BOTH: [RecordAbi; 2] = [WithoutProperties, WithProperties];
/// CL_INCOMPATIBLE_COMMAND_QUEUE_KHR.
const INCOMPATIBLE: i32 = -1140;

/// A device with the fake driver, and a queue.
struct Setting {
    fake: Arc<Fake>,
    device: Device,
    queue: Queue,
}

impl Setting {
    fn with(fake: Arc<Fake>, change: impl FnOnce(&mut CommandBufferCaps)) -> Self {
        let device = fake.device(&best_device().unwrap(), |caps, says| {
            "A driver".clone_into(&mut caps.platform);
            change(says);
        });
        let queue = Queue::new(&device).unwrap();
        Self { fake, device, queue }
    }

    fn new(abi: RecordAbi) -> Self {
        Self::with(Fake::new(abi, &[]), |_| ())
    }

    /// Returns a graph of a fill, a copy, a rectangular copy, a host write in the middle, and a read of the result.
    fn graph(&self) -> (Graph, HostRead<u32>) {
        let graph = Graph::new(&self.queue).unwrap();
        let (a, b) = (Buffer::<u32>::new(&self.queue, 16).unwrap(), Buffer::<u32>::new(&self.queue, 16).unwrap());
        graph.fill(&a, 7).add().unwrap();
        graph.fill(&b, 1).add().unwrap();
        graph.copy(&a.slice(0..4).unwrap(), &b.slice(4..8).unwrap()).add().unwrap();
        graph.write(&a.slice(0..2).unwrap(), [8, 9]).add().unwrap();
        let rect = graph.copy_rect(&a, &b).region([2, 2, 1]).src_pitch(4, 0).dst_pitch(4, 0);
        rect.dst_origin([2, 2, 0]).add().unwrap();
        graph.fill(&b.slice(15..).unwrap(), 3).add().unwrap();
        let read = graph.read(&b).add().unwrap();
        (graph, read)
    }

    fn finalize(&self, graph: &Graph) -> Executable {
        graph.finalize(Finalize::new().path(Path::Native)).unwrap()
    }

    fn live(&self) -> usize {
        self.fake.live.load(SeqCst)
    }
}

const RESULT: [u32; 16] = [1, 1, 1, 1, 7, 7, 7, 7, 1, 1, 8, 9, 1, 1, 7, 3];

fn assert_runs(executable: &Executable, queue: &Queue, read: &HostRead<u32>) {
    for _ in 0..3 {
        let run = executable.submit(queue).unwrap();
        run.wait().unwrap();
        assert_eq!(*run.get(read).unwrap(), RESULT);
    }
}

fn paths(executable: &Executable) -> Vec<(Path, usize)> {
    executable.report().segments.iter().map(|part| (part.path, part.commands)).collect()
}

/// Rule F4
#[test]
fn both_signatures_give_the_bytes_of_an_eager_run() {
    for abi in BOTH {
        let setting = Setting::new(abi);
        let (graph, read) = setting.graph();
        let executable = setting.finalize(&graph);
        assert_eq!(setting.device.abi().unwrap().unwrap().record, abi);
        assert_eq!(paths(&executable), [(Path::Native, 3), (Path::Replay, 1), (Path::Native, 2), (Path::Replay, 1)]);
        assert_runs(&executable, &setting.queue, &read);
        assert_eq!(setting.fake.enqueued.load(SeqCst), 2 * 3);
        assert_eq!(executable.command_buffers().len(), 2);
        drop((executable, graph));
        assert_eq!(setting.live(), 0, "{abi}: every command buffer is released");
    }
}

/// Rule F4: the version that a driver reports decides nothing.
#[test]
fn a_wrong_version_does_no_harm() {
    for (abi, version) in [(WithoutProperties, [1, 0, 0]), (WithProperties, [0, 9, 0]), (WithProperties, [0, 1, 0])] {
        let [major, minor, patch] = version;
        let says = |says: &mut CommandBufferCaps| says.version = Some(ExtensionVersion::new(major, minor, patch));
        let setting = Setting::with(Fake::new(abi, &[]), says);
        let (graph, read) = setting.graph();
        let executable = setting.finalize(&graph);
        assert_eq!(setting.device.abi().unwrap().unwrap().record, abi);
        assert_runs(&executable, &setting.queue, &read);
        assert!(setting.fake.enqueued.load(SeqCst) > 0);
    }
}

/// Rule F4: a driver that lists the extension but lacks functions.
#[test]
fn missing_functions_cost_only_what_needs_them() {
    // A function that every recording needs.
    for name in [c"clEnqueueCommandBufferKHR", c"clCommandBarrierWithWaitListKHR", c"clCommandNDRangeKernelKHR"] {
        let setting = Setting::with(Fake::new(WithProperties, &[name]), |_| ());
        let (graph, read) = setting.graph();
        let executable = setting.finalize(&graph);
        assert_eq!(paths(&executable), [(Path::Replay, 7)]);
        assert_eq!(executable.report().segments[0].why, PathReason::MissingFunction(name.to_str().unwrap()));
        assert_eq!(setting.device.abi().unwrap(), None);
        assert_runs(&executable, &setting.queue, &read);
        assert_eq!(setting.fake.made.load(SeqCst), 0);
    }
    // A function of one command.
    for abi in BOTH {
        let setting = Setting::with(Fake::new(abi, &[c"clCommandFillBufferKHR"]), |_| ());
        let (graph, read) = setting.graph();
        let executable = setting.finalize(&graph);
        let (native, replay) = (|n| (Path::Native, n), |n| (Path::Replay, n));
        assert_eq!(
            paths(&executable),
            [replay(2), native(1), replay(1), native(1), replay(1), replay(1)],
            "the last two for different reasons"
        );
        assert_runs(&executable, &setting.queue, &read);
    }
}

/// Rule F4: a driver that has the functions but does not list the extension.
#[test]
fn functions_that_are_not_advertised_are_used_only_on_demand() {
    let setting = Setting::with(Fake::new(WithProperties, &[]), |says| says.detected_by = DetectedBy::Hidden);
    let (graph, read) = setting.graph();
    let executable = setting.finalize(&graph);
    assert_eq!(paths(&executable), [(Path::Replay, 7)]);
    assert_eq!(executable.report().segments[0].why, PathReason::NotListed);
    assert_eq!(setting.device.abi().unwrap(), None);
    assert_runs(&executable, &setting.queue, &read);
    assert_eq!(setting.fake.made.load(SeqCst), 0);

    let setting = Setting::with(Fake::new(WithProperties, &[]), |says| {
        says.detected_by = DetectedBy::Assumed;
        says.assumed = vec!["command_buffer", "simultaneous_use"];
    });
    let (graph, read) = setting.graph();
    let executable = setting.finalize(&graph);
    assert_runs(&executable, &setting.queue, &read);
    assert_eq!(setting.fake.enqueued.load(SeqCst), 6);
    let report = executable.report().to_string();
    let warning = "warning    CLGRAPH_ASSUME enables command buffers (command_buffer, simultaneous_use), although the \
                   driver does not";
    assert!(report.contains(warning), "{report}");
}

/// Rule F4: a driver that accepts neither signature is never called by the wrong one.
#[test]
fn a_driver_of_unknown_signature_is_replayed() {
    for (abi, how) in BOTH.into_iter().flat_map(|abi| [(abi, Barrier::Fails(-57)), (abi, Barrier::Silent)]) {
        let setting = Setting::new(abi);
        *setting.fake.barrier.lock().unwrap() = how;
        let (graph, read) = setting.graph();
        let executable = setting.finalize(&graph);
        assert_eq!(paths(&executable), [(Path::Replay, 7)], "{abi}, {how:?}");
        assert_eq!(executable.report().segments[0].why, PathReason::Unusable);
        assert_runs(&executable, &setting.queue, &read);
        assert_eq!((setting.fake.recorded.load(SeqCst), setting.live()), (0, 0));
        assert!(matches!(setting.device.abi(), Err(Error::Setup(SetupError::CommandBufferAbi { .. }))));
        assert_eq!(setting.fake.made.load(SeqCst), 1, "it is tried once");
        if std::env::var_os("CLGRAPH_PATH").is_none() {
            assert_eq!(setting.device.path().unwrap(), (Path::Replay, PathReason::Unusable));
        }
    }
    // The older signature is also recognized if the driver ignores the handle, or writes a handle instead of a sync
    // point: a handle has more bits.
    for how in [Barrier::Careless, Barrier::Generous] {
        let setting = Setting::new(WithoutProperties);
        *setting.fake.barrier.lock().unwrap() = how;
        assert_eq!(setting.device.abi().unwrap().unwrap().record, WithoutProperties, "{how:?}");
    }
    let setting = Setting::new(WithProperties);
    *setting.fake.barrier.lock().unwrap() = Barrier::Fails(-57);
    let text = setting.device.abi().unwrap_err().to_string();
    let why = "a barrier failed with both, at last with CL_INVALID_EVENT_WAIT_LIST (-57)";
    assert!(text.contains(why), "{text}");
}

/// Rule F4: nodes that the driver refuses are replayed after a second plan; all others are recorded.
#[test]
fn a_refused_command_is_replayed_and_the_rest_is_recorded() {
    for abi in BOTH {
        let setting = Setting::new(abi);
        setting.fake.refused_fill.store(4, SeqCst);
        let (graph, read) = setting.graph();
        let executable = setting.finalize(&graph);
        let expected = [(Path::Native, 3), (Path::Replay, 1), (Path::Native, 1), (Path::Replay, 1), (Path::Replay, 1)];
        assert_eq!(paths(&executable), expected);
        let why = executable.report().segments[3].why;
        assert_eq!(
            why.to_string(),
            "the driver refused: clCommandFillBufferKHR failed with CL_INVALID_OPERATION (-59)"
        );
        assert_runs(&executable, &setting.queue, &read);
        assert_eq!(setting.live(), 2, "what was recorded before the second plan is gone");
    }
}

/// Rule F5: finalize names a node that no path can run, with the device and what it lacks.
#[test]
fn a_node_that_the_device_is_too_old_for_is_named_with_device_and_feature() {
    let fake = Fake::new(WithProperties, &[]);
    let old = |caps: &mut Caps, _: &mut CommandBufferCaps| {
        caps.version = Version::new(1, 1);
        caps.name = "An old device".to_owned();
    };
    let device = fake.device(&best_device().unwrap(), old);
    let queue = Queue::new(&device).unwrap();
    let graph = Graph::new(&queue).unwrap();
    let buffer = Buffer::<u32>::new(&queue, 16).unwrap();
    graph.write(&buffer, [0; 16]).add().unwrap();
    let fill = graph.fill(&buffer, 7).add().unwrap();
    graph.fill(&buffer, 8).add().unwrap();
    for path in [Path::Native, Path::Replay, Path::Auto] {
        let error = graph.finalize(Finalize::new().path(path)).unwrap_err();
        let text = format!(
            "{fill} (fill) cannot run on device `An old device`: a fill needs OpenCL 1.2, but the device has 1.1: \
             use a device that has this, or another command"
        );
        assert_eq!((error.to_string(), error.kind()), (text, ErrorKind::FeatureNotSupported), "{path}");
    }
}

#[test]
fn a_driver_that_refuses_everything_replays_everything() {
    let every: [&dyn Fn(&Fake); 4] = [
        &|fake| fake.null_buffer.store(true, SeqCst),
        &|fake| fake.create_status.store(CL_OUT_OF_HOST_MEMORY, SeqCst),
        &|fake| fake.finalize_status.store(CL_OUT_OF_RESOURCES, SeqCst),
        &|fake| fake.refuse_all.store(CL_OUT_OF_RESOURCES, SeqCst),
    ];
    for refuse in every {
        let setting = Setting::new(WithProperties);
        // The signature is found before a command is refused.
        setting.device.abi().unwrap();
        refuse(&setting.fake);
        let (graph, read) = setting.graph();
        let executable = setting.finalize(&graph);
        assert!(paths(&executable).iter().all(|(path, _)| *path == Path::Replay));
        assert!(
            executable
                .report()
                .segments
                .iter()
                .any(|part| matches!(part.why, PathReason::Refused(_) | PathReason::Unusable))
        );
        assert_runs(&executable, &setting.queue, &read);
        assert_eq!(setting.live(), 0);
        assert!(executable.command_buffers().is_empty());
    }
}

/// After a refusal that makes a command buffer useless, the other nodes are tried in another command buffer.
#[test]
fn a_refusal_does_not_deny_what_comes_after_it() {
    let setting = Setting::new(WithProperties);
    setting.fake.refused_fill.store(4, SeqCst);
    setting.fake.sulks.store(true, SeqCst);
    let graph = Graph::new(&setting.queue).unwrap();
    let a = Buffer::<u32>::new(&setting.queue, 16).unwrap();
    graph.fill(&a, 1).add().unwrap();
    graph.fill(&a.slice(..1).unwrap(), 2).add().unwrap();
    for _ in 0..20 {
        graph.copy(&a.slice(..4).unwrap(), &a.slice(4..8).unwrap()).add().unwrap();
    }
    let executable = setting.finalize(&graph);
    assert_eq!(paths(&executable), [(Path::Native, 1), (Path::Replay, 1), (Path::Native, 20)]);
}

/// Rule S1: some drivers refuse a command buffer that still runs, or that was recorded for another queue. Then nothing
/// was enqueued.
#[test]
fn a_command_buffer_that_cannot_run_now_is_replayed_this_time() {
    // In the first case the command buffer does not support simultaneous use.
    for (status, simultaneous) in [(CL_INVALID_OPERATION, false), (INCOMPATIBLE, true), (INCOMPATIBLE, false)] {
        for fails_from in [0, 1] {
            let fake = Fake::new(WithProperties, &[]);
            let setting = Setting::with(fake, |says| says.simultaneous_use = simultaneous);
            let (graph, read) = setting.graph();
            let executable = setting.finalize(&graph);
            setting.fake.fails_from.store(fails_from, SeqCst);
            setting.fake.enqueue_status.store(status, SeqCst);
            assert_runs(&executable, &setting.queue, &read);
            assert_eq!(setting.fake.enqueued.load(SeqCst), fails_from);
            setting.fake.enqueue_status.store(0, SeqCst);
            assert_runs(&executable, &setting.queue, &read);
            assert_eq!(setting.fake.enqueued.load(SeqCst), fails_from + 6);
        }
    }
}

/// A command buffer with simultaneous use is not refused because it runs; after such an error it is unknown what was
/// enqueued.
#[test]
fn a_refusal_that_can_mean_anything_is_not_answered_by_doing_it_again() {
    let setting = Setting::new(WithProperties);
    let (graph, _) = setting.graph();
    let executable = setting.finalize(&graph);
    setting.fake.enqueue_status.store(CL_INVALID_OPERATION, SeqCst);
    let error = executable.submit(&setting.queue).unwrap_err();
    assert!(matches!(error, Error::Submit(SubmitError::Enqueue { commands: 3, enqueued: 0, .. })), "{error}");
}

/// Rule E2: the submission reports any other failure to enqueue, and says where.
#[test]
fn a_command_buffer_that_fails_fails_the_submission_and_leaves_the_executable_usable() {
    let setting = Setting::new(WithProperties);
    let (graph, read) = setting.graph();
    let executable = setting.finalize(&graph);
    setting.fake.enqueue_status.store(CL_OUT_OF_RESOURCES, SeqCst);
    let error = executable.submit(&setting.queue).unwrap_err().to_string();
    assert_eq!(
        error,
        "the command buffer of node 0 and 2 more nodes could not be enqueued, after 0 of 7 commands: \
         clEnqueueCommandBufferKHR failed with CL_OUT_OF_RESOURCES (-5)"
    );
    setting.fake.fails_from.store(1, SeqCst);
    setting.fake.enqueue_status.store(0, SeqCst);
    assert_runs(&executable, &setting.queue, &read);
    setting.fake.enqueue_status.store(CL_OUT_OF_RESOURCES, SeqCst);
    let error = executable.submit(&setting.queue).unwrap_err();
    assert!(matches!(error, Error::Submit(SubmitError::Enqueue { commands: 3, enqueued: 0, .. })), "{error}");
    setting.fake.enqueue_status.store(0, SeqCst);
    assert_runs(&executable, &setting.queue, &read);
}

/// Rule S1: there is one set of command buffers for each set of queue properties. It is made once, when it is first
/// needed.
#[test]
fn there_is_one_set_of_command_buffers_for_each_set_of_queue_properties() {
    let setting = Setting::new(WithProperties);
    let (graph, read) = setting.graph();
    let executable = setting.finalize(&graph);
    let made = || setting.fake.made.load(SeqCst) - 1; // One was made to find the signature.
    assert_eq!(made(), 2);
    let queue = |properties| Queue::with_properties(&setting.queue, &setting.device, properties).unwrap();
    let out_of_order = queue(QueueProperties::new().out_of_order(true));
    assert_runs(&executable, &out_of_order, &read);
    assert_eq!(made(), 2, "an out-of-order queue is served by an in-order one");
    let profiling = [queue(QueueProperties::new().profiling(true)), queue(QueueProperties::new().profiling(true))];
    for queue in &profiling {
        assert_runs(&executable, queue, &read);
    }
    assert_eq!(made(), 4);
    assert_eq!(setting.fake.enqueued.load(SeqCst), 2 * 9);
    let flags = setting.fake.flags.lock().unwrap().clone();
    assert_eq!(flags, [0, 1, 1, 1, 1], "simultaneous use, but for the trial");
    drop((executable, graph));
    assert_eq!(setting.live(), 0);
}

#[test]
fn queues_that_a_driver_does_not_take_are_replayed() {
    let none = Some(QueueKinds::default());
    let setting = Setting::with(Fake::new(WithProperties, &[]), |says| {
        says.supported_queue = none;
        says.simultaneous_use = false;
    });
    let (graph, read) = setting.graph();
    let executable = setting.finalize(&graph);
    let profiling = QueueProperties::new().profiling(true);
    let profiling = Queue::with_properties(&setting.queue, &setting.device, profiling).unwrap();
    assert_runs(&executable, &profiling, &read);
    assert_eq!(setting.fake.enqueued.load(SeqCst), 0);
    assert_runs(&executable, &setting.queue, &read);
    assert_eq!(setting.fake.enqueued.load(SeqCst), 6);
    assert_eq!(*setting.fake.flags.lock().unwrap(), [0, 0, 0], "no flag that the device does not have");

    // A driver that fails to make command buffers for such queues when they are first needed.
    let setting = Setting::new(WithProperties);
    let (graph, read) = setting.graph();
    let executable = setting.finalize(&graph);
    setting.fake.create_status.store(CL_OUT_OF_RESOURCES, SeqCst);
    let profiling = QueueProperties::new().profiling(true);
    let profiling = Queue::with_properties(&setting.queue, &setting.device, profiling).unwrap();
    assert_runs(&executable, &profiling, &read);
    assert_eq!(setting.fake.enqueued.load(SeqCst), 0);
}

/// Rules I4, E2: a submission that needs command buffers says why there are none, and the next one has them.
#[test]
fn what_can_only_be_recorded_is_recorded_when_the_driver_accepts_it_again() {
    type Refuses = fn(&Fake, i32);
    let refuse: [(Refuses, &str); 3] = [
        (|fake, status| fake.create_status.store(status, SeqCst), "clCreateCommandBufferKHR"),
        (|fake, status| fake.finalize_status.store(status, SeqCst), "clFinalizeCommandBufferKHR"),
        (|fake, status| fake.refuse_all.store(status, SeqCst), "clCommandFillBufferKHR"),
    ];
    for (refuse, call) in refuse {
        let setting = Setting::new(WithProperties);
        let (graph, read) = setting.graph();
        inside(NativeCommandNode::add, graph.native_command(NativeCommand::recorded(|_| ()))).unwrap();
        let executable = setting.finalize(&graph);
        let profiling = QueueProperties::new().profiling(true);
        let profiling = Queue::with_properties(&setting.queue, &setting.device, profiling).unwrap();
        refuse(&setting.fake, CL_OUT_OF_RESOURCES);
        for _ in 0..2 {
            let error = executable.submit(&profiling).unwrap_err();
            assert_eq!(error.driver_error(), Some(DriverError::new(call, Status(CL_OUT_OF_RESOURCES))), "{error}");
        }
        assert_runs(&executable, &setting.queue, &read);
        refuse(&setting.fake, 0);
        assert_runs(&executable, &profiling, &read);
    }
}

/// Rules F5, E4: it is not the device that lacks something.
#[test]
fn a_driver_that_refuses_what_can_only_be_recorded_gives_its_error_its_kind() {
    let setting = Setting::new(WithProperties);
    // The signature is found before a command buffer is refused.
    setting.device.abi().unwrap();
    let (graph, read) = setting.graph();
    inside(NativeCommandNode::add, graph.native_command(NativeCommand::recorded(|_| ()))).unwrap();
    for place in [&setting.fake.create_status, &setting.fake.finalize_status] {
        place.store(CL_OUT_OF_RESOURCES, SeqCst);
        let error = graph.finalize(Finalize::new()).unwrap_err();
        let Error::Finalize(FinalizeError::NotRunnable { missing, .. }) = &error else { panic!("{error}") };
        assert!(missing.contains("KHR failed with CL_OUT_OF_RESOURCES (-5)"), "{missing}");
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        place.store(0, SeqCst);
    }
    assert_runs(&setting.finalize(&graph), &setting.queue, &read);
}

/// Rule F3: a driver retains nothing that a command buffer uses.
#[test]
fn what_command_buffers_use_is_kept_until_they_are_through() {
    for detached in [false, true] {
        let setting = Setting::new(WithProperties);
        let (buffer, tell) = telling_buffer(&setting.queue, 16);
        let graph = Graph::new(&setting.queue).unwrap();
        graph.fill(&buffer, 3).add().unwrap();
        let executable = setting.finalize(&graph);
        *setting.fake.holds.lock().unwrap() = Some(setting.queue.context().clone());
        if detached {
            executable.submit_to(&setting.queue).submit_detached().unwrap();
        } else {
            drop(executable.submit(&setting.queue).unwrap());
        }
        drop((buffer, graph, executable));
        assert_eq!((setting.live(), tell.strong_count()), (1, 1), "it may run still");
        setting.fake.run_held();
        setting.queue.finish().unwrap();
        let begin = std::time::Instant::now();
        while setting.live() > 0 || tell.strong_count() > 0 {
            assert!(begin.elapsed() < std::time::Duration::from_secs(60), "never released");
            std::thread::yield_now();
        }
    }
}

/// A driver that reports success but returns no event: the commands run, and nobody is notified of an end that nobody
/// saw.
#[test]
fn an_event_that_does_not_come_is_an_error_and_the_commands_count_as_enqueued() {
    let setting = Setting::new(WithProperties);
    let graph = Graph::new(&setting.queue).unwrap();
    let buffer = Buffer::<u32>::new(&setting.queue, 4).unwrap();
    graph.fill(&buffer, 5).add().unwrap();
    let executable = setting.finalize(&graph);
    setting.fake.null_event.store(true, SeqCst);
    assert!(executable.submit(&setting.queue).is_err());
    executable.submit_to(&setting.queue).submit_detached().unwrap();
    setting.queue.finish().unwrap();
    assert_eq!(setting.fake.enqueued.load(SeqCst), 2);
    setting.fake.null_event.store(false, SeqCst);
    executable.submit(&setting.queue).unwrap().wait().unwrap();
}

/// A driver without known quirks is trusted.
#[test]
fn the_automatic_path_takes_command_buffers_where_nothing_is_known_against_them() {
    let setting = Setting::new(WithoutProperties);
    let context = Context::new(std::slice::from_ref(&setting.device)).unwrap();
    assert_eq!(context.devices(), std::slice::from_ref(&setting.device));
    let (graph, read) = setting.graph();
    if std::env::var_os("CLGRAPH_PATH").is_none() {
        let executable = graph.finalize(Finalize::new()).unwrap();
        assert_eq!(paths(&executable)[0], (Path::Replay, 3));
        assert_eq!(executable.report().segments[0].why, PathReason::TooShort);
        assert_runs(&executable, &setting.queue, &read);
        let buffer = Buffer::<u32>::new(&setting.queue, 4).unwrap();
        for value in 0..4 {
            graph.fill(&buffer, value).add().unwrap();
        }
        let executable = graph.finalize(Finalize::new().autotune(false)).unwrap();
        assert_eq!(paths(&executable)[4], (Path::Native, 4));
        assert_eq!(executable.report().segments[4].why, PathReason::Available);
        assert_runs(&executable, &setting.queue, &read);
        assert_eq!(setting.fake.enqueued.load(SeqCst), 3);
        assert_eq!(setting.device.path().unwrap(), (Path::Native, PathReason::Available));
    }
    assert_eq!(setting.device.caps().path(), (Path::Native, PathReason::Available));
}

/// Rule U6: an update records again only the command buffer that holds the changed command.
#[test]
fn an_update_records_the_command_buffer_again_that_changed() {
    for abi in BOTH {
        let setting = Setting::new(abi);
        let graph = Graph::new(&setting.queue).unwrap();
        let buffer = Buffer::<u32>::new(&setting.queue, 16).unwrap();
        let part = |at: usize| buffer.slice(2 * at..2 * at + 2).unwrap();
        let nodes: Vec<_> = (0..8).map(|at| graph.fill(&part(at), at as u32).add().unwrap()).collect();
        let read = graph.read(&buffer).add().unwrap();
        let options = Finalize::new().path(Path::Native).updatable().commands_per_buffer(4);
        let executable = graph.finalize(options).unwrap();
        assert_eq!(executable.report().updates.as_ref().unwrap().recorded, 8);
        let before = executable.command_buffers();
        graph.fill(&part(1), 9).replace(nodes[1]).unwrap();
        executable.update(&nodes[1]).unwrap();
        let after = executable.command_buffers();
        assert_ne!(before[0], after[0], "recorded again");
        assert_eq!(before[1], after[1], "left alone");
        let run = executable.submit(&setting.queue).unwrap();
        run.wait().unwrap();
        assert_eq!(*run.get(&read).unwrap(), [0, 0, 9, 9, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]);
        // If the driver refuses, everything stays as it was.
        graph.fill(&part(6), 8).replace(nodes[6]).unwrap();
        setting.fake.finalize_status.store(CL_OUT_OF_RESOURCES, SeqCst);
        let error = executable.update(&nodes[6]).unwrap_err();
        assert!(error.to_string().starts_with("node "), "{error}");
        assert_eq!(executable.command_buffers(), after);
        setting.fake.finalize_status.store(0, SeqCst);
        drop(run);
        drop((executable, graph));
        assert_eq!(setting.live(), 0, "every command buffer is released");
    }
}
