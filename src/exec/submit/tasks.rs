//! Host tasks and external events of a submission: what runs when the commands that it waits for are complete, and lets
//! others go on when it has ended.
//!
//! A task runs on a thread of [`workers`]. The thread waits for the device itself, enqueues what comes next, and
//! continues with the next task, so that a chain of tasks costs no more than a loop of waiting and calling. No event is
//! ever made to fail: what waits for a task is enqueued when the task has succeeded (see
//! [`deferred`](crate::exec::submit::deferred)).

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;

use crate::cl::completion::event_reaper::{self, DriverCall};
use crate::cl::completion::gates::Gates;
use crate::cl::completion::reentrancy::LaterEvents;
use crate::cl::completion::workers::{self, DeviceWait};
use crate::cl::memory::host::{Completed, HostBytes, Slot};
use crate::cl::memory::map::Lost;
use crate::cl::memory::region::Region;
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::queue::DriverQueue;
use crate::command::Command;
use crate::error::{DriverError, Result, SubmitError};
use crate::exec::submit::bindings::{External, SubmissionBindings};
use crate::exec::submit::blocker::Blocker;
use crate::exec::submit::checked;
use crate::exec::submit::deferred::{Deferred, waited};
use crate::exec::submit::frames::{Frame, Over, ROOT, TaskAt, Turn};
use crate::exec::submit::user_event::ReservedUserEvent;
use crate::graph::Tables;
use crate::graph::nodes::host_task::{TaskFn, TaskSubmission};
use crate::graph::ports::Scope;
use crate::handles::Port;
use crate::handles::{Node, NodeKind};
use crate::ir::{Mode, NodeId};

/// What came of a task.
enum Called {
    Ended(Result<()>),
    /// It is a branch or loop, which decides now.
    Decides,
    /// It waits for an event, after which it continues by itself.
    Later,
}

/// What a task does.
enum What {
    Control,
    Function(TaskFn),
    /// A launch that is checked.
    Launch(Arc<Tables>),
    /// None: the event has come.
    Wait(Option<Blocker>),
    /// None: it was completed.
    Signal(Option<ReservedUserEvent>),
}

/// A task that can run once these events are complete.
pub(in crate::exec) type RunnableTask = (TaskAt, SmallVec<[DriverEvent; 1]>);

/// What a thread for tasks does next.
pub(in crate::exec) enum Job {
    Task(RunnableTask),
    /// A branch or loop decides what it does next.
    Decide(Turn),
}

impl Deferred {
    /// Has tasks run: one by the caller, if that is a thread for tasks; one for each of the submission's queues by a
    /// thread that waits for the device; and the others when the event reaper sees that they can. A task that the reaper
    /// starts begins later, by the time that a second thread takes to wake up.
    pub(in crate::exec) fn dispatch(
        self: &Arc<Self>,
        runnable: impl Iterator<Item = RunnableTask>,
        mut next: Option<&mut Option<RunnableTask>>,
    ) {
        let mut threads = self.lock().work.as_ref().map_or(1, |work| work.snapshot.others.len() + 1);
        for runnable in runnable {
            // A thread may wait for the device, but not for a gate: that may need a thread, and all might wait so.
            let waits_here = threads > 0 && runnable.1.iter().all(|event| event.gates().is_empty());
            if waits_here {
                threads -= 1;
                match next.take() {
                    Some(next) => *next = Some(runnable),
                    None => self.start_task(runnable),
                }
                continue;
            }
            match runnable.1.first().cloned() {
                None => self.start_task(runnable),
                Some(event) => {
                    let this = Arc::clone(self);
                    event_reaper::when_done(event, move |_| this.start_task(runnable));
                }
            }
        }
    }

    /// Has a thread for tasks run a task. If no thread will ever be free, the task fails.
    fn start_task(self: &Arc<Self>, runnable: RunnableTask) {
        let (task, this, gate) = (runnable.0, Arc::clone(self), self.state.gate());
        let Err(refused) = workers::start(gate, Box::new(move || this.run(runnable))) else { return };
        let this = Arc::clone(self);
        workers::start_patiently(gate, refused, move || {
            let text = "no thread could be started for it, and all threads for host tasks wait".to_owned();
            let (node, what) = (this.node(task), this.describe(task));
            let next = this.ended(task, Err(SubmitError::HostTask { node, what, text }.into()));
            this.start(next);
        });
    }

