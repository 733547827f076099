//! Empty nodes, copies, and transfers between the host and memory.

use std::fmt;
use std::marker::PhantomData;

use opencl_sys::{CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY};

use crate::cl::memory::host::{Element, HostBytes, HostData, Slot};
use crate::cl::memory::map::MapAccess;
use crate::cl::memory::region::{AsDestination, AsSource, Region};
use crate::command::Command;
use crate::error::{BuildCause, BuildError, MemoryError, Result};
use crate::graph::edit::change::other_kind;
use crate::graph::nodes::copier;
use crate::graph::nodes::launch::CheckedLaunch;
use crate::graph::nodes::request::{CommandRequest, Request, Requested, Target};
use crate::graph::writer::Writer;
use crate::graph::{After, Graph, Nodes, after_methods};
use crate::handles::{Node, RawNode};
use crate::ir::{Access, ById, Mode};

impl Graph {
    /// Starts an empty node, which does no work and only orders other nodes, as a join or a fork.
    #[doc(alias("cudaGraphAddEmptyNode", "clCommandBarrierWithWaitListKHR", "barrier"))]
    pub fn empty(&self) -> EmptyNode<'_> {
        EmptyNode { graph: self, after: After::default() }
    }

    /// Starts a copy from memory to memory.
    ///
    /// Source and destination must have the same length; slices name parts. OpenCL has no command for a copy between a
    /// buffer and memory with an address. There a kernel of clgraph copies, and [`Graph::kind`] returns
    /// [`NodeKind::Kernel`](crate::NodeKind::Kernel).
    ///
    /// ```
    /// # use clgraph::{Buffer, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let (from, into) = (Buffer::from_slice(&queue, &[1, 2])?, Buffer::<i32>::new(&queue, 4)?);
    /// let graph = Graph::new(&queue)?;
    /// graph.fill(&into.slice(..2)?, 0).add()?;
    /// graph.copy(&from, &into.slice(2..)?).add()?;
    /// let result = graph.read(&into).add()?; // waits for both, because it reads what they write
    /// let run = graph.finalize(Finalize::new())?.submit(&queue)?;
    /// run.wait()?;
    /// assert_eq!(*run.get(&result)?, [0, 0, 1, 2]);
    /// # Ok::<(), clgraph::Error>(())
    /// ```
    #[doc(alias = "clEnqueueCopyBuffer")]
    #[doc(alias = "clEnqueueSVMMemcpy")]
    #[doc(alias = "clEnqueueMemcpyINTEL")]
    #[doc(alias("cudaGraphAddMemcpyNode", "clCommandCopyBufferKHR", "clCommandSVMMemcpyKHR", "memcpy"))]
    pub fn copy<T>(&self, src: &impl AsSource<T>, dst: &impl AsDestination<T>) -> CopyNode<'_> {
        CopyNode { graph: self, after: After::default(), copy: Copy { src: src.region(), dst: dst.region() } }
    }

    /// Starts a host write of as many elements as the destination has.
    ///
    /// The graph and its executables keep the data. The node takes ownership of a `Vec`, a `Box` of a slice or an
    /// `Arc`, and copies a borrowed slice. [`Submit::with`](crate::Submit::with) sets other data for one submission.
    ///
    /// ```
    /// # use clgraph::{Buffer, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let (graph, buffer) = (Graph::new(&queue)?, Buffer::<u32>::new(&queue, 2)?);
    /// let input = graph.write(&buffer, [1, 2]).add()?;
    /// let output = graph.read(&buffer).add()?;
    /// let executable = graph.finalize(Finalize::new())?;
    /// let (one, two) = (executable.submit(&queue)?, executable.submit_to(&queue).with(&input, [5, 6]).submit()?);
    /// two.wait()?; // and so the first is complete
    /// assert_eq!((&*one.get(&output)?, &*two.get(&output)?), (&[1, 2][..], &[5, 6][..]));
    /// # Ok::<(), clgraph::Error>(())
    /// ```
    #[doc(alias = "clEnqueueWriteBuffer")]
    pub fn write<T: Element>(&self, dst: &impl AsDestination<T>, data: impl Into<HostData<T>>) -> WriteNode<'_, T> {
        let write = Write { dst: dst.region(), data: data.into().into_bytes() };
        WriteNode { graph: self, after: After::default(), write, element: PhantomData }
    }

    /// Starts a host read of the whole source into memory of clgraph.
    ///
    /// Each submission has its own result: [`Submission::get`](crate::Submission::get) returns it.
    /// [`write`](Self::write) has an example.
    #[doc(alias = "clEnqueueReadBuffer")]
    pub fn read<T: Element>(&self, src: &impl AsSource<T>) -> ReadNode<'_, T> {
        let read = Read { src: src.region(), align: align_of::<T>() };
        ReadNode { graph: self, after: After::default(), read, element: PhantomData }
    }
}

