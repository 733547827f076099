//! Command queues, as users see them: executing or recording.

use std::fmt;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use opencl_sys::cl_command_queue;

use super::bodies;
use super::deferred::defer;
use super::event::{Event, EventKind};
use super::execute;
use super::machine::{Goal, Locked, Machine};
use crate::cl::commands::enqueue::{NOTHING, To, Waits};
use crate::cl::completion::reentrancy;
use crate::cl::completion::user_code::log_later;
use crate::cl::completion::workers::WaitGuard;
use crate::cl::memory::allocation::Entering;
use crate::cl::memory::untyped::Mem;
use crate::cl::objects::context::{Context, InContext, OnDevice};
use crate::cl::objects::device::Device;
use crate::cl::objects::event::{COMMAND, CommandStatus, DriverEvent};
use crate::cl::objects::queue::{DriverQueue, QueueProperties};
use crate::error::{BuildCause, BuildError, DriverError, Error, RecordError, Result, SubmitError};
use crate::graph::nodes::launch::Launch;
use crate::graph::nodes::request::{CommandRequest, Request, Requested, Target};
use crate::graph::recorder::{Order, QueueId, RecordingQueue};
use crate::graph::{Graph, GraphRef};
use crate::handles::{GraphId, Node};

/// A command queue, which either executes commands or records them into a graph.
///
/// Cloning a queue is cheap, and clones are the same queue with the same state. Queues are equal if their C handles are
/// equal; a C handle that was wrapped twice has a separate state in each wrapper. Commands that are enqueued on the C
/// handle by other means are not recorded.
///
/// An executing queue joins a recording when a command has an event of a recorded command in its wait list. It leaves
/// when that recording ends. Several threads may use a queue: the commands of one submission of an executable stay
/// together.
///
/// The methods have the names and the order of arguments of `opencl3`: see [the methods that begin with
/// `enqueue`](#method.enqueue_copy_buffer), and [`ExecuteKernel`](crate::ExecuteKernel).
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// use clgraph::{Buffer, Queue};
/// let queue = Queue::new(&clgraph::best_device()?)?;
/// let buffer = Buffer::<u32>::new(&queue, 4)?;
/// queue.enqueue_write_buffer(&buffer, 0, &[1, 2, 3, 4], &[])?;
/// let mut back = [0; 4];
/// queue.enqueue_read_buffer(&buffer, 0, &mut back, &[])?;
/// assert_eq!(back, [1, 2, 3, 4]);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Queue(pub(super) Arc<Shared>);

/// The state that the clones of a queue share.
pub(super) struct Shared {
    id: QueueId,
    pub(super) driver: DriverQueue,
    pub(super) machine: Machine<GraphRef>,
    /// See [`Queue::own_queue`].
    own: OnceLock<DriverQueue>,
}

/// Releasing a queue flushes it (OpenCL 3.0, clReleaseCommandQueue). But executables that have run on it may hold the
/// driver's queue for long, so this does not wait for the release.
impl Drop for Shared {
    fn drop(&mut self) {
        if let Err(error) = self.driver.flush() {
            log_later!(Warn, "{error}: commands of a queue that was dropped may never start");
        }
    }
}

/// Whether a queue executes or records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QueueState {
    /// Commands run.
    Executing,
    /// Commands become nodes of a graph.
    Recording,
}

impl fmt::Display for QueueState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Executing => "executing",
            Self::Recording => "recording",
        })
    }
}

impl Goal for GraphRef {
    fn is_gone(&self) -> bool {
        Self::is_gone(self)
    }
}

impl RecordingQueue for Shared {
    fn id(&self) -> QueueId {
        self.id
    }

    fn in_order(&self) -> bool {
        !self.driver.properties().out_of_order
    }

    fn end(&self, graph: &Graph) -> bool {
        let mut machine = self.machine.lock();
        let ended = machine.end(&graph.weak());
        if ended {
            graph.lock().recorder.leave(self.id);
        }
        ended
    }

    fn end_joined(&self, graph: &Graph) {
        let mut machine = self.machine.lock();
        let mut state = graph.lock();
        // Under both locks no recording can begin meanwhile.
        if !state.recorder.has_begun() {
            machine.end(&graph.weak());
            state.recorder.leave(self.id);
        }
    }

