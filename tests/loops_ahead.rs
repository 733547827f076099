//! Loops whose turns are enqueued before their condition is known: rule K7. Whatever the way, memory, results, counts and errors
//! are the same.

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use clgraph::{
    Buffer, Executable, Finalize, Graph, HostDecided, HostRead, HostTaskContext, Kernel, Loop, Loops, NativeCommand,
    NodeKind, Parameter, Program, ProgramBuilder, SubGraph, SubmitError, device_global,
};
use common::{Bench, Failure};

const LONG: Duration = Duration::from_secs(60);

/// Kernels of one work-item and of many. `count_down` ends a loop.
const SOURCE: &str = "
    kernel void count_down(global uint *left) { *left -= 1; }
    kernel void add(global uint *to, uint by) { to[get_global_id(0)] += by; }
    kernel void combine(global const uint *from, global uint *to) { to[get_global_id(0)] = to[get_global_id(0)] * 3 + from[get_global_id(0)]; }
";

fn kernel(bench: &Bench, name: &str) -> Kernel {
    Program::from_source(&bench.queue, SOURCE).unwrap().kernel(name).unwrap()
}

/// A loop that counts `left` down, and what else is in its body.
struct Turns {
    bench: Bench,
    left: Buffer<u32>,
    data: Buffer<u32>,
    other: Buffer<u32>,
}

const LEN: usize = 64;

impl Turns {
    fn new() -> Self {
        let bench = Bench::new();
        let (left, data, other) = (bench.buffer(&[0; 4]), bench.buffer(&[1; LEN]), bench.buffer(&[2; LEN]));
        Self { bench, left, data, other }
    }

