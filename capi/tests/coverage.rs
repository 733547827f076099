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

/// What there is in a language: each name with what it is made of. A structure has fields, a function has parameters, a class
/// has members, and a member is named `Class.member`.
#[derive(Default)]
struct Names {
    functions: BTreeMap<String, BTreeSet<String>>,
    /// Structures and classes: they are too much to be the counterpart of a method.
    wholes: BTreeMap<String, BTreeSet<String>>,
    /// Whatever stands alone: enumerations and their values.
    others: BTreeSet<String>,
}

/// The first name in a text.
fn word(of: &str) -> &str {
    of.split(|c: char| !c.is_alphanumeric() && c != '_').find(|word| !word.is_empty()).unwrap_or_default()
}

/// The last name in a text.
fn last_word(of: &str) -> &str {
    of.split(|c: char| !c.is_alphanumeric() && c != '_').rfind(|word| !word.is_empty()).unwrap_or_default()
}

fn names_of_c(header: &str) -> Names {
    let mut names = Names::default();
    let code: Vec<&str> = header.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    for part in code.split("typedef struct ").skip(1).filter(|part| part.contains('{')) {
        let Some((name, body)) = part.split_once(" {") else { continue };
        let (body, _) = body.split_once("\n}").unwrap();
        // A field that is a function is named in front of its parameters, and an array in front of its size.
        let field = |line: &str| match line.split_once("(*") {
            Some((_, rest)) => word(rest).to_owned(),
            None => last_word(line.split('[').next().unwrap()).to_owned(),
        };
        let fields = body.split(';').map(str::trim).filter(|line| !line.is_empty()).map(field).collect();
        names.wholes.insert(name.to_owned(), fields);
    }
    for statement in code.split([';', '}']) {
        let Some((head, parameters)) = statement.split_once('(') else { continue };
        let name = last_word(head);
        if name.starts_with("clg_") && !statement.contains("typedef") {
            let parameter = |one: &str| match one.split_once("(*") {
                Some((_, rest)) => word(rest).to_owned(),
                None => last_word(one).to_owned(),
            };
            names.functions.insert(name.to_owned(), parameters.split(',').map(parameter).collect());
        }
    }
    let enumerations = code.split("enum ").map(word).filter(|name| name.starts_with("clg_"));
    let values = code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| name.starts_with("CLG_"));
    names.others = enumerations.chain(values).map(str::to_owned).collect();
    names
}

fn names_of_python(stubs: &str) -> Names {
    let (mut names, mut class) = (Names::default(), String::new());
    let mut rest = stubs;
    while let Some((line, after)) = rest.split_once('\n') {
        let text = line.trim_start().trim_start_matches("async ");
        let is_member = line.starts_with(' ');
        if let Some(head) = line.strip_prefix("class ") {
            class = word(head).to_owned();
            names.wholes.entry(class.clone()).or_default();
        } else if let Some(head) = text.strip_prefix("def ") {
            let (_, parameters) = rest.split_once('(').unwrap();
            let (parameters, _) = parameters.split_once(") ->").unwrap();
            // Names stand in front of the colons outside of brackets.
            let mut depth = 0;
            let outside: String = parameters
                .chars()
                .filter(|c| {
                    depth += i32::from(*c == '[') - i32::from(*c == ']');
                    depth == 0 && *c != ']'
                })
                .collect();
            let own = ["self", "cls", ""];
            let given = outside.split(',').map(|one| word(one.split(':').next().unwrap()));
            let given: BTreeSet<String> = given.filter(|name| !own.contains(name)).map(str::to_owned).collect();
            let name = word(head);
            if is_member && name == "__new__" {
                names.functions.insert(class.clone(), given);
            } else if is_member {
                names.wholes.entry(class.clone()).or_default().insert(name.to_owned());
                // A property that can be set is there twice.
                names.functions.entry(format!("{class}.{name}")).or_default().extend(given);
            } else {
                names.functions.insert(name.to_owned(), given);
            }
        } else if is_member && text.contains(':') && !text.starts_with(')') && !class.is_empty() {
            names.wholes.entry(class.clone()).or_default().insert(word(text).to_owned());
            names.others.insert(format!("{class}.{}", word(text)));
        }
        rest = after;
    }
    names
}

impl Names {
    /// What is wrong with a counterpart: `function`, `structure.field`, `function.parameter`, and so on.
    fn mistake(&self, counterpart: &str, part: Option<&str>, is_alone: bool) -> Option<String> {
        let (function, whole) = (self.functions.get(counterpart), self.wholes.get(counterpart));
        match part {
            Some(part) if [function, whole].into_iter().flatten().any(|parts| parts.contains(part)) => None,
            Some(part) => Some(format!("{counterpart} has no {part}")),
            None if whole.is_some_and(|parts| !parts.is_empty()) => {
                Some(format!("{counterpart} is all of a type: name a field or a parameter"))
            }
            None if function.is_some_and(|parts| !parts.is_empty()) && !is_alone => {
                Some(format!("{counterpart} stands for several methods: name the parameter of each"))
            }
            None if function.or(whole).is_some() || self.others.contains(counterpart) => None,
            None => Some(format!("{counterpart} does not exist")),
        }
    }
}

#[test]
fn counterparts_exist() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap();
    let (text, c) = (read("capi/coverage.txt"), names_of_c(&read("capi/include/clgraph.h")));
    let python = names_of_python(&read("python/clgraph/__init__.pyi"));
    assert!(
        c.functions.len() > 150 && c.wholes.len() > 20 && python.functions.len() > 100,
        "they are written otherwise now"
    );
    let (mut wrong, lines) = (Vec::new(), lines(&text));
    for line in &lines {
        let of_type = || lines.iter().filter(|other| other.r#type == line.r#type);
        let mut look = |side: &str, names: &Names, others: usize| {
            if side.len() < 3 {
                wrong.push(format!("{}::{} has neither counterpart nor reason", line.r#type, line.method));
            }
            for name in side.split_whitespace().filter(|_| !side.starts_with('-')) {
                let (counterpart, part) = match (name.split_once('('), name.split_once('.')) {
                    (Some((function, parameter)), _) => (function, Some(parameter.trim_end_matches(')'))),
                    // A member of a class.
                    (None, Some(_)) if names.functions.contains_key(name) => (name, None),
                    (None, Some((of, part))) => (of, Some(part)),
                    (None, None) => (name, None),
                };
                if let Some(mistake) = names.mistake(counterpart, part, others < 2) {
                    wrong.push(format!("{}::{}: {mistake}", line.r#type, line.method));
                }
            }
        };
        look(line.c, &c, of_type().filter(|other| other.c == line.c).count());
        look(line.python, &python, of_type().filter(|other| other.python == line.python).count());
    }
    assert!(wrong.is_empty(), "capi/coverage.txt: {wrong:#?}");
}
