//! Branches and loops of a submission: what the host decides between commands.
//!
//! A branch or loop is planned as a host task. Where a host task calls a function, this reads the condition behind
//! everything that was enqueued, begins a turn of the body that is chosen, and decides again when the turn is over. A
//! turn whose body has no host task of its own is enqueued at once, so a loop is a loop on one thread: it enqueues, reads,
//! and decides.

use std::sync::{Arc, RwLockReadGuard};

use crate::cl::commands::enqueue::{self, NOTHING, To};
use crate::cl::completion::event_reaper::{self, DriverCall};
use crate::cl::completion::workers::DeviceWait;
use crate::cl::objects::event::DriverEvent;
use crate::command::{Command, Control, ControlKind, Location};
use crate::error::{Error, Result, SubmitError};
use crate::exec::build::values::Values;
use crate::exec::submit::deferred::{Deferred, waited};
use crate::exec::submit::frames::{Over, ROOT, TaskAt, Turn};
use crate::exec::submit::tasks::{Job, RunnableTask};
use crate::ir::{Span, ViewId};

/// What a branch or loop does next.
pub(super) enum Next {
    /// It is over.
    Over,
    /// A turn of the body with this number.
    Turn(usize),
}

impl Deferred {
    /// Decides what a branch or loop does next, and does so, until it is over or a turn goes on elsewhere. Returns what
    /// this thread does then.
    pub(in crate::exec) fn decide(self: &Arc<Self>, mut turn: Turn) -> Option<Job> {
        let Some(_calling) = DriverCall::begin() else {
            self.forget();
            return None;
        };
        let values = self.lock().work.as_ref().map(|work| Arc::clone(&work.snapshot.values))?;
        let at = turn.of;
        let Command::Control(control) = values.tables.ir.command(self.task_node(at)) else {
            return self.ended(at, Ok(()));
        };
        let first = control.bodies.ends().0 as usize + 1;
        // A switch may have no case: then this flow is another node's.
        let is_loop = matches!(control.kind, ControlKind::While { .. } | ControlKind::Repeat { .. });
        if let Some(of) = values.guards.on_device(first).filter(|_| is_loop) {
            let outcome = self.device_loop(of, turn, control, &values)?;
            return self.ended(at, outcome);
        }
        if let Some(guard) = values.guards.of_flow(first).filter(|_| is_loop) {
            let outcome = self.guarded_loop(guard, turn, control, &values)?;
            return self.ended(at, outcome);
        }
        loop {
            if event_reaper::process_ends() {
                self.forget();
                return None;
            }
            let body = match self.next_turn(&turn, control, &values) {
                Err(error) => return self.ended(at, Err(error)),
                Ok(Next::Over) => {
                    let outcome = self.settle(at, turn.last.take());
                    return self.ended(at, outcome);
                }
                Ok(Next::Turn(body)) => first + body,
            };
            let flow = &self.exec().plan.flows[body];
            if let ControlKind::Repeat { turns } = control.kind
                && flow.steps.is_empty()
                && flow.tasks.is_empty()
            {
                // There is nothing to run: all turns are over at once.
                self.state.turn(body, turns - turn.turns);
                turn.turns = turns;
                continue;
            }
            self.state.turn(body, 1);
            if flow.tasks.is_empty() {
                // The condition is read behind the turn, which also flushes the queue.
                let quiet = matches!(control.kind, ControlKind::While { .. });
                turn = self.whole_turn(body, turn, quiet)?;
                continue;
            }
            match self.begin_turn(body, turn) {
                Entered::Over(ended) => turn = ended,
                Entered::GoesOn(runnable) => {
                    let mut next = None;
                    self.dispatch(runnable.into_iter(), Some(&mut next));
                    return next.map(Job::Task);
                }
                Entered::Gone => return None,
            }
        }
    }

