//! Profiles as a trace for Chrome and Perfetto.

use std::path::Path;

use serde_json::{Value, json};

use super::profile::{Clock, NodeProfile, Profile, Runner};
use crate::error::{BuildCause, BuildError, Result};

/// A trace of submissions in the format of Chrome (JSON), which <https://ui.perfetto.dev> and `chrome://tracing` show: a lane for the
/// device's queue, lanes for what runs on the host, and one for submissions. Each node has its title, and number, range and
/// times as details.
///
/// Times of different devices are not to be compared, nor those of a submission that has the host's clock with those of others:
/// each device and clock is a process of the trace.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    profiles: Vec<Profile>,
}

/// The lanes of a process.
const SUBMISSIONS: usize = 0;
const QUEUE: usize = 1;
const HOST: usize = 2;

impl Trace {
    /// An empty trace.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a submission.
    pub fn add(&mut self, profile: &Profile) -> &mut Self {
        self.profiles.push(profile.clone());
        self
    }

    /// The trace as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut events = Vec::new();
        let mut processes: Vec<(&str, Clock)> = Vec::new();
        let (mut lanes, mut zeros) = (Vec::new(), Vec::new());
        for profile in &self.profiles {
            let key = (&*profile.device, profile.clock);
            if !processes.contains(&key) {
                processes.push(key);
                lanes.push(Vec::new());
                zeros.push(u64::MAX);
            }
        }
        let process_of = |profile: &Profile| {
            let key = (&*profile.device, profile.clock);
            processes.iter().position(|process| *process == key).unwrap_or_default()
        };
        // A browser counts in doubles: nanoseconds since a device was started would lose their ends.
        for profile in &self.profiles {
            let zero = &mut zeros[process_of(profile)];
            *zero = profile.nodes.iter().map(|node| node.queued).fold((*zero).min(profile.submit), u64::min);
        }
        for (number, profile) in self.profiles.iter().enumerate() {
            let process = process_of(profile);
            let us = |time: u64| time.saturating_sub(zeros[process]) as f64 / 1e3;
            let phase = |ph: &str, time: u64| {
                let name = format!("submission {number}");
                json!({ "name": name, "cat": "submission", "ph": ph, "id": number, "ts": us(time), "pid": process, "tid": SUBMISSIONS })
            };
            events.extend([phase("b", profile.submit), phase("e", profile.end)]);
            for node in &profile.nodes {
                let lane = match node.runner {
                    Runner::Device(_) => QUEUE,
                    Runner::Host => HOST + lane(&mut lanes[process], node),
                };
                events.push(json!({
                    "name": node.title(),
                    "cat": node.kind.to_string(),
                    "ph": "X",
                    "ts": us(node.start),
                    "dur": node.end.saturating_sub(node.start) as f64 / 1e3,
                    "pid": process,
                    "tid": lane,
                    "args": details(number, node),
                }));
            }
        }
        for (process, (device, clock)) in processes.iter().enumerate() {
            let named = |what: &str, lane: usize, name: String| json!({ "name": what, "ph": "M", "pid": process, "tid": lane, "args": { "name": name } });
            events.push(named("process_name", SUBMISSIONS, format!("{device}, {clock} clock")));
            events.push(named("thread_name", SUBMISSIONS, "submissions".to_owned()));
            events.push(named("thread_name", QUEUE, "device queue".to_owned()));
            events.extend(
                (0..lanes[process].len()).map(|lane| named("thread_name", HOST + lane, format!("host {lane}"))),
            );
        }
        json!({ "displayTimeUnit": "ns", "traceEvents": events }).to_string()
    }

    /// Writes [`to_json`](Self::to_json) to a `.json` file. An existing file is replaced.
    ///
    /// # Errors
    /// [`BuildCause::File`], in a [`BuildError`], for another extension, or when the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let fail = |why: String| BuildError::new("trace", BuildCause::File { path: path.to_path_buf(), why });
        if path.extension().is_none_or(|extension| extension != "json") {
            return Err(fail("its extension must be `json`".to_owned()).into());
        }
        Ok(std::fs::write(path, self.to_json()).map_err(|error| fail(error.to_string()))?)
    }
}

/// A lane of the host's that is free when the node starts: what overlaps is drawn in several. A lane is when it was busy last.
fn lane(lanes: &mut Vec<u64>, node: &NodeProfile) -> usize {
    let lane = lanes.iter().position(|busy| *busy <= node.start).unwrap_or(lanes.len());
    if lane == lanes.len() {
        lanes.push(0);
    }
    lanes[lane] = node.end;
    lane
}

fn details(submission: usize, node: &NodeProfile) -> Value {
    let mut details = json!({
        "submission": submission,
        "node": node.node.index(),
        "kind": node.kind.to_string(),
        "name": node.name,
        "by": node.runner.to_string(),
        "waited_us": node.start.saturating_sub(node.queued) as f64 / 1e3,
    });
    if let Some(inside) = node.inside {
        details["inside"] = inside.into();
    }
    if !node.range.is_empty() {
        details["range"] = node.range.clone().into();
    }
    details
}
