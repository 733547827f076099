//! Kernels whose work-items wait for each other or share local memory: which can be functions, and what is written of them.

use super::fused::{Callee, Dialect, Form, FusedArg, FusedKernel, FusedLaunch, FusedParam, Unit, fused};
use super::fused_tests::is_kept;
use super::source::{NotItem, Source};

fn item(text: &str) -> Result<Vec<(String, String, String)>, NotItem> {
    let source = Source::read(text, "").unwrap();
    let of = source.item("f")?.locals().iter();
    Ok(of.map(|local| (local.type_text.clone(), local.name.clone(), local.dims.clone())).collect())
}

/// Rule Z3
#[test]
fn local_variables_are_read_or_refused() {
    let one = |type_text: &str, name: &str, dims: &str| (type_text.to_owned(), name.to_owned(), dims.to_owned());
    let of = |body: &str| format!("#define N 8\n#define T float\nkernel void f(global float *a) {{ {body} }}");
    let read = [
        (of("local float t[N];"), vec![one("float", "t", "[ N ] ")]),
        (of("__local T t[2 * N][N + 1], u;"), vec![one("T", "t", "[ 2 * N ] [ N + 1 ] "), one("T", "u", "")]),
        (of("a[0] = 1; local volatile unsigned int n; if (a[1]) n = 1;"), vec![one("volatile unsigned int", "n", "")]),
        (of("for (int i = 0; i < 3; i++) { a[i] = 1; } local float4 v; v.x = 1;"), vec![one("float4", "v", "")]),
        (
            of("local float t[N]; local float *p = t; a[0] = p[1] + *(local float *)p;"),
            vec![one("float", "t", "[ N ] ")],
        ),
        (
            of("local float t[N]; float *t2 = a; barrier(CLK_LOCAL_MEM_FENCE); a[0] = (t)[1];"),
            vec![one("float", "t", "[ N ] ")],
        ),
        (of("barrier(CLK_GLOBAL_MEM_FENCE);"), vec![]),
        // Their names are macros for the very variables.
        (of("local float t[N]; a[0] = sizeof(t) + (long)&t + (long)&(t);"), vec![one("float", "t", "[ N ] ")]),
        (of("local int t; int u, v = u * t; s t2; { s t; }"), vec![one("int", "t", "")]),
        (of("a[0] = s.t; local int t; t = 1;"), vec![one("int", "t", "")]),
        (of("local float t[N - -1];"), vec![one("float", "t", "[ N - - 1 ] ")]),
        (
            "#define SYNC work_group_barrier(CLK_LOCAL_MEM_FENCE)\nkernel void f(local float *t) { SYNC; }".to_owned(),
            vec![],
        ),
        (of("work_group_barrier(CLK_LOCAL_MEM_FENCE, memory_scope_work_group);"), vec![]),
        (
            "void h(local float *p) { p[0] = 1; } kernel void f(local float *t) { h(t + get_local_id(0)); }".to_owned(),
            vec![],
        ),
        ("void h() { barrier(CLK_LOCAL_MEM_FENCE); } kernel void f() { h(); }".to_owned(), vec![]),
        ("int h() { barrier(1); return get_local_id(0); } kernel void f() { h(); }".to_owned(), vec![]),
    ];
    for (text, locals) in &read {
        assert_eq!(item(text).as_ref(), Ok(locals), "{text}");
    }
    let local = |name: &str| NotItem::Local(name.to_owned());
    let refused = [
        // Where it is, and how it is declared.
        (of("{ local float t[N]; t[0] = 1; }"), local("t")),
        (of("\n#ifdef N\nlocal float t[N];\n#endif\n"), local("t")),
        (of("\n#ifdef N\nlocal float t[4]\n#else\nlocal float t[8]\n#endif\n;"), local("t")),
        (of("local float *p, t;"), local("p")),
        (of("local float *p = 0, t;"), local("p")),
        (of("unsigned\n#if 1\n#endif\nlocal int t[4];"), local("t")),
        (of("local float (*p)[4] = 0;"), local("p")),
        (of("float local *local p;"), local("p")),
        (of("local float t[N] __attribute__((aligned(16)));"), local("t")),
        (of("local float t = 1;"), local("t")),
        (of("local mine t;"), local("mine")),
        (of("local struct { int x; } t;"), local("x")),
        (of("enum { M = 4 }; local float t[M];"), local("t")),
        (of("const int m = 4; local float t[m];"), local("t")),
        (of("local float t[sizeof(int)];"), local("t")),
        (of("local float a[4];"), local("a")),
        (of("local float N[4];"), local("N")),
        (of("local float t[4], t[4];"), local("t")),
        // What it is where its name is a macro.
        (of("a[0] = t[1]; local float t[2];"), local("t")),
        (of("a[0] = M; local float N2[2];").replace("kernel", "#define M N2\nkernel"), local("N2")),
        (of("local int x; float4 v; x = 1; a[0] = v.x;"), local("x")),
        (of("local int x; private struct s *p; x = p->x;"), local("x")),
        (of("local int t; { int t; t = 1; }"), local("t")),
        (of("local int t; for (unsigned int t = 0; t < 2; t++) a[t] = 1;"), local("t")),
        (of("local int t; \n#ifdef t\na[0] = 1;\n#endif\n"), local("t")),
        (of("local int t; \n#if M\na[0] = 1;\n#endif\n").replace("kernel", "#define M t\nkernel"), local("t")),
        // Types.
        (of("typedef float uint; local uint t; t = 1;"), local("t")),
        (of("typedef struct { int x; } uint; local uint t;"), local("t")),
        // Functions.
        ("typedef local float *p; kernel void f(global float *a) { p t; }".to_owned(), NotItem::Waits),
        (
            "kernel void h() { local int t; t = 1; } kernel void f() { h(); }".to_owned(),
            NotItem::Kernel("h".to_owned()),
        ),
        (of("a[0] = work_group_reduce_add(a[0]);"), NotItem::Waits),
        (of("local float t[N]; wait_group_events(1, 0);"), NotItem::Waits),
    ];
    for (text, why) in &refused {
        assert_eq!(item(text).as_ref(), Err(why), "{text}");
    }
}

