//! Reads handwritten digits by their nearest neighbour: of 1 497 known digits, the one at the smallest angle. All angles at once are a
//! product of two matrices, which a library computes: CLBlast, recorded as a native command between kernels.
//!
//! Needs CLBlast (`apt-get install libclblast1`). `cargo run --release --example 06_clblast`

mod clblast;
#[path = "../data/digits.rs"]
mod digits;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use clblast::Clblast;
use clgraph::{Buffer, ExecuteKernel, Finalize, Graph, NativeCommand, Program, Queue};
use digits::{POINTS, Samples};

const KERNELS: &str = include_str!("../../kernels-cl/neighbours.cl");
/// Of so many digits one is to be read, and the others are known.
const READ: usize = 6;
const ROUNDS: u32 = 50;

fn main() -> ExitCode {
    env_logger::init();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("06_clblast: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let samples = Samples::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/digits.csv.gz"))?;
    let all: Vec<(&[f32], u32)> = samples.images.chunks(POINTS).zip(samples.labels.iter().copied()).collect();
    let (unread, known): (Vec<_>, Vec<_>) = (0..all.len()).partition(|at| at.is_multiple_of(READ));
    let images = |of: &[usize]| of.iter().flat_map(|at| all[*at].0).copied().collect::<Vec<f32>>();
    let (m, n) = (unread.len(), known.len());

    let device = clgraph::best_device()?;
    let clblast = Clblast::load()?;
    println!("device     {} ({}, OpenCL {})", device.name(), device.caps().platform, device.caps().version);
    let queue = Queue::new(&device)?;
    let program = Program::from_source(&queue, KERNELS)?;
    let (to_unit, largest) = (program.kernel("to_unit")?, program.kernel("largest")?);
    let (unread_images, known_images) = (images(&unread), images(&known));
    let (a, b) = (Buffer::from_slice(&queue, &unread_images)?, Buffer::from_slice(&queue, &known_images)?);

    let graph = Graph::new(&queue)?;
    let result = graph.record(&queue, || -> clgraph::Result<_> {
        // What lies between the commands is memory of the graph's own.
        let (a_unit, b_unit) =
            (queue.enqueue_alloc::<f32>(m * POINTS, &[])?, queue.enqueue_alloc::<f32>(n * POINTS, &[])?);
        let (cosines, nearest) = (queue.enqueue_alloc::<f32>(m * n, &[])?, queue.enqueue_alloc::<u32>(m, &[])?);
        for (images, unit, rows) in [(&a, &a_unit, m), (&b, &b_unit, n)] {
            let mut launch = ExecuteKernel::new(&to_unit);
            launch.set_arg(images).set_arg(unit).set_global_work_size(rows);
            // SAFETY: a work-item touches its own row of each.
            unsafe { launch.enqueue_nd_range(&queue)? };
        }
        // What it reads and writes, in this order, is the memory that `product` finds by number.
        let product = NativeCommand::enqueued(move |to| clblast.product(to, [m, n, POINTS]));
        let product = product.reads(&a_unit).reads(&b_unit).writes(&cosines);
        // SAFETY: CLBlast enqueues to the queue that it is given, and touches the three matrices and temporary buffers of
        // its own, which OpenCL keeps until the commands are complete.
        unsafe { queue.enqueue_native_command(product, &[])? };
        let mut launch = ExecuteKernel::new(&largest);
        launch.set_arg(&cosines).set_arg(&nearest).set_arg(&(n as u32)).set_global_work_size(m);
        // SAFETY: a work-item reads its own row, of `n` numbers, and writes its own element.
        unsafe { launch.enqueue_nd_range(&queue)? };
        queue.enqueue_read_buffer_owned(&nearest, 0, m, &[])?.host_read()
    })?;
    let executable = graph.finalize(Finalize::new())?;
    for line in executable.report().to_string().lines() {
        println!("           {line}");
    }

    // The first time CLBlast builds its kernels.
    let begin = Instant::now();
    let run = executable.submit(&queue)?;
    run.wait()?;
    println!("first      {:.1?}, with CLBlast's kernels to build", begin.elapsed());
    let said = run.get(&result)?.to_vec();
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        executable.submit(&queue)?.wait()?;
    }
    println!("reads      {m} digits by {n} in {:.2?}", begin.elapsed() / ROUNDS);

    let begin = Instant::now();
    let expected = on_the_cpu(&unread_images, &known_images);
    println!("host       the same in {:.2?}", begin.elapsed());
    // Where two are as near, rounding may choose the other one.
    let close = |at: usize| {
        let cosine = |other: u32| cosine(all[unread[at]].0, all[known[other as usize]].0);
        (cosine(said[at]) - cosine(expected[at])).abs() < 1e-5
    };
    let right = |of: &[u32]| (0..m).filter(|at| all[unread[*at]].1 == all[known[of[*at] as usize]].1).count();
    println!("right      {} of {m} (host: {})", right(&said), right(&expected));
    if let Some(at) = (0..m).find(|at| !close(*at)) {
        let (said, expected) = (said[at], expected[at]);
        return Err(format!("digit {at}: the nearest is {said} on the device, and {expected} on the host").into());
    }
    if right(&said) * 100 < m * 95 {
        return Err(format!("the device reads {} of {m} right: at least 95 % are expected", right(&said)).into());
    }
    Ok(())
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// The nearest known digit of each.
fn on_the_cpu(unread: &[f32], known: &[f32]) -> Vec<u32> {
    let nearest = |image: &[f32]| {
        let cosines: Vec<f32> = known.chunks(POINTS).map(|other| cosine(image, other)).collect();
        (0..cosines.len() as u32)
            .fold(0, |best, at| if cosines[at as usize] > cosines[best as usize] { at } else { best })
    };
    unread.chunks(POINTS).map(nearest).collect()
}
