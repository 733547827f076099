//! Finalizing, submitting, updates, reports, and executables as sub-graphs.

use std::ffi::{c_char, c_int, c_void};

use rust::{
    Event, EventSignal, EventWait, Executable, Finalize, Fuse, Graph, HostRead, HostWrite, Loops, Node, Path, Queue,
    SubGraph, Submit, UserEvent,
};

use crate::control::{control_of, node_of};
use crate::event::{clg_event, clg_user_event, retained};
use crate::graph::{clg_graph, clg_node, clg_node_options, give_node, options, with_options};
use crate::handle::{self, handled};
use crate::objects::clg_queue;
use crate::opencl::{cl_command_buffer_khr, cl_event};
use crate::pointers::{self, Flag, Target, UserData};
use crate::query;
use crate::status::{Failure, Outcome, clg_status, enter};
use crate::submission::{clg_submission, give_submission, run_of};

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
    /// As CLG_PATH_REPLAY, behind an event that opens when all are enqueued.
    CLG_PATH_GATED = 3,
    /// As CLG_PATH_REPLAY, on several queues.
    CLG_PATH_QUEUES = 4,
}

/// How a loop runs that a condition ends. But for `CLG_LOOPS_AUTO`, no fused kernel does the turns of any loop.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum clg_loops {
    /// clgraph times both ways, and takes the faster one.
    CLG_LOOPS_AUTO = 0,
    /// The host reads the condition before each turn.
    CLG_LOOPS_HOST_DECIDED = 1,
    /// Several turns are enqueued before the host reads whether the loop goes on, where that can be done. The report says why if
    /// it cannot.
    CLG_LOOPS_AHEAD = 2,
}

/// Whether small launches become one: a kernel that does what they do, one after the other. Memory and results stay the same, to the
/// last bit; signs of NaNs may differ, and on NVIDIA's driver and rusticl last bits of floating point.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum clg_fuse {
    /// `CLG_FUSE_AUTO`, or `CLG_FUSE_OFF` on drivers where bits may differ, unless the environment variable CLGRAPH_FUSE says otherwise.
    CLG_FUSE_DEFAULT = 0,
    /// Each launch is a launch.
    CLG_FUSE_OFF = 1,
    /// Fused kernels are built when the graph is finalized. The report says what is not fused, and why.
    CLG_FUSE_NOW = 2,
    /// Fused kernels are built on a thread in the background when submissions have taken twelve times as long as that takes, or as many
    /// milliseconds as the environment variable CLGRAPH_FUSE_AFTER says. They are timed among the program's submissions, and stay
    /// if they are faster.
    CLG_FUSE_AUTO = 3,
}

/// Options of finalizing. All zeros are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_finalize_options {
    /// How it runs: a `clg_path`.
    pub path: i32,
    /// Whether values can change between submissions: see `clg_executable_update`.
    pub updatable: Flag,
    /// Whether submissions record times: see `clg_submission_profile`.
    pub profiling: Flag,
    /// How many submissions can hold results at a time, or 0 for as many as the program likes.
    pub result_slots: usize,
    /// Whether nodes may use the same memory without an order between them after updates; the program then keeps the
    /// order.
    pub allow_conflicts: Flag,
    /// Whether allocations of the graph share no bytes.
    pub separate_memory: Flag,
    /// Whether the path is not found by timing submissions: the one that is known to be good on the driver is taken.
    pub no_autotune: Flag,
    /// How many commands a command buffer holds at most, or 0 for the default.
    pub commands_per_buffer: usize,
    /// A file that keeps what the automatic path has found, or null. The folder beside it, with the name and `.programs`, keeps
    /// fused kernels.
    pub tuning_cache: *const c_char,
    /// How loops run: a `clg_loops`.
    pub loops: i32,
    /// Whether small launches become one: a `clg_fuse`.
    pub fuse: i32,
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

