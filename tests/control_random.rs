//! Random programs with branches and loops, by every path, against an eager model: rules K1 to K6, K9 and K10. Host tasks look
//! at memory by another queue, so they see whether what is before them, in their turn or an earlier one, is over.

mod common;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clgraph::{
    Branch, Buffer, Error, Executable, Finalize, Fuse, Graph, HostRead, HostTaskContext, HostWrite, Kernel, Loop,
    Loops, Node, Path, Queue, Result, SubGraph, SubmitError, UpdateError,
};
use common::Bench;
use fastrand::Rng;

const LONG: Duration = Duration::from_secs(60);

/// The numbers in a buffer, and how many buffers there are.
const LEN: usize = 4;
const BUFFERS: usize = 5;

/// A loop that has more turns than this fails.
const MOST: u64 = 9;

/// What a program does, in order.
#[derive(Clone, Debug)]
enum Step {
    Fill(usize, u32),
    Stir(usize),
    Add(usize, usize),
    CountDown(usize),
    Copy(usize, usize),
    Task(usize),
    /// The input or result with a number of its own.
    Write(usize, u64),
    Read(usize, u64),
    Part(Vec<Step>),
    When(usize, Vec<Step>, Option<Vec<Step>>),
    Switch(usize, Vec<Vec<Step>>),
    While(usize, Vec<Step>, bool),
    Repeat(u64, Vec<Step>),
}

/// Steps that a fused kernel can do.
fn plain(rng: &mut Rng) -> Vec<Step> {
    let step = |rng: &mut Rng| {
        let (b, other) = (rng.usize(..BUFFERS), rng.usize(1..BUFFERS));
        match rng.usize(..4) {
            0 => Step::Fill(b, rng.u32(..4)),
            1 => Step::Stir(b),
            2 => Step::Add(b, (b + other) % BUFFERS),
            _ => Step::Copy(b, (b + other) % BUFFERS),
        }
    };
    (0..rng.usize(..4)).map(|_| step(rng)).collect()
}

fn program(rng: &mut Rng, depth: usize) -> Vec<Step> {
    let buffer = |rng: &mut Rng| rng.usize(..BUFFERS);
    let count = rng.usize(1..=if depth == 0 { 7 } else { 4 });
    let deep = |rng: &mut Rng| program(rng, depth + 1);
    (0..count)
        .map(|_| {
            let kinds = if depth < 3 { 14 } else { 8 };
            let b = buffer(rng);
            match rng.usize(..kinds) {
                0 => Step::Fill(b, rng.u32(..4)),
                1 => Step::Stir(b),
                2 => {
                    let other = (b + rng.usize(1..BUFFERS)) % BUFFERS;
                    Step::Add(b, other)
                }
                3 => Step::CountDown(b),
                4 => Step::Copy(b, (b + rng.usize(1..BUFFERS)) % BUFFERS),
                5 => Step::Task(b),
                6 => Step::Write(b, rng.u64(..)),
                7 => Step::Read(b, rng.u64(..)),
                8 => Step::Part(deep(rng)),
                9 => {
                    let then = deep(rng);
                    let otherwise = rng.bool().then(|| deep(rng));
                    Step::When(b, then, otherwise)
                }
                10 => {
                    let cases = rng.usize(..4);
                    Step::Switch(b, (0..cases).map(|_| deep(rng)).collect())
                }
                11 | 12 => {
                    let mut body = if rng.bool() { plain(rng) } else { deep(rng) };
                    body.push(Step::CountDown(b));
                    Step::While(b, body, rng.bool())
                }
                _ => Step::Repeat(rng.u64(..4), deep(rng)),
            }
        })
        .collect()
}

/// A number for a call of a host task and what it sees. The sum of them does not depend on the order of tasks that wait for
/// different memory.
fn seen(buffer: usize, content: &[u32]) -> u64 {
    let all = content.iter().fold(buffer as u64 + 1, |sum, value| {
        sum.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(u64::from(*value) + 1)
    });
    all ^ (all >> 31)
}

