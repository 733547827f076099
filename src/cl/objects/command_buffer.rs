//! Command buffers, which are recorded once and enqueued many times.
//!
//! They are recorded for in-order queues, so each command waits for the command before it, and no sync points are
//! needed. This file handles the differences between drivers: see `docs/drivers.md`.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use opencl_sys::{CL_INVALID_OPERATION, CL_SUCCESS, cl_int};

use crate::caps::{RecordAbi, UpdateAbi};
use crate::cl::commands::command::ByRef;
use crate::cl::commands::copy_sides::{self, CopyPlaces};
use crate::cl::commands::enqueue::{To, enqueue};
use crate::cl::completion::deferred_release::{self, Release};
use crate::cl::memory::untyped::{Address, Mem};
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::kernel_object::KernelObject;
use crate::cl::objects::queue::DriverQueue;
use crate::cl::{MISSING, check};
use crate::command::{Arg, CopyRect, Location};
use crate::error::{DriverError, DriverFault, Error, Result};
use crate::ffi::command_buffer::{
    CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_MUTABLE_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR,
    CL_INCOMPATIBLE_COMMAND_QUEUE_KHR, CommandBufferFns, Tail,
};
use crate::ffi::mutable_dispatch::{DispatchArg, DispatchConfig, MutableDispatchFns};

/// A finalized command buffer.
pub(crate) struct CommandBuffer {
    owned: Owned,
    simultaneous: bool,
    /// The functions and the signature to update recorded kernels, if they can be updated.
    update: Option<(&'static MutableDispatchFns, UpdateAbi)>,
}

/// A recorded kernel that can be updated. It is valid while its command buffer lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handle(NonNull<c_void>);

// SAFETY: **threads**: only `CommandBuffer::update` gets it, and that call borrows the command buffer exclusively.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// Changes to recorded kernels. Arguments and sizes that are not given stay as they are.
#[derive(Debug)]
pub(crate) struct Changes<'a> {
    /// One entry for each kernel. It has the number of arguments; `settle` sets the pointers, after which nothing
    /// moves.
    kernels: Vec<DispatchConfig>,
    /// The arguments of all kernels, one kernel after the other.
    args: Vec<DispatchArg>,
    /// The arguments that are addresses.
    pointers: Vec<DispatchArg>,
    /// The arguments that are objects: index and handle.
    objects: Vec<(usize, *mut c_void)>,
    /// Borrows the values, the sizes, and the owners of all objects.
    _of: PhantomData<&'a [u8]>,
}

/// The changed sizes of a kernel in work-items, by dimension.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChangedSizes<'a> {
    pub(crate) offset: Option<&'a [usize; 3]>,
    pub(crate) global: Option<&'a [usize; 3]>,
    pub(crate) local: Option<&'a [usize; 3]>,
}

impl<'a> Changes<'a> {
    pub(crate) fn with_capacity(kernels: usize) -> Self {
        Self {
            kernels: Vec::with_capacity(kernels),
            args: Vec::with_capacity(kernels),
            pointers: Vec::new(),
            objects: Vec::new(),
            _of: PhantomData,
        }
    }

