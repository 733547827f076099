//! A submission of a graph with host tasks or external events, which are tasks too: parts of it are enqueued, tasks run when what
//! they wait for is complete, and what waits for a task is enqueued when that has succeeded.
//!
//! It runs on the executable's own queue, while a gate holds the caller's, as any submission does that waits for something
//! that may fail (see [`deferred`](super::deferred)): no event is ever made to fail. A task runs on a thread of [`workers`], which
//! waits for the device itself, enqueues what comes next, and goes on with the next task, so that a chain of tasks is as a loop
//! of waiting and calling would be.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustc_hash::FxHashMap;

use super::deferred::Blocker;
use super::deferred::Waiting;
use super::external::External;
use super::state::{self, State};
use super::user_event::Promised;
use super::walk::{self, Ends, Hands, Stopped, Want};
use super::{Inner, workers};
use crate::cl::buffer::Region;
use crate::cl::enqueue::{self, Waits};
use crate::cl::event::{DriverEvent, Progress};
use crate::cl::host::{HostBytes, Slot};
use crate::cl::map::Lost;
use crate::cl::queue::DriverQueue;
use crate::cl::watch;
use crate::error::{DriverError, Error, Result, SubmitError};
use crate::graph::Part as NodePart;
use crate::graph::host_task::{TaskFn, TaskHands};
use crate::graph::ports::Scope;
use crate::graph::{Node, NodeKind};
use crate::ir::{DataId, Ir, Mode, NodeId, Op};
use crate::plan::Plan;

/// In which part reads and writes are, for tasks that ask for results and give input.
#[derive(Debug, Default)]
pub(super) struct PartsOf {
    reads: Vec<(NodeId, u32)>,
    writes: FxHashMap<DataId, (NodeId, u32)>,
}

impl PartsOf {
    pub(super) fn new(ir: &Ir, plan: &Plan) -> Self {
        let mut parts = Self::default();
        if plan.tasks.is_empty() {
            return parts;
        }
        for node in ir.ids() {
            let part = (node, plan.part_of[node.index()]);
            match ir.op(node) {
                // Results are numbered as reads come.
                Op::Read { .. } => parts.reads.push(part),
                Op::Write { data, .. } => drop(parts.writes.insert(*data, part)),
                _ => {}
            }
        }
        parts
    }
}

/// A submission under way.
pub(super) struct Tour {
    exec: Arc<Inner>,
    state: Arc<State>,
    own: DriverQueue,
    going: Mutex<Going>,
}

struct Going {
    /// The last command of the queue before those of the submission.
    entered: Option<DriverEvent>,
    /// What the submission runs, and its gate. None when it has ended.
    waiting: Option<Waiting>,
    parts: Vec<PartState>,
    tasks: Vec<TaskState>,
    /// What parts and tasks still wait for.
    missing_of_parts: Vec<usize>,
    missing_of_tasks: Vec<usize>,
    /// Parts and tasks that have not ended: a part ends when it is enqueued, or never will be.
    left: usize,
    /// How many parts were enqueued.
    enqueued: usize,
    /// The queue has refused a command: nothing is enqueued any more.
    refused: bool,
    failure: Option<Error>,
    /// Tasks that will never run, and that nobody has been told of.
    given_up: Vec<usize>,
}

impl Going {
    /// The part that was enqueued last.
    fn last(&self) -> Option<(usize, DriverEvent)> {
        let enqueued = self.parts.iter().filter_map(|part| match part {
            PartState::Enqueued(at, event) => Some((*at, event)),
            _ => None,
        });
        enqueued.max_by_key(|(at, _)| *at).map(|(at, event)| (at, event.clone()))
    }
}

