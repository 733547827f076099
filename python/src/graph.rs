//! Graphs and their nodes.

use std::sync::Mutex;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::adding::options;
use crate::arguments;
use crate::capture::Capture;
use crate::control::{self, Branch, Loop};
use crate::device::Device;
use crate::errors::wrong_type;
use crate::executable::{self, Executable};
use crate::gate::{Own, call, check};
use crate::group::CommandGroup;
use crate::held::Holder;
use crate::interop::{self, Kind};
use crate::launch::{self, Given, Launch};
use crate::memory::{self, Cache, Memory};
use crate::node::{self, Node, Read, SubGraph, Write};
use crate::queue::{Pause, Queue};
use crate::report;
use crate::task;
use crate::transfer::{self, With};

/// A graph of commands: built once, finalized, and submitted many times.
///
/// `Graph(queue)` is for the context and the device of a pyopencl.CommandQueue or a clgraph.Queue; `Graph(context,
/// device)` is for a pyopencl.Context and one of its devices. Each method adds a node. Nodes that use the same memory
/// get edges by themselves; `after=` and `add_edge` add others: a node, a list of nodes, or `after="leaves"`, every node
/// that no other node waits for yet. A call that raises an exception adds nothing.
///
/// Copies, fills, writes and reads take `replaces=node`: then no node is added, but that node gets the command in place of
/// its own. Edges and label stay, and executables get the change when they are updated (`Executable.update`).
///
/// As a context manager with a clgraph.Queue, the graph records: what the queue is asked to do inside the block becomes
/// nodes, and does not run. Recorded nodes keep the order of the queue; nodes that methods of the graph add inside the
/// block are ordered by their memory and `after`, as ever. The recording ends with the block, also by an exception; nodes
/// that were recorded until then stay. With a pyopencl.CommandQueue the block only groups what belongs to the graph.
#[pyclass(frozen, module = "clgraph", weakref)]
pub(crate) struct Graph {
    pub(crate) graph: Own<rust::Graph>,
    pub(crate) cache: Own<Mutex<Cache>>,
    pub(crate) held: Py<Holder>,
    pub(crate) queue: Option<Own<rust::Queue>>,
    /// For a queue of clgraph: it records inside a block.
    pub(crate) pause: Option<Pause>,
}

#[pymethods]
impl Graph {
    #[new]
    #[pyo3(signature = (queue, device=None))]
    pub(crate) fn new(py: Python<'_>, queue: &Bound<'_, PyAny>, device: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        check()?;
        let (graph, queue, pause) = match device {
            Some(device) => {
                let (context, device) = (interop::context(queue)?, crate::device::find(device)?);
                let properties = rust::GraphProperties::new();
                (call(py, || rust::Graph::with_properties(&context, &device, properties))?, None, None)
            }
            None if interop::kind(queue) == Some(Kind::Context) => {
                return Err(wrong_type("a graph of a context also takes a device: Graph(context, device)"));
            }
            None => {
                let pause = queue.cast::<Queue>().ok().map(|queue| queue.get().pause());
                let queue = Queue::find(queue)?;
                (call(py, || rust::Graph::new(&queue))?, Some(Own::new(queue)), pause)
            }
        };
        Ok(Self { graph: Own::new(graph), cache: Own::new(Mutex::default()), held: Holder::new(py)?, queue, pause })
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let graph = slf.get();
        if let (Some(_), Some(queue)) = (&graph.pause, &graph.queue) {
            call(slf.py(), || graph.graph.begin_recording(&**queue))?;
            graph.held.get().recording_begins(queue);
        } else {
            check()?;
        }
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        check()?;
        if self.pause.is_some() {
            py.detach(|| self.graph.end_all_recording());
            self.held.get().recording_ends(py);
        }
        Ok(())
    }

