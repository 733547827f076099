//! Host tasks, compared with a loop that waits and calls.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use clgraph::{Buffer, Executable, Finalize, Graph, Kernel, Path, Program, Queue, QueueProperties};

use opencl3::memory::ClMem;
use opencl3::types::cl_event;

use crate::Failure;
use crate::raw::{self, Arg, Kernels};
use crate::rounds::{Times, Variant, timed};
use crate::submissions::settle;

/// Adds one, with one work-item.
const SOURCE: &str = "kernel void tick(global uint *total) { total[0]++; }";

/// All variants of repeating: `width` launches, and then a call of a function.
pub fn variants(queue: &Queue, tasks: usize, width: usize) -> Result<Vec<Variant<'_>>, Failure> {
    let total = Buffer::from_slice(queue, &[0_u32])?;
    let kernel = Program::from_source(queue, SOURCE)?.kernel("tick")?;
    let object = kernel.to_opencl3()?;
    let memory = total.to_opencl3()?;
    // SAFETY: a live buffer, which the executables below keep.
    unsafe { object.set_arg(0, &memory.get()) }?;
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let by_hand = move || {
        for _ in 0..tasks {
            raw::enqueue_and_wait(queue, object.get(), width)?;
            counter.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    let mut variants = vec![whole("loop", by_hand.clone()), whole("loop_again", by_hand)];
    for (variant, path) in [("replay", Path::Replay), ("native", Path::Native), ("auto", Path::Auto)] {
        let executable = graph(queue, &kernel, &total, &calls, (tasks, width), path)?;
        if path == Path::Native && executable.report().segments.iter().all(|segment| segment.path != Path::Native) {
            continue;
        }
        variants.push(whole(variant, move || Ok(executable.submit(queue)?.wait()?)));
    }
    Ok(variants)
}

fn graph(
    queue: &Queue,
    kernel: &Kernel,
    total: &Buffer<u32>,
    calls: &Arc<AtomicUsize>,
    (tasks, width): (usize, usize),
    path: Path,
) -> Result<Executable, Failure> {
    let graph = Graph::new(queue)?;
    for _ in 0..tasks {
        for _ in 0..width {
            // SAFETY: its one work-item touches the one element.
            unsafe { graph.kernel(kernel).read_write(total).range(1).add()? };
        }
        let calls = Arc::clone(calls);
        let task = graph.host_task(move |_| {
            calls.fetch_add(1, Ordering::Relaxed);
        });
        task.reads_and_writes(total).add()?;
    }
    Ok(graph.finalize(Finalize::new().path(path))?)
}

/// One work-item that works for some tens of microseconds.
const WORK: &str = "kernel void work(global uint *total) {
    uint value = total[0];
    for (uint round = 0; round < 30000; round++) value = value * 1664525u + 1013904223u;
    total[0] = value;
}";

