//! Events that the program has of command buffers. Each is the driver's event of the last command, so waits, callbacks and wait
//! lists are the driver's; what it says of itself is that of the command buffer.
#![allow(unsafe_code, non_snake_case)]

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use opencl_sys::{
    CL_COMMAND_COMMAND_BUFFER_KHR, CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, CL_EVENT_COMMAND_TYPE,
    CL_INVALID_OPERATION, CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_SUBMIT,
    CL_SUCCESS, cl_event, cl_int, cl_uint,
};

use super::capture::{self, Waiting};
use super::owned::Event;
use super::{calls, query};
use crate::ffi::{quietly, targets::next};

/// An event that the program has references to.
struct Returned {
    /// The program's references. At the last one's release the driver may use the handle again.
    references: usize,
    /// The event of the first command, which has the times of the beginning.
    first: Option<Event>,
}

static EVENTS: Mutex<Option<HashMap<usize, Returned>>> = Mutex::new(None);
/// How many there are. Programs without command buffers have none, and look no further.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn events() -> MutexGuard<'static, Option<HashMap<usize, Returned>>> {
    EVENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program gets an event.
pub(super) fn returned(event: cl_event, first: Option<Event>) {
    let mut events = events();
    let before = events.get_or_insert_default().insert(event.addr(), Returned { references: 1, first });
    COUNT.store(events.as_ref().map_or(0, HashMap::len), Ordering::Release);
    drop(events);
    // Of a handle that the driver uses again, whose release was not seen.
    drop(before);
}

/// Looks at an event of a command buffer.
fn with<T>(event: cl_event, look: impl FnOnce(&mut Returned) -> T) -> Option<T> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    quietly(|| events().as_mut()?.get_mut(&event.addr()).map(look)).flatten()
}

unsafe extern "system" fn clRetainEvent(event: cl_event) -> cl_int {
    // SAFETY: rule T.
    let Some(function) = (unsafe { next::<unsafe extern "system" fn(cl_event) -> cl_int>(43) }) else {
        return CL_INVALID_OPERATION;
    };
    // SAFETY: rule V.
    let status = unsafe { function(event) };
    if status == CL_SUCCESS {
        with(event, |returned| returned.references += 1);
    }
    status
}

unsafe extern "system" fn clReleaseEvent(event: cl_event) -> cl_int {
    // SAFETY: rule T.
    let Some(function) = (unsafe { next::<unsafe extern "system" fn(cl_event) -> cl_int>(44) }) else {
        return CL_INVALID_OPERATION;
    };
    // Before the driver's release: afterwards the handle may be another event's.
    if COUNT.load(Ordering::Acquire) != 0 {
        let last = quietly(|| {
            let mut events = events();
            let all = events.as_mut()?;
            let returned = all.get_mut(&event.addr())?;
            returned.references = returned.references.saturating_sub(1);
            let last = if returned.references == 0 { all.remove(&event.addr()) } else { None };
            COUNT.store(all.len(), Ordering::Release);
            last
        });
        drop(last);
    }
    // SAFETY: rule V.
    unsafe { function(event) }
}

type Info = unsafe extern "system" fn(cl_event, cl_uint, usize, *mut c_void, *mut usize) -> cl_int;

unsafe extern "system" fn clGetEventInfo(
    event: cl_event,
    name: cl_uint,
    size: usize,
    value: *mut c_void,
    size_ret: *mut usize,
) -> cl_int {
    // Who asks whether an event is over may ask until it is.
    if name == CL_EVENT_COMMAND_EXECUTION_STATUS && capture::is_active() {
        // SAFETY: a list of one.
        if let Waiting::Done(status) = unsafe { capture::wait_for_events(1, &raw const event, "clGetEventInfo") } {
            return if status == CL_SUCCESS {
                // SAFETY: the caller's places.
                unsafe { query::answer(&[CL_COMPLETE as cl_uint], size, value, size_ret) }
            } else {
                status
            };
        }
    }
    // SAFETY: rule T.
    let Some(function) = (unsafe { next::<Info>(42) }) else { return CL_INVALID_OPERATION };
    // SAFETY: rule V.
    let status = unsafe { function(event, name, size, value, size_ret) };
    let asks = status == CL_SUCCESS && name == CL_EVENT_COMMAND_TYPE && !value.is_null();
    if asks && with(event, |_| ()).is_some() {
        // SAFETY: the driver has written a value of the same type there.
        unsafe { value.cast::<cl_uint>().write_unaligned(CL_COMMAND_COMMAND_BUFFER_KHR) };
    }
    status
}

unsafe extern "system" fn clGetEventProfilingInfo(
    event: cl_event,
    name: cl_uint,
    size: usize,
    value: *mut c_void,
    size_ret: *mut usize,
) -> cl_int {
    // SAFETY: rule T.
    let Some(function) = (unsafe { next::<Info>(45) }) else { return CL_INVALID_OPERATION };
    let of_the_beginning =
        matches!(name, CL_PROFILING_COMMAND_QUEUED | CL_PROFILING_COMMAND_SUBMIT | CL_PROFILING_COMMAND_START);
    // It lives as long as the program's event, which is in use.
    let first = if of_the_beginning { with(event, |returned| returned.first.as_ref().map(Event::raw)) } else { None };
    // Before the end, the driver says of the last command whether there are times.
    // SAFETY: an event, which the program gave.
    let first = first.flatten().filter(|_| unsafe { is_complete(event) });
    // SAFETY: rule V, for the event that has the time.
    unsafe { function(first.unwrap_or(event), name, size, value, size_ret) }
}

/// # Safety
/// It is an event.
unsafe fn is_complete(event: cl_event) -> bool {
    // SAFETY: the caller's promise.
    let status = unsafe { query::one::<_, cl_uint>(calls::clGetEventInfo, event, CL_EVENT_COMMAND_EXECUTION_STATUS) };
    status == Ok(CL_COMPLETE.cast_unsigned())
}

pub(super) fn wrappers() -> Vec<(usize, *mut c_void)> {
    vec![
        (42, clGetEventInfo as *const () as *mut c_void),
        (43, clRetainEvent as *const () as *mut c_void),
        (44, clReleaseEvent as *const () as *mut c_void),
        (45, clGetEventProfilingInfo as *const () as *mut c_void),
    ]
}
