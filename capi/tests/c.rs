//! Compiles the C programs of `tests/c` against the header, where they have changed, and runs them on the OpenCL driver that programs
//! find. They are linked with the library that `cargo build -p clgraph-capi` has made beside this test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The folder of the build, which has `libclgraph.so`.
fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors()
        .find(|folder| folder.join("libclgraph.so").exists())
        .map_or_else(|| panic!("there is no libclgraph.so: run `cargo build -p clgraph-capi` first"), Path::to_path_buf)
}

/// Compiles `folder/source`, and returns the program.
fn compiled(compiler: &str, options: &[&str], folder: &str, source: &str) -> PathBuf {
    let (at, built) = (Path::new(env!("CARGO_MANIFEST_DIR")), built());
    // As ./ci/sanitize asks.
    let sanitized = std::env::var_os("CLGRAPH_C_SANITIZED").is_some();
    let kind = if sanitized { "-sanitized" } else { "" };
    let program = built.join(format!("clgraph-{}{kind}", source.replace('.', "-")));
    let sources = [
        at.join(folder).join(source),
        at.join("tests/c.rs"),
        at.join("tests/c/common.h"),
        at.join("tests/c/common.hpp"),
        at.join("examples/photo.h"),
        at.join("include/clgraph.h"),
        at.join("include/clgraph.hpp"),
    ];
    let time = |file: &Path| file.metadata().and_then(|data| data.modified()).ok();
    if time(&program).is_some_and(|made| sources.iter().all(|source| time(source).is_some_and(|time| time < made))) {
        return program;
    }
    // The name by which the loader looks for it, as ./capi/install gives it.
    let version = env!("CARGO_PKG_VERSION").rsplit_once('.').unwrap().0;
    let name = built.join(format!("libclgraph.so.{version}"));
    if let Err(error) = std::os::unix::fs::symlink("libclgraph.so", &name) {
        assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists, "{}: {error}", name.display());
    }
    // Another test may compile or run the same program meanwhile: it is there as a whole, or not at all.
    let thread = std::thread::current().id();
    let unfinished = program.with_extension(format!("{}-{thread:?}", std::process::id()));
    let mut command = Command::new(compiler);
    command
        .args(sanitized.then_some("-fsanitize=address"))
        .args(options)
        .args(["-Wall", "-Wextra", "-Werror", "-g", "-pthread"]);
    command.arg("-I").arg(at.join("include")).arg(at.join(folder).join(source)).arg("-o").arg(&unfinished);
    command
        .arg("-L")
        .arg(&built)
        .args(["-lclgraph", "-l:libOpenCL.so.1"])
        .args((folder == EXAMPLES).then_some("-l:libjpeg.a")) // drivers may be run where there is no libjpeg
        .arg(format!("-Wl,-rpath,{}", built.display()));
    let output = command.output().unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(&unfinished, &program).unwrap();
    program
}

fn run(program: &Path, arguments: &[&Path]) {
    run_command(Command::new(program).args(arguments));
}

/// A program that takes longer hangs.
const LONGEST: Duration = Duration::from_secs(400);

