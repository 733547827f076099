//! Beginning and ending recordings.

use std::sync::Arc;

use super::event::{Event, EventKind};
use super::machine::Locked;
use super::queue::Queue;
use super::sealed;
use crate::cl::objects::context::InContext;
use crate::error::{BuildCause, BuildError, RecordError, Result};
use crate::graph::recorder::RecordingQueue;
use crate::graph::{Graph, GraphProperties, GraphRef};
use crate::handles::Node;

/// Names one or several queues: a [`Queue`], or a slice, an array or a `Vec` of queues. It cannot be implemented
/// outside this crate.
pub trait Queues: sealed::Queues {
    /// Calls `each` with every queue.
    fn for_each_queue(&self, each: &mut dyn FnMut(&Queue));
}

impl Queues for Queue {
    fn for_each_queue(&self, each: &mut dyn FnMut(&Queue)) {
        each(self);
    }
}

impl<Q: Queues + ?Sized> Queues for &Q {
    fn for_each_queue(&self, each: &mut dyn FnMut(&Queue)) {
        (**self).for_each_queue(each);
    }
}

impl<Q: Queues> Queues for [Q] {
    fn for_each_queue(&self, each: &mut dyn FnMut(&Queue)) {
        self.iter().for_each(|queue| queue.for_each_queue(each));
    }
}

impl<Q: Queues, const LEN: usize> Queues for [Q; LEN] {
    fn for_each_queue(&self, each: &mut dyn FnMut(&Queue)) {
        self[..].for_each_queue(each);
    }
}

impl<Q: Queues> Queues for Vec<Q> {
    fn for_each_queue(&self, each: &mut dyn FnMut(&Queue)) {
        self[..].for_each_queue(each);
    }
}

fn list(queues: &(impl Queues + ?Sized)) -> Vec<Queue> {
    let mut list = Vec::new();
    queues.for_each_queue(&mut |queue| list.push(queue.clone()));
    list
}

/// Locks the machines of all queues, always in the same order to avoid deadlocks, and returns them in the order of the
/// list. No queue may be in the list twice.
fn lock(queues: &[Queue]) -> Vec<Locked<'_, GraphRef>> {
    let mut order: Vec<usize> = (0..queues.len()).collect();
    order.sort_unstable_by_key(|index| Arc::as_ptr(&queues[*index].0).addr());
    let mut locked: Vec<_> = order.into_iter().map(|index| (index, queues[index].0.machine.lock())).collect();
    locked.sort_unstable_by_key(|(index, _)| *index);
    locked.into_iter().map(|(_, machine)| machine).collect()
}

fn check_distinct(queues: &[Queue]) -> Result<(), RecordError> {
    for (second, queue) in queues.iter().enumerate() {
        if let Some(first) = queues[..second].iter().position(|other| other == queue) {
            return Err(RecordError::SameQueue { first, second });
        }
    }
    Ok(())
}

/// Ends a recording when the scope that began it is left by a return, an error or a panic.
struct Scope<'g> {
    graph: &'g Graph,
    queues: Vec<Queue>,
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        for queue in &self.queues {
            queue.0.end(self.graph);
        }
        // If no other recording goes on, queues that have joined stop recording too.
        loop {
            let state = self.graph.lock();
            let joined = if state.recorder.has_begun() { Vec::new() } else { state.recorder.queues() };
            drop(state);
            if joined.is_empty() {
                return;
            }
            joined.iter().for_each(|queue| queue.end_joined(self.graph));
        }
    }
}

impl Graph {
    /// Creates an empty graph for the context and device of a queue.
    ///
    /// # Errors
    /// Those of [`Graph::with_properties`].
    #[doc(alias("cudaGraphCreate", "clCreateCommandBufferKHR"))]
    pub fn new(queue: &Queue) -> Result<Self> {
        Self::with_properties(queue, queue.device(), GraphProperties::default())
    }