/// The memory, and what host tasks see, as a plain program changes them.
#[derive(Clone)]
struct Model {
    memory: Vec<[u32; LEN]>,
    seen: u64,
    /// How many turns the branches and loops of the outermost program had, in order.
    turns: Vec<u64>,
    /// By number, where it is not the first value of all inputs.
    inputs: HashMap<u64, u32>,
    results: HashMap<u64, [u32; LEN]>,
}

/// What inputs write that a submission does not set.
const FIRST: u32 = 3;

/// A loop had too many turns.
struct TooMany;

impl Model {
    fn run(&mut self, steps: &[Step], depth: usize) -> Result<(), TooMany> {
        for step in steps {
            let mut turns = 0;
            match step {
                Step::Fill(b, value) => self.memory[*b] = [*value; LEN],
                Step::Stir(b) => {
                    (0..)
                        .zip(&mut self.memory[*b])
                        .for_each(|(i, value)| *value = value.wrapping_mul(5).wrapping_add(i));
                }
                Step::Add(a, b) => {
                    let other = self.memory[*b];
                    self.memory[*a].iter_mut().zip(other).for_each(|(value, more)| *value = value.wrapping_add(more));
                }
                Step::CountDown(b) => self.memory[*b][0] = self.memory[*b][0].saturating_sub(1),
                Step::Copy(from, into) => self.memory[*into] = self.memory[*from],
                Step::Task(b) => self.seen = self.seen.wrapping_add(seen(*b, &self.memory[*b])),
                Step::Write(b, number) => {
                    self.memory[*b] = [self.inputs.get(number).copied().unwrap_or(FIRST); LEN];
                }
                Step::Read(b, number) => _ = self.results.insert(*number, self.memory[*b]),
                Step::Part(inner) => self.run(inner, depth + 1)?,
                Step::When(flag, then, otherwise) => {
                    let body = if self.memory[*flag][0] != 0 { Some(then) } else { otherwise.as_ref() };
                    if let Some(body) = body {
                        turns = 1;
                        self.run(body, depth + 1)?;
                    }
                }
                Step::Switch(index, cases) => {
                    if let Some(body) = cases.get(self.memory[*index][0] as usize) {
                        turns = 1;
                        self.run(body, depth + 1)?;
                    }
                }
                Step::While(flag, body, at_least_once) => {
                    while (turns == 0 && *at_least_once) || self.memory[*flag][0] != 0 {
                        if turns == MOST {
                            return Err(TooMany);
                        }
                        turns += 1;
                        self.run(body, depth + 1)?;
                    }
                }
                Step::Repeat(count, body) => {
                    for _ in 0..*count {
                        turns += 1;
                        self.run(body, depth + 1)?;
                    }
                }
            }
            let counted = matches!(step, Step::When(..) | Step::Switch(..) | Step::While(..) | Step::Repeat(..));
            if depth == 0 && counted {
                self.turns.push(turns);
            }
        }
        Ok(())
    }
}

/// What an update can reach: a step of the outermost program, or a fill of a body of one.
enum Place {
    Fill(Node),
    Branch(Branch, Vec<Body>),
    Loop(Loop, Vec<Body>),
    Fixed,
}

/// A body, its graph, and the fills of its outermost steps.
struct Body {
    graph: Graph,
    executable: Executable,
    fills: Vec<Option<Node>>,
}

/// Inputs and results by their numbers, also those inside bodies.
#[derive(Default)]
struct Ports {
    inputs: Vec<(u64, HostWrite<u32>)>,
    results: Vec<(u64, HostRead<u32>)>,
}

impl Ports {
    /// Adds those of an executable in a node.
    fn add(&mut self, within: &SubGraph, inner: &Ports) {
        self.inputs.extend(inner.inputs.iter().map(|(number, input)| (*number, within.write(input).unwrap())));
        self.results.extend(inner.results.iter().map(|(number, result)| (*number, within.read(result).unwrap())));
    }
}

struct Builder<'a> {
    bench: &'a Bench,
    buffers: Vec<Buffer<u32>>,
    kernels: [Kernel; 3],
    /// For host tasks.
    queue: Queue,
    seen: Arc<AtomicU64>,
    options: Finalize,
}

