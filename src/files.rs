//! Files that keep something for the next process: each is read and replaced as a whole.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// Returns what a file contains; None if there is none. An error says why the content is not returned: a file of more than `most` bytes
/// is of somebody else.
pub(crate) fn read(file: &Path, most: u64) -> Result<Option<Vec<u8>>, String> {
    let too_long = || format!("the file has more than {most} bytes");
    match fs::metadata(file) {
        // Reading from something that is no plain file may never end.
        Ok(metadata) if !metadata.is_file() => return Err("this is a folder, or not an ordinary file".to_owned()),
        Ok(metadata) if metadata.len() > most => return Err(too_long()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    }
    // The file may have been replaced since the check, so the length is limited here too.
    let mut content = Vec::new();
    let read = fs::File::open(file).and_then(|file| file.take(most + 1).read_to_end(&mut content));
    read.map_err(|error| error.to_string())?;
    if content.len() as u64 > most { Err(too_long()) } else { Ok(Some(content)) }
}

/// Replaces a file as a whole: a process that reads meanwhile reads the old content or the new one.
pub(crate) fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let nanos = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |now| now.subsec_nanos());
    let mut beside = file.to_owned().into_os_string();
    beside.push(format!(".{}-{nanos}-{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    let beside = PathBuf::from(beside);
    // `create_new` neither overwrites a file of somebody else nor follows a link.
    let mut new = fs::OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let replaced = new.write_all(content).and_then(|()| fs::rename(&beside, file));
    if replaced.is_err() {
        let _ = fs::remove_file(&beside);
    }
    replaced
}

/// Returns a number for bytes that is the same in every process, which the standard library does not promise: FNV-1a.
pub(crate) fn fingerprint(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let add = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325_u64, add)
}
