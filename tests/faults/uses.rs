//! The programs whose calls are made to fail. Each goes from the device to the results, and drops everything that it
//! made.
//!
//! A use returns what it computed. A step that fails is done once more with the same objects ([`again`]): only one call
//! fails, so the step has to succeed then. If a use expects an error, it notes the error in its results.

use std::pin::pin;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll, Wake, Waker};

use crate::{
    addresses, control, external_events, globals, host_tasks, images, native_commands, paths, profiles, updates,
    wrapped,
};
use clgraph::{
    Buffer, Context, Device, DriverError, Error, Event, Executable, ExecuteKernel, Finalize, Graph, HostRead,
    HostWrite, InContext, Kernel, Path, PendingRead, Program, Queue, QueueProperties, Result, Status, Submission,
};

/// A part of `kernels-cl/tests.cl`, and no more, because the program is compiled at each of thousands of places.
pub const SOURCE: &str = "
__kernel void scale(__global const uint *in, __global uint *out, uint by) {
    size_t i = get_global_id(0);
    out[i] = in[i] * 3u + by;
}
__kernel void stir(__global uint *a) {
    size_t i = get_global_id(0);
    a[i] = a[i] * 5u + (uint)i;
}";

/// A program, and its name.
pub struct Use {
    pub name: &'static str,
    /// The path that its graphs ask for: `Auto` leaves it to the environment. A use that only has queues replays.
    path: Path,
    run: fn(Path) -> Result<Vec<Vec<u32>>>,
}

impl Use {
    pub fn run(&self) -> Result<Vec<Vec<u32>>> {
        (self.run)(self.path)
    }

    /// Whether the environment changes what it does. Without a path of its own, everything is swept. With one, uses
    /// that ask for another path would make the same calls again, unless more is assumed about the device.
    pub fn is_swept(&self) -> bool {
        let set = |variable| std::env::var_os(variable).is_some();
        match self.path {
            Path::Native => !set("CLGRAPH_PATH") || set("CLGRAPH_ASSUME"),
            Path::Replay | Path::Gated | Path::Queues => !set("CLGRAPH_PATH"),
            _ => true,
        }
    }
}

const PLAIN: QueueProperties = QueueProperties::new();
const OUT_OF_ORDER: QueueProperties = PLAIN.out_of_order(true);

