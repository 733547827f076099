//! Runs the whole test suite on the machine's own OpenCL driver, `./ci/test`, or on several: `./ci/test --drivers all`.
//!
//! The tests are built once; each binary then runs, under `ci/with DRIVER`, as often as `tests/drivers.toml` says. A test may
//! leave itself out only where that file lists it, and what it lists must happen. At the end drivers share a process, two by
//! two.

mod binaries;
mod expectations;
mod outcome;
mod page;
mod runs;
mod together;
mod with;

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, ExitCode};

use binaries::Binaries;
use clap::Parser;
use expectations::{Driver, Expectations};
use outcome::{Outcome, Skipped};

type Failure = Box<dyn Error>;

/// Runs clgraph's tests on OpenCL drivers
#[derive(Parser)]
struct Arguments {
    /// Names of drivers, or `all`; the machine's own driver if there is none
    drivers: Vec<String>,
    /// Say what the machine's own driver is called, and run nothing
    #[arg(long, conflicts_with_all = ["drivers", "write"])]
    own: bool,
    /// Write docs/drivers.md anew from what was seen, if all drivers ran and all was well
    #[arg(long)]
    write: bool,
    /// Each program in one of so many of its runs, and in others after the next commit
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::MIN, conflicts_with = "write", requires = "drivers")]
    some: NonZeroUsize,
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
    if arguments.own {
        println!("{}", own(&root, &expectations, &binaries)?.name);
        return Ok(true);
    }
    if names.is_empty() {
        return on_this_machine(&root, &expectations, &binaries);
    }
    let share = runs::Share { one_of: arguments.some, first: commits(&root) % arguments.some };
    println!("{} test programs on {}", binaries.tests.len(), names.join(", "));
    if arguments.some.get() > 1 {
        println!("each in one of {} of its runs, from number {} on", share.one_of, share.first);
    }
    let drivers = names.iter().map(|name| expectations.driver(name)).collect::<Result<Vec<_>, _>>()?;
    let outcomes = runs::of_drivers(&root, &drivers, &expectations, &binaries, share)?;
    let mut good = true;
    for (host, guest) in together::pairs(&root, &names) {
        println!("{host} and {guest} in one process");
        let wrong = together::check(&root, (&host, &guest), &expectations, &binaries);
        let wrong = wrong.unwrap_or_else(|error| vec![error.to_string()]);
        wrong.iter().for_each(|wrong| println!("    failed: {wrong}"));
        good &= wrong.is_empty();
    }
    println!();
    for outcome in &outcomes {
        let (lines, as_expected) = told(outcome, &expectations);
        println!("{}", lines.join("\n"));
        good &= as_expected;
    }
    if arguments.write {
        if !good || names != installable(&root)? {
            let why = "docs/drivers.md is not written, because a driver failed or was left out: run `./ci/test --drivers all --write` \
                       until all are good";
            return Err(why.into());
        }
        page::write(&root.join("docs/drivers.md"), &outcomes)?;
    }
    Ok(good)
}

/// How many commits there are: so the same commit has the same share. 0 where git does not tell.
fn commits(root: &Path) -> usize {
    let told = command(root, "git").args(["rev-list", "--count", "HEAD"]).output();
    told.ok().and_then(|told| String::from_utf8_lossy(&told.stdout).trim().parse().ok()).unwrap_or(0)
}

/// The driver that programs find without further ado.
fn own(root: &Path, expectations: &Expectations, binaries: &Binaries) -> Result<Driver, Failure> {
    let output = command(root, &binaries.clgraph).args(["devices", "--json"]).output()?;
    expectations.own(&serde_json::from_slice(&output.stdout).unwrap_or_default())
}

/// The same on the driver that programs find without further ado.
fn on_this_machine(root: &Path, expectations: &Expectations, binaries: &Binaries) -> Result<bool, Failure> {
    let driver = own(root, expectations, binaries)?;
    let runs: Vec<_> = driver.runs().iter().map(|run| run.name()).collect();
    println!("{} test programs on {}{}", binaries.tests.len(), driver.name, runs.join(", then"));
    if runs.len() == 1 {
        println!("(once: it has no command buffers that clgraph can use)");
    }
    let mut good = true;
    for outcome in runs::of_drivers(root, &[&driver], expectations, binaries, runs::Share::ALL)? {
        let (lines, as_expected) = told(&outcome, expectations);
        println!("\n{}", lines.join("\n"));
        good &= as_expected;
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

/// What came of a driver: a line, and one for each thing worth a look. And whether it was as expected.
fn told(outcome: &Outcome, expectations: &Expectations) -> (Vec<String>, bool) {
    let listed: Vec<_> = expectations.skips(&outcome.driver).collect();
    let wrong = expectations.differences(outcome);
    let skip = |skip: &Skipped| {
        let fact = listed.iter().find(|listed| listed.test == skip.test).map_or("not listed", |listed| &listed.fact);
        format!("    skipped: {}{} ({}): {fact}", skip.test, skip.run, skip.reason)
    };
    let mut lines = vec![format!("{}: {} ({} s of programs)", outcome.driver, outcome.sum(), outcome.took.as_secs())];
    lines.extend(outcome.notes.iter().map(|note| format!("    {note}")));
    lines.extend(outcome.failed.iter().map(|failure| format!("    failed: {failure}")));
    let unsteady = |test| {
        format!("    UNSTEADY: {test} failed, and passed alone: its output is above; find out why (CONTRIBUTING.md)")
    };
    lines.extend(outcome.unsteady.iter().map(unsteady));
    lines.extend(outcome.skipped.iter().map(skip));
    lines.extend(wrong.iter().map(|difference| format!("    unexpected: {difference}")));
    (lines, outcome.failed.is_empty() && wrong.is_empty())
}

/// A command in the project's folder.
fn command(root: &Path, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_told_in_one_line_and_its_skips_run_by_run() {
        let file = r#"
            driver = []
            [[skip]]
            drivers = ["pocl60"]
            test = "build::a"
            reason = "why"
            fact = "because"
        "#;
        let expectations: Expectations = toml::from_str(file).unwrap();
        let skipped = |run: &str| {
            let [test, reason, run] = ["build::a", "why", run].map(str::to_owned);
            Skipped { test, reason, run }
        };
        let mut outcome = Outcome {
            driver: "pocl60".to_owned(),
            passed: 312,
            took: std::time::Duration::from_secs(75),
            skipped: [skipped(""), skipped(" with X=1")].into(),
            ran: ["", " with X=1"].map(|run| ("build".to_owned(), run.to_owned())).into(),
            ..Outcome::default()
        };
        let (lines, good) = told(&outcome, &expectations);
        let expected = [
            "pocl60: 312 passed, 0 failed, 2 skipped (75 s of programs)",
            "    skipped: build::a (why): because",
            "    skipped: build::a with X=1 (why): because",
        ];
        assert_eq!((lines.as_slice(), good), (expected.map(str::to_owned).as_slice(), true));
        outcome.failed.push("build::b with X=1".to_owned());
        outcome.skipped.pop_first();
        let (lines, good) = told(&outcome, &expectations);
        let expected = [
            "pocl60: 312 passed, 1 failed, 1 skipped (75 s of programs)",
            "    failed: build::b with X=1",
            "    skipped: build::a with X=1 (why): because",
            "    unexpected: build::a is listed (why) and ran",
        ];
        assert_eq!((lines.as_slice(), good), (expected.map(str::to_owned).as_slice(), false));
    }
}
