//! Loops whose turns a fused kernel does: rule Z9. Memory, counts and errors are those of turns that the host decides.

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use clgraph::{
    Buffer, Error, Executable, Finalize, Fuse, FusingState, Graph, HostTaskContext, Kernel, Loop, Loops, Parameter,
    Path, Program, SubmitError,
};
use common::Bench;

const LONG: Duration = Duration::from_secs(60);

const LEN: usize = 64;

/// `count_down` ends a loop.
const SOURCE: &str = "
    kernel void count_down(global uint *left) { *left -= 1; }
    kernel void count_down_signed(global int *left) { *left = *left - 1; }
    kernel void count_down_bits(global float *left) { *left = as_float(as_uint(*left) - 1); }
    kernel void turn_round(global uint *to) {
        local uint tile[64], first;
        const uint me = get_local_id(0);
        tile[me] = to[get_global_id(0)];
        if (me == 0) first = tile[0] & 3;
        barrier(CLK_LOCAL_MEM_FENCE);
        to[get_global_id(0)] = tile[get_local_size(0) - 1 - me] + first + get_group_id(0);
    }
    kernel void add(global uint *to, uint by) { to[get_global_id(0)] += by; }
    kernel void stir(global uint *to, uint by) { size_t i = get_global_id(0); to[i] = (to[i] ^ by) * 3 + (to[i] >> 2) + i - by; }
    kernel void combine(global const uint *from, global uint *to) { to[get_global_id(0)] = to[get_global_id(0)] * 3 + from[get_global_id(0)]; }
    kernel void all_below(global const uint *values, uint limit, global uint *goes_on) {
        uint all = 1;
        for (uint i = 0; i < 64; ++i) all &= values[i] < limit;
        *goes_on = all;
    }
";

struct Turns {
    bench: Bench,
    program: Program,
    left: Buffer<u32>,
    data: Buffer<u32>,
    other: Buffer<u32>,
}

impl Turns {
    fn new() -> Self {
        let bench = Bench::new();
        let (left, data, other) = (bench.buffer(&[0; 4]), bench.buffer(&[1; LEN]), bench.buffer(&[2; LEN]));
        let program = Program::from_source(&bench.queue, SOURCE).unwrap();
        Self { bench, program, left, data, other }
    }

    fn kernel(&self, name: &str) -> Kernel {
        self.program.kernel(name).unwrap()
    }

    /// A body of three launches, or of the last one alone, which counts down.
    fn body(&self, by: u32, is_one: bool) -> Executable {
        let graph = self.bench.graph();
        // SAFETY: the ranges are inside the buffers, and each work-item touches its own elements.
        unsafe {
            if !is_one {
                graph.kernel(&self.kernel("add")).read_write(&self.data).arg(by).range(LEN).add().unwrap();
                let mix = graph.kernel(&self.kernel("combine"));
                mix.read(&self.data).read_write(&self.other).range(LEN).work_group(8).add().unwrap();
            }
            graph.kernel(&self.kernel("count_down")).read_write(&self.left).range(1).add().unwrap();
        }
        graph.finalize(Finalize::new()).unwrap()
    }

    fn set(&self, left: u32) {
        let graph = self.bench.graph();
        graph.fill(&self.left, left).add().unwrap();
        graph.fill(&self.data, 1_u32).add().unwrap();
        graph.fill(&self.other, 2_u32).add().unwrap();
        self.bench.run(&graph);
    }

    fn content(&self) -> [Vec<u32>; 3] {
        [&self.left, &self.data, &self.other].map(|buffer| self.bench.content(buffer))
    }

    /// The same loop decided by the host, and with its turns done by a kernel.
    fn both(&self, add: impl Fn(&Graph) -> Loop) -> [(Executable, Loop); 2] {
        [Finalize::new().loops(Loops::HostDecided), Finalize::new().fuse(Fuse::Now)].map(|options| {
            let graph = self.bench.graph();
            let node = add(&graph);
            (graph.finalize(options).unwrap(), node)
        })
    }

    /// Runs both from the same memory, and compares memory, turns and errors. Returns the turns.
    fn compare(&self, both: &[(Executable, Loop); 2], left: u32) -> u64 {
        let [host, device] = [&both[0], &both[1]].map(|(executable, node)| {
            self.set(left);
            let run = executable.submit(&self.bench.queue).unwrap();
            let outcome = run.wait_for(LONG).map_err(|error| error.to_string().replace(&node_text(node), "the loop"));
            (run.turns(node).unwrap(), outcome, self.content())
        });
        assert_eq!(host, device, "{left}");
        host.0
    }
}

