//! The automatic path: found by timing submissions, with the same results all the time.

mod common;

use std::collections::VecDeque;

use clgraph::{Executable, Finalize, Graph, HostRead, Path, Queue, TuningState};
use common::{Bench, Tell};

/// Kernels of a graph: enough for several strategies.
const KERNELS: usize = 120;
/// Submissions after which the autotuner has settled on any device, if nothing disturbs it.
const SUBMISSIONS: u32 = 300;

/// Returns whether an executable has settled after so many submissions. Fails if it should have settled long ago.
fn is_over(executable: &Executable, submissions: u32) -> bool {
    match executable.report().tuning.state {
        TuningState::Settled => true,
        TuningState::Fixed => submissions >= SUBMISSIONS,
        _ => submissions >= 4 * SUBMISSIONS,
    }
}

/// Returns a chain that adds 1 several times, and a read of the sum.
fn counter(bench: &Bench) -> (Graph, HostRead<u32>, Tell) {
    let (sum, tell) = bench.telling_buffer(&[0; 4]);
    let (graph, one) = (bench.graph(), bench.buffer(&[1; 4]));
    for _ in 0..KERNELS {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&bench.kernel("add")).read_write(&sum).read(&one).range(4).add() }.unwrap();
    }
    let read = graph.read(&sum).add().unwrap();
    (graph, read, tell)
}

fn sum_after(submissions: u32) -> [u32; 4] {
    [submissions * KERNELS as u32; 4]
}

/// Returns whether the environment sets the path, as it does when all tests run by one path.
fn is_pinned() -> bool {
    std::env::var_os("CLGRAPH_PATH").is_some_and(|path| path != "auto")
}

/// Checks that the executable has settled, that one strategy is used, and that its times are known.
#[track_caller]
fn assert_settled(executable: &Executable) {
    let report = executable.report();
    if is_pinned() {
        assert_eq!((report.tuning.state, report.tuning.strategies.len()), (TuningState::Fixed, 1));
        return;
    }
    assert_eq!(report.tuning.state, TuningState::Settled, "{report}");
    assert!(report.tuning.strategies.len() > 1, "{report}");
    let taken: Vec<_> = report.tuning.strategies.iter().filter(|strategy| strategy.taken).collect();
    assert_eq!(taken.len(), 1, "{report}");
    let (host, total) = (taken[0].host_nanos.unwrap(), taken[0].total_nanos.unwrap());
    assert!(taken[0].timed >= 3 && host > 0 && total > 0, "{report}");
    assert!(report.to_string().contains(": the fastest when timed"), "{report}");
}

#[test]
fn an_executable_settles_and_gives_the_same_results_meanwhile() {
    let bench = Bench::new();
    for out_of_order in [false, true] {
        let queue = bench.another_queue(out_of_order);
        let (graph, read, _) = counter(&bench);
        let executable = graph.finalize(Finalize::new()).unwrap();
        if !is_pinned() {
            assert_eq!(executable.report().tuning.state, TuningState::Trying);
            assert!(executable.report().to_string().contains(": being timed"), "{}", executable.report());
        }
        for submission in 1.. {
            let run = executable.submit(&queue).unwrap();
            run.wait().unwrap();
            assert_eq!(*run.get(&read).unwrap(), sum_after(submission));
            if is_over(&executable, submission) {
                break;
            }
        }
        assert_settled(&executable);
    }
}

#[test]
fn it_settles_with_several_submissions_in_flight_too() {
    let bench = Bench::new();
    let (graph, read, _) = counter(&bench);
    let executable = graph.finalize(Finalize::new()).unwrap();
    let mut under_way = VecDeque::new();
    for submission in 1.. {
        under_way.push_back((submission, executable.submit(&bench.queue).unwrap()));
        bench.queue.flush().unwrap();
        if under_way.len() == 3 {
            let (submission, run) = under_way.pop_front().unwrap();
            run.wait().unwrap();
            assert_eq!(*run.get(&read).unwrap(), sum_after(submission));
        }
        if is_over(&executable, submission) {
            break;
        }
    }
    under_way.into_iter().for_each(|(_, run)| run.wait().unwrap());
    assert_settled(&executable);
}

