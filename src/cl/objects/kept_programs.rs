//! Programs that clgraph writes, kept for the next process: a folder beside the tuning cache has their binaries, one file each.
//!
//! A file is a line of JSON, the program's text, and its binary. A binary is code that a driver runs without checks. So a file is used only
//! for the text, options, device and driver version that it names, if its binary is complete and unchanged, and if folder and file are the
//! user's own, or root's, and nobody else can write to them. Whatever is wrong with a file is a warning, and the program is built from its
//! text.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::cl::completion::user_code::log_later;
use crate::cl::objects::context::{Context, InContext};
use crate::cl::objects::device::Device;
use crate::cl::objects::program::Program;
use crate::cl::objects::program_builder::ProgramBuilder;
use crate::files;

/// A larger file is none of these; a program that is kept has half of it.
const LARGEST: u64 = 16 << 20;
/// The most bytes of all files; the oldest are removed.
const MOST: u64 = 64 << 20;

/// A folder with binaries of programs.
#[derive(Clone, Debug)]
pub(crate) struct KeptPrograms {
    folder: PathBuf,
}

/// A program with fused kernels.
#[derive(Debug)]
pub(crate) struct MadeProgram {
    pub(in crate::cl) program: Program,
    pub(in crate::cl) options: String,
    pub(in crate::cl) text: String,
    /// Whether it was made of its binary.
    pub(in crate::cl) was_kept: bool,
}

impl KeptPrograms {
    /// Names the folder beside a tuning cache. None if that is not the name of a file.
    pub(crate) fn beside(tuning_cache: &Path) -> Option<Self> {
        let name = tuning_cache.file_name()?;
        let is_folder = tuning_cache.as_os_str().to_string_lossy().ends_with(std::path::is_separator);
        let mut folder = name.to_owned();
        folder.push(".programs");
        (!is_folder).then(|| Self { folder: tuning_cache.with_file_name(folder) })
    }

    /// Makes a program of a kept binary. None if there is none that can be used; `is_good` says so, too.
    pub(in crate::cl) fn find(
        &self,
        context: &Context,
        (options, text): (&str, &str),
        is_good: impl FnOnce(&Program) -> bool,
    ) -> Option<Program> {
        let key = Key::of(context, options, text)?;
        let file = self.folder.join(key.file_name());
        let warn = |why: &dyn std::fmt::Display| {
            log_later!(Warn, "kept program {}: {why}: clgraph builds the program again", file.display());
        };
        let binary = match self.read(&file, &key) {
            Ok(binary) => binary?,
            Err(why) => {
                warn(&why);
                return None;
            }
        };
        // SAFETY: it is a complete and unchanged result of `Program::binary` for this device and this version of its driver: the file says
        // so, its checksum is right, and no other user can have written it.
        match unsafe { ProgramBuilder::new(context).options(options).binary(&binary) } {
            Ok(program) if is_good(&program) => {
                log_later!(Debug, "kept program {}: used", file.display());
                // The oldest go first.
                let _ = fs::File::open(&file).and_then(|file| file.set_modified(SystemTime::now()));
                Some(program)
            }
            Ok(_) => {
                warn(&"it lacks a kernel");
                None
            }
            Err(error) => {
                warn(&error);
                None
            }
        }
    }

    /// Keeps programs whose kernels have run, because a driver may compile them when they first run. An error is a warning.
    pub(crate) fn keep(&self, programs: &[MadeProgram]) {
        for new in programs.iter().filter(|made| !made.was_kept) {
            let context = new.program.context();
            let Some(key) = Key::of(context, &new.options, &new.text) else { continue };
            let file = self.folder.join(key.file_name());
            let not_kept = |why: &dyn std::fmt::Display| {
                log_later!(Warn, "kept program {}: {why}: the program is not kept", file.display());
            };
            let Some(binary) = context.devices().first().map(|device| new.program.binary(device)) else { continue };
            match binary {
                Ok(binary) if binary.len() as u64 + key.text.len() as u64 > LARGEST / 2 => {
                    not_kept(&format_args!("its binary has {} bytes", binary.len()));
                }
                Ok(binary) => {
                    let written = self.write(&file, &key.content(&binary));
                    written.unwrap_or_else(|error| not_kept(&error));
                }
                Err(error) => not_kept(&error),
            }
        }
    }

