//! One thread that sees events complete, and runs what waits for that.
//!
//! The driver's callback is only a hint to look: on PoCL 3.1 and 6.0 it never comes for an event that failed, and on
//! Intel a callback that takes its time blocks the driver. So the callback posts, and the thread asks each event for its
//! status, at each post and now and then besides.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use crate::cl::event::{Event, Progress};
use crate::error::DriverError;

/// How long the thread sleeps between looks when no post comes: from the first to the second, doubling.
const PATIENCE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(32));

type Then = Box<dyn FnOnce(Result<(), DriverError>) + Send>;

struct Job {
    /// `None`: at once.
    event: Option<Event>,
    then: Then,
}

struct Watcher {
    inbox: Mutex<Vec<Job>>,
    post: Sender<()>,
}

/// Runs `then` on the watcher's thread once the event is complete or has failed. The event's queue must have been
/// flushed.
pub(super) fn when_done(event: Event, then: impl FnOnce(Result<(), DriverError>) + Send + 'static) {
    start(Job { event: Some(event), then: Box::new(then) });
}

/// Runs `then` on the watcher's thread soon.
pub(super) fn soon(then: impl FnOnce() + Send + 'static) {
    start(Job { event: None, then: Box::new(move |_| then()) });
}

/// Keeps something until an event is complete or has failed.
pub(super) fn keep_until(event: Event, kept: impl Send + 'static) {
    when_done(event, move |_| drop(kept));
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
                log::error!("no thread to watch events, waiting for each instead: {error}");
                None
            }
        }
    });
    let Some(watcher) = watcher else {
        let outcome = job.event.as_ref().map_or(Ok(()), Event::wait);
        return (job.then)(outcome);
    };
    let event = job.event.clone();
    watcher.inbox.lock().unwrap_or_else(PoisonError::into_inner).push(job);
    // The callback may run at once and on this thread, so no lock is held here.
    if let Some(event) = event {
        event.post_when_done(&watcher.post);
    }
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
            if catch_unwind(AssertUnwindSafe(|| then(outcome))).is_err() {
                log::error!("a completion callback panicked; the submission itself is unaffected");
            }
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

fn keep_or_finish(job: Job, done: &mut Vec<(Then, Result<(), DriverError>)>) -> Option<Job> {
    let outcome = match job.event.as_ref().map(Event::progress) {
        None | Some(Ok(Progress::Complete)) => Ok(()),
        Some(Ok(Progress::Failed(status))) => Err(DriverError { call: "command", status }),
        Some(Ok(Progress::Waiting | Progress::Running)) => return Some(job),
        Some(Err(error)) => Err(error),
    };
    done.push((job.then, outcome));
    None
}
