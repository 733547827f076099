//! Promises of the architecture that the compiler does not check: which module may name which, and where unsafe code
//! is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder or file below `src`, and the modules of the crate that it may name (see docs/ARCHITECTURE.md).
const MAY_NAME: &[(&str, &[&str])] = &[
    ("ffi", &["ffi", "caps", "error"]),
    // Plain data, as `caps.rs`.
    ("images.rs", &["images"]),
    ("command.rs", &["command", "images"]),
    ("device_global", &["device_global"]),
    ("quirks.rs", &["caps"]),
    ("opencl_c", &["opencl_c"]),
    ("files.rs", &["files"]),
    ("cl", &["cl", "command", "ffi", "caps", "device_global", "env", "error", "files", "images", "opencl_c", "quirks"]),
    ("drawing", &["drawing"]),
    ("ir", &["ir", "command"]),
    ("lower", &["lower", "command", "ir"]),
    ("plan", &["plan", "command", "ir", "caps", "error", "quirks"]),
    (
        "graph",
        &[
            "graph",
            "command",
            "handles",
            "ir",
            "lower",
            "cl",
            "caps",
            "device_global",
            "drawing",
            "error",
            "images",
            "quirks",
        ],
    ),
    ("record", &["record", "command", "graph", "handles", "ir", "cl", "caps", "device_global", "error", "images"]),
    ("report", &["report", "command", "graph", "handles", "plan", "ir", "lower", "cl", "caps", "error", "quirks"]),
    (
        "exec",
        &[
            "exec", "command", "record", "report", "graph", "handles", "plan", "ir", "lower", "cl", "caps", "drawing",
            "env", "error", "files", "opencl_c", "quirks",
        ],
    ),
    ("error", &["error", "handles", "caps", "images"]),
    ("handles.rs", &["handles", "ir"]),
    ("caps.rs", &["caps"]),
    ("env.rs", &["env", "error"]),
];

/// Folders with unsafe code. Outside of them only declarations of the caller's promise are allowed.
const UNSAFE_FOLDERS: [&str; 2] = ["ffi", "cl"];
const PROMISES: [(&str, &str); 22] = [
    ("graph/nodes/command_group.rs", "pub unsafe fn command_group"),
    ("graph/nodes/kernel.rs", "pub unsafe fn add(mut self)"),
    ("graph/nodes/kernel.rs", "pub unsafe fn replace(mut self"),
    ("graph/nodes/kernel.rs", "pub unsafe fn replace_arg(mut self"),
    ("graph/nodes/native_command.rs", "pub unsafe fn add(self)"),
    ("graph/nodes/native_command.rs", "pub unsafe fn replace(self"),
    ("exec/submit/queue_native_command.rs", "pub unsafe fn enqueue_native_command("),
    ("graph/nodes/map.rs", "pub unsafe fn map<T: Element, M: MapMode, R: TaskOutcome>("),
    ("graph/nodes/map.rs", "pub unsafe fn map_image<T: Element, M: MapMode, R: TaskOutcome>("),
    ("graph/nodes/map.rs", "pub unsafe fn map<T: Element, M: MapMode>("),
    ("graph/nodes/map.rs", "pub unsafe fn map_image<T: Element, M: MapMode>("),
    ("exec/submit/queue_host_task.rs", "pub unsafe fn enqueue_map<T: Element, M: MapMode, R: TaskOutcome>("),
    ("exec/submit/queue_host_task.rs", "pub unsafe fn enqueue_map_image<T: Element, M: MapMode, R: TaskOutcome>("),
    ("graph/parameters/mod.rs", "pub unsafe fn set_unchecked(&self"),
    ("record/capture.rs", "pub unsafe fn capture<T>("),
    ("record/capture.rs", "pub unsafe fn capture_with<T>("),
    ("record/capture.rs", "pub unsafe fn end_capture("),
    ("record/set_arg.rs", "pub unsafe fn set_arg<A: KernelArg + ?Sized>("),
    ("record/enqueue.rs", "pub unsafe fn map<T: Element, M: MapMode>("),
    ("record/image.rs", "pub unsafe fn map_image<T: Element, M: MapMode>("),
    ("record/execute_kernel.rs", "pub unsafe fn enqueue_nd_range(&mut self"),
    ("record/execute_kernel.rs", "pub unsafe fn enqueue_nd_range_detached(&mut self"),
];

fn sources() -> Vec<(PathBuf, String)> {
    fn visit(folder: &Path, root: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, root, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root).unwrap().to_path_buf(), text));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    visit(&root, &root, &mut found);
    assert!(found.len() > 30, "the sources were not found");
    found
}

