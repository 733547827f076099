//! Pictures of finalized graphs.

use std::collections::HashMap;
use std::path::Path as FilePath;
use std::sync::Arc;

use crate::cl::completion::reentrancy;
use crate::command::{Command, ControlKind};
use crate::drawing::{Frame, Node as Drawn, Pattern, Picture};
use crate::error::{BuildCause, BuildError, Result};
use crate::exec::build::fuse::{FusedCommand, FusedNode};
use crate::exec::executable::{Executable, Inner};
use crate::exec::finalized::Finalized;
use crate::exec::tier::{FusedPlan, Tier};
use crate::graph::{self, DrawingDetail, Tables};
use crate::handles::{Node, NodeKind};
use crate::ir::{Body, NodeId};
use crate::lower::UnrolledAt;
use crate::plan::Path;
use crate::report::{NodeProfile, Profile};

impl Executable {
    /// Draws the executable as SVG, for browsers: the planned nodes, with sub-graphs inlined, and the edges that were
    /// kept. The border of a box says where the node runs: on the host, replayed, or in which command buffer. The
    /// colour of a box is that of the node's kind; with a profile it is that of the node's share of the time. The bodies of
    /// branches and loops are in frames; that of an unrolled loop has all turns. A fused kernel is a frame with its launches, in the order in
    /// which it does them, where finalize or [`Fuse::Auto`](crate::Fuse::Auto) has fused some. An unrolled loop has no frame then: one
    /// kernel may do launches of several turns.
    ///
    /// # Errors
    /// [`BuildCause::TooManyToDraw`] for more than 5 000 nodes; [`BuildCause::OtherExecutable`] for a profile of
    /// another executable's submission; [`SubmitError::InsideNativeCommand`](crate::SubmitError::InsideNativeCommand).
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, DrawingDetail, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let graph = Graph::new(&queue)?;
    /// let buffer = Buffer::<u32>::new(&queue, 1 << 16)?;
    /// graph.fill(&buffer, 7).label("clear").add()?;
    /// graph.read(&buffer).add()?;
    /// let executable = graph.finalize(Finalize::new().profiling())?;
    /// let run = executable.submit(&queue)?;
    /// run.wait()?;
    /// let svg = executable.to_svg(DrawingDetail::Brief, Some(&run.profile()?))?;
    /// assert!(svg.contains("clear") && svg.contains("share of the whole time"));
    /// # Ok(()) }
    /// ```
    pub fn to_svg(&self, detail: DrawingDetail, profile: Option<&Profile>) -> Result<String> {
        reentrancy::check_call()?;
        let exec = &*self.0;
        // Laying out takes a while, so the lock is not held.
        let (form, tables) = exec.form_in_use();
        let fixed = form.as_ref().map_or(&exec.fixed, |form| &form.fixed);
        let picture = fixed.picture(&tables, detail, profile)?;
        let picture = picture.framed(&fixed.frames(&tables), detail == DrawingDetail::Brief);
        graph::to_svg(picture, detail)
    }

    /// Writes the picture of [`to_svg`](Self::to_svg) to a `.svg` file, or text for Graphviz to a `.dot` file. In a
    /// `.dot` file the times are in the lines of the nodes, and frames are clusters. An existing file is replaced.
    ///
    /// # Errors
    /// [`BuildCause::File`] for another extension, or if the file cannot be written; the errors of
    /// [`to_svg`](Self::to_svg).
    pub fn print_graph(
        &self,
        path: impl AsRef<FilePath>,
        detail: DrawingDetail,
        profile: Option<&Profile>,
    ) -> Result<()> {
        let path = path.as_ref();
        let text = match path.extension().and_then(|extension| extension.to_str()) {
            Some("dot") => {
                reentrancy::check_call()?;
                let (form, tables) = self.0.form_in_use();
                let fixed = form.as_ref().map_or(&self.0.fixed, |form| &form.fixed);
                graph::to_dot(&fixed.picture(&tables, detail, profile)?, &fixed.frames(&tables))
            }
            Some("svg") => self.to_svg(detail, profile)?,
            _ => return Err(graph::not_written(path, "the extension of the file must be `dot` or `svg`".to_owned())),
        };
        graph::write(path, &text)
    }
}

impl Inner {
    /// Returns the fused form and its tables if submissions use it now; else the executable's own tables.
    fn form_in_use(&self) -> (Option<Arc<FusedPlan>>, Arc<Tables>) {
        let exec_state = self.lock_state();
        match &exec_state.tier {
            Tier::Ready { form, .. } if exec_state.autotuner.strategy().fused => {
                (Some(Arc::clone(&form.plan)), Arc::clone(&form.values.tables))
            }
            _ => (None, Arc::clone(&exec_state.values.tables)),
        }
    }
}

