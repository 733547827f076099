//! Functions that make what is enqueued, set arguments, and wait.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::slice;

use opencl_sys::{
    CL_EVENT_COMMAND_EXECUTION_STATUS, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_INVALID_OPERATION,
    CL_KERNEL_FUNCTION_NAME, CL_PROGRAM_NUM_KERNELS, CL_SUCCESS, cl_command_queue, cl_context, cl_device_id, cl_event,
    cl_int, cl_kernel, cl_mem, cl_mem_flags, cl_program, cl_uint, cl_ulong,
};

use super::seen::{failed, properties, thread};
use crate::ffi::{quietly, targets::target, watch};

/// Declares wrappers. The block says what is seen, when the loader's function has returned.
macro_rules! functions {
    ($( $place:literal $name:ident ($($arg:ident: $type:ty),*) -> $result:ty, $absent:expr, |$returned:ident| $see:block )*) => {
        $(
            #[allow(non_snake_case)]
            unsafe extern "system" fn $name($($arg: $type),*) -> $result {
                type Function = unsafe extern "system" fn($($type),*) -> $result;
                // SAFETY: rule T.
                let Some(function) = (unsafe { target::<Function>($place) }) else { return $absent };
                // SAFETY: rule V.
                let $returned = unsafe { function($($arg),*) };
                if watch::watches() {
                    #[allow(unused_unsafe)]
                    quietly(|| {
                        // SAFETY: rule A.
                        unsafe { $see }
                    });
                }
                $returned
            }
        )*

        pub(super) fn wrappers() -> Vec<(usize, *mut c_void)> {
            vec![
                $( ($place, $name as *const () as *mut c_void), )*
                (11, clReleaseCommandQueue as *const () as *mut c_void),
            ]
        }
    };
}