pub const USES: [Use; 74] = [
    Use { name: "replay", path: Path::Replay, run: |path| everything(path, PLAIN, End::Wait) },
    Use { name: "native", path: Path::Native, run: |path| everything(path, PLAIN, End::Wait) },
    Use { name: "out of order", path: Path::Auto, run: |path| everything(path, OUT_OF_ORDER, End::Wait) },
    Use {
        name: "native, profiling",
        path: Path::Native,
        run: |path| everything(path, PLAIN.profiling(true), End::Wait),
    },
    Use { name: "deferred", path: Path::Replay, run: |path| everything(path, PLAIN, End::Defer) },
    Use { name: "deferred, out of order", path: Path::Native, run: |path| everything(path, OUT_OF_ORDER, End::Defer) },
    Use { name: "dropped", path: Path::Replay, run: |path| everything(path, PLAIN, End::Drop) },
    Use { name: "dropped, native", path: Path::Native, run: |path| everything(path, PLAIN, End::Drop) },
    Use { name: "failed dependency", path: Path::Auto, run: |_| failed_dependency() },
    Use { name: "several threads", path: Path::Auto, run: |_| several_threads() },
    Use { name: "several executables", path: Path::Auto, run: |_| several_executables() },
    Use { name: "results held", path: Path::Auto, run: |_| results_held() },
    Use { name: "mixed paths", path: Path::Native, run: mixed_paths },
    Use { name: "small command buffers", path: Path::Native, run: small_command_buffers },
    Use { name: "after a gate", path: Path::Gated, run: after_a_gate },
    Use { name: "several queues", path: Path::Queues, run: paths::queues },
    Use { name: "every instruction, several queues", path: Path::Queues, run: paths::every_instruction_timed },
    Use { name: "every instruction", path: Path::Native, run: paths::every_instruction },
    Use { name: "every instruction, timed, native", path: Path::Native, run: paths::every_instruction_timed },
    Use { name: "every instruction, timed, replay", path: Path::Replay, run: paths::every_instruction_timed },
    Use { name: "timed", path: Path::Auto, run: paths::timed },
    Use { name: "nothing to do", path: Path::Auto, run: |_| nothing_to_do() },
    Use { name: "a binary", path: Path::Auto, run: |_| a_binary() },
    Use { name: "objects of opencl3", path: Path::Auto, run: |_| objects_of_opencl3() },
    Use { name: "events and queues", path: Path::Auto, run: |_| events_and_queues() },
    Use { name: "recorded", path: Path::Auto, run: |_| recorded() },
    Use { name: "executed by the queue", path: Path::Replay, run: |_| executed() },
    Use { name: "updated", path: Path::Replay, run: updates::in_a_graph },
    Use { name: "updated, native", path: Path::Native, run: updates::in_a_graph },
    Use { name: "updated again", path: Path::Replay, run: updates::again_and_again },
    Use { name: "updated again, native", path: Path::Native, run: updates::again_and_again },
    Use { name: "updated again, fused", path: Path::Replay, run: updates::fused },
    Use { name: "fused", path: Path::Replay, run: updates::fused_at_finalize },
    Use { name: "fused, kept", path: Path::Replay, run: updates::kept },
    Use { name: "addresses", path: Path::Replay, run: addresses::in_a_graph },
    Use { name: "addresses, native", path: Path::Native, run: addresses::in_a_graph },
    Use { name: "addresses, executed", path: Path::Replay, run: |_| addresses::on_a_queue() },
    Use { name: "mapped", path: Path::Replay, run: |_| addresses::mapped() },
    Use { name: "owned memory", path: Path::Replay, run: addresses::owned },
    Use { name: "owned memory, native", path: Path::Native, run: addresses::owned },
    Use { name: "images", path: Path::Replay, run: images::in_a_graph },
    Use { name: "images, native", path: Path::Native, run: images::in_a_graph },
    Use { name: "images, executed", path: Path::Replay, run: |_| images::on_a_queue() },
    Use { name: "images, mapped", path: Path::Replay, run: |_| images::mapped() },
    Use { name: "wrapped objects", path: Path::Auto, run: |_| wrapped::objects() },
    Use { name: "hints and times", path: Path::Replay, run: |_| wrapped::hints_and_times() },
    Use { name: "programs", path: Path::Auto, run: |_| wrapped::programs() },
    Use { name: "globals", path: Path::Replay, run: globals::in_a_graph },
    Use { name: "globals, native", path: Path::Native, run: globals::in_a_graph },
    Use { name: "globals, executed", path: Path::Replay, run: |_| globals::on_a_queue() },
    Use { name: "host tasks", path: Path::Replay, run: host_tasks::in_a_graph },
    Use { name: "host tasks, native", path: Path::Native, run: host_tasks::in_a_graph },
    Use { name: "host tasks, executed", path: Path::Replay, run: |_| host_tasks::on_a_queue() },
    Use { name: "branches and loops", path: Path::Replay, run: control::in_a_graph },
    Use { name: "branches and loops, native", path: Path::Native, run: control::in_a_graph },
    Use { name: "loops of a queue", path: Path::Replay, run: |_| control::on_a_queue() },
    Use { name: "unrolled", path: Path::Replay, run: control::unrolled },
    Use { name: "unrolled, native", path: Path::Native, run: control::unrolled },
    Use { name: "turns ahead", path: Path::Replay, run: control::ahead },
    Use { name: "turns ahead, native", path: Path::Native, run: control::ahead },
    Use { name: "turns by a kernel", path: Path::Replay, run: control::on_device },
    Use { name: "updated loops", path: Path::Replay, run: control::updated },
    Use { name: "updated loops, native", path: Path::Native, run: control::updated },
    Use { name: "profiled loop", path: Path::Native, run: control::profiled },
    Use { name: "mapped for tasks", path: Path::Replay, run: host_tasks::mapping },
    Use { name: "mapped for tasks, native", path: Path::Native, run: host_tasks::mapping },
    Use { name: "external events", path: Path::Replay, run: external_events::in_a_graph },
    Use { name: "external events, native", path: Path::Native, run: external_events::in_a_graph },
    Use { name: "profiles", path: Path::Replay, run: profiles::of_nodes },
    Use { name: "profiles, native", path: Path::Native, run: profiles::of_nodes },
    Use { name: "native commands", path: Path::Replay, run: native_commands::in_a_graph },
    Use { name: "native commands, native", path: Path::Native, run: native_commands::in_a_graph },
    Use { name: "recorded native commands", path: Path::Replay, run: native_commands::recorded },
    Use { name: "recorded native commands, native", path: Path::Native, run: native_commands::recorded },
];