/// Rules Z1, Z3: statements of one kind on whole numbers in local memory.
#[test]
fn atomics_on_local_memory_are_read_or_refused() {
    let of = |body: &str| {
        format!(
            "#define N 8\n#define SUM 0 ? a : a\n#define AGAIN a[k] =\n#define ADD(x) atomic_add(x, 1)\nuint h(uint x) {{ return x; }}\n\
             kernel void f(global uint *a, local uint *given, local float *real, uint k) {{ {body} }}"
        )
    };
    let read = [
        "local int t[N]; atomic_inc(t);",
        "local uint t[N][N]; atomic_add(&t[k][h(a[0]) & 7], a[k] > 3 ? 1u : k);",
        "local volatile uint n; if (k) atomic_inc(&n); else atomic_sub(&n, 3u);",
        "local uint t[N]; for (uint i = 0; i < k; i++) atomic_add(t + (a[i] ? i : 0) + N, 2u); a[0] = *t * t[1];",
        "local ulong t; { atom_max(&t, (ulong)k); } atom_max(&t, 1ul);",
        "local uint t[N]; do atomic_xor(&t[k], 1u); while (k--);",
        "local uint t[N]; if (k < N) t[k] = given[k]; { atomic_and(t, 1u); } a[k] = t[k];",
    ];
    for body in read {
        assert!(item(&of(body)).is_ok(), "{body}: {:?}", item(&of(body)));
    }
    let refused = [
        // What is seen of it.
        "local int t; a[0] = atomic_inc(&t);",
        "local int t; if (atomic_inc(&t) == 0) a[0] = 1;",
        "local int t; for (; atomic_dec(&t);) a[0] = 1;",
        "local int t; a[0] = (uint)atomic_inc(&t);",
        "local int t; k, atomic_inc(&t);",
        "local int t; atomic_inc(&t), a[0] = 1;",
        "local int t; a[0] = k ? 1 : atomic_inc(&t);",
        "local int t; atomic_inc(&t) + 1;",
        "local int t, u; atomic_add(&t, atomic_inc(&u));",
        "local int t; AGAIN atomic_inc(&t);",
        // Where it is.
        "atomic_inc(a);",
        "atomic_inc(&a[0]);",
        "atomic_inc(given);",
        "atomic_inc(&given[k]);",
        "{ local int t; } atomic_inc(given);",
        "local int t[N]; atomic_inc((t));",
        "local int t[N]; atomic_inc(t[0]);",
        "local int t[N]; atomic_inc(k ? t : given);",
        "local int t[N]; atomic_inc(t + k ? given : given);",
        "local int t[N]; atomic_inc(t + SUM);",
        "local int t[N]; atomic_inc(&t[0] + 1);",
        "local int t[N]; atomic_inc(1 + t);",
        "local int t[N]; local int *p = t; atomic_inc(p);",
        "local float t; atomic_add(&t, 1.0f);",
        // What it does.
        "local int t; atomic_xchg(&t, 1);",
        "local int t; atomic_cmpxchg(&t, 1, 2);",
        "local int t; atomic_inc(&t); atomic_max(&t, 3);",
        "local int t; atomic_inc(&t); atomic_inc(a);",
        "local int t; ADD(&t);",
        "local int t; atomic_fetch_add_explicit(&t, 1, memory_order_relaxed);",
        "local int t; \n#ifdef N\natomic_inc(&t);\n#endif\n",
    ];
    for body in refused {
        assert!(matches!(item(&of(body)), Err(NotItem::Order(_))), "{body}: {:?}", item(&of(body)));
    }
    let begins = [
        "void atomic_inc(local int *x) { *x = get_global_id(0); }",
        "#define atomic_inc(x) h(*x)",
        "#define int float",
        "#define do a[1] =",
        "#define else a[1] =",
        "#define while(x) a[x] =",
        "typedef global uint *atomic_inc;",
    ];
    for begin in begins {
        let text = format!(
            "{begin}\nkernel void f(global uint *a) {{ local int t; if (a[0]) a[1] = 2; else atomic_inc(&t); do atomic_inc(&t); while (a[0]); while (a[1]) atomic_inc(&t); }}"
        );
        let is_read = Source::read(&text, "").is_ok_and(|source| source.item("f").is_ok());
        assert!(!is_read, "{text}");
    }
}

