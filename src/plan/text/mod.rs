//! Plans as text, for tests without a device: a graph is written line by line, and the plan is compared as lines.
//!
//! This file reads and prints; each other file has the tests of some passes: `plans.rs` (order, edges, kernel objects,
//! steps, the checker), `paths.rs` (paths and why), `tasks.rs` (partitions), `streams.rs` (several queues), `memory.rs`
//! (lifetimes), `control.rs` (branches and loops), `exclusions.rs` (what excludes a path). A test of a new pass starts here.
//!
//! ```text
//! buffer x 64                       a buffer of 64 bytes
//! sub s x 0..32                     a sub-buffer of it
//! a: kernel f read x write y[0..8] value 7 local 64 null range 16 prints
//! a: kernel f read x checked        a launch that the host does
//! b: copy x y 8                     8 bytes from the start of x to the start of y
//! c: rect x y 4x2x1                 fill y 8, write x 8, read x 8, hint x 8, empty
//! t: alloc 64 zero                  64 bytes of the graph's own, which are zero; `t` is memory from here on
//! g: free t
//! d: empty after a b
//! h: task read x write y            a host task
//! e: wait, f: signal                external events
//! n: native either read x           a native command: `enqueued`, `recorded` or `either`
//! l: repeat 3 update y              a loop, with the uses of its body; from here on nodes are in the body
//! end                               the body is complete
//! i: when x 2 update y              a branch with two bodies, by the number in `x`; also `switch x 3` and `while x`
//! next                              the next body begins
//! end
//! edge c d
//! ```

mod control;
mod exclusions;
mod memory;
mod paths;
mod plans;
mod streams;
mod tasks;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use expect_test::{Expect, expect};
use quickcheck::{Arbitrary, Gen};

