//! Launches of several programs that one kernel does: rule Z1. Names, macros and types are those of each program.

mod common;

use std::fmt::Write;
use std::time::Duration;

use clgraph::{
    Buffer, Executable, Finalize, Fuse, Graph, Kernel, Program, ProgramBuilder, Report, WhyApart, WhyNotFused,
};
use common::Bench;

const LONG: Duration = Duration::from_secs(120);
const LEN: usize = 96;

/// A program in which the words of the other ones mean something else. `N`, `KEYS`, `pair` and `number` are numbers, and a type.
const SOURCE: &str = "
    #ifdef GUARD
    #error a macro of another program
    #endif
    #define GUARD
    #ifndef LAST
    #define LAST(x) ((x) + N)
    #endif
    #undef M_PI_F
    #define M_PI_F (float)(N * 3)
    #define UNUSED_NAME(helper) (helper + 1)
    enum { FIRST = KEYS, SECOND };
    enum kind { BIG = N + KEYS };
    typedef number real;
    typedef struct { MEMBERS } pair;
    struct point { real helper, table; };
    constant float table[2] = { N, KEYS }, one = N / 2.0f;
    real helper(real x);
    real helper(real x) { enum kind k = BIG; return (real)(x * (real)0.5f + x * table[0] * (real)k); }
    float where(global const float *x, uint by) { return x[get_global_id(0)] + by; }
    float both(float table, float pair) { struct point of = { table, pair }; return of.helper - of.table + N; }
    kernel void f(global float *x, const pair by, real more) {
        size_t i = get_global_id(0);
        x[i] = (float)helper((real)x[i]) + LAST(by.a) + by.b * FIRST + SECOND * (float)more + both(x[i], one);
    }
    kernel void g(global float *x, uint by) { x[get_global_id(0)] = where(x, by) + M_PI_F + table[1] + UNUSED_NAME(N); }
";

/// Without the words of the others.
const OTHER: &str = "
    float wobble(float x) { return x * 0.75f + 1; }
    #ifdef KEYS
    #error an option of another program
    #endif
    kernel void f(global float *x, float by) {
        float helper = M_PI_F, table = 2, g = 1;
        x[get_global_id(0)] = wobble(x[get_global_id(0)]) * by + helper + table + g;
    }
";

/// The elements where each work-item does its part of all launches.
const LONG_LEN: usize = 100_000;

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Pair {
    a: f32,
    b: i32,
}

fn standard(bench: &Bench) -> &'static str {
    if bench.queue.device().caps().version.major >= 3 { "-cl-std=CL3.0" } else { "-cl-std=CL2.0" }
}

/// Four programs of the same words with other meanings.
struct Field {
    bench: Bench,
    programs: Vec<Program>,
}

impl Field {
    fn new() -> Self {
        let bench = Bench::new();
        let std = standard(&bench);
        let options = [
            format!("-D N=3 {std} -DKEYS=7 -Dnumber=float"),
            format!("{std} -DN=5 -DKEYS=11 -Dnumber=int"),
            format!("-DN=9 -DKEYS=(N+1) -Dnumber=float {std} -DLAST(y)=((y)*2)"),
        ];
        let mut programs = Vec::new();
        for (at, options) in options.iter().enumerate() {
            // The members of a struct are the other way round in each second one.
            let source = SOURCE.replace("MEMBERS", ["float a; int b;", "int b; float a;"][at % 2]);
            programs.push(ProgramBuilder::new(&bench.queue).options(options).source(&source).unwrap());
        }
        programs.push(ProgramBuilder::new(&bench.queue).options(std).source(OTHER).unwrap());
        Self { bench, programs }
    }

    fn kernel(&self, program: usize, name: &str) -> Kernel {
        self.programs[program].kernel(name).unwrap()
    }

    /// Adds a launch that works on a buffer.
    fn add(&self, graph: &Graph, number: usize, x: &Buffer<f32>, len: usize, promises: bool) {
        let (program, by) = (number % self.programs.len(), number as f32 * 0.25 + 1.0);
        let kernel = self.kernel(program, if program < 3 && number.is_multiple_of(3) { "g" } else { "f" });
        let node = graph.kernel(&kernel).read_write(x).range(len);
        let node = if promises { node.elementwise(0, 4) } else { node };
        let pair = Pair { a: by, b: number as i32 };
        let swapped = [number as i32, by.to_bits() as i32];
        // SAFETY: a work-item touches its own element.
        unsafe {
            match (kernel.name(), program) {
                ("g", _) => node.arg(number as u32).add(),
                (_, 0 | 2) => node.arg(pair).arg(by).add(),
                (_, 1) => node.arg(swapped).arg(number as i32).add(),
                _ => node.arg(by).add(),
            }
        }
        .unwrap();
    }

