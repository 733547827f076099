//! Kernels with real work, compared with loops by hand: one after another, side by side, frame by frame, and from
//! several threads.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use clgraph::{
    Buffer, Executable, Finalize, Graph, HostRead, HostWrite, Kernel, Parameter, Path, Program, Queue, QueueProperties,
};

use crate::Failure;
use crate::raw::{self, Arg, Kernels};
use crate::rounds::{Times, Variant, timed};
use crate::submissions::{PATHS, fused_or_not, settle, submission};

const SOURCE: &str = "kernel void sine(global const float *in, global float *out) {
    out[get_global_id(0)] = sin(in[get_global_id(0)]);
}
kernel void work(global float *a, uint rounds) {
    float x = a[get_global_id(0)];
    for (uint i = 0; i < rounds; ++i) x = x * 0.999f + 0.001f;
    a[get_global_id(0)] = x;
}
kernel void scale(global const float *in, global float *out, float by) {
    out[get_global_id(0)] = in[get_global_id(0)] * by;
}";
/// Elements of the sine.
const LEN: usize = 65_536;
/// Work-items of a kernel that takes a certain time.
const ITEMS: usize = 64;
/// Elements of a frame: 1 MiB.
const FRAME: usize = 1 << 18;
/// Frames of a run.
const FRAMES: usize = 16;

/// A copy, and a number of sines from buffer to buffer.
pub fn sine(queue: &Queue, n: usize) -> Result<Vec<Variant<'_>>, Failure> {
    let kernel = Program::from_source(queue, SOURCE)?.kernel("sine")?;
    let data: Vec<f32> = (0..LEN).map(|at| at as f32 / LEN as f32).collect();
    let input = Buffer::from_slice(queue, &data)?;
    let buffers = [Buffer::<f32>::new(queue, LEN)?, Buffer::new(queue, LEN)?];
    let launch = |at: usize| vec![Arg::Memory(buffers[at % 2].raw()), Arg::Memory(buffers[(at + 1) % 2].raw())];
    let kernels = Kernels::with_args(&kernel, &(0..n).map(launch).collect::<Vec<_>>())?;
    let (from, into) = (input.raw(), buffers[0].raw());
    let by_hand = std::rc::Rc::new((kernels, input.clone(), buffers.clone()));
    let plain = move || {
        raw::copy(queue, from, into, 4 * LEN)?;
        raw::enqueue_over(queue, by_hand.0.iter(), LEN)
    };
    let graph = Graph::new(queue)?;
    graph.copy(&input, &buffers[0]).add()?;
    for at in 0..n {
        let node = graph.kernel(&kernel).read(&buffers[at % 2]).write(&buffers[(at + 1) % 2]).range(LEN);
        // SAFETY: a work-item reads and writes its own element.
        unsafe { node.add()? };
    }
    beside(queue, plain, &graph)
}

/// A number of chains of kernels, each of which takes some microseconds.
pub fn chains(queue: &Queue, chains: usize, length: usize, micros: u64) -> Result<Vec<Variant<'_>>, Failure> {
    let kernel = Program::from_source(queue, SOURCE)?.kernel("work")?;
    let rounds = rounds_of(queue, &kernel, Duration::from_micros(micros))?;
    let buffers = (0..chains).map(|_| Buffer::from_slice(queue, &[1.0_f32; ITEMS])).collect::<Result<Vec<_>, _>>()?;
    let launches: Vec<Vec<Arg>> =
        buffers.iter().map(|buffer| vec![Arg::Memory(buffer.raw()), Arg::Number(rounds)]).collect();
    let kernels = std::rc::Rc::new(Kernels::with_args(&kernel, &launches)?);
    // Breadth first, as a program does that wants the chains to overlap.
    let one = std::rc::Rc::clone(&kernels);
    let plain = move || (0..length).try_for_each(|_| raw::enqueue_over(queue, one.iter(), ITEMS));
    let graph = Graph::new(queue)?;
    for _ in 0..length {
        for buffer in &buffers {
            // SAFETY: a work-item reads and writes its own element.
            unsafe { graph.kernel(&kernel).read_write(buffer).arg(rounds).range(ITEMS).add()? };
        }
    }
    let mut variants = beside(queue, plain, &graph)?;
    if chains > 1 {
        let several = (0..chains.min(8)).map(|_| Queue::with_properties(queue, queue.device(), QueueProperties::new()));
        let several = several.collect::<Result<Vec<_>, _>>()?;
        let run = move || {
            let ((), total) = timed(|| {
                for _ in 0..length {
                    for (kernel, queue) in kernels.iter().zip(several.iter().cycle()) {
                        raw::enqueue_over(queue, std::iter::once(kernel), ITEMS)?;
                    }
                }
                several.iter().try_for_each(raw::flush)?;
                several.iter().try_for_each(raw::finish)
            })?;
            Ok(Times { total, ..Times::default() })
        };
        variants.push(Variant { name: "queues", run: Box::new(run) });
    }
    Ok(variants)
}

