//! Runs the whole test suite on several OpenCL drivers: `./ci/test --drivers all`.
//!
//! The tests are built once; each binary then runs under `ci/with DRIVER`, as often as `tests/drivers.toml` says. A test may
//! leave itself out only where that file lists it, and what it lists must happen.

mod binaries;
mod expectations;
mod page;
mod runs;
mod with;

use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Parser;
use expectations::Expectations;
use runs::Outcome;

type Failure = Box<dyn Error>;

/// Runs clgraph's tests on OpenCL drivers
#[derive(Parser)]
struct Arguments {
    /// Names of drivers, or `all`
    #[arg(required = true)]
    drivers: Vec<String>,
    /// Write docs/drivers.md anew from what was seen, if all drivers ran and all was well
    #[arg(long)]
    write: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("ci/suite: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything was as expected.
fn run(arguments: &Arguments) -> Result<bool, Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let expectations = Expectations::read(&root.join("tests/drivers.toml"))?;
    let names = expectations.chosen(&arguments.drivers, &installable(&root)?)?;
    let binaries = binaries::build(&root)?;
    println!("{} test programs on {}", binaries.tests.len(), names.join(", "));
    let mut outcomes = Vec::new();
    for name in &names {
        let driver = expectations.driver(name)?;
        let begin = Instant::now();
        let outcome = runs::of_driver(&root, driver, &binaries);
        println!("{name}: {} s", begin.elapsed().as_secs());
        outcomes.push(outcome);
    }
    println!();
    let mut good = true;
    for outcome in &outcomes {
        good &= told(outcome, &expectations);
    }
    if arguments.write {
        if !good || names != installable(&root)? {
            return Err("docs/drivers.md is not written: it tells of a good run on all drivers".into());
        }
        page::write(&root.join("docs/drivers.md"), &outcomes)?;
    }
    Ok(good)
}

/// The names in `ci/drivers.list`, without those that only some machines have.
fn installable(root: &Path) -> Result<Vec<String>, Failure> {
    let list = std::fs::read_to_string(root.join("ci/drivers.list"))?;
    let name = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, kind) = (words.next()?, words.next()?);
        (!name.starts_with('#') && kind != "system").then(|| name.to_owned())
    };
    Ok(list.lines().filter_map(name).collect())
}

/// Prints what came of a driver, and says whether it was as expected.
fn told(outcome: &Outcome, expectations: &Expectations) -> bool {
    let skipped: Vec<_> = expectations.skips(&outcome.driver).collect();
    println!("{}", outcome.sum());
    for line in &outcome.notes {
        println!("    {line}");
    }
    for failure in &outcome.failed {
        println!("    failed: {failure}");
    }
    for skip in &outcome.skipped {
        let fact = skipped.iter().find(|listed| listed.test == skip.test).map_or("not listed", |listed| &listed.fact);
        println!("    skipped: {} ({}): {fact}", skip.test, skip.reason);
    }
    let wrong = expectations.differences(outcome);
    for difference in &wrong {
        println!("    unexpected: {difference}");
    }
    outcome.failed.is_empty() && wrong.is_empty()
}

/// A command in the project's folder.
fn command(root: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root);
    command
}
