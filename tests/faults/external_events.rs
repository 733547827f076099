//! External events.

use clgraph::{Buffer, Finalize, Graph, Path, Result, UserEvent};

use crate::uses::{again, result, setup};

/// The host and the device meet twice, and a second submission waits for an event that the first one completes.
pub fn in_a_graph(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let a = again(|| Buffer::from_slice(&queue, &[1_u32; 64]))?;
    let graph = Graph::new(&queue)?;
    graph.fill(&a, 2).add()?;
    let filled = graph.signal_event().after_all_leaves().add()?;
    let go_on = graph.wait_event().after(filled).add()?;
    graph.fill(&a.slice(32..)?, 3).after(go_on).add()?;
    let read = graph.read(&a).add()?;
    let executable = again(|| graph.finalize(Finalize::new().path(path).result_slots(6)))?;
    // Each submission has its own events.
    let submit = || {
        let (signalled, go) = (again(|| UserEvent::new(&queue))?, again(|| UserEvent::new(&queue))?);
        let first = executable.submit_to(&queue).with_signal(&filled, &signalled).with_event(&go_on, &go).submit()?;
        let end = again(|| UserEvent::new(&queue))?;
        let second = executable.submit_to(&queue).with_signal(&filled, &end).with_event(&go_on, &signalled).submit();
        // The event ends whether the first submission succeeds or fails.
        let met = signalled.wait();
        go.complete()?;
        first.wait()?;
        met?;
        let second = second?;
        second.wait()?;
        end.wait()?;
        Ok(second)
    };
    let run = again(submit)?;
    Ok(vec![result(&run, &read, submit)?])
}