fn node_text(node: &Loop) -> String {
    clgraph::Node::from(node).to_string()
}

/// Rules Z4, Z9: launches that promise to touch their own elements go in turn in such a loop, however many work-items they have.
#[test]
fn promises_keep_no_kernel_from_doing_turns() {
    const MANY: usize = 3_000;
    let turns = Turns::new();
    let many = Buffer::<u32>::new(&turns.bench.queue, MANY).unwrap();
    let body = turns.bench.graph();
    for by in 0..6_u32 {
        let stir = body.kernel(&turns.kernel("stir")).read_write(&many).arg(by).elementwise(0, 4).range(MANY);
        // SAFETY: each work-item touches its own element.
        unsafe { stir.add() }.unwrap();
    }
    // SAFETY: it touches the first element.
    unsafe { body.kernel(&turns.kernel("count_down")).read_write(&turns.left).range(1).add() }.unwrap();
    let body = body.finalize(Finalize::new()).unwrap();
    let both = turns.both(|graph| graph.repeat_while(&turns.left, &body).add().unwrap());
    assert_eq!(both.each_ref().map(|(executable, _)| is_on_device(executable)), [false, true]);
    let found = both.each_ref().map(|(executable, node)| {
        turns.set(9);
        let fill = turns.bench.graph();
        fill.fill(&many, 5_u32).add().unwrap();
        turns.bench.run(&fill);
        let run = executable.submit(&turns.bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        (run.turns(node).unwrap(), turns.bench.content(&many))
    });
    assert_eq!((found[0].0, &found[0]), (9, &found[1]));
}

fn is_on_device(executable: &Executable) -> bool {
    let report = executable.report();
    let [of] = &report.loops[..] else { panic!("{report}") };
    assert!(!of.on_device || (of.host_decided.is_none() && of.ahead.is_none()), "{of}");
    assert_eq!(of.to_string().contains("a fused kernel does its turns"), of.on_device, "{report}");
    of.on_device
}

/// Rule Z9: loops that end at once, within a launch, at its end, and after many.
#[test]
fn a_kernel_does_the_turns_that_the_host_would_begin() {
    let turns = Turns::new();
    for is_one in [false, true] {
        let body = turns.body(5, is_one);
        let both = turns.both(|graph| graph.repeat_while(&turns.left.slice(..1).unwrap(), &body).add().unwrap());
        assert_eq!(both.each_ref().map(|(executable, _)| is_on_device(executable)), [false, true]);
        for left in [0, 1, 2, 15, 16, 17, 127, 128, 129, 1000, 3, 0, 1] {
            assert_eq!(turns.compare(&both, left), u64::from(left));
        }
    }
}

/// Rule Z9: a known number of turns, in long loops and in short ones that are not unrolled.
#[test]
fn a_kernel_does_the_turns_of_a_loop_that_counts_them() {
    let turns = Turns::new();
    for is_one in [false, true] {
        let body = turns.body(5, is_one);
        for count in [513, 1_024, 1_100] {
            let both = turns.both(|graph| graph.repeat(count, &body).add().unwrap());
            assert_eq!(both.each_ref().map(|(executable, _)| is_on_device(executable)), [false, true]);
            for _ in 0..2 {
                assert_eq!(turns.compare(&both, 3), count);
            }
        }
        // Around it are commands that nothing else keeps from being fused with it, and a loop.
        let graph = turns.bench.graph();
        // SAFETY: each work-item touches its own element.
        let add = || unsafe { graph.kernel(&turns.kernel("add")).read_write(&turns.data).arg(9_u32).range(LEN).add() };
        add().unwrap();
        let of_loop = graph.repeat(700, &body).add().unwrap();
        add().unwrap();
        let around = graph.finalize(Finalize::new()).unwrap();
        let both = turns.both(|graph| graph.repeat(3, &around).add().unwrap());
        let report = both[1].0.report();
        assert_eq!(report.loops.iter().map(|of| of.on_device).collect::<Vec<_>>(), [false, true], "{report}");
        assert_eq!(turns.compare(&both, 0), 3);
        let run = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap().submit(&turns.bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        assert_eq!(run.turns(&of_loop).unwrap(), 700);
    }
    let body = turns.body(5, false);
    // What is beside it waits for all of its turns.
    let graph = turns.bench.graph();
    graph.repeat(600, &body).add().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (sees, at, queue) = (Arc::clone(&seen), turns.left.clone(), turns.bench.another_queue(false));
    let look = move |_: &HostTaskContext<'_>| -> Result<(), Error> {
        sees.lock().unwrap().push(queue.enqueue_read_buffer_owned(&at, 0, 1, &[])?.wait()?[0]);
        Ok(())
    };
    graph.host_task(look).reads(&turns.left).add().unwrap();
    graph.repeat(600, &body).add().unwrap();
    let executable = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
    assert!(executable.report().loops.iter().all(|of| of.on_device), "{}", executable.report());
    for _ in 0..5 {
        turns.set(2_000);
        executable.submit(&turns.bench.queue).unwrap().wait_for(LONG).unwrap();
        assert_eq!(turns.content()[0][0], 800);
    }
    assert_eq!(*seen.lock().unwrap(), [1_400; 5]);
    // Several submissions at once, of which each may be waited for or not.
    turns.set(20_000);
    let runs: Vec<_> = (0..8).map(|_| executable.submit(&turns.bench.queue).unwrap()).collect();
    runs.iter().for_each(|run| run.wait_for(LONG).unwrap());
    assert_eq!(turns.content()[0][0], 20_000 - 8 * 1_200);
    // As turns of another loop, in which a host task is behind it.
    seen.lock().unwrap().clear();
    for path in [Path::Auto, Path::Native] {
        let around = turns.bench.graph();
        around.repeat(3, &graph.finalize(Finalize::new().path(path)).unwrap()).add().unwrap();
        let executable = around.finalize(Finalize::new().path(path).fuse(Fuse::Now)).unwrap();
        turns.set(10_000);
        executable.submit(&turns.bench.queue).unwrap().wait_for(LONG).unwrap();
        assert_eq!(turns.content()[0][0], 10_000 - 3 * 1_200);
        assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), [9_400, 8_200, 7_000]);
    }
    for count in [0, 1, 2, 15, 16, 17, 18] {
        let graph = turns.bench.graph();
        let node = graph.repeat(count, &body).add().unwrap();
        let [off, now] = [Fuse::Off, Fuse::Now].map(|fuse| {
            let executable = graph.finalize(Finalize::new().updatable().fuse(fuse)).unwrap();
            assert_eq!(is_on_device(&executable), fuse == Fuse::Now, "{}", executable.report());
            turns.set(40);
            let run = executable.submit(&turns.bench.queue).unwrap();
            run.wait_for(LONG).unwrap();
            (run.turns(&node).unwrap(), turns.content())
        });
        assert_eq!((off.0, &off), (count, &now));
    }
    // A number of turns that nobody waits for.
    let graph = turns.bench.graph();
    let node = graph.repeat(u64::MAX, &turns.body(5, true)).add().unwrap();
    let executable = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
    assert!(is_on_device(&executable));
    turns.set(0);
    let run = executable.submit(&turns.bench.queue).unwrap();
    let begun = std::time::Instant::now();
    while run.turns(&node).unwrap() < 100 {
        assert!(begun.elapsed() < LONG, "{} turns", run.turns(&node).unwrap());
        std::thread::yield_now();
    }
    run.cancel().unwrap();
    common::assert_error!(run.wait_for(LONG), SubmitError::Cancelled { turns: of, .. } if *of >= 100);
    assert_eq!(turns.content()[0][0], 0_u32.wrapping_sub(run.turns(&node).unwrap() as u32));
}