    fn end_recording_into(&self, graph: GraphId) {
        let mut machine = self.machine.lock();
        machine.end_if(|goal| goal.is_of(graph));
    }
}

impl Queue {
    /// Creates an in-order queue for a device, in a new context.
    ///
    /// Buffers, programs and graphs of one such queue cannot be used with another such queue. [`Self::with_properties`]
    /// creates queues that share a context.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver creates no context or no queue.
    pub fn new(device: &Device) -> Result<Self> {
        let context = Context::new(std::slice::from_ref(device))?;
        Self::with_properties(&context, device, QueueProperties::default())
    }

    /// Creates a queue in an existing context, which is given by itself or by an object in it, such as another queue.
    ///
    /// # Errors
    /// [`SetupError::DeviceOutsideContext`](crate::SetupError::DeviceOutsideContext);
    /// [`SetupError::QueueProperty`](crate::SetupError::QueueProperty) when the device lacks a property;
    /// [`crate::DriverError`].
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Queue, QueueProperties};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let second = Queue::with_properties(&queue, queue.device(), QueueProperties::new())?;
    /// let buffer = Buffer::<u32>::new(&queue, 4)?; // of the context, so good for both
    /// second.enqueue_fill_buffer(&buffer, &[1], 0, 16, &[])?.wait()?;
    /// # Ok(()) }
    /// ```
    #[doc(alias = "clCreateCommandQueueWithProperties")]
    pub fn with_properties(context: &impl InContext, device: &Device, properties: QueueProperties) -> Result<Self> {
        Ok(Self::of_driver(DriverQueue::with_properties(context, device, properties)?))
    }

    /// Wraps an `opencl3` queue, which may be dropped before this one.
    ///
    /// # Errors
    /// [`SetupError::DeviceQueue`](crate::SetupError::DeviceQueue); those of [`Device::from_opencl3`].
    pub fn from_opencl3(queue: &opencl3::command_queue::CommandQueue) -> Result<Self> {
        Ok(Self::of_driver(DriverQueue::from_opencl3(queue)?))
    }

    pub(crate) fn of_driver(driver: DriverQueue) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = QueueId(NEXT.fetch_add(1, Ordering::Relaxed));
        Self(Arc::new(Shared { id, driver, machine: Machine::default(), own: OnceLock::new() }))
    }

    /// Returns the same queue for `opencl3`, with a reference of its own. Commands that are enqueued there are not
    /// recorded.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses to retain it.
    pub fn to_opencl3(&self) -> Result<opencl3::command_queue::CommandQueue> {
        self.0.driver.to_opencl3()
    }

    /// Returns the C handle, which is valid while this object lives. Commands that are enqueued there are not recorded.
    #[must_use]
    pub fn raw(&self) -> cl_command_queue {
        self.0.driver.raw()
    }

    /// Returns the context of the queue.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.0.driver.context()
    }

    /// Returns the device of the queue.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.0.driver.device()
    }

    /// Returns the properties of the queue.
    pub fn properties(&self) -> QueueProperties {
        self.0.driver.properties()
    }

    /// Returns whether the queue executes or records.
    #[must_use]
    pub fn state(&self) -> QueueState {
        let recording = self.0.machine.may_record() && self.0.machine.lock().goal().is_some();
        if recording { QueueState::Recording } else { QueueState::Executing }
    }

    /// Returns the graph that the queue records into.
    ///
    /// # Errors
    /// [`RecordError::NotRecording`] while the queue executes.
    pub fn recording_graph(&self) -> Result<Graph> {
        let graph = self.0.machine.lock().goal().and_then(GraphRef::upgrade);
        Ok(graph.ok_or(RecordError::NotRecording)?)
    }

    /// Submits all enqueued commands to the device, without waiting for them.
    ///
    /// While the queue records, this concerns the commands that were enqueued before the recording.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses.
    #[doc(alias = "clFlush")]
    pub fn flush(&self) -> Result<(), DriverError> {
        self.0.driver.flush()
    }

    /// Waits until everything enqueued so far is complete.
    ///
    /// It enqueues a marker and waits for the marker's event, because `clFinish` spins on some drivers. On an
    /// out-of-order queue it does not wait by `clWaitForEvents`, because Intel's CPU runtime can deadlock there.
    ///
    /// # Errors
    /// [`RecordError::NotRecordable`] while the queue records; [`crate::DriverError`] when the driver refuses, or when
    /// enqueued work failed.
    #[doc(alias = "clFinish")]
    pub fn finish(&self) -> Result<()> {
        self.check_executing("finishing a queue", "end the recording, and wait for a submission of the executable")?;
        reentrancy::check_queue(self.0.driver.raw().addr())?;
        self.0.driver.finish()
    }

    /// Returns whether everything enqueued so far is complete. Recorded commands do not count.
    ///
    /// It enqueues a marker and reads the marker's status, so it may still return `false` for a queue that has become
    /// empty just now.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.0.driver.is_empty()?)
    }

    pub(crate) fn driver(&self) -> &DriverQueue {
        &self.0.driver
    }

    pub(super) fn check_executing(&self, what: &'static str, instead: &'static str) -> Result<(), RecordError> {
        match self.state() {
            QueueState::Executing => Ok(()),
            QueueState::Recording => Err(RecordError::NotRecordable { what, instead }),
        }
    }

    pub(crate) fn target(&self) -> Target<'_> {
        Target { context: self.0.driver.context(), device: self.0.driver.device(), graph: None }
    }

    /// Executes or records a request. The returned event is the driver's, if one is wanted, or stands for the node.
    pub(super) fn submit<R: CommandRequest + Clone>(
        &self,
        request: &R,
        waits: &[&Event],
        want: bool,
    ) -> Result<Option<Event>> {
        match self.record_if(request, Order::Plain, waits)? {
            None => self.execute(request, waits, want),
            recorded => Ok(recorded),
        }
    }

    /// Decides once whether a request is executed or recorded, and records it. Returns an event only if the request was
    /// recorded.
    #[inline(always)]
    pub(crate) fn record_if<R: Request + Clone>(
        &self,
        request: &R,
        order: Order,
        waits: &[&Event],
    ) -> Result<Option<Event>> {
        if !self.0.machine.may_record() && waits.iter().all(|event| event.node().is_none()) {
            return Ok(None);
        }
        self.record_if_still(request, order, waits)
    }

    #[inline(never)]
    fn record_if_still<R: Request + Clone>(
        &self,
        request: &R,
        order: Order,
        waits: &[&Event],
    ) -> Result<Option<Event>> {
        // Dropped after the lock of the machine, because the last handle of a graph locks the machines of its queues.
        let graph;
        let mut machine = self.0.machine.lock();
        let (goal, joins) = match (machine.goal(), first_node(waits)) {
            (Some(goal), _) => (goal.clone(), None),
            (None, None) => return Ok(None),
            (None, Some((index, node))) => (node.graph.clone(), Some((index, node.node))),
        };
        graph = match (goal.upgrade(), joins) {
            (Some(graph), _) => graph,
            (None, Some((index, node))) => return Err(RecordError::OtherGraph { index, node }.into()),
            (None, None) => return Ok(None),
        };
        bodies::check(&goal)?;
        let node = self.record(&graph, &goal, &mut machine, request.clone(), order, waits, joins)?;
        Ok(Some(Event::of_node(goal, node)))
    }

    #[allow(clippy::too_many_arguments)]
    fn record<R: Request>(
        &self,
        graph: &Graph,
        goal: &GraphRef,
        machine: &mut Locked<'_, GraphRef>,
        request: R,
        order: Order,
        waits: &[&Event],
        joins: Option<(usize, Node)>,
    ) -> Result<Node> {
        let mut nodes = Vec::with_capacity(waits.len());
        for (index, event) in waits.iter().enumerate() {
            match &event.0 {
                EventKind::Driver(_) => return Err(RecordError::RunningEvent { index }.into()),
                EventKind::Node(of) if of.graph != *goal => {
                    return Err(RecordError::OtherGraph { index, node: of.node }.into());
                }
                EventKind::Node(of) => nodes.push(of.node),
            }
        }
        let mut state = graph.lock();
        if let Some((index, node)) = joins {
            let cannot = |what| RecordError::CannotJoin { index, node, what };
            if self.context() != graph.context() {
                return Err(cannot("context").into());
            }
            if self.device() != graph.device() {
                return Err(cannot("device").into());
            }
            if !state.recorder.is_recording() {
                return Err(RecordError::RecordingEnded { index, node }.into());
            }
        }
        let node = graph.record_node(&mut state, &*self.0, order, request, &nodes)?;
        if joins.is_some() {
            state.recorder.join(self.0.id, self.weak());
            machine.begin(goal.clone());
        }
        Ok(node)
    }

    pub(super) fn weak(&self) -> Weak<dyn RecordingQueue> {
        let shared: Weak<Shared> = Arc::downgrade(&self.0);
        shared
    }

    /// Executes a request now.
    fn execute<R: CommandRequest + Clone>(&self, request: &R, waits: &[&Event], want: bool) -> Result<Option<Event>> {
        match request.check(&self.target()) {
            Ok(checked) => self.execute_command(request.clone().command(checked), waits, want),
            Err(cause) => Err(refused(request, cause)),
        }
    }

    /// Executes a launch now. It does not become a [`Requested`], which would have to be allocated: a launch must not cost
    /// more than a plain `clEnqueueNDRangeKernel`.
    #[inline(always)]
    pub(super) fn execute_launch(&self, launch: &Launch, waits: &[&Event], want: bool) -> Result<Option<Event>> {
        let checked = match launch.check(&self.target()) {
            Ok(checked) => checked,
            Err(cause) => return Err(refused(launch, cause)),
        };
        let unfinished;
        let waits = if waits.is_empty() {
            &NOTHING
        } else {
            match self.list(waits, false)? {
                List::Now(list) => unfinished = list,
                List::Later(events) => return self.execute_later(launch.clone().command(checked), events).map(Some),
            }
            &unfinished
        };
        let _order = self.lock_order(waits, checked.addresses)?;
        let to = To { queue: &self.0.driver, waits, event: want };
        if checked.addresses {
            return self.run_tracked(entering(|each| launch.all_memory(each))?, &to, |to| launch.run(&checked, to));
        }
        Ok(launch.run(&checked, &to)?.map(Event::from))
    }

    /// Executes a checked command.
    fn execute_command(&self, requested: Requested, waits: &[&Event], want: bool) -> Result<Option<Event>> {
        let waits = match self.list(waits, false)? {
            List::Now(waits) => waits,
            List::Later(events) => return self.execute_later(requested, events).map(Some),
        };
        let needs_tracking = execute::needs_tracking(&requested);
        let _order = self.lock_order(&waits, needs_tracking)?;
        let to = To { queue: &self.0.driver, waits: &waits, event: want };
        let run = |to: &To<'_>| execute::run(&requested.command, None, to);
        if needs_tracking {
            return self.run_tracked(entering(|each| requested.memory(each))?, &to, run);
        }
        Ok(run(&to)?.map(Event::from))
    }

    /// Executes a command after events that may fail.
    #[cold]
    fn execute_later(&self, requested: Requested, events: Vec<DriverEvent>) -> Result<Event> {
        execute::check_now(&requested.command, self)?;
        let entering = entering(|each| requested.memory(each))?;
        defer(self, events, false, entering, move |to| execute::run(&requested.command, None, to))
    }

    /// Returns the in-order queue for commands that wait for events that may fail, and makes it when it is first
    /// needed.
    pub(super) fn own_queue(&self) -> Result<DriverQueue> {
        if let Some(own) = self.0.own.get() {
            return Ok(own.clone());
        }
        let properties = QueueProperties::new().profiling(self.properties().profiling);
        let own = DriverQueue::with_properties(self.context(), self.device(), properties)?;
        Ok(self.0.own.get_or_init(|| own).clone())
    }

    /// Executes a command that uses memory with an address. Such memory has to be kept alive until the command is
    /// complete, and away from the host. The caller holds the queue's lock for that.
    #[cold]
    fn run_tracked(
        &self,
        entering: Entering,
        to: &To<'_>,
        run: impl FnOnce(&To<'_>) -> Result<Option<DriverEvent>>,
    ) -> Result<Option<Event>> {
        let event = run(&To { event: true, ..*to })?;
        entering.entered(&self.0.driver, event.as_ref());
        Ok(event.filter(|_| to.event).map(Event::from))
    }

    /// Returns the queue's lock for a command whose place in the queue's order matters: one that events in its wait
    /// list may delay or let fail, or one whose end has to be observed.
    #[inline(always)]
    pub(super) fn lock_order(&self, waits: &Waits, needs_tracking: bool) -> Result<Option<MutexGuard<'_, ()>>> {
        if !needs_tracking && !waits.holds() {
            return Ok(None);
        }
        // The lock is already held while a native command is enqueued.
        reentrancy::check_call()?;
        Ok(Some(self.0.driver.lock_order()))
    }

    /// Checks a blocking command that begins now. A host task must not block until a command completes that comes after
    /// the task's own submission.
    fn begin_block(&self) -> Result<WaitGuard> {
        let driver = &self.0.driver;
        reentrancy::check_queue(driver.raw().addr())?;
        let gates = if driver.is_ordered() { driver.gates() } else { driver.barrier_gates() };
        Ok(WaitGuard::begin(&gates)?)
    }

    /// Returns the events of a wait list, without those that are complete. Complete events are kept if `complete_too`:
    /// a marker without a list waits for all commands, so the list of a marker must not become empty.
    pub(super) fn list(&self, events: &[&Event], complete_too: bool) -> Result<List> {
        let (mut waits, mut may_fail) = (Waits::NONE, false);
        for (index, event) in events.iter().enumerate() {
            let event: &DriverEvent = event.driver("waited for by a running command")?;
            if !event.is_of(self.context())? {
                return Err(SubmitError::OtherContext { index }.into());
            }
            match event.status()? {
                CommandStatus::Complete if !complete_too => {}
                CommandStatus::Failed(status) => {
                    let cause = Box::new(DriverError::new(COMMAND, status).into());
                    return Err(SubmitError::EventFailed { index, cause }.into());
                }
                CommandStatus::Complete => waits.push_open(event.clone()),
                _ if may_fail || !event.is_sure() => {
                    may_fail = true;
                    waits.push_open(event.clone());
                }
                _ => waits.push(event.clone()),
            }
        }
        Ok(if may_fail { List::Later(waits.into_events()) } else { List::Now(waits) })
    }

    /// Checks a blocking command that begins now, and waits on the host for its events. If an event fails, drivers report
    /// success for a blocking transfer that waits for it, and transfer nothing.
    pub(super) fn wait_on_host(&self, events: &[&Event]) -> Result<WaitGuard> {
        drop(self.begin_block()?);
        if matches!(self.list(events, false)?, List::Now(waits) if waits.is_empty()) {
            return self.begin_block();
        }
        for (index, event) in events.iter().enumerate() {
            let _waiting = event.begin_wait()?;
            let outcome = event.driver("waited for by a running command")?.wait_on_any_queue();
            outcome.map_err(|error| SubmitError::EventFailed { index, cause: Box::new(error.into()) })?;
        }
        self.begin_block()
    }
}

