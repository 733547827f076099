//! Trains a small network to read handwritten digits. A training step is one graph, finalized once; from step to step it gets
//! another batch and another learning rate: by parameters, and by recording the step again and updating the whole graph from
//! that. Both must agree to the last bit, and read as well as a network that the host trains alone.
//!
//! The launches of a step are small, and there are more than a thousand steps: so it pays to fuse them when the graph is finalized. An
//! update changes arguments of the fused kernel. Without `fuse`, they are fused in the background when submissions have taken twelve times
//! as long as a build, which is later than the end of this training.
//!
//! `cargo run --release --example 03_update`

#[path = "../data/digits.rs"]
mod digits;
mod host;
mod network;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clgraph::{Finalize, Fuse, Graph, Queue};
use digits::Samples;
use host::{BATCH, Weights};
use network::Network;

const EPOCHS: usize = 40;
/// Samples to learn from. The rest is for the test.
const LEARNED: usize = 1500;

fn main() -> ExitCode {
    env_logger::init();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("03_update: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The first sample and the learning rate of each step.
fn steps() -> impl Iterator<Item = (u32, f32)> {
    (0..EPOCHS).flat_map(|epoch| {
        let rate = 0.5 * 0.97_f32.powi(epoch as i32);
        (0..LEARNED / BATCH).map(move |batch| ((batch * BATCH) as u32, rate))
    })
}

fn run() -> Result<(), Box<dyn Error>> {
    let samples = Samples::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/digits.csv.gz"))?;
    let tested = LEARNED..samples.labels.len();
    let device = clgraph::best_device()?;
    println!("device     {} ({}, OpenCL {})", device.name(), device.caps().platform, device.caps().version);
    println!("digits     {}, {LEARNED} to learn from, in batches of {BATCH}", samples.labels.len());
    let queue = Queue::new(&device)?;
    let network = Network::new(&queue, &samples)?;
    let all = steps().count();

    // A parameter for the batch, and one for the rate.
    let graph = Graph::new(&queue)?;
    let step = network.build(&graph, LEARNED)?;
    let options = || Finalize::new().updatable().fuse(Fuse::Now);
    let begin = Instant::now();
    let executable = graph.finalize(options())?;
    let finalized = begin.elapsed();
    for line in executable.report().to_string().lines() {
        println!("           {line}");
    }
    println!("training   {all} steps, three times ...");
    let mut updating = Duration::ZERO;
    let begin = Instant::now();
    for (first, rate) in steps() {
        let update = Instant::now();
        step.first.set(first)?;
        step.rate.set(rate)?;
        executable.update(&step.nodes)?;
        updating += update.elapsed();
        executable.submit_to(&queue).submit_detached()?;
    }
    let by_parameters = network.weights(&queue)?;
    let (trained, by_update) = (begin.elapsed(), updating);

    // The step as it would be written without a graph, recorded anew each time.
    network.set_weights(&queue, &Weights::start())?;
    let record = |first, rate| -> clgraph::Result<Graph> {
        let graph = Graph::new(&queue)?;
        graph.record(&queue, || network.enqueue(&queue, first, rate))?;
        Ok(graph)
    };
    let (first, rate) = steps().last().ok_or("there is no step")?;
    let executable = record(first, rate)?.finalize(options())?;
    let mut updating = Duration::ZERO;
    for (first, rate) in steps() {
        let update = Instant::now();
        executable.update_from(&record(first, rate)?)?;
        updating += update.elapsed();
        executable.submit_to(&queue).submit_detached()?;
    }
    let by_graphs = network.weights(&queue)?;
    if by_parameters != by_graphs {
        return Err("parameters and whole graphs do not agree".into());
    }

    let begin = Instant::now();
    let mut trained_alone = Weights::start();
    steps().for_each(|(first, rate)| trained_alone.step(&samples, first as usize, rate));
    let alone = begin.elapsed();

    let per_step = |time: Duration| time.as_secs_f64() * 1e6 / all as f64;
    let (before, reads, host_reads) = (
        Weights::start().accuracy(&samples, tested.clone()),
        by_parameters.accuracy(&samples, tested.clone()),
        trained_alone.accuracy(&samples, tested),
    );
    println!("agreement  parameters and whole graphs give the same weights, to the last bit");
    println!(
        "update     {:.2} us a step by parameters, {:.2} us by recording the step again",
        per_step(by_update),
        per_step(updating)
    );
    println!("training   {trained:.1?} by the graph, which took {finalized:.1?} to finalize; {alone:.1?} by the host");
    println!(
        "reads      {:.1} % of {} digits that it has not seen; {:.1} % before",
        100.0 * reads,
        samples.labels.len() - LEARNED,
        100.0 * before
    );
    println!("host       {:.1} %", 100.0 * host_reads);
    if (reads - host_reads).abs() > 0.02 || reads < 0.85 {
        let (reads, host) = (100.0 * reads, 100.0 * host_reads);
        return Err(format!(
            "the device reads {reads:.1} % right and the host {host:.1} %: within 2 %, and 85 %, are expected"
        )
        .into());
    }
    Ok(())
}
