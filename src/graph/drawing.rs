//! Drawings of a graph: DOT text for Graphviz, and SVG.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use petgraph::dot::{Config, Dot};
use petgraph::graph::{DiGraph, NodeIndex};

use crate::cl::memory::untyped::Mem;
use crate::command::{Arg, Command, ControlKind, Hint, Location, Pixels};
use crate::drawing::{self, Frame, Picture};
use crate::error::{BuildCause, BuildError, Error, Result};
use crate::graph::{Graph, Tables};
use crate::handles::NodeKind;
use crate::ir::{Access, Body, ById, Mode, NodeId, ViewId};

/// How much detail a drawing shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DrawingDetail {
    /// Shows edges, kinds, numbers and kernel names.
    ///
    /// SVG shows nodes that repeat once, with "× N", where the graph has more than 24 nodes.
    #[default]
    Brief,
    /// Shows every node, with edges, kinds, numbers and kernel names.
    Full,
    /// Shows every node, with arguments, ranges and addresses too.
    Verbose,
}

impl Graph {
    /// Returns the graph in the DOT language of Graphviz. `dot -Tsvg` draws it.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # use clgraph::{Buffer, DrawingDetail, Graph, Queue};
    /// # let queue = Queue::new(&clgraph::best_device()?)?;
    /// let graph = Graph::new(&queue)?;
    /// let zeros = Buffer::<u32>::new(&queue, 16)?;
    /// graph.fill(&zeros, 0).add()?;
    /// graph.read(&zeros).add()?;
    /// assert!(graph.to_dot(DrawingDetail::Brief).contains("0 -> 1"));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn to_dot(&self, detail: DrawingDetail) -> String {
        let mut state = self.lock();
        state.refresh_values();
        state.to_dot(detail)
    }

    /// Returns the graph as SVG, for browsers.
    ///
    /// Each node is a box, coloured by its kind; pointing at a box shows all details. Long and thin graphs are cut into
    /// columns. [`Executable::print_graph`](crate::Executable::print_graph) draws the finalized graph.
    ///
    /// # Errors
    /// [`BuildCause::TooManyToDraw`] for more than 5 000 nodes.
    pub fn to_svg(&self, detail: DrawingDetail) -> Result<String> {
        // The layout takes long, so it runs without the lock of the graph.
        let mut state = self.lock();
        state.refresh_values();
        let tables = Arc::clone(&state.tables);
        drop(state);
        let edges = tables.ir.topology.petgraph().raw_edges();
        let edges = edges.iter().map(|edge| (edge.source().index(), edge.target().index())).collect();
        let boxes = tables.ir.ids().map(|id| tables.picture_of(id, id.index().to_string(), detail)).collect();
        let counts = format!("{} nodes, {} edges", tables.ir.len(), tables.ir.topology.edge_count());
        to_svg(Picture { head: vec![counts], boxes, edges, total: None }, detail)
    }

    /// Writes the graph to a `.dot` or `.svg` file. An existing file is replaced.
    ///
    /// # Errors
    /// [`BuildCause::File`] for another extension, or when the file cannot be written; and those of
    /// [`to_svg`](Self::to_svg).
    #[doc(alias = "cudaGraphDebugDotPrint")]
    pub fn print_graph(&self, path: impl AsRef<Path>, detail: DrawingDetail) -> Result<()> {
        let path = path.as_ref();
        let text = match path.extension().and_then(|extension| extension.to_str()) {
            Some("dot") => self.to_dot(detail),
            Some("svg") => self.to_svg(detail)?,
            _ => return Err(not_written(path, "the extension of the file must be `dot` or `svg`".to_owned())),
        };
        write(path, &text)
    }
}

/// Renders a picture as SVG. Refuses a picture that is too large to be useful.
pub(crate) fn to_svg(picture: Picture, detail: DrawingDetail) -> Result<String> {
    let picture = if detail == DrawingDetail::Brief { picture.folded() } else { picture };
    let nodes = picture.count();
    if nodes > drawing::MOST {
        let cause = BuildCause::TooManyToDraw { nodes, most: drawing::MOST };
        return Err(BuildError::new("drawing", cause).into());
    }
    Ok(picture.to_svg())
}

