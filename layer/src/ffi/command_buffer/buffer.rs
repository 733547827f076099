//! Command buffers: making, recording, ending, queries.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use opencl_sys::{
    CL_COMMAND_BUFFER_CONTEXT_KHR, CL_COMMAND_BUFFER_NUM_QUEUES_KHR, CL_COMMAND_BUFFER_PROPERTIES_ARRAY_KHR,
    CL_COMMAND_BUFFER_QUEUES_KHR, CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR, CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR,
    CL_COMMAND_BUFFER_STATE_FINALIZED_KHR, CL_COMMAND_BUFFER_STATE_KHR, CL_COMMAND_BUFFER_STATE_RECORDING_KHR,
    CL_INVALID_COMMAND_BUFFER_KHR, CL_INVALID_COMMAND_QUEUE, CL_INVALID_OPERATION, CL_INVALID_VALUE, CL_QUEUE_CONTEXT,
    CL_QUEUE_DEVICE, CL_QUEUE_ON_DEVICE, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CL_QUEUE_PROFILING_ENABLE,
    CL_QUEUE_PROPERTIES, CL_QUEUE_PROPERTIES_ARRAY, CL_SUCCESS, cl_command_buffer_khr, cl_command_queue, cl_context,
    cl_device_id, cl_int, cl_kernel, cl_mutable_command_khr, cl_uint, cl_ulong,
};

use super::alone::Alone;
use super::command::{Command, Pattern};
use super::owned::Queue;
use super::prepared::{self, Kernels, Prepared};
use super::{calls, enter, extensions, hold, kernels, make, query};
use crate::command_buffer::handles::{Live, Points, References};
use crate::command_buffer::order::Order;
use crate::command_buffer::properties::{self, List};
use crate::command_buffer::ranges::Target;
use crate::command_buffer::{Checked, ensure};

const CL_INCOMPATIBLE_COMMAND_QUEUE_KHR: cl_int = -1140;

static BUFFERS: Live<Buffer> = Live::new();
static COMMANDS: Live<Handle> = Live::new();

/// A command buffer.
#[derive(Debug)]
pub(super) struct Buffer {
    handle: usize,
    references: References,
    /// The queue that it was made for.
    pub(super) queue: Queue,
    pub(super) facts: QueueFacts,
    pub(super) device: query::Facts,
    pub(super) properties: properties::Buffer,
    given: List,
    joins: OnceLock<Command>,
    /// Those of the launches so far, while it is recorded.
    kernels: Mutex<Kernels>,
    contents: Mutex<Contents>,
    updates: Mutex<()>,
}

/// What a queue says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueFacts {
    context: Number<cl_context>,
    device: Number<cl_device_id>,
    pub(super) in_order: bool,
    pub(super) has_times: bool,
    /// Kernels enqueue to it, and the host does not.
    on_device: bool,
    /// It has no other properties.
    is_supported: bool,
    /// From so many commands on a hold pays there.
    pub(super) holds_from: Option<usize>,
}

/// A handle that is compared, and given to drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number<H>(H);

// SAFETY: a number until a driver gets it; objects of OpenCL may be used by any thread.
unsafe impl Send for Number<*mut c_void> {}
// SAFETY: as above.
unsafe impl Sync for Number<*mut c_void> {}

