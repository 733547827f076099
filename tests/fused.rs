//! Launches that one kernel does, one after the other: rules Z1 to Z8. Memory and results are the same, to the last bit.

mod common;

use std::time::Duration;

use clgraph::{
    Buffer, Error, Executable, Finalize, FinalizeError, Fuse, FusedForm, FusingState, Graph, GraphMemory, HostRead,
    Kernel, Memory, MemoryKind, Node, Parameter, Path, Program, ProgramBuilder, Report, UserEvent, WhyApart,
    WhyNotFused,
};
use common::Bench;

const LONG: Duration = Duration::from_secs(120);
const LEN: usize = 192;

/// Kernels that ask for their ids in each way, call functions, return early, and take structs and vectors.
const SOURCE: &str = "
    #define HERE get_global_id(0)
    typedef struct { float by; int more[2]; } pair;
    float twice(float x) { return x * 2.0f; }
    kernel void scale(global float *x, float by) { x[HERE] = x[HERE] * by + 0.5f; }
    kernel void blend(global const float *from, global float *to, float4 by, pair other) {
        size_t i = get_global_id(0);
        if (i % 3 == 1) return;
        by.x += twice(from[i]);
        to[i] = by.x + by.w * other.by + other.more[1];
    }
    kernel void where_am_i(global float *x) {
        const size_t w = get_global_size(0), h = get_global_size(1);
        const size_t i = ((get_global_id(2) - get_global_offset(2)) * h + get_global_id(1) - get_global_offset(1)) * w
                       + get_global_id(0) - get_global_offset(0);
        x[i] += get_global_id(0) + 2 * get_global_id(1) + 4 * get_global_id(2) + 8 * get_work_dim() + 16 * get_global_size(2)
              + 32 * get_global_offset(1) + 64 * (int)(get_global_linear_id() == i) + get_global_id(7) + get_global_size(9);
    }
    kernel void groups(global float *x) {
        const size_t i = get_global_id(0) - get_global_offset(0) + get_global_size(0) * (get_global_id(1) - get_global_offset(1));
        x[i] += get_local_id(0) + 2 * get_local_id(1) + 4 * get_group_id(0) + 8 * get_group_id(1) + 16 * get_num_groups(0)
              + 32 * get_num_groups(1) + 64 * get_local_size(0) + 128 * get_local_linear_id() + get_enqueued_local_size(1)
              + get_local_size(2) + get_num_groups(2);
    }
    kernel void shift(global const float *from, global float *to, uint n) {
        size_t i = get_global_id(0);
        to[i] = from[(i + 1) % n] * 0.75f;
    }
";

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Pair {
    by: f32,
    more: [i32; 2],
}

/// A program over three buffers, with all kernels of the source.
struct Field {
    bench: Bench,
    buffers: [Buffer<f32>; 3],
    kernels: [Kernel; 5],
}

impl Field {
    fn new() -> Self {
        let bench = Bench::new();
        let options = if bench.queue.device().caps().version.major >= 3 { "-cl-std=CL3.0" } else { "-cl-std=CL2.0" };
        let program = ProgramBuilder::new(&bench.queue).options(options).source(SOURCE).unwrap();
        let kernels = ["scale", "blend", "where_am_i", "groups", "shift"].map(|name| program.kernel(name).unwrap());
        let buffers = [(); 3].map(|()| Buffer::<f32>::new(&bench.queue, LEN).unwrap());
        Self { bench, buffers, kernels }
    }

    fn add(&self, graph: &Graph, which: usize, number: u32) -> Node {
        let [a, b, c] = [0, 1, 2].map(|at| &self.buffers[(which + number as usize + at) % 3]);
        let by = number as f32 * 0.3 + 0.1;
        let [scale, blend, place, groups, shift] = &self.kernels;
        // SAFETY: of all: work-items write their own elements, inside the buffers.
        unsafe {
            match which % 8 {
                0 => graph.kernel(scale).read_write(a).arg(by).range(LEN).add(),
                1 => {
                    let pair = Pair { by: 0.25, more: [3, number as i32] };
                    graph.kernel(blend).read(a).write(b).arg([by, 1.0, 2.0, by * 0.5]).arg(pair).range(LEN).add()
                }
                2 => graph.kernel(place).read_write(b).range([4, 6, 4]).add(),
                3 => graph.kernel(place).read_write(c).range([8, 3]).offset([5, 7]).add(),
                4 => graph.kernel(groups).read_write(a).range([8, 12]).work_group([4, 3]).add(),
                5 => graph.kernel(groups).read_write(b).range(24).offset(3).work_group(8).add(),
                6 => graph.kernel(place).read_write(a).range([64, 3]).offset([5, 7]).add(),
                _ => graph.kernel(shift).read(c).write(a).arg(LEN as u32).range(LEN).add(),
            }
        }
        .unwrap()
    }

    fn start(&self) {
        for (at, buffer) in self.buffers.iter().enumerate() {
            let data: Vec<f32> = (0..LEN).map(|i| i as f32 * 0.37 + at as f32).collect();
            self.bench.queue.enqueue_write_buffer(buffer, 0, &data, &[]).unwrap();
        }
        self.bench.queue.finish().unwrap();
    }

    fn bits(&self) -> Vec<Vec<u32>> {
        self.buffers.iter().map(|buffer| self.bench.content(&buffer.cast().unwrap())).collect()
    }

    /// Runs the same graph fused and not, on a path. Returns the report of the fused one.
    fn compare(&self, graph: &Graph, path: Path) -> Report {
        let plain = graph.finalize(Finalize::new().path(path).fuse(Fuse::Off)).unwrap();
        let fused = graph.finalize(Finalize::new().path(path).fuse(Fuse::Now)).unwrap();
        assert_eq!(plain.report().fused, []);
        let run = |executable: &Executable| {
            self.start();
            for _ in 0..2 {
                executable.submit(&self.bench.queue).unwrap().wait_for(LONG).unwrap();
            }
            self.bits()
        };
        let expected = run(&plain);
        let found = run(&fused);
        assert_eq!(found, expected, "{path}\n{}", fused.report());
        fused.report()
    }
}

/// Rule Z1: each way in which a kernel can ask where it is, in one, two and three dimensions.
#[test]
fn a_chain_is_one_launch_and_changes_the_same_bytes() {
    let field = Field::new();
    for path in [Path::Auto, Path::Replay, Path::Native, Path::Gated, Path::Queues] {
        let graph = field.bench.graph();
        (0..40).for_each(|number| _ = field.add(&graph, number as usize, number));
        let report = field.compare(&graph, path);
        assert_eq!(report.fused.iter().map(|of| of.nodes.len()).sum::<usize>(), 40, "{report}");
        assert!(report.commands < 10, "{report}");
        assert!(report.not_fused.is_empty(), "{report}");
        let text = report.to_string();
        assert!(text.contains("fused      ") && text.contains(" commands by "), "{text}");
    }
}

