//! The layout of a drawing: where boxes and arrows go. `rust-sugiyama` computes the layers and the order in them. This
//! file cuts long and thin graphs into columns, puts siblings into blocks, puts separate components side by side, and
//! leads arrows around boxes.

use std::collections::{HashMap, HashSet, VecDeque};

use petgraph::stable_graph::{NodeIndex, StableDiGraph};
use petgraph::visit::{EdgeRef, IntoEdgeReferences};
use rust_sugiyama::configure::{Config, RankingType};

/// Distances are in pixels.
const GAP: f64 = 26.0;
/// The distance between arrows that go past boxes.
const ARROW_GAP: f64 = 8.0;
const COLUMN_GAP: f64 = 90.0;
/// The preferred ratio of a picture's width to its height.
const ASPECT: f64 = 1.5;
/// The most layers of a column: `rust-sugiyama` recurses over them.
const LAYERS: usize = 300;
/// The stack of the layout's thread: `rust-sugiyama` also recurses over the boxes and arrows of a layer, a few hundred
/// bytes for each.
const STACK: usize = 64 << 20;
/// The number of siblings that make a block.
const SIBLINGS: usize = 8;
/// The space around the boxes of a block.
const PAD: f64 = 12.0;

/// The layout of a whole picture.
#[derive(Debug, Default)]
pub(super) struct PictureLayout {
    /// The centre of each box.
    pub(super) places: Vec<(f64, f64)>,
    pub(super) routes: Vec<Route>,
    /// Frames around blocks: left, top, width and height. An arrow to or from a frame stands for arrows of all its
    /// boxes.
    pub(super) frames: Vec<[f64; 4]>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// The path of an arrow.
#[derive(Debug, Default)]
pub(super) struct Route {
    pub(super) points: Vec<(f64, f64)>,
    /// Whether the arrow goes from one column to another.
    pub(super) sideways: bool,
}

/// A piece of the picture, with its own corner at 0.
#[derive(Default)]
struct Piece {
    places: Vec<(usize, (f64, f64))>,
    routes: Vec<Route>,
    width: f64,
    height: f64,
}

/// Lays out boxes of the given sizes.
pub(super) fn layout(sizes: &[(f64, f64)], edges: &[(usize, usize)]) -> PictureLayout {
    let blocks = blocks(sizes, edges);
    // By node: the index of its box in the smaller graph. Blocks come after single nodes.
    let mut of = vec![usize::MAX; sizes.len()];
    let singles: Vec<usize> = {
        let inside: HashSet<usize> = blocks.iter().flat_map(|block| block.nodes.iter().copied()).collect();
        (0..sizes.len()).filter(|node| !inside.contains(node)).collect()
    };
    singles.iter().enumerate().for_each(|(at, node)| of[*node] = at);
    for (at, block) in blocks.iter().enumerate() {
        block.nodes.iter().for_each(|node| of[*node] = singles.len() + at);
    }
    let outer: Vec<(f64, f64)> =
        singles.iter().map(|node| sizes[*node]).chain(blocks.iter().map(|block| block.size)).collect();
    let edges: Vec<(usize, usize)> = edges.iter().map(|(from, to)| (of[*from], of[*to])).collect();
    let laid = std::thread::scope(|scope| {
        let lay_out = || connected(&outer, &edges);
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, lay_out);
        let thread = thread.map_err(|error| {
            format!(
                "{error}: no thread could be started for the layout of a \
                                                     drawing"
            )
        })?;
        thread.join().map_err(|_| "the layout of a drawing panicked".to_owned())
    });
    let mut laid = laid.unwrap_or_else(|why| {
        log::warn!("{why}: the graph is drawn in plain rows");
        rows(&outer, &edges)
    });
    let places = std::mem::take(&mut laid.places);
    laid.places = vec![(0.0, 0.0); sizes.len()];
    singles.iter().zip(&places).for_each(|(node, place)| laid.places[*node] = *place);
    for (block, (x, y)) in blocks.iter().zip(&places[singles.len()..]) {
        let (left, top) = (x - block.size.0 / 2.0, y - block.size.1 / 2.0);
        laid.frames.push([left, top, block.size.0, block.size.1]);
        for (node, (at_x, at_y)) in block.nodes.iter().zip(&block.places) {
            laid.places[*node] = (left + at_x, top + at_y);
        }
    }
    laid
}

