//! Programs that clgraph writes, kept for the next process: a folder beside the tuning cache has their binaries, one file each.
//!
//! A file is a line of JSON, the program's text, and its binary. A binary is code that a driver runs without checks. So a file is used only
//! for the text, options, device and driver version that it names, if its binary is complete and unchanged, and if no other user
//! can write to it. Whatever is wrong with a file is a warning, and the program is built from its text.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::cl::completion::user_code::log_later;
use crate::cl::completion::workers;
use crate::cl::objects::context::{Context, InContext};
use crate::cl::objects::device::Device;
use crate::cl::objects::program::Program;
use crate::cl::objects::program_builder::ProgramBuilder;
use crate::files;

/// A larger file is none of these.
const LARGEST: u64 = 16 << 20;
/// The most bytes of all files; the oldest are removed.
const MOST: u64 = 64 << 20;

/// A folder with binaries of programs.
#[derive(Clone, Debug)]
pub(crate) struct KeptPrograms {
    folder: PathBuf,
}

/// A program that was built from its text.
#[derive(Debug)]
pub(crate) struct NewProgram {
    pub(in crate::cl) program: Program,
    pub(in crate::cl) options: String,
    pub(in crate::cl) text: String,
}

impl KeptPrograms {
    /// Names the folder beside a tuning cache.
    pub(crate) fn beside(tuning_cache: &Path) -> Self {
        let mut folder = tuning_cache.to_owned().into_os_string();
        folder.push(".programs");
        Self { folder: folder.into() }
    }

    /// Makes a program of a kept binary. None if there is none that can be used.
    pub(in crate::cl) fn find(&self, context: &Context, options: &str, text: &str) -> Option<Program> {
        let key = Key::of(context, options, text)?;
        let file = self.folder.join(key.file_name());
        let binary = match self.read(&file, &key) {
            Ok(binary) => binary?,
            Err(why) => {
                log_later!(Warn, "kept program {}: {why}: clgraph builds the program again", file.display());
                return None;
            }
        };
        // SAFETY: it is a complete and unchanged result of `Program::binary` for this device and this version of its driver: the file says
        // so, its checksum is right, and no other user can have written it.
        match unsafe { ProgramBuilder::new(context).options(options).binary(&binary) } {
            Ok(program) => {
                log_later!(Debug, "kept program {}: used", file.display());
                Some(program)
            }
            Err(error) => {
                log_later!(Warn, "kept program {}: {error}: clgraph builds the program again", file.display());
                None
            }
        }
    }

    /// Keeps programs whose kernels have run, because a driver may compile them when they first run. The files are written on a thread
    /// of their own. An error is a warning.
    pub(crate) fn keep(&self, programs: &[NewProgram]) {
        let content = |new: &NewProgram| {
            let context = new.program.context();
            let key = Key::of(context, &new.options, &new.text)?;
            match new.program.binary(context.devices().first()?) {
                Ok(binary) => Some((self.folder.join(key.file_name()), key.content(&binary))),
                Err(error) => {
                    log_later!(Debug, "{error}: a program is not kept");
                    None
                }
            }
        };
        let files: Vec<(PathBuf, Vec<u8>)> = programs.iter().filter_map(content).collect();
        if files.is_empty() {
            return;
        }
        let folder = self.folder.clone();
        workers::run(move || {
            if let Err(error) = write(&folder, &files) {
                log_later!(Warn, "kept programs in {}: {error}: a program is not kept", folder.display());
            }
        });
    }

    fn read(&self, file: &Path, key: &Key<'_>) -> Result<Option<Vec<u8>>, String> {
        let Some(content) = files::read(file, LARGEST)? else { return Ok(None) };
        if is_open_to_others(&self.folder).map_err(|error| error.to_string())? {
            let folder = self.folder.display();
            return Err(format!(
                "other users may write to {folder}; make it yours alone (chown, chmod go-w), or delete it"
            ));
        }
        key.binary_of(&content).map_err(str::to_owned)
    }
}

