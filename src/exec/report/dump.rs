//! `CLGRAPH_DUMP`: writes what each finalize decided to files.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::FinalizeError;
use crate::exec::report::summary::Report;

/// Writes the report to `PROCESS-NUMBER.txt` and the finalized graph to `PROCESS-NUMBER.dot`. If a file or a link has
/// one of the names, the next number is taken, because a process in another container may have the same number.
pub(in crate::exec) fn write(folder: &Path, report: &Report, dot: &str) -> Result<(), FinalizeError> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let failed = |path: &Path, error: &io::Error| FinalizeError::Dump {
        path: path.display().to_string(),
        error: error.to_string(),
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    loop {
        let stem = format!("{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let (text, drawing) = (folder.join(format!("{stem}.txt")), folder.join(format!("{stem}.dot")));
        // `create_new` neither overwrites a file nor follows a link.
        let create = |path: &Path| match File::create_new(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(failed(path, &error)),
        };
        let Some(mut text_file) = create(&text)? else { continue };
        let Some(mut drawing_file) = create(&drawing)? else {
            fs::remove_file(&text).map_err(|error| failed(&text, &error))?;
            continue;
        };
        text_file.write_all(report.to_string().as_bytes()).map_err(|error| failed(&text, &error))?;
        drawing_file.write_all(dot.as_bytes()).map_err(|error| failed(&drawing, &error))?;
        log::info!("wrote {} and {}", text.display(), drawing.display());
        return Ok(());
    }
}
