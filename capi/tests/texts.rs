//! Texts of errors name no functions of Rust that C does not have: `src/texts.rs` knows each name with `::` in them.

use std::path::Path;

/// The names between backquotes, with `::`, on lines of code (not of comments) below a folder.
fn names(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names(&path, found);
            continue;
        }
        for line in std::fs::read_to_string(&path).unwrap().lines().filter(|line| !line.trim().starts_with("//")) {
            let quoted = line.split('`').skip(1).step_by(2);
            let is_name =
                |part: &&str| part.contains("::") && part.chars().all(|c| c.is_alphanumeric() || "_:".contains(c));
            found.extend(quoted.filter(is_name).map(|name| (name.to_owned(), path.display().to_string())));
        }
    }
}

#[test]
fn every_name_of_rust_in_an_error_has_one_in_c() {
    let at = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = std::fs::read_to_string(at.join("src/texts.rs")).unwrap();
    let mut found = Vec::new();
    names(&at.join("../src/error"), &mut found);
    assert!(found.len() > 10, "{found:?}");
    // What only Rust has, and errors of functions that only Rust has.
    let only_rust = ["ProgramBuilder::source_text", "UserEvent::fail", "Submit::submit"];
    for (name, file) in found {
        let known = table.contains(&format!("(\"{name}\",")) || only_rust.contains(&name.as_str());
        assert!(known, "{file} names `{name}`, which capi/src/texts.rs does not know");
    }
}
