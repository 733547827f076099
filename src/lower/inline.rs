//! Replaces all sub-graphs of a graph by their nodes. Plans, submissions and reports then contain commands only, and a
//! sub-graph costs as much as its nodes.
//!
//! A sub-graph becomes an empty entry, the nodes of its executable, and an empty exit: so its leaves and the roots after
//! it need no edge each. The executable's own graph has no sub-graphs, because it was inlined when it was finalized.
//!
//! A branch or loop becomes its own node, its bodies, and an empty exit. A body is an empty entry and the nodes of its
//! executable. The bodies are one after another, by edges: so whatever asks for an order between nodes of the flat graph gets
//! the right answer for a branch or loop as a whole. Code that looks at one body by itself uses only
//! the edges between the body's own nodes ([`Flows`](crate::ir::flows::Flows)).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Output, Source};
use crate::command::{Arg, Command, Control, Translate};
use crate::ir::{
    Access, AllocDecl, AllocId, Body, ById, ChildId, DataId, ExternalId, Ir, KernelId, NativeId, NodeId, ResultId,
    Span, TaskId, ViewId,
};

/// What became of the nodes.
#[derive(Clone, Debug)]
pub(crate) struct Inlined {
    /// By new node.
    pub(crate) origins: Vec<Origin>,
    /// By node of the graph: its first and its last new node.
    ends: Vec<(NodeId, NodeId)>,
    /// The executables that were inlined, in order, and where the nodes of each begin.
    children: Vec<Source>,
    starts: FxHashMap<Source, NodeId>,
}

/// The origin of a new node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Origin {
    /// The node of the graph.
    pub(crate) node: NodeId,
    /// For a node that has executables in it: the index among all writes, reads, external events, or branches and loops
    /// of these; [`OWN`] for a branch or loop itself; otherwise 0.
    pub(crate) part: u32,
}

/// The part of a branch or loop that is a node of the graph itself, and not inside one.
pub(crate) const OWN: u32 = u32::MAX;

impl Inlined {
    /// Returns the new node of a node.
    pub(crate) fn place(&self, of: Source, node: NodeId) -> NodeId {
        match self.starts.get(&of) {
            None => self.ends[node.index()].0,
            Some(start) => NodeId(start.0 + node.0),
        }
    }

