//! The instructions that clgraph itself executes, for `./ci/instructions` to count. It prints a name before each piece
//! of work that it does within [`counted`]. With `OPENCL_LAYERS` it does only what needs the layer of `tests/layer`.

use std::error::Error;
use std::ffi::c_void;
use std::hint::black_box;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

use clgraph::opencl3::types::{cl_command_queue, cl_event, cl_kernel};
use clgraph::{
    Buffer, Executable, Finalize, Fuse, FusingState, Graph, Kernel, Loops, Memory, Node, Parameter, Path, Program,
    ProgramBuilder, Queue, Report, TuningState,
};

type Failure = Box<dyn Error>;

const SOURCE: &str = "
    kernel void nothing(void) {}
    kernel void scale(global const uint *from, global uint *into, uint by) { into[0] = from[0] * by; }
    kernel void add(global uint *dest, global const uint *src) { dest[get_global_id(0)] += src[get_global_id(0)]; }";

/// Only the instructions of this function are counted.
#[inline(never)]
fn counted<T>(name: &str, work: impl FnOnce() -> clgraph::Result<T>) -> Result<T, Failure> {
    println!("{name}");
    Ok(collected(work)?)
}

#[inline(never)]
fn collected<T>(work: impl FnOnce() -> clgraph::Result<T>) -> clgraph::Result<T> {
    black_box(work())
}

struct Made {
    graph: Graph,
    /// The kernels that count, and those that scale.
    adding: Vec<Node>,
    scaling: Vec<Node>,
    number: Parameter<u32>,
    memory: [Parameter<Buffer<u32>>; 2],
}

struct Setting {
    queue: Queue,
    nothing: Kernel,
    scale: Kernel,
    add: Kernel,
    buffers: [Buffer<u32>; 4],
}

impl Setting {
    fn new() -> Result<Self, Failure> {
        let queue = Queue::new(&clgraph::best_device()?)?;
        let program = Program::from_source(&queue, SOURCE)?;
        let buffer = || Buffer::new(&queue, 64);
        Ok(Self {
            nothing: program.kernel("nothing")?,
            scale: program.kernel("scale")?,
            add: program.kernel("add")?,
            buffers: [buffer()?, buffer()?, buffer()?, buffer()?],
            queue,
        })
    }

    /// Kernels with two buffers and a number, in chains.
    fn chains(&self, len: usize, chains: usize) -> clgraph::Result<Graph> {
        let graph = Graph::new(&self.queue)?;
        for at in 0..len {
            let (from, into) = (&self.buffers[2 * (at % chains)], &self.buffers[2 * (at % chains) + 1]);
            // SAFETY: its one work-item touches the first elements.
            unsafe { graph.kernel(&self.scale).read(from).read_write(into).arg(at as u32).range(1).add()? };
        }
        Ok(graph)
    }

    fn record(&self, len: usize) -> clgraph::Result<Graph> {
        let graph = Graph::new(&self.queue)?;
        graph.record(&self.queue, || {
            let mut launch = clgraph::ExecuteKernel::new(&self.scale);
            for at in 0..len {
                launch
                    .set_arg(&self.buffers[0])
                    .set_arg(&self.buffers[1])
                    .set_arg(&(at as u32))
                    .set_global_work_size(1);
                // SAFETY: as above.
                unsafe { launch.enqueue_nd_range(&self.queue)? };
            }
            Ok(())
        })?;
        Ok(graph)
    }

