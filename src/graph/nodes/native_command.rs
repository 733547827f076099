//! Native commands: commands that clgraph has no node for, which a function of the user enqueues or records.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use crate::caps::RecordAbi;
use crate::cl::completion::user_code::UserOwned;
use crate::cl::memory::region::Region;
use crate::cl::objects::context::{Context, InContext, OnDevice};
use crate::cl::objects::device::Device;
use crate::cl::objects::queue::DriverQueue;
use crate::command::{Command, Form};
use crate::error::{BuildCause, Result};
use crate::graph::nodes::host_task::{TaskOutcome, UsedMemory, outcome_of};
use crate::graph::nodes::request::{CommandRequest, Request, Requested, Target};
use crate::graph::tables::Tables;
use crate::graph::writer::Writer;
use crate::graph::{After, Graph, after_methods};
use crate::handles::Node;
use crate::ir::{Access, ById, Mode, NodeId};

/// A command that clgraph has no node for, such as one of a vendor's extension or of a library that enqueues by itself.
///
/// It has one of two forms, or both:
/// - the function of an [enqueued](Self::enqueued) command is called at each submission, with an in-order queue,
///   outside command buffers;
/// - the function of a [recorded](Self::recorded) command is called with a command buffer when its partition of the
///   graph is recorded: at finalize, and whenever that partition is recorded again. It may be called several times for
///   one executable: when a driver refuses another command, and for queues with other properties.
///
/// A command with both forms is recorded if its partition is recorded, and enqueued otherwise. A command that can only
/// be recorded is recorded whatever path was requested, and cannot be finalized for a device without command buffers.
///
/// Declare the memory that the command uses. Nodes that use the same memory then wait for each other, and the memory is
/// kept alive. The functions get the memory by its index ([`NativeQueue::memory`]), with the executable's own memory in
/// place of memory that the graph owns.
///
/// [`Graph::native_command`] or [`Queue::enqueue_native_command`](crate::Queue::enqueue_native_command) adds the
/// command to a graph. clgraph calls the functions while it submits, finalizes or updates, and holds its locks
/// meanwhile. So a function enqueues or records, and returns:
/// - it must not wait for commands, nor for threads that may submit;
/// - of clgraph, it may use what it is given, but no graph, executable or submission. Submitting, updating or
///   finalizing an executable, waiting for a submission, and completing a user event are refused
///   ([`SubmitError::InsideNativeCommand`](crate::SubmitError::InsideNativeCommand)). Other waits, for an event or a
///   queue, may never end; neither may a query of the graph that is being updated.
///
/// If a function returns an error or panics, the call of clgraph fails with the text of the error.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// # use clgraph::{Buffer, Finalize, Graph, NativeCommand, Queue};
/// use opencl3::memory::{cl_mem, CL_MIGRATE_MEM_OBJECT_HOST};
/// # let queue = Queue::new(&clgraph::best_device()?)?;
/// let numbers = Buffer::<u32>::new(&queue, 64)?;
/// let graph = Graph::new(&queue)?;
/// graph.fill(&numbers, 7).add()?;
/// let migrate = NativeCommand::enqueued(|to| {
///     let buffer: cl_mem = to.memory(0).pointer();
///     // SAFETY: the queue and the buffer are alive.
///     unsafe {
///         opencl3::command_queue::enqueue_migrate_mem_object(
///             to.raw(), 1, &buffer, CL_MIGRATE_MEM_OBJECT_HOST, 0, std::ptr::null(),
///         )
///     }
///     .map(|event| drop(opencl3::event::Event::new(event)))
///     .map_err(|error| format!("clEnqueueMigrateMemObjects: {error}"))
/// });
/// // SAFETY: what it enqueues is on the queue that it was given, and touches the buffer that it names.
/// unsafe { graph.native_command(migrate.reads_and_writes(&numbers)).add()? };
/// let result = graph.read(&numbers).add()?;
/// let run = graph.finalize(Finalize::new())?.submit(&queue)?;
/// run.wait()?;
/// assert_eq!(*run.get(&result)?, [7; 64]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "it is in no graph until it is given to one"]
pub struct NativeCommand {
    functions: NativeFn,
    uses: Vec<(Region, Mode)>,
}

