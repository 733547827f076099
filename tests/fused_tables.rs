//! Chains whose launches have more values of their own than a kernel has room for: rules Z1 and Z5. The values are in memory, and each
//! submission sees those that it was submitted with.
//!
//! `CLGRAPH_TEST_RANDOM` is the number of random graphs, and `CLGRAPH_TEST_SEED` repeats a run.

mod common;

use std::time::Duration;

use clgraph::{
    Buffer, Executable, Finalize, Fuse, FusedForm, FusingState, Graph, Kernel, Node, Parameter, ProgramBuilder,
    Submission, UserEvent,
};
use common::Bench;
use fastrand::Rng;

const LONG: Duration = Duration::from_secs(120);
const LEN: usize = 32;
/// More bytes of numbers than a fused kernel has as arguments.
const MOST: usize = 1_200;

const SOURCE: &str = "
    typedef struct { uint a; uchar b; uint c[2]; } three;
    kernel void one(global uint *to, uint by) { to[get_global_id(0)] = to[get_global_id(0)] * 3 + by; }
    kernel void bytes(global uint *to, uchar by, ushort wide) { to[get_global_id(0)] = to[get_global_id(0)] * 5 + by + wide; }
    kernel void many(global uint *to, uint4 by, const ulong of) {
        size_t i = get_global_id(0);
        to[i] = to[i] * 7 + by.x + by.y * 2 + by.z * 3 + by.w * 4 + (uint)(of >> 3);
    }
    kernel void parts(global uint *to, three by) {
        to[get_global_id(0)] = to[get_global_id(0)] * 9 + by.a + by.b + by.c[0] + by.c[1];
    }
    kernel void rows(global uint *to, uint by) {
        size_t i = get_global_id(0) + get_global_id(1) * get_global_size(0);
        to[i] = to[i] * 11 + by + (uint)get_global_size(1);
    }
";

/// What a launch does: the kernel, its number, and its range.
#[derive(Clone, Copy, Debug)]
struct Launch {
    kind: usize,
    to: usize,
    by: u32,
    len: usize,
}

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Three {
    a: u32,
    b: u8,
    pad: [u8; 3],
    c: [u32; 2],
}

impl Launch {
    fn random(kinds: usize, buffers: usize, rng: &mut Rng) -> Self {
        Self { kind: rng.usize(..kinds), to: rng.usize(..buffers), by: rng.u32(..), len: rng.usize(1..=LEN) }
    }

    fn three(by: u32) -> Three {
        Three { a: by, b: by as u8, pad: [0; 3], c: [by >> 7, by ^ 0x55] }
    }

    fn quad(by: u32) -> [u32; 4] {
        [by, by >> 1, by ^ 3, by << 2]
    }

    fn wide(by: u32) -> u64 {
        u64::from(by) << 5
    }

    fn run(&self, memory: &mut [Vec<u32>]) {
        let Self { kind, to, by, len, .. } = *self;
        let [x, y, z, w] = Self::quad(by);
        let quad = x.wrapping_add(y.wrapping_mul(2)).wrapping_add(z.wrapping_mul(3)).wrapping_add(w.wrapping_mul(4));
        let three = Self::three(by);
        let three = three.a.wrapping_add(u32::from(three.b)).wrapping_add(three.c[0]).wrapping_add(three.c[1]);
        let rows = if kind == 4 { len.div_ceil(2) * 2 } else { len };
        for value in &mut memory[to][..rows] {
            *value = match kind {
                0 => value.wrapping_mul(3).wrapping_add(by),
                1 => value.wrapping_mul(5).wrapping_add(by & 0xff).wrapping_add(by >> 16),
                2 => value.wrapping_mul(7).wrapping_add(quad).wrapping_add((Self::wide(by) >> 3) as u32),
                3 => value.wrapping_mul(9).wrapping_add(three),
                _ => value.wrapping_mul(11).wrapping_add(by).wrapping_add(2),
            };
        }
    }
}

/// Where the numbers of a launch come from.
enum Numbers {
    One(Parameter<u32>),
    Bytes(Parameter<u8>, Parameter<u16>),
    Many(Parameter<[u32; 4]>, Parameter<u64>),
    Parts(Parameter<Three>),
}

