//! `CLGRAPH_DUMP`: what each finalize decided, as files to look at.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::report::Report;
use crate::error::FinalizeError;

/// Writes `PROCESS-NUMBER.txt`, the report, and `PROCESS-NUMBER.dot`, the graph that was finalized. What is there is kept:
/// another process, in another container, may have the same number.
pub(super) fn write(folder: &Path, report: &Report, dot: &str) -> Result<(), FinalizeError> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let failed = |path: &Path, error: &io::Error| FinalizeError::Dump {
        path: path.display().to_string(),
        error: error.to_string(),
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    loop {
        let stem = format!("{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = folder.join(format!("{stem}.txt"));
        match File::create_new(&path) {
            Ok(mut file) => file.write_all(report.to_string().as_bytes()).map_err(|error| failed(&path, &error))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(failed(&path, &error)),
        }
        let drawing = path.with_extension("dot");
        // Nothing that is there is written to, nor what a link there leads to.
        let file = File::create_new(&drawing);
        file.and_then(|mut file| file.write_all(dot.as_bytes())).map_err(|error| failed(&drawing, &error))?;
        log::info!("wrote {} and {}", path.display(), drawing.display());
        return Ok(());
    }
}