functions! {
    9 clCreateCommandQueue (
        context: cl_context, device: cl_device_id, bits: cl_ulong, status: *mut cl_int
    ) -> cl_command_queue, ptr::null_mut(), |queue| {
        made(queue);
    }
    123 clCreateCommandQueueWithProperties (
        context: cl_context, device: cl_device_id, list: *const cl_ulong, status: *mut cl_int
    ) -> cl_command_queue, ptr::null_mut(), |queue| {
        made(queue);
    }
    10 clRetainCommandQueue (queue: cl_command_queue) -> cl_int, CL_INVALID_OPERATION, |status| {
        if status == CL_SUCCESS {
            watch::record(|recorder| recorder.queue_was_retained(queue.addr()));
        }
    }
    14 clCreateBuffer (
        context: cl_context, flags: cl_mem_flags, size: usize, host: *mut c_void, status: *mut cl_int
    ) -> cl_mem, ptr::null_mut(), |memory| {
        memory_made(memory);
    }
    15 clCreateImage2D (
        context: cl_context, flags: cl_mem_flags, format: *const c_void, width: usize, height: usize, row: usize,
        host: *mut c_void, status: *mut cl_int
    ) -> cl_mem, ptr::null_mut(), |memory| {
        memory_made(memory);
    }
    16 clCreateImage3D (
        context: cl_context, flags: cl_mem_flags, format: *const c_void, width: usize, height: usize, depth: usize,
        row: usize, slice: usize, host: *mut c_void, status: *mut cl_int
    ) -> cl_mem, ptr::null_mut(), |memory| {
        memory_made(memory);
    }
    82 clCreateSubBuffer (
        buffer: cl_mem, flags: cl_mem_flags, kind: cl_uint, place: *const c_void, status: *mut cl_int
    ) -> cl_mem, ptr::null_mut(), |memory| {
        memory_made(memory);
    }
    96 clCreateImage (
        context: cl_context, flags: cl_mem_flags, format: *const c_void, form: *const c_void, host: *mut c_void,
        status: *mut cl_int
    ) -> cl_mem, ptr::null_mut(), |memory| {
        memory_made(memory);
    }
    124 clCreatePipe (
        context: cl_context, flags: cl_mem_flags, packet: cl_uint, packets: cl_uint, list: *const isize, status: *mut cl_int
    ) -> cl_mem, ptr::null_mut(), |memory| {
        memory_made(memory);
    }
    146 clCreateBufferWithProperties (
        context: cl_context, list: *const cl_ulong, flags: cl_mem_flags, size: usize, host: *mut c_void, status: *mut cl_int
    ) -> cl_mem, ptr::null_mut(), |memory| {
        memory_made(memory);
    }
    147 clCreateImageWithProperties (
        context: cl_context, list: *const cl_ulong, flags: cl_mem_flags, format: *const c_void, form: *const c_void,
        host: *mut c_void, status: *mut cl_int
    ) -> cl_mem, ptr::null_mut(), |memory| {
        memory_made(memory);
    }
    34 clCreateKernel (
        program: cl_program, name: *const c_char, status: *mut cl_int
    ) -> cl_kernel, ptr::null_mut(), |kernel| {
        if !kernel.is_null() {
            let name = CStr::from_ptr(name).to_bytes();
            watch::record(|recorder| recorder.kernel_was_made(kernel.addr(), name, program.addr()));
        }
    }
    35 clCreateKernelsInProgram (
        program: cl_program, room: cl_uint, kernels: *mut cl_kernel, count: *mut cl_uint
    ) -> cl_int, CL_INVALID_OPERATION, |status| {
        if status == CL_SUCCESS && !kernels.is_null() {
            all_made(program, room, kernels);
        }
    }
    137 clCloneKernel (from: cl_kernel, status: *mut cl_int) -> cl_kernel, ptr::null_mut(), |kernel| {
        if !kernel.is_null() {
            watch::record(|recorder| recorder.kernel_was_cloned(from.addr(), kernel.addr()));
        }
    }
    38 clSetKernelArg (
        kernel: cl_kernel, index: cl_uint, size: usize, value: *const c_void
    ) -> cl_int, CL_INVALID_OPERATION, |status| {
        if status == CL_SUCCESS {
            let bytes = if value.is_null() { Err(size) } else { Ok(slice::from_raw_parts(value.cast(), size)) };
            watch::record(|recorder| recorder.argument_was_set(kernel.addr(), index, bytes));
        } else {
            failed();
        }
    }
    134 clSetKernelArgSVMPointer (
        kernel: cl_kernel, index: cl_uint, value: *const c_void
    ) -> cl_int, CL_INVALID_OPERATION, |status| {
        if status == CL_SUCCESS {
            watch::record(|recorder| recorder.pointer_was_set(kernel.addr(), index, value.addr()));
        } else {
            failed();
        }
    }
    41 clWaitForEvents (count: cl_uint, list: *const cl_event) -> cl_int, CL_INVALID_OPERATION, |status| {
        // It has waited for a command that has failed, too.
        if status == CL_SUCCESS || status == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST {
            watch::record(|recorder| recorder.waited(thread(), 0, "clWaitForEvents"));
        }
    }
    47 clFinish (queue: cl_command_queue) -> cl_int, CL_INVALID_OPERATION, |status| {
        if status == CL_SUCCESS {
            watch::record(|recorder| recorder.waited(thread(), queue.addr(), "clFinish"));
        }
    }
    42 clGetEventInfo (
        event: cl_event, name: cl_uint, size: usize, value: *mut c_void, size_ret: *mut usize
    ) -> cl_int, CL_INVALID_OPERATION, |status| {
        let asks = name == CL_EVENT_COMMAND_EXECUTION_STATUS && size >= size_of::<cl_int>() && !value.is_null();
        // Who looks until a command is done waits for it.
        if status == CL_SUCCESS && asks && value.cast::<cl_int>().read_unaligned() <= 0 {
            watch::record(|recorder| recorder.waited(thread(), 0, "clGetEventInfo"));
        }
    }
    45 clGetEventProfilingInfo (
        event: cl_event, name: cl_uint, size: usize, value: *mut c_void, size_ret: *mut usize
    ) -> cl_int, CL_INVALID_OPERATION, |status| {
        if status == CL_SUCCESS {
            watch::record(|recorder| recorder.times += 1);
        }
    }
    81 clSetEventCallback (
        event: cl_event, status_for: cl_int, function: Option<unsafe extern "system" fn(cl_event, cl_int, *mut c_void)>,
        data: *mut c_void
    ) -> cl_int, CL_INVALID_OPERATION, |status| {
        if status == CL_SUCCESS {
            watch::record(|recorder| recorder.callback_was_set(thread()));
        }
    }
    84 clCreateUserEvent (context: cl_context, status: *mut cl_int) -> cl_event, ptr::null_mut(), |event| {
        if !event.is_null() {
            watch::record(|recorder| recorder.user_event_was_made(event.addr()));
        }
    }
    65 clGetExtensionFunctionAddress (name: *const c_char) -> *mut c_void, ptr::null_mut(), |function| {
        asked_for(name, function);
    }
    107 clGetExtensionFunctionAddressForPlatform (
        platform: *mut c_void, name: *const c_char
    ) -> *mut c_void, ptr::null_mut(), |function| {
        asked_for(name, function);
    }
}

