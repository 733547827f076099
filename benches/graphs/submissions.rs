//! Submissions as scenarios have them: by which paths, until the autotuner has settled, and as a variant.

use std::time::{Duration, Instant};

use clgraph::{Executable, Finalize, Fuse, FusingState, Graph, Path, Queue, TuningReport, TuningState};

use crate::Failure;
use crate::rounds::{Times, Variant, timed};

pub const PATHS: [(&str, Path); 3] = [("replay", Path::Replay), ("native", Path::Native), ("auto", Path::Auto)];

/// Returns whether the autotuner has not settled. The first trial does not count, because the driver is slower in the
/// beginning.
pub fn is_trying(executable: &Executable) -> bool {
    let tuning = executable.report().tuning;
    tuning.state == TuningState::Trying
        || tuning.state == TuningState::Settled && tuning.trials < 2 && has_rival(&tuning)
}

/// Returns whether other strategies were about as fast as the chosen one: they are tried again soon.
fn has_rival(tuning: &TuningReport) -> bool {
    let taken = tuning.strategies.iter().find(|one| one.taken).and_then(|one| one.total_nanos);
    let near = |nanos: u64| taken.is_some_and(|taken| nanos <= taken + taken * 3 / 10);
    // What is fused and not taken may be given up.
    tuning.strategies.iter().any(|one| !one.taken && !one.fused && one.total_nanos.is_some_and(near))
}

/// Submits until the autotuner has settled, because the measurement is about the time after that.
pub fn settle(executable: &Executable, queue: &Queue) -> Result<(), Failure> {
    for _ in 0..1_000 {
        if !is_trying(executable) {
            break;
        }
        executable.submit(queue)?.wait()?;
    }
    log::info!("{}", executable.report());
    Ok(())
}

/// Submits until it is known whether the executable stays fused, for some seconds at most.
pub fn settle_fused(executable: &Executable, queue: &Queue) -> Result<(), Failure> {
    use FusingState::{Building, Trying, Waiting};
    let begun = Instant::now();
    while matches!(executable.report().fusing, Waiting | Building | Trying) && begun.elapsed() < SETTLING {
        for _ in 0..4 {
            executable.submit(queue)?.wait()?;
        }
    }
    log::info!("{}", executable.report());
    Ok(())
}

const SETTLING: Duration = Duration::from_secs(20);

/// A graph by the path that clgraph chooses: unfused, fused at finalize, and fused where clgraph has found out that it pays.
pub fn fused_or_not<'a>(queue: &'a Queue, graph: &Graph) -> Result<Vec<Variant<'a>>, Failure> {
    let ways = [("unfused", Fuse::Off), ("fused", Fuse::Now), ("auto", Fuse::Auto)];
    let variant = |(variant, fuse)| {
        let options = Finalize::new().path(Path::Auto).fuse(fuse).fuse_after(Duration::ZERO);
        let executable = graph.finalize(options)?;
        settle_fused(&executable, queue)?;
        settle(&executable, queue)?;
        let run = move || {
            let (run, submit) = timed(|| Ok(executable.submit(queue)?))?;
            let ((), wait) = timed(|| Ok(run.wait()?))?;
            Ok(Times { submit: Some(submit), total: submit + wait, ..Times::default() })
        };
        Ok(Variant { name: variant, run: Box::new(run) })
    };
    ways.into_iter().map(variant).collect()
}

/// A variant that submits and waits.
pub fn submission<'a>(
    variant: &'static str,
    submit: impl Fn() -> Result<(), Failure> + 'a,
    wait: impl Fn() -> Result<(), Failure> + 'a,
) -> Variant<'a> {
    let run = move || {
        let ((), submit) = timed(&submit)?;
        let ((), wait) = timed(&wait)?;
        Ok(Times { submit: Some(submit), total: submit + wait, ..Times::default() })
    };
    Variant { name: variant, run: Box::new(run) }
}
