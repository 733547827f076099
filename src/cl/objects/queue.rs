//! Command queues.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use opencl_sys::{
    CL_QUEUE_CONTEXT, CL_QUEUE_DEVICE, CL_QUEUE_ON_DEVICE, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
    CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_PROPERTIES, cl_command_queue,
};

use crate::cl::check;
use crate::cl::commands::enqueue;
use crate::cl::completion::event_reaper;
use crate::cl::completion::gates::{BarrierToCome, GateId, Gates, QueueGates};
use crate::cl::completion::queue_order::QueueOrder;
use crate::cl::completion::user_code::log_later;
use crate::cl::completion::workers::WaitGuard;
use crate::cl::memory::region::AsRegion;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::buffer::Buffer;
use crate::cl::objects::context::{Context, InContext, OnDevice};
use crate::cl::objects::device::Device;
use crate::cl::objects::event::{CommandStatus, DriverEvent};
use crate::cl::objects::handle::{Handle, QueueKind};
use crate::cl::objects::retired_queues::Last;
use crate::cl::query::info::{self, ask};
use crate::error::{DriverError, DriverFault, Error, MemoryError, Result, SetupError};
use crate::ffi::core::Core;
use crate::quirks;

/// The properties of a queue. The default is an in-order queue without profiling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct QueueProperties {
    /// Commands may run out of order (`CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE`).
    pub out_of_order: bool,
    /// Events have profiling times (`CL_QUEUE_PROFILING_ENABLE`).
    pub profiling: bool,
}

impl QueueProperties {
    /// Returns the default properties: in order, without profiling.
    pub const fn new() -> Self {
        Self { out_of_order: false, profiling: false }
    }

    /// Sets whether commands may run out of order.
    pub const fn out_of_order(mut self, yes: bool) -> Self {
        self.out_of_order = yes;
        self
    }

    /// Sets whether events have profiling times.
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

/// A command queue of the driver. Clones are cheap. Two values are equal if they are the same queue.
#[derive(Clone)]
pub(crate) struct DriverQueue(Arc<Inner>);

struct Inner {
    handle: Arc<Last>,
    context: Context,
    device: Device,
    properties: QueueProperties,
    /// The buffer that [`enqueue::entry`] fills: see [`DriverQueue::dummy_buffer`].
    dummy_buffer: OnceLock<Mem>,
    /// See [`DriverQueue::lock_order`].
    order_lock: Mutex<()>,
    order: QueueOrder,
    gates: QueueGates,
    /// The user events of gates, by C handle: see [`DriverQueue::is_held_apart`].
    apart: Mutex<BTreeMap<usize, DriverEvent>>,
}

/// All live wrappers, by C handle. The wrappers of one queue share what is known about its order.
static WRAPPED: LazyLock<Mutex<HashMap<usize, Weak<Inner>>>> = LazyLock::new(Mutex::default);

/// The gates of queues whose wrapper was dropped while gates were closed, by C handle. The commands behind the gates
/// keep the queue alive, so meanwhile no other queue has its handle.
static UNWRAPPED: LazyLock<Mutex<HashMap<usize, QueueGates>>> = LazyLock::new(Mutex::default);

fn unwrapped() -> MutexGuard<'static, HashMap<usize, QueueGates>> {
    UNWRAPPED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Inner {
    /// Remembers the closed gates, and keeps an out-of-order queue for the next program that wants one.
    fn drop(&mut self) {
        if !self.gates.get().is_empty() {
            let mut all = unwrapped();
            all.retain(|_, gates| !gates.get().is_empty());
            all.insert(self.raw().addr(), std::mem::take(&mut self.gates));
        }
        // Where the program has a handle too, its own release ends the queue.
        if !self.properties.out_of_order || self.handle.is_foreign() {
            return;
        }
        let end = self.flushed_mark().or_else(|_| self.flushed_mark());
        if let Err(error) = &end {
            log_later!(Warn, "{error}: an out-of-order queue is released without waiting for its commands");
        }
        if quirks::must_keep_out_of_order_queues(self.device.caps()) {
            let retired = &self.context.globals().retired_queues;
            retired.add(self.device.raw().addr(), self.properties, Arc::clone(&self.handle), end.ok());
        } else if let Ok(end) = end {
            event_reaper::keep_until(end, Arc::clone(&self.handle));
        }
    }
}

impl Inner {
    fn new(
        handle: Handle<QueueKind>,
        context: Context,
        device: Device,
        properties: QueueProperties,
        made: bool,
    ) -> Self {
        let last =
            Last::new(handle, properties.out_of_order && quirks::must_keep_out_of_order_queues(device.caps()), made);
        Self::around(Arc::new(last), context, device, properties)
    }

