//! What was captured, for libraries that make commands of their own of it. `layer/include/clgraph_layer.h` says what all of it means.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;
use std::slice;

use opencl_sys::{
    CL_INVALID_CONTEXT, CL_INVALID_VALUE, CL_SUCCESS, cl_command_buffer_khr, cl_command_queue, cl_event, cl_int,
    cl_kernel, cl_mem, cl_uint, cl_ulong,
};

use super::alone::Alone;
use super::buffer::{self, Buffer, QueueFacts};
use super::capture::{self, Waits};
use super::command::Command;
use super::kernels::{self, Kept};
use super::owned::Memory;
use super::prepared::Prepared;
use super::{enter, query};
use crate::command_buffer::arguments::{Kind, Value};
use crate::command_buffer::{Checked, ensure};

const VERSION: cl_uint = 1;

/// `cl_captured_argument_clg`
#[repr(C)]
struct Argument {
    kind: cl_uint,
    size: usize,
    value: *const c_void,
}

/// `cl_captured_memory_clg`
#[repr(C)]
struct Use {
    memory: cl_mem,
    access: cl_uint,
    offset: usize,
    size: usize,
}

/// `cl_captured_command_clg`
#[repr(C)]
struct Captured {
    kind: cl_uint,
    is_work: cl_uint,
    has_list: cl_uint,
    has_exec_info: cl_uint,
    dimensions: cl_uint,
    after: *const cl_uint,
    after_count: usize,
    memory: *const Use,
    memory_count: usize,
    pattern: *const c_void,
    pattern_size: usize,
    kernel: cl_kernel,
    offset: [usize; 3],
    global: [usize; 3],
    local: [usize; 3],
    arguments: *const Argument,
    argument_count: usize,
}

type Each = unsafe extern "system" fn(*mut c_void, *const Captured) -> cl_int;

/// `cl_capture_table_clg`
#[repr(C)]
struct Table {
    begin: unsafe extern "system" fn(cl_command_queue, *const cl_ulong) -> cl_int,
    end: unsafe extern "system" fn(cl_command_queue, *mut cl_command_buffer_khr) -> cl_int,
    info: unsafe extern "system" fn(cl_command_queue, cl_uint, usize, *mut c_void, *mut usize) -> cl_int,
    visit: unsafe extern "system" fn(cl_command_buffer_khr, Option<Each>, *mut c_void) -> cl_int,
    enqueue: unsafe extern "system" fn(
        cl_command_buffer_khr,
        cl_uint,
        cl_command_queue,
        cl_uint,
        *const cl_event,
        *mut cl_event,
    ) -> cl_int,
    retain: unsafe extern "system" fn(cl_command_buffer_khr) -> cl_int,
    release: unsafe extern "system" fn(cl_command_buffer_khr) -> cl_int,
}

static TABLE: Table = Table {
    begin: capture::begin,
    end: capture::end,
    info: capture::info,
    visit,
    enqueue,
    retain: buffer::retain,
    release: buffer::release,
};

/// `const cl_capture_table_clg *clGetCaptureTableCLG(cl_uint version)`
pub(super) extern "system" fn table(version: cl_uint) -> *const c_void {
    if version == VERSION { (&raw const TABLE).cast() } else { ptr::null() }
}

/// What is known of a kernel's arguments. What the source says of them decides what eight bytes are.
fn arguments(prepared: &Prepared) -> Checked<Vec<Argument>> {
    let kinds = prepared.kinds()?;
    let values = prepared.values.list().iter().enumerate();
    Ok(values.map(|(at, value)| argument(kinds.get(at).copied().unwrap_or(Kind::Any), value)).collect())
}

fn argument(kind: Kind, value: &Value<Kept>) -> Argument {
    let is_memory = matches!(kind, Kind::Buffer | Kind::Image(..));
    let is_handle = |bytes: &[u8]| bytes.len() == size_of::<usize>();
    let (kind, size, value) = match value {
        // A pointer to a handle that is null.
        Value::Bytes(bytes) if is_memory && bytes.iter().all(|byte| *byte == 0) => (4, bytes.len(), ptr::null()),
        // A handle that was not seen to be made; or, if the source says nothing, perhaps one.
        Value::Bytes(bytes)
            if is_memory
                || matches!(kind, Kind::Any | Kind::Own) && is_handle(bytes) && kernels::may_not_know(bytes) =>
        {
            (0, 0, ptr::null())
        }
        // A number that is the handle of an object by chance.
        Value::Object(Kept::Memory(memory)) if matches!(kind, Kind::Value(_)) => {
            (1, size_of::<cl_mem>(), memory.bytes())
        }
        Value::Object(Kept::Sampler(sampler)) if matches!(kind, Kind::Value(_)) => {
            (1, size_of::<cl_mem>(), sampler.bytes())
        }
        Value::Missing | Value::Unknown => (0, 0, ptr::null()),
        Value::Bytes(bytes) => (1, bytes.len(), bytes.as_ptr().cast()),
        Value::Object(Kept::Memory(memory)) => (2, size_of::<cl_mem>(), memory.raw().cast_const()),
        Value::Object(Kept::Sampler(sampler)) => (3, size_of::<cl_mem>(), sampler.raw().cast_const()),
        Value::Nothing(bytes) => (4, *bytes, ptr::null()),
        Value::Pointer(address) => (5, size_of::<usize>(), ptr::without_provenance(*address)),
        Value::IntelPointer(address) => (6, size_of::<usize>(), ptr::without_provenance(*address)),
    };
    Argument { kind, size, value }
}

