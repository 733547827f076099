//! What the program has already: queues, kernels, and memory.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::Arc;

use rust::{
    Buffer, BufferSlice, Context, GlobalSlice, GraphMemory, HostGuard, HostGuardMut, Kernel, Memory, MemoryKind,
    MemorySlice, Queue,
};

use crate::handle::{self, handled};
use crate::opencl::{cl_command_queue, cl_context, cl_kernel, cl_mem};
use crate::pointers;
use crate::status::{Failure, Outcome, clg_status, enter};

/// Memory that commands use.
#[derive(Clone)]
pub(crate) enum AnyMemory {
    /// A buffer of the program.
    Buffer(Buffer<u8>),
    /// Memory that clgraph allocated.
    Memory(Memory<u8>),
    /// Memory of a graph.
    Graph(GraphMemory<u8>),
    /// A device global on one device.
    Global(GlobalSlice<u8>),
}

/// A range of bytes of memory.
pub(crate) enum Slice {
    Buffer(BufferSlice<u8>),
    Memory(MemorySlice<u8>),
    Global(GlobalSlice<u8>),
}

/// Runs code with a slice of any type.
macro_rules! with_slice {
    ($slice:expr, |$name:ident| $code:expr) => {
        match &$slice {
            $crate::objects::Slice::Buffer($name) => $code,
            $crate::objects::Slice::Memory($name) => $code,
            $crate::objects::Slice::Global($name) => $code,
        }
    };
}
pub(crate) use with_slice;

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
            AnyMemory::Global(global) => Slice::Global(global.slice(self.bytes(global.size())?)?),
        })
    }
}

/// # Safety
/// **caller**: `raw` is null or a live context.
pub(crate) unsafe fn context(raw: cl_context) -> Outcome<Context> {
    // SAFETY: the caller's promise.
    Ok(unsafe { Context::from_raw(raw.cast()) }?)
}

/// Wraps and retains a `cl_command_queue`.
///
/// # Safety
/// `queue` is null or a live command queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_queue_from_cl(queue: cl_command_queue, result: *mut clg_queue) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (place, queue) = unsafe { (pointers::place("result", result)?, Queue::from_raw(queue.cast())?) };
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
    context: cl_context,
    kernel: cl_kernel,
    result: *mut clg_kernel,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        // SAFETY: **caller**.
        let kernel = unsafe { Kernel::from_raw(&self::context(context)?, kernel.cast()) }?;
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
    context: cl_context,
    buffer: cl_mem,
    result: *mut clg_memory,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        // SAFETY: **caller**.
        let buffer = unsafe { Buffer::<u8>::from_raw(&self::context(context)?, buffer.cast()) }?;
        place.set(handle::new(AnyMemory::Buffer(buffer))? as clg_memory);
        Ok(())
    })
}

/// Kinds of memory that clgraph allocates.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum clg_memory_kind {
    /// Device memory of `cl_intel_unified_shared_memory` if the device has it, else coarse-grain SVM, else a buffer.
    CLG_MEMORY_BEST = 0,
    /// The best memory that the host can use through its address too: see `clg_memory_access_host`.
    CLG_MEMORY_HOST_ACCESSIBLE = 1,
    /// A `cl_mem`.
    CLG_MEMORY_BUFFER = 2,
    /// Device memory of `cl_intel_unified_shared_memory`.
    CLG_MEMORY_USM_DEVICE = 3,
    /// Host memory of `cl_intel_unified_shared_memory`.
    CLG_MEMORY_USM_HOST = 4,
    /// Shared memory of `cl_intel_unified_shared_memory`.
    CLG_MEMORY_USM_SHARED = 5,
    /// Coarse-grain SVM.
    CLG_MEMORY_SVM_COARSE = 6,
    /// Fine-grain SVM.
    CLG_MEMORY_SVM_FINE = 7,
}

/// The kind of memory that a number of C names, if it names one kind.
pub(crate) fn memory_kind(kind: i32) -> Option<MemoryKind> {
    use clg_memory_kind as of;
    let kinds = [
        (of::CLG_MEMORY_BUFFER, MemoryKind::Buffer),
        (of::CLG_MEMORY_USM_DEVICE, MemoryKind::UsmDevice),
        (of::CLG_MEMORY_USM_HOST, MemoryKind::UsmHost),
        (of::CLG_MEMORY_USM_SHARED, MemoryKind::UsmShared),
        (of::CLG_MEMORY_SVM_COARSE, MemoryKind::SvmCoarse),
        (of::CLG_MEMORY_SVM_FINE, MemoryKind::SvmFine),
    ];
    kinds.into_iter().find(|(number, _)| *number as i32 == kind).map(|(_, kind)| kind)
}

