//! An executable as a node.

use super::request::{Request, Target};
use super::tables::{Child, Turns, Writer};
use crate::cl::context::Context;
use crate::cl::device::Device;
use crate::error::BuildCause;
use crate::ir::{Access, ChildId, Op};

/// All commands of an executable, between its roots and its leaves.
#[derive(Clone, Debug)]
pub(crate) struct SubGraph {
    pub(crate) context: Context,
    pub(crate) device: Device,
    pub(crate) child: Child,
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

    fn uses(&self) -> &[Turns] {
        &self.child.turns
    }

    fn lower(self, (): (), to: &mut Writer<'_>, accesses: &mut Vec<Access>) -> Option<Op> {
        let flat = self.child.of.flat();
        for access in flat.footprint() {
            let view = to.view(flat.tables.mem(access.view)?);
            to.keep(view);
            accesses.push(Access { view, ..access.clone() });
        }
        let child = ChildId(u32::try_from(to.children.len()).ok()?);
        to.children.push(self.child);
        Some(Op::SubGraph(child))
    }
}
