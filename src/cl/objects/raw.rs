//! Constructors of public objects from raw handles. The caller promises that the handle is live.

use opencl_sys::{cl_command_queue, cl_event};

use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::queue::DriverQueue;
use crate::error::Result;

impl crate::Queue {
    /// Wraps and retains a raw queue.
    ///
    /// When the last wrapper of an out-of-order queue is dropped, it enqueues a marker and flushes the queue. It
    /// releases its reference after all earlier commands have ended.
    ///
    /// # Errors
    /// [`SetupError::NullHandle`](crate::SetupError::NullHandle),
    /// [`SetupError::DeviceQueue`](crate::SetupError::DeviceQueue); those of
    /// [`Device::from_opencl3`](crate::Device::from_opencl3).
    ///
    /// # Safety
    /// `raw` is null or a live queue.
    pub unsafe fn from_raw(raw: cl_command_queue) -> Result<Self> {
        // SAFETY: the caller's promise.
        Ok(Self::of_driver(unsafe { DriverQueue::from_raw(raw) }?))
    }
}

impl crate::Event {
    /// Wraps and retains a raw event.
    ///
    /// # Errors
    /// [`SetupError::NullHandle`](crate::SetupError::NullHandle); [`DriverError`](crate::DriverError) if the driver
    /// refuses to retain it.
    ///
    /// # Safety
    /// `raw` is null or a live event.
    pub unsafe fn from_raw(raw: cl_event) -> Result<Self> {
        // SAFETY: the caller's promise.
        Ok(Self::from(unsafe { DriverEvent::from_raw(raw) }?))
    }
}
