//! Launches that each work-item does on its own, one after the other: rule Z4. Memory is the same, to the last bit, and launches that
//! others could see half done stay apart.

mod common;

use std::time::Duration;

use clgraph::{
    Buffer, BuildCause, Error, ExecuteKernel, Finalize, Fuse, FusedForm, Graph, Kernel, KernelNode, Parameter, Path,
    Program, ProgramBuilder, Report, WhyNotFused,
};
use common::Bench;

const LONG: Duration = Duration::from_secs(120);
/// More work-items than launches in turn may have.
const LEN: usize = 24_576;

/// Each kernel touches its own element of `x`, `y` and `z`, and any of `from`.
const SOURCE: &str = "
    #define AT ((get_global_id(2) - get_global_offset(2)) * get_global_size(1) * get_global_size(0) \\
               + (get_global_id(1) - get_global_offset(1)) * get_global_size(0) + get_global_id(0) - get_global_offset(0))
    typedef struct { float by; int more[2]; } pair;
    float twice(float x) { return x * 2.0f; }
    kernel void scale(global float *x, float by) { x[AT] = x[AT] * by + 0.5f; }
    kernel void blend(global float *x, global const float *y, float4 by, pair other, global const float *from) {
        const size_t i = AT;
        if (i % 3 == 1) return;
        by.x += twice(y[i]) / (x[i] + 3.0f);
        x[i] = by.x + by.w * other.by + other.more[1] + from[(i * 7 + 3) % 512];
    }
    kernel void where_am_i(global float *x) {
        x[AT] += get_global_id(0) + 2 * get_global_id(1) + 4 * get_global_id(2) + 8 * get_work_dim() + 16 * get_global_size(2)
               + 32 * get_global_offset(1) + 64 * (int)(get_global_linear_id() == AT) + get_global_id(7);
    }
    kernel void groups(global float *x) {
        x[AT] += get_local_id(0) + 2 * get_local_id(1) + 4 * get_group_id(0) + 8 * get_num_groups(1) + 16 * get_local_size(0)
               + 32 * get_local_linear_id() + get_enqueued_local_size(1);
    }
    kernel void wide(global float4 *x, global const float *y) { x[AT] = x[AT].yzwx + y[AT]; }
    kernel void over(global const float *x, global float *y, float by) { y[AT] = x[AT] * 0.75f + by; }
    kernel void shifted(global float *x, global const float *y) { x[AT] += y[(AT + 1) % 512]; }
";

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Pair {
    by: f32,
    more: [i32; 2],
}

/// A program over three buffers that are written, and one that is only read.
struct Field {
    bench: Bench,
    buffers: [Buffer<f32>; 3],
    from: Buffer<f32>,
    kernels: Vec<Kernel>,
}

impl Field {
    fn new() -> Self {
        let bench = Bench::new();
        let options = if bench.queue.device().caps().version.major >= 3 { "-cl-std=CL3.0" } else { "-cl-std=CL2.0" };
        let program = ProgramBuilder::new(&bench.queue).options(options).source(SOURCE).unwrap();
        let names = ["scale", "blend", "where_am_i", "groups", "wide", "shifted", "over"];
        let kernels = names.iter().map(|name| program.kernel(name).unwrap()).collect();
        let buffers = [(); 3].map(|()| Buffer::new(&bench.queue, LEN * 4).unwrap());
        let from: Vec<f32> = (0..512).map(|i| i as f32 * 0.11).collect();
        let from = Buffer::from_slice(&bench.queue, &from).unwrap();
        Self { bench, buffers, from, kernels }
    }

    fn start(&self) {
        for (at, buffer) in self.buffers.iter().enumerate() {
            let data: Vec<f32> = (0..LEN * 4).map(|i| (i % 1009) as f32 * 0.37 + at as f32).collect();
            self.bench.queue.enqueue_write_buffer(buffer, 0, &data, &[]).unwrap();
        }
        self.bench.queue.finish().unwrap();
    }

    fn bits(&self) -> Vec<Vec<u32>> {
        self.buffers.iter().map(|buffer| self.bench.content(&buffer.cast().unwrap())).collect()
    }

