//! Enqueuing: one function a command, with a wait list, and with an event only when one is asked for.
//!
//! None of them blocks. Whoever calls keeps alive and unmoved what the command uses, until it is complete: see the
//! invariants **promise** and **host memory**. That everything is in bounds was checked when the node was added.

use std::ffi::c_void;
use std::sync::Once;

use opencl_sys::{CL_INVALID_OPERATION, CL_INVALID_VALUE, CL_MIGRATE_MEM_OBJECT_HOST, cl_command_queue, cl_event};

use super::allocation::Api;
use super::event::DriverEvent;
use super::host::{HostBytes, Slot};
use super::kernel_object::KernelObject;
use super::mem::{Address, Mem};
use super::places::{self, CopyPlaces};
use super::queue::DriverQueue;
use super::{MISSING, check};
use crate::error::{DriverError, Fault, Result};
use crate::ffi::core::Core;

/// Where a command goes, what it waits for, and whether its event is wanted.
#[derive(Debug)]
pub(crate) struct To<'a> {
    pub(crate) queue: &'a DriverQueue,
    pub(crate) waits: &'a Waits,
    pub(crate) event: bool,
}

/// Events in the form that drivers take: as an array of handles.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    raw: Vec<RawEvent>,
    events: Vec<DriverEvent>,
    /// See [`Waits::may_fail`].
    unsure: bool,
    /// See [`Waits::holds`].
    holds: bool,
}

/// A `cl_event` kept alive by the list that it is in.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct RawEvent(cl_event);

// SAFETY: **threads**; the list keeps the event alive.
unsafe impl Send for RawEvent {}
// SAFETY: as above.
unsafe impl Sync for RawEvent {}

impl Waits {
    /// Nothing to wait for.
    pub(crate) const NONE: Self = Self { raw: Vec::new(), events: Vec::new(), unsure: false, holds: false };

    pub(crate) fn push(&mut self, event: DriverEvent) {
        self.unsure |= !event.is_sure();
        self.holds = true;
        self.push_open(event);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// One that is complete, for a list that must not be empty, or that will be as soon as all is enqueued.
    pub(crate) fn push_open(&mut self, event: DriverEvent) {
        self.raw.push(RawEvent(event.raw()));
        self.events.push(event);
    }

    /// Whether an event of the list may fail, and the command with it. Such a command breaks the order of its queue: who enqueues
    /// it holds [`DriverQueue::whole`].
    pub(crate) fn may_fail(&self) -> bool {
        self.unsure
    }

    /// Whether it may hold the command, and all behind it on an in-order queue, for as long as somebody likes. Who enqueues it holds
    /// [`DriverQueue::whole`] where the queue is not his own.
    pub(crate) fn holds(&self) -> bool {
        self.holds
    }

    pub(super) fn events(&self) -> &[DriverEvent] {
        &self.events
    }

    /// Count and address, by the invariant **lists**.
    fn as_c(&self) -> (u32, *const cl_event) {
        if self.raw.is_empty() { (0, std::ptr::null()) } else { (self.raw.len() as u32, self.raw.as_ptr().cast()) }
    }
}

/// Nothing to wait for, in one place.
pub(crate) static NOTHING: Waits = Waits::NONE;

/// Makes the call: the closure gets queue, wait list and the place for an event. An error means that the call failed.
#[inline(always)]
pub(super) fn enqueue(
    name: &'static str,
    to: &To<'_>,
    call: impl FnOnce(&Core, u32, *const cl_event, *mut cl_event) -> i32,
) -> Result<Option<DriverEvent>, DriverError> {
    enqueue_as::<false>(name, to, call)
}

/// The same. `SURE`: it waits for nothing, and the queue is known to be sure.
#[inline(always)]
fn enqueue_as<const SURE: bool>(
    name: &'static str,
    to: &To<'_>,
    call: impl FnOnce(&Core, u32, *const cl_event, *mut cl_event) -> i32,
) -> Result<Option<DriverEvent>, DriverError> {
    let core = Core::get().map_err(|_| DriverError::faulty(name, Fault::Missing))?;
    let (count, list) = to.waits.as_c();
    let mut event: cl_event = std::ptr::null_mut();
    if !SURE && (to.waits.holds() || !to.queue.is_sure()) {
        return unsure(name, to, |place| call(core, count, list, place));
    }
    let place = if to.event { &raw mut event } else { std::ptr::null_mut() };
    check(name, call(core, count, list, place))?;
    if to.event && event.is_null() {
        // The command is enqueued, so this is no failure of it: the caller does without, or says so.
        no_event(name);
    }
    if event.is_null() {
        return Ok(None);
    }
    // SAFETY: the call succeeded and gives the event's reference away.
    unsafe { DriverEvent::from_enqueue(name, event, true) }.map(Some)
}

/// The same for a command that may fail because of its wait list, or because of what is before it, or that may hold up the queue.
#[cold]
fn unsure(
    name: &'static str,
    to: &To<'_>,
    call: impl FnOnce(*mut cl_event) -> i32,
) -> Result<Option<DriverEvent>, DriverError> {
    let mut event: cl_event = std::ptr::null_mut();
    let may_fail = to.waits.may_fail();
    if may_fail || (to.waits.holds() && to.queue.is_end_wanted()) {
        to.queue.end_segment(may_fail)?;
    }
    let sure = !may_fail && to.queue.is_sure();
    let place = if to.event || !sure { &raw mut event } else { std::ptr::null_mut() };
    check(name, call(place))?;
    if event.is_null() {
        if !place.is_null() {
            // As above.
            no_event(name);
        }
        return Ok(None);
    }
    // SAFETY: the call succeeded and gives the event's reference away.
    let event = unsafe { DriverEvent::from_enqueue(name, event, sure) }?;
    if !sure {
        to.queue.took(&event, to.waits);
    }
    Ok(to.event.then_some(event))
}

/// Told once: a driver that owes one event owes many.
#[cold]
fn no_event(name: &'static str) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        log::warn!("{} (told once)", DriverError::faulty(name, Fault::NoEvent));
    });
}

