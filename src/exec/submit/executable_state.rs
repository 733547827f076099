//! The state that the submissions of one executable share, and how they follow each other.

use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;
use std::time::Duration;

use crate::cl::commands::enqueue::{self, Waits};
use crate::cl::commands::hold::{HeldQueue, Hold, hold};
use crate::cl::completion::event_reaper;
use crate::cl::completion::gates::Gates;
use crate::cl::completion::user_code::log_later;
use crate::cl::memory::allocation::{Allocation, User};
use crate::cl::memory::host::Slot;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::event::{DriverEvent, Gate};
use crate::cl::objects::queue::{DriverQueue, QueueProperties};
use crate::error::{DriverError, Error, MemoryError, Result, SubmitError};
use crate::exec::build::record::Recorded;
use crate::exec::build::values::{Objects, Values};
use crate::exec::finalized::Finalized;
use crate::exec::submit::bindings::{External, Results, SubmissionBindings};
use crate::exec::submit::blocker::{Blocker, Prerequisites};
use crate::exec::submit::exclusive::{EarlierUses, ExclusiveUse, ExclusiveUseGuard, ExecutableUses};
use crate::exec::submit::interpreter::{self, Ends, Interpreter, Stopped, Want};
use crate::exec::submit::leftovers::Leftovers;
use crate::exec::submit::result_slots::Ring;
use crate::exec::submit::snapshot::{Set, Snapshot};
use crate::exec::submit::submission_state::{ControlState, RetainedMemory, Stage, SubmissionState};
use crate::exec::submit::work::Work;
use crate::exec::tier::Tier;
use crate::exec::tune::autotuner::Autotuner;
use crate::exec::tune::cache::TuningCache;
use crate::exec::update::editing::Editing;
use crate::plan::{Path, Plan};
use crate::report::TuningReport;

/// What the submissions of one executable share. It is used under a lock, so code of the program must not run here:
/// whatever has to be dropped or flushed is left in [`Leftovers`].
pub(in crate::exec) struct ExecutableState {
    pub(in crate::exec) values: Arc<Values>,
    /// What updates need. None if nothing can be updated.
    pub(in crate::exec) editing: Option<Editing>,
    /// How many updates there were. An update that has looked at a graph is made only if none came in between: the graph may have got newer
    /// values for that one.
    pub(in crate::exec) updates: u64,
    /// Whether nodes may use other memory than when their edges were made.
    pub(in crate::exec) changed: bool,
    /// Command buffers that an update has changed in part: the index of the set, and the index in the set.
    pub(in crate::exec) half_changed: Vec<(usize, usize)>,
    /// Replaced kernel objects of recorded steps, kept for the next update: releasing all of them at once takes PoCL
    /// time that grows with the square of their number.
    pub(in crate::exec) spare: Objects,
    /// Memory that the host may use between submissions, by its address here.
    shared: BTreeMap<usize, Arc<Allocation>>,
    /// Memory that was shared, and that running commands may still use, with these.
    leaving: Vec<(Arc<Allocation>, Arc<EarlierUses>)>,
    /// For submissions that cannot use the caller's queue.
    own_queue: Option<DriverQueue>,
    /// For submissions that use several queues.
    pub(in crate::exec) others: Arc<[DriverQueue]>,
    pub(in crate::exec) recorded: Vec<Set>,
    pub(in crate::exec) autotuner: Autotuner,
    /// The cache for what the autotuner finds, if there is one.
    tuning_cache: Option<Arc<TuningCache>>,
    pub(in crate::exec) tier: Tier,
    /// How long the last build of its fused form took.
    pub(in crate::exec) fuse_build: Option<Duration>,
    /// By result.
    rings: Vec<Ring>,
    /// The input of submissions in flight, oldest first. (Their result slots are in the rings.)
    in_flight: VecDeque<(DriverEvent, RetainedMemory)>,
    pub(in crate::exec) leftovers: Leftovers,
}

