//! Command buffers and captures, on the OpenCL driver that programs find.
#![cfg(target_os = "linux")]

mod common;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use common::{REPORT, SERVES, VERSION, compiled, layer, run};

const OPENCL: &str = "-l:libOpenCL.so.1";

fn said(program: PathBuf, arguments: &[&str], serves: Option<&str>, version: Option<&str>) -> String {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("OPENCL_LAYERS").env_remove(REPORT).env_remove(VERSION);
    if let Some(serves) = serves {
        command.env("OPENCL_LAYERS", layer()).env(SERVES, serves);
    }
    run(command.envs(version.map(|version| (VERSION, version)))).out
}

fn uses(source: &str, of: &[&str]) {
    for one in of {
        are_good(one, &said(compiled(source, &[OPENCL]), &[one], Some("always"), None));
    }
}

/// A use ends with `ok`. Before that it says what the device lacks, or what its driver does not survive.
fn are_good(one: &str, out: &str) {
    let mut lines = out.lines().rev();
    assert_eq!(lines.next(), Some("ok"), "{one}: {out}");
    assert!(lines.all(|line| line.starts_with("no ")), "{one}: {out}");
}

/// The library of the tests that is between the layer and the driver.
fn faults() -> PathBuf {
    let faults = layer().ancestors().nth(2).unwrap().join("examples/libfault_layer.so");
    assert!(faults.exists(), "{}: `cargo build --example fault_layer` builds it", faults.display());
    faults
}

/// The list of layers with it and the layer.
fn between() -> OsString {
    let mut layers = faults().into_os_string();
    layers.push(":");
    layers.push(layer());
    layers
}

/// Rules E2, L4: each call of the driver fails once: the step that it belongs to fails, or does without, and can be done again. Nothing is
/// left over. A library between the layer and the driver lets calls fail.
#[test]
fn a_call_of_the_driver_that_fails_has_changed_nothing() {
    let mut command = Command::new(compiled("faults.c", &[OPENCL, "-ldl"]));
    // Every call is tried with 1.
    let step = std::env::var("CLGRAPH_TEST_STEP").unwrap_or_else(|_| "3".to_owned());
    command.arg(faults()).arg(step).env("OPENCL_LAYERS", between()).env(SERVES, "always").env_remove(REPORT);
    let out = run(command.env_remove(VERSION)).out;
    assert!(out.ends_with("ok\n"), "{out}");
}

/// Rules L1, L4: what the drivers at hand have no device for. A library between the layer and the driver lets devices say that they have
/// no images or shared virtual memory, or that they take only small ones and few sub-buffers. PoCL has as many devices as it is asked for.
#[test]
fn devices_may_lack_images_or_take_less_than_their_neighbours() {
    let program = compiled("command_buffers.c", &[OPENCL]);
    for (variable, part) in [
        ("CLGRAPH_LAYER_HIDES_IMAGES", "errors_of_images"),
        ("CLGRAPH_LAYER_HIDES_SVM", "errors_of_svm"),
        ("CLGRAPH_LAYER_IS_NARROW", "sizes_beyond_the_device"),
        ("CLGRAPH_LAYER_IS_NARROW", "other_device"),
        ("CLGRAPH_LAYER_IS_NARROW", "programs_of_the_other_device"),
        ("CLGRAPH_LAYER_IS_NARROW", "memory_of_the_other_device"),
    ] {
        let mut command = Command::new(&program);
        command.args(["errors", part]).env("OPENCL_LAYERS", between()).env(SERVES, "always").env(variable, "1");
        command.env_remove(REPORT).env_remove(VERSION).env("POCL_DEVICES", "basic basic");
        let out = run(&mut command).out;
        are_good(part, &out);
        println!("{part}: {out}");
    }
}

/// Rule L1: devices of OpenCL 1.2 are left alone, because kernels cannot be cloned there. Whoever asked for all devices is told.
#[test]
fn old_devices_are_left_alone() {
    let program = compiled("extensions.c", &[OPENCL]);
    let with = |layers: Option<OsString>, is_old: bool| {
        let mut command = Command::new(&program);
        command.env_remove("OPENCL_LAYERS").envs(layers.map(|layers| ("OPENCL_LAYERS", layers)));
        command.env(SERVES, "always").env_remove(REPORT).env_remove(VERSION);
        run(command.envs(is_old.then_some(("CLGRAPH_LAYER_IS_OLD", "1"))))
    };
    let both = between();
    let plain = with(None, false);
    let served = with(Some(both.clone()), false);
    assert!(
        served.out.contains("cl_khr_command_buffer_mutable_dispatch") && served.error == plain.error,
        "{}",
        served.error
    );
    assert!(!served.out.contains("none"), "{}", served.out);
    let old = with(Some(both), true);
    assert_eq!(old.out, plain.out);
    let told = old.error.matches("have OpenCL 1.2, and get no command buffers").count();
    assert!(told > 0 && old.error.len() > plain.error.len(), "{}", old.error);
}

/// A driver may be run where no compiler is.
#[test]
fn the_programs_compile() {
    for source in ["command_buffers.c", "capture.c", "random.c", "lists.c", "extensions.c"] {
        compiled(source, &[OPENCL]);
    }
    compiled("faults.c", &[OPENCL, "-ldl"]);
}

/// Rules L1, L4: each error of the specification, for each function.
#[test]
fn what_is_wrong_is_told_by_the_status_of_the_specification() {
    uses("command_buffers.c", &["errors"]);
}

