//! Running a command buffer: its commands are enqueued, with events where the queue does not order them.
#![allow(unsafe_code)]

use std::ptr;
use std::slice;

use opencl_sys::{
    CL_INVALID_CONTEXT, CL_INVALID_DEVICE, CL_INVALID_VALUE, CL_OUT_OF_RESOURCES, CL_SUCCESS, cl_command_buffer_khr,
    cl_command_queue, cl_event, cl_int, cl_uint,
};

use super::alone::Alone;
use super::buffer::{Buffer, QueueFacts, Recorded};
use super::capture::Waits;
use super::command::Command;
use super::hold::Hold;
use super::owned::Event;
use super::{capture, enter, events, query};
use crate::command_buffer::{Checked, ensure};

/// # Safety
/// As for the C function.
pub(super) unsafe extern "system" fn enqueue(
    count: cl_uint,
    queues: *mut cl_command_queue,
    buffer: cl_command_buffer_khr,
    waits_count: cl_uint,
    waits: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    enter(|| {
        let buffer = Buffer::find(buffer)?;
        let recorded = buffer.executable()?;
        ensure(queues.is_null() == (count == 0) && count <= 1, CL_INVALID_VALUE)?;
        let (queue, facts) = if queues.is_null() {
            (buffer.queue.raw(), buffer.facts)
        } else {
            // SAFETY: a list of one, and drivers check that it is a queue.
            unsafe { other_queue(&buffer, queues.read()) }?
        };
        facts.is_supported()?;
        // One command buffer cannot be a command of another one.
        let name = "clEnqueueCommandBufferKHR";
        let tail = Waits { count: waits_count, list: waits, event };
        if capture::is_active() {
            // SAFETY: what the program gave.
            if let Some(status) = unsafe { capture::call(queue, name, tail, |_| Ok(None)) } {
                return Err(status);
            }
        }
        // SAFETY: what the program gave.
        unsafe { query::events(facts.context(), waits_count, waits) }?;
        let waits =
            // SAFETY: a list of that length.
            if waits_count == 0 { &[] } else { unsafe { slice::from_raw_parts(waits, waits_count as usize) } };
        // SAFETY: the command buffer's context lives.
        let joins = if facts.in_order { None } else { Some(unsafe { buffer.joins() }?) };
        let run = Run { queue, recorded: &recorded, wants_event: !event.is_null(), has_times: facts.has_times, joins };
        let is_long = facts.in_order && facts.holds_from.is_some_and(|long| recorded.commands.len() >= long);
        // SAFETY: the context lives as long as the queue.
        let hold = if is_long { unsafe { Hold::new(facts.raw_context()) } } else { None };
        // SAFETY: a queue of the context that all objects have, and events of it.
        let done =
            unsafe { if facts.in_order { run.in_order(waits, hold.as_ref()) } else { run.out_of_order(waits) } }?;
        drop(hold);
        if let Some(done) = done {
            let returned = done.last.give_away();
            events::returned(returned, done.first);
            // SAFETY: the caller's place.
            unsafe { event.write(returned) };
        }
        Ok(())
    })
}

/// A queue in place of the one that the command buffer was made for.
///
/// # Safety
/// Drivers check that it is a queue.
unsafe fn other_queue(buffer: &Buffer, queue: cl_command_queue) -> Checked<(cl_command_queue, QueueFacts)> {
    if queue == buffer.queue.raw() {
        return Ok((queue, buffer.facts));
    }
    // SAFETY: the caller's promise.
    let facts = unsafe { QueueFacts::of(queue) }?;
    ensure(facts.device() == buffer.facts.device(), CL_INVALID_DEVICE)?;
    ensure(facts.context() == buffer.facts.context(), CL_INVALID_CONTEXT)?;
    Ok((queue, facts))
}

/// One submission.
struct Run<'a> {
    queue: cl_command_queue,
    recorded: &'a Recorded,
    wants_event: bool,
    has_times: bool,
    /// On a queue that is out of order: what waits for several commands.
    joins: Option<&'a Command>,
}

/// The event that the program gets, and the one that has the times of the beginning, if that is another one.
struct Done {
    last: Event,
    first: Option<Event>,
}

