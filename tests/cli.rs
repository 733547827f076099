//! The program `clgraph`.

use std::process::{Command, Output};

fn clgraph(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clgraph"));
    command.env_remove("CLGRAPH_ASSUME").args(arguments).envs(variables.iter().copied()).output().unwrap()
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
        assert!(shown.contains(&device.name()[..device.name().len().min(8)]), "{shown}");
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
    let devices = clgraph::devices().unwrap();
    assert_eq!(told.as_array().unwrap().len(), devices.len());
    for (told, device) in told.as_array().unwrap().iter().zip(&devices) {
        let caps = device.caps();
        assert_eq!(told["caps"]["name"], caps.name);
        assert_eq!(told["caps"]["version"], caps.version.to_string());
        assert_eq!(told["path"]["why"], caps.path().1.to_string());
        assert_eq!(told["commands"].as_array().unwrap().len(), clgraph::Command::ALL.len());
        assert_eq!(told["abi"].is_null(), device.abi().unwrap().is_none());
        let revision = caps.command_buffers.as_ref().and_then(|buffers| buffers.version);
        let told = &told["caps"]["command_buffers"]["version"];
        assert_eq!(told.as_str().map(str::to_owned), revision.map(|revision| revision.to_string()));
    }
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
