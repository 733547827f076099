//! Promises `elementwise` that submissions check: rule Z4. `CLGRAPH_CHECK_ELEMENTWISE` is for a whole process, so each test runs again as a
//! process of its own that has it.

mod common;

use std::process::Command;
use std::sync::Mutex;

use clgraph::{
    Buffer, Error, Executable, ExecuteKernel, Finalize, Fuse, Graph, Kernel, KernelNode, Memory, MemoryKind, Node,
    NodeKind, Parameter, Path, Program, SetupError, SubmitError, WhyNotFused,
};
use common::Bench;
use log::{Level, LevelFilter, Log, Metadata, Record};

const VARIABLE: &str = "CLGRAPH_CHECK_ELEMENTWISE";
const LEN: usize = 1000;

const SOURCE: &str = "
    #define AT (((get_global_id(2) - get_global_offset(2)) * get_global_size(1) + get_global_id(1) - get_global_offset(1)) \\
                * get_global_size(0) + get_global_id(0) - get_global_offset(0))
    typedef struct { uint by; uchar more[8]; } pair;
    kernel void scale(global uint *x, uint by) { x[AT] = x[AT] * by + 1; }
    kernel void where_am_i(global uint *x) {
        x[AT] = x[AT] * 3 + get_global_id(0) + 5 * get_global_id(1) + 7 * get_global_size(0) + 11 * get_global_offset(1)
              + 13 * get_local_id(0) + 17 * get_num_groups(1) + 19 * get_work_dim();
    }
    kernel void blend(global const uint4 *x, global uint *y, global const uint *table, pair p, uint2 by) {
        const size_t i = AT;
        if (i % 5 != 3) y[i] = x[i].x + x[i].w * by.y + table[(i * 7) % 100] + p.by + p.more[7];
    }
    kernel void count(global uint *x, global uint *others) { x[AT] += 1; others[(AT * 3) % 64] = 5; }
    kernel void shift(global uint *x, uint by) { x[AT + by] = x[AT + by] * 3 + 1; }
    kernel void writes_next(global const uint *x, global uint *y) { y[AT] = x[AT]; if (AT == 500) y[AT + 1] = 7; }
    kernel void reads_next(global const uint *x, global uint *y) { y[AT] = x[AT] + x[AT + 1]; }
    kernel void reads_last(global const uint *x, global uint *y) { y[AT] = x[AT] + y[AT] + x[1999]; }
    kernel void strides(global uint *x) { x[AT * 2] += 1; }
    kernel void halves(global ushort *x) { x[AT] += 1; }
    kernel void smooths(global uint *x, global uint *y, uint n) {
        const size_t i = AT;
        if (i > 0 && i + 1 < n) y[i] = x[i] / 2 + (x[i - 1] + x[i + 1]) / 4;
    }
    kernel void waits(global uint *x) { x[AT] += 1; barrier(CLK_LOCAL_MEM_FENCE); }
    kernel void picks(global uint *x, constant uint *from) { x[AT] += from[0]; }
    kernel void counts(global uint *x) { atomic_inc(&x[AT]); }
";

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Pair {
    by: u32,
    more: [u8; 8],
}

struct Field {
    bench: Bench,
    program: Program,
    x: Buffer<u32>,
    y: Buffer<u32>,
}

impl Field {
    fn new() -> Self {
        let bench = Bench::new();
        let program = Program::from_source(&bench.queue, SOURCE).unwrap();
        let [x, y] = [3, 1009].map(|step| {
            let data: Vec<u32> = (0..4 * LEN as u32 + 3).map(|i| i.wrapping_mul(step * 2_654_435)).collect();
            Buffer::from_slice(&bench.queue, &data).unwrap()
        });
        Self { bench, program, x, y }
    }

    fn kernel(&self, name: &str) -> Kernel {
        self.program.kernel(name).unwrap()
    }

    /// Runs a graph twice.
    fn run(&self, graph: &Graph, options: Finalize) -> Executable {
        let executable = graph.finalize(options).unwrap();
        (0..2).for_each(|_| executable.submit(&self.bench.queue).unwrap().wait().unwrap());
        executable
    }

