//! Native commands.

use clgraph::{Buffer, DriverError, Finalize, Graph, NativeCommand, NativeQueue, Path, Result, Status};

use crate::uses::{again, result, setup};

/// Copies the first memory that the node names to the second.
fn copy(to: &NativeQueue<'_>) -> Result<(), String> {
    let (from, into) = (to.memory(0), to.memory(1));
    // SAFETY: live objects, and ranges that the node names.
    let event = unsafe {
        opencl3::command_queue::enqueue_copy_buffer(
            to.raw(),
            from.pointer(),
            into.pointer(),
            from.offset(),
            into.offset(),
            into.size(),
            0,
            std::ptr::null(),
        )
    };
    let failed = |call| move |error| DriverError::new(call, Status(error)).to_string();
    let event = event.map_err(failed("clEnqueueCopyBuffer"))?;
    // SAFETY: the call transferred the event to the caller.
    unsafe { opencl3::event::release_event(event) }.map_err(failed("clReleaseEvent"))
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