/// Allocates memory for the device of a queue, with undefined content. `kind` is a `clg_memory_kind`.
#[unsafe(no_mangle)]
pub extern "C" fn clg_memory_allocate(queue: clg_queue, size: usize, kind: i32, result: *mut clg_memory) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        let queue = handle::get::<Queue>(queue.addr())?;
        let memory = match memory_kind(kind) {
            Some(kind) => Memory::<u8>::with_kind(&queue, kind, size)?,
            None if kind == clg_memory_kind::CLG_MEMORY_BEST as i32 => Memory::<u8>::new(&queue, size)?,
            None if kind == clg_memory_kind::CLG_MEMORY_HOST_ACCESSIBLE as i32 => {
                Memory::<u8>::host_accessible(&queue, size)?
            }
            None => return Err(Failure::invalid(format!("{kind} is no kind of memory (clg_memory_kind)"))),
        };
        place.set(handle::new(AnyMemory::Memory(memory))? as clg_memory);
        Ok(())
    })
}

/// Wraps memory with an address that the program has allocated: USM or SVM of the context of a queue. `kind` is a
/// `clg_memory_kind` that names one kind of it.
///
/// # Safety
/// `pointer` points to `size` bytes of that kind, which stay allocated until every object and command that uses the
/// memory has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_memory_from_pointer(
    queue: clg_queue,
    pointer: *mut c_void,
    size: usize,
    kind: i32,
    result: *mut clg_memory,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        let queue = handle::get::<Queue>(queue.addr())?;
        let kind = memory_kind(kind)
            .ok_or_else(|| Failure::invalid(format!("{kind} is not one kind of memory with an address")))?;
        // SAFETY: **caller**: the promise of this function.
        let memory = unsafe { Memory::<u8>::from_raw(&queue, kind, pointer.cast(), size) }?;
        place.set(handle::new(AnyMemory::Memory(memory))? as clg_memory);
        Ok(())
    })
}

/// Returns the size of memory in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn clg_memory_size(memory: clg_memory, result: *mut usize) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(match handle::get::<AnyMemory>(memory.addr())? {
            AnyMemory::Buffer(buffer) => buffer.size(),
            AnyMemory::Memory(memory) => memory.size(),
            AnyMemory::Graph(memory) => memory.size(),
            AnyMemory::Global(global) => global.size(),
        });
        Ok(())
    })
}

/// Returns the address of memory that clgraph allocated, or null for memory without one. Kernels may follow it if they
/// declare that: `clg_launch.indirect`.
#[unsafe(no_mangle)]
pub extern "C" fn clg_memory_address(memory: clg_memory, result: *mut *mut c_void) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(match handle::get::<AnyMemory>(memory.addr())? {
            AnyMemory::Memory(memory) => memory.as_ptr().map_or(std::ptr::null_mut(), |pointer| pointer.cast()),
            _ => std::ptr::null_mut(),
        });
        Ok(())
    })
}

/// The host's use of memory. While it exists, no command may use the memory.
#[derive(Clone)]
pub(crate) struct HostAccess {
    _guard: Arc<Guard>,
}

enum Guard {
    Reads { _guard: HostGuard<u8> },
    Writes { _guard: HostGuardMut<u8> },
}

/// What a `clg_host_access` names.
pub struct clg_host_access_object {
    _private: [u8; 0],
}

/// The host's use of memory through its address, until it is released.
pub type clg_host_access = *mut clg_host_access_object;

handled!(HostAccess, 18, "clg_host_access");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_host_access_retain(object: clg_host_access) -> clg_status {
    enter(|| handle::retain::<HostAccess>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_host_access_release(object: clg_host_access) -> clg_status {
    enter(|| handle::release::<HostAccess>(object.addr()))
}

/// Gives the host access to memory through its address: `data` gets it. The memory is of a kind that the host can use
/// (`CLG_MEMORY_HOST_ACCESSIBLE`), and no command uses it: until the access is released, commands that would are
/// refused. Only with `writes` may the host write, and then there is no other access.
///
/// # Safety
/// `data` is not used after the release.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_memory_access_host(
    memory: clg_memory,
    writes: bool,
    data: *mut *mut c_void,
    access: *mut clg_host_access,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (data, access) = unsafe { (pointers::place("data", data)?, pointers::place("access", access)?) };
        let AnyMemory::Memory(memory) = handle::get(memory.addr())? else {
            return Err(Failure::invalid("only memory of clg_memory_allocate has an address for the host"));
        };
        let (address, guard) = if writes {
            let mut guard = memory.host_mut()?;
            (guard.as_mut_ptr(), Guard::Writes { _guard: guard })
        } else {
            let guard = memory.host()?;
            (guard.as_ptr().cast_mut(), Guard::Reads { _guard: guard })
        };
        access.set(handle::new(HostAccess { _guard: Arc::new(guard) })? as clg_host_access);
        data.set(address.cast());
        Ok(())
    })
}