/// Rule Z1: compilers take long for kernels of many calls, so there are several.
#[test]
fn launches_in_no_order_that_repeats_are_the_same() {
    let field = Field::new();
    let graph = field.bench.graph();
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..300).for_each(|_| _ = field.add(&graph, rng.usize(..8), rng.u32(..5)));
    let report = field.compare(&graph, Path::Auto);
    assert_eq!(report.fused.iter().map(|of| of.nodes.len()).sum::<usize>(), 300, "{report}");
    let ends: Vec<Option<WhyApart>> = report.fused.iter().map(|of| of.ends).collect();
    let (last, others) = ends.split_last().unwrap();
    assert!(last.is_none() && others.iter().all(|why| *why == Some(WhyApart::Calls)), "{report}");
}

/// Why the launches of a graph of one or two kernels are not fused.
fn why(graph: &Graph) -> Vec<WhyNotFused> {
    let executable = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
    executable.report().not_fused.into_iter().map(|of| of.why).collect()
}

/// Rules Z1, P6: one kernel would put nodes in an order that no edges give them.
#[test]
fn conflicts_are_found_before_launches_are_fused() {
    let field = Field::new();
    let graph = field.bench.graph();
    let memory = [0, 1].map(|at| Parameter::buffer(&field.buffers[at]));
    for memory in &memory {
        // SAFETY: a work-item touches its own element.
        unsafe { graph.kernel(&field.kernels[0]).read_write(memory).arg(1.5_f32).range(LEN).add() }.unwrap();
    }
    memory[1].set(&field.buffers[0]).unwrap();
    for fuse in [Fuse::Off, Fuse::Now] {
        let refused = graph.finalize(Finalize::new().fuse(fuse)).unwrap_err();
        assert!(matches!(refused, Error::Finalize(FinalizeError::Conflict { .. })), "{refused}");
    }
    let allowed = graph.finalize(Finalize::new().allow_conflicts().fuse(Fuse::Now)).unwrap();
    assert_eq!(allowed.report().fused.len(), 1);
}

/// Rule Z1: PoCL 3.1 rounds a product of an id and a number in a launch, and contracts it with the sum in a fused kernel.
#[test]
fn a_product_that_a_fused_kernel_would_not_round_stays_in_launches() {
    let field = Field::new();
    let caps = field.bench.queue.device().caps().clone();
    let is_pocl3 = caps.platform == "Portable Computing Language" && caps.driver_version.starts_with("3.");
    let source = "kernel void f(global float *x) { size_t i = get_global_id(0); x[i] = x[i] + 0.353f * convert_float(i & 15); }
                  kernel void g(global float *x, float by) { size_t i = get_global_id(0); x[i] = x[i] + by * convert_float(i & 15); }";
    for (pragma, contracts) in [("", true), ("#pragma OPENCL FP_CONTRACT OFF\n", false)] {
        let program = Program::from_source(&field.bench.queue, &format!("{pragma}{source}")).unwrap();
        let graph = field.bench.graph();
        let x = &field.buffers[0];
        for kernel in ["f", "g", "f", "g"].map(|name| program.kernel(name).unwrap()) {
            // SAFETY: a work-item touches its own element.
            unsafe {
                let node = graph.kernel(&kernel).read_write(x);
                let node = if kernel.name() == "g" { node.arg(0.353_f32) } else { node };
                node.range(LEN).work_group(64).add()
            }
            .unwrap();
        }
        let report = field.compare(&graph, Path::Replay);
        let why: Vec<String> = report.not_fused.iter().map(|of| of.why.to_string()).collect();
        if is_pocl3 && contracts {
            let product =
                "kernel `f`: the driver may round `0.353f * convert_float(i & 15)` otherwise in a fused kernel";
            assert!(why.iter().any(|why| why.starts_with(product)), "{report}");
        } else {
            assert_eq!((report.fused.len(), why.len()), (1, 0), "{report}");
        }
    }
}

/// Rule Z6: a profile has the times of fused kernels, if the program asks for them.
#[test]
fn an_executable_that_profiles_is_fused_if_it_asks_for_it() {
    let field = Field::new();
    let graph = field.bench.graph();
    (0..6).for_each(|number| _ = field.add(&graph, 0, number));
    let run = |fuse| {
        let executable = graph.finalize(Finalize::new().profiling().fuse(fuse)).unwrap();
        field.start();
        let submission = executable.submit(&field.bench.queue).unwrap();
        submission.wait_for(LONG).unwrap();
        (executable.report(), submission.profile().unwrap(), field.bits())
    };
    let (plain, launches, expected) = run(Fuse::Off);
    let (fused, one, found) = run(Fuse::Now);
    assert_eq!(found, expected);
    assert_eq!((plain.fused.len(), launches.nodes.len()), (0, 6), "{plain}\n{launches}");
    assert_eq!((fused.fused.len(), one.nodes.len()), (1, 1), "{fused}\n{one}");
    let [only] = &one.nodes[..] else { unreachable!() };
    assert_eq!(only.title(), format!("fused: {}", fused.fused[0]), "{one}");
    assert_eq!(only.node.index(), 0, "{one}");
    assert!(only.start <= only.end && one.start == only.start, "{one}");
    assert!(one.to_string().contains("fused: 6 commands by"), "{one}");
    // Where in a sub-graph a launch is does not change.
    let outer = field.bench.graph();
    let inner = field.bench.graph();
    (0..3).for_each(|number| _ = field.add(&inner, 0, number));
    let data = field.bench.buffer(&[0; 4]);
    inner.host_task(|_| Ok::<(), clgraph::Error>(())).add().unwrap();
    (0..3).for_each(|number| _ = field.add(&inner, 0, number));
    inner.fill(&data, 1).add().unwrap();
    outer.sub_graph(&inner.finalize(Finalize::new()).unwrap()).add().unwrap();
    let places = |fuse| {
        let executable = outer.finalize(Finalize::new().profiling().fuse(fuse)).unwrap();
        let submission = executable.submit(&field.bench.queue).unwrap();
        submission.wait_for(LONG).unwrap();
        let profile = submission.profile().unwrap();
        let mut places: Vec<_> = profile.nodes.iter().map(|of| (of.inside, of.kind)).collect();
        places.sort_by_key(|(inside, _)| *inside);
        places
    };
    let (plain, fused) = (places(Fuse::Off), places(Fuse::Now));
    assert!(fused.len() < plain.len() && fused.iter().all(|of| plain.contains(of)), "{plain:?}\n{fused:?}");
}