    /// Runs `code` while queues record into this graph: commands that `code` enqueues become nodes, and nothing runs.
    ///
    /// The recording ends when `code` returns, also by an error or a panic. Nodes that were recorded until then stay.
    /// Queues that have joined the recording ([`Queue`] with an event of a recorded command) leave it at the same time,
    /// unless another recording into this graph goes on.
    ///
    /// The function returns what `code` returns. The error type of `code` is [`Error`](crate::Error); a program with
    /// error types of its own uses [`begin_recording`](Self::begin_recording).
    ///
    /// # Errors
    /// Those of [`begin_recording`](Self::begin_recording), and that of `code`.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// use clgraph::{Buffer, Finalize, Graph, Queue};
    /// let queue = Queue::new(&clgraph::best_device()?)?;
    /// let (a, b) = (Buffer::<u32>::new(&queue, 4)?, Buffer::<u32>::new(&queue, 4)?);
    ///
    /// let graph = Graph::new(&queue)?;
    /// let result = graph.record(&queue, || {
    ///     queue.enqueue_fill_buffer(&a, &[7], 0, 16, &[])?;
    ///     queue.enqueue_copy_buffer(&a, &b, 0, 0, 16, &[])?;
    ///     queue.enqueue_read_buffer_owned(&b, 0, 4, &[])
    /// })?;
    ///
    /// let run = graph.finalize(Finalize::new())?.submit(&queue)?;
    /// run.wait()?;
    /// assert_eq!(*run.get(&result.host_read()?)?, [7; 4]);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "cudaStreamBeginCapture")]
    pub fn record<T>(&self, queues: &(impl Queues + ?Sized), code: impl FnOnce() -> Result<T>) -> Result<T> {
        let queues = list(queues);
        self.begin(&queues)?;
        let _scope = Scope { graph: self, queues };
        code()
    }

    /// Begins to record queues into this graph.
    ///
    /// A recording may be ended and begun again; the next nodes of each queue then come after the nodes that the queue
    /// recorded before. A recording ends by [`end_recording`](Self::end_recording), by
    /// [`end_all_recording`](Self::end_all_recording), or when the last handle of the graph is dropped.
    ///
    /// # Errors
    /// [`RecordError::AlreadyRecording`], [`RecordError::SameQueue`], [`RecordError::OtherQueue`]. After an error no
    /// queue has changed.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// # let buffer = Buffer::<u32>::new(&queue, 4)?;
    /// let graph = Graph::new(&queue)?;
    /// graph.begin_recording(&queue)?;
    /// queue.enqueue_fill_buffer(&buffer, &[7], 0, 16, &[])?; // a node: nothing runs
    /// assert_eq!(graph.end_recording(&queue)?, 1);
    /// assert_eq!(graph.len(), 1);
    /// # Ok(()) }
    /// ```
    #[doc(alias = "cudaStreamBeginCaptureToGraph")]
    pub fn begin_recording(&self, queues: &(impl Queues + ?Sized)) -> Result<()> {
        self.begin(&list(queues))
    }

    /// Begins to record a queue unless it records into this graph already. Returns whether a recording began.
    ///
    /// # Errors
    /// [`RecordError::AlreadyRecording`] when it records into another graph; [`RecordError::OtherQueue`].
    pub fn ensure_recording(&self, queue: &Queue) -> Result<bool> {
        self.check_queue(0, queue)?;
        let goal = self.weak();
        let mut machine = queue.0.machine.lock();
        let recording = match machine.goal() {
            None => false,
            Some(into) if *into == goal => true,
            Some(_) => return Err(RecordError::AlreadyRecording { index: 0, into: ANOTHER }.into()),
        };
        let mut state = self.lock();
        if recording {
            state.recorder.stay(queue.0.id());
        } else {
            state.recorder.begin(queue.0.id(), queue.weak());
            machine.begin(goal);
        }
        Ok(!recording)
    }

