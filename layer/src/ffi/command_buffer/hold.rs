//! What holds back a long command buffer until all of it is enqueued.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

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
    unsafe {
        let kind = query::one::<_, cl_ulong>(calls::clGetDeviceInfo, device, CL_DEVICE_TYPE).ok()?;
        let platform = query::one::<_, cl_platform_id>(calls::clGetDeviceInfo, device, CL_DEVICE_PLATFORM).ok()?;
        match platform_of(platform)? {
            _ if kind & CL_DEVICE_TYPE_CPU == 0 => None,
            Platform::Pocl => {
                let name = query::list::<_, u8>(calls::clGetDeviceInfo, device, CL_DEVICE_NAME).ok()?;
                // The device without threads runs commands within the calls, and the one of 3.1 hangs when a user event is completed.
                let has_threads = !["basic", "cpu-minimal"].iter().any(|without| name.starts_with(without.as_bytes()));
                has_threads.then_some(100)
            }
            Platform::Intel => Some(10),
            Platform::Other => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Platform {
    Pocl,
    Intel,
    Other,
}

/// Asks each platform once, and one thread at a time: Intel's runtime writes its answer anew for each call.
///
/// # Safety
/// It is a platform. Platforms are there as long as the process.
unsafe fn platform_of(platform: cl_platform_id) -> Option<Platform> {
    static KNOWN: Mutex<BTreeMap<usize, Platform>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(of) = known.get(&platform.addr()) {
        return Some(*of);
    }
    // SAFETY: the caller's promise.
    let name = unsafe { query::list::<_, u8>(calls::clGetPlatformInfo, platform, CL_PLATFORM_NAME) }.ok()?;
    let all = [(Platform::Pocl, "Portable Computing Language"), (Platform::Intel, "Intel(R) OpenCL")];
    let of =
        all.into_iter().find(|(_, known)| name.starts_with(known.as_bytes())).map_or(Platform::Other, |(of, _)| of);
    known.insert(platform.addr(), of);
    Some(of)
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
