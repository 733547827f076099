//! The same lists of nodes are updated again and again, with everything that may happen in between, and compared with
//! an eager model.

mod common;

use clgraph::{Buffer, Executable, Finalize, Graph, Kernel, Node, Parameter, Path, Program, UserEvent};
use common::{Bench, elsewhere};
use quickcheck::{Arbitrary, Gen, QuickCheck};

const LEN: usize = 16;
const SOURCE: &str = "
    kernel void scale(global const uint *in, global uint *out, uint by) {
        out[get_global_id(0)] = in[get_global_id(0)] * 3u + by;
    }
    kernel void affine(global uint *a, uint by, uint shift) {
        a[get_global_id(0)] = a[get_global_id(0)] * by + shift;
    }";
/// The number of parameters that are numbers.
const NUMBERS: usize = 6;
/// The lists that come again, as nodes.
const LISTS: [&[usize]; 6] = [&[0, 1, 2, 3], &[1], &[3, 0, 3], &[0, 1, 2, 3, 4, 5], &[4, 1], &[2]];

#[derive(Clone, Debug)]
enum Step {
    /// A parameter, and its value.
    Set(usize, u32),
    /// The list.
    Update(usize),
    /// How many elements the last node touches.
    Range(usize),
    /// Whether the fifth node writes to other memory, which is a parameter.
    Elsewhere(bool),
    /// The second node is replaced by a launch with another parameter.
    Replace(usize),
    /// The executable gets the values of another graph.
    Foreign(u32),
    Own,
    Submit,
    /// A submission that waits for an event, and later submissions.
    Defer,
    /// These events are completed.
    Complete,
    /// From now on the other executable of the same graph is used.
    Other,
}

impl Arbitrary for Step {
    fn arbitrary(g: &mut Gen) -> Self {
        let number = u32::arbitrary(g) % 100;
        let at = number as usize;
        // Mostly frames: a number, the same list, a submission.
        match u8::arbitrary(g) % 40 {
            0..12 => Self::Set(at % NUMBERS, number),
            12..20 => Self::Update(0),
            20..27 => Self::Update(at % LISTS.len()),
            27..32 => Self::Submit,
            32 => Self::Range(at % (LEN + 1)),
            33 => Self::Elsewhere(bool::arbitrary(g)),
            34 => Self::Replace(at % NUMBERS),
            35 => Self::Foreign(number),
            36 => Self::Own,
            37 => Self::Defer,
            38 => Self::Complete,
            _ => Self::Other,
        }
    }
}

/// The values of the nodes: numbers, how many elements the last one touches, and where the fifth writes.
#[derive(Clone, Debug, PartialEq)]
struct Values {
    numbers: [u32; 7],
    len: usize,
    elsewhere: bool,
}

/// Returns the index of a node's value.
const OF_NODE: [&[usize]; 6] = [&[0], &[1], &[2], &[3, 4], &[5], &[6]];

impl Values {
    /// Gives the nodes of a list their current values.
    fn take(&mut self, nodes: &[usize], now: &Self) {
        for node in nodes {
            OF_NODE[*node].iter().for_each(|at| self.numbers[*at] = now.numbers[*at]);
            match node {
                4 => self.elsewhere = now.elsewhere,
                5 => self.len = now.len,
                _ => {}
            }
        }
    }

    /// a -> b -> c -> d, d changes, d -> a or e, and some of a changes.
    fn run(&self, memory: &mut [Vec<u32>]) {
        let scaled =
            |from: &[u32], by: u32| from.iter().map(|x| x.wrapping_mul(3).wrapping_add(by)).collect::<Vec<_>>();
        let [of_a, of_b, of_c, by, shift, of_d, last] = self.numbers;
        memory[1] = scaled(&memory[0], of_a);
        memory[2] = scaled(&memory[1], of_b);
        memory[3] = scaled(&memory[2], of_c);
        memory[3].iter_mut().for_each(|x| *x = x.wrapping_mul(by).wrapping_add(shift));
        memory[if self.elsewhere { 4 } else { 0 }] = scaled(&memory[3], of_d);
        memory[0][..self.len].iter_mut().for_each(|x| *x = x.wrapping_mul(last).wrapping_add(last));
    }
}

struct World {
    graph: Graph,
    nodes: Vec<Node>,
    scale: Kernel,
    buffers: Vec<Buffer<u32>>,
    numbers: Vec<Parameter<u32>>,
    output: Parameter<Buffer<u32>>,
    /// Which parameters are the values of the nodes.
    given: [usize; 7],
}

