//! What is known of a kernel for compilers that make vectors of it: whether an index may wrap, whether it computes little,
//! what loops it has, and where its barriers are.

use super::fused_tests::read;
use super::source::{Barriers, Loops};

/// Z2: where some compilers vectorize wrongly, only what has no index that wraps is vectorized.
#[test]
fn an_index_wraps_only_where_low_bits_are_taken() {
    let wraps = |before: &str, body: &str| {
        let text = format!(
            "{before}\nkernel void f(global uint *a, global float *b, uint n) {{ size_t i = get_global_id(0); {body} }}"
        );
        !read(&text).wraps_no_index("f")
    };
    for plain in [
        "b[i] = b[i + 1] * n + exp(b[i]);",
        "if (i < n && (n > 3 || i <= 2)) b[i * 3] = a[i] * 2;",
        "for (uint k = 0; k < 4; ++k) b[4 * i + k] = k >= 2 ? 1.0f : fma(b[i], 2.0f, b[i]);",
        "float4 v = vload4(i, b); vstore4(v, i, b);",
    ] {
        assert!(!wraps("", plain), "{plain}");
    }
    for odd in [
        "b[(i * 3) % 256] = 1;",
        "b[i & 7] = 1;",
        "uint h = i; h &= 7; b[h] = 1;",
        "b[i >> 1] = 1;",
        "b[i << n] = 1;",
        "b[i ^ 1] = 1;",
        "b[i | 1] = 1;",
        "b[~i] = 1;",
        "b[(uchar)i] = 1;",
        "ushort k = i; b[k] = 1;",
        "b[convert_char(i)] = 1;",
        "b[mul24((uint)i, n)] = 1;",
        "b[rotate((uint)i, 3u)] = 1;",
        "b[i && &n] = 1;",
        "b[i * 3 - i * 3 / 256 * 256] = 1;",
        "size_t k = i * 3; while (k >= 256) k -= 256; b[k] = 1;",
        "b[mul_hi((uint)i * 50331648u, 256u)] = 1;",
        "b[bitselect(0u, (uint)i, 255u)] = 1;",
        "__UINT8_TYPE__ k = i; b[k] = 1;",
        "unsigned _BitInt(8) k = i; b[k] = 1;",
    ] {
        assert!(wraps("", odd), "{odd}");
    }
    // Whatever is computed, if an index is a global id as it is.
    for plain in [
        "b[i] = a[i] % 7 ^ n >> 3;",
        "uint v = a[i]; for (uint k = 0; k < 9; ++k) v = (v ^ (v >> 7)) * 3u; a[i] = (uchar)v & 15;",
        "const int k = get_global_id(0); if (k <= 7 || k == 9) return; b[k] /= a[get_global_id(0)] - k;",
        "unsigned int k = get_global_id(0); while (n > k) n -= k % 3; a[k] = n;",
    ] {
        assert!(!wraps("", plain) && !wraps("typedef struct { int x; } pair;", plain), "{plain}");
    }
    for odd in [
        "b[i] = a[i % 8];",
        "b[i] = n % 7; i += 1;",
        "b[i] = n % 7; ++i;",
        "(i)++; b[i] = n % 7;",
        "b[i] = n % 7; --(i);",
        "((i)) = i % 8; b[i] = 1;",
        "b[i--] = n % 7;",
        "i <<= 8; b[i] = n % 7;",
        "i = i % 8; b[i] = 1;",
        "size_t *p = &i; *p = *p % 8; b[i] = 1;",
        "{ uint i = n % 8; b[i] = 1; }",
        "for (uint i = 0; i < n % 8; ++i) b[i] = 1;",
        "uchar k = get_global_id(0); b[k] = n % 7;",
        "short int k = get_global_id(0); b[k] = n % 7;",
        "uint k = get_global_id(0) * 3; b[k] = n % 7;",
        "uint k = get_local_id(0); b[k] = n % 7;",
        "b[n % 8] = 1;",
        "*(b + i % 8) = 1;",
        "b[i] = vload4(i % 8, b).x;",
        "float c[8]; c[i % 8] = 1; b[i] = c[0];",
        "global float *c = b; c[i % 8] = 1;",
        "(b)[i % 8] = 1;",
        "b[i] = (i % 8)[b];",
    ] {
        assert!(wraps("", odd), "{odd}");
    }
    assert!(wraps("size_t low(size_t x) { return x % 7; }", "b[i] = low(i);"));
    assert!(wraps("#define I i % 8", "b[i] = n % 7; b[I] = 1;"));
    assert!(wraps("typedef uchar narrow;", "b[(narrow)i] = 1;"));
    assert!(wraps("#define LOW(x) ((x) & 7)", "b[LOW(i)] = 1;"));
    assert!(wraps("size_t low(size_t x) { return x & 7; }", "b[low(i)] = 1;"));
    assert!(!read("kernel void f() {}").wraps_no_index("g"));
    let of_param = read("kernel void f(global float *b, uchar k) { k = get_global_id(0) * 3; b[k] = 1; }");
    assert!(!of_param.wraps_no_index("f"));
}

