//! The programs whose calls are failed: each goes from the device to the results, and drops everything that it made.
//!
//! A use gives what it computed. Which errors it meets on the way is its own affair; where an error is what it expects, it
//! puts into its results that there was one.

use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context as TaskContext, Poll, Wake, Waker};

use clgraph::{
    Buffer, Context, Device, DriverError, Event, Executable, Finalize, Graph, HostRead, HostWrite, InContext, Kernel,
    Path, Program, Queue, QueueProperties, Result, Status,
};

/// Of `kernels-cl/tests.cl`, and no more: a program is compiled at each of thousands of places.
const SOURCE: &str = "
__kernel void scale(__global const uint *in, __global uint *out, uint by) {
    size_t i = get_global_id(0);
    out[i] = in[i] * 3u + by;
}
__kernel void stir(__global uint *a) {
    size_t i = get_global_id(0);
    a[i] = a[i] * 5u + (uint)i;
}";

/// A program, and what to call it.
pub struct Use {
    pub name: &'static str,
    pub run: fn() -> Result<Vec<Vec<u32>>>,
}

const PLAIN: QueueProperties = QueueProperties::new();
const OUT_OF_ORDER: QueueProperties = PLAIN.out_of_order(true);

pub const USES: [Use; 19] = [
    Use { name: "replay", run: || everything(Path::Replay, PLAIN, End::Wait) },
    Use { name: "native", run: || everything(Path::Native, PLAIN, End::Wait) },
    Use { name: "out of order", run: || everything(Path::Auto, OUT_OF_ORDER, End::Wait) },
    Use { name: "native, profiling", run: || everything(Path::Native, PLAIN.profiling(true), End::Wait) },
    Use { name: "deferred", run: || everything(Path::Replay, PLAIN, End::Defer) },
    Use { name: "deferred, out of order", run: || everything(Path::Native, OUT_OF_ORDER, End::Defer) },
    Use { name: "dropped", run: || everything(Path::Replay, PLAIN, End::Drop) },
    Use { name: "dropped, native", run: || everything(Path::Native, PLAIN, End::Drop) },
    Use { name: "failed dependency", run: failed_dependency },
    Use { name: "several threads", run: several_threads },
    Use { name: "several executables", run: several_executables },
    Use { name: "results held", run: results_held },
    Use { name: "mixed paths", run: mixed_paths },
    Use { name: "small command buffers", run: small_command_buffers },
    Use { name: "behind a gate", run: behind_a_gate },
    Use { name: "nothing to do", run: nothing_to_do },
    Use { name: "a binary", run: a_binary },
    Use { name: "objects of opencl3", run: objects_of_opencl3 },
    Use { name: "events and queues", run: events_and_queues },
];

/// How [`everything`] goes on when it has an executable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It submits, and waits.
    Wait,
    /// It submits behind an event that is complete only later.
    Defer,
    /// It submits and drops the executable while it may run, and is told of the end by a callback.
    Drop,
}

/// A user event that is set at last, whatever happens.
struct Later {
    event: opencl3::event::Event,
    status: i32,
}

impl Later {
    fn new(context: &impl InContext, status: i32) -> Result<Self> {
        let raw = opencl3::event::create_user_event(context.context().raw());
        let raw = raw.map_err(|status| DriverError::new("clCreateUserEvent", Status(status)))?;
        Ok(Self { event: opencl3::event::Event::new(raw), status })
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        opencl3::event::set_user_event_status(self.event.get(), self.status).unwrap();
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
        let stir = Program::from_source(queue, SOURCE)?.kernel("stir")?;
        let buffer = Buffer::<u32>::new(queue, 64)?;
        let graph = Graph::new(queue)?;
        let input = graph.write(&buffer, [1; 64]).add()?;
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&stir).read_write(&buffer).range(64).add() }?;
        let output = graph.read(&buffer).add()?;
        Ok(Self { graph, input, output })
    }

    fn finalize(&self, options: Finalize) -> Result<Executable> {
        self.graph.finalize(options)
    }
}

fn setup() -> Result<Queue> {
    Queue::new(&clgraph::best_device()?)
}

/// Every kind of node, several submissions, two queues.
fn everything(path: Path, properties: QueueProperties, end: End) -> Result<Vec<Vec<u32>>> {
    let first = setup()?;
    let queue = Queue::with_properties(&first, first.device(), properties)?;
    let program = Program::from_source(&queue, SOURCE)?;
    let (stir, scale) = (program.kernel("stir")?, program.kernel("scale")?);
    let (a, b) = (Buffer::<u32>::new(&queue, 256)?, Buffer::<u32>::from_slice(&queue, &[1; 256])?);
    let half = b.sub_buffer(128..)?;
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
    let executable = graph.finalize(Finalize::new().path(path))?;
    let later = if end == End::Defer { Some(Later::new(&queue, 0)?) } else { None };
    let submit = executable.submit_to(&queue);
    let submit = if let Some(later) = &later { submit.after(&later.event) } else { submit };
    let runs =
        [submit.submit()?, executable.submit_to(&queue).with(&input, [2; 256]).submit()?, executable.submit(&first)?];
    executable.submit_to(&queue).submit_detached()?;
    drop(later);
    if end == End::Drop {
        let (tell, told) = channel();
        runs[2].on_complete(move |outcome| tell.send(outcome).unwrap());
        drop((executable, graph));
        told.recv().unwrap()?;
    }
    let results = runs.iter().map(|run| {
        run.wait()?;
        Ok(run.get(&output)?.to_vec())
    });
    let results = results.collect();
    queue.finish()?;
    results
}

