//! Empty nodes, copies, fills, and transfers from and to the host.

use std::fmt;
use std::marker::PhantomData;

use opencl_sys::{CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY};

use super::change::other_kind;
use super::copier;
use super::launch::{Checked, Launch};
use super::request::{Request, Target};
use super::tables::Writer;
use super::{After, Graph, Node, Nodes, after_methods};
use crate::cl::buffer::{AsDestination, AsSource, Region};
use crate::cl::host::{Element, HostBytes, HostData, Slot};
use crate::cl::map::MapMode;
use crate::error::{BuildCause, BuildError, MemoryError, Result};
use crate::ir::{Access, DataId, Mode, Op, Place, ResultId};

impl Graph {
    /// Starts a node that does nothing but order others: a join, or a fork.
    #[doc(alias("cudaGraphAddEmptyNode", "clCommandBarrierWithWaitListKHR", "barrier"))]
    pub fn empty(&self) -> EmptyNode<'_> {
        EmptyNode { graph: self, after: After::default() }
    }

    /// Starts a copy from memory to memory. Source and destination must be equally long; slices name parts. Between a buffer
    /// and memory with an address OpenCL has no command, so there it is a kernel of clgraph's own, and [`Graph::kind`] says
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

    /// Starts a host write: as many elements as the destination has.
    ///
    /// The graph and its executables keep the data. A `Vec`, a `Box` of a slice or an `Arc` is taken over, a borrowed
    /// slice is copied. Other data for one submission: [`Submit::with`](crate::Submit::with).
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

    /// Starts a host read of the whole source, into memory of clgraph's own. Each submission has a result of its own:
    /// [`Submission::get`](crate::Submission::get). An example is at [`write`](Self::write).
    #[doc(alias = "clEnqueueReadBuffer")]
    pub fn read<T: Element>(&self, src: &impl AsSource<T>) -> ReadNode<'_, T> {
        let read = Read { src: src.region(), align: align_of::<T>() };
        ReadNode { graph: self, after: After::default(), read, element: PhantomData }
    }
}

impl Graph {
    /// The handle of a node that writes host data to memory, also one that was recorded: submissions give it other input
    /// ([`Submit::with`](crate::Submit::with)), and so do host tasks ([`HostTask::put`](crate::HostTask::put)).
    ///
    /// # Errors
    /// [`BuildCause::OtherKind`] for a node that is no host write, or that writes no whole elements of `T`;
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
        let op = state.ir.op(id);
        let why = "only host writes have one";
        match op {
            Op::Write { size, .. } if size_of::<T>() > 0 && size.is_multiple_of(size_of::<T>()) => {
                Ok(HostWrite::of(node))
            }
            Op::Write { size, .. } => {
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
    /// [`BuildCause::OtherGraph`] for a node of another graph, [`BuildCause::NotANode`] for an event of work that runs;
    /// [`BuildCause::Recording`]; [`BuildCause::Full`].
    ///
    /// Of every node that uses memory: [`BuildCause::OtherContext`]; [`BuildCause::GraphMemory`] for memory that
    /// another graph owns; [`BuildCause::NotSupported`] for USM and SVM that the graph's device cannot reach.
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

    /// Puts the copy in the place of a copy node: source, destination and size. Edges stay, and executables follow when they are
    /// updated. Where no edge orders what now uses the same memory, finalizing and updating say so
    /// ([`FinalizeError::Conflict`](crate::FinalizeError::Conflict)). A label takes the place of the one before.
    ///
    /// # Errors
    /// Those of [`add`](Self::add); [`BuildCause::Replace`] for a node that it cannot take the place of, and when
    /// `after` is given; [`BuildCause::OtherKind`] for a node of a command group. Nothing changed.
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

    /// Puts the host write in the place of a host write node: destination and data, of as many bytes. Edges stay, and executables follow when they are
    /// updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and those of [`CopyNode::replace`]: nothing changed.
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

    /// Puts the host read in the place of a host read node: the source, of as many bytes. Edges stay, and executables follow when they are
    /// updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and those of [`CopyNode::replace`]: nothing changed.
    pub fn replace(self, output: &HostRead<T>) -> Result<()> {
        self.graph.replace(output.node(), self.read, &self.after)
    }
}

/// A host write in a graph: stands for its node, and for its input at a submission.
pub struct HostWrite<T> {
    node: Node,
    part: u32,
    element: PhantomData<fn() -> T>,
}

/// A host read in a graph: stands for its node, and for its result of a submission.
pub struct HostRead<T> {
    node: Node,
    part: u32,
    element: PhantomData<fn() -> T>,
}

macro_rules! node_handle {
    ($name:ident) => {
        impl<T> $name<T> {
            /// For a node of its kind, of elements of this type.
            pub(crate) fn of(node: Node) -> Self {
                Self { node, part: 0, element: PhantomData }
            }

            /// For one inside of a sub-graph.
            pub(crate) fn of_part(node: Node, part: u32) -> Self {
                Self { node, part, element: PhantomData }
            }

            /// The node. Of one inside of a sub-graph it is the node of the sub-graph.
            #[must_use]
            pub fn node(&self) -> Node {
                self.node
            }

            /// Which one of a sub-graph.
            pub(crate) fn part(&self) -> u32 {
                self.part
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
            fn for_each_node(&self, each: &mut dyn FnMut(Option<Node>)) {
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

/// Nothing but order.
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

    fn lower(self, (): (), _: &mut Writer<'_>, _: &mut Vec<Access>) -> Option<Op> {
        Some(Op::Empty)
    }
}

/// Bytes from memory to memory.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    pub(crate) src: Region,
    pub(crate) dst: Region,
}

impl Request for Copy {
    /// The launch that does it where there is no command.
    type Checked = Option<(Box<Launch>, Checked)>;

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
        let side = |region: &Region| copier::Side { region: region.clone(), row: 0, slice: 0 };
        let launch = copier::launch(target, &side(src), &side(dst), [src.size, 1, 1])?;
        let checked = launch.check(target)?;
        Ok(Some((Box::new(launch), checked)))
    }

    fn lower(self, checked: Self::Checked, state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        if let Some((launch, checked)) = checked {
            return launch.lower(checked, state, accesses);
        }
        let Self { src, dst } = self;
        accesses.push(state.access(&src, Mode::Read));
        accesses.push(state.access(&dst, Mode::Write));
        Some(Op::Copy { src: place(state, &src), dst: place(state, &dst), size: src.size })
    }
}

/// Host data to a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) dst: Region,
    pub(crate) data: HostBytes,
}

/// Whether so many bytes from the host may go into a region.
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

    fn lower(self, (): (), state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        let Self { dst, data } = self;
        accesses.push(state.access(&dst, Mode::Write));
        let (dst, size, id) = (place(state, &dst), dst.size, DataId(state.ir.data));
        state.ir.data = id.0.checked_add(1)?;
        state.data.push(data);
        Some(Op::Write { dst, size, data: id, area: None })
    }
}

/// A buffer to host memory.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) src: Region,
    /// Alignment of the elements.
    pub(crate) align: usize,
}

impl Request for Read {
    type Checked = ();