    /// Has a thread for tasks do what a thread of clgraph's own has met.
    fn start(self: &Arc<Self>, next: Option<Job>) {
        match next {
            Some(Job::Task(runnable)) => self.start_task(runnable),
            Some(Job::Decide(turn)) => {
                // On a thread of clgraph's own, which calls no function of the program: a host task gets one for tasks.
                let this = Arc::clone(self);
                workers::run(move || {
                    let next = this.decide(turn);
                    this.start(next);
                });
            }
            None => {}
        }
    }

    /// Runs a task, and those that can run then, on a thread for tasks.
    fn run(self: Arc<Self>, first: RunnableTask) {
        self.go(Job::Task(first));
    }

    fn go(self: Arc<Self>, first: Job) {
        let mut next = Some(first);
        while let Some(job) = next.take() {
            next = match job {
                Job::Decide(turn) => self.decide(turn),
                Job::Task((task, events)) => match self.call(task, events) {
                    Called::Ended(outcome) => self.ended(task, outcome),
                    Called::Decides => self.decide(Turn { of: task, turns: 0, last: None, failed: false }),
                    Called::Later => return,
                },
            };
        }
    }

    /// Continues after an external event.
    fn resume(self: Arc<Self>, task: TaskAt, outcome: Result<()>) {
        self.state.staged(None);
        let node = self.node(task);
        let outcome =
            outcome.map_err(|cause| SubmitError::ExternalEvent { node, cause: Box::new(cause.root()) }.into());
        // On a thread for tasks: this is one for jobs of clgraph's own.
        let next = self.ended(task, outcome);
        self.start(next);
    }

    /// Notes that a task has ended. Returns what this thread can do then.
    pub(in crate::exec) fn ended(self: &Arc<Self>, task: TaskAt, outcome: Result<()>) -> Option<Job> {
        let Some(_calling) = DriverCall::begin() else {
            self.forget();
            return None;
        };
        let mut next = None;
        let mut progress = self.lock();
        let before = progress.enqueued;
        let well = outcome.is_ok();
        if let Err(error) = outcome {
            progress.failure.get_or_insert(error);
        }
        progress.frames.task_ended(&self.exec().plan.flows[task.flow], task, well);
        let runnable = self.go_on(&mut progress, task.frame);
        let over = progress.frames.over(task.frame);
        let grown = progress.enqueued > before;
        drop(progress);
        if grown {
            self.flush();
        }
        self.tell_given_up();
        self.dispatch(runnable.into_iter(), Some(&mut next));
        match over {
            Some(Over::Turn(turn)) => return Some(Job::Decide(turn)),
            Some(Over::Submission) => self.end(true),
            None => {}
        }
        next.map(Job::Task)
    }

    /// The process ends: drivers are torn down soon, and nobody sees the outcome any more. What was enqueued may still run, so
    /// the memory that it uses is never released.
    pub(super) fn forget(self: &Arc<Self>) {
        std::mem::forget(Arc::clone(self));
    }

    /// Waits for the device, and does what the task is.
    fn call(self: &Arc<Self>, task: TaskAt, events: SmallVec<[DriverEvent; 1]>) -> Called {
        for event in &events {
            let waits = DeviceWait::begin();
            if waits.is_none() && event.may_run() {
                let (this, again) = (Arc::clone(self), events.clone());
                event_reaper::when_done(event.clone(), move |_| this.start_task((task, again)));
                return Called::Later;
            }
            let Some(calling) = DriverCall::begin() else {
                self.forget();
                return Called::Later;
            };
            let outcome = waited(event.wait_surely());
            drop((waits, calling));
            if outcome.is_err() {
                return Called::Ended(outcome);
            }
        }
        let event = events.last().cloned();
        match self.what(task) {
            None => Called::Ended(Ok(())),
            Some(What::Control) => {
                self.state.staged(None);
                Called::Decides
            }
            Some(What::Function(function)) => {
                self.state.staged(None);
                let _inside = self.state.enter_task(self.later_events(task));
                let (node, begin) = (self.node(task), Instant::now());
                let calling = Calling { submission: self, at: task, node: self.task_node(task), lost: OnceCell::new() };
                let outcome = function.call(&calling);
                let kept = |error| format!("memory that the task mapped could not be unmapped: {error}");
                let unmapped = calling.unmapped().map_err(kept);
                self.log(task, event, begin);
                let failed = |text| SubmitError::HostTask { node, what: self.describe(task), text }.into();
                Called::Ended(outcome.and(unmapped).map_err(failed))
            }
            Some(What::Launch(tables)) => {
                self.state.staged(None);
                let Some(calling) = DriverCall::begin() else {
                    self.forget();
                    return Called::Later;
                };
                let begin = Instant::now();
                let outcome = checked::launch(self.exec(), &tables, self.task_node(task));
                drop(calling);
                self.log(task, event, begin);
                Called::Ended(outcome)
            }
            Some(What::Wait(None)) => {
                self.log(task, event, Instant::now());
                Called::Ended(Ok(()))
            }
            Some(What::Wait(Some(blocker))) => {
                let (this, begin) = (Arc::clone(self), Instant::now());
                blocker.when_over(move |outcome| {
                    this.log(task, event, begin);
                    workers::run(move || this.resume(task, outcome));
                });
                Called::Later
            }
            Some(What::Signal(reserved)) => {
                self.state.staged(None);
                let begin = Instant::now();
                if let Some(reserved) = reserved {
                    reserved.end(Ok(()));
                }
                self.log(task, event, begin);
                Called::Ended(Ok(()))
            }
        }
    }