/// Nodes with the same predecessors and the same successors, laid out in rows.
struct Block {
    nodes: Vec<usize>,
    /// The centre of each node, counted from the corner of the block.
    places: Vec<(f64, f64)>,
    size: (f64, f64),
}

fn blocks(sizes: &[(f64, f64)], edges: &[(usize, usize)]) -> Vec<Block> {
    let mut around: Vec<(Vec<usize>, Vec<usize>)> = vec![Default::default(); sizes.len()];
    for (from, to) in edges {
        around[*from].1.push(*to);
        around[*to].0.push(*from);
    }
    let (mut number, mut groups) = (HashMap::new(), Vec::<Vec<usize>>::new());
    for (node, mut key) in around.into_iter().enumerate().filter(|(_, (before, after))| before.len() + after.len() > 0)
    {
        key.0.sort_unstable();
        key.1.sort_unstable();
        let at = *number.entry(key).or_insert(groups.len());
        if at == groups.len() {
            groups.push(Vec::new());
        }
        groups[at].push(node);
    }
    let block = |nodes: Vec<usize>| {
        let most = |of: fn(&(f64, f64)) -> f64| nodes.iter().map(|node| of(&sizes[*node])).fold(0.0, f64::max) + PAD;
        let (wide, tall) = (most(|size| size.0), most(|size| size.1));
        let columns = ((nodes.len() as f64 * ASPECT * tall / wide).sqrt().ceil() as usize).max(1);
        let place = |at: usize| {
            let (column, row) = ((at % columns) as f64, (at / columns) as f64);
            (PAD / 2.0 + (column + 0.5) * wide, PAD / 2.0 + (row + 0.5) * tall)
        };
        let rows = nodes.len().div_ceil(columns);
        let size = (columns.min(nodes.len()) as f64 * wide + PAD, rows as f64 * tall + PAD);
        Block { places: (0..nodes.len()).map(place).collect(), nodes, size }
    };
    groups.into_iter().filter(|nodes| nodes.len() >= SIBLINGS).map(block).collect()
}

/// A simple layout: one row for each layer, with straight arrows.
fn rows(sizes: &[(f64, f64)], edges: &[(usize, usize)]) -> PictureLayout {
    let layers = layers(sizes.len(), edges);
    let mut all = PictureLayout { places: vec![(0.0, 0.0); sizes.len()], ..PictureLayout::default() };
    for layer in 0..=layers.iter().max().copied().unwrap_or(0) {
        let (mut x, mut row) = (0.0, 0.0_f64);
        for node in (0..sizes.len()).filter(|node| layers[*node] == layer) {
            let (width, height) = sizes[node];
            all.places[node] = (x + width / 2.0, all.height + height / 2.0);
            (x, row) = (x + width + GAP, row.max(height));
        }
        all.width = all.width.max(x - GAP);
        all.height += row + GAP;
    }
    all.routes = edges
        .iter()
        .map(|(from, to)| {
            let ((x, y), (to_x, to_y)) = (all.places[*from], all.places[*to]);
            let points = vec![(x, y + sizes[*from].1 / 2.0), (to_x, to_y - sizes[*to].1 / 2.0)];
            Route { points, sideways: false }
        })
        .collect();
    all
}

/// Lays out each component, and puts the components side by side.
fn connected(sizes: &[(f64, f64)], edges: &[(usize, usize)]) -> PictureLayout {
    let layers = layers(sizes.len(), edges);
    let mut edges: Vec<(usize, usize)> = edges.to_vec();
    edges.sort_unstable();
    edges.dedup();
    let pieces = components(sizes.len(), &edges).into_iter().map(|nodes| component(sizes, &edges, &layers, &nodes));
    let pieces: Vec<Piece> = pieces.collect();
    let area: f64 = pieces.iter().map(|piece| (piece.width + GAP) * (piece.height + GAP)).sum();
    let widest = pieces.iter().map(|piece| piece.width).fold((area * ASPECT).sqrt(), f64::max);
    let mut all = PictureLayout { places: vec![(0.0, 0.0); sizes.len()], ..PictureLayout::default() };
    let (mut x, mut y, mut row) = (0.0, 0.0, 0.0_f64);
    for piece in pieces {
        if x > 0.0 && x + piece.width > widest + 0.5 {
            (x, y, row) = (0.0, y + row + GAP, 0.0);
        }
        piece.places.iter().for_each(|(node, (at_x, at_y))| all.places[*node] = (at_x + x, at_y + y));
        all.routes.extend(piece.routes.into_iter().map(|route| moved(route, x, y)));
        row = row.max(piece.height);
        (all.width, all.height) = (all.width.max(x + piece.width), all.height.max(y + piece.height));
        x += piece.width + GAP;
    }
    all
}

