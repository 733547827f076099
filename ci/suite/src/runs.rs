//! Running the test programs with a driver.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::num::NonZeroUsize;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::binaries::Binaries;
use crate::expectations::{Driver, Expectations, Run, best, said, unlike};
use crate::outcome::{Outcome, Skipped};
use crate::{Failure, command, with};

/// A program that takes longer hangs.
const LONGEST: Duration = Duration::from_secs(600);

/// How often a program is tried that a driver ends by a fault of its own.
const ATTEMPTS: usize = 5;

/// How often a program that failed runs again, and how many programs of all may need it.
const AGAIN: usize = 2;
const MOST_UNSTEADY: usize = 2;

/// Runs everything on each of the drivers: once as it is, and what is not to run `once` for each set of variables. What cannot be
/// run has failed.
///
/// All runs of all drivers are one list, from which as many programs run at once as there are cores, those that take longest first:
/// so no core waits for the last program of a run.
///
/// A program takes part in those of its runs that are in the share.
///
/// A program that failed runs again at the end, alone and with the same seed. If it passes each time, it is unsteady: a fault that
/// shows by chance, of the driver or of clgraph, which the last lines name. More than two such programs are a failure.
pub fn of_drivers(
    root: &Path,
    drivers: &[&Driver],
    expectations: &Expectations,
    binaries: &Binaries,
    share: Share,
) -> Result<Vec<Outcome>, Failure> {
    let programs: Vec<&str> = binaries.tests.iter().map(|(name, _)| &**name).collect();
    let unknown = expectations.names_without_program(&programs);
    if !unknown.is_empty() {
        return Err(format!("tests/drivers.toml names test programs that do not exist: {}", unknown.join(", ")).into());
    }
    let runs: Vec<Vec<Run>> = drivers.iter().map(|driver| driver.runs()).collect();
    let mut outcomes: Vec<Outcome> =
        drivers.iter().map(|driver| Outcome { driver: driver.name.clone(), ..Outcome::default() }).collect();
    let caches = root.join("target").join(format!("cache-{}", std::process::id()));
    let mut ons = Vec::new();
    for ((&driver, runs), outcome) in drivers.iter().zip(&runs).zip(&mut outcomes) {
        if !driver.own
            && let Err(error) = with::check(root, &driver.name)
        {
            outcome.failed.push(format!("ci/with {}: {error}", driver.name));
        }
        for (at, run) in runs.iter().enumerate() {
            // A process that a driver ends while it compiles may leave a cache that ends all later ones.
            let cache = caches.join(format!("{}-{at}", driver.name.replace(' ', "-")));
            fs::create_dir_all(&cache)?;
            let on = On { root, driver, run, is_plain: at == 0, cache };
            match on.begin(binaries, outcome) {
                Ok(()) => ons.push(on),
                Err(error) => outcome.failed.push(error.to_string()),
            }
        }
    }
    let belongs = |program: usize, on: usize| {
        let ((name, _), on): (_, &On<'_>) = (&binaries.tests[program], &ons[on]);
        (on.is_plain || !expectations.runs_once(name)) && (on.driver.own || !expectations.runs_on_own(name))
    };
    let taken = share.of(binaries.tests.len(), ons.len(), belongs).into_iter();
    let mut programs: Vec<_> = taken.map(|(program, on)| (&ons[on], &binaries.tests[program])).collect();
    programs.sort_by_key(|(_, (name, _))| !expectations.is_long(name));
    let (next, outcomes, failed) = (AtomicUsize::new(0), Mutex::new(outcomes), Mutex::new(Vec::new()));
    let work = || {
        while let Some((on, (name, program))) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begin = Instant::now();
            let done = on.program(name, program, None);
            let (driver, run, time) = (&on.driver.name, on.run.name(), begin.elapsed());
            println!("{driver}{run}: {name}, {:.1} s", time.as_secs_f32());
            let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(outcome) = outcomes.iter_mut().find(|outcome| outcome.driver == *driver) else { continue };
            outcome.took += time;
            outcome.ran.insert((name.clone(), run.clone()));
            match done {
                Ok((done, Some(again))) => {
                    failed.lock().unwrap_or_else(PoisonError::into_inner).push((*on, name, program, done, again));
                }
                Ok((done, None)) => outcome.add(done),
                Err(error) => outcome.failed.push(format!("{name}{run}: {error}")),
            }
        }
    };
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..jobs).for_each(|_| drop(scope.spawn(work))));
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let too_many = failed.len() > MOST_UNSTEADY;
    for (on, name, program, done, again) in failed {
        let driver = &on.driver.name;
        let Some(outcome) = outcomes.iter_mut().find(|outcome| outcome.driver == *driver) else { continue };
        let passed = if too_many { None } else { on.again(name, program, &again)? };
        outcome.add(match passed {
            Some(passed) => Outcome { unsteady: done.failed, ..passed },
            None => done,
        });
    }
    // What a program has started may still write there.
    if let Err(error) = fs::remove_dir_all(&caches) {
        println!("{}: {error}", caches.display());
    }
    Ok(outcomes)
}