use super::{
    Conflicts, Exclusion, Flow, Instruction, MemoryLayout, MemoryOptions, Options, Path, PathReason, Plan, Schedule,
    Spot, plan,
};
use crate::caps::{Caps, Version};
use crate::command::{Arg, Command, Control, ControlKind, CopyRect, Elementwise, Form, Grid, Hint, Location};
use crate::ir::hazards::Hazards;
use crate::ir::{
    Access, AllocDecl, AllocId, Body, ById, DataId, ExternalId, Ir, KernelDecl, KernelId, Mode, NativeId, NodeId,
    ResultId, RootId, TaskId, View, ViewId, ViewKind,
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
    /// The branches and loops whose bodies are being read, from the outside in.
    open: Vec<control::Open>,
    /// By branch or loop: its exit.
    exits: HashMap<NodeId, NodeId>,
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
                self.ir.views.push(View {
                    root: RootId(self.roots),
                    root_size: size,
                    offset: 0,
                    size,
                    kind: ViewKind::Buffer,
                });
                self.roots += 1;
                self.views.insert(words[1].to_owned(), view);
            }
            "sub" => {
                let access = self.access(&format!("{}[{}]", words[2], words[3]), Mode::Read);
                let view = ViewId(self.ir.views.len() as u32);
                let View { root, root_size, .. } = self.ir.views[access.view.index()];
                let (offset, size) = (access.range.start, access.range.len());
                self.ir.views.push(View { root, root_size, offset, size, kind: ViewKind::SubBuffer });
                self.views.insert(words[1].to_owned(), view);
            }
            "edge" => {
                Arc::make_mut(&mut self.ir.topology)
                    .add_edge(self.nodes[words[1]], self.nodes[words[2]], false)
                    .unwrap();
            }
            "next" => self.next_body(),
            "end" => self.end_bodies(),
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
        let node = NodeId(self.ir.len() as u32);
        if words[0] == "alloc" {
            self.alloc(name, node, words[1].parse().unwrap(), words.contains(&"zero"));
        }
        let (op, accesses) = self.command(name, words);
        for access in &accesses {
            self.hazards.add(node, access, &self.ir.views[access.view.index()], &mut after);
        }
        after.iter_mut().for_each(|before| *before = self.exits.get(before).copied().unwrap_or(*before));
        let bodies = if let Command::Control(control) = &op { Some(control.bodies.ends()) } else { None };
        self.push(name, op, accesses, after);
        if let Some((start, end)) = bodies {
            self.open_bodies(name, node, start as usize..end as usize);
        }
    }

    /// Adds a node. In a body it comes after the body's entry if it comes after nothing else.
    fn push(&mut self, name: &str, op: Command<ById>, accesses: Vec<Access>, mut after: Vec<NodeId>) -> NodeId {
        if after.is_empty() {
            after.extend(self.open.last().map(|open| open.entry));
        }
        let node = self.ir.push_node(op, accesses.into_iter(), &mut after).unwrap();
        self.nodes.insert(name.to_owned(), node);
        self.names.push(name.to_owned());
        node
    }

    fn alloc(&mut self, name: &str, node: NodeId, size: usize, zero: bool) {
        let alloc = AllocId(self.ir.allocs.len() as u32);
        self.ir.allocs.push(AllocDecl { size, zero, node });
        self.views.insert(name.to_owned(), ViewId(self.ir.views.len() as u32));
        let (root, kind) = (RootId(self.roots), ViewKind::Owned(alloc));
        self.ir.views.push(View { root, root_size: size, offset: 0, size, kind });
        self.roots += 1;
    }

    fn command(&mut self, name: &str, words: &[&str]) -> (Command<ById>, Vec<Access>) {
        let place = |access: &Access, ir: &Ir| Location {
            mem: access.view,
            offset: access.range.start - ir.views[access.view.index()].offset,
        };
        let sized = |mut access: Access, size: &str| {
            let size: usize = size.parse().unwrap();
            access.range.end = access.range.start + size;
            (access, size)
        };
        match words[0] {
            "empty" => (Command::Empty, vec![]),
            "task" => {
                let mode = |word| if word == "read" { Mode::Read } else { Mode::Write };
                let accesses = words[1..].chunks(2).map(|pair| self.access(pair[1], mode(pair[0]))).collect();
                self.ir.tasks += 1;
                (Command::Task(TaskId(self.ir.tasks - 1)), accesses)
            }
            "native" => {
                let mode = |word| if word == "read" { Mode::Read } else { Mode::Write };
                let accesses = words[2..].chunks(2).map(|pair| self.access(pair[1], mode(pair[0]))).collect();
                self.ir.natives += 1;
                let form = match words[1] {
                    "enqueued" => Form::Enqueued,
                    "recorded" => Form::Recorded,
                    _ => Form::Either,
                };
                (Command::Native { functions: NativeId(self.ir.natives - 1), form }, accesses)
            }
            "repeat" | "while" | "when" | "switch" => self.control(words),
            "wait" | "signal" => {
                self.ir.externals += 1;
                (Command::Event { event: ExternalId(self.ir.externals - 1), signals: words[0] == "signal" }, vec![])
            }
            "alloc" | "free" => {
                let access = self.access(if words[0] == "alloc" { name } else { words[1] }, Mode::Write);
                let ViewKind::Owned(alloc) = self.ir.views[access.view.index()].kind else { panic!("{words:?}") };
                (if words[0] == "alloc" { Command::Alloc(alloc) } else { Command::Free(alloc) }, vec![access])
            }
            "copy" => {
                let (src, size) = sized(self.access(words[1], Mode::Read), words[3]);
                let (dst, _) = sized(self.access(words[2], Mode::Write), words[3]);
                (Command::Copy { src: place(&src, &self.ir), dst: place(&dst, &self.ir), size }, vec![src, dst])
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
                (Command::CopyRect(rect), vec![src, dst])
            }
            "fill" => {
                let (dst, size) = sized(self.access(words[1], Mode::Write), words[2]);
                let pattern = self.ir.push_bytes(&[0]).unwrap();
                (Command::Fill { dst: place(&dst, &self.ir), size, pattern, area: None }, vec![dst])
            }
            "write" => {
                let (dst, size) = sized(self.access(words[1], Mode::Write), words[2]);
                self.ir.data += 1;
                (
                    Command::Write { dst: place(&dst, &self.ir), size, data: DataId(self.ir.data - 1), area: None },
                    vec![dst],
                )
            }
            "read" => {
                let (src, size) = sized(self.access(words[1], Mode::Read), words[2]);
                self.ir.results += 1;
                (
                    Command::Read {
                        src: place(&src, &self.ir),
                        size,
                        output: ResultId(self.ir.results - 1),
                        area: None,
                    },
                    vec![src],
                )
            }
            "hint" => {
                let (of, size) = sized(self.access(words[1], Mode::Read), words[2]);
                (Command::Hint { of: place(&of, &self.ir), size, hint: Hint::ToDevice }, vec![of])
            }
            "kernel" | "unbuilt" => self.kernel(words[1], words[0] == "kernel", &words[2..]),
            other => panic!("no such node: {other}"),
        }
    }

    fn kernel(&mut self, name: &str, built: bool, words: &[&str]) -> (Command<ById>, Vec<Access>) {
        let (mut args, mut accesses, mut global, mut prints) = (Vec::new(), Vec::new(), 1, false);
        let mut elementwise = None;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "null" => {
                    let view = ViewId(self.ir.views.len() as u32);
                    let root = RootId(self.roots);
                    self.roots += 1;
                    self.ir.views.push(View { root, root_size: 0, offset: 0, size: 0, kind: ViewKind::Nothing });
                    args.push(Arg::Null(view));
                    accesses.push(Access { view, range: 0..0, mode: Mode::Read });
                }
                "prints" => prints = true,
                "checked" => elementwise = Some(Elementwise::checked(None)),
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
                    args.push(Arg::Memory(access.view));
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
        (Command::Kernel { kernel, args, grid, bound: None, prints, elementwise }, accesses)
    }
}

