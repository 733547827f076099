//! Plans as text, for tests without a device: a graph is written line by line, and the plan is read as lines.
//!
//! ```text
//! buffer x 64                       a buffer of 64 bytes
//! sub s x 0..32                     a sub-buffer of it
//! a: kernel f read x write y[0..8] value 7 local 64 null range 16
//! b: copy x y 8                     8 bytes from the start of x to the start of y
//! c: rect x y 4x2x1                 fill y 8, write x 8, read x 8, empty
//! d: empty after a b
//! edge c d
//! ```

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{Action, Options, Path, Plan, PlanError, plan};
use crate::caps::{Caps, Version};
use crate::error::ErrorKind;
use crate::ir::hazards::Hazards;
use crate::ir::{
    Access, Arg, CopyRect, DataId, Grid, Ir, KernelDecl, KernelId, Mode, NodeId, Op, Place, ResultId, RootId, View,
    ViewId,
};

#[derive(Default)]
struct Reader {
    ir: Ir,
    hazards: Hazards,
    views: HashMap<String, ViewId>,
    kernels: HashMap<String, KernelId>,
    nodes: HashMap<String, NodeId>,
    names: Vec<String>,
    roots: u32,
}

impl Reader {
    fn view(&self, name: &str) -> ViewId {
        self.views[name]
    }