impl QueueFacts {
    /// # Safety
    /// What the program gave for a queue. Drivers check that it is one.
    pub(super) unsafe fn of(queue: cl_command_queue) -> Checked<Self> {
        ensure(!queue.is_null(), CL_INVALID_COMMAND_QUEUE)?;
        let ask = calls::clGetCommandQueueInfo;
        // SAFETY: the caller's promise.
        let (context, device, bits) = unsafe {
            let bits: cl_ulong = query::one(ask, queue, CL_QUEUE_PROPERTIES)?;
            (query::one(ask, queue, CL_QUEUE_CONTEXT)?, query::one(ask, queue, CL_QUEUE_DEVICE)?, bits)
        };
        // SAFETY: a queue. Before OpenCL 3.0 there is no such list.
        let given: Vec<cl_ulong> = unsafe { query::list(ask, queue, CL_QUEUE_PROPERTIES_ARRAY) }.unwrap_or_default();
        let is_plain = |(name, value): (cl_ulong, cl_ulong)| {
            name == cl_ulong::from(CL_QUEUE_PROPERTIES)
                && value & !(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE) == 0
        };
        let is_plain = given.chunks_exact(2).all(|pair| is_plain((pair[0], pair[1])));
        Ok(Self {
            context: Number(context),
            device: Number(device),
            // What other queues do is not known. Intel has some that run commands in the thread that enqueues.
            // SAFETY: the queue's device.
            holds_from: if is_plain { unsafe { hold::pays_from(device) } } else { None },
            on_device: bits & CL_QUEUE_ON_DEVICE != 0,
            in_order: bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE == 0,
            has_times: bits & CL_QUEUE_PROFILING_ENABLE != 0,
            is_supported: bits & !(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE) == 0,
        })
    }

    /// Fails if the host cannot enqueue there.
    pub(super) fn is_of_host(&self) -> Checked {
        ensure(!self.on_device, CL_INVALID_COMMAND_QUEUE)
    }

    /// Fails if command buffers cannot be enqueued there.
    pub(super) fn is_supported(&self) -> Checked {
        ensure(self.is_supported, CL_INCOMPATIBLE_COMMAND_QUEUE_KHR)
    }

    pub(super) fn raw_context(&self) -> cl_context {
        self.context.0
    }

    pub(super) fn context(&self) -> usize {
        calls::number(self.context.0)
    }

    pub(super) fn device(&self) -> cl_device_id {
        self.device.0
    }
}

/// What was recorded.
#[derive(Debug)]
struct Contents {
    /// `CL_COMMAND_BUFFER_STATE_..._KHR`
    state: cl_uint,
    points: Points,
    order: Order,
    /// Submissions take a reference, and look at the list without the lock.
    recorded: Arc<Recorded>,
    /// Handles of commands that the program has.
    handles: Vec<usize>,
}

/// The commands, and the order in which they run.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorded {
    pub(super) commands: Vec<Arc<Command>>,
    /// For each command, those that it runs after.
    pub(super) after: Vec<Arc<[u32]>>,
    /// For each command, whether it was given a wait list.
    pub(super) has_list: Vec<bool>,
    /// When these are done, all are.
    pub(super) leaves: Arc<[u32]>,
}

/// A command that the program has a handle of. It lives as long as its command buffer.
#[derive(Debug)]
pub(super) struct Handle {
    buffer: usize,
    place: usize,
}

/// What all record functions have at their ends.
#[derive(Clone, Copy)]
pub(super) struct Tail {
    pub(super) count: cl_uint,
    pub(super) points: *const cl_uint,
    pub(super) point: *mut cl_uint,
    pub(super) handle: *mut cl_mutable_command_khr,
}

impl Buffer {
    /// Makes a command buffer that has a handle.
    ///
    /// # Safety
    /// It is a queue, and these are its facts.
    pub(super) unsafe fn new(
        queue: cl_command_queue,
        facts: QueueFacts,
        properties: properties::Buffer,
        given: List,
    ) -> Checked<Arc<Self>> {
        facts.is_of_host()?;
        // SAFETY: the queue's device.
        ensure(unsafe { extensions::serves_device(facts.device()) }, CL_INVALID_OPERATION)?;
        // SAFETY: as above.
        let device = unsafe { query::facts(facts.device(), facts.context()) }?;
        // SAFETY: a queue.
        let queue = unsafe { Queue::also(queue) }?;
        Alone::begin();
        Ok(BUFFERS.add(|handle| Self {
            handle,
            references: References::one(),
            queue,
            facts,
            device,
            properties,
            given,
            joins: OnceLock::new(),
            kernels: Mutex::default(),
            contents: Mutex::new(Contents {
                state: CL_COMMAND_BUFFER_STATE_RECORDING_KHR,
                points: Points::default(),
                order: Order::new(facts.in_order),
                recorded: Arc::default(),
                handles: Vec::new(),
            }),
            updates: Mutex::default(),
        }))
    }

