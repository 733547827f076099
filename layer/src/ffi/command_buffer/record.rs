//! The functions that record commands, in both forms: with the parameter `properties`, and without it before revision 0.9.5.
#![allow(unsafe_code, non_snake_case, clippy::too_many_arguments)]

use std::ffi::c_void;
use std::ptr;
use std::slice;

use opencl_sys::{
    CL_DEPTH, CL_INVALID_COMMAND_QUEUE, CL_INVALID_KERNEL, CL_INVALID_KERNEL_ARGS, CL_INVALID_OPERATION,
    CL_INVALID_VALUE, CL_INVALID_WORK_DIMENSION, CL_MUTABLE_DISPATCH_ARGUMENTS_KHR, CL_SUCCESS, cl_command_buffer_khr,
    cl_command_queue, cl_int, cl_kernel, cl_mem, cl_mutable_command_khr, cl_uint, cl_ulong,
};

use super::buffer::{Buffer, Tail, properties};
use super::command::{Address, Command, Launch, Pattern};
use super::owned::{Kernel, Memory};
use super::{calls, enter, kernels, query};
use crate::command_buffer::launch::{self, Range};
use crate::command_buffer::properties as lists;
use crate::command_buffer::ranges::{self, Place, Side};
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
        unsafe { buffer.add(command, &waits, tail) }
    })
}

