//! Functions that ask for ids, and that kernels call: which can be written again, and what is written.

use super::{Callee, Dialect, Form, FusedArg, FusedKernel, FusedLaunch, FusedParam, Unit, each_item, fused};
use crate::opencl_c::fused_tests::is_kept;
use crate::opencl_c::source::{NotItem, Source};
use crate::opencl_c::unreadable::Unreadable;

fn item(text: &str) -> Result<(), NotItem> {
    Source::read(text, "").unwrap().item("f").map(|_| ())
}

/// A source in which `h` asks for ids, and a kernel that has this body.
fn with(before: &str, body: &str) -> String {
    format!(
        "uint h(uint x) {{ return get_global_id(x); }}\n{before}\nkernel void f(global uint *a, uint n) {{ {body} }}\n"
    )
}

#[test]
fn calls_of_functions_that_ask_for_ids_are_read() {
    for (before, body) in [
        ("", "a[0] = h(1);"),
        ("", "a[h(h(0))] += h (n) * sizeof h(0); if (n) h(1); else h\n(2); do h(1); while (n--);"),
        ("", "switch (n) { case 1: h(1); } return;"),
        ("#define CALL(x) (h(x) + 1)", "a[0] = CALL(h(1));"),
        ("#define CALL(...) h(__VA_ARGS__)", "a[0] = CALL(1);"),
        ("#define CALL(x) INNER(x)\n#define INNER(x) h(x)", "a[0] = CALL(CALL(1));"),
        ("uint g(void) { return h(1); } static inline uint k(uint x) { return g() + x; }", "a[0] = k(1);"),
        ("uint g(uint x); uint k(uint x) { return g(x); } uint g(uint x) { return h(x); }", "a[0] = k(1);"),
        ("__attribute__((noinline)) uint g() { return h(1); }", "a[0] = g();"),
        ("#define API\n#define INLINE inline\nAPI INLINE uint g() { return h(1); }", "a[0] = g();"),
        ("#define REAL float\nconst REAL g(const global REAL *restrict x) { return x[h(0)]; }", "a[0] = g(0);"),
        ("struct s { int x; }; struct s *g(struct s *x) { return x + h(1); }", "struct s s; g(&s);"),
        // Members have the name, too.
        ("struct s { uint h; };", "struct s s; s.h = h(1); a[(&s)->h] = 1;"),
        ("#define H(s) (s.h + h(1))\nstruct s { uint h; };", "struct s s; a[0] = H(s);"),
        // What is not called is not written again.
        ("uint g() { return h(1) + __LINE__; }", "a[0] = h(1);"),
        ("#if 1\nuint g() { return h(1); }\n#endif", "a[0] = h(1);"),
        ("kernel void k(global uint *a) { a[0] = h(1); }", "a[0] = h(1);"),
        ("", "\n#if 1\na[0] = h(1);\n#else\na[0] = h(2);\n#endif\n"),
    ] {
        let text = with(before, body);
        assert_eq!(item(&text), Ok(()), "{text}");
    }
}