    /// A launch of `scale`, `blend`, `where_am_i` or `groups` on buffers in turn, with the promises. Its range is the caller's.
    fn node<'g>(&self, graph: &'g Graph, number: usize) -> KernelNode<'g> {
        let [x, y] = [0, 1].map(|at| &self.buffers[(number + at) % 3]);
        let by = number as f32 * 0.3 + 0.1;
        let node = graph.kernel(&self.kernels[number % 4]);
        match number % 4 {
            0 => node.read_write(x).arg(by).elementwise(0, 4),
            1 => {
                let pair = Pair { by: 0.25, more: [3, number as i32] };
                let node = node.elementwise(1, 4).read_write(x).read(y).arg([by, 1.0, 2.0, by * 0.5]).arg(pair);
                node.read(&self.from).elementwise(0, 4)
            }
            _ => node.read_write(x).elementwise(0, 4),
        }
    }

    /// Runs the same graph fused and not. Returns the report of the fused one.
    fn compare(&self, graph: &Graph, path: Path) -> Report {
        let [expected, found] = [Fuse::Off, Fuse::Now].map(|fuse| {
            let executable = graph.finalize(Finalize::new().path(path).fuse(fuse)).unwrap();
            self.start();
            for _ in 0..2 {
                executable.submit(&self.bench.queue).unwrap().wait_for(LONG).unwrap();
            }
            (self.bits(), executable.report())
        });
        assert!(found.0 == expected.0, "{path}\n{}", found.1);
        found.1
    }
}

/// Whether work-items of a fused kernel, or work-groups, do not wait for others.
fn is_promised(form: FusedForm) -> bool {
    [FusedForm::EachItem, FusedForm::EachGroup].contains(&form)
}

/// The launches of each fused kernel, and whether its work-items do not wait for others.
fn forms(report: &Report) -> Vec<(usize, bool)> {
    report.fused.iter().map(|of| (of.nodes.len(), is_promised(of.form))).collect()
}

/// Rule Z4: chains over three buffers in one, two and three dimensions, with offsets and work-groups, on each path.
#[test]
fn a_chain_of_many_work_items_is_one_launch_and_changes_the_same_bytes() {
    let field = Field::new();
    for path in [Path::Auto, Path::Replay, Path::Native, Path::Gated, Path::Queues] {
        let graph = field.bench.graph();
        for number in 0..12 {
            let node = field.node(&graph, number).range([96, 64, 4]).offset([3, 1, 2]).work_group([8, 4, 1]);
            // SAFETY: of all in this file: work-items touch their own elements of memory that is promised, inside the buffers.
            unsafe { node.add() }.unwrap();
        }
        let report = field.compare(&graph, path);
        assert_eq!(forms(&report), [(12, true)], "{report}");
        let how = report.fused[0].form.to_string();
        assert!(report.to_string().contains(&format!("12 commands by {how}: nodes 0 to 11")), "{report}");
        assert_eq!(report.not_fused, []);
    }
    // Ranges without work-groups, which kernels that ask for them do not have.
    let graph = field.bench.graph();
    for number in (0..28).filter(|number| number % 4 != 3) {
        let node = field.node(&graph, number);
        let node = match number / 7 {
            0 => node.range(LEN - 5),
            1 => node.range([128, 190]).offset([5, 0]),
            2 => node.range([24, 32, 31]).offset([0, 0, 9]),
            // Rows of more than one part.
            _ => node.range([1_500, 15]).offset([0, 7]),
        };
        // SAFETY: as above.
        unsafe { node.add() }.unwrap();
    }
    let report = field.compare(&graph, Path::Auto);
    assert_eq!(forms(&report), [(6, true), (5, true), (5, true), (5, true)], "{report}");
}

/// Rule Z4: on some drivers work-groups do launches on their own that compute more than a little, and then more of them in one kernel.
#[test]
fn work_items_do_little_on_their_own_and_work_groups_more() {
    let field = Field::new();
    let [x, y, _] = &field.buffers;
    let caps = field.bench.queue.device().caps();
    let source = "
        kernel void add(global float *x, global const float *y, float by) {
            size_t i = get_global_id(0);
            x[i] = x[i] * by + y[i];
        }
        kernel void dense(global float *x, global const float *y) {
            size_t i = get_global_id(0);
            x[i] = fmax(x[i] * 0.5f, sqrt(fabs(y[i])));
        }";
    let program = Program::from_source(&field.bench.queue, source).unwrap();
    let [add, dense] = ["add", "dense"].map(|name| program.kernel(name).unwrap());
    let has_groups =
        !caps.gpu && ["Portable Computing Language", "Intel(R)"].iter().any(|of| caps.platform.starts_with(of));
    // One in four hundred is done as the others are, and eight are not. More than 1 000 bytes of numbers are in a table.
    for more in [0, 1, 8] {
        let graph = field.bench.graph();
        for number in 0..400 {
            let [to, from] = if number % 2 == 0 { [x, y] } else { [y, x] };
            let node = graph.kernel(&add).read_write(to).read(from).arg(0.001 * number as f32);
            // SAFETY: as above.
            unsafe { node.elementwise(0, 4).elementwise(1, 4).range(LEN - 3).add() }.unwrap();
        }
        for _ in 0..more {
            let node = graph.kernel(&dense).read_write(x).read(y);
            // SAFETY: as above.
            unsafe { node.elementwise(0, 4).elementwise(1, 4).range(LEN - 3).add() }.unwrap();
        }
        let report = field.compare(&graph, Path::Auto);
        let form = if has_groups && more > 1 { FusedForm::EachGroup } else { FusedForm::EachItem };
        assert!(report.fused.iter().all(|of| of.form == form), "{report}");
        assert_eq!(report.fused.iter().map(|of| of.nodes.len()).sum::<usize>(), 400 + more, "{report}");
        assert_eq!(report.fused.len() == 1, form == FusedForm::EachGroup, "{report}");
    }
}

