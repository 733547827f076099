//! Events of the driver: to wait for, to query, and to be notified by.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use opencl_sys::{
    CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, CL_EVENT_COMMAND_QUEUE, CL_EVENT_CONTEXT,
    CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_INVALID_COMMAND_QUEUE, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
    CL_QUEUE_PROPERTIES, CL_RUNNING, cl_event, cl_int, cl_profiling_info,
};

use crate::cl::check;
use crate::cl::completion::deferred_release::Closed;
use crate::cl::completion::event_reaper;
use crate::cl::completion::gates::{self, GateId, Gates};
use crate::cl::completion::user_code::log_later;
use crate::cl::objects::context::{Context, InContext};
use crate::cl::objects::handle::{EventKind, Handle};
use crate::cl::objects::queue::DriverQueue;
use crate::cl::query::info::{self, ask};
use crate::error::{DriverError, DriverFault, Result, Status};
use crate::ffi::core::Core;

/// A counted reference to a `cl_event`. Clones are cheap.
///
/// Most events of single commands are dropped without a clone. So the reference moves to shared memory only at the
/// first clone, because an allocation costs a considerable part of an enqueue.
#[derive(Debug)]
pub(crate) struct DriverEvent {
    raw: NonNull<c_void>,
    owner: Owner,
    /// See [`DriverEvent::is_sure`].
    sure: bool,
}

/// The owner of the reference to an event.
#[derive(Debug)]
enum Owner {
    /// The object itself, until it is cloned for the first time.
    Itself(OnceLock<Arc<Shared>>),
    Shared(Arc<Shared>),
    /// The event is that of a [`DeferredCommand`].
    Deferred(Arc<DeferredCommand>),
}

/// A command that clgraph enqueues later, on a queue of its own, because something that it waits for may fail.
#[derive(Debug)]
pub(crate) struct DeferredCommand {
    /// An event that keeps the place of the command in the order of the caller's queue. It completes when the command
    /// has ended, well or not.
    place: DriverEvent,
    /// The event of the command itself, once it is enqueued.
    command: OnceLock<DriverEvent>,
    /// How the command ended. It is known before `place` completes.
    outcome: OnceLock<Result<(), DriverError>>,
    /// The driver does not report how, or when, the command ends.
    lost: OnceLock<DriverError>,
}

impl DeferredCommand {
    pub(crate) fn new(place: DriverEvent) -> Arc<Self> {
        Arc::new(Self { place, command: OnceLock::new(), outcome: OnceLock::new(), lost: OnceLock::new() })
    }

    /// Returns the event of the command for the caller.
    pub(crate) fn event(self: &Arc<Self>) -> DriverEvent {
        DriverEvent { raw: self.place.raw, owner: Owner::Deferred(Arc::clone(self)), sure: false }
    }

    /// Stores the event of the command, which was enqueued.
    pub(crate) fn enqueued(&self, command: DriverEvent) {
        let _ = self.command.set(command);
    }

    /// Stores how the command ended. Only the first call counts.
    pub(crate) fn ended(&self, outcome: Result<(), DriverError>) {
        let _ = self.outcome.set(outcome);
    }

    /// Stores that nobody can know when the command ends: it counts as running for ever.
    pub(crate) fn lost(&self, error: DriverError) {
        let _ = self.lost.set(error);
    }

    /// Returns the status of the command as far as the driver's event does not report it.
    fn status(&self) -> Result<Option<CommandStatus>, DriverError> {
        if let Some(error) = self.lost.get() {
            return Err(*error);
        }
        Ok(match (self.outcome.get(), self.command.get()) {
            (Some(Err(error)), _) => Some(CommandStatus::Failed(error.status)),
            // The command becomes complete in its place in the queue.
            (Some(Ok(())), _) => match self.place.status()? {
                CommandStatus::Waiting => Some(CommandStatus::Running),
                _ => None,
            },
            (None, Some(command)) => match command.status()? {
                CommandStatus::Waiting => Some(CommandStatus::Waiting),
                _ => Some(CommandStatus::Running),
            },
            (None, None) => Some(CommandStatus::Waiting),
        })
    }
}

