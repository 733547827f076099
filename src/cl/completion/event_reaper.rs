//! One thread that waits for events and runs what follows their completion, and one thread that runs callbacks of
//! users.
//!
//! The thread asks an event for its status when the driver calls back for it, and all events from time to time. The
//! callback of the driver only wakes the thread, for two reasons: PoCL 3.1 and 6.0 never call back for an event that
//! failed, and on Intel's CPU runtime a slow callback blocks the driver.
//!
//! Callbacks of users have their own thread. So a callback that waits for a submission does not block the thread that
//! would enqueue that submission.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io, iter, thread};

use crate::cl::completion::gates;
use crate::cl::completion::threads;
use crate::cl::completion::user_code::{guarded, log_later};
use crate::cl::memory::globals::Registry;
use crate::cl::objects::event::{COMMAND, CommandStatus, DriverEvent, open_all_gates};
use crate::cl::objects::queue::DriverQueue;
use crate::cl::objects::retired_queues;
use crate::error::{DriverError, DriverFault};
use crate::ffi::process_end;

/// The time from one round in which the thread asks all events to the next. It begins with the first value, and doubles
/// up to the second while such rounds find nothing.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(32));

/// The next such round comes at the earliest after this many times what the last one took.
const SHARE: u32 = 8;

/// How often a driver may refuse to report the status of an event. After that, what the event keeps alive is leaked. A
/// driver that lacks memory for a moment must not cause such a leak.
const REFUSALS: u8 = 8;

type Then = Box<dyn FnOnce(Result<(), DriverError>) + Send>;

struct Job {
    event: DriverEvent,
    then: Then,
    /// How often the driver has refused to report the status.
    refused: u8,
}

struct Reaper {
    /// Jobs with their numbers.
    inbox: Mutex<Vec<(usize, Job)>>,
    /// Numbers of jobs whose events should be asked now.
    post: Sender<usize>,
}

/// Runs `then` on the reaper's thread after the event is complete or has failed. The queue of the event must have been
/// flushed.
pub(crate) fn when_done(event: DriverEvent, then: impl FnOnce(Result<(), DriverError>) + Send + 'static) {
    start(Job { event, then: Box::new(then), refused: 0 });
}

/// Blocks until an event is complete or has failed. It polls the status instead of calling `clWaitForEvents`. The
/// reaper's own thread must not call this. The queue of the event must have been flushed.
pub(crate) fn wait(event: DriverEvent) -> Result<(), DriverError> {
    let (sender, outcome) = channel();
    when_done(event, move |ended| {
        // The caller waits below.
        let _ = sender.send(ended);
    });
    outcome.recv().unwrap_or_else(|_| Err(DriverError::faulty("clGetEventInfo", DriverFault::Defect)))
}

/// Runs code of users soon on the callback thread: callbacks, and the `Drop` of values that users own.
pub(crate) fn call(callback: impl FnOnce() + Send + 'static) {
    call_boxed(Box::new(callback));
}

type Callback = Box<dyn FnOnce() + Send>;

fn call_boxed(callback: Callback) {
    match calls() {
        Ok(calls) => drop(calls.send(callback)),
        // Without that thread, callbacks run on the thread that finds the event complete.
        Err(_) => guarded(OF_USERS, callback),
    }
}

static CALLS: OnceLock<Sender<Callback>> = OnceLock::new();

/// Returns the inbox of the thread for callbacks, which is started if it does not run.
fn calls() -> io::Result<&'static Sender<Callback>> {
    started(&CALLS, || {
        let (sender, calls) = channel::<Callback>();
        let run = move || {
            while let Ok(callback) = calls.recv() {
                guarded(OF_USERS, callback);
            }
        };
        threads::start("clgraph-callback", run)?;
        Ok(sender)
    })
}

/// Starts the threads, if they do not run. A queue is made only if they do: a command that waits for something needs them,
/// and when it is enqueued, it may be too late for an error.
pub(in crate::cl) fn start_threads() -> io::Result<()> {
    calls()?;
    reaper().map(|_| ())
}