impl World {
    fn new(bench: &Bench, program: &Program, buffers: &[Buffer<u32>], numbers: [u32; NUMBERS]) -> Self {
        let (scale, affine) = (program.kernel("scale").unwrap(), program.kernel("affine").unwrap());
        let graph = bench.graph();
        let numbers: Vec<_> = numbers.into_iter().map(Parameter::any).collect();
        let output = Parameter::buffer(&buffers[0]);
        let [a, b, c, d, ..] = buffers else { panic!("there are five") };
        // One parameter is used by two nodes, and the last node has one for both of its values.
        let given = [0, 1, 0, 2, 3, 4, 5];
        let number = |at: usize| &numbers[given[at]];
        // SAFETY: a work-item touches its own element.
        let nodes = unsafe {
            vec![
                graph.kernel(&scale).read(a).write(b).arg(number(0)).range(LEN).add().unwrap(),
                graph.kernel(&scale).read(b).write(c).arg(number(1)).range(LEN).add().unwrap(),
                graph.kernel(&scale).read(c).write(d).arg(number(2)).range(LEN).add().unwrap(),
                graph.kernel(&affine).read_write(d).arg(number(3)).arg(number(4)).range(LEN).add().unwrap(),
                graph.kernel(&scale).read(d).write(&output).arg(number(5)).range(LEN).add().unwrap(),
                {
                    let node = graph.kernel(&affine).read_write(a).arg(number(6)).arg(number(6));
                    node.range(LEN).range_up_to(LEN).add().unwrap()
                },
            ]
        };
        Self { graph, nodes, scale, buffers: buffers.to_vec(), numbers, output, given }
    }

    /// The current values of the graph.
    fn now(&self, values: &[u32; NUMBERS], len: usize, elsewhere: bool) -> Values {
        Values { numbers: self.given.map(|at| values[at]), len, elsewhere }
    }

    fn list(&self, which: usize) -> Vec<Node> {
        LISTS[which].iter().map(|at| self.nodes[*at]).collect()
    }
}

fn follows_the_model(bench: &Bench, program: &Program, path: Path, steps: &[Step]) {
    let buffers: Vec<_> =
        (0..5).map(|at| bench.buffer(&(0..LEN as u32).map(|i| i + at * 100).collect::<Vec<_>>())).collect();
    let mut memory: Vec<Vec<u32>> = buffers.iter().map(|buffer| bench.content(buffer)).collect();
    let mut numbers = [1, 2, 3, 4, 5, 6];
    let (mut len, mut elsewhere) = (LEN, false);
    let mut world = World::new(bench, program, &buffers, numbers);
    let make = |graph: &Graph| -> Executable {
        graph.finalize(Finalize::new().path(path).updatable().commands_per_buffer(2)).unwrap()
    };
    // Two executables of one graph: each has its own values.
    let executables = [make(&world.graph), make(&world.graph)];
    let mut inside = [world.now(&numbers, len, elsewhere), world.now(&numbers, len, elsewhere)];
    let (mut which, mut gate) = (0, None::<UserEvent>);
    let submit = |which: usize, inside: &[Values; 2], gate: Option<&UserEvent>, memory: &mut Vec<Vec<u32>>| {
        let submission = executables[which].submit_to(&bench.queue);
        let submission = if let Some(gate) = gate { submission.after(gate) } else { submission };
        drop(submission.submit().unwrap());
        inside[which].run(memory);
    };
    for step in steps {
        match step {
            Step::Set(at, value) => {
                world.numbers[*at].set(*value).unwrap();
                numbers[*at] = *value;
            }
            Step::Update(list) => {
                executables[which].update(&world.list(*list)).unwrap();
                inside[which].take(LISTS[*list], &world.now(&numbers, len, elsewhere));
            }
            Step::Range(new) => {
                len = *new;
                world.graph.set_nd_range(world.nodes[5], len).unwrap();
            }
            Step::Elsewhere(new) => {
                elsewhere = *new;
                world.output.set(&buffers[if elsewhere { 4 } else { 0 }]).unwrap();
            }
            Step::Replace(with) => {
                world.given[1] = *with;
                let launch = world.graph.kernel(&world.scale).read(&world.buffers[1]).write(&world.buffers[2]);
                // SAFETY: a work-item touches its own element.
                unsafe { launch.arg(&world.numbers[*with]).range(LEN).replace(world.nodes[1]).unwrap() };
            }
            Step::Foreign(value) => {
                let others = [*value; NUMBERS];
                let foreign = World::new(bench, program, &buffers, others);
                executables[which].update_from(&foreign.graph).unwrap();
                inside[which] = foreign.now(&others, LEN, false);
            }
            Step::Own => {
                executables[which].update_from(&world.graph).unwrap();
                inside[which] = world.now(&numbers, len, elsewhere);
            }
            Step::Submit => submit(which, &inside, None, &mut memory),
            Step::Defer => {
                let gate = gate.get_or_insert_with(|| UserEvent::new(&bench.queue).unwrap());
                submit(which, &inside, Some(gate), &mut memory);
            }
            Step::Complete => gate.take().into_iter().for_each(|gate| gate.complete().unwrap()),
            Step::Other => which = 1 - which,
        }
    }
    gate.take().into_iter().for_each(|gate| gate.complete().unwrap());
    for at in 0..2 {
        submit(at, &inside, None, &mut memory);
    }
    bench.queue.finish().unwrap();
    let content: Vec<_> = buffers.iter().map(|buffer| bench.content(buffer)).collect();
    assert_eq!(content, memory, "{path:?}");
}