/// An event of a node, for one submission: exactly one of `wait`, `event`, `submission` and `user_event` is not null.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct clg_event_input {
    /// The node.
    pub node: clg_node,
    /// For a node of `clg_graph_wait_event`: a `cl_event` to wait for. That of a submission is complete also if the
    /// submission has failed.
    pub wait: cl_event,
    /// For a node of `clg_graph_wait_event`: the event of a command of `clg_enqueue_...` to wait for.
    pub event: clg_event,
    /// For a node of `clg_graph_wait_event`: a submission to wait for. If it fails, this one fails too.
    pub submission: clg_submission,
    /// A user event: what a node of `clg_graph_wait_event` waits for, or a node of `clg_graph_signal_event` completes.
    pub user_event: clg_user_event,
    /// Whether the node is one of `clg_graph_signal_event`.
    pub signals: Flag,
}

/// What a submission is given. Null in its place is nothing of it.
#[repr(C)]
pub struct clg_submit_options {
    /// Events of OpenCL that the submission waits for, beside what its queue says.
    pub wait_list: *const cl_event,
    /// How many.
    pub num_waits: usize,
    /// Events of commands of `clg_enqueue_...` that it waits for.
    pub events: *const clg_event,
    /// How many.
    pub num_events: usize,
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
    pub node_events: *const clg_event_input,
    /// How many.
    pub num_node_events: usize,
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
                _ if is(clg_path::CLG_PATH_GATED) => Path::Gated,
                _ if is(clg_path::CLG_PATH_QUEUES) => Path::Queues,
                other => return Err(Failure::invalid(format!("{other} is no path (clg_path)"))),
            });
            let is = |loops: clg_loops| options.loops == loops as i32;
            finalize = finalize.loops(match options.loops {
                _ if is(clg_loops::CLG_LOOPS_AUTO) => Loops::Auto,
                _ if is(clg_loops::CLG_LOOPS_HOST_DECIDED) => Loops::HostDecided,
                _ if is(clg_loops::CLG_LOOPS_AHEAD) => Loops::Ahead,
                other => return Err(Failure::invalid(format!("{other} is no way of loops (clg_loops)"))),
            });
            let is = |fuse: clg_fuse| options.fuse == fuse as i32;
            finalize = match options.fuse {
                _ if is(clg_fuse::CLG_FUSE_DEFAULT) => finalize,
                _ if is(clg_fuse::CLG_FUSE_OFF) => finalize.fuse(Fuse::Off),
                _ if is(clg_fuse::CLG_FUSE_NOW) => finalize.fuse(Fuse::Now),
                _ if is(clg_fuse::CLG_FUSE_AUTO) => finalize.fuse(Fuse::Auto),
                other => return Err(Failure::invalid(format!("{other} says nothing of fusing (clg_fuse)"))),
            };
            if options.updatable.is_set() {
                finalize = finalize.updatable();
            }
            if options.profiling.is_set() {
                finalize = finalize.profiling();
            }
            if options.result_slots > 0 {
                finalize = finalize.result_slots(options.result_slots);
            }
            if options.allow_conflicts.is_set() {
                finalize = finalize.allow_conflicts();
            }
            if options.separate_memory.is_set() {
                finalize = finalize.separate_memory();
            }
            if options.no_autotune.is_set() {
                finalize = finalize.autotune(false);
            }
            if options.commands_per_buffer > 0 {
                finalize = finalize.commands_per_buffer(options.commands_per_buffer);
            }
            // SAFETY: **caller**.
            if let Some(file) = unsafe { pointers::text("options->tuning_cache", options.tuning_cache) }? {
                finalize = finalize.tuning_cache(file);
            }
        }
        place.set(handle::new(graph.finalize(finalize)?)? as clg_executable);
        Ok(())
    })
}

/// Reads what a submission is given from C, and takes over the data of its inputs.
///
/// # Safety
/// **caller**.
unsafe fn given<'a>(options: *const clg_submit_options) -> Outcome<(&'a clg_submit_options, Vec<UserData>)> {
    // SAFETY: **caller**.
    let options: &'a clg_submit_options = unsafe { pointers::read("options", options) }?;
    // SAFETY: **caller**.
    let inputs = unsafe { pointers::list("options->inputs", options.inputs, options.num_inputs) }?;
    Ok((options, inputs.iter().map(|input| UserData::new(input.user, input.release)).collect()))
}