    fn access(&self, text: &str, mode: Mode) -> Access {
        let (name, range) = text.split_once('[').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let view = self.view(name);
        let View { offset, size, .. } = self.ir.views[view.index()];
        let range = range.map_or(0..size, |range| {
            let (start, end) = range.trim_end_matches(']').split_once("..").unwrap();
            start.parse().unwrap()..end.parse().unwrap()
        });
        Access { view, range: offset + range.start..offset + range.end, mode }
    }

    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "buffer" => {
                let view = ViewId(self.ir.views.len() as u32);
                let size = words[2].parse().unwrap();
                self.ir.views.push(View { root: RootId(self.roots), offset: 0, size, is_sub_buffer: false });
                self.roots += 1;
                self.views.insert(words[1].to_owned(), view);
            }
            "sub" => {
                let access = self.access(&format!("{}[{}]", words[2], words[3]), Mode::Read);
                let view = ViewId(self.ir.views.len() as u32);
                let root = self.ir.views[access.view.index()].root;
                let (offset, size) = (access.range.start, access.range.len());
                self.ir.views.push(View { root, offset, size, is_sub_buffer: true });
                self.views.insert(words[1].to_owned(), view);
            }
            "edge" => {
                self.ir.topology.add_edge(self.nodes[words[1]], self.nodes[words[2]], false).unwrap();
            }
            name => self.node(name.trim_end_matches(':'), &words[1..]),
        }
    }

    fn node(&mut self, name: &str, words: &[&str]) {
        let mut after = Vec::new();
        let (words, deps) = match words.iter().position(|word| *word == "after") {
            Some(at) => (&words[..at], &words[at + 1..]),
            None => (words, &[][..]),
        };
        after.extend(deps.iter().map(|dep| self.nodes[*dep]));
        let (op, accesses) = self.op(words);
        let node = NodeId(self.ir.len() as u32);
        for access in &accesses {
            self.hazards.add(node, access, &self.ir.views[access.view.index()], &mut after);
        }
        self.ir.push_node(op, accesses.into_iter(), &mut after).unwrap();
        self.nodes.insert(name.to_owned(), node);
        self.names.push(name.to_owned());
    }

    fn op(&mut self, words: &[&str]) -> (Op, Vec<Access>) {
        let place = |access: &Access, ir: &Ir| Place {
            view: access.view,
            offset: access.range.start - ir.views[access.view.index()].offset,
        };
        let sized = |mut access: Access, size: &str| {
            let size: usize = size.parse().unwrap();
            access.range.end = access.range.start + size;
            (access, size)
        };
        match words[0] {
            "empty" => (Op::Empty, vec![]),
            "copy" => {
                let (src, size) = sized(self.access(words[1], Mode::Read), words[3]);
                let (dst, _) = sized(self.access(words[2], Mode::Write), words[3]);
                (Op::Copy { src: place(&src, &self.ir), dst: place(&dst, &self.ir), size }, vec![src, dst])
            }
            "rect" => {
                let (src, dst) = (self.access(words[1], Mode::Read), self.access(words[2], Mode::Write));
                let mut region = words[3].split('x').map(|size| size.parse().unwrap());
                let region = [region.next().unwrap(), region.next().unwrap(), region.next().unwrap()];
                let (row, slice) = (region[0], region[0] * region[1]);
                let rect = CopyRect {
                    src: src.view,
                    dst: dst.view,
                    src_origin: [0; 3],
                    dst_origin: [0; 3],
                    region,
                    pitches: [row, slice, row, slice],
                };
                (Op::CopyRect(Box::new(rect)), vec![src, dst])
            }
            "fill" => {
                let (dst, size) = sized(self.access(words[1], Mode::Write), words[2]);
                let pattern = self.ir.push_bytes(&[0]).unwrap();
                (Op::Fill { dst: place(&dst, &self.ir), size, pattern }, vec![dst])
            }
            "write" => {
                let (dst, size) = sized(self.access(words[1], Mode::Write), words[2]);
                self.ir.data += 1;
                (Op::Write { dst: place(&dst, &self.ir), size, data: DataId(self.ir.data - 1) }, vec![dst])
            }
            "read" => {
                let (src, size) = sized(self.access(words[1], Mode::Read), words[2]);
                self.ir.results += 1;
                (Op::Read { src: place(&src, &self.ir), size, result: ResultId(self.ir.results - 1) }, vec![src])
            }
            "kernel" | "unbuilt" => self.kernel(words[1], words[0] == "kernel", &words[2..]),
            other => panic!("no such node: {other}"),
        }
    }

    fn kernel(&mut self, name: &str, built: bool, words: &[&str]) -> (Op, Vec<Access>) {
        let (mut args, mut accesses, mut global) = (Vec::new(), Vec::new(), 1);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "null" => args.push(Arg::Null),
                "range" => global = words.next().unwrap().parse().unwrap(),
                "local" => args.push(Arg::Local(words.next().unwrap().parse().unwrap())),
                "value" => {
                    let value: u32 = words.next().unwrap().parse().unwrap();
                    args.push(Arg::Value(self.ir.push_bytes(&value.to_ne_bytes()).unwrap()));
                }
                mode => {
                    let mode = match mode {
                        "read" => Mode::Read,
                        "write" => Mode::Write,
                        "update" => Mode::ReadWrite,
                        other => panic!("no such argument: {other}"),
                    };
                    let access = self.access(words.next().unwrap(), mode);
                    args.push(Arg::Buffer(access.view));
                    accesses.push(access);
                }
            }
        }
        let kernel = *self.kernels.entry(name.to_owned()).or_insert_with(|| {
            self.ir.kernels.push(KernelDecl { name: name.into(), built, checked: true });
            KernelId(self.ir.kernels.len() as u32 - 1)
        });
        let args = self.ir.push_args(args.into_iter()).unwrap();
        let grid = Grid { dims: 1, offset: [0; 3], global: [global, 1, 1], local: None };
        (Op::Kernel { kernel, args, grid }, accesses)
    }
}

fn read(text: &str) -> Reader {
    let mut reader = Reader::default();
    text.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(|line| reader.line(line));
    reader
}

/// The kind of command.
fn name_of(action: &Action) -> &'static str {
    match action {
        Action::Launch { .. } => "kernel",
        Action::Copy { .. } => "copy",
        Action::CopyRect(_) => "rectangular copy",
        Action::Fill { .. } => "fill",
        Action::Write { .. } => "host write",
        Action::Read { .. } => "host read",
    }
}

