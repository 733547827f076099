//! The table of results, and `target/bench/results.json`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::bounds::{self, Verdict};
use crate::plots;
use crate::rounds::Measured;
use crate::rows::Row;
use crate::tables;

/// Everything that a run has measured.
pub struct Results {
    date: String,
    machine: String,
    commit: Option<String>,
    /// The device that is measured: one driver may have several.
    device: usize,
    comparisons: Vec<Comparison>,
}

/// Variants of doing one thing, measured together.
struct Comparison {
    device: usize,
    driver: String,
    scenario: &'static str,
    n: usize,
    queue: &'static str,
    variants: Vec<Measured>,
}

/// The content of the file.
#[derive(Serialize)]
struct Written<'a> {
    date: &'a str,
    machine: &'a str,
    commit: Option<&'a str>,
    rows: Vec<Row>,
}

/// A row, together with those of other runs.
#[derive(Deserialize, Serialize)]
struct Kept {
    date: String,
    machine: String,
    #[serde(flatten)]
    row: Row,
}

impl Comparison {
    /// Returns whether it measures the same thing, perhaps at another size.
    fn is_like(&self, other: &Self) -> bool {
        (self.device, self.scenario, self.queue) == (other.device, other.scenario, other.queue)
    }

    fn rows(&self) -> impl Iterator<Item = Row> {
        let baseline = self.variants.iter().find(|one| one.variant == "loop");
        let has_bounds = bounds::apply(&self.driver, self.scenario) && self.queue == "in-order";
        self.variants.iter().map(move |one| {
            let total = |percent| one.phase(percent, |times| Some(times.total));
            Row {
                driver: self.driver.clone(),
                scenario: self.scenario.into(),
                n: self.n,
                queue: self.queue.into(),
                variant: one.variant.into(),
                record_us: one.phase(50, |times| times.record),
                finalize_us: one.phase(50, |times| times.finalize),
                submit_us: one.phase(50, |times| times.submit),
                total_us: total(50),
                update_us: one.phase(50, |times| times.update),
                total_p10_us: total(10),
                total_p90_us: total(90),
                resident_bytes_a_node: one.resident().map(|bytes| bytes / self.n as f64),
                ratio_to_loop: baseline.and_then(|baseline| one.ratio_to(baseline)),
                rounds: one.rounds().count(),
                verdict: if has_bounds { bounds::verdict(one, self.n, &self.variants) } else { None },
            }
        })
    }

    /// Adds the rounds of another pass over the same variants.
    fn append(&mut self, other: Self) {
        self.variants.iter_mut().zip(other.variants).for_each(|(known, one)| known.append(one));
    }

    fn show_head(&self) {
        let Self { scenario, queue, .. } = self;
        let on = if *queue == "in-order" { String::new() } else { format!(", on a queue that is {queue}") };
        println!("\n{scenario}{on} (us for the whole graph: medians; ratios: medians over rounds)");
        println!(
            "{:>7} {:<13} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>7} {:>7}",
            "nodes",
            "variant",
            "record",
            "finalize",
            "update",
            "submit",
            "total",
            "p10",
            "p90",
            "to loop",
            "rounds",
            "B/node"
        );
    }

    fn show(&self) {
        let us = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
        for row in self.rows() {
            println!(
                "{:>7} {:<13} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>7} {:>7}  {}",
                row.n,
                row.variant,
                us(row.record_us),
                us(row.finalize_us),
                us(row.update_us),
                us(row.submit_us),
                us(row.total_us),
                us(row.total_p10_us),
                us(row.total_p90_us),
                row.ratio_to_loop.map_or("-".to_owned(), |ratio| format!("{ratio:.3}")),
                row.rounds,
                row.resident_bytes_a_node.map_or("-".to_owned(), |bytes| format!("{bytes:.0}")),
                row.verdict.as_ref().map_or(String::new(), ToString::to_string)
            );
        }
    }
}

impl Results {
    pub fn new() -> Self {
        Self {
            date: jiff::Zoned::now().strftime("%FT%T%:z").to_string(),
            machine: machine(),
            commit: commit(),
            device: 0,
            comparisons: Vec::new(),
        }
    }

