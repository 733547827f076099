//! Compiles the programs of `tests/c` where they have changed, and runs them with and without the layer.

#![allow(dead_code)] // each test program uses a part

use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that asks for a report.
pub const REPORT: &str = "CLGRAPH_LAYER_REPORT";

/// The variable that says which devices get command buffers.
pub const SERVES: &str = "CLGRAPH_LAYER";

/// The variable that says which revision is reported.
pub const VERSION: &str = "CLGRAPH_LAYER_VERSION";

/// The layer, which cargo builds with the tests.
pub fn layer() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let layer = test.with_file_name("libclgraph_layer.so");
    assert!(layer.exists(), "there is no {}", layer.display());
    layer
}

/// Compiles `tests/c/source`, and returns the program. A driver may be run where no compiler is: there, the program is used as it
/// was left.
pub fn compiled(source: &str, libraries: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let parts = folder.join(source).with_extension("");
    let parts = parts.read_dir().into_iter().flatten().map(|part| part.unwrap().path());
    let mut headers: Vec<PathBuf> = parts.collect();
    let shared = ["check.h", "update.h", "command_buffers/functions.h", "../../include/clgraph_layer.h"];
    headers.extend(shared.map(|header| folder.join(header)));
    let source = folder.join(source);
    let name = source.file_stem().unwrap().to_str().unwrap();
    // As ./ci/sanitize asks: the layer that they load is sanitized, too.
    let sanitized = std::env::var_os("CLGRAPH_C_SANITIZED").is_some();
    let kind = if sanitized { "-sanitized" } else { "" };
    let program = layer().with_file_name(format!("clgraph-layer-{name}{kind}"));
    let time = |file: &Path| file.metadata().and_then(|data| data.modified()).ok();
    let is_older = |file: &Path| time(file) < time(&program);
    if time(&program).is_some() && is_older(&source) && headers.iter().all(|header| is_older(header)) {
        return program;
    }
    // Another test may compile or run the same program meanwhile: it is there as a whole, or not at all.
    let thread = std::thread::current().id();
    let unfinished = program.with_extension(format!("{}-{thread:?}", std::process::id()));
    let mut command = Command::new("cc");
    command.args(sanitized.then_some("-fsanitize=address"));
    command.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g", "-pthread"]).arg(&source);
    let output =
        command.arg("-o").arg(&unfinished).args(libraries).output().unwrap_or_else(|error| panic!("cc: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(&unfinished, &program).unwrap();
    program
}

/// What a program has said.
pub struct Said {
    pub out: String,
    pub error: String,
}

/// Runs a program that ends well.
pub fn run(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    // What a driver says whenever it is loaded.
    let error = error.split_inclusive('\n').filter(|line| !line.starts_with("=== Rusticl warning")).collect::<String>();
    assert!(output.status.success(), "{command:?}: {}\n{out}{error}", output.status);
    Said { out, error }
}

/// Runs a program as it is.
pub fn without_layer(program: &Path, arguments: &[&str]) -> Said {
    run(Command::new(program).args(arguments).env_remove("OPENCL_LAYERS").env_remove(REPORT))
}

/// Runs a program by a loader that has the layer.
pub fn with_layer(program: &Path, arguments: &[&str], report: Option<&str>) -> Said {
    let mut command = Command::new(program);
    command.args(arguments).env("OPENCL_LAYERS", layer()).env(SERVES, "always").env_remove(REPORT);
    run(command.envs(report.map(|value| (REPORT, value))))
}

/// Returns a report without its head, and without what differs from run to run: times.
pub fn plain(report: &str) -> String {
    let mut plain = String::new();
    for line in
        report.lines().filter(|line| !line.starts_with("clgraph_layer: what ") && !line.starts_with("A run is what "))
    {
        let line = line.split_once("; to enqueue it takes").map_or(line, |(front, _)| front);
        plain.push_str(line);
        plain.push('\n');
    }
    plain
}

/// Runs a test of this program in a process of its own that has the layer.
pub fn in_a_process_with_layer(name: &str, test: impl FnOnce()) -> Option<String> {
    if std::env::var_os("OPENCL_LAYERS").is_some() {
        test();
        return None;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([name, "--exact", "--nocapture"])
        .env("OPENCL_LAYERS", layer())
        .env(SERVES, "always")
        .env_remove(REPORT);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    Some(said.into_owned())
}
