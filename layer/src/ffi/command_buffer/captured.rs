//! The wrappers of calls that captures concern: those that enqueue, and those that wait.
//!
//! In a program without command buffers and captures they look at one number, and call the driver.
#![allow(unsafe_code, non_snake_case, clippy::too_many_arguments)]

use std::ffi::c_void;
use std::ptr;

use opencl_sys::{
    CL_FALSE, CL_INVALID_EVENT, CL_INVALID_OPERATION, CL_INVALID_VALUE, cl_bool, cl_command_queue, cl_event, cl_int,
    cl_kernel, cl_map_flags, cl_mem, cl_mem_migration_flags, cl_uint,
};

use super::alone::Alone;
use super::buffer::Buffer;
use super::capture::{self, Waiting, Waits};
use super::command::Command;
use super::make::{self, Arguments};
use crate::command_buffer::Checked;
use crate::ffi::targets::next;

/// Declares wrappers of functions that end with a wait list and a place for an event. The block makes the command that a captured
/// call becomes; none if it cannot be captured.
macro_rules! captured {
    ($( $place:literal $name:ident $(waits $blocking:ident)? ($($arg:ident: $type:ty),*) |$buffer:ident| $make:expr; )*) => {
        $(
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
                let Some(function) = (unsafe { next::<Function>($place) }) else { return CL_INVALID_OPERATION };
                if !Alone::is_needed() {
                    // SAFETY: rule V.
                    return unsafe { function(queue, $($arg,)* count, list, event) };
                }
                if capture::is_active() {
                    let make = |$buffer: &Buffer| -> Checked<Option<Command>> {
                        let _ = ($($arg,)*);
                        #[allow(unused_unsafe)]
                        // SAFETY: what the program gave.
                        unsafe { $make }
                    };
                    // SAFETY: what the program gave.
                    let taken = unsafe { capture::call(queue, stringify!($name), Waits { count, list, event }, make) };
                    if let Some(status) = taken {
                        return status;
                    }
                }
                let _alone = Alone::unless(false $(|| $blocking != CL_FALSE)?, queue);
                // SAFETY: rule V.
                unsafe { function(queue, $($arg,)* count, list, event) }
            }
        )*

        fn with_lists() -> Vec<(usize, *mut c_void)> {
            vec![$( ($place, $name as *const () as *mut c_void) ),*]
        }
    };
}

/// A command, unless the call waits.
fn unless(blocking: cl_bool, make: impl FnOnce() -> Checked<Command>) -> Checked<Option<Command>> {
    if blocking == CL_FALSE { make().map(Some) } else { Ok(None) }
}

