//! What is measured, and the variants of each scenario.

use std::time::Duration;

use clap::ValueEnum;
use clgraph::{
    Buffer, CommandKind, Device, Executable, ExecuteKernel, Finalize, Graph, Kernel, Path, Program, Queue,
    QueueProperties,
};

use crate::Failure;
use crate::changes::What;
use crate::children;
use crate::control;
use crate::cuda;
use crate::fused;
use crate::globals;
use crate::host_tasks;
use crate::loads;
use crate::mutate;
use crate::packing::patterns;
use crate::profiles;
use crate::raw::{self, CommandBuffer, Kernels};
use crate::results::Results;
use crate::roads::Roads;
use crate::rounds::{Effort, Times, Variant, interleave, timed};
use crate::settling;
use crate::submissions::{PATHS, is_trying, submission};
use crate::updates::Chain;

const NOTHING: &str = include_str!("../../kernels-cl/nothing.cl");
const SOURCE: &str = concat!(include_str!("../../kernels-cl/tests.cl"), include_str!("../../kernels-cl/nothing.cl"));

/// A single command buffer of more commands is not recorded, because some drivers need time that grows with the square
/// of that.
const LARGEST_BUFFER: usize = 20_000;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// Submit a chain of empty kernels of one work-item, and wait
    Submit,
    /// Build a graph and finalize it: 26 nodes with 8 joins, 100 independent ones, and chains of the other sizes
    Finalize,
    /// Drop graph and executable
    Drop,
    /// Change memory and range of some kernels `dest += src` of a chain, submit it, and wait
    Mutate,
    /// Launch empty kernels of one work-item on a queue that executes, and wait
    Execute,
    /// The same with an event each
    ExecuteEvents,
    /// The same with three arguments that change each time, and an event each
    ExecuteArguments,
    /// Submit a chain of empty kernels, added one by one (`loop`) or as ten sub-graphs, and wait
    SubGraphs,
    /// Record a chain of kernels: by building (`loop`), and by recording
    Record,
    /// Update one number of one node of a chain, a thousand times
    UpdateOne,
    /// Update one number of each node of a chain, and of some of 500
    UpdateMany,
    /// Submit a chain of kernels that count in one place, and wait: by a hand-written loop, with an argument for it,
    /// and with a device global by every access that the device has
    Globals,
    /// Launches of a kernel and then a call of a function, some times: by a loop that waits and calls, and as host
    /// tasks
    HostTasks,
    /// A loop that a number in memory ends: turns of some kernels, of one work-item or of about 100 us, by a loop by hand
    /// that reads the number before each turn; by enqueuing as many turns without reading it; and as a graph, which finds the faster
    /// way, or has it given: the host decides each turn, turns are enqueued ahead, or a fused kernel does them
    Loop,
    /// Chains of small kernels with buffers and numbers of their own: by a loop by hand, by a fused kernel by hand, and as a
    /// graph, fused and not
    Fused,
    /// From the first submission of a chain until it is known whether fusing pays: all submissions (`loop`), the build in
    /// the background, and what the trial took
    Settling,
    /// A copy, and so many times the sine of 65 536 numbers from buffer to buffer
    Sine,
    /// A hundred kernels of 100 us one after another
    Large,
    /// Independent chains of 16 kernels of 100 us: by one queue by hand (`loop`), by several, and as a graph
    Wide,
    /// 16 frames of 1 MiB: new input, a number that changes, and the output, one or three at a time
    Frames,
    /// Four threads, each with a queue and ten submissions of a chain of empty kernels
    Threads,
    /// 95 layers of 59 kernels that count, one after another; and chains of 59 different kernels, fused by hand too
    Decoder,
    /// From the start of a process to its first result
    Cold,
    /// All of the life of a chain of kernels with arguments of their own, in a process each: made, submitted once,
    /// waited for and dropped; and the memory that it takes
    Life,
    /// A chain of empty kernels, and when each of them ran: by events by hand (`loop`), and by an executable with
    /// profiling; and a loop that learns nothing
    Profiled,
    /// Finalize graphs that own memory: without sharing it (`loop`), and packed
    Packing,
}

/// A shape of graph, of kernels of two buffers and a number.
#[derive(Clone, Copy)]
enum Shape {
    /// Each waits for the one before.
    Chain(usize),
    /// 26 nodes: eight times a fork of two and a join, between a first and a last.
    Joins,
    /// None waits for another.
    Independent(usize),
}

