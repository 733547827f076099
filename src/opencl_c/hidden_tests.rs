//! What keeps a kernel from being fused is found wherever it stands in the kernel, and however it is written.

use std::collections::BTreeSet;

use super::expand::expanded;
use super::folder_tests::names;
use super::options::Options;
use super::source::{Effects, Source};
use super::tokens::{TokenKind, split};

/// What a kernel must not be taken for.
#[derive(Clone, Copy, Debug)]
enum Told {
    /// That its work-items wait for each other.
    Waits,
    /// That it cannot be a function of one work-item.
    Order,
    /// That it sees how its range is divided.
    Groups,
}

/// What comes before the source, a statement in the kernel, and what that is.
const HAZARDS: [(&str, &str, Told); 45] = [
    ("", "barrier(CLK_LOCAL_MEM_FENCE);", Told::Waits),
    ("", "work_group_barrier(CLK_GLOBAL_MEM_FENCE);", Told::Waits),
    ("", "bar\\\nrier(1);", Told::Waits),
    ("", "barrier/* \" */(1);", Told::Waits),
    ("", "(barrier)(1);", Told::Waits),
    ("", "(*&barrier)(1);", Told::Waits),
    ("", "if (0) { } else sub_group_barrier(1);", Told::Waits),
    ("", "{ int q = work_group_reduce_add(1); }", Told::Waits),
    ("", "{ local int q; }", Told::Waits),
    ("", "async_work_group_copy(0, 0, 1, 0);", Told::Waits),
    ("#define Q barrier(1)\n", "Q;", Told::Waits),
    ("#define Q barrier\n", "Q(1);", Told::Waits),
    ("#define Q(a) a(1)\n", "Q(barrier);", Told::Waits),
    ("#define Q(a) a\n", "Q(Q(barrier)(1));", Told::Waits),
    ("#define Q R\n#define R barrier\n", "Q(1);", Told::Waits),
    ("#if 0\n#define Q 1\n#else\n#define Q barrier(1)\n#endif\n", "Q;", Told::Waits),
    ("#define q(a, b) a ## b\n", "q(bar, rier)(1);", Told::Waits),
    ("void q(void) { barrier(1); }\n", "q();", Told::Waits),
    ("void r(void) { barrier(1); } void q(void) { r(); }\n", "q();", Told::Waits),
    ("void q(void); void r(void) { q(); }\n", "r(); } void q(void) { barrier(1); } void s(void) {", Told::Waits),
    ("", "printf(\"\");", Told::Order),
    ("", "atomic_inc((volatile global int *)0);", Told::Order),
    ("#define Q atom_add\n", "Q((volatile global int *)0, 1);", Told::Order),
    ("void q(void) { printf(\"\"); }\n", "q();", Told::Order),
    ("", "int q = __LINE__;", Told::Order),
    // What nobody knows.
    ("", "simd_shuffle_xor(1, 2);", Told::Order),
    ("", "__gen_ocl_all(1);", Told::Order),
    ("", "abort();", Told::Order),
    ("void q(int x);\n", "q(1);", Told::Order),
    ("void q(void) { clock_read_device(); }\n", "q();", Told::Order),
    ("#define Q simd_any\n", "if (1) (Q)(1);", Told::Order),
    ("#define Q(a) a\n", "Q(simd_any)(1);", Told::Order),
    ("#define Q(a) a(1)\n", "Q(simd_any);", Told::Order),
    ("#define Q(a) ((simd_any))\n", "Q(1)(1);", Told::Order),
    ("#define Q(step) step(1)\n", "Q(simd_any);", Told::Order),
    ("#define Q\n", "simd_any Q (1);", Told::Order),
    ("", "((simd_any))(1);", Told::Order),
    ("", "(1 ? simd_any : sin)(1);", Told::Order),
    ("#define R(a) simd_any\n#define Q R\n", "Q(1)(1);", Told::Order),
    ("", "int q =\n#ifdef Q\nsimd_any\n#else\nsin\n#endif\n(1);", Told::Order),
    ("float convert_all(float x);\n", "convert_all(1.0f);", Told::Order),
    ("", "simd_any\n#ifdef Q\n(1)\n#else\n(2)\n#endif\n;", Told::Order),
    ("", "int q = get_local_id(0);", Told::Groups),
    ("#define Q get_group_id\n", "int q = Q(0);", Told::Groups),
    ("size_t q(void) { return get_num_groups(0); }\n", "q();", Told::Groups),
];

