//! What loaders ask of the layer. `tests/c/loader.c` is a loader, and a driver that remembers what it is called with.
#![cfg(target_os = "linux")]

mod common;

use std::process::Command;

use common::{REPORT, SERVES, compiled, layer, run};

fn loader(what: &str, serves: &str, report: Option<&str>) -> common::Said {
    let mut command = Command::new(compiled("loader.c", &["-ldl"]));
    command.arg(layer()).arg(what).env(SERVES, serves).env_remove(REPORT);
    let said = run(command.envs(report.map(|value| (REPORT, value))));
    assert_eq!(said.out, "ok\n");
    said
}

/// Rule L2: for tables of any length, nothing is called at initialization, and no thread is started.
#[test]
fn without_a_mode_nothing_is_wrapped() {
    let said = loader("entries", "never", None);
    assert_eq!(said.error, "");
}

/// Rules L2, L4: for tables of any length; what is behind a table is not read.
#[test]
fn wrappers_pass_calls_on_as_they_are() {
    for report in [None, Some("1")] {
        loader("entries", "always", report);
    }
    let said = loader("entries", "never", Some("1"));
    assert!(said.error.contains("Nothing was enqueued.\n"), "{}", said.error);
    assert!(said.error.contains("note: the layer is loaded once"), "{}", said.error);
}

/// Rule L4.
#[test]
fn what_loaders_do_wrong_is_refused() {
    loader("wrong", "always", None);
    loader("wrong", "always", Some("1"));
}

#[test]
fn the_library_stays_when_a_loader_closes_it() {
    let said = loader("closed", "always", Some("1"));
    assert!(said.error.contains("\nnote: 1 call failed"), "{}", said.error);
}

/// Rule L5: children have reports of their own, whatever a thread of the parent's did when they began.
#[test]
fn forked_children_have_reports_of_their_own() {
    let said = loader("forks", "always", Some("1"));
    let reports: Vec<&str> = said.error.split("clgraph_layer: what ").skip(1).collect();
    let [grandchild, child, parent] = *reports else { panic!("{}", said.error) };
    assert!(grandchild.contains("queue 1 (in order): 40 calls in 1 run\n"), "{grandchild}");
    assert!(child.contains("queue 1 (in order): 60 calls in 30 runs\n"), "{child}");
    assert!(parent.contains(" calls in 1 run\n") && !parent.contains("queue 2"), "{parent}");
}
