//! Products whose factors may be constants for some work-items.

use crate::opencl_c::source::Source;

/// Returns such a product in a kernel of this body.
fn in_body(before: &str, body: &str) -> Option<String> {
    let text = format!(
        "typedef struct {{ float mass; }} body;\n{before}\nkernel void k(global float *a, global const float *b, float x, int n, local float *l, global const float4 *v, global const body *bodies) {{ {body} }}"
    );
    let source = Source::read(&text, "").unwrap_or_else(|why| panic!("{text}: {why}"));
    source.open_product("k").map(str::to_owned)
}

#[test]
fn products_of_what_a_compiler_may_know_are_found() {
    let of_ids = [
        ("a[i] = b[i] + 0.353f * convert_float(i & 15);", "0.353f * convert_float(i & 15)"),
        ("a[i] = convert_float(i) * 0.3f - x;", "convert_float(i) * 0.3f"),
        ("a[i] = x + (float)i * 0.3f;", "(float)i * 0.3f"),
        ("a[i] = x + 0.3f * i;", "0.3f * i"),
        ("a[i] = x + 0.3f * -(float)(i);", "0.3f * -(float)(i)"),
        ("a[i] += 0.3f * get_local_id(0);", "0.3f * get_local_id(0)"),
        ("float f = i; a[i] = x + f * 0.3f;", "f * 0.3f"),
        ("float f = b[i]; f = i; a[i] = x + f * 0.3f;", "f * 0.3f"),
        ("float f = n > 3 ? b[i] : 0.7f; a[i] = x + f * 0.3f;", "f * 0.3f"),
        ("float f; if (n > 3) f = b[i]; else f = 0.7f; a[i] = x + f * 0.3f;", "f * 0.3f"),
        ("float f = b[i]; set(&f); a[i] = x + f * 0.3f;", "f * 0.3f"),
        ("float f[2]; f[0] = i; f[1] = i; a[i] = x + f[0] * f[1];", "f[0] * f[1]"),
        ("float f = 1.0f; f = f * 0.9f; a[i] = x + f * 0.3f;", "f * 0.3f"),
        ("float f = 0.0f; f += 0.1f; a[i] = x + f * 0.3f;", "f * 0.3f"),
        ("float f = 0.0f; f += b[i]; f++; a[i] = x + f * 0.3f;", "f * 0.3f"),
        ("float f = 0.0f; f += b[i]; f = 0.3f; a[i] = x + f * 0.3f;", "f * 0.3f"),
        ("a[i] = x + (n > 3 ? b[i] : 0.3f) * 0.3f;", "(n > 3 ? b[i] : 0.3f) * 0.3f"),
        ("float2 f; f.x = i; f.y = b[i]; a[i] = x + f.x * 0.3f;", "f.x * 0.3f"),
        ("float w = 1.0f; for (int k = 0; k < 4; ++k) { a[k] = x + w * 0.3f; w = w * 0.9f; }", "w * 0.3f"),
        ("for (int k = 0; k < 4; ++k) a[i] += 0.3f * k;", "0.3f * k"),
        ("int k = (int)x, f = i; float g = f; a[i] = x + g * 0.3f;", "g * 0.3f"),
        ("int k = clamp((int)x, 1, 2); float f = 0.7f; k = min(k, (int)f); a[i] = x + f * 0.3f;", "f * 0.3f"),
        ("a[i] = mad(0.3f, (float)i, x);", "mad(0.3f, (float)i, x)"),
        ("a[i] = b[i] + exp((float)i);", "exp((float)i)"),
        ("a[i] = mix(0.0f, 1.0f, i * 0.1f);", "mix(0.0f, 1.0f, i * 0.1f)"),
        ("a[i] = x + HALF(i);", "HALF(i)"),
        ("a[i] = x + half_of(i);", "y * 0.3f"),
        ("float t = i * 0.1f; a[i] = x - 0.5f * 9.81f * t * t;", "0.5f * 9.81f * t * t"),
        ("a[i] = x + 1e-2f * i;", "1e-2f * i"),
        ("a[i] = x + .3 * i;", ".3 * i"),
        ("a[i] = x + DOT * i;", "DOT * i"),
        ("a[i] = clamped((float)i, x);", "y * 0.3f"),
        ("float2 p = (float2)(b[i], (float)i); a[i] = x + p.y * 0.3f;", "p.y * 0.3f"),
        ("float w[2] = {b[i], 0.7f}; a[i] = x + w[1] * 0.3f;", "w[1] * 0.3f"),
        ("a[i] = dot((float2)(b[i], i), (float2)(0.3f, 0.7f));", "dot((float2)(b[i], i), (float2)(0.3f, 0.7f))"),
        ("a[i] = MADD(0.3f, i, x);", "MADD(0.3f, i, x)"),
        ("a[i] = mad(0.3f, (float)i, n > 3 ? x : b[i]);", "mad(0.3f, (float)i, n > 3 ? x : b[i])"),
        ("ACC(a[i], 0.3f * i);", "0.3f * i"),
        ("a[i] = b[(int)(0.3f * i + x)];", "0.3f * i"),
        ("a[i] = x - -0.3f * i;", "0.3f * i"),
        ("float w = x; a[i] = w++ + 0.3f * i;", "0.3f * i"),
        ("a[i] = 0.1f * i; a[i + 1] = a[i] * 0.3f + x;", "a[i] * 0.3f"),
        ("uint r = 0; for (int k = 0; k < 4; ++k) r |= ((i >> k) & 1) << (3 - k); a[i] = x + 0.3f * r;", "0.3f * r"),
        ("float f = b[i]; set((private float *)&f); a[i] = x + f * 0.3f;", "f * 0.3f"),
        ("a[i] = x + SCALED;", "SCALED"),
        ("a[i] = x + W * i;", "W * i"),
        ("a[i] = x + AT(i, 0.3f);", "AT(i, 0.3f)"),
    ];
    let before = "
        #define HALF(y) ((y) * 0.3f)
        #define SCALED (i * 0.3f)
        #define W 0.3f
        #define DOT .3
        #define MADD(p, q, r) ((p) * (q) + (r))
        #define ACC(s, v) s += (v)
        float clamped(float y, float top) { if (y > top) y = top; return y * 0.3f + 1.0f; }
        #define AT(row, column) ((row) * 16 + (column))
        void set(private float *y) { *y = 1.0f; }
        float half_of(float y) { return y * 0.3f + 1.0f; }";
    for (body, product) in of_ids {
        let body = format!("size_t i = get_global_id(0); {body}");
        assert_eq!(in_body(before, &body).as_deref(), Some(product), "{body}");
    }
}

