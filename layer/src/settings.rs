//! The variables of the environment. They are read once, when the loader initializes the layer.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::command_buffer::version::Version;

/// Its value says which drivers' devices get command buffers.
pub(crate) const SERVES: &str = "CLGRAPH_LAYER";

/// Its value is the revision of `cl_khr_command_buffer` that the layer reports.
pub(crate) const VERSION: &str = "CLGRAPH_LAYER_VERSION";

/// Its value says whether there is a report at the end of the process, and where.
pub(crate) const REPORT: &str = "CLGRAPH_LAYER_REPORT";

/// What the environment asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) serves: Serves,
    pub(crate) version: Version,
    pub(crate) report: Report,
}

/// Which platforms' devices get command buffers from the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Serves {
    /// Those that do not have both extensions themselves. Where record functions have no parameter `properties`, programs are
    /// built for them as they are, and the platform is left alone.
    Auto,
    Always,
    Never,
}

impl Settings {
    /// Reads the variables. What means nothing is as if it were not set, and the returned texts say so.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<OsString>, folder: Option<&Path>) -> (Self, Vec<String>) {
        let mut faults = Vec::new();
        let settings = Self {
            serves: serves(variable(SERVES).as_deref()).unwrap_or_else(|fault| {
                faults.push(fault);
                Serves::Auto
            }),
            version: version(variable(VERSION).as_deref()).unwrap_or_else(|fault| {
                faults.push(fault);
                Version::NEWEST
            }),
            report: report(variable(REPORT).as_deref(), folder).unwrap_or_else(|fault| {
                faults.push(fault);
                Report::Off
            }),
        };
        (settings, faults)
    }
}

fn serves(value: Option<&OsStr>) -> Result<Serves, String> {
    match value.map(|value| value.to_string_lossy()).as_deref() {
        None | Some("" | "auto") => Ok(Serves::Auto),
        Some("always") => Ok(Serves::Always),
        Some("never") => Ok(Serves::Never),
        Some(other) => Err(format!("{SERVES} is `{other}`, and `auto` is taken: it has to be auto, always or never")),
    }
}

fn version(value: Option<&OsStr>) -> Result<Version, String> {
    let newest = Version::NEWEST;
    let Some(value) = value.map(|value| value.to_string_lossy()) else { return Ok(newest) };
    if value.is_empty() {
        return Ok(newest);
    }
    Version::of(&value).ok_or_else(|| {
        let all: Vec<String> = Version::ALL.iter().map(Version::to_string).collect();
        format!("{VERSION} is `{value}`, and {newest} is taken: it has to be one of {}", all.join(", "))
    })
}

/// Where a report goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    Off,
    /// The standard error.
    Error,
    /// A file, to which it is appended: several processes of one command may have the same one.
    File(PathBuf),
}

/// Reads the value of [`REPORT`]. A relative path is one of `folder`, because programs may go elsewhere before they end.
///
/// # Errors
/// A text for the user, if the value means nothing.
fn report(value: Option<&OsStr>, folder: Option<&Path>) -> Result<Report, String> {
    let Some(value) = value else { return Ok(Report::Off) };
    let text = value.to_str().ok_or_else(|| format!("{REPORT} is not UTF-8, and there is no report"))?;
    match text {
        "" | "0" => Ok(Report::Off),
        "1" => Ok(Report::Error),
        file if file.ends_with(".txt") => {
            let file = Path::new(file);
            Ok(Report::File(folder.map_or_else(|| file.to_owned(), |folder| folder.join(file))))
        }
        other => Err(format!(
            "{REPORT} is `{other}`, and there is no report: it has to be 1, for one on the standard error, or the name of a \
             file that ends in .txt"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_nothing_is_as_if_it_were_not_set() {
        let read = |set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(one, _)| *one == name).map(|(_, value)| OsString::from(value));
            Settings::read(value, None)
        };
        let plain = Settings { serves: Serves::Auto, version: Version::NEWEST, report: Report::Off };
        assert_eq!(read(&[]), (plain.clone(), vec![]));
        assert_eq!(read(&[(SERVES, ""), (VERSION, ""), (REPORT, "")]), (plain.clone(), vec![]));
        let (settings, faults) = read(&[(SERVES, "always"), (VERSION, "0.9.8"), (REPORT, "1")]);
        let version = Version::of("0.9.8").unwrap();
        assert_eq!(settings, Settings { serves: Serves::Always, version, report: Report::Error });
        assert!(faults.is_empty());
        assert_eq!(read(&[(SERVES, "never")]).0.serves, Serves::Never);
        let (settings, faults) = read(&[(SERVES, "yes"), (VERSION, "0.9.3"), (REPORT, "yes")]);
        assert_eq!(settings, plain);
        let [serves, version, report] = faults.as_slice() else { panic!("{faults:?}") };
        assert!(serves.contains("`yes`") && serves.contains("auto, always or never"), "{serves}");
        assert!(version.contains("`0.9.3`") && version.contains("0.9.4, 0.9.5, 0.9.8, 1.0.0"), "{version}");
        assert!(report.contains("CLGRAPH_LAYER_REPORT"), "{report}");
    }

    #[test]
    fn the_value_says_where_the_report_goes() {
        let folder = Path::new("/home/me");
        let read = |value: Option<&str>| report(value.map(OsStr::new), Some(folder));
        assert_eq!([read(None), read(Some("")), read(Some("0"))], [(); 3].map(|()| Ok(Report::Off)));
        assert_eq!(read(Some("1")), Ok(Report::Error));
        assert_eq!(read(Some("runs.txt")), Ok(Report::File(folder.join("runs.txt"))));
        assert_eq!(report(Some(OsStr::new("runs.txt")), None), Ok(Report::File("runs.txt".into())));
        let absolute = if cfg!(windows) { r"C:\runs.txt" } else { "/tmp/runs.txt" };
        assert_eq!(read(Some(absolute)), Ok(Report::File(absolute.into())));
        for wrong in ["yes", "2", "runs", "-1"] {
            let text = read(Some(wrong)).unwrap_err();
            assert!(text.contains(&format!("`{wrong}`")) && text.contains(".txt"), "{text}");
        }
    }
}