    /// Adds the changes of a kernel that is not in the list yet.
    pub(crate) fn add(
        &mut self,
        kernel: Handle,
        args: impl Iterator<Item = (u32, Arg<ByRef<'a>>)>,
        sizes: ChangedSizes<'a>,
    ) {
        let before = (self.args.len(), self.pointers.len());
        for (index, arg) in args {
            let (size, value) = match arg {
                Arg::Value(bytes) => (bytes.len(), bytes.as_ptr().cast()),
                Arg::Local(size) => (size, std::ptr::null()),
                Arg::Memory(mem) => match mem.address(0) {
                    Address::Buffer(raw, _) => self.object(raw),
                    Address::Pointer(value, _) => {
                        self.pointers.push(DispatchArg { index, size: size_of_val(&value), value });
                        continue;
                    }
                },
                Arg::Sampler(sampler) => self.object(sampler.raw()),
                Arg::Null(()) | Arg::Indirect(_) | Arg::Global(_) | Arg::Unused(()) => {
                    self.object(std::ptr::null_mut())
                }
            };
            self.args.push(DispatchArg { index, size, value });
        }
        let of = |sizes: Option<&[usize; 3]>| sizes.map_or(std::ptr::null(), |sizes| sizes.as_ptr());
        self.kernels.push(DispatchConfig {
            command: kernel.0.as_ptr(),
            num_args: (self.args.len() - before.0) as u32,
            num_svm_args: (self.pointers.len() - before.1) as u32,
            num_exec_infos: 0,
            // 0 keeps the number of dimensions.
            work_dim: 0,
            args: std::ptr::null(),
            svm_args: std::ptr::null(),
            exec_infos: std::ptr::null(),
            global_offset: of(sizes.offset),
            global_size: of(sizes.global),
            local_size: of(sizes.local),
        });
    }

    /// Adds an argument that is an object, and returns its size and a null pointer. `settle` sets the pointer.
    fn object(&mut self, raw: *mut c_void) -> (usize, *const c_void) {
        self.objects.push((self.args.len(), raw));
        (size_of_val(&raw), std::ptr::null())
    }

    /// Sets all pointers to the final addresses.
    fn settle(&mut self) -> &[DispatchConfig] {
        for (at, raw) in &self.objects {
            self.args[*at].value = std::ptr::from_ref(raw).cast();
        }
        let (mut args, mut pointers) = (self.args.as_slice(), self.pointers.as_slice());
        let take = |from: &mut &[DispatchArg], count: u32| {
            let (mine, rest) = from.split_at(count as usize);
            *from = rest;
            if mine.is_empty() { std::ptr::null() } else { mine.as_ptr() }
        };
        for kernel in &mut self.kernels {
            kernel.args = take(&mut args, kernel.num_args);
            kernel.svm_args = take(&mut pointers, kernel.num_svm_args);
        }
        &self.kernels
    }
}

/// A command buffer that is being recorded. Recording is not thread-safe, so only one thread uses it at a time.
pub(crate) struct CommandBufferRecorder {
    owned: Owned,
    abi: RecordAbi,
    simultaneous: bool,
    update: Option<(&'static MutableDispatchFns, UpdateAbi)>,
}

/// One counted reference to a command buffer. Dropping releases it.
struct Owned {
    raw: NonNull<c_void>,
    fns: &'static CommandBufferFns,
}

// SAFETY: **threads**: all calls are thread-safe except clFinalizeCommandBufferKHR and clUpdateMutableCommandsKHR
// (OpenCL 3.0, appendix A.2), and the record functions, for which drivers promise nothing. `CommandBufferRecorder` calls these with
// `&mut`.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        let release = Release { call: "clReleaseCommandBufferKHR", function: self.fns.release };
        deferred_release::release_in_time(self.raw, release);
    }
}

/// Why a command buffer was not enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotEnqueued {
    /// The driver rejected the command buffer or the queue, and enqueued nothing: the command buffer may not run again
    /// yet, or not on this queue.
    NotNow(DriverError),
    /// Another error. It is unknown how much was enqueued.
    Failed(DriverError),
}

impl CommandBufferRecorder {
    /// Makes an empty command buffer for queues with the properties of `queue`, which is in-order. If `mutable` is true
    /// and the device supports it, its kernels can be updated later.
    pub(crate) fn new(queue: &DriverQueue, mutable: bool) -> Result<Self> {
        let device = queue.device();
        let lacks = || Error::from(DriverError::faulty("clCreateCommandBufferKHR", DriverFault::Missing));
        let (abi, caps) = device.abi()?.zip(device.caps().command_buffers.as_ref()).ok_or_else(lacks)?;
        let fns = device.extensions().command_buffer.as_ref().map_err(|_| lacks())?;
        // Drivers before 0.9.8 refuse to enqueue a command buffer that still runs, even on one in-order queue, unless
        // it was made for simultaneous use. Some drivers refuse a list of properties that is empty, so the list is null
        // then.
        let fields = caps.mutable.filter(|_| mutable);
        let update = fields.and(device.extensions().mutable_dispatch.as_ref()).zip(abi.update);
        let simultaneous = if caps.simultaneous_use { CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR } else { 0 };
        let flags = simultaneous | if update.is_some() { CL_COMMAND_BUFFER_MUTABLE_KHR } else { 0 };
        let list = [CL_COMMAND_BUFFER_FLAGS_KHR, flags, 0];
        let properties = if flags == 0 { std::ptr::null() } else { list.as_ptr() };
        let (queues, mut status) = ([queue.raw()], CL_SUCCESS);
        // SAFETY: **live**, **lists**; the properties are null or end with 0.
        let raw = unsafe { (fns.create)(1, queues.as_ptr(), properties, &raw mut status) };
        check("clCreateCommandBufferKHR", status)?;
        let raw = NonNull::new(raw).ok_or(DriverError::faulty("clCreateCommandBufferKHR", DriverFault::NoObject))?;
        Ok(Self { owned: Owned { raw, fns }, abi: abi.record, simultaneous: caps.simultaneous_use, update })
    }

