//! The host writes, host reads and external events of an executable, found by their handles.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Flat, GraphId, Origin, Part};
use crate::error::SubmitError;
use crate::ir::{DataId, ExternalId, Op, ResultId};

/// What goes into an executable and what comes out of it.
#[derive(Debug)]
pub(crate) struct Ports {
    graph: GraphId,
    /// Where host writes get their data from, and how many bytes.
    inputs: HashMap<Origin, (DataId, usize)>,
    /// The read of each result, in the order of results, which is that of reads.
    results: Vec<Origin>,
    /// The nodes with external events, by id, and whether they complete them.
    events: Vec<(Origin, bool)>,
}

impl Ports {
    pub(crate) fn new(graph: GraphId, flat: &Flat) -> Self {
        let (ir, origins) = (&flat.tables.ir, &flat.origins);
        let inputs = ir.ids().filter_map(|id| match ir.op(id) {
            Op::Write { data, size, .. } => Some((origins.of(id), (*data, *size))),
            _ => None,
        });
        let reads = ir.ids().filter(|id| matches!(ir.op(*id), Op::Read { .. }));
        let events = ir.ids().filter_map(|id| match ir.op(id) {
            Op::Event { signals, .. } => Some((origins.of(id), *signals)),
            _ => None,
        });
        let (inputs, events) = (inputs.collect(), events.collect());
        Self { graph, inputs, results: reads.map(|id| origins.of(id)).collect(), events }
    }

    /// The nodes with external events, and whether they complete them.
    pub(crate) fn events(&self) -> &[(Origin, bool)] {
        &self.events
    }

    /// The external event of a node.
    pub(crate) fn event(&self, part: Part, signals: bool) -> Result<ExternalId, SubmitError> {
        let node = part.node;
        let origin = Origin { node: node.id(), part: part.index };
        // They are numbered as nodes come.
        let found = self.events.binary_search_by_key(&origin, |(of, _)| *of).ok();
        let found = found.filter(|at| node.graph() == self.graph && self.events[*at].1 == signals);
        Ok(ExternalId(found.ok_or(SubmitError::NotAnEvent { node })? as u32))
    }

    /// The read of each result.
    pub(crate) fn results(&self) -> &[Origin] {
        &self.results
    }

    /// A host write's data, and how many bytes.
    pub(crate) fn input(&self, write: Part) -> Result<(DataId, usize), SubmitError> {
        self.input_of(self.graph, write)
    }

    /// A host read's result.
    pub(crate) fn result(&self, read: Part) -> Result<ResultId, SubmitError> {
        self.result_of(self.graph, read)
    }

    /// By a handle of a graph that stands for this one.
    fn input_of(&self, graph: GraphId, write: Part) -> Result<(DataId, usize), SubmitError> {
        let node = write.node;
        let known = self.inputs.get(&Origin { node: node.id(), part: write.index });
        known.filter(|_| node.graph() == graph).copied().ok_or(SubmitError::NotAnInput { node })
    }

    fn result_of(&self, graph: GraphId, read: Part) -> Result<ResultId, SubmitError> {
        let node = read.node;
        let found = self.results.binary_search(&Origin { node: node.id(), part: read.index }).ok();
        let found = found.filter(|_| node.graph() == graph).ok_or(SubmitError::NotAResult { node })?;
        Ok(ResultId(found as u32))
    }
}

/// A use of an executable in a flat graph: where its writes and reads have got to.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) ports: Arc<Ports>,
    /// The first of its data.
    pub(crate) data: u32,
    /// The first of its results.
    pub(crate) results: u32,
}

/// Where a host task is: which writes and reads it knows, by which handles.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// The graph that it was added to. Its nodes stand for those of the innermost sub-graph: an update brings functions of
    /// graphs that are alike.
    pub(super) home: Option<GraphId>,
    /// The sub-graphs that it is in, innermost first.
    pub(super) inside: Arc<[Written]>,
}

impl Scope {
    /// A host write's data in a flat graph, and how many bytes.
    pub(crate) fn input(&self, flat: &Ports, write: Part) -> Result<(DataId, usize), SubmitError> {
        let home = self.home.filter(|home| *home == write.node.graph());
        let here =
            |of: &Written, graph| of.ports.input_of(graph, write).map(|(data, size)| (DataId(of.data + data.0), size));
        match (home, self.inside.first()) {
            (Some(home), Some(first)) => here(first, home),
            (Some(home), None) => flat.input_of(home, write),
            (None, _) => {
                let found = self.inside.iter().find_map(|of| here(of, of.ports.graph).ok());
                found.map_or_else(|| flat.input(write), Ok)
            }
        }
    }

    /// A host read's result in a flat graph.
    pub(crate) fn result(&self, flat: &Ports, read: Part) -> Result<ResultId, SubmitError> {
        let home = self.home.filter(|home| *home == read.node.graph());
        let here = |of: &Written, graph| of.ports.result_of(graph, read).map(|at| ResultId(of.results + at.0));
        match (home, self.inside.first()) {
            (Some(home), Some(first)) => here(first, home),
            (Some(home), None) => flat.result_of(home, read),
            (None, _) => {
                let found = self.inside.iter().find_map(|of| here(of, of.ports.graph).ok());
                found.map_or_else(|| flat.result(read), Ok)
            }
        }
    }
}