captured! {
    48 clEnqueueReadBuffer waits blocking (memory: cl_mem, blocking: cl_bool, offset: usize, size: usize, host: *mut c_void)
        |buffer| unless(blocking, || make::read_buffer(buffer, memory, offset, size, host));
    49 clEnqueueWriteBuffer waits blocking (memory: cl_mem, blocking: cl_bool, offset: usize, size: usize, host: *const c_void)
        |buffer| unless(blocking, || make::write_buffer(buffer, memory, offset, size, host));
    50 clEnqueueCopyBuffer (from: cl_mem, to: cl_mem, from_offset: usize, to_offset: usize, size: usize)
        |buffer| make::copy_buffer(buffer, from, to, from_offset, to_offset, size).map(Some);
    51 clEnqueueReadImage waits blocking (
        image: cl_mem, blocking: cl_bool, origin: *const usize, region: *const usize, row: usize, slice: usize,
        host: *mut c_void
    ) |buffer| unless(blocking, || make::read_image(buffer, image, origin, region, row, slice, host));
    52 clEnqueueWriteImage waits blocking (
        image: cl_mem, blocking: cl_bool, origin: *const usize, region: *const usize, row: usize, slice: usize,
        host: *const c_void
    ) |buffer| unless(blocking, || make::write_image(buffer, image, origin, region, row, slice, host));
    53 clEnqueueCopyImage (
        from: cl_mem, to: cl_mem, from_origin: *const usize, to_origin: *const usize, region: *const usize
    ) |buffer| make::copy_image(buffer, from, to, from_origin, to_origin, region).map(Some);
    54 clEnqueueCopyImageToBuffer (from: cl_mem, to: cl_mem, origin: *const usize, region: *const usize, offset: usize)
        |buffer| make::copy_image_to_buffer(buffer, from, to, origin, region, offset).map(Some);
    55 clEnqueueCopyBufferToImage (from: cl_mem, to: cl_mem, offset: usize, origin: *const usize, region: *const usize)
        |buffer| make::copy_buffer_to_image(buffer, from, to, offset, origin, region).map(Some);
    58 clEnqueueUnmapMemObject (memory: cl_mem, host: *mut c_void) |_buffer| Ok(None);
    59 clEnqueueNDRangeKernel (
        kernel: cl_kernel, dimensions: cl_uint, offset: *const usize, global: *const usize, local: *const usize
    ) |buffer| make::launch(buffer, Vec::new(), Arguments::All, kernel, dimensions, offset, global, local).map(Some);
    60 clEnqueueTask (kernel: cl_kernel)
        |buffer| make::launch(buffer, Vec::new(), Arguments::All, kernel, 1, ptr::null(), [1].as_ptr(), [1].as_ptr()).map(Some);
    61 clEnqueueNativeKernel (
        function: Option<unsafe extern "system" fn(*mut c_void)>, arguments: *mut c_void, size: usize, objects: cl_uint,
        memory: *const cl_mem, places: *mut *const c_void
    ) |_buffer| Ok(None);
    72 clEnqueueAcquireGLObjects (objects: cl_uint, memory: *const cl_mem) |_buffer| Ok(None);
    73 clEnqueueReleaseGLObjects (objects: cl_uint, memory: *const cl_mem) |_buffer| Ok(None);
    79 clEnqueueAcquireD3D10ObjectsKHR (objects: cl_uint, memory: *const cl_mem) |_buffer| Ok(None);
    80 clEnqueueReleaseD3D10ObjectsKHR (objects: cl_uint, memory: *const cl_mem) |_buffer| Ok(None);
    86 clEnqueueReadBufferRect waits blocking (
        memory: cl_mem, blocking: cl_bool, origin: *const usize, host_origin: *const usize, region: *const usize,
        row: usize, slice: usize, host_row: usize, host_slice: usize, host: *mut c_void
    ) |buffer| unless(blocking, || {
        make::read_buffer_rect(buffer, memory, origin, host_origin, region, row, slice, host_row, host_slice, host)
    });
    87 clEnqueueWriteBufferRect waits blocking (
        memory: cl_mem, blocking: cl_bool, origin: *const usize, host_origin: *const usize, region: *const usize,
        row: usize, slice: usize, host_row: usize, host_slice: usize, host: *const c_void
    ) |buffer| unless(blocking, || {
        make::write_buffer_rect(buffer, memory, origin, host_origin, region, row, slice, host_row, host_slice, host)
    });
    88 clEnqueueCopyBufferRect (
        from: cl_mem, to: cl_mem, from_origin: *const usize, to_origin: *const usize, region: *const usize, from_row: usize,
        from_slice: usize, to_row: usize, to_slice: usize
    ) |buffer| make::copy_buffer_rect(
        buffer, from, to, from_origin, to_origin, region, from_row, from_slice, to_row, to_slice
    ).map(Some);
    102 clEnqueueFillBuffer (memory: cl_mem, pattern: *const c_void, pattern_size: usize, offset: usize, size: usize)
        |buffer| make::fill_buffer(buffer, memory, pattern, pattern_size, offset, size).map(Some);
    103 clEnqueueFillImage (image: cl_mem, colour: *const c_void, origin: *const usize, region: *const usize)
        |buffer| make::fill_image(buffer, image, colour, origin, region).map(Some);
    // Where memory is does not change what a graph computes.
    104 clEnqueueMigrateMemObjects (objects: cl_uint, memory: *const cl_mem, flags: cl_mem_migration_flags)
        |buffer| make::migration(buffer, objects, memory, flags).map(Some);
    105 clEnqueueMarkerWithWaitList () |_buffer| Ok(Some(Command::Marker));
    106 clEnqueueBarrierWithWaitList () |_buffer| Ok(Some(Command::Barrier));
    114 clEnqueueAcquireD3D11ObjectsKHR (objects: cl_uint, memory: *const cl_mem) |_buffer| Ok(None);
    115 clEnqueueReleaseD3D11ObjectsKHR (objects: cl_uint, memory: *const cl_mem) |_buffer| Ok(None);
    117 clEnqueueAcquireDX9MediaSurfacesKHR (objects: cl_uint, memory: *const cl_mem) |_buffer| Ok(None);
    118 clEnqueueReleaseDX9MediaSurfacesKHR (objects: cl_uint, memory: *const cl_mem) |_buffer| Ok(None);
    120 clEnqueueAcquireEGLObjectsKHR (objects: cl_uint, memory: *const cl_mem) |_buffer| Ok(None);
    121 clEnqueueReleaseEGLObjectsKHR (objects: cl_uint, memory: *const cl_mem) |_buffer| Ok(None);
    128 clEnqueueSVMFree (
        objects: cl_uint, memory: *mut *mut c_void,
        function: Option<unsafe extern "system" fn(cl_command_queue, cl_uint, *mut *mut c_void, *mut c_void)>,
        data: *mut c_void
    ) |_buffer| Ok(None);
    129 clEnqueueSVMMemcpy waits blocking (blocking: cl_bool, to: *mut c_void, from: *const c_void, size: usize)
        |buffer| unless(blocking, || make::copy_addresses(buffer, to, from, size));
    130 clEnqueueSVMMemFill (to: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize)
        |buffer| make::fill_addresses(buffer, to, pattern, pattern_size, size).map(Some);
    131 clEnqueueSVMMap waits blocking (blocking: cl_bool, flags: cl_map_flags, host: *mut c_void, size: usize) |_buffer| Ok(None);
    132 clEnqueueSVMUnmap (host: *mut c_void) |_buffer| Ok(None);
    139 clEnqueueSVMMigrateMem (
        objects: cl_uint, memory: *const *const c_void, sizes: *const usize, flags: cl_mem_migration_flags
    ) |buffer| make::migration_of_addresses(buffer, objects, memory, flags).map(Some);
}