fn show(reader: &Reader, plan: &Plan) -> String {
    let mut text = String::new();
    for segment in &plan.segments {
        writeln!(text, "{} ({})", segment.path, segment.why).unwrap();
        for step in &plan.steps[segment.steps.clone()] {
            let name = &reader.names[step.node.index()];
            let object = match &step.action {
                Action::Launch { object, .. } => format!(" #{}", object.0),
                _ => String::new(),
            };
            writeln!(text, "  {name} {}{object}", name_of(&step.action)).unwrap();
        }
    }
    let name = |node: NodeId| &reader.names[node.index()];
    let needed: Vec<_> = plan.edges.needed.iter().map(|(a, b)| format!("{}-{}", name(*a), name(*b))).collect();
    writeln!(text, "edges {}; {} implied", needed.join(" "), plan.edges.implied_by_path).unwrap();
    text
}

fn new_device() -> Caps {
    Caps { version: Version::new(3, 0), ..Caps::default() }
}

#[track_caller]
fn assert_plan(graph: &str, expected: &str) {
    let reader = read(graph);
    let plan = plan(&reader.ir, &new_device(), Options::default()).unwrap();
    let shown = show(&reader, &plan);
    let lines =
        |text: &str| text.lines().map(|line| line.trim().to_owned()).filter(|l| !l.is_empty()).collect::<Vec<_>>();
    assert_eq!(lines(&shown), lines(expected), "\n{shown}");
}

/// Rule D1
#[test]
fn data_orders_nodes_and_reads_do_not() {
    assert_plan(
        "buffer x 64
         buffer y 64
         w: write x 64
         a: kernel f read x write y
         b: kernel g read x
         c: kernel h update x
         r: read y 64",
        "replay (the only path there is)
           w host write
           a kernel #0
           b kernel #1
           c kernel #2
           r host read
         edges w-a w-b a-c b-c a-r; 0 implied",
    );
}

/// Rule D2
#[test]
fn ranges_and_sub_buffers_decide_what_conflicts() {
    assert_plan(
        "buffer x 64
         sub low x 0..32
         sub high x 32..64
         a: kernel f write low
         b: kernel f write high
         c: kernel g read low
         d: kernel g read x
         e: fill x[0..4] 4",
        "replay (the only path there is)
           a kernel #0
           b kernel #1
           c kernel #2
           d kernel #3
           e fill
         edges a-c a-d b-d c-e d-e; 1 implied",
    );
}

/// Rule D4
#[test]
fn edges_that_a_two_step_path_implies_are_removed() {
    assert_plan(
        "buffer x 64
         a: fill x 64
         b: kernel f update x after a
         c: kernel f update x after a b
         d: empty after b c",
        "replay (the only path there is)
           a fill
           b kernel #0
           c kernel #0
         edges a-b b-c c-d; 2 implied",
    );
}

#[test]
fn kernel_objects_are_shared_by_equal_values_only() {
    assert_plan(
        "buffer x 64
         a: kernel f update x value 1
         b: kernel f update x value 2
         c: kernel f update x value 1
         d: kernel g update x value 1
         e: kernel f update x local 4
         g: kernel f null value 1",
        "replay (the only path there is)
           a kernel #0
           b kernel #1
           c kernel #0
           d kernel #2
           e kernel #3
           g kernel #4
         edges a-b b-c c-d d-e; 0 implied",
    );
}

#[test]
fn nodes_that_do_nothing_order_and_have_no_step() {
    assert_plan(
        "buffer x 64
         a: kernel f update x range 0
         b: empty after a
         c: copy x x[32..64] 0
         d: kernel f update x after b c",
        "replay (the only path there is)
           d kernel #0
         edges a-b b-d c-d; 1 implied",
    );
}

#[test]
fn an_edge_to_an_earlier_node_changes_the_order() {
    assert_plan(
        "buffer x 64
         buffer y 64
         a: fill x 64
         b: fill y 64
         edge b a",
        "replay (the only path there is)
           b fill
           a fill
         edges b-a; 0 implied",
    );
}