#[test]
fn submissions_that_nobody_waits_for_are_timed_as_well() {
    let bench = Bench::new();
    let (graph, read, _) = counter(&bench);
    let executable = graph.finalize(Finalize::new()).unwrap();
    let mut submissions = 0;
    while !is_over(&executable, submissions) {
        executable.submit_to(&bench.queue).submit_detached().unwrap();
        bench.queue.finish().unwrap();
        submissions += 1;
    }
    assert_settled(&executable);
    let run = executable.submit(&bench.queue).unwrap();
    run.wait().unwrap();
    assert_eq!(*run.get(&read).unwrap(), sum_after(submissions + 1));
}

#[test]
fn several_queues_and_threads_share_one_tuning() {
    const THREADS: u32 = 4;
    let bench = Bench::new();
    let (graph, read, _) = counter(&bench);
    let executable = graph.finalize(Finalize::new()).unwrap();
    let queues: Vec<Queue> = (0..THREADS).map(|at| bench.another_queue(at % 2 == 1)).collect();
    std::thread::scope(|scope| {
        for queue in &queues {
            scope.spawn(|| (0..SUBMISSIONS).for_each(|_| executable.submit(queue).unwrap().wait().unwrap()));
        }
    });
    let run = executable.submit(&bench.queue).unwrap();
    run.wait().unwrap();
    assert_eq!(*run.get(&read).unwrap(), sum_after(THREADS * SUBMISSIONS + 1));
    assert_eq!(executable.report().tuning.strategies.iter().filter(|strategy| strategy.taken).count(), 1);
}

#[test]
fn updates_go_into_whatever_strategy_comes_next() {
    let bench = Bench::new();
    let (from, into) = (bench.buffer(&[1, 2, 3, 4]), bench.buffer(&[0; 4]));
    let graph = bench.graph();
    let value = clgraph::Parameter::any(0_u32);
    for _ in 0..KERNELS {
        // SAFETY: each work-item touches its own element.
        unsafe { graph.kernel(&bench.kernel("scale")).read(&from).write(&into).arg(&value).range(4).add() }.unwrap();
    }
    let read = graph.read(&into).add().unwrap();
    let executable = graph.finalize(Finalize::new().updatable()).unwrap();
    let nodes = graph.nodes();
    for by in 1..=SUBMISSIONS {
        value.set(by).unwrap();
        executable.update(&nodes[..KERNELS]).unwrap();
        let run = executable.submit(&bench.queue).unwrap();
        run.wait().unwrap();
        assert_eq!(*run.get(&read).unwrap(), [3 + by, 6 + by, 9 + by, 12 + by]);
    }
}

#[test]
fn what_is_pinned_is_not_timed() {
    let bench = Bench::new();
    let (graph, read, _) = counter(&bench);
    let pinned = [
        Finalize::new().autotune(false),
        Finalize::new().path(Path::Gated),
        Finalize::new().path(Path::Replay),
        Finalize::new().path(Path::Native),
    ];
    let mut submission = 0;
    for options in pinned {
        let executable = graph.finalize(options).unwrap();
        for _ in 0..20 {
            submission += 1;
            let run = executable.submit(&bench.queue).unwrap();
            run.wait().unwrap();
            assert_eq!(*run.get(&read).unwrap(), sum_after(submission));
        }
        let tuning = executable.report().tuning;
        assert_eq!((tuning.state, tuning.strategies.len(), tuning.strategies[0].timed), (TuningState::Fixed, 1, 0));
    }
    let gated = graph.finalize(Finalize::new().path(Path::Gated)).unwrap();
    assert!(gated.report().to_string().contains("tuning     gated replay\n"), "{}", gated.report());
}

