//! The functions of `cl_intel_global_variable_access`, and the function of Intel's GPU runtime that returns an address.

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

/// The functions that clgraph uses, with the types of the extension's specification. There is no header for it.
pub(crate) struct GlobalVariableFns {
    /// Takes queue, program, name, blocking, size, offset (in this order, unlike buffer functions), source, wait list
    /// and event.
    pub(crate) write: Write,
    /// Returns the address and the size of a variable.
    pub(crate) pointer: Option<Pointer>,
}

impl GlobalVariableFns {
    /// Loads the table, or returns `None` if the driver lacks the extension.
    pub(crate) fn load(lookup: Lookup<'_>) -> Option<Self> {
        let (read, write) = (lookup(c"clEnqueueReadGlobalVariableINTEL"), lookup(c"clEnqueueWriteGlobalVariableINTEL"));
        if read.is_null() || write.is_null() {
            return None;
        }
        Some(Self {
            // SAFETY: **headers**, and the address is not null.
            write: unsafe { std::mem::transmute::<*mut c_void, Write>(write) },
            // SAFETY: **headers**, and null is `None`.
            pointer: unsafe {
                std::mem::transmute::<*mut c_void, Option<Pointer>>(lookup(c"clGetDeviceGlobalVariablePointerINTEL"))
            },
        })
    }
}