/// Rule L1: each command, on queues in order and out of order, recorded for the one and run on the other.
#[test]
fn command_buffers_compute_what_plain_calls_compute() {
    uses("command_buffers.c", &["results", "failing"]);
}

/// Rule L4: PoCL's device without threads hangs when a user event is completed, so the layer must not use one there.
#[test]
fn long_command_buffers_run_on_a_device_without_threads() {
    let mut command = Command::new(compiled("command_buffers.c", &[OPENCL]));
    command.arg("long").env("POCL_DEVICES", "basic").env("OPENCL_LAYERS", layer()).env(SERVES, "always");
    are_good("long", &run(command.env_remove(REPORT).env_remove(VERSION)).out);
}

/// Rule L1: also while earlier submissions run, and all or nothing.
#[test]
fn commands_are_updated() {
    uses("command_buffers.c", &["updates"]);
}

/// Rules L1, L3: random command buffers and captures, on queues of all kinds, with updates between submissions. A failure names its seed.
#[test]
fn random_command_buffers_compute_what_a_model_computes() {
    let first = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs() % 1_000_000);
    let out = said(compiled("random.c", &[OPENCL]), &[&first.to_string(), "200"], Some("always"), None);
    assert_eq!(out, "ok\n");
}

/// Rule L1
#[test]
fn four_threads_record_run_update_and_release() {
    uses("command_buffers.c", &["threads"]);
}

/// Rule L3: nothing runs in a capture, and the command buffer computes what the calls would have.
#[test]
fn captured_calls_run_later() {
    uses("capture.c", &["runs", "transfers"]);
}

/// Rules L3, L4
#[test]
fn what_cannot_be_captured_spoils_the_capture() {
    uses("capture.c", &["wrong"]);
}

/// Rules L3, L4: whatever the program releases, and whenever another thread enqueues.
#[test]
fn captures_keep_what_is_needed_and_no_more() {
    uses("capture.c", &["numbers", "samplers", "ends", "between"]);
}

/// Rule L3
#[test]
fn four_threads_capture_their_queues() {
    uses("capture.c", &["threads"]);
}

fn lists(serves: Option<&str>, version: Option<&str>) -> String {
    said(compiled("lists.c", &[OPENCL]), &[], serves, version)
}

/// Rule L1: what programs read, for each revision that can be reported.
#[test]
fn lists_name_the_revision_that_is_asked_for() {
    for (asked, version, mutable, out_of_order) in [
        (None, "1.0.0", "0.9.5", false),
        (Some("0.9.8"), "0.9.8", "0.9.5", false),
        (Some("0.9.5"), "0.9.5", "0.9.3", true),
        (Some("0.9.4"), "0.9.4", "0.9.2", true),
    ] {
        let out = lists(Some("always"), asked);
        let lines: Vec<&str> = out.lines().collect();
        let [device, device_versions, platform, platform_versions, queries, functions, others] = *lines else {
            panic!("{out}")
        };
        let both = "command_buffer command_buffer_mutable_dispatch";
        assert_eq!((device, platform), (&*format!("device: {both}"), &*format!("platform: {both}")), "{asked:?}");
        let versions = format!("command_buffer {version} command_buffer_mutable_dispatch {mutable}");
        assert_eq!(device_versions, format!("device: {versions}"));
        assert_eq!(platform_versions, format!("platform: {versions}"));
        assert_eq!((functions, others), ("functions: 1 1 1", "others: 0 0 0"));
        let bits: Vec<u64> = queries
            .split(" 0x")
            .skip(1)
            .map(|bits| u64::from_str_radix(bits, 16).unwrap_or_else(|_| panic!("{queries}")))
            .collect();
        let [capabilities, supported, required, fields] = *bits else { panic!("{queries}") };
        // Whether kernels enqueue kernels is the device's.
        let queues_out_of_order = supported & 1 != 0;
        assert_eq!(capabilities & !2, 1 | 4 | if out_of_order && queues_out_of_order { 8 } else { 0 }, "{queries}");
        assert_eq!((supported & !1, required, fields), (2, 0, 0x1F), "{queries}");
    }
}

/// Rule L1: a driver with both extensions, or with functions of the old form, is left alone unless it is asked for.
#[test]
fn drivers_that_have_their_own_are_left_alone() {
    let native = lists(None, None);
    assert_eq!(lists(Some("never"), None), native);
    let auto = lists(Some("auto"), None);
    let versions = native.lines().nth(1).unwrap();
    let version = |name: &str| {
        let mut words = versions.split(' ').skip_while(|word| *word != name);
        words.nth(1).map(|version| version.split('.').map(|number| number.parse().unwrap()).collect::<Vec<u32>>())
    };
    let is_old = version("command_buffer").is_some_and(|version| version < vec![0, 9, 5]);
    let has_both = version("command_buffer").is_some() && version("command_buffer_mutable_dispatch").is_some();
    if is_old || has_both {
        assert_eq!(auto, native);
    } else {
        assert_eq!(auto, lists(Some("always"), None));
    }
}

/// Rule L1: below revision 0.9.5, functions that record have no parameter `properties`.
#[test]
fn the_old_form_of_the_functions_is_that_of_the_old_revision() {
    let out = said(compiled("lists.c", &[OPENCL]), &["old"], Some("always"), Some("0.9.4"));
    assert_eq!(out, "ok\n");
}
