//! The sources of fused kernels that `src/opencl_c` keeps as text (`tests/fused_texts`), built and run on each driver: each does what its
//! launches do one by one. Which launches these are stands in the test that writes the text.

mod common;

use clgraph::{Buffer, Graph, KernelNode, Program, Queue};
use common::Bench;

const LEN: usize = 64;
/// The work-items of most launches, and of some.
const N: u32 = 12;
const M: u32 = 9;
/// How many turns a kernel does that does turns.
const TURNS: u32 = 3;

type Buffers = Vec<Buffer<u32>>;

/// A kept text.
struct Text {
    name: &'static str,
    source: &'static str,
    /// How many buffers it has, and what is in them at first.
    buffers: usize,
    first: fn(usize) -> u32,
    /// Its fused kernel, with its arguments but for the last ones, and its range.
    fused: for<'a> fn(KernelNode<'a>, &Buffers) -> KernelNode<'a>,
    /// Its launches, one by one.
    launches: fn(&Launches<'_>),
}

/// Launches kernels of a text one by one.
struct Launches<'a> {
    graph: &'a Graph,
    program: &'a Program,
    buffers: &'a Buffers,
}

impl Launches<'_> {
    fn one(&self, name: &str, with: impl for<'a> FnOnce(KernelNode<'a>) -> KernelNode<'a>) {
        let kernel = self.program.kernel(name).unwrap();
        // SAFETY: the texts write within the buffers.
        unsafe { with(self.graph.kernel(&kernel)).add().unwrap() };
    }

    fn add(&self, buffer: usize, by: f32, dims: usize) {
        let range = [N as usize, 1, 1];
        self.one("add", |node| {
            let node = node.read_write(&self.buffers[buffer]).arg(by);
            if dims == 1 { node.range(range[0]) } else { node.range([range[0], range[1]]) }
        });
    }

    /// Those of `repeating` in `src/opencl_c/fused_tests.rs`.
    fn repeating(&self) {
        let b = self.buffers;
        let f = |from: usize, to: usize, by: i32, size: u32| {
            self.one("f", |node| node.read(&b[from]).write(&b[to]).arg(by).range(size as usize));
        };
        for turn in 0..5 {
            f(turn, turn + 1, 10 + turn as i32, [N, M][turn % 2]);
            self.one("g", |node| node.read_write(&b[turn + 1]).range(N as usize));
        }
        self.one("g", |node| node.read_write(&b[0]).range([M as usize, 1]));
        (0..12).for_each(|turn| f(turn % 2, 1 - turn % 2, 10, M));
    }

    fn parts(&self, dims: usize, range: [usize; 3]) {
        let launch = |name: &str, by: Option<i32>| {
            self.one(name, |node| {
                let node = node.read_write(&self.buffers[0]);
                let node = if let Some(by) = by { node.arg(by) } else { node };
                if dims == 1 { node.range(range[0]).offset(3) } else { node.range(range) }
            });
        };
        launch("f", Some(7));
        launch("g", None);
        (0..4).for_each(|_| launch("f", Some(9)));
    }

    fn groups(&self) {
        let f = |dims: usize| {
            self.one("f", |node| {
                let node = node.read_write(&self.buffers[0]).local::<u32>(4);
                if dims == 1 {
                    node.range(N as usize).work_group(4)
                } else {
                    node.range([N as usize, 1]).work_group([4, 1])
                }
            });
        };
        f(1);
        self.one("g", |node| node.read_write(&self.buffers[0]).range(N as usize).work_group(4));
        f(2);
        (0..4).for_each(|_| f(1));
    }
}

fn float(at: usize) -> u32 {
    (1.0 + at as f32).to_bits()
}

fn int(at: usize) -> u32 {
    at as u32
}

fn adds(at: &Launches<'_>) {
    at.add(0, 0.5, 1);
    at.add(0, 0.25, 2);
}

fn lanes(at: &Launches<'_>) {
    adds(at);
    (0..4).for_each(|_| at.add(1, 0.5, 1));
}

/// The condition is always true, so the turns end at the most that there may be.
fn turns(at: &Launches<'_>) {
    (0..TURNS).for_each(|_| adds(at));
}

fn each_item(at: &Launches<'_>) {
    let b = at.buffers;
    at.one("f", |node| node.read(&b[0]).write(&b[1]).arg(7).range(1));
    at.one("none", |node| node.range(1));
    at.one("f", |node| node.read(&b[1]).write(&b[0]).arg(7).range(1));
}

/// The arguments of the texts of `adds`, and the one work-group that runs them.
fn add_args<'a>(node: KernelNode<'a>, b: &Buffers) -> KernelNode<'a> {
    node.read_write(&b[0]).arg(0.5_f32).arg(0.25_f32).arg(N)
}

fn memory<'a>(node: KernelNode<'a>, b: &Buffers) -> KernelNode<'a> {
    b[..6].iter().fold(node, |node, buffer| node.read_write(buffer))
}