/// Renders a picture as DOT, without its colours. Frames become clusters; outer ones come before inner ones. A box with boxes in it is a
/// cluster of its own.
pub(crate) fn to_dot(picture: &Picture, frames: &[Frame]) -> String {
    let mut text = "digraph {\n".to_owned();
    let head = dot_label(&picture.head);
    let _ = writeln!(text, "    label=\"{head}\" labelloc=\"t\"\n    node [shape=\"box\"]");
    let (mut frames, mut ends) = (frames.iter().enumerate().peekable(), Vec::new());
    for (number, one) in picture.boxes.iter().enumerate() {
        while ends.pop_if(|end| *end <= number).is_some() {
            text.push_str("    }\n");
        }
        while let Some((at, frame)) = frames.next_if(|(_, frame)| frame.boxes.start == number) {
            let title = dot_label(std::slice::from_ref(&frame.title));
            let _ = writeln!(text, "    subgraph cluster_{at} {{\n    label=\"{title}\"");
            ends.push(frame.boxes.end);
        }
        // A fused kernel has no number.
        let mut lines = vec![format!("{} {}", one.number, one.title).trim_start().to_owned()];
        lines.extend(one.lines.iter().chain((!one.part.is_empty()).then_some(&one.part)).cloned());
        lines.extend(drawing::time_line(one, picture.total));
        let line = format!("    {number} [label=\"{}\"]\n", dot_label(&lines));
        match &one.pattern {
            None => text.push_str(&line),
            Some(pattern) => {
                let _ = writeln!(text, "    subgraph cluster_in_{number} {{\n{line}    edge [style=\"dashed\"]");
                for (at, inner) in pattern.picture.boxes.iter().enumerate() {
                    let label = dot_label(&[format!("{} {}", inner.number, inner.title)]);
                    let _ = writeln!(text, "    in_{number}_{at} [label=\"{label}\"]");
                }
                for (from, to) in &pattern.picture.edges {
                    let _ = writeln!(text, "    in_{number}_{from} -> in_{number}_{to}");
                }
                text.push_str("    }\n");
            }
        }
    }
    ends.iter().for_each(|_| text.push_str("    }\n"));
    for (from, to) in &picture.edges {
        let _ = writeln!(text, "    {from} -> {to}");
    }
    text + "}\n"
}

/// Writes a drawing to a file.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| not_written(path, error.to_string()))
}

pub(crate) fn not_written(path: &Path, why: String) -> Error {
    BuildError::new("drawing", BuildCause::File { path: path.to_path_buf(), why }).into()
}

impl Tables {
    /// The box that shows a node, with the given number.
    pub(crate) fn picture_of(&self, id: NodeId, number: String, detail: DrawingDetail) -> drawing::Node {
        let op = self.ir.command(id);
        let (name, kind) = (name(self, op), NodeKind::of(op).to_string());
        let label = self.label(id);
        let mut all = vec![format!("{number} {name}")];
        all.extend(label.map(|label| readable(label)));
        describe(self, id, op, &mut all);
        // A label replaces the name in the title, and the name gets a line of its own.
        let mut lines: Vec<String> = label.map(|_| name.to_string()).into_iter().collect();
        if detail == DrawingDetail::Verbose {
            describe(self, id, op, &mut lines);
        }
        let title = readable(label.unwrap_or(&name));
        let colour = NodeKind::of(op) as usize;
        drawing::Node {
            number,
            title,
            lines,
            tooltip: all.join("\n"),
            kind,
            colour,
            copies: 1,
            ..drawing::Node::default()
        }
    }

    /// The graph as it is now, as DOT.
    pub(crate) fn to_dot(&self, detail: DrawingDetail) -> String {
        let petgraph = self.ir.topology.petgraph();
        let label = |_: &DiGraph<(), ()>, (index, ()): (NodeIndex, &())| attributes(self, index, detail);
        let none = |_: &DiGraph<(), ()>, _| String::new();
        let config = [Config::NodeNoLabel, Config::EdgeNoLabel];
        format!("{:?}", Dot::with_attr_getters(petgraph, &config, &none, &label))
    }
}