/// The wait list of a command that is executed.
pub(super) enum List {
    /// The driver may wait for these events.
    Now(Waits),
    /// Some of these events may fail, so the command waits for them on the host: see [`defer`].
    Later(Vec<DriverEvent>),
}

/// Registers the memory of a command with its allocations. Returns an error if the host holds some of it.
pub(super) fn entering(memory: impl FnOnce(&mut dyn FnMut(&Mem))) -> Result<Entering> {
    let (mut entering, mut refused) = (Entering::default(), Ok(()));
    memory(&mut |mem| {
        if refused.is_ok() {
            refused = entering.add(mem);
        }
    });
    refused?;
    Ok(entering)
}

#[cold]
fn refused(request: &impl Request, cause: BuildCause) -> Error {
    BuildError::new(request.subject(), cause).into()
}

/// The first event of the list that stands for a node.
fn first_node<'e>(events: &[&'e Event]) -> Option<(usize, &'e super::NodeEvent)> {
    events.iter().enumerate().find_map(|(index, event)| match &event.0 {
        EventKind::Driver(_) => None,
        EventKind::Node(node) => Some((index, &**node)),
    })
}

impl OnDevice for Queue {
    fn device(&self) -> &Device {
        Self::device(self)
    }
}

impl InContext for Queue {
    fn context(&self) -> &Context {
        Self::context(self)
    }
}

impl PartialEq for Queue {
    fn eq(&self, other: &Self) -> bool {
        self.0.driver == other.0.driver
    }
}

impl Eq for Queue {}

impl std::hash::Hash for Queue {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.driver.raw().hash(state);
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("driver", &self.0.driver).field("state", &self.state()).finish()
    }
}