    fn around(handle: Arc<Last>, context: Context, device: Device, properties: QueueProperties) -> Self {
        let (dummy_buffer, order_lock) = (OnceLock::new(), Mutex::new(()));
        let gates = unwrapped().remove(&handle.handle.raw().addr()).unwrap_or_default();
        let order = QueueOrder::default();
        let apart = Mutex::default();
        Self { handle, context, device, properties, dummy_buffer, order_lock, order, gates, apart }
    }

    fn raw(&self) -> cl_command_queue {
        self.handle.handle.raw()
    }

    /// Enqueues a marker after all commands of the queue.
    fn mark(&self) -> Result<DriverEvent, DriverError> {
        let call = "clEnqueueMarkerWithWaitList";
        let core = Core::get().map_err(|_| DriverError::faulty(call, DriverFault::Missing))?;
        let mut event = std::ptr::null_mut();
        // SAFETY: **live**, **lists**.
        let status = unsafe { (core.clEnqueueMarkerWithWaitList)(self.raw(), 0, std::ptr::null(), &raw mut event) };
        check(call, status)?;
        // SAFETY: the call succeeded and gives its reference away.
        Ok(unsafe { DriverEvent::from_enqueue(call, event) }?.after(self.gates.get()))
    }

    /// Enqueues a marker after all commands of the queue, and flushes the queue.
    fn flushed_mark(&self) -> Result<DriverEvent, DriverError> {
        let event = self.mark()?;
        let core = Core::get().map_err(|_| DriverError::faulty("clFlush", DriverFault::Missing))?;
        // SAFETY: **live**.
        check("clFlush", unsafe { (core.clFlush)(self.raw()) })?;
        Ok(event)
    }
}

impl DriverQueue {
    /// Makes a queue in an existing context.
    ///
    /// # Errors
    /// [`SetupError::DeviceOutsideContext`]; [`SetupError::QueueProperty`] if the device lacks a property;
    /// [`crate::DriverError`].
    #[doc(alias = "clCreateCommandQueueWithProperties")]
    pub(crate) fn with_properties(
        context: &impl InContext,
        device: &Device,
        properties: QueueProperties,
    ) -> Result<Self> {
        let context = context.context();
        context.check_device(device)?;
        Self::start_threads()?;
        let lacks = |property| SetupError::QueueProperty { device: device.name().to_owned(), property };
        if properties.out_of_order && !device.caps().out_of_order {
            return Err(lacks("out-of-order").into());
        }
        if properties.profiling && !device.caps().profiling {
            return Err(lacks("profiling").into());
        }
        if properties.out_of_order
            && let Some(last) = context.globals().retired_queues.take(device.raw().addr(), properties)
        {
            return Ok(Self::wrapped(Inner::around(last, context.clone(), device.clone(), properties)));
        }
        let core = Core::get()?;
        let bits = properties.bits();
        let mut status = 0;
        // Every newer loader has this function, but only platforms of OpenCL 2.0 and later implement it.
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
        Ok(Self::wrapped(Inner::new(handle, context.clone(), device.clone(), properties, true)))
    }

    /// Returns the live wrapper of a queue. The wrapper keeps the queue alive, so its handle cannot belong to another
    /// queue.
    fn known(raw: cl_command_queue) -> Option<Self> {
        let wrapped = WRAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        wrapped.get(&raw.addr()).and_then(Weak::upgrade).map(Self)
    }