/// A kernel over a range of `dims` dimensions, in work-items.
#[inline(always)]
pub(crate) fn kernel(
    to: &To<'_>,
    kernel: &KernelObject,
    dims: u32,
    offset: &[usize; 3],
    global: &[usize; 3],
    local: Option<&[usize; 3]>,
) -> Result<Option<DriverEvent>, DriverError> {
    kernel_as::<false>(to, kernel, dims, offset, global, local)
}

#[inline(always)]
fn kernel_as<const SURE: bool>(
    to: &To<'_>,
    kernel: &KernelObject,
    dims: u32,
    offset: &[usize; 3],
    global: &[usize; 3],
    local: Option<&[usize; 3]>,
) -> Result<Option<DriverEvent>, DriverError> {
    let local = local.map_or(std::ptr::null(), |local| local.as_ptr());
    enqueue_as::<SURE>("clEnqueueNDRangeKernel", to, |core, count, list, event| {
        // SAFETY: **live**, **promise**, **lists**; three sizes each, of which `dims`, at most 3, are read.
        unsafe {
            (core.clEnqueueNDRangeKernel)(
                to.queue.raw(),
                kernel.raw(),
                dims,
                offset.as_ptr(),
                global.as_ptr(),
                local,
                count,
                list,
                event,
            )
        }
    })
}

/// The same for one that waits for nothing, and of which nobody wants an event, on a queue that is sure: a submission's is, and
/// stays so as long as it is enqueued.
#[inline(always)]
pub(crate) fn launch(
    queue: &DriverQueue,
    object: &KernelObject,
    dims: u32,
    offset: &[usize; 3],
    global: &[usize; 3],
    local: Option<&[usize; 3]>,
) -> Result<(), DriverError> {
    kernel_as::<true>(&To { queue, waits: &NOTHING, event: false }, object, dims, offset, global, local).map(|_| ())
}

/// `size` bytes from memory to memory: both are buffers, or neither is.
pub(crate) fn copy(
    to: &To<'_>,
    src: (&Mem, usize),
    dst: (&Mem, usize),
    size: usize,
) -> Result<Option<DriverEvent>, DriverError> {
    let call = "clEnqueueCopyBuffer";
    match places::of_copy(src, dst) {
        CopyPlaces::Buffers((src, src_offset), (dst, dst_offset)) => {
            enqueue(call, to, |core, count, list, event| {
                let queue = to.queue.raw();
                // SAFETY: **live**, **lists**.
                unsafe { (core.clEnqueueCopyBuffer)(queue, src, dst, src_offset, dst_offset, size, count, list, event) }
            })
        }
        // SAFETY: both sides are memory of the commands, which outlives them.
        CopyPlaces::Pointers(src, dst, api) => unsafe { memcpy(to, api, false, dst, src, size) },
        CopyPlaces::Mixed => Err(DriverError::faulty(call, Fault::Defect)),
    }
}