impl Shape {
    fn len(self) -> usize {
        match self {
            Self::Chain(len) | Self::Independent(len) => len,
            Self::Joins => 26,
        }
    }
}

/// What the variants share.
struct Setting {
    queue: Queue,
    nothing: Kernel,
    scale: Kernel,
    buffers: [Buffer<u32>; 2],
    records: bool,
    properties: QueueProperties,
}

impl Scenario {
    pub fn all() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied()
    }

    pub fn run(self, device: &Device, driver: &str, effort: Effort, results: &mut Results) -> Result<(), Failure> {
        let setting = Setting::new(device, QueueProperties::new())?;
        let largest = if effort == Effort::Quick { 1_000 } else { usize::MAX };
        let few = if effort == Effort::Quick { Effort::Quick } else { Effort::Few };
        match self {
            Self::Submit => {
                for n in [1, 4, 10, 32, 100, 256, 929, 5_605, 20_000].into_iter().filter(|n| *n <= largest) {
                    let mut measured = interleave(setting.submit(n)?, effort, n)?;
                    let cuda = cuda::chain(&setting.queue, NOTHING, c"nothing", 0, n)?;
                    // Not by turns with the others: a GPU needs time to change from OpenCL's context to CUDA's.
                    measured.extend(interleave(cuda, effort, n)?);
                    results.add(driver, "submit", n, measured);
                }
                let (out_of_order, profiling) = (device.caps().out_of_order, device.caps().profiling);
                let kinds = [
                    ("out-of-order", out_of_order, QueueProperties::new().out_of_order(true)),
                    ("profiling", profiling, QueueProperties::new().profiling(true)),
                ];
                for (kind, _, properties) in kinds.into_iter().filter(|(_, is_there, _)| *is_there) {
                    let setting = Setting::new(device, properties)?;
                    for n in [1, 10, 100, 929].into_iter().filter(|n| *n <= largest) {
                        results.add_on(kind, driver, "submit", n, interleave(setting.submit(n)?, effort, n)?);
                    }
                }
            }
            Self::Finalize => {
                let chains = [929, 10_000, 100_000].map(Shape::Chain);
                let shapes = [Shape::Joins, Shape::Independent(100)].into_iter().chain(chains);
                for shape in shapes.filter(|shape| shape.len() <= largest) {
                    let variants = setting.finalize(shape, false);
                    results.add(driver, "finalize", shape.len(), interleave(variants, effort, shape.len())?);
                }
            }
            Self::Execute | Self::ExecuteEvents | Self::ExecuteArguments => {
                let (name, variants) = match self {
                    Self::Execute => ("execute", setting.execute(1_000, false)?),
                    Self::ExecuteEvents => ("execute with events", setting.execute(1_000, true)?),
                    _ => ("execute with arguments", setting.execute_with_arguments(1_000)?),
                };
                results.add(driver, name, 1_000, interleave(variants, effort, 1_000)?);
            }
            Self::SubGraphs => {
                for n in [100, 1_000] {
                    results.add(driver, "sub-graphs", n, interleave(setting.sub_graphs(n)?, effort, n)?);
                }
            }
            Self::Record => {
                for n in [929, 10_000].into_iter().filter(|n| *n <= largest) {
                    results.add(driver, "record", n, interleave(setting.record(n), effort, n)?);
                }
            }
            Self::UpdateOne => {
                for n in [100, 1_000, 10_000].into_iter().filter(|n| *n <= largest) {
                    let chain = setting.chain(n);
                    results.add(driver, "update one (1000 x)", n, interleave(chain.variants(What::One)?, effort, n)?);
                }
            }
            Self::UpdateMany => {
                for n in [100, 1_000, 10_000].into_iter().filter(|n| *n <= largest) {
                    let chain = setting.chain(n);
                    results.add(driver, "update all", n, interleave(chain.variants(What::Some(n))?, effort, n)?);
                }
                let chain = setting.chain(500);
                for (name, count) in [
                    ("update 1 % of 500", 5),
                    ("update 5 % of 500", 25),
                    ("update 10 % of 500", 50),
                    ("update 100 % of 500", 500),
                ] {
                    let variants = interleave(chain.variants(What::Some(count))?, effort, count)?;
                    results.add(driver, name, count, variants);
                }
            }
            Self::Mutate => {
                for (name, every) in [("mutate each", 1), ("mutate each fifth", 5), ("mutate each tenth", 10)] {
                    for n in [100, 200, 500] {
                        let variants = mutate::variants(&setting.queue, n, every)?;
                        results.add(driver, name, n, interleave(variants, effort, n)?);
                    }
                }
            }
            Self::Globals => {
                for n in [100, 1_000] {
                    results.add(driver, "globals", n, interleave(globals::variants(&setting.queue, n)?, effort, n)?);
                }
            }
            Self::Loop => {
                const SMALL: u32 = 0;
                const LONG: u32 = 75_000;
                for (name, turns, items, rounds) in [
                    ("10 turns of small kernels", 10, 1, SMALL),
                    ("1000 turns of small kernels", 1000, 1, SMALL),
                    ("1000 turns of kernels of 64 items", 1000, 64, SMALL),
                    ("10 turns of kernels of 100 us", 10, 1, LONG),
                    ("1000 turns of kernels of 100 us", 1000, 1, LONG),
                ] {
                    for width in [1, 4, 16].into_iter().filter(|_| effort == Effort::Full || turns == 10) {
                        let variants = control::variants(&setting.queue, turns, (width, items), rounds)?;
                        results.add(driver, name, width, interleave(variants, effort, width)?);
                    }
                }
                let roads = Roads::new(&setting.queue)?;
                let n = roads.crossings();
                results.add(driver, "breadth-first search", n, interleave(roads.search(&setting.queue)?, effort, n)?);
                results.add(driver, "page rank", n, interleave(roads.rank(&setting.queue)?, effort, n)?);
            }
            Self::Fused => {
                for body in fused::BODIES {
                    chains(&setting.queue, body, (driver, effort), results)?;
                }
            }
            Self::Settling => {
                for (name, rows) in settling::measured(&setting.queue, effort)? {
                    results.add(driver, name, settling::LAUNCHES, rows);
                }
            }
            Self::HostTasks => {
                for (name, tasks, width) in [
                    ("one host task", 1, 1),
                    ("host tasks of 1", 95, 1),
                    ("host tasks of 59", 10, 59),
                    ("host tasks of 59", 95, 59),
                ] {
                    let variants = host_tasks::variants(&setting.queue, tasks, width)?;
                    results.add(driver, name, tasks, interleave(variants, effort, tasks)?);
                }
                for branches in [2, 4] {
                    let variants = host_tasks::branches(&setting.queue, branches, 8)?;
                    results.add(driver, "branches with host tasks", branches, interleave(variants, effort, branches)?);
                }
            }
            Self::Sine => {
                for n in [3, 10, 50, 100] {
                    results.add(driver, "sine", n, interleave(loads::sine(&setting.queue, n)?, effort, n)?);
                }
            }
            Self::Large => {
                results.add(
                    driver,
                    "large",
                    100,
                    interleave(loads::chains(&setting.queue, 1, 100, 100)?, effort, 100)?,
                );
            }
            Self::Wide => {
                for chains in [2, 8, 64] {
                    let variants = loads::chains(&setting.queue, chains, 16, 100)?;
                    results.add(driver, "wide", chains, interleave(variants, effort, chains)?);
                }
            }
            Self::Frames => {
                for depth in [1, 3] {
                    let variants = loads::frames(&setting.queue, depth)?;
                    results.add(driver, "frames at a time", depth, interleave(variants, effort, depth)?);
                }
            }
            Self::Threads => {
                for n in [10, 100] {
                    results.add(driver, "threads", n, interleave(loads::threads(&setting.queue, n)?, effort, n)?);
                }
            }
            Self::Decoder => {
                let layers = if effort == Effort::Quick { 10 } else { 95 };
                let len = layers * 59;
                let mut measured = interleave(loads::decoder(&setting.queue, len)?, effort, len)?;
                measured.extend(interleave(cuda::chain(&setting.queue, loads::TICK, c"tick", 1, len)?, effort, len)?);
                results.add(driver, "decoder", len, measured);
                chains(&setting.queue, fused::LAYER, (driver, effort), results)?;
            }
            Self::Cold => results.add(driver, "cold", 1, interleave(children::cold_starts(driver), few, 1)?),
            Self::Life => {
                for n in [1_000, 10_000, 100_000].into_iter().filter(|n| *n <= largest) {
                    results.add(driver, "life", n, interleave(children::lives(driver, n), few, n)?);
                }
            }
            Self::Profiled => {
                for n in [100, 1_000] {
                    results.add(driver, "profiled", n, interleave(profiles::variants(&setting.queue, n)?, effort, n)?);
                }
            }
            Self::Packing => {
                for pattern in patterns(largest) {
                    let n = pattern.len();
                    results.add(driver, pattern.name, n, interleave(pattern.variants(&setting.queue)?, effort, n)?);
                }
            }
            Self::Drop => {
                for shape in [929, 10_000, 100_000].map(Shape::Chain).into_iter().filter(|shape| shape.len() <= largest)
                {
                    let variants = setting.finalize(shape, true);
                    results.add(driver, "drop", shape.len(), interleave(variants, effort, shape.len())?);
                }
            }
        }
        Ok(())
    }
}

