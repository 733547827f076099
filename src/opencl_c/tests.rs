//! Sources that are read, and sources that are refused. No driver is needed.

use super::folder_tests::names;
use super::fused::{Callee, Dialect, Form, FusedArg, FusedKernel, FusedLaunch, FusedParam, Unit, fused};
use super::guard::{OWN, guarded};
use super::plain::Plain;
use super::source::{Effects, NotItem, Source};
use super::tokens::{TokenKind, split};
use super::unreadable::Unreadable;
use super::words::is_keyword;

fn read(text: &str) -> Result<Source, Unreadable> {
    Source::read(text, "")
}

fn declared(text: &str, kernel: &str) -> String {
    let source = read(text).unwrap();
    let (all, outcomes) = guarded(text, &source, [kernel]);
    assert_eq!(outcomes[0].1, Ok(()), "{text}");
    all.lines().rev().nth(2).unwrap().to_owned()
}

#[test]
fn kernels_are_called_with_their_own_parameters() {
    let cases = [
        ("kernel void f(global int *a) { a[0] = 1; }", "(global int * a, global const uint *clgraph_loop_goes_on) {"),
        ("__kernel void f(void) { }", "(global const uint *clgraph_loop_goes_on) {"),
        ("void kernel f() {}", "(global const uint *clgraph_loop_goes_on) {"),
        (
            "typedef struct { int x; } pair;\nkernel void f(__global const pair * restrict a, /* by, value */ float4 b, local\nint *c) {}",
            "(__global const pair * restrict a , float4 b , local int * c, global const uint *clgraph_loop_goes_on) {",
        ),
        (
            "kernel void g(int a) {}\n#define REAL float\nkernel void f(global REAL *a) {}",
            "(global REAL * a, global const uint *clgraph_loop_goes_on) {",
        ),
    ];
    for (text, end) in cases {
        assert_eq!(declared(text, "f"), format!("kernel  void clgraph_guarded_f{end}"), "{text}");
    }
    let text = "kernel __attribute__((reqd_work_group_size(8, 1, 1))) void f(int a) {}";
    let begin = "kernel __attribute__( ( reqd_work_group_size ( 8 , 1 , 1 ) ) ) void clgraph_guarded_f(";
    assert!(declared(text, "f").starts_with(begin), "{}", declared(text, "f"));
}