impl Graph {
    /// Returns the handle of a host write, built or recorded, found by its node.
    ///
    /// The handle lets submissions set other data ([`Submit::with`](crate::Submit::with)), and host tasks too
    /// ([`HostTaskContext::put`](crate::HostTaskContext::put)).
    ///
    /// # Errors
    /// [`BuildCause::OtherKind`] for a node that is not a host write, or whose bytes are not a whole number of `T`;
    /// [`BuildCause::OtherGraph`].
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let (graph, buffer) = (Graph::new(&queue)?, Buffer::<u32>::new(&queue, 2)?);
    /// let (written, read) = graph.record(&queue, || {
    ///     let written = queue.enqueue_write_buffer(&buffer, 0, &[1, 2], &[])?;
    ///     clgraph::Result::Ok((written, queue.enqueue_read_buffer_owned(&buffer, 0, 2, &[])?.host_read()?))
    /// })?;
    /// let input = graph.host_write::<u32>(graph.node_of(&written)?)?;
    /// let run = graph.finalize(Finalize::new())?.submit_to(&queue).with(&input, [3, 4]).submit()?;
    /// run.wait()?;
    /// assert_eq!(*run.get(&read)?, [3, 4]);
    /// # Ok(()) }
    /// ```
    pub fn host_write<T: Element>(&self, node: impl Into<Node>) -> Result<HostWrite<T>> {
        let (node, state) = (node.into(), self.lock());
        let fail = |cause| BuildError::new("handle of a host write", cause);
        let id = self.resolve(&state, node).map_err(fail)?;
        let op = state.ir.command(id);
        let why = "only a host write has such a handle";
        match op {
            Command::Write { size, .. } if size_of::<T>() > 0 && size.is_multiple_of(size_of::<T>()) => {
                Ok(HostWrite::of(node))
            }
            Command::Write { size, .. } => {
                Err(fail(MemoryError::ElementSize { bytes: *size, element: size_of::<T>() }.into()).into())
            }
            op => Err(fail(other_kind(node, op, "a handle of a host write", why)).into()),
        }
    }
}

/// An empty node to be added. See [`Graph::empty`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct EmptyNode<'g> {
    graph: &'g Graph,
    after: After,
}