/// Declares record functions without properties of their own: one for each form.
macro_rules! records {
    ($( $name:ident, $old:ident ($($arg:ident: $type:ty),*) |$buffer:ident| $make:block )*) => {
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
                unsafe { record(buffer, queue, properties, &[], tail, |$buffer, _| $make) }
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
    barrier, barrier_without () |_buffer| {
        Ok(Command::Barrier)
    }
    copy_buffer, copy_buffer_without (
        from: cl_mem, to: cl_mem, from_offset: usize, to_offset: usize, size: usize
    ) |buffer| {
        let (of, into) = (query::buffer(from)?, query::buffer(to)?);
        ranges::copy(&buffer.target(), (&of, from_offset), (&into, to_offset), size)?;
        Ok(Command::CopyBuffer { from: Memory::also(from)?, to: Memory::also(to)?, from_offset, to_offset, size })
    }
    copy_buffer_rect, copy_buffer_rect_without (
        from: cl_mem, to: cl_mem, from_origin: *const usize, to_origin: *const usize, region: *const usize,
        from_row: usize, from_slice: usize, to_row: usize, to_slice: usize
    ) |buffer| {
        let (of, into) = (query::buffer(from)?, query::buffer(to)?);
        let from_side = Side { origin: place(from_origin)?, row: from_row, slice: from_slice };
        let to_side = Side { origin: place(to_origin)?, row: to_row, slice: to_slice };
        let region = place(region)?;
        ranges::copy_rect(&buffer.target(), (&of, from_side), (&into, to_side), &region)?;
        let (from, to) = (Memory::also(from)?, Memory::also(to)?);
        Ok(Command::CopyBufferRect { from, to, from_side, to_side, region })
    }
    fill_buffer, fill_buffer_without (
        memory: cl_mem, pattern: *const c_void, pattern_size: usize, offset: usize, size: usize
    ) |buffer| {
        let into = query::buffer(memory)?;
        ensure(!pattern.is_null(), CL_INVALID_VALUE)?;
        ranges::fill(&buffer.target(), &into, pattern_size, offset, size)?;
        let pattern = bytes(pattern, pattern_size);
        Ok(Command::FillBuffer { memory: Memory::also(memory)?, pattern, pattern_size, offset, size })
    }
    fill_image, fill_image_without (
        image: cl_mem, colour: *const c_void, origin: *const usize, region: *const usize
    ) |buffer| {
        has_images(buffer)?;
        let into = query::image(image)?;
        ensure(!colour.is_null(), CL_INVALID_VALUE)?;
        let (origin, region) = (place(origin)?, place(region)?);
        ranges::fill_image(&buffer.target(), &into, &origin, &region)?;
        // A depth image has one number, which is followed by nothing that may be read.
        let colour = bytes(colour, if into.format[0] == CL_DEPTH { 4 } else { 16 });
        Ok(Command::FillImage { image: Memory::also(image)?, colour, origin, region })
    }
    copy_image, copy_image_without (
        from: cl_mem, to: cl_mem, from_origin: *const usize, to_origin: *const usize, region: *const usize
    ) |buffer| {
        has_images(buffer)?;
        let (of, into) = (query::image(from)?, query::image(to)?);
        let (from_origin, to_origin, region) = (place(from_origin)?, place(to_origin)?, place(region)?);
        ranges::copy_image(&buffer.target(), (&of, &from_origin), (&into, &to_origin), &region)?;
        let (from, to) = (Memory::also(from)?, Memory::also(to)?);
        Ok(Command::CopyImage { from, to, from_origin, to_origin, region })
    }
    copy_image_to_buffer, copy_image_to_buffer_without (
        from: cl_mem, to: cl_mem, origin: *const usize, region: *const usize, offset: usize
    ) |buffer| {
        has_images(buffer)?;
        let (of, into) = (query::image(from)?, query::buffer(to)?);
        let (origin, region) = (place(origin)?, place(region)?);
        ranges::image_to_buffer(&buffer.target(), (&of, &origin), (&into, offset), &region)?;
        let (from, to) = (Memory::also(from)?, Memory::also(to)?);
        Ok(Command::CopyImageToBuffer { from, to, origin, region, offset })
    }
    copy_buffer_to_image, copy_buffer_to_image_without (
        from: cl_mem, to: cl_mem, offset: usize, origin: *const usize, region: *const usize
    ) |buffer| {
        has_images(buffer)?;
        let (of, into) = (query::buffer(from)?, query::image(to)?);
        let (origin, region) = (place(origin)?, place(region)?);
        ranges::buffer_to_image(&buffer.target(), (&of, offset), (&into, &origin), &region)?;
        let (from, to) = (Memory::also(from)?, Memory::also(to)?);
        Ok(Command::CopyBufferToImage { from, to, offset, origin, region })
    }
    copy_addresses, copy_addresses_without (to: *mut c_void, from: *const c_void, size: usize) |buffer| {
        ensure(buffer.device.has_svm, CL_INVALID_OPERATION)?;
        ranges::copy_addresses(from.addr(), to.addr(), size)?;
        Ok(Command::CopyAddresses { from: Address(from.cast_mut()), to: Address(to), size })
    }
    fill_addresses, fill_addresses_without (
        to: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize
    ) |buffer| {
        ensure(buffer.device.has_svm, CL_INVALID_OPERATION)?;
        ensure(!pattern.is_null(), CL_INVALID_VALUE)?;
        ranges::fill_addresses(to.addr(), pattern_size, size)?;
        Ok(Command::FillAddresses { to: Address(to), pattern: bytes(pattern, pattern_size), pattern_size, size })
    }
}

fn has_images(buffer: &Buffer) -> Checked {
    ensure(buffer.device.has_images, CL_INVALID_OPERATION)
}

/// # Safety
/// Null, or three numbers.
unsafe fn place(given: *const usize) -> Checked<Place> {
    ensure(!given.is_null(), CL_INVALID_VALUE)?;
    // SAFETY: the caller's promise. The address may be any.
    Ok(unsafe { given.cast::<Place>().read_unaligned() })
}

/// # Safety
/// `size` bytes, at most 128.
unsafe fn bytes(given: *const c_void, size: usize) -> Box<Pattern> {
    let mut pattern = Box::new(Pattern([0; 128]));
    // SAFETY: the caller's promise.
    pattern.0[..size].copy_from_slice(unsafe { slice::from_raw_parts(given.cast(), size) });
    pattern
}

/// Reads places of up to three dimensions. `None` if the program gave none.
///
/// # Safety
/// Null, or `dimensions` numbers, at most 3.
pub(super) unsafe fn places(given: *const usize, dimensions: usize, rest: usize) -> Option<Place> {
    if given.is_null() {
        return None;
    }
    let mut place = [rest; 3];
    for (at, number) in place.iter_mut().enumerate().take(dimensions) {
        // SAFETY: the caller's promise.
        *number = unsafe { given.add(at).read_unaligned() };
    }
    Some(place)
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
    let make = |buffer: &Buffer, given: lists::List| {
        let has = lists::Launch::of(&given)?;
        // SAFETY: what the program gave, a device.
        let facts = unsafe { query::kernel(kernel, buffer.facts.device()) }?;
        ensure(facts.context == buffer.facts.context(), opencl_sys::CL_INVALID_CONTEXT)?;
        ensure((1..=3).contains(&dimensions), CL_INVALID_WORK_DIMENSION)?;
        let count = dimensions as usize;
        // SAFETY: null, or as many numbers.
        let range = unsafe {
            Range {
                dimensions: count,
                offset: places(offset, count, 0).unwrap_or([0; 3]),
                global: places(global, count, 0).unwrap_or([0; 3]),
                local: places(local, count, 1),
            }
        };
        range.check(&buffer.device.launches, &facts.launches)?;
        launch::promise(has.no_more_groups || buffer.properties.no_more_groups, range.local)?;
        let missing = kernels::missing(kernel, facts.arguments);
        let may_miss = buffer.properties.is_mutable && has.fields & CL_MUTABLE_DISPATCH_ARGUMENTS_KHR != 0;
        ensure(may_miss || missing.is_empty(), CL_INVALID_KERNEL_ARGS)?;
        Ok(Command::Launch(Box::new(Launch {
            // SAFETY: the driver knows the kernel.
            named: unsafe { Kernel::also(kernel) }?,
            // SAFETY: as above.
            kernel: unsafe { clone(kernel) }?,
            range,
            missing,
            facts: facts.launches,
            properties: has,
            given,
        })))
    };
    // SAFETY: what the program gave.
    unsafe { record(buffer, queue, properties, &lists::Launch::NAMES, tail, make) }
}

/// Makes a kernel with the same arguments.
///
/// # Safety
/// The driver knows the kernel.
pub(super) unsafe fn clone(kernel: cl_kernel) -> Checked<Kernel> {
    let mut status = CL_SUCCESS;
    // SAFETY: the caller's promise.
    let cloned = unsafe { calls::clCloneKernel(kernel, &raw mut status) };
    // SAFETY: a reference that is new.
    let cloned = unsafe { Kernel::from_raw(cloned) };
    ensure(status == CL_SUCCESS, status)?;
    cloned.ok_or(CL_INVALID_KERNEL)
}
