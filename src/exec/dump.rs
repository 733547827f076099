//! `CLGRAPH_DUMP`: what each finalize decided, as files to look at.

use std::fs;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::report::Report;
use crate::error::FinalizeError;

/// Writes `PROCESS-NUMBER.txt`, the report, and `PROCESS-NUMBER.dot`, the graph that was finalized.
pub(super) fn write(folder: &Path, report: &Report, dot: &str) -> Result<(), FinalizeError> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let stem = format!("{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let failed = |path: &Path, error: &std::io::Error| FinalizeError::Dump {
        path: path.display().to_string(),
        error: error.to_string(),
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    for (extension, content) in [("txt", report.to_string().as_str()), ("dot", dot)] {
        let path = folder.join(format!("{stem}.{extension}"));
        fs::write(&path, content).map_err(|error| failed(&path, &error))?;
        log::info!("written: {}", path.display());
    }
    Ok(())
}