#[test]
fn what_may_declare_more_than_it_shows_is_refused() {
    let variable = |name: &str| Unreadable::Variable(name.to_owned());
    let made_by = |name: &str| Unreadable::Macro(name.to_owned());
    let keyword = |name: &str| Unreadable::Keyword(name.to_owned());
    let cases = [
        ("global int count; kernel void f() {}", variable("count")),
        ("int count = 0; kernel void f() {}", variable("count")),
        ("struct s { int a; } count; kernel void f() {}", variable("count")),
        ("global int a[3], b;", variable("b")),
        ("uint fn(uint x), count;", variable("count")),
        ("global uint (count);", keyword("uint")),
        ("const uint (count);", keyword("uint")),
        ("typedef uint t; const t (count);", variable("t")),
        ("static global uint (count);", keyword("uint")),
        ("__attribute((aligned(8))) global uint count;", variable("count")),
        ("global uint count = 0, *constant cp = 0;", variable("count")),
        ("constant uint *count;", variable("count")),
        ("constant uint a = 0, *count = 0;", variable("a")),
        ("kernel void f() { static int count; }", variable("static")),
        ("__typeof__(0u) count;", keyword("__typeof__")),
        ("_Alignas(8) global uint count;", keyword("_Alignas")),
        ("kernel void f() { asm(\"\"); }", keyword("asm")),
        ("kernel void clgraph_loop_fill() {}", keyword("clgraph_loop_fill")),
        ("kernel void clgraph_guarded_f() {}", keyword("clgraph_guarded_f")),
        ("#define clgraph_loop_state 1\n", keyword("clgraph_loop_state")),
        ("#define STATE global int s;\nSTATE kernel void f() {}", made_by("STATE")),
        ("#define A B\n#define B global\nA int s;", made_by("B")),
        ("#define K(name) kernel void name()\nK(f) {}", made_by("K")),
        ("#define NAME f\nkernel void NAME() {}", made_by("NAME")),
        ("kernel void f() {} void g() {}\n#define f g\n", made_by("f")),
        ("DECLARE(x);", made_by("DECLARE")),
        ("DECLARE(x) {}", made_by("DECLARE")),
        ("#define M(a) bar ## a\nkernel void f() { M(rier)(1); }", Unreadable::Joins("M".to_owned())),
        ("#define kernel\nvoid f() {}", keyword("kernel")),
        ("#define if(x) while (x)\nkernel void f() {}", keyword("if")),
        ("#define S \"/*\"\n#define if(x) if (1)\n#define S2 \"*/\"\n", keyword("if")),
        ("# \\ \n define if(x) if (1)\n", keyword("if")),
        ("#pragma push_macro(\"T\")\n", Unreadable::Pragma("push_macro(\"T\")".to_owned())),
        ("#pragma pack (1)\n", Unreadable::Pragma("pack".to_owned())),
        ("#pragma clang attribute push\n", Unreadable::Pragma("clang".to_owned())),
        ("kernel void f() { _Pragma(\"x\") }", keyword("_Pragma")),
        ("#include <a.h>\nkernel void f() {}", Unreadable::Include),
        ("# /* */ include \"a.h\"\n", Unreadable::Include),
        ("#ifdef A\nkernel void f() {\n#else\nkernel void f(int a) {\n#endif\n}", Unreadable::ConditionalBraces),
        ("#if 1\n", Unreadable::ConditionalBraces),
        ("kernel void f() {", Unreadable::Unbalanced),
        ("kernel void f() { /* ", Unreadable::Unbalanced),
        ("kernel void f() } {", Unreadable::Unbalanced),
        ("ker\\\nnel void f() {}", Unreadable::Odd),
        ("// a comment \\\nkernel void f() {}", Unreadable::Odd),
        ("void f() {\n%:define if(x) if (1)\n}", Unreadable::Odd),
        ("void f() {\n?\u{3f}=define if(x) if (1)\n}", Unreadable::Odd),
        ("void f() {\n\u{b}#define if(x) if (1)\n}", Unreadable::Odd),
        ("void f() {\r#define if(x) if (1)\n}", Unreadable::Odd),
        ("// hello\r#define if(x) if (1)\n", Unreadable::Odd),
        ("void f() {\n\\ \n#define if(x) if (1)\n}", Unreadable::Odd),
        ("kernel void f() { enqueue_kernel(q); }", Unreadable::Enqueues),
        ("kernel void f() {} kernel", Unreadable::Unbalanced),
        ("/* *\\\n/\n#define if(x) if (1)\n/* */", Unreadable::Odd),
        ("#define X /\\\n/ /*\n#define if(x) if (1)\n// */", Unreadable::Odd),
        ("#if 0\ntypedef\n#endif\nint count;", Unreadable::ConditionalBraces),
        ("kernel void f() {\n#if 0\n}\nvoid g() {\n#endif\nbarrier(1); }", Unreadable::ConditionalBraces),
        ("#define END }\nvoid h(void) { END global int count; void g(void) { }", made_by("END")),
        ("#define M(x)\nvoid h(void) { M({) } global int count; void g(void) { M(}) }", Unreadable::Unbalanced),
        ("#define B(x, y) y\nvoid h(void) { B({,}) }", made_by("B")),
        ("#define S static\nkernel void f() { S int count; }", made_by("S")),
        ("#define A __attribute__\nkernel void f(int a) A((reqd_work_group_size(1, 1, 1))) {}", made_by("A")),
        ("uint global (count);", keyword("global")),
        ("int *volatile (p);", keyword("volatile")),
        ("unsigned __int128 (c);", keyword("__int128")),
        ("typedef uint t; __volatile__ t (c);", variable("t")),
        ("#define N\nuint N (count);", made_by("N")),
        ("typedef uint t;\n#define Q\nQ t (c);", variable("t")),
        ("#define S2 s x\nstruct S2;", variable("S2")),
        ("#define IP int *\nconstant IP count = 0;", made_by("IP")),
        ("#define STAR *\nconstant int a = 1, STAR count = 0;", made_by("STAR")),
        ("#define TWO (2)\nconstant int a = TWO, b TWO = 0;", made_by("TWO")),
        ("static void (h)(void) { barrier(1); }", keyword("void")),
        ("size_t get_global_id(uint x) { return 3; }", keyword("get_global_id")),
        (
            "__attribute__((intel_reqd_sub_group_size(8))) kernel void f(int a); kernel void f(int a) {}",
            Unreadable::Attributes("f".to_owned()),
        ),
        ("void g() __attribute__((alias(\"h\")));", keyword("alias")),
        ("typedef void(^blk)(void);", keyword("^")),
        ("void f() { g(^{ barrier(1); }); }", keyword("^")),
        ("void f() { return ^(int a) { barrier(1); }; }", keyword("^")),
        ("#define $W ; barrier(1)\nkernel void f() { 1$W; }", Unreadable::Odd),
    ];
    let wrong: Vec<_> = cases.into_iter().filter(|(text, why)| read(text).err().as_ref() != Some(why)).collect();
    let found: Vec<_> = wrong.iter().map(|(text, why)| (text, why, read(text).err())).collect();
    assert!(found.is_empty(), "{found:#?}");
    let options = [
        ("-cl-std=CLC++", Unreadable::CPlusPlus),
        ("-cl-std=clc++2021", Unreadable::CPlusPlus),
        ("-D STATE=global", made_by("STATE")),
        ("-Dglobal=", keyword("global")),
        ("-D\"if(x)=if(1)\"", Unreadable::Option("\"if(x)=if(1)\"".to_owned())),
        ("-include a.h", Unreadable::Option("-include".to_owned())),
        ("-DA=1\t-I\t;barrier(1)", Unreadable::Option("\t-I\t;barrier(1)".to_owned())),
        ("-Dclgraph_loop_state=1", keyword("clgraph_loop_state")),
    ];
    for (options, why) in options {
        assert_eq!(Source::read("STATE kernel void f() {}", options).err(), Some(why), "{options}");
    }
    assert!(Source::read("kernel void f() {}", "-w -Dx=y -D N=4 -cl-std=CL3.0 -I /a -I/b -cl-kernel-arg-info").is_ok());
}