fn moved(mut route: Route, x: f64, y: f64) -> Route {
    route.points.iter_mut().for_each(|point| *point = (point.0 + x, point.1 + y));
    route
}

/// By node: the largest number of edges on a path to it. Counting starts anew on a cycle.
fn layers(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let (mut next, mut missing) = (vec![Vec::new(); count], vec![0_usize; count]);
    for (from, to) in edges {
        next[*from].push(*to);
        missing[*to] += 1;
    }
    let (mut layer, mut done) = (vec![0; count], vec![false; count]);
    let mut ready: VecDeque<usize> = (0..count).filter(|node| missing[*node] == 0).collect();
    let mut rest = 0..count;
    loop {
        let Some(node) = ready.pop_front().or_else(|| rest.find(|node| !done[*node])) else { return layer };
        if std::mem::replace(&mut done[node], true) {
            continue;
        }
        for to in next[node].iter().copied().filter(|to| !done[*to]).collect::<Vec<_>>() {
            layer[to] = layer[to].max(layer[node] + 1);
            missing[to] -= 1;
            if missing[to] == 0 {
                ready.push_back(to);
            }
        }
    }
}

/// The components of the graph, in the order of their first nodes.
fn components(count: usize, edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut of: Vec<usize> = (0..count).collect();
    fn find(of: &mut [usize], mut node: usize) -> usize {
        while of[node] != node {
            of[node] = of[of[node]];
            node = of[node];
        }
        node
    }
    for (from, to) in edges {
        let (a, b) = (find(&mut of, *from), find(&mut of, *to));
        of[a.max(b)] = a.min(b);
    }
    let (mut number, mut all) = (HashMap::new(), Vec::<Vec<usize>>::new());
    for node in 0..count {
        let first = find(&mut of, node);
        let at = *number.entry(first).or_insert(all.len());
        if at == all.len() {
            all.push(Vec::new());
        }
        all[at].push(node);
    }
    all
}

/// Lays out one component, in columns if it is long and thin.
fn component(sizes: &[(f64, f64)], edges: &[(usize, usize)], layers: &[usize], nodes: &[usize]) -> Piece {
    if let [one] = nodes {
        let (width, height) = sizes[*one];
        return Piece { places: vec![(*one, (width / 2.0, height / 2.0))], width, height, ..Piece::default() };
    }
    let least = nodes.iter().map(|node| layers[*node]).min().unwrap_or(0);
    let depth = nodes.iter().map(|node| layers[*node] - least + 1).max().unwrap_or(1);
    let mut rows: Vec<(f64, f64)> = vec![(0.0, 0.0); depth];
    for node in nodes {
        let row = &mut rows[layers[*node] - least];
        *row = (row.0 + sizes[*node].0 + GAP, row.1.max(sizes[*node].1 + GAP));
    }
    let (wide, tall) = (rows.iter().map(|row| row.0).fold(0.0, f64::max), rows.iter().map(|row| row.1).sum::<f64>());
    let columns =
        if tall > 2.5 * wide && depth > 24 { (ASPECT * tall / (wide + COLUMN_GAP)).sqrt().ceil() } else { 1.0 };
    let columns = (columns as usize).clamp(depth.div_ceil(LAYERS), depth.div_ceil(8));
    let column_of = |node: usize| (layers[node] - least) * columns / depth;
    let mut members = vec![Vec::new(); columns];
    nodes.iter().for_each(|node| members[column_of(*node)].push(*node));
    let is_here: HashSet<usize> = nodes.iter().copied().collect();
    let (mut inside, mut across) = (vec![Vec::new(); columns], Vec::new());
    for (from, to) in edges.iter().filter(|(from, _)| is_here.contains(from)) {
        match column_of(*from) == column_of(*to) {
            true => inside[column_of(*from)].push((*from, *to)),
            false => across.push((*from, *to)),
        }
    }
    let mut all = Piece::default();
    for (members, edges) in members.iter().zip(&inside).filter(|(members, _)| !members.is_empty()) {
        let piece = column(sizes, edges, layers, members);
        let x = if all.width > 0.0 { all.width + COLUMN_GAP } else { 0.0 };
        all.places.extend(piece.places.into_iter().map(|(node, (at, y))| (node, (at + x, y))));
        all.routes.extend(piece.routes.into_iter().map(|route| moved(route, x, 0.0)));
        (all.width, all.height) = (x + piece.width, all.height.max(piece.height));
    }
    let place: HashMap<usize, (f64, f64)> = all.places.iter().copied().collect();
    for (from, to) in across {
        let ((x, y), (to_x, to_y)) = (place[&from], place[&to]);
        let points = vec![(x + sizes[from].0 / 2.0, y), (to_x - sizes[to].0 / 2.0, to_y)];
        all.routes.push(Route { points, sideways: true });
    }
    all
}

