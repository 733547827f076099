//! Submitting: what a submission waits for, where its commands go, and how submissions of one executable follow each
//! other.
//!
//! Most submissions are enqueued at once. One that waits for something that may still fail (a user event, or another
//! submission that does) is *deferred*: some drivers crash, hang, run the dependents or lose the queue when an event in
//! a wait list fails. Its commands are enqueued by the watcher after success, on a queue of the executable's own, and
//! the caller's queue is held by a gate that always opens.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::replay::{self, Ends, Hands, Inputs, Want};
use super::ring::Ring;
use super::submission::{Stage, State, Submission};
use super::{Executable, Inner, watch};
use crate::cl::buffer::{AsRegion, Buffer, Mem};
use crate::cl::context::InContext;
use crate::cl::enqueue::{self, To, Waits};
use crate::cl::event::{Event, Gate, Progress};
use crate::cl::host::{Element, HostBytes, HostData};
use crate::cl::queue::{Queue, QueueProperties};
use crate::error::{DriverError, Error, Result, Status, SubmitError};
use crate::graph::HostWrite;

/// A submission to be made. See [`Executable::submit_to`].
#[derive(Debug)]
#[must_use = "nothing is submitted until `submit` or `submit_detached` is called"]
pub struct Submit<'a> {
    exec: &'a Executable,
    queue: &'a Queue,
    waits: Vec<Result<Dependency>>,
    inputs: Result<Inputs>,
}

/// What a submission can wait for: a [`Submission`], an [`Event`], or an `opencl3` event.
pub trait WaitFor {
    /// What to wait for.
    ///
    /// # Errors
    /// [`DriverError`] when the driver refuses to retain an event.
    fn dependency(&self) -> Result<Dependency>;
}

/// Something to wait for, as [`WaitFor`] gives it.
#[derive(Clone, Debug)]
pub struct Dependency(Kind);

#[derive(Clone)]
enum Kind {
    Event(Event),
    Submission(Arc<State>),
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Event(event) => event.fmt(f),
            Self::Submission(state) => Submission::new(Arc::clone(state)).fmt(f),
        }
    }
}

impl WaitFor for Submission {
    fn dependency(&self) -> Result<Dependency> {
        Ok(Dependency(Kind::Submission(Arc::clone(self.state()))))
    }
}

impl WaitFor for Event {
    fn dependency(&self) -> Result<Dependency> {
        Ok(Dependency(Kind::Event(self.clone())))
    }
}

impl WaitFor for opencl3::event::Event {
    fn dependency(&self) -> Result<Dependency> {
        Event::from_opencl3(self)?.dependency()
    }
}

impl<'a> Submit<'a> {
    pub(super) fn new(exec: &'a Executable, queue: &'a Queue) -> Self {
        Self { exec, queue, waits: Vec::new(), inputs: Ok(Vec::new()) }
    }

    /// Lets the submission wait for something, besides what its queue holds already. May be called repeatedly.
    ///
    /// An event of a queue that nobody flushes may never complete: flushing queues of one's own is the caller's part. A
    /// user event may still be set to failure, and then the submission fails and does not run. An event of a command
    /// that fails while the driver waits for it leaves the rest to the driver, and drivers differ.
    pub fn after(mut self, event: &impl WaitFor) -> Self {
        self.waits.push(event.dependency());
        self
    }

    /// Lets the submission wait for several.
    pub fn after_all<'e, E: WaitFor + 'e>(mut self, events: impl IntoIterator<Item = &'e E>) -> Self {
        self.waits.extend(events.into_iter().map(WaitFor::dependency));
        self
    }

    /// Gives a host write other data, for this submission only. As many elements as the node writes.
    pub fn with<T: Element>(mut self, input: &HostWrite<T>, data: impl Into<HostData<T>>) -> Self {
        let (inner, node) = (&*self.exec.0, input.node());
        let bytes = data.into().into_bytes();
        let checked = match inner.inputs.get(&node.id()).filter(|_| node.graph() == inner.graph) {
            None => Err(SubmitError::NotAnInput { node }),
            Some(id) => {
                let expected = inner.data[id.index()].len();
                let given = bytes.len();
                if given == expected { Ok(*id) } else { Err(SubmitError::InputSize { node, expected, given }) }
            }
        };
        // The first mistake is the one that is told.
        if let Ok(inputs) = &mut self.inputs {
            match checked {
                Ok(id) => inputs.push((id, bytes)),
                Err(error) => self.inputs = Err(error.into()),
            }
        }
        self
    }

