//! Events that PoCL may look at for a moment after nobody has them any more.
//!
//! An event of PoCL 3.1 says that it failed before the driver is done with it, and the driver keeps no reference of its own
//! meanwhile: `pocl_broadcast` goes on to use what it has told of an end, and what a failed event waited for names it until that is
//! told of. So the last reference of an event that failed goes a second later; that of one that may still fail, after its end.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::event::{DriverEvent, Progress};
use super::watch;

/// How long an event that failed is kept.
const WHILE: Duration = Duration::from_secs(1);

static FAILED: Mutex<VecDeque<(Instant, DriverEvent)>> = Mutex::new(VecDeque::new());

fn failed() -> MutexGuard<'static, VecDeque<(Instant, DriverEvent)>> {
    FAILED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Drops an event that may fail as soon as no driver looks at it any more. Its queue must have been flushed if it is not over.
pub(super) fn release(event: DriverEvent) {
    match event.progress() {
        Ok(Progress::Complete) => {}
        Ok(Progress::Waiting | Progress::Running) => watch::when_done(event.clone(), move |_| linger(event)),
        Ok(Progress::Failed(_)) | Err(_) => linger(event),
    }
}

fn linger(event: DriverEvent) {
    let mut failed = failed();
    failed.push_back((Instant::now(), event));
    if failed.len() > 1 {
        return; // There is a thread for them.
    }
    drop(failed);
    if let Err(error) = thread::Builder::new().name("clgraph-failed".to_owned()).spawn(let_go) {
        log::warn!("{error}: no thread for the events of commands that failed, so they are kept for ever");
    }
}

fn let_go() {
    loop {
        let mut failed = failed();
        let Some(age) = failed.front().map(|(since, _)| since.elapsed()) else { return };
        let over = if age < WHILE { None } else { failed.pop_front() };
        // The driver is not called under the lock.
        drop(failed);
        if over.is_none() {
            thread::sleep(WHILE - age);
        }
    }
}
