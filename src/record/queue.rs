//! Command queues, as users see them: executing or recording.

use std::fmt;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use opencl_sys::cl_command_queue;

use super::event::{Event, Kind};
use super::execute::Run;
use super::machine::{Goal, Locked, Machine};
use crate::cl::allocation::Entering;
use crate::cl::context::{Context, InContext, OnDevice};
use crate::cl::device::Device;
use crate::cl::enqueue::{NOTHING, To, Waits};
use crate::cl::event::{COMMAND, DriverEvent, Progress};
use crate::cl::queue::{DriverQueue, QueueProperties};
use crate::cl::reentrancy;
use crate::error::{BuildCause, BuildError, DriverError, Error, RecordError, Result, SubmitError};
use crate::graph::request::{Request, Target};
use crate::graph::tape::{Order, Recorder, RecorderId};
use crate::graph::{Graph, GraphId, GraphRef, Node};

/// A command queue. It executes what is submitted to it at once, or, while a graph records it, hands it to the graph.
///
/// Cheap to clone: clones are the same queue and have the same state. Queues are equal when their C handles are; one that was
/// wrapped twice has a state in each wrapper. What is enqueued on the C handle by other means is not recorded.
///
/// An event of a recorded command in the wait list of a command lets a queue that executes join the recording, until
/// that ends. Several threads may use a queue: the commands of a submission stay together among those of other
/// submissions.
///
/// Its methods have the names and the order of arguments of `opencl3`: see [the methods that begin with
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

/// What the clones of a queue share.
pub(super) struct Shared {
    id: RecorderId,
    pub(super) driver: DriverQueue,
    pub(super) machine: Machine<GraphRef>,
}

/// Whether a queue executes or records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QueueState {
    /// What is submitted runs.
    Executing,
    /// What is submitted becomes a node of a graph.
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

impl Recorder for Shared {
    fn id(&self) -> RecorderId {
        self.id
    }

    fn in_order(&self) -> bool {
        !self.driver.properties().out_of_order
    }

    fn end(&self, graph: &Graph) -> bool {
        let mut machine = self.machine.lock();
        let ended = machine.end(&graph.weak());
        if ended {
            graph.lock().tape.leave(self.id);
        }
        ended
    }

    fn end_joined(&self, graph: &Graph) {
        let mut machine = self.machine.lock();
        let mut state = graph.lock();
        // Under both locks nobody can begin meanwhile.
        if !state.tape.has_begun() {
            machine.end(&graph.weak());
            state.tape.leave(self.id);
        }
    }

    fn let_go(&self, graph: GraphId) {
        let mut machine = self.machine.lock();
        machine.end_if(|goal| goal.is_of(graph));
    }
}

impl Queue {
    /// An in-order queue for a device, in a context of its own: buffers, programs and graphs of one such queue cannot be
    /// used with another. [`Self::with_properties`] makes queues that share a context.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver makes no context or queue.
    pub fn new(device: &Device) -> Result<Self> {
        let context = Context::new(std::slice::from_ref(device))?;
        Self::with_properties(&context, device, QueueProperties::default())
    }