/// The DOT attributes of a node: `label="..." shape=...`.
fn attributes(state: &Tables, index: NodeIndex, detail: DrawingDetail) -> String {
    let id = NodeId(index.index() as u32);
    let op = state.ir.command(id);
    let mut lines = vec![format!("{} {}", id.0, name(state, op))];
    lines.extend(state.label(id).map(|label| label.to_string()));
    if detail == DrawingDetail::Verbose {
        describe(state, id, op, &mut lines);
    }
    let text = dot_label(&lines);
    let shape = match op {
        Command::Kernel { .. } => "box",
        Command::Write { .. } | Command::Read { .. } => "cds",
        Command::Empty | Command::Alloc(_) | Command::Free(_) => "circle",
        Command::Task(_) | Command::Event { .. } => "hexagon",
        Command::Native { .. } => "octagon",
        Command::Copy { .. } | Command::CopyRect(_) | Command::CopyImage(_) => "ellipse",
        Command::Fill { .. } | Command::Hint { .. } | Command::SubGraph(_) | Command::Control(_) => "ellipse",
    };
    format!("label=\"{text}\" shape=\"{shape}\"")
}

/// The name of a kernel, or the kind of any other node.
pub(crate) fn name(state: &Tables, op: &Command<ById>) -> Arc<str> {
    match op {
        Command::Kernel { kernel, .. } => Arc::clone(&state.ir.kernels[kernel.index()].name),
        op => NodeKind::of(op).to_string().into(),
    }
}

/// Makes a line safe for people and for programs. Graphviz reads nothing after a NUL and no text above 16 KiB, and XML
/// allows no control characters.
pub(crate) fn readable(line: &str) -> String {
    const MOST: usize = 200;
    let shown = line.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let mut shown: String = shown.take(MOST).collect();
    if line.chars().nth(MOST).is_some() {
        shown.push_str("...");
    }
    shown
}

/// Joins lines into the text between the quotes of a DOT label.
pub(crate) fn dot_label(lines: &[String]) -> String {
    /// In bytes. Graphviz accepts twice as many.
    const ROOM: usize = 8 << 10;
    // `\l` ends a line and aligns it to the left.
    let end = if lines.len() > 1 { "\\l" } else { "" };
    let mut text = String::new();
    for line in lines {
        if text.len() > ROOM {
            text.push_str("...\\l");
            break;
        }
        text.push_str(&escape(line));
        text.push_str(end);
    }
    text
}

fn escape(text: &str) -> String {
    readable(text).replace('\\', "\\\\").replace('"', "\\\"")
}

fn mode(access: &Access) -> &'static str {
    match access.mode {
        Mode::Read => "read",
        Mode::Write => "write",
        Mode::ReadWrite => "read-write",
    }
}

