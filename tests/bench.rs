//! What the bench makes of its measurements: the file of the table, and the bounds.
//!
//! The bench itself is a program without tests, so its modules are included here.
#![allow(dead_code)] // Some parts are used only by the bench.

#[path = "../benches/graphs/bounds.rs"]
mod bounds;
#[path = "../benches/graphs/plots.rs"]
mod plots;
#[path = "../benches/graphs/results.rs"]
mod results;
#[path = "../benches/graphs/rounds.rs"]
mod rounds;
#[path = "../benches/graphs/rows.rs"]
mod rows;
#[path = "../benches/graphs/tables.rs"]
mod tables;

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use results::Results;
use rounds::{Measured, Times};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

/// Returns a variant whose rounds took so many microseconds.
fn measured(variant: &'static str, rounds: [u64; 3]) -> Measured {
    let times = |us| {
        let (submit, total) = (Some(Duration::from_micros(us / 2)), Duration::from_micros(us));
        Times { submit, total, ..Times::default() }
    };
    Measured::new(variant, rounds.map(times).into())
}

/// Returns the rows of the file.
fn written(results: &Results) -> Vec<Value> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let (process, number) = (std::process::id(), NUMBER.fetch_add(1, SeqCst));
    let path = std::env::temp_dir().join(format!("clgraph-bench-{process}-{number}/results.json"));
    results.write(&path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(report["date"].is_string() && report["machine"].is_string(), "{report}");
    assert!(report.get("commit").is_some(), "{report}");
    report["rows"].as_array().unwrap().clone()
}

/// Other programs read the file.
#[test]
fn the_file_has_every_field_of_every_row() {
    let mut results = Results::new();
    results.add("intel", "submit", 4, vec![measured("loop", [100, 200, 400]), measured("native", [110, 240, 400])]);
    let rows = written(&results);
    let expected = json!({
        "driver": "intel", "scenario": "submit", "n": 4, "queue": "in-order", "variant": "native",
        "record_us": null, "finalize_us": null, "submit_us": 120.0, "total_us": 240.0, "update_us": null,
        "total_p10_us": 110.0, "total_p90_us": 240.0, "resident_bytes_a_node": null, "ratio_to_loop": 1.1, "rounds": 3, "verdict": null,
    });
    assert_eq!((rows.len(), &rows[1]), (2, &expected));
    assert_eq!(rows[0]["ratio_to_loop"], 1.0);
    let update = Some(Duration::from_micros(3));
    let updated = Times { update, total: Duration::from_micros(3), ..Times::default() };
    results.add("intel", "update all", 4, vec![Measured::new("native", vec![updated])]);
    assert_eq!(written(&results)[2]["update_us"], 3.0);
    assert!(results.check().unwrap_err().to_string().contains("no row has a bound"));
}

/// Several passes: rounds are compared with rounds of the same pass; some variants have fewer rounds.
#[test]
fn passes_are_reported_together() {
    let mut results = Results::new();
    let short = |us| Measured::new("native", vec![Times { total: Duration::from_micros(us), ..Times::default() }]);
    for (pass, us) in [(1, 100), (2, 200), (3, 1_000)] {
        results.add(
            "pocl31",
            "submit",
            10,
            vec![measured("loop", [us; 3]), measured("replay", [pass * us; 3]), short(us / 2)],
        );
        results.add("pocl31", "submit", 100, vec![measured("loop", [7; 3])]);
    }
    let rows = written(&results);
    let of_row = |row: &Value| (row["n"].as_u64(), row["rounds"].as_u64(), row["total_us"].as_f64());
    let expected = [(10, 9, 200.0), (10, 9, 400.0), (10, 3, 100.0), (100, 9, 7.0)];
    assert_eq!(rows.iter().map(of_row).collect::<Vec<_>>(), expected.map(|(n, of, us)| (Some(n), Some(of), Some(us))));
    let ratios: Vec<_> = rows[..3].iter().map(|row| row["ratio_to_loop"].as_f64()).collect();
    assert_eq!(ratios, [Some(1.0), Some(2.0), Some(0.5)]);
    // Another device of the same driver has its own rows.
    results.next_device();
    results.add("pocl31", "submit", 100, vec![measured("loop", [9; 3])]);
    let rows = written(&results);
    assert_eq!((rows.len(), &rows[4]["rounds"], &rows[4]["total_us"]), (5, &json!(3), &json!(9.0)));
}

