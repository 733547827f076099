//! The functions of `cl_intel_unified_shared_memory`.

use std::ffi::c_void;

use opencl_sys::{
    cl_bool, cl_command_queue, cl_context, cl_device_id, cl_event, cl_int, cl_kernel, cl_mem_migration_flags, cl_uint,
};

use super::Lookup;

/// Names and values in alternation, ended by 0.
type Properties = *const u64;

pub(crate) const CL_MEM_ALLOC_TYPE_INTEL: cl_uint = 0x419A;
pub(crate) const CL_MEM_ALLOC_BASE_PTR_INTEL: cl_uint = 0x419B;
pub(crate) const CL_MEM_ALLOC_SIZE_INTEL: cl_uint = 0x419C;
pub(crate) const CL_MEM_TYPE_UNKNOWN_INTEL: cl_uint = 0x4196;
/// `CL_KERNEL_EXEC_INFO_INDIRECT_{HOST,DEVICE,SHARED}_ACCESS_INTEL`.
pub(crate) const USM_ACCESS: [cl_uint; 3] = [0x4200, 0x4201, 0x4202];

/// Declares the functions, as fields.
macro_rules! functions {
    (
        required { $( $field:ident $name:literal: fn($($arg:ty),* $(,)?) -> $ret:ty; )* }
        hints { $( $hint:ident $hint_name:literal: fn($($hint_arg:ty),* $(,)?) -> $hint_ret:ty; )* }
    ) => {
        /// The functions, with the types of the extension's header.
        pub(crate) struct UsmFns {
            $( pub(crate) $field: unsafe extern "system" fn($($arg),*) -> $ret, )*
            $( pub(crate) $hint: Option<unsafe extern "system" fn($($hint_arg),*) -> $hint_ret>, )*
        }

        impl UsmFns {
            /// Loads the table, or returns `None` if the driver lacks a required function.
            pub(crate) fn load(lookup: Lookup<'_>) -> Option<Self> {
                Some(Self {
                    $(
                        $field: {
                            let address = lookup($name);
                            if address.is_null() {
                                return None;
                            }
                            // SAFETY: **headers**, and the address is not null.
                            unsafe {
                                std::mem::transmute::<*mut c_void, unsafe extern "system" fn($($arg),*) -> $ret>(address)
                            }
                        },
                    )*
                    $(
                        // SAFETY: **headers**, and null is `None`.
                        $hint: unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                Option<unsafe extern "system" fn($($hint_arg),*) -> $hint_ret>,
                            >(lookup($hint_name))
                        },
                    )*
                })
            }
        }
    };
}

functions! {
    required {
    alloc_host c"clHostMemAllocINTEL": fn(cl_context, Properties, usize, cl_uint, *mut cl_int) -> *mut c_void;
    alloc_device c"clDeviceMemAllocINTEL":
        fn(cl_context, cl_device_id, Properties, usize, cl_uint, *mut cl_int) -> *mut c_void;
    alloc_shared c"clSharedMemAllocINTEL":
        fn(cl_context, cl_device_id, Properties, usize, cl_uint, *mut cl_int) -> *mut c_void;
    free c"clMemFreeINTEL": fn(cl_context, *mut c_void) -> cl_int;
    info c"clGetMemAllocInfoINTEL":
        fn(cl_context, *const c_void, cl_uint, usize, *mut c_void, *mut usize) -> cl_int;
    set_arg c"clSetKernelArgMemPointerINTEL": fn(cl_kernel, cl_uint, *const c_void) -> cl_int;
    memcpy c"clEnqueueMemcpyINTEL":
        fn(cl_command_queue, cl_bool, *mut c_void, *const c_void, usize, cl_uint, *const cl_event, *mut cl_event) -> cl_int;
    fill c"clEnqueueMemFillINTEL":
        fn(cl_command_queue, *mut c_void, *const c_void, usize, usize, cl_uint, *const cl_event, *mut cl_event) -> cl_int;
    }
    hints {
    migrate c"clEnqueueMigrateMemINTEL":
        fn(cl_command_queue, *const c_void, usize, cl_mem_migration_flags, cl_uint, *const cl_event, *mut cl_event)
            -> cl_int;
    advise c"clEnqueueMemAdviseINTEL":
        fn(cl_command_queue, *const c_void, usize, cl_uint, cl_uint, *const cl_event, *mut cl_event) -> cl_int;
    }
}