impl Setting {
    fn new(device: &Device, properties: QueueProperties) -> Result<Self, Failure> {
        let queue = Queue::with_properties(&clgraph::Context::new(std::slice::from_ref(device))?, device, properties)?;
        let program = Program::from_source(&queue, SOURCE)?;
        Ok(Self {
            nothing: program.kernel("nothing")?,
            scale: program.kernel("scale")?,
            buffers: [Buffer::new(&queue, 64)?, Buffer::new(&queue, 64)?],
            records: CommandBuffer::is_there(device)?.is_some(),
            queue,
            properties,
        })
    }

    /// All variants of running `n` empty kernels of one work-item. What is prepared once is timed here, and added to
    /// each round.
    fn submit(&self, n: usize) -> Result<Vec<Variant<'_>>, Failure> {
        let queue = &self.queue;
        let kernel = self.nothing.to_opencl3()?;
        let kernels = move || std::iter::repeat_n(kernel.get(), n);
        let finish = || raw::finish(queue);
        let plain = {
            let (kernels, in_order) = (kernels.clone(), !self.properties.out_of_order);
            move || {
                if in_order { raw::enqueue(queue, kernels()) } else { raw::enqueue_in_a_row(queue, kernels()) }
            }
        };
        let mut variants = vec![submission("loop", plain.clone(), finish), submission("loop_again", plain, finish)];
        if !self.properties.out_of_order {
            let kernels = kernels.clone();
            variants.push(submission("gated_loop", move || raw::enqueue_gated(queue, kernels()), finish));
        }
        if self.records && n <= LARGEST_BUFFER && self.properties == QueueProperties::new() {
            let (buffer, record) = timed(|| CommandBuffer::record(queue, kernels()))?;
            let mut variant = submission("command_buffer", move || buffer.enqueue(queue), finish);
            variant.run = with_setup_times(variant.run, Times { record: Some(record), ..Times::default() });
            variants.push(variant);
        }
        for (variant, path) in PATHS {
            let (graph, record) = timed(|| self.empty_kernels(n))?;
            let (executable, finalize) = timed(|| Ok(graph.finalize(Finalize::new().path(path))?))?;
            let mut trying = true;
            let run = move || {
                let (run, submit) = timed(|| Ok(executable.submit(queue)?))?;
                let ((), wait) = timed(|| Ok(run.wait()?))?;
                if trying && !is_trying(&executable) {
                    trying = false;
                    log::info!("{variant}, {n} nodes: {}", executable.report());
                }
                Ok(Times { submit: Some(submit), total: submit + wait, trying, ..Times::default() })
            };
            let once = Times { record: Some(record), finalize: Some(finalize), ..Times::default() };
            variants.push(Variant { name: variant, run: with_setup_times(Box::new(run), once) });
        }
        Ok(variants)
    }

    /// A queue that executes, compared with plain enqueues: both with events, or both without.
    fn execute(&self, n: usize, events: bool) -> Result<Vec<Variant<'_>>, Failure> {
        let queue = &self.queue;
        let kernel = self.nothing.to_opencl3()?;
        let finish = || raw::finish(queue);
        let plain = move || {
            let kernels = std::iter::repeat_n(kernel.get(), n);
            if events { raw::enqueue_with_events(queue, kernels) } else { raw::enqueue(queue, kernels) }
        };
        let launch = move || {
            let mut launch = ExecuteKernel::new(&self.nothing);
            for _ in 0..n {
                launch.set_global_work_size(1);
                // SAFETY: the kernel does nothing.
                unsafe {
                    if events {
                        drop(launch.enqueue_nd_range(queue)?);
                    } else {
                        launch.enqueue_nd_range_detached(queue)?;
                    }
                }
            }
            Ok(())
        };
        Ok(vec![
            submission("loop", plain.clone(), finish),
            submission("loop_again", plain, finish),
            submission("queue", launch, finish),
        ])
    }

    /// The same, where each launch has arguments of its own.
    fn execute_with_arguments(&self, n: usize) -> Result<Vec<Variant<'_>>, Failure> {
        let queue = &self.queue;
        let kernel = self.scale.to_opencl3()?;
        let finish = || raw::finish(queue);
        let buffers = [self.buffers[0].raw(), self.buffers[1].raw()];
        let plain = {
            let handle = kernel.get();
            move || raw::enqueue_with_numbers(queue, handle, buffers, n)
        };
        let launch = move || {
            let _kept = &kernel;
            let mut launch = ExecuteKernel::new(&self.scale);
            for at in 0..n {
                let (from, into) = (&self.buffers[at % 2], &self.buffers[(at + 1) % 2]);
                launch.set_arg(from).set_arg(into).set_arg(&(at as u32)).set_global_work_size(1);
                // SAFETY: its one work-item touches the first elements.
                drop(unsafe { launch.enqueue_nd_range(queue)? });
            }
            Ok(())
        };
        Ok(vec![
            submission("loop", plain, finish),
            submission("loop_again", plain, finish),
            submission("queue", launch, finish),
        ])
    }

    /// A chain of empty kernels, and the same chain made of ten executables; by replay, and by command buffers if there
    /// are some.
    fn sub_graphs(&self, n: usize) -> Result<Vec<Variant<'_>>, Failure> {
        let queue = &self.queue;
        let flat = self.empty_kernels(n)?;
        let part = self.empty_kernels(n / 10)?.finalize(Finalize::new())?;
        let graph = Graph::new(queue)?;
        for _ in 0..10 {
            graph.sub_graph(&part).add()?;
        }
        let by = |graph: &Graph, path| graph.finalize(Finalize::new().path(path));
        let replayed = by(&flat, Path::Replay)?;
        let nested = by(&graph, Path::Replay)?;
        let mut variants = vec![("loop", replayed.clone()), ("loop_again", replayed), ("sub_graphs", nested)];
        if self.queue.device().caps().can_record(CommandKind::Kernel).is_ok() {
            variants.push(("native", by(&flat, Path::Native)?));
            variants.push(("native_sub_graphs", by(&graph, Path::Native)?));
        }
        let make = |(variant, executable): (&'static str, Executable)| {
            let run = move || {
                let (run, submit) = timed(|| Ok(executable.submit(queue)?))?;
                let ((), wait) = timed(|| Ok(run.wait()?))?;
                Ok(Times { submit: Some(submit), total: submit + wait, ..Times::default() })
            };
            Variant { name: variant, run: Box::new(run) as Box<_> }
        };
        Ok(variants.into_iter().map(make).collect())
    }

    /// Makes a graph of a chain of kernels.
    fn record(&self, n: usize) -> Vec<Variant<'_>> {
        let queue = &self.queue;
        let mut variants: Vec<Variant<'_>> = Vec::new();
        for variant in ["loop", "loop_again"] {
            let run = move || {
                let (graph, record) = timed(|| self.build(Shape::Chain(n)))?;
                drop(graph);
                Ok(Times { record: Some(record), total: record, ..Times::default() })
            };
            variants.push(Variant { name: variant, run: Box::new(run) });
        }
        let run = move || {
            let (graph, record) = timed(|| {
                let graph = Graph::new(queue)?;
                let mut launch = ExecuteKernel::new(&self.scale);
                graph.record(queue, || {
                    for at in 0..n {
                        let (from, into) = (&self.buffers[at % 2], &self.buffers[(at + 1) % 2]);
                        launch.set_arg_read(from).set_arg_write(into).set_arg(&(at as u32)).set_global_work_size(1);
                        // SAFETY: it is not run.
                        unsafe { launch.enqueue_nd_range(queue)? };
                    }
                    Ok(())
                })?;
                Ok(graph)
            })?;
            drop(graph);
            Ok(Times { record: Some(record), total: record, ..Times::default() })
        };
        variants.push(Variant { name: "recorded", run: Box::new(run) });
        variants
    }

    fn chain(&self, len: usize) -> Chain<'_> {
        Chain { queue: &self.queue, kernel: &self.scale, buffers: &self.buffers, len }
    }

    fn empty_kernels(&self, n: usize) -> Result<Graph, Failure> {
        let graph = Graph::new(&self.queue)?;
        let mut last = None;
        for _ in 0..n {
            let node = graph.kernel(&self.nothing).range(1).after(last.as_slice());
            // SAFETY: the kernel does nothing.
            last = Some(unsafe { node.add() }?);
        }
        Ok(graph)
    }

    fn build(&self, shape: Shape) -> Result<Graph, Failure> {
        let graph = Graph::new(&self.queue)?;
        let node = |at: usize| {
            let (from, into) = (&self.buffers[at % 2], &self.buffers[(at + 1) % 2]);
            graph.kernel(&self.scale).read(from).write(into).arg(at as u32).range(1)
        };
        let free = |at: usize| graph.kernel(&self.scale).null().null().arg(at as u32).range(1);
        // SAFETY: these graphs are not run, but for the chain, whose one work-item touches the first elements.
        unsafe {
            match shape {
                Shape::Chain(len) => {
                    for at in 0..len {
                        node(at).add()?;
                    }
                }
                Shape::Joins => {
                    let mut last = free(0).add()?;
                    for round in 0..8 {
                        let fork = [free(3 * round + 1).after(last).add()?, free(3 * round + 2).after(last).add()?];
                        last = free(3 * round + 3).after(fork).add()?;
                    }
                    free(25).after(last).add()?;
                }
                Shape::Independent(len) => {
                    for at in 0..len {
                        free(at).add()?;
                    }
                }
            }
        }
        Ok(graph)
    }

    /// All variants of making something that can be submitted. With `dropping`, the time that dropping it takes
    /// instead.
    fn finalize(&self, shape: Shape, dropping: bool) -> Vec<Variant<'_>> {
        let (queue, n) = (&self.queue, shape.len());
        let buffers = [self.buffers[0].raw(), self.buffers[1].raw()];
        let mut variants: Vec<Variant<'_>> = Vec::new();
        // A loop needs kernel objects with their arguments set, one for each launch.
        for variant in ["loop", "loop_again"] {
            let run = move || {
                let (kernels, make) = timed(|| Kernels::with_numbers(&self.scale, buffers, n))?;
                ended(kernels, Times { finalize: Some(make), total: make, ..Times::default() }, dropping)
            };
            variants.push(Variant { name: variant, run: Box::new(run) });
        }
        if self.records && n <= LARGEST_BUFFER {
            let run = move || {
                let (kernels, make) = timed(|| Kernels::with_numbers(&self.scale, buffers, n))?;
                let (buffer, record) = timed(|| CommandBuffer::record(queue, kernels.iter()))?;
                // The command buffer is released first.
                let all = (buffer, kernels);
                ended(
                    all,
                    Times { record: Some(record), finalize: Some(make), total: make + record, ..Times::default() },
                    dropping,
                )
            };
            variants.push(Variant { name: "command_buffer", run: Box::new(run) });
        }
        for (variant, path) in PATHS {
            let run = move || {
                let (graph, record) = timed(|| self.build(shape))?;
                let (executable, finalize): (Executable, Duration) =
                    timed(|| Ok(graph.finalize(Finalize::new().path(path))?))?;
                let times = Times {
                    record: Some(record),
                    finalize: Some(finalize),
                    total: record + finalize,
                    ..Times::default()
                };
                ended((graph, executable), times, dropping)
            };
            variants.push(Variant { name: variant, run: Box::new(run) });
        }
        variants
    }
}