#[test]
fn products_of_memory_and_arguments_are_not() {
    let before = "
        #define HALF(y) ((y) * 0.3f)
        #define PLAIN (2.0f * 0.3f)
        #define N 16
        #define ME (get_local_id(1) * get_local_size(0) + get_local_id(0))
        #define AT(row, column) ((row) * N + (column))
        #define CELL(row, column) a[(row) * N + (column)]
        #define MADD(p, q, r) ((p) * (q) + (r))
        float half_of(float y) { return y * 0.3f + 1.0f; }
        float twice(float y, float z) { return y * z + half_of(y); }";
    for body in [
        "a[i] = b[i] * x + b[i + 1];",
        "a[i] = x + b[i * 3 + 1] * 0.3f;",
        "a[i] = x * i + 1.0f;",
        "a[i] = b[i] * 0.3f * i + 1.0f;",
        "a[i] = 0.3f * i * b[i] + 1.0f;",
        "a[i] = (b[i] + i) * 0.3f + 1.0f;",
        "a[i] = 0.3f * (float)(b[i]) + 1.0f;",
        "a[i] = 0.3f * v[i].x + 1.0f;",
        "a[i] = 0.3f * vload4(i, b).x + 1.0f;",
        "a[i] = 0.3f * *(b + i) + 1.0f;",
        "int row = i / n; int k = row * 16 + i; a[k] = b[k] * x + 1.0f;",
        "for (int k = i * 4; k < i * 4 + 4; ++k) a[k] = x;",
        "float y = b[i]; y = y * 0.3f + 0.25f; y += 2.0f; a[i] = y * 0.3f - 1.0f;",
        "float s = 0.0f; for (int k = 0; k < n; ++k) s += b[i * 8 + k] * b[k]; a[i] = s;",
        "uint h = i; for (int k = 0; k < 32; ++k) h = h * 1664525u + 1013904223u; a[i] = h;",
        "a[i] = 0.3f * i;",
        "a[i] += 0.1f * N * 3 + (float)N * 0.7f;",
        "global const float *p = &b[i * n]; float s = 0; for (int k = 0; k < n; ++k) s += p[k] * 0.3f + p[k] * b[k]; a[i] = s;",
        "a[i] = bodies[i].mass * 0.3f + 1.0f; global const body *at = bodies + i; a[i] += at->mass * 0.3f + at->mass * at->mass;",
        "a[i] = CELL(i, 3) * 0.3f + x; CELL(i, 1) -= CELL(i, 2) * CELL(2, i);",
        "int k = min((int)i, 3) * 16 + 1; uint o = i * sizeof(float) + 4; a[k] = b[o]; barrier(CLK_LOCAL_MEM_FENCE);",
        "a[i] = 1e-3f * i; a[i] = MADD(b[i], 0.3f, x);",
        "a[i] = 0.0f; a[i] += b[i] * 0.3f;",
        // Such products have nothing to round.
        "a[i] = x + 0.5f * i - 4 * (float)i; float f = n > 3 ? b[i] : 2.0f; a[i] += f * 0.3f;",
        "float f = 0.0f; for (int k = 0; k < n; ++k) f += b[k]; a[i] = 0.85f * f + 1.0f; float g = f; a[i] = sqrt(g) + x;",
        "a[i] += (n > 3 ? b[i] : 1.0f) * 0.3f; a[i] += (n > 3 ? b[i] : 0.3f) * x; a[i] += (n > 3 ? x : b[i]) * 0.3f;",
        "float f[4]; for (int k = 0; k < 4; ++k) f[k] = b[k * 8 + i]; float m = f[0]; m = max(m, f[1]); a[i] = exp(f[2] - m) * 0.3f + 1.0f;",
        "int k = ME; int m = AT(k, i) + 1; l[ME] = b[AT(i, k)] * N + 1.0f; a[m] = l[0];",
        "size_t w = get_global_size(0), h = get_global_size(1); a[(i + w) % 8] = x; size_t k = (get_global_id(2) - 1) * h + w * i; a[k] = x;",
        "a[i] = i; a[i] *= 0.3f; a[i] += 1.0f;",
        "a[i] = exp(b[i] * 0.3f) + i;",
        "a[i] = mad(b[i], 0.3f, (float)i) + fma(0.3f, (float)i, x);",
        "a[i] = HALF(b[i]) + PLAIN;",
        "a[i] = half_of(b[i]) + twice(x, 0.3f);",
        "const float *p = b + i; a[i] = p[0] * 0.3f + 1.0f;",
    ] {
        let body = format!("size_t i = get_global_id(0); {body}");
        assert_eq!(in_body(before, &body), None, "{body}");
    }
    let body = "int i = get_global_id(0); a[i] = b[i] + 0.3f * i;";
    assert_eq!(in_body("#pragma OPENCL FP_CONTRACT OFF", body), None);
    assert_eq!(in_body("#if N\n#pragma OPENCL FP_CONTRACT OFF\n#endif", body).as_deref(), Some("0.3f * i"));
    assert_eq!(in_body("void f() {\n#pragma OPENCL FP_CONTRACT OFF\n}", body).as_deref(), Some("0.3f * i"));
}

