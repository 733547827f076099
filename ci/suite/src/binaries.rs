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

/// Test programs that compile programs in C: of the C library, and for the layer.
const WITH_C: [&str; 3] = ["c", "command_buffers", "programs"];

/// The packages whose tests run on drivers, with their features.
const PACKAGES: [&str; 8] =
    ["--package", "clgraph", "--package", "clgraph-capi", "--package", "clgraph-layer", "--features", "clgraph/cli"];

/// Builds all tests of clgraph, of its C library and of its layer. (Tests of documentation are no programs of their own: they run with
/// the default driver.)
pub fn build(root: &Path) -> Result<Binaries, Failure> {
    let library = ["build", "--locked", "--package", "clgraph-capi"];
    if !command(root, "cargo").args(library).status()?.success() {
        return Err("the C library does not build".into());
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
    // The programs in C are compiled and linked here, because a driver's root may have no compiler.
    for (name, program) in tests.iter().filter(|(name, _)| WITH_C.contains(&name.as_str())) {
        let compile = command(root, program).arg("the_programs_compile").output()?;
        if !compile.status.success() {
            let (said, wrong) = (String::from_utf8_lossy(&compile.stdout), String::from_utf8_lossy(&compile.stderr));
            return Err(format!("the programs of {name} do not compile: {said}{wrong}").into());
        }
    }
    Ok(Binaries { tests, clgraph: clgraph.ok_or("cargo built no program `clgraph`")? })
}
