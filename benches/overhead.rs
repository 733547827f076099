//! What clgraph itself costs: building, planning and dropping large graphs, and replaying beside a plain loop.
//!
//! `cargo bench --bench overhead`. Rows are medians with the tenth and ninetieth percentile. Machines are noisy, so read
//! the ratios, which are medians of per-round ratios of interleaved rounds, and the row in which the loop is compared
//! with itself.

use std::error::Error;
use std::time::{Duration, Instant};

use clgraph::{Buffer, Executable, Finalize, Graph, InContext, Kernel, Program, Queue};

const SOURCE: &str = concat!(include_str!("../kernels-cl/tests.cl"), include_str!("../kernels-cl/nothing.cl"));
const ROUNDS: usize = 201;
/// A row is bounded by time as well.
const ROW: Duration = Duration::from_secs(4);

fn main() -> Result<(), Box<dyn Error>> {
    let device = clgraph::best_device()?;
    println!("device: {} ({})", device.name(), device.caps().platform);
    let queue = Queue::new(&device)?;
    let program = Program::from_source(&queue, SOURCE)?;
    large_graphs(&queue, &program)?;
    replay(&queue, &program)
}

/// A chain by data of `nodes` kernels, all arguments distinct.
fn chain(queue: &Queue, scale: &Kernel, buffers: &[Buffer<u32>; 2], nodes: usize) -> clgraph::Result<Graph> {
    let graph = Graph::new(queue)?;
    for at in 0..nodes {
        let (from, into) = (&buffers[at % 2], &buffers[(at + 1) % 2]);
        // SAFETY: the one work-item touches the first element of each.
        unsafe { graph.kernel(scale).read(from).write(into).arg(at as u32).range(1).add() }?;
    }
    Ok(graph)
}

fn large_graphs(queue: &Queue, program: &Program) -> Result<(), Box<dyn Error>> {
    println!(
        "\nchains of kernels, all arguments distinct, ns a node (median of 7; build+plan: of copies, which have no OpenCL object to make)"
    );
    println!(
        "{:>8} {:>7} {:>9} {:>8} {:>6} {:>6} | {:>12}",
        "nodes", "build", "finalize", "submit", "drop", "sum", "build+plan"
    );
    let scale = program.kernel("scale")?;
    let buffers = [Buffer::new(queue, 64)?, Buffer::new(queue, 64)?];
    for nodes in [1_000, 10_000, 100_000] {
        let mut times: [Vec<f64>; 5] = Default::default();
        for _ in 0..7 {
            let per_node = |begin: Instant| begin.elapsed().as_nanos() as f64 / nodes as f64;
            let begin = Instant::now();
            let graph = chain(queue, &scale, &buffers, nodes)?;
            times[0].push(per_node(begin));
            let begin = Instant::now();
            let executable = graph.finalize(Finalize::new())?;
            times[1].push(per_node(begin));
            let begin = Instant::now();
            executable.submit_to(queue).submit_detached()?;
            times[2].push(per_node(begin));
            queue.finish()?;
            let begin = Instant::now();
            drop((graph, executable));
            times[3].push(per_node(begin));
            times[4].push(own_time(queue, nodes)?);
        }
        let [build, finalize, submit, drop, own] = times.map(|mut times| percentile(&mut times, 50));
        let sum = build + finalize + submit + drop;
        println!("{nodes:>8} {build:>7.0} {finalize:>9.0} {submit:>8.0} {drop:>6.0} {sum:>6.0} | {own:>12.0}");
    }
    Ok(())
}

/// Building and planning without any OpenCL object: a chain of copies by data.
fn own_time(queue: &Queue, nodes: usize) -> Result<f64, Box<dyn Error>> {
    let buffers = [Buffer::<u32>::new(queue, 64)?, Buffer::new(queue, 64)?];
    let begin = Instant::now();
    let graph = Graph::new(queue)?;
    for at in 0..nodes {
        graph.copy(&buffers[at % 2], &buffers[(at + 1) % 2]).add()?;
    }
    let executable = graph.finalize(Finalize::new())?;
    let time = begin.elapsed().as_nanos() as f64 / nodes as f64;
    drop(executable);
    Ok(time)
}