    /// Submits. Does not block.
    ///
    /// # Errors
    /// [`SubmitError::OtherQueue`], [`SubmitError::OtherContext`], [`SubmitError::EventFailed`];
    /// [`SubmitError::NoSlot`], [`SubmitError::NotAnInput`], [`SubmitError::InputSize`]: nothing was enqueued.
    /// [`SubmitError::Enqueue`]: what was enqueued before will run, and later submissions wait for it.
    pub fn submit(self) -> Result<Submission> {
        let submission = self.go(true)?;
        Ok(submission
            .ok_or(DriverError { call: "clEnqueueMarkerWithWaitList", status: Status(opencl_sys::CL_INVALID_EVENT) })?)
    }

    /// Submits, and gives nothing to wait for: the cheapest form, which needs no event of the driver.
    ///
    /// The queue orders it, and it orders later submissions. Failure is logged. Results are lost.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_detached(self) -> Result<()> {
        self.go(false).map(|_| ())
    }

    fn go(self, observed: bool) -> Result<Option<Submission>> {
        let exec = &self.exec.0;
        let other = |what| SubmitError::OtherQueue { what, device: exec.device.name().to_owned() };
        if self.queue.context() != &exec.context {
            return Err(other("context").into());
        }
        if self.queue.device() != &exec.device {
            return Err(other("device").into());
        }
        let inputs = self.inputs?;
        let Sorted { waits, mut blockers } = sort(exec, self.waits)?;
        let mut lane = exec.lane();
        lane.forget_finished();
        if let Some(tail) = lane.unfinished_deferred()? {
            blockers.push(Blocker::Order(tail));
        }
        let slots = lane.take_slots(exec)?;
        let hands = Hands { slots, inputs };
        if blockers.is_empty() {
            return lane.submit_now(exec, self.queue, waits, hands, observed);
        }
        let (deferred, submission) = lane.defer(exec, self.queue, &waits, hands)?;
        drop(lane);
        // Not under the lock: a blocker that is through already may call back.
        Deferred::wait_for(deferred, blockers);
        if !observed {
            submission.on_complete(|outcome| {
                if let Err(error) = outcome {
                    log::error!("a detached submission failed: {error}");
                }
            });
        }
        Ok(Some(submission))
    }
}

/// What a submission waits for, by how it is waited for.
struct Sorted {
    /// In the driver's wait list.
    waits: Waits,
    /// By the watcher.
    blockers: Vec<Blocker>,
}

enum Blocker {
    Event(Event),
    /// A submission that must succeed.
    Success(Arc<State>),
    /// A submission that must have ended, well or not.
    Order(Arc<State>),
}

/// Asks each event how it stands: what is complete is dropped, what has failed is an error.
fn sort(exec: &Inner, dependencies: Vec<Result<Dependency>>) -> Result<Sorted> {
    let mut sorted = Sorted { waits: Waits::NONE, blockers: Vec::new() };
    for (index, dependency) in dependencies.into_iter().enumerate() {
        let failed = |cause: Error| Error::from(SubmitError::EventFailed { index, cause: Box::new(cause) });
        match dependency?.0 {
            Kind::Event(event) => {
                if !event.is_of(&exec.context)? {
                    return Err(SubmitError::OtherContext { index }.into());
                }
                match event.progress()? {
                    Progress::Complete => {}
                    Progress::Failed(status) => return Err(failed(DriverError { call: "its command", status }.into())),
                    _ if event.is_user_event()? => sorted.blockers.push(Blocker::Event(event)),
                    _ => sorted.waits.push(event),
                }
            }
            Kind::Submission(state) => {
                if state.context != exec.context {
                    return Err(SubmitError::OtherContext { index }.into());
                }
                match state.stage()? {
                    Stage::Done(Ok(())) => {}
                    Stage::Done(Err(cause)) => return Err(failed(cause)),
                    Stage::Enqueued { queue, last, .. } => {
                        queue.flush()?;
                        sorted.waits.push(last);
                    }
                    Stage::Deferred => sorted.blockers.push(Blocker::Success(state)),
                }
            }
        }
    }
    Ok(sorted)
}