impl EmptyNode<'_> {
    after_methods!();

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::OtherGraph`] for a node of another graph; [`BuildCause::NotANode`] for an event of a command that
    /// was executed; [`BuildCause::Recording`]; [`BuildCause::Full`].
    ///
    /// Every node that uses memory also returns: [`BuildCause::OtherContext`]; [`BuildCause::GraphMemory`] for memory
    /// that another graph owns; [`BuildCause::NotSupported`] for USM and SVM that the graph's device cannot reach.
    pub fn add(self) -> Result<Node> {
        Ok(self.graph.insert(Empty, &self.after)?)
    }
}

/// A copy to be added. See [`Graph::copy`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct CopyNode<'g> {
    graph: &'g Graph,
    after: After,
    copy: Copy,
}

impl CopyNode<'_> {
    after_methods!();

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::SizeMismatch`], [`BuildCause::Overlap`]; `BuildCause::CopyKernel` where a kernel has to copy; and
    /// those of [`EmptyNode::add`].
    pub fn add(self) -> Result<Node> {
        Ok(self.graph.insert(self.copy, &self.after)?)
    }

    /// Replaces a copy node by this copy: source, destination and size.
    ///
    /// Edges stay, and executables get the change when they are updated. If two nodes now use the same memory and no
    /// edge orders them, finalizing and updating return [`FinalizeError::Conflict`](crate::FinalizeError::Conflict). A
    /// label replaces the previous one.
    ///
    /// # Errors
    /// Those of [`add`](Self::add); [`BuildCause::Replace`] for a node that this copy cannot replace, and when `after`
    /// is given; [`BuildCause::OtherKind`] for a node of a command group. After an error nothing has changed.
    pub fn replace(self, node: Node) -> Result<()> {
        self.graph.replace(node, self.copy, &self.after)
    }
}

/// A host write to be added. See [`Graph::write`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct WriteNode<'g, T> {
    graph: &'g Graph,
    after: After,
    write: Write,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> WriteNode<'_, T> {
    after_methods!();

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::SizeMismatch`], [`BuildCause::AccessForbidden`], [`BuildCause::OtherContext`], and those of
    /// [`EmptyNode::add`].
    pub fn add(self) -> Result<HostWrite<T>> {
        let node = self.graph.insert(self.write, &self.after)?;
        Ok(HostWrite::of(node))
    }

    /// Replaces a host write node by this host write: destination and data, of the same number of bytes. Edges stay,
    /// and executables get the change when they are updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and those of [`CopyNode::replace`]. After an error nothing has changed.
    pub fn replace(self, input: &HostWrite<T>) -> Result<()> {
        self.graph.replace(input.node(), self.write, &self.after)
    }
}

/// A host read to be added. See [`Graph::read`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct ReadNode<'g, T> {
    graph: &'g Graph,
    after: After,
    read: Read,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> ReadNode<'_, T> {
    after_methods!();

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::AccessForbidden`], [`BuildCause::OtherContext`], [`BuildCause::NotSupported`] for elements with an
    /// alignment above 128 bytes, and those of [`EmptyNode::add`].
    pub fn add(self) -> Result<HostRead<T>> {
        let node = self.graph.insert(self.read, &self.after)?;
        Ok(HostRead::of(node))
    }

    /// Replaces a host read node by this host read: the source, of the same number of bytes. Edges stay, and
    /// executables get the change when they are updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and those of [`CopyNode::replace`]. After an error nothing has changed.
    pub fn replace(self, output: &HostRead<T>) -> Result<()> {
        self.graph.replace(output.node(), self.read, &self.after)
    }
}

/// The handle of a host write: it stands for the node, and for the node's input at a submission.
pub struct HostWrite<T> {
    node: Node,
    part: u32,
    element: PhantomData<fn() -> T>,
}

/// The handle of a host read: it stands for the node, and for the node's result of a submission.
pub struct HostRead<T> {
    node: Node,
    part: u32,
    element: PhantomData<fn() -> T>,
}

