//! The sources in `kernels-cl`, or in the folder that `CLGRAPH_TEST_KERNELS` names: what each kernel is, one a line. `docs/testing.md` has what was
//! found in those of other projects.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use expect_test::expect_file;

use super::plain::Plain;
use super::source::{Effects, Source};
use super::tokens::{TokenKind, split};
use super::unreadable::Unreadable;

/// Returns the sources in a folder and those below it.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_source =
                path.extension().is_some_and(|extension| ["cl", "opencl"].iter().any(|of| extension == *of));
            match path.is_dir() {
                true => open.push(path),
                false => found.extend(is_source.then_some(path)),
            }
        }
    }
    found.sort();
    found
}

/// Returns the names of the kernels: a `void` comes before them, and a parenthesis behind.
pub(super) fn names(text: &str) -> Vec<String> {
    let Ok(tokens) = split(text) else { return Vec::new() };
    let word =
        |at: usize| tokens.get(at).filter(|token| token.kind == TokenKind::Word).map(|token| &text[token.at.clone()]);
    let mut names = Vec::new();
    let mut is_kernel = false;
    for at in 0..tokens.len() {
        is_kernel |= matches!(word(at), Some("kernel" | "__kernel"));
        let ends = tokens.get(at + 2).is_some_and(|next| next.kind == TokenKind::Mark(b'('));
        if let (true, Some("void"), Some(name), true) = (is_kernel, word(at), word(at + 1), ends) {
            names.push(name.to_owned());
            is_kernel = false;
        }
    }
    names
}

/// The tokens of a text, with one space between them.
pub(super) fn tokens(text: &str) -> String {
    let tokens = split(text).unwrap_or_else(|why| panic!("{why:?}: {text}"));
    tokens.iter().map(|token| &text[token.at.clone()]).collect::<Vec<_>>().join(" ")
}

/// Returns what the preprocessor of the machine's compiler leaves of a text. None if there is no such compiler.
pub(super) fn preprocessed(text: &str, options: &str) -> Option<String> {
    let mut cc = Command::new("cc");
    cc.args("-E -P -undef -x c".split(' ')).args(options.split_whitespace()).arg("-");
    let mut child = cc.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let mut input = child.stdin.take()?;
    let output = std::thread::scope(|scope| {
        scope.spawn(move || _ = input.write_all(text.as_bytes()));
        child.wait_with_output()
    });
    String::from_utf8(output.ok()?.stdout).ok()
}

/// Returns what a kernel is for fusing.
fn what(source: &Source, kernel: &str) -> String {
    match source.item_with_helpers(kernel) {
        Err(why) => format!("no: {why}"),
        Ok(_) => match source.effects(kernel) {
            Effects { may_wait: true, .. } => "by work-groups".to_owned(),
            Effects { may_see_groups: true, .. } => "if the work-group is given".to_owned(),
            _ => "yes".to_owned(),
        },
    }
}

#[test]
fn the_kernels_of_a_folder_are_read() {
    let given = std::env::var_os("CLGRAPH_TEST_KERNELS");
    let options = std::env::var("CLGRAPH_TEST_OPTIONS").unwrap_or_default();
    let folder = given.clone().map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels-cl"), PathBuf::from);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut lines = String::new();
    for path in sources(&folder) {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let compiled = |text: &str| preprocessed(text, &options);
        let read =
            Plain::read(text.clone(), &options, |text, options| preprocessed(text, options).map(|text| names(&text)));
        if let Ok(plain) = read.as_ref().map(|plain| &plain.text)
            && *plain != text
            && let (Some(before), Some(after)) = (compiled(&text), compiled(plain))
        {
            assert_eq!(tokens(&before), tokens(&after), "{}", path.display());
        }
        let read = read.map(|plain| plain.source);
        // Device globals are macros of clgraph's.
        let is_expected = given.is_some() || matches!(read, Ok(_) | Err(Unreadable::Macro(_) | Unreadable::Joins(_)));
        assert!(is_expected, "{}: {read:?}", path.display());
        for kernel in names(&text) {
            let what = match &read {
                Ok(source) => what(source, &kernel),
                Err(why) => format!("no source: {why}"),
            };
            let product = read.as_ref().ok().and_then(|source| source.open_product(&kernel));
            let product = product.map_or_else(String::new, |product| format!(", but for `{product}`"));
            let _ = writeln!(lines, "{}: {kernel}: {what}{product}", path.strip_prefix(&folder).unwrap().display());
            *counts.entry(what.split(':').next().unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    println!("{lines}{counts:?}");
    if given.is_none() {
        // The machine's preprocessor, which has no macros of OpenCL's, decides conditions.
        expect_file![format!("{}/tests/kernels.txt", env!("CARGO_MANIFEST_DIR"))].assert_eq(&lines);
    }
}

/// What a source has and does not use is in nobody's way.
#[test]
fn macros_and_names_that_a_kernel_does_not_use_are_free() {
    let body = "kernel void f(global float *a, int n) { int i = get_global_id(0); if (i < n) a[i] *= 2.0f; }\n";
    let what = |before: &str, body: &str| {
        Source::read(&format!("{before}\n{body}"), "").map(|source| what(&source, "f")).map_err(|why| why.to_string())
    };
    let macros = [
        ("#define M __attribute__((reqd_work_group_size(8, 1, 1)))", body.replace("kernel", "kernel M")),
        ("#define M(i) if (i > 4) { return; }", body.replace("if", "M(i) if")),
        ("#define M(a) a ## f", body.replace("2.0f", "M(2.0)")),
        ("#define M local float *", body.replace("int i", "M m; int i")),
        ("#define R(a) a ## f\n#define M R(2.0)", body.replace("2.0f", "M")),
        // It may drop the braces that it is given.
        ("#define M(a) a\nfloat g(float4 v) { return v.x; }", body.replace("2.0f", "M(g((float4){1, 2, 3, 4}))")),
    ];
    for (before, used) in macros {
        assert_eq!(what(before, body).as_deref(), Ok("yes"), "{before}");
        assert!(what(before, &used).is_err(), "{before}\n{used}");
    }
    assert_eq!(
        what("float g(float4 v) { return v.x; }\n#define M(a) a", &body.replace("2.0f", "g((float4){1, 2, 3, 4})"))
            .as_deref(),
        Ok("yes")
    );
    for free in [
        "void g(local float *a, int i);",
        "void g(local float *a, int i);\nvoid g(local float *b, int n) { b[n] = 1; }",
    ] {
        assert_eq!(what(free, body).as_deref(), Ok("yes"), "{free}");
    }
    let calls = body.replace("a[i] *= 2.0f;", "{ local float b[4]; g(b, i); a[i] = b[0]; }");
    let group = what("void g(local float *a, int i);\nvoid g(local float *b, int n) { b[n] = 1; }", &calls);
    assert_ne!(group.as_deref(), Ok("yes"));
    // Types and variables hide memory, too.
    assert_ne!(what("typedef local float *m;", &body.replace("int i", "m p; int i")).as_deref(), Ok("yes"));
}