/// Extra space below layers from which arrows go far sideways: by height, the total extra space from there on.
fn steepen(graph: &StableDiGraph<Vertex, ()>, place: &HashMap<NodeIndex, (f64, f64)>) -> Vec<(f64, f64)> {
    let mut far: Vec<(f64, f64)> = Vec::new();
    for edge in graph.edge_references() {
        let (Some((x, y)), Some((to_x, to_y))) = (place.get(&edge.source()), place.get(&edge.target())) else {
            continue;
        };
        far.push((y.min(*to_y), (x - to_x).abs()));
    }
    far.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut steps, mut sum) = (Vec::new(), 0.0);
    for layer in far.chunk_by(|a, b| (a.0 - b.0).abs() < 0.5) {
        let most = layer.iter().map(|(_, far)| *far).fold(0.0, f64::max);
        sum += (most * 0.06).clamp(0.0, 3.0 * GAP);
        steps.extend(layer.first().map(|(y, _)| (*y, sum)));
    }
    steps
}

fn below(steps: &[(f64, f64)], y: f64) -> f64 {
    let above = steps.partition_point(|(from, _)| *from < y - 0.5);
    above.checked_sub(1).and_then(|at| steps.get(at)).map_or(0.0, |(_, room)| *room)
}

/// A box, or a point that an arrow goes through.
#[derive(Clone, Copy)]
enum Vertex {
    Node(usize),
    Way,
}

