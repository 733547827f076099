//! An executable as a node of another graph.

use crate::cl::objects::context::Context;
use crate::cl::objects::device::Device;
use crate::command::Command;
use crate::error::BuildCause;
use crate::graph::flat::Flat;
use crate::graph::nodes::request::{Request, Target};
use crate::graph::tables::{Child, UseHandle};
use crate::graph::writer::Writer;
use crate::ir::{Access, ById};

/// An executable as a request: all of its commands, between the nodes before and after it.
#[derive(Clone, Debug)]
pub(crate) struct SubGraph {
    pub(crate) context: Context,
    pub(crate) device: Device,
    pub(crate) child: Child,
    /// What it runs, as the executable was when the request was made.
    pub(crate) flat: Flat,
}

impl Request for SubGraph {
    type Checked = ();

    fn subject(&self) -> String {
        "sub-graph".to_owned()
    }

    fn check(&self, target: &Target<'_>) -> Result<(), BuildCause> {
        if self.context != *target.context {
            return Err(BuildCause::OtherContext { what: "the executable".to_owned() });
        }
        if self.device != *target.device {
            let (device, graph_device) = (self.device.name().to_owned(), target.device.name().to_owned());
            return Err(BuildCause::OtherDevice { what: "the executable", device, graph_device });
        }
        Ok(())
    }

    fn uses(&self) -> &[UseHandle] {
        &self.child.exclusive
    }

    fn lower(self, (): (), to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Command<ById>> {
        let flat = self.flat;
        for access in flat.footprint() {
            let view = to.view(flat.tables.mem(access.view)?);
            to.keep(view);
            accesses.push(Access { view, ..access.clone() });
        }
        to.child(self.child).map(Command::SubGraph)
    }
}