fn read(text: &str) -> Reader {
    let mut reader = Reader::default();
    text.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(|line| reader.line(line));
    reader
}

/// Numbers of which the tests of a pass make a graph, a node each.
#[derive(Clone, Debug)]
struct Random(Vec<(u8, u8, u8)>);

impl Arbitrary for Random {
    fn arbitrary(g: &mut Gen) -> Self {
        Self(Vec::arbitrary(g))
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        Box::new(self.0.shrink().map(Self))
    }
}

/// The kind of command.
fn name_of(op: &Command<ById>) -> &'static str {
    match op {
        Command::Kernel { .. } => "kernel",
        Command::Copy { .. } => "copy",
        Command::CopyRect(_) => "rectangular copy",
        Command::CopyImage(_) => "copy of pixels",
        Command::Fill { .. } => "fill",
        Command::Write { .. } => "host write",
        Command::Read { .. } => "host read",
        Command::Hint { .. } => "hint",
        Command::Task(_) => "task",
        Command::Event { .. } => "event",
        Command::Control(_) => "control",
        Command::Native { .. } => "native command",
        Command::Empty | Command::SubGraph(_) | Command::Alloc(_) | Command::Free(_) => "no command",
    }
}

fn show(reader: &Reader, plan: &Plan) -> String {
    let mut text = String::new();
    let task = |task: &u32| reader.names[plan.flows[0].tasks[*task as usize].node.index()].clone();
    let list = |word: &str, tasks: &[u32]| match tasks {
        [] => String::new(),
        tasks => format!(" {word} {}", tasks.iter().map(task).collect::<Vec<_>>().join(" ")),
    };
    for (at, partition) in plan.flows[0].partitions.iter().enumerate().filter(|_| !plan.flows[0].tasks.is_empty()) {
        let names = plan.steps[partition.steps.clone()].iter().map(|step| &*reader.names[step.node.index()]);
        let names = names.collect::<Vec<_>>().join(" ");
        writeln!(
            text,
            "partition {at}{}: {names}{}",
            list("after", &partition.tasks),
            list("for", &partition.then_tasks)
        )
        .unwrap();
    }
    for of in &plan.flows[0].tasks {
        let partitions: String = of.partitions.iter().map(|partition| format!(" partition {partition}")).collect();
        writeln!(text, "{} waits for{partitions}{}", reader.names[of.node.index()], list("task", &of.tasks)).unwrap();
    }
    for segment in &plan.segments {
        writeln!(text, "{} ({})", segment.path, segment.why).unwrap();
        for step in &plan.steps[segment.steps.clone()] {
            let name = &reader.names[step.node.index()];
            let object = step.object.map_or_else(String::new, |object| format!(" #{}", object.0));
            writeln!(text, "  {name} {}{object}", name_of(reader.ir.command(step.node))).unwrap();
        }
    }
    let name = |node: NodeId| &reader.names[node.index()];
    let needed: Vec<_> = plan.edges.needed.iter().map(|(a, b)| format!("{}-{}", name(*a), name(*b))).collect();
    writeln!(text, "edges {}; {} implied", needed.join(" "), plan.edges.implied_by_path).unwrap();
    for (decl, life) in reader.ir.allocs.iter().zip(&plan.lifetimes.of) {
        let life = life.as_ref().map_or("nowhere".to_owned(), |life| format!("{:?}", life.needed));
        writeln!(text, "{} is needed {life}", name(decl.node)).unwrap();
    }
    text
}