    /// Returns what tells which events the submission completes after a task. None if it completes none.
    fn later_events(self: &Arc<Self>, task: TaskAt) -> Option<LaterEvents> {
        if self.signals.is_empty() {
            return None;
        }
        let (this, task) = (Arc::clone(self), self.task_node(task));
        Some(Arc::new(move || {
            let mut gates = Gates::default();
            let later = this.signals.iter().filter(|(node, _)| this.exec().is_after(*node, task));
            later.for_each(|(_, gate)| gates.extend(&Gates::of(*gate)));
            gates
        }))
    }

    /// Records when a task ran, until now.
    fn log(&self, task: TaskAt, after: Option<DriverEvent>, begin: Instant) {
        if let Some(log) = self.state.log() {
            log.host(self.exec().plan.flows[task.flow].first_task + task.task, after, begin);
        }
    }

    /// Returns what a task does. This hands out its events.
    fn what(&self, task: TaskAt) -> Option<What> {
        let node = self.task_node(task);
        let mut progress = self.lock();
        let work = progress.work.as_mut()?;
        let tables = &work.snapshot.values.tables;
        match tables.ir.command(node) {
            Command::Task(task) => tables.tasks.get(task.index()).cloned().map(What::Function),
            Command::Event { event, .. } => work.bindings.events.get_mut(event.index()).map(|event| match event {
                External::Wait(blocker) => What::Wait(blocker.take()),
                External::Signal(reserved) => What::Signal(reserved.take()),
            }),
            Command::Control(_) => Some(What::Control),
            // The device does these, or nobody. Every kind is named: a new one that the host does must not end before it begins.
            Command::Empty | Command::SubGraph(_) | Command::Alloc(_) | Command::Free(_) => None,
            // Other launches are no tasks.
            Command::Kernel { .. } => Some(What::Launch(Arc::clone(tables))),
            Command::Native { .. } | Command::Hint { .. } => None,
            Command::Copy { .. } | Command::CopyRect(_) | Command::CopyImage(_) => None,
            Command::Fill { .. } | Command::Write { .. } | Command::Read { .. } => None,
        }
    }

    /// Describes a task, for error texts.
    pub(super) fn describe(&self, task: TaskAt) -> String {
        let node = self.task_node(task);
        let progress = self.lock();
        let tables = progress.work.as_ref().map(|work| &work.snapshot.values.tables);
        tables.map_or_else(|| NodeKind::HostTask.to_string(), |tables| tables.describe(node))
    }

    /// Returns the planned node of a task.
    pub(in crate::exec) fn task_node(&self, task: TaskAt) -> NodeId {
        self.exec().plan.flows[task.flow].tasks[task.task].node
    }

    pub(in crate::exec) fn node(&self, task: TaskAt) -> Node {
        self.exec().node(self.exec().origins.of(self.task_node(task)).node)
    }

    /// Fails events that will never be completed, as soon as that is known.
    pub(in crate::exec) fn tell_given_up(&self) {
        let mut progress = self.lock();
        // Bodies have no events.
        let given_up = progress.frames.get_mut(ROOT).map(|frame| frame.frontier.take_given_up()).unwrap_or_default();
        let failure = progress.failure.clone();
        drop(progress);
        for task in given_up {
            let task = TaskAt { frame: ROOT, flow: 0, task };
            if let (Some(What::Signal(Some(reserved))), Some(error)) = (self.what(task), &failure) {
                reserved.end(Err(error.clone()));
            }
        }
    }
}