/// `size` bytes from address to address.
///
/// # Safety
/// Both stay valid and are not touched elsewhere until the command is complete, or the call returns where it blocks.
unsafe fn memcpy(
    to: &To<'_>,
    api: Api,
    blocking: bool,
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
) -> Result<Option<DriverEvent>, DriverError> {
    let blocking = u32::from(blocking);
    match api {
        Api::Svm => enqueue("clEnqueueSVMMemcpy", to, |core, count, list, event| {
            let Some(memcpy) = core.clEnqueueSVMMemcpy else { return MISSING };
            // SAFETY: **live**, **lists**, the caller's promise.
            unsafe { memcpy(to.queue.raw(), blocking, dst, src, size, count, list, event) }
        }),
        Api::Usm(fns) => enqueue("clEnqueueMemcpyINTEL", to, |_, count, list, event| {
            // SAFETY: as above.
            unsafe { (fns.memcpy)(to.queue.raw(), blocking, dst, src, size, count, list, event) }
        }),
    }
}

/// Asks for memory to be moved to the device, or to the host. A hint, which a driver may not take: then nothing is enqueued.
pub(crate) fn migrate(
    to: &To<'_>,
    mem: (&Mem, usize),
    size: usize,
    to_host: bool,
) -> Result<Option<Taken>, DriverError> {
    let flags = if to_host { CL_MIGRATE_MEM_OBJECT_HOST } else { 0 };
    let queue = to.queue.raw();
    hint(match mem.0.address(mem.1) {
        Address::Buffer(raw, _) => enqueue("clEnqueueMigrateMemObjects", to, |core, count, list, event| {
            // SAFETY: **live**, **lists**; one object.
            unsafe { (core.clEnqueueMigrateMemObjects)(queue, 1, &raw const raw, flags, count, list, event) }
        }),
        Address::Pointer(pointer, allocation) => match allocation.api() {
            Api::Svm => enqueue("clEnqueueSVMMigrateMem", to, |core, count, list, event| {
                let Some(migrate) = core.clEnqueueSVMMigrateMem else { return MISSING };
                let pointer = pointer.cast_const();
                // SAFETY: **live**, **lists**; one address and one size, of memory that outlives the command.
                unsafe { migrate(queue, 1, &raw const pointer, &raw const size, flags, count, list, event) }
            }),
            Api::Usm(fns) => enqueue("clEnqueueMigrateMemINTEL", to, |_, count, list, event| {
                let Some(migrate) = fns.migrate else { return MISSING };
                // SAFETY: **live**, **lists**; memory that outlives the command.
                unsafe { migrate(queue, pointer, size, flags, count, list, event) }
            }),
        },
    })
}

/// Tells the driver how memory is going to be used, by a number of its own. A hint, of which only USM has a command.
pub(crate) fn advise(to: &To<'_>, mem: (&Mem, usize), size: usize, advice: u32) -> Result<Option<Taken>, DriverError> {
    let Address::Pointer(pointer, allocation) = mem.0.address(mem.1) else { return Ok(None) };
    let Api::Usm(fns) = allocation.api() else { return Ok(None) };
    hint(enqueue("clEnqueueMemAdviseINTEL", to, |_, count, list, event| {
        let Some(advise) = fns.advise else { return MISSING };
        // SAFETY: **live**, **lists**; memory that outlives the command.
        unsafe { advise(to.queue.raw(), pointer, size, advice, count, list, event) }
    }))
}

/// A hint that the driver has taken, and its event.
pub(crate) struct Taken(pub(crate) Option<DriverEvent>);

/// What became of a hint: a driver that does not take it has not failed.
fn hint(outcome: Result<Option<DriverEvent>, DriverError>) -> Result<Option<Taken>, DriverError> {
    match outcome {
        Err(error) if matches!(error.status.0, CL_INVALID_VALUE | CL_INVALID_OPERATION) => {
            log::debug!("{error}: a prefetch or advice is left out");
            Ok(None)
        }
        outcome => Ok(Some(Taken(outcome?))),
    }
}

