//! Captures: what a library enqueues on the C handle of a queue becomes nodes of a graph. clgraph's layer sees the calls.

use crate::cl::commands::capture::{
    self, Captured as Command, CapturedBuffer, CapturedLaunch, CapturedValue, Fault, What,
};
use crate::cl::memory::region::Region;
use crate::cl::objects::kernel_params::Space;
use crate::command::Arg;
use crate::error::{BuildCause, BuildError, ErrorKind, RecordError, Result};
use crate::graph::nodes::fill::Fill;
use crate::graph::nodes::launch::Launch;
use crate::graph::nodes::request::{Request, Target};
use crate::graph::nodes::transfer::{Copy, Empty};
use crate::graph::recorder::Order;
use crate::graph::{Extent, Graph, NativeCommand, State};
use crate::handles::Node;
use crate::ir::Mode;
use crate::record::queue::Queue;

/// What waits do while a queue is captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CaptureMode {
    /// A call that waits fails, and spoils the capture.
    #[default]
    Strict,
    /// `clFinish`, and waits for events of captured commands, do not wait for captured commands, of which nothing has run. It is
    /// for libraries that wait between their commands without a need.
    Relaxed,
}

/// What was captured.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Captured<T> {
    /// What the function has returned.
    pub value: T,
    /// The nodes, one for each command, in the order of the calls.
    pub nodes: Vec<Node>,
}

impl Graph {
    /// Runs `code` while a queue is captured: what any code enqueues on the C handle of the queue becomes nodes of this
    /// graph, and does not run. So the calls of a library that was never written for graphs become part of one.
    ///
    /// The calls are seen by clgraph's layer: start the program with `OPENCL_LAYERS=libclgraph_layer.so`, and with
    /// `CLGRAPH_LAYER=always` where the driver has command buffers of its own. `docs/layer.md` says which calls can be
    /// captured, and what spoils a capture. Warm a library up before: its first call compiles, and often waits.
    ///
    /// Kernels, copies and fills of buffers become nodes as if they were recorded ([`record`](Self::record)); other
    /// commands, and kernels that are given addresses (SVM, USM), become [native commands](NativeCommand). They run in the order of the queue, or, if it is out of order, of
    /// the events and barriers, and come after what the queue has recorded into the graph before. Other nodes that use the same
    /// buffers and images wait for them, and they for those: a kernel reads and writes each memory object that it is given, unless
    /// its parameter or the object's flags allow less. **Memory with an address (SVM and USM) is not tracked**: give an edge to
    /// nodes that use it ([`add_edge`](Self::add_edge)). [`set_arg`](Self::set_arg) and [`replace`](crate::KernelNode::replace)
    /// change a captured kernel.
    ///
    /// If the capture fails, the queue executes again, and the graph has not changed, but for one that is full
    /// ([`BuildCause::Full`]). The commands are strict about waits:
    /// see [`capture_with`](Self::capture_with).
    ///
    /// # Errors
    /// - [`RecordError::NoLayer`], [`RecordError::AlreadyCaptured`];
    /// - [`RecordError::CaptureSpoilt`] if a call cannot be captured, whatever `code` returns; the error that `code` returns;
    /// - [`RecordError::NotCapturable`] for a command that cannot be a node;
    /// - [`RecordError::AlreadyRecording`], [`RecordError::OtherQueue`]; those of [`KernelNode::add`](crate::KernelNode::add),
    ///   in a [`BuildError`].
    ///
    /// # Safety
    /// As long as the graph or an executable of it lives:
    /// - the kernels do what is allowed at their nodes: the promise of [`KernelNode::add`](crate::KernelNode::add), for
    ///   the arguments that they were given. A kernel reaches no memory but that of its arguments and of its program;
    /// - the host memory that captured reads write to, and that buffers were made of (`CL_MEM_USE_HOST_PTR`), is there, and
    ///   nothing else uses it while a submission runs;
    /// - nothing builds the programs of the kernels again.
    ///
    /// Until the capture has ended, no other thread uses the queue, and `code` gives no commands to it by clgraph: they would be
    /// captured, too, and what waits for them would find nothing done.
    ///
    /// ```no_run
    /// # fn library(_: *mut std::ffi::c_void) {}
    /// # fn main() -> clgraph::Result<()> {
    /// use clgraph::{Finalize, Graph, Queue};
    /// let queue = Queue::new(&clgraph::best_device()?)?;
    /// let graph = Graph::new(&queue)?;
    /// // SAFETY: the library's kernels stay in their memory, which outlives the graph.
    /// let captured = unsafe { graph.capture(&queue, || Ok(library(queue.raw()))) }?;
    /// println!("{} commands", captured.nodes.len());
    /// graph.finalize(Finalize::new())?.submit(&queue)?.wait()?;
    /// # Ok(()) }
    /// ```
    #[doc(alias("cudaStreamBeginCapture", "clBeginCaptureCLG"))]
    #[allow(unsafe_code)] // A declaration: the promise itself. Nothing unsafe is done here.
    pub unsafe fn capture<T>(&self, queue: &Queue, code: impl FnOnce() -> Result<T>) -> Result<Captured<T>> {
        self.captured(queue, CaptureMode::Strict, code)
    }