/// What [`everything`] does after it has an executable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It submits, and waits.
    Wait,
    /// It submits after an event that is completed only later.
    Defer,
    /// It submits and drops the executable while that may run; a callback reports the end.
    Drop,
}

/// The errors that uses have met since the last [`take_errors`].
static ERRORS: Mutex<Errors> = Mutex::new(Errors { first: Vec::new(), second: Vec::new() });

/// Errors of steps.
#[derive(Debug, Default)]
pub struct Errors {
    /// Steps that failed, and then succeeded or failed again.
    pub first: Vec<Error>,
    /// Steps that failed again.
    pub second: Vec<Error>,
}

pub fn take_errors() -> Errors {
    std::mem::take(&mut *ERRORS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Does a step, and again with the same objects if it fails.
pub fn again<T>(step: impl Fn() -> Result<T>) -> Result<T> {
    once_more(&step, &step)
}

/// Does a step, and if it fails, does something that must work anyway.
pub fn once_more<T>(step: impl FnOnce() -> Result<T>, then: impl FnOnce() -> Result<T>) -> Result<T> {
    step().or_else(|error| {
        ERRORS.lock().unwrap_or_else(PoisonError::into_inner).first.push(error);
        then().inspect_err(|error| {
            ERRORS.lock().unwrap_or_else(PoisonError::into_inner).second.push(error.clone());
        })
    })
}

/// Returns what a submission read. If it failed, another submission with the same input must succeed.
pub fn result(run: &Submission, read: &HostRead<u32>, resubmit: impl Fn() -> Result<Submission>) -> Result<Vec<u32>> {
    let of = |run: &Submission| {
        run.wait()?;
        Ok(run.get(read)?.to_vec())
    };
    once_more(|| of(run), || of(&resubmit()?))
}

/// A user event that is completed in any case. It is no event of opencl3, which panics if it cannot be released.
struct Later {
    event: Event,
    status: i32,
}

impl Later {
    fn new(context: &impl InContext, status: i32) -> Result<Self> {
        let raw = opencl3::event::create_user_event(context.context().raw());
        let raw = raw.map_err(|status| DriverError::new("clCreateUserEvent", Status(status)))?;
        // SAFETY: a live event, whose first reference is given back.
        let event = unsafe { Event::from_raw(raw) };
        if event.is_err() {
            // NVIDIA's driver waits for user events when a context is released.
            let _ = opencl3::event::set_user_event_status(raw, 0);
        }
        // SAFETY: as above. A layer that says that it failed has done it.
        let _ = unsafe { opencl3::event::release_event(raw) };
        Ok(Self { event: event?, status })
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        let _ = opencl3::event::set_user_event_status(self.event.raw().unwrap(), self.status);
    }
}

/// A graph that stirs what it is given, and reads it.
struct Stirrer {
    graph: Graph,
    input: HostWrite<u32>,
    output: HostRead<u32>,
}

impl Stirrer {
    fn new(queue: &Queue) -> Result<Self> {
        let program = again(|| Program::from_source(queue, SOURCE))?;
        let stir = again(|| program.kernel("stir"))?;
        let buffer = again(|| Buffer::<u32>::new(queue, 64))?;
        let graph = Graph::new(queue)?;
        let input = graph.write(&buffer, [1; 64]).add()?;
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&stir).read_write(&buffer).range(64).add() }?;
        let output = graph.read(&buffer).add()?;
        Ok(Self { graph, input, output })
    }

    fn finalize(&self, options: Finalize) -> Result<Executable> {
        again(|| self.graph.finalize(options.clone()))
    }
}

pub fn setup() -> Result<Queue> {
    let device = again(clgraph::best_device)?;
    again(|| Queue::new(&device))
}

