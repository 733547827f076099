//! Branches and loops, one in another, with a host task in a turn.

use clgraph::{
    Buffer, DriverError, Executable, ExecuteKernel, Finalize, Fuse, Graph, Loops, Parameter, Path, Program, Queue,
    Result, Status,
};

use crate::uses::{SOURCE, again, once_more, result, setup};

fn body(queue: &Queue, path: Path, add: impl FnOnce(&Graph) -> Result<()>) -> Result<Executable> {
    let graph = Graph::new(queue)?;
    add(&graph)?;
    again(|| graph.finalize(Finalize::new().path(path)))
}

/// A loop of three turns with a branch and a loop in it, and a case.
pub fn in_a_graph(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let numbers = again(|| Buffer::from_slice(&queue, &[1_u32; 64]))?;
    let left = again(|| Buffer::from_slice(&queue, &[0_u32]))?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let stir = again(|| program.kernel("stir"))?;
    let stirs = body(&queue, path, |graph| {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&stir).read_write(&numbers).range(64).add() }.map(drop)
    })?;
    let fills = body(&queue, path, |graph| graph.fill(&numbers, 3).add().map(drop))?;
    let graph = Graph::new(&queue)?;
    graph.repeat(2, &stirs).add()?;
    graph.when(&left, &stirs).otherwise(&fills).add()?;
    let seen = graph.read(&left).add()?;
    let next = graph.write(&left, [0_u32]).add()?;
    let task = graph.host_task(move |task| {
        let one_less = task.get(&seen)?[0].saturating_sub(1);
        task.put(&next, [one_less])
    });
    let task = task.after(seen).add()?;
    graph.add_edge(task, next.node())?;
    let turn = again(|| graph.finalize(Finalize::new().path(path)))?;

    let graph = Graph::new(&queue)?;
    // A submission that comes after a failed one begins anew.
    graph.write(&numbers, [1; 64]).add()?;
    let turns = graph.write(&left, [3_u32]).add()?;
    graph.repeat_while(&left, &turn).at_most(5).add()?;
    graph.switch(&left, [&stirs, &fills]).add()?;
    let found = graph.read(&numbers).add()?;
    let executable = again(|| graph.finalize(Finalize::new().path(path)))?;
    let plain = || executable.submit(&queue);
    let with = || executable.submit_to(&queue).with(&turns, [2]).submit();
    let runs = [again(plain)?, again(with)?];
    Ok(vec![result(&runs[0], &found, plain)?, result(&runs[1], &found, with)?])
}

/// A loop whose turns are enqueued ahead of their condition. What the driver refuses for that is no error of finalize: then the
/// host decides.
pub fn ahead(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let numbers = again(|| Buffer::from_slice(&queue, &[1_u32; 64]))?;
    let left = again(|| Buffer::from_slice(&queue, &[0_u32]))?;
    let source = "kernel void down(global uint *left) { *left -= 1; }\n\
                  kernel void stir(global uint *a) { a[get_global_id(0)] = a[get_global_id(0)] * 5 + 1; }";
    let program = again(|| Program::from_source(&queue, source))?;
    let (stir, down) = (again(|| program.kernel("stir"))?, again(|| program.kernel("down"))?);
    let mut seen = None;
    let turn = body(&queue, path, |graph| {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&stir).read_write(&numbers).range(64).add()? };
        graph.copy(&numbers.slice(..8)?, &numbers.slice(32..40)?).add()?;
        graph.fill(&numbers.slice(5..6)?, 2).add()?;
        // Both go ahead by memory of their own.
        graph.write(&numbers.slice(6..7)?, [4_u32]).add()?;
        seen = Some(graph.read(&numbers.slice(..8)?).add()?);
        // SAFETY: as above.
        unsafe { graph.kernel(&down).read_write(&left).range(1).add() }.map(drop)
    })?;
    let graph = Graph::new(&queue)?;
    graph.write(&numbers, [1; 64]).add()?;
    let turns = graph.write(&left, [5_u32]).add()?;
    let node = graph.repeat_while(&left, &turn).add()?;
    let (Some(inside), Some(seen)) = (node.body(), seen) else { unreachable!("it was added above") };
    let seen = inside.read(&seen)?;
    let found = graph.read(&numbers).add()?;
    let executable = again(|| graph.finalize(Finalize::new().path(path).loops(Loops::Ahead)))?;
    let plain = || executable.submit(&queue);
    let with = || executable.submit_to(&queue).with(&turns, [3]).submit();
    let runs = [again(plain)?, again(with)?];
    let of_the_last_turn = result(&runs[1], &seen, with)?;
    Ok(vec![result(&runs[0], &found, plain)?, result(&runs[1], &found, with)?, of_the_last_turn])
}

