//! The tuning cache: a file that keeps what the autotuner found for the next process. The program or
//! `CLGRAPH_TUNING_CACHE` names it.
//!
//! The file is JSON, and small. Its content is a hint: it is read when a graph is finalized, and it can only select one
//! of the strategies that the graph has anyway. Whatever is wrong with the file is a warning. A file with other content
//! is left alone.

use std::fmt::{self, Write as _};
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};

use crate::caps::Caps;
use crate::cl::completion::user_code::log_later;
use crate::cl::completion::workers;
use crate::command::Command;
use crate::exec::tune::autotuner::{Autotuner, Times};
use crate::files;
use crate::handles::NodeKind;
use crate::ir::Ir;
use crate::plan::{Path, Plan, Strategy};

/// A larger file is not a tuning cache.
const LARGEST: u64 = 1 << 20;
/// The largest number of graphs, of all devices; the oldest are removed.
const MOST: usize = 1000;

/// The entry of one executable's autotuner.
#[derive(Debug)]
pub(in crate::exec) struct TuningCache {
    file: PathBuf,
    device: String,
    graph: String,
}

impl TuningCache {
    pub(in crate::exec) fn new(file: PathBuf, caps: &Caps, ir: &Ir, plan: &Plan) -> Arc<Self> {
        let device = format!("{} / {} / {}", caps.platform, caps.name, caps.driver_version);
        Arc::new(Self { file, device, graph: fingerprint(ir, plan) })
    }

    /// Starts the autotuner with the entry of the file, if there is one.
    pub(in crate::exec) fn recall(&self, autotuner: &mut Autotuner) {
        let found = match read(&self.file) {
            Ok(found) => found,
            Err(error) => return self.warn(&format_args!("{error}: clgraph uses no entry of it; {REMEDY}")),
        };
        let entry = match found["devices"].get(&self.device) {
            Some(Value::Object(graphs)) => graphs.get(&self.graph),
            None => None,
            Some(_) => {
                let device = &self.device;
                return self.warn(&format_args!(
                    "the entry of {device} is damaged: clgraph does not use this entry; {REMEDY}"
                ));
            }
        };
        let Some(entry) = entry else { return };
        let known = strategy(entry).is_some_and(|(strategy, times)| {
            // The form has to be built first.
            if strategy.fused { autotuner.expect_fused() } else { autotuner.start_with(strategy, times) }
        });
        if !known {
            self.warn(&format_args!(
                "a graph cannot run with the strategy in its entry: clgraph times the graph \
                                     again"
            ));
        }
    }

    /// Writes what was found to the file, on a thread of its own, because writing takes time. An error is a warning.
    pub(in crate::exec) fn keep(self: Arc<Self>, found: (Strategy, Times)) {
        workers::run(move || {
            if let Err(error) = self.write(found) {
                self.warn(&format_args!("{error}: the strategy found for a graph is not stored; {REMEDY}"));
            }
        });
    }

    fn warn(&self, what: &fmt::Arguments<'_>) {
        log_later!(Warn, "tuning cache {}: {what}", self.file.display());
    }

    fn write(&self, (strategy, times): (Strategy, Times)) -> Result<(), String> {
        /// One thread writes at a time. Among several processes the last one wins.
        static WRITING: Mutex<()> = Mutex::new(());
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = read(&self.file)?;
        let devices = all["devices"].as_object_mut().ok_or(NO_DEVICES)?;
        let graphs = devices.entry(&self.device).or_insert_with(|| json!({}));
        let graphs = graphs.as_object_mut().ok_or("the file lists no graphs of the device")?;
        let day = SystemTime::UNIX_EPOCH.elapsed().unwrap_or(Duration::ZERO).as_secs() / 86_400;
        let entry = json!({
            "path": <&str>::from(strategy.path),
            "commands_per_buffer": strategy.chunk,
            "queues": strategy.queues,
            "fused": strategy.fused,
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
            let all = json!({ "clgraph_tuning_cache": 1, "devices": &*devices });
            let text = serde_json::to_string_pretty(&all).map_err(|error| error.to_string())?;
            if text.len() as u64 <= LARGEST {
                break text;
            }
            if older.is_empty() {
                return Err(format!("with one more graph the file would have more than {LARGEST} bytes"));
            }
            too_many = older.len().div_ceil(4);
        };
        files::replace(&self.file, text.as_bytes(), false).map_err(|error| error.to_string())
    }

    /// Returns the other graphs of all devices, oldest first: day, device, graph.
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

const NO_DEVICES: &str = "the file lists no devices";

const REMEDY: &str = "delete the file, or use another file (`Finalize::tuning_cache`, CLGRAPH_TUNING_CACHE)";

/// Returns the file's content, or an empty cache if there is no file. Returns an error if the file has other content.
fn read(file: &FilePath) -> Result<Value, String> {
    let Some(text) = files::read(file, LARGEST, |_| Ok(()))? else {
        return Ok(json!({ "clgraph_tuning_cache": 1, "devices": {} }));
    };
    let all: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    match all.get("clgraph_tuning_cache") {
        Some(version) if *version == 1 && all["devices"].is_object() => Ok(all),
        Some(version) if *version == 1 => Err(NO_DEVICES.to_owned()),
        _ => Err("the file has no entries of this version of clgraph".to_owned()),
    }
}

fn number(entry: &Value, name: &str) -> Option<u64> {
    entry.get(name).and_then(Value::as_u64)
}

fn strategy(entry: &Value) -> Option<(Strategy, Times)> {
    let path = entry.get("path").and_then(Value::as_str)?;
    let path = Path::named(path).filter(|path| *path != Path::Auto)?;
    let size = |name: &str| usize::try_from(number(entry, name)?).ok();
    let fused = entry.get("fused").and_then(Value::as_bool).unwrap_or(false);
    let strategy = Strategy { path, chunk: size("commands_per_buffer")?, queues: size("queues")?, fused };
    Some((strategy, Times { host: number(entry, "host_nanos")?, total: number(entry, "total_nanos")? }))
}

/// Returns a fingerprint. Graphs with the same commands, sizes, edges and strategies have the same fingerprint.
fn fingerprint(ir: &Ir, plan: &Plan) -> String {
    let mut text = String::new();
    for step in &plan.steps {
        // Writing to a string does not fail.
        let _ = match ir.command(step.node) {
            Command::Kernel { kernel, grid, .. } => {
                write!(text, "{} {:?} {:?};", ir.kernels[kernel.index()].name, grid.global, grid.local)
            }
            op => write!(text, "{};", NodeKind::of(op)),
        };
    }
    let _ = write!(text, "{:?};", plan.strategies);
    for (from, to) in &plan.edges.needed {
        let _ = write!(text, "{} {};", from.0, to.0);
    }
    format!("{:016x}", files::fingerprint(text.into_bytes()))
}