    /// Tells the parent process what is in memory.
    fn tell(&self) {
        let bytes: Vec<Vec<u32>> = [&self.x, &self.y].map(|buffer| self.bench.content(buffer)).into();
        let sum =
            |bytes: &Vec<u32>| bytes.iter().fold(17_u64, |sum, x| sum.wrapping_mul(31).wrapping_add(u64::from(*x)));
        println!("\nmemory: {:?}", bytes.iter().map(sum).collect::<Vec<_>>());
    }
}

fn is_checked() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|value| value == "1")
}

/// Runs a test again with the variable, and returns what it says of memory.
fn again(test: &str, given: &str) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(VARIABLE, given).env("CLGRAPH_TEST_CHILD", "1");
    let output = child.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    out.lines().filter(|line| line.starts_with("memory: ")).map(str::to_owned).collect()
}

/// Runs a test in two processes, which say the same of memory. Returns whether this is one of them.
fn is_child(test: &str) -> bool {
    if std::env::var_os("CLGRAPH_TEST_CHILD").is_some() {
        return true;
    }
    let [plain, checked] = ["0", "1"].map(|given| again(test, given));
    assert_eq!(plain, checked);
    assert!(!plain.is_empty());
    false
}

/// Adds a launch.
fn add(node: KernelNode<'_>) -> Node {
    // SAFETY: of all in this file: the launches stay inside the buffers. Some break their promises, and nothing is fused.
    unsafe { node.add() }.unwrap()
}

/// The numbers of the launches that the host does.
fn by_host(executable: &Executable) -> Vec<usize> {
    let nodes = executable.report().host_nodes;
    assert!(nodes.iter().all(|node| node.kind == NodeKind::Kernel));
    nodes.into_iter().map(|node| node.node).collect()
}

/// Rule Z4: launches that keep their promises leave the same bytes when they are checked: in one and two dimensions, with offsets and
/// work-groups, in place and out of place, with vectors, structs, slices and memory without a promise, on each path.
#[test]
fn promises_that_are_kept_change_nothing() {
    if !is_child("promises_that_are_kept_change_nothing") {
        return;
    }
    let field = Field::new();
    let Field { x, y, .. } = &field;
    for path in [Path::Auto, Path::Replay, Path::Native, Path::Gated, Path::Queues] {
        let graph = field.bench.graph();
        let table = graph.alloc::<u32>(100).add().unwrap();
        graph.fill(&table, 3).add().unwrap();
        add(graph.kernel(&field.kernel("scale")).read_write(x).arg(5_u32).elementwise(0, 4).range(LEN));
        add(graph
            .kernel(&field.kernel("scale"))
            .read_write(&x.slice(..).unwrap())
            .arg(3_u32)
            .elementwise(0, 4)
            .range(1));
        let node = graph.kernel(&field.kernel("where_am_i")).read_write(x).elementwise(0, 4);
        add(node.range([30, 20]).offset([3, 2]).work_group([6, 4]));
        let pair = Pair { by: 9, more: [1; 8] };
        let node = graph.kernel(&field.kernel("blend")).read(x).write(y).read(&table).arg(pair).arg([1_u32, 2]);
        add(node.elementwise(0, 16).elementwise(1, 4).range([10, 10, 9]).offset([0, 7, 0]));
        // Not in the same memory as the other arguments, and overlapping where both are read only.
        add(graph.kernel(&field.kernel("count")).read_write(x).write(&table).elementwise(0, 4).range(777));
        // A larger part than is touched, and more work-items than there are bytes to touch.
        add(graph.kernel(&field.kernel("halves")).read_write(y).elementwise(0, 2).range(LEN));
        add(graph.kernel(&field.kernel("scale")).null().arg(5_u32).elementwise(0, 4).range(0));
        let executable = field.run(&graph, Finalize::new().path(path).fuse(Fuse::Now));
        let report = executable.report();
        if is_checked() {
            assert_eq!(by_host(&executable), [2, 3, 4, 5, 6, 7, 8], "{report}");
            assert!(report.not_fused.iter().all(|of| of.why == WhyNotFused::Checked), "{report}");
            assert_eq!((report.fused.len(), report.not_fused.len()), (0, 7), "{report}");
        } else {
            assert!(by_host(&executable).is_empty());
        }
        field.tell();
    }
}