impl Numbers {
    fn of(Launch { kind, by, .. }: Launch) -> Self {
        match kind {
            1 => Self::Bytes(Parameter::any(by as u8), Parameter::any((by >> 16) as u16)),
            2 => Self::Many(Parameter::any(Launch::quad(by)), Parameter::any(Launch::wide(by))),
            3 => Self::Parts(Parameter::any(Launch::three(by))),
            _ => Self::One(Parameter::any(by)),
        }
    }

    fn set(&self, by: u32) {
        match self {
            Self::One(one) => one.set(by).unwrap(),
            Self::Bytes(byte, wide) => {
                byte.set(by as u8).unwrap();
                wide.set((by >> 16) as u16).unwrap();
            }
            Self::Many(quad, wide) => {
                quad.set(Launch::quad(by)).unwrap();
                wide.set(Launch::wide(by)).unwrap();
            }
            Self::Parts(three) => three.set(Launch::three(by)).unwrap(),
        }
    }
}

struct World {
    bench: Bench,
    kernels: Vec<Kernel>,
    buffers: Vec<Buffer<u32>>,
}

impl World {
    fn new() -> Self {
        let bench = Bench::new();
        let program = ProgramBuilder::new(&bench.queue).source(SOURCE).unwrap();
        let kernels = ["one", "bytes", "many", "parts", "rows"].map(|name| program.kernel(name).unwrap()).to_vec();
        let buffers = (0..3).map(|_| Buffer::new(&bench.queue, LEN).unwrap()).collect();
        Self { bench, kernels, buffers }
    }

    /// Returns the first of these launches, so many that no fused kernel has their numbers as arguments.
    fn too_many(launches: impl Iterator<Item = Launch>) -> Vec<Launch> {
        let mut bytes = 0;
        let begins = |launch: &Launch| {
            let before = bytes;
            bytes += [4, 3, 24, 16, 4][launch.kind];
            before <= MOST
        };
        launches.take_while(begins).collect()
    }

    fn add(&self, graph: &Graph, launch: Launch, numbers: &Numbers, after: Option<Node>) -> Node {
        let node = graph.kernel(&self.kernels[launch.kind]).read_write(&self.buffers[launch.to]);
        let node = match numbers {
            Numbers::One(one) => node.arg(one),
            Numbers::Bytes(byte, wide) => node.arg(byte).arg(wide),
            Numbers::Many(quad, wide) => node.arg(quad).arg(wide),
            Numbers::Parts(three) => node.arg(three),
        };
        let node = if launch.kind == 4 {
            node.range([launch.len.div_ceil(2), 2])
        } else {
            node.range(launch.len).range_up_to(LEN)
        };
        let node = if let Some(after) = after { node.after(after) } else { node };
        // SAFETY: a work-item changes its own element.
        unsafe { node.add() }.unwrap()
    }

    /// Returns a graph of launches in a line, with their numbers.
    fn line(&self, launches: &[Launch]) -> (Graph, Vec<Node>, Vec<Numbers>) {
        let graph = self.bench.graph();
        let (mut nodes, mut numbers) = (Vec::new(), Vec::new());
        for launch in launches {
            let own = Numbers::of(*launch);
            nodes.push(self.add(&graph, *launch, &own, nodes.last().copied()));
            numbers.push(own);
        }
        (graph, nodes, numbers)
    }

    /// Submits, and compares memory with a model.
    fn run(&self, executable: &Executable, launches: &[Launch]) {
        let mut memory = self.bench.start(&self.buffers);
        executable.submit(&self.bench.queue).unwrap().wait_for(LONG).unwrap();
        launches.iter().for_each(|launch| launch.run(&mut memory));
        assert_eq!(self.bench.contents(&self.buffers), memory, "{}", executable.report());
    }
}

fn is_one_kernel(executable: &Executable, launches: usize) {
    let report = executable.report();
    let [chain] = report.fused.as_slice() else { panic!("{report}") };
    assert!(matches!(chain.form, FusedForm::OneItem | FusedForm::OneGroup), "{report}");
    assert_eq!((chain.nodes.len(), report.commands), (launches, 1), "{report}");
}