/// Lays out some nodes as one column. All edges lead downwards, except those of cycles.
fn column(sizes: &[(f64, f64)], edges: &[(usize, usize)], layers: &[usize], nodes: &[usize]) -> Piece {
    let mut graph: StableDiGraph<Vertex, ()> = StableDiGraph::new();
    let index: HashMap<usize, _> = nodes.iter().map(|node| (*node, graph.add_node(Vertex::Node(*node)))).collect();
    // Long arrows from the same box share their points as far as they can.
    let mut ways: HashMap<usize, Vec<NodeIndex>> = HashMap::new();
    let past = |from: usize, to: usize| layers[to].saturating_sub(layers[from] + 1);
    for (from, to) in edges.iter().filter(|(from, to)| layers[*from] < layers[*to]) {
        let way = ways.entry(*from).or_default();
        while way.len() < past(*from, *to) {
            let next = graph.add_node(Vertex::Way);
            graph.add_edge(way.last().copied().unwrap_or(index[from]), next, ());
            way.push(next);
        }
        let last = past(*from, *to).checked_sub(1).map_or(index[from], |at| way[at]);
        graph.add_edge(last, index[to], ());
    }
    let size = |vertex: &Vertex| match vertex {
        Vertex::Node(node) => (sizes[*node].0 + GAP - ARROW_GAP, sizes[*node].1 + GAP - ARROW_GAP),
        Vertex::Way => (2.0, 2.0),
    };
    // The options that improve small pictures need time that grows with the square or the cube of the size.
    let is_small = graph.node_count() < 400;
    let config = Config {
        vertex_spacing: ARROW_GAP,
        ranking_type: if is_small { RankingType::MinimizeEdgeLength } else { RankingType::Up },
        transpose: is_small,
        ..Config::default()
    };
    let pieces = rust_sugiyama::from_graph(&graph, &|_, vertex| size(vertex), &config);
    let mut place = HashMap::new();
    let mut left = 0.0;
    for (vertices, _, _) in &pieces {
        let bounds = vertices.iter().filter_map(|(at, (x, _))| Some((*x, size(graph.node_weight(*at)?).0 / 2.0)));
        let (least, most) =
            bounds.fold((f64::MAX, f64::MIN), |(least, most), (x, half)| (least.min(x - half), most.max(x + half)));
        let top = vertices.iter().filter_map(|(at, (_, y))| Some(*y - size(graph.node_weight(*at)?).1 / 2.0));
        let top = top.fold(f64::MAX, f64::min);
        place.extend(vertices.iter().map(|(at, (x, y))| (*at, (x - least + left, y - top))));
        left += most - least + ARROW_GAP;
    }
    let steep = steepen(&graph, &place);
    let at = |vertex| place.get(&vertex).map_or((0.0, 0.0), |(x, y)| (*x, y + below(&steep, *y)));
    let places: Vec<(usize, (f64, f64))> = nodes.iter().map(|node| (*node, at(index[node]))).collect();
    let half = |node: &usize| size(&Vertex::Node(*node)).1 / 2.0;
    let height = places.iter().map(|(node, (_, y))| y + half(node)).fold(0.0, f64::max);
    let routes = edges.iter().map(|(from, to)| {
        let way = ways.get(from).map_or(&[][..], |way| &way[..past(*from, *to).min(way.len())]);
        let ((x, y), (to_x, to_y)) = (at(index[from]), at(index[to]));
        let mut points = vec![(x, y + sizes[*from].1 / 2.0)];
        points.extend(way.iter().map(|vertex| at(*vertex)));
        points.push((to_x, to_y - sizes[*to].1 / 2.0));
        Route { points, sideways: false }
    });
    squeeze(sizes, Piece { routes: routes.collect(), places, width: (left - ARROW_GAP).max(0.0), height })
}

/// Narrows vertical strips without boxes: arrows that go far around do not need so much space.
fn squeeze(sizes: &[(f64, f64)], mut piece: Piece) -> Piece {
    let mut boxes: Vec<(f64, f64)> =
        piece.places.iter().map(|(node, (x, _))| (x - sizes[*node].0 / 2.0, x + sizes[*node].0 / 2.0)).collect();
    boxes.push((piece.width, piece.width));
    boxes.sort_by(|a, b| a.0.total_cmp(&b.0));
    // By strip without boxes: where it starts and ends, and how much of it is left.
    let (mut empty, mut end) = (Vec::new(), 0.0_f64);
    for (left, right) in boxes {
        if left - end > 3.0 * GAP {
            empty.push((end, left));
        }
        end = end.max(right);
    }
    let less = |x: f64| {
        let of = |(from, to): &(f64, f64)| ((x.min(*to) - from) / (to - from)).max(0.0) * (to - from - 3.0 * GAP);
        empty.iter().take_while(|(from, _)| *from < x).map(of).sum::<f64>()
    };
    piece.places.iter_mut().for_each(|(_, (x, _))| *x -= less(*x));
    piece.routes.iter_mut().flat_map(|route| &mut route.points).for_each(|(x, _)| *x -= less(*x));
    piece.width -= less(piece.width);
    piece
}

#[cfg(test)]
mod tests {
    use quickcheck::QuickCheck;

    use super::*;

