//! Everything that documents name exists: links and headings, paths, scripts and their options, examples, tests,
//! benches, scenarios, features, variables of the environment, and items of the crate.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns all files below a folder whose names end in a certain way.
fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    fn visit(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, end, found);
            } else if path.to_str().unwrap().ends_with(end) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    visit(&root().join(folder), end, &mut found);
    found
}

struct Document {
    path: PathBuf,
    text: String,
}

fn documents() -> Vec<Document> {
    let mut paths: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name)).into();
    for folder in ["docs", "examples"] {
        paths.extend(files(folder, ".md"));
    }
    // The first comment of an example says how to run it.
    paths.extend(files("examples", "main.rs"));
    paths.push(root().join("src/lib.rs"));
    assert!(paths.len() > 15, "{paths:?}");
    paths.into_iter().map(|path| Document { text: read(&path), path }).collect()
}

impl Document {
    fn is_markdown(&self) -> bool {
        self.path.extension().is_some_and(|end| end == "md")
    }

    /// Returns the text between backquotes, and each line of a block that is no program, with the number of its line.
    fn code(&self) -> Vec<(usize, String)> {
        let (mut found, mut block) = (Vec::new(), None);
        for (at, line) in self.text.lines().enumerate() {
            let line = if self.is_markdown() { Some(line) } else { line.strip_prefix("//!") };
            let Some(line) = line.map(str::trim) else { continue };
            if let Some(language) = line.strip_prefix("```") {
                block = if block.is_none() { Some(language.to_owned()) } else { None };
                continue;
            }
            match block.as_deref() {
                Some("sh" | "text") => found.push((at + 1, line.trim_start_matches("$ ").to_owned())),
                Some(_) => {}
                None => found.extend(line.split('`').skip(1).step_by(2).map(|span| (at + 1, span.to_owned()))),
            }
        }
        found
    }

    /// Returns the targets of links.
    fn links(&self) -> Vec<&str> {
        if !self.is_markdown() {
            return Vec::new();
        }
        // Every other part is a block of code.
        let prose = self.text.split("```").step_by(2);
        let targets = prose.flat_map(|text| text.split("](").skip(1));
        targets.filter_map(|rest| rest.split_once(')').map(|(link, _)| link)).collect()
    }
}

/// Prints everything that is wrong, and fails if anything is.
fn nothing(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Returns the anchors of headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let name = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        title.chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(name).collect()
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut wrong = Vec::new();
    let mut followed = 0;
    for document in documents() {
        for link in document.links() {
            if link.starts_with("http") {
                continue;
            }
            followed += 1;
            let (file, heading) = link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading)));
            let to = if file.is_empty() { document.path.clone() } else { document.path.with_file_name(file) };
            if !to.exists() {
                wrong.push(format!("{}: the link `{link}` leads nowhere", document.path.display()));
            } else if let Some(heading) = heading
                && !anchors(&read(&to)).contains(heading)
            {
                wrong.push(format!("{}: `{link}`: no such heading", document.path.display()));
            }
        }
    }
    assert!(followed > 20, "only {followed} links were found");
    nothing(wrong);
}

/// Returns a path if the word is a path of this repository, and not one of a file that programs write.
fn path_in(word: &str) -> Option<PathBuf> {
    const FOLDERS: [&str; 10] =
        ["src", "docs", "tests", "examples", "ci", "benches", "kernels-cl", ".ci", "cl", "layer"];
    const MODULES: [&str; 8] = ["cl", "ffi", "exec", "plan", "graph", "ir", "record", "drawing"];
    let word = word.trim_start_matches("./").trim_end_matches([',', ':', ';']);
    let (first, rest) = word.split_once('/')?;
    if rest.contains(['<', '{', '=', '(', '"']) || word.contains("::") {
        return None;
    }
    // Sources are often named relative to `src`.
    if MODULES.contains(&first) && (rest.ends_with(".rs") || rest.is_empty() && first != "record") {
        return Some(Path::new("src").join(word));
    }
    FOLDERS.contains(&first).then(|| PathBuf::from(word))
}

