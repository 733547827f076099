//! Submissions that the host carries on: those that wait for something that may still fail, and those with host tasks or
//! external events.
//!
//! Some drivers crash, hang, run the dependents or lose the queue when an event in a wait list fails. So the commands of
//! such a submission are enqueued after everything that it waits for has succeeded, on a queue of the executable's own.
//! A gate, which always opens, holds the caller's queue.
//!
//! A submission goes through these states, and only forwards:
//!
//! | state | what happens | next |
//! |---|---|---|
//! | blocked | its blockers end, on any thread (`unblocked`) | the last one begins it, or gives it up if one failed or it was cancelled |
//! | going on | partitions that wait for no task are enqueued; tasks run (`tasks.rs`); a task that has ended lets others go on | nothing is left, so it ends (`end`) |
//! | enqueued | all is with the driver | the device is done (`over`) |
//! | over | the gate opens, and everything is released | |
//!
//! A graph without tasks is the short case: one partition, and no task. What can go on is the frontier's to say
//! (`frontier.rs`); how it is enqueued, the interpreter's.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cl::commands::enqueue::{self, NOTHING, Waits};
use crate::cl::completion::countdown::Countdown;
use crate::cl::completion::event_reaper;
use crate::cl::completion::gates::GateId;
use crate::cl::completion::workers;
use crate::cl::objects::event::{CommandStatus, DriverEvent};
use crate::cl::objects::queue::DriverQueue;
use crate::error::{DriverError, Error, Result, SubmitError};
use crate::exec::build::guards::Guard;
use crate::exec::executable::Inner;
use crate::exec::finalized::Finalized;
use crate::exec::submit::blocker::Blocker;
use crate::exec::submit::frames::{Frames, ROOT, TaskAt};
use crate::exec::submit::interpreter::{self, Ends, Interpreter, Stopped, Want};
use crate::exec::submit::submission_state::{self, SubmissionState};
use crate::exec::submit::tasks::RunnableTask;
use crate::exec::submit::work::Work;
use crate::exec::tier::FusedPlan;
use crate::exec::tune::pace::FillPace;
use crate::ir::NodeId;
use crate::plan::Flow;

/// A submission that the host carries on.
pub(in crate::exec) struct Deferred {
    pub(in crate::exec) executable: Arc<Inner>,
    /// The plan that it carries out, if it is not the executable's first one.
    fused: Option<Arc<FusedPlan>>,
    pub(in crate::exec) state: Arc<SubmissionState>,
    /// The executable's own queue.
    pub(in crate::exec) own: DriverQueue,
    /// The gates of the events that it completes, with their nodes.
    pub(in crate::exec) signals: Arc<[(NodeId, GateId)]>,
    blockers: Countdown<(), Error>,
    progress: Mutex<DeferredProgress>,
}

/// How far it has come.
pub(in crate::exec) struct DeferredProgress {
    /// The last command of the queue before those of the submission.
    entered: Option<DriverEvent>,
    /// The end of the partition that was enqueued last, on one queue.
    pub(in crate::exec) last: Option<DriverEvent>,
    /// What the submission runs, and its gate. None when it has ended.
    pub(in crate::exec) work: Option<Box<Work>>,
    /// The graph itself, and the turns of bodies that are going on.
    pub(in crate::exec) frames: Frames,
    /// How many partitions were enqueued.
    pub(in crate::exec) enqueued: usize,
    /// How many of them the host has waited for.
    pub(in crate::exec) waited: usize,
    /// How many of them may be enqueued before the host waits again.
    pub(in crate::exec) fill: FillPace,
    /// Whether the queue has refused a command: nothing is enqueued any more.
    pub(in crate::exec) refused: bool,
    pub(in crate::exec) failure: Option<Error>,
}

impl Deferred {
    /// `own` is the executable's own queue, and `blockers` the number of blockers that
    /// [`wait_for`](Self::wait_for) will be given.
    pub(in crate::exec) fn new(
        executable: Arc<Inner>,
        state: Arc<SubmissionState>,
        own: DriverQueue,
        blockers: usize,
        work: Box<Work>,
    ) -> Arc<Self> {
        let (exec, fused) = (work.snapshot.planned(&executable.fixed), work.snapshot.fused.clone());
        let signals = work.bindings.signals().map(|(at, gate)| (exec.events_at[at], gate)).collect();
        let progress = DeferredProgress {
            entered: None,
            frames: Frames::new(exec.plan.main(), work.snapshot.events_of(work.snapshot.schedule(exec))),
            last: None,
            work: Some(work),
            enqueued: 0,
            waited: 0,
            fill: FillPace::default(),
            refused: false,
            failure: None,
        };
        let (blockers, progress) = (Countdown::new(blockers, ()), Mutex::new(progress));
        Arc::new(Self { executable, fused, state, own, signals, blockers, progress })
    }

