//! Reads handwritten digits by a small convolutional network. Everything between its layers is memory that the graph owns:
//! the example says how much that is with and without sharing, and draws who has which bytes when. The host trains the
//! network first, and computes the same, to compare.
//!
//! `cargo run --release --example 04_inference`

#[path = "../data/digits.rs"]
mod digits;
mod inference;
mod network;
mod training;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use clgraph::{Finalize, Queue};
use digits::{POINTS, Samples};
use network::DIGITS;

const EPOCHS: usize = 6;
/// Of so many samples one is for the test, and the network learns from the others.
const TESTED: usize = 6;
const ROUNDS: u32 = 20;

fn main() -> ExitCode {
    env_logger::init();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("04_inference: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let samples = Samples::load(&root.join("examples/data/digits.csv.gz"))?;
    let device = clgraph::best_device()?;
    println!("device     {} ({}, OpenCL {})", device.name(), device.caps().platform, device.caps().version);
    let all: Vec<(&[f32], u32)> = samples.images.chunks(POINTS).zip(samples.labels.iter().copied()).collect();
    let is_tested = |at: &usize| at.is_multiple_of(TESTED);
    let learned: Vec<_> = (0..all.len()).filter(|at| !is_tested(at)).map(|at| all[at]).collect();
    println!("training   {EPOCHS} times through {} digits, on the host ...", learned.len());
    let begin = Instant::now();
    let mut layers = network::layers();
    (0..EPOCHS).for_each(|epoch| training::train(&mut layers, &learned, 0.1 * 0.7_f32.powi(epoch as i32)));
    println!("           {:.1?}", begin.elapsed());

    // All digits at once, those too that it has learned from.
    let queue = Queue::new(&device)?;
    let (graph, result) = inference::build(&queue, &layers, &samples.images)?;
    let apart = graph.finalize(Finalize::new().separate_memory())?;
    let executable = graph.finalize(Finalize::new())?;
    let (shared, alone) = (executable.required_memory(), apart.required_memory());
    for line in executable.report().to_string().lines() {
        println!("           {line}");
    }
    println!("memory     {:.2} MB, and {:.2} MB if nothing were shared", shared as f64 / 1e6, alone as f64 / 1e6);
    let folder = root.join("target/04_inference");
    std::fs::create_dir_all(&folder)?;
    let picture = folder.join("memory.svg");
    executable.report().memory.write_svg(&picture)?;
    println!("drawing    {}", picture.display());

    let mut said = Vec::new();
    for (which, executable) in [("shared", &executable), ("apart", &apart)] {
        let begin = Instant::now();
        for _ in 0..ROUNDS {
            let run = executable.submit(&queue)?;
            run.wait()?;
            said.push(run.get(&result)?.to_vec());
        }
        println!("reads      {} digits in {:.2?}, memory {which}", all.len(), begin.elapsed() / ROUNDS);
    }
    if said.iter().any(|other| *other != said[0]) {
        return Err("with and without sharing the results are not the same".into());
    }
    println!("agreement  the same numbers with and without sharing, to the last bit");

    let (mut difference, mut right) = (0.0_f32, 0);
    let tested: Vec<usize> = (0..all.len()).filter(is_tested).collect();
    let begin = Instant::now();
    for at in &tested {
        let said = &said[0][at * DIGITS..][..DIGITS];
        let values = network::forward(&layers, all[*at].0);
        let host = &values[layers.len()];
        difference = said.iter().zip(host).fold(difference, |most, (a, b)| most.max((a - b).abs() / (1.0 + b.abs())));
        right += usize::from(network::read(said) == Some(all[*at].1 as usize));
    }
    println!("host       {} digits in {:.2?}; it differs by {difference:.1e}", tested.len(), begin.elapsed());
    let rate = right as f64 / tested.len() as f64;
    println!("right      {:.1} % of {} digits that it has not seen", 100.0 * rate, tested.len());
    if difference > 1e-3 {
        return Err(format!(
            "the device's numbers differ from the host's by {difference:.1e}: at most 1e-3 is rounding"
        )
        .into());
    }
    if rate < 0.9 {
        return Err(
            format!("the device reads {:.1} % of the digits right: at least 90 % are expected", 100.0 * rate).into()
        );
    }
    Ok(())
}
