//! Host tasks: functions of the host's between commands of the device.

use std::error::Error as StdError;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use super::map::Map;
use super::ports::{Scope, Written};
use super::request::{Request, Target};
use super::tables::Writer;
use super::{After, Graph, GraphId, HostRead, HostWrite, Node, Part, after_methods, sealed};
use crate::cl::buffer::{AsRegion, Region};
use crate::cl::host::{Completed, Element, HostBytes, HostData, Slot};
use crate::cl::image::{Image, ImageLayers};
use crate::cl::map::Lost;
use crate::cl::queue::DriverQueue;
use crate::cl::user_code::{Given, catch};
use crate::error::{BuildCause, Result};
use crate::ir::{Access, Mode, Op, TaskId};

impl Graph {
    /// Starts a host task: a function that runs on the host when what it waits for is complete, and for which later nodes wait.
    ///
    /// It runs on a thread of clgraph's own, once in each submission, and never twice at a time; a submission returns before it
    /// does. Say which memory it uses, so that nodes that use the same wait for each other ([`reads`](HostTaskNode::reads),
    /// [`writes`](HostTaskNode::writes)), or name nodes.
    ///
    /// It gets results and gives input of its own submission: see [`HostTask`]. An error that it returns, or a panic, fails the
    /// submission with its text; what waits for it does not run, everything else does, and the executable can be submitted
    /// again. A closure with `?` in it that ends with `Ok(())` has to name its result, as below: the compiler cannot
    /// tell which error it is (E0282).
    ///
    /// The executable keeps the function. One that has a handle of that executable would keep it for ever: give it a weak one,
    /// `Arc::downgrade` of an `Arc<OnceLock<Executable>>`, say. Two executables of one graph have the same function, and call it
    /// one after the other.
    ///
    /// It may submit other executables. It may wait for other submissions, of which none may come behind its own: not for one to
    /// the queue that its own was submitted to, nor for one of the same executable, or of another with the same function;
    /// they would wait for each other for ever. Nor may it wait for that queue by [`Queue::finish`](crate::Queue::finish),
    /// [`Queue::map`](crate::Queue::map), or a transfer that blocks. One that waits for its own submission itself is told so by
    /// [`SubmitError::OwnSubmission`](crate::SubmitError::OwnSubmission). Memory that the executable uses is not the host's while
    /// it runs ([`Memory::host`](crate::Memory::host) says so): [map](Self::map) it, or use reads and writes.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let (a, b) = (Buffer::from_slice(&queue, &[1_u32, 2, 3])?, Buffer::<u32>::new(&queue, 1)?);
    /// let graph = Graph::new(&queue)?;
    /// let numbers = graph.read(&a).add()?;
    /// let sum = graph.write(&b, [0]).add()?;
    /// let task = graph.host_task(move |task| -> clgraph::Result<()> {
    ///     let total: u32 = task.get(&numbers)?.iter().sum();
    ///     task.put(&sum, vec![total])?;
    ///     Ok(())
    /// });
    /// let task = task.after(numbers).add()?;
    /// graph.add_edge(task, sum.node())?;
    /// let result = graph.read(&b).add()?;
    /// let run = graph.finalize(Finalize::new())?.submit(&queue)?;
    /// run.wait()?;
    /// assert_eq!(*run.get(&result)?, [6]);
    /// # Ok(()) }
    /// ```
    #[doc(alias("cudaGraphAddHostNode", "cudaLaunchHostFunc", "clEnqueueNativeKernel"))]
    pub fn host_task<R: TaskOutcome>(
        &self,
        function: impl FnMut(&HostTask<'_>) -> R + Send + 'static,
    ) -> HostTaskNode<'_> {
        HostTaskNode::new(self, Task::new(function))
    }
}

/// A host task to be added. See [`Graph::host_task`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct HostTaskNode<'g> {
    graph: &'g Graph,
    after: After,
    task: Task,
}

impl<'g> HostTaskNode<'g> {
    pub(super) fn new(graph: &'g Graph, task: Task) -> Self {
        Self { graph, after: After::default(), task }
    }

    after_methods!();

    /// Says that the function reads memory: by its address, or by what it submits.
    pub fn reads<T>(self, memory: &impl UsedMemory<T>) -> Self {
        self.uses(memory.used(), Mode::Read)
    }

    /// Says that it writes memory, without reading what was in it.
    pub fn writes<T>(self, memory: &impl UsedMemory<T>) -> Self {
        self.uses(memory.used(), Mode::Write)
    }