/// Another queue in the context of one.
pub fn beside(queue: &Queue, properties: QueueProperties) -> Result<Queue> {
    again(|| Queue::with_properties(queue, queue.device(), properties))
}

/// Every kind of node, several submissions, two queues.
fn everything(path: Path, properties: QueueProperties, end: End) -> Result<Vec<Vec<u32>>> {
    let first = setup()?;
    let queue = beside(&first, properties)?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let (stir, scale) = (again(|| program.kernel("stir"))?, again(|| program.kernel("scale"))?);
    let a = again(|| Buffer::<u32>::new(&queue, 256))?;
    let b = again(|| Buffer::<u32>::from_slice(&queue, &[1; 256]))?;
    let half = again(|| b.sub_buffer(128..))?;
    let graph = Graph::new(&queue)?;
    let input = graph.write(&a, [1; 256]).add()?;
    // SAFETY: each work-item touches its own element.
    unsafe {
        graph.kernel(&stir).read_write(&a).range(256).add()?;
        graph.kernel(&scale).read(&a).write(&half).arg(3_u32).range(128).add()?;
    }
    graph.fill(&a.slice(..8)?, 7).add()?;
    graph.copy(&half.slice(..4)?, &a.slice(8..12)?).add()?;
    graph.copy_rect(&half, &a).region([2, 2, 1]).src_pitch(8, 0).dst_pitch(8, 0).dst_origin([2, 4, 0]).add()?;
    let output = graph.read(&a).add()?;
    let executable = again(|| graph.finalize(Finalize::new().path(path).result_slots(6)))?;
    let later = if end == End::Defer { Some(again(|| Later::new(&queue, 0))?) } else { None };
    let defer = || {
        let submit = executable.submit_to(&queue);
        if let Some(later) = &later { submit.after(&later.event) } else { submit }.submit()
    };
    let other = || executable.submit_to(&queue).with(&input, [2; 256]).submit();
    let plain = || executable.submit(&first);
    let runs = [again(defer)?, again(other)?, again(plain)?];
    again(|| executable.submit_to(&queue).submit_detached())?;
    drop(later);
    if end == End::Drop {
        let (sender, receiver) = channel();
        runs[2].on_complete(move |outcome| sender.send(outcome).unwrap());
        drop((executable, graph));
        receiver.recv().unwrap()?;
        let results = runs.iter().map(|run| again(|| run.wait().and_then(|()| Ok(run.get(&output)?.to_vec()))));
        return results.collect();
    }
    let results =
        [result(&runs[0], &output, plain)?, result(&runs[1], &output, other)?, result(&runs[2], &output, plain)?];
    again(|| queue.finish())?;
    Ok(results.to_vec())
}

/// Commands that wait for a failed event do not run, nor what waits for these; later commands of the queue do.
fn failed_dependency() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let stirrer = Stirrer::new(&queue)?;
    let executable = stirrer.finalize(Finalize::new().result_slots(6))?;
    let later = again(|| Later::new(&queue, -7))?;
    let run = again(|| executable.submit_to(&queue).after(&later.event).submit())?;
    let dependent = again(|| executable.submit_to(&queue).after(&run).submit())?;
    let submit = || executable.submit_to(&queue).with(&stirrer.input, [3; 64]).submit();
    let next = again(submit)?;
    drop(later);
    let failed = [run.wait().is_err(), dependent.wait().is_err()].map(u32::from);
    Ok(vec![failed.to_vec(), result(&next, &stirrer.output, submit)?])
}

/// Two threads submit one executable to queues of their own.
fn several_threads() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let stirrer = Stirrer::new(&queue)?;
    let executable = stirrer.finalize(Finalize::new().result_slots(6))?;
    let queues = [queue.clone(), beside(&queue, OUT_OF_ORDER)?];
    let work = |queue: &Queue, by: u32| -> Result<Vec<u32>> {
        let mut all = Vec::new();
        for round in 0..3 {
            let submit = || executable.submit_to(queue).with(&stirrer.input, [by + round; 64]).submit();
            let run = again(submit)?;
            all.extend(result(&run, &stirrer.output, submit)?);
        }
        Ok(all)
    };
    std::thread::scope(|scope| {
        let threads = [(&queues[0], 10), (&queues[1], 20)].map(|(queue, by)| scope.spawn(move || work(queue, by)));
        // All of them end before an error is reported.
        let all = threads.map(|thread| thread.join().unwrap());
        all.into_iter().collect()
    })
}