enum PartState {
    Held,
    /// As which one, and an event that is complete when it is.
    Enqueued(usize, DriverEvent),
    /// It has no commands.
    Nothing,
    Skipped,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TaskState {
    Held,
    /// It runs, or is about to.
    Armed,
    Ended,
}

/// What a task does.
enum What {
    Function(TaskFn),
    /// None: the event has come.
    Wait(Option<Blocker>),
    /// None: it was completed.
    Signal(Option<Promised>),
}

/// What has come of something.
enum News {
    Task(usize, bool),
    Part(usize, bool),
}

/// A task that can run once an event is complete.
type Armed = (usize, Option<DriverEvent>);

impl Tour {
    /// Enqueues what waits for no task, and has the tasks run, all behind `entered`, which is the last command of the queue.
    /// Does not block.
    pub(super) fn start(
        exec: &Arc<Inner>,
        state: &Arc<State>,
        own: DriverQueue,
        entered: Option<DriverEvent>,
        waiting: Waiting,
    ) {
        let plan = &exec.plan;
        let going = Going {
            entered,
            waiting: Some(waiting),
            parts: plan.parts.iter().map(|_| PartState::Held).collect(),
            tasks: vec![TaskState::Held; plan.tasks.len()],
            missing_of_parts: plan.parts.iter().map(|part| part.tasks.len()).collect(),
            missing_of_tasks: plan.tasks.iter().map(|task| task.parts.len() + task.tasks.len()).collect(),
            left: plan.parts.len() + plan.tasks.len(),
            enqueued: 0,
            refused: false,
            failure: None,
            given_up: Vec::new(),
        };
        let tour = Arc::new(Self { exec: Arc::clone(exec), state: Arc::clone(state), own, going: Mutex::new(going) });
        let ready = |missing: &[usize]| -> Vec<usize> { (0..missing.len()).filter(|at| missing[*at] == 0).collect() };
        let mut going = tour.lock();
        let (parts, tasks) = (ready(&going.missing_of_parts), ready(&going.missing_of_tasks));
        tasks.iter().for_each(|task| going.tasks[*task] = TaskState::Armed);
        let armed = tour.go_on(&mut going, parts.into_iter().collect(), Vec::new(), tasks);
        let over = going.left == 0;
        drop(going);
        tour.flush();
        tour.tell_given_up();
        if over {
            return tour.end(false);
        }
        tour.dispatch(armed.into_iter(), None);
    }

    fn lock(&self) -> MutexGuard<'_, Going> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was enqueued is to run. Not under the lock: a driver may call users' code here.
    fn flush(&self) {
        state::flush(&self.own);
    }

    /// Follows what the news bring: parts that can be enqueued are, in their order. Gives the tasks that can run next, with those
    /// that were known.
    fn go_on(
        &self,
        going: &mut Going,
        mut ready: BTreeSet<usize>,
        mut news: Vec<News>,
        mut armed: Vec<usize>,
    ) -> Vec<Armed> {
        let plan = &self.exec.plan;
        loop {
            let (then_parts, then_tasks, well): (&[u32], &[u32], bool) = match news.pop() {
                Some(News::Task(task, well)) => (&plan.tasks[task].then_parts, &plan.tasks[task].then_tasks, well),
                Some(News::Part(part, well)) => (&[], &plan.parts[part].then_tasks, well),
                None => {
                    let Some(part) = ready.pop_first() else { break };
                    news.push(News::Part(part, self.enqueue(going, part)));
                    continue;
                }
            };
            going.left -= 1;
            for part in then_parts.iter().map(|part| *part as usize) {
                going.missing_of_parts[part] -= usize::from(well);
                if !well && matches!(going.parts[part], PartState::Held) {
                    going.parts[part] = PartState::Skipped;
                    news.push(News::Part(part, false));
                } else if well && going.missing_of_parts[part] == 0 && matches!(going.parts[part], PartState::Held) {
                    ready.insert(part);
                }
            }
            for task in then_tasks.iter().map(|task| *task as usize) {
                going.missing_of_tasks[task] -= usize::from(well);
                if !well && going.tasks[task] == TaskState::Held {
                    going.tasks[task] = TaskState::Ended;
                    going.given_up.push(task);
                    news.push(News::Task(task, false));
                } else if well && going.missing_of_tasks[task] == 0 && going.tasks[task] == TaskState::Held {
                    going.tasks[task] = TaskState::Armed;
                    armed.push(task);
                }
            }
        }
        // The queue is in order, so what was enqueued last says it all. What waits for a task is behind `entered` already.
        let event = |task: usize| {
            let of = &plan.tasks[task];
            let parts = of.parts.iter().filter_map(|part| match &going.parts[*part as usize] {
                PartState::Enqueued(at, event) => Some((*at, event)),
                _ => None,
            });
            let last = parts.max_by_key(|(at, _)| *at).map(|(_, event)| event);
            last.or(going.entered.as_ref().filter(|_| of.tasks.is_empty())).cloned()
        };
        armed.into_iter().map(|task| (task, event(task))).collect()
    }

