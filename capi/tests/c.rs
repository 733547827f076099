//! Compiles the C programs of `tests/c` against the header, where they have changed, and runs them on the OpenCL driver that programs
//! find. They are linked with the library that `cargo build -p clgraph-capi` has made beside this test.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the build, which has `libclgraph.so`.
fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors()
        .find(|folder| folder.join("libclgraph.so").exists())
        .map_or_else(|| panic!("there is no libclgraph.so: run `cargo build -p clgraph-capi` first"), Path::to_path_buf)
}

fn compiled(compiler: &str, options: &[&str], source: &str) -> PathBuf {
    let (at, built) = (Path::new(env!("CARGO_MANIFEST_DIR")), built());
    // As ./ci/sanitize asks.
    let sanitized = std::env::var_os("CLGRAPH_C_SANITIZED").is_some();
    let kind = if sanitized { "-sanitized" } else { "" };
    let program = built.join(format!("clgraph-{}{kind}", source.replace('.', "-")));
    let sources = [
        at.join("tests/c").join(source),
        at.join("tests/c/common.h"),
        at.join("include/clgraph.h"),
        at.join("include/clgraph.hpp"),
    ];
    let time = |file: &Path| file.metadata().and_then(|data| data.modified()).ok();
    if time(&program).is_some_and(|made| sources.iter().all(|source| time(source).is_some_and(|time| time < made))) {
        return program;
    }
    let mut command = Command::new(compiler);
    command
        .args(sanitized.then_some("-fsanitize=address"))
        .args(options)
        .args(["-Wall", "-Wextra", "-Werror", "-g", "-pthread"]);
    command.arg("-I").arg(at.join("include")).arg(at.join("tests/c").join(source)).arg("-o").arg(&program);
    command
        .arg("-L")
        .arg(&built)
        .args(["-lclgraph", "-l:libOpenCL.so.1"])
        .arg(format!("-Wl,-rpath,{}", built.display()));
    let output = command.output().unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run(compiler: &str, options: &[&str], source: &str) {
    let program = compiled(compiler, options, source);
    let output = Command::new(&program).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.ends_with("ok\n"), "{source}: {}\n{out}{err}", output.status);
}

const C: [&str; 2] = ["-std=c11", "-D_POSIX_C_SOURCE=200809L"];

const CPP: [&str; 1] = ["-std=c++17"];

/// A driver may be run where no compiler is: there, the programs are used as this test has left them.
#[test]
fn the_programs_compile() {
    compiled("cc", &C, "graphs.c");
    compiled("cc", &C, "commands.c");
    compiled("cc", &C, "misuse.c");
    compiled("c++", &CPP, "graphs.cpp");
}

#[test]
fn graphs_from_c() {
    run("cc", &C, "graphs.c");
}

#[test]
fn all_commands_from_c() {
    run("cc", &C, "commands.c");
}

#[test]
fn graphs_from_cpp() {
    run("c++", &CPP, "graphs.cpp");
}

/// Handles that are null, dead, of another type or made up; pointers that are null; sizes that are wrong. From many threads.
#[test]
fn misuse_from_c_is_an_error() {
    run("cc", &C, "misuse.c");
}
