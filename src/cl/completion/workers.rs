//! Threads for host tasks: as many as tasks run at once, and none after nothing has run for a while.
//!
//! Tasks may wait for submissions that have tasks of their own; if such a task had to wait for a free thread, all
//! threads could wait for it. So there is a thread for each task, as far as the system has them. Where no more can be
//! had, a task waits for a thread that is busy; and where all threads wait for submissions, so that none of them would
//! ever be free, the newest wait or the newest task is refused with an error.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use crate::cl::completion::event_reaper;
use crate::cl::completion::gates::{self, By, Circle, GateId, Gates, Wait};
use crate::cl::completion::reentrancy;
use crate::cl::completion::threads;
use crate::cl::completion::user_code::{guarded, log_later};
use crate::error::SubmitError;

/// How long all threads have to wait before a wait or a task is refused. A thread whose wait has ended counts as waiting
/// until the system lets it run again, and then it may take another job. A wait that is circular only if a future waits is
/// refused after the same time, and so is a poll that closes a circle.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// How long an idle thread waits for the next job.
const PATIENCE: Duration = Duration::from_secs(5);

/// Threads, at most. Linux has 65 530 memory maps for a process, and a thread takes four: a thread that gets no maps
/// ends the process while it starts, which nobody can catch. So all pools together stay far below a quarter of that, and
/// none of them is without a limit.
const MOST: usize = 8192;
const MOST_OF_OWN: usize = 2048;

type Run = Box<dyn FnOnce() + Send>;

struct Job {
    run: Run,
    /// The gate that opens after the submission of a host task.
    gate: Option<GateId>,
}

/// For host tasks.
static WORKERS: Workers = Workers::new("host tasks", MOST, false);

/// For jobs of clgraph's own: host tasks and callbacks may wait for them, and cannot use up these threads. One of them never
/// ends, because there may be no other where the system has no more.
static OWN: Workers = Workers::new("clgraph's own jobs", MOST_OF_OWN, true);

/// For wakers, which are code of the program and may block. If all of these threads do, the log says so once.
static WAKERS: Workers = Workers::new("wakers", MOST_OF_OWN, true);

struct Workers {
    pool: Mutex<Pool>,
    came: Condvar,
    /// Whether one thread, once there is one, never ends.
    keeps_one: bool,
    /// Whether there is such a thread.
    has_one: AtomicBool,
    /// What its jobs are.
    jobs: &'static str,
    /// The log has said that there can be no more threads.
    said: Once,
}

struct Pool {
    jobs: VecDeque<Job>,
    threads: usize,
    /// Threads that wait for a job.
    idle: usize,
    /// Threads whose tasks wait, with the number of their waits: see [`WaitGuard`]. Futures can wait for several things at
    /// once.
    waiting: BTreeMap<u64, usize>,
    /// Whether no more threads could be had the last time.
    is_short: bool,
    /// How many threads there can be.
    most: usize,
    /// Jobs that were refused, oldest first.
    refused: VecDeque<Refused>,
}

/// A job that is done after all if a thread is free soon.
struct Refused {
    job: Job,
    until: Instant,
    /// What is done otherwise.
    give_up: Run,
}

impl Pool {
    /// Returns whether each thread waits, so that none of them will take another job before that has run.
    fn all_wait(&self) -> bool {
        self.waiting.len() >= self.threads
    }

    /// Returns the place of the next job. Where threads are short, tasks that another one waits for come first: any other
    /// may wait too, and take one more thread.
    fn next(&self) -> Next {
        if !self.is_short || self.jobs.is_empty() || self.waiting.is_empty() {
            return Next::Take(0);
        }
        match gates::first_awaited(self.jobs.iter().map(|job| job.gate)) {
            Some(awaited) => Next::Take(awaited),
            None if self.waiting.len() + 1 < self.threads => Next::Take(0),
            None => Next::OnlyThread,
        }
    }
}

