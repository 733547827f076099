//! Plans as text, for tests without a device: a graph is written line by line, and the plan is read as lines.
//!
//! ```text
//! buffer x 64                       a buffer of 64 bytes
//! sub s x 0..32                     a sub-buffer of it
//! a: kernel f read x write y[0..8] value 7 local 64 null range 16 prints
//! b: copy x y 8                     8 bytes from the start of x to the start of y
//! c: rect x y 4x2x1                 fill y 8, write x 8, read x 8, empty
//! d: empty after a b
//! edge c d
//! ```

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use super::{Action, Command, Options, Path, Plan, PlanError, Why, plan};
use crate::caps::{Caps, Claim, CommandBufferCaps, QueueKinds, Version};
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
        let (mut args, mut accesses, mut global, mut prints) = (Vec::new(), Vec::new(), 1, false);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "null" => args.push(Arg::Null),
                "prints" => prints = true,
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
        (Op::Kernel { kernel, args, grid, prints }, accesses)
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
    Caps { version: Version::new(3, 0), max_allocation: 1 << 20, ..Caps::default() }
}

fn asked(path: Path) -> Options<'static> {
    static NONE: BTreeMap<NodeId, Why> = BTreeMap::new();
    Options { path, from_environment: false, denied: &NONE, no_native: None }
}

#[track_caller]
fn assert_plan(graph: &str, expected: &str) {
    let reader = read(graph);
    let plan = plan(&reader.ir, &new_device(), &asked(Path::Auto)).unwrap();
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
        "replay (the device has no command buffers)
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
        "replay (the device has no command buffers)
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
        "replay (the device has no command buffers)
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
        "replay (the device has no command buffers)
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
        "replay (the device has no command buffers)
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
        "replay (the device has no command buffers)
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
    let plan = plan(&reader.ir, &new_device(), &asked(Path::Replay)).unwrap();
    assert_eq!(show(&reader, &plan), "replay (as asked)\n  a fill\nedges ; 0 implied\n");
}

/// A device with command buffers and nothing known against them.
fn recording_device() -> Caps {
    let command_buffers = Some(CommandBufferCaps { simultaneous_use: true, ..CommandBufferCaps::default() });
    Caps { command_buffers, ..new_device() }
}

#[track_caller]
fn segments(graph: &str, caps: &Caps, options: &Options<'_>) -> Vec<String> {
    let plan = plan(&read(graph).ir, caps, options).unwrap();
    plan.segments.iter().map(|part| format!("{:?} {} ({})", part.steps, part.path, part.why)).collect()
}

const MIXED: &str = "buffer x 64
    w: write x 64
    a: kernel f update x
    b: kernel f update x prints
    c: copy x x[32..64] 32
    r: read x 64
    e: fill x 64";

/// Rule F4
#[test]
fn what_a_command_buffer_cannot_hold_runs_beside_it() {
    let why = |text: &str| format!("({text})");
    let (has, no) = (why("the driver has them"), why("command buffers have no such command"));
    let prints = why("recorded kernels cannot print on this device");
    assert_eq!(
        segments(MIXED, &recording_device(), &asked(Path::Auto)),
        [
            format!("0..1 replay {no}"),
            format!("1..2 command buffers {has}"),
            format!("2..3 replay {prints}"),
            format!("3..4 command buffers {has}"),
            format!("4..5 replay {no}"),
            format!("5..6 command buffers {has}"),
        ]
    );
    let mut caps = recording_device();
    let command_buffers = caps.command_buffers.as_mut().unwrap();
    command_buffers.kernel_printf = true;
    command_buffers.missing = vec!["clCommandCopyBufferKHR"];
    let asked_so = why("as asked");
    assert_eq!(
        segments(MIXED, &caps, &asked(Path::Native)),
        [
            format!("0..1 replay {no}"),
            format!("1..3 command buffers {asked_so}"),
            "3..4 replay (the driver lists cl_khr_command_buffer and lacks clCommandCopyBufferKHR)".to_owned(),
            format!("4..5 replay {no}"),
            format!("5..6 command buffers {asked_so}"),
        ]
    );
}

/// Rule F4: a driver that refuses a node is not asked again, and one that refuses all is asked for nothing.
#[test]
fn what_the_driver_refused_is_replayed() {
    let error = crate::error::DriverError::new("clCommandNDRangeKernelKHR", crate::error::Status(-59));
    let denied = BTreeMap::from([(NodeId(1), Why::Refused(error))]);
    let options = Options { denied: &denied, ..asked(Path::Native) };
    let parts =
        segments("buffer x 64\n a: fill x 64\n b: kernel f update x\n c: fill x 64", &recording_device(), &options);
    let text = "the driver refused to record it: clCommandNDRangeKernelKHR failed with CL_INVALID_OPERATION (-59)";
    let expected =
        ["0..1 command buffers (as asked)", &format!("1..2 replay ({text})"), "2..3 command buffers (as asked)"];
    assert_eq!(parts, expected);
    let options = Options { no_native: Some(Why::Unusable), ..asked(Path::Native) };
    let parts = segments("buffer x 64\n a: fill x 64\n b: fill x 64", &recording_device(), &options);
    assert_eq!(parts, ["0..2 replay (the driver's functions that record cannot be called)"]);
}

