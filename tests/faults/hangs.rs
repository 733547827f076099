//! What drivers refuse of fused kernels: how errors name them, a compiler that fails, or never returns, while a fused kernel is built in the
//! background, how often one is asked, and fused kernels that are slow.

use std::time::{Duration, Instant};

use clgraph::{Buffer, Executable, Finalize, Fuse, FusingState, Graph, Kernel, Parameter, Program, Queue};
use opencl_sys::{CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES};

use crate::layer::Layer;
use crate::uses;

/// What the test calls itself.
pub const NAME: &str = "a compiler that never returns";
/// How the process ends if all was right.
pub const ENDED: i32 = 7;

const LEN: usize = 64;
const PATIENCE: Duration = Duration::from_secs(60);

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
    fn new(queue: &Queue, add: &Kernel, launches: usize) -> Self {
        let (memory, by) = (Buffer::from_slice(queue, &[0_u32; LEN]).unwrap(), Parameter::any(1));
        let graph = Graph::new(queue).unwrap();
        // SAFETY: a work-item touches its own element.
        let launch = || unsafe { graph.kernel(add).read_write(&memory).arg(&by).range(LEN).add() }.unwrap();
        let nodes = (0..launches).map(|_| launch()).collect();
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
            (0..self.nodes.len()).for_each(|_| *value = value.wrapping_mul(3).wrapping_add(at + number));
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

/// The error of a fused kernel that the driver refuses names the nodes that it does.
fn name(layer: &Layer, queue: &Queue, add: &Kernel) {
    for (launches, what) in [(2, "node 0 and 1 more command"), (6, "node 0 and 5 more commands")] {
        let (graph, memory) = (Graph::new(queue).unwrap(), Buffer::from_slice(queue, &[0_u32; LEN]).unwrap());
        for number in 0..launches {
            // SAFETY: a work-item touches its own element.
            unsafe { graph.kernel(add).read_write(&memory).arg(number).range(LEN).add() }.unwrap();
        }
        let executable = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
        layer.reset();
        layer.fail(c"clEnqueueNDRangeKernel", 0, CL_OUT_OF_RESOURCES);
        let submitted = executable.submit(queue);
        let error = submitted.and_then(|run| run.wait()).unwrap_err();
        assert!(layer.has_failed());
        let expected = format!(
            "the fused kernel of {what} could not be enqueued, after 0 of 1 commands: clEnqueueNDRangeKernel failed with \
             CL_OUT_OF_RESOURCES (-5)"
        );
        assert_eq!(error.to_string(), expected);
        executable.submit(queue).unwrap().wait().unwrap();
    }
}

/// What fails in the background keeps a graph from being fused, and nothing else: submissions go on, with the same bytes. The report has the error.
fn fail(layer: &Layer, queue: &Queue, add: &Kernel) {
    // Submissions call none of these. Each chain has another number of launches, because kernels that were built are shared.
    for (launches, (function, status, word)) in (10..).zip([
        (c"clBuildProgram", CL_OUT_OF_HOST_MEMORY, "the driver refused"),
        (c"clCreateCommandQueueWithProperties", CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"),
        (c"clCreateBuffer", CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"),
    ]) {
        let mut chain = Chain::new(queue, add, launches);
        layer.reset();
        layer.fail(function, 0, status);
        let begun = Instant::now();
        let report = loop {
            chain.run(3);
            let report = chain.executable.report();
            assert!(!matches!(report.fusing, FusingState::Trying | FusingState::Taken), "{function:?}: {report}");
            if matches!(report.fusing, FusingState::Refused | FusingState::Nothing) {
                break report;
            }
            assert!(begun.elapsed() < PATIENCE, "{function:?}: {report}");
        };
        assert!(layer.has_failed());
        assert_eq!(report.not_fused.len(), launches, "{report}");
        assert!(report.not_fused.iter().all(|of| of.why.to_string().contains(word)), "{function:?}: {report}");
        (0..20).for_each(|round| chain.run(round));
    }
}

/// A form that is slower is given up: then submissions launch each kernel again, and nothing is built.
fn lose(layer: &Layer, queue: &Queue, add: &Kernel) {
    const LAUNCHES: usize = 7;
    let mut chain = Chain::new(queue, add, LAUNCHES);
    layer.slow_fused(true);
    let begun = Instant::now();
    while matches!(chain.executable.report().fusing, FusingState::Waiting | FusingState::Building | FusingState::Trying)
    {
        chain.run(3);
        assert!(begun.elapsed() < PATIENCE, "{}", chain.executable.report());
    }
    layer.slow_fused(false);
    let report = chain.executable.report();
    assert_eq!((report.fusing, report.fused.len()), (FusingState::NotFaster, 0), "{report}");
    assert!(report.to_string().contains("fusing     not faster when timed: a submission takes "), "{report}");
    layer.reset();
    (0..20).for_each(|round| chain.run(round));
    let launches = layer.calls(c"clEnqueueNDRangeKernel") as usize;
    // Or all of them are in command buffers.
    assert!(launches == 20 * LAUNCHES || launches == 0, "{launches}: {report}");
    assert_eq!(layer.calls(c"clBuildProgram"), 0);
}

/// Runs until a build hangs, and goes on. Ends the process.
pub fn run(layer: &Layer) -> ! {
    let queue = uses::setup().unwrap();
    let source =
        "kernel void add(global uint *to, uint by) { size_t i = get_global_id(0); to[i] = to[i] * 3 + (uint)i + by; }";
    let add = Program::from_source(&queue, source).unwrap().kernel("add").unwrap();
    share(layer, &queue, &add);
    name(layer, &queue, &add);
    fail(layer, &queue, &add);
    lose(layer, &queue, &add);
    let [mut one, mut other] = [(); 2].map(|()| Chain::new(&queue, &add, 6));
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
