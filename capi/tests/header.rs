//! The header is what the crate says. `CLGRAPH_BLESS=1` writes it anew.

use std::path::Path;

/// In the order in which the header has them.
const FILES: [&str; 21] = [
    "version",
    "status",
    "pointers",
    "opencl",
    "objects",
    "image",
    "parameter",
    "number",
    "event",
    "program",
    "graph",
    "transfer",
    "launch",
    "task",
    "map",
    "native",
    "record",
    "enqueue",
    "execute",
    "submission",
    "query",
];

#[test]
fn the_header_is_current() {
    let at = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(at.join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new().with_config(config);
    let bindings =
        FILES.iter().fold(bindings, |bindings, file| bindings.with_src(at.join("src").join(file).with_extension("rs")));
    let mut text = Vec::new();
    bindings.generate().unwrap().write(&mut text);
    // The heading is one of Rust's documentation.
    let text = String::from_utf8(text).unwrap().replace("// # Safety\n", "// The caller's promise:\n");
    let header = at.join("include/clgraph.h");
    let mut functions: Vec<&str> = text.lines().filter(|line| line.starts_with("enum clg_status clg_")).collect();
    functions.sort_unstable();
    let twice = functions.windows(2).find(|pair| pair[0].split('(').next() == pair[1].split('(').next());
    assert!(functions.len() > 100 && twice.is_none(), "{} functions, {twice:?}", functions.len());
    if std::env::var_os("CLGRAPH_BLESS").is_some() {
        std::fs::write(&header, &text).unwrap();
    }
    let current = std::fs::read_to_string(&header).unwrap_or_default();
    assert!(current == text, "include/clgraph.h is not what the crate says: run this test with CLGRAPH_BLESS=1");
}