/// The outcome of accepting a submission.
pub(in crate::exec) enum Accepted {
    /// It is enqueued. Its state and results, if the caller wants a handle.
    Enqueued(Option<(Arc<SubmissionState>, Results)>),
    /// It is deferred until the blockers have ended. `own` is the executable's own queue.
    Deferred {
        state: Arc<SubmissionState>,
        own: DriverQueue,
        work: Box<Work>,
        results: Results,
        blockers: Vec<Blocker>,
    },
}

/// An error after which some commands may be enqueued.
pub(in crate::exec) struct PartlyEnqueued {
    pub(in crate::exec) error: Box<Error>,
    /// An event that is complete when the enqueued commands are. None if no command was enqueued.
    pub(in crate::exec) rest: Option<DriverEvent>,
}

impl<E: Into<Error>> From<E> for PartlyEnqueued {
    fn from(error: E) -> Self {
        Self { error: Box::new(error.into()), rest: None }
    }
}

impl ExecutableState {
    /// Makes the state with the command buffers that finalize has made, and the queue that they were made for.
    pub(in crate::exec) fn new(
        values: Values,
        editing: Option<Editing>,
        changed: bool,
        rings: Vec<Ring>,
        recorded: Option<(DriverQueue, Recorded)>,
        plan: &Plan,
        tuning_cache: Option<Arc<TuningCache>>,
    ) -> Self {
        let mut exec_state = Self {
            values: Arc::new(values),
            editing,
            updates: 0,
            changed,
            half_changed: Vec::new(),
            spare: Objects::default(),
            shared: BTreeMap::new(),
            leaving: Vec::new(),
            own_queue: None,
            others: Arc::default(),
            recorded: Vec::new(),
            autotuner: Autotuner::new(&plan.strategies),
            tuning_cache,
            tier: Tier::Off,
            fuse_build: None,
            rings,
            in_flight: VecDeque::new(),
            leftovers: Leftovers::default(),
        };
        if let Some((queue, recorded)) = recorded {
            let recorded = Some(Arc::new(recorded));
            exec_state.recorded.push(Set { properties: queue.properties(), most: plan.chunk(), recorded });
            exec_state.own_queue = Some(queue);
        }
        if let Some(tuning_cache) = &exec_state.tuning_cache {
            tuning_cache.recall(&mut exec_state.autotuner);
        }
        exec_state
    }

