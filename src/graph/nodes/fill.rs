//! Fills: by OpenCL's command where it has one, and otherwise by the kernel that copies.

use crate::cl::memory::host::Element;
use crate::cl::memory::region::{AsDestination, AsRegion, Region};
use crate::cl::objects::buffer::Buffer;
use crate::command::Command;
use crate::error::{BuildCause, Error, MemoryError, Result};
use crate::graph::nodes::copier;
use crate::graph::nodes::launch::CheckedLaunch;
use crate::graph::nodes::request::{CommandRequest, Request, Requested, Target};
use crate::graph::writer::Writer;
use crate::graph::{After, Graph, after_methods};
use crate::handles::Node;
use crate::ir::{Access, ById, Mode};

impl Graph {
    /// Starts a fill: every element of the destination becomes `value`.
    ///
    /// An empty destination is valid for fills and copies; the node still orders other nodes. OpenCL has a command for
    /// values of 1, 2, 4, 8, 16, 32, 64 or 128 bytes that start at a multiple of their size. Any other fill is done by
    /// a kernel of clgraph, and [`Graph::kind`] returns [`NodeKind::Kernel`](crate::NodeKind::Kernel).
    ///
    /// ```
    /// # use clgraph::{Buffer, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let points = Buffer::<[f32; 3]>::new(&queue, 100)?;
    /// let graph = Graph::new(&queue)?;
    /// graph.fill(&points, [0.0, 1.0, 2.0]).add()?;
    /// graph.finalize(Finalize::new())?.submit(&queue)?.wait()?;
    /// # Ok::<(), clgraph::Error>(())
    /// ```
    #[doc(alias = "clEnqueueFillBuffer")]
    #[doc(alias = "clEnqueueSVMMemFill")]
    #[doc(alias = "clEnqueueMemFillINTEL")]
    #[doc(alias("cudaGraphAddMemsetNode", "clCommandFillBufferKHR", "clCommandSVMMemFillKHR", "memset"))]
    pub fn fill<T: Element>(&self, dst: &impl AsDestination<T>, value: T) -> FillNode<'_> {
        self.fill_pattern(dst, &[value])
    }

    /// Starts a fill of memory with a pattern of several elements, which is repeated. The number of elements of the
    /// memory is a multiple of that of the pattern. Otherwise as [`fill`](Self::fill).
    ///
    /// ```
    /// # use clgraph::{Buffer, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let bytes = Buffer::<u8>::new(&queue, 6)?;
    /// let graph = Graph::new(&queue)?;
    /// graph.fill_pattern(&bytes, &[1, 2, 3]).add()?;
    /// let result = graph.read(&bytes).add()?;
    /// let run = graph.finalize(Finalize::new())?.submit(&queue)?;
    /// run.wait()?;
    /// assert_eq!(*run.get(&result)?, [1, 2, 3, 1, 2, 3]);
    /// # Ok::<(), clgraph::Error>(())
    /// ```
    pub fn fill_pattern<T: Element>(&self, dst: &impl AsDestination<T>, pattern: &[T]) -> FillNode<'_> {
        let pattern = bytemuck::cast_slice(pattern).to_vec();
        FillNode { graph: self, after: After::default(), fill: Fill { dst: dst.region(), pattern } }
    }
}

/// A fill to be added. See [`Graph::fill`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct FillNode<'g> {
    graph: &'g Graph,
    after: After,
    fill: Fill,
}

impl FillNode<'_> {
    after_methods!();

    /// Adds the node.
    ///
    /// # Errors
    /// [`BuildCause::EmptyPattern`], [`BuildCause::PatternRange`], [`BuildCause::OtherContext`], and those of
    /// [`EmptyNode::add`](crate::EmptyNode::add); if a kernel does the fill, also [`BuildCause::CopyKernel`] and
    /// [`BuildCause::Driver`].
    pub fn add(self) -> Result<Node> {
        Ok(self.graph.insert(self.fill, &self.after)?)
    }

    /// Replaces a fill node by this fill: destination, size, and a pattern of the same number of bytes.
    ///
    /// Edges stay, and executables get the change when they are updated. A fill by OpenCL's command can only replace
    /// another such fill, and a fill by a kernel only another fill by a kernel.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and those of [`CopyNode::replace`](crate::CopyNode::replace). After an error
    /// nothing has changed.
    pub fn replace(self, node: Node) -> Result<()> {
        self.graph.replace(node, self.fill, &self.after)
    }
}

/// A fill of a range with a pattern, as a request.
#[derive(Clone, Debug)]
pub(crate) struct Fill {
    pub(crate) dst: Region,
    pub(crate) pattern: Vec<u8>,
}

impl Request for Fill {
    /// The launch that does the fill where OpenCL has no command.
    type Checked = Option<Box<CheckedLaunch>>;

    fn subject(&self) -> String {
        "fill".to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<Self::Checked, BuildCause> {
        let Self { dst, pattern } = self;
        target.check_context(dst, "the destination")?;
        if pattern.is_empty() {
            return Err(BuildCause::EmptyPattern);
        }
        if dst.size % pattern.len() != 0 {
            return Err(BuildCause::PatternRange { len: dst.size as u64, pattern: pattern.len() as u64 });
        }
        // "pattern_size ... must be one of { 1, 2, 4, 8, 16, 32, 64, 128 }", and "offset ... must be a multiple of
        // pattern_size" (OpenCL 3.0, clEnqueueFillBuffer); "svm_ptr ... must be aligned to pattern_size bytes"
        // (clEnqueueSVMMemFill).
        let start = if dst.mem.kind().is_pointer() { dst.mem.base() } else { 0 };
        let is_command = pattern.len().is_power_of_two()
            && pattern.len() <= 128
            && start.wrapping_add(dst.offset).is_multiple_of(pattern.len());
        if is_command || dst.size == 0 {
            return Ok(None);
        }
        // A copy of one row, which is the pattern, repeated over the range.
        let row = Buffer::<u8>::from_slice(target.context, pattern).map_err(|error| match error {
            Error::Memory(MemoryError::Driver(error)) | Error::Driver(error) => BuildCause::Driver(error),
            error => BuildCause::NotSupported { what: "this fill".to_owned(), why: error.to_string() },
        })?;
        let src = copier::CopySide { region: row.region(), row: 0, slice: 0 };
        let dst = copier::CopySide { region: dst.clone(), row: pattern.len(), slice: 0 };
        let launch = copier::launch(target, &src, &dst, [pattern.len(), dst.region.size / pattern.len(), 1])?;
        Ok(Some(Box::new(launch.checked(target)?)))
    }

    fn lower(self, checked: Self::Checked, to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        self.command(checked).lower(to, accesses)
    }
}

impl CommandRequest for Fill {
    fn command(self, checked: Self::Checked) -> Requested {
        if let Some(launch) = checked {
            return Requested::launch(launch);
        }
        let Self { dst, pattern } = self;
        let command = Command::Fill { dst: dst.location(), size: dst.size, pattern, area: None };
        Requested::new(command, [(dst, Mode::Write)])
    }
}
