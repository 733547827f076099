//! Threads for host tasks: as many as tasks run at once, and none when nothing has run for a while.
//!
//! There is no limit but the system's: tasks may wait for submissions with tasks of their own, so one that had to wait for a
//! thread could be what all of them wait for.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::cl::user_code::guarded;
use crate::cl::watch;

/// How long a thread waits for the next job.
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

/// Runs a job on a thread soon. Nobody waits for these threads, the end of the program neither.
pub(super) fn run(job: impl FnOnce() + Send + 'static) {
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
            log::warn!("{error}: no new thread for a host task, so it waits for one that is busy");
            CAME.notify_one();
            return;
        }
        let jobs = std::mem::take(&mut pool.jobs);
        drop(pool);
        log::warn!("{error}: no thread for host tasks, so callbacks wait for them");
        jobs.into_iter().for_each(watch::call);
    }
}

fn work() {
    let mut pool = lock();
    loop {
        if let Some(job) = pool.jobs.pop_front() {
            drop(pool);
            // Host tasks catch their panics themselves.
            guarded("a host task's thread (please report it)", job);
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
