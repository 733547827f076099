//! A picture as SVG: colours, lines and texts.

use svg::Document;
use svg::node::element::{Definitions, Group, Marker, Path, Rectangle, Text, Title};

use super::layout::{self, PictureLayout, Route};
use super::{Node, Picture};

/// In pixels.
const LINE: f64 = 14.0;
const CHAR: f64 = 6.7;
const PAD: f64 = 8.0;
const MARGIN: f64 = 24.0;
/// The width of the stripe that shows the kind of a box, if the colour of the box shows its time.
const STRIPE: f64 = 6.0;
/// The most kinds, and the most parts, that a legend shows. The border colours of parts repeat, but each box also has a
/// number.
const SHOWN: [usize; 2] = [24, 8];
/// The most characters of a line. Longer lines are cut.
const LONGEST: usize = 44;

/// The colours of kinds. They differ from each other and from the colours of heat, and black text is readable on them.
const KINDS: [&str; 24] = [
    "#eeeeee", "#a6cee3", "#b2df8a", "#ccebc5", "#8dd3c7", "#e7d4e8", "#d9c7a0", "#c7b89c", "#cab2d6", "#66c2a5",
    "#a6d854", "#d9f0d3", "#bfd3c1", "#d9d9d9", "#bdbdbd", "#fccde5", "#f2d6cb", "#e5b8c8", "#80b1d3", "#bebada",
    "#a3c9c7", "#c9a9c2", "#9db8d9", "#b3a5d1",
];
/// The colours of borders: for parts with a number at the end of their name, in turn, and for all other parts.
const NUMBERED: [&str; 6] = ["#1f78b4", "#e31a1c", "#33a02c", "#6a3d9a", "#ff7f00", "#01665e"];
const OTHERS: [&str; 2] = ["#666666", "#b15928"];

/// The number at the end of the name of a part.
fn number(part: &str) -> Option<usize> {
    part.rsplit(' ').next()?.parse().ok()
}

/// The border colour of a part among all parts.
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

/// Replaces characters that XML 1.0 does not allow (section 2.2).
fn plain(text: &str) -> String {
    let is_there = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|c| if is_there(c) { c } else { '\u{fffd}' }).collect()
}

/// A box with everything that is needed to draw it.
struct Drawn<'a> {
    node: &'a Node,
    title: String,
    lines: Vec<String>,
    /// The last line, where it is a time.
    time: Option<String>,
    width: f64,
    height: f64,
    /// What is in a pattern, and where.
    inner: Option<Body<'a>>,
}

/// Boxes and arrows in their places.
struct Body<'a> {
    boxes: Vec<Drawn<'a>>,
    layout: PictureLayout,
}

fn chars(text: &str) -> f64 {
    text.chars().count() as f64
}

impl<'a> Drawn<'a> {
    fn new(node: &'a Node, total: Option<f64>) -> Self {
        let title = cut(format!("{} {}", node.number, node.title).trim());
        let mut lines: Vec<String> = node.lines.iter().map(|line| cut(line)).collect();
        let time = time_line(node, total);
        lines.extend(time.clone());
        let longest = lines.iter().map(|line| chars(line)).fold(0.0, f64::max) * CHAR * 0.9;
        let stripe = if total.is_some() { 2.0 * STRIPE } else { 0.0 };
        let width = (chars(&title) * CHAR).max(longest) + 2.0 * PAD + stripe;
        let (width, height) = (width.max(56.0), (1.0 + lines.len() as f64) * LINE + 2.0 * PAD - 2.0);
        // Patterns hold patterns to a small depth: see `fold`.
        let inner = node.pattern.as_ref().map(|pattern| Body::new(&pattern.picture));
        let (width, height) = match &inner {
            // Its title is bold.
            Some(inner) => ((width * 1.15).max(inner.layout.width + 2.0 * PAD), inner.layout.height + LINE + 3.0 * PAD),
            None => (width, height),
        };
        Self { node, title, lines, time, width, height, inner }
    }
}