    /// Says that it reads and writes memory.
    pub fn reads_and_writes<T>(self, memory: &impl UsedMemory<T>) -> Self {
        self.uses(memory.used(), Mode::ReadWrite)
    }

    pub(super) fn into_parts(self) -> (Task, After) {
        (self.task, self.after)
    }

    fn uses(mut self, region: Region, mode: Mode) -> Self {
        self.task.uses.push((region, mode));
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// Those of [`EmptyNode::add`](super::EmptyNode::add).
    pub fn add(self) -> Result<Node> {
        Ok(self.graph.insert(self.task, &self.after)?)
    }

    /// Puts the function in the place of that of a host task, which uses the same memory. Edges stay, and executables follow when
    /// they are updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and those of [`CopyNode::replace`](super::CopyNode::replace): nothing changed.
    pub fn replace(self, node: Node) -> Result<()> {
        self.graph.replace(node, self.task, &self.after)
    }
}

/// Memory that a host task or a native command may say that it uses: whatever is [`AsRegion`], an [`Image`], or some of its
/// [`layers`](Image::layers). It cannot be implemented elsewhere.
pub trait UsedMemory<T>: sealed::UsedMemory<T> {
    #[doc(hidden)]
    fn used(&self) -> Region;
}

impl<T, M: AsRegion<T>> UsedMemory<T> for M {
    fn used(&self) -> Region {
        self.region()
    }
}

/// It has no elements that would tell more.
impl UsedMemory<()> for Image {
    fn used(&self) -> Region {
        self.region()
    }
}

impl UsedMemory<()> for ImageLayers {
    fn used(&self) -> Region {
        self.region.clone()
    }
}

/// What a host task, or the function of a native command, may return: nothing, or a `Result` of nothing with any error. It
/// cannot be implemented elsewhere.
pub trait TaskOutcome: sealed::TaskOutcome {
    #[doc(hidden)]
    fn into_outcome(self) -> Result<(), String>;
}

impl TaskOutcome for () {
    fn into_outcome(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> TaskOutcome for Result<(), E> {
    fn into_outcome(self) -> Result<(), String> {
        self.map_err(|error| error.into().to_string())
    }
}

/// What a host task has of the submission that it runs in.
pub struct HostTask<'a> {
    hands: &'a dyn TaskHands,
    scope: &'a Scope,
}

/// A submission, as its host tasks know it.
pub(crate) trait TaskHands {
    /// What was read.
    fn result(&self, read: Part, scope: &Scope) -> Result<Arc<Slot>>;
    /// Gives a host write other data.
    fn input(&self, write: Part, scope: &Scope, data: HostBytes) -> Result<()>;
    /// Where the task can map memory, and where it is told if that cannot be unmapped.
    fn mapper(&self) -> (DriverQueue, Lost);
    /// Whether the node says that it uses memory in a way.
    fn declares(&self, region: &Region, mode: Mode) -> bool;
}

impl HostTask<'_> {
    /// What a host read of the graph has read in this submission. The task has to be behind it.
    ///
    /// # Errors
    /// [`SubmitError::NotAResult`](crate::SubmitError::NotAResult); [`SubmitError::NotBehind`](crate::SubmitError::NotBehind) for a
    /// read that the task is not behind; [`SubmitError::NotComplete`](crate::SubmitError::NotComplete);
    /// [`crate::DriverError`].
    pub fn get<T: Element>(&self, read: &HostRead<T>) -> Result<ResultGuard<T>> {
        let slot = self.hands.result(Part { node: read.node(), index: read.part() }, self.scope)?;
        Ok(ResultGuard::new(slot, Completed::witnessed()))
    }

    /// Gives a host write of the graph other data, for this submission: as many elements as it writes. The write has to be behind
    /// the task.
    ///
    /// # Errors
    /// [`SubmitError::NotAnInput`](crate::SubmitError::NotAnInput), [`SubmitError::InputSize`](crate::SubmitError::InputSize);
    /// [`SubmitError::InputTaken`](crate::SubmitError::InputTaken) for a write that is not behind the task.
    pub fn put<T: Element>(&self, write: &HostWrite<T>, data: impl Into<HostData<T>>) -> Result<()> {
        self.hands.input(Part { node: write.node(), index: write.part() }, self.scope, data.into().into_bytes())
    }

    pub(super) fn mapper(&self) -> (DriverQueue, Lost) {
        self.hands.mapper()
    }

    pub(super) fn declares(&self, region: &Region, mode: Mode) -> bool {
        self.hands.declares(region, mode)
    }
}

impl fmt::Debug for HostTask<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostTask")
    }
}

