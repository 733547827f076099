//! What finalize decided and what submissions took, as data, text and pictures.
//!
//! Input: the plan, the tables and the events of profiled submissions. Output: reports, profiles, traces, SVG files and
//! dumps. Nothing here changes an executable.
//!
//! | file | what is there |
//! |---|---|
//! | `summary.rs` | the public `Report`: segments, memory, edges, warnings, autotuner. Read it first |
//! | `drawing.rs` | an executable as SVG: what runs where, and how long |
//! | `memory_map.rs` | a picture of the graph's own memory: when each allocation lives, and at which bytes |
//! | `profile.rs` | the times of a submission and of each of its nodes |
//! | `trace.rs` | profiles as a trace for Chrome and Perfetto |
//! | `dump.rs` | `CLGRAPH_DUMP`: the files that each finalize writes |
//!
//! How boxes and arrows are drawn is in `drawing/mod.rs`; what a node looks like is in `graph/drawing.rs`. Rules: F1,
//! M3 and Q1 to Q3.

pub(in crate::exec) mod drawing;
pub(in crate::exec) mod dump;
pub(in crate::exec) mod memory_map;
pub(in crate::exec) mod profile;
pub(in crate::exec) mod summary;
pub(in crate::exec) mod trace;