/// Declares wrappers of functions that return mapped memory. Nothing can be mapped before it was computed.
macro_rules! maps {
    ($( $place:literal $name:ident ($($arg:ident: $type:ty),*); )*) => {
        $(
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
                let waits = Waits { count, list, event };
                // SAFETY: what the program gave.
                let taken = if capture::is_active() { unsafe { capture::call(queue, stringify!($name), waits, |_| Ok(None)) } } else { None };
                if let Some(fault) = taken {
                    if !status.is_null() {
                        // SAFETY: the caller's place.
                        unsafe { status.write(fault) };
                    }
                    return ptr::null_mut();
                }
                // SAFETY: rule T.
                let Some(function) = (unsafe { next::<Function>($place) }) else { return ptr::null_mut() };
                let _alone = Alone::unless(blocking != CL_FALSE, queue);
                // SAFETY: rule V.
                unsafe { function(queue, memory, blocking, flags, $($arg,)* count, list, event, status) }
            }
        )*

        fn with_memory() -> Vec<(usize, *mut c_void)> {
            vec![$( ($place, $name as *const () as *mut c_void) ),*]
        }
    };
}

maps! {
    56 clEnqueueMapBuffer (offset: usize, size: usize);
    57 clEnqueueMapImage (origin: *const usize, region: *const usize, row: *mut usize, slice: *mut usize);
}

