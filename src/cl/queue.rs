//! Command queues.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use opencl_sys::{
    CL_QUEUE_CONTEXT, CL_QUEUE_DEVICE, CL_QUEUE_ON_DEVICE, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
    CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_PROPERTIES, cl_command_queue,
};

use super::buffer::{AsRegion, Buffer};
use super::check;
use super::context::{Context, InContext};
use super::device::Device;
use super::enqueue;
use super::event::{DriverEvent, Progress};
use super::handle::{Handle, QueueKind};
use super::info::{self, ask};
use super::mem::Mem;
use super::order::QueueOrder;
use super::watch;
use crate::error::{DriverError, Fault, Result, SetupError};
use crate::ffi::core::Core;

/// How a queue is to behave. The default is in order, without profiling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct QueueProperties {
    /// Commands may run out of order (`CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE`).
    pub out_of_order: bool,
    /// Events tell times (`CL_QUEUE_PROFILING_ENABLE`).
    pub profiling: bool,
}

impl QueueProperties {
    /// The usual ones: in order, without profiling.
    pub const fn new() -> Self {
        Self { out_of_order: false, profiling: false }
    }

    /// Commands may run out of order, or not.
    pub const fn out_of_order(mut self, yes: bool) -> Self {
        self.out_of_order = yes;
        self
    }

    /// Events tell times, or not.
    pub const fn profiling(mut self, yes: bool) -> Self {
        self.profiling = yes;
        self
    }

    fn bits(self) -> u64 {
        let order = if self.out_of_order { CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE } else { 0 };
        let profiling = if self.profiling { CL_QUEUE_PROFILING_ENABLE } else { 0 };
        order | profiling
    }
}

/// A command queue. Cheap to clone; equal when it is the same queue.
#[derive(Clone)]
pub(crate) struct DriverQueue(Arc<Inner>);

struct Inner {
    handle: Arc<Last>,
    context: Context,
    device: Device,
    properties: QueueProperties,
    /// What [`enqueue::entry`] fills.
    door: OnceLock<Mem>,
    /// Held while a submission is enqueued.
    whole: Mutex<()>,
    order: QueueOrder,
}

/// The wrappers that live, by C handle: all of one queue share what is known of its order.
static WRAPPED: LazyLock<Mutex<HashMap<usize, Weak<Inner>>>> = LazyLock::new(Mutex::default);

/// A queue that ends well.
///
/// On Intel's CPU runtime an out-of-order queue that is released while its last command runs, or while the worker that ran
/// it has not put it away, is ended by that worker, within a task that the end waits for: for ever. An event tells too
/// early; `clFinish` on a queue without commands does not (`docs/drivers.md`).
pub(super) struct Last {
    handle: Handle<QueueKind>,
    out_of_order: bool,
}

impl Drop for Last {
    fn drop(&mut self) {
        if !self.out_of_order {
            return;
        }
        let Ok(core) = Core::get() else { return };
        // Twice, because a refusal may be a moment without memory.
        // SAFETY: **live**.
        let finish = || check("clFinish", unsafe { (core.clFinish)(self.handle.raw()) });
        if let Err(error) = finish().or_else(|_| finish()) {
            log::error!("{error}: an out-of-order queue is released while it may run");
        }
    }
}

/// Ends a queue on a thread of its own: somebody else may have put something there that does not end.
struct Ending(Option<Arc<Last>>);

impl Drop for Ending {
    fn drop(&mut self) {
        let last = self.0.take();
        let thread = std::thread::Builder::new().name("clgraph-queue".to_owned());
        if let Err(error) = thread.spawn(move || drop(last)) {
            log::warn!("{error}: no thread to end an out-of-order queue, so its drop waits");
        }
    }
}

impl Drop for Inner {
    /// An out-of-order queue is kept until its commands are through: nobody waits for them here.
    fn drop(&mut self) {
        if !self.properties.out_of_order {
            return;
        }
        let ending = Ending(Some(Arc::clone(&self.handle)));
        match self.flushed_mark().or_else(|_| self.flushed_mark()) {
            Ok(event) => watch::keep_until(event, ending),
            Err(error) => log::warn!("{error}: an out-of-order queue is ended by `clFinish` alone, which may block"),
        }
    }
}