    /// Notes that from now on the measurements are of another device.
    pub fn next_device(&mut self) {
        self.device += 1;
    }

    /// Adds and shows the measurements of one scenario at one size.
    pub fn add(&mut self, driver: &str, scenario: &'static str, n: usize, variants: Vec<Measured>) {
        self.add_on("in-order", driver, scenario, n, variants);
    }

    /// The same for a kind of queue. Measurements of an earlier pass are included in what is shown.
    pub fn add_on(
        &mut self,
        queue: &'static str,
        driver: &str,
        scenario: &'static str,
        n: usize,
        variants: Vec<Measured>,
    ) {
        let new = Comparison { device: self.device, driver: driver.to_owned(), scenario, n, queue, variants };
        let known = self.comparisons.iter().position(|old| old.is_like(&new) && old.n == n);
        let at = known.unwrap_or(self.comparisons.len());
        if at.checked_sub(1).is_none_or(|before| !self.comparisons[before].is_like(&new)) {
            new.show_head();
        }
        match known {
            Some(at) => self.comparisons[at].append(new),
            None => self.comparisons.push(new),
        }
        self.comparisons[at].show();
    }

    fn rows(&self) -> impl Iterator<Item = Row> {
        self.comparisons.iter().flat_map(Comparison::rows)
    }

    /// Returns an error if a row is beyond its bound, or if there was no row with a bound.
    pub fn check(&self) -> Result<(), Failure> {
        let judged: Vec<(Row, Verdict)> =
            self.rows().filter_map(|row| row.verdict.clone().map(|is| (row, is))).collect();
        let slow = judged.iter().filter(|(_, verdict)| !verdict.good);
        let slow = slow.map(|(row, verdict)| format!("{} {} {}: {verdict}", row.driver, row.n, row.variant));
        let slow: Vec<String> = slow.collect();
        match judged.len() {
            0 => Err("no row has a bound: they are for the scenario `submit` on PoCL".into()),
            all if !slow.is_empty() => {
                Err(format!("{} of {all} rows are too slow:\n    {}", slow.len(), slow.join("\n    ")).into())
            }
            all => {
                println!("\nall {all} rows with a bound are within it");
                Ok(())
            }
        }
    }

    /// Stores the rows together with the last rows of other scenarios and drivers, and draws all of them.
    pub fn keep(&self, folder: &Path) -> Result<(), Failure> {
        let file = folder.join("latest.json");
        let known = fs::read_to_string(&file).ok().and_then(|text| serde_json::from_str::<Vec<Kept>>(&text).ok());
        let is_new = |row: &Row| {
            self.comparisons.iter().any(|new| (new.driver.as_str(), new.scenario) == (&row.driver, &row.scenario))
        };
        let mut kept: Vec<Kept> = known.unwrap_or_default().into_iter().filter(|kept| !is_new(&kept.row)).collect();
        kept.extend(self.rows().map(|row| Kept { date: self.date.clone(), machine: self.machine.clone(), row }));
        fs::write(&file, serde_json::to_string_pretty(&kept)?)?;
        let rows: Vec<Row> = kept.into_iter().map(|kept| kept.row).collect();
        tables::write(&rows, &folder.join("latest.md"))?;
        for plot in plots::draw(&rows, &folder.join("plots"))? {
            println!("drawn: {}", plot.display());
        }
        Ok(())
    }

    /// Writes a file, and makes its folders.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let Self { date, machine, commit, .. } = self;
        let written = Written { date, machine, commit: commit.as_deref(), rows: self.rows().collect() };
        fs::write(path, serde_json::to_string_pretty(&written)?)?;
        println!("\nwritten: {}", path.display());
        Ok(())
    }
}

/// Returns the processor and the number of cores, if the system reports them.
fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{}, {cores} cores, {}", model.map_or("unknown processor", |(_, name)| name), std::env::consts::OS)
}

/// Returns the commit of the working tree, with a mark if there are changes.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { commit } else { format!("{commit} with changes") })
}