/// Rule Z1: launches of one kernel, with a number each, and such of several kernels.
#[test]
fn launches_with_many_numbers_are_one_kernel() {
    let world = World::new();
    let one = |at: usize| Launch { kind: 0, to: at % 2, by: at as u32 * 7 + 1, len: LEN };
    let all: [Vec<Launch>; 3] = [
        World::too_many((0..).map(one)),
        World::too_many((0..).map(|at| Launch { kind: at % 4, ..one(at) })),
        // Of the first ones little comes again.
        World::too_many((0..).map(|at| match at {
            0..64 => Launch { kind: at * at % 7 % 5, to: at % 3, len: 1 + at % LEN, ..one(at) },
            _ => one(at),
        })),
    ];
    for launches in all {
        let (graph, ..) = world.line(&launches);
        for options in [Finalize::new(), Finalize::new().updatable()] {
            let executable = graph.finalize(options.fuse(Fuse::Now)).unwrap();
            is_one_kernel(&executable, launches.len());
            world.run(&executable, &launches);
            world.run(&executable, &launches);
        }
    }
}

/// Rule Z1: no driver is asked for the size of a value in a table, so the compiler is.
#[test]
fn values_of_another_size_than_their_type_are_not_in_a_table() {
    let world = World::new();
    let graph = world.bench.graph();
    for at in 0..MOST as u32 / 12 + 1 {
        let node = graph.kernel(&world.kernels[3]).read_write(&world.buffers[0]).arg([at, at + 1, at + 2]);
        // SAFETY: nothing runs it.
        unsafe { node.range(LEN).add() }.unwrap();
    }
    match graph.finalize(Finalize::new().fuse(Fuse::Now)) {
        // PoCL takes arguments of any size.
        Ok(executable) => assert!(executable.report().fused.is_empty(), "{}", executable.report()),
        Err(error) => assert!(error.to_string().contains("argument 1"), "{error}"),
    }
}

/// Rule Z1: launches that no edge orders are in lanes, which have their numbers in one table.
#[test]
fn lanes_share_a_table() {
    let world = World::new();
    let launch = |at: usize| Launch { kind: at % 4, to: at % 3, by: at as u32 * 3, len: LEN };
    let launches = World::too_many((0..).map(launch));
    let graph = world.bench.graph();
    let mut last = [None; 3];
    for launch in &launches {
        let node = world.add(&graph, *launch, &Numbers::of(*launch), last[launch.to]);
        last[launch.to] = Some(node);
    }
    let executable = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
    is_one_kernel(&executable, launches.len());
    assert_eq!(executable.report().fused[0].lanes, 3);
    world.run(&executable, &launches);
}

/// Rules Z5, U3: each submission sees the numbers that it was submitted with, although none has begun before the last update.
#[test]
fn each_submission_has_its_own_table() {
    let world = World::new();
    let launch = |at: usize| Launch { kind: at % 5, to: at % 3, by: at as u32, len: LEN };
    let mut launches = World::too_many((0..).map(launch));
    let count = launches.len();
    let (graph, nodes, numbers) = world.line(&launches);
    let executable = graph.finalize(Finalize::new().updatable().fuse(Fuse::Now)).unwrap();
    is_one_kernel(&executable, count);
    let mut memory = world.bench.start(&world.buffers);
    let go = UserEvent::new(&world.bench.queue).unwrap();
    let first = executable.submit_to(&world.bench.queue).after(&go.event()).submit().unwrap();
    launches.iter().for_each(|launch| launch.run(&mut memory));
    let mut all: Vec<Submission> = vec![first];
    for round in 1..8_u32 {
        // Some of them, and at times all.
        let changed: Vec<usize> = (0..count).filter(|at| at % 8 == round as usize || round % 3 == 0).collect();
        for at in &changed {
            launches[*at].by = round * 1000 + *at as u32;
            numbers[*at].set(launches[*at].by);
        }
        let nodes: Vec<Node> = changed.iter().map(|at| nodes[*at]).collect();
        executable.update(&nodes).unwrap();
        all.push(executable.submit(&world.bench.queue).unwrap());
        launches.iter().for_each(|launch| launch.run(&mut memory));
    }
    go.complete().unwrap();
    all.into_iter().for_each(|submission| submission.wait_for(LONG).unwrap());
    assert_eq!(world.bench.contents(&world.buffers), memory);
    let report = executable.report();
    assert_eq!(report.fusing, FusingState::Taken, "{report}");
    // With nothing in flight the kernel is given new memory each time, too.
    for round in 0..50 {
        launches[round].by = 77 + round as u32;
        numbers[round].set(launches[round].by);
        executable.update(&nodes[round]).unwrap();
        world.run(&executable, &launches);
    }
    executable.update_from(&graph).unwrap();
    world.run(&executable, &launches);
    assert_eq!(executable.report().fusing, FusingState::Taken);
}