impl Inner {
    fn new(handle: Handle<QueueKind>, context: Context, device: Device, properties: QueueProperties) -> Self {
        let last = Last { handle, out_of_order: properties.out_of_order };
        Self::around(Arc::new(last), context, device, properties)
    }

    fn around(handle: Arc<Last>, context: Context, device: Device, properties: QueueProperties) -> Self {
        let (door, whole, order) = (OnceLock::new(), Mutex::new(()), QueueOrder::default());
        Self { handle, context, device, properties, door, whole, order }
    }

    fn raw(&self) -> cl_command_queue {
        self.handle.handle.raw()
    }

    /// An event behind everything on the queue.
    fn mark(&self, sure: bool) -> Result<DriverEvent, DriverError> {
        let call = "clEnqueueMarkerWithWaitList";
        let core = Core::get().map_err(|_| DriverError::faulty(call, Fault::Missing))?;
        let mut event = std::ptr::null_mut();
        // SAFETY: **live**, **lists**.
        let status = unsafe { (core.clEnqueueMarkerWithWaitList)(self.raw(), 0, std::ptr::null(), &raw mut event) };
        check(call, status)?;
        // SAFETY: the call succeeded and gives its reference away.
        unsafe { DriverEvent::from_enqueue(call, event, sure) }
    }

    /// An event behind everything on the queue, which is flushed.
    fn flushed_mark(&self) -> Result<DriverEvent, DriverError> {
        let event = self.mark(false)?;
        let core = Core::get().map_err(|_| DriverError::faulty("clFlush", Fault::Missing))?;
        // SAFETY: **live**.
        check("clFlush", unsafe { (core.clFlush)(self.raw()) })?;
        Ok(event)
    }
}

impl DriverQueue {
    /// A queue in an existing context.
    ///
    /// # Errors
    /// [`SetupError::DeviceOutsideContext`]; [`SetupError::QueueProperty`] when the device lacks a property;
    /// [`crate::DriverError`].
    #[doc(alias = "clCreateCommandQueueWithProperties")]
    pub(crate) fn with_properties(
        context: &impl InContext,
        device: &Device,
        properties: QueueProperties,
    ) -> Result<Self> {
        let context = context.context();
        context.check_device(device)?;
        let lacks = |property| SetupError::QueueProperty { device: device.name().to_owned(), property };
        if properties.out_of_order && !device.caps().out_of_order {
            return Err(lacks("out-of-order").into());
        }
        if properties.profiling && !device.caps().profiling {
            return Err(lacks("profiling").into());
        }
        let core = Core::get()?;
        let bits = properties.bits();
        let mut status = 0;
        // The newer call exists in every newer loader, but only a platform of OpenCL 2.0 answers it.
        let (call, raw) = match core.clCreateCommandQueueWithProperties {
            Some(create) if device.caps().version.major >= 2 => {
                let list = [u64::from(CL_QUEUE_PROPERTIES), bits, 0];
                // SAFETY: **live** for context and device; the list ends with 0.
                let raw = unsafe { create(context.raw(), device.raw(), list.as_ptr(), &raw mut status) };
                ("clCreateCommandQueueWithProperties", raw)
            }
            // SAFETY: **live** for context and device.
            _ => ("clCreateCommandQueue", unsafe {
                (core.clCreateCommandQueue)(context.raw(), device.raw(), bits, &raw mut status)
            }),
        };
        check(call, status)?;
        // SAFETY: the call succeeded and gives its reference away.
        let handle = unsafe { Handle::from_owned(call, raw) }?;
        Ok(Self::wrapped(Inner::new(handle, context.clone(), device.clone(), properties)))
    }

    /// The wrapper that there is of a queue. Its own reference keeps the queue, so it is of no other at the same address.
    fn known(raw: cl_command_queue) -> Option<Self> {
        let wrapped = WRAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        wrapped.get(&raw.addr()).and_then(Weak::upgrade).map(Self)
    }

    /// A wrapper, which others of the queue share from now on.
    fn wrapped(inner: Inner) -> Self {
        let this = Arc::new(inner);
        let mut wrapped = WRAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = wrapped.get(&this.raw().addr()).and_then(Weak::upgrade) {
            // Somebody else was faster. What is not needed goes when the lock has gone: its drop calls the driver.
            drop(wrapped);
            return Self(other);
        }
        if wrapped.len() >= 64 && wrapped.len().is_power_of_two() {
            wrapped.retain(|_, inner| inner.strong_count() > 0);
        }
        wrapped.insert(this.raw().addr(), Arc::downgrade(&this));
        Self(Arc::clone(&this))
    }

