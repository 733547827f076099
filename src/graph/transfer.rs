//! Empty nodes, copies, fills, and transfers from and to the host.

use std::marker::PhantomData;

use opencl_sys::{CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY};

use super::{After, Graph, Node, Nodes, State, after_methods};
use crate::cl::buffer::{AsRegion, Region};
use crate::cl::context::InContext;
use crate::cl::host::{Element, HostBytes, HostData, Slot};
use crate::error::{BuildCause, Result};
use crate::ir::{DataId, Mode, Op, Place, ResultId};

impl Graph {
    /// Starts a node that does nothing but order others: a join, or a fork.
    pub fn empty(&self) -> EmptyNode<'_> {
        EmptyNode { graph: self, after: After::default() }
    }

    /// Starts a copy from buffer to buffer. Source and destination must be equally long; slices name parts.
    #[doc(alias = "clEnqueueCopyBuffer")]
    pub fn copy<T>(&self, src: &impl AsRegion<T>, dst: &impl AsRegion<T>) -> CopyNode<'_> {
        CopyNode { graph: self, after: After::default(), src: src.region(), dst: dst.region() }
    }

    /// Starts a fill: every element of the destination becomes `value`, whose size is 1, 2, 4, 8, 16, 32, 64 or 128
    /// bytes.
    #[doc(alias = "clEnqueueFillBuffer")]
    pub fn fill<T: Element>(&self, dst: &impl AsRegion<T>, value: T) -> FillNode<'_> {
        let pattern = bytemuck::bytes_of(&value).to_vec();
        FillNode { graph: self, after: After::default(), dst: dst.region(), pattern }
    }

    /// Starts a host write: as many elements as the destination has.
    ///
    /// The graph keeps the data. A `Vec`, a `Box` of a slice or an `Arc` is taken over, a borrowed slice is copied.
    /// Other data for one submission: [`Submit::with`](crate::Submit::with).
    #[doc(alias = "clEnqueueWriteBuffer")]
    pub fn write<T: Element>(&self, dst: &impl AsRegion<T>, data: impl Into<HostData<T>>) -> WriteNode<'_, T> {
        let data = data.into().into_bytes();
        WriteNode { graph: self, after: After::default(), dst: dst.region(), data, element: PhantomData }
    }

    /// Starts a host read of the whole source. Each submission has a result of its own:
    /// [`Submission::get`](crate::Submission::get).
    #[doc(alias = "clEnqueueReadBuffer")]
    pub fn read<T: Element>(&self, src: &impl AsRegion<T>) -> ReadNode<'_, T> {
        ReadNode { graph: self, after: After::default(), src: src.region(), element: PhantomData }
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
    /// [`BuildCause::OtherGraph`] for a node of another graph; [`BuildCause::Full`].
    pub fn add(self) -> Result<Node> {
        Ok(self.graph.insert(&|| "empty node".to_owned(), &self.after, |_| Ok(()), |_, (), _| Some(Op::Empty))?)
    }
}

/// A copy to be added. See [`Graph::copy`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct CopyNode<'g> {
    graph: &'g Graph,
    after: After,
    src: Region,
    dst: Region,
}

impl CopyNode<'_> {
    after_methods!();

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::SizeMismatch`], [`BuildCause::Overlap`], [`BuildCause::OtherContext`], and those of
    /// [`EmptyNode::add`].
    pub fn add(self) -> Result<Node> {
        let Self { graph, after, src, dst } = self;
        let check = |_: &State| {
            graph.check_context(&src, "the source")?;
            graph.check_context(&dst, "the destination")?;
            same_size(("the source", src.size), ("the destination", dst.size))?;
            check_overlap(&src, &dst)
        };
        Ok(graph.insert(&|| "copy".to_owned(), &after, check, |state, (), accesses| {
            accesses.push(state.access(&src, Mode::Read));
            accesses.push(state.access(&dst, Mode::Write));
            Some(Op::Copy { src: place(state, &src), dst: place(state, &dst), size: src.size })
        })?)
    }
}

/// A fill to be added. See [`Graph::fill`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct FillNode<'g> {
    graph: &'g Graph,
    after: After,
    dst: Region,
    pattern: Vec<u8>,
}

impl FillNode<'_> {
    after_methods!();

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::PatternSize`], [`BuildCause::PatternRange`], [`BuildCause::OtherContext`], and those of
    /// [`EmptyNode::add`].
    pub fn add(self) -> Result<Node> {
        let Self { graph, after, dst, pattern } = self;
        let check = |_: &State| {
            graph.check_context(&dst, "the destination")?;
            // "pattern_size ... must be one of { 1, 2, 4, 8, 16, 32, 64, 128 }" (OpenCL 3.0, clEnqueueFillBuffer).
            if !(pattern.len().is_power_of_two() && pattern.len() <= 128) {
                return Err(BuildCause::PatternSize { size: pattern.len() });
            }
            if dst.offset % pattern.len() != 0 || dst.size % pattern.len() != 0 {
                let [offset, len, pattern] = [dst.offset, dst.size, pattern.len()].map(|size| size as u64);
                return Err(BuildCause::PatternRange { offset, len, pattern });
            }
            Ok(())
        };
        Ok(graph.insert(&|| "fill".to_owned(), &after, check, |state, (), accesses| {
            accesses.push(state.access(&dst, Mode::Write));
            let pattern = state.ir.push_bytes(&pattern)?;
            Some(Op::Fill { dst: place(state, &dst), size: dst.size, pattern })
        })?)
    }
}