/// What the submissions of one executable share: how they follow each other, and the memory that they use in turn.
#[derive(Default)]
pub(super) struct Lane {
    /// Where the last commands were enqueued, and their last event if there is one.
    last: Option<(Queue, Option<Event>)>,
    /// The last deferred submission: later ones wait until it has ended.
    deferred: Option<Arc<State>>,
    /// For submissions that cannot go to the caller's queue.
    own_queue: Option<Queue>,
    /// What [`Lane::enter`] fills.
    door: Option<Mem>,
    /// By result.
    rings: Vec<Ring>,
    /// Input of submissions in flight, oldest first. (Their result slots are in the rings.)
    in_flight: VecDeque<(Event, Inputs)>,
}

impl Lane {
    pub(super) fn new(rings: Vec<Ring>) -> Self {
        Self { rings, ..Self::default() }
    }

    fn take_slots(&mut self, exec: &Inner) -> Result<Vec<Arc<crate::cl::host::Slot>>, SubmitError> {
        let mut slots = Vec::with_capacity(self.rings.len());
        for (index, ring) in self.rings.iter_mut().enumerate() {
            let Some(slot) = ring.take() else {
                let node =
                    exec.results.iter().find(|(_, id)| id.index() == index).map_or(crate::ir::NodeId(0), |(n, _)| *n);
                return Err(SubmitError::NoSlot { node: exec.node(node), slots: ring.limit() });
            };
            slots.push(slot);
        }
        Ok(slots)
    }

    fn forget_finished(&mut self) {
        let over = |event: &Event| !matches!(event.progress(), Ok(Progress::Waiting | Progress::Running));
        while self.in_flight.front().is_some_and(|(event, _)| over(event)) {
            self.in_flight.pop_front();
        }
    }

    fn unfinished_deferred(&mut self) -> Result<Option<Arc<State>>, DriverError> {
        if let Some(state) = &self.deferred
            && !matches!(state.stage()?, Stage::Deferred)
        {
            self.deferred = None;
        }
        Ok(self.deferred.clone())
    }

    /// The executable's own in-order queue, made when first needed.
    fn own_queue(&mut self, exec: &Inner) -> Result<Queue> {
        if let Some(queue) = &self.own_queue {
            return Ok(queue.clone());
        }
        let queue = Queue::with_properties(&exec.context, &exec.device, QueueProperties::default())?;
        self.own_queue = Some(queue.clone());
        Ok(queue)
    }

    /// An event on the caller's queue that is complete when the queue's order and the wait list allow to start.
    ///
    /// On an out-of-order queue it is that of a real command, a fill of four bytes: a marker with a wait list ignores
    /// barriers before it on Intel's CPU runtime (2026.2), a barrier with one does on PoCL 3.1, and either without one
    /// waits for everything.
    fn enter(&mut self, exec: &Inner, queue: &Queue, waits: &Waits) -> Result<Event> {
        if !queue.properties().out_of_order {
            return Ok(enqueue::marker(queue, waits)?);
        }
        let door = match &self.door {
            Some(door) => door.clone(),
            None => self.door.insert(Buffer::<u32>::new(&exec.context, 1)?.region().mem).clone(),
        };
        let to = To { queue, waits, event: true };
        let event = enqueue::fill(&to, (&door, 0), &[0; 4], 4)?;
        Ok(event.ok_or(DriverError { call: "clEnqueueFillBuffer", status: Status(opencl_sys::CL_INVALID_EVENT) })?)
    }

    /// The event of the commands before, if they are on another queue and still under way.
    fn previous(&mut self, queue: &Queue) -> Result<Option<Event>, DriverError> {
        let Some((last_queue, event)) = self.last.as_mut().filter(|(last_queue, _)| last_queue != queue) else {
            return Ok(None);
        };
        let event = match event {
            Some(event) => event.clone(),
            // They were enqueued without one. The queue is in order, so a marker now is as good.
            None => event.insert(enqueue::marker(last_queue, &Waits::NONE)?).clone(),
        };
        if !matches!(event.progress()?, Progress::Waiting | Progress::Running) {
            return Ok(None);
        }
        last_queue.flush()?;
        Ok(Some(event))
    }

