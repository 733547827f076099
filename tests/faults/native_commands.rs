//! Native commands.

use clgraph::{
    Buffer, Finalize, Graph, NativeCommand, NativeQueue, NativeRecording, Path, PathReason, Queue, QueueProperties,
    Result,
};

use crate::native::{copy, fill, record_fill, records};
use crate::uses::{again, beside, result, setup};

/// A fill that can only be recorded. Where nothing can be recorded, it is enqueued.
pub fn recorded_fill(queue: &Queue, profiled: bool, value: u32) -> NativeCommand {
    let record = move |to: &NativeRecording<'_>| record_fill(to, to.memory(0), value);
    match records(queue.device().caps(), profiled) {
        true => NativeCommand::recorded(record),
        false => NativeCommand::enqueued(move |to: &NativeQueue<'_>| fill(to, to.memory(0), value)),
    }
}

/// Between other nodes and at both ends, updated, and on a queue.
pub fn in_a_graph(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let a = again(|| Buffer::from_slice(&queue, &[1_u32; 64]))?;
    let b = again(|| Buffer::from_slice(&queue, &[2_u32; 64]))?;
    let graph = Graph::new(&queue)?;
    let (low, high) = (a.slice(..32)?, b.slice(32..)?);
    graph.fill(&a, 1).add()?;
    graph.fill(&b, 2).add()?;
    // SAFETY: the functions enqueue to the queue that they are given, and touch what the nodes name.
    let first = unsafe { graph.native_command(NativeCommand::enqueued(copy).reads(&a).writes(&b)).add() }?;
    graph.fill(&low, 5).add()?;
    // SAFETY: as above.
    unsafe { graph.native_command(NativeCommand::enqueued(copy).reads(&low).writes(&high)).add() }?;
    let read = graph.read(&b).add()?;
    // SAFETY: as above.
    unsafe { graph.native_command(NativeCommand::enqueued(copy).reads(&high).writes(&low)).add() }?;
    let executable = again(|| graph.finalize(Finalize::new().path(path).updatable().result_slots(6)))?;
    let plain = || executable.submit(&queue);
    let run = again(plain)?;
    let before = result(&run, &read, plain)?;
    // SAFETY: as above.
    unsafe { graph.native_command(NativeCommand::enqueued(copy).reads(&b).writes(&a)).replace(first) }?;
    again(|| executable.update(&first))?;
    let run = again(plain)?;
    let after = result(&run, &read, plain)?;
    again(|| {
        let command = NativeCommand::enqueued(copy).reads(&a).writes(&b);
        // SAFETY: as above.
        unsafe { queue.enqueue_native_command(command, &[]) }?.wait()
    })?;
    let content = again(|| queue.enqueue_read_buffer_owned(&b, 0, 64, &[])?.wait())?;
    Ok(vec![before, after, content.to_vec()])
}

/// Commands that can only be recorded, on queues of two kinds, which have command buffers of their own; and updated.
pub fn recorded(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let times = beside(&queue, QueueProperties::new().profiling(true))?;
    let a = again(|| Buffer::from_slice(&queue, &[1_u32; 64]))?;
    let b = again(|| Buffer::from_slice(&queue, &[2_u32; 64]))?;
    let graph = Graph::new(&queue)?;
    let low = a.slice(..32)?;
    graph.fill(&a, 1).add()?;
    // SAFETY: of all native commands here: the functions record what touches the memory that the nodes name.
    let node = unsafe { graph.native_command(recorded_fill(&queue, false, 5).writes(&low)).add() }?;
    graph.copy(&a, &b).add()?;
    // SAFETY: as above.
    unsafe { graph.native_command(recorded_fill(&queue, false, 6).writes(&b.slice(48..)?)).add() }?;
    let read = graph.read(&b).add()?;
    let executable = again(|| graph.finalize(Finalize::new().path(path).updatable().result_slots(6)))?;
    let recorded = executable.report().segments.iter().filter(|one| one.why == PathReason::OnlyRecorded).count();
    assert_eq!(recorded, if records(queue.device().caps(), false) { 2 } else { 0 }, "{}", executable.report());
    let mut results = Vec::new();
    let mut submit_to_both = || -> Result<()> {
        for queue in [&queue, &times] {
            let submit = || executable.submit(queue);
            let run = again(submit)?;
            results.push(result(&run, &read, submit)?);
        }
        Ok(())
    };
    submit_to_both()?;
    // SAFETY: as above.
    unsafe { graph.native_command(recorded_fill(&queue, false, 7).writes(&low)).replace(node) }?;
    again(|| executable.update(&node))?;
    submit_to_both()?;
    Ok(results)
}