/// A host write to be added. See [`Graph::write`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct WriteNode<'g, T> {
    graph: &'g Graph,
    after: After,
    dst: Region,
    data: HostBytes,
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
        let Self { graph, after, dst, data, element } = self;
        let check = |_: &State| {
            graph.check_context(&dst, "the destination")?;
            same_size(("the data", data.len()), ("the destination", dst.size))?;
            forbid(&dst, CL_MEM_HOST_NO_ACCESS, "CL_MEM_HOST_NO_ACCESS", "a host write")?;
            forbid(&dst, CL_MEM_HOST_READ_ONLY, "CL_MEM_HOST_READ_ONLY", "a host write")
        };
        let node = graph.insert(&|| "host write".to_owned(), &after, check, |state, (), accesses| {
            accesses.push(state.access(&dst, Mode::Write));
            let (dst, size, id) = (place(state, &dst), dst.size, DataId(state.ir.data));
            state.ir.data = id.0.checked_add(1)?;
            state.data.push(data.clone());
            Some(Op::Write { dst, size, data: id })
        })?;
        Ok(HostWrite { node, element })
    }
}

/// A host read to be added. See [`Graph::read`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct ReadNode<'g, T> {
    graph: &'g Graph,
    after: After,
    src: Region,
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
        let Self { graph, after, src, element } = self;
        let check = |_: &State| {
            graph.check_context(&src, "the source")?;
            if align_of::<T>() > Slot::ALIGN {
                return Err(BuildCause::NotSupported {
                    what: format!("reading elements aligned to {} bytes", align_of::<T>()),
                    why: format!("results are aligned to {}, the most that OpenCL types need: read bytes", Slot::ALIGN),
                });
            }
            forbid(&src, CL_MEM_HOST_NO_ACCESS, "CL_MEM_HOST_NO_ACCESS", "a host read")?;
            forbid(&src, CL_MEM_HOST_WRITE_ONLY, "CL_MEM_HOST_WRITE_ONLY", "a host read")
        };
        let node = graph.insert(&|| "host read".to_owned(), &after, check, |state, (), accesses| {
            accesses.push(state.access(&src, Mode::Read));
            let (size, id) = (src.size, ResultId(state.ir.results));
            let src = place(state, &src);
            state.ir.results = id.0.checked_add(1)?;
            state.results.push(size);
            Some(Op::Read { src, size, result: id })
        })?;
        Ok(HostRead { node, element })
    }
}

/// A host write in a graph: stands for its node, and for its input at a submission.
pub struct HostWrite<T> {
    node: Node,
    element: PhantomData<fn() -> T>,
}

/// A host read in a graph: stands for its node, and for its result of a submission.
pub struct HostRead<T> {
    node: Node,
    element: PhantomData<fn() -> T>,
}

macro_rules! node_handle {
    ($name:ident) => {
        impl<T> $name<T> {
            /// The node.
            #[must_use]
            pub fn node(&self) -> Node {
                self.node
            }
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $name<T> {}

        impl<T> std::fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({})", stringify!($name), self.node)
            }
        }

        impl<T> Nodes for $name<T> {
            fn for_each_node(&self, each: &mut dyn FnMut(Node)) {
                each(self.node);
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

impl Graph {
    pub(super) fn check_context(&self, region: &Region, what: &str) -> Result<(), BuildCause> {
        if region.mem.context() == self.context() {
            Ok(())
        } else {
            Err(BuildCause::OtherContext { what: what.to_owned() })
        }
    }
}

pub(super) fn forbid(region: &Region, bit: u64, flag: &'static str, access: &'static str) -> Result<(), BuildCause> {
    if region.mem.flags() & bit == 0 { Ok(()) } else { Err(BuildCause::AccessForbidden { flag, access }) }
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
        return Err(BuildCause::Overlap { src: format!("{a:?}"), dst: format!("{b:?}") });
    }
    Ok(())
}

fn place(state: &mut State, region: &Region) -> Place {
    Place { view: state.view(&region.mem), offset: region.offset }
}
