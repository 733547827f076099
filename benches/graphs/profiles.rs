//! Times of each node, compared with hand-written events.

use clgraph::{Finalize, Graph, Program, Queue, QueueProperties};

use crate::Failure;
use crate::raw;
use crate::rounds::{Times, Variant, timed};
use crate::submissions::submission;

/// All variants of running `n` empty kernels and learning when each of them ran; and a loop that learns nothing.
pub fn variants(queue: &Queue, n: usize) -> Result<Vec<Variant<'_>>, Failure> {
    let nothing = Program::from_source(queue, include_str!("../../kernels-cl/nothing.cl"))?.kernel("nothing")?;
    let properties = QueueProperties::new().profiling(true);
    let profiling = Queue::with_properties(queue, queue.device(), properties)?;
    let kernel = nothing.to_opencl3()?;
    let unprofiled = nothing.to_opencl3()?;
    let by_hand = move || raw::enqueue_and_time(&profiling, kernel.get(), n).map(drop);
    let graph = Graph::new(queue)?;
    for _ in 0..n {
        // SAFETY: it touches no memory.
        unsafe { graph.kernel(&nothing).range(1).after_all_leaves().add()? };
    }
    let executable = graph.finalize(Finalize::new().profiling())?;
    let profiled = move || {
        let (run, submit) = timed(|| Ok(executable.submit(queue)?))?;
        let (_, rest) = timed(|| {
            run.wait()?;
            Ok(run.profile()?)
        })?;
        Ok(Times { submit: Some(submit), total: submit + rest, ..Times::default() })
    };
    let plain = move || raw::enqueue(queue, std::iter::repeat_n(unprofiled.get(), n));
    Ok(vec![
        whole("loop", by_hand.clone()),
        whole("loop_again", by_hand),
        Variant { name: "profiled", run: Box::new(profiled) },
        submission("without_times", plain, || raw::finish(queue)),
    ])
}

fn whole<'a>(variant: &'static str, work: impl Fn() -> Result<(), Failure> + 'a) -> Variant<'a> {
    let run = move || {
        let ((), total) = timed(&work)?;
        Ok(Times { total, ..Times::default() })
    };
    Variant { name: variant, run: Box::new(run) }
}
