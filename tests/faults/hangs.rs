//! A compiler that never returns while a fused kernel is built in the background, and how often one is asked.

use std::time::Duration;

use clgraph::{Buffer, Executable, Finalize, Fuse, FusingState, Graph, Kernel, Parameter, Program, Queue};

use crate::layer::Layer;
use crate::uses;

/// What the test calls itself.
pub const NAME: &str = "a compiler that never returns";
/// How the process ends if all was right.
pub const ENDED: i32 = 7;

const LEN: usize = 64;

/// A chain of launches, its number, and what is in its memory.
struct Chain {
    queue: Queue,
    executable: Executable,
    memory: Buffer<u32>,
    by: Parameter<u32>,
    nodes: Vec<clgraph::Node>,
    expected: Vec<u32>,
}

impl Chain {
    fn new(queue: &Queue, add: &Kernel) -> Self {
        let (memory, by) = (Buffer::from_slice(queue, &[0_u32; LEN]).unwrap(), Parameter::any(1));
        let graph = Graph::new(queue).unwrap();
        // SAFETY: a work-item touches its own element.
        let launch = || unsafe { graph.kernel(add).read_write(&memory).arg(&by).range(LEN).add() }.unwrap();
        let nodes = (0..6).map(|_| launch()).collect();
        let options = Finalize::new().updatable().fuse(Fuse::Auto).fuse_after(Duration::ZERO);
        let executable = graph.finalize(options).unwrap();
        Self { queue: queue.clone(), executable, memory, by, nodes, expected: vec![0; LEN] }
    }

    /// Submits it, and compares what is in the memory.
    fn run(&mut self, number: u32) {
        self.by.set(number).unwrap();
        self.executable.update(&self.nodes).unwrap();
        self.executable.submit(&self.queue).unwrap().wait().unwrap();
        for (at, value) in (0..).zip(&mut self.expected) {
            (0..6).for_each(|_| *value = value.wrapping_mul(3).wrapping_add(at + number));
        }
        let mut now = vec![0; LEN];
        self.queue.enqueue_read_buffer(&self.memory, 0, &mut now, &[]).unwrap();
        assert_eq!(now, self.expected);
    }
}

/// Graphs of the same programs with the same launches share their fused kernels.
fn share(layer: &Layer, queue: &Queue, add: &Kernel) {
    let fused = |launches: u32| {
        let (graph, memory) = (Graph::new(queue).unwrap(), Buffer::from_slice(queue, &[0_u32; LEN]).unwrap());
        for number in 0..launches {
            // SAFETY: a work-item touches its own element.
            unsafe { graph.kernel(add).read_write(&memory).arg(number).range(LEN).add() }.unwrap();
        }
        let executable = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
        assert_eq!(executable.report().fused.len(), 1, "{}", executable.report());
        layer.calls(c"clBuildProgram")
    };
    layer.reset();
    let built = fused(3);
    assert!(built > 0);
    assert_eq!(fused(3), built);
    assert!(fused(4) > built, "another chain is another kernel");
}

/// Runs until a build hangs, and goes on. Ends the process.
pub fn run(layer: &Layer) -> ! {
    let queue = uses::setup().unwrap();
    let source =
        "kernel void add(global uint *to, uint by) { size_t i = get_global_id(0); to[i] = to[i] * 3 + (uint)i + by; }";
    let add = Program::from_source(&queue, source).unwrap().kernel("add").unwrap();
    share(layer, &queue, &add);
    let [mut one, mut other] = [(); 2].map(|()| Chain::new(&queue, &add));
    layer.hang(c"clBuildProgram");
    let mut rounds = 0;
    while !layer.hangs() {
        one.run(1 + rounds % 3);
        rounds += 1;
        assert!(rounds < 10_000, "{}", one.executable.report());
    }
    for round in 0..50 {
        one.run(round);
        other.run(round);
    }
    let states = [&one, &other].map(|chain| chain.executable.report().fusing);
    assert_eq!(states[0], FusingState::Building);
    assert!(!matches!(states[1], FusingState::Taken | FusingState::Trying | FusingState::NotFaster), "{states:?}");
    // A program that the caller builds is not concerned, where the driver builds several at once.
    if !queue.device().caps().platform.contains("Intel") {
        let program = Program::from_source(&queue, "kernel void f(global uint *to) { to[0] = 1; }").unwrap();
        assert!(program.kernel("f").is_ok());
    }
    // Nor is a graph that is dropped while its kernel is built.
    drop((one, other));
    std::process::exit(ENDED)
}
