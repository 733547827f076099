//! The threads of clgraph.

use std::cell::Cell;
use std::{io, thread};

thread_local! {
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

/// Starts a thread of clgraph. Nothing joins it, not even the end of the program.
pub(in crate::cl) fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let run = || {
        IS_OWN.set(true);
        run();
    };
    thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}

/// Returns whether this is a thread of clgraph. Host tasks and callbacks run on such threads too.
pub(in crate::cl) fn is_own() -> bool {
    IS_OWN.try_with(Cell::get).unwrap_or(false)
}
