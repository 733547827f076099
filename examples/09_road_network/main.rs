//! Looks at the roads of Minnesota: how far each crossing is from Minneapolis, by a breadth-first search, and how often
//! somebody comes by who takes roads at random, by page rank.
//!
//! How often a loop goes round is known only while it runs. Each of the two is one graph with a loop, which a number on the
//! device ends, and one submission. The same is done by plain OpenCL calls, where the host decides, and both must
//! agree to the last bit.
//!
//! `cargo run --release --example 09_road_network`

mod by_hand;
mod graph;
mod map;
mod network;

use std::collections::VecDeque;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fs};

use by_hand::ByHand;
use clgraph::{DrawingDetail, Finalize, Fuse, Queue};
use network::{MINNEAPOLIS, Network};

/// How often each way is timed.
const ROUNDS: usize = 21;

fn main() -> ExitCode {
    env_logger::init();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("09_road_network: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let network = Network::load(&root.join("examples/data/minnesota_roads.csv.gz"))?;
    let from = network.nearest(MINNEAPOLIS);
    println!("network    {} crossings, {} roads", network.places.len(), map::roads(&network).count());

    let device = clgraph::best_device()?;
    println!("device     {} ({}, OpenCL {})", device.name(), device.caps().platform, device.caps().version);
    let queue = Queue::new(&device)?;
    // The body of the search is a fill and two small launches: one kernel does them, and its turns too.
    let search = graph::search(&queue, &network, from, Finalize::new().fuse(Fuse::Now))?;
    let rank = graph::rank(&queue, &network, Finalize::new())?;
    let mut by_hand = ByHand::new(&queue.context().to_opencl3()?, &network)?;

    println!("running    {ROUNDS} rounds of each ...");
    // The first launch of a kernel may compile it.
    let (distances, levels) = search.run(&queue)?;
    let (ranks, steps) = rank.run(&queue)?;
    if (&distances, levels) != (&by_hand.search(from)?.0, by_hand.search(from)?.1)
        || distances != on_cpu(&network, from)
    {
        return Err("the graph, the loop by hand and the host find different distances".into());
    }
    let (ranks_by_hand, steps_by_hand) = by_hand.rank()?;
    if (steps, bits(&ranks)) != (steps_by_hand, bits(&ranks_by_hand)) {
        return Err("the graph and the loop by hand find different ranks".into());
    }
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        times[0].push(timed(|| Ok(search.run(&queue).map(drop)?))?);
        times[1].push(timed(|| by_hand.search(from).map(drop))?);
        times[2].push(timed(|| Ok(rank.run(&queue).map(drop)?))?);
        times[3].push(timed(|| by_hand.rank().map(drop))?);
    }

    let folder = root.join("target/09_road_network");
    fs::create_dir_all(&folder)?;
    let (png, svg) = (folder.join("maps.png"), folder.join("graph.svg"));
    let farthest = f64::from(distances.iter().copied().max().unwrap_or(1).max(1));
    let by_distance: Vec<f64> = distances.iter().map(|distance| f64::from(*distance) / farthest).collect();
    let mut sorted = ranks.clone();
    sorted.sort_by(f32::total_cmp);
    // By place in the order, because few ranks are much greater than the others.
    let place = |rank: &f32| 1.0 - sorted.partition_point(|other| other < rank) as f64 / sorted.len() as f64;
    let by_rank: Vec<f64> = ranks.iter().map(place).collect();
    map::draw(&png, &network, &[&by_distance, &by_rank])?;
    search.executable.print_graph(&svg, DrawingDetail::Brief, None)?;

    let [graph_search, loop_search, graph_rank, loop_rank] = times.map(median);
    println!("distances  at most {farthest} roads from Minneapolis, in {levels} turns; the same on the host");
    println!("ranks      at rest after {steps} turns; the same to the last bit by the loop by hand");
    println!("search     {graph_search:.2?} as a graph, {loop_search:.2?} by hand (medians of {ROUNDS})");
    println!("page rank  {graph_rank:.2?} as a graph, {loop_rank:.2?} by hand");
    println!("maps       {} (distances, and ranks)", png.display());
    println!("drawing    {} (the search, for a browser)", svg.display());
    Ok(())
}

/// The distances by a search on the host.
fn on_cpu(network: &Network, from: usize) -> Vec<u32> {
    let mut distances = vec![u32::MAX; network.places.len()];
    distances[from] = 0;
    let mut ahead = VecDeque::from([from]);
    while let Some(crossing) = ahead.pop_front() {
        for end in &network.ends[network.first[crossing] as usize..network.first[crossing + 1] as usize] {
            let end = *end as usize;
            if distances[end] == u32::MAX {
                distances[end] = distances[crossing] + 1;
                ahead.push_back(end);
            }
        }
    }
    distances
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

fn timed(work: impl FnOnce() -> Result<(), Box<dyn Error>>) -> Result<Duration, Box<dyn Error>> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
