//! Requests. A request is a command with everything that belongs to it, on its way into a graph or to the driver.

use std::fmt::Display;

use crate::cl::objects::buffer::Region;
use crate::cl::objects::context::Context;
use crate::cl::objects::device::Device;
use crate::error::BuildCause;
use crate::graph::tables::{UseHandle, Writer};
use crate::graph::{Graph, State};
use crate::handles::GraphId;
use crate::ir::{Access, Op};

/// A command that graphs and queues accept.
pub(crate) trait Request {
    /// The results of the checks that later steps need.
    type Checked;

    /// The kind and name of the command, for error texts.
    fn subject(&self) -> String;

    /// Checks everything that does not depend on a graph. It changes nothing.
    fn check(&self, target: &Target<'_>) -> Result<Self::Checked, BuildCause>;

    /// Checks what depends on the graph, and updates the state that is shared in the graph.
    fn prepare(&self, _: &Graph, _: &mut State) -> Result<(), BuildCause> {
        Ok(())
    }

    /// The exclusive uses of the executables that the command runs. Commands that run the same executable run one after
    /// another.
    fn uses(&self) -> &[UseHandle] {
        &[]
    }

    /// Writes the command and its memory accesses into the tables of a graph. Returns `None` when a table is full.
    fn lower(self, checked: Self::Checked, state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op>;
}

/// The context, device and graph that a command is checked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) context: &'a Context,
    pub(crate) device: &'a Device,
    /// The graph that the command is added to, or `None` if it is executed at once.
    pub(crate) graph: Option<GraphId>,
}

impl Target<'_> {
    pub(in crate::graph) fn check_context(&self, region: &Region, what: impl Display) -> Result<(), BuildCause> {
        if region.mem.context() != self.context {
            return Err(BuildCause::OtherContext { what: what.to_string() });
        }
        if region.mem.is_buffer() {
            return Ok(());
        }
        if let Some(allocation) = region.mem.graph_allocation()
            && self.graph.is_none_or(|graph| allocation.graph() != Some(graph.number()))
        {
            let what = what.to_string();
            let by = if self.graph.is_some() { "in another graph" } else { "by a queue that executes" };
            return Err(BuildCause::GraphMemory { what, by });
        }
        let Some(allocation) = region.mem.allocation() else { return Ok(()) };
        allocation.check_device(self.device).map_err(|why| BuildCause::NotSupported { what: what.to_string(), why })
    }
}