/// What comes before the source has no word that a build option could change.
#[test]
fn the_kernels_of_clgraph_have_only_words_that_no_macro_may_have() {
    let tokens = split(OWN).unwrap();
    let words = tokens.iter().filter(|token| token.kind == TokenKind::Word).map(|token| &OWN[token.at.clone()]);
    for word in words {
        assert!(is_keyword(word) || word.starts_with("clgraph_loop_"), "{word}");
    }
}

#[test]
fn constants_types_and_functions_are_no_variables() {
    let text = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n\
                constant float table[2] = {1.0f, 2.0f}; __constant int n = (3) * 2; constant int a = 1, b = 2;\n\
                constant sampler_t s = CLK_FILTER_NEAREST; const sampler_t t = 0;\n\
                struct a; struct b { int x; }; struct c { struct b y; } __attribute__((packed));\n\
                enum { ONE, TWO }; typedef union { int i; float f; } both; typedef float real;\n\
                float helper(float a); static inline float helper(float a) { return a; };\n\
                float __attribute__((overloadable)) more(int a) { return a; }\n\
                #if defined(X)\nint one(void) { return 1; }\n#elif 2\nint one(void) { return 2; }\n#else\n\
                int one(void) { return '}' + \"{\"[0]; } // }\n#endif\n\
                kernel void f(global int *a) { a[0] = one(); }";
    assert!(read(text).unwrap().kernel("f").is_ok());
}

#[test]
fn a_kernel_that_cannot_be_called_is_refused_alone() {
    let cases = [
        ("kernel void f(global int (*a)[4]) {} kernel void g() {}", Unreadable::Params),
        ("kernel void f(int a[4]) {} kernel void g() {}", Unreadable::Params),
        ("kernel void f(int) {} kernel void g() {}", Unreadable::Params),
        ("#define BOTH int a, int b\nkernel void f(BOTH c) {} kernel void g() {}", Unreadable::Params),
        ("kernel void f(\n#if 1\nint a\n#endif\n) {} kernel void g() {}", Unreadable::Params),
        ("kernel void f(int a) {} kernel void f(float a) {} kernel void g() {}", Unreadable::Twice),
        ("#define T int\nkernel void f(T a) {}\n#undef T\nkernel void g() {}", Unreadable::Redefined("T".to_owned())),
        (
            "#define T int\nkernel void f(T a) {}\n#undef T junk\nkernel void g() {}",
            Unreadable::Redefined("T".to_owned()),
        ),
        (
            "#define T U\n#define U int\nkernel void f(T a) {}\n#undef U\n#define U float\nkernel void g() {}",
            Unreadable::Redefined("U".to_owned()),
        ),
        ("kernel void f(global int *f) {} kernel void g() {}", Unreadable::Params),
        ("kernel void f(unsigned int) {} kernel void g() {}", Unreadable::Params),
        (
            "#define N 8\nkernel __attribute__((reqd_work_group_size(N, 1, 1))) void f(int a) {}\n#undef N\n#define N 9\nkernel void g() {}",
            Unreadable::Redefined("N".to_owned()),
        ),
        ("kernel void g() {}", Unreadable::NoKernel),
    ];
    for (text, why) in cases {
        let source = read(text).unwrap();
        assert_eq!(source.kernel("f").err(), Some(why), "{text}");
        assert!(source.kernel("g").is_ok(), "{text}");
    }
}

/// Intel's runtime loses such values: an unknown type may be one, if the source has a word for them.
#[test]
fn vectors_of_three_that_functions_take_or_return_are_seen() {
    let passes = |text: &str| read(text).unwrap().effects("f").may_pass_threes;
    for text in [
        "kernel void f(uint3 v) {}",
        "kernel void f(global uint *a, const float3 v) {}",
        "typedef char3 triple; kernel void f(triple v) {}",
        "typedef uint3 triple; typedef triple other; kernel void f(private other v) {}",
        "typedef uint triple __attribute__((ext_vector_type(3))); kernel void f(triple v) {}",
        "#define triple double3\nkernel void f(triple v) {}",
        "uint h(uint3 v) { return v.x; } kernel void f(global uint *a) { a[0] = h((uint3)(1)); }",
        "uint3 h(uint v) { return v; } kernel void f(global uint *a) { a[0] = h(1).x; }",
        "uint g(int3 v) { return v.x; } uint h(uint v) { return g(v); } kernel void f(global uint *a) { a[0] = h(1); }",
        "#define CALL h((uint3)(2))\nuint h(uint3 v) { return v.x; } kernel void f(global uint *a) { a[0] = CALL; }",
        "#define THREE uint3\ntypedef THREE triple; kernel void f(triple v) {}",
    ] {
        assert!(passes(text), "{text}");
    }
    for text in [
        "kernel void f(uint v, uint4 w, global float3 *p) { uint3 inside = w.xyz; }",
        "uint h(uint3 v) { return v.x; } kernel void f(global uint *a, uint4 v) { a[0] = v.x; }",
        "typedef struct { uint3 v; } one; kernel void f(one v) {}",
        "typedef struct tag { uint3 v; } one; kernel void f(const struct tag v, one w) {}",
        "uint h(global uint3 *v) { return v->x; } kernel void f(global uint3 *a) { a[0] = h(a); }",
        "kernel void f(read_only image2d_t from, global float3 *to, sampler_t how, unsigned int n) {}",
        // There is no vector of three that the name could stand for.
        "kernel void f(global uint *a, triple v) {}",
    ] {
        assert!(!passes(text), "{text}");
    }
    let options = Source::read("kernel void f(triple v) {}", "-D triple=uint3").unwrap();
    assert!(options.effects("f").may_pass_threes);
}

#[test]
fn types_that_are_hidden_are_seen() {
    let hides = |text: &str| read(text).unwrap().hides_types("f");
    for text in [
        "kernel void f(global float *a, global const int *restrict b) { a[0] = a[0] * b[0] * 2; }",
        "float h(global float *p, float x) { return (*p) * x; } kernel void f(global float *a) { a[0] = h(a, 2); }",
        "typedef float real; kernel void f(global real *a) { a[0] = (real)1 * as_int(a[1]); }",
        "#define N 4\n#define HERE() (get_global_id(0) * N)\nkernel void f(global struct s *restrict a) { a[(2 * N)].x = HERE(); }",
        "static inline float h(const global float *const restrict p) { return *p; } kernel void f(__global float *a) { a[0] = h(a); }",
        // What realistic kernels have.
        "kernel void f(global float *a, uint _w, uint y) { a[(y * _w) + 1] = 1; }",
        "#define _N 16\nint clampi(int v, int n) { return v; } kernel void f(global float *a, uint y) { a[clampi(y * _N, 2)] = 1; }",
        "#define MAD(a, b) ((a) * (b))\n#define HERE() MAD(get_global_id(0), 4)\nkernel void f(global float *a) { a[HERE()] = 1; }",
        "#define MUL(a, b) ((a) * (b))\nkernel void f(global float *a) { a[0] = MUL(a[1], (const float)2) + MUL(sizeof(struct s), 2); }",
        "uint h(__global unsigned int *p) { return *p; } kernel void f(global uint *a) { a[0] = h(a); }",
        "#define DTYPE float\nvoid h(global float *p) {} kernel void f(global DTYPE *a) { h(a); }",
        "#define INLINE inline\nINLINE __global float *row(__global float *p, uint i) { return p + i; } kernel void f(global float *a) { row(a, 1)[0] = 1; }",
        "kernel void g(global double x[4]) {} void h(global int *p) {} kernel void f(global float *a) { a[0] = 1; }",
        "#define TWICE(x) ((x) * 2)\nvoid h(void) {} kernel void f(global float *a) { global float *b = a + 1; *b = TWICE(*b); }",
    ] {
        assert!(!hides(text), "{text}");
    }
    for text in [
        "kernel void f(global float *a) { ((global int *)a)[0] = 1; }",
        "kernel void f(global float *a) { *(global const int *restrict)a = 1; }",
        "kernel void f(global float *a) { (*(global int (*)[4])a)[0] = 1; }",
        "kernel void f(global float *a) { global void *b = a; global int *c = b; c[0] = 1; }",
        "kernel void f(global float *a) { union { float f; int i; } u; u.f = a[0]; a[1] = u.i; }",
        "typedef global int *ints; kernel void f(global float *a) { ((ints)a)[0] = 1; }",
        "typedef float may __attribute__((may_alias)); kernel void f(global may *a) { a[0] = 1; }",
        "#define INTS int *\nkernel void f(global float *a) { ((global INTS)a)[0] = 1; }",
        "#define CAST(t, p) ((t)p)\nkernel void f(global float *a) { CAST(global int *, a)[0] = 1; }",
        "#define TO(t, p) ((t *)p)\nkernel void f(global float *a) { TO(global int, a)[0] = 1; }",
        // What is between a star and the end of a type means nothing.
        "#define E\nkernel void f(global float *a) { ((global int * E)a)[0] = 1; }",
        "#define E() \nkernel void f(global float *a) { ((global int * E())a)[0] = 1; }",
        "#define C const\n#define E C\nkernel void f(global float *a) { b = ((global int * E)a)[0]; }",
        "kernel void f(global float *a) { ((global int * __const)a)[0] = 1; }",
        "kernel void f(global float *a) { ((global int * _Nonnull)a)[0] = 1; }",
        "kernel void f(global float *a) { ((global int * __attribute__((unused)))a)[0] = 1; }",
        // A macro brings the star, or gets the type.
        "#define STAR(x) *x\nkernel void f(global float *a) { ((global int STAR())a)[0] = 1; }",
        "#define P(x) int * x\nkernel void f(global float *a) { ((global P())a)[0] = 1; }",
        "#define P(x, y) x * y\nkernel void f(global float *a) { ((P(global int, ))a)[0] = 1; }",
        "#define P(x, y) x * y\n#define E\ntypedef global int T; kernel void f(global float *a) { ((P(T, E))a)[0] = 1; }",
        "#define P(x, y) x * y\n#define Q P(T, )\ntypedef global int T; kernel void f(global float *a) { ((Q)a)[0] = 1; }",
        "#define F(x) x\nkernel void f(global float *a) { ((global int * F())a)[0] = 1; }",
        "#define F(x) x\nkernel void f(global float *a) { ((global int * F(const))a)[0] = 1; }",
        "kernel void g(global int *a) {} kernel void f(global float *a) { ((global int *\n#if 1\n#endif\n)a)[0] = 1; }",
        // Without a cast, also where another kernel has such a parameter.
        "kernel void g(global int *a) { a[0] = 1; } kernel void f(global float *a) { global int *b = a; b[0] = 1; }",
        "kernel void g(global int *a) { a[0] = 1; } kernel void f(global float *a) { global int (*b) = a; b[0] = 1; }",
        "kernel void g(global int *a) { a[0] = 1; } void h(global int b[]) { b[0] = 1; } kernel void f(global float *a) { h(a); }",
        "typedef global int G; kernel void f(global float *a) { G *b = a; b[0] = 1; }",
        "kernel void f(global float *a) { global int *b = a; b[0] = 1; }",
        "void h(global int *b) { b[0] = 1; } kernel void f(global float *a) { h(a); }",
    ] {
        assert!(hides(text), "{text}");
    }
    let options = Source::read("kernel void f(float *a) { P[0] = 1; }", "-DP=((int*)a)").unwrap();
    assert!(options.hides_types("f"));
    let generic = "kernel void f(global float *a) { int *b = a; b[0] = 1; }";
    assert!(Source::read(generic, "-cl-std=CL2.0").unwrap().hides_types("f") && !hides(generic));
    let source = read("kernel void f(const global volatile unsigned int *restrict a, __global  float4*b) {}").unwrap();
    let elements: Vec<String> = source.kernel("f").unwrap().each().iter().map(|param| param.element()).collect();
    assert_eq!(elements, ["unsigned int", "float4"]);
}

/// Attributes are no words of a type, however they are written.
#[test]
fn attributes_in_brackets_are_refused() {
    let refused = Err(Unreadable::Keyword("[[".to_owned()));
    for text in [
        "typedef uint T; [[maybe_unused]] T (count);",
        "typedef uint T; [ [maybe_unused]] T (count);",
        "#define A\nkernel void f() { [A[unused]] uint a; }",
        "#define A B\n#define B\nkernel void f() { [A[unused]] uint a; }",
        "#define A(x)\nkernel void f() { [A(1)[unused]] uint a; }",
        "#define G(x) x\nkernel void f() { [G([unused])] uint a; }",
        "#define G(x, y) y\nkernel void f() { [G(1, [unused])] uint a; }",
    ] {
        assert_eq!(read(text).map(|_| ()), refused, "{text}");
    }
    assert_eq!(
        read("#define A [unused]\nkernel void f() { [A] uint a; }").map(|_| ()),
        Err(Unreadable::Macro("A".to_owned()))
    );
    // A name for a type is no name of a function, whatever is before it.
    assert!(read("typedef uint T; register T (count);").is_err());
    for text in [
        "constant int t[3] = {[0] = 1, [2] = 3}; kernel void f(global int *a) { a[t[a[0]]] = t[(a[1])]; }",
        "#define DATA(i) (data + (i))\n#define KEYS KEY_BUF\n#define KEY_BUF keys\nkernel void f(global int *data, global int *keys) { data[DATA(1)[0]] = data[KEYS[2]]; }",
        "#define N 4\n#define LUT lut\nkernel void f(global int *a) { int lut[N]; a[lut[N - 1]] = a[LUT[N]]; }",
    ] {
        assert!(read(text).is_ok(), "{text}");
    }
}

/// A compiler may take one call of a `const` function for two, in one kernel.
#[test]
fn attributes_of_functions_that_are_called_are_known() {
    let of = |declared: &str| {
        let text = format!("{declared} kernel void f(global float *a) {{ a[0] = h(a, 1); }}");
        read(&text).unwrap().item("f").map(|_| ())
    };
    let body = "float h(global float *p, uint i) { return p[i]; }";
    let refused = |word: &str| Err(NotItem::FunctionAttribute("h".to_owned(), word.to_owned()));
    assert_eq!(of(body), Ok(()));
    assert_eq!(of(&format!("__attribute__((pure, noinline)) {body}")), Ok(()));
    assert_eq!(of(&format!("__attribute__((const, noinline)) {body}")), refused("const"));
    assert_eq!(
        of(&format!("float h(global float *p, uint i) __attribute__((__const__)); {body}")),
        refused("__const__")
    );
    assert_eq!(of(&format!("#define unused const\n__attribute__((unused)) {body}")), refused("unused"));
    assert_eq!(of(&format!("#define HOW const\n__attribute__((HOW)) {body}")), refused("HOW"));
    let inside = format!(
        "{body} kernel void f(global float *a) {{ float h(global float *p, uint i) __attribute__((const)); a[0] = h(a, 1); }}"
    );
    assert_eq!(read(&inside).unwrap().item("f").map(|_| ()), Err(NotItem::Attribute("const".to_owned())));
    let plain = "kernel void f(global float *a) { float v[4] __attribute__((aligned(16))); \
                 __attribute__((opencl_unroll_hint(2))) for (int i = 0; i < 4; i++) v[i] = a[i]; a[0] = v[1]; }";
    assert_eq!(read(plain).unwrap().item("f").map(|_| ()), Ok(()));
    // Nothing that the kernel calls.
    assert_eq!(of(&format!("{body} __attribute__((const)) float other(float v) {{ return v; }}")), Ok(()));
}

/// A kernel with the name of a function of OpenCL C is one like others: the compiler says whether it takes it. Its fused form has a name of
/// clgraph's, and no call means another function than before.
#[test]
fn kernels_named_like_functions_of_opencl_c() {
    let item = |text: &str, name: &str| {
        read(text).and_then(|source| source.item(name).map(|_| ()).map_err(|_| Unreadable::NoKernel))
    };
    assert_eq!(item("kernel void step(global float *a) { a[get_global_id(0)] += 1; }", "step"), Ok(()));
    assert_eq!(item("kernel void max(global float *a) { a[get_global_id(0)] += fmax(a[1], 1.0f); }", "max"), Ok(()));
    let calls_itself = "kernel void max(global float *a) { a[0] = max(a[0], 1.0f); }";
    assert_eq!(item(calls_itself, "max"), Err(Unreadable::NoKernel));
    let id = "kernel void get_global_id(global float *a) { a[0] += 1; }";
    assert_eq!(item(id, "get_global_id"), Err(Unreadable::Keyword("get_global_id".to_owned())));
}

#[test]
fn blocks_are_seen_wherever_they_are() {
    for body in [
        "int (^b)(int) = ^(int a) { return a; };",
        "if (1) ^{ return 1; }();",
        "if (1) a[0] = 1; else ^(void) { return 1; }();",
        "a[0] = (int)^int (int v) { return v; };",
    ] {
        let text = format!("kernel void f(global int *a) {{ {body} }}");
        assert_eq!(read(&text).map(|_| ()), Err(Unreadable::Keyword("^".to_owned())), "{body}");
    }
    let plain =
        "kernel void f(global int *a) { if ((a[0]) ^ (a[1])) { a[2] = a[3] ^ 4; } while (a[1] ^ a[2]) { a[1]++; } }";
    assert!(read("kernel void f(global uint2 *a) { a[0] = a[1] ^ (uint2){1, 2}; }").is_ok());
    assert!(read(plain).is_ok());
    assert_eq!(read("#embed </dev/null>\nkernel void f() {}").map(|_| ()), Err(Unreadable::Include));
}

#[test]
fn barriers_and_groups_are_seen_in_functions_and_macros() {
    let effects = |text: &str| {
        let Effects { may_wait, may_see_groups, .. } = read(text).unwrap().effects("f");
        (may_wait, may_see_groups)
    };
    let loops = |text: &str| read(text).unwrap().effects("f").may_loop;
    assert!(!loops("kernel void f(global int *a) { if (a[0]) a[1] = 2; } void h() { for (;;) {} }"));
    assert!(loops(
        "#define AGAIN while\nvoid h(global int *a) { AGAIN (a[0]) a[0]--; } kernel void f(global int *a) { h(a); }"
    ));
    assert!(loops("kernel void f(global int *a) { do a[0]--; while (a[0]); }"));
    assert_eq!(effects("kernel void f(global int *a) { a[get_global_id(0)] = 1; }"), (false, false));
    assert_eq!(effects("kernel void f(global int *a) { a[get_group_id(0)] = 1; }"), (false, true));
    assert_eq!(effects("kernel void f() { barrier(CLK_LOCAL_MEM_FENCE); }"), (true, true));
    assert_eq!(effects("void h(); kernel void f() { h(); } void h() { work_group_barrier(0); }"), (true, true));
    assert_eq!(effects("void h() { barrier(1); } kernel void f() {} kernel void g() { h(); }"), (false, false));
    assert_eq!(effects("void g() { h(); } void h() { g(); barrier(1); } kernel void f() { g(); }"), (true, true));
    assert_eq!(effects("#define WAIT barrier(1)\nkernel void f() { WAIT; }"), (true, true));
    assert_eq!(
        effects("#define WAIT STOP\n#define STOP h()\nvoid h() { barrier(1); }\nkernel void f() { WAIT; }"),
        (true, true)
    );
    let attribute = "__attribute((noinline)) void h(void) { barrier(1); } kernel void f() { h(); }";
    assert_eq!(effects(attribute), (true, true));
    assert_eq!(effects("kernel void f() { intel_work_group_barrier_arrive(1); }"), (true, true));
    assert_eq!(effects("kernel void f() { get_max_sub_group_size(); }"), (true, true));
    assert_eq!(effects("#define WAIT \\ \n barrier(1)\nkernel void f() { WAIT; }"), (true, true));
    assert_eq!(effects("kernel void f(global int *a) { local int room[4]; a[0] = room[0]; }"), (true, true));
    assert_eq!(effects("kernel void f(global int *a) { a[0] = _Z12get_group_idj(0); }"), (true, true));
    let in_texts = "#define WAIT (g(\"/*\"), barrier(1), g(\"*/\"))\nkernel void f() { WAIT; }";
    assert_eq!(effects(in_texts), (true, true));
    assert_eq!(effects("kernel void f() { /* barrier */ \"barrier\"; }"), (false, false));
    let hidden = [
        "typedef local uint room_t; kernel void f() { room_t r[16]; }",
        "typedef local uint room_t[16]; kernel void f() { room_t r; }",
        "typedef local struct rooms rooms; kernel void f() { rooms r; }",
        "typedef local uint *lp; typedef lp pair[2]; kernel void f(pair r) {}",
        "struct s { local uint *p; }; kernel void f() { struct s a; }",
        "struct s { local uint *p; }; struct s h(void); kernel void f(global uint *a) { a[0] = *h().p; }",
        "#define SHARED local\ntypedef SHARED uint room_t; kernel void f() { room_t r[16]; }",
        "kernel void f() { __attribute__((opencl_local)) uint r[16]; }",
        "typedef __attribute__((address_space(3))) uint room_t; kernel void f() { room_t r[16]; }",
    ];
    for text in hidden {
        let waits = read(text).map(|source| source.effects("f").may_wait);
        assert!(waits.is_err() || waits == Ok(true), "{text}");
        assert!(read(text).is_err() || read(text).unwrap().item("f").is_err(), "{text}");
    }
    let by_option = Source::read("kernel void f() { WAIT; }", "-DWAIT=barrier(1)").unwrap();
    assert!(by_option.effects("f").may_wait);
}

/// Writes two launches of a kernel in each form.
fn write_fused(text: &str, source: &Source, args: usize) {
    let (zero, one) = (FusedArg::Number(0), FusedArg::Number(1));
    let launch = FusedLaunch {
        kernel: Callee { unit: 0, kernel: "f".to_owned() },
        args: (0..args).map(FusedArg::Param).collect(),
        dims: 1,
        range: [[zero; 3], [one; 3], [one; 3]],
    };
    let kernel = FusedKernel {
        params: vec![FusedParam::Memory; args],
        tabled: 0,
        launches: vec![launch; 2],
        lane_ends: Vec::new(),
        group: None,
        turns: false,
    };
    let units = Unit::alone(text, source);
    for (form, joins_items) in [(Form::OneItem, true), (Form::OneGroup, false)] {
        let dialect = Dialect {
            form,
            part: None,
            size_beyond: 1,
            vectorizes: true,
            joins_items,
            copies_behind_loops: joins_items,
        };
        let written = fused(&units, dialect, std::slice::from_ref(&kernel), true);
        assert!(written.contains("kernel void clgraph_fused_0"), "{written}");
    }
}

/// Nothing panics, whatever the text is: pieces of real sources in any order, cut anywhere.
#[test]
fn any_text_is_read_or_refused() {
    const PIECES: [&str; 38] = [
        "kernel",
        "get_global_id(0)",
        "void g(int a) {",
        "g(",
        "\n#define G g",
        "void",
        "f",
        "(",
        ")",
        "{",
        "}",
        ";",
        ",",
        "=",
        "global",
        "int",
        "*",
        "a",
        "\n#define A",
        "\n#if 1\n",
        "\n#endif\n",
        "\n#else\n",
        "/*",
        "*/",
        "//",
        "\"",
        "'",
        "\\\n",
        "\\",
        "#",
        "__attribute__",
        "((",
        "))",
        "struct",
        "typedef",
        "[",
        "\u{e9}",
        " ",
    ];
    fn any(pieces: Vec<u8>) -> bool {
        let text: String = pieces.iter().flat_map(|piece| [PIECES[*piece as usize % PIECES.len()], " "]).collect();
        let dense: String = pieces.iter().map(|piece| PIECES[*piece as usize % PIECES.len()]).collect();
        for text in [text, dense] {
            // As it stands, and after a compiler has answered.
            let plain = Plain::read(text.clone(), "", |text, _| Some(names(text)));
            let plain = plain.map(|plain| (plain.text, plain.source));
            for (text, source) in read(&text).map(|source| (text, source)).into_iter().chain(plain) {
                let _ = guarded(&text, &source, ["f"]);
                if let Ok((item, _)) = source.item_with_helpers("f") {
                    write_fused(&text, &source, item.each().len());
                }
            }
        }
        true
    }
    quickcheck::QuickCheck::new().tests(20_000).quickcheck(any as fn(Vec<u8>) -> bool);
}