/// Rules Z2, Z3, Z6, Z8: what is not fused runs as it is, and the report says why.
#[test]
fn what_is_not_fused_says_why() {
    let bench = Bench::new();
    let data = bench.buffer(&[1; 64]);
    let program = |options: &str, source: &str| {
        ProgramBuilder::new(&bench.queue).options(options).source(source).unwrap().kernel("f").unwrap()
    };
    let plain = "kernel void f(global uint *x) { x[get_global_id(0)] += 1; }";
    let cases = [
        (program("-cl-fast-relaxed-math", plain), "the program is built with -cl-fast-relaxed-math"),
        (program("-cl-unsafe-math-optimizations", plain), "the program is built with -cl-unsafe-math-optimizations"),
        (program("-cl-finite-math-only", plain), "the program is built with -cl-finite-math-only"),
        (program("", "kernel void f(global uint *x) { atomic_inc(x); }"), "depends on the order of work-items"),
        (
            program("", "#define CALL(f) f()\nconstant int line = __LINE__;\nuint at() { return get_global_id(0); } kernel void f(global uint *x) { x[CALL(at)] = 1; }"),
            "it uses `at` without calling it",
        ),
        (
            program(
                "",
                "#if __LINE__\nuint at() { return get_global_id(0); }\n#endif\nkernel void f(global uint *x) { x[at()] = 1; }",
            ),
            "function `at`, which it calls, asks for ids: a condition of the preprocessor says",
        ),
        (program("", &format!("uint __one() {{ return 1; }}\n{plain}")), "clgraph cannot read the program"),
        (
            program("", &format!("{plain}\n#pragma OPENCL FP_CONTRACT OFF\n")),
            "pragma `OPENCL FP_CONTRACT OFF` after it may change",
        ),
        (
            program(
                "",
                "uint __attribute__((overloadable)) h(float v) { return 1; } kernel void f(global uint *x) { *x = h(2u); }
                 uint __attribute__((overloadable)) h(uint v) { return 2; }",
            ),
            "`h`, a name in it, is declared after it",
        ),
        (
            program("", "#define S(x) #x\nkernel void f(global uint *x) { *x = sizeof(S(get_global_id(0))); }"),
            "macro `S`, which it uses, makes a text of its arguments",
        ),
    ];
    for (kernel, words) in &cases {
        let graph = bench.graph();
        for _ in 0..2 {
            // SAFETY: the work-items touch elements inside the buffer.
            unsafe { graph.kernel(kernel).read_write(&data).range(1).add() }.unwrap();
        }
        let said = why(&graph);
        assert_eq!(said.len(), 2, "{words}");
        for of in said {
            let WhyNotFused::Kernel { kernel, why } = &of else { panic!("{of}") };
            assert!(kernel == "f" && why.contains(words), "{of}");
        }
    }
    let kernel = program("", plain);
    let groups = program("", "kernel void f(global uint *x) { x[get_global_id(0)] += get_group_id(0); }");
    let constant = program("", "kernel void f(constant uint *x, global uint *y) { y[0] += x[0]; }");
    let graph = |add: &dyn Fn(&Graph)| {
        let graph = bench.graph();
        add(&graph);
        graph
    };
    // SAFETY: of all below: as above.
    let one = graph(&|graph| _ = unsafe { graph.kernel(&kernel).read_write(&data).range(64).add() }.unwrap());
    assert_eq!(why(&one), [WhyNotFused::Alone]);
    let other = bench.buffer(&[1; 1 << 15]);
    // SAFETY: as above.
    let large = graph(&|graph| _ = unsafe { graph.kernel(&kernel).read_write(&other).range(1 << 15).add() }.unwrap());
    assert_eq!(why(&large), [WhyNotFused::Size { items: 1 << 15 }]);
    // Where it is, it would be beyond 31 bits.
    let far = graph(&|graph| {
        // SAFETY: it is never submitted.
        _ = unsafe { graph.kernel(&kernel).read_write(&data).range(64).offset(1 << 31).add() }.unwrap();
    });
    assert_eq!(why(&far), [WhyNotFused::Range]);
    // SAFETY: as above.
    let divided = graph(&|graph| _ = unsafe { graph.kernel(&groups).read_write(&data).range(64).add() }.unwrap());
    assert_eq!(why(&divided), [WhyNotFused::Divided { kernel: "f".to_owned() }]);
    let argument =
        // SAFETY: as above.
        graph(&|graph| _ = unsafe { graph.kernel(&constant).read(&data).read_write(&other).range(1).add() }.unwrap());
    assert_eq!(why(&argument), [WhyNotFused::Argument { kernel: "f".to_owned(), argument: 0 }]);
    let place = Memory::<u32>::with_kind(&bench.queue, MemoryKind::SvmCoarse, 16).unwrap();
    let indirect = graph(&|graph| {
        // SAFETY: as above.
        _ = unsafe { graph.kernel(&kernel).read_write(&data).indirect(&place).range(64).add() }.unwrap();
    });
    assert_eq!(why(&indirect), [WhyNotFused::Indirect { kernel: "f".to_owned() }]);
    // Options of the executable.
    let two = graph(&|graph| {
        for _ in 0..2 {
            // SAFETY: as above.
            unsafe { graph.kernel(&kernel).read_write(&data).range(64).add() }.unwrap();
        }
    });
    for (options, expected) in [
        (Finalize::new().updatable().path(Path::Queues), WhyNotFused::Updatable),
        (Finalize::new().updatable().path(Path::Native), WhyNotFused::Updatable),
        (Finalize::new().updatable().profiling(), WhyNotFused::Profiled),
    ] {
        let report = two.finalize(options.fuse(Fuse::Now)).unwrap().report();
        // One line a reason.
        assert!(report.to_string().contains(&format!("not fused  nodes 0 to 1: {expected}\n")), "{report}");
        assert_eq!(report.not_fused.iter().map(|of| of.why.clone()).collect::<Vec<_>>(), vec![expected; 2]);
        assert_eq!(report.fused, []);
    }
    let report = two.finalize(Finalize::new().fuse(Fuse::Now)).unwrap().report();
    let forms: Vec<FusedForm> = report.fused.iter().map(|of| of.form).collect();
    assert!(forms == [FusedForm::OneItem] || forms == [FusedForm::OneGroup], "{report}");
    // A program without source.
    let binary = Program::from_source(&bench.queue, plain).unwrap().binary(bench.queue.device()).unwrap();
    // SAFETY: the driver has just returned it.
    let binary = unsafe { Program::from_binary(&bench.queue, &binary) }.unwrap().kernel("f").unwrap();
    let of_binary = graph(&|graph| {
        for kernel in [&kernel, &binary, &binary, &kernel] {
            // SAFETY: as above.
            unsafe { graph.kernel(kernel).read_write(&data).range(64).add() }.unwrap();
        }
    });
    let said =
        [WhyNotFused::Kernel { kernel: "f".to_owned(), why: "the driver has no source of the program".to_owned() }];
    let why_binary = why(&of_binary);
    assert!(why_binary.iter().filter(|why| said.contains(why)).count() == 2, "{why_binary:?}");
    // One from SPIR-V, where the device takes it.
    // SAFETY: a valid module.
    let module = unsafe { Program::from_il(&bench.queue, include_bytes!("../kernels-cl/specialize.spv")) };
    assert_eq!(module.is_ok(), !bench.queue.device().caps().il_versions.is_empty());
    if let Ok(module) = module {
        let step_up = module.kernel("step_up").unwrap();
        let of_module = graph(&|graph| {
            for _ in 0..2 {
                // SAFETY: as above.
                unsafe { graph.kernel(&step_up).read_write(&data).range(64).add() }.unwrap();
            }
        });
        let said = why(&of_module);
        let is_said = |why: &WhyNotFused| matches!(why, WhyNotFused::Kernel { kernel, why } if kernel == "step_up" && why.contains("no source"));
        assert!(said.len() == 2 && said.iter().all(is_said), "{said:?}");
    }
    let before = bench.content(&data);
    let run = of_binary.finalize(Finalize::new().fuse(Fuse::Now)).unwrap().submit(&bench.queue).unwrap();
    run.wait_for(LONG).unwrap();
    assert!(bench.content(&data).iter().zip(&before).all(|(now, before)| *now == before + 4));
    // A loop with a condition, whose turns no kernel does, because of a write.
    two.write(&data.slice(..1).unwrap(), [1]).add().unwrap();
    let body = two.finalize(Finalize::new()).unwrap();
    let off = bench.buffer(&[0]);
    let loops = graph(&|graph| _ = graph.repeat_while(&off, &body).add().unwrap());
    assert_eq!(why(&loops), [WhyNotFused::InLoop, WhyNotFused::InLoop]);
}

