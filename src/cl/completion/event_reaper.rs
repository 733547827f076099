//! One thread that waits for events and runs what follows their completion, and one thread that runs callbacks of
//! users.
//!
//! The thread asks each event for its status at each callback of the driver, and from time to time in between. The
//! callback of the driver only wakes the thread, for two reasons: PoCL 3.1 and 6.0 never call back for an event that
//! failed, and on Intel's CPU runtime a slow callback blocks the driver.
//!
//! Callbacks of users have their own thread. So a callback that waits for a submission does not block the thread that
//! would enqueue that submission.

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use crate::cl::completion::user_code::guarded;
use crate::cl::objects::event::{COMMAND, CommandStatus, DriverEvent};
use crate::error::{DriverError, Fault};

/// How long the thread sleeps if nothing wakes it. The time starts at the first value and doubles up to the second.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(32));

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

struct Watcher {
    inbox: Mutex<Vec<Job>>,
    post: Sender<()>,
}

/// Runs `then` on the reaper's thread after the event is complete or has failed. The queue of the event must have been
/// flushed.
pub(crate) fn when_done(event: DriverEvent, then: impl FnOnce(Result<(), DriverError>) + Send + 'static) {
    start(Job { event, then: Box::new(then), refused: 0 });
}

/// Blocks until an event is complete or has failed. It polls the status instead of calling `clWaitForEvents`. The
/// reaper's own thread must not call this. The queue of the event must have been flushed.
pub(crate) fn wait(event: DriverEvent) -> Result<(), DriverError> {
    let (tell, told) = channel();
    when_done(event, move |outcome| {
        // The caller waits below.
        let _ = tell.send(outcome);
    });
    told.recv().unwrap_or_else(|_| Err(DriverError::faulty("clGetEventInfo", Fault::Defect)))
}

/// Runs code of users soon on the callback thread: callbacks, and the `Drop` of values that users own.
pub(crate) fn call(callback: impl FnOnce() + Send + 'static) {
    type Callback = Box<dyn FnOnce() + Send>;
    static CALLS: OnceLock<Option<Sender<Callback>>> = OnceLock::new();
    let calls = CALLS.get_or_init(|| {
        let (sender, calls) = channel::<Callback>();
        let run = move || {
            while let Ok(callback) = calls.recv() {
                guarded(OF_USERS, callback);
            }
        };
        match thread::Builder::new().name("clgraph-callback".to_owned()).spawn(run) {
            Ok(_) => Some(sender),
            Err(error) => {
                log::error!(
                    "{error}: no thread could be started for callbacks, so they run on the thread that finds \
                             the event complete"
                );
                None
            }
        }
    });
    match calls {
        Some(calls) => drop(calls.send(Box::new(callback))),
        None => guarded(OF_USERS, callback),
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
    let text =
        format!("{error}: memory or a queue is never released, because the driver does not report when its use ends");
    // Not here, because locks may be held.
    call(move || log::error!("{text}"));
}

/// Returns whether an event is known to be complete or failed. Otherwise the driver refused to report its status.
pub(crate) fn is_over(outcome: &Result<(), DriverError>) -> bool {
    !matches!(outcome, Err(error) if error.call != COMMAND)
}

fn start(job: Job) {
    static WATCHER: OnceLock<Option<Watcher>> = OnceLock::new();
    let watcher = WATCHER.get_or_init(|| {
        let (post, posts) = channel();
        // The first post comes after `WATCHER` is set, so the thread finds it with `get`.
        let spawned = thread::Builder::new().name("clgraph-watch".to_owned()).spawn(move || {
            if posts.recv().is_ok()
                && let Some(Some(watcher)) = WATCHER.get()
            {
                look(&watcher.inbox, &posts);
            }
        });
        match spawned {
            Ok(_) => Some(Watcher { inbox: Mutex::default(), post }),
            Err(error) => {
                log::error!(
                    "{error}: no thread could be started to wait for events, so calls block until their events \
                             are complete"
                );
                None
            }
        }
    });
    let Some(watcher) = watcher else {
        let outcome = job.event.wait();
        return (job.then)(outcome);
    };
    let event = job.event.clone();
    watcher.inbox.lock().unwrap_or_else(PoisonError::into_inner).push(job);
    // The callback may run at once on this thread, so no lock is held here.
    event.post_when_done(&watcher.post);
    let _ = watcher.post.send(());
}

fn look(inbox: &Mutex<Vec<Job>>, posts: &Receiver<()>) {
    let mut pending: Vec<Job> = Vec::new();
    let mut patience = PATIENCE.0;
    loop {
        pending.append(&mut inbox.lock().unwrap_or_else(PoisonError::into_inner));
        let mut done = Vec::new();
        pending = pending.into_iter().filter_map(|job| keep_or_finish(job, &mut done)).collect();
        if !done.is_empty() {
            patience = PATIENCE.0;
        }
        for (then, outcome) in done {
            guarded("clgraph (please report this)", || then(outcome));
        }
        let posted = if pending.is_empty() {
            posts.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            posts.recv_timeout(patience)
        };
        match posted {
            Ok(()) => while posts.try_recv().is_ok() {},
            Err(RecvTimeoutError::Timeout) => patience = (patience * 2).min(PATIENCE.1),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn keep_or_finish(mut job: Job, done: &mut Vec<(Then, Result<(), DriverError>)>) -> Option<Job> {
    let outcome = match job.event.status() {
        Ok(CommandStatus::Complete) => Ok(()),
        Ok(CommandStatus::Failed(status)) => Err(DriverError::new(COMMAND, status)),
        Ok(CommandStatus::Waiting | CommandStatus::Running) => return Some(job),
        Err(error) if job.refused == REFUSALS => Err(error),
        Err(_) => {
            job.refused += 1;
            return Some(job);
        }
    };
    done.push((job.then, outcome));
    None
}
