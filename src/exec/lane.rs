//! How the submissions of one executable follow each other, and the memory that they use in turn.

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;

use super::Inner;
use super::choice::{Choice, Times};
use super::deferred::{Blocker, Deferred, Waiting};
use super::finalize;
use super::follow::Old;
use super::frozen::{Frozen, Set};
use super::native::Recorded;
use super::remember::Remembered;
use super::report::ChoiceReport;
use super::ring::Ring;
use super::spread;
use super::state::{self, Keep, Stage, State};
use super::submission::{Results, Submission};
use super::turns::{Taken, TurnsOf, Uses};
use super::update::Editing;
use super::values::{Objects, Values};
use super::walk::{self, Ends, Hands, Stopped, Want};
use crate::cl::allocation::{Allocation, User};
use crate::cl::enqueue::{self, Waits};
use crate::cl::event::{DriverEvent, Gate};
use crate::cl::host::Slot;
use crate::cl::mem::Mem;
use crate::cl::queue::{DriverQueue, QueueProperties};
use crate::cl::stamp::Stamp;
use crate::cl::watch;
use crate::error::{DriverError, Error, MemoryError, Result, SubmitError};
use crate::graph::{Origin, Part};
use crate::plan::{Path, Plan, Way};

/// What the submissions of one executable share. It is used under a lock, so nothing here runs users' code: what has
/// to be dropped or flushed is left in [`Leftovers`].
pub(super) struct Lane {
    pub(super) values: Arc<Values>,
    /// What updates need. None where nothing can be updated.
    pub(super) editing: Option<Editing>,
    /// Whether nodes may use other memory than when their edges were made.
    pub(super) changed: bool,
    /// Command buffers that an update has changed in part: which set, and which of it.
    pub(super) half_changed: Vec<(usize, usize)>,
    /// Kernel objects of recorded steps that others have replaced, for the update after: releasing all of them takes PoCL time
    /// that grows with the square of their number.
    pub(super) spare: Objects,
    /// Memory that the host may have meanwhile, by where it is kept.
    shared: BTreeMap<usize, Arc<Allocation>>,
    /// Memory that was shared, and that commands under way may use still.
    leaving: BTreeMap<usize, Arc<Allocation>>,
    /// For submissions that cannot go to the caller's queue.
    own_queue: Option<DriverQueue>,
    /// For submissions that go over several queues.
    pub(super) others: Arc<[DriverQueue]>,
    pub(super) recorded: Vec<Set>,
    pub(super) choice: Choice,
    /// Where the choice is kept, if it is.
    remembered: Option<Arc<Remembered>>,
    /// By result.
    rings: Vec<Ring>,
    /// Input of submissions in flight, oldest first. (Their result slots are in the rings.)
    in_flight: VecDeque<(DriverEvent, Keep)>,
    pub(super) leftovers: Leftovers,
}

/// What is to be done when the lock is gone: dropping input may run users' code, and so may a driver in a flush.
#[derive(Default)]
pub(super) struct Leftovers {
    /// To open: what is released then may have an owner with a `Drop` of its own.
    gates: Vec<Gate>,
    flush: Vec<DriverQueue>,
    let_go: Vec<Keep>,
    /// Of submissions that came to nothing.
    hands: Vec<Hands>,
    /// Kernel objects that others have replaced.
    pub(super) old: Vec<Old>,
    /// To stop, when everything else is done.
    stamp: Option<Arc<Stamp>>,
    /// What was found by timing, and where it is kept.
    found: Option<(Arc<Remembered>, (Way, Times))>,
}

impl Leftovers {
    pub(super) fn settle(self, exec: &Inner) {
        drop((self.gates, self.hands));
        for queue in self.flush {
            state::flush(&queue);
        }
        self.let_go.iter().for_each(|keep| keep.let_go());
        if !self.old.is_empty() {
            exec.turns.keep_until_idle(self.old);
        }
        if let Some(stamp) = self.stamp {
            stamp.enqueued();
        }
        if let Some((remembered, found)) = self.found {
            remembered.keep(found);
        }
    }
}

/// What became of a submission.
pub(super) enum Accepted {
    /// It is enqueued; somebody may look at it.
    Enqueued(Option<Submission>),
    /// It waits for these.
    Deferred { deferred: Arc<Deferred>, results: Results, blockers: Vec<Blocker> },
}

/// A caller's queue that is held for a deferred submission.
struct Held {
    /// Complete when the caller's queue would have let the submission start.
    entered: DriverEvent,
    /// Closes the caller's queue.
    gate: Gate,
    /// Complete when that is open.
    left: DriverEvent,
}