#[test]
fn a_kernel_computes_little_or_more() {
    let is_light = |before: &str, body: &str| {
        let params = "global float *a, global const float *b, float x, uint n";
        read(&format!("{before}\nkernel void f({params}) {{ size_t i = get_global_id(0); {body} }}")).is_light("f")
    };
    for light in [
        "a[i] = b[i] * x + 1.0f;",
        "a[i] += fma(b[i], x, 1.0f) - x;",
        "if (i < n) a[i] = b[i] * x + 1.0f;",
        "if (i >= n && i != 3) return; a[i] = (b[i] * x + 1.0f) * x;",
        "a[i] <<= 3; a[get_global_id(1)]++;",
        "a[i] = b[i] & n | 1;",
    ] {
        assert!(is_light("", light), "{light}");
    }
    for more in [
        "a[i] = b[i] * x + 1.0f - n;",
        "if (i < n) a[i] = (b[i] * x + 1.0f) * x + 1.0f - x;",
        "a[i] = b[i] / x;",
        "a[i] = n % 2;",
        "a[i] = n ? x : 1.0f;",
        "a[i] = fmax(b[i], x);",
        "for (uint k = 0; k < n; ++k) a[i] = x;",
        "while (n > i) a[i] = x;",
        "a[i] = b[i] << 2 >> 1 << 3 >> 4;",
    ] {
        assert!(!is_light("", more), "{more}");
    }
    assert!(!is_light("#define X x * x", "a[i] = X;"));
    assert!(!is_light("float twice(float x) { return x + x; }", "a[i] = twice(x);"));
    assert!(!is_light("", "\n#if 1\na[i] = x;\n#endif\n"));
    assert!(!read("kernel void f() {}").is_light("g"));
}

