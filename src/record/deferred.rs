//! Commands that wait for an event that may fail.
//!
//! Some drivers crash, hang, run the dependent commands or lose the queue when an event in a wait list fails, and after
//! such a failure the order of the queue no longer holds. So a driver never gets such an event: the command waits on
//! the host, and is enqueued when all events of its list have succeeded, on a queue of clgraph's own. Its place in the
//! caller's queue is kept by a command that waits for a gate. The gate always opens: after the command, or at once if
//! an event failed. Then the command does not run, and only its [`Event`] reports the failure, as a
//! [`DeferredCommand`].

use std::sync::Arc;

use opencl_sys::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;

use super::event::Event;
use super::queue::Queue;
use crate::cl::commands::enqueue::{self, NOTHING, To, Waits};
use crate::cl::commands::hold::{HeldQueue, Hold, hold};
use crate::cl::completion::countdown::Countdown;
use crate::cl::completion::gates::Gates;
use crate::cl::completion::user_code::{catch, log_later};
use crate::cl::completion::{event_reaper, reentrancy};
use crate::cl::memory::allocation::Entering;
use crate::cl::objects::context::InContext;
use crate::cl::objects::event::{COMMAND, DeferredCommand, DriverEvent, Gate};
use crate::cl::objects::queue::DriverQueue;
use crate::error::{DriverError, DriverFault, Error, Result, Status};

/// A command that is enqueued when the last of its events has ended.
struct HeldCommand<F> {
    deferred: Arc<DeferredCommand>,
    events: Countdown<Work<F>, DriverError>,
}

struct Work<F> {
    queue: DriverQueue,
    gate: Gate,
    run: F,
}

/// Enqueues a command after all `events` have succeeded, and all earlier commands of an in-order queue. `run` enqueues
/// it then, on the queue that it is given. If `is_barrier`, later commands of an out-of-order queue wait for it too.
pub(super) fn defer<F>(
    queue: &Queue,
    events: Vec<DriverEvent>,
    is_barrier: bool,
    entering: Entering,
    run: F,
) -> Result<Event>
where
    F: FnOnce(&To<'_>) -> Result<Option<DriverEvent>> + Send + 'static,
{
    reentrancy::check_call()?;
    let (callers, own) = (queue.driver(), queue.own_queue()?);
    let order = callers.lock_order();
    let mut after = Gates::default();
    events.iter().for_each(|event| after.extend(&event.gates()));
    let how = if is_barrier { Hold::Barrier } else { Hold::Event };
    let HeldQueue { entered, gate, after_gate, .. } = hold(callers, &Waits::NONE, after, false, how)?;
    let deferred = DeferredCommand::new(after_gate);
    let event = deferred.event();
    entering.entered(callers, Some(&event));
    drop(order);

    let all: Vec<DriverEvent> = events.into_iter().chain([entered]).collect();
    for event in &all {
        // Nobody else may ever flush it. It is tried twice, because the driver may lack resources only for a moment.
        if let Err(error) = event.flush_queue().or_else(|_| event.flush_queue()) {
            log_later!(Warn, "{error}: a command may wait until its queue is flushed by another call");
        }
    }
    let events = Countdown::new(all.len(), Work { queue: own, gate, run });
    let waiting = Arc::new(HeldCommand { deferred, events });
    for event in all {
        let waiting = Arc::clone(&waiting);
        event_reaper::when_done(event, move |outcome| waiting.ended(outcome));
    }
    Ok(event.into())
}

impl<F> HeldCommand<F>
where
    F: FnOnce(&To<'_>) -> Result<Option<DriverEvent>> + Send + 'static,
{
    /// An event has ended. The last one enqueues the command.
    fn ended(&self, outcome: Result<(), DriverError>) {
        let Some((Work { queue, gate, run }, outcome)) = self.events.ended(outcome) else { return };
        if outcome.is_err() || event_reaper::process_ends() {
            let status = Status(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
            self.deferred.ended(Err(DriverError::new(COMMAND, status)));
            // The gate opens before the rest is released, because that may be data of the program.
            drop(gate);
            return drop(run);
        }
        // A panic must not leave the gate to open as if the command had run.
        let _elsewhere = queue.context().enqueue_elsewhere();
        let outcome = catch(|| run(&To { queue: &queue, waits: &NOTHING, event: true }));
        let outcome = outcome.unwrap_or_else(|_| Err(DriverError::faulty("an enqueue", DriverFault::Defect).into()));
        // The queue is in order, so a marker ends after a command without an event.
        let event = match outcome {
            Ok(None) => enqueue::last_marker(&queue).map_err(|error| (error, true)),
            Ok(Some(command)) => Ok(command),
            Err(Error::Driver(error)) => Err((error, false)),
            Err(_) => Err((DriverError::new(COMMAND, Status(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)), false)),
        };
        match event {
            Ok(command) => {
                self.deferred.enqueued(command.clone());
                let flushed = command.flush_queue().or_else(|_| command.flush_queue());
                let deferred = Arc::clone(&self.deferred);
                event_reaper::when_done(command, move |outcome| {
                    match outcome {
                        Err(error) if !event_reaper::is_over(&outcome) => deferred.lost(error),
                        outcome => deferred.ended(outcome),
                    }
                    drop(gate);
                });
                if let Err(error) = flushed {
                    log_later!(Warn, "{error}: a command may wait until its queue is flushed by another call");
                }
            }
            Err((error, true)) => {
                self.deferred.lost(error);
                drop(gate);
            }
            Err((error, false)) => {
                log_later!(Warn, "{error}: a command that waited for events was not enqueued");
                self.deferred.ended(Err(error));
                drop(gate);
            }
        }
    }
}