/// Rule Z4: what another work-item could touch keeps launches apart.
#[test]
fn launches_whose_work_items_share_bytes_stay_apart() {
    let field = Field::new();
    let [x, y, z] = &field.buffers;
    let [scale, wide, shifted] = [0, 4, 5].map(|at| &field.kernels[at]);
    let counts = |add: &dyn Fn(&Graph)| {
        let graph = field.bench.graph();
        add(&graph);
        let report = field.compare(&graph, Path::Auto);
        assert!(report.fused.iter().all(|of| is_promised(of.form)), "{report}");
        (report.fused.iter().map(|of| of.nodes.len()).collect::<Vec<_>>(), report)
    };
    // SAFETY: of all below: as above.
    let add = |node: KernelNode<'_>| _ = unsafe { node.range(LEN).add() }.unwrap();
    let scaled = |graph: &Graph, x: &Buffer<f32>| {
        // SAFETY: as above.
        _ = unsafe { graph.kernel(scale).read_write(x).arg(0.5_f32).elementwise(0, 4).range(LEN).add() }.unwrap();
    };
    // Another number of bytes.
    let (fused, _) = counts(&|graph| {
        scaled(graph, x);
        scaled(graph, x);
        add(graph.kernel(wide).read_write(x).read(y).elementwise(0, 16).elementwise(1, 4));
        add(graph.kernel(wide).read_write(x).read(z).elementwise(0, 16));
        scaled(graph, y);
    });
    assert_eq!(fused, [2, 3], "`z` is only read");
    let (fused, _) = counts(&|graph| {
        scaled(graph, x);
        add(graph.kernel(wide).read_write(x).read(y).elementwise(0, 16).elementwise(1, 4));
        scaled(graph, x);
    });
    assert!(fused.is_empty());
    // Memory that is written, and read at another index.
    let (fused, report) = counts(&|graph| {
        scaled(graph, x);
        scaled(graph, y);
        add(graph.kernel(shifted).read_write(x).read(y).elementwise(0, 4));
        scaled(graph, x);
        scaled(graph, y);
    });
    assert_eq!(fused, [2, 2], "{report}");
    // Memory that is only read.
    let (fused, _) = counts(&|graph| {
        scaled(graph, x);
        add(graph.kernel(shifted).read_write(x).read(y).elementwise(0, 4));
        scaled(graph, z);
    });
    assert_eq!(fused, [3]);
    // No promise at all.
    let (fused, report) = counts(&|graph| {
        (0..2).for_each(|_| add(graph.kernel(scale).read_write(x).arg(0.5_f32)));
        add(graph.kernel(wide).read_write(x).read(y).elementwise(1, 4));
    });
    let why = vec![WhyNotFused::Size { items: LEN as u64 }; 3];
    assert_eq!((fused, report.not_fused.into_iter().map(|of| of.why).collect::<Vec<_>>()), (vec![], why));
    // Other ranges, and the same range at another offset.
    let (fused, _) = counts(&|graph| {
        for (range, offset) in [(LEN, 0), (LEN, 0), (LEN, 64), (LEN, 64), (LEN - 64, 0), (LEN - 64, 0)] {
            let node = graph.kernel(scale).read_write(x).arg(0.5_f32).elementwise(0, 4).range(range).offset(offset);
            // SAFETY: as above.
            unsafe { node.add() }.unwrap();
        }
    });
    assert_eq!(fused, [2, 2, 2]);
}