    /// Returns the executables that were inlined, in order.
    pub(crate) fn children(&self) -> &[Source] {
        &self.children
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
            // Each body has an entry; then there is the exit.
            Command::Control(_) => graph.executables(node).map(|of| child(of).len() as u32 + 1).sum::<u32>() + 2,
            _ => 1,
        };
        let end = next.saturating_add(size);
        ends.push((NodeId(next), NodeId(end.saturating_sub(1))));
        next = end;
    }
    let origins = Vec::with_capacity(next as usize);
    let (children, starts) = (Vec::new(), FxHashMap::default());
    let mut pass = Pass { output, done: Inlined { origins, ends, children, starts } };
    let alloc = |alloc: &AllocDecl| AllocDecl { node: pass.done.place(Source::Graph, alloc.node), ..*alloc };
    pass.output.ir().allocs = graph.allocs.iter().map(alloc).collect();
    pass.output.ir().shares_bytes = graph.shares_bytes;
    // Host writes and reads are numbered in the order of the new nodes, over all sources.
    for node in graph.ids() {
        let preds = graph.topology.preds(node).filter(|pred| *pred < node);
        let waits: Vec<NodeId> = preds.map(|pred| pass.done.ends[pred.index()].1).collect();
        match graph.command(node) {
            Command::SubGraph(of) => pass.sub_graph(node, *of, child(*of), waits)?,
            Command::Control(control) => {
                let bodies: Vec<_> = graph.executables(node).map(|of| (of, child(of))).collect();
                pass.control(node, graph, control, &bodies, waits)?;
            }
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
    start: NodeId,
    command: &Command<ById>,
    output: &mut impl Output,
) -> Option<Command<ById>> {
    match command {
        // Allocations of a sub-graph have their memory already.
        Command::Alloc(_) | Command::Free(_) if of != Source::Graph => Some(Command::Empty),
        Command::SubGraph(_) => Some(Command::Empty),
        command => command.translate(&mut Copier { of, source, start, output }).ok(),
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

pub(super) fn add_edges(ir: &mut Ir, edges: &[(NodeId, NodeId)]) {
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

/// How many writes, reads, external events, and branches and loops the executables of one node have had so far.
#[derive(Default)]
struct Parts {
    data: u32,
    results: u32,
    events: u32,
    controls: u32,
}

impl<O: Output> Pass<'_, O> {
    /// Writes a sub-graph after `waits`.
    fn sub_graph(&mut self, node: NodeId, child: ChildId, source: &Ir, waits: Vec<NodeId>) -> Option<()> {
        let of = Source::Child { node, child, nth: 0 };
        let leaves = self.executable(of, source, waits, &mut Parts::default())?;
        self.push(Command::Empty, Vec::new(), leaves, Origin { node, part: 0 })
    }

    /// Writes a branch or loop after `waits`.
    fn control(
        &mut self,
        node: NodeId,
        graph: &Ir,
        control: &Control<ViewId, Span>,
        children: &[(ChildId, &Ir)],
        waits: Vec<NodeId>,
    ) -> Option<()> {
        let (own, exit) = self.done.ends[node.index()];
        let condition = match &control.condition {
            Some(place) => Some(crate::command::Location {
                mem: self.output.view(Source::Graph, place.mem)?,
                offset: place.offset,
            }),
            None => None,
        };
        let mut next = own.0 + 1;
        let body = |(_, source): &(ChildId, &Ir)| {
            let start = next;
            next += source.len() as u32 + 1;
            Body::Inlined { of: own, nodes: start..next }
        };
        let bodies: Vec<Body> = children.iter().map(body).collect();
        let bodies = self.output.ir().push_bodies(bodies.into_iter())?;
        let command = Command::Control(Box::new(Control { kind: control.kind, condition, bodies }));
        // It reads its condition. What its bodies use is with their own nodes, which may change by themselves.
        let mut accesses = self.accesses(Source::Graph, graph, node)?;
        accesses.truncate(usize::from(control.condition.is_some()));
        self.push(command, accesses, waits, Origin { node, part: OWN })?;
        let mut parts = Parts::default();
        let mut before = vec![own];
        for (nth, (child, source)) in (0..).zip(children) {
            before = self.executable(Source::Child { node, child: *child, nth }, source, before, &mut parts)?;
        }
        before.push(own);
        self.push(Command::Empty, Vec::new(), before, Origin { node, part: 0 })?;
        debug_assert_eq!(self.done.origins.len(), exit.index() + 1, "as many nodes as were counted");
        Some(())
    }

    /// Writes an empty entry after `waits`, and the nodes of an executable after the entry. Returns the last of them.
    fn executable(&mut self, of: Source, source: &Ir, waits: Vec<NodeId>, parts: &mut Parts) -> Option<Vec<NodeId>> {
        let Source::Child { node, .. } = of else { return Some(waits) };
        let entry = NodeId(self.done.origins.len() as u32);
        let here = |node: NodeId| NodeId(entry.0 + 1 + node.0);
        self.done.starts.insert(of, here(NodeId(0)));
        self.done.children.push(of);
        self.push(Command::Empty, Vec::new(), waits, Origin { node, part: 0 })?;
        let mut controls = 0;
        for id in source.ids() {
            let preds = source.topology.preds(id);
            let mut waits: Vec<NodeId> = preds.filter(|pred| *pred < id).map(here).collect();
            if source.topology.preds(id).next().is_none() {
                waits.push(entry);
            }
            let part = match source.command(id) {
                Command::Write { data, .. } => parts.data + data.0,
                Command::Read { output, .. } => parts.results + output.0,
                Command::Event { event, .. } => parts.events + event.0,
                Command::Control(_) => {
                    controls += 1;
                    parts.controls + controls - 1
                }
                // Every kind is named: the compiler asks whether submissions name something of a new one by its number.
                Command::Empty | Command::SubGraph(_) | Command::Alloc(_) | Command::Free(_) => 0,
                Command::Kernel { .. } | Command::Native { .. } | Command::Hint { .. } | Command::Fill { .. } => 0,
                Command::Copy { .. } | Command::CopyRect(_) | Command::CopyImage(_) | Command::Task(_) => 0,
            };
            self.copy(of, source, id, waits, Origin { node, part })?;
        }
        parts.data += source.data;
        parts.results += source.results;
        parts.events += source.externals;
        parts.controls += controls;
        add_edges(self.output.ir(), &backward_edges(source, here, here));
        let mut leaves: Vec<NodeId> = source.topology.leaves().iter().copied().map(here).collect();
        leaves.push(entry);
        Some(leaves)
    }

    /// Copies a node of a source.
    fn copy(&mut self, of: Source, source: &Ir, node: NodeId, waits: Vec<NodeId>, origin: Origin) -> Option<()> {
        let start = self.done.starts.get(&of).copied().unwrap_or(NodeId(0));
        let command = match self.output.sets_command(of, node) {
            true => Command::Empty,
            false => translate(of, source, start, source.command(node), self.output)?,
        };
        let accesses = self.accesses(of, source, node)?;
        self.push(command, accesses, waits, origin)
    }

    /// Copies the uses of a node of a source.
    fn accesses(&mut self, of: Source, source: &Ir, node: NodeId) -> Option<Vec<Access>> {
        // Allocations of a sub-graph were placed when the sub-graph was finalized.
        let is_done = of != Source::Graph && matches!(source.command(node), Command::Alloc(_) | Command::Free(_));
        self.output.ir().shares_bytes |= is_done || source.shares_bytes;
        let mut copied = Vec::new();
        for access in source.accesses(node).iter().filter(|_| !is_done) {
            copied.push(Access { view: self.output.view(of, access.view)?, ..access.clone() });
        }
        Some(copied)
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
    /// The new node of the source's first node.
    start: NodeId,
    output: &'c mut O,
}

/// A table is full.
struct Full;

impl<O: Output> Copier<'_, O> {
    /// Copies the arguments of a kernel.
    fn args(&mut self, args: Span) -> Option<Span> {
        let Self { of, source, output, .. } = self;
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

    fn bodies(&mut self, bodies: &'a Span) -> Result<Span, Full> {
        let start = self.start.0;
        let body = |body: &Body| match body {
            Body::Inlined { of, nodes } => {
                Body::Inlined { of: NodeId(start + of.0), nodes: start + nodes.start..start + nodes.end }
            }
            Body::Executable(child) => Body::Executable(*child),
        };
        let copied: Vec<Body> = bodies.of(&self.source.bodies).iter().map(body).collect();
        self.output.ir().push_bodies(copied.into_iter()).ok_or(Full)
    }

    fn alloc(&mut self, alloc: &'a AllocId) -> Result<AllocId, Full> {
        Ok(*alloc)
    }
}
