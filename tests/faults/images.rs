//! Programs of the sweep that use images and samplers.

use clgraph::{
    Addressing, Buffer, ExecuteKernel, Filter, Finalize, Graph, Image, ImageFormat, ImageShape, MapRead, MapWrite,
    Path, Program, Queue, Result, Sampler,
};

use crate::uses::{again, result, setup};

const SOURCE: &str = "
__kernel void through(read_only image2d_t in, sampler_t edge, write_only image2d_t out) {
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imageui(out, at, read_imageui(in, edge, at - 1) + 1);
}";

const SIZE: [usize; 3] = [8, 4, 1];

fn image(queue: &Queue) -> Result<Image> {
    again(|| Image::new(queue, ImageShape::image_2d(8, 4), ImageFormat::RGBA_U32))
}

fn edge(queue: &Queue) -> Result<Sampler> {
    again(|| Sampler::new(queue, false, Addressing::ClampToEdge, Filter::Nearest))
}

/// Every command on images in a graph, and an update that changes the image and the sampler.
pub fn in_a_graph(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    if queue.device().caps().images.is_none() {
        return Ok(Vec::new());
    }
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let through = again(|| program.kernel("through"))?;
    let pixels: Vec<u32> = (0..128).collect();
    let with_pixels = || Image::with_data(&queue, ImageShape::image_2d(8, 4), ImageFormat::RGBA_U32, &pixels);
    let (source, other_source) = (again(with_pixels)?, again(with_pixels)?);
    let (a, b) = (image(&queue)?, image(&queue)?);
    let bytes = again(|| Buffer::<u32>::new(&queue, 128))?;
    let row = again(|| Image::from_buffer(&queue, &bytes, ImageFormat::RGBA_U32))?;
    let graph = Graph::new(&queue)?;
    // Every submission begins with the same content.
    graph.fill_image(&b, [8_u32; 4]).add()?;
    graph.fill_image(&b, [1_u32, 2, 3, 4]).area([1, 1, 0], [4, 2, 1]).add()?;
    graph.write_image(&b, vec![9_u32; 32]).area([0, 3, 0], [8, 1, 1]).add()?;
    let sampler = edge(&queue)?;
    let launch =
        |from: &Image, sampler: &Sampler| graph.kernel(&through).read(from).arg(sampler).write(&a).range([8, 4]);
    // SAFETY: a work-item writes its own pixel.
    let node = unsafe { launch(&source, &sampler).add()? };
    graph.copy_image(&a, &b).region([2, 2, 1]).add()?;
    graph.copy_image_to_buffer(&b, &bytes).add()?;
    graph.copy_buffer_to_image(&bytes, &a).add()?;
    graph.copy_image(&row, &b).region([8, 1, 1]).add()?;
    let (read, other) = (graph.read_image(&a).add()?, graph.read_image(&b).add()?);
    let executable = again(|| graph.finalize(Finalize::new().path(path).updatable().result_slots(6)))?;
    let submit = || executable.submit(&queue);
    let run = again(submit)?;
    let mut results = vec![result(&run, &read, submit)?, result(&run, &other, submit)?];
    let next = edge(&queue)?;
    // SAFETY: as above.
    again(|| unsafe { launch(&other_source, &next).replace(node) })?;
    drop((source, sampler));
    again(|| executable.update(&node))?;
    let run = again(submit)?;
    results.push(result(&run, &read, submit)?);
    let run = again(submit)?;
    drop((executable, graph, next, other_source));
    again(|| run.wait())?;
    Ok(results)
}

/// The same commands executed, on a queue.
pub fn on_a_queue() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    if queue.device().caps().images.is_none() {
        return Ok(Vec::new());
    }
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let through = again(|| program.kernel("through"))?;
    let (a, b) = (image(&queue)?, image(&queue)?);
    let bytes = again(|| Buffer::<u32>::new(&queue, 128))?;
    let pixels: Vec<u32> = (0..128).collect();
    again(|| queue.enqueue_write_image(&a, [0; 3], SIZE, &pixels, &[]))?;
    again(|| queue.enqueue_fill_image(&b, [5_u32; 4], [0; 3], SIZE, &[]))?;
    again(|| {
        let mut launch = ExecuteKernel::new(&through);
        launch.set_arg(&a).set_arg(&edge(&queue)?).set_arg(&b).set_global_work_sizes(&[8, 4]);
        // SAFETY: a work-item writes its own pixel.
        unsafe { launch.enqueue_nd_range(&queue) }
    })?;
    again(|| queue.enqueue_copy_image(&b, &a, [0; 3], [4, 0, 0], [4, 4, 1], &[]))?;
    again(|| queue.enqueue_copy_image_to_buffer(&a, &bytes, [0; 3], SIZE, 0, &[]))?;
    again(|| queue.enqueue_copy_buffer_to_image(&bytes, &b, 0, [0; 3], SIZE, &[]))?;
    again(|| queue.enqueue_write_image_owned(&b, [0; 3], [1, 1, 1], vec![7_u32; 4], &[]))?;
    let pending = again(|| queue.enqueue_read_image_owned::<u32>(&b, [0; 3], SIZE, &[]))?;
    let first = again(|| pending.wait())?;
    drop(a);
    let second = again(|| {
        let mut content = vec![0; 128];
        queue.enqueue_read_image(&b, [0; 3], SIZE, &mut content, &[])?;
        Ok(content)
    })?;
    Ok(vec![first, second])
}

/// A part of an image that the host writes and reads.
pub fn mapped() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    if queue.device().caps().images.is_none() {
        return Ok(Vec::new());
    }
    let a = image(&queue)?;
    let first = again(|| queue.enqueue_fill_image(&a, [5_u32; 4], [0; 3], SIZE, &[]))?;
    again(|| {
        // SAFETY: of both: nothing else uses the image.
        let mut mapped = unsafe { queue.map_image::<u32, _>(&a, [2, 1, 0], [3, 2, 1], MapWrite, &[&first]) }?;
        mapped.row_mut(1, 0)?.fill(9);
        Ok(mapped.unmap()?)
    })?;
    let row = again(|| {
        // SAFETY: as above.
        let mapped = unsafe { queue.map_image::<u32, _>(&a, [0, 2, 0], [8, 1, 1], MapRead, &[]) }?;
        Ok(mapped.row(0, 0).unwrap_or_default().to_vec())
    })?;
    Ok(vec![row])
}
