//! Host tasks: functions that run on the host between commands of the device.

use std::error::Error as StdError;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use crate::cl::completion::one_at_a_time::OneAtATime;
use crate::cl::completion::user_code::{UserOwned, catch};
use crate::cl::memory::host::{Completed, Element, HostBytes, HostData, Slot};
use crate::cl::memory::map::Lost;
use crate::cl::memory::region::{AsRegion, Region};
use crate::cl::objects::image::{Image, ImageLayers};
use crate::cl::objects::queue::DriverQueue;
use crate::command::Command;
use crate::error::{BuildCause, Result};
use crate::graph::nodes::map::Map;
use crate::graph::nodes::request::{CommandRequest, Request, Requested, Target};
use crate::graph::ports::{Scope, Written};
use crate::graph::writer::Writer;
use crate::graph::{After, Graph, HostRead, HostWrite, after_methods, sealed};
use crate::handles::{GraphId, Node, Port};
use crate::ir::{Access, ById, Mode};

impl Graph {
    /// Starts a host task: a function that runs on the host after the nodes that it waits for, and before the nodes
    /// that wait for it.
    ///
    /// The function runs on a thread of clgraph, once in each submission, in a body once in each turn, and never twice
    /// at the same time. Submitting returns without waiting for it. Declare the memory that the function uses by [`reads`](HostTaskNode::reads) and
    /// [`writes`](HostTaskNode::writes), so that nodes that use the same memory wait for each other; or name the nodes
    /// to wait for.
    ///
    /// The function can get results and set inputs of its own submission: see [`HostTaskContext`]. If it returns an error or
    /// panics, the submission fails with the text of the error. Nodes after the task then do not run, and all other
    /// nodes do; the executable can be submitted again. A closure that contains `?` and ends with `Ok(())` has to name
    /// its result type, as below, because the compiler cannot infer the error type (E0282).
    ///
    /// The executable keeps the function. A function that holds its own executable would therefore never be dropped:
    /// give it a weak handle, for example `Arc::downgrade` of an `Arc<OnceLock<Executable>>`. Two executables of one
    /// graph share the function, and call it one after the other.
    ///
    /// The function may submit other executables. It may wait for other submissions, but not for one that comes after
    /// its own: not for one on the queue of its own submission, and not for one of the same executable or of another
    /// executable with the same function. Both would wait for each other for ever. For the same reason it must not wait
    /// for that queue by [`Queue::finish`](crate::Queue::finish), [`Queue::map`](crate::Queue::map), or a blocking
    /// transfer. Waiting for its own submission returns
    /// [`SubmitError::OwnSubmission`](crate::SubmitError::OwnSubmission).
    ///
    /// The host must not access memory of the executable directly while the executable runs, and
    /// [`Memory::host`](crate::Memory::host) refuses it: [map](Self::map) the memory, or use reads and writes.
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
        function: impl FnMut(&HostTaskContext<'_>) -> R + Send + 'static,
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
    pub(in crate::graph) fn new(graph: &'g Graph, task: Task) -> Self {
        Self { graph, after: After::default(), task }
    }

    after_methods!();

    /// Declares that the function reads memory: by its address, or by commands that it submits.
    pub fn reads<T>(self, memory: &impl UsedMemory<T>) -> Self {
        self.uses(memory.used(), Mode::Read)
    }

    /// Declares that the function writes memory without reading its old content.
    pub fn writes<T>(self, memory: &impl UsedMemory<T>) -> Self {
        self.uses(memory.used(), Mode::Write)
    }

    /// Declares that the function reads and writes memory.
    pub fn reads_and_writes<T>(self, memory: &impl UsedMemory<T>) -> Self {
        self.uses(memory.used(), Mode::ReadWrite)
    }

    pub(in crate::graph) fn into_parts(self) -> (Task, After) {
        (self.task, self.after)
    }

    fn uses(mut self, region: Region, mode: Mode) -> Self {
        self.task.uses.push((region, mode));
        self
    }

    /// Adds the node.
    ///
    /// # Errors
    /// Those of [`EmptyNode::add`](crate::graph::EmptyNode::add).
    pub fn add(self) -> Result<Node> {
        Ok(self.graph.insert(self.task, &self.after)?)
    }

    /// Replaces the function of a host task, which uses the same memory, by this function. Edges stay, and executables
    /// get the change when they are updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and those of [`CopyNode::replace`](crate::graph::CopyNode::replace). After an error
    /// nothing has changed.
    pub fn replace(self, node: Node) -> Result<()> {
        self.graph.replace(node, self.task, &self.after)
    }
}

/// Memory that a host task or a native command can declare to use: any [`AsRegion`], an [`Image`], or some of its
/// [`layers`](Image::layers).
///
/// It cannot be implemented outside this crate.
pub trait UsedMemory<T>: sealed::UsedMemory<T> {
    #[doc(hidden)]
    fn used(&self) -> Region;
}

impl<T, M: AsRegion<T>> UsedMemory<T> for M {
    fn used(&self) -> Region {
        self.region()
    }
}

/// An image has no element type.
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

/// The result of a host task or of the function of a native command: nothing, or a `Result` of nothing with any error.
///
/// It cannot be implemented outside this crate.
pub trait TaskOutcome: sealed::TaskOutcome + 'static {
    #[doc(hidden)]
    fn into_outcome(self) -> Result<(), String>;
}