impl Finalized {
    fn picture(&self, tables: &Tables, detail: DrawingDetail, profile: Option<&Profile>) -> Result<Picture> {
        if profile.is_some_and(|profile| profile.executable != self.id) {
            return Err(BuildError::new("drawing with times", BuildCause::OtherExecutable).into());
        }
        let parts = self.where_nodes_run(tables);
        let mut times: HashMap<(Node, Option<usize>), &NodeProfile> = HashMap::new();
        for node in profile.iter().flat_map(|profile| &profile.nodes) {
            times.insert((node.node, node.inside), node);
        }
        let all = profile.map_or(1.0, |profile| profile.duration().as_nanos().max(1) as f64);
        let written = self.origins.written();
        // The nodes where the second and later turns of unrolled loops begin.
        let mut begins = HashMap::new();
        for UnrolledAt { begin, end, turns } in self.unrolled.iter().filter(|place| place.turns > 0) {
            let nodes = (end.0 - begin.0 - 1) / *turns as u32;
            begins.extend((1..*turns as u32).map(|turn| (NodeId(begin.0 + 1 + turn * nodes), turn + 1)));
        }
        let mut boxes = Vec::with_capacity(tables.ir.len());
        for (id, part) in tables.ir.ids().zip(parts) {
            let origin = self.origins.of(id).node;
            // The first and the last planned node of a sub-graph are its entry and its exit.
            let span = written.as_ref().map(|written| written[origin.index()]).filter(|(_, count)| *count > 1);
            let ends = span.map(|(first, count)| (id.index() - first.index(), count as usize - 1));
            let is_control = |first: NodeId| matches!(tables.ir.command(first), Command::Control(_));
            let mut one = match ends {
                Some((0, _)) if is_control(id) || self.turns_at(id).is_some() => {
                    tables.picture_of(id, origin.0.to_string(), detail)
                }
                Some((0, _)) => end_of(tables, id, (id, origin), NodeKind::SubGraph, "begins"),
                Some((at, last)) if at == last => {
                    let first = NodeId(id.0 - last as u32);
                    let kind = if self.turns_at(first).is_some() {
                        NodeKind::Repeat
                    } else {
                        NodeKind::of(tables.ir.command(first))
                    };
                    end_of(tables, id, (first, origin), kind, "ends")
                }
                Some((at, _)) => tables.picture_of(id, format!("{}.{}", origin.0, at - 1), detail),
                None => tables.picture_of(id, origin.0.to_string(), detail),
            };
            if let Some(turns) = self.turns_at(id) {
                let kind = NodeKind::Repeat;
                (one.kind, one.colour) = (kind.to_string(), kind as usize);
                let label = tables.label(id).map(|label| graph::readable(label));
                one.lines = if label.is_some() { vec![kind.to_string()] } else { Vec::new() };
                one.title = label.unwrap_or_else(|| kind.to_string());
                one.tooltip = format!("{} {}\n{turns} times, unrolled", one.number, one.title);
            }
            if let Ok(at) = self.fused_nodes.binary_search_by_key(&id, |of| of.at) {
                frame_fused(&mut one, &self.fused_nodes[at], detail);
            }
            if let Some(turn) = begins.get(&id) {
                one.title = format!("turn {turn}");
            }
            if !part.is_empty() {
                one.tooltip = format!("{}\n{part}", one.tooltip);
            }
            if part.ends_with(|last: char| last.is_ascii_digit()) {
                one.lines.push(part.clone());
            }
            one.part = part;
            if let Some(time) = times.remove(&(self.node(origin), ends.map(|(at, _)| at.wrapping_sub(1)))) {
                // Waiting is no work.
                one.waits = time.kind == NodeKind::EventWait;
                one.time = Some(time.duration().as_nanos() as f64);
            }
            boxes.push(one);
        }
        // An edge from the entry of a sub-graph to its exit is drawn only if there is nothing between them.
        let is_way = |from: NodeId, to: NodeId| {
            let (a, b) = (self.origins.of(from).node, self.origins.of(to).node);
            let span = written.as_ref().map(|written| written[a.index()]);
            a == b && span.is_some_and(|(first, count)| first == from && count > 2 && to.0 == first.0 + count - 1)
        };
        let edges = self.plan.edges.needed.iter().filter(|(from, to)| !is_way(*from, *to));
        let edges = edges.map(|(from, to)| (from.index(), to.index())).collect();
        let commands = self.plan.steps.len();
        let mut head = vec![format!("{}: {} nodes, {commands} commands", self.device.name(), self.report.nodes)];
        head.extend(profile.map(|profile| {
            let waited = profile.start.saturating_sub(profile.submit) as f64 / 1e3;
            format!(
                "{:.1} us from the first start to the last end, {waited:.1} us from submit to the first start",
                all / 1e3
            )
        }));
        Ok(Picture { head, boxes, edges, total: profile.map(|_| all) })
    }

