//! The bodies of branches and loops that were recorded. The program has no handles of their nodes, so what it sets reaches them by the
//! node around them: an update of it, or a finalize of its graph.
//!
//! Each graph keeps those of its own nodes and all that are inside of these. A program may have the graph of a body too.

use std::cell::RefCell;
use std::sync::Arc;

use crate::error::Error;
use crate::graph::{CurrentValues, Graph, State};
use crate::ir::NodeId;

/// A recorded body that can change.
#[derive(Clone, Debug)]
pub(crate) struct RecordedBody {
    pub(crate) of: Arc<dyn CurrentValues>,
    /// The graph of the body, which keeps the executables that are its nodes.
    pub(crate) _graph: Graph,
}

/// Gives recorded bodies what their graphs have now, or returns the node of the first that it does not fit.
pub(crate) fn refresh<'a>(
    mut bodies: impl Iterator<Item = (NodeId, &'a RecordedBody)>,
) -> Result<(), (NodeId, Box<Error>)> {
    bodies.try_for_each(|(node, body)| body.of.refresh().map_err(|error| (node, Box::new(error))))
}

impl Graph {
    /// Returns the recorded bodies of the nodes, inner ones first.
    pub(crate) fn recorded(&self) -> Vec<RecordedBody> {
        self.lock().recorded.values().flatten().cloned().collect()
    }

    /// Keeps the recorded bodies of a node.
    pub(crate) fn keep_recorded(&self, node: NodeId, bodies: Vec<RecordedBody>) {
        if !bodies.is_empty() {
            self.lock().recorded.insert(node, bodies);
        }
    }

    /// Gives the recorded bodies what their graphs have now.
    pub(crate) fn refresh_recorded(&self) -> Result<(), (NodeId, Box<Error>)> {
        let recorded = self.lock().recorded.clone();
        refresh(recorded.iter().flat_map(|(node, bodies)| bodies.iter().map(|body| (*node, body))))
    }
}

impl State {
    /// Returns the recorded bodies of some nodes that can change, inner ones first.
    pub(crate) fn recorded_in(&self, nodes: &[NodeId]) -> Vec<(NodeId, RecordedBody)> {
        if self.recorded.is_empty() {
            return Vec::new();
        }
        let of = |node: &NodeId| self.recorded.get(node).into_iter().flatten();
        nodes.iter().flat_map(|node| of(node).map(|body| (*node, body.clone()))).collect()
    }
}

thread_local! {
    /// Recorded bodies that this thread is about to drop. None if it drops none.
    static LEFT: RefCell<Option<Vec<RecordedBody>>> = const { RefCell::new(None) };
}

/// Drops recorded bodies, and those that only their graphs keep. However deep bodies are nested, nothing recurses.
pub(super) fn drop_all(bodies: impl Iterator<Item = RecordedBody>) {
    let mut bodies: Vec<RecordedBody> = bodies.collect();
    if bodies.is_empty() {
        return;
    }
    let is_first = LEFT.try_with(|left| match &mut *left.borrow_mut() {
        Some(left) => {
            left.append(&mut bodies);
            false
        }
        none => {
            *none = Some(Vec::new());
            true
        }
    });
    drop(bodies);
    // A thread that is about to end has no list.
    while is_first == Ok(true) {
        let next = LEFT.try_with(|left| {
            let mut left = left.borrow_mut();
            let next = left.as_mut().and_then(Vec::pop);
            if next.is_none() {
                *left = None;
            }
            next
        });
        let Ok(Some(next)) = next else { return };
        drop(next);
    }
}