/// Returns the ratio of a row, the row that it is compared with, and whether it is good enough.
fn judged(n: usize, variants: &[(&'static str, u64)]) -> Vec<(String, String, bool)> {
    let variants: Vec<_> = variants.iter().map(|(variant, us)| measured(variant, [*us, 2 * us, 3 * us])).collect();
    let mut results = Results::new();
    results.add("pocl31", "submit", n, variants);
    let verdict = |row: &Value| {
        let verdict = row["verdict"].as_object()?;
        let of = verdict["of"].as_str().unwrap().to_owned();
        Some((row["variant"].as_str().unwrap().to_owned(), of, verdict["good"].as_bool().unwrap()))
    };
    let judged: Vec<_> = written(&results).iter().filter_map(verdict).collect();
    assert_eq!(results.check().is_ok(), !judged.is_empty() && judged.iter().all(|(.., good)| *good));
    judged
}

#[test]
fn rows_are_judged_by_what_they_are_compared_with() {
    let rows = |again, gated, raw, replay, native, auto| {
        [
            ("loop", 1_000),
            ("loop_again", again),
            ("gated_loop", gated),
            ("command_buffer", raw),
            ("replay", replay),
            ("native", native),
            ("auto", auto),
        ]
    };
    let verdicts = |n, rows: &[_]| judged(n, rows).into_iter().map(|(.., good)| good).collect::<Vec<_>>();
    let rows_are = |n, best: &str, rows| {
        let of: Vec<_> = judged(n, rows).into_iter().map(|(row, of, _)| (row, of)).collect();
        let expected = [("replay", "loop"), ("native", "command_buffer"), ("auto", best)];
        assert_eq!(of, expected.map(|(row, of)| (row.to_owned(), of.to_owned())));
    };
    rows_are(100, "gated_loop", &rows(1_000, 900, 1_200, 1_000, 1_200, 900));
    assert_eq!(verdicts(100, &rows(1_000, 2_000, 1_200, 1_049, 1_250, 1_049)), [true; 3]);
    assert_eq!(verdicts(100, &rows(1_000, 2_000, 1_200, 1_060, 1_270, 1_060)), [false; 3]);
    // The bound includes the noise, in whichever direction that goes.
    assert_eq!(verdicts(100, &rows(980, 2_000, 1_200, 1_060, 1_270, 1_060)), [true; 3]);
    // Many commands: the native path has to be faster than one command buffer; the automatic path has to be as good as
    // the best.
    assert_eq!(verdicts(929, &rows(1_000, 900, 1_200, 1_000, 1_190, 940)), [true; 3]);
    assert_eq!(verdicts(929, &rows(1_000, 900, 1_200, 1_000, 1_210, 960)), [true, false, false]);
    // Without command buffers there is nothing to compare with.
    assert_eq!(judged(4, &[("loop", 10), ("loop_again", 10), ("native", 90)]), []);
}

#[test]
fn the_last_rows_of_each_scenario_and_driver_are_kept_and_drawn() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-kept-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let run = |driver: &str, sizes: &[usize], us: u64| {
        let mut results = Results::new();
        for n in sizes {
            results.add(driver, "submit", *n, vec![measured("loop", [us; 3]), measured("auto", [us / 2; 3])]);
            results.add_on("profiling", driver, "submit", *n, vec![measured("loop", [1; 3])]);
        }
        results.add(driver, "large", 100, vec![measured("loop", [us; 3])]);
        results.keep(&folder).unwrap();
    };
    run("first", &[1, 10, 100], 1_000);
    run("second", &[1, 10, 100], 2_000);
    run("first", &[1, 10, 1_000], 3_000);
    let rows: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("latest.json")).unwrap()).unwrap();
    let of = |driver: &str| rows.as_array().unwrap().iter().filter(|row| row["driver"] == driver).collect::<Vec<_>>();
    assert_eq!((of("first").len(), of("second").len()), (10, 10));
    assert!(of("first").iter().all(|row| row["n"] != 100 || row["scenario"] == "large"), "the older rows are gone");
    let plot = std::fs::read_to_string(folder.join("plots/submit.svg")).unwrap();
    for text in ["first", "second", "loop by hand", "clgraph, automatic"] {
        assert!(plot.contains(text), "{text} is in the plot");
    }
    assert!(!folder.join("plots/large.svg").exists(), "one size is no line");
    let tables = std::fs::read_to_string(folder.join("latest.md")).unwrap();
    for line in [
        "## submit, in-order queue",
        "| driver | 1 | 10 | 100 | 1000 |",
        "| first | 0.50 (0.50) | 0.50 (0.50) | - | 0.50 (0.50) |",
        "| second | 0.50 (0.50) | 0.50 (0.50) | 0.50 (0.50) | - |",
        "## submit, in-order queue, the host's time",
    ] {
        assert!(tables.contains(&format!("{line}\n")), "{line} is in\n{tables}");
    }
}
