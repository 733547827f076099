//! Finalizing, submitting, results, updates, reports.

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rust::{
    DrawingDetail, Event, EventSignal, EventWait, Executable, Finalize, Graph, HostRead, HostWrite, Node, Path, Queue,
    ResultGuard, Submission, Submit, UserEvent,
};

use crate::graph::{clg_graph, clg_node};
use crate::handle::{self, handled};
use crate::objects::{clg_queue, clg_user_event};
use crate::pointers::{self, UserData};
use crate::status::{Failure, Outcome, clg_status, enter};

/// A submission, with the results that the program looks at.
#[derive(Clone)]
pub(crate) struct Run(Arc<RunInner>);

struct RunInner {
    submission: Submission,
    results: Mutex<Vec<(clg_node, ResultGuard<u8>)>>,
}

/// What a `clg_executable` names.
pub struct clg_executable_object {
    _private: [u8; 0],
}

/// A finalized graph, which can be submitted.
pub type clg_executable = *mut clg_executable_object;

handled!(Executable, 8, "clg_executable");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_executable_retain(object: clg_executable) -> clg_status {
    enter(|| handle::retain::<Executable>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_executable_release(object: clg_executable) -> clg_status {
    enter(|| handle::release::<Executable>(object.addr()))
}

/// What a `clg_submission` names.
pub struct clg_submission_object {
    _private: [u8; 0],
}

/// One run of an executable.
pub type clg_submission = *mut clg_submission_object;

handled!(Run, 9, "clg_submission");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_submission_retain(object: clg_submission) -> clg_status {
    enter(|| handle::retain::<Run>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_submission_release(object: clg_submission) -> clg_status {
    enter(|| handle::release::<Run>(object.addr()))
}

/// How an executable runs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum clg_path {
    /// clgraph times the ways that may pay, and takes the fastest.
    CLG_PATH_AUTO = 0,
    /// Command buffers (`cl_khr_command_buffer`), where the device has them.
    CLG_PATH_NATIVE = 1,
    /// Commands are enqueued one by one.
    CLG_PATH_REPLAY = 2,
}

/// Options of finalizing. All zeros are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_finalize_options {
    /// How it runs: a `clg_path`.
    pub path: i32,
    /// Whether values can change between submissions: see `clg_executable_update`.
    pub updatable: bool,
    /// Whether submissions record times: see `clg_submission_profile`.
    pub profiling: bool,
    /// How many submissions can hold results at a time, or 0 for as many as the program likes.
    pub result_slots: usize,
}

/// Data of a write, for one submission.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_input {
    /// The write.
    pub write: clg_node,
    /// The data, of as many bytes as the node writes.
    pub data: *const c_void,
    /// The number of bytes.
    pub size: usize,
    /// Null: the data is copied. Else the data is used where it is, until this is called with `user`; it is called
    /// exactly once, on any thread, also if the submission fails.
    pub release: Option<extern "C" fn(user: *mut c_void)>,
    /// What `release` gets.
    pub user: *mut c_void,
}

/// An event of a node, for one submission: exactly one of `wait` and `user_event` is not null.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_event_input {
    /// The node.
    pub node: clg_node,
    /// For a node of `clg_graph_wait_event`: a `cl_event` to wait for.
    pub wait: *mut c_void,
    /// A user event: what a node of `clg_graph_wait_event` waits for, or a node of `clg_graph_signal_event` completes.
    pub user_event: clg_user_event,
    /// Whether the node is one of `clg_graph_signal_event`.
    pub signals: bool,
}

/// What a submission is given. Null in its place is nothing of it.
#[repr(C)]
pub struct clg_submit_options {
    /// Events (`cl_event`) that the submission waits for, beside what its queue says.
    pub wait_list: *const *mut c_void,
    /// How many.
    pub num_waits: usize,
    /// User events that it waits for.
    pub user_events: *const clg_user_event,
    /// How many.
    pub num_user_events: usize,
    /// Submissions that it waits for.
    pub submissions: *const clg_submission,
    /// How many.
    pub num_submissions: usize,
    /// Inputs.
    pub inputs: *const clg_input,
    /// How many.
    pub num_inputs: usize,
    /// Events of nodes.
    pub events: *const clg_event_input,
    /// How many.
    pub num_events: usize,
}