/// Nothing is left over, and nothing waits.
#[test]
fn an_executable_may_go_while_its_submissions_are_timed() {
    let bench = Bench::new();
    let (graph, _, tell) = counter(&bench);
    for submissions in 0..6 {
        let executable = graph.finalize(Finalize::new()).unwrap();
        for _ in 0..submissions {
            executable.submit_to(&bench.queue).submit_detached().unwrap();
        }
        drop(executable);
    }
    bench.queue.finish().unwrap();
    drop(graph);
    tell.wait_until_gone();
}

/// Returns a folder for this test: other runs of the program have others at the same time.
fn folder(name: &str) -> std::path::PathBuf {
    let folder =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tuning-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Submits until the executable has settled; returns the number of submissions.
fn settle(executable: &Executable, bench: &Bench) -> u32 {
    let mut submissions = 0;
    while !is_over(executable, submissions) {
        executable.submit(&bench.queue).unwrap().wait().unwrap();
        submissions += 1;
    }
    assert_settled(executable);
    submissions
}

fn taken(executable: &Executable) -> (Path, Option<usize>) {
    let tuning = executable.report().tuning;
    let strategy = tuning.strategies.iter().find(|strategy| strategy.taken).unwrap();
    (strategy.path, strategy.commands_per_buffer)
}

#[test]
fn what_was_found_is_kept_in_a_file_for_the_next_process() {
    let bench = Bench::new();
    let (graph, read, _) = counter(&bench);
    let file = folder("kept").join("tuning.json");
    let options = Finalize::new().tuning_cache(&file);
    let first = graph.finalize(options.clone()).unwrap();
    assert!(!file.exists(), "nothing is known yet");
    let submissions = settle(&first, &bench);
    if is_pinned() {
        assert!(!file.exists(), "there was nothing to find");
        return;
    }
    let begin = std::time::Instant::now();
    while !file.exists() {
        assert!(begin.elapsed().as_secs() < 60, "the file never comes");
        std::thread::yield_now();
    }
    let next = graph.finalize(options.clone()).unwrap();
    let tuning = next.report().tuning;
    assert_eq!((tuning.state, taken(&next)), (TuningState::Settled, taken(&first)));
    let run = next.submit(&bench.queue).unwrap();
    run.wait().unwrap();
    assert_eq!(*run.get(&read).unwrap(), sum_after(submissions + 1));
    // The file has no entry for another graph.
    let other = bench.graph();
    let (a, b) = (bench.buffer(&[0; 4]), bench.buffer(&[0; 4]));
    for _ in 0..5 {
        other.copy(&a, &b).add().unwrap();
    }
    assert_eq!(other.finalize(options).unwrap().report().tuning.state, TuningState::Trying);
}

#[test]
fn a_file_that_is_something_else_is_left_alone() {
    let bench = Bench::new();
    let (graph, read, _) = counter(&bench);
    let folder = folder("foreign");
    let mut submissions = 0;
    let mut tried = |file: &std::path::Path| {
        let executable = graph.finalize(Finalize::new().tuning_cache(file)).unwrap();
        if !is_pinned() {
            assert_eq!(executable.report().tuning.state, TuningState::Trying, "{}", file.display());
        }
        submissions += settle(&executable, &bench) + 1;
        let run = executable.submit(&bench.queue).unwrap();
        run.wait().unwrap();
        assert_eq!(*run.get(&read).unwrap(), sum_after(submissions));
    };
    let nested = "[".repeat(100_000);
    let large = format!("{{\"clgraph_tuning_cache\": 1, \"devices\": {{}}, \"more\": \"{}\"}}", "x".repeat(1 << 20));
    let foreign = [
        "",
        "\0\u{1}",
        "a letter to somebody",
        "{}",
        "{\"clgraph_tuning_cache\": 2, \"devices\": {}}",
        "{\"clgraph_tuning_cache\": 1}",
        "{\"clgraph_tuning_cache\": 1, \"devices\": 7}",
        &nested,
        &large,
    ];
    for (number, content) in foreign.into_iter().enumerate() {
        let file = folder.join(format!("{number}.json"));
        std::fs::write(&file, content).unwrap();
        tried(&file);
    }
    tried(&folder);
    tried(&folder.join("no/such/folder/tuning.json"));
    for (number, content) in foreign.into_iter().enumerate() {
        let file = folder.join(format!("{number}.json"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), content, "it is not ours");
    }
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), foreign.len(), "{left:?}");
}

