//! Threads for host tasks: as many as tasks run at once, and none after nothing has run for a while.
//!
//! The number is not bounded. Tasks may wait for submissions that have tasks of their own; if such a task had to wait
//! for a free thread, all threads could wait for it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::cl::completion::event_reaper;
use crate::cl::completion::user_code::guarded;

/// How long an idle thread waits for the next job.
const PATIENCE: Duration = Duration::from_secs(5);

type Job = Box<dyn FnOnce() + Send>;

static POOL: Mutex<Pool> = Mutex::new(Pool { jobs: VecDeque::new(), threads: 0, idle: 0 });
static CAME: Condvar = Condvar::new();

struct Pool {
    jobs: VecDeque<Job>,
    threads: usize,
    /// Threads that wait for a job.
    idle: usize,
}

fn lock() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a job soon, on a thread of its own. Nothing joins these threads, not even the end of the program.
pub(in crate::exec) fn run(job: impl FnOnce() + Send + 'static) {
    let mut pool = lock();
    pool.jobs.push_back(Box::new(job));
    if pool.idle >= pool.jobs.len() {
        CAME.notify_one();
        return;
    }
    pool.threads += 1;
    drop(pool);
    if let Err(error) = thread::Builder::new().name("clgraph-task".to_owned()).spawn(work) {
        let mut pool = lock();
        pool.threads -= 1;
        if pool.threads > 0 {
            log::warn!(
                "{error}: no thread could be started for a host task, so the task waits for a thread that is \
                        busy"
            );
            CAME.notify_one();
            return;
        }
        let jobs = std::mem::take(&mut pool.jobs);
        drop(pool);
        log::warn!("{error}: no thread could be started for host tasks, so they run on the callback thread");
        jobs.into_iter().for_each(event_reaper::call);
    }
}

fn work() {
    let mut pool = lock();
    loop {
        if let Some(job) = pool.jobs.pop_front() {
            drop(pool);
            // Host tasks catch panics of the program's function themselves.
            guarded("a thread for host tasks (please report this)", job);
            pool = lock();
            continue;
        }
        pool.idle += 1;
        let (woken, waited) = CAME.wait_timeout(pool, PATIENCE).unwrap_or_else(PoisonError::into_inner);
        pool = woken;
        pool.idle -= 1;
        if waited.timed_out() && pool.jobs.is_empty() {
            pool.threads -= 1;
            return;
        }
    }
}
