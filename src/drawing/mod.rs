//! Pictures of graphs: boxes and arrows as SVG. Knows neither graphs nor OpenCL, only what is to be shown.

mod layout;

use svg::Document;
use svg::node::element::{Definitions, Group, Marker, Path, Rectangle, Text, Title};

use layout::{Layout, Route};

/// What is drawn.
#[derive(Debug, Default)]
pub(crate) struct Picture {
    /// Lines above the picture.
    pub(crate) head: Vec<String>,
    pub(crate) boxes: Vec<Box>,
    /// From and to.
    pub(crate) edges: Vec<(usize, usize)>,
    /// Whether boxes are coloured by how long they took, and else by what they are.
    pub(crate) timed: bool,
}

/// A node.
#[derive(Debug, Default)]
pub(crate) struct Box {
    /// The first line.
    pub(crate) title: String,
    /// More lines, smaller.
    pub(crate) lines: Vec<String>,
    /// What a browser shows when it is pointed at.
    pub(crate) tooltip: String,
    /// What it is, as legends say it.
    pub(crate) kind: String,
    /// The number of its colour.
    pub(crate) colour: usize,
    /// Where it runs, as legends say it: a border each. Empty where nothing is known.
    pub(crate) part: String,
    /// How long it took, from 0 to 1 for the longest.
    pub(crate) heat: Option<f64>,
}

/// A picture of more boxes is of no use to anybody.
pub(crate) const MOST: usize = 5_000;

/// Pixels.
const LINE: f64 = 14.0;
const CHAR: f64 = 6.7;
const PAD: f64 = 8.0;
const MARGIN: f64 = 24.0;
/// Kinds, and parts, that a legend shows. The colours of parts repeat, and each box has its number.
const SHOWN: [usize; 2] = [24, 8];
/// Longer lines are cut.
const LONGEST: usize = 44;

/// Colours of kinds: told apart, black is read on them, and none is like heat.
const KINDS: [&str; 20] = [
    "#eeeeee", "#a6cee3", "#b2df8a", "#ccebc5", "#8dd3c7", "#e7d4e8", "#d9c7a0", "#c7b89c", "#cab2d6", "#66c2a5",
    "#a6d854", "#d9f0d3", "#bfd3c1", "#d9d9d9", "#bdbdbd", "#fccde5", "#f2d6cb", "#e5b8c8", "#80b1d3", "#bebada",
];
/// Of borders: of parts with a number at their end, in turn, and of others.
const NUMBERED: [&str; 6] = ["#1f78b4", "#e31a1c", "#33a02c", "#6a3d9a", "#ff7f00", "#01665e"];
const OTHERS: [&str; 2] = ["#666666", "#b15928"];

/// The number at the end of a part.
fn number(part: &str) -> Option<usize> {
    part.rsplit(' ').next()?.parse().ok()
}

/// The colour of a part among all.
fn border(part: &str, parts: &[&str]) -> &'static str {
    match number(part) {
        _ if part.is_empty() => "#444",
        Some(number) => NUMBERED[number % NUMBERED.len()],
        None => {
            let others = parts.iter().filter(|part| number(part).is_none());
            OTHERS[others.take_while(|other| **other != part).count() % OTHERS.len()]
        }
    }
}

fn cut(text: &str) -> String {
    let text = plain(text);
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}

/// Without characters that XML 1.0 does not have (section 2.2).
fn plain(text: &str) -> String {
    let is_there = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|c| if is_there(c) { c } else { '\u{fffd}' }).collect()
}

/// The size of a box.
fn size(of: &Box) -> (f64, f64) {
    let longest = of.lines.iter().map(|line| cut(line).chars().count()).max().unwrap_or(0) as f64 * CHAR * 0.9;
    let width = (cut(&of.title).chars().count() as f64 * CHAR).max(longest) + 2.0 * PAD + 6.0;
    (width.max(56.0), (1.0 + of.lines.len() as f64) * LINE + 2.0 * PAD - 2.0)
}

/// White for nothing, through yellow to red.
fn heat(share: f64) -> String {
    let share = share.clamp(0.0, 1.0).sqrt();
    let (green, blue) = (255.0 - 165.0 * share * share, 240.0 * (1.0 - share) + 40.0 * share);
    format!("#ff{:02x}{:02x}", green as u8, blue as u8)
}