/// A loop whose turns a kernel does. What the driver refuses for that is no error of finalize: then turns go ahead, or the host decides.
pub fn on_device(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let numbers = again(|| Buffer::from_slice(&queue, &[1_u32; 64]))?;
    let left = again(|| Buffer::from_slice(&queue, &[0_u32]))?;
    let source = "kernel void down(global uint *left) { *left -= 1; }\n\
                  kernel void stir(global uint *a) { a[get_global_id(0)] = a[get_global_id(0)] * 5 + 1; }";
    let program = again(|| Program::from_source(&queue, source))?;
    let (stir, down) = (again(|| program.kernel("stir"))?, again(|| program.kernel("down"))?);
    let turn = body(&queue, path, |graph| {
        // SAFETY: each work-item touches its own element.
        unsafe {
            graph.kernel(&stir).read_write(&numbers).range(64).add()?;
            graph.kernel(&down).read_write(&left).range(1).add().map(drop)
        }
    })?;
    let graph = Graph::new(&queue)?;
    graph.write(&numbers, [1; 64]).add()?;
    let turns = graph.write(&left, [40_u32]).add()?;
    graph.repeat_while(&left, &turn).at_most(50).add()?;
    let found = graph.read(&numbers).add()?;
    let executable = again(|| graph.finalize(Finalize::new().path(path).fuse(Fuse::Now)))?;
    let plain = || executable.submit(&queue);
    let with = || executable.submit_to(&queue).with(&turns, [3]).submit();
    let runs = [again(plain)?, again(with)?];
    Ok(vec![result(&runs[0], &found, plain)?, result(&runs[1], &found, with)?])
}

/// Loops and branches that a queue decides.
pub fn on_a_queue() -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let numbers = again(|| Buffer::from_slice(&queue, &[1_u32; 64]))?;
    let left = again(|| Buffer::from_slice(&queue, &[3_u32]))?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let stir = again(|| program.kernel("stir"))?;
    // The number of turns that are left is set by each turn, so a turn that is made again changes nothing.
    let turns = std::cell::Cell::new(3_u32);
    again(|| {
        queue.repeat_while(&left, |queue| {
            // SAFETY: each work-item touches its own element.
            let launch = || unsafe {
                ExecuteKernel::new(&stir).set_arg_read_write(&numbers).set_global_work_size(64).enqueue_nd_range(queue)
            };
            launch()?;
            turns.set((turns.get() - 1).max(1));
            queue.enqueue_fill_buffer(&left, &[turns.get() - 1], 0, 4, &[]).map(drop)
        })
    })?;
    again(|| queue.enqueue_fill_buffer(&numbers, &[2], 0, 256, &[]).map(drop))?;
    again(|| queue.repeat(2, |queue| queue.enqueue_fill_buffer(&numbers, &[4], 0, 128, &[]).map(drop)))?;
    let fills = |queue: &Queue, to: u32| queue.enqueue_fill_buffer(&numbers, &[to], 128, 64, &[]).map(drop);
    again(|| queue.when_else(&left, |_| Ok(()), |queue| fills(queue, 6)))?;
    again(|| queue.switch(&left, 2, |queue, case| fills(queue, 7 + case as u32)))?;
    let content = again(|| queue.enqueue_read_buffer_owned(&numbers, 0, 64, &[])?.wait())?;
    Ok(vec![content.to_vec()])
}

/// A loop with few turns, which finalize makes a chain.
pub fn unrolled(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let numbers = again(|| Buffer::from_slice(&queue, &[1_u32; 64]))?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let stir = again(|| program.kernel("stir"))?;
    let turn = body(&queue, path, |graph| {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&stir).read_write(&numbers).range(64).add()? };
        graph.fill(&numbers.slice(5..9)?, 2).add().map(drop)
    })?;
    let graph = Graph::new(&queue)?;
    let input = graph.write(&numbers, [1; 64]).add()?;
    graph.repeat(3, &turn).add()?;
    let found = graph.read(&numbers).add()?;
    let executable = again(|| graph.finalize(Finalize::new().path(path)))?;
    let plain = || executable.submit(&queue);
    let with = || executable.submit_to(&queue).with(&input, [7; 64]).submit();
    let runs = [again(plain)?, again(with)?];
    Ok(vec![result(&runs[0], &found, plain)?, result(&runs[1], &found, with)?])
}