impl NativeCommand {
    /// Creates a command whose function enqueues, at each submission.
    pub fn enqueued<R: TaskOutcome>(function: impl FnMut(&NativeQueue<'_>) -> R + Send + 'static) -> Self {
        let mut function = UserOwned::new(function);
        let function = Arc::new(Mutex::new(move |to: &NativeQueue<'_>| function(to).into_outcome()));
        Self { functions: NativeFn { enqueue: Some(function), ..NativeFn::default() }, uses: Vec::new() }
    }

    /// Creates a command whose function records, when its partition of the graph is recorded.
    pub fn recorded<R: TaskOutcome>(function: impl FnMut(&NativeRecording<'_>) -> R + Send + 'static) -> Self {
        Self { functions: NativeFn::default(), uses: Vec::new() }.or_recorded(function)
    }

    /// Adds the recorded form to the command.
    pub fn or_recorded<R: TaskOutcome>(
        mut self,
        function: impl FnMut(&NativeRecording<'_>) -> R + Send + 'static,
    ) -> Self {
        let mut function = UserOwned::new(function);
        let function = move |to: &NativeRecording<'_>| function(to).into_outcome();
        self.functions.record = Some(Arc::new(Mutex::new(function)));
        self
    }

    /// Declares that the command reads memory: a buffer, a part of a buffer, an image, USM or SVM, or memory that the
    /// graph owns.
    pub fn reads<T>(self, memory: &impl UsedMemory<T>) -> Self {
        self.uses(memory.used(), Mode::Read)
    }

    /// Declares that the command writes memory without reading its old content.
    pub fn writes<T>(self, memory: &impl UsedMemory<T>) -> Self {
        self.uses(memory.used(), Mode::Write)
    }

    /// Declares that the command reads and writes memory.
    pub fn reads_and_writes<T>(self, memory: &impl UsedMemory<T>) -> Self {
        self.uses(memory.used(), Mode::ReadWrite)
    }

    pub(crate) fn uses(mut self, region: Region, mode: Mode) -> Self {
        self.uses.push((region, mode));
        self
    }
}

impl Graph {
    /// Starts a native command. [`NativeCommand`] has the description and an example.
    pub fn native_command(&self, command: NativeCommand) -> NativeCommandNode<'_> {
        NativeCommandNode { graph: self, after: After::default(), command }
    }
}

/// A native command to be added. See [`NativeCommand`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct NativeCommandNode<'g> {
    graph: &'g Graph,
    after: After,
    command: NativeCommand,
}

impl NativeCommandNode<'_> {
    after_methods!();

    /// Adds the node.
    ///
    /// # Errors
    /// Those of [`EmptyNode::add`](crate::graph::EmptyNode::add).
    ///
    /// # Safety
    /// The commands that the functions enqueue or record, for as long as the graph or an executable of it may call the
    /// functions:
    /// - go to the given queue or command buffer, or are complete before anything begins that is enqueued there next.
    ///   The functions leave both as they found them, neither released nor finalized, and use no handle that they were
    ///   given after they return;
    /// - touch no memory except the memory that the node declares, in the declared way, and memory of the functions'
    ///   own that several of these commands may use at the same time: executables of one graph share its functions, and
    ///   so do clones of a command;
    /// - use nothing that is released before the functions are dropped, or else before the commands are complete. Most
    ///   drivers keep the objects of an enqueued command alive, but not those of a recorded command.
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn add(self) -> Result<Node> {
        Ok(self.graph.insert(self.command, &self.after)?)
    }

    /// Replaces a native command that has the same number of memory uses, in the same modes, and the same forms, by
    /// this one. Edges stay, and executables get the change when they are updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and those of [`CopyNode::replace`](crate::graph::CopyNode::replace). After an error
    /// nothing has changed.
    ///
    /// # Safety
    /// As [`add`](Self::add).
    #[allow(unsafe_code)] // As above.
    pub unsafe fn replace(self, node: Node) -> Result<()> {
        self.graph.replace(node, self.command, &self.after)
    }
}

/// The queue that the function of a [`NativeCommand`] enqueues on.
#[derive(Debug)]
pub struct NativeQueue<'a> {
    queue: &'a DriverQueue,
    memory: DeclaredMemory<'a>,
}

impl<'a> NativeQueue<'a> {
    pub(crate) fn new(queue: &'a DriverQueue, tables: &'a Tables, node: NodeId) -> Self {
        Self { queue, memory: DeclaredMemory { tables, node } }
    }