/// Rule Z4: the same in loops, sub-graphs and recorded graphs, and with profiles.
#[test]
fn promises_are_checked_in_loops_and_sub_graphs() {
    if !is_child("promises_are_checked_in_loops_and_sub_graphs") {
        return;
    }
    let field = Field::new();
    let (bench, scale) = (&field.bench, field.kernel("scale"));
    let part = bench.graph();
    add(part.kernel(&scale).read_write(&field.x).arg(7_u32).elementwise(0, 4).range(LEN));
    let part = part.finalize(Finalize::new()).unwrap();
    let (broken, other) = (bench.graph(), bench.buffer(&[1; LEN + 1]));
    add(broken.kernel(&field.kernel("shift")).read_write(&other).arg(1_u32).elementwise(0, 4).range(LEN));
    let broken = broken.finalize(Finalize::new()).unwrap();
    let graph = bench.graph();
    graph.sub_graph(&part).add().unwrap();
    graph.repeat(3, &part).add().unwrap();
    graph.repeat(300, &part).add().unwrap();
    let left = bench.buffer(&[2]);
    let turn = bench.graph();
    add(turn.kernel(&scale).read_write(&field.y).arg(3_u32).elementwise(0, 4).range(10));
    turn.fill(&left, 0).add().unwrap();
    let turn = turn.finalize(Finalize::new()).unwrap();
    graph.repeat_while(&left, &turn).add().unwrap();
    for options in [Finalize::new(), Finalize::new().profiling(), Finalize::new().updatable()] {
        let executable = field.run(&graph, options.clone());
        assert!(!executable.report().host_nodes.is_empty());
        field.tell();
        for in_loop in [false, true] {
            let graph = bench.graph();
            if in_loop {
                graph.repeat(2, &broken).add().unwrap();
            } else {
                graph.sub_graph(&broken).add().unwrap();
            }
            let run = graph.finalize(options.clone()).unwrap().submit(&bench.queue).unwrap().wait();
            assert_eq!(run.is_err(), is_checked(), "{run:?}");
            let is_it = |error: Error| matches!(error, Error::Submit(SubmitError::BrokenPromise { strayed, .. }) if strayed.wrote);
            assert!(run.map_or_else(is_it, |()| true));
        }
    }
    // By a queue.
    let graph = bench.graph();
    graph.begin_recording(&bench.queue).unwrap();
    let mut launch = ExecuteKernel::new(&scale);
    launch.set_arg_read_write(&field.x).set_arg(&2_u32).set_elementwise(0, 4).set_global_work_size(LEN);
    // SAFETY: as above.
    unsafe { launch.enqueue_nd_range(&bench.queue) }.unwrap();
    graph.end_recording(&bench.queue).unwrap();
    let executable = field.run(&graph, Finalize::new());
    assert_eq!(executable.report().host_nodes.len(), usize::from(is_checked()));
    field.tell();
}