/// Two executables of one graph and one of another, of which one waits for another.
fn several_executables() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let other = beside(&queue, PLAIN)?;
    let (first, second) = (Stirrer::new(&queue)?, Stirrer::new(&queue)?);
    let (one, two) = (first.finalize(Finalize::new().path(Path::Native))?, first.finalize(Finalize::new())?);
    let three = second.finalize(Finalize::new().path(Path::Replay))?;
    let before = again(|| one.submit(&queue))?;
    let last = again(|| three.submit_to(&other).after(&before).submit())?;
    // `two` uses the buffer of `one`, so it is explicitly ordered after it.
    let after = || two.submit_to(&other).after_all([&before, &last]).with(&first.input, [5; 64]).submit();
    let between = again(after)?;
    let between = result(&between, &first.output, || two.submit_to(&other).with(&first.input, [5; 64]).submit())?;
    let (before, last) = (
        result(&before, &first.output, || one.submit(&queue))?,
        result(&last, &second.output, || three.submit(&other))?,
    );
    Ok(vec![before, between, last])
}

/// All result slots are held, and then one is released.
pub fn results_held() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let stirrer = Stirrer::new(&queue)?;
    let executable = stirrer.finalize(Finalize::new().result_slots(2))?;
    let submit = || executable.submit(&queue);
    let (first, second) = (again(submit)?, again(submit)?);
    again(|| first.wait())?;
    again(|| second.wait())?;
    let held = (again(|| first.get(&stirrer.output))?, again(|| second.get(&stirrer.output))?);
    let refused = executable.submit(&queue).is_err();
    drop(held.0);
    drop(first);
    let third = again(|| executable.submit_to(&queue).with(&stirrer.input, [9; 64]).submit())?;
    again(|| third.wait())?;
    let third = again(|| Ok(third.get(&stirrer.output)?.to_vec()))?;
    Ok(vec![vec![u32::from(refused)], held.1.to_vec(), third])
}

/// Command buffers with a segment between them that they cannot hold.
fn mixed_paths(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let stir = again(|| program.kernel("stir"))?;
    let a = again(|| Buffer::<u32>::new(&queue, 64))?;
    let b = again(|| Buffer::<u32>::new(&queue, 64))?;
    let graph = Graph::new(&queue)?;
    graph.fill(&a, 1).add()?;
    let mut reads = Vec::new();
    for _ in 0..3 {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&stir).read_write(&a).range(64).add() }?;
        graph.copy(&a, &b).add()?;
        reads.push(graph.read(&b).add()?);
    }
    let executable = again(|| graph.finalize(Finalize::new().path(path)))?;
    let submit = || executable.submit(&queue);
    let run = again(submit)?;
    reads.iter().map(|read| result(&run, read, submit)).collect()
}

/// Many command buffers one after another, also on a queue with other properties.
fn small_command_buffers(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let timed = beside(&queue, PLAIN.profiling(true))?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let stir = again(|| program.kernel("stir"))?;
    let a = again(|| Buffer::<u32>::new(&queue, 64))?;
    let graph = Graph::new(&queue)?;
    graph.fill(&a, 1).add()?;
    for _ in 0..9 {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&stir).read_write(&a).range(64).add() }?;
    }
    let read = graph.read(&a).add()?;
    let executable = again(|| graph.finalize(Finalize::new().path(path).commands_per_buffer(2)))?;
    let submits = [&queue, &timed].map(|queue| {
        let executable = &executable;
        move || executable.submit(queue)
    });
    let runs = [again(submits[0])?, again(submits[1])?];
    runs.iter().zip(submits).map(|(run, submit)| result(run, &read, submit)).collect()
}

/// So many commands that they may be enqueued after a closed gate.
fn after_a_gate(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let a = again(|| Buffer::<u32>::from_slice(&queue, &[0; 64]))?;
    let graph = Graph::new(&queue)?;
    for index in 0..300 {
        let at = index as usize % 60;
        graph.fill(&a.slice(at..at + 4)?, index).add()?;
    }
    let read = graph.read(&a).add()?;
    let executable = again(|| graph.finalize(Finalize::new().path(path)))?;
    let submit = || executable.submit(&queue);
    let runs = [again(submit)?, again(submit)?];
    runs.iter().map(|run| result(run, &read, submit)).collect()
}