    /// Records a kernel over a range of `dims` dimensions, in work-items. The arguments of the kernel object must never
    /// change afterwards: PoCL 3.1 reads them when the command buffer is enqueued, other drivers read them now.
    pub(crate) fn kernel(
        &mut self,
        kernel: &KernelObject,
        dims: u32,
        offset: &[usize; 3],
        global: &[usize; 3],
        local: Option<&[usize; 3]>,
    ) -> Result<Option<Handle>, DriverError> {
        let local = local.map_or(std::ptr::null(), |local| local.as_ptr());
        // PoCL 7.1 frees the handle in this variable if it refuses the command, so it must be null.
        let mut handle = std::ptr::null_mut();
        let place = if self.update.is_some() { &raw mut handle } else { std::ptr::null_mut() };
        // SAFETY: **live**, **promise**, **lists**; three sizes each, of which `dims`, at most 3, are read; queue,
        // properties and sync points are null. Without properties, all fields that the device supports can be updated.
        let status = unsafe {
            (self.owned.fns.kernel)(
                self.owned.raw.as_ptr(),
                std::ptr::null_mut(),
                std::ptr::null(),
                kernel.raw(),
                dims,
                offset.as_ptr(),
                global.as_ptr(),
                local,
                0,
                std::ptr::null(),
                std::ptr::null_mut(),
                place,
            )
        };
        check("clCommandNDRangeKernelKHR", status)?;
        Ok(NonNull::new(handle).map(Handle))
    }

    /// Records a copy of `size` bytes. Source and destination are both buffers, or both addresses.
    pub(crate) fn copy(&mut self, src: &Location<&Mem>, dst: &Location<&Mem>, size: usize) -> Result<(), DriverError> {
        let Owned { raw, fns } = self.owned;
        let raw = raw.as_ptr();
        match copy_sides::of_copy(src, dst) {
            CopyPlaces::Buffers((src, src_offset), (dst, dst_offset)) => {
                // SAFETY: **live**, **lists**.
                let status = unsafe { fns.copy(self.abi, raw, src, dst, src_offset, dst_offset, size, Tail::NONE) };
                recorded("clCommandCopyBufferKHR", status)
            }
            CopyPlaces::Pointers(src, dst, _) => {
                // SAFETY: **live**, **lists**; the caller of `enqueue` keeps the memory alive. Drivers that have USM
                // accept it here.
                let status = unsafe { fns.memcpy(self.abi, raw, dst, src, size, Tail::NONE) };
                recorded("clCommandSVMMemcpyKHR", status)
            }
            CopyPlaces::Mixed => Err(DriverError::faulty("clCommandCopyBufferKHR", DriverFault::Defect)),
        }
    }

    /// Returns the C handle and the signature of the record functions, for code that records by itself.
    pub(crate) fn raw_parts(&self) -> (*mut c_void, RecordAbi) {
        (self.owned.raw.as_ptr(), self.abi)
    }

    /// Returns the first parameters of the calls that record.
    pub(in crate::cl) fn parts(&mut self) -> (&'static CommandBufferFns, RecordAbi, *mut c_void) {
        (self.owned.fns, self.abi, self.owned.raw.as_ptr())
    }

    /// Records a copy of a rectangle from buffer to buffer, as
    /// [`enqueue::copy_rect`](crate::cl::commands::enqueue::copy_rect).
    pub(crate) fn copy_rect(&mut self, rect: &CopyRect<&Mem>) -> Result<(), DriverError> {
        let Owned { raw, fns } = self.owned;
        let ((src, src_origin), (dst, dst_origin)) = copy_sides::of_copy_rect(rect);
        let [src_row, src_slice, dst_row, dst_slice] = rect.pitches;
        // SAFETY: **live**, **lists**; three sizes each.
        let status = unsafe {
            fns.copy_rect(
                self.abi,
                raw.as_ptr(),
                src,
                dst,
                src_origin.as_ptr(),
                dst_origin.as_ptr(),
                rect.region.as_ptr(),
                src_row,
                src_slice,
                dst_row,
                dst_slice,
                Tail::NONE,
            )
        };
        recorded("clCommandCopyBufferRectKHR", status)
    }

