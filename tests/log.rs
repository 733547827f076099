//! The log. A process has one logger, so all of it is one test.

mod common;

use std::sync::{Mutex, OnceLock};

use clgraph::{Executable, Finalize, Path, TuningState};
use common::{Bench, text};
use log::{Level, LevelFilter, Log, Metadata, Record};

/// Stores clgraph's lines.
struct Lines(Mutex<Vec<(Level, String)>>);

impl Log for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("clgraph")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.lock().unwrap().push((record.level(), record.args().to_string()));
            // A logger is code of the program, and may call clgraph.
            if let Some(executable) = ASKED.get() {
                assert!(executable.report().nodes > 0);
            }
        }
    }

    fn flush(&self) {}
}

/// The logger asks this executable for its report at each line.
static ASKED: OnceLock<Executable> = OnceLock::new();
static LINES: Lines = Lines(Mutex::new(Vec::new()));

fn lines() -> Vec<(Level, String)> {
    std::mem::take(&mut *LINES.0.lock().unwrap())
}

#[test]
fn finalize_says_what_it_decided_and_errors_are_returned_and_not_logged() {
    // Set before anything else sets a logger.
    log::set_logger(&LINES).unwrap();
    let bench = Bench::new();
    let a = bench.buffer(&[0; 64]);
    let graph = bench.graph();
    graph.fill(&a, 1).add().unwrap();
    lines();
    log::set_max_level(LevelFilter::Info);
    graph.finalize(Finalize::new().path(Path::Replay)).unwrap();
    let said = lines();
    let decided = said.iter().find(|(level, line)| *level == Level::Info && line.starts_with("a graph of 1 node for "));
    assert!(decided.is_some_and(|(_, line)| line.contains("1 command by replay")), "{said:?}");

    // If there is more than one path, the log names the fastest.
    graph.fill(&a, 2).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let _ = ASKED.set(executable.clone());
    while executable.report().tuning.state == TuningState::Trying {
        executable.submit(&bench.queue).unwrap().wait().unwrap();
    }
    let said = lines();
    let settled = said.iter().any(|(_, line)| line.starts_with("the autotuner chose for an executable on device `"));
    assert_eq!(settled, executable.report().tuning.state == TuningState::Settled, "{said:?}");

    text(a.slice(..65));
    text(graph.finalize(Finalize::new().result_slots(0)));
    let run = executable.submit(&bench.queue).unwrap();
    run.wait().unwrap();
    let said = lines();
    assert!(said.is_empty(), "{said:?}");
}
