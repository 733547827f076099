//! Events: those of commands, those of OpenCL, and those that the program completes.

use std::ffi::c_char;

use rust::{Event, ExecutionStatus, Graph, UserEvent};

use crate::graph::{clg_graph, clg_node, give_node};
use crate::handle::{self, handled};
use crate::objects;
use crate::opencl::{cl_context, cl_event};
use crate::pointers::{self, Target};
use crate::status::{Outcome, clg_status, enter};

/// What a `clg_event` names.
pub struct clg_event_object {
    _private: [u8; 0],
}

/// The event of a command that was enqueued, or of a command that was recorded.
pub type clg_event = *mut clg_event_object;

handled!(Event, 10, "clg_event");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_event_retain(object: clg_event) -> clg_status {
    enter(|| handle::retain::<Event>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_event_release(object: clg_event) -> clg_status {
    enter(|| handle::release::<Event>(object.addr()))
}

/// Wraps and retains a `cl_event`.
///
/// # Safety
/// `event` is null or a live event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_event_from_cl(event: cl_event, result: *mut clg_event) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (place, event) = unsafe { (pointers::place("result", result)?, Event::from_raw(event.cast())?) };
        place.set(handle::new(event)? as clg_event);
        Ok(())
    })
}

/// Returns the `cl_event` of a command that was enqueued, with a reference for the program, which it releases with
/// clReleaseEvent. A recorded command has none.
#[unsafe(no_mangle)]
pub extern "C" fn clg_event_to_cl(event: clg_event, result: *mut cl_event) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(retained(&handle::get::<Event>(event.addr())?)?);
        Ok(())
    })
}

/// Returns the C handle of an event, with a reference for the program.
pub(crate) fn retained(event: &Event) -> Outcome<cl_event> {
    // Its drop would release the reference.
    let event = std::mem::ManuallyDrop::new(event.to_opencl3()?);
    Ok(event.get().cast())
}

/// Blocks until the command has ended. Returns its error if it failed.
#[unsafe(no_mangle)]
pub extern "C" fn clg_event_wait(event: clg_event) -> clg_status {
    enter(|| Ok(handle::get::<Event>(event.addr())?.wait()?))
}

/// Returns the execution status of a command as OpenCL has it: CL_COMPLETE (0), CL_RUNNING (1), CL_SUBMITTED (2) for
/// everything before, or the negative status of a command that failed.
#[unsafe(no_mangle)]
pub extern "C" fn clg_event_status(event: clg_event, result: *mut i32) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(match handle::get::<Event>(event.addr())?.command_execution_status()? {
            ExecutionStatus::Complete => 0,
            ExecutionStatus::Running => 1,
            ExecutionStatus::Failed(status) => status.0,
            _ => 2,
        });
        Ok(())
    })
}

/// Returns the node that a recorded command has become.
#[unsafe(no_mangle)]
pub extern "C" fn clg_event_node(event: clg_event, graph: clg_graph, result: *mut clg_node) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let result = unsafe { pointers::target("result", result) }?;
        let (event, graph) = (handle::get::<Event>(event.addr())?, handle::get::<Graph>(graph.addr())?);
        give_node(graph.node_of(&event)?.to_raw(), result)
    })
}

/// Events that a command waits for, read from C.
///
/// # Safety
/// **caller**.
pub(crate) unsafe fn wait_list(num_events: u32, list: *const clg_event) -> Outcome<Vec<Event>> {
    // SAFETY: **caller**.
    let list = unsafe { pointers::list("event_wait_list", list, num_events as usize) }?;
    let event = |(index, event): (usize, &clg_event)| {
        handle::get::<Event>(event.addr()).map_err(|failure| failure.within(format!("event {index} of the wait list")))
    };
    list.iter().enumerate().map(event).collect()
}

/// Puts an event where C wants it.
pub(crate) fn give_event(event: Event, to: Target<'_, clg_event>) -> Outcome<()> {
    if let Some(to) = to {
        to.set(handle::new(event)? as clg_event);
    }
    Ok(())
}

/// What a `clg_user_event` names.
pub struct clg_user_event_object {
    _private: [u8; 0],
}

/// An event that the program completes.
pub type clg_user_event = *mut clg_user_event_object;

handled!(UserEvent, 5, "clg_user_event");

/// Adds a reference to the object.
#[unsafe(no_mangle)]
pub extern "C" fn clg_user_event_retain(object: clg_user_event) -> clg_status {
    enter(|| handle::retain::<UserEvent>(object.addr()))
}

/// Removes a reference. The last one ends the object; what runs goes on.
#[unsafe(no_mangle)]
pub extern "C" fn clg_user_event_release(object: clg_user_event) -> clg_status {
    enter(|| handle::release::<UserEvent>(object.addr()))
}

/// Makes an event that the program completes.
///
/// # Safety
/// `context` is null or a live context.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_user_event_create(context: cl_context, result: *mut clg_user_event) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let (place, context) = unsafe { (pointers::place("result", result)?, objects::context(context)?) };
        place.set(handle::new(UserEvent::new(&context)?)? as clg_user_event);
        Ok(())
    })
}

/// Completes the event: what waits for it runs.
#[unsafe(no_mangle)]
pub extern "C" fn clg_user_event_complete(event: clg_user_event) -> clg_status {
    enter(|| Ok(handle::get::<UserEvent>(event.addr())?.complete()?))
}

/// Fails the event: what waits for it does not run, and fails with this text.
///
/// # Safety
/// `text` is null or a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clg_user_event_fail(event: clg_user_event, text: *const c_char) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let text = unsafe { pointers::reason(text) }.unwrap_or_else(|| "a user event failed".to_owned());
        Ok(handle::get::<UserEvent>(event.addr())?.fail(text)?)
    })
}

/// Blocks until the event has ended.
#[unsafe(no_mangle)]
pub extern "C" fn clg_user_event_wait(event: clg_user_event) -> clg_status {
    enter(|| Ok(handle::get::<UserEvent>(event.addr())?.wait()?))
}

/// Blocks until the event has ended, but at most for a time, in nanoseconds. Then it returns CLG_NOT_READY.
#[unsafe(no_mangle)]
pub extern "C" fn clg_user_event_wait_for(event: clg_user_event, nanoseconds: u64) -> clg_status {
    enter(|| Ok(handle::get::<UserEvent>(event.addr())?.wait_for(std::time::Duration::from_nanos(nanoseconds))?))
}

/// Returns whether the event has ended, well or not.
#[unsafe(no_mangle)]
pub extern "C" fn clg_user_event_is_done(event: clg_user_event, result: *mut bool) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(handle::get::<UserEvent>(event.addr())?.is_done());
        Ok(())
    })
}

/// Returns the event for wait lists of commands. It shows that the user event has ended, not that it succeeded.
#[unsafe(no_mangle)]
pub extern "C" fn clg_user_event_event(event: clg_user_event, result: *mut clg_event) -> clg_status {
    enter(|| {
        // SAFETY: **caller**.
        let place = unsafe { pointers::place("result", result) }?;
        place.set(handle::new(handle::get::<UserEvent>(event.addr())?.event())? as clg_event);
        Ok(())
    })
}