/// Rule Z9: where a launch does a turn faster than a kernel that does many, the host counts. Its launches are fused all the same.
#[test]
fn a_loop_that_counts_stays_with_the_host_where_that_is_faster() {
    const MANY: usize = 30_000;
    let turns = Turns::new();
    let many = Buffer::<u32>::new(&turns.bench.queue, MANY).unwrap();
    let fill = turns.bench.graph();
    fill.fill(&many, 5_u32).add().unwrap();
    let (round, stir) = (turns.kernel("turn_round"), turns.kernel("stir"));
    let graph = |add: &dyn Fn(&Graph)| {
        let graph = turns.bench.graph();
        add(&graph);
        graph.finalize(Finalize::new()).unwrap()
    };
    let elementwise = graph(&|graph| {
        for by in 0..6_u32 {
            let stir = graph.kernel(&stir).read_write(&many).arg(by).elementwise(0, 4).range(MANY);
            // SAFETY: each work-item touches its own element.
            unsafe { stir.add() }.unwrap();
        }
    });
    let side_by_side = graph(&|graph| {
        for data in [&turns.data, &turns.other] {
            for by in 0..12_u32 {
                // SAFETY: as above.
                unsafe { graph.kernel(&stir).read_write(data).arg(by).range(LEN).add() }.unwrap();
            }
        }
    });
    let with_write = graph(&|graph| {
        graph.write(&turns.other, [3; LEN]).add().unwrap();
        for by in 0..6_u32 {
            // SAFETY: as above.
            unsafe { graph.kernel(&stir).read_write(&turns.data).arg(by).range(LEN).add() }.unwrap();
        }
    });
    let waits = graph(&|graph| {
        for _ in 0..3 {
            // SAFETY: the range is inside the buffer, and each work-item touches its own elements.
            unsafe { graph.kernel(&round).read_write(&turns.data).range(LEN).work_group(16).add() }.unwrap();
        }
    });
    let is_pocl = turns.bench.queue.device().caps().platform.contains("Portable");
    for (body, on_device) in [(&elementwise, false), (&side_by_side, false), (&with_write, false), (&waits, !is_pocl)] {
        let both = turns.both(|graph| graph.repeat(600, body).add().unwrap());
        let report = both[1].0.report();
        assert_eq!(is_on_device(&both[1].0), on_device, "{report}");
        assert!(!report.fused.is_empty() || (is_pocl && std::ptr::eq(body, &waits)), "{report}");
        let found = both.each_ref().map(|(executable, node)| {
            turns.set(3);
            turns.bench.run(&fill);
            let run = executable.submit(&turns.bench.queue).unwrap();
            run.wait_for(LONG).unwrap();
            (run.turns(node).unwrap(), turns.content(), turns.bench.content(&many))
        });
        assert_eq!((found[0].0, &found[0]), (600, &found[1]));
    }
}

