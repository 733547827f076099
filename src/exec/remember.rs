//! What was found by timing, kept in a file for the next process, where the program or `CLGRAPH_CHOICES` names one.
//!
//! The file is JSON, and small. What it says is a hint: it is looked at when a graph is finalized, it only ever names one of the ways
//! that the graph has anyway, and whatever is wrong with it is a warning. A file that is something else is left alone.

use std::fmt::{self, Write as _};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path as FilePath, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};

use super::choice::{Choice, Times};
use super::workers;
use crate::caps::Caps;
use crate::graph::NodeKind;
use crate::ir::{Ir, Op};
use crate::plan::{Path, Plan, Way};

/// A larger file is not ours.
const LARGEST: u64 = 1 << 20;
/// Graphs, of all devices; the oldest make room.
const MOST: usize = 1000;

/// Where the choice of one executable is kept.
#[derive(Debug)]
pub(super) struct Remembered {
    file: PathBuf,
    device: String,
    graph: String,
}

impl Remembered {
    pub(super) fn new(file: PathBuf, caps: &Caps, ir: &Ir, plan: &Plan) -> Arc<Self> {
        let device = format!("{} / {} / {}", caps.platform, caps.name, caps.driver_version);
        Arc::new(Self { file, device, graph: fingerprint(ir, plan) })
    }

    /// Starts with what the file says, if it says something.
    pub(super) fn recall(&self, choice: &mut Choice) {
        let found = match read(&self.file) {
            Ok(found) => found,
            Err(error) => return self.warn(&format_args!("{error}: nothing is taken from it; {REMEDY}")),
        };
        let entry = match found["devices"].get(&self.device) {
            Some(Value::Object(graphs)) => graphs.get(&self.graph),
            None => None,
            Some(_) => {
                let device = &self.device;
                return self
                    .warn(&format_args!("the entry of {device} is damaged: nothing is taken from it; {REMEDY}"));
            }
        };
        let Some(entry) = entry else { return };
        let known = way(entry).is_some_and(|(way, times)| choice.start_with(way, times));
        if !known {
            self.warn(&format_args!("the path that it has for a graph is not possible for it: it is timed again"));
        }
    }

    /// Keeps what was found. On a thread of its own, because it takes its time; a mistake is a warning.
    pub(super) fn keep(self: Arc<Self>, found: (Way, Times)) {
        workers::run(move || {
            if let Err(error) = self.write(found) {
                self.warn(&format_args!("{error}: what was found is not kept; {REMEDY}"));
            }
        });
    }

    fn warn(&self, what: &fmt::Arguments<'_>) {
        log::warn!("the file of choices {}: {what}", self.file.display());
    }

    fn write(&self, (way, times): (Way, Times)) -> Result<(), String> {
        /// One at a time. Of several processes the last one wins.
        static WRITING: Mutex<()> = Mutex::new(());
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = read(&self.file)?;
        let devices = all["devices"].as_object_mut().ok_or(NO_DEVICES)?;
        let graphs = devices.entry(&self.device).or_insert_with(|| json!({}));
        let graphs = graphs.as_object_mut().ok_or("it lists no graphs of the device")?;
        let day = SystemTime::UNIX_EPOCH.elapsed().unwrap_or(Duration::ZERO).as_secs() / 86_400;
        let entry = json!({
            "path": name(way.path),
            "commands_per_buffer": way.chunk,
            "queues": way.queues,
            "host_nanos": times.host,
            "total_nanos": times.total,
            "day": day,
        });
        graphs.insert(self.graph.clone(), entry);
        let mut older = self.older(devices);
        let mut too_many = (older.len() + 1).saturating_sub(MOST);
        let text = loop {
            for (_, device, graph) in older.drain(..too_many) {
                if let Some(graphs) = devices.get_mut(&device).and_then(Value::as_object_mut) {
                    graphs.remove(&graph);
                }
            }
            devices.retain(|_, graphs| graphs.as_object().is_none_or(|graphs| !graphs.is_empty()));
            let all = json!({ "clgraph_choices": 1, "devices": &*devices });
            let text = serde_json::to_string_pretty(&all).map_err(|error| error.to_string())?;
            if text.len() as u64 <= LARGEST {
                break text;
            }
            if older.is_empty() {
                return Err(format!("with one more graph it has more than {LARGEST} bytes"));
            }
            too_many = older.len().div_ceil(4);
        };
        // Whoever reads meanwhile reads the old one or the new one.
        let (beside, written) = write_beside(&self.file, &text).map_err(|error| error.to_string())?;
        written.and_then(|()| fs::rename(&beside, &self.file)).map_err(|error| {
            let _ = fs::remove_file(&beside);
            error.to_string()
        })
    }

