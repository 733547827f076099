//! What libraries enqueue: CLBlast and clFFT, which ./ci/setup installs.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

mod common;

use std::ffi::c_void;

use clgraph::{Buffer, Finalize, Graph, NodeKind, Queue};
use common::{compiled, in_a_process_with_layer, plain, with_layer, without_layer};
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

/// `CLBlastSaxpy`: y = alpha * x + y.
type Saxpy = unsafe extern "C" fn(
    n: usize,
    alpha: f32,
    x: *mut c_void,
    x_offset: usize,
    x_step: usize,
    y: *mut c_void,
    y_offset: usize,
    y_step: usize,
    queue: *mut *mut c_void,
    event: *mut *mut c_void,
) -> i32;

/// Rules L3, X6: a library's kernel is a node of a graph, between others that use the same memory, and gets other memory by its argument.
#[test]
fn kernels_of_a_library_become_nodes() {
    in_a_process_with_layer("kernels_of_a_library_become_nodes", || {
        let queue = Queue::new(&clgraph::best_device().unwrap()).unwrap();
        // SAFETY: CLBlast's function with its type (clblast_c.h).
        let saxpy = unsafe {
            let library = libc::dlopen(c"libclblast.so.1".as_ptr(), libc::RTLD_NOW);
            assert!(!library.is_null(), "./ci/setup installs CLBlast");
            std::mem::transmute::<*mut c_void, Saxpy>(libc::dlsym(library, c"CLBlastSaxpy".as_ptr()))
        };
        const LEN: usize = 1024;
        let buffer = |value: f32| Buffer::from_slice(&queue, &[value; LEN]).unwrap();
        let (x, other, y) = (buffer(3.0), buffer(50.0), buffer(0.0));
        let add = |alpha: f32| {
            let mut raw = queue.raw();
            // SAFETY: live buffers of that length, and a live queue.
            let status = unsafe { saxpy(LEN, alpha, x.raw(), 0, 1, y.raw(), 0, 1, &raw mut raw, std::ptr::null_mut()) };
            assert_eq!(status, 0);
        };
        // It compiles at the first call.
        add(1.0);
        queue.finish().unwrap();
        let graph = Graph::new(&queue).unwrap();
        graph.fill(&y, 10.0_f32).add().unwrap();
        // SAFETY: CLBlast's kernels stay in the memory that they are given.
        let captured = unsafe {
            graph.capture(&queue, || {
                add(2.0);
                Ok(())
            })
        };
        let node = *captured.unwrap().nodes.last().unwrap();
        assert_eq!(graph.kind(node).unwrap(), NodeKind::Kernel);
        let result = graph.read(&y).add().unwrap();
        let executable = graph.finalize(Finalize::new().updatable()).unwrap();
        for _ in 0..2 {
            let run = executable.submit(&queue).unwrap();
            run.wait().unwrap();
            assert_eq!(*run.get(&result).unwrap(), [16.0; LEN]);
        }
        let memory: Vec<u32> = (0..graph.kernel_of(node).unwrap().num_args()).collect();
        // Of its arguments, the first that takes memory is x.
        // SAFETY: memory of the same size.
        let took = memory.into_iter().find(|index| unsafe { graph.set_arg(node, *index as usize, &other) }.is_ok());
        assert!(took.is_some(), "{:?}", graph.kernel_of(node));
        executable.update(&node).unwrap();
        let run = executable.submit(&queue).unwrap();
        run.wait().unwrap();
        assert_eq!(*run.get(&result).unwrap(), [110.0; LEN]);
    });
}

/// What is used of clFFT (clFFT.h).
struct Transforms(*mut c_void);

/// `clfftSetupData`.
#[repr(C)]
struct Setup {
    version: [u32; 3],
    flags: u64,
}

type PlanHandle = usize;
type SetupFft = unsafe extern "C" fn(*const Setup) -> i32;
type CreatePlan = unsafe extern "C" fn(*mut PlanHandle, *mut c_void, i32, *const usize) -> i32;
type SetOne = unsafe extern "C" fn(PlanHandle, i32) -> i32;
type Bake = unsafe extern "C" fn(PlanHandle, u32, *mut *mut c_void, *mut c_void, *mut c_void) -> i32;
type Transform = unsafe extern "C" fn(
    PlanHandle,
    direction: i32,
    queues: u32,
    *mut *mut c_void,
    waits: u32,
    *const *mut c_void,
    *mut *mut c_void,
    input: *mut *mut c_void,
    output: *mut *mut c_void,
    room: *mut c_void,
) -> i32;