impl<'a> Body<'a> {
    fn new(picture: &'a Picture) -> Self {
        let boxes: Vec<Drawn<'a>> = picture.boxes.iter().map(|node| Drawn::new(node, picture.total)).collect();
        let sizes: Vec<(f64, f64)> = boxes.iter().map(|one| (one.width, one.height)).collect();
        Self { layout: layout::layout(&sizes, &picture.edges), boxes }
    }

    /// Whether some arrows lead from block to block.
    fn has_sideways(&self) -> bool {
        let inner = |one: &Drawn<'_>| one.inner.as_ref().is_some_and(Body::has_sideways);
        self.layout.routes.iter().any(|route| route.sideways) || self.boxes.iter().any(inner)
    }
}

/// The time of a box as text. The number means the same as the colour.
pub(crate) fn time_line(node: &Node, total: Option<f64>) -> Option<String> {
    let (time, total) = (node.time?, total?);
    let (each, share) = (time / 1e3 / node.copies.max(1) as f64, 100.0 * time / total);
    Some(if node.copies > 1 {
        format!("{each:.1} us each, {share:.1} % in all")
    } else {
        format!("{each:.1} us, {share:.1} %")
    })
}

/// The colour of a share of time: from white for none, through yellow, to red.
fn heat(share: f64) -> String {
    let share = share.clamp(0.0, 1.0).sqrt();
    let (green, blue) = (255.0 - 165.0 * share * share, 240.0 * (1.0 - share) + 40.0 * share);
    format!("#ff{:02x}{:02x}", green as u8, blue as u8)
}

/// The distinct texts, in the order in which they first occur.
fn distinct<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all = Vec::new();
    for text in texts.filter(|text| !text.is_empty()) {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

/// What the boxes of a picture have in common.
struct Looks<'a> {
    /// Where nodes run, in the order of the legend.
    parts: Vec<&'a str>,
    /// The nanoseconds of the box that took longest, where the picture is timed.
    longest: Option<f64>,
}

impl Picture {
    /// Renders the picture as SVG. Edges that would close a cycle are drawn, but do not affect the layout.
    pub(crate) fn to_svg(&self) -> String {
        let all = self.all();
        let mut parts = distinct(all.iter().map(|one| &*one.part));
        parts.sort_by_key(|part| number(part));
        let works = all.iter().filter(|one| !one.waits).filter_map(|one| one.time);
        let longest = self.total.map(|_| works.fold(1.0, f64::max));
        let looks = Looks { parts, longest };
        let body = Body::new(self);
        let (legend, legend_width, top) = self.legend(&all, &looks, body.has_sideways());
        let (width, height) = (body.layout.width, body.layout.height);
        let picture = looks.draw_all(&body).set("transform", format!("translate({MARGIN},{})", top + MARGIN));
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

    /// The legend that explains the colours, with its width and height.
    fn legend(&self, all: &[&Node], looks: &Looks<'_>, sideways: bool) -> (Group, f64, f64) {
        let names = distinct(all.iter().map(|one| &*one.kind));
        let of_name = |name: &str| all.iter().find(|one| one.kind == name).map_or(0, |one| one.colour);
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
            looks.parts.iter().map(|text| (*text, "white", border(text, &looks.parts), 2)).collect(),
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
        if let (Some(longest), Some(total)) = (looks.longest, self.total) {
            legend = legend.add(Text::new("share of the whole time:").set("x", MARGIN).set("y", y));
            for (at, share) in [0.0, 0.05, 0.2, 0.5, 1.0].into_iter().enumerate() {
                let x = MARGIN + 160.0 + 78.0 * at as f64;
                let swatch = Rectangle::new().set("x", x).set("y", y - 10.0).set("width", 14).set("height", 12);
                legend = legend.add(swatch.set("fill", heat(share)).set("stroke", "#444"));
                let text = format!("{:.1} %", 100.0 * share * longest / total);
                legend = legend.add(Text::new(text).set("x", x + 20.0).set("y", y));
            }
            widest = widest.max(560.0);
            y += LINE + 6.0;
        }
        (legend, widest, y - LINE)
    }
}

impl Looks<'_> {
    fn draw_all(&self, body: &Body<'_>) -> Group {
        let mut blocks = Group::new().set("fill", "#f4f4f4").set("stroke", "#999").set("stroke-dasharray", "2 3");
        for [x, y, width, height] in &body.layout.frames {
            let block =
                Rectangle::new().set("x", *x).set("y", *y).set("width", *width).set("height", *height).set("rx", 8);
            blocks = blocks.add(block);
        }
        let mut arrows = Group::new().set("fill", "none").set("stroke", "#555").set("stroke-width", 1);
        for route in &body.layout.routes {
            arrows = arrows.add(arrow(route));
        }
        let mut boxes = Group::new();
        for (one, place) in body.boxes.iter().zip(&body.layout.places) {
            boxes = boxes.add(match &one.inner {
                Some(inner) => self.draw_pattern(one, inner, *place),
                None => self.draw(one, *place),
            });
        }
        Group::new().add(blocks).add(arrows).add(boxes)
    }