    /// Enqueues a part. Whether that went well.
    fn enqueue(&self, going: &mut Going, index: usize) -> bool {
        let plan = &self.exec.plan;
        let part = &plan.parts[index];
        if going.refused {
            going.parts[index] = PartState::Skipped;
            return false;
        }
        if part.steps.is_empty() {
            // What it is behind is in the queue.
            going.parts[index] = going.last().map_or(PartState::Nothing, |(at, event)| PartState::Enqueued(at, event));
            return true;
        }
        let Some(waiting) = &going.waiting else { return false };
        let is_first = going.enqueued == 0;
        let (frozen, want) = (&waiting.frozen, Want { first: is_first, last: true });
        let recorded = frozen.recorded.as_deref();
        let outcome =
            walk::enqueue(&self.exec, &frozen.values, recorded, &waiting.hands, &self.own, &Waits::NONE, want, part);
        match outcome {
            Ok(Ends { first, last, .. }) => {
                going.enqueued += 1;
                let event = last.map_or_else(|| enqueue::last_marker(&self.own), Ok);
                match event {
                    Ok(event) => {
                        if is_first {
                            self.state.staged(first.or_else(|| Some(event.clone())));
                        }
                        going.parts[index] = PartState::Enqueued(going.enqueued, event);
                        return true;
                    }
                    Err(error) => going.failure.get_or_insert(SubmitError::Driver(error).into()),
                }
            }
            Err(Stopped { error, under_way }) => {
                going.enqueued += usize::from(under_way);
                going.failure.get_or_insert(error.into())
            }
        };
        going.refused = true;
        going.parts[index] = PartState::Skipped;
        false
    }

    /// Has tasks run: the first by who calls, if that is a thread for it, the others when the watcher sees that they can.
    fn dispatch(self: &Arc<Self>, mut armed: impl Iterator<Item = Armed>, next: Option<&mut Option<Armed>>) {
        match next {
            Some(next) => *next = armed.next(),
            None => {
                if let Some(first) = armed.next() {
                    let tour = Arc::clone(self);
                    workers::run(move || tour.run(first));
                }
            }
        }
        for (task, event) in armed {
            let tour = Arc::clone(self);
            match event {
                None => workers::run(move || tour.run((task, None))),
                Some(event) => {
                    let again = event.clone();
                    watch::when_done(event, move |_| workers::run(move || tour.run((task, Some(again)))));
                }
            }
        }
    }

    /// Runs a task, and those that can run then, on a thread for tasks.
    fn run(self: Arc<Self>, first: Armed) {
        let mut next = Some(first);
        while let Some((task, event)) = next.take() {
            let Some(outcome) = self.call(task, event) else { return };
            next = self.ended(task, outcome);
        }
    }

    /// Goes on where an external event has come.
    fn resume(self: Arc<Self>, task: usize, outcome: Result<()>) {
        self.state.staged(None);
        let node = self.node(task);
        let outcome =
            outcome.map_err(|cause| SubmitError::ExternalEvent { node, cause: Box::new(cause.root()) }.into());
        if let Some(next) = self.ended(task, outcome) {
            self.run(next);
        }
    }

