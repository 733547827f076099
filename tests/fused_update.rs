//! Updates of fused executables: rule Z5. Values, buffers and ranges of fused launches change as those of others do, and what a fused
//! kernel cannot do makes the executable go on without it. Memory, results and errors are the same, to the last bit.
//!
//! `CLGRAPH_TEST_RANDOM` is the number of random graphs, and `CLGRAPH_TEST_SEED` repeats a run.

mod common;

use std::rc::Rc;
use std::time::{Duration, Instant};

use clgraph::{
    Buffer, CommandGroup, Executable, Finalize, Fuse, FusedForm, FusingState, Graph, Kernel, KernelNode, Node,
    Parameter, Path, ProgramBuilder, Report, Submission, UserEvent, WhyNotFused,
};
use common::Bench;
use fastrand::Rng;

const LONG: Duration = Duration::from_secs(120);
/// The elements of a buffer.
const LEN: usize = 64;
/// The same, where work-items touch their own elements: more than launches in turn may have.
const WIDE: usize = 20_000;
/// How many elements any work-item may read of a buffer that is only read.
const PEEKED: usize = 512;
const BUFFERS: usize = 5;

const SOURCE: &str = "
    kernel void scale(global const uint *from, global uint *to, uint by) { size_t i = get_global_id(0); to[i] = from[i] * 3 + by; }
    kernel void stir(global uint *to) { size_t i = get_global_id(0); to[i] = to[i] * 5 + i; }
    kernel void eight(global uint *to) { to[get_global_id(0)] = 8; }
    kernel void look(global uint *to, global const uint *restrict from, uint by) {
        size_t i = get_global_id(0);
        to[i] += from[(i * 7 + by) % 64];
    }
    kernel void shift(global const uint *from, global uint *to, uint by) {
        size_t i = get_global_id(0);
        to[i] = from[(i + 1) % 64] ^ by;
    }
    kernel void own(global uint *to, global const uint *from, uint by) {
        size_t i = get_global_id(0);
        to[i] = to[i] * by + from[i];
    }
    kernel void peek(global uint *to, global const uint *from, uint by) {
        size_t i = get_global_id(0);
        to[i] += from[(i + by) % 512];
    }
    kernel void dense(global uint *to, global const uint *from, uint by) {
        size_t i = get_global_id(0);
        to[i] = (to[i] ^ from[i] >> 3) * 3 + to[i] % (by | 1);
    }
";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Scale,
    /// A group of two launches, of which the first has a range that changes.
    Stir,
    Look,
    Shift,
    Own,
    /// It computes more.
    Dense,
    Peek,
}

/// What a launch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Launch {
    kind: Kind,
    /// The buffer that it writes, and the one that it reads.
    to: usize,
    from: usize,
    by: u32,
    len: usize,
    active: usize,
}

impl Launch {
    fn run(&self, memory: &mut [Vec<u32>]) {
        let Self { kind, to, from, by, len, active } = *self;
        let read = memory[from].clone();
        let to = &mut memory[to][..len];
        for (i, x) in to.iter_mut().enumerate() {
            let index = i as u32;
            *x = match kind {
                Kind::Scale => read[i].wrapping_mul(3).wrapping_add(by),
                Kind::Stir if active == 1 => 8,
                Kind::Stir => x.wrapping_mul(5).wrapping_add(index),
                Kind::Look => x.wrapping_add(read[(i * 7 + by as usize) % LEN]),
                Kind::Shift => read[(i + 1) % LEN] ^ by,
                Kind::Own => x.wrapping_mul(by).wrapping_add(read[i]),
                Kind::Dense => (*x ^ read[i] >> 3).wrapping_mul(3).wrapping_add(*x % (by | 1)),
                Kind::Peek => x.wrapping_add(read[(i + by as usize) % PEEKED]),
            };
        }
    }
}

/// Where a node has its values from.
struct Bound {
    node: Node,
    to: Option<Parameter<Buffer<u32>>>,
    from: Option<Parameter<Buffer<u32>>>,
    by: Option<Parameter<u32>>,
    /// Which of the parameters it is that several nodes have.
    shared: Option<usize>,
    group: Option<CommandGroup>,
}

struct World {
    bench: Bench,
    kernels: Vec<Kernel>,
    buffers: Vec<Buffer<u32>>,
    /// A node of another graph.
    anchor: Node,
    wide: bool,
}

impl World {
    fn new(wide: bool) -> Self {
        let bench = Bench::new();
        let std = if bench.queue.device().caps().version.major >= 3 { "-cl-std=CL3.0" } else { "-cl-std=CL2.0" };
        let program = ProgramBuilder::new(&bench.queue).options(std).source(SOURCE).unwrap();
        let names = ["scale", "stir", "eight", "look", "shift", "own", "peek", "dense"];
        let kernels = names.iter().map(|name| program.kernel(name).unwrap()).collect();
        let len = if wide { WIDE } else { LEN };
        let buffers = (0..BUFFERS).map(|_| Buffer::new(&bench.queue, len).unwrap()).collect();
        let anchor = bench.graph().empty().add().unwrap();
        Self { bench, kernels, buffers, anchor, wide }
    }

    fn random(&self, rng: &mut Rng) -> Launch {
        let kinds: &[Kind] = match self.wide {
            true => &[Kind::Own, Kind::Own, Kind::Dense, Kind::Peek],
            false => &[Kind::Scale, Kind::Scale, Kind::Stir, Kind::Look, Kind::Shift],
        };
        let kind = kinds[rng.usize(..kinds.len())];
        let len = if self.wide { WIDE } else { LEN };
        let mut all = Launch { kind, to: 0, from: 0, by: rng.u32(..64), len, active: 0 };
        self.memory(&mut all, rng);
        all
    }

    /// Gives a launch other memory. In the wide graphs, memory that is peeked into is written by no launch, mostly.
    fn memory(&self, launch: &mut Launch, rng: &mut Rng) {
        let most = if self.wide && rng.u8(..40) > 0 { BUFFERS - 2 } else { BUFFERS };
        launch.to = rng.usize(..most);
        launch.from = match launch.kind {
            Kind::Peek if rng.u8(..40) > 0 => BUFFERS - 2 + rng.usize(..2),
            Kind::Own | Kind::Dense if rng.u8(..4) > 0 => launch.to,
            _ => rng.usize(..BUFFERS),
        };
        if launch.from == launch.to && !matches!(launch.kind, Kind::Own | Kind::Dense) {
            launch.from = (launch.from + 1) % BUFFERS;
        }
    }