    /// The same in-order queue, of a context and one of its devices, once more.
    pub(super) fn in_order(last: &Arc<Last>, context: Context, device: Device) -> Self {
        Self(Arc::new(Inner::around(Arc::clone(last), context, device, QueueProperties::new())))
    }

    /// What the queue is of the driver's, which keeps no context of clgraph's.
    pub(super) fn last(&self) -> &Arc<Last> {
        &self.0.handle
    }

    /// To be held while several commands are enqueued that belong together: no other submission comes between. It is
    /// the last lock: behind it only come some that wait for nothing.
    pub(crate) fn whole(&self) -> MutexGuard<'_, ()> {
        self.0.whole.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wraps an `opencl3` queue, which may be dropped before this one.
    ///
    /// # Errors
    /// [`SetupError::DeviceQueue`]; [`crate::DriverError`] when the driver refuses a query.
    pub(crate) fn from_opencl3(queue: &opencl3::command_queue::CommandQueue) -> Result<Self> {
        // SAFETY: an `opencl3` queue owns a reference.
        unsafe { Self::from_raw(queue.get()) }
    }

    /// Wraps and retains a raw queue.
    ///
    /// When the last wrapper of an out-of-order queue goes, it puts a marker on the queue and flushes it, to let its
    /// reference go when everything before is through.
    ///
    /// # Errors
    /// [`SetupError::NullHandle`], [`SetupError::DeviceQueue`]; [`crate::DriverError`] when the driver refuses a query.
    ///
    /// # Safety
    /// `raw` is null or a live queue.
    pub(crate) unsafe fn from_raw(raw: cl_command_queue) -> Result<Self> {
        if let Some(known) = Self::known(raw) {
            return Ok(known);
        }
        // SAFETY: the caller's promise.
        let handle: Handle<QueueKind> = unsafe { Handle::from_borrowed(raw) }?;
        let core = Core::get()?;
        let call = "clGetCommandQueueInfo";
        let context = info::value::<usize>(call, ask!(core, clGetCommandQueueInfo, raw, CL_QUEUE_CONTEXT))?;
        let device = info::value::<usize>(call, ask!(core, clGetCommandQueueInfo, raw, CL_QUEUE_DEVICE))?;
        let bits = info::value::<u64>(call, ask!(core, clGetCommandQueueInfo, raw, CL_QUEUE_PROPERTIES))?;
        if bits & CL_QUEUE_ON_DEVICE != 0 {
            return Err(SetupError::DeviceQueue.into());
        }
        // SAFETY: a live queue keeps its context and device alive, and the driver has just named them.
        let (context, device) = unsafe {
            (
                Context::from_raw(std::ptr::with_exposed_provenance_mut(context))?,
                Device::from_raw(std::ptr::with_exposed_provenance_mut(device))?,
            )
        };
        let properties = QueueProperties {
            out_of_order: bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE != 0,
            profiling: bits & CL_QUEUE_PROFILING_ENABLE != 0,
        };
        Ok(Self::wrapped(Inner::new(handle, context, device, properties)))
    }

    /// The same queue for `opencl3`, with a reference of its own.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses to retain it.
    pub(crate) fn to_opencl3(&self) -> Result<opencl3::command_queue::CommandQueue> {
        Ok(opencl3::command_queue::CommandQueue::new(self.0.handle.handle.retained_raw()?, 3))
    }

    /// The C handle, valid while this object lives.
    pub(crate) fn raw(&self) -> cl_command_queue {
        self.0.raw()
    }

    /// The device that the queue leads to.
    pub(crate) fn device(&self) -> &Device {
        &self.0.device
    }

    /// How the queue behaves.
    pub(crate) fn properties(&self) -> QueueProperties {
        self.0.properties
    }

    /// Four bytes that nobody reads.
    pub(super) fn door(&self) -> Result<Mem> {
        if let Some(door) = self.0.door.get() {
            return Ok(door.clone());
        }
        let door = Buffer::<u32>::new(self, 1)?.region().mem;
        Ok(self.0.door.get_or_init(|| door).clone())
    }