/// Runs a program to its end, and no longer.
fn output(command: &mut Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    let (process, (over, ended)) = (child.id(), mpsc::channel::<()>());
    let program = command.get_program().to_owned();
    let watch = thread::spawn(move || {
        if ended.recv_timeout(LONGEST) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("{} has run for {:?}: it hangs", Path::new(&program).display(), begin.elapsed());
            let _ = Command::new("kill").args(["-s", "ABRT", &process.to_string()]).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(over);
    watch.join().unwrap();
    output
}

fn run_command(command: &mut Command) {
    let program = Path::new(command.get_program()).to_owned();
    let output = output(command);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    print!("{out}");
    // A panic of a thread of clgraph may end in a log only.
    let good = output.status.success() && out.ends_with("ok\n") && !err.contains("panicked");
    assert!(good, "{}: {}\n{out}{err}", program.display(), output.status);
}

const TESTS: &str = "tests/c";

const EXAMPLES: &str = "examples";

const C: [&str; 3] = ["-std=c11", "-pedantic-errors", "-D_POSIX_C_SOURCE=200809L"];

const CPP: [&str; 1] = ["-std=c++17"];

/// What programs may ask for.
const STRICT: [&str; 4] = ["-std=c++20", "-Wconversion", "-Wsign-conversion", "-Wshadow"];

/// The programs, with their compilers.
const PROGRAMS: [(&str, &[&str], &str, &str); 14] = [
    ("cc", &C, TESTS, "graphs.c"),
    ("cc", &C, TESTS, "commands.c"),
    ("cc", &C, TESTS, "images.c"),
    ("cc", &C, TESTS, "control.c"),
    ("cc", &C, TESTS, "misuse.c"),
    ("cc", &C, TESTS, "fuzz.c"),
    ("cc", &C, TESTS, "lifetimes.c"),
    ("c++", &CPP, TESTS, "graphs.cpp"),
    ("c++", &CPP, TESTS, "recordings.cpp"),
    ("c++", &CPP, TESTS, "control.cpp"),
    ("c++", &CPP, TESTS, "captures.cpp"),
    ("c++", &STRICT, TESTS, "header.cpp"),
    ("cc", &C, EXAMPLES, "edges.c"),
    ("c++", &CPP, EXAMPLES, "smooth.cpp"),
];

fn program(name: &str) -> PathBuf {
    let (compiler, options, folder, source) = PROGRAMS.into_iter().find(|(.., source)| *source == name).unwrap();
    compiled(compiler, options, folder, source)
}

/// A driver may be run where no compiler is: there, the programs are used as this test has left them.
#[test]
fn the_programs_compile() {
    for (.., source) in PROGRAMS {
        program(source);
    }
}

#[test]
fn graphs_from_c() {
    run(&program("graphs.c"), &[]);
}

#[test]
fn all_commands_from_c() {
    run(&program("commands.c"), &[]);
}

#[test]
fn images_from_c() {
    run(&program("images.c"), &[]);
}

#[test]
fn branches_and_loops_from_c() {
    run(&program("control.c"), &[]);
}

#[test]
fn branches_and_loops_from_cpp() {
    run(&program("control.cpp"), &[]);
}

#[test]
fn handles_are_released_in_every_order_while_submissions_run() {
    run(&program("lifetimes.c"), &[]);
}

#[test]
fn graphs_from_cpp() {
    run(&program("graphs.cpp"), &[]);
}

#[test]
fn recordings_from_cpp() {
    run(&program("recordings.cpp"), &[]);
}

/// Rule L3
#[test]
fn captures_from_c_and_cpp() {
    let layer = std::env::current_exe().unwrap().with_file_name("libclgraph_layer.so");
    assert!(layer.exists(), "there is no {}: run `cargo build -p clgraph-layer` first", layer.display());
    let program = program("captures.cpp");
    run_command(Command::new(&program).env("OPENCL_LAYERS", layer).env("CLGRAPH_LAYER", "always"));
    run_command(Command::new(&program).arg("without").env_remove("OPENCL_LAYERS"));
}

#[test]
fn the_header_for_cpp_alone_has_no_warnings() {
    run(&program("header.cpp"), &[]);
}

/// Handles that are null, dead, of another type or made up; pointers that are null; sizes that are wrong.
#[test]
fn misuse_from_c_is_an_error() {
    run(&program("misuse.c"), &[]);
}

/// The same at random, from many threads: nothing crashes, and nothing is a defect.
#[test]
fn random_calls_from_many_threads_are_no_defect() {
    // PoCL leaks where it compiles a kernel, and these programs have kernels that no run before had.
    let mut command = Command::new(program("fuzz.c"));
    let options = std::env::var("ASAN_OPTIONS").unwrap_or_default();
    run_command(command.env("ASAN_OPTIONS", format!("{options}:detect_leaks=0")));
}

/// The examples say how long the graph and a loop of calls took, and compare the pictures, which must not differ.
#[test]
fn examples_make_the_pictures_of_plain_calls() {
    let photo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/data/rocket.jpg");
    for (source, picture) in [("edges.c", "edges.jpg"), ("smooth.cpp", "smooth.jpg")] {
        run(&program(source), &[&photo, &std::env::temp_dir().join(picture)]);
    }
}
