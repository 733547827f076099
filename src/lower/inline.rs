//! Replaces all sub-graphs of a graph by their nodes. Plans, submissions and reports then contain commands only, and a
//! sub-graph costs as much as its nodes.
//!
//! A sub-graph becomes an empty entry, the nodes of its executable, and an empty exit: so its leaves and the roots after
//! it need no edge each. The executable's own graph has no sub-graphs, because it was inlined when it was finalized.

use std::sync::Arc;

use super::{Output, Source};
use crate::command::{Arg, Command, Translate};
use crate::ir::{
    Access, AllocDecl, AllocId, ById, ChildId, DataId, ExternalId, Ir, KernelId, NativeId, NodeId, ResultId, Span,
    TaskId, ViewId,
};

/// What became of the nodes.
#[derive(Clone, Debug)]
pub(crate) struct Inlined {
    /// By new node.
    pub(crate) origins: Vec<Origin>,
    /// By node of the graph: its first and its last new node.
    ends: Vec<(NodeId, NodeId)>,
}

/// The origin of a new node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Origin {
    /// The node of the graph.
    pub(crate) node: NodeId,
    /// The index among the writes, the reads, or the external events of a sub-graph; 0 for a node that is not a
    /// sub-graph.
    pub(crate) part: u32,
}

impl Inlined {
    /// Returns the new node of a node.
    pub(crate) fn place(&self, of: Source, node: NodeId) -> NodeId {
        match of {
            Source::Graph => self.ends[node.index()].0,
            Source::SubGraph(at) => NodeId(self.ends[at.index()].0.0 + 1 + node.0),
        }
    }
}

/// Writes a graph without sub-graphs. `child` returns the graph of an executable. Returns `None` when a table is full.
pub(crate) fn inline<'a>(
    graph: &'a Ir,
    child: impl Fn(ChildId) -> &'a Ir,
    output: &mut impl Output,
) -> Option<Inlined> {
    let mut ends = Vec::with_capacity(graph.len());
    let mut next = 0_u32;
    for node in graph.ids() {
        let size = match graph.command(node) {
            Command::SubGraph(of) => child(*of).len() as u32 + 2,
            _ => 1,
        };
        let end = next.saturating_add(size);
        ends.push((NodeId(next), NodeId(end.saturating_sub(1))));
        next = end;
    }
    let mut pass = Pass { output, done: Inlined { origins: Vec::with_capacity(next as usize), ends } };
    let alloc = |alloc: &AllocDecl| AllocDecl { node: pass.done.place(Source::Graph, alloc.node), ..*alloc };
    pass.output.ir().allocs = graph.allocs.iter().map(alloc).collect();
    pass.output.ir().shares_bytes = graph.shares_bytes;
    // Host writes and reads are numbered in the order of the new nodes, over all sources.
    for node in graph.ids() {
        let preds = graph.topology.preds(node).filter(|pred| *pred < node);
        let waits: Vec<NodeId> = preds.map(|pred| pass.done.ends[pred.index()].1).collect();
        match graph.command(node) {
            Command::SubGraph(of) => pass.sub_graph(node, child(*of), waits)?,
            _ => pass.copy(Source::Graph, graph, node, waits, Origin { node, part: 0 })?,
        }
    }
    let ends = &pass.done.ends;
    let later = backward_edges(graph, |node| ends[node.index()].1, |node| ends[node.index()].0);
    add_edges(pass.output.ir(), &later);
    Some(pass.done)
}

/// Copies the command of a node of a source. Returns `None` when a table is full.
pub(crate) fn translate(
    of: Source,
    source: &Ir,
    command: &Command<ById>,
    output: &mut impl Output,
) -> Option<Command<ById>> {
    match command {
        // Allocations of a sub-graph have their memory already.
        Command::Alloc(_) | Command::Free(_) if of != Source::Graph => Some(Command::Empty),
        Command::SubGraph(_) => Some(Command::Empty),
        command => command.translate(&mut Copier { of, source, output }).ok(),
    }
}

/// Returns the edges that lead to an earlier node, as edges of new nodes.
fn backward_edges(
    source: &Ir,
    last: impl Fn(NodeId) -> NodeId,
    first: impl Fn(NodeId) -> NodeId,
) -> Vec<(NodeId, NodeId)> {
    let preds = |node| source.topology.preds(node).filter(move |pred| *pred >= node).map(move |pred| (pred, node));
    source.ids().flat_map(preds).map(|(from, to)| (last(from), first(to))).collect()
}

fn add_edges(ir: &mut Ir, edges: &[(NodeId, NodeId)]) {
    for (from, to) in edges {
        // A cycle is found when the graph is planned.
        let _ = Arc::make_mut(&mut ir.topology).add_edge(*from, *to, false);
    }
}

/// The state of the pass.
struct Pass<'o, O> {
    output: &'o mut O,
    done: Inlined,
}