/// Which runs a program takes part in.
#[derive(Clone, Copy)]
pub struct Share {
    /// In one of so many of its runs.
    pub one_of: NonZeroUsize,
    /// Which one the first program begins with.
    pub first: usize,
}

impl Share {
    pub const ALL: Self = Self { one_of: NonZeroUsize::MIN, first: 0 };

    /// Returns which of so many programs runs in which of so many runs.
    fn of(self, programs: usize, runs: usize, belongs: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
        let all = (0..programs).flat_map(|program| {
            let its = (0..runs).filter(|run| belongs(program, *run)).collect::<Vec<_>>();
            its.into_iter().enumerate().map(move |(at, run)| (at, (program, run)))
        });
        let is_taken = |(at, (program, _)): &(usize, (usize, usize))| (self.first + program + at) % self.one_of == 0;
        all.filter(is_taken).map(|(_, place)| place).collect()
    }
}

/// That a program that failed may run again.
#[derive(Debug, PartialEq, Eq)]
struct Again {
    /// What its random numbers began with, if it has some.
    seed: Option<String>,
}

impl Again {
    /// None if it would run with other inputs, so that it may pass although clgraph is wrong.
    fn of(text: &str) -> Option<Self> {
        let seed = |line: &str| Some(line.strip_prefix("CLGRAPH_TEST_SEED=")?.to_owned());
        (!text.contains("[quickcheck] TEST FAILED")).then(|| Self { seed: text.lines().find_map(seed) })
    }
}

/// A run on a driver.
struct On<'a> {
    root: &'a Path,
    driver: &'a Driver,
    run: &'a Run,
    /// Without variables.
    is_plain: bool,
    /// For compiled kernels.
    cache: PathBuf,
}

