//! Enqueues commands: one function for each command. Each takes a wait list, and returns an event only on request.
//!
//! Most functions do not block. The caller keeps everything that the command uses alive and in its place until the
//! command is complete: see the invariants **promise** and **host memory**. Bounds were checked when the node was
//! added.

use std::ffi::c_void;
use std::sync::Once;

use opencl_sys::{CL_INVALID_OPERATION, CL_INVALID_VALUE, CL_MIGRATE_MEM_OBJECT_HOST, cl_command_queue, cl_event};

use crate::cl::commands::copy_sides::{self, CopyPlaces};
use crate::cl::completion::gates::Gates;
use crate::cl::completion::user_code::log_later;
use crate::cl::memory::allocation::Api;
use crate::cl::memory::host::{HostBytes, Slot};
use crate::cl::memory::untyped::{Address, Mem};
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::kernel_object::KernelObject;
use crate::cl::objects::queue::DriverQueue;
use crate::cl::{MISSING, check};
use crate::command::{CopyRect, Location};
use crate::error::{DriverError, DriverFault};
use crate::ffi::core::Core;

/// The queue of a command, its wait list, and whether the caller wants its event.
#[derive(Debug)]
pub(crate) struct To<'a> {
    pub(crate) queue: &'a DriverQueue,
    pub(crate) waits: &'a Waits,
    pub(crate) event: bool,
}

/// A wait list, as the array of handles that drivers take. No event of it may fail once it is given to a driver
/// ([`DriverEvent::is_sure`]), so no command ever breaks the order of its queue.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    raw: Vec<RawEvent>,
    events: Vec<DriverEvent>,
    /// See [`Waits::holds`].
    holds: bool,
}

/// A `cl_event` that the list in which it is keeps alive.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct RawEvent(cl_event);

// SAFETY: **threads**; the list keeps the event alive.
unsafe impl Send for RawEvent {}
// SAFETY: as above.
unsafe impl Sync for RawEvent {}

impl Waits {
    /// An empty wait list.
    pub(crate) const NONE: Self = Self { raw: Vec::new(), events: Vec::new(), holds: false };

