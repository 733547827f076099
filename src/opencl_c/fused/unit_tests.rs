//! Texts of several programs that become one.

use super::{Callee, FusedArg, FusedKernel, FusedLaunch, FusedParam, Unit, ValueType, each_item};
use crate::opencl_c::fused_tests::is_kept;
use crate::opencl_c::source::Source;

/// What a source needs so that it can be one text with others, as words.
fn joining(text: &str, options: &str) -> Option<String> {
    let source = Source::read(text, options).unwrap();
    let joining = source.joining()?;
    let listed = |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
    Some(format!("{} | {} | {}", listed(&joining.names), listed(&joining.macros), joining.dialect))
}

#[test]
fn what_a_source_declares_for_all_of_its_text_is_known() {
    let cases = [
        ("float h(float x); float h(float x) { int y; return x; } kernel void f() {}", "f h |  | \n"),
        ("typedef struct inner { int a, b; } outer; typedef float t[4], *u;", "inner outer t u |  | \n"),
        (
            "enum { A, B = 1, C = (A + 2) }; enum e { D }; struct s; kernel void f(struct s *p) {}",
            "A B C D e f s |  | \n",
        ),
        ("typedef enum e { A = B } E __attribute__((aligned(4)));", "A E e |  | \n"),
        ("constant float a[2] = { 1, 2 }, b = 1; constant sampler_t s = 7;", "a b s |  | \n"),
        ("#define X(a) (a)\n#undef Y\n#define Z\nkernel void f() {}", "f | X Y Z | \n"),
        ("struct s f(int a) { struct s b; return b; }", "f s |  | \n"),
        (
            "typedef struct __attribute__((packed)) { int a; } s; typedef int t __attribute((packed)), u;",
            "s t u |  | \n",
        ),
        ("enum { A,\n#if 1\nB = 7,\n#endif\nC };", "A B C |  | \n"),
        ("#define N 3\r\nkernel void f() {}\r\n", "f | N | \n"),
    ];
    for (text, expected) in cases {
        assert_eq!(joining(text, "").as_deref(), Some(expected), "{text}");
    }
    let options = "-DN=3 -cl-mad-enable -D M(x)=x -I /tmp -w";
    assert_eq!(joining("kernel void f() {}", options).as_deref(), Some("f | M N | -cl-mad-enable -w\n"));
}

/// What would mean something else behind or before another text.
#[test]
fn sources_that_have_to_stay_alone_do_so() {
    let f = "kernel void f() {}";
    let alone = [
        // The preprocessor would see another name, or none.
        "void h();\n#ifdef h\n#endif",
        "void h() {}\n#if defined(x) && h > 1\n#endif",
        "#ifndef t\ntypedef int t;\n#endif",
        "typedef int t;\n#undef t",
        // Functions of OpenCL C that have the name would be hidden.
        "float fma(uint a) { return a; }",
        "typedef int atomic_int;",
        "constant int a = __COUNTER__;",
        "void h() {}\n#pragma OPENCL FP_CONTRACT OFF",
        "void h() {}\n#define HAS defined(h)\n#if HAS\n#endif",
        "#if __has_include(\"h.h\")\n#endif",
        // Attributes would have another name, or none.
        "struct __attribute__((packed)) s { int a; }; int packed();",
        "#define PACK packed\ntypedef struct { int a; } __attribute((PACK)) s; enum { packed };",
        "int vectorize(int a) { return a; }",
        // So would components of vectors.
        "constant float w = 1; float h(float4 v) { return v.w; }",
        "enum { s0 }; float h(float4 v) { return v.s0; }",
        // Texts and numbers are made of names and places.
        "#define TEXT(x) #x\nvoid h() {}",
        "int h() { return sizeof(__func__); }",
        "int h() { return __INCLUDE_LEVEL__; }",
    ];
    for text in alone {
        assert_eq!(joining(&format!("{text}\n{f}"), ""), None, "{text}");
    }
    // The compiler's own text would see another macro.
    for options in ["-Dcl_khr_fp64", "-D __OPENCL_VERSION__=7", "-Dfma(a,b,c)=a"] {
        assert_eq!(joining(f, options), None, "{options}");
    }
    let own = ["constant float w = 1; struct s { int w, lo; };", "int h() { return __LINE__; }"];
    own.into_iter().for_each(|text| assert_ne!(joining(&format!("{text}\n{f}"), ""), None, "{text}"));
    let dialect = |text: &str, options: &str| joining(&format!("{text}\n{f}"), options).unwrap();
    let off = "#pragma OPENCL FP_CONTRACT OFF";
    assert_eq!(dialect(off, ""), "f |  | \nOPENCL FP_CONTRACT OFF");
    // What only adds functions, or ends with a function, changes no other text.
    assert_eq!(dialect("#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable", ""), "f |  | \n");
    assert_eq!(dialect("void h() {\n#pragma unroll\nfor (;;); }", ""), "f h |  | \n");
    // What depends on a condition is the same only where all conditions are.
    let double = "#ifdef HAS\n#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n#endif";
    assert_eq!(dialect(double, "-DHAS"), dialect(double, "-DHAS"));
    assert_ne!(dialect(double, "-DHAS"), dialect(double, "-DHAS=2"));
    assert_ne!(dialect(double, ""), dialect(&format!("#define HAS\n{double}"), ""));
}

#[test]
fn names_of_other_texts_are_macros_in_a_text() {
    let first =
        "float twice(float x) { return x * N; }\nkernel void f(global float *x, real by) { x[0] = twice(by); }\n";
    let second =
        "#define N 7\nint twice(int x) { return x + N; }\nkernel void g(global float *x) { x[1] = twice(2); }\n";
    let third = "kernel void h(global float *x) { x[2] = 1; }\n";
    let options = ["-DN=3 -Dreal=float", "", ""];
    let sources: Vec<Source> =
        [first, second, third].into_iter().zip(options).map(|(text, of)| Source::read(text, of).unwrap()).collect();
    let units: Vec<Unit<'_>> = [first, second, third]
        .into_iter()
        .zip(&sources)
        .zip(options)
        .map(|((text, source), options)| Unit { text, source, options })
        .collect();
    let range = [[FusedArg::Number(1); 3]; 3];
    let launch = |unit, kernel: &str, args: &[usize]| {
        let (args, kernel) = (args.iter().map(|at| FusedArg::Param(*at)).collect(), kernel.to_owned());
        FusedLaunch { kernel: Callee { unit, kernel }, args, dims: 1, range }
    };
    let params = vec![FusedParam::Memory, FusedParam::Value(ValueType::Of(0, "real".to_owned()), 4)];
    let launches = vec![launch(0, "f", &[0, 1]), launch(1, "g", &[0]), launch(2, "h", &[0])];
    let kernel = FusedKernel { params, launches, tabled: 0, lane_ends: Vec::new(), group: None, turns: false };
    is_kept("programs", &each_item(&units, &[kernel], false));
}
