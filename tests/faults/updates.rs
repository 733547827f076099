//! Updates of executables.

use clgraph::{
    Buffer, DriverError, Finalize, Fuse, FusingState, Graph, Parameter, Path, Program, Result, Status, WhyNotFused,
};

use crate::uses::{SOURCE, again, once_more, result, setup};

/// Updates of buffers, values, ranges and launches. An update that fails has changed nothing.
pub fn in_a_graph(path: Path) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let (scale, stir) = (again(|| program.kernel("scale"))?, again(|| program.kernel("stir"))?);
    let a = again(|| Buffer::from_slice(&queue, &[7_u32; 64]))?;
    let b = again(|| Buffer::from_slice(&queue, &[9_u32; 64]))?;
    let c = again(|| Buffer::<u32>::new(&queue, 64))?;
    let graph = Graph::new(&queue)?;
    let (input, by) = (Parameter::buffer(&a), Parameter::any(1_u32));
    // SAFETY: a work-item touches its own element.
    let (nodes, group) = unsafe {
        let first = graph.kernel(&scale).read(&input).write(&c).arg(&by).range(64).add()?;
        let ranges = [64, 8];
        let launches = ranges.map(|range| graph.kernel(&stir).read_write(&c).range(range).range_up_to(64));
        let group = graph.command_group(launches)?;
        ([first, graph.command_group_node(&group).add()?, graph.fill(&c.slice(..2)?, 3).add()?], group)
    };
    let read = graph.read(&c).add()?;
    let executable = again(|| graph.finalize(Finalize::new().path(path).updatable().result_slots(6)))?;
    let submit = || executable.submit(&queue);
    let run = again(submit)?;
    let before = result(&run, &read, submit)?;
    // One submission is in flight.
    let under_way = again(submit)?;
    input.set(&b)?;
    by.set(5)?;
    group.set_active_index(1)?;
    graph.fill(&c.slice(2..4)?, 4).replace(nodes[2])?;
    once_more(
        || executable.update(&nodes),
        || {
            let run = executable.submit(&queue)?;
            if result(&run, &read, submit)? != before {
                return Err(DriverError::new("an update that failed has changed something", Status(0)).into());
            }
            executable.update(&nodes)
        },
    )?;
    let run = again(submit)?;
    let after = result(&run, &read, submit)?;
    // If waiting fails, another submission would not show it, because it has the new values.
    let mut seen = before.clone();
    let look = || under_way.wait().and_then(|()| Ok(under_way.get(&read)?.to_vec()));
    once_more(|| look().map(|got| seen = got), || Ok(()))?;
    // Arguments alone, which some drivers change in place.
    input.set(&a)?;
    by.set(6)?;
    once_more(
        || executable.update(&nodes[..1]),
        || {
            let run = executable.submit(&queue)?;
            if result(&run, &read, submit)? != after {
                return Err(DriverError::new("an update that failed has changed something", Status(0)).into());
            }
            executable.update(&nodes[..1])
        },
    )?;
    let run = again(submit)?;
    let last = result(&run, &read, submit)?;
    Ok(vec![before, after, seen, last])
}

/// The same nodes get other numbers again and again.
pub fn again_and_again(path: Path) -> Result<Vec<Vec<u32>>> {
    numbers(&Finalize::new().path(path).updatable().commands_per_buffer(1))
}

/// The same, with fused launches. What the driver refuses to a fused kernel is no error of an update: it goes on without.
pub fn fused(path: Path) -> Result<Vec<Vec<u32>>> {
    numbers(&Finalize::new().path(path).updatable().fuse(Fuse::Now))
}

/// Launches that are fused at finalize, with memory of the graph. What the driver refuses leaves them as they are.
pub fn fused_at_finalize(path: Path) -> Result<Vec<Vec<u32>>> {
    fused_once(&Finalize::new().path(path).fuse(Fuse::Now))
}

/// The same, with fused kernels that the first finalize keeps in files, and the second one finds there. What is not kept is built again.
pub fn kept(path: Path) -> Result<Vec<Vec<u32>>> {
    let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{}.json", std::process::id()));
    let options = Finalize::new().path(path).fuse(Fuse::Now).tuning_cache(&cache);
    let programs = cache.with_extension("json.programs");
    let _ = std::fs::remove_dir_all(&programs);
    let results = [fused_once(&options)?, fused_once(&options)?];
    let _ = std::fs::remove_dir_all(&programs);
    Ok(results.concat())
}

fn fused_once(options: &Finalize) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let stir = again(|| program.kernel("stir"))?;
    let numbers = again(|| Buffer::from_slice(&queue, &[1_u32; 64]))?;
    let graph = Graph::new(&queue)?;
    let own = graph.alloc::<u32>(64).add()?;
    let input = graph.write(&numbers, [5_u32; 64]).add()?;
    graph.copy(&numbers, &own).add()?;
    // SAFETY: a work-item touches its own element.
    unsafe {
        graph.kernel(&stir).read_write(&own).range(64).add()?;
        graph.kernel(&stir).read_write(&own).range(64).add()?;
        graph.kernel(&stir).read_write(&numbers).range(64).add()?;
    }
    let read = graph.read(&own).add()?;
    let executable = again(|| graph.finalize(options.clone()))?;
    let plain = || executable.submit(&queue);
    let with = || executable.submit_to(&queue).with(&input, [7; 64]).submit();
    let runs = [again(plain)?, again(with)?];
    Ok(vec![result(&runs[0], &read, plain)?, result(&runs[1], &read, with)?])
}

fn numbers(options: &Finalize) -> Result<Vec<Vec<u32>>> {
    let queue = setup()?;
    let program = again(|| Program::from_source(&queue, SOURCE))?;
    let scale = again(|| program.kernel("scale"))?;
    let buffers = [7_u32, 8, 9].map(|value| again(|| Buffer::from_slice(&queue, &[value; 64])));
    let [a, b, c] = buffers;
    let (a, b, c) = (a?, b?, c?);
    let graph = Graph::new(&queue)?;
    let numbers = [1_u32, 2].map(Parameter::any);
    // SAFETY: a work-item touches its own element.
    let nodes = unsafe {
        let first = graph.kernel(&scale).read(&a).write(&b).arg(&numbers[0]).range(64).add()?;
        [first, graph.kernel(&scale).read(&b).write(&c).arg(&numbers[1]).range(64).add()?]
    };
    let read = graph.read(&c).add()?;
    let executable = again(|| graph.finalize(options.clone()))?;
    let submit = || executable.submit(&queue);
    let run = again(submit)?;
    let mut seen = vec![result(&run, &read, submit)?];
    drop(run);
    for round in 3..7 {
        numbers.iter().try_for_each(|number| number.set(round))?;
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
    let report = executable.report();
    let says = report.not_fused.iter().any(|of| matches!(of.why, WhyNotFused::Refused { .. }));
    if says != (report.fusing == FusingState::Refused) {
        return Err(DriverError::new("the report does not say what was refused", Status(0)).into());
    }
    Ok(seen)
}