/// Rule Z1: indices that wrap, for which PoCL 3.1 and 6.0 compile some loops over work-items wrongly where they vectorize them.
#[test]
fn an_index_that_wraps_reads_what_it_reads_unfused() {
    const MOST: usize = 700;
    let bench = Bench::new();
    let indices = [
        "(i * 3) % 256",
        "(i * 3) & 255",
        "i * 3 - i * 3 / 256 * 256",
        "low(i * 3)",
        "(uint)(i * 3) * 16777216u / 16777216u",
        "mul_hi((uint)i * 50331648u, 256u)",
        "bitselect(0u, (uint)(i * 3), 255u)",
        "(i * 3 < 256 ? i * 3 : i * 3 < 512 ? i * 3 - 256 : i * 3 < 768 ? i * 3 - 512 : i * 3 - (i * 3 >> 8 << 8))",
    ];
    let mut source = "size_t low(size_t k) { return k & 255; }\n".to_owned();
    for (at, index) in indices.iter().enumerate() {
        for dim in 0..2 {
            source += &format!(
                "kernel void k{at}_{dim}(global const uint *s, global uint *t) {{ size_t i = get_global_id({dim}); t[i] = s[{index}] + t[i]; }}\n"
            );
        }
    }
    let program = Program::from_source(&bench.queue, &source).unwrap();
    let from = bench.buffer(&(0..256).map(|i| i * 7 + 1).collect::<Vec<u32>>());
    for (at, index) in indices.iter().enumerate() {
        for dim in 0..2 {
            let kernel = program.kernel(&format!("k{at}_{dim}")).unwrap();
            let (graph, sizes) = (bench.graph(), [1, 86, 171, 214, 215, 256, 343, 699]);
            let to: Vec<_> = sizes.iter().map(|_| bench.buffer(&[0; MOST])).collect();
            for (size, to) in sizes.iter().zip(&to) {
                let range = if dim == 0 { [*size, 1] } else { [1, *size] };
                for _ in 0..2 {
                    // SAFETY: each work-item reads inside the buffer, and writes its own element.
                    unsafe { graph.kernel(&kernel).read(&from).read_write(to).range(range).add().unwrap() };
                }
            }
            let executable = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
            assert!(!executable.report().fused.is_empty(), "{}", executable.report());
            executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
            for (size, to) in sizes.iter().zip(&to) {
                let is = |i: usize| if i < *size { 2 * ((i * 3 % 256) as u32 * 7 + 1) } else { 0 };
                let expected: Vec<u32> = (0..MOST).map(is).collect();
                assert_eq!(bench.content(to), expected, "{index}, dimension {dim}, {size} work-items");
            }
        }
    }
}

/// Rules Z1, Z3: a kernel may call functions for its ids in ways that a macro hides. Whether it is fused or not, it gets its ids.
#[test]
fn ids_behind_macros_stay_the_ids_of_the_kernel() {
    let bench = Bench::new();
    for (id, is_fused) in [
        ("#define ID get_global_id(0)", true),
        ("#define ID get_global_id (0)", true),
        ("#define ARG(x) (x)\n#define ID ARG(get_global_id(0))", true),
        ("#define AT (0)\n#define ID get_global_id AT", true),
        ("#define NOTHING\n#define G get_global_id\n#define ID G NOTHING (0)", true),
        ("#define CALL(f) f(0)\n#define ID CALL(get_global_id)", true),
        ("#define ID get_global_id(__LINE__ * 0)", false),
    ] {
        let source = format!("{id}\nkernel void advance(global uint *a) {{ a[ID] = a[ID] * 3 + 1; }}");
        let kernel = Program::from_source(&bench.queue, &source).unwrap().kernel("advance").unwrap();
        let (buffer, graph) = (bench.buffer(&[1; 64]), bench.graph());
        for _ in 0..8 {
            // SAFETY: each work-item touches its own element.
            unsafe { graph.kernel(&kernel).read_write(&buffer).range(64).add().unwrap() };
        }
        let executable = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
        assert_eq!(!executable.report().fused.is_empty(), is_fused, "{id}");
        executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        assert_eq!(bench.content(&buffer), [9841; 64], "{id}");
    }
}