/// An empty graph, after an event and after nothing.
fn nothing_to_do() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let executable = again(|| Graph::new(&queue)?.finalize(Finalize::new()))?;
    let later = again(|| Later::new(&queue, 0))?;
    let waits = again(|| executable.submit_to(&queue).after(&later.event).submit())?;
    let free = again(|| executable.submit(&queue))?;
    drop(later);
    for run in [waits, free] {
        once_more(|| run.wait(), || executable.submit(&queue)?.wait())?;
    }
    Ok(Vec::new())
}

/// A program that is built from the binary of another.
fn a_binary() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let binary = again(|| program.binary(queue.device()))?;
    // SAFETY: the driver has just given it.
    let program = again(|| unsafe { Program::from_binary(&queue, &binary) })?;
    let stir = again(|| program.kernel("stir"))?;
    let a = again(|| Buffer::<u32>::new(&queue, 64))?;
    let graph = Graph::new(&queue)?;
    graph.fill(&a, 2).add()?;
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&stir).read_write(&a).range(64).add() }?;
    let read = graph.read(&a).add()?;
    let executable = again(|| graph.finalize(Finalize::new()))?;
    let submit = || executable.submit(&queue);
    let run = again(submit)?;
    Ok(vec![result(&run, &read, submit)?])
}

/// Objects that plain OpenCL made, and work of plain OpenCL after a submission.
fn objects_of_opencl3() -> Result<Vec<Vec<u32>>> {
    use opencl3::{command_queue, context, kernel, memory, program};
    fn named<T>(call: &'static str, outcome: std::result::Result<T, opencl3::error_codes::ClError>) -> Result<T> {
        Ok(outcome.map_err(|error| DriverError::new(call, Status(error.0)))?)
    }
    let device = clgraph::best_device()?.to_opencl3();
    let context = named("clCreateContext", context::Context::from_device(&device))?;
    // SAFETY: both live. (opencl3's own constructor loses the queue when its query of the device fails.)
    let queue = unsafe { command_queue::create_command_queue(context.get(), device.id(), 0) };
    let queue = queue.map_err(|status| DriverError::new("clCreateCommandQueue", Status(status)))?;
    let queue = command_queue::CommandQueue::new(queue, 3);
    let mut program = named("clCreateProgramWithSource", program::Program::create_from_source(&context, SOURCE))?;
    named("clBuildProgram", program.build(&[device.id()], "-cl-kernel-arg-info"))?;
    let kernel = named("clCreateKernel", kernel::Kernel::create(&program, "stir"))?;
    // SAFETY: no host pointer.
    let buffer = unsafe { memory::Buffer::<u32>::create(&context, 0, 64, std::ptr::null_mut()) };
    let buffer = named("clCreateBuffer", buffer)?;

    let (mine, graph_queue) = (Context::from_opencl3(&context)?, Queue::from_opencl3(&queue)?);
    let stir = Kernel::from_opencl3(&mine, &kernel)?;
    let a = Buffer::from_opencl3(&mine, &buffer)?;
    let graph = Graph::with_properties(&mine, &Device::from_opencl3(&device)?, clgraph::GraphProperties::new())?;
    graph.fill(&a, 5_u32).add()?;
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&stir).read_write(&a).range(64).add() }?;
    let run = graph.finalize(Finalize::new())?.submit(&graph_queue)?;
    let event = run.event()?.to_opencl3()?;
    let mut seen = vec![0_u32; 64];
    // SAFETY: the destination is as long as the buffer, and the call blocks.
    named("clEnqueueReadBuffer", unsafe { queue.enqueue_read_buffer(&buffer, 1, 0, &mut seen, &[event.get()]) })?;
    let round = (a.to_opencl3()?, stir.to_opencl3()?, mine.to_opencl3()?, graph_queue.to_opencl3()?);
    drop(round);
    Ok(vec![seen])
}

