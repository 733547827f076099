//! Pictures of graphs: boxes and arrows as SVG. Knows neither graphs nor OpenCL, only boxes, their texts and their
//! arrows.
//!
//! Input: boxes and arrows, from `graph/drawing.rs` (a graph) and `exec/drawing.rs` (an executable). Output: SVG
//! text.
//!
//! | file | what is there |
//! |---|---|
//! | `mod.rs` | what a picture consists of: boxes, arrows, colours by kind or by time. Read it first |
//! | `fold.rs` | runs of equal boxes are drawn once, with "× N" |
//! | `frames.rs` | the bodies of branches and loops, each in a frame |
//! | `render.rs` | a picture as SVG: colours, lines, texts |
//! | `layout.rs` | where boxes and arrows go; the crate `rust-sugiyama` finds the layers and the order in them |
//!
//! Drawings and their limits are rule Q3.

mod fold;
mod frames;
mod layout;
mod render;

pub(crate) use frames::Frame;
pub(crate) use render::time_line;

/// Everything that a drawing shows.
#[derive(Debug, Default)]
pub(crate) struct Picture {
    /// Lines above the picture.
    pub(crate) head: Vec<String>,
    /// In the order of their numbers.
    pub(crate) boxes: Vec<Node>,
    /// The indices of the boxes where an edge starts and ends.
    pub(crate) edges: Vec<(usize, usize)>,
    /// The nanoseconds that all of it took, if it was timed. Then the colour of a box shows its share of this time;
    /// otherwise the colour shows the kind of the node.
    pub(crate) total: Option<f64>,
}

/// A box.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The number of the node in the graph. It stands before the title.
    pub(crate) number: String,
    /// The first line.
    pub(crate) title: String,
    /// Further lines, in smaller text.
    pub(crate) lines: Vec<String>,
    /// What a browser shows when the mouse points at the box.
    pub(crate) tooltip: String,
    /// The kind of the node, as the legend names it.
    pub(crate) kind: String,
    /// The index of the box's colour.
    pub(crate) colour: usize,
    /// Where the node runs, as the legend names it. Each place has its own border colour. Empty if unknown.
    pub(crate) part: String,
    /// The nanoseconds that the node took, or all copies together.
    pub(crate) time: Option<f64>,
    /// Whether the node only waits. Its time is then not work, and has no colour.
    pub(crate) waits: bool,
    /// The number of nodes that the box stands for.
    pub(crate) copies: usize,
    /// What is in the box: a pattern that repeats, or a body.
    pub(crate) pattern: Option<Pattern>,
}

/// The content of a box that has boxes in it: a pattern that repeats, or a body of a branch or loop.
#[derive(Debug, Default)]
pub(crate) struct Pattern {
    pub(crate) picture: Picture,
}

/// The most boxes of a picture. A larger picture is of no use to anybody.
pub(crate) const MOST: usize = 5_000;

impl Picture {
    /// The same picture, where runs of boxes that repeat are drawn once. Small pictures stay as they are.
    pub(crate) fn folded(self) -> Self {
        fold::fold(self)
    }

    /// The number of boxes, those in boxes too.
    pub(crate) fn count(&self) -> usize {
        self.all().len()
    }

    /// All boxes, those in patterns too.
    fn all(&self) -> Vec<&Node> {
        let mut all: Vec<&Node> = self.boxes.iter().collect();
        let mut at = 0;
        while let Some(one) = all.get(at) {
            let inner = one.pattern.iter().flat_map(|pattern| &pattern.picture.boxes).collect::<Vec<_>>();
            all.extend(inner);
            at += 1;
        }
        all.retain(|one| one.pattern.is_none());
        all
    }
}
