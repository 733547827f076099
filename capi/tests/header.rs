//! The header is what the crate says (`CLGRAPH_BLESS=1` writes it anew), and the header for C++ has all of it, or
//! `coverage_cpp.txt` says why not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// In the order in which the header has them.
const FILES: [&str; 23] = [
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
    "group",
    "task",
    "map",
    "native",
    "record",
    "enqueue",
    "execute",
    "control",
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

/// The names in code, without comments.
fn names(text: &str) -> BTreeSet<&str> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')).collect()
}

#[test]
fn cpp_has_every_function_and_every_field_of_c() {
    let at = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| std::fs::read_to_string(at.join(name)).unwrap();
    let (c, cpp, reasons) = (read("include/clgraph.h"), read("include/clgraph.hpp"), read("coverage_cpp.txt"));
    let reasons: BTreeMap<&str, &str> = reasons
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(" | ").unwrap_or_else(|| panic!("not `function | reason`: {line}")))
        .collect();
    let (c_names, cpp_names) = (names(&c), names(&cpp));
    // A function is followed by its parameters, and a type is not.
    let functions = || c_names.iter().filter(|name| name.starts_with("clg_") && c.contains(&format!(" {name}(")));
    let functions = functions().chain(c_names.iter().filter(|name| c.contains(&format!("*{name}(void)"))));
    let functions: BTreeSet<&str> = functions.copied().collect();
    assert!(functions.len() > 150, "{} functions: the header is written in another way now", functions.len());
    let mut wrong = Vec::new();
    for name in &functions {
        match (cpp_names.contains(name), reasons.get(name)) {
            (false, None) => wrong.push(format!("{name} is not used by clgraph.hpp")),
            (true, Some(_)) => wrong.push(format!("{name} is used by clgraph.hpp, and has a reason why not")),
            _ => {}
        }
    }
    wrong.extend(reasons.keys().filter(|name| !functions.contains(*name)).map(|name| format!("{name} is not in C")));
    // Fields of structures that the program fills in: the others it reads from the structures of C.
    let filled = ["clg_node_options", "clg_arg", "clg_use", "clg_global_use", "clg_launch", "clg_host_task"];
    let filled = filled.into_iter().chain(["clg_map_task", "clg_native_command", "clg_submit_options", "clg_input"]);
    for name in filled.chain(["clg_event_input", "clg_program_global", "clg_area", "clg_range"]) {
        let (_, body) = c.split_once(&format!("typedef struct {name} {{")).unwrap();
        let (body, _) = body.split_once("} clg_").unwrap();
        for line in body.lines().map(str::trim).filter(|line| line.ends_with(';')) {
            let function = line.split_once("(*").map(|(_, rest)| rest.split(')').next().unwrap());
            let field = function.or_else(|| line.trim_end_matches(';').split([' ', '*']).next_back()).unwrap();
            let field = field.split('[').next().unwrap();
            if !cpp_names.contains(field) {
                wrong.push(format!("{name}.{field} is not named by clgraph.hpp"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
