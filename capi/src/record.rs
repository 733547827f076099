//! Recording: queues whose commands become nodes of a graph.

use rust::{CaptureMode, Graph, Queue, QueueState};

use crate::event::{clg_event, give_event, wait_list};
use crate::graph::{clg_graph, clg_node, give_node};
use crate::handle;
use crate::objects::clg_queue;
use crate::opencl::cl_command_queue;
use crate::pointers;
use crate::status::{Failure, Outcome, clg_status, enter};

/// # Safety
/// **caller**.
unsafe fn queues(queues: *const clg_queue, num_queues: usize) -> Outcome<Vec<Queue>> {
    // SAFETY: **caller**.
    let queues = unsafe { pointers::list("queues", queues, num_queues) }?;
    let queue = |(index, queue): (usize, &clg_queue)| {
        handle::get::<Queue>(queue.addr()).map_err(|failure| failure.within(format!("queue {index}")))
    };
    queues.iter().enumerate().map(queue).collect()
}

/// Makes queues record: `clg_enqueue_...` and `clg_executable_submit` on them add nodes to the graph, and nothing runs.
/// What the program enqueues with OpenCL itself still runs.
///
/// # Safety
/// `queues` points to as many queues as `num_queues` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_begin_recording(
    graph: clg_graph,
    queues: *const clg_queue,
    num_queues: usize,
) -> clg_status {
    enter(|| {
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        Ok(graph.begin_recording(&unsafe { self::queues(queues, num_queues) }?)?)
    })
}

/// Makes queues execute again. `ended`, which may be null, gets how many of them recorded.
///
/// # Safety
/// `queues` points to as many queues as `num_queues` says; `ended` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_end_recording(
    graph: clg_graph,
    queues: *const clg_queue,
    num_queues: usize,
    ended: *mut usize,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let ended = unsafe { pointers::target("ended", ended) }?;
        let graph = handle::get::<Graph>(graph.addr())?;
        // SAFETY: **caller**.
        let count = graph.end_recording(&unsafe { self::queues(queues, num_queues) }?)?;
        if let Some(ended) = ended {
            ended.set(count);
        }
        Ok(())
    })
}

/// Makes all queues that record into the graph execute again, also those that joined by waiting for an event of a
/// recorded command. `ended`, which may be null, gets how many there were.
///
/// # Safety
/// `ended` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_end_all_recording(graph: clg_graph, ended: *mut usize) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let ended = unsafe { pointers::target("ended", ended) }?;
        let count = handle::get::<Graph>(graph.addr())?.end_all_recording();
        if let Some(ended) = ended {
            ended.set(count);
        }
        Ok(())
    })
}

/// What waits do while a queue is captured.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum clg_capture_mode {
    /// A call that waits fails, and spoils the capture.
    CLG_CAPTURE_STRICT = 0,
    /// clFinish, and waits for events of captured commands, do not wait for captured commands, of which nothing has run.
    CLG_CAPTURE_RELAXED = 1,
}

/// Begins a capture: until clg_graph_end_capture, what any code enqueues with OpenCL on the `cl_command_queue` of a queue
/// (clg_queue_to_cl) is to become nodes of the graph, and does not run. `mode` is a `clg_capture_mode`.
///
/// The calls are seen by clgraph's layer: start the program with OPENCL_LAYERS=libclgraph_layer.so, and with CLGRAPH_LAYER=always where
/// the driver has command buffers of its own. docs/layer.md says which calls can be captured, and what spoils a capture. A capture that
/// is not ended keeps its queue.
#[unsafe(no_mangle)]
pub extern "C" fn clg_graph_begin_capture(graph: clg_graph, queue: clg_queue, mode: i32) -> clg_status {
    enter(|| {
        let mode = match mode {
            _ if mode == clg_capture_mode::CLG_CAPTURE_STRICT as i32 => CaptureMode::Strict,
            _ if mode == clg_capture_mode::CLG_CAPTURE_RELAXED as i32 => CaptureMode::Relaxed,
            _ => return Err(Failure::invalid(format!("{mode} is no mode of a capture (clg_capture_mode)"))),
        };
        let graph = handle::get::<Graph>(graph.addr())?;
        Ok(graph.begin_capture(&handle::get::<Queue>(queue.addr())?, mode)?)
    })
}

/// Ends a capture of a queue, and drops what was captured. It fails, and has done so all the same, if a call has spoilt the capture.
#[unsafe(no_mangle)]
pub extern "C" fn clg_queue_drop_capture(queue: clg_queue) -> clg_status {
    enter(|| Ok(handle::get::<Queue>(queue.addr())?.drop_capture()?))
}