    /// What repeats, in a frame that says how often.
    fn draw_pattern(&self, one: &Drawn<'_>, inner: &Body<'_>, (x, y): (f64, f64)) -> Group {
        let (left, top) = (x - one.width / 2.0, y - one.height / 2.0);
        let frame = Rectangle::new().set("x", left).set("y", top).set("width", one.width).set("height", one.height);
        let frame = frame.set("rx", 8).set("fill", "#fafafa").set("stroke", "#666").set("stroke-dasharray", "6 3");
        let title = Text::new(one.title.clone()).set("x", x).set("y", top + PAD + LINE * 0.75);
        let title = title.set("text-anchor", "middle").set("font-weight", "bold");
        let (at_x, at_y) = (x - inner.layout.width / 2.0, top + LINE + 2.0 * PAD);
        let inside = self.draw_all(inner).set("transform", format!("translate({at_x},{at_y})"));
        Group::new().add(Title::new(plain(&one.node.tooltip))).add(frame).add(title).add(inside)
    }

    fn draw(&self, one: &Drawn<'_>, (x, y): (f64, f64)) -> Group {
        let Drawn { node, width, height, .. } = one;
        let (left, top) = (x - width / 2.0, y - height / 2.0);
        let colour = KINDS[node.colour % KINDS.len()];
        let fill = match (self.longest, node.time.filter(|_| !node.waits)) {
            (Some(longest), Some(time)) => heat(time / longest),
            (Some(_), None) => "white".to_owned(),
            (None, _) => colour.to_owned(),
        };
        let border = border(&node.part, &self.parts);
        let outline =
            Rectangle::new().set("x", left).set("y", top).set("width", *width).set("height", *height).set("rx", 4);
        let time = one.time.as_ref().map_or_else(String::new, |time| format!("\n{time}"));
        let mut group = Group::new().add(Title::new(plain(&format!("{}{time}", node.tooltip)))).add(
            outline
                .set("fill", fill)
                .set("stroke", border)
                .set("stroke-width", if node.part.is_empty() { 1 } else { 2 }),
        );
        if self.longest.is_some() {
            let stripe = Rectangle::new().set("x", left + 1.0).set("y", top + 1.0);
            group = group.add(stripe.set("width", STRIPE).set("height", height - 2.0).set("fill", colour));
        }
        let text = |line: &str, at: usize| {
            let y = top + PAD + LINE * (at as f64 + 0.75);
            Text::new(line).set("x", x).set("y", y).set("text-anchor", "middle")
        };
        group = group.add(text(&one.title, 0));
        for (at, line) in one.lines.iter().enumerate() {
            group = group.add(text(line, at + 1).set("font-size", "90%").set("fill", "#333"));
        }
        group
    }
}

/// A curve through points, which enters and leaves each point vertically.
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
