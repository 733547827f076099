//! A fake driver of command buffers for tests, on top of any OpenCL device. It keeps commands in a list and enqueues
//! them one by one.
//!
//! It can have either signature, lack functions, report wrong values, and refuse calls. It also updates recorded
//! kernels, with the update signature that belongs to the signature of its record functions.

mod launch;

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use opencl_sys::{
    CL_INVALID_OPERATION, CL_INVALID_VALUE, CL_SUCCESS, cl_command_queue, cl_event, cl_int, cl_mem, cl_uint,
};

use crate::caps::{Caps, CommandBufferCaps, RecordAbi};
use crate::cl::objects::context::{Context, InContext};
use crate::cl::objects::device::Device;
use crate::cl::query::extensions::Extensions;
use crate::ffi::command_buffer::{
    CL_COMMAND_BUFFER_MUTABLE_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, cl_command_buffer_khr,
    cl_mutable_command_khr, cl_properties, cl_sync_point_khr,
};
use crate::ffi::core::Core;
use launch::Launch;
pub(crate) use launch::{KERNELS, all_inside, inside};

/// An error of `cl_khr_command_buffer`.
const CL_INVALID_SYNC_POINT_WAIT_LIST_KHR: cl_int = -1139;

/// How the driver responds to the recording of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// As the specification requires.
    Right,
    /// It succeeds and writes no sync point.
    Silent,
    /// It succeeds and does not check that null parameters are null.
    Careless,
    /// It succeeds without checks, and writes a handle where a handle can be returned.
    Generous,
    /// It fails with this status.
    Fails(cl_int),
}

/// The behaviour of the driver, and what it has seen.
pub(crate) struct Fake {
    abi: RecordAbi,
    missing: Vec<&'static CStr>,
    /// The status that `clCreateCommandBufferKHR` returns.
    pub(crate) create_status: AtomicI32,
    /// The status that `clFinalizeCommandBufferKHR` returns.
    pub(crate) finalize_status: AtomicI32,
    /// The status that `clEnqueueCommandBufferKHR` returns.
    pub(crate) enqueue_status: AtomicI32,
    /// How the barrier responds by which clgraph finds the signature.
    pub(crate) barrier: Mutex<Barrier>,
    /// Whether the driver has a function to update commands. Its signature is the older one if that of the record
    /// functions is.
    pub(crate) updates: AtomicBool,
    /// Creating a command buffer succeeds and returns null.
    pub(crate) null_buffer: AtomicBool,
    /// Enqueuing succeeds and returns no event.
    pub(crate) null_event: AtomicBool,
    /// The first enqueue that returns `enqueue_status`.
    pub(crate) fails_from: AtomicUsize,
    /// After a refused command, a command buffer accepts no more commands.
    pub(crate) sulks: AtomicBool,
    /// In this context, command buffers do not run before [`Fake::run_held`]. Only clgraph keeps alive what they use.
    pub(crate) holds: Mutex<Option<Context>>,
    /// The user events that hold back command buffers, as numbers.
    held: Mutex<Vec<usize>>,
    /// Fills of this size in bytes are refused.
    pub(crate) refused_fill: AtomicUsize,
    /// Kernels of this number of work-items in the first dimension are refused.
    pub(crate) refused_kernel: AtomicUsize,
    /// The status that `clUpdateMutableCommandsKHR` returns. After an error, only the first kernel is updated.
    pub(crate) update_status: AtomicI32,
    /// How many kernels were updated.
    pub(crate) updated: AtomicUsize,
    /// If this is an error, every command is refused with it.
    pub(crate) refuse_all: AtomicI32,
    /// How many command buffers were made, and how many of them are not released.
    pub(crate) made: AtomicUsize,
    pub(crate) live: AtomicUsize,
    /// How many commands were recorded.
    pub(crate) recorded: AtomicUsize,
    /// How many command buffers were enqueued.
    pub(crate) enqueued: AtomicUsize,
    /// The flags of each command buffer.
    pub(crate) flags: Mutex<Vec<u64>>,
}

thread_local!(static CURRENT: std::cell::RefCell<Option<Arc<Fake>>> = const { std::cell::RefCell::new(None) });

