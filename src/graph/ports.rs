//! The host writes, host reads and external events of an executable, found by their handles.

use std::collections::HashMap;
use std::sync::Arc;

use crate::command::Command;
use crate::error::SubmitError;
use crate::graph::Flat;
use crate::handles::{GraphId, Port};
use crate::ir::{DataId, ExternalId, ResultId};
use crate::lower::Origin;

/// The inputs, results and external events of an executable.
#[derive(Debug)]
pub(crate) struct Ports {
    graph: GraphId,
    /// By host write: its data, and the number of bytes.
    inputs: HashMap<Origin, (DataId, usize)>,
    /// The read of each result, in the order of results, which is the order of reads.
    results: Vec<Origin>,
    /// The nodes with external events, by id, and whether the node completes the event.
    events: Vec<(Origin, bool)>,
}

impl Ports {
    pub(crate) fn new(graph: GraphId, flat: &Flat) -> Self {
        let (ir, origins) = (&flat.tables.ir, &flat.origins);
        let inputs = ir.ids().filter_map(|id| match ir.command(id) {
            Command::Write { data, size, .. } => Some((origins.of(id), (*data, *size))),
            _ => None,
        });
        let reads = ir.ids().filter(|id| matches!(ir.command(*id), Command::Read { .. }));
        let events = ir.ids().filter_map(|id| match ir.command(id) {
            Command::Event { signals, .. } => Some((origins.of(id), *signals)),
            _ => None,
        });
        let (inputs, events) = (inputs.collect(), events.collect());
        Self { graph, inputs, results: reads.map(|id| origins.of(id)).collect(), events }
    }

    /// The nodes with external events, and whether the node completes the event.
    pub(crate) fn events(&self) -> &[(Origin, bool)] {
        &self.events
    }

    /// The external event of a node.
    pub(crate) fn event(&self, part: Port, signals: bool) -> Result<ExternalId, SubmitError> {
        let node = part.node;
        let origin = Origin { node: node.id(), part: part.index };
        // External events are numbered in the order of nodes, so the list is sorted.
        let found = self.events.binary_search_by_key(&origin, |(of, _)| *of).ok();
        let found = found.filter(|at| node.graph() == self.graph && self.events[*at].1 == signals);
        Ok(ExternalId(found.ok_or(SubmitError::NotAnEvent { node })? as u32))
    }

    /// How many host writes and how many host reads there are.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.inputs.len(), self.results.len())
    }

    /// The read of each result.
    pub(crate) fn results(&self) -> &[Origin] {
        &self.results
    }

    /// The data of a host write, and the number of bytes.
    pub(crate) fn input(&self, write: Port) -> Result<(DataId, usize), SubmitError> {
        self.input_of(self.graph, write)
    }

    /// The result of a host read.
    pub(crate) fn result(&self, read: Port) -> Result<ResultId, SubmitError> {
        self.result_of(self.graph, read)
    }

    /// As [`input`](Self::input), by a handle of a graph that stands for this graph.
    fn input_of(&self, graph: GraphId, write: Port) -> Result<(DataId, usize), SubmitError> {
        let node = write.node;
        let known = self.inputs.get(&Origin { node: node.id(), part: write.index });
        known.filter(|_| node.graph() == graph).copied().ok_or(SubmitError::NotAnInput { node })
    }

    fn result_of(&self, graph: GraphId, read: Port) -> Result<ResultId, SubmitError> {
        let node = read.node;
        let found = self.results.binary_search(&Origin { node: node.id(), part: read.index }).ok();
        let found = found.filter(|_| node.graph() == graph).ok_or(SubmitError::NotAResult { node })?;
        Ok(ResultId(found as u32))
    }
}

/// A use of an executable in a flat graph: where its inputs and results are there.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) ports: Arc<Ports>,
    /// The index of its first input.
    pub(crate) data: u32,
    /// The index of its first result.
    pub(crate) results: u32,
}

/// The place of a host task: which writes and reads its handles can name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// The graph that the task was added to. Its nodes stand for the nodes of the innermost sub-graph, because an
    /// update may bring the function of another graph with the same structure.
    pub(in crate::graph) home: Option<GraphId>,
    /// The sub-graphs that contain the task, innermost first.
    pub(in crate::graph) inside: Arc<[Written]>,
}

impl Scope {
    /// The data of a host write in a flat graph, and the number of bytes.
    pub(crate) fn input(&self, flat: &Ports, write: Port) -> Result<(DataId, usize), SubmitError> {
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

    /// The result of a host read in a flat graph.
    pub(crate) fn result(&self, flat: &Ports, read: Port) -> Result<ResultId, SubmitError> {
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
