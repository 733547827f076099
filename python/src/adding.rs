//! How nodes are added to graphs: their options, and what a graph keeps for them.

use std::sync::{Arc, PoisonError};

use pyo3::prelude::*;

use crate::gate::call;
use crate::graph::Graph;
use crate::held::{FEW, Function, Holder};
use crate::memory::{Cache, MemoryUser, Scope};

/// Gives a builder the options of its node.
macro_rules! options {
    ($builder:expr, $label:expr, $after:expr) => {{
        let $crate::node::After { nodes, all_leaves } = $after;
        let builder = $builder.after(nodes);
        let builder = if all_leaves { builder.after_all_leaves() } else { builder };
        match $label {
            Some(label) => builder.label(label),
            None => builder,
        }
    }};
}
pub(crate) use options;

impl Graph {
    pub(crate) fn scope(&self) -> Scope<'_> {
        Scope {
            context: rust::InContext::context(&*self.graph),
            user: MemoryUser::Graph(&self.cache, self.held.get().held()),
        }
    }

    pub(crate) fn held(&self) -> &Py<Holder> {
        &self.held
    }

    /// Keeps the function of a node.
    pub(crate) fn keep(&self, py: Python<'_>, function: &Function) -> PyResult<()> {
        function.hand_over(py, &[Arc::clone(self.held.get().held())])
    }

    /// Notes objects that a node uses.
    pub(crate) fn note(&self, note: impl FnOnce(&mut Cache)) {
        note(&mut self.cache.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Releases what a node has used whose command was replaced.
    pub(crate) fn replaced(&self, py: Python<'_>) {
        let old = std::mem::take(&mut *self.cache.lock().unwrap_or_else(PoisonError::into_inner));
        py.detach(|| drop(old));
        self.held.get().held().let_go(py, FEW);
    }

    /// Adds a node. If the queue of the graph records into it, the recording is interrupted meanwhile: clgraph refuses
    /// other nodes while a queue records.
    pub(crate) fn add<R: Send>(&self, py: Python<'_>, code: impl FnOnce() -> rust::Result<R> + Send) -> PyResult<R> {
        let (Some(queue), Some(pause)) = (&self.queue, &self.pause) else { return call(py, code) };
        call(py, || {
            let _no_command_comes = pause.write().unwrap_or_else(PoisonError::into_inner);
            if queue.recording_graph().is_ok_and(|graph| graph == *self.graph) {
                self.graph.end_recording(&**queue)?;
                let added = code();
                self.graph.begin_recording(&**queue)?;
                return added;
            }
            code()
        })
    }
}