#[test]
fn paths_exist() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for document in documents() {
        for (line, code) in document.code() {
            for path in code.split_whitespace().filter_map(path_in) {
                seen += 1;
                let there = root().join(&path).exists() || document.path.with_file_name(&path).exists();
                if !there {
                    wrong.push(format!("{}:{line}: no `{}`", document.path.display(), path.display()));
                }
            }
        }
    }
    assert!(seen > 60, "only {seen} paths were found");
    nothing(wrong);
}

/// Returns what follows an option, as in `--example 01_deep_field` or `--features=cli`.
fn values<'a>(words: &[&'a str], option: &str) -> Vec<&'a str> {
    let next = words.windows(2).filter(|pair| pair[0] == option).map(|pair| pair[1]);
    let own = words.iter().filter_map(|word| word.strip_prefix(option)?.strip_prefix('='));
    let given = next.chain(own).map(|value| value.trim_end_matches([')', ',', ':', ';']));
    given.filter(|value| !value.chars().all(|c| c.is_uppercase() || matches!(c, '_' | '.'))).collect()
}

/// Makes the name of a variant from the name of a value: the reverse of what clap does.
fn camel_case(name: &str) -> String {
    let word =
        |word: &str| word.chars().enumerate().map(|(at, c)| if at == 0 { c.to_ascii_uppercase() } else { c }).collect();
    name.split('-').map(word).collect::<Vec<String>>().concat()
}

#[test]
fn commands_can_be_given() {
    let cargo = read("Cargo.toml");
    let bench: String = files("benches/graphs", ".rs").iter().map(read).collect();
    let suite: String = files("ci/suite", ".rs").iter().map(read).collect();
    let lists = read("ci/drivers.list");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for document in documents() {
        for (line, code) in document.code() {
            let words: Vec<&str> = code.split_whitespace().collect();
            let mut fail = |what: String| wrong.push(format!("{}:{line}: `{code}`: {what}", document.path.display()));
            let script = words.iter().find_map(|word| word.strip_prefix("./ci/").or_else(|| word.strip_prefix("ci/")));
            if let Some(name) = script.map(|name| name.trim_end_matches(','))
                && !name.contains('.')
            {
                seen += 1;
                // The script may not exist: another test checks that.
                let text = fs::read_to_string(root().join("ci").join(name)).unwrap_or_default();
                for option in words.iter().take_while(|word| **word != "--").filter(|word| word.starts_with("--")) {
                    let option = option.split('=').next().unwrap().trim_end_matches([',', ')', ':']);
                    let long = option.trim_start_matches("--").replace('-', "_");
                    let known = text.contains(option)
                        || name == "bench" && bench.contains(&format!("{long}:"))
                        || name == "test" && suite.contains(option);
                    if !known {
                        fail(format!("ci/{name} has no option {option}"));
                    }
                }
                let drivers = if name == "with" { words.get(1).copied().into_iter().collect() } else { vec![] };
                for driver in drivers.into_iter().filter(|driver| driver.chars().all(|c| c.is_alphanumeric())) {
                    if !lists.contains(&format!("\n{driver} ")) && driver != "NAME" && driver != "DRIVER" {
                        fail(format!("there is no driver {driver}"));
                    }
                }
            }
            for scenario in values(&words, "--scenario") {
                seen += 1;
                if !bench.contains(&format!("\n    {},", camel_case(scenario))) {
                    fail(format!("the bench has no scenario {scenario}"));
                }
            }
            for (option, folder) in [("--example", "examples"), ("--test", "tests"), ("--bench", "benches")] {
                for name in values(&words, option) {
                    seen += 1;
                    let there = root().join(folder).join(name).exists()
                        || root().join(folder).join(format!("{name}.rs")).exists()
                        || cargo.contains(&format!("name = \"{name}\""));
                    if !there {
                        fail(format!("there is no {folder}/{name}"));
                    }
                }
            }
            for feature in values(&words, "--features") {
                seen += 1;
                if !cargo.contains(&format!("\n{feature} = ")) {
                    fail(format!("there is no feature {feature}"));
                }
            }
        }
    }
    assert!(seen > 40, "only {seen} commands were found");
    nothing(wrong);
}