/// A result of a submission: a slice of what a host read read.
#[must_use]
pub struct ResultGuard<T> {
    slot: Arc<Slot>,
    done: Completed,
    element: PhantomData<T>,
}

impl<T> ResultGuard<T> {
    pub(crate) fn new(slot: Arc<Slot>, done: Completed) -> Self {
        Self { slot, done, element: PhantomData }
    }
}

impl<T: Element> Deref for ResultGuard<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(self.slot.bytes(&self.done))
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for ResultGuard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

type Function = dyn FnMut(&HostTask<'_>) -> Result<(), String> + Send;

/// A host task's function. Clones are the same.
#[derive(Clone)]
pub(crate) struct TaskFn {
    function: Arc<Mutex<Function>>,
    scope: Scope,
    /// What its node is called, if it is not given a label.
    label: Option<Arc<str>>,
}

impl TaskFn {
    /// Whether it is the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.function, &other.function)
    }

    /// The same in a graph into which a sub-graph was written.
    pub(crate) fn within(&self, written: &Written) -> Self {
        let moved = |of: &Written| Written {
            ports: Arc::clone(&of.ports),
            data: of.data + written.data,
            results: of.results + written.results,
        };
        let inside = self.scope.inside.iter().map(moved).chain([written.clone()]).collect();
        Self { scope: Scope { home: self.scope.home, inside }, ..self.clone() }
    }

    /// That of a task of this graph.
    pub(super) fn at_home(mut self, graph: GraphId) -> Self {
        self.scope.home = Some(graph);
        self
    }

    /// Another function in this one's place.
    pub(crate) fn replaced_by(&self, other: &Self) -> Self {
        let scope = Scope { home: other.scope.home, inside: Arc::clone(&self.scope.inside) };
        Self { scope, ..other.clone() }
    }

    pub(super) fn label(&self) -> Option<&Arc<str>> {
        self.label.as_ref()
    }

    /// Calls it. An error is its text.
    pub(crate) fn call(&self, hands: &dyn TaskHands) -> Result<(), String> {
        let mut function = self.function.lock().unwrap_or_else(PoisonError::into_inner);
        outcome_of(|| (function)(&HostTask { hands, scope: &self.scope }))
    }
}

/// Calls a user's function. An error is its text, and so is a panic.
pub(super) fn outcome_of(function: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch(function).unwrap_or_else(|text| Err(format!("it panicked: {text}")))
}

impl fmt::Debug for TaskFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskFn({:p})", Arc::as_ptr(&self.function))
    }
}

/// A host task, as a request.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) function: TaskFn,
    pub(crate) uses: Vec<(Region, Mode)>,
    /// What it maps.
    pub(super) map: Option<Map>,
}

impl Task {
    pub(crate) fn new<R: TaskOutcome>(function: impl FnMut(&HostTask<'_>) -> R + Send + 'static) -> Self {
        let mut function = Given::new(function);
        let function = Arc::new(Mutex::new(move |task: &HostTask<'_>| function(task).into_outcome()));
        Self { function: TaskFn { function, scope: Scope::default(), label: None }, uses: Vec::new(), map: None }
    }

    /// One that maps memory.
    pub(super) fn mapping(
        map: Map,
        function: impl FnMut(&HostTask<'_>) -> Result<(), String> + Send + 'static,
    ) -> Self {
        let mut task = Self::new(function);
        task.function.label = Some(map.subject().into());
        Self { uses: vec![map.access()], map: Some(map), ..task }
    }
}

impl Request for Task {
    type Checked = Option<GraphId>;

    fn subject(&self) -> String {
        self.map.as_ref().map_or("host task", Map::subject).to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<Option<GraphId>, BuildCause> {
        self.check_memory(target)?;
        Ok(target.graph)
    }

    fn lower(mut self, home: Option<GraphId>, state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        self.function.scope.home = home;
        self.push(state, accesses)
    }
}

impl Task {
    pub(super) fn check_memory(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        self.map.as_ref().map_or(Ok(()), |map| map.check(target))?;
        self.uses.iter().try_for_each(|(region, _)| target.check_context(region, "memory that a host task uses"))
    }

    /// Puts it into the tables.
    pub(super) fn push(self, state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        accesses.extend(self.uses.iter().map(|(region, mode)| state.access(region, *mode)));
        let id = TaskId(state.ir.tasks);
        state.ir.tasks = id.0.checked_add(1)?;
        state.tasks.push(self.function);
        Some(Op::Task(id))
    }
}
