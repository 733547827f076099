//! Random sequences of changes, updates and submissions against an eager model, on every path.

mod common;

use clgraph::{
    Buffer, CommandGroup, Error, Executable, Finalize, FinalizeError, Fuse, Graph, Node, Parameter, Path, UpdateError,
};
use common::{Bench, assert_error, elsewhere};
use quickcheck::{Arbitrary, Gen, QuickCheck};

const LEN: usize = 32;
const BUFFERS: usize = 4;

/// What a node does, as plain data.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// `out = in * 3 + by`: buffers and the number are parameters.
    Scale,
    /// `a = a * 5 + i`, over a range that changes, or `a = 8` over all of it: two launches of a group.
    Group,
    /// A fill that others replace.
    Fill,
    /// A copy of one buffer to another, as long as one value says.
    Copy,
}

/// The values of a node: two buffers, a number, and a length.
#[derive(Clone, Debug, PartialEq)]
struct Values {
    a: usize,
    b: usize,
    number: u32,
    len: usize,
    active: usize,
}

#[derive(Clone, Debug)]
enum Step {
    /// A node, and which of its values becomes what.
    Change(usize, u8, u32),
    /// These nodes, as bits.
    Update(u8),
    UpdateFrom,
    Submit,
    /// Another node, which executables do not have until the graph is finalized again.
    Add(Kind, Values),
    Finalize,
}

#[derive(Clone, Debug)]
struct Case {
    nodes: Vec<(Kind, Values)>,
    steps: Vec<Step>,
}

impl Arbitrary for Case {
    fn arbitrary(g: &mut Gen) -> Self {
        let values = |g: &mut Gen| Values {
            a: usize::arbitrary(g) % BUFFERS,
            b: usize::arbitrary(g) % BUFFERS,
            number: u32::arbitrary(g) % 1000,
            len: usize::arbitrary(g) % (LEN + 1),
            active: 0,
        };
        let kinds = [Kind::Scale, Kind::Group, Kind::Fill, Kind::Copy];
        let node = |g: &mut Gen| (g.choose(&kinds).unwrap().clone(), values(g));
        let nodes = (0..1 + usize::arbitrary(g) % 6).map(|_| node(g)).collect();
        let step = |g: &mut Gen| match u8::arbitrary(g) % 8 {
            6 => {
                let (kind, values) = node(g);
                Step::Add(kind, values)
            }
            7 => Step::Finalize,
            0..3 => Step::Change(usize::arbitrary(g), u8::arbitrary(g), u32::arbitrary(g)),
            3 => Step::Update(u8::arbitrary(g)),
            4 => {
                if bool::arbitrary(g) {
                    Step::UpdateFrom
                } else {
                    Step::Update(u8::MAX)
                }
            }
            _ => Step::Submit,
        };
        Self { nodes, steps: (0..usize::arbitrary(g) % 24).map(|_| step(g)).collect() }
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        let this = self.clone();
        Box::new(self.steps.shrink().map(move |steps| Self { steps, ..this.clone() }))
    }
}

impl Arbitrary for Step {
    fn arbitrary(_: &mut Gen) -> Self {
        Self::Submit
    }
}

/// Returns the nodes after a node.
enum Handle {
    Scale { input: Parameter<Buffer<u32>>, output: Parameter<Buffer<u32>>, by: Parameter<u32> },
    Group { buffer: Parameter<Buffer<u32>>, group: CommandGroup },
    Transfer,
}

struct World<'a> {
    bench: &'a Bench,
    graph: Graph,
    buffers: Vec<Buffer<u32>>,
    nodes: Vec<(Node, Handle)>,
    /// The current values of the graph.
    now: Vec<(Kind, Values)>,
    /// The values of each node when it was added, which made the edges.
    added: Vec<(Kind, Values)>,
}

/// The bytes that a node uses: the buffer, the number of elements from the first, and whether it writes.
fn uses((kind, values): &(Kind, Values)) -> Vec<(usize, usize, bool)> {
    let (a, b) = (values.a, apart(values));
    match kind {
        Kind::Scale => vec![(a, LEN, false), (b, LEN, true)],
        Kind::Group => vec![(a, LEN, true)],
        Kind::Fill => vec![(a, values.len, true)],
        Kind::Copy => vec![(a, values.len, false), (b, values.len, true)],
    }
}

fn conflict(one: &(Kind, Values), other: &(Kind, Values)) -> bool {
    let (ones, others) = (uses(one), uses(other));
    let meet = |a: &(usize, usize, bool), b: &(usize, usize, bool)| a.0 == b.0 && a.1.min(b.1) > 0 && (a.2 || b.2);
    ones.iter().any(|a| others.iter().any(|b| meet(a, b)))
}