    /// Adds a launch of a kernel, and returns its node.
    ///
    /// `kernel` is a pyopencl.Kernel; arguments that were set on it are not used. `global_size` is the number of
    /// work-items: a number, or a tuple of one to three, with the first dimension of `get_global_id` first. `local_size`
    /// is the size of a work-group (None: the driver chooses), and `offset` where global ids start. `up_to` is the
    /// largest range that `set_range` may set. `prints` says that the kernel calls `printf`. `globals` says which device
    /// globals of its program the kernel uses, as for arguments: `globals=[In(x), InOut(y)]`, or `()` for none; without
    /// it the kernel counts as reading and writing all of them. `elementwise={0: 4}` promises that each work-item touches
    /// of the memory of argument 0 only its own 4 bytes: the one with `get_global_linear_id() == i` those from `4 * i` on.
    /// Submissions check that if the environment variable CLGRAPH_CHECK_ELEMENTWISE is `1` when the graph is finalized.
    ///
    /// An argument is `In(x)`, `Out(x)` or `InOut(x)` for memory and images; a numpy scalar, a record or bytes for a
    /// value; a `Param`; `Local(bytes)` or a pyopencl.LocalMemory; a pyopencl.Sampler; None for a null pointer. A plain
    /// Python number is converted if the program was built with `-cl-kernel-arg-info`, and refused otherwise.
    ///
    /// The program promises what OpenCL leaves to it: the kernel stays inside its memory and uses it as declared. The
    /// length of `x` is not known to the kernel.
    #[pyo3(signature = (kernel, global_size, *args, local_size=None, offset=None, up_to=None, prints=false, globals=None,
                        elementwise=None, label=None, after=None))]
    fn kernel(
        &self,
        kernel: &Bound<'_, PyAny>,
        global_size: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        local_size: Option<&Bound<'_, PyAny>>,
        offset: Option<&Bound<'_, PyAny>>,
        up_to: Option<&Bound<'_, PyAny>>,
        prints: bool,
        globals: Option<&Bound<'_, PyAny>>,
        elementwise: Option<&Bound<'_, PyAny>>,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Node> {
        let (global, local) = (global_size, local_size);
        let given = Given { kernel, global, args, local, offset, up_to, prints, globals, elementwise };
        let launch = Launch::read(&given, self.scope())?;
        let node = options!(launch.node(&self.graph), label, node::after(after)?);
        // SAFETY: **kernel**: the program promises it, as with pyopencl.
        let node = self.add(kernel.py(), || unsafe { node.add() })?;
        self.note(|cache| launch.note(cache));
        Ok(Node::of(node.to_raw(), "kernel"))
    }

    /// Replaces the launch of a kernel node: arguments, ranges and parameters, of the same kernel. Edges stay.
    /// Executables get the change when they are updated (`Executable.update`).
    #[pyo3(signature = (node, kernel, global_size, *args, local_size=None, offset=None, up_to=None, prints=false,
                        globals=None, elementwise=None))]
    fn replace_kernel(
        &self,
        node: &Bound<'_, PyAny>,
        kernel: &Bound<'_, PyAny>,
        global_size: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        local_size: Option<&Bound<'_, PyAny>>,
        offset: Option<&Bound<'_, PyAny>>,
        up_to: Option<&Bound<'_, PyAny>>,
        prints: bool,
        globals: Option<&Bound<'_, PyAny>>,
        elementwise: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (global, local) = (global_size, local_size);
        let given = Given { kernel, global, args, local, offset, up_to, prints, globals, elementwise };
        let launch = Launch::read(&given, self.scope())?;
        let (replaces, launch) = (rust::Node::from_raw(node::raw(node)?), launch.node(&self.graph));
        // SAFETY: **kernel**: the program promises it, as with pyopencl.
        self.add(node.py(), || unsafe { launch.replace(replaces) })?;
        self.replaced(node.py());
        Ok(())
    }

    /// Changes the range of a kernel node that was added with `up_to`. Executables get it when they are updated.
    #[pyo3(signature = (node, global_size, *, local_size=None, offset=None))]
    fn set_range(
        &self,
        node: &Bound<'_, PyAny>,
        global_size: &Bound<'_, PyAny>,
        local_size: Option<&Bound<'_, PyAny>>,
        offset: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let range = launch::range(global_size, local_size, offset)?;
        let of = rust::Node::from_raw(node::raw(node)?);
        self.add(node.py(), || self.graph.set_nd_range(of, range))
    }

    /// Gives a kernel node another argument, found by its index from 0. The other arguments, the range and all edges stay.
    /// Executables get it when they are updated. It is for nodes whose launch the program has not written itself: those of a
    /// capture. An argument keeps its kind, and a value its size.
    fn set_arg(&self, node: &Bound<'_, PyAny>, index: usize, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, of) = (node.py(), rust::Node::from_raw(node::raw(node)?));
        let kernel = call(py, || self.graph.kernel_of(of))?;
        let argument = arguments::given_to(py, &kernel, index, value, self.scope())?;
        let launch = argument.give_node(self.graph.kernel(&kernel));
        // SAFETY: **kernel**: the program promises it, as with pyopencl.
        self.add(py, || unsafe { launch.replace_arg(of, index) })?;
        self.note(|cache| launch::note(&argument, cache));
        Ok(())
    }

    /// Captures a queue, by default that of the graph, into this graph: `with graph.capture():`. What any code enqueues on
    /// the queue inside the block becomes nodes, and does not run. See Capture, and `clgraph.capture`.
    #[pyo3(signature = (queue=None, *, relaxed=false))]
    fn capture(slf: Bound<'_, Self>, queue: Option<&Bound<'_, PyAny>>, relaxed: bool) -> PyResult<Capture> {
        check()?;
        let queue = match (queue.filter(|queue| !queue.is_none()), &slf.get().queue) {
            (Some(queue), _) => Queue::find(queue)?,
            (None, Some(queue)) => (**queue).clone(),
            (None, None) => return Err(wrong_type("the graph was made without a queue: name the one to be captured")),
        };
        Ok(Capture::new(slf.unbind(), queue, relaxed))
    }

    /// Adds a copy of all bytes from memory to memory of the same size, or of all pixels between images, or between an
    /// image and packed pixels in memory.
    #[pyo3(signature = (src, dst, *, label=None, after=None, replaces=None))]
    fn copy(
        &self,
        src: &Bound<'_, PyAny>,
        dst: &Bound<'_, PyAny>,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
        replaces: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Node> {
        transfer::copy(self, src, dst, With::read(label, after, replaces)?)
    }

    /// Adds a copy of a rectangle or a box.
    ///
    /// `region` is (columns, rows, slices), in elements of the dtype; `src_origin` and `dst_origin` are (column, row,
    /// slice). `src_pitch` and `dst_pitch` are the distances from row to row and from slice to slice, in elements: a
    /// number or a tuple; 0, the default, means that they lie close to each other. With an image on one side or both,
    /// everything is in pixels, the other side is packed, and without a region all of the image is copied.
    #[pyo3(signature = (src, dst, region=None, *, src_origin=None, dst_origin=None, src_pitch=None, dst_pitch=None,
                        label=None, after=None, replaces=None))]
    fn copy_rect(
        &self,
        src: &Bound<'_, PyAny>,
        dst: &Bound<'_, PyAny>,
        region: Option<&Bound<'_, PyAny>>,
        src_origin: Option<&Bound<'_, PyAny>>,
        dst_origin: Option<&Bound<'_, PyAny>>,
        src_pitch: Option<&Bound<'_, PyAny>>,
        dst_pitch: Option<&Bound<'_, PyAny>>,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
        replaces: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Node> {
        let with = With::read(label, after, replaces)?;
        transfer::rect(self, src, dst, region, (src_origin, dst_origin), (src_pitch, dst_pitch), with)
    }

    /// Adds a fill of memory with a pattern, or of an image with a colour.
    ///
    /// A pattern is a numpy scalar, an array or bytes, whose size divides that of the memory; or a plain number, if the
    /// memory has a dtype. The colour of an image is four numbers; `origin` and `region` name a part of it, in pixels.
    #[pyo3(signature = (dst, pattern, *, origin=None, region=None, label=None, after=None, replaces=None))]
    fn fill(
        &self,
        dst: &Bound<'_, PyAny>,
        pattern: &Bound<'_, PyAny>,
        origin: Option<&Bound<'_, PyAny>>,
        region: Option<&Bound<'_, PyAny>>,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
        replaces: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Node> {
        transfer::fill(self, dst, pattern, (origin, region), With::read(label, after, replaces)?)
    }

    /// Adds a write of host data to memory or to an image. The node is also the name of the input: each submission
    /// writes this data, or data of its own, `submit(inputs={write: data})`.
    ///
    /// `data` is a contiguous numpy array or another object with the buffer protocol, of as many bytes as the memory. It
    /// is copied; with `copy=False` it is used where it is: then the program promises not to change it until the graph
    /// and all submissions of its executables have ended.
    #[pyo3(signature = (dst, data, *, copy=true, origin=None, region=None, label=None, after=None, replaces=None))]
    fn write(
        &self,
        dst: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        copy: bool,
        origin: Option<&Bound<'_, PyAny>>,
        region: Option<&Bound<'_, PyAny>>,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
        replaces: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Write>> {
        transfer::write(self, dst, data, copy, (origin, region), With::read(label, after, replaces)?)
    }

    /// Adds a read of memory or of an image into host memory. The node is also the name of the result: `run[read]` is a
    /// numpy array.
    ///
    /// A result has the dtype and the shape of a pyopencl.array.Array or a clgraph.Memory. That of a pyopencl.Buffer is
    /// bytes, unless `dtype` and `shape` say more; one length of the shape may be -1.
    #[pyo3(signature = (src, dtype=None, shape=None, *, origin=None, region=None, label=None, after=None, replaces=None))]
    fn read(
        &self,
        src: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        shape: Option<&Bound<'_, PyAny>>,
        origin: Option<&Bound<'_, PyAny>>,
        region: Option<&Bound<'_, PyAny>>,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
        replaces: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Read>> {
        transfer::read(self, src, (dtype, shape), (origin, region), With::read(label, after, replaces)?)
    }

    /// Adds an allocation, and returns its Memory, which belongs to the graph. Nodes that use it come after the
    /// allocation; allocations that are not needed at the same time share bytes, if they are freed.
    ///
    /// `shape` is a number of elements or a tuple; without a `dtype` elements are bytes. With `zeroed` the memory is
    /// zero when the graph is finalized, and otherwise undefined. Submissions do not make it zero again: `fill` does.
    #[pyo3(signature = (shape, dtype=None, *, zeroed=false, label=None, after=None))]
    fn alloc(
        &self,
        shape: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        zeroed: bool,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Memory> {
        memory::alloc(self, shape, dtype, zeroed, label, after)
    }

    /// Adds the end of the life of memory of the graph.
    #[pyo3(signature = (memory, *, label=None, after=None))]
    fn free(
        &self,
        memory: &Memory,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<Node> {
        memory::free(py, self, memory, label, after)
    }

    /// Adds all commands of an executable as one node.
    #[pyo3(signature = (executable, *, label=None, after=None))]
    fn sub_graph(
        &self,
        executable: &Executable,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<Py<SubGraph>> {
        let sub = options!(self.graph.sub_graph(&executable.executable), label, node::after(after)?);
        let _nesting = executable.held().nesting();
        let sub = self.add(py, || sub.add())?;
        executable.held().nest(py, self.held.get().held());
        SubGraph::make(py, sub)
    }

    /// Adds a branch: the executable `then` runs if the number in memory is not zero, and `otherwise` if it is zero.
    ///
    /// The first element of `flag`, an integer of 32 bits, is the number. It is read when the node is reached. Edges come
    /// from it and from the memory of the bodies. With `replaces=branch` that branch gets this flag, for the same bodies.
    #[pyo3(signature = (flag, then, otherwise=None, *, label=None, after=None, replaces=None))]
    fn when(
        &self,
        flag: &Bound<'_, PyAny>,
        then: &Bound<'_, Executable>,
        otherwise: Option<&Bound<'_, Executable>>,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
        replaces: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Branch>> {
        control::when(self, flag, then, otherwise, (label, after, replaces))
    }

    /// Adds a branch: of a list of executables the one runs whose index is the number in memory, or none. As `when`.
    #[pyo3(signature = (index, cases, *, label=None, after=None, replaces=None))]
    fn switch(
        &self,
        index: &Bound<'_, PyAny>,
        cases: &Bound<'_, PyAny>,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
        replaces: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Branch>> {
        control::switch(self, index, cases, (label, after, replaces))
    }

    /// Adds a loop: the executable `body` runs as long as the number in memory is not zero. It is read before each turn, or
    /// with `at_least_once` after each. If it would go on after `at_most` turns, the submission fails; without that it can
    /// go on for ever, until `Submission.cancel`. Otherwise as `when`.
    #[pyo3(signature = (flag, body, at_least_once=false, at_most=None, *, label=None, after=None, replaces=None))]
    fn repeat_while(
        &self,
        flag: &Bound<'_, PyAny>,
        body: &Bound<'_, Executable>,
        at_least_once: bool,
        at_most: Option<u64>,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
        replaces: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Loop>> {
        control::repeat_while(self, flag, body, (at_least_once, at_most), (label, after, replaces))
    }

    /// Adds a loop with a known number of turns. Otherwise as `when`.
    #[pyo3(signature = (n, body, *, label=None, after=None, replaces=None))]
    fn repeat(
        &self,
        n: u64,
        body: &Bound<'_, Executable>,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
        replaces: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Loop>> {
        control::repeat(self, n, body, (label, after, replaces))
    }

    /// Adds a host task: a Python function that runs between the nodes before and after it, once in each submission, on
    /// a thread of clgraph.
    ///
    /// The function may take a HostTask: `task[read]` is a result of a read before it, and `task[write] = data` sets the
    /// input of a write after it. `reads` and `writes` are memory, or lists of it, that the function uses, so that nodes with
    /// the same memory wait for each other. If the function raises an exception, the submission fails with its text.
    ///
    /// The graph and its executables keep the function. Python's garbage collector sees it: a function may hold its graph.
    #[pyo3(signature = (function, reads=None, writes=None, *, label=None, after=None))]
    fn host_task(
        &self,
        function: &Bound<'_, PyAny>,
        reads: Option<&Bound<'_, PyAny>>,
        writes: Option<&Bound<'_, PyAny>>,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Node> {
        task::task_node(self, function, reads, writes, label, after)
    }

    /// Adds a host task on mapped memory: `function(array)` gets the memory itself as a numpy array.
    ///
    /// `mode` is "read", "write" (the function reads and writes) or "discard" (it writes all of it, and its old content
    /// is lost). The array is valid until the function returns; a function that keeps it makes the submission fail.
    /// `memory` is a pyopencl.Buffer, a pyopencl.array.Array or a clgraph.Memory, but no memory of a graph, and no device
    /// global. The program promises that nothing outside the graph uses the memory meanwhile.
    #[pyo3(signature = (memory, function, mode="read", *, dtype=None, shape=None, label=None, after=None))]
    fn map(
        &self,
        memory: &Bound<'_, PyAny>,
        function: &Bound<'_, PyAny>,
        mode: &str,
        dtype: Option<&Bound<'_, PyAny>>,
        shape: Option<&Bound<'_, PyAny>>,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Node> {
        task::map_node(self, memory, function, mode, (dtype, shape), label, after)
    }

    /// Adds a native command: a Python function that enqueues OpenCL commands of its own, in each submission.
    ///
    /// `function(queue)` gets a pyopencl.CommandQueue, which is in order. A function that takes more gets a NativeMemory
    /// for each memory in `reads` and then in `writes`, which are memory or lists of memory that its commands use. It
    /// enqueues, and returns: it waits for nothing, and uses no graph, executable or submission, because clgraph holds
    /// locks meanwhile. If it raises an exception, the submission fails with its text.
    ///
    /// The program promises: the commands go to the given queue, or are complete before anything begins that is enqueued
    /// there next; they touch only the memory in `reads` and `writes`, in these ways, and memory of their own that
    /// several of these commands may use at a time; nothing that the function was given is used after it has returned;
    /// and what the commands use lives until they are complete.
    #[pyo3(signature = (function, reads=None, writes=None, *, label=None, after=None))]
    fn native_command(
        &self,
        function: &Bound<'_, PyAny>,
        reads: Option<&Bound<'_, PyAny>>,
        writes: Option<&Bound<'_, PyAny>>,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Node> {
        crate::native::command_node(self, function, reads, writes, label, after)
    }

    /// Adds a node of a command group, which does what is active in the group. A group may have several nodes.
    #[pyo3(signature = (group, *, label=None, after=None))]
    fn command_group(
        &self,
        group: &CommandGroup,
        label: Option<&str>,
        after: Option<&Bound<'_, PyAny>>,
        py: Python<'_>,
    ) -> PyResult<Node> {
        let node = options!(self.graph.command_group_node(&group.group), label, node::after(after)?);
        Ok(Node::of(self.add(py, || node.add())?.to_raw(), group.kind))
    }

    /// Adds a node that waits for an event, which each submission is given for it: `submit(events={node: event})`.
    #[pyo3(signature = (*, label=None, after=None))]
    fn wait_event(&self, py: Python<'_>, label: Option<&str>, after: Option<&Bound<'_, PyAny>>) -> PyResult<Node> {
        let wait = options!(self.graph.wait_event(), label, node::after(after)?);
        Ok(Node::of(self.add(py, || wait.add())?.to_raw(), "wait event"))
    }

    /// Adds a node that completes a UserEvent, which each submission is given for it: `submit(signals={node: event})`.
    #[pyo3(signature = (*, label=None, after=None))]
    fn signal_event(&self, py: Python<'_>, label: Option<&str>, after: Option<&Bound<'_, PyAny>>) -> PyResult<Node> {
        let signal = options!(self.graph.signal_event(), label, node::after(after)?);
        Ok(Node::of(self.add(py, || signal.add())?.to_raw(), "signal event"))
    }

    /// Adds a node that does nothing, and only orders others.
    #[pyo3(signature = (*, label=None, after=None))]
    fn empty(&self, py: Python<'_>, label: Option<&str>, after: Option<&Bound<'_, PyAny>>) -> PyResult<Node> {
        let empty = options!(self.graph.empty(), label, node::after(after)?);
        Ok(Node::of(self.add(py, || empty.add())?.to_raw(), "empty"))
    }

    /// Makes a node wait for another one.
    fn add_edge(&self, py: Python<'_>, before: &Bound<'_, PyAny>, after: &Bound<'_, PyAny>) -> PyResult<()> {
        let [before, after] = [node::raw(before)?, node::raw(after)?].map(rust::Node::from_raw);
        self.add(py, || self.graph.add_edge(before, after))
    }

    /// The context, as a pyopencl.Context.
    #[getter]
    fn context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        check()?;
        // SAFETY: **live**: `self` keeps it alive.
        unsafe { interop::wrap(py, "Context", self.scope().context.raw(), "`Graph.context`") }
    }

    /// The device.
    #[getter]
    fn device(&self) -> Device {
        Device::new(self.graph.device().clone())
    }

    /// The nodes, in the order in which they were added.
    #[getter]
    fn nodes(&self, py: Python<'_>) -> PyResult<Vec<Node>> {
        node::list(py, &self.graph, |graph| Ok(graph.nodes()))
    }

    /// The nodes that wait for no other node.
    #[getter]
    fn roots(&self, py: Python<'_>) -> PyResult<Vec<Node>> {
        node::list(py, &self.graph, |graph| Ok(graph.roots()))
    }

    /// Returns the nodes that a node waits for.
    fn predecessors(&self, py: Python<'_>, node: &Bound<'_, PyAny>) -> PyResult<Vec<Node>> {
        let node = rust::Node::from_raw(node::raw(node)?);
        node::list(py, &self.graph, |graph| graph.predecessors(node))
    }

    /// Returns the nodes that wait for a node.
    fn successors(&self, py: Python<'_>, node: &Bound<'_, PyAny>) -> PyResult<Vec<Node>> {
        let node = rust::Node::from_raw(node::raw(node)?);
        node::list(py, &self.graph, |graph| graph.successors(node))
    }

    /// Gives a node a label, also one that a queue has recorded: `graph.set_label(event, "blur")`. None removes it.
    fn set_label(&self, py: Python<'_>, node: &Bound<'_, PyAny>, label: Option<&str>) -> PyResult<()> {
        let node = rust::Node::from_raw(node::raw(node)?);
        call(py, || self.graph.set_label(node, label.unwrap_or_default()))
    }

    /// Returns the label of a node, or None.
    fn label(&self, py: Python<'_>, node: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        let node = rust::Node::from_raw(node::raw(node)?);
        call(py, || self.graph.label(node))
    }

    /// Plans the graph for its device and prepares everything that a submission needs. The graph does not change, and
    /// can be finalized again.
    ///
    /// `updatable`: values can change between submissions (`Executable.update`). `profiling`: submissions record times
    /// (`Submission.profile`). `path`: how commands are enqueued, "auto", "native" (command buffers), "replay", "gated"
    /// or "queues". `result_slots`: how many submissions can hold results at a time; None for as many as the program
    /// likes. `commands_per_buffer`: the most commands of one command buffer. `tuning_cache`: a file that keeps what
    /// the automatic path has found; the folder beside it, with the name and `.programs`, keeps fused kernels. `autotune`: whether the automatic path times submissions. `allow_conflicts`: nodes
    /// may use the same memory without an order. `separate_memory`: allocations of the graph share no bytes. `loops`: how loops
    /// run, "auto", "host-decided" (the host reads the condition before each turn) or "ahead" (several
    /// turns are enqueued before that, where they can be). `fuse`: whether small launches become one kernel that does what they
    /// do, "off", "auto" (built in the background when submissions have taken twelve times as long as that takes, and kept if it is
    /// faster) or "now" (built here, which takes a second or more). The default is "auto", or "off" on drivers where last bits may differ.
    #[pyo3(signature = (*, updatable=false, profiling=false, path=None, result_slots=None, commands_per_buffer=None,
                        tuning_cache=None, autotune=true, allow_conflicts=false, separate_memory=false,
                        loops=None, fuse=None))]
    fn finalize(
        &self,
        py: Python<'_>,
        updatable: bool,
        profiling: bool,
        path: Option<&str>,
        result_slots: Option<usize>,
        commands_per_buffer: Option<usize>,
        tuning_cache: Option<std::path::PathBuf>,
        autotune: bool,
        allow_conflicts: bool,
        separate_memory: bool,
        loops: Option<&str>,
        fuse: Option<&str>,
    ) -> PyResult<Executable> {
        let asked = executable::Asked {
            updatable,
            profiling,
            path,
            result_slots,
            commands_per_buffer,
            tuning_cache,
            autotune,
            allow_conflicts,
            separate_memory,
            loops,
            fuse,
        };
        asked.finalize(py, &self.graph, self.queue.as_deref(), &self.held)
    }

    /// Draws the graph in the DOT language. `detail` is "brief", "full" (every node) or "verbose" (with arguments).
    #[pyo3(signature = (detail="brief"))]
    fn to_dot(&self, py: Python<'_>, detail: &str) -> PyResult<String> {
        let detail = report::detail(detail)?;
        call(py, || Ok(self.graph.to_dot(detail)))
    }

    /// Draws the graph as SVG. `detail` is as for `to_dot`.
    #[pyo3(signature = (detail="brief"))]
    fn to_svg(&self, py: Python<'_>, detail: &str) -> PyResult<String> {
        let detail = report::detail(detail)?;
        call(py, || self.graph.to_svg(detail))
    }

    fn _repr_svg_(&self, py: Python<'_>) -> PyResult<String> {
        self.to_svg(py, "brief")
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.held)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        call(py, || Ok(self.graph.len()))
    }

    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (nodes, device) = (self.__len__(py)?, self.graph.device().name());
        Ok(format!("Graph({nodes} node{} for {device})", if nodes == 1 { "" } else { "s" }))
    }
}
