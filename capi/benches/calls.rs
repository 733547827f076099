//! What a call costs from C, beside the same call from Rust, in the same rounds. `cargo bench --package clgraph-capi`, with words of
//! the names of rows behind `--` for these rows only.
//!
//! The C functions come from `libclgraph.so` by `dlopen`, as a program in C gets them, on the OpenCL driver that programs find. Each row
//! is a pair of calls that do the same: some on one handle, some on lists of handles.

use std::ffi::{CStr, c_char, c_int, c_void};
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

/// A `clg_range`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Range {
    memory: Handle,
    offset: usize,
    size: usize,
}

/// A `clg_arg`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Arg {
    kind: i32,
    size: usize,
    data: *const c_void,
    range: Range,
    parameter: Handle,
    image: Handle,
    sampler: Handle,
    value_type: i32,
    elementwise: usize,
}

impl Arg {
    fn memory(kind: i32, memory: Handle) -> Self {
        let (null, range) = (std::ptr::null_mut(), Range { memory, offset: 0, size: usize::MAX });
        Self {
            kind,
            size: 0,
            data: null,
            range,
            parameter: null,
            image: null,
            sampler: null,
            value_type: 0,
            elementwise: 0,
        }
    }

    /// A `cl_uint`.
    fn number(number: &u32) -> Self {
        let data = (&raw const *number).cast();
        Self { size: 4, data, value_type: 6, ..Self::memory(0, std::ptr::null_mut()) }
    }
}

/// A `clg_launch`.
#[repr(C)]
struct Launch {
    kernel: Handle,
    args: *const Arg,
    num_args: usize,
    work_dim: u32,
    offset: [usize; 3],
    global: [usize; 3],
    local: [usize; 3],
    bound: [usize; 3],
    indirect: *const c_void,
    num_indirect: usize,
    globals: *const c_void,
    num_globals: usize,
    no_globals: bool,
    prints: bool,
}

/// A `clg_input`.
#[repr(C)]
struct Input {
    write: Node,
    data: *const c_void,
    size: usize,
    release: *const c_void,
    user: *const c_void,
}

/// A list of C, and its length.
#[repr(C)]
struct List(*const c_void, usize);

impl List {
    const NONE: Self = Self(std::ptr::null(), 0);
}

/// A `clg_finalize_options`.
#[repr(C)]
struct FinalizeOptions {
    path: i32,
    updatable: bool,
    profiling: bool,
    result_slots: usize,
    allow_conflicts: bool,
    separate_memory: bool,
    no_autotune: bool,
    commands_per_buffer: usize,
    tuning_cache: *const c_char,
}

// SAFETY: it has no pointer that is not null, and is not written.
unsafe impl Sync for FinalizeOptions {}

/// One path for both: the automatic one is found by timing, and might differ.
static REPLAY: FinalizeOptions = FinalizeOptions {
    path: 2,
    updatable: false,
    profiling: false,
    result_slots: 0,
    allow_conflicts: false,
    separate_memory: false,
    no_autotune: false,
    commands_per_buffer: 0,
    tuning_cache: std::ptr::null(),
};

/// A `clg_submit_options`.
#[repr(C)]
struct SubmitOptions {
    wait_list: List,
    events: List,
    user_events: List,
    submissions: List,
    inputs: List,
    node_events: List,
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
    clg_memory_from_cl(*mut c_void, *mut c_void, *mut Handle);
    clg_program_build(*mut c_void, *const c_char, *const c_char, *const c_void, usize, *mut Handle);
    clg_program_kernel(Handle, *const c_char, *mut Handle);
    clg_graph_kernel(Handle, *const Launch, *const c_void, *mut Node);
    clg_graph_write(Handle, Range, *const c_void, usize, *const c_void, *const c_void, *const c_void, *mut Node);
}

impl C {
    fn check(&self, status: c_int) {
        // SAFETY: a text, which stays until the next call fails.
        assert!(status == 0, "{:?}", unsafe { CStr::from_ptr((self.clg_last_error)()) });
    }
}

/// Runs two pieces of code in turns, and prints the median time of a call of each, in nanoseconds, and the difference.
fn compare(what: &str, calls: u32, mut rust: impl FnMut(), mut c: impl FnMut()) {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if !words.is_empty() && !words.iter().any(|word| what.contains(word)) {
        return;
    }
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
    let executable = graph.finalize(rust::Finalize::new().path(rust::Path::Replay)).unwrap();
    let parameter = rust::Parameter::any_bytes(&[0; 4]);

    let null = std::ptr::null_mut;
    let (mut c_queue, mut c_graph, mut c_executable, mut c_parameter) = (null(), null(), null(), null());
    let number = 1_u32;
    // SAFETY: as `clgraph.h` says; the queue lives.
    unsafe {
        c.check((c.clg_queue_from_cl)(queue.raw(), &mut c_queue));
        c.check((c.clg_graph_create)(c_queue, &mut c_graph));
        c.check((c.clg_graph_finalize)(c_graph, std::ptr::from_ref(&REPLAY).cast(), &mut c_executable));
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
    lists(&c, &queue, c_queue);
}

const SOURCE: &CStr = c"kernel void blend(global const uint *a, global uint *b, global uint *c, uint x, uint y) {
    size_t i = get_global_id(0); b[i] = x * a[i]; c[i] += y;
}";