    /// A task has ended. Gives one that can run then, for this thread.
    fn ended(self: &Arc<Self>, task: usize, outcome: Result<()>) -> Option<Armed> {
        let mut next = None;
        {
            let mut going = self.lock();
            let before = going.enqueued;
            going.tasks[task] = TaskState::Ended;
            let well = outcome.is_ok();
            if let Err(error) = outcome {
                going.failure.get_or_insert(error);
                // It may have been to complete an event.
                going.given_up.push(task);
            }
            let armed = self.go_on(&mut going, BTreeSet::new(), vec![News::Task(task, well)], Vec::new());
            let (over, grown) = (going.left == 0, going.enqueued > before);
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

    /// Waits for the device, and does what the task is. None where that is to wait for an event, behind which it goes on by itself.
    fn call(self: &Arc<Self>, task: usize, event: Option<DriverEvent>) -> Option<Result<()>> {
        if let Some(event) = &event {
            let outcome = event.wait_surely();
            let is_over = watch::is_over(&outcome);
            let outcome = outcome.map_err(if is_over { SubmitError::Failed } else { SubmitError::Driver });
            if let Err(error) = outcome {
                return Some(Err(error.into()));
            }
        }
        match self.what(task) {
            None => Some(Ok(())),
            Some(What::Function(function)) => {
                self.state.staged(None);
                let _inside = self.state.enter_task();
                let (node, begin) = (self.node(task), Instant::now());
                let calling = Calling { tour: self, node: self.exec.plan.tasks[task].node, lost: OnceCell::new() };
                let outcome = function.call(&calling);
                let unmapped =
                    calling.unmapped().map_err(|error| format!("{error}: memory that it mapped stays mapped"));
                self.log(task, event, begin);
                let failed = |text| SubmitError::HostTask { node, what: self.told(task), text }.into();
                Some(outcome.and(unmapped).map_err(failed))
            }
            Some(What::Wait(None)) => {
                self.log(task, event, Instant::now());
                Some(Ok(()))
            }
            Some(What::Wait(Some(blocker))) => {
                let (tour, begin) = (Arc::clone(self), Instant::now());
                blocker.when_over(move |outcome| {
                    tour.log(task, event, begin);
                    workers::run(move || tour.resume(task, outcome));
                });
                None
            }
            Some(What::Signal(promised)) => {
                self.state.staged(None);
                let begin = Instant::now();
                if let Some(promised) = promised {
                    promised.end(Ok(()));
                }
                self.log(task, event, begin);
                Some(Ok(()))
            }
        }
    }

    /// Takes down when a task ran, up to now.
    fn log(&self, task: usize, after: Option<DriverEvent>, begin: Instant) {
        if let Some(log) = self.state.log() {
            log.host(task, after, begin);
        }
    }

    /// What a task does. The events are given away by this.
    fn what(&self, task: usize) -> Option<What> {
        let mut going = self.lock();
        let waiting = going.waiting.as_mut()?;
        let tables = &waiting.frozen.values.tables;
        match tables.ir.op(self.exec.plan.tasks[task].node) {
            Op::Task(task) => tables.tasks.get(task.index()).cloned().map(What::Function),
            Op::Event { event, .. } => waiting.hands.events.get_mut(event.index()).map(|event| match event {
                External::Wait(blocker) => What::Wait(blocker.take()),
                External::Signal(promised) => What::Signal(promised.take()),
            }),
            _ => None,
        }
    }

    /// What a task is and is called, for error texts.
    fn told(&self, task: usize) -> String {
        let node = self.exec.plan.tasks[task].node;
        let going = self.lock();
        let tables = going.waiting.as_ref().map(|waiting| &waiting.frozen.values.tables);
        tables.map_or_else(|| NodeKind::HostTask.to_string(), |tables| tables.told(node))
    }

    fn node(&self, task: usize) -> Node {
        self.exec.node(self.exec.origins.of(self.exec.plan.tasks[task].node).node)
    }

    /// Has events fail that will never be completed, as soon as that is known.
    fn tell_given_up(&self) {
        let mut going = self.lock();
        let given_up = std::mem::take(&mut going.given_up);
        let failure = going.failure.clone();
        drop(going);
        for task in given_up {
            if let (Some(What::Signal(Some(promised))), Some(error)) = (self.what(task), &failure) {
                promised.end(Err(error.clone()));
            }
        }
    }

    /// Everything has been enqueued, called or given up: it has ended when the device is through.
    fn end(self: &Arc<Self>, may_wait: bool) {
        let going = self.lock();
        let last = going.last().map(|(_, event)| event);
        let (refused, enqueued) = (going.refused, going.enqueued);
        drop(going);
        let event = if enqueued == 0 {
            return self.over(Ok(()));
        } else if refused {
            // Some commands may be under way behind the last part that is whole.
            enqueue::last_marker(&self.own).inspect(|_| self.flush())
        } else {
            last.map_or_else(|| enqueue::last_marker(&self.own), Ok)
        };
        match event {
            Err(error) => self.over(Err(error)),
            Ok(event) if may_wait => self.over(event.wait_surely()),
            Ok(event) => {
                let tour = Arc::clone(self);
                watch::when_done(event, move |outcome| tour.over(outcome));
            }
        }
    }

    fn over(&self, outcome: Result<(), DriverError>) {
        let mut going = self.lock();
        let (waiting, failure) = (going.waiting.take(), going.failure.take());
        drop(going);
        let Some(mut waiting) = waiting else { return };
        let is_over = watch::is_over(&outcome);
        if let (Err(error), false) = (&outcome, is_over) {
            // Nobody can tell when the driver is done with what it runs.
            let (values, recorded) = (Arc::clone(&waiting.frozen.values), waiting.frozen.recorded.clone());
            let hands = (waiting.hands.slots.clone(), std::mem::take(&mut waiting.hands.inputs));
            watch::lose(error, (values, recorded, hands, Arc::clone(&self.exec)));
        }
        let outcome = outcome.map_err(if is_over { SubmitError::Failed } else { SubmitError::Driver });
        waiting.end(&self.state, failure.map_or(outcome.map_err(Error::from), Err));
    }
}

/// A host task that runs.
struct Calling<'a> {
    tour: &'a Tour,
    node: NodeId,
    /// What could not be unmapped, where it maps memory.
    lost: OnceCell<Lost>,
}

impl Calling<'_> {
    /// Whether all that it mapped is the device's again.
    fn unmapped(&self) -> Result<(), DriverError> {
        self.lost.get().and_then(|lost| lost.get()).map_or(Ok(()), |error| Err(*error))
    }
}

impl TaskHands for Calling<'_> {
    fn result(&self, read: NodePart, scope: &Scope) -> Result<Arc<Slot>> {
        let exec = &self.tour.exec;
        let at = scope.result(&exec.ports, read)?.index();
        let place = exec.parts_of.reads.get(at);
        if !place.is_some_and(|(node, _)| exec.is_behind(self.node, *node)) {
            let task = exec.node(exec.origins.of(self.node).node);
            return Err(SubmitError::NotBehind { task, read: read.node }.into());
        }
        let going = self.tour.lock();
        let is_complete = match place.and_then(|(_, part)| going.parts.get(*part as usize)) {
            Some(PartState::Enqueued(_, event)) => matches!(event.progress()?, Progress::Complete),
            Some(PartState::Nothing) => true,
            _ => false,
        };
        let slot = going.waiting.as_ref().and_then(|waiting| waiting.hands.slots.get(at)).filter(|_| is_complete);
        Ok(Arc::clone(slot.ok_or(SubmitError::NotComplete)?))
    }