/// Some part of a memory object.
fn some(memory: &Memory, access: cl_uint) -> Use {
    Use { memory: memory.raw(), access, offset: 0, size: 0 }
}

fn part(memory: &Memory, access: cl_uint, offset: usize, size: usize) -> Use {
    Use { memory: memory.raw(), access, offset, size }
}

/// What a command reads and writes of memory objects, if it is no kernel.
fn memory(command: &Command) -> Vec<Use> {
    const READ: cl_uint = 1;
    const WRITE: cl_uint = 2;
    match command {
        Command::Barrier | Command::Marker | Command::Launch(_) => Vec::new(),
        Command::CopyAddresses { .. } | Command::FillAddresses { .. } => Vec::new(),
        Command::CopyBuffer { from, to, from_offset, to_offset, size } => {
            vec![part(from, READ, *from_offset, *size), part(to, WRITE, *to_offset, *size)]
        }
        Command::CopyBufferRect { from, to, .. }
        | Command::CopyImage { from, to, .. }
        | Command::CopyImageToBuffer { from, to, .. }
        | Command::CopyBufferToImage { from, to, .. } => vec![some(from, READ), some(to, WRITE)],
        Command::FillBuffer { memory, offset, size, .. } => vec![part(memory, WRITE, *offset, *size)],
        Command::FillImage { image, .. } => vec![some(image, WRITE)],
        Command::ReadBuffer { from, offset, size, .. } => vec![part(from, READ, *offset, *size)],
        Command::ReadBufferRect { from, .. } | Command::ReadImage { from, .. } => vec![some(from, READ)],
    }
}

/// # Safety
/// `each` is as the header says.
unsafe fn tell(command: &Command, (after, has_list): (&[u32], bool), each: Each, data: *mut c_void) -> Checked {
    let memory = memory(command);
    let (pattern, pattern_size) = match command {
        Command::FillBuffer { pattern, pattern_size, .. } => (pattern.0.as_ptr().cast(), *pattern_size),
        _ => (ptr::null(), 0),
    };
    let launch = if let Command::Launch(launch) = command { Some(launch) } else { None };
    let arguments = launch.map(|of| arguments(&of.prepared)).transpose()?.unwrap_or_default();
    let range = launch.map(|of| of.range);
    let captured = Captured {
        kind: command.kind(),
        is_work: cl_uint::from(command.is_work()),
        has_list: cl_uint::from(has_list),
        after: after.as_ptr(),
        after_count: after.len(),
        memory: memory.as_ptr(),
        memory_count: memory.len(),
        pattern,
        pattern_size,
        kernel: launch.map_or(ptr::null_mut(), |of| of.prepared.named.raw()),
        has_exec_info: cl_uint::from(launch.is_some_and(|of| of.prepared.has_exec_info)),
        dimensions: range.map_or(0, |range| range.dimensions as cl_uint),
        offset: range.map_or([0; 3], |range| range.offset),
        global: range.map_or([0; 3], |range| range.global),
        local: range.and_then(|range| range.local).unwrap_or([0; 3]),
        arguments: arguments.as_ptr(),
        argument_count: arguments.len(),
    };
    // SAFETY: the caller's promise; all that is pointed to outlives the call.
    let status = unsafe { each(data, &raw const captured) };
    ensure(status == CL_SUCCESS, status)
}

/// # Safety
/// As the header says.
unsafe extern "system" fn visit(buffer: cl_command_buffer_khr, each: Option<Each>, data: *mut c_void) -> cl_int {
    enter(|| {
        let each = each.ok_or(CL_INVALID_VALUE)?;
        let recorded = Buffer::find(buffer)?.executable()?;
        let order = recorded.after.iter().zip(&recorded.has_list);
        for (command, (after, has_list)) in recorded.commands.iter().zip(order) {
            // SAFETY: the caller's function.
            unsafe { tell(command, (after, *has_list), each, data) }?;
        }
        Ok(())
    })
}

/// # Safety
/// As the header says.
unsafe extern "system" fn enqueue(
    buffer: cl_command_buffer_khr,
    place: cl_uint,
    queue: cl_command_queue,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    enter(|| {
        let buffer = Buffer::find(buffer)?;
        let recorded = buffer.executable()?;
        let command = recorded.commands.get(place as usize).filter(|command| command.is_work());
        let command = command.ok_or(CL_INVALID_VALUE)?;
        // SAFETY: drivers check that it is a queue.
        let facts = unsafe { QueueFacts::of(queue) }?;
        ensure(facts.context() == buffer.facts.context(), CL_INVALID_CONTEXT)?;
        // SAFETY: what the program gave.
        unsafe { query::events(facts.context(), count, list) }?;
        if capture::is_active() {
            let waits = Waits { count, list, event };
            // SAFETY: what the program gave.
            if let Some(status) = unsafe { capture::call(queue, "enqueue", waits, |_| Ok(None)) } {
                return Err(status);
            }
        }
        // SAFETY: a list of that length.
        let list = if count == 0 { &[] } else { unsafe { slice::from_raw_parts(list, count as usize) } };
        let _alone = Alone::unless(false, queue);
        // SAFETY: a queue of the objects' context, and events of it.
        let status = unsafe { command.enqueue(queue, list, event) };
        ensure(status == CL_SUCCESS, status)
    })
}

/// The structs of version 1 stay as they are.
const _: () = {
    assert!(size_of::<Argument>() == 3 * size_of::<usize>() && size_of::<Use>() == 4 * size_of::<usize>());
    assert!(size_of::<usize>() != 8 || size_of::<Captured>() == 21 * 8);
    assert!(size_of::<Table>() == 7 * size_of::<usize>());
};
