//! Branches and loops of a submission: what the host decides between commands.
//!
//! A branch or loop is planned as a host task. Where a host task calls a function, this reads the condition behind
//! everything that was enqueued, begins a turn of the body that is chosen, and decides again when the turn is over. A
//! turn whose body has no host task of its own is enqueued at once, so a loop is a loop on one thread: it enqueues, reads,
//! and decides.

use std::sync::Arc;

use crate::cl::commands::enqueue::{self, NOTHING, To};
use crate::cl::completion::event_reaper;
use crate::cl::completion::workers::DeviceWait;
use crate::cl::objects::event::DriverEvent;
use crate::command::{Command, ControlKind, Location};
use crate::error::{DriverError, Error, Result, SubmitError};
use crate::exec::submit::deferred::Deferred;
use crate::exec::submit::frames::{ROOT, TaskAt, Turn};
use crate::exec::submit::tasks::{Job, RunnableTask};
use crate::ir::Span;

/// How many partitions loops without a condition enqueue before the host waits for the device.
const AHEAD: usize = 64;

/// What a branch or loop does next.
enum Next {
    /// It is over.
    Over,
    /// A turn of the body with this number.
    Turn(usize),
}

impl Deferred {
    /// Decides what a branch or loop does next, and does so, until it is over or a turn goes on elsewhere. Returns what
    /// this thread does then.
    pub(in crate::exec) fn decide(self: &Arc<Self>, mut turn: Turn) -> Option<Job> {
        loop {
            let at = turn.of;
            if event_reaper::process_ends() {
                // Drivers are torn down soon, and nobody sees the outcome any more.
                return None;
            }
            match self.next_turn(&turn) {
                Err(error) => return self.ended(at, Err(error)),
                Ok(Next::Over) => {
                    let outcome = self.settle(at, turn.last.take());
                    return self.ended(at, outcome);
                }
                Ok(Next::Turn(body)) => match self.begin_turn(body, turn) {
                    Entered::Over(ended) => turn = ended,
                    Entered::GoesOn(runnable) => {
                        let mut next = None;
                        self.dispatch(runnable.into_iter(), Some(&mut next));
                        return next.map(Job::Task);
                    }
                    Entered::Gone => return None,
                },
            }
        }
    }

    /// Returns what a branch or loop does next.
    fn next_turn(&self, turn: &Turn) -> Result<Next> {
        if turn.failed {
            return Err(self.failure());
        }
        let node = self.task_node(turn.of);
        if self.state.is_cancelled() {
            return Err(SubmitError::Cancelled { node: self.node(turn.of), turns: turn.turns }.into());
        }
        let Some((kind, bodies)) = self.control(turn.of) else { return Ok(Next::Over) };
        let body = |number: usize| if number < bodies.len() { Next::Turn(number) } else { Next::Over };
        Ok(match kind {
            ControlKind::When | ControlKind::Switch if turn.turns > 0 => Next::Over,
            ControlKind::When => body(usize::from(self.condition(turn.of)? == 0)),
            ControlKind::Switch => body(self.condition(turn.of)? as usize),
            ControlKind::While { at_least_once, at_most } => {
                if !(at_least_once && turn.turns == 0) && self.condition(turn.of)? == 0 {
                    return Ok(Next::Over);
                }
                if let Some(most) = at_most.filter(|most| turn.turns >= *most) {
                    let node = self.exec.fixed.node(self.exec.fixed.origins.of(node).node);
                    return Err(SubmitError::TooManyTurns { node, turns: most }.into());
                }
                body(0)
            }
            ControlKind::Repeat { turns } => {
                if turn.turns >= turns {
                    return Ok(Next::Over);
                }
                if let Some((last, all)) = self.too_far_ahead(turn) {
                    waited(last.wait_surely())?;
                    self.has_waited(all);
                }
                body(0)
            }
        })
    }

    /// Returns what the next turn of a loop without a condition waits for, and how many partitions are complete then.
    fn too_far_ahead(&self, turn: &Turn) -> Option<(DriverEvent, usize)> {
        let exec = &self.exec.fixed;
        let progress = self.lock();
        // A queue is not filled without end.
        if progress.enqueued - progress.waited >= AHEAD
            && let Some(last) = progress.last.clone()
        {
            return Some((last, progress.enqueued));
        }
        // Command buffers that cannot run twice at once have to be over: of the turn before, or of a turn around.
        let once = exec.plan.is_native() && !exec.may_overlap();
        let around = || progress.frames.get(turn.of.frame).filter(|_| turn.of.frame != ROOT)?.last.clone();
        let last = if once { turn.last.clone().or_else(around) } else { None };
        last.map(|last| (last, progress.waited))
    }

