//! Programs of `tests/c/program.c` with and without the layer, on the OpenCL driver that programs find.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{REPORT, compiled, layer, plain, run, with_layer, without_layer};
use expect_test::{Expect, expect};

fn program() -> PathBuf {
    compiled("program.c", &["-l:libOpenCL.so.1"])
}

/// A driver may be run where no compiler is.
#[test]
fn the_programs_compile() {
    program();
}

/// Rules L2, L4: the same results, errors and reference counts.
#[test]
fn programs_say_the_same_with_the_layer() {
    let uses = [
        "same",
        "changing",
        "obstacles",
        "waits",
        "turns",
        "polls",
        "threads",
        "one-queue",
        "queues",
        "leaves",
        "refused",
        "references",
        "arguments",
    ];
    for of in uses {
        let plain = without_layer(&program(), &[of]);
        assert!(!plain.out.is_empty(), "{of}");
        let silent = with_layer(&program(), &[of], None);
        assert_eq!((&silent.out, &silent.error), (&plain.out, &plain.error), "{of}");
        let reported = with_layer(&program(), &[of], Some("1"));
        assert_eq!(reported.out, plain.out, "{of}");
        assert_eq!(reported.error.matches("clgraph_layer: what ").count(), 1, "{of}: {}", reported.error);
    }
}

fn reports(of: &str, expected: &Expect) {
    expected.assert_eq(&plain(&with_layer(&program(), &[of], Some("1")).error));
}