    /// As [`capture`](Self::capture), and says what waits do meanwhile.
    ///
    /// # Errors
    /// Those of [`capture`](Self::capture).
    ///
    /// # Safety
    /// As for [`capture`](Self::capture). In a relaxed capture `code` must not rely on what a wait is for: nothing has run.
    #[allow(unsafe_code)] // As above.
    pub unsafe fn capture_with<T>(
        &self,
        queue: &Queue,
        mode: CaptureMode,
        code: impl FnOnce() -> Result<T>,
    ) -> Result<Captured<T>> {
        self.captured(queue, mode, code)
    }

    fn captured<T>(&self, queue: &Queue, mode: CaptureMode, code: impl FnOnce() -> Result<T>) -> Result<Captured<T>> {
        self.begin_capture(queue, mode)?;
        let running = Running(queue);
        let outcome = code();
        std::mem::forget(running);
        let captured = capture::end(queue.driver());
        // A library tells of the spoilt capture in its own way.
        if let Err(crate::Error::Record(RecordError::CaptureSpoilt { .. })) = &captured {
            captured.as_ref().map_err(Clone::clone)?;
        }
        let value = outcome?;
        let nodes = self.take(queue, &captured?)?;
        Ok(Captured { value, nodes })
    }

    /// Begins a capture, which [`end_capture`](Self::end_capture) ends: the form of [`capture`](Self::capture) for programs
    /// in which no one function has all of the calls. A capture that is not ended keeps its queue.
    ///
    /// # Errors
    /// [`RecordError::NoLayer`], [`RecordError::AlreadyCaptured`]; [`RecordError::AlreadyRecording`],
    /// [`RecordError::OtherQueue`].
    pub fn begin_capture(&self, queue: &Queue, mode: CaptureMode) -> Result<()> {
        self.check_recordable(queue)?;
        capture::begin(queue.driver(), mode == CaptureMode::Relaxed)
    }

    /// Ends a capture of a queue, adds its commands to this graph, and returns their nodes. It may be another graph of the same
    /// device than that of [`begin_capture`](Self::begin_capture).
    ///
    /// # Errors
    /// [`RecordError::NotCaptured`] if there is no capture; those of [`capture`](Self::capture). Whatever fails, the capture
    /// has ended and the graph has not changed.
    ///
    /// # Safety
    /// As for [`capture`](Self::capture).
    #[allow(unsafe_code)] // As above.
    pub unsafe fn end_capture(&self, queue: &Queue) -> Result<Vec<Node>> {
        let captured = capture::end(queue.driver())?;
        self.check_recordable(queue)?;
        self.take(queue, &captured)
    }

    /// Adds captured commands, for which the program has given the promise of [`capture`](Self::capture): all of them, or none unless
    /// the graph is full.
    fn take(&self, queue: &Queue, captured: &CapturedBuffer) -> Result<Vec<Node>> {
        let commands = captured.commands(queue.driver())?;
        let mut requests = Vec::with_capacity(commands.len());
        for (place, command) in commands.into_iter().enumerate() {
            let Command { name, after, has_list, what } = command;
            let what = match what {
                Ok(what) => what,
                // What the driver lacks for the moment is no fault of the command.
                Err(Fault::Object(error)) if matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::Driver) => {
                    return Err(error);
                }
                Err(fault) => {
                    return Err(RecordError::NotCapturable { place, what: name, why: fault.to_string() }.into());
                }
            };
            let request = CapturedRequest::of(captured, place as u32, what);
            request
                .check(&self.target())
                .map_err(|cause| BuildError::new(format!("command {place} of a capture"), cause))?;
            // In order, the queue says what comes before; so do a barrier and a marker without a list: all that is there.
            let is_all = matches!(request, CapturedRequest::Order(order) if order != Order::Plain && !has_list);
            let after = if is_all || !queue.properties().out_of_order { Vec::new() } else { after };
            requests.push((request, after));
        }
        let mut nodes: Vec<Node> = Vec::with_capacity(requests.len());
        // Of all that can go wrong only a full table is left, which keeps the nodes that it had room for.
        // What is left of it after an error is dropped when the graph is not locked any more.
        let mut requests = requests.into_iter();
        let mut state = self.lock();
        for (request, after) in requests.by_ref() {
            let after: Vec<Node> = after.iter().filter_map(|place| nodes.get(*place as usize).copied()).collect();
            nodes.push(request.record(self, &mut state, queue, &after)?);
        }
        drop(state);
        Ok(nodes)
    }
}

