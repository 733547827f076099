//! Functions that enqueue.

use std::ffi::c_void;
use std::ptr;
use std::time::Instant;

use opencl_sys::{
    CL_INVALID_OPERATION, CL_SUCCESS, cl_bool, cl_command_queue, cl_event, cl_int, cl_kernel, cl_map_flags, cl_mem,
    cl_mem_migration_flags, cl_uint,
};

use super::seen::{Done, written};
use crate::ffi::targets::target;
use crate::report::call::{Kind, What};

/// Declares wrappers of functions that end with a wait list and a place for an event. The block says what is seen, when the
/// driver has accepted the call.
macro_rules! commands {
    (
        $( $place:literal $name:ident $kind:ident ($($arg:ident: $type:ty),*) |$seen:ident| $see:block )*
        shares { $( $shares_place:literal $shares:ident )* }
    ) => {
        $( commands!(@one $place $name $kind ($($arg: $type),*) |$seen| $see); )*
        $( commands!(@one $shares_place $shares Share (objects: cl_uint, _memory: *const cl_mem) |seen| {
            seen.form(u64::from(objects));
        }); )*

        fn with_lists() -> Vec<(usize, *mut c_void)> {
            vec![
                $( ($place, $name as *const () as *mut c_void), )*
                $( ($shares_place, $shares as *const () as *mut c_void), )*
            ]
        }
    };
    (@one $place:literal $name:ident $kind:ident ($($arg:ident: $type:ty),*) |$seen:ident| $see:block) => {
        #[allow(non_snake_case)]
        unsafe extern "system" fn $name(
            queue: cl_command_queue,
            $($arg: $type,)*
            count: cl_uint,
            list: *const cl_event,
            event: *mut cl_event,
        ) -> cl_int {
            type Function = unsafe extern "system" fn(
                cl_command_queue,
                $($type,)*
                cl_uint,
                *const cl_event,
                *mut cl_event,
            ) -> cl_int;
            // SAFETY: rule T.
            let Some(function) = (unsafe { target::<Function>($place) }) else { return CL_INVALID_OPERATION };
            let begin = Instant::now();
            // SAFETY: rule V.
            let status = unsafe { function(queue, $($arg,)* count, list, event) };
            let done = Done {
                function: stringify!($name),
                kind: Kind::$kind,
                queue,
                success: status == CL_SUCCESS,
                begin,
                wait_list: (count, list),
                event,
            };
            // SAFETY: rule A.
            unsafe { written(&done, |$seen| $see) };
            status
        }
    };
}

