//! Programs of the sweep that use memory with addresses.

use clgraph::{
    Buffer, Error, ExecuteKernel, Finalize, FinalizeError, Graph, MapRead, MapWrite, Memory, MemoryKind, Parameter,
    Path, Program, Queue, Result,
};

use crate::uses::{SOURCE, again, result, setup};

/// Returns memory of the first of some kinds that the device has.
fn memory(queue: &Queue, kinds: &[MemoryKind]) -> Result<Memory<u32>> {
    let kind = kinds.iter().copied().find(|kind| queue.device().caps().has_memory(*kind)).unwrap_or(MemoryKind::Buffer);
    again(|| Memory::with_kind(queue, kind, 256))
}

/// Memory with addresses in every command of a graph, and an update that changes it.
pub fn in_a_graph(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let scale = again(|| program.kernel("scale"))?;
    let a = memory(&queue, &[MemoryKind::UsmShared, MemoryKind::SvmFine, MemoryKind::SvmCoarse])?;
    let b = memory(&queue, &[MemoryKind::SvmCoarse])?;
    let other = memory(&queue, &[MemoryKind::UsmDevice, MemoryKind::SvmCoarse])?;
    let buffer = again(|| Buffer::<u32>::new(&queue, 256))?;
    again(|| queue.enqueue_write_buffer(&other, 0, &[21; 256], &[]))?;
    let (from, graph) = (Parameter::memory(&a), Graph::new(&queue)?);
    graph.write(&a, vec![4; 256]).add()?;
    graph.fill(&b, 6).add()?;
    let kernel = graph.kernel(&scale).read(&from).write(&b.slice(128..)?).arg(1_u32).range(128);
    let kernel = if b.kind().is_pointer() { kernel.indirect(&b) } else { kernel };
    // SAFETY: a work-item touches its own element.
    let node = unsafe { kernel.add()? };
    graph.prefetch(&a).add()?;
    graph.prefetch_to_host(&a).add()?;
    graph.advise(&a, 0).add()?;
    again(|| graph.copy(&b, &buffer).add())?;
    again(|| graph.copy_rect(&a, &b).region([4, 4, 1]).src_pitch(16, 0).dst_pitch(8, 0).add())?;
    graph.copy(&b.slice(..128)?, &a.slice(..128)?).add()?;
    let (read, copied) = (graph.read(&a).add()?, graph.read(&buffer).add()?);
    let executable = again(|| graph.finalize(Finalize::new().path(path).updatable().result_slots(6)))?;
    let submit = || executable.submit(&queue);
    let run = again(submit)?;
    let mut results = vec![result(&run, &read, submit)?, result(&run, &copied, submit)?];
    from.set(&other)?;
    again(|| executable.update(&node))?;
    let run = again(submit)?;
    results.push(result(&run, &copied, submit)?);
    drop((a, other, from));
    let run = again(submit)?;
    drop((executable, graph));
    again(|| run.wait())?;
    Ok(results)
}

/// The same kinds of memory executed, on a queue, and from the host.
pub fn on_a_queue() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let stir = again(|| program.kernel("stir"))?;
    let a = memory(&queue, &[MemoryKind::UsmShared, MemoryKind::SvmFine])?;
    again(|| queue.enqueue_write_buffer(&a, 0, &[3; 256], &[]))?;
    let b = memory(&queue, &[MemoryKind::UsmDevice, MemoryKind::SvmCoarse])?;
    again(|| queue.enqueue_fill_buffer(&b, &[8], 0, 1024, &[]))?;
    again(|| queue.enqueue_prefetch(&a, &[]))?;
    again(|| queue.enqueue_advise(&a, 0, &[]))?;
    again(|| queue.enqueue_copy_buffer(&b, &a, 0, 512, 512, &[]))?;
    // Any number of calls has the same result.
    again(|| queue.enqueue_copy_buffer_rect(&a, &b, [0; 3], [4, 1, 0], [16, 4, 1], 64, 0, 32, 0, &[]))?;
    again(|| {
        let mut launch = ExecuteKernel::new(&stir);
        launch.set_arg(&a).set_global_work_size(256);
        // SAFETY: a work-item touches its own element.
        unsafe { launch.enqueue_nd_range(&queue) }
    })?;
    let c = memory(&queue, &[MemoryKind::UsmHost])?;
    again(|| queue.enqueue_write_buffer(&c, 0, &[4; 256], &[]))?;
    let pending = again(|| queue.enqueue_read_buffer_owned(&a, 0, 256, &[]))?;
    let first = again(|| pending.wait())?;
    drop(a);
    let second = again(|| {
        let mut content = vec![0; 256];
        queue.enqueue_read_buffer(&b, 0, &mut content, &[])?;
        Ok(content)
    })?;
    Ok(vec![first, second])
}

/// Memory of each kind that the host may map, after an event.
pub fn mapped() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let mut results = Vec::new();
    for kinds in [&[][..], &[MemoryKind::SvmCoarse], &[MemoryKind::UsmShared, MemoryKind::SvmFine]] {
        let memory = memory(&queue, kinds)?;
        let first = again(|| queue.enqueue_fill_buffer(&memory, &[5], 0, 1024, &[]))?;
        again(|| {
            // SAFETY: of both: nothing else uses the memory.
            let mut mapped = unsafe { queue.map(&memory, MapWrite, &[&first]) }?;
            mapped[7] = 9;
            Ok(mapped.unmap()?)
        })?;
        // A map that is dropped.
        results.push(again(|| {
            // SAFETY: as above.
            let mapped = unsafe { queue.map(&memory.slice(..8)?, MapRead, &[]) }?;
            Ok(mapped.to_vec())
        })?);
    }
    Ok(results)
}

/// The graph's own memory, with zeros in it, alone and in a parent.
pub fn owned(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let scale = again(|| program.kernel("scale"))?;
    let graph = Graph::new(&queue)?;
    let mut last = graph.alloc::<u32>(256).zero_init().add()?;
    for round in 0..4_u32 {
        let next = graph.alloc::<u32>(256).add()?;
        // SAFETY: a work-item touches its own element.
        unsafe { graph.kernel(&scale).read(&last).write(&next).arg(round).range(256).add()? };
        if round > 0 {
            graph.free(&last).add()?;
        }
        last = next;
    }
    let read = graph.read(&last).add()?;
    let executable = again(|| {
        let outcome = graph.finalize(Finalize::new().path(path).updatable().result_slots(6));
        outcome.inspect_err(|error| {
            let of_memory = matches!(error, Error::Finalize(FinalizeError::Memory { bytes, .. }) if *bytes > 0);
            assert!(of_memory || !crate::names_it(error, "clCreateBuffer", -5), "{error}");
        })
    })?;
    let outer = Graph::new(&queue)?;
    let child = outer.sub_graph(&executable).add()?;
    let parent = again(|| outer.finalize(Finalize::new().path(path).result_slots(6)))?;
    let (alone, inside) = (|| executable.submit(&queue), || parent.submit(&queue));
    let (own, both) = (again(alone)?, again(inside)?);
    Ok(vec![result(&own, &read, alone)?, result(&both, &child.read(&read)?, inside)?])
}