/// Commands that could not all be enqueued.
pub(super) struct Refused {
    pub(super) error: Box<Error>,
    /// An event that is complete when those that were enqueued are through. None were if there is none.
    pub(super) rest: Option<DriverEvent>,
}

impl<E: Into<Error>> From<E> for Refused {
    fn from(error: E) -> Self {
        Self { error: Box::new(error.into()), rest: None }
    }
}

impl Lane {
    /// With the command buffers that finalize has made, and the queue that they were made for.
    pub(super) fn new(
        values: Values,
        editing: Option<Editing>,
        changed: bool,
        rings: Vec<Ring>,
        recorded: Option<(DriverQueue, Recorded)>,
        plan: &Plan,
        remembered: Option<Arc<Remembered>>,
    ) -> Self {
        let mut lane = Self {
            values: Arc::new(values),
            editing,
            changed,
            half_changed: Vec::new(),
            spare: Objects::default(),
            shared: BTreeMap::new(),
            leaving: BTreeMap::new(),
            own_queue: None,
            others: Arc::default(),
            recorded: Vec::new(),
            choice: Choice::new(&plan.ways),
            remembered,
            rings,
            in_flight: VecDeque::new(),
            leftovers: Leftovers::default(),
        };
        if let Some((queue, recorded)) = recorded {
            let recorded = Some(Arc::new(recorded));
            lane.recorded.push(Set { properties: queue.properties(), most: plan.chunk(), recorded });
            lane.own_queue = Some(queue);
        }
        if let Some(remembered) = &lane.remembered {
            remembered.recall(&mut lane.choice);
        }
        lane
    }

