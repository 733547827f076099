//! Makes commands of what programs give, for record functions and for captured calls. All that can be wrong is found here.
#![allow(unsafe_code, clippy::too_many_arguments)]

use std::ffi::c_void;
use std::slice;

use opencl_sys::{
    CL_DEPTH, CL_INVALID_KERNEL, CL_INVALID_KERNEL_ARGS, CL_INVALID_MEM_OBJECT, CL_INVALID_OPERATION, CL_INVALID_VALUE,
    CL_INVALID_WORK_DIMENSION, CL_MEM_COPY_HOST_PTR, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_MEM_READ_WRITE,
    CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, CL_MIGRATE_MEM_OBJECT_HOST, CL_MUTABLE_DISPATCH_ARGUMENTS_KHR,
    CL_OUT_OF_HOST_MEMORY, CL_SUCCESS, cl_kernel, cl_mem, cl_mem_migration_flags, cl_uint,
};

use super::buffer::Buffer;
use super::command::{Address, Command, Launch, Pattern};
use super::owned::Memory;
use super::{calls, query};
use crate::command_buffer::launch::{self, Range};
use crate::command_buffer::properties as lists;
use crate::command_buffer::ranges::{self, Place, Side};
use crate::command_buffer::{Checked, ensure};

/// A barrier has nothing that can be wrong.
pub(super) fn barrier(_: &Buffer) -> Checked<Command> {
    Ok(Command::Barrier)
}

/// # Safety
/// What the program gave.
pub(super) unsafe fn copy_buffer(
    buffer: &Buffer,
    from: cl_mem,
    to: cl_mem,
    from_offset: usize,
    to_offset: usize,
    size: usize,
) -> Checked<Command> {
    // SAFETY: as the caller promises. What is no object, drivers know.
    unsafe {
        let (of, into) = (query::buffer(from)?, query::buffer(to)?);
        ranges::copy(&buffer.target(), (&of, from_offset), (&into, to_offset), size)?;
        Ok(Command::CopyBuffer { from: Memory::also(from)?, to: Memory::also(to)?, from_offset, to_offset, size })
    }
}

/// # Safety
/// What the program gave.
pub(super) unsafe fn copy_buffer_rect(
    buffer: &Buffer,
    from: cl_mem,
    to: cl_mem,
    from_origin: *const usize,
    to_origin: *const usize,
    region: *const usize,
    from_row: usize,
    from_slice: usize,
    to_row: usize,
    to_slice: usize,
) -> Checked<Command> {
    // SAFETY: as the caller promises. What is no object, drivers know.
    unsafe {
        let (of, into) = (query::buffer(from)?, query::buffer(to)?);
        let from_side = Side { origin: place(from_origin)?, row: from_row, slice: from_slice };
        let to_side = Side { origin: place(to_origin)?, row: to_row, slice: to_slice };
        let region = place(region)?;
        ranges::copy_rect(&buffer.target(), (&of, from_side), (&into, to_side), &region)?;
        let needed = |side: Side| if of.root == into.root { side.needed(&region) } else { side };
        let (from_side, to_side) = (needed(from_side), needed(to_side));
        let (from, to) = (Memory::also(from)?, Memory::also(to)?);
        Ok(Command::CopyBufferRect { from, to, from_side, to_side, region })
    }
}

/// # Safety
/// What the program gave.
pub(super) unsafe fn fill_buffer(
    buffer: &Buffer,
    memory: cl_mem,
    pattern: *const c_void,
    pattern_size: usize,
    offset: usize,
    size: usize,
) -> Checked<Command> {
    // SAFETY: as the caller promises. What is no object, drivers know.
    unsafe {
        let into = query::buffer(memory)?;
        ensure(!pattern.is_null(), CL_INVALID_VALUE)?;
        ranges::fill(&buffer.target(), &into, pattern_size, offset, size)?;
        let pattern = bytes(pattern, pattern_size);
        Ok(Command::FillBuffer { memory: Memory::also(memory)?, pattern, pattern_size, offset, size })
    }
}

/// # Safety
/// What the program gave.
pub(super) unsafe fn fill_image(
    buffer: &Buffer,
    image: cl_mem,
    colour: *const c_void,
    origin: *const usize,
    region: *const usize,
) -> Checked<Command> {
    // SAFETY: as the caller promises. What is no object, drivers know.
    unsafe {
        has_images(buffer)?;
        let into = query::image(image)?;
        ensure(!colour.is_null(), CL_INVALID_VALUE)?;
        let (origin, region) = (place(origin)?, place(region)?);
        ranges::fill_image(&buffer.target(), &into, &origin, &region)?;
        // A depth image has one number, which is followed by nothing that may be read.
        let colour = bytes(colour, if into.format[0] == CL_DEPTH { 4 } else { 16 });
        Ok(Command::FillImage { image: Memory::also(image)?, colour, origin, region })
    }
}

