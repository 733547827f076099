//! `cl_intel_global_variable_access`, with the function of Intel's GPU runtime that tells an address.

use std::ffi::{c_char, c_void};

use opencl_sys::{cl_bool, cl_command_queue, cl_device_id, cl_event, cl_int, cl_program, cl_uint};

use super::Lookup;

type Write = unsafe extern "system" fn(
    cl_command_queue,
    cl_program,
    *const c_char,
    cl_bool,
    usize,
    usize,
    *const c_void,
    cl_uint,
    *const cl_event,
    *mut cl_event,
) -> cl_int;
type Pointer =
    unsafe extern "system" fn(cl_device_id, cl_program, *const c_char, *mut usize, *mut *mut c_void) -> cl_int;

/// The functions that clgraph uses, with the types of the extension's text. There is no header of it.
pub(crate) struct GlobalVariableFns {
    /// Queue, program, name, blocking, size, offset (in this order, unlike with buffers), from where; wait list and event.
    pub(crate) write: Write,
    /// Where a variable is, and its size.
    pub(crate) pointer: Option<Pointer>,
}

impl GlobalVariableFns {
    /// The table, or nothing when a driver lacks the extension.
    pub(crate) fn load(lookup: Lookup<'_>) -> Option<Self> {
        let (read, write) = (lookup(c"clEnqueueReadGlobalVariableINTEL"), lookup(c"clEnqueueWriteGlobalVariableINTEL"));
        if read.is_null() || write.is_null() {
            return None;
        }
        Some(Self {
            // SAFETY: **headers**, and it is not null.
            write: unsafe { std::mem::transmute::<*mut c_void, Write>(write) },
            // SAFETY: **headers**, and null is none.
            pointer: unsafe {
                std::mem::transmute::<*mut c_void, Option<Pointer>>(lookup(c"clGetDeviceGlobalVariablePointerINTEL"))
            },
        })
    }
}