/// Rule Z4: parts of a buffer fuse if they start at the same byte. A slice does not move the start.
#[test]
fn parts_of_a_buffer_have_to_start_at_the_same_byte() {
    let field = Field::new();
    let (scale, x) = (&field.kernels[0], &field.buffers[0]);
    let low = x.sub_buffer(..LEN).unwrap();
    let other = x.sub_buffer(LEN / 2..LEN * 2).unwrap();
    let high = x.sub_buffer(LEN..2 * LEN).unwrap();
    let fused = |first: &Buffer<f32>, second: &Buffer<f32>| {
        let graph = field.bench.graph();
        for buffer in [first, second, first] {
            let node = graph.kernel(scale).read_write(buffer).arg(0.5_f32).elementwise(0, 4).range(LEN);
            // SAFETY: as above.
            unsafe { node.add() }.unwrap();
        }
        let report = field.compare(&graph, Path::Auto);
        report.fused.iter().map(|of| of.nodes.len()).sum::<usize>()
    };
    assert_eq!(fused(x, x), 3);
    assert_eq!(fused(&low, &high), 3, "no byte is in both");
    assert_eq!(fused(&low, &other), 0);
    assert_eq!(fused(&high, &other), 0);
    let graph = field.bench.graph();
    for _ in 0..2 {
        let slice = x.slice(..LEN).unwrap();
        let node = graph.kernel(scale).read_write(&slice).arg(0.5_f32).elementwise(0, 4).range(LEN);
        // SAFETY: as above.
        unsafe { node.add() }.unwrap();
    }
    assert_eq!(forms(&field.compare(&graph, Path::Auto)), [(2, true)]);
}

/// Rules Z4, M3: allocations of the graph may share bytes, and then are the same memory only if they start at the same byte.
#[test]
fn memory_of_the_graph_that_shares_bytes_is_the_same_memory() {
    let field = Field::new();
    let (over, [a, b, _]) = (&field.kernels[6], &field.buffers);
    let graph = field.bench.graph();
    let mut last = graph.alloc::<f32>(LEN).add().unwrap();
    graph.copy(&a.slice(..LEN).unwrap(), &last).add().unwrap();
    for number in 0..30 {
        let next = graph.alloc::<f32>(LEN + number % 3 * 1024).add().unwrap();
        let node = graph.kernel(over).read(&last).write(&next).arg(number as f32).range(LEN);
        // SAFETY: as above.
        unsafe { node.elementwise(0, 4).elementwise(1, 4).add() }.unwrap();
        graph.free(&last).add().unwrap();
        last = next;
    }
    graph.copy(&last.slice(..LEN).unwrap(), &b.slice(..LEN).unwrap()).add().unwrap();
    let report = field.compare(&graph, Path::Replay);
    assert!(report.fused.iter().all(|of| is_promised(of.form)), "{report}");
    assert!(report.fused.iter().map(|of| of.nodes.len()).sum::<usize>() > 10, "{report}");
}

/// Rules Z4, K7, N3: promises are those of launches in sub-graphs, loops and command groups, of launches that were recorded or replaced.
#[test]
fn promises_go_with_their_launches() {
    let field = Field::new();
    let bench = &field.bench;
    let [scale, shifted] = [0, 5].map(|at| &field.kernels[at]);
    let [x, y, _] = &field.buffers;
    let part = bench.graph();
    // SAFETY: as above.
    (0..2).for_each(|number| _ = unsafe { field.node(&part, number).range(LEN).add() }.unwrap());
    let part = part.finalize(Finalize::new()).unwrap();
    let graph = bench.graph();
    graph.sub_graph(&part).add().unwrap();
    graph.repeat(3, &part).add().unwrap();
    assert_eq!(forms(&field.compare(&graph, Path::Auto)), [(8, true)]);
    // By a queue.
    let graph = bench.graph();
    let launch = |number: f32| {
        let mut launch = ExecuteKernel::new(scale);
        launch.set_arg_read_write(x).set_arg(&number).set_elementwise(0, 4).set_global_work_size(LEN);
        launch
    };
    graph.begin_recording(&bench.queue).unwrap();
    for number in 0..3 {
        // SAFETY: as above.
        unsafe { launch(number as f32).enqueue_nd_range(&bench.queue) }.unwrap();
    }
    graph.end_recording(&bench.queue).unwrap();
    assert_eq!(forms(&field.compare(&graph, Path::Auto)), [(3, true)]);
    // Without the promise, after a replacement.
    let graph = bench.graph();
    let node = || graph.kernel(shifted).read_write(x).read(y).elementwise(0, 4).range(LEN);
    // SAFETY: as above.
    let nodes = [0, 1].map(|_| unsafe { node().add() }.unwrap());
    assert_eq!(forms(&field.compare(&graph, Path::Auto)), [(2, true)]);
    // SAFETY: as above.
    unsafe { graph.kernel(shifted).read_write(x).read(y).range(LEN).replace(nodes[1]) }.unwrap();
    assert_eq!(forms(&field.compare(&graph, Path::Auto)), []);
}

