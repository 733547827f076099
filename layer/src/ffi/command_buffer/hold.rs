//! What holds back a long command buffer until all of it is enqueued.
#![allow(unsafe_code)]

use opencl_sys::{
    CL_COMPLETE, CL_DEVICE_NAME, CL_DEVICE_PLATFORM, CL_DEVICE_TYPE, CL_DEVICE_TYPE_CPU, CL_PLATFORM_NAME, CL_SUCCESS,
    cl_context, cl_device_id, cl_event, cl_platform_id, cl_ulong,
};

use super::owned::Event;
use super::{calls, query};

/// How often an event is completed that the driver refuses to complete.
const ATTEMPTS: usize = 8;

/// From how many commands on a chain takes less time on a device if a hold is before it, because the thread that enqueues and the
/// threads that run commands slow each other down (`docs/drivers.md`). None if that is not known.
///
/// # Safety
/// It is a device.
pub(super) unsafe fn pays_from(device: cl_device_id) -> Option<usize> {
    // SAFETY: the caller's promise; a device's platform is one.
    let (kind, name, platform) = unsafe {
        let kind = query::one::<_, cl_ulong>(calls::clGetDeviceInfo, device, CL_DEVICE_TYPE).ok()?;
        let platform = query::one::<_, cl_platform_id>(calls::clGetDeviceInfo, device, CL_DEVICE_PLATFORM).ok()?;
        let name = query::list::<_, u8>(calls::clGetDeviceInfo, device, CL_DEVICE_NAME).ok()?;
        (kind, name, query::list::<_, u8>(calls::clGetPlatformInfo, platform, CL_PLATFORM_NAME).ok()?)
    };
    let of = |known: &str| kind & CL_DEVICE_TYPE_CPU != 0 && platform.starts_with(known.as_bytes());
    // PoCL's device without threads runs commands within the calls, and the one of 3.1 hangs when a user event is completed.
    let has_threads = !["basic", "cpu-minimal"].iter().any(|without| name.starts_with(without.as_bytes()));
    if of("Portable Computing Language") {
        has_threads.then_some(100)
    } else if of("Intel(R) OpenCL") {
        Some(10)
    } else {
        None
    }
}

/// A user event that the first command waits for. It is completed at the end, whatever happens in between.
#[derive(Debug)]
pub(super) struct Hold(Event);

impl Hold {
    /// Returns none where the driver makes no event: a hold is never needed.
    ///
    /// # Safety
    /// The context lives.
    pub(super) unsafe fn new(context: cl_context) -> Option<Self> {
        let mut status = CL_SUCCESS;
        // SAFETY: the caller's promise, and a reference that is new.
        unsafe { Event::from_raw(calls::clCreateUserEvent(context, &raw mut status)) }.map(Self)
    }

    /// What the first command waits for: this, and at most one event more.
    pub(super) fn and(&self, waits: &[cl_event]) -> ([cl_event; 2], usize) {
        let other = waits.first().copied();
        ([self.0.raw(), other.unwrap_or_else(|| self.0.raw())], 1 + usize::from(other.is_some()))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        complete(&self.0);
    }
}

/// Completes an event of the layer's that nobody has completed: what waits for it would wait forever.
pub(super) fn complete(event: &Event) {
    // SAFETY: a user event of the layer's.
    (0..ATTEMPTS).any(|_| unsafe { calls::clSetUserEventStatus(event.raw(), CL_COMPLETE) } == CL_SUCCESS);
}