impl Builder<'_> {
    fn body(&self, steps: &[Step]) -> (Body, Ports) {
        let graph = self.bench.graph();
        let (places, ports) = self.add(&graph, steps);
        let executable = graph.finalize(self.options.clone()).unwrap();
        let fill = |place: &Place| if let Place::Fill(node) = place { Some(*node) } else { None };
        (Body { fills: places.iter().map(fill).collect(), graph, executable }, ports)
    }

    /// Adds a program to a graph.
    fn add(&self, graph: &Graph, steps: &[Step]) -> (Vec<Place>, Ports) {
        let [stir, add, count_down] = &self.kernels;
        let buffer = |at: usize| &self.buffers[at];
        let (mut places, mut ports) = (Vec::new(), Ports::default());
        for step in steps {
            let mut place = Place::Fixed;
            match step {
                Step::Fill(b, value) => place = Place::Fill(graph.fill(buffer(*b), *value).add().unwrap()),
                // SAFETY: of all three, each work-item touches its own element.
                Step::Stir(b) => unsafe {
                    graph.kernel(stir).read_write(buffer(*b)).range(LEN).add().unwrap();
                },
                // SAFETY: as above.
                Step::Add(a, b) => unsafe {
                    graph.kernel(add).read_write(buffer(*a)).read(buffer(*b)).range(LEN).add().unwrap();
                },
                // SAFETY: as above.
                Step::CountDown(b) => unsafe {
                    graph.kernel(count_down).read_write(buffer(*b)).range(1).add().unwrap();
                },
                Step::Copy(from, into) => drop(graph.copy(buffer(*from), buffer(*into)).add().unwrap()),
                Step::Task(b) => {
                    let (sum, queue, memory, b) = (Arc::clone(&self.seen), self.queue.clone(), buffer(*b).clone(), *b);
                    let look = move |_: &HostTaskContext<'_>| -> Result<()> {
                        let content = queue.enqueue_read_buffer_owned(&memory, 0, LEN, &[])?.wait()?;
                        sum.fetch_add(seen(b, &content), Ordering::SeqCst);
                        Ok(())
                    };
                    graph.host_task(look).reads(buffer(b)).add().unwrap();
                }
                Step::Write(b, number) => {
                    ports.inputs.push((*number, graph.write(buffer(*b), [FIRST; LEN]).add().unwrap()));
                }
                Step::Read(b, number) => ports.results.push((*number, graph.read(buffer(*b)).add().unwrap())),
                Step::Part(inner) => {
                    let (inner, its) = self.body(inner);
                    ports.add(&graph.sub_graph(&inner.executable).add().unwrap(), &its);
                }
                Step::When(flag, then, otherwise) => {
                    let (then, otherwise) = (self.body(then), otherwise.as_ref().map(|body| self.body(body)));
                    let mut node = graph.when(buffer(*flag), &then.0.executable);
                    if let Some((otherwise, _)) = &otherwise {
                        node = node.otherwise(&otherwise.executable);
                    }
                    let node = node.add().unwrap();
                    let bodies = [Some(then), otherwise].into_iter().flatten().enumerate().map(|(at, (body, its))| {
                        ports.add(&node.body(at).unwrap(), &its);
                        body
                    });
                    let bodies = bodies.collect();
                    place = Place::Branch(node, bodies);
                }
                Step::Switch(index, cases) => {
                    let cases: Vec<(Body, Ports)> = cases.iter().map(|case| self.body(case)).collect();
                    let of = cases.iter().map(|(case, _)| &case.executable);
                    let node = graph.switch(buffer(*index), of).add().unwrap();
                    cases.iter().enumerate().for_each(|(at, (_, its))| ports.add(&node.body(at).unwrap(), its));
                    place = Place::Branch(node, cases.into_iter().map(|(case, _)| case).collect());
                }
                Step::While(flag, body, at_least_once) => {
                    let (body, its) = self.body(body);
                    let mut node = graph.repeat_while(buffer(*flag), &body.executable).at_most(MOST);
                    if *at_least_once {
                        node = node.at_least_once();
                    }
                    let node = node.add().unwrap();
                    ports.add(&node.body().unwrap(), &its);
                    place = Place::Loop(node, vec![body]);
                }
                Step::Repeat(count, body) => {
                    let (body, its) = self.body(body);
                    let node = graph.repeat(*count, &body.executable).add().unwrap();
                    ports.add(&node.body().unwrap(), &its);
                    place = Place::Loop(node, vec![body]);
                }
            }
            places.push(place);
        }
        (places, ports)
    }

    /// Gives a node of the graph the values of a step.
    fn replace(&self, graph: &Graph, place: &Place, step: &Step) -> Result<()> {
        let buffer = |at: usize| &self.buffers[at];
        match (place, step) {
            (Place::Fill(node), Step::Fill(b, value)) => graph.fill(buffer(*b), *value).replace(*node),
            (Place::Branch(node, bodies), Step::When(flag, ..)) => {
                let mut when = graph.when(buffer(*flag), &bodies[0].executable);
                if let Some(otherwise) = bodies.get(1) {
                    when = when.otherwise(&otherwise.executable);
                }
                when.replace(node)
            }
            (Place::Branch(node, bodies), Step::Switch(index, _)) => {
                graph.switch(buffer(*index), bodies.iter().map(|body| &body.executable)).replace(node)
            }
            (Place::Loop(node, bodies), Step::While(flag, _, at_least_once)) => {
                let mut repeat = graph.repeat_while(buffer(*flag), &bodies[0].executable).at_most(MOST);
                if *at_least_once {
                    repeat = repeat.at_least_once();
                }
                repeat.replace(node)
            }
            (Place::Loop(node, bodies), Step::Repeat(count, _)) => {
                graph.repeat(*count, &bodies[0].executable).replace(node)
            }
            _ => Ok(()),
        }
    }

    /// Changes steps of the outermost program, and fills of bodies, and the executable with them (rule K6). A condition that nothing
    /// orders after what writes it is refused, and stays. Returns how many changes there were, and how many were refused.
    fn update(
        &self,
        graph: &Graph,
        executable: &Executable,
        places: &[Place],
        steps: &mut [Step],
        rng: &mut Rng,
    ) -> [usize; 2] {
        let [mut changes, mut refusals] = [0; 2];
        for (place, step) in places.iter().zip(steps) {
            let (node, bodies) = match place {
                Place::Fill(node) => (*node, &[][..]),
                Place::Branch(node, bodies) => (node.node(), &bodies[..]),
                Place::Loop(node, bodies) => (node.node(), &bodies[..]),
                Place::Fixed => continue,
            };
            if rng.bool() {
                continue;
            }
            for (body, inner) in bodies.iter().zip(bodies_of(step)) {
                for (fill, inner) in body.fills.iter().zip(inner) {
                    if let (Some(fill), Step::Fill(b, value)) = (fill, inner) {
                        *value = rng.u32(..4);
                        body.graph.fill(&self.buffers[*b], *value).replace(*fill).unwrap();
                        body.executable.update(fill).unwrap();
                    }
                }
            }
            let mut condition = None;
            match step {
                Step::Fill(_, value) => *value = rng.u32(..4),
                Step::When(flag, ..) | Step::Switch(flag, _) => {
                    condition = Some(*flag);
                    *flag = rng.usize(..BUFFERS);
                }
                Step::While(flag, _, at_least_once) => {
                    *at_least_once = rng.bool();
                    // Mostly it does not end then, as the body counts the other number down.
                    if rng.u8(..8) == 0 {
                        condition = Some(*flag);
                        *flag = rng.usize(..BUFFERS);
                    }
                }
                Step::Repeat(count, _) => *count = rng.u64(..4),
                _ => {}
            }
            changes += 1;
            self.replace(graph, place, step).unwrap();
            if let Err(error) = executable.update(&node) {
                assert!(matches!(error, Error::Update(UpdateError::Conflict { .. })), "{error}");
                let (Step::When(flag, ..) | Step::Switch(flag, _) | Step::While(flag, ..)) = step else {
                    panic!("{error}")
                };
                *flag = condition.unwrap();
                self.replace(graph, place, step).unwrap();
                executable.update(&node).unwrap();
                refusals += 1;
            }
        }
        [changes, refusals]
    }
}