/// Rule Z5: ranges are sizes in the table too, and a number that only one of several launches gets takes the fused form away.
#[test]
fn ranges_in_a_table_follow_updates() {
    let world = World::new();
    let len = |at: usize| if at < 64 { 2 + at % (LEN - 1) } else { LEN };
    let launch = |at: usize| Launch { kind: 0, to: at % 3, by: at as u32, len: len(at) };
    let mut launches = World::too_many((0..).map(launch));
    let (graph, nodes, numbers) = world.line(&launches);
    let executable = graph.finalize(Finalize::new().updatable().fuse(Fuse::Now)).unwrap();
    world.run(&executable, &launches);
    for (at, launch) in launches.iter_mut().enumerate() {
        launch.len = if launch.len == 5 { 30 } else { launch.len };
        launch.by += 9;
        numbers[at].set(launch.by);
        graph.set_nd_range(nodes[at], launch.len).unwrap();
    }
    executable.update(&nodes).unwrap();
    assert_eq!(executable.report().fusing, FusingState::Taken);
    world.run(&executable, &launches);
    // Only one of those that share a size.
    launches[0].len = 31;
    graph.set_nd_range(nodes[0], 31).unwrap();
    executable.update(&nodes[0]).unwrap();
    world.run(&executable, &launches);
}

/// Rules Z1, Z5: random launches and updates.
#[test]
fn random_chains_with_many_numbers() {
    let rounds = std::env::var("CLGRAPH_TEST_RANDOM").map_or(2, |count| count.parse().unwrap());
    let seed = std::env::var("CLGRAPH_TEST_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("CLGRAPH_TEST_SEED={seed}");
    let (world, mut rng) = (World::new(), Rng::with_seed(seed));
    for _ in 0..rounds {
        let kinds = rng.usize(1..=5);
        // Pieces that come again, and others.
        let pieces = std::iter::repeat_with(|| {
            let piece: Vec<Launch> = (0..rng.usize(1..6)).map(|_| Launch::random(kinds, 3, &mut rng)).collect();
            let times = rng.usize(2..80);
            let numbers: Vec<u32> = (0..piece.len() * times).map(|_| rng.u32(..)).collect();
            numbers
                .into_iter()
                .zip(piece.into_iter().cycle())
                .map(|(by, launch)| Launch { by, ..launch })
                .collect::<Vec<_>>()
        });
        let mut launches = World::too_many(pieces.flatten());
        let (graph, nodes, numbers) = world.line(&launches);
        let executable = graph.finalize(Finalize::new().updatable().fuse(Fuse::Now)).unwrap();
        is_one_kernel(&executable, launches.len());
        for _ in 0..6 {
            world.run(&executable, &launches);
            let share = rng.usize(1..40);
            let changed: Vec<usize> = (0..launches.len()).filter(|_| rng.usize(..share) == 0).collect();
            for at in &changed {
                launches[*at].by = rng.u32(..);
                numbers[*at].set(launches[*at].by);
            }
            let nodes: Vec<Node> = changed.iter().map(|at| nodes[*at]).collect();
            executable.update(&nodes).unwrap();
            assert_eq!(executable.report().fusing, FusingState::Taken);
        }
        world.run(&executable, &launches);
    }
}