/// Copies a result to memory of C, which must have its size.
///
/// # Safety
/// **caller**: `data` is null or has room for `size` bytes.
pub(crate) unsafe fn copy_out(result: &[u8], data: *mut c_void, size: usize) -> Outcome<()> {
    if result.len() != size {
        return Err(Failure::invalid(format!("the result has {} bytes, and there is room for {size}", result.len())));
    }
    if data.is_null() && size > 0 {
        return Err(Failure::null("data"));
    }
    if size > 0 {
        // SAFETY: the caller's promise; there is room.
        unsafe { std::ptr::copy_nonoverlapping(result.as_ptr(), data.cast::<u8>(), size) };
    }
    Ok(())
}

/// Plans the graph for its device and prepares everything that a submission needs. The graph does not change.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_finalize(
    graph: clg_graph,
    options: *const clg_finalize_options,
    result: *mut clg_executable,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        let mut finalize = Finalize::new();
        if !options.is_null() {
            // SAFETY: **caller**.
            let options = unsafe { pointers::read("options", options) }?;
            let is = |path: clg_path| options.path == path as i32;
            finalize = finalize.path(match options.path {
                _ if is(clg_path::CLG_PATH_AUTO) => Path::Auto,
                _ if is(clg_path::CLG_PATH_NATIVE) => Path::Native,
                _ if is(clg_path::CLG_PATH_REPLAY) => Path::Replay,
                other => return Err(Failure::invalid(format!("{other} is no path (clg_path)"))),
            });
            if options.updatable {
                finalize = finalize.updatable();
            }
            if options.profiling {
                finalize = finalize.profiling();
            }
            if options.result_slots > 0 {
                finalize = finalize.result_slots(options.result_slots);
            }
        }
        place.set(handle::new(graph.finalize(finalize)?)? as clg_executable);
        Ok(())
    })
}

/// Gives a submission what C says.
///
/// # Safety
/// **caller**.
unsafe fn fill_in<'a>(mut submit: Submit<'a>, options: &clg_submit_options) -> Outcome<Submit<'a>> {
    // SAFETY: **caller**. Inputs come first: their data is given back whatever is wrong with the rest.
    let inputs = unsafe { pointers::list("options->inputs", options.inputs, options.num_inputs) }?;
    let users: Vec<UserData> = inputs.iter().map(|input| UserData::new(input.user, input.release)).collect();
    for (input, user) in inputs.iter().zip(users) {
        // SAFETY: **caller**.
        let data = unsafe { pointers::data(input.data, input.size, user) }?;
        submit = submit.with(&HostWrite::<u8>::from_raw(input.write.raw()), data);
    }
    // SAFETY: **caller**.
    let waits = unsafe { pointers::list("options->wait_list", options.wait_list, options.num_waits) }?;
    for raw in waits {
        // SAFETY: **caller**.
        submit = submit.after(&unsafe { Event::from_raw(*raw) }?);
    }
    // SAFETY: **caller**.
    let events = unsafe { pointers::list("options->user_events", options.user_events, options.num_user_events) }?;
    for event in events {
        submit = submit.after(&handle::get::<UserEvent>(event.addr())?);
    }
    // SAFETY: **caller**.
    let runs = unsafe { pointers::list("options->submissions", options.submissions, options.num_submissions) }?;
    for run in runs {
        submit = submit.after(&handle::get::<Run>(run.addr())?.0.submission);
    }
    // SAFETY: **caller**.
    let events = unsafe { pointers::list("options->events", options.events, options.num_events) }?;
    for event in events {
        let wait = EventWait::from_raw(event.node.raw());
        submit = match (event.wait.is_null(), event.user_event.is_null()) {
            // SAFETY: **caller**.
            (false, true) => submit.with_event(&wait, &unsafe { Event::from_raw(event.wait) }?),
            (true, false) => {
                let user = handle::get::<UserEvent>(event.user_event.addr())?;
                if event.signals {
                    submit.with_signal(&EventSignal::from_raw(event.node.raw()), &user)
                } else {
                    submit.with_event(&wait, &user)
                }
            }
            _ => return Err(Failure::invalid("an event of a node has exactly one of `wait` and `user_event`")),
        };
    }
    Ok(submit)
}

