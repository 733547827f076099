//! A line of the results, and what plots and tables show of it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::bounds::Verdict;

/// One variant of doing one thing. Times are medians, in microseconds for the whole graph; null if there is no such
/// phase. What the scenario `submit` prepares is made and timed once.
#[derive(Clone, Deserialize, Serialize)]
pub struct Row {
    pub driver: String,
    pub scenario: Cow<'static, str>,
    pub n: usize,
    pub queue: Cow<'static, str>,
    pub variant: Cow<'static, str>,
    pub record_us: Option<f64>,
    pub finalize_us: Option<f64>,
    pub submit_us: Option<f64>,
    pub total_us: Option<f64>,
    /// If a round is an update, its time, which is then the total.
    pub update_us: Option<f64>,
    pub total_p10_us: Option<f64>,
    pub total_p90_us: Option<f64>,
    /// By how many bytes the process has grown.
    #[serde(default)]
    pub resident_bytes_a_node: Option<f64>,
    /// The median of per-round ratios to `loop`.
    pub ratio_to_loop: Option<f64>,
    /// Rounds that were counted.
    pub rounds: usize,
    /// The result of the bound, if there is one.
    #[serde(skip_deserializing)]
    pub verdict: Option<Verdict>,
}

/// What a plot shows of a row.
pub struct Point<'a> {
    pub driver: &'a str,
    pub scenario: &'a str,
    pub variant: &'a str,
    pub n: usize,
    pub us_a_node: f64,
}

impl Row {
    /// Whether the row is of an in-order queue.
    pub fn point(&self) -> Option<Point<'_>> {
        let us_a_node = self.total_us.filter(|total| *total > 0.0 && self.queue == "in-order")? / self.n as f64;
        Some(Point { driver: &self.driver, scenario: &self.scenario, variant: &self.variant, n: self.n, us_a_node })
    }
}