/// Rule Z4: a broken promise is an error of the submission. It names kernel, argument, byte and work-items, and what they did there. The
/// launch has run, what comes after it has not, and the executable can be submitted again.
#[test]
fn broken_promises_are_errors_that_say_how() {
    if std::env::var_os("CLGRAPH_TEST_CHILD").is_none() {
        again("broken_promises_are_errors_that_say_how", "1");
        return;
    }
    let field = Field::new();
    let (bench, queue) = (&field.bench, &field.bench.queue);
    let (x, y) = (&field.x, &field.y);
    let graphs: Vec<Graph> = (0..9).map(|_| bench.graph()).collect();
    let next = std::cell::RefCell::new(graphs.iter());
    let launch = |name: &str| next.borrow_mut().next().unwrap().kernel(&field.kernel(name));
    let two = |name: &str| launch(name).read(x).read_write(y);
    let one = |name: &str| launch(name).read_write(x);
    let remedy = ": correct the kernel or the number of bytes, or take the promise back";
    let first = "when only work-items 0 to 250 ran, ";
    let wrote =
        |byte: usize, of: usize| format!("byte {byte} of argument {of}, which belongs to none of them, was written");
    let read = |byte: usize, of: usize, from: usize| {
        format!(
            "byte {byte} of argument {of} depended on bytes of argument {from} that belong to none of them, so they were \
             read"
        )
    };
    let cases: Vec<(KernelNode<'_>, String)> = vec![
        (
            two("writes_next").elementwise(1, 4).range(LEN),
            format!(
                "`writes_next`) breaks its promise `elementwise(1, 4)`: when only work-items 251 to 500 ran, {}",
                wrote(2004, 1)
            ),
        ),
        (
            two("reads_next").elementwise(0, 4).elementwise(1, 4).range(LEN),
            format!("`reads_next`) breaks its promise `elementwise(0, 4)`: {first}{}", read(1000, 1, 0)),
        ),
        (
            two("reads_last").elementwise(0, 4).elementwise(1, 4).range(LEN),
            format!("`reads_last`) breaks its promise `elementwise(0, 4)`: {first}{}", read(0, 1, 0)),
        ),
        // In place, off by one.
        (
            one("shift").arg(1_u32).elementwise(0, 4).range(LEN),
            format!("`shift`) breaks its promise `elementwise(0, 4)`: {first}{}", wrote(1004, 0)),
        ),
        (
            one("shift").arg(3_u32).elementwise(0, 4).range(1),
            "`shift`) breaks its promise `elementwise(0, 4)`: when only work-item 0 ran, ".to_owned() + &wrote(12, 0),
        ),
        // The bytes of a work-item are too few, or too many.
        (
            one("scale").arg(3_u32).elementwise(0, 2).range(LEN),
            format!("`scale`) breaks its promise `elementwise(0, 2)`: {first}{}", wrote(502, 0)),
        ),
        (
            one("scale").arg(3_u32).elementwise(0, 16).range(LEN),
            format!(
                "`scale`) breaks its promise `elementwise(0, 16)`: when only work-items 251 to 500 ran, {}",
                wrote(1004, 0)
            ),
        ),
        (
            one("strides").elementwise(0, 4).range([40, 25]).offset([7, 3]),
            format!("`strides`) breaks its promise `elementwise(0, 4)`: {first}{}", wrote(1008, 0)),
        ),
        (
            two("smooths").arg(LEN as u32).elementwise(0, 4).elementwise(1, 4).range([10, 10, 10]),
            format!("`smooths`) breaks its promise `elementwise(0, 4)`: {first}{}", read(1000, 1, 0)),
        ),
    ];
    for (number, ((node, said), graph)) in cases.into_iter().zip(&graphs).enumerate() {
        let before = [x, y].map(|buffer| bench.content(buffer));
        let node = add(node);
        graph.fill(y, 8).after(node).add().unwrap();
        let executable = graph.finalize(Finalize::new()).unwrap();
        for _ in 0..2 {
            let error = executable.submit(queue).unwrap().wait().unwrap_err();
            assert_eq!(error.to_string(), format!("node 0 (kernel {said}{remedy}"));
            assert!(matches!(error, Error::Submit(SubmitError::BrokenPromise { node: of, .. }) if of == node));
            assert_ne!(bench.content(y)[..9], [8; 9], "{number}");
        }
        assert_ne!([x, y].map(|buffer| bench.content(buffer)), before, "{number}");
    }
}

/// Rule Z4: promises of memory of each kind are checked, and of parts of buffers that begin at the same byte.
#[test]
fn memory_of_each_kind_is_checked() {
    if std::env::var_os("CLGRAPH_TEST_CHILD").is_none() {
        again("memory_of_each_kind_is_checked", "1");
        return;
    }
    let field = Field::new();
    let (bench, shift) = (&field.bench, field.kernel("shift"));
    let run = |graph: &Graph| graph.finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap().wait();
    let at = bench.queue.device().caps().sub_buffer_align.div_ceil(4).max(1);
    for kind in MemoryKind::ALL {
        if !bench.queue.device().caps().has_memory(kind) {
            continue;
        }
        let memory = Memory::<u32>::with_kind(&bench.queue, kind, LEN + at).unwrap();
        let graph = bench.graph();
        graph.fill(&memory, 5).add().unwrap();
        add(graph.kernel(&shift).read_write(&memory).arg(0_u32).elementwise(0, 4).range(LEN));
        // The kernel gets another address.
        add(graph.kernel(&shift).read_write(&memory.slice(at..).unwrap()).arg(0_u32).elementwise(0, 4).range(LEN));
        let result = graph.read(&memory).add().unwrap();
        let executable = graph.finalize(Finalize::new()).unwrap();
        let done = executable.submit(&bench.queue).unwrap();
        done.wait().unwrap();
        let expected: Vec<u32> = (0..LEN + at).map(|i| if (at..LEN).contains(&i) { 49 } else { 16 }).collect();
        assert_eq!(*done.get(&result).unwrap(), expected, "{kind}");
        add(graph.kernel(&shift).read_write(&memory).arg(1_u32).elementwise(0, 4).range(LEN));
        let broken = run(&graph).unwrap_err();
        assert!(
            matches!(broken, Error::Submit(SubmitError::BrokenPromise { ref strayed, .. }) if strayed.byte == 1004),
            "{kind}: {broken}"
        );
    }
    let graph = bench.graph();
    let part = field.x.slice(..2 * LEN).unwrap();
    let node = graph.kernel(&field.kernel("reads_next")).read(&part).read_write(&field.x);
    add(node.elementwise(0, 4).elementwise(1, 4).range(LEN));
    let broken = run(&graph).unwrap_err();
    assert!(
        matches!(broken, Error::Submit(SubmitError::BrokenPromise { ref strayed, .. }) if !strayed.wrote),
        "{broken}"
    );
}

