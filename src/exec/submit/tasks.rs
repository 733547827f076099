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

use crate::cl::completion::event_reaper;
use crate::cl::completion::workers::{self, DeviceWait};
use crate::cl::memory::host::{HostBytes, Slot};
use crate::cl::memory::map::Lost;
use crate::cl::memory::region::Region;
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::queue::DriverQueue;
use crate::command::Command;
use crate::error::{DriverError, Result, SubmitError};
use crate::exec::submit::bindings::{External, SubmissionBindings};
use crate::exec::submit::blocker::Blocker;
use crate::exec::submit::deferred::Deferred;
use crate::exec::submit::frontier::Frontier;
use crate::exec::submit::user_event::ReservedUserEvent;
use crate::graph::nodes::host_task::{TaskFn, TaskSubmission};
use crate::graph::ports::Scope;
use crate::handles::Port;
use crate::handles::{Node, NodeKind};
use crate::ir::{Mode, NodeId};

/// What a task does.
enum What {
    Function(TaskFn),
    /// None: the event has come.
    Wait(Option<Blocker>),
    /// None: it was completed.
    Signal(Option<ReservedUserEvent>),
}

/// A task that can run once these events are complete.
pub(in crate::exec) type RunnableTask = (usize, SmallVec<[DriverEvent; 1]>);

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
        let (task, this) = (runnable.0, Arc::clone(self));
        let Err(refused) = workers::start(Box::new(move || this.run(runnable))) else { return };
        let this = Arc::clone(self);
        workers::start_patiently(refused, move || {
            let text = "no thread could be started for it, and all threads for host tasks wait".to_owned();
            let (node, what) = (this.node(task), this.describe(task));
            let next = this.ended(task, Err(SubmitError::HostTask { node, what, text }.into()));
            next.into_iter().for_each(|runnable| this.start_task(runnable));
        });
    }

    /// Runs a task, and those that can run then, on a thread for tasks.
    fn run(self: Arc<Self>, first: RunnableTask) {
        let mut next = Some(first);
        while let Some((task, events)) = next.take() {
            let Some(outcome) = self.call(task, events) else { return };
            next = self.ended(task, outcome);
        }
    }

    /// Continues after an external event.
    fn resume(self: Arc<Self>, task: usize, outcome: Result<()>) {
        self.state.staged(None);
        let node = self.node(task);
        let outcome =
            outcome.map_err(|cause| SubmitError::ExternalEvent { node, cause: Box::new(cause.root()) }.into());
        // On a thread for tasks: this is one for jobs of clgraph's own.
        if let Some(next) = self.ended(task, outcome) {
            self.start_task(next);
        }
    }

    /// Notes that a task has ended. Returns one that can run then, for this thread.
    fn ended(self: &Arc<Self>, task: usize, outcome: Result<()>) -> Option<RunnableTask> {
        let mut next = None;
        {
            let mut progress = self.lock();
            let before = progress.enqueued;
            let well = outcome.is_ok();
            if let Err(error) = outcome {
                progress.failure.get_or_insert(error);
            }
            progress.frontier.task_ended(&self.exec.fixed.plan, task, well);
            let runnable = self.go_on(&mut progress);
            let (over, grown) = (progress.frontier.is_over(), progress.enqueued > before);
            drop(progress);
            if grown {
                self.flush();
            }
            self.tell_given_up();
            self.dispatch(runnable.into_iter(), Some(&mut next));
            if over {
                self.end(true);
            }
        }
        next
    }

    /// Waits for the device, and does what the task is. None if the task waits for an event, after which it continues
    /// by itself.
    fn call(self: &Arc<Self>, task: usize, events: SmallVec<[DriverEvent; 1]>) -> Option<Result<()>> {
        for event in &events {
            let waits = DeviceWait::begin();
            if waits.is_none() && event.may_run() {
                let (this, again) = (Arc::clone(self), events.clone());
                event_reaper::when_done(event.clone(), move |_| this.start_task((task, again)));
                return None;
            }
            let outcome = event.wait_surely();
            drop(waits);
            let wrong = if event_reaper::is_over(&outcome) { SubmitError::CommandFailed } else { SubmitError::Driver };
            if let Err(error) = outcome {
                return Some(Err(wrong(error).into()));
            }
        }
        let event = events.last().cloned();
        match self.what(task) {
            None => Some(Ok(())),
            Some(What::Function(function)) => {
                self.state.staged(None);
                let _inside = self.state.enter_task();
                let (node, begin) = (self.node(task), Instant::now());
                let calling =
                    Calling { submission: self, node: self.exec.fixed.plan.tasks[task].node, lost: OnceCell::new() };
                let outcome = function.call(&calling);
                let kept = |error| format!("memory that the task mapped could not be unmapped: {error}");
                let unmapped = calling.unmapped().map_err(kept);
                self.log(task, event, begin);
                let failed = |text| SubmitError::HostTask { node, what: self.describe(task), text }.into();
                Some(outcome.and(unmapped).map_err(failed))
            }
            Some(What::Wait(None)) => {
                self.log(task, event, Instant::now());
                Some(Ok(()))
            }
            Some(What::Wait(Some(blocker))) => {
                let (this, begin) = (Arc::clone(self), Instant::now());
                blocker.when_over(move |outcome| {
                    this.log(task, event, begin);
                    workers::run(move || this.resume(task, outcome));
                });
                None
            }
            Some(What::Signal(reserved)) => {
                self.state.staged(None);
                let begin = Instant::now();
                if let Some(reserved) = reserved {
                    reserved.end(Ok(()));
                }
                self.log(task, event, begin);
                Some(Ok(()))
            }
        }
    }

    /// Records when a task ran, until now.
    fn log(&self, task: usize, after: Option<DriverEvent>, begin: Instant) {
        if let Some(log) = self.state.log() {
            log.host(task, after, begin);
        }
    }

    /// Returns what a task does. This hands out its events.
    fn what(&self, task: usize) -> Option<What> {
        let mut progress = self.lock();
        let work = progress.work.as_mut()?;
        let tables = &work.snapshot.values.tables;
        match tables.ir.command(self.exec.fixed.plan.tasks[task].node) {
            Command::Task(task) => tables.tasks.get(task.index()).cloned().map(What::Function),
            Command::Event { event, .. } => work.bindings.events.get_mut(event.index()).map(|event| match event {
                External::Wait(blocker) => What::Wait(blocker.take()),
                External::Signal(reserved) => What::Signal(reserved.take()),
            }),
            _ => None,
        }
    }

    /// Describes a task, for error texts.
    fn describe(&self, task: usize) -> String {
        let node = self.exec.fixed.plan.tasks[task].node;
        let progress = self.lock();
        let tables = progress.work.as_ref().map(|work| &work.snapshot.values.tables);
        tables.map_or_else(|| NodeKind::HostTask.to_string(), |tables| tables.describe(node))
    }

    fn node(&self, task: usize) -> Node {
        self.exec.fixed.node(self.exec.fixed.origins.of(self.exec.fixed.plan.tasks[task].node).node)
    }

    /// Fails events that will never be completed, as soon as that is known.
    pub(in crate::exec) fn tell_given_up(&self) {
        let mut progress = self.lock();
        let given_up = progress.frontier.take_given_up();
        let failure = progress.failure.clone();
        drop(progress);
        for task in given_up {
            if let (Some(What::Signal(Some(reserved))), Some(error)) = (self.what(task), &failure) {
                reserved.end(Err(error.clone()));
            }
        }
    }
}