/// Rules Z1, Z3: functions that a kernel calls may ask for ids, and get those of the kernel, or the kernel is not fused.
#[test]
fn ids_in_functions_stay_the_ids_of_the_kernel() {
    let bench = Bench::new();
    for (functions, is_fused) in [
        ("size_t id() { return get_global_id(0); }", true),
        ("static inline size_t id(void) { return get_global_id(0); }", true),
        (
            "size_t at(uint d); static size_t id() { return at(0); } size_t at(uint d) { return get_global_id(d); }",
            true,
        ),
        (
            "#define ID(x) at(x)\nsize_t at(uint d) { return get_global_id(d); } size_t id() { return ID(ID(0) * 0); }",
            true,
        ),
        (
            "void to(private size_t *at, uint d) { *at = get_global_id(d); } size_t id() { size_t at; to(&at, 0); return at; }",
            true,
        ),
        (
            "__attribute__((noinline)) uint2 two(const uint2 d) { return (uint2)((uint)get_global_id(d.x), d.y); } size_t id() { return two((uint2){0, 1}).x; }",
            true,
        ),
        ("#define CALL(f) f()\nsize_t at() { return get_global_id(0); } size_t id() { return CALL(at); }", true),
        (
            "#if 0\nsize_t id() { return get_local_id(0); }\n#else\nsize_t id() { return get_global_id(0); }\n#endif",
            true,
        ),
        // One more function of a name of OpenCL C's: most compilers choose by the arguments, rusticl's does not.
        (
            "size_t isnan(size_t x) { return get_global_id(0) + x; } size_t id() { return isnan(2.0f) * 0 + isnan((size_t)0); }",
            false,
        ),
    ] {
        let source = format!("{functions}\nkernel void advance(global uint *a) {{ a[id()] = a[id()] * 3 + 1; }}");
        let kernel = Program::from_source(&bench.queue, &source).unwrap().kernel("advance").unwrap();
        let (buffer, graph) = (bench.buffer(&[1; 64]), bench.graph());
        for _ in 0..8 {
            // SAFETY: each work-item touches its own element.
            unsafe { graph.kernel(&kernel).read_write(&buffer).range(64).add().unwrap() };
        }
        let executable = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
        let is_fused = is_fused && bench.queue.device().caps().platform != "rusticl";
        assert_eq!(!executable.report().fused.is_empty(), is_fused, "{functions}\n{}", executable.report());
        executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        assert_eq!(bench.content(&buffer), [9841; 64], "{functions}");
    }
}

/// Rule Z2: a kernel that compilers do not build as a function (braces do not hold the arguments of a macro together) does not keep
/// others from being fused.
#[test]
fn a_kernel_that_cannot_be_a_function_keeps_only_its_own_launches() {
    let bench = Bench::new();
    let x = bench.buffer(&[0; LEN]);
    let source = "kernel void odd(global uint *x) { x[get_global_id((uint2){0, 1}.x)] += 1; }
        kernel void plain(global uint *x) { x[get_global_id(0)] += 10; }";
    let program = Program::from_source(&bench.queue, source).unwrap();
    let (odd, plain) = (program.kernel("odd").unwrap(), program.kernel("plain").unwrap());
    let graph = bench.graph();
    let mut between = None;
    for kernel in [&odd, &odd, &plain, &plain] {
        if graph.len() == 2 {
            between = Some(graph.read(&x).add().unwrap());
        }
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(kernel).read_write(&x).range(LEN).add() }.unwrap();
    }
    let executable = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
    let run = executable.submit(&bench.queue).unwrap();
    run.wait_for(LONG).unwrap();
    assert_eq!((bench.content(&x), &*run.get(&between.unwrap()).unwrap()), (vec![22; LEN], &[2; LEN][..]));
    let report = executable.report();
    assert_eq!(report.fused.iter().map(|of| of.nodes.as_slice()).collect::<Vec<_>>(), [&[3, 4]], "{report}");
    assert_eq!(report.not_fused.iter().map(|of| of.node).collect::<Vec<_>>(), [0, 1], "{report}");
}

/// Rule Z8: memory that is `const restrict` in one launch and written by another keeps them apart.
#[test]
fn constant_memory_keeps_launches_apart() {
    let bench = Bench::new();
    let source = "typedef const uint fixed;
        kernel void f(global const uint *restrict from, global uint *to) {
            const size_t i = get_global_id(0); to[i] = to[i] * 3 + from[(i + 1) % 64];
        }
        kernel void g(global fixed *restrict from, global uint *to) {
            const size_t i = get_global_id(0); to[i] = to[i] * 3 + from[(i + 1) % 64];
        }";
    let program = Program::from_source(&bench.queue, source).unwrap();
    for name in ["f", "g"] {
        let kernel = program.kernel(name).unwrap();
        constant_memory_keeps_apart(&bench, &kernel);
    }
}

fn constant_memory_keeps_apart(bench: &Bench, kernel: &Kernel) {
    let run = |fuse: Fuse| {
        let (a, b) = (bench.buffer(&[1; 64]), bench.buffer(&[2; 64]));
        let graph = bench.graph();
        for number in 0..6 {
            let (from, to) = if number % 2 == 0 { (&a, &b) } else { (&b, &a) };
            // SAFETY: each work-item writes its own element.
            unsafe { graph.kernel(kernel).read(from).read_write(to).range(64).add() }.unwrap();
        }
        let executable = graph.finalize(Finalize::new().fuse(fuse)).unwrap();
        executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        (bench.content(&a), bench.content(&b), executable.report().fused.len())
    };
    let (a, b, fused) = run(Fuse::Now);
    assert_eq!((a, b, 0), run(Fuse::Off));
    assert_eq!(fused, 0);
}

