//! The paths between replay and command buffers, and how one of them is found.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use clgraph::{Buffer, Finalize, NativeCommand, Path, PathReason, Program, Queue, QueueProperties, Result, UserEvent};

use crate::native::copy;
use crate::native_commands::recorded_fill;
use crate::uses::{SOURCE, again, beside, result, setup};

/// Commands side by side, of which some wait for each other; on an in-order queue and on an out-of-order queue.
fn side_by_side(path: Path, submissions: usize) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let other = beside(&queue, QueueProperties::new().out_of_order(true))?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let (stir, scale) = (again(|| program.kernel("stir"))?, again(|| program.kernel("scale"))?);
    let buffer = |value: u32| again(|| Buffer::from_slice(&queue, &[value; 16]));
    let (a, b, c) = (buffer(1)?, buffer(2)?, buffer(3)?);
    let graph = clgraph::Graph::new(&queue)?;
    graph.fill(&a, 4).add()?;
    graph.write(&b, [5; 16]).add()?;
    // SAFETY: each work-item touches its own element.
    unsafe {
        graph.kernel(&stir).read_write(&a).range(16).add()?;
        graph.kernel(&stir).read_write(&b).range(16).add()?;
        graph.kernel(&scale).read(&a).write(&c).arg(7_u32).range(16).add()?;
    }
    graph.copy(&b.slice(..4)?, &a.slice(..4)?).add()?;
    let reads = [graph.read(&a).add()?, graph.read(&c).add()?];
    let executable = again(|| graph.finalize(Finalize::new().path(path).result_slots(6)))?;
    let mut results = Vec::new();
    for queue in [&queue, &other].into_iter().cycle().take(submissions) {
        let submit = || executable.submit(queue);
        let run = again(submit)?;
        for read in &reads {
            results.push(result(&run, read, submit)?);
        }
        again(|| executable.submit_to(queue).submit_detached())?;
    }
    drop(executable);
    let finish = |queue: &Queue| again(|| queue.finish());
    finish(&queue)?;
    finish(&other)?;
    Ok(results)
}

/// Over several queues.
pub fn queues(path: Path) -> Result<Vec<Vec<u32>>> {
    side_by_side(path, 2)
}

/// By one strategy after another, timed.
pub fn timed(path: Path) -> Result<Vec<Vec<u32>>> {
    side_by_side(path, 4)
}

/// How often executables with every instruction had command buffers that were asked for.
pub static WITH_COMMAND_BUFFERS: AtomicUsize = AtomicUsize::new(0);

/// Branches with a host task, external events, memory of the graph and native commands, and a join: all that a schedule
/// can have at once, but not timed.
pub fn every_instruction(path: Path) -> Result<Vec<Vec<u32>>> {
    all_at_once(path, false)
}

/// The same, timed. Without native commands where it is to run on several queues, because they keep everything on one.
pub fn every_instruction_timed(path: Path) -> Result<Vec<Vec<u32>>> {
    all_at_once(path, true)
}

fn all_at_once(path: Path, profiled: bool) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let stir = again(|| program.kernel("stir"))?;
    let buffer = |value: u32| again(|| Buffer::from_slice(&queue, &[value; 64]));
    let (a, b, c) = (buffer(1)?, buffer(2)?, buffer(3)?);
    let graph = clgraph::Graph::new(&queue)?;
    // SAFETY: each work-item touches its own element.
    let stir = |buffer: &Buffer<u32>| unsafe { graph.kernel(&stir).read_write(buffer).range(64).add() };
    // SAFETY: the functions enqueue and record what touches the memory that the nodes name.
    let native = |command: NativeCommand| unsafe { graph.native_command(command).add() };
    let has_natives = path != Path::Queues;
    graph.fill(&a, 1).add()?;
    stir(&a)?;
    graph.host_task(|_| ()).reads_and_writes(&a).add()?;
    if has_natives {
        native(recorded_fill(&queue, profiled, 10).writes(&a.slice(56..)?))?;
    }
    stir(&a)?;
    let memory = graph.alloc::<u32>(64).add()?;
    graph.fill(&memory, 7_u32).add()?;
    let copied = if has_natives {
        native(recorded_fill(&queue, profiled, 11).writes(&memory.slice(..4)?))?;
        native(NativeCommand::enqueued(copy).reads(&memory).writes(&b))?
    } else {
        graph.copy(&memory, &b).add()?
    };
    graph.free(&memory).add()?;
    let go_on = graph.wait_event().after(copied).add()?;
    graph.fill(&b.slice(32..)?, 8).after(go_on).add()?;
    if has_natives {
        native(recorded_fill(&queue, profiled, 12).writes(&b.slice(40..44)?))?;
    }
    let input = graph.write(&c, [9; 64]).add()?;
    let stirred = stir(&c)?;
    let done = graph.signal_event().after(stirred).add()?;
    graph.copy(&b.slice(..16)?, &a.slice(..16)?).after(done).add()?;
    let reads = [graph.read(&a).add()?, graph.read(&b).add()?, graph.read(&c).add()?];
    let options = Finalize::new().path(path).result_slots(6);
    let options = if profiled { options.profiling() } else { options };
    let executable = again(|| graph.finalize(options.clone()))?;
    let report = executable.report();
    let several = report.tuning.strategies[0].path == Path::Queues;
    let is_able = queue.device().caps().platform != "rusticl";
    assert_eq!(several, is_able && path == Path::Queues, "{report}");
    // If the driver refuses other commands, they are replayed.
    if report.segments.iter().any(|one| one.path == Path::Native && one.why == PathReason::Asked) {
        WITH_COMMAND_BUFFERS.fetch_add(1, SeqCst);
    }
    let submit = || {
        let (go, signalled) = (again(|| UserEvent::new(&queue))?, again(|| UserEvent::new(&queue))?);
        let run =
            executable.submit_to(&queue).with(&input, [5; 64]).with_event(&go_on, &go).with_signal(&done, &signalled);
        let run = run.submit();
        go.complete()?;
        let run = run?;
        run.wait()?;
        signalled.wait()?;
        Ok(run)
    };
    let run = again(submit)?;
    let mut results: Vec<Vec<u32>> = Vec::new();
    for read in &reads {
        results.push(result(&run, read, submit)?);
    }
    if profiled {
        // A run that failed has no times, and another run has.
        let profile = again(|| run.profile().or_else(|_| submit()?.profile()))?;
        results.push(vec![profile.nodes.len() as u32]);
    }
    Ok(results)
}