    fn run(&self, executable: &Executable, x: &Buffer<f32>) -> Vec<u32> {
        let data: Vec<f32> = (0..x.len()).map(|at| (at % 1000) as f32 * 0.37).collect();
        self.bench.queue.enqueue_write_buffer(x, 0, &data, &[]).unwrap();
        for _ in 0..2 {
            executable.submit(&self.bench.queue).unwrap().wait_for(LONG).unwrap();
        }
        self.bench.content(&x.cast().unwrap())
    }

    /// Compares a graph that is fused with the same one that is not.
    fn compare(&self, graph: &Graph, x: &Buffer<f32>) -> Report {
        let plain = graph.finalize(Finalize::new().fuse(Fuse::Off)).unwrap();
        let fused = graph.finalize(Finalize::new().fuse(Fuse::Now)).unwrap();
        let expected = self.run(&plain, x);
        assert_eq!(self.run(&fused, x), expected, "{}", fused.report());
        fused.report()
    }
}

/// Rusticl crashes on some functions that ask for ids and are written again, so such kernels are not fused there.
fn fuses_helpers(bench: &Bench) -> bool {
    bench.queue.device().caps().platform != "rusticl"
}

#[test]
fn launches_of_several_programs_are_one() {
    let field = Field::new();
    let (graph, x) = (field.bench.graph(), Buffer::<f32>::new(&field.bench.queue, LEN).unwrap());
    let numbers: Vec<usize> = (0..24).filter(|number| fuses_helpers(&field.bench) || number % 3 > 0).collect();
    numbers.iter().for_each(|number| field.add(&graph, *number, &x, LEN, false));
    let report = field.compare(&graph, &x);
    assert_eq!(report.fused.len(), 1, "{report}");
    assert_eq!(report.fused[0].nodes.len(), numbers.len(), "{report}");
}

/// Rule Z4
#[test]
fn work_items_do_their_parts_of_several_programs() {
    let field = Field::new();
    let len = LONG_LEN;
    let (graph, x) = (field.bench.graph(), Buffer::<f32>::new(&field.bench.queue, len).unwrap());
    let numbers: Vec<usize> = (0..16).filter(|number| fuses_helpers(&field.bench) || number % 3 > 0).collect();
    numbers.iter().for_each(|number| field.add(&graph, *number, &x, len, true));
    let report = field.compare(&graph, &x);
    assert_eq!(report.fused.iter().map(|of| of.nodes.len()).sum::<usize>(), numbers.len(), "{report}");
    assert_eq!(report.fused.len(), 1, "{report}");
}

/// Rule Z5: arguments of launches of several programs change by updates.
#[test]
fn arguments_of_several_programs_are_updated() {
    let field = Field::new();
    let [x, y] = [(); 2].map(|()| Buffer::<f32>::new(&field.bench.queue, LEN).unwrap());
    let graph = |x: &Buffer<f32>, add: usize| {
        let graph = field.bench.graph();
        (0..12).filter(|number| number % 3 > 0).for_each(|number| field.add(&graph, number * add, x, LEN, false));
        graph
    };
    let fused = graph(&x, 1).finalize(Finalize::new().fuse(Fuse::Now).updatable()).unwrap();
    assert_eq!(fused.report().fused.len(), 1, "{}", fused.report());
    for (of, add) in [(&y, 1), (&x, 5), (&y, 13)] {
        let other = graph(of, add);
        fused.update_from(&other).unwrap();
        let expected = field.run(&other.finalize(Finalize::new().fuse(Fuse::Off)).unwrap(), of);
        assert_eq!(field.run(&fused, of), expected);
    }
}