    /// Returns the plan that the submission carries out, with what finalize fixed beside it.
    pub(in crate::exec) fn exec(&self) -> &Finalized {
        self.fused.as_ref().map_or(&self.executable.fixed, |form| &form.fixed)
    }

    /// Registers the blockers with the event reaper, or begins if there are none. The caller holds no lock: a blocker
    /// that has ended already calls back at once.
    pub(in crate::exec) fn wait_for(self: &Arc<Self>, blockers: Vec<Blocker>) {
        if blockers.is_empty() {
            return self.begin();
        }
        for blocker in blockers {
            let this = Arc::clone(self);
            blocker.when_over(move |outcome| this.unblocked(outcome));
        }
    }

    /// One blocker less. The last one begins the submission.
    fn unblocked(self: &Arc<Self>, outcome: Result<()>) {
        let Some(((), outcome)) = self.blockers.ended(outcome) else { return };
        match outcome {
            // Nobody sees the outcome any more.
            Ok(()) if event_reaper::process_ends() => drop(self.take_work()),
            Ok(()) if self.calls_natives() => {
                // On another thread, because this calls functions of the program, and others wait for this thread.
                let this = Arc::clone(self);
                workers::run(move || this.begin());
            }
            Ok(()) => self.begin(),
            Err(cause) => self.end_with(Err(failed_before(cause))),
        }
    }

    fn calls_natives(&self) -> bool {
        let progress = self.lock();
        progress.work.as_ref().is_some_and(|work| !work.snapshot.values.tables.natives.is_empty())
    }

