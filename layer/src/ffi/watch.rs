//! The recorder of this process, and the report at its end.

use std::fs::OpenOptions;
use std::io::Write as _;
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use super::{process, quietly};
use crate::report::recorder::Recorder;
use crate::report::text;
use crate::settings::Report;

/// A forked child has a recorder of its own, and so has who initializes the layer again: the old one may be locked by a thread
/// that is not in the child.
static RECORDERS: [OnceLock<Mutex<Recorder>>; 16] = [const { OnceLock::new() }; 16];
static GENERATION: AtomicUsize = AtomicUsize::new(0);

/// Calls are looked at.
static WATCHES: AtomicBool = AtomicBool::new(false);
/// Where the report goes.
static GOES: OnceLock<&'static Report> = OnceLock::new();

/// Begins to look at calls, and reports at the end.
pub(super) fn begin(report: &'static Report) {
    let _ = GOES.set(report);
    WATCHES.store(true, Ordering::Release);
}

pub(super) fn watches() -> bool {
    WATCHES.load(Ordering::Acquire)
}

/// Writes something down, if calls are looked at. The work calls nothing of the loader: rule L.
pub(super) fn record<T>(work: impl FnOnce(&mut Recorder) -> T) -> Option<T> {
    if !watches() {
        return None;
    }
    let done = quietly(|| {
        let recorder = RECORDERS.get(GENERATION.load(Ordering::Acquire))?.get_or_init(Mutex::default);
        Some(work(&mut recorder.lock().unwrap_or_else(PoisonError::into_inner)))
    });
    if done.is_none() {
        // What a panic has left half-done is not reported.
        WATCHES.store(false, Ordering::Release);
        let text = "clgraph_layer: a fault of the layer's, which the lines above tell of: there is no report\n";
        quietly(|| process::without_signals(|| say(text)));
    }
    done.flatten()
}

/// In a forked child: what the parent has called is not the child's.
pub(super) extern "C" fn forked() {
    GENERATION.fetch_add(1, Ordering::AcqRel);
}

/// At the end of the process.
pub(super) extern "C" fn ended() {
    quietly(end);
}

/// Reports, once. A process that has called nothing has no report.
pub(super) fn end() {
    if !WATCHES.swap(false, Ordering::AcqRel) {
        return;
    }
    let generation = GENERATION.fetch_add(1, Ordering::AcqRel);
    let Some(recorder) = RECORDERS.get(generation).and_then(OnceLock::get) else { return };
    let id = std::process::id();
    let text = read(recorder, id).unwrap_or_else(|| {
        format!("clgraph_layer: there is no report of process {id}: it ended while a call was written down\n")
    });
    process::without_signals(|| deliver(&text));
}

fn deliver(text: &str) {
    let Some(Report::File(file)) = GOES.get() else {
        say(text);
        return;
    };
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    // A pipe that nobody reads is an error, and not waited for.
    #[cfg(unix)]
    options.custom_flags(libc::O_NONBLOCK);
    let written = options.open(file).and_then(|mut open| open.write_all(text.as_bytes()));
    if let Err(error) = written {
        say(&format!("clgraph_layer: the report cannot be written to {}: {error}\n{text}", file.display()));
    }
}

/// Another thread may be at work, or may have been ended at work by a system that ends threads before libraries: so this does
/// not wait for ever.
fn read(recorder: &Mutex<Recorder>, process: u32) -> Option<String> {
    for _ in 0..100 {
        let mut recorder = match recorder.try_lock() {
            Ok(recorder) => recorder,
            Err(TryLockError::Poisoned(recorder)) => recorder.into_inner(),
            Err(TryLockError::WouldBlock) => {
                thread::sleep(Duration::from_millis(10));
                continue;
            }
        };
        recorder.finish();
        return Some(text::report(&recorder, &program(), process));
    }
    None
}

/// Not by its arguments: the program may have changed them, also to what is no memory any more.
fn program() -> String {
    let path = std::env::current_exe().ok();
    let name = path.as_deref().and_then(std::path::Path::file_name);
    name.map_or_else(|| "the program".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Says something to the user. Nothing can be done if nobody listens.
pub(super) fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