/// Rules K2, K4: the first turn that looks at no condition, and bounds.
#[test]
fn bounds_and_first_turns_are_the_same() {
    let turns = Turns::new();
    let body = turns.body(3, false);
    let condition = turns.left.slice(..1).unwrap();
    let once = turns.both(|graph| graph.repeat_while(&condition, &body).at_least_once().at_most(40).add().unwrap());
    assert!(is_on_device(&once[1].0));
    // From 0 it counts down beyond 0, so the bound ends it.
    for (left, done) in [(1, 1), (39, 39), (40, 40), (41, 40), (0, 40), (1000, 40)] {
        assert_eq!(turns.compare(&once, left), done);
    }
    for most in [1, 16, 17] {
        let bounded = turns.both(|graph| graph.repeat_while(&condition, &body).at_most(most).add().unwrap());
        for left in [0, 1, 15, 16, 17, 18] {
            assert_eq!(turns.compare(&bounded, left), u64::from(left).min(most));
        }
    }
}

/// Rule K4: an endless loop is cancelled between launches, after a whole turn.
#[test]
fn an_endless_loop_is_cancelled_after_a_whole_turn() {
    let turns = Turns::new();
    let body = turns.bench.graph();
    // SAFETY: each work-item touches its own element.
    unsafe { body.kernel(&turns.kernel("add")).read_write(&turns.data).arg(1_u32).range(LEN).add().unwrap() };
    let body = body.finalize(Finalize::new()).unwrap();
    turns.set(7);
    let graph = turns.bench.graph();
    let node = graph.repeat_while(&turns.left.slice(..1).unwrap(), &body).add().unwrap();
    let executable = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
    assert!(is_on_device(&executable));
    let run = executable.submit(&turns.bench.queue).unwrap();
    while run.turns(&node).unwrap() < 1000 {
        std::thread::yield_now();
    }
    run.cancel().unwrap();
    let error = run.wait_for(LONG).unwrap_err();
    assert!(matches!(error, clgraph::Error::Submit(SubmitError::Cancelled { .. })), "{error}");
    let done = run.turns(&node).unwrap();
    assert_eq!(turns.content()[1], vec![1 + done as u32; LEN]);
}