/// Rule Z4: updates bring other arguments, ranges and promises, and those are checked.
#[test]
fn what_updates_bring_is_checked() {
    if std::env::var_os("CLGRAPH_TEST_CHILD").is_none() {
        again("what_updates_bring_is_checked", "1");
        return;
    }
    let field = Field::new();
    let (bench, x) = (&field.bench, &field.x);
    let (shift, by) = (field.kernel("shift"), Parameter::within(0_u32, 0..=3).unwrap());
    for path in [Path::Auto, Path::Replay, Path::Native] {
        let graph = bench.graph();
        by.set(0).unwrap();
        let node = add(graph.kernel(&shift).read_write(x).arg(&by).range_up_to(LEN).range(LEN));
        let free = add(graph.kernel(&shift).read_write(&field.y).arg(&by).range(LEN));
        let executable = graph.finalize(Finalize::new().path(path).updatable()).unwrap();
        let run = || executable.submit(&bench.queue).unwrap().wait();
        let launch = |bytes| {
            let node = graph.kernel(&shift).read_write(x).arg(&by).range_up_to(LEN).range(LEN);
            if bytes > 0 { node.elementwise(0, bytes) } else { node }
        };
        run().unwrap();
        by.set(1).unwrap();
        executable.update(&node).unwrap();
        run().unwrap();
        // A promise, which the launch does not keep.
        // SAFETY: as above.
        unsafe { launch(4).replace(node) }.unwrap();
        executable.update_from(&graph).unwrap();
        let is_broken = |outcome: Result<(), Error>| match outcome {
            Err(Error::Submit(SubmitError::BrokenPromise { node: of, strayed, .. })) => of == node && strayed.wrote,
            _ => false,
        };
        assert!(is_broken(run()), "{path}");
        by.set(0).unwrap();
        executable.update(&node).unwrap();
        run().unwrap();
        graph.set_nd_range(node, [1]).unwrap();
        by.set(2).unwrap();
        executable.update_from(&graph).unwrap();
        assert!(is_broken(run()), "{path}");
        // SAFETY: as above.
        unsafe { launch(0).replace(node) }.unwrap();
        executable.update_from(&graph).unwrap();
        run().unwrap();
        assert_ne!(node, free);
    }
}

/// Stores clgraph's warnings.
struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("clgraph") && metadata.level() == Level::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

static LINES: Lines = Lines(Mutex::new(Vec::new()));