    /// Kernels `dest += src`, of which everything is a parameter, as one chain, or by turns with a chain that has a
    /// number.
    fn parameters(&self, len: usize, chains: usize) -> Result<Made, Failure> {
        let graph = Graph::new(&self.queue)?;
        let memory = [0, 1].map(|at| Parameter::buffer(&self.buffers[at]));
        let number = Parameter::any(1);
        let (mut adding, mut scaling) = (Vec::new(), Vec::new());
        for at in 0..len {
            if at % chains == 0 {
                let [dest, src] = &memory;
                let node = graph.kernel(&self.add).read_write(dest).read(src).range(64).range_up_to(64);
                // SAFETY: a work-item touches its own elements.
                adding.push(unsafe { node.add()? });
            } else {
                let [.., other, last] = &self.buffers;
                let node = graph.kernel(&self.scale).read(other).read_write(last).arg(&number).range(1);
                // SAFETY: its one work-item touches the first elements.
                scaling.push(unsafe { node.add()? });
            }
        }
        Ok(Made { graph, adding, scaling, number, memory })
    }
}

fn main() -> Result<(), Failure> {
    let setting = Setting::new()?;
    if let Ok(layer) = std::env::var("OPENCL_LAYERS") {
        return not_faster(&setting, &layer);
    }
    let replay = || Finalize::new().path(Path::Replay);
    for len in [1_000, 10_000] {
        let graph = counted(&format!("build, {len} nodes"), || setting.chains(len, 1))?;
        let executable = counted(&format!("finalize, {len} nodes"), || graph.finalize(replay()))?;
        counted(&format!("drop, {len} nodes"), move || {
            drop((graph, executable));
            Ok(())
        })?;
    }
    let graph = counted("record, 1000 nodes", || setting.record(1_000))?;
    counted("finalize what was recorded, 1000 nodes", || graph.finalize(replay()))?;
    let wide = setting.chains(1_000, 2)?;
    counted("finalize two chains, 1000 nodes", || wide.finalize(replay()))?;
    // Empty kernels, because valgrind does not know all instructions that a driver may use in others.
    let empty = Graph::new(&setting.queue)?;
    for _ in 0..1_000 {
        // SAFETY: it does nothing.
        unsafe { empty.kernel(&setting.nothing).range(1).add()? };
    }
    let executable = empty.finalize(replay())?;
    executable.submit(&setting.queue)?.wait()?;
    let run = counted("submit, 1000 nodes", || executable.submit(&setting.queue))?;
    run.wait()?;
    ended(&setting)?;
    let one = Graph::new(&setting.queue)?;
    // SAFETY: it does nothing.
    unsafe { one.kernel(&setting.nothing).range(1).add()? };
    let executable = one.finalize(replay())?;
    for _ in 0..2 {
        executable.submit(&setting.queue)?.wait()?;
    }
    let run = counted("submit, 1 node", || executable.submit(&setting.queue))?;
    counted("wait", || run.wait())?;

    for (name, chains) in [("one chain", 1), ("two chains", 2)] {
        let made = setting.parameters(1_000, chains)?;
        let executable = made.graph.finalize(replay().updatable())?;
        // The first update looks at the whole graph, and gives each launch its own kernel object.
        change_memory(&setting, &made, &executable, 0)?;
        let count = made.adding.len();
        counted(&format!("update memory and range, {name}, {count} nodes"), || {
            change_memory(&setting, &made, &executable, 1)
        })?;
        if !made.scaling.is_empty() {
            made.number.set(2)?;
            executable.update(&made.scaling)?;
            // Another order is another list. A list that has come twice has an update plan.
            let mut list = made.scaling.clone();
            list.rotate_left(1);
            let one = made.scaling[0];
            let mut value = 2;
            let mut update = |name: Option<String>, nodes: &[Node]| {
                value += 1;
                made.number.set(value)?;
                let work = || executable.update(nodes);
                match name {
                    Some(name) => counted(&name, work),
                    None => Ok(work()?),
                }
            };
            for nodes in [&list[..], &[one]] {
                let count = if nodes.len() == 1 { "1 node".to_owned() } else { format!("{} nodes", nodes.len()) };
                update(Some(format!("update a number, {count}")), nodes)?;
                update(None, nodes)?;
                update(Some(format!("update a number again, {count}")), nodes)?;
            }
            // Values of another graph are compared node by node, and so are those of the next updates.
            executable.update_from(&setting.parameters(1_000, chains)?.graph)?;
            (0..2).try_for_each(|_| update(None, &list).map(drop))?;
            update(Some(format!("update a number again, after another graph's, {} nodes", list.len())), &list)?;
        }
    }
    // Kernel objects of fused launches are set only when a submission needs them.
    let made = setting.parameters(1_000, 2)?;
    let executable = made.graph.finalize(replay().updatable().fuse(Fuse::Now))?;
    change_memory(&setting, &made, &executable, 0)?;
    let count = made.adding.len();
    counted(&format!("update memory and range, two chains, fused, {count} nodes"), || {
        change_memory(&setting, &made, &executable, 1)
    })?;
    for value in 2..4 {
        made.number.set(value)?;
        let work = || executable.update(&made.scaling);
        if value == 2 { work()? } else { counted(&format!("update a number, fused, {count} nodes"), work)? }
    }
    assert_eq!(executable.report().fusing, FusingState::Taken);
    shared_memory(&setting, 1_000)?;
    turns(&setting, 100)
}