/// A kept text by its name, with its other fields.
macro_rules! text {
    ($name:literal, $($rest:tt)*) => {
        Text { name: $name, source: include_str!(concat!("fused_texts/", $name, ".cl")), $($rest)* }
    };
}

const TEXTS: [Text; 24] = [
    text! { "one_item",
        buffers: 1,
        first: float,
        fused: |node, b| add_args(node, b).arg(1_u32).range(2).work_group(2),
        launches: adds,
    },
    text! { "one_group",
        buffers: 1,
        first: float,
        fused: |node, b| add_args(node, b).arg(1_u32).range(2).work_group(2),
        launches: adds,
    },
    text! { "one_group_joined",
        buffers: 1,
        first: float,
        fused: |node, b| add_args(node, b).arg(1_u32).range(2).work_group(2),
        launches: adds,
    },
    // No launch has fewer work-items than the work-group.
    text! { "one_group_whole",
        buffers: 1,
        first: float,
        fused: |node, b| add_args(node, b).arg(1_u32).range(2).work_group(2),
        launches: adds,
    },
    text! { "lanes_one_item",
        buffers: 2,
        first: float,
        fused: |node, b| add_args(node, b).read_write(&b[1]).arg(1_u32).range(4).work_group(2),
        launches: lanes,
    },
    text! { "lanes_one_group",
        buffers: 2,
        first: float,
        fused: |node, b| add_args(node, b).read_write(&b[1]).arg(1_u32).range(4).work_group(2),
        launches: lanes,
    },
    text! { "turns_one_item",
        buffers: 1,
        first: float,
        fused: |node, b| add_args(node, b).arg(1_u32).range(2).work_group(2),
        launches: turns,
    },
    text! { "turns_one_group",
        buffers: 1,
        first: float,
        fused: |node, b| add_args(node, b).arg(1_u32).range(2).work_group(2),
        launches: turns,
    },
    text! { "loops_one_item",
        buffers: 6,
        first: int,
        fused: |node, b| {
            let node = (10..15).fold(memory(node, b), |node, by| node.arg(by));
            node.arg(N).arg(M).arg(1_u32).range(2).work_group(2)
        },
        launches: |at| at.repeating(),
    },
    text! { "loops_one_group",
        buffers: 6,
        first: int,
        fused: |node, b| {
            let node = (10..15).fold(memory(node, b), |node, by| node.arg(by));
            node.arg(N).arg(M).arg(1_u32).range(4).work_group(4)
        },
        launches: |at| at.repeating(),
    },
    text! { "loops_joined",
        buffers: 6,
        first: int,
        fused: |node, b| {
            let node = (10..15).fold(memory(node, b), |node, by| node.arg(by));
            node.arg(N).arg(M).arg(1_u32).range(5).work_group(5)
        },
        launches: |at| at.repeating(),
    },
    text! { "loops_whole",
        buffers: 6,
        first: int,
        fused: |node, b| {
            let node = (10..15).fold(memory(node, b), |node, by| node.arg(by));
            node.arg(N).arg(M).arg(1_u32).range(4).work_group(4)
        },
        launches: |at| at.repeating(),
    },
    // The last buffer is the table: `tables` fills it.
    text! { "table_one_item",
        buffers: 6,
        first: int,
        fused: |node, b| memory(node, b).read(&b[6]).arg(1_u32).range(2).work_group(2),
        launches: |at| at.repeating(),
    },
    text! { "table_one_group",
        buffers: 6,
        first: int,
        fused: |node, b| {
            (10..13).fold(memory(node, b), |node, by| node.arg(by)).read(&b[6]).arg(1_u32).range(4).work_group(4)
        },
        launches: |at| at.repeating(),
    },
    text! { "each_item",
        buffers: 2,
        first: int,
        fused: |node, b| node.read_write(&b[0]).read_write(&b[1]).arg(7).arg(1_u32).range(1),
        launches: each_item,
    },
    text! { "each_item_in_range",
        buffers: 2,
        first: int,
        fused: |node, b| node.read_write(&b[0]).read_write(&b[1]).arg(7).arg(0_u32).arg(1_u32).arg(1_u32).range(8),
        launches: each_item,
    },
    text! { "parts_one_item_line",
        buffers: 1,
        first: int,
        fused: |node, b| node.read_write(&b[0]).arg(7).arg(9).arg(N + 30).arg(3_u32).arg(1_u32).range(6).work_group(2),
        launches: |at| at.parts(1, [N as usize + 30, 1, 1]),
    },
    text! { "parts_one_item_rows",
        buffers: 1,
        first: int,
        fused: |node, b| node.read_write(&b[0]).arg(7).arg(9).arg(5_u32).arg(3_u32).arg(3_u32).arg(1_u32).range(6).work_group(2),
        launches: |at| at.parts(3, [5, 3, 3]),
    },
    text! { "parts_joined_line",
        buffers: 1,
        first: int,
        fused: |node, b| node.read_write(&b[0]).arg(7).arg(9).arg(N + 30).arg(3_u32).arg(1_u32).range(12).work_group(4),
        launches: |at| at.parts(1, [N as usize + 30, 1, 1]),
    },
    text! { "parts_joined_rows",
        buffers: 1,
        first: int,
        fused: |node, b| node.read_write(&b[0]).arg(7).arg(9).arg(5_u32).arg(3_u32).arg(3_u32).arg(1_u32).range(24).work_group(8),
        launches: |at| at.parts(3, [5, 3, 3]),
    },
    text! { "groups",
        buffers: 1,
        first: float,
        fused: |node, b| node.read_write(&b[0]).local::<u32>(4).arg(N).arg(1_u32).range(4).work_group(4),
        launches: |at| at.groups(),
    },
    text! { "groups_whole",
        buffers: 1,
        first: float,
        fused: |node, b| node.read_write(&b[0]).local::<u32>(4).arg(N).arg(1_u32).range(4).work_group(4),
        launches: |at| at.groups(),
    },
    text! { "helpers",
        buffers: 1,
        first: float,
        fused: |node, b| node.read_write(&b[0]).arg(1_u32).range(2).work_group(2),
        launches: |at| {
            ["f", "g"].into_iter().for_each(|name| at.one(name, |node| node.read_write(&at.buffers[0]).range(1)))
        },
    },
    text! { "programs",
        buffers: 1,
        first: float,
        fused: |node, b| node.read_write(&b[0]).arg(5.0_f32).arg(1_u32).offset(1).range(1),
        launches: |at| {
            at.one("f", |node| node.read_write(&at.buffers[0]).arg(5.0_f32).offset(1).range(1));
            ["g", "h"]
                .into_iter()
                .for_each(|name| at.one(name, |node| node.read_write(&at.buffers[0]).offset(1).range(1)));
        },
    },
];