/// Returns whether two of some nodes conflict that no path of edges orders. The edges are those of when the nodes were
/// added.
fn conflicts_without_order(nodes: &[(Kind, Values)], added: &[(Kind, Values)]) -> bool {
    let mut before = vec![vec![false; nodes.len()]; nodes.len()];
    for at in 0..nodes.len() {
        for earlier in (0..at).rev().filter(|earlier| conflict(&added[*earlier], &added[at])) {
            let of_earlier = before[earlier].clone();
            before[at][earlier] = true;
            of_earlier.iter().zip(&mut before[at]).for_each(|(of, mine)| *mine |= of);
        }
    }
    (0..nodes.len()).any(|at| (0..at).any(|earlier| !before[at][earlier] && conflict(&nodes[earlier], &nodes[at])))
}

/// Returns a buffer that differs from the two buffers of a node, if these are the same.
fn apart(values: &Values) -> usize {
    if values.a == values.b { (values.b + 1) % BUFFERS } else { values.b }
}

impl<'a> World<'a> {
    fn new(bench: &'a Bench, case: &Case) -> Self {
        let buffers =
            (0..BUFFERS as u32).map(|at| bench.buffer(&(0..LEN as u32).map(|i| i + at * 100).collect::<Vec<_>>()));
        let mut world = Self {
            bench,
            graph: bench.graph(),
            buffers: buffers.collect(),
            nodes: Vec::new(),
            now: Vec::new(),
            added: Vec::new(),
        };
        case.nodes.iter().for_each(|node| world.add(node));
        world
    }

    fn add(&mut self, node: &(Kind, Values)) {
        let (graph, bench, (kind, values)) = (&self.graph, self.bench, node);
        let (a, b) = (&self.buffers[values.a], &self.buffers[apart(values)]);
        let made = match kind {
            Kind::Scale => {
                let (input, output) = (Parameter::buffer(a), Parameter::buffer(b));
                let by = Parameter::any(values.number);
                // SAFETY: a work-item touches its own element.
                let node = unsafe {
                    graph.kernel(&bench.kernel("scale")).read(&input).write(&output).arg(&by).range(LEN).add()
                };
                (node.unwrap(), Handle::Scale { input, output, by })
            }
            Kind::Group => {
                let buffer = Parameter::buffer(a);
                let launches = [("stir", values.len), ("by_eight", LEN)].map(|(name, len)| {
                    graph.kernel(&bench.kernel(name)).read_write(&buffer).range(len).range_up_to(LEN)
                });
                // SAFETY: as above.
                let group = unsafe { graph.command_group(launches) }.unwrap();
                (graph.command_group_node(&group).add().unwrap(), Handle::Group { buffer, group })
            }
            Kind::Fill => {
                let slice = a.slice(..values.len).unwrap();
                (graph.fill(&slice, values.number).add().unwrap(), Handle::Transfer)
            }
            Kind::Copy => {
                let (a, b) = (a.slice(..values.len).unwrap(), b.slice(..values.len).unwrap());
                (graph.copy(&a, &b).add().unwrap(), Handle::Transfer)
            }
        };
        self.nodes.push(made);
        self.now.push(node.clone());
        self.added.push(node.clone());
    }

    fn change(&mut self, at: usize, what: u8, value: u32) {
        let at = at % self.nodes.len();
        let (kind, values) = &mut self.now[at];
        let (node, handle) = &self.nodes[at];
        match what % 4 {
            0 => values.a = value as usize % BUFFERS,
            1 => values.b = value as usize % BUFFERS,
            2 => values.number = value % 1000,
            _ => values.len = value as usize % (LEN + 1),
        }
        let (a, b) = (&self.buffers[values.a], &self.buffers[apart(values)]);
        match (kind, handle) {
            (_, Handle::Scale { input, output, by }) => {
                input.set(a).unwrap();
                output.set(b).unwrap();
                by.set(values.number).unwrap();
            }
            (_, Handle::Group { buffer, group }) => {
                buffer.set(a).unwrap();
                // A length is that of the first launch. It can be set while this launch is active.
                if values.active == 0 {
                    self.graph.set_nd_range(*node, values.len).unwrap();
                }
                values.active = values.number as usize % 2;
                group.set_active_index(values.active).unwrap();
                if values.active == 0 {
                    self.graph.set_nd_range(*node, values.len).unwrap();
                }
            }
            (Kind::Fill, Handle::Transfer) => {
                self.graph.fill(&a.slice(..values.len).unwrap(), values.number).replace(*node).unwrap();
            }
            (_, Handle::Transfer) => {
                let (a, b) = (a.slice(..values.len).unwrap(), b.slice(..values.len).unwrap());
                self.graph.copy(&a, &b).replace(*node).unwrap();
            }
        }
    }

    fn content(&self) -> Vec<Vec<u32>> {
        self.buffers.iter().map(|buffer| self.bench.content(buffer)).collect()
    }
}