/// Rule Z4: few work-items go in turn where that is faster, and on their own elsewhere; either way the bytes are the same.
#[test]
fn few_work_items_are_fused_too() {
    let field = Field::new();
    for items in [1, 64, 1000, 8192] {
        let graph = field.bench.graph();
        // SAFETY: as above.
        (0..12).for_each(|at| _ = unsafe { field.node(&graph, at * 4).range(items).add() }.unwrap());
        let report = field.compare(&graph, Path::Auto);
        assert_eq!(report.fused.iter().map(|of| of.nodes.len()).collect::<Vec<_>>(), [12], "{report}");
        assert_eq!(is_promised(report.fused[0].form), items == 8192 || (items == 1000 && !by_one_item(&report)));
    }
}

fn by_one_item(report: &Report) -> bool {
    report.fused[0].form == FusedForm::OneItem
}

/// Rule Z4: a promise that does not fit its launch is an error.
#[test]
fn wrong_promises_are_refused() {
    let field = Field::new();
    let (graph, x, scale) = (field.bench.graph(), &field.buffers[0], &field.kernels[0]);
    let cause = |wrong: &[(usize, usize)]| {
        let node = graph.kernel(scale).read_write(x).arg(0.5_f32).range(8);
        let node = wrong.iter().fold(node, |node, (argument, bytes)| node.elementwise(*argument, *bytes));
        // SAFETY: as above.
        match unsafe { node.add() } {
            Err(Error::Build(error)) => match *error.cause {
                BuildCause::Elementwise { index, why } => (index, why),
                other => panic!("{other}"),
            },
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(cause(&[(0, 4), (2, 4)]), (2, "the launch has 2 arguments".to_owned()));
    assert_eq!(cause(&[(usize::MAX, 4)]).0, usize::MAX);
    assert_eq!(cause(&[(1, 4)]), (1, "it is a value, not memory".to_owned()));
    assert_eq!(cause(&[(0, 0)]).0, 0);
    assert_eq!(cause(&[(0, 4), (0, 8)]), (0, "it was promised of 4 bytes and of 8".to_owned()));
    assert_eq!(graph.len(), 0);
    let parameter = Parameter::buffer(x);
    let node = graph.kernel(scale).read_write(&parameter).arg(0.5_f32).range(8).elementwise(0, 4).elementwise(0, 4);
    // SAFETY: as above.
    unsafe { node.add() }.unwrap();
    // SAFETY: as above.
    unsafe { graph.kernel(scale).null().arg(0.5_f32).range(0).elementwise(0, usize::MAX).add() }.unwrap();
    let mut launch = ExecuteKernel::new(scale);
    launch.set_arg_read_write(x).set_arg(&0.5_f32).set_elementwise(1, 4).set_global_work_size(8);
    // SAFETY: as above.
    let refused = unsafe { launch.enqueue_nd_range(&field.bench.queue) };
    assert!(matches!(refused, Err(Error::Build(error)) if matches!(*error.cause, BuildCause::Elementwise { .. })));
}

/// Rules Z1, Z8: launches that touch the same bytes by several types are not one, because compilers may then change the order of what
/// they do. Intel's does.
#[test]
fn the_same_bytes_by_several_types_are_those_of_launches_one_by_one() {
    let bench = Bench::new();
    let text = "kernel void stir(global uint *x, uint by) { size_t i = get_global_id(0); x[i] = x[i] ^ by; }
        kernel void scale(global float *x, float by) { size_t i = get_global_id(0); x[i] = x[i] * by + 0.5f; }";
    let cast = "kernel void stir(global uint *x, uint by) { size_t i = get_global_id(0); x[i] = x[i] ^ by; }
        kernel void scale(global uint *x, float by) { global float *y = (global float *)x; size_t i = get_global_id(0);
            y[i] = y[i] * by + 0.5f; }";
    // The same cast, where a star and the end of the type have something between them.
    let hidden = format!("#define E\n{}", cast.replace("float *)x", "float * E)x"));
    let cases = [(text, false), (text, true), (cast, false), (cast, true), (&hidden, false), (&hidden, true)];
    for (text, small) in cases {
        let is_cast = text != cases[0].0;
        let program = Program::from_source(&bench.queue, text).unwrap();
        let [mix, scale] = ["stir", "scale"].map(|name| program.kernel(name).unwrap());
        let len = if small { 16 } else { LEN };
        let x = Buffer::<u32>::new(&bench.queue, len).unwrap();
        let reals = x.cast::<f32>().unwrap();
        for order in ["mixing", "scaling, mixing", "mixing, scaling, mixing", "scaling, mixing, scaling, mixing"] {
            let graph = bench.graph();
            for (at, word) in (1..).zip(order.split(", ").cycle().take(8)) {
                let node = match word {
                    "mixing" => graph.kernel(&mix).read_write(&x).arg(at << 8),
                    _ if is_cast => graph.kernel(&scale).read_write(&x).arg(1.0 + at as f32 / 4.0),
                    _ => graph.kernel(&scale).read_write(&reals).arg(1.0 + at as f32 / 4.0),
                };
                // SAFETY: work-items touch their own elements.
                unsafe { node.range(len).elementwise(0, 4).add() }.unwrap();
            }
            let start: Vec<u32> = (0..len as u32).map(|at| (1.5 + at as f32).to_bits()).collect();
            let run = |fuse: Fuse| {
                let executable = graph.finalize(Finalize::new().fuse(fuse)).unwrap();
                bench.queue.enqueue_write_buffer(&x, 0, &start, &[]).unwrap();
                executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
                (bench.content(&x), executable.report())
            };
            let (expected, (found, report)) = (run(Fuse::Off).0, run(Fuse::Now));
            assert!(found == expected, "{order}, {len} work-items: {report}");
            if !order.ends_with("mixing, scaling, mixing") {
                assert_eq!(report.fused.len(), usize::from(order == "mixing" && !is_cast), "{report}");
            }
        }
    }
}

/// Rules Z1, Z8: launches that a compiler would compute otherwise in one kernel, by what the program lets it do, run one by one.
#[test]
fn what_a_compiler_may_join_is_computed_as_launches_one_by_one() {
    let bench = Bench::new();
    let start: Vec<f32> = (0..LEN).map(|at| if at % 2 == 0 { 1.0 } else { at as f32 }).collect();
    let signs = "kernel void f(global float *x) { size_t i = get_global_id(0); x[i] = x[i] - 1.0f; }
        kernel void g(global float *x) { size_t i = get_global_id(0); x[i] = -x[i]; }";
    // A call of a `const` function is taken for one before it, although memory has changed between them.
    let looks = "__attribute__((const, noinline)) float look(global const float *x, uint i) { return x[i]; }
        kernel void f(global float *x) { size_t i = get_global_id(0); x[i] = look(x, i) * 2.0f + 1.0f; }
        kernel void g(global float *x) { size_t i = get_global_id(0); x[i] = look(x, i) * 0.5f + 1.0f; }";
    let says = [(signs, "-cl-no-signed-zeros", "-cl-no-signed-zeros"), (looks, "", "attribute `const`")];
    for (text, options, why) in says {
        let program = ProgramBuilder::new(&bench.queue).options(options).source(text).unwrap();
        let kernels = ["f", "g"].map(|name| program.kernel(name).unwrap());
        let x = Buffer::<f32>::new(&bench.queue, LEN).unwrap();
        let graph = bench.graph();
        for at in 0..6 {
            // SAFETY: work-items touch their own elements.
            unsafe { graph.kernel(&kernels[at % 2]).read_write(&x).range(LEN).elementwise(0, 4).add() }.unwrap();
        }
        let run = |fuse: Fuse| {
            let executable = graph.finalize(Finalize::new().fuse(fuse)).unwrap();
            bench.queue.enqueue_write_buffer(&x, 0, &start, &[]).unwrap();
            executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
            (bench.content(&x.cast::<u32>().unwrap()), executable.report())
        };
        let (expected, (found, report)) = (run(Fuse::Off).0, run(Fuse::Now));
        assert!(found == expected, "{options}: {report}");
        let is_said = |of: &clgraph::NotFusedReport| of.why.to_string().contains(why);
        assert!(report.fused.is_empty() && report.not_fused.iter().all(is_said), "{report}");
    }
}
