//! Updating an executable: new values for later submissions, all of them or none.
//!
//! Input: a node, a list of nodes, or a whole graph with new values. Output: the values and command buffers of the
//! executable are changed. An update never waits for submissions, and never reaches a submission that was made before
//! it.
//!
//! Read `transaction.rs` first. It edits the executable's tables with a log that can undo the edit
//! (`graph/edit/assign.rs`, `graph/edit/undo.rs`), looks for conflicts, replaces or changes kernel objects, and then
//! calls `apply.rs` to change the command buffers.
//!
//! | file | what is there |
//! |---|---|
//! | `transaction.rs` | the steps of an update, and how they are undone if one of them fails |
//! | `apply.rs` | command buffers: changed in place where the driver can, recorded again where it cannot |
//! | `conflicts.rs` | memory that an update would make several nodes use without an order |
//! | `updatable.rs` | what an executable keeps from finalize so that it can be updated |
//! | `direct.rs`, `destinations.rs` | updates that change nothing but values: where each value goes is known since finalize |
//! | `following.rs` | how a fused form gets what an update has changed, and when it cannot |
//! | `recorded.rs` | recorded bodies, which are updated with the graph around them |
//! | `editing.rs` | what one update leaves for the next |
//!
//! Invariants: an update is applied completely or not at all. The arguments of a kernel object change only if nothing
//! else uses the object. If undoing fails as well, the command buffers are discarded and everything is replayed. Rules:
//! U1 to U9.

pub(in crate::exec) mod apply;
mod conflicts;
pub(in crate::exec) mod destinations;
mod direct;
pub(in crate::exec) mod editing;
pub(in crate::exec) mod following;
mod recorded;
pub(in crate::exec) mod transaction;
pub(in crate::exec) mod updatable;
