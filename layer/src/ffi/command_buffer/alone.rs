//! One thread at a time enqueues to a queue in order: a command buffer is one command, and nothing comes between its own.
//!
//! Queues are told apart by their handles, so that no call waits for one of another queue.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use opencl_sys::cl_command_queue;

/// No other thread enqueues to the same queue meanwhile. A program's function that a driver calls meanwhile may come back here: it does
/// not wait for itself.
pub(super) struct Alone(NonZeroUsize);

/// In place of a queue where nothing is held. No handle is so small.
const NOTHING: NonZeroUsize = NonZeroUsize::MIN;

/// The program has made a command buffer.
static IN_USE: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Some of the queues that a thread enqueues to. There are several such lists, so that threads seldom meet at one.
struct Busy {
    queues: Mutex<Queues>,
    ended: Condvar,
}

struct Queues {
    /// Those to which a thread enqueues now.
    busy: Vec<NonZeroUsize>,
    /// The threads that wait for one.
    waiting: usize,
}

static BUSY: [Busy; 64] =
    [const { Busy { queues: Mutex::new(Queues { busy: Vec::new(), waiting: 0 }), ended: Condvar::new() } }; 64];

impl Busy {
    fn of(queue: NonZeroUsize) -> &'static Self {
        &BUSY[(queue.get() >> 4) % BUSY.len()]
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
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
        // What is no queue the driver refuses.
        let Some(queue) = NonZeroUsize::new(queue.addr()).filter(|queue| *queue != NOTHING) else {
            return Self(NOTHING);
        };
        if IS_INSIDE.try_with(|inside| inside.replace(true)).unwrap_or(true) {
            return Self(NOTHING);
        }
        let busy = Busy::of(queue);
        let mut queues = busy.queues();
        while queues.busy.contains(&queue) {
            queues.waiting += 1;
            queues = busy.ended.wait(queues).unwrap_or_else(PoisonError::into_inner);
            queues.waiting -= 1;
        }
        queues.busy.push(queue);
        Self(queue)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let queue = self.0;
        if queue == NOTHING {
            return;
        }
        let _ = IS_INSIDE.try_with(|inside| inside.set(false));
        let busy = Busy::of(queue);
        let mut queues = busy.queues();
        queues.busy.retain(|other| *other != queue);
        // It takes longer than all the rest.
        if queues.waiting > 0 {
            busy.ended.notify_all();
        }
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
        let of = |address| Busy::of(NonZeroUsize::new(address).unwrap());
        assert!(ptr::eq(of(one), of(other)));
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