    fn subject(&self) -> String {
        "host read".to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        let Self { src, align } = self;
        target.check_context(src, "the source")?;
        if *align > Slot::ALIGN {
            return Err(BuildCause::NotSupported {
                what: format!("reading elements aligned to {align} bytes"),
                why: format!("results are aligned to {}, the most that OpenCL types need: read bytes", Slot::ALIGN),
            });
        }
        forbid(src, &"the source", CL_MEM_HOST_NO_ACCESS, "CL_MEM_HOST_NO_ACCESS", "a host read")?;
        forbid(src, &"the source", CL_MEM_HOST_WRITE_ONLY, "CL_MEM_HOST_WRITE_ONLY", "a host read")
    }

    fn lower(self, (): (), state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        let src = self.src;
        accesses.push(state.access(&src, Mode::Read));
        let (size, id) = (src.size, ResultId(state.ir.results));
        let src = place(state, &src);
        state.ir.results = id.0.checked_add(1)?;
        state.results.push(size);
        Some(Op::Read { src, size, result: id, area: None })
    }
}

/// Whether the host may map a region.
pub(crate) fn check_map(target: &Target<'_>, region: &Region, mode: MapMode) -> Result<(), BuildCause> {
    target.check_context(region, "the memory")?;
    forbid(region, &"the memory", CL_MEM_HOST_NO_ACCESS, "CL_MEM_HOST_NO_ACCESS", "a map")?;
    if mode != MapMode::WriteInvalidate {
        forbid(region, &"the memory", CL_MEM_HOST_WRITE_ONLY, "CL_MEM_HOST_WRITE_ONLY", "a map to read")?;
    }
    if mode != MapMode::Read {
        forbid(region, &"the memory", CL_MEM_HOST_READ_ONLY, "CL_MEM_HOST_READ_ONLY", "a map to write")?;
    }
    Ok(())
}

pub(super) fn forbid(
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

pub(super) fn place(state: &mut Writer<'_>, region: &Region) -> Place {
    Place { view: state.view(&region.mem), offset: region.offset }
}