/// Writes how many commands were captured since the capture of a queue began: 0 if it is not captured.
#[unsafe(no_mangle)]
pub extern "C" fn clg_queue_captured(queue: clg_queue, result: *mut usize) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(handle::get::<Queue>(queue.addr())?.captured()?.unwrap_or(0));
        Ok(())
    })
}

/// Ends a capture. Its commands become nodes, in the order of the calls. `nodes`, which may be null, gets them; there is `room` for at
/// least as many as clg_queue_captured says, or else the call fails and the capture goes on. `count`, which may be null, gets their
/// number. If anything else fails, the queue executes again, and the graph has not changed.
///
/// As long as the graph or an executable of it lives, the program promises for the captured kernels what clg_graph_kernel asks;
/// that host memory which captured reads write to, and which buffers were made of, is there and is used by nothing else while a
/// submission runs; and that nothing builds the programs of the kernels again.
///
/// # Safety
/// The promise above. `nodes` is null or has room for `room` nodes; `count` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_graph_end_capture(
    graph: clg_graph,
    queue: clg_queue,
    room: usize,
    nodes: *mut clg_node,
    count: *mut usize,
) -> clg_status {
    enter(|| {
        let (graph, queue) = (handle::get::<Graph>(graph.addr())?, handle::get::<Queue>(queue.addr())?);
        // SAFETY: **caller**.
        let number = unsafe { pointers::target("count", count) }?;
        // SAFETY: **caller**.
        unsafe { pointers::target("nodes", nodes) }?;
        let captured = queue.captured()?.unwrap_or(0);
        if !nodes.is_null() && room < captured {
            return Err(Failure::invalid(format!("there are {captured} nodes, and there is room for {room}")));
        }
        // SAFETY: **caller**: the promise of this function.
        let captured = unsafe { graph.end_capture(&queue) }?;
        if let Some(number) = number {
            number.set(captured.len());
        }
        if !nodes.is_null() {
            // Another thread may have enqueued more meanwhile: those nodes are in the graph.
            for (at, node) in captured.iter().take(room).enumerate() {
                // SAFETY: **caller**; there is room.
                unsafe { pointers::place("nodes", nodes.add(at)) }?.set(node.to_raw().into());
            }
        }
        Ok(())
    })
}

/// Returns whether a queue records.
#[unsafe(no_mangle)]
pub extern "C" fn clg_queue_is_recording(queue: clg_queue, result: *mut bool) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(handle::get::<Queue>(queue.addr())?.state() == QueueState::Recording);
        Ok(())
    })
}

/// Returns the graph that a queue records into, with a reference for the program.
#[unsafe(no_mangle)]
pub extern "C" fn clg_queue_recording_graph(queue: clg_queue, result: *mut clg_graph) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        let graph = handle::get::<Queue>(queue.addr())?.recording_graph()?;
        place.set(handle::new(graph)? as clg_graph);
        Ok(())
    })
}

/// Returns the `cl_command_queue`, without a reference for the program.
#[unsafe(no_mangle)]
pub extern "C" fn clg_queue_to_cl(queue: clg_queue, result: *mut cl_command_queue) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(handle::get::<Queue>(queue.addr())?.raw().cast());
        Ok(())
    })
}

/// Records a node that waits for an event, which each submission is given for it. The queue records.
///
/// # Safety
/// `event_wait_list` points to as many events as `num_events` says; `event` and `node` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_record_wait_event(
    queue: clg_queue,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        let queue = handle::get::<Queue>(queue.addr())?;
        // SAFETY: **caller**.
        let waits = unsafe { wait_list(num_events, event_wait_list) }?;
        let (wait, recorded) = queue.record_event_wait(&waits.iter().collect::<Vec<_>>())?;
        give_node(wait.to_raw(), node)?;
        give_event(recorded, event)
    })
}

/// Records a node that completes a user event, which each submission is given for it. The queue records.
///
/// # Safety
/// As of `clg_record_wait_event`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_record_signal_event(
    queue: clg_queue,
    num_events: u32,
    event_wait_list: *const clg_event,
    event: *mut clg_event,
    node: *mut clg_node,
) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let node = unsafe { pointers::target("node", node) }?;
        // SAFETY: **caller**.
        let event = unsafe { pointers::target("event", event) }?;
        let queue = handle::get::<Queue>(queue.addr())?;
        // SAFETY: **caller**.
        let waits = unsafe { wait_list(num_events, event_wait_list) }?;
        let (signal, recorded) = queue.record_event_signal(&waits.iter().collect::<Vec<_>>())?;
        give_node(signal.to_raw(), node)?;
        give_event(recorded, event)
    })
}