/// Once it is known that an executable is not to be fused, it costs what one costs that was never to be. Kernels that are built with the
/// option below never are.
fn ended(setting: &Setting) -> Result<(), Failure> {
    let program = ProgramBuilder::new(&setting.queue).options("-cl-fast-relaxed-math").source(SOURCE)?;
    let graph = ten(setting, &program.kernel("nothing")?)?;
    submit_settled(setting, "never to be fused", &graph, Fuse::Off, FusingState::Off)?;
    submit_settled(setting, "not fused in the end", &graph, Fuse::Auto, FusingState::Nothing)
}

/// The same if fusing makes it no faster. `layer` is that of `tests/layer`, and is between the loader and the driver: it makes fused kernels slow.
fn not_faster(setting: &Setting, layer: &str) -> Result<(), Failure> {
    let library = dlopen2::raw::Library::open(layer)?;
    // SAFETY: the layer's signature of this name.
    let slows_fused: extern "C" fn(bool) = unsafe { library.symbol("layer_slows_fused")? };
    slows_fused(true);
    submit_settled(
        setting,
        "not faster when fused",
        &ten(setting, &setting.nothing)?,
        Fuse::Auto,
        FusingState::NotFaster,
    )
}

fn ten(setting: &Setting, nothing: &Kernel) -> clgraph::Result<Graph> {
    let graph = Graph::new(&setting.queue)?;
    for _ in 0..10 {
        // SAFETY: it does nothing.
        unsafe { graph.kernel(nothing).range(1).after_all_leaves().add()? };
    }
    Ok(graph)
}

/// Counts one submission of an executable that has settled on replay.
fn submit_settled(setting: &Setting, name: &str, graph: &Graph, fuse: Fuse, ends: FusingState) -> Result<(), Failure> {
    let begun = Instant::now();
    let is_settled = |report: &Report| report.fusing == ends && report.tuning.state != TuningState::Trying;
    // The autotuner may find another way, which costs something else.
    let executable = loop {
        let executable = graph.finalize(Finalize::new().path(Path::Auto).fuse(fuse).fuse_after(Duration::ZERO))?;
        let report = loop {
            let report = executable.report();
            if is_settled(&report) {
                break report;
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("{name}: it does not come to that: {report}").into());
            }
            executable.submit(&setting.queue)?.wait()?;
        };
        if report.tuning.strategies.iter().any(|of| of.taken && of.path == Path::Replay) {
            break executable;
        }
    };
    let run = counted(&format!("submit, 10 nodes, {name}"), || executable.submit(&setting.queue))?;
    Ok(run.wait()?)
}

/// How long it may take until it is known whether an executable is to be fused: valgrind is slow.
const PATIENCE: Duration = Duration::from_secs(300);

type Launch = unsafe extern "system" fn(
    cl_command_queue,
    cl_kernel,
    u32,
    *const usize,
    *const usize,
    *const usize,
    u32,
    *const cl_event,
    *mut cl_event,
) -> i32;
type Read = unsafe extern "system" fn(
    cl_command_queue,
    *mut c_void,
    u32,
    usize,
    usize,
    *mut c_void,
    u32,
    *const cl_event,
    *mut cl_event,
) -> i32;