/// Rule L5
#[test]
fn a_run_that_is_the_same_each_time() {
    reports(
        "same",
        &expect![[r#"
        queue 1 (in order): 5 003 calls in 1 002 runs
          run 1: 5 calls (3 kernels, 1 copy, 1 fill), then clFinish
            clEnqueueFillBuffer, clEnqueueCopyBuffer, scale, add, scale
            1 000 times
            It can be captured as it is.
          2 other runs came once.
    "#]],
    );
}

/// Rule L5
#[test]
fn what_changes() {
    reports(
        "changing",
        &expect![[r#"
        queue 1 (in order): 35 calls in 10 runs
          run 1: 4 calls (1 kernel, 1 copy, 1 fill, 1 write), then clFinish
            clEnqueueWriteBuffer, scale, clEnqueueCopyBuffer, clEnqueueFillBuffer
            8 times
            It can be captured. Each submission has to give:
            - argument 1 of scale (call 2)
            - the memory in argument 0 of scale (call 2)
            - the memory of clEnqueueCopyBuffer (call 3)
            - the memory of clEnqueueWriteBuffer (call 1)
            - the offsets and sizes of clEnqueueCopyBuffer (call 3)
            - the program's memory of clEnqueueWriteBuffer (call 1)
            - the work-items of scale (call 2)
            - the pattern of clEnqueueFillBuffer (call 4)
          2 other runs came once.
    "#]],
    );
}

/// Rule L5
#[test]
fn what_keeps_a_run_from_being_captured() {
    reports(
        "obstacles",
        &expect![[r#"
        queue 1 (in order): 19 calls in 6 runs
          run 1: 4 calls (2 kernels, 1 map, 1 unmap), then clFinish
            clEnqueueMapBuffer, clEnqueueUnmapMemObject, scale, add
            4 times
            It cannot be captured as it is:
            - clEnqueueMapBuffer (call 1): the host works on mapped memory: enqueue a read or a write, or make it a host task
            - clEnqueueUnmapMemObject (call 2): it goes with the map
            - clEnqueueNDRangeKernel (call 3) waits for an event that the program completes: make it an external event
            - clEnqueueNDRangeKernel (call 4) waits for another queue: record both queues into one graph, or give the event to the submission
            - clSetEventCallback after call 4: set it for the event of the whole submission
          2 other runs came once.
        queue 2 (in order): 4 calls in 4 runs
          run 1: 1 call (1 marker or barrier), then clFinish of another queue
            clEnqueueMarkerWithWaitList
            4 times
            It is one call: a graph saves nothing here.
    "#]],
    );
}

/// Rule L5
#[test]
fn waits_within_what_could_be_one_run() {
    reports(
        "waits",
        &expect![[r#"
        queue 1 (in order): 44 calls in 31 runs
          run 1: 2 calls (1 kernel, 1 read), of which the last, clEnqueueReadBuffer, waits
            add, clEnqueueReadBuffer
            10 times
            It can be captured as it is.
          run 2: 1 call (1 kernel), then clFinish
            add
            10 times
          run 3: 1 call (1 kernel), then clWaitForEvents
            scale
            9 times
          Runs 1, 2 and 3 come one after another, 9 times or more. They are one run of 4 calls for a program that does without these waits: the blocking clEnqueueReadBuffer, call 2; clFinish after call 3.
          2 other runs came once.
    "#]],
    );
}

/// Rule L5
#[test]
fn a_loop_between_two_waits() {
    reports(
        "turns",
        &expect![[r#"
        queue 1 (in order): 1 004 calls in 2 runs
          run 1: 1 002 calls (1 000 kernels, 1 fill, 1 read), of which the last, clEnqueueReadBuffer, waits
            clEnqueueFillBuffer, scale, add, clEnqueueReadBuffer
            once
            Calls 2 and 3 come 500 times in a row: capture them once, or several turns of them.
            It can be captured. Each submission has to give:
            - argument 1 of scale (call 2)
          1 other run came once.
    "#]],
    );
}

/// Rule L5
#[test]
fn more_calls_than_are_kept() {
    reports(
        "long",
        &expect![[r#"
        queue 1 (in order): 10 004 calls in 2 runs
          run 1: 10 002 calls (10 000 kernels, 1 fill, 1 read), of which the last waits
            clEnqueueFillBuffer, scale, add, scale
            once
            Its first 4 096 calls were looked at one by one:
            Calls 2 and 3 come 2 047 times or more in a row: capture them once, or several turns of them.
            It can be captured. Each submission has to give:
            - argument 1 of scale (call 2)
          1 other run came once.
    "#]],
    );
}

/// Rule L5
#[test]
fn a_program_that_polls() {
    reports(
        "polls",
        &expect![[r#"
        queue 1 (in order): 13 calls in 7 runs
          run 1: 2 calls (2 kernels), then clGetEventInfo
            scale, add
            5 times
            It can be captured as it is.
          2 other runs came once.
    "#]],
    );
}

/// Rule L5
#[test]
fn two_threads_with_queues_of_their_own() {
    reports(
        "threads",
        &expect![[r#"
            queue 1 (in order): 604 calls in 202 runs by 2 threads
              run 1: 3 calls (2 kernels, 1 fill), then clFinish
                clEnqueueFillBuffer, scale, add
                199 times
                It can be captured as it is.
              3 other runs came once.
            queue 2 (in order): 604 calls in 202 runs by 2 threads
              run 1: 3 calls (2 kernels, 1 fill), then clFinish
                clEnqueueFillBuffer, scale, add
                199 times
                It can be captured as it is.
              3 other runs came once.
        "#]],
    );
}

/// Rule L5
#[test]
fn two_threads_with_one_queue() {
    reports(
        "one-queue",
        &expect![[r#"
        queue 1 (in order): 802 calls in 402 runs by 2 threads
          run 1: 2 calls (1 kernel, 1 fill), then clFinish
            clEnqueueFillBuffer, scale
            400 times
            It can be captured. Each submission has to give:
            - the memory in argument 0 of scale (call 2)
            - the memory of clEnqueueFillBuffer (call 1)
            - the pattern of clEnqueueFillBuffer (call 1)
          run 2: 1 call (1 read), which waits
            clEnqueueReadBuffer
            2 times
            It is one call: a graph saves nothing here.
    "#]],
    );
}

/// Rule L5
#[test]
fn a_queue_for_each_run() {
    reports(
        "queues",
        &expect![[r#"
        queue 1 (in order): 1 200 calls in 600 runs
          These are 300 queues, one after another: a graph can be submitted to any of them.
          run 1: 2 calls (2 writes), of which the last, clEnqueueWriteBuffer, waits
            clEnqueueWriteBuffer x 2
            300 times
            It can be captured. Each submission has to give:
            - the memory of clEnqueueWriteBuffer (calls 1 and 2)
            Calls 1 and 2 read the same memory of the program each time: it has to stay, or each submission gives the data.
          run 2: 2 calls (1 kernel, 1 fill), then clFinish
            clEnqueueFillBuffer, scale
            300 times
            It can be captured. Each submission has to give:
            - the memory in argument 0 of scale (call 2)
            - the memory of clEnqueueFillBuffer (call 1)
          Runs 1 and 2 come one after another, 300 times or more. They are one run of 4 calls for a program that does without this wait: the blocking clEnqueueWriteBuffer, call 2.
    "#]],
    );
}

/// Rule L5
#[test]
fn a_program_that_releases_nothing() {
    reports(
        "leaves",
        &expect![[r#"
        queue 1 (in order): 254 calls in 53 runs
          run 1: 5 calls (3 kernels, 1 copy, 1 fill), then clFinish
            clEnqueueFillBuffer, clEnqueueCopyBuffer, scale, add, scale
            50 times
            It can be captured as it is.
          3 other runs came once.
    "#]],
    );
}

/// Rule L5: relative to the folder of the program's begin; what is there stays.
#[test]
fn reports_go_to_the_end_of_a_file() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let name = format!("report-{}.txt", std::process::id());
    let file = folder.join(&name);
    for _ in 0..2 {
        let mut command = Command::new(program());
        command.arg("polls").current_dir(folder).env("OPENCL_LAYERS", layer()).env(REPORT, &name);
        assert_eq!(run(&mut command).error, "");
    }
    let text = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!(text.matches("clgraph_layer: what ").count(), 2, "{text}");
    assert_eq!(text.matches("\n    5 times; to enqueue it takes ").count(), 2, "{text}");
}

/// Rule L5
#[test]
fn a_report_that_cannot_be_written_is_said() {
    // A pipe without a reader is not waited for.
    let pipe = std::env::temp_dir().join(format!("pipe-{}.txt", std::process::id()));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let said = with_layer(&program(), &["polls"], Some(pipe.to_str().unwrap()));
    fs::remove_file(&pipe).unwrap();
    assert!(said.error.starts_with("clgraph_layer: the report cannot be written to "), "{}", said.error);
    assert!(said.error.contains("clgraph_layer: what "), "{}", said.error);
    let said = with_layer(&program(), &["polls"], Some("/no/such/folder/report.txt"));
    let begin = "clgraph_layer: the report cannot be written to /no/such/folder/report.txt: ";
    assert!(said.error.starts_with(begin), "{}", said.error);
    assert!(said.error.contains("\nqueue 1 (in order): "), "{}", said.error);
    let said = with_layer(&program(), &["polls"], Some("yes"));
    assert!(said.error.starts_with("clgraph_layer: CLGRAPH_LAYER_REPORT is `yes`"), "{}", said.error);
    assert!(!said.error.contains("queue 1"), "{}", said.error);
}

/// Rule L2: a program whose standard error nobody reads ends as it does without the layer. (rusticl warns there, and ends it.)
#[test]
fn a_report_that_nobody_reads_ends_no_program() {
    let run = |layer: Option<(&str, PathBuf)>, report: Option<(&str, &str)>| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(program());
        command.arg("waits").env_remove("OPENCL_LAYERS").env_remove(REPORT).envs(layer).envs(report).stderr(writer);
        let output = command.output().unwrap();
        (output.status, output.stdout)
    };
    let alone = run(None, None);
    for value in ["1", "yes"] {
        assert_eq!(run(Some(("OPENCL_LAYERS", layer())), Some((REPORT, value))), alone, "{value}");
    }
}

/// Rule L2: loaders leave the second out, or the layer refuses it: see `tests/loader.rs`.
#[test]
fn the_layer_is_loaded_once() {
    let twice = format!("{0}:{0}", layer().display());
    let said = run(Command::new(program()).arg("same").env("OPENCL_LAYERS", twice).env(REPORT, "1"));
    assert_eq!(said.out, without_layer(&program(), &["same"]).out);
    assert_eq!(said.error.matches("clgraph_layer: what ").count(), 1, "{}", said.error);
    assert!(said.error.contains("\n    1 000 times; "), "{}", said.error);
}
