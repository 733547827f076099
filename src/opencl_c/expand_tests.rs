//! Macros that are written out, and conditions that are decided: a preprocessor makes the same of the text before and after.

use std::collections::BTreeSet;

use fastrand::Rng;

use super::conditions::Skeleton;
use super::expand;
use super::folder_tests::{names, preprocessed, tokens};
use super::options::Options;
use super::plain::Plain;
use super::source::NotItem;
use super::unreadable::Unreadable;

fn expanded(text: &str, options: &str) -> Option<String> {
    expand::expanded(text, &Options::read(options).unwrap(), &BTreeSet::new())
}

#[test]
fn macros_are_written_out_where_they_are_used() {
    for (before, after) in [
        ("#define M if (a) return;\nM x;", "if (a) return; x;"),
        ("#define CAT(a, b) a##b\nCAT(x, 1) CAT(, y) CAT(z,) CAT(1.0, f);", "x1 y z 1.0f;"),
        ("#define A B\n#define B(x) (x, C)\n#define C 3\nA (A(1));", "((1, 3), 3);"),
        ("#define F(x, ...) g(x, __VA_ARGS__)\nF(1, (2, 3), 4);", "g(1, (2, 3), 4);"),
        ("#define O x ## y ## 1 z\nO;", "xy1 z;"),
        ("#define E\nE x E E y E;", "x y;"),
        // Signs that stand alone stay alone.
        ("#define N -1\n#define P(x) -x\nint a = -N - P(-2);", "int a = - -1 - - -2;"),
        // It is another macro later, and none before.
        ("int M;\n#define M 1\nM;\n#undef M\nM;\n#define M 2\nM;", "int M; 1;\n#undef M\nM; 2;"),
        // A name within itself, and one without parentheses.
        ("#define f(x) (f)(x)\nf(1); f;", "(f)(1); f;"),
        ("#define f(x) x\nf f(f)(1);", "f f 1;"),
    ] {
        // What is left over is what a compiler would leave.
        let written = expanded(before, "");
        let written = written.map(|text| tokens(&text));
        let is_same = written.as_deref() == Some(&*tokens(after));
        // `f(f)(1)` is not replaced again by some preprocessors.
        assert!(is_same || (written.is_none() && before.contains("f(f)")), "{before}: {written:?}");
    }
    assert_eq!(expanded("x;", "-DM=1"), None);
    assert_eq!(expanded("M;", "-DM=1").map(|text| tokens(&text)).as_deref(), Some("1 ;"));
}

