//! What came of the tests on a driver.

use std::collections::BTreeSet;
use std::time::Duration;

/// What came of all runs on a driver.
#[derive(Default)]
pub struct Outcome {
    pub driver: String,
    pub passed: usize,
    /// Program, test and run.
    pub failed: Vec<String>,
    /// What failed once and passed when it ran again, alone.
    pub unsteady: Vec<String>,
    pub skipped: BTreeSet<Skipped>,
    /// Which programs ran: their names, and those of the runs.
    pub ran: BTreeSet<(String, String)>,
    /// What its programs took, one after another.
    pub took: Duration,
    /// What tests tell of themselves in passing.
    pub notes: BTreeSet<String>,
    /// What `clgraph devices --json` says.
    pub devices: serde_json::Value,
}

/// A test that left itself out of one run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skipped {
    pub test: String,
    pub reason: String,
    /// As `Run::name` says.
    pub run: String,
}

impl Outcome {
    /// What came of one program more.
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.unsteady.extend(other.unsteady);
        self.skipped.extend(other.skipped);
        self.notes.extend(other.notes);
    }

    /// How many passed, failed and left themselves out. A test counts in each run.
    pub fn sum(&self) -> String {
        let (passed, failed, skipped) = (self.passed, self.failed.len(), self.skipped.len());
        format!("{passed} passed, {failed} failed, {skipped} skipped")
    }
}