/// A loop by hand of one kernel and a read of the number, and one that clgraph's thread decides. Its number never becomes zero, because
/// valgrind does not know all instructions of kernels.
fn turns(setting: &Setting, turns: u64) -> Result<(), Failure> {
    let queue = &setting.queue;
    let on = Buffer::from_slice(queue, &[1_u32])?;
    let library = dlopen2::raw::Library::open("libOpenCL.so.1")?;
    // SAFETY: the headers' signatures of these names.
    let (launch, read) = unsafe {
        (library.symbol::<Launch>("clEnqueueNDRangeKernel")?, library.symbol::<Read>("clEnqueueReadBuffer")?)
    };
    let kernel = setting.nothing.to_opencl3()?;
    let (queue_of_cl, kernel, memory) = (queue.raw(), kernel.get(), on.raw());
    counted(&format!("{turns} turns by hand"), || {
        let (mut number, mut turn) = (1_u32, 0);
        while number != 0 && turn < turns {
            let (one, into) = (1_usize, (&raw mut number).cast());
            // SAFETY: live objects, one dimension, no lists, and the call returns when the number is there.
            let done = unsafe {
                [
                    launch(queue_of_cl, kernel, 1, null(), &raw const one, null(), 0, null(), null_mut()),
                    read(queue_of_cl, memory, 1, 0, size_of::<u32>(), into, 0, null(), null_mut()),
                ]
            };
            assert_eq!(done, [0; 2]);
            turn += 1;
        }
        Ok(())
    })?;
    let body = Graph::new(queue)?;
    // SAFETY: it does nothing.
    unsafe { body.kernel(&setting.nothing).range(1).add()? };
    let body = body.finalize(Finalize::new().path(Path::Replay))?;
    let graph = Graph::new(queue)?;
    graph.repeat_while(&on, &body).at_most(turns).add()?;
    let executable = graph.finalize(Finalize::new().path(Path::Replay).loops(Loops::HostDecided))?;
    // It ends by its bound.
    let run = || executable.submit(queue)?.wait().map_or_else(|_| Ok(()), Ok);
    run()?;
    counted(&format!("submit and wait, {turns} turns that the host decides"), run)
}

/// One of many nodes, each of which has its own memory that the host can use too.
fn shared_memory(setting: &Setting, len: usize) -> Result<(), Failure> {
    let graph = Graph::new(&setting.queue)?;
    let memory = || Memory::<u32>::host_accessible(&setting.queue, 64);
    let others = [memory()?, memory()?];
    let changing = Parameter::memory(&others[0]);
    for _ in 0..len {
        let launch = graph.kernel(&setting.scale).read(&memory()?).read_write(&memory()?).arg(1_u32).range(1);
        // SAFETY: its one work-item touches the first elements.
        unsafe { launch.add()? };
    }
    let launch = graph.kernel(&setting.scale).read(&changing).read_write(&memory()?).arg(1_u32).range(1);
    // SAFETY: as above.
    let node = unsafe { launch.add()? };
    let executable = graph.finalize(Finalize::new().path(Path::Replay).updatable())?;
    for turn in [1, 0] {
        changing.set(&others[turn])?;
        executable.update(&node)?;
    }
    changing.set(&others[1])?;
    counted(&format!("update memory of the host, 1 of {len} nodes"), || executable.update(&node))
}

fn change_memory(setting: &Setting, made: &Made, executable: &Executable, turn: usize) -> clgraph::Result<()> {
    let [dest, src] = &made.memory;
    dest.set(&setting.buffers[1 - turn])?;
    src.set(&setting.buffers[turn])?;
    for node in &made.adding {
        made.graph.set_nd_range(*node, [64, 32][turn])?;
    }
    executable.update(&made.adding)
}