#[test]
fn an_empty_graph_has_an_empty_plan() {
    assert_plan("", "edges ; 0 implied");
}

#[test]
fn the_path_that_was_asked_for_is_named_so() {
    let reader = read("buffer x 64\n a: fill x 64");
    let plan = plan(&reader.ir, &new_device(), Options { path: Path::Replay }).unwrap();
    assert_eq!(show(&reader, &plan), "replay (as asked)\n  a fill\nedges ; 0 implied\n");
}

/// Rule B4
#[test]
fn a_cycle_that_was_not_checked_is_found_by_the_planner() {
    let reader = read(
        "a: empty
         b: empty after a
         c: empty after b
         d: empty after c
         edge c b",
    );
    let error = plan(&reader.ir, &new_device(), Options::default()).unwrap_err();
    let PlanError::Cycle(mut nodes) = error else { panic!("{error:?}") };
    nodes.sort();
    assert_eq!(nodes, [NodeId(1), NodeId(2)]);
}

/// Rule F5
#[test]
fn a_node_that_the_device_cannot_run_is_named_with_what_is_missing() {
    let old = Caps { version: Version::new(1, 1), ..Caps::default() };
    let oldest = Caps { version: Version::new(1, 0), ..Caps::default() };
    let fails = |graph: &str, caps: &Caps| match plan(&read(graph).ir, caps, Options::default()) {
        Err(PlanError::NotRunnable { node, missing, kind }) => (node.0, missing, kind),
        other => panic!("{other:?}"),
    };
    let fill = "buffer x 64\n a: empty\n b: fill x 64";
    let missing = "a fill needs OpenCL 1.2, and the device has 1.1".to_owned();
    assert_eq!(fails(fill, &old), (1, missing, ErrorKind::FeatureNotSupported));
    let rect = "buffer x 64\n buffer y 64\n a: rect x y 4x2x1";
    let missing = "a rectangular copy needs OpenCL 1.1, and the device has 1.0".to_owned();
    assert_eq!(fails(rect, &oldest), (0, missing, ErrorKind::FeatureNotSupported));
    let missing = "its program was not built for this device".to_owned();
    assert_eq!(fails("a: unbuilt f", &new_device()), (0, missing, ErrorKind::KernelNotSupported));
}

/// The checker has to find what it is for: each of these breaks a good plan in one way.
#[test]
fn the_checker_finds_broken_plans() {
    let reader = read(
        "buffer x 64
         a: fill x 64
         b: kernel f update x value 1
         c: kernel f update x value 2
         d: empty after a c",
    );
    let good = plan(&reader.ir, &new_device(), Options::default()).unwrap();
    let order: Vec<NodeId> = reader.ir.ids().collect();
    let broken = |change: &dyn Fn(&mut Plan)| {
        let mut plan = good.clone();
        change(&mut plan);
        super::check::check(&reader.ir, &order, &plan).unwrap_err()
    };
    let bad_order = |order: [u32; 4]| super::check::check(&reader.ir, &order.map(NodeId), &good).unwrap_err();
    assert_eq!(super::check::check(&reader.ir, &order, &good), Ok(()));
    assert!(bad_order([1, 0, 2, 3]).contains("not behind its predecessor"));
    assert!(bad_order([1, 1, 2, 3]).contains("twice in the order"));
    assert!(broken(&|plan| plan.steps.swap(0, 1)).contains("out of order"));
    assert!(broken(&|plan| drop(plan.steps.pop())).contains("has a step: false"));
    assert!(broken(&|plan| plan.segments[0].steps.end = 1).contains("segments end at 1"));
    assert!(broken(&|plan| plan.edges.needed.truncate(2)).contains("do not reach"));
    assert!(broken(&|plan| plan.edges.implied_by_path += 1).contains("neither kept"));
    assert!(broken(&|plan| plan.objects[1] = plan.objects[0]).contains("alike"));
    assert!(broken(&|plan| plan.objects.swap(0, 1)).contains("other values"));
}
