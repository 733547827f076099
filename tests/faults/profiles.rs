//! Times of nodes.

use clgraph::{Buffer, Finalize, Graph, Path, Queue, QueueProperties, Result};

use crate::uses::{again, result, setup};

/// On a queue with profiling, on one without, and with a host task.
pub fn of_nodes(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let properties = QueueProperties::new().profiling(true);
    let profiling = again(|| Queue::with_properties(&queue, queue.device(), properties))?;
    let a = again(|| Buffer::from_slice(&queue, &[1_u32; 64]))?;
    let graph = Graph::new(&queue)?;
    graph.fill(&a, 3).label("clear").add()?;
    graph.fill(&a.slice(..32)?, 4).add()?;
    let read = graph.read(&a).add()?;
    let executable = again(|| graph.finalize(Finalize::new().path(path).profiling().result_slots(6)))?;
    graph.host_task(|_| ()).after_all_leaves().add()?;
    let with_task = again(|| graph.finalize(Finalize::new().path(path).profiling().result_slots(6)))?;
    let mut results = Vec::new();
    for (executable, queue) in [(&executable, &queue), (&executable, &profiling), (&with_task, &queue)] {
        let submit = || executable.submit(queue);
        let run = again(submit)?;
        results.push(result(&run, &read, submit)?);
        // A run that failed has no times, and another run has.
        let profile = again(|| {
            run.profile().or_else(|_| {
                let run = submit()?;
                run.wait()?;
                run.profile()
            })
        })?;
        results.push(profile.nodes.iter().map(|node| node.node.index() as u32).take(3).collect());
    }
    Ok(results)
}