    /// The other graphs of all devices, oldest first: day, device, graph.
    fn older(&self, devices: &Map<String, Value>) -> Vec<(u64, String, String)> {
        let graphs = devices.iter().filter_map(|(device, graphs)| Some((device, graphs.as_object()?)));
        let graphs =
            graphs.flat_map(|(device, graphs)| graphs.iter().map(move |(graph, entry)| (device, graph, entry)));
        let others = graphs.filter(|(device, graph, _)| (*device, *graph) != (&self.device, &self.graph));
        let aged = |(device, graph, entry): (&String, &String, &Value)| {
            (number(entry, "day").unwrap_or(0), device.clone(), graph.clone())
        };
        let mut older: Vec<_> = others.map(aged).collect();
        older.sort_unstable();
        older
    }
}

const NO_DEVICES: &str = "it lists no devices";

const REMEDY: &str = "delete it, or name another (`Finalize::choices`, CLGRAPH_CHOICES)";

/// Writes a file that was not there, beside another. Gives its name, and how that went.
fn write_beside(file: &FilePath, text: &str) -> io::Result<(PathBuf, io::Result<()>)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let nanos = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |now| now.subsec_nanos());
    let mut beside = file.to_owned().into_os_string();
    beside.push(format!(".{}-{nanos}-{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    let beside = PathBuf::from(beside);
    // Never one that somebody else has put there, nor where that leads to.
    let mut new = fs::OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let written = new.write_all(text.as_bytes());
    Ok((beside, written))
}

/// The file's content; that of a new one if there is none. An error if it is something else.
fn read(file: &FilePath) -> Result<Value, String> {
    match fs::metadata(file) {
        // Reading from something else may take for ever.
        Ok(metadata) if !metadata.is_file() => return Err("it is a folder, or no plain file".to_owned()),
        Ok(metadata) if metadata.len() > LARGEST => return Err(format!("it has more than {LARGEST} bytes")),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(json!({ "clgraph_choices": 1, "devices": {} }));
        }
        Err(error) => return Err(error.to_string()),
    }
    // It may be another one by now.
    let mut text = String::new();
    let read = fs::File::open(file).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text));
    read.map_err(|error| error.to_string())?;
    let all: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    match all.get("clgraph_choices") {
        Some(version) if *version == 1 && all["devices"].is_object() => Ok(all),
        Some(version) if *version == 1 => Err(NO_DEVICES.to_owned()),
        _ => Err("it holds no choices of this version of clgraph".to_owned()),
    }
}

fn number(entry: &Value, name: &str) -> Option<u64> {
    entry.get(name).and_then(Value::as_u64)
}

fn way(entry: &Value) -> Option<(Way, Times)> {
    let path = entry.get("path").and_then(Value::as_str)?;
    let path =
        [Path::Native, Path::Replay, Path::Gated, Path::Queues].into_iter().find(|known| name(*known) == path)?;
    let size = |name: &str| usize::try_from(number(entry, name)?).ok();
    let way = Way { path, chunk: size("commands_per_buffer")?, queues: size("queues")? };
    Some((way, Times { host: number(entry, "host_nanos")?, total: number(entry, "total_nanos")? }))
}

fn name(path: Path) -> &'static str {
    match path {
        Path::Native => "native",
        Path::Gated => "gated",
        Path::Queues => "queues",
        Path::Replay | Path::Auto => "replay",
    }
}

/// Two graphs with the same commands, sizes and edges, which may be enqueued in the same ways, have the same one.
fn fingerprint(ir: &Ir, plan: &Plan) -> String {
    let mut text = String::new();
    for step in &plan.steps {
        // Writing into a string does not fail.
        let _ = match ir.op(step.node) {
            Op::Kernel { kernel, grid, .. } => {
                write!(text, "{} {:?} {:?};", ir.kernels[kernel.index()].name, grid.global, grid.local)
            }
            op => write!(text, "{};", NodeKind::of(op)),
        };
    }
    let _ = write!(text, "{:?};", plan.ways);
    for (from, to) in &plan.edges.needed {
        let _ = write!(text, "{} {};", from.0, to.0);
    }
    // FNV-1a: it has to be the same in every process, and that of the standard library need not be.
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}