    /// Enqueues behind `waits` and behind the submission before, and keeps what the commands use.
    fn enqueue(&mut self, exec: &Inner, queue: &Queue, mut waits: Waits, hands: Hands, want: Want) -> Result<Ends> {
        if let Some(previous) = self.previous(queue)? {
            waits.push(previous);
        }
        let keeps = !hands.inputs.is_empty();
        let want = Want { last: want.last || keeps, ..want };
        match replay::enqueue(exec, &hands, queue, &waits, want) {
            Ok(ends) => {
                self.last = Some((queue.clone(), ends.last.clone()));
                if let Some(last) = ends.last.clone().filter(|_| keeps) {
                    self.in_flight.push_back((last, hands.inputs));
                }
                Ok(ends)
            }
            Err(error) => {
                // Some commands are under way, and may use the host memory: it stays until they are through.
                self.last = Some((queue.clone(), None));
                match enqueue::marker(queue, &Waits::NONE) {
                    Ok(event) => self.in_flight.push_back((event, hands.inputs)),
                    // Nobody can tell when they are through. Losing the memory is the only safe thing.
                    Err(_) => std::mem::forget(hands.inputs),
                }
                Err(error.into())
            }
        }
    }

    fn submit_now(
        &mut self,
        exec: &Inner,
        queue: &Queue,
        mut waits: Waits,
        hands: Hands,
        observed: bool,
    ) -> Result<Option<Submission>> {
        let results = exec.held_results(&hands, observed);
        let (target, ends) = if queue.properties().out_of_order {
            // A barrier or an event for each command would cost more than the commands do, so they run on a queue of
            // their own, joined to the caller's by one marker on each side.
            let own = self.own_queue(exec)?;
            let entered = self.enter(exec, queue, &waits)?;
            queue.flush()?;
            waits = Waits::NONE;
            waits.push(entered);
            let ends = self.enqueue(exec, &own, waits, hands, Want { first: observed, last: true })?;
            if let Some(last) = ends.last.clone() {
                own.flush()?;
                // So that a barrier that the caller puts next holds for these commands too.
                let mut exit = Waits::NONE;
                exit.push(last);
                enqueue::marker(queue, &exit)?;
            }
            (own, ends)
        } else {
            (queue.clone(), self.enqueue(exec, queue, waits, hands, Want { first: observed, last: observed })?)
        };
        let Some(last) = ends.last.filter(|_| observed) else { return Ok(None) };
        let stage = Stage::Enqueued { queue: target, first: ends.first, last: last.clone() };
        let state = State::new(exec.context.clone(), results, stage, Some(last));
        Ok(Some(Submission::new(Arc::new(state))))
    }

    /// Holds the caller's queue with a gate, and leaves the rest to the watcher.
    fn defer(
        &mut self,
        exec: &Arc<Inner>,
        queue: &Queue,
        waits: &Waits,
        hands: Hands,
    ) -> Result<(Arc<Deferred>, Submission)> {
        let results = exec.held_results(&hands, true);
        // What must be there later is made now, so that it cannot fail later.
        self.own_queue(exec)?;
        let entered = self.enter(exec, queue, waits)?;
        let gate = Gate::closed(&exec.context)?;
        let left = if queue.properties().out_of_order {
            let mut wait = Waits::NONE;
            wait.push(gate.event().clone());
            enqueue::marker(queue, &wait)?
        } else {
            enqueue::barrier(queue, gate.event())?
        };
        queue.flush()?;
        let state = Arc::new(State::new(exec.context.clone(), results, Stage::Deferred, Some(left)));
        self.deferred = Some(Arc::clone(&state));
        let waiting = Waiting { entered, hands, _gate: gate, exec: Arc::clone(exec) };
        let count = Mutex::new(Countdown { left: 0, failure: None, waiting: Some(waiting) });
        let deferred = Deferred { state: Arc::clone(&state), count };
        Ok((Arc::new(deferred), Submission::new(state)))
    }

