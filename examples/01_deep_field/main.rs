//! Counts the galaxies in a photograph of the sky.
//!
//! The photograph is denoised, compared with its background, and its connected bright objects are labelled and counted:
//! a loop in the graph goes round until nothing changes. The same work is done by a plain loop of OpenCL calls
//! and on the CPU, and all three must agree to the last bit.
//!
//! `cargo run --release --example 01_deep_field [PICTURE]`

mod cpu;
mod graph;
mod objects;
mod picture;
mod plain;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs};

use clgraph::Queue;
use graph::DeepField;
use objects::Parameters;
use picture::Picture;
use plain::PlainLoop;

/// How often each way is timed.
const ROUNDS: usize = 21;

fn main() -> ExitCode {
    env_logger::init();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("01_deep_field: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = env::args_os().nth(1).map_or_else(|| root.join("examples/data/hubble_deep_field.jpg"), PathBuf::from);
    let photo = Picture::load(&path)?;
    let (width, height) = (photo.width, photo.height);
    println!("picture    {} ({width} x {height})", path.display());

    let device = clgraph::best_device()?;
    println!("device     {} ({}, OpenCL {})", device.name(), device.caps().platform, device.caps().version);
    let queue = Queue::new(&device)?;
    let parameters = Parameters::default();
    let begin = Instant::now();
    let deep_field = DeepField::new(&queue, width, height, &parameters)?;
    println!("graph      built and finalized in {:.1?}, the compiler included", begin.elapsed());
    for line in deep_field.report().to_string().lines() {
        println!("           {line}");
    }

    let context = queue.context().to_opencl3()?;
    let program = opencl3::program::Program::create_and_build_from_source(&context, graph::SOURCE, "")
        .map_err(|log| format!("the plain loop's program does not build: {log}"))?;
    let mut plain = PlainLoop::new(&context, &program, width, height, &parameters)?;

    let rgb = Arc::new(photo.rgb.clone());
    println!("running    {ROUNDS} rounds of each ...");
    let (mut by_graph, mut by_loop) = (Vec::new(), Vec::new());
    let (mut objects, mut turns) = deep_field.run(&rgb)?; // The first launch of a kernel may compile it.
    let (mut plain_objects, _) = plain.run(&rgb)?;
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        (objects, turns) = deep_field.run(&rgb)?;
        by_graph.push(begin.elapsed());
        let begin = Instant::now();
        (plain_objects, _) = plain.run(&rgb)?;
        by_loop.push(begin.elapsed());
    }
    let on_cpu = cpu::find_objects(&rgb, width, height, &parameters);
    if objects != on_cpu || plain_objects != on_cpu {
        let [by_graph, by_loop, by_cpu] = [&objects, &plain_objects, &on_cpu].map(|found| found.count);
        return Err(format!(
            "the graph found {by_graph} objects, the plain loop {by_loop}, the CPU {by_cpu}: they must be the same, and have the \
             same pixels"
        )
        .into());
    }

    let folder = root.join("target/01_deep_field");
    fs::create_dir_all(&folder)?;
    let (png, svg) = (folder.join("galaxies.png"), folder.join("graph.svg"));
    let mut annotated = photo;
    annotated.draw_boxes(&objects.labels, &objects.areas, parameters.min_area);
    annotated.save_png(&png)?;
    deep_field.print(&svg)?;

    println!("objects    {} of at least {} pixels, after {turns} turns", objects.count, parameters.min_area);
    println!("           the same to the last bit by the graph, by the plain loop, and on the CPU");
    println!("plain loop {:.2?} (median of {ROUNDS})", median(&mut by_loop));
    println!("graph      {:.2?} (median of {ROUNDS})", median(&mut by_graph));
    println!("picture    {}", png.display());
    println!("drawing    {} (what is submitted, for a browser)", svg.display());
    Ok(())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