/// Rule Z1
#[test]
fn a_group_does_the_groups_of_a_launch_in_turn() {
    let text = "kernel void f(global float *a, local int *given) {\n    local float tile[4][5];\n    local int\n        n;\n    \
                const int i = get_local_id(0);\n    given[i] = i + 1;\n    if (i == 0) n = 3;\n    barrier(CLK_LOCAL_MEM_FENCE);\n    \
                tile[0][i] = given[n - i];\n    a[get_global_id(0)] += tile[0][i];\n}\n\
                kernel void g(global float *a) { a[get_global_id(0)] *= 3; }\n";
    let source = Source::read(text, "").unwrap();
    let number = FusedArg::Number;
    let launch = |kernel: &str, args: &[usize], dims| FusedLaunch {
        kernel: Callee { unit: 0, kernel: kernel.to_owned() },
        args: args.iter().map(|at| FusedArg::Param(*at)).collect(),
        dims,
        range: [[number(0); 3], [FusedArg::Param(2), number(1), number(1)], [number(4), number(1), number(1)]],
    };
    let mut launches = vec![launch("f", &[0, 1], 1), launch("g", &[0], 1), launch("f", &[0, 1], 2)];
    launches.extend(vec![launch("f", &[0, 1], 1); 4]);
    let params = vec![FusedParam::Memory, FusedParam::Local, FusedParam::Size];
    let dialect = Dialect {
        form: Form::OneGroup,
        part: None,
        size_beyond: 1,
        vectorizes: true,
        joins_items: false,
        copies_behind_loops: false,
    };
    let kernel = FusedKernel { params, launches, tabled: 0, lane_ends: Vec::new(), group: None, turns: false };
    let whole = Dialect { copies_behind_loops: true, ..dialect };
    is_kept("groups_whole", &fused(&Unit::alone(text, &source), whole, std::slice::from_ref(&kernel), true));
    let all = fused(&Unit::alone(text, &source), dialect, &[kernel], true);
    is_kept("groups", &all);
    let (_, own) = all.split_once("#define get_num_groups(d)").unwrap();
    let (_, own) = own.split_once('\n').unwrap();
    let own: Vec<&str> = own.lines().filter(|line| !line.starts_with("#undef get_")).collect();
    let short = own.join("\n");
    let tokens = super::tokens::split(&short).unwrap();
    let words = tokens.iter().filter(|token| token.kind == super::tokens::TokenKind::Word);
    for word in words.map(|token| &short[token.at.clone()]) {
        let is_own = word.starts_with("clgraph_fuse");
        let is_of_source = ["a", "i", "given", "tile", "n", "float", "int", "define", "undef"].contains(&word);
        assert!(is_own || is_of_source || super::words::is_keyword(word), "{word}");
    }
}
