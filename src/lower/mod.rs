//! Lowering: passes that make another graph of a graph, before anything is planned.
//!
//! Input and output: graphs as plain data ([`Ir`]). A pass neither sees nor makes an OpenCL object. Where a node that it
//! writes needs one, it asks for its number through [`Output`], which the owner of the objects implements: `graph/flat.rs`.
//! Fusing returns what each new node is made of, and `exec/build/fuse.rs` makes its kernel.
//!
//! | file | what is there |
//! |---|---|
//! | `mod.rs` | [`Output`], the graph that a pass makes |
//! | `inline.rs` | the pass that replaces sub-graphs, and the bodies of branches and loops, by their nodes |
//! | `unroll.rs` | the pass that replaces short loops with a known number of turns by their turns |
//! | `fuse.rs` | the pass that puts one node in the place of launches that one kernel does |
//! | `fuse_tests.rs`, `lane_tests.rs`, `promise_tests.rs`, `table_tests.rs`, `together_tests.rs` | its tests |
//! | `checked.rs` | the pass that has the host do launches whose promises are checked |
//! | `elementwise.rs` | which launches each work-item may do on its own, one after the other |
//! | `tests.rs` | graphs as text before and after a pass, without a device |
//!
//! `CLGRAPH_DUMP` writes the graph as text (`ir/text.rs`) as it was built, and after each pass, or a line that the pass
//! changes nothing. A new pass gets a line in `exec/build/finalize.rs`, where the graphs are at hand.
//!
//! Memory of the graph is placed by the planner, because what may share bytes depends on its order and on its streams
//! (`plan/graph_memory.rs`), and is put into a copy of the flat graph (`exec/build/arena.rs`). The dump shows that as a pass too.
//!
//! Invariants: a pass changes no graph that it reads, and recurses over none. Rules: N1 to N3.

mod checked;
mod elementwise;
mod fuse;
#[cfg(test)]
mod fuse_tests;
mod inline;
#[cfg(test)]
mod lane_tests;
#[cfg(test)]
mod promise_tests;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod together_tests;
mod unroll;

pub(crate) use checked::{checked, unchecked};
pub(crate) use elementwise::Uses;
pub use fuse::WhyApart;
pub(crate) use fuse::{
    BYTES, Chain, Chains, Cut, EachItem, Fused, Limits, MOST_ROUNDS, Need, Order, Piece, Pointer, Together, Waiting,
    chains, writes_otherwise,
};
pub(crate) use inline::{OWN, Origin, inline, translate};
#[cfg(test)]
pub(crate) use unroll::Repeat;
pub(crate) use unroll::{Stays, Unrolled, UnrolledAt, repeats, unroll};

use crate::ir::{ChildId, DataId, ExternalId, Ir, KernelId, NativeId, NodeId, ResultId, SamplerId, TaskId, ViewId};

/// Where a pass reads from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    /// The graph itself.
    Graph,
    /// An executable in a node of the graph: a sub-graph, or a body of a branch or loop.
    Child {
        node: NodeId,
        child: ChildId,
        /// The number of the body in its node; 0 for a sub-graph.
        nth: u32,
    },
}

/// The graph that a pass makes: plain data, which the pass writes, and the numbers that objects of its sources have in
/// it. `None` means that a table is full.
pub(crate) trait Output {
    fn ir(&mut self) -> &mut Ir;

    fn view(&mut self, of: Source, view: ViewId) -> Option<ViewId>;
    fn kernel(&mut self, of: Source, kernel: KernelId) -> Option<KernelId>;
    fn sampler(&mut self, of: Source, sampler: SamplerId) -> Option<SamplerId>;
    fn data(&mut self, of: Source, data: DataId) -> Option<DataId>;
    fn result(&mut self, of: Source, result: ResultId) -> Option<ResultId>;
    fn task(&mut self, of: Source, task: TaskId) -> Option<TaskId>;
    fn native(&mut self, of: Source, functions: NativeId) -> Option<NativeId>;
    fn external(&mut self) -> Option<ExternalId>;

    /// Whether the caller sets the command of a node when the pass is done. The pass leaves such a node empty.
    fn sets_command(&self, of: Source, node: NodeId) -> bool;
}