/// What is seen is seen before: see [`crate::report::recorder::Recorder::queue_will_be_released`]. The handle is a number there,
/// whatever the program gives.
#[allow(non_snake_case)]
unsafe extern "system" fn clReleaseCommandQueue(queue: cl_command_queue) -> cl_int {
    type Function = unsafe extern "system" fn(cl_command_queue) -> cl_int;
    // SAFETY: rule T.
    let Some(function) = (unsafe { target::<Function>(11) }) else { return CL_INVALID_OPERATION };
    watch::record(|recorder| recorder.queue_will_be_released(queue.addr()));
    // SAFETY: rule V.
    unsafe { function(queue) }
}

/// # Safety
/// It is a new queue, or null.
unsafe fn made(queue: cl_command_queue) {
    if !queue.is_null() {
        // SAFETY: as the caller promises.
        let has = unsafe { properties(queue) };
        watch::record(|recorder| recorder.queue_was_made(queue.addr(), has));
    }
}

fn memory_made(memory: cl_mem) {
    if !memory.is_null() {
        watch::record(|recorder| recorder.memory_was_made(memory.addr()));
    }
}

/// # Safety
/// The arguments of a call of clCreateKernelsInProgram that has succeeded.
unsafe fn all_made(program: cl_program, room: cl_uint, kernels: *const cl_kernel) {
    type Function = unsafe extern "system" fn(*mut c_void, cl_uint, usize, *mut c_void, *mut usize) -> cl_int;
    // SAFETY: rule T: clGetKernelInfo, clGetProgramInfo.
    let (Some(ask), Some(ask_program)) = (unsafe { (target::<Function>(39), target::<Function>(32)) }) else { return };
    // The program need not have asked how many there are.
    let mut count: usize = 0;
    let size = size_of_val(&count);
    // SAFETY: a program, and a place of the right size.
    let status =
        unsafe { ask_program(program, CL_PROGRAM_NUM_KERNELS, size, (&raw mut count).cast(), ptr::null_mut()) };
    if status != CL_SUCCESS {
        return;
    }
    for at in 0..count.min(room as usize) {
        // SAFETY: the driver has written that many.
        let kernel = unsafe { kernels.add(at).read() };
        let mut len = 0;
        // SAFETY: a kernel that was just made, and a place for the length of its name.
        let status = unsafe { ask(kernel, CL_KERNEL_FUNCTION_NAME, 0, ptr::null_mut(), &raw mut len) };
        let mut name = vec![0_u8; if status == CL_SUCCESS { len } else { 0 }];
        // SAFETY: the same, and room for its name.
        let status =
            unsafe { ask(kernel, CL_KERNEL_FUNCTION_NAME, name.len(), name.as_mut_ptr().cast(), ptr::null_mut()) };
        let name =
            if status == CL_SUCCESS { name.split(|byte| *byte == 0).next().unwrap_or_default() } else { b"a kernel" };
        watch::record(|recorder| recorder.kernel_was_made(kernel.addr(), name, program.addr()));
    }
}

/// # Safety
/// The argument and the result of a call that has returned.
unsafe fn asked_for(name: *const c_char, function: *const c_void) {
    if !name.is_null() && !function.is_null() {
        // SAFETY: the loader has read the name.
        let name = unsafe { CStr::from_ptr(name) }.to_bytes();
        watch::record(|recorder| recorder.function_was_asked_for(name));
    }
}
