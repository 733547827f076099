//! The log. A process has one logger, so all of it is one test.

mod common;

use std::sync::{Mutex, OnceLock, mpsc};

use clgraph::{Executable, Finalize, MapRead, Path, Queue, Submission, TuningState, UserEvent};
use common::Bench;
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
            let hostile = HOSTILE.lock().unwrap().clone();
            if let Some((executable, queue)) = hostile {
                // Else it would log for ever.
                log::set_max_level(LevelFilter::Off);
                queue.finish().unwrap();
                executable.submit(&queue).unwrap().wait().unwrap();
                log::set_max_level(LevelFilter::Trace);
                panic!("as a logger should not");
            }
        }
    }

    fn flush(&self) {}
}

/// The logger asks this executable for its report at each line.
static ASKED: OnceLock<Executable> = OnceLock::new();
/// If there is an executable here, the logger runs it on the queue, waits, and panics.
static HOSTILE: Mutex<Option<(Executable, Queue)>> = Mutex::new(None);
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
    let logged = lines();
    let decided =
        logged.iter().find(|(level, line)| *level == Level::Info && line.starts_with("a graph of 1 node for "));
    assert!(decided.is_some_and(|(_, line)| line.contains("1 command by replay")), "{logged:?}");

    // If there is more than one path, the log names the fastest.
    graph.fill(&a, 2).add().unwrap();
    let executable = graph.finalize(Finalize::new()).unwrap();
    let _ = ASKED.set(executable.clone());
    while executable.report().tuning.state == TuningState::Trying {
        executable.submit(&bench.queue).unwrap().wait().unwrap();
    }
    let run = executable.submit(&bench.queue).unwrap();
    wait_for_the_log(&run);
    let logged = lines();
    let settled = logged.iter().any(|(_, line)| line.starts_with("the autotuner chose for an executable on device `"));
    assert_eq!(settled, executable.report().tuning.state == TuningState::Settled, "{logged:?}");

    a.slice(..65).unwrap_err();
    graph.finalize(Finalize::new().result_slots(0)).unwrap_err();
    let run = executable.submit(&bench.queue).unwrap();
    run.wait().unwrap();
    wait_for_the_log(&run);
    let logged = lines();
    assert!(logged.is_empty(), "{logged:?}");
    set_by_the_program(&bench);
    hostile(&bench);
}

/// What clgraph logs while it holds locks is logged by the thread of callbacks, in order.
fn wait_for_the_log(run: &Submission) {
    let (sender, receiver) = mpsc::channel();
    run.on_complete(move |_| sender.send(()).unwrap());
    receiver.recv().unwrap();
}

/// The program sets the driver's event of its user event itself: nothing waits for ever, and nothing says so.
fn set_by_the_program(bench: &Bench) {
    let user = UserEvent::new(&bench.queue).unwrap();
    opencl3::event::set_user_event_status(user.event().raw().unwrap(), 0).unwrap();
    user.complete().unwrap();
    let run = bench.graph().finalize(Finalize::new()).unwrap().submit(&bench.queue).unwrap();
    wait_for_the_log(&run);
    let logged = lines();
    let told = logged.iter().filter(|(_, line)| line.starts_with("the cl_event of a user event was set"));
    assert_eq!(told.count(), 1, "{logged:?}");
    assert!(logged.iter().all(|(level, _)| *level >= Level::Info), "{logged:?}");
}

/// A logger that waits, submits and panics affects nothing.
fn hostile(bench: &Bench) {
    let a = bench.buffer(&[0; 64]);
    let graph = bench.graph();
    let fill = graph.fill(&a, 1).add().unwrap();
    let executables = [Path::Auto, Path::Native, Path::Replay, Path::Gated, Path::Queues]
        .map(|path| graph.finalize(Finalize::new().path(path).updatable()).unwrap());
    let run = executables[0].submit(&bench.queue).unwrap();
    let (other, third) = (bench.another_queue(false), bench.another_queue(false));
    let plain = bench.graph().finalize(Finalize::new()).unwrap();
    *HOSTILE.lock().unwrap() = Some((plain, other.clone()));
    log::set_max_level(LevelFilter::Trace);
    for (number, executable) in (2_u32..).zip(&executables) {
        let go = UserEvent::new(&bench.queue).unwrap();
        let late = executable.submit_to(&bench.queue).after(&go).submit().unwrap();
        let runs = [(); 3].map(|()| executable.submit(&bench.queue).unwrap());
        let elsewhere = executable.submit(&other).unwrap();
        let plain = bench.queue.enqueue_fill_buffer(&a, &[0], 0, 256, &[&go.event()]).unwrap();
        graph.fill(&a, number).replace(fill).unwrap();
        executable.update(&fill).unwrap();
        // SAFETY: nothing that runs uses the buffer.
        drop(unsafe { third.map(&bench.buffer(&[1; 64]), MapRead, &[]) });
        go.complete().unwrap();
        plain.wait().unwrap();
        runs.iter().chain([&late, &elsewhere]).for_each(|run| run.wait().unwrap());
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        assert_eq!(bench.content(&a), [number; 64]);
    }
    log::set_max_level(LevelFilter::Info);
    *HOSTILE.lock().unwrap() = None;
    wait_for_the_log(&run);
    assert!(!lines().is_empty());
}
