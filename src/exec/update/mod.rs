//! Updating an executable: new values for later submissions, all of them or none.
//!
//! Nodes, a list of nodes, or a whole graph with new values come in; the values and command buffers of the executable
//! change. An update never waits for submissions, and never reaches a submission that was made before it.
//!
//! Read `transaction.rs` first. It edits the executable's tables with a log that can undo the edit
//! (`graph/edit/assign.rs`, `graph/edit/undo.rs`), looks for conflicts, replaces or changes kernel objects, and then
//! has `apply.rs` change the command buffers.
//!
//! | file | what is there |
//! |---|---|
//! | `transaction.rs` | the steps of an update, and going back when one fails |
//! | `apply.rs` | command buffers: changed in place where the driver can, recorded again where it cannot |
//! | `updatable.rs` | what an executable keeps from finalize so that it can be updated |
//! | `update_plan.rs` | the short way for a list of nodes that comes again: values go straight to their places |
//!
//! What holds here: an update is made, or it was never there. Arguments change only of kernel objects that nothing else
//! has. If even going back fails, the command buffers are given up and everything is replayed. Rules: U1 to U9.

pub(in crate::exec) mod apply;
pub(in crate::exec) mod transaction;
pub(in crate::exec) mod updatable;
pub(in crate::exec) mod update_plan;