#[test]
fn functions_that_cannot_be_written_again_are_refused_with_the_reason() {
    let name = |word: &str| NotItem::Name(word.to_owned());
    let of = |function: &str, why: NotItem| NotItem::Helper(function.to_owned(), Box::new(why));
    let place = |word: &str| NotItem::Place(word.to_owned());
    let attribute = |word: &str| NotItem::Attribute(word.to_owned());
    let cases = [
        // The name without the mark that calls it: a macro does not stand for it.
        ("", "a[0] = (h)(1);", name("h")),
        ("", "a[0] = (&h)(1);", name("h")),
        ("#define CALL(f, x) f(x)", "a[0] = CALL(h, 1);", name("h")),
        ("#define F h", "a[0] = F(1);", name("h")),
        ("#define F G\n#define G h", "a[0] = F(1);", name("h")),
        ("#define F h\n#define F (1)", "a[0] = 1 + F;", name("h")),
        ("#define NOTHING", "a[0] = h NOTHING (1);", name("h")),
        ("#define AT (1)\n#define F h AT", "a[0] = F;", name("h")),
        ("", "a[0] = h\n#if 1\n(1)\n#endif\n;", name("h")),
        ("uint g() { return (h)(1); }", "a[0] = g();", name("h")),
        ("#define F h\nuint g() { return F(1); }", "a[0] = g();", name("h")),
        ("uint g(uint h) { return get_global_id(h); }", "a[0] = g(1);", name("h")),
        ("", "uint h = 1; a[0] = h;", name("h")),
        ("", "goto h; h: a[0] = 1;", name("h")),
        ("", "typedef uint h; h (x) = 1;", name("h")),
        // It may be declared.
        ("", "uint h(uint x); a[0] = h(1);", name("h")),
        ("#define T uint", "T h(uint x); a[0] = h(1);", name("h")),
        ("#define D uint h(uint x)", "D; a[0] = h(1);", name("h")),
        ("#define D(t) t h(uint x)", "D(uint); a[0] = h(1);", name("h")),
        // Conditions.
        ("", "\n#ifdef h\n#endif\na[0] = h(1);", NotItem::Condition("h".to_owned())),
        ("#define HAS defined(h)", "\n#if HAS\n#endif\na[0] = h(1);", NotItem::Condition("h".to_owned())),
        ("", "\n#ifdef h\n#endif\na[0] = 1;", NotItem::Condition("h".to_owned())),
        ("uint g() {\n#ifdef h\n#endif\nreturn h(1); }", "a[0] = g();", of("g", NotItem::Condition("h".to_owned()))),
        ("uint g() {\n#ifdef get_global_id\n#endif\nreturn h(1); }", "a[0] = g();", {
            of("g", NotItem::Condition("get_global_id".to_owned()))
        }),
        // Several functions.
        ("#if 0\nuint g() { return h(1); }\n#else\nuint g() { return h(2); }\n#endif", "a[0] = g();", {
            of("g", NotItem::Twice)
        }),
        ("#if 0\nuint g() { return 1; }\n#else\nuint g() { return h(2); }\n#endif", "a[0] = g();", {
            of("g", NotItem::Twice)
        }),
        ("#if 0\nkernel void g() {}\n#else\nvoid g() { h(2); }\n#endif", "g();", NotItem::Kernel("g".to_owned())),
        ("#if 1\nuint g() { return h(1); }\n#endif", "a[0] = g();", of("g", NotItem::Conditional)),
        ("#if 1\n#if 1\n#endif\nuint g() { return h(1); }\n#endif", "a[0] = g();", of("g", NotItem::Conditional)),
        ("uint __attribute__((overloadable)) g(uint x) { return h(1); }", "a[0] = g(1);", of("g", NotItem::Overloaded)),
        ("uint __attribute__((overloadable)) g(float x); uint g(uint x) { return h(1); }", "a[0] = g(1);", {
            of("g", NotItem::Overloaded)
        }),
        ("uint isnan(uint x) { return h(1); }", "a[0] = isnan(2.0f);", of("isnan", NotItem::Overloaded)),
        ("uint convert_id(uint x) { return h(1); }", "a[0] = convert_id(n);", of("convert_id", NotItem::Overloaded)),
        // A kernel.
        ("kernel void g() { h(1); }", "g();", NotItem::Kernel("g".to_owned())),
        ("kernel void g() {}", "g();", NotItem::Kernel("g".to_owned())),
        ("", "f(a, n - 1); a[0] = h(1);", NotItem::Kernel("f".to_owned())),
        ("kernel void k() { h(1); } void g() { k(); }", "g();", NotItem::Kernel("k".to_owned())),
        // What is before it, or its parameters.
        ("extern uint g() { return h(1); }", "a[0] = g();", of("g", attribute("extern"))),
        ("__attribute__((const)) uint g() { return h(1); }", "a[0] = g();", of("g", attribute("const"))),
        ("uint g() __attribute__((pure)); uint g() { return h(1); }", "a[0] = g();", of("g", attribute("pure"))),
        ("#define IT inline uint\nIT g() { return h(1); }", "a[0] = g();", of("g", attribute("IT"))),
        ("struct s { int x; } g() { struct s s; s.x = h(1); return s; }", "g();", of("g", attribute("{"))),
        ("uint g(uint x[2]) { return h(1); }", "a[0] = g(0);", of("g", NotItem::Params)),
        ("uint g(uint x, ...) { return h(1); }", "a[0] = g(0);", of("g", NotItem::Params)),
        // What means something else at the end.
        ("uint g() { return h(1) + __LINE__; }", "a[0] = g();", place("__LINE__")),
        ("uint g() { return h(sizeof(__func__)); }", "a[0] = g();", place("__func__")),
        ("#define S(x) #x\nuint g() { return h(sizeof(S(1))); }", "a[0] = g();", NotItem::Quotes("S".to_owned())),
        ("uint g() {\n#define X 1\nreturn h(X); }", "a[0] = g();", of("g", NotItem::Directive)),
        ("uint g() { return h(t(1)); } uint t(uint x) { return x; }", "a[0] = g();", {
            of("g", NotItem::Later("t".to_owned()))
        }),
        ("float g() { return h(1) * 1.1f; }\n#pragma OPENCL FP_CONTRACT OFF", "a[0] = g();", {
            of("g", NotItem::Pragma("OPENCL FP_CONTRACT OFF".to_owned()))
        }),
        ("#define X 1\nuint g() { return h(X); }\n#undef X\n#define X 2", "a[0] = g();", {
            of("g", NotItem::Unreadable(Unreadable::Redefined("X".to_owned())))
        }),
        ("#define X uint\nX g() { return h(1); }\n#undef X\n#define X float", "a[0] = g();", {
            of("g", NotItem::Unreadable(Unreadable::Redefined("X".to_owned())))
        }),
        // What work-items do together.
        ("void g() { h(1); work_group_any(1); }", "g();", NotItem::Waits),
        ("void g(global uint *x) { atomic_inc(x + h(1)); }", "g(a);", NotItem::Order("atomic_inc".to_owned())),
        ("uint g() { return (get_local_id)(0); }", "a[0] = g();", of("g", name("get_local_id"))),
    ];
    let found: Vec<_> = cases
        .iter()
        .map(|(before, body, why)| (with(before, body), why, item(&with(before, body))))
        .filter(|(_, why, is)| Err((*why).clone()) != *is)
        .collect();
    assert!(found.is_empty(), "{found:#?}");
    // Nothing but the kernel names the function as an option does.
    let text = with("", "a[0] = CALL(1);");
    for (option, is) in [("-DCALL=h", Err(name("h"))), ("-DCALL(x)=h(x)", Ok(()))] {
        assert_eq!(Source::read(&text, option).unwrap().item("f").map(|_| ()), is, "{option}");
    }
}