    pub(super) fn find(handle: cl_command_buffer_khr) -> Checked<Arc<Self>> {
        BUFFERS.find(handle.addr()).ok_or(CL_INVALID_COMMAND_BUFFER_KHR)
    }

    pub(super) fn raw(&self) -> cl_command_buffer_khr {
        std::ptr::without_provenance_mut(self.handle)
    }

    pub(super) fn target(&self) -> Target {
        Target { context: self.facts.context(), limits: self.device.limits }
    }

    /// Returns the command that waits for several others on a queue that is out of order. It is a fill of four bytes that nobody
    /// reads: there, markers wait for more than their lists on PoCL, and for less on Intel's runtime.
    ///
    /// # Safety
    /// The context lives.
    pub(super) unsafe fn joins(&self) -> Checked<&Command> {
        if let Some(command) = self.joins.get() {
            return Ok(command);
        }
        let zero = [0_u8; 4];
        // SAFETY: the caller's promise, and four bytes.
        let memory = unsafe { make::kept(self, zero.as_ptr().cast(), zero.len()) }?;
        let pattern = Box::new(Pattern([0; 128]));
        Ok(self.joins.get_or_init(|| Command::FillBuffer { memory, pattern, pattern_size: 4, offset: 0, size: 4 }))
    }

    /// Returns a kernel with the arguments that it has now.
    ///
    /// # Safety
    /// What the program gave for a kernel. Drivers check that it is one.
    pub(super) unsafe fn prepare(&self, kernel: cl_kernel) -> Checked<Arc<Prepared>> {
        let kernels = || self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let version = kernels::version(kernel);
        let before = kernels().find(kernel);
        // SAFETY: the caller's promise.
        let prepared = unsafe { prepared::prepare(kernel, &self.facts, version, before) }?;
        let old = kernels().keep(kernel, version, Arc::clone(&prepared));
        drop(old);
        Ok(prepared)
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        // A panic leaves whole commands: they are added at once.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails unless commands may be recorded.
    pub(super) fn is_recording(&self) -> Checked {
        ensure(self.contents().is_recording(), CL_INVALID_OPERATION)
    }

    /// Returns what is to be enqueued, if all of it is there.
    pub(super) fn executable(&self) -> Checked<Arc<Recorded>> {
        let contents = self.contents();
        ensure(contents.state == CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR, CL_INVALID_OPERATION)?;
        Ok(Arc::clone(&contents.recorded))
    }

    /// Returns the places of the commands of sync points.
    ///
    /// # Safety
    /// `tail` is what the program gave.
    pub(super) unsafe fn places(&self, tail: Tail) -> Checked<Vec<u32>> {
        let wrong = opencl_sys::CL_INVALID_SYNC_POINT_WAIT_LIST_KHR;
        ensure(tail.points.is_null() == (tail.count == 0), wrong)?;
        let contents = self.contents();
        // SAFETY: within the list.
        let points = (0..tail.count as usize).map(|at| unsafe { tail.points.add(at).read() });
        points.map(|point| contents.points.find(point).ok_or(wrong)).collect()
    }

    /// Adds a command, and gives the program its sync point and its handle.
    ///
    /// Returns its place.
    ///
    /// # Safety
    /// The places of `tail` are null or have room.
    pub(super) unsafe fn add(&self, command: Command, waits: &[u32], tail: Tail) -> Checked<u32> {
        let mut contents = self.contents();
        // Another thread may have ended the recording meanwhile.
        ensure(contents.is_recording(), CL_INVALID_OPERATION)?;
        let after = contents.order.add(waits, command.role());
        let recorded = Arc::make_mut(&mut contents.recorded);
        let place = recorded.commands.len();
        recorded.commands.push(Arc::new(command));
        recorded.after.push(after.into());
        recorded.has_list.push(!waits.is_empty());
        let point = contents.points.add();
        if !tail.point.is_null() {
            // SAFETY: the caller's promise.
            unsafe { tail.point.write(point) };
        }
        if !tail.handle.is_null() {
            let mut handle = 0;
            COMMANDS.add(|new| {
                handle = new;
                Handle { buffer: self.handle, place }
            });
            contents.handles.push(handle);
            // SAFETY: the caller's promise.
            unsafe { tail.handle.write(std::ptr::without_provenance_mut(handle)) };
        }
        Ok(place as u32)
    }

    /// Ends the recording.
    pub(super) fn finalize(&self) -> Checked {
        let mut contents = self.contents();
        ensure(contents.is_recording(), CL_INVALID_OPERATION)?;
        let leaves = contents.order.leaves().into();
        Arc::make_mut(&mut contents.recorded).leaves = leaves;
        contents.state = contents.finalized_state();
        drop(contents);
        let kernels = std::mem::take(&mut *self.kernels.lock().unwrap_or_else(PoisonError::into_inner));
        drop(kernels);
        Ok(())
    }

    /// Returns the handles of commands that were given out, in the order of the commands.
    pub(super) fn handles(&self) -> Vec<cl_mutable_command_khr> {
        self.contents().handles.iter().map(|handle| std::ptr::without_provenance_mut(*handle)).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.contents().recorded.commands.len()
    }

    /// The program has no handle of it, and gets none.
    pub(super) fn forget(&self) {
        drop(BUFFERS.remove(self.handle));
    }

    /// Changes commands: `change` gets those that are there, and returns new ones with their places. Submissions that were
    /// enqueued keep the old ones.
    pub(super) fn change(&self, change: impl FnOnce(&[Arc<Command>]) -> Checked<Vec<(usize, Command)>>) -> Checked {
        // One update after the other; drivers are called without the lock that submissions take.
        let _one = self.updates.lock().unwrap_or_else(PoisonError::into_inner);
        let before = Arc::clone(&self.contents().recorded);
        let new = change(&before.commands)?;
        drop(before);
        let mut contents = self.contents();
        let recorded = Arc::make_mut(&mut contents.recorded);
        let old: Vec<_> = new
            .into_iter()
            .map(|(place, command)| std::mem::replace(&mut recorded.commands[place], Arc::new(command)))
            .collect();
        if contents.state == CL_COMMAND_BUFFER_STATE_FINALIZED_KHR {
            contents.state = contents.finalized_state();
        }
        drop(contents);
        drop(old);
        Ok(())
    }
}

impl Contents {
    fn is_recording(&self) -> bool {
        self.state == CL_COMMAND_BUFFER_STATE_RECORDING_KHR
    }

