//! What became of a graph, as a picture.

use std::collections::HashMap;
use std::path::Path as FilePath;
use std::sync::Arc;

use super::{Executable, Inner, NodeProfile, Profile};
use crate::cl::reentrancy;
use crate::drawing::{Box, Picture};
use crate::error::{BuildCause, BuildError, Result};
use crate::graph::{self, Detail, Node, NodeKind, Tables};
use crate::ir::NodeId;
use crate::plan::Path;

impl Executable {
    /// The executable as SVG, for browsers: the nodes that were planned, with sub-graphs written out, and the edges that were kept.
    /// The border of a box says where the node runs: on the host, replayed, or in which command buffer; the box has the colour of
    /// its kind, or with a profile that of its share of the time.
    ///
    /// # Errors
    /// [`BuildCause::TooManyToDraw`] for more than 5 000 nodes; [`BuildCause::OtherExecutable`] for a profile of another executable's
    /// submission; [`SubmitError::InsideNativeCommand`](crate::SubmitError::InsideNativeCommand).
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, Finalize, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let graph = Graph::new(&queue)?;
    /// let buffer = Buffer::<u32>::new(&queue, 1 << 16)?;
    /// graph.fill(&buffer, 7).label("clear").add()?;
    /// graph.read(&buffer).add()?;
    /// let executable = graph.finalize(Finalize::new().profiling())?;
    /// let run = executable.submit(&queue)?;
    /// run.wait()?;
    /// let svg = executable.to_svg(Some(&run.profile()?))?;
    /// assert!(svg.contains("clear") && svg.contains("of the longest time"));
    /// # Ok(()) }
    /// ```
    pub fn to_svg(&self, profile: Option<&Profile>) -> Result<String> {
        reentrancy::check_call()?;
        let exec = &*self.0;
        // Laying out takes a while: not under the lock.
        let tables = Arc::clone(&exec.lane().values.tables);
        graph::to_svg(exec.picture(&tables, profile)?)
    }

    /// Writes the picture of [`to_svg`](Self::to_svg) to a `.svg` file, or as text for Graphviz to a `.dot` file, where times are in the
    /// lines of nodes. An existing file is replaced.
    ///
    /// # Errors
    /// [`BuildCause::File`] for another extension, or when the file cannot be written; those of [`to_svg`](Self::to_svg).
    pub fn print_graph(&self, path: impl AsRef<FilePath>, profile: Option<&Profile>) -> Result<()> {
        let path = path.as_ref();
        let text = match path.extension().and_then(|extension| extension.to_str()) {
            Some("dot") => {
                reentrancy::check_call()?;
                let tables = Arc::clone(&self.0.lane().values.tables);
                graph::to_dot(&self.0.picture(&tables, profile)?)
            }
            Some("svg") => self.to_svg(profile)?,
            _ => return Err(graph::not_written(path, "its extension must be `dot` or `svg`".to_owned())),
        };
        graph::write(path, &text)
    }
}

impl Inner {
    fn picture(&self, tables: &Tables, profile: Option<&Profile>) -> Result<Picture> {
        if profile.is_some_and(|profile| profile.executable != self.id) {
            return Err(BuildError::new("drawing with times", BuildCause::OtherExecutable).into());
        }
        let parts = self.where_nodes_run(tables);
        let mut times: HashMap<(Node, Option<usize>), &NodeProfile> = HashMap::new();
        for node in profile.iter().flat_map(|profile| &profile.nodes) {
            times.insert((node.node, node.inside), node);
        }
        let all = profile.map_or(1.0, |profile| profile.duration().as_nanos().max(1) as f64);
        // Waiting is no work.
        let works = |node: &NodeProfile| node.kind != NodeKind::EventWait;
        let longest = times.values().filter(|node| works(node)).map(|node| node.duration().as_nanos());
        let longest = longest.max().unwrap_or(0).max(1) as f64;
        let written = self.origins.written();
        let mut boxes = Vec::with_capacity(tables.ir.len());
        for (id, part) in tables.ir.ids().zip(parts) {
            let origin = self.origins.of(id).node;
            // The first and the last node of a sub-graph are its entry and its exit.
            let span = written.as_ref().map(|written| written[origin.index()]).filter(|(_, count)| *count > 1);
            let ends = span.map(|(first, count)| (id.index() - first.index(), count as usize - 1));
            let mut one = match ends {
                Some((0, _)) => end_of(tables, id, (id, origin), "begins"),
                Some((at, last)) if at == last => end_of(tables, id, (NodeId(id.0 - last as u32), origin), "ends"),
                Some((at, _)) => tables.picture_of(id, format!("{}.{}", origin.0, at - 1), Detail::Brief),
                None => tables.picture_of(id, origin.0.to_string(), Detail::Brief),
            };
            if !part.is_empty() {
                one.tooltip = format!("{}\n{part}", one.tooltip);
            }
            if part.ends_with(|last: char| last.is_ascii_digit()) {
                one.lines.push(part.clone());
            }
            one.part = part;
            if let Some(time) = times.remove(&(self.node(origin), ends.map(|(at, _)| at.wrapping_sub(1)))) {
                let took = time.duration().as_nanos() as f64;
                one.heat = works(time).then_some(took / longest);
                let text = format!("{:.1} us, {:.1} %", took / 1e3, 100.0 * took / all);
                one.tooltip = format!("{}\n{text}", one.tooltip);
                one.lines.push(text);
            }
            boxes.push(one);
        }
        // One from the entry of a sub-graph to its exit says nothing, unless there is nothing between.
        let is_way = |from: NodeId, to: NodeId| {
            let (a, b) = (self.origins.of(from).node, self.origins.of(to).node);
            let span = written.as_ref().map(|written| written[a.index()]);
            a == b && span.is_some_and(|(first, count)| first == from && count > 2 && to.0 == first.0 + count - 1)
        };
        let edges = self.plan.edges.needed.iter().filter(|(from, to)| !is_way(*from, *to));
        let edges = edges.map(|(from, to)| (from.index(), to.index())).collect();
        let commands = self.plan.steps.len();
        let mut head = vec![format!("{}: {} nodes, {commands} commands", self.device.name(), tables.ir.len())];
        head.extend(profile.map(|profile| {
            let waited = profile.start.saturating_sub(profile.submit) as f64 / 1e3;
            format!(
                "{:.1} us from the first start to the last end, {waited:.1} us from submit to the first start",
                all / 1e3
            )
        }));
        Ok(Picture { head, boxes, edges, timed: profile.is_some() })
    }

    /// Where each planned node runs, in words. Empty for what does nothing.
    fn where_nodes_run(&self, tables: &Tables) -> Vec<String> {
        let mut parts = vec![String::new(); tables.ir.len()];
        for task in &self.plan.tasks {
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

/// Where a sub-graph begins or ends, which has a label where it begins.
fn end_of(tables: &Tables, id: NodeId, (first, origin): (NodeId, NodeId), what: &str) -> Box {
    let mut one = tables.picture_of(id, origin.0.to_string(), Detail::Brief);
    (one.kind, one.colour) = (NodeKind::SubGraph.to_string(), NodeKind::SubGraph as usize);
    one.lines = vec![format!("{} {what}", origin.0)];
    one.title = tables.label(first).map_or_else(|| "sub-graph".to_owned(), |label| label.to_string());
    one.tooltip = format!("{} {} {what}", origin.0, one.title);
    one
}
