//! Events of the driver: to wait for, to ask, and to be told of.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};

use opencl_sys::{
    CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, CL_EVENT_COMMAND_QUEUE, CL_EVENT_CONTEXT,
    CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CL_QUEUE_PROPERTIES,
    CL_RUNNING, cl_event, cl_int, cl_profiling_info,
};

use super::check;
use super::context::Context;
use super::gates::Closed;
use super::handle::{EventKind, Handle};
use super::info::{self, ask};
use super::watch;
use crate::error::{DriverError, Fault, Result, Status};
use crate::ffi::core::Core;

/// A counted reference to a `cl_event`. Cheap to clone.
///
/// Most events of single commands are dropped and never cloned: the reference is in shared memory only from the first clone
/// on, because allocating that costs as much as a good part of an enqueue.
#[derive(Debug)]
pub(crate) struct DriverEvent {
    raw: NonNull<c_void>,
    owner: Owner,
    /// See [`DriverEvent::is_sure`].
    sure: bool,
}

/// Who owns the reference of an event.
#[derive(Debug)]
enum Owner {
    /// The object itself, until somebody clones it.
    Itself(OnceLock<Arc<Shared>>),
    Shared(Arc<Shared>),
}

/// What the clones of an event share.
#[derive(Debug)]
struct Shared {
    _reference: Handle<EventKind>,
    /// The command was seen to be complete, and stays so: nobody has to ask again.
    complete: AtomicBool,
}

// SAFETY: **threads**; it is a counted pointer, like a `Handle`.
unsafe impl Send for DriverEvent {}
// SAFETY: as above; the reference moves once, under the lock of `Owner::Itself`.
unsafe impl Sync for DriverEvent {}

impl DriverEvent {
    /// Takes over a reference.
    fn owning(handle: Handle<EventKind>, sure: bool) -> Self {
        Self { raw: handle.into_raw(), owner: Owner::Itself(OnceLock::new()), sure }
    }

    fn shared(&self) -> Option<&Shared> {
        match &self.owner {
            Owner::Shared(shared) => Some(shared),
            Owner::Itself(lock) => lock.get().map(|shared| &**shared),
        }
    }
}

impl Clone for DriverEvent {
    fn clone(&self) -> Self {
        let shared = match &self.owner {
            Owner::Shared(shared) => shared,
            Owner::Itself(lock) => lock.get_or_init(|| {
                // SAFETY: **live**: the object's own reference, which the lock owns from now on.
                let reference = unsafe { Handle::from_raw(self.raw) };
                Arc::new(Shared { _reference: reference, complete: AtomicBool::new(false) })
            }),
        };
        Self { raw: self.raw, owner: Owner::Shared(Arc::clone(shared)), sure: self.sure }
    }
}

impl Drop for DriverEvent {
    #[inline]
    fn drop(&mut self) {
        if self.shared().is_none() {
            // SAFETY: **live**: the object's own reference, which nobody else owns.
            drop(unsafe { Handle::<EventKind>::from_raw(self.raw) });
        }
    }
}

/// What a [`DriverError`] names as its call when it was not a call that failed but a command, while it ran.
pub(crate) const COMMAND: &str = "a command";

/// Where the command of an event has got to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Queued or submitted, and not started.
    Waiting,
    Running,
    Complete,
    Failed(Status),
}

impl DriverEvent {
    /// Wraps an `opencl3` event, which may be dropped before this one.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses to retain it.
    pub(crate) fn from_opencl3(event: &opencl3::event::Event) -> Result<Self> {
        // SAFETY: an `opencl3` event owns a reference.
        unsafe { Self::from_raw(event.get()) }
    }

    /// Wraps and retains a raw event.
    ///
    /// # Errors
    /// [`crate::SetupError::NullHandle`]; [`crate::DriverError`] when the driver refuses to retain it.
    ///
    /// # Safety
    /// `raw` is null or a live event.
    pub(crate) unsafe fn from_raw(raw: cl_event) -> Result<Self> {
        // SAFETY: the caller's promise.
        Ok(Self::owning(unsafe { Handle::from_borrowed(raw) }?, false))
    }

