//! A picture of a graph's own memory: when each allocation is needed, and at which bytes.

use std::path::Path;

use svg::Document;
use svg::node::element::{Group, Rectangle, Text, Title};

use crate::error::{BuildCause, BuildError, Result};
use crate::graph::readable;
use crate::report::summary::{AllocationReport, MemoryReport};

/// In pixels.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 420.0;
const MARGIN: f64 = 60.0;
/// The width of a character.
const CHAR: f64 = 7.5;
/// Seven colours, so that nodes that follow each other, also in twos and threes, can be told apart.
const COLOURS: [&str; 7] = ["#a6cee3", "#fdbf6f", "#b2df8a", "#fb9a99", "#cab2d6", "#ffff99", "#d9d9d9"];

impl MemoryReport {
    /// Draws the allocations as SVG, with one picture for each buffer: steps from left to right, bytes from bottom to
    /// top. An allocation that keeps its content from one submission to the next reaches both ends.
    ///
    /// ```
    /// # fn main() -> clgraph::Result<()> {
    /// # let queue = clgraph::Queue::new(&clgraph::best_device()?)?;
    /// let graph = clgraph::Graph::new(&queue)?;
    /// let memory = graph.alloc::<u8>(1000).add()?;
    /// graph.fill(&memory, 0).add()?;
    /// let executable = graph.finalize(clgraph::Finalize::new())?;
    /// assert!(executable.report().memory.to_svg().contains("1000 bytes"));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn to_svg(&self) -> String {
        let steps = self.allocations.iter().map(|one| one.last.unwrap_or(one.first) + 1).max().unwrap_or(1);
        let height = (HEIGHT + MARGIN) * self.buffers.len() as f64 + MARGIN;
        let mut document = Document::new()
            .set("viewBox", (0.0, 0.0, WIDTH + 2.0 * MARGIN, height))
            .set("font-family", "sans-serif")
            .set("font-size", 13)
            .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"));
        for (buffer, bytes) in self.buffers.iter().enumerate() {
            let top = MARGIN + (HEIGHT + MARGIN) * buffer as f64;
            let head = format!(
                "buffer {buffer}: {bytes} bytes from bottom to top; boxes have the number of the node that allocates"
            );
            let foot = format!("{steps} steps of the order, from left to right");
            for (text, y) in [(head, top - 8.0), (foot, top + HEIGHT + 18.0)] {
                document = document.add(Text::new(text).set("x", MARGIN).set("y", y));
            }
            document = document.add(frame(top));
            for one in self.allocations.iter().filter(|one| one.buffer == buffer) {
                document = document.add(allocation(one, top, *bytes, steps));
            }
        }
        document.to_string()
    }

    /// Writes [`to_svg`](Self::to_svg) to a file with any extension. An existing file is replaced.
    ///
    /// # Errors
    /// [`BuildCause::File`], in a [`BuildError`].
    pub fn write_svg(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let wrong = |error: std::io::Error| BuildCause::File { path: path.to_owned(), why: error.to_string() };
        Ok(std::fs::write(path, self.to_svg()).map_err(|error| BuildError::new("drawing of memory", wrong(error)))?)
    }
}

fn frame(top: f64) -> Rectangle {
    let frame = Rectangle::new().set("x", MARGIN).set("y", top).set("width", WIDTH).set("height", HEIGHT);
    frame.set("fill", "none").set("stroke", "#999")
}

fn allocation(one: &AllocationReport, top: f64, bytes: usize, steps: usize) -> Group {
    let (first, end) = (one.first, one.last.map_or(steps, |last| last + 1));
    let x = MARGIN + WIDTH * first as f64 / steps as f64;
    let width = (WIDTH * (end - first) as f64 / steps as f64).max(0.5);
    let tall = HEIGHT * one.bytes as f64 / bytes.max(1) as f64;
    let y = top + HEIGHT - HEIGHT * one.offset as f64 / bytes.max(1) as f64 - tall;
    let colour = COLOURS[one.node % COLOURS.len()];
    let last = one.last.map_or_else(|| "for ever".to_owned(), |last| format!("to step {last}"));
    let name = format!("{} {}", one.node, one.label.as_deref().map(readable).unwrap_or_default());
    let name = name.trim();
    let text = format!("node {name}: {} bytes at {}, from step {} {last}", one.bytes, one.offset, one.first);
    let body = Rectangle::new().set("x", x).set("y", y).set("width", width).set("height", tall);
    let body = body.set("fill", colour).set("stroke", "#444").set("stroke-width", 0.5);
    let mut group = Group::new().add(Title::new(text)).add(body);
    // A label that has no room stays in the tooltip; its number stays as long as there is room for that.
    let room = (width / CHAR) as usize;
    let name = if name.chars().count() <= room { name.to_owned() } else { one.node.to_string() };
    if name.chars().count() <= room && tall > 14.0 {
        let name = Text::new(name).set("x", x + width / 2.0).set("y", y + tall / 2.0 + 4.5);
        group = group.add(name.set("text-anchor", "middle"));
    }
    group
}