    /// The host has waited for so many partitions. If these are all, data of host tasks are dropped for writes that have
    /// newer data.
    fn has_waited(&self, all: usize) {
        let mut old = Vec::new();
        let mut progress = self.lock();
        progress.waited = progress.waited.max(all);
        if progress.enqueued == all
            && !progress.refused
            && let Some(work) = progress.work.as_mut().filter(|work| work.snapshot.others.is_empty())
        {
            let inputs = &mut work.bindings.inputs;
            for at in (1..inputs.len()).rev().filter(|at| inputs[*at - 1].0 == inputs[*at].0).collect::<Vec<_>>() {
                old.push(inputs.remove(at - 1));
            }
        }
        // This may run code of the program.
        drop(progress);
        drop(old);
    }

    /// Returns the kind and the bodies of a branch or loop.
    fn control(&self, at: TaskAt) -> Option<(ControlKind, Span)> {
        let node = self.task_node(at);
        let progress = self.lock();
        let tables = &progress.work.as_ref()?.snapshot.values.tables;
        match tables.ir.command(node) {
            Command::Control(control) => Some((control.kind, control.bodies)),
            _ => None,
        }
    }

    /// Reads the condition, behind all that was enqueued.
    fn condition(&self, at: TaskAt) -> Result<u32> {
        let node = self.task_node(at);
        let progress = self.lock();
        let Some(work) = progress.work.as_ref() else { return Ok(0) };
        let (values, all) = (Arc::clone(&work.snapshot.values), progress.enqueued);
        drop(progress);
        let Command::Control(control) = values.tables.ir.command(node) else { return Ok(0) };
        let Some(Location { mem, offset }) = control.condition else { return Ok(0) };
        let Some(mem) = values.tables.mem(mem) else { return Ok(0) };
        let mut number = [0; size_of::<u32>()];
        let to = To { queue: &self.own, waits: &NOTHING, event: false };
        enqueue::read_blocking(&to, &Location { mem, offset }, &mut number).map_err(SubmitError::CommandFailed)?;
        self.has_waited(all);
        Ok(u32::from_ne_bytes(number))
    }

    /// Begins a turn: enqueues what waits for no host task.
    fn begin_turn(self: &Arc<Self>, body: usize, turn: Turn) -> Entered {
        let of = turn.of;
        let Some((kind, bodies)) = self.control(of) else { return Entered::Gone };
        let number = bodies.ends().0 as usize + body + 1;
        let flow = &self.exec.fixed.plan.flows[number];
        self.state.turn(self.exec.fixed.port(self.task_node(of)), number);
        let mut progress = self.lock();
        let Some(work) = &progress.work else { return Entered::Gone };
        let kept = work.snapshot.events_of(&flow.schedule);
        // The condition is read behind the turn, which also flushes the queue.
        let quiet = flow.tasks.is_empty() && matches!(kind, ControlKind::While { .. });
        let frame = progress.frames.enter(number, flow, kept, turn, quiet);
        let before = progress.enqueued;
        let runnable = self.go_on(&mut progress, frame);
        let is_over = progress.frames.get(frame).is_none_or(|frame| frame.frontier.is_over());
        let ended = if is_over { progress.frames.leave(frame) } else { None };
        let grown = progress.enqueued > before;
        drop(progress);
        if grown && !quiet {
            self.flush();
        }
        match ended {
            Some(ended) => Entered::Over(ended),
            None if is_over => Entered::Gone,
            None => Entered::GoesOn(runnable),
        }
    }

    /// Waits for the last command of a branch or loop, if a host task or another queue waits for it.
    fn settle(&self, at: TaskAt, last: Option<DriverEvent>) -> Result<()> {
        let task = &self.exec.fixed.plan.flows[at.flow].tasks[at.task];
        match last.filter(|_| !task.then_tasks.is_empty()) {
            Some(last) => {
                let _waits = DeviceWait::begin();
                waited(last.wait_surely())
            }
            None => Ok(()),
        }
    }

    /// Returns the error of the submission, which something has met.
    fn failure(&self) -> Error {
        let failure = self.lock().failure.clone();
        failure.unwrap_or_else(|| SubmitError::NotComplete.into())
    }
}

/// What became of a turn that began.
enum Entered {
    /// It is enqueued, and nothing in it waits for the host.
    Over(Turn),
    /// These tasks can run now.
    GoesOn(Vec<RunnableTask>),
    /// The submission has ended.
    Gone,
}

fn waited(outcome: Result<(), DriverError>) -> Result<()> {
    let wrong = if event_reaper::is_over(&outcome) { SubmitError::CommandFailed } else { SubmitError::Driver };
    outcome.map_err(|error| wrong(error).into())
}