/// Also where macros of a hazard are written out.
fn is_told(text: &str, kernel: &str, told: Told) -> bool {
    let is_told = |text: &str| is_told_of(text, kernel, told);
    is_told(text)
        && (!text.starts_with("#define")
            || expanded(text, &Options::default(), &BTreeSet::new()).is_none_or(|text| is_told(&text)))
}

fn is_told_of(text: &str, kernel: &str, told: Told) -> bool {
    let Ok(source) = Source::read(text, "-cl-std=CL2.0") else { return true };
    let Effects { may_wait, may_see_groups, .. } = source.effects(kernel);
    let refused = source.item(kernel).is_err() || source.item_with_helpers(kernel).is_err();
    refused
        || match told {
            Told::Waits => may_wait,
            Told::Order => false,
            Told::Groups => may_see_groups,
        }
}

/// Kernels that each work-item does on its own, in a source.
fn plain_kernels(text: &str) -> Vec<String> {
    let is_plain =
        |name: &String| [Told::Waits, Told::Order, Told::Groups].iter().all(|told| !is_told(text, name, *told));
    names(text).into_iter().filter(is_plain).collect()
}

#[test]
fn what_keeps_a_kernel_from_being_fused_is_found_at_any_place() {
    const OWN: &str = "
        typedef struct { float by; int more[2]; } pair;
        float twice(float x) { return x * 2.0f; }
        kernel void blend(global const float *from, global float *to, float4 by, pair other) {
            size_t i = get_global_id(0);
            if (i % 3 == 1) { return; } else if (i == 7) to[i] = 1.0f;
            for (int k = 0; k < 3; ++k) { by.x += twice(from[i]); switch (k) { case 1: by.y++; break; default: ; } }
            do { by.w -= 1.0f; } while (by.w > 4.0f); // barrier(1);
            to[i] = by.x + by.w * other.by + /* ; */ other.more[1];
        }";
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels-cl");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "cl"));
    let mut texts: Vec<String> = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    texts.retain(|text| Source::read(text, "-cl-std=CL2.0").is_ok());
    texts.push(OWN.to_owned());
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let (mut rng, mut places) = (fastrand::Rng::with_seed(seed), 0);
    for text in &texts {
        for kernel in plain_kernels(text) {
            let source = Source::read(text, "-cl-std=CL2.0").unwrap();
            let body = source.item(&kernel).unwrap().body.clone();
            let is_end = |kind: TokenKind| matches!(kind, TokenKind::Mark(b';' | b'{' | b'}'));
            let tokens = split(text).unwrap();
            let inside = tokens.iter().filter(|token| body.contains(&token.at.start) && token.at.end < body.end);
            let all: Vec<usize> = inside.filter(|token| is_end(token.kind)).map(|token| token.at.end).collect();
            // Some places of each kernel of the examples, others in each run.
            let some = if text == OWN { all.len() } else { all.len().min(2) };
            for place in rng.choose_multiple(all, some) {
                places += 1;
                for (before, statement, told) in HAZARDS {
                    let changed = format!("{before}{} {statement} {}", &text[..place], &text[place..]);
                    assert!(
                        is_told(&changed, &kernel, told),
                        "{kernel}: {statement} after\n{before}\n{}",
                        &changed[..place]
                    );
                }
            }
        }
    }
    assert!(places > 60, "{places}");
}