    /// Removes the files of programs whose kernels do not run.
    pub(crate) fn forget(&self, programs: &[MadeProgram]) {
        for made in programs.iter().filter(|made| made.was_kept) {
            if let Some(key) = Key::of(made.program.context(), &made.options, &made.text) {
                let _ = fs::remove_file(self.folder.join(key.file_name()));
            }
        }
    }

    /// Checks that nobody else can write to the folder.
    fn check_folder(&self) -> Result<(), String> {
        let of = fs::symlink_metadata(&self.folder).map_err(|error| error.to_string())?;
        if !of.is_dir() {
            return Err(format!("{} is no folder", self.folder.display()));
        }
        check_owner(&of, &self.folder)
    }

    fn read(&self, file: &Path, key: &Key<'_>) -> Result<Option<Vec<u8>>, String> {
        if fs::symlink_metadata(&self.folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        self.check_folder()?;
        let Some(content) = files::read(file, LARGEST, |of| check_owner(of, file))? else { return Ok(None) };
        key.binary_of(&content).map_err(str::to_owned)
    }

    fn write(&self, file: &Path, content: &[u8]) -> Result<(), String> {
        make_folder(&self.folder).map_err(|error| error.to_string())?;
        self.check_folder()?;
        files::replace(file, content, true).map_err(|error| error.to_string())?;
        self.make_room().map_err(|error| format!("{error}, when the oldest files were to go"))
    }

    /// Removes the oldest files if there are too many bytes. Other processes may do so meanwhile.
    fn make_room(&self) -> io::Result<()> {
        let is_there = |error: &io::Error| error.kind() != io::ErrorKind::NotFound;
        let mut all: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            match entry.metadata().and_then(|of| Ok((of.is_file(), of.modified()?, of.len()))) {
                Ok((true, modified, bytes)) if is_name(&entry.path()) => all.push((modified, bytes, entry.path())),
                Ok(_) => {}
                Err(error) if is_there(&error) => return Err(error),
                Err(_) => {}
            }
        }
        all.sort_unstable();
        let mut bytes: u64 = all.iter().map(|(_, bytes, _)| *bytes).sum();
        for (_, its, path) in all {
            if bytes <= MOST {
                break;
            }
            fs::remove_file(path).or_else(|error| if is_there(&error) { Err(error) } else { Ok(()) })?;
            bytes -= its;
        }
        Ok(())
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

/// Returns whether a file in the folder is one of these, or was to become one when its process ended (`files::replace`).
fn is_name(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let (key, rest) = name.split_once('.').unwrap_or((name, "0-0-0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_key = key.len() == 16 && key.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_key && rest.split('-').count() == 3 && rest.split('-').all(is_number)
}

/// Makes a folder, but not the one that it is in. Another process may have made it.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Checks that nobody but its user and root can have written to a file or folder.
#[cfg(unix)]
fn check_owner(of: &Metadata, place: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    // On Linux a process has a folder, which is its user's. Elsewhere nobody knows who that is.
    let user = fs::metadata("/proc/self").map_err(|error| format!("/proc/self: {error}"))?.uid();
    let place = place.display();
    if ![user, 0].contains(&of.uid()) {
        return Err(format!("{place} belongs to another user: use another file for the tuning cache"));
    }
    if of.mode() & 0o022 != 0 {
        return Err(format!("other users may write to {place}: delete it"));
    }
    Ok(())
}

/// Windows keeps what others may write in other folders.
#[cfg(not(unix))]
fn check_owner(_: &Metadata, _: &Path) -> Result<(), String> {
    Ok(())
}