#[test]
fn loops_have_a_number_of_turns_or_others() {
    let loops = |before: &str, body: &str| {
        let params = "global float *a, global const float *b, float x, uint n";
        read(&format!("{before}\nkernel void f({params}) {{ size_t i = get_global_id(0); {body} }}")).loops("f")
    };
    assert_eq!(loops("", "a[i] = b[i];"), Loops::None);
    for counted in [
        "for (int k = 0; k < 16; ++k) x += b[k];",
        "for (const uint k = 0; k < 16; k++) { x += b[k]; }",
        "for (unsigned int k = 32; k > 0; k /= 2) { for (uint l = 0x1; l <= 3u; l += 2) { x *= b[k]; } if (x > 1.0f) x = k; }",
        "for (int k = 15; k >= 0; k--) for (int l = 1; l != 256; l <<= 1) if (k == l) x += b[k * l];",
        "\n#pragma unroll\nfor (int k = 0; k < 16; ++k) x += b[k];",
        "{ float y = x; for (int k = 0; k < 16; ++k) { { y += b[k]; } } a[i] = y; }",
        "x = 1.0f; for (int k = 0; k < 4; k++) x *= 2.0f; for (int k = 0; k < 4; k++) x += 2.0f; a[i] = x;",
    ] {
        assert_eq!(loops("", counted), Loops::Counted, "{counted}");
    }
    for other in [
        "for (int k = 0; k < n; ++k) x += b[k];",
        "for (int k = n; k < 16; ++k) x += b[k];",
        "for (int k = 0; k < 16; k += n) x += b[k];",
        "for (int k = 0, l = 0; k < 16; ++k) x += b[k];",
        "int k; for (k = 0; k < 16; ++k) x += b[k];",
        "for (int k = 0; k < 16; ++k) { x += b[k]; if (x > 1.0f) break; }",
        "for (int k = 0; k < 16; ++k) { if (x > 1.0f) continue; x += b[k]; }",
        "if (i >= n) return; for (int k = 0; k < 16; ++k) x += b[k];",
        "if (i < n) for (int k = 0; k < 16; ++k) x += b[k];",
        "if (i < n) { for (int k = 0; k < 16; ++k) x += b[k]; }",
        "if (i < n) x = 1.0f; else for (int k = 0; k < 16; ++k) x += b[k];",
        "for (int k = 0; k < 16; ++k) if (x > 1.0f) { for (int l = 0; l < 16; ++l) x += b[k]; }",
        "for (int k = 0; k < 16; ++k) { x += b[k]; k += 2; }",
        "for (int k = 0; k < 16; ++k) { x += b[k]; k = n; }",
        "for (int k = 0; k < 16; ++k) if (x > 1.0f) { x += b[k]; } else { k += 3; }",
        "if (i < n) { { for (int k = 0; k < 16; ++k) x += b[k]; } }",
        "for (int k = 0; k < 16; ++k) { x += b[k]; --k; }",
        "for (int k = 0; k < 16; ++k) { int *l = &k; x += b[*l]; }",
        "for (int k = 0; k < 16; ++k) { x += b[k]; k >>= 1; }",
        "for (int k = 0; k < 16; ) { x += b[k]; }",
        "for (;;) x += b[i];",
        "while (x < 1.0f) x += b[i];",
        "do x += b[i]; while (x < 1.0f);",
        "for (int k = 0; k < 16; ++k) x += b[k]; do x += b[i]; while (x < 1.0f);",
        "\n#if 1\nfor (int k = 0; k < 16; ++k) x += b[k];\n#endif\n",
    ] {
        assert_eq!(loops("", other), Loops::Others, "{other}");
    }
    let turns = "for (int k = 0; k < TURNS; ++k) x += b[k];";
    assert_eq!(loops("#define TURNS 16", turns), Loops::Counted);
    assert_eq!(loops("#define TURNS n", turns), Loops::Others);
    let sum = "float sum(float x) { for (int k = 0; k < 3; k++) x += k; return x; }";
    assert_eq!(loops(sum, "x = sum(x);"), Loops::Others);
    assert_eq!(loops(sum, "for (int k = 0; k < 16; ++k) x += sum(x);"), Loops::Others);
    let twice = "float twice(float x) { return x + x; }";
    assert_eq!(loops(twice, "for (int k = 0; k < 16; ++k) x += twice(x);"), Loops::Counted);
}

#[test]
fn barriers_are_counted_in_functions_and_macros() {
    let waits =
        |before: &str, body: &str| read(&format!("{before}\nkernel void f(local float *t) {{ {body} }}")).waits("f");
    let macros = "#define FOUR (TWO + TWO)\n#define TWO (barrier(1) + barrier(1))";
    let helper = "void h(void) { barrier(1); for (int i = 0; i < 3; ++i) barrier(1); }";
    let pair = format!("{helper} void g(void) {{ h(); h(); }}");
    for (before, body, expected) in [
        ("", "t[0] = 1.0f;", 0),
        ("", "barrier(1); t[0] = 1.0f; work_group_barrier(1);", 2),
        (macros, "FOUR; TWO; barrier(1);", 7),
        (helper, "h(); barrier(1); h();", 5),
        (&pair, "g(); h();", 6),
    ] {
        assert_eq!(waits(before, body), expected, "{before} {body}");
    }
    assert_eq!(read("kernel void f(local float *t) { t[0] = 1.0f; }").waits("none"), 0);
}