impl Queue {
    /// Returns how many commands were captured since the capture of the queue began ([`Graph::begin_capture`]), or `None` if the
    /// queue is not captured.
    ///
    /// # Errors
    /// [`crate::DriverError`].
    pub fn captured(&self) -> Result<Option<usize>> {
        Ok(capture::count(self.driver())?)
    }

    /// Ends a capture of the queue, and drops what was captured.
    ///
    /// # Errors
    /// [`RecordError::NotCaptured`], [`RecordError::NoLayer`]; [`RecordError::CaptureSpoilt`] if a call has spoilt it. Whatever
    /// fails, the queue executes again.
    pub fn drop_capture(&self) -> Result<()> {
        capture::end(self.driver()).map(drop)
    }
}

/// A capture that goes on. It ends when a panic leaves the function that enqueues.
struct Running<'q>(&'q Queue);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // What was captured is dropped.
        let _ = capture::end(self.0.driver());
    }
}

/// A captured command as a request.
enum CapturedRequest {
    Order(Order),
    Launch(Box<Launch>),
    Copy(Copy),
    Fill(Fill),
    Native(NativeCommand),
}

impl CapturedRequest {
    fn of(captured: &CapturedBuffer, place: u32, what: What) -> Self {
        match what {
            What::Barrier => Self::Order(Order::Barrier),
            What::Marker => Self::Order(Order::Marker),
            What::Nothing => Self::Order(Order::Plain),
            What::Launch(of) => Self::Launch(Box::new(launch(of))),
            What::Copy { src, dst } => Self::Copy(Copy { src, dst }),
            What::Fill { dst, pattern } => Self::Fill(Fill { dst, pattern }),
            What::Other(uses) => Self::Native(native(captured.clone(), place, uses)),
        }
    }

    fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        match self {
            Self::Order(_) => Ok(()),
            Self::Launch(launch) => launch.check(target).map(drop),
            Self::Copy(copy) => copy.check(target).map(drop),
            Self::Fill(fill) => fill.check(target).map(drop),
            Self::Native(native) => native.check(target),
        }
    }

    fn record(self, graph: &Graph, state: &mut State, queue: &Queue, after: &[Node]) -> Result<Node, BuildError> {
        let of = &*queue.0;
        match self {
            Self::Order(order) => graph.record_node(state, of, order, Empty, after),
            Self::Launch(launch) => graph.record_node(state, of, Order::Plain, *launch, after),
            Self::Copy(copy) => graph.record_node(state, of, Order::Plain, copy, after),
            Self::Fill(fill) => graph.record_node(state, of, Order::Plain, fill, after),
            Self::Native(native) => graph.record_node(state, of, Order::Plain, native, after),
        }
    }
}

fn launch(of: CapturedLaunch) -> Launch {
    let CapturedLaunch { kernel, arguments, dimensions, offset, global, local } = of;
    let mut launch = Launch::new(&kernel);
    for (index, argument) in arguments.into_iter().enumerate() {
        match argument {
            CapturedValue::Bytes(bytes) => launch.value(&bytes),
            CapturedValue::Memory(region) => launch.region(region, None),
            CapturedValue::Sampler(sampler) => launch.args.push(Arg::Sampler(sampler)),
            CapturedValue::Nothing(bytes) => {
                let param = kernel.params().and_then(|params| params.get(index));
                // A driver gets the same call for both.
                if param.is_none_or(|param| param.space == Space::Local) {
                    launch.args.push(Arg::Local(bytes));
                } else {
                    launch.null(None);
                }
            }
        }
    }
    let extent = |sizes: &[usize; 3]| Extent::of(&sizes[..dimensions.min(3)]);
    launch.range = Some(extent(&global));
    launch.offset = (offset != [0; 3]).then(|| extent(&offset));
    launch.work_group = (local != [0; 3]).then(|| extent(&local));
    launch
}

/// A command that the layer enqueues.
fn native(captured: CapturedBuffer, place: u32, uses: Vec<(Region, bool)>) -> NativeCommand {
    let command = NativeCommand::enqueued(move |to| captured.enqueue(place, to.raw()));
    // Some part of what is written may stay as it is.
    uses.into_iter().fold(command, |command, (region, writes)| {
        command.uses(region, if writes { Mode::ReadWrite } else { Mode::Read })
    })
}
