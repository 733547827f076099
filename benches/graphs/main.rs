//! clgraph compared with hand-written OpenCL, in the same run: `./ci/bench`.
//!
//! - `main.rs`: the arguments, and what runs on which device.
//! - `scenarios.rs`: what is measured, and the variants of each scenario. More scenarios: `updates.rs` and `mutate.rs`
//!   (updates), `packing.rs` (memory that graphs own), `globals.rs` (device globals), `host_tasks.rs` (host tasks),
//!   `profiles.rs` (times of nodes), `control.rs` and `roads.rs` (loops in a graph), `fused.rs` (small kernels in one launch),
//!   `settling.rs` (what it costs to find out whether that pays), `loads.rs` (kernels with real work).
//! - `raw.rs`: the variants that are written by hand; `cuda.rs`: the same kernels as CUDA Graphs.
//! - `rounds.rs`: how it is measured. Variants are interleaved round by round, the first round does not count, and the
//!   results are medians, and medians of per-round ratios. One variant is measured twice, which shows the noise.
//! - `submissions.rs` and `changes.rs`: what several scenarios submit and update.
//! - `bounds.rs`: how fast clgraph has to be.
//! - `children.rs`: measurements that need a process of their own.
//! - `rows.rs`: a line of the results; `results.rs`: the table, and `target/bench/results.json` with the last measurement of each scenario; `plots.rs`:
//!   its pictures; `tables.rs`: its tables.

mod bounds;
mod changes;
mod children;
mod control;
mod cuda;
mod fused;
mod globals;
mod host_tasks;
mod loads;
mod mutate;
mod packing;
mod plots;
mod profiles;
mod raw;
mod results;
mod roads;
mod rounds;
mod rows;
mod scenarios;
mod settling;
mod submissions;
mod tables;
mod updates;

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use clgraph::{Caps, Device};
use results::Results;
use rounds::Effort;
use scenarios::Scenario;

/// Measures clgraph beside hand-written OpenCL
#[derive(Parser)]
struct Arguments {
    /// Only drivers with this in their name, for example `pocl`; the names are in the results
    #[arg(long)]
    driver: Option<String>,
    /// Only this scenario
    #[arg(long, value_enum)]
    scenario: Option<Scenario>,
    /// Fewer rounds and smaller graphs, to check that the bench works
    #[arg(long)]
    quick: bool,
    /// Repeats everything so many times, with new graphs, and reports the rounds of all passes together: so chance in
    /// one executable does not decide
    #[arg(long, default_value = "1")]
    passes: NonZeroUsize,
    /// Fail if clgraph is slower than allowed: replay 1.05 of the loop; native 1.05 of one command buffer up to 100
    /// commands, and faster with more; automatic 1.05 of the best row. For `submit` on PoCL, plus the noise of the row
    /// `loop_again`
    #[arg(long)]
    check: bool,
    /// The work of a child process, which this program starts
    #[arg(long, hide = true)]
    child: Option<String>,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    env_logger::init();
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let all = clgraph::devices()?;
    let wanted =
        |device: &&Device| arguments.driver.as_ref().is_none_or(|part| driver_name(device.caps()).contains(part));
    let devices: Vec<&Device> = all.iter().filter(wanted).collect();
    if devices.is_empty() {
        let names: Vec<String> = all.iter().map(|device| driver_name(device.caps())).collect();
        return Err(format!("no driver of that name: there are {}", names.join(", ")).into());
    }
    if let Some(work) = &arguments.child {
        return children::work(work, devices[0]);
    }
    let effort = if arguments.quick { Effort::Quick } else { Effort::Full };
    let mut results = Results::new();
    for device in devices {
        results.next_device();
        let driver = driver_name(device.caps());
        println!("\n{driver}: {} ({} {})", device.name(), device.caps().platform, device.caps().driver_version);
        for pass in 1..=arguments.passes.get() {
            if arguments.passes.get() > 1 {
                println!("\npass {pass} of {}", arguments.passes);
            }
            for scenario in Scenario::all().filter(|one| arguments.scenario.is_none_or(|wanted| wanted == *one)) {
                scenario.run(device, &driver, effort, &mut results)?;
            }
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    results.write(&folder.join("results.json"))?;
    if !arguments.quick {
        results.keep(&folder)?;
    }
    if arguments.check { results.check() } else { Ok(()) }
}

/// A short name of a driver: `pocl31`, `intel`, `rusticl`, `nvidia`, or else its platform's.
fn driver_name(caps: &Caps) -> String {
    let platform = caps.platform.to_lowercase();
    if platform.contains("portable computing language") {
        let version = caps.driver_version.chars().filter(char::is_ascii_digit).take(2).collect::<String>();
        return format!("pocl{version}");
    }
    let known = ["intel", "rusticl", "nvidia", "amd", "arm", "qualcomm"];
    known.into_iter().find(|name| platform.contains(name)).map_or(platform.replace(' ', "-"), str::to_owned)
}