/// Rules Z1, Z6, N3, K7: sub-graphs, bodies, unrolled loops, host tasks, inputs and results around fused launches.
#[test]
fn parts_and_bodies_are_fused_too() {
    let field = Field::new();
    let bench = &field.bench;
    let flag = bench.buffer(&[0]);
    let part = bench.graph();
    (0..4).for_each(|number| _ = field.add(&part, number as usize, number));
    let part = part.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
    assert_eq!(part.report().fused.len(), 1);
    for fuse in [Fuse::Off, Fuse::Now] {
        let graph = bench.graph();
        let input = graph.write(&field.buffers[0], [0.5_f32; LEN]).add().unwrap();
        (0..5).for_each(|number| _ = field.add(&graph, number as usize + 2, number));
        graph.sub_graph(&part).add().unwrap();
        let turns = graph.repeat(3, &part).add().unwrap();
        graph.host_task(|_| ()).reads_and_writes(&field.buffers[1]).add().unwrap();
        let branch = graph.when(&flag, &part).otherwise(&part).add().unwrap();
        (0..5).for_each(|number| _ = field.add(&graph, number as usize, number + 3));
        let reads: Vec<HostRead<f32>> = field.buffers.iter().map(|of| graph.read(of).add().unwrap()).collect();
        let executable = graph.finalize(Finalize::new().fuse(fuse)).unwrap();
        field.start();
        let mut all = Vec::new();
        for round in 0..3 {
            let run = executable.submit_to(&bench.queue).with(&input, [round as f32; LEN]).submit().unwrap();
            run.wait_for(LONG).unwrap();
            assert_eq!((run.turns(&turns).unwrap(), run.turns(&branch).unwrap()), (3, 1));
            all.extend(reads.iter().map(|read| run.get(read).unwrap().iter().map(|x| x.to_bits()).collect::<Vec<_>>()));
        }
        // Fused nodes go by the numbers of the graph's nodes, in drawings too.
        let (report, drawing) = (executable.report(), std::env::temp_dir().join(format!("clgraph-fused-{fuse:?}.dot")));
        executable.print_graph(&drawing, Default::default(), None).unwrap();
        let drawn = std::fs::read_to_string(&drawing).unwrap();
        std::fs::remove_file(&drawing).unwrap();
        for of in &report.fused {
            assert!(of.nodes.iter().all(|node| *node < graph.len()), "{report}");
            let shown = of.to_string();
            assert!(drawn.contains(&format!("fused: {}", shown.split(": ").next().unwrap())), "{drawn}");
        }
        // All that is fused is in a box of its own, within that of the kernel.
        let count = |what: &str| drawn.lines().filter(|line| line.trim_start().starts_with(what)).count();
        let in_boxes =
            drawn.lines().filter(|line| line.trim_start().starts_with("in_") && line.contains("[label")).count();
        assert_eq!(count("subgraph cluster_in_"), report.fused.len(), "{drawn}");
        assert_eq!(in_boxes, report.fused.iter().map(|of| of.nodes.len()).sum::<usize>(), "{drawn}");
        let fused = report.fused.len();
        assert_eq!(fused > 2, fuse == Fuse::Now, "{}", executable.report());
        FOUND.with_borrow_mut(|found| found.push(all));
    }
    FOUND.with_borrow(|found| assert_eq!(found[0], found[1]));
}

/// Rules D3, Z1, Z8: one memory by two handles of the program's own, whose kernels touch it by different types. Explicit edges order
/// them, and a compiler would take them for different memory.
#[test]
fn memory_of_several_handles_is_not_touched_by_several_types_in_one_kernel() {
    let bench = Bench::new();
    let source = "kernel void words(global uint *x, uint by) { x[0] = x[0] * 3 + by; }
        kernel void floats(global float *y) { y[0] = as_float(as_uint(y[0]) ^ 0x155u); }";
    let program = Program::from_source(&bench.queue, source).unwrap();
    let (words, floats) = (program.kernel("words").unwrap(), program.kernel("floats").unwrap());
    let kind = MemoryKind::SvmCoarse;
    let all = Memory::<u32>::with_kind(&bench.queue, kind, 16).unwrap();
    let start = all.as_ptr().unwrap().cast();
    // SAFETY: the memory is there as long as the graph.
    let [one, other] = [(); 2].map(|()| unsafe { Memory::<f32>::from_raw(&bench.queue, kind, start, 16) }.unwrap());
    for is_own in [true, false] {
        let graph = bench.graph();
        let mut last = graph.empty().add().unwrap();
        for _ in 0..20 {
            let first = graph.kernel(&words);
            let first = if is_own { first.read_write(&all) } else { first.read_write(&other.cast::<u32>().unwrap()) };
            // SAFETY: of both: one work-item touches the first element.
            last = unsafe { first.arg(7_u32).range(1).after(last).add() }.unwrap();
            // SAFETY: as above.
            last = unsafe { graph.kernel(&floats).read_write(&one).range(1).after(last).add() }.unwrap();
        }
        let [plain, fused] = [Fuse::Off, Fuse::Now].map(|fuse| {
            let executable = graph.finalize(Finalize::new().fuse(fuse)).unwrap();
            bench.queue.enqueue_write_buffer(&all, 0, &[3_u32; 16], &[]).unwrap();
            executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
            let mut data = [0_u32; 16];
            bench.queue.enqueue_read_buffer(&all, 0, &mut data, &[]).unwrap();
            (data[0], executable.report().fused.len())
        });
        assert_eq!((fused.0, fused.1), (plain.0, 0));
    }
}

thread_local!(static FOUND: std::cell::RefCell<Vec<Vec<Vec<u32>>>> = const { std::cell::RefCell::new(Vec::new()) });

/// Rules Z2, X5: programs with the same launches share what was built; more arguments than a device takes are several launches.
#[test]
fn long_chains_are_few_launches() {
    let bench = Bench::new();
    let source = "kernel void add(global uint *to, uint by) { to[get_global_id(0)] += by; }";
    let add = Program::from_source(&bench.queue, source).unwrap().kernel("add").unwrap();
    let buffers: Vec<Buffer<u32>> = (0..300).map(|_| bench.buffer(&[0; 8])).collect();
    let graph = bench.graph();
    for (by, buffer) in (0..).zip(&buffers) {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&add).read_write(buffer).arg(by).range(8).add() }.unwrap();
    }
    for _ in 0..2 {
        let executable = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
        let report = executable.report();
        assert!((1..=8).contains(&report.commands), "{report}");
        executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
    }
    for (by, buffer) in (0..).zip(&buffers) {
        assert_eq!(bench.content(buffer), [2 * by; 8]);
    }
}

/// Rule Z1: the host may complete an event only when it has seen another one. No form makes one wait for the other.
#[test]
fn launches_that_wait_for_different_events_stay_apart() {
    let field = Field::new();
    let queue = &field.bench.queue;
    for fuse in [Fuse::Off, Fuse::Now] {
        let graph = field.bench.graph();
        let (scale, [a, b, _]) = (&field.kernels[0], &field.buffers);
        let go_on = graph.wait_event().add().unwrap();
        let add = |buffer: &Buffer<f32>, by: f32| graph.kernel(scale).read_write(buffer).arg(by).range(LEN);
        for by in [0.5, 0.25] {
            let late = add(a, by);
            // SAFETY: work-items write their own elements.
            unsafe { if by == 0.5 { late.after(go_on).add() } else { late.add() } }.unwrap();
        }
        // SAFETY: as above.
        let early = [0.5, 0.25].map(|by| unsafe { add(b, by).add() }.unwrap());
        let seen = graph.signal_event().after(early[1]).add().unwrap();
        let executable = graph.finalize(Finalize::new().path(Path::Replay).fuse(fuse)).unwrap();
        assert_eq!(executable.report().fused.len(), if fuse == Fuse::Now { 2 } else { 0 });
        let (go, done) = (UserEvent::new(queue).unwrap(), UserEvent::new(queue).unwrap());
        let run = executable.submit_to(queue).with_event(&go_on, &go).with_signal(&seen, &done).submit().unwrap();
        done.wait_for(LONG).unwrap();
        go.complete().unwrap();
        run.wait_for(LONG).unwrap();
    }
}

