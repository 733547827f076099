//! What it costs to find out whether fusing pays: rule Z2.

use std::collections::BTreeMap;
use std::time::Duration;

use clgraph::{Buffer, Finalize, Fuse, FusingState, Graph, Program, Queue};

use crate::Failure;
use crate::rounds::{Effort, Measured, Times, timed};

pub const LAUNCHES: usize = 32;
/// Submissions before these are not usual ones: drivers compile kernels.
const WARM: usize = 4;
/// An executable that has not settled after so much time never does.
const PATIENCE: Duration = Duration::from_secs(300);

/// Chains of kernels: their work-items, and how often each work-item turns, which memory says. So nobody knows before it runs whether one core, which
/// does all work-items of all launches, takes longer than the launches that it saves. And the names of rows, where it is fused and where it is not.
const CHAINS: [(usize, u32, [&str; 2]); 2] = [
    (64, 1, ["until a chain is fused", "until a short chain is known to stay unfused"]),
    (1024, 5_000, ["until a long chain is fused", "until a chain is known to stay unfused"]),
];

/// Measures some programs, each of which nobody has built before. Returns the rows by their names. `loop` is the time of all
/// submissions until it was known whether fusing pays; `build` is that of the thread in the background, and `trial` is by how much submissions took
/// longer, after the build, than those before it; `both` is the sum.
pub fn measured(queue: &Queue, effort: Effort) -> Result<BTreeMap<&'static str, Vec<Measured>>, Failure> {
    // To see that it works nothing has to pay.
    let is_quick = effort == Effort::Quick;
    let options = if is_quick { Finalize::new().fuse_after(Duration::ZERO) } else { Finalize::new() };
    let mut all = BTreeMap::<_, [Vec<Times>; 4]>::new();
    for (items, turns, names) in CHAINS {
        for _ in 0..if is_quick { 1 } else { 3 } {
            let turns = if is_quick { 1 } else { turns };
            let Some(spent) = until_known(queue, items, turns, options.clone().fuse(Fuse::Auto))? else { continue };
            let times = [spent.all, spent.build, spent.trial, spent.build + spent.trial];
            let rounds = all.entry(names[usize::from(!spent.is_fused)]).or_default().iter_mut();
            rounds.zip(times).for_each(|(rounds, total)| rounds.push(Times { total, ..Times::default() }));
        }
    }
    let names = ["loop", "build", "trial", "both"];
    let rows =
        |rounds: [Vec<Times>; 4]| names.into_iter().zip(rounds).map(|(name, rounds)| Measured::new(name, rounds));
    Ok(all.into_iter().map(|(ends, rounds)| (ends, rows(rounds).collect())).collect())
}

struct Spent {
    is_fused: bool,
    all: Duration,
    build: Duration,
    trial: Duration,
}

fn until_known(queue: &Queue, items: usize, turns: u32, options: Finalize) -> Result<Option<Spent>, Failure> {
    // No cache of a driver has this one.
    let number = fastrand::u32(..);
    let source = format!(
        "kernel void advance(global uint *to, global const uint *turns, uint by) {{
            size_t i = get_global_id(0);
            uint x = to[i];
            for (uint turn = 0; turn < turns[0]; turn++) x = x * by + {number}u;
            to[i] = x;
        }}"
    );
    let kernel = Program::from_source(queue, &source)?.kernel("advance")?;
    let (memory, turns) = (Buffer::from_slice(queue, &vec![1_u32; items])?, Buffer::from_slice(queue, &[turns])?);
    let graph = Graph::new(queue)?;
    for at in 0..LAUNCHES as u32 {
        // SAFETY: a work-item touches its own element, and reads the only one of the other memory.
        unsafe { graph.kernel(&kernel).read_write(&memory).read(&turns).arg(2 * at + 1).range(items).add()? };
    }
    let executable = graph.finalize(options)?;
    let (mut all, mut before, mut after) = (Duration::ZERO, Vec::new(), Vec::new());
    let (report, is_fused) = loop {
        let report = executable.report();
        let times = match report.fusing {
            FusingState::Waiting => Some(&mut before),
            FusingState::Building => None,
            FusingState::Trying => Some(&mut after),
            FusingState::Taken => break (report, true),
            FusingState::NotFaster => break (report, false),
            _ => {
                log::warn!("nothing was tried: {report}");
                return Ok(None);
            }
        };
        let ((), took) = timed(|| Ok(executable.submit(queue)?.wait()?))?;
        all += took;
        times.into_iter().for_each(|times| times.push(took));
        if all > PATIENCE {
            return Err(format!("it is not known whether fusing pays: {report}").into());
        }
    };
    log::info!("{report}");
    before.drain(..WARM.min(before.len()));
    before.sort_unstable();
    let usual = before.get(before.len() / 2).copied().unwrap_or_default();
    let trial = after.iter().sum::<Duration>().saturating_sub(usual * after.len() as u32);
    Ok(Some(Spent { is_fused, all, build: report.fuse_build.unwrap_or_default(), trial }))
}
