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

/// What a `clg_parameter` names.
pub struct clg_parameter_object {
    _private: [u8; 0],
}

/// A value, a size of local memory, or memory, which several kernel nodes can use and which can change.
pub type clg_parameter = *mut clg_parameter_object;

handled!(AnyParameter, 4, "clg_parameter");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_retain(object: clg_parameter) -> clg_status {
    enter(|| handle::retain::<AnyParameter>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_release(object: clg_parameter) -> clg_status {
    enter(|| handle::release::<AnyParameter>(object.addr()))
}

/// What a `clg_user_event` names.
pub struct clg_user_event_object {
    _private: [u8; 0],
}

/// An event that the program completes.
pub type clg_user_event = *mut clg_user_event_object;

handled!(UserEvent, 5, "clg_user_event");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_user_event_retain(object: clg_user_event) -> clg_status {
    enter(|| handle::retain::<UserEvent>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_user_event_release(object: clg_user_event) -> clg_status {
    enter(|| handle::release::<UserEvent>(object.addr()))
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

fn new_parameter(result: *mut clg_parameter, make: impl FnOnce() -> Outcome<AnyParameter>) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(handle::new(make()?)? as clg_parameter);
        Ok(())
    })
}

/// Makes a parameter of a value: a number, a vector or a struct, as many bytes as the kernel's parameter has.
///
/// The program promises that every value which it gives the parameter is fine for the kernels that use it.
///
/// # Safety
/// `value` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_parameter_create(
    value: *const c_void,
    size: usize,
    result: *mut clg_parameter,
) -> clg_status {
    new_parameter(result, || {
        // SAFETY: **caller**.
        let value: &[u8] = unsafe { pointers::list("value", value.cast::<u8>(), size) }?;
        Ok(AnyParameter::Bytes(Arc::new(Parameter::any_bytes(value))))
    })
}

/// Makes a parameter of local memory, of a size in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_create_local(size: usize, result: *mut clg_parameter) -> clg_status {
    new_parameter(result, || Ok(AnyParameter::Local(Arc::new(Parameter::local(size)))))
}

/// Makes a parameter of a buffer. Kernels take the whole buffer.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_create_memory(memory: clg_memory, result: *mut clg_parameter) -> clg_status {
    new_parameter(result, || Ok(AnyParameter::Memory(Arc::new(Parameter::buffer(&whole(memory)?)))))
}

fn whole(memory: clg_memory) -> Outcome<Buffer<u8>> {
    match handle::get::<AnyMemory>(memory.addr())? {
        AnyMemory::Buffer(buffer) => Ok(buffer),
        _ => Err(Failure::invalid("only buffers (clg_memory_from_cl) can be the memory of a parameter")),
    }
}

/// Sets the value of a parameter, of as many bytes as before. Executables get it when they are updated.
///
/// # Safety
/// `value` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_parameter_set(parameter: clg_parameter, value: *const c_void, size: usize) -> clg_status {
    enter(|| match handle::get::<AnyParameter>(parameter.addr())? {
        AnyParameter::Bytes(parameter) => {
            // SAFETY: **caller**.
            let value: &[u8] = unsafe { pointers::list("value", value.cast::<u8>(), size) }?;
            Ok(parameter.set(value)?)
        }
        AnyParameter::Local(_) | AnyParameter::Memory(_) => {
            Err(Failure::invalid("the parameter has no value: use clg_parameter_set_local or clg_parameter_set_memory"))
        }
    })
}

/// Sets the size of a parameter of local memory, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_set_local(parameter: clg_parameter, size: usize) -> clg_status {
    enter(|| match handle::get::<AnyParameter>(parameter.addr())? {
        AnyParameter::Local(parameter) => Ok(parameter.set(size)?),
        _ => Err(Failure::invalid("the parameter is not one of local memory")),
    })
}

/// Sets the memory of a parameter of memory.
#[unsafe(no_mangle)]
pub extern "C" fn clg_parameter_set_memory(parameter: clg_parameter, memory: clg_memory) -> clg_status {
    enter(|| match handle::get::<AnyParameter>(parameter.addr())? {
        AnyParameter::Memory(parameter) => Ok(parameter.set(&whole(memory)?)?),
        _ => Err(Failure::invalid("the parameter is not one of memory")),
    })
}

/// Makes an event that the program completes.
///
/// # Safety
/// `context` is null or a live context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_user_event_create(context: *mut c_void, result: *mut clg_user_event) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (place, context) = unsafe { (pointers::place("result", result)?, self::context(context)?) };
        place.set(handle::new(UserEvent::new(&context)?)? as clg_user_event);
        Ok(())
    })
}

/// Completes the event: what waits for it runs.
#[unsafe(no_mangle)]
pub extern "C" fn clg_user_event_complete(event: clg_user_event) -> clg_status {
    enter(|| Ok(handle::get::<UserEvent>(event.addr())?.complete()?))
}

/// Fails the event: what waits for it does not run, and fails with this text.
///
/// # Safety
/// `text` is null or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_user_event_fail(event: clg_user_event, text: *const c_char) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let text = unsafe { pointers::text("text", text) }?.unwrap_or("a user event failed");
        Ok(handle::get::<UserEvent>(event.addr())?.fail(text)?)
    })
}

/// Blocks until the event has ended.
#[unsafe(no_mangle)]
pub extern "C" fn clg_user_event_wait(event: clg_user_event) -> clg_status {
    enter(|| Ok(handle::get::<UserEvent>(event.addr())?.wait()?))
}