/// Returns what `start` makes, once. A failure is not kept: the system may have threads again later.
fn started<T>(cell: &'static OnceLock<T>, start: impl FnOnce() -> io::Result<T>) -> io::Result<&'static T> {
    static STARTING: Mutex<()> = Mutex::new(());
    if let Some(there) = cell.get() {
        return Ok(there);
    }
    let _one_at_a_time = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    match cell.get() {
        Some(there) => Ok(there),
        None => start().map(|made| cell.get_or_init(|| made)),
    }
}

const OF_USERS: &str = "a callback, or the drop of a value of the program,";

/// Keeps a value alive until an event is complete or has failed.
pub(crate) fn keep_until(event: DriverEvent, kept: impl Send + 'static) {
    // The value may belong to the user and have its own `Drop`, so it is dropped on the callback thread.
    when_done(event, move |outcome| match outcome {
        Err(error) if !is_over(&outcome) => leak(error, kept),
        _ => call(move || drop(kept)),
    });
}

/// Leaks a value. Nobody can know when the driver stops using it, so this is the only safe choice.
#[cold]
pub(crate) fn leak(error: impl fmt::Display, kept: impl Send) {
    std::mem::forget(kept);
    log_later!(
        Error,
        "{error}: memory or a queue is never released, because the driver does not report when its use ends"
    );
}

/// Returns whether an event is known to be complete or failed. Otherwise the driver refused to report its status.
pub(crate) fn is_over(outcome: &Result<(), DriverError>) -> bool {
    !matches!(outcome, Err(error) if error.call != COMMAND)
}

static REAPER: OnceLock<Reaper> = OnceLock::new();

/// Returns the reaper, whose thread is started if it does not run.
fn reaper() -> io::Result<&'static Reaper> {
    started(&REAPER, || {
        let (post, posts) = channel();
        // The first post comes after `REAPER` is set, so the thread finds it with `get`.
        threads::start("clgraph-reaper", move || {
            if let (Ok(_), Some(reaper)) = (posts.recv(), REAPER.get()) {
                reap(&reaper.inbox, &posts);
            }
        })?;
        process_end::on_end(stop);
        Ok(Reaper { inbox: Mutex::default(), post })
    })
}

fn start(job: Job) {
    let reaper = match reaper() {
        Ok(reaper) => reaper,
        // Only without any queue: see `start_threads`.
        Err(error) => {
            log_later!(Error, "{error}: no thread could be started to wait for an event, so a call waits for it");
            let outcome = job.event.wait();
            return (job.then)(outcome);
        }
    };
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    let (event, id) = (job.event.clone(), NEXT.fetch_add(1, Ordering::Relaxed));
    reaper.inbox.lock().unwrap_or_else(PoisonError::into_inner).push((id, job));
    // The callback may run at once on this thread, so no lock is held here.
    event.post_when_done(id);
    let _ = reaper.post.send(id);
}

/// Tells the thread that the event of a job has ended. The driver calls it, from any thread.
pub(in crate::cl) fn post(job: usize) {
    if let Some(reaper) = REAPER.get() {
        let _ = reaper.post.send(job);
    }
}

/// The thread holds this lock while it calls the driver.
static AT_WORK: Mutex<()> = Mutex::new(());

/// Whether the process ends: nothing is enqueued any more.
static ENDING: AtomicBool = AtomicBool::new(false);

pub(crate) fn process_ends() -> bool {
    ENDING.load(Ordering::Acquire)
}

/// How many threads of clgraph's own, besides the reaper's, call a driver.
static CALLING: AtomicUsize = AtomicUsize::new(0);

/// A thread of clgraph's own calls a driver, until this is dropped. The end of the process waits for it, at most for
/// [`AT_THE_END`]; so it is not kept while a host task runs, and a loop asks [`process_ends`] in each turn.
pub(crate) struct DriverCall(());

impl DriverCall {
    /// Returns None if the process ends: then the thread must call no driver any more.
    pub(crate) fn begin() -> Option<Self> {
        // First counted, then asked: `stop` does it the other way round, so one of the two sees the other.
        CALLING.fetch_add(1, Ordering::SeqCst);
        let calling = Self(());
        (!ENDING.load(Ordering::SeqCst)).then_some(calling)
    }
}

