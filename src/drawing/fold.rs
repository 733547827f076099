//! Draws what repeats once: a run of boxes that comes N times in a row becomes one box with "× N".
//!
//! Boxes come in the order of their numbers. A *pattern* is a run of consecutive boxes that is followed by copies of
//! itself: the same names and kinds (numbers in names do not count), and the same arrows between them, within a copy
//! and from one copy to the next. An iteration of a loop, a layer of a network and a sub-graph that is used again and
//! again are such patterns. A pattern may contain patterns; each level is at least three times smaller than the one
//! around it, so the depth is small.

use std::collections::{BTreeSet, HashMap};

use super::{Node, Pattern, Picture};

/// A picture with no more boxes than this is clear enough in full.
const CLEAR: usize = 24;
/// Copies that make a repetition.
const COPIES: usize = 3;
/// Boxes in a pattern, at most. A search takes time in proportion to it.
const LONGEST: usize = 128;
/// A repetition is folded if that saves so many boxes.
const SAVED: usize = 6;

/// A pattern and its copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start: usize,
    /// Boxes in one copy.
    period: usize,
    copies: usize,
}

impl Run {
    fn boxes(self) -> usize {
        self.period * self.copies
    }
}

/// Draws each repetition once, where the picture is too large to be clear.
pub(super) fn fold(picture: Picture) -> Picture {
    if picture.boxes.len() <= CLEAR { picture } else { fold_all(picture) }
}

fn fold_all(picture: Picture) -> Picture {
    let runs = runs(&signatures(&picture.boxes), &predecessors(&picture));
    if runs.is_empty() {
        return picture;
    }
    let Picture { head, boxes, edges, total } = picture;
    let mut outer = Picture { head, boxes: Vec::new(), edges: Vec::new(), total };
    // By old number: the new one.
    let (count, mut moved) = (boxes.len(), Vec::with_capacity(boxes.len()));
    let (mut left, mut next) = (boxes.into_iter(), runs.into_iter().peekable());
    while moved.len() < count {
        let single = Run { start: moved.len(), period: 1, copies: 1 };
        let run = next.next_if(|run| run.start == moved.len()).unwrap_or(single);
        let number = outer.boxes.len();
        moved.extend(std::iter::repeat_n(number, run.boxes()));
        let copies: Vec<Node> = left.by_ref().take(run.boxes()).collect();
        if run.copies == 1 {
            outer.boxes.extend(copies);
            continue;
        }
        let within = |(from, to): &(usize, usize)| {
            let first = run.start..run.start + run.period;
            (first.contains(from) && first.contains(to)).then(|| (from - run.start, to - run.start))
        };
        let inner = edges.iter().filter_map(within).collect();
        let is_carried = edges.iter().any(|(from, to)| {
            let all = run.start..run.start + run.boxes();
            let copy = |at: &usize| (at - run.start) / run.period;
            all.contains(from) && all.contains(to) && copy(from) != copy(to)
        });
        outer.boxes.push(together(copies, run, inner, is_carried, total));
    }
    let mut seen = BTreeSet::new();
    for (from, to) in edges {
        let edge = (moved[from], moved[to]);
        if edge.0 != edge.1 && seen.insert(edge) {
            outer.edges.push(edge);
        }
    }
    outer
}

/// One box for all copies of a pattern.
fn together(copies: Vec<Node>, run: Run, edges: Vec<(usize, usize)>, is_carried: bool, total: Option<f64>) -> Node {
    let order = if is_carried { "in a row" } else { "without order" };
    let (first, last) = (copies.first().map(|one| one.number.clone()), copies.last().map(|one| one.number.clone()));
    let numbers = format!("{} to {}", first.unwrap_or_default(), last.unwrap_or_default());
    let mut boxes: Vec<Node> = Vec::with_capacity(run.period);
    for (at, copy) in copies.into_iter().enumerate() {
        match boxes.get_mut(at % run.period) {
            Some(first) if at >= run.period => {
                first.copies += copy.copies;
                first.time = [first.time, copy.time].into_iter().flatten().reduce(|a, b| a + b);
                first.waits |= copy.waits;
                if first.part != copy.part {
                    first.part = several(&first.part);
                    first.lines.retain(|line| !line.ends_with(|end: char| end.is_ascii_digit()));
                }
            }
            _ => boxes.push(copy),
        }
    }
    let tooltip = format!("{numbers}: {} copies {order}", run.copies);
    match boxes.pop() {
        Some(mut one) if run.period == 1 => {
            one.number = numbers;
            one.lines.push(format!("× {} {order}", run.copies));
            one.tooltip = format!("{tooltip}, of which the first is\n{}", one.tooltip);
            one
        }
        last => {
            boxes.extend(last);
            let picture = fold_all(Picture { head: Vec::new(), boxes, edges, total });
            let title = format!("× {} {order}", run.copies);
            Node { number: numbers, title, tooltip, pattern: Some(Pattern { picture }), ..Node::default() }
        }
    }
}