impl TaskOutcome for () {
    fn into_outcome(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>> + 'static> TaskOutcome for Result<(), E> {
    fn into_outcome(self) -> Result<(), String> {
        self.map_err(|error| {
            let error: Box<dyn StdError + Send + Sync> = error.into();
            // Both are code of the program. One that panics while the other unwinds would end the process.
            let (text, dropped) = (catch(|| error.to_string()), catch(|| drop(error)));
            text.and_then(|text| dropped.map(|()| text)).unwrap_or_else(|panic| format!("it panicked: {panic}"))
        })
    }
}

/// The view that a host task has of the submission that it runs in.
pub struct HostTaskContext<'a> {
    submission: &'a dyn TaskSubmission,
    scope: &'a Scope,
}

/// A submission, as its host tasks use it.
pub(crate) trait TaskSubmission {
    /// The memory of a host read's result.
    fn result(&self, read: Port, scope: &Scope) -> Result<Arc<Slot>>;
    /// Sets other data for a host write.
    fn input(&self, write: Port, scope: &Scope, data: HostBytes) -> Result<()>;
    /// The queue for mapping memory in the task, and where a failed unmapping is reported.
    fn mapper(&self) -> (DriverQueue, Lost);
    /// Whether the node has declared this use of memory.
    fn declares(&self, region: &Region, mode: Mode) -> bool;
}

impl HostTaskContext<'_> {
    /// Returns the result of a host read in this submission. The task has to come after the read. In a body of a branch or
    /// loop, the result of a read in a body is a copy, which later turns do not change.
    ///
    /// # Errors
    /// [`SubmitError::NotAResult`](crate::SubmitError::NotAResult);
    /// [`SubmitError::NotAfterRead`](crate::SubmitError::NotAfterRead) for a read that does not come before the task;
    /// [`SubmitError::NotRun`](crate::SubmitError::NotRun) for a read in a body of a branch or loop that had no turn;
    /// [`SubmitError::NotComplete`](crate::SubmitError::NotComplete);
    /// [`SubmitError::HostMemory`](crate::SubmitError::HostMemory) for a copy; [`crate::DriverError`].
    pub fn get<T: Element>(&self, read: &HostRead<T>) -> Result<ResultGuard<T>> {
        let slot = self.submission.result(Port { node: read.node(), index: read.part() }, self.scope)?;
        Ok(ResultGuard::new(slot, Completed::witnessed()))
    }

    /// Sets the data of a host write for this submission: as many elements as the node writes. The write has to come
    /// after the task.
    ///
    /// # Errors
    /// [`SubmitError::NotAnInput`](crate::SubmitError::NotAnInput),
    /// [`SubmitError::InputSize`](crate::SubmitError::InputSize);
    /// [`SubmitError::InputTaken`](crate::SubmitError::InputTaken) for a write that does not come after the task.
    pub fn put<T: Element>(&self, write: &HostWrite<T>, data: impl Into<HostData<T>>) -> Result<()> {
        self.submission.input(Port { node: write.node(), index: write.part() }, self.scope, data.into().into_bytes())
    }

    pub(in crate::graph) fn mapper(&self) -> (DriverQueue, Lost) {
        self.submission.mapper()
    }

    pub(in crate::graph) fn declares(&self, region: &Region, mode: Mode) -> bool {
        self.submission.declares(region, mode)
    }
}