    /// Takes over the event that an enqueue gave, and notes whether it [`is_sure`](Self::is_sure).
    ///
    /// # Safety
    /// `raw` is an event of which the caller owns a reference and gives it away.
    pub(super) unsafe fn from_enqueue(call: &'static str, raw: cl_event, sure: bool) -> Result<Self, DriverError> {
        // SAFETY: the caller's promise.
        Ok(Self::owning(unsafe { Handle::from_owned(call, raw) }?, sure))
    }

    /// Whether nothing that it waits for can fail: it is of clgraph's own making, and so is all that was before it on its queue or
    /// in its wait list. Events of others, and what is behind them, can fail until they are over.
    pub(crate) fn is_sure(&self) -> bool {
        self.sure
    }

    /// Whether its command may be under way. A driver that does not tell counts as one that says yes.
    pub(crate) fn may_run(&self) -> bool {
        !matches!(self.progress(), Ok(Progress::Complete | Progress::Failed(_)))
    }

    /// How its command failed.
    pub(super) fn failure(&self) -> Option<DriverError> {
        if let Ok(Progress::Failed(status)) = self.progress() { Some(DriverError::new(COMMAND, status)) } else { None }
    }

    /// The same event for `opencl3`, with a reference of its own.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses to retain it.
    pub(crate) fn to_opencl3(&self) -> Result<opencl3::event::Event> {
        // SAFETY: **live**.
        let copy: Handle<EventKind> = unsafe { Handle::from_borrowed(self.raw()) }?;
        Ok(opencl3::event::Event::new(copy.into_raw().as_ptr()))
    }

    /// The C handle, valid while this object lives.
    pub(crate) fn raw(&self) -> cl_event {
        self.raw.as_ptr()
    }

    /// Blocks until the command is complete, and says whether it failed.
    pub(crate) fn wait(&self) -> Result<(), DriverError> {
        let Ok(core) = Core::get() else { return Ok(()) };
        let raw = self.raw();
        // SAFETY: **lists**, one live event.
        let status = unsafe { (core.clWaitForEvents)(1, &raw const raw) };
        if status == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST {
            // The event's own status says more than that one of the events failed.
            if let Progress::Failed(status) = self.progress()? {
                return Err(DriverError::new(COMMAND, status));
            }
        }
        check("clWaitForEvents", status)?;
        match self.progress()? {
            Progress::Failed(status) => Err(DriverError::new(COMMAND, status)),
            _ => Ok(()),
        }
    }

    /// The same, and once more if it was the wait that failed and not the command: what comes next counts on its end.
    pub(crate) fn wait_surely(&self) -> Result<(), DriverError> {
        let outcome = self.wait();
        if watch::is_over(&outcome) { outcome } else { self.wait() }
    }

    /// The same as [`wait`](Self::wait) for an event of anybody's queue, which is flushed. That of an out-of-order queue is
    /// looked at instead: Intel's CPU runtime can come to a deadlock in `clWaitForEvents` then.
    pub(crate) fn wait_wherever(&self) -> Result<(), DriverError> {
        let Ok(core) = Core::get() else { return Ok(()) };
        let queue = self.queue()?;
        // A user event has none.
        if queue != 0 {
            let raw = std::ptr::with_exposed_provenance_mut(queue);
            let query = ask!(core, clGetCommandQueueInfo, raw, CL_QUEUE_PROPERTIES);
            if info::value::<u64>("clGetCommandQueueInfo", query)? & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE == 0 {
                return self.wait();
            }
            // SAFETY: **live**: an event keeps its queue.
            check("clFlush", unsafe { (core.clFlush)(raw) })?;
        }
        watch::wait(self.clone())
    }

    /// The C handle of its queue. A user event has none: 0.
    pub(crate) fn queue(&self) -> Result<usize, DriverError> {
        let Ok(core) = Core::get() else { return Ok(0) };
        info::value::<usize>("clGetEventInfo", ask!(core, clGetEventInfo, self.raw(), CL_EVENT_COMMAND_QUEUE))
    }