fn replay(queue: &Queue, program: &Program) -> Result<(), Box<dyn Error>> {
    println!("\nchains of an empty kernel of one work-item, us a graph: submit and wait, {ROUNDS} interleaved rounds");
    println!(
        "{:>6} {:>22} {:>22} {:>10} {:>10} {:>10}",
        "nodes", "loop p10/50/90", "graph p10/50/90", "loop/loop", "graph/loop", "detached"
    );
    let nothing = program.kernel("nothing")?;
    let plain_queue = queue.to_opencl3()?;
    let plain = nothing.to_opencl3()?;
    assert_eq!(queue.context().raw(), program.context().raw());
    for nodes in [1, 4, 10, 32, 100, 929, 10_000] {
        let graph = Graph::new(queue)?;
        for _ in 0..nodes {
            // SAFETY: the kernel does nothing.
            unsafe { graph.kernel(&nothing).range(1).add() }?;
        }
        let executable = graph.finalize(Finalize::new())?;
        let ways: [&dyn Fn() -> Result<(), Box<dyn Error>>; 4] = [
            &|| by_loop(&plain_queue, &plain, nodes),
            &|| by_graph(&executable, queue),
            &|| by_loop(&plain_queue, &plain, nodes),
            &|| detached(&executable, queue),
        ];
        let mut times: [Vec<f64>; 4] = Default::default();
        let begin = Instant::now();
        for round in 0..=ROUNDS {
            for (way, times) in ways.iter().zip(&mut times) {
                let begin = Instant::now();
                way()?;
                if round > 0 {
                    times.push(begin.elapsed().as_nanos() as f64 / 1000.0);
                }
            }
            if begin.elapsed() > ROW {
                break;
            }
        }
        let ratio = |a: usize, b: usize| {
            let mut ratios: Vec<f64> = times[a].iter().zip(&times[b]).map(|(a, b)| a / b).collect();
            percentile(&mut ratios, 50)
        };
        let (again, by_graph, detached) = (ratio(2, 0), ratio(1, 0), ratio(3, 0));
        let show = |times: &[f64]| {
            let mut times = times.to_vec();
            [10, 50, 90].map(|at| format!("{:.1}", percentile(&mut times, at))).join("/")
        };
        println!(
            "{nodes:>6} {:>22} {:>22} {again:>10.3} {by_graph:>10.3} {detached:>10.3}",
            show(&times[0]),
            show(&times[1])
        );
    }
    Ok(())
}

/// As an expert would write it: arguments set beforehand, no events, one wait at the end.
fn by_loop(
    queue: &opencl3::command_queue::CommandQueue,
    kernel: &opencl3::kernel::Kernel,
    nodes: usize,
) -> Result<(), Box<dyn Error>> {
    use opencl3::types::cl_event;
    let library = raw::library()?;
    let one = [1_usize];
    let none = std::ptr::null_mut::<cl_event>();
    for _ in 0..nodes {
        // SAFETY: live objects, one dimension, no lists.
        let status = unsafe {
            (library.enqueue)(
                queue.get(),
                kernel.get(),
                1,
                std::ptr::null(),
                one.as_ptr(),
                std::ptr::null(),
                0,
                std::ptr::null(),
                none,
            )
        };
        assert_eq!(status, 0);
    }
    queue.finish()?;
    Ok(())
}

fn by_graph(executable: &Executable, queue: &Queue) -> Result<(), Box<dyn Error>> {
    executable.submit(queue)?.wait()?;
    Ok(())
}

/// The form without an event, and the same wait as the loop's.
fn detached(executable: &Executable, queue: &Queue) -> Result<(), Box<dyn Error>> {
    executable.submit_to(queue).submit_detached()?;
    opencl3::command_queue::finish(queue.raw()).map_err(opencl3::error_codes::ClError)?;
    Ok(())
}

fn percentile(times: &mut [f64], at: usize) -> f64 {
    times.sort_by(f64::total_cmp);
    times[(times.len() - 1) * at / 100]
}

/// clEnqueueNDRangeKernel itself: `opencl3` asks for an event each time, which an expert's loop would not.
mod raw {
    use std::error::Error;
    use std::ffi::c_void;
    use std::sync::OnceLock;

    use dlopen2::raw::Library;
    use opencl3::types::{cl_command_queue, cl_event, cl_kernel};

    type Enqueue = unsafe extern "system" fn(
        cl_command_queue,
        cl_kernel,
        u32,
        *const usize,
        *const usize,
        *const usize,
        u32,
        *const cl_event,
        *mut cl_event,
    ) -> i32;

    pub struct Functions {
        pub enqueue: Enqueue,
        _library: Library,
    }

    pub fn library() -> Result<&'static Functions, Box<dyn Error>> {
        static LIBRARY: OnceLock<Option<Functions>> = OnceLock::new();
        let load = || {
            let library = Library::open("libOpenCL.so.1").ok()?;
            // SAFETY: the headers' signature of that name.
            let enqueue = unsafe { library.symbol::<*const c_void>("clEnqueueNDRangeKernel") }.ok()?;
            // SAFETY: as above.
            let enqueue = unsafe { std::mem::transmute::<*const c_void, Enqueue>(enqueue) };
            Some(Functions { enqueue, _library: library })
        };
        Ok(LIBRARY.get_or_init(load).as_ref().ok_or("no libOpenCL.so.1")?)
    }
}
