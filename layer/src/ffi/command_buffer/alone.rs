//! One thread at a time enqueues to a queue in order: a command buffer is one command, and nothing comes between its own.
//!
//! Queues are told apart by their handles, so that no call waits for one of another queue.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use opencl_sys::cl_command_queue;

/// No other thread enqueues to the same queue meanwhile. A program's function that a driver calls meanwhile may come back here: it does
/// not wait for itself.
pub(super) struct Alone(Option<usize>);

/// The program has made a command buffer.
static IN_USE: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Some of the queues that a thread enqueues to. There are several such lists, so that threads seldom meet at one.
struct Busy {
    queues: Mutex<Vec<usize>>,
    ended: Condvar,
}

static BUSY: [Busy; 64] = [const { Busy { queues: Mutex::new(Vec::new()), ended: Condvar::new() } }; 64];

impl Busy {
    fn of(queue: usize) -> &'static Self {
        &BUSY[(queue >> 4) % BUSY.len()]
    }

    fn queues(&self) -> MutexGuard<'_, Vec<usize>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Alone {
    /// From now on single commands are enqueued alone, too.
    pub(super) fn begin() {
        IN_USE.store(true, Ordering::Release);
    }

    /// Whether the program has made a command buffer, or has begun a capture, which makes one.
    pub(super) fn is_needed() -> bool {
        IN_USE.load(Ordering::Acquire)
    }

    /// For a single command, in a program that has command buffers. What `waits` for its end is let through: it could wait for what
    /// another thread has still to enqueue.
    pub(super) fn unless(waits: bool, queue: cl_command_queue) -> Option<Self> {
        (Self::is_needed() && !waits).then(|| Self::on(queue))
    }

    pub(super) fn on(queue: cl_command_queue) -> Self {
        if IS_INSIDE.try_with(|inside| inside.replace(true)).unwrap_or(true) {
            return Self(None);
        }
        let queue = queue.addr();
        let busy = Busy::of(queue);
        let is_busy = |queues: &mut Vec<usize>| queues.contains(&queue);
        let mut queues = busy.ended.wait_while(busy.queues(), is_busy).unwrap_or_else(PoisonError::into_inner);
        queues.push(queue);
        Self(Some(queue))
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let Some(queue) = self.0 else { return };
        let _ = IS_INSIDE.try_with(|inside| inside.set(false));
        let busy = Busy::of(queue);
        busy.queues().retain(|other| *other != queue);
        busy.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn queue(address: usize) -> cl_command_queue {
        ptr::without_provenance_mut(address)
    }

    /// Enqueues on a thread of its own, and returns what says that it could.
    fn enqueues(address: usize) -> mpsc::Receiver<()> {
        let (done, is_done) = mpsc::channel();
        thread::spawn(move || {
            let _alone = Alone::on(queue(address));
            done.send(()).unwrap();
        });
        is_done
    }

    /// Also where two queues are in one list.
    #[test]
    fn a_thread_waits_for_threads_of_the_same_queue_only() {
        let (one, other) = (1 << 20, (1 << 20) + (BUSY.len() << 4));
        assert!(ptr::eq(Busy::of(one), Busy::of(other)));
        let alone = Alone::on(queue(one));
        // What a driver calls on the same thread does not wait for itself.
        drop(Alone::on(queue(one)));
        enqueues(other).recv().unwrap();
        let same = enqueues(one);
        assert!(same.recv_timeout(Duration::from_millis(50)).is_err());
        drop(alone);
        same.recv().unwrap();
    }
}
