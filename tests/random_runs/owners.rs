//! Code of the program that the library calls: it calls the library.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Wake;

use clgraph::{Executable, Queue};

/// Input whose owner calls clgraph when it is dropped.
pub struct Owner {
    pub data: Vec<u32>,
    pub what: u8,
    pub queue: Queue,
    pub other: Executable,
}

impl AsRef<[u32]> for Owner {
    fn as_ref(&self) -> &[u32] {
        &self.data
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // A failure on the queue is reported elsewhere.
        let _ = match self.what % 4 {
            0 => self.queue.finish(),
            1 => self.other.submit(&self.queue).and_then(|run| run.wait()),
            2 => self.other.submit_to(&self.queue).submit_detached(),
            _ => Ok(()),
        };
    }
}

/// A waker that submits.
pub struct Submits(pub Executable, pub Queue, pub AtomicU32);

impl Wake for Submits {
    fn wake(self: Arc<Self>) {
        let _ = self.0.submit(&self.1).and_then(|run| run.wait());
        self.2.fetch_add(1, Ordering::SeqCst);
    }
}
