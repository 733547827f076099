//! One thread that sees events complete and runs what waits for that, and one that runs the callbacks of users.
//!
//! The driver's callback is only a hint to look: on PoCL 3.1 and 6.0 it never comes for an event that failed, and on
//! Intel a callback that takes its time blocks the driver. So the callback posts, and the thread asks each event for its
//! status, at each post and now and then besides.
//!
//! Users' callbacks have a thread of their own, so that one that waits for a submission does not stop the thread that
//! would enqueue it.

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use super::event::{COMMAND, DriverEvent, Progress};
use super::user_code::guarded;
use crate::error::{DriverError, Fault};

/// How long the thread sleeps between looks when no post comes: from the first to the second, doubling.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(32));

/// Times that a driver may refuse to tell of an event before it counts as one that never will: what such an event holds
/// is lost, so one moment without memory is not enough.
const REFUSALS: u8 = 8;

type Then = Box<dyn FnOnce(Result<(), DriverError>) + Send>;

struct Job {
    event: DriverEvent,
    then: Then,
    /// How often the driver has refused to tell.
    refused: u8,
}

struct Watcher {
    inbox: Mutex<Vec<Job>>,
    post: Sender<()>,
}

/// Runs `then` on the watcher's thread once the event is complete or has failed. The event's queue must have been
/// flushed.
pub(crate) fn when_done(event: DriverEvent, then: impl FnOnce(Result<(), DriverError>) + Send + 'static) {
    start(Job { event, then: Box::new(then), refused: 0 });
}

/// Blocks until an event is complete or has failed, by looking instead of by `clWaitForEvents`. Not for the watcher's own
/// thread. The event's queue must have been flushed.
pub(crate) fn wait(event: DriverEvent) -> Result<(), DriverError> {
    let (tell, told) = channel();
    when_done(event, move |outcome| {
        // Whoever asked is waiting below.
        let _ = tell.send(outcome);
    });
    told.recv().unwrap_or_else(|_| Err(DriverError::faulty("clGetEventInfo", Fault::Defect)))
}

/// Runs users' code on the callback thread soon: callbacks, and the end of what users own.
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
                log::error!("{error}: no thread for callbacks, so they run on the thread that sees the end");
                None
            }
        }
    });
    match calls {
        Some(calls) => drop(calls.send(Box::new(callback))),
        None => guarded(OF_USERS, callback),
    }
}

const OF_USERS: &str = "a callback, or the drop of what a program has given,";

/// Keeps something until an event is complete or has failed.
pub(crate) fn keep_until(event: DriverEvent, kept: impl Send + 'static) {
    // What is kept may be a user's, with a `Drop` of its own.
    when_done(event, move |outcome| match outcome {
        Err(error) if !is_over(&outcome) => lose(error, kept),
        _ => call(move || drop(kept)),
    });
}

/// Keeps something for ever: nobody can tell when it is free, so losing it is the only safe thing.
#[cold]
pub(crate) fn lose(error: impl fmt::Display, kept: impl Send) {
    log::error!("{error}: memory or a queue is kept for ever, because the driver does not tell when it is free");
    std::mem::forget(kept);
}

/// Whether an event is known to be complete or failed; otherwise the driver refused to tell.
pub(crate) fn is_over(outcome: &Result<(), DriverError>) -> bool {
    !matches!(outcome, Err(error) if error.call != COMMAND)
}

fn start(job: Job) {
    static WATCHER: OnceLock<Option<Watcher>> = OnceLock::new();
    let watcher = WATCHER.get_or_init(|| {
        let (post, posts) = channel();
        // The thread starts looking once the watcher is in its place: it gets there by `get` after a post.
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
                log::error!("{error}: no thread to watch events, so calls block until their events are complete");
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
    // The callback may run at once and on this thread, so no lock is held here.
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
            guarded("clgraph (please report it)", || then(outcome));
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
    let outcome = match job.event.progress() {
        Ok(Progress::Complete) => Ok(()),
        Ok(Progress::Failed(status)) => Err(DriverError::new(COMMAND, status)),
        Ok(Progress::Waiting | Progress::Running) => return Some(job),
        Err(error) if job.refused == REFUSALS => Err(error),
        Err(_) => {
            job.refused += 1;
            return Some(job);
        }
    };
    done.push((job.then, outcome));
    None
}
