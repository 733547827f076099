//! Work that nobody waits for: one job at a time, on a thread of low priority.
//!
//! A job calls a driver's compiler, which may take long, or never return. Then it costs this one thread: no other job is taken. The end
//! of the process waits for a job, because compilers crash when they are torn down at work.

use std::process;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::cl::completion::threads;
use crate::cl::completion::user_code::{guarded, log_later};
use crate::ffi::{priority, process_end};

static STATE: AtomicU8 = AtomicU8::new(IDLE);
const IDLE: u8 = 0;
const BUSY: u8 = 1;
/// The process ends: no job is taken.
const OVER: u8 = 2;

/// The process whose thread runs the job: a forked child has the state, and no such thread.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// How long the end of the process waits for a job, at most.
const AT_THE_END: Duration = Duration::from_secs(10);

/// Runs a job soon. Returns false, and drops the job, if another one runs, or if the system has no thread.
pub(crate) fn run(job: impl FnOnce() + Send + 'static) -> bool {
    if STATE.compare_exchange(IDLE, BUSY, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return false;
    }
    PROCESS.store(process::id(), Ordering::Relaxed);
    // What is asked for last is called first. A compiler makes things of its own at its first build, which the end of the process
    // would tear down before it calls a handler that is older than they are.
    process_end::on_end(wait);
    // Not when the process ends.
    let done = || {
        let _ = STATE.compare_exchange(BUSY, IDLE, Ordering::AcqRel, Ordering::Relaxed);
    };
    let started = threads::start("clgraph-fuse", move || {
        priority::lower();
        guarded("clgraph (please report this)", job);
        done();
    });
    if let Err(error) = &started {
        log_later!(Debug, "{error}: no thread could be started to build fused kernels");
        done();
    }
    started.is_ok()
}

/// Waits for the job that runs, because the process ends, and takes no more jobs.
extern "C" fn wait() {
    if PROCESS.load(Ordering::Relaxed) != process::id() {
        return;
    }
    let until = Instant::now() + AT_THE_END;
    while STATE.compare_exchange(IDLE, OVER, Ordering::AcqRel, Ordering::Acquire) == Err(BUSY) {
        if Instant::now() >= until {
            return STATE.store(OVER, Ordering::Release);
        }
        thread::sleep(Duration::from_millis(1));
    }
}
