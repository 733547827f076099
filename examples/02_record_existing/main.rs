//! Lets heat spread through a plate: by a program as it was written for `opencl3`, by the same program after it moved to
//! clgraph's queue, and by a graph recorded from it. All three must agree to the last bit.
//!
//! The plate is a photograph: bright is hot, and what is in the picture's red conducts well.
//!
//! `cargo run --release --example 02_record_existing [PICTURE]`

mod after;
mod before;
mod picture;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fs};

use clgraph::{DrawingDetail, Finalize, Graph, Queue};
use picture::Photo;

const SOURCE: &str = include_str!("../../kernels-cl/heat.cl");
/// Steps of the simulation.
const STEPS: usize = 300;
/// Steps from one row of the history to the next.
const EVERY: usize = 5;
/// How much of the difference flows in a step, where everything conducts.
const RATE: f32 = 0.24;
/// How often each way is timed.
const ROUNDS: usize = 11;

fn main() -> ExitCode {
    env_logger::init();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("02_record_existing: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = env::args_os().nth(1).map_or_else(|| root.join("examples/data/rocket.jpg"), PathBuf::from);
    let photo = Photo::load(&path)?;
    let (width, height) = (photo.width, photo.height);
    let (hot, conducts) = (photo.brightness(), photo.redness());
    println!("plate      {} ({width} x {height}), {STEPS} steps", path.display());
    let device = clgraph::best_device()?;
    println!("device     {} ({}, OpenCL {})", device.name(), device.caps().platform, device.caps().version);

    let mut plain = before::Plate::new(&device.to_opencl3(), width, height)?;
    let queue = Queue::new(&device)?;
    let plate = after::Plate::new(&queue, width, height)?;

    let graph = Graph::new(&queue)?;
    let begin = Instant::now();
    let (field, history) = graph.record(&queue, || plate.simulate(&hot, &conducts))?;
    let (field, history) = (field.host_read()?, history.host_read()?);
    let recorded = begin.elapsed();
    let begin = Instant::now();
    let executable = graph.finalize(Finalize::new())?;
    println!("graph      recorded in {recorded:.1?}, finalized in {:.1?}", begin.elapsed());
    for line in executable.report().to_string().lines() {
        println!("           {line}");
    }

    println!("running    {ROUNDS} rounds of each ...");
    let (mut by_opencl3, mut by_queue, mut by_graph) = (Vec::new(), Vec::new(), Vec::new());
    let mut results = None;
    // The first round, in which kernels may be compiled, does not count.
    for round in 0..=ROUNDS {
        let begin = Instant::now();
        let expected = plain.simulate(&hot, &conducts)?;
        let first = begin.elapsed();
        let begin = Instant::now();
        let (executed_field, executed_history) = plate.simulate(&hot, &conducts)?;
        let executed = (executed_field.wait()?, executed_history.wait()?);
        let second = begin.elapsed();
        let begin = Instant::now();
        let run = executable.submit(&queue)?;
        run.wait()?;
        let submitted = (run.get(&field)?.to_vec(), run.get(&history)?.to_vec());
        let third = begin.elapsed();
        if expected != executed || expected != submitted {
            let at = (0..expected.0.len())
                .find(|at| expected.0[*at] != executed.0[*at] || expected.0[*at] != submitted.0[*at]);
            let told = at.map(|at| format!("cell {at}: {}, {}, {}", expected.0[at], executed.0[at], submitted.0[at]));
            let told = told.unwrap_or_else(|| "the history".to_owned());
            return Err(format!("opencl3, the queue and the graph differ: {told}").into());
        }
        results = Some(submitted);
        if round > 0 {
            by_opencl3.push(first);
            by_queue.push(second);
            by_graph.push(third);
        }
    }
    let (cooled, history) = results.unwrap_or_default();

    let folder = root.join("target/02_record_existing");
    fs::create_dir_all(&folder)?;
    let files = ["before.png", "after.png", "middle_row.png", "graph.svg"].map(|name| folder.join(name));
    picture::save(&files[0], &hot, width)?;
    picture::save(&files[1], &cooled, width)?;
    picture::save(&files[2], &history, width)?;
    executable.print_graph(&files[3], DrawingDetail::Brief, None)?;

    println!("agreement  the same to the last bit by opencl3, by the queue, and by the recorded graph");
    println!("opencl3    {:.2?} (median of {ROUNDS})", median(&mut by_opencl3));
    println!("queue      {:.2?}", median(&mut by_queue));
    println!("graph      {:.2?}", median(&mut by_graph));
    println!("pictures   {}, {}", files[0].display(), files[1].display());
    println!("           {} (the middle row, from top to bottom over time)", files[2].display());
    println!("           {} (the graph)", files[3].display());
    Ok(())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
