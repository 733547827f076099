//! Host tasks, compared with a loop that waits and calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clgraph::{Buffer, Executable, Finalize, Graph, Kernel, Path, Program, Queue};

use opencl3::memory::ClMem;

use crate::Failure;
use crate::raw;
use crate::rounds::{Times, Way, timed};

/// Adds one, with one work-item.
const SOURCE: &str = "kernel void tick(global uint *total) { total[0]++; }";

/// All variants of repeating: `width` launches, and then a call of a function.
pub fn ways(queue: &Queue, tasks: usize, width: usize) -> Result<Vec<Way<'_>>, Failure> {
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
    let mut ways = vec![whole("loop", by_hand.clone()), whole("loop_again", by_hand)];
    for (variant, path) in [("replay", Path::Replay), ("native", Path::Native), ("auto", Path::Auto)] {
        let executable = graph(queue, &kernel, &total, &calls, (tasks, width), path)?;
        if path == Path::Native && executable.report().segments.iter().all(|segment| segment.path != Path::Native) {
            continue;
        }
        ways.push(whole(variant, move || Ok(executable.submit(queue)?.wait()?)));
    }
    Ok(ways)
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

fn whole<'a>(variant: &'static str, work: impl Fn() -> Result<(), Failure> + 'a) -> Way<'a> {
    let run = move || {
        let ((), total) = timed(&work)?;
        Ok(Times { total, ..Times::default() })
    };
    Way { variant, run: Box::new(run) }
}
