//! Examples on a machine that lacks what they need: the first thing that they say is what to install.

use std::path::{Path, PathBuf};
use std::process::Command;

/// All of them, as cargo builds them with the tests.
fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let built = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples");
    let programs: Vec<PathBuf> = names
        .filter(|name| name.starts_with('0'))
        .map(|name| built.join(name + std::env::consts::EXE_SUFFIX))
        .collect();
    assert!(programs.len() >= 9, "{programs:?}");
    for program in &programs {
        assert!(program.exists(), "{} is not built: `cargo build --examples`", program.display());
    }
    programs
}

/// What each says on standard error, in one line, when it ends with a failure.
fn fail_with(variable: &str, value: &str, texts: &[&str]) {
    for program in examples() {
        let output = Command::new(&program).env(variable, value).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{}: {text}", program.display());
        assert_eq!(text.lines().count(), 1, "{text}");
        let name = program.file_stem().unwrap().to_str().unwrap();
        assert!(text.starts_with(&format!("{name}: ")), "{text}");
        for expected in texts {
            assert!(text.contains(expected), "no `{expected}`: {text}");
        }
    }
}

#[test]
fn without_opencl_they_say_what_to_install() {
    let texts =
        ["no OpenCL library could be loaded (tried /no/such/libOpenCL.so:", "apt-get install ocl-icd-libopencl1"];
    fail_with("OPENCL_DYLIB_PATH", "/no/such/libOpenCL.so", &texts);
}

#[test]
fn without_a_driver_they_say_what_to_install() {
    let empty = std::env::temp_dir().join(format!("clgraph-examples-{}", std::process::id()));
    std::fs::create_dir_all(&empty).unwrap();
    fail_with("OCL_ICD_VENDORS", empty.to_str().unwrap(), &["no driver is installed", "pocl-opencl-icd"]);
    std::fs::remove_dir_all(&empty).unwrap();
}