    /// Returns the queues that have to be empty when the process ends.
    pub(in crate::cl) fn must_be_empty_at_the_end() -> Vec<Self> {
        let wrapped = WRAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        let all = wrapped.values().filter_map(Weak::upgrade).map(Self);
        all.filter(|queue| quirks::queues_must_be_empty_at_the_end(queue.device().caps())).collect()
    }

    /// Starts the threads that wait for what is enqueued on queues.
    fn start_threads() -> Result<(), SetupError> {
        event_reaper::start_threads().map_err(|error| SetupError::NoThread { error: error.to_string() })
    }

    /// Waits until all commands have ended, but at most until a time.
    pub(in crate::cl) fn wait_until(&self, deadline: Instant) {
        let Ok(end) = self.0.flushed_mark() else { return };
        while end.may_run() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the closed gates that commands of a queue come after. The caller's event keeps the queue alive.
    pub(in crate::cl) fn gates_of(raw: usize) -> Gates {
        let wrapped = WRAPPED.lock().unwrap_or_else(PoisonError::into_inner).get(&raw).and_then(Weak::upgrade);
        match wrapped {
            Some(inner) => inner.gates.get(),
            None => unwrapped().get(&raw).map(QueueGates::get).unwrap_or_default(),
        }
    }

    /// Registers a wrapper, which later wrappers of the same queue share.
    fn wrapped(inner: Inner) -> Self {
        let this = Arc::new(inner);
        let mut wrapped = WRAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = wrapped.get(&this.raw().addr()).and_then(Weak::upgrade) {
            // Another thread has registered a wrapper first. Ours is dropped after the lock is released, because its
            // drop calls the driver.
            drop(wrapped);
            return Self(other);
        }
        if wrapped.len() >= 64 && wrapped.len().is_power_of_two() {
            wrapped.retain(|_, inner| inner.strong_count() > 0);
        }
        wrapped.insert(this.raw().addr(), Arc::downgrade(&this));
        Self(Arc::clone(&this))
    }

    /// Makes another wrapper of an in-order queue, with a context and one of its devices.
    pub(in crate::cl) fn in_order(last: &Arc<Last>, context: Context, device: Device) -> Self {
        Self(Arc::new(Inner::around(Arc::clone(last), context, device, QueueProperties::new())))
    }

    /// Returns the driver's part of the queue, which keeps no `Context` alive.
    pub(in crate::cl) fn last(&self) -> &Arc<Last> {
        &self.0.handle
    }

    /// Locks the queue while several commands are enqueued that belong together, so that no other submission comes
    /// between. This is the last lock in the order of locks: while it is held, only locks may be taken whose holders
    /// never wait.
    pub(crate) fn lock_order(&self) -> MutexGuard<'_, ()> {
        self.0.order_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wraps an `opencl3` queue. The `opencl3` queue may be dropped first.
    ///
    /// # Errors
    /// [`SetupError::DeviceQueue`]; [`crate::DriverError`] if the driver refuses a query.
    pub(crate) fn from_opencl3(queue: &opencl3::command_queue::CommandQueue) -> Result<Self> {
        // SAFETY: an `opencl3` queue owns a reference.
        unsafe { Self::from_raw(queue.get()) }
    }

    /// Wraps and retains a raw queue.
    ///
    /// When the last wrapper of an out-of-order queue is dropped, it enqueues a marker and flushes the queue. Its
    /// reference is released with the context: see `retired_queues.rs`.
    ///
    /// # Errors
    /// [`SetupError::NullHandle`], [`SetupError::DeviceQueue`]; [`crate::DriverError`] if the driver refuses a query.
    ///
    /// # Safety
    /// `raw` is null or a live queue.
    pub(crate) unsafe fn from_raw(raw: cl_command_queue) -> Result<Self> {
        if let Some(known) = Self::known(raw) {
            return Ok(known);
        }
        Self::start_threads()?;
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
        // SAFETY: a live queue keeps its context and device alive, and the driver has just returned them.
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
        Ok(Self::wrapped(Inner::new(handle, context, device, properties, false)))
    }

    /// Returns the same queue for `opencl3`, with its own reference.
    ///
    /// # Errors
    /// [`crate::DriverError`] if the driver refuses to retain it.
    pub(crate) fn to_opencl3(&self) -> Result<opencl3::command_queue::CommandQueue> {
        Ok(opencl3::command_queue::CommandQueue::new(self.0.handle.handle.retained_raw()?, 3))
    }

    /// Returns the C handle, which is valid while this object lives.
    pub(crate) fn raw(&self) -> cl_command_queue {
        self.0.raw()
    }

    /// Returns the device of the queue.
    pub(crate) fn device(&self) -> &Device {
        &self.0.device
    }

    /// Returns the properties of the queue.
    pub(crate) fn properties(&self) -> QueueProperties {
        self.0.properties
    }

    /// Returns a buffer of four bytes that nothing reads. On an out-of-order queue, [`enqueue::entry`] needs a real
    /// command to know when the queue's order allows a command to start, because markers and barriers with wait lists
    /// do not work on all drivers. A fill of this buffer is that command.
    pub(in crate::cl) fn dummy_buffer(&self) -> Result<Mem, DriverError> {
        if let Some(dummy_buffer) = self.0.dummy_buffer.get() {
            return Ok(dummy_buffer.clone());
        }
        let made = Buffer::<u32>::new(self, 1).map_err(|error| match error {
            Error::Driver(error) | Error::Memory(MemoryError::Driver(error)) => error,
            _ => DriverError::faulty("clCreateBuffer", DriverFault::Defect),
        });
        let dummy_buffer = made?.region().mem;
        Ok(self.0.dummy_buffer.get_or_init(|| dummy_buffer).clone())
    }

    /// Submits all enqueued commands to the device, and does not wait for them.
    ///
    /// # Errors
    /// [`crate::DriverError`] if the driver refuses.
    #[doc(alias = "clFlush")]
    pub(crate) fn flush(&self) -> Result<(), DriverError> {
        let Ok(core) = Core::get() else { return Ok(()) };
        // SAFETY: **live**.
        check("clFlush", unsafe { (core.clFlush)(self.raw()) })
    }

    /// Waits until all commands enqueued so far are complete.
    ///
    /// It waits for a marker instead of calling `clFinish`. On an out-of-order queue, and behind a closed gate, the event
    /// reaper tells when the marker is complete: on Intel's CPU runtime (2026.2) `clWaitForEvents` can deadlock for the one, and
    /// spins for the other.
    ///
    /// # Errors
    /// [`SubmitError::OwnSubmission`](crate::SubmitError::OwnSubmission) from a host task, if a command comes after its
    /// submission; [`crate::DriverError`] if the driver refuses, or if an enqueued command failed.
    #[doc(alias = "clFinish")]
    pub(crate) fn finish(&self) -> Result<()> {
        let (marker, apart) = (enqueue::marker(self, &enqueue::Waits::NONE)?, self.apart());
        let mut gates = marker.gates();
        apart.iter().for_each(|event| gates.extend(&event.gates()));
        let _waiting = WaitGuard::begin(&gates)?;
        if self.properties().out_of_order || gates.any_closed() {
            self.flush()?;
            apart.into_iter().try_for_each(event_reaper::wait)?;
            return Ok(event_reaper::wait(marker)?);
        }
        Ok(marker.wait()?)
    }

    /// Returns whether all commands enqueued so far are complete, as far as the driver reports it at once.
    pub(crate) fn is_empty(&self) -> Result<bool, DriverError> {
        if !self.apart().is_empty() {
            return Ok(false);
        }
        let marker = enqueue::marker(self, &enqueue::Waits::NONE)?;
        self.flush()?;
        // A driver may complete the marker of an empty queue a moment later, on another thread.
        for _ in 0..100 {
            if !matches!(marker.status()?, CommandStatus::Waiting | CommandStatus::Running) {
                return Ok(true);
            }
            std::thread::yield_now();
        }
        Ok(false)
    }

    /// Returns whether a command comes after all earlier ones: on an in-order queue, and where the driver runs the other
    /// queues in order too.
    pub(crate) fn is_ordered(&self) -> bool {
        !self.properties().out_of_order || quirks::runs_in_order(self.device().caps())
    }

    /// Returns whether what waits on the host has no place in the queue, because the driver would hold up all later commands
    /// behind it, although this is an out-of-order queue. Markers and barriers after everything, and whoever waits for the
    /// queue, then ask for what is held: [`apart`](Self::apart).
    pub(in crate::cl) fn is_held_apart(&self) -> bool {
        self.properties().out_of_order && quirks::holds_up_what_is_behind_a_wait(self.device().caps())
    }

    /// Returns the events of what waits on the host and has no place in the queue.
    pub(crate) fn apart(&self) -> Vec<DriverEvent> {
        if !self.is_held_apart() {
            return Vec::new();
        }
        // One that is over goes a moment after its event.
        self.lock_apart().values().filter(|event| event.may_run()).cloned().collect()
    }

    pub(in crate::cl) fn add_apart(&self, event: &DriverEvent) {
        self.lock_apart().insert(event.raw().addr(), event.clone());
    }

    pub(in crate::cl) fn remove_apart(&self, event: &DriverEvent) {
        let removed = self.lock_apart().remove(&event.raw().addr());
        drop(removed);
    }

    fn lock_apart(&self) -> MutexGuard<'_, BTreeMap<usize, DriverEvent>> {
        self.0.apart.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(in crate::cl) fn may_have_gates(&self) -> bool {
        self.0.gates.may_be_some()
    }

    /// Returns the closed gates that commands of the queue come after.
    pub(crate) fn gates(&self) -> Gates {
        self.0.gates.get()
    }

    /// Returns the closed gates that all commands of an out-of-order queue come after, because of its barriers.
    pub(crate) fn barrier_gates(&self) -> Gates {
        self.0.gates.of_barriers()
    }

    /// Adds gates that a barrier with a wait list comes after.
    pub(in crate::cl) fn add_barrier_gates(&self, gates: &Gates) {
        self.0.gates.add_of_barrier(gates);
    }

    /// Begins a barrier after everything.
    #[inline]
    pub(in crate::cl) fn begin_barrier(&self) -> BarrierToCome<'_> {
        self.0.gates.begin_barrier()
    }