impl On<'_> {
    /// Looks whether the driver is what `drivers.toml` says, before its programs run.
    fn begin(&self, binaries: &Binaries, outcome: &mut Outcome) -> Result<(), Failure> {
        let devices = self.devices(&binaries.clgraph)?;
        let wrong = unlike(&self.run.says, &said(best(&devices).unwrap_or(&serde_json::Value::Null)));
        outcome.failed.extend(wrong.iter().map(|wrong| format!("clgraph devices{}: {wrong}", self.run.name())));
        if self.is_plain {
            outcome.devices = devices;
        }
        Ok(())
    }

    /// Runs a program that failed again, alone. Returns what came of it if it passed each time.
    fn again(&self, name: &str, program: &Path, again: &Again) -> Result<Option<Outcome>, Failure> {
        let mut last = None;
        for _ in 0..AGAIN {
            println!("{}{}: {name} failed, and runs again, alone", self.driver.name, self.run.name());
            let (done, _) = self.program(name, program, again.seed.as_deref())?;
            if !done.failed.is_empty() {
                return Ok(None);
            }
            last = Some(done);
        }
        Ok(last)
    }

    /// Runs one test program, and tells what came of it, and whether it may run again because it failed.
    fn program(&self, name: &str, program: &Path, seed: Option<&str>) -> Result<(Outcome, Option<Again>), Failure> {
        let (driver, run, mut outcome) = (self.driver, self.run, Outcome::default());
        let skips = self.cache.join(format!("skips-{name}"));
        let mut with = self.within(program);
        with.arg("--color=never");
        with.envs(seed.map(|seed| ("CLGRAPH_TEST_SEED", seed)));
        let _ = fs::remove_file(&skips);
        with.env("CLGRAPH_TEST_SKIPS", &skips).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own, so that what it starts ends with it.
        with.process_group(0);
        let (mut ended, mut text) = finish(with.spawn()?)?;
        // If the driver ended the program in a way that `drivers.toml` lists, the program runs again, and a note says so.
        // A program that fails does not run again.
        for _ in 1..ATTEMPTS {
            let Some(fact) = driver.died_of(&text).filter(|_| ended.is_err() && was_ended(&text)) else { break };
            outcome.notes.insert(format!("{name}{}: run again, as the driver ended it: {fact}", run.name()));
            let _ = fs::remove_file(&skips);
            (ended, text) = finish(with.spawn()?)?;
        }
        let seen = read(&text);
        let left_out = left_out(&fs::read_to_string(&skips).unwrap_or_default(), &run.name());
        let run = run.name();
        outcome.passed += seen.passed - left_out.len().min(seen.passed);
        outcome.skipped.extend(left_out);
        outcome.notes.extend(seen.notes.iter().map(|note| format!("{name}{run}: {note}")));
        outcome.failed.extend(seen.failed.iter().map(|test| format!("{name}::{test}{run}")));
        if seen.ignored > 0 {
            outcome.failed.push(format!("{name}{run}: {} tests are ignored: leave them out by `skip`", seen.ignored));
        }
        if let Err(how) = ended
            && (seen.failed.is_empty() || !seen.ended)
        {
            outcome.failed.push(format!("{name}{run}: {how}"));
        }
        let mut again = None;
        if !outcome.failed.is_empty() {
            println!("{text}");
            again = Again::of(&text);
        }
        Ok((outcome, again))
    }

    /// A program with the driver and the variables of the run.
    fn within(&self, program: &Path) -> Command {
        let mut with = if self.driver.own {
            Command::new(program)
        } else {
            let mut with = command(self.root, "ci/with");
            with.args([&self.driver.name, "--"]).arg(program);
            with
        };
        with.current_dir(self.root);
        without_variables(&mut with);
        with.env("POCL_CACHE_DIR", &self.cache);
        with.envs(self.run.with.iter().filter_map(|variable| variable.split_once('=')));
        with
    }

    fn devices(&self, clgraph: &Path) -> Result<serde_json::Value, Failure> {
        let driver = self.driver;
        let output = self.within(clgraph).args(["devices", "--json"]).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{}: no device: {said} (./ci/drivers {} installs it)", driver.name, driver.name).into());
        }
        let devices: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let caps = &best(&devices).ok_or("there is no device")?["caps"];
        let (platform, version) = (&caps["platform"], &caps["driver_version"]);
        let fits = driver.is(platform.as_str().unwrap_or_default(), version.as_str().unwrap_or_default());
        // The machine's own may have others beside it.
        if fits && (driver.own || devices.as_array().is_some_and(|platforms| platforms.len() == 1)) {
            Ok(devices)
        } else {
            Err(format!(
                "{}: the device is of {platform} {version}, which tests/drivers.toml does not know",
                driver.name
            )
            .into())
        }
    }
}

/// The caller's own are not part of a run.
pub fn without_variables(command: &mut Command) {
    for name in ["CLGRAPH_PATH", "CLGRAPH_LOOPS", "CLGRAPH_ASSUME", "CLGRAPH_DUMP"] {
        command.env_remove(name);
    }
}

/// Waits for a program, and takes what it says. One that takes too long is killed.
fn finish(mut child: Child) -> Result<(Result<(), String>, String), Failure> {
    let mut said: Vec<thread::JoinHandle<Vec<u8>>> = Vec::new();
    let mut listen = |mut from: Box<dyn Read + Send>| {
        said.push(thread::spawn(move || {
            let mut bytes = Vec::new();
            // What cannot be read is missing, and shows as that.
            let _ = from.read_to_end(&mut bytes);
            bytes
        }));
    };
    child.stdout.take().into_iter().for_each(|pipe| listen(Box::new(pipe)));
    child.stderr.take().into_iter().for_each(|pipe| listen(Box::new(pipe)));
    let begin = Instant::now();
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            break if status.success() { Ok(()) } else { Err(status.to_string()) };
        }
        if begin.elapsed() > LONGEST {
            // The whole group: a minus before its number says so.
            command(Path::new("."), "kill").args(["-KILL", "--", &format!("-{}", child.id())]).status()?;
            child.wait()?;
            break Err(format!("killed after {} s", LONGEST.as_secs()));
        }
        thread::sleep(Duration::from_millis(20));
    };
    let text = said.into_iter().map(|said| String::from_utf8_lossy(&said.join().unwrap_or_default()).into_owned());
    Ok((ended, text.collect::<Vec<_>>().join("\n")))
}