/// The bodies of a branch or loop.
fn bodies_of(step: &mut Step) -> Vec<&mut Vec<Step>> {
    match step {
        Step::When(_, then, otherwise) => std::iter::once(then).chain(otherwise).collect(),
        Step::Switch(_, cases) => cases.iter_mut().collect(),
        Step::While(_, body, _) | Step::Repeat(_, body) => vec![body],
        _ => Vec::new(),
    }
}

/// Runs a program several times, with updates and a submission that is cancelled in between. Returns how many loops went ahead, how
/// many updates changed something and were refused, and of how many loops a kernel did the turns.
fn check(
    bench: &Bench,
    mut steps: Vec<Step>,
    path: Path,
    (updatable, fused): (bool, bool),
    rng: &mut Rng,
) -> [usize; 4] {
    let loops = [Loops::Auto, Loops::HostDecided, Loops::Ahead, Loops::Ahead][if fused { 0 } else { rng.usize(..4) }];
    let options = Finalize::new().path(path).loops(loops);
    let options = if updatable { options.updatable() } else { options };
    let options = if fused { options.fuse(Fuse::Now) } else { options };
    let kernels = ["stir", "add", "count_down"].map(|name| bench.kernel(name));
    let buffers: Vec<Buffer<u32>> = (0..BUFFERS).map(|_| bench.buffer(&[0; LEN])).collect();
    let (queue, sum) = (bench.another_queue(false), Arc::new(AtomicU64::new(0)));
    let builder = Builder { bench, buffers, kernels, queue, seen: sum, options: options.clone() };
    let graph = bench.graph();
    let (places, ports) = builder.add(&graph, &steps);
    let reads: Vec<HostRead<u32>> = builder.buffers.iter().map(|buffer| graph.read(buffer).add().unwrap()).collect();
    let executable = graph.finalize(options).unwrap();
    let program = Program { builder, places, ports, reads, executable, about: format!("{path}, {loops:?}") };
    let mut updates = [0; 2];
    for round in 0..3 {
        if round > 0 && rng.bool() {
            program.cancelled(rng);
        }
        if round > 0 && updatable {
            let Program { builder, places, executable, .. } = &program;
            let more = builder.update(&graph, executable, places, &mut steps, rng);
            updates.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        program.round(&steps, rng);
    }
    let report = program.executable.report();
    let ahead = report.loops.iter().filter(|of| of.ahead == Some(true)).count();
    let on_device = report.loops.iter().filter(|of| of.on_device).count();
    [ahead, updates[0], updates[1], on_device]
}

struct Program<'a> {
    builder: Builder<'a>,
    places: Vec<Place>,
    ports: Ports,
    reads: Vec<HostRead<u32>>,
    executable: Executable,
    about: String,
}