    /// Checks that a queue, which is at `index` of the caller's list, can record into this graph.
    fn check_queue(&self, index: usize, queue: &Queue) -> Result<(), RecordError> {
        let what = if queue.context() != self.context() {
            "context"
        } else if queue.device() != self.device() {
            "device"
        } else {
            return Ok(());
        };
        Err(RecordError::OtherQueue { index, what })
    }

    /// Checks that a queue can record into this graph, and does not record yet.
    pub(super) fn check_recordable(&self, queue: &Queue) -> Result<(), RecordError> {
        self.check_queue(0, queue)?;
        match queue.0.machine.lock().goal() {
            Some(into) if *into == self.weak() => Err(RecordError::AlreadyRecording { index: 0, into: THIS }),
            Some(_) => Err(RecordError::AlreadyRecording { index: 0, into: ANOTHER }),
            None => Ok(()),
        }
    }

    fn begin(&self, queues: &[Queue]) -> Result<()> {
        check_distinct(queues)?;
        for (index, queue) in queues.iter().enumerate() {
            self.check_queue(index, queue)?;
        }
        let goal = self.weak();
        let mut machines = lock(queues);
        for (index, machine) in machines.iter().enumerate() {
            if let Some(into) = machine.goal() {
                let into = if *into == goal { THIS } else { ANOTHER };
                return Err(RecordError::AlreadyRecording { index, into }.into());
            }
        }
        let mut state = self.lock();
        for (queue, machine) in queues.iter().zip(&mut machines) {
            state.recorder.begin(queue.0.id(), queue.weak());
            machine.begin(goal.clone());
        }
        Ok(())
    }

    /// Ends the recording of queues, and returns how many of them were recording. A queue that executes stays as it is.
    ///
    /// # Errors
    /// [`RecordError::OtherRecording`] for a queue that records into another graph. After an error no queue has
    /// changed.
    #[doc(alias = "cudaStreamEndCapture")]
    pub fn end_recording(&self, queues: &(impl Queues + ?Sized)) -> Result<usize> {
        let all = list(queues);
        let goal = self.weak();
        // A queue that is twice in the list counts once, because its lock can be taken only once.
        let first = |index: &usize| all.iter().position(|queue| Arc::ptr_eq(&queue.0, &all[*index].0)) == Some(*index);
        let at: Vec<usize> = (0..all.len()).filter(first).collect();
        let queues: Vec<Queue> = at.iter().map(|index| all[*index].clone()).collect();
        let mut machines = lock(&queues);
        for (index, machine) in at.iter().zip(&machines) {
            if machine.goal().is_some_and(|into| *into != goal) {
                return Err(RecordError::OtherRecording { index: *index }.into());
            }
        }
        let mut state = self.lock();
        let mut ended = 0;
        for (queue, machine) in queues.iter().zip(&mut machines) {
            if machine.end(&goal) {
                state.recorder.leave(queue.0.id());
                ended += 1;
            }
        }
        Ok(ended)
    }

    /// Ends all recordings into this graph, and returns how many queues were recording.
    pub fn end_all_recording(&self) -> usize {
        let mut ended = 0;
        loop {
            // Queues may join as long as one queue records, so this repeats until no queue records.
            let queues = self.lock().recorder.queues();
            if queues.is_empty() {
                return ended;
            }
            ended += queues.iter().filter(|queue| queue.end(self)).count();
        }
    }

    /// Returns the node that an event of a recorded command stands for.
    ///
    /// # Errors
    /// [`BuildCause::NotANode`] for an event of a command that was executed; [`BuildCause::OtherGraph`] for an event of
    /// another graph.
    pub fn node_of(&self, event: &Event) -> Result<Node> {
        let cause = match &event.0 {
            EventKind::Driver(_) => BuildCause::NotANode,
            EventKind::Node(of) if of.graph != self.weak() => BuildCause::OtherGraph { node: of.node },
            EventKind::Node(of) => return Ok(of.node),
        };
        Err(BuildError::new("node of an event", cause).into())
    }
}

const THIS: &str = "this";
const ANOTHER: &str = "another";