/// Returns the part of a line that is code.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// The table of layers in docs/ARCHITECTURE.md says what [`MAY_NAME`] says.
#[test]
fn the_document_has_the_same_layers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ARCHITECTURE.md");
    let Ok(document) = fs::read_to_string(&path) else { panic!("{} is not there", path.display()) };
    let names = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(|name| name.trim_end_matches('/').to_owned()).collect()
    };
    let (_, layers) = document.split_once("\n## Layers\n").unwrap();
    let rows: BTreeMap<String, Vec<String>> = layers
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" |").collect();
            (names(cells[0]).remove(0), names(cells.last().unwrap()))
        })
        .collect();
    for (layer, allowed) in MAY_NAME {
        let mut expected = allowed.iter().filter(|name| layer.trim_end_matches(".rs") != **name).collect::<Vec<_>>();
        let mut listed = rows.get(*layer).unwrap_or_else(|| panic!("the table has no row for `{layer}`")).clone();
        expected.sort();
        listed.sort();
        assert_eq!(listed.iter().collect::<Vec<_>>(), expected, "`{layer}`");
    }
}

/// Files of `exec` that name each other, directly or through others, are few: a reader has to know them together.
#[test]
fn circles_of_files_are_small() {
    let files: BTreeMap<String, String> = sources()
        .into_iter()
        .filter(|(path, _)| path.starts_with("exec") && !path.ends_with("mod.rs") && !path.ends_with("tests.rs"))
        .map(|(path, text)| (path.with_extension("").to_str().unwrap().replace('/', "::"), text))
        .collect();
    let mut graph = petgraph::graphmap::DiGraphMap::<&str, ()>::new();
    for (file, text) in &files {
        let tests = text.find("#[cfg(test)]\nmod ").or(text.find("#[cfg(all(test")).unwrap_or(text.len());
        for rest in text[..tests].lines().flat_map(|line| code(line).split("crate::").skip(1)) {
            let names = |other: &&String| rest.starts_with(&format!("{other}::")) && *other != file;
            if let Some(other) = files.keys().find(names) {
                graph.add_edge(file, other, ());
            }
        }
    }
    assert!(graph.edge_count() > 100, "what files import was not found");
    let largest = petgraph::algo::tarjan_scc(&graph).into_iter().max_by_key(Vec::len).unwrap();
    assert!(largest.len() <= 4, "{largest:?}");
}

#[test]
fn arrows_between_layers_point_one_way() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let first = path.components().next().unwrap().as_os_str().to_str().unwrap().to_owned();
        // The public face of the crate, and a program that uses the crate.
        if first == "lib.rs" || first == "bin" {
            continue;
        }
        let (_, allowed) = MAY_NAME
            .iter()
            .find(|(folder, _)| *folder == first)
            .unwrap_or_else(|| panic!("{first} is a new folder: say in this test whom it may name"));
        for (number, line) in text.lines().enumerate() {
            // Names in macros that other crates expand are public.
            for rest in code(line).replace("$crate::", "").split("crate::").skip(1) {
                let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                // Names that begin with a capital are public items of the crate, such as `crate::Error`.
                let public = name.chars().next().is_none_or(char::is_uppercase);
                if !public && !allowed.contains(&name.as_str()) {
                    wrong.push(format!("{}:{}: names {name}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_vocabulary_and_the_planner_do_not_know_opencl() {
    for (path, text) in sources() {
        if path.starts_with("ir") || path.starts_with("plan") {
            for (number, line) in text.lines().enumerate() {
                for word in ["opencl3", "opencl_sys", "cl_mem", "cl_kernel", "cl_event"] {
                    assert!(!code(line).contains(word), "{}:{}: {word}", path.display(), number + 1);
                }
            }
        }
    }
}

#[test]
fn unsafe_code_is_in_two_folders_and_each_block_argues() {
    for (path, text) in sources() {
        let fenced = UNSAFE_FOLDERS.iter().any(|folder| path.starts_with(folder));
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let line = code(line);
            let at = format!("{}:{}", path.display(), number + 1);
            let says = |what: &&str| line.contains(&format!("unsafe {what}"));
            if !fenced && ["{", "fn", "impl", "extern", "trait"].iter().any(says) {
                let promise = PROMISES.iter().any(|(of, says)| path == Path::new(of) && line.trim().starts_with(says));
                assert!(promise, "{at}: unsafe code outside of {UNSAFE_FOLDERS:?}");
            }
            if fenced && (line.contains("unsafe {") || line.contains("unsafe impl")) {
                let argued = lines[number.saturating_sub(9)..=number].iter().any(|line| line.contains("SAFETY:"));
                assert!(argued, "{at}: no SAFETY argument near");
            }
        }
    }
}

/// A logger is code of the program. Only functions that the program calls, and that hold no lock, call it directly.
const LOGS: [&str; 6] = [
    "bin",
    "cl/completion/user_code.rs",
    "drawing/layout.rs",
    "exec/build/finalize.rs",
    "exec/build/options.rs",
    "report",
];

#[test]
fn what_may_hold_locks_logs_later() {
    for (path, text) in sources() {
        if LOGS.iter().any(|direct| path.starts_with(direct)) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let logs = ["error!", "warn!", "info!", "debug!", "trace!", "log!", "log_enabled!", "logger("];
            let logs = logs.iter().any(|name| code(line).contains(&format!("log::{name}")));
            assert!(!logs, "{}:{}: use `log_later!`", path.display(), number + 1);
        }
    }
}

#[test]
fn a_file_is_one_room() {
    for (path, text) in sources() {
        let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).count();
        assert!(lines <= 600, "{} has {lines} lines: it is perhaps two rooms in one", path.display());
    }
}