/// Rules P1, P2, U1, U2, U3, U4, U6
#[test]
fn lists_that_come_again_bring_the_values_that_parameters_have() {
    fn property(steps: Vec<Step>) -> bool {
        let bench = elsewhere();
        let program = Program::from_source(&bench.queue, SOURCE).unwrap();
        for path in [Path::Auto, Path::Native, Path::Replay, Path::Gated] {
            follows_the_model(bench, &program, path, &steps);
        }
        true
    }
    QuickCheck::new().tests(60).quickcheck(property as fn(Vec<Step>) -> bool);
}

/// Rule P2
#[test]
fn a_buffer_that_changes_is_seen_by_a_list_that_came_again() {
    let bench = elsewhere();
    let program = Program::from_source(&bench.queue, SOURCE).unwrap();
    for path in [Path::Auto, Path::Native, Path::Replay] {
        let buffers: Vec<_> = (0..5).map(|at| bench.buffer(&[at; LEN])).collect();
        let world = World::new(bench, &program, &buffers, [0; NUMBERS]);
        world.graph.set_nd_range(world.nodes[5], 0).unwrap();
        let executable = world.graph.finalize(Finalize::new().path(path).updatable()).unwrap();
        let list = world.list(4);
        for round in 1..5 {
            world.numbers[4].set(round).unwrap();
            executable.update(&list).unwrap();
        }
        // Both at once, and then the memory alone.
        world.numbers[4].set(7).unwrap();
        world.output.set(&buffers[4]).unwrap();
        executable.update(&list).unwrap();
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        assert_eq!((bench.content(&buffers[0]), bench.content(&buffers[4])), (vec![0; LEN], vec![7; LEN]), "{path:?}");
        world.output.set(&buffers[0]).unwrap();
        executable.update(&list).unwrap();
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        assert_eq!(bench.content(&buffers[0]), [7; LEN], "{path:?}");
    }
}

/// Rule U4
#[test]
fn values_from_several_threads_are_all_brought() {
    const ROUNDS: u32 = 400;
    let bench = elsewhere();
    let program = Program::from_source(&bench.queue, SOURCE).unwrap();
    let buffers: Vec<_> = (0..5).map(|at| bench.buffer(&[at; LEN])).collect();
    let world = World::new(bench, &program, &buffers, [0; NUMBERS]);
    let executable = world.graph.finalize(Finalize::new().path(Path::Replay).updatable()).unwrap();
    let list = world.list(0);
    for round in 1..=ROUNDS {
        let often = |work: &dyn Fn()| (0..10).for_each(|_| work());
        std::thread::scope(|scope| {
            scope.spawn(|| often(&|| executable.update(&list).unwrap()));
            scope.spawn(|| often(&|| executable.update_from(&world.graph).unwrap()));
            scope.spawn(|| often(&|| executable.submit_to(&bench.queue).submit_detached().unwrap()));
            // Sometimes early, sometimes late.
            (0..round % 64 * 64).for_each(|_| std::hint::spin_loop());
            world.numbers[1].set(round).unwrap();
        });
        executable.update(&list).unwrap();
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        // The first node reads what the last has left, which is 0, and writes 0.
        assert_eq!(bench.content(&buffers[2]), [round; LEN]);
    }
}

/// Rule S6: an update may drop the last holder of a parameter, whose condition owns something of the user's.
#[test]
fn users_code_of_a_parameter_runs_where_no_lock_is_held() {
    struct Guard(Graph, std::sync::mpsc::Sender<usize>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.1.send(self.0.len()).unwrap();
        }
    }
    let bench = elsewhere();
    let kernel = bench.kernel("scale");
    let (a, b) = (bench.buffer(&[1; LEN]), bench.buffer(&[0; LEN]));
    let graph = bench.graph();
    let plain = Parameter::any(1_u32);
    // SAFETY: a work-item touches its own element.
    let node = unsafe { graph.kernel(&kernel).read(&a).write(&b).arg(&plain).range(LEN).add().unwrap() };
    let (send, gone) = std::sync::mpsc::channel();
    let guard = Guard(graph.clone(), send);
    let by = Parameter::checked(2_u32, "any number", move |_| {
        let _ = &guard;
        true
    });
    let by = by.unwrap();
    // SAFETY: as above.
    let guarded = unsafe { graph.kernel(&kernel).read(&a).write(&b).arg(&by).range(LEN).add().unwrap() };
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    for round in 0..3 {
        by.set(round).unwrap();
        executable.update(&guarded).unwrap();
    }
    // SAFETY: as above.
    unsafe { graph.kernel(&kernel).read(&a).write(&b).arg(&plain).range(LEN).replace(guarded).unwrap() };
    drop(by);
    executable.update(&guarded).unwrap();
    assert_eq!(gone.recv_timeout(std::time::Duration::from_secs(60)), Ok(2), "nobody has it");
    for round in 0..3 {
        plain.set(round).unwrap();
        executable.update(&node).unwrap();
    }
}