/// Calls with lists of handles.
fn lists(c: &C, queue: &rust::Queue, c_queue: Handle) {
    let null = std::ptr::null_mut;
    let kernel = rust::Program::from_source(queue, SOURCE.to_str().unwrap()).unwrap().kernel("blend").unwrap();
    let buffers = [(); 3].map(|()| rust::Buffer::<u32>::new(queue, 64).unwrap());
    let (graph, mut c_graph, mut c_program, mut c_kernel) = (rust::Graph::new(queue).unwrap(), null(), null(), null());
    let context = rust::InContext::context(queue).raw();
    let memories = buffers.each_ref().map(|buffer| {
        let mut memory = null();
        // SAFETY: as `clgraph.h` says; the buffers live.
        unsafe { c.check((c.clg_memory_from_cl)(context, buffer.raw(), &mut memory)) };
        memory
    });
    // SAFETY: as above.
    unsafe {
        c.check((c.clg_graph_create)(c_queue, &mut c_graph));
        c.check((c.clg_program_build)(context, SOURCE.as_ptr(), std::ptr::null(), null(), 0, &mut c_program));
        c.check((c.clg_program_kernel)(c_program, c"blend".as_ptr(), &mut c_kernel));
    }
    let (x, y) = (3, 5);
    compare(
        "add a kernel with five arguments",
        500,
        || {
            let launch =
                graph.kernel(&kernel).read(&buffers[0]).write(&buffers[1]).read_write(&buffers[2]).arg(x).arg(y);
            // SAFETY: the kernel stays inside its buffers.
            let _ = unsafe { launch.range(64).add() }.unwrap();
        },
        || {
            let [a, b, c_] = memories;
            let args = [Arg::memory(1, a), Arg::memory(2, b), Arg::memory(3, c_), Arg::number(&x), Arg::number(&y)];
            let launch = Launch {
                kernel: c_kernel,
                args: args.as_ptr(),
                num_args: args.len(),
                work_dim: 1,
                offset: [0; 3],
                global: [64, 0, 0],
                local: [0; 3],
                bound: [0; 3],
                indirect: null(),
                num_indirect: 0,
                globals: null(),
                num_globals: 0,
                no_globals: false,
                prints: false,
            };
            let mut node = Node::default();
            // SAFETY: as above.
            unsafe { c.check((c.clg_graph_kernel)(c_graph, &launch, null(), &mut node)) };
        },
    );
    let data = [7_u32; 64];
    let (graph, mut c_graph, mut c_executable) = (rust::Graph::new(queue).unwrap(), null(), null());
    let writes = buffers.each_ref().map(|buffer| graph.write(buffer, data.to_vec()).add().unwrap());
    let executable = graph.finalize(rust::Finalize::new().path(rust::Path::Replay)).unwrap();
    // SAFETY: as above.
    unsafe { c.check((c.clg_graph_create)(c_queue, &mut c_graph)) };
    let c_writes = memories.map(|memory| {
        let (mut node, range) = (Node::default(), Range { memory, offset: 0, size: usize::MAX });
        let from = (&raw const data).cast();
        // SAFETY: as above.
        unsafe { c.check((c.clg_graph_write)(c_graph, range, from, 256, null(), null(), null(), &mut node)) };
        node
    });
    // SAFETY: as above.
    unsafe { c.check((c.clg_graph_finalize)(c_graph, std::ptr::from_ref(&REPLAY).cast(), &mut c_executable)) };
    compare(
        "submit with three inputs, wait, release",
        1_000,
        || {
            let submit =
                writes.iter().fold(executable.submit_to(queue), |submit, write| submit.with(write, data.to_vec()));
            submit.submit().unwrap().wait().unwrap();
        },
        || {
            let data = (&raw const data).cast();
            let inputs = c_writes.map(|write| Input { write, data, size: 256, release: null(), user: null() });
            let given = SubmitOptions {
                wait_list: List::NONE,
                events: List::NONE,
                user_events: List::NONE,
                submissions: List::NONE,
                inputs: List(inputs.as_ptr().cast(), inputs.len()),
                node_events: List::NONE,
            };
            let mut run = null();
            // SAFETY: as above.
            unsafe {
                let given = (&raw const given).cast();
                c.check((c.clg_executable_submit)(c_executable, c_queue, given, std::ptr::null_mut(), &mut run));
                c.check((c.clg_submission_wait)(run));
                c.check((c.clg_submission_release)(run));
            }
        },
    );
}
