//! A hundred thousand submissions do not make the process grow, nor do fifteen thousand updates.
#![cfg(target_os = "linux")] // It reads /proc/self/status.

mod common;

use clgraph::{CommandKind, Finalize, Parameter, Path};
use common::Bench;

/// Of each of the four long measurements: by replay and by command buffers, each with and without handles.
const SUBMISSIONS: usize = 25_000;
/// Of each of the three paths.
const UPDATES: usize = 5_000;
/// A smaller growth, in bytes, is no leak.
const FLAT: usize = 2 << 20;

/// Bytes of memory that the process has.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// Returns by how many bytes the process grows when something is repeated, after a tenth of the repetitions. A driver
/// takes memory in blocks until it has enough (rusticl 1 MiB at a time), so the measurement may be repeated: a leak
/// leaks each time.
fn growth_of(work: impl Fn(usize), times: usize) -> usize {
    work(times / 10);
    let mut least = usize::MAX;
    for _ in 0..3 {
        let before = resident();
        work(times);
        least = least.min(resident().saturating_sub(before));
        if least < FLAT {
            break;
        }
    }
    least
}

/// Submits a graph of some rounds of two commands repeatedly, and returns by how many bytes the process has grown. It
/// waits for all submissions, or for one in sixteen.
fn growth(path: Path, rounds: u32, submissions: usize, observed: bool) -> usize {
    let bench = Bench::new();
    let a = bench.buffer(&[0; 64]);
    let graph = bench.graph();
    for value in 0..rounds {
        // SAFETY: the one work-item touches the first element.
        unsafe { graph.kernel(&bench.kernel("stir")).read_write(&a).range(1).add() }.unwrap();
        graph.fill(&a, value).add().unwrap();
    }
    let read = graph.read(&a.slice(..1).unwrap()).add().unwrap();
    let executable = graph.finalize(Finalize::new().path(path)).unwrap();
    let submit = |times: usize| {
        for round in 0..times {
            if observed || round % 16 == 0 {
                let run = executable.submit(&bench.queue).unwrap();
                run.wait().unwrap();
                assert_eq!(run.get(&read).unwrap()[0], rounds - 1);
            } else {
                executable.submit_to(&bench.queue).submit_detached().unwrap();
            }
        }
        bench.queue.finish().unwrap();
    };
    growth_of(submit, submissions)
}

/// Updates a number, memory and a range of an executable, which is submitted after some of the updates, or never.
/// Returns by how many bytes the process has grown.
fn growth_by_updates(path: Path, updates: usize, submitted: bool) -> usize {
    let bench = Bench::new();
    let [a, b, c] = [1, 2, 0].map(|value| bench.buffer(&[value; 64]));
    let graph = bench.graph();
    let (number, memory) = (Parameter::any(1_u32), Parameter::buffer(&a));
    let scale = bench.kernel("scale");
    let node = || graph.kernel(&scale).read(&memory).write(&c).arg(&number).range(64).range_up_to(64);
    // SAFETY: a work-item reads and writes its own elements.
    let nodes: Vec<_> = (0..16).map(|_| unsafe { node().add() }.unwrap()).collect();
    let read = graph.read(&c).add().unwrap();
    let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
    let update = |times: usize| {
        for round in 0..times {
            number.set(round as u32).unwrap();
            let (memory_now, value) = [(&a, 1), (&b, 2)][round % 2];
            memory.set(memory_now).unwrap();
            graph.set_nd_range(nodes[round % 16], [64, 32][round % 2]).unwrap();
            executable.update(&nodes).unwrap();
            if submitted && round % 16 == 15 {
                let run = executable.submit(&bench.queue).unwrap();
                run.wait().unwrap();
                assert_eq!(run.get(&read).unwrap()[0], value * 3 + round as u32);
            }
        }
        bench.queue.finish().unwrap();
    };
    growth_of(update, updates)
}

/// One test, so that nothing else runs in the process: all growth is clgraph's or the driver's.
#[test]
fn memory_is_flat_over_a_hundred_thousand_submissions_and_fifteen_thousand_updates() {
    for observed in [true, false] {
        let grown = growth(Path::Replay, 4, SUBMISSIONS, observed);
        assert!(grown < FLAT, "replay, observed: {observed}: {grown} bytes");
    }
    let device = clgraph::best_device().unwrap();
    let leaks = device.caps().platform == "Intel(R) OpenCL";
    // Long enough for a gate, on drivers where a gate pays.
    if !(leaks && device.path().unwrap().0 == Path::Native) {
        let grown = growth(Path::Auto, 160, SUBMISSIONS / 20, true);
        assert!(grown < FLAT, "automatic: {grown} bytes");
    }
    // If nothing can be recorded, the native path replays, and does not leak either.
    if leaks && device.caps().can_record(CommandKind::Kernel).is_ok() {
        // A fact of docs/drivers.md. If this fails, the driver was repaired, and the table has to be checked.
        let grown = growth(Path::Native, 4, SUBMISSIONS / 50, false);
        assert!(grown > SUBMISSIONS / 50 * 8 * 1000, "command buffers lose less than 1 KB a command: {grown} bytes");
    } else {
        for observed in [true, false] {
            let grown = growth(Path::Native, 4, SUBMISSIONS, observed);
            assert!(grown < FLAT, "command buffers, observed: {observed}: {grown} bytes");
        }
    }
    for path in [Path::Replay, Path::Gated, Path::Native] {
        // The check above covers what the driver leaks at each enqueue of a command buffer.
        let submitted = path != Path::Native || !leaks;
        let grown = growth_by_updates(path, UPDATES, submitted);
        assert!(grown < FLAT, "updates, {path}: {grown} bytes");
    }
}