    /// Returns the closed gates that a barrier after everything comes after.
    pub(in crate::cl) fn gates_after_all(&self) -> Gates {
        self.0.gates.after_all()
    }

    /// Adds gates that a command of the queue comes after.
    pub(in crate::cl) fn add_gates(&self, gates: &Gates) {
        self.0.gates.add(gates);
    }

    /// Records that all later commands of a queue in order come after a gate. The queue has the gate already:
    /// [`add_gates`](Self::add_gates) was called before the driver got what waits for it.
    pub(crate) fn held_by(&self, gate: GateId) {
        if self.is_ordered() {
            self.0.gates.hold(gate);
        }
    }

    /// Returns the current epoch. It does not change while [`lock_order`](Self::lock_order) is held.
    pub(crate) fn epoch(&self) -> u64 {
        self.0.order.epoch()
    }

    /// Returns an event that is complete when all commands that the epoch has so far have ended, or `None` if the epoch
    /// has ended.
    pub(crate) fn end_of(&self, epoch: u64) -> Result<Option<DriverEvent>, DriverError> {
        self.0.order.end_of(self, epoch)
    }

    /// Records that somebody will ask for the end of the current epoch. The caller holds
    /// [`lock_order`](Self::lock_order), or nobody else has the queue.
    pub(crate) fn want_end(&self) {
        self.0.order.want_end();
    }

    pub(in crate::cl) fn is_end_wanted(&self) -> bool {
        self.0.order.is_end_wanted()
    }

    /// Ends the epoch, because the next command may hold up the queue. The caller holds
    /// [`lock_order`](Self::lock_order), or nobody else has the queue.
    pub(in crate::cl) fn end_epoch(&self) -> Result<(), DriverError> {
        self.0.order.end_epoch(self)
    }

    /// Enqueues a marker after all commands.
    pub(in crate::cl) fn mark(&self) -> Result<DriverEvent, DriverError> {
        self.0.mark()
    }
}

impl OnDevice for DriverQueue {
    fn device(&self) -> &Device {
        Self::device(self)
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