    /// Describes a launch with plain values.
    fn plain<'g>(&self, graph: &'g Graph, launch: &Launch) -> KernelNode<'g> {
        let (to, from) = (&self.buffers[launch.to], &self.buffers[launch.from]);
        self.launch(graph, launch, to, from, launch.by)
    }

    fn launch<'g>(
        &self,
        graph: &'g Graph,
        launch: &Launch,
        to: &impl clgraph::BufferArg<u32>,
        from: &impl clgraph::BufferArg<u32>,
        by: impl clgraph::ValueArg,
    ) -> KernelNode<'g> {
        let [scale, stir, _, look, shift, own, peek, dense] = self.kernels.as_slice() else { panic!() };
        let node = match launch.kind {
            Kind::Scale => graph.kernel(scale).read(from).write(to).arg(by),
            Kind::Stir => graph.kernel(stir).read_write(to),
            Kind::Look => graph.kernel(look).read_write(to).read(from).arg(by),
            Kind::Shift => graph.kernel(shift).read(from).write(to).arg(by),
            Kind::Own => graph.kernel(own).read_write(to).read(from).arg(by).elementwise(0, 4).elementwise(1, 4),
            Kind::Dense => graph.kernel(dense).read_write(to).read(from).arg(by).elementwise(0, 4).elementwise(1, 4),
            Kind::Peek => graph.kernel(peek).read_write(to).read(from).arg(by).elementwise(0, 4),
        };
        node.range(launch.len).range_up_to(if self.wide { WIDE } else { LEN })
    }

    /// Adds a launch. `shared` are parameters that several nodes have, with their values.
    fn add(
        &self,
        graph: &Graph,
        launch: &mut Launch,
        shared: &[(Parameter<u32>, u32)],
        after: Option<Node>,
        rng: &mut Rng,
    ) -> Bound {
        let (to, from) = (Parameter::buffer(&self.buffers[launch.to]), Parameter::buffer(&self.buffers[launch.from]));
        let mut bound = Bound { node: self.anchor, to: None, from: None, by: None, shared: None, group: None };
        // SAFETY: of all: a work-item writes its own element, and reads inside the buffers; the promises are those of the kernels.
        unsafe {
            if launch.kind == Kind::Stir {
                let each = [1, 2].map(|at| graph.kernel(&self.kernels[at]).read_write(&to).range(LEN).range_up_to(LEN));
                let group = graph.command_group(each).unwrap();
                let node = graph.command_group_node(&group);
                bound.node = if let Some(after) = after { node.after(after) } else { node }.add().unwrap();
                (bound.to, bound.group) = (Some(to), Some(group));
                return bound;
            }
            bound.shared = (rng.u8(..3) == 0).then(|| rng.usize(..shared.len()));
            let node = if bound.shared.is_some() || rng.u8(..4) > 0 {
                let own = || Parameter::any(launch.by);
                let by = bound.shared.map_or_else(own, |at| shared[at].0.clone());
                launch.by = bound.shared.map_or(launch.by, |at| shared[at].1);
                let node = self.launch(graph, launch, &to, &from, &by);
                (bound.to, bound.from, bound.by) = (Some(to), Some(from), Some(by));
                node
            } else {
                self.plain(graph, launch)
            };
            bound.node = if let Some(after) = after { node.after(after) } else { node }.add().unwrap();
        }
        bound
    }

    /// Changes something of a node.
    fn change(
        &self,
        graph: &Graph,
        now: &mut [Launch],
        bound: &mut [Bound],
        shared: &mut [(Parameter<u32>, u32)],
        rng: &mut Rng,
    ) {
        let at = rng.usize(..now.len());
        let (launch, of) = (&mut now[at], &mut bound[at]);
        match rng.u8(..8) {
            0 if launch.kind == Kind::Stir => {
                launch.active = rng.usize(..2);
                of.group.as_ref().unwrap().set_active_index(launch.active).unwrap();
                // Each launch of a group has a range of its own.
                launch.len = LEN;
                graph.set_nd_range(of.node, LEN).unwrap();
            }
            0 | 1 if launch.kind == Kind::Stir => {
                launch.len = rng.usize(1..=LEN);
                graph.set_nd_range(of.node, launch.len).unwrap();
            }
            // Plain values come in the place of parameters.
            0 if launch.kind != Kind::Stir => {
                launch.by = rng.u32(..64);
                if rng.bool() {
                    self.memory(launch, rng);
                }
                // SAFETY: as where it was added.
                unsafe { self.plain(graph, launch).replace(of.node) }.unwrap();
                (of.to, of.from, of.by, of.shared) = (None, None, None, None);
            }
            1 | 2 => {
                self.memory(launch, rng);
                let (to, from) = (&self.buffers[launch.to], &self.buffers[launch.from]);
                match (&of.to, &of.from, launch.kind) {
                    (Some(to_of), _, Kind::Stir) => to_of.set(to).unwrap(),
                    (Some(to_of), Some(from_of), _) => {
                        to_of.set(to).unwrap();
                        from_of.set(from).unwrap();
                    }
                    // SAFETY: as where it was added.
                    _ => unsafe { self.plain(graph, launch).replace(of.node) }.unwrap(),
                }
            }
            3 => {
                let at = rng.usize(..shared.len());
                let (parameter, value) = &mut shared[at];
                *value = rng.u32(..64);
                parameter.set(*value).unwrap();
                let all = now.iter_mut().zip(bound).filter(|(_, bound)| bound.shared == Some(at));
                all.for_each(|(launch, _)| launch.by = *value);
            }
            _ => {
                if let (Some(by), None) = (&of.by, of.shared) {
                    launch.by = rng.u32(..64);
                    by.set(launch.by).unwrap();
                }
            }
        }
    }

    /// Random updates and submissions of a random graph. `linear`: each node comes after the one before, so that no update of memory
    /// is refused. Returns how many submissions there were, and how many of them were fused.
    fn check(&self, linear: bool, options: Finalize, rng: &mut Rng) -> (usize, usize) {
        let graph = self.bench.graph();
        let mut shared = [(); 2].map(|()| (Parameter::any(7_u32), 7));
        let mut now: Vec<Launch> = (0..rng.usize(4..24)).map(|_| self.random(rng)).collect();
        let mut bound: Vec<Bound> = Vec::new();
        for launch in &mut now {
            let after = bound.last().filter(|_| linear).map(|of| of.node);
            bound.push(self.add(&graph, launch, &shared, after, rng));
        }
        let plain = graph.finalize(options.clone().updatable().fuse(Fuse::Off)).unwrap();
        let fused = graph.finalize(options.updatable()).unwrap();
        let mut inside = now.clone();
        let mut memory = self.bench.start(&self.buffers);
        let mut held: Option<(UserEvent, Submission)> = None;
        let (mut submitted, mut were_fused) = (0, 0);
        for _ in 0..rng.usize(20..60) {
            match rng.u8(..10) {
                0..4 => self.change(&graph, &mut now, &mut bound, &mut shared, rng),
                4..7 => {
                    let chosen: Vec<usize> = match rng.u8(..4) {
                        0 => vec![rng.usize(..now.len())],
                        1 => (0..now.len()).filter(|_| rng.bool()).collect(),
                        _ => (0..now.len()).collect(),
                    };
                    let nodes: Vec<Node> = chosen.iter().map(|at| bound[*at].node).collect();
                    let whole = chosen.len() == now.len() && rng.bool();
                    let update = |executable: &Executable| match whole {
                        true => executable.update_from(&graph),
                        false => executable.update(&nodes),
                    };
                    let (expected, found) = (update(&plain), update(&fused));
                    let text = |of: &clgraph::Result<()>| of.as_ref().err().map(ToString::to_string);
                    assert_eq!(text(&found), text(&expected));
                    assert!(!linear || found.is_ok(), "{found:?}");
                    if found.is_ok() {
                        chosen.iter().for_each(|at| inside[*at] = now[*at]);
                    }
                }
                // What is submitted behind an event keeps its values, and so does what comes after it.
                7 if held.is_none() => {
                    let go = UserEvent::new(&self.bench.queue).unwrap();
                    let run = fused.submit_to(&self.bench.queue).after(&go.event()).submit().unwrap();
                    held = Some((go, run));
                    inside.iter().for_each(|launch| launch.run(&mut memory));
                }
                _ => {
                    let run = fused.submit(&self.bench.queue).unwrap();
                    inside.iter().for_each(|launch| launch.run(&mut memory));
                    submitted += 1;
                    were_fused += usize::from(fused.report().fusing == FusingState::Taken);
                    if let Some((go, first)) = held.take_if(|_| rng.bool()) {
                        go.complete().unwrap();
                        first.wait_for(LONG).unwrap();
                    }
                    if held.is_none() {
                        run.wait_for(LONG).unwrap();
                        assert_eq!(self.bench.contents(&self.buffers), memory, "{inside:?}\n{}", fused.report());
                    }
                }
            }
        }
        if let Some((go, run)) = held {
            go.complete().unwrap();
            run.wait_for(LONG).unwrap();
        }
        fused.submit(&self.bench.queue).unwrap().wait_for(LONG).unwrap();
        inside.iter().for_each(|launch| launch.run(&mut memory));
        assert_eq!(self.bench.contents(&self.buffers), memory, "{inside:?}\n{}", fused.report());
        (submitted, were_fused)
    }
}