/// # Safety
/// What the program gave.
pub(super) unsafe fn copy_image(
    buffer: &Buffer,
    from: cl_mem,
    to: cl_mem,
    from_origin: *const usize,
    to_origin: *const usize,
    region: *const usize,
) -> Checked<Command> {
    // SAFETY: as the caller promises. What is no object, drivers know.
    unsafe {
        has_images(buffer)?;
        let (of, into) = (query::image(from)?, query::image(to)?);
        let (from_origin, to_origin, region) = (place(from_origin)?, place(to_origin)?, place(region)?);
        ranges::copy_image(&buffer.target(), (&of, &from_origin), (&into, &to_origin), &region)?;
        let (from, to) = (Memory::also(from)?, Memory::also(to)?);
        Ok(Command::CopyImage { from, to, from_origin, to_origin, region })
    }
}

/// # Safety
/// What the program gave.
pub(super) unsafe fn copy_image_to_buffer(
    buffer: &Buffer,
    from: cl_mem,
    to: cl_mem,
    origin: *const usize,
    region: *const usize,
    offset: usize,
) -> Checked<Command> {
    // SAFETY: as the caller promises. What is no object, drivers know.
    unsafe {
        has_images(buffer)?;
        let (of, into) = (query::image(from)?, query::buffer(to)?);
        ensure(of.of_buffer != to.addr(), CL_INVALID_MEM_OBJECT)?;
        let (origin, region) = (place(origin)?, place(region)?);
        ranges::image_to_buffer(&buffer.target(), (&of, &origin), (&into, offset), &region)?;
        let (from, to) = (Memory::also(from)?, Memory::also(to)?);
        Ok(Command::CopyImageToBuffer { from, to, origin, region, offset })
    }
}

/// # Safety
/// What the program gave.
pub(super) unsafe fn copy_buffer_to_image(
    buffer: &Buffer,
    from: cl_mem,
    to: cl_mem,
    offset: usize,
    origin: *const usize,
    region: *const usize,
) -> Checked<Command> {
    // SAFETY: as the caller promises. What is no object, drivers know.
    unsafe {
        has_images(buffer)?;
        let (of, into) = (query::buffer(from)?, query::image(to)?);
        ensure(into.of_buffer != from.addr(), CL_INVALID_MEM_OBJECT)?;
        let (origin, region) = (place(origin)?, place(region)?);
        ranges::buffer_to_image(&buffer.target(), (&of, offset), (&into, &origin), &region)?;
        let (from, to) = (Memory::also(from)?, Memory::also(to)?);
        Ok(Command::CopyBufferToImage { from, to, offset, origin, region })
    }
}

/// Addresses are numbers here: what is there is the program's to keep.
pub(super) fn copy_addresses(buffer: &Buffer, to: *mut c_void, from: *const c_void, size: usize) -> Checked<Command> {
    ensure(buffer.device.has_svm(), CL_INVALID_OPERATION)?;
    ranges::copy_addresses(from.addr(), to.addr(), size)?;
    Ok(Command::CopyAddresses { from: Address(from.cast_mut()), to: Address(to), size })
}

/// # Safety
/// What the program gave.
pub(super) unsafe fn fill_addresses(
    buffer: &Buffer,
    to: *mut c_void,
    pattern: *const c_void,
    pattern_size: usize,
    size: usize,
) -> Checked<Command> {
    // SAFETY: as the caller promises. What is no object, drivers know.
    unsafe {
        ensure(buffer.device.has_svm(), CL_INVALID_OPERATION)?;
        ensure(!pattern.is_null(), CL_INVALID_VALUE)?;
        ranges::fill_addresses(to.addr(), pattern_size, size)?;
        Ok(Command::FillAddresses { to: Address(to), pattern: bytes(pattern, pattern_size), pattern_size, size })
    }
}

/// Whether updates may give what a launch lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arguments {
    /// As all calls that enqueue want it.
    All,
    MayComeLater,
}

