//! Programs of the sweep that use device globals.

use clgraph::{
    Buffer, ExecuteKernel, Finalize, GlobalAccess, Graph, Parameter, Path, Program, ProgramBuilder, Queue, Result,
    device_global,
};

use crate::uses::{again, result, setup};

device_global! {
    pub static TOTAL: u32 = 5;
    static CELLS: [u32; 64];
    #[device_image_scope]
    static OWN: [u32; 2] = [3, 4];
}

const SOURCE: &str = "
CLG_DEVICE_GLOBAL(uint, total);
CLG_DEVICE_GLOBAL_ARRAY(uint, cells, [64]);
CLG_DEVICE_GLOBAL_ARRAY(uint, own, [2]);
kernel void stir(global uint *a, uint by CLG_PARAMS) {
    size_t i = get_global_id(0);
    CLG_GLOBAL(cells)[i] += CLG_GLOBAL(total) * by + CLG_GLOBAL(own)[i % 2];
    a[i] = CLG_GLOBAL(cells)[i];
}
kernel void next(CLG_ONLY_PARAMS) { CLG_GLOBAL(total) += CLG_GLOBAL(own)[0]++; }";

fn program(queue: &Queue, access: Option<GlobalAccess>) -> Result<Program> {
    let list = ProgramBuilder::new(queue).global("total", &TOTAL).global("cells", &CELLS).global("own", &OWN);
    let list = if let Some(access) = access { list.global_access(access) } else { list };
    again(|| list.clone().source(SOURCE))
}

/// In a graph, with copies, an update, and one more program.
pub fn in_a_graph(path: Path) -> Result<Vec<Vec<u32>>> {
    on(&setup()?, path)
}

pub fn on(queue: &Queue, path: Path) -> Result<Vec<Vec<u32>>> {
    let program = program(queue, None)?;
    let (stir, next) = (again(|| program.kernel("stir"))?, again(|| program.kernel("next"))?);
    let (buffer, by) = (again(|| Buffer::<u32>::new(queue, 64))?, Parameter::within(2_u32, 1..=9)?);
    let (total, cells) = (again(|| TOTAL.on(queue))?, again(|| CELLS.on(queue))?);
    let graph = Graph::new(queue)?;
    graph.fill(&cells, 1).add()?;
    graph.write(&again(|| OWN.on(queue))?.slice(1..)?, vec![8]).add()?;
    // SAFETY: a work-item touches its own element of the buffer, and of the cells; one changes the others.
    let node = unsafe {
        let node = graph.kernel(&stir).write(&buffer).arg(&by).range(64).range_up_to(64).add()?;
        graph.kernel(&next).global_read_write(&TOTAL).global_read_write(&OWN).range(1).add()?;
        node
    };
    again(|| graph.copy(&total, &buffer.slice(..1)?).add())?;
    let (read, left) = (graph.read(&buffer).add()?, graph.read(&cells).add()?);
    drop((program, next));
    let executable = again(|| graph.finalize(Finalize::new().path(path).updatable().result_slots(6)))?;
    // Each run starts like the first.
    let submit = || {
        queue.enqueue_write_buffer(&total, 0, &[5], &[])?;
        queue.enqueue_write_buffer(&OWN.on(queue)?, 0, &[3], &[])?;
        executable.submit(queue)
    };
    let run = again(submit)?;
    let mut results = vec![result(&run, &read, submit)?, result(&run, &left, submit)?];
    by.set(3)?;
    again(|| executable.update(&node))?;
    let run = again(submit)?;
    results.push(result(&run, &left, submit)?);
    drop((stir, graph));
    let run = again(submit)?;
    drop(executable);
    again(|| run.wait())?;
    Ok(results)
}

/// On a queue, with the last access that the device has, and with everything dropped while it may run.
pub fn on_a_queue() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let program = program(&queue, queue.device().caps().global_access().last().copied())?;
    let (stir, next) = (again(|| program.kernel("stir"))?, again(|| program.kernel("next"))?);
    let buffer = again(|| Buffer::<u32>::new(&queue, 64))?;
    again(|| queue.enqueue_fill_buffer(&CELLS.on(&queue)?, &[1], 0, 256, &[]))?;
    again(|| {
        let mut launch = ExecuteKernel::new(&next);
        // SAFETY: it changes globals of its own.
        unsafe { launch.set_global_work_size(1).enqueue_nd_range(&queue) }
    })?;
    again(|| {
        let mut launch = ExecuteKernel::new(&stir);
        // SAFETY: a work-item touches its own elements.
        unsafe { launch.set_arg(&buffer).set_arg(&2_u32).set_global_work_size(64).enqueue_nd_range(&queue) }
    })?;
    let content = again(|| {
        let mut content = vec![0; 64];
        queue.enqueue_read_buffer(&buffer, 0, &mut content, &[])?;
        Ok(content)
    })?;
    again(|| {
        let mut launch = ExecuteKernel::new(&next);
        // SAFETY: as above.
        unsafe { launch.set_global_work_size(1).enqueue_nd_range(&queue) }
    })?;
    drop((program, stir, next));
    Ok(vec![content])
}
