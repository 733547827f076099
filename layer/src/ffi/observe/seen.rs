//! What of a call is written down.

use std::ffi::c_void;
use std::ptr;
use std::slice;
use std::time::Instant;

use opencl_sys::{
    CL_QUEUE_DEVICE, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_PROPERTIES,
    CL_SUCCESS, cl_command_queue, cl_event, cl_int, cl_uint, cl_ulong,
};

use crate::ffi::{quietly, targets, watch};
use crate::report::call::{Kind, What, mix, mix_bytes};
use crate::report::recorder::{Enqueued, Properties};

/// More than any command has; the arguments of kernels are known from elsewhere.
const PARTS: usize = 6;

/// What is particular of a command.
pub(super) struct Seen {
    parts: [(What, u64); PARTS],
    len: usize,
    form: u64,
    blocking: bool,
    kernel: usize,
}

impl Seen {
    fn new() -> Self {
        Self { parts: [(What::Bytes, 0); PARTS], len: 0, form: 0, blocking: false, kernel: 0 }
    }

    fn part(&mut self, what: What, value: u64) {
        if let Some(place) = self.parts.get_mut(self.len) {
            *place = (what, value);
            self.len += 1;
        }
    }

    pub(super) fn kernel(&mut self, kernel: *mut c_void) {
        self.kernel = kernel.addr();
    }

    pub(super) fn blocking(&mut self, blocking: cl_uint) {
        self.blocking = blocking != 0;
    }

    /// Adds what is the same in all runs that are the same: other values are other runs.
    pub(super) fn form(&mut self, value: u64) {
        self.form = mix(self.form, value);
    }

    pub(super) fn memory(&mut self, memory: *mut c_void) {
        self.part(What::Memory, memory.addr() as u64);
    }

    pub(super) fn host(&mut self, address: *const c_void) {
        self.part(What::Host, address.addr() as u64);
    }

    pub(super) fn bytes(&mut self, sizes: &[usize]) {
        self.part(What::Bytes, sizes.iter().fold(0, |hash, size| mix(hash, *size as u64)));
    }

    /// # Safety
    /// Each list has `count` numbers, or is null.
    pub(super) unsafe fn places(&mut self, what: What, count: usize, lists: &[*const usize]) {
        let hash = lists.iter().fold(count as u64, |hash, list| {
            if list.is_null() {
                return mix(hash, u64::MAX);
            }
            // SAFETY: the caller promises it.
            let numbers = unsafe { slice::from_raw_parts(*list, count) };
            numbers.iter().fold(mix(hash, 0), |hash, number| mix(hash, *number as u64))
        });
        self.part(what, hash);
    }

    /// # Safety
    /// There are `len` bytes, or the address is null.
    pub(super) unsafe fn pattern(&mut self, address: *const c_void, len: usize) {
        if !address.is_null() {
            // SAFETY: the caller promises it.
            self.part(What::Pattern, mix_bytes(0, unsafe { slice::from_raw_parts(address.cast(), len) }));
        }
    }
}

/// A call whose driver has returned.
pub(super) struct Done {
    pub(super) function: &'static str,
    pub(super) kind: Kind,
    pub(super) queue: cl_command_queue,
    pub(super) success: bool,
    pub(super) begin: Instant,
    pub(super) wait_list: (cl_uint, *const cl_event),
    pub(super) event: *const cl_event,
}

/// Writes a call down.
///
/// # Safety
/// The arguments are those of a call that has just returned, as `success` says: rule A.
pub(super) unsafe fn written(done: &Done, see: impl FnOnce(&mut Seen)) {
    let time = done.begin.elapsed();
    if !done.success {
        failed();
        return;
    }
    if !watch::watches() {
        return;
    }
    quietly(|| {
        let mut seen = Seen::new();
        see(&mut seen);
        let (count, list) = done.wait_list;
        let wait_list: &[usize] = if count == 0 || list.is_null() {
            &[]
        } else {
            // SAFETY: rule A. A handle is as large as its address.
            unsafe { slice::from_raw_parts(list.cast(), count as usize) }
        };
        // SAFETY: rule A: the driver has written the event.
        let event = if done.event.is_null() { 0 } else { unsafe { done.event.read() }.addr() };
        let new = watch::record(|recorder| {
            recorder.enqueued(&Enqueued {
                function: done.function,
                kind: done.kind,
                thread: thread(),
                queue: done.queue.addr(),
                kernel: seen.kernel,
                blocking: seen.blocking,
                form: seen.form,
                parts: &seen.parts[..seen.len],
                wait_list,
                event,
                nanoseconds: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
            })
        });
        if new == Some(true) {
            // SAFETY: the program has enqueued to it.
            let properties = unsafe { properties(done.queue) };
            watch::record(|recorder| recorder.queue_has(done.queue.addr(), properties));
        }
    });
}

/// A call has failed.
pub(super) fn failed() {
    watch::record(|recorder| recorder.failed += 1);
}

/// What tells threads apart that exist at one time.
pub(super) fn thread() -> usize {
    // Without a destructor: nothing to run when the thread ends.
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| ptr::from_ref(here).addr())
}

/// Asks what a queue was made with.
///
/// # Safety
/// It is a queue.
pub(super) unsafe fn properties(queue: cl_command_queue) -> Option<Properties> {
    type Function = unsafe extern "system" fn(cl_command_queue, cl_uint, usize, *mut c_void, *mut usize) -> cl_int;
    // SAFETY: rule T: clGetCommandQueueInfo.
    let ask = unsafe { targets::target::<Function>(12) }?;
    let mut bits: cl_ulong = 0;
    let mut device: *mut c_void = ptr::null_mut();
    // SAFETY: places of the right sizes.
    let status = unsafe {
        ask(queue, CL_QUEUE_PROPERTIES, size_of_val(&bits), (&raw mut bits).cast(), ptr::null_mut())
            | ask(queue, CL_QUEUE_DEVICE, size_of_val(&device), (&raw mut device).cast(), ptr::null_mut())
    };
    (status == CL_SUCCESS).then(|| Properties {
        out_of_order: bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0,
        profiling: bits & CL_QUEUE_PROFILING_ENABLE != 0,
        device: device.addr(),
    })
}