    /// Returns the bodies of branches and loops, outer ones before inner ones.
    fn frames(&self, tables: &Tables) -> Vec<Frame> {
        let mut frames = Vec::new();
        for id in tables.ir.ids() {
            let Command::Control(control) = tables.ir.command(id) else { continue };
            let bodies = control.bodies.of(&tables.ir.bodies);
            for (number, body) in bodies.iter().enumerate() {
                let (Body::Inlined { nodes, .. }, Some(Body::Inlined { nodes: last, .. })) = (body, bodies.last())
                else {
                    continue;
                };
                let title = match control.kind {
                    ControlKind::When if number == 0 => "then".to_owned(),
                    ControlKind::When => "otherwise".to_owned(),
                    ControlKind::Switch => format!("case {number}"),
                    ControlKind::While { .. } | ControlKind::Repeat { .. } => "body".to_owned(),
                };
                let title = format!("{title} of {}", self.origins.of(id).node.0);
                let boxes = nodes.start as usize..nodes.end as usize;
                frames.push(Frame { boxes, of: id.index(), end: last.end as usize, title });
            }
        }
        for UnrolledAt { begin, end, turns } in &self.unrolled {
            let boxes = begin.index() + 1..end.index();
            if !boxes.is_empty() {
                let title = format!("body of {}, {turns} turns", self.origins.of(*begin).node.0);
                frames.push(Frame { boxes, of: begin.index(), end: end.index(), title });
            }
        }
        frames.sort_by_key(|frame| (frame.boxes.start, std::cmp::Reverse(frame.boxes.end)));
        frames
    }

    /// Returns the turns of an unrolled loop that begins with a planned node.
    fn turns_at(&self, node: NodeId) -> Option<u64> {
        let at = self.unrolled.binary_search_by_key(&node, |place| place.begin).ok()?;
        Some(self.unrolled[at].turns)
    }

    /// Says where each planned node runs. Empty for nodes that do nothing.
    fn where_nodes_run(&self, tables: &Tables) -> Vec<String> {
        let mut parts = vec![String::new(); tables.ir.len()];
        for task in self.plan.tasks() {
            parts[task.node.index()] = "host".to_owned();
        }
        let mut buffer = 0;
        for segment in &self.plan.segments {
            if segment.path != Path::Native {
                self.plan.steps[segment.steps.clone()].iter().for_each(|step| {
                    parts[step.node.index()] = "replay".to_owned();
                });
                continue;
            }
            for steps in segment.chunks(self.plan.chunk()) {
                for step in &self.plan.steps[steps] {
                    parts[step.node.index()] = format!("command buffer {buffer}");
                }
                buffer += 1;
            }
        }
        parts
    }
}

/// Puts the commands of a fused kernel into its box, in the order in which it does them, lane by lane.
fn frame_fused(one: &mut Drawn, fused: &FusedNode, detail: DrawingDetail) {
    let command = |of: &FusedCommand| {
        let number = of.node.to_string();
        let (title, tooltip) = (graph::readable(&of.title), format!("{number} {}", of.title));
        Drawn {
            number,
            title,
            tooltip,
            kind: of.kind.to_string(),
            colour: of.kind as usize,
            copies: 1,
            ..Drawn::default()
        }
    };
    let boxes: Vec<Drawn> = fused.commands.iter().map(command).collect();
    let begins_lane = |at: &usize| fused.lane_ends.contains(at);
    let edges = (1..boxes.len()).filter(|at| !begins_lane(at)).map(|at| (at - 1, at)).collect();
    let picture = Picture { boxes, edges, ..Picture::default() };
    let picture = if detail == DrawingDetail::Brief { picture.folded() } else { picture };
    (one.number, one.title) = (String::new(), fused.title.clone());
    one.pattern = Some(Pattern { picture });
}

/// Draws the entry or the exit of a sub-graph. The entry has the sub-graph's label.
fn end_of(tables: &Tables, id: NodeId, (first, origin): (NodeId, NodeId), kind: NodeKind, what: &str) -> Drawn {
    let mut one = tables.picture_of(id, origin.0.to_string(), DrawingDetail::Brief);
    let kind = if kind == NodeKind::Empty { NodeKind::SubGraph } else { kind };
    (one.kind, one.colour) = (kind.to_string(), kind as usize);
    one.lines = vec![what.to_owned()];
    one.title = tables.label(first).map_or_else(|| kind.to_string(), |label| label.to_string());
    one.tooltip = format!("{} {} {what}", origin.0, one.title);
    one
}