/// Loops in loops and side by side: a kernel does the turns of those that have nothing but launches.
#[test]
fn inner_loops_and_loops_side_by_side_are_done_by_kernels() {
    let turns = Turns::new();
    let outer = turns.bench.buffer(&[0]);
    let inner = turns.body(5, false);
    let results = [Finalize::new().loops(Loops::HostDecided), Finalize::new().fuse(Fuse::Now)].map(|options| {
        let body = turns.bench.graph();
        body.fill(&turns.left.slice(..1).unwrap(), 20_u32).add().unwrap();
        body.repeat_while(&turns.left.slice(..1).unwrap(), &inner).add().unwrap();
        // SAFETY: one work-item, one number.
        unsafe { body.kernel(&turns.kernel("count_down")).read_write(&outer).range(1).add().unwrap() };
        let body = body.finalize(Finalize::new()).unwrap();
        let graph = turns.bench.graph();
        graph.fill(&outer, 3_u32).add().unwrap();
        graph.repeat_while(&outer, &body).add().unwrap();
        graph.fill(&turns.left.slice(..1).unwrap(), 4_u32).add().unwrap();
        graph.repeat_while(&turns.left.slice(..1).unwrap(), &inner).add().unwrap();
        let executable = graph.finalize(options).unwrap();
        turns.set(0);
        executable.submit(&turns.bench.queue).unwrap().wait_for(LONG).unwrap();
        (turns.content(), executable.report().loops.iter().map(|of| of.on_device).collect::<Vec<_>>())
    });
    assert_eq!(results[0].0, results[1].0);
    assert!(results[0].1.iter().all(|on_device| !on_device));
    assert_eq!(results[1].1.iter().filter(|on_device| **on_device).count(), 2, "{:?}", results[1].1);
}

/// A condition that the body computes from other memory.
#[test]
fn a_body_computes_its_condition() {
    let turns = Turns::new();
    let go = turns.bench.buffer(&[1]);
    let body = turns.bench.graph();
    // SAFETY: the ranges are inside the buffers.
    unsafe {
        body.kernel(&turns.kernel("add")).read_write(&turns.data).arg(3_u32).range(LEN).add().unwrap();
        let all = body.kernel(&turns.kernel("all_below")).read(&turns.data).arg(1000_u32).write(&go);
        all.range(1).add().unwrap();
    }
    let body = body.finalize(Finalize::new()).unwrap();
    let both = turns.both(|graph| graph.repeat_while(&go, &body).at_least_once().add().unwrap());
    assert!(is_on_device(&both[1].0));
    assert_eq!(turns.compare(&both, 0), 333);
}

/// Rules K10, Z9: work that the loop does not order ends it between turns, for all work-items.
#[test]
fn a_condition_that_something_else_changes_ends_whole_turns() {
    let turns = Turns::new();
    let go = turns.bench.buffer(&[1]);
    let body = turns.bench.graph();
    for by in [1_u32, 2] {
        // SAFETY: each work-item touches its own element.
        unsafe { body.kernel(&turns.kernel("add")).read_write(&turns.data).arg(by).range(LEN).add() }.unwrap();
    }
    let body = body.finalize(Finalize::new()).unwrap();
    let graph = turns.bench.graph();
    let node = graph.repeat_while(&go, &body).add().unwrap();
    let executable = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
    assert!(is_on_device(&executable));
    let other = turns.bench.another_queue(false);
    let [start, stop] = [1_u32, 0].map(|number| {
        let graph = turns.bench.graph();
        graph.fill(&go, number).add().unwrap();
        graph.finalize(Finalize::new()).unwrap()
    });
    for round in 0..20 {
        start.submit(&other).unwrap().wait_for(LONG).unwrap();
        turns.set(0);
        let run = executable.submit(&turns.bench.queue).unwrap();
        while run.turns(&node).unwrap() < 100 * round {
            std::thread::yield_now();
        }
        stop.submit(&other).unwrap().wait_for(LONG).unwrap();
        run.wait_for(LONG).unwrap();
        let done = run.turns(&node).unwrap() as u32;
        assert_eq!(turns.content()[1], vec![done.wrapping_mul(3).wrapping_add(1); LEN]);
    }
}

