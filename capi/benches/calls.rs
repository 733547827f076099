//! What a call costs from C, beside the same call from Rust, in the same rounds. `cargo bench --package clgraph-capi`.
//!
//! The C functions come from `libclgraph.so` by `dlopen`, as a program in C gets them. Both submit empty graphs and update one
//! parameter, on the OpenCL driver that programs find.

use std::ffi::{CStr, c_int, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use dlopen2::raw::Library;

type Handle = *mut c_void;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Node {
    graph: u64,
    index: u32,
    part: u32,
}

/// The functions of the C library that are called, under their names there.
macro_rules! functions {
    ($($name:ident($($of:ty),*);)*) => {
        struct C {
            $($name: unsafe extern "C" fn($($of),*) -> c_int,)*
            clg_last_error: unsafe extern "C" fn() -> *const std::ffi::c_char,
        }

        impl C {
            fn load(library: &Library) -> Self {
                // SAFETY: the types are those of `clgraph.h`.
                unsafe {
                    Self {
                        $($name: library.symbol(stringify!($name)).unwrap(),)*
                        clg_last_error: library.symbol("clg_last_error").unwrap(),
                    }
                }
            }
        }
    };
}

functions! {
    clg_queue_from_cl(*mut c_void, *mut Handle);
    clg_graph_create(Handle, *mut Handle);
    clg_graph_empty(Handle, *const c_void, *mut Node);
    clg_graph_finalize(Handle, *const c_void, *mut Handle);
    clg_executable_submit(Handle, Handle, *const c_void, *mut *mut c_void, *mut Handle);
    clg_submission_wait(Handle);
    clg_submission_release(Handle);
    clg_parameter_create(*const c_void, usize, *mut Handle);
    clg_parameter_set(Handle, *const c_void, usize);
    clg_graph_size(Handle, *mut usize);
}

impl C {
    fn check(&self, status: c_int) {
        // SAFETY: a text, which stays until the next call fails.
        assert!(status == 0, "{:?}", unsafe { CStr::from_ptr((self.clg_last_error)()) });
    }
}

/// Runs two pieces of code in turns, and prints the median time of a call of each, in nanoseconds, and the difference.
fn compare(what: &str, calls: u32, mut rust: impl FnMut(), mut c: impl FnMut()) {
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..60 {
        let mut one = |which: usize| {
            let start = Instant::now();
            for _ in 0..calls {
                if which == 0 { rust() } else { c() }
            }
            times[which].push(start.elapsed().as_secs_f64() * 1e9 / f64::from(calls));
        };
        let first = round % 2;
        one(first);
        one(1 - first);
    }
    let quantile = |times: &mut Vec<f64>, share: usize| {
        times.sort_by(f64::total_cmp);
        times[times.len() * share / 4]
    };
    let [rust, c] = &mut times;
    let (low, middle, high) = (quantile(c, 1), quantile(c, 2), quantile(c, 3));
    let plain = quantile(rust, 2);
    println!("{what:<40} {plain:>9.0} {middle:>9.0} {:>9.0} {:>9.0}", middle - plain, high - low);
}

fn library() -> PathBuf {
    // `cargo bench` builds no library for C, and one that is there may be old.
    let built =
        Command::new(env!("CARGO")).args(["build", "--locked", "--release", "--package", "clgraph-capi"]).status();
    assert!(built.is_ok_and(|status| status.success()), "`cargo build --release --package clgraph-capi` failed");
    let program = std::env::current_exe().unwrap();
    let found = program.ancestors().map(|folder| folder.join("libclgraph.so")).find(|file| file.exists());
    found.expect("`cargo build --release --package clgraph-capi` has built no libclgraph.so beside this program")
}

fn main() {
    let path: &Path = &library();
    let library = Library::open(path).unwrap();
    let c = C::load(&library);
    let queue = rust::Queue::new(&rust::best_device().unwrap()).unwrap();
    let graph = rust::Graph::new(&queue).unwrap();
    let executable = graph.finalize(rust::Finalize::new()).unwrap();
    let parameter = rust::Parameter::any_bytes(&[0; 4]);

    let null = std::ptr::null_mut;
    let (mut c_queue, mut c_graph, mut c_executable, mut c_parameter) = (null(), null(), null(), null());
    let number = 1_u32;
    // SAFETY: as `clgraph.h` says; the queue lives.
    unsafe {
        c.check((c.clg_queue_from_cl)(queue.raw(), &mut c_queue));
        c.check((c.clg_graph_create)(c_queue, &mut c_graph));
        c.check((c.clg_graph_finalize)(c_graph, null(), &mut c_executable));
        c.check((c.clg_parameter_create)((&raw const number).cast(), 4, &mut c_parameter));
    }
    println!("{:<40} {:>9} {:>9} {:>9} {:>9}", "nanoseconds a call (median)", "Rust", "C", "more", "spread");
    compare(
        "number of nodes",
        10_000,
        || assert_eq!(std::hint::black_box(&graph).len(), 0),
        || {
            let mut size = 9;
            // SAFETY: as above.
            unsafe { (c.clg_graph_size)(c_graph, &mut size) };
            assert_eq!(size, 0);
        },
    );
    compare(
        "set a parameter of four bytes",
        10_000,
        || parameter.set(&number.to_ne_bytes()).unwrap(),
        // SAFETY: as above.
        || unsafe { c.check((c.clg_parameter_set)(c_parameter, (&raw const number).cast(), 4)) },
    );
    compare(
        "submit an empty graph, wait, release",
        2_000,
        || executable.submit(&queue).unwrap().wait().unwrap(),
        || {
            let mut run = null();
            // SAFETY: as above.
            unsafe {
                c.check((c.clg_executable_submit)(c_executable, c_queue, null(), std::ptr::null_mut(), &mut run));
                c.check((c.clg_submission_wait)(run));
                c.check((c.clg_submission_release)(run));
            }
        },
    );
    let (many, mut c_many) = (rust::Graph::new(&queue).unwrap(), null());
    // SAFETY: as above.
    unsafe { c.check((c.clg_graph_create)(c_queue, &mut c_many)) };
    compare(
        "add an empty node",
        1_000,
        || {
            let _ = many.empty().add().unwrap();
        },
        || {
            let mut node = Node::default();
            // SAFETY: as above.
            unsafe { c.check((c.clg_graph_empty)(c_many, null(), &mut node)) };
        },
    );
}