/// Rule Z2: programs whose texts cannot be one keep their launches apart, and each of them has its own.
#[test]
fn programs_of_other_dialects_stay_apart() {
    let field = Field::new();
    let x = Buffer::<f32>::new(&field.bench.queue, LEN).unwrap();
    let source = |body: &str| format!("{body}\nkernel void f(global float *x) {{ x[get_global_id(0)] += 0.1f * N; }}");
    let plain = || (source("#define N 1"), "-cl-std=CL1.2");
    let others = [
        // Options, and pragmas for all of a text, are for all that follows.
        (source("#define N 2"), "-cl-std=CL1.2 -cl-mad-enable"),
        (source("#pragma OPENCL FP_CONTRACT OFF\n#define N 2"), "-cl-std=CL1.2"),
        (source("#define N 2\nvoid h(void);\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable"), "-cl-std=CL1.2"),
        // A name that the preprocessor asks for too.
        (source("#define N 2\n#ifdef h\n#define N 3\n#endif\nvoid h(void) {}"), "-cl-std=CL1.2"),
        // A function that OpenCL C has too: what a call means depends on all of that name.
        (source("#define N 2\nfloat __attribute__((overloadable)) fma(uint a) { return a; }"), "-cl-std=CL1.2"),
        (source("#define N 2\nconstant int counted = __COUNTER__;"), "-cl-std=CL1.2"),
    ];
    let built = |(source, options): &(String, &str)| {
        ProgramBuilder::new(&field.bench.queue).options(options).source(source).unwrap().kernel("f").unwrap()
    };
    for other in others {
        let kernels = [built(&plain()), built(&other)];
        let graph = field.bench.graph();
        for kernel in [0, 0, 1, 1, 0, 1, 1] {
            // SAFETY: a work-item touches its own element.
            unsafe { graph.kernel(&kernels[kernel]).read_write(&x).range(LEN).add() }.unwrap();
        }
        let report = field.compare(&graph, &x);
        let nodes: Vec<&[usize]> = report.fused.iter().map(|of| of.nodes.as_slice()).collect();
        assert_eq!(nodes, [&[0, 1][..], &[2, 3], &[5, 6]], "{}\n{report}", other.0);
        let ends: Vec<_> = report.fused.iter().map(|of| of.ends).collect();
        assert_eq!(ends, [Some(WhyApart::Programs), Some(WhyApart::Programs), None], "{report}");
        let says = "node 4: it is not in one kernel with the launch beside it: their programs cannot be one, or they are too many\n";
        assert!(report.to_string().contains(says), "{report}");
        assert!(report.to_string().contains("nodes 0 to 1 (the next launch is apart: their programs"), "{report}");
        assert!(
            matches!(report.not_fused[..], [ref of] if of.node == 4 && of.why == WhyNotFused::Apart { why: WhyApart::Programs }),
            "{report}"
        );
    }
}

/// Rule Z2: where the compiler does not build the text of several programs, each has its own.
#[test]
fn a_program_that_is_not_built_with_others_keeps_only_its_own_launches() {
    let field = Field::new();
    let x = Buffer::<f32>::new(&field.bench.queue, LEN).unwrap();
    // Braces do not hold the arguments of a macro together.
    let odd = "kernel void f(global float *x) { x[get_global_id((uint2){0, 1}.x)] += 1; }";
    let plain = "kernel void f(global float *x) { x[get_global_id(0)] += 10; }";
    let kernels = [odd, plain].map(|source| {
        let program = ProgramBuilder::new(&field.bench.queue).options(standard(&field.bench)).source(source);
        program.unwrap().kernel("f").unwrap()
    });
    let graph = field.bench.graph();
    for kernel in [0, 0, 1, 1, 1] {
        // SAFETY: a work-item touches its own element.
        unsafe { graph.kernel(&kernels[kernel]).read_write(&x).range(LEN).add() }.unwrap();
    }
    let report = field.compare(&graph, &x);
    assert_eq!(report.fused.iter().map(|of| of.nodes.as_slice()).collect::<Vec<_>>(), [&[2, 3, 4]], "{report}");
    assert_eq!(report.not_fused.iter().map(|of| of.node).collect::<Vec<_>>(), [0, 1], "{report}");
}

/// Rule Z2: the same where each chain is of one program.
#[test]
fn chains_of_one_program_are_built_where_the_text_of_several_is_not() {
    let field = Field::new();
    let x = Buffer::<f32>::new(&field.bench.queue, LEN).unwrap();
    let kernels = ["1", "2"].map(|number| {
        // Two types that no macro stands for, because they are read as types of OpenCL C's.
        let source = format!(
            "typedef struct {{ ulong low, high; }} uint128;
            kernel void f(global float *x) {{ uint128 by = {{ 3, {number} }}; x[get_global_id(0)] += by.low + 2 * by.high; }}"
        );
        Program::from_source(&field.bench.queue, &source).unwrap().kernel("f").unwrap()
    });
    let graph = field.bench.graph();
    // SAFETY: a work-item touches its own element.
    let add = |kernel| unsafe { graph.kernel(kernel).read_write(&x).range(LEN).add() }.unwrap();
    let of_first = [(); 3].map(|()| add(&kernels[0]));
    let task = graph.host_task(|_| -> clgraph::Result<()> { Ok(()) }).after(of_first[2]).add().unwrap();
    let of_second = [(); 3].map(|()| add(&kernels[1]));
    graph.add_edge(task, of_second[0]).unwrap();
    let report = field.compare(&graph, &x);
    assert_eq!(
        report.fused.iter().map(|of| of.nodes.as_slice()).collect::<Vec<_>>(),
        [&[0, 1, 2], &[4, 5, 6]],
        "{report}"
    );
}

