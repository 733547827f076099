//! Frames: the bodies of branches and loops, each as a box with the nodes of the body in it.

use std::collections::HashMap;
use std::ops::Range;

use super::{Node, Pattern, Picture};

/// How deep frames nest in a drawing. Drawing recurses into frames.
const DEPTH: usize = 6;

/// A frame to be drawn.
#[derive(Debug)]
pub(crate) struct Frame {
    /// The boxes inside it. The first is where the body begins; it is not drawn.
    pub(crate) boxes: Range<usize>,
    /// The box of the branch or loop.
    pub(crate) of: usize,
    /// The box where the branch or loop ends.
    pub(crate) end: usize,
    pub(crate) title: String,
}

impl Picture {
    /// The same picture with frames, of which outer ones come before inner ones. `fold` says whether what repeats inside
    /// a frame is drawn once.
    pub(crate) fn framed(self, frames: &[Frame], fold: bool) -> Self {
        let mut boxes: Vec<Option<Node>> = self.boxes.into_iter().map(Some).collect();
        let mut edges = self.edges;
        let is_around =
            |outer: &Frame, inner: &Frame| outer.boxes.start < inner.boxes.start && inner.boxes.end <= outer.boxes.end;
        let depth = |frame: &Frame| frames.iter().filter(|other| is_around(other, frame)).count();
        for frame in frames.iter().rev().filter(|frame| depth(frame) < DEPTH) {
            let begin = frame.boxes.start;
            let mut inner = Picture { total: self.total, ..Picture::default() };
            let mut places = HashMap::new();
            for at in frame.boxes.clone() {
                if let Some(one) = boxes[at].take().filter(|_| at != begin) {
                    places.insert(at, inner.boxes.len());
                    inner.boxes.push(one);
                }
            }
            let mut outside = Vec::with_capacity(edges.len() + 2);
            for (from, to) in edges {
                match (places.get(&from), places.get(&to)) {
                    (Some(from), Some(to)) => inner.edges.push((*from, *to)),
                    // From the begin, to the end, or to another body, which only keeps an order.
                    _ if frame.boxes.contains(&from) || frame.boxes.contains(&to) => {}
                    _ => outside.push((from, to)),
                }
            }
            outside.extend([(frame.of, begin), (begin, frame.end)]);
            edges = outside;
            let (title, tooltip) = (frame.title.clone(), format!("{}: {} nodes", frame.title, inner.boxes.len()));
            let pattern =
                (!inner.boxes.is_empty()).then(|| Pattern { picture: if fold { inner.folded() } else { inner } });
            boxes[begin] = Some(Node { title, tooltip, pattern, ..Node::default() });
        }
        let mut places = vec![None; boxes.len()];
        let mut kept = Vec::with_capacity(boxes.len());
        for (place, one) in places.iter_mut().zip(boxes) {
            if let Some(one) = one {
                *place = Some(kept.len());
                kept.push(one);
            }
        }
        let edges = edges.into_iter().filter_map(|(from, to)| Some((places[from]?, places[to]?))).collect();
        Self { boxes: kept, edges, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(picture: &Picture) -> String {
        let one = |one: &Node| match &one.pattern {
            Some(pattern) => format!("{} [{}]", one.title, show(&pattern.picture)),
            None => one.title.clone(),
        };
        let boxes: Vec<String> = picture.boxes.iter().map(one).collect();
        format!("{} {:?}", boxes.join(", "), picture.edges)
    }

    /// Rule Q3: a loop with a branch in it, whose second body is empty.
    #[test]
    fn bodies_are_in_frames() {
        // 0 loop, 1 its body begins, 2 a, 3 branch, 4 begins, 5 b, 6 begins, 7 branch ends, 8 loop ends, 9 after
        let titles = ["loop", "", "a", "branch", "", "b", "", "", "", "after"];
        let boxes = titles.map(|title| Node { title: title.to_owned(), ..Node::default() });
        let edges = vec![(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (3, 7), (7, 8), (8, 9)];
        let picture = Picture { boxes: boxes.into(), edges, ..Picture::default() };
        let frame = |boxes, of, end, title: &str| Frame { boxes, of, end, title: title.to_owned() };
        let frames = [frame(1..8, 0, 8, "body"), frame(4..6, 3, 7, "then"), frame(6..7, 3, 7, "otherwise")];
        assert_eq!(
            show(&picture.framed(&frames, true)),
            "loop, body [a, branch, then [b []], otherwise,  [(0, 1), (1, 4), (1, 3), (3, 4), (1, 2), (2, 4)]], , after \
             [(2, 3), (0, 1), (1, 2)]"
        );
    }
}