    /// Hands all enqueued commands to the device, and does not wait for them.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses.
    #[doc(alias = "clFlush")]
    pub(crate) fn flush(&self) -> Result<(), DriverError> {
        let Ok(core) = Core::get() else { return Ok(()) };
        // SAFETY: **live**.
        check("clFlush", unsafe { (core.clFlush)(self.raw()) })
    }

    /// Waits until everything enqueued so far is complete.
    ///
    /// It enqueues a marker and waits for that, because `clFinish` spins on some drivers; and that of an out-of-order queue it
    /// does not wait for by `clWaitForEvents`, in which Intel's CPU runtime can come to a deadlock.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses, or when enqueued work failed.
    #[doc(alias = "clFinish")]
    pub(crate) fn finish(&self) -> Result<()> {
        let marker = enqueue::marker(self, &enqueue::Waits::NONE)?;
        if self.properties().out_of_order {
            self.flush()?;
            return Ok(watch::wait(marker)?);
        }
        let outcome = marker.wait();
        let (fences, failed) = self.0.order.fences();
        for fence in fences {
            // How it ended says less than how the command did that failed.
            if let Err(error) = fence.wait()
                && !watch::is_over(&Err(error))
            {
                return Err(error.into());
            }
        }
        Ok(failed.map_or(outcome, Err)?)
    }

    /// Whether everything enqueued so far is complete, as far as the driver tells at once.
    pub(crate) fn is_empty(&self) -> Result<bool, DriverError> {
        let mut all = vec![enqueue::marker(self, &enqueue::Waits::NONE)?];
        self.flush()?;
        all.extend(self.0.order.fences().0);
        // A driver may complete the marker of an empty queue a moment later, on another thread.
        for _ in 0..100 {
            let mut under_way = false;
            for event in &all {
                under_way |= matches!(event.progress()?, Progress::Waiting | Progress::Running);
            }
            if !under_way {
                return Ok(true);
            }
            std::thread::yield_now();
        }
        Ok(false)
    }

    /// Whether everything on the queue comes in its order: see [`order`](super::order).
    #[inline]
    pub(crate) fn is_sure(&self) -> bool {
        self.0.order.is_sure()
    }

    /// The segment that commands go to now. It stays while [`whole`](Self::whole) is held.
    pub(crate) fn segment(&self) -> u64 {
        self.0.order.segment()
    }

    /// An event that is over when everything is that a segment has got so far. None: it is over.
    pub(crate) fn end_of(&self, segment: u64) -> Result<Option<DriverEvent>, DriverError> {
        self.0.order.end_of(self, segment)
    }

    /// Whether all commands of a segment are before those that are enqueued now. The caller holds [`whole`](Self::whole).
    pub(crate) fn is_in_order_since(&self, segment: u64) -> bool {
        segment >= self.0.order.ordered()
    }

    /// Somebody will ask for the end of the segment that commands go to now. The caller holds [`whole`](Self::whole), or nobody
    /// else has the queue.
    pub(crate) fn want_end(&self) {
        self.0.order.want_end();
    }

    pub(super) fn is_end_wanted(&self) -> bool {
        self.0.order.is_end_wanted()
    }

    /// A command is going to be enqueued that may hold up the queue, or fail. The caller holds [`whole`](Self::whole), or nobody
    /// else has the queue.
    pub(super) fn end_segment(&self, may_fail: bool) -> Result<(), DriverError> {
        self.0.order.end_segment(self, may_fail)
    }

    /// A command was enqueued that may fail, because of its wait list or of what is before it.
    pub(super) fn took(&self, event: &DriverEvent, waits: &enqueue::Waits) {
        self.0.order.took(event, waits);
    }

    /// A marker behind everything, whatever is known of the queue's order.
    pub(super) fn mark(&self, sure: bool) -> Result<DriverEvent, DriverError> {
        self.0.mark(sure)
    }
}

impl InContext for DriverQueue {
    fn context(&self) -> &Context {
        &self.0.context
    }
}

impl PartialEq for DriverQueue {
    fn eq(&self, other: &Self) -> bool {
        self.raw() == other.raw()
    }
}

impl Eq for DriverQueue {}

impl std::fmt::Debug for DriverQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue")
            .field("raw", &self.0.handle.handle)
            .field("device", &self.0.device)
            .field("properties", &self.0.properties)
            .finish()
    }
}