/// Adds to one number.
pub const TICK: &str = "kernel void tick(global uint *d) { *d += 1; }";

/// A chain of launches that add to one number, as the layers of a decoder are.
pub fn decoder(queue: &Queue, len: usize) -> Result<Vec<Variant<'_>>, Failure> {
    let tick = &Program::from_source(queue, TICK)?.kernel("tick")?;
    let total = Buffer::from_slice(queue, &[0_u32])?;
    let kernels = std::rc::Rc::new(Kernels::with_args(tick, &[vec![Arg::Memory(total.raw())]])?);
    let plain = move || (0..len).try_for_each(|_| raw::enqueue_over(queue, kernels.iter(), 1));
    let graph = Graph::new(queue)?;
    for _ in 0..len {
        // SAFETY: its one work-item touches the one element.
        unsafe { graph.kernel(tick).read_write(&total).range(1).add()? };
    }
    let mut variants = beside(queue, plain, &graph)?;
    // That has not been fused yet; this is.
    variants.retain(|variant| variant.name != "auto");
    variants.extend(fused_or_not(queue, &graph)?);
    Ok(variants)
}

/// Returns how many rounds make the kernel take about a certain time.
fn rounds_of(queue: &Queue, kernel: &Kernel, time: Duration) -> Result<u32, Failure> {
    let buffer = Buffer::from_slice(queue, &[1.0_f32; ITEMS])?;
    let mut rounds = 1_000_u32;
    loop {
        let kernels = Kernels::with_args(kernel, &[vec![Arg::Memory(buffer.raw()), Arg::Number(rounds)]])?;
        let once = || -> Result<Duration, Failure> {
            let begin = Instant::now();
            raw::enqueue_over(queue, kernels.iter(), ITEMS)?;
            raw::finish(queue)?;
            Ok(begin.elapsed())
        };
        let took = (0..5).map(|_| once()).collect::<Result<Vec<_>, _>>()?.into_iter().min().unwrap_or_default();
        if took > Duration::from_millis(2) || rounds > 100_000_000 {
            let share = time.as_secs_f64() / took.as_secs_f64();
            return Ok(((f64::from(rounds) * share) as u32).max(1));
        }
        rounds *= 2;
    }
}

/// A frame: input, a factor that changes, output. Several frames may be in flight at once.
pub fn frames(queue: &Queue, depth: usize) -> Result<Vec<Variant<'_>>, Failure> {
    let kernel = Program::from_source(queue, SOURCE)?.kernel("scale")?;
    let (input, output) = (Buffer::<f32>::new(queue, FRAME)?, Buffer::<f32>::new(queue, FRAME)?);
    let seen = vec![1.0_f32; FRAME];
    let by_hand = {
        let (seen, kernel) = (seen.clone(), kernel.clone());
        let (input, output) = (input.clone(), output.clone());
        let mut taken = vec![vec![0.0_f32; FRAME]; depth + 1];
        move || {
            let mut under_way = VecDeque::new();
            for frame in 0..FRAMES {
                let by = (frame as f32).to_bits();
                let args = vec![Arg::Memory(input.raw()), Arg::Memory(output.raw()), Arg::Number(by)];
                let launch = Kernels::with_args(&kernel, &[args])?;
                raw::write(queue, input.raw(), &seen)?;
                raw::enqueue_over(queue, launch.iter(), FRAME)?;
                under_way.push_back((raw::read(queue, output.raw(), &mut taken[frame % (depth + 1)])?, launch));
                raw::flush(queue)?;
                if under_way.len() >= depth
                    && let Some((event, _)) = under_way.pop_front()
                {
                    raw::wait(event)?;
                }
            }
            under_way.into_iter().try_for_each(|(event, _)| raw::wait(event))
        }
    };
    let again = {
        let mut by_hand = by_hand.clone();
        move || by_hand()
    };
    let mut variants = vec![whole("loop", by_hand), whole("loop_again", again)];
    let by = Parameter::any(0.0_f32);
    let graph = Graph::new(queue)?;
    let camera: HostWrite<f32> = graph.write(&input, seen.clone()).add()?;
    // SAFETY: a work-item reads and writes its own element.
    let node = unsafe { graph.kernel(&kernel).read(&input).write(&output).arg(&by).range(FRAME).add()? };
    let picture: HostRead<f32> = graph.read(&output).add()?;
    for (variant, path) in PATHS {
        let options = Finalize::new().path(path).updatable().result_slots(depth + 1);
        let (executable, seen, by) =
            (graph.finalize(options)?, std::sync::Arc::<[f32]>::from(seen.clone()), by.clone());
        if path == Path::Native && !is_native(&executable) {
            continue;
        }
        let run = move || {
            let mut under_way = VecDeque::new();
            for frame in 0..FRAMES {
                by.set(frame as f32)?;
                executable.update(&node)?;
                under_way.push_back(executable.submit_to(queue).with(&camera, std::sync::Arc::clone(&seen)).submit()?);
                queue.flush()?;
                if under_way.len() >= depth
                    && let Some(run) = under_way.pop_front()
                {
                    run.wait()?;
                    std::hint::black_box(run.get(&picture)?[0]);
                }
            }
            under_way.into_iter().try_for_each(|run: clgraph::Submission| Ok(run.wait()?))
        };
        variants.push(whole(variant, run));
    }
    Ok(variants)
}