impl Transforms {
    fn new() -> Self {
        // SAFETY: a library that runs no code of this program when it is loaded.
        let library = unsafe { libc::dlopen(c"libclFFT.so.2".as_ptr(), libc::RTLD_NOW) };
        assert!(!library.is_null(), "./ci/setup installs clFFT");
        Self(library)
    }

    /// # Safety
    /// `F` is the type of the function.
    unsafe fn function<F: Copy>(&self, name: &std::ffi::CStr) -> F {
        // SAFETY: a loaded library.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?}");
        // SAFETY: the caller's promise; a pointer to a function is as large as one to data.
        unsafe { std::mem::transmute_copy(&found) }
    }
}

/// Rules L3, X6: transforms by clFFT are nodes of a graph, between a write and a read of it.
#[test]
fn transforms_become_nodes() {
    const LEN: usize = 2 * 32 * 64;
    in_a_process_with_layer("transforms_become_nodes", || {
        let queue = Queue::new(&clgraph::best_device().unwrap()).unwrap();
        let (of, mut plan, mut raw) = (Transforms::new(), 0, queue.raw());
        // SAFETY: clFFT's functions with their types; a live context and queue; two lengths for two dimensions. Single precision,
        // interleaved, in place, which are 1.
        unsafe {
            let setup = Setup { version: [2, 12, 2], flags: 0 };
            assert_eq!(of.function::<SetupFft>(c"clfftSetup")(&raw const setup), 0);
            let create: CreatePlan = of.function(c"clfftCreateDefaultPlan");
            assert_eq!(create(&raw mut plan, queue.context().raw(), 2, [32_usize, 64].as_ptr()), 0);
            for name in [c"clfftSetPlanPrecision", c"clfftSetResultLocation"] {
                assert_eq!(of.function::<SetOne>(name)(plan, 1), 0);
            }
            let bake: Bake = of.function(c"clfftBakePlan");
            assert_eq!(bake(plan, 1, &raw mut raw, std::ptr::null_mut(), std::ptr::null_mut()), 0);
        }
        // SAFETY: as above.
        let enqueue: Transform = unsafe { of.function(c"clfftEnqueueTransform") };
        let transform = |direction: i32, memory: &Buffer<f32>| {
            let (mut raw, mut memory, none) = (queue.raw(), memory.raw(), std::ptr::null_mut::<c_void>());
            let (list, events) = (std::ptr::null(), std::ptr::null_mut());
            // SAFETY: a baked plan, live objects, and a buffer with room for 32 times 64 complex numbers.
            let status = unsafe {
                enqueue(plan, direction, 1, &raw mut raw, 0, list, events, &raw mut memory, std::ptr::null_mut(), none)
            };
            assert_eq!(status, 0);
        };
        let data = |seed: usize| (0..LEN).map(|at| ((at * 7 + seed) % 5) as f32).collect::<Vec<f32>>();
        let (memory, eager) = (Buffer::<f32>::new(&queue, LEN).unwrap(), Buffer::<f32>::new(&queue, LEN).unwrap());
        let graph = Graph::new(&queue).unwrap();
        let write = graph.write(&memory, data(0)).add().unwrap();
        // SAFETY: clFFT's kernels stay in the memory that they are given.
        let captured = unsafe {
            graph.capture(&queue, || {
                transform(-1, &memory);
                Ok(())
            })
        };
        assert!(captured.unwrap().nodes.len() > 1);
        let spectrum = graph.read(&memory).add().unwrap();
        // SAFETY: as above.
        let captured = unsafe {
            graph.capture(&queue, || {
                transform(1, &memory);
                Ok(())
            })
        };
        captured.unwrap();
        let back = graph.read(&memory).add().unwrap();
        let executable = graph.finalize(Finalize::new()).unwrap();
        for seed in 0..3 {
            let run = executable.submit_to(&queue).with(&write, data(seed)).submit().unwrap();
            run.wait().unwrap();
            let content = |buffer: &Buffer<f32>| {
                let mut content = vec![0.0_f32; LEN];
                queue.enqueue_read_buffer(buffer, 0, &mut content, &[]).unwrap();
                content
            };
            queue.enqueue_write_buffer(&eager, 0, &data(seed), &[]).unwrap();
            transform(-1, &eager);
            assert_eq!(*run.get(&spectrum).unwrap(), content(&eager)[..]);
            transform(1, &eager);
            assert_eq!(*run.get(&back).unwrap(), content(&eager)[..]);
            let near = run.get(&back).unwrap().iter().zip(data(seed)).all(|(found, was)| (found - was).abs() < 1e-3);
            assert!(near, "forward and back");
        }
    });
}