/// # Safety
/// As for the others; the properties that it is recorded with.
pub(super) unsafe fn launch(
    buffer: &Buffer,
    given: lists::List,
    arguments: Arguments,
    kernel: cl_kernel,
    dimensions: cl_uint,
    offset: *const usize,
    global: *const usize,
    local: *const usize,
) -> Checked<Command> {
    let has = lists::Launch::of(&given)?;
    ensure(!kernel.is_null(), CL_INVALID_KERNEL)?;
    ensure((1..=3).contains(&dimensions), CL_INVALID_WORK_DIMENSION)?;
    // SAFETY: what the program gave.
    let prepared = unsafe { buffer.prepare(kernel) }?;
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
    range.check(&buffer.device.launches, &prepared.facts)?;
    launch::promise(has.no_more_groups || buffer.properties.no_more_groups, range.local)?;
    let may_miss = arguments == Arguments::MayComeLater
        && buffer.properties.is_mutable
        && has.fields & CL_MUTABLE_DISPATCH_ARGUMENTS_KHR != 0;
    ensure(may_miss || prepared.values.are_whole(), CL_INVALID_KERNEL_ARGS)?;
    prepared.check_on(&buffer.target())?;
    Ok(Command::Launch(Box::new(Launch { prepared, range, properties: has, given })))
}

/// Commands that only captured calls make.
///
/// A write takes the bytes now, into memory of its own: programs may free theirs when they like.
///
/// # Safety
/// What the program gave.
pub(super) unsafe fn write_buffer(
    buffer: &Buffer,
    memory: cl_mem,
    offset: usize,
    size: usize,
    host: *const c_void,
) -> Checked<Command> {
    // SAFETY: as the caller promises. What is no object, drivers know.
    unsafe {
        let into = query::buffer(memory)?;
        ensure(!host.is_null(), CL_INVALID_VALUE)?;
        ranges::write(&buffer.target(), &into, offset, size)?;
        if size == 0 {
            return Ok(Command::Marker);
        }
        let from = kept(buffer, host, size)?;
        Ok(Command::CopyBuffer { from, to: Memory::also(memory)?, from_offset: 0, to_offset: offset, size })
    }
}

/// # Safety
/// What the program gave.
pub(super) unsafe fn read_buffer(
    buffer: &Buffer,
    memory: cl_mem,
    offset: usize,
    size: usize,
    host: *mut c_void,
) -> Checked<Command> {
    // SAFETY: as the caller promises. What is no object, drivers know.
    unsafe {
        let of = query::buffer(memory)?;
        ensure(!host.is_null(), CL_INVALID_VALUE)?;
        ranges::read(&buffer.target(), &of, offset, size)?;
        Ok(Command::ReadBuffer { from: Memory::also(memory)?, offset, size, to: Address(host) })
    }
}

/// # Safety
/// What the program gave.
pub(super) unsafe fn write_buffer_rect(
    buffer: &Buffer,
    memory: cl_mem,
    origin: *const usize,
    host_origin: *const usize,
    region: *const usize,
    row: usize,
    slice: usize,
    host_row: usize,
    host_slice: usize,
    host: *const c_void,
) -> Checked<Command> {
    // SAFETY: as the caller promises. What is no object, drivers know.
    unsafe {
        let into = query::buffer(memory)?;
        ensure(!host.is_null(), CL_INVALID_VALUE)?;
        let to_side = Side { origin: place(origin)?, row, slice };
        let host_side = Side { origin: place(host_origin)?, row: host_row, slice: host_slice };
        let region = place(region)?;
        let target = buffer.target();
        ranges::write(&target, &into, 0, 0)?;
        ranges::copy_rect(&target, (&ranges::host(&target), host_side), (&into, to_side), &region)?;
        let packed = packed(host, host_side.with_pitches(&region)?, &region)?;
        let from = kept(buffer, packed.as_ptr().cast(), packed.len())?;
        let from_side = Side { origin: [0; 3], row: 0, slice: 0 };
        Ok(Command::CopyBufferRect { from, to: Memory::also(memory)?, from_side, to_side, region })
    }
}

/// # Safety
/// What the program gave.
pub(super) unsafe fn read_buffer_rect(
    buffer: &Buffer,
    memory: cl_mem,
    origin: *const usize,
    host_origin: *const usize,
    region: *const usize,
    row: usize,
    slice: usize,
    host_row: usize,
    host_slice: usize,
    host: *mut c_void,
) -> Checked<Command> {
    // SAFETY: as the caller promises. What is no object, drivers know.
    unsafe {
        let of = query::buffer(memory)?;
        ensure(!host.is_null(), CL_INVALID_VALUE)?;
        let from_side = Side { origin: place(origin)?, row, slice };
        let to_side = Side { origin: place(host_origin)?, row: host_row, slice: host_slice };
        let region = place(region)?;
        let target = buffer.target();
        ranges::read(&target, &of, 0, 0)?;
        ranges::copy_rect(&target, (&of, from_side), (&ranges::host(&target), to_side), &region)?;
        Ok(Command::ReadBufferRect { from: Memory::also(memory)?, from_side, to_side, region, to: Address(host) })
    }
}