/// What waits for an event that fails does not run, nor what waits for that; what follows in order does.
fn failed_dependency() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let stirrer = Stirrer::new(&queue)?;
    let executable = stirrer.finalize(Finalize::new())?;
    let later = Later::new(&queue, -7)?;
    let run = executable.submit_to(&queue).after(&later.event).submit()?;
    let dependent = executable.submit_to(&queue).after(&run).submit()?;
    let next = executable.submit_to(&queue).with(&stirrer.input, [3; 64]).submit()?;
    drop(later);
    let failed = [run.wait().is_err(), dependent.wait().is_err()].map(u32::from);
    next.wait()?;
    Ok(vec![failed.to_vec(), next.get(&stirrer.output)?.to_vec()])
}

/// Two threads submit one executable to queues of their own.
fn several_threads() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let stirrer = Stirrer::new(&queue)?;
    let executable = stirrer.finalize(Finalize::new())?;
    let queues = [queue.clone(), Queue::with_properties(&queue, queue.device(), OUT_OF_ORDER)?];
    let work = |queue: &Queue, by: u32| -> Result<Vec<u32>> {
        let mut all = Vec::new();
        for round in 0..3 {
            let run = executable.submit_to(queue).with(&stirrer.input, [by + round; 64]).submit()?;
            run.wait()?;
            all.extend_from_slice(&run.get(&stirrer.output)?);
        }
        Ok(all)
    };
    std::thread::scope(|scope| {
        let threads = [(&queues[0], 10), (&queues[1], 20)].map(|(queue, by)| scope.spawn(move || work(queue, by)));
        // All of them end before any error is told.
        let all = threads.map(|thread| thread.join().unwrap());
        all.into_iter().collect()
    })
}

/// Two executables of one graph and one of another, of which one waits for another.
fn several_executables() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let other = Queue::with_properties(&queue, queue.device(), PLAIN)?;
    let (first, second) = (Stirrer::new(&queue)?, Stirrer::new(&queue)?);
    let (one, two) = (first.finalize(Finalize::new().path(Path::Native))?, first.finalize(Finalize::new())?);
    let three = second.finalize(Finalize::new().path(Path::Replay))?;
    let before = one.submit(&queue)?;
    let last = three.submit_to(&other).after(&before).submit()?;
    // `two` uses the buffer of `one`, so it is put behind it by hand.
    let between = two.submit_to(&other).after_all([&before, &last]).with(&first.input, [5; 64]).submit()?;
    between.wait()?;
    Ok(vec![
        before.get(&first.output)?.to_vec(),
        between.get(&first.output)?.to_vec(),
        last.get(&second.output)?.to_vec(),
    ])
}

/// All result slots are held, and then one is given back.
fn results_held() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let stirrer = Stirrer::new(&queue)?;
    let executable = stirrer.finalize(Finalize::new().result_slots(2))?;
    let (first, second) = (executable.submit(&queue)?, executable.submit(&queue)?);
    first.wait()?;
    second.wait()?;
    let held = (first.get(&stirrer.output)?, second.get(&stirrer.output)?);
    let refused = executable.submit(&queue).is_err();
    drop(held.0);
    drop(first);
    let third = executable.submit_to(&queue).with(&stirrer.input, [9; 64]).submit()?;
    third.wait()?;
    Ok(vec![vec![u32::from(refused)], held.1.to_vec(), third.get(&stirrer.output)?.to_vec()])
}

/// Command buffers with a part between them that they cannot hold.
fn mixed_paths() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let program = Program::from_source(&queue, SOURCE)?;
    let stir = program.kernel("stir")?;
    let (a, b) = (Buffer::<u32>::from_slice(&queue, &[1; 64])?, Buffer::<u32>::new(&queue, 64)?);
    let graph = Graph::new(&queue)?;
    let mut reads = Vec::new();
    for _ in 0..3 {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&stir).read_write(&a).range(64).add() }?;
        graph.copy(&a, &b).add()?;
        reads.push(graph.read(&b).add()?);
    }
    let executable = graph.finalize(Finalize::new().path(Path::Native))?;
    let run = executable.submit(&queue)?;
    run.wait()?;
    reads.iter().map(|read| Ok(run.get(read)?.to_vec())).collect()
}