/// What a function is given by one call of many decides.
#[test]
fn a_function_is_looked_at_for_all_its_calls() {
    let half = "float half_of(float y, float z) { return y * z + 1.0f; }";
    let of = |before: &str, body: &str| in_body(&format!("{half}\n{before}"), body);
    assert_eq!(of("", "a[0] = half_of(b[0], 2.0f) + half_of(x, 0.3f);"), None);
    assert_eq!(of("", "a[0] = half_of(b[0], 2.0f) + half_of(3.0f, 0.3f);").as_deref(), Some("y * z"));
    assert_eq!(of("float g(float y) { return half_of(y, 1.0f); }", "a[0] = g(x);"), None);
    assert_eq!(of("float g(float y) { return half_of(y, 1.0f); }", "a[0] = g(1.0f);").as_deref(), Some("y * z"));
    assert_eq!(of("#define G half_of(1.0f, 2.0f)", "a[0] = half_of(x, x) + G;").as_deref(), Some("y * z"));
    let later = "float g(float y);\nfloat f() { return g(1.0f); }\nfloat g(float y) { return y * 0.3f + 1.0f; }";
    assert_eq!(in_body(later, "a[0] = f() + g(x);").as_deref(), Some("y * 0.3f"));
    let first = "float first(const float *p) { return p[0] * 0.3f + 1.0f; }";
    assert_eq!(in_body(first, "float f[2]; f[0] = 0.7f; a[0] = first(f);").as_deref(), Some("p[0] * 0.3f"));
    assert_eq!(in_body(first, "float f[2]; f[0] = b[0]; a[0] = first(f);"), None);
    assert_eq!(in_body(&first.replace("const", "global const"), "a[0] = first(b);"), None);
    let whole = "size_t of(uint d);\nstatic size_t id() { return of(0); }\nsize_t of(uint d) { return get_global_id(d) * 2 + 1; }";
    assert_eq!(in_body(whole, "a[id()] = x;"), None);
}

