//! The same captured kernels, enqueued as a command buffer of the layer and submitted as a graph of clgraph, in one process.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::time::{Duration, Instant};

use clgraph::{Buffer, CommandKind, Finalize, Graph, Kernel, Path, Program, Queue};
use opencl3::types::{cl_command_queue, cl_int};

type Begin = unsafe extern "system" fn(cl_command_queue, *const u64) -> cl_int;
type End = unsafe extern "system" fn(cl_command_queue, *mut *mut c_void) -> cl_int;
type Enqueue = unsafe extern "system" fn(
    u32,
    *const cl_command_queue,
    *mut c_void,
    u32,
    *const *mut c_void,
    *mut *mut c_void,
) -> cl_int;

const ROUNDS: usize = 101;
const COUNTS: [u32; 3] = [10, 100, 1000];

/// A function of the layer's.
///
/// # Safety
/// `F` is the type of the function of that name.
unsafe fn function<F: Copy>(queue: &Queue, name: &str) -> F {
    type Find = unsafe extern "system" fn(*mut c_void, *const c_char) -> *mut c_void;
    let platform = queue.device().to_opencl3().platform();
    let name = CString::new(name).expect("a name");
    // SAFETY: the loader that is there already, its function with its type (CL/cl.h), and a live platform.
    let address = unsafe {
        let loader = libc::dlopen(c"libOpenCL.so.1".as_ptr(), libc::RTLD_NOW);
        let find = libc::dlsym(loader, c"clGetExtensionFunctionAddressForPlatform".as_ptr());
        std::mem::transmute::<*mut c_void, Find>(find)(platform.expect("a platform"), name.as_ptr())
    };
    assert!(!address.is_null(), "the layer has {name:?}");
    // SAFETY: the caller's promise.
    unsafe { ptr::from_ref(&address).cast::<F>().read() }
}

/// What all variants launch: a kernel of one work-item.
fn counting() -> (Queue, Kernel, Buffer<u32>) {
    let queue = Queue::new(&clgraph::best_device().expect("a device")).expect("a queue");
    let source = "kernel void count(global uint *a, uint by) { *a += by; }";
    let kernel = Program::from_source(&queue, source).and_then(|program| program.kernel("count")).expect("a kernel");
    let memory = Buffer::from_slice(&queue, &[0_u32]).expect("a buffer");
    (queue, kernel, memory)
}

/// The same kernels by the driver's own command buffers, in a process without the layer.
pub fn native() {
    let (queue, kernel, memory) = counting();
    if queue.device().caps().can_record(CommandKind::Kernel).is_err() {
        return println!("  the driver has no command buffers of its own");
    }
    for count in COUNTS {
        let graph = Graph::new(&queue).expect("a graph");
        for by in 0..count {
            // SAFETY: one work-item counts in its buffer.
            unsafe { graph.kernel(&kernel).read_write(&memory).arg(by).range(1).add() }.expect("a node");
        }
        let executable = graph.finalize(Finalize::new().path(Path::Native)).expect("an executable");
        let mut times = Vec::new();
        for round in 0..ROUNDS + 10 {
            let begun = Instant::now();
            drop(executable.submit(&queue).expect("a submission"));
            let enqueued = begun.elapsed();
            queue.finish().expect("it ends");
            if round >= 10 {
                times.push([enqueued, begun.elapsed()]);
            }
        }
        println!("  {count} kernels: enqueue {:.1}, until all has run {:.1}", median(&times, 0), median(&times, 1));
    }
}

/// In microseconds.
fn median(times: &[[Duration; 2]], what: usize) -> f64 {
    let mut all: Vec<Duration> = times.iter().map(|times| times[what]).collect();
    all.sort_unstable();
    all[all.len() / 2].as_secs_f64() * 1e6
}

pub fn compare() {
    let (queue, kernel, memory) = counting();
    let launches = |count: u32| {
        let object = kernel.to_opencl3().expect("a kernel object");
        for by in 0..count {
            let mut launch = opencl3::kernel::ExecuteKernel::new(&object);
            // SAFETY: the kernel's arguments, and one work-item.
            unsafe {
                launch.set_arg(&memory.raw()).set_arg(&by).set_global_work_size(1);
                launch.enqueue_nd_range(&queue.to_opencl3().expect("a queue")).expect("a launch");
            }
        }
    };
    // SAFETY: clgraph_layer.h and cl_ext.h.
    let (begin, end, enqueue) = unsafe {
        (
            function::<Begin>(&queue, "clBeginCaptureCLG"),
            function::<End>(&queue, "clEndCaptureCLG"),
            function::<Enqueue>(&queue, "clEnqueueCommandBufferKHR"),
        )
    };
    for count in COUNTS {
        let mut buffer = ptr::null_mut();
        // SAFETY: a live queue, and a place.
        unsafe {
            assert_eq!(begin(queue.raw(), ptr::null()), 0);
            launches(count);
            assert_eq!(end(queue.raw(), &raw mut buffer), 0);
        }
        let graph = Graph::new(&queue).expect("a graph");
        // SAFETY: one work-item counts in its buffer.
        unsafe {
            graph.capture(&queue, || {
                launches(count);
                Ok(())
            })
        }
        .expect("a capture");
        let executable = graph.finalize(Finalize::new()).expect("an executable");
        let mut times: [Vec<[Duration; 2]>; 2] = [const { Vec::new() }; 2];
        for round in 0..2 * ROUNDS + 20 {
            let begun = Instant::now();
            if round % 2 == 0 {
                // SAFETY: a command buffer of the queue.
                assert_eq!(unsafe { enqueue(0, ptr::null(), buffer, 0, ptr::null(), ptr::null_mut()) }, 0);
            } else {
                drop(executable.submit(&queue).expect("a submission"));
            }
            let enqueued = begun.elapsed();
            queue.finish().expect("it ends");
            if round >= 20 {
                times[round % 2].push([enqueued, begun.elapsed()]);
            }
        }
        for (what, name) in ["enqueue", "until all has run"].iter().enumerate() {
            let (buffer, graph) = (median(&times[0], what), median(&times[1], what));
            println!("  {count} kernels, {name}: {buffer:.1}, {graph:.1}: {:.2} of the graph", buffer / graph);
        }
        // SAFETY: the type is that of the header, and the one reference.
        unsafe {
            type Release = unsafe extern "system" fn(*mut c_void) -> cl_int;
            assert_eq!(function::<Release>(&queue, "clReleaseCommandBufferKHR")(buffer), 0);
        }
    }
}