/// The different texts, in the order in which they come first.
fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all = Vec::new();
    for text in texts.filter(|text| !text.is_empty()) {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

impl Picture {
    /// The picture as SVG. Edges that would close a cycle are drawn, and do not count for where boxes are.
    pub(crate) fn to_svg(&self) -> String {
        let sizes: Vec<(f64, f64)> = self.boxes.iter().map(size).collect();
        let Layout { places, routes, frames, width, height } = layout::layout(&sizes, &self.edges);
        let mut parts = distinct(self.boxes.iter().map(|one| &*one.part));
        parts.sort_by_key(|part| number(part));
        let (legend, legend_width, top) = self.legend(&parts, routes.iter().any(|route| route.sideways));
        let mut blocks = Group::new().set("fill", "#f4f4f4").set("stroke", "#999").set("stroke-dasharray", "2 3");
        for [x, y, width, height] in &frames {
            let block =
                Rectangle::new().set("x", *x).set("y", *y).set("width", *width).set("height", *height).set("rx", 8);
            blocks = blocks.add(block);
        }
        let mut arrows = Group::new().set("fill", "none").set("stroke", "#555").set("stroke-width", 1);
        for route in &routes {
            arrows = arrows.add(arrow(route));
        }
        let mut boxes = Group::new();
        for ((one, place), size) in self.boxes.iter().zip(&places).zip(&sizes) {
            boxes = boxes.add(self.draw(one, *place, *size, &parts));
        }
        let moved = format!("translate({MARGIN},{})", top + MARGIN);
        let picture = Group::new().set("transform", moved).add(blocks).add(arrows).add(boxes);
        let (width, height) = (width.max(legend_width) + 2.0 * MARGIN, height + top + 2.0 * MARGIN);
        let tip = Path::new().set("d", "M0 0L7 3L0 6z").set("fill", "#555");
        let marker = Marker::new().set("id", "tip").set("orient", "auto").set("markerWidth", 7).set("markerHeight", 6);
        let marker = marker.set("refX", 7).set("refY", 3).add(tip);
        Document::new()
            .set("viewBox", (0.0, 0.0, width.ceil(), height.ceil()))
            .set("width", width.ceil())
            .set("height", height.ceil())
            .set("font-family", "sans-serif")
            .set("font-size", 12)
            .add(Definitions::new().add(marker))
            .add(Rectangle::new().set("width", "100%").set("height", "100%").set("fill", "white"))
            .add(legend)
            .add(picture)
            .to_string()
    }

    fn draw(&self, one: &Box, (x, y): (f64, f64), (width, height): (f64, f64), parts: &[&str]) -> Group {
        let (left, top) = (x - width / 2.0, y - height / 2.0);
        let colour = KINDS[one.colour % KINDS.len()];
        let fill = match one.heat {
            Some(share) => heat(share),
            None if self.timed => "white".to_owned(),
            None => colour.to_owned(),
        };
        let border = border(&one.part, parts);
        let outline =
            Rectangle::new().set("x", left).set("y", top).set("width", width).set("height", height).set("rx", 4);
        let mut group = Group::new().add(Title::new(plain(&one.tooltip))).add(
            outline
                .set("fill", fill)
                .set("stroke", border)
                .set("stroke-width", if one.part.is_empty() { 1 } else { 2 }),
        );
        if self.timed {
            let stripe =
                Rectangle::new().set("x", left + 1.0).set("y", top + 1.0).set("width", 6).set("height", height - 2.0);
            group = group.add(stripe.set("fill", colour));
        }
        let text = |line: &str, at: usize| {
            let y = top + PAD + LINE * (at as f64 + 0.75);
            Text::new(cut(line)).set("x", x + 3.0).set("y", y).set("text-anchor", "middle")
        };
        group = group.add(text(&one.title, 0));
        for (at, line) in one.lines.iter().enumerate() {
            group = group.add(text(line, at + 1).set("font-size", "90%").set("fill", "#333"));
        }
        group
    }

    /// What the colours mean, with its width and height.
    fn legend(&self, parts: &[&str], sideways: bool) -> (Group, f64, f64) {
        let names = distinct(self.boxes.iter().map(|one| &*one.kind));
        let of_name = |name: &str| self.boxes.iter().find(|one| one.kind == name).map_or(0, |one| one.colour);
        let kinds: Vec<(&str, usize)> = names.into_iter().map(|name| (name, of_name(name))).collect();
        let mut legend = Group::new();
        let (mut y, mut widest) = (MARGIN, 0.0_f64);
        for line in &self.head {
            legend = legend.add(Text::new(plain(line)).set("x", MARGIN).set("y", y));
            widest = widest.max(line.chars().count() as f64 * CHAR);
            y += LINE + 4.0;
        }
        let rows = [
            kinds.into_iter().map(|(text, colour)| (text, KINDS[colour % KINDS.len()], "#444", 1)).collect::<Vec<_>>(),
            parts.iter().map(|text| (*text, "white", border(text, parts), 2)).collect(),
        ];
        for (row, most) in rows.iter().zip(SHOWN).filter(|(row, _)| !row.is_empty()) {
            let mut x = MARGIN;
            for (text, fill, border, thick) in row.iter().take(most) {
                let wide = text.chars().count() as f64 * CHAR + 34.0;
                if x > MARGIN && x + wide > 1200.0 {
                    (x, y) = (MARGIN, y + LINE + 6.0);
                }
                let swatch = Rectangle::new().set("x", x).set("y", y - 10.0).set("width", 14).set("height", 12);
                legend = legend.add(swatch.set("fill", *fill).set("stroke", *border).set("stroke-width", *thick));
                legend = legend.add(Text::new(*text).set("x", x + 20.0).set("y", y));
                x += wide;
                widest = widest.max(x - MARGIN);
            }
            if let Some(rest) = row.len().checked_sub(most).filter(|rest| *rest > 0) {
                legend = legend.add(Text::new(format!("and {rest} more")).set("x", x).set("y", y));
                widest = widest.max(x + 90.0);
            }
            y += LINE + 6.0;
        }
        if sideways {
            legend = legend.add(Text::new("dashed arrows lead from block to block").set("x", MARGIN).set("y", y));
            widest = widest.max(260.0);
            y += LINE + 6.0;
        }
        if self.timed {
            legend = legend.add(Text::new("of the longest time:").set("x", MARGIN).set("y", y));
            for (at, share) in [0.0, 0.01, 0.05, 0.2, 0.5, 1.0].into_iter().enumerate() {
                let x = MARGIN + 136.0 + 70.0 * at as f64;
                let swatch = Rectangle::new().set("x", x).set("y", y - 10.0).set("width", 14).set("height", 12);
                legend = legend.add(swatch.set("fill", heat(share)).set("stroke", "#444"));
                legend = legend.add(Text::new(format!("{:.0} %", share * 100.0)).set("x", x + 20.0).set("y", y));
            }
            widest = widest.max(560.0);
            y += LINE + 6.0;
        }
        (legend, widest, y - LINE)
    }
}

/// A curve through points, from above to below between each two.
fn arrow(route: &Route) -> Path {
    let mut data = svg::node::element::path::Data::new();
    for (at, &(x, y)) in route.points.iter().enumerate() {
        let Some(&(before_x, before_y)) = at.checked_sub(1).and_then(|before| route.points.get(before)) else {
            data = data.move_to((x, y));
            continue;
        };
        data = if route.sideways {
            let away = ((x - before_x).abs() / 2.0).clamp(20.0, 80.0);
            data.cubic_curve_to((before_x + away, before_y, x - away, y, x, y))
        } else if (before_x - x).abs() < 0.05 {
            data.line_to((x, y))
        } else {
            let middle = (before_y + y) / 2.0;
            data.cubic_curve_to((before_x, middle, x, middle, x, y))
        };
    }
    let path = Path::new().set("d", data).set("marker-end", "url(#tip)");
    if route.sideways {
        path.set("stroke-dasharray", "4 3").set("stroke", "#999").set("stroke-width", 0.7)
    } else {
        path
    }
}