/// The part of an event that its clones share.
#[derive(Debug)]
struct Shared {
    _reference: Handle<EventKind>,
    /// The command was seen to be complete. It stays complete, so nobody has to ask the driver again.
    complete: AtomicBool,
    /// See [`DriverEvent::gates`].
    gates: Gates,
}

// SAFETY: **threads**; the event is a counted pointer, like a `Handle`.
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
            Owner::Deferred(deferred) => deferred.place.shared(),
        }
    }

    /// Stores the gates that the command comes after, for an event that nobody else has yet.
    pub(in crate::cl) fn after(self, gates: Gates) -> Self {
        if gates.is_empty() { self } else { self.ready_to_clone_after(gates) }
    }

    /// Returns the same event. Its first clone costs as little as later ones then.
    #[inline]
    pub(crate) fn ready_to_clone(self) -> Self {
        self.ready_to_clone_after(Gates::default())
    }

    fn ready_to_clone_after(self, gates: Gates) -> Self {
        if !matches!(&self.owner, Owner::Itself(lock) if lock.get().is_none()) {
            return self;
        }
        let (raw, sure) = (self.raw, self.sure);
        std::mem::forget(self);
        // SAFETY: **live**: the reference was the event's own, and the event is forgotten.
        let reference = unsafe { Handle::from_raw(raw) };
        let shared = Shared { _reference: reference, complete: AtomicBool::new(false), gates };
        Self { raw, owner: Owner::Shared(Arc::new(shared)), sure }
    }

    /// Returns the same event as one that may fail, for an event whose status the program can set.
    pub(crate) fn foreign(&self) -> Self {
        let mut event = self.clone();
        event.sure = false;
        event
    }

    /// Returns the gates that the command directly comes after, as far as clgraph enqueued it.
    pub(crate) fn gates(&self) -> Gates {
        self.shared().map(|shared| shared.gates.clone()).unwrap_or_default()
    }

    fn deferred(&self) -> Option<&Arc<DeferredCommand>> {
        if let Owner::Deferred(deferred) = &self.owner { Some(deferred) } else { None }
    }
}

impl Clone for DriverEvent {
    fn clone(&self) -> Self {
        let shared = match &self.owner {
            Owner::Deferred(deferred) => return deferred.event(),
            Owner::Shared(shared) => shared,
            Owner::Itself(lock) => lock.get_or_init(|| {
                // SAFETY: **live**: this is the object's own reference, and the lock owns it from now on.
                let reference = unsafe { Handle::from_raw(self.raw) };
                Arc::new(Shared { _reference: reference, complete: AtomicBool::new(false), gates: Gates::default() })
            }),
        };
        Self { raw: self.raw, owner: Owner::Shared(Arc::clone(shared)), sure: self.sure }
    }
}

impl Drop for DriverEvent {
    #[inline]
    fn drop(&mut self) {
        if self.shared().is_none() && self.deferred().is_none() {
            // SAFETY: **live**: this is the object's own reference, and nothing else owns it.
            drop(unsafe { Handle::<EventKind>::from_raw(self.raw) });
        }
    }
}

/// The call that a [`DriverError`] names when a command failed while it ran, instead of a call.
pub(crate) const COMMAND: &str = "a command";

/// The execution status of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandStatus {
    /// The command is queued or submitted, and has not started.
    Waiting,
    Running,
    Complete,
    Failed(Status),
}

impl DriverEvent {
    /// Wraps an `opencl3` event. The `opencl3` event may be dropped first.
    ///
    /// # Errors
    /// [`crate::DriverError`] if the driver refuses to retain it.
    pub(crate) fn from_opencl3(event: &opencl3::event::Event) -> Result<Self> {
        // SAFETY: an `opencl3` event owns a reference.
        unsafe { Self::from_raw(event.get()) }
    }

