//! The program `clgraph`.

use std::process::{Command, Output};

fn clgraph(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clgraph"));
    command.args(arguments).envs(variables.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Rule Q4
#[test]
fn devices_are_listed_as_a_table() {
    let output = clgraph(&["devices"], &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    for device in clgraph::devices().unwrap() {
        // Long names are wrapped.
        let begin: String = device.name().chars().take(8).collect();
        assert!(shown.contains(&begin), "{shown}");
    }
    for row in ["program-scope variables", "command buffers", "functions record", "fields to update", "clgraph chooses"]
    {
        assert!(shown.contains(row), "{shown}");
    }
}

/// Rule Q4
#[test]
fn devices_are_listed_as_json_with_what_the_library_says() {
    let output = clgraph(&["devices", "--json"], &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let platforms = clgraph::platforms().unwrap();
    assert_eq!(told.as_array().unwrap().len(), platforms.len());
    for (told, platform) in told.as_array().unwrap().iter().zip(&platforms) {
        assert_eq!(
            (told["name"].as_str(), told["version"].as_str()),
            (Some(&*platform.name), Some(&*platform.version))
        );
        assert_eq!(told["devices"].as_array().unwrap().len(), platform.devices.len());
        for (told, device) in told["devices"].as_array().unwrap().iter().zip(&platform.devices) {
            let caps = device.caps();
            assert_eq!(told["caps"]["name"], caps.name);
            assert_eq!(told["caps"]["version"], caps.version.to_string());
            assert_eq!(told["why"], device.path().unwrap().1.to_string());
            assert_eq!(told["commands"].as_array().unwrap().len(), clgraph::Command::ALL.len());
            assert_eq!(told["abi"].is_null(), device.abi().unwrap().is_none());
            let revision = caps.command_buffers.as_ref().and_then(|buffers| buffers.version);
            let told = &told["caps"]["command_buffers"]["version"];
            assert_eq!(told.as_str().map(str::to_owned), revision.map(|revision| revision.to_string()));
        }
    }
}

/// Rule Q4: the environment counts, as it does when a graph is finalized.
#[test]
fn the_path_that_is_told_is_the_one_that_would_be_taken() {
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
