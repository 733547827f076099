//! Changes of nodes that are in a graph, or in an executable's tables: other values, never other edges.
//!
//! A node and a request, a range, or another graph's tables come in. The tables change, with a log that can undo the
//! change. The same code serves a graph (`replace`, `set_nd_range`, parameters) and an update of an executable.
//!
//! | file | what is there |
//! |---|---|
//! | `change.rs` | changes of a graph: ranges, parameters, other commands in the place of nodes. Read it first |
//! | `assign.rs` | one node gets the values of another node, `Op` by `Op`: what an update can change at all |
//! | `undo.rs` | the log of an edit: what it has overwritten, and how that comes back |
//!
//! What holds here: an edit is complete, or it is undone completely. Edges never change (rule P6). What an edit
//! displaces is returned to the caller, who drops it where no lock is held. Rules: P2, P3, P5 to P8, U4, U5, U8.

pub(crate) mod assign;
pub(in crate::graph) mod change;
pub(crate) mod undo;