macro_rules! node_handle {
    ($name:ident) => {
        impl<T> $name<T> {
            /// A handle of a node of its kind, with elements of this type.
            pub(crate) fn of(node: Node) -> Self {
                Self { node, part: 0, element: PhantomData }
            }

            /// A handle of a node inside a sub-graph.
            pub(crate) fn of_part(node: Node, part: u32) -> Self {
                Self { node, part, element: PhantomData }
            }

            /// Returns the node. For a handle inside a sub-graph it is the sub-graph's node.
            #[must_use]
            pub fn node(&self) -> Node {
                self.node
            }

            /// Returns the handle as numbers, for bindings to other languages.
            #[must_use]
            pub fn to_raw(&self) -> RawNode {
                RawNode { part: self.part, ..self.node.to_raw() }
            }

            /// The index among the writes or reads of a sub-graph.
            pub(crate) fn part(&self) -> u32 {
                self.part
            }
        }

        impl $name<u8> {
            /// Returns the handle for numbers that [`to_raw`](Self::to_raw) returned, with bytes as elements. Calls with
            /// a handle that does not fit return errors, so any numbers are safe.
            #[must_use]
            pub fn from_raw(raw: RawNode) -> Self {
                Self::of_part(Node::from_raw(raw), raw.part)
            }
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> std::marker::Copy for $name<T> {}

        impl<T> PartialEq for $name<T> {
            fn eq(&self, other: &Self) -> bool {
                (self.node, self.part) == (other.node, other.part)
            }
        }

        impl<T> Eq for $name<T> {}

        impl<T> std::hash::Hash for $name<T> {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                (self.node, self.part).hash(state);
            }
        }

        impl<T> std::fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({})", stringify!($name), self.node)
            }
        }

        impl<T> Nodes for $name<T> {
            fn for_each_node(&self, mut each: impl FnMut(Option<Node>)) {
                each(Some(self.node));
            }
        }

        impl<T> From<$name<T>> for Node {
            fn from(handle: $name<T>) -> Self {
                handle.node
            }
        }
    };
}

node_handle!(HostWrite);
node_handle!(HostRead);

/// An empty node, as a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Empty;

impl Request for Empty {
    type Checked = ();

    fn subject(&self) -> String {
        "empty node".to_owned()
    }

    fn check(&self, _: &Target<'_>) -> Result<(), BuildCause> {
        Ok(())
    }

    fn lower(self, checked: Self::Checked, to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        self.command(checked).lower(to, accesses)
    }
}

impl CommandRequest for Empty {
    fn command(self, (): ()) -> Requested {
        Requested::new(Command::Empty, [])
    }
}

/// A copy of bytes from memory to memory, as a request.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    pub(crate) src: Region,
    pub(crate) dst: Region,
}

impl Request for Copy {
    /// The launch that copies where OpenCL has no command.
    type Checked = Option<Box<CheckedLaunch>>;

    fn subject(&self) -> String {
        "copy".to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<Self::Checked, BuildCause> {
        let Self { src, dst } = self;
        target.check_context(src, "the source")?;
        target.check_context(dst, "the destination")?;
        same_size(("the source", src.size), ("the destination", dst.size))?;
        check_overlap(src, dst)?;
        if !copier::is_needed(src, dst, false) {
            return Ok(None);
        }
        let side = |region: &Region| copier::CopySide { region: region.clone(), row: 0, slice: 0 };
        let launch = copier::launch(target, &side(src), &side(dst), [src.size, 1, 1])?;
        Ok(Some(Box::new(launch.checked(target)?)))
    }

    fn lower(self, checked: Self::Checked, to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        self.command(checked).lower(to, accesses)
    }
}

impl CommandRequest for Copy {
    fn command(self, checked: Self::Checked) -> Requested {
        if let Some(launch) = checked {
            return Requested::launch(launch);
        }
        let Self { src, dst } = self;
        let command = Command::Copy { src: src.location(), dst: dst.location(), size: src.size };
        Requested::new(command, [(src, Mode::Read), (dst, Mode::Write)])
    }
}

/// A write of host data to memory, as a request.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) dst: Region,
    pub(crate) data: HostBytes,
}

/// Checks that the host may write so many bytes to a region.
pub(crate) fn check_write(target: &Target<'_>, dst: &Region, bytes: usize) -> Result<(), BuildCause> {
    target.check_context(dst, "the destination")?;
    same_size(("the data", bytes), ("the destination", dst.size))?;
    forbid(dst, &"the destination", CL_MEM_HOST_NO_ACCESS, "CL_MEM_HOST_NO_ACCESS", "a host write")?;
    forbid(dst, &"the destination", CL_MEM_HOST_READ_ONLY, "CL_MEM_HOST_READ_ONLY", "a host write")
}

impl Request for Write {
    type Checked = ();