/// Returns the instructions of a schedule of a flow: the stream, and what is enqueued on it.
fn instructions(reader: &Reader, plan: &Plan, flow: &Flow, schedule: &Schedule) -> Vec<String> {
    let names = |steps: &Range<usize>| {
        let names = plan.steps[steps.clone()].iter().map(|step| &*reader.names[step.node.index()]);
        names.collect::<Vec<_>>().join(" ")
    };
    let kept = |event: &Option<usize>| event.map_or_else(String::new, |event| format!(", event {event}"));
    let line = |instruction: &Instruction| match instruction {
        Instruction::Run { stream, steps, event } => format!("{stream}: {}{}", names(steps), kept(event)),
        Instruction::Native { stream, steps, event, only } => {
            let only = if *only { "only " } else { "" };
            format!("{stream}: {only}in command buffers {}{}", names(steps), kept(event))
        }
        Instruction::Wait { stream, event } => format!("{stream}: wait {event}"),
        Instruction::Barrier { stream, event } => format!("{stream}: barrier{}", kept(event)),
    };
    let all = |range: &Range<usize>| schedule.instructions[range.clone()].iter().map(line).collect::<Vec<_>>();
    let mut lines = all(&schedule.begin);
    for (at, block) in schedule.blocks.iter().enumerate() {
        if !flow.tasks.is_empty() {
            lines.push(format!("partition {at}"));
        }
        lines.extend(all(block));
    }
    if !schedule.end.is_empty() {
        lines.push("end".to_owned());
    }
    lines.extend(all(&schedule.end));
    for (task, events) in flow.tasks.iter().zip(&schedule.tasks) {
        let events: Vec<_> = events.iter().map(u32::to_string).collect();
        lines.push(format!("{} waits for {}", reader.names[task.node.index()], events.join(" ")).trim_end().to_owned());
    }
    lines
}

/// Returns lines as one text.
fn lines(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn new_device() -> Caps {
    Caps { version: Version::new(3, 0), max_allocation: 1 << 20, ..Caps::default() }
}

fn asked(path: Path) -> Options<'static> {
    static NONE: BTreeMap<NodeId, PathReason> = BTreeMap::new();
    Options {
        path,
        from_environment: false,
        denied: &NONE,
        no_native: None,
        chunk: None,
        autotune: true,
        updatable: false,
        parameters: &[],
        profiled: false,
        conflicts: Conflicts::Impossible,
        memory: MemoryOptions { align: 8, limit: 1 << 20, share: true },
    }
}

#[track_caller]
fn assert_plan(graph: &str, expected: Expect) {
    let reader = read(graph);
    let plan = plan(&reader.ir, &new_device(), &asked(Path::Auto)).unwrap();
    expected.assert_eq(&show(&reader, &plan));
}
