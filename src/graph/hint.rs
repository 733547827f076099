//! Hints on memory: where it is wanted next, and how it is going to be used.

use super::request::{Request, Target};
use super::tables::Writer;
use super::transfer::place;
use super::{After, Graph, Node, after_methods};
use crate::cl::buffer::{AsRegion, Region};
use crate::error::{BuildCause, Result};
use crate::ir::{Access, Hint, Mode, Op};

impl Graph {
    /// Starts a prefetch: the memory is wanted on the device soon.
    ///
    /// A hint: its nodes wait as those that read do, and a driver that does not take it does nothing. Of a buffer, all of it
    /// is moved.
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

    /// Starts a prefetch: the memory is wanted on the host soon. A hint, as [`prefetch`](Self::prefetch).
    pub fn prefetch_to_host<T>(&self, memory: &impl AsRegion<T>) -> HintNode<'_> {
        self.hint(memory.region(), Hint::ToHost)
    }

    /// Starts a node that tells the driver how memory is going to be used, by a `cl_mem_advice_intel` of its own.
    ///
    /// A hint, as [`prefetch`](Self::prefetch). Only USM has it; for other memory it does nothing.
    #[doc(alias = "clEnqueueMemAdviseINTEL")]
    pub fn advise<T>(&self, memory: &impl AsRegion<T>, advice: u32) -> HintNode<'_> {
        self.hint(memory.region(), Hint::Advice(advice))
    }

    fn hint(&self, of: Region, hint: Hint) -> HintNode<'_> {
        HintNode { graph: self, after: After::default(), given: Given { of, hint } }
    }
}

/// A hint to be added. See [`Graph::prefetch`] and [`Graph::advise`].
#[derive(Debug)]
#[must_use = "a node is not in the graph until `add` is called"]
pub struct HintNode<'g> {
    graph: &'g Graph,
    after: After,
    given: Given,
}

impl HintNode<'_> {
    after_methods!();

    /// Adds the node.
    ///
    /// # Errors
    /// Those of [`EmptyNode::add`](super::EmptyNode::add).
    pub fn add(self) -> Result<Node> {
        Ok(self.graph.insert(self.given, &self.after)?)
    }

    /// Puts the hint in the place of a hint. Edges stay, and executables follow when they are updated.
    ///
    /// # Errors
    /// Those of [`add`](Self::add), and those of [`CopyNode::replace`](super::CopyNode::replace): nothing changed.
    pub fn replace(self, node: Node) -> Result<()> {
        self.graph.replace(node, self.given, &self.after)
    }
}

/// A hint on some memory.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) of: Region,
    pub(crate) hint: Hint,
}

impl Request for Given {
    type Checked = ();

    fn subject(&self) -> String {
        if matches!(self.hint, Hint::Advice(_)) { "advice" } else { "prefetch" }.to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        target.check_context(&self.of, "the memory")
    }

    fn lower(self, (): (), state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        let Self { of, hint } = self;
        accesses.push(state.access(&of, Mode::Read));
        Some(Op::Hint { of: place(state, &of), size: of.size, hint })
    }
}