/// Runs a future to its end.
fn block_on<F: IntoFuture>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future.into_future());
    loop {
        match future.as_mut().poll(&mut TaskContext::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Waiting for events of other work: querying, awaiting, flushing and finishing.
fn events_and_queues() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let other = beside(&queue, OUT_OF_ORDER)?;
    let stirrer = Stirrer::new(&queue)?;
    let executable = stirrer.finalize(Finalize::new().result_slots(6))?;
    let first = again(|| executable.submit(&queue))?;
    let event: Event = again(|| first.event())?;
    let second = again(|| executable.submit_to(&other).after(&event).with(&stirrer.input, [4; 64]).submit())?;
    again(|| queue.flush().map_err(Into::into))?;
    again(|| second.progress())?;
    let resubmit = || executable.submit_to(&other).with(&stirrer.input, [4; 64]).submit();
    once_more(|| block_on(second.clone()), || block_on(resubmit()?))?;
    again(|| other.finish())?;
    again(|| queue.finish())?;
    Ok(vec![
        result(&first, &stirrer.output, || executable.submit(&queue))?,
        result(&second, &stirrer.output, resubmit)?,
    ])
}

/// Commands for a queue that executes or records.
fn commands(queue: &Queue, a: &Buffer<u32>, b: &Buffer<u32>, stir: &Kernel) -> Result<PendingRead<u32>> {
    const BYTES: usize = 64 * 4;
    again(|| queue.enqueue_write_buffer(a, 0, &[3; 64], &[]))?;
    let owned = again(|| queue.enqueue_write_buffer_owned(b, 0, vec![4; 64], &[]))?;
    again(|| {
        let mut launch = ExecuteKernel::new(stir);
        launch.set_arg(a).set_global_work_size(64).set_wait_event(&owned);
        // SAFETY: each work-item touches its own element.
        unsafe { launch.enqueue_nd_range(queue) }
    })?;
    again(|| queue.detached().enqueue_fill_buffer(b, &[9], 0, 16, &[]))?;
    let copied = again(|| queue.enqueue_copy_buffer(a, b, 0, BYTES / 2, BYTES / 2, &[]))?;
    again(|| queue.enqueue_barrier_with_wait_list(&[&copied]))?;
    again(|| queue.enqueue_copy_buffer_rect(a, b, [0; 3], [0, 4, 0], [8, 2, 1], 16, 0, 16, 0, &[]))?;
    let marker = again(|| queue.enqueue_marker_with_wait_list(&[]))?;
    again(|| queue.enqueue_read_buffer_owned(b, 0, 64, &[&marker]))
}

/// A queue that executes.
fn executed() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let stir = again(|| program.kernel("stir"))?;
    let a = again(|| Buffer::<u32>::new(&queue, 64))?;
    let b = again(|| Buffer::<u32>::new(&queue, 64))?;
    let pending = commands(&queue, &a, &b, &stir)?;
    let owned = again(|| pending.wait())?;
    let mut borrowed = vec![0; 64];
    once_more(|| queue.enqueue_read_buffer(&b, 0, &mut borrowed, &[]).map(|_| ()), || queue.finish())?;
    again(|| queue.is_empty())?;
    Ok(vec![owned.clone(), if borrowed == vec![0; 64] { owned } else { borrowed }])
}

/// The same commands recorded: twice in a graph as sub-graphs, and alone.
fn recorded() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let stir = again(|| program.kernel("stir"))?;
    let a = again(|| Buffer::<u32>::new(&queue, 64))?;
    let b = again(|| Buffer::<u32>::new(&queue, 64))?;
    let graph = Graph::new(&queue)?;
    let read = graph.record(&queue, || commands(&queue, &a, &b, &stir))?.host_read()?;
    let child = again(|| graph.finalize(Finalize::new().path(Path::Native).result_slots(6)))?;
    let outer = Graph::new(&queue)?;
    let first = outer.sub_graph(&child).add()?;
    let second = outer.record(&queue, || child.submit(&queue))?.sub_graph();
    let parent = again(|| outer.finalize(Finalize::new().result_slots(6)))?;
    let (alone, inside) = (|| child.submit(&queue), || parent.submit(&queue));
    let (own, both) = (again(alone)?, again(inside)?);
    let mut results = vec![result(&own, &read, alone)?, result(&both, &first.read(&read)?, inside)?];
    if let Some(second) = second {
        results.push(result(&both, &second.read(&read)?, inside)?);
    }
    Ok(results)
}
