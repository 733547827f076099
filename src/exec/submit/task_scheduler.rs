//! A submission of a graph with host tasks or external events, which are tasks too: its partitions are enqueued, tasks
//! run when the commands that they wait for are complete, and partitions that wait for a task are enqueued when the
//! task has succeeded.
//!
//! It runs on the executable's own queue, while a gate holds the caller's queue, like any submission that waits for
//! something that may fail (see [`deferred`](crate::exec::submit::deferred)): no event is ever made to fail. A task
//! runs on a thread of [`workers`]. The thread waits for the device itself, enqueues what comes next, and continues
//! with the next task, so that a chain of tasks costs no more than a loop of waiting and calling.

use std::cell::OnceCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::cl::commands::enqueue::NOTHING;
use crate::cl::completion::event_reaper;
use crate::cl::completion::workers::{self, DeviceWait};
use crate::cl::memory::host::{HostBytes, Slot};
use crate::cl::memory::map::Lost;
use crate::cl::objects::buffer::Region;
use crate::cl::objects::event::DriverEvent;
use crate::cl::objects::queue::DriverQueue;
use crate::command::Command;
use crate::error::{DriverError, Error, Result, SubmitError};
use crate::exec::Inner;
use crate::exec::submit::deferred::{Blocker, Waiting};
use crate::exec::submit::external_events::External;
use crate::exec::submit::frontier::Frontier;
use crate::exec::submit::interpreter::{self, Ends, Interpreter, Kept, Stopped, SubmissionBindings, Want};
use crate::exec::submit::submission_state::{self, SubmissionState};
use crate::exec::submit::user_event::ReservedUserEvent;
use crate::graph::nodes::host_task::{TaskFn, TaskSubmission};
use crate::graph::ports::Scope;
use crate::handles::Port;
use crate::handles::{Node, NodeKind};
use crate::ir::{DataId, Ir, Mode, NodeId};
use crate::plan::Plan;

/// By partition of reads and writes, for tasks that take results and set input.
#[derive(Debug, Default)]
pub(in crate::exec) struct PartsOf {
    reads: Vec<(NodeId, u32)>,
    writes: FxHashMap<DataId, (NodeId, u32)>,
}

impl PartsOf {
    pub(in crate::exec) fn new(ir: &Ir, plan: &Plan) -> Self {
        let mut parts = Self::default();
        if plan.tasks.is_empty() {
            return parts;
        }
        for node in ir.ids() {
            let part = (node, plan.partition_of[node.index()]);
            match ir.command(node) {
                // Results are numbered as reads come.
                Command::Read { .. } => parts.reads.push(part),
                Command::Write { data, .. } => drop(parts.writes.insert(*data, part)),
                _ => {}
            }
        }
        parts
    }
}

/// A submission that runs.
pub(in crate::exec) struct TaskScheduler {
    exec: Arc<Inner>,
    state: Arc<SubmissionState>,
    own: DriverQueue,
    going: Mutex<Going>,
}

struct Going {
    /// The last command of the queue before those of the submission.
    entered: Option<DriverEvent>,
    /// The events that the schedule keeps.
    kept: Option<Box<Kept>>,
    /// The end of the partition that was enqueued last, on one queue.
    last: Option<DriverEvent>,
    /// What the submission runs, and its gate. None when it has ended.
    waiting: Option<Waiting>,
    frontier: Frontier,
    /// How many partitions were enqueued.
    enqueued: usize,
    /// Whether the queue has refused a command: nothing is enqueued any more.
    refused: bool,
    failure: Option<Error>,
}

/// What a task does.
enum What {
    Function(TaskFn),
    /// None: the event has come.
    Wait(Option<Blocker>),
    /// None: it was completed.
    Signal(Option<ReservedUserEvent>),
}

/// A task that can run once these events are complete.
type Armed = (usize, SmallVec<[DriverEvent; 1]>);

impl TaskScheduler {
    /// Enqueues the partitions that wait for no task, and has the tasks run, all after `entered`, which is the last
    /// command of the queue. Does not block.
    pub(in crate::exec) fn start(
        exec: &Arc<Inner>,
        state: &Arc<SubmissionState>,
        own: DriverQueue,
        entered: Option<DriverEvent>,
        waiting: Waiting,
    ) {
        let going = Going {
            entered,
            kept: waiting.snapshot.kept(exec),
            last: None,
            waiting: Some(waiting),
            frontier: Frontier::new(&exec.plan),
            enqueued: 0,
            refused: false,
            failure: None,
        };
        let scheduler =
            Arc::new(Self { exec: Arc::clone(exec), state: Arc::clone(state), own, going: Mutex::new(going) });
        let mut going = scheduler.lock();
        scheduler.begin(&mut going);
        let armed = scheduler.go_on(&mut going);
        let over = going.frontier.is_over();
        drop(going);
        scheduler.flush();
        scheduler.tell_given_up();
        if over {
            return scheduler.end(false);
        }
        scheduler.dispatch(armed.into_iter(), None);
    }