    /// Returns the `cl_command_queue`, which is in order.
    ///
    /// Commands that are enqueued there run after the commands that the node waits for, and before the commands that
    /// wait for the node. The queue may differ from the queue of the submission.
    #[must_use]
    pub fn raw(&self) -> *mut c_void {
        self.queue.raw()
    }

    /// Returns the same queue for `opencl3`, with a reference of its own.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses to retain it.
    pub fn to_opencl3(&self) -> Result<opencl3::command_queue::CommandQueue> {
        self.queue.to_opencl3()
    }

    /// Returns memory that the node declares, by its index from 0 in the order of the declarations.
    #[must_use]
    pub fn memory(&self, index: usize) -> NativeMemory<'a> {
        self.memory.at(index)
    }
}

impl OnDevice for NativeQueue<'_> {
    fn device(&self) -> &Device {
        self.queue.device()
    }
}

impl InContext for NativeQueue<'_> {
    fn context(&self) -> &Context {
        self.queue.context()
    }
}

/// The command buffer that the function of a [`NativeCommand`] records into.
///
/// The command buffer is for an in-order queue: each of its commands waits for the one before, so the function needs no
/// sync points. The functions that record are those of the device's platform
/// (`clGetExtensionFunctionAddressForPlatform`). They take their arguments as [`abi`](Self::abi) says, and a null
/// queue.
#[derive(Debug)]
pub struct NativeRecording<'a> {
    buffer: *mut c_void,
    abi: RecordAbi,
    queue: &'a DriverQueue,
    memory: DeclaredMemory<'a>,
}

impl<'a> NativeRecording<'a> {
    pub(crate) fn new(
        buffer: *mut c_void,
        abi: RecordAbi,
        queue: &'a DriverQueue,
        tables: &'a Tables,
        node: NodeId,
    ) -> Self {
        Self { buffer, abi, queue, memory: DeclaredMemory { tables, node } }
    }

    /// Returns the `cl_command_buffer_khr`, which takes commands until the function returns.
    #[must_use]
    pub fn raw(&self) -> *mut c_void {
        self.buffer
    }

    /// Returns how the driver's functions take their arguments.
    #[must_use]
    pub fn abi(&self) -> RecordAbi {
        self.abi
    }

    /// Returns memory that the node declares, by its index from 0 in the order of the declarations.
    #[must_use]
    pub fn memory(&self, index: usize) -> NativeMemory<'a> {
        self.memory.at(index)
    }
}

impl OnDevice for NativeRecording<'_> {
    fn device(&self) -> &Device {
        self.queue.device()
    }
}

impl InContext for NativeRecording<'_> {
    fn context(&self) -> &Context {
        self.queue.context()
    }
}

/// The memory that a node declares, as it is now.
#[derive(Clone, Copy, Debug)]
struct DeclaredMemory<'a> {
    tables: &'a Tables,
    node: NodeId,
}

impl<'a> DeclaredMemory<'a> {
    fn at(self, index: usize) -> NativeMemory<'a> {
        let access = self.tables.ir.accesses(self.node).get(index);
        let found = access.and_then(|access| Some((self.tables.mem(access.view)?, access)));
        found.map_or(NativeMemory::NONE, |(mem, access)| {
            let start = access.range.start - self.tables.ir.views[access.view.index()].offset;
            let (pointer, offset, is_object) = mem.native(start);
            NativeMemory { pointer, offset, is_object, size: access.range.len(), of: PhantomData }
        })
    }
}

