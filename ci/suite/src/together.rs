//! Two drivers in one process: each platform has functions of its own, with signatures of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::binaries::Binaries;
use crate::expectations::{Driver, Expectations, said, unlike};
use crate::runs::without_variables;
use crate::{Failure, command};

/// The test that uses all devices.
const TEST: &str = "every_device_runs_by_the_functions_of_its_platform";

/// Each driver in a root of its own with the first of those that any root takes, such as wheels.
pub fn pairs(root: &Path, names: &[String]) -> Vec<(String, String)> {
    let in_a_root = |name: &&String| folder(root, name).join("root").exists();
    let Some(guest) = names.iter().find(|name| folder(root, name).join("vendors").exists()) else { return Vec::new() };
    names.iter().filter(in_a_root).map(|host| (host.clone(), guest.clone())).collect()
}

/// What is wrong with a driver and a guest in its root.
pub fn check(
    root: &Path,
    (host, guest): (&str, &str),
    expectations: &Expectations,
    binaries: &Binaries,
) -> Result<Vec<String>, Failure> {
    let vendors = root.join("target").join(format!("vendors-{}", std::process::id()));
    fs::create_dir_all(&vendors)?;
    let wrong = within(root, host, guest, &vendors, expectations, binaries);
    fs::remove_dir_all(&vendors)?;
    wrong
}

fn within(
    root: &Path,
    host: &str,
    guest: &str,
    vendors: &Path,
    expectations: &Expectations,
    binaries: &Binaries,
) -> Result<Vec<String>, Failure> {
    let guests = folder(root, guest);
    for folder in [folder(root, host).join("root/etc/OpenCL/vendors"), guests.join("vendors")] {
        for file in fs::read_dir(folder)? {
            let file = file?;
            fs::copy(file.path(), vendors.join(file.file_name()))?;
        }
    }
    let run = |program: &Path, arguments: &[&str]| -> Result<Output, Failure> {
        let mut with = command(root, "ci/with");
        with.args([host, "--", "env"]).arg(format!("OCL_ICD_VENDORS={}", vendors.display()));
        with.arg(format!("LD_LIBRARY_PATH={}", guests.join("lib").display())).arg(program).args(arguments);
        without_variables(&mut with);
        // A new one: nothing that a process left earlier is used.
        with.env("POCL_CACHE_DIR", vendors.join("cache"));
        Ok(with.output()?)
    };
    let told = run(&binaries.clgraph, &["devices", "--json"])?;
    let platforms: Vec<serde_json::Value> = serde_json::from_slice(&told.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&told.stderr)))?;
    let mut wrong = Vec::new();
    if platforms.len() != 2 {
        wrong.push(format!("there are {} platforms", platforms.len()));
    }
    for name in [host, guest] {
        let driver: &Driver = expectations.driver(name)?;
        match platforms.iter().find(|platform| platform["name"] == driver.platform.as_str()) {
            Some(platform) => {
                let plain = &driver.runs()[0];
                let unlike = unlike(&plain.says, &said(&platform["devices"][0]));
                wrong.extend(unlike.iter().map(|unlike| format!("clgraph devices: {name}: {unlike}")));
            }
            None => wrong.push(format!("there is no platform of {name}")),
        }
    }
    let (_, tests) = binaries.tests.iter().find(|(name, _)| name == "native").ok_or("there are no tests `native`")?;
    let output = run(tests, &[TEST, "--exact", "--color=never"])?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !text.contains("1 passed") {
        wrong.push(format!("native::{TEST}: {}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    Ok(wrong)
}

/// Where `ci/drivers` has put a driver.
fn folder(root: &Path, name: &str) -> PathBuf {
    let drivers = std::env::var_os("CLGRAPH_DRIVERS").map_or_else(|| root.join("target/drivers"), PathBuf::from);
    drivers.join(name)
}