    /// Wraps and retains a raw event.
    ///
    /// # Errors
    /// [`crate::SetupError::NullHandle`]; [`crate::DriverError`] if the driver refuses to retain it.
    ///
    /// # Safety
    /// `raw` is null or a live event.
    pub(crate) unsafe fn from_raw(raw: cl_event) -> Result<Self> {
        // SAFETY: the caller's promise.
        let event = Self::owning(unsafe { Handle::from_borrowed(raw) }?, false);
        // It may be the event of a command that comes after gates.
        let gates = match event.queue()? {
            0 => gates::of_event(raw.addr()),
            _ if gates::none_closed() => Gates::default(),
            queue => DriverQueue::gates_of(queue),
        };
        Ok(event.after(gates))
    }

    /// Takes over the event that an enqueue returned, and stores whether it [`is_sure`](Self::is_sure).
    ///
    /// # Safety
    /// `raw` is an event. The caller owns a reference to it and gives the reference away.
    pub(in crate::cl) unsafe fn from_enqueue(call: &'static str, raw: cl_event) -> Result<Self, DriverError> {
        // SAFETY: the caller's promise.
        Ok(Self::owning(unsafe { Handle::from_owned(call, raw) }?, true))
    }

    /// Returns whether the command cannot fail because of what it waits for. This holds for every event of a command
    /// that clgraph has given to a driver. Foreign events, and those of a [`DeferredCommand`], can fail until they have
    /// ended.
    pub(crate) fn is_sure(&self) -> bool {
        self.sure
    }

    /// Returns whether the command may be running. If the driver does not report the status, the answer is yes.
    pub(crate) fn may_run(&self) -> bool {
        !matches!(self.status(), Ok(CommandStatus::Complete | CommandStatus::Failed(_)))
    }

    /// Returns the same event for `opencl3`, with its own reference.
    ///
    /// # Errors
    /// [`crate::DriverError`] if the driver refuses to retain it.
    pub(crate) fn to_opencl3(&self) -> Result<opencl3::event::Event> {
        // SAFETY: **live**.
        let copy: Handle<EventKind> = unsafe { Handle::from_borrowed(self.raw()) }?;
        Ok(opencl3::event::Event::new(copy.into_raw().as_ptr()))
    }

    /// Returns the C handle, which is valid while this object lives.
    pub(crate) fn raw(&self) -> cl_event {
        self.raw.as_ptr()
    }

    /// Blocks until the command has ended, and returns its error if it failed.
    pub(crate) fn wait(&self) -> Result<(), DriverError> {
        let Ok(core) = Core::get() else { return Ok(()) };
        let raw = self.raw();
        // SAFETY: **lists**, one live event.
        let status = unsafe { (core.clWaitForEvents)(1, &raw const raw) };
        if status == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST {
            // The status of this event says more than that one of the events failed.
            if let CommandStatus::Failed(status) = self.status()? {
                return Err(DriverError::new(COMMAND, status));
            }
        }
        check("clWaitForEvents", status)?;
        match self.status()? {
            CommandStatus::Failed(status) => Err(DriverError::new(COMMAND, status)),
            // While the process ends, gates open although the commands behind them have not run.
            CommandStatus::Waiting | CommandStatus::Running
                if matches!(self.owner, Owner::Deferred(_)) && event_reaper::process_ends() =>
            {
                Err(DriverError::new(COMMAND, Status(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)))
            }
            _ => Ok(()),
        }
    }

    /// Waits as [`wait`](Self::wait) does, and waits again if the wait itself failed. The caller depends on the end of
    /// the command.
    pub(crate) fn wait_surely(&self) -> Result<(), DriverError> {
        let outcome = self.wait();
        if event_reaper::is_over(&outcome) { outcome } else { self.wait() }
    }