/// Runs the nodes one after the other.
fn run(nodes: &[(Kind, Values)], memory: &mut [Vec<u32>]) {
    for (kind, values) in nodes {
        let (a, b) = (values.a, apart(values));
        match kind {
            Kind::Scale => {
                memory[b] = memory[a].iter().map(|x| x.wrapping_mul(3).wrapping_add(values.number)).collect()
            }
            Kind::Group if values.active == 1 => memory[a].fill(8),
            Kind::Group => {
                for (i, x) in memory[a][..values.len].iter_mut().enumerate() {
                    *x = x.wrapping_mul(5).wrapping_add(i as u32);
                }
            }
            Kind::Fill => memory[a][..values.len].fill(values.number),
            Kind::Copy => {
                let from = memory[a][..values.len].to_vec();
                memory[b][..values.len].copy_from_slice(&from);
            }
        }
    }
}

/// Rules P2, P5, P6, P7, C3, C4, U1, U2, U3, U4, U5, U9
#[test]
fn random_changes_updates_and_submissions_are_as_an_eager_model_says() {
    fn property(case: Case) -> bool {
        let paths = [Path::Auto, Path::Native, Path::Replay, Path::Gated, Path::Queues];
        check(&case, &paths, &Finalize::new().commands_per_buffer(3))
    }
    QuickCheck::new().tests(60).quickcheck(property as fn(Case) -> bool);
}

/// Rule Z5: the same where launches are fused, beside fills and copies that change too.
#[test]
fn random_changes_of_fused_executables_are_as_an_eager_model_says() {
    fn property(case: Case) -> bool {
        check(&case, &[Path::Auto], &Finalize::new().fuse(Fuse::Now))
    }
    QuickCheck::new().tests(12).quickcheck(property as fn(Case) -> bool);
}

fn check(case: &Case, paths: &[Path], options: &Finalize) -> bool {
    let bench = elsewhere();
    for &path in paths {
        for conflicts in [false, true] {
            let mut world = World::new(bench, case);
            let mut options = options.clone().path(path).updatable();
            if conflicts {
                options = options.allow_conflicts();
            }
            let mut executable: Executable = world.graph.finalize(options.clone()).unwrap();
            let mut inside = world.now.clone();
            // A change of memory is refused if, and only if, it makes a conflict.
            let expect = |nodes: &[(Kind, Values)], added: &[(Kind, Values)], error: Option<Error>| {
                let wrong = !conflicts && conflicts_without_order(nodes, added);
                let refused = matches!(
                    error,
                    Some(Error::Update(UpdateError::Conflict { .. }) | Error::Finalize(FinalizeError::Conflict { .. }))
                );
                assert!(refused == wrong && error.is_some() == wrong, "{error:?}");
            };
            let mut memory = world.content();
            let mut submitted = 0;
            for step in &case.steps {
                match step {
                    Step::Change(at, what, value) => world.change(*at, *what, *value),
                    Step::Update(bits) => {
                        let count = world.nodes.len().min(8);
                        let chosen: Vec<usize> = (0..count).filter(|at| bits >> at & 1 == 1).collect();
                        let nodes: Vec<Node> = chosen.iter().map(|at| world.nodes[*at].0).collect();
                        let error = executable.update(&nodes).err();
                        if chosen.iter().any(|at| *at >= inside.len()) {
                            assert_error!(
                                error.unwrap(),
                                UpdateError::NotInExecutable { why, .. }
                                    if why.starts_with("it was added to the graph after"),
                            );
                            continue;
                        }
                        let mut then = inside.clone();
                        chosen.iter().for_each(|at| then[*at] = world.now[*at].clone());
                        inside = if error.is_none() { then.clone() } else { inside };
                        expect(&then, &world.added, error);
                    }
                    Step::UpdateFrom => {
                        let error = executable.update_from(&world.graph).err();
                        if world.now.len() > inside.len() {
                            assert_error!(
                                error.unwrap(),
                                UpdateError::Differs { difference }
                                    if difference.contains("nodes, but the executable has"),
                            );
                            continue;
                        }
                        inside = if error.is_none() { world.now.clone() } else { inside };
                        expect(&world.now, &world.added, error);
                    }
                    Step::Add(kind, values) => world.add(&(kind.clone(), values.clone())),
                    Step::Finalize => {
                        let finalized = world.graph.finalize(options.clone());
                        let error = finalized.as_ref().err().cloned();
                        if let Ok(finalized) = finalized {
                            (executable, inside) = (finalized, world.now.clone());
                        }
                        expect(&world.now, &world.added, error);
                    }
                    Step::Submit => {
                        executable.submit(&bench.queue).unwrap();
                        run(&inside, &mut memory);
                        submitted += 1;
                    }
                }
            }
            executable.submit(&bench.queue).unwrap().wait().unwrap();
            run(&inside, &mut memory);
            assert_eq!(world.content(), memory, "{path:?}, after {submitted} submissions, {conflicts}");
            if conflicts {
                // After finalizing again the result is the same.
                let again = world.graph.finalize(options.clone()).unwrap();
                again.submit(&bench.queue).unwrap().wait().unwrap();
                run(&world.now, &mut memory);
                assert_eq!(world.content(), memory, "{path:?}, finalized anew");
            }
        }
    }
    true
}