/// Checks random graphs of a world, and that many submissions were fused.
fn random(wide: bool, linear: bool, options: &Finalize) {
    let count = std::env::var("CLGRAPH_TEST_RANDOM").map_or(4, |count| count.parse().unwrap());
    let seed = std::env::var("CLGRAPH_TEST_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("CLGRAPH_TEST_SEED={seed}");
    let (world, mut rng) = (World::new(wide), Rng::with_seed(seed));
    let (mut submitted, mut fused) = (0, 0);
    for _ in 0..count {
        let (more, more_fused) = world.check(linear, options.clone(), &mut rng);
        (submitted, fused) = (submitted + more, fused + more_fused);
    }
    println!("{fused} of {submitted} submissions were fused");
    let is_replayed = std::env::var("CLGRAPH_PATH").is_err();
    assert!(!is_replayed || fused > 0, "none of {submitted} submissions was fused");
}

/// Rules Z5, U3, U4
#[test]
fn random_updates_of_fused_executables_do_what_they_do_otherwise() {
    random(false, true, &Finalize::new().fuse(Fuse::Now));
}

/// Rules Z5, P6: the same updates are refused, by the same errors.
#[test]
fn updates_that_conflict_are_refused_as_they_are_otherwise() {
    random(false, false, &Finalize::new().fuse(Fuse::Now));
}

/// Rules Z4, Z5
#[test]
fn random_updates_of_launches_that_work_items_do_on_their_own() {
    random(true, true, &Finalize::new().fuse(Fuse::Now));
}

/// Eight launches of `scale`, `shift` and `look`, one after the other, with all values as parameters.
struct Chain {
    world: Rc<World>,
    graph: Graph,
    now: Vec<Launch>,
    nodes: Vec<Node>,
    to: Vec<Parameter<Buffer<u32>>>,
    from: Vec<Parameter<Buffer<u32>>>,
    by: Vec<Parameter<u32>>,
}

impl Chain {
    fn new(wide: bool) -> Self {
        Self::of(Rc::new(World::new(wide)), wide)
    }

    fn of(world: Rc<World>, wide: bool) -> Self {
        let graph = world.bench.graph();
        let len = if wide { WIDE } else { LEN };
        let launch = |at: usize| {
            let kind = match (wide, at) {
                (true, 3) => Kind::Peek,
                (true, _) => Kind::Own,
                (false, 3) => Kind::Look,
                (false, _) => Kind::Scale,
            };
            let from = if at == 3 { 4 } else { 0 };
            Launch { kind, to: 0, from, by: at as u32 * 5, len, active: 0 }
        };
        let now: Vec<Launch> = (0..8).map(launch).collect();
        let mut chain = Self { world, graph, now, nodes: vec![], to: vec![], from: vec![], by: vec![] };
        for at in 0..8 {
            let launch = chain.now[at];
            let buffer = |at: usize| Parameter::buffer(&chain.world.buffers[at]);
            let (to, from, by) = (buffer(launch.to), buffer(launch.from), Parameter::any(launch.by));
            let node = chain.world.launch(&chain.graph, &launch, &to, &from, &by);
            let node = if let Some(before) = chain.nodes.last() { node.after(before) } else { node };
            // SAFETY: a work-item writes its own element, and reads inside the buffers.
            chain.nodes.push(unsafe { node.add() }.unwrap());
            chain.to.push(to);
            chain.from.push(from);
            chain.by.push(by);
        }
        chain
    }

    fn finalize(&self, options: Finalize) -> Executable {
        self.graph.finalize(options.updatable()).unwrap()
    }

    fn set(&mut self, at: usize, to: usize, from: usize, by: u32) {
        let buffers = &self.world.buffers;
        self.to[at].set(&buffers[to]).unwrap();
        self.from[at].set(&buffers[from]).unwrap();
        self.by[at].set(by).unwrap();
        self.now[at] = Launch { to, from, by, ..self.now[at] };
    }

    /// Submits, and compares memory with a model.
    fn run(&self, executable: &Executable) {
        let mut memory = self.world.bench.start(&self.world.buffers);
        executable.submit(&self.world.bench.queue).unwrap().wait_for(LONG).unwrap();
        self.now.iter().for_each(|launch| launch.run(&mut memory));
        assert_eq!(self.world.bench.contents(&self.world.buffers), memory, "{:?}\n{}", self.now, executable.report());
    }

    /// Submits until the executable is fused again.
    fn run_until_fused(&self, executable: &Executable) {
        let begun = Instant::now();
        while executable.report().fusing != FusingState::Taken {
            self.run(executable);
            assert!(begun.elapsed() < LONG, "{}", executable.report());
        }
        self.run(executable);
        assert_eq!(executable.report().fusing, FusingState::Taken);
    }
}

fn count(report: &Report) -> usize {
    report.fused.iter().map(|of| of.nodes.len()).sum()
}

/// Whether work-items, or work-groups, do the launches of the first fused kernel on their own.
fn is_promised(report: &Report) -> bool {
    [FusedForm::EachItem, FusedForm::EachGroup].contains(&report.fused[0].form)
}

/// Whether work-groups do launches on their own on the driver, if they compute more than a little.
fn has_parts(world: &World) -> bool {
    let caps = world.bench.queue.device().caps();
    !caps.gpu && ["Portable Computing Language", "Intel(R)"].iter().any(|of| caps.platform.starts_with(of))
}

/// Rules Z4, Z5: the ranges of launches that work-groups do on their own, of which another number does others.
#[test]
fn ranges_of_launches_that_work_groups_do_on_their_own_follow_updates() {
    let world = World::new(true);
    let graph = |len: usize| {
        let graph = world.bench.graph();
        let launches = (1..6).map(move |by| Launch { kind: Kind::Dense, to: 0, from: 1, by, len, active: 0 });
        for launch in launches.clone() {
            // SAFETY: a work-item touches its own elements.
            unsafe { world.plain(&graph, &launch).add() }.unwrap();
        }
        (graph, launches)
    };
    let executable = graph(WIDE).0.finalize(Finalize::new().updatable().fuse(Fuse::Now)).unwrap();
    let report = executable.report();
    assert_eq!(report.fused[0].form == FusedForm::EachGroup, has_parts(&world), "{report}");
    for len in [WIDE / 2, WIDE, 4_111, 700, WIDE - 1] {
        let (graph, launches) = graph(len);
        executable.update_from(&graph).unwrap();
        assert_eq!(executable.report().fusing, FusingState::Taken, "{len} {}", executable.report());
        let mut memory = world.bench.start(&world.buffers);
        executable.submit(&world.bench.queue).unwrap().wait_for(LONG).unwrap();
        launches.for_each(|launch| launch.run(&mut memory));
        assert!(world.bench.contents(&world.buffers) == memory, "{len} {}", executable.report());
    }
}

/// Rule Z5: a list of nodes, one node, the whole graph, another graph, launches in the place of others, a range.
#[test]
fn each_way_of_updating_reaches_fused_launches() {
    let mut chain = Chain::new(false);
    let executable = chain.finalize(Finalize::new().fuse(Fuse::Now));
    let first = executable.report();
    assert_eq!((first.fusing, count(&first), first.not_fused.len()), (FusingState::Taken, 8, 0), "{first}");
    assert!(first.commands < 8, "{first}");
    let took = format!("; the last build took {:.1} ms", first.fuse_build.unwrap().as_secs_f64() * 1e3);
    assert!(
        first.to_string().contains(&format!("fusing     used{took}\nfused      8 commands by one work-")),
        "{first}"
    );
    chain.run(&executable);
    let is_fused = |executable: &Executable| {
        let now = executable.report();
        assert_eq!((now.fusing, &now.fused), (FusingState::Taken, &first.fused), "{now}");
    };
    chain.set(1, 0, 0, 77);
    executable.update(&chain.nodes[1]).unwrap();
    chain.run(&executable);
    is_fused(&executable);
    chain.set(2, 2, 0, 78);
    chain.set(4, 1, 2, 79);
    executable.update(&[chain.nodes[2], chain.nodes[4]]).unwrap();
    chain.run(&executable);
    chain.set(5, 3, 1, 80);
    executable.update_from(&chain.graph).unwrap();
    chain.run(&executable);
    is_fused(&executable);
    // The launches of another graph, with other values in each.
    let mut other = Chain::of(Rc::clone(&chain.world), false);
    (0..8).for_each(|at| other.set(at, at % 3, if at == 3 { 4 } else { (at + 1) % 3 }, 90 + at as u32));
    executable.update_from(&other.graph).unwrap();
    other.run(&executable);
    is_fused(&executable);
    executable.update(&chain.nodes).unwrap();
    chain.run(&executable);
    // A launch with plain values in the place of another.
    chain.now[6] = Launch { to: 1, from: 0, by: 1234, ..chain.now[6] };
    // SAFETY: as where it was added.
    unsafe { chain.world.plain(&chain.graph, &chain.now[6]).replace(chain.nodes[6]) }.unwrap();
    executable.update(&chain.nodes[6]).unwrap();
    chain.run(&executable);
    is_fused(&executable);
    // All launches have this size, so it is one argument.
    for (at, node) in chain.nodes.iter().enumerate() {
        chain.graph.set_nd_range(*node, 40).unwrap();
        chain.now[at].len = 40;
    }
    executable.update(&chain.nodes).unwrap();
    chain.run(&executable);
    is_fused(&executable);
}

/// Rules Z5, U3, U4: what was submitted before an update keeps its values, and what is refused changes nothing.
#[test]
fn earlier_submissions_keep_their_values_and_a_refused_update_changes_nothing() {
    let mut chain = Chain::new(false);
    let executable = chain.finalize(Finalize::new().fuse(Fuse::Now));
    let mut memory = chain.world.bench.start(&chain.world.buffers);
    let go = UserEvent::new(&chain.world.bench.queue).unwrap();
    let first = executable.submit_to(&chain.world.bench.queue).after(&go.event()).submit().unwrap();
    chain.now.iter().for_each(|launch| launch.run(&mut memory));
    let mut last = first;
    for round in 0..4 {
        chain.set(round, 1, if round == 3 { 4 } else { 0 }, 500 + round as u32);
        executable.update(&chain.nodes[round]).unwrap();
        last = executable.submit(&chain.world.bench.queue).unwrap();
        chain.now.iter().for_each(|launch| launch.run(&mut memory));
    }
    go.complete().unwrap();
    last.wait_for(LONG).unwrap();
    assert_eq!(chain.world.bench.contents(&chain.world.buffers), memory);
    assert_eq!(executable.report().fusing, FusingState::Taken);
    // Without edges between them, two of these launches must not get one buffer.
    let graph = chain.world.bench.graph();
    let targets = [0, 1, 2].map(|at| Parameter::buffer(&chain.world.buffers[at]));
    let numbers = [0, 1, 2].map(Parameter::<u32>::any);
    let nodes: Vec<Node> = (0..3)
        .map(|at| {
            let launch = Launch { kind: Kind::Scale, to: at, from: 4, by: 0, len: LEN, active: 0 };
            let node = chain.world.launch(&graph, &launch, &targets[at], &chain.world.buffers[4], &numbers[at]);
            // SAFETY: as above.
            unsafe { node.add() }.unwrap()
        })
        .collect();
    let executable = graph.finalize(Finalize::new().updatable().fuse(Fuse::Now)).unwrap();
    assert_eq!(executable.report().fusing, FusingState::Taken);
    targets[1].set(&chain.world.buffers[0]).unwrap();
    numbers[1].set(9).unwrap();
    let error = executable.update(&nodes).unwrap_err().to_string();
    assert!(error.contains("kernel `scale` writes bytes 0..256"), "{error}");
    let mut memory = chain.world.bench.start(&chain.world.buffers);
    executable.submit(&chain.world.bench.queue).unwrap().wait_for(LONG).unwrap();
    for at in 0..3 {
        Launch { kind: Kind::Scale, to: at, from: 4, by: at as u32, len: LEN, active: 0 }.run(&mut memory);
    }
    assert_eq!(chain.world.bench.contents(&chain.world.buffers), memory);
    assert_eq!(executable.report().fusing, FusingState::Taken);
}

/// Checks that an update took the fused form away, what the report says, and that it comes again.
fn is_lost(chain: &Chain, executable: &Executable, node: usize, change: &str) {
    let report = executable.report();
    // A pinned form is built again at once the first time.
    assert!(matches!(report.fusing, FusingState::Outdated | FusingState::Building | FusingState::Taken), "{report}");
    if report.fusing != FusingState::Taken {
        let [why] = report.not_fused.as_slice() else { panic!("{report}") };
        assert_eq!(why.node, node, "{report}");
        assert_eq!(why.why, WhyNotFused::Update { change: change.to_owned() }, "{report}");
        let text = format!("not fused  node {node}: an update has changed {change}\n");
        assert!(report.to_string().contains(&text), "{report}");
        assert_eq!((report.fused.len(), report.commands), (0, 8), "{report}");
    }
    chain.run(executable);
}

/// Rule Z5: a value that launches share, and that only one of them gets.
#[test]
fn what_launches_share_goes_apart_once() {
    let mut chain = Chain::new(false);
    let by = Parameter::any(3_u32);
    // All of them have this parameter from now on.
    for at in 0..8 {
        let (to, from) = (chain.to[at].clone(), chain.from[at].clone());
        chain.now[at].by = 3;
        // SAFETY: as where they were added.
        unsafe { chain.world.launch(&chain.graph, &chain.now[at], &to, &from, &by).replace(chain.nodes[at]) }.unwrap();
    }
    let executable = chain.finalize(Finalize::new().fuse(Fuse::Now));
    by.set(5).unwrap();
    chain.now.iter_mut().for_each(|launch| launch.by = 5);
    executable.update(&chain.nodes).unwrap();
    assert_eq!(executable.report().fusing, FusingState::Taken);
    chain.run(&executable);
    by.set(6).unwrap();
    chain.now[2].by = 6;
    executable.update(&chain.nodes[2]).unwrap();
    is_lost(&chain, &executable, 2, "a value that other launches of its fused kernel share");
    chain.run_until_fused(&executable);
    // Now it has an argument of its own.
    by.set(7).unwrap();
    chain.now[2].by = 7;
    executable.update(&chain.nodes[2]).unwrap();
    assert_eq!(executable.report().fusing, FusingState::Taken);
    chain.run(&executable);
    // The state is seen for as long as it lasts: the second time it is not built again at once.
    let node = chain.nodes[4];
    chain.graph.set_nd_range(node, 1).unwrap();
    (chain.now[4].len, chain.now[4].by) = (1, 7);
    executable.update(&node).unwrap();
    let report = executable.report();
    assert_eq!(report.fusing, FusingState::Outdated, "{report}");
    assert!(
        report.to_string().contains("fusing     not now: an update does not fit it; the last build took "),
        "{report}"
    );
    is_lost(&chain, &executable, 4, "a value that other launches of its fused kernel share");
}

/// Rules Z5, Z8: memory that a compiler may take for constant, and that another launch writes now.
#[test]
fn memory_that_meets_otherwise_is_looked_at_again() {
    let mut chain = Chain::new(false);
    let executable = chain.finalize(Finalize::new().fuse(Fuse::Now));
    chain.run(&executable);
    // What `look` reads as constant is written by the launch after it.
    chain.set(4, 4, 0, 3);
    executable.update(&chain.nodes[4]).unwrap();
    is_lost(&chain, &executable, 4, "its memory to what another launch of its fused kernel uses");
    chain.run_until_fused(&executable);
    assert!(executable.report().fused.len() > 1 || count(&executable.report()) < 8, "{}", executable.report());
}

/// Rules Z4, Z5: launches that work-items do on their own, with their memory, range and promise.
#[test]
fn launches_that_work_items_do_on_their_own_follow_updates() {
    let mut chain = Chain::new(true);
    let executable = chain.finalize(Finalize::new().fuse(Fuse::Now));
    let report = executable.report();
    assert_eq!((count(&report), is_promised(&report)), (8, true), "{report}");
    chain.run(&executable);
    chain.set(1, 1, 0, 77);
    chain.set(2, 1, 1, 77);
    executable.update(&chain.nodes).unwrap();
    chain.run(&executable);
    assert_eq!(executable.report().fusing, FusingState::Taken);
    // All have another range.
    for (at, node) in chain.nodes.iter().enumerate() {
        chain.graph.set_nd_range(*node, WIDE - 100).unwrap();
        chain.now[at].len = WIDE - 100;
    }
    executable.update_from(&chain.graph).unwrap();
    chain.run(&executable);
    assert_eq!(executable.report().fusing, FusingState::Taken);
    // What is peeked into is written.
    chain.set(3, 0, 1, 7);
    executable.update(&chain.nodes[3]).unwrap();
    is_lost(&chain, &executable, 3, "its memory to what another launch of its fused kernel uses");
    chain.run_until_fused(&executable);
    chain.set(3, 0, 4, 7);
    // One has another range than the others.
    chain.graph.set_nd_range(chain.nodes[5], WIDE - 200).unwrap();
    chain.now[5].len = WIDE - 200;
    executable.update(&[chain.nodes[3], chain.nodes[5]]).unwrap();
    assert_eq!(executable.report().fusing, FusingState::Outdated, "{}", executable.report());
    chain.run(&executable);
    // Without its promise, a launch cannot be in such a chain. Nothing else changes.
    let mut chain = Chain::new(true);
    let executable = chain.finalize(Finalize::new().fuse(Fuse::Now));
    let (to, from) = (&chain.world.buffers[0], &chain.world.buffers[0]);
    let own = &chain.world.kernels[5];
    chain.now[6].by = 30;
    // SAFETY: as where it was added.
    unsafe { chain.graph.kernel(own).read_write(to).read(from).arg(30_u32).range(WIDE).replace(chain.nodes[6]) }
        .unwrap();
    executable.update(&chain.nodes[6]).unwrap();
    is_lost(&chain, &executable, 6, "its range or promise: 20000 work-items are too many, or none");
}

/// Rules Z4, Z5: the work-groups of launches that work-items do on their own. On NVIDIA's driver a fused kernel requires its work-group.
#[test]
fn work_groups_of_launches_that_work_items_do_on_their_own_follow_updates() {
    follows_work_groups(false);
}

/// The same with one that computes more: some drivers do them by work-groups then.
#[test]
fn work_groups_of_launches_that_work_groups_do_on_their_own_follow_updates() {
    follows_work_groups(true);
}

fn follows_work_groups(has_more: bool) {
    let world = World::new(true);
    let bench = &world.bench;
    let graph = |group: usize| {
        let graph = bench.graph();
        for by in 1..5_u32 {
            let (to, from) = (&world.buffers[0], &world.buffers[1]);
            let own = graph.kernel(&world.kernels[5]).read_write(to).read(from).arg(by).elementwise(0, 4);
            // SAFETY: a work-item touches its own elements.
            unsafe { own.elementwise(1, 4).range(WIDE).work_group(group).add() }.unwrap();
        }
        if has_more {
            let launch = Launch { kind: Kind::Dense, to: 0, from: 1, by: 3, len: WIDE, active: 0 };
            // SAFETY: as above.
            unsafe { world.plain(&graph, &launch).work_group(group).add() }.unwrap();
        }
        graph
    };
    let executable = graph(8).finalize(Finalize::new().updatable().fuse(Fuse::Now)).unwrap();
    let report = executable.report();
    assert_eq!((count(&report), is_promised(&report)), (4 + usize::from(has_more), true), "{report}");
    let in_groups = report.fused[0].form == FusedForm::EachGroup;
    assert_eq!(in_groups, has_more && has_parts(&world), "{report}");
    let is_stated = bench.queue.device().caps().platform == "NVIDIA CUDA";
    for group in [16, 4, 16] {
        executable.update_from(&graph(group)).unwrap();
        let report = executable.report();
        match report.not_fused.as_slice() {
            [] => assert_eq!(report.fusing, FusingState::Taken, "{report}"),
            [why] => {
                let change = "its work-group to one that its fused kernel does not take".to_owned();
                assert_eq!((is_stated, &why.why), (true, &WhyNotFused::Update { change }), "{report}");
            }
            _ => panic!("{report}"),
        }
        let mut memory = world.bench.start(&world.buffers);
        executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        for by in 1..5 {
            Launch { kind: Kind::Own, to: 0, from: 1, by, len: WIDE, active: 0 }.run(&mut memory);
        }
        if has_more {
            Launch { kind: Kind::Dense, to: 0, from: 1, by: 3, len: WIDE, active: 0 }.run(&mut memory);
        }
        assert_eq!(world.bench.contents(&world.buffers), memory, "{}", executable.report());
    }
}

/// Rule Z5: kernels of a group, and ranges that a fused kernel cannot have.
#[test]
fn another_kernel_and_a_larger_range_go_unfused() {
    let world = World::new(true);
    let graph = world.bench.graph();
    let (to, by) = (&world.buffers[0], Parameter::any(1_u32));
    let stir = |len: usize| graph.kernel(&world.kernels[1]).read_write(to).range(len).range_up_to(WIDE);
    // SAFETY: of all: a work-item touches its own element.
    let nodes = unsafe {
        let group =
            graph.command_group([1, 2].map(|at| graph.kernel(&world.kernels[at]).read_write(to).range(64))).unwrap();
        let nodes: Vec<Node> = vec![
            stir(64).add().unwrap(),
            graph.command_group_node(&group).add().unwrap(),
            graph.kernel(&world.kernels[0]).read(to).write(to).arg(&by).range(64).add().unwrap(),
        ];
        (nodes, group)
    };
    let (nodes, group) = nodes;
    let executable = graph.finalize(Finalize::new().updatable().fuse(Fuse::Now)).unwrap();
    assert_eq!(count(&executable.report()), 3, "{}", executable.report());
    let check = |first: usize, active: usize, by: u32| {
        let mut memory = world.bench.start(&world.buffers);
        executable.submit(&world.bench.queue).unwrap().wait_for(LONG).unwrap();
        let launch = Launch { kind: Kind::Stir, to: 0, from: 0, by, len: first, active: 0 };
        let all = [launch, Launch { len: 64, active, ..launch }, Launch { kind: Kind::Scale, len: 64, ..launch }];
        all.iter().for_each(|launch| launch.run(&mut memory));
        assert_eq!(world.bench.contents(&world.buffers), memory, "{}", executable.report());
    };
    check(64, 0, 1);
    group.set_active_index(1).unwrap();
    by.set(4).unwrap();
    executable.update(&nodes).unwrap();
    let report = executable.report();
    assert!(matches!(report.fusing, FusingState::Building | FusingState::Taken), "{report}");
    let why = WhyNotFused::Update { change: "its kernel".to_owned() };
    assert!(report.fusing == FusingState::Taken || report.not_fused[0].why == why, "{report}");
    check(64, 1, 4);
    let begun = Instant::now();
    while executable.report().fusing != FusingState::Taken {
        check(64, 1, 4);
        assert!(begun.elapsed() < LONG);
    }
    check(64, 1, 4);
    graph.set_nd_range(nodes[0], WIDE).unwrap();
    executable.update(&nodes[0]).unwrap();
    let report = executable.report();
    assert_eq!(report.fusing, FusingState::Outdated, "{report}");
    let why = WhyNotFused::Update { change: "its range or promise: 20000 work-items are too many, or none".to_owned() };
    assert_eq!((report.not_fused[0].node, &report.not_fused[0].why), (0, &why), "{report}");
    check(WIDE, 1, 4);
    // What does not fit is not waited for, and no update is refused for it.
    group.set_active_index(0).unwrap();
    graph.set_nd_range(nodes[0], 64).unwrap();
    executable.update(&nodes).unwrap();
    check(64, 0, 4);
}

/// Rule Z5: what was built in vain because of an update is built again, and fits when another update has come.
#[test]
fn what_fits_again_is_fused_again() {
    let world = World::new(true);
    let (graph, to) = (world.bench.graph(), &world.buffers[0]);
    let stir = || graph.kernel(&world.kernels[1]).read_write(to).range(64).range_up_to(64);
    // SAFETY: a work-item touches its own element.
    let nodes = [0, 1].map(|_| unsafe { stir().add() }.unwrap());
    let executable = graph.finalize(Finalize::new().updatable().fuse(Fuse::Now)).unwrap();
    assert_eq!(count(&executable.report()), 2, "{}", executable.report());
    let begun = Instant::now();
    let until = |is_so: fn(&Report) -> bool| {
        while !is_so(&executable.report()) {
            executable.submit(&world.bench.queue).unwrap().wait_for(LONG).unwrap();
            assert!(begun.elapsed() < LONG, "{}", executable.report());
        }
    };
    let range = |items: usize| {
        graph.set_nd_range(nodes[1], items).unwrap();
        executable.update(&nodes[1]).unwrap();
    };
    range(0);
    until(|report| report.not_fused.iter().any(|of| of.why == WhyNotFused::Size { items: 0 }));
    let fusing = executable.report().fusing;
    assert!(matches!(fusing, FusingState::Outdated | FusingState::Building), "{fusing}");
    range(64);
    until(|report| report.fusing == FusingState::Taken);
    let mut memory = world.bench.start(&world.buffers);
    executable.submit(&world.bench.queue).unwrap().wait_for(LONG).unwrap();
    let launch = Launch { kind: Kind::Stir, to: 0, from: 0, by: 0, len: 64, active: 0 };
    (0..2).for_each(|_| launch.run(&mut memory));
    assert_eq!(world.bench.contents(&world.buffers), memory, "{}", executable.report());
}

/// Rules Z2, Z5: the fused form that comes while the executable is used has all updates, also those that came while it was built.
#[test]
fn a_form_that_comes_later_has_all_updates() {
    let mut chain = Chain::new(false);
    let executable = chain.finalize(Finalize::new().fuse(Fuse::Auto).fuse_after(Duration::ZERO));
    let (begun, mut round, mut more) = (Instant::now(), 0, 0);
    while more < 50 {
        round += 1;
        match round % 3 {
            0 => chain.set(round % 8, round % 3, if round % 8 == 3 { 4 } else { (round + 1) % 3 }, round as u32),
            _ => {
                let from = chain.now[round % 8].from;
                chain.set(round % 8, chain.now[round % 8].to, from, round as u32);
            }
        }
        executable.update(&chain.nodes[round % 8]).unwrap();
        chain.run(&executable);
        let report = executable.report();
        more += usize::from(matches!(report.fusing, FusingState::Taken | FusingState::NotFaster));
        assert!(begun.elapsed() < LONG, "{report}");
        assert_ne!(report.fusing, FusingState::Outdated, "{report}");
    }
}

/// Rules F3, Z5: memory that an update has replaced is released, although fused kernels had it.
#[test]
fn replaced_memory_is_released() {
    let chain = Chain::new(false);
    let queue = &chain.world.bench.queue;
    let (first, is_gone) = chain.world.bench.telling_buffer(&[3; LEN]);
    chain.from[3].set(&first).unwrap();
    drop(first);
    let executable = chain.finalize(Finalize::new().fuse(Fuse::Now));
    executable.submit(queue).unwrap().wait_for(LONG).unwrap();
    chain.from[3].set(&chain.world.buffers[4]).unwrap();
    assert!(!is_gone.is_gone());
    executable.update(&chain.nodes[3]).unwrap();
    chain.run(&executable);
    assert_eq!(executable.report().fusing, FusingState::Taken);
    is_gone.wait_until_gone();
}

/// Rule Z5: launches in sub-graphs and in bodies, and nodes beside them that are no launches.
#[test]
fn sub_graphs_bodies_and_other_nodes_follow_updates() {
    let world = World::new(false);
    let bench = &world.bench;
    let (x, y) = (&world.buffers[0], &world.buffers[1]);
    let by = Parameter::any(1_u32);
    let child = bench.graph();
    let mut inside = Vec::new();
    for _ in 0..3 {
        // SAFETY: a work-item touches its own element.
        inside.push(unsafe { child.kernel(&world.kernels[0]).read(x).write(x).arg(&by).range(LEN).add() }.unwrap());
    }
    let child = child.finalize(Finalize::new().updatable()).unwrap();
    let graph = bench.graph();
    let fill = graph.fill(x, 5).add().unwrap();
    let sub = graph.sub_graph(&child).add().unwrap();
    let turns = graph.repeat(2, &child).add().unwrap();
    let copy = graph.copy(x, y).add().unwrap();
    let result = graph.read(y).add().unwrap();
    for path in [Path::Auto, Path::Replay, Path::Gated] {
        by.set(1).unwrap();
        child.update(&inside).unwrap();
        graph.fill(x, 5).replace(fill).unwrap();
        graph.copy(x, y).replace(copy).unwrap();
        let executable = graph.finalize(Finalize::new().updatable().path(path).fuse(Fuse::Now)).unwrap();
        assert_eq!(executable.report().fusing, FusingState::Taken, "{}", executable.report());
        let check = |fill: u32, by: u32| {
            let run = executable.submit(&bench.queue).unwrap();
            run.wait_for(LONG).unwrap();
            let expected = (0..9).fold(fill, |x, _| x * 3 + by);
            assert_eq!(*run.get(&result).unwrap(), [expected; LEN], "{path}\n{}", executable.report());
        };
        check(5, 1);
        by.set(2).unwrap();
        child.update(&inside).unwrap();
        executable.update(&sub).unwrap();
        executable.update(&turns).unwrap();
        check(5, 2);
        graph.fill(x, 6).replace(fill).unwrap();
        executable.update(&fill).unwrap();
        check(6, 2);
        graph.copy(x, y).replace(copy).unwrap();
        by.set(3).unwrap();
        child.update(&inside).unwrap();
        executable.update_from(&graph).unwrap();
        check(6, 3);
        assert_eq!(executable.report().fusing, FusingState::Taken, "{}", executable.report());
    }
}

/// Rules S6, U3, Z5, Z7: threads update and submit, and the fused form goes and comes meanwhile.
#[test]
fn threads_update_and_submit_while_the_form_goes_and_comes() {
    let chain = Chain::new(false);
    let executable = chain.finalize(Finalize::new().fuse(Fuse::Now));
    let queue = &chain.world.bench.queue;
    let (nodes, graph) = (&chain.nodes, &chain.graph);
    std::thread::scope(|scope| {
        for (at, by) in [(0, &chain.by[0]), (5, &chain.by[5])] {
            let executable = &executable;
            scope.spawn(move || {
                for round in 0..200 {
                    by.set(round).unwrap();
                    executable.update(&nodes[at]).unwrap();
                    executable.submit(queue).unwrap();
                }
            });
        }
        // All launches share this size at first, so the form goes, and comes again with a size of its own.
        for round in 0..40 {
            graph.set_nd_range(nodes[7], 32 + round % 2).unwrap();
            executable.update(&nodes[7]).unwrap();
            executable.submit(queue).unwrap().wait_for(LONG).unwrap();
        }
    });
    queue.finish().unwrap();
    let mut chain = chain;
    (chain.now[0].by, chain.now[5].by, chain.now[7].len) = (199, 199, 33);
    chain.run(&executable);
    chain.run_until_fused(&executable);
}

/// Rule Z5: launches, copies and fills beside fused launches that have no work when the graph is finalized, and get some.
#[test]
fn commands_without_work_get_some() {
    let world = World::new(false);
    let bench = &world.bench;
    let (x, y) = (&world.buffers[0], &world.buffers[1]);
    let graph = bench.graph();
    let launch =
        |len: usize, by: u32| graph.kernel(&world.kernels[0]).read(x).write(x).arg(by).range(len).range_up_to(LEN);
    let nothing = x.slice(..0).unwrap();
    // SAFETY: of all: a work-item touches its own element.
    let first = unsafe { launch(0, 7).add() }.unwrap();
    let add = |by: u32| {
        // SAFETY: as above.
        unsafe { launch(LEN, by).after(first).add() }.unwrap()
    };
    let all: Vec<Node> = (0..3).map(add).collect();
    let copy = graph.copy(&nothing, &y.slice(..0).unwrap()).after(&all).add().unwrap();
    let fill = graph.fill(&nothing, 9).after(copy).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable().fuse(Fuse::Now)).unwrap();
    assert_eq!(count(&executable.report()), 3, "{}", executable.report());
    let check = |runs_first: bool, transfers: bool| {
        let mut memory = world.bench.start(&world.buffers);
        executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        for by in runs_first.then_some(7).into_iter().chain(0..3) {
            Launch { kind: Kind::Scale, to: 0, from: 0, by, len: LEN, active: 0 }.run(&mut memory);
        }
        if transfers {
            memory[1] = memory[0].clone();
            memory[0].fill(9);
        }
        assert_eq!(world.bench.contents(&world.buffers), memory, "{}", executable.report());
        assert_eq!(executable.report().fusing, FusingState::Taken, "{}", executable.report());
    };
    check(false, false);
    graph.set_nd_range(first, LEN).unwrap();
    executable.update(&first).unwrap();
    check(true, false);
    graph.copy(x, y).replace(copy).unwrap();
    graph.fill(x, 9).replace(fill).unwrap();
    executable.update(&[copy, fill]).unwrap();
    check(true, true);
    graph.set_nd_range(first, 0).unwrap();
    executable.update(&first).unwrap();
    check(false, true);
}

