//! What it costs to find out whether fusing pays: rule Z2.

use std::time::Duration;

use clgraph::{Buffer, Finalize, Fuse, FusingState, Graph, Program, Queue};

use crate::Failure;
use crate::rounds::{Effort, Measured, Times, timed};

pub const LAUNCHES: usize = 32;
/// Submissions before these are not usual ones: drivers compile kernels.
const WARM: usize = 4;
/// An executable that has not settled after so much time never does.
const PATIENCE: Duration = Duration::from_secs(300);

/// Chains of kernels. Each has work-items that turn as often as memory says: nobody knows before it runs whether one core, which does all of
/// them one after another, takes longer than the launches that it saves.
pub const CHAINS: [(&str, usize, u32); 2] =
    [("until a chain is fused", 64, 1), ("until a chain is known to stay unfused", 4096, 5_000)];

/// Measures so many programs, each of which nobody has built before. `loop` is the time of all submissions until it is known whether
/// fusing pays; `build` is that of the thread in the background, and `trial` is by how much submissions took longer, after the build, than those before it.
pub fn measured(queue: &Queue, items: usize, turns: u32, effort: Effort) -> Result<Vec<Measured>, Failure> {
    let (mut all, mut builds, mut trials) = (Vec::new(), Vec::new(), Vec::new());
    // To see that it works nothing has to pay.
    let (programs, turns, options) = match effort {
        Effort::Quick => (1, turns.min(10), Finalize::new().fuse_after(Duration::ZERO)),
        Effort::Few | Effort::Full => (3, turns, Finalize::new()),
    };
    for _ in 0..programs {
        let spent = until_known(queue, items, turns, options.clone().fuse(Fuse::Auto))?;
        let total = |total| Times { total, ..Times::default() };
        all.push(total(spent.all));
        builds.push(total(spent.build));
        trials.push(total(spent.trial));
    }
    Ok(vec![Measured::new("loop", all), Measured::new("build", builds), Measured::new("trial", trials)])
}

struct Spent {
    all: Duration,
    build: Duration,
    trial: Duration,
}

fn until_known(queue: &Queue, items: usize, turns: u32, options: Finalize) -> Result<Spent, Failure> {
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
    let report = loop {
        let report = executable.report();
        let times = match report.fusing {
            FusingState::Waiting => Some(&mut before),
            FusingState::Building => None,
            FusingState::Trying => Some(&mut after),
            _ => break report,
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
    Ok(Spent { all, build: report.fuse_build.unwrap_or_default(), trial })
}