/// Rule F4
#[test]
fn a_device_that_cannot_record_replays_and_says_why() {
    let with = |change: &dyn Fn(&mut CommandBufferCaps)| {
        let mut caps = recording_device();
        change(caps.command_buffers.as_mut().unwrap());
        caps
    };
    let why = |caps: &Caps| caps.can_record(Command::Kernel).unwrap_err();
    assert_eq!(why(&new_device()), Why::NoCommandBuffers);
    assert_eq!(why(&with(&|caps| caps.claim = Claim::Hidden)), Why::NotListed);
    let missing = "clFinalizeCommandBufferKHR";
    assert_eq!(why(&with(&|caps| caps.missing = vec![missing])), Why::MissingFunction(missing));
    let queues = QueueKinds { out_of_order: true, ..QueueKinds::default() };
    assert_eq!(why(&with(&|caps| caps.required_queue = queues)), Why::Queues);
    assert_eq!(with(&|caps| caps.claim = Claim::Assumed).can_record(Command::Kernel), Ok(()));
    let parts = segments("buffer x 64\n a: fill x 64", &new_device(), &asked(Path::Native));
    assert_eq!(parts, ["0..1 replay (the device has no command buffers)"]);
}

#[test]
fn the_path_is_chosen_by_what_is_known_of_the_driver() {
    let on = |platform: &str, gpu: bool| Caps { platform: platform.to_owned(), gpu, ..recording_device() }.path();
    assert_eq!(on("Portable Computing Language", false), (Path::Replay, Why::Slower));
    assert_eq!(on("Portable Computing Language", true), (Path::Native, Why::Available), "a driver of another device");
    assert_eq!(on("Intel(R) OpenCL", false), (Path::Replay, Why::SlowerAndLeaks));
    assert_eq!(on("Another", false), (Path::Native, Why::Available));
    assert_eq!(new_device().path(), (Path::Replay, Why::NoCommandBuffers));
    let options = Options { from_environment: true, ..asked(Path::Native) };
    let parts = segments("buffer x 64\n a: fill x 64", &recording_device(), &options);
    assert_eq!(parts, ["0..1 command buffers (as CLGRAPH_PATH says)"]);
}

#[test]
fn long_parts_are_cut_into_even_chunks() {
    for len in [1, 63, 64, 65, 100, 1000] {
        let part = super::Segment { steps: 7..7 + len, path: Path::Native, why: Why::Asked };
        let chunks: Vec<_> = part.chunks().collect();
        assert_eq!(chunks.len(), len.div_ceil(64));
        assert_eq!((chunks[0].start, chunks[chunks.len() - 1].end), (7, 7 + len));
        assert!(chunks.windows(2).all(|pair| pair[0].end == pair[1].start));
        let sizes = || chunks.iter().map(ExactSizeIterator::len);
        assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 1 && sizes().max().unwrap() <= 64);
    }
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
    let error = plan(&reader.ir, &new_device(), &asked(Path::Auto)).unwrap_err();
    let PlanError::Cycle(mut nodes) = error else { panic!("{error:?}") };
    nodes.sort();
    assert_eq!(nodes, [NodeId(1), NodeId(2)]);
}

/// Rule F5
#[test]
fn a_node_that_the_device_cannot_run_is_named_with_what_is_missing() {
    let old = Caps { version: Version::new(1, 1), ..new_device() };
    let oldest = Caps { version: Version::new(1, 0), ..new_device() };
    let fails = |graph: &str, caps: &Caps| match plan(&read(graph).ir, caps, &asked(Path::Auto)) {
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
    let coarse = Caps { sub_buffer_align: 64, ..new_device() };
    let graph = "buffer x 128\n sub s x 64..128\n sub t x 32..64\n a: kernel f write s\n b: kernel f write t";
    let missing = "a sub-buffer starts at byte 32, and the device wants a multiple of 64".to_owned();
    assert_eq!(fails(graph, &coarse), (1, missing, ErrorKind::FeatureNotSupported));
    let small = Caps { max_allocation: 32, ..new_device() };
    let missing = "a buffer has 64 bytes, and the device's largest can have 32".to_owned();
    assert_eq!(fails("buffer x 64\n a: kernel f write x", &small), (0, missing, ErrorKind::FeatureNotSupported));
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
    let good = plan(&reader.ir, &new_device(), &asked(Path::Auto)).unwrap();
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
    let mixed = read("buffer x 64\n a: fill x 64\n b: write x 64");
    let mut wrong = plan(&mixed.ir, &new_device(), &asked(Path::Auto)).unwrap();
    wrong.segments[0].path = Path::Native;
    let order: Vec<NodeId> = mixed.ir.ids().collect();
    assert!(super::check::check(&mixed.ir, &order, &wrong).unwrap_err().contains("no command buffer can hold"));
    assert!(broken(&|plan| plan.edges.needed.truncate(2)).contains("do not reach"));
    assert!(broken(&|plan| plan.edges.implied_by_path += 1).contains("neither kept"));
    assert!(broken(&|plan| plan.objects[1] = plan.objects[0]).contains("alike"));
    assert!(broken(&|plan| plan.objects.swap(0, 1)).contains("other values"));
}