/// Returns the names in a text that begin in a certain way.
fn names<'a>(text: &'a str, begin: &str) -> BTreeSet<&'a str> {
    let ends = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let starts = text.match_indices(begin).map(|(at, _)| at);
    starts.map(|at| text[at..].split(ends).next().unwrap()).filter(|name| *name != begin).collect()
}

#[test]
fn variables_of_the_environment_are_read_and_documented() {
    let sources: String = ["src", "layer/src"].iter().flat_map(|at| files(at, ".rs")).map(read).collect();
    let tests: String = ["tests", "ci", "benches", ".ci"]
        .iter()
        .flat_map(|at| files(at, ""))
        .map(|path| {
            // Some files are not text.
            fs::read_to_string(path).unwrap_or_default()
        })
        .collect();
    let mut wrong = Vec::new();
    for document in documents() {
        for name in names(&document.text, "CLGRAPH_") {
            if !sources.contains(&format!("\"{name}\"")) && !tests.contains(name) {
                wrong.push(format!("{}: nothing reads {name}", document.path.display()));
            }
        }
    }
    let library = read("src/lib.rs");
    for name in names(&read("src/env.rs"), "CLGRAPH_") {
        if !library.contains(&format!("| `{name}`")) {
            wrong.push(format!("the crate's page does not tell of {name}"));
        }
    }
    nothing(wrong);
}

/// Returns the parts of the sources that declare what a type has: its declaration, `impl` blocks that name it, and
/// macros, which write methods of several types.
fn about(of: &str, sources: &str) -> String {
    let is_word = |line: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == of);
    let begins = |line: &str| {
        let declares = ["pub struct ", "pub enum ", "pub trait "].iter().any(|kind| line.starts_with(kind));
        line.starts_with("macro_rules!") || (declares || line.starts_with("impl")) && is_word(line)
    };
    let mut inside = false;
    let mut found = String::new();
    for line in sources.lines() {
        inside |= begins(line);
        if inside {
            found += line;
            found.push('\n');
        }
        inside &= !(line == "}" || line.ends_with(';') && !line.starts_with(' '));
    }
    found
}

#[test]
fn items_of_the_crate_exist() {
    let sources: String = ["src", "layer/src"].iter().flat_map(|at| files(at, ".rs")).map(read).collect();
    let exported: BTreeSet<&str> = {
        let lib = sources.split("pub use ").skip(1).filter_map(|rest| rest.split_once(';').map(|(list, _)| list));
        lib.flat_map(|list| list.split(|c: char| !c.is_alphanumeric() && c != '_')).collect()
    };
    let mut wrong = Vec::new();
    let mut seen = 0;
    for document in documents().iter_mut().filter(|document| document.is_markdown()) {
        // The first column of their tables names items of other libraries.
        if document.path.file_name().unwrap().to_str().unwrap().starts_with("from_") {
            let cell = |line: &str| {
                line.strip_prefix('|').map_or(line.to_owned(), |row| row[row.find('|').unwrap_or(0)..].to_owned())
            };
            document.text = document.text.lines().map(|line| cell(line) + "\n").collect();
        }
        for (line, code) in document.code() {
            for word in code.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | ':')) {
                let Some((of, item)) = word.trim_matches(':').split_once("::") else { continue };
                let item = item.split("::").next().unwrap();
                if of == "clgraph" {
                    seen += 1;
                    if !exported.contains(item) && !sources.contains(&format!("macro_rules! {item} ")) {
                        wrong.push(format!("{}:{line}: no `{word}`", document.path.display()));
                    }
                }
                if !exported.contains(of) || of.starts_with(char::is_lowercase) || item.is_empty() {
                    continue;
                }
                seen += 1;
                let written = [
                    format!("fn {item}("),
                    format!("fn {item}<"),
                    format!("    {item},"),
                    format!("    {item} {{"),
                    format!("    {item}("),
                    format!("const {item}:"),
                    format!("pub {item}:"),
                ];
                let about = about(of, &sources);
                if !written.iter().any(|written| about.contains(written)) {
                    wrong.push(format!("{}:{line}: no `{word}`", document.path.display()));
                }
            }
        }
    }
    assert!(seen > 60, "only {seen} items were found");
    nothing(wrong);
}