    /// Enqueues what comes before all partitions, on several queues.
    fn begin(&self, going: &mut Going) {
        let outcome = self.carry_out(going, Want { first: false, last: false }, |of| of.before_blocks());
        match outcome {
            Ok(Ends { first: Some(first), .. }) => self.state.staged(Some(first)),
            Ok(_) => {}
            Err(Stopped { error, under_way }) => {
                going.enqueued += usize::from(under_way);
                going.failure.get_or_insert(error.into());
                going.refused = true;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Going> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Flushes what was enqueued. Not under the lock: a driver may call the program's code here.
    fn flush(&self) {
        submission_state::flush(&self.own);
        let others = self.lock().waiting.as_ref().map(|waiting| Arc::clone(&waiting.snapshot.others));
        others.iter().flat_map(|others| others.iter()).for_each(submission_state::flush);
    }

    /// Enqueues, in order, the partitions that have become ready. Returns the tasks that are ready.
    fn go_on(&self, going: &mut Going) -> Vec<Armed> {
        let plan = &self.exec.plan;
        while let Some(part) = going.frontier.next_partition() {
            let well = self.enqueue(going, part);
            going.frontier.partition_ended(plan, part, well);
        }
        let armed = going.frontier.take_armed();
        let schedule = going.waiting.as_ref().map(|waiting| waiting.snapshot.schedule(&self.exec));
        let events = |task: usize| {
            let waits = schedule.and_then(|schedule| schedule.tasks.get(task)).map_or(&[][..], Vec::as_slice);
            let mut events: SmallVec<[DriverEvent; 1]> =
                waits.iter().filter_map(|event| going.kept.as_ref()?.event(*event as usize).cloned()).collect();
            // A task after another one is after `entered` already.
            if events.is_empty() && plan.tasks[task].tasks.is_empty() {
                events.extend(going.entered.clone());
            }
            events
        };
        armed.into_iter().map(|task| (task, events(task))).collect()
    }

    /// Enqueues a partition. Returns whether that succeeded.
    fn enqueue(&self, going: &mut Going, index: usize) -> bool {
        if going.refused || self.exec.plan.partitions[index].steps.is_empty() {
            return !going.refused;
        }
        // On several queues it has begun before its first partition.
        let is_first = going.enqueued == 0;
        let outcome = self.carry_out(going, Want { first: is_first, last: true }, |of| of.block(index));
        match outcome {
            Ok(Ends { first, last, .. }) => {
                going.enqueued += 1;
                if let Some(first) = first.or_else(|| last.clone()).filter(|_| is_first) {
                    self.state.staged(Some(first));
                }
                going.last = last;
                true
            }
            Err(Stopped { error, under_way }) => {
                going.enqueued += usize::from(under_way);
                going.failure.get_or_insert(error.into());
                going.refused = true;
                false
            }
        }
    }

    /// Carries out some of the schedule.
    fn carry_out(
        &self,
        going: &mut Going,
        want: Want,
        what: impl FnOnce(Interpreter<'_>) -> Result<Ends, Stopped>,
    ) -> Result<Ends, Stopped> {
        let Going { waiting: Some(Waiting { snapshot, bindings, .. }), kept, .. } = going else {
            return Ok(Ends::default());
        };
        let _elsewhere = self.exec.context.enqueue_elsewhere();
        what(Interpreter::new(&self.exec, snapshot, bindings, &self.own, &NOTHING, want, kept.as_deref_mut()))
    }

    /// Has tasks run: the first by the caller, if that is a thread for tasks, the others when the event reaper sees
    /// that they can.
    fn dispatch(self: &Arc<Self>, armed: impl Iterator<Item = Armed>, mut next: Option<&mut Option<Armed>>) {
        let mut may_wait = true;
        for armed in armed {
            // One thread may wait for the device, but not for a gate: that may need a thread, and all might wait so.
            let waits_here = may_wait && armed.1.iter().all(|event| event.gates().is_empty());
            match (armed, &mut next) {
                (armed, Some(next)) if waits_here => {
                    may_wait = false;
                    **next = Some(armed);
                }
                (armed, None) if waits_here => {
                    may_wait = false;
                    self.start_task(armed);
                }
                (armed, _) => match armed.1.first().cloned() {
                    None => self.start_task(armed),
                    Some(event) => {
                        let scheduler = Arc::clone(self);
                        event_reaper::when_done(event, move |_| scheduler.start_task(armed));
                    }
                },
            }
        }
    }

    /// Has a thread for tasks run a task. If no thread will ever be free, the task fails.
    fn start_task(self: &Arc<Self>, armed: Armed) {
        let (task, scheduler) = (armed.0, Arc::clone(self));
        let Err(refused) = workers::start(Box::new(move || scheduler.run(armed))) else { return };
        // On another thread, as this one may be the event reaper's; and not on that for callbacks, which may wait for this.
        let scheduler = Arc::clone(self);
        workers::run(move || {
            if workers::start_patiently(refused).is_ok() {
                return;
            }
            let text = "no thread could be started for it, and all threads for host tasks wait".to_owned();
            let (node, what) = (scheduler.node(task), scheduler.describe(task));
            let next = scheduler.ended(task, Err(SubmitError::HostTask { node, what, text }.into()));
            next.into_iter().for_each(|armed| scheduler.start_task(armed));
        });
    }

    /// Runs a task, and those that can run then, on a thread for tasks.
    fn run(self: Arc<Self>, first: Armed) {
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
    fn ended(self: &Arc<Self>, task: usize, outcome: Result<()>) -> Option<Armed> {
        let mut next = None;
        {
            let mut going = self.lock();
            let before = going.enqueued;
            let well = outcome.is_ok();
            if let Err(error) = outcome {
                going.failure.get_or_insert(error);
            }
            going.frontier.task_ended(&self.exec.plan, task, well);
            let armed = self.go_on(&mut going);
            let (over, grown) = (going.frontier.is_over(), going.enqueued > before);
            drop(going);
            if grown {
                self.flush();
            }
            self.tell_given_up();
            self.dispatch(armed.into_iter(), Some(&mut next));
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
                let (scheduler, again) = (Arc::clone(self), events.clone());
                event_reaper::when_done(event.clone(), move |_| scheduler.start_task((task, again)));
                return None;
            }
            let outcome = event.wait_surely();
            drop(waits);
            let wrong = if event_reaper::is_over(&outcome) { SubmitError::Failed } else { SubmitError::Driver };
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
                let calling = Calling { scheduler: self, node: self.exec.plan.tasks[task].node, lost: OnceCell::new() };
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
                let (scheduler, begin) = (Arc::clone(self), Instant::now());
                blocker.when_over(move |outcome| {
                    scheduler.log(task, event, begin);
                    workers::run(move || scheduler.resume(task, outcome));
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
        let mut going = self.lock();
        let waiting = going.waiting.as_mut()?;
        let tables = &waiting.snapshot.values.tables;
        match tables.ir.command(self.exec.plan.tasks[task].node) {
            Command::Task(task) => tables.tasks.get(task.index()).cloned().map(What::Function),
            Command::Event { event, .. } => waiting.bindings.events.get_mut(event.index()).map(|event| match event {
                External::Wait(blocker) => What::Wait(blocker.take()),
                External::Signal(reserved) => What::Signal(reserved.take()),
            }),
            _ => None,
        }
    }

    /// Describes a task, for error texts.
    fn describe(&self, task: usize) -> String {
        let node = self.exec.plan.tasks[task].node;
        let going = self.lock();
        let tables = going.waiting.as_ref().map(|waiting| &waiting.snapshot.values.tables);
        tables.map_or_else(|| NodeKind::HostTask.to_string(), |tables| tables.describe(node))
    }

    fn node(&self, task: usize) -> Node {
        self.exec.node(self.exec.origins.of(self.exec.plan.tasks[task].node).node)
    }

    /// Fails events that will never be completed, as soon as that is known.
    fn tell_given_up(&self) {
        let mut going = self.lock();
        let given_up = going.frontier.take_given_up();
        let failure = going.failure.clone();
        drop(going);
        for task in given_up {
            if let (Some(What::Signal(Some(reserved))), Some(error)) = (self.what(task), &failure) {
                reserved.end(Err(error.clone()));
            }
        }
    }

    /// Everything has been enqueued, called or given up: the submission ends when the device is done.
    fn end(self: &Arc<Self>, may_wait: bool) {
        let mut going = self.lock();
        if going.enqueued == 0 {
            drop(going);
            return self.over(Ok(()));
        }
        let others = going.waiting.as_ref().map(|waiting| Arc::clone(&waiting.snapshot.others)).unwrap_or_default();
        let whole = !going.refused && (others.is_empty() || going.failure.is_none());
        let ends = match (whole, going.last.take().filter(|_| others.is_empty())) {
            (true, Some(last)) => Ends { last: Some(last), ..Ends::default() },
            (true, None) => {
                let want = Want { first: false, last: true };
                self.carry_out(&mut going, want, |of| of.after_blocks()).unwrap_or_default()
            }
            // Some commands may run after the last whole partition.
            (false, _) => Ends::default(),
        };
        drop(going);
        let last = match ends.last {
            Some(last) => Ok(last),
            None => interpreter::rest(&self.own, &others),
        };
        if !others.is_empty() || !whole {
            self.flush();
        }
        match last {
            Err(error) => self.over(Err(error)),
            Ok(last) if may_wait => {
                // Each queue in turn: on Intel's CPU runtime a thread that waits helps one queue only.
                for event in &ends.beside {
                    let _ = event.wait_surely();
                }
                self.over(last.wait_surely());
            }
            Ok(last) => {
                let scheduler = Arc::clone(self);
                event_reaper::when_done(last, move |outcome| scheduler.over(outcome));
            }
        }
    }

    fn over(&self, outcome: Result<(), DriverError>) {
        let mut going = self.lock();
        let (waiting, failure) = (going.waiting.take(), going.failure.take());
        drop(going);
        let Some(mut waiting) = waiting else { return };
        let is_over = event_reaper::is_over(&outcome);
        if let (Err(error), false) = (&outcome, is_over) {
            // Nobody can know when the driver is done with what it runs.
            let (values, recorded) = (Arc::clone(&waiting.snapshot.values), waiting.snapshot.recorded.clone());
            let bindings = (waiting.bindings.slots.clone(), std::mem::take(&mut waiting.bindings.inputs));
            let all = std::iter::once(&self.own).chain(waiting.snapshot.others.iter());
            let mut exclusive = self.exec.exclusive.take();
            all.for_each(|queue| exclusive.each().for_each(|uses| uses.runs(queue, None)));
            drop(exclusive);
            event_reaper::leak(error, (values, recorded, bindings, Arc::clone(&self.exec)));
        }
        let outcome = outcome.map_err(if is_over { SubmitError::Failed } else { SubmitError::Driver });
        waiting.end(&self.state, failure.map_or(outcome.map_err(Error::from), Err));
    }
}

/// A host task that runs.
struct Calling<'a> {
    scheduler: &'a TaskScheduler,
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
        let exec = &self.scheduler.exec;
        let at = scope.result(&exec.ports, read)?.index();
        let place = exec.parts_of.reads.get(at);
        if !place.is_some_and(|(node, _)| exec.is_after(self.node, *node)) {
            let task = exec.node(exec.origins.of(self.node).node);
            return Err(SubmitError::NotAfterRead { task, read: read.node }.into());
        }
        let going = self.scheduler.lock();
        // A task waits for everything before it, so the read is complete, unless it was never enqueued.
        let is_complete = place.is_some_and(|(_, part)| going.frontier.is_enqueued(*part as usize));
        let slot = going.waiting.as_ref().and_then(|waiting| waiting.bindings.slots.get(at)).filter(|_| is_complete);
        Ok(Arc::clone(slot.ok_or(SubmitError::NotComplete)?))
    }

    fn input(&self, write: Port, scope: &Scope, data: HostBytes) -> Result<()> {
        let (exec, node) = (&self.scheduler.exec, write.node);
        let (id, expected) = scope.input(&exec.ports, write)?;
        if data.len() != expected {
            return Err(SubmitError::InputSize { node, expected, given: data.len() }.into());
        }
        let place = exec.parts_of.writes.get(&id);
        let is_after = place.is_some_and(|(write, _)| exec.is_after(*write, self.node));
        let mut going = self.scheduler.lock();
        let is_of = |state: fn(&Frontier, usize) -> bool| {
            is_after && place.is_some_and(|(_, part)| state(&going.frontier, *part as usize))
        };
        if is_of(Frontier::is_given_up) {
            // Something else before the write has failed, so nobody will need the data.
            drop(going);
            drop(data);
            return Ok(());
        }
        if !is_of(Frontier::is_held) {
            return Err(SubmitError::InputTaken { node }.into());
        }
        let Some(waiting) = &mut going.waiting else { return Err(SubmitError::InputTaken { node }.into()) };
        let inputs: &mut SubmissionBindings = &mut waiting.bindings;
        // After others for the same node: the last one counts.
        let at = inputs.inputs.partition_point(|(other, _)| *other <= id);
        inputs.inputs.insert(at, (id, data));
        Ok(())
    }

    fn mapper(&self) -> (DriverQueue, Lost) {
        (self.scheduler.own.clone(), Arc::clone(self.lost.get_or_init(Lost::default)))
    }

    fn declares(&self, region: &Region, mode: Mode) -> bool {
        let going = self.scheduler.lock();
        going.waiting.as_ref().is_some_and(|waiting| waiting.snapshot.values.tables.declares(self.node, region, mode))
    }
}
