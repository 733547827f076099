//! What libraries enqueue: CLBlast and clFFT, which ./ci/setup installs.
#![cfg(target_os = "linux")]

mod common;

use common::{compiled, plain, with_layer, without_layer};
use expect_test::{Expect, expect};

fn reports(operation: &str, expected: &Expect) {
    let program = compiled("library.c", &["-l:libclblast.so.1", "-l:libOpenCL.so.1"]);
    let alone = without_layer(&program, &[operation]);
    let said = with_layer(&program, &[operation], Some("1"));
    assert_eq!(said.out, alone.out);
    expected.assert_eq(&plain(&said.error));
}

/// Rule L5: a sum over a temporary buffer, which is made anew each time.
#[test]
fn temporary_memory_of_a_library_is_named() {
    reports(
        "asum",
        &expect![[r#"
        queue 1 (in order): 61 calls in 21 runs
          run 1: 3 calls (3 kernels), then clFinish
            XaxpyFastest, Xasum, XasumEpilogue
            20 times
            It can be captured. Each submission has to give:
            - the memory in argument 0 of XasumEpilogue (call 3)
            - the memory in argument 4 of Xasum (call 2)
          1 other run came once.
    "#]],
    );
}

/// Rule L3: what a library enqueues runs later, gives the same bytes, and is updated.
#[test]
fn captured_libraries_compute_what_they_compute_at_once() {
    let libraries = ["-l:libclblast.so.1", "-l:libclFFT.so.2", "-l:libOpenCL.so.1"];
    let program = compiled("captured_library.c", &libraries);
    for (of, said) in [
        ("gemm", "gemm: 2 kernels\nok\n"),
        ("asum", "asum: 2 kernels\nok\n"),
        ("axpy", "axpy: 1 kernels\nupdated\nok\n"),
        ("trsm", "trsm: 10 kernels\nok\n"),
        ("fft", "fft: 4 kernels\nupdated\nok\n"),
    ] {
        assert_eq!(with_layer(&program, &[of], None).out, said);
    }
}
