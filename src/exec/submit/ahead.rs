//! A loop whose turns can be enqueued before their condition is known.
//!
//! The host enqueues some turns, each behind a latch of the condition, then reads whether the loop goes on, and how many turns
//! did something. The turns after the loop's end change nothing, because each of their commands looks at the latch. How many
//! turns go ahead, or none, is the affair of [`pace`](crate::exec::tune::pace).

use std::sync::Arc;
use std::time::Instant;

use crate::cl::completion::event_reaper;
use crate::cl::memory::untyped::Mem;
use crate::command::{Control, ControlKind, Location};
use crate::error::{DriverError, Result, SubmitError};
use crate::exec::build::guards::{Guard, Latch};
use crate::exec::build::values::Values;
use crate::exec::submit::bindings::SubmissionBindings;
use crate::exec::submit::control::Next;
use crate::exec::submit::deferred::{Deferred, DeferredProgress};
use crate::exec::submit::frames::Turn;
use crate::exec::submit::interpreter::{Ends, Stopped};
use crate::ir::{Span, ViewId};

impl Deferred {
    /// Carries out a loop that can go ahead. Returns its outcome; None if nobody sees it any more.
    pub(super) fn guarded_loop(
        self: &Arc<Self>,
        guard: &Guard,
        mut turn: Turn,
        control: &Control<ViewId, Span>,
        values: &Values,
    ) -> Option<Result<()>> {
        let ControlKind::While { at_least_once, at_most } = control.kind else { return Some(Ok(())) };
        let condition = guard.condition(values, &self.exec().plan).ok();
        let body = guard.flow();
        // Since when the turns run that the host decided last, if it has not looked at the condition since.
        let (mut since, mut has_turned, mut batch) = (Instant::now(), false, 0);
        // Whether the inputs of the body are staged, and whether its newest results are.
        let (mut inputs, mut results) = (false, false);
        let outcome = loop {
            if event_reaper::process_ends() {
                self.forget();
                return None;
            }
            let mut count = if condition.is_some() { guard.pace().next(turn.turns, batch) } else { 0 };
            count = count.min(at_most.map_or(u64::MAX, |most| most.saturating_sub(turn.turns)));
            if let Some(condition) = condition.as_ref().filter(|_| count > 0) {
                if self.state.is_cancelled() {
                    break Err(self.cancelled(&turn));
                }
                if !inputs && let Err(error) = self.stage_inputs(guard, values) {
                    break Err(error);
                }
                inputs = true;
                let is_free = at_least_once && turn.turns == 0;
                let (goes_on, ran) = match self.turns_ahead(guard, &turn, condition, count, is_free) {
                    Ok(read) => read,
                    Err(error) => break Err(error),
                };
                // A turn that the host decided before is in the time too: it is at most one of many.
                guard.pace().batch(ran, nanos(since));
                (since, has_turned, batch) = (Instant::now(), false, count);
                turn.turns += ran;
                self.state.turn(body, ran);
                results |= ran > 0;
                if !goes_on {
                    break Ok(());
                }
                continue;
            }
            match self.next_turn(&turn, control, values) {
                Err(error) => break Err(error),
                Ok(next) => {
                    if has_turned {
                        guard.pace().host_turn(nanos(since));
                    }
                    since = Instant::now();
                    if matches!(next, Next::Over) {
                        break Ok(());
                    }
                }
            }
            if let Err(error) = self.try_enqueue(|| guard.open(&self.own)) {
                break Err(error);
            }
            self.state.turn(body, 1);
            turn = self.whole_turn(body, turn, true)?;
            (has_turned, batch, results) = (true, 0, false);
        };
        if outcome.is_ok() {
            guard.pace().ended(turn.turns);
        }
        let outcome = outcome.and_then(|()| if results { self.read_results(guard, &mut turn, values) } else { Ok(()) });
        Some(outcome.and_then(|()| self.settle(turn.of, turn.last.take())))
    }

    /// Enqueues turns, and reads whether the loop goes on and how many of them did something.
    fn turns_ahead(
        &self,
        guard: &Guard,
        turn: &Turn,
        condition: &Location<&Mem>,
        count: u64,
        is_free: bool,
    ) -> Result<(bool, u64)> {
        if turn.failed {
            return Err(self.failure());
        }
        for number in 0..count {
            let begins = number == 0;
            let latch = Latch { is_read: !(is_free && begins), begins, counts: true };
            self.try_enqueue(|| guard.latch(&self.own, condition, latch))?;
            let mut progress = self.lock();
            if !self.enqueue_turn(&mut progress, guard.flow(), turn.of.frame, false, Some(guard)) {
                drop(progress);
                return Err(self.failure());
            }
        }
        let latch = Latch { is_read: true, begins: false, counts: false };
        self.try_enqueue(|| guard.latch(&self.own, condition, latch))?;
        let all = self.lock().enqueued;
        let (goes_on, ran) = guard.read(&self.own).map_err(SubmitError::CommandFailed)?;
        self.has_waited(all);
        Ok((goes_on, u64::from(ran)))
    }

    /// Brings the inputs of the body to where turns ahead find them.
    fn stage_inputs(&self, guard: &Guard, values: &Values) -> Result<()> {
        let plan = &self.exec().plan;
        self.try_enqueue_with(|bindings| guard.stage_inputs(values, plan, bindings, &self.own)).map(drop)
    }

    /// Brings the results of the last turn to the host.
    fn read_results(&self, guard: &Guard, turn: &mut Turn, values: &Values) -> Result<()> {
        let plan = &self.exec().plan;
        let last = self.try_enqueue_with(|bindings| guard.read_results(values, plan, bindings, &self.own))?;
        if last.is_some() {
            turn.last.clone_from(&last);
            self.has_enqueued(&mut self.lock(), turn.of.frame, Ends { last, ..Ends::default() });
            self.flush();
        }
        Ok(())
    }

    /// Enqueues something between turns. If the driver refuses it, nothing is enqueued any more.
    pub(super) fn try_enqueue(&self, enqueue: impl FnOnce() -> Result<(), DriverError>) -> Result<()> {
        self.try_enqueue_with(|_| enqueue())
    }

    fn try_enqueue_with<T>(&self, enqueue: impl FnOnce(&SubmissionBindings) -> Result<T, DriverError>) -> Result<T> {
        let mut progress = self.lock();
        let DeferredProgress { work: Some(work), refused: false, .. } = &*progress else {
            drop(progress);
            return Err(self.failure());
        };
        let elsewhere = self.exec().context.enqueue_elsewhere();
        let outcome = enqueue(&work.bindings);
        drop(elsewhere);
        outcome.map_err(|error| {
            progress.stopped(Stopped { error: SubmitError::Driver(error), under_way: true });
            drop(progress);
            self.failure()
        })
    }
}

fn nanos(since: Instant) -> u64 {
    since.elapsed().as_nanos().try_into().unwrap_or(u64::MAX)
}