/// `command buffer 7` and another one: `several command buffers`.
fn several(part: &str) -> String {
    match part.rsplit_once(' ') {
        Some((what, number)) if number.parse::<usize>().is_ok() => format!("several {what}s"),
        _ if part.starts_with("several ") => part.to_owned(),
        _ => "several places".to_owned(),
    }
}

/// A number for each look: boxes of one look may be copies of each other.
fn signatures(boxes: &[Node]) -> Vec<usize> {
    let mut known = HashMap::new();
    let look = |one: &Node| {
        // `layer 7` and `layer 8` are alike.
        let title: String = one.title.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        let mut title = title;
        while title.contains("00") {
            title = title.replace("00", "0");
        }
        (title, one.kind.clone(), one.pattern.is_some())
    };
    let number = |one: &Node| {
        let next = known.len();
        *known.entry(look(one)).or_insert(next)
    };
    boxes.iter().map(number).collect()
}

/// By box: the boxes that arrows come from, sorted.
fn predecessors(picture: &Picture) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new(); picture.boxes.len()];
    picture.edges.iter().for_each(|(from, to)| all[*to].push(*from));
    all.iter_mut().for_each(|of: &mut Vec<usize>| of.sort_unstable());
    all
}

/// The repetitions, from left to right: at each place the one that saves most boxes.
fn runs(looks: &[usize], predecessors: &[Vec<usize>]) -> Vec<Run> {
    let (mut found, mut start) = (Vec::new(), 0);
    while start < looks.len() {
        let longest = LONGEST.min((looks.len() - start) / COPIES);
        let mut best: Option<Run> = None;
        for period in 1..=longest {
            let alike = (start..looks.len() - period)
                .take_while(|at| {
                    let (a, b) = (*at, at + period);
                    looks[a] == looks[b] && same_arrows(&predecessors[a], &predecessors[b], a, start, period)
                })
                .count();
            let run = Run { start, period, copies: alike / period + 1 };
            let saves = |run: Run| run.boxes() - run.period;
            if run.copies >= COPIES && saves(run) >= SAVED && best.is_none_or(|best| saves(run) > saves(best)) {
                best = Some(run);
            }
        }
        start += best.map_or(1, Run::boxes);
        found.extend(best);
    }
    found
}

/// Whether a box (`at`, with the predecessors `a`) and the one a period later (`b`) have the same arrows from their own
/// copy and, but for the first copy, from copies before. Arrows from outside of the run are the same for all, or those
/// of the first copy only.
fn same_arrows(a: &[usize], b: &[usize], at: usize, start: usize, period: usize) -> bool {
    let copy = |at: usize| (at - start) / period;
    let is_first = copy(at) == 0;
    // Without a copy before the first there is nothing to come from.
    let counts = |from: usize, to: usize| from >= start && (!is_first || copy(from) == copy(to));
    let (later, here) = (at + period, at);
    let of_b: Vec<usize> = b
        .iter()
        .copied()
        .filter(|from| counts(*from, later) && from - start >= period)
        .map(|from| from - period)
        .collect();
    let of_a: Vec<usize> = a.iter().copied().filter(|from| counts(*from, here)).collect();
    if of_a != of_b {
        return false;
    }
    // What comes from outside.
    let outside = |of: &[usize]| of.iter().copied().filter(|from| *from < start).collect::<Vec<_>>();
    is_first || outside(a) == outside(b)
}

#[cfg(test)]
mod tests {
    use quickcheck::QuickCheck;

    use super::*;

