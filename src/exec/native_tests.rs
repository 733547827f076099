//! The native path on a driver that the tests make up, over the real device.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use opencl_sys::{CL_INVALID_OPERATION, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES};

use super::{Executable, Finalize};
use crate::caps::{Claim, CommandBufferCaps, ExtensionVersion, QueueKinds, RecordAbi};
use crate::cl::buffer::Buffer;
use crate::cl::context::Context;
use crate::cl::device::{Device, best_device};
use crate::cl::fake::Fake;
use crate::cl::queue::{Queue, QueueProperties};
use crate::error::{Error, SetupError};
use crate::graph::{Graph, HostRead};
use crate::plan::{Path, Why};

use RecordAbi::{WithProperties, WithoutProperties};

const BOTH: [RecordAbi; 2] = [WithoutProperties, WithProperties];
/// CL_INCOMPATIBLE_COMMAND_QUEUE_KHR.
const INCOMPATIBLE: i32 = -1140;

/// A device with a driver of our own, and a queue.
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

    /// Fill, copy, rectangular copy, a host write in the middle, and a read of the result.
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

/// Rule F4: the version that a driver names decides nothing.
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

/// Rule F4: a driver that lists the extension and lacks functions.
#[test]
fn missing_functions_cost_only_what_needs_them() {
    // One without which nothing can be recorded.
    for name in [c"clEnqueueCommandBufferKHR", c"clCommandBarrierWithWaitListKHR", c"clCommandNDRangeKernelKHR"] {
        let setting = Setting::with(Fake::new(WithProperties, &[name]), |_| ());
        let (graph, read) = setting.graph();
        let executable = setting.finalize(&graph);
        assert_eq!(paths(&executable), [(Path::Replay, 7)]);
        assert_eq!(executable.report().segments[0].why, Why::MissingFunction(name.to_str().unwrap()));
        assert_eq!(setting.device.abi().unwrap(), None);
        assert_runs(&executable, &setting.queue, &read);
        assert_eq!(setting.fake.made.load(SeqCst), 0);
    }
    // One of a command.
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

/// Rule F4: a driver that has the functions and does not list the extension.
#[test]
fn functions_that_are_not_advertised_are_used_only_on_demand() {
    let setting = Setting::with(Fake::new(WithProperties, &[]), |says| says.claim = Claim::Hidden);
    let (graph, read) = setting.graph();
    let executable = setting.finalize(&graph);
    assert_eq!(paths(&executable), [(Path::Replay, 7)]);
    assert_eq!(executable.report().segments[0].why, Why::NotListed);
    assert_eq!(setting.device.abi().unwrap(), None);
    assert_runs(&executable, &setting.queue, &read);
    assert_eq!(setting.fake.made.load(SeqCst), 0);

    let setting = Setting::with(Fake::new(WithProperties, &[]), |says| {
        says.claim = Claim::Assumed;
        says.assumed = vec!["command_buffer", "simultaneous_use"];
    });
    let (graph, read) = setting.graph();
    let executable = setting.finalize(&graph);
    assert_runs(&executable, &setting.queue, &read);
    assert_eq!(setting.fake.enqueued.load(SeqCst), 6);
    let report = executable.report().to_string();
    let warning =
        "warning  command buffers rest on CLGRAPH_ASSUME (command_buffer, simultaneous_use): the driver does not";
    assert!(report.contains(warning), "{report}");
}

/// Rule F4: a driver that answers to neither signature is not called by any.
#[test]
fn a_driver_of_unknown_signature_is_replayed() {
    let setting = Setting::new(WithProperties);
    setting.fake.barrier_status.store(-57, SeqCst);
    let (graph, read) = setting.graph();
    let executable = setting.finalize(&graph);
    assert_eq!(paths(&executable), [(Path::Replay, 7)]);
    assert_eq!(executable.report().segments[0].why, Why::Unusable);
    assert_runs(&executable, &setting.queue, &read);
    assert_eq!((setting.fake.recorded.load(SeqCst), setting.live()), (0, 0));
    let error = setting.device.abi().unwrap_err();
    assert!(matches!(error, Error::Setup(SetupError::CommandBufferAbi { .. })));
    assert!(
        error.to_string().contains("returned CL_INVALID_EVENT_WAIT_LIST (-57), which fits neither signature"),
        "{error}"
    );
}

/// Rule F4: what the driver refuses is planned again, and only that is replayed.
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
            "the driver refused to record it: clCommandFillBufferKHR failed with CL_INVALID_OPERATION (-59)"
        );
        assert_runs(&executable, &setting.queue, &read);
        assert_eq!(setting.live(), 2, "what was recorded before the second plan is gone");
    }
}

