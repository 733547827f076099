//! Submissions as scenarios have them: by which paths, until the autotuner has settled, and as a variant.

use clgraph::{Executable, Path, Queue, TuningReport, TuningState};

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
    tuning.strategies.iter().any(|one| !one.taken && one.total_nanos.is_some_and(near))
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
