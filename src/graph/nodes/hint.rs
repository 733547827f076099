//! Hints on memory: where it is needed next, and how it is going to be used.

use crate::cl::memory::region::{AsRegion, Region};
use crate::command::{Command, Hint};
use crate::error::{BuildCause, Result};
use crate::graph::nodes::request::{CommandRequest, Request, Requested, Target};
use crate::graph::writer::Writer;
use crate::graph::{After, Graph, after_methods};
use crate::handles::Node;
use crate::ir::{Access, ById, Mode};

impl Graph {
    /// Starts a prefetch: a hint to the driver that memory is needed on the device soon.
    ///
    /// The node waits like a node that reads the memory. A driver that does not support the hint does nothing. A
    /// prefetch of a part of a buffer moves the whole buffer.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Finalize, Graph, Memory, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// # let memory = Memory::<u32>::new(&queue, 4)?;
    /// let graph = Graph::new(&queue)?;
    /// graph.prefetch(&memory).add()?;
    /// graph.fill(&memory, 1).add()?;
    /// graph.prefetch_to_host(&memory).add()?;
    /// graph.finalize(Finalize::new())?.submit(&queue)?.wait()?;
    /// # Ok(()) }
    /// ```
    #[doc(alias = "clEnqueueMigrateMemObjects")]
    #[doc(alias = "clEnqueueSVMMigrateMem")]
    #[doc(alias = "clEnqueueMigrateMemINTEL")]
    pub fn prefetch<T>(&self, memory: &impl AsRegion<T>) -> HintNode<'_> {
        self.hint(memory.region(), Hint::ToDevice)
    }

    /// Starts a hint to the driver that memory is needed on the host soon. Otherwise as [`prefetch`](Self::prefetch).
    pub fn prefetch_to_host<T>(&self, memory: &impl AsRegion<T>) -> HintNode<'_> {
        self.hint(memory.region(), Hint::ToHost)
    }

    /// Starts a hint to the driver on how memory is going to be used, by a `cl_mem_advice_intel` value of that driver.
    ///
    /// Otherwise as [`prefetch`](Self::prefetch). Only USM supports the hint; for other memory it does nothing.
    #[doc(alias = "clEnqueueMemAdviseINTEL")]
    pub fn advise<T>(&self, memory: &impl AsRegion<T>, advice: u32) -> HintNode<'_> {
        self.hint(memory.region(), Hint::Advice(advice))
    }

    fn hint(&self, of: Region, hint: Hint) -> HintNode<'_> {
        HintNode { graph: self, after: After::default(), given: HintRequest { of, hint } }
    }
}

/// A hint to be added. See [`Graph::prefetch`] and [`Graph::advise`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct HintNode<'g> {
    graph: &'g Graph,
    after: After,
    given: HintRequest,
}

impl HintNode<'_> {
    after_methods!();

    /// Adds the node.
    ///
    /// # Errors
    /// Those of [`EmptyNode::add`](crate::graph::EmptyNode::add).
    pub fn add(self) -> Result<Node> {
        Ok(self.graph.insert(self.given, &self.after)?)
    }

    /// Replaces a hint node by this hint. Edges stay, and executables get the change when they are updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and those of [`CopyNode::replace`](crate::graph::CopyNode::replace). After an error
    /// nothing has changed.
    pub fn replace(self, node: Node) -> Result<()> {
        self.graph.replace(node, self.given, &self.after)
    }
}

/// A hint on some memory, as a request.
#[derive(Clone, Debug)]
pub(crate) struct HintRequest {
    pub(crate) of: Region,
    pub(crate) hint: Hint,
}

impl Request for HintRequest {
    type Checked = ();

    fn subject(&self) -> String {
        if matches!(self.hint, Hint::Advice(_)) { "advice" } else { "prefetch" }.to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        target.check_context(&self.of, "the memory")
    }

    fn lower(self, checked: Self::Checked, to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        self.command(checked).lower(to, accesses)
    }
}

impl CommandRequest for HintRequest {
    fn command(self, (): ()) -> Requested {
        let Self { of, hint } = self;
        let command = Command::Hint { of: of.location(), size: of.size, hint };
        Requested::new(command, [(of, Mode::Read)])
    }
}