/// Rule Z1: a kernel of many arguments becomes a function of more, or stays what it is where a compiler would crash.
#[test]
fn kernels_of_many_arguments_follow_updates() {
    let bench = Bench::new();
    let all: Vec<String> = (0..70).map(|at| format!("uint a{at}")).collect();
    let source =
        format!("kernel void many(global uint *x, {}) {{ x[get_global_id(0)] += a0 + a69 * 3; }}", all.join(", "));
    let many = ProgramBuilder::new(&bench.queue).source(&source).unwrap().kernel("many").unwrap();
    let (x, last) = (bench.buffer(&[1; LEN]), Parameter::any(5_u32));
    let graph = bench.graph();
    let add = |first: u32| {
        let node = (1..69).fold(graph.kernel(&many).read_write(&x).arg(first), |node, _| node.arg(0_u32));
        // SAFETY: a work-item touches its own element.
        unsafe { node.arg(&last).range(LEN).add() }.unwrap()
    };
    let nodes = [10, 20].map(add);
    let executable = graph.finalize(Finalize::new().updatable().fuse(Fuse::Now)).unwrap();
    executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
    last.set(6).unwrap();
    executable.update(&nodes).unwrap();
    executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
    assert_eq!(bench.content(&x), [1 + 2 * 30 + 2 * 15 + 2 * 18; LEN], "{}", executable.report());
}

