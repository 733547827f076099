//! Finalize: from a graph to an executable.
//!
//! Input: a graph's tables and the options of [`Finalize`](crate::Finalize). Output: an
//! [`Executable`](crate::Executable): a plan, memory for the graph's own allocations, kernel objects with their
//! arguments set, and command buffers for the commands that the driver records.
//!
//! Read `finalize.rs` first, from `Graph::finalize` on. In order, it inlines sub-graphs (`lower/inline.rs`), unrolls
//! short loops (`lower/unroll.rs`), asks the planner (`plan/mod.rs`), places memory, makes kernel objects, and records. If the driver refuses to record a node,
//! the planner is asked again without that node. After the fourth refusal nothing is recorded.
//!
//! | file | what is there |
//! |---|---|
//! | `options.rs` | the public `Finalize`: what a program asks for, and what the environment asks for |
//! | `finalize.rs` | the steps of finalize |
//! | `arena.rs` | the memory of an executable, in place of the graph's own allocations |
//! | `values.rs` | the current values of an executable: tables and kernel objects |
//! | `device_loops.rs` | the loops whose turns a fused kernel does |
//! | `guards.rs` | the loops whose turns can go ahead of their condition, and the guarded kernels of their bodies |
//! | `fuse.rs` | which launches one kernel does, and these kernels |
//! | `fused_tier.rs` | the fused form of an executable that is in use, built in the background |
//! | `prepare.rs` | what comes after the passes: plan, memory, kernel objects, command buffers |
//! | `loops.rs` | which loops are unrolled, how the others run, and how turns are counted |
//! | `record.rs` | native segments of a plan as command buffers, one set for each set of queue properties |
//!
//! Invariants: an executable's values are in one place, `values.rs`. Launches with different argument values have
//! different kernel objects. A command buffer holds the kernel objects that it names. Rules: F1 to F6, M3 to M5, M9.

pub(in crate::exec) mod arena;
pub(in crate::exec) mod device_loops;
pub(in crate::exec) mod finalize;
pub(in crate::exec) mod fuse;
mod fused_tier;
pub(in crate::exec) mod guards;
pub(in crate::exec) mod loops;
pub(in crate::exec) mod options;
mod prepare;
pub(in crate::exec) mod record;
pub(in crate::exec) mod values;