/// Whether something that a submission waits for was recorded: then the submission is recorded too.
///
/// # Safety
/// **caller**.
unsafe fn waits_for_nodes(options: &clg_submit_options) -> Outcome<bool> {
    // SAFETY: **caller**.
    for event in unsafe { pointers::list("options->events", options.events, options.num_events) }? {
        if handle::get::<Event>(event.addr())?.node().is_some() {
            return Ok(true);
        }
    }
    // SAFETY: **caller**.
    for run in unsafe { pointers::list("options->submissions", options.submissions, options.num_submissions) }? {
        // Not only executables are recorded: a host task or a native command of a queue is a submission without a sub-graph.
        if run_of(*run)?.submission().event()?.node().is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Gives a submission what C says.
///
/// # Safety
/// **caller**.
unsafe fn fill_in<'a>(
    mut submit: Submit<'a>,
    options: &clg_submit_options,
    users: Vec<UserData>,
) -> Outcome<Submit<'a>> {
    // SAFETY: **caller**.
    let inputs = unsafe { pointers::list("options->inputs", options.inputs, options.num_inputs) }?;
    for (input, user) in inputs.iter().zip(users) {
        let write = HostWrite::<u8>::from_raw(input.write.raw());
        let expected = submit.input_size(&write)?;
        // SAFETY: **caller**.
        let data = unsafe { pointers::data(input.data, input.size, expected, user) }
            .map_err(|failure| failure.within(format!("the input of {}", write.node())))?;
        submit = submit.with(&write, data);
    }
    // SAFETY: **caller**.
    let waits = unsafe { pointers::list("options->wait_list", options.wait_list, options.num_waits) }?;
    for raw in waits {
        // SAFETY: **caller**.
        submit = submit.after(&unsafe { Event::from_raw(raw.cast()) }?);
    }
    // SAFETY: **caller**.
    let events = unsafe { pointers::list("options->events", options.events, options.num_events) }?;
    for event in events {
        submit = submit.after(&handle::get::<Event>(event.addr())?);
    }
    // SAFETY: **caller**.
    let events = unsafe { pointers::list("options->user_events", options.user_events, options.num_user_events) }?;
    for event in events {
        submit = submit.after(&handle::get::<UserEvent>(event.addr())?);
    }
    // SAFETY: **caller**.
    let runs = unsafe { pointers::list("options->submissions", options.submissions, options.num_submissions) }?;
    for run in runs {
        submit = submit.after(run_of(*run)?.submission());
    }
    // SAFETY: **caller**.
    let events = unsafe { pointers::list("options->node_events", options.node_events, options.num_node_events) }?;
    for event in events {
        let wait = EventWait::from_raw(event.node.raw());
        let clg_event_input { wait: raw, event: of_command, submission, user_event, .. } = event;
        let is_given = [!raw.is_null(), !of_command.is_null(), !submission.is_null(), !user_event.is_null()];
        submit = match is_given {
            [false, false, false, true] => {
                let user = handle::get::<UserEvent>(user_event.addr())?;
                if event.signals.is_set() {
                    submit.with_signal(&EventSignal::from_raw(event.node.raw()), &user)
                } else {
                    submit.with_event(&wait, &user)
                }
            }
            _ if event.signals.is_set() => {
                return Err(Failure::invalid(
                    "a node that completes an event is given a `user_event` and nothing else",
                ));
            }
            // SAFETY: **caller**.
            [true, false, false, false] => submit.with_event(&wait, &unsafe { Event::from_raw(raw.cast()) }?),
            [false, true, false, false] => submit.with_event(&wait, &handle::get::<Event>(of_command.addr())?),
            [false, false, true, false] => submit.with_event(&wait, run_of(*submission)?.submission()),
            _ => {
                return Err(Failure::invalid(
                    "an event of a node has exactly one of `wait`, `event`, `submission` and `user_event`",
                ));
            }
        };
    }
    Ok(submit)
}

