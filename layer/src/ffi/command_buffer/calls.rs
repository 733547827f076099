//! The loader's functions, by their names. They are those of [`targets`], so calls do not come back into the layer.
#![allow(unsafe_code, non_snake_case, clippy::too_many_arguments)]

use std::ffi::c_void;
use std::ptr;

use opencl_sys::{
    CL_INVALID_OPERATION, cl_bool, cl_command_queue, cl_context, cl_device_id, cl_event, cl_int, cl_kernel, cl_mem,
    cl_platform_id, cl_program, cl_sampler, cl_uint, cl_ulong,
};

use crate::ffi::targets::target;

/// Declares functions with their places in the table. One that the loader does not have answers `CL_INVALID_OPERATION`.
macro_rules! calls {
    ($( $place:literal $name:ident ($($arg:ident: $type:ty),*); )*) => {
        $(
            /// # Safety
            /// As for the C function.
            pub(super) unsafe fn $name($($arg: $type),*) -> cl_int {
                // SAFETY: rule T.
                let function = unsafe { target::<unsafe extern "system" fn($($type),*) -> cl_int>($place) };
                // SAFETY: the caller's promise.
                function.map_or(CL_INVALID_OPERATION, |function| unsafe { function($($arg),*) })
            }
        )*
    };
}

calls! {
    0 clGetPlatformIDs(room: cl_uint, platforms: *mut cl_platform_id, count: *mut cl_uint);
    1 clGetPlatformInfo(of: cl_platform_id, name: cl_uint, size: usize, value: *mut c_void, size_ret: *mut usize);
    2 clGetDeviceIDs(of: cl_platform_id, kind: cl_ulong, room: cl_uint, devices: *mut cl_device_id, count: *mut cl_uint);
    3 clGetDeviceInfo(of: cl_device_id, name: cl_uint, size: usize, value: *mut c_void, size_ret: *mut usize);
    8 clGetContextInfo(of: cl_context, name: cl_uint, size: usize, value: *mut c_void, size_ret: *mut usize);
    10 clRetainCommandQueue(queue: cl_command_queue);
    11 clReleaseCommandQueue(queue: cl_command_queue);
    12 clGetCommandQueueInfo(of: cl_command_queue, name: cl_uint, size: usize, value: *mut c_void, size_ret: *mut usize);
    17 clRetainMemObject(memory: cl_mem);
    18 clReleaseMemObject(memory: cl_mem);
    20 clGetMemObjectInfo(of: cl_mem, name: cl_uint, size: usize, value: *mut c_void, size_ret: *mut usize);
    21 clGetImageInfo(of: cl_mem, name: cl_uint, size: usize, value: *mut c_void, size_ret: *mut usize);
    23 clRetainSampler(sampler: cl_sampler);
    24 clReleaseSampler(sampler: cl_sampler);
    32 clGetProgramInfo(of: cl_program, name: cl_uint, size: usize, value: *mut c_void, size_ret: *mut usize);
    33 clGetProgramBuildInfo(
        of: cl_program, device: cl_device_id, name: cl_uint, size: usize, value: *mut c_void, size_ret: *mut usize
    );
    36 clRetainKernel(kernel: cl_kernel);
    37 clReleaseKernel(kernel: cl_kernel);
    38 clSetKernelArg(kernel: cl_kernel, index: cl_uint, size: usize, value: *const c_void);
    39 clGetKernelInfo(of: cl_kernel, name: cl_uint, size: usize, value: *mut c_void, size_ret: *mut usize);
    40 clGetKernelWorkGroupInfo(
        of: cl_kernel, device: cl_device_id, name: cl_uint, size: usize, value: *mut c_void, size_ret: *mut usize
    );
    42 clGetEventInfo(of: cl_event, name: cl_uint, size: usize, value: *mut c_void, size_ret: *mut usize);
    43 clRetainEvent(event: cl_event);
    44 clReleaseEvent(event: cl_event);
    48 clEnqueueReadBuffer(
        queue: cl_command_queue, from: cl_mem, blocking: cl_bool, offset: usize, size: usize, to: *mut c_void,
        count: cl_uint, list: *const cl_event, event: *mut cl_event
    );
    50 clEnqueueCopyBuffer(
        queue: cl_command_queue, from: cl_mem, to: cl_mem, from_offset: usize, to_offset: usize, size: usize,
        count: cl_uint, list: *const cl_event, event: *mut cl_event
    );
    51 clEnqueueReadImage(
        queue: cl_command_queue, from: cl_mem, blocking: cl_bool, origin: *const usize, region: *const usize, row: usize,
        slice: usize, to: *mut c_void, count: cl_uint, list: *const cl_event, event: *mut cl_event
    );
    53 clEnqueueCopyImage(
        queue: cl_command_queue, from: cl_mem, to: cl_mem, from_origin: *const usize, to_origin: *const usize,
        region: *const usize, count: cl_uint, list: *const cl_event, event: *mut cl_event
    );
    54 clEnqueueCopyImageToBuffer(
        queue: cl_command_queue, from: cl_mem, to: cl_mem, origin: *const usize, region: *const usize, offset: usize,
        count: cl_uint, list: *const cl_event, event: *mut cl_event
    );
    55 clEnqueueCopyBufferToImage(
        queue: cl_command_queue, from: cl_mem, to: cl_mem, offset: usize, origin: *const usize, region: *const usize,
        count: cl_uint, list: *const cl_event, event: *mut cl_event
    );
    59 clEnqueueNDRangeKernel(
        queue: cl_command_queue, kernel: cl_kernel, dimensions: cl_uint, offset: *const usize, global: *const usize,
        local: *const usize, count: cl_uint, list: *const cl_event, event: *mut cl_event
    );
    85 clSetUserEventStatus(event: cl_event, status: cl_int);
    86 clEnqueueReadBufferRect(
        queue: cl_command_queue, from: cl_mem, blocking: cl_bool, from_origin: *const usize, to_origin: *const usize,
        region: *const usize, from_row: usize, from_slice: usize, to_row: usize, to_slice: usize, to: *mut c_void,
        count: cl_uint, list: *const cl_event, event: *mut cl_event
    );
    88 clEnqueueCopyBufferRect(
        queue: cl_command_queue, from: cl_mem, to: cl_mem, from_origin: *const usize, to_origin: *const usize,
        region: *const usize, from_row: usize, from_slice: usize, to_row: usize, to_slice: usize,
        count: cl_uint, list: *const cl_event, event: *mut cl_event
    );
    101 clGetKernelArgInfo(
        of: cl_kernel, index: cl_uint, name: cl_uint, size: usize, value: *mut c_void, size_ret: *mut usize
    );
    102 clEnqueueFillBuffer(
        queue: cl_command_queue, memory: cl_mem, pattern: *const c_void, pattern_size: usize, offset: usize, size: usize,
        count: cl_uint, list: *const cl_event, event: *mut cl_event
    );
    103 clEnqueueFillImage(
        queue: cl_command_queue, image: cl_mem, colour: *const c_void, origin: *const usize, region: *const usize,
        count: cl_uint, list: *const cl_event, event: *mut cl_event
    );
    105 clEnqueueMarkerWithWaitList(
        queue: cl_command_queue, count: cl_uint, list: *const cl_event, event: *mut cl_event
    );
    129 clEnqueueSVMMemcpy(
        queue: cl_command_queue, blocking: cl_bool, to: *mut c_void, from: *const c_void, size: usize,
        count: cl_uint, list: *const cl_event, event: *mut cl_event
    );
    130 clEnqueueSVMMemFill(
        queue: cl_command_queue, to: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize,
        count: cl_uint, list: *const cl_event, event: *mut cl_event
    );
    134 clSetKernelArgSVMPointer(kernel: cl_kernel, index: cl_uint, value: *const c_void);
    135 clSetKernelExecInfo(kernel: cl_kernel, name: cl_uint, size: usize, value: *const c_void);
}