/// Updates of a recorded body, of conditions and of numbers of turns. An update that fails has changed nothing.
pub fn updated(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let numbers = again(|| Buffer::from_slice(&queue, &[1_u32; 64]))?;
    let flags = [again(|| Buffer::from_slice(&queue, &[3_u32]))?, again(|| Buffer::from_slice(&queue, &[0_u32]))?];
    let source = "kernel void down(global uint *left) { if (*left > 0) *left -= 1; }\n\
                  kernel void add(global uint *a, uint by) { a[get_global_id(0)] = a[get_global_id(0)] * 5 + by; }";
    let program = again(|| Program::from_source(&queue, source))?;
    let (add, down) = (again(|| program.kernel("add"))?, again(|| program.kernel("down"))?);
    let (by, graph) = (Parameter::any(1_u32), Graph::new(&queue)?);
    graph.write(&numbers, [1; 64]).add()?;
    graph.write(&flags[0], [3]).add()?;
    let adds = body(&queue, path, |graph| {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&add).read_write(&numbers).arg(7_u32).range(64).add() }.map(drop)
    })?;
    let times = graph.repeat(2, &adds).add()?;
    let ends = body(&queue, path, |graph| {
        // SAFETY: as above.
        unsafe {
            graph.kernel(&add).read_write(&numbers).arg(9_u32).range(64).add()?;
            graph.kernel(&down).read_write(&flags[0]).range(1).add().map(drop)
        }
    })?;
    let turns = graph.repeat_while(&flags[0], &ends).at_most(9).add()?;
    // A recording that fails leaves the graph as it was.
    let recorded = again(|| {
        graph.record(&queue, || {
            queue.repeat(3, |queue| {
                // SAFETY: as above.
                unsafe {
                    ExecuteKernel::new(&add)
                        .set_arg_read_write(&numbers)
                        .set_arg(&by)
                        .set_global_work_size(64)
                        .enqueue_nd_range(queue)
                        .map(drop)
                }
            })
        })
    })?;
    let Some(recorded) = recorded else { unreachable!("the queue records") };
    let read = graph.read(&numbers).add()?;
    let executable = again(|| graph.finalize(Finalize::new().path(path).updatable().result_slots(6)))?;
    let submit = || executable.submit(&queue);
    let run = again(submit)?;
    let mut seen = vec![result(&run, &read, submit)?];
    for round in 0..2_usize {
        by.set(4 + round as u32)?;
        graph.repeat(3 + round as u64, &adds).replace(&times)?;
        graph.repeat_while(&flags[(round + 1) % 2], &ends).at_most(9).replace(&turns)?;
        let nodes = [times.node(), turns.node(), recorded.node()];
        once_more(
            || executable.update(&nodes),
            || {
                let run = executable.submit(&queue)?;
                if Some(&result(&run, &read, submit)?) != seen.last() {
                    return Err(DriverError::new("an update that failed has changed something", Status(0)).into());
                }
                executable.update(&nodes)
            },
        )?;
        let run = again(submit)?;
        seen.push(result(&run, &read, submit)?);
    }
    Ok(seen)
}

/// A loop of which each command is timed.
pub fn profiled(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let numbers = again(|| Buffer::from_slice(&queue, &[1_u32; 64]))?;
    let left = again(|| Buffer::from_slice(&queue, &[0_u32]))?;
    let source = "kernel void down(global uint *left) { *left -= 1; }";
    let down = again(|| again(|| Program::from_source(&queue, source))?.kernel("down"))?;
    let stir = again(|| again(|| Program::from_source(&queue, SOURCE))?.kernel("stir"))?;
    let turn = body(&queue, path, |graph| {
        // SAFETY: each work-item touches its own element.
        unsafe {
            graph.kernel(&stir).read_write(&numbers).range(64).add()?;
            graph.kernel(&down).read_write(&left).range(1).add().map(drop)
        }
    })?;
    let graph = Graph::new(&queue)?;
    graph.write(&numbers, [1; 64]).add()?;
    graph.write(&left, [4_u32]).add()?;
    graph.repeat_while(&left, &turn).add()?;
    let found = graph.read(&numbers).add()?;
    let executable = again(|| graph.finalize(Finalize::new().path(path).profiling()))?;
    let plain = || executable.submit(&queue);
    let run = again(plain)?;
    let content = result(&run, &found, plain)?;
    // A run that failed has no times, and another run has.
    let profile = again(|| {
        run.profile().or_else(|_| {
            let run = plain()?;
            run.wait()?;
            run.profile()
        })
    })?;
    let times = profile.nodes.iter().flat_map(|node| [node.node.index() as u32, node.turn.unwrap_or(99) as u32]);
    Ok(vec![content, times.collect()])
}