    /// Records a fill of `size` bytes with a pattern.
    pub(crate) fn fill(&mut self, dst: &Location<&Mem>, pattern: &[u8], size: usize) -> Result<(), DriverError> {
        let Owned { raw, fns } = self.owned;
        let (raw, start, len) = (raw.as_ptr(), pattern.as_ptr().cast(), pattern.len());
        match dst.mem.address(dst.offset) {
            Address::Buffer(dst, offset) => {
                // SAFETY: **live**, **lists**; the driver copies the pattern, as clEnqueueFillBuffer does.
                let status = unsafe { fns.fill(self.abi, raw, dst, start, len, offset, size, Tail::NONE) };
                recorded("clCommandFillBufferKHR", status)
            }
            Address::Pointer(dst, _) => {
                // SAFETY: as above; the caller of `enqueue` keeps the memory alive.
                let status = unsafe { fns.mem_fill(self.abi, raw, dst, start, len, size, Tail::NONE) };
                recorded("clCommandSVMMemFillKHR", status)
            }
        }
    }

    /// Finalizes the command buffer.
    pub(crate) fn finalize(self) -> Result<CommandBuffer, DriverError> {
        let Owned { raw, fns } = self.owned;
        // SAFETY: **live**; `self` is consumed, so nothing else uses it.
        check("clFinalizeCommandBufferKHR", unsafe { (fns.finalize)(raw.as_ptr()) })?;
        Ok(CommandBuffer { owned: self.owned, simultaneous: self.simultaneous, update: self.update })
    }
}

/// Converts the status of a record function. The planner never plans a command whose function is missing.
pub(in crate::cl) fn recorded(call: &'static str, status: Option<cl_int>) -> Result<(), DriverError> {
    check(call, status.unwrap_or(MISSING))
}

impl CommandBuffer {
    /// Enqueues the commands once, on an in-order queue with the properties of the queue that they were recorded for.
    /// The caller keeps everything that the commands use alive until they are complete, because drivers do not keep the
    /// arguments of kernels.
    pub(crate) fn enqueue(&self, to: &To<'_>) -> Result<Option<DriverEvent>, NotEnqueued> {
        let mut queue = to.queue.raw();
        let done = enqueue("clEnqueueCommandBufferKHR", to, |_, count, list, event| {
            // SAFETY: **live**, **promise**, **lists**; one queue.
            unsafe { (self.owned.fns.enqueue)(1, &raw mut queue, self.owned.raw.as_ptr(), count, list, event) }
        });
        done.map_err(|error| match error.status.0 {
            // The driver checks both before it enqueues anything. A command buffer for simultaneous use is never
            // refused because it still runs, so there the first status means something else.
            CL_INVALID_OPERATION if !self.simultaneous => NotEnqueued::NotNow(error),
            CL_INCOMPATIBLE_COMMAND_QUEUE_KHR => NotEnqueued::NotNow(error),
            _ => NotEnqueued::Failed(error),
        })
    }

    /// Updates recorded kernels of this command buffer; each kernel appears at most once. The caller keeps alive what
    /// the kernels use now. It also keeps alive what they used before, until everything that was enqueued has ended.
    ///
    /// After an error, some kernels may be updated and others not.
    pub(crate) fn update(&mut self, changes: &mut Changes<'_>) -> Result<(), DriverError> {
        let call = "clUpdateMutableCommandsKHR";
        let (fns, abi) = self.update.ok_or(DriverError::faulty(call, DriverFault::Missing))?;
        let configs = changes.settle();
        // SAFETY: **live**, **promise**, **lists**, and **threads**: the command buffer is borrowed exclusively. The
        // handles are its own; `settle` points arguments to values of the given sizes, and sizes to three numbers.
        check(call, unsafe { fns.update(abi, self.owned.raw.as_ptr(), configs) })
    }

    /// Returns the C handle, which is valid while this object lives.
    pub(crate) fn raw(&self) -> *mut c_void {
        self.owned.raw.as_ptr()
    }
}

impl fmt::Debug for CommandBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cl_command_buffer_khr({:p})", self.owned.raw)
    }
}
