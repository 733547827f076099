//! Reads into memory of their own, whose data is taken later.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::event::Event;
use crate::cl::memory::host::{Completed, Element, Slot};
use crate::error::{BuildCause, BuildError, Result};
use crate::graph::HostRead;

/// A read that was enqueued or recorded. See [`Queue::enqueue_read_buffer_owned`](crate::Queue::enqueue_read_buffer_owned).
#[must_use = "the result is taken from it"]
pub struct PendingRead<T> {
    pub(super) event: Event,
    /// `None` for a read that was recorded.
    pub(super) slot: Option<Arc<Slot>>,
    pub(super) element: PhantomData<fn() -> T>,
}

impl<T: Element> PendingRead<T> {
    /// Returns the event of the read.
    #[must_use]
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// Blocks until the read is complete, and returns a copy of the data.
    ///
    /// # Errors
    /// [`RecordError::Recorded`](crate::RecordError::Recorded) if the read was recorded: then each submission has a result, see
    /// [`host_read`](Self::host_read). [`crate::DriverError`] when the read failed.
    pub fn wait(&self) -> Result<Vec<T>> {
        self.event.wait()?;
        let Some(slot) = &self.slot else { return Ok(Vec::new()) };
        Ok(bytemuck::cast_slice(slot.bytes(&Completed::witnessed())).to_vec())
    }

    /// Waits for a read that was not recorded, and copies the data to `to`, which has its size.
    pub(super) fn wait_into(self, to: &mut [u8]) -> Result<Event> {
        self.event.wait()?;
        if let Some(slot) = &self.slot {
            to.copy_from_slice(slot.bytes(&Completed::witnessed()));
        }
        Ok(self.event)
    }

    /// Returns the handle of the recorded read, which [`Submission::get`](crate::Submission::get) takes.
    ///
    /// # Errors
    /// [`BuildCause::NotANode`] when the read was not recorded.
    pub fn host_read(&self) -> Result<HostRead<T>> {
        let node = self.event.node().ok_or_else(|| BuildError::new("host read", BuildCause::NotANode))?;
        Ok(HostRead::of(node))
    }
}

impl<T> fmt::Debug for PendingRead<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PendingRead({:?})", self.event)
    }
}