    /// The state behind recording: whether all arguments of all launches have values.
    fn finalized_state(&self) -> cl_uint {
        let is_whole = |command: &Arc<Command>| match &**command {
            Command::Launch(launch) => launch.prepared.values.are_whole(),
            _ => true,
        };
        if self.recorded.commands.iter().all(is_whole) {
            CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR
        } else {
            CL_COMMAND_BUFFER_STATE_FINALIZED_KHR
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let handles = std::mem::take(&mut self.contents.get_mut().unwrap_or_else(PoisonError::into_inner).handles);
        for handle in handles {
            COMMANDS.remove(handle);
        }
    }
}

/// Returns a command that the program has a handle of, with its command buffer.
pub(super) fn command(handle: cl_mutable_command_khr) -> Checked<(Arc<Buffer>, usize)> {
    let wrong = opencl_sys::CL_INVALID_MUTABLE_COMMAND_KHR;
    let command = COMMANDS.find(handle.addr()).ok_or(wrong)?;
    let buffer = BUFFERS.find(command.buffer).ok_or(wrong)?;
    Ok((buffer, command.place))
}

/// Returns what is recorded at a place.
pub(super) fn recorded(buffer: &Buffer, place: usize) -> Checked<Arc<Command>> {
    let contents = buffer.contents();
    contents.recorded.commands.get(place).cloned().ok_or(opencl_sys::CL_INVALID_MUTABLE_COMMAND_KHR)
}

/// # Safety
/// As for the C function.
pub(super) unsafe extern "system" fn create(
    count: cl_uint,
    queues: *const cl_command_queue,
    properties: *const cl_ulong,
    status: *mut cl_int,
) -> cl_command_buffer_khr {
    let mut made = std::ptr::null_mut();
    let result = enter(|| {
        ensure(count == 1 && !queues.is_null(), CL_INVALID_VALUE)?;
        // SAFETY: a list of one.
        let queue = unsafe { queues.read() };
        // SAFETY: drivers check that it is a queue.
        let facts = unsafe { QueueFacts::of(queue) }?;
        // SAFETY: a list of the program's.
        let given = unsafe { self::properties(properties, &properties::Buffer::NAMES) }?;
        let properties = properties::Buffer::of(&given)?;
        // SAFETY: a queue, of which the driver has told.
        let buffer = unsafe { Buffer::new(queue, facts, properties, given) }?;
        made = buffer.raw();
        Ok(())
    });
    if !status.is_null() {
        // SAFETY: the caller's place.
        unsafe { status.write(result) };
    }
    made
}

/// Reads a list of properties.
///
/// # Safety
/// `list` is null, or names and values that end with 0.
pub(super) unsafe fn properties(list: *const cl_ulong, known: &[cl_ulong]) -> Checked<List> {
    if list.is_null() {
        return Ok(List::new());
    }
    let mut at = 0;
    properties::read(
        || {
            // SAFETY: names that are not known end the reading, and so does 0.
            let number = unsafe { list.add(at).read() };
            at += 1;
            number
        },
        known,
    )
}

pub(super) unsafe extern "system" fn retain(buffer: cl_command_buffer_khr) -> cl_int {
    enter(|| ensure(Buffer::find(buffer)?.references.retain(), CL_INVALID_COMMAND_BUFFER_KHR))
}

pub(super) unsafe extern "system" fn release(buffer: cl_command_buffer_khr) -> cl_int {
    enter(|| {
        let found = Buffer::find(buffer)?;
        let left = found.references.release().ok_or(CL_INVALID_COMMAND_BUFFER_KHR)?;
        if left == 0 {
            // What drivers still run, they keep.
            drop(BUFFERS.remove(buffer.addr()));
        }
        Ok(())
    })
}

pub(super) unsafe extern "system" fn finalize(buffer: cl_command_buffer_khr) -> cl_int {
    enter(|| Buffer::find(buffer)?.finalize())
}

/// # Safety
/// As for the C function.
pub(super) unsafe extern "system" fn info(
    buffer: cl_command_buffer_khr,
    name: cl_uint,
    size: usize,
    value: *mut c_void,
    size_ret: *mut usize,
) -> cl_int {
    enter(|| {
        let buffer = Buffer::find(buffer)?;
        // SAFETY: the caller's places.
        let status = unsafe {
            match name {
                CL_COMMAND_BUFFER_QUEUES_KHR => query::answer(&[buffer.queue.raw()], size, value, size_ret),
                CL_COMMAND_BUFFER_NUM_QUEUES_KHR => query::answer(&[1 as cl_uint], size, value, size_ret),
                CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR => {
                    query::answer(&[buffer.references.count()], size, value, size_ret)
                }
                CL_COMMAND_BUFFER_STATE_KHR => {
                    let state = buffer.contents().state;
                    query::answer(&[state], size, value, size_ret)
                }
                CL_COMMAND_BUFFER_PROPERTIES_ARRAY_KHR => query::answer(&buffer.given, size, value, size_ret),
                CL_COMMAND_BUFFER_CONTEXT_KHR => query::answer(&[buffer.facts.context.0], size, value, size_ret),
                _ => CL_INVALID_VALUE,
            }
        };
        ensure(status == CL_SUCCESS, status)
    })
}