/// `src/lib.rs` includes each page, so that its programs are tests; and the index of the guide has a link to it.
#[test]
fn pages_of_the_guide_are_tested_and_listed() {
    let (lib, index) = (read("src/lib.rs"), read("docs/guide/README.md"));
    let mut wrong = Vec::new();
    for page in files("docs/guide", ".md") {
        let name = page.file_name().unwrap().to_str().unwrap();
        if name == "README.md" {
            continue;
        }
        if !lib.contains(&format!("include_str!(\"../docs/guide/{name}\")")) {
            wrong.push(format!("src/lib.rs does not include docs/guide/{name}"));
        }
        if !index.contains(&format!("]({name})")) {
            wrong.push(format!("docs/guide/README.md has no link to {name}"));
        }
    }
    nothing(wrong);
}

/// The guide quotes these texts, so that a reader can search for the text of a report.
#[test]
fn reasons_are_those_that_reports_give() {
    let guide = read("docs/guide/reports.md");
    let sources = read("src/plan/path.rs");
    let table = guide.split("| the report says | means |").nth(1).unwrap().split("\n\n").next().unwrap();
    let reasons: Vec<&str> = table.lines().skip(2).map(|line| line.split('|').nth(1).unwrap().trim()).collect();
    assert!(reasons.len() > 6, "{reasons:?}");
    nothing(reasons.into_iter().filter(|why| !sources.contains(why)).map(str::to_owned).collect());
}

/// Each example has a heading in their README, with a picture or its output, and its files are short enough to be read.
#[test]
fn examples_are_shown_and_short() {
    let readme = read("examples/README.md");
    let mut folders: Vec<PathBuf> =
        fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.is_dir() && !folder.ends_with("data"));
    assert!(folders.len() >= 8, "{folders:?}");
    let mut wrong = Vec::new();
    for folder in folders {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let shown = readme.split(&format!("\n## {name}\n")).nth(1).map(|rest| rest.split("\n## ").next().unwrap());
        if !shown.is_some_and(|shown| shown.contains("![") || shown.contains("```text")) {
            wrong.push(format!("examples/README.md does not show what {name} makes"));
        }
        for file in files(&format!("examples/{name}"), ".rs") {
            let lines = fs::read_to_string(&file).unwrap().lines().count();
            if lines >= 150 {
                wrong.push(format!("{} has {lines} lines: a file of an example has fewer than 150", file.display()));
            }
        }
    }
    nothing(wrong);
}

/// A stranger runs the scripts as README names them.
#[cfg(unix)]
#[test]
fn scripts_can_be_run() {
    use std::os::unix::fs::PermissionsExt;
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for entry in fs::read_dir(root().join("ci")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() && fs::read(&path).unwrap().starts_with(b"#!") {
            seen += 1;
            if fs::metadata(&path).unwrap().permissions().mode() & 0o111 != 0o111 {
                wrong.push(format!("{}: it is a script, and nobody can run it", path.display()));
            }
        }
    }
    assert!(seen > 8, "only {seen} scripts were found");
    nothing(wrong);
}

/// The README is one page.
#[test]
fn the_readme_is_short() {
    let words = read(root().join("README.md")).split_whitespace().count();
    assert!(words <= 1200, "{words} words");
}