    pub(crate) fn push(&mut self, event: DriverEvent) {
        debug_assert!(event.is_sure(), "an event that may fail is in the wait list of a driver");
        self.holds = true;
        self.push_open(event);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// Adds an event that is complete, or that completes as soon as everything is enqueued. It neither fails nor holds
    /// up a queue.
    pub(crate) fn push_open(&mut self, event: DriverEvent) {
        self.raw.push(RawEvent(event.raw()));
        self.events.push(event);
    }

    /// Returns whether the list may delay the command for any time, and on an in-order queue all later commands with
    /// it. The caller of such a command holds [`DriverQueue::lock_order`], unless nobody else has the queue.
    pub(crate) fn holds(&self) -> bool {
        self.holds
    }

    /// Returns the events of the list.
    pub(crate) fn into_events(self) -> Vec<DriverEvent> {
        self.events
    }

    /// Returns count and address, by the invariant **lists**.
    fn as_c(&self) -> (u32, *const cl_event) {
        if self.raw.is_empty() { (0, std::ptr::null()) } else { (self.raw.len() as u32, self.raw.as_ptr().cast()) }
    }
}

/// An empty wait list with a static address.
pub(crate) static NOTHING: Waits = Waits::NONE;

/// Makes the call. The closure gets the wait list and the address for an event. An error means that the call failed. No
/// event of the wait list may fail: see [`Waits`].
#[inline(always)]
pub(in crate::cl) fn enqueue(
    name: &'static str,
    to: &To<'_>,
    call: impl FnOnce(&Core, u32, *const cl_event, *mut cl_event) -> i32,
) -> Result<Option<DriverEvent>, DriverError> {
    let core = Core::get().map_err(|_| DriverError::faulty(name, DriverFault::Missing))?;
    let (count, list) = to.waits.as_c();
    let mut event: cl_event = std::ptr::null_mut();
    if to.waits.holds() && to.queue.is_end_wanted() {
        to.queue.end_epoch()?;
    }
    let place = if to.event { &raw mut event } else { std::ptr::null_mut() };
    // Later commands know the gates of this one as soon as the driver has it: see `QueueGates`.
    if count > 0 {
        add_gates(name, to);
    }
    let barrier = (name == BARRIER && count == 0).then(|| to.queue.begin_barrier());
    check(name, call(core, count, list, place))?;
    let gates = if count > 0 || to.queue.may_have_gates() { gates_of(name, to) } else { Gates::default() };
    drop(barrier);
    if to.event && event.is_null() {
        // The command is enqueued, so this is not its failure. The caller works without the event, or returns an error
        // itself.
        no_event(name);
    }
    if event.is_null() {
        return Ok(None);
    }
    // SAFETY: the call succeeded and gives the reference of the event away.
    Ok(Some(unsafe { DriverEvent::from_enqueue(name, event) }?.after(gates)))
}

/// Returns the gates of a wait list.
fn gates_of_list(waits: &Waits) -> Gates {
    let mut gates = Gates::default();
    waits.events.iter().for_each(|event| gates.extend(&event.gates()));
    gates
}

/// Adds the gates of the wait list of a command to its queue.
#[cold]
fn add_gates(name: &'static str, to: &To<'_>) {
    let gates = gates_of_list(to.waits);
    match name {
        _ if gates.is_empty() => {}
        BARRIER => to.queue.add_barrier_gates(&gates),
        _ => to.queue.add_gates(&gates),
    }
}

/// Returns the gates that a command comes after which the driver has.
#[cold]
fn gates_of(name: &'static str, to: &To<'_>) -> Gates {
    if name == BARRIER && to.waits.is_empty() {
        return to.queue.gates_after_all();
    }
    let mut gates = gates_of_list(to.waits);
    // On an out-of-order queue, only a marker or a barrier without a list comes after everything.
    if to.queue.is_ordered() || (name == MARKER && to.waits.is_empty()) {
        gates.extend(&to.queue.gates());
    } else {
        gates.extend(&to.queue.barrier_gates());
    }
    gates
}

const MARKER: &str = "clEnqueueMarkerWithWaitList";
const BARRIER: &str = "clEnqueueBarrierWithWaitList";

/// Logs once that a driver returned no event, because such a driver usually does it every time.
#[cold]
fn no_event(name: &'static str) {
    static LOGGED: Once = Once::new();
    LOGGED.call_once(|| {
        log_later!(Warn, "{} (logged once)", DriverError::faulty(name, DriverFault::NoEvent));
    });
}

/// Enqueues a kernel over a range of `dims` dimensions, in work-items.
#[inline(always)]
pub(crate) fn kernel(
    to: &To<'_>,
    kernel: &KernelObject,
    dims: u32,
    offset: &[usize; 3],
    global: &[usize; 3],
    local: Option<&[usize; 3]>,
) -> Result<Option<DriverEvent>, DriverError> {
    let local = local.map_or(std::ptr::null(), |local| local.as_ptr());
    enqueue("clEnqueueNDRangeKernel", to, |core, count, list, event| {
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

/// Enqueues kernels without wait lists and without events. What [`kernel`] does beside the call is for those, and took a tenth of a
/// submission.
pub(crate) struct Plain<'a> {
    core: &'static Core,
    queue: &'a DriverQueue,
}

impl<'a> Plain<'a> {
    pub(crate) fn on(queue: &'a DriverQueue) -> Result<Self, DriverError> {
        let missing = |_| DriverError::faulty("clEnqueueNDRangeKernel", DriverFault::Missing);
        Ok(Self { core: Core::get().map_err(missing)?, queue })
    }

    #[inline(always)]
    pub(crate) fn launch(
        &self,
        object: &KernelObject,
        dims: u32,
        offset: &[usize; 3],
        global: &[usize; 3],
        local: Option<&[usize; 3]>,
    ) -> Result<(), DriverError> {
        let (queue, kernel) = (self.queue.raw(), object.raw());
        let local = local.map_or(std::ptr::null(), |local| local.as_ptr());
        let (offset, global, list, event) = (offset.as_ptr(), global.as_ptr(), std::ptr::null(), std::ptr::null_mut());
        let launch = self.core.clEnqueueNDRangeKernel;
        // SAFETY: **live**, **promise**, **lists**; three sizes each, of which `dims`, at most 3, are read.
        check("clEnqueueNDRangeKernel", unsafe { launch(queue, kernel, dims, offset, global, local, 0, list, event) })
    }
}

/// Copies `size` bytes. Source and destination are both buffers, or both addresses.
pub(crate) fn copy(
    to: &To<'_>,
    src: &Location<&Mem>,
    dst: &Location<&Mem>,
    size: usize,
) -> Result<Option<DriverEvent>, DriverError> {
    let call = "clEnqueueCopyBuffer";
    match copy_sides::of_copy(src, dst) {
        CopyPlaces::Buffers((src, src_offset), (dst, dst_offset)) => {
            enqueue(call, to, |core, count, list, event| {
                let queue = to.queue.raw();
                // SAFETY: **live**, **lists**.
                unsafe { (core.clEnqueueCopyBuffer)(queue, src, dst, src_offset, dst_offset, size, count, list, event) }
            })
        }
        // SAFETY: both are memory that outlives the commands.
        CopyPlaces::Pointers(src, dst, api) => unsafe { memcpy(to, api, false, dst, src, size) },
        CopyPlaces::Mixed => Err(DriverError::faulty(call, DriverFault::Defect)),
    }
}

/// Copies `size` bytes from address to address.
///
/// # Safety
/// Both memories stay valid, and nothing else uses them, until the command is complete; if the call blocks, until it
/// returns.
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

/// Asks the driver to move memory to the device or to the host. This is a hint. If the driver rejects it, nothing is
/// enqueued and the result is `None`.
pub(crate) fn migrate(
    to: &To<'_>,
    of: &Location<&Mem>,
    size: usize,
    to_host: bool,
) -> Result<Option<AcceptedHint>, DriverError> {
    let flags = if to_host { CL_MIGRATE_MEM_OBJECT_HOST } else { 0 };
    let queue = to.queue.raw();
    hint(match of.mem.address(of.offset) {
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

/// Tells the driver how memory will be used, with a number that the driver defines. This is a hint, and only USM has a
/// command for it.
pub(crate) fn advise(
    to: &To<'_>,
    of: &Location<&Mem>,
    size: usize,
    advice: u32,
) -> Result<Option<AcceptedHint>, DriverError> {
    let Address::Pointer(pointer, allocation) = of.mem.address(of.offset) else { return Ok(None) };
    let Api::Usm(fns) = allocation.api() else { return Ok(None) };
    hint(enqueue("clEnqueueMemAdviseINTEL", to, |_, count, list, event| {
        let Some(advise) = fns.advise else { return MISSING };
        // SAFETY: **live**, **lists**; memory that outlives the command.
        unsafe { advise(to.queue.raw(), pointer, size, advice, count, list, event) }
    }))
}

/// A hint that the driver accepted, and its event.
pub(crate) struct AcceptedHint(pub(crate) Option<DriverEvent>);

/// Converts the outcome of a hint: a rejected hint is no error.
fn hint(outcome: Result<Option<DriverEvent>, DriverError>) -> Result<Option<AcceptedHint>, DriverError> {
    match outcome {
        Err(error) if matches!(error.status.0, CL_INVALID_VALUE | CL_INVALID_OPERATION) => {
            log_later!(Debug, "{error}: clgraph skips a prefetch or advice");
            Ok(None)
        }
        outcome => Ok(Some(AcceptedHint(outcome?))),
    }
}

/// Enqueues a command that does nothing: only its place in the queue's order, its wait list and its event matter. Drivers
/// disagree about commands of size zero.
pub(crate) fn nothing(to: &To<'_>) -> Result<Option<DriverEvent>, DriverError> {
    if to.waits.is_empty() && !to.event {
        return Ok(None);
    }
    if to.queue.properties().out_of_order {
        return entry(to.queue, to.waits).map(Some);
    }
    // A marker does not make later commands wait for its wait list, but a barrier does.
    if to.waits.is_empty() { marker(to.queue, to.waits) } else { barrier(to.queue, to.waits) }.map(Some)
}

/// Copies a rectangle from buffer to buffer.
pub(crate) fn copy_rect(to: &To<'_>, rect: &CopyRect<&Mem>) -> Result<Option<DriverEvent>, DriverError> {
    let ((src, src_origin), (dst, dst_origin)) = copy_sides::of_copy_rect(rect);
    let CopyRect { region, pitches, .. } = rect;
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

/// Fills `size` bytes with a pattern.
pub(crate) fn fill(
    to: &To<'_>,
    dst: &Location<&Mem>,
    pattern: &[u8],
    size: usize,
) -> Result<Option<DriverEvent>, DriverError> {
    let (queue, start, len) = (to.queue.raw(), pattern.as_ptr().cast(), pattern.len());
    // "The memory associated with pattern can be reused or freed after the function returns" (OpenCL 3.0,
    // clEnqueueFillBuffer). The same holds for the other fill functions.
    match dst.mem.address(dst.offset) {
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

/// Writes host data to memory.
pub(crate) fn write(to: &To<'_>, dst: &Location<&Mem>, data: &HostBytes) -> Result<Option<DriverEvent>, DriverError> {
    // SAFETY: **host memory**.
    unsafe { write_from(to, false, dst, data.as_ptr().cast(), data.len()) }
}

/// Writes borrowed host data to memory. It blocks until the data is written.
pub(crate) fn write_blocking(
    to: &To<'_>,
    dst: &Location<&Mem>,
    data: &[u8],
) -> Result<Option<DriverEvent>, DriverError> {
    // SAFETY: the data is borrowed until the call returns, and then "can be reused" (OpenCL 3.0, clEnqueueWriteBuffer).
    unsafe { write_from(to, true, dst, data.as_ptr().cast(), data.len()) }
}

/// # Safety
/// The host memory stays valid and unchanged until the command is complete; if the call blocks, until it returns.
unsafe fn write_from(
    to: &To<'_>,
    blocking: bool,
    dst: &Location<&Mem>,
    data: *const c_void,
    size: usize,
) -> Result<Option<DriverEvent>, DriverError> {
    let (queue, blocks) = (to.queue.raw(), u32::from(blocking));
    match dst.mem.address(dst.offset) {
        Address::Buffer(raw, offset) => enqueue("clEnqueueWriteBuffer", to, |core, count, list, event| {
            // SAFETY: **live**, **lists**, the caller's promise.
            unsafe { (core.clEnqueueWriteBuffer)(queue, raw, blocks, offset, size, data, count, list, event) }
        }),
        // SAFETY: the caller's promise, and the memory outlives the command.
        Address::Pointer(pointer, allocation) => unsafe { memcpy(to, allocation.api(), blocking, pointer, data, size) },
    }
}

/// Reads memory into borrowed host memory. It blocks until the data is read.
pub(crate) fn read_blocking(
    to: &To<'_>,
    src: &Location<&Mem>,
    data: &mut [u8],
) -> Result<Option<DriverEvent>, DriverError> {
    // SAFETY: the memory is borrowed exclusively until the call returns, and the buffer "has been read" by then (OpenCL
    // 3.0, clEnqueueReadBuffer).
    unsafe { read_into(to, true, src, data.as_mut_ptr().cast(), data.len()) }
}

/// Reads as many bytes of memory as the slot has into the slot.
pub(crate) fn read(to: &To<'_>, src: &Location<&Mem>, slot: &Slot) -> Result<Option<DriverEvent>, DriverError> {
    // SAFETY: **host memory**.
    unsafe { read_into(to, false, src, slot.as_mut_ptr().cast(), slot.len()) }
}

/// # Safety
/// The host memory stays valid, and nothing else uses it, until the command is complete; if the call blocks, until it
/// returns.
unsafe fn read_into(
    to: &To<'_>,
    blocking: bool,
    src: &Location<&Mem>,
    data: *mut c_void,
    size: usize,
) -> Result<Option<DriverEvent>, DriverError> {
    let (queue, blocks) = (to.queue.raw(), u32::from(blocking));
    match src.mem.address(src.offset) {
        Address::Buffer(raw, offset) => enqueue("clEnqueueReadBuffer", to, |core, count, list, event| {
            // SAFETY: **live**, **lists**, the caller's promise.
            unsafe { (core.clEnqueueReadBuffer)(queue, raw, blocks, offset, size, data, count, list, event) }
        }),
        // SAFETY: the caller's promise, and the memory outlives the command.
        Address::Pointer(pointer, allocation) => unsafe { memcpy(to, allocation.api(), blocking, data, pointer, size) },
    }
}

/// Enqueues a marker and returns its event. It is complete when the wait list is; if the list is empty, when all
/// earlier commands are.
pub(crate) fn marker(queue: &DriverQueue, waits: &Waits) -> Result<DriverEvent, DriverError> {
    synchronize(MARKER, queue, waits, |core| core.clEnqueueMarkerWithWaitList)
}

/// Returns an event that is complete when the order of the queue and the wait list allow a command to start.
///
/// On an out-of-order queue it is the event of a real command, a fill of four bytes, because other commands do not
/// work: on Intel's CPU runtime (2026.2) a marker with a wait list ignores earlier barriers, and on PoCL 3.1 a barrier
/// with a wait list does. On PoCL (3.1 to 7.1) a marker with a wait list waits for all earlier commands too, as a marker
/// or barrier without a wait list does.
pub(crate) fn entry(queue: &DriverQueue, waits: &Waits) -> Result<DriverEvent, DriverError> {
    if !queue.properties().out_of_order {
        return marker(queue, waits);
    }
    let dst = Location { mem: &queue.dummy_buffer()?, offset: 0 };
    let event = fill(&To { queue, waits, event: true }, &dst, &[0; 4], 4)?;
    event.ok_or(DriverError::faulty("clEnqueueFillBuffer", DriverFault::NoEvent))
}

/// Enqueues a marker after all commands, for a caller that would leak memory without its event. It tries twice, because
/// the driver may lack resources only for a moment.
pub(crate) fn last_marker(queue: &DriverQueue) -> Result<DriverEvent, DriverError> {
    marker(queue, &Waits::NONE).or_else(|_| marker(queue, &Waits::NONE))
}

/// Enqueues a barrier, for which all later commands of the queue wait.
pub(crate) fn barrier(queue: &DriverQueue, waits: &Waits) -> Result<DriverEvent, DriverError> {
    synchronize(BARRIER, queue, waits, |core| core.clEnqueueBarrierWithWaitList)
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
    event.ok_or(DriverError::faulty(name, DriverFault::NoEvent))
}