    /// Waits as [`wait`](Self::wait) does, for an event of any queue, and flushes that queue first. On an out-of-order
    /// queue, and behind a closed gate, the event reaper tells when it is complete: see [`DriverQueue::finish`].
    pub(crate) fn wait_on_any_queue(&self) -> Result<(), DriverError> {
        let Ok(core) = Core::get() else { return Ok(()) };
        match self.status()? {
            CommandStatus::Complete => return Ok(()),
            CommandStatus::Failed(status) => return Err(DriverError::new(COMMAND, status)),
            CommandStatus::Waiting | CommandStatus::Running => {}
        }
        let queue = self.queue()?;
        // A user event has no queue.
        if queue != 0 {
            // A command that has not ended keeps its queue alive.
            let raw = std::ptr::with_exposed_provenance_mut(queue);
            let query = ask!(core, clGetCommandQueueInfo, raw, CL_QUEUE_PROPERTIES);
            match info::value::<u64>("clGetCommandQueueInfo", query) {
                Ok(bits) if bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE == 0 && !self.gates().any_closed() => {
                    return self.wait();
                }
                Err(error) if !is_gone(error) => return Err(error),
                _ => self.flush_queue()?,
            }
        }
        event_reaper::wait(self.clone())
    }

    /// Returns the C handle of the event's queue, or 0 for a user event.
    pub(crate) fn queue(&self) -> Result<usize, DriverError> {
        let Ok(core) = Core::get() else { return Ok(0) };
        info::value::<usize>("clGetEventInfo", ask!(core, clGetEventInfo, self.raw(), CL_EVENT_COMMAND_QUEUE))
    }

    /// Returns the execution status of the command.
    pub(crate) fn status(&self) -> Result<CommandStatus, DriverError> {
        let Ok(core) = Core::get() else { return Ok(CommandStatus::Complete) };
        // First, because its place in the queue becomes complete also when the command has failed.
        if let Some(deferred) = self.deferred()
            && let Some(status) = deferred.status()?
        {
            return Ok(status);
        }
        let complete = self.shared().map(|shared| &shared.complete);
        if complete.is_some_and(|complete| complete.load(Ordering::Acquire)) {
            return Ok(CommandStatus::Complete);
        }
        let status = info::value::<cl_int>(
            "clGetEventInfo",
            ask!(core, clGetEventInfo, self.raw(), CL_EVENT_COMMAND_EXECUTION_STATUS),
        )?;
        Ok(match status {
            CL_COMPLETE => {
                complete.inspect(|complete| complete.store(true, Ordering::Release));
                CommandStatus::Complete
            }
            CL_RUNNING => CommandStatus::Running,
            status if status < 0 => CommandStatus::Failed(Status(status)),
            _ => CommandStatus::Waiting,
        })
    }

    /// Flushes the queue of the event, so that its command begins.
    pub(crate) fn flush_queue(&self) -> Result<(), DriverError> {
        let Ok(core) = Core::get() else { return Ok(()) };
        // A user event has no queue. A command that has ended needs no flush, and its queue may be gone.
        let queue = self.queue()?;
        if queue == 0 || !self.may_run() {
            return Ok(());
        }
        // SAFETY: **live**: a command that has not ended keeps its queue alive. If it ends just now, the driver refuses
        // the handle.
        match check("clFlush", unsafe { (core.clFlush)(std::ptr::with_exposed_provenance_mut(queue)) }) {
            Err(error) if is_gone(error) => Ok(()),
            outcome => outcome,
        }
    }

    /// Returns one of the five profiling times of the command, in nanoseconds.
    pub(crate) fn time(&self, which: cl_profiling_info) -> Result<u64, DriverError> {
        if let Some(deferred) = self.deferred() {
            let none = DriverError::new("clGetEventProfilingInfo", Status(opencl_sys::CL_PROFILING_INFO_NOT_AVAILABLE));
            return deferred.command.get().ok_or(none)?.time(which);
        }
        let call = "clGetEventProfilingInfo";
        let core = Core::get().map_err(|_| DriverError::faulty(call, DriverFault::Missing))?;
        info::value::<u64>(call, ask!(core, clGetEventProfilingInfo, self.raw(), which))
    }