/// Rules M3, Z1: a fused kernel needs all memory of its launches at once, and the graph's own memory is as much as without it.
#[test]
fn memory_of_the_graph_takes_as_many_bytes_as_without_fusing() {
    let field = Field::new();
    let (shift, [a, b, _]) = (&field.kernels[4], &field.buffers);
    let graph = field.bench.graph();
    // SAFETY: of both: work-items write their own elements.
    let add = |from: &GraphMemory<f32>, to: &GraphMemory<f32>| unsafe {
        graph.kernel(shift).read(from).write(to).arg(LEN as u32).range(LEN).add()
    };
    let mut last = graph.alloc::<f32>(LEN).add().unwrap();
    graph.copy(a, &last).add().unwrap();
    for _ in 0..30 {
        let next = graph.alloc::<f32>(LEN).add().unwrap();
        add(&last, &next).unwrap();
        graph.free(&last).add().unwrap();
        last = next;
    }
    graph.copy(&last, b).add().unwrap();
    let plain = graph.finalize(Finalize::new().path(Path::Replay).fuse(Fuse::Off)).unwrap();
    let fused = graph.finalize(Finalize::new().path(Path::Replay).fuse(Fuse::Now)).unwrap();
    assert_eq!(fused.report().fused.iter().map(|of| of.nodes.len()).sum::<usize>(), 32, "{}", fused.report());
    assert_eq!(fused.required_memory(), plain.required_memory());
    assert_eq!(fused.report().memory, plain.report().memory);
    let bits = [&plain, &fused, &fused].map(|executable| {
        field.start();
        executable.submit(&field.bench.queue).unwrap().wait_for(LONG).unwrap();
        field.bits()
    });
    assert_eq!(bits[0], bits[1]);
    assert_eq!(bits[0], bits[2]);
}

/// Rule F1: what is fused, at finalize or after it, is in the dump, and each pass is in its place.
#[test]
fn the_dump_shows_what_fusing_and_unrolling_make() {
    const CHILD: &str = "CLGRAPH_TEST_CHILD";
    if std::env::var_os(CHILD).is_none() {
        let folder = std::env::temp_dir().join(format!("clgraph-fused-dump-{}", std::process::id()));
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "the_dump_shows_what_fusing_and_unrolling_make", "--nocapture"]);
        child.env(CHILD, "1").env("CLGRAPH_DUMP", &folder).env_remove("CLGRAPH_PATH");
        let output = child.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let read = |at: usize| std::fs::read_to_string(&files[at]).unwrap();
        let kinds: Vec<_> = files.iter().map(|file| file.extension().unwrap().to_str().unwrap()).collect();
        // A body; a graph that is fused at finalize; and one that can be updated, which is fused after it and not unrolled.
        let whole = ["dot", "graph", "txt"];
        assert_eq!(kinds, [&whole[..], &whole, &whole, &["graph", "txt"]].concat(), "{files:?}");
        let heads = |text: &str| -> Vec<String> {
            let is_head = |line: &&str| line.starts_with("after") || line.ends_with("nothing)");
            text.lines().filter(is_head).map(str::to_owned).collect()
        };
        let at_finalize =
            ["after `inline`:", "after `unroll`:", "after `place memory`:", "after `fuse`:"].map(str::to_owned);
        assert_eq!(heads(&read(4)), at_finalize, "{}", read(4));
        assert_eq!(read(4).matches("kernel ").count(), 2 + 3 + 5 + 5 + 1, "{}", read(4));
        let before =
            ["after `inline`:", "(`unroll` changes nothing)", "(`fuse` changes nothing)", "after `place memory`:"];
        assert_eq!(heads(&read(7)), before.map(str::to_owned), "{}", read(7));
        assert_eq!(heads(&read(9)).last().unwrap(), "after `fuse`:", "{}", read(9));
        assert!(read(10).contains("fused "), "{}", read(10));
        return std::fs::remove_dir_all(&folder).unwrap();
    }
    let bench = Bench::new();
    let program = Program::from_source(&bench.queue, "kernel void one_more(global uint *a) { a[0] += 1; }").unwrap();
    let (one_more, numbers) = (program.kernel("one_more").unwrap(), bench.buffer(&[0]));
    let body = bench.graph();
    // SAFETY: one work-item, and one element, here and below.
    unsafe { body.kernel(&one_more).read_write(&numbers).range(1).add().unwrap() };
    let body = body.finalize(Finalize::new()).unwrap();
    // Where the loop is not unrolled, a kernel does its turns.
    for (options, fused) in [(Finalize::new(), 1), (Finalize::new().updatable(), 2)] {
        let graph = bench.graph();
        let memory = graph.alloc::<u32>(1).add().unwrap();
        for _ in 0..2 {
            // SAFETY: as above.
            unsafe { graph.kernel(&one_more).read_write(&numbers).range(1).add().unwrap() };
        }
        graph.repeat(3, &body).add().unwrap();
        graph.copy(&numbers, &memory).add().unwrap();
        let executable = graph.finalize(options.path(Path::Replay).fuse(Fuse::Now)).unwrap();
        let before = bench.content(&numbers)[0];
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        let report = executable.report();
        assert_eq!((bench.content(&numbers)[0] - before, report.fused.len()), (5, fused), "{report}");
    }
}

/// Rule Z1: launches that no edge orders have a work-item, or a work-group, for each lane. Lanes have lines, loops and ranges of their own.
#[test]
fn launches_without_an_order_run_side_by_side() {
    const LANES: usize = 7;
    let bench = Bench::new();
    let source = "
        kernel void blend(global const uint *in, global uint *out, uint by) {
            size_t at = get_global_id(0);
            out[at] = in[at] * 3 + in[(at + 1) % get_global_size(0)] / 2 + by;
        }
        kernel void fold(global uint *out) {
            uint sum = 0;
            for (uint i = 0; i < 8; ++i) sum = sum * 5 + out[8 * get_global_id(0) + i];
            out[8 * get_global_id(0)] = sum;
        }";
    let program = Program::from_source(&bench.queue, source).unwrap();
    let (blend, fold) = (program.kernel("blend").unwrap(), program.kernel("fold").unwrap());
    let data: Vec<u32> = (0..512).collect();
    let buffers: Vec<[Buffer<u32>; 2]> = (0..LANES).map(|_| [(); 2].map(|()| bench.buffer(&data))).collect();
    let graph = bench.graph();
    for (lane, [one, other]) in buffers.iter().enumerate() {
        // SAFETY: the ranges are inside the buffers.
        unsafe {
            for number in 0..[1, 2, 12, 3, 40, 5, 1][lane] {
                // Each reads what the one before has written.
                let (from, to) = if number % 2 == 0 { (one, other) } else { (other, one) };
                let by = if lane == 4 { 7 } else { number };
                graph.kernel(&blend).read(from).write(to).arg(by).range(64 << (lane % 4)).add().unwrap();
                if lane == 3 {
                    graph.kernel(&fold).read_write(to).range(8).add().unwrap();
                }
            }
        }
    }
    let run = |executable: &Executable| {
        let fill = bench.graph();
        for buffer in buffers.iter().flatten() {
            fill.write(buffer, &data).add().unwrap();
        }
        bench.run(&fill);
        for _ in 0..3 {
            executable.submit(&bench.queue).unwrap().wait_for(LONG).unwrap();
        }
        buffers.iter().flatten().map(|buffer| bench.content(buffer)).collect::<Vec<_>>()
    };
    let fused = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
    let report = fused.report();
    let lanes: usize = report.fused.iter().map(|of| of.lanes).sum();
    assert!(lanes >= LANES && report.to_string().contains(" side by side: "), "{report}");
    assert_eq!(run(&fused), run(&graph.finalize(Finalize::new().fuse(Fuse::Off)).unwrap()), "{report}");
}