/// What a program declares, what its kernel adds, and its options.
type Parts<'a> = (&'a str, &'a str, &'a str);

/// Rule Z2: texts that see names, options or places do not see those of the text of several.
#[test]
fn texts_that_see_more_than_themselves_mean_the_same() {
    let field = Field::new();
    let x = Buffer::<f32>::new(&field.bench.queue, LEN).unwrap();
    let folder = std::env::temp_dir().join(format!("clgraph-fused-programs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("has.h"), "").unwrap();
    let include = format!("-I {}", folder.display());
    let helper = "uint helper(uint a) { return a + 5; }";
    let texts = "#define TEXT1(a) #a\n#define TEXT(a) TEXT1(a)\nuint helper(uint a) { return a; }\n";
    let has = |condition: &str| format!("#if {condition}\n#define HAS 1\n#else\n#define HAS 2\n#endif\n");
    // Whether they are one kernel, and two programs.
    let cases: [(bool, [Parts<'_>; 2]); 13] = [
        // Attributes.
        (
            true,
            [
                ("typedef struct __attribute__((packed)) { char c; int i; } s;", "sizeof(s)", ""),
                ("typedef struct { char c; int i; } __attribute__((packed)) t;", "sizeof(t)", ""),
            ],
        ),
        (
            false,
            [
                (
                    "struct __attribute__((packed)) s { char c; int i; }; uint packed(uint a) { return a; }",
                    "sizeof(struct s)",
                    "",
                ),
                ("uint packed(uint a) { return a; }", "packed(3)", ""),
            ],
        ),
        // Texts of names.
        (
            false,
            [
                (&format!("{texts}uint size() {{ return sizeof(TEXT(helper)); }}"), "size()", ""),
                (helper, "helper(1)", ""),
            ],
        ),
        (false, [("uint helper(uint a) { return sizeof(__func__); }", "helper(1)", ""), (helper, "helper(1)", "")]),
        (
            false,
            [
                ("typedef uint real; uint size(real a) { return sizeof(__PRETTY_FUNCTION__); }", "size(1)", ""),
                ("typedef ulong real;", "(real)1", ""),
            ],
        ),
        (false, [("# 1 \"a.h\" 1", "1", ""), ("uint level() { return __INCLUDE_LEVEL__; }", "level()", "")]),
        // Conditions.
        (
            false,
            [
                (&format!("{helper}\n#define HELPS defined(helper)\n{}", has("HELPS")), "helper(1) + HAS", ""),
                (helper, "helper(2)", ""),
            ],
        ),
        (
            false,
            [
                (&format!("{helper}\n{}", has("HELPS")), "helper(1) + HAS", "-DHELPS=defined(helper)"),
                (helper, "helper(2)", ""),
            ],
        ),
        (false, [(&has("__has_include(\"has.h\")"), "HAS", &include), ("", "1", "")]),
        // Macros of the compiler's.
        (false, [("", "M_PI_F", "-DM_PI_F=3.0f"), ("", "M_PI_F", "")]),
        (false, [("", "(FLT_MAX > 2)", "-DFLT_MAX=1.0f"), ("", "(INT_MAX == 7)", "-DINT_MAX=7")]),
        (false, [("", "__OPENCL_VERSION__", "-D__OPENCL_VERSION__=7"), ("", "__OPENCL_VERSION__", "")]),
        // A macro whose name ends before the option says so.
        (false, [("", "1", "-DHELPS+1"), (&has("defined(HELPS)"), "HAS", "")]),
    ];
    for (is_one, programs) in cases {
        let kernels = programs.map(|(declares, adds, options)| {
            let source = format!("{declares}\nkernel void f(global float *x) {{ x[get_global_id(0)] += {adds}; }}");
            ProgramBuilder::new(&field.bench.queue).options(options).source(&source).unwrap().kernel("f").unwrap()
        });
        let graph = field.bench.graph();
        for kernel in [0, 0, 1, 1, 0] {
            // SAFETY: a work-item touches its own element.
            unsafe { graph.kernel(&kernels[kernel]).read_write(&x).range(LEN).add() }.unwrap();
        }
        let report = field.compare(&graph, &x);
        assert_eq!(report.fused.len() == 1 && report.fused[0].nodes.len() == 5, is_one, "{programs:?}\n{report}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Many programs are some texts, each of a bounded number of them; programs of one text are one.
#[test]
fn many_programs_are_a_few_texts() {
    let field = Field::new();
    let (graph, x) = (field.bench.graph(), Buffer::<f32>::new(&field.bench.queue, LEN).unwrap());
    let mut sources: Vec<String> = Vec::new();
    for number in 0..70 {
        let mut source = String::new();
        writeln!(source, "float own(float x) {{ return x * 0.5f + {number}; }}").unwrap();
        writeln!(source, "kernel void f(global float *x) {{ size_t i = get_global_id(0); x[i] = own(x[i]); }}")
            .unwrap();
        sources.push(source);
    }
    for source in sources.iter().chain(&sources[64..]) {
        let program = ProgramBuilder::new(&field.bench.queue).source(source).unwrap();
        // SAFETY: a work-item touches its own element.
        unsafe { graph.kernel(&program.kernel("f").unwrap()).read_write(&x).range(LEN).add() }.unwrap();
    }
    let report = field.compare(&graph, &x);
    let counts: Vec<usize> = report.fused.iter().map(|of| of.nodes.len()).collect();
    assert_eq!(counts, [32, 32, 12], "{report}");
}

/// Rule Z1: which branches of conditions hold only the driver's compiler knows, and macros can be statements, parameters and parts of names.
#[test]
fn programs_with_conditions_and_macros_that_are_statements_are_fused() {
    const SOURCE: &str = "
        #ifdef __OPENCL_VERSION__
        #define SIZES const int width, const int height,
        #else
        #error no compiler for OpenCL
        #endif
        #ifdef UNKNOWN_EXTENSION_OF_A_VENDOR
        #define KERNEL __attribute__((vendors_own(64))) kernel
        #define TIMES 3.0f
        #else
        #define KERNEL kernel
        #define TIMES 2.0f
        #endif
        #define INSIDE(i) if (i >= width * height) { return; }
        #define CAT(a, b) a##b
        #define EACH(i, body) for (int i = 0; i < 3; i++) { body; }
        #if defined(WIDE) && WIDE > 2
        typedef float4 number;
        #define LAST w
        #else
        typedef float2 number;
        #define LAST y
        #endif
        KERNEL void scale(SIZES global float *x
        #ifdef SHIFT
            , float shift
        #endif
        ) {
            const int CAT(i, d) = get_global_id(0);
            INSIDE(id)
            number v = (number)(x[id] * TIMES);
            EACH(k, v.LAST += k)
        #ifdef SHIFT
            v.LAST -= shift;
        #endif
            x[id] = v.LAST;
        }";
    let bench = Bench::new();
    let x = Buffer::<f32>::new(&bench.queue, LEN).unwrap();
    let built = |options: &str| {
        ProgramBuilder::new(&bench.queue).options(options).source(SOURCE).unwrap().kernel("scale").unwrap()
    };
    let kernels = [built("-DWIDE=4"), built("-DSHIFT"), built("-DSHIFT=1 -DWIDE=1")];
    let graph = bench.graph();
    for (at, kernel) in kernels.iter().enumerate().cycle().take(12) {
        let node = graph.kernel(kernel).arg(LEN as i32 / 2).arg(1).read_write(&x);
        let node = if at == 0 { node } else { node.arg(0.25_f32) };
        // SAFETY: a work-item touches its own element.
        unsafe { node.range(LEN).add() }.unwrap();
    }
    let field = Field { bench, programs: Vec::new() };
    let report = field.compare(&graph, &x);
    assert_eq!(report.fused.iter().map(|of| of.nodes.len()).sum::<usize>(), 12, "{report}");
    // What the launches compute on the host.
    let mut expected: Vec<f32> = (0..LEN).map(|at| at as f32 * 0.37).collect();
    for turn in 0..24 {
        expected[..LEN / 2].iter_mut().for_each(|x| *x = *x * 2.0 + 3.0 - if turn % 3 == 0 { 0.0 } else { 0.25 });
    }
    let bits: Vec<u32> = expected.iter().map(|x| x.to_bits()).collect();
    let now = field.bench.content(&x.cast::<u32>().unwrap());
    let near = now
        .iter()
        .zip(&bits)
        .all(|(now, is)| (f32::from_bits(*now) - f32::from_bits(*is)).abs() <= f32::from_bits(*is).abs() * 1e-5);
    assert!(near, "{now:?}\n{bits:?}");
}
