//! What the updates of one executable keep from one update to the next.

use rustc_hash::FxHashSet;

use crate::exec::build::fuse::Shares;
use crate::exec::update::destinations::Destinations;
use crate::graph::edit::assign::Changed;
use crate::graph::edit::undo::Edit;
use crate::graph::{Index, Tables};
use crate::ir::NodeId;
use crate::ir::conflicts::Conflicts;

/// What the updates of one executable use, one update at a time.
pub(in crate::exec) struct Editing {
    pub(in crate::exec) index: Index,
    /// Made at the first change of memory.
    pub(in crate::exec) conflicts: Option<Conflicts>,
    /// Planned kernels that may differ from what they were at finalize in more than the bytes of values.
    pub(in crate::exec) reshaped: FxHashSet<NodeId>,
    pub(in crate::exec) destinations: Destinations,
    /// Which arguments of launches get other values by themselves, as far as it is known.
    pub(in crate::exec) shares: Shares,
    // These are empty between updates and only keep their memory: freeing much small memory, as a driver may have done
    // before, makes glibc's next large allocation slow, in time that grows with the graph.
    pub(in crate::exec) edit: Edit,
    pub(in crate::exec) touched: Vec<Touched>,
    pub(in crate::exec) ids: Vec<NodeId>,
}

impl Editing {
    pub(in crate::exec) fn new(tables: &Tables, destinations: Destinations, shares: Shares) -> Self {
        Self {
            index: Index::of(tables),
            conflicts: None,
            reshaped: FxHashSet::default(),
            destinations,
            shares,
            edit: Edit::default(),
            touched: Vec::new(),
            ids: Vec::new(),
        }
    }
}

/// A planned node that got new values.
pub(in crate::exec) struct Touched {
    pub(in crate::exec) node: NodeId,
    /// The node of the graph, for error texts.
    pub(in crate::exec) origin: NodeId,
    pub(in crate::exec) changed: Changed,
}