#[test]
fn a_driver_that_refuses_everything_replays_everything() {
    let every: [&dyn Fn(&Fake); 3] = [
        &|fake| fake.create_status.store(CL_OUT_OF_HOST_MEMORY, SeqCst),
        &|fake| fake.finalize_status.store(CL_OUT_OF_RESOURCES, SeqCst),
        &|fake| fake.refuse_all.store(CL_OUT_OF_RESOURCES, SeqCst),
    ];
    for refuse in every {
        let setting = Setting::new(WithProperties);
        // The signature is found before anything is refused.
        setting.device.abi().unwrap();
        refuse(&setting.fake);
        let (graph, read) = setting.graph();
        let executable = setting.finalize(&graph);
        assert!(paths(&executable).iter().all(|(path, _)| *path == Path::Replay));
        assert!(executable.report().segments.iter().any(|part| matches!(part.why, Why::Refused(_))));
        assert_runs(&executable, &setting.queue, &read);
        assert_eq!(setting.live(), 0);
        assert!(executable.command_buffers().is_empty());
    }
}

/// Rule S1: some drivers refuse a command buffer that still runs, or one for another queue. Nothing was enqueued then.
#[test]
fn a_command_buffer_that_cannot_run_now_is_replayed_this_time() {
    for status in [CL_INVALID_OPERATION, INCOMPATIBLE] {
        let setting = Setting::new(WithProperties);
        let (graph, read) = setting.graph();
        let executable = setting.finalize(&graph);
        setting.fake.enqueue_status.store(status, SeqCst);
        assert_runs(&executable, &setting.queue, &read);
        assert_eq!(setting.fake.enqueued.load(SeqCst), 0);
        setting.fake.enqueue_status.store(0, SeqCst);
        assert_runs(&executable, &setting.queue, &read);
        assert_eq!(setting.fake.enqueued.load(SeqCst), 6);
    }
}

/// Rule E2: any other failure to enqueue is the submission's, and says where.
#[test]
fn a_command_buffer_that_fails_fails_the_submission_and_leaves_the_executable_usable() {
    let setting = Setting::new(WithProperties);
    let (graph, read) = setting.graph();
    let executable = setting.finalize(&graph);
    setting.fake.enqueue_status.store(CL_OUT_OF_RESOURCES, SeqCst);
    let error = executable.submit(&setting.queue).unwrap_err().to_string();
    assert_eq!(
        error,
        "node 0 could not be enqueued, after 0 of 7 commands: clEnqueueCommandBufferKHR failed with \
         CL_OUT_OF_RESOURCES (-5)"
    );
    setting.fake.enqueue_status.store(0, SeqCst);
    assert_runs(&executable, &setting.queue, &read);
}

/// Rule S1: a set of command buffers for each set of queue properties, made once and when first needed.
#[test]
fn there_is_one_set_of_command_buffers_for_each_set_of_queue_properties() {
    let setting = Setting::new(WithProperties);
    let (graph, read) = setting.graph();
    let executable = setting.finalize(&graph);
    let made = || setting.fake.made.load(SeqCst) - 1; // One tried the signature.
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

    // And one whose driver makes none for such queues when they are first needed.
    let setting = Setting::new(WithProperties);
    let (graph, read) = setting.graph();
    let executable = setting.finalize(&graph);
    setting.fake.create_status.store(CL_OUT_OF_RESOURCES, SeqCst);
    let profiling = QueueProperties::new().profiling(true);
    let profiling = Queue::with_properties(&setting.queue, &setting.device, profiling).unwrap();
    assert_runs(&executable, &profiling, &read);
    assert_eq!(setting.fake.enqueued.load(SeqCst), 0);
}

/// A driver about which nothing is known is trusted.
#[test]
fn the_automatic_path_takes_command_buffers_where_nothing_is_known_against_them() {
    let setting = Setting::new(WithoutProperties);
    let context = Context::new(std::slice::from_ref(&setting.device)).unwrap();
    assert_eq!(context.devices(), std::slice::from_ref(&setting.device));
    let (graph, read) = setting.graph();
    if std::env::var_os("CLGRAPH_PATH").is_none() {
        let executable = graph.finalize(Finalize::new()).unwrap();
        assert_eq!((paths(&executable)[0], executable.report().segments[0].why), ((Path::Native, 3), Why::Available));
        assert_runs(&executable, &setting.queue, &read);
        assert_eq!(setting.fake.enqueued.load(SeqCst), 6);
    }
    assert_eq!(setting.device.caps().path(), (Path::Native, Why::Available));
}
