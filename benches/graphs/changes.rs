//! What an update of a round changes, for clgraph and for CUDA Graphs.

/// Updates of one node in a round, because a single update is too short to be timed.
pub const REPEATED: usize = 1_000;

/// What is updated in a round.
#[derive(Clone, Copy)]
pub enum What {
    /// The same node, [`REPEATED`] times.
    One,
    /// So many nodes, spread over the chain, at once.
    Some(usize),
}
