//! A request: a command with all that belongs to it, wherever it goes: into a graph, or to the driver at once.

use std::fmt::Display;

use super::tables::{Turns, Writer};
use super::{Graph, GraphId, State};
use crate::cl::buffer::Region;
use crate::cl::context::Context;
use crate::cl::device::Device;
use crate::error::BuildCause;
use crate::ir::{Access, Op};

/// What graphs and queues take.
pub(crate) trait Request {
    /// What the checks found out.
    type Checked;

    /// Its kind and name, for error texts.
    fn subject(&self) -> String;

    /// Finds everything that could be wrong, and changes nothing.
    fn check(&self, target: &Target<'_>) -> Result<Self::Checked, BuildCause>;

    /// Finds what could be wrong with it in this graph, and brings what is shared there up to date.
    fn prepare(&self, _: &Graph, _: &mut State) -> Result<(), BuildCause> {
        Ok(())
    }

    /// The executables that it runs, whose uses follow each other.
    fn uses(&self) -> &[Turns] {
        &[]
    }

    /// Writes it into a graph's tables, with the memory that it uses. `None` when a table is full.
    fn lower(self, checked: Self::Checked, state: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op>;
}

/// For whom a command is checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) context: &'a Context,
    pub(crate) device: &'a Device,
    /// The graph that it goes into, if it does not run at once.
    pub(crate) graph: Option<GraphId>,
}

impl Target<'_> {
    pub(super) fn check_context(&self, region: &Region, what: impl Display) -> Result<(), BuildCause> {
        if region.mem.context() != self.context {
            return Err(BuildCause::OtherContext { what: what.to_string() });
        }
        if region.mem.is_buffer() {
            return Ok(());
        }
        if let Some(promise) = region.mem.promise()
            && self.graph.is_none_or(|graph| promise.graph() != Some(graph.number()))
        {
            let what = what.to_string();
            let by = if self.graph.is_some() { "in another graph" } else { "by a queue that executes" };
            return Err(BuildCause::GraphMemory { what, by });
        }
        let Some(allocation) = region.mem.allocation() else { return Ok(()) };
        allocation.check_device(self.device).map_err(|why| BuildCause::NotSupported { what: what.to_string(), why })
    }
}