/// What a thread does next.
enum Next {
    /// The job at this place, if there is one.
    Take(usize),
    /// It is the only one that does not wait, and nobody waits for any of the jobs. If it took one, there might be no thread
    /// for what the others wait for, which may come in a moment.
    OnlyThread,
}

/// Runs a job of clgraph's own soon, on a thread of its own. Nothing joins these threads, not even the end of the
/// program.
pub(crate) fn run(job: impl FnOnce() + Send + 'static) {
    if let Err(job) = OWN.start(None, Box::new(job)) {
        event_reaper::call(job);
    }
}

/// Wakes a waker soon, on a thread of its own: a callback, or another waker, may block until it is called.
pub(crate) fn wake(waker: Waker) {
    let wake = || guarded("a waker", || waker.wake());
    if let Err(job) = WAKERS.start(None, Box::new(wake)) {
        // Only if there was no thread to have when the first waker came: see `expect_wakers`.
        event_reaper::call(job);
    }
}

/// Wakers will be woken: they get a thread now, as there may be none to have later. On the thread for callbacks they could
/// not run, because a callback may be what waits for them.
pub(crate) fn expect_wakers() {
    WAKERS.get_one();
}

/// Runs a host task soon, on a thread of its own, or returns the job: it seems that no thread would ever run it. A
/// refusal is sure only after [`start_patiently`]. The gate is that of the submission.
pub(crate) fn start(gate: Option<GateId>, job: Run) -> Result<(), Run> {
    // Host tasks may use up the threads of the system, so those for clgraph's own jobs and for wakers come first.
    OWN.get_one();
    WAKERS.get_one();
    WORKERS.start(gate, job)
}

/// Starts a host task that [`start`] has refused as soon as a thread is free. If none is for as long as [`GRACE`], it calls
/// `give_up` on a thread of clgraph's own.
pub(crate) fn start_patiently(gate: Option<GateId>, job: Run, give_up: impl FnOnce() + Send + 'static) {
    WORKERS.refuse(Job { run: job, gate }, Box::new(give_up));
    // A thread of clgraph's own looks at refused jobs between its own, so there has to be one.
    if OWN.start(None, Box::new(|| ())).is_err() {
        event_reaper::call(|| {
            while WORKERS.look_at_refused() {
                thread::sleep(GRACE / 100);
            }
        });
    }
}

/// How many jobs are refused. Mostly none: then nobody takes the lock.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

/// The thread waits for something that other host tasks may have to run for, until this is dropped. It counts if a
/// host task waits. It is boxed because nearly all waits are of other threads, which then carry a null pointer around.
pub(crate) struct WaitGuard(Option<Box<Counted>>);

struct Counted {
    workers: &'static Workers,
    /// The number of the thread that waits.
    thread: u64,
    _wait: Wait,
}

