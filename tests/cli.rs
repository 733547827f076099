//! The program `clgraph`.

use std::process::{Command, Output};

/// The rows of the table for each device.
const ROWS: [&str; 20] = [
    "device",
    "driver",
    "OpenCL",
    "compute units",
    "queues",
    "intermediate languages",
    "shared virtual memory",
    "unified shared memory",
    "program-scope variables",
    "access to them by name",
    "device globals",
    "command buffers",
    "functions record",
    "may run twice at once",
    "kernels may print",
    "queues must be",
    "queues may be",
    "fields to update",
    "cannot be recorded",
    "clgraph chooses",
];

fn clgraph(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clgraph"));
    command.args(arguments).envs(variables.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Rule Q4
#[test]
fn devices_are_listed_as_a_table_of_what_the_library_says() {
    let output = clgraph(&["devices"], &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    // Lines are not wrapped if the output is no terminal. A table begins with a corner, and its first column has the
    // names.
    let tables = shown.split('┌').skip(1).map(|table| table.lines().filter_map(|line| line.strip_prefix('│')));
    let platforms = clgraph::platforms().unwrap();
    let devices: Vec<_> =
        platforms.iter().map(|platform| &platform.devices).filter(|devices| !devices.is_empty()).collect();
    assert_eq!(tables.clone().count(), devices.len(), "{shown}");
    for (table, devices) in tables.zip(devices) {
        let rows: Vec<Vec<&str>> =
            table.map(|row| row.trim_end_matches('│').split('┆').map(str::trim).collect()).collect();
        assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ROWS, "{shown}");
        for (at, device) in devices.iter().enumerate() {
            let caps = device.caps();
            let cell = |name| rows.iter().find(|row| row[0] == name).unwrap()[at + 1];
            let (path, why) = device.path().unwrap();
            assert_eq!(cell("device"), caps.name.trim());
            assert_eq!(cell("driver"), caps.driver_version);
            assert_eq!(cell("OpenCL"), caps.version.to_string());
            assert!(cell("compute units").starts_with(&caps.compute_units.to_string()), "{shown}");
            assert_eq!(cell("queues").contains("out of order"), caps.out_of_order, "{shown}");
            let named = if caps.named_global_access { "yes" } else { "no" };
            assert_eq!(cell("access to them by name"), named);
            let accesses: Vec<_> = caps.global_access().iter().map(ToString::to_string).collect();
            assert_eq!(cell("device globals"), accesses.join("; "));
            let twice =
                caps.command_buffers.as_ref().map(|buffers| if buffers.simultaneous_use { "yes" } else { "no" });
            assert_eq!(cell("may run twice at once"), twice.unwrap_or("-"));
            let record = device.abi().unwrap().map_or("-".to_owned(), |abi| abi.record.to_string());
            assert_eq!(cell("functions record"), record);
            assert_eq!(cell("clgraph chooses"), format!("{path}: {why}"));
            let cannot = clgraph::CommandKind::ALL.into_iter().filter(|command| caps.can_record(*command).is_err());
            let cannot: Vec<String> = cannot.map(|command| command.to_string()).collect();
            let all = cannot.len() == clgraph::CommandKind::ALL.len();
            assert_eq!(cell("cannot be recorded"), if all { "everything".to_owned() } else { cannot.join(", ") });
        }
    }
}

/// Rule Q4
#[test]
fn devices_are_listed_as_json_with_what_the_library_says() {
    let output = clgraph(&["devices", "--json"], &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let platforms = clgraph::platforms().unwrap();
    assert_eq!(listed.as_array().unwrap().len(), platforms.len());
    for (listed, platform) in listed.as_array().unwrap().iter().zip(&platforms) {
        assert_eq!(
            (listed["name"].as_str(), listed["version"].as_str()),
            (Some(&*platform.name), Some(&*platform.version))
        );
        assert_eq!(listed["devices"].as_array().unwrap().len(), platform.devices.len());
        for (listed, device) in listed["devices"].as_array().unwrap().iter().zip(&platform.devices) {
            let caps = device.caps();
            let value = |what: Result<serde_json::Value, _>| what.unwrap();
            assert_eq!(listed["caps"], value(serde_json::to_value(caps)));
            assert_eq!(listed["abi"], value(serde_json::to_value(device.abi().unwrap())));
            assert!(listed["abi_error"].is_null());
            assert_eq!(listed["globals"], value(serde_json::to_value(caps.global_access())));
            let (path, why) = device.path().unwrap();
            assert_eq!(
                (&listed["path"], &listed["why"]),
                (&value(serde_json::to_value(path)), &why.to_string().into())
            );
            let commands: Vec<_> = clgraph::CommandKind::ALL
                .into_iter()
                .map(|command| {
                    let why_not = caps.can_record(command).err().map(|why| why.to_string());
                    let command = value(serde_json::to_value(command));
                    serde_json::json!({"command": command, "native": why_not.is_none(), "why_not": why_not})
                })
                .collect();
            assert_eq!(listed["commands"], serde_json::Value::from(commands));
            // Also something that the library adds to the driver's own text.
            assert_eq!(listed["caps"]["name"], caps.name);
            assert_eq!(listed["caps"]["version"], caps.version.to_string());
            let revision = caps.command_buffers.as_ref().and_then(|buffers| buffers.version);
            let listed = &listed["caps"]["command_buffers"]["version"];
            assert_eq!(listed.as_str().map(str::to_owned), revision.map(|revision| revision.to_string()));
        }
    }
}

/// Rule Q4: the environment counts, as in finalize.
#[test]
fn the_path_that_is_reported_is_the_one_that_would_be_used() {
    let output = clgraph(&["devices"], &[("CLGRAPH_PATH", "replay")]);
    assert!(text(&output.stdout).contains("as CLGRAPH_PATH says"), "{}", text(&output.stdout));
    let output = clgraph(&["devices"], &[("CLGRAPH_PATH", "bogus")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("CLGRAPH_PATH is `bogus`"), "{}", text(&output.stderr));
}

#[test]
fn what_is_wrong_is_said_on_standard_error() {
    let output = clgraph(&["devices"], &[("OPENCL_DYLIB_PATH", "/no/such/libOpenCL.so")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("clgraph: no OpenCL library could be loaded"), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty());
    let output = clgraph(&["devices"], &[("CLGRAPH_ASSUME", "luck")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("CLGRAPH_ASSUME is `luck`"), "{}", text(&output.stderr));
    let output = clgraph(&["device"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("devices"), "clap tells what there is: {}", text(&output.stderr));
}

/// On systems where files list the drivers.
#[cfg(target_os = "linux")]
#[test]
fn a_broken_driver_beside_a_good_one_is_named_and_hides_nothing() {
    use std::fs;
    let vendors = std::env::var("OCL_ICD_VENDORS").unwrap_or("/etc/OpenCL/vendors".to_owned());
    let folder = std::env::temp_dir().join(format!("clgraph-beside-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let good = fs::read_dir(&vendors).unwrap_or_else(|error| panic!("{vendors}: {error}"));
    for file in good.map(|entry| entry.unwrap().path()) {
        fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
    }
    fs::write(folder.join("a_broken.icd"), "/no/such/libbroken.so\n").unwrap();
    let (alone, beside) =
        (clgraph(&["devices"], &[]), clgraph(&["devices"], &[("OCL_ICD_VENDORS", folder.to_str().unwrap())]));
    fs::remove_dir_all(&folder).unwrap();
    assert!(beside.status.success());
    assert_eq!(text(&beside.stdout), text(&alone.stdout));
    let log = text(&beside.stderr);
    assert!(log.contains("ignored: the OpenCL driver `/no/such/libbroken.so` does not work"), "{log}");
    assert!(log.contains("a_broken.icd, which names it"), "{log}");
    assert!(!text(&alone.stderr).contains("ignored: "), "{}", text(&alone.stderr));
}