    /// Returns whether the event belongs to a context.
    pub(crate) fn is_of(&self, context: &Context) -> Result<bool, DriverError> {
        let Ok(core) = Core::get() else { return Ok(false) };
        let raw = info::value::<usize>("clGetEventInfo", ask!(core, clGetEventInfo, self.raw(), CL_EVENT_CONTEXT))?;
        Ok(raw == context.raw().addr())
    }

    /// Asks the driver to [`post`](event_reaper::post) a number when the event completes. This is only a hint, because
    /// PoCL 3.1 and 6.0 never call back for an event that failed.
    pub(crate) fn post_when_done(&self, number: usize) {
        let Ok(core) = Core::get() else { return };
        let data = std::ptr::without_provenance_mut::<c_void>(number);
        // SAFETY: **live**; `post` has the type of the headers, and its user data is a number.
        let status = unsafe { (core.clSetEventCallback)(self.raw(), CL_COMPLETE, Some(post), data) };
        if status != 0 {
            let status = Status(status);
            log_later!(Debug, "clSetEventCallback failed with {status}: clgraph polls the event instead");
        }
    }
}

/// Returns whether a driver says that a queue no longer exists. On Intel's CPU runtime (2026.2) an event does not keep
/// its queue alive after its command has ended.
fn is_gone(error: DriverError) -> bool {
    error.status == Status(CL_INVALID_COMMAND_QUEUE)
}

/// May run on a thread of the driver, or on a caller's thread inside clFlush or clWaitForEvents. So it only posts.
extern "system" fn post(_: cl_event, _: cl_int, number: *mut c_void) {
    event_reaper::post(number.addr());
}

/// A user event of clgraph that holds back commands until it is opened. It always completes and never fails: if a user
/// event gets a negative status, some drivers crash, hang, run the dependent commands, or lose the queue.
#[derive(Debug)]
pub(crate) struct Gate {
    event: DriverEvent,
    closed: Option<Closed>,
    /// See [`Gate::holding`].
    id: Option<GateId>,
    /// See [`Gate::hold_apart`]: the queue, and the event that others have.
    apart: Option<(DriverQueue, DriverEvent)>,
}

impl Gate {
    /// Makes a closed gate.
    pub(crate) fn closed(context: &Context) -> Result<Self> {
        let event = Self::user_event(context)?;
        gates::made(event.raw().expose_provenance(), None);
        Ok(Self { event, closed: Some(Closed::new()), id: None, apart: None })
    }

    /// Registers the gate as closed. Commands may wait for it from now on.
    pub(crate) fn register(&mut self) {
        self.closed.get_or_insert_with(Closed::new);
    }

    /// Makes a closed gate that the program opens, and for which no command may wait yet. It has a number, because a
    /// submission may come to open it instead.
    pub(crate) fn of_program(context: &Context) -> Result<(Self, GateId)> {
        let id = gates::number();
        let event = Self::user_event(context)?.after(Gates::of(id));
        gates::made(event.raw().expose_provenance(), Some(id));
        Ok((Self { event, closed: None, id: Some(id), apart: None }, id))
    }

    fn user_event(context: &Context) -> Result<DriverEvent> {
        let core = Core::get()?;
        let mut status = 0;
        // SAFETY: **live**.
        let raw = unsafe { (core.clCreateUserEvent)(context.raw(), &raw mut status) };
        check("clCreateUserEvent", status)?;
        // SAFETY: the call succeeded and gives its reference away.
        Ok(unsafe { DriverEvent::from_enqueue("clCreateUserEvent", raw) }?)
    }