    /// Has memory that the host may have meanwhile know who uses it.
    pub(super) fn share<'m>(&mut self, turns: &TurnsOf, mems: impl Iterator<Item = &'m Mem>) {
        let mut is_first = true;
        for allocation in mems.filter_map(Mem::allocation).filter(|its| its.may_have_guards()) {
            let Entry::Vacant(place) = self.shared.entry(Arc::as_ptr(allocation).addr()) else { continue };
            if std::mem::take(&mut is_first)
                && let Err(error) = turns.mark()
            {
                log::warn!("{error}: `Memory::host` may refuse memory of an executable for longer than it is in use");
            }
            self.leaving.remove(place.key());
            allocation.add_user(turns.as_user());
            place.insert(Arc::clone(allocation));
        }
    }

    /// Memory that nothing names any more. Commands under way may use it still.
    pub(super) fn unshare<'m>(&mut self, mems: impl Iterator<Item = &'m Mem>) {
        for allocation in mems.filter_map(Mem::allocation) {
            self.leaving.extend(self.shared.remove_entry(&Arc::as_ptr(allocation).addr()));
        }
    }

    /// Lets go of memory that the executable no longer uses.
    fn leave(&mut self, turns: &TurnsOf) {
        let user = turns.as_user();
        std::mem::take(&mut self.leaving).values().for_each(|allocation| allocation.remove_user(&user));
    }

    /// Whether some memory may be the host's meanwhile.
    fn is_shared(&self) -> bool {
        !self.shared.is_empty() || !self.leaving.is_empty()
    }

    /// How it stands with the choice of a way.
    pub(super) fn choice(&mut self) -> ChoiceReport {
        self.collect_times();
        ChoiceReport::new(&self.choice)
    }

    fn collect_times(&mut self) {
        if self.choice.collect() {
            self.settled();
        }
    }

    #[cold]
    fn settled(&mut self) {
        if log::log_enabled!(log::Level::Info)
            && let Some(taken) = ChoiceReport::new(&self.choice).ways.iter().find(|way| way.taken)
        {
            log::info!("the automatic path of an executable on device `{}` is {taken}", self.values.device.name());
        }
        if let (Some(remembered), Some(found)) = (&self.remembered, self.choice.found()) {
            self.leftovers.found = Some((Arc::clone(remembered), found));
        }
    }

    /// What is to be done once the lock is gone.
    pub(super) fn leftovers(&mut self) -> Leftovers {
        std::mem::take(&mut self.leftovers)
    }

    /// Enqueues a submission, or defers it when it has something to be waited for that may still fail.
    pub(super) fn accept(
        &mut self,
        exec: &Arc<Inner>,
        queue: &DriverQueue,
        waits: Waits,
        mut blockers: Vec<Blocker>,
        mut hands: Hands,
        observed: bool,
    ) -> Result<Accepted> {
        self.forget_finished();
        self.collect_times();
        let mut turns = exec.turns.take();
        let _whole = queue.whole();
        turns.each().for_each(Uses::set_finished_aside);
        let is_idle = turns.each().all(|uses| uses.is_idle());
        if is_idle && !self.leaving.is_empty() {
            self.leave(&exec.turns);
        }
        if is_idle {
            self.rings.iter_mut().for_each(Ring::trim);
        }
        turns.behind_deferred(&mut blockers);
        let before = if exec.plan.only_recorded && !may_overlap(exec) {
            // A command buffer that runs cannot be enqueued again, and its commands cannot be replayed.
            turns.through()
        } else {
            turns.out_of_reach(queue)
        };
        match before {
            Ok(before) => blockers.extend(before),
            Err(error) => {
                self.leftovers.hands.push(hands);
                return Err(error.into());
            }
        }
        // A guard that is made from now on finds this submission, or was there before.
        let guarded =
            self.shared.values().find(|allocation| allocation.is_guarded()).map(|allocation| allocation.kind());
        if let Some(kind) = guarded {
            self.leftovers.hands.push(hands);
            return Err(MemoryError::HostHasIt { kind }.into());
        }
        match self.take_slots(exec) {
            Ok(slots) => hands.slots = slots,
            Err(error) => {
                self.leftovers.hands.push(hands);
                return Err(error.into());
            }
        }
        if blockers.is_empty() && exec.plan.tasks.is_empty() && queue.is_sure() {
            return Ok(Accepted::Enqueued(self.submit_now(exec, &mut turns, queue, waits, hands, observed)?));
        }
        let results = exec.held_results(&hands);
        let deferred = self.defer(exec, &mut turns, queue, &waits, hands, &mut blockers)?;
        Ok(Accepted::Deferred { deferred, results, blockers })
    }

    fn take_slots(&mut self, exec: &Inner) -> Result<Vec<Arc<Slot>>, SubmitError> {
        self.rings.iter_mut().zip(exec.ports.results()).map(|(ring, of)| ring.take(exec.node(of.node))).collect()
    }

    fn forget_finished(&mut self) {
        while self.in_flight.front().is_some_and(|(event, _)| !event.may_run()) {
            self.leftovers.let_go.extend(self.in_flight.pop_front().map(|(_, keep)| keep));
        }
    }

    /// The executable's own in-order queue, made when first needed.
    pub(super) fn own_queue(&mut self, exec: &Inner) -> Result<DriverQueue> {
        if let Some(queue) = &self.own_queue {
            return Ok(queue.clone());
        }
        let properties = QueueProperties::new().profiling(exec.names.is_some());
        let queue = DriverQueue::with_properties(&exec.context, &exec.device, properties)?;
        self.own_queue = Some(queue.clone());
        Ok(queue)
    }

    /// Adds to `waits` the uses before that may run on other queues.
    pub(super) fn behind_others(
        &mut self,
        turns: &mut Taken<'_>,
        queue: &DriverQueue,
        waits: &mut Waits,
    ) -> Result<(), DriverError> {
        for uses in turns.each() {
            for running in uses.running.iter_mut().filter(|running| !running.is_before_all_on(queue)) {
                uses.several_queues = true;
                if let Some(event) = running.end()? {
                    self.leftovers.flush.push(running.queue.clone());
                    waits.push(event);
                }
            }
        }
        Ok(())
    }

    /// Enqueues behind `waits` and behind the uses before, and keeps what the commands use.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn enqueue(
        &mut self,
        exec: &Inner,
        turns: &mut Taken<'_>,
        frozen: &Frozen,
        queue: &DriverQueue,
        mut waits: Waits,
        hands: Hands,
        keep: &Keep,
        want: Want,
    ) -> Result<Ends, Refused> {
        if let Err(error) = self.behind_others(turns, queue, &mut waits) {
            self.leftovers.hands.push(hands);
            return Err(error.into());
        }
        let keeps = !hands.inputs.is_empty();
        let others = keeps || self.is_shared() || turns.on_several_queues() || frozen.stamp.is_some();
        let want = Want { last: want.last || others, ..want };
        if frozen.way.path == Path::Gated {
            match Gate::closed(&exec.context) {
                Ok(gate) => {
                    waits.push_open(gate.event().clone());
                    self.leftovers.gates.push(gate);
                }
                Err(error) => log::debug!("{error}: a submission is replayed plainly, and not gated"),
            }
        }
        // Without host tasks there is one.
        let Some(part) = exec.plan.parts.first() else { return Ok(Ends::default()) };
        let others = &*frozen.others;
        let lanes = exec.plan.lanes.as_ref().filter(|_| frozen.way.path == Path::Queues);
        let outcome = match lanes {
            Some(lanes) => {
                // They wait for each other.
                self.leftovers.flush.extend(std::iter::once(queue).chain(others).cloned());
                spread::enqueue(exec, &frozen.values, lanes, &hands, (queue, others), &waits)
            }
            None => walk::enqueue(exec, &frozen.values, frozen.recorded.as_deref(), &hands, queue, &waits, want, part),
        };
        keep.put(hands.inputs);
        match outcome {
            Ok(ends) => {
                if let (Some(stamp), Some(last)) = (&frozen.stamp, &ends.last) {
                    last.stamp(stamp);
                    self.leftovers.stamp = Some(Arc::clone(stamp));
                }
                for uses in turns.each() {
                    if !uses.running.is_empty() {
                        uses.running.retain(|running| !running.is_before_all_on(queue));
                    }
                    uses.runs(queue, ends.last.as_ref());
                }
                if keeps {
                    self.keep_until_through(queue, ends.last.clone(), keep);
                }
                Ok(ends)
            }
            Err(Stopped { error, under_way: false }) => {
                self.leftovers.let_go.push(keep.clone());
                Err(error.into())
            }
            Err(Stopped { error, under_way: true }) => {
                // Some commands are under way, and may use the host memory: it stays until they are through.
                let rest = if others.is_empty() { enqueue::last_marker(queue) } else { spread::rest(queue, others) };
                if rest.is_err() {
                    turns.each().for_each(|uses| others.iter().for_each(|queue| uses.runs(queue, None)));
                }
                turns.each().for_each(|uses| uses.runs(queue, rest.as_ref().ok()));
                match &rest {
                    Ok(rest) => self.keep_until_through(queue, Some(rest.clone()), keep),
                    Err(error) => keep.lose(error),
                }
                self.leftovers.flush.push(queue.clone());
                Err(Refused { error: Box::new(error.into()), rest: rest.ok() })
            }
        }
    }

    /// Keeps host memory until an event on a queue is complete, or until everything on the queue is.
    fn keep_until_through(&mut self, queue: &DriverQueue, event: Option<DriverEvent>, keep: &Keep) {
        match event.map_or_else(|| enqueue::last_marker(queue), Ok) {
            Ok(event) => self.in_flight.push_back((event, keep.clone())),
            Err(error) => watch::lose(error, keep.clone()),
        }
    }

    fn submit_now(
        &mut self,
        exec: &Inner,
        turns: &mut Taken<'_>,
        queue: &DriverQueue,
        waits: Waits,
        hands: Hands,
        observed: bool,
    ) -> Result<Option<Submission>> {
        let results = if observed { exec.held_results(&hands) } else { None };
        let idle = turns.each().all(|uses| uses.is_idle());
        let way = self.choice.next(idle, waits.is_empty());
        let stamp = way.1.clone();
        let (keep, log) = (Keep::place_for(&hands.inputs), hands.log.clone());
        let properties = queue.properties();
        let wants_own = properties.out_of_order
            || (hands.log.is_some() && !properties.profiling)
            || (exec.plan.only_recorded && properties.profiling && !finalize::profiles(exec.device.caps()));
        let (target, ends) = if wants_own {
            // A barrier or an event for each command would cost more than the commands do, so they run on a queue of
            // their own, joined to the caller's by one command on each side.
            let joined = self.own_queue(exec).and_then(|own| Ok((own, enqueue::entry(queue, &waits)?)));
            let (own, event) = match joined {
                Ok(joined) => joined,
                Err(error) => {
                    self.leftovers.hands.push(hands);
                    return Err(error);
                }
            };
            let mut entered = Waits::NONE;
            entered.push(event);
            self.leftovers.flush.push(queue.clone());
            let frozen = match self.freeze(exec, &own, way) {
                Ok(frozen) => frozen,
                Err(error) => {
                    self.leftovers.hands.push(hands);
                    return Err(error);
                }
            };
            let want = Want { first: observed, last: true };
            let outcome = self.enqueue(exec, turns, &frozen, &own, entered, hands, &keep, want);
            let last = match &outcome {
                Ok(ends) => ends.last.clone(),
                Err(refused) => refused.rest.clone(),
            };
            if let Some(last) = last {
                self.leftovers.flush.push(own.clone());
                // So that a barrier that the caller puts next holds for these commands too.
                let mut exit = Waits::NONE;
                exit.push(last);
                enqueue::marker(queue, &exit)?;
            }
            (own, outcome.map_err(|refused| *refused.error)?)
        } else {
            let want = Want { first: observed, last: observed };
            let frozen = match self.freeze(exec, queue, way) {
                Ok(frozen) => frozen,
                Err(error) => {
                    self.leftovers.hands.push(hands);
                    return Err(error);
                }
            };
            let outcome = self.enqueue(exec, turns, &frozen, queue, waits, hands, &keep, want);
            (queue.clone(), outcome.map_err(|refused| *refused.error)?)
        };
        let Some(last) = ends.last.filter(|_| observed) else { return Ok(None) };
        let stage = Stage::Enqueued { queue: target, first: ends.first, last: last.clone(), beside: ends.beside };
        let state = State::new(exec.context.clone(), Some(queue), keep, stage, last, log, stamp);
        Ok(Some(Submission::new(Arc::new(state), results)))
    }

    /// Holds the caller's queue with a gate, and leaves the rest to the watcher.
    fn defer(
        &mut self,
        exec: &Arc<Inner>,
        turns: &mut Taken<'_>,
        queue: &DriverQueue,
        waits: &Waits,
        hands: Hands,
        blockers: &mut Vec<Blocker>,
    ) -> Result<Arc<Deferred>> {
        let keep = Keep::place_for(&hands.inputs);
        let held = self.own_queue(exec).and_then(|own| self.freeze(exec, &own, (self.choice.way(), None)));
        let held = held.and_then(|frozen| Ok((frozen, self.hold(exec, queue, waits)?)));
        let (frozen, Held { entered, gate, left }) = match held {
            Ok(held) => held,
            Err(error) => {
                self.leftovers.hands.push(hands);
                return Err(error);
            }
        };
        self.leftovers.flush.push(queue.clone());
        if !entered.is_sure() {
            // What it would wait for in a wait list may fail.
            blockers.push(Blocker::Event(entered.clone()));
        }
        let (context, log) = (exec.context.clone(), hands.log.clone());
        let state = Arc::new(State::new(context, Some(queue), keep.clone(), Stage::Deferred, left, log, None));
        turns.each().for_each(|uses| uses.deferred = Some(Arc::clone(&state)));
        Ok(Deferred::new(state, Arc::clone(exec), Waiting { frozen, entered, hands, keep, gate }))
    }

    fn hold(&self, exec: &Inner, queue: &DriverQueue, waits: &Waits) -> Result<Held> {
        let entered = enqueue::entry(queue, waits)?;
        let gate = Gate::closed(&exec.context)?;
        let mut wait = Waits::NONE;
        wait.push(gate.event().clone());
        let left = if queue.properties().out_of_order {
            enqueue::marker(queue, &wait)?
        } else {
            enqueue::barrier(queue, &wait)?
        };
        Ok(Held { entered, gate, left })
    }

    /// What has to outlive the commands, when the executable goes: host memory, memory with an address,
    /// and what command buffers name.
    pub(super) fn kept(&mut self, user: Arc<dyn User>) -> Option<impl Send + Sync + 'static + use<>> {
        let recorded = std::mem::take(&mut self.recorded);
        let mut spare = std::mem::take(&mut self.spare);
        if let Some(values) = Arc::get_mut(&mut self.values) {
            values.objects.0.append(&mut spare.0);
        }
        let host = (std::mem::take(&mut self.rings), std::mem::take(&mut self.in_flight));
        let pointers = self.values.tables.views.iter().flatten().any(|mem| mem.allocation().is_some());
        // Some drivers do not keep samplers even while a launch with one runs, nor images that are made of buffers.
        let loose = self.values.tables.views.iter().flatten().any(Mem::is_image_of_buffer);
        let loose = loose || self.values.tables.samplers.iter().any(Option::is_some);
        // What native commands enqueue may use what their functions own.
        let loose = loose || !self.values.tables.natives.is_empty();
        let data = loose || !self.values.tables.data.is_empty();
        if recorded.is_empty() && !data && !pointers && host.0.is_empty() && host.1.is_empty() {
            return None;
        }
        // Command buffers go first: kernels that they hold are then not released by them, oldest first.
        // The memory that the host may have asks its users.
        Some((recorded, spare, Arc::clone(&self.values), host, user))
    }
}

/// Whether command buffers of the device can be enqueued while they run.
fn may_overlap(exec: &Inner) -> bool {
    exec.device.caps().command_buffers.as_ref().is_some_and(|caps| caps.simultaneous_use)
}

impl Inner {
    /// The results that a submission holds, by read.
    fn held_results(&self, hands: &Hands) -> Results {
        let part = |of: &Origin| Part { node: self.node(of.node), index: of.part };
        let held = self.ports.results().iter().zip(&hands.slots).map(|(of, slot)| (part(of), Arc::clone(slot)));
        (!hands.slots.is_empty()).then(|| held.collect())
    }
}