/// Rule Z5: a fill follows updates of its pattern and place, and is a command again if it grows beyond what a kernel does well.
#[test]
fn a_fill_in_a_kernel_follows_updates_until_it_grows() {
    const ALL: usize = 1 << 15;
    let bench = Bench::new();
    let x = bench.buffer(&[0; ALL]);
    let source = "kernel void add(global uint *x, uint by) { x[get_global_id(0)] += by; }";
    let add = ProgramBuilder::new(&bench.queue).source(source).unwrap().kernel("add").unwrap();
    let graph = bench.graph();
    let fill = graph.fill(&x.slice(8..16).unwrap(), 3_u32).add().unwrap();
    // SAFETY: each work-item touches its own element.
    unsafe { graph.kernel(&add).read_write(&x).arg(10_u32).range(64).add() }.unwrap();
    let executable = graph.finalize(Finalize::new().updatable().fuse(Fuse::Now)).unwrap();
    assert_eq!(executable.report().fused.iter().map(|of| of.nodes.len()).sum::<usize>(), 2, "{}", executable.report());
    let mut expected = vec![0_u32; ALL];
    for (bytes, pattern, is_fused) in [(8..16, 3, true), (8..16, 5, true), (16..40, 7, true), (4..ALL, 9, false)] {
        graph.fill(&x.slice(bytes.clone()).unwrap(), pattern).replace(fill).unwrap();
        executable.update(&fill).unwrap();
        let report = executable.report();
        assert_eq!(report.fusing == FusingState::Taken, is_fused, "{report}");
        executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        expected[bytes].fill(pattern);
        expected[..64].iter_mut().for_each(|x| *x += 10);
        assert_eq!(bench.content(&x), expected);
    }
}