/// How the environment has a chain fused, in a process of its own.
fn child(variable: &str, given: &str) -> String {
    common::result_of_child("the_child_says_whether_its_chain_is_fused", variable, given)
}

/// The other half of the test below.
#[test]
fn the_child_says_whether_its_chain_is_fused() {
    let field = Field::new();
    let graph = field.bench.graph();
    for _ in 0..4 {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&field.kernels[0]).read_write(&field.buffers[0]).arg(0.5_f32).range(LEN).add() }.unwrap();
    }
    let run = |options: Finalize| -> clgraph::Result<String> {
        let report = graph.finalize(options)?.report();
        Ok(format!("{} {:?}", report.commands, report.fusing))
    };
    let own = Finalize::new().fuse(Fuse::Off).fuse_after(Duration::ZERO);
    assert_eq!(run(own).unwrap(), "4 Off", "the program's own choice counts");
    if std::env::var_os("CLGRAPH_TEST_CHILD").is_some() {
        let after = std::env::var("CLGRAPH_FUSE_AFTER").ok().and_then(|after| after.parse::<u64>().ok());
        let said = || match after {
            Some(_) => Ok(format!("{:?}", waits_in_vain(&graph, &field.bench)?)),
            None => run(Finalize::new()),
        };
        println!("RESULT {} END", said().unwrap_or_else(|error| error.to_string()));
    }
}

/// Returns whether an executable waits all the time before it is fused.
fn waits_in_vain(graph: &Graph, bench: &Bench) -> clgraph::Result<bool> {
    let executable = graph.finalize(Finalize::new().fuse(Fuse::Auto))?;
    for _ in 0..200 {
        executable.submit(&bench.queue)?.wait_for(LONG)?;
    }
    Ok(executable.report().fusing == FusingState::Waiting)
}

/// Rule Z2: the environment chooses whether to fuse if the program does not.
#[test]
fn the_environment_chooses_if_the_program_does_not() {
    assert!(child("CLGRAPH_FUSE", "now").starts_with("1 "), "{}", child("CLGRAPH_FUSE", "now"));
    assert_eq!(child("CLGRAPH_FUSE", "off"), "4 Off");
    if std::env::var_os("CLGRAPH_PATH").is_none() {
        assert_eq!(child("CLGRAPH_FUSE", "auto"), "4 Waiting");
        assert_eq!(child("CLGRAPH_FUSE_AFTER", "0"), "false");
        assert_eq!(child("CLGRAPH_FUSE_AFTER", "3600000"), "true");
    }
    assert_eq!(
        child("CLGRAPH_FUSE", "fast"),
        "the environment variable CLGRAPH_FUSE is `fast`: it must be `off`, `auto` or `now`"
    );
    assert_eq!(
        child("CLGRAPH_FUSE_AFTER", "soon"),
        "the environment variable CLGRAPH_FUSE_AFTER is `soon`: it must be a number of milliseconds, at least 0"
    );
}

/// Rule Z1: kernels and functions may have names that OpenCL C has for others, as long as they do not call these.
#[test]
fn kernels_named_like_functions_of_opencl_c_are_fused() {
    let field = Field::new();
    let source = "
        float mix(float a) { return a * 0.5f + 1.0f; }
        kernel void step(global float *a, float by) { a[get_global_id(0)] = mix(a[get_global_id(0)]) + by; }
        kernel void max(global float *a, float by) { a[get_global_id(0)] = fmin(a[get_global_id(0)] + by, 90.0f); }
        kernel void distance(global float *a, float by) { uint dot = get_global_id(0); a[dot] -= (float)dot * by; }";
    let program = Program::from_source(&field.bench.queue, source).unwrap();
    // There these names are macros for others, which no kernel of the source has.
    let is_pocl = field.bench.queue.device().caps().platform == "Portable Computing Language";
    let graph = field.bench.graph();
    for turn in 0..12 {
        let name = ["step", "max", "distance"][turn % 3];
        let name = if is_pocl { format!("_cl_{name}") } else { name.to_owned() };
        let kernel = program.kernel(&name).unwrap();
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&kernel).read_write(&field.buffers[0]).arg(turn as f32 * 0.25).range(LEN).add() }
            .unwrap();
    }
    let report = field.compare(&graph, Path::Auto);
    let fused: usize = report.fused.iter().map(|of| of.nodes.len()).sum();
    assert_eq!((fused, report.not_fused.len()), if is_pocl { (0, 12) } else { (12, 0) }, "{report}");
}

/// Rule Z8: on Intel's runtime vectors of some functions have other last bits than numbers.
#[test]
fn functions_that_round_otherwise_in_vectors_are_not_fused() {
    let bench = Bench::new();
    let data = bench.buffer(&[9; 64]);
    let is_intel = bench.queue.device().caps().platform.starts_with("Intel");
    for call in ["rsqrt", "native_sin", "half_log2"] {
        let source = format!(
            "kernel void f(global uint *x) {{ x[get_global_id(0)] += (uint){call}((float)x[get_global_id(0)]); }}"
        );
        let kernel = Program::from_source(&bench.queue, &source).unwrap().kernel("f").unwrap();
        let graph = bench.graph();
        for _ in 0..2 {
            // SAFETY: each work-item touches its own element.
            unsafe { graph.kernel(&kernel).read_write(&data).range(64).add() }.unwrap();
        }
        let why = why(&graph);
        let begin = if call == "rsqrt" { call } else { &call[..call.find('_').unwrap() + 1] };
        let says = format!("the driver computes other bits for `{begin}` in a fused kernel");
        let is_told = matches!(&why[..], [WhyNotFused::Kernel { why, .. }, ..] if *why == says);
        assert_eq!(is_told, is_intel, "{call}: {why:?}");
        assert!(is_intel || why.is_empty(), "{call}: {why:?}");
    }
}
