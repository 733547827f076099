//! The variables of the environment. They are read once, when the loader initializes the layer.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Its value says whether there is a report at the end of the process, and where.
pub(crate) const REPORT: &str = "CLGRAPH_LAYER_REPORT";

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
pub(crate) fn report(value: Option<&OsStr>, folder: Option<&Path>) -> Result<Report, String> {
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