    fn picture(names: &[&str], edges: Vec<(usize, usize)>) -> Picture {
        let node = |(number, title): (usize, &&str)| Node {
            number: number.to_string(),
            title: (*title).to_owned(),
            copies: 1,
            time: Some(1.0),
            ..Node::default()
        };
        Picture { boxes: names.iter().enumerate().map(node).collect(), edges, ..Picture::default() }
    }

    fn show(picture: &Picture) -> String {
        let node = |one: &Node| match &one.pattern {
            Some(pattern) => format!("{} [{}]", one.title, show(&pattern.picture)),
            None => [std::slice::from_ref(&one.title), &one.lines[..]].concat().join(" "),
        };
        let edges: Vec<String> = picture.edges.iter().map(|(from, to)| format!("{from}-{to}")).collect();
        format!("{}; {}", picture.boxes.iter().map(node).collect::<Vec<_>>().join(", "), edges.join(" "))
    }

    fn chain(count: usize) -> Vec<(usize, usize)> {
        (1..count).map(|node| (node - 1, node)).collect()
    }

    /// Rule Q3
    #[test]
    fn a_chain_and_a_loop_are_drawn_once() {
        let small = picture(&["fill"; 24], chain(24));
        assert_eq!(fold(small).boxes.len(), 24, "it is clear in full");
        let names: Vec<&str> = [&["write"][..], &["step"; 1000], &["read"]].concat();
        assert_eq!(show(&fold(picture(&names, chain(1002)))), "write, step × 1000 in a row, read; 0-1 1-2");
        let names: Vec<&str> = [&["write"][..], &["blur", "sharpen", "mix"].repeat(40), &["read"]].concat();
        assert_eq!(
            show(&fold(picture(&names, chain(122)))),
            "write, × 40 in a row [blur, sharpen, mix; 0-1 1-2], read; 0-1 1-2"
        );
        let forks = (1..=40).map(|node| (0, node)).chain((1..=40).map(|node| (node, 41))).collect();
        let names: Vec<&str> = [&["start"][..], &["part 1"; 20], &["part 22"; 20], &["end"]].concat();
        assert_eq!(show(&fold(picture(&names, forks))), "start, part 1 × 40 without order, end; 0-1 1-2");
    }

    /// Rule Q3
    #[test]
    fn patterns_hold_patterns() {
        let layer: Vec<&str> = [&["load"][..], &["multiply"; 20], &["store"]].concat();
        let names = layer.repeat(10);
        let folded = fold(picture(&names, chain(220)));
        assert_eq!(show(&folded), "× 10 in a row [load, multiply × 20 in a row, store; 0-1 1-2]; ");
        let inner = folded.boxes[0].pattern.as_ref().unwrap();
        assert_eq!((inner.picture.boxes[1].copies, inner.picture.boxes[1].time), (200, Some(200.0)));
    }

    /// Rule Q3: what has other arrows is no copy.
    #[test]
    fn copies_have_the_same_arrows() {
        let mut edges = chain(30);
        edges.push((3, 20));
        let folded = fold(picture(&["step"; 30], edges));
        assert!(folded.boxes.len() > 1, "{}", show(&folded));
    }

    /// Rule Q3: nothing is lost, whatever the graph.
    #[test]
    fn all_boxes_of_random_graphs_are_counted() {
        fn counts(names: Vec<u8>, edges: Vec<(u8, u8)>) -> bool {
            fn count(picture: &Picture) -> usize {
                let boxes = picture.boxes.iter();
                boxes.map(|one| one.pattern.as_ref().map_or(one.copies, |pattern| count(&pattern.picture))).sum()
            }
            let names: Vec<&str> = names.iter().map(|name| ["a", "b", "c"][usize::from(name % 3)]).collect();
            let all = names.len();
            let edges =
                edges.into_iter().filter(|_| all > 1).map(|(a, b)| (usize::from(a) % all, usize::from(b) % all));
            let edges = edges.filter(|(a, b)| a != b).map(|(a, b)| (a.min(b), a.max(b))).collect();
            let folded = fold_all(picture(&names, edges));
            count(&folded) == all && folded.edges.iter().all(|(a, b)| a.max(b) < &folded.boxes.len())
        }
        QuickCheck::new().tests(500).quickcheck(counts as fn(Vec<u8>, Vec<(u8, u8)>) -> bool);
    }
}