impl Run<'_> {
    /// One command after the other. All commands wait for the events that the program gave, not only the first one: if one of them
    /// fails, nothing runs. The first one waits for the hold, too.
    ///
    /// # Safety
    /// The queue, the objects and the events are of one context.
    unsafe fn in_order(&self, waits: &[cl_event], hold: Option<&Hold>) -> Checked<Option<Done>> {
        let _alone = Alone::on(self.queue);
        let mut work = self.recorded.commands.iter().filter(|command| command.is_work()).peekable();
        // SAFETY: the caller's promise, here and below.
        let gate = unsafe { self.gate(waits) }?;
        let gate = gate.waits(waits);
        if work.peek().is_none() {
            return if self.wants_event || !gate.is_empty() {
                // SAFETY: as above.
                let last = unsafe { self.marker(gate) }?;
                Ok(self.wants_event.then_some(Done { last, first: None }))
            } else {
                Ok(None)
            };
        }
        let mut first = None;
        let mut is_first = true;
        while let Some(command) = work.next() {
            let is_last = work.peek().is_none();
            let asks = self.wants_event && (is_last || is_first && self.has_times);
            let event = match hold.filter(|_| is_first).map(|hold| hold.and(gate)) {
                // SAFETY: as above.
                Some((list, count)) => unsafe { self.command(command, &list[..count], asks) }?,
                // SAFETY: as above.
                None => unsafe { self.command(command, gate, asks) }?,
            };
            if is_last {
                return Ok(event.map(|last| Done { last, first }));
            }
            if is_first {
                first = event;
            }
            is_first = false;
        }
        Ok(None)
    }

    /// Each command waits for those that it runs after.
    ///
    /// # Safety
    /// As for [`Self::in_order`].
    unsafe fn out_of_order(&self, waits: &[cl_event]) -> Checked<Option<Done>> {
        // SAFETY: the caller's promise, here and below.
        let gate = unsafe { self.gate(waits) }?;
        let gate = gate.waits(waits);
        let mut events: Vec<Event> = Vec::with_capacity(self.recorded.commands.len() + 1);
        // For each command the event that it ends with, by its place in `events`: none if it ends when the gate opens.
        let mut ends: Vec<Option<usize>> = Vec::with_capacity(self.recorded.commands.len());
        let mut list: Vec<cl_event> = Vec::new();
        for (command, after) in self.recorded.commands.iter().zip(&self.recorded.after) {
            let mut places: Vec<usize> = after.iter().filter_map(|before| ends[*before as usize]).collect();
            places.sort_unstable();
            places.dedup();
            list.clear();
            list.extend(places.iter().map(|place| events[*place].raw()));
            let on = if list.is_empty() { gate } else { &list };
            let event = if command.is_work() {
                // SAFETY: as above.
                unsafe { self.command(command, on, true) }?
            } else if list.len() > 1 {
                // SAFETY: as above.
                Some(unsafe { self.marker(on) }?)
            } else {
                None
            };
            match event {
                Some(event) => {
                    ends.push(Some(events.len()));
                    events.push(event);
                }
                // It ends with the one that it waits for.
                None => ends.push(places.first().copied()),
            }
        }
        if !self.wants_event {
            return Ok(None);
        }
        let mut places: Vec<usize> = self.recorded.leaves.iter().filter_map(|leaf| ends[*leaf as usize]).collect();
        places.sort_unstable();
        places.dedup();
        let single = if let [one] = *places { Some(one) } else { None };
        list.clear();
        list.extend(places.iter().map(|place| events[*place].raw()));
        let marker = match single {
            Some(_) => None,
            // SAFETY: as above.
            None => Some(unsafe { self.marker(if list.is_empty() { gate } else { &list }) }?),
        };
        // The first command's event, unless it is the last one's, too.
        let mut kept = events.into_iter().enumerate().filter(|(place, _)| *place == 0 || Some(*place) == single);
        let (mut first, mut last) = (None, marker);
        for (place, event) in &mut kept {
            if Some(place) == single {
                last = Some(event);
            } else if self.has_times {
                first = Some(event);
            }
        }
        let last = last.ok_or(CL_OUT_OF_RESOURCES)?;
        Ok(Some(Done { last, first }))
    }

    /// Makes one event of several.
    ///
    /// # Safety
    /// As for [`Self::in_order`].
    unsafe fn gate(&self, waits: &[cl_event]) -> Checked<Gate> {
        // SAFETY: as the caller promises.
        Ok(Gate(if waits.len() > 1 { Some(unsafe { self.marker(waits) }?) } else { None }))
    }

    /// # Safety
    /// As for [`Self::in_order`].
    unsafe fn marker(&self, waits: &[cl_event]) -> Checked<Event> {
        let command = self.joins.unwrap_or(&Command::Marker);
        // SAFETY: as the caller promises.
        unsafe { self.command(command, waits, true) }?.ok_or(CL_OUT_OF_RESOURCES)
    }

    /// # Safety
    /// As for [`Self::in_order`].
    unsafe fn command(&self, command: &Command, waits: &[cl_event], asks: bool) -> Checked<Option<Event>> {
        let mut event = ptr::null_mut();
        let place = if asks { &raw mut event } else { ptr::null_mut() };
        // SAFETY: as the caller promises; there is room for an event.
        let status = unsafe { command.enqueue(self.queue, waits, place) };
        ensure(status == CL_SUCCESS, status)?;
        // SAFETY: a reference that is new.
        Ok(unsafe { Event::from_raw(event) })
    }
}

/// What commands wait for: at most one event.
struct Gate(Option<Event>);

impl Gate {
    fn waits<'a>(&'a self, given: &'a [cl_event]) -> &'a [cl_event] {
        match &self.0 {
            Some(event) => event.as_list(),
            None => given,
        }
    }
}