#[test]
fn a_file_that_is_nearly_full_makes_room_for_the_new_and_loses_the_oldest() {
    let bench = Bench::new();
    let (graph, ..) = counter(&bench);
    let file = folder("full").join("tuning.json");
    let entry = |day: usize| {
        let (path, nanos) = ("replay", 1_000_000);
        serde_json::json!({ "path": path, "commands_per_buffer": 0, "queues": 0, "host_nanos": nanos, "total_nanos": nanos, "day": day })
    };
    let graphs = |of: usize| (0..1_000).map(move |at| (format!("{at:016x}"), entry(of * 1_000 + at)));
    let device = |of: usize| (format!("another driver {of}"), serde_json::Value::Object(graphs(of).collect()));
    let devices: serde_json::Map<_, _> = (0..6).map(device).collect();
    let content = serde_json::json!({ "clgraph_tuning_cache": 1, "devices": devices }).to_string();
    assert!((700_000..1 << 20).contains(&content.len()), "{}", content.len());
    std::fs::write(&file, &content).unwrap();
    settle(&graph.finalize(Finalize::new().tuning_cache(&file)).unwrap(), &bench);
    if is_pinned() {
        return assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
    }
    let begin = std::time::Instant::now();
    let text = loop {
        assert!(begin.elapsed().as_secs() < 60, "it is never written");
        let text = std::fs::read_to_string(&file).unwrap();
        if text != content {
            break text;
        }
        std::thread::yield_now();
    };
    let now: serde_json::Value = serde_json::from_str(&text).unwrap();
    let left = now["devices"].as_object().unwrap();
    let count: usize = left.values().map(|graphs| graphs.as_object().unwrap().len()).sum();
    assert_eq!((left.len(), count), (2, 1_000), "its own, and the newest of the others");
    let newest = &left["another driver 5"];
    assert!(newest["0000000000000000"].is_null() && !newest["00000000000003e7"].is_null());
    assert_eq!(
        graph.finalize(Finalize::new().tuning_cache(&file)).unwrap().report().tuning.state,
        TuningState::Settled
    );
}

#[test]
fn a_cached_strategy_that_the_graph_does_not_have_is_not_taken() {
    let bench = Bench::new();
    let (graph, _, _) = counter(&bench);
    let file = folder("hostile").join("tuning.json");
    let options = || Finalize::new().tuning_cache(&file);
    settle(&graph.finalize(options()).unwrap(), &bench);
    if is_pinned() {
        return assert!(!file.exists());
    }
    let begin = std::time::Instant::now();
    while !file.exists() {
        assert!(begin.elapsed().as_secs() < 60, "the file never comes");
        std::thread::yield_now();
    }
    let good: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    for (name, value) in [
        ("path", serde_json::json!("sideways")),
        ("path", serde_json::json!(null)),
        ("commands_per_buffer", serde_json::json!(0xffff_ffff_ffff_ffff_u64)),
        ("commands_per_buffer", serde_json::json!(-1)),
        ("total_nanos", serde_json::json!("soon")),
        ("host_nanos", serde_json::json!({})),
    ] {
        let mut bad = good.clone();
        let devices = bad["devices"].as_object_mut().unwrap();
        let graphs = devices.values_mut().next().unwrap().as_object_mut().unwrap();
        graphs.values_mut().next().unwrap()[name] = value.clone();
        std::fs::write(&file, bad.to_string()).unwrap();
        let state = graph.finalize(options()).unwrap().report().tuning.state;
        assert_eq!(state, TuningState::Trying, "{name}: {value}");
    }
    std::fs::write(&file, good.to_string()).unwrap();
    assert_eq!(graph.finalize(options()).unwrap().report().tuning.state, TuningState::Settled);
}
