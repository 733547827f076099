//! `CLGRAPH_DUMP`: writes what each finalize decided to files.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::command::Command;
use crate::error::FinalizeError;
use crate::ir::Ir;
use crate::report::summary::Report;

/// Returns the graph as text before and after the passes of `lower/`.
pub(crate) fn lowering(graph: &Ir, flat: &Ir) -> String {
    if graph.ids().any(|node| matches!(graph.command(node), Command::SubGraph(_))) {
        format!("{graph}\nwithout sub-graphs (`inline`):\n{flat}")
    } else {
        graph.to_string()
    }
}

/// Writes the report to `PROCESS-NUMBER.txt`, the finalized graph to `PROCESS-NUMBER.dot`, and the graph before and
/// after the passes of `lower/` to `PROCESS-NUMBER.graph`. If a file or a link has one of the names, the next number is
/// taken, because a process in another container may have the same number.
pub(crate) fn write(folder: &Path, report: &Report, dot: &str, graph: &str) -> Result<(), FinalizeError> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let failed = |path: &Path, error: &io::Error| FinalizeError::Dump {
        path: path.display().to_string(),
        error: error.to_string(),
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let report = report.to_string();
    loop {
        let stem = format!("{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let all = [("txt", &*report), ("dot", dot), ("graph", graph)];
        // `create_new` neither overwrites a file nor follows a link.
        let mut files = Vec::new();
        for (kind, content) in all {
            let path = folder.join(format!("{stem}.{kind}"));
            match File::create_new(&path) {
                Ok(file) => files.push((path, file, content)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => break,
                Err(error) => return Err(failed(&path, &error)),
            }
        }
        if files.len() < all.len() {
            for (path, ..) in files {
                fs::remove_file(&path).map_err(|error| failed(&path, &error))?;
            }
            continue;
        }
        for (path, mut file, content) in files {
            file.write_all(content.as_bytes()).map_err(|error| failed(&path, &error))?;
            log::info!("wrote {}", path.display());
        }
        return Ok(());
    }
}
