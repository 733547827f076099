//! Native commands: functions of the program that enqueue or record OpenCL commands of their own.

use std::ffi::{c_int, c_void};

use rust::{Graph, InContext, NativeCommand, NativeMemory, NativeQueue, NativeRecording, OnDevice, Queue, RecordAbi};

use crate::event::{clg_event, wait_list};
use crate::graph::{add_or_replace, clg_graph, clg_node, clg_node_options, give_node, options, with_options};
use crate::handle;
use crate::objects::{clg_queue, with_slice};
use crate::opencl::{cl_command_buffer_khr, cl_command_queue, cl_context, cl_device_id};
use crate::pointers::{self, Flag, UserData};
use crate::status::{Failure, Outcome, call_program, clg_status, enter};
use crate::submission::{clg_submission, give_submission};
use crate::task::{clg_use, with_use};

/// Memory that a native command declares, as its functions get it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_native_memory {
    /// A `cl_mem` if `is_object`, else an address.
    pub pointer: *mut c_void,
    /// The first byte in the `cl_mem`; 0 for an address, which names the first byte itself.
    pub offset: usize,
    /// The number of bytes.
    pub size: usize,
    /// Whether it is a `cl_mem`.
    pub is_object: Flag,
}

/// What the function of a native command gets: where its commands go.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_native_target {
    /// The in-order `cl_command_queue` to enqueue on; null for a function that records.
    pub queue: cl_command_queue,
    /// The `cl_command_buffer_khr` to record into; null for a function that enqueues.
    pub command_buffer: cl_command_buffer_khr,
    /// Whether functions that record have a `cl_command_properties_khr` argument: since version 0.9.5 of
    /// `cl_khr_command_buffer`.
    pub with_properties: Flag,
    /// The context.
    pub context: cl_context,
    /// The device.
    pub device: cl_device_id,
    /// The memory that the command declares, in the order of the declarations.
    pub memory: *const clg_native_memory,
    /// How many.
    pub num_memory: usize,
}

/// A function of a native command. If it returns anything but 0, the submission or finalize fails, with the text of
/// `clg_fail`. No C++ exception may leave it. The functions of a command are called on any thread, one at a time.
pub type clg_native_function = Option<extern "C" fn(target: *const clg_native_target, user: *mut c_void) -> c_int>;

/// A native command: at least one of the functions is not null.
#[repr(C)]
pub struct clg_native_command {
    /// Enqueues the commands in each submission, or null: the command is recorded once.
    pub enqueue: clg_native_function,
    /// Records the commands once into a command buffer, where the device has them, or null.
    pub record: clg_native_function,
    /// What the functions get.
    pub user: *mut c_void,
    /// Called exactly once when `user` is no longer used, on any thread, also if the node is not added. May be null.
    pub release: Option<extern "C" fn(user: *mut c_void)>,
    /// The memory that the commands use.
    pub uses: *const clg_use,
    /// How many.
    pub num_uses: usize,
}

fn memory_of(memory: NativeMemory<'_>) -> clg_native_memory {
    clg_native_memory {
        pointer: memory.pointer(),
        offset: memory.offset(),
        size: memory.size(),
        is_object: memory.is_object().into(),
    }
}

type Function = extern "C" fn(*const clg_native_target, *mut c_void) -> c_int;

fn call(function: Function, user: &UserData, target: &clg_native_target) -> Result<(), String> {
    call_program(|| function(target, user.pointer))
}

fn enqueue(to: &NativeQueue<'_>, uses: usize, function: Function, user: &UserData) -> Result<(), String> {
    let memory: Vec<_> = (0..uses).map(|index| memory_of(to.memory(index))).collect();
    let target = clg_native_target {
        queue: to.raw().cast(),
        command_buffer: std::ptr::null_mut(),
        with_properties: false.into(),
        context: to.context().raw().cast(),
        device: to.device().raw().cast(),
        memory: memory.as_ptr(),
        num_memory: uses,
    };
    call(function, user, &target)
}

fn record(to: &NativeRecording<'_>, uses: usize, function: Function, user: &UserData) -> Result<(), String> {
    let memory: Vec<_> = (0..uses).map(|index| memory_of(to.memory(index))).collect();
    let target = clg_native_target {
        queue: std::ptr::null_mut(),
        command_buffer: to.raw().cast(),
        with_properties: (to.abi() != RecordAbi::WithoutProperties).into(),
        context: to.context().raw().cast(),
        device: to.device().raw().cast(),
        memory: memory.as_ptr(),
        num_memory: uses,
    };
    call(function, user, &target)
}

/// Reads a native command from C. Its data is given back, whatever is wrong.
///
/// # Safety
/// **caller**.
unsafe fn native_command(command: *const clg_native_command) -> Outcome<NativeCommand> {
    // SAFETY: **caller**.
    let given = unsafe { pointers::read("command", command) }?;
    let user = std::sync::Arc::new(UserData::new(given.user, given.release));
    // SAFETY: **caller**.
    let uses = unsafe { pointers::list("command->uses", given.uses, given.num_uses) }?;
    let count = uses.len();
    let enqueues = given.enqueue.map(|function| {
        let user = user.clone();
        move |to: &NativeQueue<'_>| enqueue(to, count, function, &user)
    });
    let records = given.record.map(|function| {
        let user = user.clone();
        move |to: &NativeRecording<'_>| record(to, count, function, &user)
    });
    let mut command = match (enqueues, records) {
        (Some(enqueues), Some(records)) => NativeCommand::enqueued(enqueues).or_recorded(records),
        (Some(enqueues), None) => NativeCommand::enqueued(enqueues),
        (None, Some(records)) => NativeCommand::recorded(records),
        (None, None) => return Err(Failure::invalid("a native command has neither `enqueue` nor `record`")),
    };
    for one in uses {
        command = with_use!(command, one);
    }
    Ok(command)
}

/// Adds a native command.
///
/// # Safety
/// The commands go to the given queue or command buffer, or are complete before anything begins that is enqueued there
/// next. The functions leave both as they found them, and use no handle that they were given after they return. The
/// commands touch only the memory that is declared, as declared, and memory of their own that several of them may use
/// at a time; what they use lives until `release` is called. The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_native_command(
    graph: clg_graph,
    command: *const clg_native_command,
    options: *const clg_node_options,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**. The command comes first: its data is given back whatever is wrong.
        let command = unsafe { native_command(command) }?;
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?;
        let builder = graph.native_command(command);
        // SAFETY: **caller**: the promise of this function.
        unsafe { add_or_replace!(builder, options, node, |old| old.node()) }
    })
}

/// Enqueues a native command, or records it. `submission` gets a handle of its run, or of what was recorded.
///
/// # Safety
/// As of `clg_graph_native_command`. `event_wait_list` points to as many events as `num_events` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_enqueue_native_command(
    queue: clg_queue,
    command: *const clg_native_command,
    num_events: u32,
    event_wait_list: *const clg_event,
    submission: *mut clg_submission,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let command = unsafe { native_command(command) }?;
        // SAFETY: **caller**.
        let submission = unsafe { pointers::target("submission", submission) }?;
        let queue = handle::get::<Queue>(queue.addr())?;
        // SAFETY: **caller**.
        let waits = unsafe { wait_list(num_events, event_wait_list) }?;
        let waits: Vec<_> = waits.iter().collect();
        // SAFETY: **caller**: the promise of this function.
        let run = unsafe { queue.enqueue_native_command(command, &waits) }?;
        give_submission(run, submission)
    })
}