    /// Makes a closed gate that holds back commands until something has ended that comes after other gates: from now on
    /// a host task knows whether it would wait for itself.
    ///
    /// A gate that no host task is before is of no interest there, and gets no number: `for_tasks` says that its own submission has
    /// some.
    pub(crate) fn holding(context: &Context, after: Gates, for_tasks: bool) -> Result<(Self, Option<GateId>)> {
        if after.is_empty() && !for_tasks {
            return Ok((Self::closed(context)?, None));
        }
        let id = gates::number();
        let event = Self::user_event(context)?.after(Gates::of(id));
        gates::made(event.raw().expose_provenance(), Some(id));
        gates::close(id, after);
        Ok((Self { event, closed: Some(Closed::new()), id: Some(id), apart: None }, Some(id)))
    }

    pub(crate) fn event(&self) -> &DriverEvent {
        &self.event
    }

    /// Holds a queue without a command: see [`DriverQueue::is_held_apart`]. Returns an event that is complete when the gate is open.
    ///
    /// It is another one than the gate's, because the program can have its handle and set its status, and barriers give the gate's to
    /// the driver.
    pub(in crate::cl) fn hold_apart(&mut self, queue: &DriverQueue) -> Result<DriverEvent> {
        let theirs = Self::user_event(queue.context())?;
        gates::made(theirs.raw().expose_provenance(), self.id);
        let after = self.id.map_or_else(Gates::default, Gates::of);
        queue.add_apart(&self.event);
        let theirs = theirs.after(after);
        self.apart = Some((queue.clone(), theirs.clone()));
        Ok(theirs)
    }
}

/// Opens all gates, because the process ends: drivers wait for their queues while they are torn down.
pub(in crate::cl) fn open_all_gates() {
    let Ok(core) = Core::get() else { return };
    gates::set_all(|event| {
        // SAFETY: the owner of the event cannot release it meanwhile.
        let _ = unsafe { (core.clSetUserEventStatus)(std::ptr::with_exposed_provenance_mut(event), CL_COMPLETE) };
    });
}

impl Drop for Gate {
    /// Opens the gate, so that no command ever waits for it for ever.
    fn drop(&mut self) {
        if let Ok(core) = Core::get()
            && gates::ends(self.event.raw().addr())
        {
            // SAFETY: **live**; the event is a user event, and only this line sets its status, once, unless the process
            // ends.
            let status = unsafe { (core.clSetUserEventStatus)(self.event.raw(), CL_COMPLETE) };
            if status != 0 {
                let status = Status(status);
                // The program can have the event of its own user event, and set it.
                if self.event.may_run() {
                    log_later!(
                        Error,
                        "clSetUserEventStatus failed with {status}: the commands of a submission may wait for ever"
                    );
                } else {
                    log_later!(
                        Info,
                        "the cl_event of a user event was set before clgraph set it, by something else that has it: what the \
                         driver lets wait for it may have begun earlier"
                    );
                }
            }
        }
        if let Some(id) = self.id {
            gates::open(id);
        }
        if let Some((queue, theirs)) = self.apart.take() {
            if let Ok(core) = Core::get()
                && gates::ends(theirs.raw().addr())
            {
                // SAFETY: **live**; the event is a user event. It fails where the program has set the status before.
                let _ = unsafe { (core.clSetUserEventStatus)(theirs.raw(), CL_COMPLETE) };
            }
            queue.remove_apart(&self.event);
        }
        self.closed = None;
    }
}

#[cfg(test)]
mod on_a_device {
    use super::*;
    use crate::cl::objects::device::best_device;

    /// Its place becomes complete, and others who have the same event ask for it.
    #[test]
    fn a_command_that_failed_stays_failed_when_its_place_is_seen_to_be_complete() {
        let context = Context::new(&[best_device().unwrap()]).unwrap();
        let gate = Gate::closed(&context).unwrap();
        let (theirs, deferred) = (gate.event().clone(), DeferredCommand::new(gate.event().foreign()));
        let status = Status(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        deferred.ended(Err(DriverError::new(COMMAND, status)));
        drop(gate);
        assert_eq!(theirs.status().unwrap(), CommandStatus::Complete);
        assert_eq!(deferred.event().status().unwrap(), CommandStatus::Failed(status));
        assert!(deferred.event().wait().is_err());
    }
}