    /// A body with kernels, fills and copies, which change memory in each turn.
    fn body(&self, options: Finalize) -> Executable {
        let graph = self.bench.graph();
        let (add, mix, count_down) =
            (kernel(&self.bench, "add"), kernel(&self.bench, "combine"), kernel(&self.bench, "count_down"));
        // SAFETY: the ranges are inside the buffers.
        unsafe {
            graph.kernel(&add).read_write(&self.data).arg(5_u32).range(LEN).add().unwrap();
            graph.copy(&self.data.slice(3..20).unwrap(), &self.other.slice(30..47).unwrap()).add().unwrap();
            graph.fill(&self.data.slice(7..9).unwrap(), 9_u32).add().unwrap();
            graph.kernel(&mix).read(&self.other).read_write(&self.data).range(LEN).add().unwrap();
            graph.kernel(&count_down).read_write(&self.left).range(1).add().unwrap();
        }
        graph.finalize(options).unwrap()
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

    fn executable(&self, loops: Loops, adapt: impl FnOnce(&Graph, &Executable) -> Loop) -> (Executable, Loop) {
        let body = self.body(Finalize::new());
        let graph = self.bench.graph();
        let node = adapt(&graph, &body);
        (graph.finalize(Finalize::new().loops(loops)).unwrap(), node)
    }
}

/// Why the host decides the one loop of a graph.
fn why(executable: &Executable) -> Option<HostDecided> {
    let report = executable.report();
    let [of] = &report.loops[..] else { panic!("{report}") };
    assert_eq!(of.host_decided.is_some(), of.ahead.is_none(), "{of}");
    of.host_decided.clone()
}

/// Rule K7: loops that end at once, within a batch, at its end, and after many.
#[test]
fn turns_ahead_change_what_turns_of_the_host_change() {
    let turns = Turns::new();
    let make = |loops| {
        turns.executable(loops, |graph, body| graph.repeat_while(&turns.left.slice(..1).unwrap(), body).add().unwrap())
    };
    let (host, node) = make(Loops::HostDecided);
    let (ahead, ahead_node) = make(Loops::Ahead);
    assert_eq!((why(&host), why(&ahead)), (Some(HostDecided::Asked), None));
    for count in [0, 1, 3, 4, 5, 5, 12, 13, 100, 40, 40, 2, 0, 33, 32, 1] {
        turns.set(count);
        let run = host.submit(&turns.bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        assert_eq!(run.turns(&node).unwrap(), u64::from(count));
        let expected = turns.content();
        turns.set(count);
        let run = ahead.submit(&turns.bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        assert_eq!(run.turns(&ahead_node).unwrap(), u64::from(count));
        assert_eq!(turns.content(), expected, "{count}");
    }
}

/// Rule K7: a kernel with a loop of its own, launched by one work-item, by one a group, and by several. PoCL 7.1 runs what is before the
/// loop twice if another kernel calls it.
#[test]
fn kernels_with_loops_compute_the_same_ahead() {
    let bench = Bench::new();
    let source = "
        kernel void work(global uint *to, uint rounds) {
            size_t at = 4 * get_global_id(0);
            to[at] = to[at] * 3 + 1;
            uint x = to[at + 1];
            for (uint i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
            to[at + 1] = x;
            to[at + 2] += 1;
        }";
    let work = Program::from_source(&bench.queue, source).unwrap().kernel("work").unwrap();
    let count_down = kernel(&bench, "count_down");
    for (range, group) in [(1, None), (1, Some(1)), (4, Some(1)), (4, Some(2)), (16, None)] {
        let contents = [Loops::HostDecided, Loops::Ahead].map(|loops| {
            let (left, data) = (bench.buffer(&[3]), bench.buffer(&[1; LEN]));
            let body = bench.graph();
            // SAFETY: a work-item touches four numbers of its own, and there are at most 16.
            unsafe {
                let launch = body.kernel(&work).read_write(&data).arg(5_u32).range(range);
                group.into_iter().fold(launch, |launch, group: usize| launch.work_group(group)).add().unwrap();
                body.kernel(&count_down).read_write(&left).range(1).add().unwrap();
            }
            let body = body.finalize(Finalize::new()).unwrap();
            let graph = bench.graph();
            graph.repeat_while(&left, &body).add().unwrap();
            let executable = graph.finalize(Finalize::new().loops(loops)).unwrap();
            executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
            bench.content(&data)
        });
        assert_eq!(contents[0], contents[1], "{range} by {group:?}");
        assert_eq!(contents[0][..3], [40, contents[0][1], 4], "{range} by {group:?}");
    }
}

/// Fills and copies go ahead as kernels, with any pattern and any place.
#[test]
fn fills_and_copies_ahead_write_the_same_bytes() {
    let bench = Bench::new();
    let (left, bytes) = (bench.buffer(&[0]), Buffer::<u8>::new(&bench.queue, 256).unwrap());
    let count_down = kernel(&bench, "count_down");
    type Add = Box<dyn Fn(&Graph)>;
    let mut bodies: Vec<Add> = Vec::new();
    macro_rules! fill {
        ($pattern:expr, $($at:expr),*) => {
            $(
                let slice = bytes.slice($at).unwrap();
                bodies.push(Box::new(move |graph| _ = graph.fill(&slice.cast().unwrap(), $pattern).add().unwrap()));
            )*
        };
    }
    fill!(7_u8, 0..256, 3..4, 5..22, 8..24);
    fill!([1_u8, 2], 2..8, 4..12, 0..2);
    fill!([1_u8, 2, 3], 0..12, 3..9);
    fill!(0x0102_0304_u32, 4..64, 0..256);
    fill!([1_u32, 2], 8..72);
    fill!([1_u32, 2, 3], 12..60);
    fill!([1_u32, 2, 3, 4], 16..48);
    for (from, into) in [(0..16, 32..48), (1..18, 40..57), (4..8, 129..133), (2..4, 8..10)] {
        let (from, into) = (bytes.slice(from).unwrap(), bytes.slice(into).unwrap());
        bodies.push(Box::new(move |graph| _ = graph.copy(&from, &into).add().unwrap()));
    }
    for (number, add) in bodies.iter().enumerate() {
        let contents = [Loops::HostDecided, Loops::Ahead].map(|loops| {
            let graph = bench.graph();
            add(&graph);
            // SAFETY: one work-item, one number.
            unsafe { graph.kernel(&count_down).read_write(&left).range(1).add().unwrap() };
            let body = graph.finalize(Finalize::new()).unwrap();
            let graph = bench.graph();
            let data: Vec<u8> = (0..=255).collect();
            graph.write(&bytes, &data).add().unwrap();
            graph.fill(&left, 3_u32).add().unwrap();
            graph.repeat_while(&left, &body).add().unwrap();
            let executable = graph.finalize(Finalize::new().loops(loops)).unwrap();
            assert_eq!(why(&executable).is_none(), loops == Loops::Ahead, "{number}: {}", executable.report());
            executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
            common::content(&bench.queue, &bytes)
        });
        assert_eq!(contents[0], contents[1], "{number}");
    }
}

/// Rules K2, K4: the first turn that looks at no condition, and loops that have too many turns.
#[test]
fn bounds_hold_ahead_too() {
    let turns = Turns::new();
    let condition = turns.left.slice(..1).unwrap();
    let (once, node) = turns.executable(Loops::Ahead, |graph, body| {
        graph.repeat_while(&condition, body).at_least_once().at_most(7).add().unwrap()
    });
    assert_eq!(why(&once), None);
    for _ in 0..2 {
        // From 0 the first turn makes the largest number of it, so the loop would go on.
        for (left, count) in [(1, 1), (7, 7), (5, 5)] {
            turns.set(left);
            let run = once.submit(&turns.bench.queue).unwrap();
            run.wait_for(LONG).unwrap();
            assert_eq!(run.turns(&node).unwrap(), count);
        }
        for left in [0, 8, 100] {
            turns.set(left);
            let run = once.submit(&turns.bench.queue).unwrap();
            let error = run.wait_for(LONG).failure();
            assert!(matches!(error, clgraph::Error::Submit(SubmitError::TooManyTurns { turns: 7, .. })), "{error}");
            assert_eq!(turns.content()[0][0], left.wrapping_sub(7));
        }
    }
}

/// Rule K4: an endless loop ends when it is cancelled, after a whole turn, and the executable goes on working.
#[test]
fn a_loop_ahead_is_cancelled_after_a_whole_turn() {
    let turns = Turns::new();
    let (forever, node) = turns.executable(Loops::Ahead, |graph, body| {
        graph.repeat_while(&turns.data.slice(..1).unwrap(), body).add().unwrap()
    });
    assert_eq!(why(&forever), None);
    for _ in 0..3 {
        turns.set(0);
        let run = forever.submit(&turns.bench.queue).unwrap();
        while run.turns(&node).unwrap() < 10 {
            std::thread::yield_now();
        }
        run.cancel().unwrap();
        let error = run.wait_for(LONG).failure();
        assert!(matches!(error, clgraph::Error::Submit(SubmitError::Cancelled { .. })), "{error}");
        let count = run.turns(&node).unwrap();
        assert_eq!(turns.content()[0][0], 0_u32.wrapping_sub(count as u32));
    }
}

/// Rules K5, K6: loops inside bodies, and updates of a value in a body.
#[test]
fn nested_loops_and_updates() {
    let bench = Bench::new();
    let (left, outer_left, data) = (bench.buffer(&[0; 8]), bench.buffer(&[0]), bench.buffer(&[0; LEN]));
    let (add, count_down) = (kernel(&bench, "add"), kernel(&bench, "count_down"));
    let by = Parameter::any(2_u32);
    let (inner, added);
    inner = bench.graph();
    // SAFETY: the ranges are inside the buffers.
    unsafe {
        added = inner.kernel(&add).read_write(&data).arg(&by).range(LEN).add().unwrap();
        inner.kernel(&count_down).read_write(&left.slice(..1).unwrap()).range(1).add().unwrap();
    }
    let inner = inner.finalize(Finalize::new().updatable()).unwrap();
    let body = bench.graph();
    body.fill(&left.slice(..1).unwrap(), 6_u32).add().unwrap();
    let loops = body.repeat_while(&left.slice(..1).unwrap(), &inner).add().unwrap();
    // SAFETY: as above.
    unsafe { body.kernel(&count_down).read_write(&outer_left).range(1).add().unwrap() };
    let body = body.finalize(Finalize::new().updatable()).unwrap();
    let graph = bench.graph();
    graph.fill(&outer_left, 5_u32).add().unwrap();
    graph.fill(&data, 0_u32).add().unwrap();
    let node = graph.repeat_while(&outer_left, &body).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable().loops(Loops::Ahead)).unwrap();
    let whys: Vec<_> = executable.report().loops.into_iter().map(|of| of.host_decided).collect();
    assert_eq!(whys.iter().flatten().collect::<Vec<_>>(), [&HostDecided::Node(NodeKind::RepeatWhile)], "{whys:?}");
    for value in [2_u32, 3, 70] {
        by.set(value).unwrap();
        inner.update(&added).unwrap();
        body.update(&loops).unwrap();
        executable.update(&node).unwrap();
        let run = executable.submit(&bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        let inside = node.body().unwrap().repeat(&loops).unwrap();
        assert_eq!((run.turns(&node).unwrap(), run.turns(&inside).unwrap()), (5, 30));
        assert_eq!(bench.content(&data), [30 * value; LEN]);
    }
}

/// Automatic loops try both ways, and the report says which is faster. Results never depend on it.
#[test]
fn the_automatic_way_is_measured() {
    let turns = Turns::new();
    let condition = turns.left.slice(..1).unwrap();
    let (auto, node) = turns.executable(Loops::Auto, |graph, body| graph.repeat_while(&condition, body).add().unwrap());
    let ahead = |executable: &Executable| executable.report().loops[0].ahead;
    if std::env::var_os("CLGRAPH_LOOPS").is_none() {
        assert_eq!(ahead(&auto), None);
        assert!(auto.report().to_string().contains("the faster way is not measured yet"), "{}", auto.report());
    }
    let mut expected = None;
    for _ in 0..4 {
        turns.set(200);
        let run = auto.submit(&turns.bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        assert_eq!(run.turns(&node).unwrap(), 200);
        let content = turns.content();
        assert_eq!(*expected.get_or_insert_with(|| content.clone()), content);
    }
    assert!(ahead(&auto).is_some());
}

device_global! {
    static COUNT: u32 = 0;
}

/// What cannot go ahead is decided by the host, and the report says why.
#[test]
fn what_cannot_go_ahead_is_named() {
    let bench = Bench::new();
    let (left, data) = (bench.buffer(&[0]), bench.buffer(&[0; LEN]));
    let text = |options: &str, source: &str| {
        ProgramBuilder::new(&bench.queue).options(options).source(source).unwrap().kernel("down").unwrap()
    };
    let down = "kernel void down(global uint *left) { *left -= 1; }";
    let kernels: Vec<(Kernel, Option<&str>)> = vec![
        (text("", down), None),
        (
            text(
                "-D X=1",
                "#define ONE 1\nvoid f(global uint *a) { *a -= ONE; }\nkernel void down(global uint *left) { f(left); }",
            ),
            None,
        ),
        (text("", &format!("#define NAME down\n{}", down.replace("down", "NAME"))), None),
        (text("-cl-fast-relaxed-math", down), Some("the program is built with -cl-fast-relaxed-math")),
        (text("", &format!("#define MINE(x) x\nMINE({down})")), None),
        (
            text("", &format!("#define MINE(x) x\nconstant int line = __LINE__;\nMINE({down})")),
            Some("macro `MINE`, which it uses, may be more than an expression"),
        ),
    ];
    for (kernel, expected) in kernels {
        let graph = bench.graph();
        // SAFETY: one work-item, one number.
        unsafe { graph.kernel(&kernel).read_write(&left).range(1).add().unwrap() };
        let body = graph.finalize(Finalize::new()).unwrap();
        let why = ends(&bench, &left, &body);
        match (expected, why) {
            (None, None) => {}
            (Some(words), Some(HostDecided::Kernel { kernel: name, why })) => {
                assert!(name == "down" && why.contains(words), "{why}");
            }
            other => panic!("{other:?}"),
        }
    }

    let global = ProgramBuilder::new(&bench.queue).global("count", &COUNT);
    let global = global.source("CLG_DEVICE_GLOBAL(uint, count);\nkernel void down(global uint *left CLG_PARAMS) { *left -= 1; CLG_GLOBAL(count) += 1; }");
    let divided = text("", "kernel void down(global uint *left) { *left -= get_local_id(0) + 1; }");
    let waits = text(
        "",
        "kernel void down(global uint *left, local uint *room) {\n    *room = *left; barrier(CLK_LOCAL_MEM_FENCE); *left = *room - 1;\n}",
    );
    let count_down = text("", down);
    type IsRight<'a> = &'a dyn Fn(&Option<HostDecided>) -> bool;
    let has_room = "kernel void down(global uint *left) { local uint room[1]; room[0] = *left; *left = room[0] - 1; }";
    let has_room = text("", has_room);
    let hides_room = "typedef local volatile uint room_t; kernel void down(global uint *left) { room_t room[1]; room[0] = *left; *left = room[0] - 1; }";
    let hides_room = text("", hides_room);
    // PoCL compiles calls of such kernels wrongly.
    let is_pocl = bench.queue.device().caps().platform == "Portable Computing Language";
    let shares: IsRight<'_> = &|why| match why {
        Some(HostDecided::Kernel { why, .. }) => is_pocl && why.contains("barriers or local memory"),
        why => why.is_none() && !is_pocl,
    };
    type Add<'a> = Box<dyn Fn(&Graph) + 'a>;
    // SAFETY: of all: one work-item, one number.
    let once = |graph: &Graph| _ = unsafe { graph.kernel(&count_down).read_write(&left).range(1).add().unwrap() };
    let global = global.unwrap().kernel("down").unwrap();
    let bodies: Vec<(Add<'_>, IsRight<'_>)> = vec![
        (Box::new(|graph| _ = graph.fill(&left, 0_u32).add().unwrap()), &|why| *why == Some(HostDecided::NoKernel)),
        (
            Box::new(|graph| {
                once(graph);
                graph.host_task(|_| ()).add().unwrap();
            }),
            &|why| *why == Some(HostDecided::Node(NodeKind::HostTask)),
        ),
        (
            Box::new(|graph| {
                once(graph);
                let nothing = NativeCommand::enqueued(|_| Ok::<(), &str>(()));
                // SAFETY: it does nothing.
                unsafe { graph.native_command(nothing.writes(&data)).add() }.unwrap();
            }),
            &|why| *why == Some(HostDecided::Node(NodeKind::NativeCommand)),
        ),
        (
            Box::new(|graph| {
                once(graph);
                let other = bench.graph();
                other.fill(&data, 1_u32).add().unwrap();
                graph.when(&left, &other.finalize(Finalize::new()).unwrap()).add().unwrap();
            }),
            &|why| *why == Some(HostDecided::Node(NodeKind::When)),
        ),
        (
            Box::new(|graph| {
                once(graph);
                graph.fill(&data.cast::<[u32; 8]>().unwrap(), [7; 8]).add().unwrap();
            }),
            &|why| *why == Some(HostDecided::Pattern),
        ),
        (
            // SAFETY: as above.
            Box::new(|graph| _ = unsafe { graph.kernel(&divided).read_write(&left).range(1).add().unwrap() }),
            &|why| *why == Some(HostDecided::Divided { kernel: "down".to_owned() }),
        ),
        (
            Box::new(|graph| {
                // SAFETY: as above.
                _ = unsafe { graph.kernel(&divided).read_write(&left).range(1).work_group(1).add().unwrap() }
            }),
            &|why| why.is_none(),
        ),
        (
            Box::new(|graph| {
                // SAFETY: as above.
                unsafe { graph.kernel(&waits).read_write(&left).local::<u32>(1).range(1).work_group(1).add().unwrap() };
            }),
            shares,
        ),
        (
            Box::new(|graph| {
                // SAFETY: as above.
                _ = unsafe { graph.kernel(&has_room).read_write(&left).range(1).work_group(1).add().unwrap() }
            }),
            shares,
        ),
        (
            Box::new(|graph| {
                // SAFETY: as above.
                _ = unsafe { graph.kernel(&hides_room).read_write(&left).range(1).work_group(1).add().unwrap() }
            }),
            shares,
        ),
        (
            // SAFETY: as above.
            Box::new(|graph| _ = unsafe { graph.kernel(&global).read_write(&left).range(1).add().unwrap() }),
            &|why| matches!(why, Some(HostDecided::Kernel { why, .. }) if why == "the program has device globals"),
        ),
    ];
    for (number, (add, is_right)) in bodies.into_iter().enumerate() {
        let graph = bench.graph();
        add(&graph);
        let why = ends(&bench, &left, &graph.finalize(Finalize::new()).unwrap());
        assert!(is_right(&why), "{number}: {why:?}");
    }
    let kernel = without_source(&bench, down, "down");
    let graph = bench.graph();
    // SAFETY: as above.
    unsafe { graph.kernel(&kernel).read_write(&left).range(1).add().unwrap() };
    let why = ends(&bench, &left, &graph.finalize(Finalize::new()).unwrap());
    let no_source = "the driver has no source of the program";
    assert!(matches!(&why, Some(HostDecided::Kernel { why, .. }) if why == no_source), "{why:?}");
}

/// A kernel of a program that was made from a binary.
fn without_source(bench: &Bench, source: &str, name: &str) -> Kernel {
    let binary = Program::from_source(&bench.queue, source).unwrap().binary(bench.queue.device()).unwrap();
    // SAFETY: the driver has just returned it.
    unsafe { Program::from_binary(&bench.queue, &binary) }.unwrap().kernel(name).unwrap()
}

/// Rule K6: what updates give to a body goes ahead too, or the host decides from then on. The bytes are right either way.
#[test]
fn an_update_may_give_a_body_what_cannot_go_ahead() {
    let bench = Bench::new();
    let (left, data, more) = (bench.buffer(&[0]), bench.buffer(&[0; LEN]), bench.buffer(&[0; LEN]));
    // Parentheses in parameters are not read.
    let minus = "kernel void minus(global uint (*to), uint by) { to[get_global_id(0)] -= by; }";
    let program = Program::from_source(&bench.queue, &format!("{SOURCE}{minus}")).unwrap();
    let [add, minus, count_down] = ["add", "minus", "count_down"].map(|name| program.kernel(name).unwrap());
    let child = bench.graph();
    let launch = |kernel: &Kernel, by: u32| child.kernel(kernel).read_write(&data).arg(by).range(LEN);
    let launches = [launch(&add, 1), launch(&minus, 4), launch(&add, 7)];
    // SAFETY: of all: the ranges are inside the buffers.
    let group = unsafe { child.command_group(launches) }.unwrap();
    let changes = child.command_group_node(&group).add().unwrap();
    // SAFETY: as above.
    unsafe { child.kernel(&count_down).read_write(&left).range(1).add().unwrap() };
    let filled = child.fill(&more, 1_u32).add().unwrap();
    let body = child.finalize(Finalize::new().updatable()).unwrap();
    let graph = bench.graph();
    graph.fill(&left, 40_u32).add().unwrap();
    graph.fill(&data, 0_u32).add().unwrap();
    let node = graph.repeat_while(&left, &body).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable().loops(Loops::Ahead)).unwrap();
    assert_eq!(why(&executable), None);
    let check = |on: &Buffer<u32>, by: u32| {
        for _ in 0..2 {
            let run = executable.submit(&bench.queue).unwrap();
            run.wait_for(LONG).unwrap();
            assert_eq!(run.turns(&node).unwrap(), 40);
            assert_eq!(bench.content(on)[LEN - 1], by.wrapping_mul(40));
        }
    };
    let update = || {
        body.update(&changes).unwrap();
        body.update(&filled).unwrap();
        executable.update(&node).unwrap();
    };
    check(&data, 1);
    child.fill(&more, 6_u32).replace(filled).unwrap();
    for (index, by) in [(1, 0_u32.wrapping_sub(4)), (2, 7), (1, 0_u32.wrapping_sub(4)), (0, 1)] {
        group.set_active_index(index).unwrap();
        update();
        let is_named = |why: &Option<HostDecided>| match why {
            Some(HostDecided::Kernel { kernel, why }) => index == 1 && kernel == "minus" && why.contains("not plain"),
            _ => index != 1 && why.is_none(),
        };
        assert!(is_named(&why(&executable)), "{}", executable.report());
        check(&data, by);
        assert!(is_named(&why(&executable)), "{}", executable.report());
        assert_eq!(bench.content(&more), [6; LEN]);
    }
}

/// Rule K7: memory of the host may begin anywhere, so kernels cannot read a condition there. The report says so.
#[test]
fn a_condition_in_memory_of_the_host_is_read_by_the_host() {
    let bench = Bench::new();
    let (of_host, _tell) = bench.telling_buffer(&[0]);
    let (others, _tell) = bench.telling_buffer(&[0; LEN]);
    let (own, data) = (bench.buffer(&[0]), bench.buffer(&[0; LEN]));
    for (left, expected) in [(&of_host, Some(HostDecided::Anywhere)), (&own, None)] {
        let graph = bench.graph();
        // Fills and copies go ahead byte by byte there.
        graph.fill(&others, 7_u32).add().unwrap();
        graph.copy(&others, &data).add().unwrap();
        // SAFETY: one work-item, one number.
        unsafe { graph.kernel(&kernel(&bench, "count_down")).read_write(left).range(1).add().unwrap() };
        assert_eq!(ends(&bench, left, &graph.finalize(Finalize::new()).unwrap()), expected);
        assert_eq!(bench.content(&data), [7; LEN]);
    }
    let text = HostDecided::Anywhere.to_string();
    assert_eq!(text, "its condition is in memory of the host, which may begin at any address");
}

/// Runs a body until it has counted a number down, and returns why the host decided that.
fn ends(bench: &Bench, left: &Buffer<u32>, body: &Executable) -> Option<HostDecided> {
    let graph = bench.graph();
    graph.fill(left, 9_u32).add().unwrap();
    let node = graph.repeat_while(left, body).at_most(9).add().unwrap();
    let executable = graph.finalize(Finalize::new().loops(Loops::Ahead)).unwrap();
    for _ in 0..2 {
        let run = executable.submit(&bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        assert!((1..=9).contains(&run.turns(&node).unwrap()));
        assert_eq!(bench.content(left), [0]);
    }
    let profiled = graph.finalize(Finalize::new().profiling().loops(Loops::Ahead)).unwrap();
    assert!(profiled.report().loops.iter().all(|of| of.host_decided == Some(HostDecided::Profiled)));
    why(&executable)
}

/// Rule K7: what goes ahead is done by kernels, which must not write memory that a program may only read, nor read what it may only
/// write. Commands may.
#[test]
fn memory_that_kernels_must_not_touch_keeps_a_loop_with_the_host() {
    use opencl3::memory::{self, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY};
    let bench = Bench::new();
    let context = clgraph::InContext::context(&bench.queue).to_opencl3().unwrap();
    let buffer = |flags| {
        // SAFETY: no host pointer.
        let plain = unsafe { memory::Buffer::<u32>::create(&context, flags, LEN, std::ptr::null_mut()) }.unwrap();
        Buffer::<u32>::from_opencl3(&bench.queue, &plain).unwrap()
    };
    let [any, read_only, write_only] = [CL_MEM_READ_WRITE, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY].map(buffer);
    let (left, count_down) = (bench.buffer(&[0]), kernel(&bench, "count_down"));
    type Add<'a> = &'a dyn Fn(&Graph);
    let bodies: [(Add<'_>, bool); 8] = [
        (&|graph| _ = graph.fill(&any, 1_u32).add().unwrap(), true),
        (&|graph| _ = graph.fill(&read_only, 1_u32).add().unwrap(), false),
        (&|graph| _ = graph.copy(&any, &read_only).add().unwrap(), false),
        (&|graph| _ = graph.copy(&write_only, &any).add().unwrap(), false),
        (&|graph| _ = graph.copy(&read_only, &write_only).add().unwrap(), true),
        (&|graph| _ = graph.write(&read_only, [3_u32; LEN]).add().unwrap(), false),
        (&|graph| _ = graph.read(&write_only).add().unwrap(), false),
        (&|graph| _ = graph.read(&read_only).add().unwrap(), true),
    ];
    for (number, (add, may)) in bodies.into_iter().enumerate() {
        let graph = bench.graph();
        add(&graph);
        // SAFETY: one work-item, one number.
        unsafe { graph.kernel(&count_down).read_write(&left).range(1).add().unwrap() };
        let why = ends(&bench, &left, &graph.finalize(Finalize::new()).unwrap());
        assert_eq!(why, (!may).then_some(HostDecided::Access), "{number}");
    }
    // The condition.
    let graph = bench.graph();
    // SAFETY: as above.
    unsafe { graph.kernel(&count_down).read_write(&left).range(1).add().unwrap() };
    graph.copy(&left, &write_only.slice(..1).unwrap()).add().unwrap();
    let body = graph.finalize(Finalize::new()).unwrap();
    let graph = bench.graph();
    graph.write(&left, [3_u32]).add().unwrap();
    let node = graph.repeat_while(&write_only.slice(..1).unwrap(), &body).at_least_once().at_most(9).add().unwrap();
    let executable = graph.finalize(Finalize::new().loops(Loops::Ahead)).unwrap();
    let run = executable.submit(&bench.queue).unwrap();
    run.wait_for(LONG).unwrap();
    assert_eq!((run.turns(&node).unwrap(), why(&executable)), (3, Some(HostDecided::Access)));
}

/// How the environment has a loop run, in a process of its own.
fn child(given: &str) -> String {
    common::result_of_child("the_child_says_how_its_loop_runs", "CLGRAPH_LOOPS", given)
}

/// The other half of the test below.
#[test]
fn the_child_says_how_its_loop_runs() {
    let turns = Turns::new();
    let condition = turns.left.slice(..1).unwrap();
    let body = turns.body(Finalize::new().loops(Loops::HostDecided));
    let graph = turns.bench.graph();
    graph.repeat_while(&condition, &body).add().unwrap();
    let run = |options: Finalize| -> clgraph::Result<String> {
        let of = graph.finalize(options)?.report().loops.remove(0);
        Ok(format!("{:?} {:?}", of.host_decided, of.ahead))
    };
    let both = [Loops::Auto, Loops::Ahead].map(|loops| run(Finalize::new().loops(loops)));
    let [auto, pinned] = both.map(|outcome| outcome.unwrap_or_else(|error| error.to_string()));
    assert_eq!(pinned, "None Some(true)", "the program's own choice counts");
    if std::env::var_os("CLGRAPH_TEST_CHILD").is_some() {
        println!("RESULT {auto} END");
    }
}

/// Rule F1: the environment chooses the way of loops if the program does not.
#[test]
fn the_environment_chooses_if_the_program_does_not() {
    for given in ["", "auto"] {
        assert_eq!(child(given), "None None");
    }
    assert_eq!(child("ahead"), "None Some(true)");
    assert_eq!(child("host-decided"), "Some(Asked) None");
    assert_eq!(
        child("fast"),
        "the environment variable CLGRAPH_LOOPS is `fast`: it must be `auto`, `host-decided` or `ahead`"
    );
}

/// Rules K5, K7: inputs are used in each turn, and a result is that of the last turn, whoever decided it.
#[test]
fn inputs_and_results_of_a_body_go_ahead() {
    let turns = Turns::new();
    let bench = &turns.bench;
    let graph = bench.graph();
    let (add, mix, count_down) = (kernel(bench, "add"), kernel(bench, "combine"), kernel(bench, "count_down"));
    let bytes = turns.other.cast::<u8>().unwrap();
    let before = graph.read(&turns.data.slice(2..5).unwrap()).add().unwrap();
    let whole = graph.write(&turns.data.slice(4..40).unwrap(), [7_u32; 36]).add().unwrap();
    let odd = graph.write(&bytes.slice(3..20).unwrap(), [8_u8; 17]).add().unwrap();
    // SAFETY: the ranges are inside the buffers.
    unsafe {
        graph.kernel(&add).read_write(&turns.data).arg(5_u32).range(LEN).add().unwrap();
        graph.kernel(&mix).read(&turns.other).read_write(&turns.data).range(LEN).add().unwrap();
        graph.kernel(&count_down).read_write(&turns.left).range(1).add().unwrap();
    }
    let after = graph.read(&turns.data).add().unwrap();
    let part = graph.read(&bytes.slice(1..18).unwrap()).add().unwrap();
    let body = graph.finalize(Finalize::new()).unwrap();
    let make = |loops| {
        let graph = bench.graph();
        let node = graph.repeat_while(&turns.left, &body).add().unwrap();
        let sum = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&sum);
        let inside = node.body().unwrap();
        let result = inside.read(&after).unwrap();
        // What waits for the loop sees its results.
        let look = move |task: &HostTaskContext<'_>| {
            let turned = task.get(&result).map(|content| content.to_vec()).unwrap_or_default();
            seen.lock().unwrap().push(turned);
        };
        graph.host_task(look).reads(&turns.data).add().unwrap();
        (graph.finalize(Finalize::new().loops(loops)).unwrap(), inside, sum)
    };
    let all = [Loops::HostDecided, Loops::Ahead, Loops::Auto].map(make);
    assert_eq!(why(&all[1].0), None);
    let mut turned = 0;
    for (round, count) in [0, 1, 4, 5, 30, 3, 70, 2, 0, 9, 33].into_iter().enumerate() {
        let run = |(executable, inside, _): &(Executable, SubGraph, _)| {
            turns.set(count);
            let submission = executable.submit_to(&bench.queue);
            let submission = match round % 3 {
                0 => submission,
                1 => submission.with(&inside.write(&whole).unwrap(), [round as u32; 36]),
                _ => submission.with(&inside.write(&odd).unwrap(), [round as u8; 17]),
            };
            let run = submission.submit().unwrap();
            run.wait_for(LONG).unwrap();
            let of = |read: &HostRead<u32>| run.get(&inside.read(read).unwrap()).map(|result| result.to_vec()).ok();
            let bytes = run.get(&inside.read(&part).unwrap()).map(|result| result.to_vec()).ok();
            (of(&before), of(&after), bytes, turns.content())
        };
        let [host, ahead, auto] = all.each_ref().map(run);
        assert_eq!(host.1.is_some(), count > 0);
        turned += usize::from(count > 0);
        assert_eq!(host, ahead, "{count} turns");
        assert_eq!(host, auto, "{count} turns");
    }
    let [host, ahead, auto] = all.map(|(.., seen)| seen.lock().unwrap().clone());
    assert!(host.iter().filter(|seen| seen.len() == LEN).count() == turned && host == ahead && host == auto);
}

/// Rule K7: the lines of a source have the same numbers in turns ahead, also behind empty ones.
#[test]
fn lines_keep_their_numbers() {
    let bench = Bench::new();
    let source = "\n\n  \n#if __LINE__ == 4\n#define V 5\n#else\n#define V 6\n#endif\n\
        kernel void down(global uint *left, global uint *sum) { *left -= 1; *sum += V + __LINE__; }\n\n";
    let down = Program::from_source(&bench.queue, source).unwrap().kernel("down").unwrap();
    let (left, sum) = (bench.buffer(&[0]), bench.buffer(&[0]));
    let graph = bench.graph();
    // SAFETY: one work-item, and one element of each.
    unsafe { graph.kernel(&down).read_write(&left).read_write(&sum).range(1).add() }.unwrap();
    let body = graph.finalize(Finalize::new()).unwrap();
    for loops in [Loops::HostDecided, Loops::Ahead] {
        let graph = bench.graph();
        graph.fill(&left, 5_u32).add().unwrap();
        graph.fill(&sum, 0_u32).add().unwrap();
        graph.repeat_while(&left, &body).add().unwrap();
        graph.finalize(Finalize::new().loops(loops)).unwrap().submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        assert_eq!(bench.content(&sum), [5 * (5 + 9)], "{loops:?}");
    }
}

/// Rule K7: a kernel of many arguments is called by its guard, or the host decides where a compiler would crash; another kernel of the
/// same program goes ahead all the same.
#[test]
fn kernels_of_many_arguments_go_ahead_or_are_named() {
    let bench = Bench::new();
    let all: Vec<String> = (0..90).map(|at| format!("uint a{at}")).collect();
    let source = format!(
        "kernel void many(global uint *left, {}) {{ *left -= a0 + a89; }}
        kernel void few(global uint *left, uint by) {{ *left -= by; }}",
        all.join(", ")
    );
    let program = Program::from_source(&bench.queue, &source).unwrap();
    let left = bench.buffer(&[0]);
    let is_limited = bench.queue.device().caps().platform == "rusticl";
    for (name, rest) in [("many", 89), ("few", 0)] {
        let graph = bench.graph();
        let kernel = program.kernel(name).unwrap();
        let first = graph.kernel(&kernel).read_write(&left).arg(1_u32);
        let node = (0..rest).fold(first, |node, _| node.arg(0_u32));
        // SAFETY: one work-item, and one element.
        unsafe { node.range(1).add() }.unwrap();
        let body = graph.finalize(Finalize::new()).unwrap();
        let graph = bench.graph();
        graph.fill(&left, 7_u32).add().unwrap();
        let node = graph.repeat_while(&left, &body).add().unwrap();
        let executable = graph.finalize(Finalize::new().loops(Loops::Ahead)).unwrap();
        let run = executable.submit(&bench.queue).unwrap();
        run.wait_for(LONG).unwrap();
        assert_eq!((run.turns(&node).unwrap(), bench.content(&left)), (7, vec![0]), "{name}");
        let why = why(&executable).map(|why| why.to_string());
        let expected = is_limited && rest > 0;
        assert_eq!(why.as_ref().is_some_and(|why| why.contains("91 arguments")), expected, "{why:?}");
        assert_eq!(why.is_some(), expected, "{why:?}");
    }
}

/// Rule K7: a vector of three, for a kernel that is too long to be inlined where its guard calls it. Intel's runtime gets other components
/// there, so the host decides.
#[test]
fn vectors_of_three_arrive_ahead_or_are_named() {
    let bench = Bench::new();
    let lines: String = (0..150)
        .map(|at| {
            let (shift, odd) = (at % 13 + 1, 2_654_435_769_u32.wrapping_add(2 * at));
            format!("r = (r ^ (r >> {shift})) * {odd}u + v.y; for (uint k = 0; k < (r & 3); k++) r = r * 3 + v.z;\n")
        })
        .collect();
    let source = format!(
        "kernel void long_one(global uint *to, uint3 v) {{ uint i = get_global_id(0), r = v.z * i + v.x; {lines} to[i] += r; }}"
    );
    let long_one = Program::from_source(&bench.queue, &source).unwrap().kernel("long_one").unwrap();
    let count_down = kernel(&bench, "count_down");
    let is_lost = bench.queue.device().caps().platform.starts_with("Intel");
    let contents = [Loops::HostDecided, Loops::Ahead].map(|loops| {
        let (left, data) = (bench.buffer(&[3]), bench.buffer(&[1; LEN]));
        let body = bench.graph();
        // SAFETY: each work-item touches its own number.
        unsafe {
            body.kernel(&long_one).read_write(&data).arg([3_u32, 5, 7, 0]).range(LEN).work_group(LEN).add().unwrap();
            body.kernel(&count_down).read_write(&left).range(1).add().unwrap();
        }
        let body = body.finalize(Finalize::new()).unwrap();
        let graph = bench.graph();
        graph.repeat_while(&left, &body).add().unwrap();
        let executable = graph.finalize(Finalize::new().loops(loops)).unwrap();
        executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        if loops == Loops::Ahead {
            let why = why(&executable).map(|why| why.to_string());
            assert_eq!(why.as_ref().is_some_and(|why| why.contains("vector of three components")), is_lost, "{why:?}");
        }
        bench.content(&data)
    });
    assert_eq!(contents[0], contents[1]);
}

/// Rule K7: arguments of every kind: structs, vectors, local and constant memory, images and samplers, shared virtual memory. What
/// cannot go ahead stays with the host, and the bytes are the same.
#[test]
fn arguments_of_every_kind_go_ahead_or_stay_with_the_host() {
    const STRUCTS: &str = "
        typedef struct { uint by; ushort2 pair; uchar last; } Numbers;
        kernel void structs(global uint *to, Numbers n, uint4 v, constant uint *table) {
            size_t at = get_global_id(0);
            to[at] = to[at] * 3 + n.by + n.pair.y + n.last + v.z + table[at % 4];
        }
        kernel void locals(global uint *to, local uint *sums) {
            size_t at = get_global_id(0), in = get_local_id(0);
            sums[in] = to[at];
            barrier(CLK_LOCAL_MEM_FENCE);
            to[at] = to[at] * 3 + sums[15 - in];
        }";
    const IMAGES: &str = "
        kernel void images(global uint *to, read_only image2d_t from, sampler_t sampler) {
            int at = get_global_id(0);
            to[at] = to[at] * 3 + read_imageui(from, sampler, (int2)(at % 8, at / 8)).x;
        }";
    #[repr(C)]
    #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    struct Numbers {
        by: u32,
        pair: [u16; 2],
        last: u8,
        padding: [u8; 3],
    }
    let turns = Turns::new();
    let (bench, table) = (&turns.bench, turns.bench.buffer(&[3, 5, 7, 11]));
    let numbers = Numbers { by: 1_000_000, pair: [9, 700], last: 13, padding: [0; 3] };
    let count_down = kernel(bench, "count_down");
    let same = |what: &str, add: &dyn Fn(&Graph), goes_ahead: bool| {
        let body = bench.graph();
        add(&body);
        // SAFETY: one work-item, and elements that are there.
        unsafe { body.kernel(&count_down).read_write(&turns.left).range(1).add().unwrap() };
        let body = body.finalize(Finalize::new()).unwrap();
        let contents = [Loops::HostDecided, Loops::Ahead, Loops::Auto].map(|loops| {
            let graph = bench.graph();
            graph.repeat_while(&turns.left.slice(..1).unwrap(), &body).add().unwrap();
            let executable = graph.finalize(Finalize::new().loops(loops)).unwrap();
            assert!(loops != Loops::Ahead || !goes_ahead || why(&executable).is_none(), "{}", executable.report());
            let runs = [5, 0, 40].map(|count| {
                turns.set(count);
                executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
                turns.content()
            });
            assert_ne!(runs[0][1], runs[1][1], "{what}: the kernel writes");
            runs
        });
        assert_eq!(contents[0], contents[1], "{what}");
        assert_eq!(contents[0], contents[2], "{what}");
    };
    let program = Program::from_source(&bench.queue, STRUCTS).unwrap();
    let (structs, locals) = (program.kernel("structs").unwrap(), program.kernel("locals").unwrap());
    let add = |graph: &Graph| {
        let launch = graph.kernel(&structs).read_write(&turns.data).arg(numbers).arg([1_u32, 2, 300, 4]);
        // SAFETY: each work-item touches its own element.
        unsafe { launch.read(&table).range(LEN).add().unwrap() };
    };
    same("structs", &add, true);
    let add = |graph: &Graph| {
        let launch = graph.kernel(&locals).read_write(&turns.data).local::<u32>(16);
        // SAFETY: each work-item touches its own element, and there is local memory for a work-group.
        unsafe { launch.range(LEN).work_group(16).add().unwrap() };
    };
    same("locals", &add, false);
    let caps = bench.queue.device().caps();
    for kind in clgraph::MemoryKind::ALL.into_iter().filter(|kind| caps.has_memory(*kind)) {
        let memory = clgraph::Memory::<u32>::with_kind(&bench.queue, kind, LEN).unwrap();
        let (set, mix) = (kernel(bench, "add"), kernel(bench, "combine"));
        let add = |graph: &Graph| {
            graph.fill(&memory, 6_u32).add().unwrap();
            // SAFETY: each work-item touches its own element.
            unsafe {
                graph.kernel(&set).read_write(&memory).arg(5_u32).range(LEN).add().unwrap();
                graph.kernel(&mix).read(&memory).read_write(&turns.data).range(LEN).add().unwrap();
            }
        };
        same(&kind.to_string(), &add, false);
    }
    if caps.images.is_some() {
        let pixels: Vec<[u8; 4]> = (0..64).map(|at| [at, 1, 2, 3]).collect();
        let image = clgraph::Image::with_data(
            &bench.queue,
            clgraph::ImageShape::image_2d(8, 8),
            clgraph::ImageFormat::RGBA_U8,
            &pixels,
        );
        let image = image.unwrap();
        let sampler =
            clgraph::Sampler::new(&bench.queue, false, clgraph::Addressing::ClampToEdge, clgraph::Filter::Nearest)
                .unwrap();
        let images = Program::from_source(&bench.queue, IMAGES).unwrap().kernel("images").unwrap();
        let add = |graph: &Graph| {
            let launch = graph.kernel(&images).read_write(&turns.data).read(&image).arg(&sampler).range(LEN);
            // SAFETY: each work-item touches its own element.
            unsafe { launch.add().unwrap() };
        };
        same("images", &add, false);
        // A command of an image is no kernel.
        let (body, left) = (bench.graph(), bench.buffer(&[0]));
        body.fill_image(&image, [1_u32; 4]).add().unwrap();
        add(&body);
        // SAFETY: one work-item, and an element that is there.
        unsafe { body.kernel(&count_down).read_write(&left).range(1).add().unwrap() };
        let why = ends(bench, &left, &body.finalize(Finalize::new()).unwrap());
        assert!(matches!(why, Some(HostDecided::Node(NodeKind::FillImage))), "{why:?}");
    }
}

/// Rule K7: a kernel from SPIR-V stays with the host, where the device takes SPIR-V.
#[test]
fn kernels_from_spir_v_stay_with_the_host() {
    let turns = Turns::new();
    let bench = &turns.bench;
    // SAFETY: a valid module.
    let program = unsafe { Program::from_il(&bench.queue, include_bytes!("../kernels-cl/specialize.spv")) };
    let takes_it = !bench.queue.device().caps().il_versions.is_empty();
    assert_eq!(program.is_ok(), takes_it);
    let Ok(program) = program else { return };
    let (body, left) = (bench.graph(), bench.buffer(&[0]));
    // SAFETY: each work-item touches its own element.
    unsafe {
        body.kernel(&program.kernel("step_up").unwrap()).read_write(&turns.data).range(LEN).add().unwrap();
        body.kernel(&kernel(bench, "count_down")).read_write(&left).range(1).add().unwrap();
    }
    let why = ends(bench, &left, &body.finalize(Finalize::new()).unwrap());
    assert!(matches!(&why, Some(HostDecided::Kernel { kernel, .. }) if kernel == "step_up"), "{why:?}");
}
