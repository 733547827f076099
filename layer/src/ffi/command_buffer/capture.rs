//! Captures: between begin and end, what is enqueued to a queue becomes commands of a command buffer, and does not run.
//!
//! An event that the program gets of a captured call is one that the layer completes when the capture ends. What cannot be captured
//! fails with `CL_INVALID_OPERATION`, and spoils the capture: each later call on the queue fails, too, and so does the end.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opencl_sys::{
    CL_INVALID_EVENT_WAIT_LIST, CL_INVALID_OPERATION, CL_INVALID_VALUE, CL_OUT_OF_HOST_MEMORY, CL_SUCCESS,
    cl_command_buffer_khr, cl_command_queue, cl_event, cl_int, cl_mutable_command_khr, cl_uint, cl_ulong,
};

use super::buffer::{self, Buffer, QueueFacts, Tail};
use super::command::Command;
use super::owned::Event;
use super::{calls, enter, hold, query};
use crate::command_buffer::capture::{Mode, State, Status};
use crate::command_buffer::properties;
use crate::command_buffer::{Checked, ensure};

/// A queue that is captured.
struct Capture {
    buffer: Arc<Buffer>,
    mode: Mode,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    state: State,
    /// The capture has ended. What comes from a thread that has found it before is not captured any more.
    is_over: bool,
    /// The events that the program has of captured calls, with the places of the commands. They are completed at the end.
    events: HashMap<usize, (Event, u32)>,
}

static CAPTURES: Mutex<Option<HashMap<usize, Arc<Capture>>>> = Mutex::new(None);
/// How many there are. Without any, calls go to the driver at once.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The end of the arguments of each call that enqueues.
#[derive(Clone, Copy)]
pub(super) struct Waits {
    pub(super) count: cl_uint,
    pub(super) list: *const cl_event,
    pub(super) event: *mut cl_event,
}

pub(super) fn is_active() -> bool {
    COUNT.load(Ordering::Acquire) != 0
}

fn captures() -> MutexGuard<'static, Option<HashMap<usize, Arc<Capture>>>> {
    CAPTURES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find(queue: cl_command_queue) -> Option<Arc<Capture>> {
    captures().as_ref()?.get(&queue.addr()).cloned()
}

fn all() -> Vec<Arc<Capture>> {
    captures().as_ref().map(|captures| captures.values().cloned().collect()).unwrap_or_default()
}

impl Capture {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, event: cl_event) -> bool {
        self.progress().events.contains_key(&event.addr())
    }

    /// Adds a command. Returns nothing if the capture is over.
    ///
    /// # Safety
    /// What the program gave.
    unsafe fn take(
        &self,
        name: &'static str,
        waits: Waits,
        make: impl FnOnce(&Buffer) -> Checked<Option<Command>>,
    ) -> Checked<Option<()>> {
        {
            let progress = self.progress();
            if progress.is_over {
                return Ok(None);
            }
            progress.state.check()?;
        }
        ensure(waits.list.is_null() == (waits.count == 0), CL_INVALID_EVENT_WAIT_LIST)?;
        // Drivers are called without the lock: they may call functions of the program, which come back here.
        let made = make(&self.buffer)?;
        // SAFETY: the context of the queue.
        let event = if waits.event.is_null() { None } else { Some(unsafe { self.new_event() }?) };
        let mut progress = self.progress();
        if progress.is_over {
            return Ok(None);
        }
        progress.state.check()?;
        let mut after = Vec::new();
        for at in 0..waits.count as usize {
            // SAFETY: within the list.
            let event = unsafe { waits.list.add(at).read() };
            ensure(!event.is_null(), CL_INVALID_EVENT_WAIT_LIST)?;
            let Some((_, place)) = progress.events.get(&event.addr()) else {
                // Whatever it waits for is not in the capture.
                progress.state.spoil(name);
                return Err(CL_INVALID_EVENT_WAIT_LIST);
            };
            after.push(*place);
        }
        let Some(command) = made else {
            progress.state.spoil(name);
            return Err(CL_INVALID_OPERATION);
        };
        let mut handle: cl_mutable_command_khr = ptr::null_mut();
        let is_launch = matches!(command, Command::Launch(_));
        let tail = Tail {
            count: 0,
            points: ptr::null(),
            point: ptr::null_mut(),
            handle: if is_launch { &raw mut handle } else { ptr::null_mut() },
        };
        // SAFETY: places of this function.
        let place = unsafe { self.buffer.add(command, &after, tail) }?;
        if let Some((ours, theirs)) = event {
            let raw = theirs.give_away();
            progress.events.insert(raw.addr(), (ours, place));
            // SAFETY: the caller's place.
            unsafe { waits.event.write(raw) };
        }
        Ok(Some(()))
    }

    /// Returns an event that the layer completes: a reference for it, and one for the program.
    ///
    /// # Safety
    /// The buffer's context lives.
    unsafe fn new_event(&self) -> Checked<(Event, Event)> {
        let mut status = CL_SUCCESS;
        // SAFETY: the caller's promise.
        let event = unsafe { calls::clCreateUserEvent(self.buffer.facts.raw_context(), &raw mut status) };
        // SAFETY: a reference that is new.
        let event = unsafe { Event::from_raw(event) };
        ensure(status == CL_SUCCESS, status)?;
        let event = event.ok_or(CL_OUT_OF_HOST_MEMORY)?;
        // SAFETY: a live event.
        let also = unsafe { Event::also(event.raw()) }?;
        Ok((event, also))
    }
}

