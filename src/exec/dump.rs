//! `CLGRAPH_DUMP`: what each finalize decided, as files to look at.

use std::fs;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::report::Report;
use crate::error::FinalizeError;
use crate::graph::{Detail, Graph};

/// Writes `PROCESS-NUMBER.txt`, the report, and `PROCESS-NUMBER.dot`, the graph.
pub(super) fn write(folder: &Path, graph: &Graph, report: &Report) -> Result<(), FinalizeError> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let stem = format!("{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let failed = |path: &Path, error: &std::io::Error| FinalizeError::Dump {
        path: path.display().to_string(),
        error: error.to_string(),
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    for (extension, content) in [("txt", report.to_string()), ("dot", graph.to_dot(Detail::Verbose))] {
        let path = folder.join(format!("{stem}.{extension}"));
        fs::write(&path, content).map_err(|error| failed(&path, &error))?;
        log::info!("written: {}", path.display());
    }
    Ok(())
}