/// What is in a text's table: the numbers and sizes for which there is no room among the arguments.
fn table(name: &str) -> Vec<u32> {
    let all = [10, 11, 12, 13, 14, N, M];
    match name {
        "table_one_item" => all.to_vec(),
        "table_one_group" => all[3..].to_vec(),
        _ => Vec::new(),
    }
}

fn read(queue: &Queue, buffer: &Buffer<u32>) -> Vec<u32> {
    let mut all = vec![0; LEN];
    queue.enqueue_read_buffer(buffer, 0, &mut all, &[]).unwrap();
    all
}

/// Runs a text's fused kernel, or its launches, and returns what is in the buffers then.
fn run(bench: &Bench, text: &Text, fused: bool) -> Vec<Vec<u32>> {
    let queue = &bench.queue;
    let program = Program::from_source(queue, text.source).unwrap();
    let graph = Graph::new(queue).unwrap();
    let new = |numbers: &[u32]| {
        let buffer = Buffer::new(queue, LEN).unwrap();
        let mut all = vec![0; LEN];
        all[..numbers.len()].copy_from_slice(numbers);
        queue.enqueue_write_buffer(&buffer, 0, &all, &[]).unwrap();
        buffer
    };
    let first: Vec<u32> = (0..LEN).map(text.first).collect();
    let mut buffers: Buffers = (0..text.buffers).map(|_| new(&first)).collect();
    buffers.push(new(&table(text.name)));
    // The most turns, whether the first one looks at the condition, and what the kernel leaves; then the condition.
    let (state, condition) = (new(&[TURNS, 0, 77, 77]), new(&[0, 1]));
    let turns = text.name.starts_with("turns");
    if fused {
        let kernel = program.kernel("clgraph_fused_0").unwrap();
        let node = (text.fused)(graph.kernel(&kernel), &buffers);
        let node = if turns { node.read_write(&state).read(&condition).arg(1_u64) } else { node };
        // SAFETY: the texts write within the buffers.
        unsafe { node.add().unwrap() };
    } else {
        (text.launches)(&Launches { graph: &graph, program: &program, buffers: &buffers });
    }
    graph.finalize(clgraph::Finalize::new().fuse(clgraph::Fuse::Off)).unwrap().submit(queue).unwrap().wait().unwrap();
    if fused && turns {
        assert_eq!(read(&bench.queue, &state)[..4], [TURNS, 0, 1, TURNS], "{}", text.name);
    }
    buffers[..text.buffers].iter().map(|buffer| read(queue, buffer)).collect()
}

/// Rule Z1
#[test]
fn texts_of_fused_kernels_do_what_their_launches_do() {
    let bench = Bench::new();
    for text in TEXTS.iter() {
        let (fused, one_by_one) = (run(&bench, text, true), run(&bench, text, false));
        assert_eq!(fused, one_by_one, "{}", text.name);
        let first: Vec<u32> = (0..LEN).map(text.first).collect();
        assert!(one_by_one.iter().all(|buffer| *buffer != first), "{}: a buffer stays as it was", text.name);
    }
}