/// A call that enqueues, if it concerns a capture: then its status is returned, and the driver is not called. `make` returns no command
/// if the call cannot be captured.
///
/// # Safety
/// What the program gave.
#[cold]
pub(super) unsafe fn call(
    queue: cl_command_queue,
    name: &'static str,
    waits: Waits,
    make: impl FnOnce(&Buffer) -> Checked<Option<Command>>,
) -> Option<cl_int> {
    if let Some(capture) = find(queue) {
        let mut taken = Some(());
        let status = enter(|| {
            // SAFETY: as the caller promises.
            taken = unsafe { capture.take(name, waits, make) }?;
            Ok(())
        });
        return taken.map(|()| status);
    }
    // SAFETY: as the caller promises.
    unsafe { elsewhere(name, waits.count, waits.list) }
}

/// An event of a capture is waited for by what is not in the capture: that would never come.
///
/// # Safety
/// A list of the program's.
unsafe fn elsewhere(name: &'static str, count: cl_uint, list: *const cl_event) -> Option<cl_int> {
    if list.is_null() || count == 0 {
        return None;
    }
    // SAFETY: a list of that length.
    let events = unsafe { slice::from_raw_parts(list, count as usize) };
    for capture in all() {
        if events.iter().any(|event| capture.has(*event)) {
            capture.progress().state.spoil(name);
            return Some(CL_INVALID_EVENT_WAIT_LIST);
        }
    }
    None
}

/// A call that waits for a queue, or sends what it has. The driver does it, for what was enqueued before the capture; a strict capture is
/// spoilt by a wait.
pub(super) fn queue(queue: cl_command_queue, waits: bool, name: &'static str) -> Option<cl_int> {
    if !is_active() {
        return None;
    }
    let capture = find(queue)?;
    let mut progress = capture.progress();
    if progress.is_over {
        return None;
    }
    if waits {
        Some(progress.state.wait(capture.mode, name)).filter(|status| *status != CL_SUCCESS)
    } else {
        progress.state.check().err()
    }
}

/// Whether an event is one of a capture that goes on.
pub(super) fn has(event: cl_event) -> bool {
    is_active() && all().iter().any(|capture| capture.has(event))
}

/// What becomes of a wait for events.
pub(super) enum Waiting {
    /// The driver waits for those of the program's list.
    Driver,
    Done(cl_int),
    /// The driver waits for these: the others are captured, and done.
    Others(Vec<cl_event>),
}

/// A call that waits for events, or asks whether they are over.
///
/// # Safety
/// A list of the program's.
pub(super) unsafe fn wait_for_events(count: cl_uint, list: *const cl_event, name: &'static str) -> Waiting {
    if list.is_null() || count == 0 {
        return Waiting::Driver;
    }
    // SAFETY: a list of that length.
    let mut events = unsafe { slice::from_raw_parts(list, count as usize) }.to_vec();
    for capture in all() {
        let before = events.len();
        events.retain(|event| !capture.has(*event));
        if events.len() < before {
            let status = capture.progress().state.wait(capture.mode, name);
            if status != CL_SUCCESS {
                return Waiting::Done(status);
            }
        }
    }
    if events.is_empty() {
        Waiting::Done(CL_SUCCESS)
    } else if events.len() == count as usize {
        Waiting::Driver
    } else {
        Waiting::Others(events)
    }
}