thread_local! {
    /// The number of this thread.
    static THREAD: u64 = {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

impl WaitGuard {
    /// Begins a wait for something that comes after closed gates. In a host task it returns an error if no thread were left
    /// for the tasks that are waited for, or if these gates open only after the submission of the task that waits. A wait
    /// counts also where no gate is known: it may be for commands behind an event of the program, which another task
    /// completes.
    pub(crate) fn begin(gates: &Gates) -> Result<Self, SubmitError> {
        if reentrancy::in_task() { Self::within(&WORKERS, gates, By::Call) } else { Ok(Self(None)) }
    }

    /// The same for a future that a host task polls. It may be dropped on another thread.
    pub(in crate::cl) fn polled(gates: &Gates) -> Result<Self, SubmitError> {
        Self::within(&WORKERS, gates, By::Future)
    }

    fn within(workers: &'static Workers, gates: &Gates, by: By) -> Result<Self, SubmitError> {
        let wait = patiently(gates, by)?;
        let thread = THREAD.try_with(|number| *number).unwrap_or_default();
        let guard = Self(Some(Box::new(Counted { workers, thread, _wait: wait })));
        let mut pool = workers.lock();
        *pool.waiting.entry(thread).or_default() += 1;
        // A job that is here was given to a thread that does not wait yet: see `Workers::start`.
        let is_stuck = |pool: &mut Pool| pool.all_wait() && !pool.jobs.is_empty() && !workers.add_thread(pool);
        let threads = pool.threads;
        if workers.lasts(pool, is_stuck) {
            // The guard is dropped here, so the wait does not count any more.
            return Err(SubmitError::NoThread { threads });
        }
        Ok(guard)
    }
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        if let Some(counted) = &self.0 {
            let mut pool = counted.workers.lock();
            if let Entry::Occupied(mut waits) = pool.waiting.entry(counted.thread) {
                *waits.get_mut() -= 1;
                if *waits.get() == 0 {
                    waits.remove();
                }
            }
        }
    }
}

/// Begins a wait, or returns an error if it would close a circle. If only a future closes the circle, that may be dropped or
/// polled elsewhere: a call waits for this for a while. A poll must not.
fn patiently(gates: &Gates, by: By) -> Result<Wait, SubmitError> {
    let begin = Instant::now();
    loop {
        match reentrancy::begin_wait(gates, by) {
            Ok(wait) => return Ok(wait),
            Err(Circle::OfFutures) if by == By::Call && begin.elapsed() < GRACE => thread::sleep(GRACE / 50),
            Err(_) => return Err(SubmitError::OwnSubmission),
        }
    }
}

/// How many threads for host tasks wait for the device.
static FOR_DEVICE: AtomicUsize = AtomicUsize::new(0);

/// A thread for host tasks waits for the device, until this is dropped.
pub(crate) struct DeviceWait(&'static AtomicUsize);

impl DeviceWait {
    /// How many threads wait for the device, before others leave that to the event reaper. What they wait for may come
    /// after events of the program, which a task without a thread completes: so they must not use up the threads.
    const MOST: usize = 16;

    /// Begins a wait, or returns None if there are enough.
    pub(crate) fn begin() -> Option<Self> {
        Self::counted_by(&FOR_DEVICE)
    }

    fn counted_by(count: &'static AtomicUsize) -> Option<Self> {
        let one_more = |waits: usize| (waits < Self::MOST).then(|| waits + 1);
        // A wait is made only if it is counted: its drop takes it off again.
        count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok().map(|_| Self(count))
    }
}

impl Drop for DeviceWait {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workers {
    const fn new(jobs: &'static str, most: usize, keeps_one: bool) -> Self {
        let pool = Pool {
            jobs: VecDeque::new(),
            threads: 0,
            idle: 0,
            waiting: BTreeMap::new(),
            is_short: false,
            most,
            refused: VecDeque::new(),
        };
        let has_one = AtomicBool::new(false);
        Self { pool: Mutex::new(pool), came: Condvar::new(), keeps_one, has_one, jobs, said: Once::new() }
    }

    /// Starts the thread that never ends, if there is none yet and one can be had.
    fn get_one(&'static self) {
        if !self.has_one.load(Ordering::Relaxed) {
            let mut pool = self.lock();
            let has_one = pool.threads > 0 || self.add_thread(&mut pool);
            self.has_one.store(has_one, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock is held from the look at idle threads until the job is in its place. Otherwise a new thread would look
    /// idle to others, and get their job beside its own.
    fn start(&'static self, gate: Option<GateId>, run: Run) -> Result<(), Run> {
        let mut pool = self.lock();
        if pool.idle <= pool.jobs.len() && !self.add_thread(&mut pool) && pool.all_wait() {
            return Err(run);
        }
        pool.jobs.push_back(Job { run, gate });
        self.came.notify_one();
        Ok(())
    }

    fn refuse(&self, job: Job, give_up: Run) {
        self.lock().refused.push_back(Refused { job, until: Instant::now() + GRACE, give_up });
        REFUSED.fetch_add(1, Ordering::Relaxed);
    }

    /// Starts refused jobs for which there is a thread now, and gives up those that have waited too long. Returns whether
    /// some are left.
    fn look_at_refused(&'static self) -> bool {
        loop {
            let mut pool = self.lock();
            let Some(oldest) = pool.refused.front() else { return false };
            let is_late = oldest.until <= Instant::now();
            let is_stuck = pool.idle <= pool.jobs.len() && !self.add_thread(&mut pool) && pool.all_wait();
            if is_stuck && !is_late {
                return true;
            }
            let Some(Refused { job, give_up, .. }) = pool.refused.pop_front() else { return false };
            REFUSED.fetch_sub(1, Ordering::Relaxed);
            if is_stuck {
                drop(pool);
                guarded("a thread of clgraph (please report this)", give_up);
            } else {
                pool.jobs.push_back(job);
                self.came.notify_one();
            }
        }
    }

    /// Returns whether something holds now and for all of [`GRACE`].
    fn lasts<'a>(&'a self, mut pool: MutexGuard<'a, Pool>, mut holds: impl FnMut(&mut Pool) -> bool) -> bool {
        let mut since = None;
        while holds(&mut pool) {
            if since.get_or_insert_with(Instant::now).elapsed() >= GRACE {
                return true;
            }
            drop(pool);
            thread::sleep(GRACE / 50);
            pool = self.lock();
        }
        false
    }

    /// Returns whether a thread of this pool has to look at the refused host tasks.
    fn looks_after_refused(&self) -> bool {
        std::ptr::eq(self, &raw const OWN) && REFUSED.load(Ordering::Relaxed) > 0
    }

    /// Starts one more thread. Returns false if there can be no more.
    fn add_thread(&'static self, pool: &mut Pool) -> bool {
        pool.is_short = true;
        let (threads, jobs) = (pool.threads, self.jobs);
        if threads >= pool.most {
            self.said.call_once(|| {
                log_later!(
                    Warn,
                    "all {threads} threads for {jobs} are busy, and there can be no more: others wait until one of them \
                     returns (logged once)"
                );
            });
            return false;
        }
        match threads::start("clgraph-task", || self.work()) {
            Ok(()) => {
                pool.threads += 1;
                pool.is_short = false;
            }
            Err(error) => {
                log_later!(Warn, "{error}: {jobs} share {threads} threads, because no other could be started");
                return false;
            }
        }
        true
    }

    fn work(&'static self) {
        let (mut pool, mut only_since) = (self.lock(), None);
        loop {
            let at = match pool.next() {
                Next::Take(at) => {
                    only_since = None;
                    at
                }
                Next::OnlyThread => {
                    let is_first = only_since.is_none();
                    let since = *only_since.get_or_insert_with(Instant::now);
                    if since.elapsed() < GRACE && !(is_first && self.add_thread(&mut pool)) {
                        pool = self.came.wait_timeout(pool, GRACE / 50).unwrap_or_else(PoisonError::into_inner).0;
                        continue;
                    }
                    0
                }
            };
            if let Some(job) = pool.jobs.remove(at) {
                drop(pool);
                // Host tasks catch panics of the program's function themselves.
                guarded("a thread for host tasks (please report this)", job.run);
                pool = self.lock();
                continue;
            }
            let mut patience = PATIENCE;
            if self.looks_after_refused() {
                drop(pool);
                if WORKERS.look_at_refused() {
                    patience = GRACE / 100;
                }
                pool = self.lock();
                if !pool.jobs.is_empty() {
                    continue;
                }
            }
            pool.idle += 1;
            let (woken, waited) = self.came.wait_timeout(pool, patience).unwrap_or_else(PoisonError::into_inner);
            pool = woken;
            pool.idle -= 1;
            let is_kept = (self.keeps_one && pool.threads == 1) || patience < PATIENCE;
            if waited.timed_out() && pool.jobs.is_empty() && !is_kept {
                pool.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