/// Declares wrappers of functions that order commands, from before OpenCL 1.2.
macro_rules! old {
    ($( $place:literal $name:ident ($($arg:ident: $type:ty),*) $waits:expr, $has:expr, $command:ident; )*) => {
        $(
            unsafe extern "system" fn $name(queue: cl_command_queue, $($arg: $type),*) -> cl_int {
                type Function = unsafe extern "system" fn(cl_command_queue, $($type),*) -> cl_int;
                let make = |_: &Buffer| if $has { Ok(Some(Command::$command)) } else { Err(CL_INVALID_VALUE) };
                // SAFETY: what the program gave.
                let taken = if capture::is_active() { unsafe { capture::call(queue, stringify!($name), $waits, make) } } else { None };
                if let Some(status) = taken {
                    return status;
                }
                // SAFETY: rule T.
                let Some(function) = (unsafe { next::<Function>($place) }) else { return CL_INVALID_OPERATION };
                let _alone = Alone::unless(false, queue);
                // SAFETY: rule V.
                unsafe { function(queue, $($arg),*) }
            }
        )*

        fn without_lists() -> Vec<(usize, *mut c_void)> {
            vec![$( ($place, $name as *const () as *mut c_void) ),*]
        }
    };
}

old! {
    62 clEnqueueMarker (event: *mut cl_event)
        Waits { count: 0, list: ptr::null(), event }, !event.is_null(), Marker;
    63 clEnqueueWaitForEvents (count: cl_uint, list: *const cl_event)
        Waits { count, list, event: ptr::null_mut() }, count > 0, Barrier;
    64 clEnqueueBarrier () Waits { count: 0, list: ptr::null(), event: ptr::null_mut() }, true, Barrier;
}

unsafe extern "system" fn clWaitForEvents(count: cl_uint, list: *const cl_event) -> cl_int {
    type Function = unsafe extern "system" fn(cl_uint, *const cl_event) -> cl_int;
    // SAFETY: rule T.
    let Some(function) = (unsafe { next::<Function>(41) }) else { return CL_INVALID_OPERATION };
    if !capture::is_active() {
        // SAFETY: rule V.
        return unsafe { function(count, list) };
    }
    // SAFETY: what the program gave, or a list of the layer's.
    unsafe {
        match capture::wait_for_events(count, list, "clWaitForEvents") {
            Waiting::Driver => function(count, list),
            Waiting::Done(status) => status,
            Waiting::Others(events) => function(events.len() as cl_uint, events.as_ptr()),
        }
    }
}

/// Declares wrappers of functions that send or wait for what a queue has.
macro_rules! queues {
    ($( $place:literal $name:ident $waits:literal; )*) => {
        $(
            unsafe extern "system" fn $name(queue: cl_command_queue) -> cl_int {
                if let Some(status) = capture::queue(queue, $waits, stringify!($name)) {
                    return status;
                }
                type Function = unsafe extern "system" fn(cl_command_queue) -> cl_int;
                // SAFETY: rule T.
                let Some(function) = (unsafe { next::<Function>($place) }) else { return CL_INVALID_OPERATION };
                // SAFETY: rule V.
                unsafe { function(queue) }
            }
        )*

        fn of_queues() -> Vec<(usize, *mut c_void)> {
            vec![$( ($place, $name as *const () as *mut c_void) ),*]
        }
    };
}

queues! {
    46 clFlush false;
    47 clFinish true;
}

/// An event of a capture belongs to the layer until the capture ends.
unsafe extern "system" fn clSetUserEventStatus(event: cl_event, status: cl_int) -> cl_int {
    type Function = unsafe extern "system" fn(cl_event, cl_int) -> cl_int;
    if capture::has(event) {
        return CL_INVALID_EVENT;
    }
    // SAFETY: rule T.
    let Some(function) = (unsafe { next::<Function>(85) }) else { return CL_INVALID_OPERATION };
    // SAFETY: rule V.
    unsafe { function(event, status) }
}

pub(super) fn wrappers() -> Vec<(usize, *mut c_void)> {
    let others =
        vec![(41, clWaitForEvents as *const () as *mut c_void), (85, clSetUserEventStatus as *const () as *mut c_void)];
    [with_lists(), with_memory(), without_lists(), of_queues(), others].concat()
}
