//! Host tasks, in graphs and on queues.

use clgraph::{
    Buffer, Finalize, Graph, Image, ImageFormat, ImageShape, MapWrite, MappedImage, Path, Program, Queue, Result,
};

use crate::uses::{SOURCE, again, result, setup};

fn stir(queue: &Queue, graph: &Graph, buffer: &Buffer<u32>) -> Result<()> {
    let program = again(|| Program::from_source(queue, SOURCE))?;
    let kernel = again(|| program.kernel("stir"))?;
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&kernel).read_write(buffer).range(64).add() }?;
    Ok(())
}

/// A chain, and beside it a fork and a join.
pub fn in_a_graph(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let a = again(|| Buffer::from_slice(&queue, &[1_u32; 64]))?;
    let b = again(|| Buffer::from_slice(&queue, &[2_u32; 64]))?;
    let graph = Graph::new(&queue)?;
    let input = graph.write(&a, [1; 64]).add()?;
    stir(&queue, &graph, &a)?;
    let numbers = graph.read(&a).add()?;
    let doubled = graph.write(&b, [0; 64]).add()?;
    let double = graph.host_task(move |task| {
        let twice: Vec<u32> = task.get(&numbers)?.iter().map(|n| n.wrapping_mul(2)).collect();
        task.put(&doubled, twice)
    });
    let double = double.after(numbers).add()?;
    graph.add_edge(double, doubled.node())?;
    stir(&queue, &graph, &b)?;
    let beside = graph.host_task(|_| ()).add()?;
    let (left, right) = (graph.host_task(|_| ()).after(beside).add()?, graph.host_task(|_| ()).after(beside).add()?);
    graph.fill(&a, 5).after([left, right]).add()?;
    let (first, second) = (graph.read(&a).add()?, graph.read(&b).add()?);
    let executable = again(|| graph.finalize(Finalize::new().path(path).result_slots(6)))?;
    let plain = || executable.submit(&queue);
    let with = || executable.submit_to(&queue).with(&input, [3; 64]).submit();
    let runs = [again(plain)?, again(with)?];
    Ok(vec![result(&runs[0], &first, plain)?, result(&runs[0], &second, plain)?, result(&runs[1], &second, with)?])
}

/// A queue that executes.
pub fn on_a_queue() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let a = again(|| Buffer::from_slice(&queue, &[1_u32; 64]))?;
    let (sender, receiver) = std::sync::mpsc::channel();
    again(|| {
        let sender = sender.clone();
        let run = queue.enqueue_host_task(move |_| sender.send(1_u32), &[])?;
        run.wait()
    })?;
    again(|| queue.enqueue_fill_buffer(&a, &[7], 0, 256, &[]).map(drop))?;
    let content = again(|| queue.enqueue_read_buffer_owned(&a, 0, 64, &[])?.wait())?;
    Ok(vec![content.to_vec(), vec![u32::from(receiver.try_iter().next().is_some())]])
}

/// Memory that tasks map, between launches, and an image.
pub fn mapping(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let a = again(|| Buffer::from_slice(&queue, &[1_u32; 64]))?;
    // After a function that fails, nothing stays mapped.
    let (failing, of) = (Graph::new(&queue)?, a.clone());
    let task = failing.host_task(move |task| -> std::result::Result<(), String> {
        // SAFETY: nothing else uses the memory.
        let mapped = unsafe { task.map(&of, MapWrite) }.map_err(|error| error.to_string())?;
        Err(format!("{} numbers are mapped", mapped.len()))
    });
    task.reads_and_writes(&a).add()?;
    let failing = again(|| failing.finalize(Finalize::new().path(path)))?;
    let failed = again(|| failing.submit(&queue))?.wait().is_err();

    let graph = Graph::new(&queue)?;
    graph.fill(&a, 1).add()?;
    // SAFETY: of all maps here: only this graph uses the memory.
    let adding =
        |by: u32| unsafe { graph.map(&a, MapWrite, move |_, numbers| numbers.iter_mut().for_each(|n| *n += by)) };
    adding(4).add()?;
    stir(&queue, &graph, &a)?;
    adding(2).add()?;
    if queue.device().caps().images.is_some() {
        let (shape, size) = (ImageShape::image_2d(8, 2), [8, 2, 1]);
        let image = again(|| Image::with_data(&queue, shape, ImageFormat::RGBA_U8, &[[7_u8; 4]; 16]))?;
        // SAFETY: as above.
        let paint = unsafe {
            graph.map_image(&image, [0; 3], size, MapWrite, |_, rows: &mut MappedImage<[u8; 4], MapWrite>| {
                rows.row_mut(1, 0).map(|row| row[0] = [9; 4])
            })
        };
        paint.add()?;
    }
    let result_of = graph.read(&a).add()?;
    let executable = again(|| graph.finalize(Finalize::new().path(path).result_slots(6)))?;
    let go = || executable.submit(&queue);
    let run = again(go)?;
    Ok(vec![result(&run, &result_of, go)?, vec![u32::from(failed)]])
}
