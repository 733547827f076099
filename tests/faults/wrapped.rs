//! Programs of the sweep that use wrapped objects, and the calls that no other use makes.

use std::sync::OnceLock;

use clgraph::{
    Addressing, Buffer, Context, DriverError, Filter, Finalize, Graph, Image, ImageFormat, ImageShape, Kernel, Memory,
    MemoryKind, Program, Queue, QueueProperties, Result, Sampler, Status,
};

use crate::uses::{again, beside, result, setup};

/// Returns memory of the first of some kinds that the device has, or else a buffer. If a query fails, a kind seems to
/// be missing; the results are the same.
fn memory(queue: &Queue, kinds: &[MemoryKind]) -> Result<Memory<u32>> {
    let kind = kinds.iter().copied().find(|kind| queue.device().caps().has_memory(*kind)).unwrap_or(MemoryKind::Buffer);
    again(|| Memory::with_kind(queue, kind, 64))
}

/// A buffer, an image, a sampler and memory, wrapped as foreign objects.
pub fn objects() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let plain = again(|| Buffer::<u32>::from_slice(&queue, &[3; 64]))?;
    // SAFETY: live, and without host memory that somebody would have to own.
    let buffer = again(|| unsafe { Buffer::<u32>::from_raw_with_owner(&queue, plain.raw(), [0_u8; 8]) })?;
    drop(plain);
    let graph = Graph::new(&queue)?;
    // Every submission begins with the same content.
    graph.fill(&buffer, 5).add()?;
    let mut reads = vec![graph.read(&buffer).add()?];
    let owner = memory(&queue, &[MemoryKind::UsmShared, MemoryKind::SvmFine, MemoryKind::SvmCoarse])?;
    let memory = match owner.as_ptr() {
        // SAFETY: the owner lives until the end.
        Some(pointer) => again(|| unsafe { Memory::from_raw(&queue, owner.kind(), pointer, 64) })?,
        None => owner.clone(),
    };
    graph.fill(&memory, 6).add()?;
    reads.push(graph.read(&memory).after_all_leaves().add()?);
    if queue.device().caps().images.is_some() {
        let image = again(|| Image::new(&queue, ImageShape::image_2d(4, 4), ImageFormat::RGBA_U32))?;
        // SAFETY: live.
        let wrapped = again(|| unsafe { Image::from_raw(&queue, image.raw()) })?;
        drop(image);
        graph.fill_image(&wrapped, [6_u32; 4]).add()?;
        graph.copy_image_to_buffer(&wrapped, &buffer).after_all_leaves().add()?;
        let sampler = again(|| Sampler::new(&queue, false, Addressing::ClampToEdge, Filter::Nearest))?;
        // SAFETY: live.
        again(|| unsafe { Sampler::from_raw(&queue, sampler.raw()) })?;
    } else {
        graph.fill(&buffer, 6).after_all_leaves().add()?;
    }
    reads.push(graph.read(&buffer).add()?);
    let executable = again(|| graph.finalize(Finalize::new()))?;
    let submit = || executable.submit(&queue);
    let run = again(submit)?;
    reads.iter().map(|read| result(&run, read, submit)).collect()
}

/// Hints for a buffer, copies and hints of SVM, and the times of a command.
pub fn hints_and_times() -> Result<Vec<Vec<u32>>> {
    let first = setup()?;
    let queue = beside(&first, QueueProperties::new().profiling(true))?;
    let buffer = again(|| Buffer::<u32>::from_slice(&queue, &[3; 64]))?;
    let event = again(|| queue.enqueue_prefetch(&buffer, &[]))?;
    again(|| event.wait())?;
    let filled = again(|| queue.enqueue_fill_buffer(&buffer, &[4], 0, 128, &[]))?;
    again(|| filled.wait())?;
    let times = (again(|| filled.profiling_command_start())?, again(|| filled.profiling_command_end())?);
    let (a, b) = (memory(&queue, &[MemoryKind::SvmCoarse])?, memory(&queue, &[MemoryKind::SvmCoarse])?);
    again(|| queue.enqueue_fill_buffer(&a, &[9], 0, 256, &[]))?;
    again(|| queue.enqueue_prefetch(&a, &[]))?;
    again(|| queue.enqueue_copy_buffer(&a, &b, 0, 0, 256, &[]))?;
    let of_copy = again(|| queue.enqueue_read_buffer_owned(&b, 0, 64, &[]))?;
    let of_fill = again(|| queue.enqueue_read_buffer_owned(&buffer, 0, 64, &[]))?;
    Ok(vec![vec![u32::from(times.0 <= times.1)], again(|| of_copy.wait())?, again(|| of_fill.wait())?])
}

/// Built-in kernels of the device that its driver can make: PoCL 3.1 lists four and can make none.
fn usable(context: &Context) -> &'static [String] {
    static USABLE: OnceLock<Vec<String>> = OnceLock::new();
    // Nothing fails during the first call.
    USABLE.get_or_init(|| {
        let names = &context.devices()[0].caps().builtin_kernels;
        names.iter().filter(|name| Program::from_builtin_kernels(context, &[name]).is_ok()).cloned().collect()
    })
}

/// Programs that are not built from source, as far as the device accepts them.
pub fn programs() -> Result<Vec<Vec<u32>>> {
    const MODULE: &[u8] = include_bytes!("../../kernels-cl/specialize.spv");
    const SOURCE: &str =
        "__kernel void step_up(__global uint *a) { a[get_global_id(0)] = a[get_global_id(0)] * 2 + 1; }";
    let queue = setup()?;
    let (caps, usable) = (queue.device().caps(), usable(queue.context()));
    for name in caps.builtin_kernels.iter().take(2) {
        let make = || Program::from_builtin_kernels(&queue, &[name]);
        if usable.contains(name) {
            again(make)?;
        } else if make().is_ok() {
            return Err(DriverError::new("a kernel that could not be made", Status(0)).into());
        }
    }
    let program = again(|| match caps.il_versions.as_slice() {
        [] => Program::from_source(&queue, SOURCE),
        // SAFETY: a valid module.
        _ => unsafe { Program::from_il(&queue, MODULE) },
    })?;
    Ok(vec![run(&queue, &again(|| program.kernel("step_up"))?)?])
}

fn run(queue: &Queue, kernel: &Kernel) -> Result<Vec<u32>> {
    let a = again(|| Buffer::<u32>::new(queue, 8))?;
    let graph = Graph::new(queue)?;
    graph.fill(&a, 10).add()?;
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(kernel).read_write(&a).range(8).add() }?;
    let read = graph.read(&a).add()?;
    let executable = again(|| graph.finalize(Finalize::new()))?;
    let submit = || executable.submit(queue);
    let run = again(submit)?;
    result(&run, &read, submit)
}