/// A host task that runs.
struct Calling<'a> {
    submission: &'a Deferred,
    at: TaskAt,
    node: NodeId,
    /// What could not be unmapped, where it maps memory.
    lost: OnceCell<Lost>,
}

impl Calling<'_> {
    /// Returns whether all that it mapped is unmapped again.
    fn unmapped(&self) -> Result<(), DriverError> {
        self.lost.get().and_then(|lost| lost.get()).map_or(Ok(()), |error| Err(*error))
    }
}

impl TaskSubmission for Calling<'_> {
    fn result(&self, read: Port, scope: &Scope) -> Result<Arc<Slot>> {
        let exec = self.submission.exec();
        let at = scope.result(&exec.ports, read)?.index();
        let place = exec.partitions_of.reads.get(at).copied();
        if !place.is_some_and(|(node, _)| exec.is_after(self.node, node)) {
            let task = exec.node(exec.origins.of(self.node).node);
            return Err(SubmitError::NotAfterRead { task, read: read.node }.into());
        }
        let progress = self.submission.lock();
        // A task waits for everything before it, so the read is complete, unless it was never enqueued.
        let is_complete = match place.map(|(_, (flow, partition))| (flow as usize, partition as usize)) {
            Some((flow, partition)) => match progress.frames.around(self.at.frame, flow) {
                Some(frame) => frame.frontier.is_enqueued(partition),
                // A body of a branch or loop that is over.
                None if self.submission.state.has_run(flow) => true,
                None => return Err(SubmitError::NotRun { node: read.node }.into()),
            },
            None => false,
        };
        let slot = progress.work.as_ref().and_then(|work| work.bindings.slots.get(at)).filter(|_| is_complete);
        let slot = Arc::clone(slot.ok_or(SubmitError::NotComplete)?);
        drop(progress);
        // The next turn writes to the slot, and the task may keep the result.
        if self.at.flow > 0 && place.is_some_and(|(_, (flow, _))| flow > 0) {
            let (node, bytes) = (read.node, slot.len());
            let copy = slot.copied(&Completed::witnessed()).ok_or(SubmitError::HostMemory { node, bytes })?;
            return Ok(Arc::new(copy));
        }
        Ok(slot)
    }

    fn input(&self, write: Port, scope: &Scope, data: HostBytes) -> Result<()> {
        let (exec, node) = (self.submission.exec(), write.node);
        let (id, expected) = scope.input(&exec.ports, write)?;
        if data.len() != expected {
            return Err(SubmitError::InputSize { node, expected, given: data.len() }.into());
        }
        let place = exec.partitions_of.writes.get(&id).copied();
        let is_after = place.is_some_and(|(write, _)| exec.is_after(write, self.node));
        let mut progress = self.submission.lock();
        let (is_given_up, is_held) = match place.filter(|_| is_after) {
            Some((_, (flow, partition))) => match progress.frames.around(self.at.frame, flow as usize) {
                Some(Frame { frontier, .. }) => {
                    (frontier.is_given_up(partition as usize), frontier.is_held(partition as usize))
                }
                // A body of a branch or loop that is not over: each turn takes the data that is there then.
                None => (false, true),
            },
            None => (false, false),
        };
        if is_given_up {
            // Something else before the write has failed, so nobody will need the data.
            drop(progress);
            drop(data);
            return Ok(());
        }
        if !is_held {
            return Err(SubmitError::InputTaken { node }.into());
        }
        let Some(work) = &mut progress.work else { return Err(SubmitError::InputTaken { node }.into()) };
        let inputs: &mut SubmissionBindings = &mut work.bindings;
        // After others for the same node: the last one counts.
        let at = inputs.inputs.partition_point(|(other, _)| *other <= id);
        inputs.inputs.insert(at, (id, data));
        Ok(())
    }

    fn mapper(&self) -> (DriverQueue, Lost) {
        (self.submission.own.clone(), Arc::clone(self.lost.get_or_init(Lost::default)))
    }

    fn declares(&self, region: &Region, mode: Mode) -> bool {
        let progress = self.submission.lock();
        progress.work.as_ref().is_some_and(|work| work.snapshot.values.tables.declares(self.node, region, mode))
    }
}