    /// Sees to it that host memory outlives the commands that use it, when the executable goes.
    pub(super) fn keep_host_memory(&mut self, data: Vec<HostBytes>) {
        let rings = std::mem::take(&mut self.rings);
        if data.is_empty() && rings.is_empty() && self.in_flight.is_empty() {
            return;
        }
        let Some((queue, event)) = self.last.take() else { return };
        let kept = (data, rings, std::mem::take(&mut self.in_flight));
        let event = match event {
            Some(event) => Ok(event),
            None => enqueue::marker(&queue, &Waits::NONE),
        };
        match event {
            Ok(event) if matches!(event.progress(), Ok(Progress::Complete)) => {}
            Ok(event) => {
                if let Err(error) = queue.flush() {
                    log::warn!("{error}: host memory of a dropped executable may be kept long");
                }
                watch::keep_until(event, kept);
            }
            Err(error) => {
                log::error!(
                    "{error}: host memory of a dropped executable is lost, because nobody can tell when it is free"
                );
                std::mem::forget(kept);
            }
        }
    }
}

impl Inner {
    /// The results that a submission holds; none when nobody can ask for them.
    fn held_results(&self, hands: &Hands, observed: bool) -> Vec<(crate::graph::Node, Arc<crate::cl::host::Slot>)> {
        if !observed {
            return Vec::new();
        }
        self.results.iter().map(|(node, id)| (self.node(*node), Arc::clone(&hands.slots[id.index()]))).collect()
    }
}

/// A submission that waits for its blockers.
struct Deferred {
    state: Arc<State>,
    count: Mutex<Countdown>,
}

struct Countdown {
    left: usize,
    failure: Option<Error>,
    waiting: Option<Waiting>,
}

/// What is needed once nothing blocks any more.
struct Waiting {
    entered: Event,
    hands: Hands,
    /// Opens when it is dropped.
    _gate: Gate,
    exec: Arc<Inner>,
}

impl Deferred {
    fn wait_for(this: Arc<Self>, blockers: Vec<Blocker>) {
        this.lock().left = blockers.len();
        for blocker in blockers {
            let this = Arc::clone(&this);
            match blocker {
                Blocker::Event(event) => {
                    watch::when_done(event, move |outcome| this.unblocked(outcome.map_err(Error::from)));
                }
                Blocker::Success(state) => state.when_done(move |outcome| this.unblocked(outcome)),
                Blocker::Order(state) => state.when_done(move |_| this.unblocked(Ok(()))),
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Countdown> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One blocker less. The last one launches, on the watcher's thread.
    fn unblocked(&self, outcome: Result<()>) {
        let mut count = self.lock();
        count.left -= 1;
        if let Err(error) = outcome {
            count.failure.get_or_insert(error);
        }
        if count.left > 0 {
            return;
        }
        let (waiting, failure) = (count.waiting.take(), count.failure.take());
        drop(count);
        let Some(waiting) = waiting else { return };
        match failure {
            // What depends on it hears the cause itself, not a chain of those who passed it on.
            Some(error @ Error::Submit(SubmitError::DependencyFailed { .. })) => self.end(Err(error), waiting),
            Some(cause) => self.end(Err(SubmitError::DependencyFailed { cause: Box::new(cause) }.into()), waiting),
            None => self.launch(waiting),
        }
    }

    fn launch(&self, mut waiting: Waiting) {
        let exec = Arc::clone(&waiting.exec);
        let hands = std::mem::take(&mut waiting.hands);
        let mut lane = exec.lane();
        let enqueued = lane.own_queue(&exec).and_then(|own| {
            let mut waits = Waits::NONE;
            waits.push(waiting.entered.clone());
            let ends = lane.enqueue(&exec, &own, waits, hands, Want { first: true, last: true })?;
            own.flush()?;
            Ok((own, ends))
        });
        drop(lane);
        match enqueued {
            Err(error) => self.end(Err(error), waiting),
            Ok((_, Ends { last: None, .. })) => self.end(Ok(()), waiting),
            Ok((own, Ends { first, last: Some(last) })) => {
                self.state.enqueued(own, first, last.clone());
                let state = Arc::clone(&self.state);
                watch::when_done(last, move |outcome| {
                    state.finish(outcome.map_err(|error| SubmitError::Failed(error).into()));
                    // Opens the gate: what the caller enqueued behind may run.
                    drop(waiting);
                });
            }
        }
    }

    fn end(&self, outcome: Result<()>, waiting: Waiting) {
        self.state.finish(outcome);
        drop(waiting);
    }
}