/// Rules Z8, Z9: a launch comes after itself, so what keeps two launches apart keeps it from being done in turns.
#[test]
fn a_launch_that_may_not_follow_itself_is_not_done_in_turns() {
    let turns = Turns::new();
    let source = "
        kernel void swap(global const uint *restrict from, global uint *to, global uint *left) {
            for (uint i = 0; i < 8; ++i) to[i] = from[i] + 1;
            *left -= 1;
        }";
    let swap = Program::from_source(&turns.bench.queue, source).unwrap().kernel("swap").unwrap();
    let body = turns.bench.graph();
    let (half, other) = (turns.data.slice(..8).unwrap(), turns.data.slice(8..16).unwrap());
    // SAFETY: one work-item, within the buffers.
    unsafe { body.kernel(&swap).read(&half).write(&other).read_write(&turns.left).range(1).add() }.unwrap();
    let body = body.finalize(Finalize::new()).unwrap();
    let both = turns.both(|graph| graph.repeat_while(&turns.left.slice(..1).unwrap(), &body).add().unwrap());
    assert!(!is_on_device(&both[1].0), "{}", both[1].0.report());
    assert_eq!(turns.compare(&both, 7), 7);
}

/// Fills and copies of whole words are part of the kernel: here they give the body its condition and its next input.
#[test]
fn fills_and_copies_are_part_of_a_turn() {
    let turns = Turns::new();
    let go = turns.bench.buffer(&[1; 8]);
    let body = turns.bench.graph();
    body.fill(&go.slice(2..4).unwrap(), 0_u32).add().unwrap();
    // SAFETY: the ranges are inside the buffers.
    unsafe {
        body.kernel(&turns.kernel("add")).read_write(&turns.data).arg(3_u32).range(LEN).add().unwrap();
        let goes_on = go.slice(4..5).unwrap();
        let all = body.kernel(&turns.kernel("all_below")).read(&turns.data).arg(500_u32).write(&go);
        all.range(1).add().unwrap();
        body.copy(&go.slice(0..1).unwrap(), &goes_on).add().unwrap();
        body.copy(&turns.data.slice(3..20).unwrap(), &turns.other.slice(30..47).unwrap()).add().unwrap();
        body.copy(&turns.other.slice(31..33).unwrap(), &turns.other.slice(1..3).unwrap()).add().unwrap();
        body.fill(&turns.other.slice(40..44).unwrap().cast::<u8>().unwrap(), 7_u8).add().unwrap();
        body.fill(&turns.data.slice(61..63).unwrap(), 9_u32).add().unwrap();
        body.fill(&turns.other.slice(50..64).unwrap().cast::<f64>().unwrap(), 0.0_f64).add().unwrap();
        body.kernel(&turns.kernel("combine")).read(&turns.data).read_write(&turns.other).range(LEN).add().unwrap();
    }
    let body = body.finalize(Finalize::new()).unwrap();
    let both = turns.both(|graph| graph.repeat_while(&go.slice(4..5).unwrap(), &body).at_least_once().add().unwrap());
    assert!(is_on_device(&both[1].0), "{}", both[1].0.report());
    assert_eq!(turns.compare(&both, 0), 167);
}