/// A command on an in-order queue that does nothing. Its events count.
pub(crate) fn nothing(to: &To<'_>) -> Result<Option<DriverEvent>, DriverError> {
    if to.waits.is_empty() && !to.event {
        return Ok(None);
    }
    // Of a marker it is not said that what comes later waits for its wait list.
    if to.waits.is_empty() { marker(to.queue, to.waits) } else { barrier(to.queue, to.waits) }.map(Some)
}

/// A rectangle of `region` (bytes, rows, slices) from buffer to buffer. `pitches` are, in bytes, the source's row and
/// slice and the destination's row and slice.
pub(crate) fn copy_rect(
    to: &To<'_>,
    src: (&Mem, &[usize; 3]),
    dst: (&Mem, &[usize; 3]),
    region: &[usize; 3],
    pitches: &[usize; 4],
) -> Result<Option<DriverEvent>, DriverError> {
    let ((src, src_origin), (dst, dst_origin)) = places::of_copy_rect(src, dst, region, pitches);
    enqueue("clEnqueueCopyBufferRect", to, |core, count, list, event| {
        // SAFETY: **live**, **lists**; three sizes each.
        unsafe {
            (core.clEnqueueCopyBufferRect)(
                to.queue.raw(),
                src,
                dst,
                src_origin.as_ptr(),
                dst_origin.as_ptr(),
                region.as_ptr(),
                pitches[0],
                pitches[1],
                pitches[2],
                pitches[3],
                count,
                list,
                event,
            )
        }
    })
}

/// A pattern over `size` bytes.
pub(crate) fn fill(
    to: &To<'_>,
    dst: (&Mem, usize),
    pattern: &[u8],
    size: usize,
) -> Result<Option<DriverEvent>, DriverError> {
    let (queue, start, len) = (to.queue.raw(), pattern.as_ptr().cast(), pattern.len());
    // "The memory associated with pattern can be reused or freed after the function returns" (OpenCL 3.0,
    // clEnqueueFillBuffer), and so for the others.
    match dst.0.address(dst.1) {
        Address::Buffer(raw, offset) => enqueue("clEnqueueFillBuffer", to, |core, count, list, event| {
            // SAFETY: **live**, **lists**.
            unsafe { (core.clEnqueueFillBuffer)(queue, raw, start, len, offset, size, count, list, event) }
        }),
        Address::Pointer(pointer, allocation) => match allocation.api() {
            Api::Svm => enqueue("clEnqueueSVMMemFill", to, |core, count, list, event| {
                let Some(fill) = core.clEnqueueSVMMemFill else { return MISSING };
                // SAFETY: **live**, **lists**; memory that outlives the command.
                unsafe { fill(queue, pointer, start, len, size, count, list, event) }
            }),
            Api::Usm(fns) => enqueue("clEnqueueMemFillINTEL", to, |_, count, list, event| {
                // SAFETY: as above.
                unsafe { (fns.fill)(queue, pointer, start, len, size, count, list, event) }
            }),
        },
    }
}

/// Host data to memory.
pub(crate) fn write(to: &To<'_>, dst: (&Mem, usize), data: &HostBytes) -> Result<Option<DriverEvent>, DriverError> {
    // SAFETY: **host memory**.
    unsafe { write_from(to, false, dst, data.as_ptr().cast(), data.len()) }
}

/// Borrowed host data to memory. Blocks until it is there.
pub(crate) fn write_blocking(to: &To<'_>, dst: (&Mem, usize), data: &[u8]) -> Result<Option<DriverEvent>, DriverError> {
    // SAFETY: the data is borrowed until the call returns, and then "can be reused" (OpenCL 3.0, clEnqueueWriteBuffer).
    unsafe { write_from(to, true, dst, data.as_ptr().cast(), data.len()) }
}

/// # Safety
/// The host memory stays valid and as it is until the command is complete, or the call returns where it blocks.
unsafe fn write_from(
    to: &To<'_>,
    blocking: bool,
    dst: (&Mem, usize),
    data: *const c_void,
    size: usize,
) -> Result<Option<DriverEvent>, DriverError> {
    let (queue, blocks) = (to.queue.raw(), u32::from(blocking));
    match dst.0.address(dst.1) {
        Address::Buffer(raw, offset) => enqueue("clEnqueueWriteBuffer", to, |core, count, list, event| {
            // SAFETY: **live**, **lists**, the caller's promise.
            unsafe { (core.clEnqueueWriteBuffer)(queue, raw, blocks, offset, size, data, count, list, event) }
        }),
        // SAFETY: the caller's promise, and memory that outlives the command.
        Address::Pointer(pointer, allocation) => unsafe { memcpy(to, allocation.api(), blocking, pointer, data, size) },
    }
}

