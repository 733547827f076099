//! Which kernels can be functions of one work-item, and what is written of them.

use expect_test::expect_file;

use super::fused::{
    COPY, Callee, Dialect, FILL, Form, FusedArg, FusedKernel, FusedLaunch, FusedParam, Unit, ValueType, each_item,
    fused,
};
use super::source::{NotItem, ParamKind, Source};
use super::unreadable::Unreadable;

/// Compares a source that drivers get with the one that is kept; `UPDATE_EXPECT=1` keeps it. `tests/fused_texts.rs` builds and runs those
/// that are kept on each driver.
pub(super) fn is_kept(name: &str, text: &str) {
    let runs = include_str!("../../tests/fused_texts.rs");
    assert!(runs.contains(&format!("{name:?},")), "tests/fused_texts.rs does not run {name}");
    expect_file![format!("{}/tests/fused_texts/{name}.cl", env!("CARGO_MANIFEST_DIR"))].assert_eq(text);
}

pub(super) fn read(text: &str) -> Source {
    Source::read(text, "").unwrap()
}

#[test]
fn what_is_no_function_of_one_work_item_is_refused_with_the_reason() {
    let order = |word: &str| NotItem::Order(word.to_owned());
    let place = |word: &str| NotItem::Place(word.to_owned());
    let cases = [
        ("void h() { work_group_any(1); } kernel void f() { h(); }", NotItem::Waits),
        ("kernel void f(global int *a) { a[0] = sub_group_reduce_add(a[1]); }", NotItem::Waits),
        ("kernel void f(global int *a) { atomic_inc(a); }", order("atomic_inc")),
        ("#define ADD(x) atom_add(x, 1)\nkernel void f(global int *a) { ADD(a); }", order("atom_add")),
        ("void h(global int *a) { atomic_add(a, 1); } kernel void f(global int *a) { h(a); }", order("atomic_add")),
        ("kernel void f() { printf(\"1\"); }", order("printf")),
        ("kernel void g() { get_global_id(0); } kernel void f() { g(); }", { NotItem::Kernel("g".to_owned()) }),
        ("kernel void f(global int *a) { a[0] = __LINE__; }", place("__LINE__")),
        ("#define HERE __LINE__\nkernel void f(global int *a) { a[0] = HERE; }", place("__LINE__")),
        ("kernel void f(global int *a) {\n#if __LINE__ > 1\na[0] = 1;\n#endif\n}", place("__LINE__")),
        ("kernel void f(global int *a) {\n#define X 1\na[0] = X; }", NotItem::Directive),
        ("kernel void f(global int *a) {\n#undef X\na[0] = 1; }", NotItem::Directive),
        ("#define AT(f) f(0)\nkernel void f(global int *a) { a[AT(get_global_id)] = 1; }", {
            NotItem::Name("get_global_id".to_owned())
        }),
        // A macro that takes arguments is not expanded before another macro.
        ("#define AT (0)\n#define I get_global_id AT\nkernel void f(global int *a) { a[I] = 1; }", {
            NotItem::Name("get_global_id".to_owned())
        }),
        ("#define NOTHING\n#define G get_local_id\nkernel void f(global int *a) { a[G NOTHING (0)] = 1; }", {
            NotItem::Name("get_local_id".to_owned())
        }),
        ("#define J get_group_id\n#define I J\nkernel void f(global int *a) { a[I(0)] = 1; }", {
            NotItem::Name("get_group_id".to_owned())
        }),
        ("#define X 1\nkernel void f(global int *a) { a[0] = X; }\n#undef X\n#define X 2\n", {
            NotItem::Unreadable(Unreadable::Redefined("X".to_owned()))
        }),
        (
            "kernel void f(global int *a) {\n#ifdef X\na[0] = 1;\n#endif\n}\n#define X\n",
            NotItem::Unreadable(Unreadable::Redefined("X".to_owned())),
        ),
        ("kernel void g() {}", NotItem::Unreadable(Unreadable::NoKernel)),
        ("kernel void f(global int *a) { a[0] = sizeof(__BASE_FILE__); }", place("__BASE_FILE__")),
        ("int h() { return sizeof(__FILE__); } kernel void f() { h(); }", place("__FILE__")),
        ("constant char t[] = __TIME__;\nkernel void f(global int *a) { a[0] = t[1]; }", place("__TIME__")),
        ("#define L __LINE__\nkernel void f() {\n#if L > 1\n#endif\n}", place("__LINE__")),
        ("kernel void f() {\n#pragma unroll X\nfor (;;); }\n#define X 1\n", {
            NotItem::Unreadable(Unreadable::Redefined("X".to_owned()))
        }),
        ("#define disable enable\nkernel void f() {}", {
            NotItem::Unreadable(Unreadable::Keyword("disable".to_owned()))
        }),
    ];
    let wrong: Vec<_> =
        cases.into_iter().filter(|(text, why)| read(text).item("f").err().as_ref() != Some(why)).collect();
    let found: Vec<_> = wrong.iter().map(|(text, why)| (text, why, read(text).item("f").err())).collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// Whether a kernel's body means the same at the end of the source.
#[test]
fn what_would_mean_something_else_at_the_end_is_refused_with_the_reason() {
    let later = |word: &str| Err(NotItem::Later(word.to_owned()));
    let pragma = |text: &str| Err(NotItem::Pragma(text.to_owned()));
    let condition = |word: &str| Err(NotItem::Condition(word.to_owned()));
    let quotes = |word: &str| Err(NotItem::Quotes(word.to_owned()));
    let constant = |word: &str| Err(NotItem::Constant(word.to_owned()));
    let attribute = |word: &str| Err(NotItem::Attribute(word.to_owned()));
    let f = "kernel void f(global float *a, float by) { a[0] += by * exp(1.1f); }\n";
    let with = |before: &str, after: &str| format!("{before}\n{f}{after}\n");
    let of = |body: &str| format!("kernel void f(global float *a, uint n) {{{body}}}\n");
    let (on, off) = ("#pragma OPENCL FP_CONTRACT ON", "#pragma STDC FP_CONTRACT OFF");
    let double = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable";
    let cases = [
        // Pragmas.
        (with("", off), pragma("STDC FP_CONTRACT OFF")),
        (with(off, on), pragma("OPENCL FP_CONTRACT ON")),
        (with(off, ""), Ok(())),
        (with(off, off), Ok(())),
        (with(&format!("{off}\n{on}"), off), pragma("STDC FP_CONTRACT OFF")),
        (with(&format!("#ifdef X\n{off}\n#endif"), off), pragma("STDC FP_CONTRACT OFF")),
        (with(&format!("#ifdef X\n{off}\n#endif"), ""), Ok(())),
        (with("", &format!("kernel void g() {{\n{off}\n}}")), Ok(())),
        (with("", "#pragma OPENCL EXTENSION cl_khr_subgroups : enable"), Ok(())),
        (with("", double), pragma("OPENCL EXTENSION cl_khr_fp64 enable")),
        (with("", &format!("void g() {{\n{double}\n}}")), pragma("OPENCL EXTENSION cl_khr_fp64 enable")),
        (of(&format!("a[0] += 1.1;\n{double}\n")), pragma("OPENCL EXTENSION cl_khr_fp64 enable")),
        (with(double, double), Ok(())),
        (with(&format!("{double}\n#pragma OPENCL EXTENSION all : disable"), double), {
            pragma("OPENCL EXTENSION cl_khr_fp64 enable")
        }),
        (with("", "#pragma OPENCL EXTENSION all : enable"), pragma("OPENCL EXTENSION all enable")),
        (with("", "#pragma unroll"), pragma("unroll")),
        (of("\n#pragma unroll 4\nfor (uint i = 0; i < n; ++i) a[i] = 0;"), Ok(())),
        // What is declared after the body.
        (with("", "float exp(float x) { return 1; }"), later("exp")),
        (with("float exp(float x);", "float exp(float x) { return 1; }"), Ok(())),
        (
            with(
                "float __attribute__((overloadable)) exp(int x);",
                "float __attribute__((overloadable)) exp(float x) {}",
            ),
            later("exp"),
        ),
        (with("float exp(int x);", "float exp(float x) __attribute__((overloadable));"), later("exp")),
        (with("#define exp rotate", "float rotate(float x) { return 1; }"), later("rotate")),
        (with("", "enum { u, exp = 3 };"), later("exp")),
        (with("", "struct s { enum { exp } x; };"), later("exp")),
        (with("", "struct s { struct exp { int x; } y; };"), later("exp")),
        (with("", "typedef float u, exp[3];"), later("exp")),
        (with("", "typedef float (*exp)[3];"), later("exp")),
        (with("", "constant float u = 1, exp = 2;"), later("exp")),
        (with("", "constant float u = by, a[] = { exp };"), Ok(())),
        (with("", "float u(float exp, float by) { float a = exp; return a; }"), Ok(())),
        (with("", "float by(float x) { return 1; } float a() { return 2; }"), Ok(())),
        ("kernel void f(global float *a, T x) {} struct T { int x; };".to_owned(), later("T")),
        (format!("{} void sum() {{}}", of("float sum = 0; sum += n; a[0] = sum;")), Ok(())),
        (format!("{} void sum() {{}}", of("{ float sum = 0; } sum(1);")), later("sum")),
        (format!("{} void sum() {{}}", of("\n#if 0\nfloat sum;\n#endif\nsum(1);")), later("sum")),
        (format!("{} void sum() {{}}", of("float sum(float x); a[0] = sum(1);")), later("sum")),
        (format!("{} void x() {{}}", of("float4 v = vload4(0, a); a[0] = v.x;")), Ok(())),
        (format!("{} void x() {{}}", of("while (n --> x()) {}")), later("x")),
        // What the preprocessor sees.
        (of("\n#ifdef get_global_id\n#endif\n"), condition("get_global_id")),
        (of("\n#if defined(clgraph_fuse_beyond)\n#endif\n"), condition("clgraph_fuse_beyond")),
        (
            format!("#define HAS defined(get_work_dim)\n{}", of("\n#if 1\n#elif HAS\n#endif\n")),
            condition("get_work_dim"),
        ),
        (format!("#define S(x) #x\n{}", of("a[0] = sizeof(S(get_global_id(0)));")), quotes("S")),
        (format!("#define S(x) #x\n#define X(x) S(x)\n{}", of("a[0] = sizeof(X(1));")), quotes("S")),
        (format!("#define S(x) #x\nint h() {{ return sizeof(S(1)); }}\n{}", of("a[0] = h();")), Ok(())),
        (format!("#define S \"#\"\n{}", of("a[0] = sizeof(S);")), Ok(())),
        // What only kernels may have.
        (of("constant float t[2] = {1, 2}; a[0] = t[n];"), constant("constant")),
        (of("float __constant t = 1; a[0] = t;"), constant("__constant")),
        (of("constant float *p = 0, q = 1; a[0] = q;"), constant("constant")),
        (of("constant float *constant p = 0; a[0] = *p;"), constant("constant")),
        (format!("typedef constant float cf;\n{}", of("cf t[1] = {1}; a[0] = t[0];")), constant("cf")),
        (of("const sampler_t s = 0; a[0] = 1;"), constant("sampler_t")),
        (
            format!(
                "constant float t[2] = {{1, 2}};\n{}",
                of("constant float *p = t; a[0] = ((constant float *)p)[n];")
            ),
            Ok(()),
        ),
        ("__attribute__((optnone)) kernel void f() {}".to_owned(), attribute("optnone")),
        ("kernel __attribute__((vec_type_hint(float4))) void f() {}".to_owned(), Ok(())),
        // Members.
        (
            format!(
                "struct s {{ uint h; }};\nuint h() {{ return get_global_id(0); }}\n{}",
                of("struct s s; s.h = 1; a[(&s)->h] = 1;")
            ),
            Ok(()),
        ),
        (
            format!(
                "#define H(s) s.h\nstruct s {{ uint h; }}; uint h() {{ return get_global_id(0); }}\n{}",
                of("struct s s; H(s) = 1;")
            ),
            Ok(()),
        ),
        (
            format!("#define m x + h()\nuint h() {{ return get_global_id(0); }}\n{}", of("float4 s; a[0] = s.m;")),
            Ok(()),
        ),
    ];
    let found: Vec<_> = cases
        .iter()
        .map(|(text, why)| (text, why, read(text).item("f").map(|_| ())))
        .filter(|(_, why, is)| *why != is)
        .collect();
    assert!(found.is_empty(), "{found:#?}");
    let by_option = Source::read(f, "-Ddisable=enable").unwrap();
    assert_eq!(by_option.item("f").err(), Some(NotItem::Unreadable(Unreadable::Keyword("disable".to_owned()))));
    assert!(by_option.kernel("f").is_ok());
}

#[test]
fn parameters_are_memory_values_or_others() {
    let text = "#define RO const\ntypedef float real; typedef struct { int x; } pair;\n\
        kernel void f(global float *a, global const float * restrict b, const __global RO real *__restrict c, real d,\
        const float4 e, pair p, constant int *q, unsigned int u, read_only image2d_t i, RO sampler_t s,\
        global real *restrict v, global uint4 *restrict w, global pair *x) {}";
    let source = read(text);
    let item = source.item("f").unwrap();
    let kinds: Vec<ParamKind> = item.each().iter().map(|param| param.kind).collect();
    let global = |is_constant| ParamKind::Global { is_constant };
    use ParamKind::{Other, Value};
    assert_eq!(
        kinds[..10],
        [global(false), global(true), global(true), Value, Value, Value, Other, Value, Value, Value]
    );
    // A type may hide that it is constant.
    assert_eq!(kinds[10..], [global(true), global(false), global(false)]);
    assert_eq!(item.each()[4].type_text, "const float4");
    assert_eq!(item.each()[7].type_text, "unsigned int");
}

fn launch(kernel: &str, args: &[usize], dims: u32, range: [[FusedArg; 3]; 3]) -> FusedLaunch {
    let args = args.iter().map(|at| FusedArg::Param(*at)).collect();
    FusedLaunch { kernel: Callee { unit: 0, kernel: kernel.to_owned() }, args, dims, range }
}

/// The source that drivers get.
#[test]
fn a_fused_kernel_calls_a_function_for_each_launch() {
    let text = "kernel void add(global float *to, float by) {\n    to[get_global_id(0)] += by;\n}\n";
    let (zero, one, size) = (FusedArg::Number(0), FusedArg::Number(1), FusedArg::Param(3));
    let line = [[zero; 3], [size, one, one], [one; 3]];
    let kernel = FusedKernel {
        params: vec![
            FusedParam::Memory,
            FusedParam::Value(ValueType::Plain("float".to_owned()), 4),
            FusedParam::Value(ValueType::Plain("float".to_owned()), 4),
            FusedParam::Size,
        ],
        tabled: 0,
        launches: vec![launch("add", &[0, 1], 1, line), launch("add", &[0, 2], 2, line)],
        lane_ends: Vec::new(),
        group: Some([2, 1, 1]),
        turns: false,
    };
    let groups = ["one_group", "one_group_joined", "one_group_whole"].map(|name| (name, Form::OneGroup));
    let forms = [("one_item", Form::OneItem)].into_iter().chain(groups);
    for (name, form) in forms {
        let dialect = Dialect {
            form,
            part: None,
            size_beyond: 1,
            vectorizes: true,
            joins_items: name.ends_with("joined"),
            copies_behind_loops: name.ends_with("whole"),
        };
        is_kept(name, &fused(&Unit::alone(text, &read(text)), dialect, std::slice::from_ref(&kernel), true));
    }
    let scalar = Dialect {
        form: Form::OneItem,
        part: None,
        size_beyond: 0,
        vectorizes: false,
        joins_items: false,
        copies_behind_loops: false,
    };
    let all = fused(&Unit::alone(text, &read(text)), scalar, std::slice::from_ref(&kernel), true);
    let pragma = "\n#pragma clang loop vectorize(disable) interleave(disable)\n    for (uint clgraph_fuse_x";
    assert_eq!(all.matches(pragma).count(), 0, "{all}");
    // An index may wrap.
    let wraps = text.replace("to[get_global_id(0)]", "to[get_global_id(0) % 8]");
    let of_wraps = fused(&Unit::alone(&wraps, &read(&wraps)), scalar, std::slice::from_ref(&kernel), true);
    assert_eq!(of_wraps.matches(pragma).count(), 2, "{of_wraps}");
    assert!(all.contains("#line 1\nkernel void add(") && all.contains("#define clgraph_fuse_beyond 0\n"), "{all}");
    assert!(
        all.contains("void clgraph_fuse_item_add(global float * to , float by, const clgraph_fuse_id clgraph_fuse_x,"),
        "{all}"
    );
    for (form, of) in [(Form::OneItem, "one_item"), (Form::OneGroup, "one_group")] {
        let dialect = Dialect { form, ..scalar };
        let written = |kernel| fused(&Unit::alone(text, &read(text)), dialect, &[kernel], true);
        // Lanes share nothing.
        let (mut launches, mut params) = (kernel.launches.clone(), kernel.params.clone());
        params.push(FusedParam::Memory);
        launches.extend((0..4).map(|_| launch("add", &[4, 1], 1, line)));
        let of_lanes = FusedKernel { params, launches, lane_ends: vec![2], ..kernel.clone() };
        is_kept(&format!("lanes_{of}"), &written(of_lanes));
        is_kept(&format!("turns_{of}"), &written(FusedKernel { turns: true, ..kernel.clone() }));
    }
}

/// A chain of two kernels, whose buffers, values and sizes differ from turn to turn; then one over two buffers.
pub(super) fn repeating() -> (&'static str, FusedKernel) {
    let text = "typedef struct { int x; } pair;\n\
        kernel void f(global const int *s, global int *t, const pair by) { t[get_global_id(0)] = s[get_global_id(0)] + by.x; }\n\
        kernel void g(global int *t) { t[get_global_id(0)] *= 2; }\n";
    let (zero, one) = (FusedArg::Number(0), FusedArg::Number(1));
    let mut params = vec![FusedParam::Memory; 6];
    params.extend(vec![FusedParam::Value(ValueType::Of(0, "const pair".to_owned()), 4); 5]);
    params.extend([FusedParam::Size, FusedParam::Size]);
    let line = |size: usize| [[zero; 3], [FusedArg::Param(size), one, one], [one; 3]];
    let mut launches = Vec::new();
    for turn in 0..5 {
        launches.push(launch("f", &[turn, turn + 1, 6 + turn], 1, line(11 + turn % 2)));
        launches.push(launch("g", &[turn + 1], 1, line(11)));
    }
    launches.push(launch("g", &[0], 2, line(12)));
    launches.extend((0..12).map(|turn| launch("f", &[turn % 2, 1 - turn % 2, 6], 1, line(12))));
    (text, FusedKernel { params, launches, tabled: 0, lane_ends: Vec::new(), group: None, turns: false })
}

#[test]
fn launches_that_come_again_are_loops() {
    let (text, kernel) = repeating();
    let one_item = Dialect {
        form: Form::OneItem,
        part: None,
        size_beyond: 1,
        vectorizes: false,
        joins_items: false,
        copies_behind_loops: false,
    };
    let one_group = Dialect { form: Form::OneGroup, vectorizes: true, ..one_item };
    let joined = Dialect { joins_items: true, ..one_group };
    let whole = Dialect { copies_behind_loops: true, ..one_group };
    let all = [
        ("loops_one_item", one_item),
        ("loops_one_group", one_group),
        ("loops_joined", joined),
        ("loops_whole", whole),
    ];
    for (name, dialect) in all {
        is_kept(name, &fused(&Unit::alone(text, &read(text)), dialect, std::slice::from_ref(&kernel), true));
    }
}

/// What clgraph writes around a source has only words that no macro of the source may have.
#[test]
fn own_words_cannot_be_macros() {
    let text = "kernel void f(global int *a) { a[get_global_id(0)] = 1; }";
    let range = [[FusedArg::Number(0); 3], [FusedArg::Number(1); 3], [FusedArg::Number(1); 3]];
    let forms = [
        (Form::OneItem, false, false),
        (Form::OneGroup, false, false),
        (Form::OneGroup, true, false),
        (Form::OneGroup, false, true),
    ];
    for (form, joins_items, copies_behind_loops) in forms {
        let own = [launch(FILL, &[0, 1], 1, range), launch(COPY, &[0, 0, 1], 1, range)];
        let launches = [launch("f", &[0], 1, range), launch("f", &[0], 3, range)].into_iter().chain(own).collect();
        let params = vec![FusedParam::Memory, FusedParam::Value(ValueType::Plain("uint".to_owned()), 4)];
        let turns = FusedKernel { params, launches, tabled: 0, lane_ends: Vec::new(), group: None, turns: true };
        let lanes = FusedKernel { lane_ends: vec![1, 3], turns: false, ..turns.clone() };
        let all = fused(
            &Unit::alone(text, &read(text)),
            Dialect { form, part: None, size_beyond: 1, vectorizes: true, joins_items, copies_behind_loops },
            &[turns, lanes],
            true,
        )
        .replace(text, "");
        let tokens = super::tokens::split(&all).unwrap();
        let words = tokens.iter().filter(|token| token.kind == super::tokens::TokenKind::Word);
        for word in words.map(|token| &all[token.at.clone()]) {
            let is_own = word.starts_with("clgraph_fuse") || ["a", "int", "f"].contains(&word);
            assert!(is_own || super::words::is_keyword(word), "{word}");
        }
        let (text, kernel) = repeating();
        let dialect = Dialect { form, part: None, size_beyond: 1, vectorizes: false, joins_items, copies_behind_loops };
        // The loop with tables is in a lane of its own, too.
        let mut lanes = FusedKernel { lane_ends: vec![kernel.launches.len()], ..kernel.clone() };
        lanes.launches.push(kernel.launches[0].clone());
        let all = fused(&Unit::alone(text, &read(text)), dialect, &[kernel, lanes], true);
        assert!(all.contains("clgraph_fuse_lane == 1") && all.contains("clgraph_fuse_t0[0] = clgraph_fuse_a"), "{all}");
        let (_, own) = all.split_once("#undef get_num_groups\n").unwrap();
        for hints in own.lines().filter_map(|line| line.trim().strip_prefix("#pragma ")) {
            let mut words = hints.split(|c: char| !super::words::is_word(c)).filter(|word| !word.is_empty());
            assert!(words.all(|word| super::words::HINTS.contains(&word)), "{hints}");
        }
        let tokens = super::tokens::split(own).unwrap();
        let words = tokens.iter().filter(|token| token.kind == super::tokens::TokenKind::Word);
        for word in words.map(|token| &own[token.at.clone()]) {
            let is_own = word.starts_with("clgraph_fuse") || ["s", "t", "by", "int", "pair"].contains(&word);
            assert!(is_own || super::words::is_keyword(word), "{word}");
        }
    }
}

/// Rule Z4: work-groups on their own do a part of each launch: some of a row, or some rows.
#[test]
fn work_groups_on_their_own_do_their_parts() {
    let text = "kernel void f(global int *a, int by) { a[get_global_id(1) * 5 + get_global_id(2) * 15 + get_global_id(0)] += by + (int)get_global_id(1); }\n\
        kernel void g(global int *a) { a[get_global_id(1) * 5 + get_global_id(2) * 15 + get_global_id(0)] *= 3; }\n";
    let (zero, one, size) = (FusedArg::Number(0), FusedArg::Number(1), FusedArg::Param);
    let params = |sizes: usize| {
        let value = FusedParam::Value(ValueType::Plain("int".to_owned()), 4);
        [vec![FusedParam::Memory, value.clone(), value], vec![FusedParam::Size; sizes]].concat()
    };
    let kernel = |dims: u32, range: [[FusedArg; 3]; 3]| {
        let launches = [launch("f", &[0, 1], dims, range), launch("g", &[0], dims, range)];
        let launches = launches.into_iter().chain((0..4).map(|_| launch("f", &[0, 2], dims, range))).collect();
        let params = params(if dims == 1 { 2 } else { 3 });
        FusedKernel { params, tabled: 0, launches, lane_ends: Vec::new(), group: None, turns: false }
    };
    let line = kernel(1, [[size(4), zero, zero], [size(3), one, one], [one; 3]]);
    let rows = kernel(3, [[zero; 3], [size(3), size(4), size(5)], [one; 3]]);
    let forms = [("one_item", Form::OneItem, false), ("joined", Form::OneGroup, true)];
    for (of, form, joins_items) in forms {
        for (shape, kernel) in [("line", &line), ("rows", &rows)] {
            let vectorizes = shape == "line" || joins_items;
            let dialect =
                Dialect { form, part: Some(16), size_beyond: 1, vectorizes, joins_items, copies_behind_loops: false };
            let all = fused(&Unit::alone(text, &read(text)), dialect, std::slice::from_ref(kernel), true);
            is_kept(&format!("parts_{of}_{shape}"), &all);
            let tokens = super::tokens::split(&all).unwrap();
            let words = tokens.iter().filter(|token| token.kind == super::tokens::TokenKind::Word);
            for word in words.map(|token| &all[token.at.clone()]) {
                let is_own = word.starts_with("clgraph_fuse") || ["line", "f", "g", "a", "by", "int"].contains(&word);
                assert!(is_own || super::words::is_keyword(word), "{word}");
            }
        }
    }
}

/// Rule Z4: work-items on their own call one function for each launch, and ask the driver for their ids.
#[test]
fn work_items_on_their_own_are_straight_lines() {
    let text = "kernel void none() {}\nkernel void f(global const int *s, global int *t, int by) { t[get_global_id(0)] = s[0] + by; }";
    let range = [[FusedArg::Number(0); 3], [FusedArg::Number(1); 3], [FusedArg::Number(1); 3]];
    let params = vec![FusedParam::Memory, FusedParam::Memory, FusedParam::Value(ValueType::Plain("int".to_owned()), 4)];
    let launches =
        vec![launch("f", &[0, 1, 2], 1, range), launch("none", &[], 1, range), launch("f", &[1, 0, 2], 1, range)];
    let kernel = FusedKernel { params, launches, tabled: 0, lane_ends: Vec::new(), group: None, turns: false };
    let all = each_item(&Unit::alone(text, &read(text)), std::slice::from_ref(&kernel), false);
    is_kept("each_item", &all);
    // From which linear id on, and up to which.
    let params = [kernel.params.clone(), vec![FusedParam::Size, FusedParam::Size]].concat();
    let all = each_item(&Unit::alone(text, &read(text)), &[FusedKernel { params, ..kernel }], true);
    is_kept("each_item_in_range", &all);
    let returns = "if (clgraph_fuse_go == 0 || clgraph_fuse_linear() < clgraph_fuse_a3 || clgraph_fuse_linear() >= clgraph_fuse_a4) return;";
    assert!(all.contains(returns), "{all}");
    let tokens = super::tokens::split(&all).unwrap();
    let words = tokens.iter().filter(|token| token.kind == super::tokens::TokenKind::Word);
    for word in words.map(|token| &all[token.at.clone()]) {
        let is_own = word.starts_with("clgraph_fuse") || ["line", "none", "f", "s", "t", "by", "int"].contains(&word);
        assert!(is_own || super::words::is_keyword(word), "{word}");
    }
}
