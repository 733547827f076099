//! The programs with the tests, built once.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::Deserialize;

use crate::{Failure, command};

/// What was built.
pub struct Binaries {
    /// Names and places of the test programs.
    pub tests: Vec<(String, PathBuf)>,
    /// The program `clgraph`.
    pub clgraph: PathBuf,
}

/// A line of cargo's messages, as far as it matters here.
#[derive(Deserialize)]
struct Message {
    reason: String,
    target: Option<Target>,
    executable: Option<PathBuf>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Compiles the C programs: of the C library, and for the layer.
const COMPILE: [[&str; 8]; 2] = [
    ["test", "--locked", "--quiet", "--package", "clgraph-capi", "--test", "c", "the_programs_compile"],
    ["test", "--locked", "--quiet", "--package", "clgraph-layer", "--test", "programs", "the_programs_compile"],
];

/// The packages whose tests run on drivers, with their features.
const PACKAGES: [&str; 8] =
    ["--package", "clgraph", "--package", "clgraph-capi", "--package", "clgraph-layer", "--features", "clgraph/cli"];

/// Builds all tests of clgraph, of its C library and of its layer. (Tests of documentation are no programs of their own: they run with
/// the default driver.)
pub fn build(root: &Path) -> Result<Binaries, Failure> {
    // The C programs are compiled and linked here, because a driver's root may have no compiler.
    let library = ["build", "--locked", "--package", "clgraph-capi"];
    for arguments in [library.as_slice()].into_iter().chain(COMPILE.iter().map(<[&str; 8]>::as_slice)) {
        if !command(root, "cargo").args(arguments).stdout(Stdio::null()).status()?.success() {
            return Err("the C library, or programs in C, do not build".into());
        }
    }
    let arguments = [&["test", "--locked"], PACKAGES.as_slice(), &["--no-run", "--message-format=json"]].concat();
    let output = command(root, "cargo").args(arguments).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err("the tests do not build".into());
    }
    let (mut tests, mut clgraph) = (Vec::new(), None);
    for line in String::from_utf8(output.stdout)?.lines() {
        let message: Message = serde_json::from_str(line)?;
        let (Some(target), Some(executable)) = (message.target, message.executable) else { continue };
        if message.reason != "compiler-artifact" {
            continue;
        }
        match message.profile {
            Some(Profile { test: true }) => tests.push((target.name, executable)),
            _ if target.kind == ["bin"] => clgraph = Some(executable),
            _ => {}
        }
    }
    Ok(Binaries { tests, clgraph: clgraph.ok_or("cargo built no program `clgraph`")? })
}