impl Program<'_> {
    /// Gives the buffers new numbers.
    fn refill(&self, rng: &mut Rng) -> Vec<[u32; LEN]> {
        let memory: Vec<[u32; LEN]> = (0..BUFFERS).map(|_| [0; LEN].map(|_| rng.u32(..5))).collect();
        for (buffer, content) in self.builder.buffers.iter().zip(&memory) {
            self.builder.bench.queue.enqueue_write_buffer(buffer, 0, content, &[]).unwrap();
        }
        memory
    }

    /// A submission that is cancelled at some time ends, well or with the error that says so.
    fn cancelled(&self, rng: &mut Rng) {
        self.refill(rng);
        let run = self.executable.submit(&self.builder.bench.queue).unwrap();
        for _ in 0..rng.usize(..4) * 1000 {
            std::hint::spin_loop();
        }
        run.cancel().unwrap();
        match run.wait_for(LONG) {
            Ok(()) | Err(Error::Submit(SubmitError::Cancelled { .. } | SubmitError::TooManyTurns { .. })) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Submits, and compares all that is seen with what the steps do one after another.
    fn round(&self, steps: &[Step], rng: &mut Rng) {
        let Self { builder, places, ports, reads, executable, about } = self;
        let memory = self.refill(rng);
        let mut given = Vec::new();
        for (of, input) in &ports.inputs {
            if rng.bool() {
                given.push((*of, input, rng.u32(..5)));
            }
        }
        let inputs = given.iter().map(|(of, _, value)| (*of, *value)).collect();
        let mut model = Model { memory, seen: 0, turns: Vec::new(), inputs, results: HashMap::new() };
        let expected = model.run(steps, 0);
        builder.seen.store(0, Ordering::SeqCst);
        let mut submission = executable.submit_to(&builder.bench.queue);
        for (_, input, value) in &given {
            submission = submission.with(*input, [*value; LEN]);
        }
        let run = submission.submit().unwrap();
        let outcome = run.wait_for(LONG);
        if expected.is_err() {
            assert!(
                matches!(&outcome, Err(Error::Submit(SubmitError::TooManyTurns { turns: MOST, .. }))),
                "{outcome:?} for {steps:#?}"
            );
            return;
        }
        if let Err(error) = outcome {
            panic!("{error} for {steps:#?}");
        }
        let found: Vec<Vec<u32>> = reads.iter().map(|read| run.get(read).unwrap().to_vec()).collect();
        let turns = places.iter().filter_map(|place| match place {
            Place::Branch(branch, _) => Some(run.turns(branch).unwrap()),
            Place::Loop(repeat, _) => Some(run.turns(repeat).unwrap()),
            Place::Fill(_) | Place::Fixed => None,
        });
        let (turns, seen): (Vec<u64>, u64) = (turns.collect(), builder.seen.load(Ordering::SeqCst));
        assert_eq!(
            (found, turns, seen),
            (model.memory.iter().map(|of| of.to_vec()).collect(), model.turns, model.seen),
            "{about}, {steps:#?}"
        );
        for (number, result) in &ports.results {
            match (run.get(result), model.results.get(number)) {
                (Ok(found), Some(expected)) => assert_eq!(*found, *expected, "{about}, {steps:#?}"),
                (Err(Error::Submit(SubmitError::NotRun { .. })), None) => {}
                (found, expected) => panic!("{found:?}, not {expected:?}, for {about}, {steps:#?}"),
            }
        }
    }
}

/// How many programs there are: `CLGRAPH_TEST_RANDOM`, or few.
#[test]
fn random_programs_do_the_same_as_a_plain_program() {
    let count = std::env::var("CLGRAPH_TEST_RANDOM").map_or(60, |count| count.parse().unwrap());
    let seed = std::env::var("CLGRAPH_TEST_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("CLGRAPH_TEST_SEED={seed}");
    let (bench, mut rng) = (Bench::new(), Rng::with_seed(seed));
    let mut seen = [0; 4];
    for _ in 0..count {
        let mut steps = program(&mut rng, 0);
        // Building takes most of the time, so few are fused.
        let fused = rng.usize(..6) == 0;
        if fused {
            let (b, mut body) = (rng.usize(..BUFFERS), plain(&mut rng));
            body.push(Step::CountDown(b));
            steps.push(Step::While(b, body, rng.bool()));
        }
        let path = [Path::Auto, Path::Native, Path::Replay, Path::Queues, Path::Gated][rng.usize(..5)];
        let more = check(&bench, steps, path, (rng.bool(), fused), &mut rng);
        seen.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
    let [ahead, changes, refusals, on_device] = seen;
    assert!(on_device > 0 || count < 40, "no kernel did the turns of a loop of {count} programs");
    // Far below what is usual, so that no seed fails here.
    assert!(ahead > count / 30, "only {ahead} loops of {count} programs went ahead");
    assert!(changes - refusals > count / 5, "{changes} updates of {count} programs, and {refusals} of them refused");
}