/// What a binary is for.
struct Key<'a> {
    device: String,
    options: &'a str,
    text: &'a str,
}

impl<'a> Key<'a> {
    /// None for a context of several devices: a binary is for one.
    fn of(context: &Context, options: &'a str, text: &'a str) -> Option<Self> {
        let [device] = context.devices() else { return None };
        Some(Self { device: named(device), options, text })
    }

    fn file_name(&self) -> String {
        let parts = [self.device.as_str(), self.options, self.text];
        let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
        format!("{:016x}", files::fingerprint(bytes))
    }

    fn head(&self, binary: &[u8]) -> Value {
        json!({
            "clgraph_program": 1,
            "device": self.device,
            "options": self.options,
            "text_bytes": self.text.len(),
            "binary_bytes": binary.len(),
            "checksum": format!("{:016x}", files::fingerprint(binary.iter().copied())),
        })
    }

    fn content(&self, binary: &[u8]) -> Vec<u8> {
        let mut content = self.head(binary).to_string().into_bytes();
        content.push(b'\n');
        content.extend_from_slice(self.text.as_bytes());
        content.extend_from_slice(binary);
        content
    }

    /// Returns the binary in a file's content; None if the file is for something else.
    fn binary_of(&self, content: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
        const DAMAGED: &str = "the file is damaged";
        let end = content.iter().position(|byte| *byte == b'\n').ok_or(DAMAGED)?;
        let (head, rest) = (&content[..end], &content[end + 1..]);
        let head: Value = serde_json::from_slice(head).map_err(|_| DAMAGED)?;
        if head["clgraph_program"] != 1 {
            return Err("the file is not of this version of clgraph");
        }
        if head["device"] != self.device || head["options"] != self.options || head["text_bytes"] != self.text.len() {
            return Ok(None);
        }
        let (text, binary) = rest.split_at_checked(self.text.len()).ok_or(DAMAGED)?;
        if text != self.text.as_bytes() {
            return Ok(None);
        }
        if head == self.head(binary) { Ok(Some(binary.to_vec())) } else { Err(DAMAGED) }
    }
}

fn named(device: &Device) -> String {
    let caps = device.caps();
    format!("{} / {} / {}", caps.platform, caps.name, caps.driver_version)
}

fn write(folder: &Path, contents: &[(PathBuf, Vec<u8>)]) -> io::Result<()> {
    /// One thread writes at a time.
    static WRITING: Mutex<()> = Mutex::new(());
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    make_folder(folder)?;
    for (file, content) in contents.iter().filter(|(_, content)| content.len() as u64 <= LARGEST) {
        files::replace(file, content)?;
    }
    // The oldest go.
    let mut all: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let (path, metadata) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
        if metadata.is_file() && is_name(&path) {
            all.push((metadata.modified()?, metadata.len(), path));
        }
    }
    all.sort_unstable();
    let mut bytes: u64 = all.iter().map(|(_, bytes, _)| *bytes).sum();
    for (_, its, path) in all {
        if bytes <= MOST {
            break;
        }
        fs::remove_file(path)?;
        bytes -= its;
    }
    Ok(())
}

/// Returns whether a file in the folder is one of these, or was to become one.
fn is_name(path: &Path) -> bool {
    let name = path.file_name().map(OsStr::to_string_lossy).unwrap_or_default();
    name.get(..16).is_some_and(|begin| begin.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(unix)]
fn make_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Returns whether another user may write to a folder, as far as the system says so: by its mode, or because it is theirs.
#[cfg(unix)]
fn is_open_to_others(folder: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let of = fs::metadata(folder)?;
    // On Linux a process has a folder, which is its user's.
    let user = fs::metadata("/proc/self").map_or(of.uid(), |process| process.uid());
    Ok(of.mode() & 0o022 != 0 || ![user, 0].contains(&of.uid()))
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> io::Result<bool> {
    Ok(false)
}