    fn subject(&self) -> String {
        "host write".to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        check_write(target, &self.dst, self.data.len())
    }

    fn lower(self, checked: Self::Checked, to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        self.command(checked).lower(to, accesses)
    }
}

impl CommandRequest for Write {
    fn command(self, (): ()) -> Requested {
        let Self { dst, data } = self;
        let command = Command::Write { dst: dst.location(), size: dst.size, data, area: None };
        Requested::new(command, [(dst, Mode::Write)])
    }
}

/// Checks that the host may read a region.
pub(in crate::graph) fn check_read(target: &Target<'_>, src: &Region, what: &'static str) -> Result<(), BuildCause> {
    target.check_context(src, what)?;
    forbid(src, &what, CL_MEM_HOST_NO_ACCESS, "CL_MEM_HOST_NO_ACCESS", "a host read")?;
    forbid(src, &what, CL_MEM_HOST_WRITE_ONLY, "CL_MEM_HOST_WRITE_ONLY", "a host read")
}

/// A read of memory into host memory, as a request.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) src: Region,
    /// The alignment of the elements.
    pub(crate) align: usize,
}

impl Request for Read {
    type Checked = ();

    fn subject(&self) -> String {
        "host read".to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        let Self { src, align } = self;
        if *align > Slot::ALIGN {
            return Err(BuildCause::NotSupported {
                what: format!("reading elements with an alignment of {align} bytes"),
                why: format!(
                    "results have an alignment of at most {} bytes, as OpenCL types do; read bytes \
                              (`u8`)",
                    Slot::ALIGN
                ),
            });
        }
        check_read(target, src, "the source")
    }

    fn lower(self, checked: Self::Checked, to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        self.command(checked).lower(to, accesses)
    }
}

impl CommandRequest for Read {
    fn command(self, (): ()) -> Requested {
        let src = self.src;
        let command = Command::Read { src: src.location(), size: src.size, output: (), area: None };
        Requested::new(command, [(src, Mode::Read)])
    }
}

/// Checks that the host may map a region.
pub(crate) fn check_map(target: &Target<'_>, region: &Region, mode: MapAccess) -> Result<(), BuildCause> {
    target.check_context(region, "the memory")?;
    forbid(region, &"the memory", CL_MEM_HOST_NO_ACCESS, "CL_MEM_HOST_NO_ACCESS", "a map")?;
    if mode != MapAccess::WriteInvalidate {
        forbid(region, &"the memory", CL_MEM_HOST_WRITE_ONLY, "CL_MEM_HOST_WRITE_ONLY", "a map to read")?;
    }
    if mode != MapAccess::Read {
        forbid(region, &"the memory", CL_MEM_HOST_READ_ONLY, "CL_MEM_HOST_READ_ONLY", "a map to write")?;
    }
    Ok(())
}

pub(in crate::graph) fn forbid(
    region: &Region,
    what: &dyn fmt::Display,
    bit: u64,
    flag: &'static str,
    access: &'static str,
) -> Result<(), BuildCause> {
    if region.mem.flags() & bit == 0 {
        return Ok(());
    }
    Err(BuildCause::AccessForbidden { what: what.to_string(), flag, access })
}

fn same_size((left, a): (&'static str, usize), (right, b): (&'static str, usize)) -> Result<(), BuildCause> {
    if a == b {
        return Ok(());
    }
    Err(BuildCause::SizeMismatch { left, left_bytes: a as u64, right, right_bytes: b as u64 })
}

fn check_overlap(src: &Region, dst: &Region) -> Result<(), BuildCause> {
    let range = |region: &Region| {
        let start = region.mem.offset_in_root() + region.offset;
        start..start + region.size
    };
    let (a, b) = (range(src), range(dst));
    if src.mem.root() == dst.mem.root() && a.start < b.end && b.start < a.end {
        return Err(BuildCause::Overlap { src: format!("bytes {a:?}"), dst: format!("bytes {b:?}") });
    }
    Ok(())
}
