//! clgraph beside hand-written OpenCL, in the same run: `./ci/bench`.
//!
//! - `main.rs`: the arguments, and what is run on which device.
//! - `scenarios.rs`: what is measured, and each way to do it; `updates.rs` and `mutate.rs`: those of updates;
//!   `packing.rs`: those of memory that graphs own; `globals.rs`: those of device globals; `host_tasks.rs`: those of host
//!   tasks; `profiles.rs`: those of times; `loads.rs`: those of kernels that do something.
//! - `raw.rs`: the hand-written ways; `cuda.rs`: the same kernels as CUDA Graphs.
//! - `rounds.rs`: how it is measured. Ways are interleaved round by round, the first round is thrown away, and what is told
//!   are medians, and medians of per-round ratios; one way is there twice, so that the noise can be seen.
//! - `bounds.rs`: how good it has to be.
//! - `children.rs`: what only a process of its own can tell.
//! - `results.rs`: the table, `target/bench/results.json`, and what was measured last of each scenario; `plots.rs`: its pictures, `tables.rs`: its tables.

mod bounds;
mod children;
mod cuda;
mod globals;
mod host_tasks;
mod loads;
mod mutate;
mod packing;
mod plots;
mod profiles;
mod raw;
mod results;
mod rounds;
mod scenarios;
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
    /// Fewer rounds and smaller graphs: to see that it works
    #[arg(long)]
    quick: bool,
    /// Goes over everything so many times, with new graphs, and tells of the rounds of all: what one executable meets does not decide
    #[arg(long, default_value = "1")]
    passes: NonZeroUsize,
    /// Fail if clgraph is slower than it may be: replay 1.05 of the loop; native 1.05 of one command buffer up to 100
    /// commands, and faster beyond; automatic 1.05 of the best row; all for `submit` on PoCL, and plus the noise of the row
    /// `loop_again`
    #[arg(long)]
    check: bool,
    /// What a child does that this program starts
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
