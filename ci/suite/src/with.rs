//! What `ci/with` promises: the caller's folder, the command's exit status, several at once, and no mount left behind.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Failure;

/// Says where it is, when the other one is there as well.
const SCRIPT: &str = r#"
: >"$1" || exit 1
tries=0
until [ -e "$2" ]; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || exit 2
    sleep 0.05
done
pwd
exit "$3"
"#;

/// Runs two commands at once, each of which waits for the other.
pub fn check(root: &Path, driver: &str) -> Result<(), Failure> {
    let folder = std::env::temp_dir().canonicalize()?.join(format!("clgraph with {}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let checked = both(root, driver, &folder);
    fs::remove_dir_all(&folder)?;
    checked
}

fn both(root: &Path, driver: &str, folder: &Path) -> Result<(), Failure> {
    let mounts = || fs::read_to_string("/proc/self/mountinfo");
    let before = mounts()?;
    let start = |mine: &str, other: &str, status: i32| {
        let mut with = Command::new(root.join("ci/with"));
        with.args([driver, "--", "sh", "-c", SCRIPT, "sh", mine, other, &status.to_string()]).current_dir(folder);
        with.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    let (one, other) = (start("a", "b", 41)?, start("b", "a", 42)?);
    // Both have ended before either is judged.
    for (output, status) in [(one.wait_with_output(), 41), (other.wait_with_output(), 42)] {
        let output = output?;
        let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.code() != Some(status) {
            return Err(format!("a command that ends with {status} ended with {}: {wrong}", output.status).into());
        }
        if Path::new(said.trim_end_matches('\n')) != folder {
            return Err(format!("a command in {} ran in {said}", folder.display()).into());
        }
    }
    if mounts()? != before {
        return Err("it leaves mounts behind".into());
    }
    Ok(())
}
