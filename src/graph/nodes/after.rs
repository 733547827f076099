//! The settings that every node builder has: explicit dependencies, and a label.

use std::sync::Arc;

use crate::handles::Node;

/// The explicit dependencies of a node, besides those found from memory accesses, and its label.
#[derive(Clone, Debug, Default)]
pub(crate) struct After {
    /// `None` for an event that stands for no node.
    pub(crate) nodes: Vec<Option<Node>>,
    pub(crate) all_leaves: bool,
    pub(crate) label: Option<Arc<str>>,
}

impl After {
    pub(in crate::graph) fn waits(&self) -> bool {
        !self.nodes.is_empty() || self.all_leaves
    }
}

/// Defines the methods that every builder has.
macro_rules! after_methods {
    () => {
        /// Makes the node wait for other nodes, besides those found from memory accesses. May be called repeatedly.
        #[doc(alias = "depends_on")]
        pub fn after(mut self, nodes: impl $crate::graph::Nodes) -> Self {
            nodes.for_each_node(|node| self.after.nodes.push(node));
            self
        }

        /// Makes the node wait for every node that has no successor when this node is added.
        #[doc(alias = "depends_on_all_leaves")]
        pub fn after_all_leaves(mut self) -> Self {
            self.after.all_leaves = true;
            self
        }

        /// Gives the node a label, for drawings, profiles and traces. See
        /// [`Graph::set_label`]($crate::Graph::set_label).
        pub fn label(mut self, label: impl Into<String>) -> Self {
            self.after.label = Some(label.into().into());
            self
        }
    };
}
pub(crate) use after_methods;