fn describe(state: &Tables, id: NodeId, op: &Command<ById>, lines: &mut Vec<String>) {
    let view = |view: &ViewId| {
        state.mem(*view).map_or_else(
            || {
                "memory that no longer \
                                                                exists"
                    .to_owned()
            },
            Mem::to_string,
        )
    };
    let place =
        |of: &Location<ViewId>, size: usize| format!("{} bytes {}..{}", view(&of.mem), of.offset, of.offset + size);
    match op {
        Command::Empty | Command::Event { .. } => {}
        Command::Task(_) | Command::Native { .. } => {
            lines.extend(state.ir.accesses(id).iter().map(|access| format!("{} {}", mode(access), view(&access.view))));
        }
        Command::Alloc(alloc) => {
            lines.push(format!("allocation {}: {} bytes", alloc.0, state.ir.allocs[alloc.index()].size))
        }
        Command::Free(alloc) => lines.push(format!("allocation {}", alloc.0)),
        Command::SubGraph(child) => {
            lines.push(format!("{} nodes", state.children[child.index()].of.nodes()));
        }
        Command::Control(control) => {
            match control.kind {
                ControlKind::While { at_most: Some(most), .. } => lines.push(format!("at most {most} times")),
                ControlKind::Repeat { turns } => lines.push(format!("{turns} times")),
                _ => {}
            }
            lines.extend(control.condition.iter().map(|number| format!("decided by {}", place(number, 4))));
            for (index, body) in control.bodies.of(&state.ir.bodies).iter().enumerate() {
                let nodes = match body {
                    Body::Executable(child) => state.children[child.index()].of.nodes(),
                    Body::Inlined { nodes, .. } => nodes.len(),
                };
                lines.push(format!("body {index}: {nodes} nodes"));
            }
        }
        Command::Kernel { args, grid, .. } => {
            let dims = grid.dims as usize;
            let mut range = format!("range {:?}", &grid.global[..dims]);
            if grid.offset != [0; 3] {
                let _ = write!(range, " offset {:?}", &grid.offset[..dims]);
            }
            if let Some(local) = &grid.local {
                let _ = write!(range, " work-group {:?}", &local[..dims]);
            }
            lines.push(range);
            let mut uses = state.ir.accesses(id).iter();
            for (index, arg) in state.ir.args(*args).iter().enumerate() {
                let text = match arg {
                    Arg::Unused(_) => continue,
                    Arg::Memory(of) | Arg::Indirect(of) | Arg::Global(of) => {
                        let mode = uses.next().map_or("", mode);
                        let way = match arg {
                            Arg::Indirect(_) => "indirect ",
                            Arg::Global(_) => "device global ",
                            _ => "",
                        };
                        format!("{way}{mode} {}", view(of))
                    }
                    Arg::Null(_) => {
                        uses.next();
                        "null".to_owned()
                    }
                    Arg::Sampler(_) => "sampler".to_owned(),
                    Arg::Local(size) => format!("local {size} bytes"),
                    Arg::Value(span) => {
                        let bytes = state.ir.bytes(*span);
                        let shown: String = bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
                        let more = if bytes.len() > 16 { "..." } else { "" };
                        format!("{} bytes 0x{shown}{more}", bytes.len())
                    }
                };
                lines.push(format!("arg {index}: {text}"));
            }
        }
        Command::Copy { src, dst, size } => {
            lines.push(format!("from {}", place(src, *size)));
            lines.push(format!("to {}", place(dst, *size)));
        }
        Command::CopyRect(rect) => {
            lines.push(format!("region {:?} (bytes, rows, slices)", rect.region));
            let [row, slice, to_row, to_slice] = rect.pitches;
            lines.push(format!("from {} at {:?}, pitch {row}, {slice}", view(&rect.src), rect.src_origin));
            lines.push(format!("to {} at {:?}, pitch {to_row}, {to_slice}", view(&rect.dst), rect.dst_origin));
        }
        Command::CopyImage(copy) => {
            let pixels = |of: &Pixels<ViewId>| match of {
                Pixels::Image(of, origin) => format!("{} at {origin:?}", view(of)),
                Pixels::Buffer(of) => format!("{} from byte {} on", view(&of.mem), of.offset),
            };
            lines.push(format!("region {:?}", copy.region));
            lines.push(format!("from {}", pixels(&copy.src)));
            lines.push(format!("to {}", pixels(&copy.dst)));
        }
        Command::Fill { dst, area: Some(area), .. } => {
            lines.push(format!("{} region {:?} at {:?}", view(&dst.mem), area.region, area.origin));
        }
        Command::Write { dst: of, area: Some(area), .. } | Command::Read { src: of, area: Some(area), .. } => {
            lines.push(format!("{} region {:?} at {:?}", view(&of.mem), area.region, area.origin));
        }
        Command::Fill { dst, size, pattern, .. } => {
            lines.push(place(dst, *size));
            lines.push(format!("pattern of {} bytes", pattern.len()));
        }
        Command::Hint { of, size, hint } => {
            lines.push(place(of, *size));
            match hint {
                Hint::ToDevice => lines.push("to the device".to_owned()),
                Hint::ToHost => lines.push("to the host".to_owned()),
                Hint::Advice(advice) => lines.push(format!("advice {advice:#x}")),
            }
        }
        Command::Write { dst, size, .. } => lines.push(format!("to {}", place(dst, *size))),
        Command::Read { src, size, .. } => lines.push(format!("from {}", place(src, *size))),
    }
}
