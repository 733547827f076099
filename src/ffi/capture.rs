//! The functions of clgraph's layer that capture a queue: version 1 of `cl_capture_table_clg`, as
//! `layer/include/clgraph_layer.h` has it.

use std::ffi::{CStr, c_void};

use opencl_sys::{cl_command_queue, cl_event, cl_int, cl_kernel, cl_mem, cl_uint, cl_ulong};

use super::Lookup;

/// A `cl_command_buffer_khr` of the layer: a number that it looks up.
pub(crate) type RawCaptured = *mut c_void;

/// Names of `begin` and of `info`.
pub(crate) const CL_CAPTURE_MODE_CLG: cl_ulong = 0x434C_4701;
pub(crate) const CL_CAPTURE_RELAXED_CLG: cl_ulong = 1;
pub(crate) const CL_CAPTURE_STATUS_CLG: cl_uint = 0x434C_4702;
pub(crate) const CL_CAPTURE_COMMAND_COUNT_CLG: cl_uint = 0x434C_4703;
pub(crate) const CL_CAPTURE_FAULT_CLG: cl_uint = 0x434C_4704;

/// Kinds of arguments.
pub(crate) const CL_CAPTURED_BYTES_CLG: cl_uint = 1;
pub(crate) const CL_CAPTURED_MEMORY_CLG: cl_uint = 2;
pub(crate) const CL_CAPTURED_SAMPLER_CLG: cl_uint = 3;
pub(crate) const CL_CAPTURED_NOTHING_CLG: cl_uint = 4;
pub(crate) const CL_CAPTURED_POINTER_CLG: cl_uint = 5;
pub(crate) const CL_CAPTURED_INTEL_POINTER_CLG: cl_uint = 6;

/// What a command does with memory.
pub(crate) const CL_CAPTURED_READ_CLG: cl_uint = 1;

/// `cl_captured_argument_clg`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CapturedArgument {
    pub(crate) kind: cl_uint,
    pub(crate) size: usize,
    pub(crate) value: *const c_void,
}

/// `cl_captured_memory_clg`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CapturedMemory {
    pub(crate) memory: cl_mem,
    pub(crate) access: cl_uint,
    pub(crate) offset: usize,
    pub(crate) size: usize,
}

/// `cl_captured_command_clg`
#[repr(C)]
pub(crate) struct CapturedCommand {
    pub(crate) kind: cl_uint,
    pub(crate) is_work: cl_uint,
    pub(crate) has_list: cl_uint,
    pub(crate) has_exec_info: cl_uint,
    pub(crate) dimensions: cl_uint,
    pub(crate) after: *const cl_uint,
    pub(crate) after_count: usize,
    pub(crate) memory: *const CapturedMemory,
    pub(crate) memory_count: usize,
    pub(crate) pattern: *const c_void,
    pub(crate) pattern_size: usize,
    pub(crate) kernel: cl_kernel,
    pub(crate) offset: [usize; 3],
    pub(crate) global: [usize; 3],
    pub(crate) local: [usize; 3],
    pub(crate) arguments: *const CapturedArgument,
    pub(crate) argument_count: usize,
}

/// `cl_visit_captured_clg`
pub(crate) type VisitCaptured = unsafe extern "system" fn(*mut c_void, *const CapturedCommand) -> cl_int;

/// `cl_capture_table_clg`
#[repr(C)]
pub(crate) struct CaptureFns {
    pub(crate) begin: unsafe extern "system" fn(cl_command_queue, *const cl_ulong) -> cl_int,
    pub(crate) end: unsafe extern "system" fn(cl_command_queue, *mut RawCaptured) -> cl_int,
    pub(crate) info: unsafe extern "system" fn(cl_command_queue, cl_uint, usize, *mut c_void, *mut usize) -> cl_int,
    pub(crate) visit: unsafe extern "system" fn(RawCaptured, Option<VisitCaptured>, *mut c_void) -> cl_int,
    pub(crate) enqueue: unsafe extern "system" fn(
        RawCaptured,
        cl_uint,
        cl_command_queue,
        cl_uint,
        *const cl_event,
        *mut cl_event,
    ) -> cl_int,
    pub(crate) retain: unsafe extern "system" fn(RawCaptured) -> cl_int,
    pub(crate) release: unsafe extern "system" fn(RawCaptured) -> cl_int,
}

impl CaptureFns {
    /// Returns the layer's table, if it is loaded and serves the platform. Loaders keep layers until the process ends.
    pub(crate) fn load(lookup: Lookup<'_>) -> Option<&'static Self> {
        const NAME: &CStr = c"clGetCaptureTableCLG";
        const VERSION: cl_uint = 1;
        // SAFETY: **headers**, and null is `None`.
        let table = unsafe {
            std::mem::transmute::<*mut c_void, Option<unsafe extern "system" fn(cl_uint) -> *const Self>>(lookup(NAME))
        }?;
        // SAFETY: **headers**: a table of that version that lives as long as the process, or null.
        unsafe { table(VERSION).as_ref() }
    }
}