    pub(in crate::exec) fn lock(&self) -> MutexGuard<'_, DeferredProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_work(&self) -> Option<Box<Work>> {
        self.lock().work.take()
    }

    fn end_with(&self, outcome: Result<()>) {
        if let Some(work) = self.take_work() {
            work.end(&self.state, outcome);
        }
    }

    /// Enqueues the partitions that wait for no task, and has the tasks run. Does not block.
    fn begin(self: &Arc<Self>) {
        let entered = match self.state.cancelled_before().and_then(|()| self.enter()) {
            Ok(entered) => entered,
            Err(error) => return self.end_with(Err(error)),
        };
        let mut progress = self.lock();
        progress.entered = entered;
        self.enqueue_begin(&mut progress);
        let runnable = self.go_on(&mut progress, ROOT);
        let over = progress.frames.over(ROOT);
        drop(progress);
        self.flush();
        self.tell_given_up();
        if over.is_some() {
            return self.end(false);
        }
        self.dispatch(runnable.into_iter(), None);
    }

    /// Puts the submission, on the executable's own queue, after what it has to be after. Returns the last command
    /// before it, if there is one that may run. The queue is in order, so all commands wait for that one; tasks that wait for no command
    /// wait for it alone.
    fn enter(&self) -> Result<Option<DriverEvent>> {
        let Some(entered) = self.lock().work.as_ref().map(|work| work.entered.clone()) else { return Ok(None) };
        let mut waits = Waits::NONE;
        match entered.status() {
            Ok(CommandStatus::Complete) => {}
            // A command after an event that has failed never completes on PoCL 3.1 and 6.0.
            Ok(CommandStatus::Failed(status)) => {
                return Err(failed_before(DriverError::new("an event of the wait list", status).into()));
            }
            _ => waits.push(entered),
        }
        let exec = &self.executable;
        let elsewhere = exec.fixed.context.enqueue_elsewhere();
        let mut exec_state = exec.lock_state();
        let mut exclusive = exec.exclusive.take();
        let outcome = exec_state
            .wait_for_others(&mut exclusive, &self.own, &mut waits)
            .and_then(|()| if waits.is_empty() { Ok(None) } else { enqueue::marker(&self.own, &waits).map(Some) });
        drop(exclusive);
        let leftovers = exec_state.leftovers();
        drop(exec_state);
        drop(elsewhere);
        leftovers.run(&exec.exclusive);
        Ok(outcome?)
    }

    /// Enqueues what comes before all partitions, on several queues.
    fn enqueue_begin(&self, progress: &mut DeferredProgress) {
        let want = Want { first: false, last: false };
        let outcome = self.carry_out(progress, ROOT, want, |of| of.before_blocks());
        match outcome {
            Ok(Ends { first: Some(first), .. }) => self.state.staged(Some(first)),
            Ok(_) => {}
            Err(stopped) => progress.stopped(stopped),
        }
    }

    /// Flushes what was enqueued. Not under the lock: a driver may call the program's code here.
    pub(in crate::exec) fn flush(&self) {
        submission_state::flush(&self.own);
        let others = self.lock().work.as_ref().map(|work| Arc::clone(&work.snapshot.others));
        others.iter().flat_map(|others| others.iter()).for_each(submission_state::flush);
    }

    /// Enqueues, in order, the partitions of a frame that have become ready. Returns the tasks that are ready.
    pub(in crate::exec) fn go_on(&self, progress: &mut DeferredProgress, at: usize) -> Vec<RunnableTask> {
        let Some(frame) = progress.frames.get_mut(at) else { return Vec::new() };
        let number = frame.flow;
        let flow = &self.exec().plan.flows[number];
        let mut frontier = std::mem::take(&mut frame.frontier);
        let runnable = frontier.go_on(flow, |partition| self.enqueue(progress, at, flow, partition));
        let entered = progress.entered.clone();
        let Some(frame) = progress.frames.get_mut(at) else { return Vec::new() };
        frame.frontier = frontier;
        let schedule = progress.work.as_ref().map(|work| work.snapshot.schedule_of(self.exec(), number));
        let events = |task: usize| {
            let waits = schedule.and_then(|schedule| schedule.tasks.get(task)).map_or(&[][..], Vec::as_slice);
            let kept = |event: &u32| frame.kept.as_ref()?.event(*event as usize).cloned();
            let at = TaskAt { frame: at, flow: number, task };
            let mut events: RunnableTask = (at, waits.iter().filter_map(kept).collect());
            // What comes before the whole flow: a task after another one is after that already.
            if events.1.is_empty() && flow.tasks[task].tasks.is_empty() {
                events.1.extend(if at.frame == ROOT { entered.clone() } else { frame.before.clone() });
            }
            events
        };
        runnable.into_iter().map(events).collect()
    }

    /// Enqueues a partition. Returns whether that succeeded.
    fn enqueue(&self, progress: &mut DeferredProgress, at: usize, flow: &Flow, index: usize) -> bool {
        if progress.refused {
            // A loop would go round for ever: its turns do nothing any more.
            progress.frames.get_mut(at).into_iter().for_each(|frame| frame.failed = true);
            return false;
        }
        if flow.partitions[index].steps.is_empty() {
            return true;
        }
        // On several queues it has begun before its first partition.
        let is_first = progress.enqueued == 0;
        let outcome = self.carry_out(progress, at, Want { first: is_first, last: true }, |of| of.block(index));
        match outcome {
            Ok(ends) => {
                self.has_enqueued(progress, at, ends);
                true
            }
            Err(stopped) => {
                progress.stopped(stopped);
                if let Some(frame) = progress.frames.get_mut(at) {
                    frame.failed = true;
                }
                false
            }
        }
    }

    /// Notes what was enqueued for a frame. The submission has begun when its first command has.
    pub(super) fn has_enqueued(&self, progress: &mut DeferredProgress, frame: usize, Ends { first, last, .. }: Ends) {
        if progress.enqueued == 0
            && let Some(first) = first.or_else(|| last.clone())
        {
            self.state.staged(Some(first));
        }
        progress.enqueued += 1;
        progress.last = last;
        progress.frames.enqueued(frame, progress.last.as_ref());
    }

    /// Enqueues a turn of a body without host tasks; `around` is the frame of its branch or loop. Returns whether that
    /// succeeded. `last` says whether the event of the last command is wanted. With a guard the loop may have ended.
    pub(in crate::exec) fn enqueue_turn(
        &self,
        progress: &mut DeferredProgress,
        body: usize,
        around: usize,
        last: bool,
        guard: Option<&Guard>,
    ) -> bool {
        let DeferredProgress { work: Some(work), refused: false, .. } = progress else { return false };
        let exec = self.exec();
        if exec.plan.flows[body].steps.is_empty() {
            return true;
        }
        let Work { snapshot, bindings, .. } = &**work;
        let is_first = progress.enqueued == 0;
        let elsewhere = exec.context.enqueue_elsewhere();
        let want = Want { first: is_first, last };
        let turn =
            Interpreter::new(exec, snapshot, bindings, &self.own, &NOTHING, want, None).through(body).guarded(guard);
        let outcome = turn.block(0);
        drop(elsewhere);
        match outcome {
            Ok(ends) => {
                self.has_enqueued(progress, around, ends);
                true
            }
            Err(stopped) => {
                progress.stopped(stopped);
                false
            }
        }
    }

    /// Carries out some of the schedule of a frame.
    fn carry_out(
        &self,
        progress: &mut DeferredProgress,
        at: usize,
        want: Want,
        what: impl FnOnce(Interpreter<'_>) -> Result<Ends, Stopped>,
    ) -> Result<Ends, Stopped> {
        let DeferredProgress { work: Some(work), frames, .. } = progress else { return Ok(Ends::default()) };
        let Some(frame) = frames.get_mut(at) else { return Ok(Ends::default()) };
        let Work { snapshot, bindings, .. } = &**work;
        let _elsewhere = self.exec().context.enqueue_elsewhere();
        let kept = frame.kept.as_deref_mut();
        let exec = self.exec();
        what(Interpreter::new(exec, snapshot, bindings, &self.own, &NOTHING, want, kept).through(frame.flow))
    }

    /// Everything has been enqueued, called or given up: the submission ends when the device is done.
    pub(in crate::exec) fn end(self: &Arc<Self>, may_wait: bool) {
        let mut progress = self.lock();
        let others = progress.work.as_ref().map(|work| Arc::clone(&work.snapshot.others)).unwrap_or_default();
        let whole = !progress.refused && (others.is_empty() || progress.failure.is_none());
        let well = whole && progress.failure.is_none();
        let ends = if progress.enqueued == 0 {
            // Without commands there is still the place in the queue.
            let Some(entered) = progress.entered.take().filter(|_| well) else {
                drop(progress);
                return self.over(Ok(()));
            };
            Ends { last: Some(entered), ..Ends::default() }
        } else {
            match (whole, progress.last.take().filter(|_| others.is_empty())) {
                (true, Some(last)) => Ends { last: Some(last), ..Ends::default() },
                (true, None) => {
                    let want = Want { first: false, last: true };
                    self.carry_out(&mut progress, ROOT, want, |of| of.after_blocks()).unwrap_or_default()
                }
                // Some commands may run after the last whole partition.
                (false, _) => Ends::default(),
            }
        };
        drop(progress);
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
                for event in &ends.other_ends {
                    let _ = event.wait_surely();
                }
                self.over(last.wait_surely());
            }
            Ok(last) => {
                if well {
                    self.enqueued(&last, ends.other_ends);
                }
                let this = Arc::clone(self);
                event_reaper::when_done(last, move |outcome| this.over(outcome));
            }
        }
    }

    /// Everything is with the driver, and nothing but the driver can fail. So those that wait for the end wait for the device themselves
    /// from now on, and later uses are enqueued at once, after this one.
    fn enqueued(&self, last: &DriverEvent, other_ends: Vec<DriverEvent>) {
        if let Some(work) = &mut self.lock().work {
            // Whoever sees the end may submit again at once, and needs the memory for results.
            work.bindings.slots.clear();
            work.retained.put(&mut work.bindings.inputs);
        }
        let mut exclusive = self.executable.exclusive.take();
        exclusive.each().for_each(|uses| uses.follows(&self.own, Some(last)));
        drop(exclusive);
        self.state.enqueued(self.own.clone(), last.clone(), other_ends);
    }

    /// The device is done.
    fn over(&self, outcome: Result<(), DriverError>) {
        let mut progress = self.lock();
        let (work, failure) = (progress.work.take(), progress.failure.take());
        drop(progress);
        let Some(mut work) = work else { return };
        if let Err(error) = &outcome
            && !event_reaper::is_over(&outcome)
        {
            // Nobody can know when the driver is done with what it runs.
            let (values, recorded) = (Arc::clone(&work.snapshot.values), work.snapshot.recorded.clone());
            let bindings = (work.bindings.slots.clone(), std::mem::take(&mut work.bindings.inputs));
            let all = std::iter::once(&self.own).chain(work.snapshot.others.iter());
            let mut exclusive = self.executable.exclusive.take();
            all.for_each(|queue| exclusive.each().for_each(|uses| uses.runs(queue, None)));
            drop(exclusive);
            work.retained.leak(error);
            event_reaper::leak(error, (values, recorded, bindings, Arc::clone(&self.executable)));
        }
        work.end(&self.state, failure.map_or_else(|| waited(outcome), Err));
    }
}

/// Returns the outcome of work from that of waiting for it, which the driver may refuse.
pub(in crate::exec) fn waited(outcome: Result<(), DriverError>) -> Result<()> {
    let wrong = if event_reaper::is_over(&outcome) { SubmitError::CommandFailed } else { SubmitError::Driver };
    outcome.map_err(|error| wrong(error).into())
}

impl DeferredProgress {
    /// The queue has refused a command.
    pub(in crate::exec) fn stopped(&mut self, Stopped { error, under_way }: Stopped) {
        self.enqueued += usize::from(under_way);
        self.failure.get_or_insert(error.into());
        self.refused = true;
    }
}

/// The error of a submission that waited for something that failed. Dependents get the cause itself, not a chain of errors
/// that passed it on.
fn failed_before(cause: Error) -> Error {
    match cause {
        Error::Submit(SubmitError::DependencyFailed { .. }) => cause,
        cause => SubmitError::DependencyFailed { cause: Box::new(cause) }.into(),
    }
}