/// Submits the executable to a queue. It runs after earlier commands of an in-order queue, and after what it is given to
/// wait for.
///
/// `event` gets a `cl_event` of the submission, which the program releases with clReleaseEvent: it is complete when the
/// submission has ended, well or not. On a queue that records, or that waits for a command which was recorded, pass null:
/// the call fails otherwise. `submission` gets a handle. Either may be null; if both are, the submission is detached: only
/// the log knows whether it failed.
///
/// # Safety
/// The pointers are null or point to what their types say, and events are live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_executable_submit(
    executable: clg_executable,
    queue: clg_queue,
    options: *const clg_submit_options,
    event: *mut cl_event,
    submission: *mut clg_submission,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**. Inputs come first: their data is given back whatever is wrong.
        let given = if options.is_null() { None } else { Some(unsafe { given(options) }?) };
        // SAFETY: **caller**.
        let (event, submission) =
            unsafe { (pointers::target("event", event)?, pointers::target("submission", submission)?) };
        let executable = handle::get::<Executable>(executable.addr())?;
        let queue = handle::get::<Queue>(queue.addr())?;
        let mut submit = executable.submit_to(&queue);
        let mut is_recorded = queue.recording_graph().is_ok();
        if let Some((options, users)) = given {
            // SAFETY: **caller**.
            is_recorded = is_recorded || (event.is_some() && unsafe { waits_for_nodes(options) }?);
            // SAFETY: **caller**.
            submit = unsafe { fill_in(submit, options, users) }?;
        }
        if event.is_some() && is_recorded {
            return Err(Failure::invalid(
                "the submission becomes a node, because the queue records or it waits for a recorded command, and a node \
                 has no `cl_event`: pass null for `event`, and take `submission` instead",
            ));
        }
        if event.is_none() && submission.is_none() {
            return Ok(submit.submit_detached()?);
        }
        let run = submit.submit()?;
        if let Some(event) = event {
            event.set(retained(&run.event()?)?);
        }
        give_submission(run, submission)
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

/// Draws the executable as SVG, with the times of a submission that was profiled if one is given. `detail` is a
/// `clg_drawing_detail`.
///
/// # Safety
/// `text` is null or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_executable_to_svg(
    executable: clg_executable,
    detail: c_int,
    submission: clg_submission,
    room: usize,
    text: *mut c_char,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        let executable = handle::get::<Executable>(executable.addr())?;
        let profile = if submission.is_null() { None } else { Some(run_of(submission)?.submission().profile()?) };
        let svg = executable.to_svg(query::detail(detail)?, profile.as_ref())?;
        // SAFETY: **caller**.
        unsafe { pointers::give_text(svg, room, text, size) }
    })
}

/// Draws as SVG where the graph's own memory is, and when its bytes are needed.
///
/// # Safety
/// `text` is null or has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_executable_memory_map(
    executable: clg_executable,
    room: usize,
    text: *mut c_char,
    size: *mut usize,
) -> clg_status {
    enter(|| {
        let svg = handle::get::<Executable>(executable.addr())?.report().memory.to_svg();
        // SAFETY: **caller**.
        unsafe { pointers::give_text(svg, room, text, size) }
    })
}

/// Returns how many bytes the graph's own memory takes.
#[unsafe(no_mangle)]
pub extern "C" fn clg_executable_required_memory(executable: clg_executable, result: *mut usize) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(handle::get::<Executable>(executable.addr())?.required_memory());
        Ok(())
    })
}

/// Lists the command buffers (`cl_command_buffer_khr`) of the executable, for queries: `count` gets how many there are,
/// and `buffers` all of them if it has room. They stay the executable's.
///
/// # Safety
/// `buffers` is null or has room for `room` handles; `count` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_executable_command_buffers(
    executable: clg_executable,
    room: usize,
    buffers: *mut cl_command_buffer_khr,
    count: *mut usize,
) -> clg_status {
    enter(|| {
        let all = handle::get::<Executable>(executable.addr())?.command_buffers();
        let all = all.into_iter().map(|buffer| buffer.cast());
        // SAFETY: **caller**.
        unsafe { pointers::give_list("buffers", all, room, buffers, count) }
    })
}