impl fmt::Debug for HostTaskContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostTaskContext")
    }
}

/// The result of a host read of one submission. It dereferences to a slice.
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

/// Returns what makes a text of the outcome.
type Function = dyn FnMut(&HostTaskContext<'_>) -> Box<dyn FnOnce() -> Result<(), String>> + Send;

/// The function of a host task. Clones share the function.
#[derive(Clone)]
pub(crate) struct TaskFn {
    function: Arc<OneAtATime<Function>>,
    scope: Scope,
    /// The label of the node, if the user gives none.
    label: Option<Arc<str>>,
}

impl TaskFn {
    /// Whether both are the same function.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.function, &other.function)
    }

    /// The same function in a graph into which a sub-graph was inlined.
    pub(crate) fn within(&self, written: &Written) -> Self {
        let moved = |of: &Written| Written {
            ports: Arc::clone(&of.ports),
            data: of.data + written.data,
            results: of.results + written.results,
        };
        let inside = self.scope.inside.iter().map(moved).chain([written.clone()]).collect();
        Self { scope: Scope { home: self.scope.home, inside }, ..self.clone() }
    }

    /// The same function as a task of this graph.
    pub(in crate::graph) fn at_home(mut self, graph: GraphId) -> Self {
        self.scope.home = Some(graph);
        self
    }

    /// Another function in place of this one.
    pub(crate) fn replaced_by(&self, other: &Self) -> Self {
        let scope = Scope { home: other.scope.home, inside: Arc::clone(&self.scope.inside) };
        Self { scope, ..other.clone() }
    }

    pub(in crate::graph) fn label(&self) -> Option<&Arc<str>> {
        self.label.as_ref()
    }

    /// Calls the function. An error is returned as its text.
    pub(crate) fn call(&self, submission: &dyn TaskSubmission) -> Result<(), String> {
        // The payload of a panic and the error are dropped after the call has ended: that is code of the program.
        outcome_of(|| {
            let returned = self.function.call(|function| {
                catch_unwind(AssertUnwindSafe(|| function(&HostTaskContext { submission, scope: &self.scope })))
            });
            match returned {
                Ok(returned) => returned.unwrap_or_else(|panic| resume_unwind(panic))(),
                Err(error) => Err(format!("its function runs for another submission, and was not waited for: {error}")),
            }
        })
    }
}

/// Calls a user's function. An error or a panic is returned as its text.
pub(in crate::graph) fn outcome_of(function: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
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
    /// The mapping, for a task that maps memory.
    pub(in crate::graph) map: Option<Map>,
}

impl Task {
    pub(crate) fn new<R: TaskOutcome>(function: impl FnMut(&HostTaskContext<'_>) -> R + Send + 'static) -> Self {
        let mut function = UserOwned::new(function);
        let function = move |task: &HostTaskContext<'_>| -> Box<dyn FnOnce() -> Result<(), String>> {
            let outcome = function(task);
            Box::new(move || outcome.into_outcome())
        };
        let function = Arc::new(OneAtATime::new(function));
        Self { function: TaskFn { function, scope: Scope::default(), label: None }, uses: Vec::new(), map: None }
    }

    /// A host task that maps memory.
    pub(in crate::graph) fn mapping(
        map: Map,
        function: impl FnMut(&HostTaskContext<'_>) -> Result<(), String> + Send + 'static,
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

    fn lower(self, home: Self::Checked, to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        self.command(home).lower(to, accesses)
    }
}

impl CommandRequest for Task {
    fn command(mut self, home: Option<GraphId>) -> Requested {
        self.function.scope.home = home;
        Requested::new(Command::Task(self.function), self.uses)
    }
}

impl Task {
    pub(in crate::graph) fn check_memory(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        self.map.as_ref().map_or(Ok(()), |map| map.check(target))?;
        self.uses.iter().try_for_each(|(region, _)| target.check_context(region, "memory that a host task uses"))
    }
}
