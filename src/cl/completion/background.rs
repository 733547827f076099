//! Work that nobody waits for: one job at a time, on a thread of low priority.
//!
//! A job calls a driver's compiler, which may take long, or never return. Then it costs this one thread: no other job is taken.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use crate::cl::completion::threads;
use crate::cl::completion::user_code::{guarded, log_later};
use crate::ffi::{priority, process_end};

/// Nothing runs; a job runs; a job runs during which the process must not end.
static STATE: AtomicU8 = AtomicU8::new(IDLE);
const IDLE: u8 = 0;
const RUNS: u8 = 1;
const HOLDS_THE_END: u8 = 2;

/// How long the end of the process waits for a job, at most.
const AT_THE_END: Duration = Duration::from_secs(10);

/// Runs a job soon. Returns false, and drops the job, if another one runs, or if the system has no thread. `holds_the_end`: the
/// driver crashes if the process ends meanwhile.
pub(crate) fn run(holds_the_end: bool, job: impl FnOnce() + Send + 'static) -> bool {
    let taken = if holds_the_end { HOLDS_THE_END } else { RUNS };
    if STATE.compare_exchange(IDLE, taken, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return false;
    }
    if holds_the_end {
        // What is asked for last is called first. A compiler makes things of its own at its first build, which the end of the process
        // would tear down before a handler that is older than they are.
        process_end::on_end(wait);
    }
    let started = threads::start("clgraph-fuse", move || {
        priority::lower();
        guarded("clgraph (please report this)", job);
        STATE.store(IDLE, Ordering::Release);
    });
    if let Err(error) = &started {
        log_later!(Debug, "{error}: no thread could be started to build fused kernels");
        STATE.store(IDLE, Ordering::Release);
    }
    started.is_ok()
}

extern "C" fn wait() {
    stop();
}

/// Takes no more jobs, because the process ends, and waits for one that must not be interrupted.
pub(in crate::cl) fn stop() {
    let until = Instant::now() + AT_THE_END;
    loop {
        match STATE.compare_exchange(IDLE, RUNS, Ordering::AcqRel, Ordering::Acquire) {
            Err(HOLDS_THE_END) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            // It is waited for once.
            Err(HOLDS_THE_END) => return STATE.store(RUNS, Ordering::Release),
            _ => return,
        }
    }
}