    /// Returns what a branch or loop does next.
    pub(super) fn next_turn(&self, turn: &Turn, control: &Control<ViewId, Span>, values: &Values) -> Result<Next> {
        if turn.failed {
            return Err(self.failure());
        }
        if self.state.is_cancelled() {
            return Err(self.cancelled(turn));
        }
        let body = |number: usize| if number < control.bodies.len() { Next::Turn(number) } else { Next::Over };
        Ok(match control.kind {
            ControlKind::When | ControlKind::Switch if turn.turns > 0 => Next::Over,
            ControlKind::When => body(usize::from(self.condition(control, values)? == 0)),
            ControlKind::Switch => body(self.condition(control, values)? as usize),
            ControlKind::While { at_least_once, at_most } => {
                if !(at_least_once && turn.turns == 0) && self.condition(control, values)? == 0 {
                    return Ok(Next::Over);
                }
                if let Some(turns) = at_most.filter(|most| turn.turns >= *most) {
                    return Err(self.too_many_turns(turn.of, turns));
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

    /// Describes a branch or loop, for error texts.
    fn describe_control(&self, task: TaskAt) -> String {
        let what = self.describe(task);
        if self.exec().origins.is_inside(self.task_node(task)) { format!("{what}, inside of it") } else { what }
    }

    /// The error of a submission that was cancelled.
    pub(super) fn cancelled(&self, turn: &Turn) -> Error {
        let (node, what) = (self.node(turn.of), self.describe_control(turn.of));
        SubmitError::Cancelled { node, what, turns: turn.turns }.into()
    }

    fn too_many_turns(&self, task: TaskAt, turns: u64) -> Error {
        SubmitError::TooManyTurns { node: Some(self.node(task)), what: self.describe_control(task), turns }.into()
    }

    /// Returns what the next turn of a loop without a condition waits for, and how many partitions are complete then.
    fn too_far_ahead(&self, turn: &Turn) -> Option<(DriverEvent, usize)> {
        let exec = self.exec();
        let mut progress = self.lock();
        let partitions = progress.enqueued - progress.waited;
        if progress.fill.is_full(partitions)
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
    pub(super) fn has_waited(&self, all: usize) {
        let mut old = Vec::new();
        let mut progress = self.lock();
        if all > progress.waited {
            let partitions = all - std::mem::replace(&mut progress.waited, all);
            progress.fill.waited(partitions);
        }
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

    /// Waits for all that was enqueued where the host's read must not wait for it: while something is enqueued there, nobody may free memory. The
    /// read goes on before what this returns is dropped.
    pub(super) fn wait_to_read(&self) -> Result<Option<RwLockReadGuard<'_, ()>>> {
        let context = &self.exec().context;
        if !context.must_free_late() {
            return Ok(None);
        }
        let elsewhere = context.enqueue_elsewhere();
        let marker = enqueue::marker(&self.own, &NOTHING).map_err(SubmitError::Driver)?;
        drop(elsewhere);
        waited(marker.wait_surely())?;
        Ok(context.enqueue_elsewhere())
    }

    /// Reads the condition, behind all that was enqueued.
    fn condition(&self, control: &Control<ViewId, Span>, values: &Values) -> Result<u32> {
        let place = control.condition.as_ref().and_then(|place| Some((values.tables.mem(place.mem)?, place.offset)));
        let Some((mem, offset)) = place else { return Ok(0) };
        let all = self.lock().enqueued;
        let mut number = [0; size_of::<u32>()];
        let elsewhere = self.wait_to_read()?;
        let to = To { queue: &self.own, waits: &NOTHING, event: false };
        enqueue::read_blocking(&to, &Location { mem, offset }, &mut number).map_err(SubmitError::CommandFailed)?;
        drop(elsewhere);
        self.has_waited(all);
        Ok(u32::from_ne_bytes(number))
    }

    /// Enqueues a turn of a body without host tasks, all at once. Returns the branch or loop after it; None if the
    /// submission has ended.
    pub(super) fn whole_turn(&self, body: usize, mut turn: Turn, quiet: bool) -> Option<Turn> {
        let mut progress = self.lock();
        progress.work.as_ref()?;
        let before = progress.enqueued;
        turn.failed = !self.enqueue_turn(&mut progress, body, turn.of.frame, !quiet, None);
        let grown = progress.enqueued > before;
        if grown && !quiet {
            turn.last.clone_from(&progress.last);
        }
        drop(progress);
        if grown && !quiet {
            self.flush();
        }
        turn.turns += 1;
        Some(turn)
    }

    /// Begins a turn of a body with host tasks: enqueues what waits for none.
    fn begin_turn(self: &Arc<Self>, body: usize, turn: Turn) -> Entered {
        let flow = &self.exec().plan.flows[body];
        let mut progress = self.lock();
        let Some(work) = &progress.work else { return Entered::Gone };
        let kept = work.snapshot.events_of(&flow.schedule);
        let frame = progress.frames.enter(body, flow, kept, turn);
        let before = progress.enqueued;
        let runnable = self.go_on(&mut progress, frame);
        let over = progress.frames.over(frame);
        let grown = progress.enqueued > before;
        drop(progress);
        if grown {
            self.flush();
        }
        match over {
            Some(Over::Turn(ended)) => Entered::Over(ended),
            Some(Over::Submission) => Entered::Gone,
            None => Entered::GoesOn(runnable),
        }
    }

    /// Waits for the last command of a branch or loop, if a host task waits for it.
    pub(super) fn settle(&self, at: TaskAt, last: Option<DriverEvent>) -> Result<()> {
        let task = &self.exec().plan.flows[at.flow].tasks[at.task];
        match last.filter(|_| !task.then_tasks.is_empty()) {
            Some(last) => {
                let _waits = DeviceWait::begin();
                waited(last.wait_surely())
            }
            None => Ok(()),
        }
    }

    /// Returns the error of the submission, which something has met.
    pub(super) fn failure(&self) -> Error {
        let failure = self.lock().failure.clone();
        failure.unwrap_or_else(|| SubmitError::NotComplete.into())
    }
}

/// What became of a turn that began.
enum Entered {
    /// Nothing in it can go on any more, because something failed.
    Over(Turn),
    /// These tasks can run now.
    GoesOn(Vec<RunnableTask>),
    /// The submission has ended.
    Gone,
}
