//! Updates of recorded bodies, which come with updates of the graph around them.

use crate::command::Command;
use crate::error::{Error, Result, UpdateError};
use crate::exec::executable::Inner;
use crate::handles::Node;
use crate::ir::{Ir, NodeId};

impl Inner {
    /// Gives a recorded body what its graph has now; those inside of it have it already. The program may have that graph, and may have
    /// added nodes.
    pub(in crate::exec) fn update_recorded(&self) -> Result<()> {
        let Some(updatable) = self.fixed.updatable.as_ref() else { return Ok(()) };
        loop {
            let (mut ids, seen) = self.begin_update();
            let is_fixed = |ir: &Ir, id: &NodeId| matches!(ir.command(*id), Command::Alloc(_) | Command::Free(_));
            let state = updatable.state.lock();
            ids.extend((0..updatable.len() as u32).map(NodeId).filter(|id| !is_fixed(&state.ir, id)));
            drop(state);
            let outcome = self.update_nodes(updatable, &ids, false, seen);
            self.keep_ids(ids);
            if let Some(done) = outcome? {
                return self.release_replaced(done);
            }
        }
    }
}

/// The error of a value that does not fit a recorded body, of which the program knows only the node that it is in.
pub(in crate::exec::update) fn of_body(error: Error, node: Node) -> Error {
    match error {
        Error::Update(UpdateError::Node { cause, .. }) => UpdateError::Node { node, cause }.into(),
        other => other,
    }
}