/// Four threads, each with its own queue and chain of empty kernels, submitted ten times.
pub fn threads(queue: &Queue, n: usize) -> Result<Vec<Variant<'_>>, Failure> {
    const THREADS: usize = 4;
    const TIMES: usize = 10;
    let kernel = Program::from_source(queue, include_str!("../../kernels-cl/nothing.cl"))?.kernel("nothing")?;
    let queues = (0..THREADS).map(|_| Queue::with_properties(queue, queue.device(), QueueProperties::new()));
    let queues = queues.collect::<Result<Vec<_>, _>>()?;
    /// Runs something on each queue at once.
    fn each(queues: &[Queue], work: impl Fn(usize, &Queue) -> Result<(), Failure> + Sync) -> Result<(), Failure> {
        std::thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> = queues
                .iter()
                .enumerate()
                .map(|(at, queue)| scope.spawn(move || work(at, queue).map_err(|error| error.to_string())))
                .collect();
            threads.into_iter().try_for_each(|thread| Ok(thread.join().map_err(|_| "a thread panicked")??))
        })
    }
    let plain = {
        let (kernel, queues) = (kernel.clone(), queues.clone());
        move || {
            each(&queues, |_, queue| {
                let object = kernel.to_opencl3()?;
                for _ in 0..TIMES {
                    raw::enqueue(queue, std::iter::repeat_n(object.get(), n))?;
                    raw::finish(queue)?;
                }
                Ok(())
            })
        }
    };
    let mut variants = vec![whole("loop", plain.clone()), whole("loop_again", plain)];
    for (variant, path) in PATHS {
        let finalize = |_: usize| -> Result<Executable, Failure> {
            let graph = Graph::new(queue)?;
            for _ in 0..n {
                // SAFETY: it touches no memory.
                unsafe { graph.kernel(&kernel).range(1).after_all_leaves().add()? };
            }
            Ok(graph.finalize(Finalize::new().path(path))?)
        };
        let executables = (0..THREADS).map(finalize).collect::<Result<Vec<_>, _>>()?;
        if path == Path::Native && !executables.iter().all(is_native) {
            continue;
        }
        executables.iter().zip(&queues).try_for_each(|(executable, queue)| settle(executable, queue))?;
        let queues = queues.clone();
        let run = move || {
            each(&queues, |at, queue| (0..TIMES).try_for_each(|_| Ok(executables[at].submit(queue)?.wait()?)))
        };
        variants.push(whole(variant, run));
    }
    Ok(variants)
}

/// A loop by hand, the same loop again, and a graph by every path.
fn beside<'a>(
    queue: &'a Queue,
    plain: impl Fn() -> Result<(), Failure> + Clone + 'a,
    graph: &Graph,
) -> Result<Vec<Variant<'a>>, Failure> {
    let finish = || raw::finish(queue);
    let mut variants = vec![submission("loop", plain.clone(), finish), submission("loop_again", plain, finish)];
    for (variant, path) in PATHS {
        let executable = graph.finalize(Finalize::new().path(path))?;
        if path == Path::Native && !is_native(&executable) {
            continue;
        }
        settle(&executable, queue)?;
        let run = move || {
            let (run, submit) = timed(|| Ok(executable.submit(queue)?))?;
            let ((), wait) = timed(|| Ok(run.wait()?))?;
            Ok(Times { submit: Some(submit), total: submit + wait, ..Times::default() })
        };
        variants.push(Variant { name: variant, run: Box::new(run) });
    }
    Ok(variants)
}

fn is_native(executable: &Executable) -> bool {
    executable.report().segments.iter().any(|segment| segment.path == Path::Native)
}

fn whole<'a>(variant: &'static str, mut work: impl FnMut() -> Result<(), Failure> + 'a) -> Variant<'a> {
    let run = move || {
        let ((), total) = timed(&mut work)?;
        Ok(Times { total, ..Times::default() })
    };
    Variant { name: variant, run: Box::new(run) }
}