impl Fake {
    /// Makes a driver without the functions in `missing`. It is the driver of this thread until the next one is made.
    pub(crate) fn new(abi: RecordAbi, missing: &[&'static CStr]) -> Arc<Self> {
        let fake = Arc::new(Self {
            abi,
            missing: missing.to_vec(),
            create_status: AtomicI32::new(0),
            finalize_status: AtomicI32::new(0),
            enqueue_status: AtomicI32::new(0),
            barrier: Mutex::new(Barrier::Right),
            updates: AtomicBool::new(false),
            null_buffer: AtomicBool::new(false),
            null_event: AtomicBool::new(false),
            fails_from: AtomicUsize::new(0),
            sulks: AtomicBool::new(false),
            holds: Mutex::default(),
            held: Mutex::default(),
            refused_fill: AtomicUsize::new(usize::MAX),
            refused_kernel: AtomicUsize::new(usize::MAX),
            update_status: AtomicI32::new(0),
            updated: AtomicUsize::new(0),
            refuse_all: AtomicI32::new(0),
            made: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            recorded: AtomicUsize::new(0),
            enqueued: AtomicUsize::new(0),
            flags: Mutex::default(),
        });
        CURRENT.set(Some(Arc::clone(&fake)));
        fake
    }

    /// Returns the device with the command buffers of this driver, after changes to the reported capabilities.
    pub(crate) fn device(&self, device: &Device, change: impl FnOnce(&mut Caps, &mut CommandBufferCaps)) -> Device {
        let extensions = Box::leak(Box::new(self.extensions()));
        let says = |caps: &mut Caps| {
            let missing = extensions.missing_command_buffer_functions();
            let mut says = CommandBufferCaps {
                missing: missing.essential,
                missing_commands: missing.commands,
                simultaneous_use: true,
                ..CommandBufferCaps::default()
            };
            change(caps, &mut says);
            caps.command_buffers = Some(says);
        };
        device.with_fakes(extensions, says).unwrap()
    }

    /// Returns the function tables of the driver.
    pub(crate) fn extensions(&self) -> Extensions {
        Extensions::load(&|name| self.address(name))
    }

    /// Lets the command buffers run that `holds` has held back.
    pub(crate) fn run_held(&self) {
        let core = Core::get().unwrap();
        for event in std::mem::take(&mut *self.held.lock().unwrap()) {
            let event = std::ptr::with_exposed_provenance_mut(event);
            // SAFETY: a live user event, whose status is set once and which is released once.
            unsafe {
                assert_eq!((core.clSetUserEventStatus)(event, opencl_sys::CL_COMPLETE), CL_SUCCESS);
                assert_eq!((core.clReleaseEvent)(event), CL_SUCCESS);
            }
        }
    }

    fn address(&self, name: &CStr) -> *mut c_void {
        if self.missing.contains(&name) {
            return std::ptr::null_mut();
        }
        let old = self.abi == RecordAbi::WithoutProperties;
        match name.to_str().unwrap() {
            "clCreateCommandBufferKHR" => create as *mut c_void,
            "clFinalizeCommandBufferKHR" => finalize as *mut c_void,
            "clReleaseCommandBufferKHR" => release as *mut c_void,
            "clEnqueueCommandBufferKHR" => enqueue as *mut c_void,
            "clCommandNDRangeKernelKHR" => launch::kernel as *mut c_void,
            "clCommandBarrierWithWaitListKHR" if old => old::barrier as *mut c_void,
            "clCommandCopyBufferKHR" if old => old::copy as *mut c_void,
            "clCommandCopyBufferRectKHR" if old => old::copy_rect as *mut c_void,
            "clCommandFillBufferKHR" if old => old::fill as *mut c_void,
            "clCommandBarrierWithWaitListKHR" => new::barrier as *mut c_void,
            "clCommandCopyBufferKHR" => new::copy as *mut c_void,
            "clCommandCopyBufferRectKHR" => new::copy_rect as *mut c_void,
            "clCommandFillBufferKHR" => new::fill as *mut c_void,
            "clUpdateMutableCommandsKHR" if !self.updates.load(Ordering::SeqCst) => std::ptr::null_mut(),
            "clUpdateMutableCommandsKHR" if old => launch::update_by_list as *mut c_void,
            "clUpdateMutableCommandsKHR" => launch::update_by_arrays as *mut c_void,
            _ => std::ptr::null_mut(),
        }
    }
}

/// Makes a buffer of zeros, and a flag that shows when OpenCL has released it.
pub(crate) fn telling_buffer(
    context: &impl InContext,
    len: usize,
) -> (crate::cl::objects::buffer::Buffer<u32>, Weak<Vec<u32>>) {
    let core = Core::get().unwrap();
    let owner = Arc::new(vec![0_u32; len]);
    let (tell, mut status) = (Arc::downgrade(&owner), 0);
    let (flags, place) = (opencl_sys::CL_MEM_USE_HOST_PTR, owner.as_ptr().cast_mut().cast());
    // SAFETY: the memory belongs to the buffer as its owner, and nothing else uses it.
    unsafe {
        let raw = (core.clCreateBuffer)(context.context().raw(), flags, 4 * len, place, &raw mut status);
        let buffer = crate::cl::objects::buffer::Buffer::from_raw_with_owner(context, raw, owner).unwrap();
        assert_eq!((core.clReleaseMemObject)(raw), CL_SUCCESS);
        (buffer, tell)
    }
}

/// Enqueues one command on a queue.
type Command = Box<dyn Fn(&Core, cl_command_queue) -> cl_int>;

struct Buffer {
    fake: Arc<Fake>,
    commands: Vec<Command>,
    /// The kernels that can be updated. A handle is the address of one of them.
    launches: Vec<Arc<Mutex<Launch>>>,
    mutable: bool,
    finalized: bool,
    sulks: bool,
}

/// Returns the command buffer of a handle.
///
/// # Safety
/// The handle is live, and nothing else uses it now.
unsafe fn buffer<'a>(handle: cl_command_buffer_khr) -> &'a mut Buffer {
    // SAFETY: the caller's promise; `create` made it from a `Box`.
    unsafe { &mut *handle.cast::<Buffer>() }
}

unsafe extern "system" fn create(
    count: cl_uint,
    queues: *const cl_command_queue,
    properties: *const cl_properties,
    status: *mut cl_int,
) -> cl_command_buffer_khr {
    let fake = CURRENT.with_borrow(|current| current.clone().unwrap());
    assert!(count == 1 && !queues.is_null());
    // SAFETY: a list of properties has a name, a value and the end.
    let flags = if properties.is_null() { 0 } else { unsafe { *properties.add(1) } };
    assert!(flags & !(CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR | CL_COMMAND_BUFFER_MUTABLE_KHR) == 0);
    let error = fake.create_status.load(Ordering::SeqCst);
    // SAFETY: a valid address for the status.
    unsafe { *status = error };
    if error != CL_SUCCESS || fake.null_buffer.load(Ordering::SeqCst) {
        return std::ptr::null_mut();
    }
    fake.flags.lock().unwrap().push(flags);
    fake.made.fetch_add(1, Ordering::SeqCst);
    fake.live.fetch_add(1, Ordering::SeqCst);
    let mutable = flags & CL_COMMAND_BUFFER_MUTABLE_KHR != 0;
    let (commands, launches) = (Vec::new(), Vec::new());
    Box::into_raw(Box::new(Buffer { fake, commands, launches, mutable, finalized: false, sulks: false })).cast()
}

unsafe extern "system" fn finalize(handle: cl_command_buffer_khr) -> cl_int {
    // SAFETY: a live handle.
    let buffer = unsafe { buffer(handle) };
    assert!(!std::mem::replace(&mut buffer.finalized, true), "finalized twice");
    buffer.fake.finalize_status.load(Ordering::SeqCst)
}

unsafe extern "system" fn release(handle: cl_command_buffer_khr) -> cl_int {
    // SAFETY: a live handle, which is used for the last time.
    let buffer = unsafe { Box::from_raw(handle.cast::<Buffer>()) };
    buffer.fake.live.fetch_sub(1, Ordering::SeqCst);
    CL_SUCCESS
}

unsafe extern "system" fn enqueue(
    count: cl_uint,
    queues: *mut cl_command_queue,
    handle: cl_command_buffer_khr,
    num_events: cl_uint,
    wait_list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let core = Core::get().unwrap();
    assert!(count == 1);
    assert_eq!(num_events == 0, wait_list.is_null());
    // SAFETY: a live handle, and one queue.
    let (buffer, queue) = unsafe { (buffer(handle), *queues) };
    assert!(buffer.finalized);
    let status = buffer.fake.enqueue_status.load(Ordering::SeqCst);
    let before = buffer.fake.enqueued.load(Ordering::SeqCst);
    if status != CL_SUCCESS && before >= buffer.fake.fails_from.load(Ordering::SeqCst) {
        return status;
    }
    buffer.fake.enqueued.fetch_add(1, Ordering::SeqCst);
    if let Some(context) = &*buffer.fake.holds.lock().unwrap() {
        // This must not be a gate of clgraph, which would delay the releases of clgraph.
        let mut status = 0;
        // SAFETY: a live context; then a live queue and one live event.
        return unsafe {
            let gate = (core.clCreateUserEvent)(context.raw(), &raw mut status);
            buffer.fake.held.lock().unwrap().push(gate.expose_provenance());
            (core.clEnqueueBarrierWithWaitList)(queue, 1, &raw const gate, event)
        };
    }
    if num_events > 0 {
        // SAFETY: the caller's list.
        let status = unsafe { (core.clEnqueueBarrierWithWaitList)(queue, num_events, wait_list, std::ptr::null_mut()) };
        assert_eq!(status, CL_SUCCESS);
    }
    for command in &buffer.commands {
        assert_eq!(command(core, queue), CL_SUCCESS);
    }
    if event.is_null() || buffer.fake.null_event.load(Ordering::SeqCst) {
        return CL_SUCCESS;
    }
    // SAFETY: a valid address for an event.
    unsafe { (core.clEnqueueMarkerWithWaitList)(queue, 0, std::ptr::null(), event) }
}

/// Makes the checks of all commands, and records a command if they pass.
fn record(handle: cl_command_buffer_khr, command: Command) -> cl_int {
    // SAFETY: the record functions are called with live handles.
    let buffer = unsafe { buffer(handle) };
    if buffer.finalized || buffer.sulks {
        return CL_INVALID_OPERATION;
    }
    let status = buffer.fake.refuse_all.load(Ordering::SeqCst);
    if status != CL_SUCCESS {
        return status;
    }
    buffer.fake.recorded.fetch_add(1, Ordering::SeqCst);
    buffer.commands.push(command);
    CL_SUCCESS
}

/// Declares the functions that have two signatures; the newer one has properties.
macro_rules! with_signature {
    ($module:ident $($properties:ident: $type:ty)?) => {
        mod $module {
            use super::*;

            pub(in crate::cl) unsafe extern "system" fn barrier(
                handle: cl_command_buffer_khr, queue: cl_command_queue, $($properties: $type,)? num_waits: cl_uint,
                waits: *const cl_sync_point_khr, sync_point: *mut cl_sync_point_khr, place: *mut cl_mutable_command_khr,
            ) -> cl_int {
                assert!(queue.is_null() && num_waits == 0);
                $(assert!($properties.is_null());)?
                // SAFETY: a live handle.
                let how = *unsafe { buffer(handle) }.fake.barrier.lock().unwrap();
                match how {
                    Barrier::Fails(status) => return status,
                    Barrier::Silent => return CL_SUCCESS,
                    Barrier::Right if !waits.is_null() => return CL_INVALID_SYNC_POINT_WAIT_LIST_KHR,
                    Barrier::Right if !place.is_null() => return CL_INVALID_VALUE,
                    // SAFETY: a valid address for a handle.
                    Barrier::Generous if !place.is_null() => unsafe { *place = handle },
                    Barrier::Right | Barrier::Careless | Barrier::Generous => {}
                }
                if !sync_point.is_null() {
                    // SAFETY: a valid address for a sync point.
                    unsafe { *sync_point = 1 };
                }
                record(handle, Box::new(|_, _| CL_SUCCESS))
            }

            #[allow(clippy::too_many_arguments)]
            pub(in crate::cl) unsafe extern "system" fn copy(
                handle: cl_command_buffer_khr, queue: cl_command_queue, $($properties: $type,)? src: cl_mem, dst: cl_mem,
                src_offset: usize, dst_offset: usize, size: usize, num_waits: cl_uint, waits: *const cl_sync_point_khr,
                sync_point: *mut cl_sync_point_khr, place: *mut cl_mutable_command_khr,
            ) -> cl_int {
                assert!(queue.is_null() && num_waits == 0 && waits.is_null() && sync_point.is_null() && place.is_null());
                $(assert!($properties.is_null());)?
                // SAFETY: clgraph keeps the memory alive as long as the command buffer.
                record(handle, Box::new(move |core, queue| unsafe {
                    let none = std::ptr::null_mut();
                    (core.clEnqueueCopyBuffer)(queue, src, dst, src_offset, dst_offset, size, 0, std::ptr::null(), none)
                }))
            }

            #[allow(clippy::too_many_arguments)]
            pub(in crate::cl) unsafe extern "system" fn copy_rect(
                handle: cl_command_buffer_khr, queue: cl_command_queue, $($properties: $type,)? src: cl_mem, dst: cl_mem,
                src_origin: *const usize, dst_origin: *const usize, region: *const usize, src_row: usize,
                src_slice: usize, dst_row: usize, dst_slice: usize, num_waits: cl_uint, waits: *const cl_sync_point_khr,
                sync_point: *mut cl_sync_point_khr, place: *mut cl_mutable_command_khr,
            ) -> cl_int {
                assert!(queue.is_null() && num_waits == 0 && waits.is_null() && sync_point.is_null() && place.is_null());
                $(assert!($properties.is_null());)?
                // SAFETY: three sizes each.
                let sizes = |list: *const usize| unsafe { *list.cast::<[usize; 3]>() };
                let (src_origin, dst_origin, region) = (sizes(src_origin), sizes(dst_origin), sizes(region));
                // SAFETY: clgraph keeps the memory alive as long as the command buffer.
                record(handle, Box::new(move |core, queue| unsafe {
                    (core.clEnqueueCopyBufferRect)(
                        queue, src, dst, src_origin.as_ptr(), dst_origin.as_ptr(), region.as_ptr(), src_row, src_slice,
                        dst_row, dst_slice, 0, std::ptr::null(), std::ptr::null_mut(),
                    )
                }))
            }

            #[allow(clippy::too_many_arguments)]
            pub(in crate::cl) unsafe extern "system" fn fill(
                handle: cl_command_buffer_khr, queue: cl_command_queue, $($properties: $type,)? dst: cl_mem,
                pattern: *const c_void, pattern_size: usize, offset: usize, size: usize, num_waits: cl_uint,
                waits: *const cl_sync_point_khr, sync_point: *mut cl_sync_point_khr, place: *mut cl_mutable_command_khr,
            ) -> cl_int {
                assert!(queue.is_null() && num_waits == 0 && waits.is_null() && sync_point.is_null() && place.is_null());
                $(assert!($properties.is_null());)?
                // SAFETY: a live handle.
                let buffer = unsafe { buffer(handle) };
                if buffer.fake.refused_fill.load(Ordering::SeqCst) == size {
                    buffer.sulks = buffer.fake.sulks.load(Ordering::SeqCst);
                    return CL_INVALID_OPERATION;
                }
                // SAFETY: the pattern has that size.
                let pattern = unsafe { std::slice::from_raw_parts(pattern.cast::<u8>(), pattern_size) }.to_vec();
                // SAFETY: clgraph keeps the memory alive as long as the command buffer.
                record(handle, Box::new(move |core, queue| unsafe {
                    (core.clEnqueueFillBuffer)(
                        queue, dst, pattern.as_ptr().cast(), pattern_size, offset, size, 0, std::ptr::null(),
                        std::ptr::null_mut(),
                    )
                }))
            }
        }
    };
}

with_signature!(old);
with_signature!(new properties: *const cl_properties);
