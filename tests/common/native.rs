//! What tests of native commands share: a fill as OpenCL has it, enqueued and recorded.
#![allow(dead_code)] // Each test file uses its own part of this one.

use std::error::Error as StdError;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::OnceLock;

use clgraph::{
    Caps, CommandKind, Device, DriverError, NativeMemory, NativeQueue, NativeRecording, OnDevice, RecordAbi, Status,
};

pub type Outcome = Result<(), Box<dyn StdError + Send + Sync>>;

/// Returns whether a fill can be recorded on a device, for an executable that is timed or not.
pub fn records(caps: &Caps, profiled: bool) -> bool {
    let queues = caps.command_buffers.as_ref().and_then(|buffers| buffers.supported_queue);
    caps.can_record(CommandKind::Fill).is_ok() && !(profiled && queues.is_some_and(|queues| !queues.profiling))
}

/// Returns an error with the call and its status, as clgraph's own errors have them.
fn checked<T>(call: &'static str, outcome: Result<T, i32>) -> Result<T, DriverError> {
    outcome.map_err(|status| DriverError::new(call, Status(status)))
}

/// Enqueues a fill of memory that the node names.
pub fn fill(to: &NativeQueue<'_>, memory: NativeMemory<'_>, value: u32) -> Outcome {
    assert!(memory.is_object());
    // SAFETY: queue and buffer are alive, and the range is the node's.
    let event = unsafe {
        opencl3::command_queue::enqueue_fill_buffer(
            to.raw(),
            memory.pointer(),
            (&raw const value).cast(),
            4,
            memory.offset(),
            memory.size(),
            0,
            ptr::null(),
        )
    };
    release(checked("clEnqueueFillBuffer", event)?)
}

/// Enqueues a copy of the first memory that the node names to the second, of the same size.
pub fn copy(to: &NativeQueue<'_>) -> Outcome {
    let (from, into) = (to.memory(0), to.memory(1));
    assert_eq!(from.size(), into.size());
    // SAFETY: live objects, and ranges that the node names.
    let event = unsafe {
        opencl3::command_queue::enqueue_copy_buffer(
            to.raw(),
            from.pointer(),
            into.pointer(),
            from.offset(),
            into.offset(),
            into.size(),
            0,
            ptr::null(),
        )
    };
    release(checked("clEnqueueCopyBuffer", event)?)
}

/// Releases the event of a command.
fn release(event: *mut c_void) -> Outcome {
    // SAFETY: the call that enqueued the command transferred the event to the caller.
    Ok(checked("clReleaseEvent", unsafe { opencl3::event::release_event(event) })?)
}

type RecordFill = unsafe extern "system" fn(
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *const c_void,
    usize,
    usize,
    usize,
    u32,
    *const u32,
    *mut u32,
    *mut *mut c_void,
) -> i32;
type RecordFillWithProperties = unsafe extern "system" fn(
    *mut c_void,
    *mut c_void,
    *const u64,
    *mut c_void,
    *const c_void,
    usize,
    usize,
    usize,
    u32,
    *const u32,
    *mut u32,
    *mut *mut c_void,
) -> i32;

/// Returns a function of an extension, from the platform of a device.
fn function(device: &Device, name: &CStr) -> Result<*mut c_void, DriverError> {
    type Address = unsafe extern "system" fn(*mut c_void, *const c_char) -> *mut c_void;
    let platform = opencl3::device::Device::new(device.raw()).platform();
    let platform = checked("clGetDeviceInfo", platform.map_err(|error| error.0))?;
    static LIBRARY: OnceLock<dlopen2::raw::Library> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let library = std::env::var("OPENCL_DYLIB_PATH").unwrap_or_else(|_| "libOpenCL.so.1".to_owned());
        dlopen2::raw::Library::open(library).unwrap()
    });
    // SAFETY: the function of that name, and a live platform.
    Ok(unsafe {
        library.symbol::<Address>("clGetExtensionFunctionAddressForPlatform").unwrap()(platform, name.as_ptr())
    })
}

/// Records a fill of memory that the node names.
pub fn record_fill(to: &NativeRecording<'_>, memory: NativeMemory<'_>, value: u32) -> Outcome {
    let function = function(to.device(), c"clCommandFillBufferKHR")?;
    let (pattern, buffer) = ((&raw const value).cast(), memory.pointer());
    let (offset, size, none) = (memory.offset(), memory.size(), ptr::null_mut());
    // SAFETY: the function of that name, by its ABI; command buffer and buffer are alive, and the range is the node's.
    let status = unsafe {
        match to.abi() {
            RecordAbi::WithoutProperties => std::mem::transmute::<*mut c_void, RecordFill>(function)(
                to.raw(),
                none,
                buffer,
                pattern,
                4,
                offset,
                size,
                0,
                ptr::null(),
                ptr::null_mut(),
                ptr::null_mut(),
            ),
            _ => std::mem::transmute::<*mut c_void, RecordFillWithProperties>(function)(
                to.raw(),
                none,
                ptr::null(),
                buffer,
                pattern,
                4,
                offset,
                size,
                0,
                ptr::null(),
                ptr::null_mut(),
                ptr::null_mut(),
            ),
        }
    };
    Ok(checked("clCommandFillBufferKHR", if status == 0 { Ok(()) } else { Err(status) })?)
}