#[test]
fn a_text_stays_if_the_order_of_replacing_could_matter() {
    for text in [
        // A text of an argument; what is not read stays.
        "#define S(x) #x\n#define A 1\nS(A);",
        "#if Q\n#define S(x, y) x##y\n#endif\n#define A 1\nS(A, 2);",
        // Within itself.
        "#define A A + 1\nA;",
        "#define A B\n#define B A\nA;",
        // Its arguments depend on a condition.
        "#define F(x) x;\nF\n#if Q\n(1)\n#endif\n;",
        "#define F(x) x;\nF(\n#if Q\n1\n#endif\n);",
        // The wrong number of arguments, or none that end.
        "#define F(x) x;\nF(1, 2);",
        "#define F() 1\nF(2);",
        "#define F(x) x\nF(1;",
        // Names of places.
        "#define F(x) x;\nF(__LINE__);",
        "#define F(x) x ## __COUNTER__\nF(1);",
        // One token that is none.
        "#define F(x) x ## +\nF(1);",
        // It may be two arguments.
        "#if Q\n#define A 1, 2\n#endif\n#define F(x) G(x)\n#define G(x) x\nF(A);",
        "#if Q\n#define F(x) x\n#endif\n#define A 1, 2\nF(A);",
        "#if Q\n#define B 2 C\n#endif\n#define C x B\nC;",
        // Too many.
        "#define A B B B B B B B B\n#define B C C C C C C C C\n#define C D D D D D D D D\n#define D E E E E E E E E\n\
         #define E F F F F F F F F\n#define F G G G G G G G G\n#define G H H H H H H H H\n#define H 1\nA;",
    ] {
        assert_eq!(expanded(text, ""), None, "{text}");
    }
    let deep = format!("#define M(x) x\n{}1{};", "M(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(expanded(&deep, ""), None);
}

#[test]
fn conditions_are_decided_by_the_kernels_of_a_skeleton() {
    let source = "a\n#if A\nb\n#ifdef B\nc\n#endif\n#elif C\nd\n#else\ne\n#endif\nf";
    let skeleton = Skeleton::of(source, &Options::default()).unwrap();
    let names = |of: &[usize]| {
        let branch = |number: &usize| format!("clgraph_fuse_asked_branch_{number}");
        of.iter().map(branch).chain(["clgraph_fuse_asked".to_owned()]).collect::<Vec<_>>()
    };
    let decided = |of: &[usize]| skeleton.decided(&names(of)).map(|of| tokens(&of.text));
    // `#ifdef B` has no `#else`, and answers all the same.
    let neither = |of: &[usize]| {
        let kernels = [names(of), vec!["clgraph_fuse_asked_none_1".to_owned()]].concat();
        skeleton.decided(&kernels).map(|of| tokens(&of.text))
    };
    assert_eq!(decided(&[0, 1]).as_deref(), Some("a b c f"));
    assert_eq!(neither(&[0]).as_deref(), Some("a b f"));
    assert_eq!(decided(&[2]).as_deref(), Some("a d f"));
    assert_eq!(decided(&[3]).as_deref(), Some("a e f"));
    // One of these branches holds, and one alone; and what is in a branch does not hold without it.
    for wrong in [decided(&[]), decided(&[0]), decided(&[0, 3]), decided(&[1, 3]), neither(&[0, 1]), neither(&[3])] {
        assert_eq!(wrong, None);
    }
    assert!(skeleton.decided(&names(&[3])[..1]).is_none());
    for without in [
        "#if A\n",
        "#endif\n",
        "#if A\n#else\n#else\n#endif",
        "#if A\n#else\n#elif B\n#endif",
        "#if __LINE__ > 3\n#endif",
        "#if __has_include(<x>)\n#endif",
        "#include \"a\"\n#if A\n#endif",
        // The compiler could be asked something else.
        "#define kernel\n#if A\n#endif",
        "#undef void\n#if A\n#endif",
        "#define clgraph_fuse_asked_branch_0 x\n#if A\n#endif",
        "#define P(a, b) a##b\n#if P(__LI, NE__) > 3\n#endif",
    ] {
        assert!(Skeleton::of(without, &Options::default()).is_none(), "{without}");
    }
}

#[test]
fn a_source_is_read_plain_where_more_of_it_is_known_then() {
    const KERNEL: &str = "#define GLOBALS int w, int h,\n#define CHECK(i, n) if (i >= n) { return; }
        kernel void f(GLOBALS
        global float *a,
        #ifdef SCALES
        float by,
        #endif
        int n) { int i = get_global_id(0); CHECK(i, n) a[i] *= 2.0f; END }";
    let cc = |text: &str, options: &str| preprocessed(text, options).map(|text| names(&text));
    let item = |text: &str, options: &str| {
        let plain = Plain::read(text.to_owned(), options, cc).unwrap();
        let item = plain.source.item("f").map(|text| text.each().len());
        (plain.text, item)
    };
    assert_eq!(item(KERNEL, "-DEND=").1, Ok(3 + 1));
    assert_eq!(item(KERNEL, "-DEND= -DSCALES").1, Ok(3 + 2));
    // What is in macros is seen.
    assert_eq!(item(KERNEL, "-DEND=printf(1);").1, Err(NotItem::Order("printf".to_owned())));
    // The compiler does not answer, or nothing is to be asked.
    let plain = Plain::read(KERNEL.to_owned(), "-DEND=", |_, _| None);
    assert!(plain.is_err() || plain.is_ok_and(|plain| plain.text == KERNEL));
    let asks_nobody = |text: &str| Plain::read(text.to_owned(), "", |_, _| panic!("asked about {text}"));
    let text = "#if 1\nkernel void f(global int *a) { *a = 1; }\n#endif";
    assert_eq!(asks_nobody(text).unwrap().text, text);
    assert!(matches!(asks_nobody("#if 1\n#include <a>\n#endif"), Err(Unreadable::Include)));
}

/// What a compiler's preprocessor makes of these is not what clgraph once made of them.
#[test]
fn texts_that_were_once_read_wrongly_keep_their_tokens() {
    const OWN: &str = "#define __CHAR_BIT__ 8\n";
    let mut changed = 0;
    for (text, options) in [
        ("M(i)\n#define kernel\n#if 1\nx\n#endif", ""),
        ("M(i)\n#if 1\nx\n#endif", "-Dclgraph_fuse_asked_branch_0=y"),
        ("M(i)\n#if 0\n#if1\n#endif\nx\n#if 0\n#endif1\n#endif", ""),
        ("#define CAT(a, b) CAT_(a, b)\n#define CAT_(a, b) a##b\nM(i) CAT(x, __CHAR_BIT__)", ""),
        ("M(i) __CHAR_BIT__", "-D__CHAR_BIT__=3"),
        ("#define g(x) 8 + x\n#define I(x) x\nM(i) I(g)\n#if 1\n#endif\n(1)", ""),
        ("#define g(x) 8 + x\nM(i) g\n#if 0\nx\n#endif\n(1)", ""),
        ("#define A(x) [A x]\nM(i) A(3);", "-DA=1"),
        ("M(i)\n#if defined(A) || \\\n defined(B)\n#endif\nint line = __LINE__;", ""),
        ("M(i)\n#if L > 5\nx\n#else\ny\n#endif", "-DL=__LINE__"),
        ("#define P(a, b) a##b\nM(i) P(__LI, NE__)", ""),
        ("#define H(a) a##E+1\nM(i) H(0x);", ""),
        ("#define N(x) 1##x\nM(i) N(e-3);", ""),
        ("#define X 2\nM(i) 1e+.X L'a'", "-DL=5"),
        ("#define N 4\nM(i)\n#pragma unroll N\nfor (;;) N;", ""),
    ] {
        let text =
            format!("#define M(x) if (x > 50) {{ return; }}\nvoid f() {{ {text}\n}}\nkernel void g(void) {{ M(1) }}");
        // The compiler has a macro of its own, which comes behind those of the options.
        let compiled =
            |text: &str, options: &str| preprocessed(&format!("#undef __CHAR_BIT__\n{OWN}#line 1\n{text}"), options);
        let Ok(plain) =
            Plain::read(text.clone(), options, |text, options| compiled(text, options).map(|text| names(&text)))
        else {
            continue;
        };
        let all = |text: &str| tokens(&compiled(text, options).unwrap());
        changed += usize::from(plain.text != text);
        let (before, after) = (all(&text), all(&plain.text));
        assert_eq!(before, after, "{options}\n{text}\nbecame\n{}", plain.text);
    }
    assert!(changed > 1, "only {changed} were changed");
}

/// Time and memory are bounded, whatever a source has.
#[test]
fn hostile_macros_end_soon() {
    let uses = |text: &str, count: usize| text.repeat(count);
    for text in [
        format!("#if Q\n#define O(x) x\n#endif\n{}1{};", uses("O(", 60_000), uses(")", 60_000)),
        format!("{}{}", uses("A ", 60_000), uses("\n#undef A", 25_000)),
        format!("#define D(x) x##x\n#define D2(x) D(x)\n{}aa{};", uses("D2(", 40), uses(")", 40)),
        format!("#define A {}\n{}", uses("a", 32_000), uses("A ", 16_000)),
        format!(
            "#define A({}x) {}\nA(1)",
            (0..20_000).map(|at| format!("p{at}, ")).collect::<String>(),
            uses("p1 ", 20_000)
        ),
    ] {
        assert!(expanded(&text, "").is_none_or(|text| text.len() < 4 << 20), "{}", &text[..100]);
    }
}

/// Writes macros and their uses. All names end with `end`.
fn random(rng: &mut Rng, end: usize) -> String {
    const NAMES: [&str; 8] = ["A", "B", "C", "D", "f", "g", "h", "k"];
    fn words(rng: &mut Rng, end: usize, params: &[&str], joins: bool, depth: usize) -> String {
        let mut all = Vec::new();
        for _ in 0..rng.usize(..5) {
            let name = |rng: &mut Rng| match rng.u8(..if params.is_empty() { 6 } else { 10 }) {
                0..4 => format!("{}{end}", NAMES[rng.usize(..NAMES.len())]),
                4 => "x".to_owned(),
                5 => rng.u8(..20).to_string(),
                _ => params[rng.usize(..params.len())].to_owned(),
            };
            let word = name(rng);
            all.push(match rng.u8(..12) {
                0..3 if depth < 3 => {
                    let arguments: Vec<String> =
                        (0..rng.usize(..3)).map(|_| words(rng, end, params, joins, depth + 1)).collect();
                    format!("{word}({})", arguments.join(", "))
                }
                3 if depth < 3 => format!("({})", words(rng, end, params, joins, depth + 1)),
                4 => "-".to_owned(),
                5 => format!("{word}-{}", name(rng)),
                6 if joins => format!("{word} ## {}", name(rng)),
                7 => format!("{word},"),
                8 => format!("{word};"),
                _ => word,
            });
        }
        all.join(" ")
    }
    let mut all = String::new();
    let mut open = 0;
    for _ in 0..rng.usize(2..12) {
        match rng.u8(..12) {
            0 => {
                all += &format!("#if{} {}{end}\n", ["def", "ndef"][rng.usize(..2)], NAMES[rng.usize(..NAMES.len())]);
                open += 1;
            }
            1 if open > 0 => {
                all += "#endif\n";
                open -= 1;
            }
            2 => all += &format!("#undef {}{end}\n", NAMES[rng.usize(..NAMES.len())]),
            3..8 => {
                let name = NAMES[rng.usize(..NAMES.len())];
                let params = match name.chars().all(char::is_uppercase) {
                    true => None,
                    false => Some([&["p"][..], &["p", "q"], &[], &["p", "..."]][rng.usize(..4)]),
                };
                let joins = rng.u8(..4) == 0;
                let used: Vec<&str> = params.unwrap_or_default().iter().copied().filter(|of| *of != "...").collect();
                let list = params.map_or_else(String::new, |of| format!("({})", of.join(", ")));
                all += &format!("#define {name}{end}{list} {}\n", words(rng, end, &used, joins, 0));
            }
            _ => all += &format!("{}\n", words(rng, end, &[], false, 0)),
        }
    }
    all + &"#endif\n".repeat(open)
}

/// `CLGRAPH_TEST_RANDOM` is the number of texts, and `CLGRAPH_TEST_SEED` repeats a run.
#[test]
fn a_preprocessor_makes_the_same_of_random_macros_before_and_after() {
    let count = std::env::var("CLGRAPH_TEST_RANDOM").map_or(2_000, |count| count.parse().unwrap());
    let seed = std::env::var("CLGRAPH_TEST_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("CLGRAPH_TEST_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    // One process for all texts: what is between two of them is one line.
    let ends = |at: usize| format!("\n;END {at};\n");
    let all = |texts: &[String]| -> Vec<String> {
        let text: String = texts.iter().enumerate().map(|(at, text)| format!("{text}{}", ends(at))).collect();
        let whole = tokens(&preprocessed(&text, "").unwrap());
        let mut rest = whole.as_str();
        let part = |at| {
            let (part, after) = rest.split_once(&format!("; END {at} ;")).unwrap();
            rest = after;
            part.trim().to_owned()
        };
        (0..texts.len()).map(part).collect()
    };
    let texts: Vec<String> = (0..count).map(|at| random(&mut rng, at)).collect();
    let skeletons: Vec<String> = texts
        .iter()
        .map(|text| Skeleton::of(text, &Options::default()).map_or_else(String::new, |of| of.text))
        .collect();
    let branches = all(&skeletons);
    let written = texts.iter().zip(&branches).map(|(text, branches)| {
        let decided = Skeleton::of(text, &Options::default()).and_then(|of| of.decided(&names(branches)));
        let decided = decided.map_or_else(|| text.clone(), |of| of.text);
        [expanded(text, ""), expanded(&decided, "").or(Some(decided))]
    });
    let written: Vec<[Option<String>; 2]> = written.collect();
    let right = all(&texts);
    for way in 0..2 {
        let now: Vec<String> = written.iter().map(|of| of[way].clone().unwrap_or_default()).collect();
        let all = all(&now);
        let mut compared = 0;
        for (at, now) in all.iter().enumerate().filter(|(at, _)| written[*at][way].is_some()) {
            assert_eq!(*now, right[at], "text {at} of\n{}\nbecame\n{}", texts[at], written[at][way].as_ref().unwrap());
            compared += 1;
        }
        assert!(compared * 3 > count, "only {compared} of {count} were written out");
    }
}