    fn input(&self, write: NodePart, scope: &Scope, data: HostBytes) -> Result<()> {
        let (exec, node) = (&self.tour.exec, write.node);
        let (id, expected) = scope.input(&exec.ports, write)?;
        if data.len() != expected {
            return Err(SubmitError::InputSize { node, expected, given: data.len() }.into());
        }
        let place = exec.parts_of.writes.get(&id);
        let is_behind = place.is_some_and(|(write, _)| exec.is_behind(*write, self.node));
        let mut going = self.tour.lock();
        let part = place.and_then(|(_, part)| going.parts.get(*part as usize));
        if !is_behind || !matches!(part, Some(PartState::Held)) {
            return Err(SubmitError::InputTaken { node }.into());
        }
        let Some(waiting) = &mut going.waiting else { return Err(SubmitError::InputTaken { node }.into()) };
        let inputs: &mut Hands = &mut waiting.hands;
        // Behind others for the same node: the last one counts.
        let at = inputs.inputs.partition_point(|(other, _)| *other <= id);
        inputs.inputs.insert(at, (id, data));
        Ok(())
    }

    fn mapper(&self) -> (DriverQueue, Lost) {
        (self.tour.own.clone(), Arc::clone(self.lost.get_or_init(Lost::default)))
    }

    fn declares(&self, region: &Region, mode: Mode) -> bool {
        let going = self.tour.lock();
        going.waiting.as_ref().is_some_and(|waiting| waiting.frozen.values.tables.declares(self.node, region, mode))
    }
}