/// Adds to each round what was measured once.
fn with_setup_times<'a>(
    mut run: Box<dyn FnMut() -> Result<Times, Failure> + 'a>,
    once: Times,
) -> Box<dyn FnMut() -> Result<Times, Failure> + 'a> {
    Box::new(move || Ok(Times { record: once.record, finalize: once.finalize, ..run()? }))
}

/// Drops what was made. If that is what is measured, it is the total.
fn ended<T>(made: T, times: Times, dropping: bool) -> Result<Times, Failure> {
    let ((), end) = timed(|| {
        drop(made);
        Ok(())
    })?;
    Ok(if dropping { Times { total: end, ..times } } else { times })
}

/// Measures the chains of a body.
fn chains(
    queue: &Queue,
    body: &fused::Body,
    (driver, effort): (&str, Effort),
    results: &mut Results,
) -> Result<(), Failure> {
    let rows = if effort == Effort::Full { body.rows.len() } else { 1 };
    for (name, items) in body.rows[..rows].iter().copied() {
        for n in body.lengths(items, effort == Effort::Full).iter().copied() {
            let mut measured = Vec::new();
            for variants in fused::variants(queue, body, items, n)? {
                measured.extend(interleave(variants, effort, n)?);
            }
            results.add(driver, name, n, measured);
        }
    }
    Ok(())
}