impl Drop for DriverCall {
    fn drop(&mut self) {
        CALLING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How long the end of the process waits for what still runs on queues of such a driver, in two parts.
const AT_THE_END: Duration = Duration::from_millis(400);

/// What is not released any more.
static KEPT: OnceLock<(Vec<Arc<Registry>>, Vec<DriverQueue>)> = OnceLock::new();

/// Stops the thread for ever, because the process ends. The libraries of drivers are torn down next, and Intel's CPU
/// runtime (2026.2) crashes if it is called meanwhile. It also hangs or crashes if a queue is not empty then, so threads that
/// call it and what was enqueued end first, and gates that are still closed open.
extern "C" fn stop() {
    let (contexts, queues) = (Registry::all(), DriverQueue::must_be_empty_at_the_end());
    let is_retired = |context: &Arc<Registry>| !context.retired_queues.is_empty();
    if retired_queues::some_end() || !queues.is_empty() || contexts.iter().any(is_retired) {
        let soon = Instant::now() + AT_THE_END;
        while !gates::no_events() && Instant::now() < soon {
            thread::sleep(Duration::from_millis(1));
        }
        ENDING.store(true, Ordering::SeqCst);
        open_all_gates();
        let later = Instant::now() + AT_THE_END;
        while CALLING.load(Ordering::SeqCst) > 0 && Instant::now() < later {
            thread::sleep(Duration::from_millis(1));
        }
        queues.iter().for_each(|queue| queue.wait_until(later));
        contexts.iter().for_each(|context| context.retired_queues.end_until(later));
        retired_queues::wait_for_endings(later);
    }
    // The end of contexts and queues is not for this moment. They are kept where tools that look for leaks find them.
    std::mem::forget(KEPT.set((contexts, queues)));
    for _ in 0..200 {
        if let Ok(guard) = AT_WORK.try_lock() {
            return std::mem::forget(guard);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn reap(inbox: &Mutex<Vec<(usize, Job)>>, posts: &Receiver<usize>) {
    // In the order in which they came.
    let mut pending: BTreeMap<usize, Job> = BTreeMap::new();
    let mut posted: Vec<usize> = Vec::new();
    let (mut least, mut asked_all) = (PATIENCE.0, Instant::now());
    let mut patience = least;
    loop {
        let at_work = AT_WORK.lock().unwrap_or_else(PoisonError::into_inner);
        let come = std::mem::take(&mut *inbox.lock().unwrap_or_else(PoisonError::into_inner));
        if !come.is_empty() {
            patience = least;
        }
        posted.extend(come.iter().map(|(id, _)| *id));
        pending.extend(come);
        let mut done = Vec::new();
        posted.drain(..).for_each(|id| ask(&mut pending, id, &mut done));
        let began = Instant::now();
        if began.duration_since(asked_all) >= patience {
            let (all, before): (Vec<usize>, usize) = (pending.keys().copied().collect(), done.len());
            all.into_iter().for_each(|id| ask(&mut pending, id, &mut done));
            asked_all = Instant::now();
            least = PATIENCE.0.max(SHARE * asked_all.duration_since(began));
            patience = if done.len() > before { least } else { (patience * 2).clamp(least, PATIENCE.1.max(least)) };
        }
        for (then, outcome) in done {
            guarded("clgraph (please report this)", || then(outcome));
        }
        drop(at_work);
        let next = if pending.is_empty() {
            posts.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            posts.recv_timeout(patience.saturating_sub(asked_all.elapsed()))
        };
        match next {
            Ok(id) => posted.extend(iter::once(id).chain(posts.try_iter())),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Asks for the status of an event. If it has ended, its job moves to `done`.
fn ask(pending: &mut BTreeMap<usize, Job>, id: usize, done: &mut Vec<(Then, Result<(), DriverError>)>) {
    let Entry::Occupied(mut job) = pending.entry(id) else { return };
    let outcome = match job.get().event.status() {
        Ok(CommandStatus::Complete) => Ok(()),
        Ok(CommandStatus::Failed(status)) => Err(DriverError::new(COMMAND, status)),
        Ok(CommandStatus::Waiting | CommandStatus::Running) => return,
        Err(error) if job.get().refused == REFUSALS => Err(error),
        Err(_) => return job.get_mut().refused += 1,
    };
    done.push((job.remove().then, outcome));
}