/// A host task that runs.
struct Calling<'a> {
    submission: &'a Deferred,
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
        let exec = &self.submission.exec.fixed;
        let at = scope.result(&exec.ports, read)?.index();
        let place = exec.partitions_of.reads.get(at);
        if !place.is_some_and(|(node, _)| exec.is_after(self.node, *node)) {
            let task = exec.node(exec.origins.of(self.node).node);
            return Err(SubmitError::NotAfterRead { task, read: read.node }.into());
        }
        let progress = self.submission.lock();
        // A task waits for everything before it, so the read is complete, unless it was never enqueued.
        let is_complete = place.is_some_and(|(_, part)| progress.frontier.is_enqueued(*part as usize));
        let slot = progress.work.as_ref().and_then(|work| work.bindings.slots.get(at)).filter(|_| is_complete);
        Ok(Arc::clone(slot.ok_or(SubmitError::NotComplete)?))
    }

    fn input(&self, write: Port, scope: &Scope, data: HostBytes) -> Result<()> {
        let (exec, node) = (&self.submission.exec.fixed, write.node);
        let (id, expected) = scope.input(&exec.ports, write)?;
        if data.len() != expected {
            return Err(SubmitError::InputSize { node, expected, given: data.len() }.into());
        }
        let place = exec.partitions_of.writes.get(&id);
        let is_after = place.is_some_and(|(write, _)| exec.is_after(*write, self.node));
        let mut progress = self.submission.lock();
        let is_of = |state: fn(&Frontier, usize) -> bool| {
            is_after && place.is_some_and(|(_, part)| state(&progress.frontier, *part as usize))
        };
        if is_of(Frontier::is_given_up) {
            // Something else before the write has failed, so nobody will need the data.
            drop(progress);
            drop(data);
            return Ok(());
        }
        if !is_of(Frontier::is_held) {
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