/// Memory to borrowed host memory. Blocks until it is there.
pub(crate) fn read_blocking(
    to: &To<'_>,
    src: (&Mem, usize),
    data: &mut [u8],
) -> Result<Option<DriverEvent>, DriverError> {
    // SAFETY: the memory is borrowed exclusively until the call returns, which is when it "has been read" (OpenCL 3.0,
    // clEnqueueReadBuffer).
    unsafe { read_into(to, true, src, data.as_mut_ptr().cast(), data.len()) }
}

/// Memory to host memory, as many bytes as the slot has.
pub(crate) fn read(to: &To<'_>, src: (&Mem, usize), slot: &Slot) -> Result<Option<DriverEvent>, DriverError> {
    // SAFETY: **host memory**.
    unsafe { read_into(to, false, src, slot.as_mut_ptr().cast(), slot.len()) }
}

/// # Safety
/// The host memory stays valid and is not touched elsewhere until the command is complete, or the call returns where it
/// blocks.
unsafe fn read_into(
    to: &To<'_>,
    blocking: bool,
    src: (&Mem, usize),
    data: *mut c_void,
    size: usize,
) -> Result<Option<DriverEvent>, DriverError> {
    let (queue, blocks) = (to.queue.raw(), u32::from(blocking));
    match src.0.address(src.1) {
        Address::Buffer(raw, offset) => enqueue("clEnqueueReadBuffer", to, |core, count, list, event| {
            // SAFETY: **live**, **lists**, the caller's promise.
            unsafe { (core.clEnqueueReadBuffer)(queue, raw, blocks, offset, size, data, count, list, event) }
        }),
        // SAFETY: the caller's promise, and memory that outlives the command.
        Address::Pointer(pointer, allocation) => unsafe { memcpy(to, allocation.api(), blocking, data, pointer, size) },
    }
}

/// An event that is complete when the wait list is, or without one when everything before it is.
pub(crate) fn marker(queue: &DriverQueue, waits: &Waits) -> Result<DriverEvent, DriverError> {
    synchronize("clEnqueueMarkerWithWaitList", queue, waits, |core| core.clEnqueueMarkerWithWaitList)
}

/// An event that is complete when the queue's order and the wait list allow a command to start: the place of a command that
/// does nothing.
///
/// On an out-of-order queue it is that of a real command, a fill of four bytes: a marker with a wait list ignores barriers
/// before it on Intel's CPU runtime (2026.2), a barrier with one does on PoCL 3.1, and either without one waits for
/// everything.
pub(crate) fn entry(queue: &DriverQueue, waits: &Waits) -> Result<DriverEvent> {
    if !queue.properties().out_of_order {
        return Ok(marker(queue, waits)?);
    }
    let event = fill(&To { queue, waits, event: true }, (&queue.door()?, 0), &[0; 4], 4)?;
    Ok(event.ok_or(DriverError::faulty("clEnqueueFillBuffer", Fault::NoEvent))?)
}

/// An event behind everything on a queue, for who would lose memory without one: a refusal may be a moment without
/// resources, so it is asked for twice.
pub(crate) fn last_marker(queue: &DriverQueue) -> Result<DriverEvent, DriverError> {
    marker(queue, &Waits::NONE).or_else(|_| marker(queue, &Waits::NONE))
}

/// A marker for which all later commands of the queue wait.
pub(crate) fn barrier(queue: &DriverQueue, waits: &Waits) -> Result<DriverEvent, DriverError> {
    synchronize("clEnqueueBarrierWithWaitList", queue, waits, |core| core.clEnqueueBarrierWithWaitList)
}

type Synchronize = unsafe extern "system" fn(cl_command_queue, u32, *const cl_event, *mut cl_event) -> i32;

fn synchronize(
    name: &'static str,
    queue: &DriverQueue,
    waits: &Waits,
    function: impl FnOnce(&Core) -> Synchronize,
) -> Result<DriverEvent, DriverError> {
    let event = enqueue(name, &To { queue, waits, event: true }, |core, count, list, event| {
        // SAFETY: **live**, **lists**.
        unsafe { function(core)(queue.raw(), count, list, event) }
    })?;
    event.ok_or(DriverError::faulty(name, Fault::NoEvent))
}