/// Submits the executable to a queue. It runs after earlier commands of an in-order queue, and after what it is given to
/// wait for.
///
/// `event` gets a `cl_event` of the submission, which the program releases with clReleaseEvent: it is complete when the
/// submission has ended, well or not. `submission` gets a handle. Either may be null; if both are, the submission is
/// detached: only the log knows whether it failed.
///
/// # Safety
/// The pointers are null or point to what their types say, and events are live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_executable_submit(
    executable: clg_executable,
    queue: clg_queue,
    options: *const clg_submit_options,
    event: *mut *mut c_void,
    submission: *mut clg_submission,
) -> clg_status {
    enter(|| {
        let executable = handle::get::<Executable>(executable.addr())?;
        let queue = handle::get::<Queue>(queue.addr())?;
        let mut submit = executable.submit_to(&queue);
        if !options.is_null() {
            // SAFETY: **caller**.
            submit = unsafe { fill_in(submit, pointers::read("options", options)?) }?;
        }
        if event.is_null() && submission.is_null() {
            return Ok(submit.submit_detached()?);
        }
        let run = submit.submit()?;
        if !event.is_null() {
            // The program takes over a reference.
            let raw = run.event()?.to_opencl3()?;
            let place: *mut *mut c_void = event;
            // SAFETY: **caller**.
            unsafe { pointers::place("event", place) }?.set(raw.get());
            std::mem::forget(raw);
        }
        if !submission.is_null() {
            let run = Run(Arc::new(RunInner { submission: run, results: Mutex::default() }));
            // SAFETY: **caller**.
            unsafe { pointers::place("submission", submission) }?.set(handle::new(run)? as clg_submission);
        }
        Ok(())
    })
}

fn run_of(submission: clg_submission) -> Outcome<Run> {
    handle::get::<Run>(submission.addr())
}

/// Blocks until the submission has ended. Returns its error if it failed.
#[unsafe(no_mangle)]
pub extern "C" fn clg_submission_wait(submission: clg_submission) -> clg_status {
    enter(|| Ok(run_of(submission)?.0.submission.wait()?))
}

/// Blocks until the submission has ended, but at most for a time, in nanoseconds. Then it returns CLG_NOT_READY.
#[unsafe(no_mangle)]
pub extern "C" fn clg_submission_wait_for(submission: clg_submission, nanoseconds: u64) -> clg_status {
    enter(|| Ok(run_of(submission)?.0.submission.wait_for(Duration::from_nanos(nanoseconds))?))
}

/// Returns whether the submission has ended, well or not.
#[unsafe(no_mangle)]
pub extern "C" fn clg_submission_is_done(submission: clg_submission, result: *mut bool) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(run_of(submission)?.0.submission.is_done()?);
        Ok(())
    })
}

/// Copies the result of a read. `size` is the size of the read.
///
/// # Safety
/// `data` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_submission_get(
    submission: clg_submission,
    read: clg_node,
    data: *mut c_void,
    size: usize,
) -> clg_status {
    enter(|| {
        let result = run_of(submission)?.0.submission.get(&HostRead::<u8>::from_raw(read.raw()))?;
        // SAFETY: **caller**.
        unsafe { copy_out(&result, data, size) }
    })
}

/// Returns where the result of a read is. It stays there, and does not change, until the last reference to the
/// submission is released.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_submission_result(
    submission: clg_submission,
    read: clg_node,
    data: *mut *const c_void,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (data, size) = unsafe { (pointers::place("data", data)?, pointers::place("size", size)?) };
        let run = run_of(submission)?;
        let result = run.0.submission.get(&HostRead::<u8>::from_raw(read.raw()))?;
        data.set(result.as_ptr().cast());
        size.set(result.len());
        let mut results = run.0.results.lock().unwrap_or_else(PoisonError::into_inner);
        if !results.iter().any(|(node, _)| node.raw() == read.raw()) {
            results.push((read, result));
        }
        Ok(())
    })
}