/// Rule Z4: a launch that cannot be checked runs as always, and the log says why it is not checked.
#[test]
fn launches_that_cannot_be_checked_run_and_are_named() {
    if !is_child("launches_that_cannot_be_checked_run_and_are_named") {
        return;
    }
    log::set_logger(&LINES).unwrap();
    log::set_max_level(LevelFilter::Warn);
    let field = Field::new();
    let (bench, x) = (&field.bench, &field.x);
    let graph = bench.graph();
    let align = bench.queue.device().caps().sub_buffer_align.div_ceil(4).max(1);
    // No work-item reads what another one writes, so the order of the work-items does not matter.
    let at = align * 64_usize.div_ceil(align);
    assert!(at <= LEN);
    let (low, high) = (x.sub_buffer(..LEN).unwrap(), x.sub_buffer(at..at + LEN).unwrap());
    add(graph.kernel(&field.kernel("waits")).read_write(x).elementwise(0, 4).range(64).work_group(8));
    add(graph.kernel(&field.kernel("picks")).read_write(x).read(&field.y).elementwise(0, 4).range(64));
    add(graph.kernel(&field.kernel("where_am_i")).read_write(x).elementwise(0, 4).range(64));
    let blend = graph.kernel(&field.kernel("reads_next")).read(x).read_write(x);
    add(blend.elementwise(1, 4).range(1));
    let blend = graph.kernel(&field.kernel("reads_next")).read(&low).read_write(&high);
    add(blend.elementwise(0, 4).elementwise(1, 4).range(at - 1));
    add(graph.kernel(&field.kernel("counts")).read_write(x).elementwise(0, 4).range(64));
    let binary = field.program.binary(bench.queue.device()).unwrap();
    // SAFETY: the driver has just returned it.
    let binary = unsafe { Program::from_binary(&bench.queue, &binary) }.unwrap();
    add(graph.kernel(&binary.kernel("scale").unwrap()).read_write(x).arg(3_u32).elementwise(0, 4).range(64));
    field.run(&graph, Finalize::new());
    field.tell();
    let expected = [
        "node 0 (kernel `waits`) is not checked, although CLGRAPH_CHECK_ELEMENTWISE says so: its work-items wait for each \
         other, or share local memory",
        "node 1 (kernel `picks`) is not checked, although CLGRAPH_CHECK_ELEMENTWISE says so: argument 1 is neither a \
         value nor plain global memory",
        "node 2 (kernel `where_am_i`) is not checked, although CLGRAPH_CHECK_ELEMENTWISE says so: it asks how its range is \
         divided into work-groups, and the driver divides it",
        "node 3 (kernel `reads_next`) is not checked, although CLGRAPH_CHECK_ELEMENTWISE says so: arguments 0 and 1 are \
         the same memory with different promises",
        "node 4 (kernel `reads_next`) is not checked, although CLGRAPH_CHECK_ELEMENTWISE says so: the memory of arguments \
         0 and 1 overlaps, and one of them is written",
        "node 5 (kernel `counts`) is not checked, although CLGRAPH_CHECK_ELEMENTWISE says so: what `atomic_inc` does \
         depends on the order of work-items",
        "node 6 (kernel `scale`) is not checked, although CLGRAPH_CHECK_ELEMENTWISE says so: the driver has no source \
         of the program",
    ];
    let executable = graph.finalize(Finalize::new().allow_conflicts()).unwrap();
    assert!(executable.report().host_nodes.is_empty());
    // Nor are the launches of its sub-graphs.
    let outer = bench.graph();
    outer.sub_graph(&graph.finalize(Finalize::new()).unwrap()).add().unwrap();
    assert!(outer.finalize(Finalize::new().allow_conflicts()).unwrap().report().host_nodes.is_empty());
    let said = LINES.0.lock().unwrap().iter().any(|line| line.contains("it has `Finalize::allow_conflicts`"));
    assert_eq!(said, is_checked());
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let lines: Vec<String> = LINES.0.lock().unwrap().iter().filter(|line| line.contains("node")).cloned().collect();
        if !is_checked() || lines.len() >= expected.len() {
            assert_eq!(lines, if is_checked() { &expected[..] } else { &[] });
            break;
        }
        assert!(std::time::Instant::now() < end, "{lines:?}");
        std::thread::yield_now();
    }
}

/// Rule E1: another value of the variable is an error.
#[test]
fn another_value_of_the_variable_is_an_error() {
    if std::env::var_os("CLGRAPH_TEST_CHILD").is_none() {
        again("another_value_of_the_variable_is_an_error", "yes");
        return;
    }
    let graph = Bench::new().graph();
    let error = graph.finalize(Finalize::new()).unwrap_err();
    let text = "the environment variable CLGRAPH_CHECK_ELEMENTWISE is `yes`: it must be `0` or `1`";
    assert_eq!(error.to_string(), text);
    assert!(matches!(error, Error::Setup(SetupError::Environment { variable: VARIABLE, .. })));
}