    /// Registers this executable as a user of memory that the host may use between submissions.
    pub(in crate::exec) fn share<'m>(&mut self, exclusive: &ExclusiveUse, mems: impl Iterator<Item = &'m Mem>) {
        let mut is_first = true;
        for allocation in mems.filter_map(Mem::allocation).filter(|its| its.may_have_guards()) {
            let Entry::Vacant(place) = self.shared.entry(Arc::as_ptr(allocation).addr()) else { continue };
            if std::mem::take(&mut is_first)
                && let Err(error) = exclusive.share_memory()
            {
                log_later!(
                    Warn,
                    "{error}: `Memory::host` may refuse memory of an executable after the last submission has \
                            ended"
                );
            }
            allocation.add_user(exclusive.as_user());
            place.insert(Arc::clone(allocation));
        }
    }

    /// Unregisters memory that no node names any more. Commands that run may still use it.
    pub(in crate::exec) fn unshare<'m>(&mut self, exclusive: &ExclusiveUse, mems: impl Iterator<Item = &'m Mem>) {
        let mut so_far = None;
        for allocation in mems.filter_map(Mem::allocation) {
            let Some(allocation) = self.shared.remove(&Arc::as_ptr(allocation).addr()) else { continue };
            let uses = Arc::clone(so_far.get_or_insert_with(|| Arc::new(exclusive.so_far())));
            let later = Arc::clone(&uses);
            allocation.add_user(Arc::downgrade(&(later as Arc<dyn User>)));
            allocation.remove_user(&exclusive.as_user());
            self.leaving.push((allocation, uses));
        }
    }

    /// Forgets memory that no command uses any more.
    fn leave(&mut self) {
        self.leaving.retain(|(_, uses)| uses.may_run());
    }

    /// Whether the host may use some of the memory between submissions.
    fn is_shared(&self) -> bool {
        !self.shared.is_empty() || !self.leaving.is_empty()
    }

    /// Reports the state of the autotuner.
    pub(in crate::exec) fn tuning_report(&mut self) -> TuningReport {
        self.collect_times();
        self.autotuner.report()
    }

    fn collect_times(&mut self) {
        if self.autotuner.collect() {
            self.settled();
        }
        if self.tier.is_due(self.autotuner.spent()) {
            self.leftovers.left().build = self.tier.begin();
        }
    }

    #[cold]
    fn settled(&mut self) {
        self.keep_fused_form_if_fastest();
        if log::max_level() >= log::Level::Info
            && let Some(taken) = self.autotuner.report().strategies.iter().find(|strategy| strategy.taken)
        {
            log_later!(
                Info,
                "the autotuner chose for an executable on device `{}`: {taken}",
                self.values.device.name()
            );
        }
        if let (Some(tuning_cache), Some(found)) = (&self.tuning_cache, self.autotuner.found()) {
            self.leftovers.left().found = Some((Arc::clone(tuning_cache), found));
        }
    }

    /// Takes what is to be done after the lock is released.
    pub(in crate::exec) fn leftovers(&mut self) -> Leftovers {
        std::mem::take(&mut self.leftovers)
    }

    /// Enqueues a submission, or defers it if it waits for something that may still fail. What is left of its bindings
    /// goes to the leftovers: dropping it may run code of the program.
    pub(in crate::exec) fn accept(
        &mut self,
        exec: &Finalized,
        uses: &ExclusiveUse,
        queue: &DriverQueue,
        prerequisites: Prerequisites,
        mut bindings: SubmissionBindings,
        observed: bool,
    ) -> Result<Accepted> {
        let outcome = self.try_accept(exec, uses, queue, prerequisites, &mut bindings, observed);
        if outcome.is_err() {
            self.leftovers.left().bindings.push(bindings);
        }
        outcome
    }

    fn try_accept(
        &mut self,
        exec: &Finalized,
        uses: &ExclusiveUse,
        queue: &DriverQueue,
        Prerequisites { waits, mut blockers }: Prerequisites,
        bindings: &mut SubmissionBindings,
        observed: bool,
    ) -> Result<Accepted> {
        self.forget_finished();
        self.collect_times();
        let mut exclusive = uses.take();
        let _order = queue.lock_order();
        exclusive.each().for_each(ExecutableUses::set_finished_aside);
        let is_idle = exclusive.each().all(|uses| uses.is_idle());
        if !self.leaving.is_empty() {
            self.leave();
        }
        if is_idle {
            self.rings.iter_mut().for_each(Ring::trim);
        }
        exclusive.wait_for_deferred(&mut blockers);
        if exec.plan.only_recorded && !exec.may_overlap() {
            // A command buffer that runs cannot be enqueued again, and these commands cannot be replayed.
            blockers.extend(exclusive.through(&mut self.leftovers.left().flush)?);
        }
        // A host guard that is made from now on sees this submission; one that was made before is seen here.
        if let Some(held) = self.shared.values().find(|allocation| allocation.is_guarded()) {
            return Err(MemoryError::HeldByHost { kind: held.kind() }.into());
        }
        bindings.slots = self.take_slots(exec)?;
        if blockers.is_empty() && exec.plan.main().tasks.is_empty() {
            return Ok(Accepted::Enqueued(self.submit_now(exec, &mut exclusive, queue, waits, bindings, observed)?));
        }
        let (state, own, work, results) = self.defer(exec, &mut exclusive, queue, &waits, bindings, &blockers)?;
        Ok(Accepted::Deferred { state, own, work, results, blockers })
    }

    fn take_slots(&mut self, exec: &Finalized) -> Result<Vec<Arc<Slot>>, SubmitError> {
        self.rings.iter_mut().zip(exec.ports.results()).map(|(ring, of)| ring.take(exec.node(of.node))).collect()
    }

    fn forget_finished(&mut self) {
        while self.in_flight.front().is_some_and(|(event, _)| !event.may_run()) {
            self.leftovers.left().release.extend(self.in_flight.pop_front().map(|(_, retained)| retained));
        }
    }

    /// Returns the executable's own in-order queue, which is made when it is first needed.
    pub(in crate::exec) fn own_queue(&mut self, exec: &Finalized) -> Result<DriverQueue> {
        if let Some(queue) = &self.own_queue {
            return Ok(queue.clone());
        }
        let properties = QueueProperties::new().profiling(exec.names.is_some());
        let queue = DriverQueue::with_properties(&exec.context, &exec.device, properties)?;
        self.own_queue = Some(queue.clone());
        Ok(queue)
    }

    /// Adds to `waits` the earlier uses that may run on other queues.
    pub(in crate::exec) fn wait_for_others(
        &mut self,
        exclusive: &mut ExclusiveUseGuard<'_>,
        queue: &DriverQueue,
        waits: &mut Waits,
    ) -> Result<(), DriverError> {
        for uses in exclusive.each() {
            for running in uses.running.iter_mut().filter(|running| !running.is_before_all_on(queue)) {
                uses.several_queues = true;
                if let Some(event) = running.end()? {
                    self.leftovers.left().flush.push(running.queue.clone());
                    waits.push(event);
                }
            }
        }
        Ok(())
    }

    /// Enqueues a submission after `waits` and after the earlier uses, and retains what the commands use.
    #[allow(clippy::too_many_arguments)]
    pub(in crate::exec) fn enqueue(
        &mut self,
        exec: &Finalized,
        exclusive: &mut ExclusiveUseGuard<'_>,
        snapshot: &Snapshot,
        queue: &DriverQueue,
        mut waits: Waits,
        bindings: &mut SubmissionBindings,
        retained: &RetainedMemory,
        want: Want,
    ) -> Result<Ends, PartlyEnqueued> {
        self.wait_for_others(exclusive, queue, &mut waits)?;
        let keeps = !bindings.inputs.is_empty();
        let others = keeps || self.is_shared() || exclusive.wants_event() || snapshot.timer.is_some();
        let want = Want { last: want.last || others, ..want };
        if snapshot.strategy.path == Path::Gated {
            match Gate::closed(&exec.context) {
                Ok(gate) => {
                    waits.push_open(gate.event().clone());
                    self.leftovers.left().gates.push(gate);
                }
                Err(error) => {
                    log_later!(Debug, "{error}: a submission is replayed without a gate")
                }
            }
        }
        let others = &*snapshot.others;
        if !others.is_empty() {
            // The queues wait for each other, so all must be flushed.
            self.leftovers.left().flush.extend(std::iter::once(queue).chain(others).cloned());
        }
        let mut kept = snapshot.events_of(snapshot.schedule(exec));
        let outcome = Interpreter::new(exec, snapshot, bindings, queue, &waits, want, kept.as_deref_mut()).all();
        retained.put(&mut bindings.inputs);
        match outcome {
            Ok(mut ends) => {
                ends.last = ends.last.map(DriverEvent::ready_to_clone);
                if let (Some(timer), Some(last)) = (&snapshot.timer, &ends.last) {
                    last.stop_when_complete(timer);
                    self.leftovers.left().timer = Some(Arc::clone(timer));
                }
                exclusive.each().for_each(|uses| uses.follows(queue, ends.last.as_ref()));
                if keeps {
                    self.keep_until_through(queue, ends.last.clone(), retained);
                }
                Ok(ends)
            }
            Err(Stopped { error, under_way: false }) => {
                self.leftovers.left().release.push(retained.clone());
                Err(error.into())
            }
            Err(Stopped { error, under_way: true }) => {
                // Some commands are enqueued and may use the host memory, so it is retained until they are complete.
                let rest = interpreter::rest(queue, others);
                if rest.is_err() {
                    exclusive.each().for_each(|uses| others.iter().for_each(|queue| uses.runs(queue, None)));
                }
                exclusive.each().for_each(|uses| uses.runs(queue, rest.as_ref().ok()));
                match &rest {
                    Ok(rest) => self.keep_until_through(queue, Some(rest.clone()), retained),
                    Err(error) => retained.leak(error),
                }
                self.leftovers.left().flush.push(queue.clone());
                Err(PartlyEnqueued { error: Box::new(error.into()), rest: rest.ok() })
            }
        }
    }

    /// Retains host memory until an event on a queue is complete; without an event, until everything on the queue is.
    fn keep_until_through(&mut self, queue: &DriverQueue, event: Option<DriverEvent>, retained: &RetainedMemory) {
        match event.map_or_else(|| enqueue::last_marker(queue), Ok) {
            Ok(event) => self.in_flight.push_back((event, retained.clone())),
            Err(error) => event_reaper::leak(error, retained.clone()),
        }
    }

    fn submit_now(
        &mut self,
        exec: &Finalized,
        exclusive: &mut ExclusiveUseGuard<'_>,
        queue: &DriverQueue,
        waits: Waits,
        bindings: &mut SubmissionBindings,
        observed: bool,
    ) -> Result<Option<(Arc<SubmissionState>, Results)>> {
        let idle = exclusive.each().all(|uses| uses.is_idle());
        let strategy = self.autotuner.next(idle, waits.is_empty());
        let timer = strategy.1.clone();
        let (retained, log) = (RetainedMemory::place_for(&bindings.inputs), bindings.log.clone());
        let properties = queue.properties();
        let wants_own = properties.out_of_order
            || (bindings.log.is_some() && !properties.profiling)
            || (exec.plan.only_recorded && properties.profiling && !exec.device.caps().records_for_profiling());
        let (target, waits) = if wants_own {
            // A barrier or an event for each command would cost more than the commands do. So the commands run on a
            // queue of their own, which one command on each side joins to the caller's queue.
            let own = self.own_queue(exec)?;
            let mut entered = Waits::NONE;
            entered.push(enqueue::entry(queue, &waits)?);
            self.leftovers.left().flush.push(queue.clone());
            (own, entered)
        } else {
            (queue.clone(), waits)
        };
        let snapshot = self.take_snapshot(exec, &target, strategy)?;
        let exec = snapshot.planned(exec);
        let results = if observed { exec.held_results(bindings) } else { None };
        let want = Want { first: observed, last: observed || wants_own };
        let outcome = self.enqueue(exec, exclusive, &snapshot, &target, waits, bindings, &retained, want);
        let last = || outcome.as_ref().map_or_else(|refused| refused.rest.clone(), |ends| ends.last.clone());
        if let Some(last) = wants_own.then(last).flatten() {
            self.leftovers.left().flush.push(target.clone());
            // This lets a barrier that the caller enqueues next wait for these commands too.
            let mut exit = Waits::NONE;
            exit.push(last);
            // Twice, because the driver may lack memory only for a moment.
            enqueue::entry(queue, &exit).or_else(|_| enqueue::entry(queue, &exit))?;
        }
        let ends = outcome.map_err(|refused| *refused.error)?;
        let Some(last) = ends.last.filter(|_| observed) else { return Ok(None) };
        let stage =
            Stage::Enqueued { queue: target, first: ends.first, last: last.clone(), other_ends: ends.other_ends };
        let (context, control) = (exec.context.clone(), ControlState::new(&exec.controls, exec.plan.flows.len()));
        let state = SubmissionState::new(context, Some(queue), retained, stage, last, log, timer, None, control);
        state.turn(0, 1);
        Ok(Some((Arc::new(state), results)))
    }

    /// Holds the caller's queue with a gate, and leaves the rest to the event reaper.
    fn defer(
        &mut self,
        exec: &Finalized,
        exclusive: &mut ExclusiveUseGuard<'_>,
        queue: &DriverQueue,
        waits: &Waits,
        bindings: &mut SubmissionBindings,
        blockers: &[Blocker],
    ) -> Result<(Arc<SubmissionState>, DriverQueue, Box<Work>, Results)> {
        let retained = RetainedMemory::place_for(&bindings.inputs);
        // A submission that waits for others is not timed.
        let idle = exclusive.each().all(|uses| uses.is_idle());
        let strategy = match blockers.is_empty() {
            true => self.autotuner.next(idle, waits.is_empty()),
            false => (self.autotuner.strategy(), None),
        };
        let timer = strategy.1.clone();
        let own = self.own_queue(exec)?;
        let snapshot = self.take_snapshot(exec, &own, strategy)?;
        let exec = snapshot.planned(exec);
        let results = exec.held_results(bindings);
        let mut begin = Gates::default();
        blockers.iter().for_each(|blocker| begin.extend(&blocker.gates()));
        // It waits for what runs on other queues when it is launched.
        exclusive.each().for_each(|uses| uses.running.iter().for_each(|running| begin.extend(&running.gates())));
        let mut gates = begin.clone();
        bindings.events.iter().filter_map(External::blocker).for_each(|blocker| gates.extend(&blocker.gates()));
        let has_tasks = !exec.plan.main().tasks.is_empty();
        let HeldQueue { entered, gate, id, after_gate } = hold(queue, waits, gates, has_tasks, Hold::Event)?;
        begin.extend(&entered.gates());
        let is_after = |node: usize, of: usize| exec.is_after(exec.events_at[node], exec.events_at[of]);
        if let Err(error) = bindings.complete_by(id, &begin, is_after) {
            self.leftovers.left().gates.push(gate);
            return Err(error.into());
        }
        self.leftovers.left().flush.push(queue.clone());
        let (context, memory, log) = (exec.context.clone(), retained.clone(), bindings.log.clone());
        let stops = timer.clone();
        let control = ControlState::new(&exec.controls, exec.plan.flows.len());
        let stage = Stage::Deferred;
        let state = SubmissionState::new(context, Some(queue), memory, stage, after_gate, log, stops, id, control);
        let state = Arc::new(state);
        exclusive.each().for_each(|uses| uses.deferred = Some(Arc::clone(&state)));
        self.leftovers.left().timer = timer;
        let work = Box::new(Work { snapshot, entered, bindings: std::mem::take(bindings), retained, gate });
        Ok((state, own, work, results))
    }

    /// What must outlive the commands when the executable is dropped: host memory, memory with an address, and the
    /// objects that command buffers name.
    pub(in crate::exec) fn outliving(&mut self, user: Arc<dyn User>) -> Option<impl Send + Sync + 'static + use<>> {
        let recorded = std::mem::take(&mut self.recorded);
        let mut spare = std::mem::take(&mut self.spare);
        if let Some(values) = Arc::get_mut(&mut self.values) {
            values.objects.0.append(&mut spare.0);
        }
        let host = (std::mem::take(&mut self.rings), std::mem::take(&mut self.in_flight));
        let pointers = self.values.tables.views.iter().flatten().any(|mem| mem.allocation().is_some());
        // Memory that an update has replaced may be in use too, and it asks `user` before the host gets it.
        let pointers = pointers || self.is_shared();
        // Some drivers do not retain samplers and images that are made of buffers, even while a kernel that uses them
        // runs.
        let loose = self.values.tables.views.iter().flatten().any(Mem::is_image_of_buffer);
        let loose = loose || self.values.tables.samplers.iter().any(Option::is_some);
        // Commands that native commands enqueue may use objects that their functions own.
        let loose = loose || !self.values.tables.natives.is_empty();
        let data = loose || !self.values.tables.data.is_empty();
        if recorded.is_empty() && !data && !pointers && host.0.is_empty() && host.1.is_empty() {
            return None;
        }
        // Command buffers are dropped first: then they are not the last holders of their kernels, which they would
        // release oldest first. `user` is what shared memory asks whether it is in use.
        Some((
            recorded,
            spare,
            Arc::clone(&self.values),
            std::mem::take(&mut self.tier),
            std::mem::take(&mut self.leaving),
            host,
            user,
        ))
    }
}