/// Whether a program was ended before it could say what came of its tests, or ended because a program of its own was.
fn was_ended(text: &str) -> bool {
    let seen = read(text);
    (!seen.ended && seen.failed.is_empty()) || (seen.failed.len() == 1 && text.contains("signal: 6 (SIGABRT)"))
}

/// What a test program said.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    passed: usize,
    failed: Vec<String>,
    ignored: usize,
    /// Lines that sum up what a test did.
    notes: Vec<String>,
    /// Whether it came to its end.
    ended: bool,
}

/// Reads the lines of Rust's test harness. Drivers and kernels may print between them, and within.
fn read(text: &str) -> Seen {
    let mut seen = Seen::default();
    for line in text.lines() {
        if let Some(rest) = line.split("test result: ").nth(1) {
            let number = |what: &str| {
                rest.split([';', '.']).find_map(|part| part.trim().strip_suffix(what)?.trim().parse::<usize>().ok())
            };
            seen.passed += number("passed").unwrap_or(0);
            seen.ignored += number("ignored").unwrap_or(0);
            seen.ended = true;
        } else if let Some(test) = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED")) {
            seen.failed.push(test.to_owned());
        } else if line.starts_with("sweep: ") && line.contains("with an error") {
            seen.notes.push(line.to_owned());
        }
    }
    seen
}

/// The lines that tests write when they leave themselves out.
fn left_out(text: &str, run: &str) -> BTreeSet<Skipped> {
    let skip = |line: &str| {
        let (test, reason) = line.split_once(' ')?;
        Some(Skipped { test: test.to_owned(), reason: reason.to_owned(), run: run.to_owned() })
    };
    text.lines().filter_map(skip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_shares_each_program_is_in_each_of_its_runs_once_and_in_every_share() {
        // Every third program runs once, in the plain runs: those of two drivers with two runs, and of one with one.
        let belongs = |program: usize, run: usize| !program.is_multiple_of(3) || [0, 2, 4].contains(&run);
        let of = |one_of: usize, first: usize| {
            Share { one_of: NonZeroUsize::new(one_of).unwrap(), first }.of(20, 5, belongs)
        };
        let all = Share::ALL.of(20, 5, belongs);
        assert_eq!(all.len(), 7 * 3 + 13 * 5);
        for one_of in [2, 3] {
            let mut turns: Vec<(usize, usize)> = (0..one_of).flat_map(|first| of(one_of, first)).collect();
            turns.sort_unstable();
            assert_eq!(turns, all);
            for first in 0..one_of {
                let taken = of(one_of, first);
                assert!((0..20).all(|program| taken.iter().any(|of| of.0 == program)), "{one_of}, {first}");
            }
        }
    }

    #[test]
    fn the_harness_is_read_also_where_kernels_print_between_its_lines() {
        let text = "running 3 tests\ntest a ... ok\nclgraph prints 41\ntest b ... FAILED\ntest c ... ok\n\n\
                    test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.20s\n";
        let expected = Seen { passed: 2, failed: vec!["b".to_owned()], ended: true, ..Seen::default() };
        assert_eq!(read(text), expected);
        let text =
            "sweep: 9 places, 8 with an error, in 7 s\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured\n";
        let seen = read(text);
        assert_eq!((seen.passed, seen.ignored, seen.notes.len()), (2, 1, 1));
        assert_eq!(read("running 2 tests\ntest a ... ok\n"), Seen::default(), "it crashed");
    }

    #[test]
    fn a_program_runs_again_with_the_same_inputs_or_not_at_all() {
        assert_eq!(Again::of("test a ... FAILED\n"), Some(Again { seed: None }));
        let text = "running 1 test\nCLGRAPH_TEST_SEED=41\ntest a ... FAILED\n";
        assert_eq!(Again::of(text), Some(Again { seed: Some("41".to_owned()) }));
        assert_eq!(Again::of("[quickcheck] TEST FAILED. Arguments: (3)\n"), None);
    }

    #[test]
    fn what_is_left_out_is_read_line_by_line() {
        let run = " with X=1";
        let skipped = |test: &str| Skipped { test: test.to_owned(), reason: "why".to_owned(), run: run.to_owned() };
        assert_eq!(
            left_out("build::a why\nbuild::b why\nbuild::a why\n", run),
            [skipped("build::a"), skipped("build::b")].into()
        );
    }
}