/// The source that drivers get. `tests/fused.rs` builds and runs such sources on each driver.
#[test]
fn functions_that_ask_for_ids_are_written_again_before_kernels() {
    let text = "size_t at() { return get_global_id(0); }\n\
        static inline float twice(float x) { return 2 * x; }\n\
        __attribute__((always_inline)) static float of(global const float *from, uint by) { return twice(from[at() * by]); }\n\
        void unused() { at(); }\n\
        kernel void f(global float *to) { to[at()] = of(to, get_work_dim()); }\n\
        kernel void g(global float *to) { to[get_global_id(0)] = twice(1); }\n";
    let source = Source::read(text, "").unwrap();
    let range = [[FusedArg::Number(0); 3], [FusedArg::Number(1); 3], [FusedArg::Number(1); 3]];
    let launch = |kernel: &str| FusedLaunch {
        kernel: Callee { unit: 0, kernel: kernel.to_owned() },
        args: vec![FusedArg::Param(0)],
        dims: 1,
        range,
    };
    let launches = vec![launch("f"), launch("g")];
    let kernel = FusedKernel {
        params: vec![FusedParam::Memory],
        launches,
        tabled: 0,
        lane_ends: Vec::new(),
        group: None,
        turns: false,
    };
    let dialect = Dialect {
        form: Form::OneItem,
        part: None,
        size_beyond: 1,
        vectorizes: true,
        joins_items: false,
        copies_behind_loops: false,
    };
    let all = fused(&Unit::alone(text, &source), dialect, std::slice::from_ref(&kernel), true);
    is_kept("helpers", &all);
    // Work-items on their own ask the driver.
    let all = each_item(&Unit::alone(text, &source), &[kernel], false);
    assert!(!all.contains("clgraph_fuse_of"), "{all}");
}