/// Many command buffers behind each other, on a second kind of queue too.
fn small_command_buffers() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let timed = Queue::with_properties(&queue, queue.device(), PLAIN.profiling(true))?;
    let stir = Program::from_source(&queue, SOURCE)?.kernel("stir")?;
    let a = Buffer::<u32>::from_slice(&queue, &[1; 64])?;
    let graph = Graph::new(&queue)?;
    for _ in 0..9 {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&stir).read_write(&a).range(64).add() }?;
    }
    let read = graph.read(&a).add()?;
    let executable = graph.finalize(Finalize::new().path(Path::Native).commands_per_buffer(2))?;
    let runs = [executable.submit(&queue)?, executable.submit(&timed)?];
    runs[1].wait()?;
    runs.iter().map(|run| Ok(run.get(&read)?.to_vec())).collect()
}

/// So many commands that a driver may be given them behind a closed gate.
fn behind_a_gate() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let a = Buffer::<u32>::from_slice(&queue, &[0; 64])?;
    let graph = Graph::new(&queue)?;
    for index in 0..300 {
        let at = index as usize % 60;
        graph.fill(&a.slice(at..at + 4)?, index).add()?;
    }
    let read = graph.read(&a).add()?;
    let executable = graph.finalize(Finalize::new())?;
    let runs = [executable.submit(&queue)?, executable.submit(&queue)?];
    runs[1].wait()?;
    runs.iter().map(|run| Ok(run.get(&read)?.to_vec())).collect()
}

/// An empty graph, behind an event and behind nothing.
fn nothing_to_do() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let executable = Graph::new(&queue)?.finalize(Finalize::new())?;
    let later = Later::new(&queue, 0)?;
    let (behind, free) = (executable.submit_to(&queue).after(&later.event).submit()?, executable.submit(&queue)?);
    drop(later);
    behind.wait()?;
    free.wait()?;
    Ok(Vec::new())
}

/// A program that is built from what another one was compiled to.
fn a_binary() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let binary = Program::from_source(&queue, SOURCE)?.binary(queue.device())?;
    let program = Program::from_binary(&queue, &binary)?;
    let a = Buffer::<u32>::from_slice(&queue, &[2; 64])?;
    let graph = Graph::new(&queue)?;
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&program.kernel("stir")?).read_write(&a).range(64).add() }?;
    let read = graph.read(&a).add()?;
    let run = graph.finalize(Finalize::new())?.submit(&queue)?;
    run.wait()?;
    Ok(vec![run.get(&read)?.to_vec()])
}

/// Objects that plain OpenCL made, and work of plain OpenCL behind a submission.
fn objects_of_opencl3() -> Result<Vec<Vec<u32>>> {
    use opencl3::{command_queue, context, kernel, memory, program};
    fn told<T>(call: &'static str, outcome: std::result::Result<T, opencl3::error_codes::ClError>) -> Result<T> {
        Ok(outcome.map_err(|error| DriverError::new(call, Status(error.0)))?)
    }
    let device = clgraph::best_device()?.to_opencl3();
    let context = told("clCreateContext", context::Context::from_device(&device))?;
    // SAFETY: both live. (opencl3's own constructor loses the queue when its query of the device fails.)
    let queue = unsafe { command_queue::create_command_queue(context.get(), device.id(), 0) };
    let queue = queue.map_err(|status| DriverError::new("clCreateCommandQueue", Status(status)))?;
    let queue = command_queue::CommandQueue::new(queue, 3);
    let mut program = told("clCreateProgramWithSource", program::Program::create_from_source(&context, SOURCE))?;
    told("clBuildProgram", program.build(&[device.id()], "-cl-kernel-arg-info"))?;
    let kernel = told("clCreateKernel", kernel::Kernel::create(&program, "stir"))?;
    // SAFETY: no host pointer.
    let buffer = unsafe { memory::Buffer::<u32>::create(&context, 0, 64, std::ptr::null_mut()) };
    let buffer = told("clCreateBuffer", buffer)?;

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
    told("clEnqueueReadBuffer", unsafe { queue.enqueue_read_buffer(&buffer, 1, 0, &mut seen, &[event.get()]) })?;
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

/// Waiting for events of other work, asking, being awaited, flushing and finishing.
fn events_and_queues() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let other = Queue::with_properties(&queue, queue.device(), OUT_OF_ORDER)?;
    let stirrer = Stirrer::new(&queue)?;
    let executable = stirrer.finalize(Finalize::new())?;
    let first = executable.submit(&queue)?;
    let event: Event = first.event()?;
    let second = executable.submit_to(&other).after(&event).with(&stirrer.input, [4; 64]).submit()?;
    queue.flush()?;
    let _ = second.progress()?;
    block_on(second.clone())?;
    other.finish()?;
    queue.finish()?;
    Ok(vec![first.get(&stirrer.output)?.to_vec(), second.get(&stirrer.output)?.to_vec()])
}