    fn check(sizes: &[(f64, f64)], edges: &[(usize, usize)]) {
        let PictureLayout { places, routes, frames, width, height } = layout(sizes, edges);
        let plain = rows(sizes, edges);
        assert!(places.iter().chain(&plain.places).all(|(x, y)| x.is_finite() && y.is_finite()));
        assert_eq!(places.len(), sizes.len());
        let corners = |node: usize| {
            let ((x, y), (wide, tall)) = (places[node], sizes[node]);
            (x - wide / 2.0, y - tall / 2.0, x + wide / 2.0, y + tall / 2.0)
        };
        for node in 0..sizes.len() {
            let (left, top, right, bottom) = corners(node);
            assert!(left > -0.5 && top > -0.5 && right < width + 0.5 && bottom < height + 0.5, "{node} is outside");
            for other in 0..node {
                let (left2, top2, right2, bottom2) = corners(other);
                let apart = left > right2 || left2 > right || top > bottom2 || top2 > bottom;
                assert!(apart, "{node} and {other} overlap");
            }
        }
        // The end touches its box, or the block of its box.
        let touches = |node: usize, (x, y): (f64, f64)| {
            let (left, top, right, bottom) = corners(node);
            let is_in = |[x, y, width, height]: &&[f64; 4]| {
                left >= *x && top >= *y && right <= x + width && bottom <= y + height
            };
            let block = frames.iter().find(is_in).map(|[x, y, width, height]| (*x, *y, x + width, y + height));
            let (left, top, right, bottom) = block.unwrap_or((left, top, right, bottom));
            (left - 1.0..=right + 1.0).contains(&x) && (top - 1.0..=bottom + 1.0).contains(&y)
        };
        let ends = |route: &Route| (route.points[0], route.points[route.points.len() - 1]);
        for (from, to) in edges {
            let is_it = |route: &Route| touches(*from, ends(route).0) && touches(*to, ends(route).1);
            assert!(routes.iter().any(is_it), "no arrow from {from} to {to}");
        }
        for route in &routes {
            let is_it = |(from, to): &(usize, usize)| touches(*from, ends(route).0) && touches(*to, ends(route).1);
            assert!(edges.iter().any(is_it), "an arrow that is no edge");
        }
    }

    /// Rule Q3: any graph, including graphs with several components and with cycles.
    #[test]
    fn boxes_of_random_graphs_do_not_overlap_and_arrows_end_at_boxes() {
        fn draws(widths: Vec<u8>, edges: Vec<(u8, u8)>) {
            let sizes: Vec<(f64, f64)> =
                widths.iter().map(|w| (40.0 + f64::from(*w), 20.0 + f64::from(w % 40))).collect();
            let count = sizes.len();
            let node = |at: u8| usize::from(at) % count;
            let edges = edges.iter().filter(|_| count > 0).map(|(a, b)| (node(*a), node(*b))).filter(|(a, b)| a != b);
            check(&sizes, &edges.collect::<Vec<_>>());
        }
        QuickCheck::new().tests(200).quickcheck(draws as fn(Vec<u8>, Vec<(u8, u8)>));
    }

    /// Rule E3: the recursion is not as deep as the graph.
    #[test]
    fn long_chains_are_cut_into_columns_and_need_little_stack() {
        let draw = || {
            let sizes = vec![(80.0, 40.0); 20_000];
            let edges: Vec<(usize, usize)> = (1..20_000).map(|node| (node - 1, node)).collect();
            let PictureLayout { width, height, .. } = layout(&sizes, &edges);
            assert!(width / height > 0.5 && width / height < 4.0, "{width} x {height}");
        };
        std::thread::Builder::new().stack_size(1 << 20).spawn(draw).unwrap().join().unwrap();
        // A layer may have any width.
        let draw = || {
            let mut edges: Vec<(usize, usize)> = (1..1_500).map(|node| (0, node)).collect();
            // Edges between pairs, so that no siblings are put into a block.
            edges.extend((1..1_500).step_by(2).map(|node| (node, node + 1)));
            let edges: Vec<_> = edges.into_iter().filter(|(_, to)| *to < 1_500).collect();
            assert_eq!(layout(&vec![(80.0, 40.0); 1_500], &edges).places.len(), 1_500);
            let fork: Vec<(usize, usize)> = (1..1_999).flat_map(|node| [(0, node), (node, 1_999)]).collect();
            let PictureLayout { width, height, frames, .. } = layout(&vec![(80.0, 40.0); 2_000], &fork);
            assert!(width / height < 4.0 && frames.len() == 1, "{width} x {height}");
        };
        std::thread::Builder::new().stack_size(256 << 10).spawn(draw).unwrap().join().unwrap();
        let shapes = [(3, 1), (100, 2), (120, 5)];
        for (layers, wide) in shapes {
            let edges =
                (0..layers * wide).flat_map(|node| (0..wide).map(move |to| (node, (node / wide + 1) * wide + to)));
            let edges: Vec<_> = edges.filter(|(_, to)| *to < layers * wide).collect();
            check(&vec![(60.0, 30.0); layers * wide], &edges);
        }
    }
}
