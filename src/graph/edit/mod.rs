//! Changes of nodes that are in a graph, or in an executable's tables: other values, never other edges.
//!
//! Input: a node with a request or a range, or the tables of another graph. Output: changed tables, and a log that can
//! undo the change. The same code serves a graph (`replace`, `set_nd_range`, parameters) and an update of an
//! executable.
//!
//! | file | what is there |
//! |---|---|
//! | `change.rs` | changes of a graph: ranges, parameters, other commands in the place of nodes. Read it first |
//! | `assign.rs` | one node gets the values of another node, what an update can change at all |
//! | `argument.rs` | one argument of a kernel node |
//! | `undo.rs` | the log of an edit: the values that it has overwritten, and how they are restored |
//!
//! Invariants: an edit is applied completely, or undone completely. Edges never change (rule P6). The objects that an
//! edit replaces are returned to the caller, who drops them when no lock is held. Rules: P2, P3, P5 to P8, U4, U5, U8.

mod argument;
pub(crate) mod assign;
pub(in crate::graph) mod change;
pub(crate) mod undo;