#[test]
fn barriers_are_straight_in_a_loop_or_conditional() {
    let barriers = |before: &str, body: &str| {
        let text = format!(
            "#define SYNC barrier(CLK_LOCAL_MEM_FENCE)\n{before}\nkernel void f(global float *a, float x, uint n) {{ \
             local float t[64]; const uint i = get_local_id(0); t[i] = x; SYNC; {body} }}"
        );
        read(&text).barriers("f")
    };
    let late = "float late(local float *t) { barrier(CLK_LOCAL_MEM_FENCE); return t[0]; }";
    let early =
        "float early(local float *t, float x) { if (x > 1.0f) return x; barrier(CLK_LOCAL_MEM_FENCE); return t[0]; }";
    for straight in [
        "a[i] = t[63 - i];",
        "if (i < 3) t[i] += 1.0f; else t[i] = x; SYNC; a[i] = i > n ? t[0] : t[1];",
        "for (int k = 0; k < 4; ++k) { t[i] += x; SYNC; if (t[k] > 1.0f && x > 0.0f) x = k; SYNC; } a[i] = x;",
        "SYNC; if (i >= n) return; a[i] = t[0];",
        "a[i] = late(t); SYNC; { SYNC; }",
        "\n#pragma unroll\nfor (int k = 0; k < 4; ++k) SYNC;",
    ] {
        assert_eq!(barriers(late, straight), Barriers::Straight, "{straight}");
    }
    for in_loop in [
        "for (uint k = n; k > 0; k /= 2) { if (i < k) t[i] += t[i + k]; SYNC; } a[i] = t[0];",
        "while (x > 1.0f) { x -= 1.0f; SYNC; }",
        "for (uint k = 0; k < n; k++) x += t[k];",
        "while (late(t) > 1.0f);",
    ] {
        assert_eq!(barriers(late, in_loop), Barriers::InLoop, "{in_loop}");
    }
    for conditional in [
        "if (n > 3) SYNC;",
        "if (n > 3) { if (i < 3) t[i] = x; SYNC; }",
        "if (n > 3) x = 1.0f; else SYNC;",
        "if (n > 3) x = 1.0f; else if (n > 2) x = 2.0f; else { x = 3.0f; SYNC; }",
        "if (n > 3) return; SYNC;",
        "switch (n) { case 1: SYNC; break; default: x = 2.0f; }",
        "for (int k = 0; k < 4; ++k) { if (n > 3) break; SYNC; }",
        "for (uint k = 0; k < n; k++) SYNC; for (uint k = 0; k < n; k++) SYNC;",
        "for (uint k = 0; k < n; k++) for (uint l = 0; l < n; l++) SYNC;",
        "n > 3 ? barrier(CLK_LOCAL_MEM_FENCE) : (void)0;",
        "if (n > 3) x = late(t);",
        "x = n > 3 && late(t) > 1.0f;",
        "x = early(t, x);",
        "\n#if 1\nSYNC;\n#endif\n",
        "again: SYNC; if (n-- > 3) goto again;",
        "for (int k = 0; k < 4; ++k) { SYNC; if (k == n) break; }",
        "for (int k = 0; k < 4; ++k) { SYNC; if (k == n) return; }",
        "for (uint k = 0; k < n; ++k) { SYNC; if (k == 3) continue; }",
        "if (n > 3) v = (float2){x, x}; else SYNC;",
        "if (n > 3) do { x -= 1.0f; } while (x > 1.0f); else SYNC;",
        "ONCE SYNC;",
        "for (int k = 0; k < 4; ++k) { SYNC; if (k == n) STOP; }",
        "MAYBE(n > 3);",
        "if IS_FIRST SYNC;",
        "if IS_FIRST { barrier(CLK_LOCAL_MEM_FENCE); }",
    ] {
        let macros = "#define ONCE if (i == 0)\n#define STOP break\n#define MAYBE(c) ((c) && late(t))\n#define IS_FIRST (i == 0)";
        assert_eq!(
            barriers(&format!("{late}\n{early}\n{macros}"), conditional),
            Barriers::Conditional,
            "{conditional}"
        );
    }
}