commands! {
    48 clEnqueueReadBuffer Read (
        buffer: cl_mem, blocking: cl_bool, offset: usize, size: usize, host: *mut c_void
    ) |seen| {
        seen.blocking(blocking);
        seen.memory(buffer);
        seen.bytes(&[offset, size]);
        seen.host(host);
    }
    49 clEnqueueWriteBuffer Write (
        buffer: cl_mem, blocking: cl_bool, offset: usize, size: usize, host: *const c_void
    ) |seen| {
        seen.blocking(blocking);
        seen.memory(buffer);
        seen.bytes(&[offset, size]);
        seen.host(host);
    }
    50 clEnqueueCopyBuffer Copy (
        from: cl_mem, to: cl_mem, from_offset: usize, to_offset: usize, size: usize
    ) |seen| {
        seen.memory(from);
        seen.memory(to);
        seen.bytes(&[from_offset, to_offset, size]);
    }
    51 clEnqueueReadImage Read (
        image: cl_mem, blocking: cl_bool, origin: *const usize, region: *const usize, row: usize, slice: usize,
        host: *mut c_void
    ) |seen| {
        seen.blocking(blocking);
        seen.memory(image);
        seen.places(What::Bytes, 3, &[origin, region]);
        seen.bytes(&[row, slice]);
        seen.host(host);
    }
    52 clEnqueueWriteImage Write (
        image: cl_mem, blocking: cl_bool, origin: *const usize, region: *const usize, row: usize, slice: usize,
        host: *const c_void
    ) |seen| {
        seen.blocking(blocking);
        seen.memory(image);
        seen.places(What::Bytes, 3, &[origin, region]);
        seen.bytes(&[row, slice]);
        seen.host(host);
    }
    53 clEnqueueCopyImage Copy (
        from: cl_mem, to: cl_mem, from_origin: *const usize, to_origin: *const usize, region: *const usize
    ) |seen| {
        seen.memory(from);
        seen.memory(to);
        seen.places(What::Bytes, 3, &[from_origin, to_origin, region]);
    }
    54 clEnqueueCopyImageToBuffer Copy (
        from: cl_mem, to: cl_mem, origin: *const usize, region: *const usize, offset: usize
    ) |seen| {
        seen.memory(from);
        seen.memory(to);
        seen.places(What::Bytes, 3, &[origin, region]);
        seen.bytes(&[offset]);
    }
    55 clEnqueueCopyBufferToImage Copy (
        from: cl_mem, to: cl_mem, offset: usize, origin: *const usize, region: *const usize
    ) |seen| {
        seen.memory(from);
        seen.memory(to);
        seen.bytes(&[offset]);
        seen.places(What::Bytes, 3, &[origin, region]);
    }
    58 clEnqueueUnmapMemObject Unmap (memory: cl_mem, host: *mut c_void) |seen| {
        seen.memory(memory);
        // The driver has chosen the address.
        let _ = host;
    }
    59 clEnqueueNDRangeKernel Kernel (
        kernel: cl_kernel, dimensions: cl_uint, offset: *const usize, global: *const usize, local: *const usize
    ) |seen| {
        seen.kernel(kernel);
        seen.form(u64::from(dimensions));
        seen.places(What::Range, dimensions as usize, &[offset, global, local]);
    }
    60 clEnqueueTask Kernel (kernel: cl_kernel) |seen| {
        seen.kernel(kernel);
    }
    61 clEnqueueNativeKernel Native (
        function: Option<unsafe extern "system" fn(*mut c_void)>, arguments: *mut c_void, size: usize, count_mem: cl_uint,
        memory: *const cl_mem, places: *mut *const c_void
    ) |seen| {
        let _ = (arguments, memory, places);
        seen.form(function.map_or(0, |function| function as usize as u64));
        seen.bytes(&[size, count_mem as usize]);
    }
    86 clEnqueueReadBufferRect Read (
        buffer: cl_mem, blocking: cl_bool, origin: *const usize, host_origin: *const usize, region: *const usize,
        row: usize, slice: usize, host_row: usize, host_slice: usize, host: *mut c_void
    ) |seen| {
        seen.blocking(blocking);
        seen.memory(buffer);
        seen.places(What::Bytes, 3, &[origin, host_origin, region]);
        seen.bytes(&[row, slice, host_row, host_slice]);
        seen.host(host);
    }
    87 clEnqueueWriteBufferRect Write (
        buffer: cl_mem, blocking: cl_bool, origin: *const usize, host_origin: *const usize, region: *const usize,
        row: usize, slice: usize, host_row: usize, host_slice: usize, host: *const c_void
    ) |seen| {
        seen.blocking(blocking);
        seen.memory(buffer);
        seen.places(What::Bytes, 3, &[origin, host_origin, region]);
        seen.bytes(&[row, slice, host_row, host_slice]);
        seen.host(host);
    }
    88 clEnqueueCopyBufferRect Copy (
        from: cl_mem, to: cl_mem, from_origin: *const usize, to_origin: *const usize, region: *const usize, from_row: usize,
        from_slice: usize, to_row: usize, to_slice: usize
    ) |seen| {
        seen.memory(from);
        seen.memory(to);
        seen.places(What::Bytes, 3, &[from_origin, to_origin, region]);
        seen.bytes(&[from_row, from_slice, to_row, to_slice]);
    }
    102 clEnqueueFillBuffer Fill (
        buffer: cl_mem, pattern: *const c_void, pattern_size: usize, offset: usize, size: usize
    ) |seen| {
        seen.memory(buffer);
        seen.bytes(&[offset, size]);
        seen.pattern(pattern, pattern_size);
    }
    103 clEnqueueFillImage Fill (
        image: cl_mem, colour: *const c_void, origin: *const usize, region: *const usize
    ) |seen| {
        seen.memory(image);
        seen.places(What::Bytes, 3, &[origin, region]);
        // Depth images have one number, which is followed by nothing that may be read.
        seen.pattern(colour, 4);
    }
    104 clEnqueueMigrateMemObjects Migrate (
        count_mem: cl_uint, memory: *const cl_mem, flags: cl_mem_migration_flags
    ) |seen| {
        seen.form(flags);
        seen.form(u64::from(count_mem));
        let _ = memory;
    }
    105 clEnqueueMarkerWithWaitList Order () |seen| {
        let _ = seen;
    }
    106 clEnqueueBarrierWithWaitList Order () |seen| {
        let _ = seen;
    }
    128 clEnqueueSVMFree Free (
        count_mem: cl_uint, memory: *mut *mut c_void,
        function: Option<unsafe extern "system" fn(cl_command_queue, cl_uint, *mut *mut c_void, *mut c_void)>,
        data: *mut c_void
    ) |seen| {
        seen.form(u64::from(count_mem));
        let _ = (memory, function, data);
    }
    129 clEnqueueSVMMemcpy Copy (
        blocking: cl_bool, to: *mut c_void, from: *const c_void, size: usize
    ) |seen| {
        seen.blocking(blocking);
        seen.host(to);
        seen.host(from);
        seen.bytes(&[size]);
    }
    130 clEnqueueSVMMemFill Fill (
        to: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize
    ) |seen| {
        seen.host(to);
        seen.bytes(&[size]);
        seen.pattern(pattern, pattern_size);
    }
    131 clEnqueueSVMMap Map (
        blocking: cl_bool, flags: cl_map_flags, host: *mut c_void, size: usize
    ) |seen| {
        seen.blocking(blocking);
        seen.form(flags);
        seen.host(host);
        seen.bytes(&[size]);
    }
    132 clEnqueueSVMUnmap Unmap (host: *mut c_void) |seen| {
        seen.host(host);
    }
    139 clEnqueueSVMMigrateMem Migrate (
        count_mem: cl_uint, memory: *const *const c_void, sizes: *const usize, flags: cl_mem_migration_flags
    ) |seen| {
        seen.form(flags);
        seen.form(u64::from(count_mem));
        let _ = (memory, sizes);
    }
    // Objects of graphics that are shared.
    shares {
        72 clEnqueueAcquireGLObjects
        73 clEnqueueReleaseGLObjects
        79 clEnqueueAcquireD3D10ObjectsKHR
        80 clEnqueueReleaseD3D10ObjectsKHR
        114 clEnqueueAcquireD3D11ObjectsKHR
        115 clEnqueueReleaseD3D11ObjectsKHR
        117 clEnqueueAcquireDX9MediaSurfacesKHR
        118 clEnqueueReleaseDX9MediaSurfacesKHR
        120 clEnqueueAcquireEGLObjectsKHR
        121 clEnqueueReleaseEGLObjectsKHR
    }
}