    /// A queue in an existing context, named by that or by what belongs to it, such as another queue.
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
        let id = RecorderId(NEXT.fetch_add(1, Ordering::Relaxed));
        Self(Arc::new(Shared { id, driver, machine: Machine::default() }))
    }

    /// The same queue for `opencl3`, with a reference of its own. What is enqueued there is not recorded.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses to retain it.
    pub fn to_opencl3(&self) -> Result<opencl3::command_queue::CommandQueue> {
        self.0.driver.to_opencl3()
    }

    /// The C handle, valid while this object lives. What is enqueued there is not recorded.
    #[must_use]
    pub fn raw(&self) -> cl_command_queue {
        self.0.driver.raw()
    }

    /// The context that the queue belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        self.0.driver.context()
    }

    /// The device that the queue leads to.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.0.driver.device()
    }

    /// How the queue behaves.
    pub fn properties(&self) -> QueueProperties {
        self.0.driver.properties()
    }

    /// Whether it executes or records.
    #[must_use]
    pub fn state(&self) -> QueueState {
        let recording = self.0.machine.may_record() && self.0.machine.lock().goal().is_some();
        if recording { QueueState::Recording } else { QueueState::Executing }
    }

    /// The graph that it records into.
    ///
    /// # Errors
    /// [`RecordError::NotRecording`] while it executes.
    pub fn recording_graph(&self) -> Result<Graph> {
        let graph = self.0.machine.lock().goal().and_then(GraphRef::upgrade);
        Ok(graph.ok_or(RecordError::NotRecording)?)
    }

    /// Hands all enqueued commands to the device, and does not wait for them. While the queue records, those that were
    /// enqueued before.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses.
    #[doc(alias = "clFlush")]
    pub fn flush(&self) -> Result<(), DriverError> {
        self.0.driver.flush()
    }

    /// Waits until everything enqueued so far is complete.
    ///
    /// It enqueues a marker and waits for that, because `clFinish` spins on some drivers; and that of an out-of-order queue it
    /// does not wait for by `clWaitForEvents`, in which Intel's CPU runtime can come to a deadlock.
    ///
    /// # Errors
    /// [`RecordError::NotRecordable`] while the queue records; [`crate::DriverError`] when the driver refuses, or when
    /// enqueued work failed.
    #[doc(alias = "clFinish")]
    pub fn finish(&self) -> Result<()> {
        self.check_executing("finishing a queue", "end the recording, and wait for the submission of the executable")?;
        self.check_block()?;
        self.0.driver.finish()
    }

    /// Whether everything enqueued so far is complete; recorded work does not count.
    ///
    /// It enqueues a marker and asks for its status: a queue that has only just become empty may still say no.
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

    pub(super) fn target(&self) -> Target<'_> {
        Target { context: self.0.driver.context(), device: self.0.driver.device(), graph: None }
    }

    /// Runs a request, or has it recorded. The event is the driver's, if one is wanted, or stands for the node.
    #[inline(always)] // See `ExecuteKernel::go`.
    pub(super) fn submit<R: Run>(&self, request: &R, waits: &[&Event], want: bool) -> Result<Option<Event>> {
        match self.record_if(request, Order::Plain, waits)? {
            None => self.execute(request, waits, want),
            recorded => Ok(recorded),
        }
    }

    /// Decides once whether a request is executed or recorded, and records it: then there is an event.
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
        // Dropped after the machine's lock: the last handle of a graph locks the machines of its queues.
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
                Kind::Driver(_) => return Err(RecordError::Ordinary { index }.into()),
                Kind::Node(of) if of.graph != *goal => {
                    return Err(RecordError::OtherGraph { index, node: of.node }.into());
                }
                Kind::Node(of) => nodes.push(of.node),
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
            if !state.tape.is_recording() {
                return Err(RecordError::Ended { index, node }.into());
            }
        }
        let node = graph.take_down(&mut state, &*self.0, order, request, &nodes)?;
        if joins.is_some() {
            state.tape.join(self.0.id, self.weak());
            machine.begin(goal.clone());
        }
        Ok(node)
    }

    pub(super) fn weak(&self) -> Weak<dyn Recorder> {
        let shared: Weak<Shared> = Arc::downgrade(&self.0);
        shared
    }

    /// Runs a request now.
    #[inline(always)]
    fn execute<R: Run>(&self, request: &R, waits: &[&Event], want: bool) -> Result<Option<Event>> {
        let checked = match request.check(&self.target()) {
            Ok(checked) => checked,
            Err(cause) => return Err(refused(request, cause)),
        };
        let unfinished;
        let waits = if waits.is_empty() {
            &NOTHING
        } else {
            unfinished = self.waits(waits)?;
            &unfinished
        };
        let is_followed = request.is_followed(&checked);
        let _whole = self.whole(waits, is_followed)?;
        let to = To { queue: &self.0.driver, waits, event: want };
        if is_followed {
            return self.follow(request, &checked, to);
        }
        Ok(request.run(&checked, &to)?.map(Event::from))
    }

    /// Runs a request that uses memory with an address, which is to be kept until the command is complete, and from the host. The
    /// caller holds the queue's lock for that.
    #[cold]
    fn follow<R: Run>(&self, request: &R, checked: &R::Checked, to: To<'_>) -> Result<Option<Event>> {
        let mut entering = Entering::default();
        let mut refused = Ok(());
        request.memory(&mut |mem| {
            if refused.is_ok() {
                refused = entering.add(mem);
            }
        });
        refused?;
        let event = request.run(checked, &To { event: true, ..to })?;
        entering.entered(&self.0.driver, event.as_ref());
        Ok(event.filter(|_| to.event).map(Event::from))
    }

    /// What is to be held while a command is enqueued that has a place to keep in the queue's order: one that its wait
    /// list may hold up or let fail, and one of which somebody has to know the end.
    #[inline(always)]
    pub(super) fn whole(&self, waits: &Waits, is_followed: bool) -> Result<Option<MutexGuard<'_, ()>>> {
        if !is_followed && !waits.holds() {
            return Ok(None);
        }
        // It is held where a native command is enqueued.
        reentrancy::check_call()?;
        Ok(Some(self.0.driver.whole()))
    }

    /// Says no to a host task that would block for what is behind its own submission.
    fn check_block(&self) -> Result<()> {
        Ok(reentrancy::check_queue(self.0.driver.raw().addr())?)
    }

    /// Ordinary events as a driver takes them, without those that are complete.
    pub(super) fn waits(&self, events: &[&Event]) -> Result<Waits> {
        self.listed(events, false)
    }

    /// Ordinary events as a driver takes them. A marker without a list waits for everything, so its list must not get lost.
    pub(super) fn listed(&self, events: &[&Event], complete_too: bool) -> Result<Waits> {
        let mut waits = Waits::NONE;
        for (index, event) in events.iter().enumerate() {
            let event: &DriverEvent = event.driver("waited for by work that runs")?;
            if !event.is_of(self.context())? {
                return Err(SubmitError::OtherContext { index }.into());
            }
            match event.progress()? {
                Progress::Complete if !complete_too => {}
                Progress::Failed(status) => {
                    let cause = Box::new(DriverError::new(COMMAND, status).into());
                    return Err(SubmitError::EventFailed { index, cause }.into());
                }
                Progress::Complete => waits.push_open(event.clone()),
                _ => waits.push(event.clone()),
            }
        }
        Ok(waits)
    }

    /// Waits on the host for ordinary events, for a command that blocks anyway: drivers call a blocking transfer behind an
    /// event that fails a success, and transfer nothing.
    pub(super) fn wait_on_host(&self, events: &[&Event]) -> Result<()> {
        self.check_block()?;
        if self.waits(events)?.is_empty() {
            return Ok(());
        }
        for (index, event) in events.iter().enumerate() {
            event.check_wait()?;
            let outcome = event.driver("waited for by work that runs")?.wait_wherever();
            outcome.map_err(|error| SubmitError::EventFailed { index, cause: Box::new(error.into()) })?;
        }
        Ok(())
    }
}

#[cold]
fn refused(request: &impl Request, cause: BuildCause) -> Error {
    BuildError::new(request.subject(), cause).into()
}

/// The first event that stands for a node.
fn first_node<'e>(events: &[&'e Event]) -> Option<(usize, &'e super::NodeEvent)> {
    events.iter().enumerate().find_map(|(index, event)| match &event.0 {
        Kind::Driver(_) => None,
        Kind::Node(node) => Some((index, &**node)),
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
