//! `coverage.txt` names a counterpart in C and in Python, or a reason, for each public method of the Rust crate; and what it names
//! exists. Run by ./ci/c: it needs `cargo`, which makes a description of the crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Calls a function with each public type or trait of a module, and the name by which it is known there.
fn visit<'a>(index: &'a Value, module: &'a Value, found: &mut impl FnMut(&'a str, &'a Value)) {
    for id in module["inner"]["module"]["items"].as_array().into_iter().flatten() {
        let item = &index[id.to_string()];
        let used = &item["inner"]["use"];
        if used.is_object() {
            found(used["name"].as_str().unwrap(), &index[used["id"].to_string()]);
        } else if item["inner"]["module"].is_object() {
            visit(index, item, found);
        } else if let Some(name) = item["name"].as_str() {
            found(name, item);
        }
    }
}

/// The public methods of the crate: by type, the names.
fn methods() -> BTreeMap<String, BTreeSet<String>> {
    let target = root().join("target/coverage");
    // The description has no stable format: only a compiler that allows unstable options makes it.
    let status = Command::new("cargo")
        .args(["rustdoc", "--locked", "--quiet", "--lib", "--package", "clgraph", "--target-dir"])
        .arg(&target)
        .args(["--", "-Z", "unstable-options", "--output-format", "json", "--cap-lints", "allow"])
        .env("RUSTC_BOOTSTRAP", "1")
        .current_dir(root())
        .status();
    assert!(status.unwrap().success());
    let text = std::fs::read_to_string(target.join("doc/clgraph.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let index = &all["index"];
    let mut methods: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    visit(index, &index[all["root"].to_string()], &mut |name, item| {
        let mut add = |items: &Value, public: bool| {
            for id in items.as_array().into_iter().flatten() {
                let method = &index[id.to_string()];
                let is_hidden = method["attrs"].to_string().contains("hidden");
                if method["inner"]["function"].is_object()
                    && !is_hidden
                    && (!public || method["visibility"] == "public")
                {
                    methods.entry(name.to_owned()).or_default().insert(method["name"].as_str().unwrap().to_owned());
                }
            }
        };
        for kind in ["struct", "enum"] {
            for id in item["inner"][kind]["impls"].as_array().into_iter().flatten() {
                let of = &index[id.to_string()]["inner"]["impl"];
                if of["trait"].is_null() {
                    add(&of["items"], true);
                }
            }
        }
        add(&item["inner"]["trait"]["items"], false);
    });
    methods
}

struct Line<'a> {
    r#type: &'a str,
    method: &'a str,
    c: &'a str,
    python: &'a str,
}

fn lines(text: &str) -> Vec<Line<'_>> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let parts: Vec<&str> = line.split('|').map(str::trim).collect();
            let [name, c, python] = parts[..] else { panic!("not `Type::method | C | Python`: {line}") };
            let (r#type, method) = name.split_once("::").unwrap_or_else(|| panic!("no `::`: {line}"));
            Line { r#type, method, c, python }
        })
        .collect()
}

#[test]
fn every_method_has_a_counterpart_or_a_reason() {
    let (methods, text) = (methods(), std::fs::read_to_string(root().join("capi/coverage.txt")).unwrap());
    assert!(methods.values().map(BTreeSet::len).sum::<usize>() > 400, "rustdoc describes the crate in another way now");
    let lines = lines(&text);
    let mut wrong = Vec::new();
    for (name, methods) in &methods {
        for method in methods {
            if !lines.iter().any(|line| line.r#type == name && (line.method == method || line.method == "*")) {
                wrong.push(format!("{name}::{method} has no line"));
            }
        }
    }
    for line in &lines {
        if line.method == "*" && !(line.c.starts_with('-') && line.python.starts_with('-')) {
            wrong.push(format!("{}::* has a counterpart: name its methods", line.r#type));
        }
        let there = methods.get(line.r#type).is_some_and(|all| line.method == "*" || all.contains(line.method));
        if !there {
            wrong.push(format!("{}::{} is not in the crate", line.r#type, line.method));
        }
    }
    assert!(wrong.is_empty(), "capi/coverage.txt: {wrong:#?}");
}

#[test]
fn counterparts_exist() {
    let text = std::fs::read_to_string(root().join("capi/coverage.txt")).unwrap();
    let header = std::fs::read_to_string(root().join("capi/include/clgraph.h")).unwrap();
    let stubs = std::fs::read_to_string(root().join("python/clgraph/__init__.pyi")).unwrap();
    // The members of each class of the Python package, and its functions.
    let (mut python, mut class) = (BTreeSet::new(), String::new());
    for line in stubs.lines() {
        let word =
            |of: &str| of.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned();
        if let Some(rest) = line.strip_prefix("class ") {
            class = word(rest);
            python.insert(class.clone());
        } else if let Some(rest) = line.strip_prefix("def ") {
            python.insert(word(rest));
        } else if let Some(rest) = line.strip_prefix("    ") {
            let rest = rest.strip_prefix("async ").unwrap_or(rest);
            python.insert(format!("{class}.{}", word(rest.strip_prefix("def ").unwrap_or(rest))));
        }
    }
    let c: BTreeSet<&str> = header.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let mut wrong = Vec::new();
    for line in lines(&text) {
        if !line.c.starts_with('-') {
            for name in line.c.split_whitespace() {
                let is_there = c.contains(name) || (name.ends_with('_') && c.iter().any(|one| one.starts_with(name)));
                if !is_there {
                    wrong.push(format!("{}::{}: {name} is not in clgraph.h", line.r#type, line.method));
                }
            }
        }
        if !line.python.starts_with('-') {
            for name in line.python.split_whitespace().filter(|name| !python.contains(*name)) {
                wrong.push(format!("{}::{}: {name} is not in the Python package", line.r#type, line.method));
            }
        }
        let given = |side: &str| side.len() > 2;
        if !given(line.c) || !given(line.python) {
            wrong.push(format!("{}::{} has neither counterpart nor reason", line.r#type, line.method));
        }
    }
    assert!(wrong.is_empty(), "capi/coverage.txt: {wrong:#?}");
}