/// # Safety
/// What the program gave.
pub(super) unsafe fn write_image(
    buffer: &Buffer,
    image: cl_mem,
    origin: *const usize,
    region: *const usize,
    row: usize,
    slice: usize,
    host: *const c_void,
) -> Checked<Command> {
    has_images(buffer)?;
    // SAFETY: as the caller promises. What is no object, drivers know.
    unsafe {
        let into = query::image(image)?;
        ensure(!host.is_null(), CL_INVALID_VALUE)?;
        let (origin, region) = (place(origin)?, place(region)?);
        ranges::write_image(&buffer.target(), &into, &origin, &region)?;
        let (side, bytes) = ranges::pixels(&into, &region, row, slice)?;
        let packed = packed(host, side, &bytes)?;
        let from = kept(buffer, packed.as_ptr().cast(), packed.len())?;
        Ok(Command::CopyBufferToImage { from, to: Memory::also(image)?, offset: 0, origin, region })
    }
}

/// # Safety
/// What the program gave.
pub(super) unsafe fn read_image(
    buffer: &Buffer,
    image: cl_mem,
    origin: *const usize,
    region: *const usize,
    row: usize,
    slice: usize,
    host: *mut c_void,
) -> Checked<Command> {
    has_images(buffer)?;
    // SAFETY: as the caller promises. What is no object, drivers know.
    unsafe {
        let of = query::image(image)?;
        ensure(!host.is_null(), CL_INVALID_VALUE)?;
        let (origin, region) = (place(origin)?, place(region)?);
        ranges::read_image(&buffer.target(), &of, &origin, &region)?;
        ranges::pixels(&of, &region, row, slice)?;
        Ok(Command::ReadImage { from: Memory::also(image)?, origin, region, row, slice, to: Address(host) })
    }
}

/// Where memory is does not change what is computed: a migration is a marker.
///
/// # Safety
/// What the program gave.
pub(super) unsafe fn migration(
    buffer: &Buffer,
    objects: cl_uint,
    memory: *const cl_mem,
    flags: cl_mem_migration_flags,
) -> Checked<Command> {
    ensure(objects > 0 && !memory.is_null() && has_known_bits(flags), CL_INVALID_VALUE)?;
    for at in 0..objects as usize {
        // SAFETY: within the list. What is no object, drivers know.
        unsafe { query::is_of(memory.add(at).read(), buffer.facts.context()) }?;
    }
    Ok(Command::Marker)
}

/// As [`migration`], for addresses.
///
/// # Safety
/// What the program gave.
pub(super) unsafe fn migration_of_addresses(
    buffer: &Buffer,
    objects: cl_uint,
    memory: *const *const c_void,
    flags: cl_mem_migration_flags,
) -> Checked<Command> {
    ensure(buffer.device.has_svm(), CL_INVALID_OPERATION)?;
    ensure(objects > 0 && !memory.is_null() && has_known_bits(flags), CL_INVALID_VALUE)?;
    for at in 0..objects as usize {
        // SAFETY: within the list.
        ensure(!unsafe { memory.add(at).read() }.is_null(), CL_INVALID_VALUE)?;
    }
    Ok(Command::Marker)
}

fn has_known_bits(flags: cl_mem_migration_flags) -> bool {
    flags & !(CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED) == 0
}

/// Takes the bytes of a region, one row after another.
///
/// # Safety
/// The program's memory has the region.
unsafe fn packed(host: *const c_void, side: Side, region: &Place) -> Checked<Vec<u8>> {
    let size = region.iter().try_fold(1_usize, |size, extent| size.checked_mul(*extent)).ok_or(CL_INVALID_VALUE)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| CL_OUT_OF_HOST_MEMORY)?;
    let [x, y, z] = side.origin;
    for in_z in 0..region[2] {
        for in_y in 0..region[1] {
            let at = side.place([x, y + in_y, z + in_z]).ok_or(CL_INVALID_VALUE)?;
            // SAFETY: within the region.
            bytes.extend_from_slice(unsafe { slice::from_raw_parts(host.cast::<u8>().add(at), region[0]) });
        }
    }
    Ok(bytes)
}

/// Makes memory with a copy of the program's bytes. Drivers keep it as long as they use it.
///
/// # Safety
/// There are `size` bytes.
pub(super) unsafe fn kept(buffer: &Buffer, host: *const c_void, size: usize) -> Checked<Memory> {
    let mut status = CL_SUCCESS;
    let flags = CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR;
    // SAFETY: a live context, and bytes that are only read.
    let memory =
        unsafe { calls::clCreateBuffer(buffer.facts.raw_context(), flags, size, host.cast_mut(), &raw mut status) };
    // SAFETY: a reference that is new.
    let memory = unsafe { Memory::from_raw(memory) };
    ensure(status == CL_SUCCESS, status)?;
    memory.ok_or(CL_MEM_OBJECT_ALLOCATION_FAILURE)
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
