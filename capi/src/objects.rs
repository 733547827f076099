//! Objects beside graphs: what the program has already, parameters, and user events.

use std::ffi::{c_char, c_void};
use std::ops::Range;
use std::sync::Arc;

use rust::{
    Buffer, BufferSlice, Context, GraphMemory, Kernel, LocalMemory, Memory, MemorySlice, Parameter, Queue, UserEvent,
};

use crate::handle::{self, handled};
use crate::pointers;
use crate::status::{Failure, Outcome, clg_status, enter};

/// Memory that commands use: a buffer of the program, or memory of a graph.
#[derive(Clone)]
pub(crate) enum AnyMemory {
    Buffer(Buffer<u8>),
    Memory(Memory<u8>),
    Graph(GraphMemory<u8>),
}

/// A range of bytes of memory.
pub(crate) enum Slice {
    Buffer(BufferSlice<u8>),
    Memory(MemorySlice<u8>),
}

/// Runs code with a slice of either type.
macro_rules! with_slice {
    ($slice:expr, |$name:ident| $code:expr) => {
        match &$slice {
            $crate::objects::Slice::Buffer($name) => $code,
            $crate::objects::Slice::Memory($name) => $code,
        }
    };
}
pub(crate) use with_slice;

#[derive(Clone)]
pub(crate) enum AnyParameter {
    Bytes(Arc<Parameter<[u8]>>),
    Local(Arc<Parameter<LocalMemory>>),
    Memory(Arc<Parameter<Buffer<u8>>>),
}

/// What a `clg_queue` names.
pub struct clg_queue_object {
    _private: [u8; 0],
}

/// A command queue of the program.
pub type clg_queue = *mut clg_queue_object;

handled!(Queue, 1, "clg_queue");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_queue_retain(object: clg_queue) -> clg_status {
    enter(|| handle::retain::<Queue>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_queue_release(object: clg_queue) -> clg_status {
    enter(|| handle::release::<Queue>(object.addr()))
}

/// What a `clg_kernel` names.
pub struct clg_kernel_object {
    _private: [u8; 0],
}

/// A kernel function. Arguments that were set on the program's `cl_kernel` are not used.
pub type clg_kernel = *mut clg_kernel_object;

handled!(Kernel, 2, "clg_kernel");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_kernel_retain(object: clg_kernel) -> clg_status {
    enter(|| handle::retain::<Kernel>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_kernel_release(object: clg_kernel) -> clg_status {
    enter(|| handle::release::<Kernel>(object.addr()))
}

/// What a `clg_memory` names.
pub struct clg_memory_object {
    _private: [u8; 0],
}

/// Memory: a buffer of the program, memory that clgraph allocated, or memory of a graph.
pub type clg_memory = *mut clg_memory_object;

handled!(AnyMemory, 3, "clg_memory");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_memory_retain(object: clg_memory) -> clg_status {
    enter(|| handle::retain::<AnyMemory>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_memory_release(object: clg_memory) -> clg_status {
    enter(|| handle::release::<AnyMemory>(object.addr()))
}

/// Some bytes of memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_range {
    /// The memory.
    pub memory: clg_memory,
    /// The first byte.
    pub offset: usize,
    /// The number of bytes, or CLG_WHOLE for all bytes from the offset on.
    pub size: usize,
}

/// As the size of a range: all bytes from the offset on.
///
/// cbindgen:ignore
pub const CLG_WHOLE: usize = usize::MAX;

impl clg_range {
    fn bytes(&self, len: usize) -> Outcome<Range<usize>> {
        let end = if self.size == CLG_WHOLE { Some(len.max(self.offset)) } else { self.offset.checked_add(self.size) };
        end.map(|end| self.offset..end)
            .ok_or_else(|| Failure::invalid("offset and size of a range are together more than an address can be"))
    }

    pub(crate) fn slice(&self) -> Outcome<Slice> {
        Ok(match handle::get::<AnyMemory>(self.memory.addr())? {
            AnyMemory::Buffer(buffer) => Slice::Buffer(buffer.slice(self.bytes(buffer.size())?)?),
            AnyMemory::Memory(memory) => Slice::Memory(memory.slice(self.bytes(memory.size())?)?),
            AnyMemory::Graph(memory) => Slice::Memory(memory.slice(self.bytes(memory.size())?)?),
        })
    }
}

/// # Safety
/// **caller**: `raw` is null or a live context.
pub(crate) unsafe fn context(raw: *mut c_void) -> Outcome<Context> {
    // SAFETY: the caller's promise.
    Ok(unsafe { Context::from_raw(raw) }?)
}

/// Wraps and retains a `cl_command_queue`.
///
/// # Safety
/// `queue` is null or a live command queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_queue_from_cl(queue: *mut c_void, result: *mut clg_queue) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (place, queue) = unsafe { (pointers::place("result", result)?, Queue::from_raw(queue)?) };
        place.set(handle::new(queue)? as clg_queue);
        Ok(())
    })
}

/// Waits until everything that was enqueued so far is complete.
#[unsafe(no_mangle)]
pub extern "C" fn clg_queue_finish(queue: clg_queue) -> clg_status {
    enter(|| Ok(handle::get::<Queue>(queue.addr())?.finish()?))
}

/// Wraps the function of a `cl_kernel` of a context. Arguments that were set on it are not used.
///
/// # Safety
/// `context` is null or a live context; `kernel` is null or a live kernel, whose program is not built again meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_kernel_from_cl(
    context: *mut c_void,
    kernel: *mut c_void,
    result: *mut clg_kernel,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        // SAFETY: **caller**.
        let kernel = unsafe { Kernel::from_raw(&self::context(context)?, kernel) }?;
        place.set(handle::new(kernel)? as clg_kernel);
        Ok(())
    })
}

/// Wraps and retains a buffer (`cl_mem`) of a context.
///
/// # Safety
/// `context` is null or a live context; `buffer` is null or a live memory object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_memory_from_cl(
    context: *mut c_void,
    buffer: *mut c_void,
    result: *mut clg_memory,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        // SAFETY: **caller**.
        let buffer = unsafe { Buffer::<u8>::from_raw(&self::context(context)?, buffer) }?;
        place.set(handle::new(AnyMemory::Buffer(buffer))? as clg_memory);
        Ok(())
    })
}

/// Allocates memory for the device of a queue, with undefined content: device memory of
/// `cl_intel_unified_shared_memory` if the device has it, else coarse-grain SVM, else a buffer.
#[unsafe(no_mangle)]
pub extern "C" fn clg_memory_allocate(queue: clg_queue, size: usize, result: *mut clg_memory) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        let memory = Memory::<u8>::new(&handle::get::<Queue>(queue.addr())?, size)?;
        place.set(handle::new(AnyMemory::Memory(memory))? as clg_memory);
        Ok(())
    })
}