/// Declares wrappers of functions that return mapped memory.
macro_rules! maps {
    ($( $place:literal $name:ident ($($arg:ident: $type:ty),*) |$seen:ident| $see:block )*) => {
        $(
            #[allow(non_snake_case, clippy::too_many_arguments)]
            unsafe extern "system" fn $name(
                queue: cl_command_queue,
                memory: cl_mem,
                blocking: cl_bool,
                flags: cl_map_flags,
                $($arg: $type,)*
                count: cl_uint,
                list: *const cl_event,
                event: *mut cl_event,
                status: *mut cl_int,
            ) -> *mut c_void {
                type Function = unsafe extern "system" fn(
                    cl_command_queue,
                    cl_mem,
                    cl_bool,
                    cl_map_flags,
                    $($type,)*
                    cl_uint,
                    *const cl_event,
                    *mut cl_event,
                    *mut cl_int,
                ) -> *mut c_void;
                // SAFETY: rule T.
                let Some(function) = (unsafe { target::<Function>($place) }) else { return ptr::null_mut() };
                let begin = Instant::now();
                // SAFETY: rule V.
                let address = unsafe { function(queue, memory, blocking, flags, $($arg,)* count, list, event, status) };
                let done = Done {
                    function: stringify!($name),
                    kind: Kind::Map,
                    queue,
                    success: !address.is_null(),
                    begin,
                    wait_list: (count, list),
                    event,
                };
                // SAFETY: rule A.
                unsafe {
                    written(&done, |$seen| {
                        $seen.blocking(blocking);
                        $seen.form(flags);
                        $seen.memory(memory);
                        $see
                    })
                };
                address
            }
        )*

        fn with_memory() -> Vec<(usize, *mut c_void)> {
            vec![$( ($place, $name as *const () as *mut c_void) ),*]
        }
    };
}

maps! {
    56 clEnqueueMapBuffer (offset: usize, size: usize) |seen| {
        seen.bytes(&[offset, size]);
    }
    57 clEnqueueMapImage (
        origin: *const usize, region: *const usize, row: *mut usize, slice: *mut usize
    ) |seen| {
        seen.places(What::Bytes, 3, &[origin, region]);
        let _ = (row, slice);
    }
}

/// Declares wrappers of functions that order commands, from before OpenCL 1.2.
macro_rules! old {
    ($( $place:literal $name:ident ($($arg:ident: $type:ty),*) $list:expr, $event:expr; )*) => {
        $(
            #[allow(non_snake_case)]
            unsafe extern "system" fn $name(queue: cl_command_queue, $($arg: $type),*) -> cl_int {
                type Function = unsafe extern "system" fn(cl_command_queue, $($type),*) -> cl_int;
                // SAFETY: rule T.
                let Some(function) = (unsafe { target::<Function>($place) }) else { return CL_INVALID_OPERATION };
                let begin = Instant::now();
                // SAFETY: rule V.
                let status = unsafe { function(queue, $($arg),*) };
                let success = status == CL_SUCCESS;
                let (function, kind) = (stringify!($name), Kind::Order);
                let done = Done { function, kind, queue, success, begin, wait_list: $list, event: $event };
                // SAFETY: rule A.
                unsafe { written(&done, |_| {}) };
                status
            }
        )*

        fn without_lists() -> Vec<(usize, *mut c_void)> {
            vec![$( ($place, $name as *const () as *mut c_void) ),*]
        }
    };
}

old! {
    62 clEnqueueMarker (event: *mut cl_event) (0, ptr::null()), event;
    63 clEnqueueWaitForEvents (count: cl_uint, list: *const cl_event) (count, list), ptr::null();
    64 clEnqueueBarrier () (0, ptr::null()), ptr::null();
}

pub(super) fn wrappers() -> Vec<(usize, *mut c_void)> {
    [with_lists(), with_memory(), without_lists()].concat()
}