/// What is too long to be looked at in time may have anything, and so may what it calls.
#[test]
fn a_long_function_counts_as_having_such_products() {
    let half = "float half_of(float y) { return y * 0.3f + 1.0f; }";
    let sum = |terms: usize| format!("a[0] = half_of(x){};", " + b[0] * x".repeat(terms));
    assert_eq!(in_body(half, &sum(2_000)), None);
    assert_eq!(in_body(half, &sum(5_000)).as_deref(), Some("k(..)"));
    let kernels =
        format!("{half}\nkernel void long_one(global float *a, float x, global float *b) {{ {} }}", sum(5_000));
    assert_eq!(in_body(&kernels, "a[0] = half_of(x);").as_deref(), Some("y * 0.3f"));
}

/// Rule Z1: where each work-item does its part of several launches, what one stores may be a constant for the next.
#[test]
fn what_a_kernel_stores_may_be_known() {
    let stores = |body: &str| {
        let text = format!(
            "kernel void k(global float *a, global const float *b, float x) {{ size_t i = get_global_id(0); {body} }}"
        );
        Source::read(&text, "").unwrap().stores_known("k")
    };
    for known in ["a[i] = 0.3f;", "a[i] = i * 0.7f;", "float y = 0.3f; y *= 0.9f; a[i] = y;"] {
        assert!(stores(known), "{known}");
    }
    for unknown in ["a[i] = 0.0f;", "a[i] = x;", "a[i] += 0.3f;", "a[i] = b[i] * 0.3f + x;", "a[i] = 1;"] {
        assert!(!stores(unknown), "{unknown}");
    }
}

/// Z2: no source takes long to read.
#[test]
fn choices_and_parentheses_in_others_are_read_in_time() {
    let choices = format!("a[0] = {}1.0f{} * 0.3f + x;", "(n ? ".repeat(60), " : 1.0f)".repeat(60));
    assert!(in_body("", &choices).is_some());
    let deep = format!("a[0] = {}x{} * 0.3f + (n ? x : 1.0f);", "exp(".repeat(5_000), ")".repeat(5_000));
    assert_eq!(in_body("", &deep).as_deref(), Some("k(..)"));
    let wide = format!("float y = x; {} a[0] = y * 0.3f + 1.0f;", "y = (n ? (y) : ((y)));".repeat(700));
    assert_eq!(in_body("", &wide), None);
}