/// What no kernel does: the ways of the loop are what they were.
#[test]
fn other_loops_stay_as_they_are() {
    let turns = Turns::new();
    let condition = turns.left.slice(..1).unwrap();
    let body = turns.body(5, false);
    let with_write = turns.bench.graph();
    with_write.write(&turns.data, [3; LEN]).add().unwrap();
    // SAFETY: one work-item, one number.
    unsafe { with_write.kernel(&turns.kernel("count_down")).read_write(&turns.left).range(1).add().unwrap() };
    let with_write = with_write.finalize(Finalize::new()).unwrap();
    let counts = |name: &str| {
        let graph = turns.bench.graph();
        // SAFETY: one work-item, one number.
        unsafe {
            graph.kernel(&turns.kernel("add")).read_write(&turns.data).arg(2_u32).range(LEN).add().unwrap();
            let memory = turns.left.cast::<i32>().unwrap();
            if name == "count_down_bits" {
                let memory = turns.left.cast::<f32>().unwrap();
                graph.kernel(&turns.kernel(name)).read_write(&memory).range(1).add().unwrap();
            } else {
                graph.kernel(&turns.kernel(name)).read_write(&memory).range(1).add().unwrap();
            }
        }
        graph.finalize(Finalize::new()).unwrap()
    };
    let (signed, bits) = (counts("count_down_signed"), counts("count_down_bits"));
    for (body, options, expected) in [
        (&body, Finalize::new().fuse(Fuse::Now), true),
        (&signed, Finalize::new().fuse(Fuse::Now), true),
        // Compilers take it that a float is not a number that is looked at as an integer.
        (&bits, Finalize::new().fuse(Fuse::Now), false),
        (&with_write, Finalize::new().fuse(Fuse::Now), false),
        (&body, Finalize::new().fuse(Fuse::Now).loops(Loops::Ahead), false),
        (&body, Finalize::new().fuse(Fuse::Now).loops(Loops::HostDecided), false),
        (&body, Finalize::new().fuse(Fuse::Now).profiling(), false),
        (&body, Finalize::new().fuse(Fuse::Off), false),
    ] {
        let graph = turns.bench.graph();
        let node = graph.repeat_while(&condition, body).add().unwrap();
        let executable = graph.finalize(options).unwrap();
        assert_eq!(is_on_device(&executable), expected, "{}", executable.report());
        turns.set(70);
        let run = executable.submit(&turns.bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        assert_eq!((run.turns(&node).unwrap(), turns.content()[0][0]), (70, 0));
    }
}

/// Rule Z5: values follow an update; what does not fit is done by the host until it is built again.
#[test]
fn updates_reach_loops_on_the_device() {
    let turns = Turns::new();
    let by = Parameter::any(5_u32);
    let body = turns.bench.graph();
    // SAFETY: the ranges are inside the buffers.
    unsafe {
        body.kernel(&turns.kernel("add")).read_write(&turns.data).arg(&by).range(LEN).add().unwrap();
        body.kernel(&turns.kernel("count_down")).read_write(&turns.left).range(1).add().unwrap();
    }
    let inside = body.finalize(Finalize::new().updatable()).unwrap();
    let graph = turns.bench.graph();
    let condition = turns.left.slice(..1).unwrap();
    let node = graph.repeat_while(&condition, &inside).at_most(100).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable().fuse(Fuse::Now)).unwrap();
    assert!(is_on_device(&executable), "{}", executable.report());
    let run = |left: u32| {
        turns.set(left);
        let run = executable.submit(&turns.bench.queue).unwrap();
        let outcome = run.wait_for(LONG);
        (run.turns(&node).unwrap(), outcome.is_ok(), turns.content()[1][9])
    };
    assert_eq!(run(30), (30, true, 1 + 30 * 5));
    by.set(7).unwrap();
    inside.update_from(&body).unwrap();
    executable.update(&node).unwrap();
    assert!(is_on_device(&executable), "{}", executable.report());
    assert_eq!(run(30), (30, true, 1 + 30 * 7));
    graph.repeat_while(&condition, &inside).at_most(20).replace(&node).unwrap();
    executable.update(&node).unwrap();
    assert!(is_on_device(&executable), "{}", executable.report());
    assert_eq!(run(30), (20, false, 1 + 20 * 7));
    assert_eq!(run(20), (20, true, 1 + 20 * 7));
    // Another place of the condition: it is never zero.
    graph.repeat_while(&turns.left.slice(1..2).unwrap(), &inside).at_most(20).replace(&node).unwrap();
    executable.update(&node).unwrap();
    assert!(!is_on_device(&executable), "{}", executable.report());
    assert_eq!(run(3), (20, false, 1 + 20 * 7));
}