/// Memory of a [`NativeCommand`], as OpenCL handles.
///
/// The handle must be used before the function returns. The memory stays alive as long as the enqueued or recorded
/// commands may run.
#[derive(Clone, Copy, Debug)]
pub struct NativeMemory<'a> {
    pointer: *mut c_void,
    offset: usize,
    is_object: bool,
    size: usize,
    of: PhantomData<&'a ()>,
}

impl NativeMemory<'_> {
    const NONE: Self = Self { pointer: std::ptr::null_mut(), offset: 0, is_object: false, size: 0, of: PhantomData };

    /// Returns the `cl_mem` of a buffer or an image, or the address of the first used byte of USM and SVM. Returns null
    /// for an index after the last memory of the node.
    #[must_use]
    pub fn pointer(&self) -> *mut c_void {
        self.pointer
    }

    /// Returns the first byte that is used, counted from the start of the `cl_mem`; 0 for USM and SVM.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the number of bytes that are used.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns whether the memory is a `cl_mem`, and not an address.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.is_object
    }
}

type Enqueue = dyn FnMut(&NativeQueue<'_>) -> Result<(), String> + Send;
type Record = dyn FnMut(&NativeRecording<'_>) -> Result<(), String> + Send;

/// The functions of a native command, at least one of the two. Clones share the functions.
#[derive(Clone, Default)]
pub(crate) struct NativeFn {
    /// One of the two is called at a time: they may share data of the program (rule F2).
    calls: Arc<Mutex<()>>,
    enqueue: Option<Arc<Mutex<Enqueue>>>,
    record: Option<Arc<Mutex<Record>>>,
}

impl NativeFn {
    /// Whether both have the same functions.
    pub(crate) fn is(&self, other: &Self) -> bool {
        fn same<F: ?Sized>(a: Option<&Arc<F>>, b: Option<&Arc<F>>) -> bool {
            a.map(|a| Arc::as_ptr(a).cast::<()>()) == b.map(|b| Arc::as_ptr(b).cast::<()>())
        }
        same(self.enqueue.as_ref(), other.enqueue.as_ref()) && same(self.record.as_ref(), other.record.as_ref())
    }

    fn form(&self) -> Form {
        match (&self.enqueue, &self.record) {
            (_, None) => Form::Enqueued,
            (None, _) => Form::Recorded,
            _ => Form::Either,
        }
    }

    /// Calls the function that enqueues. An error is returned as its text.
    pub(crate) fn enqueue(&self, to: &NativeQueue<'_>) -> Result<(), String> {
        let Some(function) = &self.enqueue else {
            return Err("it can only be recorded, but the driver made no command buffer for this queue".to_owned());
        };
        let _one_at_a_time = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let mut function = function.lock().unwrap_or_else(PoisonError::into_inner);
        outcome_of(|| (function)(to))
    }

    /// Calls the function that records. An error is returned as its text.
    pub(crate) fn record(&self, to: &NativeRecording<'_>) -> Result<(), String> {
        let Some(function) = &self.record else { return Err("it has no function that records".to_owned()) };
        let _one_at_a_time = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let mut function = function.lock().unwrap_or_else(PoisonError::into_inner);
        outcome_of(|| (function)(to))
    }
}

impl fmt::Debug for NativeFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NativeFn({:?})", self.form())
    }
}

impl Request for NativeCommand {
    type Checked = ();

    fn subject(&self) -> String {
        "native command".to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        self.uses.iter().try_for_each(|(region, _)| target.check_context(region, "memory that a native command uses"))
    }

    fn lower(self, checked: Self::Checked, to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        self.command(checked).lower(to, accesses)
    }
}

impl CommandRequest for NativeCommand {
    fn command(self, (): ()) -> Requested {
        let form = self.functions.form();
        Requested::new(Command::Native { functions: self.functions, form }, self.uses)
    }
}
