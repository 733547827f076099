//! What builders of all nodes take: what to wait for, and a label.

use std::sync::Arc;

use super::Node;

/// What a node waits for besides what its memory tells, and what it is called.
#[derive(Clone, Debug, Default)]
pub(crate) struct After {
    /// `None` for an event that is of no node.
    pub(crate) nodes: Vec<Option<Node>>,
    pub(crate) all_leaves: bool,
    pub(crate) label: Option<Arc<str>>,
}

impl After {
    pub(super) fn waits(&self) -> bool {
        !self.nodes.is_empty() || self.all_leaves
    }
}

/// The methods that every builder has.
macro_rules! after_methods {
    () => {
        /// Lets the node wait for others, besides those that the memory it uses tells. May be called repeatedly.
        #[doc(alias = "depends_on")]
        pub fn after(mut self, nodes: impl $crate::graph::Nodes) -> Self {
            nodes.for_each_node(&mut |node| self.after.nodes.push(node));
            self
        }

        /// Lets the node wait for every node that has no successor when it is added.
        #[doc(alias = "depends_on_all_leaves")]
        pub fn after_all_leaves(mut self) -> Self {
            self.after.all_leaves = true;
            self
        }

        /// Gives the node a label, for drawings, profiles and traces: [`Graph::set_label`]($crate::Graph::set_label).
        pub fn label(mut self, label: impl Into<String>) -> Self {
            self.after.label = Some(label.into().into());
            self
        }
    };
}
pub(crate) use after_methods;
