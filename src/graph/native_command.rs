//! Native commands: what clgraph has no node for, enqueued or recorded by a function of the user's.

use std::ffi::c_void;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use super::host_task::{TaskOutcome, UsedMemory, outcome_of};
use super::request::{Request, Target};
use super::tables::{Tables, Writer};
use super::{After, Graph, Node, after_methods};
use crate::caps::RecordAbi;
use crate::cl::buffer::Region;
use crate::cl::context::{Context, InContext, OnDevice};
use crate::cl::device::Device;
use crate::cl::queue::DriverQueue;
use crate::cl::user_code::Given;
use crate::error::{BuildCause, Result};
use crate::ir::{Access, Form, Mode, NativeId, NodeId, Op};

/// Commands that clgraph has no node for: those of a vendor's extension, or of a library that enqueues by itself.
///
/// It has one of two forms, or both. One [enqueues](Self::enqueued): its function is called at each submission, with an in-order
/// queue, outside command buffers. The other [records](Self::recorded): its function is called when its part of the graph is
/// recorded, with a command buffer: at finalize, and whenever that part is recorded again. A command with both is recorded
/// where its part of the graph is, and enqueued elsewhere; one that can only be recorded is so whatever path was asked for, and
/// cannot be finalized for a device without command buffers.
///
/// Say which memory it uses, so that nodes that use the same wait for each other, and keep by that what is used: the functions
/// find it again under its number ([`NativeQueue::memory`]), with the graph's own memory in its place.
///
/// It goes into a graph by [`Graph::native_command`] or [`Queue::enqueue_native_command`](crate::Queue::enqueue_native_command).
/// The functions are called while clgraph submits, finalizes or updates, under its locks: they enqueue or record, and return.
/// They must not wait for commands, nor for threads that may submit; and of clgraph they may use what they are given, and no graph,
/// executable or submission: what submits, updates or finalizes an executable, waits for a submission, or
/// completes a user event is refused ([`SubmitError::InsideNativeCommand`](crate::SubmitError::InsideNativeCommand)); what else waits, for
/// an event or a queue, may wait for ever, and so does a question to the graph that is being updated. An error that one returns, or a panic, fails the call with its text. A function that records may be called several
/// times for one executable: where a driver refuses another command, and for queues with other properties.
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
    /// One whose function enqueues, at each submission.
    pub fn enqueued<R: TaskOutcome>(function: impl FnMut(&NativeQueue<'_>) -> R + Send + 'static) -> Self {
        let mut function = Given::new(function);
        let function = Arc::new(Mutex::new(move |to: &NativeQueue<'_>| function(to).into_outcome()));
        Self { functions: NativeFn { enqueue: Some(function), record: None }, uses: Vec::new() }
    }

    /// One whose function records, when its part of the graph is recorded.
    pub fn recorded<R: TaskOutcome>(function: impl FnMut(&NativeRecording<'_>) -> R + Send + 'static) -> Self {
        Self { functions: NativeFn::default(), uses: Vec::new() }.or_recorded(function)
    }

    /// Gives it the other form too.
    pub fn or_recorded<R: TaskOutcome>(
        mut self,
        function: impl FnMut(&NativeRecording<'_>) -> R + Send + 'static,
    ) -> Self {
        let mut function = Given::new(function);
        let function = move |to: &NativeRecording<'_>| function(to).into_outcome();
        self.functions.record = Some(Arc::new(Mutex::new(function)));
        self
    }

    /// Says that it reads memory: a buffer, a part of one, an image, USM or SVM, or memory of the graph's own.
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

    fn uses(mut self, region: Region, mode: Mode) -> Self {
        self.uses.push((region, mode));
        self
    }
}

impl Graph {
    /// Starts a native command: see [`NativeCommand`] for what it is, and an example.
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
    /// Those of [`EmptyNode::add`](super::EmptyNode::add).
    ///
    /// # Safety
    /// The commands that its functions enqueue or record, for as long as the graph or an executable of it may call them:
    /// - go to the queue or command buffer given, or are over before anything begins that is enqueued there next. The functions leave
    ///   both as they found them, neither released nor finalized, and use no handle that they were given after they return;
    /// - touch no memory but what the node says that it uses, in the way it says, and memory of the functions' own that may be used by
    ///   several of these commands at a time: executables of one graph share its functions, and so do clones of a command;
    /// - use nothing that is released before the functions are, or else before the commands are complete. Most drivers keep what an
    ///   enqueued command uses, and not what a recorded one does.
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn add(self) -> Result<Node> {
        Ok(self.graph.insert(self.command, &self.after)?)
    }

    /// Puts the command in the place of another one that uses as much memory in the same way, and has the same forms. Edges stay,
    /// and executables follow when they are updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and those of [`CopyNode::replace`](super::CopyNode::replace): nothing changed.
    ///
    /// # Safety
    /// That of [`add`](Self::add).
    #[allow(unsafe_code)] // As above.
    pub unsafe fn replace(self, node: Node) -> Result<()> {
        self.graph.replace(node, self.command, &self.after)
    }
}

/// Where the function of a [`NativeCommand`] enqueues.
#[derive(Debug)]
pub struct NativeQueue<'a> {
    queue: &'a DriverQueue,
    memory: Uses<'a>,
}

impl<'a> NativeQueue<'a> {
    pub(crate) fn new(queue: &'a DriverQueue, tables: &'a Tables, node: NodeId) -> Self {
        Self { queue, memory: Uses { tables, node } }
    }

    /// The `cl_command_queue`, which is in order: what is enqueued there comes behind what the node waits for, and before what waits
    /// for the node. It may be another one than that of the submission.
    #[must_use]
    pub fn raw(&self) -> *mut c_void {
        self.queue.raw()
    }

    /// The same queue for `opencl3`, with a reference of its own.
    ///
    /// # Errors
    /// [`crate::DriverError`] when the driver refuses to retain it.
    pub fn to_opencl3(&self) -> Result<opencl3::command_queue::CommandQueue> {
        self.queue.to_opencl3()
    }

    /// The memory that the node says it uses, from 0 in the order of saying it.
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

/// Where the function of a [`NativeCommand`] records.
///
/// The command buffer is for an in-order queue: each of its commands waits for the one before, so there are no sync points to wait
/// for, and none to give. Functions that record are those of the device's platform (`clGetExtensionFunctionAddressForPlatform`); they
/// take their arguments as [`abi`](Self::abi) says, and a null queue.
#[derive(Debug)]
pub struct NativeRecording<'a> {
    buffer: *mut c_void,
    abi: RecordAbi,
    queue: &'a DriverQueue,
    memory: Uses<'a>,
}

impl<'a> NativeRecording<'a> {
    pub(crate) fn new(
        buffer: *mut c_void,
        abi: RecordAbi,
        queue: &'a DriverQueue,
        tables: &'a Tables,
        node: NodeId,
    ) -> Self {
        Self { buffer, abi, queue, memory: Uses { tables, node } }
    }

    /// The `cl_command_buffer_khr`, which takes commands until the function returns.
    #[must_use]
    pub fn raw(&self) -> *mut c_void {
        self.buffer
    }

    /// How the driver's functions take their arguments.
    #[must_use]
    pub fn abi(&self) -> RecordAbi {
        self.abi
    }

    /// The memory that the node says it uses, from 0 in the order of saying it.
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

/// What a node says that it uses, as it is now.
#[derive(Clone, Copy, Debug)]
struct Uses<'a> {
    tables: &'a Tables,
    node: NodeId,
}

impl<'a> Uses<'a> {
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

/// Memory of a [`NativeCommand`], as OpenCL knows it. The handle is to be used before the function returns; the memory
/// stays as long as what was enqueued or recorded may run.
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

    /// The `cl_mem` of a buffer or an image; the address of USM and SVM, from which on the memory is used. Null behind the last one that
    /// the node uses.
    #[must_use]
    pub fn pointer(&self) -> *mut c_void {
        self.pointer
    }

    /// The first byte that is used, counted from the start of the `cl_mem`; 0 for USM and SVM.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes that are used.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether it is a `cl_mem`, and no address.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.is_object
    }
}

type Enqueue = dyn FnMut(&NativeQueue<'_>) -> Result<(), String> + Send;
type Record = dyn FnMut(&NativeRecording<'_>) -> Result<(), String> + Send;

/// The functions of a native command, at least one of the two. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct NativeFn {
    enqueue: Option<Arc<Mutex<Enqueue>>>,
    record: Option<Arc<Mutex<Record>>>,
}

impl NativeFn {
    /// Whether they are the same.
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

    /// Has it enqueue. An error is its text.
    pub(crate) fn enqueue(&self, to: &NativeQueue<'_>) -> Result<(), String> {
        let Some(function) = &self.enqueue else {
            return Err("it can only be recorded, and the driver has made no command buffer for this queue".to_owned());
        };
        let mut function = function.lock().unwrap_or_else(PoisonError::into_inner);
        outcome_of(|| (function)(to))
    }

    /// Has it record. An error is its text.
    pub(crate) fn record(&self, to: &NativeRecording<'_>) -> Result<(), String> {
        let Some(function) = &self.record else { return Err("it cannot be recorded".to_owned()) };
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

    fn lower(self, (): (), state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        accesses.extend(self.uses.iter().map(|(region, mode)| state.access(region, *mode)));
        state.native(self.functions)
    }
}

impl Writer<'_> {
    /// Takes the functions of a native command.
    pub(super) fn native(&mut self, functions: NativeFn) -> Option<Op> {
        let (command, form) = (NativeId(self.ir.natives), functions.form());
        self.ir.natives = command.0.checked_add(1)?;
        self.natives.push(functions);
        Some(Op::Native { command, form })
    }
}