/// What a `clg_sub_graph` names.
pub struct clg_sub_graph_object {
    _private: [u8; 0],
}

/// A node with all commands of an executable.
pub type clg_sub_graph = *mut clg_sub_graph_object;

handled!(SubGraph, 19, "clg_sub_graph");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_sub_graph_retain(object: clg_sub_graph) -> clg_status {
    enter(|| handle::retain::<SubGraph>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_sub_graph_release(object: clg_sub_graph) -> clg_status {
    enter(|| handle::release::<SubGraph>(object.addr()))
}

/// Adds all commands of an executable as one node. `node` and `sub_graph` may be null; `sub_graph` is for the inputs,
/// results, events, branches and loops of the executable.
///
/// # Safety
/// The pointers are null or point to what their types say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_sub_graph(
    graph: clg_graph,
    executable: clg_executable,
    options: *const clg_node_options,
    node: *mut clg_node,
    sub_graph: *mut clg_sub_graph,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        // SAFETY: **caller**.
        let sub_graph = unsafe { pointers::target("sub_graph", sub_graph) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        let executable = handle::get::<Executable>(executable.addr())?;
        // SAFETY: **caller**.
        let options = unsafe { self::options(options) }?.only_added("a sub-graph")?;
        let added = with_options!(graph.sub_graph(&executable), options).add()?;
        give_node(added.node().to_raw(), node)?;
        give_sub_graph(added, sub_graph)
    })
}

/// Puts a sub-graph where C wants it.
pub(crate) fn give_sub_graph(sub_graph: SubGraph, to: Target<'_, clg_sub_graph>) -> Outcome<()> {
    if let Some(to) = to {
        to.set(handle::new(sub_graph)? as clg_sub_graph);
    }
    Ok(())
}

/// What a node of an executable is, which is also an input, a result, an event, or a branch or loop of the sub-graph.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum clg_port {
    /// A write: an input.
    CLG_PORT_WRITE = 0,
    /// A read: a result.
    CLG_PORT_READ = 1,
    /// A node that waits for an event.
    CLG_PORT_WAIT_EVENT = 2,
    /// A node that completes a user event.
    CLG_PORT_SIGNAL_EVENT = 3,
    /// A branch or a loop: for `clg_submission_turns`.
    CLG_PORT_CONTROL = 4,
}

/// Returns a write, a read, an event, or a branch or loop of the executable as one of the outer graph: for inputs, results,
/// events and turns of its submissions. `port` is a `clg_port`.
#[unsafe(no_mangle)]
pub extern "C" fn clg_sub_graph_port(
    sub_graph: clg_sub_graph,
    port: i32,
    inner: clg_node,
    outer: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let outer = unsafe { pointers::target("outer", outer) }?;
        let sub_graph = handle::get::<SubGraph>(sub_graph.addr())?;
        let (is, inner) = (|of: clg_port| port == of as i32, inner.raw());
        let found = if is(clg_port::CLG_PORT_WRITE) {
            sub_graph.write(&HostWrite::<u8>::from_raw(inner))?.to_raw()
        } else if is(clg_port::CLG_PORT_READ) {
            sub_graph.read(&HostRead::<u8>::from_raw(inner))?.to_raw()
        } else if is(clg_port::CLG_PORT_WAIT_EVENT) {
            sub_graph.wait_event(&EventWait::from_raw(inner))?.to_raw()
        } else if is(clg_port::CLG_PORT_SIGNAL_EVENT) {
            sub_graph.signal_event(&EventSignal::from_raw(inner))?.to_raw()
        } else if is(clg_port::CLG_PORT_CONTROL) {
            node_of(&sub_graph.repeat(&control_of(inner))?)
        } else {
            return Err(Failure::invalid(format!("{port} is no input, result, event, branch or loop (clg_port)")));
        };
        give_node(found, outer)
    })
}