    /// Where the command has got to.
    pub(crate) fn progress(&self) -> Result<Progress, DriverError> {
        let Ok(core) = Core::get() else { return Ok(Progress::Complete) };
        let complete = self.shared().map(|shared| &shared.complete);
        if complete.is_some_and(|complete| complete.load(Ordering::Acquire)) {
            return Ok(Progress::Complete);
        }
        let status = info::value::<cl_int>(
            "clGetEventInfo",
            ask!(core, clGetEventInfo, self.raw(), CL_EVENT_COMMAND_EXECUTION_STATUS),
        )?;
        Ok(match status {
            CL_COMPLETE => {
                complete.inspect(|complete| complete.store(true, Ordering::Release));
                Progress::Complete
            }
            CL_RUNNING => Progress::Running,
            status if status < 0 => Progress::Failed(Status(status)),
            _ => Progress::Waiting,
        })
    }

    /// One of the five times of a command, in nanoseconds.
    pub(crate) fn time(&self, which: cl_profiling_info) -> Result<u64, DriverError> {
        let call = "clGetEventProfilingInfo";
        let core = Core::get().map_err(|_| DriverError::faulty(call, Fault::Missing))?;
        info::value::<u64>(call, ask!(core, clGetEventProfilingInfo, self.raw(), which))
    }

    /// Whether it belongs to a context.
    pub(crate) fn is_of(&self, context: &Context) -> Result<bool, DriverError> {
        let Ok(core) = Core::get() else { return Ok(false) };
        let raw = info::value::<usize>("clGetEventInfo", ask!(core, clGetEventInfo, self.raw(), CL_EVENT_CONTEXT))?;
        Ok(raw == context.raw().addr())
    }

    /// Asks the driver to post to a channel when the event completes. A hint only: PoCL 3.1 and 6.0 never call back
    /// for an event that failed.
    pub(crate) fn post_when_done(&self, to: &'static Sender<()>) {
        let Ok(core) = Core::get() else { return };
        let data = std::ptr::from_ref(to).cast_mut().cast::<c_void>();
        // SAFETY: **live**; `post` has the type of the headers, and its user data is never freed.
        let status = unsafe { (core.clSetEventCallback)(self.raw(), CL_COMPLETE, Some(post), data) };
        if status != 0 {
            log::debug!("clSetEventCallback failed with {}, polling instead", Status(status));
        }
    }
}

/// May run on a driver's thread, or on a caller's inside clFlush or clWaitForEvents: it posts and does nothing else.
unsafe extern "system" fn post(_: cl_event, _: cl_int, to: *mut c_void) {
    // SAFETY: `post_when_done` gave a `&'static Sender<()>`, which is `Sync`.
    let to = unsafe { &*to.cast_const().cast::<Sender<()>>() };
    let _ = to.send(());
}

/// A user event of clgraph's own, that always completes and never fails: some drivers crash, hang, run the dependents
/// or lose the queue when a user event is set to a negative status.
#[derive(Debug)]
pub(crate) struct Gate {
    event: DriverEvent,
    closed: Option<Closed>,
}

impl Gate {
    /// A closed gate.
    pub(crate) fn closed(context: &Context) -> Result<Self> {
        let mut gate = Self::unseen(context)?;
        gate.be_seen();
        Ok(gate)
    }

    /// From now on commands may wait at it.
    pub(crate) fn be_seen(&mut self) {
        self.closed.get_or_insert_with(Closed::new);
    }

    /// A closed gate at which no command waits yet.
    pub(crate) fn unseen(context: &Context) -> Result<Self> {
        let core = Core::get()?;
        let mut status = 0;
        // SAFETY: **live**.
        let raw = unsafe { (core.clCreateUserEvent)(context.raw(), &raw mut status) };
        check("clCreateUserEvent", status)?;
        // SAFETY: the call succeeded and gives its reference away.
        let event = unsafe { DriverEvent::from_enqueue("clCreateUserEvent", raw, true) }?;
        Ok(Self { event, closed: None })
    }

    pub(crate) fn event(&self) -> &DriverEvent {
        &self.event
    }
}

impl Drop for Gate {
    /// Opens the gate: whatever happens, nobody waits at it for ever.
    fn drop(&mut self) {
        if let Ok(core) = Core::get() {
            // SAFETY: **live**; it is a user event, and this is the only place that sets it, once.
            let status = unsafe { (core.clSetUserEventStatus)(self.event.raw(), CL_COMPLETE) };
            if status != 0 {
                let status = Status(status);
                log::error!(
                    "clSetUserEventStatus failed with {status}: commands behind a submission may wait for ever"
                );
            }
        }
        self.closed = None;
    }
}