/// Branches that nothing orders: each is some launches, a call of a function, and as many launches. By hand each has a
/// queue, and the calls are made as soon as the launches before them are complete, in the order of the branches.
pub fn branches(queue: &Queue, branches: usize, width: usize) -> Result<Vec<Variant<'_>>, Failure> {
    let kernel = Program::from_source(queue, WORK)?.kernel("work")?;
    let totals = (0..branches).map(|_| Buffer::from_slice(queue, &[1_u32])).collect::<Result<Vec<_>, _>>()?;
    let launches: Vec<Vec<Arg>> = totals.iter().map(|total| vec![Arg::Memory(total.raw())]).collect();
    let kernels = Rc::new(Kernels::with_args(&kernel, &launches)?);
    let queues = (0..branches).map(|_| Queue::with_properties(queue, queue.device(), QueueProperties::new()));
    let queues = queues.collect::<Result<Vec<_>, _>>()?;
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let of_all = Rc::clone(&kernels);
    let threads = Threads::new(&queues, &kernels, &calls, width);
    let by_hand = move || {
        let mut events = Vec::with_capacity(queues.len());
        for (queue, kernel) in queues.iter().zip(of_all.iter()) {
            events.push(raw::enqueue_to_event(queue, kernel, width)?);
        }
        for ((event, queue), kernel) in events.into_iter().zip(&queues).zip(of_all.iter()) {
            raw::wait(event)?;
            counter.fetch_add(1, Ordering::Relaxed);
            raw::enqueue(queue, std::iter::repeat_n(kernel, width))?;
            raw::flush(queue)?;
        }
        queues.iter().try_for_each(raw::finish)
    };
    let counter = Arc::clone(&calls);
    let in_a_row = move || {
        for kernel in kernels.iter() {
            raw::enqueue_and_wait(queue, kernel, width)?;
            counter.fetch_add(1, Ordering::Relaxed);
            raw::enqueue(queue, std::iter::repeat_n(kernel, width))?;
        }
        raw::finish(queue)
    };
    let mut variants = vec![
        whole("loop", in_a_row),
        whole("queues_by_hand", by_hand.clone()),
        whole("queues_again", by_hand),
        whole("queues_by_threads", move || threads.run()),
    ];
    for (variant, path) in [("replay", Path::Replay), ("queues", Path::Queues), ("auto", Path::Auto)] {
        let graph = Graph::new(queue)?;
        for total in &totals {
            let add = || -> Result<(), Failure> {
                for _ in 0..width {
                    // SAFETY: its one work-item touches the one element.
                    unsafe { graph.kernel(&kernel).read_write(total).range(1).add()? };
                }
                Ok(())
            };
            add()?;
            let calls = Arc::clone(&calls);
            let task = graph.host_task(move |_| {
                calls.fetch_add(1, Ordering::Relaxed);
            });
            task.reads_and_writes(total).add()?;
            add()?;
        }
        let executable = graph.finalize(Finalize::new().path(path))?;
        settle(&executable, queue)?;
        variants.push(whole(variant, move || Ok(executable.submit(queue)?.wait()?)));
    }
    Ok(variants)
}

/// By hand what a submission does: it begins after what is on the first queue, a call does not hold back the other branches,
/// and what comes on the first queue waits for all of it.
struct Threads {
    queues: Vec<Queue>,
    kernels: Rc<Kernels>,
    width: usize,
    /// One for each branch: the event of the launches before the call.
    waiting: Vec<Sender<Raw<cl_event>>>,
    /// The events of the branches' ends.
    ends: Receiver<Result<Raw<cl_event>, String>>,
}

/// An object of OpenCL, which any thread may use.
struct Raw<T>(T);

// SAFETY: OpenCL's objects may be used on any thread; kernels are, here, by one at a time.
unsafe impl<T> Send for Raw<T> {}

impl Threads {
    fn new(queues: &[Queue], kernels: &Rc<Kernels>, calls: &Arc<AtomicUsize>, width: usize) -> Self {
        let (ended, ends) = channel();
        let waiting = queues.iter().zip(kernels.iter()).map(|(queue, kernel)| {
            let (waits, waiting) = channel::<Raw<cl_event>>();
            let (queue, kernel, calls, ended) = (queue.clone(), Raw(kernel), Arc::clone(calls), ended.clone());
            std::thread::spawn(move || {
                let Raw(kernel) = { kernel };
                for Raw(event) in waiting {
                    let next = raw::wait(event).and_then(|()| {
                        calls.fetch_add(1, Ordering::Relaxed);
                        raw::enqueue_to_event(&queue, kernel, width)
                    });
                    if ended.send(next.map(Raw).map_err(|error| error.to_string())).is_err() {
                        return;
                    }
                }
            });
            waits
        });
        Self { queues: queues.to_vec(), kernels: Rc::clone(kernels), width, waiting: waiting.collect(), ends }
    }

    fn run(&self) -> Result<(), Failure> {
        let Some((first, others)) = self.queues.split_first() else { return Ok(()) };
        let begin = raw::mark(first)?;
        raw::flush(first)?;
        others.iter().try_for_each(|queue| raw::follow(queue, begin))?;
        for ((queue, kernel), waiting) in self.queues.iter().zip(self.kernels.iter()).zip(&self.waiting) {
            waiting.send(Raw(raw::enqueue_to_event(queue, kernel, self.width)?))?;
        }
        raw::release(begin)?;
        for _ in &self.queues {
            let Raw(end) = self.ends.recv()??;
            raw::follow(first, end)?;
            raw::release(end)?;
        }
        raw::finish(first)
    }
}

fn whole<'a>(variant: &'static str, work: impl Fn() -> Result<(), Failure> + 'a) -> Variant<'a> {
    let run = move || {
        let ((), total) = timed(&work)?;
        Ok(Times { total, ..Times::default() })
    };
    Variant { name: variant, run: Box::new(run) }
}
