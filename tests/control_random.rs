//! Random programs with branches and loops, by every path, against an eager model: rules K1 to K5 and K9. Host tasks look at
//! memory by another queue, so they see whether what is before them, in their turn or an earlier one, is over.

mod common;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clgraph::{
    Branch, Buffer, Error, Executable, Finalize, Fuse, Graph, HostRead, HostTaskContext, HostWrite, Kernel, Loop,
    Loops, Path, Queue, Result, SubGraph, SubmitError,
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
                    let mut body = deep(rng);
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

/// A branch or loop of the outermost program.
enum Handle {
    Branch(Branch),
    Loop(Loop),
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
    fn body(&self, steps: &[Step]) -> (Executable, Ports) {
        let graph = self.bench.graph();
        let (_, ports) = self.add(&graph, steps);
        (graph.finalize(self.options.clone()).unwrap(), ports)
    }

    /// Adds a program to a graph.
    fn add(&self, graph: &Graph, steps: &[Step]) -> (Vec<Handle>, Ports) {
        let [stir, add, count_down] = &self.kernels;
        let buffer = |at: usize| &self.buffers[at];
        let (mut handles, mut ports) = (Vec::new(), Ports::default());
        for step in steps {
            match step {
                Step::Fill(b, value) => drop(graph.fill(buffer(*b), *value).add().unwrap()),
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
                    ports.add(&graph.sub_graph(&inner).add().unwrap(), &its);
                }
                Step::When(flag, then, otherwise) => {
                    let (then, otherwise) = (self.body(then), otherwise.as_ref().map(|body| self.body(body)));
                    let mut node = graph.when(buffer(*flag), &then.0);
                    if let Some((otherwise, _)) = &otherwise {
                        node = node.otherwise(otherwise);
                    }
                    let node = node.add().unwrap();
                    for (at, (_, its)) in [Some(then), otherwise].iter().flatten().enumerate() {
                        ports.add(&node.body(at).unwrap(), its);
                    }
                    handles.push(Handle::Branch(node));
                }
                Step::Switch(index, cases) => {
                    let cases: Vec<(Executable, Ports)> = cases.iter().map(|case| self.body(case)).collect();
                    let node = graph.switch(buffer(*index), cases.iter().map(|(case, _)| case)).add().unwrap();
                    cases.iter().enumerate().for_each(|(at, (_, its))| ports.add(&node.body(at).unwrap(), its));
                    handles.push(Handle::Branch(node));
                }
                Step::While(flag, body, at_least_once) => {
                    let (body, its) = self.body(body);
                    let mut node = graph.repeat_while(buffer(*flag), &body).at_most(MOST);
                    if *at_least_once {
                        node = node.at_least_once();
                    }
                    let node = node.add().unwrap();
                    ports.add(&node.body().unwrap(), &its);
                    handles.push(Handle::Loop(node));
                }
                Step::Repeat(count, body) => {
                    let (body, its) = self.body(body);
                    let node = graph.repeat(*count, &body).add().unwrap();
                    ports.add(&node.body().unwrap(), &its);
                    handles.push(Handle::Loop(node));
                }
            }
        }
        (handles, ports)
    }
}

/// Returns how many loops went ahead.
fn check(bench: &Bench, steps: &[Step], path: Path, updatable: bool, rng: &mut Rng) -> usize {
    let loops = [Loops::Auto, Loops::HostDecided, Loops::Ahead, Loops::Ahead][rng.usize(..4)];
    let options = Finalize::new().path(path).loops(loops);
    let options = if updatable { options.updatable() } else { options };
    // Building takes most of the time, so few are fused.
    let options = if rng.usize(..8) == 0 { options.fuse(Fuse::Now) } else { options };
    let kernels = ["stir", "add", "count_down"].map(|name| bench.kernel(name));
    let buffers: Vec<Buffer<u32>> = (0..BUFFERS).map(|_| bench.buffer(&[0; LEN])).collect();
    let (queue, sum) = (bench.another_queue(false), Arc::new(AtomicU64::new(0)));
    let builder = Builder { bench, buffers, kernels, queue, seen: sum, options: options.clone() };
    let graph = bench.graph();
    let (handles, ports) = builder.add(&graph, steps);
    let reads: Vec<HostRead<u32>> = builder.buffers.iter().map(|buffer| graph.read(buffer).add().unwrap()).collect();
    let executable = graph.finalize(options).unwrap();
    for _ in 0..2 {
        let memory: Vec<[u32; LEN]> = (0..BUFFERS).map(|_| [0; LEN].map(|_| rng.u32(..5))).collect();
        for (buffer, content) in builder.buffers.iter().zip(&memory) {
            bench.queue.enqueue_write_buffer(buffer, 0, content, &[]).unwrap();
        }
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
        let mut submission = executable.submit_to(&bench.queue);
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
            continue;
        }
        if let Err(error) = outcome {
            panic!("{error} for {steps:#?}");
        }
        let found: Vec<Vec<u32>> = reads.iter().map(|read| run.get(read).unwrap().to_vec()).collect();
        let turns: Vec<u64> = handles
            .iter()
            .map(|handle| match handle {
                Handle::Branch(branch) => run.turns(branch).unwrap(),
                Handle::Loop(repeat) => run.turns(repeat).unwrap(),
            })
            .collect();
        let seen = builder.seen.load(Ordering::SeqCst);
        assert_eq!(
            (found, turns, seen),
            (model.memory.iter().map(|of| of.to_vec()).collect(), model.turns, model.seen),
            "{path}, {loops:?}, {steps:#?}"
        );
        for (number, result) in &ports.results {
            match (run.get(result), model.results.get(number)) {
                (Ok(found), Some(expected)) => assert_eq!(*found, *expected, "{path}, {loops:?}, {steps:#?}"),
                (Err(Error::Submit(SubmitError::NotRun { .. })), None) => {}
                (found, expected) => panic!("{found:?}, not {expected:?}, for {path}, {loops:?}, {steps:#?}"),
            }
        }
    }
    executable.report().loops.iter().filter(|of| of.ahead == Some(true)).count()
}

/// How many programs there are: `CLGRAPH_TEST_RANDOM`, or few.
#[test]
fn random_programs_do_the_same_as_a_plain_program() {
    let count = std::env::var("CLGRAPH_TEST_RANDOM").map_or(60, |count| count.parse().unwrap());
    let seed = std::env::var("CLGRAPH_TEST_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("CLGRAPH_TEST_SEED={seed}");
    let (bench, mut rng) = (Bench::new(), Rng::with_seed(seed));
    let mut ahead = 0;
    for _ in 0..count {
        let steps = program(&mut rng, 0);
        let path = [Path::Auto, Path::Native, Path::Replay, Path::Queues, Path::Gated][rng.usize(..5)];
        ahead += check(&bench, &steps, path, rng.bool(), &mut rng);
    }
    assert!(ahead > count / 20, "only {ahead} loops of {count} programs went ahead");
}