/// Rule Z5: values and the number of turns follow, in a loop that counts them.
#[test]
fn updates_reach_loops_that_count_on_the_device() {
    let turns = Turns::new();
    let by = Parameter::any(5_u32);
    let body = turns.bench.graph();
    // SAFETY: the ranges are inside the buffers.
    let adding =
        unsafe { body.kernel(&turns.kernel("add")).read_write(&turns.data).arg(&by).range(LEN).add() }.unwrap();
    // SAFETY: it is one number.
    unsafe { body.kernel(&turns.kernel("count_down")).read_write(&turns.left).range(1).add() }.unwrap();
    let inside = body.finalize(Finalize::new().updatable()).unwrap();
    let graph = turns.bench.graph();
    let node = graph.repeat(30, &inside).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable().fuse(Fuse::Now)).unwrap();
    let run = || {
        assert!(is_on_device(&executable), "{}", executable.report());
        turns.set(5_000);
        let run = executable.submit(&turns.bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        (run.turns(&node).unwrap(), 5_000 - turns.content()[0][0], turns.content()[1][9])
    };
    assert_eq!(run(), (30, 30, 1 + 30 * 5));
    by.set(7).unwrap();
    inside.update_from(&body).unwrap();
    executable.update(&node).unwrap();
    assert_eq!(run(), (30, 30, 1 + 30 * 7));
    for count in [3_000, 0, 1] {
        graph.repeat(count, &inside).replace(&node).unwrap();
        executable.update(&node).unwrap();
        assert_eq!(run(), (count, count as u32, 1 + count as u32 * 7));
    }
    // Other memory, and a submission that has not ended then.
    graph.repeat(300, &inside).replace(&node).unwrap();
    executable.update(&node).unwrap();
    turns.set(5_000);
    let before = executable.submit(&turns.bench.queue).unwrap();
    let other = body.kernel(&turns.kernel("add")).read_write(&turns.other).arg(&by).range(LEN);
    // SAFETY: the range is inside the buffer.
    unsafe { other.replace(adding) }.unwrap();
    inside.update_from(&body).unwrap();
    executable.update(&node).unwrap();
    assert!(is_on_device(&executable), "{}", executable.report());
    executable.submit(&turns.bench.queue).unwrap().wait_for(LONG).unwrap();
    before.wait_for(LONG).unwrap();
    let [left, data, other] = turns.content();
    assert_eq!((left[0], data[9], other[9]), (5_000 - 600, 1 + 300 * 7, 2 + 300 * 7));
}

/// Rule Z7: an automatic executable comes to it, and its results stay the same.
#[test]
fn an_automatic_executable_comes_to_it() {
    let turns = Turns::new();
    comes_to_it(&turns, |graph, body| graph.repeat_while(&turns.left.slice(..1).unwrap(), body).add().unwrap());
    comes_to_it(&turns, |graph, body| graph.repeat(600, body).add().unwrap());
}

fn comes_to_it(turns: &Turns, add: impl Fn(&Graph, &Executable) -> Loop) {
    let body = turns.body(5, true);
    let graph = turns.bench.graph();
    let node = add(&graph, &body);
    let executable = graph.finalize(Finalize::new().fuse(Fuse::Auto).fuse_after(Duration::ZERO)).unwrap();
    let begun = std::time::Instant::now();
    while begun.elapsed() < LONG {
        turns.set(600);
        let run = executable.submit(&turns.bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        assert_eq!((run.turns(&node).unwrap(), turns.content()[0][0]), (600, 0));
        match executable.report().fusing {
            FusingState::Taken => return assert!(is_on_device(&executable), "{}", executable.report()),
            FusingState::NotFaster => return,
            _ => {}
        }
    }
    panic!("{}", executable.report());
}

/// Rules Z1, Z9: work-items wait for each other in each turn, and for the look at the condition.
#[test]
fn kernels_that_wait_are_bodies_too() {
    let turns = Turns::new();
    let (round, down) = (turns.kernel("turn_round"), turns.kernel("count_down"));
    let body = turns.bench.graph();
    for data in [&turns.data, &turns.other, &turns.data] {
        // SAFETY: of both: the ranges are inside the buffers, and each work-item touches its own elements.
        unsafe { body.kernel(&round).read_write(data).range(LEN).work_group(16).add() }.unwrap();
    }
    // SAFETY: as above.
    unsafe { body.kernel(&down).read_write(&turns.left).range(1).add() }.unwrap();
    let body = body.finalize(Finalize::new()).unwrap();
    let both = turns.both(|graph| graph.repeat_while(&turns.left, &body).at_most(5_000).add().unwrap());
    let has_groups = !turns.bench.queue.device().caps().platform.contains("Portable");
    assert_eq!(is_on_device(&both[1].0), has_groups, "{}", both[1].0.report());
    for left in [0, 1, 2, 7, 1_500] {
        assert_eq!(turns.compare(&both, left), u64::from(left));
    }
}
