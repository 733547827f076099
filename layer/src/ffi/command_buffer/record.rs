//! The functions that record commands, in both forms: with the parameter `properties`, and without it before revision 0.9.5.
#![allow(unsafe_code, non_snake_case, clippy::too_many_arguments)]

use std::ffi::c_void;
use std::ptr;

use opencl_sys::{
    CL_INVALID_COMMAND_QUEUE, CL_INVALID_VALUE, cl_command_buffer_khr, cl_command_queue, cl_int, cl_kernel, cl_mem,
    cl_mutable_command_khr, cl_uint, cl_ulong,
};

use super::buffer::{Buffer, Tail, properties};
use super::command::Command;
use super::enter;
use super::make::{self, Arguments};
use crate::command_buffer::properties as lists;
use crate::command_buffer::{Checked, ensure};

/// Does what all record functions do: checks what they have in common, and adds the command that `make` returns.
///
/// # Safety
/// What the program gave.
unsafe fn record(
    buffer: cl_command_buffer_khr,
    queue: cl_command_queue,
    list: *const cl_ulong,
    names: &[cl_ulong],
    tail: Tail,
    make: impl FnOnce(&Buffer, lists::List) -> Checked<Command>,
) -> cl_int {
    enter(|| {
        let buffer = Buffer::find(buffer)?;
        buffer.is_recording()?;
        ensure(queue.is_null(), CL_INVALID_COMMAND_QUEUE)?;
        // SAFETY: as the caller promises, here and below.
        let given = unsafe { properties(list, names) }?;
        // Only launches have handles.
        ensure(tail.handle.is_null() || !names.is_empty(), CL_INVALID_VALUE)?;
        // SAFETY: as above.
        let waits = unsafe { buffer.places(tail) }?;
        let command = make(&buffer, given)?;
        // SAFETY: as above.
        unsafe { buffer.add(command, &waits, tail) }.map(|_| ())
    })
}

/// Declares record functions without properties of their own: one for each form. Those of [`make`] make the commands.
macro_rules! records {
    ($( $name:ident, $old:ident ($($arg:ident: $type:ty),*); )*) => {
        $(
            /// # Safety
            /// As for the C function.
            pub(super) unsafe extern "system" fn $name(
                buffer: cl_command_buffer_khr,
                queue: cl_command_queue,
                properties: *const cl_ulong,
                $($arg: $type,)*
                count: cl_uint,
                points: *const cl_uint,
                point: *mut cl_uint,
                handle: *mut cl_mutable_command_khr,
            ) -> cl_int {
                let tail = Tail { count, points, point, handle };
                // SAFETY: what the program gave.
                unsafe { record(buffer, queue, properties, &[], tail, |buffer, _| make::$name(buffer, $($arg),*)) }
            }

            /// # Safety
            /// As for the C function.
            pub(super) unsafe extern "system" fn $old(
                buffer: cl_command_buffer_khr,
                queue: cl_command_queue,
                $($arg: $type,)*
                count: cl_uint,
                points: *const cl_uint,
                point: *mut cl_uint,
                handle: *mut cl_mutable_command_khr,
            ) -> cl_int {
                // SAFETY: what the program gave.
                unsafe { $name(buffer, queue, ptr::null(), $($arg,)* count, points, point, handle) }
            }
        )*
    };
}

records! {
    barrier, barrier_without ();
    copy_buffer, copy_buffer_without (
        from: cl_mem, to: cl_mem, from_offset: usize, to_offset: usize, size: usize
    );
    copy_buffer_rect, copy_buffer_rect_without (
        from: cl_mem, to: cl_mem, from_origin: *const usize, to_origin: *const usize, region: *const usize, from_row: usize, from_slice: usize, to_row: usize, to_slice: usize
    );
    fill_buffer, fill_buffer_without (
        memory: cl_mem, pattern: *const c_void, pattern_size: usize, offset: usize, size: usize
    );
    fill_image, fill_image_without (
        image: cl_mem, colour: *const c_void, origin: *const usize, region: *const usize
    );
    copy_image, copy_image_without (
        from: cl_mem, to: cl_mem, from_origin: *const usize, to_origin: *const usize, region: *const usize
    );
    copy_image_to_buffer, copy_image_to_buffer_without (
        from: cl_mem, to: cl_mem, origin: *const usize, region: *const usize, offset: usize
    );
    copy_buffer_to_image, copy_buffer_to_image_without (
        from: cl_mem, to: cl_mem, offset: usize, origin: *const usize, region: *const usize
    );
    copy_addresses, copy_addresses_without (
        to: *mut c_void, from: *const c_void, size: usize
    );
    fill_addresses, fill_addresses_without (
        to: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize
    );
}

/// Records a launch. It has had properties in all revisions.
///
/// # Safety
/// As for the C function.
pub(super) unsafe extern "system" fn launch(
    buffer: cl_command_buffer_khr,
    queue: cl_command_queue,
    properties: *const cl_ulong,
    kernel: cl_kernel,
    dimensions: cl_uint,
    offset: *const usize,
    global: *const usize,
    local: *const usize,
    count: cl_uint,
    points: *const cl_uint,
    point: *mut cl_uint,
    handle: *mut cl_mutable_command_khr,
) -> cl_int {
    let tail = Tail { count, points, point, handle };
    // SAFETY: what the program gave.
    unsafe {
        record(buffer, queue, properties, &lists::Launch::NAMES, tail, |buffer, given| {
            make::launch(buffer, given, Arguments::MayComeLater, kernel, dimensions, offset, global, local)
        })
    }
}