impl<O: Output> Pass<'_, O> {
    /// Writes a sub-graph after `waits`.
    fn sub_graph(&mut self, node: NodeId, source: &Ir, waits: Vec<NodeId>) -> Option<()> {
        let of = Source::SubGraph(node);
        let (entry, exit) = self.done.ends[node.index()];
        let here = |node: NodeId| NodeId(entry.0 + 1 + node.0);
        self.push(Command::Empty, Vec::new(), waits, Origin { node, part: 0 })?;
        for id in source.ids() {
            let preds = source.topology.preds(id);
            let mut waits: Vec<NodeId> = preds.filter(|pred| *pred < id).map(here).collect();
            if source.topology.preds(id).next().is_none() {
                waits.push(entry);
            }
            let part = match source.command(id) {
                Command::Write { data, .. } => data.0,
                Command::Read { output, .. } => output.0,
                Command::Event { event, .. } => event.0,
                _ => 0,
            };
            self.copy(of, source, id, waits, Origin { node, part })?;
        }
        add_edges(self.output.ir(), &backward_edges(source, here, here));
        let mut leaves: Vec<NodeId> = source.topology.leaves().iter().copied().map(here).collect();
        leaves.push(entry);
        self.push(Command::Empty, Vec::new(), leaves, Origin { node, part: 0 })?;
        debug_assert_eq!(self.done.origins.len(), exit.index() + 1, "as many nodes as were counted");
        Some(())
    }

    /// Copies a node of a source.
    fn copy(&mut self, of: Source, source: &Ir, node: NodeId, waits: Vec<NodeId>, origin: Origin) -> Option<()> {
        let command = match self.output.sets_command(of, node) {
            true => Command::Empty,
            false => translate(of, source, source.command(node), self.output)?,
        };
        // Allocations of a sub-graph were placed when the sub-graph was finalized.
        let is_done = of != Source::Graph && matches!(source.command(node), Command::Alloc(_) | Command::Free(_));
        self.output.ir().shares_bytes |= is_done || source.shares_bytes;
        let mut copied = Vec::new();
        for access in source.accesses(node).iter().filter(|_| !is_done) {
            copied.push(Access { view: self.output.view(of, access.view)?, ..access.clone() });
        }
        self.push(command, copied, waits, origin)
    }

    fn push(
        &mut self,
        command: Command<ById>,
        accesses: Vec<Access>,
        mut waits: Vec<NodeId>,
        origin: Origin,
    ) -> Option<()> {
        let ir = self.output.ir();
        if !ir.has_room() {
            return None;
        }
        self.done.origins.push(origin);
        ir.push_node(command, accesses.into_iter(), &mut waits).map(|_| ())
    }
}

/// Copies what a command refers to into the output. An error means that a table is full.
struct Copier<'c, O> {
    of: Source,
    source: &'c Ir,
    output: &'c mut O,
}

/// A table is full.
struct Full;

impl<O: Output> Copier<'_, O> {
    /// Copies the arguments of a kernel.
    fn args(&mut self, args: Span) -> Option<Span> {
        let Self { of, source, output } = self;
        let mut copied = Vec::with_capacity(args.len());
        for arg in source.args(args) {
            copied.push(match arg {
                Arg::Memory(view) => Arg::Memory(output.view(*of, *view)?),
                Arg::Indirect(view) => Arg::Indirect(output.view(*of, *view)?),
                Arg::Global(view) => Arg::Global(output.view(*of, *view)?),
                Arg::Unused(view) => Arg::Unused(output.view(*of, *view)?),
                Arg::Null(view) => Arg::Null(output.view(*of, *view)?),
                Arg::Sampler(sampler) => Arg::Sampler(output.sampler(*of, *sampler)?),
                Arg::Local(size) => Arg::Local(*size),
                Arg::Value(span) => Arg::Value(output.ir().push_bytes(source.bytes(*span))?),
            });
        }
        output.ir().push_args(copied.into_iter())
    }
}

impl<'a, O: Output> Translate<'a, ById, ById> for Copier<'_, O> {
    type Error = Full;

    fn mem(&mut self, mem: &'a ViewId) -> Result<ViewId, Full> {
        self.output.view(self.of, *mem).ok_or(Full)
    }

    fn kernel(&mut self, kernel: &'a KernelId, args: &'a Span) -> Result<(KernelId, Span), Full> {
        let args = self.args(*args).ok_or(Full)?;
        Ok((self.output.kernel(self.of, *kernel).ok_or(Full)?, args))
    }

    fn bytes(&mut self, bytes: &'a Span) -> Result<Span, Full> {
        self.output.ir().push_bytes(self.source.bytes(*bytes)).ok_or(Full)
    }

    fn data(&mut self, data: &'a DataId, _: usize) -> Result<DataId, Full> {
        self.output.data(self.of, *data).ok_or(Full)
    }

    fn output(&mut self, output: &'a ResultId, _: usize) -> Result<ResultId, Full> {
        self.output.result(self.of, *output).ok_or(Full)
    }

    fn task(&mut self, task: &'a TaskId) -> Result<TaskId, Full> {
        self.output.task(self.of, *task).ok_or(Full)
    }

    fn event(&mut self, _: &'a ExternalId) -> Result<ExternalId, Full> {
        self.output.external().ok_or(Full)
    }

    fn native(&mut self, functions: &'a NativeId) -> Result<NativeId, Full> {
        self.output.native(self.of, *functions).ok_or(Full)
    }

    fn executable(&mut self, executable: &'a ChildId) -> Result<ChildId, Full> {
        Ok(*executable)
    }

    fn alloc(&mut self, alloc: &'a AllocId) -> Result<AllocId, Full> {
        Ok(*alloc)
    }
}