/// Calls a function when the submission has ended: with CLG_SUCCESS and null, or with the kind and the text of its
/// error. The text is valid during the call. The function runs on a thread of clgraph, one such function after the
/// other; it may call clgraph. `release` is called exactly once when `user` is no longer used.
///
/// # Safety
/// The functions may be called on any thread. No C++ exception may leave them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_submission_on_complete(
    submission: clg_submission,
    function: Option<extern "C" fn(status: clg_status, text: *const c_char, user: *mut c_void)>,
    user: *mut c_void,
    release: Option<extern "C" fn(user: *mut c_void)>,
) -> clg_status {
    let user = UserData::new(user, release);
    enter(|| {
        let function = function.ok_or_else(|| Failure::null("function"))?;
        run_of(submission)?.0.submission.on_complete(move |outcome| {
            let user = user;
            match outcome {
                Ok(()) => function(clg_status::CLG_SUCCESS, std::ptr::null(), user.pointer),
                Err(error) => {
                    let failure = Failure::from(error);
                    let (status, text) = (failure.status(), failure.into_c_text());
                    function(status, text.as_ptr(), user.pointer);
                }
            }
        });
        Ok(())
    })
}

/// Applies the current values of nodes to the executable, for later submissions: values of parameters, ranges, and
/// launches that replaced others. It applies all of them or, if it fails, none.
///
/// # Safety
/// `nodes` points to as many nodes as `num_nodes` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_executable_update(
    executable: clg_executable,
    nodes: *const clg_node,
    num_nodes: usize,
) -> clg_status {
    enter(|| {
        let executable = handle::get::<Executable>(executable.addr())?;
        // SAFETY: **caller**.
        match unsafe { pointers::list("nodes", nodes, num_nodes) }? {
            [node] => Ok(executable.update(&node.node())?),
            nodes => {
                let nodes: Vec<Node> = nodes.iter().map(|node| node.node()).collect();
                Ok(executable.update(&nodes)?)
            }
        }
    })
}

/// Applies the current values of all nodes of a graph that was built in the same way.
#[unsafe(no_mangle)]
pub extern "C" fn clg_executable_update_from(executable: clg_executable, graph: clg_graph) -> clg_status {
    enter(|| {
        let executable = handle::get::<Executable>(executable.addr())?;
        Ok(executable.update_from(&handle::get::<Graph>(graph.addr())?)?)
    })
}

/// Writes what was decided for the executable, and why. `size` gets the number of bytes with the zero at the end.
///
/// # Safety
/// `text` is null or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_executable_report(
    executable: clg_executable,
    room: usize,
    text: *mut c_char,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        let report = handle::get::<Executable>(executable.addr())?.report().to_string();
        // SAFETY: **caller**.
        unsafe { pointers::give_text(report, room, text, size) }
    })
}

/// Draws the executable as SVG, with the times of a submission that was profiled if one is given.
///
/// # Safety
/// `text` is null or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_executable_to_svg(
    executable: clg_executable,
    submission: clg_submission,
    room: usize,
    text: *mut c_char,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        let executable = handle::get::<Executable>(executable.addr())?;
        let profile = if submission.is_null() { None } else { Some(run_of(submission)?.0.submission.profile()?) };
        let svg = executable.to_svg(DrawingDetail::default(), profile.as_ref())?;
        // SAFETY: **caller**.
        unsafe { pointers::give_text(svg, room, text, size) }
    })
}

/// Writes the times of a submission and of its nodes as a table. The executable was finalized with `profiling`.
///
/// # Safety
/// `text` is null or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_submission_profile(
    submission: clg_submission,
    room: usize,
    text: *mut c_char,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        let profile = run_of(submission)?.0.submission.profile()?.to_string();
        // SAFETY: **caller**.
        unsafe { pointers::give_text(profile, room, text, size) }
    })
}

/// Returns the name of a status, for example "CLG_INVALID". Never null.
#[unsafe(no_mangle)]
pub extern "C" fn clg_status_name(status: c_int) -> *const c_char {
    match status {
        0 => c"CLG_SUCCESS",
        1 => c"CLG_INVALID",
        2 => c"CLG_FEATURE_NOT_SUPPORTED",
        3 => c"CLG_KERNEL_NOT_SUPPORTED",
        4 => c"CLG_OUT_OF_MEMORY",
        5 => c"CLG_DRIVER",
        6 => c"CLG_FAILED",
        7 => c"CLG_NOT_READY",
        8 => c"CLG_DEFECT",
        _ => c"unknown status",
    }
    .as_ptr()
}
