//! Profiles as a trace for Chrome and Perfetto.

use std::path::Path;

use serde_json::{Value, json};

use crate::error::{BuildCause, BuildError, Result};
use crate::report::profile::{Clock, NodeProfile, Profile, RanOn};

/// A trace of submissions in Chrome's format (JSON), which <https://ui.perfetto.dev> and `chrome://tracing` show.
///
/// The trace has tracks for the device's queues, tracks for work of the host (as many as run at once), and one track
/// for submissions. Each node has its title, and its number, range and times as details.
///
/// Each device and clock is a process of the trace. Times of different processes cannot be compared: neither times of
/// different devices, nor times of the host's clock with those of a device.
///
/// ```
/// # fn main() -> clgraph::Result<()> {
/// # use clgraph::{Buffer, Finalize, Graph, Queue, Trace};
/// # let queue = Queue::new(&clgraph::best_device()?)?;
/// let (graph, buffer) = (Graph::new(&queue)?, Buffer::<u32>::new(&queue, 1 << 16)?);
/// graph.fill(&buffer, 7).label("clear").add()?;
/// let executable = graph.finalize(Finalize::new().profiling())?;
/// let mut trace = Trace::new();
/// for _ in 0..3 {
///     let run = executable.submit(&queue)?;
///     run.wait()?;
///     trace.add(&run.profile()?);
/// }
/// assert!(trace.to_json().contains("clear"));
/// # let file = std::env::temp_dir().join(format!("clgraph-trace-{}.json", std::process::id()));
/// trace.write(&file)?; // for https://ui.perfetto.dev
/// # std::fs::remove_file(file).unwrap();
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a trace is written by `write` or `to_json`"]
pub struct Trace {
    profiles: Vec<Profile>,
}

/// The first tracks of a process: the device's queues, and the host. Submissions are asynchronous events and need no
/// track.
const QUEUE: usize = 1;
const HOST: usize = 1_000;

/// A process of the trace: a device and a clock.
#[derive(Default)]
struct Process<'a> {
    key: Option<(usize, Clock)>,
    device: &'a str,
    zero: u64,
    /// The times until which the device's and the host's tracks are occupied.
    queues: Vec<u64>,
    host: Vec<u64>,
}

impl Trace {
    /// Returns an empty trace.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a submission. Times in the trace are microseconds since the earliest one of its device and clock.
    pub fn add(&mut self, profile: &Profile) -> &mut Self {
        self.profiles.push(profile.clone());
        self
    }

    /// Returns the trace as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut events = Vec::new();
        let mut processes: Vec<Process<'_>> = Vec::new();
        for (number, profile) in self.profiles.iter().enumerate() {
            let key = (profile.device_id, profile.clock);
            let at = processes.iter().position(|process| process.key == Some(key)).unwrap_or(processes.len());
            if at == processes.len() {
                // A browser counts in doubles: nanoseconds since a device was started would lose their last digits.
                let of_it = self.profiles.iter().filter(|other| (other.device_id, other.clock) == key);
                let times = of_it.flat_map(|other| other.nodes.iter().map(|node| node.queued).chain([other.submit]));
                let zero = times.min().unwrap_or_default();
                processes.push(Process { key: Some(key), device: &profile.device, zero, ..Process::default() });
            }
            let process = &mut processes[at];
            let zero = process.zero;
            let us = |time: u64| time.saturating_sub(zero) as f64 / 1e3;
            for (phase, time) in [("b", profile.submit), ("e", profile.end)] {
                events.push(json!({
                    "name": "submission", "cat": "submission", "ph": phase, "id": number,
                    "ts": us(time), "pid": at, "tid": 0,
                    "args": { "submission": number },
                }));
            }
            for node in &profile.nodes {
                let track = match node.runner {
                    RanOn::Device(_) => QUEUE + track(&mut process.queues, node),
                    RanOn::Host => HOST + track(&mut process.host, node),
                };
                events.push(json!({
                    "name": node.title(),
                    "cat": node.kind.to_string(),
                    "ph": "X",
                    "ts": us(node.start),
                    "dur": node.end.saturating_sub(node.start) as f64 / 1e3,
                    "pid": at,
                    "tid": track,
                    "args": details(number, node),
                }));
            }
        }
        for (at, process) in processes.iter().enumerate() {
            let named = |what: &str, track: usize, name: String| {
                let args = json!({ "name": name });
                json!({ "name": what, "ph": "M", "pid": at, "tid": track, "args": args })
            };
            let clock = process.key.map_or(Clock::Device, |(_, clock)| clock);
            events.push(named("process_name", 0, format!("{}, {clock} clock", process.device)));
            let tracks = [(QUEUE, "device queue", process.queues.len()), (HOST, "host", process.host.len())];
            for (first, name, count) in tracks {
                events.extend((0..count).map(|track| named("thread_name", first + track, format!("{name} {track}"))));
            }
        }
        json!({ "displayTimeUnit": "ns", "traceEvents": events }).to_string()
    }

    /// Writes [`to_json`](Self::to_json) to a `.json` file. An existing file is replaced.
    ///
    /// # Errors
    /// [`BuildCause::File`], in a [`BuildError`], for another extension, or if the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let fail = |why: String| BuildError::new("trace", BuildCause::File { path: path.to_path_buf(), why });
        if path.extension().is_none_or(|extension| extension != "json") {
            return Err(fail("the extension of the file must be `json`".to_owned()).into());
        }
        Ok(std::fs::write(path, self.to_json()).map_err(|error| fail(error.to_string()))?)
    }
}

/// Returns a track that is free when the node starts, because viewers leave out events that overlap on one track. A
/// track is the time until which it is occupied.
fn track(tracks: &mut Vec<u64>, node: &NodeProfile) -> usize {
    let track = tracks.iter().position(|busy| *busy <= node.start).unwrap_or(tracks.len());
    if track == tracks.len() {
        tracks.push(0);
    }
    tracks[track] = node.end;
    track
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
    if let Some(turn) = node.turn {
        details["turn"] = turn.into();
    }
    if !node.range.is_empty() {
        details["range"] = node.range.clone().into();
    }
    details
}
