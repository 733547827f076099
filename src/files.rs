//! Files that keep something for the next process: each is read and replaced as a whole.

use std::fs::{self, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// Returns what a file contains; None if there is none. An error says why the content is not returned: a file of more than `most` bytes
/// is of somebody else, and `allow` may refuse the file that was opened.
pub(crate) fn read(
    file: &Path,
    most: u64,
    allow: impl FnOnce(&Metadata) -> Result<(), String>,
) -> Result<Option<Vec<u8>>, String> {
    let check = |of: &Metadata| {
        if !of.is_file() {
            return Err("this is a folder, or not an ordinary file".to_owned());
        }
        if of.len() > most { Err(format!("the file has more than {most} bytes")) } else { Ok(()) }
    };
    // Opening or reading something that is no plain file may never end.
    match fs::metadata(file) {
        Ok(metadata) => check(&metadata)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    }
    // It may be another one now.
    let open = fs::File::open(file).map_err(|error| error.to_string())?;
    let metadata = open.metadata().map_err(|error| error.to_string())?;
    check(&metadata)?;
    allow(&metadata)?;
    let mut content = Vec::new();
    open.take(most).read_to_end(&mut content).map_err(|error| error.to_string())?;
    Ok(Some(content))
}

/// Replaces a file as a whole: a process that reads meanwhile reads the old content or the new one. `is_private`: no other user can read
/// or write it.
pub(crate) fn replace(file: &Path, content: &[u8], is_private: bool) -> io::Result<()> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let nanos = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |now| now.subsec_nanos());
    let mut beside = file.to_owned().into_os_string();
    beside.push(format!(".{}-{nanos}-{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    let beside = PathBuf::from(beside);
    // `create_new` neither overwrites a file of somebody else nor follows a link.
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if is_private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let _ = is_private;
    let mut new = options.open(&beside)?;
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