/// `cl_int clBeginCaptureCLG(cl_command_queue queue, const cl_properties *properties)`
///
/// # Safety
/// As the header says.
pub(super) unsafe extern "system" fn begin(queue: cl_command_queue, list: *const cl_ulong) -> cl_int {
    enter(|| {
        // SAFETY: drivers check that it is a queue.
        let facts = unsafe { QueueFacts::of(queue) }?;
        // SAFETY: a list of the program's.
        let mode = Mode::of(&unsafe { buffer::properties(list, &[Mode::NAME]) }?)?;
        ensure(find(queue).is_none(), CL_INVALID_OPERATION)?;
        let mutable = properties::Buffer { is_mutable: true, no_more_groups: false };
        // SAFETY: a queue, of which the driver has told.
        let buffer = unsafe { Buffer::new(queue, facts, mutable, properties::Buffer::mutable_list()) }?;
        let capture = Arc::new(Capture { buffer: Arc::clone(&buffer), mode, progress: Mutex::default() });
        let mut captures = captures();
        let captures = captures.get_or_insert_default();
        if captures.contains_key(&queue.addr()) {
            // Another thread was faster.
            buffer.forget();
            return Err(CL_INVALID_OPERATION);
        }
        captures.insert(queue.addr(), capture);
        COUNT.store(captures.len(), Ordering::Release);
        Ok(())
    })
}

/// `cl_int clEndCaptureCLG(cl_command_queue queue, cl_command_buffer_khr *result)`
///
/// # Safety
/// As the header says.
pub(super) unsafe extern "system" fn end(queue: cl_command_queue, result: *mut cl_command_buffer_khr) -> cl_int {
    enter(|| {
        ensure(!result.is_null(), CL_INVALID_VALUE)?;
        // SAFETY: the caller's place.
        unsafe { result.write(ptr::null_mut()) };
        let capture = {
            let mut captures = captures();
            let all = captures.get_or_insert_default();
            let capture = all.remove(&queue.addr()).ok_or(CL_INVALID_OPERATION)?;
            COUNT.store(all.len(), Ordering::Release);
            capture
        };
        // Without locks: completing an event may call functions of the program.
        let (state, events) = {
            let mut progress = capture.progress();
            progress.is_over = true;
            (std::mem::take(&mut progress.state), std::mem::take(&mut progress.events))
        };
        events.into_values().for_each(|(event, _)| hold::complete(&event));
        if let Err(status) = state.check() {
            capture.buffer.forget();
            return Err(status);
        }
        capture.buffer.finalize()?;
        // SAFETY: the caller's place.
        unsafe { result.write(capture.buffer.raw()) };
        Ok(())
    })
}

/// `cl_int clGetCaptureInfoCLG(cl_command_queue queue, cl_uint name, size_t size, void *value, size_t *size_ret)`
///
/// # Safety
/// As the header says.
pub(super) unsafe extern "system" fn info(
    queue: cl_command_queue,
    name: cl_uint,
    size: usize,
    value: *mut c_void,
    size_ret: *mut usize,
) -> cl_int {
    enter(|| {
        // SAFETY: drivers check that it is a queue.
        unsafe { QueueFacts::of(queue) }?;
        let capture = find(queue);
        let (fault, count) = match &capture {
            Some(capture) => (capture.progress().state.fault(), capture.buffer.len()),
            None => (None, 0),
        };
        let status = match (&capture, fault) {
            (None, _) => Status::None,
            (Some(_), None) => Status::Active,
            (Some(_), Some(_)) => Status::Invalid,
        };
        // SAFETY: the caller's places.
        let status = unsafe {
            match name {
                Status::STATUS => query::answer(&[status as cl_uint], size, value, size_ret),
                Status::COUNT => query::answer(&[count as cl_uint], size, value, size_ret),
                Status::FAULT => {
                    let text: Vec<u8> = fault.unwrap_or_default().bytes().chain([0]).collect();
                    query::answer(&text, size, value, size_ret)
                }
                _ => CL_INVALID_VALUE,
            }
        };
        ensure(status == CL_SUCCESS, status)
    })
}

/// `cl_int clGetCapturedCommandsCLG(cl_command_buffer_khr buffer, cl_uint room, cl_mutable_command_khr *commands, cl_uint *count)`
///
/// # Safety
/// As the header says.
pub(super) unsafe extern "system" fn commands(
    buffer: cl_command_buffer_khr,
    room: cl_uint,
    commands: *mut cl_mutable_command_khr,
    count: *mut cl_uint,
) -> cl_int {
    enter(|| {
        let handles = Buffer::find(buffer)?.handles();
        ensure(commands.is_null() == (room == 0) && !(commands.is_null() && count.is_null()), CL_INVALID_VALUE)?;
        for (at, handle) in handles.iter().take(room as usize).enumerate() {
            // SAFETY: the caller's places.
            unsafe { commands.add(at).write(*handle) };
        }
        if !count.is_null() {
            // SAFETY: the caller's place.
            unsafe { count.write(handles.len() as cl_uint) };
        }
        Ok(())
    })
}
