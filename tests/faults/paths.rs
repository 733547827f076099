//! The paths between replay and command buffers, and how one of them is found.

use clgraph::{Buffer, Finalize, Path, Program, Queue, QueueProperties, Result};

use crate::uses::{SOURCE, again, beside, result, setup};

/// Commands side by side, of which some wait for each other; on an in-order queue and on an out-of-order queue.
fn side_by_side(path: Path, submissions: usize) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let other = beside(&queue, QueueProperties::new().out_of_order(true))?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let (stir, scale) = (again(|| program.kernel("stir"))?, again(|| program.kernel("scale"))?);
    let buffer = |value: u32| again(|| Buffer::from_slice(&queue, &[value; 16]));
    let (a, b, c) = (buffer(1)?, buffer(2)?, buffer(3)?);
    let graph = clgraph::Graph::new(&queue)?;
    graph.fill(&a, 4).add()?;
    graph.write(&b, [5; 16]).add()?;
    // SAFETY: each work-item touches its own element.
    unsafe {
        graph.kernel(&stir).read_write(&a).range(16).add()?;
        graph.kernel(&stir).read_write(&b).range(16).add()?;
        graph.kernel(&scale).read(&a).write(&c).arg(7_u32).range(16).add()?;
    }
    graph.copy(&b.slice(..4)?, &a.slice(..4)?).add()?;
    let reads = [graph.read(&a).add()?, graph.read(&c).add()?];
    let executable = again(|| graph.finalize(Finalize::new().path(path).result_slots(6)))?;
    let mut results = Vec::new();
    for queue in [&queue, &other].into_iter().cycle().take(submissions) {
        let submit = || executable.submit(queue);
        let run = again(submit)?;
        for read in &reads {
            results.push(result(&run, read, submit)?);
        }
        again(|| executable.submit_to(queue).submit_detached())?;
    }
    drop(executable);
    let finish = |queue: &Queue| again(|| queue.finish());
    finish(&queue)?;
    finish(&other)?;
    Ok(results)
}

/// Over several queues.
pub fn queues(path: Path) -> Result<Vec<Vec<u32>>> {
    side_by_side(path, 2)
}

/// By one strategy after another, timed.
pub fn timed(path: Path) -> Result<Vec<Vec<u32>>> {
    side_by_side(path, 4)
}