/// # Safety
/// As for the C function.
pub(super) unsafe fn clCloneKernel(kernel: cl_kernel, status: *mut cl_int) -> cl_kernel {
    type Function = unsafe extern "system" fn(cl_kernel, *mut cl_int) -> cl_kernel;
    // SAFETY: rule T.
    let function = unsafe { target::<Function>(137) };
    // SAFETY: the caller's promise.
    function.map_or(ptr::null_mut(), |function| unsafe { function(kernel, status) })
}

/// # Safety
/// As for the C function.
pub(super) unsafe fn clCreateUserEvent(context: cl_context, status: *mut cl_int) -> cl_event {
    type Function = unsafe extern "system" fn(cl_context, *mut cl_int) -> cl_event;
    // SAFETY: rule T.
    let function = unsafe { target::<Function>(84) };
    // SAFETY: the caller's promise.
    function.map_or(ptr::null_mut(), |function| unsafe { function(context, status) })
}

/// # Safety
/// As for the C function.
pub(super) unsafe fn clCreateBuffer(
    context: cl_context,
    flags: cl_ulong,
    size: usize,
    host: *mut c_void,
    status: *mut cl_int,
) -> cl_mem {
    type Function = unsafe extern "system" fn(cl_context, cl_ulong, usize, *mut c_void, *mut cl_int) -> cl_mem;
    // SAFETY: rule T.
    let function = unsafe { target::<Function>(14) };
    // SAFETY: the caller's promise.
    function.map_or(ptr::null_mut(), |function| unsafe { function(context, flags, size, host, status) })
}

/// What the queries of drivers' objects have in common.
pub(super) type Query<H> = unsafe fn(H, cl_uint, usize, *mut c_void, *mut usize) -> cl_int;

/// The contexts of commands and objects are compared, and never looked into.
pub(super) fn number(context: cl_context) -> usize {
    context.addr()
}
